"""Writes operations as one loop, which computes a tile in each iteration.

%1 = tgraph.exponential %0               : tensor<4x8xf32>
%2 = tgraph.reduce %1 {kind = "add", dimensions = array<i64: 0>} : ... -> tensor<8xf32>

%x = tgraph.reshape %0                   : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
%n, %2 = tgraph.while %c0, %zeros, %x : ... {
  ... %i < 2
} do {
  %r = tgraph.dynamic_slice %x, %i, %c0, %c0 ... : ... -> tensor<1x2x8xf32>
  %t = tgraph.reshape %r                 : ... -> tensor<2x8xf32>
  %e = tgraph.exponential %t             : tensor<2x8xf32>
  %p = tgraph.reduce %e ...             : ... -> tensor<8xf32>
  %s = tgraph.add %sum, %p               : tensor<8xf32>
  tgraph.assign %vs, %s                  : tensor<8xf32>
  ...
}

The tiled dimension of a sliced operand is split in two, so that an iteration reads the
tile that has its number. So is the tiled dimension of a result that is assembled from
tiles. Windows read rows of several tiles, so their loops count rows instead:

%f = ...                                  // the first tile, with padding before it
%n, %r, %k = tgraph.while %c0, %f, ... {  // %k: the last rows of the tile before
  ... %i < tiles - 2
} do {
  %s = tgraph.add %i_times_rows, ...
  %x = tgraph.dynamic_slice %image, ...   // these rows, and those that windows reach
  %0 = tgraph.exponential %x
  %1 = tgraph.concatenate %vk, %0 {dimension = 1, tgraph.in_place}
  tgraph.assign %vk, %last_of_1
  %2 = tgraph.convolution %1, %w ...      // no padding along this dimension
  tgraph.dynamic_update_slice %vr, %2, %s ...
}
...                                       // the last tile, with padding behind it

If a `tgraph.pad` adds the padding, each tile has its own pad, which pads the other
dimensions, too.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, f32, i1, i32, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects.tgraph import elementwise as e
from ....dialects.tgraph.base import (
    IN_PLACE,
    TILES,
    AnyTensor,
    TensorOp,
    VariableType,
    ints,
    tensor_type_of,
    with_element,
    with_shape,
)
from ....dialects.tgraph.elements import holds, identity, is_float
from ....dialects.tgraph.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    ScatterOp,
)
from ....dialects.tgraph.reducing import ReduceOp
from ....dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    ConstantOp,
    IotaOp,
    PadOp,
    ReshapeOp,
    TransposeOp,
)
from ....dialects.tgraph.structure import AssignOp, ReadOp, WhileOp, YieldOp
from ..shared.constants import full
from .dimensions import is_repeated, shape_of
from .loops import Needed, TiledLoop
from .rewriting import in_tile, resized, slice_of
from .windows import Rows, padding, scale


def write_loop(loop: TiledLoop) -> WhileOp:
    """Replaces the members of `loop` by a `tgraph.while`, which it returns."""
    block = loop.members[0].parent
    assert block is not None
    position = {op: index for index, op in enumerate(block.ops)}
    last = max((*loop.before, *loop.members), key=lambda op: position[op])
    anchor = last.next_op
    assert anchor is not None
    inside = set(loop.members)
    writer = _Writer(loop, anchor)
    written = writer.write()
    for value, result in writer.results().items():
        result.name_hint = value.name_hint
        for use in list(value.uses):
            if use.operation not in inside:
                use.operation.operands[use.index] = result
    for op in loop.after:
        if position[op] < position[last]:
            op.detach()
            block.insert_op_before(op, anchor)
    gone = {*inside, *loop.padding}
    for op in reversed(position):
        if op in gone or (is_repeated(op) and not op.results[0].uses):
            op.detach()
            op.erase()
    return written


class _Writer:
    """Writes a loop before `anchor`, with the operations that set it up and follow it.

    The first and the last tile of a loop through windows, which alone have padding, are
    peeled: they come before and after the loop.
    """

    def __init__(self, loop: TiledLoop, anchor: Operation):
        self.loop = loop
        self.anchor = anchor
        self.origin = loop.members[0]  # gives its location to new operations
        type = tensor_type_of(self.origin.results[0].type)
        self.number = with_element(with_shape(type, ()), i32)
        self.place = {value: n for n, value in enumerate(loop.carried, 1)}
        """The numbers of assembled results and of sums among the carried values."""
        self.line = {op: n for n, op in enumerate(loop.kept, len(self.place) + 1)}
        """The numbers of rows that the next tile reads again, by their member."""
        self.carried: list[SSAValue] = []
        self.needed = Needed()
        self.updated = {old: self.place[new] for new, old in loop.updates.items()}
        """The numbers of assembled results by the values whose rows they replace."""

    def write(self) -> WhileOp:
        """Writes all tiles."""
        loop = self.loop
        self.carried = [
            self.before(self.constant(0)),
            *(self._first_rows(value) for value in loop.outputs),
            *(self._first_sum(op) for op in loop.parts),
            *(self._first_line(op) for op in loop.kept),
        ]
        if loop.is_peeled:
            _Peeled(self, 0).write()
        iteration = _Iteration(self)
        iteration.write()
        regions = [Region(self._condition(iteration)), Region(iteration.block)]
        types = [value.type for value in self.carried]
        written = WhileOp(iteration.inputs, result_types=types, regions=regions)
        written.attributes[TILES] = IntegerAttr(loop.tiles, i32)
        self.insert(written)
        self.carried = list(written.res)
        if loop.is_peeled:
            _Peeled(self, loop.tiles - 1).write()
        return written

    def results(self) -> Mapping[SSAValue, SSAValue]:
        """The values that replace the results of members."""
        return {v: self._whole(v, self.carried[n]) for v, n in self.place.items()}

    def insert(self, op: Operation) -> None:
        op.location = self.origin.location
        block = self.anchor.parent
        assert block is not None
        block.insert_op_before(op, self.anchor)

    def before(self, op: TensorOp) -> SSAValue:
        self.insert(op)
        return op.result

    def _filled(self, number: float, type: AnyTensor) -> SSAValue:
        *parts, last = full(number, type)
        for op in parts:
            self.insert(op)
        return self.before(last)

    def constant(self, number: int) -> ConstantOp:
        return ConstantOp(IntegerAttr(number, i32), self.number)

    def with_tiles(self, type: AnyTensor, dim: int) -> AnyTensor:
        """The type with dimension `dim` split in two: tiles, and rows of a tile."""
        shape = type.get_shape()
        size = shape[dim] // self.loop.tiles
        return with_shape(
            type, (*shape[:dim], self.loop.tiles, size, *shape[dim + 1 :])
        )

    def divided(self, value: SSAValue, dim: int) -> SSAValue:
        """`value` with dimension `dim` split in two."""
        type = self.with_tiles(tensor_type_of(value.type), dim)
        return self.before(ReshapeOp([value], result_types=[type]))

    def _first_rows(self, value: SSAValue) -> SSAValue:
        """The initial value of a result that is assembled from tiles."""
        if value in self.loop.updates:
            return self.divided(self.loop.updates[value], self.loop.dim(value))
        type = tensor_type_of(value.type)
        if not self.loop.is_peeled:
            type = self.with_tiles(type, self.loop.dim(value))
        return self._filled(0, type)

    def _first_sum(self, op: Operation) -> SSAValue:
        """The initial value that parts are combined with."""
        if isinstance(op, ScatterOp):
            return op.inputs[0]
        type, kind = _sum_type(op, self.loop), self.loop.parts[op].kind
        return self._filled(identity(kind, type.element_type), type)

    def _first_line(self, op: Operation) -> SSAValue:
        """The initial value that the last rows of the first tile are put into."""
        type = tensor_type_of(op.results[0].type)
        type = resized(type, self.loop.dims[op], self.loop.kept[op])
        return self._filled(0, type)

    def _whole(self, value: SSAValue, result: SSAValue) -> SSAValue:
        """A member's result in its own type, from the carried value."""
        self.origin = cast(Operation, value.owner)
        if result.type == value.type:
            return result
        kind = e.ConvertOp if value.owner in self.loop.parts else ReshapeOp
        return self.before(kind([result], result_types=[value.type]))

    def _condition(self, iteration: "_Iteration") -> Block:
        block = Block(arg_types=iteration.block.arg_types)
        read = ReadOp(block.args[0])
        count = self.constant(self.loop.tiles - 2 * self.loop.is_peeled)
        goes_on = e.CompareOp(
            [read.result, count.result],
            result_types=[with_element(self.number, i1)],
            properties={"direction": StringAttr("LT")},
        )
        block.add_ops([read, count, goes_on, YieldOp(goes_on.result)])
        return block


