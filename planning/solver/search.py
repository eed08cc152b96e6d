"""Valley branch and bound: an exact search for a plan of a part under a capacity.

If it runs to its end, it finds a plan or proves that there is none. It builds plans
bottom-up in which every buffer rests on the floor or on another buffer; some optimal
plan has this form. The state is the skyline: per section, the height below which no
more buffers are placed. A valley is a plateau of the skyline between higher walls. The
search branches at one end section of one valley. A buffer whose sections all lie in the
valley, the end section among them, may rest on the valley's floor. The alternatives are
each of these buffers, or none of them. The last alternative raises the section to the
next height at which a buffer can rest.

Pruning, and why it loses no plan:
 * The height of a section plus the unplaced units in it exceed the capacity: no plan
   fits.
 * No buffer can rest in an end section: it is raised without branching.
 * Of several equal buffers, only one is tried.
 * If a choice fails whose buffer has no unplaced buffer above it, the alternatives
   fail, too: a higher offset of this buffer would leave no more room.
 * Sections that share no unplaced buffer are independent: each component is solved
   once, the tightest first. If one fails, the search backtracks to the choice that
   created it.

The canonical plans and the decomposition are those of "Fast, Exact Memory Planning"
(minimalloc: Moffitt, "MiniMalloc", ASPLOS 2023). Branching on the skyline instead of on
the order of buffers is specific to tensorplan.
"""

from collections.abc import Callable, Sequence
from time import thread_time
from typing import Any, NamedTuple

from .. import deadline
from .kernels import LARGEST, STEP, Integers, as_arrays, compiled, integers, pays, plain
from .sections import Part

INFEASIBLE, FEASIBLE, UNKNOWN = 0, 1, -1
PAUSED = -2  # a kernel's status: it can be resumed

RULES = range(4)
"""The rules that select the valley to branch on: see `_score`."""

_PATIENCE = 5  # weight of a dead end in a section, relative to a failed choice
_NODE_WORK = 16  # work of a node besides its sections, in sections
_START_WORK = 50  # of a search besides its nodes, per buffer
PAUSE, PLAIN_PAUSE = 2_000_000, 40_000  # work between two checks of the deadline


START = (-1, 0, 0, 0)
"""The point at which a new search begins: see `point` in `_search`."""


class _Buffers(NamedTuple):
    """The buffers of a part. In a list by section, section s begins at at[s]."""

    first: Integers  # section, per buffer
    end: Integers  # section after its last, per buffer
    size: Integers
    start_at: Integers
    starting: Integers  # buffers that start in a section
    end_at: Integers
    ending: Integers  # buffers whose last section is the one before
    cover_at: Integers
    covering: Integers  # buffers that are live in a section
    floor: Integers  # units that are occupied from the start, per section


class _State(NamedTuple):
    """The skyline, and the unplaced buffers."""

    sky: Integers  # the height below which no more buffers are placed, per section
    rest: Integers  # units of the unplaced buffers, per section
    joined: Integers  # unplaced buffers that are live in this section and the next
    placed: Integers  # 0 or 1, per buffer


class _Trail(NamedTuple):
    """The changes since the start, for backtracking."""

    item: Integers  # the section whose height changed, or -1 - i if buffer i was placed
    before: Integers  # the height of that section before


class _Frames(NamedTuple):
    """The stack of choices. Each is for one end of a valley in a component."""

    low: Integers  # first section of the component
    high: Integers  # section after its last
    owner: Integers  # the frame whose choice created the component, -1: none
    start: Integers  # first section of the valley
    stop: Integers  # section after its last
    on_left: Integers  # 1 for the left end of the valley, 0 for the right end
    chosen: Integers  # the next choice to try
    choices_end: Integers
    mark: Integers  # length of the trail before the choice
    open_mark: Integers  # number of open components before the choice
    last_word: Integers  # 1 if all other choices fail, too, when this one fails


