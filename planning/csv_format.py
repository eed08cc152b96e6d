"""Buffers as CSV, in the format of minimalloc.

    id,lower,upper,size,alignment,gaps
    a,0,10,4096,64,2-4 6-7
    b,3,5,512,1,

Columns come in any order, between commas, semicolons, tabs, or bars. `lower` may be
called `begin` or `start`, `upper` `end`, and `id` `buffer` or `buffer_id`. `alignment`,
`gaps`, `offset`, `hint` and `pool` may be missing, or empty in some rows; columns of
any other name are preserved. A negative hint means no hint, as in minimalloc. Sizes and
alignments may have a unit: `1.5KiB`.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..support.byte_sizes import parse_size
from .problem import Buffer, Steps

_NAMES = {
    name: column
    for column, names in {
        "id": ("id", "buffer", "buffer_id"),
        "lower": ("lower", "begin", "start"),
        "upper": ("upper", "end"),
        "size": ("size",),
        "alignment": ("alignment",),
        "gaps": ("gaps",),
        "offset": ("offset",),
        "hint": ("hint",),
        "pool": ("pool",),
    }.items()
    for name in names
}
_REQUIRED = ("id", "lower", "upper", "size")


class CsvError(ValueError):
    """An error in a line. Lines are counted from 1."""

    def __init__(self, line: int, reason: str):
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Table:
    """A file as it was read, and its buffers, one for each row."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    buffers: Sequence[Buffer]
    separator: str = ","


def separator_of(header: str) -> str:
    """The separator for which a header has the required columns; a comma by default."""
    for separator in ";\t|":
        columns = {_NAMES.get(name.strip(' "')) for name in header.split(separator)}
        if columns.issuperset(_REQUIRED):
            return separator
    return ","


def read(
    text: str,
    *,
    inclusive: bool = False,
    alignment: int = 1,
    keep_offsets: bool = False,
) -> Table:
    """Reads the buffers in a file's text. Raises `CsvError`.

    `inclusive`: whether the upper ends of live ranges and gaps belong to them.
    `alignment`: bytes, for rows that state none. `keep_offsets`: whether the offsets in
    the file are given offsets; otherwise they are ignored.
    """
    separator = separator_of(text.lstrip().partition("\n")[0].rstrip("\r"))
    reader = csv.reader(io.StringIO(text), strict=True, delimiter=separator)
    header: list[str] = []
    columns: dict[str, int] = {}
    rows: list[list[str]] = []
    buffers: list[Buffer] = []
    lines: dict[str, int] = {}  # of the buffers, by id
    try:
        if text.lstrip().startswith(("{", "[")):
            raise ValueError(f"this is JSON, expected CSV: {','.join(_REQUIRED)}")
        for row in reader:
            if not any(field.strip() for field in row):
                continue
            if not header:
                header = [name.strip() for name in row]
                columns = _columns(header)
                continue
            if len(row) != len(header):
                raise ValueError(f"there are {len(row)} fields, expected {len(header)}")
            fields = {column: row[at].strip() for column, at in columns.items()}
            if not keep_offsets:
                fields.pop("offset", None)
            buffer = _buffer(fields, int(inclusive), alignment)
            if buffer.id in lines:
                line = lines[buffer.id]
                raise ValueError(f"buffer {buffer.id} is in line {line} already")
            lines[buffer.id] = reader.line_num
            buffers.append(buffer)
            rows.append(row)
        if not header:
            raise ValueError(f"there is no header, expected {','.join(_REQUIRED)}")
    except (ValueError, csv.Error) as error:
        raise CsvError(max(reader.line_num, 1), str(error)) from None
    return Table(header, rows, buffers, separator)


def write(table: Table, offsets: Sequence[int]) -> str:
    """The table's text with a column `offset`, in bytes, which replaces an old one."""
    header, rows = list(table.header), [list(row) for row in table.rows]
    if "offset" in header:
        at = header.index("offset")
    else:
        at = len(header)
        header.append("offset")
    for row, offset in zip(rows, offsets, strict=True):
        row[at : at + 1] = [str(offset)]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=table.separator, lineterminator="\n")
    writer.writerows([header, *rows])
    return text.getvalue()


def _columns(header: Sequence[str]) -> dict[str, int]:
    """The positions of the known columns, by the first of their names."""
    columns: dict[str, int] = {}
    for at, name in enumerate(header):
        column = _NAMES.get(name)
        if column in columns:
            raise ValueError(
                f"columns {header[columns[column]]} and {name} have the same meaning"
            )
        if column:
            columns[column] = at
    for column in _REQUIRED:
        if column not in columns:
            names = " or ".join(name for name in _NAMES if _NAMES[name] == column)
            expected = ",".join(_REQUIRED)
            raise ValueError(f"there is no column {names}, expected {expected}")
    return columns


def _buffer(fields: Mapping[str, str], after_upper: int, alignment: int) -> Buffer:
    def optional(column: str) -> int | None:
        return _integer(column, fields[column]) if fields.get(column) else None

    hint = optional("hint")
    own_alignment = fields.get("alignment")
    return Buffer(
        fields["id"],
        _bytes("size", fields["size"]),
        _integer("lower", fields["lower"]),
        _integer("upper", fields["upper"]) + after_upper,
        _bytes("alignment", own_alignment) if own_alignment else alignment,
        [_gap(gap, after_upper) for gap in fields.get("gaps", "").split()],
        optional("offset"),
        fields.get("pool", ""),
        hint if hint is not None and hint >= 0 else None,
    )


def _bytes(column: str, text: str) -> int:
    """Parses a number of bytes, which may have a unit: `1.5KiB`."""
    has_unit = text[:1].isdigit() and text[-1:].isalpha()
    return parse_size(text, column) if has_unit else _integer(column, text)


def _integer(column: str, text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,30}", text):
        raise ValueError(f"{column} is {text!r}, expected an integer")
    return int(text)


def _gap(text: str, after_upper: int) -> Steps:
    """Parses `a-b`. Rejects `a-b@c:d` (minimalloc), which frees bytes c to d only."""
    match = re.fullmatch(r"([+-]?[0-9]{1,30})-([+-]?[0-9]{1,30})", text)
    if not match:
        window = ": windows in gaps are not supported" if "@" in text else ""
        raise ValueError(f"gap is {text!r}, expected FIRST-END{window}")
    return int(match[1]), int(match[2]) + after_upper
