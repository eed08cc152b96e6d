"""Tests ONNX's random numbers: their distribution, and new numbers in each run."""

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.reference.interpreter import run_reference

onnx = pytest.importorskip("onnx")
from onnx import parser  # noqa: E402


def model(body: str, header: str = "(float[200,50] x) => (float[n,m] y)") -> bytes:
    text = f'<ir_version: 8, opset_import: ["": 18]> g {header} {{ {body} }}'
    return parser.parse_model(text).SerializeToString()


X = np.zeros((200, 50), np.float32)


def moments(y: np.ndarray) -> list[float]:
    return [y.mean(), y.std()]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = RandomUniform<shape = [200,50], low = 2.0, high = 5.0>()", [3.5, 0.866]),
        ("y = RandomUniformLike(x)", [0.5, 0.2887]),
        ("y = RandomNormal<shape = [200,50], mean = 2.0, scale = 3.0>()", [2, 3]),
        ("y = RandomNormalLike(x)", [0, 1]),
        ("h = Exp(x) q = Mul(h, p) y = Bernoulli(q)", [0.3, 0.4583]),
    ],
)
def test_distributions(body: str, expected: list[float]) -> None:
    data = model(f"p = Constant<value = float {{0.3}}>() {body}")
    run = tensorplan.compile(tensorplan.from_onnx(data))
    first, state = (array.copy() for array in run(X))
    second, _ = run(X)
    assert state.tolist() != [0, 0]
    assert (first != second).any()
    for y in (first, second):
        np.testing.assert_allclose(moments(y), expected, atol=0.06)
    assert first.min() >= (2 if "low" in body else first.min())
    again, _ = tensorplan.compile(tensorplan.from_onnx(data))(X)
    np.testing.assert_array_equal(again, first)


def test_classes_follow_their_weights() -> None:
    data = model(
        "y = Multinomial<sample_size = 4000>(x)", "(float[2,3] x) => (int32[2,4000] y)"
    )
    weights = np.array([[1, 2, 5], [0, 3, 1]], np.float32)
    with np.errstate(divide="ignore"):
        x = np.log(weights)
    y, _ = tensorplan.compile(tensorplan.from_onnx(data))(x)
    assert y.dtype == np.int32
    shares = [np.bincount(row, minlength=3) / 4000 for row in y]
    np.testing.assert_allclose(
        shares, weights / weights.sum(1, keepdims=True), atol=0.03
    )


def test_no_classes() -> None:
    node = "y = Multinomial<sample_size = {}>(x)"
    none = model(node.format(0), "(float[2,3] x) => (int32[2,0] y)")
    y, _ = tensorplan.compile(tensorplan.from_onnx(none))(np.zeros((2, 3), np.float32))
    assert y.shape == (2, 0)
    with pytest.raises(
        LocatedError, match=("Multinomial is not supported with no elements")
    ):
        tensorplan.from_onnx(model(node.format(3), "(float[2,0] x) => (int32[2,3] y)"))


def test_operations_draw_from_one_stream() -> None:
    """Different operations draw different numbers, equal to the reference's."""
    model_ = tensorplan.from_onnx(
        model("a = RandomUniformLike(x) b = RandomUniformLike(x) y = Sub(a, b)")
    )
    want = run_reference(model_.module, [X, np.zeros(2, np.uint64)])
    got, state = tensorplan.compile(model_)(X)
    assert (got != 0).any()
    np.testing.assert_array_equal(got, want[0])
    np.testing.assert_array_equal(state, want[1])


def test_random_numbers_in_branches_are_rejected() -> None:
    data = model(
        """s = ReduceSum<keepdims=0>(x) n = Neg(s) c = Less(n, s)
        y = If (c) <
          then_branch = a () => (float[200,50] u) { u = RandomNormalLike(x) },
          else_branch = b () => (float[200,50] v) { v = Identity(x) }>"""
    )
    with pytest.raises(
        LocatedError, match=("RandomNormalLike is not supported in a branch or a loop")
    ):
        tensorplan.from_onnx(data)


def test_unrolled_loops_draw_in_each_iteration() -> None:
    data = model(
        """k = Constant<value = int64 {3}>()
        y = Loop (k, , x) <body = b (int64 i, bool c, float[200,50] v)
          => (bool d, float[200,50] w)
          { d = Identity(c) e = RandomNormalLike(v) w = Add(v, e) }>"""
    )
    total, _ = tensorplan.compile(tensorplan.from_onnx(data))(X)
    np.testing.assert_allclose(moments(total), [0, 3**0.5], atol=0.06)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("RandomNormal<shape = [200,50], dtype = 6>()", "dtype = int32, expected a fl"),
        ("RandomUniform<shape = [200,-3]>()", r"shape = \[200, -3\], expected sizes"),
        ("RandomUniformLike<low = 2.0, high = 1.0>(x)", "low = 2.0, expected no more"),
        ("Multinomial<sample_size = -1>(x)", "sample_size = -1, expected 0 or more"),
    ],
)
def test_invalid_parameters(node: str, message: str) -> None:
    with pytest.raises(LocatedError, match=message):
        tensorplan.from_onnx(model(f"y = {node}"))
