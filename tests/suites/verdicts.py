"""Judges the cases of suites and compares values. A case is one of:

- pass: the values are as expected, within a tolerance;
- refused: `LocatedError`, the documented answer to what is not supported;
- wrong: other values, types or shapes;
- internal: any other exception.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tensorplan.dialects.diagnostics import LocatedError

Arrays = Sequence[np.ndarray]


class Verdict(NamedTuple):
    status: str
    message: str = ""


def judge(
    run: Callable[[], Arrays], compared: Callable[[Arrays], Verdict], place: str
) -> Verdict:
    """Runs a case; `compared` judges its results. `place` is a pattern of the locations
    in error messages, which differ between runs."""
    try:
        got = run()
    except LocatedError as error:
        return Verdict("refused", reason(str(error), place))
    except Exception as error:
        return Verdict("internal", f"{type(error).__name__}: {error}")
    return compared(got)


def reason(message: str, place: str) -> str:
    """The text of an error message without locations."""
    text = re.sub(rf"^{place}: (note: )?", "", message, flags=re.MULTILINE)
    return "; ".join(dict.fromkeys(text.splitlines()))


def compare(got: Arrays, want: Arrays, rtol: float, atol: float) -> Verdict:
    if len(got) != len(want):
        return Verdict("wrong", f"{len(got)} results, expected {len(want)}")
    for have, expected in zip(got, want, strict=True):
        kinds = (have.dtype, have.shape), (expected.dtype, expected.shape)
        if kinds[0] != kinds[1]:
            return Verdict("wrong", f"{kinds[0]}, expected {kinds[1]}")
        if expected.dtype.name == "bfloat16":  # as ONNX's test runner does
            rtol = max(rtol, 2**-6)
            have, expected = have.astype(np.float32), expected.astype(np.float32)
        if expected.size and np.issubdtype(expected.dtype, np.inexact):
            # sums that cancel are exact only up to the rounding of the largest element
            largest = float(np.abs(np.nan_to_num(expected, posinf=0, neginf=0)).max())
            atol = max(atol, float(np.finfo(expected.dtype).eps) * largest)
        try:
            np.testing.assert_allclose(have, expected, rtol=rtol, atol=atol)
        except AssertionError as error:
            return Verdict("wrong", " ".join(str(error).split())[:200])
    return Verdict("pass")


def failures(verdicts: Mapping[str, Verdict]) -> Mapping[str, Verdict]:
    """The cases that are wrong or internal."""
    return {n: v for n, v in verdicts.items() if v.status in ("wrong", "internal")}


def summary(verdicts: Mapping[str, Verdict], listed: Mapping[str, Verdict]) -> str:
    """A line for each case in `listed`, and the number of verdicts of each status."""
    lines = [f"{name}: {status}: {text}" for name, (status, text) in listed.items()]
    counts = Counter(verdict.status for verdict in verdicts.values())
    totals = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    return "\n".join([*lines, totals])
