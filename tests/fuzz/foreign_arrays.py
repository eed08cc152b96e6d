"""Random array programs that provoke in-place errors of ONNX Runtime and LiteRT.

    verdict = judge("litert", 17)

A program adds, reshapes, transposes, slices, updates and joins small arrays of whole
numbers, which f32 represents exactly. It updates views of values that are read later.
Values of two runs are compared with NumPy's, since ONNX Runtime plans from the second
run on. LiteRT's plan is also audited: a wrong value is a failure if the audit does not
refute the plan, and a right value is one if the audit refutes it.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from judging import Verdict

from tensorplan.checking.foreign import audit
from tensorplan.frontends.plans.litert import write_addresses
from tensorplan.frontends.plans.reading import read

Array: TypeAlias = npt.NDArray[Any]

ROWS, COLUMNS = 4, 6
SHAPES = [(4, 6), (6, 4), (24,), (1, 4, 6), (2, 12)]
INPUTS = 2


class Operation(NamedTuple):
    """An operation with NumPy's semantics. Operands are indices of values."""

    kind: str
    operands: Sequence[int]
    shape: tuple[int, ...]  # shape of the result
    numbers: Sequence[int] = ()  # a permutation, or the starts of a window


class Program(NamedTuple):
    operations: Sequence[Operation]
    results: Sequence[int]


BINARY: Mapping[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
UNARY: Mapping[str, Callable[..., Array]] = {
    "neg": np.negative,
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0),
}


def program(seed: int) -> Program:
    """The program of a seed. Values 0 and 1 are inputs of `ROWS` x `COLUMNS` elements.
    Values that no operation reads are results.
    """
    random = Random(seed)
    shapes: list[tuple[int, ...]] = [(ROWS, COLUMNS)] * INPUTS
    operations: list[Operation] = []
    for _ in range(random.randint(3, 12)):
        # Prefers recent values: in-place chains, of which other operations read parts.
        first = max(random.randrange(len(shapes)), random.randrange(len(shapes)))
        operation = _drawn(random, shapes, first)
        shapes.append(operation.shape)
        operations.append(operation)
    made = range(INPUTS, len(shapes))
    count = min(len(made), random.randint(1, 3))
    read = {number for operation in operations for number in operation.operands}
    results = {*made} - read | {*random.sample(made, count)}
    return Program(operations, sorted(results))


def text(seed: int) -> str:
    operations, results = program(seed)
    rows = [
        f"v{number} = {kind} {' '.join(f'v{n}' for n in operands)} {list(numbers)}"
        for number, (kind, operands, _, numbers) in enumerate(operations, INPUTS)
    ]
    return "\n".join([*rows, f"return {' '.join(f'v{number}' for number in results)}"])


def _drawn(random: Random, shapes: Sequence[tuple[int, ...]], first: int) -> Operation:
    shape = shapes[first]
    same = [number for number, other in enumerate(shapes) if other == shape]
    kinds = ["binary"] * 4 + ["unary", "reshape", "reshape", "reshape", "reverse"]
    kinds += ["update"] * 3 * (len(shape) == 2)
    kinds += ["transpose", "rotate", "row"] * (len(shape) == 2)
    match kind := random.choice(kinds):
        case "binary":
            second = random.choice(same)
            name = random.choice([*BINARY])
            if first == second:
                name = "add"  # other results would not depend on x
            return Operation(name, [first, second], shape)
        case "unary":
            return Operation(random.choice([*UNARY]), [first], shape)
        case "reshape":
            return Operation(kind, [first], random.choice(SHAPES))
        case "transpose":
            return Operation(kind, [first], shape[::-1], [1, 0])
        case "row":  # broadcast: rereads one operand
            return Operation(kind, [first, random.choice(same)], shape)
        case "update":  # rows of one value, written into another
            count = random.randint(1, shape[0])
            starts = [random.randint(0, shape[0] - count) for _ in range(2)]
            return Operation(
                kind, [first, random.choice(same)], shape, [count, *starts]
            )
        case "rotate":
            return Operation(kind, [first], shape, [random.randrange(1, shape[0])])
        case _:
            return Operation(kind, [first], shape)


def values(drawn: Program, arrays: Sequence[Array]) -> Sequence[Array]:
    """The results of a program, computed by NumPy."""
    found = list(arrays)
    for kind, operands, shape, numbers in drawn.operations:
        x, *rest = (found[number] for number in operands)
        if kind in BINARY:
            new = BINARY[kind](x, *rest)
        elif kind in UNARY:
            new = UNARY[kind](x)
        elif kind == "update":
            count, source, target = numbers
            new = x.copy()
            new[target : target + count] = rest[0][source : source + count]
        elif kind == "row":
            new = x + rest[0][:1]
        elif kind == "rotate":
            new = np.concatenate([x[numbers[0] :], x[: numbers[0]]])
        elif kind == "transpose":
            new = x.T
        elif kind == "reverse":
            new = x[::-1]
        else:
            new = x.reshape(shape)
        found.append(new)
    return [found[number] for number in drawn.results]


