"""Estimates of the arithmetic that operations do, on tensors or on memrefs.

Contractions count two for each product that they sum; reductions and windows one for
each element that they look at; all else one for each element of the result, data
movement too. Views and constants are free.
"""

from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation

from tensorplan.dialects.symbolic import TYPICAL, typical
from tensorplan.dialects.tgraph.base import (
    AnyTensor,
    Shape,
    TensorOp,
    shape_of,
    tensor_type_of,
)
from tensorplan.dialects.tgraph.reducing import (
    ConvolutionOp,
    DotGeneralOp,
    ReduceOp,
    ReduceWindowOp,
    SelectAndScatterOp,
)
from tensorplan.dialects.tgraph.shaping import ConstantOp, ViewOp


def total_flops(module: Operation) -> int:
    """Those of all operations, each loop's body once."""
    return sum(flops(op) for op in module.walk() if not op.regions)


def flops(op: Operation) -> int:
    """Floating-point operations, about; what is in regions counts once.

    Symbolic sizes count as typical ones.
    """
    if not isinstance(op, TensorOp):
        return 0
    if op.regions:
        return sum(
            flops(inner) for r in op.regions for b in r.blocks for inner in b.ops
        )
    if isinstance(op, ConstantOp | ViewOp) and not op.outs:
        return 0
    result = prod(_shape(op.declared[0])) if op.declared else 0
    if isinstance(op, DotGeneralOp):
        shape = _shape(tensor_type_of(op.inputs[0].type))
        return 2 * result * prod(shape[dim] for dim in op.contracting[0])
    if isinstance(op, ConvolutionOp):
        kernel = _shape(tensor_type_of(op.inputs[1].type))
        features = kernel[op.labels[1].index("o")]
        return 2 * result * prod(kernel) // max(features, 1)
    if isinstance(op, ReduceOp | SelectAndScatterOp):
        return prod(_shape(tensor_type_of(op.inputs[0].type)))
    if isinstance(op, ReduceWindowOp):
        return result * prod(op.window_dimensions.get_values())
    return result


def _shape(type: AnyTensor) -> Shape:
    return tuple(
        TYPICAL if size == DYNAMIC_INDEX else typical(size) for size in shape_of(type)
    )
