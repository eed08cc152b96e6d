"""One buffer for what branches and loops hand on, so that it can move as others do.

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

A family is all that may refer to the same memory as one value that control flow hands
on. Where plan-memory has a single slot for a family, it becomes one buffer, and nothing
is copied. Where two of it are live at once, on request what is handed on gets a buffer,
and what is live beside that is copied into it: as a compiler leaves SSA form.

    %last = scf.for ... iter_args(%old = %first) {
      %new = memref.alloc()                  scf.for ... {
      linalg.matmul ins(%old, ...) outs(%new)  %new = memref.alloc()
      scf.yield %new                           linalg.matmul ins(%m, ...) outs(%new)
    }                                          memref.copy %new, %m
                                             }

A copy is another memory than what it was made from. So once it is handed on, nothing
may use that, or nothing may write either; and at that time nothing else that is still
needed may be in the buffer. Where `cf.cond_br` hands on, a block on that way copies;
where `arith.select` does, a branch. What is handed on first may be an argument of the
function or a global.

Does not: change families with views of buffers other than casts, with other memory that
is not allocated here, or with buffers of different types.
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
from ....analysis.control_flow import LOOPS, ControlFlow, moves
from ....analysis.cost import repetitions
from ....analysis.liveness import merged
from ....analysis.overwriting import meet
from ....dialects.diagnostics import name_of, remark
from ....dialects.memory import effects_on, freed, is_entry, is_memref, is_view
from ....dialects.tgraph.base import AnyMemRef
from ....planning.problem import Steps
from ..placement.arena import Arena
from ..placement.slots import Slot


def unite(func: FuncOp, flow: ControlFlow, arena: Arena) -> bool:
    """Makes one buffer of each family that has a single slot. Whether there is any."""
    return _change([each for each in _families(func, flow, arena) if each.has_one_slot])


def copy_apart(func: FuncOp, flow: ControlFlow, arena: Arena, step: int) -> bool:
    """Makes one buffer of what is handed on in each family that is live in a step, and
    copies the others into it. Whether there is any."""
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
    """A value is handed on as another one."""

    op: Operation
    way: int  # 1 if it is the second of two values or blocks to choose from
    source: SSAValue
    target: SSAValue


@dataclass(slots=True, eq=False)
class _Family:
    """Allocations, and the values that control flow hands on of them."""

    flow: ControlFlow
    moves: Sequence[_Move]
    slots: Sequence[Slot]
    allocations: Sequence[Allocation]
    given: Sequence[SSAValue]
    """What others allocate."""
    apart: list[Allocation] = field(default_factory=list[Allocation])
    """What is copied into the buffer rather than computed there."""

    @property
    def targets(self) -> Sequence[SSAValue]:
        return list(dict.fromkeys(move.target for move in self.moves))

    @property
    def values(self) -> Sequence[SSAValue]:
        """What the buffer replaces."""
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
        """What is copied where an operation hands it on, with something in it."""
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
        """Finds what is copied; whether the program computes the same with that."""
        live = self._live()
        known = {value for a in self.allocations for value in a.references.of}
        if not known.issuperset(self.targets):
            return False
        inside = {target: live.get(target, ()) for target in self.targets}
        if any(meet(self.flow, a, b) for a, b in combinations(inside.items(), 2)):
            return False
        for allocation in sorted(self.allocations, key=self._handed_on_so_often)[::-1]:
            value = allocation.alloc.memref
            mine = value, live.get(value, ())
            if any(meet(self.flow, mine, other) for other in inside.items()):
                self.apart.append(allocation)
            else:
                inside[value] = mine[1]
        return all(
            self._may_copy(move, inside) for _, moves in self.copies for move in moves
        )

    def _handed_on_so_often(self, allocation: Allocation) -> int:
        value = allocation.alloc.memref
        return max(repetitions(m.op) for m in self.moves if m.source is value)

    def _live(self) -> Mapping[SSAValue, Sequence[Steps]]:
        """The steps in which each value is live, whichever allocation it is of."""
        found: dict[SSAValue, list[Steps]] = {}
        for slot in self.slots:
            for value, steps in slot.lives.by.items():
                found.setdefault(value, []).extend(steps)
        return {value: merged(sorted(steps)) for value, steps in found.items()}

    def _may_copy(
        self, move: _Move, inside: Mapping[SSAValue, Sequence[Steps]]
    ) -> bool:
        """Whether what is handed on may be a copy: what it is made from is not used
        from then on, and nothing else in the buffer is."""
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
                f"{name_of(move.op)} hands them on",
                move.op,
            )


def _is_in(step: int, ranges: Sequence[Steps]) -> bool:
    return any(start <= step < end for start, end in ranges)


def _families(func: FuncOp, flow: ControlFlow, arena: Arena) -> Iterator[_Family]:
    """Those that have allocations in an arena, and are understood."""
    known: dict[SSAValue, Allocation] = {}
    slots_of: dict[SSAValue, list[int]] = {}
    for index in arena.rest:
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
    """The moves by family."""
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
    """Whether there are allocations, all of one static type, and else what a caller
    gives."""
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
    """Whether it makes no difference from then on, until the memory is allocated anew,
    if a copy is handed on: nothing uses the memory by the name that it had, other than
    to free it, or nothing writes it by any name."""
    after = _steps_after(move, flow)

    def is_after(op: Operation) -> bool:
        step, _ = flow.step_of(op)
        return _is_in(step, after)

    if not any(is_after(user) for user in _users(move.source)):
        return True
    aliases = {move.source: None}
    pending = [move.source]
    for alias in pending:  # grows
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
    """The steps that may come after a move, before its source is allocated anew."""
    owner, first = move.source.owner, flow.step[move.op] + 1
    alloc = flow.step[owner] if isinstance(owner, Operation) else None
    found: list[Steps] = []
    entered: set[int] = set()
    pending = [(flow.node_of[first - 1], first)]
    for node, start in pending:  # grows
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
    """What uses a memref, or views of it, other than to free it."""
    for use in value.uses:
        if use.index not in freed(use.operation):
            yield use.operation
            if is_view(use.operation):
                yield from _users(use.operation.results[0])


def _begin(value: SSAValue, flow: ControlFlow) -> int:
    """The first step in which something handed on is there."""
    owner = value.owner
    op = owner.first_op if isinstance(owner, Block) else owner.next_op
    assert op is not None
    return flow.step[op]


# The change


def _change(families: Sequence[_Family]) -> bool:
    """Makes one buffer of each family, if a block has all of it."""
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
    for op in dict.fromkeys(op for each in gone if (op := _handing_on(each))):
        if isinstance(op, arith.SelectOp):
            Rewriter.erase_op(op)
        else:
            _hand_on_without(op, gone)
    return bool(found)


class _Places:
    """Where what an operation hands on is copied."""

    def __init__(self) -> None:
        self._known: dict[tuple[Operation, int], InsertPoint] = {}

    def of(self, move: _Move) -> InsertPoint:
        """Before the operation, but on the way on which it hands that on."""
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
    """The ends of the two branches of a choice before an operation, made as it does."""
    branches = [scf.YieldOp(), scf.YieldOp()]
    made = scf.IfOp(op.cond, [], branches[:1], branches[1:])
    made.location = op.location
    Rewriter.insert_op(made, InsertPoint.before(op))
    return branches


def _between(op: cf.ConditionalBranchOp, way: int) -> cf.BranchOp:
    """A branch in a block of its own, between another one and its target."""
    target = op.successors[way]
    handed_on = op.else_arguments if way else op.then_arguments
    made = cf.BranchOp(target, *handed_on)
    made.location = op.location
    block, around = Block([made]), op.parent
    assert around is not None
    assert around.parent is not None
    around.parent.insert_block_after(block, around)
    first = 1 + (len(op.then_arguments) if way else 0)
    _take_from(op, range(first, first + len(handed_on)))
    op.successors[way] = block
    return made


def _take_from(op: Operation, indices: Collection[int]) -> None:
    """Takes operands from a branch."""
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
    """Erases an argument of a block of `cf`, which nothing uses."""
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
    """Lets all values be a new buffer, allocated before an operation; what hands them
    on stays for now."""
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
    """Frees a buffer at the end of its region, where it lives for all of that."""
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
    """A buffer with the type of a value."""
    if value.type == alloc.memref.type:
        return alloc.memref
    made = memref.CastOp.get(alloc.memref, cast(AnyMemRef, value.type))
    Rewriter.insert_op(made, InsertPoint.after(alloc))
    return made.results[0]


def _first_with(family: _Family) -> Operation | None:
    """An operation before all that has some of a family, of the innermost block that
    can have it; None if no block can."""
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
            if len({op.parent for op in known}) > 1:  # then all after the first block
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
    """The operation of a region's blocks that another one is, or is inside of."""
    while op.parent_region() is not region:
        outer = op.parent_op()
        if outer is None:
            return None
        op = outer
    return op


def _handing_on(value: SSAValue) -> Operation | None:
    """The operation that has a value as result, or as an argument of its blocks; none
    of an argument that is gone."""
    owner = value.owner
    if isinstance(owner, Operation):
        return owner
    return owner.parent_op() if _is_first(owner) else None


def _hand_on_without(op: Operation, gone: Mapping[SSAValue, None]) -> None:
    """Makes a branch or a loop that does not hand on some values."""
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
    if sizes := properties.get("operandSegmentSizes"):  # what is handed on comes last
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
