"""Checks a plan against the target's memories (dialects/target_memory.py).

The arenas of a function and its arguments fit the memory that they are in; an arena at
the memory's base address is aligned; an arena at a constant address is within the
memory; and operations read and write only where the target allows it. Shares no code
with the planner.
"""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ..analysis.sizes import argument_bytes
from ..dialects.diagnostics import LocatedError, name_of
from ..dialects.memory import effects_on, freed, is_view, maker_of, says_effects
from ..dialects.sizes.dims import BOUNDS, numbers_in
from ..dialects.target_memory import TargetMemories, TargetMemory, target_memories
from ..dialects.tgraph.base import AnyMemRef
from .arenas import place_of
from .buffers import MemoryPool, name_of_buffer
from .pointees import is_memref, operations_in
from .unchecked import Unchecked


def check_target(
    func: FuncOp, pools: Sequence[MemoryPool], unchecked: Unchecked
) -> None:
    """Checks the pools and operations of a function against its target, if the module
    describes one."""
    memories = target_memories(func)
    for memory in memories.values():
        here = [p for p in pools if _space(p) == memory.memory_space and not p.caller]
        _check_pools(func, memory, here, unchecked)
    if memories:
        for op in operations_in(func):
            _check_accesses(op, memories, unchecked)


def _space(pool: MemoryPool) -> object:
    return cast(AnyMemRef, pool.value.type).memory_space


def _check_pools(
    func: FuncOp,
    memory: TargetMemory,
    pools: Sequence[MemoryPool],
    unchecked: Unchecked,
) -> None:
    bounds = numbers_in(func.attributes.get(BOUNDS))
    given, are_all = argument_bytes(func, memory.memory_space, bounds)
    sized = [p for p in pools if _is_static(p)]
    bytes = given + sum(p.size for p in sized if isinstance(p.value.owner, Operation))
    if pools and not (are_all and sized == pools):
        what = f"arenas in {memory.name}, whose capacity is not proved to suffice"
        unchecked.add(f"{what}: sizes have no bounds", maker_of(pools[0].value))
    if sized and bytes > memory.capacity:
        raise LocatedError(
            f"function @{func.sym_name.data} has {bytes} bytes in {memory.name}, "
            f"{given} of them arguments', expected at most its {memory.capacity}",
            maker_of(pools[0].value),
        )
    for pool in pools:
        _check_address(pool, memory)
        if pool.is_new and memory.base is not None and memory.base % pool.alignment:
            raise LocatedError(
                f"the arena has alignment {pool.alignment}, expected one that divides "
                f"the address of {memory.name}, {memory.base:#x}",
                maker_of(pool.value),
            )


def _is_static(pool: MemoryPool) -> bool:
    return cast(AnyMemRef, pool.value.type).has_static_shape()


def _check_address(pool: MemoryPool, memory: TargetMemory) -> None:
    """Checks that an arena at a constant address is within its memory."""
    place = place_of(pool.value)
    if place is None or place.name or memory.base is None:
        return
    first, end = memory.base, memory.base + memory.capacity
    if place.start < first or place.start + pool.size > end:
        raise LocatedError(
            f"arena {name_of_buffer(pool.value)} lies at addresses [{place.start:#x}, "
            f"{place.start + pool.size:#x}), expected within [{first:#x}, {end:#x}) of "
            f"{memory.name}",
            maker_of(pool.value),
        )


def _check_accesses(
    op: Operation, memories: TargetMemories, unchecked: Unchecked
) -> None:
    if is_view(op) or freed(op):
        return
    name = name_of(op)
    for value in dict.fromkeys(filter(is_memref, op.operands)):
        memory = memories.get(cast(AnyMemRef, value.type).memory_space)
        if memory is None or (memory.may_read(name) and memory.may_write(name)):
            continue
        if not says_effects(op):
            what = f"operations with unknown effects on {memory.name}, not checked"
            unchecked.add(what, op)
            continue
        reads, writes = effects_on(op, value)
        if reads and not memory.may_read(name):
            raise _refused("reads", memory.readers, memory, op)
        if writes and not memory.may_write(name):
            raise _refused("writes", memory.writers, memory, op)


def _refused(
    does: str, allowed: Sequence[str], memory: TargetMemory, op: Operation
) -> LocatedError:
    who = f"only {', '.join(allowed)}" if allowed else "no operation"
    verb = does.removesuffix("s")
    return LocatedError(
        f"{name_of(op)} {does} {memory.name}, but {who} may {verb} it", op
    )
