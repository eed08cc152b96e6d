"""Tests `plan-memory` on random programs with control flow, in a memory that records
writes.

A program is a tree of accesses, branches and loops. After planning, it runs on random
paths: each buffer writes a unique mark into its bytes of the arena, and each read of a
buffer must find the mark of its last write.
"""

from collections.abc import Iterator, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

import tensorplan
from tensorplan.analysis import liveness, overwriting, references
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.memory import destinations
from tensorplan.frontends.mlir_text import parse_module
from tensorplan.passes import driver
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.plan.placement import slots

TYPE = "memref<16xf32>"


def copy(source: str, target: str) -> str:
    return f'"memref.copy"({source}, {target}) : ({TYPE}, {TYPE}) -> ()'


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Random programs that write every buffer before they read it."""
    names = (f"%b{n}" for n in range(1000))

    def body(written: list[str], depth: int) -> Iterator[str]:
        written = list(written)
        for _ in range(draw(st.integers(1, 4))):
            kind = draw(st.sampled_from(("new", "new", "copy", "if", "for")))
            if kind == "new":
                name = next(names)
                yield f"{name} = memref.alloc() : {TYPE}"
                yield copy(draw(st.sampled_from(written)), name)
                written.append(name)
            elif kind == "copy":
                source = draw(st.sampled_from(written))
                yield copy(source, draw(st.sampled_from(["%out", *written[1:]])))
            elif kind == "if" and depth:
                yield "scf.if %c {"
                yield from body(written, depth - 1)
                yield "} else {"
                yield from body(written, depth - 1)
                yield "}"
            elif depth:
                name = f"%i{next(names)[1:]}"
                yield f"scf.for {name} = %zero to %n step %one {{"
                yield from body(written, depth - 1)
                yield "}"
        yield copy(written[-1], "%out")

    lines = "\n".join(body(["%in"], 3))
    return f"""func.func @f(%n: index, %c: i1, %in: {TYPE}, %out: {TYPE}) {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    {lines}
    func.return
    }}"""


def planned(text: str) -> ModuleOp:
    module = parse_module(text, "f.mlir", tensorplan.context())
    driver.run(tensorplan.context(), module, [PlanMemory()])
    return module


class Memory:
    """Runs a planned function with random branches and numbers of iterations."""

    def __init__(self, random: Random):
        self.random = random
        self.bytes: dict[int, object] = {}  # the mark in each byte of the arena
        self.marks: dict[SSAValue, object] = {}  # of last writes

    def run(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, scf.IfOp):
                self.run(self.random.choice(op.regions).block)
            elif isinstance(op, scf.ForOp):
                for _ in range(self.random.randrange(4)):
                    self.run(op.body.block)
            elif isinstance(op, memref.CopyOp):
                self.copy(op)

    def copy(self, op: memref.CopyOp) -> None:
        if (offset := offset_of(op.source)) is not None:
            found = {self.bytes.get(offset + n) for n in range(64)}
            assert found == {self.marks[op.source]}
        if (offset := offset_of(op.destination)) is not None:
            mark = self.marks[op.destination] = object()
            self.bytes.update((offset + n, mark) for n in range(64))


def offset_of(buffer: SSAValue) -> int | None:
    view = buffer.owner
    if not isinstance(view, memref.ViewOp):
        return None
    constant = view.byte_shift.owner
    assert isinstance(constant, arith.ConstantOp)
    assert isinstance(constant.value, IntegerAttr)
    return constant.value.value.data


def function_of(module: ModuleOp) -> FuncOp:
    op: Operation = next(iter(module.ops))
    assert isinstance(op, FuncOp)
    return op


@pytest.mark.thorough
@given(texts())
def test_no_buffer_loses_its_bytes(text: str) -> None:
    module = planned(text)
    allocs = [op for op in module.walk() if isinstance(op, memref.AllocOp)]
    assert len(allocs) <= 1
    for number in range(10):
        Memory(Random(number)).run(function_of(module).body.block)
    for pool in tensorplan.report(module)["pools"]:
        assert pool["lower_bound_bytes"] <= pool["bytes"] <= pool["unshared_bytes"]


@pytest.mark.thorough
@given(texts(), st.integers(0, 100))
def test_accepted_plans_run_correctly(text: str, chosen: int) -> None:
    """The planner's liveness is wrong: one range of one buffer ends a step early."""

    def wrong(*args: object) -> list[list[tuple[int, int]]]:
        live = liveness.live_steps(*args)  # pyright: ignore[reportArgumentType]
        ranges = live[chosen % len(live)]
        start, end = ranges[chosen % len(ranges)]
        ranges[chosen % len(ranges)] = start, max(start + 1, end - 1)
        return live

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots, "live_steps", wrong)
        try:
            module = planned(text)
        except LocatedError:
            return
    for number in range(10):
        Memory(Random(number)).run(function_of(module).body.block)


