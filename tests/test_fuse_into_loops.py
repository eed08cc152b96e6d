"""tgraph-fuse-into-loops: values, bytes, and what is left alone."""

from pathlib import Path

import pytest
from levels import inputs
from modules import parse, run
from numpy.testing import assert_allclose
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.tgraph.fuse_into_loops import TGraphFuseIntoLoops
from tensorplan.runtime.executor import Executable

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "lit_tests/tgraph-fuse-into-loops/scan.mlir").read_text()
TEXT = TEXT[TEXT.index("!n = ") :]
STACK = "tensor<6x4x8xf32>"
END = "%scaled = tgraph.multiply %0"
ROW = """
  %row0 = tgraph.slice %0#2 {
    start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 1, 4, 8>,
    strides = array<i64: 1, 1, 1>
  } : (!s) -> tensor<1x4x8xf32>
  %last = tgraph.reshape %row0 : (tensor<1x4x8xf32>) -> !x
"""


def after(text: str) -> ModuleOp:
    """The module after the pass, with its values compared."""
    module = parse(text)
    changed = run(module, TGraphFuseIntoLoops())
    arrays = inputs(module)
    want = run_reference(module, arrays)
    for a, b in zip(run_reference(changed, arrays), want, strict=True):
        assert_allclose(a, b, rtol=1e-6)
    return changed


@pytest.mark.parametrize("place", ["subtract %c5, %i", "add %c0, %i"])
def test_the_stack_is_gone(place: str) -> None:
    changed = after(TEXT.replace("subtract %c5, %i", place))
    assert STACK not in str(changed)
    planned = tensorplan.plan(changed)
    arrays = inputs(changed)
    want = run_reference(changed, arrays)
    for a, b in zip(Executable(planned, sanitize=True)(*arrays), want, strict=True):
        assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%0#1, %0#1 : !x", "%0#1, %last : !x"),  # reads a row of the stack
        ("x2xf32>", "x16xf32>"),  # would carry more
    ],
)
def test_left_alone(old: str, new: str) -> None:
    text = TEXT.replace(f"  {END}", f"{ROW}  {END}").replace(old, new)
    assert STACK in str(after(text))
