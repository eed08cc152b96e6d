"""Finds the values through which an allocation is reached, and their live ranges.

    %a = memref.alloc()                       reference %a
    %r = scf.if %c -> (memref<16xf32>) {
      %b = memref.alloc()                     reference %b
      scf.yield %b                            the last use of %b, which becomes %r
    } else {
      scf.yield %a                            the last use of %a, which becomes %r
    }
    read %r                                   a reference to one of them, never to both

So %a is not live where %b is, and both can share one slot. An allocation that is
forwarded without contents is not live, either: if a select chooses one of two
allocations to be written, neither is live before. A view is not a reference: its uses
count for the live range of its source.

    %last = scf.for ... iter_args(%old = %first) {
      %new = memref.alloc()
      copy %old to %new                       %old is the %new of the iteration before
      scf.yield %new
    }

A loop that carries an allocation allocates it again while the old one is live. It needs
as many slots as there are instances live at a time: one if %old is dead when %new is
first accessed, or if %new is computed over it (overwriting.py), and two here. If the
loop is nested in another loop that carries its results, the rotation of slots continues
from the state at the end of the previous run.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import combinations, islice, pairwise
from typing import NamedTuple

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.diagnostics import name_of
from ..dialects.memory import is_view
from ..planning.problem import Steps, common
from .control_flow import BlockLoop, ControlFlow
from .forwarding import CHOICES, moves
from .liveness import Uses, live_steps
from .overwriting import interfere

MOST_SLOTS = 4
"""The limit on the slots of an allocation: a loop carries all of them."""


class Move(NamedTuple):
    """From an operation on, `target` may refer to the memory of `source`."""

    source: SSAValue
    target: SSAValue
    op: Operation


@dataclass(slots=True)
class References:
    """The references to one or more allocations, and the moves between them."""

    flow: ControlFlow
    sources: Sequence[SSAValue]
    of: dict[SSAValue, list[SSAValue]] = field(
        default_factory=dict[SSAValue, list[SSAValue]]
    )
    """By alias: the references that it is, or of which it is a view."""
    moves: list[Move] = field(default_factory=list[Move])
    leaving: dict[SSAValue, list[Move]] = field(
        default_factory=dict[SSAValue, list[Move]]
    )
    """The moves by source."""
    entering: dict[SSAValue, list[Move]] = field(
        default_factory=dict[SSAValue, list[Move]]
    )
    """The moves by target."""

    def __post_init__(self) -> None:
        pending = [(source, source) for source in self.sources]
        while pending:
            alias, reference = pending.pop()
            known = self.of.setdefault(alias, [])
            if reference in known:
                continue
            known.append(reference)
            for use in alias.uses:
                targets = moves(use)
                if targets is None:  # an operation may return its operand
                    targets = self.flow.calls.may_return(use.operation)
                for target in targets:
                    if self._is_reference(target):
                        self._add(Move(reference, target, use.operation))
                        pending.append((target, target))
                    else:
                        pending.append((target, reference))

    def _add(self, move: Move) -> None:
        self.moves.append(move)
        self.leaving.setdefault(move.source, []).append(move)
        self.entering.setdefault(move.target, []).append(move)

    @property
    def source(self) -> SSAValue:
        """The memref that the maker of the memory returns."""
        return self.sources[0]

    @property
    def all(self) -> Sequence[SSAValue]:
        """All references."""
        return list(dict.fromkeys((*self.sources, *self.entering)))

    def _is_reference(self, target: SSAValue) -> bool:
        """Whether `target` is not a view, and is defined at a step."""
        owner = target.owner
        if isinstance(owner, Block):
            return owner.first_op in self.flow.step
        return owner in self.flow.step and not is_view(owner)

    def uses(
        self, accesses: Mapping[SSAValue, Mapping[int, bool]]
    ) -> Mapping[SSAValue, Uses]:
        """The uses of each used reference, from the accesses by alias and step."""
        found: dict[SSAValue, dict[int, bool]] = {}
        for alias, steps in accesses.items():
            for reference in self.of[alias]:
                known = found.setdefault(reference, {})
                for step, is_whole in steps.items():
                    known[step] = known.get(step, True) and is_whole
        accessed = {step for steps in found.values() for step in steps}
        filled = self._filled(accessed)
        pending = list(found)
        for target in pending:  # grows during the loop
            if target is not self.source:
                found[target][self.begin(target)] = False
            for move in self.entering.get(target, ()):
                if move.source not in found:
                    found[move.source] = {}
                    pending.append(move.source)
                if filled(step := self.flow.step_of(move.op)[0]):
                    found[move.source][step] = False
        found = found or {self.source: {}}
        return {r: Uses(self.begin(r), steps) for r, steps in found.items()}

    def _filled(self, accessed: Set[int]) -> Callable[[int], bool]:
        """Returns a test of whether the memory may have contents when a step begins,
        from the steps that access it. A new allocation has none."""
        nodes, node_of = self.flow.nodes, self.flow.node_of
        allocated = self.begin(self.source)
        steps = sorted(accessed)
        wanted = self._nodes_before_moves()
        before: set[int] = set()

        def at(node: int, step: int) -> bool:
            first = nodes[node].start
            is_new = first <= allocated < step
            since = allocated if is_new else first
            is_here = bisect_left(steps, since) < bisect_left(steps, step)
            return is_here or (node in before and not is_new)

        pending = [node_of[step] for step in steps] if self.moves else []
        while pending:
            node = pending.pop()
            for next in (
                nodes[node].successors if at(node, self.flow.ends[node]) else ()
            ):
                if next in wanted and next not in before:
                    before.add(next)
                    pending.append(next)
        return lambda step: at(node_of[step], step)

    def _nodes_before_moves(self) -> Set[int]:
        """The nodes with a path to a move on which the memory is not allocated."""
        nodes, allocated = self.flow.nodes, self.begin(self.source)
        pending: list[int] = []
        for move in self.moves:
            step, _ = self.flow.step_of(move.op)
            node = self.flow.node_of[step]
            if not nodes[node].start <= allocated < step:
                pending.append(node)
        found: set[int] = set()
        while pending:
            node = pending.pop()
            if node not in found:
                found.add(node)
                others = nodes[node].predecessors
                pending += [n for n in others if n != self.flow.node_of[allocated]]
        return found

    def begin(self, reference: SSAValue) -> int:
        """The first step at which `reference` is defined."""
        owner = reference.owner
        if isinstance(owner, Block):
            assert owner.first_op is not None
            return self.flow.step[owner.first_op]
        if reference not in self.entering:
            return self.flow.step_of(owner)[0]
        assert owner.next_op is not None
        return self.flow.step[owner.next_op]

    def reached(
        self, starts: Iterable[SSAValue], without: Iterable[SSAValue]
    ) -> list[SSAValue]:
        """`starts` and the references that they become, without those in `without`."""
        found = dict.fromkeys(starts)
        passed = {*found, *without}
        pending = list(found)
        for reference in pending:  # grows during the loop
            for move in self.leaving.get(reference, ()):
                if move.target not in passed:
                    passed.add(move.target)
                    found[move.target] = None
                    pending.append(move.target)
        return list(found)


Ages = Mapping[SSAValue, set[int]]
"""By reference in a loop: how many iterations ago its memory may have been allocated,
counted after the allocation in the current iteration. Results of the loop count as
those of another iteration."""


def slots(references: References, uses: Mapping[SSAValue, Uses]) -> int | None:
    """The most instances of an allocation live at a time; None if it is not known."""
    alloc = references.source.owner
    assert isinstance(alloc, Operation)
    carried = [r for r in uses if references.flow.is_carried(r, alloc)]
    if not carried:
        return 1
    ranges = live_steps(references.flow, list(uses.values()))
    live = dict(zip(uses, ranges, strict=True))
    old = references.reached(carried, ())
    new = references.reached([references.source], carried)
    pairs = [(o, n) for o in old for n in new if o is not n]
    if len(carried) > 1:
        pairs += combinations(old, 2)
    if not any(
        interfere(references.flow, (a, live.get(a, ())), (b, live.get(b, ())))
        for a, b in pairs
    ):
        return 1
    loops, ages = loops_of(references), ages_in_loops(references)
    if ages is None:
        return None
    for loop in loops:  # memory referenced from outside ages in each iteration
        whole = _steps_in(loop, references.flow)
        outside = [
            r for r in live if r not in ages or not _is_of(r, loop) or r.owner is loop
        ]
        if any(common(live[reference], whole) for reference in outside):
            return None
    results = combinations((r for r in live if _is_result(r, loops[-1])), 2)
    if any(_meet(live, a, b) for a, b in results):  # their slots depend on the path
        return None
    young = [r for r in ages if 0 in ages[r]]
    return max(
        max(ages[r]) + any(_meet(live, r, y) for y in young if y is not r)
        for r in ages
        if r in live and max(ages[r])
    )


def _meet(live: Mapping[SSAValue, Sequence[Steps]], a: SSAValue, b: SSAValue) -> bool:
    """Whether two references are live in the same step."""
    return bool(common(live.get(a, ()), live.get(b, ())))


Loop = scf.ForOp | scf.WhileOp | BlockLoop


def loops_around(alloc: Operation, count: int, flow: ControlFlow) -> Sequence[Loop]:
    """The innermost `scf` loops around an allocation, or the innermost loops of `cf`
    blocks, at most `count`. The allocation runs at most once in an iteration of the
    first loop; each `scf` loop is directly nested in the next."""
    block, loop = alloc.parent, alloc.parent_op()
    while loop is not None and name_of(loop) in CHOICES:
        block, loop = loop.parent, loop.parent_op()
    if block and (of_blocks := list(islice(flow.loops_around(block), count))):
        return of_blocks
    loops: list[Loop] = []
    while isinstance(loop, scf.ForOp | scf.WhileOp) and len(loops) < count:
        loops.append(loop)
        loop = loop.parent_op()
    return loops


def loops_of(references: References) -> Sequence[Loop]:
    """The loops that carry the allocation, innermost first. Outer loops carry it from
    one run of the innermost to the next. Empty if another operation carries it, if a
    run may end without forwarding its last allocation, or if an unknown branch leads to
    a loop of blocks."""
    alloc, flow = references.source.owner, references.flow
    assert isinstance(alloc, Operation)
    count = 1
    loops = loops_around(alloc, count, flow)
    while loops and any(enters(move, loops[-1]) for move in references.moves):
        count += 1
        loops = loops_around(alloc, count, flow)
        if len(loops) < count:
            return ()
        if not _are_in_turn(loops, alloc, flow):
            return ()
    if any(isinstance(loop, BlockLoop) and not loop.can_carry for loop in loops):
        return ()
    return loops


def _are_in_turn(loops: Sequence[Loop], alloc: Operation, flow: ControlFlow) -> bool:
    """Whether each run of an inner loop forwards its last allocation, and each
    iteration of an outer loop runs the next inner loop once."""
    if not isinstance(loops[0], BlockLoop):
        return loops[0].regions[-1].is_ancestor(alloc)
    of_blocks = [loop for loop in loops if isinstance(loop, BlockLoop)]
    region, block = loops[0].head.parent, alloc.parent
    assert region is not None
    assert block is not None
    at = region.find_ancestor_block_in_region(block)
    assert at is not None
    dominates = flow.dominance_in(region).dominates
    inside = frozenset([at])  # what an iteration of `inner` runs last
    for inner, outer in pairwise(of_blocks):
        if any(end in inside or not dominates(end, at) for end in inner.exits):
            return False
        if not all(dominates(inner.head, end) for end in outer.lasts):
            return False
        if not inner.runs_once_in(outer):
            return False
        at, inside = inner.head, inner.blocks
    return True


def before(loop: Loop) -> Operation:
    """The operation before which the initial values of a loop can be defined."""
    if not isinstance(loop, BlockLoop):
        return loop
    assert loop.above.last_op is not None
    return loop.above.last_op


def enters(move: Move, loop: Loop) -> bool:
    """Whether `move` forwards an initial value to `loop`."""
    if isinstance(loop, BlockLoop):
        return move.target.owner is loop.head and move.op in loop.entries
    return move.op is loop and move.target.owner is not loop


def _goes_back(move: Move, loop: Loop) -> bool:
    """Whether `move` forwards a value to the next iteration, or out of the last one."""
    if isinstance(loop, BlockLoop):
        return move.target.owner is loop.head and move.op in loop.backs
    return move.op is loop.regions[-1].block.last_op


def _is_result(value: SSAValue, loop: Loop) -> bool:
    """Whether `value` is a result of `loop`, or defined after it."""
    if isinstance(loop, BlockLoop):
        return not loop.has(value.owner)
    return value.owner is loop


def _steps_in(loop: Loop, flow: ControlFlow) -> Sequence[Steps]:
    """The steps of the operations in a loop."""
    if not isinstance(loop, BlockLoop):
        assert loop.next_op is not None
        return [(flow.step[loop] + 1, flow.step[loop.next_op])]
    ends = [(b.first_op, b.last_op) for b in loop.blocks]
    return sorted((flow.step[a], flow.step[z] + 1) for a, z in ends if a and z)


def ages_in_loops(references: References) -> Ages | None:
    """The ages of the references in loops; None if no loop carries the allocation, or
    if an age may exceed `MOST_SLOTS`."""
    loops = loops_of(references)
    if not loops:
        return None
    innermost, outermost = loops[0], loops[-1]
    ages: dict[SSAValue, set[int]] = {references.source: {0}}
    pending = [references.source]
    for reference in pending:  # grows during the loop
        for move in references.leaving.get(reference, ()):
            if not _is_of(move.target, outermost):
                continue
            is_older = _goes_back(move, innermost)
            moved = {age + is_older for age in ages[reference]}
            known = ages.setdefault(move.target, set())
            if max(moved) > MOST_SLOTS:
                return None
            if not moved <= known:
                known |= moved
                pending.append(move.target)
    return ages


def _is_of(value: SSAValue, loop: Loop) -> bool:
    """Whether `loop`, or an operation nested in it, defines `value`."""
    owner = value.owner
    if isinstance(loop, BlockLoop):
        return loop.has(owner)
    op = owner.parent_op() if isinstance(owner, Block) else owner
    return op is not None and (op is loop or loop.is_ancestor(op))
