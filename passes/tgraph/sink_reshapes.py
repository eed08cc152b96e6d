"""`tgraph-sink-reshapes`: moves reshapes after elementwise operations and products.

    %0 = tgraph.dot_general %x, %w {...} : ... -> tensor<32x8xf32>
    %1 = tgraph.reshape %0 : (tensor<32x8xf32>) -> tensor<4x8x8xf32>
    %2 = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 2>} : ...
    %3 = tgraph.add %1, %2 : tensor<4x8x8xf32>

    %0 = tgraph.dot_general %x, %w {...} : ... -> tensor<32x8xf32>
    %2 = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 1>} : ...
    %1 = tgraph.add %0, %2 : tensor<32x8xf32>
    %3 = tgraph.reshape %1 : (tensor<32x8xf32>) -> tensor<4x8x8xf32>

The elementwise operation can then be fused with its producer, and the program stores
nothing between the two. This helps linear layers in PyTorch, which flatten and
unflatten around each product, and group normalization. (MLIR's linalg fuses through
reshapes by expanding and collapsing shapes.)

A value that a few operations compute from iotas, such as an identity matrix, is
computed in the shape in which it is read, so that its reshapes vanish:

    %0 = tgraph.iota {dimension = 0 : i64} : tensor<6x6xi32>
    %1 = tgraph.iota {dimension = 1 : i64} : tensor<6x6xi32>
    %2 = tgraph.compare %0, %1 {direction = "EQ"} : ... -> tensor<6x6xi1>
    %3 = tgraph.reshape %2 : (tensor<6x6xi1>) -> tensor<6x3x2xi1>

    %0 = tgraph.iota {dimension = 0 : i64} : tensor<6x3x2xi32>
    %1 = ...                               // twice the index along 1, and that along 2
    %3 = tgraph.compare %0, %1 {direction = "EQ"} : ... -> tensor<6x3x2xi1>

Stacked values, which get a dimension of size 1 before they are concatenated, are also
computed in the shape in which they are read. The groups that read the stack part by
part (`tgraph-sink-concatenations`) can then compute them.

    %0 = tgraph.negate %x : tensor<8xf32>
    %1 = tgraph.broadcast_in_dim %0 {...} : (tensor<8xf32>) -> tensor<8x1xf32>
    %2 = tgraph.concatenate %1, %y {dimension = 1 : i64} : ... -> tensor<8x2xf32>

    %0 = tgraph.reshape %x : (tensor<8xf32>) -> tensor<8x1xf32>
    %1 = tgraph.negate %0 : tensor<8x1xf32>
    %2 = tgraph.concatenate %1, %y {dimension = 1 : i64} : ... -> tensor<8x2xf32>

If a reshape merges the dimensions of rows for a product, as for ONNX's Gemm, the
product is computed on the separate dimensions. If another reshape splits the rows
again, no reshape is left between the product and an addition to it.

    %0 = tgraph.reshape %x : (tensor<4x8x16xf32>) -> tensor<32x16xf32>
    %1 = tgraph.dot_general %0, %w {...} : ... -> tensor<32x8xf32>

    %0 = tgraph.dot_general %x, %w {...} : ... -> tensor<4x8x8xf32>
    %1 = tgraph.reshape %0 : (tensor<4x8x8xf32>) -> tensor<32x8xf32>

A reshape that merges a dimension with its repetitions, as when images are enlarged,
would be a copy. The dimensions stay separate until after the operations:

    %0 = tgraph.broadcast_in_dim %x {...} : (tensor<8x4xf32>) -> tensor<8x2x4xf32>
    %1 = tgraph.reshape %0 : (tensor<8x2x4xf32>) -> tensor<16x4xf32>
    %2 = tgraph.add %1, %y : tensor<16x4xf32>

    %0 = tgraph.broadcast_in_dim %x {...} : (tensor<8x4xf32>) -> tensor<8x2x4xf32>
    %1 = tgraph.reshape %y : (tensor<16x4xf32>) -> tensor<8x2x4xf32>
    %2 = tgraph.add %0, %1 : tensor<8x2x4xf32>
    %3 = tgraph.reshape %2 : (tensor<8x2x4xf32>) -> tensor<16x4xf32>

So does a batch dimension of a product. Attention whose queries share keys in groups
then reads each key where it lies:

    %0 = tgraph.broadcast_in_dim %k {...} : (tensor<2x8x4xf32>) -> tensor<2x3x8x4xf32>
    %1 = tgraph.reshape %0 : (tensor<2x3x8x4xf32>) -> tensor<6x8x4xf32>
    %2 = tgraph.dot_general %q, %1 {...} : ... -> tensor<6x8x8xf32>

    %0 = tgraph.broadcast_in_dim %k {...} : (tensor<2x8x4xf32>) -> tensor<2x3x8x4xf32>
    %1 = tgraph.reshape %q : (tensor<6x8x4xf32>) -> tensor<2x3x8x4xf32>
    %2 = tgraph.dot_general %1, %0 {...} : ... -> tensor<2x3x8x8xf32>
    %3 = tgraph.reshape %2 : (tensor<2x3x8x8xf32>) -> tensor<6x8x8xf32>

If both operands of a product merge transposed dimensions, and the product sums over
the merged dimension, it sums the elements in the order in which they are stored
(passes/tgraph/shared/merged_sums.py).

Reductions of dimensions that are whole in both shapes are computed before the reshape,
too. Stacked values whose stack dimension is merged with another one, such as
alternating sines and cosines, also stay separate.

If a reshape only adds or removes dimensions of size 1, a broadcast of its result reads
its operand instead: the mean of a row, divided and broadcast along it, can then be
fused with the row.

In all other cases, the operation must be the only reader of the reshaped value. All its
other operands must have a view of the new shape, and must not be computed for this
operation alone.

Needs: level 1, before fusion.
Leaves: level 1.
Does not: move other views or reshapes of symbolic sizes, or separate an operation from
a reduction that it could join or from the variable or concatenation that it is computed
into.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.flops import POLYNOMIALS
from ...analysis.functions import erase_unused, tensor_blocks
from ...dialects.tgraph.base import (
    Shape,
    TensorOp,
    ints,
    shape_of,
    tensor_type_of,
    value_shape,
    with_shape,
)
from ...dialects.tgraph.canonicalization.views import without_reshape
from ...dialects.tgraph.elementwise import ElementwiseOp
from ...dialects.tgraph.fusing import COMPUTED, CONTRACTIONS, keeps_sizes
from ...dialects.tgraph.indexing import DynamicUpdateSliceOp
from ...dialects.tgraph.reducing import DotGeneralOp, ReduceOp
from ...dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    ConstantOp,
    IotaOp,
    PadOp,
    ReshapeOp,
    ViewOp,
)
from ..optional import OptionalPass
from .shared.merged_sums import summed_as_stored
from .shared.reshaped import (
    can_fuse_with_reader,
    computed_for,
    computed_in,
    erase_uninserted,
    in_shape,
    is_plain,
    matching,
    reshaped,
)


@dataclass(frozen=True)
class TGraphSinkReshapes(OptionalPass):
    """Moves reshapes after operations, which can then be fused."""

    name = "tgraph-sink-reshapes"
    LOWERS_PEAK = True
    TOPIC = "fusion"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            erase_unused(block)  # an unused reader would count as a use
            for inner in list(block.ops):
                if isinstance(inner, ReshapeOp) and not inner.outs:
                    if not _erase_if_inverse(inner):
                        _repeat_first(inner)
                        _compute_in_shape(inner)
                elif isinstance(inner, ElementwiseOp) and not inner.outs:
                    _sink(inner)
                elif isinstance(inner, ReduceOp) and not inner.outs:
                    _reduce_first(inner)
                elif isinstance(inner, DotGeneralOp) and not inner.outs:
                    if made := summed_as_stored(inner):
                        Rewriter.replace_op(inner, made)
                    elif not _split_batch(inner):
                        _keep_rows_apart(inner)
                elif isinstance(inner, ConcatenateOp):
                    views = _stacked(inner)
                    if len(views) < 2 or not _compute_stacked(views):
                        for view in views:
                            _compute_stacked([view])
                elif isinstance(inner, BroadcastInDimOp) and not inner.outs:
                    if new := without_reshape(inner):
                        Rewriter.replace_op(inner, new)
            erase_unused(block)


def _sink(op: ElementwiseOp) -> None:
    """Computes `op` in the shape that an operand has before its reshape, if the other
    operands have views of that shape."""
    reshape = next((r for v in op.inputs if (r := _reshape_for(op, v))), None)
    if reshape is None:
        return
    shape = value_shape(reshape.inputs[0])
    if not _may_be_reshaped(op, shape):
        return
    made = computed_in(shape, [op], lambda value: reshaped(value, shape))
    if made is None:
        return
    _replace(op, made)


def _replace(op: TensorOp, made: Sequence[TensorOp]) -> None:
    """Replaces `op` by new operations, and a reshape of the result of the last one."""
    *views, new = made
    Rewriter.insert_op(views, InsertPoint.before(op))
    new.results[0].name_hint = op.result.name_hint
    result = ReshapeOp(new.results, result_types=(op.result.type,))
    result.location = op.location
    Rewriter.replace_op(op, [new, result])


def _reduce_first(op: ReduceOp) -> None:
    """Reduces the operand of a reshape instead of its result, if possible."""
    reshape = _reshape_for(op, op.inputs[0])
    if reshape is None:
        return
    source = reshape.inputs[0]
    dims = _reduced(op, value_shape(source))
    if dims is None:
        return
    sizes = [n for d, n in enumerate(value_shape(source)) if d not in dims]
    new = ReduceOp.create(
        operands=[source],
        result_types=[with_shape(op.result.type, sizes)],
        properties={**op.properties, "dimensions": ints(dims)},
        attributes=op.attributes,
        location=op.location,
    )
    if new.result.type == op.result.type:
        new.result.name_hint = op.result.name_hint
        Rewriter.replace_op(op, new)
    else:
        _replace(op, [new])


def _reduced(op: ReduceOp, shape: Shape) -> Sequence[int] | None:
    """The dimensions that `op` reduces if its operand is reshaped to `shape`; None if
    it reduces parts of these."""
    dims, found = op.dimensions.get_values(), list[int]()
    large = value_shape(op.inputs[0])
    for old, new in matching(large, shape):
        is_reduced = {dim in dims for dim in old if large[dim] != 1}
        if len(is_reduced) > 1:
            return None
        if True in is_reduced:
            found += new
    return found


def _erase_if_inverse(reshape: ReshapeOp) -> bool:
    """Replaces `reshape` by the original value if it undoes another reshape. Returns
    whether it did."""
    other = reshape.inputs[0].owner
    if not isinstance(other, ReshapeOp) or other.outs:
        return False
    source = other.inputs[0]
    if source.type != reshape.result.type:
        return False
    Rewriter.replace_op(reshape, [], [source])
    return True


def _keep_rows_apart(op: DotGeneralOp) -> None:
    """Multiplies rows in the dimensions that they have before a reshape merges them."""
    reshape = op.inputs[0].owner
    if not isinstance(reshape, ReshapeOp) or reshape.outs or not is_plain(reshape):
        return
    if len(value_shape(op.inputs[0])) != 2 or op.contracting[0] != (1,):
        return
    if op.batching != ((), ()):
        return
    source = reshape.inputs[0]
    sizes, depth = value_shape(source), value_shape(op.inputs[0])[1]
    rank = next((d for d in range(2, len(sizes)) if prod(sizes[d:]) == depth), None)
    if rank is None:
        return
    rows, made = sizes[:rank], list[TensorOp]()
    if rank + 1 < len(sizes):
        type_ = with_shape(tensor_type_of(source.type), (*rows, depth))
        made.append(ReshapeOp([source], result_types=(type_,)))
        made[0].location = reshape.location
        made[0].results[0].name_hint = reshape.result.name_hint
        source = made[0].results[0]
    new = DotGeneralOp.create(
        operands=[source, op.inputs[1]],
        result_types=[with_shape(op.result.type, (*rows, *value_shape(op.result)[1:]))],
        properties={**op.properties, "lhs_contracting_dimensions": ints([rank])},
        attributes=op.attributes,
        location=op.location,
    )
    _replace(op, [*made, new])


def _split_batch(op: DotGeneralOp) -> bool:
    """Splits a batch dimension that an operand merges from a dimension and repetitions
    of it. Returns whether there is one."""
    for value, batch in zip(op.inputs, op.batching, strict=True):
        for place, dim in enumerate(batch):
            if sizes := _merged_with_repetitions(value, dim):
                _split(op, place, sizes)
                return True
    return False


def _merged_with_repetitions(value: SSAValue, dim: int) -> Shape:
    """The sizes of the dimensions that a reshape merges into dimension `dim` of
    `value`, if one of them is repeated and they are merged into no other; else none."""
    merge = value.owner
    if not isinstance(merge, ReshapeOp) or merge.outs or not _joins_repeated(merge):
        return ()
    wide = merge.inputs[0].owner
    assert isinstance(wide, BroadcastInDimOp)
    given, whole, shape = map(value_shape, (wide.inputs[0], wide.result, value))
    dims = zip(wide.broadcast_dimensions.get_values(), given, strict=True)
    own = {d for d, size in dims if size > 1}
    for old, new in matching(whole, shape):
        merged = [d for d in old if whole[d] > 1]
        if dim in new and not own.issuperset(merged):
            is_alone = all(d == dim or shape[d] == 1 for d in new)
            is_split = is_alone and len(merged) > 1
            return tuple(whole[d] for d in merged) if is_split else ()
    return ()


def _split(op: DotGeneralOp, place: int, sizes: Shape) -> None:
    """Splits the batch dimension in `place` into dimensions of `sizes`."""
    more = len(sizes) - 1

    def split(shape: Shape, dim: int) -> Shape:
        return *shape[:dim], *sizes, *shape[dim + 1 :]

    def moved(dims: Sequence[int], dim: int) -> list[int]:
        return [d + more * (d > dim) for d in dims]

    views: list[ReshapeOp] = []
    properties = {**op.properties}
    sides = zip(("lhs", "rhs"), op.inputs, op.batching, op.contracting, strict=True)
    for side, value, batch, summed in sides:
        dim, type = batch[place], tensor_type_of(value.type)
        parts = with_shape(type, split(shape_of(type), dim))
        views.append(ReshapeOp([value], result_types=(parts,)))
        views[-1].location = op.location
        dims = moved(batch, dim)
        dims[place : place + 1] = range(dim, dim + more + 1)
        properties[f"{side}_batching_dimensions"] = ints(dims)
        properties[f"{side}_contracting_dimensions"] = ints(moved(summed, dim))
    whole = tensor_type_of(op.result.type)
    new = DotGeneralOp.create(
        operands=[view.results[0] for view in views],
        result_types=[with_shape(whole, split(shape_of(whole), place))],
        properties=properties,
        attributes=op.attributes,
        location=op.location,
    )
    _replace(op, [*views, new])
    for view in views:
        _erase_if_inverse(view)


FEW = 8
"""The largest number of operations that are as fast as reading their result."""


def _compute_in_shape(reshape: ReshapeOp) -> None:
    """Computes a value that follows from iotas alone in the shape of its reshape."""
    members: dict[SSAValue, None] = {}
    if not is_plain(reshape):
        return
    if not _follows_from_indices(reshape.inputs[0], members) or len(members) > FEW:
        return
    shape = value_shape(reshape.result)
    made: list[TensorOp] = []
    new: dict[SSAValue, SSAValue] = {}
    for value in members:
        op = value.owner
        assert isinstance(op, TensorOp)
        if isinstance(op, ElementwiseOp):
            views: list[TensorOp] = [in_shape(op, [new[v] for v in op.inputs], shape)]
        else:
            seen = reshaped(value, shape)
            if not isinstance(seen, list):
                break
            views = seen
            for view in views:
                view.location, view.attributes = op.location, {**op.attributes}
        made += views
        new[value] = views[-1].results[0]
    else:
        made[-1].results[0].name_hint = reshape.result.name_hint
        Rewriter.replace_op(reshape, made)
        return
    erase_uninserted(made)


def _stacked(op: ConcatenateOp) -> Sequence[ViewOp]:
    """The views, in program order, that add dimensions of size 1 to operands of `op`
    and have no other reader."""
    found: dict[Operation, None] = {
        owner: None
        for value in op.inputs
        if isinstance(owner := value.owner, ViewOp)
        and keeps_sizes(owner)
        and _is_alone(value)
    }
    views: list[ViewOp] = []
    before = op.prev_op
    while before and len(views) < len(found):
        if before in found and isinstance(before, ViewOp):
            views.append(before)
        before = before.prev_op
    return views[::-1]


def _compute_stacked(views: Sequence[ViewOp]) -> bool:
    """Computes the operands of `views`, and operations that only they need, in the
    shape of the views' results. Returns whether it did."""
    first, *others = views
    if any(not _is_alike(first, other) for other in others):
        return False
    new: dict[SSAValue, SSAValue] = {}
    made = computed_in(
        value_shape(first.res[0]),
        computed_for(*views),
        lambda operand: _in_shape_of(first, operand),
        new,
    )
    if not made:
        return False
    Rewriter.insert_op(made, InsertPoint.before(views[-1]))
    for view in views:
        if view.inputs[0] in new:  # else its operand has other readers
            Rewriter.replace_op(view, [], [new[view.inputs[0]]])
    return True


