"""Returns large results without a copy: each call computes into memory of its own.

    y = run(x)      in the program's block 1, which is the caller's now
    z = run(x)      in block 2, as y is still there
    del y
    w = run(x)      in block 1 again

A caller has a block as long as an array in it lives, be it a view of a view. There are
as many blocks as a caller has results of one argument at a time, and one more.
"""

import weakref
from typing import Any

import numpy as np

from ..support.arrays import Array
from ..support.slots import Slot
from .allocators.host import aligned_bytes
from .pool import ALIGNMENT

LEAST = 1 << 19
"""Bytes of a result that takes longer to copy than calls take to follow it."""


class _Loan:
    """What arrays in a block are made from, so it lives as long as one of them.

    NumPy takes an array that has no array below it for the base of all that is made of
    it; it would look through a block to its memory.
    """

    __slots__ = ("__array_interface__", "__weakref__", "_block")

    def __init__(self, block: Array):
        self.__array_interface__: dict[str, Any] = block.__array_interface__
        self._block = block


class HandedOut:
    """The blocks that a result of a program is computed into, one in each call."""

    def __init__(self, slot: Slot, first: Array):
        """`first` has the bytes of a block that stays."""
        self._slot = slot
        self.block = first
        """That of the last call."""
        self._blocks = [first]
        self._loans: list[tuple[Array, weakref.ref[_Loan]]] = []

    def hand_out(self) -> Array:
        """What was computed last, for a caller."""
        loan = _Loan(self.block)
        self._loans.append((self.block, weakref.ref(loan)))
        array: Array = np.asarray(loan)
        return array.view(self._slot.dtype).reshape(self._slot.shape)

    def change(self) -> bool:
        """Makes sure that no caller has the block; returns whether it is another."""
        self._loans = [each for each in self._loans if each[1]() is not None]
        taken = {id(block) for block, _ in self._loans}
        if id(self.block) not in taken:
            return False
        idle = [block for block in self._blocks if id(block) not in taken]
        if not idle:
            idle = [aligned_bytes(self.block.size, ALIGNMENT)]
            self._blocks += idle
        self.block = idle[0]
        # One more than callers have, and the first, stay for the next calls.
        kept = taken | {id(block) for block in (self._blocks[0], idle[0], idle[-1])}
        self._blocks = [block for block in self._blocks if id(block) in kept]
        return True

    @property
    def array(self) -> Array:
        """The block as the program sees it."""
        return np.ndarray(self._slot.shape, self._slot.dtype, self.block)
