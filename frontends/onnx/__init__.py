"""Imports ONNX models as tgraph programs (level 1), with the package `onnx`.

    import_model(data, "model.onnx", {"batch": 1})

returns a model whose module has a single function `@main`. Its arguments are the inputs
of the ONNX model, followed by its parameters: the initializers of floats or of 8-bit
integers, of rank 1 or more, that operations read. `tgraph.name` is the name of the
argument in the ONNX model. Parameters are marked `tgraph.parameter`, and their values
are not in the IR. Other initializers are constants. The frontend evaluates operations
that depend only on shapes and constants (`folding.py`). It expands operations that ONNX
defines by other operations (RMSNormalization, RotaryEmbedding, ...), unless it has a
conversion of its own for them.

The source location of an operation is `model.onnx#node:7:1`: the name of its node (or
of the node's first output), and the node's number, from 1. For a node in a function
body, the location is `model.onnx#node/inner:7:1`.

reading.py      the file, checked
node.py         one node, with the helpers of all conversions
graph.py        the graph: names, arguments, errors
inputs.py       the inputs: their sizes, and an argument for each tensor
functions.py    definitions of operations by other operations
older.py        nodes of older opsets
qdq.py          quantized operations that are expressed in floats (QDQ)
control.py      branches and loops
sequences.py    sequences and optionals of known lengths
random.py       random numbers, whose generator is a variable
elementwise.py, shaping.py, indexing.py, reducing.py, products.py, quantized.py,
quantized_products.py, windows.py, unpooling.py, resizing.py, sampling.py, spectral.py,
recurrent.py, attention.py, fused.py, learned.py, optimizers.py   the conversions, by
                                                                 family

Opsets 6 to 28. Does not: support sequences of unknown lengths, or sizes computed at run
time.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...dialects.diagnostics import depth_limited
from ...model import Model
from .reading import OPSETS, check_opset, parse
from .reading import is_model as is_model


@depth_limited()
def import_model(
    data: bytes,
    name: str,
    sizes: Mapping[str, int] | None = None,
    values: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
) -> Model:
    """Imports an ONNX model from `data`, the contents of a file called `name`.

    `sizes` has the sizes of dimensions that the model leaves open, by name. A dimension
    without a name is called `input.index`. The length of a sequence or an optional has
    the name of the input. `values` has arrays for inputs that become constants, such as
    inputs on which shapes depend. `outputs` names values that the program returns
    instead of the model's outputs; the program then takes only the inputs that they
    need.

    Raises `LocatedError` for a model that is invalid or not supported, or if the
    package `onnx` is missing.
    """
    model = parse(data, name)
    from .functions import opset_of
    from .graph import Importer

    opset = opset_of(model.opset_import) or OPSETS[-1]
    check_opset(name, "the model", opset)
    for function in model.functions:
        if own := opset_of(function.opset_import):
            check_opset(name, f"function {function.name!r}", own)
    importer = Importer(name, opset, sizes or {}, values or {}, outputs)
    module = importer.module(model)
    return Model(module, importer.parameters)
