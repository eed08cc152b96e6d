"""Decides for each operation of a block where its results are, and what is copied.

* A result or assigned value is computed directly into its destination.
* An operation takes over the buffer of an operand that it may overwrite
  (`TensorOp.overwritable`) and that nothing reads afterwards.
* The result of another dialect's operation in destination style
  (analysis/destinations.py) takes over the buffer of its destination, or of an operand
  that the operation may overwrite, or gets a new buffer.
* Reshape, transpose, slice, broadcast and reverse are views. If no strides describe the
  result, their source is first copied to a contiguous buffer.
* A view that the terminator yields is copied to the result at once, and later readers
  use the copy: its source is often larger, and need not live until the end.
* A variable is read in place. If its contents are still needed when it is written, they
  are copied just before the write.
* Each value that a loop carries has one buffer, allocated outside of the loop: the
  buffer of the initial value, if nothing reads that later; the destination of the
  result; or a new one. The next iteration's value is written there like a variable's.
* The result of a branch takes over the buffer of an input that nothing reads later, if
  one region yields the input as that result, and the other has read the input for the
  last time before it computes the result.
* Constants that are small, or not a single number, are globals of the module; others
  are filled where they are needed.
* The operands of a concatenation in place lie in its result
  (analysis/concatenations.py), and the part that an update writes lies over the part
  that it replaces (analysis/updates.py).
* A product that is transposed and then stored or overwritten is computed in that order
  (analysis/orders.py).
The caller may give groups of operations that will become fusions. Each counts as one
operation (analysis/operations.py), and values inside of it are not stored.
"""

from collections import ChainMap
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from itertools import starmap
from math import prod
from operator import itemgetter

from xdsl.dialects.builtin import i1
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from ...dialects.sizes.symbolic import Symbolic
from ...dialects.tgraph.base import (
    DONATED,
    PARAMETER,
    AnyTensor,
    TensorOp,
    VariableType,
    element_bytes,
    shape_of,
    tensor_type_of,
    with_element,
    with_shape,
)
from ...dialects.tgraph.fusing import without_units
from ...dialects.tgraph.indexing import DynamicUpdateSliceOp
from ...dialects.tgraph.shaping import (
    ConcatenateOp,
    ConstantOp,
    ReshapeOp,
    TransposeOp,
    ViewOp,
)
from ...dialects.tgraph.signature import attributes_of
from ...dialects.tgraph.structure import (
    AssignOp,
    IfOp,
    ReadOp,
    WhileOp,
    yielded,
)
from ..caching import cached
from ..concatenations import Part, computed, is_in_place, part_layout, parts
from ..destinations import Destination, destinations_of, is_empty
from ..functions import is_tensor
from ..layout import Layout
from ..operations import Fused, Operations
from ..orders import source_order
from ..updates import Update, is_read_before, updates
from ..versions import Version, last_versions, looped_into, source_of
from .buffers import (
    SMALL_CONSTANT,
    Action,
    Allocate,
    At,
    Branch,
    Copy,
    Free,
    Global,
    Home,
    Loop,
    MakeView,
    Place,
    Run,
    Storage,
    TensorBuffer,
    whole,
)


def storage_of(block: Block, groups: Sequence[Fused] = ()) -> Storage:
    """The storage of a function's block, or of a region's block on its own.

    Arguments and the terminator's operands lie in memory of the block's caller. Each
    group counts as one operation at the position of its last one.
    """
    return _stored(block, groups) if groups else cached(block, _stored, block)


def _stored(block: Block, groups: Sequence[Fused] = ()) -> Storage:
    storage = _Block(block, groups)
    for argument in filter(_is_tensor, block.args):
        type, name = tensor_type_of(argument.type), argument.name_hint
        if isinstance(argument.type, VariableType):
            storage.variables[argument] = TensorBuffer(type, Home.VARIABLE, name)
        else:
            storage.put(argument, TensorBuffer(type, _home(argument), name))
    assert block.last_op is not None
    values = filter(_is_tensor, block.last_op.operands)
    return storage.run(
        [TensorBuffer(tensor_type_of(v.type), Home.RESULT) for v in values]
    )


