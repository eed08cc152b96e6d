"""Folds elementwise operations on constants of one number, and those without effect.

The reference interpreter computes the numbers; it is imported, with NumPy, when it is
first needed. Only identities that hold bit by bit are used: `x + 0` is `x` for
integers, but not for floats, where `-0 + 0` is `0`.
"""

from collections.abc import Callable, Mapping, Sequence
from math import copysign, inf
from typing import TypeAlias, cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, i1
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from ..compatibility import replace
from ..diagnostics import LocatedError
from . import elementwise as ops
from .base import TensorOp, is_static, tensor_type_of, value_element
from .bounds import NEGATED, always, bounds
from .elements import holds, is_float, is_integer, width_and_sign
from .shaping import ConstantOp

Number: TypeAlias = IntegerAttr | FloatAttr
Numbers: TypeAlias = Sequence[Number | None]
"""For each operand, the number that all its elements are; None if there is none."""


class FoldElementwise(RewritePattern):
    """An elementwise operation -> a constant, an operand, or a simpler operation."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        assert isinstance(op, ops.ElementwiseOp)
        if not op.results or len(op.operands) != op.ARITY:
            return  # on memrefs, or into a variable
        numbers = [_number(value) for value in op.operands]
        if None not in numbers:
            number = _computed(op, numbers)
            if number is not None:
                _become(op, ConstantOp(number, op.result.type), rewriter)
                return
        for rule in _RULES.get(type(op), ()):
            new = rule(op, numbers)
            if isinstance(new, SSAValue):
                if not op.attributes and new.type == op.result.type:
                    replace(rewriter, op, (), (new,))
                    return
            elif new is not None:
                _become(op, new, rewriter)
                return


def _become(op: TensorOp, new: TensorOp, rewriter: PatternRewriter) -> None:
    new.location = op.location
    new.attributes = {**op.attributes}
    replace(rewriter, op, new)


def _number(value: SSAValue) -> Number | None:
    owner = value.owner
    if not isinstance(owner, ConstantOp):
        return None
    return owner.splat


def _computed(op: TensorOp, numbers: Numbers) -> Number | None:
    """The result of an operation on numbers; None if it is not defined on them."""
    from ..dtypes import constant, constant_attribute, numpy_dtype
    from .reference import evaluation as reference

    try:
        dtype, *dtypes = (
            numpy_dtype(value_element(value), op) for value in (op.result, *op.operands)
        )
        if dtype.kind == "c":
            return None  # complex numbers have no constants
        given = [
            constant(cast(Number, number), of)
            for number, of in zip(numbers, dtypes, strict=True)
        ]
        array = reference.evaluate(op, given)
    except (LocatedError, TypeError):
        return None  # no such elements, or the operation is not defined on them
    attribute = cast(Number, constant_attribute(array, value_element(op.result)))
    is_exact = constant(attribute, dtype).tobytes() == array.tobytes()
    return attribute if is_exact else None  # the attribute loses the bits of some NaN


# Identities

Rule: TypeAlias = Callable[[TensorOp, Numbers], SSAValue | TensorOp | None]
"""Returns a value or an operation that may replace an operation, or None. The operation
has these numbers as operands."""

Bits: TypeAlias = Callable[[int, bool], int]
"""Returns an integer of this many bits, signed or not, as an unsigned number."""

_LEFT, _RIGHT = 0, 1


def _zero(width: int, signed: bool) -> int:
    return 0


def _one(width: int, signed: bool) -> int:
    return 1


def _all_ones(width: int, signed: bool) -> int:
    return (1 << width) - 1


def _lowest(width: int, signed: bool) -> int:
    return 1 << (width - 1) if signed else 0


def _highest(width: int, signed: bool) -> int:
    return _all_ones(width, signed) ^ _lowest(width, signed)


def _is(number: Number | None, bits: Bits, real: float | None) -> bool:
    """Whether `number` is the integer, or the float including the sign of zero."""
    if isinstance(number, FloatAttr):
        value = number.value.data
        if real is None or value != real:
            return False
        return copysign(1, value) == copysign(1, real)
    if number is None:
        return False
    width, signed = width_and_sign(number.type)
    mask = _all_ones(width, signed)
    return number.value.data & mask == bits(width, signed)


def _neutral(
    bits: Bits, real: float | None = None, sides: Sequence[int] = (_LEFT, _RIGHT)
) -> Rule:
    """The rule that returns the other operand if this number is on one of the sides."""

    def rule(op: TensorOp, numbers: Numbers) -> SSAValue | None:
        for side in sides:
            if _is(numbers[side], bits, real):
                return op.operands[1 - side]
        return None

    return rule


def _absorbing(bits: Bits) -> Rule:
    """The rule that returns this integer if it is an operand."""

    def rule(op: TensorOp, numbers: Numbers) -> SSAValue | None:
        for number, operand in zip(numbers, op.operands, strict=True):
            if _is(number, bits, None):
                return operand
        return None

    return rule


def _idempotent(op: TensorOp, numbers: Numbers) -> SSAValue | None:
    """x op x -> x."""
    x, y = op.operands
    return x if x is y else None


def _of_itself(number: Callable[[TensorOp], bool]) -> Rule:
    """The rule for integers x op x -> 0 or 1. (For floats, the result may be NaN.)"""

    def rule(op: TensorOp, numbers: Numbers) -> TensorOp | None:
        x, y = op.operands
        type = tensor_type_of(op.result.type)
        if x is not y or not is_integer(value_element(x)) or not is_static(type):
            return None
        element = cast(IntegerType, type.element_type)
        return ConstantOp(IntegerAttr(int(number(op)), element), type)

    return rule


def _holds_for_equals(op: TensorOp) -> bool:
    return cast(ops.CompareOp, op).direction.data in ("EQ", "LE", "GE")


def _decided(op: TensorOp, numbers: Numbers) -> TensorOp | None:
    """A comparison of integers with disjoint or fixed ranges -> 0 or 1."""
    type = tensor_type_of(op.result.type)
    if not is_integer(value_element(op.operands[0])) or not is_static(type):
        return None
    left, right = map(bounds, op.operands)
    direction = cast(ops.CompareOp, op).direction.data
    for holds_always in (True, False):
        if always(direction if holds_always else NEGATED[direction], left, right):
            element = cast(IntegerType, type.element_type)
            return ConstantOp(IntegerAttr(int(holds_always), element), type)
    return None


def _of_truth(op: TensorOp, numbers: Numbers) -> SSAValue | TensorOp | None:
    """x == true, x != false -> x; x == false, x != true -> not x."""
    direction = cast(ops.CompareOp, op).direction.data
    if value_element(op.operands[0]) != i1 or direction not in ("EQ", "NE"):
        return None
    for number, other in zip(numbers, reversed(op.operands), strict=True):
        if number is not None:
            if bool(number.value.data) == (direction == "EQ"):
                return other
            return ops.NotOp((other,), result_types=(op.result.type,))
    return None


def _involution(op: TensorOp, numbers: Numbers) -> SSAValue | None:
    """op(op(x)) -> x."""
    source = _source(op)
    return source if source is not op.operands[0] else None


def _chosen(op: TensorOp, numbers: Numbers) -> SSAValue | None:
    """select with a constant condition, or equal arms -> an arm."""
    on_true, on_false = op.operands[1:]
    if (predicate := numbers[0]) is not None:
        return on_true if predicate.value.data else on_false
    return on_true if on_true is on_false else None


def _converted(op: TensorOp, numbers: Numbers) -> SSAValue | TensorOp | None:
    """convert to the same type -> the operand; convert(convert(x)) -> convert(x), if
    the first conversion is exact."""
    (value,) = op.operands
    source = _source(op)
    first, between, target = map(value_element, (source, value, op.result))
    if value.type == op.result.type:
        return value if holds(target, target) else None
    # A float out of the range of integers converts to a number that depends on its
    # type.
    is_defined = is_integer(first) or is_float(target)
    if source is value or not is_defined or not holds(between, first):
        return None
    return ops.ConvertOp((source,), result_types=(op.result.type,))


def _recast(op: TensorOp, numbers: Numbers) -> SSAValue | TensorOp | None:
    """bitcast to the same type -> the operand; bitcast(bitcast(x)) -> bitcast(x)."""
    (value,) = op.operands
    source = _source(op)
    if value.type == op.result.type:
        return value
    if source is value:
        return None
    return ops.BitcastConvertOp((source,), result_types=(op.result.type,))


def _source(op: TensorOp) -> SSAValue:
    """The operand, or the operand's operand if both operations are of one kind."""
    (value,) = op.operands
    owner = value.owner
    if not isinstance(owner, TensorOp) or owner.name != op.name:
        return value
    return value if owner.outs or owner.attributes else owner.operands[0]


