"""Random inputs for programs that run without given ones."""

from collections.abc import Sequence

import numpy as np

from ..dialects.dtypes import Array, is_float
from ..support.slots import Input


def random_inputs(inputs: Sequence[Input], seed: int) -> list[Array]:
    """An array for each input: floats are normally distributed with standard deviation
    0.1, integers are uniform in 0 to 9, and booleans are uniform."""
    random = np.random.default_rng(seed)
    arrays: list[Array] = []
    for arg in inputs:
        if is_float(arg.dtype):
            values = random.standard_normal(arg.shape) * 0.1
        else:
            values = random.integers(0, 2 if arg.dtype == bool else 10, arg.shape)
        arrays.append(np.asarray(values).astype(arg.dtype))
    return arrays
