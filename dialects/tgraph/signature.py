"""The signature of a program: its inputs and results, in the caller's order.

Inputs are the entry function's arguments, in order, except those that only receive a
result. Results are in the order of the program's signature, wherever the levels of the
IR hold them: as new contents of a variable, as a memref that is a destination, or as a
returned value. An argument's attribute `tgraph.result = N` says that it holds result N;
returned values take the remaining numbers, ascending; variables without the attribute
come last, in argument order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...support.arrays import DType, Shape
from ...support.ranges import indices
from ...support.slots import Input, Result
from ..diagnostics import LocatedError
from ..dtypes import numpy_dtype
from ..sizes.dims import DIMS, named_sizes
from .base import (
    DONATED,
    NAME,
    PARAMETER,
    RESULT,
    VARIABLE,
    VariableType,
    shape_of,
    tensor_type_of,
)

_Held: TypeAlias = tuple[Result, SSAValue]


@dataclass(frozen=True)
class Signature:
    function: FuncOp
    inputs: Sequence[Input]
    results: Sequence[Result]
    arguments: Sequence[SSAValue]
    """The function's argument for each input."""
    holders: Sequence[SSAValue]
    """The function's argument, or the returned value, that holds each result."""

    @property
    def input_names(self) -> Sequence[str]:
        """The name of each input in the model, or else in the program's text; empty for
        those without names."""
        return [
            slot.name or value.name_hint or ""
            for slot, value in zip(self.inputs, self.arguments, strict=True)
        ]

    @property
    def result_names(self) -> Sequence[str]:
        """The name of each result in the model, or of the variable that holds it."""
        returned = count()
        return [
            _name(self.function.arg_attrs, value.index)
            if isinstance(value, BlockArgument) and value in self.function.args
            else _name(self.function.res_attrs, next(returned))
            for value in self.holders
        ]


def signature(module: ModuleOp, entry: str = "main") -> Signature:
    """The signature of the function `entry`.

    Raises `LocatedError` if there is no such function, if it returns values and has
    several blocks, or if it has a type of unknown size, or inconsistent result numbers.
    """
    function = _find(module, entry)
    inputs: list[Input] = []
    arguments: list[SSAValue] = []
    numbered: dict[int, _Held] = {}
    last: list[_Held] = []
    for index, argument in enumerate(function.args):
        attributes = attributes_of(function, index)
        is_variable = isinstance(argument.type, VariableType) or VARIABLE in attributes
        number = attributes.get(RESULT)
        slot = _slot(argument, function, attributes.get(DIMS))
        if is_variable or number is None:
            is_parameter = PARAMETER in attributes and not is_variable
            is_donated = DONATED in attributes and not (is_variable or is_parameter)
            name = _name(function.arg_attrs, index)
            inputs.append(Input(*slot, is_variable, is_parameter, is_donated, name))
            arguments.append(argument)
        held = Result(*slot, len(inputs) - 1 if is_variable else None), argument
        if isinstance(number, IntegerAttr):
            if numbered.setdefault(number.value.data, held) is not held:
                raise LocatedError(
                    f"two arguments hold result {number.value.data}, expected one",
                    function,
                )
        elif is_variable:
            last.append(held)
    (terminator, *_) = _returns(function)
    returned = [(Result(*_slot(v, function), None), v) for v in terminator.arguments]
    total = len(numbered) + len(returned)
    if wrong := [number for number in numbered if not 0 <= number < total]:
        raise LocatedError(
            f"tgraph.result is {wrong[0]}, expected {indices(total)}: there are "
            f"{total} results",
            function,
        )
    rest = iter(returned)
    every = [numbered[n] if n in numbered else next(rest) for n in range(total)] + last
    results, holders = [result for result, _ in every], [value for _, value in every]
    return Signature(function, inputs, results, arguments, holders)


def _name(attributes: ArrayAttr[DictionaryAttr] | None, index: int) -> str:
    name = attributes and attributes.data[index].data.get(NAME)
    return name.data if isinstance(name, StringAttr) else ""


def is_number(type: Attribute) -> bool:
    return isinstance(type, IndexType | IntegerType | AnyFloat)


def _find(module: ModuleOp, entry: str) -> FuncOp:
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    for function in functions:
        if function.sym_name.data == entry:
            break
    else:
        names = ", ".join(f"@{f.sym_name.data}" for f in functions) or "none"
        raise LocatedError(f"no function @{entry} in the module, which has {names}")
    if not _returns(function):
        raise LocatedError(f"function @{entry} does not end with func.return", function)
    if function.function_type.outputs:
        check_one_block(function)
    return function


def check_one_block(function: FuncOp) -> None:
    """Raises `LocatedError` for a function with several blocks."""
    count = len(function.body.blocks)
    if count != 1:
        name = function.sym_name.data
        raise LocatedError(
            f"function @{name} has {count} blocks, expected one", function
        )


def _returns(function: FuncOp) -> Sequence[ReturnOp]:
    ends = (block.last_op for block in function.body.blocks)
    return [op for op in ends if isinstance(op, ReturnOp)]


def attributes_of(function: FuncOp, index: int) -> dict[str, object]:
    """The attributes of an argument."""
    if function.arg_attrs is None:
        return {}
    attributes = function.arg_attrs.data[index]
    assert isinstance(attributes, DictionaryAttr)
    return dict(attributes.data)


def _slot(
    value: SSAValue, function: FuncOp, dims: object = None
) -> tuple[Shape, DType]:
    """The shape and type of a value; `dims` has the sizes of a memref's `?`."""
    if is_number(value.type):
        return (), numpy_dtype(value.type, function)
    try:
        type = tensor_type_of(value.type)
        shape, element = shape_of(type), type.element_type
        if isinstance(value.type, MemRefType) and isinstance(value, BlockArgument):
            attribute = dims if isinstance(dims, Attribute) else None
            shape = cast(Shape, named_sizes(shape, attribute, value.index))
    except VerifyException as error:
        raise LocatedError(str(error), function) from None
    if DYNAMIC_INDEX in shape:
        raise LocatedError(f"type {type} has unknown sizes", function)
    return shape, numpy_dtype(element, function)
