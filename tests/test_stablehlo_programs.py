"""Compares loops, branches, sorting, random numbers and special functions with JAX.

Each program runs in the reference interpreter, and planned: with native code, with
NumPy kernels, and in a sanitized run.
"""

# Programs are lambdas, and importorskip returns an untyped `jax`.
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jax_cpu import run_stablehlo
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.frontends.jax import lower
from tensorplan.runtime.executor import Executable

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax

Program = tuple[Callable[..., Any], list[Any]]


def floats(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def random(seed: int, kind: str = "threefry2x32") -> Any:
    """A key for random numbers, made from its bits."""
    return jax.random.wrap_key_data(seed, impl=kind)


X = floats(4, 6)
W = floats(6, 6, seed=2) / 3
U = np.linspace(-0.99, 0.99, 24).reshape(4, 6).astype(np.float32)
INTEGERS = np.random.default_rng(1).integers(0, 5, (6, 7)).astype(np.int32)
BITS = np.random.default_rng(1).integers(0, 2**32, (6, 7)).astype(np.uint32)
KEY = np.array([1, 2], np.uint32)


def layers(w: Any, x: Any) -> Any:
    """A scan whose steps return the previous state and its sum."""
    return lax.scan(lambda c, a: (jnp.tanh(c @ w + a), (c, c.sum())), jnp.zeros(6), x)


def decode(cache: Any, x: Any, at: Any) -> Any:
    cache = lax.dynamic_update_slice(cache, x, (at, 0))
    return cache, lax.dynamic_slice(cache, (at - 2, 0), (3, 6)).sum(0)


def branches(x: Any, number: Any) -> Any:
    return lax.switch(
        number, [lambda v: v + 1, lambda v: v * 2, lambda v: v - x.sum()], x
    )


CONTROL: dict[str, Program] = {
    "counted": (lambda x: lax.fori_loop(0, 5, lambda i, a: a * 0.5 + i, x), [X]),
    "swapped": (
        lambda x, y: lax.fori_loop(
            0, 5, lambda i, a: (a[1], a[0] + 1, a[2], a[4], a[3]), (x, y, x, y, y)
        ),
        [X, X * 2],
    ),
    "rotated": (
        lambda x, y, z: lax.fori_loop(0, 4, lambda i, a: (a[1], a[2], a[0]), (x, y, z)),
        [X, X * 2, X * 3],
    ),
    "never": (
        lambda x, n: lax.while_loop(
            lambda a: a[1] < 0, lambda a: (a[0] * 2, a[1] + 1), (x, n)
        ),
        [X, np.int32(3)],
    ),
    "until": (
        lambda x: lax.while_loop(
            lambda a: a[0].sum() < 100, lambda a: (a[0] * 1.5 + 1, a[1] + 1), (x, 0)
        ),
        [X],
    ),
    "nested": (
        lambda x: lax.fori_loop(
            0, 3, lambda i, a: lax.fori_loop(0, i, lambda j, b: b + j * x, a), x
        ),
        [X],
    ),
    "branch in a loop": (
        lambda x: lax.fori_loop(
            0, 4, lambda i, a: lax.cond(i % 2 == 0, jnp.sin, lambda v: v + x, a), x
        ),
        [X],
    ),
    "scanned": (layers, [W, X]),
    "scanned backward": (
        jax.grad(lambda w, x: layers(w, x)[0].sum() + layers(w, x)[1][1].sum(), (0, 1)),
        [W, X],
    ),
    "mapped": (lambda x: lax.map(lambda row: row.sum() + row, x), [X]),
    "true": (lambda x: lax.cond(x[0, 0] > -9, jnp.sin, lambda v: v * 2, x), [X]),
    "false": (lambda x: lax.cond(x[0, 0] < -9, jnp.sin, lambda v: x, x), [X]),
    "first of three": (branches, [X, np.int32(0)]),
    "second of three": (branches, [X, np.int32(1)]),
    "beyond three": (branches, [X, np.int32(7)]),
    "same branch twice": (
        lambda x: lax.cond(x[0, 0] > 0, lambda v: (v, v), lambda v: (v + 1, x), x),
        [X],
    ),
    "cache": (decode, [np.zeros((8, 6), np.float32), X, np.int32(3)]),
    "cache beyond its end": (
        decode,
        [np.zeros((8, 6), np.float32), X, np.int32(9)],
    ),
    "search": (lambda i: jnp.searchsorted(jnp.arange(10), i), [INTEGERS]),
}


def _pooled(x: Any) -> Any:
    return lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), "VALID")


