"""Tests quantized ONNX models: onnxruntime's values, equal where it is exact."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.runtime.backends.jit import llvm
from tensorplan.runtime.executor import Executable

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx_models import IMAGE, Arrays, X, model_of  # noqa: E402
from quantized_models import NETWORKS, WAYS, images, quantized  # noqa: E402

RNG = np.random.default_rng(5)
EXACT = ("operators", "operators-channels")


def bytes_of(shape: tuple[int, ...], dtype: str = "uint8") -> np.ndarray:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def weights_of(shape: tuple[int, ...], dtype: str = "int8") -> np.ndarray:
    """Random weights of 7 bits: processors without VNNI add two products in 16 bits,
    and onnxruntime lets these sums saturate."""
    found = bytes_of(shape, dtype)
    return found // 2 if dtype == "int8" else found


def peer(data: bytes, inputs: Arrays, *, optimized: bool = True) -> Any:
    """Returns onnxruntime's values. On x86, onnxruntime computes signed activations
    with several readers in integers only if an option says so."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1  # threads would quantize parts of a state
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    if not optimized:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(inputs))


def both(data: bytes, inputs: Arrays) -> Any:
    """Returns the values of the compiled program, and asserts that they equal the
    reference's."""
    model = tensorplan.from_onnx(data)
    (got,) = tensorplan.compile(model)(*inputs.values())
    arrays = [*inputs.values(), *model.parameters.values()]
    np.testing.assert_array_equal(got, run_reference(model.module, arrays)[0])
    return got


def scale(number: float) -> np.ndarray:
    return np.array(number, "f4")


def single(
    name: str,
    inputs: Arrays,
    constants: Arrays,
    order: str,
    result: Any = None,
    **attributes: Any,
) -> bytes:
    """Returns a model of one operation. `order` lists the names of its inputs, with `_`
    for an omitted one. The result's element type is `result`, or that of the first
    input."""
    domain, _, kind = name.rpartition(".")
    names = ["" if name == "_" else name for name in order.split()]
    node = helper.make_node(kind, names, ["y"], domain=domain, **attributes)
    of = helper.np_dtype_to_tensor_dtype
    values = [
        helper.make_tensor_value_info(name, of(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    element = result or values[0].type.tensor_type.elem_type
    y = helper.make_tensor_value_info("y", element, None)
    given = [
        numpy_helper.from_array(array, name)
        for name, array in constants.items()
        if name in names
    ]
    graph = helper.make_graph([node], "g", values, [y], given)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    return model.SerializeToString()


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("LeakyRelu", {"alpha": 0.3}),
        ("Sigmoid", {}),
        ("AveragePool", {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]}),
        ("AveragePool", {"kernel_shape": [9, 8], "count_include_pad": 1}),
        ("GlobalAveragePool", {}),
        ("Softmax", {"axis": 3, "opset": 13}),
    ],
    ids=str,
)
def test_operations_of_one_tensor(
    kind: str, attributes: dict[str, Any], dtype: str
) -> None:
    inputs = {"x": bytes_of(IMAGE.shape, dtype)}
    zeros = np.array([3, 7], dtype)
    result = 1 / 256 if kind == "Softmax" else 0.02
    constants = {"s": scale(0.03), "z": zeros[0], "t": scale(result), "u": zeros[1]}
    name = f"com.microsoft.QLinear{kind}"
    data = single(name, inputs, constants, "x s z t u", **attributes)
    (want,) = peer(data, inputs)
    # onnxruntime rounds numbers before it averages them or computes a softmax
    most = int(kind in ("Softmax", "AveragePool"))
    assert np.abs(both(data, inputs).astype(int) - want).max() <= most


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(
    ("coordinates", "size", "most"),
    [("half_pixel", (12, 10), 0), ("asymmetric", (3, 20), 0), ("align_corners", 0, 1)],
)
def test_resized_images(coordinates: str, size: Any, most: int, dtype: str) -> None:
    """If weights are powers of two, values are exact. Results are truncated."""
    inputs = {"x": bytes_of((1, 2, 6, 5), dtype)}
    sizes = {"s": np.zeros(0, "f4"), "z": np.array([1, 2, *(size or (7, 9))])}
    how = {"coordinate_transformation_mode": coordinates, "mode": "linear"}
    data = single("Resize", inputs, sizes, "x s s z", **how)
    (want,) = peer(data, inputs)
    difference = np.abs(both(data, inputs).astype(int) - want)
    assert difference.max() <= most
    assert (difference > 0).mean() < 0.05


