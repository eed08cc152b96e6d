"""Tests that `tgraph-sink-reshapes` preserves values and makes operations adjacent."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from levels import inputs
from modules import parse, run
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.tgraph.sink_reshapes import TGraphSinkReshapes

SIZES = st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4)


def tensor(shape: list[int]) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}f32>"


def check_without_an_arena(module: ModuleOp) -> None:
    """Asserts that the plan has no arena, and that the plan and the pass alone compute
    the values of the reference interpreter."""
    values = inputs(module)
    (want,) = run_reference(module, values)
    planned = tensorplan.plan(module)
    (got,) = tensorplan.compile(planned)(*values)
    np.testing.assert_array_equal(got, want)
    (got,) = run_reference(run(module, TGraphSinkReshapes()), values)
    np.testing.assert_array_equal(got, want)
    assert not tensorplan.report(planned)["pools"]


def merged(draw: st.DrawFn, shape: list[int]) -> list[int]:
    """The shape with some neighboring dimensions merged and some 1s inserted."""
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
    """An elementwise operation, a reshape, and two more operations with a broadcast."""
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
def test_values_of_random_chains_are_unchanged(text: str) -> None:
    before = parse(text)
    after = run(before, TGraphSinkReshapes())
    values = inputs(before)
    (got,), (want,) = (run_reference(m, values) for m in (after, before))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("rows", "depth"),
    [
        ((4, 3), (6,)),
        ((4, 3), (2, 3)),
        ((1, 5), (6,)),
        ((2, 1, 3), (1, 4, 1)),
        ((3, 2), (1,)),
        ((7,), (2, 3)),
    ],
    ids=str,
)
def test_row_dimensions_of_a_product_stay_separate(
    rows: tuple[int, ...], depth: tuple[int, ...]
) -> None:
    """A layer merges its row dimensions for the product. Only its result is stored."""
    k = math.prod(depth)
    flat, result = tensor([math.prod(rows), 5]), tensor([*rows, 5])
    module = parse(f"""
func.func @main(%x: {tensor([*rows, *depth])}, %w: {tensor([k, 5])}, %r: {result})
    -> {result} {{
  %0 = tgraph.reshape %x
     : ({tensor([*rows, *depth])}) -> {tensor([math.prod(rows), k])}
  %1 = tgraph.dot_general %0, %w {{lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}}
     : ({tensor([math.prod(rows), k])}, {tensor([k, 5])}) -> {flat}
  %2 = tgraph.negate %1 : {flat}
  %3 = tgraph.reshape %2 : ({flat}) -> {result}
  %y = tgraph.add %3, %r : {result}
  func.return %y : {result}
}}""")
    values = inputs(module)
    (want,) = run_reference(module, values)
    (got,) = run_reference(run(module, TGraphSinkReshapes()), values)
    np.testing.assert_allclose(got, want, 1e-6)
    assert not tensorplan.report(tensorplan.plan(module))["pools"]


def test_group_normalization_stores_nothing_of_full_size() -> None:
    """Neither the centered nor the normalized values are stored, though both are
    reshaped."""
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
  %centered = tgraph.subtract %g, %mean : {groups}
  %squares = tgraph.multiply %centered, %centered : {groups}
  %power = tgraph.reduce %squares {sums} -> tensor<4x2xf32>
  %scale = tgraph.broadcast_in_dim %power {spread}
  %normal = tgraph.divide %centered, %scale : {groups}
  %flat = tgraph.reshape %normal : ({groups}) -> {whole}
  %gammas = tgraph.broadcast_in_dim %gamma {{broadcast_dimensions = array<i64: 2>}}
          : (tensor<8xf32>) -> {whole}
  %y = tgraph.multiply %flat, %gammas : {whole}
  func.return %y : {whole}
}}""")
    (pool,) = tensorplan.report(tensorplan.plan(module))["pools"]
    assert pool["bytes"] <= 256


