"""Finds the names of the symbolic sizes of a function's arguments.

`jax.export` leaves `?` in the types. The function computes its symbols from sizes,
passes them to a callee as `jax.global_constant`, and asserts conditions on them:

    %0 = stablehlo.get_dimension_size %arg0, dim = 0      # arg0_0
    %1 = call @floor_divide(%0 - 1, %c2)                  # n
    %2 = call @_wrapped_jax_export_main(%1, %arg0)        # jax.global_constant = "n"

Solved for the size, this gives `arg0_0 = 2*n + 1`. A size without a symbol is named by
its argument and dimension, `arg0_0`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import (
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation

from ...analysis.functions import argument_attributes
from ...dialects.diagnostics import LocatedError, name_of
from ...dialects.sizes.dims import named_sizes
from ...dialects.sizes.symbolic import (
    Size,
    inverse,
    is_known_at_least,
    names_in,
    substitute,
    symbol,
)
from ...dialects.tgraph.base import AnyTensor, shape_of, with_shape
from ...dialects.tgraph.elementwise import CompareOp
from ..unsupported import Unsupported
from .conversion import Conversion, Values
from .sizes import sizes_of

_SYMBOL = "jax.global_constant"


@dataclass
class Demands:
    """The conditions that a program asserts on its sizes."""

    zero: list[Size] = field(default_factory=list[Size])
    not_negative: list[Size] = field(default_factory=list[Size])

    def add(self, c: Conversion) -> None:
        """Adds the condition of a `shape_assertion`, or raises `Unsupported`."""
        compare = c.inputs[0].owner
        if not isinstance(compare, CompareOp):
            raise Unsupported("on something other than a comparison")
        sides = [sizes_of(value) for value in compare.inputs]
        if None in sides:
            raise Unsupported("on values that are not computed from sizes")
        (left, *_), (right, *_) = cast(list[Sequence[Size]], sides)
        match compare.direction.data:
            case "EQ":
                self.zero.append(left - right)
            case "GE":
                self.not_negative.append(left - right)
            case "GT":
                self.not_negative.append(left - right - 1)
            case "LE":
                self.not_negative.append(right - left)
            case "LT":
                self.not_negative.append(right - left - 1)
            case other:
                raise Unsupported(f"with {other}")

    def open(self) -> list[Size]:
        """Sizes that must not be negative, except those that are known not to be."""
        both = [s for size in self.zero if size != 0 for s in (size, -size)]
        sizes = dict.fromkeys([*both, *self.not_negative])
        return [size for size in sizes if not is_known_at_least(size, 0)]


def is_assertion(op: Operation, c: Conversion) -> bool:
    target = c.attribute("call_target_name")
    return name_of(op) == "stablehlo.custom_call" and target == StringAttr(
        "shape_assertion"
    )


def computes_sizes(functions: Iterable[FuncOp]) -> bool:
    """Whether a function has an operation on dynamic sizes."""
    return any(
        name_of(op).startswith(("stablehlo.get_dimension_size", "stablehlo.dynamic_"))
        and name_of(op) not in _STATIC
        for func in functions
        for op in func.walk()
    )


_STATIC = ("stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice")


def named_by_place(types: Iterable[Attribute]) -> list[Attribute]:
    """The types of arguments, where a `?` is called `arg0_1` (argument, dimension)."""
    named: list[Attribute] = []
    for index, type in enumerate(types):
        if not isinstance(type, TensorType):
            named.append(type)
            continue
        tensor = cast(AnyTensor, type)
        shape = named_sizes(tensor.get_shape(), tensor.encoding, index)
        named.append(with_shape(tensor, cast(list[int], shape)))
    return named


def symbols_of(op: Operation, inputs: Values, callee: FuncOp) -> dict[str, Size]:
    """The sizes that a call passes for the symbols that its callee declares."""
    assert isinstance(op, CallOp)
    found: dict[str, Size] = {}
    attributes = argument_attributes(callee)
    for value, attrs in zip(inputs, attributes, strict=True):
        name = attrs.get(_SYMBOL)
        sizes = sizes_of(value)
        if isinstance(name, StringAttr) and name.data and sizes:
            found[name.data] = sizes[0]
    return found


def solved(
    types: Sequence[Attribute],
    symbols: Mapping[str, Size],
    zero: Iterable[Size],
    func: FuncOp,
) -> list[Attribute]:
    """The types, with names by place replaced by expressions of the program's symbols.

    Raises `LocatedError` for a symbol that can't be solved for a size.
    """
    values: dict[str, Size] = {}

    def solve(size: Size, value: Size) -> bool:
        for name in names_in(size):
            if name in symbols or name in values:
                continue
            if (found := inverse(size, name, value)) is not None:
                for known in values:
                    values[known] = substitute(values[known], {name: found})
                values[name] = found
                return True
        return False

    for name, size in symbols.items():
        if not solve(substitute(size, values), symbol(name)):
            raise LocatedError(f"symbol {name} is {size}, which is not linear", func)
    for size in zero:
        solve(substitute(size, values), 0)
    return [
        with_shape(
            cast(AnyTensor, type),
            cast(
                Sequence[int],
                [substitute(s, values) for s in shape_of(cast(AnyTensor, type))],
            ),
        )
        if isinstance(type, TensorType)
        else type
        for type in types
    ]
