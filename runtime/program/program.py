"""A program that is ready to run: its memory, its steps, and how they follow arguments.

Knows no IR: compiled.py makes a program from IR, saved/ from a file.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ..backends.jit.records import make
from ..pool import ALIGNMENT, Pool, Scratch
from .relocation import Hidden, Point, Relocations, relocated
from .steps import Arena, MemoryBlock, Step, View


class Changes(NamedTuple):
    """How the memory of a program's arguments differs from that of the last call."""

    moved: Collection[MemoryBlock]  # now at another address
    renewed: Collection[MemoryBlock]  # with other packed copies


class Memory:
    """The memory that a program runs in."""

    def __init__(self, pools: Mapping[str, Pool]):
        """`pools` has the pool of each device."""
        self._pools = pools
        self.arguments: list[MemoryBlock] = []
        """Setting the `array` of an argument binds it; calls then follow."""
        self.constants: dict[str, MemoryBlock] = {}
        self.arenas_move = False
        """Whether calls are made relocatable for the arenas, too."""
        self.arena_bytes = {device: pool.bytes for device, pool in pools.items()}
        """The bytes of each device's arena that the program uses."""
        self.arena_memories = {
            device: MemoryBlock(pool.memory, f"the arena on {device}", device)
            for device, pool in pools.items()
        }

    @property
    def packed_bytes(self) -> int:
        memories = (*self.arguments, *self.constants.values())
        return sum(m.prepacked.bytes for m in memories if m.prepacked)

    @property
    def pools(self) -> Sequence[Pool]:
        """The pool of each device, in order of first use."""
        return list(self._pools.values())

    @property
    def is_in_pools(self) -> bool:
        """Whether `arena_memories` are still the memory of the pools. A pool
        reallocates its arena when another program needs a larger one."""
        pools = self._pools
        return all(m.array is pools[d].memory for d, m in self.arena_memories.items())

    def follow_pools(self) -> None:
        """Updates arenas that pools have reallocated. The steps must be remade then."""
        for device, memory in self.arena_memories.items():
            memory.array = self._pools[device].memory
            memory.home = memory.array if self.arenas_move else None


class Program:
    """The steps of a program, and the memory that they are compiled for."""

    def __init__(self, memory: Memory):
        self._memory = memory
        self.inputs: Sequence[MemoryBlock] = ()
        """The memory of the argument for each input."""
        self.results: Sequence[MemoryBlock | View] = ()
        """The argument that holds each result; a view if it lies elsewhere."""
        self.arenas: Sequence[Arena] = ()
        self.steps: list[Step] = []
        self._all_steps: list[Step] = []  # including those in loops and branches
        self._scratches: dict[object, Scratch] = {}
        self._relocations: dict[Step, Relocations] = {}
        self._moving = Relocations()
        """The union of `_relocations`."""
        self._fixed: Sequence[Step] = ()
        self._points: Mapping[MemoryBlock, Sequence[Point]] = {}

    @property
    def memory(self) -> Memory:
        return self._memory

    def make(self, steps: Collection[Step] | None = None) -> None:
        """Makes the calls of `steps`, by default of all steps, and of steps whose
        scratch memory has moved."""
        self._make(self.steps if steps is None else steps)
        self._make([step for step in self.steps if step.is_outdated])
        in_use = {step.workspace for step in self._all_steps}
        for scratch in self._scratches.values():
            if scratch.pool not in in_use:
                scratch.release()
        self._fixed = [s for s in self.steps if s.is_fixed and s.arguments]
        self._moving = Relocations()
        for relocations in self._relocations.values():
            self._moving.add(relocations)
        self._moving.move(self._moving_memories())
        others = [step for step in self.steps if step not in self._relocations]
        unseen = {memory for step in others for memory in step.arguments}
        if others:
            unseen.update(self.memory.arena_memories.values())
        self._points = {
            memory: self._moving.points.get(memory, ())
            for memory in self._moving_memories()
            if memory not in unseen and not self._moving.calls.get(memory)
        }

    def follow(self, changes: Changes) -> bool:
        """Makes the calls follow arguments that changed. Returns whether the calls of
        any step had to be made anew."""
        following = [memory for memory in changes.moved if memory.moves]
        self._moving.move(following)
        if not self._fixed and not changes.renewed and following == changes.moved:
            return False
        stale = {*changes.renewed, *(m for m in changes.moved if not m.moves)}
        steps = [
            step
            for step in self.steps
            if not stale.isdisjoint(step.arguments)
            or (step.is_fixed and not step.arguments.isdisjoint(changes.moved))
        ]
        if steps:
            self.make(steps)
        return bool(steps)

    @property
    def moving_arenas(self) -> Sequence[Arena]:
        """The arenas, if native code alone can relocate all calls when arenas or
        arguments move; otherwise empty."""
        memory = self.memory
        every = *memory.arena_memories.values(), *memory.arguments
        is_native = all(self.points(each) is not None for each in every)
        is_aligned = all(pool.alignment <= ALIGNMENT for pool in memory.pools)
        return self.arenas if is_native and is_aligned else ()

    def follows(self, memory: MemoryBlock) -> bool:
        """Whether no calls have to be made anew when the argument `memory` moves."""
        return memory.moves and all(memory not in s.arguments for s in self._fixed)

    def points(self, memory: MemoryBlock) -> Sequence[Point] | None:
        """The places that hold addresses in `memory`, if writing these places is all
        that has to be done when it moves; None if calls must be rebuilt or made anew.
        """
        return self._points.get(memory)

    def points_in(self, arena: Arena) -> Sequence[Point]:
        """The places that hold addresses in an arena of `moving_arenas`."""
        first, end = arena.steps
        return [
            (offset - arena.start, point)
            for step in self.steps[first:end]
            if (relocations := self._relocations.get(step))
            for offset, point in relocations.points.get(arena.memory, ())
            if arena.start <= offset < arena.start + arena.size
        ]

    def _moving_memories(self) -> list[MemoryBlock]:
        memories = *self.memory.arguments, *self.memory.arena_memories.values()
        return [memory for memory in memories if memory.moves]

    def _make(self, steps: Collection[Step]) -> None:
        moving = self._moving_memories()
        now = [memory.array for memory in moving]
        for memory in moving:
            assert memory.home is not None
            memory.array = memory.home
        try:
            following = [step for step in steps if not step.is_fixed]
            for step in following:
                step.remake()
            make(call for step in following for call in step.calls)
            for step in following:
                self._relocate(step, moving)
        finally:
            for memory, array in zip(moving, now, strict=True):
                memory.array = array
        for step in steps:
            if step.is_fixed:
                self._relocations.pop(step, None)
                step.remake()

    def _relocate(self, step: Step, moving: Sequence[MemoryBlock]) -> None:
        """Makes a step's calls relocatable; marks the step as fixed if it can't."""
        if not step.arguments and not self.memory.arenas_move:
            return
        try:
            step.calls, self._relocations[step] = relocated(step.calls, moving)
        except Hidden:
            step.is_fixed = True

    @property
    def scratch_bytes(self) -> int:
        """The bytes of kernel scratch memory, without planned workspaces."""
        return sum(scratch.bytes for scratch in self._scratches.values())
