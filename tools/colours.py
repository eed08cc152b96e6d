"""Colours, where they are wanted: on terminals, unless the environment says otherwise.

`NO_COLOR`, if not empty, turns them off (no-color.org); `CLICOLOR_FORCE`, if neither
empty nor 0, turns them on for files and pipes too (bixense.com/clicolors).
"""

import os
from typing import IO

from ..reporting.wording import bold

_SEVERITIES = {"error": "31", "warning": "35", "remark": "34", "note": "36"}
"""The colours that compilers give them: red, magenta, blue, cyan."""


def wanted(stream: IO[str]) -> bool:
    """Whether what is written to the stream may have colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def diagnostic(text: str, stream: IO[str]) -> str:
    """An error, remark or note, with its severity and carets coloured if wanted.

    `file:1:2: error: message`, source line, caret; notes may follow.
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
