"""The plan of a memory space: the buffers in its arenas and in arguments' memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from ....analysis.allocations import Allocation
from ....analysis.banks import read_together
from ....analysis.control_flow import ControlFlow
from ....analysis.liveness import buffer_of, for_all_agents, live_steps, pool_of
from ....analysis.sizes import SizeReader
from ....dialects.target_memory import TargetMemory
from ....planning import Buffer, Plan, Problem
from ....planning.banks import Banks, spread, total_collisions
from ....planning.problem import peak_of
from .output_reuse import Output, is_movable
from .slots import Slot
from .stream_order import Offsets, StreamOrder


class Pool:
    """The slots of a memory space, as buffers."""

    def __init__(
        self,
        flow: ControlFlow,
        order: StreamOrder | None,
        slots: Sequence[Slot],
    ):
        self.slots = slots
        self.allocations = allocations = [slot.allocations[0] for slot in slots]
        """The first allocation of each slot."""
        buffers = [
            buffer_of(a.name, a.size, slot.steps, slot.alignment)
            for a, slot in zip(allocations, slots, strict=True)
        ]
        self._flow = flow
        self._order = order
        self._accesses: list[list[int]] = []
        self.buffers = buffers
        if order is not None:
            self._accesses = [order.places(a.uses.accesses) for a in allocations]
            self.buffers = [replace(b, gaps=()) for b in buffers]
            buffers = order.lifespans(self.buffers, self._accesses)
        self.spans = [
            replace(b, pool=pool_of(a.alloc.memref.type.element_type))
            if is_movable(a.alloc)
            else b
            for a, b in zip(allocations, buffers, strict=True)
        ]
        """The buffers with the steps in which no other buffer may have their bytes. A
        buffer that may lie in a result is in the pool of its element type."""

    @property
    def is_ordered(self) -> bool:
        """Whether operations run in program order."""
        return self._order is None

    def spans_of(self, outputs: Sequence[Output]) -> list[Buffer]:
        """The results as buffers that are live while they need their own memory."""
        if not outputs:
            return []
        alone = live_steps(self._flow, [output.uses for output in outputs])
        live = for_all_agents(self._flow, alone)
        buffers = [
            buffer_of(x.name, x.size, ranges, 1, pool_of(x.type.element_type))
            for x, ranges in zip(outputs, live, strict=True)
        ]
        if self._order is None:
            return buffers
        accesses = [self._order.places(x.uses.accesses) for x in outputs]
        return self._order.to_the_end(buffers, accesses)

    def place(
        self, indices: Sequence[int], solve: Callable[[Problem], Plan]
    ) -> Offsets:
        """Offsets of the buffers `indices`, which share an arena."""
        buffers = [self.buffers[i] for i in indices]
        if self._order is None:
            plan = solve(Problem(buffers))
            return Offsets(plan.offsets, plan.peak)
        return self._order.place(buffers, [self._accesses[i] for i in indices], solve)

    def spread(
        self,
        indices: Sequence[int],
        plan: Offsets,
        func: FuncOp,
        banks: Banks,
        most: int,
    ) -> Offsets:
        """Changes the offsets of a plan for fewer collisions in banks. The arena grows
        only if that helps, and to at most `most` bytes."""
        buffers = [self.buffers[i] for i in indices]
        numbers: dict[SSAValue, int] = {
            allocation.alloc.memref: number
            for number, index in enumerate(indices)
            for allocation in self.slots[index].allocations
            if allocation.slots == 1
        }
        pairs = read_together(func, numbers)
        found = spread(buffers, plan.offsets, pairs, banks, plan.peak)
        if most > plan.peak and total_collisions(banks, pairs, found):
            found = spread(buffers, found, pairs, banks, most)
        return Offsets(found, max(plan.peak, peak_of(buffers, found)))


@dataclass(frozen=True, slots=True)
class Arena:
    """The plan of an arena: the only one of a memory space, or one of several
    (`tgraph.on_demand`)."""

    space: Attribute
    pool: Pool
    members: Sequence[int]  # the numbers of the buffers in the arena
    plan: Offsets  # of these buffers
    alignment: int  # bytes
    memory: TargetMemory | None = None  # the target's memory for the space
    left: int | None = None  # bytes of it that arguments leave
    reuses: Mapping[int, tuple[Output, int]] = field(
        default_factory=dict[int, tuple[Output, int]]
    )
    """The argument and the offset of each buffer that lies in an argument's memory, for
    the first arena of the memory space."""
    dynamic: tuple[SizeReader, Sequence[Allocation]] | None = None
    """The sizes, and the allocations, if offsets are computed at run time."""
    is_on_demand: bool = False
    """Whether it is allocated only while its buffers are used."""

    @property
    def fits(self) -> bool:
        """Whether the arena fits what arguments leave of the target's memory."""
        return self.left is None or self.plan.peak <= self.left
