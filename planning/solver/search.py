"""Valley branch and bound: does a part fit under a capacity? Exact, if it may finish.

It builds plans from below in which every buffer rests on the floor or on another one;
some optimal plan is of that kind. The state is the skyline: per section, the height
below which nothing more will be put. A valley is a plateau of the skyline between
higher walls. A buffer that is live within a valley only and touches its end section may
rest on the valley's floor, so for one end section of one valley the alternatives are:
each such buffer, or none, which raises that section to the next height at which
anything can rest.

What is pruned, and why nothing is lost:
 * floor + what is still to come in a section exceeds the capacity: it cannot fit.
 * no buffer can take an end section: it is raised without branching.
 * two equal buffers: one of them stands for both.
 * a buffer with nothing above it fails: anywhere higher it would leave no more room.
 * sections that no open buffer joins are independent: each component is solved once,
   the tightest first, and failure of one goes back to the choice that created it.

The canonical plans and the decomposition are those of "Fast, Exact Memory Planning"
(minimalloc: Moffitt, "MiniMalloc", ASPLOS 2023); branching on the skyline instead of on
the order of buffers is ours.
"""

from collections.abc import Callable, Sequence
from time import thread_time
from typing import Any, NamedTuple

from .. import deadline
from .kernels import LARGEST, STEP, Integers, as_arrays, compiled, integers, pays, plain
from .sections import Part

INFEASIBLE, FEASIBLE, UNKNOWN = 0, 1, -1
PAUSED = -2  # of a kernel

RULES = range(4)
"""Which valley is branched on: see `_score`."""

_PATIENCE = 5  # how much a choice that failed weighs less than a section that must fail
_NODE_WORK = 16  # what a node costs besides its sections, in sections
PAUSE, PLAIN_PAUSE = 2_000_000, 40_000  # work until the time is looked at again


START = (-1, 0, 0, 0)
"""The point from which a search goes on that has not begun."""


class _Buffers(NamedTuple):
    """The buffers of a part. Lists of them have those of section s from at[s] on."""

    first: Integers  # section, per buffer
    end: Integers  # section after its last, per buffer
    size: Integers
    start_at: Integers
    starting: Integers  # buffers that start in a section
    end_at: Integers
    ending: Integers  # buffers that end with the section before
    cover_at: Integers
    covering: Integers  # buffers that are live in a section
    floor: Integers  # what is taken already, per section


class _State(NamedTuple):
    """The skyline, and what is still to be placed."""

    sky: Integers  # the height below which nothing more is put, per section
    rest: Integers  # units that wait, per section
    joined: Integers  # buffers that wait and are live until after this section
    placed: Integers  # per buffer


class _Trail(NamedTuple):
    """What changed: the height of a section, or -1 - i if buffer i was placed."""

    item: Integers
    before: Integers  # that height


class _Frames(NamedTuple):
    """The choices that were made, for one end of a valley in a component."""

    low: Integers  # first section of the component
    high: Integers  # section after its last
    owner: Integers  # the frame whose choice created the component, -1: none
    start: Integers  # of the valley
    stop: Integers
    on_left: Integers  # which end
    chosen: Integers  # the next of the choices
    choices_end: Integers
    mark: Integers  # end of the trail before the choice
    open_mark: Integers  # other components that are open
    last_word: Integers  # whether nothing else can help if this choice fails


class _Open(NamedTuple):
    """The components that are to be solved."""

    low: Integers
    high: Integers
    owner: Integers
    tightness: Integers  # the most that one of its sections needs


class _Tables(NamedTuple):
    """All that the kernel works on."""

    buffers: _Buffers
    state: _State
    trail: _Trail
    frames: _Frames
    opened: _Open
    choices: Integers
    offsets: Integers  # units, per buffer that was placed
    weight: Integers  # what failures of a section tell, per section


class SearchOutcome(NamedTuple):
    """What a search under a capacity found."""

    status: int  # INFEASIBLE, FEASIBLE or UNKNOWN
    offsets: Sequence[int]  # of use if FEASIBLE
    work: int  # sections that were looked at, about


