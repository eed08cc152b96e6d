"""Simplifies products, reductions and convolutions: by size 1, transposes, padding."""

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from ...compatibility import insert
from ..base import (
    ints,
    is_static,
    shape_of,
    tensor_type_of,
    value_shape,
    with_element,
    with_shape,
)
from ..elements import identity, is_stored
from ..elementwise import ConvertOp, MultiplyOp
from ..reducing import ConvolutionOp, DotGeneralOp, ReduceOp, ReduceWindowOp
from ..shaping import BroadcastInDimOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from .common import (
    added,
    can_merge,
    has_static_operands,
    is_on_tensors,
    is_plain_slice,
    merge_with,
    replace_with,
    splat_number,
)


class TransposeOfDotGeneral(RewritePattern):
    """transpose(dot_general(a, b)) -> dot_general(b, a), if exchanging the operands
    transposes the result in this way.

    A weight gradient is thus computed in the layout of the weight. The rewrite also
    applies if another transpose remains, and the layouts of the exchanged operands suit
    a library while the current ones do not. Examples are the weights of attention,
    which JAX has on the right, and its values.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not (isinstance(source, DotGeneralOp) and can_merge(op, source)):
            return
        if not op.inputs[0].has_one_use():
            return
        batch = len(source.batching[0])
        contracted = len(source.contracting[0])
        left = len(value_shape(source.inputs[0])) - batch - contracted
        right = len(value_shape(source.inputs[1])) - batch - contracted
        swapped = (
            *range(batch),
            *range(batch + left, batch + left + right),
            *range(batch, batch + left),
        )
        permutation = op.permutation.get_values()
        if permutation != swapped and not _lies_the_other_way(source):
            return
        shape = value_shape(source.result)
        made = with_shape(tensor_type_of(op.result.type), [shape[d] for d in swapped])
        new = DotGeneralOp(
            (source.inputs[1], source.inputs[0]),
            result_types=(op.result.type if permutation == swapped else made,),
            properties={
                "lhs_batching_dimensions": source.rhs_batching_dimensions,
                "rhs_batching_dimensions": source.lhs_batching_dimensions,
                "lhs_contracting_dimensions": source.rhs_contracting_dimensions,
                "rhs_contracting_dimensions": source.lhs_contracting_dimensions,
            },
        )
        if permutation == swapped:
            merge_with(rewriter, op, source, new)
            return
        new.location, new.attributes = source.location, {**source.attributes}
        insert(rewriter, new, InsertPoint.before(op))
        rest = TransposeOp(
            (new.result,),
            result_types=(op.result.type,),
            properties={"permutation": ints([swapped.index(d) for d in permutation])},
        )
        replace_with(rewriter, op, rest)


def _lies_the_other_way(op: DotGeneralOp) -> bool:
    """Whether the contracted dimension is the last one of the right operand, but not of
    the left one, where a library reads rows of the left matrix."""
    left_last, right_last = (
        len(value_shape(value)) - 1 in dims
        for value, dims in zip(op.inputs, op.contracting, strict=True)
    )
    return right_last and not left_last


class ReduceOfUnitDimensions(RewritePattern):
    """reduce only along dimensions of size 1 -> reshape."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceOp, rewriter: PatternRewriter) -> None:
        shape = value_shape(op.inputs[0])
        if (
            is_on_tensors(op)
            and prod(shape[d] for d in op.dimensions.get_values()) == 1
        ):
            replace_with(
                rewriter, op, ReshapeOp(op.inputs, result_types=(op.result.type,))
            )


class DotGeneralOfUnitDimensions(RewritePattern):
    """dot_general that sums only along dimensions of size 1 -> multiply, so that outer
    products and products with scalars can be fused, and need not be stored.

    (In XLA, AlgebraicSimplifier's DotStrengthReduction.)
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DotGeneralOp, rewriter: PatternRewriter) -> None:
        whole = tensor_type_of((op.results or op.outs)[0].type)
        shape = value_shape(op.inputs[0])
        if not is_on_tensors(op) or prod(shape[d] for d in op.contracting[0]) != 1:
            return
        if not is_static(whole) or is_stored(whole.element_type):
            return
        factors: list[SSAValue] = []
        free = len(op.batching[0])
        for value, batch, summed in zip(
            op.inputs, op.batching, op.contracting, strict=True
        ):
            type_ = tensor_type_of(value.type)
            kept = [d for d in range(len(shape_of(type_))) if d not in summed]
            dims: list[int] = []
            for d in kept:
                dims.append(batch.index(d) if d in batch else free)
                free += d not in batch
            if summed:
                type_ = with_shape(type_, [shape_of(type_)[d] for d in kept])
                value = added(rewriter, op, ReshapeOp((value,), result_types=(type_,)))
            if type_.element_type != whole.element_type:
                type_ = with_element(type_, whole.element_type)
                value = added(rewriter, op, ConvertOp((value,), result_types=(type_,)))
            spread = BroadcastInDimOp(
                (value,),
                result_types=(whole,),
                properties={"broadcast_dimensions": ints(dims)},
            )
            factors.append(added(rewriter, op, spread))
        replace_with(rewriter, op, MultiplyOp(factors, result_types=(whole,)))


class ConvolutionWithVector(RewritePattern):
    """convolution that multiplies a matrix and a vector -> dot_general, such as one
    with one feature and windows of one element, and the gradient of its weights: a
    library would fill up the feature to a whole block."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConvolutionOp, rewriter: PatternRewriter) -> None:
        if not is_on_tensors(op) or not has_static_operands(op):
            return
        whole = tensor_type_of(op.result.type)
        image, kernel = map(value_shape, op.inputs)
        image_labels, kernel_labels, result_labels = op.labels
        if (seen := op.multiplied(image, kernel, shape_of(whole))) is None:
            return
        points, sums = seen
        rows = [label for label in image_labels if label in "b" + points]
        columns = [label for label in kernel_labels if label in "o" + points]
        lengths = [image[image_labels.index(label)] for label in rows]
        widths = [kernel[kernel_labels.index(label)] for label in columns]
        is_column = prod(widths) == 1 and rows == [
            d for d in result_labels if d in rows
        ]
        if not is_column and prod(lengths) != 1:
            return
        product = DotGeneralOp(
            op.inputs,
            result_types=[with_shape(whole, [*lengths, *widths])],
            properties={
                **DotGeneralOp.DEFAULTS,
                "lhs_contracting_dimensions": ints(
                    [*map(image_labels.index, "f" + sums)]
                ),
                "rhs_contracting_dimensions": ints(
                    [*map(kernel_labels.index, "i" + sums)]
                ),
            },
        )
        new = ReshapeOp([added(rewriter, op, product)], result_types=[whole])
        replace_with(rewriter, op, new)


