"""Converts reductions along axes."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import TensorType, i32, i64
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ..builder import axis_of, element_type, shape_of
from ..formulas import compare, cumulative, index_of, mean
from ..loops import Loop, read_row
from ..operators import Value
from ..unsupported import Unsupported
from .elementwise import expect_one_scale
from .fixed_point import (
    expect_8_bits,
    factored,
    saturated,
    scaled,
    scaled_by,
    scaled_sums,
)
from .node import Conversion, TFLiteNode


def _axes(n: TFLiteNode) -> list[int]:
    rank = len(shape_of(n.value(0)))
    return sorted({axis_of(axis, rank) for axis in n.known_integers(1)})


def _reduce(kind: str) -> Conversion:
    def convert(n: TFLiteNode) -> Sequence[Value]:
        expect_one_scale(n, 0)
        keep = bool(n.option("KeepDims"))
        return [n.reduce(kind, n.value(0), _axes(n), keep=keep)]

    return convert


def _sum_of_steps(n: TFLiteNode) -> SSAValue:
    """The sum of quantized elements minus their zero points, in 32 bits."""
    x, axes = n.convert(n.value(0), i32), _axes(n)
    count = prod(shape_of(x)[axis] for axis in axes)
    total = n.reduce("add", x, axes, keep=bool(n.option("KeepDims")))
    zero = n.tensor(0).zero
    return n.apply(e.SubtractOp, total, zero * count) if zero else total


def _ratio(n: TFLiteNode) -> np.float64:
    return np.float64(n.tensor(0).scale) / np.float64(n.results[0].scale)


def _sum(n: TFLiteNode) -> Sequence[Value]:
    if not n.is_quantized:
        return _reduce("add")(n)
    expect_8_bits(n)
    return [saturated(n, scaled(n, _sum_of_steps(n), _ratio(n)))]


def _mean(n: TFLiteNode) -> Sequence[Value]:
    """For quantized integers, divides the factor by the count, after shifting it left
    as far as it fits.
    """
    axes = _axes(n)
    if not n.is_quantized:
        return [mean(n, n.value(0), axes, keep=bool(n.option("KeepDims")))]
    count = prod(shape_of(n.value(0))[axis] for axis in axes)
    number, exponent = (int(part) for part in factored(_ratio(n)))
    shift = min(count.bit_length() - 1, 32, 31 + exponent)
    parts = np.array((number << shift) // count), np.array(exponent - shift)
    return [saturated(n, scaled_by(n, _sum_of_steps(n), *parts))]


def _product(n: TFLiteNode) -> Sequence[Value]:
    """For quantized integers, multiplies one by one, and rescales each time, so that
    the final result has the right scale.
    """
    if not n.is_quantized:
        return _reduce("multiply")(n)
    x, axes = n.convert(n.centered(0), i64), _axes(n)
    kept = [1 if d in axes else size for d, size in enumerate(shape_of(x))]
    others = [d for d in range(len(kept)) if d not in axes]
    count = prod(shape_of(x)[axis] for axis in axes)
    sizes = [kept[d] for d in others]
    rows = n.reshape(n.transpose(x, [*axes, *others]), [count, *sizes])
    root = np.float64(n.results[0].scale) ** (1 / count)
    factor = np.asarray(np.float64(n.tensor(0).scale) / root)
    loop, counter = Loop(n), TensorType(i32, [])
    place = loop.carry(n.splat(1, counter))
    product = loop.carry(read_row(n, rows, 0, n.splat(0, counter)))
    body = loop.body
    wide = body.apply(e.MultiplyOp, product, read_row(body, rows, 0, place))
    _, product = loop.close(
        [body.apply(e.AddOp, place, 1), scaled_sums(body, wide, factor)],
        lambda n, values: compare(n, values[0], "LT", count),
    )
    result = saturated(n, scaled_sums(n, product, factor))
    return [n.reshape(result, kept) if n.option("KeepDims") else result]


def _argument(kind: str) -> Conversion:
    def convert(n: TFLiteNode) -> Sequence[Value]:
        x = n.value(0)
        axis = axis_of(n.known_integers(1)[0], len(shape_of(x)))
        index = index_of(n, kind, x, axis)
        return [n.convert(index, element_type(n.results[0].dtype))]

    return convert


def _cumulative(n: TFLiteNode) -> Sequence[Value]:
    if n.is_quantized:
        raise Unsupported("with quantized elements")
    x = n.value(0)
    axis = axis_of(n.known_integers(1)[0], len(shape_of(x)))
    reverse, exclusive = (bool(n.option(name)) for name in ("Reverse", "Exclusive"))
    return [cumulative(n, "add", x, axis, reverse=reverse, exclusive=exclusive)]


CONVERSIONS: Mapping[str, Conversion] = {
    "ARG_MAX": _argument("maximum"),
    "ARG_MIN": _argument("minimum"),
    "CUMSUM": _cumulative,
    "MEAN": _mean,
    "REDUCE_ALL": _reduce("and"),
    "REDUCE_ANY": _reduce("or"),
    "REDUCE_MAX": _reduce("maximum"),
    "REDUCE_MIN": _reduce("minimum"),
    "REDUCE_PROD": _product,
    "SUM": _sum,
}
