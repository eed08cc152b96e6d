"""Compares forms of StableHLO operations that JAX seldom writes with XLA.

Each program runs in the reference interpreter, and planned: with native code and with
NumPy.
"""

import numpy as np
import pytest
from jax_cpu import run_stablehlo

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.runtime.executor import Executable

pytest.importorskip("jax")

thorough = pytest.mark.thorough

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 9)).astype(np.float32)
EDGES = np.array(
    [0, -0.0, 1, -2.5, 1e-8, 6e-5, 65504, 65520, 1e9, np.inf, -np.inf, np.nan, 1e-40],
    np.float32,
)


def run(text: str, *inputs: np.ndarray) -> list[np.ndarray]:
    """The results of the reference interpreter. Asserts that planned programs agree."""
    module = tensorplan.from_stablehlo(text).module
    planned = tensorplan.plan(module)
    want = run_reference(module, inputs)
    for native in (True, False):
        for have, expected in zip(
            Executable(planned, native=native)(*inputs), want, strict=True
        ):
            np.testing.assert_allclose(have, expected, rtol=1e-5, atol=1e-6)
    return want


def check(text: str, *inputs: np.ndarray) -> None:
    for have, want in zip(run(text, *inputs), run_stablehlo(text, inputs), strict=True):
        assert have.dtype == want.dtype
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("exponent", "mantissa"),
    [
        (4, 3),
        (3, 0),
        *(
            pytest.param(*bits, marks=thorough)
            for bits in [(5, 10), (5, 2), (8, 7), (8, 23), (2, 23)]
        ),
    ],
)
def test_reduce_precision(exponent: int, mantissa: int) -> None:
    """Formats with any number of bits work. Ties are rounded to even, and small numbers
    become zero. Without mantissa bits, StableHLO's interpreter turns NaN into infinity,
    unlike XLA."""
    edges = EDGES if mantissa else EDGES[EDGES == EDGES]
    count = 64 + len(edges)
    halves = np.ldexp(np.arange(1, 65, dtype=np.float32) / 32, 1)
    text = f"""func.func @main(%x: tensor<{count}xf32>) -> tensor<{count}xf32> {{
      %0 = stablehlo.reduce_precision %x, format = e{exponent}m{mantissa}
        : tensor<{count}xf32>
      return %0 : tensor<{count}xf32>
    }}"""
    check(text, np.concatenate([edges, halves]))


@thorough
@pytest.mark.parametrize("element", ["f16", "f64", "bf16"])
def test_reduce_precision_of_other_floats(element: str) -> None:
    text = f"""func.func @main(%x: tensor<13xf32>) -> tensor<13xf32> {{
      %0 = stablehlo.convert %x : (tensor<13xf32>) -> tensor<13x{element}>
      %1 = stablehlo.reduce_precision %0, format = e4m3 : tensor<13x{element}>
      %2 = stablehlo.convert %1 : (tensor<13x{element}>) -> tensor<13xf32>
      return %2 : tensor<13xf32>
    }}"""
    check(text, EDGES)


