"""Operations written as one loop, which computes a tile in each iteration.

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

What is sliced has its tiled dimension divided in two, so that an iteration reads, and a
result that is put together gets, what has the iteration's number.
"""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, i1, i32
from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects.tgraph import elementwise as e
from ....dialects.tgraph.base import (
    TILES,
    AnyTensor,
    Shape,
    TensorOp,
    VariableType,
    ints,
    tensor_type_of,
    with_element,
    with_shape,
)
from ....dialects.tgraph.elements import holds, identity, is_float, number_of
from ....dialects.tgraph.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    ScatterOp,
)
from ....dialects.tgraph.reducing import ReduceOp
from ....dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConstantOp,
    IotaOp,
    ReshapeOp,
)
from ....dialects.tgraph.structure import AssignOp, ReadOp, WhileOp, YieldOp
from .dimensions import is_repeated
from .loops import Needed, TiledLoop
from .rewriting import in_tile

_COMBINE: Mapping[str, type[e.BinaryOp]] = {
    "add": e.AddOp,
    "multiply": e.MultiplyOp,
    "maximum": e.MaximumOp,
    "minimum": e.MinimumOp,
    "and": e.AndOp,
    "or": e.OrOp,
}


def write_loop(loop: TiledLoop) -> WhileOp:
    """Replaces the members of a loop by it."""
    block = loop.members[0].parent
    assert block is not None
    position = {op: index for index, op in enumerate(block.ops)}
    last = max((*loop.before, *loop.members), key=lambda op: position[op])
    anchor = last.next_op
    assert anchor is not None
    inside = set(loop.members)
    writer = _Writer(loop, anchor)
    written = writer.write()
    for op, result in writer.results(written).items():
        result.name_hint = op.results[0].name_hint
        for use in list(op.results[0].uses):
            if use.operation not in inside:
                use.operation.operands[use.index] = result
    for op in loop.after:
        if position[op] < position[last]:
            op.detach()
            block.insert_op_before(op, anchor)
    for op in reversed(position):
        if op in inside or (is_repeated(op) and not op.results[0].uses):
            op.detach()
            op.erase()
    return written


