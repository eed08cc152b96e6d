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
writing, that another region frees, or whose symbolic size has no bound; copy parts of
symbolic size; change functions with streams or barriers; overlap copies with other
operations; or fail if no choice fits. In that case, it leaves the arena with the fewest
bytes, and plan-memory reports the error.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple, cast

from xdsl.context import Context
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from ...analysis.allocations import Allocation, has_plan
from ...analysis.control_flow import LOOPS, ControlFlow
from ...analysis.cost import repetitions
from ...analysis.liveness import buffer_of, merged, without
from ...analysis.loops import ITERATIONS
from ...analysis.residents import (
    Resident,
    ResidentUse,
    forwarded_residents,
    residents,
    why_none,
)
from ...dialects.diagnostics import (
    LocatedError,
    held_back,
    name_of,
    place_of,
    remark,
)
from ...dialects.memory import is_view, overwrites, says_effects
from ...dialects.sizes.symbolic import names_in
from ...dialects.strides import has_distinct_elements
from ...dialects.target_memory import (
    Copies,
    TargetMemory,
    slower_memory,
    target_memories,
)
from ...dialects.tgraph.base import AnyMemRef, element_bytes
from ...planning import Buffer, Problem
from ...planning.arena import solve_arena
from ...planning.problem import Steps, common
from ...planning.scheduling.residency import (
    Choice,
    Gap,
    ResidencyProblem,
    cheapest,
)
from ..options import MemoryOptions
from .memory import PlanMemory
from .placement.arena import Arena
from .spilling.exchanged import unroll
from .spilling.forwarded import copy_apart, unite

ROUNDS = 8
"""The largest number of choices for which a placement is searched."""

COPY = memref.CopyOp.name

ELEMENTWISE = ("memref.load", "memref.store", "affine.load", "affine.store")
"""Operations that access one element of their memref."""


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
                    self._spill(func, _Route(memory, *found))

    def _spill(self, func: FuncOp, route: "_Route") -> None:
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

    def _arena(self, func: FuncOp, route: "_Route") -> Arena | None:
        planner = PlanMemory(**self.shared(MemoryOptions))
        space = route.memory.memory_space
        with held_back():  # plan-memory will repeat these remarks
            return next((a for a in planner.arenas(func) if a.space == space), None)


@dataclass(frozen=True, slots=True)
class _Route:
    """The copies from a memory to a slower one, and back."""

    memory: TargetMemory
    slower: TargetMemory
    out: Copies
    back: Copies

    def why_not(self, func: FuncOp, arena: Arena) -> str | None:
        """The reason why no buffer of `func` can move on this route; None if there is
        none."""
        if not arena.pool.is_ordered:
            return "its operations have streams"
        if ControlFlow(func).barriers:
            return "it has barriers"
        for memory in (self.memory, self.slower):
            if not memory.may_read(COPY) or not memory.may_write(COPY):
                return f"{COPY} may not access {memory.name}"
        return None

    def times(self, size: int) -> tuple[int, int]:
        """The times of a copy of `size` bytes out, and of one back; at least 1."""
        return 1 + self.out.time(size), 1 + self.back.time(size)

    def saved(self, remote: "_Remote", size: int, *, is_stored: bool) -> int:
        """The time by which copies of all `size` bytes exceed the accesses of a use
        while the contents are away. `is_stored` includes the copy out after a write."""
        _, back = self.times(size)
        _, read = self.times(remote.reads) if remote.reads else (0, 0)
        return back - read + is_stored * self.saved_out(remote, size)

    def saved_out(self, remote: "_Remote", size: int) -> int:
        """The time by which a copy out of all `size` bytes exceeds the writes of a use
        while the contents are away."""
        out, written = (self.times(bytes)[0] for bytes in (size, remote.writes))
        return out - written if remote.writes else 0

    def remote(self, use: ResidentUse, size: int) -> "_Remote | None":
        """How `use` accesses a buffer of `size` bytes in the slower memory; None if it
        needs the whole buffer in the faster memory."""
        is_own = all(op is use.op and says_effects(op) for op, _ in use.accesses)
        if not is_own:
            return None
        if self._is_direct(use):
            part = _part(use, size)
            return _Remote(part * use.reads, part * use.writes)
        (view, *others) = dict.fromkeys(view for _, view in use.accesses)
        type = cast(AnyMemRef, view.type)
        if others or not type.has_static_shape():
            return None
        part = type.element_count() * element_bytes(type.element_type)
        is_read = use.reads or not overwrites(use.op, view)
        strides = type.get_strides() or [None]
        if not 0 < part < size:
            return None
        if use.writes and not has_distinct_elements(type.get_shape(), strides):
            return None
        if not _takes(use.op, view, _contiguous(type)):
            return None
        return _Remote(part * is_read, part * use.writes, view, part)

    def _is_direct(self, use: ResidentUse) -> bool:
        """Whether the operation of `use` may access the buffer in the slower memory."""
        name, slower = name_of(use.op), self.slower
        if isinstance(use.op, memref.CopyOp) and not self._is_copied(use):
            return False
        if use.reads and not slower.may_read(name):
            return False
        if use.writes and not slower.may_write(name):
            return False
        space = slower.memory_space
        return all(_takes(op, v, _in_space(v.type, space)) for op, v in use.accesses)

    def _is_copied(self, use: ResidentUse) -> bool:
        """Whether the target has a direct route between the slower memory and the other
        memory that a copy accesses. Memories that it does not describe have one."""
        (copy, view), *_ = use.accesses
        memories, slower = target_memories(copy), self.slower
        for other in (operand for operand in copy.operands if operand is not view):
            memory = memories.get(cast(AnyMemRef, other.type).memory_space, slower)
            source, target = (slower, memory) if use.reads else (memory, slower)
            if memory is not slower and target.name not in source.copies:
                return False
        return True


