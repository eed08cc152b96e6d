"""A buffer that may move to the slower memory, and when it is there."""

from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass, field

from ....analysis.liveness import without
from ....analysis.residents import (
    Resident,
    ResidentUse,
)
from ....planning.problem import Steps
from .route import Remote


@dataclass(slots=True, eq=False)
class Moving:
    """A resident that may move to the slower memory, and where it is away.

    A resident is away while its contents are only in the slower memory. Position `n` of
    `away` is before use `n`; the last position is after the last use.
    """

    buffer: int  # its index in the pool
    resident: Resident
    runs: int  # how often its block runs
    remote: Sequence[Remote | None]
    """By use: how it accesses the contents while they are away; None if it cannot."""
    inside: Sequence[Sequence["Moving"]]  # by use: its contents in nested blocks
    span: Steps  # the steps of its block, or of the loop
    loop: ResidentUse | None  # the loop that carries it through its iterations
    is_apart: bool  # whether the buffer holds other contents before or after
    joined: Set[int]
    """The positions between two uses that share a copy of a part, if they are away."""
    is_forwarded: bool = False  # whether blocks of `cf` forward it to one another
    away: list[bool] = field(init=False)
    """By position. The first can be True only if the contents enter the block, the last
    only if they are needed after it."""

    def __post_init__(self) -> None:
        self.leave(())

    def leave(self, gaps: Collection[int]) -> None:
        """Makes it away at the positions `gaps` only, and between uses that share a
        copy of a part if it is away around them."""
        self.away = [gap in gaps for gap in range(len(self.remote) + 1)]
        for gap in self.joined:
            uses = self.sharing(gap)
            around = [end for end in (uses.start, uses.stop) if end in self.gaps]
            self.away[gap] = bool(around) and all(end in gaps for end in around)

    def sharing(self, use: int) -> range:
        """The uses that share a copy of a part with use number `use`, and this one."""
        start, end = use, use + 1
        while start in self.joined:
            start -= 1
        while end in self.joined:
            end += 1
        return range(start, end)

    def steps_away(self, uses: range) -> int:
        """The number of steps of uses that may run while the contents are away."""
        if self.remotely(uses) is None:
            return 0
        of = self.resident.uses
        return of[uses.stop - 1].end - of[uses.start].at

    def remotely(self, uses: range) -> Remote | None:
        """How a use, or uses that share a copy, access contents that are away; None if
        they cannot, or if there are no uses."""
        first, *others = [self.remote[use] for use in uses] or [None]
        if first is None or not others:
            return first
        writes = max(each.writes for each in (first, *others) if each)
        return first._replace(writes=writes)

    @property
    def all(self) -> Iterator["Moving"]:
        """This resident, and those of the nested blocks that its contents enter."""
        yield self
        for each in self.inside:
            for inner in each:
                yield from inner.all

    @property
    def gaps(self) -> Sequence[int]:
        """The positions at which the resident may be away."""
        resident = self.resident
        return range(not resident.enters, len(self.away) - (not resident.leaves))

    def around(self, use: int) -> Sequence[int]:
        """The positions before and after use number `use`, if in `gaps`."""
        return [gap for gap in (use, use + 1) if gap in self.gaps]

    def may_leave(self, gap: int) -> bool:
        """Whether it can save bytes to be away at position `gap`."""
        if gap not in self.gaps:
            return False
        start, end = self.steps(gap)
        uses = [use for use in (gap - 1, gap) if 0 <= use < len(self.remote)]
        is_at_loop = any(x.loop for use in uses for x in self.inside[use])
        is_at_end = self.may_wrap and gap in (0, len(self.away) - 1)
        return (
            start < end
            or is_at_loop
            or is_at_end
            or any(self.remote[use] for use in uses)
        )

    def is_away_at(self, use: int) -> bool:
        """Whether use number `use` runs while the contents are away: it accesses them
        there, or is a loop that copies them back in its body."""
        if any(inner.wraps for inner in self.inside[use]):
            return True
        around = [self.away[gap] for gap in self.around(use)]
        return self.remote[use] is not None and bool(around) and all(around)

    @property
    def is_own(self) -> bool:
        """Whether each copy back allocates new memory."""
        return self.resident.is_own or self.wraps

    @property
    def may_wrap(self) -> bool:
        """Whether the next iteration, or another block, may receive the contents."""
        return self.loop is not None or self.is_forwarded

    @property
    def ends(self) -> Sequence[int]:
        """The first and the last position, if in `gaps`: where the contents enter and
        leave the block."""
        return [gap for gap in {0, len(self.away) - 1} if gap in self.gaps]

    @property
    def wraps(self) -> bool:
        """Whether it is away from the end of an iteration or block to the next one."""
        return self.may_wrap and (self.away[0] or self.away[-1])

    @property
    def is_changed(self) -> bool:
        """Whether the pass changes its uses: it gets memory of its own, or moves."""
        return self.is_apart or self.is_ever_away

    @property
    def is_ever_away(self) -> bool:
        return any(any(each.away) for each in self.all)

    @property
    def absences(self) -> Iterator[tuple[int, int]]:
        """The first and the last position of each absence. Uses in between access the
        slower memory, or copies of parts."""
        start = None
        for gap, is_away in enumerate([*self.away, False]):
            if start is not None and not (is_away and self.is_away_at(gap - 1)):
                yield start, gap - 1
                start = None
            if is_away and start is None:
                start = gap

    @property
    def copies(self) -> Iterator[tuple[int, range]]:
        """For each copy of a part: its bytes, and the uses that share it."""
        for use, remote in enumerate(self.remote):
            if remote and remote.bytes and use not in self.joined:
                if self.is_away_at(use):
                    yield remote.bytes, self.sharing(use)

    @property
    def stays(self) -> Iterator[tuple[int, int]]:
        """The first and the last use of each stay in the faster memory."""
        start = 0
        if not self.remote:
            return
        for use, leaves in enumerate([*self.away[1:-1], True]):
            if leaves:
                if not self.is_away_at(use):
                    yield start, use
                start = use + 1

    def steps(self, gap: int) -> Steps:
        """The steps of position `gap`: between the uses around it."""
        uses, (start, end) = self.resident.uses, self.span
        return (
            uses[gap - 1].end if gap else start,
            uses[gap].at if gap < len(uses) else end,
        )

    @property
    def memories(self) -> Iterator[tuple[int, Sequence[Steps]]]:
        """For each allocation of its own in the faster memory: the bytes, and the steps
        in which the allocation may be live."""
        uses, size = self.resident.uses, self.resident.allocation.size
        for start, end in self.stays if self.is_own else ():
            inside = (x for use in self.inside[start : end + 1] for x in use)
            free = [steps for each in inside for steps in each.free]
            yield size, without([(uses[start].at, uses[end].end)], free)
        for bytes, sharing in self.copies:
            yield bytes, [(uses[sharing.start].at, uses[sharing.stop - 1].end)]
        for each in self.inside:
            for inner in each:
                yield from inner.memories

    @property
    def instead(self) -> Sequence[Steps]:
        """The steps in which the resident does not need the original buffer."""
        uses = self.resident.uses
        if self.resident.is_own:
            return [(uses[0].at, uses[-1].end)]
        return [self.span] if self.wraps else [*self.free]

    @property
    def free(self) -> Iterator[Steps]:
        """The steps in which it is away, in its block or in a nested one."""
        for each in self.all:
            for first, last in each.absences:
                yield each.steps(first)[0], each.steps(last)[1]
