"""CPU time of compiling, per StableHLO operation, and of `plan-opt --help`.

    python benchmarks/compile_time.py tests/models/*.mlir
    python benchmarks/compile_time.py --layers 1 13 63 --vit 12 --repeat 3

A table for each file shows the CPU time of reading, of each pass of plan-pipeline, of
verification, and their sum. Each is the minimum over `--repeat` runs, with the spread,
(maximum - minimum) / minimum, which shows the noise of the machine. The first run, in
which Python loads jaxlib and the passes, is not counted.

A second table compares with XLA: the files, and training steps of the given numbers of
transformer blocks (`--layers`) or blocks of a vision transformer (`--vit`). It shows
CPU seconds, as minima of alternating rounds, and their spread. `plan` goes from text to
the planned module. `program` goes from text to an executable program, with all kernels
compiled anew. XLA's time includes its code generation.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from in_xla import compiled
from jax_models.base import Model, jax
from jax_models.transformers import adam_step, vit_step
from xdsl.context import Context
from xdsl.dialects import get_all_dialects as xdsl_dialects
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp

import tensorplan
from tensorplan.dialects import get_all_dialects
from tensorplan.passes.driver import flatten
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.runtime.backends.onednn import primitives
from tensorplan.tools.common import Source, read_source
from tensorplan.tools.compiler import ToolPipeline

PER_OP_BAR = 0.6  # ms of CPU, reading and passes together
HELP_BAR = 0.4  # s of CPU


def compile_once(source: Source) -> tuple[dict[str, float], int, ModuleOp]:
    """The seconds of each stage, in order; the number of StableHLO operations; and the
    planned module."""
    ctx = Context()
    for name, factory in (xdsl_dialects() | get_all_dialects()).items():
        ctx.register_dialect(name, factory)
    compiler = ToolPipeline("compile_time", ctx)
    module = compiler.read(source, simplify=False)
    ops = sum(isinstance(op, UnregisteredOp) for op in module.walk())
    compiler.run(module, list(flatten([PlanPipeline()])))
    return compiler.seconds(), ops, module


def print_table(file: str, repeat: int) -> None:
    """Measures one file, and prints a line for each stage."""
    source = read_source(file)
    _, ops, _ = compile_once(source)
    runs = [compile_once(source)[0] for _ in range(repeat)]
    stages = {stage: [run[stage] for run in runs] for stage in runs[0]}
    stages["total"] = [sum(run.values()) for run in runs]
    print(f"\n{file}: {ops} StableHLO operations, {repeat} runs")
    print(f"{'CPU ms':>10} {'ms per op':>10} {'spread':>8}")
    for stage, times in stages.items():
        least, most = min(times), max(times)
        spread = (most - least) / least if least else 0.0
        per_op = least * 1e3 / ops if ops else float("nan")
        print(f"{least * 1e3:10.2f} {per_op:10.4f} {spread:8.1%}  {stage}")
    if ops:
        total = min(stages["total"]) * 1e3 / ops
        print(f"{total:.3f} ms per operation, the bar is {PER_OP_BAR}")


def program_seconds(text: str) -> float:
    """CPU seconds from text to an executable program, with all caches empty."""
    primitives.described.cache_clear()
    with (
        TemporaryDirectory() as folder,
        patch.dict(os.environ, TENSORPLAN_CACHE=folder),
        patch("tensorplan.runtime.backends.jit.llvm._compiler", None),
        patch(
            "tensorplan.runtime.backends.native.functions._functions",
            dict[object, object](),
        ),
    ):
        start = time.process_time()
        tensorplan.compile(tensorplan.read(text))
        return time.process_time() - start


def xla_seconds(text: str) -> float:
    start = time.process_time()
    compiled(text)
    return time.process_time() - start


def print_beside_xla(sources: Sequence[Source], repeat: int) -> None:
    """Prints a line for each program: the CPU seconds of tensorplan and of XLA."""
    columns = ("plan", "program", "XLA")
    print(f"\n{'CPU seconds':24} {'operations':>10}", end="")
    print(*(f"{name:>9} spread" for name in columns), " ms/op  /XLA")
    for source in sources:
        text = source.data.decode()
        _, ops, _ = compile_once(source)
        rounds: list[tuple[float, ...]] = []
        for number in range(repeat + 1):
            plan = sum(compile_once(source)[0].values())
            seconds = plan, program_seconds(text), xla_seconds(text)
            rounds += [seconds] * (number > 0)  # the first round imports modules
        least, most = (list(map(f, zip(*rounds, strict=True))) for f in (min, max))
        print(f"{Path(source.name).stem:24} {ops:10}", end="")
        for low, high in zip(least, most, strict=True):
            print(f"{low:10.3f} {high / low - 1:6.0%}", end="")
        plan, program, xla = least
        print(f" {1e3 * plan / ops:6.3f} {program / xla:5.2f}", flush=True)


def training_step(make: Callable[..., Model], layers: int) -> Source:
    """The training step of a model with `layers` blocks, as StableHLO text."""
    model = make(layers=layers)
    text = jax.jit(model.function).lower(*model.arguments).as_text()
    return Source(f"{make.__name__}, {layers} blocks", text.encode())


def help_seconds() -> float:
    """The user and system time of one `plan-opt --help` process, in seconds."""
    before = os.times()
    subprocess.run(
        [sys.executable, "-m", "tensorplan.tools.plan_opt", "--help"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = os.times()
    return (
        after.children_user
        + after.children_system
        - before.children_user
        - before.children_system
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--layers", nargs="*", type=int, default=[], metavar="N")
    parser.add_argument("--vit", nargs="*", type=int, default=[], metavar="N")
    parser.add_argument("--repeat", type=int, default=5, metavar="N")
    options = parser.parse_args()
    start = time.perf_counter()
    times = [help_seconds() for _ in range(options.repeat)]
    spread = (max(times) - min(times)) / min(times)
    print(
        f"plan-opt --help: {min(times):.2f} s of CPU, spread {spread:.0%}, "
        f"the bar is {HELP_BAR}"
    )
    for file in options.files:
        print_table(str(Path(file)), options.repeat)
    steps = [(adam_step, n) for n in options.layers] + [
        (vit_step, n) for n in options.vit
    ]
    sources = [*map(read_source, options.files), *starmap(training_step, steps)]
    print_beside_xla(sources, options.repeat)
    print(f"\n{time.perf_counter() - start:.0f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main()
