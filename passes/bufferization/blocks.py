"""Blocks on tensors become blocks on memrefs, operation by operation."""

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects import memref
from xdsl.ir import Block, Operation, Region, SSAValue, Use
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator

from tensorplan.dialects.diagnostics import LocatedError, name_of, remark
from tensorplan.dialects.symbolic import Symbolic
from tensorplan.dialects.tgraph.base import (
    STREAM,
    AnyMemRef,
    AnyTensor,
    TensorOp,
    element_bytes,
    is_static,
    segments,
    shape_of,
    space_of,
    tensor_type_of,
    with_shape,
)
from tensorplan.dialects.tgraph.dims import static
from tensorplan.dialects.tgraph.indexing import DynamicUpdateSliceOp
from tensorplan.dialects.tgraph.shaping import (
    ConcatenateOp,
    ConstantOp,
    DeviceCopyOp,
    ReshapeOp,
    ViewOp,
)
from tensorplan.dialects.tgraph.structure import (
    AssignOp,
    FusionOp,
    IfOp,
    ReadOp,
    WhileOp,
)
from tensorplan.passes.bufferization.buffers import (
    Buffer,
    Constants,
    Place,
    contiguous,
)
from tensorplan.passes.bufferization.regions import bufferize_if, bufferize_while
from tensorplan.passes.concatenations import (
    Part,
    is_in_place,
    part_layout,
    parts,
)
from tensorplan.passes.index_sizes import SizeWriter
from tensorplan.passes.layout import Layout, memref_type
from tensorplan.passes.updates import updated_layout, updates
from tensorplan.passes.versions import (
    last_versions,
    looped_into,
    source_of,
    uses_of_contents,
)

SMALL_CONSTANT = 1024
"""Up to this size, in bytes, a constant is a global even if it is a single number."""


