"""The statistics of a planned module, computed from its IR."""

from collections import Counter
from collections.abc import Sequence
from typing import NotRequired, TypedDict, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ..analysis.allocations import lifespans
from ..analysis.banks import banks_of, read_together
from ..analysis.cost import repetitions
from ..analysis.flops import flops
from ..analysis.liveness import buffer_of
from ..analysis.sizes import counted_sizes
from ..checking.plan_check import PlannedPool, check_plan
from ..dialects.diagnostics import name_of
from ..dialects.target_memory import target_memories
from ..dialects.tgraph.base import AnyMemRef
from ..dialects.tgraph.differentiation import RECOMPUTED
from ..planning import Problem
from ..planning.banks import total_collisions
from ..planning.problem import Steps
from .placements import function_of, placements
from .printed import printed


class PoolReport(TypedDict):
    """The statistics of an arena. Sizes are in bytes."""

    device: str
    bytes: int
    lower_bound_bytes: int
    unshared_bytes: int
    buffers: int
    alignment: int
    bank_collisions: NotRequired[int]  # for a memory with banks: see planning/banks.py


class ReusedReport(TypedDict):
    """An argument whose memory holds other buffers. Sizes are in bytes."""

    memory: str  # "result 1", "argument 0" (a variable or a donated argument)
    device: str
    bytes: int
    reused_bytes: int  # the end of the highest buffer in it
    buffers: int  # without the argument itself
    alignment: int


class BufferReport(TypedDict):
    """A buffer as a row of minimalloc's format, and its origin. Steps are half-open."""

    pool: int  # index in the report's `pools`, followed by `reused`
    id: str  # the value's name in the program's text
    lower: int  # steps
    upper: int
    size: int  # bytes, like `alignment` and `offset`
    alignment: int
    gaps: Sequence[Steps]
    offset: int
    type: str  # shape and elements: `16x64xf32`
    role: str  # see `Role`
    op: str  # the operation that accesses it first
    location: str  # of `op`: `file:line:col`, or empty


class Report(TypedDict):
    pools: list[PoolReport]
    reused: list[ReusedReport]
    ops: dict[str, int]
    flops: int  # see analysis/cost.py
    recomputed_flops: int  # of operations marked tgraph.recomputed
    sizes: dict[str, int]  # the values of symbolic sizes in these figures


def report(module: ModuleOp) -> Report:
    """The sizes of the module's arenas, the buffers in arguments, the operations by
    name, and their costs.

    Checks the plan; raises `LocatedError` if it is not sound.
    """
    names = Counter(map(name_of, module.walk()))
    pools = check_plan(module)
    return {
        "pools": [_pool(pool) for pool in pools if pool.argument is None],
        "reused": [
            _reused(pool, pool.argument) for pool in pools if pool.argument is not None
        ],
        "ops": dict(sorted(names.items())),
        "flops": flops(module),
        "recomputed_flops": sum(
            repetitions(op) * flops(op) for op in filter(_is_repeated, module.walk())
        ),
        "sizes": sizes(module),
    }


def sizes(module: ModuleOp) -> dict[str, int]:
    """The values of symbolic sizes in all figures: bounds, hints, or typical values."""
    return {
        name: size
        for func in module.ops
        if isinstance(func, FuncOp) and not func.is_declaration
        for name, size in counted_sizes(func).items()
    }


def buffers(module: ModuleOp) -> list[BufferReport]:
    """All buffers of the module's arenas, then those in the memory of arguments.

    Prints the module to get the names of values. Checks the plan; raises `LocatedError`
    if it is not sound.
    """
    placed = placements(module, printed(module))
    pools = sorted(placed, key=lambda pool: pool.argument is not None)
    return [
        {
            "pool": index,
            "id": placed.buffer.id,
            "lower": placed.buffer.start,
            "upper": placed.buffer.end,
            "size": placed.buffer.size,
            "alignment": placed.buffer.alignment,
            "gaps": placed.buffer.gaps,
            "offset": placed.offset,
            "type": placed.type,
            "role": placed.role,
            "op": placed.op,
            "location": placed.location,
        }
        for index, pool in enumerate(pools)
        for placed in pool.buffers
    ]


def _is_repeated(op: Operation) -> bool:
    """Whether `op` recomputes a value and is not inside an operation that does."""
    around = op.parent_op()
    return RECOMPUTED in op.attributes and not (
        around and RECOMPUTED in around.attributes
    )


def _pool(pool: PlannedPool) -> PoolReport:
    views = {buffer.value: buffer for buffer in pool.buffers}
    problem = Problem(
        [
            buffer_of(b.name, b.size, live, b.alignment)
            for b, live in zip(views.values(), lifespans(list(views)), strict=True)
        ]
    )
    found: PoolReport = {
        "device": pool.device,
        "bytes": pool.size,
        "lower_bound_bytes": problem.lower_bound,
        "unshared_bytes": problem.total,
        "buffers": len(views),
        "alignment": pool.alignment,
    }
    view = next(iter(views))
    function = function_of(pool)
    memory = target_memories(function).get(cast(AnyMemRef, view.type).memory_space)
    if banks := banks_of(memory):
        pairs = read_together(function, {view: n for n, view in enumerate(views)})
        offsets = [buffer.offset for buffer in views.values()]
        found["bank_collisions"] = total_collisions(banks, pairs, offsets)
    return found


def _reused(pool: PlannedPool, title: str) -> ReusedReport:
    reused = {b.value: b for b in pool.buffers if not isinstance(b.value.owner, Block)}
    return {
        "memory": title,
        "device": pool.device,
        "bytes": pool.size,
        "reused_bytes": max(b.offset + b.size for b in reused.values()),
        "buffers": len(reused),
        "alignment": pool.alignment,
    }
