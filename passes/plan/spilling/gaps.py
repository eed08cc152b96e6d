"""The gaps of a residency problem (planning/scheduling/residency.py): where contents
that may move can be away, at which cost."""

from collections.abc import Sequence
from dataclasses import replace

from ....planning.scheduling.residency import Gap
from .moving import Moving
from .route import Route


class Gaps:
    """The gaps of residents; those of a nested block come after those of the blocks
    around it."""

    def __init__(self, moving: Sequence[Moving], route: Route):
        self.sizes: list[int] = []  # bytes, by resident
        self.first: list[int] = []
        """The additional cost of the first gap, by contents."""
        self.found: list[Gap] = []
        self.places: list[tuple[Moving, int]] = []
        """The resident and the position of each gap."""
        self._route = route
        self._begin: dict[Moving, int] = {}  # the contents with which it enters a block
        self._around: dict[Moving, tuple[Moving, int]] = {}  # the use that contains it
        self._numbers: dict[tuple[Moving, int], int] = {}  # of the gap at a position
        for each in moving:
            self._add(each)
        self._join_blocks(moving)
        self._join_nested(moving)

    def _add(self, each: Moving) -> None:
        """Adds the gaps of a resident."""
        value, size = len(self.sizes), each.resident.allocation.size
        self.sizes.append(size)
        for use, inside in enumerate(each.inside):
            self._around.update(dict.fromkeys(inside, (each, use)))
        out, _ = self._route.times(size)
        contents = self._begin.get(each)
        if contents is None or (each.loop is not None and each.loop.writes):
            contents = self._contents(out * each.runs)
        wrapping = contents
        if each.loop is not None:
            wrapping = self._contents(self._time_of_wrapping(each))
        if each.is_forwarded:
            wrapping = self._contents(self._time_of_forwarding(each))
        for position in range(len(each.away)):
            if position:
                use = position - 1
                self._begin.update(dict.fromkeys(each.inside[use], contents))
                is_begun = use == 0 and each.resident.is_own
                if each.resident.uses[use].writes and not is_begun:
                    contents = self._contents(out * each.runs)
            if position not in each.joined and each.may_leave(position):
                self._numbers[each, position] = len(self.found)
                self.found.append(self._gap(value, each, position, contents, wrapping))
                self.places.append((each, position))

    def _contents(self, cost: int) -> int:
        """Adds contents whose first gap costs `cost` more. Returns their number."""
        self.first.append(cost)
        return len(self.first) - 1

    def _gap(
        self, value: int, each: Moving, position: int, contents: int, wrapping: int
    ) -> Gap:
        size, uses = each.resident.allocation.size, each.resident.uses
        earlier = each.sharing(position - 1) if position else range(0)
        later = range(position, position)
        if position < len(uses):
            later = each.sharing(position)
        before, after = map(each.remotely, (earlier, later))
        wraps = each.may_wrap and position in (0, len(uses))
        _, back = self._route.times(size)
        cost = 0 if wraps else back * each.runs
        is_between = later.stop in each.gaps
        saving = 0
        if after and (is_between or not wraps):
            saved = self._route.saved(after, size, is_stored=is_between)
            saving = saved * each.runs
        if not is_between:
            cost, saving = cost - saving, 0
        if before and earlier.start not in each.gaps and not wraps:
            cost -= self._route.saved_out(before, size) * each.runs
        return Gap(
            value,
            *each.steps(position),
            cost,
            wrapping if wraps else contents,
            direct=(each.steps_away(earlier), each.steps_away(later)),
            staged=(before.bytes if before else 0, after.bytes if after else 0),
            saving=saving,
        )

    def _time_of_wrapping(self, each: Moving) -> int:
        """The cost of being away between iterations: each one copies back, and copies
        out if the loop writes. If the contents can be away before the loop, its first
        copy back is already paid there, and likewise its last copy out after it."""
        assert each.loop is not None
        outer, use = self._around[each]
        resident = each.resident
        out, back = self._route.times(resident.allocation.size)
        copies_in = each.runs * resident.enters
        copies_out = each.runs * (resident.leaves and each.loop.writes)
        if copies_in and use in outer.gaps:
            copies_in -= outer.runs
        if copies_out and use + 1 in outer.gaps:
            copies_out -= outer.runs
        return max(copies_in * back + copies_out * out, 0)

    def _time_of_forwarding(self, each: Moving) -> int:
        """The cost of being away between blocks: each run of the block copies back, if
        it uses contents that enter, and out, if it writes contents that leave."""
        resident = each.resident
        out, back = self._route.times(resident.allocation.size)
        copies_in = each.runs * (resident.enters and bool(resident.uses))
        copies_out = each.runs * (
            resident.leaves and any(use.writes for use in resident.uses)
        )
        return copies_in * back + copies_out * out

    def _join_blocks(self, moving: Sequence[Moving]) -> None:
        """Contents that blocks of `cf` forward are away between all of them or none."""
        forwarded: dict[int, list[int]] = {}  # by buffer: the gaps at block ends
        for each in moving:
            if each.is_forwarded:
                ends = [self._numbers[each, position] for position in each.ends]
                forwarded.setdefault(each.buffer, []).extend(ends)
        for together in forwarded.values():
            for number in together:
                others = [other for other in together if other != number]
                self.found[number] = replace(self.found[number], needs=others)

    def _join_nested(self, moving: Sequence[Moving]) -> None:
        """Contents that are away between iterations are away around the loop."""
        for outer in moving:
            for use, inside in enumerate(outer.inside):
                ends = [
                    self._numbers[each, position]
                    for each in inside
                    for position in each.ends
                    if each.loop is not None
                ]
                needs = list(ends)
                for position in outer.around(use) if ends else ():
                    needs.append(number := self._numbers[outer, position])
                    needs += self.found[number].needs
                for number in ends:
                    others = sorted({*needs} - {number})
                    self.found[number] = replace(self.found[number], needs=others)
