"""Products that sum over merged dimensions, in the order in which operands are stored.

    %0 = tgraph.transpose %x {permutation = array<i64: 0, 2, 1>}
      : (tensor<8x5x4xf32>) -> tensor<8x4x5xf32>
    %1 = tgraph.reshape %0 : (tensor<8x4x5xf32>) -> tensor<8x20xf32>
    ...                                     // %2 from %y in the same way
    %3 = tgraph.dot_general %1, %2 ...      // sums over the 20

Both reshapes are copies. The sum may as well go through the elements of both operands
as they lie, so views suffice:

    %1 = tgraph.reshape %x : (tensor<8x5x4xf32>) -> tensor<8x20xf32>
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from xdsl.ir import SSAValue

from ....dialects.tgraph.base import (
    TensorOp,
    ints,
    shape_of,
    tensor_type_of,
    value_shape,
    with_shape,
)
from ....dialects.tgraph.reducing import DotGeneralOp
from ....dialects.tgraph.shaping import ReshapeOp, TransposeOp
from .reshaped import is_plain, matching

_Groups = list[Sequence[int]]
"""For each dimension of a view, the dimensions of its source that it merges, outermost
first, without those of size 1."""


def summed_as_stored(op: DotGeneralOp) -> Sequence[TensorOp]:
    """Operations that compute `op` from views of its operands' sources, the last with
    its result; none if the operands do not merge the summed dimensions in another order
    than that in which they are stored, or cannot both be views."""
    traced = [_source(value) for value in op.inputs]
    given = [side for _, side in traced]
    groups = [list(side) for side in given]
    shapes = [value_shape(source) for source, _ in traced]
    for dims in zip(*op.contracting, strict=True):
        merged = [side[dim] for side, dim in zip(groups, dims, strict=True)]
        first, second = (
            [shape[d] for d in g] for shape, g in zip(shapes, merged, strict=True)
        )
        if first != second:
            return ()
        order = sorted(range(len(merged[0])), key=merged[0].__getitem__)
        for side, dim, group in zip(groups, dims, merged, strict=True):
            side[dim] = [group[place] for place in order]
    if not any(map(_is_copied, given)) or any(map(_is_copied, groups)):
        return ()
    made: list[TensorOp] = []
    values: list[SSAValue] = []
    for (source, _), side in zip(traced, groups, strict=True):
        views = _views(source, side)
        values.append(views[-1].results[0] if views else source)
        made += views
    made.append(
        DotGeneralOp.create(
            operands=values,
            result_types=[op.result.type],
            properties=op.properties,
            attributes=op.attributes,
        )
    )
    for new in made:
        new.location = op.location
    return made


def _source(value: SSAValue) -> tuple[SSAValue, _Groups]:
    """The value of which `value` is a view through transposes and reshapes that merge
    dimensions, and which dimensions each merges."""
    shape = value_shape(value)
    groups: _Groups = [[dim] if size != 1 else [] for dim, size in enumerate(shape)]
    while True:
        match value.owner:
            case TransposeOp() as view if not view.outs:
                order = view.permutation.get_values()
                parts: _Groups = [[dim] for dim in order]
            case ReshapeOp() as view if not view.outs and is_plain(view):
                parts = [[] for _ in shape]
                before = value_shape(view.inputs[0])
                for old, new in matching(before, shape):
                    wide = [dim for dim in new if shape[dim] != 1]
                    if len(wide) > 1:
                        return value, groups
                    for dim in wide:
                        parts[dim] = [d for d in old if before[d] != 1]
            case _:
                return value, groups
        groups = [[d for dim in group for d in parts[dim]] for group in groups]
        value = view.inputs[0]
        shape = value_shape(value)


def _is_copied(groups: _Groups) -> bool:
    """Whether no view merges the dimensions of `groups`."""
    stored = sorted(dim for group in groups for dim in group)
    place = {dim: number for number, dim in enumerate(stored)}
    return any(
        place[second] != place[first] + 1
        for group in groups
        for first, second in pairwise(group)
    )


def _views(source: SSAValue, groups: _Groups) -> Sequence[TensorOp]:
    """The views that merge the dimensions of `groups`."""
    type = tensor_type_of(source.type)
    sizes = [prod(shape_of(type)[dim] for dim in group) for group in groups]
    stored = sorted(range(len(groups)), key=lambda number: [*groups[number]])
    views: list[TensorOp] = []
    if [sizes[number] for number in stored] != list(shape_of(type)):
        merged = with_shape(type, [sizes[number] for number in stored])
        views.append(ReshapeOp([source], result_types=[merged]))
        source = views[-1].results[0]
    order = [stored.index(number) for number in range(len(stored))]
    if order != sorted(order):
        views.append(
            TransposeOp(
                [source],
                result_types=[with_shape(type, sizes)],
                properties={"permutation": ints(order)},
            )
        )
    return views
