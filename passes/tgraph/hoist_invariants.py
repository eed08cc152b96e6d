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
by at most `max-growth`: all invariant operations of all loops, or else the few that
take longest, one by one. In each loop, they have to save a hundredth of the loop's
time. An invariant operation in a group stays there if the group also reads values that
change. The pass goes from the innermost loop outwards, so operations leave as many
loops as they can.

If a loop runs no iteration, the operations run in vain, but they have no side effects.

Needs: level 1, in the order in which the program will run: last before
tgraph-bufferize.
Leaves: level 1.
Does not: move a value that is computed straight into a variable, a part of one, a
concatenation, or a value that an inner loop carries, because it would have to be copied
there; move inner loops and branches; or move operations out of conditions and branches.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.concatenations import is_in_place
from ...analysis.cost import repetitions, time
from ...analysis.functions import blocks_within, erase_unused, tensor_functions
from ...analysis.loops import iterations
from ...analysis.scans import extended
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import TensorOp, VariableType
from ...dialects.tgraph.callbacks import may_repeat
from ...dialects.tgraph.indexing import DynamicUpdateSliceOp
from ...dialects.tgraph.structure import AssignOp, RegionOp, WhileOp
from ...dialects.tgraph.unused import without_unused
from ..optional import OptionalPass
from ..options import Placing
from .shared.fitting import PlannedBytes
from .shared.streams import has_streams

MOST = 4
"""The largest number of operations to try one by one."""

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
        if not any(map(_movable, _loops(func))):
            return
        peaks = planned.peaks(func)
        most = {name: (1 + self.max_growth) * bytes for name, bytes in peaks.items()}

        def try_move(op: TensorOp | None = None) -> bool:
            """Moves an operation, or all that can be moved, if the arenas have room.
            Returns whether they have."""
            copies: dict[SSAValue, SSAValue] = {}
            copy = func.clone(copies)
            if op is None:
                count = _move_all(copy)
            else:
                count = 1
                _move_alone(copies[op.results[0]])
            peaks = planned.peaks(copy)
            if any(bytes > most.get(name, 0) for name, bytes in peaks.items()):
                return False
            func.detach_region(0)
            func.add_region(copy.detach_region(0))
            remark(f"operations computed before a loop: {count}", func, passed=True)
            return True

        if try_move():
            return
        longest, refused = _longest(func), 0
        for _ in range(MOST):  # an operation takes those that it needs along
            if refused >= len(longest):
                return
            if try_move(longest[refused]):
                longest = _longest(func)
            else:
                refused += 1


def _loops(func: FuncOp) -> Sequence[WhileOp]:
    """All loops, outer loops before the loops in them."""
    blocks = blocks_within(func.body.block)
    return [op for block in blocks for op in block.ops if isinstance(op, WhileOp)]


def _longest(func: FuncOp) -> Sequence[TensorOp]:
    """The operations that can be moved, by decreasing total time."""
    found = [op for loop in _loops(func) for op in _movable(loop)]
    return sorted(found, key=lambda op: -time(op) * repetitions(op))


def _move_all(func: FuncOp) -> int:
    """Moves all operations, from the innermost loop outwards. Returns their number."""
    count = 0
    for loop in reversed(_loops(func)):
        if movable := _movable(loop):
            _move(loop, movable)
            count += len(movable)
    return count


def _move_alone(value: SSAValue) -> None:
    """Moves the operation of a value out of the loop whose body it is in."""
    op = value.owner
    assert isinstance(op, TensorOp)
    loop = op.parent_op()
    assert isinstance(loop, WhileOp)
    _move(loop, [op])


def _movable(loop: WhileOp) -> Sequence[TensorOp]:
    """The invariant operations that take time and may move, in program order; none if
    moving all of them saves too little."""
    found = [
        op
        for op in _invariants(loop)
        if time(op) and not any(_is_placed(use) for r in op.results for use in r.uses)
    ]
    saved = (iterations(loop) - 1) * sum(map(time, found))
    return found if found and saved >= max(WORTH * time(loop), 1) else ()


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


def _move(loop: WhileOp, ops: Sequence[TensorOp]) -> None:
    """Moves `ops`, and the operations that they need, before `loop`."""
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
