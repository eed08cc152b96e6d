"""Constant evaluation of values while a frontend writes a program."""

from functools import cache

from xdsl.ir import SSAValue

from ..dialects.dtypes import Array
from ..dialects.tgraph.base import TensorOp
from ..dialects.tgraph.reference.evaluation import can_evaluate, evaluate


def known(value: SSAValue) -> Array | None:
    """The elements of `value` if it depends only on constants; None otherwise."""

    @cache
    def elements(value: SSAValue) -> Array | None:
        op = value.owner
        if not isinstance(op, TensorOp) or not can_evaluate(op):
            return None
        arrays = map(elements, op.inputs)
        found = [array for array in arrays if array is not None]
        return evaluate(op, found) if len(found) == len(op.inputs) else None

    return elements(value)
