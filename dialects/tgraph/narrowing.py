"""Contractions of what is stored in fewer bytes than it is multiplied in.

Quantised models multiply 8-bit numbers and add up in 32 bits, others bf16 in f32. In
StableHLO that is a conversion of the operands, or a wider result; here the second only,
so that no operand is stored at the size of the result.
"""

from xdsl.dialects.builtin import IntegerAttr, IntegerType, Signedness, i8
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from ..compatibility import insert
from .base import TensorOp, tensor_type_of, with_element
from .elements import holds, is_integer, width_and_sign
from .elementwise import ConvertOp
from .reducing import ConvolutionOp, DotGeneralOp
from .shaping import ConstantOp, ViewOp


class NarrowOperands(RewritePattern):
    """contraction(convert(x), convert(w)) -> contraction(x, w), where the conversions
    lose nothing, and nobody else reads what they give.

    Views in between are made of `x` instead. A constant number that multiplies 8-bit
    integers, as a sum of windows has it, becomes one, too, if it fits.
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
    """What the value is converted from; None if it is not, or is needed so."""
    views: list[ViewOp] = []
    source = value
    while isinstance(view := source.owner, ViewOp):
        views.append(view)
        source = view.operands[0]
    if not isinstance(convert := source.owner, ConvertOp) or len(convert.operands) > 1:
        return None
    (narrow,) = convert.operands
    own, wide = _element(narrow), _element(source)
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
    """The same number in 8 bits, if `other` has such elements; None if it is wider, or
    no constant."""
    owner, own = value.owner, _element(value)
    if not isinstance(owner, ConstantOp) or not isinstance(owner.splat, IntegerAttr):
        return None
    is_narrow = _element(other) in (i8, IntegerType(8, Signedness.UNSIGNED))
    number = owner.splat.value.data
    if not is_narrow or not is_integer(own) or width_and_sign(own)[0] <= 8:
        return None
    if not -128 <= number < 128:
        return None
    type_ = with_element(tensor_type_of(value.type), i8)
    return insert(rewriter, ConstantOp(IntegerAttr(number, i8), type_)).result


def _element(value: SSAValue) -> Attribute:
    return tensor_type_of(value.type).element_type


def _is_contracted(value: SSAValue) -> bool:
    """Whether only contractions read the value, or views of it."""
    return all(
        isinstance(op := use.operation, DotGeneralOp | ConvolutionOp)
        or (isinstance(op, ViewOp) and _is_contracted(op.results[0]))
        for use in value.uses
    )
