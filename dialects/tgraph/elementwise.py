"""Elementwise operations.

Names and semantics are those of StableHLO. On `i1`, `add` and `maximum` are "or", and
`multiply` and `minimum` are "and". Complex numbers are made by `complex`, and have no
constants.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    ComplexType,
    Float32Type,
    Float64Type,
    StringAttr,
    i1,
)
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.utils.exceptions import VerifyException

from ...support.choices import one_of
from .base import (
    AnyTensor,
    Pattern,
    TensorOp,
    bare,
    element_bytes,
    have_equal_sizes,
    tensor_type_of,
    with_element,
)
from .elements import is_complex, real_element
from .partial import PartialTypes


class ElementwiseOp(TensorOp):
    """All tensors have the same shape and, unless an operation says otherwise, the same
    element type.
    """

    PATTERN: ClassVar = Pattern.ELEMENTWISE
    COMPUTES: ClassVar = True

    def overwritable(self) -> Sequence[int]:
        element = self.declared[0].element_type
        inputs = self.operands[: self.input_count]
        elements = [tensor_type_of(value.type).element_type for value in inputs]
        return [
            index
            for index, other in enumerate(elements)
            if other is element or have_equal_sizes(other, element)
        ]

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        for index, type in enumerate(inputs):
            if type.element_type != inputs[0].element_type:
                raise VerifyException(
                    f"operand {index} has type {bare(type)}, expected elements of type "
                    f"{inputs[0].element_type} like operand 0"
                )
        return [self._same_shape(inputs)]

    def refine(self, types: PartialTypes) -> None:
        types.same_shape(*types.values)
        self._refine_elements(types)

    def _refine_elements(self, types: PartialTypes) -> None:
        types.same_element(*types.values)

    def _same_shape(self, inputs: Sequence[AnyTensor]) -> AnyTensor:
        """The last input's type. Checks that all inputs have its shape."""
        for index, type in enumerate(inputs):
            if type.shape != inputs[-1].shape:
                raise VerifyException(
                    f"operand {index} has type {bare(type)}, expected the shape of "
                    f"{bare(inputs[-1])}"
                )
        return inputs[-1]


class UnaryOp(ElementwiseOp):
    ARITY: ClassVar = 1


class BinaryOp(ElementwiseOp):
    ARITY: ClassVar = 2


@irdl_op_definition
class AbsOp(UnaryOp):
    name = "tgraph.abs"


@irdl_op_definition
class CbrtOp(UnaryOp):
    """The real cube root."""

    name = "tgraph.cbrt"


@irdl_op_definition
class CeilOp(UnaryOp):
    name = "tgraph.ceil"


@irdl_op_definition
class CosineOp(UnaryOp):
    name = "tgraph.cosine"


@irdl_op_definition
class CountLeadingZerosOp(UnaryOp):
    """The number of leading zero bits of an integer."""

    name = "tgraph.count_leading_zeros"


@irdl_op_definition
class ErfOp(UnaryOp):
    """The error function."""

    name = "tgraph.erf"


@irdl_op_definition
class ErfcOp(UnaryOp):
    """1 - erf(x), without cancellation."""

    name = "tgraph.erfc"


@irdl_op_definition
class ExponentialOp(UnaryOp):
    name = "tgraph.exponential"


@irdl_op_definition
class ExponentialMinusOneOp(UnaryOp):
    name = "tgraph.exponential_minus_one"


@irdl_op_definition
class FloorOp(UnaryOp):
    name = "tgraph.floor"


@irdl_op_definition
class LogOp(UnaryOp):
    name = "tgraph.log"


@irdl_op_definition
class LogPlusOneOp(UnaryOp):
    name = "tgraph.log_plus_one"


@irdl_op_definition
class LogisticOp(UnaryOp):
    """1 / (1 + exp(-x))."""

    name = "tgraph.logistic"


@irdl_op_definition
class NegateOp(UnaryOp):
    name = "tgraph.negate"


@irdl_op_definition
class NotOp(UnaryOp):
    """Bitwise; logical for `i1`."""

    name = "tgraph.not"


@irdl_op_definition
class PopcntOp(UnaryOp):
    """The number of bits of an integer that are set."""

    name = "tgraph.popcnt"


@irdl_op_definition
class RoundNearestAfzOp(UnaryOp):
    """To the nearest integer; halves away from zero."""

    name = "tgraph.round_nearest_afz"


