"""Runs a reproducible part of the fuzz suite (tests/fuzz), and the regression tests for
bugs that the fuzzers found.

`fuzz/regressions/` has an input for each bug, named by its target. The first line of a
text names the cause. A text `passes-...` also names the passes that ran.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from random import Random

import numpy as np
import pytest
from judging import TARGETS, generate, judge, judge_bytes, judge_module, judge_passes
from oracles import (
    Failure,
    compare,
    fractions,
    reference,
    text_of,
)
from random_passes import PASSES
from readers import READERS, input_of
from rounding import spread_by_rounding
from shrinking import shrink

import tensorplan
from tensorplan.frontends.mlir_text import parse_module
from tensorplan.passes import get_all_passes
from tensorplan.tools.pipelines import parse

FUZZ = Path(__file__).parent / "fuzz"
REGRESSIONS = sorted((FUZZ / "regressions").iterdir())
CAUSES = {
    "bytecode-crash.mlirbc": "MLIR's reader itself: another process reads it first",
    "bytecode-name-no-utf-8.mlirbc": "jaxlib ends the process for such a message",
    "npz-header-of-bytes.npz": "NumPy sorts keys, which may be of any types",
    "npz-header-cut.npz": "tokenize.TokenError from NumPy",
    "npz-of-many-disks.npz": "zipfile.is_zipfile() raises BadZipFile",
    "npz-of-other-files.npz": "NumPy gives the bytes of what is no array",
    "npz-shape-without-elements.npz": "a MemoryError, though the file is small",
    "npz-shape-too-large.npz": "an OverflowError from NumPy",
    "npz-version-from-the-future.npz": "zipfile raises NotImplementedError",
    "onnx-attribute-of-a-function.onnx": "outside of one",
    "onnx-instance-norm-of-a-vector.onnx": "an IndexError: ONNX's checker lets it pass",
    "onnx-name-no-utf-8.onnx": "protobuf gives it as bytes",
    "onnx-pad-by-millions.onnx": "a table of places, made in small steps",
    "onnx-pool-of-a-huge-image.onnx": "a table with the size of each window",
    "onnx-weights-of-another-shape.onnx": "a ValueError, and the checker lets it pass",
    "onnx-resize-of-constants.onnx": "ONNX computes it in loops of Python",
    "onnx-resize-by-a-matrix.onnx": "scales and sizes are taken as lists",
    "onnx-scatter-by-long-tuples.onnx": "lists as long as the tuples, 2^63",
    "onnx-type-that-is-none.onnx": "a KeyError for an element type that ONNX lacks",
}
BY_OTHER_TESTS = {
    "tgraph-bufferize": "after all that are drawn",
    "tgraph-fit": "by the budget of plan-pipeline",
    "tgraph-gradient": "gives another function",
    "tgraph-precompute": "takes a parameter away",
    "tgraph-search": "by plan-pipeline",
}
SLICE = dict.fromkeys(READERS, 25) | {
    **{"tensor": 25, "memref": 20, "models": 2, "bytecode": 4}
}

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # is undone after the test; readers also change it


def _skip_without_jaxlib(target: str) -> None:
    if target in ("bytecode", "models", "stablehlo") and not find_spec("jaxlib"):
        pytest.skip("jaxlib is not there")


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.name)
def test_regressions(path: Path) -> None:
    target = path.name.partition("-")[0]
    if target in READERS:
        verdicts = [judge_bytes(target, 0, path.read_bytes())]
    else:
        text = path.read_text()
        module = parse_module(text, path.name, tensorplan.context())
        if target == "passes":
            (passes,) = re.findall("// passes: (.*)", text)
            verdicts = [judge_passes(module, parse(passes, get_all_passes()))]
        else:
            verdicts = [judge_module(target, module, seed) for seed in range(8)]
    assert [v.message for v in verdicts if v.failed] == []


def test_each_regression_names_its_cause() -> None:
    for path in REGRESSIONS:
        assert path.name in CAUSES or path.read_text().startswith("// ")


@pytest.mark.thorough
@pytest.mark.parametrize("target", [*TARGETS, *READERS])
def test_reproducible_part_of_each_target(target: str) -> None:
    _skip_without_jaxlib(target)
    if target in TARGETS:
        verdicts = [judge(target, seed) for seed in range(SLICE[target])]
    else:
        seeds = range(SLICE[target])
        verdicts = [judge_bytes(target, s, input_of(target, s)) for s in seeds]
    assert [(v.seed, v.message) for v in verdicts if v.failed] == []
    refused = sum(v.outcome == "refused" for v in verdicts)
    assert refused <= len(verdicts) // 5


@pytest.mark.thorough
def test_audit_of_xla_plans() -> None:
    pytest.importorskip("jax")
    import foreign_programs

    verdicts = [foreign_programs.judge(seed) for seed in range(12)]
    assert [(v.seed, v.message) for v in verdicts if v.failed] == []
    assert sum(v.outcome == "ok" for v in verdicts) >= 6


def test_values_of_onnx_runtime() -> None:
    pytest.importorskip("onnxruntime")
    import foreign_arrays

    verdicts = [foreign_arrays.judge("onnxruntime", seed) for seed in range(20)]
    assert [(v.seed, v.message) for v in verdicts if v.outcome != "ok"] == []
    assert "reshape" in foreign_arrays.text(2)


@pytest.mark.parametrize("target", TARGETS)
def test_seed_determines_the_program(target: str) -> None:
    _skip_without_jaxlib(target)
    for seed in range(5):
        assert text_of(generate(target, seed)) == text_of(generate(target, seed))


@pytest.mark.thorough
def test_programs_do_not_depend_on_hashes() -> None:
    _skip_without_jaxlib("models")
    command = [sys.executable, str(FUZZ), *TARGETS, "--seed", "5", "--count", "2"]
    first, second = (
        subprocess.run(
            [*command, "--print"],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    )
    assert first == second
    assert first.count("func.func") >= 4 * len(TARGETS)


def test_shrinking() -> None:
    """`shrink` removes everything that the failure does not need. Here, a program fails
    if it has an operation of a certain name."""
    module = generate("tensor", 5)
    name = next(op.name for op in module.walk() if op.name.startswith("tgraph."))
    small = shrink(module, lambda m: any(op.name == name for op in m.walk()), 5)
    (function,) = small.ops
    assert len(list(function.walk())) <= 5


def test_random_passes_include_every_pass_on_tensors() -> None:
    drawn = {promise.make(Random(0)).name for promise in PASSES}
    passes = {name for name in get_all_passes() if name.startswith("tgraph-")}
    assert passes - drawn == BY_OTHER_TESTS.keys()


NOISE = """
func.func @main(%x: tensor<4x8xf32>) -> (tensor<f32>, tensor<f32>) {
  %all = tgraph.reduce %x {kind = "add", dimensions = array<i64: 0, 1>} : (tensor<4x8xf32>) -> tensor<f32>
  %rows = tgraph.reduce %x {kind = "add", dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %again = tgraph.reduce %rows {kind = "add", dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %million = tgraph.constant<1.0e+06 : f32> : tensor<f32>
  %rounding = tgraph.subtract %all, %again : tensor<f32>
  %noise = tgraph.multiply %rounding, %million : tensor<f32>
  func.return %all, %noise : tensor<f32>, tensor<f32>
}
"""  # noqa: E501


def test_tolerance_for_values_that_consist_of_rounding_errors() -> None:
    module = parse_module(NOISE, "noise", tensorplan.context())
    inputs = fractions(module, 0)
    want = reference(module, inputs)
    spread = spread_by_rounding(module, inputs, want)
    assert spread[0] < 1e-4 < 0.1 < spread[1]
    noise = [want[0], want[1] + np.float32(spread[1] / 2)]
    compare("noise", noise, want, slack=1, spread=lambda: spread)
    with pytest.raises(Failure, match="in 1 at"):
        compare("noise", noise, want, slack=1)
    wrong = [want[0] + np.float32(0.01), want[1]]
    with pytest.raises(Failure, match="in 0 at"):
        compare("wrong", wrong, want, slack=1, spread=lambda: spread)
    with pytest.raises(Failure, match="in 1 at"):  # bits must be equal without slack
        compare("exact", noise, want, spread=lambda: spread)
