"""Compares ONNX's If, Loop and Scan on run-time values with onnxruntime."""

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError

onnx = pytest.importorskip("onnx")
from onnx import parser  # noqa: E402
from onnx_models import compare, normal  # noqa: E402

X = normal(5, 4)


def model(signature: str, body: str) -> bytes:
    header = '<ir_version: 8, opset_import: ["": 20]>'
    return parser.parse_model(
        f"{header} g {signature} {{ {body} }}"
    ).SerializeToString()


def check(data: bytes, **inputs: np.ndarray) -> None:
    runtime = pytest.importorskip("onnxruntime")
    want = runtime.InferenceSession(data).run(None, inputs)
    compare(data, inputs, want)


@pytest.mark.parametrize("condition", [True, False])
def test_a_branch_at_run_time(condition: bool) -> None:
    data = model(
        "(bool p, float[5,4] x) => (float[5,4] y, int64 k)",
        """t = Tanh(x)
        y, k = If (p) <
          then_branch = g1 () => (float[5,4] a, int64 i)
            { a = Exp(t) i = Constant<value = int64 {3}>() },
          else_branch = g2 () => (float[5,4] a, int64 i)
            { n = Neg(x) a = Add(n, t) i = Constant<value = int64 {5}>() }
        >""",
    )
    check(data, p=np.array(condition), x=X)


def test_branches_of_different_types() -> None:
    data = model(
        "(bool p, float[5,4] x) => (float[n,m] y)",
        """y = If (p) <
          then_branch = g1 () => (float[5,4] a) { a = Exp(x) },
          else_branch = g2 () => (float[4,5] a) { a = Transpose(x) }
        >""",
    )
    message = (
        r"If is not supported with branches that return "
        r"\(tensor<5x4xf32>\) and \(tensor<4x5xf32>\)"
    )
    with pytest.raises(LocatedError, match=message):
        tensorplan.from_onnx(data)


@pytest.mark.parametrize("limit", [0, 1, 4, 100])
@pytest.mark.parametrize("start", [True, False])
def test_a_loop_that_stops_itself(limit: int, start: bool) -> None:
    body = """t = Exp(h) y = Loop (m, p, x) <
        body = b (int64 i, bool c, float[5,4] v) => (bool d, float[5,4] w)
          { z = Mul(v, v) s = ReduceSum<keepdims = 0>(z)
            big = Constant<value = float {900.0}>() d = Less(s, big)
            f = CastLike(i, v) a = Add(v, f) w = Mul(a, t) }
      >"""
    data = model("(int64 m, bool p, float[5,4] x, float h) => (float[5,4] y)", body)
    inputs = {"m": np.array(limit), "p": np.array(start)}
    check(data, **inputs, x=X, h=np.array(0.3, "f4"))


def test_a_loop_without_a_limit() -> None:
    data = model(
        "(float[5,4] x) => (float[5,4] y)",
        """p = Constant<value = bool {1}>()
        y = Loop (, p, x) < body = b (int64 i, bool c, float[5,4] v)
          => (bool d, float[5,4] w) { a = Abs(x) w = Add(v, a)
          m = ReduceMin<keepdims=0>(w) l = Constant<value = float {3.0}>()
          d = Less(m, l) } >""",
    )
    check(data, x=X)


def rows(limit: str, condition: str) -> str:
    return f"""m = Constant<value = int64 {{{limit}}}>()
      p = Constant<value = bool {{1}}>() y, k = Loop (m, p, x) <
        body = b (int64 i, bool c, float[5,4] v) => (bool d, float[5,4] w, float[4] u)
          {{ r = Gather(v, i) s = ReduceSum<keepdims = 0>(v)
            d = {condition} w = Tanh(v) u = Exp(r) }}
      >"""


def test_a_row_for_each_iteration() -> None:
    signature = "(float[5,4] x) => (float[5,4] y, float[n,4] k)"
    check(model(signature, rows("3", "Identity(c)")), x=X)
    with pytest.raises(LocatedError, match="condition that determines the size"):
        tensorplan.from_onnx(model(signature, rows("3", "Less(s, s)")))


def test_a_body_that_changes_a_type() -> None:
    data = model(
        "(int64 m, float[4,5] x) => (float[n,k] y)",
        """y = Loop (m, , x) < body = b (int64 i, bool c, float[4,5] v)
          => (bool d, float[5,4] w) { d = Identity(c) w = Transpose(v) } >""",
    )
    message = "changes a carried tensor<4x5xf32> to tensor<5x4xf32>"
    with pytest.raises(LocatedError, match=message):
        tensorplan.from_onnx(data)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("backward", [0, 1])