class _Block(Storage):
    """Decides operation by operation.

    Its creator sets the places of arguments (`put`, `variables`), and passes a buffer
    for each operand of the terminator to `run`.
    """

    def __init__(self, block: Block, groups: Sequence[Fused] = ()):
        super().__init__(block)
        self._operations = Operations(block, groups)
        self._ops = self._operations.ops
        self._position = self._operations.position
        self._actions: list[Action] = []  # of the current operation
        self._at = 0  # the position of the current operation
        self._copied = _copied_views(self._operations)
        self._last_uses = _last_uses(self._operations, self._copied)
        self._destinations: dict[SSAValue, TensorBuffer] = {}
        self._parts: dict[SSAValue, Part] = {}
        self._joined: dict[SSAValue, Place] = {}  # results of concatenations in place
        self._updates: dict[SSAValue, Update] = {}
        self._ordered: dict[SSAValue, tuple[SSAValue, TensorBuffer | None, Layout]] = {}
        """For values in the order of another: that value, the buffer (None for a new
        one), and the layout."""
        self._allocated = 0
        self._ends: dict[int, list[tuple[int, TensorBuffer]]] = {}
        """Own buffers with numbers, by the position after which they may be freed."""
        self._constants: dict[tuple[Attribute, AnyTensor], TensorBuffer] = {}
        self._viewed: MutableMapping[Place, None] = {}
        self._reads: dict[Block, tuple[Operations, Mapping[SSAValue, int]]] = {}
        """The operations and last uses in regions of branches."""

    def run(self, results: Sequence[TensorBuffer] = ()) -> Storage:
        """Processes the block; the terminator's operands are stored in `results`."""
        self.results = results
        self._find_destinations()
        for at, op in enumerate(self._ops):
            self._at, self._actions = at, []
            if op is self.block.last_op:
                self._deliver(op)
            elif self._operations.is_left[at]:
                self._store(op)
            self._free_dead()
            self.steps.append((op, self._actions))
        return self

    def _find_destinations(self) -> None:
        """Finds values that are computed directly into a result, a concatenation, or
        the operand of an update, and loops that compute into a variable."""
        delivered = self._operations.inputs[-1]
        for value, buffer in zip(delivered, self.results, strict=True):
            self._aim(value, buffer)
        for variable, version in last_versions(self.block).items():
            while version.previous is not None:
                value = looped_into(version, self._position, self._operations.uses)
                if value is not None and version.writer is not None:
                    self._aim(value, self.variables[variable])
                    self.early[value] = version.writer
                version = version.previous
        for value, part in parts(self.block).items():
            if value not in self._destinations:
                self._parts[value] = part
        for value, update in updates(self._operations).items():
            if value not in self._destinations and value not in self._parts:
                self._updates[value] = update
        self._find_orders()

    def _find_orders(self) -> None:
        """Finds values that are computed in the order of a result, of a reshape that is
        no view of them, or of an operation that may take over their memory."""
        ends: list[tuple[SSAValue, TensorBuffer | None]] = []
        ends += zip(self._operations.inputs[-1], self.results, strict=True)
        for at, op in enumerate(self._ops):
            if not isinstance(op, TensorOp) or not self._operations.is_left[at]:
                continue
            if self._operations.is_view(at):
                read = [0] * isinstance(op, ReshapeOp)
            else:
                read = self._operations.overwritable(op)
            inputs = [self._operations.inputs[at][number] for number in read]
            ends += [(v, None) for v in inputs if isinstance(v.owner, TransposeOp)]
        for end, buffer in ends:
            value, layout = source_order(end, self._operations) or (None, None)
            if value is None or layout is None or self._is_wanted(value):
                continue
            if buffer or not layout.is_contiguous:
                self._ordered[value] = end, buffer, layout

    def _aim(self, value: SSAValue, buffer: TensorBuffer) -> None:
        """Has `value` computed into `buffer`, and also the initial value of a loop or
        an update that computes it."""
        while isinstance(value.owner, ReshapeOp):
            self._destinations.setdefault(value, buffer)  # used unless it is a view
            value = value.owner.inputs[0]
        while _is_computed(value):
            self._destinations.setdefault(value, buffer)
            start = None if buffer.is_variable else _start_of(value)
            if start is None or isinstance(start.owner, ViewOp | ReadOp):
                return
            if not self._is_replaced(start, value):
                return
            value = start

    def _is_replaced(self, start: SSAValue, value: SSAValue) -> bool:
        """Whether the operation of `value` may overwrite `start`: no other operation
        reads `start`, or, for an update, reads it afterwards. Operands of
        concatenations in place, which lie in `start`, must have been read before as
        well."""
        op = value.owner
        assert isinstance(op, Operation)
        is_update = isinstance(op, DynamicUpdateSliceOp)
        if not is_update and not start.has_one_use():
            return False
        values = [start]
        for joined in values:  # grows during the loop
            if isinstance(join := joined.owner, ConcatenateOp) and is_in_place(join):
                for index in range(len(join.inputs)):
                    values += computed(join, index, self.block)
        contents = Version(values=values if is_update else values[1:])
        at, uses = self._position[op], self._operations.uses
        return is_read_before(op, contents, at, self._position, uses)

    # Values and buffers

    def put(
        self, value: SSAValue, buffer: TensorBuffer, layout: Layout | None = None
    ) -> None:
        """Sets the place of a value: the whole buffer, unless a layout is given."""
        self.places[value] = (
            whole(buffer, value) if layout is None else Place(buffer, layout)
        )
        buffer.values.append(value)
        if not buffer.is_variable:
            buffer.last = max(buffer.last, self._last_uses.get(value, -1))

    def _at_value(self, value: SSAValue) -> At:
        return At(self.places[value], value)

    def _allocate(self, type: AnyTensor, name: str | None) -> TensorBuffer:
        """Allocates a new buffer at the current operation."""
        buffer = TensorBuffer(type, Home.OWN, name)
        self._allocated += 1
        self._ends.setdefault(self._at, []).append((self._allocated, buffer))
        self._actions.append(Allocate(buffer))
        return buffer

    def _name(self, *ats: At) -> None:
        """Makes views of places that neither this nor an outer block has made yet."""
        for at in ats:
            if not at.is_whole and (place := at.memref) not in self._viewed:
                self._viewed[place] = None
                self._actions.append(MakeView(at))

    def _copy(
        self,
        source: At,
        target: At,
        serves: Operation | None = None,
        *,
        saves: bool = False,
    ) -> None:
        self._name(source, target)
        serves = serves or self._ops[self._at]
        self._actions.append(Copy(source, target, serves, saves))

    def _free_dead(self) -> None:
        """Frees buffers that are dead now, in the order of their allocation."""
        for number, buffer in sorted(self._ends.pop(self._at, ()), key=itemgetter(0)):
            if buffer.last <= self._at:
                self._actions.append(Free(buffer))
            else:
                self._ends.setdefault(buffer.last, []).append((number, buffer))

    # Operations

    def _store(self, op: Operation) -> None:
        outs = self._operations.outs[self._at]
        match op:
            case ReadOp():
                self.put(op.result, self.variables[op.variable])
            case AssignOp():
                self._assign(op)
            case WhileOp():
                self._loop(op)
            case IfOp():
                self._branch(op)
            case ViewOp() if not outs:
                self._view(op)
            case ConstantOp() if not outs:
                self._constant(op)
            case ConcatenateOp() if is_in_place(op):
                self._concatenate(op)
            case DynamicUpdateSliceOp() if self._is_updated(op):
                self.put(op.result, self.places[op.inputs[1]].buffer)
            case TensorOp():
                self._compute(op)
            case _ if is_empty(op) and self._last_uses.get(op.results[0], -1) >= 0:
                self.put(op.results[0], self._destination(op.results[0]))
            case _ if destinations := destinations_of(op):
                self._compute_in(op, destinations)
            case _:
                for result in filter(_is_tensor, op.results):
                    type = tensor_type_of(result.type)
                    self.put(result, TensorBuffer(type, Home.UNKNOWN))

    def _compute(self, op: TensorOp) -> None:
        """Stores an operation that writes variables, results or new buffers."""
        variables = self._operations.outs[self._at]
        for variable in variables:
            self._overwrite(self.variables[variable])
        inputs = [self._at_value(value) for value in self._inputs]
        self._name(*inputs)
        overwritable = () if variables or not op.results else self._overwritable(op)
        for index, result in enumerate(op.results):
            if variables:
                self.put(result, self.variables[variables[index]])
            elif place := self._placed(result):
                self.put(result, *place)
            else:
                taken = None if index else self._taken_over(overwritable)
                self.put(result, taken or self._destination(result))
            self._name(self._at_value(result))
        outs = [self._at_value(result) for result in op.results]
        around = [at.place.buffer.root for at in (*inputs, *outs[:1])]
        is_asked = any(buffer.is_reusable for buffer in around)
        elementwise = self._operations.overwritable(op) if is_asked else ()
        self._actions.append(Run(op, inputs, outs, overwritable, elementwise))

    def _compute_in(self, op: Operation, destinations: Sequence[Destination]) -> None:
        """Stores an operation of another dialect. If it reads the contents of a
        destination, and the result is elsewhere, they are copied there."""
        inputs = [self._at_value(value) for value in self._inputs]
        self._name(*inputs)
        taken_over: list[Sequence[int]] = []
        for result, (_, start, allowed) in zip(op.results, destinations, strict=True):
            is_free = not self._is_wanted(result)
            overwritable = self._replaceable(result, allowed) if is_free else ()
            taken_over.append(overwritable)
            buffer = self._taken_over(overwritable) or self._destination(result)
            self.put(result, buffer)
            if start is None:
                continue
            held, place = self.places[start], self.places[result]
            if held.buffer is not buffer or not held.layout.is_contiguous:
                self._copy(At(held, start), At(place, result))
            inputs[allowed[0]] = At(place, start)
        outs = [self._at_value(result) for result in op.results]
        self._name(*outs)
        self._actions.append(Run(op, inputs, outs, taken_over[0]))

    @property
    def _inputs(self) -> Sequence[SSAValue]:
        """The operands that the current operation reads."""
        return self._operations.inputs[self._at]

    def _taken_over(self, overwritable: Sequence[int]) -> TensorBuffer | None:
        """The first of these inputs' buffers that is dead after the operation."""
        for number in overwritable:
            buffer = self.places[self._inputs[number]].buffer
            if buffer.last <= self._at:
                return buffer
        return None

    def _overwritable(self, op: TensorOp) -> Sequence[int]:
        """The inputs whose buffer the first result may take over if they are dead."""
        first = op.results[0]
        if self._is_wanted(first) or all(
            self.places[v].buffer.home is not Home.OWN for v in self._inputs
        ):
            return ()
        return self._replaceable(first, self._operations.overwritable(op))

    def _is_wanted(self, result: SSAValue) -> bool:
        """Whether `result` has a destination, is part of a concatenation, or has an
        order of its own."""
        places = self._destinations, self._parts, self._ordered
        return any(result in found for found in places)

    def _placed(self, result: SSAValue) -> Place | None:
        """The place where `result` is not a whole, row-major buffer; None if it is."""
        return self._in_order(result) or self._part(result) or self._updated(result)

    def _in_order(self, result: SSAValue) -> Place | None:
        """The place of a value in the order of another; None if it has its own."""
        if result not in self._ordered:
            return None
        end, buffer, layout = self._ordered[result]
        if buffer is None:
            buffer = self._allocate(tensor_type_of(end.type), result.name_hint)
        return Place(buffer, layout)

    def _replaceable(self, result: SSAValue, allowed: Sequence[int]) -> Sequence[int]:
        """The inputs in `allowed` whose buffer `result` may take over if dead."""
        inputs = self._inputs
        element = tensor_type_of(result.type).element_type
        return [
            number
            for number in allowed
            if tensor_type_of(inputs[number].type).element_type == element
            and self._is_sole_whole_read(inputs, number, allowed)
        ]

    def _destination(self, result: SSAValue) -> TensorBuffer:
        """The destination of a result, or a new buffer."""
        if result in self._destinations:
            return self._destinations[result]
        return self._allocate(tensor_type_of(result.type), result.name_hint)

    def _is_sole_whole_read(
        self, inputs: Sequence[SSAValue], index: int, allowed: Sequence[int]
    ) -> bool:
        """Whether an input is a whole, contiguous buffer that the block owns, and no
        other inputs read it but those that may be overwritten (`allowed`)."""
        value = inputs[index]
        buffer, layout = self.places[value]
        return (
            buffer.home is Home.OWN
            and (
                layout is buffer.layout
                or (layout.is_contiguous and prod(layout.shape) == prod(buffer.shape))
            )
            and all(
                self.places[other].buffer is not buffer
                or (other is value and i in allowed)
                for i, other in enumerate(inputs)
                if other in self.places
            )
        )

    def _deliver(self, op: Operation) -> None:
        """Copies the terminator's operands that are not in their destination yet."""
        for value, buffer in zip(self._inputs, self.results, strict=True):
            if self.places[value].buffer.root is not buffer.root:
                computed = source_of(value).owner
                serves = computed if isinstance(computed, Operation) else op
                target = At(whole(buffer, value), value)
                self._copy(self._at_value(value), target, serves)

    # Variables

    def _assign(self, op: AssignOp) -> None:
        variable = self.variables[op.variable]
        place = self.places[op.value]
        if place.buffer is variable and place.layout.is_contiguous:
            return
        self._overwrite(variable)
        target = At(whole(variable, op.value), op.value)
        self._copy(self._at_value(op.value), target)

    def _overwrite(self, variable: TensorBuffer) -> None:
        """Prepares a write to a variable: saves contents that are still needed."""
        needed = [value for value in variable.values if self._is_needed(value)]
        variable.values = []
        if not needed:
            return
        returned = next(
            (v for v in needed if v in self._destinations and source_of(v) is v), None
        )
        if returned is None:
            saved = self._allocate(variable.type, needed[0].name_hint)
            target = At(whole(saved))
        else:
            saved = self._destinations[returned]
            self.put(returned, saved)
            target = self._at_value(returned)
        self._copy(At(whole(variable)), target, saves=True)
        for value in needed:
            self.put(value, saved, self.places[value].layout)

    def _is_needed(self, value: SSAValue) -> bool:
        """Whether a value in the variable that is about to be written is read later."""
        now, op = self._at, self._ops[self._at]
        if not self.places[value].buffer.is_variable:  # part of an update elsewhere
            return False
        # Existing views have their own entries in the variable's values.
        for reader, index in self._operations.uses(value):
            at = self._position[reader]
            if at > now or (
                at == now
                and not (
                    isinstance(op, TensorOp)
                    and index in self._operations.overwritable(op)
                    and self.places[value].layout.is_contiguous
                )
            ):
                return True
        return False

    # Views and constants

    def _view(self, op: ViewOp) -> None:
        (source,) = self._inputs
        buffer, layout = self.places[source]
        layout = layout.viewed(op)
        if part := self._part(op.result):
            self._fill(op, part, layout)
            return
        is_there = buffer is self._destinations.get(op.result)
        if layout is not None and op in self._copied and not is_there:
            target = At(whole(self._destination(op.result), op.result), op.result)
            self._copy(At(Place(buffer, layout), op.result), target)
            self.put(op.result, target.place.buffer)
            return
        if layout is not None:
            self.put(op.result, buffer, layout)
            return
        # A reshape of a strided view needs a contiguous copy first.
        if self._last_uses.get(op.result, -1) < 0:  # unused, so any place will do
            self.put(op.result, buffer)
            return
        stored = self._destination(op.result)
        self._copy(self._at_value(source), At(whole(stored, source), source))
        self.put(op.result, stored)

    def _constant(self, op: ConstantOp) -> None:
        type = tensor_type_of(op.result.type)
        is_number = op.splat is not None
        if is_number and all(starmap(_is_start, self._operations.uses(op.result))):
            return  # the loops that start from it fill it in
        bytes = prod(shape_of(type)) * element_bytes(type.element_type)
        is_large = isinstance(bytes, Symbolic) or bytes > SMALL_CONSTANT
        if is_number and (is_large or op.result in self._destinations):
            self._compute(op)
            return
        key = op.dense, type
        if key not in self._constants:
            self._constants[key] = TensorBuffer(
                type, Home.CONSTANT, op.result.name_hint
            )
            self._actions.append(Global(op, self._constants[key]))
        self.put(op.result, self._constants[key])

    # Concatenations in place

    def _join(self, op: ConcatenateOp) -> Place:
        """The place of a concatenation, allocated when its first operand needs it."""
        if op.result not in self._joined:
            place = self._in_order(op.result) or self._part(op.result)
            if place is None:
                place = whole(self._destination(op.result), op.result)
            place.buffer.last = max(place.buffer.last, self._position[op])
            self._joined[op.result] = place
        return self._joined[op.result]

    def _part(self, value: SSAValue) -> Place | None:
        """The place of `value` in a concatenation, if it is an operand or reshaped into
        one. None otherwise, or if no strides describe its shape there."""
        if value not in self._parts:
            return None
        op, index = part = self._parts[value]
        joined = self._join(op)
        layout = part_layout(joined.layout, part)
        if value is not op.inputs[index]:
            layout = layout.reshaped(shape_of(tensor_type_of(value.type)))
        return layout and Place(joined.buffer, layout)

    def _fill(self, op: ViewOp, part: Place, layout: Layout | None) -> None:
        """Copies the view `op` to its place in a concatenation, unless its source has
        been computed there. `layout` is that of the view, if it is one."""
        source = op.inputs[0]
        place = self.places[source]
        is_there = self._parts.get(source) == self._parts[op.result]
        if is_there and place == self._part(source):
            self.put(op.result, *part)
            return
        if layout is not None:
            viewed = At(Place(place.buffer, layout), op.result)
        elif straight := part.layout.reshaped(place.layout.shape):
            target = At(Place(part.buffer, straight), source)
            self._copy(self._at_value(source), target)
            self.put(op.result, *part)
            return
        else:
            stored = self._allocate(tensor_type_of(source.type), op.result.name_hint)
            self._copy(self._at_value(source), At(whole(stored)))
            viewed = At(whole(stored, op.result), op.result)
        self._copy(viewed, At(part, op.result))
        self.put(op.result, *part)

    def _concatenate(self, op: ConcatenateOp) -> None:
        joined = self._join(op)
        for index, value in enumerate(op.inputs):
            layout = part_layout(joined.layout, (op, index))
            target = Place(joined.buffer, layout)
            if self.places[value] != target:
                self._copy(self._at_value(value), At(target, value))
        self.put(op.result, *joined)

    # Updates in place

    def _updated(self, value: SSAValue) -> Place | None:
        """The place where `value` is computed over the part that an update replaces
        with it: in a variable, a result, or a buffer that is dead otherwise. None if
        that is not possible."""
        if value not in self._updates:
            return None
        op, layout = self._updates[value]
        start = op.inputs[0]
        held, end = self.places[start], self._position[op]
        wanted = self.variables[op.outs[0]] if op.outs else None
        target = wanted or self._destinations.get(op.result)
        buffer = target or held.buffer
        if not wanted and self._last_uses[value] > end:  # a later update may overwrite
            return None
        if target and held.buffer is not target:
            if target.home is not Home.RESULT:
                return None
            self._copy(self._at_value(start), At(whole(target, start), start))
            if held.buffer.is_variable:  # another operation may write it before `op`
                self.put(start, target)
        elif not self._may_write(Place(buffer, layout), start):
            return None
        elif not target:
            is_own = buffer.home is Home.OWN
            if not is_own or buffer.last > end or not held.is_whole:
                return None
        self.early[value] = op
        return Place(buffer, layout)

    def _may_write(self, place: Place, start: SSAValue) -> bool:
        """Whether the current operation may write `place`, a part of `start`, the
        operand of an update. The operation must read either exactly these elements in
        the same order, or none of them, and nothing may read them later."""
        allowed = self._operations.overwritable(self._ops[self._at])
        for number, value in enumerate(self._inputs):
            read = self.places[value]
            if read.buffer is place.buffer and not read.layout.is_apart(place.layout):
                if number not in allowed or read.layout != place.layout:
                    return False
        return all(
            self._last_uses.get(value, -1) <= self._at
            or source_of(value) is start
            or self.places[value].layout.is_apart(place.layout)
            for value in place.buffer.values
        )

    def _is_updated(self, op: DynamicUpdateSliceOp) -> bool:
        """Whether the part that an update writes has been computed in place."""
        return self.early.get(without_units(op.inputs[1])) is op

    # Loops and branches

    def _loop(self, op: WhileOp) -> None:
        carried = [self._carried(op, index) for index in range(len(op.res))]
        rest = op.inputs[len(carried) :]
        scalar = with_shape(tensor_type_of(op.inputs[0].type), ())
        flag = self._allocate(with_element(scalar, i1), "continues")
        flag.last = self._at
        inside: list[Storage] = []
        for region, results in ((op.condition, [flag]), (op.body, [])):
            storage = self._enter(region, rest)
            for argument, buffer in zip(region.block.args, carried, strict=False):
                storage.variables[argument] = buffer.seen_inside(Home.VARIABLE)
            storage.run([buffer.seen_inside() for buffer in results])
            inside.append(storage)
        self._actions.append(Loop(op, flag, carried, *inside))
        for result, buffer in zip(op.res, carried, strict=True):
            self.put(result, buffer)

    def _carried(self, op: WhileOp, index: int) -> TensorBuffer:
        """The buffer of a value that a loop carries, with the initial value in it."""
        start, result = op.inputs[index], op.res[index]
        if isinstance(start.owner, ConstantOp) and start.owner.splat is not None:
            buffer = self._destination(result)
            self._actions.append(Run(start.owner, (), [At(whole(buffer))]))
            return buffer
        place = self.places[start]
        if (
            result not in self._destinations
            and place.buffer.last <= self._at
            and self._is_sole_whole_read(op.inputs, index, [index])
        ):
            return place.buffer
        buffer = self._destination(result)
        if place.buffer is not buffer or not place.layout.is_contiguous:
            self._copy(self._at_value(start), At(whole(buffer, start), start))
        return buffer

    def _branch(self, op: IfOp) -> None:
        if op.outs:
            buffers = [self.variables[variable] for variable in op.outs]
            for buffer in buffers:
                self._overwrite(buffer)
        else:
            buffers = [
                self._forwarded(op, index) or self._destination(result)
                for index, result in enumerate(op.res)
            ]
        predicate, *rest = op.inputs
        self._name(self._at_value(predicate))
        inside: list[Storage] = []
        for region in op.regions:
            storage = self._enter(region, rest)
            storage.run([buffer.seen_inside() for buffer in buffers])
            inside.append(storage)
        self._actions.append(Branch(op, self._at_value(predicate), inside))
        for result, buffer in zip(op.res, buffers, strict=True):
            self.put(result, buffer)

    def _forwarded(self, op: IfOp, index: int) -> TensorBuffer | None:
        """The buffer of a dead input that a region yields as result `index` and as no
        other. The other region does the same, or reads the input only before it
        computes that result. None if there is no such input."""
        if op.res[index] in self._destinations:
            return None
        results = [list(yielded(region)) for region in op.regions]
        for number, value in enumerate(op.inputs[1:], 1):
            names = [region.block.args[number - 1] for region in op.regions]
            passed = [
                [at for at, result in enumerate(inside) if result is name]
                for inside, name in zip(results, names, strict=True)
            ]
            if (
                [index] in passed
                and self.places[value].buffer.last <= self._at
                and self._is_sole_whole_read(op.inputs, number, [number])
                and all(
                    at == [index]
                    or (not at and self._is_read_before(name, inside[index]))
                    for at, name, inside in zip(passed, names, results, strict=True)
                )
            ):
                return self.places[value].buffer
        return None

    def _is_read_before(self, argument: SSAValue, result: SSAValue) -> bool:
        """Whether a region has read `argument` for the last time when it computes
        `result`, which it yields, in the argument's place."""
        block = argument.owner
        assert isinstance(block, Block)
        if block not in self._reads:
            operations = Operations(block)
            self._reads[block] = operations, _last_uses(operations)
        operations, last = self._reads[block]
        while isinstance(result.owner, ReshapeOp):
            result = result.owner.inputs[0]
        if argument not in last or isinstance(result.owner, Block):
            return True  # the terminator copies it
        op = result.owner
        at = operations.position[op]
        if last[argument] != at:
            return last[argument] < at and _is_written_at_once(op, result)
        allowed = operations.overwritable(op)
        return _is_written_at_once(op, result) and all(
            index in allowed if user is op else last.get(user.results[0], -1) < at
            for user, index in operations.uses(argument)
            if user is op or operations.is_view(operations.position[user])
        )

    def _enter(self, region: Region, inputs: Sequence[SSAValue]) -> "_Block":
        """Storage for a region whose last arguments are the values in `inputs`."""
        inside = _Block(region.block)
        inside._viewed = ChainMap({}, self._viewed)  # new views are local to it
        seen: dict[TensorBuffer, TensorBuffer] = {}
        first = len(region.block.args) - len(inputs)
        for argument, value in zip(region.block.args[first:], inputs, strict=True):
            buffer, layout = self.places[value]
            if buffer not in seen:
                seen[buffer] = buffer.seen_inside()
            inside.put(argument, seen[buffer], layout)
        return inside


