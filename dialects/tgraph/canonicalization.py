"""Canonicalization of tgraph: merges, folds and removes shape operations.

(Elementwise operations: see folding.py.)

The patterns apply only to tensors: on memrefs (levels 2 and 3), every operation writes
its own destination. A replacement keeps the attributes of the operation
(`tgraph.device`, ...), so operations with different attributes are not merged, and one
with attributes is not removed.
"""

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint

from ..compatibility import replace
from .base import (
    TensorOp,
    device_of,
    ints,
    is_static,
    segments,
    shape_of,
    tensor_type_of,
    value_shape,
    with_element,
    with_shape,
    without_ones,
)
from .bodies import ElementsOp, SortOp
from .elements import identity, is_stored
from .elementwise import ConvertOp, ElementwiseOp, MultiplyOp
from .indexing import DynamicSliceOp, DynamicUpdateSliceOp, GatherOp
from .partial import is_complete
from .reducing import ConvolutionOp, DotGeneralOp, ReduceOp, ReduceWindowOp
from .shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    ConstantOp,
    DeviceCopyOp,
    FullLikeOp,
    IotaOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
    ViewOp,
)


def _replace(rewriter: PatternRewriter, op: TensorOp, new: TensorOp) -> None:
    new.location = op.location
    new.attributes = {**op.attributes}
    replace(rewriter, op, new)


def _plain(op: TensorOp) -> bool:
    """Whether the operation is on tensors and writes no variable."""
    return not op.outs


def _merges(op: TensorOp, source: TensorOp) -> bool:
    """Whether one operation may replace both."""
    same = not op.attributes or op.attributes == source.attributes
    return same and _plain(op) and _plain(source)


def _droppable(op: TensorOp) -> bool:
    return _plain(op) and not op.attributes


def _merge(
    rewriter: PatternRewriter, op: TensorOp, source: TensorOp, new: TensorOp
) -> None:
    new.location = op.location
    new.attributes = {**source.attributes}
    replace(rewriter, op, new)


class DropIdentity(RewritePattern):
    """A shape operation without effect -> its operand."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        assert isinstance(op, TensorOp)
        if not op.results or op.operands[0].type != op.results[0].type:
            return
        if not _droppable(op) or _moves(op):
            return
        if is_complete(tensor_type_of(op.results[0].type)):
            replace(rewriter, op, (), (op.operands[0],))


def _moves(op: TensorOp) -> bool:
    """Whether an operation moves elements, although operand and result types match."""
    match op:
        case BroadcastInDimOp():
            dims = op.broadcast_dimensions.get_values()
            return dims != tuple(range(len(dims)))
        case ConcatenateOp():
            return len(op.inputs) > 1
        case PadOp():
            amounts = op.low, op.high, op.interior
            return any(any(amount.get_values()) for amount in amounts)
        case ReverseOp():
            shape = value_shape(op.result)
            return any(shape[d] != 1 for d in op.dimensions.get_values())
        case TransposeOp():
            permutation = op.permutation.get_values()
            return permutation != tuple(range(len(permutation)))
        case _:
            return False  # reshape, slice


class MergeReshapes(RewritePattern):
    """reshape(reshape(x)) -> reshape(x); also for a broadcast that only reshapes."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshapeOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not isinstance(source, ReshapeOp | BroadcastInDimOp):
            return
        if isinstance(source, BroadcastInDimOp) and not source.only_reshapes:
            return
        if _merges(op, source):
            new = ReshapeOp(source.inputs, result_types=(op.result.type,))
            _merge(rewriter, op, source, new)


