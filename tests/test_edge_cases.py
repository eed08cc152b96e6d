"""Compares edge cases of imported programs with JAX, SciPy, NumPy and ml_dtypes.

Each program has many functions of one element type. Its arguments are empty, or contain
zeros of both signs, denormals, the largest numbers, infinities, and NaN.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.dtypes import Array, DType

jax: Any = pytest.importorskip("jax")
ml_dtypes: Any = pytest.importorskip("ml_dtypes")
special: Any = pytest.importorskip("scipy.special")
jnp, lax = jax.numpy, jax.lax

pytestmark = pytest.mark.thorough

Functions = Mapping[str, Callable[..., Any]]


def computed(functions: Functions, *arrays: Array) -> list[Array]:
    """The results of one program of all functions, planned and compiled."""
    with jax.enable_x64(True):
        model = tensorplan.from_jax(
            lambda *xs: [function(*xs) for function in functions.values()], *arrays
        )
    return tensorplan.compile(model, threads=1)(*arrays)


def by_jax(functions: Functions, *arrays: Array) -> list[Array]:
    with jax.enable_x64(True):
        found = jax.jit(lambda *xs: [f(*xs) for f in functions.values()])(*arrays)
    return [np.asarray(x) for x in jax.tree.leaves(found)]


def check(functions: Functions, want: list[Array], *arrays: Array, rtol: float) -> None:
    got = computed(functions, *arrays)
    wrong = [
        (name, *(z[~is_close].tolist() for z in (x, y)))
        for name, x, y in zip(functions, got, want, strict=True)
        if not (is_close := _are_close(x, y, rtol)).all()
    ]
    assert not wrong, wrong


def _are_close(x: Array, y: Array, rtol: float) -> Array:
    """Compares complex numbers by their parts, relative to their magnitude."""
    assert (x.dtype, x.shape) == (y.dtype, y.shape)
    if not rtol:
        return (x == y) | ((x != x) & (y != y))
    if x.dtype.kind != "c":
        return np.isclose(x, y, rtol, rtol, equal_nan=True)
    atol = rtol * np.where(np.isfinite(y), np.abs(y), 0) + np.finfo(x.dtype).tiny
    parts = [(part(x), part(y)) for part in (np.real, np.imag)]
    close = [np.isclose(a, b, rtol, atol, equal_nan=True) for a, b in parts]
    return close[0] & close[1]


# Real numbers


def _log_gamma(x: float) -> float:
    """The log gamma of `x`. (SciPy's is infinite for the smallest numbers.)"""
    try:
        return math.lgamma(x)
    except (OverflowError, ValueError):  # the latter at a pole
        return math.inf


REAL: Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "acos": (jnp.arccos, np.arccos),
    "acosh": (jnp.arccosh, np.arccosh),
    "asin": (jnp.arcsin, np.arcsin),
    "asinh": (jnp.arcsinh, np.arcsinh),
    "atan": (jnp.arctan, np.arctan),
    "atanh": (jnp.arctanh, np.arctanh),
    "bessel_i1e": (lax.bessel_i1e, special.i1e),
    "cbrt": (jnp.cbrt, np.cbrt),
    "cosh": (jnp.cosh, np.cosh),
    "erf_inv": (lax.erf_inv, special.erfinv),
    "erfc": (lax.erfc, special.erfc),
    "is_finite": (lax.is_finite, np.isfinite),
    "lgamma": (lax.lgamma, np.vectorize(_log_gamma, "d")),
    "logistic": (lax.logistic, special.expit),
    "sinh": (jnp.sinh, np.sinh),
}


def reals(dtype: Any) -> Array:
    info = np.finfo(dtype)
    small = [info.tiny / 8, info.tiny, 1e-20, 1e-3, 0.3, 0.5, 0.999]
    large = [1, 1.5, 2.25, 3.7, 20, 88, 171, 1e10, 1e20, info.max, np.inf]
    sizes = np.array([0, *small, *large], dtype)
    return np.concatenate([sizes, -sizes, np.array([np.nan], dtype)])


