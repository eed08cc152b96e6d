"""Compares the values of whole models with XLA's, in every way to run them.

    python benchmarks/values.py tests/models/*.mlir

Plans each StableHLO model for one device, for two devices (the first half of the
operations on one), and for 2 and 4 streams, and runs it with native code and with NumPy
only. Two devices run in one thread and concurrently, streams always concurrently. The
oracle is jaxlib's CPU client on the same text and random inputs. The table shows the
largest error relative to a result's largest magnitude, in units of 1e-6. The exit code
is 1 if a result is off by more than rtol 2e-4 (and 2e-4 of its largest magnitude).
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from in_xla import called, compiled
from xdsl.dialects.builtin import ModuleOp, StringAttr

import tensorplan
from tensorplan.analysis.functions import tensor_functions
from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.base import TensorOp
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.runtime.executor import Executable
from tensorplan.support.slots import Input

TOLERANCE = 2e-4
WAYS: dict[str, tuple[dict[str, Any], bool, bool]] = {
    # options of `plan`, whether on two devices, whether to run concurrently
    "one device": ({}, False, False),
    "two devices": ({}, True, False),
    "two, concurrent": ({}, True, True),
    "2 streams": ({"streams": 2}, False, True),
    "4 streams": ({"streams": 4}, False, True),
}


def xla_values(text: str, arguments: Sequence[Array]) -> list[Array]:
    """The results of `@main`, computed by XLA. Leaves `arguments` intact."""
    put = import_module("jax").device_put
    results = called(compiled(text), [put(np.array(a)) for a in arguments])
    return [np.array(result) for result in results]


def random_array(value: Input, rng: np.random.Generator) -> Array:
    """Random values: floats from 0 to 0.1, as second moments must not be negative;
    integers from 0 to 9; or booleans."""
    if np.issubdtype(value.dtype, np.floating):
        array = rng.random(value.shape, np.float32) * 0.1
        return array.astype(value.dtype)
    return rng.integers(0, 2 if value.dtype == bool else 10, value.shape).astype(
        value.dtype
    )


def split(module: ModuleOp) -> ModuleOp:
    """A copy with the first half of the operations on `cpu:0`, the rest on `cpu:1`."""
    module = module.clone()
    for _, body in tensor_functions(module):
        ops = [op for op in body.ops if isinstance(op, TensorOp)]
        for place, op in enumerate(ops):
            device = "cpu:0" if place < len(ops) / 2 else "cpu:1"
            op.attributes["tgraph.device"] = StringAttr(device)
    return module


def error(got: Sequence[Array], want: Sequence[Array]) -> tuple[float, bool]:
    """The largest error relative to the largest magnitude of its result, and whether
    all values are within `TOLERANCE`."""
    worst, near = 0.0, True
    for a, b in zip(got, want, strict=True):
        if not b.size:
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        scale = float(np.abs(b).max())
        worst = max(worst, float(np.abs(a - b).max()) / (scale or 1.0))
        near &= np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * scale)
    return worst, near


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument(
        "--largest",
        type=float,
        default=4e9,
        metavar="BYTES",
        help="skip models with more bytes of arguments (default: 4e9)",
    )
    options = parser.parse_args()
    failed = 0
    for file in options.files:
        module = tensorplan.from_stablehlo(file).module
        inputs = signature(module).inputs
        size = sum(prod(i.shape) * i.dtype.itemsize for i in inputs)
        if size > options.largest:
            print(f"{file.stem}: skipped, {size / 1e9:.1f} GB of arguments", flush=True)
            continue
        rng = np.random.default_rng(0)
        arguments = [random_array(value, rng) for value in inputs]
        want = xla_values(file.read_text(), arguments)
        for way, (plan, on_two, concurrent) in WAYS.items():
            planned = tensorplan.plan(split(module) if on_two else module, **plan)
            for kernels in ("native", "NumPy"):
                execute = Executable(
                    planned, native=kernels == "native", concurrent=concurrent
                )
                worst, near = error(execute(*map(np.copy, arguments)), want)
                failed += not near
                verdict = "" if near else "  WRONG"
                name = f"{file.stem:<18}{way:<16}{kernels:<8}"
                print(f"{name}{worst * 1e6:>10.2f}{verdict}", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
