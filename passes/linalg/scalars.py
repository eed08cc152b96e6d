"""tgraph's elementwise operations on scalars, as arith and math operations.

The meaning is the reference interpreter's: NaN goes through maximum and minimum,
integers wrap around, x / 0 is -1 and x rem 0 is x. Floats of less than 32 bits are
computed in f32 and rounded after every operation.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf

from xdsl.dialects import arith, llvm, math
from xdsl.dialects.builtin import f32, i1
from xdsl.ir import Attribute, Operation, SSAValue

from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph import elementwise as e
from tensorplan.dialects.tgraph.base import TensorOp, tensor_type_of
from tensorplan.passes.linalg.code import (
    Code,
    is_float,
    is_small_float,
    is_unsigned,
    limits,
    signless,
    width,
)

_FLOAT: Mapping[type[TensorOp], type[Operation]] = {
    e.AbsOp: math.AbsFOp,
    e.CeilOp: math.CeilOp,
    e.CosineOp: math.CosOp,
    e.Atan2Op: math.Atan2Op,
    e.CbrtOp: math.CbrtOp,
    e.ErfOp: math.ErfOp,
    e.RoundNearestAfzOp: math.RoundOp,
    e.RoundNearestEvenOp: math.RoundEvenOp,
    e.TanOp: math.TanOp,
    e.ExponentialOp: math.ExpOp,
    e.ExponentialMinusOneOp: math.ExpM1Op,
    e.FloorOp: math.FloorOp,
    e.LogOp: math.LogOp,
    e.LogPlusOneOp: math.Log1pOp,
    e.SineOp: math.SinOp,
    e.SqrtOp: math.SqrtOp,
    e.TanhOp: math.TanhOp,
    e.AddOp: arith.AddfOp,
    e.MaximumOp: arith.MaximumfOp,
    e.MinimumOp: arith.MinimumfOp,
    e.MultiplyOp: arith.MulfOp,
    e.SubtractOp: arith.SubfOp,
}

_INTEGER: Mapping[type[TensorOp], type[Operation]] = {
    e.AbsOp: math.AbsIOp,
    e.AddOp: arith.AddiOp,
    e.AndOp: arith.AndIOp,
    e.CountLeadingZerosOp: math.CountLeadingZerosOp,
    e.MaximumOp: arith.MaxSIOp,
    e.MinimumOp: arith.MinSIOp,
    e.MultiplyOp: arith.MuliOp,
    e.OrOp: arith.OrIOp,
    e.PopcntOp: math.CtPopOp,
    e.SubtractOp: arith.SubiOp,
    e.XorOp: arith.XOrIOp,
}

_UNSIGNED: Mapping[type[TensorOp], type[Operation]] = {
    e.MaximumOp: arith.MaxUIOp,
    e.MinimumOp: arith.MinUIOp,
}

_BOOLEAN: Mapping[type[TensorOp], type[Operation]] = {
    e.AddOp: arith.OrIOp,
    e.MultiplyOp: arith.AndIOp,
}

KIND: Mapping[str, type[TensorOp]] = {
    "add": e.AddOp,
    "multiply": e.MultiplyOp,
    "maximum": e.MaximumOp,
    "minimum": e.MinimumOp,
    "and": e.AndOp,
    "or": e.OrOp,
}
"""The operation that a reduction of each kind repeats."""


def scalar(op: TensorOp, code: Code, args: Sequence[SSAValue]) -> SSAValue:
    """The result of an elementwise operation for one element of each input."""
    element = tensor_type_of(op.inputs[-1].type).element_type
    match op:
        case e.ConvertOp():
            target = op.declared[0].element_type
            return code.convert(args[0], element, target)
        case e.BitcastConvertOp():
            target = signless(op.declared[0].element_type)
            same = args[0].type == target
            return args[0] if same else code.add(arith.BitcastOp(args[0], target))
        case e.SelectOp():
            return code.add(arith.SelectOp(*args))
        case e.CompareOp():
            return _compare(op.direction.data, code, element, *args)
        case _:
            kind, computed = type(op), f32 if is_small_float(element) else element
            if kind not in _COMPOSED and _plain(kind, computed) is None:
                raise LocatedError(
                    f"{op.name} has no upstream form on elements of type {element}", op
                )
            return apply(kind, code, element, args)


def apply(
    kind: type[TensorOp], code: Code, element: Attribute, args: Sequence[SSAValue]
) -> SSAValue:
    """The result of an operation on elements of one type."""
    if is_small_float(element):
        args = [code.convert(arg, element, f32) for arg in args]
        result = apply(kind, code, f32, args)
        return code.convert(result, f32, element) if result.type == f32 else result
    if kind in _COMPOSED:
        return _COMPOSED[kind](code, element, *args)
    plain = _plain(kind, element)
    assert plain is not None
    if plain is math.AbsIOp and is_unsigned(element):
        return args[0]
    return code.add(plain(*args))


def _plain(kind: type[TensorOp], element: Attribute) -> type[Operation] | None:
    """The operation that does the same on elements of a type, if one does."""
    if is_float(element):
        return _FLOAT.get(kind)
    if width(element) == 1 and kind in _BOOLEAN:
        return _BOOLEAN[kind]
    if is_unsigned(element) and kind in _UNSIGNED:
        return _UNSIGNED[kind]
    return _INTEGER.get(kind)


_PREDICATES = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}


def _compare(
    direction: str, code: Code, element: Attribute, x: SSAValue, y: SSAValue
) -> SSAValue:
    predicate = _PREDICATES[direction]
    if is_float(element):
        ordered = "une" if predicate == "ne" else f"o{predicate}"
        return code.add(arith.CmpfOp(x, y, ordered))
    if predicate not in ("eq", "ne"):
        predicate = ("u" if is_unsigned(element) else "s") + predicate
    return code.add(arith.CmpiOp(x, y, predicate))


def _clamp(
    code: Code, element: Attribute, low: SSAValue, x: SSAValue, high: SSAValue
) -> SSAValue:
    raised = apply(e.MaximumOp, code, element, [x, low])
    return apply(e.MinimumOp, code, element, [raised, high])


def _divide(code: Code, element: Attribute, x: SSAValue, y: SSAValue) -> SSAValue:
    if is_float(element):
        return code.add(arith.DivfOp(x, y))
    is_zero, safe = _safe_divisor(code, element, x, y)
    divide = arith.DivUIOp if is_unsigned(element) else arith.DivSIOp
    quotient = code.add(divide(x, safe))
    return code.add(arith.SelectOp(is_zero, code.constant(-1, element), quotient))


def _remainder(code: Code, element: Attribute, x: SSAValue, y: SSAValue) -> SSAValue:
    if is_float(element):
        return code.add(llvm.FRemOp(x, y))  # xDSL has no arith.remf
    is_zero, safe = _safe_divisor(code, element, x, y)
    divide = arith.RemUIOp if is_unsigned(element) else arith.RemSIOp
    return code.add(arith.SelectOp(is_zero, x, code.add(divide(x, safe))))


def _safe_divisor(
    code: Code, element: Attribute, x: SSAValue, y: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """Whether the divisor is 0, and a divisor for which the division is defined.

    That is 1 for the smallest integer divided by -1, too: it wraps around to itself.
    """
    is_zero = code.add(arith.CmpiOp(y, code.constant(0, element), "eq"))
    is_bad = is_zero
    if not is_unsigned(element):
        lowest = code.constant(limits(element)[0], element)
        is_lowest = code.add(arith.CmpiOp(x, lowest, "eq"))
        is_minus_one = code.add(arith.CmpiOp(y, code.constant(-1, element), "eq"))
        overflows = code.add(arith.AndIOp(is_lowest, is_minus_one))
        is_bad = code.add(arith.OrIOp(is_zero, overflows))
    return is_zero, code.add(arith.SelectOp(is_bad, code.constant(1, element), y))


def _is_finite(code: Code, element: Attribute, x: SSAValue) -> SSAValue:
    if not is_float(element):
        return code.constant(1, i1)
    size = code.add(math.AbsFOp(x))
    return code.add(arith.CmpfOp(size, code.constant(inf, element), "olt"))


def _logistic(code: Code, element: Attribute, x: SSAValue) -> SSAValue:
    one = code.constant(1, element)
    power = code.add(math.ExpOp(code.add(arith.NegfOp(x))))
    return code.add(arith.DivfOp(one, code.add(arith.AddfOp(one, power))))


def _negate(code: Code, element: Attribute, x: SSAValue) -> SSAValue:
    if is_float(element):
        return code.add(arith.NegfOp(x))
    return code.add(arith.SubiOp(code.constant(0, element), x))


def _not(code: Code, element: Attribute, x: SSAValue) -> SSAValue:
    return code.invert(x)


def _power(code: Code, element: Attribute, x: SSAValue, y: SSAValue) -> SSAValue:
    """Of integers by repeated squaring; to negative powers, only 1 and -1 are not 0."""
    if is_float(element):
        return code.add(math.PowFOp(x, y))
    one, zero = code.constant(1, element), code.constant(0, element)

    def square(
        inner: Code, _: SSAValue, carried: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        result, base, rest = carried
        bit = inner.add(arith.AndIOp(rest, one))
        is_set = inner.add(arith.CmpiOp(bit, one, "eq"))
        product = inner.add(arith.MuliOp(result, base))
        result = inner.add(arith.SelectOp(is_set, product, result))
        base = inner.add(arith.MuliOp(base, base))
        return result, base, inner.add(arith.ShRUIOp(rest, one))

    result, *_ = code.loop(width(element), square, [one, x, y])
    if is_unsigned(element):
        return result
    # Powers of 1 and -1 are right for every exponent: its lowest bit tells.
    is_negative = code.add(arith.CmpiOp(y, zero, "slt"))
    is_one = code.add(arith.CmpiOp(x, one, "eq"))
    is_minus_one = code.add(arith.CmpiOp(x, code.constant(-1, element), "eq"))
    stays = code.add(arith.OrIOp(is_one, is_minus_one))
    vanishes = code.add(arith.AndIOp(is_negative, code.invert(stays)))
    return code.add(arith.SelectOp(vanishes, zero, result))


def _rsqrt(code: Code, element: Attribute, x: SSAValue) -> SSAValue:
    root = code.add(math.SqrtOp(x))
    return code.add(arith.DivfOp(code.constant(1, element), root))


def _shift(
    kind: type[arith.ShLIOp | arith.ShRSIOp | arith.ShRUIOp],
) -> Callable[[Code, Attribute, SSAValue, SSAValue], SSAValue]:
    def shift(code: Code, element: Attribute, x: SSAValue, y: SSAValue) -> SSAValue:
        """By as many bits as there are, or more, all are shifted out."""
        bits = width(element)
        fits = code.add(arith.CmpiOp(y, code.constant(bits, element), "ult"))
        if kind is arith.ShRSIOp:  # what is shifted in is the sign
            last = code.constant(bits - 1, element)
            return code.add(kind(x, code.add(arith.SelectOp(fits, y, last))))
        zero = code.constant(0, element)
        shifted = code.add(kind(x, code.add(arith.SelectOp(fits, y, zero))))
        return code.add(arith.SelectOp(fits, shifted, zero))

    return shift


def _erfc(code: Code, element: Attribute, x: SSAValue) -> SSAValue:
    one = code.constant(1, element)
    return code.add(arith.SubfOp(one, code.add(math.ErfOp(x))))


def _sign(code: Code, element: Attribute, x: SSAValue) -> SSAValue:
    one, zero = code.constant(1, element), code.constant(0, element)
    if is_float(element):
        has_sign = code.add(arith.CmpfOp(x, zero, "one"))  # not for NaN
        return code.add(arith.SelectOp(has_sign, code.add(math.CopySignOp(one, x)), x))
    if is_unsigned(element):
        return code.add(arith.MinUIOp(x, one))
    clamped = code.add(arith.MinSIOp(x, one))
    return code.add(arith.MaxSIOp(clamped, code.constant(-1, element)))


_COMPOSED: Mapping[type[TensorOp], Callable[..., SSAValue]] = {
    e.ClampOp: _clamp,
    e.DivideOp: _divide,
    e.ErfcOp: _erfc,
    e.IsFiniteOp: _is_finite,
    e.LogisticOp: _logistic,
    e.NegateOp: _negate,
    e.NotOp: _not,
    e.PowerOp: _power,
    e.RemainderOp: _remainder,
    e.RsqrtOp: _rsqrt,
    e.ShiftLeftOp: _shift(arith.ShLIOp),
    e.ShiftRightArithmeticOp: _shift(arith.ShRSIOp),
    e.ShiftRightLogicalOp: _shift(arith.ShRUIOp),
    e.SignOp: _sign,
}
