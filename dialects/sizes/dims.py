"""Symbolic sizes in the IR: the encoding of tensors whose sizes each call determines.

    tensor<?x784xf32, #tgraph.dims<2*n + 1>>
    tensor<?x?xf32, #tgraph.dims<b, t, "cpu:0">>

The attribute gives the value of each `?` of the type, in order, then the device, if the
tensor is placed. A `?` in the attribute is a size that `tgraph-infer-shapes` has yet to
find. The type of a memref has only the `?`; the arguments of functions on memrefs keep
the attribute beside their type, under the name `tgraph.dims`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DictionaryAttr,
    IntegerAttr,
    NoneAttr,
    StringAttr,
)
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...support.choices import one_of
from .symbolic import FUNCTIONS, Size, Symbolic, names_in, symbol, typical

DIMS = "tgraph.dims"
"""Attribute of a memref argument: the value of each `?` of its type."""

REQUIRES = "tgraph.requires"
"""Attribute of a function: sizes that must not be negative (`#tgraph.dims<n - 8>`)."""

BOUNDS = "tgraph.bounds"
"""Dictionary attribute of a function: the largest value of each name (`n = 128`) for
which the function's arenas are planned."""


HINTS = "tgraph.hints"
"""Dictionary attribute of a function: a typical value of each name. For these values,
the offsets computed at run time are those of the plan."""


class Dims(NamedTuple):
    sizes: tuple[Size, ...]
    device: str | None = None

    def __str__(self) -> str:
        sizes = ("?" if size == DYNAMIC_INDEX else str(size) for size in self.sizes)
        device = () if self.device is None else (f'"{self.device}"',)
        return ", ".join((*sizes, *device))


@irdl_attr_definition
class DimsAttr(Data[Dims]):
    """The value of each `?` of a type, and the device of a tensor."""

    name = "tgraph.dims"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Dims:
        with parser.in_angle_brackets():
            sizes: list[Size] = []
            device = None
            while device is None:
                if (device := parser.parse_optional_str_literal()) is None:
                    unknown = parser.parse_optional_punctuation("?")
                    sizes.append(DYNAMIC_INDEX if unknown else _parse_sum(parser))
                if parser.parse_optional_punctuation(",") is None:
                    break
        return Dims(tuple(sizes), device)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


def _parse_sum(parser: AttrParser) -> Size:
    minus = parser.parse_optional_punctuation("-")
    size = _parse_product(parser)
    if minus:
        size = -size
    while True:
        if parser.parse_optional_punctuation("+"):
            size = size + _parse_product(parser)
        elif parser.parse_optional_punctuation("-"):
            size = size - _parse_product(parser)
        else:
            return size


def _parse_product(parser: AttrParser) -> Size:
    size = _parse_factor(parser)
    while parser.parse_optional_punctuation("*"):
        size = size * _parse_factor(parser)
    return size


def _parse_factor(parser: AttrParser) -> Size:
    if parser.parse_optional_punctuation("("):
        size = _parse_sum(parser)
        parser.parse_punctuation(")")
        return size
    number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    if number is not None:
        return number
    position = parser.pos
    name = parser.parse_identifier("a size")
    if parser.parse_optional_punctuation("(") is None:
        return symbol(name)
    if name not in FUNCTIONS:
        parser.raise_error(f"function {one_of(name, FUNCTIONS)}", position)
    arguments = [_parse_sum(parser)]
    while parser.parse_optional_punctuation(","):
        arguments.append(_parse_sum(parser))
    parser.parse_punctuation(")")
    if name in ("floordiv", "mod"):
        if len(arguments) != 2:
            found = f"{len(arguments)} arguments, expected 2"
            parser.raise_error(f"{name} has {found}", position)
        if arguments[1] == 0:
            parser.raise_error(f"{name} has divisor 0, expected another", position)
    return FUNCTIONS[name](*arguments)


def encoding_of(sizes: Sequence[Size], device: str | None) -> Attribute:
    """The encoding of a tensor of these sizes on a device."""
    if any(isinstance(size, Symbolic) for size in sizes):
        return DimsAttr(Dims(tuple(filter(is_dynamic, sizes)), device))
    return NoneAttr() if device is None else StringAttr(device)


def named_sizes(
    shape: Sequence[int], dims: Attribute | None, argument: int
) -> tuple[Size, ...]:
    """The sizes of a function argument. An unnamed size is called `arg0_1`: argument 0,
    dimension 1."""
    return tuple(
        symbol(f"arg{argument}_{dim}") if size == DYNAMIC_INDEX else size
        for dim, size in enumerate(known_sizes(shape, dims))
    )


def violated(required: Attribute | None, values: Mapping[str, int]) -> str | None:
    """A message about a size of `REQUIRES` that is negative for these values of names;
    None if none is negative.

    Raises `KeyError` for a name without a value.
    """
    for size in required.data.sizes if isinstance(required, DimsAttr) else ():
        names = dict.fromkeys(names_in(size))
        if typical(size, {name: values[name] for name in names}) < 0:
            given = ", ".join(f"{name} is {values[name]}" for name in names)
            return f"{given}, expected {size} >= 0"
    return None


def numbers_in(values: Attribute | None) -> dict[str, int]:
    """The number for each name in `BOUNDS` or `HINTS`."""
    items = values.data.items() if isinstance(values, DictionaryAttr) else ()
    return {
        name: value.value.data
        for name, value in items
        if isinstance(value, IntegerAttr)
    }


def is_dynamic(size: Size) -> bool:
    """Whether a type has `?` for the size: it is symbolic or unknown."""
    return isinstance(size, Symbolic) or size == DYNAMIC_INDEX


def static(sizes: Sequence[Size]) -> list[int]:
    """The sizes as in a type, with `?` for all that are not numbers."""
    return [s if isinstance(s, int) else DYNAMIC_INDEX for s in sizes]


def known_sizes(shape: Sequence[int], dims: Attribute | None) -> tuple[Size, ...]:
    """A type's shape with the sizes in its attribute `dims` for the `?`; without the
    attribute, `?` remains."""
    if not isinstance(dims, DimsAttr):
        return tuple(shape)
    sizes = dims.data.sizes
    if len(sizes) != shape.count(DYNAMIC_INDEX):
        raise VerifyException(
            f"{dims} has {len(sizes)} sizes, expected {shape.count(DYNAMIC_INDEX)}: "
            "one for each ?"
        )
    rest = iter(sizes)
    return tuple(next(rest) if size == DYNAMIC_INDEX else size for size in shape)