def judge(system: str, seed: int) -> Verdict:
    drawn = program(seed)
    random = np.random.default_rng(seed)
    arrays = [random.integers(-9, 9, (ROWS, COLUMNS)).astype(np.float32) for _ in "xy"]
    expected = values(drawn, arrays)
    got, verdict, message = RUNNERS[system](drawn, arrays)
    is_right = all(
        np.array_equal(one, other)
        for run in got
        for one, other in zip(run, expected, strict=True)
    )
    if is_right and verdict == "unsound":
        return Verdict(seed, "failed", message, "false alarm")
    if not is_right and verdict != "unsound":
        return Verdict(
            seed, "failed", "a wrong value, and nothing found", "wrong value"
        )
    if not is_right:
        return Verdict(seed, "found", message)
    return Verdict(seed, verdict if verdict == "suspicious" else "ok")


Ran: TypeAlias = tuple[Sequence[Sequence[Array]], str, str]
"""The results of two runs, the audit's verdict, and its first finding."""


def _onnxruntime(drawn: Program, arrays: Sequence[Array]) -> Ran:
    """Runs ONNX Runtime, whose plan cannot be read."""
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(
        onnx_model(drawn), options, providers=["CPUExecutionProvider"]
    )
    feeds = {f"v{number}": array for number, array in enumerate(arrays)}
    return [session.run(None, feeds) for _ in range(2)], "", ""


ONNX = {"sub": "Sub", "add": "Add", "maximum": "Max", "minimum": "Min"} | {
    **{"neg": "Neg", "abs": "Abs", "relu": "Relu", "transpose": "Transpose"},
}


def onnx_model(drawn: Program) -> bytes:
    helper: Any = import_module("onnx.helper")
    float_type = import_module("onnx").TensorProto.FLOAT
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(numbers: Sequence[int] | Array) -> str:
        array = np.asarray(numbers, np.int64)
        name = f"c{len(constants)}"
        constants.append(import_module("onnx.numpy_helper").from_array(array, name))
        return name

    def rows(value: str, begin: int, end: int, step: int = 1) -> str:
        parts = (constant([n]) for n in (begin, end, 0, step))
        return node("Slice", [value, *parts])

    def node(kind: str, operands: Sequence[str], name: str = "", **options: Any) -> str:
        name = name or f"t{len(nodes)}"
        nodes.append(helper.make_node(kind, operands, [name], **options))
        return name

    for number, (kind, operands, shape, numbers) in enumerate(drawn.operations, INPUTS):
        name, values = f"v{number}", [f"v{operand}" for operand in operands]
        if kind in ONNX:
            node(ONNX[kind], values, name)
        elif kind == "update":
            count, source, target = numbers
            part = rows(values[1], source, source + count)
            places = np.arange(target, target + count)[:, None]
            node("ScatterND", [values[0], constant(places), part], name)
        elif kind == "row":
            node("Add", [values[0], rows(values[1], 0, 1)], name)
        elif kind == "rotate":
            high = rows(values[0], numbers[0], shape[0])
            node("Concat", [high, rows(values[0], 0, numbers[0])], name, axis=0)
        elif kind == "reverse":
            parts = (constant([n]) for n in (-1, -(2**31), 0, -1))
            node("Slice", [values[0], *parts], name)
        else:
            node("Reshape", [values[0], constant(shape)], name)

    def named(number: int) -> Any:
        shape = drawn.operations[number - INPUTS].shape if number >= INPUTS else None
        return helper.make_tensor_value_info(
            f"v{number}", float_type, shape or (ROWS, COLUMNS)
        )

    graph = helper.make_graph(
        nodes,
        "program",
        [named(number) for number in range(INPUTS)],
        [named(number) for number in drawn.results],
        constants,
    )
    imports = [helper.make_opsetid("", 18)]
    return helper.make_model(
        graph, opset_imports=imports, ir_version=9
    ).SerializeToString()


