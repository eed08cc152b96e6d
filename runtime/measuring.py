"""Measures the time of a planned program on this machine.

    measured_time(planned)      nanoseconds: the shortest of consecutive runs

Interference only lengthens a run, so the shortest run is the best estimate. The first
runs are longer because caches and branch predictors are cold. Parameters are bound in
advance, and each run returns its results. The time is CPU time for one thread, and
wall-clock time for several.
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
"""Nanoseconds of runs after which no further run starts."""


def measured_time(module: ModuleOp, threads: int | None = None) -> int:
    """The time of a run on random inputs, in nanoseconds.

    Raises `LocatedError` for programs that this machine can't run: those for other
    devices, with sizes that are not static, or that need too much memory.
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
