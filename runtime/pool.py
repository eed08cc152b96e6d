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
"""Bytes: a cache line, and what DLPack consumers expect of a pointer."""


_NOTHING = np.empty(0, np.uint8)

UNLIMITED = 1 << 47
"""Bytes: more than a process can address."""


class Pool:
    """A device's memory: an arena, for what has a planned offset, and apart from it the
    regions of an allocator, for what has none. All devices live in host memory.

    Programs can share a pool (as MXNet's executors do): the arena is as large as the
    largest one needs. They run one after the other, as each holds `lock` meanwhile.
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
        """`size` and `alignment`, a power of two, are those of the arena, in bytes;
        `limit` is that of the allocator, a name in `ALLOCATORS`."""
        if allocator not in ALLOCATORS:
            raise ChoiceError("allocator", allocator, ALLOCATORS)
        self.device = device
        self.alignment = alignment
        self.limit = limit
        self.lock = RLock()
        self.number = next(self._numbers)
        """In the order of which the locks of several are taken."""
        self.memory: Array = aligned_bytes(size, alignment)
        self._host = HostMemory()
        self._kind = ALLOCATORS[allocator]
        self._allocator_name = allocator

    def another(self) -> "Pool":
        """An empty one of the same kind."""
        name = self._allocator_name
        return Pool(self.device, 0, self.alignment, allocator=name, limit=self.limit)

    @property
    def bytes(self) -> int:
        """Of the arena."""
        return self.memory.nbytes

    @cached_property
    def allocator(self) -> Allocator[Any]:
        """What serves all that is not planned."""
        return self._kind(Regions(self._host, self.limit, self.device))

    def region(self, address: int) -> tuple[int, Array]:
        """The start of the region that an address of `allocator` is in; its bytes."""
        return self._host.region(address)

    def reserve(self, size: int, alignment: int = ALIGNMENT) -> None:
        """Makes the arena at least so large. If it was not, `memory` is another then,
        and its contents are lost."""
        if size <= self.bytes and alignment <= self.alignment:
            return
        self.alignment = max(alignment, self.alignment)
        self.memory = aligned_bytes(max(size, self.bytes), self.alignment)

    def view(self, offset: int, dtype: DType, shape: Shape) -> Array:
        """A C-contiguous array at `offset` bytes from the start.

        Raises `ValueError` if it does not lie in the pool.
        """
        size = prod(shape) * dtype.itemsize
        if not 0 <= offset <= self.bytes - size:
            raise ValueError(
                f"{size} bytes at offset {offset} do not lie in the pool of "
                f"{self.bytes} bytes on {self.device}"
            )
        return np.ndarray(shape, dtype, self.memory, offset)


def exclusive(pools: Iterable[Pool]) -> AbstractContextManager[object]:
    """What a program that uses the pools enters to be the only one that does. Without
    pools, only that program enters it."""
    in_order = sorted(set(pools), key=lambda pool: pool.number)
    locks = [pool.lock for pool in in_order] or [RLock()]
    return locks[0] if len(locks) == 1 else _Together(locks)


class _Together:
    """Several locks as one."""

    def __init__(self, locks: Sequence[RLock]):
        self._locks = locks

    def __enter__(self) -> None:
        with ExitStack() as stack:  # releases those taken if it is interrupted
            for lock in self._locks:
                stack.enter_context(lock)
            stack.pop_all()

    def __exit__(self, *_: object) -> None:
        for lock in self._locks:
            lock.release()


class Scratch:
    """Memory that a kernel needs while it runs: the workspace that the plan has for its
    operation, and what does not fit there. Kernels run one after the other, so for that
    all of a device's share one block: between kernels its contents are lost.

    Views are handed out while kernels are made. A request that does not fit moves the
    workspace to a larger block; what was handed out before stays valid in the old one,
    and `pool` tells its owner to make those kernels again.
    """

    def __init__(self, device: str, threads: int = 1, growth: int = 1):
        """`threads` are those that a kernel may use; a larger block has `growth` times
        the bytes that are asked for, where nobody touches them."""
        self.threads = threads
        self._growth = growth
        self.pool = Pool(device, 0)
        self.reset()
        self.planned: Array = _NOTHING
        """The planned workspace of the kernel being made, in bytes."""
        self.constants: Sequence[Prepacked] = ()
        """The memories that the kernel being made reads and no run changes."""

    @property
    def bytes(self) -> int:
        """Of the block."""
        return self.pool.bytes

    def release(self) -> None:
        """Gives the block back, when no kernel uses it any more."""
        self.pool = Pool(self.pool.device, 0)
        vars(self).pop("aside", None)

    def reset(self) -> None:
        """Starts the next kernel: everything is free again."""
        self.is_used = False
        self.mark = 0
        self.most = 0
        """Bytes that the kernel being made takes, in either."""

    @cached_property
    def aside(self) -> "Scratch":
        """For kernels that are looked at and then thrown away."""
        return Scratch(self.pool.device, growth=2)

    @contextmanager
    def in_one_thread(self) -> Generator[None]:
        """For kernels that are parts of one, which threads share."""
        threads, self.threads = self.threads, 1
        try:
            yield
        finally:
            self.threads = threads

    def constant(self, array: Array) -> Prepacked | None:
        """The copies that there are of an array, if no run changes it."""
        return next((x for x in self.constants if x.holds(array)), None)

    def take(self, shape: Shape, dtype: DType) -> Array:
        """A C-contiguous array for the current kernel, distinct from its others.

        A kernel that is done with its latest arrays sets `mark` back to what it was
        before it took them.
        """
        start = self.mark
        size = prod(shape) * dtype.itemsize
        self.mark += -(-size // ALIGNMENT) * ALIGNMENT
        self.most = max(self.most, self.mark)
        if start + size <= self.planned.nbytes:
            return np.ndarray(shape, dtype, self.planned, start)
        self.is_used = True
        if self.mark > self.pool.bytes:
            self.pool = Pool(self.pool.device, self._growth * self.mark)
        return self.pool.view(start, dtype, shape)
