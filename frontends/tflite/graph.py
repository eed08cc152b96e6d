"""The main graph of a `.tflite` file → one `func.func` at level 1, by operators."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NoReturn

from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...dialects.diagnostics import LocatedError, errors_at
from ...dialects.dtypes import Array
from ...dialects.tgraph.base import NAME, PARAMETER, TensorOp
from ...dialects.tgraph.reference.interpreter import can_evaluate, evaluate
from ..builder import at, element_type, name_hint, shape_of
from ..entry import entry
from ..operators import Known, Value
from ..unsupported import Unsupported
from . import elementwise, products, reducing, resizing, shaping, softmax, windows
from .node import Conversion, TFLiteNode
from .reading import Graph, Operator

CONVERSIONS: Mapping[str, Conversion] = {
    **elementwise.CONVERSIONS,
    **products.CONVERSIONS,
    **reducing.CONVERSIONS,
    **resizing.CONVERSIONS,
    **shaping.CONVERSIONS,
    **softmax.CONVERSIONS,
    **windows.CONVERSIONS,
}

_LARGEST = 1 << 16  # elements of what is computed when the model is read


class Importer:
    """Converts a graph; afterwards `parameters` has the arrays of its parameters."""

    def __init__(self, name: str, graph: Graph):
        self._name = name
        self._graph = graph
        self._names = graph.names
        self._block = Block()
        self._attributes: list[dict[str, Attribute]] = []
        self._values: dict[int, Value | None] = {-1: None}
        self._ops: list[Operation] = []
        self._count = 0
        self._unsupported: list[tuple[Operation, str]] = []
        self.parameters: dict[str, Array] = {}

    def module(self) -> ModuleOp:
        """Raises one `LocatedError` for all that is not supported."""
        graph = self._graph
        for number in graph.inputs:
            self._values[number] = self._argument(number, {})
        for operator in graph.operators:
            self._count += 1
            for number in operator.inputs:
                self._take_constant(number)
            outputs = self._converted(operator)
            for number, value in zip(operator.outputs, outputs, strict=False):
                self._values[number] = value
                if isinstance(value, SSAValue) and value.name_hint is None:
                    value.name_hint = name_hint(self._names[number])
        for number in graph.outputs:
            self._take_constant(number)
        if self._unsupported:
            raise errors_at(self._unsupported)
        return ModuleOp([self._function()])

    def _function(self) -> FuncOp:
        outputs = self._graph.outputs
        builder = self._node(Operator("", [], [], None))
        results: list[SSAValue] = []
        for number in outputs:
            if (value := self._values.get(number)) is None:
                raise self._error(f"output {self._names[number]!r} is not computed")
            results.append(builder.materialize(value))
        names = [self._names[number] for number in outputs]
        return entry(
            *(self._block, self._attributes, self.parameters, self._ops),
            *(results, names, self._place("")),
        )

    def _argument(self, number: int, attributes: dict[str, Attribute]) -> SSAValue:
        tensor = self._graph.tensors[number]
        try:
            type = TensorType(element_type(tensor.dtype), tensor.shape)
        except Unsupported as reason:
            raise self._error(
                f"tensor {tensor.name!r} {reason} is not supported"
            ) from None
        argument = self._block.insert_arg(type, len(self._block.args))
        argument.name_hint = name_hint(self._names[number])
        self._attributes.append({NAME: StringAttr(self._names[number]), **attributes})
        return argument

    def _take_constant(self, number: int) -> None:
        """Floats and 8-bit numbers of rank 1 and more are parameters."""
        tensor = self._graph.tensors[number]
        if number in self._values or tensor.contents is None:
            return
        try:
            array = tensor.array()
        except (Unsupported, ValueError) as error:
            what = "is not supported" if isinstance(error, Unsupported) else ""
            raise self._error(
                f"tensor {tensor.name!r} {error} {what}".rstrip()
            ) from None
        argument = None
        if tensor.is_parameter:
            argument = self._argument(number, {PARAMETER: UnitAttr()})
            self.parameters[self._names[number]] = array
        self._values[number] = Known(array, argument)

    def _node(self, operator: Operator) -> TFLiteNode:
        tensors = self._graph.tensors
        return TFLiteNode(
            self._ops,
            self._place(self._names[operator.outputs[0]] if operator.outputs else ""),
            [self._names[n] if n >= 0 else "" for n in operator.inputs],
            [self._values.get(n) for n in operator.inputs],
            operator.options,
            [tensors[n] if n >= 0 else None for n in operator.inputs],
            [tensors[n] for n in operator.outputs],
        )

    def _converted(self, operator: Operator) -> Sequence[Value | None]:
        nothing = [None] * len(operator.outputs)
        conversion = CONVERSIONS.get(operator.kind)
        if conversion is None:
            self._refuse(operator, "")
            return nothing
        for number in operator.inputs:
            if number not in self._values:
                if self._graph.tensors[number].is_variable:
                    self._refuse(operator, " with a state")
                    return nothing
                self._fail(operator, f"input {self._names[number]!r} is not computed")
        if any(n >= 0 and self._values[n] is None for n in operator.inputs):
            return nothing
        node = self._node(operator)
        try:
            return _folded(conversion, node) or conversion(node)
        except Unsupported as reason:
            self._refuse(operator, f" {reason}")
        except (ArithmeticError, LookupError):  # of sizes and dimensions
            types = ", ".join(f"{t.shape}" for t in node.tensors if t)
            self._refuse(operator, f" of shapes {types}")
        except (VerifyException, ValueError, AttributeError) as error:
            self._fail(operator, " ".join(str(error).split()))
        return nothing

    def _refuse(self, operator: Operator, reason: str) -> None:
        message = f"operation {operator.kind}{reason} is not supported"
        self._unsupported.append((at(self._place_of(operator)), message))

    def _fail(self, operator: Operator, reason: str) -> NoReturn:
        message = f"operation {operator.kind}: {reason}"
        raise LocatedError(message, at(self._place_of(operator)))

    def _error(self, reason: str) -> LocatedError:
        return LocatedError(f"{self._name}: {reason}")

    def _place_of(self, operator: Operator) -> FileLineColLoc:
        outputs = operator.outputs
        return self._place(self._names[outputs[0]] if outputs else "")

    def _place(self, label: str) -> FileLineColLoc:
        """`model.tflite#tensor:number:1`: what operations and messages are located
        by."""
        name = f"{self._name}#{label}" if label else self._name
        return FileLineColLoc(StringAttr(name), IntAttr(self._count), IntAttr(1))


def _folded(conversion: Conversion, node: TFLiteNode) -> Sequence[Value] | None:
    """The outputs of an operator on constants; None if it is to be computed at run
    time, as everything of parameters is."""
    for value in filter(None, node.inputs):
        if (
            not isinstance(value, Known)
            or value.argument
            or value.array.size > _LARGEST
        ):
            return None
    ops: list[Operation] = []
    outputs = conversion(replace(node, into=ops))
    arrays: dict[SSAValue, Array] = {}
    for op in ops:
        assert isinstance(op, TensorOp)
        if not can_evaluate(op) or prod(shape_of(op.results[0])) > _LARGEST:
            return None
        inputs = [arrays[value] for value in op.inputs]
        arrays[op.results[0]] = evaluate(op, inputs)
    return [
        Known(arrays[value]) if isinstance(value, SSAValue) else value
        for value in outputs
    ]
