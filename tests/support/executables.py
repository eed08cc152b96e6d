"""Arrays for programs to run on, and comparison of their results."""

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.runtime.executor import Executable


def inputs(executable: Executable) -> list[Array]:
    random = np.random.default_rng(0)
    return [
        (0.1 * random.standard_normal(slot.shape)).astype(slot.dtype)
        for slot in executable.inputs
    ]


def run(executable: Executable, times: int = 1) -> list[Array]:
    """Runs `executable` repeatedly on the same arrays; returns the last results.
    Variables keep their contents from run to run."""
    arrays = inputs(executable)
    results: list[Array] = []
    for _ in range(times):
        results = executable(*arrays)
    return results


def counted(module: ModuleOp) -> list[np.ndarray]:
    """Inputs with the elements -3, -2, -1, ..."""
    return [
        np.arange(-3, int(np.prod(i.shape)) - 3, dtype=i.dtype).reshape(i.shape)
        for i in signature(module).inputs
    ]


def assert_same(got: list[np.ndarray], want: list[np.ndarray]) -> None:
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


class Dlpack:
    """Exposes an array by DLPack only, as tensors of other libraries do."""

    def __init__(self, array: Array):
        self.array = array

    def __dlpack__(self, **how: object) -> object:
        return self.array.__dlpack__(**how)  # pyright: ignore

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()