class PausingSearch:
    """Runs a kernel in plain Python until it pays to compile it."""

    def __init__(
        self,
        tables: Any,
        sizes: Sequence[int],
        kernel: Callable[..., Any],
        *helpers: Callable[..., Any],
    ) -> None:
        """The kernel works on `tables`, which have its `offsets`; `sizes` are all that
        it may add up."""
        self._tables, self._sizes = tables, sizes
        self._kernel, self._helpers = kernel, helpers
        self._is_fast = False
        self._seconds = 0.0  # of plain Python that `pays` has not heard of

    def run(self, order: Sequence[int], *numbers: int) -> SearchOutcome:
        """Calls the kernel, which goes on from where it paused, until its search ends
        or the deadline comes. It returns its status and the work so far."""
        rank = integers(_ranks(order), self._is_fast)
        point = integers(START, self._is_fast)
        kernel = (
            compiled(self._kernel, *self._helpers) if self._is_fast else self._kernel
        )
        status, work = PAUSED, 0
        while status == PAUSED and not deadline.passed():
            steps = int(self._seconds / STEP)
            if not self._is_fast and pays(steps, self._sizes, kernel):
                self._is_fast = True
                kernel = compiled(self._kernel, *self._helpers)
                self._tables = as_arrays(self._tables)
                rank, point = integers(rank, True), integers(point, True)
            pause = PAUSE if self._is_fast else PLAIN_PAUSE
            began = thread_time()
            status, work = kernel(self._tables, rank, point, pause, *numbers)
            self._seconds = thread_time() - began
        status = UNKNOWN if status == PAUSED else status
        return SearchOutcome(status, plain(self._tables.offsets), int(work))


class ValleySearch(PausingSearch):
    """Searches in one part, again and again: sections that fail gain weight."""

    def __init__(self, part: Part, floor: Sequence[int] = ()) -> None:
        """Below `floor` (units, per section) all is taken; 0 if it is not given."""
        count, sections = len(part.size), part.sections
        indices = range(count)
        covered = [(s, i) for i in indices for s in range(part.first[i], part.end[i])]
        depth = 4 * count + 2 * sections + 64
        length = 4 * depth + 4 * count + len(covered) + 1024
        tables = _Tables(
            _Buffers(
                part.first,
                part.end,
                part.size,
                *_grouped([(part.first[i], i) for i in indices], sections),
                *_grouped([(part.end[i], i) for i in indices], sections),
                *_grouped(covered, sections),
                floor or [0] * sections,
            ),
            _State(*([0] * size for size in (sections, sections, sections, count))),
            _Trail([0] * length, [0] * length),
            _Frames(*([0] * depth for _ in range(11))),
            _Open(*([0] * (depth + sections) for _ in range(4))),
            [0] * (16 * count + 1024),
            [0] * count,
            [_PATIENCE] * sections,
        )
        helpers = _valley, _rest, _score, _resume, _choices, _put, _undo, _split
        super().__init__(tables, [*part.size, *floor], _search, *helpers)

    def fit(
        self, rule: int, capacity: int, order: Sequence[int], limit: int
    ) -> SearchOutcome:
        """Looks for a plan within the capacity (units), for about `limit` sections.

        Of several buffers that might go next, those early in `order` are tried first.
        """
        return self.run(order, rule, capacity, limit)


def _ranks(order: Sequence[int]) -> list[int]:
    """The place of each buffer in an order."""
    rank = [0] * len(order)
    for place, index in enumerate(order):
        rank[index] = place
    return rank


def _grouped(
    pairs: Sequence[tuple[int, int]], sections: int
) -> tuple[list[int], list[int]]:
    """Items by section: those of section s are `items[at[s]:at[s + 1]]`."""
    at = [0] * (sections + 2)
    for section, _ in pairs:
        at[section + 1] += 1
    for section in range(sections + 1):
        at[section + 1] += at[section]
    return at, [index for _, index in sorted(pairs)]


