"""Tests that `dev.py demo`, the first command of a new user, works without extras."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.tools import demo

ROOT = Path(__file__).parent.parent
MODEL = ROOT / "tests/models/lenet_train.mlir"
EXTRAS = ("jax", "jaxlib", "llvmlite", "numba", "onnx")


def test_demo_needs_no_extras_and_fits_one_screen(tmp_path: Path):
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({EXTRAS}))\n"
        "from tensorplan.tools import demo\n"
        "sys.exit(demo.main(demo.Path('new/demo.html')))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert len(lines) <= 36
    assert max(map(len, lines)) < 80
    assert f"{demo.XLA_BYTES:,}" in run.stdout
    assert "which is optimal" in run.stdout
    assert "all outputs are as expected" in run.stdout
    assert (tmp_path / "new/demo.html").read_text().startswith("<!DOCTYPE html>")
    assert "demo: planning" in run.stderr


def test_wrong_value_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def twice(module: ModuleOp, inputs: list[np.ndarray]) -> list[np.ndarray]:
        return [2 * array for array in run_reference(module, inputs)]

    monkeypatch.setattr(demo, "run_reference", twice)
    assert demo.main(tmp_path / "demo.html") == 1
    assert "error: out0 is off by" in capsys.readouterr().out


def test_example_is_the_recorded_model(monkeypatch: pytest.MonkeyPatch):
    """XLA's figure in the demo is the recorded figure for the same program."""
    pytest.importorskip("jaxlib")
    example = ROOT / "examples" / demo.EXAMPLE
    first, second = (tensorplan.from_stablehlo(file) for file in (example, MODEL))
    assert str(first) == str(second)
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    recorded = import_module("peers.recorded")
    assert recorded.least(recorded.recorded(), "xla", MODEL) == demo.XLA_BYTES