class _Open(NamedTuple):
    """The stack of components that are not solved yet."""

    low: Integers
    high: Integers
    owner: Integers
    tightness: Integers  # the greatest height plus unplaced units of a section


class _Tables(NamedTuple):
    """The data of the kernel."""

    buffers: _Buffers
    state: _State
    trail: _Trail
    frames: _Frames
    opened: _Open
    choices: Integers
    offsets: Integers  # units, per buffer; valid if it is placed
    weight: Integers  # grows with each failure in a section, per section


class SearchOutcome(NamedTuple):
    """The result of a search under a capacity."""

    status: int  # INFEASIBLE (proved), FEASIBLE or UNKNOWN (gave up)
    offsets: Sequence[int]  # valid if FEASIBLE
    work: int  # sections visited, about


class PausingSearch:
    """Runs a kernel with pauses: in plain Python until compiling it pays."""

    def __init__(
        self,
        tables: Any,
        sizes: Sequence[int],
        kernel: Callable[..., Any],
        *helpers: Callable[..., Any],
    ) -> None:
        """`tables` is a named tuple that the kernel changes, with a field `offsets`.

        `sizes` has all numbers that the kernel may add up.
        """
        self._tables, self._sizes = tables, sizes
        self._kernel, self._helpers = kernel, helpers
        self._is_fast = False
        self._seconds = 0.0  # of plain Python not yet announced to `pays`

    def run(self, order: Sequence[int], *numbers: int) -> SearchOutcome:
        """Calls the kernel, and resumes it until its search or the time is over.

        `numbers` are the kernel's last arguments. At a deadline, the status is UNKNOWN.
        """
        rank = integers(_ranks(order), self._is_fast)
        point = integers(START, self._is_fast)
        kernel = (
            compiled(self._kernel, *self._helpers) if self._is_fast else self._kernel
        )
        status, work = PAUSED, 0
        while status == PAUSED and not deadline.passed():
            # A search that is not over takes about as long again as it took so far.
            steps = int(2 * self._seconds / STEP)
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
        work = int(work) + _START_WORK * len(order)
        return SearchOutcome(status, plain(self._tables.offsets), work)


class ValleySearch(PausingSearch):
    """Searches for plans of one part. The weights of sections persist between calls."""

    def __init__(self, part: Part, floor: Sequence[int] = ()) -> None:
        """`floor` has the units occupied from the start, per section; empty: none."""
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
        helpers = (
            _begin, _valley, _lowest_rest, _rest, _score,
            _resume, _choices, _put, _undo, _split,
        )  # fmt: skip
        super().__init__(tables, [*part.size, *floor], _search, *helpers)

    def fit(
        self, rule: int, capacity: int, order: Sequence[int], limit: int
    ) -> SearchOutcome:
        """Searches for a plan within `capacity` (units), for about `limit` sections.

        Of several buffers that may come next, the earliest in `order` is tried first.
        """
        return self.run(order, rule, capacity, limit)


def _ranks(order: Sequence[int]) -> list[int]:
    """The position of each buffer in `order`."""
    rank = [0] * len(order)
    for place, index in enumerate(order):
        rank[index] = place
    return rank


