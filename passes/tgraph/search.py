"""`tgraph-search`: searches fusion, order, tiles, and recomputation together.

These choices depend on one another. A group may keep a value live for too long in one
order and not in another, and a tiled value need not be recomputed. The search starts
with the default sequence: tgraph-eliminate-assigns, tgraph-fuse,
tgraph-sink-concatenations, tgraph-schedule, tgraph-tile, tgraph-pack-masks, and
tgraph-rematerialize. It then changes one choice at a time, and keeps every change that
takes fewer bytes, until no change helps (coordinate descent). It varies the last pass
of the sequence first. This is fastest, because the search reuses the output of the
earlier passes for the best version, and because recomputation saves the most bytes.
Tiles may be cut into tiles again, at most twice. The search gives up a version if it
becomes the same program as an earlier version before the same remaining passes. It
plans every other version on a copy, including placement, so the result never takes more
bytes than the default.

Without a time limit, the result is the same on every machine. With a limit, in seconds
of wall-clock time, the search abandons the current version when time is up, even in the
middle of a pass. It always completes the first version, which is that of effort=low.

Needs: level 1 with devices, like tgraph-fuse.
Leaves: level 1, like tgraph-rematerialize.
Does not: assign streams.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...analysis.flops import flops
from ...analysis.functions import tensor_functions
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import TILES
from ...dialects.tgraph.differentiation import RECOMPUTED
from ...support.remarks import PROGRESS
from ..options import Packing, Placing, TimeLimit
from .eliminate_assigns import TGraphEliminateAssigns
from .fuse import TGraphFuse
from .pack_masks import TGraphPackMasks
from .rematerialize import TGraphRematerialize
from .schedule import TGraphSchedule
from .shared.candidates import Candidate, Candidates
from .sink_concatenations import TGraphSinkConcatenations
from .tile import TGraphTile
from .tiling.loop_search import IN_CACHE

LONG_EFFORT = 10.0
"""The search effort of recomputation that may take more time than the default."""

NESTED = ("tiles", "tiles in tiles")
"""The tiles that may be cut into tiles again."""

SHARES = (0.2, 0.1, 0.05)
"""The shares of the time that recomputation may add, one for each alternative."""


@dataclass(frozen=True)
class TGraphSearch(ModulePass, TimeLimit, Placing):
    """Searches for the version of a program that takes the fewest bytes.

    recompute: how many FLOPs may be recomputed, as a fraction of the program's, not
        counting loops over tiles.
    tiles: whether to compute chains of operations in tiles.
    """

    name = "tgraph-search"

    recompute: float = 0.1
    tiles: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recompute < 0:
            raise ValueError(f"recompute is {self.recompute}, expected 0 or more")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [func for func, _ in tensor_functions(op)]
        if not functions:
            return
        candidates = Candidates(ctx, self, time_limit=self.time_limit)
        search = _Search(candidates, op, self._choices(), self.recompute)
        first = search.best
        search.descend()
        best = search.best
        total, again = flops(best.module), _computed_again(best.module)
        best.adopt(op)
        remark(
            f"of {candidates.made} candidates, {best.what} takes the fewest "
            f"bytes: {best.bytes} instead of {first.bytes}; {again} of {total} "
            "FLOPs are recomputed",
            functions[0],
        )

    def _choices(self) -> Mapping[str, Sequence[ModulePass]]:
        """The alternatives of each choice, with the default first."""
        placing = self.shared(Placing)
        choices: dict[str, Sequence[ModulePass]] = {
            "assigns": (TGraphEliminateAssigns(),),
            "groups": (
                TGraphFuse(),
                TGraphFuse("nnvm"),
                TGraphFuse("none"),
                TGraphFuse(keep_peak=False),
            ),
            "concatenations": (TGraphSinkConcatenations(),),
            "order": tuple(
                TGraphSchedule(effort, **self.shared(Packing))
                for effort in (0.2, 2.0, 10.0)
            ),
        }
        if self.tiles:
            usual, *more = (
                TGraphTile(tiles, slowdown, bytes, **placing)
                for tiles, slowdown, bytes in (
                    (8, 0.03, IN_CACHE),
                    (32, 0.05, IN_CACHE),
                    (32, 0.1, IN_CACHE),
                    (32, 0.1, IN_CACHE // 8),
                )
            )
            choices["tiling"] = (usual, *more)
            none = TGraphTile(1, tile_bytes=0, **placing)
            choices |= {f"tiles in {outer}": (none, *more[1:]) for outer in NESTED}
        choices["masks"] = (TGraphPackMasks(**placing),)
        choices["recomputation"] = (
            TGraphRematerialize(**placing),
            *(
                TGraphRematerialize(max_slowdown=share, effort=LONG_EFFORT, **placing)
                for share in SHARES
                if self.recompute
            ),
        )
        return choices


def _computed_again(module: ModuleOp) -> int:
    """The FLOPs of recomputed operations outside of tiles."""
    return sum(
        flops(op) for op in _outside_tiles(module) if RECOMPUTED in op.attributes
    )


def _outside_tiles(op: Operation) -> Iterator[Operation]:
    yield op
    if TILES not in op.attributes:
        for block in (block for region in op.regions for block in region.blocks):
            for inner in block.ops:
                yield from _outside_tiles(inner)


class _Search:
    """The best version so far, and the program before each of its passes."""

    def __init__(
        self,
        candidates: Candidates,
        given: ModuleOp,
        choices: Mapping[str, Sequence[ModulePass]],
        recompute: float,
    ):
        self.recompute = recompute
        self.candidates = candidates
        self.choices = choices
        self.chosen = {kind: passes[0] for kind, passes in choices.items()}
        self._ahead: Sequence[ModuleOp] = [given]
        self._seen: set[object] = set()
        self.best = self._first()

    def _first(self) -> Candidate:
        found, self._ahead = self._tried("the default", 0, list(self.chosen.values()))
        assert found is not None
        again = _computed_again(found.module)
        once = flops(found.module) - again
        self._most = max(again, int(self.recompute * once))
        return found

    def descend(self) -> None:
        """Varies one choice at a time until no change helps. The last choice comes
        first, as it shares the most work with the best version so far."""
        seen = {tuple(map(str, self.chosen.values()))}
        has_changed = True
        while has_changed:
            has_changed = False
            for at, (kind, passes) in reversed([*enumerate(self.choices.items())]):
                for other in passes:
                    chosen = {**self.chosen, kind: other}
                    key = tuple(map(str, chosen.values()))
                    if key in seen:
                        continue
                    seen.add(key)
                    rest = list(chosen.values())[at:]
                    found, ahead = self._tried(f"{other}", at, rest)
                    if found and self._is_better(found):
                        self.best, self.chosen = found, chosen
                        self._ahead = [*self._ahead[:at], *ahead]
                        has_changed = True

    def _is_better(self, found: Candidate) -> bool:
        return (
            found.bytes < self.best.bytes
            and _computed_again(found.module) <= self._most
        )

    def _tried(
        self, what: str, at: int, passes: Sequence[ModulePass]
    ) -> tuple[Candidate | None, Sequence[ModuleOp]]:
        """Runs `passes` on the best version as it is before pass `at`. Returns the
        candidate, or None if the search gives it up, and the program before each
        pass."""
        ahead: list[ModuleOp] = []
        start = self._ahead[at]
        if found := self.candidates.run(what, start, passes, ahead, self._seen):
            number = self.candidates.made
            text = "search: candidate %d, %s: %d bytes"
            PROGRESS.info(text, number, what, found.bytes)
        return found, ahead
