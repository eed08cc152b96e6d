"""Settings of Hypothesis, the garbage collector and pytest for all tests.

Hypothesis draws the same examples in every run, and fewer without the thorough tests.
`HYPOTHESIS_PROFILE=dev` draws few random examples, `nightly` many. Ctrl-C also stops
tests that a shell has started in the background.

Python's garbage collector runs seldom and ignores objects from before the tests and
from earlier test files. Tests create IR, which consists of many live objects in cycles,
importing JAX creates a hundred thousand more, and caches keep some of them.

XLA, with whose values many tests compare, compiles without LLVM's optimizations, which
takes half of the time. Its memory is the same: XLA plans it before LLVM runs.

The checkout is the package, imported as `tensorplan`. pytest collects its root as a
plain folder, so it does not import `__init__.py` again under the folder's name.
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
settings.register_profile("ci", max_examples=30, derandomize=True, deadline=None)
settings.register_profile("dev", max_examples=20, deadline=None)
settings.register_profile("nightly", max_examples=10_000, deadline=None)

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's default for `... &`
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _without_cached_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables cached plans, because another test may have changed the planner."""
    monkeypatch.setattr("tensorplan.passes.plan.cached.LEAST", inf)


@pytest.fixture(autouse=True, scope="module")
def _without_objects_of_earlier_files() -> None:
    """Has the garbage collector ignore objects that earlier test files left."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def served_tools() -> Iterator[Path]:
    """The folder of the commands that `tool_server` runs without import time."""
    with tool_server.serving() as commands:
        yield commands


class PlainRoot:
    @pytest.hookimpl
    def pytest_collect_directory(
        self, path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        return pytest.Dir.from_parent(parent, path=path) if path == ROOT else None


def pytest_collection_finish() -> None:
    gc.set_threshold(100_000, 20, 20)


def pytest_configure(config: pytest.Config) -> None:
    ring = "quick" if "not thorough" in config.option.markexpr else "ci"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", ring))
    config.pluginmanager.register(PlainRoot())
