"""Returns large results without a copy: each call computes into another block.

    y = run(x)      in the program's block 1, which the caller owns from now on
    z = run(x)      in block 2, as y is still alive
    del y
    w = run(x)      in block 1 again

A caller owns a block as long as any array in it lives, including views of views. The
number of blocks of a result is one more than callers own at the same time.
"""

import weakref
from typing import Any

import numpy as np

from ..support.arrays import Array
from ..support.slots import Slot
from .allocators.host import aligned_bytes
from .pool import ALIGNMENT

LEAST = 1 << 19
"""The minimum bytes of a result for which relocating calls is faster than a copy."""


class _Loan:
    """The object that the arrays in a block are based on; it lives as long as any of
    them.

    NumPy bases a view of a view on the array at the end of the chain. Views of a block
    would therefore keep the block's memory alive, but not the block.
    """

    __slots__ = ("__array_interface__", "__weakref__", "_block")

    def __init__(self, block: Array):
        self.__array_interface__: dict[str, Any] = block.__array_interface__
        self._block = block


class HandedOut:
    """The blocks that a result of a program is computed into, one for each call."""

    def __init__(self, slot: Slot, first: Array):
        """`first` has the bytes of a block that is never dropped."""
        self._slot = slot
        self.block = first
        """The block of the last call."""
        self._blocks = [first]
        self._loans: list[tuple[Array, weakref.ref[_Loan]]] = []

    def hand_out(self) -> Array:
        """Returns the latest result as an array that the caller owns."""
        loan = _Loan(self.block)
        self._loans.append((self.block, weakref.ref(loan)))
        array: Array = np.asarray(loan)
        return array.view(self._slot.dtype).reshape(self._slot.shape)

    def switch_block(self) -> bool:
        """Switches the block if a caller owns it; returns whether it did."""
        self._loans = [each for each in self._loans if each[1]() is not None]
        taken = {id(block) for block, _ in self._loans}
        if id(self.block) not in taken:
            return False
        idle = [block for block in self._blocks if id(block) not in taken]
        if not idle:
            idle = [aligned_bytes(self.block.size, ALIGNMENT)]
            self._blocks += idle
        self.block = idle[0]
        # Keep callers' blocks, one more, and the first for the next calls.
        kept = taken | {id(block) for block in (self._blocks[0], idle[0], idle[-1])}
        self._blocks = [block for block in self._blocks if id(block) in kept]
        return True

    @property
    def array(self) -> Array:
        """The current block as an array of the result's type and shape."""
        return np.ndarray(self._slot.shape, self._slot.dtype, self.block)
