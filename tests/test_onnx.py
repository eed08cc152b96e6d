"""Tests imported ONNX models: onnxruntime's values, operations, sizes, and errors."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.tools import plan_opt, plan_run, plan_view

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx_models import (  # noqa: E402
    CASES,
    IMAGE,
    OPSET,
    Arrays,
    Case,
    X,
    case_model,
    label,
    model_of,
    normal,
)

TOLERANCE: Any = {"rtol": 1e-4, "atol": 1e-5}
"""The tolerance for sums that are added in another order."""


def check(
    data: bytes, inputs: Arrays, *, sizes: Mapping[str, int] | None = None
) -> Any:
    """Compares planned and reference values with onnxruntime's, up to `TOLERANCE`;
    returns the imported module."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(data, options)
    want = session.run(None, dict(inputs))
    imported = tensorplan.from_onnx(data, sizes=sizes, simplify=False)
    simple = tensorplan.from_onnx(data, sizes=sizes)
    arrays = [*inputs.values(), *imported.parameters.values()]
    results = [run_reference(imported.module, arrays)]
    # For most models, nothing can be simplified, and both modules are equal.
    for model in {str(model.module): model for model in (imported, simple)}.values():
        results.append(tensorplan.compile(model)(*inputs.values()))
    for got in results:
        assert len(got) == len(want)
        for have, expected in zip(got, want, strict=True):
            assert have.dtype == expected.dtype
            assert have.shape == expected.shape
            np.testing.assert_allclose(have, expected, **TOLERANCE)
    return imported


@pytest.mark.parametrize("case", CASES, ids=label)
def test_operations(case: Case) -> None:
    check(*case_model(case))


