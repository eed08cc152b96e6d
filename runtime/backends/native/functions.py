"""Calls of loop nests: the machine code of each is made once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from xdsl.ir import SSAValue

from ....dialects.dtypes import Array
from ....dialects.tgraph.base import Shape, TensorOp
from ....support.arrays import address, strided
from ...calls import Call
from ...pool import Scratch
from ..jit import llvm
from ..jit.records import ArrayRecord, parallel
from . import transposing
from .elements import has_registers
from .graphs import ElementGraph, ElementNode, NoLoopNest, graph_of
from .loops import lower
from .nests import LoopNest, divided, nest_of

LARGEST = 1000
"""Nodes of a graph: from there on LLVM's time grows with the square of them."""

_functions: dict[object, llvm.Function | None] = {}
"""By `LoopNest.key()`; None for what is not supported."""


def nested(graph: ElementGraph, scratch: Scratch) -> list[Call]:
    """The calls of a graph's loop nest, in parts if it is large.

    An array in another order than the output's is brought into this one first, in the
    output's memory.

    Raises `NoLoopNest` for what has no native form.
    """
    if 0 in graph.shape or len(graph.nodes) > LARGEST:
        raise NoLoopNest
    graph, calls = _in_order(graph, scratch.threads)
    if graph.root.array >= 0 and calls:
        return calls
    nests = divided(nest_of(graph), scratch.threads)
    made = [[_call(nest, scratch)] for nest in nests]
    return [*calls, *parallel(made, scratch.threads)]


def _in_order(graph: ElementGraph, threads: int) -> tuple[ElementGraph, list[Call]]:
    """The graph with an array that it reads in the output's place, and the calls that
    bring the array there; as it is where that does not pay."""
    *inputs, out = graph.arrays
    if any(np.may_share_memory(x, out) for x in inputs):
        return graph, []
    for number, x in enumerate(inputs):
        if calls := transposing.calls_of(out, x, threads):
            arrays = [*inputs, out]
            arrays[number] = out
            return replace(graph, arrays=arrays), calls
    return graph, []


class Nests:
    """Loop nests of one value of some operations, for arrays that differ in where they
    lie, as tiles do: for those of one layout, the nest is found once."""

    def __init__(self, ops: Mapping[SSAValue, TensorOp], result: SSAValue):
        self._ops, self._result = ops, result
        self._known: dict[object, Sequence[_Form]] = {}

    def calls(
        self, arrays: Mapping[SSAValue, Array], out: Array, scratch: Scratch
    ) -> list[Call]:
        """The calls that compute the value into `out` from `arrays`.

        Raises `NoLoopNest`, or `KeyError`, if it has no native form.
        """
        given = [*arrays.values(), out]
        starts = [address(x) for x in given]
        layout = (
            *arrays,
            *((x.shape, x.strides, x.dtype, starts.index(address(x))) for x in given),
            scratch.threads,
        )
        if (forms := self._known.get(layout)) is not None:
            return [form.call(given) for form in forms]
        mark = scratch.mark
        calls = nested(graph_of(self._ops, self._result, arrays, out), scratch)
        if scratch.mark == mark:
            forms = [_form(record, given, starts) for record, _ in calls]
            found = [form for form in forms if form is not None]
            if len(found) == len(forms):
                self._known[layout] = found
        return calls


class _Form(NamedTuple):
    """A call of native code on views of arrays that are given."""

    function: llvm.Function
    views: Sequence[tuple[int, Shape, Shape]]
    """For each argument, the number of the array at whose first element it starts, its
    shape and its strides."""

    def call(self, given: Sequence[Array]) -> Call:
        views = [
            strided(given[number], shape, strides)
            for number, shape, strides in self.views
        ]
        return ArrayRecord(self.function, views), ()


def _form(record: object, given: Sequence[Array], starts: list[int]) -> _Form | None:
    """None for a call on other arrays, and one that runs others."""
    if type(record) is not ArrayRecord:
        return None
    views: list[tuple[int, Shape, Shape]] = []
    for array in record.arrays:
        if array is None or address(array) not in starts:
            return None
        number = starts.index(address(array))
        if array.dtype != given[number].dtype:
            return None
        views.append((number, array.shape, array.strides))
    return _Form(record.function, views)


def copy_of(out: Array, x: Array, scratch: Scratch) -> Call:
    """`np.copyto(out, x)`, for arrays of one type. `out` is not empty.

    Raises `NoLoopNest` for elements that have no native type.
    """
    if not has_registers(x.dtype):
        raise NoLoopNest
    node = ElementNode(x.dtype, array=0)
    arrays = [np.broadcast_to(x, out.shape), out]
    graph = ElementGraph(out.shape, frozenset(), node, arrays, [node])
    (call,) = nested(graph, scratch)
    return call


def _call(nest: LoopNest, scratch: Scratch) -> Call:
    function = _function(nest)
    sizes = tuple(nest.sizes[nest.kept :])
    buffers = [scratch.take(sizes, node.dtype) for node in nest.saved]
    return ArrayRecord(function, [*nest.graph.arrays, *buffers]), ()


def _function(nest: LoopNest) -> llvm.Function:
    key = nest.key()
    if key not in _functions:
        try:
            _functions[key] = llvm.compiler().function(lower(nest))
        except NoLoopNest:
            _functions[key] = None
    function = _functions[key]
    if function is None:
        raise NoLoopNest
    return function
