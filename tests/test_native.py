"""Tests native code: its accuracy, special numbers, layouts, cache, and tapes of calls.

The tests compare `runtime/backends/native/` with NumPy's kernels.
"""

import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_op import TYPES, numbers, operation, tensor
from traced_memory import growth
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, f32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.parser import Parser

import tensorplan
from tensorplan.dialects.dtypes import Array, is_float
from tensorplan.dialects.tgraph import elementwise, indexing, reducing, shaping
from tensorplan.dialects.tgraph.base import TensorOp, ints
from tensorplan.dialects.tgraph.bodies import ReduceByOp, SortOp
from tensorplan.dialects.tgraph.structure import FusionOp, YieldOp
from tensorplan.runtime.backends.dispatch import compile_call
from tensorplan.runtime.backends.jit import llvm
from tensorplan.runtime.backends.jit.inlining import HEAD, LONGEST
from tensorplan.runtime.backends.jit.records import (
    IF,
    WHILE,
    ArrayRecord,
    Control,
    Tape,
    controlled,
    joined,
)
from tensorplan.runtime.backends.native import backend as native
from tensorplan.runtime.backends.native import functions as made
from tensorplan.runtime.backends.native import nests, sorting
from tensorplan.runtime.backends.native.graphs import (
    ElementGraph,
    ElementNode,
    by_result,
    graph_of,
)
from tensorplan.runtime.backends.native.loops import lower
from tensorplan.runtime.backends.numpy.functions import order_packed
from tensorplan.runtime.backends.onednn import backend as onednn
from tensorplan.runtime.calls import Call
from tensorplan.runtime.devices.local import Serial
from tensorplan.runtime.executor import Executable
from tensorplan.runtime.pool import Scratch
from tensorplan.support import cache

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(
    not llvm.is_available(), reason="native code is turned off"
)

EPSILON = float(np.finfo(np.float32).eps)


def computed(
    op: TensorOp, inputs: Sequence[Array], out: Array, *, by_numpy: bool = False
) -> Array:
    scratch = Scratch("cpu:0")
    if by_numpy:
        calls = compile_call(op, inputs, [out], scratch, native=False)
    else:
        calls = native.calls_of(op, inputs, [out], scratch)
        assert calls is not None, f"{op.name} has no native form"
    with np.errstate(all="ignore"):
        for function, arguments in calls:
            function(*arguments)
    return out


def assert_same(got: Array, want: Array) -> None:
    if is_float(got.dtype):  # NumPy finds no NaN in bfloat16
        got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(got, want)


def one(
    cls: type[TensorOp],
    inputs: Sequence[Array],
    properties: dict[str, Attribute] | None = None,
    target: str | None = None,
) -> TensorOp:
    types = [tensor(x.shape, x.dtype.name) for x in inputs]
    result = tensor(inputs[0].shape, target) if target else None
    return operation(cls, types, properties or {}, result, on_memrefs=True)


# Functions of f32

FUNCTIONS: dict[type[TensorOp], Callable[[Array], Array]] = {
    elementwise.CosineOp: np.cos,
    elementwise.ErfOp: np.vectorize(math.erf),
    elementwise.ErfcOp: np.vectorize(math.erfc),
    elementwise.ExponentialMinusOneOp: np.expm1,
    elementwise.ExponentialOp: np.exp,
    elementwise.LogOp: np.log,
    elementwise.LogPlusOneOp: np.log1p,
    elementwise.RsqrtOp: lambda x: 1 / np.sqrt(x),
    elementwise.SineOp: np.sin,
    elementwise.SqrtOp: np.sqrt,
    elementwise.TanOp: np.tan,
    elementwise.TanhOp: np.tanh,
}


def samples() -> Array:
    """Returns f32 numbers from the whole range, more of them where functions curve,
    and special numbers."""
    every = np.arange(0, 2**32, 20011, dtype=np.uint64).astype(np.uint32)
    special = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 88.7, 88.73, -87.4, -103.9]
    parts = [
        every.view(np.float32),
        np.linspace(-110, 110, 40_001),
        np.linspace(-1e-3, 1e-3, 10_001),
        np.linspace(0.5, 2, 10_001),
        special,
    ]
    return np.concatenate([np.asarray(p, np.float32) for p in parts])


def assert_special_alike(got: Array, rounded: Array) -> Array:
    """Asserts that special numbers are equal: infinities, NaN and zeros of both signs.
    Returns the mask of these elements."""
    zeros = rounded == 0
    is_special = ~np.isfinite(rounded) | zeros
    np.testing.assert_array_equal(got[is_special], rounded[is_special])
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(rounded[zeros]))
    return is_special


@pytest.mark.parametrize("cls", FUNCTIONS, ids=lambda cls: cls.name)
def test_functions_of_floats_are_accurate(cls: type[TensorOp]) -> None:
    x = samples()
    got = computed(one(cls, [x]), [x], np.empty_like(x))
    with np.errstate(all="ignore"):
        want = FUNCTIONS[cls](x.astype(np.float64))
        rounded = want.astype(np.float32)
    is_special = assert_special_alike(got, rounded)
    tiny = 2.0**-126
    is_normal = ~is_special & (np.abs(want) >= tiny)
    error = np.abs(got[is_normal] - want[is_normal]) / np.abs(want[is_normal])
    assert error.max() <= 3e-7
    is_subnormal = ~is_special & (np.abs(want) < tiny)
    error = np.abs(got[is_subnormal] - want[is_subnormal])
    assert error.max(initial=0) <= 2 * 2.0**-149


def doubles() -> Array:
    """Returns samples in f64, like `samples`, and multiples of pi / 2."""
    every = np.arange(0, 2**64, 2**64 // 200_003, dtype=np.uint64)
    bends = [np.linspace(-end, end, 20_001) for end in (1e-3, 1, 40, 750, 2.0**30)]
    special = [0, -0.0, np.inf, -np.inf, np.nan, 709.78, 709.79, -745.1, -745.2]
    near = 1 + np.linspace(-1e-9, 1e-9, 1001)
    turns = np.pi / 2 * np.arange(-5000, 5000)
    return np.concatenate([every.view(np.float64), *bends, special, near, turns])


LEFT_TO_C = elementwise.ErfOp, elementwise.ErfcOp
"""Operations that call C's functions in f64."""


@pytest.mark.parametrize(
    "cls", [cls for cls in FUNCTIONS if cls not in LEFT_TO_C], ids=lambda cls: cls.name
)
def test_functions_of_doubles_are_accurate(cls: type[TensorOp]) -> None:
    x = doubles()
    got = computed(one(cls, [x]), [x], np.empty_like(x))
    with np.errstate(all="ignore"):
        want = FUNCTIONS[cls](x.astype(np.longdouble))
        rounded = want.astype(np.float64)
        place = np.spacing(np.abs(rounded))
        error = np.abs((got - want) / place)
    is_special = assert_special_alike(got, rounded)
    assert error[~is_special].max() <= 3


@pytest.mark.parametrize(("dtype", "wide"), [("float32", "f8"), ("float64", "g")])
def test_atan2_is_accurate(dtype: str, wide: str) -> None:
    """The error is at most 3 units in the last place, in all octants and at their
    ends."""
    ends = [0, 1, np.inf, np.nan, 1e-30, 3e38, np.finfo(dtype).smallest_subnormal]
    turns = np.linspace(-np.pi, np.pi, 2001)
    special = np.array([*ends, *(-x for x in ends)]).astype(dtype)
    special_y, special_x = (x.ravel() for x in np.meshgrid(special, special))
    y = np.concatenate([special_y, np.sin(turns).astype(dtype)])
    x = np.concatenate([special_x, np.cos(turns).astype(dtype)])
    got = computed(one(elementwise.Atan2Op, [y, x]), [y, x], np.empty_like(x))
    want = np.arctan2(y.astype(wide), x.astype(wide))
    rounded = want.astype(dtype)
    is_special = assert_special_alike(got, rounded)
    error = np.abs((got - want) / np.spacing(np.abs(rounded)))
    assert error[~is_special].max() <= 3


def test_logistic_and_tanh_stay_within_their_bounds() -> None:
    x = samples()
    for cls, low in ((elementwise.TanhOp, -1), (elementwise.LogisticOp, 0)):
        got = computed(one(cls, [x]), [x], np.empty_like(x))
        assert np.array_equal(np.isnan(got), np.isnan(x))
        assert np.nanmin(got) >= low
        assert np.nanmax(got) <= 1
    want = 1 / (1 + np.exp(-np.linspace(-20, 20, 1001, dtype=np.float32)))
    x = np.linspace(-20, 20, 1001, dtype=np.float32)
    got = computed(one(elementwise.LogisticOp, [x]), [x], np.empty_like(x))
    np.testing.assert_allclose(got, want, rtol=5e-7)


@pytest.mark.parametrize(
    ("cls", "end"),
    [
        (elementwise.TanhOp, 9.02),
        (elementwise.ErfOp, 3.93),
        (elementwise.LogisticOp, 18),
    ],
)
def test_saturated_functions_return_exactly_one(
    cls: type[TensorOp], end: float
) -> None:
    """The gradient of a GELU multiplies 1 - tanh(u) by a cube, which would magnify any
    difference from one."""
    x = np.concatenate([np.geomspace(end, 3e38, 1001), [np.inf]]).astype(np.float32)
    got = computed(one(cls, [x]), [x], np.empty_like(x))
    np.testing.assert_array_equal(got, np.ones_like(x))
    if cls is not elementwise.LogisticOp:
        got = computed(one(cls, [-x]), [-x], np.empty_like(x))
        np.testing.assert_array_equal(got, -np.ones_like(x))


# Each operation

FLOATS = ("float64", "float32", "float16", "bfloat16")
SIGNED, UNSIGNED = ("int8", "int32", "int64"), ("uint8",)
INTS = (*SIGNED, *UNSIGNED)
EXACT: dict[type[TensorOp], tuple[int, Sequence[str]]] = {
    elementwise.AbsOp: (1, (*FLOATS, *INTS)),
    elementwise.AddOp: (2, ("bool", *FLOATS, *INTS)),
    elementwise.AndOp: (2, ("bool", *INTS)),
    elementwise.CeilOp: (1, FLOATS),
    elementwise.ClampOp: (3, ("bool", *FLOATS, *INTS)),
    elementwise.DivideOp: (2, (*FLOATS, *INTS)),
    elementwise.FloorOp: (1, FLOATS),
    elementwise.MaximumOp: (2, ("bool", *FLOATS, *INTS)),
    elementwise.MinimumOp: (2, ("bool", *FLOATS, *INTS)),
    elementwise.MultiplyOp: (2, ("bool", *FLOATS, *INTS)),
    elementwise.NegateOp: (1, (*FLOATS, *INTS)),
    elementwise.NotOp: (1, ("bool", *INTS)),
    elementwise.OrOp: (2, ("bool", *INTS)),
    elementwise.PowerOp: (2, INTS),
    elementwise.RemainderOp: (2, ("float64", "float32", *INTS)),
    elementwise.RsqrtOp: (1, FLOATS),
    elementwise.SignOp: (1, (*FLOATS, *INTS)),
    elementwise.SqrtOp: (1, FLOATS),
    elementwise.SubtractOp: (2, (*FLOATS, *INTS)),
    elementwise.XorOp: (2, ("bool", *INTS)),
}
"""Operations whose results equal NumPy's bit for bit."""


def extremes(rng: np.random.Generator, count: int, dtype: str) -> Array:
    """Returns random numbers mixed with special ones, such as NaN and limits."""
    if dtype == "bool":
        return rng.random(count) < 0.5
    if "int" in dtype:
        limits = np.iinfo(dtype)
        some = np.array([limits.min, limits.max, 0, 1, limits.max - 1], dtype)
        x = rng.integers(limits.min, limits.max, count, dtype, endpoint=True)
        small = rng.integers(0, 7, count).astype(dtype)
        x = np.where(rng.random(count) < 0.4, small, x)
        if limits.min < 0:
            x = np.where(rng.random(count) < 0.1, np.array(-1, dtype), x)
    else:
        ml_dtypes = pytest.importorskip("ml_dtypes")
        kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
        some = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1, -1]).astype(kind)
        x = (rng.standard_normal(count) * 3).astype(kind)
    chosen = rng.choice(some, count)
    return np.where(rng.random(count) < 0.3, chosen, x).astype(x.dtype)