def test_shortened_live_range_is_refused() -> None:
    """Without the live range of %b in the loop, %x takes the bytes of %b there."""
    text = f"""func.func @f(%n: index, %c: i1, %in: {TYPE}, %out: {TYPE}) {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %b = memref.alloc() : {TYPE}
    {copy("%in", "%b")}
    scf.for %i = %zero to %n step %one {{
      {copy("%b", "%out")}
      %x = memref.alloc() : {TYPE}
      {copy("%in", "%x")}
      {copy("%x", "%out")}
    }}
    func.return
    }}"""

    def short(*args: object) -> list[list[tuple[int, int]]]:
        live = liveness.live_steps(*args)  # pyright: ignore[reportArgumentType]
        return [[(live[0][0][0], 6)], live[1]]

    planned(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots, "live_steps", short)
        with pytest.raises(LocatedError, match=r"uses buffer %b, whose bytes"):
            planned(text)


def replaced(*lines: str) -> str:
    """A loop in which %new replaces %old in each iteration."""
    body = "\n".join(lines)
    return f"""func.func @f(%n: index, %c: i1, %in: {TYPE}, %out: {TYPE}) {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %first = memref.alloc() : {TYPE}
    {copy("%in", "%first")}
    %last = scf.for %i = %zero to %n step %one iter_args(%old = %first) -> ({TYPE}) {{
      %new = memref.alloc() : {TYPE}
      {body}
      memref.dealloc %old : {TYPE}
      scf.yield %new : {TYPE}
    }}
    {copy("%last", "%out")}
    memref.dealloc %last : {TYPE}
    func.return
    }}"""


ADD = f"tgraph.add %old, %in outs(%new) : ({TYPE}, {TYPE}) -> {TYPE}"
REVERSE = f"tgraph.reverse %old outs(%new) {{dimensions = array<i64: 0>}} : {TYPE}"


def arena_of(module: ModuleOp) -> int:
    (alloc,) = [op for op in module.walk() if isinstance(op, memref.AllocOp)]
    return alloc.memref.type.get_shape()[0]


def test_carried_buffer_is_replaced_in_place() -> None:
    module = planned(replaced(ADD))
    assert arena_of(module) == 64
    (pool,) = tensorplan.report(module)["pools"]
    assert pool["lower_bound_bytes"] == 64
    assert arena_of(planned(replaced(ADD, copy("%old", "%out")))) == 128
    assert arena_of(planned(replaced(REVERSE))) == 128


def test_shared_slot_of_two_live_buffers_is_refused() -> None:
    """The planner is made to assume that no two buffers are live at once."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (slots, references):
            patch.setattr(module, "interfere", lambda *_: False)
        with pytest.raises(LocatedError, match=r"memref.copy uses buffer %first, who"):
            planned(replaced(ADD, copy("%old", "%out")))


def test_shared_slot_of_a_permuted_operand_is_refused() -> None:
    """The planner is made to assume that all operations are elementwise."""

    def every(op: Operation) -> Sequence[int]:
        return range(len(op.operands) - len(destinations(op)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overwriting, "overwritable", every)
        with pytest.raises(LocatedError, match=r"tgraph.reverse writes operand 1 over"):
            planned(replaced(REVERSE))
