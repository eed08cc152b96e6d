"""Finds groups that raise the peak of live bytes, and the values to store instead."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import accumulate

from xdsl.ir import Operation, SSAValue

from ....analysis.cost import (
    LAUNCH,
    arithmetic,
    moved_by,
    time,
    time_to_move,
    time_to_start_library,
)
from ....analysis.operations import Fused
from ....analysis.storage import TensorBuffer
from ....dialects.contents import operands_of
from .groups import Function, Grouping, fused
from .liveness import Liveness, bytes_of


class Peak:
    """The peak of live bytes on each device in a function without groups. It limits
    the groups.

    before: the peak of the function before values were duplicated in it. If given, its
        limits apply.
    """

    def __init__(self, function: Function, before: "Peak | None" = None):
        self.function = function
        self.limits: Mapping[str | None, int] = (
            before.limits
            if before
            else {device: max(live) for device, live in self.alone.profile.items()}
        )
        self.time_of: Callable[[Operation], int] = (
            before.time_of if before else cache(time)
        )
        self.arithmetic_of: Callable[[Operation], int] = (
            before.arithmetic_of if before else cache(arithmetic)
        )
        self._starting_of: Callable[[Operation], int] = (
            before._starting_of if before else cache(time_to_start_library)
        )
        self._latest: tuple[Grouping, Liveness] | None = None
        self._fused: dict[tuple[int, ...], Fused | None] = {}
        """Fusions by their members. Most groups do not change between groupings."""

    @cached_property
    def alone(self) -> Liveness:
        """The liveness of the function without groups."""
        return Liveness(self.function.block)

    def height(self, grouping: Grouping) -> int:
        """The sum of the devices' peaks in bytes, with the groups of `grouping`."""
        return sum(max(live) for live in self.liveness(grouping).profile.values())

    def members_to_store(self, grouping: Grouping) -> set[int]:
        """Members of groups to store so that the groups do not raise the peak.

        Groups that span a step above the limit are cut there: members before it whose
        results members after it read are stored. Groups that keep more bytes live than
        they save are cut first; only without any, the others.
        """
        costly, others = self._crossing(grouping, self.limits)
        return costly or others

    def costly(self, grouping: Grouping) -> set[int]:
        """Members to store of groups across the peak that keep more bytes live there
        than they save."""
        profile = self.liveness(grouping).profile
        limits = {device: max(live) - 1 for device, live in profile.items()}
        costly, _ = self._crossing(grouping, limits)
        return costly

    def liveness(self, grouping: Grouping) -> Liveness:
        """The liveness with the groups of `grouping`. The latest one is cached."""
        if self._latest is None or grouping is not self._latest[0]:
            groups = [g for g in self._fusions(grouping) if g]
            self._latest = grouping, Liveness(self.function.block, groups)
        return self._latest[1]

    def time(self, grouping: Grouping) -> int:
        """The nanoseconds that all operations take with the groups of `grouping`."""
        total = 0
        alone = dict.fromkeys(self.function.ops)
        for group in filter(None, self._fusions(grouping)):
            for op in group.ops:
                alone.pop(op, None)
            computing = sum(map(self.arithmetic_of, group.ops))
            total += max(time_to_move(moved_by(group)), computing) + LAUNCH
            total += sum(map(self._starting_of, group.ops))
        return total + sum(map(self.time_of, alone))

    def _fusions(self, grouping: Grouping) -> Iterator[Fused | None]:
        for root, members in grouping.members.items():
            key = tuple(members)
            if key not in self._fused:
                group = grouping.groups[root]
                self._fused[key] = fused(self.function, members, group)
            yield self._fused[key]

    def _crossing(
        self, grouping: Grouping, limits: Mapping[str | None, int]
    ) -> tuple[set[int], set[int]]:
        """The members to store where live bytes exceed the limits: first of groups that
        keep more bytes live than they save, then of the others."""
        costly: set[int] = set()
        others: set[int] = set()
        is_over = [False] * len(self.function.ops)
        for device, live in self.liveness(grouping).profile.items():
            limit = limits.get(device, 0)
            if max(live) > limit:
                for at in range(len(is_over)):
                    is_over[at] |= live[at] > limit
        if not any(is_over):
            return costly, others
        before = [0, *accumulate(map(int, is_over))]
        for root, members in grouping.members.items():
            if len(members) > 1 and before[root + 1] > before[members[0]]:
                at = min(is_over.index(True, members[0]), root - 1)
                crossing = self._read_beyond(members, at)
                is_costly = self._held(members, at) > self._saved(crossing)
                (costly if is_costly else others).update(crossing)
        return costly, others

    def _read_beyond(self, members: Sequence[int], at: int) -> set[int]:
        """The members up to position `at` whose results later members read."""
        inside = set(members)
        return {
            member
            for member in members
            if member <= at
            and any(
                reader > at and reader in inside
                for reader in self.function.readers(member)
            )
        }

    def _saved(self, members: set[int]) -> int:
        """The bytes that the results of `members` would take if they were stored."""
        results = (r for member in members for r in self.function.ops[member].results)
        return sum(map(bytes_of, self._buffers(results)))

    def _held(self, members: Sequence[int], at: int) -> int:
        """The bytes that `members` up to `at` read and that would be dead after `at` if
        they were not a group."""
        read = (
            value
            for member in members
            if member <= at
            for value in operands_of(self.function.ops[member])
        )
        return sum(bytes_of(b) for b in self._buffers(read) if b.last <= at)

    def _buffers(self, values: Iterable[SSAValue]) -> Iterable[TensorBuffer]:
        """The distinct buffers of `values` in the function without groups."""
        found = map(self.alone.buffer, values)
        return dict.fromkeys(buffer for buffer in found if buffer)
