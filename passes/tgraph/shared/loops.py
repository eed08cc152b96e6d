"""The loops of a block, for passes that make them anew."""

from collections.abc import Callable

from xdsl.ir import Block

from ....dialects.tgraph.structure import WhileOp


def rewrite_loops(block: Block, rewrite: Callable[[WhileOp], WhileOp]) -> None:
    """Gives each loop to a function that returns it, or the loop in its place. Loops
    behind it may be made anew, too."""
    at = block.first_op
    while at is not None:
        at = (rewrite(at) if isinstance(at, WhileOp) else at).next_op
