"""Special functions as formulas of simpler operations: gamma, zeta, Bessel.

`log_gamma` and `digamma` use Lanczos' approximation (g = 7, nine terms), `zeta` uses
the Euler-Maclaurin sum as in Cephes, and Bessel's functions use Chebyshev polynomials,
all as in XLA. The error is at most 1e-13 in f64 and 1e-5 in f32, times the maximum of 1
and the value.
"""

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import Float64Type

from ..dialects.tgraph import elementwise
from ..dialects.tgraph.terms import AnyTerm as Term
from ..dialects.tgraph.terms import cos, exp, floor, log, log1p, sin, sqrt

_BASE = 0.99999999999980993227684700473478
_LANCZOS = (
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)
_G = 7.5


def _below_half(x: Term) -> tuple[Term, Term]:
    """Whether the function is reflected, and the argument of the approximation."""
    is_reflected = x < 0.5
    return is_reflected, (-x).where(is_reflected, x - 1)


def log_gamma(x: Term) -> Term:
    """The logarithm of the absolute value of the gamma function."""
    is_reflected, z = _below_half(x)
    series = z.of(_BASE)
    for number, coefficient in enumerate(_LANCZOS):
        series = series + z.of(coefficient) / (z + (number + 1))
    shifted = log1p(z * (1 / _G)) + math.log(_G)
    near = (z + 0.5 - (z + _G) / shifted) * shifted
    near = near + (log(series) + math.log(math.tau) / 2)
    fraction = abs(x) - floor(abs(x))
    fraction = (1 - fraction).where(fraction > 0.5, fraction)
    sine = log(sin(fraction * math.pi))
    is_pole = sine.equals(-math.inf)
    reflected = (-sine).where(is_pole, math.log(math.pi) - sine - near)
    result = reflected.where(is_reflected, near)
    return x.of(math.inf).where(abs(x).equals(math.inf), result)


def digamma(x: Term) -> Term:
    """The derivative of `log_gamma`; NaN at its poles."""
    is_reflected, z = _below_half(x)
    slope, series = z.of(0), z.of(_BASE)
    for number, coefficient in enumerate(_LANCZOS):
        place = z + (number + 1)
        slope = slope - z.of(coefficient) / (place * place)
        series = series + z.of(coefficient) / place
    shifted = log1p(z * (1 / _G)) + math.log(_G)
    near = shifted + slope / series - (_G - 0.5) / (z + _G)
    angle = (x + abs(floor(x + 0.5))) * math.pi
    result = (near - cos(angle) * math.pi / sin(angle)).where(is_reflected, near)
    is_pole = (x < 0.5) & x.equals(floor(x))
    return x.of(math.nan).where(is_pole, result)


_EULER_MACLAURIN = (
    12.0,
    -720.0,
    30240.0,
    -1209600.0,
    47900160.0,
    -1.8924375803183791606e9,
    7.47242496e10,
    -2.950130727918164224e12,
    1.1646782814350067249e14,
    -4.5979787224074726105e15,
    1.8152105401943546773e17,
    -7.1661652561756670113e18,
)
"""(2 j)! divided by the Bernoulli number B(2 j), for j = 1, 2, ..."""

_SUMMED = 10


def zeta(x: Term, q: Term) -> Term:
    """Hurwitz' zeta function, the sum of `(q + k)^-x` for k = 0, 1, ..."""
    total = power = _power(q, -x)
    a = q
    for _ in range(_SUMMED):
        a = a + 1
        power = _power(a, -x)
        total = total + power
    rest = power * (a / (x - 1) - 0.5)
    factor, scale = x * power / a, a * a
    for number, coefficient in enumerate(_EULER_MACLAURIN):
        rest = rest + factor / coefficient
        factor = factor * (x + (2 * number + 1)) * (x + (2 * number + 2)) / scale
    is_enough = abs(power) < abs(total) * _epsilon(x)
    result = total.where(is_enough, total + rest)
    undefined = x.of(math.nan)
    result = undefined.where((x < 1) | (~x.equals(floor(x)) & ~(q > 0)), result)
    is_even = (x * 0.5).equals(floor(x * 0.5))
    at_pole = x.of(math.inf).where(is_even, math.nan)
    result = at_pole.where(~(q > 0) & q.equals(floor(q)), result)
    return x.of(math.inf).where(x.equals(1), result)


def polygamma(n: Term, x: Term) -> Term:
    """The derivative of `digamma` of order n, an integer."""
    half = n * 0.5
    is_even = half.equals(floor(half))
    size = exp(log_gamma(n + 1)) * zeta(n + 1, x)
    result = digamma(x).where(n.equals(0), (-size).where(is_even, size))
    is_order = ~(n < 0) & n.equals(floor(n))
    return result.where(is_order, math.nan)


