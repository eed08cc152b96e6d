"""The interface of gradient rules: the site that a rule writes to, and its terms.

    @gradient_of(TransposeOp)
    def _transpose(site: GradientSite[TransposeOp], index: int) -> Term | None:
        return site.emit(TransposeOp, site.g, permutation=...)

A rule returns the gradient with respect to one operand, or None if that is zero. The
operators of terms write elementwise operations: `site.g * site.x(1)`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import LocationAttr, NameLoc, StringAttr, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.tgraph import elementwise as ew
from ....dialects.tgraph import terms
from ....dialects.tgraph.base import (
    AnyTensor,
    Shape,
    TensorOp,
    segments,
    tensor_type_of,
    with_element,
)
from ..shared.constants import full

Op = TypeVar("Op", bound=TensorOp)
Term: TypeAlias = terms.Term[SSAValue]


@dataclass(frozen=True)
class GradientSite(terms.TermBuilder[SSAValue], Generic[Op]):
    """A forward operation whose gradient is being written, before `point`.

    New operations carry the operation's location (`backward`) and the attributes
    `placement`.
    """

    op: Op
    gradient: SSAValue
    """The gradient with respect to the operation's result."""

    point: InsertPoint
    placement: Mapping[str, Attribute]
    available: Callable[[SSAValue], SSAValue]
    """Maps a value of the forward program to the value to read here: itself, or a
    recomputed copy."""

    def term(self, value: SSAValue) -> Term:
        return terms.Term(self, value, tensor_type_of(value.type).element_type)

    @property
    def g(self) -> Term:
        return self.term(self.gradient)

    @property
    def y(self) -> Term:
        """The operation's result."""
        return self.term(self.available(self.op.result))

    def x(self, index: int = 0) -> Term:
        """The operation's input `index`. A rule that reads it keeps it live."""
        return self.term(self.available(self.op.inputs[index]))

    def input_type(self, index: int = 0) -> AnyTensor:
        """The type of input `index`."""
        return tensor_type_of(self.op.inputs[index].type)

    def emit(
        self,
        cls: type[TensorOp],
        *inputs: Term,
        type: AnyTensor | None = None,
        **properties: Attribute,
    ) -> Term:
        """Inserts an operation and returns its result. Without `type`, the shape rule
        gives the type of the result."""
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
            (expected,) = op.result_types_of([type_of(term) for term in inputs])
            Rewriter.replace_value_with_new_type(op.result, expected)
        return self.insert(op)

    def apply(self, kind: type[ew.ElementwiseOp], *terms: Term) -> Term:
        return self.emit(kind, *terms, type=type_of(terms[0]))

    def compare(self, direction: str, x: Term, y: Term) -> Term:
        type = with_element(type_of(x), i1)
        return self.emit(ew.CompareOp, x, y, type=type, direction=StringAttr(direction))

    def select(self, condition: Term, x: Term, y: Term) -> Term:
        return self.emit(ew.SelectOp, condition, x, y, type=type_of(x))

    def constant(self, number: float, like: Term) -> Term:
        return self.splat(number, type_of(like))

    def splat(self, number: float, type: AnyTensor) -> Term:
        """A constant with one number for all elements."""
        *parts, last = full(number, type)
        for op in parts:
            self.insert(op)
        return self.insert(last)

    def insert(self, op: TensorOp) -> Term:
        op.location = backward(self.op.location)
        op.attributes.update(self.placement)
        Rewriter.insert_op(op, self.point)
        return self.term(op.result)


def backward(location: LocationAttr) -> LocationAttr:
    """The location of an operation that computes a gradient: a name becomes
    `transpose(name)`, as in JAX."""
    if not isinstance(location, NameLoc):
        return location
    return NameLoc(StringAttr(f"transpose({location.desc.data})"), location.location)


def site_of(x: Term) -> GradientSite[Any]:
    """The site to which a term is written."""
    return cast(GradientSite[Any], x.builder)


def type_of(x: Term) -> AnyTensor:
    return tensor_type_of(x.value.type)


def shape_of(x: Term) -> Shape:
    return type_of(x).get_shape()


def converted(x: Term, element: Attribute) -> Term:
    """`x` with elements of type `element`."""
    if x.element == element:
        return x
    return site_of(x).emit(ew.ConvertOp, x, type=with_element(type_of(x), element))


Rule: TypeAlias = Callable[[GradientSite[Any], int], Term | None]
"""`(site, index of an operand) -> the operand's gradient`; None for zero."""

RULES: dict[type[Operation], Rule] = {}


def gradient_of(*ops: type[TensorOp]) -> Callable[[Rule], Rule]:
    """Registers a rule for operations of these classes."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(ops, rule))
        return rule

    return register
