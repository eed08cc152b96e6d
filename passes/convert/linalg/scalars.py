"""Writes tgraph's elementwise operations on scalars as arith and math operations.

Formulas (`tensorplan.dialects.tgraph.formulas`) expand into operations of these two
dialects. The results are those of the reference interpreter: maximum and minimum
propagate NaN, and integers wrap around. Floats of less than 32 bits are computed in f32
and rounded after every operation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, llvm, math
from xdsl.dialects.builtin import f32, i1
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects.diagnostics import LocatedError
from ....dialects.tgraph import elementwise as e
from ....dialects.tgraph.base import TensorOp, tensor_type_of
from ....dialects.tgraph.formulas import (
    BITS,
    BOOLEAN,
    FLOAT,
    INTEGER,
    SIGNED,
    UNSIGNED,
    Forms,
    NoForm,
    Scalars,
    is_signed,
    predicate,
)
from ....dialects.tgraph.terms import Term
from .code import MlirCode, is_float, is_small_float, signless

FORMS: Forms = {
    e.AbsOp: {FLOAT: math.AbsFOp, SIGNED: math.AbsIOp},
    e.AddOp: {FLOAT: arith.AddfOp, INTEGER: arith.AddiOp},
    e.AndOp: {BITS: arith.AndIOp},
    e.Atan2Op: {FLOAT: math.Atan2Op},
    e.CbrtOp: {FLOAT: math.CbrtOp},
    e.CeilOp: {FLOAT: math.CeilOp},
    e.CosineOp: {FLOAT: math.CosOp},
    e.CountLeadingZerosOp: {BITS: math.CountLeadingZerosOp},
    e.DivideOp: {FLOAT: arith.DivfOp},
    e.ErfOp: {FLOAT: math.ErfOp},
    e.ExponentialMinusOneOp: {FLOAT: math.ExpM1Op},
    e.ExponentialOp: {FLOAT: math.ExpOp},
    e.FloorOp: {FLOAT: math.FloorOp},
    e.LogOp: {FLOAT: math.LogOp},
    e.LogPlusOneOp: {FLOAT: math.Log1pOp},
    e.MaximumOp: {
        FLOAT: arith.MaximumfOp,
        SIGNED: arith.MaxSIOp,
        BOOLEAN + UNSIGNED: arith.MaxUIOp,
    },
    e.MinimumOp: {
        FLOAT: arith.MinimumfOp,
        SIGNED: arith.MinSIOp,
        BOOLEAN + UNSIGNED: arith.MinUIOp,
    },
    e.MultiplyOp: {FLOAT: arith.MulfOp, INTEGER: arith.MuliOp},
    e.NegateOp: {FLOAT: arith.NegfOp},
    e.OrOp: {BITS: arith.OrIOp},
    e.PopcntOp: {BITS: math.CtPopOp},
    e.PowerOp: {FLOAT: math.PowFOp},
    e.RemainderOp: {FLOAT: llvm.FRemOp},  # xDSL has no arith.remf
    e.RoundNearestAfzOp: {FLOAT: math.RoundOp},
    e.RoundNearestEvenOp: {FLOAT: math.RoundEvenOp},
    e.SineOp: {FLOAT: math.SinOp},
    e.SqrtOp: {FLOAT: math.SqrtOp},
    e.SubtractOp: {FLOAT: arith.SubfOp, INTEGER: arith.SubiOp},
    e.TanOp: {FLOAT: math.TanOp},
    e.TanhOp: {FLOAT: math.TanhOp},
    e.XorOp: {BITS: arith.XOrIOp},
}
"""The equivalent operations of arith and math, by the kind of element."""

_SHIFTS: Mapping[type[e.ElementwiseOp], type[Operation]] = {
    e.ShiftLeftOp: arith.ShLIOp,
    e.ShiftRightArithmeticOp: arith.ShRSIOp,
    e.ShiftRightLogicalOp: arith.ShRUIOp,
}


def scalar(op: TensorOp, code: MlirCode, args: Sequence[SSAValue]) -> SSAValue:
    """The result of an elementwise operation for one element of each input."""
    writer = _Writer(code)
    elements = [tensor_type_of(value.type).element_type for value in op.inputs]
    terms = [Term(writer, x, t) for x, t in zip(args, elements, strict=True)]
    try:
        return writer.result(op, *terms).value
    except NoForm:
        raise LocatedError(
            f"{op.name} has no equivalent in upstream MLIR on elements of "
            f"type {elements[-1]}",
            op,
        ) from None


def combined(
    kind: str, code: MlirCode, element: Attribute, old: SSAValue, new: SSAValue
) -> SSAValue:
    """Combines two elements of one type as a reduction of this kind does."""
    writer = _Writer(code)
    terms = (Term(writer, value, element) for value in (old, new))
    return writer.apply(e.COMBINERS[kind], *terms).value


@dataclass(frozen=True)
class _Writer(Scalars[SSAValue]):
    """Appends operations of arith and math."""

    code: MlirCode

    FORMS = FORMS

    def apply(
        self, kind: type[e.ElementwiseOp], *terms: Term[SSAValue]
    ) -> Term[SSAValue]:
        element = terms[-1].element
        if not is_small_float(element):
            return super().apply(kind, *terms)
        result = super().apply(kind, *(self.convert(term, f32) for term in terms))
        return self.convert(result, element) if is_float(result.element) else result

    def constant(self, number: float, like: Term[SSAValue]) -> Term[SSAValue]:
        return Term(self, self.code.constant(number, like.element), like.element)

    def write(self, form: type[Operation], *terms: Term[SSAValue]) -> Term[SSAValue]:
        value = self.code.add(form(*(term.value for term in terms)))
        return Term(self, value, terms[-1].element)

    def compare(
        self, direction: str, x: Term[SSAValue], y: Term[SSAValue]
    ) -> Term[SSAValue]:
        compare = arith.CmpfOp if is_float(x.element) else arith.CmpiOp
        name = predicate(direction, x)
        return Term(self, self.code.add(compare(x.value, y.value, name)), i1)

    def select(
        self, condition: Term[SSAValue], x: Term[SSAValue], y: Term[SSAValue]
    ) -> Term[SSAValue]:
        return self.write(arith.SelectOp, condition, x, y)

    def convert(self, x: Term[SSAValue], element: Attribute) -> Term[SSAValue]:
        return Term(self, self.code.convert(x.value, x.element, element), element)

    def recast(self, x: Term[SSAValue], element: Attribute) -> Term[SSAValue]:
        target = signless(element)
        if x.value.type == target:
            return Term(self, x.value, element)
        return Term(self, self.code.add(arith.BitcastOp(x.value, target)), element)

    def quotient(self, x: Term[SSAValue], y: Term[SSAValue]) -> Term[SSAValue]:
        return self.write(arith.DivSIOp if is_signed(x) else arith.DivUIOp, x, y)

    def remainder(self, x: Term[SSAValue], y: Term[SSAValue]) -> Term[SSAValue]:
        return self.write(arith.RemSIOp if is_signed(x) else arith.RemUIOp, x, y)

    def shift(
        self,
        kind: type[e.ElementwiseOp],
        x: Term[SSAValue],
        amount: Term[SSAValue],
    ) -> Term[SSAValue]:
        return self.write(_SHIFTS[kind], x, amount)