REDUCE_WINDOW = """func.func @main(%x: tensor<6x9xf32>, %n: tensor<6x9xi32>)
    -> (tensor<SHAPExf32>, tensor<SHAPExi32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = "stablehlo.reduce_window"(%x, %n, %low, %zero) <{ATTRIBUTES}> ({
    ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
      %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
      %3 = stablehlo.select %1, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
  }) : (tensor<6x9xf32>, tensor<6x9xi32>, tensor<f32>, tensor<i32>)
    -> (tensor<SHAPExf32>, tensor<SHAPExi32>)
  return %0#0, %0#1 : tensor<SHAPExf32>, tensor<SHAPExi32>
}"""


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        pytest.param("6x5", "window_dimensions = array<i64: 1, 5>", marks=thorough),
        (
            "3x4",
            "window_dimensions = array<i64: 3, 7>, window_strides = array<i64: 2, 2>, "
            "padding = dense<[[1, 1], [2, 3]]> : tensor<2x2xi64>",
        ),
        pytest.param(
            "2x14",
            "window_dimensions = array<i64: 3, 4>, base_dilations = array<i64: 1, 2>, "
            "window_dilations = array<i64: 2, 1>",
            marks=thorough,
        ),
        pytest.param("0x9", "window_dimensions = array<i64: 7, 1>", marks=thorough),
    ],
)
def test_reduce_window_with_a_custom_body(shape: str, attributes: str) -> None:
    """The largest element of each window, and its index."""
    text = REDUCE_WINDOW.replace("SHAPE", shape).replace("ATTRIBUTES", attributes)
    numbers = np.arange(1, 55, dtype=np.int32).reshape(6, 9)
    check(text, X, numbers)


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        (
            "10x11",
            "window_dimensions = array<i64: 3, 7>, "
            "padding = dense<[[4, 2], [3, 5]]> : tensor<2x2xi64>",
        ),
        pytest.param(
            "5x7",
            "window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 1, 4>, "
            "padding = dense<[[-1, 1], [2, 3]]> : tensor<2x2xi64>, "
            "base_dilations = array<i64: 1, 3>, window_dilations = array<i64: 1, 2>",
            marks=thorough,
        ),
        pytest.param(
            "7x9",
            "window_dimensions = array<i64: 2, 1>, "
            "padding = dense<[[7, 7], [0, 0]]> : tensor<2x2xi64>, "
            "window_dilations = array<i64: 13, 1>",
            marks=thorough,
        ),
    ],
)
def test_reduce_window_excludes_padding(shape: str, attributes: str) -> None:
    """The body would return NaN for two initial values."""
    text = f"""func.func @main(%x: tensor<6x9xf32>) -> tensor<{shape}xf32> {{
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %0 = "stablehlo.reduce_window"(%x, %low) <{{{attributes}}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %1 = stablehlo.maximum %a, %b : tensor<f32>
          %2 = stablehlo.minimum %a, %b : tensor<f32>
          %3 = stablehlo.subtract %2, %1 : tensor<f32>
          %4 = stablehlo.exponential %3 : tensor<f32>
          %5 = stablehlo.log_plus_one %4 : tensor<f32>
          %6 = stablehlo.add %1, %5 : tensor<f32>
          stablehlo.return %6 : tensor<f32>
      }}) : (tensor<6x9xf32>, tensor<f32>) -> tensor<{shape}xf32>
      return %0 : tensor<{shape}xf32>
    }}"""
    check(text, X)


@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_logsumexp_of_complex_numbers(reverse: bool) -> None:
    import jax

    def cumulative(x: jax.Array) -> jax.Array:
        return jax.lax.cumlogsumexp(x, 1, reverse)

    x = (X + 1j * X[::-1]).astype(np.complex64)
    have = tensorplan.jit(cumulative)(x)
    np.testing.assert_allclose(have, jax.jit(cumulative)(x), rtol=1e-5)


def test_reduce_window_doubles_partial_windows() -> None:
    text = """func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
      %zero = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %0 = "stablehlo.reduce_window"(%x, %zero) <{
        window_dimensions = array<i64: 1000>,
        padding = dense<[[999, 0]]> : tensor<1x2xi64>
      }> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %1 = func.call @logaddexp(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          stablehlo.return %1 : tensor<f32>
      }) : (tensor<1000xf32>, tensor<f32>) -> tensor<1000xf32>
      return %0 : tensor<1000xf32>
    }
    func.func private @logaddexp(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.maximum %a, %b : tensor<f32>
      %1 = stablehlo.minimum %a, %b : tensor<f32>
      %2 = stablehlo.subtract %1, %0 : tensor<f32>
      %3 = stablehlo.exponential %2 : tensor<f32>
      %4 = stablehlo.log_plus_one %3 : tensor<f32>
      %5 = stablehlo.add %0, %4 : tensor<f32>
      %6 = stablehlo.compare EQ, %0, %1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %two = stablehlo.constant dense<0.6931472> : tensor<f32>
      %7 = stablehlo.add %0, %two : tensor<f32>
      %8 = stablehlo.select %6, %7, %5 : tensor<i1>, tensor<f32>
      return %8 : tensor<f32>
    }"""
    module = tensorplan.from_stablehlo(text).module
    exponentials = [op for op in module.walk() if op.name == "tgraph.exponential"]
    assert len(exponentials) == 9 + 5 + 1  # doublings, 1000 = 0b1111101000, start
    x = RNG.normal(size=1000).astype(np.float32)
    (have,) = tensorplan.compile(tensorplan.plan(module))(x)
    np.testing.assert_allclose(have, np.logaddexp.accumulate(x), rtol=1e-5, atol=1e-5)


