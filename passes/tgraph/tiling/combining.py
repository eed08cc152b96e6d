"""Finds operations that combine tiles: reductions, contractions and scattered sums.

From tiles of its operands, along a dimension that the result lacks, such an operation
computes a part of its result. All parts, combined in the order of the tiles, are the
result: `dot(x^T, g)` is the sum of `dot(x_i^T, g_i)` over tiles of rows.
"""

from typing import NamedTuple

from xdsl.ir import Operation

from ....dialects.tgraph.indexing import ScatterOp
from ....dialects.tgraph.reducing import ConvolutionOp, DotGeneralOp, ReduceOp
from .dimensions import Needs, shape_of, update_dimension


class Part(NamedTuple):
    """How a tile contributes to a result."""

    needs: Needs
    kind: str  # of the reduction that combines parts


def part(op: Operation, operand: int, along: int) -> Part | None:
    """How tiles of operand number `operand`, along its dimension `along`, make parts of
    the result; None if they do not."""
    match op:
        case ReduceOp() if along in op.dimensions.get_values():
            return Part([along], op.kind.data)
        case DotGeneralOp() if along in op.contracting[operand]:
            place = op.contracting[operand].index(along)
            return Part([dims[place] for dims in op.contracting], "add")
        case ConvolutionOp() if op.feature_group_count.value.data == 1:
            image, kernel, _ = op.labels
            if (image, kernel)[operand][along] == "fi"[operand]:
                return Part([image.index("f"), kernel.index("i")], "add")
        case ScatterOp() if operand and op.kind.data == "add":
            return _of_scatter(op, operand, along)
        case _:
            pass
    return None


def _of_scatter(op: ScatterOp, operand: int, along: int) -> Part | None:
    """Adds tiles of the updates, at tiles of the indices, to the parts so far."""
    for updates in range(len(shape_of(op.inputs[2]))):
        indices = update_dimension(op, updates)
        if indices is not None and along == (indices, updates)[operand - 1]:
            batching = op.scatter_indices_batching_dims.get_values()
            return (
                None if indices in batching else Part([None, indices, updates], "add")
            )
    return None
