"""Compares ONNX's sequences and optionals of known lengths with onnxruntime."""

from collections.abc import Mapping

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError

onnx = pytest.importorskip("onnx")
from onnx import parser  # noqa: E402
from onnx_models import compare, normal  # noqa: E402

X = normal(7, 4)


def model(body: str, result: str = "float[n,m] y", more: str = "") -> bytes:
    """Returns a model with the argument `float[7,4] x` and the arguments `more`."""
    header = '<ir_version: 8, opset_import: ["": 18]>'
    text = f"{header} g (float[7,4] x{more}) => ({result}) {{ {body} }}"
    return parser.parse_model(text).SerializeToString()


BODIES: Mapping[str, str] = {
    "split by one": "s = SplitToSequence(x) y = ConcatFromSequence<axis=1>(s)",
    "split without the dimension": """s = SplitToSequence<axis=-1, keepdims=0>(x)
        k = Constant<value = int64 {-2}>() a = SequenceAt(s, k)
        o = Constant<value = int64[1] {0}>() y = Unsqueeze(a, o)""",
    "split with a remainder": """k = Constant<value = int64 {3}>()
        s = SplitToSequence<axis=0>(x, k) e = SequenceErase(s)
        y = ConcatFromSequence<axis=0>(e)""",
    "split into sizes": """k = Constant<value = int64[4] {2,0,4,1}>()
        s = SplitToSequence<axis=0>(x, k) z = Constant<value = int64 {0}>()
        e = SequenceErase(s, z) y = ConcatFromSequence<axis=0>(e)""",
    "construct": """n = Neg(x) s = SequenceConstruct(x, n)
        l = SequenceLength(s) f = Cast<to=1>(l) y0 = ConcatFromSequence<axis=1>(s)
        y = Mul(y0, f)""",
    "insert": """e = SequenceEmpty<dtype=1>() a = SequenceInsert(e, x) n = Neg(x)
        b = SequenceInsert(a, n) z = Constant<value = int64 {-1}>() t = Exp(x)
        c = SequenceInsert(b, t, z) i = Identity(c)
        y = ConcatFromSequence<axis=0>(i)""",
    "stack": """n = Neg(x) s = SequenceConstruct(x, n)
        a = ConcatFromSequence<axis=-1, new_axis=1>(s)
        k = Constant<value = int64[2] {7,8}>() y = Reshape(a, k)""",
    "map": """s = SplitToSequence<axis=0>(x) t = Exp(x)
        m = SequenceMap(s, t) <body = b (float[1,4] p, float[7,4] q)
          => (float[7,4] r) { r = Mul(p, q) }> y = ConcatFromSequence<axis=0>(m)""",
    "loop": """n = Constant<value = int64 {3}>() c = Constant<value = bool {1}>()
        e = SequenceEmpty<dtype=1>()
        s = Loop (n, c, e) <body = b (int64 i, bool p, seq(float[7,4]) q)
          => (bool p2, seq(float[7,4]) q2) { f = Cast<to=1>(i) v = Add(x, f)
             q2 = SequenceInsert(q, v) p2 = Identity(p) }>
        y = ConcatFromSequence<axis=0>(s)""",
    "loop that stops": """n = Constant<value = int64 {9}>()
        e = SequenceEmpty<dtype=1>()
        s = Loop (n, , e) <body = b (int64 i, bool p, seq(float[7,4]) q)
          => (bool p2, seq(float[7,4]) q2) { q2 = SequenceInsert(q, x)
             k = Constant<value = int64 {2}>() p2 = Less(i, k) }>
        y = ConcatFromSequence<axis=0>(s)""",
    "loop without a limit": """c = Constant<value = bool {1}>()
        e = SequenceEmpty<dtype=1>()
        s = Loop (, c, e) <body = b (int64 i, bool p, seq(float[7,4]) q)
          => (bool p2, seq(float[7,4]) q2) { q2 = SequenceInsert(q, x)
             k = Constant<value = int64 {2}>() p2 = Less(i, k) }>
        y = ConcatFromSequence<axis=0>(s)""",
    "loop with the highest limit": """
        n = Constant<value = int64 {9223372036854775807}>()
        e = SequenceEmpty<dtype=1>()
        s = Loop (n, , e) <body = b (int64 i, bool p, seq(float[7,4]) q)
          => (bool p2, seq(float[7,4]) q2) { q2 = SequenceInsert(q, x)
             k = Constant<value = int64 {2}>() p2 = Less(i, k) }>
        y = ConcatFromSequence<axis=0>(s)""",
    "loop that does not start": """n = Constant<value = int64 {-3}>()
        e = SequenceConstruct(x)
        s = Loop (n, , e) <body = b (int64 i, bool p, seq(float[7,4]) q)
          => (bool p2, seq(float[7,4]) q2) { q2 = SequenceInsert(q, x)
             p2 = Identity(p) }>
        y = ConcatFromSequence<axis=0>(s)""",
    "loop with rows": """a = Constant<value = int64[1] {0}>()
        n = Constant<value = int64 {3}>() e = SequenceConstruct(x)
        s, r = Loop (n, , e) <body = b (int64 i, bool p, seq(float[7,4]) q)
          => (bool p2, seq(float[7,4]) q2, float[4] r) { f = Cast<to=1>(i)
             v = Add(x, f) q2 = SequenceInsert(q, v) p2 = Identity(p)
             r = ReduceSum<keepdims=0>(v, a) }>
        z = ConcatFromSequence<axis=0>(s) y = Concat<axis=0>(z, r)""",
    "optional": """o = Optional(x) h = OptionalHasElement(o) v = OptionalGetElement(o)
        f = Cast<to=1>(h) y = Mul(v, f)""",
    "no optional": """o = Optional<type = float[7,4]>() h = OptionalHasElement(o)
        f = Cast<to=1>(h) y = Mul(x, f)""",
    "optional of a sequence": """s = SequenceConstruct(x, x) o = Optional(s)
        h = OptionalHasElement(o) v = OptionalGetElement(o)
        a = ConcatFromSequence<axis=0>(v) f = Cast<to=1>(h) y = Mul(a, f)""",
    "sequence for an optional": """e = SequenceEmpty<dtype=1>()
        h = OptionalHasElement(e) s = SequenceConstruct(x, x)
        v = OptionalGetElement(s) a = ConcatFromSequence<axis=0>(v)
        f = Cast<to=1>(h) y = Mul(a, f)""",
    "sequence of one for an optional": """s = SequenceConstruct(x)
        v = OptionalGetElement(s) l = SequenceLength(v) f = Cast<to=1>(l)
        y = Mul(x, f)""",
}