def _grouped(
    pairs: Sequence[tuple[int, int]], sections: int
) -> tuple[list[int], list[int]]:
    """Groups (section, item) pairs: section s has `items[at[s]:at[s + 1]]`.

    Returns `at` and `items`.
    """
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
    """The kernel. Resumes at `point`, pauses after `pause` of work.

    Returns its status and the work so far. A frame is a choice. A component is a run of
    sections to be solved; its owner is the frame that created it (-1: none).
    """
    buffers, state, trail, frames, opened, choices, offsets, weight = tables
    sky, rest = state.sky, state.rest
    # The top frame, the length of the trail, the number of open components, the work.
    top, trail_end, count, work = point[0], point[1], point[2], point[3]
    if not count:
        sections = len(sky)
        if not _begin(buffers, state, capacity):
            return INFEASIBLE, sections
        opened.low[0], opened.high[0], opened.owner[0] = 0, sections, -1
        count = 1
    pause += work
    while count:
        if work > pause:
            point[0], point[1], point[2], point[3] = top, trail_end, count, work
            return PAUSED, work
        count -= 1
        frame = opened.owner[count]
        low, high = opened.low[count], opened.high[count]
        work += _NODE_WORK + high - low
        if work > limit or top + 2 >= len(frames.low):
            return UNKNOWN, work
        before = trail_end
        found, at, until, left, trail_end = _valley(
            buffers, state, trail, weight, trail_end, rule, capacity, low, high
        )
        work += (trail_end - before) * (high - low)  # each raise scans all again
        if found == UNKNOWN:
            return UNKNOWN, work
        if found == FEASIBLE:
            top += 1
            base = frames.choices_end[top - 1] if top else 0
            if base + len(buffers.size) > len(choices):
                return UNKNOWN, work
            frames.low[top], frames.high[top], frames.owner[top] = low, high, frame
            frames.start[top], frames.stop[top] = at, until
            frames.on_left[top], frames.last_word[top] = left, 0
            frames.mark[top], frames.open_mark[top] = trail_end, count
            frames.chosen[top] = base
            frames.choices_end[top] = _choices(
                buffers, state, choices, base, rank, at, until, left, low, high
            )
            frame = top
        while True:  # take the next alternative of the frame, or backtrack to its owner
            if frame < 0:
                return INFEASIBLE, work
            top, count = frame, frames.open_mark[frame]
            trail_end = _undo(buffers, state, trail, trail_end, frames.mark[frame])
            choice = frames.chosen[frame]
            frames.chosen[frame] += 1
            if frames.last_word[frame] or choice > frames.choices_end[frame]:
                frame = frames.owner[frame]
                continue
            low, high = frames.low[frame], frames.high[frame]
            start = frames.start[frame]
            if choice < frames.choices_end[frame]:
                index = choices[choice]
                offsets[index] = sky[start]
                trail_end, buried = _put(buffers, state, trail, trail_end, index)
                frames.last_word[frame] = 1 - buried
                count = _split(buffers, state, opened, count, frame, index, low, high)
                break
            stop, left = frames.stop[frame], frames.on_left[frame]
            section = start if left else stop - 1
            level = _resume(buffers, state, start, stop, left, section)
            if level + rest[section] <= capacity:
                trail.item[trail_end], trail.before[trail_end] = section, sky[section]
                trail_end += 1
                sky[section] = level
                opened.low[count], opened.high[count] = low, high
                opened.owner[count] = frame
                count += 1
                break
            weight[section] += 1
            frame = frames.owner[frame]
    return FEASIBLE, work


def _begin(buffers: _Buffers, state: _State, capacity: int) -> bool:
    """Removes all buffers. Returns whether the capacity suffices for each section."""
    sky, rest, joined, placed = state
    for section in range(len(sky)):
        sky[section] = buffers.floor[section]
        rest[section] = joined[section] = 0
    for index in range(len(placed)):
        placed[index] = 0
        for section in range(buffers.first[index], buffers.end[index]):
            rest[section] += buffers.size[index]
            if section + 1 < buffers.end[index]:
                joined[section] += 1
    for section in range(len(sky)):
        if sky[section] + rest[section] > capacity:
            return False
    return True


