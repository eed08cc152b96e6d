"""Tests which arguments can hold other buffers, and which buffers can move there."""

import pytest
from xdsl.dialects import memref
from xdsl.dialects.func import FuncOp

import tensorplan
from tensorplan.analysis.allocations import find_allocations
from tensorplan.analysis.control_flow import ControlFlow
from tensorplan.frontends.mlir_text import parse_module
from tensorplan.passes.plan.placement.output_reuse import (
    Output,
    find_outputs,
    is_movable,
    move,
)

M = "memref<4x8xf32>"
RESULT = "tgraph.result = 2 : i32"


def function(*lines: str, result: str = M, attributes: str = RESULT) -> FuncOp:
    arguments = f"%x: {M}, %n: index, %r: {result} {{{attributes}}}"
    text = "\n".join((f"func.func @f({arguments}) {{", *lines, "func.return\n}"))
    (func,) = parse_module(text, "test.mlir", tensorplan.context()).ops
    assert isinstance(func, FuncOp)
    return func


def load(type: str, indices: str = "%n, %n") -> str:
    return f"%v = memref.load %r[{indices}] : {type}"


def outputs(*lines: str, result: str = M, attributes: str = RESULT) -> list[Output]:
    func = function(*lines, result=result, attributes=attributes)
    return find_outputs(func, ControlFlow(func))


def test_properties_of_an_output() -> None:
    type = 'memref<3x3xi16, "cpu:1">'
    (output,) = outputs("%c = arith.constant 0 : index", load(type), result=type)
    assert (output.size, output.name, str(output.space)) == (18, "%r", '"cpu:1"')
    assert output.argument.name_hint == "r"
    assert output.uses.accesses == {1: False, 2: False}


def test_an_output_without_a_name() -> None:
    func = function(load(M))
    func.body.blocks[0].args[2].name_hint = None
    (output,) = find_outputs(func, ControlFlow(func))
    assert output.name == "%argument"


PART = "offset: [0], sizes: [8], strides: [1]"
REUSED = {
    "a result": (M, RESULT, load(M), 1),
    "an index": ("memref<3x3xindex>", RESULT, load("memref<3x3xindex>"), 1),
    "an argument": (M, "", load(M), 0),
    "a variable": (M, f"{RESULT}, tgraph.variable", load(M), 1),
    "a donated argument": (M, "tgraph.donated", load(M), 1),
    "a donated number": ("f32", "tgraph.donated", "%v = arith.addf %r, %r : f32", 0),
    "no memref": ("f32", RESULT, "%v = arith.addf %r, %r : f32", 0),
    "never used": (M, RESULT, "", 0),
    "of no known size": ("memref<?x8xf32>", RESULT, load("memref<?x8xf32>"), 0),
    "with a layout": (
        "memref<4x8xf32, strided<[16, 1]>>",
        RESULT,
        load("memref<4x8xf32, strided<[16, 1]>>"),
        0,
    ),
    "of pairs": (
        "memref<3x3xcomplex<f32>>",
        RESULT,
        load("memref<3x3xcomplex<f32>>"),
        0,
    ),
    "reused already": (
        M,
        RESULT,
        f"%v = memref.reinterpret_cast %r to {PART} {{tgraph.buffer}} : {M} to "
        f"memref<8xf32>\n{load(M).replace('%v', '%w')}",
        0,
    ),
}


@pytest.mark.parametrize(
    ("result", "attributes", "line", "count"), REUSED.values(), ids=REUSED
)
def test_arguments_that_can_hold_buffers(
    result: str, attributes: str, line: str, count: int
) -> None:
    assert len(outputs(line, result=result, attributes=attributes)) == count


def cast(where: str, type: str, of: str = "a", name: str = "v") -> str:
    source = M if of == "a" else "memref<8xf32>"
    return f"%{name} = memref.reinterpret_cast %{of} to {where} : {source} to {type}"


