"""Converts the graphs of a `.tflite` file to one `func.func` at level 1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import NoReturn

import numpy as np
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
from ...dialects.tgraph.base import NAME, PARAMETER, TensorOp, VariableType
from ...dialects.tgraph.reference.evaluation import can_evaluate, evaluate
from ...dialects.tgraph.structure import AssignOp, ReadOp
from ..builder import at, element_type, name_hint, shape_of
from ..entry import entry
from ..operators import Known, Value
from ..unsupported import Unsupported, not_supported
from . import (
    elementwise,
    indexing,
    normalization,
    products,
    recurrent,
    reducing,
    resizing,
    shaping,
    softmax,
    spectral,
    windows,
)
from .control import CONTROL
from .node import Conversion, TFLiteNode
from .reading import Graph, Operator, Tensor

CONVERSIONS: Mapping[str, Conversion] = {
    **elementwise.CONVERSIONS,
    **indexing.CONVERSIONS,
    **normalization.CONVERSIONS,
    **products.CONVERSIONS,
    **recurrent.CONVERSIONS,
    **reducing.CONVERSIONS,
    **resizing.CONVERSIONS,
    **shaping.CONVERSIONS,
    **softmax.CONVERSIONS,
    **spectral.CONVERSIONS,
    **windows.CONVERSIONS,
}

STATE = ("ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "VAR_HANDLE")

_LARGEST = 1 << 16  # the largest number of elements of a folded value


class Importer:
    """Converts graphs. `parameters` then has the arrays of the parameters, and the
    initial contents of variables.
    """

    def __init__(self, name: str, graphs: Sequence[Graph]):
        self._name = name
        self._graphs = graphs
        self._block = Block()
        self._attributes: list[dict[str, Attribute]] = []
        self._open: list[int] = []
        """The numbers of the graphs being converted, outer ones first."""
        self._constants: dict[str, SSAValue] = {}
        self._variables: dict[str, SSAValue] = {}
        self._unsupported: list[tuple[Operation, str]] = []
        self.parameters: dict[str, Array] = {}

    def module(self) -> ModuleOp:
        """Converts the main graph. Raises one `LocatedError` for all errors."""
        main = _Scope(self._graphs[0], [])
        for number in main.graph.inputs:
            main.values[number] = self._argument(main, number, {})
        self._convert(main)
        if self._unsupported:
            raise errors_at(self._unsupported)
        return ModuleOp([self._function(main)])

    def _convert(self, scope: "_Scope") -> None:
        graph = scope.graph
        if graph.number in self._open:
            raise self._error(f"graph {graph.number} calls itself")
        self._open.append(graph.number)
        for operator in graph.operators:
            scope.count += 1
            for number in operator.inputs:
                self._take_constant(scope, number)
            outputs = self._converted(scope, operator)
            for number, value in zip(operator.outputs, outputs, strict=False):
                scope.values[number] = value
                if isinstance(value, SSAValue) and value.name_hint is None:
                    value.name_hint = name_hint(graph.names[number])
        for number in graph.outputs:
            self._take_constant(scope, number)
        self._open.pop()

    def _function(self, scope: "_Scope") -> FuncOp:
        outputs, names = scope.graph.outputs, scope.graph.names
        builder = self._node(scope, Operator("", [], [], None))
        results = [builder.materialize(v) for v in self._results(scope) or ()]
        return entry(
            *(self._block, self._attributes, self.parameters, scope.ops),
            *(results, [names[n] for n in outputs], self._place(scope, "")),
        )

    def _results(self, scope: "_Scope") -> Sequence[Value] | None:
        """The outputs of a graph; None if one is not supported."""
        found: list[Value] = []
        for number in scope.graph.outputs:
            if number not in scope.values:
                name = scope.graph.names[number]
                raise self._error(f"output {name!r} is not computed")
            if (value := scope.values[number]) is not None:
                found.append(value)
        return found if len(found) == len(scope.graph.outputs) else None

    def _graph(self, number: int) -> Graph:
        if not 0 <= number < len(self._graphs):
            raise ValueError(f"there is no graph {number}")
        return self._graphs[number]

    def _subgraph(
        self, number: int, inputs: Sequence[Value], into: list[Operation]
    ) -> Sequence[Value] | None:
        """Appends the operations of a graph; None if it is not supported."""
        graph = self._graph(number)
        scope = _Scope(graph, into)
        if len(graph.inputs) != len(inputs):
            raise ValueError(
                f"graph {number} has {len(graph.inputs)} inputs, expected {len(inputs)}"
            )
        for place, value in zip(graph.inputs, inputs, strict=True):
            type = self._type(graph.tensors[place])
            if isinstance(value, SSAValue) and value.type != type:
                raise ValueError(f"graph {number} takes {type}, not {value.type}")
            scope.values[place] = value
        self._convert(scope)
        return self._results(scope)

    # Arguments

    def _argument(
        self, scope: "_Scope", number: int, attributes: dict[str, Attribute]
    ) -> SSAValue:
        name = scope.graph.names[number]
        return self._new_argument(
            name, self._type(scope.graph.tensors[number]), attributes
        )

    def _type(self, tensor: Tensor) -> TensorType[Attribute]:
        try:
            return TensorType(element_type(tensor.dtype), tensor.shape)
        except Unsupported as reason:
            raise self._error(
                not_supported(f"tensor {tensor.name!r}", reason)
            ) from None

    def _new_argument(
        self, name: str, type: Attribute, attributes: dict[str, Attribute]
    ) -> SSAValue:
        argument = self._block.insert_arg(type, len(self._block.args))
        argument.name_hint = name_hint(name)
        self._attributes.append({NAME: StringAttr(name), **attributes})
        return argument

    def _take_constant(self, scope: "_Scope", number: int) -> None:
        """Adds a constant to the scope, as an argument if it is a parameter."""
        tensor = scope.graph.tensors[number]
        if number in scope.values or tensor.contents is None:
            return
        try:
            array = tensor.array()
        except Unsupported as reason:
            what = not_supported(f"tensor {tensor.name!r}", reason)
            raise self._error(what) from None
        except ValueError as error:
            raise self._error(f"tensor {tensor.name!r} {error}") from None
        argument, name = None, scope.graph.names[number]
        if tensor.is_parameter:
            argument = self._constants.get(name)  # exists if a graph is called again
            if argument is None:
                argument = self._argument(scope, number, {PARAMETER: UnitAttr()})
            self._constants[name], self.parameters[name] = argument, array
        scope.values[number] = Known(array, argument)

    # Variables

    def _variable(self, name: str, like: Tensor) -> SSAValue:
        """The argument for a variable of a tensor's type, initially zeros."""
        type = self._type(like)
        if name not in self._variables:
            self._variables[name] = self._new_argument(name, VariableType(type), {})
            self.parameters[name] = np.zeros(like.shape, like.dtype)
        variable = self._variables[name]
        if variable.type != VariableType(type):
            raise ValueError(f"variable {name!r} has type {variable.type}")
        return variable

    def _stateful(
        self, scope: "_Scope", operator: Operator, node: TFLiteNode
    ) -> Sequence[Value | None]:
        """Converts an operation on variables of the main graph.

        CALL_ONCE sets their initial contents.
        """
        inputs, tensors = operator.inputs, scope.graph.tensors
        is_initial = scope.is_initial
        self._expect_main(scope)

        def variable(like: int) -> SSAValue:
            if inputs[0] not in scope.handles:
                raise Unsupported("on a variable of another graph")
            return self._variable(scope.handles[inputs[0]], tensors[like])

        match operator.kind:
            case "CALL_ONCE":
                graph = self._graph(node.option("InitSubgraphIndex"))
                self._convert(_Scope(graph, [], is_initial=True))
            case "VAR_HANDLE":
                name = (node.option("SharedName") or b"variable").decode()
                while any(name in graph.names for graph in self._graphs):
                    name += "_"
                scope.handles[operator.outputs[0]] = name
            case "READ_VARIABLE":
                node.into.append(read := ReadOp(variable(operator.outputs[0])))
                return [read.result]
            case _:
                own = variable(inputs[1])
                if is_initial:
                    self.parameters[scope.handles[inputs[0]]] = node.known(1)
                else:
                    node.into.append(AssignOp(own, node.value(1)))
        return []

    def _expect_main(self, scope: "_Scope") -> None:
        if len(self._open) > 1 and not scope.is_initial:
            raise Unsupported("in a branch or a loop")

    def _state(self, scope: "_Scope", number: int) -> SSAValue:
        """Reads the variable for a tensor that persists between runs; returns it."""
        self._expect_main(scope)
        graph = scope.graph
        variable = self._variable(graph.names[number], graph.tensors[number])
        scope.ops.append(read := ReadOp(variable))
        scope.values[number] = read.result
        return variable

    # Operators

    def _node(self, scope: "_Scope", operator: Operator) -> TFLiteNode:
        tensors, names = scope.graph.tensors, scope.graph.names
        return TFLiteNode(
            scope.ops,
            self._place_of(scope, operator),
            [names[n] if n >= 0 else "" for n in operator.inputs],
            [scope.values.get(n) for n in operator.inputs],
            operator.options,
            [tensors[n] if n >= 0 else None for n in operator.inputs],
            [tensors[n] for n in operator.outputs],
        )

    def _converted(self, scope: "_Scope", operator: Operator) -> Sequence[Value | None]:
        nothing = [None] * len(operator.outputs)
        kind, values, tensors = operator.kind, scope.values, scope.graph.tensors
        states = [n for n in operator.inputs if n >= 0 and tensors[n].is_variable]
        if not any(kind in known for known in (CONVERSIONS, CONTROL, STATE)):
            self._refuse(scope, operator, "")
            return nothing
        for number in operator.inputs:
            if number in values or number in states:
                continue
            if number in scope.handles and kind in STATE:
                continue
            if number in scope.handles:
                self._refuse(scope, operator, "with a state")
                return nothing
            name = scope.graph.names[number]
            self._fail(scope, operator, f"input {name!r} is not computed")
        if any(n >= 0 and values.get(n, n) is None for n in operator.inputs):
            return nothing
        try:
            variables = [self._state(scope, number) for number in states]
            node = self._node(scope, operator)
            if kind in STATE:
                return self._stateful(scope, operator, node)
            if kind in CONTROL:
                return CONTROL[kind](node, self._subgraph)
            conversion = CONVERSIONS[kind]
            outputs = _folded(conversion, node) or conversion(node)
            assigned = outputs[len(operator.outputs) :]
            for variable, value in zip(variables, assigned, strict=False):
                scope.ops.append(AssignOp(variable, node.materialize(value)))
            return outputs
        except Unsupported as reason:
            self._refuse(scope, operator, str(reason))
        except (ArithmeticError, LookupError):  # from computations with sizes
            types = ", ".join(f"{tensors[n].shape}" for n in operator.inputs if n >= 0)
            self._refuse(scope, operator, f"with inputs of shapes {types}")
        except (VerifyException, ValueError, AttributeError) as error:
            self._fail(scope, operator, " ".join(str(error).split()))
        return nothing

    def _refuse(self, scope: "_Scope", operator: Operator, reason: str) -> None:
        message = not_supported(f"operation {operator.kind}", reason)
        self._unsupported.append((at(self._place_of(scope, operator)), message))

    def _fail(self, scope: "_Scope", operator: Operator, reason: str) -> NoReturn:
        message = f"operation {operator.kind}: {reason}"
        raise LocatedError(message, at(self._place_of(scope, operator)))

    def _error(self, reason: str) -> LocatedError:
        return LocatedError(f"{self._name}: {reason}")

    def _place_of(self, scope: "_Scope", operator: Operator) -> FileLineColLoc:
        outputs = operator.outputs
        return self._place(scope, scope.graph.names[outputs[0]] if outputs else "")

    def _place(self, scope: "_Scope", label: str) -> FileLineColLoc:
        """`model.tflite#tensor:number:1`: the location of an operation."""
        name = f"{self._name}#{label}" if label else self._name
        return FileLineColLoc(StringAttr(name), IntAttr(scope.count), IntAttr(1))


@dataclass(eq=False)
class _Scope:
    """A graph that is being converted."""

    graph: Graph
    ops: list[Operation]
    """The operations that it is converted to."""

    is_initial: bool = False
    """Whether it only sets the initial contents of variables."""

    values: dict[int, Value | None] = field(default_factory=lambda: {-1: None})
    handles: dict[int, str] = field(default_factory=dict[int, str])
    """The names of variables, by the numbers of their handles."""

    count: int = 0
    """The number of operators so far."""


def _folded(conversion: Conversion, node: TFLiteNode) -> Sequence[Value] | None:
    """The outputs of an operator on constants; None if it must run at run time.

    An operator that uses a parameter is not folded.
    """
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