_NEAR_1 = (
    *(0.25258718644363365, -0.17641651835783406, 0.1026436586898471),
    *(-0.052945981208094991, 0.024726449030626517, -0.010564084894626198),
    *(0.0041564229443128882, -0.0015135724506312531, 0.00051228595616857577),
    *(-0.00016176081582589675, 4.7815651075500542e-5, -1.3273163656039436e-5),
    *(3.4702513081376785e-6, -8.5687202646954547e-7, 2.0032947535521353e-7),
    *(-4.4450591287963281e-8, 9.3815373864957718e-9, -1.8872497517228293e-9),
    *(3.625590281552117e-10, -6.6634897235020277e-11, 1.1736186298890902e-11),
    *(-1.9839743977649437e-12, 3.2237933659455747e-13, -5.0421855047279117e-14),
    *(7.6006842947354069e-15, -1.1055969477353863e-15, 1.5536319577362005e-16),
)
"""Chebyshev coefficients of `i1e(x) / x` for |x| <= 8, in the variable x / 4 - 1."""

_FAR_1 = (
    *(0.77857623501828012, -0.0097610974913614684, -0.00011058893876262372),
    *(-3.8825648088776904e-6, -2.5122362378702089e-7, -2.6314688468895195e-8),
    *(-3.835380385964237e-9, -5.5897434621965838e-10, -1.8974958123505412e-11),
    *(3.2526035830154882e-11, 1.4125807436613781e-11, 2.0356285441470895e-12),
    *(-7.1985517762459085e-13, -4.0835511110921973e-13, -2.1015418427726643e-14),
    *(4.2724400167119514e-14, 1.0420276984128803e-14, -3.8144030724370078e-15),
    *(-1.8803547755107824e-15, 3.3082023109209283e-16, 2.9626289976459501e-16),
)
"""Chebyshev coefficients of `i1e(x) sqrt(x)` for x > 8, in the variable 16 / x - 1."""


_NEAR_0 = (
    *(0.67679527440947607, -0.3046826723431984, 0.17162090152220877),
    *(-0.094901097048047639, 0.049305284239670712, -0.023737414805899471),
    *(0.010546460394594998, -0.0043243099950505759, 0.0016394756169413357),
    *(-0.00057637557453858236, 0.00018850288509584165, -5.754195010082104e-05),
    *(1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06),
    *(-2.6707938539406119e-07, 6.0469950225419186e-08, -1.300025009986248e-08),
    *(2.6598237246823866e-09, -5.1897956016352627e-10, 9.675809035373237e-11),
    *(-1.7268262914415559e-11, 2.9550526631296399e-12, -4.856446783111929e-13),
    *(7.6761854986049361e-14, -1.1685332877993451e-14, 1.7153912855551331e-15),
    *(-2.4312798465479549e-16, 3.3307945188222384e-17, -4.4153416464793395e-18),
)
"""Of `i0e(x)` for |x| <= 8, in x / 4 - 1."""

_FAR_0 = (
    *(0.80449041101410879, 0.0033691164782556943, 6.8897583469168245e-05),
    *(2.8913705208347567e-06, 2.0489185894690638e-07, 2.266668990498178e-08),
    *(3.3962320257083865e-09, 4.9406023882249701e-10, 1.1889147107846439e-11),
    *(-3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12),
    *(7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14),
    *(-4.1505693472872222e-14, -9.5548466988283073e-15, 3.8116806693526224e-15),
    *(1.7725601330565263e-15, -3.425485619677219e-16, -2.8276239805165836e-16),
    *(3.4612228676974612e-17, 4.4656214202967598e-17, -4.8305044859441819e-18),
    -7.2331804878747538e-18,
)
"""Of `i0e(x) sqrt(x)` for larger ones, in 16 / x - 1."""


def bessel_i0e(x: Term) -> Term:
    """The modified Bessel function of order 0, by exp(|x|)."""
    size = abs(x)
    return _chebyshev(_NEAR_0, size * 0.25 - 1).where(size < 8, _far(_FAR_0, size))


def bessel_i1e(x: Term) -> Term:
    """The modified Bessel function of order 1, divided by exp(|x|)."""
    size = abs(x)
    near = _chebyshev(_NEAR_1, size * 0.25 - 1) * size
    result = near.where(size < 8, _far(_FAR_1, size))
    return (-result).where(x < 0, result)


def bessel_i0(x: Term) -> Term:
    """The modified Bessel function of order 0."""
    return bessel_i0e(x) * exp(abs(x))


def bessel_i1(x: Term) -> Term:
    """The modified Bessel function of order 1."""
    return bessel_i1e(x) * exp(abs(x))


def _far(coefficients: Sequence[float], size: Term) -> Term:
    size = size.apply(elementwise.MaximumOp, 8)
    return _chebyshev(coefficients, 16 / size - 1) / sqrt(size)


def _chebyshev(coefficients: Sequence[float], x: Term) -> Term:
    """Clenshaw's summation, without coefficients below the elements' precision."""
    kept = [c for c in coefficients if abs(c) > _epsilon(x) / 16]
    one, two = x.of(0), x.of(0)
    for coefficient in reversed(kept[1:]):
        one, two = x * 2 * one - two + coefficient, one
    return x * one - two + kept[0] / 2


def _power(x: Term, y: Term) -> Term:
    return x.apply(elementwise.PowerOp, y)


def _epsilon(x: Term) -> float:
    return 2.0**-52 if isinstance(x.element, Float64Type) else 2.0**-23
