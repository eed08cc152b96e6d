"""Writes elementwise operations in LLVM IR: those that formulas expand into.

Operations that are not supported here are left to the NumPy kernels, which raise errors
for undefined ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute

from ....dialects.dtypes import DType, is_float, numpy_dtype
from ....dialects.tgraph import complex_formulas
from ....dialects.tgraph import elementwise as ops
from ....dialects.tgraph.base import TensorOp, tensor_type_of
from ....dialects.tgraph.formulas import (
    BITS,
    COMPLEX,
    FLOAT,
    INTEGER,
    Forms,
    NoForm,
    Scalars,
    is_signed,
    kind_of,
    predicate,
)
from ....dialects.tgraph.terms import AnyTerm, Term
from . import complexes, math
from .code import LlvmFunction, Value
from .complexes import Complex
from .elements import converted, part_type, register_type, rounded


def is_better(kind: str, dtype: DType, x: Value, y: Value) -> Value:
    """Whether `x` is more (`kind` "maximum") or less than `y`; false for a NaN."""
    sign = "o" if x.is_float else "s" if dtype.kind == "i" else "u"
    return x.compare(sign + ("gt" if kind == "maximum" else "lt"), y)


def better(kind: str, dtype: DType, x: Value, y: Value) -> Value:
    """The `maximum` or `minimum`; `y` if either is NaN."""
    return x.code.select(is_better(kind, dtype, x, y), x, y)


def extreme(kind: str) -> Callable[[DType, Value, Value], Value]:
    """A function for the `maximum` or `minimum`; NaN if either operand is NaN."""

    def extreme(dtype: DType, x: Value, y: Value) -> Value:
        if y.number is not None:
            x, y = y, x
        result = better(kind, dtype, x, y)
        if not x.is_float or (x.number is not None and x.number == x.number):
            return result
        return x.code.select(x.is_nan, x, result)

    return extreme


Emit: TypeAlias = Callable[..., Value | Complex]
"""`(dtype of the last operand, *operands) -> result`"""


def _plain(function: Callable[..., Value | Complex]) -> Emit:
    def emit(dtype: DType, *values: Value | Complex) -> Value | Complex:
        return function(*values)

    return emit


def _arithmetic(
    on_reals: Callable[..., Value], on_complex: Callable[..., Complex]
) -> Mapping[str, Emit]:
    return {FLOAT + INTEGER: _plain(on_reals), COMPLEX: _plain(on_complex)}


def _intrinsic(name: str) -> Emit:
    def emit(dtype: DType, x: Value) -> Value:
        return x.call(name)

    return emit


def _root(dtype: DType, x: Value) -> Value:
    """Rounded to `dtype`, as in NumPy, because formulas continue with the result."""
    return rounded(x.call("sqrt"), dtype)


FUNCTIONS: Forms = {
    ops.Atan2Op: {FLOAT: _plain(math.arctangent)},
    ops.CosineOp: {FLOAT: _plain(math.cosine)},
    ops.ErfOp: {FLOAT: _plain(math.erf)},
    ops.ErfcOp: {FLOAT: _plain(math.erfc)},
    ops.ExponentialMinusOneOp: {FLOAT: _plain(math.expm1)},
    ops.ExponentialOp: {FLOAT: _plain(math.exp), COMPLEX: _plain(complexes.exp)},
    ops.LogOp: {FLOAT: _plain(math.natural_log)},
    ops.LogPlusOneOp: {FLOAT: _plain(math.log1p)},
    ops.SineOp: {FLOAT: _plain(math.sine)},
    ops.TanOp: {FLOAT: _plain(math.tangent)},
    ops.TanhOp: {FLOAT: _plain(math.tanh)},
}

COSTLY = (
    *FUNCTIONS,
    ops.DivideOp,
    ops.LogisticOp,
    ops.PowerOp,
    ops.RemainderOp,
    ops.RsqrtOp,
)
"""Operations whose results are better kept than recomputed."""


FORMS: Forms = {
    **FUNCTIONS,
    ops.AbsOp: {FLOAT: _intrinsic("fabs")},
    ops.AddOp: _arithmetic(Value.__add__, Complex.__add__),
    ops.AndOp: {BITS: _plain(Value.__and__)},
    ops.CeilOp: {FLOAT: _intrinsic("ceil")},
    ops.DivideOp: {
        FLOAT: _plain(Value.__truediv__),
        COMPLEX: _plain(Complex.__truediv__),
    },
    ops.FloorOp: {FLOAT: _intrinsic("floor")},
    ops.MaximumOp: {BITS + FLOAT: extreme("maximum")},
    ops.MinimumOp: {BITS + FLOAT: extreme("minimum")},
    ops.MultiplyOp: _arithmetic(Value.__mul__, Complex.__mul__),
    ops.NegateOp: {FLOAT: _plain(Value.__neg__), COMPLEX: _plain(Complex.__neg__)},
    ops.OrOp: {BITS: _plain(Value.__or__)},
    ops.PopcntOp: {INTEGER: _intrinsic("ctpop")},
    ops.PowerOp: {FLOAT: _plain(math.power)},
    ops.RemainderOp: {FLOAT: _plain(math.remainder)},
    ops.RoundNearestEvenOp: {FLOAT: _intrinsic("roundeven")},
    ops.SqrtOp: {FLOAT: _root},
    ops.SubtractOp: _arithmetic(Value.__sub__, Complex.__sub__),
    ops.XorOp: {BITS: _plain(Value.__xor__)},
}


@dataclass(frozen=True)
class _Writer(Scalars[Any]):
    """Appends instructions to a function. Terms have a `Value` or a `Complex`."""

    code: LlvmFunction

    FORMS = FORMS

    def constant(self, number: float, like: AnyTerm) -> AnyTerm:
        if isinstance(like.value, Complex):
            element = like.value.real.element
            real, imag = (self.code.number(part, element) for part in (number, 0.0))
            return Term(self, Complex(real, imag), like.element)
        value = self.code.number(number, like.value.element)
        return Term(self, value, like.element)

    def apply(self, kind: type[ops.ElementwiseOp], *terms: AnyTerm) -> AnyTerm:
        formula = complex_formulas.FORMULAS.get(kind)
        if formula is not None and kind_of(terms[-1]) == COMPLEX:
            return formula(*terms)
        return super().apply(kind, *terms)

    def write(self, form: Emit, *terms: AnyTerm) -> AnyTerm:
        element = terms[-1].element
        value = form(numpy_dtype(element), *(term.value for term in terms))
        return Term(self, value, element)

    def compare(self, direction: str, x: AnyTerm, y: AnyTerm) -> AnyTerm:
        if isinstance(x.value, Complex):
            equal = x.value.equals(y.value)
            return Term(self, equal if direction == "EQ" else ~equal, i1)
        return Term(self, x.value.compare(predicate(direction, x), y.value), i1)

    def select(self, condition: AnyTerm, x: AnyTerm, y: AnyTerm) -> AnyTerm:
        is_complex = isinstance(x.value, Complex)
        select = complexes.select if is_complex else self.code.select
        return Term(self, select(condition.value, x.value, y.value), x.element)

    def parts(
        self, kind: type[ops.ElementwiseOp], element: Attribute, *terms: AnyTerm
    ) -> AnyTerm:
        if kind is ops.ComplexOp:
            return Term(self, Complex(*(term.value for term in terms)), element)
        (x,) = terms
        value = x.value.real if kind is ops.RealOp else x.value.imag
        return Term(self, value, element)

    def convert(self, x: AnyTerm, element: Attribute) -> AnyTerm:
        source, target = numpy_dtype(x.element), numpy_dtype(element)
        if target.kind == "c":
            source, target = part_type(source), part_type(target)
            is_complex = isinstance(x.value, Complex)
            given = x.value.real if is_complex else x.value
            real = self._converted(given, source, target)
            imag = self.code.number(0.0, real.element)
            if is_complex:
                imag = self._converted(x.value.imag, source, target)
            return Term(self, Complex(real, imag), element)
        return Term(self, self._converted(x.value, source, target), element)

    def _converted(self, x: Value, source: DType, target: DType) -> Value:
        value = converted(x, source, target)
        if value is None:
            raise NoForm(ops.ConvertOp.name)
        return value

    def recast(self, x: AnyTerm, element: Attribute) -> AnyTerm:
        source, target = numpy_dtype(x.element), numpy_dtype(element)
        are_integers = source.kind in "iu" and target.kind in "iu"
        # In registers, small floats are f32.
        is_alike = are_integers or target.itemsize >= 4
        is_complex = "c" in source.kind + target.kind
        if is_complex or source.itemsize != target.itemsize or not is_alike:
            raise NoForm(ops.BitcastConvertOp.name)
        to = register_type(target)
        assert to is not None
        return Term(self, x.value.cast("bitcast", to), element)

    def quotient(self, x: AnyTerm, y: AnyTerm) -> AnyTerm:
        return self._instruction("sdiv" if is_signed(x) else "udiv", x, y)

    def remainder(self, x: AnyTerm, y: AnyTerm) -> AnyTerm:
        return self._instruction("srem" if is_signed(x) else "urem", x, y)

    def shift(
        self, kind: type[ops.ElementwiseOp], x: AnyTerm, amount: AnyTerm
    ) -> AnyTerm:
        return self._instruction(_SHIFTS[kind], x, amount)

    def _instruction(self, name: str, x: AnyTerm, y: AnyTerm) -> AnyTerm:
        return Term(self, self.code.binary(name, x.value, y.value), x.element)


_SHIFTS: Mapping[type[ops.ElementwiseOp], str] = {
    ops.ShiftLeftOp: "shl",
    ops.ShiftRightArithmeticOp: "ashr",
    ops.ShiftRightLogicalOp: "lshr",
}


def evaluate(
    op: TensorOp, result: DType, values: Sequence[Value | Complex]
) -> Value | Complex:
    """The elements of the result of `op`. Raises `NoForm` if `op` is not supported."""
    writer = _Writer(values[0].code)
    terms = [
        Term(writer, value, tensor_type_of(x.type).element_type)
        for x, value in zip(op.inputs, values, strict=True)
    ]
    value = writer.result(op, *terms).value
    return rounded(value, result) if is_float(result) else value
