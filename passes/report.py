"""The figures of a planned module, read back from its IR."""

from collections import Counter
from typing import TypedDict

from xdsl.dialects.builtin import ModuleOp

from tensorplan.dialects.diagnostics import name_of
from tensorplan.passes.plan_check import PlannedPool, check_plan
from tensorplan.planning import Buffer, Problem


class PoolReport(TypedDict):
    """Sizes in bytes."""

    device: str
    bytes: int
    lower_bound_bytes: int
    unshared_bytes: int
    buffers: int
    alignment: int


class Report(TypedDict):
    pools: list[PoolReport]
    ops: dict[str, int]


def report(module: ModuleOp) -> Report:
    """The sizes of the module's arenas, and how often each operation occurs.

    Checks the plan; raises `LocatedError` if it is not sound.
    """
    names = Counter(map(name_of, module.walk()))
    return {
        "pools": [_pool(pool) for pool in check_plan(module)],
        "ops": dict(sorted(names.items())),
    }


def _pool(pool: PlannedPool) -> PoolReport:
    problem = Problem(
        [
            Buffer(b.name, b.size, b.first, b.last + 1, pool.alignment)
            for b in pool.buffers
        ]
    )
    return {
        "device": pool.device,
        "bytes": pool.size,
        "lower_bound_bytes": problem.lower_bound,
        "unshared_bytes": problem.total,
        "buffers": len(pool.buffers),
        "alignment": pool.alignment,
    }