class _Remote(NamedTuple):
    """How a use accesses contents that are in the slower memory."""

    reads: int  # bytes
    writes: int  # bytes
    staged: SSAValue | None = None
    """The view whose bytes are copied to the faster memory for the use. None if the
    operation accesses the slower memory."""
    bytes: int = 0  # of the copy


def _part(use: ResidentUse, size: int) -> int:
    """An upper bound of the bytes that `use` accesses of a buffer of `size` bytes."""
    bytes = 0
    for op, view in use.accesses:
        type = cast(AnyMemRef, view.type)
        if name_of(op) in ELEMENTWISE:
            bytes += element_bytes(type.element_type)
        elif type.has_static_shape():
            bytes += type.element_count() * element_bytes(type.element_type)
        else:
            return size
    return min(bytes, size)


def _takes(op: Operation, view: SSAValue, type: AnyMemRef) -> bool:
    """Whether `op` verifies with a value of `type` as its operand `view`."""
    other = create_ssa_value(type)
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


def _contiguous(type: AnyMemRef) -> AnyMemRef:
    """The type of a buffer for the elements of a view."""
    return MemRefType(type.element_type, type.shape, memory_space=type.memory_space)


@dataclass(slots=True, eq=False)
class _Moving:
    """A resident that may move to the slower memory, and where it is away.

    A resident is away while its contents are only in the slower memory. Position `n` of
    `away` is before use `n`; the last position is after the last use.
    """

    buffer: int  # its index in the pool
    resident: Resident
    runs: int  # how often its block runs
    remote: Sequence[_Remote | None]
    """By use: how it accesses the contents while they are away; None if it cannot."""
    inside: Sequence[Sequence["_Moving"]]  # by use: its contents in nested blocks
    span: Steps  # the steps of its block, or of the loop
    loop: ResidentUse | None  # the loop that carries it through its iterations
    is_apart: bool  # whether the buffer holds other contents before or after
    joined: Set[int]
    """The positions between two uses that share a copy of a part, if they are away."""
    is_forwarded: bool = False  # whether blocks of `cf` forward it to one another
    away: list[bool] = field(init=False)
    """By position. The first can be True only if the contents enter the block, the last
    only if they are needed after it."""

    def __post_init__(self) -> None:
        self.leave(())

    def leave(self, gaps: Collection[int]) -> None:
        """Makes it away at the positions `gaps` only, and between uses that share a
        copy of a part if it is away around them."""
        self.away = [gap in gaps for gap in range(len(self.remote) + 1)]
        for gap in self.joined:
            uses = self.sharing(gap)
            around = [end for end in (uses.start, uses.stop) if end in self.gaps]
            self.away[gap] = bool(around) and all(end in gaps for end in around)

    def sharing(self, use: int) -> range:
        """The uses that share a copy of a part with use number `use`, and this one."""
        start, end = use, use + 1
        while start in self.joined:
            start -= 1
        while end in self.joined:
            end += 1
        return range(start, end)

    def steps_away(self, uses: range) -> int:
        """The number of steps of uses that may run while the contents are away."""
        if self.remotely(uses) is None:
            return 0
        of = self.resident.uses
        return of[uses.stop - 1].end - of[uses.start].at

    def remotely(self, uses: range) -> "_Remote | None":
        """How a use, or uses that share a copy, access contents that are away; None if
        they cannot, or if there are no uses."""
        first, *others = [self.remote[use] for use in uses] or [None]
        if first is None or not others:
            return first
        writes = max(each.writes for each in (first, *others) if each)
        return first._replace(writes=writes)

    @property
    def all(self) -> Iterator["_Moving"]:
        """This resident, and those of the nested blocks that its contents enter."""
        yield self
        for each in self.inside:
            for inner in each:
                yield from inner.all

    @property
    def gaps(self) -> Sequence[int]:
        """The positions at which the resident may be away."""
        resident = self.resident
        return range(not resident.enters, len(self.away) - (not resident.leaves))

    def around(self, use: int) -> Sequence[int]:
        """The positions before and after use number `use`, if in `gaps`."""
        return [gap for gap in (use, use + 1) if gap in self.gaps]

    def may_leave(self, gap: int) -> bool:
        """Whether it can save bytes to be away at position `gap`."""
        if gap not in self.gaps:
            return False
        start, end = self.steps(gap)
        uses = [use for use in (gap - 1, gap) if 0 <= use < len(self.remote)]
        is_at_loop = any(x.loop for use in uses for x in self.inside[use])
        is_at_end = self.may_wrap and gap in (0, len(self.away) - 1)
        return (
            start < end
            or is_at_loop
            or is_at_end
            or any(self.remote[use] for use in uses)
        )

    def is_away_at(self, use: int) -> bool:
        """Whether use number `use` runs while the contents are away: it accesses them
        there, or is a loop that copies them back in its body."""
        if any(inner.wraps for inner in self.inside[use]):
            return True
        around = [self.away[gap] for gap in self.around(use)]
        return self.remote[use] is not None and bool(around) and all(around)

    @property
    def is_own(self) -> bool:
        """Whether each copy back allocates new memory."""
        return self.resident.is_own or self.wraps

    @property
    def may_wrap(self) -> bool:
        """Whether the next iteration, or another block, may receive the contents."""
        return self.loop is not None or self.is_forwarded

    @property
    def ends(self) -> Sequence[int]:
        """The first and the last position, if in `gaps`: where the contents enter and
        leave the block."""
        return [gap for gap in {0, len(self.away) - 1} if gap in self.gaps]

    @property
    def wraps(self) -> bool:
        """Whether it is away from the end of an iteration or block to the next one."""
        return self.may_wrap and (self.away[0] or self.away[-1])

    @property
    def is_changed(self) -> bool:
        """Whether the pass changes its uses: it gets memory of its own, or moves."""
        return self.is_apart or self.is_ever_away

    @property
    def is_ever_away(self) -> bool:
        return any(any(each.away) for each in self.all)

    @property
    def absences(self) -> Iterator[tuple[int, int]]:
        """The first and the last position of each absence. Uses in between access the
        slower memory, or copies of parts."""
        start = None
        for gap, is_away in enumerate([*self.away, False]):
            if start is not None and not (is_away and self.is_away_at(gap - 1)):
                yield start, gap - 1
                start = None
            if is_away and start is None:
                start = gap

    @property
    def copies(self) -> Iterator[tuple[int, range]]:
        """For each copy of a part: its bytes, and the uses that share it."""
        for use, remote in enumerate(self.remote):
            if remote and remote.bytes and use not in self.joined:
                if self.is_away_at(use):
                    yield remote.bytes, self.sharing(use)

    @property
    def stays(self) -> Iterator[tuple[int, int]]:
        """The first and the last use of each stay in the faster memory."""
        start = 0
        if not self.remote:
            return
        for use, leaves in enumerate([*self.away[1:-1], True]):
            if leaves:
                if not self.is_away_at(use):
                    yield start, use
                start = use + 1

    def steps(self, gap: int) -> Steps:
        """The steps of position `gap`: between the uses around it."""
        uses, (start, end) = self.resident.uses, self.span
        return (
            uses[gap - 1].end if gap else start,
            uses[gap].at if gap < len(uses) else end,
        )

    @property
    def memories(self) -> Iterator[tuple[int, Sequence[Steps]]]:
        """For each allocation of its own in the faster memory: the bytes, and the steps
        in which the allocation may be live."""
        uses, size = self.resident.uses, self.resident.allocation.size
        for start, end in self.stays if self.is_own else ():
            inside = (x for use in self.inside[start : end + 1] for x in use)
            free = [steps for each in inside for steps in each.free]
            yield size, without([(uses[start].at, uses[end].end)], free)
        for bytes, sharing in self.copies:
            yield bytes, [(uses[sharing.start].at, uses[sharing.stop - 1].end)]
        for each in self.inside:
            for inner in each:
                yield from inner.memories

    @property
    def instead(self) -> Sequence[Steps]:
        """The steps in which the resident does not need the original buffer."""
        uses = self.resident.uses
        if self.resident.is_own:
            return [(uses[0].at, uses[-1].end)]
        return [self.span] if self.wraps else [*self.free]

    @property
    def free(self) -> Iterator[Steps]:
        """The steps in which it is away, in its block or in a nested one."""
        for each in self.all:
            for first, last in each.absences:
                yield each.steps(first)[0], each.steps(last)[1]