class MergeTransposes(RewritePattern):
    """transpose(transpose(x)) -> transpose(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not (isinstance(source, TransposeOp) and _merges(op, source)):
            return
        inner = source.permutation.get_values()
        merged = [inner[d] for d in op.permutation.get_values()]
        new = TransposeOp(
            source.inputs,
            result_types=(op.result.type,),
            properties={"permutation": ints(merged)},
        )
        _merge(rewriter, op, source, new)


class MergeReverses(RewritePattern):
    """reverse(reverse(x)) -> reverse(x) along the dimensions that only one reverses."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReverseOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not (isinstance(source, ReverseOp) and _merges(op, source)):
            return
        merged = {*op.dimensions.get_values()} ^ {*source.dimensions.get_values()}
        new = ReverseOp(
            source.inputs,
            result_types=(op.result.type,),
            properties={"dimensions": ints(sorted(merged))},
        )
        _merge(rewriter, op, source, new)


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
        if not (isinstance(source, DotGeneralOp) and _merges(op, source)):
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
            _merge(rewriter, op, source, new)
            return
        new.location, new.attributes = source.location, {**source.attributes}
        rewriter.insert(new, InsertPoint.before(op))
        rest = TransposeOp(
            (new.result,),
            result_types=(op.result.type,),
            properties={"permutation": ints([swapped.index(d) for d in permutation])},
        )
        _replace(rewriter, op, rest)


def _lies_the_other_way(op: DotGeneralOp) -> bool:
    """Whether the contracted dimension is the last one of the right operand, but not of
    the left one, where a library reads rows of the left matrix."""
    left_last, right_last = (
        len(value_shape(value)) - 1 in dims
        for value, dims in zip(op.inputs, op.contracting, strict=True)
    )
    return right_last and not left_last


def _merge_broadcast(
    rewriter: PatternRewriter,
    op: TensorOp,
    source: BroadcastInDimOp,
    dimensions: Sequence[int],
) -> None:
    """Replaces a view of a broadcast by a broadcast of its operand to `dimensions`."""
    new = BroadcastInDimOp(
        source.inputs,
        result_types=(op.result.type,),
        properties={"broadcast_dimensions": ints(dimensions)},
    )
    _merge(rewriter, op, source, new)


class MergeBroadcasts(RewritePattern):
    """broadcast_in_dim(broadcast_in_dim(x)) -> broadcast_in_dim(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: BroadcastInDimOp, rewriter: PatternRewriter
    ) -> None:
        source = op.inputs[0].owner
        if not (isinstance(source, BroadcastInDimOp) and _merges(op, source)):
            return
        outer = op.broadcast_dimensions.get_values()
        merged = [outer[d] for d in source.broadcast_dimensions.get_values()]
        _merge_broadcast(rewriter, op, source, merged)


class TransposeOfBroadcast(RewritePattern):
    """transpose(broadcast_in_dim(x)) -> broadcast_in_dim(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not (isinstance(source, BroadcastInDimOp) and _merges(op, source)):
            return
        places = op.permutation.get_values()
        dims = [places.index(d) for d in source.broadcast_dimensions.get_values()]
        _merge_broadcast(rewriter, op, source, dims)


class ElementwiseOfBroadcasts(RewritePattern):
    """f(broadcast_in_dim(x), broadcast_in_dim(y)) -> broadcast_in_dim(f(x, y)), if both
    broadcast in the same way: the computed, and possibly stored, tensor is smaller.

    Constants of one number, and scalars, may be broadcast in any way.
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, ElementwiseOp) or not _plain(op):
            return
        owners = [value.owner for value in op.inputs]
        sources = [s for s in owners if isinstance(s, ConstantOp | BroadcastInDimOp)]
        repeated = [s for s in sources if isinstance(s, BroadcastInDimOp)]
        if not repeated or len(sources) < len(owners):
            return
        whole = tensor_type_of(op.result.type)
        if not is_static(whole) or not all(map(_is_known, repeated)):
            return
        first = max(repeated, key=lambda s: prod(value_shape(s.inputs[0])))
        shape = value_shape(first.inputs[0])
        if prod(shape) >= prod(value_shape(op.result)):
            return
        if not all(_is_repeated_as(first, s) and _merges(op, s) for s in sources):
            return
        operands: list[SSAValue] = []
        for source in sources:
            if source.properties == first.properties:
                operands.append(source.inputs[0])
                continue
            type_ = with_shape(tensor_type_of(source.result.type), shape)
            small = type(source).create(
                operands=source.operands,
                result_types=(type_,),
                properties=source.properties,
            )
            _insert_before(rewriter, op, small)
            operands.append(small.result)
        new = type(op).create(
            operands=operands,
            result_types=(with_shape(whole, shape),),
            properties=op.properties,
        )
        _insert_before(rewriter, op, new)
        again = BroadcastInDimOp(
            new.results, result_types=(op.result.type,), properties=first.properties
        )
        _merge(rewriter, op, first, again)


def _is_repeated_as(
    first: BroadcastInDimOp, source: BroadcastInDimOp | ConstantOp
) -> bool:
    """Whether `source` has equal elements wherever the broadcast `first` has."""
    if isinstance(source, ConstantOp):
        return source.splat is not None
    shape = value_shape(source.inputs[0])
    return not shape or (
        shape == value_shape(first.inputs[0])
        and source.broadcast_dimensions == first.broadcast_dimensions
    )


class BroadcastOfReshape(RewritePattern):
    """broadcast_in_dim(reshape(x)) -> broadcast_in_dim(x), if the reshape only adds or
    removes dimensions of size 1."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: BroadcastInDimOp, rewriter: PatternRewriter
    ) -> None:
        if new := without_reshape(op):
            replace(rewriter, op, new)


