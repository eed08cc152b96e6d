"""Converts LiteRT (TensorFlow Lite) models to level 1, by the package `tflite`.

    import_model(data, "model.tflite")

returns a model whose module has a single function `@main`. Its arguments are the inputs
of the main graph, followed by parameters and variables. Parameters are constants of
rank 1 or more whose elements are floats or 8-bit integers. Variables keep their
contents between runs; their initial contents are those that CALL_ONCE assigns, or
zeros. `tgraph.name` is the name in the model. Other constants are in the IR, and the
frontend folds operations on constants and shapes.

Quantized operations compute the same integers as LiteRT's reference kernels
(fixed_point.py); 8-bit integers are stored between operations. Products of floats and
8-bit integers are computed in floats.

The location of an operation is `model.tflite#tensor:7:1`: the name of its first output,
and its number, from 1.

reading.py      reads a file as tensors and operators
node.py         the context for the conversion of one operator, and helpers
fixed_point.py  arithmetic and rounding of quantized integers
interpolation.py  functions of 16-bit integers, by tables
graph.py        converts graphs: names, arguments, variables, errors
control.py      branches, loops and calls, whose bodies are graphs
recurrent.py    layers that keep a state between runs
elementwise.py, indexing.py, normalization.py, products.py, reducing.py, resizing.py,
shaping.py, softmax.py, spectral.py, windows.py      the conversions, by family

Does not: support variables in branches and loops, strings, custom operations, or sizes
computed at run time. Dynamic sizes of a model have the values stored in the file.
"""

from ...dialects.diagnostics import depth_limited
from ...model import Model
from ..plans.tflite import IDENTIFIER


def is_model(data: bytes) -> bool:
    """Whether `data` begins like a `.tflite` file."""
    return data[4:8] == IDENTIFIER


@depth_limited()
def import_model(data: bytes, name: str) -> Model:
    """Converts the model in the contents `data` of a file called `name`.

    Raises `LocatedError` for an invalid or unsupported model, or if the package
    `tflite` is not installed.
    """
    from .graph import Importer
    from .reading import parse

    importer = Importer(name, parse(data, name))
    return Model(importer.module(), importer.parameters)
