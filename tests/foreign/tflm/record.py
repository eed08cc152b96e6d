"""Records the models in this folder: `python tests/foreign/tflm/record.py`. Needs
ai-edge-litert 2.3, whose package has the schema of `.tflite`.

`branches` needs 2,496 bytes, but TensorFlow Lite Micro's planner takes 3,744. `loop`
has a WHILE, a variable, and unrelated metadata. `npu` has an operator and a plan in the
form that Vela writes: all scratch memory is an operand.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np

schema: Any = import_module("ai_edge_litert.schema_py_generated")

FOLDER = Path(__file__).parent
BUILTIN = schema.BuiltinOperator
OPTIONS = schema.BuiltinOptions


class Net:
    """A model with one subgraph on f32 tensors of shape 1 x n x 1 x 8."""

    def __init__(self, model: "Model"):
        self.model, self.graph = model, schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        model.model.subgraphs.append(self.graph)

    def tensor(self, *shape: int, **fields: Any) -> int:
        new = schema.TensorT()
        new.shape, new.name = list(shape), f"t{len(self.graph.tensors)}".encode()
        for name, value in fields.items():
            setattr(new, name, value)
        self.graph.tensors.append(new)
        return len(self.graph.tensors) - 1

    def add(self, builtin: int, reads: list[int], writes: list[int], options=None):
        new = schema.OperatorT()
        new.opcodeIndex = self.model.code(builtin)
        new.inputs, new.outputs = reads, writes
        if options is not None:
            kind = type(options).__name__.removesuffix("T")
            new.builtinOptionsType = getattr(OPTIONS, kind)
            new.builtinOptions = options
        self.graph.operators.append(new)
        return writes[0]

    def relu(self, x: int) -> int:
        return self.add(BUILTIN.RELU, [x], [self.tensor(*self.graph.tensors[x].shape)])

    def pool(self, x: int, width: int) -> int:
        options = schema.Pool2DOptionsT()
        options.padding = schema.Padding.VALID
        options.strideH, options.strideW = width, 1
        options.filterHeight, options.filterWidth = width, 1
        new = self.tensor(1, self.graph.tensors[x].shape[1] // width, 1, 8)
        return self.add(BUILTIN.MAX_POOL_2D, [x], [new], options)

    def concat(self, *parts: int) -> int:
        options = schema.ConcatenationOptionsT()
        options.axis = 1
        size = sum(self.graph.tensors[part].shape[1] for part in parts)
        new = self.tensor(1, size, 1, 8)
        return self.add(BUILTIN.CONCATENATION, [*parts], [new], options)


class Model:
    def __init__(self):
        self.model = schema.ModelT()
        self.model.version, self.model.description = 3, b"recorded"
        self.model.buffers = [schema.BufferT()]
        self.model.subgraphs, self.model.operatorCodes = [], []

    def code(self, builtin: int, custom: bytes | None = None) -> int:
        codes = self.model.operatorCodes
        if builtin not in [code.builtinCode for code in codes]:
            codes.append(schema.OperatorCodeT())
            codes[-1].builtinCode, codes[-1].version = builtin, 1
            codes[-1].deprecatedBuiltinCode = min(builtin, 127)
            codes[-1].customCode = custom
        return [code.builtinCode for code in codes].index(builtin)

    def buffer(self, array: np.ndarray) -> int:
        self.model.buffers.append(schema.BufferT())
        self.model.buffers[-1].data = np.frombuffer(array.tobytes(), np.uint8)
        return len(self.model.buffers) - 1

    def describe(self, name: bytes, content: np.ndarray) -> None:
        self.model.metadata = [schema.MetadataT()]
        self.model.metadata[0].name = name
        self.model.metadata[0].buffer = self.buffer(content)

    def write(self, name: str) -> None:
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        (FOLDER / f"{name}.tflite").write_bytes(builder.Output())


def branches() -> Model:
    model = Model()
    net = Net(model)
    x = net.tensor(1, 24, 1, 8)
    part = net.pool(x, 4)
    wide = net.concat(part, x)
    y = net.relu(net.concat(wide, net.pool(net.concat(part, wide), 4)))
    net.graph.inputs, net.graph.outputs = [x], [y]
    return model


def loop() -> Model:
    """The loop `while x < 100: x = x + x`, followed by a sum."""
    model = Model()
    net, condition, body = Net(model), Net(model), Net(model)
    x, limit = net.tensor(1, 4, 1, 8), net.tensor(1)
    net.graph.tensors[limit].buffer = model.buffer(np.array([100], np.float32))
    net.tensor(1, 4, 1, 8, isVariable=True)
    options = schema.WhileOptionsT()
    options.condSubgraphIndex, options.bodySubgraphIndex = 1, 2
    y = net.add(BUILTIN.WHILE, [x], [net.tensor(1, 4, 1, 8)], options)
    net.graph.inputs, net.graph.outputs = [x], [net.concat(x, y)]
    a, b = condition.tensor(1, 4, 1, 8), condition.tensor(1)
    condition.graph.tensors[b].buffer = net.graph.tensors[limit].buffer
    less = condition.tensor(1, 4, 1, 8, type=schema.TensorType.BOOL)
    every = condition.tensor(1, type=schema.TensorType.BOOL)
    axes = condition.tensor(3, type=schema.TensorType.INT32)
    shape = np.array([1, 2, 3], np.int32)
    condition.graph.tensors[axes].buffer = model.buffer(shape)
    condition.add(BUILTIN.LESS, [a, b], [less], schema.LessOptionsT())
    reducer = schema.ReducerOptionsT()
    condition.add(BUILTIN.REDUCE_ALL, [less, axes], [every], reducer)
    condition.graph.inputs, condition.graph.outputs = [a], [every]
    c = body.tensor(1, 4, 1, 8)
    twice = body.add(
        BUILTIN.ADD, [c, c], [body.tensor(1, 4, 1, 8)], schema.AddOptionsT()
    )
    body.graph.inputs, body.graph.outputs = [c], [twice]
    model.describe(b"min_runtime_version", np.frombuffer(b"1.5.0", np.uint8))
    return model


def npu() -> Model:
    model = Model()
    model.code(BUILTIN.CUSTOM, b"ethos-u")
    net = Net(model)
    x, y = net.tensor(1, 4, 1, 8), net.tensor(1, 4, 1, 8)
    scratch = net.tensor(1, 8, 1, 8)
    net.add(BUILTIN.CUSTOM, [x, scratch], [y])
    net.graph.inputs, net.graph.outputs = [x], [y]
    plan = np.array([1, 0, 3, 0, 128, 0], np.int32)
    model.describe(b"OfflineMemoryAllocation", plan)
    return model


if __name__ == "__main__":
    npu().write("npu")
    branches().write("branches")
    loop().write("loop")
