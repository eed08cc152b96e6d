"""Donation at level 1: an argument becomes a variable that holds a result afterwards.

    func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = tgraph.negate %a : tensor<4xf32>
      func.return %0 : tensor<4xf32>

    func.func @f(%a: !tgraph.variable<tensor<4xf32>> {tgraph.result = 0 : i32}) {
      %0 = tgraph.read %a : tensor<4xf32>
      %1 = tgraph.negate %0 : tensor<4xf32>
      tgraph.assign %a, %1 : tensor<4xf32>
      func.return

`donate_argnums` of `jax.jit` and convert-stablehlo-to-tgraph have the same effect.
"""

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import FunctionType, IntegerAttr, TensorType, i32
from xdsl.dialects.func import FuncOp, ReturnOp

from ..analysis.functions import (
    argument_attributes,
    result_attributes,
    set_argument_attributes,
    set_result_attributes,
)
from ..dialects.tgraph.base import DEVICE, PARAMETER, RESULT, AnyTensor, VariableType
from ..dialects.tgraph.structure import AssignOp, ReadOp


def donations(func: FuncOp) -> Iterator[tuple[int, int]]:
    """Yields the arguments that can be donated, with indices of returned values.

    An argument gets the first returned value of its type and device that no argument
    before it got. Parameters are not donated.
    """
    results = list(func.function_type.outputs)
    of_results = result_attributes(func)
    taken: set[int] = set()
    for argument, attributes in enumerate(argument_attributes(func)):
        type = func.function_type.inputs.data[argument]
        if not isinstance(type, TensorType) or PARAMETER in attributes:
            continue
        for index, result in enumerate(results):
            same_device = of_results[index].get(DEVICE) == attributes.get(DEVICE)
            if index not in taken and result == type and same_device:
                taken.add(index)
                yield argument, index
                break


def donate(func: FuncOp, argument: int, result: int) -> None:
    """Makes an argument a variable that holds the returned value `result` afterwards.

    `result` is an index among the returned values.
    """
    block = func.body.block
    returned = block.last_op
    assert isinstance(returned, ReturnOp)
    number = _number(func, result)
    old = block.args[argument]
    new = block.insert_arg(VariableType(cast(AnyTensor, old.type)), argument)
    new.name_hint = old.name_hint
    read = ReadOp(new)
    read.location = func.location
    old.replace_all_uses_with(read.result)
    block.erase_arg(old)
    values = list(returned.operands)
    assign = AssignOp(new, values.pop(result))
    assign.location = returned.location
    end = ReturnOp(*values)
    end.location = returned.location
    arguments, results = argument_attributes(func), result_attributes(func)
    arguments[argument][RESULT] = IntegerAttr(number, i32)
    del results[result]
    returned.detach()
    returned.erase()
    block.add_ops([assign, end])
    first = block.first_op
    assert first is not None
    block.insert_op_before(read, first)
    func.properties["function_type"] = FunctionType.from_lists(
        [value.type for value in block.args], [value.type for value in values]
    )
    set_argument_attributes(func, arguments)
    set_result_attributes(func, results)


def _number(func: FuncOp, result: int) -> int:
    """The number of a returned value among all results, some of which are variables."""
    taken = {
        index.value.data
        for attributes in argument_attributes(func)
        if isinstance(index := attributes.get(RESULT), IntegerAttr)
    }
    free = (number for number in range(len(taken) + result + 1) if number not in taken)
    return list(free)[result]
