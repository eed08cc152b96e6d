"""LiteRT models, built operator by operator, and what LiteRT computes of them."""

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

RESOLVERS = {
    "reference": OpResolverType.BUILTIN_REF,
    "optimized": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
}


def _number(enumeration: Any, name: str) -> int:
    return getattr(enumeration, name)


class Network:
    """A model of one graph; a tensor is its number."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self._tensors: list[Any] = []
        self._buffers: list[Any] = [schema.BufferT()]
        self._operators: list[Any] = []
        self._kinds: list[str] = []
        self._inputs: list[int] = []

    def tensor(
        self,
        shape: Sequence[int],
        dtype: str = "int8",
        scale: Any = None,
        zero: Any = 0,
        *,
        axis: int = 0,
        contents: np.ndarray | None = None,
    ) -> int:
        tensor: Any = schema.TensorT()
        tensor.name = f"t{len(self._tensors)}"
        tensor.shape = np.array(shape, np.int32)
        tensor.type = _number(schema.TensorType, dtype.upper())
        if scale is not None:
            scales = np.atleast_1d(np.array(scale, np.float32))
            quantization: Any = schema.QuantizationParametersT()
            quantization.scale = scales
            zeros = np.broadcast_to(np.atleast_1d(zero), scales.shape)
            quantization.zeroPoint = zeros.astype(np.int64)
            quantization.quantizedDimension = axis
            tensor.quantization = quantization
        if contents is not None:
            buffer: Any = schema.BufferT()
            buffer.data = np.frombuffer(contents.tobytes(), np.uint8)
            tensor.buffer = len(self._buffers)
            self._buffers.append(buffer)
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def input(self, *arguments: Any, **options: Any) -> int:
        self._inputs.append(self.tensor(*arguments, **options))
        return self._inputs[-1]

    def constant(
        self, array: Any, scale: Any = None, zero: Any = 0, axis: int = 0
    ) -> int:
        array = np.asarray(array)
        return self.tensor(
            array.shape, array.dtype.name, scale, zero, axis=axis, contents=array
        )

    def random(
        self, *shape: int, scale: Any = None, zero: Any = 0, axis: int = 0
    ) -> int:
        """Floats, or 8-bit numbers with a scale."""
        if scale is None:
            return self.constant(self.rng.standard_normal(shape).astype("f4"))
        return self.constant(
            self.rng.integers(-127, 128, shape, "i1"), scale, zero, axis
        )

    def op(
        self,
        kind: str,
        inputs: Sequence[int],
        *outputs: int,
        table: str = "",
        **options: Any,
    ) -> int:
        """The first output; `table` has the options, by their names in the schema."""
        operator: Any = schema.OperatorT()
        if kind not in self._kinds:
            self._kinds.append(kind)
        operator.opcodeIndex = self._kinds.index(kind)
        operator.inputs = np.array(inputs, np.int32)
        operator.outputs = np.array(outputs, np.int32)
        if table:
            operator.builtinOptionsType = _number(schema.BuiltinOptions, table)
            operator.builtinOptions = getattr(schema, f"{table}T")()
            for name, value in options.items():
                assert hasattr(operator.builtinOptions, name)
                setattr(operator.builtinOptions, name, value)
        self._operators.append(operator)
        return outputs[0]

    def model(self, *outputs: int) -> bytes:
        graph: Any = schema.SubGraphT()
        graph.tensors, graph.operators = self._tensors, self._operators
        graph.inputs = np.array(self._inputs, np.int32)
        graph.outputs = np.array(outputs, np.int32)
        model = schema.ModelT()
        model.version = 3
        model.subgraphs, model.buffers = [graph], self._buffers
        model.operatorCodes = []
        for kind in self._kinds:
            code = schema.OperatorCodeT()
            number = _number(schema.BuiltinOperator, kind)
            code.builtinCode, code.deprecatedBuiltinCode = number, min(number, 127)
            code.version = 1
            model.operatorCodes.append(code)
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def litert(
    data: bytes, inputs: Sequence[Any], resolver: str = "reference"
) -> list[Any]:
    """LiteRT's values, without delegates."""
    interpreter = Interpreter(
        model_content=data, experimental_op_resolver_type=RESOLVERS[resolver]
    )
    interpreter.allocate_tensors()
    for details, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], array)
    interpreter.invoke()
    outputs = interpreter.get_output_details()
    return [interpreter.get_tensor(details["index"]) for details in outputs]
