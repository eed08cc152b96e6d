"""The number of examples for which Hypothesis checks a property."""

from hypothesis import settings


def examples(number: int) -> int:
    """`number` with `HYPOTHESIS_PROFILE=nightly`. Otherwise a sixteenth, so CI ends
    in 15 minutes, and a twentieth without the thorough tests."""
    return min(number, number * settings().max_examples // 500)