@pytest.mark.parametrize(
    ("cls", "dtype"),
    [
        pytest.param(cls, dtype, id=f"{cls.name.removeprefix('tgraph.')}-{dtype}")
        for cls, (_, dtypes) in EXACT.items()
        for dtype in dtypes
    ],
)
def test_operations_agree_with_numpy(cls: type[TensorOp], dtype: str) -> None:
    rng = np.random.default_rng(0)
    inputs = [extremes(rng, 333, dtype) for _ in range(EXACT[cls][0])]
    op = one(cls, inputs)
    got = computed(op, inputs, np.empty_like(inputs[0]))
    want = computed(op, inputs, np.empty_like(inputs[0]), by_numpy=True)
    assert_same(got, want)


@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
@pytest.mark.parametrize("dtype", TYPES)
def test_comparisons_agree_with_numpy(direction: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    x, y = extremes(rng, 200, dtype), extremes(rng, 200, dtype)
    y[::3] = x[::3]
    op = one(elementwise.CompareOp, [x, y], {"direction": StringAttr(direction)})
    got = computed(op, [x, y], np.empty(200, bool))
    want = computed(op, [x, y], np.empty(200, bool), by_numpy=True)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_conversions_agree_with_numpy(source: str, target: str) -> None:
    rng = np.random.default_rng(2)
    x = extremes(rng, 200, source)
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.dtype(getattr(ml_dtypes, target, target))
    if source in FLOATS and "int" in target:  # others are undefined in C
        x = np.where(np.isfinite(x), np.abs(x.astype("f4")) * 9, 7).astype(x.dtype)
    op = one(elementwise.ConvertOp, [x], target=target)
    if source == "float64" and target in ("float16", "bfloat16"):
        scratch = Scratch("cpu:0")
        assert native.calls_of(op, [x], [np.empty(200, kind)], scratch) is None
        return
    got = computed(op, [x], np.empty(200, kind))
    want = computed(op, [x], np.empty(200, kind), by_numpy=True)
    assert_same(got, want)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        *(("float32", "int32"), ("int32", "float32"), ("int64", "float64")),
        *(("int8", "uint8"), ("uint8", "int8")),
    ],
)
def test_bitcasts_agree_with_numpy(source: str, target: str) -> None:
    x = extremes(np.random.default_rng(0), 333, source)
    op = one(elementwise.BitcastConvertOp, [x], target=target)
    got, want = (
        computed(op, [x], np.empty(333, target), by_numpy=by_numpy)
        for by_numpy in (False, True)
    )
    np.testing.assert_array_equal(got.view("u1"), want.view("u1"))


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int32"])
def test_floats_out_of_range_become_the_nearest_integer(
    source: str, target: str
) -> None:
    bounds = np.iinfo(target)
    low, high = bounds.min, bounds.max
    known = [np.nan, np.inf, -np.inf, 3e9, -3e9, -1.5, 1.5, low - 0.5, low - 1]
    x = np.array(known * 5, source)  # full vectors and a remainder
    op = one(elementwise.ConvertOp, [x], target=target)
    got = computed(op, [x], np.empty(len(x), target))
    least = max(low, -1)
    want = [0, high, low, high, low, least, 1, low, low]
    assert got.tolist() == want * 5


def test_floats_become_narrow_integers_in_vectors() -> None:
    """The code avoids LLVM's saturating conversion, which converts to 8 bits one lane
    at a time."""
    x = np.zeros(64, np.float32)
    op = one(elementwise.ConvertOp, [x], target="uint8")
    calls = native.calls_of(op, [x], [np.empty(64, "u1")], Scratch(""))
    assert calls is not None
    ((record, _),) = calls
    assert isinstance(record, ArrayRecord)
    assert "sat" not in record.function.text


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_power_agrees_with_numpy(dtype: str) -> None:
    rng = np.random.default_rng(3)
    x, y = extremes(rng, 500, dtype), extremes(rng, 500, dtype)
    op = one(elementwise.PowerOp, [x, y])
    got = computed(op, [x, y], np.empty_like(x))
    want = computed(op, [x, y], np.empty_like(x), by_numpy=True)
    np.testing.assert_allclose(got, want, rtol=4 * float(np.finfo(dtype).eps))


