"""Converts an ONNX graph to one `func.func` at level 1, node by node."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np
import onnx
from onnx import helper
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...dialects.diagnostics import LocatedError, errors_at
from ...dialects.dtypes import numpy_dtype
from ...dialects.tgraph.base import NAME, PARAMETER, AnyTensor, VariableType
from ...dialects.tgraph.random import RngBitGeneratorOp
from ...dialects.tgraph.structure import AssignOp, ReadOp
from ...support.choices import one_of, suggest
from ..builder import at, element_type, name_hint, type_of
from ..entry import entry
from ..operators import Known, Value
from ..unsupported import Unsupported, not_supported
from . import (
    attention,
    elementwise,
    fused,
    indexing,
    learned,
    optimizers,
    products,
    quantized,
    quantized_products,
    random,
    recurrent,
    reducing,
    resizing,
    sampling,
    sequences,
    shaping,
    spectral,
    unpooling,
    windows,
)
from .control import CONTROL
from .folding import fold
from .functions import (
    Functions,
    Key,
    definition_of,
    functions_of,
    is_defined,
    key_of,
    name_of,
    opset_of,
)
from .inputs import Inputs
from .node import Conversion, OnnxNode
from .older import modernized
from .qdq import on_integers
from .reading import OPSETS, array_of
from .sequences import Item, Items, leaves, like, tensors_of

CONVERSIONS: Mapping[str, Conversion] = {
    **attention.CONVERSIONS,
    **elementwise.CONVERSIONS,
    **fused.CONVERSIONS,
    **indexing.CONVERSIONS,
    **learned.CONVERSIONS,
    **optimizers.CONVERSIONS,
    **products.CONVERSIONS,
    **quantized.CONVERSIONS,
    **quantized_products.CONVERSIONS,
    **recurrent.CONVERSIONS,
    **reducing.CONVERSIONS,
    **resizing.CONVERSIONS,
    **sampling.CONVERSIONS,
    **shaping.CONVERSIONS,
    **spectral.CONVERSIONS,
    **unpooling.CONVERSIONS,
    **windows.CONVERSIONS,
}


Scope = dict[str, Item | None]
"""Values by name; None for outputs of unsupported nodes."""


class _FunctionNode(NamedTuple):
    """A node that calls a function, whose body is being converted."""

    function: Key
    label: str


class Importer:
    """Converts a model. `module` fills `parameters`: the arrays of the model's
    parameters, by name."""

    def __init__(
        self,
        name: str,
        opset: int,
        sizes: Mapping[str, int],
        values: Mapping[str, Any],
        outputs: Sequence[str] | None = None,
    ):
        self._name = name
        self._outputs = outputs
        self._opset: int = opset
        self._sizes = sizes
        self._values = {name: np.asarray(value) for name, value in values.items()}
        self._block = Block()
        self._attributes: list[dict[str, Attribute]] = []
        """The attributes of the block's arguments."""
        self._ops: list[Operation] = []
        self._program = self._ops
        """The operations outside of branches and loops."""
        self._generator: tuple[SSAValue, SSAValue] | None = None
        """The variable of the random number generator, and its current state."""
        self._unsupported: list[tuple[Operation, str]] = []
        self._count = 0
        self._functions: Functions = {}
        self._calls: list[_FunctionNode] = []
        self.parameters: dict[str, np.ndarray[Any, Any]] = {}

    def module(self, model: onnx.ModelProto) -> ModuleOp:
        """Converts `model`.

        Raises one `LocatedError` for all unsupported operations.
        """
        graph, self._functions = model.graph, functions_of(model)
        if graph.sparse_initializer:
            raise LocatedError(f"{self._name}: sparse initializers are not supported")
        if self._outputs is not None:
            _end_at(graph, self._outputs, self._name)
        nodes = on_integers(graph, self._name)
        initializers = {tensor.name for tensor in graph.initializer}
        all_inputs = [value for value in graph.input if value.name not in initializers]
        inputs = [value for value in all_inputs if value.name not in self._values]
        if self._outputs is not None:
            nodes, read = _needed(nodes, self._outputs)
            inputs = [value for value in inputs if value.name in read]
            initializers &= read
        items = Inputs(self._name, self._sizes, self._argument).items(inputs)
        scope: Scope = {"": None, **self._given(all_inputs), **items}
        for tensor in graph.initializer:
            if tensor.name in initializers:
                scope[tensor.name] = self._initializer(tensor)
        self._nodes(nodes, scope)
        if self._generator is not None:
            self._ops.append(AssignOp(*self._generator))
        keeper = self._new_node(onnx.NodeProto(), scope)
        outputs = [
            named
            for output in graph.output
            for named in tensors_of(scope.get(output.name), output.name)
        ]
        if self._unsupported:
            raise errors_at(self._unsupported)
        results = [keeper.materialize(value) for _, value in outputs]
        names = [name for name, _ in outputs]
        function = entry(
            *(self._block, self._attributes, self.parameters, self._ops),
            *(results, names, self._place("")),
        )
        return ModuleOp([function])

    def _given(self, inputs: Sequence[onnx.ValueInfoProto]) -> Mapping[str, Known]:
        """The constants that replace inputs of the model. Raises `LocatedError` for a
        value that does not have the input's type."""
        types = {value.name: value.type.tensor_type for value in inputs}
        for name, array in self._values.items():
            if name not in types:
                known = one_of(name, sorted(types) or ["none"])
                raise LocatedError(f"{self._name}: the model has no input {known}")
            if not types[name].elem_type:
                raise LocatedError(
                    f"{self._name}: input {name!r} is not a tensor, and takes no value"
                )
            dims = types[name].shape.dim
            shape = [d.dim_value if d.HasField("dim_value") else None for d in dims]
            fits = len(shape) == array.ndim and all(
                size in (None, own)
                for size, own in zip(shape, array.shape, strict=True)
            )
            element = helper.tensor_dtype_to_np_dtype(types[name].elem_type)
            if not fits or array.dtype != element:
                raise LocatedError(
                    f"{self._name}: the value of input {name!r} is {array.dtype} of "
                    f"shape {list(array.shape)}, expected {element} of shape {shape}"
                )
        return {name: Known(array) for name, array in self._values.items()}

    def _argument(self, name: str, type: Attribute, **more: Attribute) -> SSAValue:
        argument = self._block.insert_arg(type, len(self._block.args))
        argument.name_hint = name_hint(name)
        self._attributes.append({NAME: StringAttr(name), **more})
        return argument

    def _random_bits(self, node: OnnxNode, type: AnyTensor) -> SSAValue:
        if node.into is not self._program:
            raise Unsupported("in a branch or a loop")
        if self._generator is None:
            name = "random"
            while any(own[NAME] == StringAttr(name) for own in self._attributes):
                name += "_"
            variable = self._argument(name, VariableType(random.STATE))
            self.parameters[name] = np.zeros(2, np.uint64)
            node.into.append(read := ReadOp(variable))
            self._generator = variable, read.result
        variable, state = self._generator
        state, bits = node.emit_all(
            *(RngBitGeneratorOp, [state], [random.STATE, type], ()),
            algorithm=StringAttr("threefry"),
        )
        self._generator = variable, state
        return bits

    def _initializer(self, tensor: onnx.TensorProto) -> Known:
        """Converts an initializer. Floats and 8-bit integers of rank 1 or more become
        parameters, which are arguments of the function; others become constants."""
        array = array_of(tensor, self._name)
        is_number = array.dtype.kind in "fV" or array.dtype.name in ("int8", "uint8")
        if not array.ndim or not is_number:
            return Known(array)
        try:
            type = TensorType(element_type(array.dtype), array.shape)
        except Unsupported as reason:
            raise LocatedError(
                not_supported(f"{self._name}: initializer {tensor.name!r}", reason)
            ) from None
        self.parameters[tensor.name] = array
        parameter = self._argument(tensor.name, type, **{PARAMETER: UnitAttr()})
        return Known(array, parameter)

    def _nodes(self, nodes: Sequence[onnx.NodeProto | None], scope: Scope) -> None:
        for proto in nodes:
            self._count += not self._calls
            if proto is None:
                continue
            outputs = self._node(proto, scope)
            named = [name for name in proto.output[len(outputs) :] if name]
            if named:
                self._refuse(proto, f"with the output {named[0]!r}")
                outputs = [*outputs, *[None] * len(proto.output)]
            scope.update(zip(proto.output, outputs, strict=False))
            scope[""] = None
            if not self._calls:
                for name in filter(None, proto.output):
                    _call_by_name(scope[name], name)

    def _new_node(self, proto: onnx.NodeProto, scope: Scope) -> OnnxNode:
        place = self._place(_label(proto))
        for attribute in proto.attribute:
            if attribute.ref_attr_name:
                raise LocatedError(
                    f"operation {proto.op_type}: attribute {attribute.name!r} "
                    "refers to a "
                    "function's attribute outside of any function",
                    at(place),
                )
        return OnnxNode(
            self._ops,
            place,
            list(proto.input),
            [_tensor(scope[name]) for name in proto.input],
            name_of(proto),
            self._opset,
            len(proto.output),
            {a.name: helper.get_attribute_value(a) for a in proto.attribute},
        )

    def _node(self, proto: onnx.NodeProto, scope: Scope) -> Sequence[Item | None]:
        nothing = [None] * len(proto.output)
        if undefined := [name for name in proto.input if name not in scope]:
            self._fail(proto, f"input {undefined[0]!r} is not defined")
        if any(name and scope[name] is None for name in proto.input):
            if not self._has_form(proto):
                self._refuse(proto, "")
            return nothing
        node = self._new_node(proto, scope)
        try:
            if key_of(proto) not in self._functions:
                given = [scope[name] for name in proto.input]
                has_items = any(isinstance(value, Items) for value in given)
                forms = sequences.OF_ITEMS if has_items else sequences.CONVERSIONS
                if node.op_type in forms:
                    graph = partial(self._subgraph, scope)
                    return forms[node.op_type](node, given, graph)
                if has_items:
                    raise Unsupported("on a sequence")
                if (known := fold(proto, node)) is not None:
                    return known
                if node.op_type == "If" and isinstance(node.inputs[0], Known):
                    taken = "then" if node.known(0).item() else "else"
                    graph = node.attributes[f"{taken}_branch"]
                    return self._subgraph(scope, graph, [], self._ops)
                if node.op_type in CONTROL:
                    return self._controlled(node, given, scope)
                if node.op_type in random.CONVERSIONS:
                    draw = partial(self._random_bits, node)
                    return random.CONVERSIONS[node.op_type](node, draw)
                node = modernized(node)
                if node.op_type in CONVERSIONS:
                    return CONVERSIONS[node.op_type](node)
            types = [_onnx_type_of(value) for value in node.inputs]
            body = definition_of(proto, self._opset, types, self._functions)
            if body is not None:
                return self._call(proto, body, scope)
            self._refuse(proto, "")
        except Unsupported as reason:
            self._refuse(proto, str(reason))
        except (ArithmeticError, LookupError):  # from invalid sizes or dimensions
            self._refuse_types(proto, node)
        except (VerifyException, ValueError) as error:
            reason = str(error)
            if "values to unpack" in reason:  # an unexpected rank
                self._refuse_types(proto, node)
                return nothing
            if reason.startswith("zip()"):
                reason = "inputs and attributes do not have the same number of entries"
            self._fail(proto, reason)
        return nothing

    def _has_form(self, proto: onnx.NodeProto) -> bool:
        return (
            name_of(proto) in CONVERSIONS
            or name_of(proto) in random.CONVERSIONS
            or name_of(proto) in CONTROL
            or name_of(proto) in sequences.CONVERSIONS
            or is_defined(proto, self._opset, self._functions)
        )

    def _subgraph(
        self,
        scope: Scope,
        graph: onnx.GraphProto,
        inputs: Sequence[Item],
        into: list[Operation],
    ) -> Sequence[Item | None]:
        """The results of `graph`, a subgraph of a node, which can also read the values
        in `scope`. Appends its operations to `into`."""
        constants = {t.name: Known(array_of(t, self._name)) for t in graph.initializer}
        names = [value.name for value in graph.input]
        inner: Scope = {**scope, **constants, **dict(zip(names, inputs, strict=True))}
        outer, self._ops = self._ops, into
        try:
            self._nodes(graph.node, inner)
        finally:
            self._ops = outer
        return [inner[output.name] for output in graph.output]

    def _controlled(
        self, node: OnnxNode, given: sequences.Inputs, scope: Scope
    ) -> Sequence[Item | None]:
        """The outputs of a loop or branch. Outputs of a branch may be sequences if both
        sides have the same length.

        If a loop with a known number of iterations is not supported, it is unrolled, if
        the unrolled loop is supported. Sizes in it may then depend on the iteration.
        """
        before, error = len(self._unsupported), None
        outputs: Sequence[Item | None] = [None] * node.outputs
        try:
            outputs = self._as_one(node, scope)
        except Unsupported as reason:
            error = reason
        refused = self._unsupported[before:]
        is_counted = node.op_type == "Loop" and isinstance(node.inputs[0], Known)
        if is_counted and (error or refused):
            count, self._unsupported[before:] = self._count, []
            with suppress(Unsupported):
                graph = partial(self._subgraph, scope)
                written = sequences.OF_ITEMS["Loop"](node, given, graph)
                if len(self._unsupported) == before:
                    return written
            self._count, self._unsupported[before:] = count, refused
        if error:
            raise error
        return outputs

    def _as_one(self, node: OnnxNode, scope: Scope) -> Sequence[Item | None]:
        """Converts a loop or branch to one operation, and returns its outputs."""
        made: list[Sequence[Item | None]] = []
        is_branch = node.op_type == "If"

        def tensors(
            graph: onnx.GraphProto, inputs: Sequence[Value], into: list[Operation]
        ) -> Sequence[Value | None]:
            values = self._subgraph(scope, graph, inputs, into)
            if not is_branch and any(isinstance(value, Items) for value in values):
                raise Unsupported("with a sequence as result of its graph")
            made.append(values)
            return leaves(values)

        outputs = CONTROL[node.op_type](node, tensors)
        return like(made, outputs) if is_branch and None not in outputs else outputs

    def _call(
        self, proto: onnx.NodeProto, body: onnx.FunctionProto, outer: Scope
    ) -> Sequence[Item | None]:
        """The outputs of a function call. `body` is specialized for this call."""
        scope: Scope = {"": None}
        values = [outer[name] for name in proto.input]
        scope.update(zip(body.input, values, strict=False))
        with self._within(proto, body):
            self._nodes(body.node, scope)
        outputs = zip(body.output, proto.output, strict=False)
        return [scope[own] if name else None for own, name in outputs]

    @contextmanager
    def _within(
        self, proto: onnx.NodeProto, body: onnx.FunctionProto
    ) -> Generator[None]:
        """A context in which nodes belong to the function that `proto` calls, and to
        its opset. Raises `LocatedError` for recursive functions."""
        call = _FunctionNode(key_of(proto), _label(proto))
        if any(call.function == other.function for other in self._calls):
            self._fail(proto, "its definition is recursive")
        opset = self._opset
        self._calls.append(call)
        self._opset = max(opset_of(body.opset_import) or opset, OPSETS[0])
        try:
            yield
        finally:
            self._calls.pop()
            self._opset = opset

    def _fail(self, proto: onnx.NodeProto, reason: str) -> NoReturn:
        message = f"operation {proto.op_type}: {reason}"
        raise LocatedError(message, at(self._place(_label(proto))))

    def _refuse(self, proto: onnx.NodeProto, reason: str) -> None:
        place = self._place(_label(proto))
        message = not_supported(f"operation {name_of(proto)}", reason)
        self._unsupported.append((at(place), message))

    def _refuse_types(self, proto: onnx.NodeProto, node: OnnxNode) -> None:
        types = ", ".join(_type_of(value) for value in node.inputs)
        self._refuse(proto, f"with inputs of types ({types})")

    def _place(self, label: str) -> FileLineColLoc:
        """The source location of the current node: `model.onnx#node:number:1`.

        In functions, it is `model.onnx#node/inner:number:1`, with the call's number.
        """
        path = "/".join([*(call.label for call in self._calls), label])
        name = f"{self._name}#{path}" if label else self._name
        return FileLineColLoc(StringAttr(name), IntAttr(self._count), IntAttr(1))


