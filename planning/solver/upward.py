"""Upward branch and bound: an exact search under a capacity, for buffers of any kind.

It places buffers in ascending order of their offsets, each at the lowest offset that
the buffers before it leave free. Some optimal plan has this form, for all alignments,
gaps and given offsets. The state is the lowest offset left to each unplaced buffer.

Pruning, and why it loses no plan:
 * The lowest offset of the unplaced buffers of a section plus their bytes exceed the
   capacity: no plan fits. All of them but the topmost take a multiple of the unit of
   all offsets.
 * An unplaced buffer would fit below the next one: another branch has it there.
 * Plans that differ only in the order of buffers at the same offset: one is tried.
 * Of several equal buffers, only one is tried.
 * If a choice fails whose buffer overlaps no unplaced buffer, all alternatives fail,
   too: they would place this buffer higher.
 * Sections that share no unplaced buffer are independent: each component is solved
   once. If one fails, the search backtracks to the choice that created it.

This is the search of Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-
Accelerated Machine Learning", ASPLOS 2023, written from the paper.
"""

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

from ..problem import Buffer, Steps, round_up
from .kernels import Integers
from .search import FEASIBLE, INFEASIBLE, PAUSED, UNKNOWN, PausingSearch, SearchOutcome
from .sections import live_ranges_of, overlapping

_NODE_WORK = 16  # work of a node besides its sections, in sections


class _Lives(NamedTuple):
    """The buffers."""

    by_start: Integers  # all of them, by their first section
    from_section: Integers  # starts in section s begin at by_start[from_section[s]]
    first: Integers  # section, per buffer
    end: Integers  # section after its last, per buffer
    size: Integers
    padded: Integers  # size, rounded up to the unit of all offsets
    padding: Integers  # the most bytes that rounding up added to a buffer, per section
    alignment: Integers
    kind: Integers  # the same number for equal buffers
    is_given: Integers  # whether the offset is given
    live_at: Integers  # buffer i is live in ranges live_at[i] to live_at[i + 1]
    live_first: Integers  # section, per range
    live_end: Integers  # section after its last, per range
    near_at: Integers  # buffer i overlaps near[near_at[i]] to near[near_at[i + 1]]
    near: Integers


class _State(NamedTuple):
    """The placed buffers, and the lowest offsets that they leave to the others."""

    least: Integers  # lowest offset that is left, per buffer; its own if it is placed
    placed: Integers  # 0 or 1, per buffer
    rest: Integers  # padded bytes of the unplaced buffers, per section
    joined: Integers  # unplaced buffers whose lifespan has this section and the next
    lowest: Integers  # scratch, per section: lowest offset of an unplaced buffer
    trail: Integers  # changes: i if least[i] changed, -1 - i if buffer i was placed
    before: Integers  # least[i] before the change


class _Frames(NamedTuple):
    """The stack of choices. Each chooses the next buffer of a component."""

    low: Integers  # first section of the component
    high: Integers  # section after its last
    owner: Integers  # the frame whose choice created the component, -1: none
    turn: Integers  # the next choice to try
    last: Integers  # the end of the choices
    trail: Integers  # length of the trail before the choice
    opened: Integers  # number of open components before the choice


class _Open(NamedTuple):
    """The stack of components that are not solved yet."""

    low: Integers
    high: Integers
    owner: Integers
    latest: Integers  # the buffer whose placement created the component, -1: none


class _Tables(NamedTuple):
    """The data of the kernel."""

    lives: _Lives
    state: _State
    frames: _Frames
    opened: _Open
    choices: Integers

    @property
    def offsets(self) -> Integers:
        return self.state.least