MOVES = {
    "our operations": (f"tgraph.negate %x outs(%a) : {M}", True),
    "loads": (f"%v = memref.load %a[%n, %n] : {M}", True),
    "stores": (
        f"%v = memref.load %x[%n, %n] : {M}\nmemref.store %v, %a[%n, %n] : {M}",
        True,
    ),
    "a copy": (f'"memref.copy"(%x, %a) : ({M}, {M}) -> ()', True),
    "freed": (f"memref.dealloc %a : {M}", True),
    "linalg": (
        '%c = arith.constant 0.0 : f32\n"linalg.fill"(%c, %a) <{operandSegmentSizes = '
        "array<i32: 1, 1>}> ({^bb0(%e: f32, %g: f32): linalg.yield %e : f32}) : "
        f"(f32, {M}) -> ()",
        True,
    ),
    "a view": (cast(PART, "memref<8xf32>"), True),
    "an unknown operation": (f'"test.op"(%a) : ({M}) -> ()', False),
    "a view of a view": (
        f"{cast(PART, 'memref<8xf32>')}\n"
        f"{cast(PART, 'memref<8xf32>', 'v', 'w')}\n"
        '"test.op"(%w) : (memref<8xf32>) -> ()',
        False,
    ),
    "a cast": (f"%v = memref.cast %a : {M} to memref<?x8xf32>", False),
    "a dynamic size": (
        cast("offset: [0], sizes: [%n], strides: [1]", "memref<?xf32>"),
        False,
    ),
    "a dynamic stride": (
        cast("offset: [0], sizes: [8], strides: [%n]", "memref<8xf32, strided<[?]>>"),
        False,
    ),
    "a dynamic offset": (
        cast(
            "offset: [%n], sizes: [8], strides: [1]",
            "memref<8xf32, strided<[1], offset: ?>>",
        ),
        False,
    ),
}


@pytest.mark.parametrize(("line", "expected"), MOVES.values(), ids=MOVES)
def test_buffers_that_can_move(line: str, expected: bool) -> None:
    alloc, *_ = function(f"%a = memref.alloc() : {M}", line).body.block.ops
    assert isinstance(alloc, memref.AllocOp)
    assert is_movable(alloc) == expected


def test_a_moved_buffer_and_its_views_become_views_of_the_output() -> None:
    strided = "memref<8xf32, strided<[-1], offset: 15>>"
    two = "memref<2xf32, strided<[1], offset: 3>>"
    func = function(
        f"%a = memref.alloc() : {M}",
        f"tgraph.negate %x outs(%a) : {M}",
        cast("offset: [15], sizes: [8], strides: [-1] {kept}", strided),
        f"%w = memref.reinterpret_cast %v to offset: [3], sizes: [2], strides: [1] : "
        f"{strided} to {two}",
        f"%q = memref.load %w[%n] : {two}",
        f"memref.dealloc %a : {M}",
        result="memref<99xf32>",
    )
    (allocation,) = find_allocations(func, ControlFlow(func))
    move(allocation, func.body.blocks[0].args[2], 256)
    func.verify()
    assert [str(op) for op in func.body.block.ops] == [
        "%a = memref.reinterpret_cast %r to offset: [64], sizes: [4, 8], strides: "
        "[8, 1] {tgraph.buffer} : memref<99xf32> to "
        "memref<4x8xf32, strided<[8, 1], offset: 64>>",
        "tgraph.negate %x outs(%a) : (memref<4x8xf32>) -> "
        "memref<4x8xf32, strided<[8, 1], offset: 64>>",
        "%v = memref.reinterpret_cast %a to offset: [79], sizes: [8], strides: [-1] "
        "{kept} : memref<4x8xf32, strided<[8, 1], offset: 64>> to "
        "memref<8xf32, strided<[-1], offset: 79>>",
        "%w = memref.reinterpret_cast %v to offset: [67], sizes: [2], strides: [1] : "
        "memref<8xf32, strided<[-1], offset: 79>> to "
        "memref<2xf32, strided<[1], offset: 67>>",
        "%q = memref.load %w[%n] : memref<2xf32, strided<[1], offset: 67>>",
        "func.return",
    ]
    assert all(
        "test.mlir" in str(op.location)
        for op in func.body.block.ops
        if isinstance(op, memref.ReinterpretCastOp)
    )