def _search(
    tables: _Tables,
    rank: Integers,
    point: Integers,
    pause: int,
    rule: int,
    capacity: int,
    limit: int,
) -> tuple[int, int]:
    """The kernel: status and work. Goes on from `point`, for `pause` of work.

    A frame is a choice that was made, a component is a run of sections to be solved, of
    which the frame that created it is the owner (-1: none).
    """
    buffers, state, trail, frames, opened, choices, offsets, weight = tables
    first, end, size = buffers.first, buffers.end, buffers.size
    sky, rest, joined, placed = state
    (
        low, high, owner, start, stop, on_left, chosen, choices_end, mark, open_mark,
        last_word,
    ) = frames  # fmt: skip
    open_low, open_high, open_owner, _tightness = opened
    # The frame of the last choice, the trail's end, the open components, the work.
    top, trail_end, count, work = point[0], point[1], point[2], point[3]
    if not count:
        sections = len(sky)
        for section in range(sections):
            sky[section] = buffers.floor[section]
            rest[section] = joined[section] = 0
        for index in range(len(size)):
            placed[index] = 0
            for section in range(first[index], end[index]):
                rest[section] += size[index]
                if section + 1 < end[index]:
                    joined[section] += 1
        for section in range(sections):
            if sky[section] + rest[section] > capacity:
                return INFEASIBLE, sections
        open_low[0], open_high[0], open_owner[0] = 0, sections, -1
        count = 1
    pause += work
    while count:
        if work > pause:
            point[0], point[1], point[2], point[3] = top, trail_end, count, work
            return PAUSED, work
        count -= 1
        frame = open_owner[count]
        lo, hi = open_low[count], open_high[count]
        work += _NODE_WORK + hi - lo
        if work > limit or top + 2 >= len(low):
            return UNKNOWN, work
        before = trail_end
        found, at, until, left, trail_end = _valley(
            tables, trail_end, rule, capacity, lo, hi
        )
        work += (trail_end - before) * (hi - lo)  # each raise looks at all again
        if found == UNKNOWN:
            return UNKNOWN, work
        if found == FEASIBLE:
            top += 1
            base = choices_end[top - 1] if top else 0
            if base + len(size) > len(choices):
                return UNKNOWN, work
            low[top], high[top], owner[top] = lo, hi, frame
            start[top], stop[top], on_left[top] = at, until, left
            mark[top], open_mark[top] = trail_end, count
            chosen[top], last_word[top] = base, 0
            choices_end[top] = _choices(tables, base, rank, at, until, left, lo, hi)
            frame = top
        while True:  # take the next alternative of the frame, or go back to its owner
            if frame < 0:
                return INFEASIBLE, work
            top, count = frame, open_mark[frame]
            trail_end = _undo(tables, trail_end, mark[frame])
            choice = chosen[frame]
            chosen[frame] += 1
            if last_word[frame] or choice > choices_end[frame]:
                frame = owner[frame]
                continue
            lo, hi = low[frame], high[frame]
            if choice < choices_end[frame]:
                index = choices[choice]
                offsets[index] = sky[start[frame]]
                trail_end, buried = _put(tables, trail_end, index)
                last_word[frame] = 1 - buried
                count = _split(tables, count, frame, index, lo, hi)
                break
            section = start[frame] if on_left[frame] else stop[frame] - 1
            level = _resume(tables, start[frame], stop[frame], on_left[frame], section)
            if level + rest[section] <= capacity:
                trail.item[trail_end], trail.before[trail_end] = section, sky[section]
                trail_end += 1
                sky[section] = level
                open_low[count], open_high[count], open_owner[count] = lo, hi, frame
                count += 1
                break
            weight[section] += 1
            frame = owner[frame]
    return FEASIBLE, work