class _Spilling:
    """Spills buffers of one function from one memory."""

    def __init__(
        self,
        func: FuncOp,
        arena: Arena,
        route: _Route,
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
        self.own: list[_Moving] = []
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
    ) -> _Moving:
        block, uses = resident.block, resident.uses
        assert block.first_op is not None
        assert block.last_op is not None
        is_elsewhere = block is not resident.allocation.alloc.parent
        first, last = (self.flow.step[op] for op in (block.first_op, block.last_op))
        size = resident.allocation.size
        remote = [self.route.remote(use, size) for use in uses]
        moving = _Moving(
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
    ) -> _Moving:
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
            rewriting = _Rewriting(each, self.route.slower)
            if each.wraps:
                lying[each.buffer] = rewriting.forward(lying.get(each.buffer))
            else:
                rewriting.run()
        for allocation in {
            each.buffer: each.resident.allocation for each in moved
        }.values():
            _erase_unused(allocation.alloc.memref)

    def _take(self, gaps: Iterable[tuple[_Moving, int]]) -> None:
        taken: dict[_Moving, list[int]] = {}
        for each, gap in gaps:
            taken.setdefault(each, []).append(gap)
        for each in self.moving:
            each.leave(taken.get(each, ()))

    @cached_property
    def _problem(self) -> tuple[ResidencyProblem, Sequence[tuple[_Moving, int]]]:
        """The problem, and for each of its gaps the resident and the position."""
        sizes: list[int] = []
        first: list[int] = []
        gaps: list[Gap] = []
        found: list[tuple[_Moving, int]] = []
        begin: dict[_Moving, int] = {}  # the contents with which it enters a block
        around: dict[_Moving, tuple[_Moving, int]] = {}  # the use that contains it
        numbers: dict[tuple[_Moving, int], int] = {}  # the numbers of the gaps
        for number, each in enumerate(self.moving):
            size, uses = each.resident.allocation.size, each.resident.uses
            sizes.append(size)
            out, back = (time * each.runs for time in self.route.times(size))
            contents = begin.get(each)
            if contents is None or (each.loop is not None and each.loop.writes):
                first.append(out)
                contents = len(first) - 1
            for use, inside in enumerate(each.inside):
                around.update(dict.fromkeys(inside, (each, use)))
            if each.loop is not None:
                first.append(self._of_wrapping(each, *around[each]))
            if each.is_forwarded:
                first.append(self._of_handing_on(each))
            wrapping = len(first) - 1
            for gap in range(len(each.away)):
                if gap:
                    begin.update(dict.fromkeys(each.inside[gap - 1], contents))
                    is_begun = gap == 1 and each.resident.is_own
                    if uses[gap - 1].writes and not is_begun:
                        first.append(out)
                        contents = len(first) - 1
                if gap in each.joined or not each.may_leave(gap):
                    continue
                earlier, later = range(0), range(gap, gap)
                if gap:
                    earlier = each.sharing(gap - 1)
                if gap < len(uses):
                    later = each.sharing(gap)
                before, after = map(each.remotely, (earlier, later))
                start, end = each.steps(gap)
                wraps = each.may_wrap and gap in (0, len(uses))
                cost, what = (0, wrapping) if wraps else (back, contents)
                is_between = later.stop in each.gaps
                saving = 0
                if after and (is_between or not wraps):
                    saved = self.route.saved(after, size, is_stored=is_between)
                    saving = saved * each.runs
                if not is_between:
                    cost, saving = cost - saving, 0
                if before and earlier.start not in each.gaps and not wraps:
                    cost -= self.route.saved_out(before, size) * each.runs
                numbers[each, gap] = len(gaps)
                gaps.append(
                    Gap(
                        *(number, start, end, cost, what),
                        direct=(each.steps_away(earlier), each.steps_away(later)),
                        staged=(
                            before.bytes if before else 0,
                            after.bytes if after else 0,
                        ),
                        saving=saving,
                    )
                )
                found.append((each, gap))
        forwarded: dict[int, list[int]] = {}  # by buffer: the gaps at block ends
        for each in self.own:
            if each.is_forwarded:
                ends = [numbers[each, gap] for gap in each.ends]
                forwarded.setdefault(each.buffer, []).extend(ends)
        for together in forwarded.values():
            for number in together:
                others = [other for other in together if other != number]
                gaps[number] = replace(gaps[number], needs=others)
        for outer in self.moving:  # nested residents come after outer ones
            for use, inside in enumerate(outer.inside):
                ends = [
                    numbers[each, gap]
                    for each in inside
                    for gap in each.ends
                    if each.loop is not None
                ]
                needs = list(ends)
                for gap in outer.around(use) if ends else ():
                    needs += [number := numbers[outer, gap], *gaps[number].needs]
                for number in ends:
                    others = [other for other in needs if other != number]
                    gaps[number] = replace(gaps[number], needs=sorted({*others}))
        live = self._live()
        return ResidencyProblem(live, self.capacity, sizes, first, gaps), found

    def _of_wrapping(self, each: _Moving, outer: _Moving, use: int) -> int:
        """The cost of being away between iterations: each one copies back, and copies
        out if the loop writes. If the contents can be away before the loop, its first
        copy back is already paid there, and likewise its last copy out after it."""
        assert each.loop is not None
        resident = each.resident
        out, back = self.route.times(resident.allocation.size)
        copies_in = each.runs * resident.enters
        copies_out = each.runs * (resident.leaves and each.loop.writes)
        if copies_in and use in outer.gaps:
            copies_in -= outer.runs
        if copies_out and use + 1 in outer.gaps:
            copies_out -= outer.runs
        return max(copies_in * back + copies_out * out, 0)

    def _of_handing_on(self, each: _Moving) -> int:
        """The cost of being away between blocks: each run of the block copies back, if
        it uses contents that enter, and out, if it writes contents that leave."""
        resident = each.resident
        out, back = self.route.times(resident.allocation.size)
        copies_in = each.runs * (resident.enters and bool(resident.uses))
        copies_out = each.runs * (
            resident.leaves and any(use.writes for use in resident.uses)
        )
        return copies_in * back + copies_out * out

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
        own: dict[int, list[_Moving]] = {}
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


