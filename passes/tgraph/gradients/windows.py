"""Gradients of convolution and pooling, which are convolutions and pooling, as in XLA.

A window that reads elements of an image becomes one that spreads gradients to them:
strides become dilations, and dilations become strides.
"""

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64

from ....dialects.tgraph.base import ints
from ....dialects.tgraph.reducing import (
    ConvolutionOp,
    ReduceWindowOp,
    SelectAndScatterOp,
)
from ....dialects.tgraph.shaping import ReverseOp
from ....dialects.tgraph.windows import Window, dilated
from .site import GradientSite, Term, converted, gradient_of, shape_of
from .writing import refuse, reshape, transpose


@gradient_of(ConvolutionOp)
def _convolution(site: GradientSite[ConvolutionOp], index: int) -> Term:
    gradient = _of_image(site) if index == 0 else _of_kernel(site)
    return converted(gradient, site.input_type(index).element_type)


def _of_image(site: GradientSite[ConvolutionOp]) -> Term:
    """The gradient convolved with the reversed kernel, whose input and output features
    are exchanged."""
    op = site.op
    image, kernel, result = op.labels
    features = op.feature_group_count.value.data
    batches = op.batch_group_count.value.data
    groups = features * batches  # one of the two is 1
    weights = converted(site.x(1), site.g.element)
    weights = _regrouped(weights, kernel.index("o"), kernel.index("i"), groups)
    spatial = [d for d, label in enumerate(kernel) if label.isdigit()]
    weights = site.emit(ReverseOp, weights, dimensions=ints(sorted(spatial)))
    low, high = _padding_of_gradient(site)
    exchanged = kernel.translate(str.maketrans("io", "oi"))
    spread = site.emit(
        ConvolutionOp,
        site.g,
        weights,
        dim_labels=StringAttr(f"{result}_{exchanged}->{image}"),
        window_strides=op.lhs_dilation,
        padding_low=ints(low),
        padding_high=ints(high),
        lhs_dilation=op.window_strides,
        rhs_dilation=op.rhs_dilation,
        feature_group_count=IntegerAttr(groups, i64),
        batch_group_count=IntegerAttr(1, i64),
    )
    return _regrouped(spread, image.index("f"), image.index("b"), batches)


def _of_kernel(site: GradientSite[ConvolutionOp]) -> Term:
    """The image convolved with the gradient, with batch and features exchanged."""
    op = site.op
    if _takes_more_spread(op):
        return _of_kernel_by_image(site)
    image, kernel, result = op.labels
    high = [
        dilated(places, dim.stride)
        - dilated(size, dim.base_dilation)
        + dim.reach
        - dim.low
        - 1
        for places, size, dim in zip(
            _spatial(shape_of(site.g), result),
            _spatial(site.input_type(0).get_shape(), image),
            op.window(site.input_type(1).get_shape()),
            strict=True,
        )
    ]
    labels = (
        image.translate(str.maketrans("bf", "fb")),
        result.translate(str.maketrans("bf", "io")),
        kernel.translate(str.maketrans("io", "bf")),
    )
    return site.emit(
        ConvolutionOp,
        converted(site.x(0), site.g.element),
        site.g,
        dim_labels=StringAttr("{}_{}->{}".format(*labels)),
        window_strides=op.rhs_dilation,
        padding_low=op.padding_low,
        padding_high=ints(high),
        lhs_dilation=op.lhs_dilation,
        rhs_dilation=op.window_strides,
        feature_group_count=op.batch_group_count,
        batch_group_count=op.feature_group_count,
    )


def _takes_more_spread(op: ConvolutionOp) -> bool:
    """Whether an ungrouped convolution has more zeros between elements of its image
    than its gradient has, as transposed convolutions do."""
    groups = op.feature_group_count.value.data * op.batch_group_count.value.data
    spread, strides = op.lhs_dilation.get_values(), op.window_strides.get_values()
    return groups == 1 and prod(spread) > prod(strides)


