"""Progress of tasks that take more than two seconds: a line on stderr, on a terminal.

run [##########----------] 5/10, 7 s
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Event, Thread
from typing import Self, TextIO, TypeVar

DELAY = 2.0  # seconds before the line is shown
INTERVAL = 0.2  # seconds between updates
_WIDTH = 20  # characters

T = TypeVar("T")


def tracked(name: str, items: Sequence[T]) -> Iterator[T]:
    """Yields the items and shows a bar of how many are done."""
    with ProgressBar(name, len(items)) as progress:
        for item in items:
            yield item
            progress.step()


class Ticker:
    """While it is open, shows `text(seconds)`, where `seconds` is the time elapsed."""

    def __init__(self, text: Callable[[float], str], stream: TextIO | None = None):
        self._text = text
        self._stream = sys.stderr if stream is None else stream
        self._is_over = Event()
        self._thread: Thread | None = None
        self._is_shown = False

    def __enter__(self) -> Self:
        if self._stream.isatty():
            self._thread = Thread(target=self._show, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread:
            self._thread.join()
        if self._is_shown:
            self.write("")

    def _show(self) -> None:
        start = time.monotonic()
        if self._is_over.wait(DELAY):
            return
        while True:
            self.write(self._text(time.monotonic() - start))
            if self._is_over.wait(INTERVAL):
                return

    def write(self, line: str) -> None:
        """Replaces the current line: returns to its start, writes, clears the rest."""
        self._stream.write(f"\r{line}\x1b[K")
        self._stream.flush()
        self._is_shown = bool(line)


class ProgressBar(Ticker):
    """`with ProgressBar("run", 10) as progress: ... progress.step()`"""

    def __init__(self, name: str, total: int, stream: TextIO | None = None):
        super().__init__(self._bar, stream)
        self._name = name
        self._total = total
        self._done = 0

    def step(self) -> None:
        """Counts one more item as done."""
        self._done += 1

    def _bar(self, seconds: float) -> str:
        bar = "#" * (_WIDTH * self._done // max(self._total, 1))
        return (
            f"{self._name} [{bar:-<{_WIDTH}}] {self._done}/{self._total}, "
            f"{seconds:.0f} s"
        )