def _litert(drawn: Program, arrays: Sequence[Array]) -> Ran:
    """Runs LiteRT's interpreter without delegates, and audits its plan."""
    runtime: Any = import_module("ai_edge_litert.interpreter")
    builtin = runtime.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    content = litert_model(drawn)
    interpreter = runtime.Interpreter(
        model_content=content, experimental_op_resolver_type=builtin
    )
    interpreter.allocate_tensors()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "net.tflite"
        path.write_bytes(content)
        write_addresses(interpreter, str(path))
        found = audit(read(path))
    runs: list[Sequence[Array]] = []
    for _ in range(2):
        for number, array in enumerate(arrays):
            interpreter.set_tensor(number, array)
        interpreter.invoke()
        runs.append([interpreter.get_tensor(number) for number in drawn.results])
    message = found.findings[0].message if found.findings else ""
    return runs, found.verdict, message


def litert_model(drawn: Program) -> bytes:
    """The program as a model. Its first tensors are the program's values, in order."""
    schema: Any = import_module("ai_edge_litert.schema_py_generated")
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.subgraphs = 3, [graph]
    model.buffers, model.operatorCodes = [schema.BufferT()], []
    graph.tensors, graph.operators = [], []
    graph.inputs, graph.outputs = list(range(INPUTS)), list(drawn.results)

    def tensor(shape: Sequence[int], data: Array | None = None) -> int:
        made = schema.TensorT()
        made.shape, made.name = list(shape), f"t{len(graph.tensors)}"
        kinds = schema.TensorType
        made.type, made.buffer = kinds.FLOAT32 if data is None else kinds.INT32, 0
        if data is not None:
            made.buffer = len(model.buffers)
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(data.tobytes(), np.uint8)
            model.buffers.append(buffer)
        graph.tensors.append(made)
        return len(graph.tensors) - 1

    def constant(numbers: Sequence[int]) -> int:
        return tensor([len(numbers)], np.asarray(numbers, np.int32))

    def operator(name: str, inputs: Sequence[int], output: int, **fields: int) -> None:
        code = schema.OperatorCodeT()
        number = getattr(schema.BuiltinOperator, name)
        code.builtinCode, code.deprecatedBuiltinCode = number, min(number, 127)
        code.version = 1
        model.operatorCodes.append(code)
        made = schema.OperatorT()
        made.opcodeIndex = len(model.operatorCodes) - 1
        made.inputs, made.outputs = list(inputs), [output]
        if options := OPTIONS.get(name):
            made.builtinOptionsType = getattr(schema.BuiltinOptions, options)
            made.builtinOptions = getattr(schema, f"{options}T")()
            for field, value in fields.items():
                setattr(made.builtinOptions, field, value)
        graph.operators.append(made)

    def rows(value: int, shape: Sequence[int], begin: int, count: int) -> int:
        size = [count, *shape[1:]]
        found = tensor(size)
        starts = [begin, *(0 for _ in shape[1:])]
        operator("SLICE", [value, constant(starts), constant(size)], found)
        return found

    shapes = [(ROWS, COLUMNS)] * INPUTS + [o.shape for o in drawn.operations]
    for shape in shapes:
        tensor(shape)
    for number, (kind, operands, shape, numbers) in enumerate(drawn.operations, INPUTS):
        if kind in BINARY or kind in UNARY:
            operator(kind.upper(), operands, number)
        elif kind == "update":
            count, source, target = numbers
            part = rows(operands[1], shape, source, count)
            inputs = [operands[0], part, constant([target, 0])]
            operator("DYNAMIC_UPDATE_SLICE", inputs, number)
        elif kind == "row":
            part = rows(operands[1], shape, 0, 1)
            operator("ADD", [operands[0], part], number)
        elif kind == "rotate":
            first = rows(operands[0], shape, numbers[0], shape[0] - numbers[0])
            second = rows(operands[0], shape, 0, numbers[0])
            operator("CONCATENATION", [first, second], number, axis=0)
        elif kind == "transpose":
            operator("TRANSPOSE", [operands[0], constant(numbers)], number)
        elif kind == "reverse":
            operator("REVERSE_V2", [operands[0], constant([0])], number)
        else:
            operator("RESHAPE", [operands[0], constant(shape)], number)
    builder: Any = import_module("flatbuffers").Builder(0)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


OPTIONS = {
    **{"ADD": "AddOptions", "SUB": "SubOptions", "NEG": "NegOptions"},
    **{"MAXIMUM": "MaximumMinimumOptions", "MINIMUM": "MaximumMinimumOptions"},
    **{"ABS": "AbsOptions", "SLICE": "SliceOptions", "TRANSPOSE": "TransposeOptions"},
    **{"CONCATENATION": "ConcatenationOptions", "REVERSE_V2": "ReverseV2Options"},
    "DYNAMIC_UPDATE_SLICE": "DynamicUpdateSliceOptions",
}

RUNNERS: Mapping[str, Callable[[Program, Sequence[Array]], Ran]] = {
    "onnxruntime": _onnxruntime,
    "litert": _litert,
}