def without_reshape(op: BroadcastInDimOp) -> BroadcastInDimOp | None:
    """The broadcast of a reshape's operand, if the reshape only adds or removes
    dimensions of size 1; None otherwise."""
    source = op.inputs[0].owner
    if not (isinstance(source, ReshapeOp) and _merges(op, source)):
        return None
    outer = op.broadcast_dimensions.get_values()
    before, after = value_shape(source.inputs[0]), value_shape(op.inputs[0])
    places = [dim for size, dim in zip(after, outer, strict=True) if size != 1]
    if without_ones(before) != without_ones(after):
        return None
    # A dimension of size 1 may map to any remaining result dimension.
    left = [d for d in range(len(value_shape(op.result))) if d not in places]
    dims: list[int] = []
    for size in before:
        if size != 1:
            dims.append(places.pop(0))
        elif left:
            dims.append(left.pop(0))
        else:
            return None
    new = BroadcastInDimOp(
        source.inputs,
        result_types=(op.result.type,),
        properties={"broadcast_dimensions": ints(dims)},
    )
    new.location, new.attributes = op.location, {**source.attributes}
    return new


class ShapeOfSplat(RewritePattern):
    """A view, a dynamic slice or a gather of a constant with one number -> a constant
    of its shape."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: ViewOp | DynamicSliceOp | GatherOp, rewriter: PatternRewriter
    ) -> None:
        source = op.inputs[0].owner
        if not isinstance(source, ConstantOp) or source.splat is None:
            return
        if _merges(op, source):
            _merge(rewriter, op, source, ConstantOp(source.splat, op.result.type))


class NumberOfConstant(RewritePattern):
    """A slice that takes one number of a constant -> that number."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not isinstance(source, ConstantOp) or source.splat is not None:
            return
        if prod(value_shape(op.result)) != 1 or not _merges(op, source):
            return
        from ..dtypes import constant, constant_attribute, numpy_dtype

        element = tensor_type_of(op.result.type).element_type
        elements = constant(source.value, numpy_dtype(element, op))
        part = elements[op.start_indices.get_values()]
        number = constant_attribute(part, element)
        if constant(number, part.dtype).tobytes() == part.tobytes():  # keeps NaN bits
            _merge(rewriter, op, source, ConstantOp(number, op.result.type))


