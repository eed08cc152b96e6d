"""Compares the estimated times of frontiers of training steps with measured ones.

    python benchmarks/frontier.py unet_step gpt2_step    # names as in models.py
    python benchmarks/frontier.py step.mlir --points 8

Prints, for each point, the estimated time and the measured CPU time of one thread (the
shortest of several runs) in milliseconds, both relative to the first point, and how far
the estimates are off.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import cast

# NumPy reads these variables when it is imported.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TENSORPLAN_THREADS"):
    os.environ[variable] = "1"

from models import MODELS

import tensorplan
from tensorplan.runtime.measuring import measured_time

HEAD = ("bytes", "estimated", "measured", "off", "x", "measured x", "off")


def program(name: str) -> tensorplan.Model:
    """The model called `name`, or the StableHLO program in the file `name`."""
    if name not in MODELS:
        return tensorplan.from_stablehlo(Path(name))
    model = MODELS[name]()
    donated = tuple(range(model.state))
    return tensorplan.from_jax(model.function, *model.arguments, donate_argnums=donated)


def report(name: str, points: int) -> None:
    model = program(name)
    found = tensorplan.frontier(model, points=points)
    plans = [cast(tensorplan.Model, point.planned).module for point in found]
    times = [measured_time(plan, threads=1) / 1e6 for plan in plans]
    print(f"{name}\n{HEAD[0]:>12}", *(f"{title:>10}" for title in HEAD[1:]))
    for point, measured in zip(found, times, strict=True):
        estimated = point.time / 1e6
        ratios = point.time / found[0].time, measured / times[0]
        print(
            f"{point.bytes:>12,} {estimated:>10.2f} {measured:>10.2f} "
            f"{estimated / measured - 1:>+10.1%} {ratios[0]:>10.3f} {ratios[1]:>10.3f} "
            f"{ratios[0] / ratios[1] - 1:>+10.1%}  {point.change}",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--points", type=int, default=20)
    options = parser.parse_args()
    for name in options.models:
        report(name, options.points)
    return 0


if __name__ == "__main__":
    sys.exit(main())
