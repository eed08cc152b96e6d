"""What a search may still spend: work, or seconds on the clock."""

from time import monotonic

from .. import deadline
from ..problem import Limits, Progress
from . import kernels

_WORK = 1_000_000_000  # sections that the searches of a pool look at, about
_FAST, _PLAIN = 10_000_000, 200_000  # work in a second, until that has been measured
_SURE = 0.1  # seconds of searching after which its speed is known


class SearchBudget:
    """What may still be spent: work, or with a time limit, what is left of that."""

    def __init__(self, limits: Limits, lower_bound: int) -> None:
        self._started = monotonic()
        self._limits = limits
        self._lower_bound = lower_bound
        self.share = 1.0  # of it all that may be spent for now
        self.spent = 0  # work
        self._searching = 0.0  # seconds in which that was spent

    @property
    def seconds(self) -> float:
        return monotonic() - self._started

    @property
    def used(self) -> float:
        """The share of the work that was spent."""
        return self.spent / max(_WORK * self._limits.effort, 1)

    def spend(self, work: int, since: float) -> None:
        """Work of a search, and what `seconds` was before it."""
        self.spent += work
        self._searching += self.seconds - since

    @property
    def left(self) -> int:
        """Work; with a time limit, as much as fits into it at the speed so far."""
        until_deadline = deadline.left()  # once: an interrupt may end it at any time
        if until_deadline <= 0:
            return 0
        if self._limits.time_limit is None:
            return int(_WORK * self._limits.effort * self.share) - self.spent
        speed = _FAST if kernels.available() else _PLAIN
        if self._searching > _SURE:
            speed = self.spent / self._searching
        limit = self._limits.time_limit * self.share
        seconds = min(limit - self.seconds, until_deadline)
        return int(min(seconds * speed, _WORK))

    def report(self, peak: int) -> None:
        if self._limits.progress:
            self._limits.progress(Progress(peak, self._lower_bound, self.seconds))