class GatherOfOnePlace(RewritePattern):
    """A gather whose indices are one constant number -> a slice, broadcast to all of
    its places, such as the embedding of one token type."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GatherOp, rewriter: PatternRewriter) -> None:
        place, (x, indices) = _integer(op.inputs[1]), op.inputs
        is_known = all(is_static(tensor_type_of(v.type)) for v in (x, indices))
        batching = op.operand_batching_dims.get_values()
        if place is None or not is_known or batching or not _plain(op):
            return
        type, sizes = tensor_type_of(x.type), op.slice_sizes.get_values()
        first = [0] * len(sizes)
        for dim in op.start_index_map.get_values():
            first[dim] = min(max(place, 0), shape_of(type)[dim] - sizes[dim])
        last = [*map(int.__add__, first, sizes)]
        bounds = {"start_indices": ints(first), "limit_indices": ints(last)}
        part = SliceOp(
            [x],
            result_types=[with_shape(type, sizes)],
            properties={**bounds, "strides": ints([1] * len(sizes))},
        )
        dropped = op.collapsed_slice_dims.get_values()
        kept = [size for dim, size in enumerate(sizes) if dim not in dropped]
        window = ReshapeOp(
            [_added(rewriter, op, part)], result_types=[with_shape(type, kept)]
        )
        new = BroadcastInDimOp(
            [_added(rewriter, op, window)],
            result_types=[op.result.type],
            properties={
                "broadcast_dimensions": ints(sorted(op.offset_dims.get_values()))
            },
        )
        _replace(rewriter, op, new)


class FullLikeOfStaticShape(RewritePattern):
    """full_like(x) -> constant, so that x need not stay live for its shape."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: FullLikeOp, rewriter: PatternRewriter) -> None:
        if _plain(op) and is_static(tensor_type_of(op.result.type)):
            _replace(rewriter, op, ConstantOp(op.value, op.result.type))


class ReduceOfUnitDimensions(RewritePattern):
    """reduce only along dimensions of size 1 -> reshape."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceOp, rewriter: PatternRewriter) -> None:
        shape = value_shape(op.inputs[0])
        if _plain(op) and prod(shape[d] for d in op.dimensions.get_values()) == 1:
            _replace(rewriter, op, ReshapeOp(op.inputs, result_types=(op.result.type,)))


class DotGeneralOfUnitDimensions(RewritePattern):
    """dot_general that sums only along dimensions of size 1 -> multiply, so that outer
    products and products with scalars can be fused, and need not be stored.

    (In XLA, AlgebraicSimplifier's DotStrengthReduction.)
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DotGeneralOp, rewriter: PatternRewriter) -> None:
        whole = tensor_type_of((op.results or op.outs)[0].type)
        shape = value_shape(op.inputs[0])
        if not _plain(op) or prod(shape[d] for d in op.contracting[0]) != 1:
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
                value = _added(rewriter, op, ReshapeOp((value,), result_types=(type_,)))
            if type_.element_type != whole.element_type:
                type_ = with_element(type_, whole.element_type)
                value = _added(rewriter, op, ConvertOp((value,), result_types=(type_,)))
            spread = BroadcastInDimOp(
                (value,),
                result_types=(whole,),
                properties={"broadcast_dimensions": ints(dims)},
            )
            factors.append(_added(rewriter, op, spread))
        _replace(rewriter, op, MultiplyOp(factors, result_types=(whole,)))


class ConvolutionOfPad(RewritePattern):
    """convolution(pad(x)) -> convolution with more padding, if x is padded with zeros:
    the padded image is not stored. (In XLA, AlgebraicSimplifier's FoldConvInputPad.)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConvolutionOp, rewriter: PatternRewriter) -> None:
        image = op.labels[0]
        dims = [image.index(str(n)) for n in range(len(image) - 2)]
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
    if not isinstance(pad, PadOp) or not _merges(op, pad):
        return
    x, padding = pad.inputs
    if _number(padding) != number or any(step != 1 for step in dilation.get_values()):
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
    _replace(rewriter, op, new)


class CropOfConvolution(RewritePattern):
    """slice(convolution(x)), or a pad with negative amounts -> convolution with less
    padding, if the convolution has no other use. Causal convolutions and gradients are
    written like this."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp | PadOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not isinstance(source, ConvolutionOp) or not _merges(op, source):
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
        _merge(rewriter, op, source, new)