def test_map_and_tuples() -> None:
    check(
        """func.func @main(%x: tensor<6x9xf32>, %y: tensor<6x9xf32>)
            -> (tensor<6x9xf32>, tensor<6x9xf32>) {
          %0 = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0, 1>}> ({
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
              %half = stablehlo.constant dense<0.5> : tensor<f32>
              %1 = stablehlo.multiply %a, %half : tensor<f32>
              %2 = stablehlo.maximum %1, %b : tensor<f32>
              stablehlo.return %2 : tensor<f32>
          }) : (tensor<6x9xf32>, tensor<6x9xf32>) -> tensor<6x9xf32>
          %1 = stablehlo.tuple %0 : tuple<tensor<6x9xf32>>
          %2 = stablehlo.tuple %x, %1 : tuple<tensor<6x9xf32>, tuple<tensor<6x9xf32>>>
          %3 = stablehlo.get_tuple_element %2[1]
            : (tuple<tensor<6x9xf32>, tuple<tensor<6x9xf32>>>) -> tuple<tensor<6x9xf32>>
          %4 = stablehlo.get_tuple_element %3[0]
            : (tuple<tensor<6x9xf32>>) -> tensor<6x9xf32>
          %5 = stablehlo.get_tuple_element %2[0]
            : (tuple<tensor<6x9xf32>, tuple<tensor<6x9xf32>>>) -> tensor<6x9xf32>
          return %4, %5 : tensor<6x9xf32>, tensor<6x9xf32>
        }""",
        X,
        -X,
    )
    passed = """func.func @main(%x: tensor<4xf32>) -> tuple<tensor<4xf32>> {
      %0 = stablehlo.tuple %x : tuple<tensor<4xf32>>
      return %0 : tuple<tensor<4xf32>>
    }"""
    with pytest.raises(
        LocatedError, match=("tuple is not supported: its result is forwarded")
    ):
        tensorplan.from_stablehlo(passed)


def test_batch_norms_in_training() -> None:
    """And the number of the only replica."""
    wide, one = "tensor<6x9xf32>", "tensor<9xf32>"
    options = "{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}"
    check(
        f"""func.func @main(%x: {wide}, %s: {one}, %o: {one}, %g: {wide})
            -> ({wide}, {one}, {one}, {wide}, {one}, {one}, tensor<ui32>) {{
          %y, %m, %v = "stablehlo.batch_norm_training"(%x, %s, %o) {options}
            : ({wide}, {one}, {one}) -> ({wide}, {one}, {one})
          %a, %b, %c = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %g) {options}
            : ({wide}, {one}, {one}, {one}, {wide}) -> ({wide}, {one}, {one})
          %n = stablehlo.replica_id : tensor<ui32>
          return %y, %m, %v, %a, %b, %c, %n
            : {wide}, {one}, {one}, {wide}, {one}, {one}, tensor<ui32>
        }}""",
        *(X, X[0], X[1], X[::-1].copy()),
    )


