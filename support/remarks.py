"""Where remarks, warnings and progress are logged.

Imports nothing, so that every folder can use it.

Located remarks and errors are in `dialects/diagnostics.py`.
"""

import logging

REMARKS = logging.getLogger("tensorplan.support.remarks")
"""The logger of remarks and warnings. Remarks about success have level DEBUG, other
remarks INFO, and warnings WARNING.

The tools print them (plan-run those at INFO), and embedders may listen.
"""

PROGRESS = logging.getLogger("tensorplan.progress")
"""The progress of searches, at level INFO. The tools show it on a terminal."""


def warn(message: str) -> None:
    """Warns the user of a problem on their machine. Without a handler, Python prints
    the warning to stderr."""
    REMARKS.warning("warning: %s", message)
