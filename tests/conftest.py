"""How hypothesis draws examples: the same in every run, unless asked otherwise.

`HYPOTHESIS_PROFILE=dev` takes few examples, `nightly` many and new ones.
"""

import os

from hypothesis import settings

settings.register_profile("ci", max_examples=100, derandomize=True, deadline=None)
settings.register_profile("dev", max_examples=20, deadline=None)
settings.register_profile("nightly", max_examples=10_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