SORTING: dict[str, Program] = {
    "argmax": (
        lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x), jnp.argmin(x)),
        [X],
    ),
    "argmax of NaN": (lambda x: jnp.argmax(x / (x - x[:, 2:3]) * 0, 1), [X]),
    "argmax of ties": (lambda i: (jnp.argmax(i, 0), jnp.argmin(i, 1)), [INTEGERS]),
    "sort": (
        lambda x, i: (jnp.sort(x, 1), jnp.sort(i, 0), jnp.argsort(i, 1)),
        [X, INTEGERS],
    ),
    "sort of NaN and zeros": (
        lambda x: (jnp.sort(jnp.log(x), 1), jnp.argsort(jnp.round(x) * -1, 1)),
        [X],
    ),
    "descending": (
        lambda x, i: (
            jnp.sort(x, 1, descending=True),
            jnp.argsort(i, 0, descending=True),
        ),
        [X, INTEGERS],
    ),
    "two keys": (
        lambda i, u: lax.sort((i, u, u + 1), dimension=1, num_keys=2),
        [INTEGERS, BITS],
    ),
    "two keys, ties": (
        lambda i, u: lax.sort((i, i * 0, u), dimension=0, num_keys=2),
        [INTEGERS, BITS],
    ),
    "three keys": (lambda i: jnp.lexsort((i[0], i[1], i[2])), [INTEGERS]),
    "one element": (lambda x: (jnp.sort(x[:1], 0), jnp.median(x, 1)), [X]),
    "top": (lambda x: lax.top_k(x, 3), [X]),
    "branches that do nothing": (
        lambda x: (
            lax.cond(x[0, 0] > 0, lambda v: v, lambda v: v, x),
            lax.switch(jnp.int32(x[0, 1]), [lambda v: v] * 3, x) + 1,
            lax.cond(
                x[0, 0] > 0,
                lambda v: lax.fori_loop(0, 2, lambda i, d: d, v),
                lambda v: v,
                x,
            ),
        ),
        [X],
    ),
    "carried values that stay, and become others": (
        lambda x: lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[2], c[2]), (0, x, x * 2)
        ),
        [X],
    ),
    "unique": (lambda i: jnp.unique(i, size=6), [INTEGERS]),
    "any function": (
        lambda x: lax.reduce(
            x,
            np.float32(0),
            lambda a, b: jnp.maximum(jnp.abs(a), jnp.abs(b)),
            (1,),
        ),
        [X],
    ),
    "any function of nothing": (
        lambda x: lax.reduce(
            x[:, :0], np.float32(1), lambda a, b: a * jnp.abs(b), (1,)
        ),
        [X],
    ),
    "windows": (
        lambda x: (
            lax.reduce_window(x, 1.0, lax.add, (2, 2), (1, 2), ((1, 0), (0, 1))),
            lax.reduce_window(x > 0, True, lax.bitwise_and, (2, 2), (1, 1), "VALID"),
            lax.reduce_window(x, 0.5, lax.max, (2, 2), (1, 1), "SAME"),
            lax.reduce_window(x > 0, False, lax.bitwise_or, (2, 2), (1, 1), "SAME"),
        ),
        [X],
    ),
    "the gradient of pooling with NaN": (
        lambda x: jax.grad(lambda a: jnp.vdot(x[1:, 1:], _pooled(a)))(jnp.log(x)),
        [X],
    ),
    "cumulative": (
        lambda x: (
            jnp.cumsum(x, 1),
            jnp.cumprod(x, 0),
            lax.cummax(x, axis=1),
            lax.associative_scan(jnp.add, x, axis=1),
        ),
        [X],
    ),
}