def test_dynamic_convolution_with_constant_padding() -> None:
    types = "(tensor<1x6x9x1xf32>, tensor<3x2x1x2xf32>"
    dynamic = f"""func.func @main(%x: tensor<1x6x9x1xf32>, %w: tensor<3x2x1x2xf32>)
        -> tensor<1x4x10x2xf32> {{
      %p = stablehlo.constant dense<[[2, 1], [0, 2]]> : tensor<2x2xi64>
      %0 = "stablehlo.dynamic_conv"(%x, %w, %p) <{{
        batch_group_count = 1 : i64,
        dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
        feature_group_count = 1 : i64, window_strides = array<i64: 2, 1>
      }}> : {types}, tensor<2x2xi64>) -> tensor<1x4x10x2xf32>
      return %0 : tensor<1x4x10x2xf32>
    }}"""
    static = f"""func.func @main(%x: tensor<1x6x9x1xf32>, %w: tensor<3x2x1x2xf32>)
        -> tensor<1x4x10x2xf32> {{
      %0 = stablehlo.convolution(%x, %w)
        dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{stride = [2, 1], pad = [[2, 1], [0, 2]]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : {types}) -> tensor<1x4x10x2xf32>
      return %0 : tensor<1x4x10x2xf32>
    }}"""
    inputs = X.reshape(1, 6, 9, 1), RNG.normal(size=(3, 2, 1, 2)).astype(np.float32)
    (want,) = run_stablehlo(static, inputs)
    np.testing.assert_allclose(run(dynamic, *inputs)[0], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "element",
    [
        "i64",
        *(
            pytest.param(x, marks=thorough)
            for x in ("i8", "ui16", "i32", "ui32", "ui64")
        ),
    ],
)
def test_mulhi(element: str) -> None:
    """The upper half of each product, computed with Python's integers."""
    dtype = np.dtype(element.replace("i", "int"))
    limits = np.iinfo(dtype)
    edges = [limits.min, limits.min + 1, 0, 1, 2, limits.max - 1, limits.max]
    drawn = RNG.integers(limits.min, limits.max, 13, dtype, endpoint=True)
    x = np.concatenate([np.array(edges, dtype), drawn])
    x, y = (part.ravel() for part in np.meshgrid(x, x))
    text = f"""func.func @main(%x: tensor<400x{element}>, %y: tensor<400x{element}>)
        -> tensor<400x{element}> {{
      %0 = "chlo.mulhi"(%x, %y)
        : (tensor<400x{element}>, tensor<400x{element}>) -> tensor<400x{element}>
      return %0 : tensor<400x{element}>
    }}"""
    want = [int(a) * int(b) >> limits.bits for a, b in zip(x, y, strict=True)]
    assert run(text, x, y)[0].tolist() == want


def test_bitcast_between_bits_and_numbers() -> None:
    """The first bit is the lowest."""
    bits = RNG.random((3, 32)) < 0.4
    numbers = RNG.integers(0, 65536, 5).astype(np.uint16)
    have = run(
        """func.func @main(%x: tensor<3x32xi1>, %y: tensor<5xui16>)
            -> (tensor<3xf32>, tensor<5x16xi1>) {
          %0 = stablehlo.bitcast_convert %x : (tensor<3x32xi1>) -> tensor<3xf32>
          %1 = stablehlo.bitcast_convert %y : (tensor<5xui16>) -> tensor<5x16xi1>
          return %0, %1 : tensor<3xf32>, tensor<5x16xi1>
        }""",
        bits,
        numbers,
    )
    packed = np.packbits(bits, axis=1, bitorder="little").view(np.float32)
    np.testing.assert_array_equal(have[0], packed[:, 0])
    unpacked = np.unpackbits(numbers.view(np.uint8), bitorder="little")
    np.testing.assert_array_equal(have[1], unpacked.reshape(5, 16))


SCATTER = """func.func @main(
    %x: tensor<6x9xf32>, %at: tensor<5x1xi32>, %u: tensor<5x9xf32>) -> tensor<6x9xf32> {
  %0 = "stablehlo.scatter"(%x, %at, %u) <{
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>, unique_indices = UNIQUE
  }> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %half = stablehlo.constant dense<0.5> : tensor<f32>
      %1 = stablehlo.sine %a : tensor<f32>
      %2 = stablehlo.multiply %b, %half : tensor<f32>
      %3 = stablehlo.add %1, %2 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
  }) : (tensor<6x9xf32>, tensor<5x1xi32>, tensor<5x9xf32>) -> tensor<6x9xf32>
  return %0 : tensor<6x9xf32>
}"""


@pytest.mark.parametrize("unique", [False, True])
def test_scatter_with_a_custom_body(unique: bool) -> None:
    """Updates of the same window are combined in order. Those outside of the operand
    are ignored."""
    at = np.array([[1], [7], [4 if unique else 1], [5], [-1]], np.int32)
    text = SCATTER.replace("UNIQUE", str(unique).lower())
    check(text, X, at, RNG.normal(size=(5, 9)).astype(np.float32))


