"""What gradient rules are made of: the place where one is written, and its terms.

    @gradient_of(TransposeOp)
    def _transpose(site: Site[TransposeOp], index: int) -> Term | None:
        return site.emit(TransposeOp, site.g, permutation=...)

A rule is asked for the gradient of one operand at a time; it returns None where that is
zero. The operators of `Term` write elementwise operations: `site.g * site.x(1)`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i1,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tensorplan.dialects.tgraph import elementwise as ew
from tensorplan.dialects.tgraph.base import (
    AnyTensor,
    Shape,
    TensorOp,
    segments,
    tensor_type_of,
    with_element,
)
from tensorplan.dialects.tgraph.shaping import ConstantOp

Op = TypeVar("Op", bound=TensorOp)


@dataclass(frozen=True)
class Site(Generic[Op]):
    """A forward operation whose gradient is being written, before `point`.

    What is written carries the operation's location and the attributes `placement`.
    """

    op: Op
    gradient: SSAValue
    """The gradient with respect to the operation's result."""

    point: InsertPoint
    placement: Mapping[str, Attribute]
    available: Callable[[SSAValue], SSAValue]
    """A value of the forward program as it is to be read here: perhaps recomputed."""

    @property
    def g(self) -> "Term":
        return Term(self, self.gradient)

    @property
    def y(self) -> "Term":
        """The operation's result."""
        return Term(self, self.available(self.op.result))

    def x(self, index: int = 0) -> "Term":
        """The operation's input `index`; asking for it is what keeps it in memory."""
        return Term(self, self.available(self.op.inputs[index]))

    def input_type(self, index: int = 0) -> AnyTensor:
        """The type of input `index`."""
        return tensor_type_of(self.op.inputs[index].type)

    def emit(
        self,
        cls: type[TensorOp],
        *inputs: "Term",
        type: AnyTensor | None = None,
        **properties: Attribute,
    ) -> "Term":
        """A new operation; without `type`, its shape rule gives the result's."""
        operands = [term.value for term in inputs]
        op = cls.create(
            operands=operands,
            result_types=[type or operands[-1].type],
            properties={
                **cls.DEFAULTS,
                **properties,
                "operandSegmentSizes": segments(operands, ()),
            },
        )
        if type is None:
            (expected,) = op.result_types_of([term.tensor_type for term in inputs])
            Rewriter.replace_value_with_new_type(op.result, expected)
        return self.insert(op)

    def splat(self, number: float, type: AnyTensor) -> "Term":
        """A constant with one number for all elements."""
        value = number_of(number, type.element_type)
        return self.emit(ConstantOp, type=type, value=value)

    def insert(self, op: TensorOp) -> "Term":
        op.location = self.op.location
        op.attributes.update(self.placement)
        Rewriter.insert_op(op, self.point)
        return Term(self, op.result)


@dataclass(frozen=True)
class Term:
    """A value in a gradient that is being written."""

    site: Site[Any]
    value: SSAValue

    @property
    def tensor_type(self) -> AnyTensor:
        return tensor_type_of(self.value.type)

    @property
    def shape(self) -> Shape:
        return self.tensor_type.get_shape()

    def converted(self, element: Attribute) -> "Term":
        """With elements of another type, if these are not."""
        type = with_element(self.tensor_type, element)
        if type == self.tensor_type:
            return self
        return self.site.emit(ew.ConvertOp, self, type=type)

    def __add__(self, other: "Term | float") -> "Term":
        return self._with(ew.AddOp, other)

    def __sub__(self, other: "Term | float") -> "Term":
        return self._with(ew.SubtractOp, other)

    def __rsub__(self, other: float) -> "Term":
        return self._like(other)._with(ew.SubtractOp, self)

    def __mul__(self, other: "Term | float") -> "Term":
        return self._with(ew.MultiplyOp, other)

    def __truediv__(self, other: "Term") -> "Term":
        return self._with(ew.DivideOp, other)

    def __neg__(self) -> "Term":
        return self.apply(ew.NegateOp)

    def __gt__(self, other: "Term | float") -> "Term":
        return self.compare("GT", other)

    def __lt__(self, other: "Term | float") -> "Term":
        return self.compare("LT", other)

    def __and__(self, other: "Term") -> "Term":
        return self._with(ew.AndOp, other)

    def equals(self, other: "Term | float") -> "Term":
        return self.compare("EQ", other)

    def compare(self, direction: str, other: "Term | float") -> "Term":
        return self.site.emit(
            ew.CompareOp,
            self,
            self._like(other),
            type=with_element(self.tensor_type, i1),
            direction=StringAttr(direction),
        )

    def where(self, condition: "Term", otherwise: "Term | float" = 0.0) -> "Term":
        """This where the condition holds."""
        choices = (condition, self, self._like(otherwise))
        return self.site.emit(ew.SelectOp, *choices, type=self.tensor_type)

    def apply(self, cls: type[ew.UnaryOp]) -> "Term":
        return self.site.emit(cls, self, type=self.tensor_type)

    def _with(self, cls: type[ew.BinaryOp], other: "Term | float") -> "Term":
        return self.site.emit(cls, self, self._like(other), type=self.tensor_type)

    def _like(self, other: "Term | float") -> "Term":
        if isinstance(other, Term):
            return other
        return self.site.splat(other, self.tensor_type)


Rule: TypeAlias = Callable[[Site[Any], int], Term | None]
"""`(site, index of an operand) -> the operand's gradient`; None for zero."""

RULES: dict[type[Operation], Rule] = {}


def gradient_of(*ops: type[TensorOp]) -> Callable[[Rule], Rule]:
    """Registers a rule."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(ops, rule))
        return rule

    return register


@cache
def number_of(number: float, element_type: Attribute) -> IntegerAttr | FloatAttr:
    if isinstance(element_type, AnyFloat):
        return FloatAttr(number, element_type)
    return IntegerAttr(int(number), cast(IntegerType, element_type))
