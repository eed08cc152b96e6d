"""`tgraph-hoist-invariants`: moves loop-invariant operations before their loop.

    %0:2 = tgraph.while %c0, %p, %a : ... {...} do {
    ^bb0(%vi: ..., %vp: ..., %m: tensor<256x256xf32>):
      %s = tgraph.multiply %m, %d : tensor<256x256xf32>      // %m and %d never change
      %q = tgraph.dot_general %s, %p0 ...

    %s = tgraph.multiply %a, %d : tensor<256x256xf32>
    %0:2 = tgraph.while %c0, %p, %s : ... {...} do {
    ^bb0(%vi: ..., %vp: ..., %m: tensor<256x256xf32>):
      %q = tgraph.dot_general %m, %p0 ...

This is loop-invariant code motion (Aho, Sethi and Ullman, "Compilers: Principles,
Techniques, and Tools", 1986, section 10.7). A value that is computed before a loop is
live as long as the loop runs. The pass therefore moves operations only if arenas grow
by at most `max-growth`: all invariant operations of all loops, or else as many as a
binary search finds room for, those that take the most time per byte first. In each
loop, they have to save a hundredth of the loop's time. An invariant operation in a
group stays there if the group also reads values that change. The pass goes from the
innermost loop outwards, so operations leave as many loops as they can.

If a loop runs no iteration, the operations run in vain, but they have no side effects.

Needs: level 1, in the order in which the program will run: last before
tgraph-bufferize.
Leaves: level 1.
Does not: move a value that is computed straight into a variable, a part of one, a
concatenation, or a value that an inner loop carries, because it would have to be copied
there; move inner loops and branches; or move operations out of conditions and branches.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.concatenations import is_in_place
from ...analysis.cost import repetitions, timing
from ...analysis.functions import blocks_within, erase_unused, tensor_functions
from ...analysis.loops import iterations
from ...analysis.scans import extended
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import TensorOp, VariableType, value_bytes
from ...dialects.tgraph.callbacks import may_repeat
from ...dialects.tgraph.indexing import DynamicUpdateSliceOp
from ...dialects.tgraph.structure import AssignOp, RegionOp, WhileOp
from ...dialects.tgraph.unused import without_unused
from ..optional import OptionalPass
from ..options import Placing
from .shared.fitting import PlannedBytes
from .shared.streams import has_streams

TRIES = 3
"""How many selections of operations the search tries."""

WORTH = 0.01
"""The share of a loop's time that has to be saved."""


@dataclass(frozen=True)
class TGraphHoistInvariants(OptionalPass, Placing):
    """Moves loop-invariant operations before their loop.

    max_growth: the share of its bytes by which an arena may grow.
    """

    name = "tgraph-hoist-invariants"
    IDEMPOTENT = False  # later, others may find room
    TOPIC = "loops"

    max_growth: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_growth < 0:
            raise ValueError(f"max-growth is {self.max_growth}, expected 0 or more")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        planned = PlannedBytes(self)
        for func, _ in tensor_functions(op):
            if not has_streams(func, "nothing is moved out of loops"):
                self._hoist(func, planned)

    def _hoist(self, func: FuncOp, planned: PlannedBytes) -> None:
        """Moves operations out of a function's loops."""
        ranked = _ranked(func)
        if not ranked:
            return
        peaks = planned.peaks(func)
        most = {name: (1 + self.max_growth) * bytes for name, bytes in peaks.items()}
        saved = list(accumulate((time for _, time in ranked), initial=0))
        best: FuncOp | None = None
        fitting, count = 0, len(ranked)
        too_many = count + 1
        for _ in range(TRIES):
            copy = _moved(func, [op for op, _ in ranked[:count]])
            peaks = planned.peaks(copy)
            if all(bytes <= most.get(name, 0) for name, bytes in peaks.items()):
                best, fitting = copy, count
            else:
                too_many = count
            if too_many - fitting == 1:
                break
            half = (saved[fitting] + saved[too_many - 1]) / 2
            count = bisect_left(saved, half, fitting + 1, too_many - 1)
        if best:
            func.detach_region(0)
            func.add_region(best.detach_region(0))
            message = f"operations computed before a loop: {fitting}"
            remark(message, func, passed=True)