def _tensor(value: Item | None) -> Value | None:
    return None if isinstance(value, Items) else value


def _call_by_name(value: Item | None, name: str) -> None:
    """Sets the name hint of `value`, unless it has one. A node may forward an input,
    which keeps its name."""
    if isinstance(value, SSAValue) and value.name_hint is None:
        value.name_hint = name_hint(name)


def _end_at(graph: onnx.GraphProto, outputs: Sequence[str], name: str) -> None:
    """Replaces the outputs of `graph` by the values named in `outputs`."""
    given = [value.name for value in (*graph.input, *graph.initializer)]
    made = [output for node in graph.node for output in node.output if output]
    for output in outputs:
        if output not in (values := {*given, *made}):
            near = suggest(output, sorted(values))
            raise LocatedError(f"{name}: the model has no value {output!r}{near}")
    del graph.output[:]
    graph.output.extend(onnx.ValueInfoProto(name=output) for output in outputs)


def _needed(
    nodes: Sequence[onnx.NodeProto | None], outputs: Sequence[str]
) -> tuple[Sequence[onnx.NodeProto | None], set[str]]:
    """The nodes on which the values `outputs` depend, with None in place of others; and
    the names of all values that these nodes read or that are outputs."""
    read, kept = set(outputs), list[onnx.NodeProto | None]()
    for node in reversed(nodes):
        is_needed = node is not None and not read.isdisjoint(node.output)
        kept.append(node if is_needed else None)
        if node is not None and is_needed:
            read |= _reads(node)
    return kept[::-1], read


def _reads(node: onnx.NodeProto) -> set[str]:
    """The names of values that `node` and its subgraphs read. They may include values
    that the subgraphs define."""
    found = set(node.input)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            found.update(output.name for output in graph.output)
            found.update(*map(_reads, graph.node))
    return found


def _label(proto: onnx.NodeProto) -> str:
    return proto.name or next(iter(proto.output), "")


def _onnx_type_of(value: Value | None) -> onnx.TypeProto:
    if value is None:
        return onnx.TypeProto()
    if isinstance(value, Known):
        dtype, shape = value.array.dtype, value.array.shape
    else:
        type = type_of(value)
        dtype, shape = numpy_dtype(type.element_type), type.get_shape()
    element = helper.np_dtype_to_tensor_dtype(dtype)
    return helper.make_tensor_type_proto(element, shape)


def _type_of(value: Value | None) -> str:
    if isinstance(value, Known):
        return f"a constant of {value.array.dtype}{list(value.array.shape)}"
    return "nothing" if value is None else str(value.type)
