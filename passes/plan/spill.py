"""`plan-spill`: moves what does not fit a memory of the target to a slower one.

    %a = memref.alloc() : memref<4096xf32, "sram">
    linalg.exp ins(%x) outs(%a)
    linalg.matmul ins(%a, ...) outs(%b)      // %a is read, and much is live from here
    ...
    linalg.add ins(%d, %a) outs(%y)

    %a = memref.alloc() : memref<4096xf32, "sram">
    linalg.exp ins(%x) outs(%a)
    linalg.matmul ins(%a, ...) outs(%b)
    %0 = memref.alloc() : memref<4096xf32, "psram">
    memref.copy %a, %0
    memref.dealloc %a
    ...
    %1 = memref.alloc() : memref<4096xf32, "sram">
    memref.copy %0, %1
    linalg.add ins(%d, %1) outs(%y)
    memref.dealloc %1
    memref.dealloc %0

For each memory that has copies to a larger one (dialects/target_memory.py), the pass
asks plan-memory for the arena. If it takes more than the capacity, less the bytes of
arguments there, the contents of some buffers leave between two uses. An operation that
may access the slower memory, as the target says, uses them there: a buffer may lie
there all the time. A loop or a branch is one use of what is allocated outside; what it
allocates inside leaves between two operations of its body. For the others they are
copied, out only if they have been written since the last time.
planning/scheduling/residency.py chooses what leaves so that this takes the least time,
as it does for tgraph-offload; here all copies are memref.copy, which stop all else.
Contents that follow one another in a buffer get memory of their own. Where no placement
is found, more leaves. Remarks say what moves.

Needs: level 2, and a target.
Leaves: level 2.
Does not: move arguments, buffers that control flow hands on, or that are not used and
freed in the block that allocates them, or buffers of symbolic size; change functions
with streams, or with barriers; count how often a loop copies; copy while other
operations run; or fail if the arena does not fit whatever moves. It then leaves the
fewest bytes, which plan-memory refuses.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import cast

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from ...analysis.allocations import has_plan
from ...analysis.control_flow import ControlFlow
from ...analysis.liveness import buffer_of, without
from ...analysis.residents import Resident, ResidentUse, residents
from ...dialects.diagnostics import (
    LocatedError,
    held_back,
    name_of,
    place_of,
    remark,
)
from ...dialects.memory import says_effects
from ...dialects.target_memory import (
    Copies,
    TargetMemory,
    slower_memory,
    target_memories,
)
from ...dialects.tgraph.base import AnyMemRef
from ...planning import Buffer, Problem
from ...planning.arena import solve_arena
from ...planning.problem import Steps
from ...planning.scheduling.residency import (
    Choice,
    Gap,
    ResidencyProblem,
    cheapest,
)
from ..options import MemoryOptions
from .memory import PlanMemory
from .placement.arena import Arena

ROUNDS = 8
"""Choices whose placement is tried."""

COPY = memref.CopyOp.name


@dataclass(frozen=True)
class PlanSpill(ModulePass, MemoryOptions):
    """Moves what does not fit a memory of the target to a slower one.

    exact: whether to prove that what moves takes the least time, in small functions;
        needs the extra `exact`.
    """

    name = "plan-spill"

    exact: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.walk():
            if not isinstance(func, FuncOp) or func.is_declaration or has_plan(func):
                continue
            memories = target_memories(func)
            for memory in memories.values():
                if found := slower_memory(memory, memories):
                    self._spill(func, _Route(memory, *found))

    def _spill(self, func: FuncOp, route: "_Route") -> None:
        planner = PlanMemory(**self.shared(MemoryOptions))
        space = route.memory.memory_space
        with held_back():  # what plan-memory is going to say
            arena = next((a for a in planner.arenas(func) if a.space == space), None)
        if arena is None or arena.left is None or arena.plan.peak <= arena.left:
            return
        if reason := route.why_not(func, arena):
            remark(f"nothing moves to {route.slower.name}: {reason}", func)
            return
        _Spilling(func, arena, route, self.exact, self.strategy).run()


@dataclass(frozen=True, slots=True)
class _Route:
    """From a memory to a slower one, and back."""

    memory: TargetMemory
    slower: TargetMemory
    out: Copies
    back: Copies

    def why_not(self, func: FuncOp, arena: Arena) -> str | None:
        """Why nothing can be moved on it; None if something can."""
        if not arena.pool.is_ordered:
            return "its operations have streams"
        if ControlFlow(func).barriers:
            return "it has barriers"
        for memory in (self.memory, self.slower):
            if not memory.may_read(COPY) or not memory.may_write(COPY):
                return f"{COPY} may not access {memory.name}"
        return None

    def is_direct(self, use: ResidentUse) -> bool:
        """Whether an operation may use what is in the slower memory."""
        name, slower = name_of(use.op), self.slower
        if isinstance(use.op, memref.CopyOp) and not self._is_copied(use):
            return False
        if any(op is not use.op or not says_effects(op) for op, _ in use.accesses):
            return False
        if use.reads and not slower.may_read(name):
            return False
        if use.writes and not slower.may_write(name):
            return False
        return all(_takes(op, view, slower) for op, view in use.accesses)

    def _is_copied(self, use: ResidentUse) -> bool:
        """Whether data goes straight between the slower memory and the other one that a
        copy accesses, as far as the target describes that."""
        (copy, view), *_ = use.accesses
        memories, slower = target_memories(copy), self.slower
        for other in (operand for operand in copy.operands if operand is not view):
            memory = memories.get(cast(AnyMemRef, other.type).memory_space, slower)
            source, target = (slower, memory) if use.reads else (memory, slower)
            if memory is not slower and target.name not in source.copies:
                return False
        return True


def _takes(op: Operation, view: SSAValue, memory: TargetMemory) -> bool:
    """Whether an operation verifies with an operand in another memory."""
    other = create_ssa_value(_in_space(view.type, memory.memory_space))
    copy = op.clone()
    copy.operands = [other if v is view else v for v in op.operands]
    try:
        copy.verify()
    except VerifyException:
        return False
    finally:
        copy.erase()
    return True


def _in_space(given: Attribute, space: Attribute) -> AnyMemRef:
    type = cast(AnyMemRef, given)
    return MemRefType(type.element_type, type.shape, type.layout, space)


@dataclass(slots=True)
class _Moving:
    """What may leave, and when it does."""

    buffer: int  # in the pool
    resident: Resident
    direct: Sequence[bool]  # of each use
    is_apart: bool  # whether the buffer holds other contents before or after
    away: list[bool] = field(default_factory=list[bool])  # between two uses

    def is_away_at(self, use: int) -> bool:
        """Whether a use accesses the slower memory."""
        around = self.away[max(use - 1, 0) : use + 1]
        return self.direct[use] and bool(around) and all(around)

    @property
    def is_changed(self) -> bool:
        """Whether it gets memory of its own."""
        return self.is_apart or any(self.away)

    @property
    def absences(self) -> Iterator[tuple[int, int]]:
        """The uses between which it is away, one time after the other."""
        start = 0
        for use, is_away in enumerate([*self.away, False]):
            if not is_away:
                if start < use:
                    yield start, use
                start = use + 1

    @property
    def stays(self) -> Iterator[tuple[int, int]]:
        """The first and the last use of each time in the faster memory."""
        start = 0
        for use, leaves in enumerate([*self.away, True]):
            if leaves:
                if not self.is_away_at(use):
                    yield start, use
                start = use + 1


class _Spilling:
    """Of one function, from one memory."""

    def __init__(
        self, func: FuncOp, arena: Arena, route: _Route, exact: bool, strategy: str
    ):
        self.arena = arena
        self.route = route
        self.exact = exact
        self.strategy = strategy
        self.capacity = max(arena.left or 0, 0)
        flow = ControlFlow(func)
        self.ops = flow.ops
        self.moving: list[_Moving] = []
        for index in arena.rest:
            slot = arena.pool.slots[index]
            if len(slot.allocations) > 1:
                continue
            found = residents(slot.allocations[0], slot.steps, flow)
            for each in found:
                direct = list(map(route.is_direct, each.uses))
                self.moving.append(_Moving(index, each, direct, len(found) > 1))

    def run(self) -> None:
        problem, gaps = self._problem()
        if problem.lowest > self.capacity:
            self._explain_the_least(problem)
        for chosen in self._choices(problem):
            away = {gaps[index] for index in chosen}
            for number, each in enumerate(self.moving):
                pairs = range(len(each.direct) - 1)
                each.away = [(number, pair) in away for pair in pairs]
            if self._peak() <= self.capacity:
                break
        self._explain()
        moved = [each for each in self.moving if each.is_changed]
        for each in moved:
            _Rewriting(each, self.route.slower).run()
        for resident in {each.buffer: each.resident for each in moved}.values():
            _erase_unused(resident)

    def _problem(self) -> tuple[ResidencyProblem, Sequence[tuple[int, int]]]:
        """What may be away; and of each gap what it is of, and after which use."""
        sizes: list[int] = []
        first: list[int] = []
        gaps: list[Gap] = []
        after: list[tuple[int, int]] = []
        for number, each in enumerate(self.moving):
            size, uses = each.resident.allocation.size, each.resident.uses
            sizes.append(size)
            back = 1 + self.route.back.time(size)
            for at, (use, next) in enumerate(pairwise(uses)):
                if not at or use.writes:
                    first.append(1 + self.route.out.time(size))
                direct = (each.direct[at], each.direct[at + 1])
                if any(direct) or next.at > use.end:
                    steps = (use.end, next.at)
                    gaps.append(Gap(number, *steps, back, len(first) - 1, direct))
                    after.append((number, at))
        live = self._live()
        return ResidencyProblem(live, self.capacity, sizes, first, gaps), after

    def _live(self) -> list[int]:
        """The bytes that are live in each step."""
        change = [0] * (len(self.ops) + 1)
        for index in self.arena.rest:
            buffer = self.arena.pool.buffers[index]
            for start, end in buffer.live:
                change[start] += buffer.size
                change[end] -= buffer.size
        return list(accumulate(change))[:-1]

    def _choices(self, problem: ResidencyProblem) -> Iterator[Sequence[int]]:
        """Gaps in which so much is away that the rest fits; then more, where no offsets
        were found for the rest."""
        choose = cheapest
        if self.exact:
            from ...planning.scheduling.exact_residency import proved

            choose = proved
        lowest = problem.lowest
        target = max(self.capacity, lowest)
        for _ in range(ROUNDS):
            try:
                yield choose(replace(problem, capacity=target)).gaps
            except ImportError as error:
                raise LocatedError(str(error)) from None
            if target == lowest:
                break
            target = max(target - (self._peak() - self.capacity), lowest)

    def _peak(self) -> int:
        """The bytes of the arena, with what stays."""
        problem = Problem(list(self._buffers()))
        return solve_arena(problem, self.strategy, self.capacity).peak

    def _buffers(self) -> Iterator[Buffer]:
        """What the arena will hold."""
        moved: dict[int, list[_Moving]] = {}
        for each in self.moving:
            if each.is_changed:
                moved.setdefault(each.buffer, []).append(each)
        for index in self.arena.rest:
            buffer = self.arena.pool.buffers[index]
            left = [*buffer.live]
            for each in moved.get(index, ()):
                left = without(left, [self._steps(each, 0, len(each.away))])
                for stay in each.stays:
                    start, end = self._steps(each, *stay)
                    yield replace(buffer, start=start, end=end, gaps=())
            if left:
                yield buffer_of(buffer.id, buffer.size, left, buffer.alignment)

    def _steps(self, each: _Moving, first: int, last: int) -> Steps:
        """From the one use to the end of the other."""
        uses = each.resident.uses
        return uses[first].at, uses[last].end

    def _explain_the_least(self, problem: ResidencyProblem) -> None:
        """Says which operation needs more than there is, whatever moves."""
        live = Choice(replace(problem, capacity=0), range(len(problem.gaps)))
        step = max((at for at, b in enumerate(problem.live) if b), key=live.excess)
        remark(
            f"whatever moves to {self.route.slower.name}, {live.excess(step)} bytes "
            f"are live in {self.route.memory.name} here, expected at most "
            f"{self.arena.left}",
            self.ops[step],
        )

    def _explain(self) -> None:
        for each in self.moving:
            allocation, uses = each.resident.allocation, each.resident.uses
            what = f"{allocation.size} bytes of {allocation.name}"
            for start, end in each.absences:
                remark(
                    f"{what} are in {self.route.slower.name} between "
                    f"{_described(uses[start].op)} and {_described(uses[end].op)}",
                    allocation.alloc,
                )


def _described(op: Operation) -> str:
    place = place_of(op)
    return f"{name_of(op)} ({place})" if place else name_of(op)


class _Rewriting:
    """Gives the uses of what moves memory of its own."""

    def __init__(self, each: _Moving, slower: TargetMemory):
        self.each = each
        self.alloc = each.resident.allocation.alloc
        self.slower = slower
        self.there: SSAValue | None = None  # the memory in the slower one
        self.is_stored = False  # whether it has what was written last
        self.views: dict[tuple[SSAValue, SSAValue], SSAValue] = {}
        """Of new memory, by that and the view of the buffer that it is instead of."""
        self.last: dict[Operation, Operation] = {}
        """The last of what was put after an operation."""

    def run(self) -> None:
        each, uses = self.each, self.each.resident.uses
        here: SSAValue | None = None
        end = uses[0].op  # after which nobody needs what is in the slower memory
        for number, use in enumerate(uses):
            op, writes = use.op, use.writes or not number
            if each.is_away_at(number):
                self._give(use, self._slow(op))
                self.is_stored |= writes
                end = op
                continue
            if here is None:
                here = self._allocate(self.alloc.memref.type.memory_space, op)
                if number:
                    end = self._before(op, memref.CopyOp(self._slow(op), here))
            self._give(use, here)
            self.is_stored &= not writes
            leaves = number < len(each.away) and each.away[number]
            if leaves and not self.is_stored:
                self._after(op, memref.CopyOp(here, self._slow(op)))
                self.is_stored = True
            if leaves or use is uses[-1]:
                self._after(op, memref.DeallocOp.get(here))
                here = None
        if self.there is not None:
            self._after(end, memref.DeallocOp.get(self.there))

    def _slow(self, op: Operation) -> SSAValue:
        """The memory in the slower one, for this operation and later ones."""
        if self.there is None:
            self.there = self._allocate(self.slower.memory_space, op)
        return self.there

    def _allocate(self, space: Attribute, op: Operation) -> SSAValue:
        given = self.alloc
        type = _in_space(given.memref.type, space)
        made = self._before(op, memref.AllocOp((), (), type, given.alignment))
        made.results[0].name_hint = given.memref.name_hint
        return made.results[0]

    def _give(self, use: ResidentUse, memory: SSAValue) -> None:
        """Lets an operation, with all inside it, use this memory."""
        for inner in use.op.walk():
            inner.operands = [
                self._view(value, memory, use.op)
                if value in self.each.resident.views
                else value
                for value in inner.operands
            ]

    def _view(self, view: SSAValue, memory: SSAValue, op: Operation) -> SSAValue:
        """The same view of other memory, for this operation and later ones."""
        if view is self.alloc.memref:
            return memory
        if (view, memory) not in self.views:
            maker = view.owner
            assert isinstance(maker, Operation)
            space = cast(AnyMemRef, memory.type).memory_space
            viewed = self._view(maker.operands[0], memory, op)
            made = type(maker).create(
                operands=[viewed, *maker.operands[1:]],
                result_types=[_in_space(view.type, space)],
                properties=maker.properties,
                attributes=maker.attributes,
            )
            self._before(op, made)
            made.results[0].name_hint = view.name_hint
            self.views[view, memory] = made.results[0]
        return self.views[view, memory]

    def _before(self, op: Operation, made: Operation) -> Operation:
        made.location = self.alloc.location
        Rewriter.insert_op(made, InsertPoint.before(op))
        return made

    def _after(self, op: Operation, made: Operation) -> None:
        made.location = self.alloc.location
        Rewriter.insert_op(made, InsertPoint.after(self.last.get(op, op)))
        self.last[op] = made


def _erase_unused(resident: Resident) -> None:
    """Erases a buffer that only its deallocation uses, and views that nothing uses."""
    for view in reversed(resident.views):
        users = [use.operation for use in view.uses]
        if all(isinstance(user, memref.DeallocOp) for user in users):
            for op in (*users, view.owner):
                assert isinstance(op, Operation)
                Rewriter.erase_op(op)
