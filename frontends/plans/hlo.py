"""Parses XLA's HLO text: computations, instructions, shapes, source locations.

    module = parse(text, "module_0001.jit_step.cpu_after_optimizations.txt")
    module.entry.root.opcode

The text of `--xla_dump_hlo_as_text` has one instruction per line, in the order of the
schedule if the module says `is_scheduled=true`. Newer versions write `%x#1` for element
1 of a tuple; it is parsed as a `get-tuple-element`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ...support.foreign_plan import ForeignPlanError
from .elements import element_width

_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{([^}]*)\})?")
_COMMENT = re.compile(r"/\*.*?\*/")
_COMPUTATION = re.compile(r"(ENTRY )?%?([\w.-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"\s+(ROOT )?%?([\w.-]+) = ")
_OPCODE = re.compile(r"\s*([a-z][\w-]*)\(")
_OPERAND = re.compile(r"%?([\w.-]+(?:#\d+)*)$")
_ENTRY_OF_TABLE = re.compile(r"(\d+) (.*)$")
_FIELD = re.compile(r"(\w+)=(\"[^\"]*\"|[^\s}]+)")

Index = tuple[int, ...]
"""The path to an element of a tuple: `(1, 0)` is `{1,0}`."""


@dataclass(frozen=True)
class Shape:
    """An array shape, or a tuple of `parts`."""

    dtype: str = ""
    sizes: tuple[int, ...] = ()
    minor_to_major: tuple[int, ...] = ()
    parts: "tuple[Shape, ...] | None" = None

    @property
    def elements(self) -> int:
        return prod(self.sizes)

    @property
    def bytes(self) -> int | None:
        """The size of an array; None for a tuple and for elements below a byte."""
        width = None if self.parts is not None else element_width(self.dtype)
        return None if width is None else width * self.elements

    def leaves(self, index: Index = ()) -> "Iterator[tuple[Index, Shape]]":
        """The shape and its nested parts with their paths, outer ones first."""
        yield index, self
        for number, part in enumerate(self.parts or ()):
            yield from part.leaves((*index, number))

    def __str__(self) -> str:
        if self.parts is not None:
            return f"({', '.join(map(str, self.parts))})"
        return f"{self.dtype}[{','.join(map(str, self.sizes))}]"


@dataclass(frozen=True)
class Instruction:
    name: str
    shape: Shape
    opcode: str
    operands: tuple[str, ...]
    attributes: Mapping[str, str]
    literal: str  # text in the parentheses: a constant's value, a parameter's number
    origin: str  # the operation in the user's program, or empty: `jit(f)/add`
    location: str  # `file:line:col` in the user's program, or empty

    def called(self, attribute: str) -> str:
        """The name of the computation in an attribute."""
        return self.attributes[attribute].removeprefix("%")

    def numbers(self, attribute: str) -> list[int]:
        """The integers in an attribute, such as `dimensions={0,1}`."""
        return [*map(int, re.findall(r"-?\d+", self.attributes.get(attribute, "")))]


@dataclass(frozen=True)
class Computation:
    name: str
    instructions: Sequence[Instruction]
    root: Instruction

    @cached_property
    def by_name(self) -> Mapping[str, Instruction]:
        return {instruction.name: instruction for instruction in self.instructions}

    @cached_property
    def read_parts(self) -> AbstractSet[tuple[str, str]]:
        """The (tuple, index) pairs that `get-tuple-element` reads: `("sort", "1")`."""
        return {
            (i.operands[0], i.attributes["index"])
            for i in self.instructions
            if i.opcode == "get-tuple-element"
        }

    @cached_property
    def read_whole(self) -> AbstractSet[str]:
        """The names of values that an instruction uses as a whole, and of the root."""
        readers = (i for i in self.instructions if i.opcode != "get-tuple-element")
        return {self.root.name, *(name for i in readers for name in i.operands)}

    @cached_property
    def parameters(self) -> Sequence[Instruction]:
        found = [i for i in self.instructions if i.opcode == "parameter"]
        return sorted(found, key=lambda parameter: int(parameter.literal))


@dataclass(frozen=True)
class HloModule:
    name: str
    is_scheduled: bool
    computations: Mapping[str, Computation]
    entry: Computation
    aliases: Mapping[Index, int]
    """The parameter whose memory an element of the result reuses, by path."""


def parse(text: str, name: str) -> HloModule:
    """Parses one HLO module. Raises `ForeignPlanError` for other text."""
    lines = text.splitlines()
    head = next((line for line in lines if line.strip()), "")
    if not head.startswith("HloModule "):
        raise ForeignPlanError("this is not the text of an HLO module", name)
    try:
        frames = _frames(lines)
    except ValueError:
        raise ForeignPlanError("the stack frames cannot be read", name) from None
    computations: dict[str, Computation] = {}
    entry: Computation | None = None
    begin: tuple[int, re.Match[str]] | None = None
    for number, line in enumerate(lines):
        if found := _COMPUTATION.match(_COMMENT.sub("", line)):
            begin = number, found
        elif line.startswith("}") and begin is not None:
            start, found = begin
            body = enumerate(lines[start + 1 : number], start + 2)
            computation = _computation(found[2], body, frames, name)
            computations[computation.name] = computation
            entry = computation if found[1] else entry
            begin = None
    if entry is None:
        raise ForeignPlanError("the module has no ENTRY computation", name)
    return HloModule(
        re.split(r"[ ,]", head)[1],
        "is_scheduled=true" in head,
        computations,
        entry,
        _aliases(head),
    )


def _computation(
    name: str,
    lines: Iterator[tuple[int, str]],
    frames: Mapping[int, str],
    file: str,
) -> Computation:
    instructions: dict[str, Instruction] = {}
    root: Instruction | None = None
    for number, line in lines:
        if (found := _INSTRUCTION.match(line)) is None:
            continue
        try:
            instruction = _instruction(found[2], line[found.end() :], frames)
            for operand in instruction.operands:
                _add_parts(operand, instructions)
        except (LookupError, ValueError, RecursionError):
            raise ForeignPlanError(
                f"{found[2]} cannot be read as an instruction", f"{file}:{number}"
            ) from None
        instructions[instruction.name] = instruction
        root = instruction if found[1] else root
    if root is None:
        raise ForeignPlanError(f"the computation {name} has no ROOT", file)
    return Computation(name, [*instructions.values()], root)


def _add_parts(operand: str, instructions: dict[str, Instruction]) -> None:
    """Adds the instructions for `%x#1#0`, unless they exist."""
    whole, _, part = operand.rpartition("#")
    if not whole or operand in instructions:
        return
    _add_parts(whole, instructions)
    tuple_ = instructions[whole]
    shape = (tuple_.shape.parts or ())[int(part)]
    instructions[operand] = Instruction(
        *(operand, shape, "get-tuple-element", (whole,), {"index": part}),
        *("", tuple_.origin, tuple_.location),
    )


def _instruction(name: str, text: str, frames: Mapping[int, str]) -> Instruction:
    text = _COMMENT.sub("", text)
    shape, rest = _shape(text)
    opcode = _OPCODE.match(rest)
    if opcode is None:
        raise ValueError(rest)
    arguments = [*_split(rest, opcode.end())]
    close = opcode.end() + sum(map(len, arguments)) + max(len(arguments) - 1, 0)
    attributes = dict[str, str]()
    for part in _split(rest, close + 1):
        key, _, value = part.strip().partition("=")
        attributes[key] = value
    literal = ",".join(arguments)
    is_literal = opcode[1] in ("constant", "parameter", "iota")
    operands = () if is_literal else tuple(_operand(a) for a in arguments if a.strip())
    metadata = attributes.get("metadata", "")
    origin = dict(_FIELD.findall(metadata)).get("op_name", "").strip('"')
    location = _location(metadata, frames)
    return Instruction(
        name, shape, opcode[1], operands, attributes, literal, origin, location
    )


def _operand(text: str) -> str:
    """The name of an operand; older versions write its type first."""
    found = _OPERAND.search(text.strip())
    if found is None:
        raise ValueError(text)
    return found[1]


def _shape(text: str) -> tuple[Shape, str]:
    """Parses a shape at the start of the text; returns it and the rest of the text."""
    text = text.lstrip()
    if not text.startswith("("):
        if (array := _ARRAY.match(text)) is None:
            raise ValueError(text)
        sizes = tuple(int(n.strip("<= ")) for n in array[2].split(",") if n)
        layout = (array[3] or "").partition(":")[0]
        order = tuple(int(n) for n in layout.split(",") if n)
        order = order or tuple(reversed(range(len(sizes))))
        return Shape(array[1], sizes, order), text[array.end() :]
    parts: list[Shape] = []
    text = text[1:].lstrip()
    while not text.startswith(")"):
        part, text = _shape(text)
        parts.append(part)
        text = text.lstrip().removeprefix(",").lstrip()
    return Shape(parts=tuple(parts)), text[1:]


def _split(text: str, begin: int) -> Iterator[str]:
    """Splits the text from `begin` to the closing parenthesis at commas."""
    depth, start, quoted = 0, begin, False
    for at in range(begin, len(text)):
        char = text[at]
        if char == '"' and text[at - 1] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                yield text[start:at]
                return
        elif char == "," and not depth:
            yield text[start:at]
            start = at + 1
    if text[start:].strip():
        yield text[start:]


def _aliases(head: str) -> Mapping[Index, int]:
    """Parses `input_output_alias={ {0}: (1, {}, may-alias) }`."""
    _, _, text = head.partition("input_output_alias={")
    found: dict[Index, int] = {}
    for output, number in re.findall(r"\{([\d, ]*)\}: \((\d+), \{", text):
        found[tuple(map(int, re.findall(r"\d+", output)))] = int(number)
    return found


def _frames(lines: Sequence[str]) -> Mapping[int, str]:
    """`file:line:col` by stack frame, from the tables before the computations."""
    names = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
    tables: dict[str, dict[int, str]] = {name: {} for name in names}
    table: dict[int, str] | None = None
    for line in lines:
        if line in tables:
            table = tables[line]
        elif table is not None and (entry := _ENTRY_OF_TABLE.match(line)):
            table[int(entry[1])] = entry[2]
        elif line:
            table = None
    frames: dict[int, str] = {}
    for number, frame in tables["StackFrames"].items():
        place = dict(_FIELD.findall(frame)).get("file_location_id", "0")
        fields = dict(_FIELD.findall(tables["FileLocations"].get(int(place), "")))
        file = tables["FileNames"].get(int(fields.get("file_name_id", 0)), "")
        if file:
            frames[number] = _place(file, fields.get("line"), fields.get("column"))
    return frames


def _location(metadata: str, frames: Mapping[int, str]) -> str:
    fields = dict(_FIELD.findall(metadata))
    if frame := fields.get("stack_frame_id"):
        return frames.get(int(frame), "")
    if file := fields.get("source_file", ""):
        return _place(file, fields.get("source_line"), fields.get("source_column"))
    return ""


def _place(file: str, line: str | None, column: str | None) -> str:
    return ":".join(filter(None, (file.strip('"'), line, column)))
