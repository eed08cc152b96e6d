"""Complex numbers in registers: two values, for the real and the imaginary parts."""

from dataclasses import dataclass
from math import inf

from . import math
from .code import LlvmFunction, Value


@dataclass(frozen=True, eq=False)
class Complex:
    """Complex numbers in the lanes of two values."""

    real: Value
    imag: Value

    @property
    def code(self) -> LlvmFunction:
        return self.real.code

    def __add__(self, other: "Complex") -> "Complex":
        return Complex(self.real + other.real, self.imag + other.imag)

    def __sub__(self, other: "Complex") -> "Complex":
        return Complex(self.real - other.real, self.imag - other.imag)

    def __neg__(self) -> "Complex":
        return Complex(-self.real, -self.imag)

    def __mul__(self, other: "Complex") -> "Complex":
        return Complex(
            self.real * other.real - self.imag * other.imag,
            self.real * other.imag + self.imag * other.real,
        )

    def __truediv__(self, other: "Complex") -> "Complex":
        """By Smith's method ("Algorithm 116", 1962), as squares could overflow."""
        x, y, choose = self.real, self.imag, self.code.select
        by_real = other.real.call("fabs").compare("oge", other.imag.call("fabs"))
        large = choose(by_real, other.real, other.imag)
        small = choose(by_real, other.imag, other.real)
        ratio = small / large
        divisor = large + small * ratio
        real = choose(by_real, x + y * ratio, x * ratio + y) / divisor
        imag = choose(by_real, y - x * ratio, y * ratio - x) / divisor
        return _as_in_c(self, other, Complex(real, imag))

    @property
    def is_infinite(self) -> Value:
        """Whether a part is infinite."""
        return self.real.is_infinite | self.imag.is_infinite

    @property
    def is_finite(self) -> Value:
        """Whether both parts are finite."""
        sizes = self.real.call("fabs"), self.imag.call("fabs")
        return sizes[0].compare("olt", inf) & sizes[1].compare("olt", inf)

    def equals(self, other: "Complex") -> Value:
        """An `i1` for each number."""
        is_equal = self.real.compare("oeq", other.real)
        return is_equal & self.imag.compare("oeq", other.imag)


def select(condition: Value, x: Complex, y: Complex) -> Complex:
    choose = condition.code.select
    return Complex(choose(condition, x.real, y.real), choose(condition, x.imag, y.imag))


def _as_in_c(x: Complex, y: Complex, quotient: Complex) -> Complex:
    """`quotient`, or C's special value (annex G) where it is NaN: a number divided by
    infinity is 0; infinity divided by a number, and a number divided by 0, are
    infinite."""
    choose = x.code.select
    is_lost = quotient.real.is_nan & quotient.imag.is_nan
    by_zero = y.real.compare("oeq", 0.0) & y.imag.compare("oeq", 0.0)
    vanishes = is_lost & x.is_finite & y.is_infinite
    grows = is_lost & x.is_infinite & y.is_finite
    infinity = x.code.number(inf, x.real.element)
    scale = choose(vanishes, 0.0, infinity)
    scale = choose(by_zero, infinity.call("copysign", y.real), scale)
    towards, by = _direction(x), _direction(y)
    way = select(by_zero, x, towards * Complex(by.real, -by.imag))
    special = Complex(way.real * scale, way.imag * scale)
    return select(by_zero | vanishes | grows, special, quotient)


def _direction(x: Complex) -> Complex:
    """`x`; for infinite numbers their direction: 1 for each infinite part."""
    code, element = x.code, x.real.element
    one, zero = code.number(1.0, element), code.number(0.0, element)
    real, imag = (
        code.select(part.is_infinite, one, zero).call("copysign", part)
        for part in (x.real, x.imag)
    )
    return select(x.is_infinite, Complex(real, imag), x)


def exp(x: Complex) -> Complex:
    """Squares the exponential of half the real part, multiplying by the cosine or sine
    in between, so that no intermediate result overflows before the final one."""
    root = math.exp(x.real * 0.5)
    real, imag = (root * f(x.imag) * root for f in (math.cosine, math.sine))
    is_real = x.imag.compare("oeq", 0.0)  # the result is real, too, even if infinite
    choose = x.code.select
    imag = choose(is_real, x.imag, imag)
    is_turned = x.imag.call("fabs").compare("olt", inf)
    is_end = x.real.is_infinite & ~is_turned  # 0, or infinite with an unknown sign
    return Complex(choose(is_end, root, real), choose(is_end, root * 0.0, imag))