def _is_alike(view: ViewOp, other: ViewOp) -> bool:
    """Whether two views reshape values of the same shape in the same way."""
    shapes = [(value_shape(v.inputs[0]), value_shape(v.res[0])) for v in (view, other)]
    return (
        type(view) is type(other)
        and view.properties == other.properties
        and shapes[0] == shapes[1]
    )


def _is_alone(value: SSAValue) -> bool:
    return len({use.operation for use in value.uses}) == 1


def _in_shape_of(view: ViewOp, value: SSAValue) -> SSAValue | list[TensorOp] | None:
    """`value` with the dimensions of size 1 that `view` adds; None if its producer
    could then not be fused with its reader, or be computed part by part."""
    if isinstance(value.owner, (*COMPUTED, ConcatenateOp, PadOp)):
        return None
    type = with_shape(tensor_type_of(value.type), value_shape(view.res[0]))
    seen = reshaped(value, shape_of(type))
    if seen is not None or isinstance(value.owner, BroadcastInDimOp | IotaOp):
        return seen
    return [
        view.create(
            operands=[value],
            result_types=[type],
            properties=view.properties,
            location=view.location,
        )
    ]


def _follows_from_indices(value: SSAValue, members: dict[SSAValue, None]) -> bool:
    """Whether `value` follows from iotas and constants of one number, by fast
    operations of its shape. Adds the values that it follows from, and itself, to
    `members`."""
    op = value.owner
    if value in members:
        return True
    if not isinstance(op, TensorOp) or op.outs or len(members) > FEW:
        return False
    if isinstance(op, ElementwiseOp):
        follows = type(op) not in POLYNOMIALS and all(
            value_shape(v) == value_shape(value) and _follows_from_indices(v, members)
            for v in op.inputs
        )
    else:
        follows = isinstance(op, IotaOp) or (
            isinstance(op, ConstantOp) and op.splat is not None
        )
    if follows:
        members[value] = None
    return follows