class BlockBufferization:
    """Builds the memref form of one block, which sees nothing from outside.

    Who makes one says where the arguments lie (`put`, `variables`) and gives a buffer
    for each value that the terminator passes on; after `run`, it adds a terminator.
    """

    def __init__(self, block: Block, constants: Constants, sizes: SizeWriter):
        self.old = block
        self.constants = constants
        self.sizes = sizes
        self.position = {op: index for index, op in enumerate(block.ops)}
        self.new = Block()
        self.variables: dict[SSAValue, Buffer] = {}
        self.places: dict[SSAValue, Place] = {}
        self._globals: dict[str, Buffer] = {}  # by the name of the constant
        self._results: Sequence[Buffer] = ()
        self._destinations: dict[SSAValue, Buffer] = {}
        self._parts: dict[SSAValue, Part] = {}
        self._joined: dict[SSAValue, Place] = {}  # of concatenations in place
        self._updates: dict[SSAValue, DynamicUpdateSliceOp] = {}
        self._owned: dict[Buffer, None] = {}
        self._at: Operation  # the operation that is being rewritten

    def run(self, results: Sequence[Buffer] = ()) -> Block:
        """The new block, but for its terminator, whose operands are in `results`."""
        self._results = results
        self._find_destinations()
        for op in self.old.ops:
            self._at = op
            if op.has_trait(IsTerminator, value_if_unregistered=False):
                self._deliver(op)
            else:
                self._rewrite(op)
            self._free_dead()
        return self.new

    def _find_destinations(self) -> None:
        """What is computed straight into a result, a concatenation or a part of a
        variable, or by a loop into a variable."""
        terminator = self.old.last_op
        assert terminator is not None
        for value, buffer in zip(terminator.operands, self._results, strict=True):
            self._aim(value, buffer)
        for variable, version in last_versions(self.old).items():
            while version.previous is not None:
                value = looped_into(version, self.position)
                if value is not None:
                    self._aim(value, self.variables[variable])
                version = version.previous
        for value, part in parts(self.old).items():
            if value not in self._destinations:
                self._parts[value] = part
        for value, op in updates(self.old).items():
            if value not in self._destinations and value not in self._parts:
                self._updates[value] = op

    def _aim(self, value: SSAValue, buffer: Buffer) -> None:
        """Has a value computed into a buffer, and what a loop starts from, too."""
        while isinstance(value.owner, ReshapeOp):
            value = value.owner.inputs[0]
        while isinstance(owner := value.owner, TensorOp | ReadOp):
            self._destinations.setdefault(value, buffer)
            if not isinstance(owner, WhileOp) or buffer.is_variable:
                return
            value = owner.inputs[owner.res.index(value)]
            if not value.has_one_use() or isinstance(value.owner, ViewOp | ReadOp):
                return

    # Values and buffers

    def put(
        self, value: SSAValue, buffer: Buffer, layout: Layout | None = None
    ) -> None:
        """Says where a value lies: in the whole buffer, unless a layout is given."""
        layout = layout or Layout.contiguous(shape_of(tensor_type_of(value.type)))
        self.places[value] = Place(buffer, layout)
        if buffer.is_variable:
            buffer.values.append(value)
        else:
            buffer.last = max(buffer.last, self._last_use(value))

    def _last_use(self, value: SSAValue) -> int:
        """The last position at which the value or a view of it is read."""
        reads = (at for at, _, _ in uses_of_contents(value, self.position))
        return max(reads, default=-1)

    def memref_of(self, value: SSAValue) -> SSAValue:
        """The memref of a value; a view is made when it is first needed."""
        return self._view(value, self.places[value])

    def _whole(self, buffer: Buffer, value: SSAValue) -> SSAValue:
        """The memref that the value is to be copied to: all of the buffer."""
        layout = Layout.contiguous(shape_of(tensor_type_of(value.type)))
        return self._view(value, Place(buffer, layout))

    def _view(self, value: SSAValue, place: Place) -> SSAValue:
        base, layout = place.buffer.base, place.layout
        if layout.is_contiguous:  # with the strides that the type implies
            layout = Layout.contiguous(layout.shape)
        tensor = tensor_type_of(value.type)
        type = memref_type(tensor.element_type, layout, space_of(tensor))
        if type == base.type and layout.shape == place.buffer.shape:
            return base
        if layout not in place.buffer.views:
            offset, shape, strides = (layout.offset,), layout.shape, layout.strides
            view = memref.ReinterpretCastOp(
                base,
                self._given(offset),
                self._given(shape),
                self._given(strides),
                static(offset),
                static(shape),
                static(strides),
                type,
            )
            self.emit(view)
            view.result.name_hint = value.name_hint
            place.buffer.views[layout] = view.result
        return place.buffer.views[layout]

    def emit(self, op: Operation) -> None:
        op.location = self._at.location
        self.new.add_op(op)

    def allocate(self, type: AnyTensor, name_hint: str | None) -> Buffer:
        shape = shape_of(type)
        alloc = memref.AllocOp(self._given(shape), (), contiguous(type))
        self.emit(alloc)
        alloc.memref.name_hint = name_hint
        buffer = Buffer(alloc.memref, shape, owned=True)
        self._owned[buffer] = None
        return buffer

    def _given(self, sizes: Sequence[int]) -> list[SSAValue]:
        """The values of symbolic sizes."""
        return [
            self.sizes.value(size, self._at)
            for size in sizes
            if isinstance(size, Symbolic)
        ]

    def copy(
        self, source: SSAValue, target: SSAValue, serves: Operation | None = None
    ) -> None:
        copy = memref.CopyOp(source, target)
        _set_stream(copy, serves or self._at)
        self.emit(copy)

    def _free_dead(self) -> None:
        for buffer in list(self._owned):
            if buffer.last <= self.position[self._at]:
                dealloc = memref.DeallocOp.get(buffer.base)
                _set_stream(dealloc, self._at)
                self.emit(dealloc)
                del self._owned[buffer]

    # Operations

    def _rewrite(self, op: Operation) -> None:
        match op:
            case ReadOp():
                self.put(op.result, self.variables[op.variable])
            case AssignOp():
                self._assign(op)
            case WhileOp():
                bufferize_while(self, op)
            case IfOp():
                bufferize_if(self, op)
            case ViewOp() if not op.outs:
                self._rewrite_view(op)
            case ConstantOp() if not op.outs:
                self._constant(op)
            case ConcatenateOp() if is_in_place(op):
                self._concatenate(op)
            case DynamicUpdateSliceOp() if self._is_updated(op):
                variable = self.variables[op.outs[0]]
                variable.values = [op.inputs[1]]
                self.put(op.result, variable)
            case TensorOp():
                self._compute(op)
            case _:
                raise LocatedError(
                    f"{name_of(op)} cannot be bufferized, expected operations of "
                    "tgraph; mlir-opt bufferizes others (--one-shot-bufferize)",
                    op,
                )

    def overwrite(self, variable: Buffer) -> None:
        """Readies a variable to be written: saves what of it is still to be read."""
        needed = [value for value in variable.values if self._is_needed(value)]
        variable.values = []
        if not needed:
            return
        remark(
            "the old contents of the variable are saved: they are read later", self._at
        )
        returned = next(
            (v for v in needed if v in self._destinations and source_of(v) is v), None
        )
        if returned is None:
            type = with_shape(tensor_type_of(variable.base.type), variable.shape)
            saved = self.allocate(type, needed[0].name_hint)
            target = saved.base
        else:
            saved = self._destinations[returned]
            self.put(returned, saved)
            target = self.memref_of(returned)
        self.copy(variable.base, target)
        for value in needed:
            self.put(value, saved, self.places[value].layout)

    def _is_needed(self, value: SSAValue) -> bool:
        """Whether a tensor in the variable that is written now is to be read yet."""
        now, op = self.position[self._at], self._at
        for use in value.uses:  # views that there are already answer for themselves
            at = self.position[use.operation]
            if at > now or (
                at == now
                and not (
                    isinstance(op, TensorOp)
                    and use.index in op.overwritable()
                    and self.places[value].layout.is_contiguous
                )
            ):
                return True
        return False

    def _assign(self, op: AssignOp) -> None:
        variable = self.variables[op.variable]
        place = self.places[op.value]
        if place.buffer is variable and place.layout.is_contiguous:
            return
        self.overwrite(variable)
        self.copy(self.memref_of(op.value), self._whole(variable, op.value))

    def _deliver(self, op: Operation) -> None:
        """Copies what the terminator passes on and is not in its place yet."""
        for value, buffer in zip(op.operands, self._results, strict=True):
            if self.places[value].buffer is not buffer:
                computed = source_of(value).owner
                serves = computed if isinstance(computed, Operation) else op
                self.copy(self.memref_of(value), self._whole(buffer, value), serves)

    # Regions

    def enter(self, region: Region, inputs: Sequence[SSAValue]) -> "BlockBufferization":
        """What is to rewrite a region whose last arguments are these values."""
        inside = BlockBufferization(region.block, self.constants, self.sizes)
        seen: dict[Buffer, Buffer] = {}
        first = len(region.block.args) - len(inputs)
        for argument, value in zip(region.block.args[first:], inputs, strict=True):
            place = self.places[value]
            if place.buffer not in seen:
                seen[place.buffer] = place.buffer.seen_inside()
            inside.put(argument, seen[place.buffer], place.layout)
        return inside

    def carried(self, op: WhileOp, index: int) -> Buffer:
        """The buffer that a loop's variable is, with what it starts from in it."""
        start, result = op.inputs[index], op.res[index]
        if isinstance(start.owner, ConstantOp) and start.owner.splat is not None:
            buffer = self.destination(result)
            self._emit_into(start.owner, (), [buffer.base])
            return buffer
        if result not in self._destinations and self._may_take_over(op, index, [index]):
            return self.places[start].buffer
        buffer, place = self.destination(result), self.places[start]
        if place.buffer is not buffer or not place.layout.is_contiguous:
            self.copy(self.memref_of(start), self._whole(buffer, start))
        return buffer

    def destination(self, result: SSAValue) -> Buffer:
        """Where a result is wanted, or a new buffer."""
        if result in self._destinations:
            return self._destinations[result]
        return self.allocate(tensor_type_of(result.type), result.name_hint)

    def _rewrite_view(self, op: ViewOp) -> None:
        source = op.inputs[0]
        place = self.places[source]
        layout = place.layout.viewed(op)
        if op.result in self._parts:
            self._fill(op, layout)
            return
        if layout is not None:
            self.put(op.result, place.buffer, layout)
            return
        # Only a reshape of a strided view comes here: it is stored in order first.
        if self._last_use(op.result) < 0:  # nobody looks where it lies
            self.put(op.result, place.buffer)
            return
        buffer = self.allocate(tensor_type_of(source.type), op.result.name_hint)
        self.copy(self.memref_of(source), buffer.base)
        self.put(op.result, buffer)

    def _constant(self, op: ConstantOp) -> None:
        type = tensor_type_of(op.result.type)
        splat = op.splat
        size = prod(shape_of(type))
        bytes = size * element_bytes(type.element_type)
        is_large = isinstance(bytes, Symbolic) or bytes > SMALL_CONSTANT
        if splat is not None and all(map(_is_start, op.result.uses)):
            return  # made where the loops start
        if splat is not None and (is_large or op.result in self._destinations):
            self._compute(op)
            return
        value = op.dense
        memref_of = contiguous(type)
        name = self.constants.name_of(value, memref_of)
        if name not in self._globals:
            get = memref.GetGlobalOp(name, memref_of)
            self.emit(get)
            get.memref.name_hint = op.result.name_hint
            self._globals[name] = Buffer(get.memref, shape_of(type), owned=False)
        self.put(op.result, self._globals[name])

    # Concatenations in place

    def _join(self, op: ConcatenateOp) -> Place:
        """Where a concatenation lies, from its first operand on."""
        if op.result not in self._joined:
            if op.result in self._parts:
                place = self._part(op.result)
            else:
                layout = Layout.contiguous(shape_of(tensor_type_of(op.result.type)))
                place = Place(self.destination(op.result), layout)
            place.buffer.last = max(place.buffer.last, self.position[op])
            self._joined[op.result] = place
        return self._joined[op.result]

    def _part(self, value: SSAValue) -> Place:
        """Where the operand of a concatenation is to lie."""
        op, index = self._parts[value]
        whole = self._join(op)
        return Place(whole.buffer, part_layout(whole.layout, (op, index)))

    def _fill(self, op: ViewOp, layout: Layout | None) -> None:
        """Copies a view, which has this layout if any, to where it is to lie."""
        source, part = op.inputs[0], self._part(op.result)
        place = self.places[source]
        if layout is not None:
            viewed = self._view(op.result, Place(place.buffer, layout))
        elif straight := part.layout.reshaped(place.layout.shape):
            self.copy(
                self.memref_of(source), self._view(source, Place(part.buffer, straight))
            )
            self.put(op.result, part.buffer, part.layout)
            return
        else:
            buffer = self.allocate(tensor_type_of(source.type), op.result.name_hint)
            self.copy(self.memref_of(source), buffer.base)
            viewed = self._whole(buffer, op.result)
        self.copy(viewed, self._view(op.result, part))
        self.put(op.result, part.buffer, part.layout)

    def _concatenate(self, op: ConcatenateOp) -> None:
        whole = self._join(op)
        for index, value in enumerate(op.inputs):
            target = Place(whole.buffer, part_layout(whole.layout, (op, index)))
            if self.places[value] != target:
                self.copy(self.memref_of(value), self._view(value, target))
        self.put(op.result, whole.buffer, whole.layout)

    # Parts of variables in place

    def _updated(self, value: SSAValue) -> Place | None:
        """The part of a variable that a value is to be computed into, if any."""
        if (op := self._updates.get(value)) is None:
            return None
        variable, layout = self.variables[op.outs[0]], updated_layout(op)
        is_there = self.places[op.inputs[0]].buffer is variable
        return Place(variable, layout) if is_there and layout else None

    def _is_updated(self, op: DynamicUpdateSliceOp) -> bool:
        """Whether the part has been computed in place."""
        value = op.inputs[1]
        if self._updates.get(value) is not op:
            return False
        return self.places[value].buffer is self.variables[op.outs[0]]

    def _compute(self, op: TensorOp) -> None:
        """An operation that writes destinations: variables, results or new buffers."""
        for variable in op.outs:
            self.overwrite(self.variables[variable])
        inputs = [self.memref_of(value) for value in op.inputs]
        outs: list[SSAValue] = []
        for index, result in enumerate(op.res):
            if result in self._parts:
                part = self._part(result)
                self.put(result, part.buffer, part.layout)
            elif place := self._updated(result):
                self.put(result, place.buffer, place.layout)
            else:
                self.put(result, self._destination(op, index))
            outs.append(self.memref_of(result))
        if isinstance(op, DeviceCopyOp):
            self.copy(inputs[0], outs[0])
        else:
            self._emit_into(op, inputs, outs)

    def _emit_into(
        self, op: TensorOp, inputs: Sequence[SSAValue], outs: Sequence[SSAValue]
    ) -> None:
        if isinstance(op, FusionOp):  # the types of memrefs, on tensors
            for argument, value in zip(op.body.block.args, inputs, strict=True):
                if not is_static(cast(AnyMemRef, value.type)):
                    type_ = tensor_type_of(value.type)
                    Rewriter.replace_value_with_new_type(argument, type_)
        sizes = {"operandSegmentSizes": segments(inputs, outs)}
        self.emit(
            type(op).create(
                operands=[*inputs, *outs],
                properties=op.properties | sizes,
                attributes=op.attributes,
                regions=[op.detach_region(region) for region in list(op.regions)],
            )
        )

    def _destination(self, op: TensorOp, index: int) -> Buffer:
        if op.outs:
            return self.variables[op.outs[index]]
        result = op.res[index]
        if index == 0 and result not in self._destinations:
            allowed = op.overwritable()
            element = tensor_type_of(result.type).element_type
            for number in allowed:
                value = op.inputs[number]
                if tensor_type_of(
                    value.type
                ).element_type == element and self._may_take_over(op, number, allowed):
                    return self.places[value].buffer
        return self.destination(result)

    def _may_take_over(self, op: TensorOp, index: int, allowed: Sequence[int]) -> bool:
        """Whether a result may take over the buffer of an operand.

        `allowed` are the operands that the operation may overwrite.
        """
        value = op.inputs[index]
        place = self.places[value]
        return (
            place.buffer.owned
            and place.buffer.last <= self.position[op]
            and place.layout.is_contiguous
            and prod(place.layout.shape) == prod(place.buffer.shape)
            and all(
                self.places[other].buffer is not place.buffer
                or (other is value and i in allowed)
                for i, other in enumerate(op.inputs)
                if other in self.places
            )
        )


def _is_start(use: Use) -> bool:
    """Whether a loop carries what it starts from here."""
    op = use.operation
    return isinstance(op, WhileOp) and use.index < len(op.res)


def _set_stream(op: Operation, serves: Operation) -> None:
    if stream := serves.attributes.get(STREAM):
        op.attributes[STREAM] = stream
