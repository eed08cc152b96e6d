"""Evaluates single operations on tensors that have one result."""

from collections.abc import Mapping, Sequence

import numpy as np

from ...diagnostics import LocatedError
from ...dtypes import Array
from ..base import TensorOp
from ..spectral import FftOp
from . import elementwise, indexing, reducing, shaping
from .results import Evaluate
from .spectral import fft

EVALUATIONS: Mapping[type[TensorOp], Evaluate] = {
    **elementwise.EVALUATIONS,
    **shaping.EVALUATIONS,
    **reducing.EVALUATIONS,
    **indexing.EVALUATIONS,
    FftOp: fft,
}


def can_evaluate(op: TensorOp) -> bool:
    """Whether `evaluate` supports the operation."""
    return type(op) in EVALUATIONS


def evaluate(op: TensorOp, inputs: Sequence[Array]) -> Array:
    """The result of a single operation on tensors that has one result.

    An elementwise operation accepts inputs of any common shape, whatever its types say.
    Raises `LocatedError` for an operation that is not supported.
    """
    if not can_evaluate(op):
        raise LocatedError(
            f"{op.name} is not supported by the reference interpreter", op
        )
    with np.errstate(all="ignore"):
        return EVALUATIONS[type(op)](op, *inputs)