class UpwardSearch(PausingSearch):
    """Searches for plans of the same buffers, under any number of capacities."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self._offsets = [b.offset or 0 for b in buffers]
        lives, sections = _lives_of(buffers)
        count = len(buffers)
        changes = 2 * count + len(lives.near) + 2
        lengths = (count, count, sections, sections, sections, changes, changes)
        tables = _Tables(
            lives,
            _State(*([0] * length for length in lengths)),
            _Frames(*([0] * (count + 2) for _ in range(7))),
            _Open(*([0] * (count + sections + 2) for _ in range(4))),
            [0] * (16 * count + 1024),
        )
        reach = [b.size + b.alignment + (b.offset or 0) for b in buffers]
        super().__init__(tables, reach, _search, _candidates, _put, _undo, _split)

    def fit(self, capacity: int, order: Sequence[int], limit: int) -> SearchOutcome:
        """Searches for a plan within `capacity` (bytes), for about `limit` sections.

        Of buffers at the same offset, the earliest in `order` is tried first.
        """
        state = self._tables.state
        state.least[:] = self._offsets
        state.placed[:] = [0] * len(order)
        return self.run(order, capacity, limit)


def _lives_of(buffers: Sequence[Buffer]) -> tuple[_Lives, int]:
    """The buffers as the kernel reads them, and the number of sections."""
    live = live_ranges_of(buffers)
    sections = live.sections
    begin = [first for first, _ in live.hulls]
    by_start = sorted(range(len(buffers)), key=begin.__getitem__)
    starts = [0] * (sections + 1)
    for section in begin:
        starts[section + 1] += 1
    for section in range(sections):
        starts[section + 1] += starts[section]
    near = overlapping(buffers, by_start)
    near_at = [0]
    for others in near:
        near_at.append(near_at[-1] + len(others))
    kinds: dict[object, int] = {}
    unit = gcd(*(b.alignment for b in buffers), *(b.offset or 0 for b in buffers))
    padding = [0] * sections
    for i, b in enumerate(buffers):
        for each in range(live.at[i], live.at[i + 1]):
            for section in range(live.first[each], live.end[each]):
                padding[section] = max(padding[section], -b.size % unit)
    lives = _Lives(
        by_start,
        starts,
        begin,
        [end for _, end in live.hulls],
        [b.size for b in buffers],
        [round_up(b.size, unit) for b in buffers],
        padding,
        [b.alignment for b in buffers],
        [kinds.setdefault(_kind(b), len(kinds)) for b in buffers],
        [b.offset is not None for b in buffers],
        live.at,
        live.first,
        live.end,
        near_at,
        [other for others in near for other in others],
    )
    return lives, sections


def _kind(buffer: Buffer) -> tuple[int, int, int | None, Sequence[Steps]]:
    return buffer.size, buffer.alignment, buffer.offset, tuple(buffer.live)


def _search(
    tables: _Tables,
    rank: Integers,
    point: Integers,
    pause: int,
    capacity: int,
    limit: int,
) -> tuple[int, int]:
    """The kernel. Resumes at `point`, pauses after `pause` of work.

    Returns its status and the work so far.
    """
    lives, state, frames, opened, choices = tables
    # The top frame, the length of the trail, the number of open components, the work.
    top, trail_end, count, work = point[0], point[1], point[2], point[3]
    if not count:
        for section in range(len(state.rest)):
            state.rest[section] = state.joined[section] = 0
        for index in range(len(lives.size)):
            for live in range(lives.live_at[index], lives.live_at[index + 1]):
                for section in range(lives.live_first[live], lives.live_end[live]):
                    state.rest[section] += lives.padded[index]
            for section in range(lives.first[index], lives.end[index] - 1):
                state.joined[section] += 1
        opened.low[0], opened.high[0] = 0, len(state.rest)
        opened.owner[0] = opened.latest[0] = -1
        count = 1
    pause += work
    while count:
        if work > pause:
            point[0], point[1], point[2], point[3] = top, trail_end, count, work
            return PAUSED, work
        count -= 1
        frame = opened.owner[count]
        low, high = opened.low[count], opened.high[count]
        base = frames.last[top] if top >= 0 else 0
        if work > limit or base + len(rank) > len(choices):
            return UNKNOWN, work
        latest = opened.latest[count]
        until, spent = _candidates(tables, base, rank, low, high, latest, capacity)
        work += _NODE_WORK + spent
        if until > base:
            top += 1
            frames.low[top], frames.high[top], frames.owner[top] = low, high, frame
            frames.turn[top], frames.last[top] = base, until
            frames.trail[top], frames.opened[top] = trail_end, count
            frame = top
        while True:  # take the next choice of the frame, or backtrack to its owner
            if frame < 0:
                return INFEASIBLE, work
            top, count = frame, frames.opened[frame]
            trail_end = _undo(lives, state, trail_end, frames.trail[frame])
            if frames.turn[frame] == frames.last[frame]:
                frame = frames.owner[frame]
                continue
            index = choices[frames.turn[frame]]
            frames.turn[frame] += 1
            trail_end, above = _put(lives, state, trail_end, index, capacity)
            work += lives.near_at[index + 1] - lives.near_at[index]
            if above < 0:
                continue
            if above == 0:
                frames.turn[frame] = frames.last[frame]
            low, high = frames.low[frame], frames.high[frame]
            count = _split(tables, count, frame, index, low, high)
            break
    return FEASIBLE, work


def _candidates(
    tables: _Tables,
    base: int,
    rank: Integers,
    low: int,
    high: int,
    latest: int,
    capacity: int,
) -> tuple[int, int]:
    """Writes the buffers that may come next in a component to `choices[base:]`.

    Returns the end of the choices, and the work. There are none if the component cannot
    fit.
    """
    lives, state, _, _, choices = tables
    least = state.least
    floor = least[latest] if latest >= 0 else 0
    bound = -1  # the next buffer must start below this offset; -1: not known yet
    work = high - low
    for section in range(low, high):
        state.lowest[section] = -1
    begin, end = lives.from_section[low], lives.from_section[high]
    for place in range(begin, end):
        index = lives.by_start[place]
        if state.placed[index]:
            continue
        above = least[index] + (1 if lives.is_given[index] else lives.size[index])
        if bound < 0 or above < bound:
            bound = above
        lowest = max(least[index], floor)
        for live in range(lives.live_at[index], lives.live_at[index + 1]):
            work += lives.live_end[live] - lives.live_first[live]
            for section in range(lives.live_first[live], lives.live_end[live]):
                if state.lowest[section] < 0 or lowest < state.lowest[section]:
                    state.lowest[section] = lowest
    for section in range(low, high):
        needed = state.rest[section] - lives.padding[section]
        if state.lowest[section] + needed > capacity:
            return base, work
    until = base
    for place in range(begin, end):
        index = lives.by_start[place]
        offset = least[index]
        if state.placed[index] or offset < floor or offset >= bound:
            continue
        if latest >= 0 and offset == floor and rank[index] < rank[latest]:
            continue  # another branch places them in the other order
        is_new = True
        for other in choices[base:until]:
            if lives.kind[other] == lives.kind[index]:
                is_new = False
        if not is_new:
            continue
        slot = until
        while slot > base:
            other = choices[slot - 1]
            if least[other] < offset:
                break
            if least[other] == offset and rank[other] < rank[index]:
                break
            choices[slot] = other
            slot -= 1
        choices[slot] = index
        until += 1
    return until, work


def _put(
    lives: _Lives, state: _State, trail_end: int, index: int, capacity: int
) -> tuple[int, int]:
    """Places a buffer at its lowest offset.

    Returns the length of the trail, and 1 if an unplaced buffer overlaps it in time, 0
    if none does, or -1 if a buffer no longer fits.
    """
    state.placed[index] = 1
    state.trail[trail_end] = -1 - index
    trail_end += 1
    for live in range(lives.live_at[index], lives.live_at[index + 1]):
        for section in range(lives.live_first[live], lives.live_end[live]):
            state.rest[section] -= lives.padded[index]
    for section in range(lives.first[index], lives.end[index] - 1):
        state.joined[section] -= 1
    top = state.least[index] + lives.size[index]
    above = 0 if top <= capacity else -1
    for place in range(lives.near_at[index], lives.near_at[index + 1]):
        other = lives.near[place]
        if state.placed[other]:
            continue
        alignment = lives.alignment[other]
        least = -(-top // alignment) * alignment
        if state.least[other] < least:
            if lives.is_given[other] or least + lives.size[other] > capacity:
                return trail_end, -1
            state.trail[trail_end] = other
            state.before[trail_end] = state.least[other]
            state.least[other] = least
            trail_end += 1
        above = max(above, 1) if above >= 0 else above
    return trail_end, above


def _undo(lives: _Lives, state: _State, trail_end: int, mark: int) -> int:
    """Undoes the changes on the trail after `mark`. Returns the trail's length."""
    while trail_end > mark:
        trail_end -= 1
        item = state.trail[trail_end]
        if item >= 0:
            state.least[item] = state.before[trail_end]
            continue
        index = -1 - item
        state.placed[index] = 0
        for live in range(lives.live_at[index], lives.live_at[index + 1]):
            for section in range(lives.live_first[live], lives.live_end[live]):
                state.rest[section] += lives.padded[index]
        for section in range(lives.first[index], lives.end[index] - 1):
            state.joined[section] += 1
    return trail_end


def _split(
    tables: _Tables, count: int, frame: int, index: int, low: int, high: int
) -> int:
    """Opens the components that remain once a buffer is placed.

    Returns the number of open components.
    """
    lives, state, _, opened, _ = tables
    for section in range(lives.first[index], lives.end[index]):
        is_last = section + 1 == lives.end[index]
        if state.joined[section] and not is_last:
            continue
        until = high if is_last else section + 1
        waits = 0
        for inside in range(low, until):
            waits = max(waits, state.rest[inside])
        if waits:
            opened.low[count], opened.high[count] = low, until
            opened.owner[count], opened.latest[count] = frame, index
            count += 1
        low = until
    return count