# Shapes and layouts


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (3,), (17,), (5, 63), (2, 3, 65)])
def test_shapes_of_all_kinds(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    for _ in range(6):
        x, y = numbers(rng, shape, "float32"), numbers(rng, shape, "float32")
        op = one(elementwise.SubtractOp, [x, y])
        out = numbers(rng, shape, "float32")
        np.testing.assert_array_equal(computed(op, [x, y], out), x - y)


def test_only_the_output_is_written() -> None:
    for size in range(1, 140):
        memory = np.full(size + 64, 7, np.float32)
        x = np.arange(size, dtype=np.float32)
        computed(one(elementwise.NegateOp, [x]), [x], memory[32 : 32 + size])
        assert (memory[:32] == 7).all()
        assert (memory[32 + size :] == 7).all()
        np.testing.assert_array_equal(memory[32 : 32 + size], -x)


def test_in_place() -> None:
    x = np.linspace(-3, 3, 1000, dtype=np.float32).reshape(10, 100)
    want = x * x
    op = one(elementwise.MultiplyOp, [x, x])
    np.testing.assert_array_equal(computed(op, [x, x], x), want)


@pytest.mark.parametrize("dtype", TYPES)
def test_transpose_and_reverse(dtype: str) -> None:
    rng = np.random.default_rng(5)
    x = numbers(rng, (5, 7, 3), dtype)
    properties: dict[str, Attribute] = {"permutation": ints((2, 0, 1))}
    op = one(shaping.TransposeOp, [x], properties)
    out = np.empty((3, 5, 7), x.dtype)
    np.testing.assert_array_equal(computed(op, [x], out), x.transpose(2, 0, 1))
    op = one(shaping.ReverseOp, [x], {"dimensions": ints((0, 2))})
    out = np.empty(x.shape, x.dtype)
    np.testing.assert_array_equal(computed(op, [x], out), np.flip(x, (0, 2)))


# Reductions


def reduction(x: Array, kind: str, dims: Sequence[int]) -> TensorOp:
    properties = {"kind": StringAttr(kind), "dimensions": ints(dims)}
    return one(reducing.ReduceOp, [x], properties)


@pytest.mark.parametrize("kind", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_reductions(kind: str, dims: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    for shape in ((3, 4, 5), (2, 70, 33), (130, 3, 70)):
        x = rng.standard_normal(shape).astype(np.float32)
        function = {
            "add": np.sum,
            "multiply": np.prod,
            "maximum": np.max,
            "minimum": np.min,
        }[kind]
        want = np.asarray(function(x.astype(np.float64), axis=dims))
        got = computed(reduction(x, kind, dims), [x], np.empty(want.shape, np.float32))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kind", ["maximum", "minimum"])
@pytest.mark.parametrize("dims", [(0,), (1,)])
def test_maximum_and_minimum_propagate_nan(kind: str, dims: tuple[int]) -> None:
    rng = np.random.default_rng(7)
    x = rng.standard_normal((80, 83)).astype(np.float32)
    x[rng.random(x.shape) < 0.005] = np.nan
    x[:, 5], x[7] = -np.inf, np.inf
    function = np.max if kind == "maximum" else np.min
    want = function(x, axis=dims)
    assert 0 < np.isnan(want).sum() < want.size
    got = computed(reduction(x, kind, dims), [x], np.empty_like(want))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("shape", [(20, 30_000), (30_000, 20), (1, 1_000_000)])
def test_long_sums_are_as_accurate_as_pairwise_ones(
    shape: tuple[int, int], dims: tuple[int, ...]
) -> None:
    x = np.random.default_rng(8).random(shape, np.float32)
    want = np.sum(x.astype(np.float64), axis=dims)
    got = computed(reduction(x, "add", dims), [x], np.empty(want.shape, np.float32))
    error = np.max(np.abs(got - want) / want)
    assert error <= 4 * EPSILON


def test_sums_of_infinities() -> None:
    x = np.ones((3, 10_000), np.float32)
    x[0, 77], x[1, 5000], x[2, 3], x[2, 9000] = np.inf, -np.inf, np.inf, -np.inf
    got = computed(reduction(x, "add", (1,)), [x], np.empty(3, np.float32))
    np.testing.assert_array_equal(got, [np.inf, -np.inf, np.nan])


# Groups


def parse_fusion(text: str) -> FusionOp:
    """Parses a program; returns its only fusion."""
    module = Parser(tensorplan.context(), text).parse_module()
    module.verify()
    (op,) = (op for op in module.walk() if isinstance(op, FusionOp))
    return op


def softmax(shape: tuple[int, int], dim: int) -> FusionOp:
    full = "x".join(map(str, shape)) + "xf32"
    row = f"{shape[1 - dim]}xf32"
    return parse_fusion(f"""
      func.func @main(%a: memref<{full}>, %b: memref<{full}>) {{
        tgraph.fusion(%x = %a) outs(%b) : (memref<{full}>) -> memref<{full}> {{
          %0 = tgraph.reduce %x {{kind = "maximum", dimensions = array<i64: {dim}>}}
               : (tensor<{full}>) -> tensor<{row}>
          %1 = tgraph.broadcast_in_dim %0
               {{broadcast_dimensions = array<i64: {1 - dim}>}}
               : (tensor<{row}>) -> tensor<{full}>
          %2 = tgraph.subtract %x, %1 : tensor<{full}>
          %3 = tgraph.exponential %2 : tensor<{full}>
          %4 = tgraph.reduce %3 {{kind = "add", dimensions = array<i64: {dim}>}}
               : (tensor<{full}>) -> tensor<{row}>
          %5 = tgraph.broadcast_in_dim %4
               {{broadcast_dimensions = array<i64: {1 - dim}>}}
               : (tensor<{row}>) -> tensor<{full}>
          %6 = tgraph.divide %3, %5 : tensor<{full}>
          tgraph.yield %6 : tensor<{full}>
        }}
        func.return
      }}""")


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(
    "shape", [(1, 1), (3, 10), (7, 100), (5, 64), (64, 5), (3, 5000), (300, 3)]
)
def test_softmax(shape: tuple[int, int], dim: int) -> None:
    rng = np.random.default_rng(9)
    x = (rng.standard_normal(shape) * 5).astype(np.float32)
    x[rng.random(shape) < 0.1] = -np.inf  # masked
    x[0, 0] = 1.0
    if dim == 0:
        x[-1] = np.maximum(x[-1], -20)
    else:
        x[:, -1] = np.maximum(x[:, -1], -20)
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(dim, keepdims=True))
    want = e / e.sum(dim, keepdims=True)
    op = softmax(shape, dim)
    got = computed(op, [x], np.empty_like(x))
    np.testing.assert_allclose(got, want, rtol=5e-6, atol=1e-37)
    assert (got[np.isneginf(x)] == 0).all()
    transposed = np.empty(shape[::-1], np.float32).T
    np.testing.assert_allclose(computed(op, [x], transposed), got, rtol=2e-6)
    np.testing.assert_array_equal(computed(op, [x], x), got)  # in place


def nest_of_softmax(shape: tuple[int, int]) -> nests.LoopNest:
    op, x = softmax(shape, 1), np.empty(shape, np.float32)
    ops = by_result([o for o in op.body.block.ops if isinstance(o, TensorOp)])
    arrays: dict[SSAValue, Array] = {op.body.block.args[0]: x}
    return nests.nest_of(graph_of(ops, op.yielded[0], arrays, np.empty_like(x)))


@pytest.mark.parametrize("length", [2, 15, 16, 17, 33, 128])
@pytest.mark.parametrize("rows", [16, 17, 63, 64, 81, 130])
def test_softmax_of_transposed_rows(
    rows: int, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nests, "WORTH_TRANSPOSING", -np.inf)
    assert nest_of_softmax((rows, length)).transposed == [0, 1]
    op, rng = softmax((rows, length), 1), np.random.default_rng(rows + length)
    x = (rng.standard_normal((rows, length)) * 5).astype(np.float32)
    x[1, 0] = np.nan
    wide = np.full((rows + 1, length + 3), 7, np.float32)
    got = computed(op, [x], wide[:rows, 1 : length + 1])
    want = computed(op, [x], np.empty_like(x), by_numpy=True)
    np.testing.assert_allclose(got, want, rtol=5e-6, atol=1e-37)
    got[...] = 7
    assert (wide == 7).all()  # no element around it was written
    np.testing.assert_allclose(computed(op, [x], x), want, rtol=5e-6, atol=1e-37)


def test_rows_are_transposed_where_that_is_faster() -> None:
    assert nest_of_softmax((10_000, 10)).transposed == [0, 1]
    assert not nest_of_softmax(
        (100, 10)
    ).transposed  # too few rows for the cost of the code
    assert not nest_of_softmax((10_000, 100)).transposed
    assert not nest_of_softmax((10, 10_000)).transposed


def test_softmax_of_a_fully_masked_row_is_nan_as_in_numpy() -> None:
    x = np.full((2, 40), -np.inf, np.float32)
    x[0] = 1
    got = computed(softmax((2, 40), 1), [x], np.empty_like(x))
    assert (got[0] == np.float32(1 / 40)).all()
    assert np.isnan(got[1]).all()


UNARY = [
    elementwise.AbsOp,
    elementwise.LogisticOp,
    elementwise.NegateOp,
    elementwise.TanhOp,
]
BINARY = [
    elementwise.AddOp,
    elementwise.MaximumOp,
    elementwise.MinimumOp,
    elementwise.MultiplyOp,
    elementwise.SubtractOp,
]


@st.composite
def bodies(draw: st.DrawFn) -> tuple[tuple[int, ...], Callable[[], Region], list]:
    """Draws a shape, a function that makes a body, and the types of its arguments: two
    arrays of the shape, a row, and a column."""
    shape = (draw(st.integers(1, 5)), draw(st.integers(1, 150)))
    full = tensor(shape, "float32")
    types = [full, full, tensor(shape[1:], "float32"), tensor(shape[:1], "float32")]
    choices = draw(
        st.lists(
            st.tuples(st.integers(0, 12), st.integers(0, 30), st.integers(0, 30)),
            min_size=1,
            max_size=12,
        )
    )

    def region() -> Region:
        block = Block(arg_types=types)
        values: list[SSAValue] = [*block.args[:2]]

        def add(op: TensorOp) -> None:
            block.add_op(op)
            values.append(op.result)

        for argument, dim in ((block.args[2], 1), (block.args[3], 0)):
            properties: dict[str, Attribute] = {"broadcast_dimensions": ints((dim,))}
            add(
                shaping.BroadcastInDimOp(
                    [argument], result_types=[full], properties=properties
                )
            )
        add(shaping.ConstantOp(FloatAttr(0.75, f32), full))
        for what, first, second in choices:
            x, y = values[first % len(values)], values[second % len(values)]
            if what < len(UNARY):
                add(UNARY[what]([x], result_types=[full]))
            elif what < len(UNARY) + len(BINARY):
                add(BINARY[what - len(UNARY)]([x, y], result_types=[full]))
            else:
                dims: dict[str, Attribute] = {
                    "kind": StringAttr("add" if first % 2 else "maximum"),
                    "dimensions": ints((1,)),
                }
                row = reducing.ReduceOp([x], result_types=[types[3]], properties=dims)
                block.add_op(row)
                back: dict[str, Attribute] = {"broadcast_dimensions": ints((0,))}
                add(
                    shaping.BroadcastInDimOp(
                        [row.result], result_types=[full], properties=back
                    )
                )
        block.add_op(YieldOp(values[-1]))
        return Region(block)

    return shape, region, types


@given(bodies(), st.integers(0, 1000))
def test_random_groups(body: tuple, seed: int) -> None:
    shape, region, types = body
    rng = np.random.default_rng(seed)
    inputs = [numbers(rng, t.get_shape(), "float32") for t in types]
    result = tensor(shape, "float32")
    op = operation(FusionOp, types, {}, result, on_memrefs=True, region=region())
    got = computed(op, inputs, numbers(rng, shape, "float32"))
    want = computed(op, inputs, np.empty(shape, np.float32), by_numpy=True)
    scale = np.abs(want).max()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * max(1, scale))


LARGEST = """
!x = memref<DIMxX>
func.func @main(%x: !x, %n: memref<DIMxI>, %low: memref<X>, %none: memref<I>,
                %v: memref<KIMX>, %m: memref<KIMI>) {
  tgraph.reduce_by %x, %n, %low, %none outs(%v, %m) {dimensions = array<i64: AXES>}
      : (!x, memref<DIMxI>, memref<X>, memref<I>) -> (memref<KIMX>, memref<KIMI>) {
  ^bb0(%a: tensor<X>, %i: tensor<I>, %b: tensor<X>, %j: tensor<I>):
    %0 = tgraph.compare %a, %b {direction = "GT"}
        : (tensor<X>, tensor<X>) -> tensor<i1>
    %1 = tgraph.compare %a, %b {direction = "EQ"}
        : (tensor<X>, tensor<X>) -> tensor<i1>
    %2 = tgraph.compare %i, %j {direction = "LT"}
        : (tensor<I>, tensor<I>) -> tensor<i1>
    %3 = tgraph.and %1, %2 : tensor<i1>
    %4 = tgraph.or %0, %3 : tensor<i1>
    %5 = tgraph.select %4, %a, %b
        : (tensor<i1>, tensor<X>, tensor<X>) -> tensor<X>
    %6 = tgraph.select %4, %i, %j
        : (tensor<i1>, tensor<I>, tensor<I>) -> tensor<I>
    tgraph.yield %5, %6 : tensor<X>, tensor<I>
  }
  func.return
}"""


COUNTS = """
func.func @main(%x: memref<40x300xX>, %r: memref<40x300xX>) {
  tgraph.fusion(%y = %x) outs(%r) : (memref<40x300xX>) -> memref<40x300xX> {
    %0 = tgraph.iota {dimension = 0 : i64} : tensor<301x41xX>
    %1 = tgraph.slice %0 {start_indices = array<i64: 1, 1>,
      limit_indices = array<i64: 301, 41>, strides = array<i64: 1, 1>}
      : (tensor<301x41xX>) -> tensor<300x40xX>
    %2 = tgraph.reverse %1 {dimensions = array<i64: 0>} : tensor<300x40xX>
    %3 = tgraph.transpose %2 {permutation = array<i64: 1, 0>}
      : (tensor<300x40xX>) -> tensor<40x300xX>
    %4 = tgraph.iota {dimension = 0 : i64} : tensor<40x300xX>
    %5 = tgraph.multiply %y, %3 : tensor<40x300xX>
    %6 = tgraph.subtract %5, %4 : tensor<40x300xX>
    tgraph.yield %6 : tensor<40x300xX>
  }
  func.return
}"""


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float32"])
def test_loops_count_the_elements_of_iotas(
    dtype: str, is_transposed: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops read no array but the operand. Floats are not counted."""
    monkeypatch.setattr("tensorplan.runtime.backends.parts.GRAIN", 1)
    text = COUNTS.replace("X", str(TYPES[dtype]))
    module = Parser(tensorplan.context(), text).parse_module()
    op = next(op for op in module.walk() if isinstance(op, FusionOp))
    shape = (300, 40) if is_transposed else (40, 300)
    x = numbers(np.random.default_rng(0), shape, dtype)
    x = x.T if is_transposed else x
    got, want = (np.empty((40, 300), x.dtype) for _ in range(2))
    calls = native.calls_of(op, [x], [got], Scratch("cpu:0", threads))
    assert calls is not None
    for function, arguments in calls:
        function(*arguments)
        is_whole = isinstance(function, ArrayRecord)
        assert is_transposed or is_whole == (threads == 1)
        for y in function.arrays if isinstance(function, ArrayRecord) else ():
            assert y is not None
            is_own = np.may_share_memory(x, y) or np.may_share_memory(got, y)
            assert is_own or is_float(x.dtype)
    for function, arguments in compile_call(
        op, [x], [want], Scratch("cpu:0"), native=False
    ):
        function(*arguments)
    assert_same(got, want)


COUNTED = ", positions = array<i64: 1>}\n      : (!x,"


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
@pytest.mark.parametrize(
    ("axes", "counts"),
    [
        *product([(0,), (1,), (2,)], [False, True]),
        *product([(1, 2), (0, 1, 2)], [False]),
    ],
)
@pytest.mark.parametrize("length", [1, 3, 10, 20, 53])
def test_argmax(
    length: int, axes: Sequence[int], counts: bool, dtype: str, index: str
) -> None:
    """Of equal elements, the first is found, in whatever order they are combined. Their
    positions along one dimension are counted, and lie in no array."""
    rng = np.random.default_rng(0)
    shape = [3, 41, length]
    kept = [n for d, n in enumerate(shape) if d not in axes]
    text = LARGEST.replace("AXES", ", ".join(map(str, axes)))
    if counts:
        text = text.replace("%n: memref<DIMxI>, ", "").replace("%x, %n,", "%x,")
        text = text.replace("}\n      : (!x, memref<DIMxI>,", COUNTED)
    text = text.replace("DIM", "x".join(map(str, shape)))
    text = text.replace("KIM", "".join(f"{n}x" for n in kept))
    text = text.replace("X", str(TYPES[dtype])).replace("I", str(TYPES[index]))
    module = Parser(tensorplan.context(), text).parse_module()
    op = next(op for op in module.walk() if isinstance(op, ReduceByOp))
    x = rng.integers(0, 50, shape).astype(numbers(rng, [], dtype).dtype)
    places = np.arange(x.size, dtype=index).reshape(shape)
    inputs = [x, places, np.zeros((), x.dtype), np.array(x.size, index)]
    got, want = ([np.empty(kept, y.dtype) for y in inputs[:2]] for _ in range(2))
    if counts:
        del inputs[1]
    calls = native.calls_of(op, inputs, got, Scratch("cpu:0"))
    assert calls is not None
    if counts:
        record = calls[0][0]
        assert isinstance(record, ArrayRecord)
        places = record.arrays[1]
        assert places is not None
        assert not any(places.strides)
    calls += compile_call(op, inputs, want, Scratch("cpu:0"), native=False)
    for function, arguments in calls:
        function(*arguments)
    for result, wanted in zip(got, want, strict=True):
        assert_same(result, wanted)


SORT = """
!x = memref<DIMxX>
!k = memref<KIMxX>
!i = memref<DIMxi32>
!j = memref<KIMxi32>
!p = memref<KIMxP>
func.func @main(%x: !x, %y: !i, %n: !i, %v: !k, %w: !j, %m: !j, %q: !p) {
  tgraph.sort %x, %y, %n outs(%v, %w, %m, %q)
      {count = COUNT : i64, dimension = AXIS : i64, positions = array<i64: 3>}
      : (!x, !i, !i) -> (!k, !j, !j, !p) {
  ^bb0(%a: tensor<X>, %b: tensor<X>, %c: tensor<i32>, %d: tensor<i32>,
       %i: tensor<i32>, %j: tensor<i32>, %k: tensor<P>, %l: tensor<P>):
    %0 = tgraph.compare %a, %b {direction = "WAY"}
        : (tensor<X>, tensor<X>) -> tensor<i1>
    %1 = tgraph.compare %a, %b {direction = "EQ"}
        : (tensor<X>, tensor<X>) -> tensor<i1>
    %2 = tgraph.compare %c, %d {direction = "LT"}
        : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = tgraph.and %1, %2 : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %4 = tgraph.or %0, %3 : (tensor<i1>, tensor<i1>) -> tensor<i1>
    PLACES
    tgraph.yield %KEYS : tensor<i1>
  }
  func.return
}"""

FIRST = """
    %5 = tgraph.constant<48 : P> : tensor<P>
    %6 = tgraph.compare %k, %5 {direction = "EQ"}
        : (tensor<P>, tensor<P>) -> tensor<i1>
    %7 = tgraph.compare %l, %5 {direction = "NE"}
        : (tensor<P>, tensor<P>) -> tensor<i1>
    %8 = tgraph.and %6, %7 : tensor<i1>
"""
SORTED = ["float32", "float64", "bfloat16", "int32", "uint8"]


@pytest.mark.parametrize(("keys", "dtype"), [*product([1, 2], SORTED), (0, "float32")])
@pytest.mark.parametrize("direction", ["LT", "GT"])
@pytest.mark.parametrize(
    ("size", "axis", "count"),
    [
        *((150, 0, 1), (150, 1, 1), (150, 1, 7), (150, 1, 64), (150, 2, 2)),
        *(
            (150, 1, 150),
            (40, 2, 3),
            (2, 1, 2),
            (8, 1, 8),
            (9, 1, 9),
            (17, 1, 16),
            (150, 2, 4),
            (9, 2, 9),
            (40, 2, 40),
        ),
    ],
)
def test_sorts(
    monkeypatch: pytest.MonkeyPatch,
    keys: int,
    direction: str,
    dtype: str,
    size: int,
    axis: int,
    count: int,
) -> None:
    """Sorts are stable: many elements are equal, and the third operand numbers them.
    The last result has positions along the column; with 0 keys, position 48 comes
    first."""
    rng = np.random.default_rng(0)
    shape = [3, 4, size] if axis == 2 and count == size else [3, size, 4]
    kept = [count if d == axis else n for d, n in enumerate(shape)]
    words = {"COUNT": count, "AXIS": axis, "WAY": direction, "X": TYPES[dtype]}
    words |= {"DIM": "x".join(map(str, shape)), "KIM": "x".join(map(str, kept))}
    types = [np.int64, np.int32, np.float32] if keys else [np.int64, np.int32]
    positions = np.dtype(types[(keys + count) % len(types)])
    words["P"] = TYPES[positions.name]
    text = SORT.replace("PLACES", "" if keys else FIRST)
    text = text.replace("%KEYS", ["%8", "%0", "%4"][keys])
    for word, value in words.items():
        text = text.replace(word, str(value))
    module = Parser(tensorplan.context(), text).parse_module()
    op = next(op for op in module.walk() if isinstance(op, SortOp))
    x = rng.integers(0, 50, shape).astype(numbers(rng, [], dtype).dtype)
    y = rng.integers(0, 4, shape).astype(np.int32)
    inputs = [x, y, np.arange(x.size, dtype=np.int32).reshape(shape)]
    sign = 1 if direction == "LT" else -1
    key = x.astype(float) * sign + (keys - 1) * y / 4
    if not keys:
        key = np.indices(shape)[axis] != 48
    order = np.argsort(key, axis, "stable").take(range(count), axis)
    want = [np.take_along_axis(z, order, axis) for z in inputs]
    want.append(order.astype(positions))

    def check(compiled: Callable[..., Sequence[Call] | None]) -> None:
        got = [np.empty(kept, z.dtype) for z in want]
        calls = compiled(op, inputs, got, Scratch("cpu:0"))
        assert calls is not None
        for function, arguments in calls:
            function(*arguments)
        for result, wanted in zip(got, want, strict=True):
            assert_same(result, wanted)

    check(partial(compile_call, native=False))
    methods: list[type] = [sorting.Merging, sorting.Together]
    if count < shape[axis]:
        methods += [sorting.Insertion, sorting.Selection]
    for method in methods:
        monkeypatch.setattr(sorting, "fastest", lambda *_, method=method: method)
        check(native.calls_of)


@pytest.mark.parametrize("direction", ["LT", "GT"])
@pytest.mark.parametrize("size", [9, 40])
def test_short_columns_have_numpys_order(size: int, direction: str) -> None:
    """Zeros of both signs are equal, and NaN is larger than all other numbers."""
    text = f"""func.func @main(%x: memref<{size}x20xf32>, %v: memref<{size}x20xf32>) {{
      tgraph.sort %x outs(%v) {{dimension = 0 : i64}}
          : (memref<{size}x20xf32>) -> memref<{size}x20xf32> {{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %0 = tgraph.compare %a, %b {{direction = "{direction}"}}
            : (tensor<f32>, tensor<f32>) -> tensor<i1>
        tgraph.yield %0 : tensor<i1>
      }}
      func.return
    }}"""
    module = Parser(tensorplan.context(), text).parse_module()
    op = next(op for op in module.walk() if isinstance(op, SortOp))
    some = np.array([0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-40, -3], "f4")
    x = some[np.random.default_rng(size).integers(0, len(some), (size, 20))]
    assert sorting.fastest(size, size, 20, True, 16) is sorting.Together
    found: list[Array] = []
    for is_native in (False, True):
        found.append(np.empty_like(x))
        scratch = Scratch("cpu:0")
        calls = compile_call(op, [x], found[-1:], scratch, native=is_native)
        for function, arguments in calls:
            function(*arguments)
    assert_same(found[1].view("i4"), found[0].view("i4"))


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("count", [1, 30, 300])
@pytest.mark.parametrize("dtype", ["f4", "i4", "u4"])
def test_order_of_packed_keys(dtype: str, is_descending: bool, count: int) -> None:
    """Zeros of both signs are equal, and NaN is larger than all other numbers."""
    rng = np.random.default_rng(0)
    if dtype == "f4":
        some = np.array([0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-40, -3], "f4")
    else:
        ends = np.iinfo(dtype)
        some = np.array([ends.min, ends.max, 0, 5, ends.max // 2 + 1], dtype)
    x = some[rng.integers(0, len(some), (2, 300))]
    packed = np.empty(x.shape, np.int64)
    order = order_packed(x.copy(), is_descending, packed, count)[:, :count]
    if is_descending:
        want = 299 - np.argsort(x[:, ::-1], 1, "stable")[:, ::-1]
    else:
        want = np.argsort(x, 1, "stable")
    assert_same(order, want[:, :count])


INTEGERS = [("int32",) * 2, ("int64",) * 2, ("int32", "int64"), ("bool",) * 2]


@pytest.mark.parametrize(("source", "target"), INTEGERS)
@pytest.mark.parametrize(
    ("shapes", "batch", "contracting"),
    [
        (((9, 20), (20, 70)), ((), ()), ((1,), (0,))),
        (((9, 20), (70, 20)), ((), ()), ((1,), (1,))),
        (((3, 9, 20), (20, 3, 70)), ((0,), (1,)), ((2,), (0,))),
        (((4, 5, 300), (300, 7, 5)), ((), ()), ((1, 2), (2, 0))),
        (((300,), (300,)), ((), ()), ((0,), (0,))),
    ],
)
def test_products_of_integers(
    shapes: Any, batch: Any, contracting: Any, source: str, target: str
) -> None:
    """Products equal NumPy's bit for bit, although no float can hold their sums."""
    rng = np.random.default_rng(0)
    inputs = [extremes(rng, prod(s), source).reshape(s) for s in shapes]
    names = "batching", "contracting"
    properties: dict[str, Attribute] = {
        f"{side}_{name}_dimensions": ints(dims[n])
        for name, dims in zip(names, (batch, contracting), strict=True)
        for n, side in enumerate(("lhs", "rhs"))
    }
    sizes = [shapes[0][d] for d in batch[0]]
    for shape, b, c in zip(shapes, batch, contracting, strict=True):
        sizes += [n for d, n in enumerate(shape) if d not in (*b, *c)]
    types = [tensor(x.shape, source) for x in inputs]
    op = operation(
        *(reducing.DotGeneralOp, types, properties, tensor(sizes, target)),
        on_memrefs=True,
    )
    got = computed(op, inputs, np.empty(sizes, target))
    want = computed(op, inputs, np.empty(sizes, target), by_numpy=True)
    assert_same(got, want)


POOLING = {
    "window_dimensions": [1, 3, 3, 1],
    "window_strides": [1, 2, 1, 1],
    "padding_low": [0, 1, 1, 0],
    "padding_high": [0, 0, 1, 0],
    "base_dilations": [1] * 4,
    "window_dilations": [1, 1, 2, 1],
}


def windowed(x: Array, kind: str, changed: dict[str, list[int]]) -> TensorOp:
    properties: dict[str, Attribute] = {"kind": StringAttr(kind)}
    for name, values in (POOLING | changed).items():
        properties[name] = ints(values)
    return one(reducing.ReduceWindowOp, [x], properties)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("kind", ["add", "multiply", "maximum", "minimum"])
def test_windows(kind: str, dtype: str) -> None:
    x = numbers(np.random.default_rng(0), (2, 9, 8, 5), dtype)
    op = windowed(x, kind, {})
    out = np.empty(op.declared[0].get_shape(), dtype)
    got = computed(op, [x], out.copy())
    want = computed(op, [x], out, by_numpy=True)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


HOLES = {"base_dilations": [1, 3, 2, 1], "window_dilations": [1, 2, 1, 1]}


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *product(
            ("add", "multiply", "maximum", "minimum"),
            ("float32", "float64", "bfloat16", "int8", "bool"),
        ),
        *product(("and", "or"), ("int8", "bool")),
    ],
)
@pytest.mark.parametrize(
    "changed",
    [
        HOLES,
        HOLES | {"base_dilations": [1, 4, 4, 1]},  # windows with only holes
        {"padding_low": [0, 4, 1, 0]},  # windows with only padding
        {
            "window_dimensions": [1, 9, 3, 1],
            "padding_low": [0, 8, 1, 0],
        },  # many overlap the padding
        HOLES | {"padding_low": [1, 1, 1, 2], "window_strides": [2, 2, 3, 1]},
        HOLES | {"padding_high": [0, 0, 40, 0]},
    ],
)
@pytest.mark.parametrize("channels", [5, 100])
def test_windows_that_are_no_views(
    changed: dict[str, list[int]], kind: str, dtype: str, channels: int
) -> None:
    """Windows that are not views of the input give NumPy's results bit for bit."""
    rng = np.random.default_rng(0)
    x = extremes(rng, 2 * 9 * 8 * channels, dtype).reshape(2, 9, 8, channels)
    op = windowed(x, kind, changed)
    out = np.empty(op.declared[0].get_shape(), x.dtype)
    got = computed(op, [x], out.copy())
    assert_same(got, computed(op, [x], out, by_numpy=True))


