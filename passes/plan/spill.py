"""`plan-spill`: moves buffers that do not fit a memory of the target to a slower one.

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

For each memory with copies to a slower one (dialects/target_memory.py), the pass asks
plan-memory for the arena. If the arena exceeds the capacity that the arguments leave,
the contents of some buffers move to the slower memory between two uses. If the target
lets an operation access the slower memory, the operation uses the contents there: a
buffer may even stay there for its whole life. Such an access costs as much as a copy of
the bytes that the operation accesses. For other operations, the contents are copied
back; they are copied out only if they were written since the last copy. An operation
that accesses a single view of the buffer, such as a tile, gets a copy of that part.
Successive operations on the same view share a copy, unless only separate copies fit:

    %tile = memref.subview %0[%i, 0] [8, 64] [1, 1]
    %1 = memref.alloc() : memref<8x64xf32, "sram">
    memref.copy %tile, %1                    // unless the operation overwrites it
    linalg.exp ins(%1) outs(%1)
    memref.copy %1, %tile                    // if the operation writes it
    memref.dealloc %1

planning/scheduling/residency.py chooses the contents that minimize the time of copies,
as it does for tgraph-offload, but each copy is a memref.copy, which nothing overlaps.
The cost of copies in a loop body is multiplied by the number of iterations.

Successive contents of a buffer get memory of their own, in the innermost block that
they do not outlive. Contents that a loop or a branch uses from outside can move inside
its blocks, too. They may be in the slower memory from their last use in an iteration to
their first use in the next one:

    memref.copy %w, %0                       // %w is only read in the loop
    scf.for ... {
      %1 = memref.alloc() : memref<4096xf32, "sram">
      memref.copy %0, %1
      linalg.matmul ins(%1, ...) outs(%b)
      memref.dealloc %1
      ...
    }

A buffer that several blocks of `cf` use is in the slower memory on all edges between
these blocks, or on none. This takes one copy back in each block that uses the buffer,
and one copy out in each block that writes it.

The buffers that branches, loops and blocks forward are first united into one buffer,
which these access like any other (spilling/forwarded.py). If the arena fits in no other
way, loops that exchange buffers are unrolled (spilling/exchanged.py), and buffers that
are live at the same time as the united one are copied into it, unless that changes the
results.

If no placement fits, more contents move. Remarks report each move.

Needs: level 2, and a target.
Leaves: level 2.
Does not: move arguments; move buffers of which only a view is forwarded, that a loop
of unknown trip count rotates through several slots, that blocks of `cf` may read before
writing, that another region frees, or whose symbolic size has no bound; copy parts
whose size has no bound; change functions with streams or barriers; overlap copies with
other operations; or fail if no choice fits. In that case, it leaves the arena with the
fewest bytes, and plan-memory reports the error.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...analysis.allocations import Allocation, has_plan
from ...analysis.control_flow import ControlFlow
from ...analysis.cost import repetitions
from ...analysis.forwarding import LOOPS
from ...analysis.liveness import buffer_of, merged, without
from ...analysis.loops import ITERATIONS
from ...analysis.residents import (
    Resident,
    ResidentUse,
    forwarded_residents,
    residents,
    why_none,
)
from ...analysis.sizes import SizeReader
from ...dialects.diagnostics import (
    LocatedError,
    held_back,
    name_of,
    place_of,
    remark,
)
from ...dialects.sizes.symbolic import names_in
from ...dialects.target_memory import (
    slower_memory,
    target_memories,
)
from ...planning import Buffer, Problem
from ...planning.arena import solve_arena
from ...planning.problem import Steps, common
from ...planning.scheduling.residency import (
    Choice,
    ResidencyProblem,
    cheapest,
)
from ..options import MemoryOptions
from .memory import PlanMemory
from .placement.arena import Arena
from .spilling.exchanged import unroll
from .spilling.forwarded import copy_apart, unite
from .spilling.gaps import Gaps
from .spilling.moving import Moving
from .spilling.rewriting import Rewriting, erase_unused
from .spilling.route import Remote, Route

ROUNDS = 8
"""The largest number of choices for which a placement is searched."""


@dataclass(frozen=True)
class PlanSpill(ModulePass, MemoryOptions):
    """Moves buffers that do not fit a memory of the target to a slower one.

    exact: whether to prove that the chosen moves take the least time, in small
        functions; needs the extra `exact`.
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
                    self._spill(func, Route(memory, *found))

    def _spill(self, func: FuncOp, route: Route) -> None:
        arena = self._arena(func, route)
        if arena is not None and arena.dynamic is not None:
            sizes, allocations = arena.dynamic
            names = {name: None for a in allocations for name in names_in(a.size)}
            expected = f'bounds="{", ".join(f"{name}<=..." for name in names)}"'
            if not names.keys().isdisjoint(sizes.operands):
                expected = "sizes that follow from the shapes of the arguments"
            remark(
                f"nothing moves to {route.slower.name}: sizes in {route.memory.name} "
                f"have no bounds, expected {expected}",
                func,
            )
            return
        if arena is None or arena.fits:
            return
        if reason := route.why_not(func, arena):
            remark(f"nothing moves to {route.slower.name}: {reason}", func)
            return
        while arena is not None:
            if unite(func, ControlFlow(func), arena):
                arena = self._arena(func, route)
                continue
            given = func, arena, route, self.exact, self.strategy
            spilling = _Spilling(*given, shares=True)
            if not spilling.choose():
                spilling = _Spilling(*given, shares=False)
                step = spilling.step_without_room
                if step is not None and (
                    unroll(func, arena.space)
                    or copy_apart(func, spilling.flow, arena, step)
                ):
                    arena = self._arena(func, route)
                    continue
                spilling.choose()
            spilling.run()
            return

    def _arena(self, func: FuncOp, route: Route) -> Arena | None:
        planner = PlanMemory(**self.shared(MemoryOptions))
        space = route.memory.memory_space
        with held_back():  # plan-memory will repeat these remarks
            return next((a for a in planner.arenas(func) if a.space == space), None)


