"""How long operations run, estimated from their types, on tensors or memrefs."""

from math import prod

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute, Operation

from tensorplan.dialects.symbolic import typical
from tensorplan.dialects.tgraph.base import (
    Pattern,
    TensorOp,
    VariableType,
    shape_of,
    tensor_type_of,
    typical_bytes,
)
from tensorplan.dialects.tgraph.partial import is_complete
from tensorplan.dialects.tgraph.structure import FusionOp

LAUNCH = 4096
"""The cost of starting an operation, in bytes that are moved in that time."""

FLOPS_PER_BYTE = 8
"""Arithmetic of contractions that is done in the time of moving a byte."""


def cost(op: Operation) -> int:
    """An estimate of how long an operation runs, in bytes moved in that time.

    The bytes of operands and results, or the arithmetic of contractions.
    """
    if isinstance(op, FusionOp):
        inner = (o for o in op.body.block.ops if isinstance(o, TensorOp))
        return max([_bytes(op), *map(_arithmetic, inner)]) + LAUNCH
    return max(_bytes(op), _arithmetic(op)) + LAUNCH


def _bytes(op: Operation) -> int:
    types = [
        tensor_type_of(value.type)
        for value in (*op.operands, *op.results)
        if _has_elements(value.type)
    ]
    return sum(map(typical_bytes, types))


def _has_elements(type: Attribute) -> bool:
    return isinstance(type, TensorType | VariableType | MemRefType)


def _arithmetic(op: Operation) -> int:
    """Of a contraction: the square root of the product of its tensors' sizes is how
    many multiplications a matrix product has."""
    if (
        not isinstance(op, TensorOp)
        or op.PATTERN is not Pattern.OUT_ELEMENTWISE_FUSABLE
    ):
        return 0
    written = (*op.res, *op.outs)
    types = [tensor_type_of(v.type) for v in (*op.inputs[:2], *written[:1])]
    if len(types) < 3 or not all(map(is_complete, types)):
        return 0
    sizes = [typical(prod(shape_of(type))) for type in types]
    return 2 * round(prod(sizes) ** 0.5) // FLOPS_PER_BYTE