RANDOM: dict[str, Program] = {
    "normal": (lambda k: jax.random.normal(random(k), (4, 5)), [KEY]),
    "integers": (lambda k: jax.random.randint(random(k), (4, 5), 0, 9), [KEY]),
    "permutation": (lambda k: jax.random.permutation(random(k), 11), [KEY]),
    "dropout": (
        lambda k, x: jnp.where(jax.random.bernoulli(random(k), 0.5, x.shape), x, 0),
        [KEY, X],
    ),
    "categorical": (lambda k, x: jax.random.categorical(random(k), x), [KEY, X]),
    "philox": (
        lambda k: jax.random.uniform(random(k, "rbg"), (4, 5)),
        [np.array([1, 2, 3, 4], np.uint32)],
    ),
}

SPECIAL: dict[str, Program] = {
    "error function": (
        lambda x: (lax.erf(x), lax.erfc(3 * x), lax.erf_inv(x / 5)),
        [X],
    ),
    "its inverse": (lambda u: (lax.erf_inv(u), lax.erf_inv(jnp.sign(u))), [U]),
    "of half precision": (
        lambda u: (lax.erf(u.astype(jnp.float16)), jnp.sinh(u.astype(jnp.bfloat16))),
        [U],
    ),
    "trigonometric": (
        lambda x, u: (
            jnp.tan(x),
            jnp.arctan2(x, u),
            jnp.arcsin(u),
            jnp.arccos(u),
            jnp.arctan(x),
        ),
        [X, U],
    ),
    "hyperbolic": (
        lambda x, u: (
            jnp.sinh(x),
            jnp.cosh(x),
            jnp.arcsinh(x * 1e20),
            jnp.arcsinh(x),
            jnp.arctanh(u),
            jnp.arccosh(jnp.abs(x) + 1),
        ),
        [X, U],
    ),
    "rounding": (
        lambda x: (
            jnp.round(x * 4),
            lax.round(x * 2, lax.RoundingMethod.AWAY_FROM_ZERO),
            jnp.cbrt(x),
            jnp.trunc(x),
            jnp.isinf(x / (x - x[0])),
            lax.reduce_precision(x, 5, 10),
            lax.reduce_precision(x, 8, 7),
        ),
        [np.round(X * 8) / 8],
    ),
    "bits": (
        lambda i, u: (
            lax.population_count(i - 2),
            lax.clz(u),
            lax.clz(i.astype(jnp.int8) - 1),
            lax.shift_left(u, u % 40),
            lax.shift_right_logical(i - 3, i * 9),
            lax.shift_right_arithmetic(i - 3, i * 9),
            lax.shift_right_arithmetic(u, u % 40),
        ),
        [INTEGERS, BITS],
    ),
    "bits as another type": (
        lambda x, u: (
            lax.bitcast_convert_type(x, jnp.int32),
            lax.bitcast_convert_type(x, jnp.uint8),
            lax.bitcast_convert_type(u[:, :4].astype(jnp.uint8), jnp.float32),
            lax.bitcast_convert_type(x.astype(jnp.bfloat16), jnp.int16),
        ),
        [X, BITS],
    ),
    "activations": (
        lambda x: (
            jax.nn.gelu(x, approximate=False),
            jax.nn.softplus(x),
            jax.nn.elu(x),
            jax.nn.logsumexp(x, 1),
        ),
        [X],
    ),
    "recomputed": (
        jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())),
        [X],
    ),
}

