"""Tests special functions computed by formulas, which are close to SciPy's values."""

import numpy as np
import pytest
from modules import parse, run

import tensorplan
from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.convert.stablehlo_to_tgraph import ConvertStablehloToTGraph

special = pytest.importorskip("scipy.special")

LIMITS = {"f32": 1e-5, "f64": 1e-13}

X = np.array(
    [
        *(-3.7, -2.5, -2, -1, -0.25, -0.0, 0.0, 1e-3, 0.3, 0.5),
        *(1, 1.5, 2, 2.7, 5, 11.3, 30, 90, np.inf, np.nan),
    ]
)
ORDERS = np.array([0, 1, 2, 3, 4, -1, 1.5])
POINTS = np.array([0.3, 1, 2.5, 7, 40, 1, 1])


def values(name: str, element: str, *arrays: Array) -> Array:
    """The values of a CHLO function, computed by the reference interpreter."""
    type = f"tensor<{arrays[0].size}x{element}>"
    names = [f"%{n}" for n in range(len(arrays))]
    arguments = ", ".join(f"{n}: {type}" for n in names)
    module = parse(f"""
func.func @main({arguments}) -> {type} {{
  %r = "chlo.{name}"({", ".join(names)}) : ({", ".join([type] * len(names))}) -> {type}
  func.return %r : {type}
}}""")
    module = run(module, ConvertStablehloToTGraph())
    dtype = {"f32": np.float32, "f64": np.float64}[element]
    return run_reference(module, [array.astype(dtype) for array in arrays])[0]


def check(got: Array, want: Array, element: str) -> None:
    np.testing.assert_allclose(got, want, LIMITS[element], LIMITS[element])


@pytest.mark.parametrize("element", LIMITS)
def test_gamma(element: str) -> None:
    dtype = {"f32": np.float32, "f64": np.float64}[element]
    x = X.astype(dtype).astype(float)
    check(values("lgamma", element, x), special.gammaln(x), element)
    # XLA's digamma has no sign at poles, and Lanczos' formula is no better below 0.
    inside = x[(x > 0) & np.isfinite(x)]
    check(values("digamma", element, inside), special.psi(inside), element)
    poles = np.array([-2.0, -1.0, 0.0])
    assert np.isnan(values("digamma", element, poles)).all()


@pytest.mark.parametrize("element", LIMITS)
def test_zeta_and_polygamma(element: str) -> None:
    x = np.array([1.5, 2, 3, 4.25, 10, 2, 1, 0.5])
    q = np.array([1, 0.5, 7, 30, 2, -1, 3, 1])
    want = np.where(q < 0, np.inf, special.zeta(x, q))  # poles: +inf for even powers
    check(values("zeta", element, x, q), want, element)
    got = values("polygamma", element, ORDERS, POINTS)
    scale = np.maximum(1, np.abs(special.polygamma(ORDERS[:5].astype(int), POINTS[:5])))
    want = special.polygamma(ORDERS[:5].astype(int), POINTS[:5])
    check(got[:5] / scale, want / scale, element)
    assert np.isnan(got[5:]).all()


@pytest.mark.parametrize("element", LIMITS)
def test_bessel_i1e(element: str) -> None:
    x = np.array([-200, -8, -3, -0.1, 0, 1e-5, 0.7, 2, 7.99, 8, 8.01, 50, 1e4, np.nan])
    check(values("bessel_i1e", element, x), special.i1e(x), element)


def test_area_hyperbolic_cosine() -> None:
    """The result is NaN below 1, even if the square of the number overflows."""
    x = np.array([-1e38, -1e12, -1, 0.5, 1, 1.5, 1e12, 3e38, np.inf, np.nan])
    want = [*([np.nan] * 4), 0, *np.arccosh(x[5:])]
    check(values("acosh", "f32", x), np.array(want), "f32")


@pytest.mark.parametrize("element", LIMITS)
def test_next_after(element: str) -> None:
    """The values agree bit for bit."""
    x = np.array([1, 1, -1, -1, 0, 0, -0.0, 3, np.inf, np.nan, 1, -np.inf, 1e-45])
    y = np.array([2, 0, 0, -2, 1, -1, 1, 3, 0, 1, np.nan, np.inf, -1])
    dtype = {"f32": np.float32, "f64": np.float64}[element]
    x, y = x.astype(dtype), y.astype(dtype)
    np.testing.assert_array_equal(
        values("next_after", element, x, y), np.nextafter(x, y)
    )


def test_native_code_computes_the_formulas() -> None:
    jnp = pytest.importorskip("jax.numpy")
    import jax

    def all_of(x):
        return jax.lax.lgamma(x), jax.lax.digamma(x), jax.lax.bessel_i1e(x)

    x = np.linspace(0.1, 9, 50, dtype=np.float32)
    got = tensorplan.compile(tensorplan.from_jax(all_of, x))(x)
    for have, want in zip(got, all_of(jnp.asarray(x)), strict=True):
        np.testing.assert_allclose(have, want, 1e-5, 1e-5)
