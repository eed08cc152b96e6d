"""`tgraph-fit`: lowers peak memory at the least cost in time, until a budget is met.

The pass starts with a fast version: tgraph-eliminate-assigns, tgraph-fuse without
limits to the bytes that groups keep live, tgraph-sink-concatenations, and
tgraph-schedule. If the result exceeds the budget, the pass tries other versions of the
program:

 * groups that keep no more bytes live than the program without them;
 * the tiles of the default sequence;
 * masks as bits, and recomputing cheap values, as in the default sequence;
 * a longer search for an order, which costs nothing at run time;
 * other fusions: NNVM's, or none if a group keeps its operands live for too long;
 * more and slower tiles for chains with a wide middle, loops over tiles of several
   sizes, such as the budget, a half and a fourth of it, and as few loops or slices as
   meet the budget.

It drops every version that another one beats in both time and bytes. It then lowers
each remaining version further, as far as the budget requires:

 * by tgraph-rematerialize, which recomputes values;
 * by tgraph-tile, which computes chains in slices;
 * by tgraph-offload, which moves values to another device, if one is given, or by
   recomputation and moves together, if neither is enough.

The pass plans each version on a copy of the program. Of the versions that fit, it keeps
the fastest, as estimated from types (analysis/cost.py). A remark reports the bytes and
the slowdown of each version.

The versions that the pass tries depend on the budget, so another budget may lead to
fewer bytes. The fewest bytes that it can reach do not: the pass searches for them with
a budget of one byte, then with budgets just below the fewest bytes so far, until it
misses one. It meets every budget of at least these bytes, and no other.

Needs: level 1 with devices, like tgraph-fuse.
Leaves: level 1, like tgraph-offload.
Does not: fail if nothing fits, or assign streams. If nothing fits, the pass leaves the
version with the fewest bytes, and plan-budget reports which values are in the way. The
pass would meet these bytes as a budget.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from sys import maxsize

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.functions import tensor_functions
from ...dialects.diagnostics import remark
from ..options import Budget, Packing, Placing, TimeLimit, check_offload
from .eliminate_assigns import TGraphEliminateAssigns
from .fuse import TGraphFuse
from .offload import TGraphOffload
from .pack_masks import TGraphPackMasks
from .rematerialize import TGraphRematerialize
from .schedule import TGraphSchedule
from .shared.candidates import Candidate, Candidates, undominated
from .sink_concatenations import TGraphSinkConcatenations
from .tile import TGraphTile
from .tiling.loop_search import IN_CACHE

ORDERED = "fusion and order"
"""The candidate from which those with tiles start."""

LONG_EFFORT = 1.0
"""The effort of a longer search for an order."""

MORE, MANY = (32, 0.1), (128, 2.0)
"""Numbers of tiles, each with the share of the time that it may add."""

TILES = 1, 2, 4
"""Divisors of the budget, for the bytes that a tile in a loop may need."""

SMALLER = 8
"""The factor between tile sizes from `IN_CACHE` down to the smallest from `TILES`."""

MIN_SHOWN_SLOWDOWN = 0.001
"""The share of the time below which a slowdown is not reported."""


@dataclass(frozen=True)
class TGraphFit(ModulePass, Budget, TimeLimit, Placing):
    """Lowers the peak of live bytes until the arenas fit a budget.

    effort: the effort of tgraph-schedule.
    tiles: whether to compute chains of operations in tiles.
    device: the device whose values may be moved.
    offload: the device to move values to, whose arena is unlimited; if not given,
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
        functions = [func for func, _ in tensor_functions(op)]
        if not functions:
            return
        fitted = Lowerings(self, ctx, op).fitted(self.bytes_allowed)
        fitted.best.adopt(op)
        if len(fitted.tried) > 1:
            remark(fitted.described(self.bytes_allowed), functions[0])