def selecting(
    x: Array, kind: str, window: Sequence[int], strides: Sequence[int], low: int
) -> tuple[TensorOp, list[int]]:
    """Returns a gradient of pooling with padding `low` on both sides of each pooled
    dimension, and the shape of the pooled result."""
    padding = [low if n > 1 else 0 for n in window]
    sizes = [n + 2 * more for n, more in zip(x.shape, padding, strict=True)]
    places = [(n - w) // s + 1 for n, w, s in zip(sizes, window, strides, strict=True)]
    properties: dict[str, Attribute] = {
        "kind": StringAttr(kind),
        "window_dimensions": ints(window),
        "window_strides": ints(strides),
        "padding_low": ints(padding),
        "padding_high": ints(padding),
    }
    return one(
        reducing.SelectAndScatterOp, [x, np.empty(places, x.dtype)], properties
    ), places


WINDOWS = {
    "columns": ((2, 9, 8, 100), (1, 2, 2, 1), (1, 2, 2, 1), 0),
    "overlapping": ((2, 9, 8, 5), (1, 3, 3, 1), (1, 2, 1, 1), 1),
    "rows": ((2, 3, 9, 40), (1, 1, 3, 2), (1, 1, 2, 2), 1),
    "rows that overlap": ((3, 70, 80), (1, 3, 3), (1, 2, 2), 1),
    "gaps": ((2, 20, 70), (1, 2, 2), (1, 3, 5), 0),
    "padding alone": ((2, 6, 7, 33), (1, 2, 3, 1), (1, 1, 3, 1), 4),
    "all dimensions": ((6, 5, 7), (2, 3, 2), (1, 1, 2), 1),
    "the whole": ((2, 7, 7, 64), (1, 7, 7, 1), (1, 1, 1, 1), 0),
    "one": ((4, 6), (1, 1), (1, 1), 0),
}


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int8", "int64", "bool"]
)
@pytest.mark.parametrize("kind", ["maximum", "minimum"])
@pytest.mark.parametrize("name", WINDOWS)
def test_gradients_of_pooling(name: str, kind: str, dtype: str) -> None:
    """Gradients equal NumPy's bit for bit: both select the first of equal elements and
    add in the same order."""
    shape, window, strides, low = WINDOWS[name]
    rng = np.random.default_rng(0)
    x = extremes(rng, prod(shape), dtype).reshape(shape)
    op, places = selecting(x, kind, window, strides, low)
    source = extremes(rng, prod(places), dtype).reshape(places)
    got = computed(op, [x, source], np.empty_like(x))
    want = computed(op, [x, source], np.empty_like(x), by_numpy=True)
    assert_same(got, want)
    x, source = (np.moveaxis(y.copy(), 0, -1) for y in (x, source))  # another layout
    op, _ = selecting(x, kind, (*window[1:], 1), (*strides[1:], 1), low)
    if window[0] == strides[0] == 1:
        assert_same(
            computed(op, [x, source], np.empty_like(x)), np.moveaxis(want, 0, -1)
        )