class _Writer:
    """Writes a loop in front of an operation, and what comes before and after it."""

    def __init__(self, loop: TiledLoop, anchor: Operation):
        self.loop = loop
        self.anchor = anchor
        self.origin = loop.members[0]  # of what is written
        type = tensor_type_of(self.origin.results[0].type)
        self.number = with_element(with_shape(type, ()), i32)
        self.condition, self.body = Block(), Block()
        self.inputs: list[SSAValue] = []
        self.given: dict[SSAValue, SSAValue] = {}
        """Values from outside, as they are called in the body."""
        self.divided: dict[tuple[SSAValue, int], SSAValue] = {}
        """Values whose tiles are read, with a dimension for the tiles' number."""
        self.tiles: dict[SSAValue, SSAValue] = {}
        """Of the members' results, in the body."""
        self.read: dict[tuple[SSAValue, int], SSAValue] = {}
        """What a member reads, slices and views; each has its own, so that none is kept
        for others."""
        self.needed = Needed()

    def write(self) -> WhileOp:
        self._carry(self._before(self._constant(0)))
        for op in self.loop.outputs:
            self._carry(self._before(self._empty(op)))
        for op in self.loop.parts:
            self._carry(self._first_sum(op))
        types = [value.type for value in self.inputs]
        self._write_body()
        self._write_condition()
        regions = [Region(self.condition), Region(self.body)]
        loop = WhileOp(self.inputs, result_types=types, regions=regions)
        loop.attributes[TILES] = IntegerAttr(self.loop.tiles, i32)
        self._insert(loop)
        return loop

    def _write_body(self) -> None:
        """Writes the members; then the counter, and what is put together and added
        up."""
        outputs = self.loop.outputs
        places = {op: n for n, op in enumerate((*outputs, *self.loop.parts), 1)}
        next: dict[Operation, SSAValue] = {}
        self.index = self._read(0)
        self.zero = self._add(self._constant(0))
        for op in self.loop.members:
            self.origin = op
            self.read.clear()
            if op in self.loop.parts:
                next[op] = self._sum(op, places[op])
            else:
                self._write_tile(op)
        for op in outputs:
            self.origin = op
            next[op] = self._put(op, places[op])
        one = self._add(self._constant(1))
        counted = self._add(e.AddOp([self.index, one], result_types=[self.number]))
        self.body.add_op(AssignOp(self.body.args[0], counted))
        for op, place in places.items():
            self.body.add_op(AssignOp(self.body.args[place], next[op]))
        self.body.add_op(YieldOp())

    def results(self, written: WhileOp) -> Mapping[Operation, SSAValue]:
        """What replaces the results of members."""
        members = (*self.loop.outputs, *self.loop.parts)
        results = zip(members, written.res[1:], strict=True)
        return {op: self._whole(op, result) for op, result in results}

    # Around the loop

    def _insert(self, op: Operation) -> None:
        op.location = self.origin.location
        block = self.anchor.parent
        assert block is not None
        block.insert_op_before(op, self.anchor)

    def _before(self, op: TensorOp) -> SSAValue:
        self._insert(op)
        return op.result

    def _empty(self, op: Operation) -> ConstantOp:
        """What tiles of a result are put into."""
        type = tensor_type_of(op.results[0].type)
        type = with_shape(type, self._with_tiles(type, self.loop.dims[op]))
        return ConstantOp(number_of(0, type.element_type), type)

    def _first_sum(self, op: Operation) -> SSAValue:
        """What parts are combined with, first."""
        if isinstance(op, ScatterOp):
            return op.inputs[0]
        type, kind = _sum_type(op, self.loop), self.loop.parts[op].kind
        number = number_of(identity(kind, type.element_type), type.element_type)
        return self._before(ConstantOp(number, type))

    def _whole(self, op: Operation, result: SSAValue) -> SSAValue:
        """A member's result, from the loop's."""
        self.origin = op
        type = op.results[0].type
        if result.type == type:
            return result
        kind = e.ConvertOp if op in self.loop.parts else ReshapeOp
        return self._before(kind([result], result_types=[type]))

    def _with_tiles(self, type: AnyTensor, dim: int) -> Shape:
        """With a dimension for the tiles' number in front of that which is tiled."""
        shape = type.get_shape()
        size = shape[dim] // self.loop.tiles
        return (*shape[:dim], self.loop.tiles, size, *shape[dim + 1 :])

    # What the loop is given

    def _carry(self, value: SSAValue) -> None:
        self.inputs.append(value)
        for block in (self.condition, self.body):
            type = VariableType(tensor_type_of(value.type))
            block.insert_arg(type, len(block.args))

    def _give(self, value: SSAValue) -> SSAValue:
        """A value from outside, in the body."""
        if value not in self.given:
            self.inputs.append(value)
            for block in (self.condition, self.body):
                block.insert_arg(value.type, len(block.args))
            self.given[value] = self.body.args[-1]
        return self.given[value]

    # Its body

    def _add(self, op: TensorOp | ReadOp) -> SSAValue:
        op.location = self.origin.location
        self.body.add_op(op)
        return op.results[0]

    def _read(self, place: int) -> SSAValue:
        return self._add(ReadOp(self.body.args[place]))

    def _constant(self, number: int) -> ConstantOp:
        return ConstantOp(IntegerAttr(number, i32), self.number)

    def _write_tile(self, op: Operation) -> None:
        assert isinstance(op, TensorOp)
        dim = self.loop.dims[op]
        tile = in_tile(op, self._operands(op), dim, self.loop.tiles)
        self.tiles[op.result] = self._add(tile)
        tile.result.name_hint = op.result.name_hint

    def _operands(self, op: TensorOp) -> Sequence[SSAValue]:
        return [
            self._give(value) if along is None else self._tile(value, along)
            for value, along in zip(op.inputs, self.loop.needs[op], strict=True)
        ]

    def _tile(self, value: SSAValue, along: int) -> SSAValue:
        """A tile of a value: made by a member, a view of one, or sliced."""
        views: list[tuple[TensorOp, int]] = []
        while value not in self.tiles and (value, along) not in self.read:
            op, needed = value.owner, None
            if isinstance(op, TensorOp) and is_repeated(op):
                needed = self.needed.divided(op, along, self.loop.tiles)
            if needed is None:
                self.read[value, along] = self._slice(value, along)
                continue
            assert isinstance(op, TensorOp)
            if needed and needed[0] is not None:
                views.append((op, along))
                value, along = op.inputs[0], needed[0]
                continue
            operands = [self._give(operand) for operand in op.inputs]
            self.read[value, along] = self._view(op, along, operands)
        tile = self.tiles.get(value) or self.read[value, along]
        for view, along in reversed(views):
            tile = self.read[view.result, along] = self._view(view, along, [tile])
        return tile

    def _view(self, op: TensorOp, along: int, operands: Sequence[SSAValue]) -> SSAValue:
        """A tile of a view, an iota or a number."""
        if not isinstance(op, IotaOp) or op.dimension.value.data != along:
            return self._add(in_tile(op, operands, along, self.loop.tiles))
        tile = in_tile(op, operands, along, self.loop.tiles, i32)
        counted = tensor_type_of(tile.result.type)
        type = with_element(counted, tensor_type_of(op.result.type).element_type)
        step = self._add(self._constant(type.get_shape()[along]))
        product = e.MultiplyOp([self.index, step], result_types=[self.number])
        start = BroadcastInDimOp(
            [self._add(product)],
            result_types=[counted],
            properties={"broadcast_dimensions": ints(())},
        )
        operands = [self._add(tile), self._add(start)]
        iota = self._add(e.AddOp(operands, result_types=[counted]))
        if counted == type:
            return iota
        return self._add(e.ConvertOp([iota], result_types=[type]))

    def _slice(self, value: SSAValue, along: int) -> SSAValue:
        """This iteration's tile of a value from outside."""
        type = tensor_type_of(value.type)
        shape = self._with_tiles(type, along)
        if (value, along) not in self.divided:
            divided = ReshapeOp([value], result_types=[with_shape(type, shape)])
            self.divided[value, along] = self._before(divided)
        sizes = (*shape[:along], 1, *shape[along + 1 :])
        taken = DynamicSliceOp(
            [self._give(self.divided[value, along]), *self._starts(shape, along)],
            result_types=[with_shape(type, sizes)],
            properties={"slice_sizes": ints(sizes)},
        )
        without = with_shape(type, (*shape[:along], *shape[along + 1 :]))
        return self._add(ReshapeOp([self._add(taken)], result_types=[without]))

    def _put(self, op: Operation, place: int) -> SSAValue:
        """The tiles so far of a result, and this iteration's."""
        dim = self.loop.dims[op]
        tile = self.tiles[op.results[0]]
        type = tensor_type_of(tile.type)
        shape = type.get_shape()
        with_number = with_shape(type, (*shape[:dim], 1, *shape[dim:]))
        row = self._add(ReshapeOp([tile], result_types=[with_number]))
        whole = self._read(place)
        starts = self._starts(with_number.get_shape(), dim)
        return self._add(
            DynamicUpdateSliceOp([whole, row, *starts], result_types=[whole.type])
        )

    def _starts(self, shape: Shape, along: int) -> Sequence[SSAValue]:
        return [self.index if d == along else self.zero for d in range(len(shape))]

    def _sum(self, op: Operation, place: int) -> SSAValue:
        """The parts so far of a result, combined with this iteration's."""
        assert isinstance(op, TensorOp)
        if isinstance(op, ScatterOp):
            so_far = self._read(place)
            tiles = [
                self._tile(value, along)
                for value, along in zip(op.inputs, self.loop.needs[op], strict=True)
                if along is not None
            ]
            operands = [so_far, *tiles]
            return self._add(in_tile(op, operands, None, self.loop.tiles))
        type = _sum_type(op, self.loop)
        operands = self._operands(op)
        if isinstance(op, ReduceOp) and op.result.type != type:
            wide = with_element(tensor_type_of(operands[0].type), type.element_type)
            operands = [self._add(e.ConvertOp(operands, result_types=[wide]))]
        added = in_tile(op, operands, None, self.loop.tiles, type.element_type)
        together = [self._read(place), self._add(added)]
        combine = _COMBINE[self.loop.parts[op].kind]
        return self._add(combine(together, result_types=[type]))

    def _write_condition(self) -> None:
        read = ReadOp(self.condition.args[0])
        count = self._constant(self.loop.tiles)
        goes_on = e.CompareOp(
            [read.result, count.result],
            result_types=[with_element(self.number, i1)],
            properties={"direction": StringAttr("LT")},
        )
        self.condition.add_ops([read, count, goes_on, YieldOp(goes_on.result)])


def _sum_type(op: Operation, loop: TiledLoop) -> AnyTensor:
    """In which parts are added up: f32 for smaller floats."""
    type = tensor_type_of(op.results[0].type)
    element = type.element_type
    is_sum = loop.parts[op].kind in ("add", "multiply")
    if is_sum and is_float(element) and holds(f32, element):
        return with_element(type, f32)
    return type
