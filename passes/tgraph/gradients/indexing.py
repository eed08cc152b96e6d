"""Gradients of gather, which is a scatter, of scatter, and of dynamic slices.

A gather clamps starts so that slices are inside, and a scatter skips updates that are
not inside. The gradient of one uses the other, so it has to do this explicitly.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
    i32,
    i64,
)

from ....dialects.tgraph import elementwise as ew
from ....dialects.tgraph.base import AnyTensor, ints, with_element, with_shape
from ....dialects.tgraph.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    ScatterOp,
)
from ....dialects.tgraph.shaping import ConstantOp, IotaOp
from .site import GradientSite, Term, gradient_of, shape_of, site_of, type_of
from .writing import broadcast, reduce, refuse, reshape

_REPLACE = StringAttr("replace")


@gradient_of(DynamicSliceOp)
def _dynamic_slice(site: GradientSite[DynamicSliceOp], index: int) -> Term:
    zeros = site.splat(0.0, site.input_type(0))
    return site.emit(
        DynamicUpdateSliceOp, zeros, site.g, *_starts(site, 1), type=site.input_type(0)
    )


@gradient_of(DynamicUpdateSliceOp)
def _dynamic_update_slice(site: GradientSite[DynamicUpdateSliceOp], index: int) -> Term:
    starts = _starts(site, 2)
    update = site.input_type(1)
    if index == 1:
        sizes = ints(update.get_shape())
        return site.emit(
            DynamicSliceOp, site.g, *starts, type=update, slice_sizes=sizes
        )
    zeros = site.splat(0.0, update)
    return site.emit(
        DynamicUpdateSliceOp, site.g, zeros, *starts, type=site.input_type(0)
    )


def _starts(site: GradientSite[Any], first: int) -> list[Term]:
    return [site.x(index) for index in range(first, len(site.op.inputs))]


@gradient_of(GatherOp)
def _gather(site: GradientSite[GatherOp], index: int) -> Term:
    op = site.op
    indices = site.x(1)
    last = _last_starts(
        indices,
        site.input_type(0).get_shape(),
        op.slice_sizes.get_values(),
        op.start_index_map.get_values(),
        op.index_vector_dim.value.data,
    )
    first = site.splat(0, type_of(indices))
    return site.emit(
        ScatterOp,
        site.splat(0.0, site.input_type(0)),
        site.emit(ew.ClampOp, first, indices, last),
        site.g,
        type=site.input_type(0),
        kind=StringAttr("add"),
        update_window_dims=op.offset_dims,
        inserted_window_dims=op.collapsed_slice_dims,
        input_batching_dims=op.operand_batching_dims,
        scatter_indices_batching_dims=op.start_indices_batching_dims,
        scatter_dims_to_operand_dims=op.start_index_map,
        index_vector_dim=op.index_vector_dim,
    )


@gradient_of(ScatterOp)
def _scatter(site: GradientSite[ScatterOp], index: int) -> Term:
    op = site.op
    kind = op.kind.data
    if kind not in ("add", "replace"):
        raise refuse(op, f"a scatter of kind {kind!r}")
    if index == 0:
        return site.g if kind == "add" else _without_replaced(site)
    indices = site.x(1)
    taken = _gathered(site, site.g, indices)
    if kind == "add":
        return taken.where(_inside(site, indices))
    # Of several updates with the same place, only the last one counts.
    numbers = with_element(with_shape(type_of(taken), (prod(shape_of(taken)),)), i32)
    along = site.emit(IotaOp, type=numbers, dimension=IntegerAttr(0, i64))
    names = reshape(along, shape_of(taken))
    nobody = site.splat(-1, with_element(type_of(site.g), i32))
    own = op.own_properties
    type = type_of(nobody)
    winners = site.emit(ScatterOp, nobody, indices, names, type=type, **own)
    return taken.where(_gathered(site, winners, indices).equals(names))


def _without_replaced(site: GradientSite[ScatterOp]) -> Term:
    nothing, own = site.splat(0.0, site.input_type(2)), site.op.own_properties
    return site.emit(
        ScatterOp, site.g, site.x(1), nothing, type=site.input_type(0), **own
    )


def _window(site: GradientSite[ScatterOp]) -> list[int]:
    """The size of an update in each of the operand's dimensions."""
    numbers = site.op.dimension_numbers
    updates = site.input_type(2).get_shape()
    sizes = iter([updates[d] for d in numbers.window])
    rank = site.input_type(0).get_num_dims()
    return [1 if d in numbers.omitted else next(sizes) for d in range(rank)]


def _gathered(site: GradientSite[ScatterOp], x: Term, indices: Term) -> Term:
    """The elements of `x` where the scatter puts its updates."""
    op = site.op
    return site.emit(
        GatherOp,
        x,
        indices,
        type=with_element(site.input_type(2), x.element),
        offset_dims=op.update_window_dims,
        collapsed_slice_dims=op.inserted_window_dims,
        operand_batching_dims=op.input_batching_dims,
        start_indices_batching_dims=op.scatter_indices_batching_dims,
        start_index_map=op.scatter_dims_to_operand_dims,
        index_vector_dim=op.index_vector_dim,
        slice_sizes=ints(_window(site)),
    )


def _inside(site: GradientSite[ScatterOp], indices: Term) -> Term:
    """For each element of the updates, whether its update is wholly inside."""
    op = site.op
    vector_dim = op.index_vector_dim.value.data
    last = _last_starts(
        indices,
        site.input_type(0).get_shape(),
        _window(site),
        op.scatter_dims_to_operand_dims.get_values(),
        vector_dim,
    )
    each = indices.compare("GE", 0) & indices.compare("LE", last)
    if vector_dim < len(shape_of(indices)):
        each = reduce(each, "and", [vector_dim])
    shape = site.input_type(2).get_shape()
    window = op.update_window_dims.get_values()
    return broadcast(each, shape, [d for d in range(len(shape)) if d not in window])


def _last_starts(
    indices: Term,
    shape: Sequence[int],
    window: Sequence[int],
    dims: Sequence[int],
    vector_dim: int,
) -> Term:
    """The largest starts at which the window is inside, in the shape of `indices`."""
    integer = cast(IntegerType, indices.element)
    signed = integer.signedness.data is not Signedness.UNSIGNED
    largest = (1 << (integer.width.data - signed)) - 1
    last = [min(shape[d] - window[d], largest) for d in dims]
    if len(set(last)) == 1:
        return site_of(indices).splat(last[0], type_of(indices))
    vector = TensorType(integer, (len(last),))
    value = DenseIntOrFPElementsAttr.from_list(vector, last)
    type: AnyTensor = with_shape(type_of(indices), (len(last),))
    listed = site_of(indices).insert(ConstantOp(value, type))
    return broadcast(listed, shape_of(indices), [vector_dim])