def _is_tensor(value: SSAValue) -> bool:
    """Whether `value` is a tensor; scalars of other dialects are not stored."""
    return is_tensor(value.type)


def _is_computed(value: SSAValue) -> bool:
    """Whether the operation of a value computes it into a destination."""
    op = value.owner
    if isinstance(op, TensorOp | ReadOp):
        return True
    return isinstance(op, Operation) and bool(destinations_of(op))


def _start_of(value: SSAValue) -> SSAValue | None:
    """The operand from which a result's memory must be initialized; None if none."""
    op = value.owner
    assert isinstance(op, Operation)
    number = op.results.index(value)
    if isinstance(op, TensorOp):
        starts = isinstance(op, WhileOp | DynamicUpdateSliceOp) and not op.outs
        return op.inputs[number] if starts else None
    found = destinations_of(op)
    return found[number].start if found else None


def _is_written_at_once(op: Operation, result: SSAValue) -> bool:
    """Whether nothing of a result is written before its operation runs."""
    if isinstance(op, ViewOp | ConcatenateOp) or not _is_computed(result):
        return False
    return _start_of(result) is None


def _copied_views(operations: Operations) -> Collection[Operation]:
    """Views of computed values that the terminator yields, possibly reshaped, unless it
    yields the source, too."""
    ends = list(operations.inputs[-1])
    for at, value in enumerate(ends):
        while isinstance(value.owner, ReshapeOp):
            value = value.owner.inputs[0]
        ends[at] = value
    return {
        value.owner
        for value in ends
        if isinstance(value.owner, ViewOp)
        and (source := source_of(value)) not in ends
        and _is_computed(source)
        and not isinstance(source.owner, ConstantOp | ReadOp)
    }


def _last_uses(
    operations: Operations, copied: Collection[Operation] = ()
) -> Mapping[SSAValue, int]:
    """The last position that reads each value, or a view of it that is not copied."""
    last: dict[SSAValue, int] = {}
    for at in range(len(operations.ops) - 1, -1, -1):
        end = at
        if operations.is_view(at) and operations.ops[at] not in copied:
            end = last.get(operations.ops[at].results[0], -1)
        for value in operations.inputs[at]:
            last[value] = max(end, last.get(value, -1))
    return last


def _home(argument: BlockArgument) -> Home:
    """The owner of the memory of a function's tensor argument."""
    func = argument.block.parent_op()
    attributes = attributes_of(func, argument.index) if isinstance(func, FuncOp) else ()
    if PARAMETER in attributes:
        return Home.PARAMETER
    return Home.DONATED if DONATED in attributes else Home.ARGUMENT


def _is_start(op: Operation, index: int) -> bool:
    """Whether the operand is the initial value of a carried one of a loop."""
    return isinstance(op, WhileOp) and index < len(op.res)
