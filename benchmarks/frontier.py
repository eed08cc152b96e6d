"""Frontiers of training steps, and whether points take the time that is estimated.

    python benchmarks/frontier.py unet_step gpt2_step    # names as in models.py
    python benchmarks/frontier.py step.mlir --points 8

For each point the estimate and the measured CPU time of one thread in milliseconds (the
least of rounds that alternate between all points), and the same relative to the first.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time

# Before NumPy is loaded, which reads this when it starts.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TENSORPLAN_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from models import MODELS

import tensorplan
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.tools.arrays import random_inputs

HEAD = ("bytes", "estimated", "measured", "off", "x", "measured x", "off")


def program(name: str) -> tuple[tensorplan.Model, Sequence[np.ndarray]]:
    """A model by its name, or the StableHLO of a file, with arguments."""
    if name not in MODELS:
        model = tensorplan.from_stablehlo(Path(name))
        return model, random_inputs(signature(model.module).inputs, 0)
    model = MODELS[name]()
    donated = tuple(range(model.state))
    lowered = tensorplan.from_jax(
        model.function, *model.arguments, donate_argnums=donated
    )
    return lowered, [np.array(array) for array in model.arguments]


def least(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Milliseconds of each call, the least of all rounds."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, taken in zip(calls, times, strict=True):
            start = process_time()
            call()
            taken.append(1e3 * (process_time() - start))
    return [min(taken) for taken in times]


def report(name: str, points: int, rounds: int) -> None:
    model, arguments = program(name)
    found = tensorplan.frontier(model, points=points)
    plans = [tensorplan.plan(model, budget=point.budget) for point in found]
    runs = [tensorplan.compile(plan) for plan in plans]
    times = least([lambda run=run: run(*arguments) for run in runs], rounds)
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
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    for name in options.models:
        report(name, options.points, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
