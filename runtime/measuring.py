"""Measures the time of a planned program on this machine.

    measured_time(planned)      nanoseconds: the shortest of consecutive runs

Interference only lengthens a run, so the shortest run is the best estimate. The first
runs are longer because caches and branch predictors are cold. Parameters are bound in
advance, and each run returns its results. The time is CPU time for one thread, and
wall-clock time for several. Some machines count CPU time in steps of milliseconds, so
a measurement consists of as many runs as make it long compared with such a step.
"""

from collections.abc import Callable
from time import perf_counter_ns, process_time_ns

from xdsl.dialects.builtin import ModuleOp

from ..dialects.tgraph.signature import signature
from ..support.threads import checked
from .executor import Executable
from .random_inputs import random_inputs

MEASUREMENTS = 4
"""The least number of measurements."""

LONG_ENOUGH = 100_000_000
"""Nanoseconds of measurements after which no further one starts."""

STEPS = 20
"""The least length of a measurement, in steps of the clock."""


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
    least = STEPS * _step(now)
    runs = 1
    times: list[int] = []
    while len(times) < MEASUREMENTS or sum(times) < LONG_ENOUGH:
        start = now()
        for _ in range(runs):
            run(*given)
        time = now() - start
        if time >= least:
            times.append(time)
        else:
            times.clear()
            runs *= 2
    return min(times) // runs


def _step(now: Callable[[], int]) -> int:
    """The difference of two consecutive values of a clock, in nanoseconds."""
    start = now()
    while (first := now()) == start:
        pass
    while (second := now()) == first:
        pass
    return second - first
