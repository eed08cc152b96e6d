"""Converts dot_general, convolution, and Fourier transforms.

Operands are converted to a wider element type of the result before the product. The
kernel is reversed in the dimensions of `window_reversal`.
"""

import re
from collections.abc import Mapping

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, SSAValue

from ...dialects.tgraph import elementwise, reducing, shaping
from ...dialects.tgraph.base import element_bytes, ints, with_element, with_shape
from ...dialects.tgraph.spectral import FftOp
from ..builder import TensorBuilder, shape_of
from ..formulas import compare
from ..unsupported import Unsupported
from .conversion import Conversion, Converter, Values, fields_of, padding, type_of
from .sizes import numbers, shape_in


def _widened(c: Conversion) -> list[SSAValue]:
    """The operands, converted to the result's element type if that is wider."""
    element = c.result_type.element_type
    inputs: list[SSAValue] = []
    for value in c.inputs[:2]:
        type = type_of(value)
        if type.element_type != element:
            if element_bytes(type.element_type) > element_bytes(element):
                raise Unsupported(f"from {type.element_type} to {element}")
            value = c.emit(elementwise.ConvertOp, (value,), with_element(type, element))
        inputs.append(value)
    return inputs


def _dot_general(c: Conversion) -> Values:
    fields = fields_of(c.text("dot_dimension_numbers"))
    properties = {
        name: ints(fields.get(name, ()))
        for name in (
            "lhs_batching_dimensions",
            "rhs_batching_dimensions",
            "lhs_contracting_dimensions",
            "rhs_contracting_dimensions",
        )
    }
    return (c.emit(reducing.DotGeneralOp, _widened(c), **properties),)


def _ragged_dot(c: Conversion) -> Values:
    """Multiplies each group of rows by its own matrix.

    This is one product that also contracts the groups. The left operand is repeated for
    each group, and is zero in the rows of other groups.
    """
    fields = fields_of(c.text("ragged_dot_dimension_numbers"))
    (ragged,), (group,) = (
        fields["lhs_ragged_dimensions"],
        fields["rhs_group_dimensions"],
    )
    inner, batch = (
        [fields.get(f"{side}_{kind}_dimensions", ()) for side in ("lhs", "rhs")]
        for kind in ("contracting", "batching")
    )
    if ragged in (*inner[0], *batch[0]):
        raise Unsupported(
            "with a ragged dimension that is contracted or a batch dimension"
        )
    b = TensorBuilder(c.into, c.op.location)
    left, right = _widened(c)
    sizes = c.inputs[2]
    (count,), shape = shape_of(sizes), shape_of(left)
    square = with_shape(type_of(sizes), [count, count])
    is_before = compare(b, b.iota(square, 1), "LE", b.iota(square, 0))
    each = b.broadcast_in_dim(sizes, [count, count], [1])
    before = b.apply(elementwise.SelectOp, is_before, each, b.splat(0, square))
    ends = b.reduce("add", before, [1])
    starts = b.apply(elementwise.SubtractOp, ends, sizes)
    every = with_shape(type_of(sizes), [count, *shape])
    row = b.iota(every, ragged + 1)
    first, last = (b.broadcast_in_dim(x, [count, *shape], [0]) for x in (starts, ends))
    is_own = b.apply(
        elementwise.AndOp, compare(b, row, "GE", first), compare(b, row, "LT", last)
    )
    rows = b.broadcast_in_dim(left, [count, *shape], range(1, len(shape) + 1))
    masked = b.apply(elementwise.SelectOp, is_own, rows, b.splat(0, type_of(rows)))
    properties = {
        "lhs_batching_dimensions": ints([d + 1 for d in batch[0]]),
        "rhs_batching_dimensions": ints(batch[1]),
        "lhs_contracting_dimensions": ints([0, *(d + 1 for d in inner[0])]),
        "rhs_contracting_dimensions": ints([group, *inner[1]]),
    }
    return (c.emit(reducing.DotGeneralOp, (masked, right), **properties),)


def _convolution(c: Conversion) -> Values:
    labels = re.sub(r"[\[\], ]", "", c.text("dimension_numbers")).replace("x", "_")
    kernel_labels = labels.partition("_")[2].partition("->")[0]
    rank = len(kernel_labels) - 2
    low, high = _padding(c, rank)
    image, kernel = _widened(c)
    flipped = [
        kernel_labels.index(str(d))
        for d, flip in enumerate(c.integers("window_reversal"))
        if flip
    ]
    if flipped:
        kernel = c.emit(
            shaping.ReverseOp, (kernel,), type_of(kernel), dimensions=ints(flipped)
        )
    result = c.emit(
        reducing.ConvolutionOp,
        (image, kernel),
        dim_labels=StringAttr(labels),
        window_strides=c.array("window_strides", [1] * rank),
        padding_low=low,
        padding_high=high,
        lhs_dilation=c.array("lhs_dilation", [1] * rank),
        rhs_dilation=c.array("rhs_dilation", [1] * rank),
        feature_group_count=c.integer("feature_group_count", 1),
        batch_group_count=c.integer("batch_group_count", 1),
    )
    return (result,)


def _padding(c: Conversion, rank: int) -> tuple[Attribute, Attribute]:
    """The padding, which is an operand of `dynamic_conv` and else an attribute."""
    if len(c.inputs) == 2:
        return padding(c, rank)
    sizes = numbers(shape_in(c.inputs[2]))
    return ints(sizes[::2]), ints(sizes[1::2])


def _dot(c: Conversion) -> Values:
    """Contracts the last dimension of the left operand with the right one's first."""
    properties = {
        "lhs_batching_dimensions": ints(()),
        "rhs_batching_dimensions": ints(()),
        "lhs_contracting_dimensions": ints([type_of(c.inputs[0]).get_num_dims() - 1]),
        "rhs_contracting_dimensions": ints([0]),
    }
    return (c.emit(reducing.DotGeneralOp, _widened(c), **properties),)


def _fft(c: Conversion) -> Values:
    kind = StringAttr(c.text("fft_type"))
    return (c.emit(FftOp, c.inputs, fft_type=kind, length=c.array("fft_length")),)


CONVERSIONS: Mapping[str, Converter] = {
    "chlo.ragged_dot": _ragged_dot,
    "stablehlo.convolution": _convolution,
    "stablehlo.dot": _dot,
    "stablehlo.dynamic_conv": _convolution,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.fft": _fft,
}
