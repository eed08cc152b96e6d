"""Rewrites regions as tiles that are computed one after the other.

%1 = tgraph.exponential %0 : tensor<4x8xf32>

%2 = tgraph.slice %0 ...            : (tensor<4x8xf32>) -> tensor<2x8xf32>
%3 = tgraph.exponential %2          : tensor<2x8xf32>
%4 = tgraph.slice %0 ...            : (tensor<4x8xf32>) -> tensor<2x8xf32>
%5 = tgraph.exponential %4          : tensor<2x8xf32>
%1 = tgraph.concatenate %3, %5 {dimension = 0, tgraph.in_place} : ...
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects.tgraph.base import (
    IN_PLACE,
    AnyTensor,
    TensorOp,
    ints,
    segments,
    tensor_type_of,
    with_element,
    with_shape,
)
from ....dialects.tgraph.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
)
from ....dialects.tgraph.shaping import (
    ConcatenateOp,
    ConstantOp,
    SliceOp,
    plain_slice,
)
from ....dialects.tgraph.structure import FusionOp, ReadOp, YieldOp
from . import regions
from .dimensions import body_dimensions, needs, shape_of
from .windows import Rows


def write(region: regions.TileableRegion, tiles: int, last: Operation) -> None:
    """Replaces a region by its tiles, in front of `last`."""
    block = last.parent
    assert block is not None
    for op in region.after:
        op.detach()
        block.insert_op_before(op, last)
    anchor = next(iter(region.after), last)
    contents: dict[TensorOp, SSAValue] = {}  # of variables, by the members that write
    for op in region.overwritten:
        read = ReadOp(op.outs[0])
        read.location = op.location
        block.insert_op_before(read, anchor)
        contents[op] = read.result
    parts: dict[SSAValue, list[SSAValue]] = {
        value: []
        for op in region.outputs
        if op not in contents
        for value in op.results
        if region.is_stored(value)
    }
    for tile in range(tiles):
        new = _write_tile(region, tile, tiles, contents, anchor)
        for value, found in parts.items():
            found.append(new[value])
    for op, value in contents.items():
        op.results[0].replace_all_uses_with(value)
    for value, found in parts.items():
        op = value.owner
        assert isinstance(op, TensorOp)
        joined = ConcatenateOp(
            found,
            result_types=[value.type],
            properties={"dimension": IntegerAttr(region.dims[op], i64)},
        )
        joined.attributes |= op.attributes
        joined.attributes[IN_PLACE] = UnitAttr()
        joined.location = op.location
        block.insert_op_before(joined, anchor)
        value.replace_all_uses_with(joined.result)
        joined.result.name_hint = value.name_hint
    for op in reversed(list(region.dims)):
        if op not in region.originals:
            op.detach()
            op.erase()


def _write_tile(
    region: regions.TileableRegion,
    tile: int,
    tiles: int,
    contents: dict[TensorOp, SSAValue],
    anchor: Operation,
) -> dict[SSAValue, SSAValue]:
    """Adds the operations of a tile. Returns the tile's values by the original values.

    Updates `contents`, the current contents of variables.
    """
    block = anchor.parent
    assert block is not None
    slices: dict[tuple[SSAValue, int], SSAValue] = {}
    new: dict[SSAValue, SSAValue] = {}
    now = {
        value: contents[op]
        for op, before in region.overwritten.items()
        for value in before
    }

    def operand(value: SSAValue, along: int | None, reader: Operation) -> SSAValue:
        if along is None:
            return value
        if value.owner in region.dims:
            return new[value]
        if (value, along) not in slices:
            size = shape_of(value)[along] // tiles
            rows = tile * size, (tile + 1) * size
            taken = slice_of(now.get(value, value), along, rows)
            taken.location = reader.location
            taken.attributes |= reader.attributes
            block.insert_op_before(taken, anchor)
            slices[value, along] = taken.result
        return slices[value, along]

    for op, dim in region.dims.items():
        assert isinstance(op, TensorOp)
        operands = [
            operand(value, along, op)
            for value, along in zip(op.inputs, region.needs[op], strict=False)
        ]
        copy = in_tile(op, operands, dim, shape_of(op.res[0])[dim] // tiles)
        block.insert_op_before(copy, anchor)
        new.update(zip(op.results, copy.results, strict=True))
        if op in contents:
            for part in _update(contents[op], copy, op, dim, tile):
                part.location = op.location
                block.insert_op_before(part, anchor)
                contents[op] = part.results[0]
    return new


def _update(
    contents: SSAValue, part: TensorOp, op: TensorOp, dim: int, tile: int
) -> Iterator[TensorOp]:
    """Yields the operations that put a tile into the variable that `op` writes."""
    type = tensor_type_of(contents.type)
    shape = tensor_type_of(part.results[0].type).get_shape()
    number = TensorType(i32, (), type.encoding)
    starts: list[SSAValue] = []
    for d, size in enumerate(shape):
        constant = ConstantOp(IntegerAttr(tile * size if d == dim else 0, i32), number)
        starts.append(constant.result)
        yield constant
    yield DynamicUpdateSliceOp(
        [contents, part.results[0], *starts],
        outs=op.outs,
        result_types=[type],
    )


def slice_of(value: SSAValue, dim: int, rows: Rows) -> SliceOp:
    """The slice of `rows` of a value along `dim`."""
    shape = shape_of(value)
    starts, limits = [0] * len(shape), list(shape)
    starts[dim], limits[dim] = rows
    return plain_slice(value, starts, limits)


def resized(type: AnyTensor, dim: int, size: int) -> AnyTensor:
    """The type with another size along dimension `dim`."""
    shape = type.get_shape()
    return with_shape(type, (*shape[:dim], size, *shape[dim + 1 :]))


def in_tile(
    op: TensorOp,
    operands: Sequence[SSAValue],
    dim: int | None,
    size: int = 0,
    element: Attribute | None = None,
) -> TensorOp:
    """A copy of `op` on tiles of its operands, with tiles of its results.

    dim, size: the tiled dimension of the results, if they have it, and its size.
    element: the element type of the only result, if it differs from that of `op`.
    """
    types = [tensor_type_of(value.type) for value in op.results]
    properties = op.properties | {"operandSegmentSizes": segments(operands, ())}
    body = [] if isinstance(op, FusionOp) else [region.clone() for region in op.regions]
    if dim is not None:
        if isinstance(op, FusionOp):
            body = [Region(_body(op, dim, types[0].get_shape()[dim] // size))]
        properties |= _sizes_in_tile(op, dim, size)
        types = [resized(type, dim, size) for type in types]
    if element is not None:
        types = [with_element(types[0], element)]
    copy = op.__class__.create(
        operands=operands,
        result_types=types,
        properties=properties,
        attributes=dict(op.attributes),
        location=op.location,
        regions=body,
    )
    for value, result in zip(op.results, copy.results, strict=True):
        result.name_hint = value.name_hint
    return copy


def _sizes_in_tile(op: TensorOp, dim: int, size: int) -> Mapping[str, Attribute]:
    """The properties that state the size of dimension `dim` of the result, which the
    operand has in full."""
    match op:
        case SliceOp():
            name, along = "limit_indices", dim
        case DynamicSliceOp():
            name, along = "slice_sizes", dim
        case GatherOp() if dim in op.offset_dims.get_values():
            name, along = "slice_sizes", (needs(op, dim) or (None,))[0]
        case _:
            return {}
    sizes = cast(DenseArrayBase[IntegerType], op.properties[name]).get_values()
    return {name: ints([size if d == along else n for d, n in enumerate(sizes)])}


def _body(op: FusionOp, dim: int, tiles: int) -> Block:
    """The body of a fusion for one tile of its result."""
    dims = body_dimensions(op, dim)
    assert dims is not None
    old = op.body.block
    block = Block()
    new: dict[SSAValue, SSAValue] = {}
    for value in old.args:
        type, along = tensor_type_of(value.type), dims[value]
        if along is not None:
            type = resized(type, along, type.get_shape()[along] // tiles)
        new[value] = block.insert_arg(type, len(block.args))
        new[value].name_hint = value.name_hint
    for inner in old.ops:
        if isinstance(inner, TensorOp) and inner.results[0] in dims:
            operands = [new[value] for value in inner.operands]
            along = dims[inner.results[0]]
            size = 0 if along is None else shape_of(inner.results[0])[along] // tiles
            copy = in_tile(inner, operands, along, size)
            block.add_op(copy)
            new[inner.results[0]] = copy.results[0]
    block.add_op(YieldOp(new[op.yielded[0]]))
    return block
