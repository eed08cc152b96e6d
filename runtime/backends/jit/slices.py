"""Runs native calls on slices of arrays in place, without copying the slices.

The calls are made for stand-in memory. Each run computes the address of the slice,
writes it to all places that hold an address of the stand-in, and runs the calls.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ....support.arrays import Array, address, span
from .llvm import Function, compiler
from .records import FOLLOW, TAPE, ArrayRecord, Pointer, Record, Tape, triples


class Slice(NamedTuple):
    """A slice that starts at run-time indices, clamped so that it lies in `source`."""

    source: Array
    starts: Sequence[Array]
    """An integer for each dimension of `source`."""
    stand_in: Array
    """Has the slice's shape and strides, in other memory that is never accessed."""

    @property
    def moving(self) -> Sequence[int]:
        """The dimensions along which the slice is smaller than `source`."""
        sizes = zip(self.source.shape, self.stand_in.shape, strict=True)
        return [d for d, (all, part) in enumerate(sizes) if all > part]


def slice_of(source: Array, starts: Sequence[Array], sizes: Sequence[int]) -> Slice:
    """The slice of these sizes."""
    reach = [(n - 1) * s for n, s in zip(sizes, source.strides, strict=True)]
    memory = np.empty(sum(map(abs, reach)) + source.itemsize, np.uint8)
    first = -sum(min(bytes, 0) for bytes in reach)
    stand_in = np.ndarray(sizes, source.dtype, memory, first, source.strides)
    return Slice(source, starts, stand_in)


class Sliced(ArrayRecord):
    """Records that run on slices."""

    def __init__(self, slices: Sequence[Slice], records: Sequence[Record]):
        self.slices, self.records = slices, records
        arrays: list[Array] = []
        for part in slices:
            arrays += [part.source, *(part.starts[d] for d in part.moving)]
        super().__init__(compiler().function(_text(slices), quick=True), arrays)

    def functions(self) -> Iterator[Function]:
        yield from super().functions()
        for record in self.records:
            yield from record.functions()

    def pointers(self) -> Iterator[tuple[Array, Pointer]]:
        yield from super().pointers()
        for record in self._tape.records:
            yield from record.pointers()

    @cached_property
    def _tape(self) -> Tape:
        return Tape(self.records)

    def _made_words(self) -> Sequence[int]:
        words = list(super()._made_words())
        words += compiler().function(TAPE).address, self._tape.address
        for source, _, stand_in in self.slices:
            sizes = zip(source.shape, stand_in.shape, source.strides, strict=True)
            for all, part, stride in sizes:
                words += (all - part, stride) if all > part else ()
        for part in self.slices:
            listed = triples(self._points(part.stand_in))
            words += len(listed) // 3, *listed
        return words

    def _points(self, memory: Array) -> Iterator[tuple[int, Pointer]]:
        """The pointers into `memory`, each with its offset in bytes from the first
        element, which is not the lowest if a stride is negative."""
        start, stop = span(memory)
        first = address(memory)
        for record in self._tape.records:
            for array, pointer in record.pointers():
                if start <= (at := address(array)) < stop:
                    yield at - first, pointer


def _text(slices: Sequence[Slice]) -> str:
    """The text of the function. Its words: for each slice, the addresses of its source
    and starts; the addresses of `TAPE` and of the tape's words; for each start, its
    maximum and the stride in bytes; for each slice, the number of its targets, and the
    targets."""
    kinds = [[part.starts[d].dtype for d in part.moving] for part in slices]
    arrays = sum(1 + len(kind) for kind in kinds)
    lines: list[str] = []

    def load(name: str, word: int, type: str = "i64") -> None:
        lines.append(f"  %{name}at = getelementptr i64, ptr %words, i64 {word}")
        lines.append(f"  %{name} = load {type}, ptr %{name}at")

    load("function", arrays, "ptr")
    load("tape", arrays + 1, "ptr")
    at, limit = 0, arrays + 2
    for number, kind in enumerate(kinds):
        base = f"base{number}"
        load(base, at)
        for d, dtype in enumerate(kind):
            x = f"s{number}d{d}"
            bits, extended = 8 * dtype.itemsize, "zext" if dtype.kind == "u" else "sext"
            load(f"{x}p", at + 1 + d, "ptr")
            load(f"{x}limit", limit)
            load(f"{x}stride", limit + 1)
            lines.append(f"  %{x}given = load i{bits}, ptr %{x}p")
            wide = f"{x}given"
            if bits < 64:
                wide = f"{x}wide"
                lines.append(f"  %{wide} = {extended} i{bits} %{x}given to i64")
            order = "u" if dtype.kind == "u" else "s"
            lines += [
                f"  %{x}over = icmp {order}gt i64 %{wide}, %{x}limit",
                f"  %{x}low = select i1 %{x}over, i64 %{x}limit, i64 %{wide}",
                f"  %{x}below = icmp slt i64 %{x}low, 0",
                f"  %{x}start = select i1 %{x}below, i64 0, i64 %{x}low",
                f"  %{x}bytes = mul i64 %{x}start, %{x}stride",
                f"  %{x}to = add i64 %{base}, %{x}bytes",
            ]
            base = f"{x}to"
            limit += 2
        at += 1 + len(kind)
        lines.append(f"  %place{number} = add i64 %{base}, 0")
    lines.append(f"  %list0 = getelementptr i64, ptr %words, i64 {limit}")
    for n in range(len(slices)):
        lines += [
            f"  %count{n} = load i64, ptr %list{n}",
            f"  %triples{n} = getelementptr i64, ptr %list{n}, i64 1",
            f"  %failed{n} = call i32 @{{name}}_follow("
            f"ptr %triples{n}, i64 %count{n}, i64 %place{n})",
            f"  %good{n} = icmp eq i32 %failed{n}, 0",
            f"  br i1 %good{n}, label %done{n}, label %failed",
            f"done{n}:",
            f"  %list{n + 1} = getelementptr [3 x i64], ptr %triples{n}, i64 %count{n}",
        ]
    lines += "  %status = call i32 %function(ptr %tape)", "  ret i32 %status"
    lines += "failed:", "  ret i32 1", "}"
    return FOLLOW + "\n".join(["define i32 @{name}(ptr %words) {", "entry:", *lines])
