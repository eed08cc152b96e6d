"""Time of compiled programs against `jax.jit` on the same processor.

    python benchmarks/runtime.py                     # all programs, one thread each
    python benchmarks/runtime.py gelu mlp_step       # some
    python benchmarks/runtime.py dispatch            # 1,000 operations of 64 elements
    python benchmarks/runtime.py model.mlir          # StableHLO from a file
    python benchmarks/runtime.py --threads 0 resnet18   # with all cores

Each round lets every candidate run once, in random order, for some milliseconds; a
candidate's time is the median over the rounds, and its noise the distance between the
quartiles over that. Ratios below 1 mean that tensorplan is faster. `native` is
tensorplan with the extra `fast`, `numpy` without.
"""

import argparse
import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
OPTIONS = _parser.parse_args()

# Before NumPy and JAX are loaded: they read these when they start.
for variable in (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("TENSORPLAN_THREADS", "NPROC"),  # NPROC is what XLA's runtime goes by
):
    os.environ[variable] = str(OPTIONS.threads or os.cpu_count())
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
from models import MODELS, Model
from xdsl.dialects.builtin import ModuleOp

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


Runs = dict[str, Callable[[int], None]]
"""Ways to run a program, each a given number of times."""


def candidates(model: Model) -> Runs:
    state = tuple(range(model.state))
    planned = tensorplan.plan(
        tensorplan.from_jax(model.function, *model.arguments, donate_argnums=state)
    )
    compiled = jax.jit(model.function, donate_argnums=state)

    def run(arguments: Sequence[Any]) -> Sequence[Any]:
        return jax.tree.leaves(compiled(*arguments))

    return compared(planned, model.arguments, run)


def compared(
    planned: ModuleOp,
    arguments: Sequence[Any],
    jax_run: Callable[[Sequence[Any]], Sequence[Any]],
) -> Runs:
    """A planned program, native and with NumPy, and what JAX made of it."""
    programs = {
        "native": Executable(planned),
        "numpy": Executable(planned, native=False),
    }
    results = programs["native"].results
    runs: Runs = {}
    first: dict[str, Sequence[Any]] = {}
    for name, program in programs.items():
        given = [a.copy() for a in arguments]
        outs = [
            np.empty(r.shape, r.dtype) if r.input is None else None for r in results
        ]

        def run(
            times: int,
            program: Executable = program,
            given: Sequence[Any] = given,
            outs: Sequence[Any] = outs,
        ) -> None:
            for _ in range(times):
                program(*given, out=outs)

        first[name] = [x.copy() for x in program(*given, out=outs)]
        runs[name] = run
    on_device = [jnp.array(a) for a in arguments]

    def run_jax(times: int) -> None:
        last: Sequence[Any] = ()
        for _ in range(times):
            last = jax_run(on_device)
            for result, array in zip(results, last, strict=True):
                if result.input is not None:
                    on_device[result.input] = array
        jax.block_until_ready(last)

    expected = [np.array(x) for x in jax_run(on_device)]
    on_device[:] = [jnp.array(a) for a in arguments]
    for values in first.values():
        for got, want in zip(values, expected, strict=True):
            scale = np.max(np.abs(want), initial=1e-6)
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * scale)
    runs["jax"] = run_jax
    return runs


def from_file(path: Path) -> Runs:
    """StableHLO text, with arguments that keep variances and labels in range."""
    mlir: Any = import_module("jax._src.interpreters.mlir")
    lib: Any = import_module("jax._src.lib")
    ir: Any = import_module("jaxlib.mlir.ir")
    planned = tensorplan.plan(tensorplan.from_stablehlo(path))
    backend: Any = import_module("jax._src.xla_bridge").get_backend("cpu")
    devices: Any = lib._jax.DeviceList(tuple(backend.local_devices()[:1]))
    with mlir.make_ir_context():
        module: Any = ir.Module.parse(path.read_text())
        options: Any = lib.xla_client.CompileOptions()
        compiled: Any = backend.compile_and_load(module, devices, options)

    def run(arguments: Sequence[Any]) -> Sequence[Any]:
        results = compiled.execute_sharded(arguments)
        return [x[0] for x in results.disassemble_into_single_device_arrays()]

    rng = np.random.default_rng(0)
    arguments = [
        np.abs(rng.standard_normal(i.shape) * 0.1).astype(i.dtype)
        if i.dtype.kind == "f"
        else rng.integers(0, 10, i.shape).astype(i.dtype)
        for i in Executable(planned, native=False).inputs
    ]
    return compared(planned, arguments, run)


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


def main() -> int:
    known = [*PROGRAMS, *MODELS, "dispatch"]
    chosen: list[str] = OPTIONS.programs or known
    for name in chosen:
        if name not in known and not Path(name).is_file():
            _parser.error(
                f"no file or program {name!r}, expected one of {', '.join(known)}"
            )
    rng = np.random.default_rng(0)
    rounds: int = OPTIONS.rounds
    for name in chosen:
        if name == "dispatch":
            dispatch(rounds)
        elif name in MODELS:
            report(name, measure(candidates(MODELS[name]()), rounds))
        elif name in PROGRAMS:
            program = PROGRAMS[name]
            for shapes in program.shapes:
                arrays = [rng.standard_normal(shape, np.float32) for shape in shapes]
                title = f"{name} {'x'.join(map(str, shapes[0]))}"
                runs = candidates(Model(program.function, arrays))
                report(title, measure(runs, rounds))
        else:
            report(Path(name).stem, measure(from_file(Path(name)), rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
