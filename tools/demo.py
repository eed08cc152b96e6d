"""The demo: plans an example, draws the plan, runs it, and compares the sizes.

`python3 dev.py demo` runs it.

python -m tensorplan.tools.demo [PAGE.html]
"""

import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from .. import compile, from_stablehlo
from ..dialects.tgraph.reference.interpreter import run_reference
from ..runtime.random_inputs import random_inputs
from . import arrays
from .common import Source, write_atomically
from .views import page, terminal
from .views.model import PoolView
from .views.reading import Reader

EXAMPLE = "lenet_train.mlir"
XLA_BYTES = 10_200_296
"""XLA's temporary buffer for the example, with the better of its schedulers."""

_WIDTH = 79  # columns
_BAR = 32  # columns of the longest bar


def main(path: Path) -> int:
    """Prints one screen and writes the page to `path`; returns the exit code."""
    program = files("tensorplan.examples").joinpath(EXAMPLE).read_bytes()
    print("demo: planning the example", file=sys.stderr)
    plan = Reader().read(Source(EXAMPLE, program))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(str(path), page.page(plan).encode())
    print("demo: running it in its arena and on whole tensors", file=sys.stderr)
    wrong = list(_differences(program))
    arena = plan[0].pools[0]
    print(f"\n{EXAMPLE}: a training step of LeNet with 64 images, exported from JAX.")
    print("Bytes besides arguments and results:\n")
    print(*_figures(arena), sep="\n")
    picture, _, _ = terminal.draw(plan, _WIDTH).partition("\nat the peak")
    print("\nThe arena: addresses upwards, steps across, a letter for each buffer.")
    print(*picture.splitlines()[2:], "", sep="\n")
    print(*wrong or ["The step ran in it: all outputs are as expected."], sep="\n")
    print(f"{path} shows it as a page. Next: docs/tutorial.md")
    return 1 if wrong else 0


def _differences(program: bytes) -> Iterator[str]:
    """Errors for outputs of the plan that differ from the reference interpreter's."""
    model = from_stablehlo(program)
    run = compile(model)
    inputs = random_inputs(run.inputs, seed=0)
    expected = run_reference(model.module, inputs)
    for index, outputs in enumerate(zip(run(*inputs), expected, strict=True)):
        found = arrays.difference(f"out{index}", *outputs, rtol=2e-4, atol=1e-8)
        if found.error > found.allowed:
            yield f"error: {found.message}"


def _figures(arena: PoolView) -> Iterator[str]:
    is_optimal = arena.size == arena.problem.lower_bound
    figures = {
        "XLA (jaxlib 0.10.2), recorded": XLA_BYTES,
        "values, each in its own bytes": arena.problem.total,
        "this plan" + ", which is optimal" * is_optimal: arena.size,
    }
    for name, size in figures.items():
        bar = "#" * max(1, _BAR * size // XLA_BYTES)
        yield f"  {name:<31}{size:>11,}  {bar}"


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:] or ["demo.html"])))
