"""Tests `flush_subnormals`: numbers smaller than the normal ones count as zero in every
thread of a call, and only there."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from modules import parse

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.runtime.backends.jit import llvm
from tensorplan.runtime.executor import Executable
from tensorplan.tools.plan_run import main as plan_run

pytestmark = pytest.mark.skipif(
    not llvm.is_available(), reason="native code is turned off"
)

SIZE = 1 << 18  # large enough for several threads
TYPE = f"tensor<{SIZE}xf32>"
HALF = f"""
func.func @main(%x: {TYPE}) -> {TYPE} {{
  %half = tgraph.constant<5.0e-01 : f32> : {TYPE}
  %y = tgraph.multiply %x, %half : {TYPE}
  func.return %y : {TYPE}
}}"""
SMALL = np.full(SIZE, 1e-38, np.float32)
HALVES = SMALL / 2  # subnormal


@pytest.mark.parametrize(
    "options", [{"threads": 1}, {"threads": 2}, {"threads": 2, "concurrent": True}]
)
def test_all_threads_of_a_call_flush(options: dict[str, Any]) -> None:
    planned = tensorplan.plan(parse(HALF))
    kept = Executable(planned, **options)
    flushed = Executable(planned, **options, flush_subnormals=True)
    for _ in range(2):
        np.testing.assert_array_equal(kept(SMALL)[0], HALVES)
        assert not flushed(SMALL)[0].any()
        assert (SMALL / 2).all()  # Python code computes as before


def test_saved_programs_flush(tmp_path: Path) -> None:
    for flush in (False, True):
        compiled = tensorplan.compile(parse(HALF), flush_subnormals=flush)
        tensorplan.save(compiled, tmp_path / "half")
        assert tensorplan.load(tmp_path / "half")(SMALL)[0].any() != flush


def test_jit_computes_as_jax_does() -> None:
    def half(x: Any) -> Any:
        return x * 0.5

    assert not np.any(jax.jit(half)(SMALL))
    assert not tensorplan.jit(half)(SMALL).any()
    kept = tensorplan.jit(half, flush_subnormals=False)(SMALL)
    np.testing.assert_array_equal(kept, HALVES)


def test_callbacks_compute_with_subnormals() -> None:
    def callback(x: Any) -> Any:
        if x[0] > 1:
            raise ValueError("too large")
        return np.asarray(x) / 2  # not by JAX

    def called(x: Any) -> Any:
        return jax.pure_callback(callback, jax.ShapeDtypeStruct((3,), x.dtype), x)

    run = tensorplan.jit(called)
    np.testing.assert_array_equal(run(SMALL[:3]), HALVES[:3])
    with pytest.raises(LocatedError, match="too large"):
        run(SMALL[:3] + 2)
    assert (SMALL / 2).all()


def test_plan_run_flushes(tmp_path: Path) -> None:
    (tmp_path / "half.mlir").write_text(HALF)
    inputs, outputs = (f"--{n}puts={tmp_path / n}.npz" for n in ("in", "out"))
    np.savez(tmp_path / "in.npz", arg0=SMALL)
    for flush in ([], ["--flush-subnormals"]):
        assert plan_run([str(tmp_path / "half.mlir"), inputs, outputs, *flush]) == 0
        assert np.load(tmp_path / "out.npz")["out0"].any() != bool(flush)


def test_options_that_run_elsewhere_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan_run(["--flush-subnormals", "--backend=mlir", "-"]) == 2
    message = "--flush-subnormals requires kernels that run in this process"
    assert message in capsys.readouterr().err
