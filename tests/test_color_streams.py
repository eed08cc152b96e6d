"""Tests that programs on streams compute the same values in every order that the
streams permit.

A test shuffles the steps of a level 3 program, so that each step still follows earlier
steps of its stream and the steps that it waits for. In this order and in the planned
arenas, the program must compute the values of the original program.
"""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import Program, programs
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.parser import Parser
from xdsl.passes import ModulePass

import tensorplan
from tensorplan.analysis.cost import time
from tensorplan.analysis.dependencies import dependencies, queue_of, runs
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.base import DEVICE, STREAM, TensorOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.passes import driver
from tensorplan.passes.plan import memory as plan_memory
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.tgraph.bufferize import TGraphBufferize
from tensorplan.passes.tgraph.color_streams import TGraphColorStreams
from tensorplan.passes.tgraph.eliminate_assigns import TGraphEliminateAssigns
from tensorplan.passes.tgraph.fuse import TGraphFuse
from tensorplan.passes.tgraph.place_devices import TGraphPlaceDevices
from tensorplan.runtime.executor import Executable

MODES = ["critical-path", "nnvm"]


def run(module: ModuleOp, *passes: ModulePass) -> ModuleOp:
    """Runs `passes` on a copy of `module` and returns it."""
    copy = module.clone()
    driver.run(tensorplan.context(), copy, passes)
    return copy


def on_streams(
    module: ModuleOp,
    streams: int,
    mode: str = "critical-path",
    fuse: bool = False,
    reuse_outputs: bool = True,
) -> ModuleOp:
    return run(
        module,
        TGraphPlaceDevices(default="cpu:0"),
        *([TGraphFuse()] if fuse else []),  # also erases unused operations
        TGraphEliminateAssigns(),
        TGraphColorStreams(streams, mode),
        TGraphBufferize(),
        PlanMemory(reuse_outputs=reuse_outputs),
    )


def inputs(module: ModuleOp) -> list[np.ndarray]:
    return [
        (np.arange(int(np.prod(i.shape)), dtype=i.dtype) % 7 - 3).reshape(i.shape)
        for i in signature(module).inputs
    ]


def block_of(module: ModuleOp) -> Block:
    (func,) = (op for op in module.ops if isinstance(op, FuncOp))
    return func.body.block


def directly_before(ops: Sequence[Operation]) -> list[set[int]]:
    """For each operation, its direct predecessors."""
    before = [set(waits) for waits in dependencies(ops)]
    latest: dict[object, int] = {}
    for index, op in enumerate(ops):
        if runs(op):
            queue = queue_of(op)
            if queue in latest:
                before[index].add(latest[queue])
            latest[queue] = index
    return before


def shuffle(module: ModuleOp, random: Random) -> None:
    """Reorders the operations at random, as the streams permit."""
    block = block_of(module)
    ops = list(block.ops)
    end = [op for op in ops if not op.results and not runs(op)]  # dealloc, return
    body = [op for op in ops if op not in end]
    before = directly_before(body)
    done: set[int] = set()
    while len(done) < len(body):
        ready = [i for i in range(len(body)) if i not in done and before[i] <= done]
        chosen = random.choice(ready)
        done.add(chosen)
        body[chosen].detach()
        block.insert_op_before(body[chosen], end[0])


def has_right_values(planned: ModuleOp, original: ModuleOp) -> bool:
    """Whether the values equal those of the original up to the order of sums."""
    want = run_reference(original, inputs(original))
    got = Executable(planned)(*inputs(original))
    return all(
        np.allclose(a, b, rtol=1e-4, equal_nan=True)
        for a, b in zip(got, want, strict=True)
    )


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
@given(programs(), st.sampled_from([1, 2, 4]), st.booleans(), st.integers(0, 2**32))
def test_every_permitted_order_gives_the_same_values(
    mode: str, program: Program, streams: int, fuse: bool, seed: int
) -> None:
    random = Random(seed)
    spread(program.module, random)
    planned = on_streams(program.module, streams, mode, fuse)
    shuffle(planned, random)
    driver.check(planned)
    assert has_right_values(planned, program.module)


