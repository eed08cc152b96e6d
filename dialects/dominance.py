"""Reverse postorder and the dominator tree of the blocks of a region (Cooper, Harvey,
Kennedy: A Simple, Fast Dominance Algorithm).
"""

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, Region


def in_order(first: Block) -> list[Block]:
    """The blocks reachable from `first` in reverse postorder: except along back edges,
    each block comes before its successors."""
    left: list[Block] = []
    entered = {first}
    stack = [(first, _successors(first))]
    while stack:
        block, successors = stack[-1]
        for successor in successors:  # resumes the iterator
            if successor not in entered:
                entered.add(successor)
                stack.append((successor, _successors(successor)))
                break
        else:
            left.append(block)
            stack.pop()
    return left[::-1]


def _successors(block: Block) -> Iterator[Block]:
    last = block.last_op
    return reversed(last.successors if last else ())


class Dominance:
    """The dominator tree of a region, and the trees of its unreachable blocks."""

    def __init__(self, region: Region):
        self._above: dict[Block, Block | None] = {}
        """The immediate dominator of each block; dominators come first in the order."""
        for block in region.blocks:
            if block not in self._above:
                self._add(block)
        count = dict.fromkeys(self._above, 1)
        for block, above in reversed(self._above.items()):
            if above:
                count[above] += count[block]
        self._span: dict[Block, range] = {}
        """The preorder numbers of each block's subtree; the block's own comes first."""
        free: dict[Block | None, int] = {None: 0}
        for block, above in self._above.items():
            self._span[block] = range(free[above], free[above] + count[block])
            free[above] += count[block]
            free[block] = self._span[block].start + 1
        self.blocks: Sequence[Block] = sorted(
            self._span, key=lambda block: self._span[block].start
        )
        """The blocks in preorder of the tree: each before the blocks it dominates."""

    def _add(self, first: Block) -> None:
        order = [block for block in in_order(first) if block not in self._above]
        number = {block: n for n, block in enumerate(order)}
        before: list[list[int]] = [[] for _ in order]
        for n, block in enumerate(order):
            for successor in _successors(block):
                if successor in number:
                    before[number[successor]].append(n)
        above = [-1] * len(order)
        above[0] = 0
        changed = True
        while changed:
            changed = False
            for n in range(1, len(order)):
                known = [p for p in before[n] if above[p] >= 0]
                found = known[0]
                for other in known[1:]:
                    while found != other:
                        if found > other:
                            found = above[found]
                        else:
                            other = above[other]
                changed |= above[n] != found
                above[n] = found
        self._above[first] = None
        for n in range(1, len(order)):
            self._above[order[n]] = order[above[n]]

    def above(self, block: Block) -> Block | None:
        """The immediate dominator of `block`; None for the first block of a tree."""
        return self._above[block]

    def dominates(self, one: Block, other: Block) -> bool:
        """Whether each path to `other` goes through `one`, which may be `other`."""
        return self._span[other].start in self._span[one]
