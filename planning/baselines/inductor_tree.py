"""PyTorch Inductor's allocation tree: memory split alternately in time and in space.

`torch/_inductor/codegen/memory_planning.py` of torch 2.13. A pool is a tree:

    Temporal   nodes one after the other in time, in the same bytes
    Spatial    two nodes side by side, the right one at an aligned offset
    Block      a buffer
    Empty      bytes that are unused so far

A block descends to a node where it overlaps nothing in time. If it overlaps several
nodes, the tree rejects it. A tree only grows to the right, and only the last pool does.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from sys import maxsize
from typing import TypeAlias

from .. import deadline
from ..problem import Limits, Placement, Problem, Steps, peak_of, round_up
from ..registry import strategy
from .inductor_reuse import Allocate, Line, Reuse, Run

ALIGNMENT = 64  # bytes, of every block in torch


class PoolMode(Enum):
    """The pools that are made. Those of outputs may always hold intermediates."""

    NONE = "none"  # none that grows
    INTERMEDIATES = "intermediates"  # one for each output, and one that grows
    OUTPUTS = "outputs"  # one of all outputs, end to end, and one that grows
    COMBINED = "combined"  # one that grows


@dataclass(eq=False, slots=True, kw_only=True)
class Node:
    """A part of a pool: how large it is, and when it is in use."""

    size: int = 0  # bytes, including empty ones
    live: Sequence[Steps] = ()  # ascending, not touching
    end: int = 0  # bytes from the start of the pool, without empty ones at the end
    parent: "Temporal | Spatial | None" = field(default=None, repr=False)


@dataclass(eq=False, slots=True, kw_only=True)
class Block(Node):
    """A buffer, or several that have the same memory one after the other."""

    names: Sequence[str]
    is_output: bool = False
    device: str = ""
    alignment: int = ALIGNMENT  # bytes
    offset: int = 0  # bytes from the start of the pool


@dataclass(eq=False, slots=True, kw_only=True)
class Empty(Node):
    """Bytes that are unused so far."""


@dataclass(eq=False, slots=True, kw_only=True)
class Temporal(Node):
    """Nodes that are in use at different times, all from the same offset on."""

    children: "list[Tree]"

    def __post_init__(self) -> None:
        for child in self.children:
            child.parent = self
        self.size = max(child.size for child in self.children)
        self.live = join(steps for child in self.children for steps in child.live)


@dataclass(eq=False, slots=True, kw_only=True)
class Spatial(Node):
    """Two nodes side by side."""

    left: Temporal
    right: Temporal
    alignment: int  # bytes

    def __post_init__(self) -> None:
        self.left.parent = self.right.parent = self
        self.size = self.needed
        self.live = join([*self.left.live, *self.right.live])

    @property
    def needed(self) -> int:
        """The bytes that both need."""
        return round_up(self.left.size, self.alignment) + self.right.size


Tree: TypeAlias = Block | Empty | Temporal | Spatial


def join(steps: Iterable[Steps]) -> list[Steps]:
    """The ranges in ascending order; those that touch or overlap become one."""
    joined: list[Steps] = []
    for start, end in sorted(steps):
        if joined and joined[-1][1] >= start:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def overlap(a: Sequence[Steps], b: Sequence[Steps]) -> bool:
    """Whether some range of `b` overlaps one of `a`; both ascending, not touching."""
    for start, end in b:
        after = bisect_right(a, (start, maxsize))
        if after and a[after - 1][1] > start:
            return True
        if after < len(a) and a[after][0] < end:
            return True
    return False


class Pool:
    """Memory of one device. `plan_pools` sets its name, and offsets of its blocks."""

    def __init__(self, first: Block, can_grow: bool, alignment: int) -> None:
        self.name = ""
        self.root = Temporal(children=[first])
        self.can_grow = can_grow
        self.alignment = alignment  # bytes, where a part is split in space

    @property
    def size(self) -> int:
        """Bytes, known when all blocks are in place."""
        return self.root.end

    def allocate(self, block: Block, is_last: bool) -> bool:
        """Adds the block if there is room; with `is_last`, the pool may grow. Returns
        whether the block was added."""
        may_grow = self.can_grow and is_last
        candidates: list[tuple[Tree, bool]] = [(self.root, may_grow)]
        while candidates:
            node, is_last = candidates.pop()
            if isinstance(node, Spatial):
                candidates += [(node.right, is_last), (node.left, False)]
            if not isinstance(node, Temporal):
                continue
            if block.size > node.size and not is_last:
                continue
            found = self._overlapping(node, block)
            if not found:
                self._put(block, node)
                return True
            if len(found) == 1:
                candidates.append((found[0], is_last))
        if may_grow:
            self.append(block)
        return may_grow

    def append(self, block: Block) -> None:
        """Puts the block after all others."""
        right = Temporal(children=[block])
        both = Spatial(left=self.root, right=right, alignment=self.alignment)
        self.root = Temporal(children=[both])

    def lay_out(self, start: int = 0) -> None:
        """Sets the offsets; the pool starts at `start`. Empty parts take nothing."""
        nodes: list[tuple[Tree, int | None]] = [(self.root, start)]
        while nodes:
            node, start_of_node = nodes.pop()
            if start_of_node is None:  # the right half, when the left is done
                assert isinstance(node.parent, Spatial)
                start_of_node = node.parent.left.end
            node.end = start_of_node
            if isinstance(node, Temporal):
                nodes += [(child, start_of_node) for child in node.children]
            elif isinstance(node, Spatial):
                nodes += [(node.right, None), (node.left, start_of_node)]
            elif isinstance(node, Block):
                node.offset = round_up(start_of_node, node.alignment)
                node.end = node.offset + node.size
                parent = node.parent
                while parent and parent.end < node.end:
                    parent.end = node.end
                    parent = parent.parent

    @staticmethod
    def _overlapping(node: Temporal, block: Block) -> list[Tree]:
        """Up to two children that are in use at the same time as the block."""
        found: list[Tree] = []
        for child in node.children:
            if overlap(child.live, block.live):
                found.append(child)
                if len(found) == 2:
                    break
        return found

    def _put(self, block: Block, node: Temporal) -> None:
        """Makes the block a child of the node. The smaller one gets empty bytes."""
        slot = node.size
        if isinstance(node.children[0], Empty):
            node.children.clear()
        if block.size > slot:
            extra = block.size - slot
            node.children = [self._widen(child, extra) for child in node.children]
        new = self._widen(block, slot - block.size) if block.size < slot else block
        node.children.append(new)
        for child in node.children:
            child.parent = node
        size = max(child.size for child in node.children)
        changed: Temporal | Spatial | None = node
        while changed:
            live = join([*changed.live, *block.live])
            if size == changed.size and live == changed.live:
                break
            changed.size, changed.live = size, live
            changed = changed.parent
            if isinstance(changed, Temporal):
                size = max(child.size for child in changed.children)
            elif changed:
                size = changed.needed

    def _widen(self, node: Tree, extra: int) -> Spatial:
        left = Temporal(children=[node])
        right = Temporal(children=[Empty(size=extra)])
        return Spatial(left=left, right=right, alignment=self.alignment)


def plan_pools(
    blocks: Sequence[Block],
    mode: PoolMode = PoolMode.INTERMEDIATES,
    alignment: int = ALIGNMENT,
) -> list[Pool]:
    """The pools that hold the blocks, whose offsets are set.

    Outputs come first, by increasing size, then intermediates, by decreasing size. Of
    blocks of equal size, those that live longest come first, then those that come first
    in `blocks`. An intermediate goes into the first pool of its device that takes it.
    Pools are numbered by device, in the order in which blocks first need the devices.
    After a deadline, each remaining block gets a pool of its own.
    """

    def length(block: Block) -> int:
        return block.live[-1][1] - block.live[0][0]

    pools: dict[str, list[Pool]] = {}
    is_combined = mode is PoolMode.COMBINED
    outputs = [b for b in blocks if b.is_output and not is_combined]
    intermediates = [b for b in blocks if not b.is_output or is_combined]
    for block in sorted(outputs, key=lambda b: (b.size, -length(b))):
        of_device = pools.setdefault(block.device, [])
        if of_device and mode is PoolMode.OUTPUTS:
            of_device[-1].append(block)
        else:
            of_device.append(Pool(block, False, alignment))
    for block in sorted(intermediates, key=lambda b: (-b.size, -length(b))):
        of_device = pools.setdefault(block.device, [])
        last = len(of_device) - 1
        if deadline.passed() or not any(
            pool.allocate(block, i == last) for i, pool in enumerate(of_device)
        ):
            of_device.append(Pool(block, mode is not PoolMode.NONE, alignment))
    result = [pool for of_device in pools.values() for pool in of_device]
    for i, pool in enumerate(result):
        pool.name = f"pool{i}"
        pool.lay_out()
    return result


def group_buffers(
    lines: Sequence[Line], outputs: Collection[str] = (), removed: Collection[str] = ()
) -> list[Block]:
    """The blocks of a program: a buffer and those that reuse its memory form one block.

    Each run of memory lines is a step, from 1 on. A block is live from the step of its
    allocation to the step of its last free. Outputs, and blocks that are never freed,
    are live to the end. (In torch, a block that is never freed is live in no step, so
    that others may overwrite it.)
    """
    groups: dict[str, _Group] = {}
    step = 0
    for is_run, part in groupby(lines, key=lambda line: isinstance(line, Run)):
        step += not is_run
        for line in part:
            if isinstance(line, Run) or line.buffer in removed:
                continue
            if isinstance(line, Allocate):
                groups[line.buffer] = _Group([line.buffer], line.size, step)
            elif line.buffer not in groups:
                continue
            elif isinstance(line, Reuse):
                groups[line.new] = groups[line.buffer]
                groups[line.new].names.append(line.new)
            else:
                groups[line.buffer].freed = step
    blocks: list[Block] = []
    for name, group in groups.items():
        if name != group.names[0]:
            continue
        is_output = any(name in outputs for name in group.names)
        end = step + 1 if is_output or not group.freed else group.freed
        live = [(group.allocated, end)]
        names, size = group.names, group.size
        blocks.append(Block(names=names, size=size, live=live, is_output=is_output))
    return blocks


@dataclass(slots=True)
class _Group:
    names: list[str]
    size: int  # bytes
    allocated: int  # step
    freed: int = 0  # step; 0: never


@strategy("inductor-tree")
def inductor_tree(problem: Problem, limits: Limits) -> Placement:
    """PyTorch Inductor's allocation tree (`plan_pools`), with all buffers as
    intermediates.

    There is a single pool. The tree splits space at the largest alignment; in PyTorch,
    all alignments are 64. Buffers with a given offset are below all others. Gaps in
    lifetimes are used.
    """
    buffers = problem.buffers
    fixed = [b for b in buffers if b.offset is not None]
    blocks = {
        i: Block(names=[b.id], size=b.size, live=b.live, alignment=b.alignment)
        for i, b in enumerate(buffers)
        if b.offset is None
    }
    alignment = max((b.alignment for b in buffers), default=1)
    start = peak_of(fixed, [b.offset or 0 for b in fixed])
    for pool in plan_pools(list(blocks.values()), alignment=alignment):
        pool.lay_out(start)
        start = pool.size
    return Placement(
        [
            blocks[i].offset if b.offset is None else b.offset
            for i, b in enumerate(buffers)
        ]
    )