def test_operation_that_stays_leaves_no_dead_users() -> None:
    """Operations created to reshape its operands are erased."""
    module = parse("""
func.func @main(%a: tensor<6xf32>, %b: tensor<3xf32>, %c: tensor<3x2xf32>)
    -> tensor<2x3xf32> {
  %0 = tgraph.exponential %a : tensor<6xf32>
  %x = tgraph.reshape %0 : (tensor<6xf32>) -> tensor<2x3xf32>
  %1 = tgraph.reshape %b : (tensor<3xf32>) -> tensor<1x3xf32>
  %y = tgraph.concatenate %1, %1 {dimension = 0 : i64}
     : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  %z = tgraph.transpose %c {permutation = array<i64: 1, 0>}
     : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %sum = tgraph.clamp %x, %y, %z : (tensor<2x3xf32>, tensor<2x3xf32>,
    tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %sum : tensor<2x3xf32>
}""")
    module = run(module, TGraphSinkReshapes())
    for op in module.walk():
        for result in op.results:
            assert all(use.operation.parent for use in result.uses)


@pytest.mark.parametrize("shape", [(6, 2, 3), (2, 3, 6), (2, 1, 3, 3, 2), (1, 36)])
def test_identity_matrix_is_computed_in_its_final_shape(
    shape: tuple[int, ...],
) -> None:
    split = "tensor<" + "x".join(map(str, shape)) + "xf32>"
    module = parse(f"""
func.func @main() -> {split} {{
  %i = tgraph.iota {{dimension = 0 : i64}} : tensor<6x6xi32>
  %j = tgraph.iota {{dimension = 1 : i64}} : tensor<6x6xi32>
  %is = tgraph.compare %i, %j {{direction = "EQ"}}
      : (tensor<6x6xi32>, tensor<6x6xi32>) -> tensor<6x6xi1>
  %eye = tgraph.convert %is : (tensor<6x6xi1>) -> tensor<6x6xf32>
  %y = tgraph.reshape %eye : (tensor<6x6xf32>) -> {split}
  func.return %y : {split}
}}""")
    module = run(module, TGraphSinkReshapes())
    assert ("tgraph.reshape" in str(module)) == (shape == (1, 36))
    (got,) = run_reference(module, [])
    np.testing.assert_array_equal(got, np.eye(6, dtype=np.float32).reshape(shape))


def test_rounded_indices_stay_reshaped() -> None:
    """A sum of products in bf16 differs from the index that the iota rounds."""
    module = parse("""
func.func @main() -> tensor<30x20xbf16> {
  %i = tgraph.iota {dimension = 0 : i64} : tensor<600xbf16>
  %j = tgraph.negate %i : tensor<600xbf16>
  %y = tgraph.reshape %j : (tensor<600xbf16>) -> tensor<30x20xbf16>
  func.return %y : tensor<30x20xbf16>
}""")
    (want,) = run_reference(module, [])
    (got,) = run_reference(run(module, TGraphSinkReshapes()), [])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "repeats",
    [[(1, 2)], [(1, 2), (2, 3)], [(2, 2), (1, 2)], [(1, 2), (1, 3)], [(0, 4), (2, 1)]],
    ids=str,
)
@pytest.mark.parametrize("is_tiled", [False, True])
def test_repeated_values_are_not_stored(
    repeats: list[tuple[int, int]], is_tiled: bool
) -> None:
    """Either each element is repeated, as in upsampling, or a whole dimension."""
    sizes, lines = [2, 3, 4], list[str]()
    for n, (dim, often) in enumerate(repeats):
        at = dim if is_tiled else dim + 1
        apart = [*sizes[:at], often, *sizes[at:]]
        dims = ", ".join(str(d) for d in range(4) if d != at)
        joined = [*sizes[:dim], sizes[dim] * often, *sizes[dim + 1 :]]
        lines += [
            f"%b{n} = tgraph.broadcast_in_dim %{n} {{broadcast_dimensions = "
            f"array<i64: {dims}>}} : ({tensor(sizes)}) -> {tensor(apart)}",
            f"%{n + 1} = tgraph.reshape %b{n} : ({tensor(apart)}) -> {tensor(joined)}",
        ]
        sizes = joined
    body, last, wide = "\n".join(lines), len(repeats), tensor(sizes)
    module = parse(f"""
func.func @main(%0: {tensor([2, 3, 4])}, %y: {wide}) -> {wide} {{
  {body}
  %s = tgraph.subtract %{last}, %y : {wide}
  func.return %s : {wide}
}}""")
    check_without_an_arena(module)


