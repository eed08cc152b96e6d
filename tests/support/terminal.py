"""Runs commands on a pseudo-terminal, as a user does."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

_ESCAPES = re.compile(
    r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[=>]|\(B)|[\r\x07\x08]"
)
"""Escape sequences for colors, cursors and titles; bells."""

_CONTROLLED = """
import fcntl, os, sys, termios

fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Executes a command with a controlling terminal, so that Ctrl-C sends a signal."""


class Terminal:
    """A command on a pseudo-terminal, killed at the end of a `with` block."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        keep_escapes: bool = False,
    ):
        self.keep_escapes = keep_escapes
        try:
            self.master, slave = pty.openpty()
        except OSError as error:  # a bare chroot or container
            pytest.skip(f"no pseudo-terminal: {error.strerror}")
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CONTROLLED, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", **(env or {})},
        )
        os.close(slave)
        self.seen = ""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def wait_for(self, pattern: str, seconds: float = 60.0) -> str:
        """Waits for `pattern`; returns the output since the last call up to it."""
        end = time.monotonic() + seconds
        while True:
            if match := re.search(pattern, self.seen):
                found, self.seen = self.seen[: match.end()], self.seen[match.end() :]
                return found
            if time.monotonic() > end or not self._read(0.2):
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")

    def wait_till_it_reads(self) -> None:
        """Waits until the process has slept for half a second, according to Linux."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        last, since = "", time.monotonic()
        while time.monotonic() < since + 0.5:
            time.sleep(0.05)
            fields = stat.read_text().rpartition(")")[2].split()
            if (now := " ".join((fields[0], *fields[11:13]))) != last or now[0] != "S":
                last, since = now, time.monotonic()

    def rest(self, seconds: float = 120.0) -> tuple[int, str]:
        """Waits for the end; returns the exit code and the remaining output."""
        end = time.monotonic() + seconds
        while self._read(1.0):
            if time.monotonic() > end:
                raise AssertionError(f"it goes on; so far: {self.seen!r}")
        return self.process.wait(), self.seen

    def _read(self, seconds: float) -> bool:
        """Reads available output into `seen`; returns whether more may follow."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return self.process.poll() is None
        try:
            data = os.read(self.master, 65536)
        except OSError:  # Linux's end of file
            return False
        self.seen += data.decode(errors="replace").replace("\r\n", "\n")
        if not self.keep_escapes:
            self.seen = _ESCAPES.sub("", self.seen)
        return bool(data)
