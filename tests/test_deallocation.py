"""Tests that plan-memory plans buffers of programs after MLIR's deallocation passes,
and leaves buffers whose aliases it does not know."""

import subprocess

import pytest
from upstream import TOOLS, needs_mlir
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.frontends.mlir_text import parse_module, permissive
from tensorplan.passes import driver
from tensorplan.passes.plan.memory import PlanMemory

YIELDS = """
func.func @main(%c: i1, %d: i1, %a: memref<64xf32>, %r: memref<64xf32>) {
  %0 = scf.if %c -> memref<64xf32> {
    %x = memref.alloc() : memref<64xf32>
    memref.copy %a, %x : memref<64xf32> to memref<64xf32>
    scf.yield %x : memref<64xf32>
  } else {
    %y = memref.alloc() : memref<64xf32>
    memref.copy %r, %y : memref<64xf32> to memref<64xf32>
    scf.yield %y : memref<64xf32>
  }
  %1 = scf.if %d -> memref<64xf32> {
    scf.yield %0 : memref<64xf32>
  } else {
    %z = memref.alloc() : memref<64xf32>
    memref.copy %r, %z : memref<64xf32> to memref<64xf32>
    scf.yield %z : memref<64xf32>
  }
  memref.copy %1, %r : memref<64xf32> to memref<64xf32>
  func.return
}
"""


def planned(text: str) -> ModuleOp:
    ctx = permissive(tensorplan.context())
    module = parse_module(text, "test.mlir", ctx)
    driver.run(ctx, module, [PlanMemory()])
    return module


def shapes(
    module: ModuleOp, op_type: type[memref.AllocOp | memref.ViewOp]
) -> list[str]:
    """The types of the results of all operations of a class."""
    ops = (op for op in module.walk() if isinstance(op, op_type))
    return [str(op.results[0].type) for op in ops]


@needs_mlir
@pytest.mark.parametrize(
    "option",
    ["--buffer-deallocation-pipeline", "--ownership-based-buffer-deallocation"],
)
def test_buffers_that_regions_yield_are_planned(option: str):
    command = [TOOLS[0].opt, option, "--mlir-print-op-generic"]
    text = subprocess.check_output(command, input=YIELDS, text=True, timeout=60)
    module = planned(text)
    assert shapes(module, memref.ViewOp).count("memref<64xf32>") == 3
    assert "memref<64xf32>" not in shapes(module, memref.AllocOp)
    taken = [TOOLS[0].opt, "--allow-unregistered-dialect"]
    subprocess.run(taken, input=str(module), text=True, check=True, capture_output=True)


def escaping(text: str) -> ModuleOp:
    return planned(f"""
    func.func @main(%a: memref<4xf32>, %c: i1) -> memref<4xf32> {{
      %x = memref.alloc() : memref<4xf32>
      "memref.copy"(%a, %x) : (memref<4xf32>, memref<4xf32>) -> ()
      {text}
    }}""")


@pytest.mark.parametrize("name", ["bufferization.clone", "foreign.view"])
def test_buffer_with_a_returned_alias_is_not_planned(name: str):
    module = escaping(f"""
      %y = "{name}"(%x) : (memref<4xf32>) -> memref<4xf32>
      memref.dealloc %x : memref<4xf32>
      func.return %y : memref<4xf32>""")
    assert shapes(module, memref.AllocOp) == ["memref<4xf32>"]


def test_buffer_with_a_freed_clone_is_not_planned():
    module = escaping("""
      %y = "bufferization.clone"(%x) : (memref<4xf32>) -> memref<4xf32>
      memref.dealloc %x : memref<4xf32>
      "memref.copy"(%y, %a) : (memref<4xf32>, memref<4xf32>) -> ()
      memref.dealloc %y : memref<4xf32>
      func.return %a : memref<4xf32>""")
    assert shapes(module, memref.AllocOp) == ["memref<4xf32>"]


def test_buffer_whose_address_escapes_is_not_planned():
    module = escaping("""
      %p = "memref.extract_aligned_pointer_as_index"(%x) : (memref<4xf32>) -> index
      %q = arith.addi %p, %p : index
      "foreign.use"(%q) : (index) -> ()
      memref.dealloc %a : memref<4xf32>
      func.return %a : memref<4xf32>""")
    assert shapes(module, memref.AllocOp) == ["memref<4xf32>"]