@pytest.mark.parametrize("dtype", ["uint8", "int32"])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("size", [(17, 22), (41, 33), (60, 11)])
def test_antialiased_images_are_rounded_after_each_axis(
    size: tuple[int, int], mode: str, dtype: str
) -> None:
    inputs = {"x": bytes_of((1, 2, 30, 25)).astype(dtype)}
    sizes = {"z": np.array([1, 2, *size])}
    how = {"mode": mode, "antialias": 1}
    node = helper.make_node("Resize", ["x", "", "", "z"], ["y"], **how)
    data = model_of([node], inputs, ["y"], sizes, opset=18)
    (got,) = tensorplan.compile(tensorplan.from_onnx(data))(inputs["x"])
    difference = np.abs(got.astype(int) - peer(data, inputs)[0])
    assert difference.max() <= 1  # f32 rounds a tie the other way
    assert (difference > 0).mean() < 0.02


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_cubic_interpolation_saturates(dtype: str) -> None:
    """onnxruntime does not support cubic weights for 8 bits. ONNX's reference computes
    the expected values."""
    info = np.iinfo(dtype)
    x = np.array([info.min, info.min, info.max, info.max, info.min], dtype)
    inputs = {"x": x.reshape(1, 1, 1, 5)}
    reals = {"x": inputs["x"].astype("f4")}
    scales = {"s": np.array([1, 1, 1, 2], "f4")}
    data, of_reals = (
        single("Resize", given, scales, "x _ s", mode="cubic")
        for given in (inputs, reals)
    )
    evaluator = ReferenceEvaluator(onnx.load_from_string(of_reals))
    (real,) = map(np.asarray, evaluator.run(None, reals))
    want = np.clip(np.rint(real), info.min, info.max)
    assert real.min() < info.min
    assert real.max() > info.max
    np.testing.assert_array_equal(both(data, inputs), want)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name", ["QLinearAdd", "QLinearMul", "QLinearConcat"])
def test_operations_of_two_tensors(name: str, dtype: str) -> None:
    """The operands are all pairs of numbers. If scales are powers of two, many sums are
    ties."""
    info = np.iinfo(dtype)
    numbers = np.arange(info.min, info.max + 1).astype(dtype)
    a, b = (np.ascontiguousarray(x) for x in np.meshgrid(numbers, numbers))
    for first, second in ((0.5, 0.25), (0.013, 0.047)):
        constants = {
            "p": scale(first),
            "q": scale(second),
            "r": scale(0.5),
            **dict(zip("zuv", np.array([3, 100, 7], dtype), strict=True)),
        }
        order = "r v a p z b q u" if "Concat" in name else "a p z b q u r v"
        attributes = {"axis": 1} if "Concat" in name else {}
        data = single(
            f"com.microsoft.{name}", {"a": a, "b": b}, constants, order, **attributes
        )
        (want,) = peer(data, {"a": a, "b": b})
        np.testing.assert_array_equal(both(data, {"a": a, "b": b}), want)


