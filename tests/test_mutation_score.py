"""Tests the mutation score: which changes are mutants, and that each is planted."""

import sys
from pathlib import Path
from types import ModuleType

import mutation_score
import pytest
from equivalent_mutants import EQUIVALENT

ROOT = Path(__file__).parents[1]

SOURCE = """
from functools import cached_property
def largest(values: list[int], least: int = 0) -> int | None:
    found = None
    for value in values:
        if value < least or not value:
            continue
        found = value + 2 if found is None else max(found, value)
    return found
class Three:
    @property
    def plain(self): return 3
    @cached_property
    def cached(self): return 3
    @staticmethod
    def static(): return 3
"""

CHANGES = [
    "3 one more: 0",
    "6 condition turned: if value < least or not value:",
    "6 and/or: value < least or not value",
    "6 without part 0: value < least or not value",
    "6 without part 1: value < least or not value",
    "6 compare: value < least",
    "6 without not: not value",
    "7 left out: continue",
    "8 condition turned: value + 2 if found is None else max(found, value)",
    "8 compare: found is None",
    "8 operator: value + 2",
    "8 one more: 2",
    *(f"{line} one more: 3" for line in (12, 14, 16)),
]


def test_each_mutant_changes_the_loaded_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sample.py").write_text(SOURCE)
    monkeypatch.setattr(mutation_score, "ROOT", tmp_path)
    mutants = list(mutation_score.mutants("sample.py"))
    assert [f"{m.line} {m.change}" for m in mutants] == CHANGES
    for mutant in mutants:
        module = ModuleType("tensorplan.sample")
        exec(SOURCE, vars(module))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        three = module.Three
        before = _results(module)
        mutation_score.plant(mutant)
        assert module.Three is three
        assert _results(module) != before


def _results(module: ModuleType) -> list[object]:
    three = module.Three()
    values = ([0], [0, 1], [1, 2, 9], [-1], [-2], [0.5])
    found: list[object] = [three.plain, three.cached, three.static()]
    for given in (*((v,) for v in values), *((v, -2) for v in values)):
        try:
            found.append(module.largest(*given))
        except TypeError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize("module", EQUIVALENT)
def test_lines_of_equivalent_mutants_exist(module: str) -> None:
    lines = {line.strip() for line in (ROOT / module).read_text().splitlines()}
    assert module in mutation_score.TESTS
    assert [text for text, _ in EQUIVALENT[module] if text not in lines] == []


def test_modules_and_their_tests_exist() -> None:
    for module, tests in mutation_score.TESTS.items():
        assert all((ROOT / file).is_file() for file in (module, *tests))
