"""What an operation takes alone, and whether tiles of it take less: in words, with the
proof where there are none.

    tgraph.sort alone needs 4096 bytes in any order, unless it overwrites what it sorts:
      what comes first depends on all of that
    tgraph.dot_general alone takes 4096 bytes, unless in tiles along dimension 0 or 1

Asks the rules by which operations are tiled, of operations on memrefs, too.
"""

from collections.abc import Iterator

from xdsl.ir import Operation

from ....dialects.tgraph.base import TensorOp
from ....dialects.tgraph.bodies import SortOp
from ....dialects.tgraph.structure import FusionOp
from .dimensions import needs, result_shape, shape_of
from .parts import part


def claim(op: Operation, bytes: str) -> str:
    """What is true of an operation with `bytes` of operands and results, as in
    `2048 bytes`."""
    if proof := why_whole(op):
        return f"alone needs {bytes} in any order, {proof}"
    return f"alone takes {bytes}, unless {_way_out(op)}"


def why_whole(op: Operation) -> str | None:
    """Why no tiles of an operation can take less; None where that is not proved."""
    if isinstance(op, SortOp) and op.count is None:  # of some, tiles have candidates
        sizes = list(shape_of(op.inputs[0]))
        del sizes[op.dimension.value.data]
        if all(size == 1 for size in sizes):
            return (
                "unless it overwrites what it sorts: "
                "what comes first depends on all of that"
            )
    return None


def _way_out(op: Operation) -> str:
    """What may take less."""
    if not isinstance(op, TensorOp):
        return "in tiles, of which nothing is known"
    dims = list(map(str, _dimensions(op)))
    if dims:
        return f"in tiles along dimension {' or '.join(dims)}"
    if _is_added_up(op):
        return "in tiles that are added up"
    if isinstance(op, FusionOp):
        return "its group is taken apart"
    return "in tiles, which tgraph-tile does not make of it"


def _dimensions(op: TensorOp) -> Iterator[int]:
    """Along which a tile of the result can be computed."""
    if len(op.res or op.outs) != 1:
        return
    for dim, size in enumerate(result_shape(op)):
        if size != 1 and needs(op, dim) is not None:
            yield dim


def _is_added_up(op: TensorOp) -> bool:
    """Whether tiles of operands make parts of the result."""
    return any(
        size != 1 and part(op, number, dim) is not None
        for number, value in enumerate(op.inputs)
        for dim, size in enumerate(shape_of(value))
    )
