"""Gathers, and slices at dynamic starts: loops over index vectors, and over windows.

    for each index vector:
        at = whole + its entries, clamped, times the strides
        for many elements of the window at a time:
            window = at                    # or at = window

Gathers write in memory order. If the windows of index vectors are interleaved, like
columns of a matrix, the loops over windows are around those over index vectors, and
many index vectors are looked up at a time.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ....analysis.cost import BYTES_PER_NS
from ....dialects.dtypes import Array
from ....dialects.tgraph.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
)
from ...calls import Call
from ..arrays import copy
from ..jit import llvm
from ..jit.records import ArrayRecord, parallel
from ..numpy.indexing import starts_and_windows
from ..parts import cut
from .code import LlvmFunction, Value
from .elements import (
    clamped,
    has_registers,
    load,
    load_at,
    load_element,
    multiples,
    store,
    store_element,
)
from .graphs import NoLoopNest
from .nests import UNROLLED, VECTOR, Loops, merged

FEW = 16
"""The maximum number of index vectors for which the loop is unrolled."""

MOST_OFFSETS = 1024
"""The maximum number of offsets that are computed once for all positions: they fit in a
core's L1 cache.
"""

OPS = (DynamicSliceOp, DynamicUpdateSliceOp, GatherOp)


@dataclass(frozen=True)
class _Windows:
    """The parts of an array that are read or written."""

    whole: Array
    windows: Array
    """The dimensions of index vectors, then those of `whole`."""
    entries: Sequence[Array]
    """For each indexed dimension, an entry of each index vector."""
    dims: Sequence[int]
    batching: Mapping[int, int]
    """Maps batched dimensions of `whole` to dimensions of the index vectors."""
    is_written: bool = False


def calls_of(
    op: GatherOp | DynamicSliceOp | DynamicUpdateSliceOp,
    inputs: Sequence[Array],
    out: Array,
    threads: int,
) -> list[Call]:
    """Raises `NoLoopNest` for element types without a native type."""
    match op:
        case GatherOp():
            at, windows = starts_and_windows(op, inputs[1], out)
            where = _Windows(inputs[0], windows, at.entries, at.dims, at.batching)
            parts = [_moved(part) for part in _parts(where, threads)]
            return parallel(parts, threads)
        case DynamicSliceOp():
            x, *entries = inputs
            return _moved(_Windows(x, out, entries, range(x.ndim), {}))
        case DynamicUpdateSliceOp():
            x, update, *entries = inputs
            moved = _moved(_Windows(out, update, entries, range(x.ndim), {}, True))
            return [*copy(out, x), *moved]


def _parts(where: _Windows, threads: int) -> Sequence[_Windows]:
    """Parts that threads can read concurrently: each has some of the index vectors."""
    whole, windows = where.whole, where.windows
    if windows.ndim == whole.ndim:  # one index vector
        return [where]
    time = 2 * windows.nbytes / BYTES_PER_NS
    _, spans = cut(windows.shape[:1], [1], time, threads)
    along = [where.batching.get(d) == 0 for d in range(whole.ndim)]
    return [
        replace(
            where,
            whole=whole[
                *(span if is_along else slice(None) for is_along in along), ...
            ],
            windows=windows[span],
            entries=[entry[span] for entry in where.entries],
        )
        for span in spans
    ]


def _moved(where: _Windows) -> list[Call]:
    size = where.whole.itemsize
    if size in (1, 2, 4, 8):  # elements are only moved
        whole, windows = (x.view(f"u{size}") for x in (where.whole, where.windows))
        where = replace(where, whole=whole, windows=windows)
    arrays = [where.whole, where.windows, *where.entries]
    if not all(has_registers(x.dtype) for x in arrays):
        raise NoLoopNest
    if not where.windows.size:
        return []
    function = llvm.compiler().function(_Lowering(where).text())
    return [(ArrayRecord(function, arrays), ())]


class _Lowering:
    """The words are the addresses of the whole, of the windows, and of the entries."""

    def __init__(self, where: _Windows):
        self._where = where
        self._code = LlvmFunction()
        whole, windows = where.whole, where.windows
        count = windows.ndim - whole.ndim
        along = [0] * count
        for dim, other in where.batching.items():
            along[other] = whole.strides[dim]
        strides = [(*along, *whole.strides), windows.strides]
        strides += [(*entry.strides, *[0] * whole.ndim) for entry in where.entries]
        columns = list(zip(*strides, strict=True))
        self._batch = merged(windows.shape, range(count), columns)
        self._window = merged(windows.shape, range(count, windows.ndim), columns)
        order = sorted(range(windows.ndim), key=lambda d: -abs(windows.strides[d]))
        self._in_order = merged(windows.shape, order, columns)

    def text(self) -> str:
        words = range(2 + len(self._where.entries))
        pointers = [self._code.word(n) for n in words]
        if self._where.is_written:
            self._write(self._batch, pointers)
        else:
            self._read(self._in_order, pointers)
        return self._code.function()

    def _start(
        self, number: int, pointer: str, step: int, lanes: int, active: int
    ) -> Value:
        """Entries of index vectors, clamped."""
        where, dtype = self._where, self._where.entries[number].dtype
        entry = load(self._code, pointer, step, dtype, lanes, active)
        dim = where.dims[number]
        last = where.whole.shape[dim] - where.windows.shape[dim - where.whole.ndim]
        return clamped(entry, dtype, last)

    def _read(self, loops: Loops, pointers: Sequence[str]) -> None:
        """Loops over index vectors and over windows, in any order."""
        if not any(any(steps[2:]) for _, steps in loops):
            whole, window, *entries = pointers
            self._elements(loops, [self._placed(whole, entries), window])
            return
        *around, (size, steps) = loops
        if steps[1] == self._where.whole.itemsize <= 8:
            if not around:
                self._look_up(size, steps, pointers)
                return
            if size <= MOST_OFFSETS and not any(any(x[2:]) for _, x in around):
                self._look_up_again(around, size, steps, pointers)
                return
        with self._loop(loops[0], pointers) as inner:
            self._read(loops[1:], inner)

    def _look_up(
        self, size: int, steps: Sequence[int], pointers: Sequence[str]
    ) -> None:
        """Copies one element for each index vector, if their windows are contiguous."""
        code, dtype = self._code, self._where.whole.dtype
        lanes = VECTOR // dtype.itemsize
        if dtype.itemsize < 4 or size < lanes:
            for index in code.indices(size, FEW):
                self._some(index, steps, pointers, 1, 1)
            return
        stop = size // lanes * lanes
        with code.loop("0", str(stop), lanes) as index:
            self._some(index, steps, pointers, lanes, lanes)
        if stop < size:
            self._some(str(stop), steps, pointers, lanes, size - stop)

    def _some(
        self,
        index: str,
        steps: Sequence[int],
        pointers: Sequence[str],
        lanes: int,
        active: int,
    ) -> None:
        """Copies elements for index vectors from `index` on, in the first `active` of
        `lanes` lanes."""
        code, dtype = self._code, self._where.whole.dtype
        whole, window, *entries = code.all_moved(pointers, index, steps)
        offset = multiples(code, steps[0], lanes)
        offset += self._starts(entries, steps, lanes, active)
        value = load_at(code, whole, code.widened(offset, lanes), dtype, active)
        store(value, window, dtype.itemsize, dtype, lanes, active)

    def _look_up_again(
        self, around: Loops, size: int, steps: Sequence[int], pointers: Sequence[str]
    ) -> None:
        """Copies elements at many positions, with offsets that are computed once."""
        code, dtype = self._code, self._where.whole.dtype
        offsets = code.buffer("i64", size)
        for index in code.indices(size, FEW):
            entries = code.all_moved(pointers[2:], index, steps[2:])
            first = Value(code, code.index("mul", index, steps[0]), "i64", 1)
            start = first + self._starts(entries, steps, 1, 1)
            code.set(code.moved(offsets, index, 8), start)
        outer = [(n, moves[:2]) for n, moves in around]
        with code.nest(outer, pointers[:2]) as (whole, window):
            for index in code.indices(size, FEW):
                offset = code.get(code.moved(offsets, index, 8), "i64", 1)
                value = load_at(code, whole, offset, dtype, 1)
                at = code.moved(window, index, dtype.itemsize)
                store(value, at, dtype.itemsize, dtype, 1, 1)

    def _starts(
        self, entries: Sequence[str], steps: Sequence[int], lanes: int, active: int
    ) -> Value:
        """The offsets in bytes of windows from the first position."""
        where, total = self._where, self._code.number(0, "i64")
        for number, entry in enumerate(entries):
            start = self._start(number, entry, steps[2 + number], lanes, active)
            total += start * where.whole.strides[where.dims[number]]
        return total

    def _write(self, loops: Loops, pointers: Sequence[str]) -> None:
        """The loops over index vectors, in their order."""
        if loops:
            with self._loop(loops[0], pointers) as inner:
                self._write(loops[1:], inner)
            return
        whole, window, *entries = pointers
        self._elements(self._window, [self._placed(whole, entries), window])

    def _placed(self, whole: str, entries: Sequence[str]) -> str:
        """The address of the window of one index vector."""
        for number, entry in enumerate(entries):
            start = self._start(number, entry, 0, 1, 1).text
            step = self._where.whole.strides[self._where.dims[number]]
            whole = self._code.moved(whole, start, step)
        return whole

    def _elements(self, loops: Loops, pointers: Sequence[str]) -> None:
        """The loops over a window; the last uses vectors if elements are contiguous."""
        dtype = self._where.whole.dtype
        size, steps = loops[-1] if loops else (1, (0, 0))
        if len(loops) > 1 or (loops and set(steps[:2]) != {dtype.itemsize}):
            with self._loop(loops[0], pointers) as inner:
                self._elements(loops[1:], inner)
            return
        narrow = min(VECTOR // dtype.itemsize, 1 << (size - 1).bit_length())
        start = 0
        for lanes in (UNROLLED * narrow, narrow):
            stop = start + (size - start) // lanes * lanes
            if stop > start:
                with self._code.loop(str(start), str(stop), lanes) as index:
                    self._move(pointers, index, lanes, lanes)
            start = stop
        if start < size:
            self._move(pointers, str(start), narrow, size - start)

    @contextmanager
    def _loop(
        self, loop: tuple[int, Sequence[int]], pointers: Sequence[str]
    ) -> Generator[list[str]]:
        size, steps = loop
        with self._code.loop("0", str(size), 1) as index:
            yield self._code.all_moved(pointers, index, steps[: len(pointers)])

    def _move(
        self, pointers: Sequence[str], index: str, lanes: int, active: int
    ) -> None:
        code, dtype = self._code, self._where.whole.dtype
        step = dtype.itemsize
        whole, window = (code.moved(pointer, index, step) for pointer in pointers)
        is_written = self._where.is_written
        source, target = (window, whole) if is_written else (whole, window)
        value = load_element(code, source, step, dtype, lanes, active)
        store_element(value, target, step, dtype, lanes, active)
