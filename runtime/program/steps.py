"""The parts of a program: memory blocks, buffers, views, and steps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...support.arrays import Array, DType, Shape, address
from ..calls import Call
from ..pool import Pool, Scratch
from ..prepacking import Prepacked

COPIES = -1
"""The stream number of copies that read the memory of another device. They run
concurrently with the other steps of their device, as on a copy engine.
"""


class MemoryBlock:
    """A block that contains buffers: a pool's arena, an allocator's region, a constant,
    or an argument's array."""

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
        """The memory's device; empty for constants, which all devices can read."""
        self.prepacked = prepacked
        """Packed copies for kernels; None if the contents may change between runs."""
        self.home = home
        """The program's own memory of the block, for which calls are made; they are
        then relocated to `array` (relocation.py). If None, another array requires
        making calls anew."""

    @property
    def array(self) -> Array:
        """The contents: a C-contiguous array of any type."""
        return self._array

    @array.setter
    def array(self, array: Array) -> None:
        self.place(array, address(array))

    def place(self, array: Array, start: int) -> None:
        """Makes `array`, at the address `start`, the memory of this block."""
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
        """Whether calls can be relocated when this memory moves."""
        return self.home is not None and self.prepacked is None

    @property
    def is_constant(self) -> bool:
        return not self.device


@dataclass(eq=False)
class MemoryRange:
    """The bytes of a memory block that an allocation or a view of an arena has."""

    memory: MemoryBlock
    start: int
    size: int
    name: str = ""
    """The SSA name, such as `%a`; empty if the IR has none."""
    origin: int | None = None
    """The byte that view offsets are relative to, if it is not `start`."""
    arena: "MemoryRange | None" = None
    """The arena that it is a part of."""

    @property
    def stop(self) -> int:
        return self.start + self.size

    @property
    def bytes(self) -> Array:
        return self.memory.bytes[self.start : self.stop]


@dataclass(frozen=True, slots=True)
class Arena:
    """A range of a pool's memory that is allocated in a half-open range of steps.
    Arenas share bytes if they are not allocated at the same time."""

    memory: MemoryBlock
    start: int
    size: int
    steps: tuple[int, int]


@dataclass(frozen=True)
class View:
    """An array in a buffer. `offset` and `strides` are in bytes."""

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
    """An operation's calls, and how to make them for the arguments' memory."""

    make: Callable[[], list[Call]]
    arguments: frozenset[MemoryBlock] = frozenset()
    """The memory of the arguments that the calls access."""
    scratch: Scratch | None = None
    device: str = ""
    stream: int = 0
    """`COPIES` for a copy from another device that names no stream."""
    reads: Sequence[View] = ()
    """Without operands of which the operation reads only the shape."""
    writes: Sequence[View] = ()
    regions: "Sequence[Sequence[Step]]" = ()
    """The steps in each region of a loop or branch, which the step's own call runs."""
    calls: list[Call] = field(default_factory=list[Call])
    workspace: Pool | None = None
    """The pool of `scratch` when the calls were made, if they use it."""
    is_fixed: bool = False
    """Whether the calls cannot be relocated: they are made anew when arguments move."""

    def remake(self) -> None:
        self.calls = self.make()
        used = self.scratch is not None and self.scratch.is_used
        self.workspace = self.scratch.pool if self.scratch and used else None

    def surround(self, wrap: Callable[[list[Call]], list[Call]]) -> None:
        """Wraps the calls, now and whenever they are made anew."""
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
