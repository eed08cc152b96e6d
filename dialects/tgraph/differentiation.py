"""Gradients as operations, which `tgraph-gradient` expands."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import AnyFloat, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    base,
    irdl_op_definition,
    opt_prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...support.choices import one_of
from ..diagnostics import LocatedVerifyError
from .base import VariableType, bare, shape_of, tensor_type_of

MIRROR = "tgraph.mirror"
"""Unit attribute of an operation to recompute for the gradient."""

RECOMPUTED = "tgraph.recomputed"
"""Unit attribute of a recomputed operation. It keeps `cse` from merging the operation
with the original."""

MIRRORS = ("none", "cheap", "attribute")
"""The kinds of operations that are recomputed for the gradient instead of kept; see
`tgraph-gradient`."""


@irdl_op_definition
class GradientOp(IRDLOperation):
    """The gradient of the values `of` with respect to each value after `wrt`.

        %gw, %gb = tgraph.gradient %loss wrt %w, %b
                 : tensor<f32> wrt tensor<4x8xf32>, !tgraph.variable<tensor<8xf32>>
        %gx = tgraph.gradient %y heads %dy wrt %x : tensor<4xf32> wrt tensor<4xf32>

    A scalar has weight 1. Any other value is weighted by its head gradient, of the same
    type (MXNet's `head_grads`, JAX's cotangent). The gradients of several values are
    added up, including a value that occurs twice. The gradient with respect to a
    variable is that with respect to its contents before the function's first write.

    The results are tensors of the types after `wrt`. `mirror` is described in
    `tgraph-gradient`.
    """

    name = "tgraph.gradient"

    of = var_operand_def(base(TensorType))
    heads = var_operand_def(base(TensorType))
    wrt = var_operand_def(base(TensorType) | base(VariableType))
    res = var_result_def(base(TensorType))

    mirror = opt_prop_def(StringAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        of: Sequence[SSAValue],
        wrt: Sequence[SSAValue],
        heads: Sequence[SSAValue] = (),
        mirror: str | None = None,
    ):
        super().__init__(
            operands=[of, heads, wrt],
            result_types=[[tensor_type_of(value.type) for value in wrt]],
            properties={"mirror": StringAttr(mirror) if mirror else None},
        )

    def verify_(self) -> None:
        try:
            self._verify()
        except VerifyException as e:
            raise LocatedVerifyError(f"{self.name}: {e}", self) from None

    def _verify(self) -> None:
        for value in (*self.of, *self.wrt):
            element_type = tensor_type_of(value.type).element_type
            if not isinstance(element_type, AnyFloat):
                raise VerifyException(
                    f"operand has type {value.type}, expected elements of a float type"
                )
        if self.heads and list(self.heads.types) != list(self.of.types):
            raise VerifyException(
                f"head gradients have the types {_listed(self.heads.types)}, expected "
                f"those of the values: {_listed(self.of.types)}"
            )
        for value in () if self.heads else self.of:
            if shape_of(tensor_type_of(value.type)):
                raise VerifyException(
                    f"value has type {bare(tensor_type_of(value.type))}, expected a "
                    "scalar, or head gradients"
                )
        expected = [tensor_type_of(value.type) for value in self.wrt]
        if list(self.res.types) != expected:
            raise VerifyException(
                f"results have the types {_listed(self.res.types)}, expected "
                f"{_listed(expected)}"
            )
        if self.mirror and self.mirror.data not in MIRRORS:
            raise VerifyException(f"mirror is {one_of(self.mirror.data, MIRRORS)}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.of, printer.print_operand)
        if self.heads:
            printer.print_string(" heads ")
            printer.print_list(self.heads, printer.print_operand)
        printer.print_string(" wrt ")
        printer.print_list(self.wrt, printer.print_operand)
        attributes = dict(self.attributes)
        if self.mirror:
            attributes["mirror"] = self.mirror
        printer.print_op_attributes(attributes)
        printer.print_string(" : ")
        printer.print_list(self.of.types, printer.print_attribute)
        printer.print_string(" wrt ")
        printer.print_list(self.wrt.types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> "GradientOp":
        def parse_operands():
            return parser.parse_comma_separated_list(
                parser.Delimiter.NONE, parser.parse_unresolved_operand
            )

        def parse_types():
            return parser.parse_comma_separated_list(
                parser.Delimiter.NONE, parser.parse_type
            )

        of = parse_operands()
        heads = parse_operands() if parser.parse_optional_keyword("heads") else []
        parser.parse_keyword("wrt")
        wrt = parse_operands()
        attributes = parser.parse_optional_attr_dict()
        position = parser.pos
        parser.parse_punctuation(":")
        of_types = parse_types()
        parser.parse_keyword("wrt")
        wrt_types = parse_types()
        for type in wrt_types:
            if not isinstance(type, TensorType | VariableType):
                parser.raise_error(
                    f"gradient with respect to {type}, expected a tensor or a variable",
                    position,
                )
        mirror = attributes.pop("mirror", None)
        op = cls(
            parser.resolve_operands(of, of_types, position),
            parser.resolve_operands(wrt, wrt_types, position),
            parser.resolve_operands(heads, of_types, position) if heads else (),
        )
        if mirror is not None:
            op.properties["mirror"] = mirror
        op.attributes.update(attributes)
        return op


def _listed(types: Sequence[Attribute]) -> str:
    return ", ".join(str(bare(tensor_type_of(t))) for t in cast(list[Attribute], types))


DIFFERENTIATION_OPS = (GradientOp,)
