"""What plan-opt and plan-run share: reading, writing whole files, and saying errors.

Errors go to stderr as `file:line:col: error: message`, with the source line and a caret
where the place is in the input. Exit codes: 0 well, 1 the input is at fault, 2 wrong
usage, 70 a bug of ours, 130 interrupted, 141 nobody reads the output any more.
"""

import json
import logging
import os
import re
import shlex
import shutil
import sys
import tempfile
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import (
    ArgSpecParseError,
    DiagnosticException,
    MultipleSpansParseError,
    ParseError,
)
from xdsl.utils.lexer import Span

from tensorplan.dialects.diagnostics import REMARKS, LocatedError, LocatedVerifyError

USAGE = 2
BUG = 70

USER_ERRORS = (ParseError, DiagnosticException, OSError, RecursionError, MemoryError)
"""What a program or a machine can be at fault for; any other exception is our bug."""

OPTION_ERRORS = (ValueError, DiagnosticException)
"""What passes raise when they are made with wrong options."""

_EXCERPT = 160  # characters of a source line that are shown at most


class UsageError(Exception):
    """The command line is at fault: exit code 2."""


class InternalError(Exception):
    """We are at fault: exit code 70; the message says how to reproduce it."""


class Source(NamedTuple):
    """A program as it was read, under the name that locations use."""

    name: str
    data: bytes
    first_line: int = 1
    """Its number in the file, if this is a part of one."""

    sizes: Mapping[str, int] = {}
    """Of the dimensions that an ONNX model leaves open, by name."""


_read: dict[str, bytes] = {}  # by name: for the source lines in errors


def parse_sizes(text: str) -> Mapping[str, int]:
    """`batch=1,sequence=128` as a dictionary; for argparse."""
    sizes: dict[str, int] = {}
    for pair in text.split(","):
        name, _, size = pair.rpartition("=")
        if not name or not size.isdecimal():
            raise ArgumentTypeError(f"{pair!r}, expected NAME=N")
        sizes[name] = int(size)
    return sizes


def read_source(path: str | None, sizes: Mapping[str, int] | None = None) -> Source:
    """The bytes of a file, or of stdin if `path` is None or `-`."""
    if path in (None, "-"):
        source = Source("<stdin>", sys.stdin.buffer.read(), sizes=sizes or {})
    else:
        source = Source(path, Path(path).read_bytes(), sizes=sizes or {})
    _read[source.name] = source.data
    return source


def write_atomically(path: str, data: bytes) -> None:
    """Writes a file whole or not at all; `-` is stdout.

    What is not a regular file (`/dev/null`, a pipe) is written to directly.
    """
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    if os.path.exists(path) and not os.path.isfile(path):
        Path(path).write_bytes(data)
        return
    try:  # through links, so that they stay links
        _replace(Path(os.path.realpath(path)), data)
    except OSError as error:  # it names a temporary file
        raise OSError(error.errno, error.strerror, path) from None


