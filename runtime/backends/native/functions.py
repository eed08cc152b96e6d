"""Calls of loop nests; each distinct nest is compiled once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from xdsl.ir import SSAValue

from ....analysis.cost import BYTES_PER_NS
from ....dialects.dtypes import Array
from ....dialects.tgraph.base import Shape, TensorOp
from ....support.arrays import address, strided
from ...calls import Call
from ...pool import Scratch
from ..arrays import alike
from ..jit import llvm
from ..jit.records import ArrayRecord, parallel
from ..parts import GRAIN, cut
from .elements import has_registers
from .graphs import ElementGraph, ElementNode, NoLoopNest, graph_of
from .loops import lower
from .nests import LoopNest, divided, nest_of, time_of
from .transposing import side, transpose

CHUNK = 1 << 18
"""The bytes that are transposed at a time, so that they stay in a core's L2 cache."""

LARGEST_CHUNK = 1 << 22
"""The maximum bytes of a buffer for that, as rows may be long."""

LARGEST = 1000
"""The maximum nodes of a graph; beyond, LLVM's time grows with their square."""

_functions: dict[object, llvm.Function | None] = {}
"""By `LoopNest.key()`; None for unsupported nests."""


def nested(graph: ElementGraph, scratch: Scratch) -> list[Call]:
    """The calls of a graph's loop nest, in parts if it is large.

    Raises `NoLoopNest` if the graph has no native form.
    """
    if 0 in graph.shape or len(graph.nodes) > LARGEST:
        raise NoLoopNest
    gathered = graph.placed
    for number, x in enumerate(graph.arrays[:-1]):
        if number in gathered or graph.order is not None:
            continue
        out = graph.arrays[-1]
        if not np.may_share_memory(x, out) and (whole := transpose(out, x)):
            if graph.root.array == number:
                return whole.calls(scratch.threads)
            if (calls := _in_order(graph, number, scratch)) is not None:
                return calls
    nests = divided(nest_of(graph), scratch.threads)
    return parallel([[_call(nest, scratch)] for nest in nests], scratch.threads)


def _in_order(graph: ElementGraph, number: int, scratch: Scratch) -> list[Call] | None:
    """The calls of a graph's loop nest if array `number` has another order of
    dimensions than the output. Transposes the array part by part and reads it from
    there: into the output, if no other array overlaps it, or else into a buffer. None
    if the buffer would be too large."""
    *inputs, out = graph.arrays
    x, threads = inputs[number], scratch.threads
    is_free = not any(np.may_share_memory(y, out) for y in inputs)
    kept = [d for d, n in enumerate(x.shape) if n > 1 and d not in graph.reduced]
    dim = max(kept, key=lambda d: abs(out.strides[d]), default=0)
    unit = side(x.itemsize) if x.strides[dim] == x.itemsize else 1
    bytes = x.itemsize * x.size // x.shape[dim]  # for each index along `dim`
    time = 2 * x.nbytes / BYTES_PER_NS + time_of(nest_of(graph))
    most = min(CHUNK / bytes, GRAIN * x.shape[dim] / time)  # for any number of threads
    step = max(int(most / unit), 1) * unit if kept else x.shape[dim]
    if not is_free and min(step, x.shape[dim]) * bytes > LARGEST_CHUNK:
        return None
    _, spans = cut([x.shape[dim]], [step], time, threads)
    parts: list[list[Call]] = []
    with scratch.in_one_thread():
        for span in spans:
            calls: list[Call] = []
            first, most = scratch.mark, scratch.mark
            start, stop, _ = span.indices(x.shape[dim])
            for at in range(start, stop, step):
                scratch.mark = first
                place = (*[slice(None)] * dim, slice(at, min(at + step, stop)))
                arrays = [array[place] for array in graph.arrays]
                target = arrays[-1]
                if not is_free:
                    target = alike(target, target.dtype, scratch)
                if copying := transpose(target, arrays[number]):  # None if too few
                    calls += copying.calls(1)
                    arrays[number] = target
                counts = [count.after(dim, at) for count in graph.counts]
                part = replace(graph, shape=target.shape, arrays=arrays, counts=counts)
                calls.append(_call(nest_of(part), scratch))
                most = max(most, scratch.mark)
            scratch.mark = most
            parts.append(calls)
    return parallel(parts, threads)


class Nests:
    """Loop nests that compute one value of some operations, for arrays at different
    addresses, such as tiles. Arrays with the same layout share a nest, which is chosen
    once."""

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
    """A call of native code on views of given arrays."""

    function: llvm.Function
    views: Sequence[tuple[int, Shape, Shape]]
    """For each argument, the index of the array at whose first element it starts, its
    shape and its strides."""
    others: Sequence[int]
    """The words that are not addresses."""

    def call(self, given: Sequence[Array]) -> Call:
        views = [
            strided(given[number], shape, strides)
            for number, shape, strides in self.views
        ]
        return ArrayRecord(self.function, views, *self.others), ()


def _form(record: object, given: Sequence[Array], starts: list[int]) -> _Form | None:
    """None for a call on other arrays, and for a call that runs other calls."""
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
    return _Form(record.function, views, record.others)


def copy_of(out: Array, x: Array, scratch: Scratch) -> Call:
    """`np.copyto(out, x)` for arrays of one type. `out` must not be empty.

    Raises `NoLoopNest` for element types without a native type.
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
    buffers = [scratch.take(shape, dtype) for shape, dtype in nest.buffers]
    graph = nest.graph
    arrays = [*graph.arrays, *buffers, *graph.wholes]
    return ArrayRecord(function, arrays, *(count.first for count in graph.counts)), ()


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
