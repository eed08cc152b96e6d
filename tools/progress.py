"""A progress bar on stderr, for what takes longer than two seconds on a terminal.

run [##########----------] 5/10, 7 s
"""

import sys
import time
from collections.abc import Iterator, Sequence
from threading import Event, Thread
from typing import TextIO, TypeVar

DELAY = 2.0  # seconds before the bar is shown
INTERVAL = 0.2  # seconds between two pictures
_WIDTH = 20  # characters

T = TypeVar("T")


def tracked(name: str, items: Sequence[T]) -> Iterator[T]:
    """The items, with a bar of how many are done."""
    with Progress(name, len(items)) as progress:
        for item in items:
            yield item
            progress.step()


class Progress:
    """`with Progress("run", 10) as progress: ... progress.step()`"""

    def __init__(self, name: str, total: int, stream: TextIO | None = None):
        self._name = name
        self._total = total
        self._stream = sys.stderr if stream is None else stream
        self._done = 0
        self._is_over = Event()
        self._thread: Thread | None = None

    def step(self) -> None:
        """One more of the total is done."""
        self._done += 1

    def __enter__(self) -> "Progress":
        if self._stream.isatty():
            self._thread = Thread(target=self._show, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread:
            self._thread.join()

    def _show(self) -> None:
        start = time.monotonic()
        if self._is_over.wait(DELAY):
            return
        while True:
            bar = "#" * (_WIDTH * self._done // max(self._total, 1))
            seconds = time.monotonic() - start
            self._write(
                f"{self._name} [{bar:-<{_WIDTH}}] {self._done}/{self._total}, "
                f"{seconds:.0f} s"
            )
            if self._is_over.wait(INTERVAL):
                self._write("")
                return

    def _write(self, line: str) -> None:
        """In place of what was there: back to the left, and clear to the right."""
        self._stream.write(f"\r{line}\x1b[K")
        self._stream.flush()
