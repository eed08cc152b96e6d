"""Bytes that live at each operation of a function, before it is bufferized.

An estimate by the rules of tgraph-bufferize: views are aliases; results and assigned
values lie in the caller's memory where they can; an operand that dies may be
overwritten. A group is computed where its root is, and reads numbers and broadcasts
without storing them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from ....analysis.storage import SMALL_CONSTANT
from ....dialects.tgraph.base import (
    TensorOp,
    device_of,
    shape_of,
    tensor_type_of,
    typical_bytes,
)
from ....dialects.tgraph.elementwise import ElementwiseOp
from ....dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, ReshapeOp, ViewOp
from ....dialects.tgraph.structure import AssignOp, ReadOp
from .groups import Function, Grouping, has_destination, is_repeatable

ALIGNMENT = 64
"""Every buffer takes a multiple of it, in bytes."""


@dataclass(eq=False, slots=True)
class Storage:
    """Memory of a value and its views, from one position to another; size in bytes."""

    size: int
    device: str | None
    first: int
    last: int


class Liveness:
    """Where a function's values lie if it is grouped so, or not at all."""

    def __init__(self, function: Function, grouping: Grouping | None = None):
        self.function = function
        self.grouping = grouping
        self.last_read: dict[SSAValue, int] = {}
        """By the value that others are views of: the last position where it is read."""
        self.storages: dict[SSAValue, Storage] = {}
        """Of the values that take memory of their own."""
        self._origins: dict[SSAValue, SSAValue] = {}
        self._places: list[Storage] = []
        for index, op in enumerate(function.ops):
            step = self._step(index)
            for value in self._reads(index, op):
                origin = self.origin(value)
                self.last_read[origin] = max(step, self.last_read.get(origin, -1))
        self._destinations = {*self._returned(), *self._assigned()}
        for index, op in enumerate(function.ops):
            self._place(index, op)

    def origin(self, value: SSAValue) -> SSAValue:
        """The value whose memory this one is a view of."""
        origin = self._origins.get(value)
        if origin is None:
            origin = value
            while isinstance(owner := origin.owner, ViewOp) and not has_destination(
                owner
            ):
                origin = owner.operands[0]
                origin = self._origins.get(origin, origin)
            self._origins[value] = origin
        return origin

    @cached_property
    def profile(self) -> Mapping[str | None, Sequence[int]]:
        """For each device the live bytes at each position."""
        changes: dict[str | None, list[int]] = {}
        for storage in self._places:
            empty = [0] * (len(self.function.ops) + 1)
            change = changes.setdefault(storage.device, empty)
            change[storage.first] += storage.size
            change[storage.last + 1] -= storage.size
        return {device: list(accumulate(c)) for device, c in changes.items()}

    def _step(self, index: int) -> int:
        """Where an operation is computed: at its group's root."""
        if self.grouping is None or self.grouping.roots[index] < 0:
            return index
        return self.grouping.roots[index]

    def _members(self, root: int) -> Sequence[int]:
        """The operations that are computed at a position."""
        if self.grouping is None:
            return (root,)
        return self.grouping.members.get(root, (root,))

    def _reads(self, index: int, op: Operation) -> Sequence[SSAValue]:
        """What an operation reads from memory; a view, only where it is read itself."""
        if isinstance(op, ViewOp) and not has_destination(op):
            return ()
        repeats = isinstance(op, ElementwiseOp) or (
            len(self._members(self._step(index))) > 1
        )
        if self.grouping is None or not repeats:
            return op.operands
        return [
            value
            for value in op.operands
            if isinstance(value.owner, BroadcastInDimOp)
            or not (isinstance(value.owner, Operation) and is_repeatable(value.owner))
        ]

    # What lies in the caller's memory

    def _returned(self) -> Iterator[SSAValue]:
        last = self.function.ops[-1]
        for value in last.operands if isinstance(last, ReturnOp) else ():
            while isinstance(value.owner, ReshapeOp):
                value = value.owner.operands[0]
            yield value

    def _assigned(self) -> Iterator[SSAValue]:
        """Values that can be computed straight into the variable."""
        position = self.function.position
        contents: dict[SSAValue, list[SSAValue]] = {}  # of each variable so far
        for op in self.function.ops:
            if isinstance(op, ReadOp):
                contents.setdefault(op.variable, []).append(op.result)
            elif isinstance(op, AssignOp):
                producer = op.value.owner
                if isinstance(producer, Operation) and producer in position:
                    written = self._step(position[producer])
                    if all(
                        self._can_replace(value, written)
                        for value in contents.get(op.variable, ())
                    ):
                        yield op.value
                contents.setdefault(op.variable, []).append(op.value)

    def _can_replace(self, old: SSAValue, written: int) -> bool:
        last = self.last_read.get(old, -1)
        return last < written or (last == written and old in self._inputs(written))

    # What does not

    def _place(self, index: int, op: Operation) -> None:
        is_view = isinstance(op, ViewOp) and not has_destination(op)
        if is_view or isinstance(op, AssignOp) or self._step(index) != index:
            return
        if isinstance(op, ReadOp):
            self._place_contents(index, op)
            return
        for number, value in enumerate(op.results):
            last = self.last_read.get(value, -1)
            if value in self._destinations or has_destination(op):
                continue
            type = tensor_type_of(value.type)
            bytes = typical_bytes(type)
            if is_repeatable(op) and last < 0:
                continue
            if isinstance(op, ConstantOp) and (
                bytes <= SMALL_CONSTANT or op.splat is None
            ):
                continue
            taken = None if number else self._overwritten(index, value, bytes)
            if taken is not None:
                taken.last = max(taken.last, last)
                self.storages[value] = taken
            else:
                self._add(value, bytes, index, max(index, last))

    def _place_contents(self, index: int, op: ReadOp) -> None:
        """Contents that are read after the next assign are copied."""
        last = self.last_read.get(op.result, -1)
        for use in op.variable.uses:
            at = self.function.position[use.operation]
            if isinstance(use.operation, AssignOp) and index < at < last:
                type = tensor_type_of(op.result.type)
                bytes = typical_bytes(type)
                self._add(op.result, bytes, index, last)
                return

    def _add(self, value: SSAValue, bytes: int, first: int, last: int) -> None:
        size = -(-bytes // ALIGNMENT) * ALIGNMENT
        storage = Storage(size, device_of(value.type), first, last)
        self.storages[value] = storage
        self._places.append(storage)

    def _overwritten(self, index: int, value: SSAValue, bytes: int) -> Storage | None:
        """The memory of an operand that the result may take over."""
        operands = (
            operand
            for member in self._members(index)
            for operand in self.function.ops[member].operands
        )
        if not any(self._dies(operand, index) for operand in operands):
            return None
        element = tensor_type_of(value.type).element_type
        inputs = self._inputs(index)
        for operand, is_free in inputs.items():
            storage = self.storages.get(self.origin(operand))
            if storage is None or not is_free or storage.last > index:
                continue
            type = tensor_type_of(operand.type)
            if (
                type.element_type == element
                and typical_bytes(type) == bytes
                and self._is_whole(operand)
                and all(
                    other is operand
                    or self.storages.get(self.origin(other)) is not storage
                    for other in inputs
                )
            ):
                return storage
        return None

    def _dies(self, value: SSAValue, index: int) -> bool:
        storage = self.storages.get(self.origin(value))
        return storage is not None and storage.last <= index

    def _is_whole(self, value: SSAValue) -> bool:
        """Whether a value is its memory, in order."""
        while value is not self.origin(value):
            if not isinstance(value.owner, ReshapeOp):
                return False
            value = value.owner.operands[0]
        return True

    def _inputs(self, step: int) -> Mapping[SSAValue, bool]:
        """What is read at a position, and whether the result may overwrite it."""
        op = self.function.ops[step]
        members = self._members(step)
        result: dict[SSAValue, bool] = {}
        if not isinstance(op, TensorOp):
            return dict.fromkeys(op.operands, False)
        if self.grouping is None or len(members) == 1:
            allowed = op.overwritable()
            for index, value in enumerate(op.operands):
                result[value] = result.get(value, True) and index in allowed
            return result
        assert self.grouping is not None
        in_place = self.grouping.groups[step].in_place_readers()
        shape = self.function.shapes[step]
        for member in members:
            reader = self.function.ops[member]
            fits = isinstance(reader, in_place)
            for value in reader.operands:
                is_free = fits
                while isinstance(value.owner, BroadcastInDimOp):  # copied into it
                    value, is_free = value.owner.operands[0], False
                if is_free:
                    is_free = shape_of(tensor_type_of(value.type)) == shape
                result[value] = result.get(value, True) and is_free
        return result
