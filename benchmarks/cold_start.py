"""CPU time from the start of a process to the first result of a program.

    python benchmarks/cold_start.py tests/models/*.mlir
    python benchmarks/cold_start.py --rounds 9 MODEL.mlir   # with less noise

The table shows seconds, as medians of rounds that alternate between the columns:
`text` compiles the program's text with an empty cache of plans and compiled code,
`cached` with a filled cache, and `file` loads what `tensorplan.save` has written,
without a cache. Each time includes one call. `KiB` is the size of the saved file.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from tempfile import TemporaryDirectory

import tensorplan

COMPILE = "tensorplan.compile(tensorplan.read(Path(sys.argv[1])))"
LOAD = "tensorplan.load(sys.argv[1])"
CALL = """
import sys
from pathlib import Path
import numpy as np
import tensorplan
run = {}
run(*[np.ones(slot.shape, slot.dtype) for slot in run.inputs])
"""


def seconds(program: str, path: Path, cache: Path) -> float:
    """The CPU time of a process that evaluates `program` and calls the result once."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", CALL.format(program), str(path)],
        check=True,
        env={**os.environ, "TENSORPLAN_CACHE": str(cache)},
    )
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(model: Path, folder: Path, rounds: int) -> tuple[Sequence[float], int]:
    """The seconds of each column, and the size of the saved file in bytes."""
    saved = folder / f"{model.stem}.plan"
    tensorplan.save(tensorplan.compile(tensorplan.read(model)), saved)
    filled = folder / "filled"
    seconds(COMPILE, model, filled)
    taken: list[tuple[float, ...]] = []
    for number in range(rounds):
        empty = folder / f"{model.stem}.{number}"
        row = (COMPILE, model, empty), (COMPILE, model, filled), (LOAD, saved, empty)
        taken.append(tuple(seconds(*column) for column in row))
    return list(map(median, zip(*taken, strict=True))), saved.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{'model':24}{'text':>10}{'cached':>10}{'file':>10}{'KiB':>10}")
    with TemporaryDirectory() as folder:
        for model in options.models:
            figures, size = measure(model, Path(folder), options.rounds)
            shown = "".join(f"{figure:10.2f}" for figure in figures)
            print(f"{model.stem:24}{shown}{size / 1024:10.0f}", flush=True)


if __name__ == "__main__":
    main()
