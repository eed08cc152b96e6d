"""Tests that operations missing in a table of the dialect are refused with their
location."""

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph import TGraph
from tensorplan.dialects.tgraph.elementwise import BinaryOp, UnaryOp
from tensorplan.dialects.tgraph.formulas import FLOAT, FORMULAS, formula
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.frontends import reading
from tensorplan.passes import driver
from tensorplan.passes.convert.tgraph_to_linalg import ConvertTGraphToLinalg
from tensorplan.runtime.executor import Executable


@irdl_op_definition
class NextAfterOp(BinaryOp):
    """The next floating-point number after the first operand, towards the second."""

    name = "tgraph.next_after"


ALONE = "%r = tgraph.next_after %x, %x : tensor<4xf32>"
IN_A_GROUP = """%a = tgraph.tanh %x : tensor<4xf32>
  %r = tgraph.next_after %a, %x : tensor<4xf32>"""
IN_ROWS = """%s = tgraph.reduce %x {kind = "add", dimensions = array<i64: 0>}
      : (tensor<4xf32>) -> tensor<f32>
  %b = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64>}
      : (tensor<f32>) -> tensor<4xf32>
  %d = tgraph.divide %x, %b : tensor<4xf32>
  %r = tgraph.next_after %d, %x : tensor<4xf32>"""
IN_A_REDUCTION = """%a = tgraph.next_after %x, %x : tensor<4xf32>
  %s = tgraph.reduce %a {kind = "add", dimensions = array<i64: 0>}
      : (tensor<4xf32>) -> tensor<f32>
  %r = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64>}
      : (tensor<f32>) -> tensor<4xf32>"""
BY_REGION = """%z = tgraph.constant<0.0 : f32> : tensor<f32>
  %s = tgraph.reduce_by %x, %z {dimensions = array<i64: 0>}
      : (tensor<4xf32>, tensor<f32>) -> tensor<f32> {
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %n = tgraph.next_after %p, %q : tensor<f32>
    tgraph.yield %n : tensor<f32>
  }
  %r = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64>}
      : (tensor<f32>) -> tensor<4xf32>"""
OF_NUMBERS = """%a = tgraph.constant<2.0 : f32> : tensor<4xf32>
  %b = tgraph.next_after %a, %a : tensor<4xf32>
  %r = tgraph.add %b, %x : tensor<4xf32>"""


@pytest.fixture(autouse=True)
def known_to_the_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    operations = [*TGraph.operations, NextAfterOp]
    monkeypatch.setattr(TGraph, "_operations", operations)


def by_executor(module: ModuleOp, *, native: bool) -> None:
    Executable(tensorplan.plan(module), native=native)


def by_reference(module: ModuleOp) -> None:
    run_reference(module, [np.ones(4, np.float32)])


def by_linalg(module: ModuleOp) -> None:
    planned = tensorplan.plan(module)
    driver.run(tensorplan.context(), planned, [ConvertTGraphToLinalg()])


@pytest.mark.parametrize(
    "body", [ALONE, IN_A_GROUP, IN_ROWS, IN_A_REDUCTION, BY_REGION, OF_NUMBERS]
)
@pytest.mark.parametrize(
    ("level", "message"),
    [
        (lambda m: by_executor(m, native=True), "next_after has no kernel"),
        (lambda m: by_executor(m, native=False), "next_after has no kernel"),
        (lambda m: tensorplan.compile(m), "next_after has no kernel"),
        (by_reference, "next_after is not supported by the reference interpreter"),
        (
            by_linalg,
            "next_after has no equivalent in upstream MLIR on elements of type f32",
        ),
    ],
)
def test_operation_without_a_table_entry_is_refused(
    body: str, level: Callable[[ModuleOp], None], message: str
) -> None:
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  {body}
  func.return %r : tensor<4xf32>
}}"""
    module = tensorplan.read(text)
    with pytest.raises(LocatedError, match=rf"^program:\d+:\d+: tgraph.{message}"):
        level(module)


@irdl_op_definition
class SoftsignOp(UnaryOp):
    """x / (1 + |x|), an operation of another package."""

    name = "mine.softsign"


MINE = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = tgraph.tanh %x : tensor<4xf32>
  %r = "mine.softsign"(%a) <{operandSegmentSizes = array<i32: 1, 0, 0>}>
      : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}"""


def mine() -> ModuleOp:
    context = tensorplan.context()
    context.load_dialect(Dialect("mine", [SoftsignOp]))
    return reading.read(MINE.encode(), "program", context, trusted=True)


@pytest.mark.parametrize(
    ("level", "message"),
    [
        (lambda m: by_executor(m, native=True), "has no kernel"),
        (lambda m: by_executor(m, native=False), "has no kernel"),
        (by_reference, "is not supported by the reference interpreter"),
        (by_linalg, "has no equivalent in upstream MLIR on elements of type f32"),
    ],
)
def test_operation_of_another_package_is_refused(
    level: Callable[[ModuleOp], None], message: str
) -> None:
    with pytest.raises(LocatedError, match=rf"^program:3:8: mine.softsign {message}"):
        level(mine())


@pytest.fixture
def softsign(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers a formula for the operation of another package."""
    monkeypatch.setitem(FORMULAS, SoftsignOp, {})
    formula(SoftsignOp, FLOAT)(lambda x: x / (1 + abs(x)))


@pytest.mark.usefixtures("softsign")
@pytest.mark.parametrize("native", [True, False])
def test_operation_with_a_formula_runs(native: bool) -> None:
    x = np.array([-2, -0.5, 0, 3], np.float32)
    (result,) = Executable(tensorplan.plan(mine()), native=native)(x)
    np.testing.assert_allclose(result, np.tanh(x) / (1 + np.abs(np.tanh(x))), 1e-6)


@pytest.mark.usefixtures("softsign")
def test_formula_is_converted_to_upstream_dialects() -> None:
    planned = tensorplan.plan(mine())
    driver.run(tensorplan.context(), planned, [ConvertTGraphToLinalg()])
    assert "math.absf" in str(planned)
    assert "softsign" not in str(planned)


def test_elements_without_an_upstream_form() -> None:
    text = """func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
  %r = tgraph.sqrt %x : tensor<4xi32>
  func.return %r : tensor<4xi32>
}"""
    module = tensorplan.read(text)
    with pytest.raises(
        LocatedError, match=("sqrt has no equivalent in upstream MLIR on elements of")
    ):
        by_linalg(module)
