"""ONNX models → tgraph (level 1), by the package `onnx`.

    import_model(data, "model.onnx", {"batch": 1})

gives the module, with one function `@main`. Its arguments are the model's inputs, then
its parameters: the initialisers of floating-point type and rank 1 or more that
operations read. Each has its name in the model as `tgraph.name`; parameters are marked
`tgraph.parameter`, and their values are not in the module. Other initialisers are
constants. What follows from shapes and constants is computed here (`folding.py`).
Operations that ONNX defines by others (Attention, RotaryEmbedding, ...) are taken as
these, unless they are converted whole.

An operation's place is `model.onnx#node:7:1`: the node's name (that of its first output
if it has none), and its number, from 1. Within a definition it is
`model.onnx#node/inner:7:1`.

node.py         one node, and what conversions share
graph.py        the graph: names, arguments, errors
functions.py    what operations are defined by
elementwise.py, shaping.py, indexing.py, reducing.py, products.py, windows.py,
resizing.py, recurrent.py   the conversions, by family

Opsets 13 to 23. Does not: training, integer products (`QLinearConv`), sequences, sizes
computed at run time, loops (`Loop`, `Scan`), `If` on what is not known.
"""

from collections.abc import Mapping
from os.path import dirname
from typing import TYPE_CHECKING, Any, cast

from tensorplan.dialects.diagnostics import LocatedError, depth_limited
from tensorplan.frontends.model import Model

if TYPE_CHECKING:
    import onnx

    from tensorplan.dialects.dtypes import Array

OPSETS = range(13, 24)

_GRAPH_KEYS = (0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42)


def is_model(data: bytes) -> bool:
    """Whether these bytes begin as a `ModelProto`: its version, then another field."""
    return len(data) > 2 and data[0] == 8 and data[1] < 32 and data[2] in _GRAPH_KEYS


@depth_limited()
def import_model(
    data: bytes, name: str, sizes: Mapping[str, int] | None = None
) -> Model:
    """The model in the contents of a file called `name`.

    `sizes` has those of the dimensions that the model leaves open, by name; where the
    model has no name, it is `input.index`.

    Raises `LocatedError` for a model that is not valid or not supported, or if the
    package `onnx` is missing.
    """
    model = _parse(data, name)
    from tensorplan.frontends.onnx.functions import opset_of
    from tensorplan.frontends.onnx.graph import Importer

    opset = opset_of(model.opset_import)
    _check_opset(name, "the model", opset)
    for function in model.functions:
        if own := opset_of(function.opset_import):
            _check_opset(name, f"function {function.name!r}", own)
    importer = Importer(name, opset, sizes or {})
    module = importer.module(model)
    return Model(module, importer.parameters)


def _check_opset(name: str, whose: str, opset: int) -> None:
    if opset not in OPSETS:
        raise LocatedError(
            f"{name}: {whose} is of opset {opset}, expected {OPSETS[0]} to "
            f"{OPSETS[-1]} (onnx.version_converter converts)"
        )


def parameters(data: bytes, name: str) -> "Mapping[str, Array]":
    """The values that an ONNX model gives its parameters, by name; none for others."""
    if not is_model(data):
        return {}
    initializers = _parse(data, name).graph.initializer
    return {tensor.name: array_of(tensor, name) for tensor in initializers}


def array_of(tensor: "onnx.TensorProto", name: str) -> "Array":
    """The elements of a tensor in the file called `name`.

    Raises `LocatedError` if they are not as many as its shape says, or of a type that
    ONNX does not define.
    """
    from onnx import numpy_helper

    try:
        return numpy_helper.to_array(tensor)
    except (LookupError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise LocatedError(
            f"{name}: tensor {tensor.name!r} is not valid: {reason}"
        ) from None


def _parse(data: bytes, name: str) -> "onnx.ModelProto":
    try:
        import onnx
        from google.protobuf.message import DecodeError
        from onnx import checker, external_data_helper
    except ImportError as error:
        raise LocatedError(
            f"{name} holds an ONNX model, which takes the package onnx to read: "
            f"pip install 'tensorplan[onnx]' ({error})"
        ) from None
    try:
        model = onnx.load_model_from_string(data)
        _check_texts(model)
        external_data_helper.load_external_data_for_model(model, dirname(name))
        for output in model.graph.output:  # the checker wants types; we find our own
            output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
            output.type.tensor_type.shape.SetInParent()
        cast(Any, checker).check_model(model)
    except (DecodeError, checker.ValidationError, ValueError, OSError) as error:
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LocatedError(f"{name} is no valid ONNX model: {message}") from None
    return model


def _check_texts(message: Any) -> None:
    """Raises `ValueError` for names that are no UTF-8; protobuf gives them as bytes."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for inner in [value] if hasattr(value, "ListFields") else value:
                _check_texts(inner)
        elif field.type == field.TYPE_STRING:
            for text in [value] if isinstance(value, str | bytes) else value:
                if not isinstance(text, str):
                    raise ValueError(f"{field.name} is {text!r}, expected UTF-8")