PROGRAMS = {**CONTROL, **SORTING, **RANDOM, **SPECIAL}


def planned(fn: Callable[..., Any], *inputs: Any, **options: Any) -> ModuleOp:
    return tensorplan.plan(
        tensorplan.from_stablehlo(lower(fn, *inputs, **options).bytecode).module
    )


def assert_close(results: list[Any], expected: list[Any]) -> None:
    assert len(results) == len(expected)
    for got, want in zip(results, map(np.asarray, expected), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        small = got.dtype.itemsize < 4 and got.dtype.kind in "fV"
        tolerance = 2e-2 if small else 1e-5
        got, want = (np.asarray(a).astype(np.float64) for a in (got, want))
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_equal_jax(name: str) -> None:
    fn, inputs = PROGRAMS[name]
    expected = jax.tree.leaves(jax.jit(fn)(*inputs))
    module = tensorplan.from_stablehlo(lower(fn, *inputs).bytecode).module
    assert_close(run_reference(module, inputs), expected)
    plan = tensorplan.plan(module)
    for run in (
        Executable(plan),
        Executable(plan, native=False),
        Executable(plan, sanitize=True),
    ):
        assert_close(run(*[np.array(x) for x in inputs]), expected)


def test_second_run_does_not_depend_on_the_first() -> None:
    fn, inputs = CONTROL["scanned"]
    run = Executable(planned(fn, *inputs))
    for scale in (1, 2):
        arrays = [x * scale for x in inputs]
        assert_close(run(*arrays), jax.tree.leaves(fn(*arrays)))


# Bit by bit.

STATE = np.array([0x123456789ABCDEF1, 0xFFFFFFFFFFFFFFFE, 7], np.uint64)
SHAPES = [(4,), (5,), (2, 3), (), (3, 5), (5, 3), (3, 4), (3, 3, 1)]


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["ui8", "ui16", "ui32", "ui64"])
@pytest.mark.parametrize(
    ("algorithm", "words"),
    [("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 3)],
)
def test_random_bits_equal_xla(algorithm: str, words: int, dtype: str) -> None:
    state = f"tensor<{words}xui64>"
    types = [f"tensor<{'x'.join([*map(str, s), dtype])}>" for s in SHAPES]
    lines = [
        f"%s{n + 1}, %b{n} = stablehlo.rng_bit_generator %s{n}, algorithm = "
        f"{algorithm} : ({state}) -> ({state}, {type})"
        for n, type in enumerate(types)
    ]
    values = ", ".join([f"%s{len(types)}", *(f"%b{n}" for n in range(len(types)))])
    signature = ", ".join([state, *types])
    text = (
        f"func.func public @main(%s0: {state}) -> ({signature}) {{\n"
        + "\n".join(lines)
        + f"\nreturn {values} : {signature}\n}}"
    )
    with jax.enable_x64(True):
        expected = run_stablehlo(text, [STATE[:words]])
    module = tensorplan.from_stablehlo(text).module
    for results in (
        run_reference(module, [STATE[:words]]),
        Executable(tensorplan.plan(module))(STATE[:words]),
    ):
        for got, want in zip(results, expected, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


def test_double_precision() -> None:
    with jax.enable_x64(True):
        u = np.linspace(-0.999, 0.999, 101)
        for fn in (lax.erf, lax.erfc, lax.erf_inv, jnp.sinh, jnp.arcsin):
            module = tensorplan.from_stablehlo(lower(fn, u).bytecode).module
            (expected,) = [np.asarray(jax.jit(fn)(u))]
            for results in (
                run_reference(module, [u]),
                Executable(tensorplan.plan(module))(u),
            ):
                np.testing.assert_allclose(results[0], expected, rtol=1e-12)


# Memory.


def copies(module: ModuleOp) -> int:
    return sum(isinstance(op, memref.CopyOp) for op in module.walk())


def test_donated_cache_is_updated_in_place() -> None:
    inputs = [np.zeros((8, 6), np.float32), X[:1], np.int32(3)]
    module = planned(decode, *inputs, donate_argnums=0)
    assert not copies(module)
    (update,) = (op for op in module.walk() if isinstance(op, DynamicUpdateSliceOp))
    assert update.inputs[0] is update.outs[0]
    cache = inputs[0].copy()
    results = Executable(module)(cache, *inputs[1:])
    assert results[0] is cache
    assert_close(results, list(decode(*inputs)))


def test_stacked_results_of_scans_are_written_in_place() -> None:
    def fn(w: Any, x: Any) -> Any:
        def step(c: Any, a: Any) -> Any:
            c = jnp.tanh(c * w[0] + a)
            return c, (c, c.sum())

        return lax.scan(step, jnp.zeros(6), x)

    module = planned(fn, W, X)
    assert not copies(module)
    updates = [op for op in module.walk() if isinstance(op, DynamicUpdateSliceOp)]
    assert len(updates) == 2
    assert all(op.inputs[0] is op.outs[0] for op in updates)


def test_loop_computes_in_a_donated_argument() -> None:
    def fn(state: Any, x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, a: a * 0.5 + x, state)

    module = planned(fn, X, X, donate_argnums=0)
    assert not copies(module)
    state = X.copy()
    (result,) = Executable(module)(state, X)
    assert result is state
    assert_close([result], [fn(X, X)])


def test_loop_reads_value_computed_in_a_donated_argument() -> None:
    """`y` is computed in place of `x`. A loop reads eight of its elements before the
    result is computed in place of `y`. XLA copies here (openxla/xla issue 45912)."""

    def fn(x: Any) -> Any:
        y = jnp.exp(x)
        total = lax.fori_loop(0, 8, lambda i, s: s + y[i * (x.size // 8)], 0.0)
        return y * total

    x = np.linspace(0, 1, 1 << 20, dtype=np.float32)
    module = planned(fn, x, donate_argnums=0)
    (pool,) = tensorplan.report(module)["pools"]
    assert pool["bytes"] <= 1024
    given = x.copy()
    (result,) = Executable(module)(given)
    assert result is given
    assert_close([result], [fn(x)])


def test_loop_does_not_overwrite_values_read_later() -> None:
    def fn(state: Any, x: Any) -> Any:
        after = lax.fori_loop(0, 3, lambda i, a: a * 0.5 + x, state)
        return after, (state + after).sum()

    module = planned(fn, X, X, donate_argnums=0)
    assert_close(Executable(module, sanitize=True)(X.copy(), X), list(fn(X, X)))


def test_only_swaps_are_copied() -> None:
    def count(fn: Callable[..., Any]) -> int:
        def loop(x: Any, y: Any) -> Any:
            return lax.fori_loop(0, 500, lambda i, a: fn(*a), (x, y))

        module = planned(loop, X, X + 1)
        (found,) = (op for op in module.walk() if isinstance(op, scf.WhileOp))
        return sum(isinstance(op, memref.CopyOp) for op in found.walk())

    assert count(lambda a, b: (a + b, b)) == 0
    assert count(lambda a, b: (a + b, b * 2)) == 0
    assert count(lambda a, b: (b, a + b)) == 2  # a copy of the sum and one of b
    assert count(lambda a, b: (b, a)) == 3


def test_loops_stay_loops_and_carry_no_weights() -> None:
    module = tensorplan.from_stablehlo(lower(layers, W, X).bytecode).module
    (loop,) = (op for op in module.walk() if op.name == "tgraph.while")
    assert len(loop.operands) - len(loop.results) == 2  # the weights and the inputs
    module = planned(layers, W, X)
    assert sum(isinstance(op, scf.WhileOp) for op in module.walk()) == 1
    assert sum(isinstance(op, DynamicSliceOp) for op in module.walk()) == 1
