"""Copies constants once into the layouts that kernels prefer.

ONNX Runtime prepacks initializers, OpenVINO reorders a model's constants, and PyTorch
Inductor packs frozen parameters. All of these handle only data that is known not to
change: here `memref.global`s, and arguments with `tgraph.parameter` while they are
bound to one array. XLA knows no such arguments and packs them in every run. Code that
changes the contents of a parameter must have its copies refilled.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from ..support.arrays import Array, address


class Prepacked:
    """The packed copies of arrays in one memory, whose contents do not change.

    Clones of a program share it. Hold `lock` to look up or add a copy.
    """

    def __init__(self, memory: Array):
        self.lock = Lock()
        self._memory = memory
        self._copies: dict[object, list[tuple[Any, Array]]] = {}
        self._fills: list[Callable[[], object]] = []

    def holds(self, array: Array) -> bool:
        return np.may_share_memory(array, self._memory)

    def copies_of(self, array: Array, kernels: str) -> list[tuple[Any, Array]]:
        """The layouts in which `kernels` have a copy of `array`, each with the copy.
        Append a new copy to this list."""
        key = kernels, address(array), array.shape, array.strides
        return self._copies.setdefault(key, [])

    def fill(self, copying: Callable[[], object]) -> None:
        """Fills a new copy by `copying`, which `refill` calls again."""
        copying()
        self._fills.append(copying)

    def refill(self) -> None:
        """Fills all copies again after the contents have changed."""
        with self.lock:
            for copying in self._fills:
                copying()

    @property
    def bytes(self) -> int:
        with self.lock:
            kinds = self._copies.values()
            return sum(x.nbytes for copies in kinds for _, x in copies)

    @property
    def probe(self) -> "Measured":
        """Copies for kernels that are compiled only to be inspected."""
        return Measured(self._memory)


class Measured(Prepacked):
    """Copies of which only the size matters; they are never filled."""

    def fill(self, copying: Callable[[], object]) -> None:
        pass
