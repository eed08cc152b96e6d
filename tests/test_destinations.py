"""Tests destination-style operations of other dialects on tensors: linalg, and a
dialect with tensorplan's traits. The tests check the order and the bytes of scheduled
programs, and the values of random programs.
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    traits_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.passes import ModulePass

import tensorplan
from tensorplan.analysis.memory_graph import MemoryGraph, memory_graph
from tensorplan.dialects.memory import DestinationStyle, Elementwise
from tensorplan.passes import driver
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.tgraph.bufferize import TGraphBufferize
from tensorplan.passes.tgraph.rematerialize import TGraphRematerialize
from tensorplan.passes.tgraph.schedule import TGraphSchedule

T, WIDE = "tensor<8xf32>", "tensor<512xf32>"


@irdl_op_definition
class HalveOp(IRDLOperation):
    name = "npu.halve"
    source, out = operand_def(), operand_def()
    res = var_result_def()
    traits = traits_def(DestinationStyle())


@irdl_op_definition
class ScaleOp(IRDLOperation):
    name = "npu.scale"
    source, out = operand_def(), operand_def()
    res = var_result_def()
    traits = traits_def(Elementwise())


NPU = Dialect("npu", [HalveOp, ScaleOp], [])


def after(text: str, *passes: ModulePass) -> ModuleOp:
    context = tensorplan.context()
    context.load_dialect(NPU)
    module = Parser(context, text, "test.mlir").parse_module()
    module.verify()
    driver.run(context, module, passes)
    return module


# Order and bytes


def scheduled(*lines: str) -> tuple[MemoryGraph, Sequence[str]]:
    """The memory graph of a function with operations `lines` after scheduling, and the
    names of its values in the new order."""
    text = (
        f"func.func @main(%a: {WIDE}, %n: f32) -> ({T}, {T}, f32) {{\n"
        f"  %w = tensor.empty() : {WIDE}\n  %s = tensor.empty() : {T}\n"
        + "\n".join(lines)
        + f"\n  func.return %p, %q, %n : {T}, {T}, f32\n}}"
    )
    [function] = after(text, TGraphSchedule()).ops
    names = [r.name_hint for op in function.walk() for r in op.results if r.name_hint]
    graph = memory_graph(function.regions[0].block, 64)
    return graph, [name for name in names if name not in "ws"]


def bytes_of(graph: MemoryGraph) -> int:
    [peak] = graph.peaks(range(len(graph.ops))).values()
    return peak


def scale(result: str, source: str) -> str:
    return f'  %{result} = "npu.scale"(%{source}, %w) : ({WIDE}, {WIDE}) -> {WIDE}'


def halve(result: str, source: str) -> str:
    return f'  %{result} = "npu.halve"(%{source}, %s) : ({WIDE}, {T}) -> {T}'


def generic(result: str, out: str, payload: str) -> str:
    return f"""  %{result} = linalg.generic {{
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]}} ins(%a : {WIDE}) outs(%{out} : {WIDE}) {{
    ^bb0(%in: f32, %out: f32):
      %t = {payload} : f32
      linalg.yield %t : f32
  }} -> {WIDE}"""


def test_operations_with_traits_are_reordered() -> None:
    graph, names = scheduled(
        *(scale("x", "a"), scale("y", "a"), halve("p", "x"), halve("q", "y"))
    )
    assert names == ["x", "p", "y", "q"]
    assert bytes_of(graph) == 512 * 4


def test_in_place_chain_is_one_buffer() -> None:
    graph, names = scheduled(
        *(scale("x", "a"), scale("y", "x"), halve("p", "y"), halve("q", "a"))
    )
    assert names == ["x", "y", "p", "q"]
    assert bytes_of(graph) == 512 * 4


def test_in_place_chain_is_computed_in_the_result() -> None:
    matrix = "tensor<8x8xf32>"
    planned = tensorplan.plan(
        tensorplan.read(f"""