def _replace(target: Path, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(
        dir=target.parent, prefix=f".{target.name}.", delete=False
    ) as file:
        try:
            file.write(data)
            file.close()
            if target.exists():
                shutil.copymode(target, file.name)
            else:
                umask = os.umask(0)  # there is no call that only asks
                os.umask(umask)
                os.chmod(file.name, 0o666 & ~umask)
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise


def write_report(
    path: str, module: ModuleOp, seconds: Mapping[str, float], **further: int
) -> None:
    """Writes the planned module's figures and buffers as JSON; `seconds` by stage."""
    from tensorplan.passes.report import buffers, report  # with it comes planning

    figures = {
        **report(module),
        **further,
        "seconds": {stage: round(time, 6) for stage, time in seconds.items()},
        "buffers": buffers(module),
    }
    text = json.dumps(figures, indent=2)
    write_atomically(path, f"{text}\n".encode())


def suggest(word: str, known: Sequence[str]) -> str:
    """`; did you mean X?`, or nothing if no known word is near."""
    near = get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def describe(error: BaseException) -> str:
    """The error as the user sees it, without a final newline."""
    match error:
        case ParseError():
            return _describe_parse_error(error)
        case LocatedError() | LocatedVerifyError():
            return _placed(error.place, "error", _house_style(error.message))
        case RecursionError():
            return "error: the program is nested too deeply"
        case MemoryError():
            return "error: out of memory"
        case ArgSpecParseError():
            _, place, *shown, message = str(error).splitlines()
            return "\n".join(
                (f"error: {place}: {_house_style(message.strip())}", *shown)
            )
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{name}: error: {reason[0].lower()}{reason[1:]}"
        case _:
            return f"error: {_house_style(str(error)) or type(error).__name__}"


def _house_style(message: str) -> str:
    """xDSL's messages start with a capital and may end with a mark; ours do not."""
    if message[:2].istitle() or re.match(r"[A-Z] ", message):
        message = message[0].lower() + message[1:]
    return message.rstrip(".!\n ")


def _describe_parse_error(error: ParseError) -> str:
    span, message = error.span, error.msg
    if match := re.match(r"values used but not defined: \[%([^],]+)", message):
        span, message = _first_use(match[1], span), f"%{match[1]} is not defined"
    elif message == "Could not parse entire input!":
        message = "expected an operation"
    lines = [_at_span(span, "error", _house_style(message))]
    if isinstance(error, MultipleSpansParseError):
        for other, note in error.refs:
            text = note or error.ref_text or "see here"
            lines.append(_at_span(other, "note", _house_style(text).rstrip(":")))
    return "\n".join(lines)


def _first_use(name: str, end: Span[str] | Span[bytes]) -> Span[str] | Span[bytes]:
    """Where the undefined value is used; xDSL notices at the end of the file.

    Stays there if the name is defined elsewhere: which use is meant is not clear.
    """
    file = end.input
    assert isinstance(file.content, str)
    value = rf"%{re.escape(name)}(?![\w$.-])"
    if re.search(rf"{value}(:\d+)?\s*=|[(,]\s*{value}\s*:", file.content):
        return end
    use = re.search(value, file.content)
    return replace(end, start=use.start(), end=use.end()) if use else end


def _at_span(span: Span[str] | Span[bytes], severity: str, message: str) -> str:
    content = span.input.content
    data = content.encode() if isinstance(content, str) else content
    place = span.get_location()
    head = f"{place}: {severity}: {message}"
    return "\n".join((head, *_excerpt(data, place.line - span.line_offset, place.col)))


def _placed(place: str | None, severity: str, message: str) -> str:
    """The message at its place; its further lines come after the source line."""
    head, *more = message.splitlines() or [""]
    if place is None:
        return "\n".join((f"{severity}: {head}", *more))
    file, line, column = place.rsplit(":", 2)
    excerpt = _excerpt(_read.get(file, b""), int(line), int(column))
    return "\n".join((f"{place}: {severity}: {head}", *excerpt, *more))


def _excerpt(data: bytes, line: int, column: int) -> Sequence[str]:
    """The source line and a caret below; nothing if there is no such line."""
    lines = data.split(b"\n", line)
    if b"\0" in data or not 1 <= line <= len(lines):
        return ()
    text = lines[line - 1].decode(errors="replace").rstrip("\r")
    if not text.strip():
        return ()
    if not 1 <= column <= len(text) + 1:
        return (text[:_EXCERPT],)
    start = max(0, column - _EXCERPT // 2) if len(text) > _EXCERPT else 0
    text = text[start : start + _EXCERPT]
    margin = re.sub(r"[^\t]", " ", text[: column - 1 - start])
    return (text, f"{margin}^")


def complain(tool: str, error: BaseException) -> None:
    text = describe(error)
    print(f"{tool}: {text}" if text.startswith("error:") else text, file=sys.stderr)


def guard(tool: str, body: Callable[[], int]) -> int:
    """Runs a tool's `body`; says what it raises, and returns the exit code."""
    handler = logging.StreamHandler(sys.stderr)
    REMARKS.addHandler(handler)
    REMARKS.setLevel(logging.DEBUG if tool == "plan-opt" else logging.INFO)
    try:
        code = body()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python flushes stdout at exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    except (Exception, ArgSpecParseError) as error:  # the latter is no Exception
        if os.environ.get("PLAN_OPT_TRACEBACK"):
            raise
        match error:
            case UsageError() | ArgSpecParseError():
                complain(tool, error)
                return USAGE
            case _ if isinstance(error, USER_ERRORS):
                complain(tool, error)
                return 1
            case InternalError():
                print(f"{tool}: {error}", file=sys.stderr)
            case _:
                print(f"{tool}: {bug_message(tool, error)}", file=sys.stderr)
                print(f"note: to reproduce: {this_command(tool)}", file=sys.stderr)
        return BUG
    finally:
        REMARKS.removeHandler(handler)


def bug_message(tool: str, error: BaseException) -> str:
    what = " ".join(str(error).split())[:200]
    return (
        f"this is a bug in {tool}: {type(error).__name__}: {what} "
        "(PLAN_OPT_TRACEBACK=1 shows where)"
    )


def this_command(tool: str) -> str:
    return shlex.join((tool, *sys.argv[1:]))
