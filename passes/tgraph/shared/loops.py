"""Visits the loops of a block, for passes that replace them."""

from collections.abc import Callable

from xdsl.ir import Block

from ....analysis.functions import erase_if_unused
from ....dialects.tgraph.structure import WhileOp
from ....dialects.tgraph.unused import without_unused


def rewrite_loops(block: Block, rewrite: Callable[[WhileOp], WhileOp]) -> None:
    """Calls `rewrite` with each loop. It returns this loop, or the one that replaces
    it, and may replace later loops, too.

    Unused results and operations are erased before and after, because a dead reader
    would keep a stack.
    """
    _drop_unused(block)
    at = block.first_op
    while at is not None:
        at = (rewrite(at) if isinstance(at, WhileOp) else at).next_op
    _drop_unused(block)


def _drop_unused(block: Block) -> None:
    """Erases unused operations and results backwards: loops need not carry values that
    no later loop reads any more."""
    for op in reversed(list(block.ops)):
        if isinstance(op, WhileOp):
            for region in op.regions:
                _drop_unused(region.block)
            op = without_unused(op)
        erase_if_unused(op)
