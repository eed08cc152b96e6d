"""Estimates of the arithmetic that operations do, on tensors or on memrefs.

Contractions count two for each product that they sum; reductions and windows one for
each element that they look at; all else one for each element of the result, data
movement too. Views and constants are free.
"""

from math import prod

from xdsl.ir import Operation

from tensorplan.dialects.tgraph.base import TensorOp, tensor_type_of
from tensorplan.dialects.tgraph.reducing import (
    ConvolutionOp,
    DotGeneralOp,
    ReduceOp,
    ReduceWindowOp,
    SelectAndScatterOp,
)
from tensorplan.dialects.tgraph.shaping import ConstantOp, ViewOp


def flops(op: Operation) -> int:
    """Floating-point operations, about; what is in regions counts once.

    Needs static shapes.
    """
    if not isinstance(op, TensorOp):
        return 0
    if op.regions:
        return sum(
            flops(inner) for r in op.regions for b in r.blocks for inner in b.ops
        )
    if isinstance(op, ConstantOp | ViewOp) and not op.outs:
        return 0
    result = prod(op.declared[0].get_shape()) if op.declared else 0
    if isinstance(op, DotGeneralOp):
        shape = tensor_type_of(op.inputs[0].type).get_shape()
        return 2 * result * prod(shape[dim] for dim in op.contracting[0])
    if isinstance(op, ConvolutionOp):
        kernel = tensor_type_of(op.inputs[1].type).get_shape()
        features = kernel[op.labels[1].index("o")]
        return 2 * result * prod(kernel) // max(features, 1)
    if isinstance(op, ReduceOp | SelectAndScatterOp):
        return prod(tensor_type_of(op.inputs[0].type).get_shape())
    if isinstance(op, ReduceWindowOp):
        return result * prod(op.window_dimensions.get_values())
    return result