def _of_kernel_by_image(site: GradientSite[ConvolutionOp]) -> Term:
    """The gradient convolved with the image, which gives the reversed kernel. So the
    zeros between elements of the image are not multiplied."""
    op = site.op
    image, kernel, result = op.labels
    low, high = _padding_of_gradient(site)
    labels = (
        result.translate(str.maketrans("bf", "fb")),
        image.translate(str.maketrans("bf", "io")),
        kernel.translate(str.maketrans("io", "fb")),
    )
    reverse = site.emit(
        ConvolutionOp,
        site.g,
        converted(site.x(0), site.g.element),
        dim_labels=StringAttr("{}_{}->{}".format(*labels)),
        window_strides=op.rhs_dilation,
        padding_low=ints(low),
        padding_high=ints(high),
        lhs_dilation=op.window_strides,
        rhs_dilation=op.lhs_dilation,
        feature_group_count=IntegerAttr(1, i64),
        batch_group_count=IntegerAttr(1, i64),
    )
    spatial = [d for d, label in enumerate(kernel) if label.isdigit()]
    return site.emit(ReverseOp, reverse, dimensions=ints(sorted(spatial)))


def _padding_of_gradient(
    site: GradientSite[ConvolutionOp],
) -> tuple[list[int], list[int]]:
    """The padding around the gradient in the convolution that computes the gradient of
    the image, or the reversed gradient of the kernel."""
    op = site.op
    image, _, result = op.labels
    return _spreading_padding(
        _spatial(site.input_type(0).get_shape(), image),
        _spatial(shape_of(site.g), result),
        op.window(site.input_type(1).get_shape()),
    )


@gradient_of(ReduceWindowOp)
def _reduce_window(site: GradientSite[ReduceWindowOp], index: int) -> Term:
    op = site.op
    kind = op.kind.data
    if kind == "add":
        places, window = shape_of(site.g), op.window(len(shape_of(site.g)))
        shape = site.input_type().get_shape()
        low, high = _spreading_padding(shape, places, window)
        return site.emit(
            ReduceWindowOp,
            site.g,
            kind=op.kind,
            window_dimensions=op.window_dimensions,
            window_strides=op.base_dilations,
            padding_low=ints(low),
            padding_high=ints(high),
            base_dilations=op.window_strides,
            window_dilations=op.window_dilations,
        )
    dilations = (*op.base_dilations.get_values(), *op.window_dilations.get_values())
    if kind not in ("maximum", "minimum") or max(dilations, default=1) > 1:
        raise refuse(op, f"pooling of kind {kind!r} with dilations {list(dilations)}")
    return site.emit(
        SelectAndScatterOp,
        site.x(),
        site.g,
        type=site.input_type(),
        kind=op.kind,
        window_dimensions=op.window_dimensions,
        window_strides=op.window_strides,
        padding_low=op.padding_low,
        padding_high=op.padding_high,
    )


def _spreading_padding(
    image: Sequence[int], places: Sequence[int], window: Window
) -> tuple[list[int], list[int]]:
    """The padding around the gradient of `places` with which the window at each element
    of the image covers the places that read this element. It may be negative."""
    before: list[int] = []
    after: list[int] = []
    for size, count, dim in zip(image, places, window, strict=True):
        before.append(dim.reach - dim.low - 1)
        extent = dilated(size, dim.base_dilation) + dim.reach - 1
        after.append(extent - dilated(count, dim.stride) - before[-1])
    return before, after


def _spatial(shape: Sequence[int], labels: str) -> list[int]:
    """The sizes of the spatial dimensions, in the order of their numbers."""
    rank = len(labels) - 2
    return [shape[labels.index(str(d))] for d in range(rank)]


def _regrouped(x: Term, source: int, target: int, groups: int) -> Term:
    """Moves the outer factor `groups` of dimension `source` to dimension `target`.

    [..., groups * s, ..., t, ...] -> [..., s, ..., groups * t, ...]
    """
    if groups == 1:
        return x
    shape = list(shape_of(x))
    split = [*shape[:source], groups, shape[source] // groups, *shape[source + 1 :]]
    order = [d for d in range(len(split)) if d != source]
    order.insert(order.index(target + (target > source)), source)
    shape[source] //= groups
    shape[target] *= groups
    return reshape(transpose(reshape(x, split), order), shape)
