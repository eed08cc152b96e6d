"""State and structure: variables, fusions, loops, and branches."""

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import StringAttr, TensorType, i1
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue, Use
from xdsl.irdl import (
    IRDLOperation,
    ParamAttrConstraint,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    MemoryReadEffect,
    MemoryWriteEffect,
    Pure,
)
from xdsl.utils.exceptions import VerifyException

from ..contents import cached_by_contents
from .base import (
    AnyTensor,
    Kind,
    Pattern,
    TensorOp,
    TensorOpEffects,
    VariableType,
    bare,
    shape_of,
    tensor_type_of,
    with_element,
    with_shape,
)
from .callbacks import CallbackEffects
from .fusing import Group, group_of, overwritable
from .partial import UNKNOWN, PartialTypes


@irdl_op_definition
class ReadOp(IRDLOperation, metaclass=Kind):
    """The contents of a variable at this point in the program."""

    name = "tgraph.read"

    T: ClassVar = VarConstraint("T", base(TensorType))

    variable = operand_def(ParamAttrConstraint(VariableType, (T,)))
    result = result_def(T)

    traits = traits_def(MemoryReadEffect())

    assembly_format = "$variable attr-dict `:` type($result)"

    def __init__(self, variable: SSAValue):
        super().__init__(
            operands=[variable], result_types=[tensor_type_of(variable.type)]
        )


@irdl_op_definition
class AssignOp(IRDLOperation, metaclass=Kind):
    """Assigns new contents to a variable at this point in the program."""

    name = "tgraph.assign"

    T: ClassVar = VarConstraint("T", base(TensorType))

    variable = operand_def(ParamAttrConstraint(VariableType, (T,)))
    value = operand_def(T)

    traits = traits_def(MemoryWriteEffect())

    assembly_format = "$variable `,` $value attr-dict `:` type($value)"

    def __init__(self, variable: SSAValue, value: SSAValue):
        super().__init__(operands=[variable, value])


@irdl_op_definition
class OnDeviceOp(IRDLOperation):
    """Annotates that its operand is computed on a device (TVM Relay's annotation).

        %r = tgraph.on_device %x, "gpu:0" : tensor<4xf32>

    `tgraph-infer-devices` and `tgraph-place-devices` remove these operations.
    """

    name = "tgraph.on_device"

    T: ClassVar = VarConstraint("T", base(TensorType))

    value = operand_def(T)
    device = prop_def(StringAttr)
    result = result_def(T)

    assembly_format = "$value `,` $device attr-dict `:` type($result)"

    def __init__(self, value: SSAValue, device: str):
        super().__init__(
            operands=[value],
            result_types=[value.type],
            properties={"device": StringAttr(device)},
        )


@irdl_op_definition
class YieldOp(IRDLOperation, metaclass=Kind):
    """Terminates a region, and passes its results to the operation around it."""

    name = "tgraph.yield"

    values = var_operand_def(base(TensorType))

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, *values: SSAValue):
        super().__init__(operands=[values])


def _yields(use: Use) -> bool:
    return isinstance(use.operation, YieldOp)


