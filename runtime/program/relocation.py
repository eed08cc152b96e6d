"""Relocates calls when the memory of an argument moves, instead of making them anew.

This works as a linker relocates code. Calls are made for the program's own memory, and
their references to it are recorded. When an argument is bound to other memory, only
these references change:

    a native record    the addresses among its words (jit/records.py)
    a NumPy call       its array arguments: the call is rebuilt

Calls that hide their arrays, as Python closures do, cannot be relocated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import (
    BuiltinMethodType,
    EllipsisType,
    FunctionType,
    MethodWrapperType,
    NoneType,
)
from typing import Any, TypeAlias, cast

import numpy as np

from ...support.arrays import Array, address
from ..backends.jit.records import Pointer, Record, Tape
from ..calls import Call, HostCallback
from .steps import MemoryBlock, MemoryRange, View

Point: TypeAlias = tuple[int, Pointer]
"""An offset in bytes, and the pointer that takes the address at this offset."""

_Make: TypeAlias = Callable[[], Any]

_PLAIN: tuple[type[Any], ...] = (
    *(bool, int, float, complex, str, slice, type, EllipsisType, NoneType),
    *(np.dtype, np.generic, np.ufunc, cast(Any, type(np.copyto)), HostCallback),
)
"""Types of objects that contain no arrays of the program: values, and functions of
NumPy and of the user."""


class Hidden(Exception):
    """A call may contain arrays that cannot be found."""


class RebuildableCall:
    """A call that is rebuilt when memory moves."""

    __slots__ = ("_make", "arguments", "function")

    def __init__(self, call: Call, make: _Make):
        self.function, self.arguments = call
        self._make = make

    def __call__(self) -> None:
        self.function(*self.arguments)

    def renew(self) -> None:
        self.function, self.arguments = self._make()


@dataclass(eq=False)
class Relocations:
    """The references of calls to memory that moves."""

    points: dict[MemoryBlock, list[Point]] = field(
        default_factory=dict[MemoryBlock, list[Point]]
    )
    calls: dict[MemoryBlock, dict[RebuildableCall, None]] = field(
        default_factory=dict[MemoryBlock, dict[RebuildableCall, None]]
    )

    def add(self, other: "Relocations") -> None:
        for memory, points in other.points.items():
            self.points.setdefault(memory, []).extend(points)
        for memory, calls in other.calls.items():
            self.calls.setdefault(memory, {}).update(calls)

    def move(self, memories: Sequence[MemoryBlock]) -> None:
        """Makes calls follow memories that have moved."""
        renewed: dict[RebuildableCall, None] = {}
        for memory in memories:
            start = memory.start
            for offset, point in self.points.get(memory, ()):
                point(start + offset)
            if calls := self.calls.get(memory):
                renewed |= calls
        for call in renewed:
            call.renew()


def relocated(
    calls: Sequence[Call], memories: Sequence[MemoryBlock]
) -> tuple[list[Call], Relocations]:
    """The calls in a form that can be relocated when `memories` move, and their
    references to these.

    Raises `Hidden` for calls that cannot be relocated.
    """
    search = _Search(memories)
    return [search.rebuildable(call) for call in calls], search.found


class _Search:
    """Searches calls for references to memories."""

    def __init__(self, memories: Sequence[MemoryBlock]):
        self._spans = [(m.start, m.start + m.bytes.size, m) for m in memories]
        self._seen: dict[MemoryBlock, None] = {}  # in the current call
        self.found = Relocations()

    def rebuildable(self, call: Call) -> Call:
        self._seen = {}
        make = self._parts(call)
        if make is None:
            return call
        rebuildable = RebuildableCall(call, make)
        for memory in self._seen:
            self.found.calls.setdefault(memory, {})[rebuildable] = None
        return rebuildable, ()

    def _part(self, value: object) -> _Make | None:
        """A function that rebuilds `value`; None if the value does not change."""
        match value:
            case Record():
                self._note(value)
                return None
            case Tape():
                for record in value.records:
                    self._note(record)
                return None
            case np.ndarray():
                return self._array(cast(Array, value))
            case tuple() | list():
                return self._parts(cast("Sequence[object]", value))
            case dict():
                return self._table(cast("Mapping[object, object]", value))
            case partial():
                return self._partial(cast("partial[Any]", value))
            case BuiltinMethodType() | MethodWrapperType():
                return self._method(value)
            case FunctionType() if not value.__closure__:
                defaults = [value.__defaults__ or (), value.__kwdefaults__ or {}]
                if self._parts(defaults) is None:
                    return None
                raise Hidden
            case _ if isinstance(value, _PLAIN):
                return None
            case _:
                raise Hidden

    def _parts(self, values: Sequence[object]) -> _Make | None:
        made = [self._part(value) for value in values]
        if not any(made):
            return None
        kind = getattr(type(values), "_make", type(values))  # a named tuple's
        pairs = list(zip(values, made, strict=True))
        return lambda: kind(v if make is None else make() for v, make in pairs)  # pyright: ignore

    def _table(self, values: Mapping[object, object]) -> _Make | None:
        keys, make = list(values), self._parts(list(values.values()))
        return make and (lambda: dict(zip(keys, make(), strict=True)))

    def _partial(self, value: "partial[Any]") -> _Make | None:
        make = self._parts([value.func, value.args, value.keywords])
        if make is None:
            return None

        def again() -> object:
            function, arguments, keywords = make()
            return partial(function, *arguments, **keywords)

        return again

    def _method(self, value: BuiltinMethodType | MethodWrapperType) -> _Make | None:
        """Handles a method of an array, or of a constant object such as a ufunc."""
        make = self._part(value.__self__)
        return make and (lambda: getattr(make(), value.__name__))

    def _array(self, array: Array) -> _Make | None:
        memory, offset = self._place(array)
        if memory is None:
            return None
        self._seen[memory] = None
        buffer = MemoryRange(memory, 0, memory.bytes.size)
        return View(buffer, array.dtype, array.shape, offset, array.strides).array

    def _note(self, record: Record) -> None:
        for array, point in record.pointers():
            memory, offset = self._place(array)
            if memory is not None:
                self.found.points.setdefault(memory, []).append((offset, point))

    def _place(self, array: Array) -> tuple[MemoryBlock | None, int]:
        at = address(array)
        for start, end, memory in self._spans:
            if start <= at < end and array.size:
                return memory, at - start
        return None, 0
