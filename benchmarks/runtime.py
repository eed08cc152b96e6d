"""Time of compiled programs against other systems on the same processor: `jax.jit`,
and where they are installed PyTorch (eager and `torch.compile`) and ONNX Runtime.

    python benchmarks/runtime.py                     # all programs, one thread each
    python benchmarks/runtime.py gelu mlp_step       # some
    python benchmarks/runtime.py dispatch            # 1,000 operations of 64 elements
    python benchmarks/runtime.py streams             # two chains of matrix products
    python benchmarks/runtime.py --only native,ort   # those candidates
    python benchmarks/runtime.py model.mlir          # StableHLO from a file
    python benchmarks/runtime.py --threads 0 resnet18   # with all cores

Each round lets every candidate run once, in random order, for some milliseconds; a
candidate's time is the median over the rounds, and its noise the distance between the
quartiles over that. Ratios below 1 mean that tensorplan is faster. `native` is
tensorplan with the extra `fast`, `numpy` without; `packed` is `native` with weights as
parameters, as PyTorch freezes them and ONNX Runtime has them as initialisers.

With several threads libraries disturb one another in one process: OpenMP's threads spin
on for a while after each run. Use `--only`, one after the other.
"""

import argparse
import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

_parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
_parser.add_argument("programs", nargs="*", metavar="PROGRAM")
_parser.add_argument("--rounds", type=int, default=40, help="default: 40")
_parser.add_argument(
    "--threads", type=int, default=1, help="of each library; 0: one for each core"
)
_parser.add_argument(
    "--only", metavar="CANDIDATES", default="", help="with commas: native,jax,torch"
)
OPTIONS = _parser.parse_args()
ONLY: list[str] = OPTIONS.only.split(",") if OPTIONS.only else []

# Before NumPy and JAX are loaded: they read these when they start.
for variable in (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("TENSORPLAN_THREADS", "NPROC"),  # NPROC is what XLA's runtime goes by
):
    os.environ[variable] = str(OPTIONS.threads or os.cpu_count())
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
from in_xla import called, compiled
from kernels import PROGRAMS
from models import MODELS, Model
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.choices import one_of
from tensorplan.runtime.executor import Executable

jax: Any = import_module("jax")
jnp: Any = jax.numpy

SLICE = 2e-3
"""Seconds that a candidate runs at a time."""

Runs = dict[str, Callable[[int], None]]
"""Ways to run a program, each a given number of times."""


def candidates(name: str, model: Model) -> Runs:
    state = tuple(range(model.state))

    def planned(parameters: Sequence[int] = ()) -> tensorplan.Model:
        arguments = model.arguments
        return tensorplan.plan(
            tensorplan.from_jax(
                model.function,
                *arguments,
                donate_argnums=state,
                parameter_argnums=parameters,
            )
        )

    compiled = jax.jit(model.function, donate_argnums=state)

    def run(arguments: Sequence[Any]) -> Sequence[Any]:
        return jax.tree.leaves(compiled(*arguments))

    runs, expected = compared(planned().module, model.arguments, run)
    if model.parameters and is_wanted("packed"):
        packed = planned(model.parameters)
        program = Executable(packed.module)
        program.bind(packed.inputs())
        given = [
            array
            for number, array in enumerate(model.arguments)
            if number not in model.parameters
        ]
        runs["packed"] = ours(program, given, expected)
    for module in ("in_torch", "in_onnx"):
        try:
            others: Any = import_module(module)
        except ImportError:
            continue
        for kind, step in others.candidates(
            name, model.arguments, model.parameters
        ).items():
            if is_wanted(kind):
                check([np.asarray(x) for x in step()], expected)
                runs[kind] = partial(repeat, step)
    return runs


def is_wanted(candidate: str) -> bool:
    return not ONLY or candidate in ONLY


def repeat(step: Callable[[], object], times: int) -> None:
    for _ in range(times):
        step()


def check(got: Sequence[Any], expected: Sequence[Any]) -> None:
    for values, want in zip(got, expected, strict=True):
        scale = np.max(np.abs(want), initial=1e-6)
        np.testing.assert_allclose(values, want, rtol=1e-3, atol=1e-3 * scale)


