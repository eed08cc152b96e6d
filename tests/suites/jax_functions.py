"""Imports, plans and runs 128 public functions of JAX, and compares values with JAX.

    python tests/suites/jax_functions.py [--match TEXT] [--write]

A case is an expression; the arrays that it names are the arguments of the program.
Values may differ from `jax.jit`'s by 1e-4 relatively and 1e-5 absolutely, as both
compute in f32. `verdicts.py` says how a case is judged. The exit code is 1 if a case is
wrong or internal; otherwise `--write` writes `docs/reference/jax.md`.
"""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy
import jax.scipy
import numpy as np
from expressions import names_in, run, table
from verdicts import Verdict, compare, judge

import tensorplan

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "jax.md"

RTOL, ATOL = 1e-4, 1e-5
PLACE = r"\S+:\d+:\d+"

_rng = np.random.default_rng(7)


def _normal(*shape: int) -> np.ndarray:
    return _rng.normal(size=shape).astype(np.float32)


ARRAYS: dict[str, Any] = {
    "V": _normal(12),
    "X": _normal(4, 6),
    "Y": _normal(6, 5),
    "A": _normal(5, 5) + 4 * np.eye(5, dtype=np.float32),
    "R": _normal(5, 2),
    "T": _normal(3, 4, 4),
    "P": _rng.uniform(0.3, 8, (3, 5)).astype(np.float32),
    "Q": _rng.uniform(0.3, 5, (3, 5)).astype(np.float32),
    "U": _rng.uniform(-0.95, 0.95, (3, 5)).astype(np.float32),
    "C": (_normal(4, 6) + 1j * _normal(4, 6)).astype(np.complex64),
    "D": (_normal(6, 5) + 1j * _normal(6, 5)).astype(np.complex64),
    "I": _rng.integers(0, 6, (3, 4)).astype(np.int32),
    "J": _rng.integers(0, 50, (9,)).astype(np.int32),
    "B": _rng.integers(0, 2, (4, 6)).astype(bool),
    "W": _normal(8, 3, 3, 3),
    "M": _normal(2, 3, 8, 8),
    "K": np.asarray(jax.random.PRNGKey(3)),
}
ARRAYS["S"] = ARRAYS["A"] @ ARRAYS["A"].T
ARRAYS["E"] = np.asarray(ARRAYS["A"] + 1j * _normal(5, 5), np.complex64)

