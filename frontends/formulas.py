"""Functions that frontends share, composed of simpler operations."""

from collections.abc import Callable, Sequence
from math import pi, prod, sqrt
from typing import cast

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    IntegerType,
    StringAttr,
    TensorType,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from ..dialects.tgraph import elementwise as e
from ..dialects.tgraph.base import (
    AnyTensor,
    element_bytes,
    ints,
    with_element,
    with_shape,
)
from ..dialects.tgraph.elements import (
    computed_type,
    holds,
    is_complex,
    is_stored,
    real_element,
)
from ..dialects.tgraph.reducing import ReduceWindowOp
from .builder import TensorBuilder, broadcast_shapes, shape_of, type_of
from .unsupported import Unsupported

# Elementwise functions


def compare(
    b: TensorBuilder, x: SSAValue, direction: str, y: SSAValue | float
) -> SSAValue:
    return b.apply(e.CompareOp, x, y, direction=StringAttr(direction))


def total_order(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """Integers in the order of the floats `x` by IEEE's total order.

    All bits of negative floats but the sign are flipped. Storage types such as f8 are
    converted to f32 first, which is exact. Integers are unchanged.
    """
    element = type_of(x).element_type
    if isinstance(element, IntegerType):
        return x
    if is_stored(element):
        element = computed_type(element)
        x = b.convert(x, element)
    bits, width = bits_of(b, x), 8 * element_bytes(element)
    sign = b.apply(e.ShiftRightArithmeticOp, bits, width - 1)
    mask = b.apply(e.AndOp, sign, (1 << (width - 1)) - 1)
    return b.apply(e.XorOp, bits, mask)


def bits_of(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """The bits of floats, as integers of the same width."""
    width = 8 * element_bytes(type_of(x).element_type)
    to = with_element(type_of(x), IntegerType(width))
    return b.emit(e.BitcastConvertOp, x, type=to)


def bitcast(b: TensorBuilder, x: SSAValue, target: AnyTensor) -> SSAValue:
    """The bits of `x` as elements of another type. If the elements' sizes differ, the
    tensor of smaller ones has a last dimension with the parts of a larger one."""
    source = type_of(x)
    widths = [_width(t.element_type) for t in (source, target)]
    if widths[0] == widths[1]:
        return b.emit(e.BitcastConvertOp, x, type=target)
    narrow, wide = (IntegerType(width) for width in sorted(widths))
    # For integers of less than a byte, a conversion of the value is a bitcast.
    recast = e.ConvertOp if narrow.bitwidth < 8 else e.BitcastConvertOp
    parts = source if widths[0] < widths[1] else target
    space = with_element(parts, wide)  # a wide integer for each part
    *dims, last = range(parts.get_num_dims())
    shift = b.apply(e.MultiplyOp, b.iota(space, last), narrow.bitwidth)
    ones = (1 << narrow.bitwidth) - 1
    if widths[0] > widths[1]:
        x = b.emit(e.BitcastConvertOp, x, type=with_element(source, wide))
        x = b.broadcast_in_dim(x, shape_of(shift), dims)
        x = b.apply(e.AndOp, b.apply(e.ShiftRightLogicalOp, x, shift), ones)
        return b.emit(recast, b.convert(x, narrow), type=target)
    x = b.emit(recast, x, type=with_element(parts, narrow))
    x = b.apply(e.AndOp, b.convert(x, wide), ones)
    x = b.reduce("or", b.apply(e.ShiftLeftOp, x, shift), [last])
    return b.emit(e.BitcastConvertOp, x, type=target)


def _width(element: Attribute) -> int:
    """The bits of an element that can be split into others, or be a part of one."""
    if isinstance(element, IntegerType):
        return element.bitwidth
    if is_complex(element) or cast(AnyFloat, element).bitwidth < 8:
        raise Unsupported(f"with elements of type {element}")
    return 8 * element_bytes(element)


def is_negative(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """Whether numbers have a minus sign, as -0 has, too."""
    if not isinstance(type_of(x).element_type, IntegerType):
        x = bits_of(b, x)
    return compare(b, x, "LT", 0)


def next_after(b: TensorBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """The next number from x towards y, computed on the bits of x."""
    bits = bits_of(b, x)
    integers = type_of(bits)
    width = 8 * element_bytes(integers.element_type)
    is_outward = b.apply(e.XorOp, compare(b, x, "LT", y), compare(b, x, "LT", 0))
    moved = b.apply(
        e.AddOp, bits, b.apply(e.SelectOp, is_outward, b.splat(1, integers), -1)
    )
    # From zero, the next number is the smallest one with the sign of y.
    below = b.splat(1 - (1 << (width - 1)), integers)
    least = b.apply(e.SelectOp, compare(b, y, "LT", 0), below, 1)
    moved = b.apply(e.SelectOp, compare(b, x, "EQ", 0), least, moved)
    to = with_element(type_of(moved), type_of(x).element_type)
    moved = b.emit(e.BitcastConvertOp, moved, type=to)
    moved = b.apply(e.SelectOp, compare(b, x, "EQ", y), y, moved)
    moved = b.apply(e.SelectOp, compare(b, x, "NE", x), x, moved)
    return b.apply(e.SelectOp, compare(b, y, "NE", y), y, moved)


def clamp(b: TensorBuilder, x: SSAValue, low: float, high: float) -> SSAValue:
    return b.apply(e.ClampOp, b.splat(low, type_of(x)), x, b.splat(high, type_of(x)))


def at_least_f32(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """Converts types whose values f32 can hold, such as 16-bit floats, to f32."""
    return b.convert(x, f32) if holds(f32, type_of(x).element_type) else x


def positive_or(b: TensorBuilder, x: SSAValue, other: SSAValue) -> SSAValue:
    return b.apply(e.SelectOp, compare(b, x, "GT", 0), x, other)


def reciprocal(b: TensorBuilder, x: SSAValue) -> SSAValue:
    return b.apply(e.DivideOp, b.splat(1, type_of(x)), x)


def conjugate(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """The complex conjugate; real numbers are unchanged."""
    if not is_complex(type_of(x).element_type):
        return x
    part = with_element(type_of(x), real_element(type_of(x).element_type))
    real, imaginary = (b.emit(op, x, type=part) for op in (e.RealOp, e.ImagOp))
    return b.emit(e.ComplexOp, real, b.emit(e.NegateOp, imaginary))


def softplus(b: TensorBuilder, x: SSAValue) -> SSAValue:
    """log(1 + exp(x)), without overflow."""
    small = b.emit(e.ExponentialOp, b.emit(e.NegateOp, b.emit(e.AbsOp, x)))
    return b.apply(e.AddOp, b.apply(e.MaximumOp, x, 0), b.emit(e.LogPlusOneOp, small))


def gelu(b: TensorBuilder, x: SSAValue, approximate: bool) -> SSAValue:
    """GELU by the error function, or its approximation by tanh."""
    if approximate:
        cube = b.apply(e.MultiplyOp, b.apply(e.MultiplyOp, x, x), x)
        bent = b.apply(e.AddOp, x, b.apply(e.MultiplyOp, cube, 0.044715))
        curve = b.emit(e.TanhOp, b.apply(e.MultiplyOp, bent, sqrt(2 / pi)))
    else:
        curve = b.emit(e.ErfOp, b.apply(e.MultiplyOp, x, sqrt(0.5)))
    half = b.apply(e.MultiplyOp, x, 0.5)
    return b.apply(e.MultiplyOp, half, b.apply(e.AddOp, curve, 1))


def modulo(b: TensorBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """Python's remainder, which has the sign of the divisor."""
    rest = b.apply(e.RemainderOp, x, y)
    signs_differ = b.apply(e.XorOp, compare(b, rest, "LT", 0), compare(b, y, "LT", 0))
    moved = b.apply(e.AndOp, signs_differ, compare(b, rest, "NE", 0))
    return b.apply(e.SelectOp, moved, b.apply(e.AddOp, rest, y), rest)


def floor_divide(b: TensorBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """The quotient, rounded down."""
    if isinstance(type_of(x).element_type, AnyFloat):
        return b.emit(e.FloorOp, b.apply(e.DivideOp, x, y))
    return b.apply(e.DivideOp, b.apply(e.SubtractOp, x, modulo(b, x, y)), y)


def triangle(b: TensorBuilder, x: SSAValue, diagonal: int, *, upper: bool) -> SSAValue:
    """Matrices with zeros above a diagonal, or below it if `upper`."""
    *_, rows, columns = shape_of(x)
    type = with_shape(TensorType(i32, []), [rows, columns])
    above = b.apply(e.SubtractOp, b.iota(type, 1), b.iota(type, 0))
    kept = compare(b, above, "GE" if upper else "LE", diagonal)
    return b.apply(e.SelectOp, kept, x, 0)


# Functions along axes


def mean(
    b: TensorBuilder, x: SSAValue, axes: Sequence[int], *, keep: bool = True
) -> SSAValue:
    count = prod(shape_of(x)[axis] for axis in axes)
    return b.apply(e.DivideOp, b.reduce("add", x, axes, keep=keep), count)


def log_sum_exp(
    b: TensorBuilder, x: SSAValue, axes: Sequence[int], *, keep: bool = True
) -> SSAValue:
    largest = b.reduce("maximum", x, axes, keep=True)
    powers = b.emit(e.ExponentialOp, b.apply(e.SubtractOp, x, largest))
    total = b.emit(e.LogOp, b.reduce("add", powers, axes, keep=True))
    result = b.apply(e.AddOp, total, largest)
    if keep:
        return result
    shape = [size for d, size in enumerate(shape_of(x)) if d not in axes]
    return b.reshape(result, shape)


def lp_norm(
    b: TensorBuilder, x: SSAValue, p: int, summed: Callable[[SSAValue], SSAValue]
) -> SSAValue:
    """The p-th root of the sum of |x|^p, where `summed` computes the sum."""
    size = b.emit(e.AbsOp, x)
    if p == 1:
        return summed(size)
    if p == 2:
        return b.emit(e.SqrtOp, summed(b.apply(e.MultiplyOp, x, x)))
    return b.apply(e.PowerOp, summed(b.apply(e.PowerOp, size, p)), 1 / p)


def softmax(b: TensorBuilder, x: SSAValue, axis: int) -> SSAValue:
    largest = b.reduce("maximum", x, [axis], keep=True)
    powers = b.emit(e.ExponentialOp, b.apply(e.SubtractOp, x, largest))
    return b.apply(e.DivideOp, powers, b.reduce("add", powers, [axis], keep=True))


def log_softmax(b: TensorBuilder, x: SSAValue, axis: int) -> SSAValue:
    largest = b.reduce("maximum", x, [axis], keep=True)
    shifted = b.apply(e.SubtractOp, x, largest)
    total = b.reduce("add", b.emit(e.ExponentialOp, shifted), [axis], keep=True)
    return b.apply(e.SubtractOp, shifted, b.emit(e.LogOp, total))


def index_of(
    b: TensorBuilder,
    kind: str,
    x: SSAValue,
    axis: int,
    *,
    last: bool = False,
    keep: bool = False,
) -> SSAValue:
    """The first (or last) index of the "maximum" or "minimum" along an axis, as i64.

    If any element is NaN, the index is that of a NaN.
    """
    if not shape_of(x)[axis]:
        raise Unsupported("with no elements")
    best = compare(b, x, "EQ", b.reduce(kind, x, [axis], keep=True))
    if isinstance(type_of(x).element_type, AnyFloat):
        best = b.apply(e.OrOp, best, compare(b, x, "NE", x))
    index = b.iota(with_element(type_of(x), i64), axis)
    other = -1 if last else np.iinfo(np.int64).max
    found = b.apply(e.SelectOp, best, index, b.splat(other, type_of(index)))
    return b.reduce("maximum" if last else "minimum", found, [axis], keep=keep)


def cumulative(
    b: TensorBuilder,
    kind: str,
    x: SSAValue,
    axis: int,
    *,
    reverse: bool = False,
    exclusive: bool = False,
) -> SSAValue:
    """The sums ("add"), products ("multiply") or extremes of the elements up to each
    element.

    `exclusive` leaves the element itself out of sums and products; `reverse` starts at
    the end.
    """
    shape = shape_of(x)
    if not shape[axis]:  # a window can't be empty
        return x
    along = np.arange(len(shape)) == axis
    ones = ints([1] * len(shape))
    before = (along * (shape[axis] - 1)).tolist()
    nothing = [0] * len(shape)
    total = b.emit(
        ReduceWindowOp,
        x,
        kind=StringAttr(kind),
        window_dimensions=ints(np.where(along, shape[axis], 1).tolist()),
        window_strides=ones,
        padding_low=ints(nothing if reverse else before),
        padding_high=ints(before if reverse else nothing),
        base_dilations=ones,
        window_dilations=ones,
    )
    if not exclusive:
        return total
    shift = along.astype(int) * (-1 if reverse else 1)
    neutral = b.full(int(kind == "multiply"), type_of(x).element_type, ())
    return b.pad(total, shift.tolist(), (-shift).tolist(), neutral)


# Normalization


def normalized(
    b: TensorBuilder, x: SSAValue, axes: Sequence[int], epsilon: float
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """(x - mean) / deviation along `axes`; the mean; 1 / deviation."""
    average = mean(b, x, axes)
    centered = b.apply(e.SubtractOp, x, average)
    variance = mean(b, b.apply(e.MultiplyOp, centered, centered), axes)
    inverse = b.emit(e.RsqrtOp, b.apply(e.AddOp, variance, epsilon))
    return b.apply(e.MultiplyOp, centered, inverse), average, inverse


def group_normalized(
    b: TensorBuilder, x: SSAValue, groups: int, epsilon: float
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Like `normalized`, but over all channels (dimension 1) of each group."""
    shape = shape_of(x)
    grouped = b.reshape(x, [shape[0], groups, prod(shape[1:]) // groups])
    y, average, inverse = normalized(b, grouped, [2], epsilon)
    return b.reshape(y, shape), average, inverse


def per_channel(b: TensorBuilder, values: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Broadcasts one value for each channel (dimension 1) to `shape`."""
    return b.broadcast_in_dim(values, shape, [1])


def batch_normalized(
    b: TensorBuilder,
    x: SSAValue,
    scale: SSAValue,
    bias: SSAValue,
    average: SSAValue,
    inverse: SSAValue,
) -> SSAValue:
    """(x - average) * (inverse * scale) + bias, where only `x` is not per channel."""
    shape = shape_of(x)
    factor = b.apply(e.MultiplyOp, inverse, scale)
    centered = b.apply(e.SubtractOp, x, per_channel(b, average, shape))
    scaled = b.apply(e.MultiplyOp, centered, per_channel(b, factor, shape))
    return b.apply(e.AddOp, scaled, per_channel(b, bias, shape))


# Products


def matmul(b: TensorBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """NumPy's matrix product, which broadcasts leading dimensions."""
    shape_x, shape_y = shape_of(x), shape_of(y)
    if len(shape_y) <= 2:
        return b.dot(x, y, ([len(shape_x) - 1], [max(len(shape_y) - 2, 0)]))
    if len(shape_x) == 1:
        row = matmul(b, b.reshape(x, [1, *shape_x]), y)
        return b.reshape(row, [*shape_y[:-2], shape_y[-1]])
    batch = broadcast_shapes(shape_x[:-2], shape_y[:-2])
    x = b.broadcast(x, [*batch, *shape_x[-2:]])
    y = b.broadcast(y, [*batch, *shape_y[-2:]])
    rank = len(batch)
    return b.dot(x, y, ([rank + 1], [rank]), (range(rank), range(rank)))
