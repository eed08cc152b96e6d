"""What must hold of a program whatever passes do to it; a `Failure` says what did not.

A pass may refuse a program (`LocatedError`): that is no failure, ends what is tried,
and is counted. What a pass has made must run.
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
    """An oracle said no."""

    def __init__(self, oracle: str, message: str):
        self.oracle = oracle
        self.message = message
        super().__init__(f"{oracle}: {message}")

    @property
    def kind(self) -> str:
        """What the same fault has in common in programs of any size."""
        head, _, rest = self.message.partition(":")
        if head == "PlanViolation":  # which operations and bytes is chance
            head += re.sub(r"\S+ \(.*?\)|%\w+|\d+", "…", rest)
        return f"{self.oracle}: {head[:90]}"


class Refused(Exception):
    """The program was refused with a reason."""


@contextmanager
def stage(name: str, *, may_refuse: bool = False) -> Generator[None]:
    """Turns what is raised into a `Failure`; a located error, where one may be, into
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
    """The text of one form is parsed to what prints the same."""
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
    """Small integers, also as floats: sums of them are exact in any order."""
    random = np.random.default_rng(seed)
    return [
        random.integers(0 if i.dtype.kind in "ub" else -3, 4, i.shape).astype(i.dtype)
        for i in signature(module).inputs
    ]


def fractions(module: ModuleOp, seed: int) -> list[Array]:
    """Floats around 0, and small integers as `arguments` has them."""
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
    raise AssertionError  # stage raises


def run(
    name: str, execute: Callable[..., Sequence[Array]], inputs: Sequence[Array]
) -> list[Array]:
    with stage(name), np.errstate(all="ignore"):
        return list(execute(*(x.copy() for x in inputs)))
    raise AssertionError


Spread: TypeAlias = Callable[[], Sequence[float]]
"""How far apart each result may be, absolutely; only asked where that matters."""


def compare(
    name: str,
    got: Sequence[Array],
    want: Sequence[Array],
    *,
    slack: float = 0,
    has_singles: bool = False,
    spread: Spread | None = None,
) -> None:
    """Equal bit by bit, or to the last digits, of which `slack` allows more, and where
    that is not enough, as far apart as `spread` says; a NaN is a NaN. Where a program
    has f32 (`has_singles`), its f64 may come from there."""
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
"""By the bytes of a float: of the largest magnitude, if that is above 1."""


def _scale(b: Array) -> float:
    y = b.astype(np.float64)
    return max(1.0, float(np.max(np.abs(y), where=np.isfinite(y), initial=0.0)))


def _near(a: Array, b: Array, tolerance: float) -> Array:
    """Where both are finite, and not further apart; everywhere, if that is infinite."""
    if tolerance == np.inf:
        return np.ones(a.shape, np.bool_)
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= tolerance)