def test_scatter_of_two_tensors_in_batches() -> None:
    """The scatter keeps the larger value of each element, with its number."""
    check(
        """func.func @main(%x: tensor<6x9xf32>, %n: tensor<6x9xi32>,
            %at: tensor<1x6x4xi32>, %u: tensor<6x4xf32>, %m: tensor<6x4xi32>)
            -> (tensor<6x9xf32>, tensor<6x9xi32>) {
          %0:2 = "stablehlo.scatter"(%x, %n, %at, %u, %m) <{
            scatter_dimension_numbers = #stablehlo.scatter<
              inserted_window_dims = [1], input_batching_dims = [0],
              scatter_indices_batching_dims = [1],
              scatter_dims_to_operand_dims = [1], index_vector_dim = 0>
          }> ({
            ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
              %1 = stablehlo.compare GE, %a, %b
                : (tensor<f32>, tensor<f32>) -> tensor<i1>
              %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
              %3 = stablehlo.select %1, %i, %j : tensor<i1>, tensor<i32>
              stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
          }) : (tensor<6x9xf32>, tensor<6x9xi32>, tensor<1x6x4xi32>, tensor<6x4xf32>,
            tensor<6x4xi32>) -> (tensor<6x9xf32>, tensor<6x9xi32>)
          return %0#0, %0#1 : tensor<6x9xf32>, tensor<6x9xi32>
        }""",
        X,
        np.zeros((6, 9), np.int32),
        RNG.integers(0, 4, (1, 6, 4)).astype(np.int32),
        RNG.normal(size=(6, 4)).astype(np.float32),
        np.arange(1, 25, dtype=np.int32).reshape(6, 4),
    )


@pytest.mark.parametrize("is_reverse", [False, True])
def test_scan(is_reverse: bool) -> None:
    """Running sums from the start or from the end, and the final sum."""
    have = run(
        f"""func.func @main(%x: tensor<6x9xf32>, %s: tensor<6xf32>)
            -> (tensor<6x9xf32>, tensor<6xf32>) {{
          %0:2 = chlo.scan(%x) inits(%s) dimension=1 attributes {{
            is_reverse = {str(is_reverse).lower()}
          }} {{
          ^bb0(%row: tensor<6xf32>, %sum: tensor<6xf32>):
            %1 = stablehlo.add %row, %sum : tensor<6xf32>
            %2 = stablehlo.multiply %1, %row : tensor<6xf32>
            stablehlo.return %2, %1 : tensor<6xf32>, tensor<6xf32>
          }} : (tensor<6x9xf32>, tensor<6xf32>) -> (tensor<6x9xf32>, tensor<6xf32>)
          return %0#0, %0#1 : tensor<6x9xf32>, tensor<6xf32>
        }}""",
        X,
        X[:, 0],
    )
    rows = X[:, ::-1] if is_reverse else X
    sums = rows.cumsum(1) + X[:, :1]
    stacked = sums * rows
    want = stacked[:, ::-1] if is_reverse else stacked
    np.testing.assert_allclose(have[0], want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(have[1], sums[:, -1], rtol=1e-4, atol=1e-5)


def test_ragged_dot() -> None:
    """Each group of rows is multiplied by its own matrix. Rows after the last group are
    zero."""
    sizes = np.array([2, 0, 3], np.int32)
    matrices = RNG.normal(size=(3, 9, 4)).astype(np.float32)
    (have,) = run(
        """func.func @main(
            %x: tensor<6x9xf32>, %w: tensor<3x9x4xf32>, %n: tensor<3xi32>)
            -> tensor<6x4xf32> {
          %0 = "chlo.ragged_dot"(%x, %w, %n) {
            ragged_dot_dimension_numbers = #chlo.ragged_dot<
              lhs_batching_dimensions = [], rhs_batching_dimensions = [],
              lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1],
              lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>
          } : (tensor<6x9xf32>, tensor<3x9x4xf32>, tensor<3xi32>) -> tensor<6x4xf32>
          return %0 : tensor<6x4xf32>
        }""",
        X,
        matrices,
        sizes,
    )
    want = [X[:2] @ matrices[0], X[2:5] @ matrices[2], np.zeros((1, 4), np.float32)]
    np.testing.assert_allclose(have, np.concatenate(want), rtol=1e-5, atol=1e-6)