class ConvolutionOfPad(RewritePattern):
    """convolution(pad(x)) -> convolution with more padding, if x is padded with zeros:
    the padded image is not stored. (In XLA, AlgebraicSimplifier's FoldConvInputPad.)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConvolutionOp, rewriter: PatternRewriter) -> None:
        image = op.labels[0]
        dims = [image.index(label) for label in op.spatial]
        _take_padding(rewriter, op, dims, op.lhs_dilation, 0)


class ReduceWindowOfPad(RewritePattern):
    """reduce_window(pad(x)) -> reduce_window with more padding, if x is padded with the
    identity."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceWindowOp, rewriter: PatternRewriter) -> None:
        type_ = tensor_type_of(op.inputs[0].type)
        if op.scan(shape_of(type_)) is None:  # a scan has all the padding it can have
            number = identity(op.kind.data, type_.element_type)
            dims = range(type_.get_num_dims())
            _take_padding(rewriter, op, dims, op.base_dilations, number)


def _take_padding(
    rewriter: PatternRewriter,
    op: ConvolutionOp | ReduceWindowOp,
    dims: Sequence[int],
    dilation: DenseArrayBase[IntegerType],
    number: float,
) -> None:
    """Moves the padding of an operand into the windows over it, if it is padded with
    `number` and only along `dims`, the dimensions of the windows."""
    pad = op.inputs[0].owner
    if not isinstance(pad, PadOp) or not can_merge(op, pad):
        return
    x, padding = pad.inputs
    if splat_number(padding) != number or any(
        step != 1 for step in dilation.get_values()
    ):
        return
    low, high = pad.low.get_values(), pad.high.get_values()
    ends = list(zip(low, high, strict=True))
    if min(*low, *high, 0) < 0 or any(pad.interior.get_values()):
        return  # also for symbolic sizes
    if any(any(added) for d, added in enumerate(ends) if d not in dims):
        return
    new = op.clone()
    new.operands[0] = x
    for name, more in (("padding_low", low), ("padding_high", high)):
        given = cast(DenseArrayBase[IntegerType], op.properties[name]).get_values()
        sums = [n + more[d] for n, d in zip(given, dims, strict=True)]
        new.properties[name] = ints(sums)
    replace_with(rewriter, op, new)


class CropOfConvolution(RewritePattern):
    """slice(convolution(x)) -> convolution with less padding, if the convolution has no
    other use. Causal convolutions and gradients are written like this."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not isinstance(source, ConvolutionOp) or not can_merge(op, source):
            return
        cropped = _cropped(op)
        if not source.result.has_one_use() or cropped is None:
            return
        labels = source.labels[2]
        if any(any(cropped[labels.index(label)]) for label in "bf"):
            return
        taken = [cropped[labels.index(str(d))] for d in range(len(labels) - 2)]
        strides = source.window_strides.get_values()
        properties = source.properties.copy()
        for side, name in enumerate(("padding_low", "padding_high")):
            given = cast(DenseArrayBase[IntegerType], properties[name]).get_values()
            rest = [
                n - ends[side] * stride
                for n, ends, stride in zip(given, taken, strides, strict=True)
            ]
            if min(rest, default=0) < 0:
                return
            properties[name] = ints(rest)
        new = ConvolutionOp.create(
            operands=source.operands,
            result_types=(op.result.type,),
            properties=properties,
        )
        merge_with(rewriter, op, source, new)


def _cropped(op: SliceOp) -> Sequence[tuple[int, int]] | None:
    """The numbers of elements removed at the low and the high end of each dimension;
    None if there are strides."""
    if not has_static_operands(op) or not is_plain_slice(op):
        return None
    starts, limits = op.start_indices.get_values(), op.limit_indices.get_values()
    sizes = zip(starts, limits, value_shape(op.inputs[0]), strict=True)
    return [(start, size - limit) for start, limit, size in sizes]
