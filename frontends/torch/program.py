"""Converts a `torch.export.ExportedProgram` to one `func.func` at level 1.

`Importer` converts the calls of the graph one by one, in order.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import import_module
from operator import attrgetter, getitem
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    TensorType,
    UnitAttr,
    UnknownLoc,
    UnrealizedConversionCastOp,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...dialects.diagnostics import LocatedError, errors_at
from ...dialects.dtypes import Array
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.base import (
    DONATED,
    NAME,
    PARAMETER,
    AnyTensor,
    VariableType,
    with_shape,
)
from ...dialects.tgraph.differentiation import GradientOp
from ...dialects.tgraph.structure import AssignOp, ReadOp
from ..builder import TensorBuilder, at, name_hint, type_of
from ..loops import Values
from ..unsupported import Unsupported, not_supported
from . import elementwise, indexing, matrices, products, reducing, shaping, windows
from .call import AtenCall, Conversion, element_of
from .control import CONTROL
from .sizes import Sizes

_CONVERSIONS: Mapping[str, Conversion] = {
    **elementwise.CONVERSIONS,
    **indexing.CONVERSIONS,
    **matrices.CONVERSIONS,
    **products.CONVERSIONS,
    **reducing.CONVERSIONS,
    **shaping.CONVERSIONS,
    **windows.CONVERSIONS,
}

_TOKEN = object()

_CHECKS = (
    *("_assert_async", "_assert_scalar", "_assert_tensor_metadata"),
    "_linalg_check_errors",
)
"""Run-time checks, which have no results. The importer drops them, except in graphs of
AOTAutograd that return a token."""

_REASONS = {
    "aten::_local_scalar_dense": ": the number depends on values",
    "aten::item": ": the number depends on values",
    "aten::nonzero": ": the shape of the result depends on values",
    **{
        f"aten::{name}": ": it draws random numbers"
        for name in (
            *("bernoulli", "exponential", "multinomial", "native_dropout", "rand"),
            *("randn", "randperm"),
        )
    },
}
"""The reasons why operations cannot be supported. Other operations that are refused
have no conversion yet."""


class UnsupportedNodes(LocatedError):
    """One error for all unsupported operations of a graph. `nodes` are the nodes of
    these operations, and the nodes that depend on a missing result of them."""

    def __init__(self, found: Sequence[tuple[Operation, str]], nodes: Sequence[Any]):
        error = errors_at(found)
        super().__init__(error.message, found[0][0])
        self.nodes = nodes


_PLACE = re.compile(r'File "([^"]+)", line (\d+)')


class Importer:
    """Converts a program. `module` fills `parameters`: the arrays of the program's
    parameters, by name."""

    def __init__(
        self, program: Any, dynamic: Any = None, donated: Collection[str] = ()
    ):
        self._program = program
        self._donated = donated  # inputs, by name
        self._sizes = Sizes(program, dynamic)
        self._ops: list[Operation] = []
        self._values: dict[str, Any] = {}  # by the name of the node
        self._variables: dict[str, SSAValue] = {}  # by the name in the PyTorch module
        self._unsupported: list[tuple[Operation, str]] = []
        self._refused: list[Any] = []  # nodes
        self._checks: list[Any] = []  # nodes
        self.parameters: dict[str, Array] = {}

    def module(self, *, gradients: bool, learning_rate: float | None) -> ModuleOp:
        """Converts the program.

        Raises one `LocatedError` for all unsupported operations.
        """
        nodes = {node.name: node for node in self._program.graph.nodes}
        block = Block()
        attributes: list[DictionaryAttr] = []
        specs: list[Any] = self._program.graph_signature.input_specs
        inputs = [spec for spec in specs if spec.kind.name == "USER_INPUT"]
        held = [spec for spec in specs if spec.kind.name != "USER_INPUT"]
        trained: list[SSAValue] = []
        for spec in (*inputs, *held):
            name = spec.target or spec.arg.name
            value = self._argument(spec, nodes, block, learning_rate is not None)
            if value is None:
                continue
            kind = spec.kind.name
            mark: dict[str, Attribute] = {NAME: StringAttr(name)}
            if spec.arg.name in self._donated:
                mark[DONATED] = UnitAttr()
            if kind in ("PARAMETER", "BUFFER") and name not in self._variables:
                mark[PARAMETER] = UnitAttr()
            attributes.append(DictionaryAttr(mark))
            if (
                kind == "PARAMETER"
                and nodes[spec.arg.name].meta["val"].is_floating_point()
            ):
                trained.append(value)
        self._convert(self._program.graph)
        results = self._results(nodes)
        if self._unsupported:
            raise UnsupportedNodes(self._unsupported, self._refused)
        if gradients or learning_rate is not None:
            results += self._train(results, trained, learning_rate)
        block.add_ops([*self._ops, ReturnOp(*results)])
        function = FuncOp(
            "main",
            (list(block.arg_types), [result.type for result in results]),
            Region(block),
            arg_attrs=ArrayAttr(attributes),
        )
        self._sizes.require(function)
        return ModuleOp([function])

    def _convert(self, graph: Any) -> None:
        """Appends the operations of `graph`. `_values` has its arguments already."""
        names = _names(graph.nodes)
        for node in graph.nodes:
            if node.op == "get_attr" and node.name not in self._values:  # a subgraph
                owner = graph.owning_module
                self._values[node.name] = attrgetter(node.target)(owner)
            if node.op == "call_function":
                self._call(node)
                value = self._values.get(node.name)
                if isinstance(value, SSAValue) and value.name_hint is None:
                    value.name_hint = name_hint(names[node.name])

    def _subgraph(
        self, module: Any, inputs: Sequence[Any], into: list[Operation]
    ) -> Values | None:
        """Appends the operations of the graph of `module`, applied to `inputs`, to
        `into`. Returns the results, or None if one of them is not supported."""
        around = self._ops, self._values
        arguments = [n for n in module.graph.nodes if n.op == "placeholder"]
        given = zip(arguments, inputs, strict=True)
        self._ops, self._values = into, {node.name: value for node, value in given}
        self._convert(module.graph)
        (output,) = module.graph.find_nodes(op="output")
        (returned,) = _mapped(output.args, self._values)
        self._ops, self._values = around
        many = cast(list[Any] | tuple[Any, ...] | Any, returned)
        results = cast(Values, many if isinstance(many, list | tuple) else [many])
        return None if any(_is_missing(result) for result in results) else results

    def _argument(
        self, spec: Any, nodes: Mapping[str, Any], block: Block, trains: bool
    ) -> SSAValue | None:
        """Adds the function's argument for an input of the graph, and returns it.
        Tokens, numbers, and constants have no argument: returns None for them."""
        kind, name = spec.kind.name, spec.arg.name
        if kind == "TOKEN":  # orders run-time checks, which are dropped
            self._values[name] = _TOKEN
            return None
        if kind not in ("USER_INPUT", "PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            what = kind.lower().replace("_", " ")
            raise LocatedError(f"input {name!r} is a {what}, expected a tensor")
        example = nodes[name].meta.get("val")
        if not hasattr(example, "dtype"):  # a number, which the graph contains
            return None
        type = self._type(example, f"input {name!r}")
        if kind == "CONSTANT_TENSOR":
            array = array_of(self._program.constants[spec.target])
            self._values[name] = self._builder().constant(array)
            return None
        changed = {
            output.target
            for output in self._program.graph_signature.output_specs
            if output.kind.name.endswith("_MUTATION")
        }
        target = spec.target or name
        if kind != "USER_INPUT":
            tensors: Any = self._program.state_dict
            if target not in tensors:  # a non-persistent buffer
                tensors = self._program.constants
            self.parameters[target] = array_of(tensors[target])
        if target not in changed and not (trains and kind == "PARAMETER"):
            argument = block.insert_arg(type, len(block.args))
            self._values[name] = argument
        else:
            argument = block.insert_arg(VariableType(type), len(block.args))
            self._variables[target] = argument
            read = ReadOp(argument)
            self._ops.append(read)
            self._values[name] = read.result
        argument.name_hint = name_hint(target)
        return argument

    def _type(self, example: Any, what: str) -> AnyTensor:
        try:
            if not hasattr(example, "dtype"):
                raise Unsupported(": it is not a tensor")
            element = element_of(example.dtype)
            return with_shape(TensorType(element, []), self._sizes.shape(example))
        except Unsupported as reason:
            raise LocatedError(not_supported(what, reason)) from None

    def _builder(self, node: Any = None) -> TensorBuilder:
        return TensorBuilder(self._ops, _place(node))

    def _call(self, node: Any) -> None:
        schema: Any = getattr(node.target, "_schema", None)
        if getattr(node.target, "__name__", "") == "with_effects" and (
            node.args[1]._schema.name.partition("::")[2] in _CHECKS
        ):
            self._values[node.name] = [_TOKEN, None]
            self._checks.append(node)
            return
        if schema and schema.name in _REASONS:
            reason = _REASONS[schema.name]
            self._refuse(node, not_supported(schema.name, reason))
            return
        if (size := self._sizes.call(node)) is not None:
            self._values[node.name] = size
            return
        if node.target is getitem:
            source, index = node.args
            results = self._values.get(source.name)
            self._values[node.name] = results and results[index]
            return
        if schema is None and type(node.meta.get("val")).__name__ == "SymBool":
            return  # only run-time checks use it
        if schema is None:
            self._control(node)
            return
        domain, _, name = str(schema.name).partition("::")
        if domain == "aten" and name in (*_CHECKS, "copy_"):
            return  # the program's outputs include the values copied to inputs
        if domain not in ("aten", "tensorplan"):
            name = str(schema.name)
        if name not in _CONVERSIONS:
            self._refuse(node, not_supported(schema.name))
            return
        arguments, examples = _arguments(node, schema, self._values)
        if any(value is None for value in _missing(node, self._values)):
            self._refused.append(node)  # an argument is not supported
            return
        try:
            many, outputs, types = self._result_types(node, schema.name)
            used = {u.args[1] for u in node.users if u.target is getitem}
            call = AtenCall(
                self._ops, _place(node), name, arguments, examples, types, used
            )
            results = _CONVERSIONS[name](call)
        except Unsupported as reason:
            self._refuse(node, not_supported(schema.name, reason))
            return
        except (VerifyException, ValueError) as error:
            self._refuse(node, f"{schema.name}: {error}")
            return
        if not many and not isinstance(results, SSAValue):
            (results,) = results
        returned = cast(Sequence[Any], results if many else [results])
        left = [n for n in used if returned[n] is None and outputs[n] is not None]
        if left:
            self._refuse(node, not_supported(schema.name, f"with its result {left[0]}"))
            return
        pairs = zip(returned, outputs, strict=False)
        present = [value for value, out in pairs if out is not None]
        if wrong := _unlike(present, types):
            self._refuse(node, f"{node.target}: {wrong}")
            return
        self._values[node.name] = results

    def _result_types(
        self, node: Any, name: str
    ) -> tuple[bool, Sequence[Any], Sequence[AnyTensor]]:
        """Whether `node` returns several results; PyTorch's fake tensors for them, None
        for missing results; and the types of the results that are not missing."""
        example = node.meta.get("val")
        many = isinstance(example, list | tuple)
        outputs = list(cast(Sequence[Any], example)) if many else [example]
        what = f"result of {name}"
        return many, outputs, [self._type(x, what) for x in outputs if x is not None]

    def _control(self, node: Any) -> None:
        name = node.target.__name__
        self._values[node.name] = None
        if name not in CONTROL:
            self._refuse(node, not_supported(name))
        elif None not in _missing(node, self._values):
            given = _mapped(node.args, self._values)
            try:
                results = CONTROL[name](self._builder(node), self._subgraph, *given)
            except Unsupported as reason:
                self._refuse(node, not_supported(name, reason))
            else:
                self._values[node.name] = results

    def _results(self, nodes: Mapping[str, Any]) -> list[SSAValue]:
        """Returns the program's results, and appends the assignments to variables."""
        results: list[SSAValue] = []
        for spec in self._program.graph_signature.output_specs:
            kind = spec.kind.name
            if not hasattr(spec.arg, "name"):
                continue  # a number or None, which the caller knows
            value = self._values.get(spec.arg.name)
            if value is None:
                continue  # not supported
            if kind.endswith("_MUTATION"):
                self._ops.append(AssignOp(self._variables[spec.target], value))
            elif kind == "TOKEN":
                continue
            elif kind in ("USER_OUTPUT", "LOSS_OUTPUT"):
                if value is _TOKEN:  # of AOTAutograd, which expects the checks
                    for node in self._checks:
                        name = node.args[1]._schema.name
                        self._refuse(node, f"{name}, a check, is not supported")
                    continue
                if not isinstance(value, SSAValue):
                    raise LocatedError(
                        f"result {spec.arg.name!r} is a size, expected a tensor"
                    )
                results.append(cast(SSAValue, value))
            else:
                raise LocatedError(
                    f"result {spec.arg.name!r} is a {kind.lower()}, expected a tensor"
                )
        return results

    def _train(
        self,
        results: Sequence[SSAValue],
        trained: Sequence[SSAValue],
        learning_rate: float | None,
    ) -> Sequence[SSAValue]:
        """Appends the gradients of the first result, and returns them. With a
        `learning_rate`, appends the updates of the parameters instead, and returns no
        results."""
        if not results or type_of(results[0]).get_shape():
            raise LocatedError(
                "gradients differentiate the first result, expected a scalar, not "
                f"{results[0].type if results else 'nothing'}"
            )
        if not trained:
            raise LocatedError("the module has no parameters to train")
        gradient = GradientOp([results[0]], trained)
        gradient.location = UnknownLoc()
        self._ops.append(gradient)
        if learning_rate is None:
            return gradient.res
        b = self._builder()
        for variable, slope in zip(trained, gradient.res, strict=True):
            step = b.apply(e.MultiplyOp, slope, learning_rate)
            (read,) = (
                use.operation.results[0]
                for use in variable.uses
                if isinstance(use.operation, ReadOp)
            )
            lower = b.apply(e.SubtractOp, read, step)
            self._ops.append(AssignOp(variable, lower))
        return []

    def _refuse(self, node: Any, message: str) -> None:
        """Records an operation that cannot be converted. A cast without operands
        provides its results, so that the importer also checks their users."""
        self._unsupported.append((at(_place(node)), message))
        self._refused.append(node)
        self._values[node.name] = None
        try:
            many, outputs, types = self._result_types(node, node.name)
        except (LocatedError, Unsupported):  # no program can have such results
            return
        stand_in = UnrealizedConversionCastOp(operands=[[]], result_types=[types])
        results = iter(stand_in.results)
        values = [None if out is None else next(results) for out in outputs]
        self._values[node.name] = values if many else values[0]


