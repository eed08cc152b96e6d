"""Compares native code for strided, reversed and gathered elements with JAX."""

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import ml_dtypes
import numpy as np
import pytest

import tensorplan
from tensorplan.runtime.backends.native import loops
from tensorplan.runtime.executor import Executable

jax: Any = pytest.importorskip("jax")
pytest.importorskip("llvmlite")
jnp, lax = jax.numpy, jax.lax

RNG = np.random.default_rng(0)
TYPES = [bool, "i1", ml_dtypes.bfloat16, "f4", "c8"]


def check(function: Callable[..., Any], *arrays: Any) -> None:
    """Asserts that native code computes all values, and that they are JAX's."""
    run = tensorplan.compile(tensorplan.plan(tensorplan.from_jax(function, *arrays)))
    assert isinstance(run, Executable)
    assert not run.fallbacks
    want = jax.tree.leaves(jax.jit(function)(*arrays))
    for got, expected in zip(run(*arrays), want, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("step", [-1, 2, -2, 3, 4, -4])
def test_strided_columns(step: int, dtype: Any) -> None:
    arrays = [(9 * RNG.standard_normal((3, n))).astype(dtype) for n in (4, 68, 523)]
    check(
        lambda *xs: [jnp.where(x[:, ::step] == 0, x[:, :1], x[:, ::step]) for x in xs],
        *arrays,
    )


@pytest.mark.parametrize("dtype", [*TYPES, "u1", "f2", "i4"], ids=str)
@pytest.mark.parametrize("places", [64, 131])
def test_rows_that_fill_no_vector(monkeypatch, dtype: Any, places: int) -> None:
    """Rows shorter than a vector are combined with a broadcast row and column, and
    stored as rows and as columns."""
    made = Mock(side_effect=loops.load_rows)
    monkeypatch.setattr(loops, "load_rows", made)
    arrays = [
        (2 * RNG.standard_normal(shape)).astype(dtype)
        for n in ((2, 5, 12) if places == 64 else (3, 6, 15))
        for shape in ((places, n), (n,), (places, 1), (n, places))
    ]

    def combined(x: Any, y: Any, z: Any, t: Any) -> tuple[Any, ...]:
        return (
            jnp.where(x == y, z, x),
            jnp.where(x == z, y, x).T,
            jnp.where(x.T == y[:, None], x.T, z.T),
            jnp.where(x.T == z.T, y[:, None], x.T).T,
            jnp.where(t == z.T, t, z.T).T,
        )

    check(lambda *xs: [combined(*xs[at : at + 4]) for at in (0, 4, 8)], *arrays)
    assert made.called


@pytest.mark.parametrize("columns", [2, 3, 6])
def test_a_part_of_complex_columns_is_a_scalar(columns: int) -> None:
    check(
        lambda x: (
            x.T.astype("c8"),
            lax.complex(x.T, jnp.full_like(x.T, 2)),
            lax.complex(jnp.full_like(x.T, 2), x.T),
        ),
        RNG.standard_normal((131, columns)).astype("f4"),
    )


@pytest.mark.parametrize("columns", [3, 33])
def test_strided_operands_of_epilogues(columns: int) -> None:
    """An operand of the epilogue has an element for each column or row of a product, or
    for each feature of a convolution."""
    x, y, image, kernel, b = (
        RNG.integers(-9, 9, shape).astype("f4")
        for shape in (
            *((40, 5), (5, columns), (2, 6, 6, 4), (3, 3, 4, columns)),
            (2 * columns + 80, columns),
        )
    )

    for side in (
        lambda b: b[:columns, 1],
        lambda b: b[: 2 * columns : 2, 0],
        lambda b: b[0, ::-1],
        lambda b: b[:40, 1:2],
        lambda b: b[:80:2, :1],
    ):
        check(lambda x, y, b, side=side: x @ y + side(b), x, y, b)
        check(lambda x, y, b, side=side: (x @ y) * side(b), x, y, b)

    def convolved(x: Any, y: Any) -> Any:
        dims = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, y, (1, 1), "SAME", None, None, dims)

    check(lambda x, y, b: convolved(x, y) + b[:columns, 2], image, kernel, b)
    check(lambda x, y, b: convolved(x, y) * b[: 2 * columns : 2, 1], image, kernel, b)