def test_the_gradient_of_pooling_takes_no_workspace() -> None:
    x = np.ones((2, 9, 8, 5), np.float32)
    op, places = selecting(x, "maximum", (1, 3, 3, 1), (1, 2, 2, 1), 1)
    scratch = Scratch("cpu:0")
    inputs = [x, np.ones(places, np.float32)]
    assert native.calls_of(op, inputs, [np.empty_like(x)], scratch) is not None
    assert scratch.pool.bytes == 0


@pytest.mark.parametrize("threads", [2, 3])
def test_windows_in_threads(threads: int) -> None:
    x = numbers(np.random.default_rng(0), (6, 64, 64, 32), "float32")
    op, places = selecting(x, "maximum", (1, 3, 3, 1), (1, 2, 2, 1), 1)
    source = numbers(np.random.default_rng(1), places, "float32")
    out = np.empty(x.shape, np.float32)
    calls = native.calls_of(op, [x, source], [out], Scratch("cpu:0", threads))
    assert calls is not None
    for function, arguments in calls:
        function(*arguments)
    assert_same(out, computed(op, [x, source], np.empty_like(out), by_numpy=True))


def cumulative(x: Array, kind: str, axis: int, forward: bool) -> TensorOp:
    window = [n if d == axis else 1 for d, n in enumerate(x.shape)]
    before, none = [n - 1 for n in window], [0] * x.ndim
    low, high = (before, none) if forward else (none, before)
    changed = {"window_dimensions": window, "padding_low": low, "padding_high": high}
    ones = dict.fromkeys(POOLING, [1] * x.ndim)
    return windowed(x, kind, ones | changed)