class _Tile(ABC):
    """Writes the operations that compute one tile."""

    is_first = False
    is_last = False

    def __init__(self, writer: _Writer):
        self.writer = writer
        self.loop = writer.loop
        self.tiles: dict[SSAValue, tuple[SSAValue, int]] = {}
        """For each member's result, its available rows, and the number of the first."""
        self.new: dict[SSAValue, SSAValue] = {}
        """For each member's result, the value that this tile computes."""
        self.read: dict[tuple[SSAValue, int], SSAValue] = {}
        """The slices and views that a member reads. Each member has its own, so that
        none stays live for others."""
        self.transposed: dict[tuple[SSAValue, Rows], SSAValue] = {}
        """Transposed rows of members. They take no memory, and a group with several
        readers of them reads them once."""
        self.needed = writer.needed

    def write(self) -> None:
        """Writes the members, then the updates of assembled results."""
        place = self.writer.place
        self.zero = self.add(self.writer.constant(0))
        for op in self.loop.members:
            self.writer.origin = op
            self.read.clear()
            if op in self.loop.parts:
                self.new[op.results[0]] = self._sum(op, place[op.results[0]])
            else:
                self._compute(op)
        for value in self.loop.outputs:
            self.writer.origin = cast(Operation, value.owner)
            self.new[value] = self._put(value, place[value])
        for value, number in place.items():
            self.set(number, self.new[value])

    # Access to values, in the loop or outside

    @abstractmethod
    def add(self, op: TensorOp | ReadOp) -> SSAValue: ...

    @abstractmethod
    def get(self, place: int) -> SSAValue:
        """The carried value number `place`."""

    @abstractmethod
    def set(self, place: int, value: SSAValue) -> None: ...

    @abstractmethod
    def give(self, value: SSAValue) -> SSAValue:
        """`value`, which comes from outside, as this tile can read it."""

    @abstractmethod
    def start(self, size: int, row: int) -> SSAValue:
        """The number, among all rows, of row `row` of this tile of `size` rows."""

    @abstractmethod
    def slice(self, value: SSAValue, along: int, rows: Rows) -> SSAValue:
        """Rows of a value from outside, counted from the first row of the tile."""

    # Computation

    def size(self, value: SSAValue, along: int) -> int:
        """The number of rows that a tile of `value` has."""
        return shape_of(value)[along] // self.loop.tiles

    def _rows(self, op: Operation) -> Rows:
        """The rows that a member computes, counted from the first row of the tile."""
        size = self.size(op.results[0], self.loop.dims[op])
        ahead = self.loop.ahead[op]
        return 0 if self.is_first else ahead, size + (0 if self.is_last else ahead)

    def _compute(self, op: Operation) -> None:
        """Writes the computation of a member's rows."""
        assert isinstance(op, TensorOp)
        dim, rows = self.loop.dims[op], self._rows(op)
        read, properties = rows, {}
        if moving := self.needed.window(op, dim):
            read = moving.read(rows)
            if not moving.is_padded:
                read, outside = self._inside(op.inputs[0], moving.along, read)
                properties = padding(op, moving.spatial, outside)
        operands = [
            self.give(value) if along is None else self._tile(value, along, read)
            for value, along in zip(op.inputs, self.loop.needs[op], strict=True)
        ]
        tile = in_tile(op, operands, dim, rows[1] - rows[0])
        tile.properties |= properties
        self.add(tile)
        for value, result in zip(op.results, tile.results, strict=True):
            self.new[value] = result
            self.tiles[value] = self._with_line(op, result, rows[0])

    def _inside(self, value: SSAValue, along: int, rows: Rows) -> tuple[Rows, Rows]:
        """Splits `rows`, counted from the first row of the tile, into those that
        `value` has and the numbers of padding rows before and after them."""
        low = max(0, -rows[0]) if self.is_first else 0
        size = self.size(value, along)
        high = max(0, rows[1] - size) if self.is_last else 0
        return (rows[0] + low, rows[1] - high), (low, high)

    def _with_line(
        self, op: Operation, rows: SSAValue, start: int
    ) -> tuple[SSAValue, int]:
        """A member's rows, after those kept of the previous tile, and the number of the
        first row. Keeps the rows that the next tile needs."""
        if op not in self.loop.kept:
            return rows, start
        dim, place, kept = self.loop.dims[op], self.writer.line[op], self.loop.kept[op]
        if not self.is_first:
            rows, start = self._joined(self.get(place), rows, dim), start - kept
        if not self.is_last:
            end = shape_of(rows)[dim]
            last = self.add(slice_of(rows, dim, (end - kept, end)))
            if self.is_first:  # so that only these rows are stored
                last = self._update(self.get(place), last, dim, self.zero)
            self.set(place, last)
        return rows, start

    def _joined(self, first: SSAValue, second: SSAValue, dim: int) -> SSAValue:
        rows = shape_of(first)[dim] + shape_of(second)[dim]
        joined = ConcatenateOp(
            [first, second],
            result_types=[resized(tensor_type_of(first.type), dim, rows)],
            properties={"dimension": IntegerAttr(dim, i64)},
        )
        joined.attributes[IN_PLACE] = UnitAttr()
        return self.add(joined)

    def _sum(self, op: Operation, place: int) -> SSAValue:
        """The combination of a result's parts so far with the part of this tile."""
        assert isinstance(op, TensorOp)
        tiles = [
            self._tile(value, along, (0, self.size(value, along)))
            for value, along in zip(op.inputs, self.loop.needs[op], strict=True)
            if along is not None
        ]
        if isinstance(op, ScatterOp):
            return self.add(in_tile(op, [self.get(place), *tiles], None))
        type = _sum_type(op, self.loop)
        if isinstance(op, ReduceOp) and op.result.type != type:
            wide = with_element(tensor_type_of(tiles[0].type), type.element_type)
            tiles = [self.add(e.ConvertOp(tiles, result_types=[wide]))]
        added = in_tile(op, tiles, None, element=type.element_type)
        together = [self.get(place), self.add(added)]
        combine = e.COMBINERS[self.loop.parts[op].kind]
        return self.add(combine(together, result_types=[type]))

    def _put(self, value: SSAValue, place: int) -> SSAValue:
        """A result with its tiles so far and the rows of this one."""
        dim, whole, rows = self.loop.dim(value), self.get(place), self.new[value]
        first, _ = self._rows(cast(Operation, value.owner))
        start = self.start(self.size(value, dim), first)
        return self._update(whole, rows, dim, start)

    def _update(
        self, whole: SSAValue, rows: SSAValue, along: int, start: SSAValue
    ) -> SSAValue:
        starts = self.starts(tensor_type_of(rows.type), along, start)
        return self.add(
            DynamicUpdateSliceOp([whole, rows, *starts], result_types=[whole.type])
        )

    def starts(
        self, type: AnyTensor, along: int, start: SSAValue
    ) -> Sequence[SSAValue]:
        return [start if d == along else self.zero for d in range(type.get_num_dims())]

    # Operands

    def _divides(self, size: int) -> bool:
        return size % self.loop.tiles == 0

    def _tile(self, value: SSAValue, along: int, rows: Rows) -> SSAValue:
        """Rows of a value, which a member or a view computes, or a slice takes."""
        views: list[tuple[TensorOp, int, Rows]] = []
        while value not in self.tiles and (value, along) not in self.read:
            op, needed = value.owner, None
            if isinstance(op, TensorOp) and self.needed.is_remade(op):
                needed = self.needed.divided(op, along, self._divides)
            if needed is None:
                self.read[value, along] = self.slice(value, along, rows)
                continue
            assert isinstance(op, TensorOp)
            if needed and needed[0] is not None:
                views.append((op, along, rows))
                size = self.needed.rows(value, along)
                value, along = op.inputs[0], needed[0]
                rows = scale(rows, size, self.needed.rows(value, along))
                if isinstance(op, PadOp):
                    rows, _ = self._inside(value, along, rows)
                continue
            operands = [self.give(operand) for operand in op.inputs]
            self.read[value, along] = self._view(op, along, rows, operands)
        tile = self.read.get((value, along)) or self._made(value, along, rows)
        for view, along, rows in reversed(views):
            tile = self._seen(view, along, rows, tile)
            self.read[view.result, along] = tile
        return tile

    def _seen(self, view: TensorOp, along: int, rows: Rows, tile: SSAValue) -> SSAValue:
        """Rows of a view of `tile`. Transposes a member once for all readers."""
        if not isinstance(view, TransposeOp) or view.inputs[0] not in self.tiles:
            return self._view(view, along, rows, [tile])
        key = view.result, rows
        if key not in self.transposed:
            self.transposed[key] = self._view(view, along, rows, [tile])
        return self.transposed[key]

    def _made(self, value: SSAValue, along: int, rows: Rows) -> SSAValue:
        """Rows that a member has computed."""
        tile, start = self.tiles[value]
        if rows == (start, start + shape_of(tile)[along]):
            return tile
        return self.add(slice_of(tile, along, (rows[0] - start, rows[1] - start)))

    def _view(
        self, op: TensorOp, along: int, rows: Rows, operands: Sequence[SSAValue]
    ) -> SSAValue:
        """Rows of a view, a pad, an iota or a number."""
        size = rows[1] - rows[0]
        if isinstance(op, PadOp):
            return self._padded(op, along, rows, operands[0])
        if not isinstance(op, IotaOp) or op.dimension.value.data != along:
            return self.add(in_tile(op, operands, along, size))
        tile = in_tile(op, operands, along, size, i32)
        counted = tensor_type_of(tile.result.type)
        type = with_element(counted, tensor_type_of(op.result.type).element_type)
        start = BroadcastInDimOp(
            [self.start(self.size(op.result, along), rows[0])],
            result_types=[counted],
            properties={"broadcast_dimensions": ints(())},
        )
        operands = [self.add(tile), self.add(start)]
        iota = self.add(e.AddOp(operands, result_types=[counted]))
        if counted == type:
            return iota
        return self.add(e.ConvertOp([iota], result_types=[type]))

    def _padded(self, op: PadOp, along: int, rows: Rows, tile: SSAValue) -> SSAValue:
        """Rows of a padded value, with the padding that belongs to this tile."""
        size = rows[1] - rows[0]
        if tile.type == resized(tensor_type_of(op.result.type), along, size):
            return tile
        _, outside = self._inside(op.inputs[0], along, rows)
        number = op.inputs[1]
        if isinstance(constant := number.owner, ConstantOp):
            number = self.add(in_tile(constant, [], None))
        else:
            number = self.give(number)
        pad = in_tile(op, [tile, number], along, size)
        pad.properties |= padding(op, along, outside)
        return self.add(pad)


