"""An operation of the dialect that a table lacks is refused at its place."""

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.irdl import irdl_op_definition

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.reference.interpreter import run_reference
from tensorplan.dialects.tgraph import TGraph
from tensorplan.dialects.tgraph.elementwise import BinaryOp
from tensorplan.passes import driver
from tensorplan.passes.convert_tgraph_to_linalg import ConvertTGraphToLinalg
from tensorplan.runtime.executor import Executable


@irdl_op_definition
class NextAfterOp(BinaryOp):
    """The next number after the first operand, towards the second."""

    name = "tgraph.next_after"


ALONE = "%r = tgraph.next_after %x, %x : tensor<4xf32>"
IN_A_GROUP = """%a = tgraph.tanh %x : tensor<4xf32>
  %r = tgraph.next_after %a, %x : tensor<4xf32>"""
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


@pytest.mark.parametrize("body", [ALONE, IN_A_GROUP, OF_NUMBERS])
@pytest.mark.parametrize(
    ("level", "message"),
    [
        (lambda m: by_executor(m, native=True), "next_after has no kernel"),
        (lambda m: by_executor(m, native=False), "next_after has no kernel"),
        (lambda m: tensorplan.compile(m), "next_after has no kernel"),
        (by_reference, "next_after is not known to the reference interpreter"),
        (by_linalg, "next_after has no upstream form on elements of type f32"),
    ],
)
def test_it_is_refused(
    body: str, level: Callable[[ModuleOp], None], message: str
) -> None:
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  {body}
  func.return %r : tensor<4xf32>
}}"""
    module = tensorplan.read(text)
    with pytest.raises(LocatedError, match=rf"^program:\d+:\d+: tgraph.{message}"):
        level(module)


def test_elements_without_an_upstream_form() -> None:
    text = """func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
  %r = tgraph.sqrt %x : tensor<4xi32>
  func.return %r : tensor<4xi32>
}"""
    module = tensorplan.read(text)
    with pytest.raises(LocatedError, match="sqrt has no upstream form on elements of"):
        by_linalg(module)