@pytest.mark.parametrize("images", [4, 6])
@pytest.mark.parametrize("result", [bool, "f2", "i1"])
def test_convolutions_in_groups_of_batches(images: int, result: Any) -> None:
    """The result is converted as it is computed."""
    x = RNG.integers(-3, 3, (images, 6, 6, 3)).astype("f4")
    kernel = RNG.integers(-2, 2, (3, 3, 3, 8)).astype("f4")

    def convolved(x: Any, kernel: Any) -> Any:
        made = lax.conv_general_dilated(
            *(x, kernel, (1, 1), "SAME", None, None, ("NHWC", "HWIO", "NHWC")),
            batch_group_count=2,
        )
        return made > 0 if result is bool else made.astype(result)

    run = tensorplan.compile(tensorplan.plan(tensorplan.from_jax(convolved, x, kernel)))
    np.testing.assert_array_equal(run(x, kernel)[0], jax.jit(convolved)(x, kernel))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("n", [1, 7, 16, 50])
def test_lookups_in_columns(n: int, dtype: Any) -> None:
    """Indices that are too large or too small are clamped to the last and the first."""
    x = (9 * RNG.standard_normal((5, 40, 3))).astype(dtype)
    at = RNG.integers(-60, 60, n).astype("i4")

    def lookups(x: Any, at: Any) -> Any:
        columns = x.at[:, at].get(mode="clip")
        return x.at[:, at, 1].get(mode="clip"), columns, columns.transpose(2, 0, 1)

    check(lookups, x, at)


def test_lookups_in_each_row() -> None:
    x = RNG.standard_normal((6, 40)).astype("f4")
    at = RNG.integers(0, 40, (6, 33)).astype("u4")
    check(lambda x, at: jnp.take_along_axis(x, at, 1), x, at)
    check(lambda x, at: jnp.take_along_axis(x, at, 0), x[:, :33], at % 6)


def test_top_k_of_a_long_row() -> None:
    x = RNG.integers(0, 5000, 66_000).astype("f4")
    check(lambda x: lax.top_k(x, 60), x)


def test_sorts_by_several_keys() -> None:
    """NumPy's vector instructions sort by a single key only."""
    x, y = (RNG.integers(0, 9, (7, 50)) for _ in range(2))
    check(lambda x, y: jnp.lexsort((x, y)), x.astype("i4"), y.astype("f4"))


def test_integers_of_floats_out_of_range() -> None:
    ends = [0, -0.0, 1.9, -1.9, 2.0**31, -(2.0**31), 2.0**31 - 128, -(2.0**31) - 300]
    x = np.array([*ends, np.inf, -np.inf, np.nan, 1e30, -1e30] * 5, "f4")
    check(lambda x: [x.astype(t) for t in ("i4", "u4", "i2", "u1")], x)


@pytest.mark.parametrize("shape", [(3, 5, 100), (300, 17), (2, 9, 3)])
@pytest.mark.parametrize("dtype", ["f4", "u1", "i4", "f2"])
def test_positions_along_every_dimension(shape: tuple[int, ...], dtype: str) -> None:
    """Of equal elements, of which there are many, the first position is found."""
    x = RNG.integers(0, 5, shape).astype(dtype)
    for axis in range(x.ndim):
        check(lambda x, axis=axis: (jnp.argmax(x, axis), jnp.argmin(x, axis)), x)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_floats_of_8_bits(name: str) -> None:
    """Converts each number, the middles between neighbors, and random bits of f32."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    each = np.arange(256, dtype="u1").view(dtype)
    check(lambda x: x.astype("f4"), each)
    check(lambda x: x[::-1], each[~np.isnan(each.astype("f4"))])
    finite = np.sort(each.astype("f4")[np.isfinite(each.astype("f4"))])
    middle = (finite[1:] + finite[:-1]) / 2
    around = [np.nextafter(middle, np.float32(end)) for end in (-np.inf, np.inf)]
    random = RNG.integers(0, 1 << 32, 20_000).astype("u4").view("f4")
    ends = np.array([np.inf, -np.inf, np.nan, -0.0, 448, 464, 465, 61440, 1e-45], "f4")
    x = np.concatenate([finite, middle, *around, random, ends])
    check(lambda x: x.astype(dtype).astype("f4"), x)
    for source in ("i4", "f2", bool, ml_dtypes.bfloat16):
        check(lambda x: x.astype(dtype), RNG.integers(-400, 400, 99).astype(source))
