"""How many examples a property is tried on."""

import os


def examples(number: int) -> int:
    """`number` with `HYPOTHESIS_PROFILE=nightly`, else a fifth: CI has 15 minutes."""
    is_night = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
    return number if is_night else number // 5
