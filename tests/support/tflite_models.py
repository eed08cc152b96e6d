"""Builds LiteRT models operator by operator, and runs them in LiteRT."""

from collections.abc import Callable, Sequence
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
    """The main graph of a model, or another graph. Tensors are identified by index."""

    def __init__(self, main: "Network | None" = None) -> None:
        self.rng = np.random.default_rng(0)
        self._tensors: list[Any] = []
        self._operators: list[Any] = []
        self._inputs: list[int] = []
        self._outputs: Sequence[int] = ()
        self._buffers: list[Any] = main._buffers if main else [schema.BufferT()]
        self._kinds: list[str] = main._kinds if main else []
        self._graphs: list[Network] = main._graphs if main else []
        self._graphs.append(self)

    def graph(self, build: "Callable[[Network], Sequence[int]]") -> int:
        """Adds a graph whose outputs `build` returns; returns the graph's index."""
        inner = Network(self)
        inner._outputs = build(inner)
        return self._graphs.index(inner)

    def variable(self, name: str) -> int:
        """The handle of a variable, as a tensor."""
        handle = self.tensor([], "resource")
        options = {"table": "VarHandleOptions", "container": "", "sharedName": name}
        return self.op("VAR_HANDLE", [], handle, **options)

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

    def state(self, *arguments: Any) -> int:
        """A tensor that keeps its contents from run to run."""
        number = self.tensor(*arguments)
        self._tensors[number].isVariable = True
        return number

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
        """A constant of random floats, or with `scale`, of random 8-bit integers."""
        if scale is None:
            return self.constant(self.rng.standard_normal(shape).astype("f4"))
        return self.constant(
            self.rng.integers(-127, 128, shape, "i1"), scale, zero, axis
        )

    def packed(self, *shape: int, scale: Any, axis: int = 0) -> int:
        """A constant of random 4-bit integers, two in a byte."""
        numbers = self.rng.integers(-8, 8, shape, "i1").ravel() & 15
        pairs = np.pad(numbers, (0, numbers.size % 2)).reshape(-1, 2)
        contents = pairs[:, 0] | pairs[:, 1] << 4
        return self.tensor(shape, "int4", scale, axis=axis, contents=contents)

    def op(
        self,
        kind: str,
        inputs: Sequence[int],
        *outputs: int,
        table: str = "",
        **options: Any,
    ) -> int:
        """Adds an operator; returns its first output. `table` is the schema's table of
        its options."""
        operator: Any = schema.OperatorT()
        if kind not in self._kinds:
            self._kinds.append(kind)
        operator.opcodeIndex = self._kinds.index(kind)
        operator.inputs = np.array(inputs, np.int32)
        operator.outputs = np.array(outputs, np.int32)
        if table:
            made = getattr(schema, f"{table}T")()
            for name, value in options.items():
                assert hasattr(made, name)
                setattr(made, name, value)
            if hasattr(schema.BuiltinOptions, table):
                operator.builtinOptionsType = _number(schema.BuiltinOptions, table)
                operator.builtinOptions = made
            else:
                operator.builtinOptions2Type = _number(schema.BuiltinOptions2, table)
                operator.builtinOptions2 = made
        self._operators.append(operator)
        return outputs[0] if outputs else -1

    def _packed(self) -> Any:
        graph: Any = schema.SubGraphT()
        graph.tensors, graph.operators = self._tensors, self._operators
        graph.inputs = np.array(self._inputs, np.int32)
        graph.outputs = np.array(self._outputs, np.int32)
        return graph

    def model(self, *outputs: int) -> bytes:
        self._outputs = outputs
        model = schema.ModelT()
        model.version = 3
        model.subgraphs = [graph._packed() for graph in self._graphs]
        model.buffers = self._buffers
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
    """The results of one run in LiteRT, without delegates."""
    return litert_runs(data, [inputs], resolver)[0]


def litert_runs(
    data: bytes, runs: Sequence[Sequence[Any]], resolver: str = "reference"
) -> list[list[Any]]:
    """The results of each of several runs in one LiteRT interpreter."""
    interpreter = Interpreter(
        model_content=data, experimental_op_resolver_type=RESOLVERS[resolver]
    )
    interpreter.allocate_tensors()
    found: list[list[Any]] = []
    for inputs in runs:
        for details, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(details["index"], array)
        interpreter.invoke()
        outputs = interpreter.get_output_details()
        found.append([interpreter.get_tensor(output["index"]) for output in outputs])
    return found
