"""Function definitions of operations: from the model, or from ONNX itself.

    definition_of(node, opset, types, functions)

returns the function that a node calls, with the node's attributes filled in. Attributes
that the node omits get the defaults of the function or of the operation's schema.
Inputs that the node omits are omitted in the body, too.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import onnx
from onnx import defs

Key: TypeAlias = tuple[str, str, str]
"""Domain, name and overload of a function and of the operations that call it."""

Functions: TypeAlias = Mapping[Key, onnx.FunctionProto]
"""The functions that a model defines."""


def key_of(node: onnx.NodeProto) -> Key:
    return _domain(node), node.op_type, node.overload


def name_of(node: onnx.NodeProto) -> str:
    """An operation's name, with its domain as a prefix unless it is ONNX's own."""
    domain = _domain(node)
    return f"{domain}.{node.op_type}" if domain else node.op_type


def functions_of(model: onnx.ModelProto) -> Functions:
    return {(_domain(f), f.name, f.overload): f for f in model.functions}


def opset_of(imports: Sequence[onnx.OperatorSetIdProto]) -> int:
    """The version of ONNX's own operations; 0 if none is imported."""
    versions = {_domain(opset): opset.version for opset in imports}
    return versions.get("", 0)


def _domain(
    named: onnx.NodeProto | onnx.FunctionProto | onnx.OperatorSetIdProto,
) -> str:
    return "" if named.domain == "ai.onnx" else named.domain


def is_defined(node: onnx.NodeProto, opset: int, functions: Functions) -> bool:
    """Whether the operation has a definition for at least some inputs."""
    schema = _schema(node, opset)
    return key_of(node) in functions or (
        schema is not None
        and (schema.has_function or schema.has_context_dependent_function)
    )


def definition_of(
    node: onnx.NodeProto,
    opset: int,
    types: Sequence[onnx.TypeProto],
    functions: Functions,
) -> onnx.FunctionProto | None:
    """The function body for this call, or None if the operation has no definition.

    `types` are the types of the inputs.
    Raises `ValueError` for more inputs or outputs than the function has.
    """
    function = functions.get(key_of(node))
    if function is None:
        node = _with_defaults(node, opset)
        function = _defined_by_onnx(node, opset, types)
    if function is None:
        return None
    for what, given, own in (
        ("inputs", node.input, function.input),
        ("outputs", node.output, function.output),
    ):
        if len(given) > len(own):
            raise ValueError(f"{len(given)} {what}, expected at most {len(own)}")
    attributes = {a.name: a for a in (*function.attribute_proto, *node.attribute)}
    given = [*node.input, *[""] * (len(function.input) - len(node.input))]
    absent = {own for own, name in zip(function.input, given, strict=True) if not name}
    body = onnx.FunctionProto()
    body.CopyFrom(function)
    for inner in body.node:
        _fill_in(inner, attributes, absent)
    return body


def _schema(node: onnx.NodeProto, opset: int) -> Any:
    """The operation's `OpSchema`, whose type stubs are incomplete, or None."""
    try:
        return defs.get_schema(node.op_type, opset, _domain(node))
    except defs.SchemaError:
        return None


def _with_defaults(node: onnx.NodeProto, opset: int) -> onnx.NodeProto:
    """A copy of the node in which omitted attributes have their schema's defaults."""
    if (schema := _schema(node, opset)) is None:
        return node
    complete = onnx.NodeProto()
    complete.CopyFrom(node)
    given = {attribute.name for attribute in node.attribute}
    complete.attribute.extend(
        attribute.default_value
        for name, attribute in schema.attributes.items()
        if name not in given and attribute.default_value.type
    )
    return complete


def _defined_by_onnx(
    node: onnx.NodeProto, opset: int, types: Sequence[onnx.TypeProto]
) -> onnx.FunctionProto | None:
    """ONNX's own definition, in the newest version that this opset allows."""
    if (schema := _schema(node, opset)) is None:
        return None
    if schema.has_context_dependent_function:
        versions = schema.context_dependent_function_opset_versions
        body = schema.get_context_dependent_function_with_opset_version(
            _newest(versions, opset),
            node.SerializeToString(),
            [type.SerializeToString() for type in types],
        )
    elif schema.has_function:
        version = _newest(schema.function_opset_versions, opset)
        body = schema.get_function_with_opset_version(version)
    else:
        return None
    return onnx.FunctionProto.FromString(body) if body else None


def _newest(versions: Sequence[int], opset: int) -> int:
    """The newest version up to `opset`; else the oldest, as ONNX defined some
    operations as functions only later."""
    return max((v for v in versions if v <= opset), default=min(versions))


def _fill_in(
    node: onnx.NodeProto,
    attributes: Mapping[str, onnx.AttributeProto],
    absent: set[str],
) -> None:
    """Fills in the attributes of this call, and drops its absent inputs, in a node of a
    function's body and in the node's subgraphs."""
    for index, name in enumerate(node.input):
        if name in absent:
            node.input[index] = ""
    own = list(node.attribute)
    del node.attribute[:]
    for attribute in own:
        if not (reference := attribute.ref_attr_name):
            for graph in (attribute.g, *attribute.graphs):
                for inner in graph.node:
                    _fill_in(inner, attributes, absent)
            node.attribute.append(attribute)
        elif reference in attributes:
            node.attribute.append(attributes[reference])
            node.attribute[-1].name = attribute.name