@irdl_op_definition
class FusionOp(TensorOp):
    """A group of operations that are computed together, without storing the values
    between them.

        %r = tgraph.fusion(%x = %a, %y = %b)
             : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> {
          %0 = tgraph.broadcast_in_dim %y {...} : (tensor<f32>) -> tensor<4xf32>
          %1 = tgraph.add %x, %0 : tensor<4xf32>
          tgraph.yield %1 : tensor<4xf32>
        }

    The body operates on tensors at every level. It uses no outside values except its
    arguments, one per input.
    """

    name = "tgraph.fusion"
    RESULTS: ClassVar = None

    traits = traits_def(TensorOpEffects(), IsolatedFromAbove())

    body = region_def("single_block")

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        body: Region,
        *,
        outs: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
    ):
        super().__init__(inputs, outs=outs, result_types=result_types, regions=[body])

    @property
    def yielded(self) -> Sequence[SSAValue]:
        terminator = self.body.block.last_op
        assert isinstance(terminator, YieldOp)
        return terminator.values

    def group(self) -> Group | None:
        """The group in the body; None if the body is not a group of any form."""
        if len(self.yielded) != 1:
            return None
        return group_of(self.body.block, self.yielded[0])

    @cached_by_contents
    def overwritable(self) -> Sequence[int]:
        """The inputs that the body reads only at the result's position, or in its row.

        A body that yields one of its arguments copies it. A group of rows is computed
        row by row (or several rows at a time): all of a row is read before the last
        operation writes it. The same holds for operations after a contraction, which
        are computed for a part of its result at a time. A group that ends with an
        update may overwrite the updated tensor, if it reads nothing of it but the slice
        that it replaces, and that only at the position or in the row being written. A
        group that ends with a scatter may overwrite the scatter's operand, if it reads
        this operand nowhere else.
        """
        group = self.group()
        if group is not None and group.update is not None:
            return group.updated()
        if group is not None:
            in_place = group.reads_in_place
        elif len(self.yielded) == 1 and isinstance(self.yielded[0], BlockArgument):
            in_place = _yields
        else:
            return ()
        read = ((a.type, a.uses) for a in self.body.block.args)
        return overwritable(in_place, self.declared[0], read)

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        arguments = [cast(AnyTensor, a.type) for a in self.body.block.args]
        if len(arguments) != len(inputs):
            raise VerifyException(
                f"body has {len(arguments)} arguments, expected {len(inputs)}: one "
                "for each input"
            )
        for index, (got, want) in enumerate(zip(arguments, inputs, strict=True)):
            if got != want:
                raise VerifyException(
                    f"body argument {index} has type {got}, expected {want}"
                )
        if not isinstance(self.body.block.last_op, YieldOp):
            raise VerifyException("body does not end with tgraph.yield")
        for op in self.body.block.ops:
            if isinstance(op, TensorOp):
                if op.outs or op.PATTERN is Pattern.OPAQUE:
                    raise VerifyException(f"{op.name} cannot be part of a fusion")
            elif not isinstance(op, YieldOp):
                raise VerifyException(f"{op.name} cannot be part of a fusion")
            for operand in op.operands:
                if operand.owner is not self.body.block and (
                    isinstance(operand.owner, Block)
                    or operand.owner.parent is not self.body.block
                ):
                    raise VerifyException(
                        f"{op.name} in the body uses a value from outside, expected "
                        "body arguments only"
                    )
        return [tensor_type_of(value.type) for value in self.yielded]

    def print(self, printer: Printer) -> None:
        block = self.body.block
        printer.print_string("(")
        for index, (argument, value) in enumerate(
            zip(block.args, self.inputs, strict=True)
        ):
            if index:
                printer.print_string(", ")
            printer.print_ssa_value(argument)
            printer.print_string(" = ")
            printer.print_operand(value)
        printer.print_string(")")
        self._print_tail(printer)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> TensorOp:
        def parse_input() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
            argument = parser.parse_argument(expect_type=False)
            parser.parse_punctuation("=")
            return argument, parser.parse_unresolved_operand()

        pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_input)
        op = cls._parse_tail(parser, [operand for _, operand in pairs])
        arguments = [
            argument.resolve(tensor_type_of(value.type))
            for (argument, _), value in zip(pairs, op.inputs, strict=True)
        ]
        op.add_region(parser.parse_region(arguments))
        return op


class RegionOp(TensorOp):
    """An operation with regions that use no outside values except their arguments.

    The regions are on tensors at every level. They follow the signature, and have one
    block each.
    """

    KEYWORDS: ClassVar[Sequence[str]] = ()
    """The keyword before each region except the first."""

    traits = traits_def(CallbackEffects(), IsolatedFromAbove())

    def print(self, printer: Printer) -> None:
        super().print(printer)
        for keyword, region in zip(("", *self.KEYWORDS), self.regions, strict=True):
            printer.print_string(f" {keyword} " if keyword else " ")
            printer.print_region(region)

    @classmethod
    def parse(cls, parser: Parser) -> TensorOp:
        op = super().parse(parser)
        op.add_region(parser.parse_region())
        for keyword in cls.KEYWORDS:
            parser.parse_keyword(keyword)
            op.add_region(parser.parse_region())
        return op

    def _check_arguments(self, region: Region, types: Sequence[Attribute]) -> None:
        arguments = [argument.type for argument in region.block.args]
        if arguments != list(types):
            raise VerifyException(
                f"a region has arguments of types {_listed(arguments)}, expected "
                f"{_listed(types)}"
            )

    def _check_yields(self, region: Region, types: Sequence[Attribute]) -> None:
        last = region.block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException("a region does not end with tgraph.yield")
        yielded = [value.type for value in last.values]
        if yielded != list(types):
            raise VerifyException(
                f"a region yields types {_listed(yielded)}, expected {_listed(types)}"
            )


