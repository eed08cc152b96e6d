"""Writes tensors with one number for all elements."""

from collections.abc import Sequence

from ....dialects.tgraph.base import AnyTensor, TensorOp, with_element
from ....dialects.tgraph.elements import number_of, real_element
from ....dialects.tgraph.elementwise import ComplexOp
from ....dialects.tgraph.shaping import ConstantOp


def full(number: float, type: AnyTensor) -> Sequence[TensorOp]:
    """The operations, in order, that define a tensor of `number`, which is the result
    of the last one: a constant, or for complex types, which have no constants, a
    combination of two."""
    element = real_element(type.element_type)
    if element == type.element_type:
        return [ConstantOp(number_of(number, element), type)]
    part = with_element(type, element)
    real, imag = (ConstantOp(number_of(n, element), part) for n in (number, 0))
    complex = ComplexOp([real.result, imag.result], result_types=[type])
    return [real, imag, complex]
