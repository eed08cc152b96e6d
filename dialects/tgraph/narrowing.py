"""Contractions of operands with narrower elements than the products.

Quantized models multiply 8-bit numbers and add in 32 bits, others multiply bf16 and add
in f32. StableHLO expresses that by converting the operands, or by a wider result.
tgraph uses only a wider result, so that no operand is stored at the size of the result.
"""

from xdsl.dialects.builtin import IntegerAttr, i8
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from ..compatibility import insert
from .base import TensorOp, tensor_type_of, value_element, with_element
from .elements import holds, is_integer, ui8, width_and_sign
from .elementwise import ConvertOp
from .reducing import ConvolutionOp, DotGeneralOp
from .shaping import ConstantOp, ViewOp


class NarrowOperands(RewritePattern):
    """contraction(convert(x), convert(w)) -> contraction(x, w), if the conversions are
    exact and have no other uses.

    Views in between become views of `x`. A constant integer that multiplies 8-bit
    integers, as in a sum over windows, becomes an 8-bit one, too, if it fits.
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        assert isinstance(op, TensorOp)
        if not op.results:
            return
        for index, value in enumerate(op.operands[:2]):
            narrow = _narrow(value, rewriter)
            if narrow is None:
                narrow = _narrow_number(value, op.operands[1 - index], rewriter)
            if narrow is not None:
                op.operands[index] = narrow
                rewriter.notify_op_modified(op)


def _narrow(value: SSAValue, rewriter: PatternRewriter) -> SSAValue | None:
    """The value before its conversion, with the same views; None if there is no exact
    conversion, or it has other uses."""
    views: list[ViewOp] = []
    source = value
    while isinstance(view := source.owner, ViewOp):
        views.append(view)
        source = view.operands[0]
    if not isinstance(convert := source.owner, ConvertOp) or len(convert.operands) > 1:
        return None
    (narrow,) = convert.operands
    own, wide = value_element(narrow), value_element(source)
    if own == wide or not holds(wide, own) or not _is_contracted(source):
        return None
    for view in reversed(views):
        type_ = with_element(tensor_type_of(view.result.type), own)
        new = type(view).create(
            operands=(narrow,),
            result_types=(type_,),
            properties=view.properties,
            attributes=view.attributes,
            location=view.location,
        )
        narrow = insert(rewriter, new).result
    return narrow


def _narrow_number(
    value: SSAValue, other: SSAValue, rewriter: PatternRewriter
) -> SSAValue | None:
    """The constant `value` in 8 bits, if `other` has such elements; None if it is not a
    constant, or does not fit."""
    owner, own = value.owner, value_element(value)
    if not isinstance(owner, ConstantOp) or not isinstance(owner.splat, IntegerAttr):
        return None
    is_narrow = value_element(other) in (i8, ui8)
    number = owner.splat.value.data
    if not is_narrow or not is_integer(own) or width_and_sign(own)[0] <= 8:
        return None
    if not -128 <= number < 128:
        return None
    type_ = with_element(tensor_type_of(value.type), i8)
    return insert(rewriter, ConstantOp(IntegerAttr(number, i8), type_)).result


def _is_contracted(value: SSAValue) -> bool:
    """Whether only contractions read the value or its views."""
    return all(
        isinstance(op := use.operation, DotGeneralOp | ConvolutionOp)
        or (isinstance(op, ViewOp) and _is_contracted(op.results[0]))
        for use in value.uses
    )