func.func @main(%x: {matrix}, %y: {matrix}) -> {matrix} {{
  %e = tensor.empty() : {matrix}
  %a = linalg.add ins(%x, %y : {matrix}, {matrix}) outs(%e : {matrix}) -> {matrix}
  %b = linalg.matmul ins(%x, %x : {matrix}, {matrix}) outs(%a : {matrix}) -> {matrix}
  func.return %b : {matrix}
}}""")
    )
    assert "memref.alloc" not in str(planned)
    assert "memref.copy" not in str(planned)


@pytest.mark.parametrize(("other", "buffers"), [("x", 2), ("a", 1)])
def test_destination_that_is_read_later_is_copied(other: str, buffers: int) -> None:
    """The sum accumulates into `%x`. If the difference also reads `%x`, the sum needs a
    copy of it."""
    graph, _ = scheduled(
        *(scale("x", "a"), generic("y", "x", "arith.addf %in, %out")),
        f"  %d = linalg.sub ins(%y, %{other} : {WIDE}, {WIDE}) outs(%w : {WIDE})"
        f" -> {WIDE}",
        *(halve("p", "d"), halve("q", "d")),
    )
    assert bytes_of(graph) == buffers * 512 * 4


def test_values_used_in_a_region_are_defined_before_it() -> None:
    """`%c` is used in the region of an operation, but is not its operand."""
    scalar = "  %c = arith.addf %n, %n : f32"
    body = generic("x", "w", "arith.mulf %in, %c")
    _, names = scheduled(
        *(scale("y", "a"), scalar, body, halve("p", "x"), halve("q", "y"))
    )
    assert sorted(names) == ["c", "p", "q", "t", "x", "y"]
    assert names.index("c") < names.index("x")
    assert abs(names.index("y") - names.index("q")) == 1


# Values

S, M = "tensor<4x4xf32>", "memref<4x4xf32>"
FUNCTIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
SUM = """linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>,
    affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
    ins(%{0} : {1}) outs(%{2} : {1}) {{
    ^bb0(%in: f32, %out: f32):
      %t = arith.addf %in, %out : f32
      linalg.yield %t : f32
  }} -> {1}"""

Array = np.ndarray[Any, np.dtype[Any]]
Choice = tuple[str, int, int, int]
"""A kind of operation, and the numbers of its operands modulo that of the values."""


def program(choices: Sequence[Choice], given: Array) -> tuple[str, Sequence[Array]]:
    """A function of these operations, and its results for the argument `given`."""
    lines: list[str] = []
    values = [given]
    for number, (kind, *operands) in enumerate(choices, 1):
        a, b, d = (n % len(values) for n in operands)
        x, y, out = values[a], values[b], f"v{d}"
        if operands[2] % 3 == 0 and kind not in ("matmul", "sum"):
            out = "empty"
        to = f"outs(%{out} : {S}) -> {S}"
        match kind:
            case "matmul":
                op, value = (
                    f"linalg.matmul ins(%v{a}, %v{b} : {S}, {S}) {to}",
                    values[d] + x @ y,
                )
            case "sum":
                op, value = SUM.format(f"v{a}", S, out), x + values[d]
            case "fill":
                op, value = f"linalg.fill ins(%n : f32) {to}", np.full_like(x, 3)
            case "transpose":
                turned = "{permutation = array<i64: 1, 0>}"
                op = f"tgraph.transpose %v{a} {turned} : ({S}) -> {S}"
                value = x.T
            case _:
                op = f"linalg.{kind} ins(%v{a}, %v{b} : {S}, {S}) {to}"
                value = FUNCTIONS[kind](x, y)
        lines.append(f"  %v{number} = {op}")
        values.append(value)
    last = len(choices)
    returned = last, choices[-1][1] % len(values)
    return (
        f"func.func @main(%v0: {S}, %n: f32) -> ({S}, f32, {S}) {{\n"
        f"  %empty = tensor.empty() : {S}\n"
        + "\n".join(lines)
        + f"\n  func.return %v{last}, %n, %v{returned[1]} : {S}, f32, {S}\n}}"
    ), [values[n] for n in returned]


def computed(module: ModuleOp, given: Array) -> Sequence[Array]:
    """The results of a function on memrefs. New memory is filled with NaN."""
    [function] = module.ops
    assert isinstance(function, FuncOp)
    first, number, *results = function.args
    memory = [np.full((4, 4), np.nan, np.float32) for _ in results]
    values: dict[SSAValue, Any] = {first: given.copy(), number: 3}
    values |= zip(results, memory, strict=True)
    for op in function.body.block.ops:
        operands: list[Any] = [values.get(value) for value in op.operands]
        out: Any = operands[-1] if operands else ()
        match op.name:
            case "arith.constant":
                constant = cast(IntegerAttr, cast(arith.ConstantOp, op).value)
                values[op.results[0]] = constant.value.data
            case "memref.alloc":
                (size,) = cast(memref.AllocOp, op).memref.type.get_shape()
                values[op.results[0]] = np.full(size // 4, np.nan, np.float32)
            case "memref.view":
                arena, offset = operands
                values[op.results[0]] = arena[offset // 4 :][:16].reshape(4, 4)
            case "memref.reinterpret_cast":
                strides = cast(memref.ReinterpretCastOp, op).static_strides.get_values()
                transposed = strides == (1, 4)
                values[op.results[0]] = operands[0].T if transposed else operands[0]
            case "memref.copy":
                out[:] = operands[0]
            case "linalg.fill":
                out[:] = operands[0]
            case "linalg.matmul":
                out += operands[0] @ operands[1]
            case "linalg.generic":
                out += operands[0]
            case "memref.dealloc" | "func.return":
                pass
            case name:
                out[:] = FUNCTIONS[name.removeprefix("linalg.")](*operands[:2])
    assert (values[first] == given).all()
    return memory


KINDS = st.sampled_from(
    ("add", "sub", "mul", "sum", "sum", "matmul", "transpose", "fill")
)
NUMBERS = st.integers(0, 40)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(KINDS, NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=9))
def test_values_of_random_programs(choices: Sequence[Choice]) -> None:
    given = np.arange(-3, 13, dtype=np.float32).reshape(4, 4) / 8
    text, want = program(choices, given)
    for passes in ((), (TGraphSchedule(),), (TGraphRematerialize(budget=64),)):
        module = after(text, *passes, TGraphBufferize(), PlanMemory())
        for got, value in zip(computed(module, given), want, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-4, atol=1e-5)
