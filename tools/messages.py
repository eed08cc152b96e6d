"""Formats errors for users: location, message, source line, caret, and a suggestion.

model.mlir:2:22: error: %b is not defined
  %0 = tgraph.negate %b : tensor<4xf32>
                     ^
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.utils.exceptions import (
    ArgSpecParseError,
    MultipleSpansParseError,
    ParseError,
)

from ..dialects.diagnostics import LocatedError
from ..support.choices import suggest

if TYPE_CHECKING:
    from ..dialects.compatibility import AnySpan

_EXCERPT = 160  # the largest number of characters shown of a source line

_read: dict[str, bytes] = {}


def remember(name: str, data: bytes) -> None:
    """Stores the contents of a file, so that errors in it show their source lines."""
    _read[name] = data


_PIPELINES = """\
note: -p takes 'pass,pass{option=1 option=word option="1.5 MiB"}'; all but plain numbers
      and words is in double quotes, and the whole in single ones, for the shell"""


def describe(error: BaseException) -> str:
    """The error as it is printed, without a final newline."""
    match error:
        case ParseError():
            return _describe_parse_error(error)
        case LocatedError():
            return _placed(error.place, "error", _house_style(error.message))
        case RecursionError():
            return "error: the program is nested too deeply"
        case MemoryError():
            what = f": {_house_style(str(error))}" if str(error) else ""
            return f"error: out of memory{what}"
        case ArgSpecParseError():
            _, place, *shown, message = str(error).splitlines()
            head = f"error: {place}: {_house_style(message.strip())}"
            return "\n".join((head, *shown, _PIPELINES))
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{name}: error: {reason[0].lower()}{reason[1:]}"
        case OSError(strerror=str(reason)):
            return f"error: {reason[0].lower()}{reason[1:]}"
        case _:
            return f"error: {_house_style(str(error)) or type(error).__name__}"


def _house_style(message: str) -> str:
    """Removes initial capitals, also after a name (`func.return: Expected ...`), and
    final punctuation from a message of xDSL or the system."""
    return re.sub(
        r"^(\S+: )?([A-Z])(?=[a-z]*\b)",  # not PyTorch
        lambda match: (match[1] or "") + match[2].lower(),
        message.rstrip(".!\n "),
    )


def _describe_parse_error(error: ParseError) -> str:
    span, message = error.span, error.msg
    if match := re.match(r"values used but not defined: \[%([^],]+)", message):
        span, message = _first_use(match[1], span), f"%{match[1]} is not defined"
    elif re.fullmatch(r"Operation \S+ is not registered", message):
        name = message.split()[1]
        span, message = _before(span, name), _unknown_operation(name)
    elif message == "Could not parse entire input!":
        rest = str(span.input.content)[span.start :].lstrip()
        message = "expected an operation" + ", found '}'" * rest.startswith("}")
    elif message == "expected suffix identifier after {first_char}":
        message = "expected a name after this character; is this MLIR?"
    elif message == "Expected shape type.":
        message = "expected an element type such as f32"
    elif message == " in block definition":
        return _describe_open_region(span)
    message = _house_style(message)
    if re.search(r"^expected|expected$", message) and re.fullmatch(r"\S+", span.text):
        message += f", found {span.text!r}"
    lines = [_at_span(span, "error", message)]
    if isinstance(error, MultipleSpansParseError):
        for other, note in error.refs:
            text = note or error.ref_text or "see here"
            lines.append(_at_span(other, "note", _house_style(text).rstrip(":")))
    return "\n".join(lines)


def _unknown_operation(name: str) -> str:
    """The message about an unregistered operation, or about a word that is not MLIR."""
    from xdsl.dialects import get_all_dialects as xdsl_dialects

    from ..dialects import get_all_dialects
    from ..frontends.mlir_text import MLIRS_DIALECTS

    dialect, dot, _ = name.partition(".")
    if not dot:
        return f"expected an operation such as func.func, found {name!r}; is this MLIR?"
    message = f"operation {name} is not registered"
    if factory := (xdsl_dialects() | get_all_dialects()).get(dialect):
        message += suggest(name, [op.name for op in factory().operations])
        if dialect in get_all_dialects():
            return message
    if dialect in MLIRS_DIALECTS:
        return (
            f"{message}; lower it with mlir-opt to linalg on memrefs, or give the "
            "generic form (mlir-opt -mlir-print-op-generic)"
        )
    return (
        f"{message}; lower it with mlir-opt to linalg on memrefs, or give "
        "plan-opt --allow-unregistered-dialect and the generic form"
    )


def _before(span: "AnySpan", name: str) -> "AnySpan":
    """The span of the last `name` that starts before `span`; xDSL reports what follows
    an unknown name."""
    content = span.input.content
    assert isinstance(content, str)
    start = content.rfind(name, 0, span.start + len(name))
    return replace(span, start=start, end=start + len(name)) if start >= 0 else span


_BRACES = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|[{}]')


def _describe_open_region(span: "AnySpan") -> str:
    """The error for text in a region that is no operation, or for a missing `}`.

    xDSL only reports `in block definition`.
    """
    content = span.input.content
    assert isinstance(content, str)
    opened: list[int] = []
    for match in _BRACES.finditer(content, 0, span.start):
        if match[0] == "{":
            opened.append(match.start())
        elif match[0] == "}" and opened:
            opened.pop()
    is_end = not content[span.start :].strip()
    message = "expected '}'" if is_end else "expected an operation or '}'"
    lines = [_at_span(span, "error", message)]
    if opened:
        brace = replace(span, start=opened[-1], end=opened[-1] + 1)
        lines.append(_at_span(brace, "note", "to match this '{'"))
    return "\n".join(lines)


def _first_use(name: str, end: "AnySpan") -> "AnySpan":
    """The span of an undefined value's first use; xDSL reports the end of the file.

    Returns `end` if another scope defines the name: which use is wrong is then unknown.
    """
    file = end.input
    assert isinstance(file.content, str)
    value = rf"%{re.escape(name)}(?![\w$.-])"
    if re.search(rf"{value}(:\d+)?\s*=|\([^()]*{value}\s*:", file.content):
        return end
    use = re.search(value, file.content)
    return replace(end, start=use.start(), end=use.end()) if use else end


def _at_span(span: "AnySpan", severity: str, message: str) -> str:
    content = span.input.content
    data = content.encode() if isinstance(content, str) else content
    place = span.get_location()
    head = f"{place}: {severity}: {message}"
    return "\n".join((head, *_excerpt(data, place.line - span.line_offset, place.col)))


def _placed(place: str | None, severity: str, message: str) -> str:
    """The message with its location; its remaining lines follow the source line."""
    head, *more = message.splitlines() or [""]
    if place is None:
        return "\n".join((f"{severity}: {head}", *more))
    file, line, column = place.rsplit(":", 2)
    excerpt = _excerpt(_read.get(file, b""), int(line), int(column))
    return "\n".join((f"{place}: {severity}: {head}", *excerpt, *more))


def _excerpt(data: bytes, line: int, column: int) -> Sequence[str]:
    """The source line and a line with a caret; empty if there is no such line."""
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
