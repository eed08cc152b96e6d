"""Where remarks, warnings and progress are logged.

Imports nothing, so that every folder can use it.

Located remarks and errors are in `dialects/diagnostics.py`.
"""

import logging

REMARKS = logging.getLogger("tensorplan.support.remarks")
"""Remarks go here, those of what went well at level DEBUG, the others at INFO;
warnings at WARNING.

The tools print them (plan-run those at INFO), embedders may listen.
"""

PROGRESS = logging.getLogger("tensorplan.progress")
"""How far a search has come, at level INFO. The tools show it on a terminal."""


def warn(message: str) -> None:
    """Tells the user of something on their machine that wants mending. Where nobody
    listens, Python prints it to stderr."""
    REMARKS.warning("warning: %s", message)
