"""How hypothesis draws examples: the same in every run, unless asked otherwise.

Without the thorough tests, it draws fewer. `HYPOTHESIS_PROFILE=dev` takes few
examples, `nightly` many and new ones. And Ctrl-C works in its tests, also where a shell
has started them in the background.

Python's collector looks for garbage seldom, and only in what the tests themselves make:
they make IR, which is many live objects in cycles, beside a hundred thousand of JAX's.

The checkout is the package, which is imported as `tensorplan`: to pytest its root is a
plain folder, or `__init__.py` would be imported a second time, by the folder's name.
"""

import gc
import os
import signal
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest
import tool_server
from hypothesis import settings

ROOT = Path(__file__).parents[1]

settings.register_profile("quick", max_examples=25, derandomize=True, deadline=None)
settings.register_profile("ci", max_examples=40, derandomize=True, deadline=None)
settings.register_profile("dev", max_examples=20, deadline=None)
settings.register_profile("nightly", max_examples=10_000, deadline=None)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells have it for `... &`
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _plans_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test compiles is planned by it: another may have changed the planner."""
    monkeypatch.setattr("tensorplan.passes.plan.cached.LEAST", inf)


@pytest.fixture(scope="session")
def served_tools() -> Iterator[Path]:
    """A folder of commands that start fast; see `tool_server`."""
    with tool_server.serving() as commands:
        yield commands


class PlainRoot:
    @pytest.hookimpl
    def pytest_collect_directory(
        self, path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        return pytest.Dir.from_parent(parent, path=path) if path == ROOT else None


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


def pytest_configure(config: pytest.Config) -> None:
    ring = "quick" if "not thorough" in config.option.markexpr else "ci"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", ring))
    config.pluginmanager.register(PlainRoot())