@pytest.mark.parametrize(
    ("groups", "weights"), [(1, "uint8"), (2, "int8"), (4, "uint8")]
)
def test_convolutions_with_zero_points(groups: int, weights: str) -> None:
    """Images are padded and have a zero point. A kernel of int8 has one for each
    channel."""
    x = bytes_of(IMAGE.shape)
    kernel = weights_of((4, 4 // groups, 3, 2), weights)
    zeros = np.array([3, 120, 0, 77], weights)
    zeros = zeros if weights == "int8" else zeros[:1].repeat(4)
    constants = {
        **{"w": kernel, "s": scale(0.02), "z": np.array(9, "u1"), "u": zeros},
        **{"t": np.array([0.01, 0.02, 0.3, 0.04], "f4"), "r": scale(0.9)},
        **{"v": np.array(100, "u1"), "b": RNG.integers(-500, 500, 4).astype("i4")},
    }
    data = single(
        "QLinearConv",
        {"x": x},
        constants,
        "x s z w t u r v b",
        pads=[1, 0, 1, 1],
        strides=[2, 1],
        group=groups,
    )
    (want,) = peer(data, {"x": x}, optimized=False)
    np.testing.assert_array_equal(both(data, {"x": x}), want)


@pytest.mark.parametrize("transposed", [0, 1])
def test_products_of_matrices_with_a_bias(transposed: int) -> None:
    a, b = bytes_of((5, 6)), weights_of((6, 7))
    constants = {
        **{"b": b.T.copy() if transposed else b, "s": scale(0.02), "t": scale(0.03)},
        **{"z": np.array(9, "u1"), "u": np.array(-3, "i1"), "r": scale(0.1)},
        **{"c": RNG.integers(-500, 500, 7).astype("i4"), "v": np.array(99, "u1")},
    }
    data = single(
        "com.microsoft.QGemm",
        {"a": a},
        constants,
        "a s z b t u c r v",
        transB=transposed,
    )
    (want,) = peer(data, {"a": a})
    np.testing.assert_array_equal(both(data, {"a": a}), want)


# Between DequantizeLinear and QuantizeLinear


@pytest.mark.parametrize("weights", ["uint8", "int8"])
@pytest.mark.parametrize("columns", [False, True])
def test_products_of_floats_with_8_bits(weights: str, columns: bool) -> None:
    """The range of the floats is computed at run time, or given."""
    spread = RNG.uniform(0.01, 0.05, 5 if columns else 1).astype("f4")
    b = weights_of((7, 5), weights)
    zero = np.zeros(5 if columns else 1, weights) if columns else b[0, :1]
    given = {"b": b, "s": spread, "z": zero, "c": RNG.standard_normal(5).astype("f4")}
    inputs: Arrays = {"x": X[..., :1].repeat(7, -1) * RNG.standard_normal(7, "f4")}
    data = single("com.microsoft.DynamicQuantizeMatMul", inputs, given, "x b s z c")
    np.testing.assert_allclose(both(data, inputs), peer(data, inputs)[0], rtol=1e-6)
    x = bytes_of((4, 7))
    given |= {"t": scale(0.25), "u": np.array(9, "uint8")}
    data = single(
        *("com.microsoft.MatMulIntegerToFloat", {"x": x}, given, "x b t s u z c"),
        result=TensorProto.FLOAT,
    )
    np.testing.assert_allclose(both(data, {"x": x}), peer(data, {"x": x})[0], rtol=1e-6)


def test_ranges_computed_at_run_time() -> None:
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])
    for numbers in ([0, 0, 0], [1, 2, 3], [-3, -1, -2], [-0.5, 0.5, 1]):
        x = {"x": np.array(numbers, "f4")}
        data = model_of([node], x, ["q", "s", "z"])
        got = tensorplan.compile(tensorplan.from_onnx(data))(x["x"])
        for own, other in zip(got, peer(data, x), strict=True):
            np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("weights", ["uint8", "int8", "int8 columns", "lengths"])
def test_lstm(direction: str, weights: str) -> None:
    """Each step quantizes the state by its current range."""
    count, inputs, size = 1 + (direction == "bidirectional"), 6, 5
    dtype = "uint8" if weights == "uint8" else "int8"
    shape = [count, 4 * size] if "columns" in weights else [count]
    numbers = np.full(shape, 0 if "columns" in weights else 5, dtype)
    constants = {
        "w": weights_of((count, inputs, 4 * size), dtype),
        "r": weights_of((count, size, 4 * size), dtype),
        "b": RNG.standard_normal((count, 8 * size)).astype("f4"),
        "l": np.array([3, 7, 1], "i4"),
        "h": RNG.standard_normal((count, 3, size)).astype("f4"),
        "p": RNG.uniform(0.01, 0.02, shape).astype("f4"),
        "q": RNG.uniform(0.01, 0.02, shape).astype("f4"),
        "z": numbers,
        "u": numbers,
    }
    lengths = "l" if weights == "lengths" else ""
    order = f"x w r b {lengths or '_'} h h _ p z q u"
    x = {"x": RNG.standard_normal((7, 3, inputs)).astype("f4")}
    name = "com.microsoft.DynamicQuantizeLSTM"
    data = single(name, x, constants, order, direction=direction, hidden_size=size)
    model = tensorplan.from_onnx(data)
    (got,) = run_reference(model.module, [x["x"], *model.parameters.values()])
    for want in (peer(data, x)[0], tensorplan.compile(model)(x["x"])[0]):
        difference = np.abs(got - want)
        assert difference.max() < 0.02  # a number may be rounded the other way
        assert np.median(difference) < 1e-6


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("lengths", [[4, 2, 3], [5, 1, 1], [0, 2, 0]])
def test_lstm_ranges_exclude_padding_of_sequences(
    direction: str, lengths: list[int]
) -> None:
    constants = {
        "w": weights_of((1, 6, 20), "int8"),
        "r": weights_of((1, 5, 20), "int8"),
        "h": RNG.standard_normal((1, 3, 5)).astype("f4"),
        "s": np.full(1, 0.005, "f4"),
        "z": np.zeros(1, "i1"),
    }
    x = RNG.standard_normal((5, 3, 6)).astype("f4")
    for sequence, length in enumerate(lengths):
        x[length:, sequence] *= 10
    inputs = {"x": x, "l": np.array(lengths, "i4")}
    name = "com.microsoft.DynamicQuantizeLSTM"
    order = "x w r _ l h h _ s z s z"
    data = single(name, inputs, constants, order, direction=direction, hidden_size=5)
    (got,) = tensorplan.compile(tensorplan.from_onnx(data))(*inputs.values())
    np.testing.assert_allclose(got, peer(data, inputs)[0], atol=1e-5)


