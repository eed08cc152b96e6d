"""Complex numbers in registers: two values, the real parts and the imaginary ones.

Quotients are left to NumPy's kernel: C's rules for infinities and zeros take branches.
"""

from dataclasses import dataclass

from . import math
from .code import LlvmFunction, Value


@dataclass(frozen=True, eq=False)
class Complex:
    """As many complex numbers as its parts have lanes."""

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

    def equals(self, other: "Complex") -> Value:
        """An `i1` for each number."""
        is_equal = self.real.compare("oeq", other.real)
        return is_equal & self.imag.compare("oeq", other.imag)


def select(condition: Value, x: Complex, y: Complex) -> Complex:
    choose = condition.code.select
    return Complex(choose(condition, x.real, y.real), choose(condition, x.imag, y.imag))


def exp(x: Complex) -> Complex:
    """By the root of the exponential, which a cosine keeps from overflowing early."""
    root = math.exp(x.real * 0.5)
    real, imag = (root * f(x.imag) * root for f in (math.cosine, math.sine))
    is_real = x.imag.compare("oeq", 0.0)  # and stays so, if the exponential is infinite
    return Complex(real, x.code.select(is_real, x.imag, imag))
