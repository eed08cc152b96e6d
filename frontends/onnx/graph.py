"""An ONNX graph → one `func.func` at level 1, node by node."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx
from onnx import helper, inliner
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FileLineColLoc,
    IntAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from tensorplan.dialects.diagnostics import LocatedError, errors_at
from tensorplan.dialects.tgraph.base import LARGEST_SIZE, NAME, PARAMETER
from tensorplan.frontends.builder import Unsupported, at, element_type, name_hint
from tensorplan.frontends.onnx import (
    array_of,
    elementwise,
    indexing,
    products,
    recurrent,
    reducing,
    resizing,
    shaping,
    windows,
)
from tensorplan.frontends.onnx.folding import fold
from tensorplan.frontends.onnx.node import Conversion, Known, Node, Value

CONVERSIONS: Mapping[str, Conversion] = {
    **elementwise.CONVERSIONS,
    **indexing.CONVERSIONS,
    **products.CONVERSIONS,
    **recurrent.CONVERSIONS,
    **reducing.CONVERSIONS,
    **resizing.CONVERSIONS,
    **shaping.CONVERSIONS,
    **windows.CONVERSIONS,
}

_DOMAINS = ("", "ai.onnx")


def decomposed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without functions: its own ones, and operations that ONNX defines by
    others and that have no conversion here.
    """
    kept = [(domain, name) for domain in _DOMAINS for name in CONVERSIONS]
    operations = {(node.domain, node.op_type) for node in model.graph.node}
    if not model.functions and operations <= {*kept}:
        return model
    typed = onnx.shape_inference.infer_shapes(model)  # some definitions depend on types
    return inliner.inline_selected_functions(
        typed, kept, exclude=True, inline_schema_functions=True
    )


Scope = dict[str, Value | None]
"""Values by name; None for what an unsupported node would give."""


