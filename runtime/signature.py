"""What a program takes and gives: its inputs and results, in the caller's order.

Inputs are the entry function's arguments, in order, but for those that only receive a
result. Results are in the order of the program's signature, wherever the levels of the
IR keep them: new contents of a variable, a memref that is a destination, or a returned
value. An argument's attribute `tgraph.result = N` says that it holds result N; returned
values fill the numbers that are left, ascending; variables without the attribute come
last, in argument order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.base import (
    RESULT,
    VARIABLE,
    Shape,
    VariableType,
    is_static,
    tensor_type_of,
)
from tensorplan.runtime.dtypes import DType, numpy_dtype


@dataclass(frozen=True)
class Slot:
    """An input or a result."""

    value: SSAValue
    """The function argument or returned value that holds it."""

    shape: Shape
    dtype: DType


@dataclass(frozen=True)
class Input(Slot):
    is_variable: bool


@dataclass(frozen=True)
class Result(Slot):
    input: int | None
    """The number of the input, a variable, whose new contents this result is."""


@dataclass(frozen=True)
class Signature:
    function: FuncOp
    inputs: Sequence[Input]
    results: Sequence[Result]


def signature(module: ModuleOp, entry: str = "main") -> Signature:
    """The signature of the function `entry`.

    Raises `LocatedError` if there is no such function, if it has several blocks, a type
    without static shape, or result numbers that do not fit together.
    """
    function = _find(module, entry)
    inputs: list[Input] = []
    numbered: dict[int, Result] = {}
    last: list[Result] = []
    for index, argument in enumerate(function.body.block.args):
        attributes = _attributes(function, index)
        is_variable = isinstance(argument.type, VariableType) or VARIABLE in attributes
        number = attributes.get(RESULT)
        if is_variable or number is None:
            inputs.append(Input(*_slot(argument, function), is_variable))
        if isinstance(number, IntegerAttr):
            result = _result(argument, function, inputs, is_variable)
            if numbered.setdefault(number.value.data, result) is not result:
                raise LocatedError(
                    f"two arguments hold result {number.value.data}, expected one",
                    function,
                )
        elif is_variable:
            last.append(_result(argument, function, inputs, is_variable))
    terminator = function.body.block.last_op
    assert isinstance(terminator, ReturnOp)
    returned = [Result(*_slot(v, function), None) for v in terminator.arguments]
    count = len(numbered) + len(returned)
    if wrong := [number for number in numbered if not 0 <= number < count]:
        raise LocatedError(
            f"tgraph.result is {wrong[0]}, expected 0 to {count - 1}: there are "
            f"{count} results",
            function,
        )
    rest = iter(returned)
    results = [numbered[n] if n in numbered else next(rest) for n in range(count)]
    return Signature(function, inputs, [*results, *last])


def _find(module: ModuleOp, entry: str) -> FuncOp:
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    for function in functions:
        if function.sym_name.data == entry:
            break
    else:
        names = ", ".join(f"@{f.sym_name.data}" for f in functions) or "none"
        raise LocatedError(f"no function @{entry} in the module, which has {names}")
    first = function.body.first_block
    if first is None or first.next_block is not None:
        raise LocatedError(
            f"function @{entry} has {len(function.body.blocks)} blocks, expected one",
            function,
        )
    if not isinstance(first.last_op, ReturnOp):
        raise LocatedError(f"function @{entry} does not end with func.return", function)
    return function


def _attributes(function: FuncOp, index: int) -> dict[str, object]:
    """The attributes of an argument."""
    if function.arg_attrs is None:
        return {}
    attributes = function.arg_attrs.data[index]
    assert isinstance(attributes, DictionaryAttr)
    return dict(attributes.data)


def _slot(value: SSAValue, function: FuncOp) -> tuple[SSAValue, Shape, DType]:
    type = tensor_type_of(value.type)
    if not is_static(type):
        raise LocatedError(f"type {value.type} is not of static shape", function)
    return value, type.get_shape(), numpy_dtype(type.element_type, function)


def _result(
    argument: SSAValue, function: FuncOp, inputs: Sequence[Input], is_variable: bool
) -> Result:
    return Result(*_slot(argument, function), len(inputs) - 1 if is_variable else None)
