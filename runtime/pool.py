"""A device's memory, and the workspace that kernels on the device share."""

from math import prod

import numpy as np

from tensorplan.dialects.tgraph.base import Shape
from tensorplan.runtime.dtypes import Array, DType

ALIGNMENT = 64
"""Bytes: a cache line, and what DLPack consumers expect of a pointer."""


class Pool:
    """One aligned block of a device's memory. All devices live in host memory."""

    def __init__(self, device: str, size: int, alignment: int = ALIGNMENT):
        """`size` and `alignment` are in bytes; `alignment` is a power of two."""
        self.device = device
        self.alignment = alignment
        block = np.empty(size + alignment, np.uint8)
        start = -block.ctypes.data % alignment
        self.memory: Array = block[start : start + size]

    @property
    def bytes(self) -> int:
        return self.memory.nbytes

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


class Scratch:
    """Memory that a kernel needs while it runs. Kernels run one after the other, so all
    of a device's share one block: between kernels its contents are lost.

    Views are handed out while kernels are made. A request that does not fit moves the
    workspace to a larger block; what was handed out before stays valid in the old one,
    and `pool` tells its owner to make those kernels again.
    """

    def __init__(self, device: str):
        self.pool = Pool(device, 0)
        self.is_used = False
        self.mark = 0

    @property
    def bytes(self) -> int:
        return self.pool.bytes

    def reset(self) -> None:
        """Starts the next kernel: the whole block is free again."""
        self.is_used = False
        self.mark = 0

    def take(self, shape: Shape, dtype: DType) -> Array:
        """A C-contiguous array for the current kernel, distinct from its others.

        A kernel that is done with its latest arrays sets `mark` back to what it was
        before it took them.
        """
        start = self.mark
        size = prod(shape) * dtype.itemsize
        self.is_used = True
        self.mark += -(-size // ALIGNMENT) * ALIGNMENT
        if self.mark > self.pool.bytes:
            self.pool = Pool(self.pool.device, self.mark)
        return self.pool.view(start, dtype, shape)
