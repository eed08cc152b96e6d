"""Tests that variables have the right contents for every order of reads and assigns,
with as few copies as possible."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import Program
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    FunctionType,
    IntegerAttr,
    ModuleOp,
    TensorType,
    f32,
    i32,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.parser import Parser

import tensorplan
from tensorplan.dialects.tgraph.base import VariableType, ints
from tensorplan.dialects.tgraph.elementwise import AddOp, NegateOp
from tensorplan.dialects.tgraph.indexing import DynamicUpdateSliceOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.shaping import ConstantOp, ReverseOp, SliceOp
from tensorplan.dialects.tgraph.structure import AssignOp, ReadOp
from tensorplan.passes import driver
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.tgraph.bufferize import TGraphBufferize
from tensorplan.passes.tgraph.eliminate_assigns import TGraphEliminateAssigns
from tensorplan.passes.tgraph.place_devices import TGraphPlaceDevices
from tensorplan.runtime.executor import Executable

TENSOR, PART = TensorType(f32, [4]), TensorType(f32, [2])
PLACE = TGraphPlaceDevices(default="cpu:0")


KINDS = ["read", "assign", "negate", "reverse", "add", "update"]


@st.composite
def updates(draw: st.DrawFn) -> Program:
    """Reads, views, sums, assigns and updates of three variables in any order."""
    block = Block(arg_types=[VariableType(TENSOR)] * 3 + [TENSOR])
    *variables, argument = block.args
    values: list[SSAValue] = [argument]
    parts: list[SSAValue] = []
    for _ in range(draw(st.integers(1, 16))):
        kind = draw(st.sampled_from(KINDS))
        value = draw(st.sampled_from(values))
        match kind:
            case "read":
                op = ReadOp(draw(st.sampled_from(variables)))
            case "assign":
                op = AssignOp(draw(st.sampled_from(variables)), value)
            case "negate":
                op = NegateOp((value,), result_types=(TENSOR,))
            case "reverse":
                how = {"dimensions": ints([0])}
                op = ReverseOp((value,), result_types=(TENSOR,), properties=how)
            case "update":
                old, new = (draw(st.integers(0, 2)) for _ in range(2))
                part = SliceOp(
                    (draw(st.sampled_from(values)),),
                    result_types=(PART,),
                    properties={
                        "start_indices": ints([old]),
                        "limit_indices": ints([old + 2]),
                        "strides": ints([1]),
                    },
                )
                negated = NegateOp(part.results, result_types=(PART,))
                start = ConstantOp(IntegerAttr(new, i32), TensorType(i32, []))
                block.add_ops([part, negated, start])
                parts.append(negated.result)
                op = DynamicUpdateSliceOp(
                    (value, negated.result, start.result), result_types=(TENSOR,)
                )
            case _:
                other = draw(st.sampled_from(values))
                op = AddOp((value, other), result_types=(TENSOR,))
        block.add_op(op)
        values += op.results
    returned = draw(st.lists(st.sampled_from(values + parts), max_size=3))
    block.add_op(ReturnOp(*returned))
    types = FunctionType.from_lists(block.arg_types, [v.type for v in returned])
    return Program(ModuleOp([FuncOp("main", types, Region(block))]))


def arrays() -> list[np.ndarray]:
    return [np.arange(4, dtype=np.float32) + 10**n for n in range(4)]


def lowered(module: ModuleOp, eliminate: bool = True) -> ModuleOp:
    copy = module.clone()
    passes = [TGraphEliminateAssigns()] if eliminate else []
    passes = [PLACE, *passes, TGraphBufferize(), PlanMemory()]
    driver.run(tensorplan.context(), copy, passes)
    return copy


def copies(module: ModuleOp) -> int:
    return sum(isinstance(op, memref.CopyOp) for op in module.walk())


def assert_same(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> None:
    assert len(got) == len(want)
    assert all(map(np.array_equal, got, want))


@pytest.mark.thorough
@given(updates())
def test_values_are_the_same_at_all_levels(program: Program) -> None:
    want = run_reference(program.module, arrays())
    eliminated = program.module.clone()
    driver.run(tensorplan.context(), eliminated, [TGraphEliminateAssigns()])
    assert_same(run_reference(eliminated, arrays()), want)
    for eliminate in (False, True):
        planned = lowered(program.module, eliminate)
        assert_same(Executable(planned, sanitize=True)(*arrays()), want)


@pytest.mark.thorough
@given(updates())
def test_elimination_never_adds_copies(program: Program) -> None:
    assert copies(lowered(program.module)) <= copies(lowered(program.module, False))


def parse(body: str) -> ModuleOp:
    text = f"""
