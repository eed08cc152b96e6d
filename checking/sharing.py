"""Finds buffers that share bytes, for plan-check, as bit sets."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from xdsl.ir import SSAValue

from .buffers import ArenaBuffer


class Sharing(Protocol):
    """Tells which buffers share bytes."""

    def with_(self, number: int) -> int:
        """The other buffers that share bytes with buffer `number`, as bits."""
        ...


class Overlaps:
    """Finds the buffers that share bytes from their offsets and sizes."""

    def __init__(
        self, buffers: Sequence[ArenaBuffer], arenas: Mapping[SSAValue, tuple[int, int]]
    ):
        self._bytes = [(b.pool, b.offset, b.offset + b.size) for b in buffers]
        self._sets: dict[tuple[SSAValue, int, int], int] = {}
        for first, count in arenas.values():
            self._add([n for n in range(first, first + count) if buffers[n].size])

    def with_(self, number: int) -> int:
        """The other buffers that share bytes with buffer `number`, as bits."""
        return self._sets.get(self._bytes[number], 0) & ~(1 << number)

    def _add(self, numbers: Sequence[int]) -> None:
        by_end = sorted(numbers, key=lambda n: self._bytes[n][2])
        ended = index = 0
        begun: dict[tuple[SSAValue, int, int], int] = {}
        for number in sorted(numbers, key=lambda n: self._bytes[n][1]):
            key = self._bytes[number]
            while self._bytes[by_end[index]][2] <= key[1]:
                ended |= 1 << by_end[index]
                index += 1
            begun.setdefault(key, ended)
        started = index = 0
        by_start = sorted(numbers, key=lambda n: self._bytes[n][1])
        for key in sorted(begun, key=lambda key: key[2]):
            while index < len(by_start) and self._bytes[by_start[index]][1] < key[2]:
                started |= 1 << by_start[index]
                index += 1
            self._sets[key] = started & ~begun[key]
