"""Reads and checks an ONNX file with the package `onnx`, imported on first use."""

from os.path import dirname
from typing import TYPE_CHECKING, Any, cast

from ...dialects.diagnostics import LocatedError
from ...support.extras import missing_extra_message

if TYPE_CHECKING:
    import onnx

    from ...dialects.dtypes import Array

OPSETS = range(6, 29)

_GRAPH_KEYS = (0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42)


def is_model(data: bytes) -> bool:
    """Whether `data` begins like a `ModelProto`: its version, then another field."""
    return len(data) > 2 and data[0] == 8 and data[1] < 32 and data[2] in _GRAPH_KEYS


def check_opset(name: str, whose: str, opset: int) -> None:
    """Raises `LocatedError` for an opset that is not supported."""
    if opset not in OPSETS:
        raise LocatedError(
            f"{name}: {whose} is of opset {opset}, expected {OPSETS[0]} to {OPSETS[-1]}"
        )


def array_of(tensor: "onnx.TensorProto", name: str) -> "Array":
    """The elements of a tensor in the file called `name`.

    Raises `LocatedError` if their number does not match the shape, or if ONNX does not
    define their type.
    """
    from onnx import numpy_helper

    try:
        return numpy_helper.to_array(tensor)
    except (LookupError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise LocatedError(
            f"{name}: tensor {tensor.name!r} is not valid: {reason}"
        ) from None


def parse(data: bytes, name: str) -> "onnx.ModelProto":
    """Parses and checks `data`, the contents of a model file called `name`.

    Raises `LocatedError` if it is not valid, or if the package `onnx` is missing.
    """
    try:
        import onnx
        from google.protobuf.message import DecodeError
        from onnx import checker, external_data_helper
    except ImportError as error:
        raise LocatedError(
            missing_extra_message(
                f"{name} holds an ONNX model, which requires the package onnx",
                "onnx",
                error,
            )
        ) from None
    try:
        model = onnx.load_model_from_string(data)
        _check_texts(model)
        _move_to_own_domain(model)
        external_data_helper.load_external_data_for_model(model, dirname(name))
        for output in model.graph.output:  # the checker requires types
            output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
            output.type.tensor_type.shape.SetInParent()
        cast(Any, checker).check_model(model)
    except (DecodeError, checker.ValidationError, ValueError, OSError) as error:
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LocatedError(f"{name} is not a valid ONNX model: {message}") from None
    return model


_OWN = ("LayerNormalization", "SimplifiedLayerNormalization")
"""Operations that onnxruntime's optimizers write to ONNX's domain in any opset."""

OWN_DOMAIN = "com.microsoft"


def _move_to_own_domain(model: "onnx.ModelProto") -> None:
    """Moves `_OWN` operations that the model's opset lacks to onnxruntime's domain."""
    from onnx import defs

    opsets = {opset.domain: opset.version for opset in model.opset_import}
    opset = opsets.get("", opsets.get("ai.onnx", OPSETS[-1]))
    missing = {
        name
        for name in _OWN
        if not defs.has(name) or defs.get_schema(name).since_version > opset
    }

    def move(graph: "onnx.GraphProto") -> bool:
        found = False
        for node in graph.node:
            if node.op_type in missing and node.domain in ("", "ai.onnx"):
                node.domain, found = OWN_DOMAIN, True
            for attribute in node.attribute:
                for inner in (attribute.g, *attribute.graphs):
                    found |= move(inner)
        return found

    if move(model.graph) and OWN_DOMAIN not in opsets:
        model.opset_import.add(domain=OWN_DOMAIN, version=1)


def _check_texts(message: Any) -> None:
    """Raises `ValueError` for names that are not UTF-8; protobuf has them as bytes."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for inner in [value] if hasattr(value, "ListFields") else value:
                _check_texts(inner)
        elif field.type == field.TYPE_STRING:
            for text in [value] if isinstance(value, str | bytes) else value:
                if not isinstance(text, str):
                    raise ValueError(f"{field.name} is {text!r}, expected UTF-8")