def test_outputs_can_precede_an_unsupported_operation() -> None:
    """A program can end before an unsupported operation, such as a detector before its
    NonMaxSuppression."""
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "weight"], ["boxes"]),
            helper.make_node("Transpose", ["boxes"], ["scores"], perm=[0, 2, 1]),
            helper.make_node("Mul", ["scores", "late"], ["scaled"]),
            helper.make_node("NonMaxSuppression", ["boxes", "scaled"], ["chosen"]),
        ],
        "detect",
        [
            helper.make_tensor_value_info("x", floats, [1, 4, 4]),
            helper.make_tensor_value_info("late", floats, ["n"]),
        ],
        [helper.make_tensor_value_info("chosen", TensorProto.INT64, [None, 3])],
        [numpy_helper.from_array(np.eye(4, dtype="f4") * 2, "weight")],
    )
    opsets = [helper.make_opsetid("", 18)]
    data = helper.make_model(
        graph, opset_imports=opsets, ir_version=8
    ).SerializeToString()
    with pytest.raises(LocatedError, match="NonMaxSuppression"):
        tensorplan.from_onnx(data, sizes={"n": 4})
    model = tensorplan.from_onnx(data, outputs=["scores", "boxes"])
    x = np.arange(16, dtype="f4").reshape(1, 4, 4)
    scores, boxes = tensorplan.compile(model)(x)
    np.testing.assert_array_equal(boxes, 2 * x)
    np.testing.assert_array_equal(scores, 2 * x.transpose(0, 2, 1))
    with pytest.raises(LocatedError, match="no value 'skores'; did you mean 'scores'"):
        tensorplan.from_onnx(data, outputs=["skores"])
    with pytest.raises(TypeError, match="expected names"):
        tensorplan.from_onnx(data, outputs="scores")


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_resize_propagates_nan(mode: str) -> None:
    """A NaN affects the same elements as in onnxruntime. A window that extends over an
    edge reads the element at the edge only once."""
    scales = numpy_helper.from_array(np.array([1, 1, 2, 1.5], "f4"), "scales")
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode)],
        "resize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [scales],
    )
    opsets = [helper.make_opsetid("", 18)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    x = np.arange(64, dtype="f4").reshape(1, 1, 8, 8)
    x[0, 0, 2, 5] = np.nan
    check(data.SerializeToString(), {"x": x})


@pytest.mark.parametrize(
    ("name", "shape"),
    [("Gather", (0,)), ("GatherElements", (0, 3)), ("GatherND", (0, 1))],
)
def test_gathers_from_an_empty_dimension(name: str, shape: Sequence[int]) -> None:
    x = np.zeros((0, 3), "f4")
    one = helper.make_node(name, ["x", "i"], ["y"])
    indices = {"i": np.zeros(shape, "i8")}
    check(model_of([one], {"x": x}, ["y"], indices), {"x": x})
    check(model_of([one], {"x": x, **indices}, ["y"]), {"x": x, **indices})


def test_gathers_of_constants_that_onnx_cannot_evaluate() -> None:
    """ONNX's evaluator fails if a constant has one row, or more rows than the indices,
    such as BERT's token types by position."""
    x = normal(2, 3)
    for shape in ((1, 9), (4, 9)):
        one = node("GatherElements", "c i", "e", axis=1)
        weights = {"c": normal(*shape), "i": np.array([[5, 0, -1]])}
        sum_of = node("Add", "x e", "y")
        check(model_of([one, sum_of], {"x": x}, ["y"], weights), {"x": x})


@pytest.mark.parametrize(("name", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers_without_steps_return_zeros(name: str, gates: int) -> None:
    """The last state of an empty sequence is zero. onnxruntime leaves the state of an
    LSTM uninitialized, and crashes for a GRU."""
    x, h = np.zeros((0, 2, 4), "f4"), normal(2, 2, 3)
    weights = {"w": normal(2, 3 * gates, 4), "r": normal(2, 3 * gates, 3)}
    one = helper.make_node(
        *(name, ["x", "w", "r", "", "", "h"], ["y", "last"]),
        hidden_size=3,
        direction="bidirectional",
    )
    inputs = {"x": x, "h": h}
    model = tensorplan.from_onnx(model_of([one], inputs, ["y", "last"], weights))
    arrays = [x, h, *model.parameters.values()]
    for y, last in (
        run_reference(model.module, arrays),
        tensorplan.compile(model)(x, h),
    ):
        assert y.shape == (0, 2, 2, 3)
        np.testing.assert_array_equal(last, np.zeros((2, 2, 3)))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("count", [3, 9])
def test_top_k_ranks_nan_above_infinity(count: int, largest: int, dtype: str) -> None:
    x = np.array([[3, np.nan, np.inf, -np.nan, 0, -0.0, np.inf, 7, -np.inf]], dtype)
    x = np.concatenate([x, x[:, ::-1]])
    one = helper.make_node("TopK", ["x", "k"], ["y", "i"], largest=largest)
    constants = {"k": np.array([count])}
    check(model_of([one], {"x": x}, ["y", "i"], constants), {"x": x})


def node(name: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(name, inputs.split(), output.split(), **attributes)


def vector(name: str, *values: int) -> Any:
    return helper.make_node("Constant", [], [name], value_ints=values)


def conv_bn(
    nodes: list[Any],
    weights: dict[str, np.ndarray],
    source: str,
    output: str,
    kernel: Sequence[int],
    **attributes: Any,
) -> None:
    """Appends a convolution and a batch normalization, whose weights are named after
    `output`."""
    weights[f"{output}.w"] = normal(*kernel) / 4
    names = [f"{output}.w"]
    for name in ("scale", "bias", "mean", "var"):
        weights[f"{output}.{name}"] = np.abs(normal(kernel[0])) + len(names) / 10
        names.append(f"{output}.{name}")
    nodes.append(node("Conv", f"{source} {names[0]}", f"{output}.c", **attributes))
    nodes.append(
        node("BatchNormalization", f"{output}.c {' '.join(names[1:])}", output)
    )


@pytest.mark.parametrize("opset", [13, 17, 21])
def test_a_residual_block(opset: int) -> None:
    nodes: list[Any] = []
    weights: dict[str, np.ndarray] = {}
    conv_bn(nodes, weights, "x", "a", (8, 4, 3, 3), pads=[1] * 4, strides=[2, 2])
    nodes.append(node("Relu", "a", "b"))
    conv_bn(nodes, weights, "b", "c", (8, 8, 3, 3), pads=[1] * 4)
    conv_bn(nodes, weights, "x", "d", (8, 4, 1, 1), strides=[2, 2])
    nodes += [
        node("Add", "c d", "e"),
        node("Relu", "e", "f"),
        node("GlobalAveragePool", "f", "g"),
        node("Flatten", "g", "h"),
        node("Gemm", "h fc.w fc.b", "y", transB=1),
    ]
    weights |= {"fc.w": normal(10, 8), "fc.b": normal(10)}
    inputs = {"x": normal(1, 4, 16, 16)}
    data = model_of(nodes, inputs, ["y"], weights, opset=opset)
    imported = check(data, inputs)
    assert list(imported.parameters) == list(weights)
    text = str(imported.module)
    assert 'tgraph.name = "fc.w", tgraph.parameter' in text
    assert "dense" not in text


def test_a_mobilenet_block() -> None:
    nodes: list[Any] = []
    weights: dict[str, np.ndarray] = {
        "six": np.array(6, "f4"),
        "zero": np.array(0, "f4"),
    }
    conv_bn(nodes, weights, "x", "a", (12, 4, 1, 1))
    nodes.append(node("Clip", "a zero six", "b"))
    conv_bn(nodes, weights, "b", "c", (12, 1, 3, 3), group=12, pads=[1] * 4)
    nodes.append(node("HardSwish", "c", "d"))
    conv_bn(nodes, weights, "d", "e", (4, 12, 1, 1))
    nodes.append(node("Add", "e x", "y"))
    inputs = {"x": normal(1, 4, 8, 8)}
    check(model_of(nodes, inputs, ["y"], weights), inputs)


def test_a_u_net() -> None:
    weights = {
        "w1": normal(4, 3, 3, 3),
        "w2": normal(8, 4, 3, 3) / 4,
        "w3": normal(4, 12, 3, 3) / 8,
        "up": normal(8, 8, 2, 2) / 4,
        "scales": np.array([1, 1, 2, 2], "f4"),
    }
    pads = [1] * 4
    nodes = [
        node("Conv", "x w1", "a", pads=pads),
        node("Relu", "a", "b"),
        node("MaxPool", "b", "c", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "c w2", "d", pads=pads),
        node("Relu", "d", "e"),
        node("MaxPool", "e", "f", kernel_shape=[2, 2], strides=[2, 2]),
        node("ConvTranspose", "f up", "g", strides=[2, 2]),
        helper.make_node("Resize", ["g", "", "scales"], ["h"], mode="linear"),
        node("Concat", "b h", "i", axis=1),
        node("Conv", "i w3", "j", pads=pads),
        node("Sigmoid", "j", "y"),
    ]
    inputs = {"x": normal(1, 3, 16, 16)}
    imported = check(model_of(nodes, inputs, ["y"], weights), inputs)
    assert "scales" not in imported.parameters


def transformer_layer(causal: bool) -> tuple[list[Any], dict[str, np.ndarray]]:
    """Returns the nodes and the weights of a transformer layer as exporters write it:
    the shape of the heads is computed from the input's shape."""
    width, heads = 16, 4
    weights = {
        "tokens": normal(50, width),
        "places": normal(32, width),
        "ln1.w": normal(width),
        "ln1.b": normal(width),
        "ln2.w": normal(width),
        "ln2.b": normal(width),
        "qkv.w": normal(width, 3 * width) / 4,
        "qkv.b": normal(3 * width),
        "out.w": normal(width, width) / 4,
        "up.w": normal(width, 64) / 4,
        "up.b": normal(64),
        "down.w": normal(64, width) / 8,
        "seen": np.tril(np.ones((1, 1, 32, 32), bool)),
        "low": np.array(-1e9, "f4"),
        "scale": np.array((width / heads) ** 0.5, "f4"),
        "zero": np.array(0),
        "one": np.array(1),
    }
    nodes = [
        node("Shape", "ids", "s"),
        node("Gather", "s zero", "batch", axis=0),
        node("Gather", "s one", "length", axis=0),
        node("Range", "zero length one", "positions"),
        node("Gather", "tokens ids", "x1"),
        node("Gather", "places positions", "x2"),
        node("Add", "x1 x2", "x"),
        node("LayerNormalization", "x ln1.w ln1.b", "n1"),
        node("MatMul", "n1 qkv.w", "m1"),
        node("Add", "m1 qkv.b", "m2"),
        node("Split", "m2", "q0 k0 v0", axis=-1, num_outputs=3),
        vector("a0", 0),
        node("Unsqueeze", "batch a0", "batch1"),
        node("Unsqueeze", "length a0", "length1"),
        vector("tail", heads, width // heads),
        node("Concat", "batch1 length1 tail", "split", axis=0),
    ]
    for name in "qkv":
        nodes.append(node("Reshape", f"{name}0 split", f"{name}1"))
        perm = [0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]
        nodes.append(node("Transpose", f"{name}1", name, perm=perm))
    nodes += [node("MatMul", "q k", "p0"), node("Div", "p0 scale", "p1")]
    if causal:
        nodes += [
            vector("s0", 0, 0),
            vector("s1", 2, 3),
            node("Concat", "length1 length1", "ends", axis=0),
            node("Slice", "seen s0 ends s1", "mask"),
            node("Where", "mask p1 low", "p2"),
        ]
    else:
        nodes.append(node("Identity", "p1", "p2"))
    nodes += [
        node("Softmax", "p2", "p3"),
        node("MatMul", "p3 v", "o1"),
        node("Transpose", "o1", "o2", perm=[0, 2, 1, 3]),
        vector("flat", 0, 0, -1),
        node("Reshape", "o2 flat", "o3"),
        node("MatMul", "o3 out.w", "o4"),
        node("Add", "x o4", "h"),
        node("LayerNormalization", "h ln2.w ln2.b", "n2"),
        node("MatMul", "n2 up.w", "u1"),
        node("Add", "u1 up.b", "u2"),
        node("Gelu", "u2", "u3", approximate="tanh" if causal else "none"),
        node("MatMul", "u3 down.w", "u4"),
        node("Add", "h u4", "z"),
        node("Gather", "z zero", "y", axis=1) if not causal else node("Tanh", "z", "y"),
    ]
    return nodes, weights


@pytest.mark.parametrize("causal", [False, True], ids=["bert", "gpt2"])
def test_a_transformer_layer_of_open_sizes(causal: bool) -> None:
    nodes, weights = transformer_layer(causal)
    inputs = {"ids": np.arange(14).reshape(2, 7) % 11}
    shapes = {"ids": ["batch", "length"]}
    data = model_of(nodes, inputs, ["y"], weights, shapes=shapes)
    check(data, inputs, sizes={"batch": 2, "length": 7})
    with pytest.raises(LocatedError, match="expected sizes for 'batch', 'length'"):
        tensorplan.from_onnx(data)
    with pytest.raises(LocatedError, match="no dimension 'x', expected one of b"):
        tensorplan.from_onnx(data, sizes={"batch": 1, "length": 1, "x": 1})


RECURRENT: list[tuple[str, int, dict[str, Any]]] = [
    ("LSTM", 4, {}),
    ("LSTM", 4, {"direction": "reverse"}),
    ("LSTM", 4, {"direction": "bidirectional"}),
    ("GRU", 3, {}),
    ("GRU", 3, {"linear_before_reset": 1, "direction": "bidirectional"}),
    ("RNN", 1, {}),
]


@pytest.mark.thorough
@pytest.mark.parametrize("start", [False, True], ids=["zero", "given"])
@pytest.mark.parametrize(("name", "gates", "attributes"), RECURRENT)
def test_recurrent_layers(
    name: str, gates: int, attributes: dict[str, Any], start: bool
) -> None:
    steps, batch, width, hidden = 5, 2, 3, 4
    count = 2 if attributes.get("direction") == "bidirectional" else 1
    weights = {
        "w": normal(count, gates * hidden, width),
        "r": normal(count, gates * hidden, hidden),
    }
    inputs = {"x": normal(steps, batch, width)}
    operands = ["x", "w", "r"]
    if start:
        weights["b"] = normal(count, 2 * gates * hidden)
        operands += ["b", "", "h"]
        inputs["h"] = normal(count, batch, hidden)
    if start and name == "LSTM":
        operands.append("c")
        inputs["c"] = normal(count, batch, hidden) / 2
    outputs = ["y", "yh", "yc"][: 3 if name == "LSTM" else 2]
    layer = helper.make_node(name, operands, outputs, hidden_size=hidden, **attributes)
    check(model_of([layer], inputs, outputs, weights), inputs)


RECURRENT_OPTIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("LSTM", "lengths", {"direction": "bidirectional"}),
    ("LSTM", "peepholes", {"clip": 0.3}),
    ("LSTM", "peepholes", {"input_forget": 1, "direction": "reverse"}),
    ("LSTM", "", {"activations": ["Sigmoid", "Relu", "Softsign"]}),
    ("GRU", "lengths", {"direction": "reverse", "clip": 0.3}),
    (
        "GRU",
        "constant lengths",
        {
            "activations": ["HardSigmoid", "LeakyRelu"],
            "activation_alpha": [0.3, 0.1],
            "activation_beta": [0.4],
            "linear_before_reset": 1,
        },
    ),
    *(
        ("RNN", "lengths", {"activations": [name], **numbers})
        for name, numbers in {
            "Relu": {},
            "Softplus": {},
            "Elu": {"activation_alpha": [0.3]},
            "ThresholdedRelu": {"activation_alpha": [0.3]},
            "Affine": {"activation_alpha": [0.3], "activation_beta": [0.1]},
            "ScaledTanh": {"activation_alpha": [0.3], "activation_beta": [0.7]},
        }.items()
    ),
]


@pytest.mark.parametrize(("name", "given", "attributes"), RECURRENT_OPTIONS)
def test_options_of_recurrent_layers(
    name: str, given: str, attributes: dict[str, Any]
) -> None:
    steps, batch, width, hidden = 5, 3, 2, 4
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[name]
    count = 2 if attributes.get("direction") == "bidirectional" else 1
    weights = {
        "w": normal(count, gates * hidden, width),
        "r": normal(count, gates * hidden, hidden),
        "b": normal(count, 2 * gates * hidden),
    }
    inputs = {"x": normal(steps, batch, width), "h": normal(count, batch, hidden)}
    operands = ["x", "w", "r", "b", "n" if "lengths" in given else "", "h"]
    if "lengths" in given:
        lengths = np.array([5, 0, 3], np.int32)
        (weights if "constant" in given else inputs)["n"] = lengths
    if name == "LSTM":
        operands.append("c")
        inputs["c"] = normal(count, batch, hidden)
    if "peepholes" in given:
        operands.append("p")
        weights["p"] = normal(count, 3 * hidden)
    outputs = ["y", "yh", "yc"][: 3 if name == "LSTM" else 2]
    layer = helper.make_node(name, operands, outputs, hidden_size=hidden, **attributes)
    check(model_of([layer], inputs, outputs, weights), inputs)


@pytest.mark.parametrize(
    ("size", "scale", "attributes"),
    [
        (10, 0.7, {"mode": "linear"}),  # 7 elements, not 6
        (10, 0.7, {"mode": "nearest"}),  # 3.5 / 0.7 lies halfway between two
        (
            5,
            1.6,
            {
                "mode": "nearest",
                "nearest_mode": "floor",
                "coordinate_transformation_mode": "align_corners",
            },
        ),
        (
            9,
            1.5,
            {
                "mode": "nearest",
                "nearest_mode": "floor",
                "coordinate_transformation_mode": "half_pixel_symmetric",
            },
        ),
    ],
)
def test_resize_computes_in_single_precision(
    size: int, scale: float, attributes: dict[str, Any]
) -> None:
    resize = helper.make_node("Resize", ["x", "", "s"], ["y"], **attributes)
    inputs = {"x": normal(1, 1, size)}
    weights = {"s": np.array([1, 1, scale], np.float32)}
    check(model_of([resize], inputs, ["y"], weights), inputs)


def test_shapes_that_follow_from_shapes_are_constants() -> None:
    nodes = [
        node("Shape", "x", "s"),
        vector("axis", 0),
        node("Gather", "s axis", "first"),
        vector("rest", -1),
        node("Concat", "first rest", "t", axis=0),
        node("Reshape", "x t", "y"),
    ]
    inputs = {"x": X}
    imported = check(model_of(nodes, inputs, ["y"]), inputs)
    body = signature(imported.module).function.body.block
    names = [op.name for op in body.ops]
    assert names == ["tgraph.reshape", "func.return"]


def test_a_branch_on_a_known_condition() -> None:
    def branch(op: str) -> Any:
        result = helper.make_tensor_value_info(op, TensorProto.FLOAT, None)
        nodes = [node(op, "x", f"{op}0"), node("Mul", f"{op}0 {op}1", op)]
        factor = numpy_helper.from_array(np.array(len(op), np.float32), f"{op}1")
        return helper.make_graph(nodes, op, [], [result], [factor])

    nodes = [
        node("Size", "x", "n"),
        node("Constant", "", "limit", value_int=10),
        node("Less", "n limit", "few"),
        node("If", "few", "z", then_branch=branch("Exp"), else_branch=branch("Tanh")),
        node("Neg", "z", "y"),
    ]
    for shape in ((3, 3), (3, 4)):
        inputs = {"x": normal(*shape)}
        check(model_of(nodes, inputs, ["y"]), inputs)


def test_initializers_may_be_listed_as_inputs_and_be_unused() -> None:
    inputs = {"x": X, "w": normal(4)}
    data = model_of(
        [node("Mul", "x w", "y")], inputs, ["y"], {"w": inputs["w"], "v": normal(3)}
    )
    imported = tensorplan.from_onnx(data)
    assert list(imported.parameters) == ["w"]
    (y,) = run_reference(imported.module, [X, imported.parameters["w"]])
    np.testing.assert_allclose(y, X * inputs["w"], rtol=1e-6)


def test_functions_of_the_model_are_inlined() -> None:
    twice = helper.make_function(
        "mine",
        "Twice",
        ["a"],
        ["b"],
        [node("Add", "a a", "b")],
        [helper.make_opsetid("", OPSET)],
    )
    graph = helper.make_graph(
        [helper.make_node("Twice", ["x"], ["y"], domain="mine")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("mine", 1)]
    model = helper.make_model(
        graph, functions=[twice], opset_imports=imports, ir_version=9
    )
    x = normal(4)
    check(model.SerializeToString(), {"x": x})


def test_half_precision() -> None:
    inputs = {"x": X.astype(np.float16)}
    weights = {"w": np.ones(4, np.float16)}
    nodes = [node("LayerNormalization", "x w", "z"), node("Softmax", "z", "y")]
    imported = tensorplan.from_onnx(model_of(nodes, inputs, ["y"], weights))
    (y,) = tensorplan.compile(imported)(inputs["x"])
    assert y.dtype == np.float16
    np.testing.assert_allclose(y.sum(-1), 1, rtol=1e-2)


def test_one_error_lists_all_unsupported_operations() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["a"], name="first"),
        node("Neg", "a", "b"),
        helper.make_node("Reshape", ["x", "b"], ["c"], name="third"),
        helper.make_node("StringNormalizer", ["c"], ["y"]),
        helper.make_node("Softplus", ["x"], ["d"]),
        helper.make_node("Resize", ["x", "", "s"], ["e"], name="last", mode="sinc"),
    ]
    scales = {"s": np.array([1, 2, 2], "f4")}
    data = model_of(nodes, {"x": X}, ["y", "d", "e"], scales)
    with pytest.raises(LocatedError) as caught:
        tensorplan.from_onnx(data)
    assert str(caught.value).splitlines() == [
        "onnx#first:1:1: operation NonZero is not supported with input 'x' "
        "computed at run time, expected a constant",
        "onnx#y:4:1: note: operation StringNormalizer is not supported",
        "onnx#last:6:1: note: operation Resize is not supported with mode = 'sinc', "
        "expected 'nearest' or 'linear' or 'cubic'",
    ]


def test_unsupported_outputs_and_invalid_constants() -> None:
    inputs = dict(zip("xsbmv", [X, *normal(4, 3)], strict=True))
    norm = node("BatchNormalization", "x s b m v", "y mean var")
    data = model_of([norm, node("Neg", "y", "z")], inputs, ["z", "mean"])
    with pytest.raises(
        LocatedError, match=("Normalization is not supported with the output 'mean'")
    ):
        tensorplan.from_onnx(data)
    nodes = [vector("a", 1, 2), vector("b", 1, 2, 3), node("Add", "a b", "c")]
    data = model_of([*nodes, node("Expand", "x c", "y")], {"x": X}, ["y"])
    with pytest.raises(LocatedError, match="onnx#c:3:1: operation Add: shapes"):
        tensorplan.from_onnx(data)


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (
            node("ScatterND", "x i u", "y"),
            "ScatterND is not supported with 1099511627776 indices after",
        ),
        (
            node("GatherND", "x i", "y"),
            "GatherND is not supported with 1099511627776 indices after 0 d",
        ),
        (
            node("GatherND", "x none", "y", batch_dims=2**40),
            r"GatherND is not supported with 0 indices after \d+ dimensions, "
            r"expected at most 3 toget",
        ),
        (
            node("Split", "x", "y", axis=0, num_outputs=2**20),
            "Split is not supported with num_outputs = 1048576, expected 1",
        ),
    ],
    ids=["scatter", "gather", "batch", "split"],
)
def test_huge_counts_are_rejected(layer: Any, reason: str) -> None:
    inputs = {"x": X, "i": np.zeros(1, "i8"), "u": X, "none": np.zeros(0, "i8")}
    used = {name: inputs[name] for name in layer.input}
    shapes = {"i": [2**40]} if "i" in used else {}
    with pytest.raises(LocatedError, match=reason):
        tensorplan.from_onnx(model_of([layer], used, ["y"], shapes=shapes))


@pytest.mark.parametrize(
    ("layer", "given", "reason"),
    [
        (node("Unsqueeze", "x i", "y"), [0, 0], r"with axes = \[0, 0\], expected diff"),
        (node("Tile", "x i", "y"), [1, -1, 1], "expected sizes of 0 to"),
        (node("Tile", "x i", "y"), [2**62, 1, 1], "expected sizes of 0 to 92233720368"),
        (node("Reshape", "x i", "y"), [-1, -1], "expected sizes of 0 to"),
        (
            node("Range", "zero i one", "y"),
            2**40,
            "Range is not supported with a table of 109951162777",
        ),
    ],
    ids=["axes", "negative", "huge", "two unknown", "range"],
)
def test_impossible_sizes_are_rejected(layer: Any, given: Any, reason: str) -> None:
    numbers = {"i": np.array(given), "zero": np.array(0), "one": np.array(1)}
    used = {name: numbers[name] for name in layer.input if name in numbers}
    with pytest.raises(LocatedError, match=reason):
        tensorplan.from_onnx(model_of([layer], {"x": X}, ["y"], used))


def test_fractional_factors_of_integers_are_rejected() -> None:
    matrices = {"a": np.ones((2, 3), "i4"), "b": np.ones((3, 4), "i4")}
    data = model_of([node("Gemm", "a b", "y", alpha=0.5)], matrices, ["y"])
    reason = "Gemm is not supported with 0.5 among elements of type i32"
    with pytest.raises(LocatedError, match=reason):
        tensorplan.from_onnx(data)


@pytest.mark.parametrize("size", [-3, "n"])
def test_impossible_input_sizes_are_rejected(size: int | str) -> None:
    data = model_of([node("Neg", "x", "y")], {"x": X}, ["y"], shapes={"x": [2, size]})
    with pytest.raises(LocatedError, match=r"dimension of size .*, expected 0 to 9223"):
        tensorplan.from_onnx(data, sizes={"n": 2**63} if size == "n" else {})


def test_large_constants_are_splats() -> None:
    ones = node("ConstantOfShape", "n", "y", value=numpy_helper.from_array(np.ones(1)))
    data = model_of([ones], {"x": X}, ["y"], {"n": np.array([2**20, 2**20])})
    text = str(tensorplan.from_onnx(data).module)
    assert "tgraph.constant<1.000000e+00 : f64> : tensor<1048576x1048576xf64>" in text


def test_invalid_models_are_rejected() -> None:
    x = {"x": X}
    good = model_of([node("Neg", "x", "y")], x, ["y"])
    with pytest.raises(LocatedError, match="is not a valid ONNX model"):
        tensorplan.from_onnx(good[:-5])
    with pytest.raises(
        LocatedError, match=r"is not a valid ONNX model.*Nodes in a graph"
    ):
        tensorplan.from_onnx(model_of([node("Neg", "z", "y")], x, ["y"]))
    with pytest.raises(LocatedError, match="opset 5, expected 6 to 28"):
        tensorplan.from_onnx(model_of([node("Neg", "x", "y")], x, ["y"], opset=5))
    wrong = [node("Shape", "x", "s"), node("Expand", "w s", "y")]
    with pytest.raises(
        LocatedError, match=r"onnx#y:2:1: operation Expand: .*broadcast"
    ):
        tensorplan.from_onnx(model_of(wrong, x, ["y"], {"w": normal(5)}))
    text = {"x": np.array(["a"], object)}
    with pytest.raises(
        LocatedError, match=("input 'x' is not supported with elements of type object")
    ):
        tensorplan.from_onnx(model_of([node("Identity", "x", "y")], text, ["y"]))


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    data = model_of([node("Neg", "x", "y")], {"x": X}, ["y"])
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(LocatedError, match=r"pip install '\.\[onnx\]'"):
        tensorplan.from_onnx(data)


@pytest.mark.parametrize("tool", [plan_opt, plan_run, plan_view])
def test_the_tools_plan_models(
    tool: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """If the package onnx is missing, the tools say what to install."""
    file = tmp_path / "model.onnx"
    nodes = [node("MatMul", a, b) for a, b in (("x w", "h"), ("h w", "y"))]
    x = {"x": normal(3, 4)}
    file.write_bytes(model_of(nodes, x, ["y"], {"w": normal(4, 4)}))
    pipeline = ["-p", "plan-pipeline"] if tool is plan_opt else []
    assert tool.main([str(file), *pipeline]) == 0
    assert capfd.readouterr().out
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert tool.main([str(file), *pipeline]) == 1
    assert "pip install '.[onnx]'" in capfd.readouterr().err


def test_the_tools_read_models(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    weights = {"w": normal(4, 6), "var": np.abs(normal(6))}
    inputs = {"x": normal(3, 4)}
    nodes = [
        node("MatMul", "x w", "a"),
        node("Sqrt", "var", "b"),
        node("Div", "a b", "y"),
    ]
    data = model_of(nodes, inputs, ["y"], weights, shapes={"x": ["n", 4]})
    file = tmp_path / "model"  # recognized by its content, not by its name
    file.write_bytes(data)

    assert plan_opt.main([str(file), "--sizes", "n=3"]) == 0
    printed = capfd.readouterr().out
    assert '%x: tensor<3x4xf32> {tgraph.name = "x"}' in printed.replace(" : ", ": ")

    np.savez(tmp_path / "in.npz", arg0=inputs["x"])
    want = inputs["x"] @ weights["w"] / np.sqrt(weights["var"])
    np.savez(tmp_path / "want.npz", out0=want)
    given = [
        "--inputs",
        str(tmp_path / "in.npz"),
        "--expect",
        str(tmp_path / "want.npz"),
    ]
    for level in ("planned", "reference"):
        arguments = [str(file), "--sizes", "n=3", "--level", level]
        assert plan_run.main([*arguments, *given]) == 0
        assert "all outputs are as expected" in capfd.readouterr().out
        assert plan_run.main(arguments) == 0  # random inputs, the file's parameters

    assert plan_run.main([str(file)]) == 1
    assert "expected sizes for 'n'" in capfd.readouterr().err
    assert plan_run.main([str(file), "--sizes", "3"]) == 2
    assert "argument --sizes: '3', expected NAME=N" in capfd.readouterr().err


def test_plan_run_simplifies_like_from_onnx(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    weights = {"w": normal(4, 6), "v": normal(6, 5)}
    nodes = [
        node("Exp", "w", "e"),
        node("MatMul", "x e", "a"),
        node("MatMul", "a v", "y"),
    ]
    data = model_of(nodes, {"x": normal(3, 4)}, ["y"], weights)
    file = tmp_path / "model"
    file.write_bytes(data)
    bytes = [
        tensorplan.report(tensorplan.plan(model))["pools"][0]["bytes"]
        for model in (
            tensorplan.from_onnx(data, simplify=simplify) for simplify in (True, False)
        )
    ]
    assert bytes[0] < bytes[1]  # the latter stores the exponentials
    assert plan_run.main([str(file)]) == 0
    assert f"cpu:0: {bytes[0]} bytes" in capfd.readouterr().out


def test_group_normalization() -> None:
    inputs, weights = {"x": IMAGE}, {"scale": normal(4), "bias": normal(4)}
    layer = node("GroupNormalization", "x scale bias", "y", num_groups=2)
    check(model_of([layer], inputs, ["y"], weights, opset=21), inputs)


def test_weights_in_external_files(tmp_path: Path) -> None:
    weights = {"w": normal(40, 30)}
    data = model_of([node("MatMul", "x w", "y")], {"x": normal(2, 40)}, ["y"], weights)
    file = tmp_path / "model.onnx"
    onnx.save_model(
        onnx.load_model_from_string(data),
        file,
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    assert file.stat().st_size < 1000
    imported = tensorplan.from_onnx(file)
    np.testing.assert_array_equal(imported.parameters["w"], weights["w"])


def test_batch_normalization_is_folded_into_weights() -> None:
    """A run needs only the scaled weight and a shift."""
    nodes: list[Any] = []
    weights: dict[str, np.ndarray] = {}
    conv_bn(nodes, weights, "x", "y", (8, 4, 3, 3), pads=[1] * 4)
    inputs = {"x": normal(1, 4, 8, 8)}
    data = model_of(nodes, inputs, ["y"], weights)
    assert list(check(data, inputs).parameters) == list(weights)
    simple = tensorplan.from_onnx(data)
    assert list(simple.parameters) == ["precomputed.0", "precomputed.1"]
    names = [op.name for op in signature(simple.module).function.body.block.ops]
    assert names.count("tgraph.add") == 1
    assert "tgraph.multiply" not in names
    assert "tgraph.subtract" not in names


def test_values_keep_their_names() -> None:
    nodes = [
        node("Exp", "x", "/layer/exp_1"),
        node("Identity", "/layer/exp_1", "same"),
        node("Add", "same w.0", "y_7"),
    ]
    data = model_of(nodes, {"x": normal(4)}, ["y_7"], {"w.0": normal(4)})
    model = tensorplan.from_onnx(data)
    assert "%layer_exp.1 = tgraph.exponential %x" in str(model)
    assert "%y.7 = tgraph.add %layer_exp.1, %w.0" in str(model)
    for program in (model, tensorplan.plan(model)):
        io = signature(program.module)
        assert (io.input_names, io.result_names) == (["x", "w.0"], ["y_7"])
    with pytest.raises(ValueError, match=r"argument 0 \(x\) has shape \(5,\)"):
        tensorplan.compile(model)(normal(5))


def test_names_of_parameters_stay_unique() -> None:
    weights = {"precomputed.0": normal(4), "w": normal(4)}
    nodes = [
        node("Mul", "w precomputed.0", "v"),
        node("Add", "x v", "y"),
        node("Mul", "y precomputed.0", "z"),
    ]
    inputs = {"x": normal(4)}
    data = model_of(nodes, inputs, ["z"], weights)
    check(data, inputs)
    assert len(tensorplan.from_onnx(data).parameters) == 2


EXPORTS = Path(__file__).parent / "models" / "onnx"


@pytest.mark.parametrize("path", sorted(EXPORTS.glob("*.onnx")), ids=lambda p: p.stem)
def test_models_exported_by_pytorch(path: Path) -> None:
    """Models from tests/support/generate_onnx_exports.py give PyTorch's outputs."""
    imported = tensorplan.from_onnx(path)
    with np.load(path.with_suffix(".npz")) as arrays:
        *inputs, want = arrays.values()
    (got,) = tensorplan.compile(imported)(*inputs)
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("attributes", [{}, {"axis": 1, "largest": 0}], ids=str)
def test_top_k(attributes: dict[str, int]) -> None:
    nodes = [vector("k", 2), node("TopK", "x k", "values places", **attributes)]
    check(model_of(nodes, {"x": X}, ["values", "places"]), {"x": X})


Q = normal(1, 2, 4, 8)
ANGLES = normal(1, 4, 4)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes"),
    [
        ("Attention", [Q, Q * 0.5, Q + 1], {"is_causal": 1}),
        ("Attention", [Q, Q, Q, Q[0, :, :, :4]], {"scale": 0.2}),
        ("RMSNormalization", [X, normal(4)], {}),
        ("RotaryEmbedding", [Q, np.cos(ANGLES), np.sin(ANGLES)], {}),
    ],
    ids=["Attention-causal", "Attention-mask", "RMSNormalization", "RotaryEmbedding"],
)
def test_operations_that_onnx_defines_as_functions(
    op_type: str, inputs: list[np.ndarray], attributes: dict[str, Any]
) -> None:
    names = dict(zip("abcd", inputs, strict=False))
    nodes = [helper.make_node(op_type, list(names), ["y"], **attributes)]
    check(model_of(nodes, names, ["y"], opset=23), names)