def spread(module: ModuleOp, random: Random) -> None:
    """Places every operation on one of two devices."""
    for op in block_of(module).ops:
        if isinstance(op, TensorOp):
            op.attributes[DEVICE] = StringAttr(random.choice(["cpu:0", "cpu:1"]))


# Two chains of four products of 1 KiB each, in alternation.
BRANCHES = """
!t = tensor<16x16xf32, "cpu:0">
func.func @main(%x0: !t, %y0: !t) -> !t {
  BODY
  %r = tgraph.add %x4, %y4 : !t
  func.return %r : !t
}
"""
PRODUCT = (
    "%{b}{i} = tgraph.dot_general %{b}{j}, %{b}0 {{lhs_contracting_dimensions = "
    "array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>}} : !t"
)
BODY = "\n".join(PRODUCT.format(b=b, i=i + 1, j=i) for i in range(4) for b in "xy")


def branches() -> ModuleOp:
    text = BRANCHES.replace("BODY", BODY)
    return Parser(tensorplan.context(), text).parse_module()


@pytest.mark.parametrize("mode", MODES)
def test_each_branch_has_its_own_stream_and_memory(mode: str) -> None:
    colored = run(branches(), TGraphColorStreams(2, mode))
    streams: dict[str, set[str]] = {}
    for op in block_of(colored).ops:
        hint = op.results[0].name_hint if op.results else None
        if hint and hint != "r":
            streams.setdefault(hint[0], set()).add(str(op.attributes[STREAM]))
    assert sorted(streams) == ["x", "y"]
    assert sorted(map(sorted, streams.values())) == [["0 : i32"], ["1 : i32"]]
    # Each chain needs two buffers at a time; in program order both need three.
    # One of these may be the result's memory, until the result is written.
    for number, reuse_outputs, count in ((2, False, 4), (1, False, 3), (1, True, 2)):
        planned = on_streams(branches(), number, mode, reuse_outputs=reuse_outputs)
        (pool,) = tensorplan.report(planned)["pools"]
        assert pool["bytes"] == count * 16 * 16 * 4


def test_plan_for_one_stream_is_refused_for_two_streams() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_memory, "STREAM", "none has it")
        with pytest.raises(LocatedError, match="no dependency orders"):
            on_streams(branches(), 2)
        with pytest.raises(LocatedError, match="no dependency orders"):
            on_streams(branches(), 2, reuse_outputs=False)
        on_streams(branches(), 1)
        patch.setattr(plan_memory, "check_plan", lambda module, **_: None)
        wrong = on_streams(branches(), 2)
    right = on_streams(branches(), 2)
    for planned in (wrong, right):
        assert has_right_values(planned, branches())
    seen: set[bool] = set()
    for number in range(20):
        shuffle(wrong, Random(number))
        seen.add(has_right_values(wrong, branches()))
        shuffle(right, Random(number))
        assert has_right_values(right, branches())
    assert False in seen


def makespan(module: ModuleOp) -> int:
    """The end of the last operation if each starts as early as its stream permits."""
    ops = list(block_of(module).ops)
    ends: list[int] = []
    for op, before in zip(ops, directly_before(ops), strict=True):
        ends.append(time(op) + max((ends[i] for i in before), default=0))
    return max(ends)


@pytest.mark.thorough
@given(programs(max_ops=40), st.sampled_from(MODES))
def test_more_streams_take_no_longer(program: Program, mode: str) -> None:
    spans = [
        makespan(run(program.module, TGraphColorStreams(streams, mode)))
        for streams in (1, 2, 4)
    ]
    assert spans[1] <= spans[0]
    assert spans[2] <= spans[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"streams": 0}, "streams is 0, expected 1 or more"),
        ({"mode": "x"}, "mode is 'x', expected one of critical-path, nnvm"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TGraphColorStreams(**options)  # pyright: ignore