def _cropped(op: SliceOp | PadOp) -> Sequence[tuple[int, int]] | None:
    """The numbers of elements removed at the low and the high end of each dimension;
    None if the operation does anything else."""
    if not _is_known(op) or not is_static(tensor_type_of(op.result.type)):
        return None
    if isinstance(op, PadOp):
        ends = op.low.get_values(), op.high.get_values()
        taken = [(-low, -high) for low, high in zip(*ends, strict=True)]
        is_crop = not any(op.interior.get_values())
    else:
        starts, limits = op.start_indices.get_values(), op.limit_indices.get_values()
        sizes = zip(starts, limits, value_shape(op.inputs[0]), strict=True)
        taken = [(start, size - limit) for start, limit, size in sizes]
        is_crop = all(step == 1 for step in op.strides.get_values())
    return taken if is_crop and all(min(ends) >= 0 for ends in taken) else None


class CountPositions(RewritePattern):
    """An iota along the reduced or sorted dimension -> an entry of `positions`."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ElementsOp, rewriter: PatternRewriter) -> None:
        if not _plain(op) or len(op.along) != 1:
            return
        counted = [
            number
            for number, value in enumerate(op.inputs[: len(op.res)])
            if counts(value, op.along[0])
        ]
        if not counted or len(counted) == len(op.res) or op.numbered:
            return
        inputs = [value for n, value in enumerate(op.inputs) if n not in counted]
        new = type(op).create(
            operands=inputs,
            result_types=[result.type for result in op.res],
            properties={
                **op.properties,
                "positions": ints(counted),
                "operandSegmentSizes": segments(inputs, ()),
            },
            regions=[op.detach_region(0)],
        )
        _replace(rewriter, op, new)


class SortOfUnitDimension(RewritePattern):
    """sort along a dimension of size 1 -> its operands."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SortOp, rewriter: PatternRewriter) -> None:
        if not _droppable(op):
            return
        dimension = op.dimension.value.data
        shapes = value_shape(op.inputs[0]), value_shape(op.res[0])
        if any(shape[dimension] != 1 for shape in shapes):
            return
        iotas: list[Operation] = []

        def made(iota: IotaOp) -> SSAValue:
            iotas.append(iota)
            return iota.result

        found = op.completed(op.inputs, made)
        replace(rewriter, op, iotas, found)


def counts(value: SSAValue, dimension: int) -> bool:
    """Whether each element is its own index along a dimension."""
    op = value.owner
    if isinstance(op, IotaOp):
        return op.dimension.value.data == dimension
    if not isinstance(op, BroadcastInDimOp):
        return False
    source = op.inputs[0]
    dims = op.broadcast_dimensions.get_values()
    return dimension in dims and (
        value_shape(source)[at := dims.index(dimension)]
        == value_shape(value)[dimension]
        and counts(source, at)
    )


class DynamicSliceAtConstant(RewritePattern):
    """dynamic_slice at constants -> slice, which is a view."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DynamicSliceOp, rewriter: PatternRewriter) -> None:
        numbers = [_integer(value) for value in op.starts]
        starts = [number for number in numbers if number is not None]
        if not _plain(op) or len(starts) < len(numbers):
            return
        sizes = op.slice_sizes.get_values()
        shape = value_shape(op.inputs[0])
        starts = [
            min(max(start, 0), whole - size)
            for start, whole, size in zip(starts, shape, sizes, strict=True)
        ]
        properties = {
            "start_indices": ints(starts),
            "limit_indices": ints([*map(int.__add__, starts, sizes)]),
            "strides": ints([1] * len(sizes)),
        }
        new = SliceOp(
            op.inputs[:1], result_types=(op.result.type,), properties=properties
        )
        _replace(rewriter, op, new)


class UpdateOfAll(RewritePattern):
    """dynamic_update_slice of all elements -> the update."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: DynamicUpdateSliceOp, rewriter: PatternRewriter
    ) -> None:
        new = op.inputs[1]
        if _droppable(op) and new.type == op.result.type and _is_known(op):
            replace(rewriter, op, (), (new,))