@dataclass(frozen=True)
class Fitted:
    """The candidate that meets a budget in the least time, or comes closest to it, and
    all candidates, in the order in which they were tried."""

    best: Candidate
    tried: Sequence[Candidate]

    def described(self, budget: int) -> str:
        """Text with the bytes and the slowdown of each candidate."""
        usual = max(self.tried[0].time, 1)

        def reached(candidate: Candidate) -> str:
            longer = candidate.time / usual - 1
            if longer < MIN_SHOWN_SLOWDOWN:
                return f"{candidate.bytes}"
            return f"{candidate.bytes} (+{longer:.1%} estimated time)"

        outcome = "meets" if self.best.bytes <= budget else "comes closest to"
        fewest: dict[str, Candidate] = {}  # of those with the same name
        for candidate in self.tried:
            known = fewest.setdefault(candidate.what, candidate)
            if candidate.bytes < known.bytes:
                fewest[candidate.what] = candidate
        others = [
            f"{what} {reached(candidate)}"
            for what, candidate in fewest.items()
            if what != self.best.what
        ]
        return (
            f"the candidate '{self.best.what}' {outcome} the budget of {budget} bytes "
            f"with {reached(self.best)}; also tried: {', '.join(others)}"
        )


class Lowerings:
    """Searches for versions of a program with a lower peak. Budgets share work.

    The result for a budget does not depend on the budgets that came before it.
    """

    def __init__(self, fit: TGraphFit, ctx: Context, given: ModuleOp):
        self._fit = fit
        self._given = given
        self._placing = fit.shared(Placing)
        self._candidates = Candidates(ctx, fit, fit.offload, fit.time_limit)
        self._known: dict[str, Candidate | None] = {}
        self._least: dict[tuple[str, TGraphTile], Candidate | None] = {}
        self._descent = self._descended()
        self._reached: list[Candidate] = []  # by the descent, so far

    def fitted(self, budget: int) -> Fitted:
        """Finds the fastest candidate that meets the budget, or the smallest if none
        does.

        A budget is met exactly if the descent meets it. All budgets that are missed
        therefore get the same fewest bytes.
        """
        enough = self._within(budget)
        tried = [*(self._search(budget) if enough else self._reached)]
        if enough and _best(tried, budget).bytes > budget:
            tried.append(enough)
        return Fitted(_best(tried, budget), tried)

    def _within(self, budget: int) -> Candidate | None:
        """The first candidate of the descent that meets the budget, or None."""
        for found in self._reached:
            if found.bytes <= budget:
                return found
        for found in self._descent:
            self._reached.append(found)
            if found.bytes <= budget:
                return found
        return None

    def _descended(self) -> Iterator[Candidate]:
        """Yields the candidates for a budget of one byte, then for budgets just below
        the fewest bytes so far, while this finds fewer bytes."""
        budget, least = 1, maxsize
        while budget < least:
            tried: list[int] = []
            for found in self._search(budget):
                tried.append(found.bytes)
                yield found
            if min(tried, default=maxsize) >= least:
                return
            least = min(tried)
            budget = max(least - 1, 1)

    def _search(self, budget: int) -> Iterator[Candidate]:
        """Yields the candidates for `budget`, until no other can be better."""
        tried: list[Candidate] = []
        for found in self._ways(budget):
            tried.append(found)
            yield found
            if found.bytes <= budget and found.time <= min(c.time for c in tried):
                return
        if self._fit.tiles and (ordered := self._known.get(ORDERED)):
            tiles = {
                "loops over few tiles": (1, MANY[1], IN_CACHE),
                "few slices": (*MANY, 0),
            }
            for what, (most, slowdown, bytes) in tiles.items():
                few = TGraphTile(most, slowdown, bytes, budget=budget, **self._placing)
                is_met = _best(tried, budget).bytes <= budget
                if found := self._tiled(what, ordered, few, budget, is_met):
                    tried.append(found)
                    yield found
        for start in undominated(tried):
            best = _best(tried, budget)
            if best.bytes <= budget and best.time <= start.time:
                return
            after = "" if start is tried[0] else f" after {start.what}"
            for found in self._lowered(start, after, budget, best.bytes <= budget):
                tried.append(found)
                yield found

    def _tiled(
        self, what: str, start: Candidate, tile: TGraphTile, budget: int, is_met: bool
    ) -> Candidate | None:
        """The candidate that `tile` makes of `start`.

        is_met: whether another candidate meets the budget. If the fewest bytes that
            tiles reach, which budgets share, exceed the budget, these are the result.
        """
        least = replace(tile, budget=1)
        if start is self._known.get(start.what) and (is_met or tile == least):
            key = start.what, least
            if key not in self._least:
                self._least[key] = self._run(what, start, [least])
            found = self._least[key]
            if tile == least or found is None or found.bytes > budget:
                return found
        return self._run(what, start, [tile])

    def _run(
        self, what: str, start: Candidate | None, passes: Sequence[ModulePass]
    ) -> Candidate | None:
        """The candidate that the passes make of `start`, or of the given program."""
        module = start.module if start else self._given
        found = self._candidates.run(what, module, passes)
        if found and start:
            found = replace(found, remarks=[*start.remarks, *found.remarks])
        return found

    def _ways(self, budget: int) -> Iterator[Candidate]:
        """Yields candidates until the time is up: fast ones first, then smaller ones.
        Budgets share those whose names do not depend on the budget."""
        fit, placing = self._fit, self._placing
        tiling: list[ModulePass] = [TGraphTile(**placing)] if fit.tiles else []
        masks, again = TGraphPackMasks(**placing), TGraphRematerialize(**placing)

        def ordered(mode: str = "relay", keep_peak: bool = True) -> list[ModulePass]:
            return [
                TGraphEliminateAssigns(),
                TGraphFuse(mode, keep_peak=keep_peak),
                TGraphSinkConcatenations(),
                TGraphSchedule(fit.effort, **fit.shared(Packing)),
            ]

        given, order, tiled = "", ORDERED, "tiles"
        ways: list[tuple[str, str, list[ModulePass]]] = [
            ("larger groups", given, ordered(keep_peak=False)),
            (order, given, ordered()),
        ]
        if fit.tiles:
            ways.append((tiled, order, tiling))
        ways.append(
            ("cheap recomputation", tiled if fit.tiles else order, [masks, again])
        )
        if fit.effort < LONG_EFFORT:
            longer = TGraphSchedule(LONG_EFFORT, **fit.shared(Packing))
            ways.append(("a longer search", order, [longer, *tiling]))
        for mode, what in (("nnvm", "smaller groups"), ("none", "no groups")):
            ways.append((what, given, [*ordered(mode), *tiling]))
        if fit.tiles:
            for what, (tiles, slowdown, bytes) in _tilings(budget).items():
                more = TGraphTile(tiles, slowdown, bytes, **placing)
                ways.append((what, order, [more]))
        for what, start, passes in ways:
            if what not in self._known:
                self._known[what] = self._run(what, self._known.get(start), passes)
            if (found := self._known[what]) is None:
                return
            yield found

    def _lowered(
        self, start: Candidate, after: str, budget: int, is_met: bool
    ) -> Iterator[Candidate]:
        """Yields versions of `start` that are lowered toward the budget by
        recomputation, slices, and copies.

        is_met: whether another candidate meets the budget.
        """
        fit = self._fit
        again = TGraphRematerialize(budget, **self._placing)
        fits = False
        if found := self._run(f"recomputation{after}", start, [again]):
            fits = found.bytes <= budget
            yield found
        if fit.tiles:
            cut = TGraphTile(*MANY, tile_bytes=0, budget=budget, **self._placing)
            what = f"slices{after}"
            if found := self._tiled(what, start, cut, budget, is_met or fits):
                fits |= found.bytes <= budget
                yield found
        if not fit.offload:
            return
        move = TGraphOffload(budget, fit.device, fit.offload, **self._placing)
        copies = f"copies to {fit.offload}{after}"
        if found := self._run(copies, start, [move]):
            fits |= found.bytes <= budget
            yield found
        both = f"recomputation and {copies}"
        if not fits and (found := self._run(both, start, [again, move])):
            yield found


def _best(tried: Sequence[Candidate], budget: int) -> Candidate:
    """The fastest candidate that fits, or else the one that comes closest."""
    return min(tried, key=lambda c: (max(c.bytes - budget, 0), c.time, c.bytes))


def _tilings(budget: int) -> Mapping[str, tuple[int, float, int]]:
    """The options of tgraph-tile by name: tiles, slowdown, and bytes."""
    # Powers of two, so that similar budgets share versions.
    sizes = [1 << (max(budget // part, 1).bit_length() - 1) for part in TILES]
    size = IN_CACHE
    while size > sizes[-1]:
        size = max(size // SMALLER, 1)
        sizes.append(size)
    return {
        "more tiles": (*MORE, 0),
        "loops over tiles": (*MORE, IN_CACHE),
        "many tiles": (*MANY, 0),
        **{f"loops over tiles of {size} bytes": (*MANY, size) for size in sizes},
    }
