"""A program that runs: its memory, its steps, and how these follow arguments.

Knows no IR: compiled.py makes one of IR, saved/ of a file.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ..backends.jit.records import make
from ..pool import ALIGNMENT, Pool, Scratch
from .relocation import Hidden, Point, Relocations, relocated
from .steps import MemoryBlock, Step, View


class Changes(NamedTuple):
    """What is other than before about the arguments of a program."""

    moved: Collection[MemoryBlock]  # now at another address
    renewed: Collection[MemoryBlock]  # with other copies for kernels


class Memory:
    """The memory that a program runs in."""

    def __init__(self, pools: Mapping[str, Pool]):
        """`pools` are those of each device."""
        self._pools = pools
        self.arguments: list[MemoryBlock] = []
        """Who binds one sets its `array`; calls follow."""
        self.constants: dict[str, MemoryBlock] = {}
        self.arenas_move = False
        """Whether calls are made so that they can follow the arenas, too."""
        self.arena_bytes = {device: pool.bytes for device, pool in pools.items()}
        """What of the arena of each device the program uses."""
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
        """One for each device, in order of first use."""
        return list(self._pools.values())

    @property
    def is_in_pools(self) -> bool:
        """Whether no arena has moved, as another program needed a larger one."""
        pools = self._pools
        return all(m.array is pools[d].memory for d, m in self.arena_memories.items())

    def follow_pools(self) -> None:
        """Finds arenas that have moved. The caller has to remake the steps."""
        for device, memory in self.arena_memories.items():
            memory.array = self._pools[device].memory
            memory.home = memory.array if self.arenas_move else None


class Program:
    """The steps of a program, in the memory that they are made for."""

    def __init__(self, memory: Memory):
        self._memory = memory
        self.inputs: Sequence[MemoryBlock] = ()
        """The argument for each input."""
        self.results: Sequence[MemoryBlock | View] = ()
        """The argument that holds each result, or where else that lies."""
        self.steps: list[Step] = []
        self._all_steps: list[Step] = []  # those in loops and branches, too
        self._scratches: dict[object, Scratch] = {}
        self._relocations: dict[Step, Relocations] = {}
        self._moving = Relocations()
        """All of these together."""
        self._fixed: Sequence[Step] = ()
        self._points: Mapping[MemoryBlock, Sequence[Point]] = {}

    @property
    def memory(self) -> Memory:
        return self._memory

    def make(self, steps: Collection[Step] | None = None) -> None:
        """Makes the calls of steps, of all unless some are given."""
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
        """Makes the calls follow arguments; returns whether some had to be made anew
        for that."""
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
    def moving_arenas(self) -> Mapping[MemoryBlock, int]:
        """The arenas, with their bytes, if all calls follow them and the arguments
        without having to be put together or made again; else none."""
        memory = self.memory
        arenas = {m: memory.arena_bytes[d] for d, m in memory.arena_memories.items()}
        every = *arenas, *memory.arguments
        is_native = all(self.points(each) is not None for each in every)
        is_aligned = all(pool.alignment <= ALIGNMENT for pool in memory.pools)
        return arenas if is_native and is_aligned else {}

    def follows(self, memory: MemoryBlock) -> bool:
        """Whether no calls have to be made anew where an argument moves."""
        return memory.moves and all(memory not in s.arguments for s in self._fixed)

    def points(self, memory: MemoryBlock) -> Sequence[Point] | None:
        """What follows an argument, if no calls have to be put together or made again
        for that; else None."""
        return self._points.get(memory)

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
        """Has a step's calls follow arguments, if they can."""
        if not step.arguments and not self.memory.arenas_move:
            return
        try:
            step.calls, self._relocations[step] = relocated(step.calls, moving)
        except Hidden:
            step.is_fixed = True

    @property
    def scratch_bytes(self) -> int:
        """That kernels take while they run, beside planned workspaces."""
        return sum(scratch.bytes for scratch in self._scratches.values())