def _unlike(results: Sequence[Any], types: Sequence[AnyTensor]) -> str | None:
    """Describes the first result whose type is not the one that PyTorch inferred; None
    if all types agree."""
    for value, type in zip(results, types, strict=False):
        if value is not None and value.type != type:
            return f"result has type {value.type}, expected {type}"
    return None


def _is_missing(result: Any) -> bool:
    """Whether `result` of a graph is not a tensor: it is missing, or a number."""
    return not isinstance(result, SSAValue)


def _names(nodes: Iterable[Any]) -> dict[str, str]:
    """Name hints by node. The result of a module has the module's path, such as
    `layer1.0.conv1`. A value inside a module also has its operation's name, such as
    `attn.transpose`."""
    names: dict[str, str] = {}
    ends: dict[str, tuple[str, str]] = {}  # last node and path of each module's call
    for node in nodes:
        call, path = _module_of(node)
        names[node.name] = f"{path}.{node.name}" if path else node.name
        if path:
            ends[call] = node.name, path
    return names | dict(ends.values())


def _module_of(node: Any) -> tuple[str, str]:
    """The call of the innermost module that contains `node`, and the module's path;
    empty strings if there is none."""
    stack: dict[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    call, (path, _) = next(reversed(stack.items()), ("", ("", None)))
    return call, path


def _arguments(
    node: Any, schema: Any, values: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of a call by name, including defaults: as values, and as PyTorch's
    fake tensors."""
    arguments: dict[str, Any] = {}
    examples: dict[str, Any] = {}
    for index, parameter in enumerate(schema.arguments):
        name = parameter.name
        given = (
            node.args[index]
            if index < len(node.args)
            else node.kwargs.get(name, parameter.default_value)
        )
        arguments[name] = _mapped(given, values)
        examples[name] = _mapped(given, None)
    return arguments, examples


def _mapped(argument: Any, values: Mapping[str, Any] | None) -> Any:
    """An argument whose nodes are replaced by `values`, or by PyTorch's fake tensors if
    `values` is None."""
    if hasattr(argument, "meta"):
        return argument.meta.get("val") if values is None else values.get(argument.name)
    if isinstance(argument, list | tuple):
        return [_mapped(part, values) for part in cast(Sequence[Any], argument)]
    return argument


def _missing(node: Any, values: Mapping[str, Any]) -> list[Any]:
    return [values.get(source.name) for source in node.all_input_nodes]


def _place(node: Any) -> LocationAttr:
    """The source location of a call: the innermost line of the stack trace, named after
    the module's path and the operation, such as `layer1.0.conv1/aten.convolution`."""
    if node is None:
        return UnknownLoc()
    place: LocationAttr = UnknownLoc()
    if found := _PLACE.findall(node.meta.get("stack_trace") or ""):
        file, line = found[-1]
        place = FileLineColLoc(StringAttr(file), IntAttr(int(line)), IntAttr(1))
    called = node.meta.get("original_aten") or node.target
    packet = getattr(called, "overloadpacket", node.name)  # prints as `aten.gelu`
    return NameLoc(StringAttr(f"{_module_of(node)[1]}/{packet}"), place)


def array_of(tensor: Any) -> Array:
    """The tensor as a NumPy array, which shares the memory of a CPU tensor. A tensor on
    another device is copied."""
    tensor = tensor.detach().cpu()
    if element_of(tensor.dtype) != element_of("bfloat16"):
        return tensor.numpy()
    from ml_dtypes import bfloat16

    torch = import_module("torch")
    bits: Array = tensor.view(torch.int16).numpy()
    return bits.view(np.dtype(bfloat16))
