"""Converts gather, scatter, and dynamic slices."""

from collections.abc import Mapping
from functools import partial

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute

from ...dialects.tgraph import indexing
from ...dialects.tgraph.base import ints
from .conversion import Conversion, Converter, Values, fields_of, same
from .loops import scatter_by
from .reducing import known_kind
from .sizes import shape_in, sized


def _gather(c: Conversion) -> Values:
    return _gathered(c, c.inputs, {"slice_sizes": c.array("slice_sizes")})


def _dynamic_gather(c: Conversion) -> Values:
    operand, indices, slice_sizes = c.inputs
    sizes = sized(slice_sizes=shape_in(slice_sizes))
    return _gathered(c, (operand, indices), sizes)


def _gathered(c: Conversion, inputs: Values, sizes: Mapping[str, Attribute]) -> Values:
    fields = fields_of(c.text("dimension_numbers"))
    properties = {
        name: ints(fields.get(name, ()))
        for name in (
            "offset_dims",
            "collapsed_slice_dims",
            "operand_batching_dims",
            "start_indices_batching_dims",
            "start_index_map",
        )
    }
    result = c.emit(
        indexing.GatherOp,
        inputs,
        **properties,
        index_vector_dim=_index_vector_dim(fields),
        **sizes,
    )
    return (result,)


def _scatter(c: Conversion) -> Values:
    fields = fields_of(c.text("scatter_dimension_numbers"))
    block = c.op.regions[0].block
    match list(block.ops):
        case [end] if [*end.operands] == [block.args[1]]:
            kind = "replace"
        case _:
            kind = known_kind(c)
    if kind is None or len(c.op.results) > 1:
        return scatter_by(c, fields)
    properties = {
        name: ints(fields.get(name, ()))
        for name in (
            "update_window_dims",
            "inserted_window_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
            "scatter_dims_to_operand_dims",
        )
    }
    result = c.emit(
        indexing.ScatterOp,
        c.inputs,
        kind=StringAttr(kind),
        **properties,
        index_vector_dim=_index_vector_dim(fields),
    )
    return (result,)


def _dynamic_slice(c: Conversion) -> Values:
    sizes = c.array("slice_sizes")
    return (c.emit(indexing.DynamicSliceOp, c.inputs, slice_sizes=sizes),)


def _index_vector_dim(fields: Mapping[str, tuple[int, ...]]) -> IntegerAttr:
    (dim,) = fields.get("index_vector_dim", (0,))
    return IntegerAttr(dim, i64)


CONVERSIONS: Mapping[str, Converter] = {
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": partial(same, indexing.DynamicUpdateSliceOp),
    "stablehlo.gather": _gather,
    "stablehlo.scatter": _scatter,
}
