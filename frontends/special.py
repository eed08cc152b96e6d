"""Special functions as formulas of simpler operations: gamma, zeta, Bessel, normal.

`log_gamma` and `digamma` use Lanczos' approximation (g = 7, nine terms), `zeta` uses
the Euler-Maclaurin sum as in Cephes, and the modified Bessel functions use Chebyshev
polynomials, all as in XLA. `ndtri` uses the rational functions of Cephes. The other
Bessel functions and `erfcx` use Chebyshev polynomials that interpolate values of 40
digits. The error is at most 1e-13 in f64 and 1e-5 in f32, times the maximum of 1 and
the value.
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


_J_NEAR = {
    0: (
        *(0.31545594294978024, -0.008723442352852221, 0.2651786132033368),
        *(-0.37009499387264977, 0.15806710233209725, -0.034893769411408884),
        *(0.004819180069467605, -0.00046062616620627504, 3.246032882100508e-05),
        *(-1.7619469077621507e-06, 7.608163592418782e-08, -2.679253530557673e-09),
        *(7.848696314479465e-11, -1.9438346867370164e-12, 4.125320595634374e-14),
        *(-7.588508125447546e-16, 1.2218515873961411e-17),
    ),
    1: (
        *(0.16208969265131623, -0.1489751450676521, 0.1609992623572097),
        *(-0.08268049176681791, 0.022213639654966037, -0.003646940600769276),
        *(0.0004050337728354822, -3.255554866857259e-05, 1.9858774049915165e-06),
        *(-9.521984756750436e-08, 3.687133759097148e-09, -1.178026622695885e-10),
        *(3.160154580348003e-12, -7.221755239651773e-14, 1.4232144003513942e-15),
        -2.4441972916190464e-17,
    ),
}
"""Chebyshev coefficients of `j0(x)` and `j1(x) / x` for |x| <= 8, in x² / 32 - 1."""

_J_IN_PHASE = {
    0: (
        *(1.9989206986950374, -0.0005365220468132117, 3.0751847875194745e-06),
        *(-5.1705945376060975e-08, 1.6306464635151382e-09, -7.86409137723707e-11),
        *(5.168262387349193e-12, -4.3045788699253914e-13, 4.3265957431549404e-14),
        *(-5.069034095935236e-15, 6.748072215733873e-16, -1.0011513723467786e-16),
        1.6305919233744186e-17,
    ),
    1: (
        *(2.0018060817200274, 0.0008989898330859408, -3.987284300488908e-06),
        *(6.177633960644299e-08, -1.8718907491063067e-09, 8.816898659582339e-11),
        *(-5.704863640395645e-12, 4.699195515230542e-13, -4.6842237839904895e-14),
        *(5.452674896044717e-15, -7.221180842274018e-16, 1.0667689114335412e-16),
        -1.7312313216111633e-17,
    ),
}
"""Of the factor of the cosine for larger ones, in 128 / x² - 1."""

_J_OUT_OF_PHASE = {
    0: (
        *(-0.24889367368539214, 0.0005470815954089319, -5.9315987288485175e-06),
        *(1.4377965798375193e-07, -5.817532749493056e-09, 3.376097523734991e-10),
        *(-2.565397936797308e-11, 2.404916100281365e-12, -2.6690625482579414e-13),
        *(3.4041800321963686e-14, -4.87994410531204e-15, 7.729703176242605e-16),
        *(-1.3348852171502517e-16, 2.4865952389390515e-17),
    ),
    1: (
        *(0.7484445931125652, -0.0007702178839325664, 7.3108922063643636e-06),
        *(-1.676782510726674e-07, 6.583354662120443e-09, -3.749090950541556e-10),
        *(2.8121750359748866e-11, -2.61145253946232e-12, 2.8774212663332235e-13),
        *(-3.649001916061838e-14, 5.206626366226707e-15, -8.215318025458595e-16),
        *(1.4141084390211833e-16, -2.626761589838529e-17),
    ),
}
"""Of the factor of the sine times x, in the same variable."""


def bessel_j(order: int, x: Term) -> Term:
    """The Bessel function of the first kind, of order 0 or 1.

    For large x it is a wave with the phase x - (2 order + 1) pi / 4. The wave is
    computed from the sine and the cosine of x itself, so the phase is not rounded.
    """
    size = abs(x)
    near = _chebyshev(_J_NEAR[order], size * size * (1 / 32) - 1)
    large = size.apply(elementwise.MaximumOp, 8)
    place = 128 / (large * large) - 1
    in_phase = _chebyshev(_J_IN_PHASE[order], place)
    out_of_phase = _chebyshev(_J_OUT_OF_PHASE[order], place) / large
    sine, cosine = sin(large), cos(large)
    if order == 0:
        wave = in_phase * (cosine + sine) - out_of_phase * (sine - cosine)
    else:
        wave = in_phase * (sine - cosine) + out_of_phase * (cosine + sine)
    far = wave / sqrt(large * math.pi)
    far = x.of(0).where(size.equals(math.inf), far)
    if order == 0:
        return near.where(size < 8, far)
    result = (near * size).where(size < 8, far)
    return (-result).where(x < 0, result)


_ERFCX = (
    *(2.3551578691348034, -0.004590054580646478, -0.08424913336651792),
    *(0.05920993999819189, -0.026658668435305753, 0.009074997670705265),
    *(-0.002413163540417608, 0.0004907758365258086, -6.916973302501207e-05),
    *(4.13902798607301e-06, 7.74038306619849e-07, -2.1886401049234397e-07),
    *(1.076499946567091e-08, 4.521959811218287e-09, -7.754400208831351e-10),
    *(-6.318088340886684e-11, 2.86879501093067e-11, 1.9455868545777347e-13),
    *(-9.65469674843344e-13, 3.25254814814874e-14, 3.3478119482868056e-14),
    *(-1.864562880419313e-15, -1.2507950530688648e-15, 7.418235256624044e-17),
    5.068148904796111e-17,
)
"""Chebyshev coefficients of `(1 + 2 x) erfcx(x)` for all x >= 0, in the variable
(x - 3.75) / (x + 3.75), as in Shepherd and Laframboise, "Chebyshev approximation of
(1 + 2 x) exp(x²) erfc x in 0 <= x < infinity" (1981)."""