def _reshape_for(op: ElementwiseOp | ReduceOp, value: SSAValue) -> ReshapeOp | None:
    """The reshape that defines `value`, if only `op` reads it and computing `op` before
    the reshape allows a fusion or saves a copy; else None."""
    reshape = value.owner
    if not isinstance(reshape, ReshapeOp) or reshape.outs:
        return None
    if not is_plain(reshape):
        return None
    is_alone = all(use.operation is op for use in value.uses)
    is_needless = (
        can_fuse_with_reader(reshape.inputs[0])
        or _joins_repeated(reshape)
        or _joins_stacked(reshape)
    )
    return reshape if is_alone and is_needless else None


def _joins_repeated(reshape: ReshapeOp) -> bool:
    """Whether `reshape` merges a repeated dimension with another one, by a copy."""
    source = reshape.inputs[0]
    if not isinstance(source.owner, BroadcastInDimOp) or not is_plain(reshape):
        return False
    seen = reshaped(source, value_shape(reshape.result))
    if isinstance(seen, list):
        erase_uninserted(seen)
    return seen is None


def _joins_stacked(reshape: ReshapeOp) -> bool:
    """Whether `reshape` merges the dimension along which values are stacked with a
    preceding one. A reader of the stack itself can be computed part by part."""
    source = reshape.inputs[0]
    stack = source.owner
    if not isinstance(stack, ConcatenateOp) or not _is_alone(source):
        return False
    dim, shape = stack.dimension.value.data, value_shape(source)
    return any(
        dim in old and any(shape[other] > 1 for other in old if other < dim)
        for old, _ in matching(shape, value_shape(reshape.result))
    )