def _valley(
    tables: _Tables,
    trail_end: int,
    rule: int,
    capacity: int,
    lo: int,
    hi: int,
) -> tuple[int, int, int, int, int]:
    """The valley and the end of it to branch on: found, start, stop, left, trail end.

    Raises end sections that no buffer can take; INFEASIBLE if one exceeds the capacity,
    UNKNOWN if the trail is full.
    """
    buffers, state, trail, _, _, _, _, weight = tables
    first, end, _, start_at, starting, end_at, ending, cover_at, covering, _ = buffers
    sky, rest, _, placed = state
    best = -1.0
    best_at, best_until, best_left = lo, hi, 1
    at = lo
    while at < hi:
        level = sky[at]
        until = at + 1
        while until < hi and sky[until] == level:
            until += 1
        if (at > lo and sky[at - 1] < level) or (until < hi and sky[until] < level):
            at = until
            continue
        slack, heaviest = LARGEST, _PATIENCE
        for section in range(at, until):
            slack = min(slack, capacity - level - rest[section])
            heaviest = max(heaviest, weight[section])
        raised = False
        for left in (1, 0):
            candidates = 0
            if left:
                section = at
                for place in range(start_at[at], start_at[at + 1]):
                    index = starting[place]
                    if placed[index] == 0 and end[index] <= until:
                        candidates += 1
            else:
                section = until - 1
                for place in range(end_at[until], end_at[until + 1]):
                    index = ending[place]
                    if placed[index] == 0 and first[index] >= at:
                        candidates += 1
            if candidates:
                score = _score(rule, level, slack, candidates, heaviest, capacity)
                if best < 0 or score < best:
                    best = score
                    best_at, best_until, best_left = at, until, left
                continue
            level = LARGEST  # all that is live here extends over a wall
            for place in range(cover_at[section], cover_at[section + 1]):
                index = covering[place]
                if placed[index] == 0:
                    level = min(level, _rest(sky, first[index], end[index]))
            if level + rest[section] > capacity:
                weight[section] += _PATIENCE
                return INFEASIBLE, at, until, left, trail_end
            if trail_end + len(sky) + 2 >= len(trail.item):
                return UNKNOWN, at, until, left, trail_end
            trail.item[trail_end], trail.before[trail_end] = section, sky[section]
            trail_end += 1
            sky[section] = level
            raised = True
            break
        if raised:  # the walls of other valleys may have changed
            best = -1.0
            at = lo
        else:
            at = until
    if trail_end + len(sky) + 2 >= len(trail.item):
        return UNKNOWN, best_at, best_until, best_left, trail_end
    return FEASIBLE, best_at, best_until, best_left, trail_end


def _score(
    rule: int, level: int, slack: int, candidates: int, weight: int, capacity: int
) -> float:
    """How soon to branch, least first; 0 or more."""
    if rule == 0:
        return slack * 1000.0 + candidates
    if rule == 1:
        return candidates / weight
    if rule == 2:
        return candidates * (1.0 + 20.0 * slack / capacity) / weight
    return level + candidates * 0.001


def _rest(sky: Integers, first: int, end: int) -> int:
    """The lowest height at which something over these sections can rest."""
    level = 0
    for section in range(first, end):
        level = max(level, sky[section])
    return level


def _resume(tables: _Tables, start: int, stop: int, left: int, section: int) -> int:
    """The next height at which a buffer may rest in the end section of a valley.

    One that extends over a wall rests on that wall or above. One within the valley
    rests, not being on the floor, on a buffer that does not reach the end section.
    """
    buffers, (sky, _, _, placed) = tables.buffers, tables.state
    first, end, size, start_at, starting, end_at, ending, cover_at, covering, _ = (
        buffers
    )
    level = LARGEST
    within = False
    for place in range(cover_at[section], cover_at[section + 1]):
        index = covering[place]
        if placed[index]:
            continue
        if first[index] >= start and end[index] <= stop:
            within = True
        else:
            level = min(level, _rest(sky, first[index], end[index]))
    if not within:
        return level
    for border in range(start + 1, stop):
        if left:
            for place in range(start_at[border], start_at[border + 1]):
                index = starting[place]
                if placed[index] == 0:
                    support = _rest(sky, border, end[index])
                    level = min(level, support + size[index])
        else:
            for place in range(end_at[border], end_at[border + 1]):
                index = ending[place]
                if placed[index] == 0:
                    support = _rest(sky, first[index], border)
                    level = min(level, support + size[index])
    return level


