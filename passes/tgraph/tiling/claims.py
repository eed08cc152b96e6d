"""Says how many bytes an operation takes alone, and whether tiles may take fewer.

    tgraph.sort alone needs 4096 bytes in any order, unless it sorts in place: the first
      element depends on all others
    tgraph.dot_general alone takes 4096 bytes; tiles along dimension 0 or 1 may take
      less

The answers come from the rules for tiling. They hold for operations on memrefs, too.
"""

from collections.abc import Iterator

from xdsl.ir import Operation

from ....dialects.tgraph.base import TensorOp
from ....dialects.tgraph.bodies import SortOp
from ....dialects.tgraph.structure import FusionOp
from .combining import part
from .dimensions import needs, result_shape, shape_of


def claim(op: Operation, bytes: str) -> str:
    """The claim about an operation whose operands and results take `bytes`, a text such
    as `2048 bytes`."""
    if proof := why_whole(op):
        return f"alone needs {bytes} in any order, {proof}"
    return f"alone takes {bytes}; {_way_out(op)}"


def why_whole(op: Operation) -> str | None:
    """The reason why no tiles of `op` can take less; None if there is no proof."""
    if isinstance(op, SortOp) and op.count is None:  # tiles could find the top `count`
        sizes = list(shape_of(op.inputs[0]))
        del sizes[op.dimension.value.data]
        if all(size == 1 for size in sizes):
            return "unless it sorts in place: the first element depends on all others"
    return None


def _way_out(op: Operation) -> str:
    """A way of computing `op` that may take less."""
    if not isinstance(op, TensorOp):
        return "tiles may take less, but the operation is unknown"
    dims = list(map(str, _dimensions(op)))
    if dims:
        return f"tiles along dimension {' or '.join(dims)} may take less"
    if _is_added_up(op):
        return "tiles whose results are added up may take less"
    if isinstance(op, FusionOp):
        return "separate operations may take less"
    return "tiles may take less, but tgraph-tile does not support the operation"


def _dimensions(op: TensorOp) -> Iterator[int]:
    """Yields the dimensions along which a tile of the result can be computed."""
    for dim, size in enumerate(result_shape(op)):
        if size != 1 and needs(op, dim) is not None:
            yield dim


def _is_added_up(op: TensorOp) -> bool:
    """Whether tiles of an operand make parts that are added up to the result."""
    return any(
        size != 1 and part(op, number, dim) is not None
        for number, value in enumerate(op.inputs)
        for dim, size in enumerate(shape_of(value))
    )
