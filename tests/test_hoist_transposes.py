"""Tests that `tgraph-hoist-transposes` preserves values and stores no additional
copy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from levels import inputs
from modules import parse, run
from sampling import examples

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.tgraph.hoist_transposes import TGraphHoistTransposes

ENDS = {
    "result": "func.return %t : {new}",
    "flat": "%r = tgraph.reshape %t : ({new}) -> {flat}\n  func.return %r : {flat}",
    "sum": "%r = tgraph.add %t, %y : {new}\n  func.return %r : {new}",
    "both": """%r = tgraph.concatenate %t, %y {{dimension = 0 : i64}}
    : ({new}, {new}) -> {twice}
  func.return %r, %t : {twice}, {new}""",
}
RESULTS = {
    "result": "{new}",
    "flat": "{flat}",
    "sum": "{new}",
    "both": "({twice}, {new})",
}


def tensor(sizes: list[int]) -> str:
    return f"tensor<{'x'.join(map(str, sizes))}xf32>"


def array(numbers: list[int]) -> str:
    return f"array<i64{': ' if numbers else ''}{', '.join(map(str, numbers))}>"


@st.composite
def transposes(draw: st.DrawFn) -> str:
    """A program that transposes the result, possibly reshaped, of operations on
    arguments, broadcasts, indices and constants."""
    old = draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4))
    middle = list(old)
    if draw(st.booleans()):
        at = draw(st.integers(0, len(old) - 1))
        parts = draw(st.sampled_from([[1, old[at]], [old[at], 1], [2, old[at] // 2]]))
        if np.prod(parts) == old[at]:
            middle[at : at + 1] = parts
    permutation = list(draw(st.permutations(range(len(middle)))))
    new = [middle[d] for d in permutation]
    dims = [d for d in range(len(old)) if draw(st.booleans())]
    types = {
        "old": tensor(old),
        "middle": tensor(middle),
        "new": tensor(new),
        "flat": tensor([int(np.prod(new))]),
        "twice": tensor([2 * new[0], *new[1:]]),
        "small": tensor([old[d] for d in dims]) if dims else "tensor<f32>",
    }
    end = draw(st.sampled_from(sorted(ENDS)))
    values = draw(st.permutations(["%x", "%wide", "%i", "%c", "%e"]))
    text = """
func.func @main(%x: {old}, %b: {small}, %y: {new}) -> {results} {{
  %wide = tgraph.broadcast_in_dim %b {{broadcast_dimensions = {dims}}}
    : ({small}) -> {old}
  %i = tgraph.iota {{dimension = {along} : i64}} : {old}
  %c = tgraph.constant<2.0 : f32> : {old}
  %e = tgraph.exponential %x : {old}
  %0 = tgraph.multiply {a}, {b} : {old}
  %1 = tgraph.subtract %0, {d} : {old}
  %2 = tgraph.reshape %1 : ({old}) -> {middle}
  %t = tgraph.transpose %2 {{permutation = {permutation}}} : ({middle}) -> {new}
  {end}
}}"""
    return text.format(
        **types,
        a=values[0],
        b=values[1],
        d=values[2],
        dims=array(dims),
        along=draw(st.integers(0, len(old) - 1)),
        permutation=array(permutation),
        end=ENDS[end].format(**types),
        results=RESULTS[end].format(**types),
    )


@settings(max_examples=examples(200))
@given(transposes())
def test_values_are_preserved(text: str) -> None:
    before = parse(text)
    values = inputs(before)
    for got, want in zip(
        run_reference(run(before, TGraphHoistTransposes()), values),
        run_reference(before, values),
        strict=True,
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("end", ["result", "flat", "sum"])
def test_transposed_values_are_not_stored(end: str) -> None:
    """A normalized image is transposed to channels first, and then returned, flattened,
    or added to another image."""
    types = {
        "old": "tensor<64x32x4xf32>",
        "new": "tensor<4x64x32xf32>",
        "flat": "tensor<8192xf32>",
    }
    text = """
func.func @main(%x: {old}, %mean: tensor<4xf32>, %y: {new}) -> {results} {{
  %0 = tgraph.broadcast_in_dim %mean {{broadcast_dimensions = array<i64: 2>}}
    : (tensor<4xf32>) -> {old}
  %1 = tgraph.subtract %x, %0 : {old}
  %2 = tgraph.tanh %1 : {old}
  %t = tgraph.transpose %2 {{permutation = array<i64: 2, 0, 1>}} : ({old}) -> {new}
  {end}
}}"""
    text = text.format(
        **types, results=RESULTS[end].format(**types), end=ENDS[end].format(**types)
    )
    assert not tensorplan.report(tensorplan.plan(parse(text)))["pools"]


def test_transpose_of_normalized_rows_is_not_moved() -> None:
    """The transpose of normalized rows is not moved, so they remain one group."""
    module = parse("""
func.func @main(%x: tensor<8x4xf32>) -> tensor<4x8xf32> {
  %0 = tgraph.reduce %x {kind = "add", dimensions = array<i64: 1>}
    : (tensor<8x4xf32>) -> tensor<8xf32>
  %1 = tgraph.broadcast_in_dim %0 {broadcast_dimensions = array<i64: 0>}
    : (tensor<8xf32>) -> tensor<8x4xf32>
  %2 = tgraph.divide %x, %1 : tensor<8x4xf32>
  %3 = tgraph.transpose %2 {permutation = array<i64: 1, 0>}
    : (tensor<8x4xf32>) -> tensor<4x8xf32>
  func.return %3 : tensor<4x8xf32>
}""")
    assert str(run(module, TGraphHoistTransposes())) == str(module)