SCANS = [  # shapes and dimensions
    ((2, 20, 3, 5), 1),
    ((30, 100), 0),
    ((1, 12, 64), 1),
    ((2, 1100), 1),
    ((40, 70), 1),
    ((3, 5, 150), 2),
    ((70, 1, 64), 2),
    ((300,), 0),
    ((1, 30), 1),
    ((20, 20), 1),
]


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int32", "uint8"]
)
@pytest.mark.parametrize("kind", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize(("shape", "axis"), SCANS)
def test_scans_of_columns_and_rows(
    shape: tuple[int, ...], axis: int, forward: bool, kind: str, dtype: str
) -> None:
    """Cumulative reductions along columns and rows equal NumPy's bit for bit."""
    x = np.ascontiguousarray(numbers(np.random.default_rng(0), shape, dtype))
    op = cumulative(x, kind, axis, forward)
    wide = np.zeros((shape[0] + 1, *shape[1:]), x.dtype)
    want = computed(op, [x], np.empty_like(x), by_numpy=True)
    assert_same(computed(op, [x], wide[:-1]), want)
    assert not wide[-1].any()
    assert_same(computed(op, [x], x), want)  # in place


def test_scans_without_a_native_form() -> None:
    x = np.ones((20, 20), np.float32)[:, ::2]
    op = cumulative(x, "add", 0, forward=True)
    assert native.calls_of(op, [x], [np.empty_like(x)], Scratch("cpu:0")) is None


def test_vector_matrix_product_and_epilogue_are_one_loop_nest() -> None:
    op = parse_fusion("""
      func.func @main(%a: memref<1x20xf32>, %b: memref<20x70xf32>,
                      %c: memref<1x70xf32>, %d: memref<1x70xf32>) {
        tgraph.fusion(%x = %a, %y = %b, %z = %c) outs(%d)
            : (memref<1x20xf32>, memref<20x70xf32>, memref<1x70xf32>)
              -> memref<1x70xf32> {
          %0 = tgraph.dot_general %x, %y
               {lhs_contracting_dimensions = array<i64: 1>,
                rhs_contracting_dimensions = array<i64: 0>}
               : (tensor<1x20xf32>, tensor<20x70xf32>) -> tensor<1x70xf32>
          %1 = tgraph.subtract %z, %0 : tensor<1x70xf32>
          %2 = tgraph.tanh %1 : tensor<1x70xf32>
          tgraph.yield %2 : tensor<1x70xf32>
        }
        func.return
      }""")
    rng = np.random.default_rng(10)
    x, y, z = (numbers(rng, s, "float32") for s in ((1, 20), (20, 70), (1, 70)))
    want = np.tanh(z - x @ y)
    calls = native.calls_of(op, [x, y, z], [z], Scratch("cpu:0"))  # in place
    assert calls is not None
    ((function, arguments),) = calls
    function(*arguments)
    np.testing.assert_allclose(z, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [2, 3])
def test_products_of_few_rows_need_no_packed_weights(rows: int) -> None:
    rng = np.random.default_rng(11)
    x = numbers(rng, (rows, 64), "float32")
    y = numbers(rng, (70, 64), "float32")
    properties: dict[str, Attribute] = {
        "lhs_batching_dimensions": ints([]),
        "rhs_batching_dimensions": ints([]),
        "lhs_contracting_dimensions": ints([1]),
        "rhs_contracting_dimensions": ints([1]),
    }
    types = [tensor(each.shape, "float32") for each in (x, y)]
    op = operation(reducing.DotGeneralOp, types, properties, on_memrefs=True)
    out, scratch = np.empty((rows, 70), np.float32), Scratch("cpu:0")
    calls = native.calls_of(op, [x, y], [out], scratch)
    assert calls is not None
    for function, arguments in calls:
        function(*arguments)
    np.testing.assert_allclose(out, x @ y.T, rtol=1e-4, atol=1e-4)
    assert scratch.peak == 0


def test_a_contraction_and_its_epilogue() -> None:
    op = parse_fusion("""
      func.func @main(%a: memref<9x20xf32>, %b: memref<20x70xf32>,
                      %c: memref<70xf32>, %d: memref<9x70xf32>) {
        tgraph.fusion(%x = %a, %y = %b, %z = %c) outs(%d)
            : (memref<9x20xf32>, memref<20x70xf32>, memref<70xf32>)
              -> memref<9x70xf32> {
          %0 = tgraph.dot_general %x, %y
               {lhs_contracting_dimensions = array<i64: 1>,
                rhs_contracting_dimensions = array<i64: 0>}
               : (tensor<9x20xf32>, tensor<20x70xf32>) -> tensor<9x70xf32>
          %1 = tgraph.broadcast_in_dim %z {broadcast_dimensions = array<i64: 1>}
               : (tensor<70xf32>) -> tensor<9x70xf32>
          %2 = tgraph.add %0, %1 : tensor<9x70xf32>
          %3 = tgraph.tanh %2 : tensor<9x70xf32>
          tgraph.yield %3 : tensor<9x70xf32>
        }
        func.return
      }""")
    rng = np.random.default_rng(10)
    x, y, z = (numbers(rng, s, "float32") for s in ((9, 20), (20, 70), (70,)))
    got = computed(op, [x, y, z], np.empty((9, 70), np.float32))
    np.testing.assert_allclose(got, np.tanh(x @ y + z), rtol=1e-5, atol=1e-5)


# Indices

STARTS: dict[str, list[int]] = {
    "int8": [-128, -1, 0, 1, 3, 5, 127],
    "uint8": [0, 1, 3, 5, 255],
    "int64": [-(2**63), -1, 0, 1, 3, 5, 2**63 - 1],
}
"""Indices of six rows, including indices out of bounds."""


@pytest.mark.parametrize("starts", STARTS)
@pytest.mark.parametrize("kind", ["replace", "add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int8"])
def test_scatters_agree_with_numpy(kind: str, dtype: str, starts: str) -> None:
    """Indices repeat or are out of bounds, and some numbers are special."""
    rng = np.random.default_rng(0)
    x, updates = (extremes(rng, 77 * n, dtype).reshape(n, 77) for n in (6, 60))
    at = rng.choice(np.array(STARTS[starts], starts), 60)
    op = one(
        indexing.ScatterOp,
        [x, at, updates],
        {
            **indexing.ScatterOp.DEFAULTS,
            "kind": StringAttr(kind),
            "update_window_dims": ints([1]),
            "inserted_window_dims": ints([0]),
            "scatter_dims_to_operand_dims": ints([0]),
            "index_vector_dim": IntegerAttr(1, i64),
        },
    )
    inputs = [x, at, updates]
    got = computed(op, inputs, np.empty_like(x))
    assert_same(got, computed(op, inputs, np.empty_like(x), by_numpy=True))


@pytest.mark.parametrize("starts", STARTS)
def test_slices_agree_with_numpy(starts: str) -> None:
    rng = np.random.default_rng(0)
    x, update = numbers(rng, (6, 77), "float32"), numbers(rng, (2, 70), "float32")
    for row in np.array(STARTS[starts], starts):
        where = [np.array(row), np.array(3, np.int32)]
        taken = one(
            indexing.DynamicSliceOp, [x, *where], {"slice_sizes": ints([2, 70])}
        )
        put = one(indexing.DynamicUpdateSliceOp, [x, update, *where])
        for op, inputs, like in (
            (taken, [x, *where], update),
            (put, [x, update, *where], x),
        ):
            got = computed(op, inputs, np.empty_like(like))
            want = computed(op, inputs, np.empty_like(like), by_numpy=True)
            assert_same(got, want)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "float64"])
@pytest.mark.parametrize("count", [1, 3, 16, 17, 40, 1025])
def test_gather_of_columns(count: int, dtype: str) -> None:
    """A gather clamps column numbers that are out of bounds."""
    rng = np.random.default_rng(count)
    x = rng.integers(0, 200, (6, 40)).astype(dtype)
    numbers = rng.integers(-3, 43, count).astype(np.int32)
    properties: dict[str, Attribute] = {
        "index_vector_dim": IntegerAttr(1, i64),
        "offset_dims": ints([0]),
        "collapsed_slice_dims": ints([1]),
        "start_index_map": ints([1]),
        "slice_sizes": ints([6, 1]),
        "operand_batching_dims": ints([]),
        "start_indices_batching_dims": ints([]),
    }
    op = one(indexing.GatherOp, [x, numbers], properties)
    got = computed(op, [x, numbers], np.empty((6, count), dtype))
    assert_same(got, x[:, np.clip(numbers, 0, 39)])


@pytest.mark.parametrize("step", [1, -1])
def test_the_code_does_not_grow_with_the_array(step: int) -> None:
    def text(rows: int) -> str:
        x = np.empty((rows, 3), np.float32)[:, ::step]
        node = ElementNode(x.dtype, array=0)
        out = np.empty(x.shape, x.dtype)
        graph = ElementGraph(x.shape, frozenset(), node, [x, out], [node])
        return lower(nests.nest_of(graph))

    assert len(text(100_000)) < 1.1 * len(text(1_000)) + 1_000


