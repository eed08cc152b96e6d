"""What the tools share: reading input, writing files atomically, errors and exit codes.

Errors go to stderr as `file:line:col: error: message` (`messages.py`), in color on a
terminal. Exit codes: 0 success, 1 invalid input, 2 usage error, 70 internal error, 141
closed output pipe; 129, 130, and 143 after a hangup, an interrupt, and a termination.
"""

import atexit
import errno
import gc
import json
import logging
import os
import re
import shlex
import signal
import stat
import sys
import threading
from argparse import ArgumentTypeError
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple, TextIO

from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError

from ..dialects.garbage import seldom_collected
from ..support.files import whole_file
from ..support.remarks import PROGRESS, REMARKS
from .colors import diagnostic
from .messages import describe, remember

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

USAGE = 2
BUG = 70

USER_ERRORS = (ParseError, DiagnosticException, OSError, RecursionError, MemoryError)
"""Exceptions that an invalid program or the machine causes. Any other is a bug."""

OPTION_ERRORS = (ValueError, DiagnosticException)
"""Exceptions that the constructor of a pass raises for invalid options."""


class UsageError(Exception):
    """A usage error: exit code 2."""


class InternalError(Exception):
    """A bug in tensorplan: exit code 70. The message says how to reproduce it."""


class Source(NamedTuple):
    """The text or bytes of a program, and the file name that its locations use."""

    name: str
    data: bytes
    first_line: int = 1
    """The line of the file in which `data` starts, if `data` is a part of the file."""

    sizes: Mapping[str, int] = {}
    """Sizes of the dynamic dimensions of an ONNX model, by name."""


class FileError(Exception):
    """An invalid file."""

    def __init__(self, source: Source, reason: str, line: int | None = None):
        self.place = source.name if line is None else f"{source.name}:{line}"
        self.reason = reason
        super().__init__(f"{self.place}: {reason}")


def parse_sizes(text: str) -> Mapping[str, int]:
    """Parses `batch=1,sequence=128` into a dictionary; an argparse `type`."""
    sizes: dict[str, int] = {}
    for pair in text.split(","):
        name, _, size = pair.rpartition("=")
        if not name or not re.fullmatch(r"[0-9]{1,19}", size):
            raise ArgumentTypeError(f"{pair!r}, expected NAME=N")
        if name in sizes:
            raise ArgumentTypeError(f"{pair!r}, but {name!r} is {sizes[name]} before")
        sizes[name] = int(size)
    return sizes


def read_source(path: str | None, sizes: Mapping[str, int] | None = None) -> Source:
    """Reads a file, or stdin if `path` is None or `-`."""
    if path in (None, "-"):
        if sys.stdin.isatty():
            say("note: reading from the terminal; Ctrl-D ends it, --help says more")
        source = Source("<stdin>", sys.stdin.buffer.read(), sizes=sizes or {})
    else:
        source = Source(path, Path(path).read_bytes(), sizes=sizes or {})
    remember(source.name, source.data)
    return source


def check_sizes(source: Source) -> None:
    """Raises `UsageError` if sizes are given for an input that is not an ONNX model."""
    from ..frontends import onnx

    if source.sizes and not onnx.is_model(source.data):
        raise UsageError(
            f"{source.name} is not an ONNX model, so --sizes has no effect"
        )


def check_program(path: str | None) -> None:
    """Checks the FILE argument of a tool before the tool imports anything for it.

    Raises `UsageError` if `path` is None and stdin is a terminal, and the exceptions of
    `check_inputs`.
    """
    if path is None and sys.stdin.isatty():
        raise UsageError("FILE is missing, and stdin is a terminal ('-' reads from it)")
    check_inputs(path)


def check_inputs(*paths: str | None) -> None:
    """Raises `OSError` for a path that is not a readable file; skips None and `-`."""
    for path in paths:
        if path in (None, "-"):
            continue
        if re.match(r"[A-Za-z][\w+.-]+://", path):
            raise OSError(errno.ENOENT, "this is a URL, expected a file", path)
        mode = os.stat(path).st_mode
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EACCES
        if stat.S_ISDIR(mode) or not os.access(path, os.R_OK):
            raise OSError(code, os.strerror(code), path)


def check_outputs(*paths: str | None) -> None:
    """Raises `UsageError` if two outputs have the same destination, and `OSError` if
    the folder of an output does not exist or is not writable. None is no output.
    """
    given = [path for path in paths if path]
    places = [p if p == "-" else os.path.realpath(p) for p in given]
    for path, place in zip(given, places, strict=True):
        is_device = os.path.exists(place) and not os.path.isfile(place)
        if places.count(place) > 1 and not is_device:
            where = "stdout" if path == "-" else path
            raise UsageError(f"only one output can go to {where}")
    for path in given:
        if path != "-":
            folder = os.path.join(os.path.dirname(path) or ".", "")
            try:
                os.stat(folder)
            except OSError as error:  # name the output, not its folder
                raise OSError(error.errno, error.strerror, path) from None
            if os.path.isdir(path):
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            if not os.access(path if os.path.exists(path) else folder, os.W_OK):
                raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)


