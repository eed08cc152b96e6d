"""The loops of a block, for passes that make them anew."""

from collections.abc import Callable

from xdsl.ir import Block

from ....analysis.functions import erase_if_unused
from ....dialects.tgraph.structure import WhileOp
from ....dialects.tgraph.unused import without_unused


def rewrite_loops(block: Block, rewrite: Callable[[WhileOp], WhileOp]) -> None:
    """Gives each loop to a function that returns it, or the loop in its place. Loops
    behind it may be made anew, too.

    What loops and operations compute for nobody goes before and after: a dead reader
    would keep a stack.
    """
    _drop_unused(block)
    at = block.first_op
    while at is not None:
        at = (rewrite(at) if isinstance(at, WhileOp) else at).next_op
    _drop_unused(block)


def _drop_unused(block: Block) -> None:
    """Goes back: what a loop does not read, loops before it need not carry."""
    for op in reversed(list(block.ops)):
        if isinstance(op, WhileOp):
            for region in op.regions:
                _drop_unused(region.block)
            op = without_unused(op)
        erase_if_unused(op)
