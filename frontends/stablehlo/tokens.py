"""Removes the tokens of StableHLO, which order operations with effects.

    %1:2 = stablehlo.while(%t = %token, %x = %0) ...  // the body prints %x
 -> %1 = stablehlo.while(%x = %0) ...

In `tgraph`, operations with effects stay in program order, so tokens say nothing more.
"""

from collections.abc import Sequence
from typing import TypeVar

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnregisteredAttr, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...analysis.functions import (
    argument_attributes,
    result_attributes,
    set_argument_attributes,
    set_result_attributes,
)
from ...dialects.diagnostics import name_of

ALIASING = "tf.aliasing_output"
"""The attribute of a donated argument: the number of the result in its memory."""

_MAKERS = ("stablehlo.after_all", "stablehlo.create_token")

_T = TypeVar("_T")


def erase_tokens(module: ModuleOp) -> None:
    """Removes all tokens, and the operations that only make them."""
    ops = list(module.walk())
    for op in ops:
        if any(map(_is_token, op.operands)):
            op.operands = [value for value in op.operands if not _is_token(value)]
        if isinstance(op, FuncOp):
            _retype(op)
    for op in ops:
        for block in (block for region in op.regions for block in region.blocks):
            for argument in reversed(block.args):
                if _is_token(argument):
                    block.erase_arg(argument)
        if any(map(_is_token, op.results)):
            _replace(op)


def _is_token(value: SSAValue) -> bool:
    return _is_token_type(value.type)


def _is_token_type(type: Attribute) -> bool:
    is_known = not isinstance(type, UnregisteredAttr)
    return not is_known and type.attr_name.data == "stablehlo.token"


def _retype(func: FuncOp) -> None:
    """Removes tokens from the type of a function, with their attributes."""
    inputs, outputs = func.function_type.inputs.data, func.function_type.outputs.data
    if not any(map(_is_token_type, (*inputs, *outputs))):
        return
    arguments = _kept(argument_attributes(func), inputs)
    results = _kept(result_attributes(func), outputs)
    places = _kept(range(len(outputs)), outputs)
    for attributes in arguments:
        if isinstance(number := attributes.get(ALIASING), IntegerAttr):
            place = places.index(number.value.data)
            attributes[ALIASING] = IntegerAttr(place, i32)
    set_argument_attributes(func, [])
    func.function_type = type(func.function_type).from_lists(
        _kept(inputs, inputs), _kept(outputs, outputs)
    )
    set_argument_attributes(func, arguments)
    set_result_attributes(func, results)


def _kept(values: Sequence[_T], types: Sequence[Attribute]) -> list[_T]:
    """The values whose types are not tokens."""
    pairs = zip(values, types, strict=True)
    return [value for value, type in pairs if not _is_token_type(type)]


def _replace(op: Operation) -> None:
    """Replaces an operation by one without the results that are tokens."""
    if name_of(op) in _MAKERS:
        Rewriter.erase_op(op)
        return
    kept = [result for result in op.results if not _is_token(result)]
    new = type(op).create(
        operands=op.operands,
        result_types=[result.type for result in kept],
        properties=op.properties,
        attributes=op.attributes,
        regions=[op.detach_region(region) for region in list(op.regions)],
        location=op.location,
    )
    replaced: dict[SSAValue, SSAValue] = dict(zip(kept, new.results, strict=True))
    Rewriter.replace_op(op, new, [replaced.get(result) for result in op.results])
