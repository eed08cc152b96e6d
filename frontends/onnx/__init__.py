"""ONNX models → tgraph (level 1), by the package `onnx`.

    import_model(data, "model.onnx", {"batch": 1})

returns a model whose module has a single function `@main`. Its arguments are the inputs
of the ONNX model, followed by its parameters: the initializers of floats or of 8-bit
numbers, of rank 1 or more, that operations read. `tgraph.name` is the name of each in
the ONNX model. Parameters are marked `tgraph.parameter`, and their values are not in
the IR. Other initializers are constants. The frontend computes values that depend only
on shapes and constants (`folding.py`). It expands operations that ONNX defines by
others (RMSNormalization, RotaryEmbedding, ...), unless it converts them as a whole.

An operation's place is `model.onnx#node:7:1`: the node's name (that of its first output
if it has none), and its number, from 1. Within a definition it is
`model.onnx#node/inner:7:1`.

reading.py      the file, checked
node.py         one node, and what conversions share
graph.py        the graph: names, arguments, errors
inputs.py       the inputs: their sizes, and an argument for each tensor
functions.py    what operations are defined by
older.py        nodes of older opsets
qdq.py          quantized operations that are written in floats
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
    """The model in the contents of a file called `name`.

    `sizes` has those of the dimensions that the model leaves open, by name; where the
    model has no name, it is `input.index`. An input that is a sequence or an optional
    has its length by its name. `values` has arrays for inputs that are to
    be constants, such as one that shapes depend on. `outputs` names the values that the
    program returns, rather than the model's outputs; it takes only what these need.

    Raises `LocatedError` for a model that is not valid or not supported, or if the
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
