"""Arithmetic on elements of storage types (f8, f4, i4, ...), in wider types.

    tgraph.add %x, %y : tensor<4xf8E4M3FN>        which the verifier refuses

    %0 = tgraph.convert %x : (tensor<4xf8E4M3FN>) -> tensor<4xf32>
    %1 = tgraph.convert %y : (tensor<4xf8E4M3FN>) -> tensor<4xf32>
    %2 = tgraph.add %0, %1 : tensor<4xf32>
    %3 = tgraph.convert %2 : (tensor<4xf32>) -> tensor<4xf8E4M3FN>

Each operation thus rounds its result, as XLA's FloatNormalization does. Frontends and
gradients write arithmetic in this way; canonicalize removes exact conversions.
"""

from collections.abc import Collection, Sequence

from xdsl.ir import Attribute, SSAValue

from .base import TensorOp, tensor_type_of, with_element
from .elements import (
    computed_type,
    is_integer,
    is_stored,
    limits,
    number_of,
    width_and_sign,
)
from .elementwise import (
    AndOp,
    ClampOp,
    ConvertOp,
    CountLeadingZerosOp,
    PopcntOp,
    ShiftRightLogicalOp,
    SubtractOp,
)
from .shaping import FullLikeOp

_OF_BITS = (CountLeadingZerosOp, PopcntOp, ShiftRightLogicalOp)
"""Operations on bits, whose result would change with a sign-extended operand."""


def widened(op: TensorOp) -> Sequence[TensorOp]:
    """The operation with operands of storage types converted to wider ones, and the
    result converted back. The last operation returned has the result.

    Operations that depend on the number of bits do not see the extended sign. Floats
    are clamped to the range of i4 or i2 before they are converted.
    """
    if isinstance(op, ConvertOp):
        return _limited(op)
    computed = {element for element in op.elements_computed() if is_stored(element)}
    if not computed:
        return [op]
    ops: list[TensorOp] = []
    operands = [*op.operands]
    for index, value in enumerate(operands):
        if (wide := _wide(value.type, computed)) != value.type:
            ops.append(convert := ConvertOp((value,), result_types=(wide,)))
            operands[index] = convert.result
    if isinstance(op, _OF_BITS):
        (narrow,) = computed
        ops += _with(operands[0], AndOp, (1 << width_and_sign(narrow)[0]) - 1)
        operands[0] = ops[-1].result
    new = type(op).create(
        operands=operands,
        result_types=[_wide(result.type, computed) for result in op.results],
        properties=op.properties,
        attributes=op.attributes,
    )
    ops.append(new)
    if isinstance(op, CountLeadingZerosOp):
        (narrow,) = computed
        added = width_and_sign(computed_type(narrow))[0] - width_and_sign(narrow)[0]
        ops += _with(new.result, SubtractOp, added)
    if (result := ops[-1].result).type != op.result.type:
        ops.append(ConvertOp((result,), result_types=(op.result.type,)))
    for each in ops:
        each.location = op.location
    op.drop_all_references()
    return ops


def _with(value: SSAValue, kind: type[TensorOp], number: int) -> Sequence[TensorOp]:
    """An operation on a value and a number, which becomes a tensor."""
    type = tensor_type_of(value.type)
    attribute = number_of(number, type.element_type)
    all_alike = FullLikeOp(
        (value,), result_types=(type,), properties={"value": attribute}
    )
    return all_alike, kind((value, all_alike.result), result_types=(type,))


def _wide(type: Attribute, computed: Collection[Attribute]) -> Attribute:
    """`type` with wider elements, if its element type is in `computed`."""
    tensor = tensor_type_of(type)
    element = tensor.element_type
    if element not in computed:
        return type
    return with_element(tensor, computed_type(element))


def _limited(op: ConvertOp) -> Sequence[TensorOp]:
    """The conversion of floats to i4 or i2, clamped to the range of the result."""
    (value,) = op.operands
    source, target = (tensor_type_of(v.type).element_type for v in (value, op.result))
    if not (is_stored(target) and is_integer(target)) or is_integer(source):
        return [op]
    type = tensor_type_of(_wide(value.type, {source}))
    ops: list[TensorOp] = []
    if value.type != type:
        ops.append(convert := ConvertOp((value,), result_types=(type,)))
        value = convert.result
    low, high = (
        FullLikeOp(
            (value,),
            result_types=(type,),
            properties={"value": number_of(number, type.element_type)},
        )
        for number in limits(target)
    )
    clamp = ClampOp((low.result, value, high.result), result_types=(type,))
    op.operands[0] = clamp.result
    ops += [low, high, clamp, op]
    for each in ops:
        each.location = op.location
    return ops
