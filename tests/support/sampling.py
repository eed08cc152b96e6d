"""How many examples a property is tried on."""

from hypothesis import settings


def examples(number: int) -> int:
    """`number` with `HYPOTHESIS_PROFILE=nightly`, else a seventh: CI has 15
    minutes; a tenth without the thorough tests."""
    return min(number, number * settings().max_examples // 500)
