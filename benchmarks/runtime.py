"""Run time of compiled programs, compared with JAX, PyTorch and ONNX Runtime.

    python benchmarks/runtime.py                     # all programs, one thread each
    python benchmarks/runtime.py gelu mlp_step       # selected programs
    python benchmarks/runtime.py models --only native,jax   # whole models
    python benchmarks/runtime.py dispatch            # 1,000 operations of 64 elements
    python benchmarks/runtime.py streams             # two chains of matrix products
    python benchmarks/runtime.py --only native,ort   # selected candidates
    python benchmarks/runtime.py model.mlir          # StableHLO from a file
    python benchmarks/runtime.py tests/models/onnx/*.onnx   # ONNX, inputs in *.npz
    python benchmarks/runtime.py --threads 0 resnet18   # with all cores

In each round, every candidate runs once for some milliseconds, in random order. The
table shows the median over the rounds, and as noise the interquartile range divided by
the median. Times are CPU time with one thread, and wall time with more. A ratio below 1
means that tensorplan is faster. After several programs, the last lines show the
geometric means and the worst ratios.

The candidates are `native`, tensorplan with the extra `fast`; `numpy`, without it;
`packed`, `native` with weights as parameters, as PyTorch freezes them and ONNX Runtime
stores them in initializers; `onnx`, tensorplan with the model for ONNX Runtime; `jax`
(`jax.jit`); and if installed, `torch` (eager), `compile` (`torch.compile`) and `ort`
(ONNX Runtime). Inputs differ between calls. Weights that a call does not change stay
the same, and state comes from the previous call.

With several threads, libraries in one process disturb each other, because OpenMP's
threads spin for a while after each run. Measure each one alone, with `--only`.
"""

import argparse
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import cycle
from pathlib import Path
from statistics import geometric_mean, median, quantiles
from time import perf_counter, process_time
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

# NumPy and JAX read these variables when they are imported.
for variable in (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("TENSORPLAN_THREADS", "NPROC"),  # XLA's runtime reads NPROC
):
    os.environ[variable] = str(OPTIONS.threads or os.cpu_count())
os.environ.setdefault("JAX_PLATFORMS", "cpu")
if OPTIONS.threads == 1:
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import numpy as np
from in_xla import called, compiled
from jax_models.base import Model
from kernels import PROGRAMS
from models import MODELS
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.runtime.executor import Executable
from tensorplan.support.choices import one_of

jax: Any = import_module("jax")
jnp: Any = jax.numpy

_clock = process_time if OPTIONS.threads == 1 else perf_counter

SLICE = 2e-3
"""Seconds that a candidate runs in each round."""

Runs = dict[str, Callable[[int], None]]
"""For each candidate, a function that runs the program a given number of times."""


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

    runs, expected = compared(planned().module, model.arguments, model.inputs, run)
    if model.parameters and is_wanted("packed"):
        packed = planned(model.parameters)
        program = Executable(packed.module)
        program.bind(packed.inputs())
        kept = {*model.parameters}
        given = [a for n, a in enumerate(model.arguments) if n not in kept]
        inputs = range(model.state, len(given))
        runs["packed"] = ours(program, given, inputs, expected)
    if (in_onnx := optional("in_onnx")) is not None:
        exported: tuple[bytes, Sequence[Any]] | None = in_onnx.exported(
            name, model.arguments, model.parameters
        )
        if exported is not None:
            runs |= from_onnx(exported[0], exported[1], expected)
    if (in_torch := optional("in_torch")) is not None:
        others = in_torch.candidates(name, model.arguments, model.parameters)
        for kind, step in others.items():
            if is_wanted(kind):
                check([np.asarray(x) for x in step()], expected)
                runs[kind] = partial(repeat, step)
    return runs


def optional(module: str) -> Any:
    """Imports `module`; None if one of its dependencies is not installed."""
    try:
        return import_module(module)
    except ImportError:
        return None


def from_onnx(
    model: bytes, inputs: Sequence[Any], expected: Sequence[Any] | None = None
) -> Runs:
    """An ONNX model in tensorplan and in ONNX Runtime. Checks ONNX Runtime's results
    against `expected`, and tensorplan's against ONNX Runtime's."""
    session = import_module("in_onnx").session(model)
    check(session(inputs), expected or session(inputs))
    runs: Runs = {}
    if is_wanted("onnx"):
        imported = tensorplan.from_onnx(model)
        program = Executable(tensorplan.plan(imported).module)
        program.bind(imported.inputs())
        runs["onnx"] = ours(program, inputs, range(len(inputs)), session(inputs))
    if is_wanted("ort"):
        given = fresh(inputs, range(len(inputs)), np.copy)
        runs["ort"] = partial(repeat, lambda: session(next(given)))
    return runs


def is_wanted(candidate: str) -> bool:
    return not ONLY or candidate in ONLY


def repeat(step: Callable[[], object], times: int) -> None:
    for _ in range(times):
        step()


def check(got: Sequence[Any], expected: Sequence[Any]) -> None:
    """Asserts that values are close. Shapes may differ in dimensions of size 1."""
    for values, want in zip(got, expected, strict=True):
        scale = np.max(np.abs(want), initial=1e-6)
        have: Any = np.reshape(values, np.shape(want))
        np.testing.assert_allclose(have, want, rtol=2e-4, atol=2e-4 * scale)