class Importer:
    """Converts a model; afterwards `parameters` has the arrays of its parameters."""

    def __init__(self, name: str, opset: int, sizes: Mapping[str, int]):
        self._name = name
        self._opset = opset
        self._sizes = sizes
        self._ops: list[Operation] = []
        self._unsupported: list[tuple[Operation, str]] = []
        self._count = 0
        self.parameters: dict[str, np.ndarray[Any, Any]] = {}

    def module(self, graph: onnx.GraphProto) -> ModuleOp:
        """Raises one `LocatedError` for all that is not supported."""
        if graph.sparse_initializer:
            raise LocatedError(f"{self._name}: sparse initializers are not supported")
        initializers = {tensor.name for tensor in graph.initializer}
        inputs = [value for value in graph.input if value.name not in initializers]
        types = self._input_types(inputs)
        block = Block(arg_types=types)
        attributes: list[dict[str, Attribute]] = []
        scope: Scope = {"": None}
        for value, argument in zip(inputs, block.args, strict=True):
            scope[value.name] = argument
            argument.name_hint = name_hint(value.name)
            attributes.append({NAME: StringAttr(value.name)})
        for tensor in graph.initializer:
            scope[tensor.name] = known = self._initializer(tensor, block)
            if known.argument is not None:
                attributes.append(
                    {NAME: StringAttr(tensor.name), PARAMETER: UnitAttr()}
                )
        results = self._graph(graph, scope)
        if self._unsupported:
            raise errors_at(self._unsupported)
        for argument, attrs in reversed(list(zip(block.args, attributes, strict=True))):
            if PARAMETER in attrs and not argument.uses and argument not in results:
                del self.parameters[cast(StringAttr, attrs[NAME]).data]
                del attributes[argument.index]
                block.erase_arg(argument)
        block.add_ops([*self._ops, ReturnOp(*results)])
        function = FuncOp(
            "main",
            (list(block.arg_types), [result.type for result in results]),
            Region(block),
            arg_attrs=ArrayAttr([DictionaryAttr(attrs) for attrs in attributes]),
        )
        function.location = self._place("")
        return ModuleOp([function])

    def _input_types(self, inputs: Sequence[onnx.ValueInfoProto]) -> list[Attribute]:
        open_dimensions: dict[str, None] = {}
        names: set[str] = set()
        types: list[Attribute] = []
        for value in inputs:
            if not value.type.HasField("tensor_type"):
                raise LocatedError(f"{self._name}: input {value.name!r} is no tensor")
            tensor = value.type.tensor_type
            shape: list[int] = []
            for index, dim in enumerate(tensor.shape.dim):
                size = dim.dim_value
                if not dim.HasField("dim_value"):
                    name = dim.dim_param or f"{value.name}.{index}"
                    names.add(name)
                    if name not in self._sizes:
                        open_dimensions[name] = None
                    size = self._sizes.get(name, 0)
                if not 0 <= size <= LARGEST_SIZE:
                    raise LocatedError(
                        f"{self._name}: input {value.name!r} has a dimension of size "
                        f"{size}, expected 0 to {LARGEST_SIZE}"
                    )
                shape.append(size)
            try:
                dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            except KeyError:
                raise LocatedError(
                    f"{self._name}: input {value.name!r} has elements of type "
                    f"{tensor.elem_type}, which ONNX does not define"
                ) from None
            try:
                types.append(TensorType(element_type(dtype), shape))
            except Unsupported as reason:
                raise LocatedError(
                    f"{self._name}: input {value.name!r} {reason} is not supported"
                ) from None
        if open_dimensions:
            listed = ", ".join(map(repr, open_dimensions))
            raise LocatedError(
                f"{self._name}: the model leaves dimensions open, expected sizes for "
                f"{listed}"
            )
        if unknown := [name for name in self._sizes if name not in names]:
            raise LocatedError(
                f"{self._name}: there is a size for {unknown[0]!r}, expected one of "
                f"{', '.join(map(repr, sorted(names))) or 'none'}"
            )
        return types

    def _initializer(self, tensor: onnx.TensorProto, block: Block) -> Known:
        """Floats of rank 1 and more are parameters, arguments of the function."""
        array = array_of(tensor, self._name)
        if not array.ndim or array.dtype.kind not in "fV":
            return Known(array)
        try:
            type = TensorType(element_type(array.dtype), array.shape)
        except Unsupported as reason:
            raise LocatedError(
                f"{self._name}: initializer {tensor.name!r} {reason} is not supported"
            ) from None
        self.parameters[tensor.name] = array
        argument = block.insert_arg(type, len(block.args))
        argument.name_hint = name_hint(tensor.name)
        return Known(array, argument)

    def _graph(self, graph: onnx.GraphProto, scope: Scope) -> list[SSAValue]:
        for proto in graph.node:
            self._count += 1
            outputs = self._node(proto, scope)
            named = [name for name in proto.output[len(outputs) :] if name]
            if named:
                self._refuse(proto, f" with the output {named[0]!r}")
                outputs = [*outputs, *[None] * len(proto.output)]
            scope.update(zip(proto.output, outputs, strict=False))
            scope[""] = None
        results = [scope.get(output.name) for output in graph.output]
        keeper = self._new_node(onnx.NodeProto(), scope)
        return [keeper.materialize(result) for result in results if result is not None]

    def _new_node(self, proto: onnx.NodeProto, scope: Scope) -> Node:
        place = self._place(proto.name or next(iter(proto.output), ""))
        for attribute in proto.attribute:
            if attribute.ref_attr_name:
                raise LocatedError(
                    f"operation {proto.op_type}: its {attribute.name!r} is that of a "
                    "function, and here is none",
                    at(place),
                )
        return Node(
            self._ops,
            place,
            proto.op_type,
            self._opset,
            len(proto.output),
            {a.name: helper.get_attribute_value(a) for a in proto.attribute},
            list(proto.input),
            [scope[name] for name in proto.input],
        )

    def _node(self, proto: onnx.NodeProto, scope: Scope) -> Sequence[Value | None]:
        nothing = [None] * len(proto.output)
        if any(name and scope[name] is None for name in proto.input):
            if proto.op_type not in CONVERSIONS:
                self._refuse(proto, "")
            return nothing
        node = self._new_node(proto, scope)
        try:
            if proto.domain in _DOMAINS:
                if (known := fold(proto, node)) is not None:
                    return known
                if proto.op_type == "If":
                    return self._branch(node, scope)
                if proto.op_type in CONVERSIONS:
                    return CONVERSIONS[proto.op_type](node)
            self._refuse(proto, "")
        except Unsupported as reason:
            self._refuse(proto, f" {reason}")
        except (ArithmeticError, LookupError):  # of sizes and dimensions
            types = ", ".join(_type_of(value) for value in node.inputs)
            self._refuse(proto, f" of ({types})")
        except (VerifyException, ValueError) as error:
            reason = str(error)
            if reason.startswith("zip()"):
                reason = "inputs and attributes do not have the same number of entries"
            message = f"operation {proto.op_type}: {reason}"
            raise LocatedError(message, at(node.location)) from None
        return nothing

    def _branch(self, node: Node, scope: Scope) -> Sequence[Value]:
        taken = "then_branch" if node.known(0).item() else "else_branch"
        graph = cast(onnx.GraphProto, node.attributes[taken])
        constants = {t.name: Known(array_of(t, self._name)) for t in graph.initializer}
        return self._graph(graph, {**scope, **constants})

    def _refuse(self, proto: onnx.NodeProto, reason: str) -> None:
        domain = f"{proto.domain}." if proto.domain not in _DOMAINS else ""
        place = self._place(proto.name or next(iter(proto.output), ""))
        message = f"operation {domain}{proto.op_type}{reason} is not supported"
        self._unsupported.append((at(place), message))

    def _place(self, label: str) -> FileLineColLoc:
        """`model.onnx#node:number:1`: what operations and messages are located by."""
        name = f"{self._name}#{label}" if label else self._name
        return FileLineColLoc(StringAttr(name), IntAttr(self._count), IntAttr(1))


def _type_of(value: Value | None) -> str:
    if isinstance(value, Known):
        return f"a constant of {value.array.dtype}{list(value.array.shape)}"
    return "nothing" if value is None else str(value.type)