def _listed(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"


def yielded(region: Region) -> Sequence[SSAValue]:
    """The values that a region yields."""
    terminator = region.block.last_op
    assert isinstance(terminator, YieldOp)
    return terminator.values


@irdl_op_definition
class WhileOp(RegionOp):
    """Repeats its body while its condition holds.

        %n:2 = tgraph.while %i, %x, %w : (tensor<i32>, tensor<4xf32>, tensor<4xf32>)
                                         -> (tensor<i32>, tensor<4xf32>) {
        ^bb0(%vi: !tgraph.variable<tensor<i32>>, %vx: !tgraph.variable<tensor<4xf32>>,
             %c: tensor<4xf32>):
          %0 = tgraph.read %vi : tensor<i32>
          ...
          tgraph.yield %3 : tensor<i1>
        } do {
        ^bb0(%vi: ..., %vx: ..., %c: tensor<4xf32>):
          ...
          tgraph.assign %vi, %5 : tensor<i32>
          tgraph.assign %vx, %7 : tensor<4xf32>
          tgraph.yield
        }

    The first inputs, one for each result, are the initial values of the variables that
    the loop carries. Both regions take these variables as arguments, and the variables'
    contents after the last iteration are the results. The remaining inputs are
    loop-invariant. The condition only reads variables.
    """

    name = "tgraph.while"
    RESULTS: ClassVar = None
    KEYWORDS: ClassVar = ("do",)

    condition = region_def("single_block")
    body = region_def("single_block")

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        count = len(self.declared)
        if self.outs:
            raise VerifyException(
                f"has {len(self.outs)} outs, expected none: its results can be assigned"
            )
        if count > len(inputs):
            raise VerifyException(
                f"has {count} results and {len(inputs)} inputs, expected an input for "
                "each result"
            )
        carried = [VariableType(type) for type in inputs[:count]]
        for region in self.regions:
            self._check_arguments(region, [*carried, *inputs[count:]])
        self._check_yields(
            self.condition, [with_element(with_shape(inputs[0], ()), i1)]
        )
        self._check_yields(self.body, [])
        for op in self.condition.block.ops:
            if any(
                isinstance(v.type, VariableType) and not isinstance(op, ReadOp)
                for v in op.operands
            ):
                raise VerifyException(f"{op.name} in the condition writes a variable")
        return inputs[:count]

    def refine(self, types: PartialTypes) -> None:
        for number, result in enumerate(types.values[types.inputs :]):
            types.same_shape(number, result)
            types.same_element(number, result)


@irdl_op_definition
class IfOp(RegionOp):
    """The results of one of two regions, selected by the first input, a scalar.

        %r = tgraph.if %p, %x : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32> {
        ^bb0(%a: tensor<4xf32>):
          ...
          tgraph.yield %1 : tensor<4xf32>
        } else {
        ^bb0(%a: tensor<4xf32>):
          tgraph.yield %a : tensor<4xf32>
        }

    Both regions take the remaining inputs as arguments. There are no results if the
    regions only have effects.
    """

    name = "tgraph.if"
    RESULTS: ClassVar = None
    MAY_LACK_RESULTS: ClassVar = True
    KEYWORDS: ClassVar = ("else",)

    on_true = region_def("single_block")
    on_false = region_def("single_block")

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        if not inputs or bare(inputs[0]) != TensorType(i1, []):
            got = bare(inputs[0]) if inputs else "no operands"
            raise VerifyException(f"has {got} for its condition, expected tensor<i1>")
        declared = self.declared
        for region in self.regions:
            self._check_arguments(region, inputs[1:])
            self._check_yields(region, declared)
        return declared

    def refine(self, types: PartialTypes) -> None:
        for number, result in enumerate(types.values[types.inputs :]):
            for region in self.regions:
                value = tensor_type_of(yielded(region)[number].type)
                types.set_element(result, value.element_type)
                for dim, size in enumerate(shape_of(value)):
                    if size != UNKNOWN:
                        types.set_size((result, dim), size)


STRUCTURE_OPS = (AssignOp, FusionOp, IfOp, OnDeviceOp, ReadOp, WhileOp, YieldOp)