class _Spilling:
    """Spills buffers of one function from one memory."""

    def __init__(
        self,
        func: FuncOp,
        arena: Arena,
        route: Route,
        exact: bool,
        strategy: str,
        shares: bool,
    ):
        self.arena = arena
        self.route = route
        self.exact = exact
        self.strategy = strategy
        self.shares = shares  # whether successive uses share a copy of a part
        self.capacity = max(arena.left or 0, 0)
        self.flow = flow = ControlFlow(func)
        self.sizes = SizeReader(func)
        self.own: list[Moving] = []
        """The residents that may move; those of a nested block come after those of the
        blocks around it."""
        for index in arena.members:
            slot = arena.pool.slots[index]
            if len(slot.allocations) > 1:
                continue
            given = slot.allocations[0], slot.steps, flow
            found = residents(*given) or forwarded_residents(*given)
            is_apart = len(found) > 1
            self.own += [self._moving(index, each, is_apart) for each in found]
        self.moving = [inner for each in self.own for inner in each.all]

    def _moving(
        self, buffer: int, resident: Resident, is_apart: bool, is_outermost: bool = True
    ) -> Moving:
        block, uses = resident.block, resident.uses
        assert block.first_op is not None
        assert block.last_op is not None
        is_elsewhere = block is not resident.allocation.alloc.parent
        first, last = (self.flow.step[op] for op in (block.first_op, block.last_op))
        size = resident.allocation.size
        remote = [self.route.remote(use, size, self.sizes) for use in uses]
        moving = Moving(
            buffer,
            resident,
            repetitions(block.last_op),
            remote,
            [[self._inside(buffer, *each) for each in _passing(use)] for use in uses],
            (first, last),
            None,
            resident.is_own and (is_apart or is_elsewhere),
            _joined(remote) if self.shares else frozenset(),
        )
        if is_outermost and not resident.is_own:
            moving.is_forwarded = True
            moving.span = first, last + 1
            if self.flow.repeats[self.flow.node_of[first]]:
                moving.runs *= ITERATIONS
        return moving

    def _inside(
        self, buffer: int, resident: Resident, loop: ResidentUse | None
    ) -> Moving:
        """A resident of a nested block, whose contents enter or leave the block. `loop`
        is the loop that carries them, if any."""
        moving = self._moving(buffer, resident, False, is_outermost=False)
        if loop is not None:
            moving.loop, moving.span = loop, (loop.at, loop.end)
        return moving

    @property
    def step_without_room(self) -> int | None:
        """The step with the most live bytes after all possible moves; None if these fit
        the capacity."""
        problem, _ = self._problem
        if problem.lowest <= self.capacity:
            return None
        return self._step_that_needs_most(problem)

    def choose(self) -> bool:
        """Chooses moves. Returns whether they fit."""
        problem, gaps = self._problem
        for chosen in self._choices(problem):
            self._take(gaps[index] for index in chosen)
            if self._peak() <= self.capacity:
                return True
        return False

    def run(self) -> None:
        """Makes the chosen moves."""
        problem, _ = self._problem
        if problem.lowest > self.capacity:
            self._explain_the_least(problem)
        self._explain()
        moved = [each for each in self.own if each.is_changed]
        lying: dict[int, SSAValue] = {}  # the slower memory, by forwarded buffer
        for each in reversed(moved):  # nested blocks before those around them
            rewriting = Rewriting(each, self.route.slower)
            if each.wraps:
                lying[each.buffer] = rewriting.forward(lying.get(each.buffer))
            else:
                rewriting.run()
        for allocation in {
            each.buffer: each.resident.allocation for each in moved
        }.values():
            erase_unused(allocation.alloc.memref)

    def _take(self, gaps: Iterable[tuple[Moving, int]]) -> None:
        taken: dict[Moving, list[int]] = {}
        for each, gap in gaps:
            taken.setdefault(each, []).append(gap)
        for each in self.moving:
            each.leave(taken.get(each, ()))

    @cached_property
    def _problem(self) -> tuple[ResidencyProblem, Sequence[tuple[Moving, int]]]:
        """The problem, and for each of its gaps the resident and the position."""
        gaps = Gaps(self.moving, self.route)
        given = self._live(), self.capacity, gaps.sizes, gaps.first, gaps.found
        return ResidencyProblem(*given), gaps.places

    def _live(self) -> list[int]:
        """The bytes that are live in each step."""
        change = [0] * (len(self.flow.ops) + 1)
        for index in self.arena.members:
            buffer = self.arena.pool.buffers[index]
            for start, end in buffer.live:
                change[start] += buffer.size
                change[end] -= buffer.size
        return list(accumulate(change))[:-1]

    def _choices(self, problem: ResidencyProblem) -> Iterator[Sequence[int]]:
        """Yields sets of gaps that free enough bytes. Each further set frees more, for
        a caller that found no offsets."""
        choose = cheapest
        if self.exact:
            from ...planning.scheduling.exact_residency import proved

            choose = proved
        lowest = problem.lowest
        target = max(self.capacity, lowest)
        margin = 0  # the bytes lost to fragmentation
        for _ in range(ROUNDS):
            try:
                yield choose(replace(problem, capacity=target)).gaps
            except ImportError as error:
                raise LocatedError(str(error)) from None
            if target == lowest:
                break
            margin = max(2 * margin, self._peak() - self.capacity)
            target = max(self.capacity - margin, lowest)

    def _peak(self) -> int:
        """The bytes of the arena for the current choice."""
        problem = Problem(list(self._buffers()))
        return solve_arena(problem, self.strategy, self.capacity).peak

    def _buffers(self) -> Iterator[Buffer]:
        """The buffers of the arena for the current choice."""
        own: dict[int, list[Moving]] = {}
        for each in self.own:
            own.setdefault(each.buffer, []).insert(0, each)
        for index in self.arena.members:
            buffer = self.arena.pool.buffers[index]
            left = [*buffer.live]
            for each in own.get(index, ()):  # nested blocks before those around them
                if not each.is_changed:
                    continue
                for size, steps in each.memories:
                    if live := common(left, steps):
                        yield _named(buffer, size, live)
                left = without(left, each.instead)
            if left:
                yield _named(buffer, buffer.size, left)

    def _explain_the_least(self, problem: ResidencyProblem) -> None:
        """Reports the operation at which too many bytes are live after all possible
        moves, and the buffers there that the pass cannot move."""
        step = self._step_that_needs_most(problem)
        pool, fixed = self.arena.pool, self._fixed_at(step)
        never = sum(pool.buffers[index].size for index in fixed)
        held = [x for index in fixed for x in pool.slots[index].allocations]
        names = dict.fromkeys(
            f"{_described_buffer(x)}, {why_none(x, self.flow)}" for x in held
        )
        remark(
            f"even if all else moves to {self.route.slower.name}, "
            f"{problem.lowest} bytes "
            f"are live in {self.route.memory.name} here, expected at most "
            f"{self.arena.left}"
            + (f"; {never} of these stay: {'; '.join(names)}" if fixed else ""),
            self.flow.ops[step],
        )

    @staticmethod
    def _step_that_needs_most(problem: ResidencyProblem) -> int:
        live = Choice(replace(problem, capacity=0), range(len(problem.gaps)))
        return max((at for at, b in enumerate(problem.live) if b), key=live.excess)

    def _fixed_at(self, step: int) -> Sequence[int]:
        """The buffers that are live in `step` and cannot move."""
        movable = {each.buffer for each in self.own}
        return [
            index
            for index in self.arena.members
            if index not in movable
            and any(a <= step < b for a, b in self.arena.pool.buffers[index].live)
        ]

    def _explain(self) -> None:
        for each in self.moving:
            allocation = each.resident.allocation
            what = f"{allocation.size} bytes of {allocation.name}"
            if each.is_forwarded and each.wraps:
                if each.resident.block is allocation.alloc.parent:
                    remark(
                        f"{what} are in {self.route.slower.name} between blocks",
                        allocation.alloc,
                    )
                continue
            for start, end in each.absences:
                wraps = each.wraps and each.away[-1]
                if wraps and start == 0 and end + 1 < len(each.away):
                    continue  # the absence after the last use reports it
                remark(
                    f"{what} are in {self.route.slower.name} {_when(each, start, end)}",
                    allocation.alloc,
                )


