"""Tests `TENSORPLAN_PROCESSOR`: native code for processors with fewer features."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorplan
from tensorplan.runtime.backends.jit import llvm
from tensorplan.support import processor
from tensorplan.support.choices import ChoiceError

MODEL = """func.func @main(%x: tensor<20x70xui8>, %y: tensor<70x40xi8>)
    -> tensor<20x40xi32> {
  %r = tgraph.dot_general %x, %y {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<20x70xui8>, tensor<70x40xi8>) -> tensor<20x40xi32>
  func.return %r : tensor<20x40xi32>
}"""

PROGRAM = f"""
import sys
import numpy as np
import tensorplan
from tensorplan.runtime.backends.jit import llvm
from tensorplan.runtime.backends.native.dot_products import adds_four, registers

x = np.arange(1400).reshape(20, 70).astype(np.uint8)
y = np.arange(2800).reshape(70, 40).astype(np.int8)
run = tensorplan.compile(tensorplan.read('''{MODEL}'''))
assert not run.fallbacks
(sums,) = run(x, y)
np.testing.assert_array_equal(sums, x.astype(int) @ y.astype(int))
tensorplan.save(run, sys.argv[1])
print(registers(), "+avx512f" in llvm.compiler().host.features)
print(adds_four())
"""

is_x86 = llvm.is_available() and "avx2" in llvm.compiler().host.features.split(",+")


@pytest.mark.skipif(not is_x86, reason="needs llvmlite, and AVX2")
def test_native_code_for_a_processor_level(tmp_path: Path) -> None:
    """The saved program also runs on this processor, which has more features."""
    path = tmp_path / "program"
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        env={**os.environ, processor.VARIABLE: "x86-64-v3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "(32, 16) False\nFalse\n"
    x, y = np.ones((20, 70), np.uint8), np.ones((70, 40), np.int8)
    (sums,) = tensorplan.load(path)(x, y)
    np.testing.assert_array_equal(sums, np.full((20, 40), 70))


def test_other_levels_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(processor.VARIABLE, "x86-64-v5")
    message = "TENSORPLAN_PROCESSOR is 'x86-64-v5', expected one of x86-64-v3, x86-64"
    with pytest.raises(ChoiceError, match=message):
        tensorplan.compile(tensorplan.read(MODEL))
