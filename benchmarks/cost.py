"""Compares the estimated time of kernels (analysis/cost.py) with the measured time.

    python benchmarks/cost.py                   # all kernels, native, on one core
    python benchmarks/cost.py --rounds 200      # with less noise

Prints a line for each kernel and size, and Spearman's rank correlation over all lines:
it is 1 if the estimates put the kernels in the order of their measured times. The
measured time is that of the shortest round, with the overhead of a call.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from time import perf_counter
from typing import Any

# NumPy and JAX read these variables when they are imported.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TENSORPLAN_THREADS"):
    os.environ[variable] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
from kernels import PROGRAMS, Program

import tensorplan
from tensorplan.analysis.cost import time
from tensorplan.analysis.flops import flops
from tensorplan.runtime.executor import Executable

jax: Any = import_module("jax")
jnp: Any = jax.numpy

Array = Any


def product(x: Array, y: Array) -> Array:
    return x @ y


def convolved(stride: int = 1, groups: int = 1, holes: int = 1) -> Any:
    def convolution(image: Array, kernel: Array) -> Array:
        return jax.lax.conv_general_dilated(
            image,
            kernel,
            (stride, stride),
            [(1, 1), (1, 1)],
            lhs_dilation=(holes, holes),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )

    return convolution


def depthwise(labels: str) -> Any:
    def convolution(image: Array, kernel: Array) -> Array:
        features = image.shape[labels.index("C")]
        return jax.lax.conv_general_dilated(
            image,
            kernel,
            *((1, 1), "SAME"),
            dimension_numbers=(labels, "HWIO", labels),
            feature_group_count=features,
        )

    return convolution


def integer_product(x: Array, y: Array) -> Array:
    dims = (((1,), (0,)), ((), ()))
    return jax.lax.dot_general(x, y, dims, preferred_element_type=jnp.int32)


def transposed(x: Array) -> Array:
    return x.T + 0.0


def pooled(x: Array) -> Array:
    window = (1, 2, 2, 1)
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")


def sines(x: Array) -> Array:
    return jnp.sin(x)


def sorted_rows(x: Array) -> Array:
    return jnp.sort(x)


def scanned(x: Array, w: Array) -> Array:
    def layer(x: Array, w: Array) -> Any:
        return jnp.tanh(x @ w), None

    return jax.lax.scan(layer, x, w)[0]


SQUARES = (64, 256, 1024)
IMAGES = ((1, 14, 14, 32), (1, 28, 28, 64), (4, 56, 56, 64))
KERNELS: Mapping[str, Program] = {
    **PROGRAMS,
    "product": Program(product, [[(n, n), (n, n)] for n in SQUARES]),
    "attention": Program(product, [[(b, 128, 64), (b, 64, 128)] for b in (1, 12, 96)]),
    "product u8 i8": Program(integer_product, [[(n, n), (n, n)] for n in SQUARES]),
    "product i8 i8": Program(integer_product, [[(n, n), (n, n)] for n in SQUARES]),
    "rows": Program(product, [[(1, n), (n, n)] for n in (128, 512, 2048)]),
    "conv3x3": Program(convolved(), [[i, (3, 3, i[-1], i[-1])] for i in IMAGES]),
    "strided": Program(convolved(2), [[i, (3, 3, i[-1], i[-1])] for i in IMAGES]),
    "grouped": Program(
        convolved(groups=8), [[i, (3, 3, i[-1] // 8, i[-1])] for i in IMAGES]
    ),
    "depthwise": Program(depthwise("NHWC"), [[i, (3, 3, 1, i[-1])] for i in IMAGES]),
    "channels first": Program(
        depthwise("NCHW"), [[(b, c, h, w), (3, 3, 1, c)] for b, h, w, c in IMAGES]
    ),
    "transposed conv": Program(
        convolved(holes=2), [[i, (3, 3, i[-1], i[-1])] for i in IMAGES]
    ),
    "transpose": Program(transposed, [[(n, n)] for n in (64, 256, 1024)]),
    "maxpool": Program(pooled, [[i] for i in IMAGES]),
    "sine": Program(sines, [[(n,)] for n in (1 << 10, 1 << 14, 1 << 18)]),
    "sort": Program(sorted_rows, [[(n, 256)] for n in (1, 16, 256)]),
    "scan": Program(scanned, [[(8, n), (16, n, n)] for n in (32, 128, 512)]),
}

ELEMENTS: Mapping[str, Sequence[str]] = {
    "product u8 i8": ("uint8", "int8"),
    "product i8 i8": ("int8", "int8"),
}
"""The types of the arguments of kernels, where they are not float32."""


def measured(program: Executable, arrays: Sequence[Array], rounds: int) -> float:
    """The shortest run, in seconds."""
    outs = [np.empty(result.shape, result.dtype) for result in program.results]
    shortest = float("inf")
    for _ in range(rounds):
        start = perf_counter()
        program(*arrays, out=outs)
        shortest = min(shortest, perf_counter() - start)
    return shortest


def ranks(values: Sequence[float]) -> Array:
    """The rank of each value, from 0."""
    return np.argsort(np.argsort(values, kind="stable"), kind="stable")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=50, help="default: 50")
    rounds: int = parser.parse_args().rounds
    rng = np.random.default_rng(0)
    estimates: list[float] = []
    times: list[float] = []
    print(f"{'kernel':40} {'MFLOP':>9} {'estimated':>12} {'measured':>12}")
    for name, kernel in KERNELS.items():
        for shapes in kernel.shapes:
            types = ELEMENTS.get(name, ["float32"] * len(shapes))
            arrays = [
                (8 * rng.random(shape)).astype(type)
                for shape, type in zip(shapes, types, strict=True)
            ]
            module = tensorplan.from_jax(kernel.function, *arrays).module
            planned = tensorplan.plan(module, workspaces="native")
            estimates.append(time(planned) / 1e3)
            times.append(measured(Executable(planned), arrays, rounds) * 1e6)
            title = f"{name} {' '.join('x'.join(map(str, shape)) for shape in shapes)}"
            print(
                f"{title:40} {flops(planned) / 1e6:9.2f} {estimates[-1]:9.1f} us "
                f"{times[-1]:9.1f} us",
                flush=True,
            )
    correlation = np.corrcoef(ranks(estimates), ranks(times))[0, 1]
    print(f"Spearman's rank correlation of {len(times)} kernels: {correlation:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
