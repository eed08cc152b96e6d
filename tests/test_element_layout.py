"""Tests that the sizes and alignments of elements are those of LLVM for lowered
memrefs."""

import subprocess

import pytest
from modules import parse, run
from upstream import TOOLS, needs_mlir
from xdsl.dialects import memref
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

import tensorplan
from tensorplan.dialects.tgraph.base import element_alignment, element_bytes
from tensorplan.passes.plan.memory import PlanMemory

X86_64 = "e-m:e-i64:64-i128:128-f80:128-n8:16:32:64-S128"
"""LLVM's data layout of x86-64."""

IN_LLVM = {  # each element type, and the type that MLIR lowers it to
    **{f"i{n}": f"i{n}" for n in (1, 7, 8, 17, 24, 32, 33, 40, 48, 64, 65, 128, 257)},
    **{f: f for f in ("bf16", "f16", "f32", "f64", "f80", "f128")},
    "index": "i64",
    "complex<f32>": "!llvm.struct<(f32, f32)>",
    "complex<i24>": "!llvm.struct<(i24, i24)>",
    "complex<f80>": "!llvm.struct<(f80, f80)>",
    "vector<3xf32>": "vector<3xf32>",
    "vector<9xi1>": "vector<9xi1>",
    "vector<2xi17>": "vector<2xi17>",
    "vector<2xf80>": "vector<2xf80>",
    "vector<f32>": "vector<1xf32>",
    "vector<2x3xf32>": "!llvm.array<2 x vector<3xf32>>",
    "memref<f32>": "!llvm.struct<(ptr, ptr, i64)>",
    "memref<2x3xf32>": (
        "!llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)>"
    ),
    "memref<*xf32>": "!llvm.struct<(i64, ptr)>",
}


def type_of(text: str) -> Attribute:
    return Parser(tensorplan.context(), text).parse_type()


def native_output(text: str, result: str, *passes: str) -> str:
    """Lowers an MLIR program with `passes`, runs it natively, and returns its
    output."""
    tools = TOOLS[0]
    lowered = subprocess.run(
        [tools.opt, *passes], input=text, capture_output=True, text=True, check=True
    )
    command = [tools.runner, "-e", "main", f"--entry-point-result={result}"]
    return subprocess.check_output(command, input=lowered.stdout, text=True, timeout=60)


def address(base: str, type: str, *indices: int) -> str:
    """Lines that print the offset of a part of a type in LLVM's layout."""
    at = ", ".join(map(str, indices))
    return f"""
      %p{base} = llvm.getelementptr %null[{at}] : (!llvm.ptr) -> !llvm.ptr, {type}
      %n{base} = llvm.ptrtoint %p{base} : !llvm.ptr to i64
      llvm.call @printf(%format, %n{base}) vararg(!llvm.func<i32 (ptr, ...)>)
        : (!llvm.ptr, i64) -> i32"""


@needs_mlir
def test_sizes_and_alignments_are_those_of_llvm():
    body = ""
    for number, type in enumerate(IN_LLVM.values()):
        body += address(f"s{number}", type, 1)
        body += address(f"a{number}", f"!llvm.struct<(i8, {type})>", 0, 1)
    text = f"""
    module attributes {{llvm.data_layout = "{X86_64}"}} {{
    llvm.mlir.global constant @format("%ld\\0A\\00")
    llvm.func @printf(!llvm.ptr, ...) -> i32
    llvm.func @main() {{
      %null = llvm.mlir.zero : !llvm.ptr
      %format = llvm.mlir.addressof @format : !llvm.ptr
      {body}
      llvm.return
    }}
    }}"""
    numbers = list(map(int, native_output(text, "void").split()))
    types = [type_of(text) for text in IN_LLVM]
    ours = [(element_bytes(type), element_alignment(type)) for type in types]
    in_llvm = list(zip(numbers[::2], numbers[1::2], strict=True))
    assert dict(zip(IN_LLVM, in_llvm, strict=True)) == dict(
        zip(IN_LLVM, ours, strict=True)
    )


@pytest.mark.parametrize("text", ["vector<[4]xf32>", "i0", "none", "tensor<2xf32>"])
def test_elements_without_a_fixed_size_are_refused(text: str):
    with pytest.raises(VerifyException, match="has no fixed size"):
        element_bytes(type_of(text))


NEIGHBORS = """
func.func @main() -> i64 {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %many = arith.constant -1 : i64
  %x = memref.alloc() : memref<64x{type}>
  %y = memref.alloc() : memref<64x{type}>
  %a = {into} %one : i64 to {type}
  %b = {into} %many : i64 to {type}
  scf.for %i = %c0 to %c64 step %c1 {{
    memref.store %a, %x[%i] : memref<64x{type}>
  }}
  scf.for %i = %c0 to %c64 step %c1 {{
    memref.store %b, %y[%i] : memref<64x{type}>
  }}
  %sum = scf.for %i = %c0 to %c64 step %c1 iter_args(%s = %zero) -> (i64) {{
    %v = memref.load %x[%i] : memref<64x{type}>
    %w = {out} %v : {type} to i64
    %t = arith.addi %s, %w : i64
    memref.store %v, %y[%i] : memref<64x{type}>
    scf.yield %t : i64
  }}
  memref.dealloc %x : memref<64x{type}>
  memref.dealloc %y : memref<64x{type}>
  func.return %sum : i64
}}
"""


@needs_mlir
@pytest.mark.parametrize("type", ["i17", "i24", "i40", "i48", "f80"])
def test_neighbors_in_an_arena_keep_their_values(type: str):
    into, out = ("trunci", "extsi") if type[0] == "i" else ("sitofp", "fptosi")
    text = NEIGHBORS.format(type=type, into=f"arith.{into}", out=f"arith.{out}")
    planned = run(parse(text), PlanMemory())
    assert "memref.view" in str(planned)
    printed = native_output(
        str(planned),
        "i64",
        "--expand-strided-metadata",
        "--convert-scf-to-cf",
        "--convert-to-llvm",
        "--reconcile-unrealized-casts",
    )
    assert int(printed) == 64


@pytest.mark.parametrize("type", ["f64", "complex<f64>", "i24", "vector<4xf32>", "f80"])
def test_buffers_have_at_least_the_alignment_of_their_elements(type: str):
    module = parse(f"""
    func.func @main(%a: memref<33xi8>, %b: memref<4x{type}>) {{
      %x = memref.alloc() : memref<33xi8>
      %y = memref.alloc() : memref<4x{type}>
      "memref.copy"(%a, %x) : (memref<33xi8>, memref<33xi8>) -> ()
      "memref.copy"(%b, %y) : (memref<4x{type}>, memref<4x{type}>) -> ()
      "memref.copy"(%x, %a) : (memref<33xi8>, memref<33xi8>) -> ()
      "memref.copy"(%y, %b) : (memref<4x{type}>, memref<4x{type}>) -> ()
      func.return
    }}""")
    planned = run(module, PlanMemory(alignment=1))
    (arena,) = (op for op in planned.walk() if isinstance(op, memref.AllocOp))
    assert arena.alignment is not None
    assert arena.alignment.value.data == element_alignment(type_of(type))
