"""Sorts columns by any function that compares two elements, or finds the first few.

The first few are found by insertion:

    for each column:
        the first `count` elements are sorted in the result
        for many of the others at a time:
            if any comes before the last that is kept:
                for each of these:
                    it replaces the last one, and moves to its position

Most elements are only compared, in vectors. Of a column of n elements in random order,
about count * (1 + log(n / count)) are inserted. In the worst order, all are, so `count`
has a limit. Larger numbers of elements are found by selection:

    for each column:
        the first `count` elements are sorted in a buffer
        for many of the others at a time:
            each of these that comes before the last in the buffer is appended to it
            if `count` elements have been appended, or these are the last:
                the appended elements are sorted, and merged with the first `count`

In random order, `count` elements are appended about log2(n / count) times.

Short columns are sorted many at a time, one in each lane:

    for each of the first `count` places:
        the last element moves up, past each one that it comes before; at any other one,
        it stays, and the other one moves on

All elements of other columns are sorted by merging, bottom up:

    for each column:
        runs of a few elements are sorted in a buffer, by insertion
        until there is one run:
            pairs of runs are merged into another buffer, without branches
        the first `count` elements are copied to the result

Positions of integer types are the indices of the loops, and lie in no array. Equal
elements never pass each other. If elements are compared by a key, NumPy
(numpy/bodies.py) sorts columns that are long enough to outweigh its start-up time.
"""

from collections.abc import Callable, Sequence
from math import log, log2
from typing import TypeAlias

import numpy as np

from ....dialects.dtypes import Array, numpy_dtype
from ....dialects.tgraph.base import tensor_type_of
from ....dialects.tgraph.bodies import SortOp
from ....dialects.tgraph.formulas import NoForm
from ....dialects.tgraph.structure import yielded
from ...calls import Call
from ...pool import Scratch
from ..jit import llvm
from ..jit.records import ArrayRecord
from ..numpy.bodies import key_of
from .bodies import counted, on_elements, positions, with_counted
from .code import BITS, LlvmFunction, Value
from .elements import load, register_type, store
from .graphs import NoLoopNest
from .math import any_lane
from .nests import VECTOR, merged

RUN = 8
"""The elements of the runs that are sorted by insertion before merging."""

MOST = 32
"""The maximum number of elements that are found by insertion."""

FEW = 16
"""The maximum elements of a column in registers."""

PASSED, MERGED, SORTED, START = 1.6, 5.6, 7, 20_000
"""Costs in nanoseconds: of every two elements that an inserted one passes, of an
element in a round of merging, of an element that NumPy sorts with vector instructions
(without them, up to ten times as much), and of starting NumPy.
"""

COMPARED, MOVED = 1.6, 0.3
"""Costs in nanoseconds: of two elements of each column in a vector, and of an element
of a column that is read or written there.
"""