def _part(op: TensorOp, numbers: Numbers) -> SSAValue | None:
    """real or imag of complex(re, im) -> re or im."""
    owner = op.operands[0].owner
    if not isinstance(owner, ops.ComplexOp) or owner.outs:
        return None
    return owner.operands[isinstance(op, ops.ImagOp)]


_RULES: Mapping[type[TensorOp], Sequence[Rule]] = {
    ops.AddOp: (_neutral(_zero, -0.0),),
    ops.AndOp: (_neutral(_all_ones), _absorbing(_zero), _idempotent),
    ops.BitcastConvertOp: (_recast,),
    ops.CompareOp: (_of_itself(_holds_for_equals), _decided, _of_truth),
    ops.ConvertOp: (_converted,),
    ops.DivideOp: (_neutral(_one, 1.0, (_RIGHT,)),),
    ops.ImagOp: (_part,),
    ops.MaximumOp: (_neutral(_lowest, -inf), _absorbing(_highest), _idempotent),
    ops.MinimumOp: (_neutral(_highest, inf), _absorbing(_lowest), _idempotent),
    ops.MultiplyOp: (_neutral(_one, 1.0), _absorbing(_zero)),
    ops.NegateOp: (_involution,),
    ops.NotOp: (_involution,),
    ops.OrOp: (_neutral(_zero), _absorbing(_all_ones), _idempotent),
    ops.PowerOp: (_neutral(_one, 1.0, (_RIGHT,)),),
    ops.SelectOp: (_chosen,),
    ops.RealOp: (_part,),
    ops.ShiftLeftOp: (_neutral(_zero, sides=(_RIGHT,)),),
    ops.ShiftRightArithmeticOp: (_neutral(_zero, sides=(_RIGHT,)),),
    ops.ShiftRightLogicalOp: (_neutral(_zero, sides=(_RIGHT,)),),
    ops.SubtractOp: (_neutral(_zero, 0.0, (_RIGHT,)), _of_itself(lambda op: False)),
    ops.XorOp: (_neutral(_zero), _of_itself(lambda op: False)),
}
