"""`tgraph-hoist-invariants`: computes before a loop what is the same in each iteration.

    %0:2 = tgraph.while %c0, %p, %a : ... {...} do {
    ^bb0(%vi: ..., %vp: ..., %m: tensor<256x256xf32>):
      %s = tgraph.multiply %m, %d : tensor<256x256xf32>      // %m and %d never change
      %q = tgraph.dot_general %s, %p0 ...

    %s = tgraph.multiply %a, %d : tensor<256x256xf32>
    %0:2 = tgraph.while %c0, %p, %s : ... {...} do {
    ^bb0(%vi: ..., %vp: ..., %m: tensor<256x256xf32>):
      %q = tgraph.dot_general %m, %p0 ...

This is loop-invariant code motion (Aho, Sethi and Ullman, "Compilers: Principles,
Techniques, and Tools", 1986, section 10.7). What is computed before a loop lives as
long as the loop runs. So the pass moves operations only where arenas grow by next to
nothing: all invariant operations of all loops if that is so, otherwise those that take
longest, one by one. They have to take a hundredth of their loop's time. A value in a
group with others that do change is computed on the way to these, and stays there. From
the innermost loop outwards, operations leave as many loops as they can.

A loop that runs no iteration would not have computed them; operations on tensors have
no other effects.

Needs: level 1, in the order in which the program will run: last before
tgraph-bufferize.
Leaves: level 1.
Does not: move what is computed straight into a variable, a part of one, a concatenation
or what an inner loop carries, as it would have to be copied there; or inner loops and
branches, or anything out of conditions and branches.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

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
from ...dialects.tgraph.indexing import DynamicUpdateSliceOp
from ...dialects.tgraph.structure import AssignOp, RegionOp, WhileOp
from ...dialects.tgraph.unused import without_unused
from ..optional import OptionalPass
from ..options import Placing
from .shared.fitting import PlannedBytes
from .shared.streams import has_streams

MOST = 4
"""Operations that are tried one by one, at most."""

WORTH = 0.01
"""Of a loop's time, what has to be saved."""


@dataclass(frozen=True)
class TGraphHoistInvariants(OptionalPass, Placing):
    """Computes before a loop what is the same in each iteration.

    max_growth: the share of its bytes that an arena may take more for it.
    """

    name = "tgraph-hoist-invariants"
    IDEMPOTENT = False  # with one operation outside, others may find room
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

        def has_moved(move: Callable[[FuncOp], int]) -> bool:
            """Whether the arenas have room for it; else the function stays as it is."""
            copy = func.clone()
            count = move(copy)
            peaks = planned.peaks(copy)
            if any(bytes > most.get(name, 0) for name, bytes in peaks.items()):
                return False
            func.detach_region(0)
            func.add_region(copy.detach_region(0))
            remark(f"operations computed before a loop: {count}", func, passed=True)
            return True

        if has_moved(_move_all):
            return
        refused = 0
        for _ in range(MOST):  # what moves takes along what it needs
            if refused >= len(_longest(func)):
                return
            if not has_moved(partial(_move_one, number=refused)):
                refused += 1


def _loops(func: FuncOp) -> Sequence[WhileOp]:
    """All loops, outer ones before those in them."""
    blocks = blocks_within(func.body.block)
    return [op for block in blocks for op in block.ops if isinstance(op, WhileOp)]


def _longest(func: FuncOp) -> Sequence[tuple[WhileOp, TensorOp]]:
    """The operations that can be moved, those first that take longest in all."""
    found = [(loop, op) for loop in _loops(func) for op in _movable(loop)]
    return sorted(found, key=lambda each: -time(each[1]) * repetitions(each[1]))


def _move_all(func: FuncOp) -> int:
    """From the innermost loop outwards; how many operations."""
    count = 0
    for loop in reversed(_loops(func)):
        if movable := _movable(loop):
            _move(loop, movable)
            count += len(movable)
    return count


def _move_one(func: FuncOp, number: int) -> int:
    loop, op = _longest(func)[number]
    _move(loop, [op])
    return 1


def _movable(loop: WhileOp) -> Sequence[TensorOp]:
    """The operations that take time in each iteration and need not, in order; none if
    all of them together take too little."""
    found = [
        op
        for op in _invariants(loop)
        if time(op) and not any(_is_placed(use) for r in op.results for use in r.uses)
    ]
    saved = (iterations(loop) - 1) * sum(map(time, found))
    return found if found and saved >= max(WORTH * time(loop), 1) else ()


def _invariants(loop: WhileOp) -> Sequence[TensorOp]:
    """The operations of a loop's body that compute the same in each iteration."""
    arguments = loop.body.block.args
    known: set[SSAValue] = {
        a for a in arguments if not isinstance(a.type, VariableType)
    }
    found: list[TensorOp] = []
    for op in loop.body.block.ops:
        if not isinstance(op, TensorOp) or isinstance(op, RegionOp) or op.outs:
            continue
        if not is_in_place(op) and known.issuperset(op.operands):
            known.update(op.results)
            found.append(op)
    return found


def _is_placed(use: Use) -> bool:
    """Whether what an operation reads is computed straight into something else."""
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
    """Computes before a loop what these operations do, and what they need for it."""
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