class SlicesOfDynamicSlice(RewritePattern):
    """dynamic_slice -> slices of it -> dynamic_slices, if it has no other uses."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        whole = op.inputs[0]
        if isinstance(whole.owner, ReshapeOp):
            whole = whole.owner.inputs[0]
        taken = whole.owner
        if not isinstance(taken, DynamicSliceOp) or not _plain(taken):
            return
        if not all(_is_part(use.operation) for use in whole.uses):
            return
        starts, sizes = list(taken.starts), list(value_shape(whole))
        firsts, lasts = op.start_indices.get_values(), op.limit_indices.get_values()
        dropped = len(sizes) - len(firsts)
        if value_shape(whole) != (*(1,) * dropped, *value_shape(op.inputs[0])):
            return
        for dim, (first, last) in enumerate(zip(firsts, lasts, strict=True), dropped):
            if (size := last - first) == sizes[dim]:
                continue
            start = _integer(starts[dim])
            room = value_shape(taken.inputs[0])[dim] - sizes[dim]
            if start is None:
                return
            type = tensor_type_of(starts[dim].type)
            element = cast(IntegerType, type.element_type)
            first += min(max(start, 0), room)
            at = ConstantOp(IntegerAttr(first, element), type)
            _insert_before(rewriter, taken, at)
            starts[dim], sizes[dim] = at.result, size
        part = DynamicSliceOp(
            [taken.inputs[0], *starts],
            result_types=[with_shape(tensor_type_of(whole.type), sizes)],
            properties={"slice_sizes": ints(sizes)},
        )
        _insert_before(rewriter, taken, part)
        new = ReshapeOp([part.result], result_types=[op.result.type])
        _replace(rewriter, op, new)


class MergeSlices(RewritePattern):
    """slice(slice(x)) -> slice(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not (isinstance(source, SliceOp) and _merges(op, source)):
            return
        starts, strides = source.start_indices.get_values(), source.strides.get_values()
        if not _is_known(source) or any(stride != 1 for stride in strides):
            return
        first, last = (
            ints([*map(int.__add__, starts, indices.get_values())])
            for indices in (op.start_indices, op.limit_indices)
        )
        properties = {"start_indices": first, "limit_indices": last}
        new = SliceOp(
            source.inputs,
            result_types=[op.result.type],
            properties={**properties, "strides": op.strides},
        )
        _merge(rewriter, op, source, new)


class SliceOfBroadcast(RewritePattern):
    """slice(broadcast_in_dim(x)) -> broadcast_in_dim(slice(x)): the slice of a repeated
    dimension repeats less."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not (isinstance(source, BroadcastInDimOp) and _merges(op, source)):
            return
        if not _is_known(source) or not is_static(tensor_type_of(op.result.type)):
            return
        bounds = op.start_indices, op.limit_indices, op.strides
        kept = list(
            zip(*(n.get_values() for n in bounds), value_shape(op.result), strict=True)
        )
        x, dims = source.inputs[0], source.broadcast_dimensions.get_values()
        taken = [
            (0, 1, 1, 1) if size == 1 else kept[dim]
            for size, dim in zip(value_shape(x), dims, strict=True)
        ]
        starts, limits, strides, shape = ([n[i] for n in taken] for i in range(4))
        part = SliceOp(
            source.inputs,
            result_types=[with_shape(tensor_type_of(x.type), shape)],
            properties={
                "start_indices": ints(starts),
                "limit_indices": ints(limits),
                "strides": ints(strides),
            },
        )
        _insert_before(rewriter, op, part)
        repeated = BroadcastInDimOp(
            part.results, result_types=(op.result.type,), properties=source.properties
        )
        _merge(rewriter, op, source, repeated)


class SlicesOfConcatenation(RewritePattern):
    """concatenate -> slices of it -> slices of operands, if it has no other uses."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        joined = op.inputs[0].owner
        if not (isinstance(joined, ConcatenateOp) and _merges(op, joined)):
            return
        parts = [_operand_of(use.operation, joined) for use in joined.result.uses]
        part = _operand_of(op, joined)
        if part is None or None in parts:
            return
        operand, start = part
        starts, limits = (
            list(indices.get_values())
            for indices in (op.start_indices, op.limit_indices)
        )
        for indices in (starts, limits):
            indices[joined.dimension.value.data] -= start
        properties = {"start_indices": ints(starts), "limit_indices": ints(limits)}
        new = SliceOp(
            [operand],
            result_types=[op.result.type],
            properties={**properties, "strides": op.strides},
        )
        _replace(rewriter, op, new)


def _is_known(op: TensorOp) -> bool:
    """Whether all operand sizes are numbers."""
    return all(is_static(tensor_type_of(value.type)) for value in op.inputs)


def _operand_of(op: Operation, joined: ConcatenateOp) -> tuple[SSAValue, int] | None:
    """The operand of a concatenation that contains the slice `op`, and the index at
    which the operand begins; None if no operand contains it."""
    if not isinstance(op, SliceOp) or not _plain(op) or not _is_known(joined):
        return None
    dim, start = joined.dimension.value.data, 0
    first, last = (i.get_values()[dim] for i in (op.start_indices, op.limit_indices))
    for operand in joined.inputs:
        size = value_shape(operand)[dim]
        if start <= first and last <= start + size:
            return operand, start
        start += size
    return None


def _insert_before(rewriter: PatternRewriter, op: TensorOp, new: TensorOp) -> None:
    new.location = op.location
    new.attributes = {**op.attributes}
    rewriter.insert(new, InsertPoint.before(op))


def _added(rewriter: PatternRewriter, op: TensorOp, new: TensorOp) -> SSAValue:
    _insert_before(rewriter, op, new)
    return new.results[0]


def _is_part(op: Operation) -> bool:
    """Whether an operation only takes slices with stride 1, possibly of a reshape."""
    if isinstance(op, ReshapeOp) and not op.outs:
        users = [use.operation for use in op.result.uses]
        return all(isinstance(user, SliceOp) and _is_part(user) for user in users)
    return (
        isinstance(op, SliceOp)
        and _plain(op)
        and all(stride == 1 for stride in op.strides.get_values())
    )


def _number(value: SSAValue) -> float | None:
    """The real number that is every element of a constant; None for other values."""
    owner = value.owner
    number = owner.splat if isinstance(owner, ConstantOp) else None
    return number.value.data if isinstance(number, IntegerAttr | FloatAttr) else None


def _integer(value: SSAValue) -> int | None:
    """The integer that is every element of a constant; None for other values."""
    number = _number(value)
    return number if isinstance(number, int) else None


class DropCopyHome(RewritePattern):
    """device_copy to the operand's device -> the operand; also for a copy and back."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DeviceCopyOp, rewriter: PatternRewriter) -> None:
        if not _droppable(op) or device_of(op.result.type) is None:
            return
        source = op.inputs[0]
        if isinstance(owner := source.owner, DeviceCopyOp) and _plain(owner):
            source = owner.inputs[0]
        for value in (op.inputs[0], source):
            if value.type == op.result.type:
                replace(rewriter, op, (), (value,))
                return


class CopyOfConstant(RewritePattern):
    """device_copy(constant) -> the constant on the other device; also for an iota."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DeviceCopyOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not isinstance(source, ConstantOp | IotaOp):
            return
        if _droppable(op) and _droppable(source) and device_of(op.result.type):
            new = type(source).create(
                result_types=(op.result.type,), properties=source.properties
            )
            _replace(rewriter, op, new)
