"""Tests the recorded memory of other compilers: figures in benchmarks/, table and
chart."""

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
MODELS = sorted((ROOT / "tests" / "models").glob("*.mlir"))


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return import_module("peers.recorded")


@pytest.fixture
def peak(recorded: ModuleType) -> ModuleType:
    return import_module("peak")


@pytest.mark.parametrize("file", MODELS, ids=lambda file: file.stem)
def test_figures_are_recorded_for_the_current_models(recorded: ModuleType, file: Path):
    """If this fails, run `benchmarks/peak.py FILE --peers xla,iree --record`."""
    rows = recorded.recorded()
    for peer in ("xla", "iree"):
        assert recorded.least(rows, peer, file), peer


def test_figures_are_sorted_and_unique(recorded: ModuleType):
    rows = recorded.recorded()
    assert rows == sorted(rows)
    keys = [(row.peer, row.settings, row.text) for row in rows]
    assert len(set(keys)) == len(keys)
    assert {row.peer for row in rows} == set(recorded.PEERS)


def test_best_settings_of_a_peer_count(recorded: ModuleType, tmp_path: Path):
    file = tmp_path / "model.mlir"
    file.write_text("")
    text = recorded.digits(file)
    rows = [
        recorded.Row("xla", "1", settings, "model", text, count)
        for settings, count in (("default", 8), ("memory", 5))
    ]
    assert recorded.least(rows, "xla", file) == 5
    assert recorded.least(rows, "iree", file) is None


def test_smallest_figure_is_bold(peak: ModuleType):
    low, high = peak.Ours(1000, 0, 0, 0.0), peak.Ours(900, 0, 0, 0.125)
    line = peak.Line("model", low, 64, high, [None, 2000, 900, None, None, None])
    assert [*line.cells()] == [
        *("model", "1,000", "64", "**900**", "12.5 %"),
        *("-", "2,000", "**900**", "-", "-", "-"),
    ]


def test_chart_has_a_logarithmic_scale(peak: ModuleType):
    figures = [("model", 100, [50, 100, 400])]
    picture = peak.chart("low", ("half", "same", "four times"), figures)
    shapes = re.findall(r"translate\(([\d.]+) .*<title>model, (.*): ", picture)
    half, same, four = (float(x) for x, _ in shapes)
    assert [name for _, name in shapes] == ["half", "same", "four times"]
    assert four - same == pytest.approx(2 * (same - half), abs=0.2)


def test_footprint_page_agrees_with_the_benchmark(
    monkeypatch: pytest.MonkeyPatch,
):
    """If this fails, run `benchmarks/footprint.py --write docs/footprint.md`."""
    pytest.importorskip("jax")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    footprint = import_module("footprint")
    page = (ROOT / "docs" / "footprint.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    head, _, *steps = rows
    assert page.startswith(footprint.INTRODUCTION)
    assert " | ".join(head) == f"| {' | '.join(footprint.COLUMNS)} |"
    assert [name.removeprefix("| ") for name, *_ in steps] == list(footprint.STEPS)
    _, notes = footprint.NOTES.split("The columns are:")
    assert notes.partition("{")[0] in page


def test_growth_shows_median_and_extremes(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("jax")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    growth = import_module("footprint").Growth([3_000_000, 1_000_000, 2_500_000])
    assert str(growth) == "2.5 (1.0 to 3.0)"
