"""CPU time of common operations and loops at several sizes, compared with `jax.jit`.

    python benchmarks/operations.py                 # all, in some minutes
    python benchmarks/operations.py cumsum top_k    # names that contain these words

The table shows microseconds of CPU time per call, in one thread: the median of rounds
that alternate between both, and half of the interquartile range. Every call has the
same arguments: NumPy arrays for tensorplan, arrays on the device for JAX.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everyday import RANDOM, Array, Arrays, floats, jax, jnp, measured, np

import tensorplan

lax: Any = jax.lax


@dataclass(frozen=True)
class Case:
    """A function; `make` returns its arguments for each of `sizes`."""

    function: (
        Callable[[Array], Array]
        | Callable[[Array, Array], Array]
        | Callable[[Array, Array, Array], Array]
    )
    make: Callable[[int], Arrays]
    sizes: Sequence[int]


def integers(limit: int, *shape: int) -> Array:
    return RANDOM.integers(0, limit, shape).astype("int32")


def windows(x: Array, starts: Array) -> Array:
    def window(at: Array) -> Array:
        return lax.dynamic_slice(x, at, (8, 8))

    return jax.vmap(window)(starts)


def loop(count: int) -> Callable[[Array], Array]:
    def step(_: Array, x: Array) -> Array:
        return x * 0.5 + 1

    return lambda x: lax.fori_loop(0, count, step, x)


def products(x: Array, y: Array) -> Array:
    """A loop of 100 matrix products, each of which reads the previous one."""

    def step(_: Array, z: Array) -> Array:
        return z @ y

    return lax.fori_loop(0, 100, step, x)


def updates(x: Array) -> Array:
    """A loop that computes each element from the previous one."""

    def step(i: Array, x: Array) -> Array:
        return x.at[i].set(x[i - 1] * 0.5 + 1)

    return lax.fori_loop(1, x.size, step, x)


def newton(x: Array) -> Array:
    """A square root by Newton's method, iterated until it converges."""

    def differ(roots: Arrays) -> Array:
        return abs(roots[0] - roots[1]) > 1e-6 * roots[1]

    def step(roots: Arrays) -> Arrays:
        return roots[1], 0.5 * (roots[1] + x / roots[1])

    return lax.while_loop(differ, step, (x, x + 1))[1]


def collatz(n: Array) -> Array:
    """The total number of Collatz steps to 1 from all positive numbers below `n`."""

    def halved(number: Array) -> Array:
        return number // 2

    def tripled(number: Array) -> Array:
        return 3 * number + 1

    def is_left(state: Arrays) -> Array:
        return state[0] > 1

    def step(state: Arrays) -> Arrays:
        number, count = state
        return lax.cond(number % 2 == 0, halved, tripled, number), count + 1

    def add(number: Array, total: Array) -> Array:
        return total + lax.while_loop(is_left, step, (number, 0))[1]

    return lax.fori_loop(1, n, add, 0)


def distances(x: Array, y: Array) -> Array:
    """Dynamic time warping: two nested loops that compute one element at a time."""

    def row(i: Array, table: Array) -> Array:
        def cell(j: Array, table: Array) -> Array:
            least = jnp.minimum(table[i - 1, j], table[i, j - 1])
            least = jnp.minimum(least, table[i - 1, j - 1])
            return table.at[i, j].set(abs(x[i - 1] - y[j - 1]) + least)

        return lax.fori_loop(1, y.size + 1, cell, table)

    table = jnp.full((x.size + 1, y.size + 1), jnp.inf).at[0, 0].set(0)
    return lax.fori_loop(1, x.size + 1, row, table)[-1, -1]


def averages(x: Array) -> Array:
    """The exponential moving averages of the rows of `x`."""

    def step(mean: Array, row: Array) -> tuple[Array, Array]:
        mean = 0.9 * mean + 0.1 * row
        return mean, mean

    return lax.scan(step, x[0], x)[1]