@irdl_op_definition
class RoundNearestEvenOp(UnaryOp):
    """To the nearest integer; halves to the even one."""

    name = "tgraph.round_nearest_even"


@irdl_op_definition
class RsqrtOp(UnaryOp):
    """1 / sqrt(x)."""

    name = "tgraph.rsqrt"


@irdl_op_definition
class SignOp(UnaryOp):
    name = "tgraph.sign"


@irdl_op_definition
class SineOp(UnaryOp):
    name = "tgraph.sine"


@irdl_op_definition
class SqrtOp(UnaryOp):
    name = "tgraph.sqrt"


@irdl_op_definition
class TanOp(UnaryOp):
    name = "tgraph.tan"


@irdl_op_definition
class TanhOp(UnaryOp):
    name = "tgraph.tanh"


@irdl_op_definition
class IsFiniteOp(UnaryOp):
    """Whether each element is neither infinite nor NaN, as `i1`."""

    name = "tgraph.is_finite"

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        return [with_element(inputs[0], i1)]

    def _refine_elements(self, types: PartialTypes) -> None:
        types.set_element(1, i1)


@irdl_op_definition
class ConvertOp(UnaryOp):
    """The same numbers in the result's element type; integers are rounded toward zero.

    To `i1`, non-zero becomes true.
    """

    name = "tgraph.convert"
    COMPUTES: ClassVar = False

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        element = self.declared[0].element_type
        if is_complex(inputs[0].element_type) and not is_complex(element):
            raise VerifyException(
                f"operand 0 has type {bare(inputs[0])}, expected its tgraph.real"
            )
        return [with_element(inputs[0], element)]

    def _refine_elements(self, types: PartialTypes) -> None:
        pass  # from any type to any other


@irdl_op_definition
class BitcastConvertOp(UnaryOp):
    """The same bits as elements of another type of equal size."""

    name = "tgraph.bitcast_convert"
    COMPUTES: ClassVar = False

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        element = self.declared[0].element_type
        if _bits(element) != _bits(inputs[0].element_type):
            raise VerifyException(
                f"operand 0 has type {bare(inputs[0])}, expected elements of the size "
                f"of {element}"
            )
        return [with_element(inputs[0], element)]

    def _refine_elements(self, types: PartialTypes) -> None:
        pass  # from any type of the same size


def _bits(element: Attribute) -> int:
    return 1 if element == i1 else 8 * element_bytes(element)


class PartOp(UnaryOp):
    """A part of complex numbers."""

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        element = inputs[0].element_type
        if not is_complex(element):
            raise VerifyException(
                f"operand 0 has type {bare(inputs[0])}, expected complex elements"
            )
        return [with_element(inputs[0], real_element(element))]

    def _refine_elements(self, types: PartialTypes) -> None:
        pass


@irdl_op_definition
class ImagOp(PartOp):
    """The imaginary part."""

    name = "tgraph.imag"


@irdl_op_definition
class RealOp(PartOp):
    """The real part."""

    name = "tgraph.real"


@irdl_op_definition
class AddOp(BinaryOp):
    name = "tgraph.add"


@irdl_op_definition
class AndOp(BinaryOp):
    """Bitwise; logical for `i1`."""

    name = "tgraph.and"


@irdl_op_definition
class Atan2Op(BinaryOp):
    """The angle of the point `(y, x)`, for operands `y, x`."""

    name = "tgraph.atan2"


@irdl_op_definition
class ComplexOp(BinaryOp):
    """Complex numbers with these real and imaginary parts, f32 or f64."""

    name = "tgraph.complex"

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        (part,) = super().result_types_of(inputs)
        if not isinstance(part.element_type, Float32Type | Float64Type):
            raise VerifyException(
                f"operand 0 has type {bare(part)}, expected elements of type f32 or f64"
            )
        return [with_element(part, ComplexType(part.element_type))]

    def _refine_elements(self, types: PartialTypes) -> None:
        types.same_element(0, 1)


@irdl_op_definition
class DivideOp(BinaryOp):
    """Quotient; integers are rounded toward zero."""

    name = "tgraph.divide"


@irdl_op_definition
class MaximumOp(BinaryOp):
    """The larger element; NaN if either is NaN."""

    name = "tgraph.maximum"


