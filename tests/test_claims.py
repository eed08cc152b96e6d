"""Tests what errors about budgets say of an operation at the peak: tiles may need fewer
bytes, or the reason why they cannot."""

import pytest
from modules import parse

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.passes.tgraph.tiling.claims import claim

LESS = """{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %less = tgraph.compare %p, %q {direction = "LT"}
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
      tgraph.yield %less : tensor<i1>
    }"""
NEEDS = "alone needs 1 B in any order, unless it sorts in place: the first element"


def sort(shape: str, options: str, result: str) -> str:
    types = f"(tensor<{shape}xf32>) -> tensor<{result}xf32>"
    return f"tgraph.sort %x {{{options}}} : {types} {LESS}"


@pytest.mark.parametrize(
    ("shape", "operation", "words"),
    [
        ("64", sort("64", "dimension = 0 : i64", "64"), NEEDS),
        ("1x64", sort("1x64", "dimension = 1 : i64", "1x64"), NEEDS),
        ("2x64", sort("2x64", "dimension = 1 : i64", "2x64"), "along dimension 0 may"),
        (
            "64",
            sort("64", "count = 2 : i64, dimension = 0 : i64", "2"),
            "does not support",
        ),
        (
            "4x8",
            "tgraph.tanh %x : tensor<4x8xf32>",
            "tiles along dimension 0 or 1 may take less",
        ),
        (
            "4x8",
            'tgraph.reduce %x {kind = "add", dimensions = array<i64: 0, 1>}'
            " : (tensor<4x8xf32>) -> tensor<f32>",
            "tiles whose results are added up may take less",
        ),
        (
            "4",
            '"npu.relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>',
            "the operation is unknown",
        ),
    ],
)
def test_claims(shape: str, operation: str, words: str) -> None:
    text = f"func.func @main(%x: tensor<{shape}xf32>) {{\n  %y = {operation}\n"
    module = parse(text + "  func.return\n}")
    op = next(
        op for op in module.walk() if op.results and op.results[0].name_hint == "y"
    )
    assert words in claim(op, "1 B")
    assert ("alone needs" in claim(op, "1 B")) == (words == NEEDS)


def test_error_names_an_operation_that_needs_more_than_the_budget() -> None:
    """The error for a small budget names the sort, which has no tiles, and not a
    product that takes more bytes but has tiles."""
    dot = "lhs_contracting_dimensions = array<i64: 1>, "
    dot += "rhs_contracting_dimensions = array<i64: 0>"
    module = parse(f"""
func.func @main(%x: tensor<64xf32>) -> tensor<f32> {{
  %a = tgraph.tanh %x : tensor<64xf32>
  %s = tgraph.sort %a {{dimension = 0 : i64}} : tensor<64xf32> {LESS}
  %c = tgraph.reshape %s : (tensor<64xf32>) -> tensor<64x1xf32>
  %d = tgraph.dot_general %c, %c {{lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 1>}}
    : (tensor<64x1xf32>, tensor<64x1xf32>) -> tensor<64x64xf32>
  %e = tgraph.sine %d : tensor<64x64xf32>
  %f = tgraph.dot_general %e, %d {{{dot}}}
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g = tgraph.reduce %f {{kind = "maximum", dimensions = array<i64: 0, 1>}}
    : (tensor<64x64xf32>) -> tensor<f32>
  func.return %g : tensor<f32>
}}""")
    for budget, words in (
        (4096, "alone takes"),
        (128, "tgraph.sort alone needs 512 bytes"),
    ):
        with pytest.raises(LocatedError, match=words):
            tensorplan.plan(module, budget=budget)
