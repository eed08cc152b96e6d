"""Numbers the operations of a function as steps, with the control flow between them.

    func.func @f(%c: i1) {
      %x = memref.alloc()      step 0    node 0, successors 1 and 2
      scf.if %c {              step 1
        linalg.fill outs(%x)   step 2    node 1, successor 3
        scf.yield              step 3
      } else {
        scf.yield              step 4    node 2, successor 3
      }
      memref.dealloc %x        step 5    node 3
      func.return              step 6
    }

plan-memory works on these steps. Each operation is a step, in textual order, also in
the regions of structured control flow. A node is a basic block of steps. Blocks of `cf`
and regions of `scf` and `affine` have nodes. Any other operation with regions is one
step, even a concurrent loop.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from operator import sub

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ..dialects.diagnostics import name_of
from ..dialects.dominance import Dominance
from ..dialects.memory import is_barrier
from ..dialects.tgraph.base import STREAM
from .calls import Calls
from .forwarding import LOOPS, WHILE, Branch, is_structured


@dataclass(slots=True)
class BasicBlock:
    """A run of steps without branches, with its successors and predecessors."""

    start: int  # the first step
    successors: list[int] = field(default_factory=list[int])
    predecessors: list[int] = field(default_factory=list[int])


def link(nodes: Sequence[BasicBlock], source: int, target: int) -> None:
    """Makes `target` a successor of `source`."""
    nodes[source].successors.append(target)
    nodes[target].predecessors.append(source)


@dataclass(frozen=True, slots=True)
class BlockLoop:
    """A natural loop of `cf` blocks: a head that dominates the other blocks, and these,
    from which paths lead back to it (Aho, Lam, Sethi, Ullman: Compilers, 9.6.6)."""

    head: Block
    blocks: frozenset[Block]  # with the head
    above: Block
    """The immediate dominator of the head, outside the loop."""

    @property
    def entries(self) -> Sequence[Operation]:
        """The branches from outside to the head."""
        return self._branches(False)

    @property
    def backs(self) -> Sequence[Operation]:
        """The branches from inside to the head, which begin the next iteration."""
        return self._branches(True)

    @property
    def lasts(self) -> Sequence[Block]:
        """The blocks inside with branches to the head."""
        return [b for b in self.head.predecessors() if b in self.blocks]

    @property
    def exits(self) -> Sequence[Block]:
        """The blocks inside with branches to the outside."""
        return [b for b in self.blocks if not self.blocks.issuperset(_after(b))]

    def runs_once_in(self, outer: "BlockLoop") -> bool:
        """Whether no iteration of a loop around this one runs it again."""
        pending = [b for end in self.exits for b in _after(end)]
        passed = {*self.blocks, outer.head}
        for block in pending:  # grows during the loop
            if block not in passed:
                passed.add(block)
                pending += _after(block)
        again = passed - self.blocks - {outer.head}
        return again.isdisjoint(self.head.predecessors())

    @property
    def can_carry(self) -> bool:
        """Whether `pass_to` can make all branches to the head forward more values."""
        return all(isinstance(op, Branch) for op in (*self.entries, *self.backs))

    def _branches(self, is_inside: bool) -> Sequence[Operation]:
        before = dict.fromkeys(self.head.predecessors())
        found = [b.last_op for b in before if (b in self.blocks) == is_inside]
        return [op for op in found if op is not None]

    def has(self, place: Block | Operation) -> bool:
        """Whether a block or an operation is in the loop, perhaps nested."""
        region = self.head.parent
        block = place.parent if isinstance(place, Operation) else place
        if region is None or block is None:
            return False
        return region.find_ancestor_block_in_region(block) in self.blocks


def _after(block: Block) -> Sequence[Block]:
    """The blocks to which the last operation of `block` branches."""
    return block.last_op.successors if block.last_op else ()


class ControlFlow:
    """The steps of a function, and its nodes, both in textual order."""

    def __init__(self, func: FuncOp, calls: Calls | None = None):
        self.nodes: list[BasicBlock] = []
        self.ops: list[Operation] = []
        """The operation of each step."""
        self.step: dict[Operation, int] = {}
        self.node_of: list[int] = []
        """The node of each step."""
        self._add_region(func.body)
        self.barriers = [op for op in self.step if is_barrier(op)]
        """The operations where agents that run the function wait for one another."""
        self.has_streams = any(STREAM in op.attributes for op in self.step)
        """Whether operations may run out of order."""
        self.calls = calls or Calls()
        self._dominance: dict[Region, Dominance] = {}

    @cached_property
    def ends(self) -> Sequence[int]:
        """By node: the first step after it."""
        return [*(node.start for node in self.nodes[1:]), len(self.ops)]

    @cached_property
    def successors(self) -> Sequence[Sequence[int]]:
        """The successors of each node."""
        return [node.successors for node in self.nodes]

    @cached_property
    def predecessors(self) -> Sequence[Sequence[int]]:
        """The predecessors of each node."""
        return [node.predecessors for node in self.nodes]

    @cached_property
    def repeats(self) -> Sequence[bool]:
        """Whether each node is between the ends of a back edge: a branch from it or
        from a later node leads to it or to an earlier one."""
        entered, left = ([0] * len(self.nodes) for _ in range(2))
        for number, node in enumerate(self.nodes):
            for target in node.successors:
                if target <= number:
                    entered[target] += 1
                    left[number] += 1
        around = accumulate(map(sub, entered, [0, *left[:-1]]))
        return [count > 0 for count in around]

    def step_of(self, op: Operation) -> tuple[int, Operation]:
        """The step that `op` is or is nested in, and the operation of that step."""
        while op not in self.step:
            outer = op.parent_op()
            assert outer is not None
            op = outer
        return self.step[op], op

    def is_carried(self, alias: SSAValue, alloc: Operation) -> bool:
        """Whether the memref may be from an earlier execution of `alloc` when it runs.

        It may if it is an argument of a block that dominates `alloc`. The argument of
        any other block is dead by then.
        """
        block, inside = alias.owner, alloc.parent_block()
        if not isinstance(block, Block) or (region := block.parent) is None:
            return False
        target = region.find_ancestor_block_in_region(inside) if inside else None
        if target is None:
            return False
        return self.dominance_in(region).dominates(block, target)

    def loops_around(self, block: Block) -> Iterator["BlockLoop"]:
        """The loops of `cf` blocks around `block`, from the innermost outwards."""
        if block.parent is None or len(block.parent.blocks) == 1:
            return
        dominance = self.dominance_in(block.parent)
        head: Block | None = block
        while head is not None:
            before = head.predecessors()
            pending = [each for each in before if dominance.dominates(head, each)]
            blocks = {*pending, head}
            for each in pending:  # grows during the loop
                if each is not head:
                    new = [b for b in each.predecessors() if b not in blocks]
                    blocks.update(new)
                    pending += new
            above = dominance.above(head)
            if pending and block in blocks and above is not None:
                yield BlockLoop(head, frozenset(blocks), above)
            head = above

    def dominance_in(self, region: Region) -> Dominance:
        """Which blocks of a region dominate which."""
        if region not in self._dominance:
            self._dominance[region] = Dominance(region)
        return self._dominance[region]

    def _start(self) -> int:
        self.nodes.append(BasicBlock(len(self.node_of)))
        return len(self.nodes) - 1

    def _link(self, sources: Sequence[int], target: int) -> None:
        for source in sources:
            link(self.nodes, source, target)

    def _add_region(self, region: Region) -> tuple[int, list[int]]:
        """Returns the entry node of a region, and its exit nodes."""
        entries: dict[Block, int] = {}
        ends: dict[Block, int] = {}
        for block in region.blocks:
            entries[block], ends[block] = self._add_block(block)
        leaving: list[int] = []
        for block, end in ends.items():
            successors = _after(block)
            for successor in successors:
                self._link([end], entries[successor])
            if not successors:
                leaving.append(end)
        return next(iter(entries.values())), leaving

    def _add_block(self, block: Block) -> tuple[int, int]:
        """Returns the first and the last node of a block."""
        entry = node = self._start()
        for op in block.ops:
            self.step[op] = len(self.node_of)
            self.ops.append(op)
            self.node_of.append(node)
            if is_structured(op):
                node = self._add_structured(op, name_of(op), node)
        return entry, node

    def _add_structured(self, op: Operation, name: str, before: int) -> int:
        """Returns the node after an operation with control flow."""
        bodies = [self._add_region(r) for r in op.regions if r.first_block is not None]
        after = self._start()
        if name == WHILE:
            (condition, decided), (body, repeated) = bodies
            self._link([before, *repeated], condition)
            self._link(decided, body)
            self._link(decided, after)
            return after
        for entry, leaving in bodies:
            self._link([before], entry)
            self._link(leaving, after)
            if name in LOOPS:
                self._link(leaving, entry)
        if name in LOOPS or len(bodies) < len(op.regions):
            self._link([before], after)
        return after


def ends(func: FuncOp) -> Iterator[Operation]:
    """The terminators at which a function may return."""
    for block in func.body.blocks:
        last = block.last_op
        if last is not None and not last.successors:
            yield last
