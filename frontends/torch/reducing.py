"""Converts ATen's reductions, softmax and normalizations to tgraph."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AnyFloat, f32, i1
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.base import with_shape
from ..builder import shape_of, type_of
from ..formulas import (
    batch_normalized,
    compare,
    cumulative,
    group_normalized,
    index_of,
    log_softmax,
    mean,
    normalized,
    per_channel,
    softmax,
)
from ..unsupported import Unsupported
from .call import AtenCall, Conversion, Results


def _keeps(c: AtenCall) -> bool:
    return bool(c.get("keepdim", False))


def _reduction(kind: str) -> Conversion:
    return lambda c: c.reduce(kind, c.tensor(), c.axes(), keep=_keeps(c))


def _any(c: AtenCall) -> SSAValue:
    x = c["self"]
    if type_of(x).element_type != i1:
        x = compare(c, x, "NE", 0)
    return c.reduce("or", x, c.axes(), keep=_keeps(c))


def _mean(c: AtenCall) -> SSAValue:
    return mean(c, c.tensor(), c.axes(), keep=_keeps(c))


def _variance(
    c: AtenCall, x: SSAValue, axes: Sequence[int]
) -> tuple[SSAValue, SSAValue]:
    """The variance and the mean along `axes`, which remain as dimensions of size 1."""
    count: Any = prod(shape_of(x)[axis] for axis in axes)
    correction = c.get("correction")
    average = mean(c, x, axes)
    centered = c.apply(e.SubtractOp, x, average)
    squares = c.reduce(
        "add", c.apply(e.MultiplyOp, centered, centered), axes, keep=True
    )
    divisor = max(count - (1 if correction is None else correction), 0)
    return c.apply(e.DivideOp, squares, divisor), average


def _var(c: AtenCall) -> SSAValue:
    variance, _ = _variance(c, c.tensor(), c.axes())
    return c.reshape(variance, c.shape)


def _var_mean(c: AtenCall) -> Results:
    both = _variance(c, c.tensor(), c.axes())
    return [c.reshape(value, c.shape) for value in both]


def _arg(kind: str) -> Conversion:
    def convert(c: AtenCall) -> SSAValue:
        x = c["self"]
        if c.get("dim") is None:
            flat = c.reshape(x, [prod(shape_of(x))])
            return c.reshape(index_of(c, kind, flat, 0), c.shape)
        return index_of(c, kind, x, c.axis(), keep=_keeps(c))

    return convert


def _with_index(kind: str) -> Conversion:
    """The conversion of `max` and `min` along an axis, with the index. Without an axis,
    the only result is the value."""

    def convert(c: AtenCall) -> Results:
        x = c["self"]
        if c.get("dim") is None:
            return c.reduce(kind, x, c.axes())
        axis, keep = c.axis(), _keeps(c)
        value = c.reduce(kind, x, [axis], keep=keep)
        if 1 not in c.used:
            return [value, None]
        return [value, index_of(c, kind, x, axis, keep=keep)]

    return convert


def _cumulative(kind: str) -> Conversion:
    def convert(c: AtenCall) -> SSAValue:
        x = c.tensor()
        return cumulative(c, kind, x, c.axis()) if shape_of(x) else x

    return convert


def _cumulative_best(kind: str) -> Conversion:
    """The conversion of the largest or smallest element up to each element, and of the
    last index of it. NaNs count as largest and as smallest."""

    def convert(c: AtenCall) -> Results:
        x = c["self"]
        if not shape_of(x):
            return [x, c.splat(0, c.types[1])]
        axis = c.axis()
        best = cumulative(c, kind, x, axis)
        if 1 not in c.used:
            return [best, None]
        is_best = compare(c, x, "EQ", best)
        if isinstance(c.element, AnyFloat):
            is_best = c.apply(e.OrOp, is_best, compare(c, x, "NE", x))
        number = c.apply(e.SelectOp, is_best, c.iota(c.types[1], axis), 0)
        return [best, cumulative(c, "maximum", number, axis)]

    return convert


def _cumulative_log_sum(c: AtenCall) -> SSAValue:
    """Computes each result from all elements up to it, after subtracting the largest of
    them. Fusion stores no intermediate values."""
    x = c.tensor()
    if not shape_of(x):
        return x
    axis, rank = c.axis(), len(shape_of(x)) + 1
    size = shape_of(x)[axis]
    wide = c.broadcast_in_dim(
        x, [*shape_of(x)[:axis], size, *shape_of(x)[axis:]], _without(rank, axis)
    )
    along = [size if d in (axis, axis + 1) else 1 for d in range(rank)]
    before = c.constant(np.tril(np.ones((size, size), bool)).reshape(along))
    kept = c.apply(e.SelectOp, before, wide, float("-inf"))
    largest = c.reduce("maximum", kept, [axis + 1], keep=True)
    finite = compare(c, c.emit(e.AbsOp, largest), "LT", float("inf"))
    base = c.apply(e.SelectOp, finite, largest, 0)
    powers = c.emit(e.ExponentialOp, c.apply(e.SubtractOp, kept, base))
    total = c.emit(e.LogOp, c.reduce("add", powers, [axis + 1], keep=True))
    return c.reshape(c.apply(e.AddOp, total, base), c.shape)


def _histogram(c: AtenCall) -> SSAValue:
    """The number of elements in each of `bins` equal parts of a range. The upper end of
    the range belongs to the last part."""
    x, bins = c.tensor(), c["bins"]
    low, high = float(c["min"]), float(c["max"])
    if not low < high:
        raise Unsupported("without a range")
    wide = [*shape_of(x), bins]
    part = c.apply(e.DivideOp, c.apply(e.SubtractOp, x, low), high - low)
    part = c.emit(e.FloorOp, c.apply(e.MultiplyOp, part, bins))
    part = c.apply(e.MinimumOp, part, bins - 1)
    is_in = c.apply(e.AndOp, compare(c, x, "GE", low), compare(c, x, "LE", high))
    part = c.apply(e.SelectOp, is_in, part, -1)
    dims = range(len(shape_of(x)))
    numbers = c.iota(with_shape(type_of(x), wide), len(dims))
    hits = compare(c, c.broadcast_in_dim(part, wide, dims), "EQ", numbers)
    return c.reduce("add", c.convert(hits, c.element), dims)


def _without(rank: int, dim: int) -> list[int]:
    return [d for d in range(rank) if d != dim]


def _softmax(formula: Callable[..., SSAValue], c: AtenCall) -> SSAValue:
    """Computed in f32 or wider, as PyTorch does."""
    return c.convert(formula(c, _wide(c, c.tensor()), c.axis()), c.element)


def _vector_norm(c: AtenCall) -> SSAValue:
    x, order = c.emit(e.AbsOp, c.tensor()), c["ord"]
    axes, keep = c.axes(), _keeps(c)
    if order in (float("inf"), float("-inf")):
        kind = "maximum" if order > 0 else "minimum"
        return c.reduce(kind, x, axes, keep=keep)
    if order == 1:
        return c.reduce("add", x, axes, keep=keep)
    if order == 2:
        squares = c.apply(e.MultiplyOp, x, x)
        return c.emit(e.SqrtOp, c.reduce("add", squares, axes, keep=keep))
    powers = c.apply(e.PowerOp, x, order)
    total = c.reduce("add", powers, axes, keep=keep)
    return c.apply(e.PowerOp, total, 1 / order)


def _wide(c: AtenCall, x: SSAValue) -> SSAValue:
    """Converts floats of fewer than 32 bits to f32, for normalizations and softmax."""
    element = type_of(x).element_type
    small = isinstance(element, AnyFloat) and element.bitwidth < 32
    return c.convert(x, f32) if small else x


def _layer_norm(c: AtenCall) -> Results:
    x = c["input"]
    rank = len(shape_of(x))
    axes = range(rank - len(c["normalized_shape"]), rank)
    y, average, inverse = normalized(c, _wide(c, x), list(axes), c["eps"])
    element = type_of(y).element_type
    if c["weight"] is not None:
        y = c.apply(e.MultiplyOp, y, c.operand("weight", element))
    if c["bias"] is not None:
        y = c.apply(e.AddOp, y, c.operand("bias", element))
    return _as_typed(c, [y, average, inverse])


def _group_norm(c: AtenCall) -> Results:
    x = c["input"]
    shape = shape_of(x)
    y, average, inverse = group_normalized(c, _wide(c, x), c["group"], c["eps"])
    element = type_of(y).element_type
    if c["weight"] is not None:
        weight = c.operand("weight", element)
        y = c.apply(e.MultiplyOp, y, per_channel(c, weight, shape))
    if c["bias"] is not None:
        y = c.apply(e.AddOp, y, per_channel(c, c.operand("bias", element), shape))
    statistics = [c.reshape(v, shape_of(v)[:2]) for v in (average, inverse)]
    return _as_typed(c, [y, *statistics])


def _as_typed(c: AtenCall, results: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Converts the results to the element types that PyTorch inferred."""
    pairs = zip(results, c.types, strict=True)
    return [c.convert(value, type.element_type) for value, type in pairs]


