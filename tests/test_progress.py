"""Tests that the progress bar appears late, only on terminals, and is erased at the
end."""

import io
import time

import pytest

from tensorplan.tools import progress
from tensorplan.tools.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY", 0.05)
    monkeypatch.setattr(progress, "INTERVAL", 0.01)


def shown(stream: io.StringIO, seconds: float) -> str:
    with ProgressBar("run", 4, stream) as bar:
        bar.step()
        time.sleep(seconds)
    return stream.getvalue()


def test_on_a_terminal() -> None:
    text = shown(Terminal(), 0.5)
    assert "\rrun [#####---------------] 1/4, 0 s\x1b[K" in text
    assert text.endswith("\r\x1b[K")


def test_no_bar_in_a_pipe_or_before_the_delay() -> None:
    assert shown(io.StringIO(), 0.2) == ""
    assert shown(Terminal(), 0.0) == ""