@pytest.mark.parametrize("name", BODIES)
def test_values(name: str) -> None:
    data = model(BODIES[name])
    runtime = pytest.importorskip("onnxruntime")
    want = runtime.InferenceSession(data).run(None, {"x": X})
    compare(data, {"x": X}, want)


def test_a_result_that_is_a_sequence_becomes_its_tensors() -> None:
    body = """k = Constant<value = int64 {3}>() y = SplitToSequence<axis=0>(x, k)"""
    found = tensorplan.from_onnx(model(body, "seq(float[n,m]) y"))
    for have, want in zip(
        tensorplan.compile(found)(X), np.split(X, [3, 6]), strict=True
    ):
        np.testing.assert_array_equal(have, want)
    text = str(found.module)
    assert all(f'"y[{index}]"' in text for index in range(3))


IN_BRANCHES = """s, o = If (c) <then_branch = t () => (seq(float[7,4]) a, float[7,4] d)
      { a = SequenceConstruct(x, x) d = Exp(x) }, else_branch = e () =>
      (seq(float[7,4]) b, float[7,4] f)
      { n = Neg(x) b = SequenceConstruct(n, x) f = Neg(x) }>
    z = ConcatFromSequence<axis=0>(s) y = Concat<axis=0>(z, o)"""


def test_branches_can_make_sequences_of_one_length() -> None:
    runtime = pytest.importorskip("onnxruntime")
    data = model(IN_BRANCHES, more=", bool c")
    for flag in (True, False):
        given = {"x": X, "c": np.array(flag)}
        compare(data, given, runtime.InferenceSession(data).run(None, given))


def test_an_input_that_is_a_sequence_becomes_its_tensors() -> None:
    runtime = pytest.importorskip("onnxruntime")
    body = """k = Constant<value = int64 {1}>() a = SequenceAt(s, k)
        l = SequenceLength(s) f = Cast<to=1>(l) b = Mul(a, f)
        i = SequenceInsert(s, b) y = ConcatFromSequence<axis=0>(i)"""
    data = model(body, more=", seq(float[h,4]) s")
    parts = [normal(3, 4), normal(3, 4)]
    want = runtime.InferenceSession(data).run(None, {"x": X, "s": parts})
    found = tensorplan.from_onnx(data, sizes={"s": 2, "h": 3})
    (got,) = tensorplan.compile(found)(X, *parts)
    np.testing.assert_allclose(got, want[0], 1e-6)
    assert all(f'"s[{index}]"' in str(found.module) for index in range(2))
    parts[1] = normal(5, 4)
    found = tensorplan.from_onnx(data, sizes={"s": 2, "h": 3, "s[1].0": 5})
    assert tensorplan.compile(found)(X, *parts)[0].shape == (13, 4)


