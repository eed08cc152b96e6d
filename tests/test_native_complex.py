"""Compares native code for complex numbers in all layouts with JAX and NumPy."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from modules import parse

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.runtime.backends.numpy import special
from tensorplan.runtime.executor import Executable

jax: Any = pytest.importorskip("jax")
pytest.importorskip("llvmlite")
jnp, lax = jax.numpy, jax.lax

NATIVE: dict[str, Callable[..., Any]] = {
    "transposed": lambda x: jnp.exp(x.transpose(2, 0, 1)) * 2,
    "backwards": lambda x: x[:, ::-1] * x,
    "broadcast": lambda x: x[:, :1] * x + x[0],
    "every second": lambda x: x[:, ::2, 1:4] * 1j,
    "chosen": lambda x: jnp.where(x.real > 0, x, -x * 2),
    "equal": lambda x: (x == jnp.conj(x)) | (x != x[0]),
    "quotients": lambda x: (x / x[::-1] - x.mean(0), jax.nn.sigmoid(x)),
    "parts": lambda x: jnp.stack([x.real.sum(1), jnp.abs(x).sum(1)]),
    "sums": lambda x: (x.sum(), (x * x).sum(1), x.sum((0, 1)), x.sum(2)),
    "small products": lambda x: (x[:, 0] @ x[:, 1].T, x[0] @ x[0, 0]),
    "long sums": lambda x: jnp.tile(x, (1, 1, 1000)).sum(2),
    "rows": lambda x: x[jnp.array([5, 0, 5])],
    "added to rows": lambda x: x.at[jnp.array([5, 0, 5])].add(x[:3]),
    "logarithms": lambda x: (jnp.log(x), jnp.log1p(x), jnp.expm1(x)),
    "roots": lambda x: (jnp.sqrt(x), lax.rsqrt(x), x ** (0.3 - 1j)),
    "tangents": lambda x: (jnp.tanh(x), jnp.tan(x)),
    "loop": lambda x: lax.fori_loop(0, 5, lambda i, z: z * z * 0.5 + x[i], x[0]),
}


@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize("name", NATIVE)
def test_native_code_computes_complex_numbers(name: str, bits: int) -> None:
    function = NATIVE[name]
    with jax.enable_x64(bits == 128):
        parts = np.random.default_rng(0).standard_normal((2, 7, 9, 5))
        x = (parts[0] + 1j * parts[1]).astype(f"complex{bits}")
        run = tensorplan.compile(tensorplan.plan(tensorplan.from_jax(function, x)))
        assert isinstance(run, Executable)
        assert not run.fallbacks
        want = jax.tree.leaves(jax.jit(function)(x))
    rtol = 2e-5 if bits == 64 else 1e-12
    for got, expected in zip(run(x), want, strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol, rtol)


def test_native_exponentials_of_extreme_numbers() -> None:
    ends = [0.0, -0.0, 1.0, -1.5, 88.9, 90.0, -104.0, np.inf, -np.inf]
    turns = (0.0, -0.0, 1.0, 1.5, 1e5, np.inf, -np.inf, np.nan)
    parts = [(real, imag) for real in ends for imag in turns]
    x = np.array([complex(*part) for part in parts], np.complex64)
    t = f"tensor<{len(x)}xcomplex<f32>>"
    module = parse(f"""func.func @main(%x: {t}) -> {t} {{
  %0 = tgraph.exponential %x : {t}
  func.return %0 : {t}
}}""")
    (got,) = tensorplan.compile(module)(x)
    with np.errstate(over="ignore", invalid="ignore"):
        want = np.exp(x)
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(got), part(want), 2e-6, 1e-38)


PARTS = (0.0, -0.0, 1.0, -0.5, 1e-9, -3e-6, -25.0, 1e15, 1e-42, 3e38, -np.inf, np.inf)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log": np.log,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "tan": np.tan,
    "exponential_minus_one": special.expm1,
    "log_plus_one": special.log1p,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_native_functions_of_extreme_numbers(name: str) -> None:
    x = np.array([complex(*parts) for parts in product(PARTS, PARTS)], np.complex64)
    t = f"tensor<{len(x)}xcomplex<f32>>"
    run = tensorplan.compile(
        parse(f"""func.func @main(%x: {t}) -> {t} {{
  %0 = tgraph.{name} %x : {t}
  func.return %0 : {t}
}}""")
    )
    assert isinstance(run, Executable)
    assert not run.fallbacks
    (got,) = run(x)
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name](x.astype(np.complex128))
        is_number = np.abs(want) < 3e38
    error = np.abs(got[is_number] - want[is_number])
    assert (error <= 4e-7 * np.abs(want[is_number]) + 1e-43).all()
    if name in ("log", "sqrt"):  # NumPy has C's infinities for these
        for part in (np.real, np.imag):
            np.testing.assert_allclose(
                part(got[~is_number]), part(want[~is_number]), rtol=1e-6
            )


LEFT = {  # operations left to NumPy's kernels
    "maximum": (
        """%0 = tgraph.maximum %x, %y : tensor<3xcomplex<f32>>""",
        "tensor<3xcomplex<f32>>",
    ),
    "scatter": (
        """%i = tgraph.constant<dense<1> : tensor<1x1xi32>> : tensor<1x1xi32>
  %u = tgraph.slice %y {start_indices = array<i64: 0>, limit_indices = array<i64: 1>,
      strides = array<i64: 1>} : (tensor<3xcomplex<f32>>) -> tensor<1xcomplex<f32>>
  %0 = tgraph.scatter %x, %i, %u {kind = "maximum", update_window_dims = array<i64>,
      inserted_window_dims = array<i64: 0>, index_vector_dim = 1 : i64,
      scatter_dims_to_operand_dims = array<i64: 0>}
      : (tensor<3xcomplex<f32>>, tensor<1x1xi32>, tensor<1xcomplex<f32>>)
      -> tensor<3xcomplex<f32>>""",
        "tensor<3xcomplex<f32>>",
    ),
    "bits": (
        "%0 = tgraph.bitcast_convert %x : (tensor<3xcomplex<f32>>) -> tensor<3xi64>",
        "tensor<3xi64>",
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_operations_that_native_code_leaves_to_numpy(name: str) -> None:
    body, result = LEFT[name]
    t = "tensor<3xcomplex<f32>>"
    module = parse(f"""func.func @main(%x: {t}, %y: {t}) -> {result} {{
  {body}
  func.return %0 : {result}
}}""")
    x = np.array([1 + 2j, 3 - 1j, 0], np.complex64)
    y = np.array([5 + 5j, 1, -1j], np.complex64)
    (got,) = tensorplan.compile(module)(x, y)
    (want,) = run_reference(module, [x, y])
    np.testing.assert_array_equal(got, want)