def _joined(remote: Sequence[Remote | None]) -> Set[int]:
    """The positions between two uses that access copies of the same view."""
    staged = [each and each.staged for each in remote]
    pairs = enumerate(pairwise(staged), 1)
    return {gap for gap, (view, next) in pairs if view is next is not None}


def _named(buffer: Buffer, size: int, live: Sequence[Steps]) -> Buffer:
    """A buffer like `buffer`, of `size` bytes, that is live in the ranges `live`, which
    may touch."""
    return buffer_of(buffer.id, size, merged(live), buffer.alignment)


def _when(each: Moving, first: int, last: int) -> str:
    """The absence from position `first` to `last`, in words for a remark."""
    uses = each.resident.uses
    around = each.resident.block.parent_op()
    assert around is not None
    if not uses:
        return f"in a branch of {_described(around)}"
    if first == 0 and last == len(uses):
        return f"during {_described(around)}"
    if first == 0:
        return (
            f"from the beginning of {_described(around)} to {_described(uses[last].op)}"
        )
    start = _described(uses[first - 1].op)
    if last < len(uses):
        return f"between {start} and {_described(uses[last].op)}"
    wrapped = next((end for begin, end in each.absences if begin == 0), None)
    if not each.wraps or wrapped is None:
        return f"from {start} to the end of {_described(around)}"
    return f"between {start} and the next iteration's {_described(uses[wrapped].op)}"


def _passing(use: ResidentUse) -> Sequence[tuple[Resident, ResidentUse | None]]:
    """The residents of nested blocks whose contents enter or leave them, each with the
    loop that carries it, or None."""
    if isinstance(use.op, scf.WhileOp):  # only if the condition has no uses
        return [(each, use) for each in use.inside[1:] if not use.inside[0].uses]
    is_loop = name_of(use.op) in LOOPS
    return [(each, use if is_loop else None) for each in use.inside]


def _described_buffer(allocation: Allocation) -> str:
    place = place_of(allocation.alloc)
    return f"{allocation.name} ({place})" if place else allocation.name


def _described(op: Operation) -> str:
    place = place_of(op)
    return f"{name_of(op)} ({place})" if place else name_of(op)
