"""A slice of the fuzz suite (tests/fuzz), the same in every run, and what it has found.

`fuzz/regressions/` has an input for each bug that was found, named by its target; text
says in its first line what the cause was.
"""

from pathlib import Path

import pytest
from judging import TARGETS, generate, judge, judge_bytes, judge_module
from oracles import text_of
from readers import READERS, input_of
from shrinking import shrink

import tensorplan
from tensorplan.frontends.mlir_text import parse_module

REGRESSIONS = sorted((Path(__file__).parent / "fuzz" / "regressions").iterdir())
CAUSES = {
    "npz-version-from-the-future.npz": "zipfile raises NotImplementedError",
    "onnx-type-that-is-none.onnx": "a KeyError for an element type that ONNX lacks",
}
SLICE = {"tensor": 100, "memref": 60} | dict.fromkeys(READERS, 60)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # and back: the readers' files are in a folder


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.name)
def test_what_was_found_before(path: Path) -> None:
    target = path.name.partition("-")[0]
    if target in READERS:
        verdicts = [judge_bytes(target, 0, path.read_bytes())]
    else:
        module = parse_module(path.read_text(), path.name, tensorplan.context())
        verdicts = [judge_module(target, module, seed) for seed in range(8)]
    assert [v.message for v in verdicts if v.failed] == []


def test_every_regression_says_its_cause() -> None:
    for path in REGRESSIONS:
        assert path.name in CAUSES or path.read_text().startswith("// ")


@pytest.mark.parametrize("target", [*TARGETS, *READERS])
def test_a_slice(target: str) -> None:
    if target in TARGETS:
        verdicts = [judge(target, seed) for seed in range(SLICE[target])]
    else:
        seeds = range(SLICE[target])
        verdicts = [judge_bytes(target, s, input_of(target, s)) for s in seeds]
    assert [(v.seed, v.message) for v in verdicts if v.failed] == []
    refused = sum(v.outcome == "refused" for v in verdicts)
    assert refused <= len(verdicts) // 5


@pytest.mark.parametrize("target", TARGETS)
def test_a_seed_is_a_program(target: str) -> None:
    for seed in range(5):
        assert text_of(generate(target, seed)) == text_of(generate(target, seed))


def test_programs_become_small() -> None:
    """Down to what makes them fail: here, an operation that we do not like."""
    module = generate("tensor", 5)
    name = next(op.name for op in module.walk() if op.name.startswith("tgraph."))
    small = shrink(module, lambda m: any(op.name == name for op in m.walk()), 5)
    (function,) = small.ops
    assert len(list(function.walk())) <= 5
