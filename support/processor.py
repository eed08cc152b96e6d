"""The level of processors that kernels are compiled for. Imports only choices."""

import os

from .choices import ChoiceError

VARIABLE = "TENSORPLAN_PROCESSOR"

_BASE = "64bit cmov crc32 cx16 cx8 fxsr mmx popcnt sahf sse sse2 sse3 sse4.1 sse4.2"
_V3 = f"{_BASE} ssse3 avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
_V4 = f"{_V3} avx512bw avx512cd avx512dq avx512f avx512vl"

LEVELS = {
    "x86-64-v3": frozenset(_V3.split()),
    "x86-64-v4": frozenset(_V4.split()),
}
"""Levels of x86-64 with the features that code may use, in LLVM's names."""


def level() -> str | None:
    """The level of processors that all kernels must run on; None for this machine.

    Raises `ChoiceError` if the variable names no level.
    """
    given = os.environ.get(VARIABLE)
    if given and given not in LEVELS:
        raise ChoiceError(VARIABLE, given, LEVELS)
    return given or None