def _loops(func: FuncOp) -> Sequence[WhileOp]:
    """All loops, outer loops before the loops in them."""
    blocks = blocks_within(func.body.block)
    return [op for block in blocks for op in block.ops if isinstance(op, WhileOp)]


def _ranked(func: FuncOp) -> Sequence[tuple[TensorOp, int]]:
    """The operations that can be moved, and the nanoseconds that each takes in all
    iterations, by decreasing time per byte of their results: the value per weight of a
    knapsack."""
    of = timing()
    found = [op for loop in _loops(func) for op in _movable(loop, of)]
    timed = [(op, of(op) * repetitions(op)) for op in found]
    return sorted(
        timed, key=lambda each: -each[1] / max(sum(map(value_bytes, each[0].res)), 1)
    )


def _moved(func: FuncOp, ops: Sequence[TensorOp]) -> FuncOp:
    """A copy of a function with `ops` moved out of as many loops as possible, from the
    innermost loop outwards."""
    copies: dict[SSAValue, SSAValue] = {}
    copy = func.clone(copies)
    chosen = {copies[op.results[0]] for op in ops}
    of = timing()
    for loop in reversed(_loops(copy)):
        if chosen.isdisjoint(r for op in loop.body.block.ops for r in op.results):
            continue
        if movable := [op for op in _movable(loop, of) if op.results[0] in chosen]:
            chosen.update(_move(loop, movable))
    return copy


def _movable(loop: WhileOp, of: Callable[[Operation], int]) -> Sequence[TensorOp]:
    """The invariant operations that take time and may move, in program order; none if
    moving all of them saves too little.

    of: the nanoseconds that an operation takes.
    """
    found = [
        op
        for op in _invariants(loop)
        if of(op) and not any(_is_placed(use) for r in op.results for use in r.uses)
    ]
    saved = (iterations(loop) - 1) * sum(map(of, found))
    return found if found and saved >= max(WORTH * of(loop), 1) else ()


def _invariants(loop: WhileOp) -> Sequence[TensorOp]:
    """The operations of a loop's body whose results are the same in each iteration."""
    arguments = loop.body.block.args
    known: set[SSAValue] = {
        a for a in arguments if not isinstance(a.type, VariableType)
    }
    found: list[TensorOp] = []
    for op in loop.body.block.ops:
        if not isinstance(op, TensorOp) or isinstance(op, RegionOp) or op.outs:
            continue
        if not may_repeat(op):  # it may not run in vain, either
            continue
        if not is_in_place(op) and known.issuperset(op.operands):
            known.update(op.results)
            found.append(op)
    return found


def _is_placed(use: Use) -> bool:
    """Whether the used value is computed straight into a variable, a part of a tensor,
    a value that a loop carries, or a concatenation."""
    match op := use.operation:
        case AssignOp():
            return True
        case DynamicUpdateSliceOp():
            return use.index == 1
        case WhileOp():
            return use.index < len(op.res)
        case _:
            return is_in_place(op)


def _move(loop: WhileOp, ops: Sequence[TensorOp]) -> Sequence[SSAValue]:
    """Moves `ops`, and the operations that they need, before `loop`. Returns their
    first results."""
    invariants = _invariants(loop)
    needed = set(ops)
    for op in reversed(invariants):
        if op in needed:
            needed.update(v.owner for v in op.operands if isinstance(v.owner, TensorOp))
    outside: dict[SSAValue, SSAValue] = dict(
        zip(loop.body.block.args, loop.inputs, strict=True)
    )
    for op in filter(needed.__contains__, invariants):
        Rewriter.insert_op(op.clone(outside), InsertPoint.before(loop))
    results = [result for op in ops for result in op.results]
    loop = extended(loop, [], [outside[result] for result in results])
    arguments = loop.body.block.args[-len(results) :]
    for result, argument in zip(results, arguments, strict=True):
        argument.name_hint = result.name_hint
        result.replace_all_uses_with(argument)
    erase_unused(loop.body.block)
    without_unused(loop)
    return [outside[op.results[0]] for op in ops]
