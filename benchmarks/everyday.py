"""CPU time of calls with the same arrays and with new arrays, compared with `jax.jit`.

    python benchmarks/everyday.py               # microseconds of CPU time per call
    python benchmarks/everyday.py --rounds 40   # with less noise

Each figure is the median of rounds that alternate between all columns, followed by half
of the interquartile range. `same` passes the same arrays in every call. `one fresh`
passes a different array as the first argument, and `all fresh` different arrays as all
arguments. `jax` passes the NumPy arrays of `all fresh` to jax.jit. In the last row, the
results of a call are arguments of the next.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import cycle
from time import process_time
from typing import Any, NamedTuple

# NumPy and JAX read these variables when they are imported.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TENSORPLAN_THREADS"):
    os.environ[variable] = "1"
os.environ["NPROC"] = "1"  # JAX's threads
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import numpy as np

import tensorplan

jax: Any = import_module("jax")
jnp: Any = jax.numpy

Array = Any
Arrays = Sequence[Array]
RANDOM = np.random.default_rng(0)
COLUMNS = ("same", "one fresh", "all fresh", "jax")
SECONDS = 0.02
"""The approximate duration of one round of one column."""


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def tanh(x: Array, y: Array) -> Array:
    return jnp.tanh(x * y + 1)


def layers(x: Array, *weights: Array) -> Array:
    for weight in weights:
        x = jnp.maximum(x @ weight, 0)
    return x


def blocks(x: Array) -> Array:
    for _ in range(20):
        x = x - x.mean(-1, keepdims=True)
        x = jax.nn.gelu(x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5))
    return x


def loss(weights: Arrays, x: Array, y: Array) -> Array:
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return ((x - y) ** 2).mean()


def sgd(x: Array, y: Array, *weights: Array) -> Arrays:
    gradients = jax.grad(loss)(list(weights), x, y)
    return [w - 0.01 * g for w, g in zip(weights, gradients, strict=True)]


PROGRAMS: dict[str, tuple[Callable[..., Any], Arrays]] = {
    "tanh(x*y+1), 64 elements": (tanh, (floats(64), floats(64))),
    "MLP, 20 layers of 128": (
        layers,
        (floats(8, 128), *(floats(128, 128) / 12 for _ in range(20))),
    ),
    "20 layer-norm + gelu blocks": (blocks, (floats(8, 128),)),
}
STEP = (floats(64, 256), floats(64, 256), *(floats(256, 256) / 16 for _ in range(8)))


def columns(program: Callable[..., Any], arrays: Arrays) -> list[Callable[[], object]]:
    """The function that each column calls, in the order of `COLUMNS`."""
    run = tensorplan.compile(tensorplan.from_jax(program, *arrays))
    jitted = jax.jit(program)
    sets = cycle([[x.copy() for x in arrays] for _ in range(3)])
    return [
        lambda: run(*arrays),
        lambda: run(next(sets)[0], *arrays[1:]),
        lambda: run(*next(sets)),
        lambda: jax.block_until_ready(jitted(*next(sets))),
    ]


def fed_back() -> list[Callable[[], object]]:
    """Training steps of tensorplan and JAX that pass new weights to the next call."""
    run = tensorplan.compile(tensorplan.from_jax(sgd, *STEP))
    jitted = jax.jit(sgd)
    ours, theirs = list(STEP[2:]), list(STEP[2:])

    def step() -> None:
        ours[:] = run(*STEP[:2], *ours)

    def jax_step() -> None:
        theirs[:] = jax.block_until_ready(jitted(*STEP[:2], *theirs))

    return [step, jax_step]


class Time(NamedTuple):
    """Microseconds of a call; `noise` is half of the interquartile range."""

    median: float
    noise: float

    def __str__(self) -> str:
        return f"{self.median:,.1f} ± {self.noise:.1f}"


def measured(calls: Sequence[Callable[[], object]], rounds: int) -> list[Time]:
    """Measures each of `calls`, in rounds that alternate between them."""
    times: list[list[float]] = [[] for _ in calls]
    often: list[int] = []
    for call in calls:
        for _ in range(3):
            call()
        often.append(max(1, round(SECONDS / max(_timed(call, 3), 1e-7))))
    for _ in range(rounds):
        for column, call in enumerate(calls):
            times[column].append(_timed(call, often[column]))
    quartiles = [np.percentile(x, [25, 50, 75]) * 1e6 for x in times]
    return [Time(mid, (high - low) / 2) for low, mid, high in quartiles]


def _timed(call: Callable[[], object], number: int) -> float:
    start = process_time()
    for _ in range(number):
        call()
    return (process_time() - start) / number


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    print(f"{'':30}", *(f"{name:>18}" for name in COLUMNS))
    for name, (program, arrays) in PROGRAMS.items():
        cells = measured(columns(program, arrays), rounds)
        print(f"{name:30}", *(f"{cell!s:>18}" for cell in cells), flush=True)
    ours, theirs = measured(fed_back(), rounds)
    print(
        f"{'SGD step, weights fed back':30}",
        *(f"{c!s:>18}" for c in ("", "", ours, theirs)),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
