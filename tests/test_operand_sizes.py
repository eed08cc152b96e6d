"""Tests allocations whose sizes are arguments or are computed from arguments.

The tests check plans, and native runs, also with sizes of 0.
"""

import numpy as np
import pytest
from upstream import needs_mlir

import tensorplan
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.frontends.mlir_text import parse_module
from tensorplan.passes import driver
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.runtime.backends.mlir.executable import MlirExecutable

SUM = """
func.func @main(%n: index, %m: i64, %r: memref<f32> {tgraph.result = 0 : i32}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %a = memref.alloc(%n) : memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    memref.store %one, %a[%i] : memref<?xf32>
  }
  %k = arith.index_cast %m : i64 to index
  %s = arith.addi %n, %k : index
  %b = memref.alloc(%s) : memref<?xf32>
  scf.for %i = %c0 to %s step %c1 {
    memref.store %two, %b[%i] : memref<?xf32>
  }
  %sum = memref.alloc() : memref<f32>
  %zero = arith.constant 0.0 : f32
  memref.store %zero, %sum[] : memref<f32>
  scf.for %i = %c0 to %n step %c1 {
    %e = memref.load %a[%i] : memref<?xf32>
    %g = memref.load %b[%i] : memref<?xf32>
    %o = memref.load %sum[] : memref<f32>
    %p = arith.addf %e, %g : f32
    %q = arith.addf %p, %o : f32
    memref.store %q, %sum[] : memref<f32>
  }
  %v = memref.load %sum[] : memref<f32>
  memref.store %v, %r[] : memref<f32>
  memref.dealloc %a : memref<?xf32>
  memref.dealloc %b : memref<?xf32>
  memref.dealloc %sum : memref<f32>
  func.return
}
"""


def planned(text: str) -> str:
    ctx = tensorplan.context()
    module = parse_module(text, "test.mlir", ctx)
    driver.run(ctx, module, [PlanMemory()])
    return str(module)


COMPUTED = {
    "arith.minui": "%k = arith.minui %n, %m : index",
    "arith.select": "%c = arith.cmpi slt, %n, %m : index\n"
    "%k = arith.select %c, %n, %m : index",
    "arith.shrui": "%c3 = arith.constant 3 : index\n%k = arith.shrui %n, %c3 : index",
    "affine.apply": "%k = affine.apply affine_map<(d0) -> (d0 ceildiv 32 * 32)> (%n)",
}


@pytest.mark.parametrize("name", COMPUTED)
def test_any_operations_without_effects_compute_sizes(name: str) -> None:
    text = f"""
    func.func @main(%n: index, %m: index, %x: memref<?xf32>) {{
      {COMPUTED[name]}
      %a = memref.alloc(%k) : memref<?xf32>
      "memref.copy"(%x, %a) : (memref<?xf32>, memref<?xf32>) -> ()
      "memref.copy"(%a, %x) : (memref<?xf32>, memref<?xf32>) -> ()
      memref.dealloc %a : memref<?xf32>
      func.return
    }}"""
    assert "memref.view %arena" in planned(text)


PERHAPS_NEGATIVE = """
  %c64 = arith.constant 64 : index
  %d = memref.dim %x, %c0 : memref<?xf32>
  %less = arith.subi %d, %c64 : index
  %b = memref.alloc(%less) : memref<?xf32>
  "memref.copy"(%x, %b) : (memref<?xf32>, memref<?xf32>) -> ()
  "memref.copy"(%b, %x) : (memref<?xf32>, memref<?xf32>) -> ()
"""
STREAM = "tgraph.exponential %x outs(%x) {tgraph.stream = 1 : i32} : memref<?xf32>"


@pytest.mark.parametrize("line", [PERHAPS_NEGATIVE, STREAM], ids=["negative", "stream"])
def test_unproved_allocations_are_unchanged(line: str) -> None:
    text = f"""
    func.func @main(%n: index, %x: memref<?xf32>) {{
      %c0 = arith.constant 0 : index
      %a = memref.alloc(%n) : memref<?xf32>
      "memref.copy"(%x, %a) : (memref<?xf32>, memref<?xf32>) -> ()
      {line}
      "memref.copy"(%a, %x) : (memref<?xf32>, memref<?xf32>) -> ()
      func.return
    }}"""
    assert "%a = memref.alloc(%n)" in planned(text)


@needs_mlir
def test_values() -> None:
    text = planned(SUM)
    assert text.count("memref.alloc(") == 1
    module = parse_module(text, "planned.mlir", tensorplan.context())
    run = MlirExecutable(module, signature(module))
    for n, m in ((0, 0), (0, 3), (1, 0), (7, 100), (1000, 33)):
        given = [np.array(n, np.int64), np.array(m, np.int64)]
        assert run(*given)[0] == 3 * n


@pytest.mark.parametrize("count", [3, 2_000])
def test_long_chains(count: int) -> None:
    sums = [f"%v{i + 1} = arith.addi %v{i}, %n : index" for i in range(count)]
    alloc = f"%a = memref.alloc(%v{count}) : memref<?xf32>"
    head = "func.func @main(%n: index) {\n%v0 = arith.addi %n, %n : index"
    use = "%f = arith.constant 1.0 : f32\nmemref.store %f, %a[%n] : memref<?xf32>"
    text = "\n".join([head, *sums, alloc, use, "func.return\n}"])
    assert f"arith.maxsi %v{count}, " in planned(text)
