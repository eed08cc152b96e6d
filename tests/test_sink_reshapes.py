"""`tgraph-sink-reshapes` changes no value, and brings operations together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from levels import inputs
from modules import parse, run

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.tgraph.sink_reshapes import TGraphSinkReshapes

SIZES = st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4)


def tensor(shape: list[int]) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}f32>"


def merged(draw: st.DrawFn, shape: list[int]) -> list[int]:
    """The shape with neighbours made one, and 1s put in."""
    result: list[int] = []
    for size in shape:
        match draw(st.sampled_from(["keep", "merge", "insert"])):
            case "merge" if result:
                result[-1] *= size
            case "insert":
                result += [1, size]
            case _:
                result.append(size)
    return result


@st.composite
def chains(draw: st.DrawFn) -> str:
    """An elementwise operation, a reshape, and two more with a broadcast between."""
    fine = draw(SIZES)
    old, new = merged(draw, fine), merged(draw, fine)
    dims = [d for d in range(len(new)) if draw(st.booleans())]
    small = [new[d] for d in dims]
    return (
        f"""
func.func @main(%x: {tensor(old)}, %b: {tensor(small)}, %c: {tensor(new)})
    -> {tensor(new)} {{
  %0 = tgraph.negate %x : {tensor(old)}
  %1 = tgraph.reshape %0 : ({tensor(old)}) -> {tensor(new)}
  %2 = tgraph.broadcast_in_dim %b {{broadcast_dimensions = array<i64: {dims}>}}
     : ({tensor(small)}) -> {tensor(new)}
  %3 = tgraph.subtract %2, %1 : {tensor(new)}
  %4 = tgraph.multiply %3, %c : {tensor(new)}
  func.return %4 : {tensor(new)}
}}""".replace("i64: [", "i64: ")
        .replace("]>", ">")
        .replace("i64: >", "i64>")
    )


@pytest.mark.thorough
@given(chains())
def test_values_stay_as_they_are(text: str) -> None:
    before = parse(text)
    after = run(before, TGraphSinkReshapes())
    values = inputs(before)
    (got,), (want,) = (run_reference(m, values) for m in (after, before))
    np.testing.assert_array_equal(got, want)


def test_group_normalisation_stores_nothing_of_full_size() -> None:
    """Neither the centred values nor the normalised ones, though both are reshaped."""
    whole, groups = "tensor<4x256x8xf32>", "tensor<4x256x2x4xf32>"
    spread = (
        f"{{broadcast_dimensions = array<i64: 0, 2>}} : (tensor<4x2xf32>) -> {groups}"
    )
    sums = f'{{kind = "add", dimensions = array<i64: 1, 3>}} : ({groups})'
    module = parse(f"""
func.func @main(%x: {whole}, %gamma: tensor<8xf32>) -> {whole} {{
  %g = tgraph.reshape %x : ({whole}) -> {groups}
  %sum = tgraph.reduce %g {sums} -> tensor<4x2xf32>
  %mean = tgraph.broadcast_in_dim %sum {spread}
  %centred = tgraph.subtract %g, %mean : {groups}
  %squares = tgraph.multiply %centred, %centred : {groups}
  %power = tgraph.reduce %squares {sums} -> tensor<4x2xf32>
  %scale = tgraph.broadcast_in_dim %power {spread}
  %normal = tgraph.divide %centred, %scale : {groups}
  %flat = tgraph.reshape %normal : ({groups}) -> {whole}
  %gammas = tgraph.broadcast_in_dim %gamma {{broadcast_dimensions = array<i64: 2>}}
          : (tensor<8xf32>) -> {whole}
  %y = tgraph.multiply %flat, %gammas : {whole}
  func.return %y : {whole}
}}""")
    (pool,) = tensorplan.report(tensorplan.plan(module))["pools"]
    assert pool["bytes"] <= 256
