"""What a search may still spend: work, or seconds of CPU time."""

from time import process_time

from tensorplan.planning import kernels
from tensorplan.planning.problem import Limits, Progress

_WORK = 1_000_000_000  # sections that the searches of a pool look at, about
_FAST, _PLAIN = 10_000_000, 200_000  # work in a second, at least


class Budget:
    """What may still be spent, in work or in seconds of CPU time."""

    def __init__(self, limits: Limits, lower_bound: int) -> None:
        self._started = process_time()
        self._limits = limits
        self._lower_bound = lower_bound
        self._spent = 0

    @property
    def seconds(self) -> float:
        return process_time() - self._started

    def spend(self, work: int) -> None:
        self._spent += work

    @property
    def left(self) -> int:
        """Work; with a time limit, as much as fits into it at the speed so far."""
        if self._limits.time_limit is None:
            return int(_WORK * self._limits.effort) - self._spent
        seconds = self._limits.time_limit - self.seconds
        speed = _FAST if kernels.available() else _PLAIN
        return int(seconds * max(speed, self._spent / max(self.seconds, 0.01)))

    def report(self, peak: int) -> None:
        if self._limits.progress:
            self._limits.progress(Progress(peak, self._lower_bound, self.seconds))