@pytest.mark.parametrize("dims", ["0, 1, 2", "1", "2"])
def test_repeated_values_are_reduced_in_place(dims: str) -> None:
    """The reduced dimensions include the repeated dimension, or do not."""
    kept = [n for d, n in enumerate((2, 12, 4)) if str(d) not in dims]
    module = parse(f"""
func.func @main(%x: tensor<2x3x4xf32>, %y: tensor<2x12x4xf32>) -> {tensor(kept)} {{
  %b = tgraph.broadcast_in_dim %x {{broadcast_dimensions = array<i64: 0, 1, 3>}}
    : (tensor<2x3x4xf32>) -> tensor<2x3x4x4xf32>
  %r = tgraph.reshape %b : (tensor<2x3x4x4xf32>) -> tensor<2x12x4xf32>
  %s = tgraph.subtract %r, %y : tensor<2x12x4xf32>
  %m = tgraph.reduce %s {{kind = "maximum", dimensions = array<i64: {dims}>}}
    : (tensor<2x12x4xf32>) -> {tensor(kept)}
  func.return %m : {tensor(kept)}
}}""")
    check_without_an_arena(module)
    assert str(run(module, TGraphSinkReshapes())).count("tgraph.reshape %y") == 1


@pytest.mark.parametrize("at", [1, 2], ids=["groups outside", "groups inside"])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("heads", [2, 1])
def test_repeated_batches_of_a_product_are_not_stored(
    at: int, side: int, heads: int
) -> None:
    """Queries share keys in groups, as in grouped-query attention. The repeated operand
    is the first or the second one."""
    shared, whole = tensor([2, heads, 5, 4]), tensor([2, 3 * heads, 5, 4])
    apart = tensor([*[2, heads][:at], 3, *[2, heads][at:], 5, 4])
    kept = ", ".join(str(d) for d in range(5) if d != at)
    operands = ("%r, %q", "%q, %r")[side]
    module = parse(f"""
func.func @main(%q: {whole}, %k: {shared}) -> {tensor([2, 3 * heads, 5, 5])} {{
  %b = tgraph.broadcast_in_dim %k {{broadcast_dimensions = array<i64: {kept}>}}
     : ({shared}) -> {apart}
  %r = tgraph.reshape %b : ({apart}) -> {whole}
  %s = tgraph.dot_general {operands} {{lhs_batching_dimensions = array<i64: 0, 1>,
    rhs_batching_dimensions = array<i64: 0, 1>, lhs_contracting_dimensions =
    array<i64: 3>, rhs_contracting_dimensions = array<i64: 3>}}
     : ({whole}, {whole}) -> {tensor([2, 3 * heads, 5, 5])}
  func.return %s : {tensor([2, 3 * heads, 5, 5])}
}}""")
    values = inputs(module)
    (want,) = run_reference(module, values)
    (got,) = run_reference(run(module, TGraphSinkReshapes()), values)
    np.testing.assert_array_equal(got, want)
    planned = tensorplan.plan(module)
    assert not tensorplan.report(planned)["pools"]
    (got,) = tensorplan.compile(planned)(*values)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [7, 1])