_ERFCX_CENTER = 3.75


def erfcx(x: Term) -> Term:
    """`exp(x²) erfc(x)`. It neither underflows nor overflows for positive x."""
    size = abs(x)
    place = 1 - 2 * _ERFCX_CENTER / (size + _ERFCX_CENTER)
    positive = _chebyshev(_ERFCX, place) / (size * 2 + 1)
    return (exp(x * x) * 2 - positive).where(x < 0, positive)


_MIDDLE = (
    (
        *(-1.23916583867381258016, 13.9312609387279679503, -56.6762857469070293439),
        *(98.0010754185999661536, -59.9633501014107895267),
    ),
    (
        *(-1.18331621121330003142, 15.9056225126211695515, -82.0372256168333339912),
        *(200.260212380060660359, -225.462687854119370527, 86.3602421390890590575),
        *(4.67627912898881538453, 1.95448858338141759834, 1.0),
    ),
)
"""Coefficients of a numerator and a denominator, from the constant upwards, for
probabilities above exp(-2)."""

_TAIL = (
    (
        *(-8.57456785154685413611e-4, -3.50424626827848203418e-2),
        *(-1.40256079171354495875e-1, 2.18663306850790267539),
        *(14.6849561928858024014, 44.0805073893200834700, 57.1628192246421288162),
        *(31.5251094599893866154, 4.05544892305962419923),
    ),
    (
        *(-9.33259480895457427372e-4, -3.80806407691578277194e-2),
        *(-1.42182922854787788574e-1, 2.50464946208309415979),
        *(15.0425385692907503408, 41.3172038254672030440, 45.3907635128879210584),
        *(15.7799883256466749731, 1.0),
    ),
)
"""For probabilities from exp(-32) to exp(-2)."""

_FAR_TAIL = (
    (
        *(6.23974539184983293730e-9, 2.65806974686737550832e-6),
        *(3.01581553508235416007e-4, 1.23716634817820021358e-2),
        *(2.01485389549179081538e-1, 1.33303460815807542389, 3.93881025292474443415),
        *(6.91522889068984211695, 3.23774891776946035970),
    ),
    (
        *(6.79019408009981274425e-9, 2.89247864745380683936e-6),
        *(3.28014464682127739104e-4, 1.34204006088543189037e-2),
        *(2.16236993594496635890e-1, 1.37702099489081330271, 3.67983563856160859403),
        *(6.02427039364742014255, 1.0),
    ),
)
"""For smaller probabilities."""


def ndtri(p: Term) -> Term:
    """The inverse of the standard normal distribution: the number that is exceeded
    with probability 1 - p. NaN unless 0 <= p <= 1."""
    is_upper = p > 1 - math.exp(-2)
    q = (1 - p).where(is_upper, p)
    safe = q.of(0.5).where(~(q > 0), q)
    middle = safe - 0.5
    square = middle * middle
    middle = middle + middle * square * _ratio(_MIDDLE, square)
    middle = middle * -math.sqrt(math.tau)
    z = sqrt(log(safe) * -2)
    inverse = 1 / z
    tail = _ratio(_FAR_TAIL, inverse).where(z >= 8, _ratio(_TAIL, inverse))
    outer = z - log(z) / z - tail / z
    result = middle.where(safe > math.exp(-2), outer)
    result = p.of(math.inf).where(q.equals(0), result)
    result = result.where(is_upper, -result)
    return result.where((p >= 0) & (1 - p >= 0), math.nan)


def _ratio(coefficients: tuple[Sequence[float], Sequence[float]], x: Term) -> Term:
    """The quotient of two polynomials, by Horner's rule."""
    values: list[Term] = []
    for polynomial in coefficients:
        *rest, value = map(x.of, polynomial)
        for coefficient in reversed(rest):
            value = value * x + coefficient
        values.append(value)
    return values[0] / values[1]


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
