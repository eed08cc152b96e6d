"""The shape and NumPy's element type of a result, and the type of evaluations."""

from collections.abc import Callable
from typing import TypeAlias

from ...dtypes import Array, DType, numpy_dtype
from ..base import Shape, TensorOp

Evaluate: TypeAlias = Callable[..., Array]
"""`(op, *input arrays) -> result array`, for an operation with one result."""


def result_dtype(op: TensorOp) -> DType:
    return numpy_dtype(op.declared[0].element_type, op)


def result_shape(op: TensorOp) -> Shape:
    return op.declared[0].get_shape()
