"""`tgraph-search`: fusion, order, tiles and recomputation are chosen together.

What each of them should do depends on the others: a group may keep a value too long for
one order and not for another, and what is sliced need not be computed again. The search
starts with the default sequence, tgraph-eliminate-assigns, tgraph-fuse, tgraph-schedule
and tgraph-tile, and varies one choice at a time, keeping what takes fewer bytes, until
none helps (coordinate descent). From there, tgraph-rematerialize looks for the lowest
budget that it meets at a price. Each way is planned on a copy, placement and all, so
the outcome never takes more bytes than the default.

Without a time limit the outcome is the same on every machine. With one, in seconds on
the clock, a way is given up when the time is over, be it in the middle of a pass. The
first one, what effort=low does, is always gone to its end.

Needs: level 1 with devices, as tgraph-fuse. Leaves: level 1, as tgraph-rematerialize.
Does not: place operations on streams.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.cost import flops
from ...analysis.functions import tensor_functions
from ...dialects.diagnostics import remark
from ...remarks import PROGRESS
from ..options import Placing, TimeLimit
from .eliminate_assigns import TGraphEliminateAssigns
from .fuse import TGraphFuse
from .rematerialize import TGraphRematerialize
from .schedule import TGraphSchedule
from .shared.candidates import Candidate, Candidates
from .tile import TGraphTile

BUDGETS = 5
"""That tgraph-rematerialize is given, each between one missed and one met."""


@dataclass(frozen=True)
class TGraphSearch(ModulePass, TimeLimit, Placing):
    """Searches for the lowering of a program that takes the fewest bytes.

    recompute: how many FLOPs may be computed again, as a part of the program's.
    tiles: whether chains of operations may be computed in tiles.
    """

    name = "tgraph-search"

    recompute: float = 0.1
    tiles: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recompute < 0:
            raise ValueError(f"recompute is {self.recompute}, expected 0 or more")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not any(True for _ in tensor_functions(op)):
            return
        candidates = Candidates(ctx, self, time_limit=self.time_limit)
        search = _Search(candidates, op, self._choices())
        first = search.best
        search.descend()
        before = flops(search.best.module)
        if self.recompute:
            search.recompute(int(before * (1 + self.recompute)))
        best = search.best
        again = flops(best.module) - before
        best.adopt(op)
        remark(
            f"of {len(candidates.made)} candidates, {best.what} takes the fewest "
            f"bytes: {best.bytes} after {first.bytes}; {again} of {before + again} "
            "FLOPs are computed again",
            next(iter(tensor_functions(op)))[0],
        )

    def _choices(self) -> Mapping[str, Sequence[ModulePass]]:
        """What there is to choose from; first in each, the default."""
        placing = self.shared(Placing)
        choices: dict[str, Sequence[ModulePass]] = {
            "assigns": (TGraphEliminateAssigns(),),
            "groups": (
                TGraphFuse(),
                TGraphFuse("nnvm"),
                TGraphFuse("none"),
                TGraphFuse(keep_peak=False),
            ),
            "order": tuple(
                TGraphSchedule(effort, alignment=self.alignment)
                for effort in (0.2, 2.0, 10.0)
            ),
        }
        if self.tiles:
            choices["tiling"] = tuple(
                TGraphTile(tiles, slowdown, **placing)
                for tiles, slowdown in ((8, 0.03), (32, 0.05), (32, 0.1))
            )
        return choices


class _Search:
    def __init__(
        self,
        candidates: Candidates,
        given: ModuleOp,
        choices: Mapping[str, Sequence[ModulePass]],
    ):
        self.candidates = candidates
        self.given = given
        self.choices = choices
        self.chosen = {kind: passes[0] for kind, passes in choices.items()}
        first = self._try("the default", given, list(self.chosen.values()))
        assert first is not None
        self.best = first

    def descend(self) -> None:
        """Varies one choice at a time, as long as that helps."""
        seen = {tuple(map(str, self.chosen.values()))}
        has_changed = True
        while has_changed:
            has_changed = False
            for kind, passes in self.choices.items():
                for other in passes:
                    chosen = {**self.chosen, kind: other}
                    key = tuple(map(str, chosen.values()))
                    if key in seen:
                        continue
                    seen.add(key)
                    found = self._try(f"{other}", self.given, list(chosen.values()))
                    if found and found.bytes < self.best.bytes:
                        self.best, self.chosen = found, chosen
                        has_changed = True

    def recompute(self, most: int) -> None:
        """Lowers the best by computing values again, up to so many FLOPs in all."""
        start = self.best
        low, high = 0, start.bytes
        for _ in range(BUDGETS):
            budget = (low + high) // 2
            if not budget:  # nothing is stored
                return
            placing = self.candidates.placing.shared(Placing)
            again = TGraphRematerialize(budget, **placing)
            what = f"recomputation after {start.what}"
            found = self._try(what, start.module, [again])
            if found is None:
                return
            if found.bytes < self.best.bytes and flops(found.module) <= most:
                self.best, high = found, min(budget, found.bytes)
            else:
                low = budget

    def _try(
        self, what: str, start: ModuleOp, passes: Sequence[ModulePass]
    ) -> Candidate | None:
        """A candidate, if there is time for it."""
        if found := self.candidates.run(what, start, passes):
            number = len(self.candidates.made)
            text = "search: candidate %d, %s: %d bytes"
            PROGRESS.info(text, number, what, found.bytes)
        return found
