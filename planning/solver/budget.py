"""The budget of the searches: work, or wall-clock time if there is a time limit."""

from time import monotonic

from .. import deadline
from ..problem import Limits, Progress
from . import kernels

_WORK = 1_000_000_000  # sections that the searches of a pool visit, about
_FAST, _PLAIN = 10_000_000, 200_000  # work per second, compiled or not, until measured
_SURE = 0.1  # seconds of searching after which the measured speed is used


class SearchBudget:
    """Counts the work of the searches, and tells how much they have left."""

    def __init__(self, limits: Limits, lower_bound: int) -> None:
        self._started = monotonic()
        self._limits = limits
        self._lower_bound = lower_bound
        self.share = 1.0  # of the whole budget that may currently be spent
        self.spent = 0  # work
        self._searching = 0.0  # seconds that this work took

    @property
    def seconds(self) -> float:
        return monotonic() - self._started

    @property
    def used(self) -> float:
        """The share of the work that has been spent."""
        return self.spent / max(_WORK * self._limits.effort, 1)

    def spend(self, work: int, since: float) -> None:
        """Counts the work of a search that began when `seconds` was `since`."""
        self.spent += work
        self._searching += self.seconds - since

    @property
    def left(self) -> int:
        """The work that is left; with a time limit, an estimate by the speed so far."""
        until_deadline = deadline.left()  # called once: an interrupt may set it to 0
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