def _joined(remote: Sequence[_Remote | None]) -> Set[int]:
    """The positions between two uses that access copies of the same view."""
    staged = [each and each.staged for each in remote]
    pairs = enumerate(pairwise(staged), 1)
    return {gap for gap, (view, next) in pairs if view is next is not None}


def _named(buffer: Buffer, size: int, live: Sequence[Steps]) -> Buffer:
    """A buffer like `buffer`, of `size` bytes, that is live in the ranges `live`, which
    may touch."""
    return buffer_of(buffer.id, size, merged(live), buffer.alignment)


def _when(each: _Moving, first: int, last: int) -> str:
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


class _Rewriting:
    """Rewrites the uses of one resident: inserts its allocations and copies."""

    def __init__(self, each: _Moving, slower: TargetMemory):
        self.each = each
        self.alloc = each.resident.allocation.alloc
        self.slower = slower
        self.there: SSAValue | None = None  # the allocation in the slower memory
        self.use = self.end = next((use.op for use in each.resident.uses), self.alloc)
        """`use` is the use in the outermost block that is being changed; `end` is the
        last operation there that needs the slower memory."""
        self.views: dict[tuple[SSAValue, SSAValue, Block | None], SSAValue] = {}
        """The views of new memory, by the buffer's view that each one replaces, the new
        memory, and the block."""
        self.part: SSAValue = self.alloc.memref  # the current copy of a part
        self.is_changed = False  # whether it was written
        self.last: dict[Operation, Operation] = {}
        """By operation: the last operation that was inserted after it."""

    def run(self) -> None:
        self._change(self.each, is_stored=False)
        if self.there is not None:
            self._after(self.end, memref.DeallocOp.get(self.there))

    def forward(self, memory: SSAValue | None) -> SSAValue:
        """Changes one of the blocks that forward the contents in the slower memory.
        Returns that memory: `memory`, or a new allocation with the buffer's lifetime if
        `memory` is None."""
        if memory is None:
            memory = self._allocate(self.alloc, self.slower.memory_space)
            for freeing in self.each.resident.allocation.deallocs:
                self._after(freeing, memref.DeallocOp.get(memory))
        self.there = memory
        self._change(self.each, is_stored=self.each.resident.enters)
        return memory

    def _change(self, each: _Moving, is_stored: bool) -> bool:
        """Inserts the copies of a resident in its block. Returns whether the slower
        memory has the contents at the end of the block; `is_stored` is whether it has
        them at the start.

        Contents that enter or leave the block come back to the memory that the use
        around the block has.
        """
        resident, memory = each.resident, self.alloc.memref
        here = None if each.is_own or each.away[0] else memory
        if each.away[0] and not each.wraps and not is_stored:
            assert resident.block.first_op is not None
            self._before(resident.block.first_op, memref.CopyOp(memory, self._slow()))
            is_stored = True
        for number, use in enumerate(resident.uses):
            op = use.op
            if each is self.each:
                self.use = op
            if each.is_away_at(number):
                if (remote := each.remote[number]) and remote.staged is not None:
                    self._stage(each, number, remote)
                elif remote:
                    self._give(resident, op, self._slow())
                self._pass(each, number, None, is_stored)
                is_stored = True
                here = None
                continue
            if here is None:
                here = self._allocate(op) if each.is_own else memory
                if number or resident.enters:
                    back = memref.CopyOp(self._slow(), here)
                    self._before(op, back)
                    if each is self.each:
                        self.end = back
            is_stored = self._pass(each, number, here, is_stored)
            if each.is_own:
                self._give(resident, op, here)
            leaves = each.away[number + 1]
            if leaves and not is_stored:
                self._after(op, memref.CopyOp(here, self._slow()))
                is_stored = True
            if each.is_own and (leaves or use is resident.uses[-1]):
                self._after(op, memref.DeallocOp.get(here))
            if leaves:
                here = None
        if here is None and not each.is_own:
            assert resident.block.last_op is not None
            self._before(resident.block.last_op, memref.CopyOp(self._slow(), memory))
        return is_stored

    def _pass(
        self, each: _Moving, number: int, here: SSAValue | None, is_stored: bool
    ) -> bool:
        """Inserts the copies in the nested blocks of use `number`. Returns whether the
        slower memory has the contents after it; `is_stored` is whether it has them
        before."""
        use, inside = each.resident.uses[number], each.inside[number]
        changed = [inner for inner in inside if inner.is_ever_away]
        is_loop = any(inner.loop is not None for inner in changed)
        wraps = any(inner.wraps for inner in changed)
        if here is not None and is_loop and not use.writes and not is_stored:
            self._before(use.op, memref.CopyOp(here, self._slow()))  # before all runs
            is_stored = True
        for inner in changed:
            self._change(inner, is_stored and (wraps or not (is_loop and use.writes)))
        return is_stored and (wraps or not use.writes)

    def _stage(self, each: _Moving, number: int, remote: _Remote) -> None:
        """Gives use `number` a copy of the view that it accesses."""
        view = remote.staged
        assert view is not None
        op = each.resident.uses[number].op
        there = self._view(view, self._slow(), op)
        if number not in each.joined:
            type = _contiguous(cast(AnyMemRef, view.type))
            made = memref.AllocOp((), (), type, self.alloc.alignment)
            made.memref.name_hint = self.alloc.memref.name_hint
            self._before(op, made)
            self.part, self.is_changed = made.memref, False
            if remote.reads and (number or each.resident.enters):
                self._before(op, memref.CopyOp(there, self.part))
        self.is_changed |= remote.writes > 0
        op.operands = [self.part if v is view else v for v in op.operands]
        if number + 1 not in each.joined:
            if self.is_changed:
                self._after(op, memref.CopyOp(self.part, there))
            self._after(op, memref.DeallocOp.get(self.part))

    def _slow(self) -> SSAValue:
        """The allocation in the slower memory, for the current use and later ones."""
        self.end = self.use
        if self.there is None:
            self.there = self._allocate(self.use, self.slower.memory_space)
        return self.there

    def _allocate(self, op: Operation, space: Attribute | None = None) -> SSAValue:
        """Allocates memory like the buffer's before `op`, in `space` if given."""
        given = self.alloc
        type = given.memref.type
        if space is not None:
            type = _in_space(type, space)
        made = memref.AllocOp(given.dynamic_sizes, (), type, given.alignment)
        self._before(op, made)
        made.memref.name_hint = given.memref.name_hint
        return made.memref

    def _give(self, resident: Resident, op: Operation, memory: SSAValue) -> None:
        """Makes `op` and all operations nested in it use `memory`."""
        for inner in op.walk():
            inner.operands = [
                self._view(value, memory, op) if value in resident.views else value
                for value in inner.operands
            ]

    def _view(self, view: SSAValue, memory: SSAValue, op: Operation) -> SSAValue:
        """The view of `memory` that replaces `view`, for `op` and later operations."""
        if view is self.alloc.memref:
            return memory
        key = view, memory, op.parent
        if key not in self.views:
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
            self.views[key] = made.results[0]
        return self.views[key]

    def _before(self, op: Operation, made: Operation) -> None:
        made.location = self.alloc.location
        Rewriter.insert_op(made, InsertPoint.before(op))

    def _after(self, op: Operation, made: Operation) -> None:
        made.location = self.alloc.location
        Rewriter.insert_op(made, InsertPoint.after(self.last.get(op, op)))
        self.last[op] = made


def _erase_unused(buffer: SSAValue) -> None:
    """Erases `buffer` if only deallocations use it, after its unused views."""
    for user in [use.operation for use in buffer.uses]:
        if is_view(user):
            _erase_unused(user.results[0])
    users = [use.operation for use in buffer.uses]
    if all(isinstance(user, memref.DeallocOp) for user in users):
        for op in (*users, buffer.owner):
            assert isinstance(op, Operation)
            Rewriter.erase_op(op)