def _batch_norm(
    c: AtenCall, x: SSAValue, average: SSAValue, variance: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """The normalized input, and the reciprocal of the standard deviation."""
    element = type_of(x).element_type
    average, variance = (c.convert(v, element) for v in (average, variance))
    inverse = c.emit(e.RsqrtOp, c.apply(e.AddOp, variance, c["eps"]))
    scale, bias = (
        c.splat(default, type_of(average))
        if c[name] is None
        else c.operand(name, element)
        for name, default in (("weight", 1), ("bias", 0))
    )
    return batch_normalized(c, x, scale, bias, average, inverse), inverse


def _batch_norm_known(c: AtenCall) -> Sequence[SSAValue | None]:
    """A batch norm with given statistics. Its results for the statistics of the batch
    are empty."""
    x = _wide(c, c["input"])
    y, _ = _batch_norm(c, x, c["running_mean"], c["running_var"])
    y = c.convert(y, c.element)
    others = enumerate(c.types[1:3], 1)
    return [y, *(c.splat(0, type) if n in c.used else None for n, type in others)]


def _batch_norm_training(c: AtenCall) -> Sequence[SSAValue]:
    """The result; and the mean, reciprocal deviation, and variance of the batch."""
    x = _wide(c, c["input"])
    axes = [d for d in range(len(shape_of(x))) if d != 1]
    average = mean(c, x, axes, keep=False)
    centered = c.apply(e.SubtractOp, x, per_channel(c, average, shape_of(x)))
    squares = c.apply(e.MultiplyOp, centered, centered)
    variance = mean(c, squares, axes, keep=False)
    y, inverse = _batch_norm(c, x, average, variance)
    return [y, average, inverse, variance]


def _batch_norm_plain(c: AtenCall) -> Results:
    return _as_typed(c, _batch_norm_training(c)[:3])


def _batch_norm_running(c: AtenCall) -> Results:
    """The results of a batch norm, and the new running statistics."""
    if not c["training"]:
        return [*_batch_norm_known(c)[:3], c["running_mean"], c["running_var"]]
    *results, variance = _batch_norm_training(c)
    average, x = results[1], c["input"]
    count: Any = prod(size for d, size in enumerate(shape_of(x)) if d != 1)
    unbiased = c.apply(e.MultiplyOp, variance, count / (count - 1))
    new = _moved(c, c["running_mean"], average), _moved(c, c["running_var"], unbiased)
    return _as_typed(c, [*results, *new])


def _moved(c: AtenCall, running: SSAValue, new: SSAValue) -> SSAValue:
    running = c.convert(running, type_of(new).element_type)
    kept = c.apply(e.MultiplyOp, running, 1 - c["momentum"])
    return c.apply(e.AddOp, kept, c.apply(e.MultiplyOp, new, c["momentum"]))


CONVERSIONS: Mapping[str, Conversion] = {
    "_log_softmax": partial(_softmax, log_softmax),
    "_native_batch_norm_legit": _batch_norm_plain,
    "_native_batch_norm_legit_functional": _batch_norm_running,
    "_native_batch_norm_legit_no_training": _batch_norm_known,
    "_softmax": partial(_softmax, softmax),
    "amax": _reduction("maximum"),
    "amin": _reduction("minimum"),
    "any": _any,
    "argmax": _arg("maximum"),
    "argmin": _arg("minimum"),
    "cummax": _cumulative_best("maximum"),
    "cummin": _cumulative_best("minimum"),
    "cumprod": _cumulative("multiply"),
    "cumsum": _cumulative("add"),
    "histc": _histogram,
    "logcumsumexp": _cumulative_log_sum,
    "linalg_vector_norm": _vector_norm,
    "max": _with_index("maximum"),
    "mean": _mean,
    "min": _with_index("minimum"),
    "native_group_norm": _group_norm,
    "native_layer_norm": _layer_norm,
    "prod": _reduction("multiply"),
    "sum": _reduction("add"),
    "var": _var,
    "var_mean": _var_mean,
}
