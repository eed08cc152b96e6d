"""Native code for complex numbers: in all layouts, against JAX and NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from modules import parse

import tensorplan
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
        want = jax.tree.leaves(function(jnp.asarray(x)))
    rtol = 2e-5 if bits == 64 else 1e-12
    for got, expected in zip(run(x), want, strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol, rtol)


def test_native_exponentials_end_as_those_of_c() -> None:
    ends = [0.0, -0.0, 1.0, -1.5, 88.9, 90.0, -104.0, np.inf, -np.inf]
    parts = [(real, imag) for real in ends for imag in (0.0, -0.0, 1.0, 1.5, 1e5)]
    x = np.array([complex(*part) for part in parts], np.complex64)
    t = f"tensor<{len(x)}xcomplex<f32>>"
    module = parse(f"""func.func @main(%x: {t}) -> {t} {{
  %0 = tgraph.exponential %x : {t}
  func.return %0 : {t}
}}""")
    (got,) = tensorplan.compile(module)(x)
    with np.errstate(over="ignore"):
        want = np.exp(x)
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(got), part(want), 2e-6, 1e-38)