def between(
    nodes: list[Any], constants: Arrays, *, extra: str = "", scales: float = 0.05
) -> bytes:
    """Returns a model that quantizes its input to 8 bits, applies `nodes` to the
    dequantized `x`, and quantizes their result `y`."""
    own = {
        **{"s": scale(0.05), "z": np.array(120, "u1")},
        **{"t": scale(scales), "u": np.array(120, "u1")},
    }
    ends = [
        helper.make_node("QuantizeLinear", ["input", "s", "z"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "s", "z"], ["x"]),
        *nodes,
        helper.make_node("QuantizeLinear", ["y", "t", "u"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "t", "u"], ["output"]),
    ]
    outputs = ["output", *([extra] if extra else [])]
    return model_of(ends, {"input": X}, outputs, {**own, **constants})


def stores_floats(data: bytes) -> bool:
    planned = tensorplan.plan(tensorplan.from_onnx(data))
    lines = str(planned.module).splitlines()
    return any("memref.view" in line and "f32" in line for line in lines)


@pytest.mark.parametrize(
    ("kind", "constants", "attributes"),
    [
        ("Transpose", {}, {"perm": [2, 0, 1]}),
        ("Reshape", {"k": np.array([4, 6])}, {}),
        ("Gather", {"k": np.array([1, 0])}, {"axis": 1}),
        ("MaxPool", {}, {"kernel_shape": [2], "strides": [2]}),
    ],
)
def test_moving_and_comparing_is_done_in_8_bits(
    kind: str, constants: Arrays, attributes: dict[str, Any]
) -> None:
    node = helper.make_node(kind, ["x", *constants], ["y"], **attributes)
    data = between([node], constants)
    (want,) = peer(data, {"input": X}, optimized=False)
    np.testing.assert_array_equal(both(data, {"input": X}), want)
    assert not stores_floats(data)


def test_conversions_of_older_opsets() -> None:
    """For models with 4 or 16 bits, the quantizer uses conversions in Microsoft's
    domain."""
    node = helper.make_node("Transpose", ["x"], ["y"], perm=[2, 0, 1])
    model = onnx.load_model_from_string(between([node], {}))
    for own in model.graph.node:
        own.domain = "com.microsoft" if own.op_type.endswith("Linear") else ""
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    data = model.SerializeToString()
    (want,) = peer(data, {"input": X}, optimized=False)
    np.testing.assert_array_equal(both(data, {"input": X}), want)
    assert not stores_floats(data)


WEIGHT = {"w": weights_of((4, 6)), "f": scale(0.02), "g": np.array(0, "i1")}
PRODUCT = [
    helper.make_node("DequantizeLinear", ["w", "f", "g"], ["v"]),
    helper.make_node("MatMul", ["x", "v"], ["y"]),
]


def test_a_product_is_done_in_8_bits() -> None:
    data = between(PRODUCT, WEIGHT)
    (want,) = peer(data, {"input": X})
    np.testing.assert_array_equal(both(data, {"input": X}), want)
    assert not stores_floats(data)


