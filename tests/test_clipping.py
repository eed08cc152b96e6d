"""Tests that `tgraph-fuse` compares clipped values instead of the original values
without changing any mask, even for NaN, infinities and both zeros.
"""

import numpy as np
import pytest
from modules import parse, run

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.tgraph.fuse import TGraphFuse

SPECIAL = np.array([np.nan, -np.inf, -1, -0.0, 0.0, 1, 2, np.inf], "f4")

MASK = """
func.func @main(%a: tensor<64xf32>, %b: tensor<64xf32>)
    -> (tensor<64xf32>, tensor<64xi1>) {{
  %x = tgraph.negate %a : tensor<64xf32>
  %y = tgraph.{clip} %x, %b : tensor<64xf32>
  %m = tgraph.compare {operands} {{direction = "{direction}"}}
       : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
  func.return %y, %m : tensor<64xf32>, tensor<64xi1>
}}
"""
ANSWERED = {
    ("maximum", "%x, %b"): ("GT", "LE"),
    ("maximum", "%b, %x"): ("LT", "GE"),
    ("minimum", "%x, %b"): ("LT", "GE"),
    ("minimum", "%b, %x"): ("GT", "LE"),
}


@pytest.mark.parametrize("direction", ["EQ", "NE", "GT", "GE", "LT", "LE"])
@pytest.mark.parametrize(("clip", "operands"), ANSWERED)
def test_masks_do_not_change(clip: str, operands: str, direction: str) -> None:
    text = MASK.format(clip=clip, operands=operands, direction=direction)
    before = parse(text)
    after = run(before, TGraphFuse(mode="none"))
    a, b = np.repeat(SPECIAL, 8), np.tile(SPECIAL, 8)
    for got, want in zip(
        run_reference(after, [a, b]), run_reference(before, [a, b]), strict=True
    ):
        np.testing.assert_array_equal(got, want)
    (compare,) = (op for op in after.walk() if op.name == "tgraph.compare")
    names = [value.name_hint for value in compare.operands]
    assert ("y" in names) == (direction in ANSWERED[clip, operands])


def test_training_step_keeps_one_value_of_each_relu() -> None:
    """The gradient of each of three hidden layers needs only the result of its ReLU."""
    width, mask = "tensor<16x16xf32>", "tensor<16x16xi1>"
    product = "{lhs_contracting_dimensions = array<i64: 1>,"
    product += " rhs_contracting_dimensions = array<i64: 0>}"
    forward = f"""
func.func @main(%h0: {width}, %w: {width}) -> {width} {{
  %zero = tgraph.constant<0.0 : f32> : {width}
"""
    for i in range(3):
        forward += f"""
  %z{i} = tgraph.dot_general %h{i}, %w {product} : {width}
  %h{i + 1} = tgraph.maximum %z{i}, %zero : {width}
"""
    backward, gradient = "", "h3"
    for i in reversed(range(3)):
        backward += f"""
  %m{i} = tgraph.compare %z{i}, %zero {{direction = "GT"}}
        : ({width}, {width}) -> {mask}
  %s{i} = tgraph.select %m{i}, %{gradient}, %zero
        : ({mask}, {width}, {width}) -> {width}
  %p{i} = tgraph.multiply %s{i}, %h{i} : {width}
  %g{i} = tgraph.dot_general %p{i}, %w {product} : {width}
"""
        gradient = f"g{i}"
    text = f"{forward}{backward}  func.return %{gradient} : {width}\n}}"
    (pool,) = tensorplan.report(tensorplan.plan(parse(text), reuse_outputs=False))[
        "pools"
    ]
    assert pool["bytes"] <= 4 * 1024  # h1, h2, h3, and a gradient, but not z1 and z2
