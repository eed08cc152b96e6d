"""How hypothesis draws examples: the same in every run, unless asked otherwise.

`HYPOTHESIS_PROFILE=dev` takes few examples, `nightly` many and new ones. And Ctrl-C
works in its tests, also where a shell has started them in the background.
"""

import os
import signal

from hypothesis import settings

settings.register_profile("ci", max_examples=100, derandomize=True, deadline=None)
settings.register_profile("dev", max_examples=20, deadline=None)
settings.register_profile("nightly", max_examples=10_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells have it for `... &`
    signal.signal(signal.SIGINT, signal.default_int_handler)