def fresh(
    arguments: Sequence[Any], inputs: Sequence[int], copied: Callable[[Any], Any]
) -> Iterator[list[Any]]:
    """Yields lists of arguments: `inputs` differ from the previous list's, the other
    arguments are shared."""
    shared = [copied(a) for a in arguments]
    others = [{n: copied(arguments[n]) for n in inputs} for _ in range(3)]
    return cycle([[o.get(n, a) for n, a in enumerate(shared)] for o in others])


def ours(
    program: Executable,
    arguments: Sequence[Any],
    inputs: Sequence[int],
    expected: Sequence[Any],
) -> Callable[[int], None]:
    check(program(*map(np.copy, arguments)), expected)
    given = fresh(arguments, inputs, np.copy)

    def run(times: int) -> None:
        for _ in range(times):
            program(*next(given))

    return run


def compared(
    planned: ModuleOp,
    arguments: Sequence[Any],
    inputs: Sequence[int],
    jax_run: Callable[[Sequence[Any]], Sequence[Any]],
) -> tuple[Runs, Sequence[Any]]:
    """A planned program with native code and with NumPy, and `jax_run`; and the results
    of the first run in JAX. The arguments `inputs` differ between calls."""
    expected = [np.array(x) for x in jax_run([jnp.array(a) for a in arguments])]
    runs: Runs = {}
    for name in filter(is_wanted, ("native", "numpy")):
        program = Executable(planned, native=name == "native")
        runs[name] = ours(program, arguments, inputs, expected)
    given = fresh(arguments, inputs, jnp.array)
    results = Executable(planned, native=False).results
    state: dict[int, Any] = {}

    def run_jax(times: int) -> None:
        last: Sequence[Any] = ()
        for _ in range(times):
            last = jax_run([state.get(n, a) for n, a in enumerate(next(given))])
            for result, array in zip(results, last, strict=True):
                if result.input is not None:
                    state[result.input] = array
        jax.block_until_ready(last)

    if is_wanted("jax"):
        runs["jax"] = run_jax
    return runs, expected


def from_file(path: Path) -> Runs:
    """An ONNX model with inputs from the `.npz` file next to it, or StableHLO text with
    random arguments: variances are positive and labels are from 0 to 9."""
    if path.suffix == ".onnx":
        arrays = np.load(path.with_suffix(".npz"))
        inputs = [x for name, x in arrays.items() if name.startswith("input")]
        return from_onnx(path.read_bytes(), inputs)
    planned = tensorplan.plan(tensorplan.from_stablehlo(path).module)
    rng = np.random.default_rng(0)
    slots = Executable(planned, native=False).inputs
    arguments = [
        np.abs(rng.standard_normal(i.shape) * 0.1).astype(i.dtype)
        if i.dtype.kind == "f"
        else rng.integers(0, 10, i.shape).astype(i.dtype)
        for i in slots
    ]
    inputs = [n for n, slot in enumerate(slots) if not slot.is_variable]
    run = partial(called, compiled(path.read_text()))
    return compared(planned, arguments, inputs, run)[0]


def measure(
    runs: Mapping[str, Callable[[int], None]], rounds: int
) -> dict[str, list[float]]:
    """For each candidate, the seconds of one run in each round."""
    times: dict[str, int] = {}
    for name, run in runs.items():
        run(2)
        start = _clock()
        run(3)
        times[name] = max(1, int(SLICE * 3 / (_clock() - start)))
    measured: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name in random.sample(list(runs), len(runs)):
            start = _clock()
            runs[name](times[name])
            measured[name].append((_clock() - start) / times[name])
    return measured


_ratios: dict[str, dict[str, float]] = {}
"""Ratios by pair of candidates, such as "native/jax", and by program."""


def report(title: str, measured: Mapping[str, Sequence[float]]) -> None:
    cells: list[str] = []
    middle = {name: median(values) for name, values in measured.items()}
    for name, values in measured.items():
        low, _, high = quantiles(values, n=4)
        noise = (high - low) / middle[name]
        cells.append(f"{name} {middle[name] * 1e6:9.2f} us (±{noise:4.0%})")
    for name in ("native", "packed", "onnx", "numpy"):
        for other in ("jax", "torch", "compile", "ort"):
            is_both = name in middle and other in middle
            if is_both and (name != "numpy" or other == "jax"):
                ratio = middle[name] / middle[other]
                cells.append(f"{name}/{other} {ratio:.2f}")
                _ratios.setdefault(f"{name}/{other}", {})[title] = ratio
    print(f"{title:22}", "  ".join(cells), flush=True)


def summarize() -> None:
    """Prints the geometric mean and the maximum of each ratio over all programs."""
    for pair, ratios in _ratios.items():
        if len(ratios) > 1:
            worst = max(ratios, key=lambda title: ratios[title])
            mean = geometric_mean(ratios.values())
            print(
                f"{pair}: {mean:.2f} in the geometric mean of {len(ratios)} programs, "
                f"at most {ratios[worst]:.2f} ({worst})"
            )


def dispatch(rounds: int) -> None:
    """Prints the cost of an operation in a program of 1,000 small unfused ones."""
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
    """Measures two independent chains of matrix products on one and two streams."""

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
    groups = {"models": list(MODELS)}
    chosen = [each for name in chosen for each in groups.get(name, [name])]
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
            report(Path(name).name, measure(from_file(Path(name)), rounds))
    summarize()
    return 0


if __name__ == "__main__":
    sys.exit(main())