CASES = """
numpy.abs(C)
numpy.angle(C)
numpy.argsort(X, axis=1)
numpy.average(X, axis=0, weights=X[:, 0])
numpy.bincount(J, length=50)
numpy.clip(X, -0.5, 0.5)
numpy.convolve(V, X[0])
numpy.corrcoef(X)
numpy.cov(X)
numpy.cross(X[:, :3], X[:, 3:])
numpy.cumprod(X, axis=1)
numpy.cumsum(X, axis=0)
numpy.diff(X)
numpy.digitize(V, numpy.linspace(-1, 1, 5))
numpy.einsum('ij,jk->ki', X, Y)
numpy.exp(C)
numpy.gradient(V)
numpy.histogram(V, bins=5)[0]
numpy.interp(V, numpy.arange(4.0), X[:, 0])
numpy.isclose(X, X + 1e-9)
numpy.kron(X, Y)
numpy.lexsort((X[0], X[1]))
numpy.matmul(C, D)
numpy.median(X, axis=1)
numpy.meshgrid(V, J)[0]
numpy.nanmean(numpy.where(B, X, numpy.nan), axis=0)
numpy.nextafter(X, V[0])
numpy.pad(X, 2, mode='reflect')
numpy.percentile(X, 30.0, axis=0)
numpy.polyfit(V, V**2, 2)
numpy.polyval(V, X)
numpy.power(P, Q)
numpy.quantile(X, numpy.array([0.1, 0.8]))
numpy.roll(X, 2, axis=1)
numpy.roots(V[:4], strip_zeros=False)
numpy.searchsorted(numpy.sort(V), X)
numpy.sinc(X)
numpy.sort(C, axis=0)
numpy.sqrt(C)
numpy.take_along_axis(X, I.T, axis=1)
numpy.tril(A)
numpy.unique(J, size=9)
numpy.unwrap(V)
numpy.var(X, axis=0)
numpy.linalg.cholesky(S)
numpy.linalg.cond(A)
numpy.linalg.det(T)
numpy.linalg.eig(A)[0]
numpy.linalg.eigh(S)[0]
numpy.linalg.eigvalsh(E + E.conj().T)
numpy.linalg.inv(T)
numpy.linalg.lstsq(Y, X.T)[0]
numpy.linalg.matrix_power(A, 5)
numpy.linalg.matrix_rank(X)
numpy.linalg.norm(X, ord=2)
numpy.linalg.pinv(X)
numpy.linalg.qr(X)
numpy.linalg.slogdet(E)
numpy.linalg.solve(A, R)
numpy.linalg.svd(X, full_matrices=False)
numpy.fft.fft(C)
numpy.fft.fft2(X)
numpy.fft.fftshift(X)
numpy.fft.hfft(C)
numpy.fft.ifft(C, axis=0)
numpy.fft.ifftn(C)
numpy.fft.irfft(C)
numpy.fft.rfft(X)
scipy.fft.dct(X)
scipy.linalg.cho_solve((scipy.linalg.cholesky(S, lower=True), True), R)
scipy.linalg.eigh(S)[0]
scipy.linalg.expm(A)
scipy.linalg.lu(A)
scipy.linalg.schur(A)[0]
scipy.linalg.solve_triangular(A, R, lower=True)
scipy.linalg.sqrtm(S)
scipy.linalg.toeplitz(V)
scipy.ndimage.map_coordinates(X, [V[:3], V[3:6]], order=1)
scipy.signal.convolve2d(X, X[:2, :3])
scipy.signal.stft(V, nperseg=4)[2]
scipy.special.bessel_jn(V[:4], v=3)
scipy.special.beta(P, Q)
scipy.special.betainc(P, Q, 0.5 * U + 0.5)
scipy.special.digamma(P)
scipy.special.entr(P)
scipy.special.erfinv(U)
scipy.special.expi(P)
scipy.special.gammainc(P, Q)
scipy.special.gammaln(P)
scipy.special.i0e(X)
scipy.special.i1(X)
scipy.special.logsumexp(X, axis=1)
scipy.special.ndtri(0.5 * U + 0.5)
scipy.special.polygamma(2, P)
scipy.special.zeta(P + 1, Q)
scipy.stats.gamma.logpdf(P, Q)
scipy.stats.norm.cdf(X)
scipy.stats.rankdata(V)
lax.approx_max_k(X, 3)
lax.associative_scan(jax.numpy.add, X)
lax.clz(J)
lax.conv_general_dilated(M, W, (1, 1), 'SAME')
lax.dynamic_slice(X, (I[0, 0], I[0, 1]), (2, 3))
lax.igamma_grad_a(P, Q)
lax.linalg.householder_product(A, V[:5])
lax.linalg.tridiagonal_solve(V[:6], V[6:] + 5, V[6:], Y)
lax.reduce_precision(X, 5, 7)
lax.reduce_window(X, 0.0, lax.add, (2, 2), (1, 1), 'VALID')
lax.scan(lambda c, x: (c + x, c * x), X[0], X)
lax.top_k(X, 3)
lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 2), (0, X))
nn.celu(X)
nn.dot_product_attention(M[:, :, :, :4], M[:, :, :, :4], M[:, :, :, 4:])
nn.gelu(X)
nn.glu(X)
nn.log_softmax(X)
nn.one_hot(I, 6)
nn.standardize(X)
random.ball(K, 3, shape=(4,))
random.beta(K, 2.0, 3.0, (4,))
random.categorical(K, X)
random.choice(K, V, (5,), replace=False)
random.gamma(K, 2.0, (5,))
random.multivariate_normal(K, A[0], S)
random.normal(K, (3, 4))
random.orthogonal(K, 4)
random.permutation(K, V)
random.poisson(K, 3.0, (6,))
""".strip().splitlines()


def page(verdicts: Mapping[str, Verdict]) -> str:
    """The reference page with a table of all cases."""
    return table(_PAGE, "jax.", verdicts)


_PAGE = """# JAX functions

`python tests/suites/jax_functions.py --write` writes this page. It shows which of
{total} public functions of JAX can be imported, planned, and run, with JAX's values:
{passed}. The others are refused, with this reason. One-letter names are arrays.

| function | refused |
|---|---|
"""


def check(expression: str) -> Verdict:
    """Judges an expression as a function of its arrays, which are sorted by name."""
    names = names_in(expression, ARRAYS)
    fn = eval(f"lambda {', '.join(names)}: {expression}", _modules())
    arrays = [ARRAYS[name] for name in names]
    want = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(fn)(*arrays))]

    def got() -> Any:
        return tensorplan.compile(tensorplan.from_jax(fn, *arrays), threads=1)(*arrays)

    return judge(got, partial(compare, want=want, rtol=RTOL, atol=ATOL), PLACE)


def _modules() -> dict[str, Any]:
    modules = ("lax", "nn", "numpy", "random", "scipy")
    return {"jax": jax, **{name: getattr(jax, name) for name in modules}}


def main() -> int:
    return run(CASES, check, PAGE, page, (__doc__ or "").splitlines()[0])


if __name__ == "__main__":
    sys.exit(main())
