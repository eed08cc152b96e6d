"""Unites the buffers that control flow forwards into one, which plan-spill can move.

    %r = scf.if %c -> (memref<16xf32>) {     %m = memref.alloc()
      %a = memref.alloc()                    scf.if %c {
      linalg.exp ins(%x) outs(%a)              linalg.exp ins(%x) outs(%m)
      scf.yield %a                           } else {
    } else {                                   linalg.log ins(%x) outs(%m)
      %b = memref.alloc()                    }
      linalg.log ins(%x) outs(%b)            linalg.add ins(%m, %y) outs(%y)
      scf.yield %b                           memref.dealloc %m
    }
    linalg.add ins(%r, %y) outs(%y)
    memref.dealloc %r

A family is a set of allocations, and of the values that control flow forwards of them:
results and arguments that may alias. If plan-memory has a single slot for a family,
`unite` makes it one buffer, without copies. If two of its buffers are live at once,
`copy_apart` makes one buffer of the forwarded values, and copies the allocations that
are live at the same time into it, as a compiler leaves SSA form:

    %last = scf.for ... iter_args(%old = %first) {
      %new = memref.alloc()                  scf.for ... {
      linalg.matmul ins(%old, ...) outs(%new)  %new = memref.alloc()
      scf.yield %new                           linalg.matmul ins(%m, ...) outs(%new)
    }                                          memref.copy %new, %m
                                             }

A copy does not alias its source. From the copy on, therefore, nothing may use the
source, or nothing may write source or copy; and the buffer must not hold other contents
that are still needed. For `cf.cond_br`, a new block on that edge copies; for
`arith.select`, a branch of a new `scf.if`. A forwarded value, such as the first one of
a loop, may also be an argument of the function or a global.

Does not: change families with views other than casts, with other memory that the
function does not allocate, or with buffers of different types.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import cast

from xdsl.dialects import arith, cf, memref, scf
from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from ....analysis.allocations import Allocation, erase_deallocs
from ....analysis.control_flow import ControlFlow
from ....analysis.cost import repetitions
from ....analysis.forwarding import LOOPS, moves
from ....analysis.liveness import merged
from ....analysis.overwriting import interfere
from ....dialects.diagnostics import name_of, remark
from ....dialects.memory import effects_on, freed, is_entry, is_memref, is_view
from ....dialects.tgraph.base import AnyMemRef
from ....planning.problem import Steps
from ..placement.arena import Arena
from ..placement.slots import Slot


def unite(func: FuncOp, flow: ControlFlow, arena: Arena) -> bool:
    """Makes one buffer of each family that has a single slot. Returns whether it
    changed the function."""
    return _change([each for each in _families(func, flow, arena) if each.has_one_slot])


def copy_apart(func: FuncOp, flow: ControlFlow, arena: Arena, step: int) -> bool:
    """Makes one buffer of the forwarded values of each family that is live in `step`,
    and copies the other allocations into it. Returns whether it changed the
    function."""
    able = [
        each
        for each in _families(func, flow, arena)
        if each.is_live_at(step) and each.copies_apart()
    ]
    for each in able:
        each.explain()
    return _change(able)


@dataclass(frozen=True, slots=True, eq=False)
class _Move:
    """`op` forwards `source` as `target`."""

    op: Operation
    way: int  # 1 for the second of two values or successors; else 0
    source: SSAValue
    target: SSAValue


@dataclass(slots=True, eq=False)
class _Family:
    """Allocations, and the values as which control flow forwards them."""

    flow: ControlFlow
    moves: Sequence[_Move]
    slots: Sequence[Slot]
    allocations: Sequence[Allocation]
    given: Sequence[SSAValue]
    """The sources that the function does not allocate: arguments and globals."""
    apart: list[Allocation] = field(default_factory=list[Allocation])
    """The allocations that stay, and are copied into the buffer."""

    @property
    def targets(self) -> Sequence[SSAValue]:
        return list(dict.fromkeys(move.target for move in self.moves))

    @property
    def values(self) -> Sequence[SSAValue]:
        """The values that the buffer replaces."""
        united = (a.alloc.memref for a in self.allocations if a not in self.apart)
        return [*self.targets, *united]

    @property
    def has_one_slot(self) -> bool:
        is_one = len(self.slots) == 1 and self.slots[0].rotation is None
        return is_one and not self.given

    def is_live_at(self, step: int) -> bool:
        return any(_is_in(step, slot.steps) for slot in self.slots)

    @property
    def copies(self) -> Iterator[tuple[SSAValue, Sequence[_Move]]]:
        """Each value to copy, with the moves of one operation that forwards it while it
        has contents."""
        live = self._live()
        for value in (*self.given, *(a.alloc.memref for a in self.apart)):
            found: dict[Operation, list[_Move]] = {}
            for move in self.moves:
                step, _ = self.flow.step_of(move.op)
                if move.source is value and (
                    value in self.given or _is_in(step, live.get(value, ()))
                ):
                    found.setdefault(move.op, []).append(move)
            yield from ((value, of_op) for of_op in found.values())

    def copies_apart(self) -> bool:
        """Finds the allocations to copy (`apart`). Returns whether copies preserve the
        results of the program."""
        live = self._live()
        known = {value for a in self.allocations for value in a.references.of}
        if not known.issuperset(self.targets):
            return False
        inside = {target: live.get(target, ()) for target in self.targets}
        if any(interfere(self.flow, a, b) for a, b in combinations(inside.items(), 2)):
            return False
        for allocation in sorted(self.allocations, key=self._forwarded_so_often)[::-1]:
            value = allocation.alloc.memref
            mine = value, live.get(value, ())
            if any(interfere(self.flow, mine, other) for other in inside.items()):
                self.apart.append(allocation)
            else:
                inside[value] = mine[1]
        return all(
            self._may_copy(move, inside) for _, moves in self.copies for move in moves
        )

    def _forwarded_so_often(self, allocation: Allocation) -> int:
        value = allocation.alloc.memref
        return max(repetitions(m.op) for m in self.moves if m.source is value)

    def _live(self) -> Mapping[SSAValue, Sequence[Steps]]:
        """The steps in which each value is live, in any of the slots."""
        found: dict[SSAValue, list[Steps]] = {}
        for slot in self.slots:
            for value, steps in slot.lives.by.items():
                found.setdefault(value, []).extend(steps)
        return {value: merged(sorted(steps)) for value, steps in found.items()}

    def _may_copy(
        self, move: _Move, inside: Mapping[SSAValue, Sequence[Steps]]
    ) -> bool:
        """Whether `move` may forward a copy: aliasing makes no difference afterwards,
        and no other value `inside` the buffer is live when the target begins."""
        if not _is_as_a_copy(move, self.flow):
            return False
        begin = _begin(move.target, self.flow)
        return not any(
            _is_in(begin, steps)
            for value, steps in inside.items()
            if value is not move.target
        )

    def explain(self) -> None:
        first, *_ = self.allocations
        for value, (move, *_) in self.copies:
            remark(
                f"{first.size} bytes of %{value.name_hint} are copied where "
                f"{name_of(move.op)} forwards them",
                move.op,
            )


def _is_in(step: int, ranges: Sequence[Steps]) -> bool:
    return any(start <= step < end for start, end in ranges)


def _families(func: FuncOp, flow: ControlFlow, arena: Arena) -> Iterator[_Family]:
    """The families with allocations in `arena` that the module can unite."""
    known: dict[SSAValue, Allocation] = {}
    slots_of: dict[SSAValue, list[int]] = {}
    for index in arena.members:
        for allocation in arena.pool.slots[index].allocations:
            known[allocation.alloc.memref] = allocation
            slots_of.setdefault(allocation.alloc.memref, []).append(index)
    for group in _groups(_moves_in(func)):
        targets = {move.target for move in group}
        sources = dict.fromkeys(m.source for m in group if m.source not in targets)
        allocations = [known[source] for source in sources if source in known]
        given = [source for source in sources if source not in known]
        indices = dict.fromkeys(i for s in sources for i in slots_of.get(s, ()))
        slots = [arena.pool.slots[index] for index in indices]
        if (
            _are_alike(allocations, given)
            and all(flow.calls.is_over(op) for a in allocations for op, _ in a.accesses)
            and all(move.op in flow.step for move in group)
        ):
            yield _Family(flow, group, slots, allocations, given)


def _moves_in(func: FuncOp) -> Iterator[_Move]:
    for op in func.walk():
        if is_view(op):
            continue
        for index, operand in enumerate(op.operands):
            if is_memref(operand):
                way = int(index > _last_of_first_way(op))
                for target in moves(Use(op, index)) or ():
                    yield _Move(op, way, _uncast(operand), target)


def _last_of_first_way(op: Operation) -> int:
    match op:
        case arith.SelectOp():
            return 1
        case cf.ConditionalBranchOp():
            return len(op.then_arguments)
        case _:
            return len(op.operands)


def _uncast(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, memref.CastOp):
        value = value.owner.source
    return value


def _groups(moves: Iterable[_Move]) -> Sequence[Sequence[_Move]]:
    """Groups the moves by family: those that share a source or target."""
    of: dict[SSAValue, list[_Move]] = {}
    for move in moves:
        groups = (of.setdefault(v, []) for v in (move.source, move.target))
        less, more = sorted(groups, key=len)
        more.append(move)
        of[move.source] = of[move.target] = more
        if less is not more:
            more += less
            ends = (v for m in less for v in (m.source, m.target))
            of.update(dict.fromkeys(ends, more))
    return list({group[0]: group for group in of.values()}.values())


def _are_alike(allocations: Sequence[Allocation], given: Sequence[SSAValue]) -> bool:
    """Whether there are allocations, `given` are arguments and globals, and all have
    the same type of static size."""
    types = {a.alloc.memref.type for a in allocations} | {value.type for value in given}
    if len(types) != 1 or not allocations:
        return False
    is_static = not any(a.alloc.dynamic_sizes for a in allocations)
    return is_static and all(map(_is_given, given))


def _is_given(value: SSAValue) -> bool:
    if isinstance(value.owner, Block):
        return is_entry(value.owner)
    return isinstance(value.owner, memref.GetGlobalOp)


def _is_as_a_copy(move: _Move, flow: ControlFlow) -> bool:
    """Whether `move` may forward a copy of its source. Until the source is allocated
    again, either nothing but a deallocation uses it, or nothing writes to any alias of
    it."""
    after = _steps_after(move, flow)

    def is_after(op: Operation) -> bool:
        step, _ = flow.step_of(op)
        return _is_in(step, after)

    if not any(is_after(user) for user in _users(move.source)):
        return True
    aliases = {move.source: None}
    pending = [move.source]
    for alias in pending:  # grows during the loop
        for use in alias.uses:
            op = use.operation
            targets = moves(use)
            if targets is None and use.index not in freed(op):
                if any(map(is_memref, op.results)):
                    return False
                if effects_on(op, alias)[1] and is_after(op):
                    return False
            for target in targets or ():
                if target not in aliases:
                    aliases[target] = None
                    pending.append(target)
    return True


def _steps_after(move: _Move, flow: ControlFlow) -> Sequence[Steps]:
    """The steps that may run after `move`, until its source is allocated again."""
    owner, first = move.source.owner, flow.step[move.op] + 1
    alloc = flow.step[owner] if isinstance(owner, Operation) else None
    found: list[Steps] = []
    entered: set[int] = set()
    pending = [(flow.node_of[first - 1], first)]
    for node, start in pending:  # grows during the loop
        end = flow.ends[node]
        if alloc is not None and start <= alloc < end:
            found.append((start, alloc))
            continue
        found.append((start, end))
        left = [n for n in flow.successors[node] if n not in entered]
        entered.update(left)
        pending += [(n, flow.nodes[n].start) for n in left]
    return found


def _users(value: SSAValue) -> Iterator[Operation]:
    """The users of `value` and of its views, without deallocations."""
    for use in value.uses:
        if use.index not in freed(use.operation):
            yield use.operation
            if is_view(use.operation):
                yield from _users(use.operation.results[0])


def _begin(value: SSAValue, flow: ControlFlow) -> int:
    """The first step in which a forwarded value is defined."""
    owner = value.owner
    op = owner.first_op if isinstance(owner, Block) else owner.next_op
    assert op is not None
    return flow.step[op]


# Rewriting


def _change(families: Sequence[_Family]) -> bool:
    """Makes one buffer of each family for which a block can hold the allocation.
    Returns whether there is one."""
    found = [(each, first) for each in families if (first := _first_with(each))]
    copies = {each: list(each.copies) for each, _ in found}
    erase_deallocs([a for each, _ in found for a in each.allocations])
    places = _Places()
    for each, first in found:
        _unite(each, first, copies[each], places)
    gone = {target: None for each, _ in found for target in each.targets}
    for target in gone:
        if isinstance(target, BlockArgument) and not _is_first(target.owner):
            _erase(target)
    for op in dict.fromkeys(op for each in gone if (op := _forwarding_op(each))):
        if isinstance(op, arith.SelectOp):
            Rewriter.erase_op(op)
        else:
            _forward_without(op, gone)
    return bool(found)


class _Places:
    """The insertion points of copies, for each operation that forwards values."""

    def __init__(self) -> None:
        self._known: dict[tuple[Operation, int], InsertPoint] = {}

    def of(self, move: _Move) -> InsertPoint:
        """The point before the operation, on the path on which `move` happens. Creates
        the block or the branches that this path needs."""
        key = move.op, move.way
        if key not in self._known:
            match move.op:
                case arith.SelectOp():
                    for way, last in enumerate(_ways_before(move.op)):
                        self._known[move.op, way] = InsertPoint.before(last)
                case cf.ConditionalBranchOp():
                    between = _between(move.op, move.way)
                    self._known[key] = InsertPoint.before(between)
                case _:
                    self._known[key] = InsertPoint.before(move.op)
        return self._known[key]


def _ways_before(op: arith.SelectOp) -> Sequence[Operation]:
    """Inserts an `scf.if` with the condition of `op` before it. Returns the terminators
    of both branches."""
    branches = [scf.YieldOp(), scf.YieldOp()]
    made = scf.IfOp(op.cond, [], branches[:1], branches[1:])
    made.location = op.location
    Rewriter.insert_op(made, InsertPoint.before(op))
    return branches


def _between(op: cf.ConditionalBranchOp, way: int) -> cf.BranchOp:
    """Splits the edge from `op` to its successor `way`. Returns the new branch."""
    target = op.successors[way]
    forwarded = op.else_arguments if way else op.then_arguments
    made = cf.BranchOp(target, *forwarded)
    made.location = op.location
    block, around = Block([made]), op.parent
    assert around is not None
    assert around.parent is not None
    around.parent.insert_block_after(block, around)
    first = 1 + (len(op.then_arguments) if way else 0)
    _take_from(op, range(first, first + len(forwarded)))
    op.successors[way] = block
    return made


def _take_from(op: Operation, indices: Collection[int]) -> None:
    """Removes the operands at `indices` from a branch of `cf`."""
    if isinstance(op, cf.ConditionalBranchOp):
        count = len(op.then_arguments)
        of_first = sum(1 <= index <= count for index in indices)
        sizes = [
            *(1, count - of_first),
            len(op.else_arguments) - (len(indices) - of_first),
        ]
        op.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, sizes)
    op.operands = [v for i, v in enumerate(op.operands) if i not in indices]


def _is_first(block: Block) -> bool:
    return block.parent is None or block.parent.first_block is block


def _erase(arg: BlockArgument) -> None:
    """Erases an unused argument of a block of `cf`, and the operands of branches for
    it."""
    for before in arg.owner.predecessors():
        last = before.last_op
        assert last is not None
        of_arg = [
            index
            for index, value in enumerate(last.operands)
            if is_memref(value) and arg in (moves(Use(last, index)) or ())
        ]
        _take_from(last, of_arg)
    arg.owner.erase_arg(arg)


def _unite(
    family: _Family,
    first: Operation,
    copies: Sequence[tuple[SSAValue, Sequence[_Move]]],
    places: _Places,
) -> None:
    """Replaces the values of `family` by a new buffer, allocated before `first`, and
    inserts the copies. The operations that forward the values stay for now."""
    allocs = [a.alloc for a in family.allocations]
    given = max(allocs, key=lambda a: a.alignment.value.data if a.alignment else 0)
    made = memref.AllocOp((), (), given.memref.type, given.alignment)
    made.location = allocs[0].location
    made.memref.name_hint = allocs[0].memref.name_hint
    Rewriter.insert_op(made, InsertPoint.before(first))
    for value, of_op in copies:
        for place in dict.fromkeys(map(places.of, of_op)):
            copy = memref.CopyOp(value, made.memref)
            copy.location = of_op[0].op.location
            Rewriter.insert_op(copy, place)
    if any(a.frees for a in family.allocations):
        for alloc in (made, *(a.alloc for a in family.apart)):
            _free_at_end(alloc)
    for target in family.targets:
        target.replace_all_uses_with(_as(made, target))
    for allocation in family.allocations:
        if allocation not in family.apart:
            Rewriter.replace_op(allocation.alloc, [], [made.memref])


def _free_at_end(alloc: memref.AllocOp) -> None:
    """Frees a buffer at each end of its region. An allocation that is not in the first
    block moves to the start of the region."""
    region = alloc.parent_region()
    assert region is not None
    if alloc.parent is not region.first_block:
        alloc.detach()
        Rewriter.insert_op(alloc, InsertPoint.at_start(region.blocks[0]))
    for block in region.blocks:
        last = block.last_op
        assert last is not None
        if not last.successors:
            free = memref.DeallocOp.get(alloc.memref)
            free.location = alloc.location
            Rewriter.insert_op(free, InsertPoint.before(last))


def _as(alloc: memref.AllocOp, value: SSAValue) -> SSAValue:
    """The buffer, cast to the type of `value` if this differs."""
    if value.type == alloc.memref.type:
        return alloc.memref
    made = memref.CastOp.get(alloc.memref, cast(AnyMemRef, value.type))
    Rewriter.insert_op(made, InsertPoint.after(alloc))
    return made.results[0]


def _first_with(family: _Family) -> Operation | None:
    """The operation before which the family's buffer can be allocated: it precedes all
    operations of the family, in the innermost region that contains these. None if no
    region does."""
    ops = [move.op for move in family.moves]
    for value in family.values:
        owner = value.owner
        ops += [owner] if isinstance(owner, Operation) else []
        ops += [use.operation for use in value.uses]
    region = ops[0].parent_region()
    while region is not None:
        inside = [_ancestor_in(region, op) for op in ops]
        known = [op for op in inside if op]
        if len(known) == len(ops):
            if len({op.parent for op in known}) > 1:  # allocate in the first block
                first = region.blocks[0]
                assert first.last_op is not None
                known = [*(op for op in known if op.parent is first), first.last_op]
            return min(known, key=family.flow.step.__getitem__)
        outer = region.parent
        if outer is None or isinstance(outer, FuncOp):
            return None
        region = outer.parent_region()
    return None


def _ancestor_in(region: Region, op: Operation) -> Operation | None:
    """The operation in the blocks of `region` that is `op` or contains it, or None."""
    while op.parent_region() is not region:
        outer = op.parent_op()
        if outer is None:
            return None
        op = outer
    return op


def _forwarding_op(value: SSAValue) -> Operation | None:
    """The operation whose result or region argument is `value`; None for an argument of
    a block of `cf`, which `_erase` has removed."""
    owner = value.owner
    if isinstance(owner, Operation):
        return owner
    return owner.parent_op() if _is_first(owner) else None


def _forward_without(op: Operation, gone: Mapping[SSAValue, None]) -> None:
    """Replaces a branch or a loop by one that does not forward the values `gone`."""
    results = [i for i, result in enumerate(op.results) if result in gone]
    first = len(op.operands) - len(op.results)
    operands = [first + i for i in results] if name_of(op) in LOOPS else []
    yielded = results
    if isinstance(op, scf.WhileOp):
        before = op.before_region.block
        operands = yielded = [a.index for a in before.args if a in gone]
        _drop(before.last_op, [1 + i for i in results])
        _drop(op.after_region.block.last_op, yielded)
    else:
        for region in op.regions:
            for block in region.blocks:
                if block.last_op and not block.last_op.successors:
                    _drop(block.last_op, yielded)
    for region in op.regions:
        for block in region.blocks:
            for arg in [arg for arg in block.args if arg in gone]:
                block.erase_arg(arg)
    properties = dict(op.properties)
    if sizes := properties.get("operandSegmentSizes"):  # forwarded operands come last
        assert isinstance(sizes, DenseArrayBase)
        *others, last = sizes.get_values()
        properties["operandSegmentSizes"] = DenseArrayBase.from_list(
            i32, [*others, last - len(operands)]
        )
    made = type(op).create(
        operands=[v for i, v in enumerate(op.operands) if i not in operands],
        result_types=[r.type for r in op.results if r not in gone],
        attributes=op.attributes,
        properties=properties,
        regions=[op.detach_region(region) for region in list(op.regions)],
    )
    made.location = op.location
    left = iter(made.results)
    new = [None if result in gone else next(left) for result in op.results]
    for old, result in zip(op.results, new, strict=True):
        if result is not None:
            result.name_hint = old.name_hint
    Rewriter.replace_op(op, made, new)


def _drop(terminator: Operation | None, indices: Sequence[int]) -> None:
    assert terminator is not None
    terminator.operands = [
        v for i, v in enumerate(terminator.operands) if i not in indices
    ]
