"""Time of compiled programs against `jax.jit` on the same processor, one thread each.

    python benchmarks/runtime.py                  # all programs
    python benchmarks/runtime.py gelu softmax     # some
    python benchmarks/runtime.py dispatch         # 1,000 operations of 64 elements

Each round lets every candidate run once, in random order, for some milliseconds; a
candidate's time is the median over the rounds, and its noise the distance between the
quartiles over that. Ratios below 1 mean that tensorplan is faster. `numpy` is
tensorplan without native code.
"""

import argparse
import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from statistics import median, quantiles
from time import perf_counter
from typing import Any

# Before NumPy and JAX are loaded: they read these when they start.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("NPROC", "1")  # what XLA's runtime goes by
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

import tensorplan
from tensorplan.runtime.executor import Executable

jax: Any = import_module("jax")
jnp: Any = jax.numpy

SLICE = 2e-3
"""Seconds that a candidate runs at a time."""

Function = Callable[..., Any]


def chain2(x: Any, y: Any) -> Any:
    return x * y + 0.25


def chain5(x: Any, y: Any) -> Any:
    return (jnp.maximum(x * y + 0.25, x) - y) * 0.75


def gelu(x: Any) -> Any:
    return jax.nn.gelu(x)


def swish(x: Any, y: Any) -> Any:
    return x / (1 + jnp.exp(-x)) + y


def softmax(x: Any) -> Any:
    return jax.nn.softmax(x)


def layernorm(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def column_sums(x: Any) -> Any:
    return x.sum(0)


@dataclass(frozen=True)
class Program:
    function: Function
    shapes: Sequence[Sequence[tuple[int, ...]]]
    """The arguments' shapes, for each size."""


LINES = (1 << 10, 1 << 14, 1 << 18, 1 << 20)
MATRICES = ((128, 128), (1024, 128), (1024, 512), (4096, 1024))
PROGRAMS: Mapping[str, Program] = {
    "chain2": Program(chain2, [[(n,), (n,)] for n in LINES]),
    "chain5": Program(chain5, [[(n,), (n,)] for n in LINES]),
    "gelu": Program(gelu, [[(n,)] for n in LINES]),
    "swish": Program(swish, [[(n,), (n,)] for n in LINES]),
    "softmax": Program(softmax, [[m] for m in MATRICES]),
    "layernorm": Program(layernorm, [[m, m[1:], m[1:]] for m in MATRICES]),
    "column_sums": Program(column_sums, [[m] for m in MATRICES]),
}


def candidates(
    function: Function, arguments: Sequence[Any]
) -> dict[str, Callable[[int], None]]:
    """Ways to run a function, each a given number of times."""
    planned = tensorplan.plan(tensorplan.from_jax(function, *arguments))
    native, numpy = Executable(planned), Executable(planned, native=False)
    compiled = jax.jit(function)
    on_device = [jnp.asarray(a) for a in arguments]
    outs = [np.empty(r.shape, r.dtype) for r in native.results]

    def run_jax(times: int) -> None:
        result = None
        for _ in range(times):
            result = compiled(*on_device)
        jax.block_until_ready(result)

    def runner(program: Executable) -> Callable[[int], None]:
        def run(times: int) -> None:
            for _ in range(times):
                program(*arguments, out=outs)

        return run

    native(*arguments, out=outs)
    np.testing.assert_allclose(outs[0], compiled(*on_device), rtol=1e-4, atol=1e-4)
    return {"native": runner(native), "numpy": runner(numpy), "jax": run_jax}


def measure(
    runs: Mapping[str, Callable[[int], None]], rounds: int
) -> dict[str, list[float]]:
    """Seconds of one run of each candidate, in each round."""
    times: dict[str, int] = {}
    for name, run in runs.items():
        run(2)
        start = perf_counter()
        run(3)
        times[name] = max(1, int(SLICE * 3 / (perf_counter() - start)))
    measured: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name in random.sample(list(runs), len(runs)):
            start = perf_counter()
            runs[name](times[name])
            measured[name].append((perf_counter() - start) / times[name])
    return measured


def report(title: str, measured: Mapping[str, Sequence[float]]) -> None:
    cells: list[str] = []
    middle = {name: median(values) for name, values in measured.items()}
    for name, values in measured.items():
        low, _, high = quantiles(values, n=4)
        noise = (high - low) / middle[name]
        cells.append(f"{name} {middle[name] * 1e6:9.2f} us (±{noise:4.0%})")
    ratios = [
        f"{name}/jax {middle[name] / middle['jax']:.2f}"
        for name in middle
        if name != "jax" and "jax" in middle
    ]
    print(f"{title:26}", "  ".join([*cells, *ratios]), flush=True)


def dispatch(rounds: int) -> None:
    """The cost of an operation in a program of many small ones, not fused."""
    from xdsl.parser import Parser

    count, type = 1000, "memref<64xf32>"
    lines = [f"%t0 = memref.alloc() : {type}", f"%t1 = memref.alloc() : {type}"]
    lines.append(f"tgraph.add %a, %b outs(%t0) : {type}")
    for i in range(count - 2):
        name = ("multiply", "maximum", "subtract", "add")[i % 4]
        lines.append(f"tgraph.{name} %t{i % 2}, %b outs(%t{1 - i % 2}) : {type}")
    lines.append(f"tgraph.add %t{count % 2}, %b outs(%c) : {type}")
    arguments = f"%a: {type}, %b: {type}, %c: {type} {{tgraph.result = 0 : i64}}"
    body = "\n".join(lines)
    text = f"func.func @main({arguments}) {{\n{body}\nfunc.return\n}}"
    module = Parser(tensorplan.context(), text).parse_module()
    x, y = np.ones((2, 64), np.float32)
    out = [np.empty(64, np.float32)]
    runs: dict[str, Callable[[int], None]] = {}
    for name in ("native", "numpy"):
        program = Executable(module, native=name == "native")

        def run(times: int, program: Executable = program) -> None:
            for _ in range(times):
                program(x, y, out=out)

        runs[name] = run
    for name, values in measure(runs, rounds).items():
        print(f"dispatch, {name}: {median(values) / count * 1e9:.1f} ns per operation")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    known = [*PROGRAMS, "dispatch"]
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(known))
    parser.add_argument("--rounds", type=int, default=40, help="default: 40")
    options = parser.parse_args(arguments)
    chosen: list[str] = options.programs or known
    if unknown := [name for name in chosen if name not in known]:
        parser.error(f"no program {unknown[0]!r}, expected one of {', '.join(known)}")
    rng = np.random.default_rng(0)
    for name in chosen:
        if name == "dispatch":
            dispatch(options.rounds)
            continue
        program = PROGRAMS[name]
        for shapes in program.shapes:
            arrays = [rng.standard_normal(shape, np.float32) for shape in shapes]
            title = f"{name} {'x'.join(map(str, shapes[0]))}"
            runs = candidates(program.function, arrays)
            report(title, measure(runs, options.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
