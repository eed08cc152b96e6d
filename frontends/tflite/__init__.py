"""LiteRT (TensorFlow Lite) models → tgraph (level 1), by the package `tflite`.

    import_model(data, "model.tflite")

returns a model whose module has a single function `@main`. Its arguments are the inputs
of the main graph, followed by parameters and variables. Parameters are the constants of
floats or of 8-bit numbers, of rank 1 or more. Variables keep what a run assigns to
them; they begin with what CALL_ONCE assigns, or with zeros. `tgraph.name` is the name
of each in the model. Other constants are in the IR, and the frontend computes what
depends only on them and on shapes.

Quantized operations have the integers that LiteRT's reference kernels compute
(fixed_point.py); between operations, 8-bit numbers are stored. Floats times 8-bit
numbers are computed in floats.

An operation's place is `model.tflite#tensor:7:1`: the name of its first output, and its
number, from 1.

reading.py      the file, as tensors and operators
node.py         one operator, and what conversions share
fixed_point.py  the rounding of quantized integers
interpolation.py  functions of 16-bit numbers, by tables
graph.py        the graphs: names, arguments, variables, errors
control.py      branches, loops and calls, whose bodies are graphs
recurrent.py    layers that keep a state between runs
elementwise.py, indexing.py, normalization.py, products.py, reducing.py, resizing.py,
shaping.py, softmax.py, spectral.py, windows.py      the conversions, by family

Does not: support variables in branches and loops, strings, custom operations, or sizes
computed at run time. Sizes that the model leaves open are those that the file has.
"""

from ...dialects.diagnostics import depth_limited
from ...model import Model
from ..plans.tflite import IDENTIFIER


def is_model(data: bytes) -> bool:
    """Whether these bytes begin as a `.tflite` file."""
    return data[4:8] == IDENTIFIER


@depth_limited()
def import_model(data: bytes, name: str) -> Model:
    """The model in the contents of a file called `name`.

    Raises `LocatedError` for a model that is not valid or not supported, or if the
    package `tflite` is missing.
    """
    from .graph import Importer
    from .reading import parse

    importer = Importer(name, parse(data, name))
    return Model(importer.module(), importer.parameters)