def _repeat_first(outer: ReshapeOp) -> None:
    """If a value is repeated twice, merges all repetitions after the second one."""
    repeat = outer.inputs[0].owner
    if not isinstance(repeat, BroadcastInDimOp) or repeat.outs:
        return
    inner = repeat.inputs[0].owner
    if not isinstance(inner, ReshapeOp) or inner.outs:
        return
    if not _joins_repeated(inner) or not _joins_repeated(outer):
        return
    source = inner.inputs[0]
    before, joined, after = map(value_shape, (source, inner.result, repeat.result))
    dims = repeat.broadcast_dimensions.get_values()
    apart: dict[int, Sequence[int]] = {}  # dimensions of `source`, by those of `after`
    for old, new in matching(before, joined):
        if len(new) != 1 or after[dims[new[0]]] != joined[new[0]]:
            return
        apart[dims[new[0]]] = old
    if list(dims) != sorted(dims):
        return
    sizes, places = list[int](), list[int]()
    for dim, size in enumerate(after):
        old = apart.get(dim, ())
        places += range(len(sizes), len(sizes) + len(old))
        sizes += [before[d] for d in old] or [size]
    wide = BroadcastInDimOp(
        [source],
        result_types=(with_shape(tensor_type_of(repeat.result.type), sizes),),
        properties={"broadcast_dimensions": ints(places)},
    )
    wide.location, wide.attributes = repeat.location, {**repeat.attributes}
    Rewriter.insert_op(wide, InsertPoint.before(outer))
    outer.operands[0] = wide.result


def _may_be_reshaped(op: ElementwiseOp, shape: Shape) -> bool:
    """Whether a reshape from `shape` after `op` prevents no fusion."""
    readers = {use.operation for use in op.result.uses}
    moved = {r for r in readers if isinstance(r, ElementwiseOp | ReduceOp)}
    if len(readers) > 1 and moved and moved != readers:
        return False
    ends = ViewOp, ReturnOp, DynamicUpdateSliceOp, *CONTRACTIONS
    return all(
        _reduced(reader, shape) is not None
        if isinstance(reader, ReduceOp)
        else isinstance(reader, (ElementwiseOp, *ends))
        for reader in readers
    )