def calls_of(
    op: SortOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    """Raises `NoLoopNest` if NumPy should sort."""
    axis = op.dimension.value.data
    inputs = with_counted(op, inputs)
    size, count = inputs[0].shape[axis], outs[0].shape[axis]
    if size < 2 or not outs[0].size:
        raise NoLoopNest
    if any(register_type(x.dtype) is None for x in inputs):
        raise NoLoopNest
    arrays = [np.moveaxis(x, axis, -1) for x in (*inputs, *outs)]
    lanes = VECTOR // max(x.itemsize for x in arrays)
    columns = outs[0].size // count
    method = fastest(size, count, columns, key_of(op) is not None, lanes)
    if method is None:
        raise NoLoopNest
    try:
        sort = method(op, arrays)
        text = sort.text()
        types = [x.dtype for x in inputs]
        arrays += [scratch.take((n,), t) for n in sort.buffers for t in types]
    except NoForm:
        raise NoLoopNest from None
    return [(ArrayRecord(llvm.compiler().function(text), arrays), ())]


def fastest(
    size: int, count: int, columns: int, is_by_key: bool, lanes: int
) -> "type[_Sort] | None":
    """The fastest method that finds the first `count` elements of columns in random
    order, if a vector has `lanes` of them; None for NumPy."""
    some = MERGED * log2(2 * count) * count
    costs: dict[type[_Sort] | None, float] = {Merging: MERGED * log2(size) * size}
    if is_by_key:
        costs[None] = SORTED * size + START / columns
    if 4 * count < size:
        costs[Selection] = some * (1 + log2(size / count))
    if count < size and count <= MOST:
        costs[Insertion] = PASSED * count**2 * (1 + log(size / count))
    vectors = -(-columns // lanes)
    pairs = count * size - count * (count + 1) // 2
    each = COMPARED * pairs + MOVED * lanes * (size + count)
    costs[Together] = each * vectors / columns
    return min(costs, key=lambda method: costs[method])


Side: TypeAlias = Sequence[tuple[str, Array]]
"""The addresses of columns, results or buffers, with arrays of the same element types;
columns, results and buffers are along the last dimension. Each element of a column at
`POSITIONS` is its position.
"""

POSITIONS = ""


class _Sort:
    """The words are the addresses of columns, then of results, then of buffers."""

    buffers: Sequence[int] = ()
    """The elements of the buffers that each column needs."""

    def __init__(self, op: SortOp, arrays: Sequence[Array]):
        self._op = op
        self._code = LlvmFunction()
        self._arrays = arrays
        self._inputs = len(arrays) // 2
        self._size, self._count = (arrays[n].shape[-1] for n in (0, self._inputs))
        self._counted = counted(op, arrays)
        self._key = key_of(op)
        if self._key is not None:
            type = tensor_type_of(self._key[0].type).element_type
            kind = numpy_dtype(type, op).kind
            self._less = "ult" if kind in "ub" else "slt"

    def text(self) -> str:
        pointers = [self._code.word(n) for n in range(len(self._arrays))]
        strides = [x.strides for x in self._arrays]
        shape = self._arrays[0].shape[:-1]
        loops = merged(shape, range(len(shape)), list(zip(*strides, strict=True)))
        with self._code.nest(loops, pointers) as moved:
            columns = list(zip(moved, self._arrays, strict=True))
            for number in self._counted:
                columns[number] = POSITIONS, self._arrays[number]
            self._column(columns[: self._inputs], columns[self._inputs :])
        return self._code.function()

    def _column(self, sources: Side, results: Side) -> None:
        raise NotImplementedError

    def _most_lanes(self) -> int:
        """The elements of a column in vectors."""
        return VECTOR // max(x.itemsize for x in self._arrays)

    def _settle(self, kept: Side, last: str, one: Sequence[Value]) -> None:
        """Moves `one`, the last of otherwise sorted elements, to its position: each
        element that it comes before moves to the next position."""
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

    def _before(self, xs: Sequence[Value], ys: Sequence[Value]) -> Value:
        """Whether the comparator puts `xs` before `ys`."""
        pairs = [x for pair in zip(xs, ys, strict=True) for x in pair]
        known = on_elements(self._code, self._op.comparator.block, pairs)
        return known[yielded(self._op.comparator)[0]]

    def _taken(self, side: Side, place: str, lanes: int) -> list[Value]:
        code, taken = self._code, list[Value]()
        for pointer, array in side:
            if pointer == POSITIONS:
                taken.append(positions(code, place, 1, array.dtype, lanes))
                continue
            step = array.strides[-1]
            at = code.moved(pointer, place, step)
            taken.append(load(code, at, step, array.dtype, lanes, lanes))
        return taken

    def _put(self, side: Side, place: str, values: Sequence[Value]) -> None:
        for value, (pointer, array) in zip(values, side, strict=True):
            at = self._code.moved(pointer, place, array.strides[-1])
            store(value, at, 0, array.dtype, 1, 1)


class Together(_Sort):
    """Sorts a column in each lane: in registers if the columns have few elements, else
    in a buffer."""

    def text(self) -> str:
        code = self._code
        pointers = [code.word(n) for n in range(len(self._arrays))]
        strides = [x.strides for x in self._arrays]
        shape = self._arrays[0].shape[:-1]
        loops = merged(shape, range(len(shape)), list(zip(*strides, strict=True)))
        size, steps = loops.pop() if loops else (1, [0] * len(pointers))
        lanes = min(self._most_lanes(), 1 << (size - 1).bit_length())
        with code.nest(loops, pointers) as moved:
            whole = size // lanes * lanes
            if whole:
                with code.loop("0", str(whole), lanes) as first:
                    self._vector(
                        code.all_moved(moved, first, steps), steps, lanes, lanes
                    )
            if whole < size:
                last = code.all_moved(moved, str(whole), steps)
                self._vector(last, steps, lanes, size - whole)
        return code.function()

    def _vector(
        self, pointers: Sequence[str], steps: Sequence[int], lanes: int, active: int
    ) -> None:
        """Sorts the columns in the first `active` of `lanes` lanes. They are `steps`
        apart."""
        code = self._code
        all = list(zip(pointers, steps, self._arrays, strict=True))

        def taken(place: str) -> list[Value]:
            found: list[Value] = []
            for number, (pointer, step, x) in enumerate(all[: self._inputs]):
                if number in self._counted:
                    found.append(positions(code, place, 0, x.dtype, lanes))
                    continue
                at = code.moved(pointer, place, x.strides[-1])
                one = load(code, at, step, x.dtype, lanes, active)
                found.append(code.widened(one, lanes))
            return self._with_key(found)

        def put(place: str, values: Sequence[Value]) -> None:
            results = zip(all[self._inputs :], values, strict=False)
            for (pointer, step, x), value in results:
                at = code.moved(pointer, place, x.strides[-1])
                store(value, at, step, x.dtype, lanes, active)

        if self._size > FEW:
            self._in_buffer(taken, put)
            return
        column = [taken(str(place)) for place in range(self._size)]
        for first in range(self._count):
            for place in range(self._size - 1, first, -1):
                upper, lower = column[place - 1 : place + 1]
                column[place - 1 : place + 1] = self._in_order(upper, lower)
            put(str(first), column[first])

    def _in_buffer(
        self,
        taken: Callable[[str], list[Value]],
        put: Callable[[str, Sequence[Value]], None],
    ) -> None:
        code = self._code
        buffers: list[tuple[str, Value, int]] = []

        def written(place: str, values: Sequence[Value]) -> None:
            for (buffer, _, size), value in zip(buffers, values, strict=True):
                code.set(code.moved(buffer, place, size), value)

        def read(place: str) -> list[Value]:
            return [
                code.get(code.moved(buffer, place, size), x.element, x.lanes)
                for buffer, x, size in buffers
            ]

        with code.loop("0", str(self._size), 1) as place:
            values = taken(place)
            for value in values:
                count = self._size * max(value.lanes, 1)
                size = max(BITS[value.element] // 8, 1) * max(value.lanes, 1)
                buffers.append((code.buffer(value.element, count), value, size))
            written(place, values)
        with code.loop("0", str(self._count), 1) as first:
            moving = [code.slot(x) for x in self._zeros(buffers)]
            for slot, value in zip(moving, read(str(self._size - 1)), strict=True):
                code.set(slot, value)
            rounds = code.index("sub", str(self._size - 1), first)
            with code.when(Value(code, rounds, "i64", 1).compare("sgt", 0)):
                with code.loop("0", rounds, 1) as step:
                    place = code.index("sub", str(self._size - 1), step)
                    upper = read(code.index("sub", place, 1))
                    lower = [
                        code.get(slot, x.element, x.lanes)
                        for slot, x in zip(moving, upper, strict=True)
                    ]
                    goes_on, stays = self._in_order(upper, lower)
                    written(place, stays)
                    for slot, value in zip(moving, goes_on, strict=True):
                        code.set(slot, value)
            found = [
                code.get(slot, x.element, x.lanes)
                for slot, (_, x, _) in zip(moving, buffers, strict=True)
            ]
            put(first, found)

    def _zeros(self, buffers: Sequence[tuple[str, Value, int]]) -> list[Value]:
        code = self._code
        return [code.widened(code.number(0, x.element), x.lanes) for _, x, _ in buffers]

    def _with_key(self, values: Sequence[Value]) -> list[Value]:
        """The values of an element, and its key, if elements are compared by a key that
        is not one of the values."""
        if self._key is None:
            return list(values)
        pairs = [x for x in values for _ in range(2)]
        made = on_elements(self._code, self._op.comparator.block, pairs)[self._key[0]]
        return [*values, self._code.widened(made, values[0].lanes)]

    def _in_order(
        self, upper: Sequence[Value], lower: Sequence[Value]
    ) -> tuple[list[Value], list[Value]]:
        """Two elements, exchanged if the second one comes before the first one."""
        code = self._code
        if self._key is None:
            comes = self._before(lower, upper)
        else:
            _, is_descending = self._key
            keys = lower[-1], upper[-1]
            first, second = keys[::-1] if is_descending else keys
            if first.is_float:  # as in NumPy's order, NaN is larger than all others
                comes = first.compare("ult", second) & ~first.is_nan
            else:
                comes = first.compare(self._less, second)
        pairs = list(zip(upper, lower, strict=True))
        return (
            [code.select(comes, y, x) for x, y in pairs],
            [code.select(comes, x, y) for x, y in pairs],
        )


class Insertion(_Sort):
    """Keeps the first elements in the results."""

    def _column(self, sources: Side, results: Side) -> None:
        code = self._code
        self._put(results, "0", self._taken(sources, "0", 1))
        if self._count > 1:
            with code.loop("1", str(self._count), 1) as place:
                one = self._taken(sources, place, 1)
                self._put(results, place, one)
                self._settle(results, place, one)
        start = self._count
        for lanes in (self._most_lanes(), 1):
            stop = start + (self._size - start) // lanes * lanes
            if stop > start:
                with code.loop(str(start), str(stop), lanes) as place:
                    self._insert_some(sources, results, place, lanes)
            start = stop

    def _insert_some(
        self, sources: Side, results: Side, place: str, lanes: int
    ) -> None:
        code, last = self._code, str(self._count - 1)
        some = self._taken(sources, place, lanes)
        comes = self._before(some, self._taken(results, last, 1))
        with code.when(any_lane(comes)):
            with code.loop("0", str(lanes), 1) as lane:
                at = code.index("add", place, lane)
                one = self._taken(sources, at, 1)
                with code.when(self._before(one, self._taken(results, last, 1))):
                    self._put(results, last, one)
                    if self._count > 1:
                        self._settle(results, last, one)


class Merging(_Sort):
    """Sorts all elements in two buffers for each column: first come the first buffers
    of all columns, then the second ones. The results of all elements are one of the
    buffers if they are contiguous and no operand is in their memory."""

    def __init__(self, op: SortOp, arrays: Sequence[Array]):
        super().__init__(op, arrays)
        self._room = self._size
        results = arrays[self._inputs :]
        self._sorts_results = self._count == self._size and all(
            x.strides[-1] == x.itemsize
            and not any(np.may_share_memory(x, y) for y in arrays[: self._inputs])
            for x in results
        )
        self.buffers = [self._size] * (1 if self._sorts_results else 2)

    @property
    def _rounds(self) -> int:
        """How often all runs are merged."""
        return (-(-self._room // RUN) - 1).bit_length()

    def _column(self, sources: Side, results: Side) -> None:
        sides = self._sides(sources)
        if self._sorts_results:
            sides = [sides[0], results] if self._rounds % 2 else [results, sides[0]]
        self._copy_first(self._sorted(sources, sides, str(self._size)), results)

    def _sides(self, sources: Side) -> Sequence[Side]:
        """The first buffer of each column, and the second buffer of each column."""
        code, count = self._code, self._inputs
        types: list[Array] = [np.empty(1, x.dtype) for _, x in sources]
        return [
            [(code.word(first + n), type) for n, type in enumerate(types)]
            for first in range(2 * count, (2 + len(self.buffers)) * count, count)
        ]

    def _sorted(self, sources: Side, sides: Sequence[Side], size: str) -> Side:
        """Sorts the first `size` elements into one of the sides, and returns it."""
        self._make_runs(sources, sides[0], size)
        rounds = self._rounds
        if rounds:
            with self._code.loop("0", str(rounds), 1) as number:
                runs, longer = (
                    self._either(number, *each) for each in (sides, sides[::-1])
                )
                length = self._code.index("shl", str(RUN), number)
                self._merge_runs(runs, longer, length, size)
        return sides[rounds % 2]

    def _copy_first(self, source: Side, to: Side) -> None:
        if source is to:
            return
        with self._code.loop("0", str(self._count), 1) as place:
            self._put(to, place, self._taken(source, place, 1))

    def _either(self, number: str, evens: Side, odds: Side) -> Side:
        """`evens` if `number` is even, otherwise `odds`."""
        is_odd = self._code.name(f"trunc i64 {number} to i1")
        return [
            (self._code.name(f"select i1 {is_odd}, ptr {odd}, ptr {even}"), array)
            for (even, array), (odd, _) in zip(evens, odds, strict=True)
        ]

    def _make_runs(self, sources: Side, runs: Side, size: str) -> None:
        """Copies elements, and sorts runs of `RUN` elements."""
        code = self._code
        with code.loop("0", size, RUN) as start:
            run = [(code.moved(p, start, x.itemsize), x) for p, x in runs]
            self._put(run, "0", self._taken(sources, start, 1))
            more = code.index("sub", code.smaller(start, RUN, size), start)
            with code.when(self._number(more).compare("sgt", 1)):
                with code.loop("1", more, 1) as place:
                    at = code.index("add", start, place)
                    one = self._taken(sources, at, 1)
                    self._put(run, place, one)
                    self._settle(run, place, one)

    def _merge_runs(self, runs: Side, longer: Side, length: str, size: str) -> None:
        """Merges each pair of runs of `length`. The last runs may be shorter."""
        code = self._code
        with code.loop("0", size, code.index("shl", length, 1)) as start:
            middle = code.smaller(start, length, size)
            stop = code.smaller(middle, length, size)
            self._merge(runs, longer, start, (middle, stop), stop)

    def _merge(
        self, runs: Side, longer: Side, start: str, stops: tuple[str, str], end: str
    ) -> None:
        """Merges two runs up to position `end`. The first starts at `start`; the runs
        stop at the positions `stops`."""
        code = self._code
        middle, stop = (self._number(x) for x in stops)
        last = stop - 1  # the second run is read even if it is used up
        slots = [code.slot(x) for x in (self._number(start), middle)]
        with code.loop(start, end, 1) as place:
            left, right = (code.get(x, "i64", 1) for x in slots)
            heads = left, right.call("smin", last)
            xs, ys = (self._taken(runs, x.text, 1) for x in heads)
            is_next = left.compare("sge", middle) | self._before(ys, xs)
            takes_right = is_next & right.compare("slt", stop)
            both = zip(xs, ys, strict=True)
            one = [code.select(takes_right, y, x, random=True) for x, y in both]
            self._put(longer, place, one)
            step = takes_right.cast("zext", "i64")
            code.set(slots[0], left + 1 - step)
            code.set(slots[1], right + step)

    def _number(self, index: str) -> Value:
        return Value(self._code, index, "i64", 1)


class Selection(Merging):
    """Keeps the first elements of a column in its first buffer, in order, and appends
    elements that come before the last of them. When the buffer is full, sorts the
    appended elements and merges them with the others."""

    def __init__(self, op: SortOp, arrays: Sequence[Array]):
        super().__init__(op, arrays)
        self._lanes = self._most_lanes()
        self._room = self._count + self._lanes  # for appended elements
        self._sorts_results = False
        self.buffers = [self._count + self._room] * 2

    def _column(self, sources: Side, results: Side) -> None:
        sides = self._sides(sources)
        first = self._count + (self._size - self._count) % self._lanes
        self._copy_first(self._sorted(sources, sides, str(first)), sides[0])
        if first < self._size:
            self._find(sources, sides, str(first))
        self._copy_first(sides[0], results)

    def _find(self, sources: Side, sides: Sequence[Side], first: str) -> None:
        """Finds the first elements of the kept ones and of all from `first` on."""
        code, kept, last = self._code, sides[0], str(self._count - 1)
        added = [
            [(code.moved(p, str(self._count), x.itemsize), x) for p, x in side]
            for side in sides
        ]
        length = code.slot(self._number("0"))
        with code.loop(first, str(self._size), self._lanes) as place:
            some = self._taken(sources, place, self._lanes)
            comes = self._before(some, self._taken(kept, last, 1))
            with code.when(any_lane(comes)):
                with code.loop("0", str(self._lanes), 1) as lane:
                    one = self._taken(sources, code.index("add", place, lane), 1)
                    with code.when(self._before(one, self._taken(kept, last, 1))):
                        end = code.get(length, "i64", 1)
                        self._put(added[0], end.text, one)
                        code.set(length, end + 1)
            end = code.get(length, "i64", 1)
            is_full = end.compare("sgt", self._room - self._lanes)
            is_last = self._number(place).compare("sge", self._size - self._lanes)
            with code.when((is_full | is_last) & end.compare("sgt", 0)):
                self._keep_first(sides, added, end)
                code.set(length, self._number("0"))

    def _keep_first(
        self, sides: Sequence[Side], added: Sequence[Side], length: Value
    ) -> None:
        found = self._sorted(added[0], added, length.text)
        runs, longer = sides if found is added[0] else sides[::-1]
        self._copy_first(sides[0], runs)
        stop = (length + self._count).text
        self._merge(runs, longer, "0", (str(self._count), stop), str(self._count))
        self._copy_first(longer, sides[0])
