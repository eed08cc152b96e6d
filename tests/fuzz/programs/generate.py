"""Writes the small StableHLO programs that the fuzz target `models` mutates:
`python tests/fuzz/programs/generate.py` (needs JAX).

They complement the models of tests/models: windows and their gradients, other forms of
loops, gathers and scatters, sorts, branches, random bits, integers, and donated state
that is read late. All sizes differ, so a mutation changes one dimension only.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

FOLDER = Path(__file__).parent
Array: TypeAlias = Any
PROGRAMS: dict[str, tuple[Callable[..., Any], Sequence[Any], Sequence[int]]] = {}
"""By name: a function, its arguments, and the indices of donated arguments."""


def f(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def i(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def program(*args: Any, donated: Sequence[int] = ()) -> Callable[..., Any]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, args, donated
        return function

    return register


# Attention and its parts


def attend(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.T * 0.5
    mask = jnp.tril(jnp.ones(scores.shape, bool))
    return jax.nn.softmax(jnp.where(mask, scores, -1e30)) @ v


@program(f(6, 4), f(6, 4), f(6, 5))
def attention_gradient(q: Array, k: Array, v: Array) -> Any:
    return jax.grad(lambda *x: (attend(*x) ** 2).sum(), (0, 1, 2))(q, k, v)


@program(f(7, 8), f(8), f(8), f(8, 9), f(9, 8), donated=(0,))
def norm_and_mlp(x: Array, scale: Array, shift: Array, up: Array, down: Array) -> Any:
    mean = x.mean(-1, keepdims=True)
    deviation = x - mean
    variance = (deviation**2).mean(-1, keepdims=True)
    y = deviation * lax.rsqrt(variance + 1e-5) * scale + shift
    return x + jax.nn.gelu(y @ up) @ down


@program(f(5, 6), f(3, 4, 6), f(3, 4, 6), i(), donated=(1, 2))
def cached_decoding(w: Array, keys: Array, values: Array, at: Array) -> Any:
    x = jnp.tanh(w).sum(0)
    keys = lax.dynamic_update_slice(keys, jnp.tile(x, (3, 1, 1)), (0, at, 0))
    values = lax.dynamic_update_slice(values, jnp.tile(-x, (3, 1, 1)), (0, at, 0))
    scores = jnp.einsum("d,htd->ht", x, keys)
    seen = jnp.arange(4) <= at
    weights = jax.nn.softmax(jnp.where(seen, scores, -1e9))
    return jnp.einsum("ht,htd->hd", weights, values), keys, values


@program(f(4, 6), f(6, 7), i(4))
def chunked_cross_entropy(x: Array, w: Array, labels: Array) -> Any:
    def loss(x: Array, w: Array) -> Array:
        logits = x @ w
        chosen = jnp.take_along_axis(logits, labels[:, None], 1)[:, 0]
        return (jax.nn.logsumexp(logits, 1) - chosen).mean()

    return jax.value_and_grad(loss, (0, 1))(x, w)


# Windows


def blocks(x: Array, w1: Array, w2: Array) -> Array:
    x = lax.conv_general_dilated(
        x, w1, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = jax.nn.relu(x)
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = lax.conv_general_dilated(
        x,
        w2,
        (1, 1),
        ((1, 1), (1, 1)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=4,
    )
    return jnp.clip(x, 0, 6)


@program(f(2, 8, 6, 3), f(3, 3, 3, 4), f(3, 3, 1, 4))
def convolutions(x: Array, w1: Array, w2: Array) -> Any:
    return blocks(x, w1, w2).mean((1, 2))


@program(f(2, 8, 6, 3), f(3, 3, 3, 4), f(3, 3, 1, 4), donated=(1, 2))
def convolutions_step(x: Array, w1: Array, w2: Array) -> Any:
    def loss(w1: Array, w2: Array) -> Array:
        return (blocks(x, w1, w2) ** 2).mean()

    d1, d2 = jax.grad(loss, (0, 1))(w1, w2)
    return w1 - 0.1 * d1, w2 - 0.1 * d2


@program(f(2, 9, 4))
def averages(x: Array) -> Any:
    total = lax.reduce_window(x, 0.0, lax.add, (1, 3, 1), (1, 2, 1), "SAME")
    return total / 3, jnp.cumsum(x, 1)


@program(f(3, 4, 5, 6), f(6), f(6))
def batch_norm_step(x: Array, scale: Array, shift: Array) -> Any:
    def loss(x: Array, scale: Array, shift: Array) -> Array:
        mean, square = x.mean((0, 1, 2)), (x * x).mean((0, 1, 2))
        y = (x - mean) * lax.rsqrt(square - mean**2 + 1.0) * scale + shift
        return jnp.sum(jax.nn.silu(y))

    return jax.grad(loss, (0, 1, 2))(x, scale, shift)


# Loops


@program(f(7, 3), f(3, 5), f(5, 5))
def reversed_scan(xs: Array, w: Array, u: Array) -> Any:
    def step(h: Array, x: Array) -> Any:
        h = jnp.tanh(x @ w + h @ u)
        return h, h * 2

    return lax.scan(step, jnp.zeros(5), xs, reverse=True)


@program(f(7, 5), f(7, 5, 5))
def unrolled_scan(b: Array, w: Array) -> Any:
    def loss(w: Array) -> Array:
        def step(x: Array, p: Any) -> Any:
            return (jnp.tanh(x @ p[0] + p[1]), x.sum())

        x, sums = lax.scan(step, jnp.ones(5), (w, b), unroll=3)
        return x.sum() + (sums**2).sum()

    return jax.grad(loss)(w)


@program(f(6, 4), f(4, 4), donated=(0,))
def rows_in_place(s: Array, w: Array) -> Any:
    def step(n: Array, s: Array) -> Array:
        row = s[n] @ w
        return s.at[n].set(jnp.sin(row)).at[(n + 1) % 6].add(row)

    return lax.fori_loop(0, 5, step, s)


@program(f(4, 4), f())
def until_it_converges(a: Array, limit: Array) -> Any:
    def more(state: Any) -> Array:
        x, n = state
        return (jnp.abs(x).max() > limit) & (n < 9)

    def step(state: Any) -> Any:
        x, n = state
        return 0.5 * jnp.tanh(x @ a), n + 1

    return lax.while_loop(more, step, (jnp.ones(4), 0))


@program(f(3, 2, 4), f(4, 4))
def nested_scans(xs: Array, w: Array) -> Any:
    def inner(h: Array, x: Array) -> Any:
        return jnp.tanh(h @ w + x), h

    def outer(h: Array, rows: Array) -> Any:
        h, seen = lax.scan(inner, h, rows)
        return h * 0.5, seen.sum(0)

    return lax.scan(outer, jnp.zeros(4), xs)


@program(f(5, 6))
def prefix_products(x: Array) -> Any:
    return lax.associative_scan(jnp.multiply, jnp.cos(x), axis=0)


@program(i(), f(3, 5), f(5, 5))
def branches(which: Array, x: Array, w: Array) -> Any:
    y = lax.switch(
        which,
        [lambda x: x @ w, lambda x: jnp.sort(x, 1), lambda x: x[::-1] * 2],
        x,
    )
    return y, lax.cond(which > 1, lambda y: y.sum(0), lambda y: y[0], y)


@program(f(5, 4), f(4, 4))
def branches_in_a_loop(xs: Array, w: Array) -> Any:
    def step(h: Array, x: Array) -> Any:
        h = lax.cond(x[0] > 0, lambda h: jnp.tanh(h @ w) + x, lambda h: h - x, h)
        return h, h.max()

    return lax.scan(step, jnp.zeros(4), xs)


# Gathers, scatters, sorts


@program(f(9, 4), i(5), f(4, 3))
def embedding_step(table: Array, words: Array, w: Array) -> Any:
    def loss(table: Array, w: Array) -> Array:
        return (jax.nn.relu(table[words] @ w) ** 2).sum()

    return jax.grad(loss, (0, 1))(table, w)


@program(f(8, 3), i(8))
def segment_means(x: Array, segments: Array) -> Any:
    total = jax.ops.segment_sum(x, segments, 4)
    count = jax.ops.segment_sum(jnp.ones(8), segments, 4)
    largest = jax.ops.segment_max(x, segments, 4)
    return total / jnp.maximum(count, 1)[:, None], largest


@program(f(4, 9))
def largest_values(x: Array) -> Any:
    values, at = lax.top_k(x, 3)
    order = jnp.argsort(x, 0)
    return jax.nn.softmax(values), at, jnp.take_along_axis(x, order, 0), x.argmax(1)


@program(f(6, 5), donated=(0,))
def shifted(x: Array) -> Any:
    y = jnp.roll(x, 1, 0) - jnp.pad(x[1:], ((0, 1), (0, 0)))
    return jnp.concatenate([y[:, :2], x[:, 2:][:, ::-1]], 1), jnp.flip(x, 0) @ y.T


@program(f(5, 7), f(7, 7), donated=(0, 1))
def donated_late(x: Array, w: Array) -> Any:
    y = jnp.tanh(x @ w)
    z = jnp.exp(-y) @ w.T
    return x + z, w - x.T @ z, (y * z).sum()


# Integers and bits


@program(jax.ShapeDtypeStruct((2,), jnp.uint32), f(4, 6), f(6, 3))
def dropout(key: Array, x: Array, w: Array) -> Any:
    keep = jax.random.bernoulli(key, 0.7, x.shape)

    def loss(w: Array) -> Array:
        return jnp.square(jnp.where(keep, x / 0.7, 0) @ w).sum()

    return jax.value_and_grad(loss)(w)


@program(i(4, 6), i(6, 5))
def quantized(x: Array, w: Array) -> Any:
    y = jnp.clip(x @ w >> 3, -128, 127).astype(jnp.int8)
    bits = jnp.bitwise_xor(y, jnp.int8(3)) & jnp.int8(15)
    return y.astype(jnp.float32) * 0.05, bits, lax.population_count(bits)


def main() -> None:
    for name, (function, args, donated) in PROGRAMS.items():
        lowered = jax.jit(function, donate_argnums=donated, keep_unused=True)
        (FOLDER / f"{name}.mlir").write_text(lowered.lower(*args).as_text())


if __name__ == "__main__":
    main()