@pytest.mark.parametrize(("dtype", "rtol"), [("f4", 2e-5), ("f8", 1e-12)])
def test_functions_of_real_numbers(dtype: str, rtol: float) -> None:
    x = reals(np.dtype(dtype).type)
    functions = {name: pair[0] for name, pair in REAL.items()}
    for array in (x, x[:0])[: 2 if dtype == "f4" else 1]:
        with np.errstate(all="ignore"):
            want = [np.asarray(f(array)) for _, f in REAL.values()]
            kinds = [bool if x.dtype == bool else dtype for x in want]
            want = [x.astype(k) for x, k in zip(want, kinds, strict=True)]
        check(functions, want, array, rtol=rtol)


# Complex numbers

COMPLEX: Functions = {
    "abs": jnp.abs,
    "angle": jnp.angle,
    "acos": jnp.arccos,
    "acosh": jnp.arccosh,
    "asin": jnp.arcsin,
    "asinh": jnp.arcsinh,
    "atan": jnp.arctan,
    "atanh": jnp.arctanh,
    "cos": jnp.cos,
    "cosh": lambda x: jnp.cosh(x / 2),
    "exp": jnp.exp,
    "expm1": jnp.expm1,
    "imag": jnp.imag,
    "log": jnp.log,
    "log1p": jnp.log1p,
    "logistic": lax.logistic,
    "real": jnp.real,
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lax.rsqrt,
    "sign": jnp.sign,
    "sin": jnp.sin,
    "sqrt": jnp.sqrt,
    "square": lax.square,
    "sum": jnp.sum,
    "tan": jnp.tan,
    "tanh": jnp.tanh,
    "cumsum": jnp.cumsum,
    "product of all pairs": lambda x: x[:, None] * x[:2],
    "quotient of all pairs": lambda x: x[:, None] / x[-2:],
    "powers": lambda x: x**2.5,
}


def test_functions_of_complex_numbers() -> None:
    parts = np.array([0, 1e-20, -1e-3, 0.3, -0.5, 1, -2.5, 20, 88, -100, 1e4])
    x = (parts[:, None] + 1j * parts).ravel().astype(np.complex64)
    for array in (x, x[:0]):
        check(COMPLEX, by_jax(COMPLEX, array), array, rtol=2e-5)
    # XLA's is off by 1e-4 near 0.
    want = np.sinh(x.astype(np.complex128)[:-22]).astype(x.dtype)
    check({"sinh": jnp.sinh}, [want], x[:-22], rtol=2e-5)


# Fourier transforms

TRANSFORMS: Functions = {
    "fft": jnp.fft.fft,
    "fft2": jnp.fft.fft2,
    "ifft": jnp.fft.ifft,
    "ifft2": jnp.fft.ifft2,
    "irfft": lambda x: jnp.fft.irfft(x, n=5),
    "irfft2": lambda x: jnp.fft.irfft2(x, s=(2, 2)),
    "rfft": lambda x: jnp.fft.rfft(jnp.real(x)),
    "rfft2": lambda x: jnp.fft.rfft2(jnp.imag(x)),
}


