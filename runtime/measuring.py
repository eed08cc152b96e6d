"""How long a planned program takes on this machine.

    measured_time(planned)      nanoseconds: the least of runs one after the other

Whatever else happens adds to a run, so the least is what the program takes. The first
runs take longer, till caches and branch predictors know the program. Parameters are
bound, and results handed out. One thread is measured in CPU time, several are by the
clock.
"""

from time import perf_counter_ns, process_time_ns

from xdsl.dialects.builtin import ModuleOp

from ..dialects.tgraph.signature import signature
from ..support.threads import checked
from .executor import Executable
from .random_inputs import random_inputs

RUNS = 4
"""The least number of runs."""

LONG_ENOUGH = 100_000_000
"""Nanoseconds after which no further run starts."""


def measured_time(module: ModuleOp, threads: int | None = None) -> int:
    """Nanoseconds that a run takes, on random inputs.

    Raises `LocatedError` for what this machine can't run: other devices, sizes that are
    not static, not enough memory.
    """
    inputs = signature(module).inputs
    arrays = random_inputs(inputs, 0)
    bound = {n: arrays[n] for n, slot in enumerate(inputs) if slot.is_parameter}
    given = [array for n, array in enumerate(arrays) if n not in bound]
    threads = checked(threads)
    run = Executable(module, threads=threads, parameters=bound)
    now = process_time_ns if threads == 1 else perf_counter_ns
    times: list[int] = []
    while len(times) < RUNS or sum(times) < LONG_ENOUGH:
        start = now()
        run(*given)
        times.append(now() - start)
    return min(times)
