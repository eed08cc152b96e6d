"""Defines what a running program consists of: memory, arrays in it, and steps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...support.arrays import Array, DType, Shape, address
from ..calls import Call
from ..pool import Pool, Scratch
from ..prepacking import Prepacked

COPIES = -1
"""The stream of copies that other devices' memory is read by: they run beside the
operations of their device, as by an engine of their own."""


class MemoryBlock:
    """A block that buffers lie in: a pool, a constant, or an argument's array."""

    def __init__(
        self,
        array: Array,
        name: str,
        device: str = "",
        prepacked: Prepacked | None = None,
        home: Array | None = None,
    ):
        self.array = array
        self.name = name
        self.device = device
        """Empty for constants, which are everywhere."""
        self.prepacked = prepacked
        """Copies for kernels; None if runs may find other contents."""
        self.home = home
        """The program's own memory for an argument, which calls are made for; they
        follow `array` (relocation.py). Without, they are made anew for another."""

    @property
    def array(self) -> Array:
        """What the memory is: a C-contiguous array of any type."""
        return self._array

    @array.setter
    def array(self, array: Array) -> None:
        self.place(array, address(array))

    def place(self, array: Array, start: int) -> None:
        """Makes an array the memory, whose address is `start`."""
        self._array = array
        self.start = start
        self._bytes: Array | None = None

    @property
    def bytes(self) -> Array:
        if self._bytes is None:
            self._bytes = self._array.reshape(-1).view(np.uint8)
        return self._bytes

    @property
    def moves(self) -> bool:
        """Whether calls follow it."""
        return self.home is not None and self.prepacked is None

    @property
    def is_constant(self) -> bool:
        return not self.device


@dataclass(eq=False)
class MemoryRange:
    """The part of a memory that one allocation (or view of an arena) is. In bytes."""

    memory: MemoryBlock
    start: int
    size: int
    name: str = ""
    """As in the IR, `%a`; empty if it has none there."""
    origin: int | None = None
    """The byte of the memory that the offsets of views count from, if not `start`."""

    @property
    def stop(self) -> int:
        return self.start + self.size

    @property
    def bytes(self) -> Array:
        return self.memory.bytes[self.start : self.stop]


@dataclass(frozen=True)
class View:
    """An array in a buffer. Offset and strides are in bytes."""

    buffer: MemoryRange
    dtype: DType
    shape: Shape
    offset: int
    strides: Shape

    def array(self) -> Array:
        buffer = self.buffer
        return np.ndarray(
            self.shape,
            self.dtype,
            buffer.memory.bytes,
            buffer.start + self.offset,
            self.strides,
        )


@dataclass(eq=False)
class Step:
    """Makes the calls of an operation, for the memory that arguments are bound to."""

    make: Callable[[], list[Call]]
    arguments: frozenset[MemoryBlock] = frozenset()
    """Those that the calls touch."""
    scratch: Scratch | None = None
    device: str = ""
    stream: int = 0
    """`COPIES` for a copy from another device for which no stream is named."""
    reads: Sequence[View] = ()
    """Without the inputs that an operation reads for their shape only."""
    writes: Sequence[View] = ()
    regions: "Sequence[Sequence[Step]]" = ()
    """What the calls of a loop or a branch run: the steps of each of its regions."""
    calls: list[Call] = field(default_factory=list[Call])
    workspace: Pool | None = None
    """What `scratch` gave the calls views of, if they use any."""
    is_fixed: bool = False
    """Whether the calls can't follow arguments that move: they are made anew."""

    def remake(self) -> None:
        self.calls = self.make()
        used = self.scratch is not None and self.scratch.is_used
        self.workspace = self.scratch.pool if self.scratch and used else None

    def surround(self, wrap: Callable[[list[Call]], list[Call]]) -> None:
        """Changes the calls, now and whenever they are made."""
        make = self.make
        self.make = lambda: wrap(make())
        self.calls = wrap(self.calls)
        self.is_fixed = True

    @property
    def is_outdated(self) -> bool:
        """Whether the workspace has moved since the calls were made."""
        return self.workspace is not None and (
            self.scratch is None or self.workspace is not self.scratch.pool
        )