def lstm(x: Array, w: Array, u: Array) -> Array:
    def step(state: Arrays, row: Array) -> tuple[Arrays, Array]:
        h, c = state
        i, f, g, o = jnp.split(row @ w + h @ u, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((x.shape[1], u.shape[0]))
    return lax.scan(step, (zeros, zeros), x)[1]


def eigenvalue(x: Array, y: Array) -> Array:
    """The largest eigenvalue of `x`, by power iteration until it converges."""

    def step(state: Arrays) -> Arrays:
        _, value, y = state
        y = x @ y
        norm = jnp.sqrt(jnp.sum(y * y))
        return value, norm, y / norm

    def is_changing(state: Arrays) -> Array:
        return abs(state[0] - state[1]) > 1e-5 * abs(state[1])

    return lax.while_loop(is_changing, step, (jnp.float32(0), jnp.float32(1), y))[1]


def tiles(x: Array, w: Array) -> Array:
    """A loop over tiles of 32 rows that applies a chain of products and sums it up."""

    def step(i: Array, total: Array) -> Array:
        tile = lax.dynamic_slice_in_dim(x, 32 * i, 32)
        for _ in range(4):
            tile = jnp.tanh(tile @ w)
        return total + tile.sum()

    return lax.fori_loop(0, x.shape[0] // 32, step, jnp.float32(0))


def chain(x: Array, y: Array) -> Array:
    """Ten matrix products, each of which reads the previous one."""
    for _ in range(10):
        x = x @ y
    return x


def largest(x: Array) -> Array:
    """Padded max pooling with 3x3 windows and strides of 2."""
    window, steps = (1, 3, 3, 1), (1, 2, 2, 1)
    padding = ((0, 0), (1, 1), (1, 1), (0, 0))
    return lax.reduce_window(x, -float("inf"), lax.max, window, steps, padding)


def bits(key: Array, x: Array) -> Array:
    key = jax.random.wrap_key_data(key, impl="threefry2x32")
    return jax.random.bits(key, x.shape)


def line(n: int) -> Arrays:
    return (floats(n),)


def lines(n: int) -> Arrays:
    return floats(n), floats(n)


def rows(n: int) -> Arrays:
    return (floats(256, n),)


def square(n: int) -> Arrays:
    return (floats(n, n),)


def squares(n: int) -> Arrays:
    return floats(n, n), floats(n, n) / n**0.5


def symmetric(n: int) -> Array:
    x = abs(floats(n, n))
    return x + x.T


LINES = (1 << 10, 1 << 16, 1 << 20)
SQUARES = (64, 256, 512)

CASES: Mapping[str, Case] = {
    "cumsum": Case(jnp.cumsum, line, (1000, 10_000, 100_000)),
    "cumsum of rows": Case(lambda x: jnp.cumsum(x, 1), rows, (16, 128, 1000)),
    "cumsum of columns": Case(lambda x: jnp.cumsum(x, 0), rows, (16, 128, 1000)),
    "windows by gather": Case(
        windows, lambda n: (floats(256, 256), integers(256, n, 2)), (10, 1000, 10_000)
    ),
    **{
        f"fori {n} of 8": Case(loop(n), lambda _: (floats(8),), (8,))
        for n in (10, 100, 1000)
    },
    "top_k 8 of rows": Case(lambda x: lax.top_k(x, 8), rows, (100, 1000, 10_000)),
    "gelu, exact": Case(lambda x: jax.nn.gelu(x, approximate=False), line, LINES),
    "erf": Case(lax.erf, line, LINES),
    "erfc": Case(lax.erfc, line, LINES),
    "erf, f64": Case(lax.erf, lambda n: (RANDOM.standard_normal(n),), LINES),
    "tan": Case(jnp.tan, line, LINES),
    "atan2": Case(jnp.arctan2, lines, LINES),
    "cbrt": Case(jnp.cbrt, line, LINES),
    "shift": Case(
        lambda x, y: lax.shift_right_logical(x << 3, y),
        lambda n: (integers(1 << 30, n), integers(32, n)),
        LINES,
    ),
    "popcount": Case(lax.population_count, lambda n: (integers(1 << 30, n),), LINES),
    "i32 product": Case(
        lambda x, y: x @ y,
        lambda n: (integers(1 << 20, n, n), integers(1 << 20, n, n)),
        (32, 128, 256),
    ),
    "scatter-add of scalars": Case(
        lambda x, at, y: x.at[at].add(y),
        lambda n: (floats(n), integers(n, n), floats(n)),
        (1000, 10_000, 100_000),
    ),
    "scatter-add of rows": Case(
        lambda x, at, y: x.at[at].add(y),
        lambda n: (floats(8192, 256), integers(8192, n), floats(n, 256)),
        (16, 256, 4096),
    ),
    "argmax of rows": Case(lambda x: jnp.argmax(x, 1), rows, (100, 1000, 10_000)),
    "argmax of columns": Case(lambda x: jnp.argmax(x, 0), rows, (100, 1000, 10_000)),
    "loop of products": Case(products, squares, (8, 16, 32)),
    "loop of updates": Case(updates, line, (100, 20_000)),
    "loop of Newton's": Case(
        newton, lambda n: (np.full((), n, np.float32),), (2, 1000)
    ),
    "loop of conditions": Case(
        collatz, lambda n: (np.full((), n, np.int32),), (10, 1000)
    ),
    "loop in a loop": Case(distances, lines, (10, 100)),
    "loop of averages": Case(averages, lambda n: (floats(n, 8),), (100, 1000)),
    "loop of an LSTM": Case(
        lstm, lambda n: (floats(100, 1, n), floats(n, 4 * n), floats(n, 4 * n)), (8, 64)
    ),
    "loop until the same": Case(
        eigenvalue, lambda n: (symmetric(n), floats(n)), (8, 64)
    ),
    "loop of tiles": Case(
        tiles, lambda n: (floats(4096, n), floats(n, n) / n**0.5), (16, 64)
    ),
    "gather of scalars": Case(
        lambda x, at: x[at],
        lambda n: (floats(n), integers(n, n)),
        (1000, 10_000, 100_000),
    ),
    "gather of rows": Case(
        lambda x, at: x[at],
        lambda n: (floats(8192, 256), integers(8192, n)),
        (16, 256, 4096),
    ),
    "largest of windows": Case(
        largest, lambda n: (floats(1, n, n, 32),), (16, 64, 128)
    ),
    "transpose": Case(lambda x: x.T + 1, square, (128, 512, 1024)),
    "transpose alone": Case(lambda x: x.T, square, (128, 512, 2048)),
    "softmax of columns": Case(lambda x: jax.nn.softmax(x.T), square, (128, 512, 2048)),
    "reversed rows": Case(lambda x: x[:, ::-1] + 1, square, (128, 512, 1024)),
    "every second of rows": Case(lambda x: x[:, ::2] + 1, square, (128, 512, 1024)),
    "gather of columns": Case(
        lambda x, at: x[:, at],
        lambda n: (floats(512, 512), integers(512, n)),
        (16, 256, 4096),
    ),
    "top_k 100 of a line": Case(
        lambda x: lax.top_k(x, 100), line, (10_000, 100_000, 1_000_000)
    ),
    "sort of rows": Case(lambda x: jnp.sort(x), rows, (100, 1000, 10_000)),
    "sort by two keys": Case(lambda x, y: jnp.lexsort((x, jnp.round(y))), lines, LINES),
    "real Fourier transform": Case(jnp.fft.rfft, rows, (100, 1000, 4096)),
    "complex product": Case(
        lambda x, y: (lax.complex(x, y) * lax.complex(y, x + 1)).real, lines, LINES
    ),
    "bf16 product": Case(
        lambda x, y: x @ y,
        lambda n: tuple(x.astype(jnp.bfloat16) for x in squares(n)),
        SQUARES,
    ),
    "threefry bits": Case(
        bits, lambda n: (integers(1 << 30, 2).astype("uint32"), floats(n)), LINES
    ),
    "matrix x vector": Case(
        lambda x, y: x @ y, lambda n: (floats(n, n), floats(n)), (256, 1024, 4096)
    ),
    "vector x matrix": Case(
        lambda x, y: x @ y,
        lambda n: (floats(1, n), floats(n, 4 * n)),
        (128, 768, 1536),
    ),
    "10 small products": Case(chain, squares, (4, 8, 16)),
}


def calls(case: Case, size: int) -> list[Callable[[], object]]:
    """The functions that call tensorplan and JAX, in this order."""
    arrays = case.make(size)
    run = tensorplan.compile(tensorplan.from_jax(case.function, *arrays))
    jitted, on_device = jax.jit(case.function), [jnp.asarray(x) for x in arrays]
    return [
        lambda: run(*arrays),
        lambda: jax.block_until_ready(jitted(*on_device)),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="in the names of operations")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    print(f"{'':24}{'size':>9}", *(f"{c:>18}" for c in ("ours", "jax", "ours / jax")))
    for name, case in CASES.items():
        if options.words and not any(word in name for word in options.words):
            continue
        for size in case.sizes:
            jax.config.update("jax_enable_x64", "f64" in name)
            ours, theirs = measured(calls(case, size), options.rounds)
            ratio = f"{ours.median / theirs.median:.2f}"
            print(
                f"{name:24}{size:>9,}",
                *(f"{cell!s:>18}" for cell in (ours, theirs, ratio)),
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