class _Peeled(_Tile):
    """The first or the last tile, outside of the loop."""

    def __init__(self, writer: _Writer, number: int):
        super().__init__(writer)
        self.number = number
        self.is_first, self.is_last = number == 0, number > 0

    def add(self, op: TensorOp | ReadOp) -> SSAValue:
        self.writer.insert(op)
        return op.results[0]

    def get(self, place: int) -> SSAValue:
        return self.writer.carried[place]

    def set(self, place: int, value: SSAValue) -> None:
        self.writer.carried[place] = value

    def give(self, value: SSAValue) -> SSAValue:
        return value

    def start(self, size: int, row: int) -> SSAValue:
        return self.add(self.writer.constant(self.number * size + row))

    def slice(self, value: SSAValue, along: int, rows: Rows) -> SSAValue:
        first = self.number * self.size(value, along)
        return self.add(slice_of(value, along, (first + rows[0], first + rows[1])))


class _Iteration(_Tile):
    """The tile of an iteration, in the body of the loop."""

    def __init__(self, writer: _Writer):
        super().__init__(writer)
        self.inputs = list(writer.carried)
        types = [VariableType(tensor_type_of(value.type)) for value in self.inputs]
        self.block = Block(arg_types=types)
        self.given: dict[SSAValue, SSAValue] = {}
        """The block arguments for values from outside."""
        self.divided: dict[tuple[SSAValue, int], SSAValue] = {}
        """Values whose tiles are read, with the tiled dimension split in two."""
        self.index = self.get(0)

    def write(self) -> None:
        super().write()
        one = self.add(self.writer.constant(1))
        counted = e.AddOp([self.index, one], result_types=[self.writer.number])
        self.set(0, self.add(counted))
        self.block.add_op(YieldOp())

    def add(self, op: TensorOp | ReadOp) -> SSAValue:
        op.location = self.writer.origin.location
        self.block.add_op(op)
        return op.results[0]

    def get(self, place: int) -> SSAValue:
        return self.add(ReadOp(self.block.args[place]))

    def set(self, place: int, value: SSAValue) -> None:
        self.block.add_op(AssignOp(self.block.args[place], value))

    def give(self, value: SSAValue) -> SSAValue:
        if value not in self.given:
            self.inputs.append(value)
            self.given[value] = self.block.insert_arg(value.type, len(self.block.args))
        return self.given[value]

    def start(self, size: int, row: int) -> SSAValue:
        type = self.writer.number
        step = self.add(self.writer.constant(size))
        start = self.add(e.MultiplyOp([self.index, step], result_types=[type]))
        if not self.loop.is_peeled:
            return start
        offset = self.add(self.writer.constant(size + row))
        return self.add(e.AddOp([start, offset], result_types=[type]))

    def slice(self, value: SSAValue, along: int, rows: Rows) -> SSAValue:
        type = tensor_type_of(value.type)
        if self.loop.is_peeled:
            start = self.start(self.size(value, along), rows[0])
            taken = resized(type, along, rows[1] - rows[0])
            return self._taken(self.give(value), taken, along, start)
        if value in self.writer.updated:
            whole = self.get(self.writer.updated[value])
        else:
            if (value, along) not in self.divided:
                self.divided[value, along] = self.writer.divided(value, along)
            whole = self.give(self.divided[value, along])
        one = resized(tensor_type_of(whole.type), along, 1)
        row = self._taken(whole, one, along, self.index)
        tile = resized(type, along, self.size(value, along))
        return self.add(ReshapeOp([row], result_types=[tile]))

    def _taken(
        self, whole: SSAValue, type: AnyTensor, along: int, start: SSAValue
    ) -> SSAValue:
        return self.add(
            DynamicSliceOp(
                [whole, *self.starts(type, along, start)],
                result_types=[type],
                properties={"slice_sizes": ints(type.get_shape())},
            )
        )

    def _put(self, value: SSAValue, place: int) -> SSAValue:
        if self.loop.is_peeled:
            return super()._put(value, place)
        dim, whole, rows = self.loop.dim(value), self.get(place), self.new[value]
        one = resized(tensor_type_of(whole.type), dim, 1)
        row = self.add(ReshapeOp([rows], result_types=[one]))
        return self._update(whole, row, dim, self.index)


def _sum_type(op: Operation, loop: TiledLoop) -> AnyTensor:
    """The type in which parts of a result are combined: sums of small floats in f32."""
    type = tensor_type_of(op.results[0].type)
    element = type.element_type
    is_sum = loop.parts[op].kind in ("add", "multiply")
    if is_sum and is_float(element) and holds(f32, element):
        return with_element(type, f32)
    return type
