"""Copies constants into the layouts that kernels want, once.

As ONNX Runtime prepacks initializers, OpenVINO reorders a model's constants, and
PyTorch Inductor packs what it has frozen. All of these do so for what is known not to
change; here that is `memref.global`s, and arguments with `tgraph.parameter` while they
are bound to one array. XLA, which knows of none, packs in every run. Whoever changes
the contents of a parameter has the same copies filled again.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from ..support.arrays import Array, address


class Prepacked:
    """The copies of arrays in one memory, whose contents stay as they are.

    Programs that are clones share it. Who looks for a copy, or makes one, holds `lock`.
    """

    def __init__(self, memory: Array):
        self.lock = Lock()
        self._memory = memory
        self._copies: dict[object, list[tuple[Any, Array]]] = {}
        self._fills: list[Callable[[], object]] = []

    def holds(self, array: Array) -> bool:
        return np.may_share_memory(array, self._memory)

    def copies_of(self, array: Array, kernels: str) -> list[tuple[Any, Array]]:
        """Layouts, as these kernels describe them, with the copies in them. Who makes
        another one appends it."""
        key = kernels, address(array), array.shape, array.strides
        return self._copies.setdefault(key, [])

    def fill(self, copying: Callable[[], object]) -> None:
        """Copies to a new one."""
        copying()
        self._fills.append(copying)

    def refill(self) -> None:
        """Copies to all of them again, as the contents have changed."""
        with self.lock:
            for copying in self._fills:
                copying()

    @property
    def bytes(self) -> int:
        with self.lock:
            kinds = self._copies.values()
            return sum(x.nbytes for copies in kinds for _, x in copies)

    @property
    def aside(self) -> "Measured":
        """For kernels that are looked at and then thrown away."""
        return Measured(self._memory)


class Measured(Prepacked):
    """Copies of which only the size counts: nobody fills them."""

    def fill(self, copying: Callable[[], object]) -> None:
        pass