@pytest.mark.parametrize("turned", [False, True])
def test_merged_sums_go_through_operands_as_stored(rows: int, turned: bool) -> None:
    """Both operands merge transposed dimensions, as in `J(x) @ J(y).T` of Jacobians."""
    right, shape, dim = ("%t", [20, 6], 0) if turned else ("%r1", [6, 20], 1)
    x, result = tensor([rows, 5, 4]), tensor([rows, 6])
    module = parse(f"""
func.func @main(%x: {x}, %y: tensor<6x5x4xf32>) -> {result} {{
  %x0 = tgraph.transpose %x {{permutation = array<i64: 0, 2, 1>}}
    : ({x}) -> {tensor([rows, 4, 5])}
  %y0 = tgraph.transpose %y {{permutation = array<i64: 0, 2, 1>}}
    : (tensor<6x5x4xf32>) -> tensor<6x4x5xf32>
  %r0 = tgraph.reshape %x0 : ({tensor([rows, 4, 5])}) -> {tensor([rows, 20])}
  %r1 = tgraph.reshape %y0 : (tensor<6x4x5xf32>) -> tensor<6x20xf32>
  %t = tgraph.transpose %r1 {{permutation = array<i64: 1, 0>}}
    : (tensor<6x20xf32>) -> tensor<20x6xf32>
  %s = tgraph.dot_general %r0, {right} {{lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: {dim}>}}
    : ({tensor([rows, 20])}, {tensor(shape)}) -> {result}
  func.return %s : {result}
}}""")
    values = inputs(module)
    (want,) = run_reference(module, values)
    (got,) = run_reference(run(module, TGraphSinkReshapes()), values)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    planned = tensorplan.plan(module)
    assert not tensorplan.report(planned)["pools"]
    (got,) = tensorplan.compile(planned)(*values)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_sums_over_dimensions_merged_in_different_orders_stay() -> None:
    module = parse("""
func.func @main(%x: tensor<3x4x4xf32>, %y: tensor<2x4x4xf32>) -> tensor<3x2xf32> {
  %t = tgraph.transpose %x {permutation = array<i64: 0, 2, 1>} : tensor<3x4x4xf32>
  %0 = tgraph.reshape %t : (tensor<3x4x4xf32>) -> tensor<3x16xf32>
  %1 = tgraph.reshape %y : (tensor<2x4x4xf32>) -> tensor<2x16xf32>
  %s = tgraph.dot_general %0, %1 {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 1>}
    : (tensor<3x16xf32>, tensor<2x16xf32>) -> tensor<3x2xf32>
  func.return %s : tensor<3x2xf32>
}""")
    assert run(module, TGraphSinkReshapes()).is_structurally_equivalent(module)


def test_stacked_values_are_added_separately() -> None:
    """Sines and cosines of angles are interleaved, as in positional encodings."""
    module = parse("""
func.func @main(%x: tensor<64x64xf32>, %w: tensor<32xf32>) -> tensor<64x64xf32> {
  %i = tgraph.iota {dimension = 0 : i64} : tensor<64x32xf32>
  %v = tgraph.exponential %w : tensor<32xf32>
  %b = tgraph.broadcast_in_dim %v {broadcast_dimensions = array<i64: 1>}
    : (tensor<32xf32>) -> tensor<64x32xf32>
  %a = tgraph.divide %i, %b : tensor<64x32xf32>
  %s = tgraph.sine %a : tensor<64x32xf32>
  %c = tgraph.cosine %a : tensor<64x32xf32>
  %0 = tgraph.reshape %s : (tensor<64x32xf32>) -> tensor<64x32x1xf32>
  %1 = tgraph.reshape %c : (tensor<64x32xf32>) -> tensor<64x32x1xf32>
  %2 = tgraph.concatenate %0, %1 {dimension = 2 : i64}
    : (tensor<64x32x1xf32>, tensor<64x32x1xf32>) -> tensor<64x32x2xf32>
  %e = tgraph.reshape %2 : (tensor<64x32x2xf32>) -> tensor<64x64xf32>
  %y = tgraph.add %x, %e : tensor<64x64xf32>
  func.return %y : tensor<64x64xf32>
}""")
    values = inputs(module)
    (want,) = run_reference(module, values)
    planned = tensorplan.plan(module)
    (got,) = tensorplan.compile(planned)(*values)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)
    (pool,) = tensorplan.report(planned)["pools"]
    assert pool["bytes"] == 128  # the exponentials


def test_stacked_part_with_another_reader() -> None:
    module = parse("""
func.func @main(%x: tensor<3xf32>) -> (tensor<3x2xf32>, tensor<3xf32>) {
  %a = tgraph.negate %x : tensor<3xf32>
  %b = tgraph.abs %x : tensor<3xf32>
  %0 = tgraph.reshape %a : (tensor<3xf32>) -> tensor<3x1xf32>
  %1 = tgraph.reshape %b : (tensor<3xf32>) -> tensor<3x1xf32>
  %2 = tgraph.concatenate %0, %1 {dimension = 1 : i64}
    : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  func.return %2, %a : tensor<3x2xf32>, tensor<3xf32>
}""")
    values = inputs(module)
    got = run_reference(run(module, TGraphSinkReshapes()), values)
    for one, other in zip(got, run_reference(module, values), strict=True):
        np.testing.assert_array_equal(one, other)