@pytest.mark.parametrize(
    "reason", ["another reader", "another scale", "another type", "16 bits"]
)
def test_operations_that_stay_in_floats(reason: str) -> None:
    """The values are those of the model as written, without fusion to 8 bits."""
    extra, scales, nodes, constants = "", 0.05, PRODUCT, dict(WEIGHT)
    if reason == "another reader":
        extra = "y"
    elif reason == "another scale":
        scales = 0.04
        nodes, constants = [helper.make_node("Transpose", ["x"], ["y"])], {}
    elif reason == "another type":
        nodes = [helper.make_node("Transpose", ["x"], ["y"])]
        constants = {"u": np.array(120, "i1")}
    else:
        constants = {**WEIGHT, "w": WEIGHT["w"].astype("i2"), "g": np.array(0, "i2")}
    data = between(nodes, constants, extra=extra, scales=scales)
    got = tensorplan.compile(tensorplan.from_onnx(data))(X)[0]
    evaluator = onnx.reference.ReferenceEvaluator(onnx.load_model_from_string(data))
    want = evaluator.run(None, {"input": X})[0]
    assert np.abs(got - want).max() <= scales * 1.01


# Whole networks


def compared(name: str, way: str, opset: int, folder: Path) -> None:
    model = NETWORKS[name](opset, large=False)
    data = quantized(model, way, folder)
    x = images(model, 9)
    (want,) = peer(data, {"x": x})
    (got,) = tensorplan.compile(tensorplan.from_onnx(data))(x)
    # BERT's norms, and a softmax between conversions, compute floats
    is_exact = {"bert": False, "keywords": way in EXACT, "mobilenet": True}[name]
    if is_exact and not way.startswith("dynamic"):
        np.testing.assert_array_equal(got, want)
    steps = 2e-6 if way in EXACT else 0.05
    assert np.abs(got - want).max() <= steps * np.abs(want).max()


@pytest.mark.skipif(not llvm.is_available(), reason="needs llvmlite")
@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("keywords", "operators"),
        ("mobilenet", "unsigned"),
        ("bert", "dynamic-unsigned"),
    ],
)
def test_no_operation_falls_back_to_numpy(name: str, way: str, tmp_path: Path) -> None:
    """NumPy computes neither means nor the sums of windows that zero points require."""
    data = quantized(NETWORKS[name](17, large=False), way, tmp_path)
    run = tensorplan.compile(tensorplan.from_onnx(data))
    assert isinstance(run, Executable)
    assert not run.fallbacks


@pytest.mark.parametrize("way", ["qdq-channels", "operators"])
def test_a_keyword_spotting_network(way: str, tmp_path: Path) -> None:
    compared("keywords", way, 17, tmp_path)


def arena(data: bytes) -> int:
    planned = tensorplan.plan(tensorplan.from_onnx(data))
    return tensorplan.report(planned)["pools"][0]["bytes"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "way"),
    [
        *(("bert", way) for way in ("unsigned", "operators-channels")),
        *(
            pytest.param("bert", way, marks=pytest.mark.slow)
            for way in ("qdq", "qdq-channels", "operators")
        ),
        *(
            ("keywords", way)
            for way in ("qdq", "qdq-channels", "operators", "unsigned")
        ),
    ],
)
def test_the_arena_holds_8_bit_numbers(name: str, way: str, tmp_path: Path) -> None:
    """The arena has no padded images, 32-bit sums of windows, floats of a layer norm,
    or signed copies of keys and values."""
    model = NETWORKS[name](17, large=True)
    whole = arena(model.SerializeToString())
    assert arena(quantized(model, way, tmp_path)) <= 0.3 * whole


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "way", "opset"),
    [
        ("bert", "dynamic-channels", 21),
        ("bert", "qdq", 13),
        ("keywords", "unsigned", 23),
        ("mobilenet", "operators-channels", 17),
    ],
)
def test_networks(name: str, way: str, opset: int, tmp_path: Path) -> None:
    compared(name, way, opset, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("opset", [13, 17, 21, 23])
def test_all_ways_and_opsets(name: str, way: str, opset: int, tmp_path: Path) -> None:
    compared(name, way, opset, tmp_path)
