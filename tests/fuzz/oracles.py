"""Properties of programs that all passes must preserve; a violation is a `Failure`.

A pass can refuse a program with a `LocatedError`. This is not a failure, but it ends
the trial and is counted. The output of a pass must run.
"""

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer
from xdsl.utils.exceptions import DiagnosticException, ParseError

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array, is_float
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.frontends.mlir_text import parse_module


class Failure(Exception):
    """A property does not hold, according to `oracle`."""

    def __init__(self, oracle: str, message: str):
        self.oracle = oracle
        self.message = message
        super().__init__(f"{oracle}: {message}")

    @property
    def kind(self) -> str:
        """The part of the message that is the same for one fault in all programs."""
        head, _, rest = self.message.partition(":")
        if head == "PlanViolation":  # names and numbers vary
            head += re.sub(r"\S+ \(.*?\)|%\w+|\d+", "…", rest)
        return f"{self.oracle}: {head[:90]}"


class Refused(Exception):
    """A pass refused the program, with a reason."""


@contextmanager
def stage(name: str, *, may_refuse: bool = False) -> Generator[None]:
    """Converts exceptions to a `Failure`, and if `may_refuse`, located errors to
    `Refused`."""
    try:
        yield
    except (Failure, Refused):
        raise
    except Exception as error:
        if may_refuse and isinstance(error, LocatedError):
            message = error.message.partition("\n")[0]
            raise Refused(f"{name}: {message}") from None
        summary = " ".join(str(error).split())[:300]
        raise Failure(name, f"{type(error).__name__}: {summary}") from error


def text_of(module: ModuleOp, generic: bool = False) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return stream.getvalue()


def check_round_trip(module: ModuleOp, generic: bool) -> None:
    """Checks that the printed text can be parsed and prints the same again."""
    with stage("round trip"):
        text = text_of(module, generic)
        try:
            again = parse_module(text, "printed.mlir", tensorplan.context())
            again.verify()
        except (ParseError, DiagnosticException) as error:
            raise Failure("round trip", f"not read again: {error}") from error
        if (printed := text_of(again, generic)) != text:
            lines = zip(text.splitlines(), printed.splitlines(), strict=False)
            first = next((a, b) for a, b in lines if a != b)
            raise Failure("round trip", f"{first[0]!r} became {first[1]!r}")


def arguments(module: ModuleOp, seed: int) -> list[Array]:
    """Random small integers, also as floats: their sums are exact in any order."""
    random = np.random.default_rng(seed)
    return [
        random.integers(0 if i.dtype.kind in "ub" else -3, 4, i.shape).astype(i.dtype)
        for i in signature(module).inputs
    ]


def fractions(module: ModuleOp, seed: int) -> list[Array]:
    """Random floats around 0, and for other types the integers of `arguments`."""
    random = np.random.default_rng(seed)
    return [
        (random.standard_normal(x.shape) / 2).astype(x.dtype)
        if is_float(x.dtype)
        else x
        for x in arguments(module, seed)
    ]


def reference(module: ModuleOp, inputs: Sequence[Array]) -> list[Array]:
    with stage("reference"), np.errstate(all="ignore"):
        return run_reference(module, [x.copy() for x in inputs])
    raise AssertionError  # not reached: stage raises


def run(
    name: str, execute: Callable[..., Sequence[Array]], inputs: Sequence[Array]
) -> list[Array]:
    with stage(name), np.errstate(all="ignore"):
        return list(execute(*(x.copy() for x in inputs)))
    raise AssertionError


Spread: TypeAlias = Callable[[], Sequence[float]]
"""Returns the absolute tolerance of each result. Called only if values differ."""


def compare(
    name: str,
    got: Sequence[Array],
    want: Sequence[Array],
    *,
    slack: float = 0,
    has_singles: bool = False,
    spread: Spread | None = None,
) -> None:
    """Raises a `Failure` unless results are equal (all NaNs are equal). `slack` scales
    the relative tolerance of floats; 0 requires equal bits. Values beyond it may differ
    by `spread`. With `has_singles`, f64 has the tolerance of f32, because its values
    may be converted from f32."""
    if len(got) != len(want):
        raise Failure(name, f"{len(got)} results, expected {len(want)}")
    for number, (a, b) in enumerate(zip(got, want, strict=True)):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise Failure(
                name, f"result {number} is {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
            )
        wrong = np.asarray(~_same(a, b))
        if wrong.any() and slack and is_float(a.dtype):
            digits = 4 if has_singles else 8
            tolerance = slack * _TOLERANCES[min(a.dtype.itemsize, digits)] * _scale(b)
            wrong &= ~_near(a, b, tolerance)
            if wrong.any() and spread:
                wrong &= ~_near(a, b, spread()[number])
        if wrong.any():
            place = tuple(map(int, np.argwhere(wrong)[0]))
            raise Failure(
                name, f"wrong value: {a[place]}, not {b[place]} in {number} at {place}"
            )


def _same(a: Array, b: Array) -> Array:
    if not is_float(a.dtype):
        return np.asarray(a == b)
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


_TOLERANCES = {2: 3e-2, 4: 2e-5, 8: 1e-11}
"""Tolerances by the bytes of a float, relative to the largest magnitude above 1."""


def _scale(b: Array) -> float:
    y = b.astype(np.float64)
    return max(1.0, float(np.max(np.abs(y), where=np.isfinite(y), initial=0.0)))


def _near(a: Array, b: Array, tolerance: float) -> Array:
    """Where both values are finite and within `tolerance`. If it is infinite, all."""
    if tolerance == np.inf:
        return np.ones(a.shape, np.bool_)
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= tolerance)
