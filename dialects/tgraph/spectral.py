"""Fourier transforms."""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    ComplexType,
    DenseArrayBase,
    Float32Type,
    Float64Type,
    StringAttr,
    i64,
)
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.utils.exceptions import VerifyException

from ...support.choices import one_of
from .base import AnyTensor, TensorOp, bare, shape_of, with_element, with_shape
from .elements import is_complex, real_element

KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")


@irdl_op_definition
class FftOp(TensorOp):
    """The discrete Fourier transform along the last dimensions, as in StableHLO.

    `length` has the sizes of these dimensions in the real domain: those of the operand,
    or for `IRFFT` of the result. For real numbers (`RFFT`, and `IRFFT` back to them),
    the last dimension of the frequencies has only the first `n / 2 + 1`. Inverse
    transforms divide by the number of elements.
    """

    name = "tgraph.fft"
    ARITY: ClassVar = 1

    fft_type = prop_def(StringAttr)
    length = prop_def(DenseArrayBase.constr(i64))

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        (x,) = inputs
        kind, length = self.fft_type.data, self.length.get_values()
        if kind not in KINDS:
            raise VerifyException(f"fft_type is {one_of(kind, KINDS)}")
        part = real_element(x.element_type)
        expects = "real" if kind == "RFFT" else "complex"
        is_right = is_complex(x.element_type) == (expects == "complex")
        if not isinstance(part, Float32Type | Float64Type) or not is_right:
            raise VerifyException(
                f"operand 0 has type {bare(x)}, expected {expects} elements of f32 or "
                "f64"
            )
        if not 1 <= len(length) <= min(3, x.get_num_dims()):
            raise VerifyException(
                f"length has {len(length)} sizes, expected 1 to 3 and no more than the "
                f"operand has dimensions"
            )
        half = (*length[:-1], length[-1] // 2 + 1) if length[-1] else tuple(length)
        batch = shape_of(x)[: -len(length)]
        given, made = {"RFFT": (length, half), "IRFFT": (half, length)}.get(
            kind, (length, length)
        )
        if shape_of(x)[-len(length) :] != tuple(given):
            raise VerifyException(
                f"operand 0 has type {bare(x)}, expected the last sizes {list(given)}"
            )
        element = part if kind == "IRFFT" else ComplexType(part)
        return [with_element(with_shape(x, (*batch, *made)), element)]


SPECTRAL_OPS = (FftOp,)