def _valley(
    buffers: _Buffers,
    state: _State,
    trail: _Trail,
    weight: Integers,
    trail_end: int,
    rule: int,
    capacity: int,
    low: int,
    high: int,
) -> tuple[int, int, int, int, int]:
    """Selects the valley, and the end of it, to branch on.

    Raises end sections in which no buffer can rest. Returns the status, the first
    section of the valley, the section after its last, 1 for the left end or 0 for the
    right one, and the length of the trail. The status is INFEASIBLE if a section
    exceeds the capacity, and UNKNOWN if the trail is full.
    """
    first, end, _, start_at, starting, end_at, ending, _, _, _ = buffers
    sky, rest, _, placed = state
    best = -1.0
    best_at, best_until, best_left = low, high, 1
    at = low
    while at < high:
        level = sky[at]
        until = at + 1
        while until < high and sky[until] == level:
            until += 1
        if (at > low and sky[at - 1] < level) or (until < high and sky[until] < level):
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
                for place in range(start_at[at], start_at[at + 1]):
                    index = starting[place]
                    if placed[index] == 0 and end[index] <= until:
                        candidates += 1
            else:
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
            section = at if left else until - 1
            level = _lowest_rest(buffers, state, section)
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
            at = low
        else:
            at = until
    if trail_end + len(sky) + 2 >= len(trail.item):
        return UNKNOWN, best_at, best_until, best_left, trail_end
    return FEASIBLE, best_at, best_until, best_left, trail_end


def _lowest_rest(buffers: _Buffers, state: _State, section: int) -> int:
    """The lowest height at which an unplaced buffer over a section can rest."""
    level = LARGEST
    for place in range(buffers.cover_at[section], buffers.cover_at[section + 1]):
        index = buffers.covering[place]
        if state.placed[index] == 0:
            height = _rest(state.sky, buffers.first[index], buffers.end[index])
            level = min(level, height)
    return level


def _score(
    rule: int, level: int, slack: int, candidates: int, weight: int, capacity: int
) -> float:
    """The score of an end of a valley, 0 or more. The search branches on the lowest."""
    if rule == 0:
        return slack * 1000.0 + candidates
    if rule == 1:
        return candidates / weight
    if rule == 2:
        return candidates * (1.0 + 20.0 * slack / capacity) / weight
    return level + candidates * 0.001


def _rest(sky: Integers, first: int, end: int) -> int:
    """The lowest height at which a buffer over these sections can rest."""
    level = 0
    for section in range(first, end):
        level = max(level, sky[section])
    return level


def _resume(
    buffers: _Buffers, state: _State, start: int, stop: int, left: int, section: int
) -> int:
    """The next height at which a buffer may rest in the end section of a valley.

    A buffer that extends over a wall rests on that wall or above. A buffer within the
    valley that is not on the floor rests on one that does not reach the end section.
    """
    sky, placed = state.sky, state.placed
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
    buffers: _Buffers,
    state: _State,
    choices: Integers,
    base: int,
    rank: Integers,
    start: int,
    stop: int,
    left: int,
    lo: int,
    hi: int,
) -> int:
    """Writes the buffers to try to `choices[base:]`, best first; returns their end.

    The best buffers reach from wall to wall or end level with a wall; then `rank`
    decides.
    """
    first, end, size, start_at, starting, end_at, ending, _, _, _ = buffers
    sky, placed = state.sky, state.placed
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
            # The fit of the new choice, then of each choice that may move behind it.
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


def _put(
    buffers: _Buffers, state: _State, trail: _Trail, trail_end: int, index: int
) -> tuple[int, int]:
    """Places a buffer on the skyline.

    Returns the length of the trail, and 1 if more buffers must go above, or else 0.
    """
    first, end, size = buffers.first, buffers.end, buffers.size
    sky, rest, joined, placed = state
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


def _undo(
    buffers: _Buffers, state: _State, trail: _Trail, trail_end: int, mark: int
) -> int:
    """Undoes the changes on the trail after `mark`. Returns the trail's length."""
    first, end, size = buffers.first, buffers.end, buffers.size
    sky, rest, joined, placed = state
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
    buffers: _Buffers,
    state: _State,
    opened: _Open,
    count: int,
    frame: int,
    index: int,
    lo: int,
    hi: int,
) -> int:
    """Opens the components that remain once a buffer is placed, the tightest on top.

    Returns the number of open components.
    """
    first, end = buffers.first, buffers.end
    sky, rest, joined, _ = state
    open_low, open_high, open_owner, tightness = opened
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
