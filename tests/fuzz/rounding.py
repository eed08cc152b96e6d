"""Estimates how much rounding may change the results of a program.

A program may amplify rounding errors without limit: m / sqrt(v), Adam's first step, is
1 or -1 for a gradient that is 0 up to rounding. No fixed tolerance fits such programs.
The reference interpreter therefore runs a program several times with random roundings
(as CESTAC does, Vignes 1993), and the spread of the results is the tolerance.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from tensorplan.dialects.dtypes import Array, is_float
from tensorplan.dialects.tgraph import elementwise, reducing
from tensorplan.dialects.tgraph.reference.evaluation import evaluate
from tensorplan.dialects.tgraph.reference.interpreter import run_reference

RUNS, DIGITS = 8, 4
"""The number of runs, and the units in the last place by which a result changes: more
than one, because a sum in another order is rounded many times."""

_LINEAR = (elementwise.AddOp, reducing.DotGeneralOp, reducing.ConvolutionOp)
_SUMS = (reducing.ReduceOp, reducing.ReduceWindowOp)
_EXACT = (
    elementwise.AbsOp,
    elementwise.BitcastConvertOp,
    elementwise.CeilOp,
    elementwise.ClampOp,
    elementwise.FloorOp,
    elementwise.MaximumOp,
    elementwise.MinimumOp,
    elementwise.NegateOp,
    elementwise.RoundNearestAfzOp,
    elementwise.RoundNearestEvenOp,
    elementwise.SelectOp,
    elementwise.SignOp,
)


def spread_by_rounding(
    module: ModuleOp, inputs: Sequence[Array], want: Sequence[Array]
) -> list[float]:
    """The absolute tolerance of each result: its largest distance from `want`."""
    furthest = [0.0] * len(want)
    for seed in range(RUNS):
        noise = Noise(seed)
        moved = [noise.moved(x, np.abs(x)) if is_float(x.dtype) else x for x in inputs]
        with np.errstate(all="ignore"):
            got = run_reference(module, moved, listeners=(noise,))
        for number, (a, b) in enumerate(zip(got, want, strict=True)):
            furthest[number] = max(furthest[number], _apart(a, b))
    return furthest


class Noise(Interpreter.Listener):
    """Changes each rounded result by `DIGITS` units in the last place, up or down.

    The unit is that of the largest intermediate result: a sum whose terms cancel is as
    inexact as its terms are large.
    """

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.operands: list[PythonValues] = []

    def will_interpret_op(self, op: Operation, args: PythonValues) -> None:
        self.operands.append(args)

    def did_interpret_op(self, op: Operation, results: PythonValues) -> None:
        operands = self.operands.pop()
        if (magnitude := _magnitude(op, operands, results)) is not None:
            results[0][...] = self.moved(results[0], magnitude)

    def moved(self, x: Array, magnitude: Array) -> Array:
        digit = {2: 2.0**-8, 4: 2.0**-23, 8: 2.0**-52}[x.dtype.itemsize]
        step = self.random.choice((-1, 1), x.shape) * magnitude.astype(np.float64)
        return (x + DIGITS * digit * step).astype(x.dtype)


def _magnitude(op: Operation, operands: PythonValues, results: PythonValues) -> Any:
    """The magnitude of the terms of each element; None if `op` does not round."""
    if not (len(results) == 1 and isinstance(x := results[0], np.ndarray)):
        return None
    if not is_float(x.dtype):
        return None
    if isinstance(op, _LINEAR) or (isinstance(op, _SUMS) and op.kind.data == "add"):
        return evaluate(op, [np.abs(x) for x in operands])
    if isinstance(op, elementwise.SubtractOp):
        return np.abs(operands[0]) + np.abs(operands[1])
    if isinstance(op, elementwise.ElementwiseOp) and not isinstance(op, _EXACT):
        return np.abs(results[0])
    return None


def _apart(a: Array, b: Array) -> float:
    """The largest distance; infinite if only one value is NaN or infinite."""
    with np.errstate(invalid="ignore"):
        distances = np.abs(a.astype(np.float64) - b.astype(np.float64))
    same = (a == b) | ((a != a) & (b != b))
    return float(np.where(same, 0, np.nan_to_num(distances, nan=np.inf)).max(initial=0))