@irdl_op_definition
class MinimumOp(BinaryOp):
    """The smaller element; NaN if either is NaN."""

    name = "tgraph.minimum"


@irdl_op_definition
class MultiplyOp(BinaryOp):
    name = "tgraph.multiply"


@irdl_op_definition
class OrOp(BinaryOp):
    """Bitwise; logical for `i1`."""

    name = "tgraph.or"


@irdl_op_definition
class PowerOp(BinaryOp):
    name = "tgraph.power"


@irdl_op_definition
class RemainderOp(BinaryOp):
    """The remainder of a division rounded toward zero, with the dividend's sign."""

    name = "tgraph.remainder"


@irdl_op_definition
class ShiftLeftOp(BinaryOp):
    """Zero if the second operand is at least the number of bits."""

    name = "tgraph.shift_left"


@irdl_op_definition
class ShiftRightArithmeticOp(BinaryOp):
    """Shifts in copies of the highest bit, for signed and unsigned types."""

    name = "tgraph.shift_right_arithmetic"


@irdl_op_definition
class ShiftRightLogicalOp(BinaryOp):
    """Shifts in zeros, for signed and unsigned types."""

    name = "tgraph.shift_right_logical"


@irdl_op_definition
class SubtractOp(BinaryOp):
    name = "tgraph.subtract"


@irdl_op_definition
class XorOp(BinaryOp):
    """Bitwise; logical for `i1`."""

    name = "tgraph.xor"


DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


@irdl_op_definition
class CompareOp(BinaryOp):
    """Whether `lhs direction rhs` holds, as `i1`; with NaN only `NE` does."""

    name = "tgraph.compare"

    direction = prop_def(StringAttr)

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        if self.direction.data not in DIRECTIONS:
            direction = one_of(self.direction.data, DIRECTIONS)
            raise VerifyException(f"direction is {direction}")
        return [with_element(super().result_types_of(inputs)[0], i1)]

    def _refine_elements(self, types: PartialTypes) -> None:
        types.same_element(0, 1)
        types.set_element(2, i1)


@irdl_op_definition
class SelectOp(ElementwiseOp):
    """The element of the second operand where the first is true, otherwise of the
    third.
    """

    name = "tgraph.select"
    COMPUTES: ClassVar = False
    ARITY: ClassVar = 3

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        if inputs[0].element_type != i1:
            raise VerifyException(
                f"operand 0 has type {bare(inputs[0])}, expected elements of type i1"
            )
        super().result_types_of(inputs[1:])
        return [self._same_shape(inputs)]

    def _refine_elements(self, types: PartialTypes) -> None:
        types.set_element(0, i1)
        types.same_element(1, 2, 3)


@irdl_op_definition
class ClampOp(ElementwiseOp):
    """`minimum(maximum(x, low), high)` for operands `low, x, high`."""

    name = "tgraph.clamp"
    ARITY: ClassVar = 3


ELEMENTWISE_OPS = (
    AbsOp,
    AddOp,
    AndOp,
    Atan2Op,
    BitcastConvertOp,
    CbrtOp,
    CeilOp,
    ClampOp,
    CompareOp,
    ComplexOp,
    ConvertOp,
    CosineOp,
    CountLeadingZerosOp,
    DivideOp,
    ErfOp,
    ErfcOp,
    ExponentialMinusOneOp,
    ExponentialOp,
    FloorOp,
    ImagOp,
    IsFiniteOp,
    LogOp,
    LogPlusOneOp,
    LogisticOp,
    MaximumOp,
    MinimumOp,
    MultiplyOp,
    NegateOp,
    NotOp,
    OrOp,
    PopcntOp,
    PowerOp,
    RealOp,
    RemainderOp,
    RoundNearestAfzOp,
    RoundNearestEvenOp,
    RsqrtOp,
    SelectOp,
    ShiftLeftOp,
    ShiftRightArithmeticOp,
    ShiftRightLogicalOp,
    SignOp,
    SineOp,
    SqrtOp,
    SubtractOp,
    TanOp,
    TanhOp,
    XorOp,
)

COMBINERS: Mapping[str, type[BinaryOp]] = {
    "add": AddOp,
    "multiply": MultiplyOp,
    "maximum": MaximumOp,
    "minimum": MinimumOp,
    "and": AndOp,
    "or": OrOp,
}
"""The operation that a reduction or a scatter of each kind repeats."""
