"""A device's memory, and the scratch memory of the kernels on the device."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property
from itertools import count
from math import prod
from threading import RLock
from typing import Any

import numpy as np

from ..support.arrays import Array, DType, Shape
from ..support.choices import ChoiceError
from .allocators import ALLOCATORS, Allocator, HostMemory, Regions
from .allocators.host import aligned_bytes
from .prepacking import Prepacked

ALIGNMENT = 64
"""In bytes: a cache line, and what DLPack consumers expect of a pointer."""


_NOTHING = np.empty(0, np.uint8)

UNLIMITED = 1 << 47
"""Bytes: more than a process can address."""


class Pool:
    """A device's memory: an arena for buffers with a planned offset, and the regions of
    an allocator for all other buffers. All devices live in host memory.

    Programs can share a pool, as MXNet's executors do: the arena is as large as the
    largest program needs. The programs run one at a time, as each holds `lock` while it
    runs.
    """

    _numbers = count()

    def __init__(
        self,
        device: str,
        size: int,
        alignment: int = ALIGNMENT,
        *,
        allocator: str = "bfc",
        limit: int = UNLIMITED,
    ):
        """`size` and `alignment`, a power of two, are those of the arena, in bytes.
        `limit` is the maximum number of bytes of `allocator`, a name in `ALLOCATORS`.
        """
        if allocator not in ALLOCATORS:
            raise ChoiceError("allocator", allocator, ALLOCATORS)
        self.device = device
        self.alignment = alignment
        self.limit = limit
        self.lock = RLock()
        self.number = next(self._numbers)
        """Locks of several pools are acquired in ascending order of this number."""
        self.memory: Array = aligned_bytes(size, alignment)
        self._host = HostMemory()
        self._kind = ALLOCATORS[allocator]
        self._allocator_name = allocator

    def new_like(self) -> "Pool":
        """Returns an empty pool of the same kind."""
        name = self._allocator_name
        return Pool(self.device, 0, self.alignment, allocator=name, limit=self.limit)

    @property
    def bytes(self) -> int:
        """The bytes of the arena."""
        return self.memory.nbytes

    @cached_property
    def allocator(self) -> Allocator[Any]:
        """The allocator of buffers without a planned offset, created on first use."""
        return self._kind(Regions(self._host, self.limit, self.device))

    def region(self, address: int) -> tuple[int, Array]:
        """Returns the start and the bytes of the region that contains `address`, an
        address from `allocator`."""
        return self._host.region(address)

    def reserve(self, size: int, alignment: int) -> None:
        """Makes the arena at least `size` bytes large. If the arena has to grow,
        `memory` is replaced, and the contents are lost."""
        if size <= self.bytes and alignment <= self.alignment:
            return
        self.alignment = max(alignment, self.alignment)
        self.memory = aligned_bytes(max(size, self.bytes), self.alignment)

    def view(self, offset: int, dtype: DType, shape: Shape) -> Array:
        """A C-contiguous array at `offset` bytes from the start of the arena.

        Raises `ValueError` if the array exceeds the arena.
        """
        size = prod(shape) * dtype.itemsize
        if not 0 <= offset <= self.bytes - size:
            raise ValueError(
                f"{size} bytes at offset {offset} do not lie in the pool of "
                f"{self.bytes} bytes on {self.device}"
            )
        return np.ndarray(shape, dtype, self.memory, offset)


def exclusive(pools: Iterable[Pool]) -> AbstractContextManager[object]:
    """A context manager that holds the locks of all `pools`, so that only one program
    at a time uses them. Without pools, it holds a lock of its own."""
    in_order = sorted(set(pools), key=lambda pool: pool.number)
    locks = [pool.lock for pool in in_order] or [RLock()]
    return locks[0] if len(locks) == 1 else _Together(locks)


class _Together:
    """Acquires and releases several locks together."""

    def __init__(self, locks: Sequence[RLock]):
        self._locks = locks

    def __enter__(self) -> None:
        with ExitStack() as stack:  # releases acquired locks if interrupted
            for lock in self._locks:
                stack.enter_context(lock)
            stack.pop_all()

    def __exit__(self, *_: object) -> None:
        for lock in self._locks:
            lock.release()


class Scratch:
    """The memory that kernels need while they run: the workspace that the plan reserves
    for the operation, and a block for what does not fit into it. Kernels run one after
    the other, so all kernels of a device share one block, whose contents are lost
    between kernels.

    Kernels take views when they are compiled. A request that does not fit moves the
    workspace to a larger block. Views that were taken before stay valid in the old
    block; `pool` tells the owner to compile those kernels again.
    """

    def __init__(self, device: str, threads: int = 1, growth: int = 1):
        """`threads` is the number of threads that a kernel may use. A larger block has
        `growth` times the requested bytes, for blocks whose pages are never touched."""
        self.threads = threads
        self._growth = growth
        self.pool = Pool(device, 0)
        self.reset()
        self.planned: Array = _NOTHING
        """The planned workspace, in bytes, of the kernel that is being compiled."""
        self.constants: Sequence[Prepacked] = ()
        """The memory that the kernel being compiled reads and that no run changes."""

    @property
    def bytes(self) -> int:
        """The bytes of the block."""
        return self.pool.bytes

    def release(self) -> None:
        """Frees the block when no kernel uses it any longer."""
        self.pool = Pool(self.pool.device, 0)
        vars(self).pop("probe", None)

    def reset(self) -> None:
        """Starts the next kernel, for which all scratch memory is free."""
        self.is_used = False
        self.mark = 0
        self.peak = 0
        """The kernel's peak bytes, in `planned` and in the block."""

    @cached_property
    def probe(self) -> "Scratch":
        """Scratch for kernels that are compiled only to be inspected."""
        return Scratch(self.pool.device, growth=2)

    @contextmanager
    def in_one_thread(self) -> Generator[None]:
        """For the parts of a kernel, each of which one thread runs."""
        threads, self.threads = self.threads, 1
        try:
            yield
        finally:
            self.threads = threads

    def constant(self, array: Array) -> Prepacked | None:
        """The packed copies of `array`, or None if a run may change it."""
        return next((x for x in self.constants if x.holds(array)), None)

    def take(self, shape: Shape, dtype: DType) -> Array:
        """A C-contiguous array for the current kernel, disjoint from its other arrays.

        A kernel that no longer needs its latest arrays sets `mark` back to its value
        before it took them.
        """
        start = self.mark
        size = prod(shape) * dtype.itemsize
        self.mark += -(-size // ALIGNMENT) * ALIGNMENT
        self.peak = max(self.peak, self.mark)
        if start + size <= self.planned.nbytes:
            return np.ndarray(shape, dtype, self.planned, start)
        self.is_used = True
        if self.mark > self.pool.bytes:
            self.pool = Pool(self.pool.device, self._growth * self.mark)
        return self.pool.view(start, dtype, shape)
