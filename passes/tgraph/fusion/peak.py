"""Finds groups that would cost memory, and what to store instead."""

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
    """The most bytes that live at once in a function without groups, on each device.

    before: that of the function before values were duplicated in it: its limits hold.
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
        """By the members: most groups are the same in one grouping as in the next."""

    @cached_property
    def alone(self) -> Liveness:
        """What lives where without groups."""
        return Liveness(self.function.block)

    def height(self, grouping: Grouping) -> int:
        """The most bytes that live at once, all devices together."""
        return sum(max(live) for live in self.liveness(grouping).profile.values())

    def raised_by(self, grouping: Grouping) -> set[int]:
        """Members of groups that have to be stored, so that no more bytes live.

        Where too much lives, groups that span the place are cut there: what was
        computed until then is stored. At first, those that hold more than they save.
        """
        costly, others = self._crossing(grouping, self.limits)
        return costly or others

    def costly(self, grouping: Grouping) -> set[int]:
        """Members of groups across the peak that hold more there than they save."""
        profile = self.liveness(grouping).profile
        limits = {device: max(live) - 1 for device, live in profile.items()}
        costly, _ = self._crossing(grouping, limits)
        return costly

    def liveness(self, grouping: Grouping) -> Liveness:
        """What lives where with these groups; the latest is kept."""
        if self._latest is None or grouping is not self._latest[0]:
            groups = [g for g in self._fusions(grouping) if g]
            self._latest = grouping, Liveness(self.function.block, groups)
        return self._latest[1]

    def time(self, grouping: Grouping) -> int:
        """Nanoseconds that all operations take with these groups."""
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
        """What to store where more lives than the limits: of groups that hold more
        than they save, and of the others."""
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
        """Members until a position that later members read."""
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
        """Bytes of what is not stored."""
        results = (r for member in members for r in self.function.ops[member].results)
        return sum(map(bytes_of, self._buffers(results)))

    def _held(self, members: Sequence[int], at: int) -> int:
        """Bytes of what otherwise would have died until then."""
        read = (
            value
            for member in members
            if member <= at
            for value in operands_of(self.function.ops[member])
        )
        return sum(bytes_of(b) for b in self._buffers(read) if b.last <= at)

    def _buffers(self, values: Iterable[SSAValue]) -> Iterable[TensorBuffer]:
        """What values lie in without groups, each once."""
        found = map(self.alone.buffer, values)
        return dict.fromkeys(buffer for buffer in found if buffer)
