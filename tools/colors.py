"""Colors in the output on terminals, unless the environment disables them.

A nonempty `NO_COLOR` disables colors (no-color.org). `CLICOLOR_FORCE`, if neither empty
nor 0, enables them for files and pipes as well (bixense.com/clicolors).
"""

import os
from typing import IO

from ..reporting.wording import bold

_SEVERITIES = {"error": "31", "warning": "35", "remark": "34", "note": "36"}
"""The usual colors of compilers, as ANSI codes: red, magenta, blue, cyan."""


def wanted(stream: IO[str]) -> bool:
    """Whether output written to `stream` should be colored."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def diagnostic(text: str, stream: IO[str]) -> str:
    """Colors the severities and carets in `text` if `stream` wants colors.

    `text` is `file:1:2: error: message`, the source line, and a caret line; notes may
    follow.
    """
    if not wanted(stream):
        return text
    return "\n".join(map(_line, text.split("\n")))


def _line(line: str) -> str:
    if line.strip() == "^":
        return line.replace("^", "\x1b[1;32m^\x1b[m")
    place, separator, message = line.partition(": ")
    for severity, code in _SEVERITIES.items():
        mark = f"\x1b[1;{code}m{severity}:\x1b[m"
        if line.startswith(f"{severity}: "):
            return f"{mark} {bold(line[len(severity) + 2 :], True)}"
        if separator and message.startswith(f"{severity}: "):
            rest = message[len(severity) + 2 :]
            return f"{bold(place + ':', True)} {mark} {bold(rest, True)}"
    return line