@pytest.mark.parametrize("count", [0, 1])
def test_an_input_that_is_an_optional(count: int) -> None:
    body = """h = OptionalHasElement(o) f = Cast<to=1>(h) y = Mul(x, f)"""
    data = model(body, more=", optional(float[2]) o")
    run = tensorplan.compile(tensorplan.from_onnx(data, sizes={"o": count}))
    given = [np.ones(2, np.float32)] * count
    np.testing.assert_array_equal(run(X, *given)[0], X * count)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({}, r"of unknown size, expected sizes for 's' \(--sizes or sizes=\)$"),
        (
            {"s": 2},
            r"expected sizes for 's\[0\]\.0', 's\[1\]\.0' \(--sizes or sizes=\)$",
        ),
        ({"s": -1}, "'s' has a dimension of size -1, expected 0 to 1024"),
        ({"s": 0, "t": 1}, "no dimension 't', expected one of s"),
    ],
)
def test_the_length_of_an_input(sizes: Mapping[str, int], message: str) -> None:
    data = model("y = Neg(x) l = SequenceLength(s)", more=", seq(float[?]) s")
    with pytest.raises(LocatedError, match=message):
        tensorplan.from_onnx(data, sizes=sizes)


def test_sequences_take_no_memory() -> None:
    data = model(
        """s = SplitToSequence<axis=0>(x) k = Constant<value = int64 {2}>()
        y = SequenceAt(s, k)"""
    )
    run = tensorplan.compile(tensorplan.from_onnx(data))
    np.testing.assert_array_equal(run(X)[0], X[2:3])
    assert sum(pool.bytes for pool in run.pools) == 0


@pytest.mark.parametrize(
    ("body", "more", "message"),
    [
        (
            "s = SplitToSequence(x) y = SequenceAt(s, k)",
            ", int64 k",
            "SequenceAt is not supported with input 'k' computed at run time, "
            "expected a constant",
        ),
        (
            "s = SplitToSequence(x) k = Constant<value = int64 {7}>() "
            "y = SequenceAt(s, k)",
            "",
            "SequenceAt is not supported with position 7, expected -7 to 6",
        ),
        (
            "y = ConcatFromSequence<axis=0>(x)",
            "",
            "a tensor as input 0, expected a seq",
        ),
        ("s = SplitToSequence(x) y = Neg(s)", "", "Neg is not supported on a sequence"),
        (
            "e = SequenceEmpty<dtype=1>() y = ConcatFromSequence<axis=0>(e)",
            "",
            "on an empty sequence",
        ),
        (
            "k = Constant<value = int64[2] {2,4}>() "
            "s = SplitToSequence<axis=0>(x, k) y = ConcatFromSequence<axis=0>(s)",
            "",
            r"split = \[2, 4\], expected sizes that add up to 7",
        ),
        (
            """s = If (c) <then_branch = t () => (seq(float[7,4]) a)
              { a = SequenceConstruct(x) }, else_branch = e () =>
              (seq(float[7,4]) b) { b = SequenceConstruct(x, x) }>
            y = ConcatFromSequence<axis=0>(s)""",
            ", bool c",
            "If is not supported with branches that return ",
        ),
        (
            """e = SequenceEmpty<dtype=1>()
            s = Loop (k, , e) <body = b (int64 i, bool p, seq(float[7,4]) q)
              => (bool p2, seq(float[7,4]) q2)
              { q2 = SequenceInsert(q, x) p2 = Identity(p) }>
            y = ConcatFromSequence<axis=0>(s)""",
            ", int64 k",
            "Loop is not supported with input 'k' computed at run time",
        ),
        (
            """e = SequenceEmpty<dtype=1>() c = Constant<value = bool {1}>()
            s = Loop (, c, e) <body = b (int64 i, bool p, seq(float[7,4]) q)
              => (bool p2, seq(float[7,4]) q2)
              { q2 = SequenceInsert(q, x) p2 = Identity(p) }>
            y = ConcatFromSequence<axis=0>(s)""",
            "",
            "Loop is not supported on a sequence with more than 1024 iterations",
        ),
        (
            "o = Optional<type = float[7,4]>() y = OptionalGetElement(o)",
            "",
            "OptionalGetElement is not supported on an optional without a value",
        ),
    ],
)
def test_mistakes(body: str, more: str, message: str) -> None:
    with pytest.raises(LocatedError, match=message):
        tensorplan.from_onnx(model(body, more=more))