def write_atomically(path: str, data: bytes) -> None:
    """Writes the whole file or nothing; `-` is stdout."""
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    with whole_file(path) as stream:
        stream.write(data)


def write_report(
    path: str, module: "ModuleOp", seconds: Mapping[str, float], **further: int
) -> None:
    """Writes figures and buffers of a planned module as JSON.

    `seconds` is the CPU time of each stage.
    """
    from ..reporting.report import buffers, report  # imports the planner

    figures = {
        **report(module),
        **further,
        "seconds": {stage: round(time, 6) for stage, time in seconds.items()},
        "buffers": buffers(module),
    }
    text = json.dumps(figures, indent=2)
    write_atomically(path, f"{text}\n".encode())


def complain(tool: str, error: BaseException) -> None:
    text = describe(error)
    say(f"{tool}: {text}" if text.startswith("error:") else text)


def say(text: str) -> None:
    """Prints a message to standard error, in colors if that is a terminal."""
    print(diagnostic(text, sys.stderr), file=sys.stderr)


class _Stopped(BaseException):
    """A signal requests the process to end."""

    def __init__(self, number: int):
        self.number = number
        super().__init__(number)


class _Remarks(logging.StreamHandler[TextIO]):
    """Prints a repeated remark once, followed by the number of repetitions."""

    last = ""
    more = 0

    def emit(self, record: logging.LogRecord) -> None:
        if (message := record.getMessage()) == self.last:
            self.more += 1
            return
        self.finish()
        self.last = message
        super().emit(record)

    def finish(self) -> None:
        """Prints the number of repetitions of the last remark, if any."""
        if self.more:
            self.stream.write(f"remark: {self.more} more like this\n")
        self.last, self.more = "", 0

    def format(self, record: logging.LogRecord) -> str:
        return diagnostic(super().format(record), self.stream)


@contextmanager
def _stoppable() -> Generator[None]:
    """Turns termination signals into exceptions: temporary files are then removed."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _Stopped(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _open_closed() -> None:
    """Opens the null device in the wrong mode for closed standard streams (`>&-`).

    Only code that uses such a stream then fails, and errors can still be reported.
    """
    opened = {"stdin": os.O_WRONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}
    for name, flags in opened.items():
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


def guard(tool: str, body: Callable[[], int]) -> int:
    """Runs the `body` of a tool and reports its exception; returns the exit code."""
    _open_closed()
    # Keeps output and errors in order in a pipe, too.
    if reconfigure := getattr(sys.stdout, "reconfigure", None):  # notebooks have none
        reconfigure(line_buffering=True)
    atexit.register(gc.freeze)  # skips the final garbage collection, which takes 0.1 s
    handler = _Remarks(sys.stderr)
    REMARKS.addHandler(handler)
    REMARKS.setLevel(logging.DEBUG if tool == "plan-opt" else logging.INFO)
    progress = logging.StreamHandler(sys.stderr)
    if sys.stderr.isatty():
        PROGRESS.addHandler(progress)
        PROGRESS.setLevel(logging.INFO)

    def remarked() -> int:
        try:
            with seldom_collected():
                return body()
        finally:
            handler.finish()

    try:
        with _stoppable():
            return _guarded(tool, remarked)
    except _Stopped as signalled:
        return 128 + signalled.number
    except KeyboardInterrupt:
        return 130
    finally:
        REMARKS.removeHandler(handler)
        PROGRESS.removeHandler(progress)


def _guarded(tool: str, body: Callable[[], int]) -> int:
    try:
        try:
            code = body()
        except SystemExit as exit:  # raised by argparse
            code = exit.code if isinstance(exit.code, int) else 0
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _discard_output()
        return 141
    except (Exception, ArgSpecParseError) as error:  # ArgSpecParseError is no Exception
        if os.environ.get("PLAN_OPT_TRACEBACK"):
            raise
        match error:
            case UsageError() | ArgSpecParseError():
                complain(tool, error)
                return USAGE
            case _ if isinstance(error, USER_ERRORS):
                if isinstance(error, OSError) and error.filename is None:
                    _discard_output()  # stdout may be what failed
                complain(tool, error)
                return 1
            case InternalError():
                say(f"{tool}: {error}")
            case _:
                say(f"{tool}: {bug_message(tool, error)}")
                say(f"note: to reproduce: {this_command(tool)}")
        return BUG


def _discard_output() -> None:
    """Redirects stdout to the null device: the flush at exit would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def bug_message(tool: str, error: BaseException) -> str:
    what = " ".join(str(error).split())[:200]
    return (
        f"this is a bug in {tool}: {type(error).__name__}: {what} "
        "(PLAN_OPT_TRACEBACK=1 shows where)"
    )


def this_command(tool: str) -> str:
    return shlex.join((tool, *sys.argv[1:]))
