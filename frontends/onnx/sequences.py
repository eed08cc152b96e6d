"""ONNX's sequences and optionals of constant length, resolved at import.

The program has only the operations that compute their tensors.

    s = SplitToSequence(x)              an `Items` of parts of x
    y = SequenceAt(s, 1)                one of these parts

A conversion takes the node, without the inputs that are `Items`, and all inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeGuard, cast

import numpy as np
import onnx
from xdsl.ir import Operation

from ..builder import axis_of, shape_of
from ..operators import Known, Value
from ..unsupported import Unsupported
from . import shaping
from .node import OnnxNode

_MOST = 1024
"""The most iterations of a loop that is unrolled."""


@dataclass(frozen=True, eq=False, slots=True)
class Items:
    """A sequence of values, or an optional with one value or none."""

    values: tuple[Item, ...]
    is_optional: bool = False


Item: TypeAlias = Value | Items
Inputs: TypeAlias = Sequence[Item | None]
Graph: TypeAlias = Callable[
    [onnx.GraphProto, Sequence[Item], list[Operation]], Sequence[Item | None]
]
"""Appends the operations of a graph, on these inputs, and returns the graph's outputs;
an output that is not supported is None."""


def tensors_of(value: Item | None, name: str) -> Iterator[tuple[str, Value]]:
    """The tensors of an output with their names. The first tensor of a sequence `y` is
    `y[0]`; the tensor of an optional has the name of the optional."""
    if not isinstance(value, Items):
        yield from [(name, value)] if value is not None else []
        return
    for index, item in enumerate(value.values):
        yield from tensors_of(item, name if value.is_optional else f"{name}[{index}]")


def leaves(values: Inputs) -> list[Value | None]:
    """The tensors of `values` in one list, with sequences flattened."""
    found: list[Value | None] = []
    for value in values:
        found += leaves(value.values) if isinstance(value, Items) else [value]
    return found


def like(made: Sequence[Inputs], tensors: Sequence[Value | None]) -> Inputs:
    """Rebuilds values from the list of their `leaves`, in the common form of `made`.

    Raises `Unsupported` if the lists of values in `made` differ in form.
    """
    forms = [[_form(value) for value in values] for values in made]
    if any(form != forms[0] for form in forms):
        raise Unsupported("with sequences of different lengths")
    rest = iter(tensors)
    return [_filled(value, rest) for value in made[0]]


def _form(value: Item | None) -> object:
    return [*map(_form, value.values)] if isinstance(value, Items) else None


def _filled(value: Item | None, tensors: Iterator[Value | None]) -> Item | None:
    if not isinstance(value, Items):
        return next(tensors)
    values = tuple(_filled(item, tensors) for item in value.values)
    return Items(cast(tuple[Item, ...], values), value.is_optional)


def _items(inputs: Inputs, index: int = 0) -> tuple[Item, ...]:
    value = inputs[index]
    if not isinstance(value, Items):
        raise Unsupported(f"with a tensor as input {index}, expected a sequence")
    return value.values


def _tensor(value: Item) -> Value:
    if isinstance(value, Items):
        raise Unsupported("with a sequence of sequences")
    return value


def _construct(n: OnnxNode, inputs: Inputs, _: Graph) -> Inputs:
    return [Items(tuple(value for value in inputs if value is not None))]


def _optional(n: OnnxNode, inputs: Inputs, _: Graph) -> Inputs:
    values = tuple(value for value in inputs if value is not None)
    return [Items(values, is_optional=True)]


def _empty(n: OnnxNode, inputs: Inputs, _: Graph) -> Inputs:
    return [Items(())]


def _place(n: OnnxNode, index: int, last: int, length: int) -> int:
    """The position that input `index` gives, 0 or more; `last` if it is omitted."""
    place = n.known_integers(index)[0] if n.has(index) else last
    if last < -length:
        raise Unsupported("on an empty sequence")
    if not -length <= place <= last:
        raise Unsupported(f"with position {place}, expected {-length} to {last}")
    return place + length * (place < 0)


def _insert(n: OnnxNode, inputs: Inputs, _: Graph) -> Inputs:
    items = _items(inputs)
    place = _place(n, 2, len(items), len(items))
    return [Items((*items[:place], n.given(1), *items[place:]))]


def _erase(n: OnnxNode, inputs: Inputs, _: Graph) -> Inputs:
    items = _items(inputs)
    place = _place(n, 1, len(items) - 1, len(items))
    return [Items((*items[:place], *items[place + 1 :]))]


def _at(n: OnnxNode, inputs: Inputs, _: Graph) -> Inputs:
    items = _items(inputs)
    return [items[_place(n, 1, len(items) - 1, len(items))]]


def _length(n: OnnxNode, inputs: Inputs, _: Graph) -> Inputs:
    return [Known(np.array(len(_items(inputs)), np.int64))]


def _split(n: OnnxNode, inputs: Inputs, _: Graph) -> Inputs:
    x = n.value(0)
    shape = list(shape_of(x))
    axis = axis_of(n.integer("axis", 0), len(shape))
    total, sizes = shape[axis], [1] * shape[axis]
    if n.has(1):
        sizes = n.known_integers(1)
        if not n.known(1).ndim:
            if sizes[0] < 1:
                raise Unsupported(f"with split = {sizes[0]}, expected at least 1")
            sizes = [min(sizes[0], total - k) for k in range(0, total, sizes[0])]
    if sum(sizes) != total or min(sizes, default=0) < 0:
        raise Unsupported(
            f"with split = {sizes}, expected sizes that add up to {total}"
        )
    ends = np.cumsum(sizes, dtype=int).tolist()
    parts = [n.part(x, axis, e - s, e) for s, e in zip(sizes, ends, strict=True)]
    if not n.has(1) and not n.integer("keepdims", 1):
        parts = [n.reshape(x, shape[:axis] + shape[axis + 1 :]) for x in parts]
    return [Items(tuple(parts))]


def _concatenate(n: OnnxNode, inputs: Inputs, _: Graph) -> Inputs:
    values = [_tensor(value) for value in _items(inputs)]
    if not values:
        raise Unsupported("on an empty sequence")
    if n.integer("new_axis", 0):
        return _stacked(n, values, n.integer("axis", 0))
    return shaping.CONVERSIONS["Concat"](replace(n, inputs=values))


def _stacked(n: OnnxNode, values: Sequence[Value], axis: int) -> Sequence[Value]:
    """Concatenates tensors along a new axis."""
    if not values:
        raise Unsupported("without iterations")
    tensors = list(map(n.materialize, values))
    shape = list(shape_of(tensors[0]))
    axis = axis_of(axis, len(shape) + 1)
    rows = [n.reshape(x, [*shape[:axis], 1, *shape[axis:]]) for x in tensors]
    attributes = {"axis": axis}
    return shaping.CONVERSIONS["Concat"](replace(n, inputs=rows, attributes=attributes))


def _map(n: OnnxNode, inputs: Inputs, graph: Graph) -> Inputs:
    """Applies the body to each item of the first input and of other sequences."""
    length = len(_items(inputs))
    given = [value for value in inputs if value is not None]
    columns = [x.values if isinstance(x, Items) else (x,) * length for x in given]
    if any(len(column) != length for column in columns):
        raise Unsupported("on sequences of different lengths")
    rows = [
        graph(n.attributes["body"], row, n.into) for row in zip(*columns, strict=True)
    ]
    found: list[list[Item]] = [[] for _ in range(n.outputs)]
    for row in rows:
        for column, value in zip(found, row, strict=True):
            if value is None:
                return [None] * n.outputs
            column.append(value)
    return [Items(tuple(column)) for column in found]


def _loop(n: OnnxNode, inputs: Inputs, graph: Graph) -> Inputs:
    """Unrolls a loop, because a loop of tgraph carries only tensors."""
    limit = int(n.known(0).item()) if n.has(0) else None
    again: Item | None = n.given(1) if n.has(1) else Known(np.array(True))
    states = list(inputs[2:])
    rows: list[list[Value]] = [[] for _ in range(n.outputs - len(states))]
    for index in range(_MOST + 1):
        if limit is not None and index >= limit:
            break
        if not isinstance(again, Known):
            raise Unsupported("on a sequence with a condition computed at run time")
        if not again.array.all():
            break
        if index == _MOST:
            raise Unsupported(f"on a sequence with more than {_MOST} iterations")
        given = [Known(np.array(index)), again, *(x for x in states if x is not None)]
        again, *values = graph(n.attributes["body"], given, n.into)
        if any(value is None for value in (again, *values)):
            return [None] * n.outputs
        states = values[: len(states)]
        for row, value in zip(rows, values[len(states) :], strict=False):
            if value is not None:
                row.append(_tensor(value))
    stacked = [_stacked(n, row, 0) for row in rows]
    return [*states, *(value for values in stacked for value in values)]


def _has_element(n: OnnxNode, inputs: Inputs, _: Graph) -> Inputs:
    value = inputs[0] if inputs else None
    is_none = value is None or (_is_optional(value) and not value.values)
    return [Known(np.array(not is_none))]


def _get_element(n: OnnxNode, inputs: Inputs, _: Graph) -> Inputs:
    value = inputs[0]
    if not _is_optional(value):
        return [value]
    if not value.values:
        raise Unsupported("on an optional without a value")
    return [value.values[0]]


def _is_optional(value: Item | None) -> TypeGuard[Items]:
    return isinstance(value, Items) and value.is_optional


def _identity(n: OnnxNode, inputs: Inputs, _: Graph) -> Inputs:
    return [inputs[0]]


Conversion: TypeAlias = Callable[[OnnxNode, Inputs, Graph], Inputs]

CONVERSIONS: Mapping[str, Conversion] = {
    "ConcatFromSequence": _concatenate,
    "Optional": _optional,
    "OptionalGetElement": _get_element,
    "OptionalHasElement": _has_element,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SequenceMap": _map,
    "SplitToSequence": _split,
}
OF_ITEMS: Mapping[str, Conversion] = {
    **CONVERSIONS,
    "Identity": _identity,
    "Loop": _loop,
}
"""These conversions, and those of operations that take sequences or tensors."""