def ours(
    program: Executable, arguments: Sequence[Any], expected: Sequence[Any]
) -> Callable[[int], None]:
    given = [a.copy() for a in arguments]
    outs = [
        np.empty(r.shape, r.dtype) if r.input is None else None for r in program.results
    ]
    check(program(*given, out=outs), expected)

    def run(times: int) -> None:
        for _ in range(times):
            program(*given, out=outs)

    return run


def compared(
    planned: ModuleOp,
    arguments: Sequence[Any],
    jax_run: Callable[[Sequence[Any]], Sequence[Any]],
) -> tuple[Runs, Sequence[Any]]:
    """A planned program, native and with NumPy, and what JAX made of it; the results
    of the first run."""
    on_device = [jnp.array(a) for a in arguments]
    expected = [np.array(x) for x in jax_run(on_device)]
    on_device[:] = [jnp.array(a) for a in arguments]
    runs: Runs = {}
    for name in filter(is_wanted, ("native", "numpy")):
        program = Executable(planned, native=name == "native")
        runs[name] = ours(program, arguments, expected)
    results = Executable(planned, native=False).results

    def run_jax(times: int) -> None:
        last: Sequence[Any] = ()
        for _ in range(times):
            last = jax_run(on_device)
            for result, array in zip(results, last, strict=True):
                if result.input is not None:
                    on_device[result.input] = array
        jax.block_until_ready(last)

    if is_wanted("jax"):
        runs["jax"] = run_jax
    return runs, expected


def from_file(path: Path) -> Runs:
    """StableHLO text, with arguments that keep variances and labels in range."""
    planned = tensorplan.plan(tensorplan.from_stablehlo(path).module)
    rng = np.random.default_rng(0)
    arguments = [
        np.abs(rng.standard_normal(i.shape) * 0.1).astype(i.dtype)
        if i.dtype.kind == "f"
        else rng.integers(0, 10, i.shape).astype(i.dtype)
        for i in Executable(planned, native=False).inputs
    ]
    run = partial(called, compiled(path.read_text()))
    return compared(planned, arguments, run)[0]


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
        f"{name}/{other} {middle[name] / middle[other]:.2f}"
        for name in ("native", "packed", "numpy")
        for other in ("jax", "torch", "compile", "ort")
        if name in middle and other in middle and (name != "numpy" or other == "jax")
    ]
    print(f"{title:22}", "  ".join([*cells, *ratios]), flush=True)


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


def streams(rounds: int) -> None:
    """Two independent chains of matrix products, on one stream or two."""

    def function(x: Any, y: Any, *weights: Any) -> Any:
        for w in weights:
            x, y = jnp.maximum(x @ w, 0), jnp.maximum(y @ w, 0)
        return x + y

    for size in (16, 64, 256, 512, 1024):
        rng = np.random.default_rng(0)
        scale = np.float32(size**-0.5)
        arrays = [scale * rng.standard_normal((size, size), np.float32)] * 6
        module = tensorplan.from_jax(function, *arrays).module
        outs = [np.empty((size, size), np.float32)]
        runs: Runs = {}
        for count in (1, 2):
            program = Executable(tensorplan.plan(module, streams=count))
            step = partial(program, *arrays, out=outs)
            runs[f"{count} streams"] = partial(repeat, step)
        measured = measure(runs, rounds)
        report(f"streams {size}x{size}", measured)


def main() -> int:
    known = [*PROGRAMS, *MODELS, "dispatch", "streams"]
    chosen: list[str] = OPTIONS.programs or known
    for name in chosen:
        if name not in known and not Path(name).is_file():
            _parser.error(f"file or program is {one_of(name, known)}")
    rng = np.random.default_rng(0)
    rounds: int = OPTIONS.rounds
    for name in chosen:
        if name == "dispatch":
            dispatch(rounds)
        elif name == "streams":
            streams(rounds)
        elif name in MODELS:
            report(name, measure(candidates(name, MODELS[name]()), rounds))
        elif name in PROGRAMS:
            program = PROGRAMS[name]
            for shapes in program.shapes:
                arrays = [rng.standard_normal(shape, np.float32) for shape in shapes]
                title = f"{name} {'x'.join(map(str, shapes[0]))}"
                runs = candidates(name, Model(program.function, arrays))
                report(title, measure(runs, rounds))
        else:
            report(Path(name).stem, measure(from_file(Path(name)), rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
