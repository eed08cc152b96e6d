"""Values to run a program on, where nobody gives any."""

from collections.abc import Sequence

import numpy as np

from ..dialects.dtypes import Array, is_float
from ..support.slots import Input


def random_inputs(inputs: Sequence[Input], seed: int) -> list[Array]:
    """Floats: normal, deviation 0.1; integers: 0 to 9; booleans: either."""
    random = np.random.default_rng(seed)
    arrays: list[Array] = []
    for arg in inputs:
        if is_float(arg.dtype):
            values = random.standard_normal(arg.shape) * 0.1
        else:
            values = random.integers(0, 2 if arg.dtype == bool else 10, arg.shape)
        arrays.append(np.asarray(values).astype(arg.dtype))
    return arrays