def _choices(
    tables: _Tables,
    base: int,
    rank: Integers,
    start: int,
    stop: int,
    left: int,
    lo: int,
    hi: int,
) -> int:
    """Writes the buffers to try, best first, from `base` on; where they end.

    Best fill the valley from wall to wall or end level with a wall; then by rank.
    """
    first, end, size, start_at, starting, end_at, ending, _, _, _ = tables.buffers
    sky, placed, choices = tables.state.sky, tables.state.placed, tables.choices
    level = sky[start]
    left_wall = sky[start - 1] - level if start > lo else LARGEST
    right_wall = sky[stop] - level if stop < hi else LARGEST
    until = base
    if left:
        places = range(start_at[start], start_at[start + 1])
    else:
        places = range(end_at[stop], end_at[stop + 1])
    for place in places:
        index = starting[place] if left else ending[place]
        if placed[index] or first[index] < start or end[index] > stop:
            continue
        equal = False
        for other in choices[base:until]:
            if (
                first[other] == first[index]
                and end[other] == end[index]
                and size[other] == size[index]
            ):
                equal = True
        if equal:
            continue
        fit = 0
        slot = until
        for turn in range(until - base + 1):
            # The fit of the new one, then of each that it may have to pass.
            this = index if turn == 0 else choices[slot - 1]
            value = 0
            if end[this] - first[this] == stop - start:
                value += 2
            if size[this] == left_wall:
                value += 1
            if size[this] == right_wall:
                value += 1
            if turn == 0:
                fit = value
                continue
            if fit < value or (fit == value and rank[index] > rank[this]):
                break
            choices[slot] = this
            slot -= 1
        choices[slot] = index
        until += 1
    return until


def _put(tables: _Tables, trail_end: int, index: int) -> tuple[int, int]:
    """Puts a buffer onto the skyline: the trail's end, whether more goes on top."""
    first, end, size = tables.buffers.first, tables.buffers.end, tables.buffers.size
    sky, rest, joined, placed = tables.state
    trail = tables.trail
    buried = 0
    for section in range(first[index], end[index]):
        trail.item[trail_end], trail.before[trail_end] = section, sky[section]
        trail_end += 1
        sky[section] += size[index]
        rest[section] -= size[index]
        if rest[section]:
            buried = 1
        if section + 1 < end[index]:
            joined[section] -= 1
    placed[index] = 1
    trail.item[trail_end] = -1 - index
    return trail_end + 1, buried


def _undo(tables: _Tables, trail_end: int, mark: int) -> int:
    """Takes back what the trail has beyond the mark."""
    first, end, size = tables.buffers.first, tables.buffers.end, tables.buffers.size
    sky, rest, joined, placed = tables.state
    trail = tables.trail
    while trail_end > mark:
        trail_end -= 1
        item = trail.item[trail_end]
        if item >= 0:
            sky[item] = trail.before[trail_end]
            continue
        index = -1 - item
        placed[index] = 0
        for section in range(first[index], end[index]):
            rest[section] += size[index]
            if section + 1 < end[index]:
                joined[section] += 1
    return trail_end


def _split(
    tables: _Tables, count: int, frame: int, index: int, lo: int, hi: int
) -> int:
    """Opens what is left of a component without a buffer, the tightest on top."""
    first, end = tables.buffers.first, tables.buffers.end
    sky, rest, joined, _ = tables.state
    open_low, open_high, open_owner, tightness = tables.opened
    bottom = count
    for section in range(first[index], end[index]):
        last = section + 1 == end[index]
        if joined[section] and not last:
            continue
        until = hi if last else section + 1
        tight = 0
        for inside in range(lo, until):
            if rest[inside]:
                tight = max(tight, sky[inside] + rest[inside])
        if tight:
            slot = count
            while slot > bottom and tightness[slot - 1] > tight:
                open_low[slot] = open_low[slot - 1]
                open_high[slot] = open_high[slot - 1]
                tightness[slot] = tightness[slot - 1]
                slot -= 1
            open_low[slot], open_high[slot], tightness[slot] = lo, until, tight
            open_owner[count] = frame
            count += 1
        lo = until
    return count