@pytest.mark.parametrize(("dtype", "rtol"), [("c8", 1e-4), ("c16", 1e-10)])
@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 4, 3), (3, 1)])
def test_fourier_transforms(dtype: str, rtol: float, shape: tuple[int, ...]) -> None:
    """A number of which a part is NaN counts as NaN: the algorithm decides whether NaN
    reaches both parts."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if len(shape) == 3 and x.size:
        x[0, 0, 0], x[1, 1, 1] = np.nan, np.finfo(x.dtype).smallest_subnormal
    table = {name: partial(_with_nan, f) for name, f in TRANSFORMS.items()}
    check(table, by_jax(table, x), x, rtol=rtol)


def _with_nan(function: Callable[..., Any], x: Any) -> Any:
    result = function(x)
    return jnp.where(jnp.isnan(result), result * jnp.nan, result)


# Linear algebra


SQUARE: Functions = {
    "cholesky": jnp.linalg.cholesky,
    "det": jnp.linalg.det,
    "eigenvalues": lambda x: jnp.sort(jnp.abs(jnp.linalg.eigvals(x))),
    "eigh": lambda x: jnp.linalg.eigh(x)[0],
    "inverse": jnp.linalg.inv,
    "solution": lambda x: jax.scipy.linalg.solve_triangular(x, x, lower=True),
    "upper": lambda x: jnp.linalg.cholesky(x, upper=True),
}
ANY: Functions = {
    "q": lambda x: jnp.abs(jnp.linalg.qr(x)[0]),
    "r": lambda x: jnp.abs(jnp.linalg.qr(x)[1]),
    "singular values": lambda x: jnp.linalg.svd(x, full_matrices=False)[1],
    "u of svd": lambda x: jnp.linalg.svd(x, full_matrices=True)[1],
    "lu": lambda x: lax.linalg.lu(x)[0],
    "pivots": lambda x: lax.linalg.lu(x)[1],
}


def square_matrices(dtype: DType) -> Array:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3, 3))
    if dtype.kind == "c":
        x = x + 1j * rng.normal(size=(3, 3))
    positive, one = x @ x.conj().T + np.eye(3), np.eye(3)
    info = np.finfo(dtype)
    damaged = [np.where(one == 1, number, positive) for number in (np.nan, np.inf)]
    sizes = [one * info.tiny * 4, one * (info.max / 16)]
    others = [np.zeros((3, 3)), np.diag([1, -1, 2])]
    return np.stack([positive, *damaged, *sizes, *others]).astype(dtype)


def test_matrices() -> None:
    """Matrices with NaN or infinities, tiny, large, singular, indefinite, and empty
    ones give the values of JAX."""
    dtype, rtol = np.dtype(np.complex128), 1e-9
    x = square_matrices(dtype)
    tables = [{**SQUARE, **ANY}, {**SQUARE, **ANY}, ANY, ANY]
    arrays = [x, np.zeros((2, 0, 0), dtype), x[:2, :, :2], np.zeros((0, 3), dtype)]
    table = {
        f"{name} of {array.shape}": partial(_of_one, function, number)
        for number, array in enumerate(arrays)
        for name, function in tables[number].items()
    }
    check(table, by_jax(table, *arrays), *arrays, rtol=rtol)


def _of_one(function: Callable[..., Any], number: int, *arrays: Any) -> Any:
    return function(arrays[number])


# Narrow element types

CONVERTED: Functions = {
    "f16": lambda x: x.astype(np.float16),
    "f32": lambda x: x.astype(np.float32),
    "i32": lambda x: x.astype(np.int32),
    "i1": lambda x: x.astype(bool),
}
OF_BOTH: Functions = {
    "add": lax.add,
    "equal": lax.eq,
    "less": lax.lt,
    "maximum": lax.max,
    "multiply": lax.mul,
    "negative": lambda x, y: -x,
    "select": lambda x, y: lax.select(x > y, x, y),
    "sort": lambda x, y: lax.sort(x),
    "subtract": lax.sub,
}
OF_FLOATS: Functions = {
    **OF_BOTH,
    "absolute": lambda x, y: jnp.abs(x),
    "divide": lax.div,
    "floor": lambda x, y: jnp.floor(x),
    "is_finite": lambda x, y: jnp.isfinite(x),
    "sign": lambda x, y: jnp.sign(x),
    "sqrt": lambda x, y: jnp.sqrt(jnp.abs(x)),
}
OF_INTEGERS: Functions = {
    **OF_BOTH,
    "and": lambda x, y: x & y,
    "divide": lax.div,
    "leading zeros": lambda x, y: lax.clz(x),
    "not": lambda x, y: ~x,
    "population": lambda x, y: lax.population_count(x),
    "remainder": lax.rem,
    "shift left": lax.shift_left,
    "shift right": lax.shift_right_logical,
    "xor": lambda x, y: x ^ y,
}


def all_numbers(name: str) -> Array:
    dtype = np.dtype(getattr(ml_dtypes, name))
    if "int" in name:
        info = ml_dtypes.iinfo(dtype)
        return np.arange(info.min, info.max + 1).astype(dtype)
    return np.arange(1 << ml_dtypes.finfo(dtype).bits, dtype=np.uint8).view(dtype)


@pytest.mark.parametrize(
    "name",
    ["float8_e4m3fn", "float4_e2m1fn", "int4", "uint4"],
)
def test_narrow_element_types(name: str) -> None:
    """All numbers of a narrow type give the bits that JAX gives. The population count
    of signed numbers is left out, because XLA also counts copies of the sign bit."""
    numbers = all_numbers(name)
    table = OF_INTEGERS if "int" in name else OF_FLOATS
    x, y = numbers, np.random.default_rng(0).permutation(numbers)
    if name.startswith("int"):
        table = {n: f for n, f in table.items() if n != "population"}
    check(table, by_jax(table, x, y), x, y, rtol=0)
    values = x[np.isfinite(x.astype(np.float32))]
    with np.errstate(all="ignore"):
        want = [function(values) for function in CONVERTED.values()]
    check(CONVERTED, want, values, rtol=0)
    to: Functions = {"narrow": lambda x: x.astype(numbers.dtype)}
    check(to, [values[:0]], values[:0].astype(np.float32), rtol=0)
    wide = np.array([0.0, -0.0, 0.25, 0.26, 1.5, 2.5, -1, 3, 6.9, 1e-9], np.float32)
    if "int" not in name:
        wide = np.append(wide, np.array([465, 1e6, -1e6, np.inf, np.nan], np.float32))
    check(to, by_jax(to, wide), wide, rtol=0)


# Random numbers

DRAWN: Functions = {
    "bits of i8": lambda k: jax.random.bits(k, (5,), np.uint8),
    "bernoulli": lambda k: jax.random.bernoulli(
        k, jnp.array([0, 1, 0.5, jnp.nan, 2, -1])
    ),
    "generator": lambda k: lax.rng_bit_generator(jnp.concatenate([k, k]), (0, 5))[1],
    "no normal numbers": lambda k: jax.random.normal(k, (0, 3)),
    "one number": lambda k: jax.random.uniform(k, (), np.float64),
    "range of a type": lambda k: jax.random.randint(k, (9,), 0, 256, np.uint8),
    "uniform of f16": lambda k: jax.random.uniform(k, (7,), np.float16),
}


def test_random_numbers() -> None:
    key = np.asarray(jax.random.PRNGKey(3))
    check(DRAWN, by_jax(DRAWN, key), key, rtol=1e-5)


# Quantized elements


def test_quantized_numbers() -> None:
    kind = "!quant.uniform<i8:f32, 0.5:3>"
    x = np.array([-0.0, 1e-45, 0.25, 0.75, -1e38, 1e38, np.inf, -np.inf], np.float32)
    for array in (x, x[:0]):
        shape = array.size
        text = f"""func.func @main(%x: tensor<{shape}xf32>) -> tensor<{shape}xf32> {{
  %q = "stablehlo.uniform_quantize"(%x)
      : (tensor<{shape}xf32>) -> tensor<{shape}x{kind}>
  %s = "stablehlo.add"(%q, %q) : (tensor<{shape}x{kind}>, tensor<{shape}x{kind}>)
      -> tensor<{shape}x{kind}>
  %r = "stablehlo.uniform_dequantize"(%s)
      : (tensor<{shape}x{kind}>) -> tensor<{shape}xf32>
  "func.return"(%r) : (tensor<{shape}xf32>) -> ()
}}"""
        limits = (-128 - 3) / 2, (127 - 3) / 2
        rounded = np.clip((np.rint(array * 2 + 3) - 3) / 2, *limits)
        (got,) = tensorplan.compile(tensorplan.from_stablehlo(text), threads=1)(array)
        np.testing.assert_array_equal(got, np.clip(2 * rounded, *limits))
