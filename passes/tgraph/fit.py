"""`tgraph-fit`: lowers the peak, what costs the least first, until a budget is met.

It begins as the default sequence does, with tgraph-eliminate-assigns, tgraph-fuse,
tgraph-schedule and tgraph-tile. If that is not enough, it tries in this order:

 * a longer search for an order, which costs nothing at run time;
 * other groups: NNVM's, or none, where a group keeps what it reads for too long;
 * more tiles, and slower ones, of chains with a wide middle, then loops over tiles;
 * tgraph-rematerialize: values are computed again rather than kept; or, with a device
   for that, tgraph-offload: values are there in between. If both are enough, that which
   takes less time, estimated from types (analysis/cost.py);
 * both.

The last ones go on from the best of the others. Each is planned on a copy of the
program, and what fits first is taken; a remark says what each of them reached, and how
much longer it takes.

Needs: level 1 with devices, as tgraph-fuse. Leaves: level 1, as tgraph-offload. Does
not: fail where nothing fits: then it leaves what takes the fewest bytes, so that
plan-budget can say what is in the way; or place operations on streams.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.cost import duration
from ...analysis.functions import tensor_functions
from ...dialects.diagnostics import remark
from ..options import Budget, Placing, TimeLimit, check_offload
from .eliminate_assigns import TGraphEliminateAssigns
from .fuse import TGraphFuse
from .offload import TGraphOffload
from .rematerialize import TGraphRematerialize
from .schedule import TGraphSchedule
from .shared.candidates import Candidate, Candidates
from .tile import TGraphTile
from .tiling.loop_search import IN_CACHE

LONGER = 1.0
"""The effort of a longer search for an order."""

MOST_TILES, SLOWDOWN = 32, 0.1
"""Of more tiles."""

A_TILE = 4
"""Of the budget, what a tile in a loop may need: a fourth."""

LITTLE = 0.001
"""A part of the time that is not worth to be told."""


@dataclass(frozen=True)
class TGraphFit(ModulePass, Budget, TimeLimit, Placing):
    """Lowers the peak of live bytes until the arenas fit a budget.

    effort: of tgraph-schedule.
    tiles: whether chains of operations may be computed in tiles.
    device: whose values may be moved.
    offload: the device that they are moved to, whose arena has no limit; without it,
        nothing is moved.
    """

    name = "tgraph-fit"

    effort: float = 0.2
    tiles: bool = True
    device: str = "cpu:0"
    offload: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.offload:
            check_offload(self.device, self.offload)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not any(True for _ in tensor_functions(op)):
            return
        candidates = Candidates(ctx, self, self.offload, self.time_limit)
        best = self._fitted(op, candidates)
        text = self._described(best, candidates.made)
        best.adopt(op)
        if len(candidates.made) > 1:
            remark(text, next(tensor_functions(op))[0])

    def _fitted(self, given: ModuleOp, candidates: Candidates) -> Candidate:
        """What meets the budget at the least cost, or comes nearest to it."""
        budget = self.bytes_allowed
        placing = self.shared(Placing)
        for what, passes in self._cheap_changes(placing):
            found = candidates.run(what, given, passes)
            if found is None or found.bytes <= budget:
                return candidates.best
        best = candidates.best
        after = "" if best is candidates.made[0] else f" after {best.what}"
        again = TGraphRematerialize(budget, **placing)
        tried = [candidates.run(f"recomputation{after}", best.module, [again])]
        if self.offload:
            move = TGraphOffload(budget, self.device, self.offload, **placing)
            what = f"copies to {self.offload}{after}"
            tried.append(candidates.run(what, best.module, [move]))
            fitting = [found for found in tried if found and found.bytes <= budget]
            if fitting:
                return min(fitting, key=lambda candidate: duration(candidate.module))
            what = f"recomputation and {what}"
            candidates.run(what, best.module, [again, move])
        return candidates.best

    def _cheap_changes(
        self, placing: Mapping[str, Any]
    ) -> Iterator[tuple[str, Sequence[ModulePass]]]:
        """What can be done at little cost: what costs the least comes first."""
        fuse, assigns = TGraphFuse(), TGraphEliminateAssigns()
        order = TGraphSchedule(self.effort, alignment=self.alignment)
        tiling: list[ModulePass] = []
        if self.tiles:
            tiling = [TGraphTile(**placing)]
        yield "fusion and order", [assigns, fuse, order, *tiling]
        if self.effort < LONGER:
            longer = TGraphSchedule(LONGER, alignment=self.alignment)
            yield "a longer search", [assigns, fuse, longer, *tiling]
        for mode, what in (("nnvm", "smaller groups"), ("none", "no groups")):
            yield what, [assigns, TGraphFuse(mode), order, *tiling]
        if self.tiles:
            more = TGraphTile(MOST_TILES, SLOWDOWN, 0, **placing)
            yield "more tiles", [assigns, fuse, order, more]
            bytes = max(min(IN_CACHE, self.bytes_allowed // A_TILE), 1)
            loops = TGraphTile(MOST_TILES, SLOWDOWN, bytes, **placing)
            yield "loops over tiles", [assigns, fuse, order, loops]

    def _described(self, best: Candidate, tried: Sequence[Candidate]) -> str:
        """What each candidate has reached, and how much longer it takes."""
        budget = self.bytes_allowed
        usual = max(duration(tried[0].module), 1)

        def reached(candidate: Candidate) -> str:
            longer = duration(candidate.module) / usual - 1
            if longer < LITTLE:
                return f"{candidate.bytes}"
            return f"{candidate.bytes} ({longer:.1%} longer)"

        outcome = "meets" if best.bytes <= budget else "comes nearest to"
        others = [f"{a.what} {reached(a)}" for a in tried if a is not best]
        return (
            f"{best.what} {outcome} the budget of {budget} bytes, with "
            f"{reached(best)}; tried as well: {', '.join(others)}"
        )