def test_a_scan(axis: int, backward: int) -> None:
    data = model(
        "(float[3] s, float[5,3] x, float[3,5] z) => (float[3] y, float[n,m] k)",
        f"""y, k = Scan <num_scan_inputs = 2, scan_input_axes = [0, -1],
          scan_input_directions = [{backward}, 0], scan_output_axes = [{axis}],
          scan_output_directions = [{1 - backward}],
          body = b (float[3] a, float[3] b, float[3] c) => (float[3] d, float[3] e)
            {{ f = Mul(b, c) d = Add(a, f) g = Constant<value_float = 2.0>()
              e = Mul(d, g) }}
        > (s, x, z)""",
    )
    check(data, s=normal(3), x=normal(5, 3), z=normal(3, 5))


@pytest.mark.parametrize("limit", [-1, 0])
def test_loops_of_no_iterations(limit: int) -> None:
    data = model(
        "(float[3] s, float[0,3] x) => "
        "(float[3] y, float[n,3] k, float[3] z, float[0,3] l)",
        f"""m = Constant<value = int64 {{{limit}}}>() y, k = Loop (m, , s) <
          body = a (int64 i, bool c, float[3] v) => (bool d, float[3] w, float[3] e)
            {{ d = Identity(c) w = Exp(v) e = Neg(v) }}>
        z, l = Scan <num_scan_inputs = 1, body = b (float[3] v, float[3] r)
          => (float[3] u, float[3] t) {{ u = Add(v, r) t = Mul(v, r) }}> (s, x)""",
    )
    s, none = normal(3), np.zeros((0, 3), np.float32)
    compare(data, {"s": s, "x": none}, [s, none, s, none])


def test_a_scan_of_different_lengths() -> None:
    data = model(
        "(float[3] s, float[5,3] x, float[2,3] z) => (float[3] y)",
        """y = Scan <num_scan_inputs = 2,
          body = b (float[3] a, float[3] b, float[3] c) => (float[3] d)
            { e = Mul(b, c) d = Add(a, e) }> (s, x, z)""",
    )
    with pytest.raises(
        LocatedError, match=(r"Scan is not supported with " r"inputs of \[5, 2\] rows")
    ):
        tensorplan.from_onnx(data)


def test_a_loop_in_a_scan() -> None:
    data = model(
        "(float[4] s, float[5,4] x, int64 m) => (float[4] y)",
        """y = Scan <num_scan_inputs = 1,
          body = b (float[4] a, float[4] r) => (float[4] d) {
            d = Loop (m, , a) < body = q (int64 i, bool c, float[4] v)
              => (bool e, float[4] w) { e = Identity(c) h = Mul(v, r) w = Add(h, s) } >
          }> (s, x)""",
    )
    check(data, s=normal(4), x=X / 4, m=np.array(2))


def test_loops_whose_sizes_follow_from_the_iteration() -> None:
    """The importer unrolls a loop that slices as many rows as iterations have run, and
    a loop whose carried value grows."""
    slices = """k = Constant<value = int64 {3}>()
        n, y = Loop (k, , x) < body = b (int64 i, bool c, float[4,4] v)
          => (bool d, float[4,4] w, float[4] r) {
            d = Identity(c) w = Add(v, v) z = Constant<value = int64[1] {0}>()
            o = Constant<value = int64[1] {1}>() j = Add(i, o)
            p = Slice(v, z, j, z) r = ReduceSum<keepdims=0>(p, z)
          } > t = Add(y, s)"""
    grown = """k = Constant<value = int64 {2}>()
        t = Loop (k, , x) < body = b (int64 i, bool c, float[n,4] v)
          => (bool d, float[m,4] w) { d = Identity(c) w = Concat<axis=0>(v, v) } >"""
    x = X[:4]
    check(model("(float[4] s, float[4,4] x) => (float[3,4] t)", slices), s=X[0], x=x)
    check(model("(float[4,4] x) => (float[16,4] t)", grown), x=x)


def test_a_loop_that_cannot_be_unrolled() -> None:
    data = model(
        "(float[4,4] x) => (float[4,4] y)",
        """k = Constant<value = int64 {3}>()
        y = Loop (k, , x) < body = b (int64 i, bool c, float[4,4] v)
          => (bool d, float[4,4] w) { d = Identity(c) w = StringNormalizer(v) } >""",
    )
    with pytest.raises(LocatedError) as error:
        tensorplan.from_onnx(data)
    message = "onnx#w:4:1: operation StringNormalizer is not supported"
    assert str(error.value) == message


def test_an_unsupported_operation_in_a_body() -> None:
    data = model(
        "(int64 m, float[4,4] x) => (float[4,4] y)",
        """y = Loop (m, , x) < body = b (int64 i, bool c, float[4,4] v)
          => (bool d, float[4,4] w) {
            d = Identity(c) e = StringNormalizer(v) w = Mul(v, e)
          } >""",
    )
    with pytest.raises(LocatedError, match="operation StringNormalizer is not"):
        tensorplan.from_onnx(data)
