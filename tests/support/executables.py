"""Compiled programs, run on random arrays."""

import numpy as np

from tensorplan.runtime.dtypes import Array
from tensorplan.runtime.executor import Executable


def inputs(executable: Executable) -> list[Array]:
    random = np.random.default_rng(0)
    return [
        (0.1 * random.standard_normal(slot.shape)).astype(slot.dtype)
        for slot in executable.inputs
    ]


def run(executable: Executable, times: int = 1) -> list[Array]:
    """The results of the last of some runs, each with the variables of the last."""
    arrays = inputs(executable)
    results: list[Array] = []
    for _ in range(times):
        results = executable(*arrays)
    return results
