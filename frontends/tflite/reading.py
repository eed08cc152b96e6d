"""Reads a `.tflite` file as tensors and operators, by the package `tflite`.

The package is imported on first use.
"""

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from math import prod
from typing import Any, cast

import numpy as np

from ...dialects.diagnostics import LocatedError
from ...dialects.dtypes import Array
from ...support.extras import missing_extra_message
from ..builder import ELEMENTS
from ..unsupported import Unsupported

_DAMAGED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
    struct.error,
)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor of a graph. Real numbers are (element - zero point) * scale."""

    name: str
    shape: Sequence[int]
    kind: str
    """The type of the elements, as in the schema: `FLOAT32`."""

    scales: Array
    """Scales in f32: empty if not quantized, one, or one for each index of `axis`."""

    zeros: Array
    axis: int
    contents: bytes | None
    """The bytes of a constant; None for other tensors."""

    is_sparse: bool
    is_variable: bool

    @property
    def dtype(self) -> np.dtype[Any]:
        name = self.kind.lower()
        if self.is_packed:
            return np.dtype(np.int8)
        if name not in ELEMENTS or name.endswith(("int4", "int2")):  # packed
            raise Unsupported(f"with elements of type {self.kind}")
        if name != "bfloat16":
            return np.dtype(name)
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)

    @property
    def is_packed(self) -> bool:
        """Whether this is a constant of 4-bit integers, two of them in a byte.

        They are converted to 8-bit integers, as in LiteRT's kernels.
        """
        return self.kind == "INT4" and self.contents is not None

    @property
    def is_quantized(self) -> bool:
        return self.scales.size > 0 and self.dtype.kind in "iu"

    @property
    def scale(self) -> np.float32:
        """The scale of all elements."""
        if self.scales.size != 1:
            raise Unsupported(
                f"with {self.scales.size} scales of tensor {self.name!r}, expected 1"
            )
        return self.scales[0]

    @property
    def zero(self) -> int:
        return int(self.zeros[0]) if self.zeros.size else 0

    def array(self) -> Array:
        """The elements of a constant."""
        if self.is_sparse:
            raise Unsupported(f"with the sparse tensor {self.name!r}")
        contents, count = self.contents or b"", prod(self.shape)
        size = -(-count // 2) if self.is_packed else count * self.dtype.itemsize
        if len(contents) != size:
            raise ValueError(
                f"tensor {self.name!r} has {len(contents)} bytes, expected "
                f"{count} elements of type {self.kind}"
            )
        elements = np.frombuffer(contents, self.dtype)
        if self.is_packed:  # the lower bits have the first of two
            both = np.stack([elements << 4, elements], -1) >> 4
            elements = both.reshape(-1)[:count]
        return elements.reshape(self.shape)

    @property
    def is_parameter(self) -> bool:
        """Whether this is a constant of floats or 8-bit integers, of rank 1 or more."""
        is_number = self.dtype.kind in "fV" or self.dtype.name in ("int8", "uint8")
        return self.contents is not None and len(self.shape) > 0 and is_number


@dataclass(frozen=True, eq=False)
class Operator:
    kind: str
    """The kind as in the schema: `CONV_2D`."""

    inputs: Sequence[int]
    """The numbers of the input tensors; -1 for a missing input."""

    outputs: Sequence[int]
    options: Any
    """The options table of its kind in the schema; None without one."""


@dataclass(frozen=True, eq=False)
class Graph:
    number: int
    """The number in the file; 0 for the main graph."""

    tensors: Sequence[Tensor]
    operators: Sequence[Operator]
    inputs: Sequence[int]
    outputs: Sequence[int]

    @cached_property
    def names(self) -> Sequence[str]:
        """Distinct names of the tensors: repeated names get the tensor's number, and
        all but those of the main graph the graph's number.
        """
        graph = f"{self.number}." if self.number else ""
        names = [f"{graph}{tensor.name}" for tensor in self.tensors]
        times = Counter(names)
        return [
            name if times[name] == 1 else f"{name}.{number}"
            for number, name in enumerate(names)
        ]


def parse(data: bytes, name: str) -> Sequence[Graph]:
    """The graphs in the contents `data` of a file called `name`, the main graph first.

    Raises `LocatedError` if the file is invalid, or if `tflite` is not installed.
    """
    try:
        schema: Any = import_module("tflite")
    except ImportError as error:
        raise LocatedError(
            missing_extra_message(
                f"{name} holds a LiteRT model, which requires the package tflite",
                "tflite",
                error,
            )
        ) from None
    try:
        return _graphs(schema, data)
    except _DAMAGED as error:
        reason = " ".join(str(error).split())
        raise LocatedError(f"{name} is not a valid LiteRT model: {reason}") from None


def _graphs(schema: Any, data: bytes) -> Sequence[Graph]:
    model = schema.Model.GetRootAs(data, 0)
    codes = [model.OperatorCodes(n) for n in range(model.OperatorCodesLength())]
    kinds = [_kind(schema, code) for code in codes]
    count = max(model.SubgraphsLength(), 1)
    return [_graph(schema, model, number, kinds, data) for number in range(count)]


def _graph(
    schema: Any, model: Any, number: int, kinds: Sequence[str], data: bytes
) -> Graph:
    graph = model.Subgraphs(number)
    operators: list[Operator] = []
    for place in range(graph.OperatorsLength()):
        operator = graph.Operators(place)
        operators.append(
            Operator(
                kinds[int(operator.OpcodeIndex())],
                _numbers(operator.InputsAsNumpy()),
                _numbers(operator.OutputsAsNumpy()),
                _options(schema, operator),
            )
        )
    inputs, outputs = graph.InputsAsNumpy(), graph.OutputsAsNumpy()
    tensors = [
        _tensor(schema, model, graph.Tensors(place), place, data)
        for place in range(graph.TensorsLength())
    ]
    found = Graph(number, tensors, operators, _numbers(inputs), _numbers(outputs))
    named = [n for o in operators for n in (*o.inputs, *o.outputs)]
    if any(n >= len(tensors) for n in (*named, *found.inputs, *found.outputs)):
        raise ValueError(f"there are {len(tensors)} tensors only")
    return found


def _numbers(vector: Any) -> list[int]:
    """The numbers in a vector; the package has 0 for a missing vector."""
    return [int(number) for number in np.atleast_1d(vector)] if np.ndim(vector) else []


@cache
def _names(enumeration: Any) -> Mapping[int, str]:
    names = cast("Mapping[str, object]", vars(enumeration))
    return {n: name for name, n in names.items() if isinstance(n, int)}


def _kind(schema: Any, code: Any) -> str:
    """The name of an operation; older files store its number in 8 bits."""
    number = max(code.DeprecatedBuiltinCode(), code.BuiltinCode())
    name = _names(schema.BuiltinOperator).get(number, f"operator {number}")
    return code.CustomCode().decode() if name == "CUSTOM" else name


def _options(schema: Any, operator: Any) -> Any:
    """The options of an operator; newer kinds have them in a second field."""
    for which in ("BuiltinOptions", "BuiltinOptions2"):
        number = getattr(operator, f"{which}Type")()
        name = _names(getattr(schema, which)).get(number, "NONE")
        table = getattr(operator, which)()
        if name != "NONE" and table is not None:
            options = getattr(schema, name)()
            options.Init(table.Bytes, table.Pos)
            return options
    return None


def _tensor(schema: Any, model: Any, tensor: Any, number: int, data: bytes) -> Tensor:
    quantization = tensor.Quantization()
    scales = zeros = np.zeros(0)
    axis = 0
    if quantization is not None and quantization.ScaleLength():
        scales, zeros = quantization.ScaleAsNumpy(), quantization.ZeroPointAsNumpy()
        axis = quantization.QuantizedDimension()
    return Tensor(
        (tensor.Name() or b"").decode() or f"tensor.{number}",
        _numbers(tensor.ShapeAsNumpy()),
        _names(schema.TensorType).get(tensor.Type(), f"number {tensor.Type()}"),
        np.asarray(scales, np.float32),
        np.atleast_1d(zeros).astype(np.int64),
        axis,
        _contents(model.Buffers(tensor.Buffer()), data),
        tensor.Sparsity() is not None,
        tensor.IsVariable(),
    )


def _contents(buffer: Any, data: bytes) -> bytes | None:
    """The bytes of a constant, which large files store after the model."""
    if buffer.DataLength():
        return buffer.DataAsNumpy().tobytes()
    if buffer.Offset() > 1:
        return data[buffer.Offset() : buffer.Offset() + buffer.Size()]
    return None
