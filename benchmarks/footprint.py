"""Memory of training steps: planned bytes, XLA's bytes, and growth of the process.

    python benchmarks/footprint.py
    python benchmarks/footprint.py vit_step --runs 9
    python benchmarks/footprint.py --write docs/footprint.md

The steps are models of `models.py`, at the sizes in `STEPS`; without arguments, all are
measured. A fresh process compiles each step and measures by how much its resident
memory grows over the first call, up to the peak that the Linux kernel reports.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from in_xla import called, compiled
from jax_models import convolutional, transformers
from jax_models.base import Model, jax, jnp, np
from peers import xla

STEPS: Mapping[str, Callable[[], Model]] = {
    "bert_step": transformers.bert_step,
    "gpt2_step": partial(
        transformers.gpt2_step, batch=8, length=128, layers=4, width=256
    ),
    "mobilenetv2_step": convolutional.mobilenetv2_step,
    "resnet50_step": convolutional.resnet50_step,
    "unet_step": partial(convolutional.unet_step, size=128, widths=(32, 64, 128)),
    "vit_step": partial(transformers.vit_step, size=64, layers=6, width=192),
}

INTRODUCTION = """\
# What training steps take

This page shows how much memory training steps need besides arguments and results: as
planned, as XLA reports it, and as the operating system counts it.

"""

NOTES = """
All figures are in bytes, MB in 10^6 bytes. The columns are:

* Arena: what `plan-pipeline` plans, whatever is installed.
* With kernels: the same with the scratch memory that the kernels of this machine need
  (oneDNN on {processors} threads).
* Results intact: the arena with `--no-reuse-outputs`, where no result is scratch memory
  before it is written.
* XLA, XLA memory: the temporary buffer that XLA reports, with the default and the
  memory-optimized scheduler.
* Process: how much the resident memory of a fresh process grows over the first call of
  the compiled step, up to the peak, without new results. The figure is the median of
  {runs} processes, with the smallest and the largest. It includes what no plan counts:
  the kernels' own buffers, thread stacks, and code that is loaded only then.

The steps are SGD or Adam on models of `benchmarks/models.py`, with donated parameters,
at the sizes in `benchmarks/footprint.py`. `benchmarks/footprint.py --write
docs/footprint.md` measures everything and writes this page, here with XLA of jaxlib
{jaxlib}. [What models need](peak.md) compares more compilers.
"""


class Growth(NamedTuple):
    """By how many bytes a process grows over a call; one figure for each process."""

    runs: Sequence[int]

    def __str__(self) -> str:
        middle, least, most = (f"{f(self.runs) / 1e6:,.1f}" for f in (median, min, max))
        return f"{middle} ({least} to {most})"


class Line(NamedTuple):
    """A row of the table; all figures are bytes."""

    name: str
    arena: int
    with_kernels: int
    results_intact: int
    xla: int
    xla_memory: int
    process: Growth
    xla_process: Growth

    def cells(self) -> Sequence[str]:
        figures = self.arena, self.with_kernels, self.results_intact
        numbers = (f"{number:,}" for number in (*figures, self.xla, self.xla_memory))
        return [self.name, *numbers, str(self.process), str(self.xla_process)]


COLUMNS = (
    *("step", "arena", "with kernels", "results intact", "XLA", "XLA memory"),
    *("process, MB", "XLA's process, MB"),
)


def stablehlo(model: Model) -> str:
    jitted = jax.jit(model.function, donate_argnums=tuple(range(model.state)))
    return jitted.lower(*model.arguments).as_text()


def line(name: str, runs: int) -> Line:
    import tensorplan

    with TemporaryDirectory() as folder:
        file = Path(folder, f"{name}.mlir")
        file.write_text(stablehlo(STEPS[name]()))

        def arena(**options: Any) -> int:
            planned = tensorplan.plan(tensorplan.from_stablehlo(file), **options)
            return sum(pool["bytes"] for pool in tensorplan.report(planned)["pools"])

        reported = dict(xla.measure(file))
        return Line(
            name,
            arena(),
            arena(workspaces="native"),
            arena(reuse_outputs=False),
            reported["default"],
            reported["memory"],
            Growth([_measured("tensorplan", name) for _ in range(runs)]),
            Growth([_measured("xla", name) for _ in range(runs)]),
        )


def _measured(who: str, name: str) -> int:
    command = [sys.executable, __file__, name, "--growth", who]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


# In the fresh process


def growth(who: str, model: Model) -> int:
    """Bytes by which this process grows while it runs the step for the first time."""
    text = stablehlo(model)
    call = _with_tensorplan(text) if who == "tensorplan" else _with_xla(text)
    copied = jnp.array if who == "xla" else np.array
    arguments = [copied(array) for array in model.arguments]
    donated = sum(array.nbytes for array in arguments[: model.state])
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM, the peak
    before = _resident("VmRSS")
    results = call(arguments)
    after = _resident("VmHWM")
    return after - before - (sum(array.nbytes for array in results) - donated)


def _with_xla(text: str) -> Callable[[Sequence[Any]], Any]:
    executable = compiled(text)
    return lambda arrays: jax.block_until_ready(called(executable, arrays))


def _with_tensorplan(text: str) -> Callable[[Sequence[Any]], Any]:
    tensorplan: Any = import_module("tensorplan")
    run = tensorplan.compile(tensorplan.from_stablehlo(text))
    return lambda arrays: run(*arrays)


def _resident(what: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (row.split()[1] for row in lines if row.startswith(what))
    return int(kilobytes) * 1024


def page(lines: Sequence[Line], runs: int, processors: int) -> str:
    table = [
        f"| {' | '.join(COLUMNS)} |",
        f"| --- |{' --: |' * (len(COLUMNS) - 1)}",
        *(f"| {' | '.join(line.cells())} |" for line in lines),
    ]
    notes = NOTES.format(runs=runs, processors=processors, jaxlib=version("jaxlib"))
    return INTRODUCTION + "\n".join(table) + "\n" + notes


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("steps", nargs="*", choices=[[], *STEPS], metavar="STEP")
    parser.add_argument("--runs", type=int, default=5, help="processes (default: 5)")
    parser.add_argument("--write", type=Path, metavar="FILE.md")
    parser.add_argument(
        "--growth", choices=("tensorplan", "xla"), help="of this process, once"
    )
    options = parser.parse_args()
    names: Sequence[str] = options.steps or list(STEPS)
    if options.growth:
        print(growth(options.growth, STEPS[names[0]]()))
        return
    lines: list[Line] = []
    for name in names:
        lines.append(line(name, options.runs))
        print(*lines[-1].cells(), sep="  ", flush=True)
    if options.write:
        processors: Any = import_module("tensorplan.support.threads").available()
        options.write.write_text(page(lines, options.runs, processors))


if __name__ == "__main__":
    main()
