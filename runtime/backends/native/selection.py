"""Finds the first few elements of each column in a sort's order, by insertion.

    for each column:
        the first `count` elements are sorted in the result
        for many of the others at a time:
            if any comes before the last that is kept:
                for each of these:
                    it takes the last one's place, and moves to its own

Most elements are only compared, in vectors: of a column of n elements in random order,
some count * log(n / count) are inserted.
"""

from collections.abc import Sequence
from math import isqrt
from typing import TypeAlias

import numpy as np

from ....dialects.dtypes import Array
from ....dialects.tgraph.bodies import SortOp
from ....dialects.tgraph.formulas import NoForm
from ....dialects.tgraph.structure import yielded
from ..arrays import with_positions
from ..interface import Call
from ..jit import llvm
from ..jit.records import ArrayRecord
from .bodies import on_elements
from .code import LlvmFunction, Value
from .elements import load, register_type, store
from .graphs import NoLoopNest
from .loops import VECTOR
from .math import any_lane
from .nests import Loops, merged

FEW, MOST = 64, 256
"""Elements that are kept, of short columns and of long ones. Each that is inserted may
move past all of them."""


def calls_of(op: SortOp, inputs: Sequence[Array], outs: Sequence[Array]) -> list[Call]:
    """Raises `NoLoopNest` where all has to be sorted."""
    axis = op.dimension.value.data
    inputs = with_positions(op, inputs)
    size = inputs[0].shape[axis]
    most = max(FEW, min(isqrt(size), MOST))
    if not 0 < outs[0].shape[axis] <= min(most, size - 1):
        raise NoLoopNest
    if any(register_type(x.dtype) is None for x in inputs):
        raise NoLoopNest
    columns = [np.moveaxis(x, axis, -1) for x in (*inputs, *outs)]
    try:
        text = _Lowering(op, columns).text()
    except NoForm:
        raise NoLoopNest from None
    return [(ArrayRecord(llvm.compiler().function(text), columns), ())]


Side: TypeAlias = Sequence[tuple[str, Array]]
"""The addresses of columns or of results, with their arrays."""


class _Lowering:
    """Words are the addresses of the columns, then of the results."""

    def __init__(self, op: SortOp, columns: Sequence[Array]):
        self._op = op
        self._code = LlvmFunction()
        self._columns = columns
        self._inputs = len(columns) // 2
        self._size, self._kept = (columns[n].shape[-1] for n in (0, self._inputs))
        strides = [x.strides for x in columns]
        shape = columns[0].shape[:-1]
        self._loops = merged(shape, range(len(shape)), list(zip(*strides, strict=True)))

    def text(self) -> str:
        self._around(
            self._loops, [self._code.word(n) for n in range(len(self._columns))]
        )
        return self._code.function()

    def _around(self, loops: Loops, pointers: Sequence[str]) -> None:
        if not loops:
            self._column(pointers)
            return
        (size, steps), *rest = loops
        with self._code.loop("0", str(size), 1) as index:
            inner = zip(pointers, steps, strict=True)
            self._around(rest, [self._code.moved(p, index, step) for p, step in inner])

    def _column(self, pointers: Sequence[str]) -> None:
        code = self._code
        columns = list(zip(pointers, self._columns, strict=True))
        sources, kept = columns[: self._inputs], columns[self._inputs :]
        self._put(kept, "0", self._taken(sources, "0", 1))
        if self._kept > 1:
            with code.loop("1", str(self._kept), 1) as place:
                one = self._taken(sources, place, 1)
                self._put(kept, place, one)
                self._settle(kept, place, one)
        widest = max(x.itemsize for x in self._columns)
        start = self._kept
        for lanes in (VECTOR // widest, 1):
            stop = start + (self._size - start) // lanes * lanes
            if stop > start:
                with code.loop(str(start), str(stop), lanes) as place:
                    self._insert_some(sources, kept, place, lanes)
            start = stop

    def _insert_some(self, sources: Side, kept: Side, place: str, lanes: int) -> None:
        code, last = self._code, str(self._kept - 1)
        some = self._taken(sources, place, lanes)
        comes = self._before(some, self._taken(kept, last, 1))
        with code.when(any_lane(comes)):
            with code.loop("0", str(lanes), 1) as lane:
                at = code.index("add", place, lane)
                one = self._taken(sources, at, 1)
                with code.when(self._before(one, self._taken(kept, last, 1))):
                    self._put(kept, last, one)
                    if self._kept > 1:
                        self._settle(kept, last, one)

    def _settle(self, kept: Side, last: str, one: Sequence[Value]) -> None:
        """Moves the last of sorted elements, `one`, to its place among them: each one
        that it comes before takes the next place."""
        code = self._code
        with code.loop("0", last, 1) as step:
            place = code.index("sub", last, step)
            lower = self._taken(kept, code.index("sub", place, 1), 1)
            comes = self._before(one, lower)
            stays = self._first(one, self._taken(kept, place, 1))
            pairs = zip(lower, stays, strict=True)
            self._put(kept, place, [code.select(comes, x, y) for x, y in pairs])
        self._put(kept, "0", self._first(one, self._taken(kept, "0", 1)))

    def _first(self, xs: Sequence[Value], ys: Sequence[Value]) -> list[Value]:
        comes = self._before(xs, ys)
        return [self._code.select(comes, x, y) for x, y in zip(xs, ys, strict=True)]

    def _taken(self, side: Side, place: str, lanes: int) -> list[Value]:
        code, taken = self._code, list[Value]()
        for pointer, array in side:
            step = array.strides[-1]
            at = code.moved(pointer, place, step)
            taken.append(load(code, at, step, array.dtype, lanes, lanes))
        return taken

    def _put(self, kept: Side, place: str, values: Sequence[Value]) -> None:
        for value, (pointer, array) in zip(values, kept, strict=True):
            at = self._code.moved(pointer, place, array.strides[-1])
            store(value, at, 0, array.dtype, 1, 1)

    def _before(self, xs: Sequence[Value], ys: Sequence[Value]) -> Value:
        """What the comparator says of these two."""
        pairs = [x for pair in zip(xs, ys, strict=True) for x in pair]
        known = on_elements(self._code, self._op.comparator.block, pairs)
        return known[yielded(self._op.comparator)[0]]