!t = tensor<4xf32>
!v = !tgraph.variable<!t>
func.func @main(%a: !v, %b: !v, %c: !v, %g: !t) {{
  %x = tgraph.read %a : !t
  %y = tgraph.read %b : !t
  %z = tgraph.read %c : !t
  {body}
  func.return
}}"""
    return Parser(tensorplan.context(), text).parse_module()


@pytest.mark.parametrize(
    ("assigns", "expected"),
    [
        ("ay bx", 3),  # a swap
        ("bx ay", 3),
        ("ay bz cx", 4),  # a cycle of three
        ("ay bx cz", 3),  # a swap, and a variable that keeps its contents
        ("ag bx cy", 3),  # a chain, in any order
        ("cy bx ag", 3),
        ("bx cy ag", 3),
        ("ay by cy", 2),
        ("ag ay ag", 1),  # only the last counts
        ("ax by cz", 0),
    ],
)
def test_number_of_copies(assigns: str, expected: int) -> None:
    lines = [f"tgraph.assign %{v}, %{x} : !t" for v, x in assigns.split()]
    module = parse("\n  ".join(lines))
    want = run_reference(module, arrays())
    planned = lowered(module)
    assert_same(Executable(planned)(*arrays()), want)
    assert copies(planned) == expected


def test_unrolled_counter_is_updated_in_place() -> None:
    steps = [
        f"%r{i} = tgraph.read %a : !t\n%n{i} = tgraph.add %r{i}, %g : !t\n"
        f"tgraph.assign %a, %n{i} : !t"
        for i in range(300)
    ]
    planned = lowered(parse("\n".join(steps)))
    assert copies(planned) == 0
    assert not any(isinstance(op, memref.ViewOp) for op in planned.walk())


CHAIN = """
  %0 = tgraph.constant<0 : i32> : tensor<i32>
  %1 = tgraph.constant<1 : i32> : tensor<i32>
  %p = tgraph.slice %x {start_indices = array<i64: 0>, limit_indices = array<i64: 2>,
    strides = array<i64: 1>} : (!t) -> tensor<2xf32>
  %m = tgraph.negate %p : tensor<2xf32>
  %u = tgraph.dynamic_update_slice %x, %m, %0 : (!t, tensor<2xf32>, tensor<i32>) -> !t
  %q = tgraph.slice %u {start_indices = array<i64: 1>, limit_indices = array<i64: 3>,
    strides = array<i64: 1>} : (!t) -> tensor<2xf32>
  %n = tgraph.exponential %q : tensor<2xf32>
  %w = tgraph.dynamic_update_slice %u, %n, %1 : (!t, tensor<2xf32>, tensor<i32>) -> !t
  tgraph.assign %a, %w : !t
"""
"""Two consecutive updates of overlapping parts."""


def test_chain_of_updates_is_computed_in_the_variable() -> None:
    module = parse(CHAIN)
    planned = lowered(module)
    assert_same(Executable(planned)(*arrays()), run_reference(module, arrays()))
    assert "dynamic_update_slice" not in str(planned)
    assert "memref.alloc" not in str(planned)


@pytest.mark.parametrize("late", ["%u", "%x"])
def test_chain_of_updates_is_stored_if_it_is_read_later(late: str) -> None:
    module = parse(f"{CHAIN} tgraph.assign %b, {late} : !t")
    planned = lowered(module)
    assert_same(Executable(planned)(*arrays()), run_reference(module, arrays()))
    assert "dynamic_update_slice" in str(planned)