def test_the_code_does_not_depend_on_hashes() -> None:
    source = """
import numpy as np
from tensorplan.runtime.backends.native.graphs import by_result, graph_of
from tensorplan.runtime.backends.native.loops import lower
from tensorplan.runtime.backends.native.nests import nest_of
from test_native import softmax
op, x = softmax((7, 100), 1), np.ones((7, 100), np.float32)
ops = [o for o in op.body.block.ops if o.results]
arrays = {op.body.block.args[0]: x}
print(lower(nest_of(graph_of(by_result(ops), op.yielded[0], arrays, np.empty_like(x)))))
"""
    folder = Path(__file__).parent
    texts = {
        subprocess.run(
            [sys.executable, "-c", source],
            env={
                **os.environ,
                "PYTHONHASHSEED": str(seed),
                "PYTHONPATH": f"{folder}{os.pathsep}{folder / 'support'}",
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(texts) == 1
    assert "fdiv" in texts.pop()


# The cache

ADD_ONE = """define i32 @{name}(ptr %words) {
  %at = load ptr, ptr %words
  %x = load i64, ptr %at
  %y = add i64 %x, 1
  store i64 %y, ptr %at
  ret i32 0
}"""


def adds_one(compiler: llvm.Compiler) -> bool:
    x = np.array([41])
    words = np.array([x.ctypes.data])
    compiler.function(ADD_ONE).entry(words.ctypes.data)
    return x.tolist() == [42]


def test_functions_are_found_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORPLAN_CACHE", str(tmp_path / "cache"))
    assert adds_one(llvm.Compiler())
    (file,) = (tmp_path / "cache").iterdir()
    monkeypatch.setattr(llvm.Compiler, "_compile", None)  # must not be called
    assert adds_one(llvm.Compiler())
    assert [file] == list((tmp_path / "cache").iterdir())


def test_a_program_compiles_its_functions_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The functions are in one file on disk, where other programs find each of them."""
    monkeypatch.setenv("TENSORPLAN_CACHE", str(tmp_path))
    monkeypatch.setattr(made, "_functions", dict[object, object]())
    monkeypatch.setattr(llvm, "_compiler", llvm.Compiler())
    chain()
    (file,) = tmp_path.glob("*.o")
    functions = sorted(x.stem for x in tmp_path.glob("*.in"))
    assert len(functions) == 3
    monkeypatch.setattr(llvm.Compiler, "_compile", None)  # must not be called
    compiler = llvm.Compiler()
    assert [compiler.linked(x).code.name for x in functions] == 3 * [file.stem]
    assert len({compiler.linked(x).address for x in functions}) == 3


def test_a_plan_needs_no_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scratch memory of a kernel is known before the kernel is compiled."""
    monkeypatch.setattr(llvm, "_compiler", llvm.Compiler())
    monkeypatch.setattr(made, "_functions", dict[object, object]())
    monkeypatch.setattr(llvm.Compiler, "_cached", None)  # must not be called
    module = tensorplan.read(Path("examples/classifier.mlir"))
    planned = tensorplan.plan(module, workspaces="native", threads=1)
    monkeypatch.undo()
    arrays = [np.ones(slot.shape, slot.dtype) for slot in Executable(planned).inputs]
    (scores,) = Executable(planned)(*arrays)
    assert np.allclose(scores.sum(axis=1), 1)


AT_ONCE = """
import os, sys
from tensorplan.support import cache
from tensorplan.runtime.backends.jit import llvm
print("ready", flush=True)
sys.stdin.readline()
_, text, number = sys.argv
llvm.Compiler().function(text).code
files = os.listdir(os.environ["TENSORPLAN_CACHE"])
compiled = next(f for f in files if f.endswith(".o") and f != "a.o")
cache.write("a.o", bytes([int(number)]) * 100_000)
for _ in range(200):
    assert cache.read("a.o") in (bytes([n]) * 100_000 for n in range(2))
    cache.write("a.o", bytes([int(number)]) * 100_000)
    cache.write(compiled, cache.read(compiled))
"""
"""One process replaces files while the other reads them: no file is missing or torn."""


def test_concurrent_processes_share_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORPLAN_CACHE", str(tmp_path))
    both = [
        subprocess.Popen(
            [sys.executable, "-c", AT_ONCE, ADD_ONE, str(n)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(2)
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert len(list(tmp_path.iterdir())) == 2  # no temporary file is left
    monkeypatch.setattr(llvm.Compiler, "_compile", None)  # must not be called
    assert adds_one(llvm.Compiler())


@pytest.mark.parametrize("damage", [b"", b"x", b"x" * 5000, None])
def test_damaged_files_are_compiled_again(
    damage: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORPLAN_CACHE", str(tmp_path))
    assert adds_one(llvm.Compiler())
    (file,) = tmp_path.iterdir()
    sound = file.read_bytes()
    file.write_bytes(sound[:-1] if damage is None else damage)
    assert adds_one(llvm.Compiler())
    assert file.read_bytes() == sound


def test_a_file_under_another_name_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORPLAN_CACHE", str(tmp_path))
    assert adds_one(llvm.Compiler())
    (file,) = tmp_path.iterdir()
    other = cache.read(file.name)
    assert other is not None
    (tmp_path / f"{'0' * 64}.o").write_bytes(file.read_bytes())
    assert cache.read(f"{'0' * 64}.o") is None


@pytest.fixture
def warnings(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Callable[[], Sequence[str]]:
    monkeypatch.setattr(cache, "_warned", set[str]())
    return lambda: [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o1777])
def test_a_cache_folder_writable_by_others_is_not_used(
    mode: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    warnings: Callable[[], Sequence[str]],
) -> None:
    """Other users could have stored code there that the program would run."""
    monkeypatch.setenv("TENSORPLAN_CACHE", str(tmp_path))
    assert adds_one(llvm.Compiler())
    (file,) = tmp_path.iterdir()
    key, poison = file.name, b"any code"
    file.write_bytes(cache._digest(key, poison) + poison)
    assert cache.read(key) == poison
    before = file.read_bytes()
    tmp_path.chmod(mode)
    for _ in range(2):
        assert adds_one(llvm.Compiler())
    assert [file.read_bytes()] == [f.read_bytes() for f in tmp_path.iterdir()]
    assert file.read_bytes() == before
    (warning,) = warnings()
    assert f"{tmp_path} has mode {mode:o}, expected {mode & ~0o22:o}" in warning


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_a_cached_file_writable_by_others_is_compiled_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    warnings: Callable[[], Sequence[str]],
) -> None:
    monkeypatch.setenv("TENSORPLAN_CACHE", str(tmp_path))
    assert adds_one(llvm.Compiler())
    (file,) = tmp_path.iterdir()
    poison = b"any code"
    file.write_bytes(cache._digest(file.name, poison) + poison)
    file.chmod(0o666)
    assert adds_one(llvm.Compiler())
    assert file.stat().st_mode & 0o777 == 0o600  # a new file
    assert adds_one(llvm.Compiler())
    assert len(warnings()) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_a_cache_folder_of_another_user_is_not_used(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    warnings: Callable[[], Sequence[str]],
) -> None:
    monkeypatch.setenv("TENSORPLAN_CACHE", str(tmp_path))
    assert adds_one(llvm.Compiler())
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    monkeypatch.setattr(cache, "_digest", None)  # must not be called
    assert adds_one(llvm.Compiler())
    (warning,) = warnings()
    assert f"{tmp_path} belongs to user {user}, expected {user + 1}" in warning


def test_symbolic_links_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORPLAN_CACHE", str(tmp_path / "cache"))
    assert adds_one(llvm.Compiler())
    (file,) = (tmp_path / "cache").iterdir()
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert cache.read(file.name) is None
    assert adds_one(llvm.Compiler())
    assert not file.is_symlink()


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a home directory, as in some containers, code is compiled but not
    cached."""

    def unknown(_: object) -> object:
        raise KeyError

    for name in ("TENSORPLAN_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert adds_one(llvm.Compiler())


def test_an_unwritable_cache_folder_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("TENSORPLAN_CACHE", str(tmp_path / "file"))
    assert adds_one(llvm.Compiler())


def test_concurrent_writers_of_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORPLAN_CACHE", str(tmp_path))
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: adds_one(llvm.Compiler()), range(4)))
    assert len(list(tmp_path.iterdir())) == 1  # and no temporary files


# Programs

CHAIN = """
func.func @main(%a: memref<64xf32>, %b: memref<64xf32>,
                %c: memref<64xf32> {tgraph.result = 0 : i64}) {
  %t = memref.alloc() : memref<64xf32>
  %u = memref.alloc() : memref<64xf32>
  tgraph.add %a, %b outs(%t) : memref<64xf32>
  tgraph.exponential %t outs(%u) : memref<64xf32>
  tgraph.multiply %u, %b outs(%c) : memref<64xf32>
  memref.dealloc %t : memref<64xf32>
  memref.dealloc %u : memref<64xf32>
  func.return
}"""


def chain(*, native: bool = True) -> Executable:
    module = Parser(tensorplan.context(), CHAIN).parse_module()
    return Executable(module, native=native)


def calls_of(program: Executable) -> Sequence[object]:
    runner = program._runner
    assert isinstance(runner, Serial)
    return runner._whole


def test_a_run_of_operations_is_one_call() -> None:
    rng = np.random.default_rng(11)
    program = chain()
    assert len(calls_of(program)) == 1
    for _ in range(3):  # other arrays each time
        a, b = rng.standard_normal((2, 64)).astype(np.float32)
        out = np.empty(64, np.float32)
        program(a, b, out=[out])
        np.testing.assert_allclose(out, np.exp(a + b) * b, rtol=1e-6)


FAILS = """define i32 @{name}(ptr %words) {
  ret i32 3
}"""


@pytest.mark.parametrize("count", [1, 2])
def test_an_error_ends_a_run(count: int) -> None:
    compiler, x = llvm.compiler(), np.array([0])
    fails = ArrayRecord(compiler.function(FAILS), [])
    adds = ArrayRecord(compiler.function(ADD_ONE), [x])
    ((tape, _),) = joined([(f, ()) for f in [adds, adds, fails, adds][-count - 1 :]])
    for times in (1, 2):
        with pytest.raises(RuntimeError, match="returned status 3"):
            tape()
        assert x.tolist() == [times * (count - 1)]


def test_a_program_of_native_steps_is_one_call() -> None:
    text = """
    func.func @main(%a: memref<6x4xf32>, %b: memref<6x8xf32>,
                    %c: memref<9x8xf32> {tgraph.result = 0 : i64}) {
      %t = memref.alloc() : memref<4x8xf32>
      %u = memref.alloc() : memref<5x8xf32>
      tgraph.dot_general %a, %b outs(%t) {
        lhs_contracting_dimensions = array<i64: 0>,
        rhs_contracting_dimensions = array<i64: 0>
      } : (memref<6x4xf32>, memref<6x8xf32>) -> memref<4x8xf32>
      tgraph.iota outs(%u) {dimension = 0 : i64} : memref<5x8xf32>
      tgraph.concatenate %t, %u outs(%c) {dimension = 0 : i64}
        : (memref<4x8xf32>, memref<5x8xf32>) -> memref<9x8xf32>
      func.return
    }"""
    run = Executable(Parser(tensorplan.context(), text).parse_module())
    rng = np.random.default_rng(12)
    a, b = (rng.standard_normal(s, np.float32) for s in ((6, 4), (6, 8)))
    (got,) = run(a, b)
    numbers = np.broadcast_to(np.arange(5, dtype=np.float32)[:, None], (5, 8))
    np.testing.assert_allclose(got, np.concatenate([a.T @ b, numbers]), rtol=1e-5)
    assert len(calls_of(run)) == (1 if onednn.is_available() else 2)


def test_a_loop_with_a_branch_is_one_call() -> None:
    """A loop of %n iterations adds 3 in even ones and %x in odd ones."""
    text = """
    func.func @main(%x: memref<70xf32>, %n: memref<i32>,
                    %r: memref<70xf32> {tgraph.result = 0 : i64}) {
      %i = memref.alloc() : memref<i32>
      %goes_on = memref.alloc() : memref<i1>
      %bit = memref.alloc() : memref<i32>
      %one = memref.alloc() : memref<i32>
      %is_odd = memref.alloc() : memref<i1>
      %three = memref.alloc() : memref<70xf32>
      tgraph.constant<0 : i32> outs(%i) : memref<i32>
      tgraph.constant<1 : i32> outs(%one) : memref<i32>
      tgraph.constant<3.0 : f32> outs(%three) : memref<70xf32>
      "memref.copy"(%x, %r) : (memref<70xf32>, memref<70xf32>) -> ()
      scf.while () : () -> () {
        tgraph.compare %i, %n outs(%goes_on) {direction = "LT"}
          : (memref<i32>, memref<i32>) -> memref<i1>
        %flag = memref.load %goes_on[] : memref<i1>
        scf.condition(%flag)
      } do {
        tgraph.and %i, %one outs(%bit) : memref<i32>
        tgraph.compare %bit, %one outs(%is_odd) {direction = "EQ"}
          : (memref<i32>, memref<i32>) -> memref<i1>
        %odd = memref.load %is_odd[] : memref<i1>
        scf.if %odd {
          tgraph.add %r, %x outs(%r) : memref<70xf32>
        } else {
          tgraph.add %r, %three outs(%r) : memref<70xf32>
        }
        tgraph.add %i, %one outs(%i) : memref<i32>
        scf.yield
      }
      func.return
    }"""
    run = Executable(Parser(tensorplan.context(), text).parse_module())
    (call,) = calls_of(run)
    tape = call[0] if isinstance(call, tuple) else None
    assert isinstance(tape, Tape)
    assert (
        type(tape.records[-1]) is ArrayRecord
    )  # a function of all operations and the branch
    rng = np.random.default_rng(12)
    for count in (0, 1, 2, 7):
        x = rng.standard_normal(70, np.float32)
        (got,) = run(x, np.array(count, np.int32))
        want = x * (1 + count // 2) + 3 * ((count + 1) // 2)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("fails_in", [0, 1])
def test_an_error_ends_a_loop(fails_in: int) -> None:
    compiler, flag, x = llvm.compiler(), np.array([True]), np.array([0])
    fails = ArrayRecord(compiler.function(FAILS), []), ()
    adds = ArrayRecord(compiler.function(ADD_ONE), [x]), ()
    call = controlled(WHILE, flag, *([fails], [adds])[:: 1 - 2 * fails_in])
    assert call is not None
    with pytest.raises(RuntimeError, match="returned status 3"):
        call[0]()
    assert x.tolist() == [fails_in]


LESS = f"""{HEAD}
  %at = load ptr, ptr %words
  %x = load i64, ptr %at
  %next = sub i64 %x, 1
  store i64 %next, ptr %at
  ret i32 0
}}"""
"""LLVM IR of a function that decrements a number."""

SOME = f"""{HEAD}
  %at = load ptr, ptr %words
  %x = load TYPE, ptr %at
  %to = getelementptr ptr, ptr %words, i64 1
  %flag = load ptr, ptr %to
  %some = icmp ne TYPE %x, 0
  %byte = zext i1 %some to i8
  store i8 %byte, ptr %flag
  ret i32 0
}}"""
"""LLVM IR of a function that sets a flag if a number of type TYPE is not 0."""


@pytest.mark.parametrize("is_long", [False, True])
def test_loops_of_few_instructions_are_one_function(is_long: bool) -> None:
    """A loop that decrements x to zero is one function, unless its body is long."""
    compiler, flag, x = llvm.compiler(), np.array([True]), np.array([5])
    less = LESS.replace("%next = ", f";{'-' * LONGEST * is_long}\n%next = ")
    some = SOME.replace("TYPE", "i64")
    test = ArrayRecord(compiler.function(some), [x, flag]), ()
    body = ArrayRecord(compiler.function(less), [x]), ()
    call = controlled(WHILE, flag, [test], [body])
    assert call is not None
    assert isinstance(call[0], Control) is is_long
    call[0]()
    assert x.tolist() == [0]
    for value, want in ((True, 2), (False, 3)):
        flag[:], x[:] = value, 3
        branch = controlled(IF, flag, [body], [])
        assert branch is not None
        branch[0]()
        assert x.tolist() == [want]


def test_functions_with_numbers_are_joined() -> None:
    """Each keeps its own numbers, which follow its addresses."""
    compiler, flag, x = llvm.compiler(), np.array([True]), np.array([6])
    by = LESS.replace("%next = sub i64 %x, 1", "%next = sub i64 %x, %by")
    by = by.replace("  %x", "  %place = getelementptr i64, ptr %words, i64 1\n  %x", 1)
    by = by.replace("  %x", "  %by = load i64, ptr %place\n  %x", 1)
    some = SOME.replace("TYPE", "i64")
    test = ArrayRecord(compiler.function(some), [x, flag]), ()
    body = [(ArrayRecord(compiler.function(by), [x], n), ()) for n in (7, -5)]
    call = controlled(WHILE, flag, [test], [*body, test])
    assert call is not None
    assert type(call[0]) is ArrayRecord
    call[0]()
    assert x.tolist() == [0]


def test_loops_copy_small_buffers_of_their_own_to_registers() -> None:
    """Only x is copied: `large` is too large, and y is not in the arena. Another view
    reads the lower half of x."""
    compiler, arena = llvm.compiler(), np.zeros(65, np.int64)
    arena = arena[(-arena.ctypes.data % 64) // 8 :]
    x, halves, flag = arena[:1], arena[:1].view(np.int32), np.array([True])
    large, y = arena[8:24], np.array([10])
    test = (
        ArrayRecord(compiler.function(SOME.replace("TYPE", "i32")), [halves, flag]),
        (),
    )
    bodies = [
        (ArrayRecord(compiler.function(LESS), [each]), ()) for each in (x, large, y)
    ]
    x[:], large[:] = 7, 20
    call = controlled(WHILE, flag, [test], bodies, own=[arena])
    assert call is not None
    record = call[0]
    assert isinstance(record, ArrayRecord)
    assert record.function.text.count("alloca [8 x i8], align 64") == 1
    record()
    assert (x.item(), large[0], large[1], y.item()) == (0, 13, 20, 3)
    call = controlled(WHILE, flag, [test], bodies, own=[arena[1:]])
    assert call is not None
    assert isinstance(call[0], ArrayRecord)
    assert "%local" not in call[0].function.text


def test_loops_keep_buffers_of_reversed_views_in_memory() -> None:
    """If only a reversed view accesses a buffer, no word points to its first byte."""
    compiler, arena = llvm.compiler(), np.zeros(24, np.int64)
    arena = arena[(-arena.ctypes.data % 64) // 8 :][:8]
    flag, turned = np.array([True]), arena[:4][::-1]
    less = f"""{HEAD}
      %at = load ptr, ptr %words
      %x = load i64, ptr %at
      %next = sub i64 %x, 1
      store i64 %next, ptr %at
      %to = getelementptr ptr, ptr %words, i64 1
      %flag = load ptr, ptr %to
      %some = icmp ne i64 %next, 0
      %byte = zext i1 %some to i8
      store i8 %byte, ptr %flag
      ret i32 0
    }}"""
    turned[0] = 3
    test = ArrayRecord(compiler.function(less), [turned, flag]), ()
    call = controlled(WHILE, flag, [test], [], own=[arena])
    assert call is not None
    record = call[0]
    assert isinstance(record, ArrayRecord)
    assert "%local" not in record.function.text
    record()
    assert arena.tolist() == [0] * 8


def test_runs_allocate_nothing() -> None:
    program = chain()
    a, b = np.ones((2, 64), np.float32)
    out: list[Array | None] = [np.empty(64, np.float32)]
    assert growth(lambda: program(a, b, out=out)) < 100


def test_native_code_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(calls_of(chain(native=False))) == 3
    llvm.is_available.cache_clear()
    monkeypatch.setenv("TENSORPLAN_NATIVE", "0")
    assert len(calls_of(chain())) == 3
    llvm.is_available.cache_clear()


def test_without_llvmlite_numpy_kernels_run(monkeypatch: pytest.MonkeyPatch) -> None:
    llvm.is_available.cache_clear()
    monkeypatch.setattr(llvm, "_compiler", None)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    try:
        assert not llvm.is_available()
        assert len(calls_of(chain())) == 3
    finally:
        llvm.is_available.cache_clear()
