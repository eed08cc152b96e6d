"""Compares ONNX models with ONNX's own reference evaluator.

The models have operations that ONNX defines by other operations, and operations for
which onnxruntime has no kernel or violates the specification.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.reference.interpreter import run_reference

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx_models import (  # noqa: E402
    IMAGE,
    OPSET,
    Arrays,
    X,
    case_model,
    ints,
    model_of,
    normal,
)


def check(data: bytes, inputs: Arrays) -> None:
    """Compares planned and reference values with ONNX's evaluator."""
    evaluator: Any = ReferenceEvaluator(onnx.load_model_from_string(data))
    want = evaluator.run(None, dict(inputs))
    model = tensorplan.from_onnx(data)
    for got in (
        run_reference(model.module, [*inputs.values(), *model.parameters.values()]),
        tensorplan.compile(model)(*inputs.values()),
    ):
        assert len(got) == len(want)
        for have, expected in zip(got, want, strict=True):
            assert have.dtype == expected.dtype
            np.testing.assert_allclose(have, expected, rtol=1e-4, atol=1e-5)


# The scales are exact in f32. ONNX's evaluator computes places in f64, and tensorplan
# and onnxruntime in f32. They round differently if a place is at an element or halfway
# between two.

COORDINATES = [
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "asymmetric",
    "align_corners",
]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(
    "scales", [[1.625, 0.625], [0.375, 2.25], [1.0625, 0.3125]], ids=str
)
def test_resize_by_fractions(
    mode: str, coordinates: str, scales: Sequence[float]
) -> None:
    operands = [IMAGE, None, (np.array([1, 1, *scales], "f4"),)]
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    check(*case_model(("Resize", operands, attributes)))


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("rounding", ["round_prefer_ceil", "floor", "ceil"])
def test_resize_to_the_nearest_element(coordinates: str, rounding: str) -> None:
    operands = [IMAGE, None, (np.array([1, 1, 1.1875, 0.625], "f4"),)]
    attributes = {
        "nearest_mode": rounding,
        "coordinate_transformation_mode": coordinates,
    }
    check(*case_model(("Resize", operands, attributes)))


@pytest.mark.parametrize("opset", [13, 18, 23])
@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("MeanVarianceNormalization", [IMAGE]),
        ("Shrink", [X]),
        ("ThresholdedRelu", [X]),
        ("Celu", [X]),
    ],
)
def test_attributes_left_at_their_defaults(
    name: str, operands: list[Any], opset: int
) -> None:
    inputs = {"x": operands[0]}
    node = helper.make_node(name, ["x"], ["y"])
    check(model_of([node], inputs, ["y"], opset=opset), inputs)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("axis", [0, -1])
def test_cumulative_products(axis: int, reverse: int, exclusive: int) -> None:
    attributes: dict[str, Any] = {"reverse": reverse, "exclusive": exclusive}
    node = helper.make_node("CumProd", ["x", "k"], ["y"], **attributes)
    for x in (X, X[:, :0, :0]):
        data = model_of([node], {"x": x}, ["y"], {"k": np.array(axis)}, opset=26)
        check(data, {"x": x})


_WITH_NAN = np.array([[3, np.nan, 1, 2, np.nan, 0, -1, 7], range(8)], "f4")


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
def test_arg_max_finds_nan(name: str, last: int) -> None:
    node = helper.make_node(name, ["x"], ["y"], axis=1, select_last_index=last)
    check(model_of([node], {"x": _WITH_NAN}, ["y"]), {"x": _WITH_NAN})


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [-2, 1])
def test_writing_to_a_cache(axis: int, mode: str) -> None:
    cache, update = normal(2, 5, 6, 3), normal(2, 5, 6, 3)
    inputs = {
        "cache": cache,
        "update": update[:, :2] if axis == 1 else update[:, :, :2],
        "start": ints(3, 1) + (2 if mode == "circular" else 0),
    }
    node = helper.make_node("TensorScatter", [*inputs], ["y"], mode=mode, axis=axis)
    check(model_of([node], inputs, ["y"], opset=24), inputs)


@pytest.mark.parametrize("dtype", ["i4", "u4", "f4"])
def test_bitcasts(dtype: str) -> None:
    x = np.array([1.5, -0.0, np.inf, np.nan], "f4")
    to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node("BitCast", ["x"], ["y"], to=to)
    check(model_of([node], {"x": x}, ["y"], opset=26), {"x": x})


def test_signed_shifts() -> None:
    x, y = np.array([-16, 16, -1, 100], "i1"), np.array([2, 2, 9, -1], "i1")
    for direction in ("LEFT", "RIGHT"):
        node = helper.make_node("BitShift", ["x", "y"], ["z"], direction=direction)
        data = model_of([node], {"x": x, "y": y}, ["z"], opset=28)
        check(data, {"x": x, "y": y})


@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("length", [None, 4, 9])
def test_one_sided_spectra(inverse: int, length: int | None) -> None:
    x = normal(2, 6, 3, 1 + inverse)
    names = ["x", "n" if length else "", "k"]
    node = helper.make_node("DFT", names, ["y"], onesided=1, inverse=inverse)
    constants = {"k": np.array(-3)} | ({"n": np.array(length)} if length else {})
    check(model_of([node], {"x": x}, ["y"], constants, opset=20), {"x": x})


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize(("parts", "inverse"), [(1, 0), (2, 0), (2, 1)])
def test_spectra(axis: int, parts: int, inverse: int) -> None:
    x = normal(2, 6, 5, parts)
    node = helper.make_node("DFT", ["x"], ["y"], axis=axis, inverse=inverse)
    check(model_of([node], {"x": x}, ["y"], opset=17), {"x": x})


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("parts", [1, 2])
def test_short_time_spectra(onesided: int, parts: int) -> None:
    inputs = {"x": normal(2, 20, parts), "w": np.hanning(6).astype("f4")}
    constants = {"step": np.array(3)}
    node = helper.make_node("STFT", ["x", "step", "w"], ["y"], onesided=onesided)
    if parts == 1 or not onesided:
        check(model_of([node], inputs, ["y"], constants), inputs)


def test_spectra_in_double_precision() -> None:
    x = normal(1, 7, 2).astype("f8")
    node = helper.make_node("DFT", ["x"], ["y"], axis=1)
    data = model_of([node], {"x": x}, ["y"], opset=17)
    (got,) = tensorplan.compile(tensorplan.from_onnx(data))(x)
    want = np.fft.fft(x[..., 0] + 1j * x[..., 1])
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, rtol=1e-13)


@pytest.mark.parametrize("size", [6, 5])
@pytest.mark.parametrize("has_zero", [False, True])
def test_blockwise_quantization(size: int, has_zero: bool) -> None:
    scale = np.abs(normal(2, 3, 4)) + 0.1
    zero = np.arange(24, dtype="i1").reshape(2, 3, 4) - 9
    constants = {"s": scale} | ({"z": zero} if has_zero else {})
    names = ["x", "s", *(["z"] if has_zero else [])]
    options: dict[str, Any] = {"axis": 1, "block_size": 2}
    kind: dict[str, Any] = {} if has_zero else {"output_dtype": TensorProto.INT8}
    node = helper.make_node("QuantizeLinear", names, ["y"], **options, **kind)
    x = normal(2, size, 4) * 9
    check(model_of([node], {"x": x}, ["y"], constants, opset=21), {"x": x})
    x = (x * 9).astype("i1")
    node = helper.make_node("DequantizeLinear", names, ["y"], **options)
    check(model_of([node], {"x": x}, ["y"], constants, opset=21), {"x": x})


def test_a_matrix_of_mel_weights() -> None:
    names = ["bins", "length", "rate", "low", "high"]
    values = [np.array(v) for v in (8, 16, 8192)]
    values += [np.array(v, "f4") for v in (0, 4096)]
    nodes = [
        helper.make_node("MelWeightMatrix", names, ["m"]),
        helper.make_node("MatMul", ["x", "m"], ["y"]),
    ]
    inputs = {"x": normal(2, 9)}
    constants = dict(zip(names, values, strict=True))
    check(model_of(nodes, inputs, ["y"], constants), inputs)


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize(
    ("name", "states", "attributes"),
    [
        ("Adagrad", 1, {"decay_factor": 0.1, "epsilon": 0.01}),
        ("Adam", 2, {"alpha": 0.9, "beta": 0.8, "norm_coefficient_post": 0.1}),
        ("Momentum", 1, {"alpha": 0.9, "beta": 0.5, "mode": "standard"}),
        ("Momentum", 1, {"alpha": 0.9, "beta": 0.5, "mode": "nesterov"}),
    ],
    ids=str,
)
def test_optimizers(
    name: str, states: int, attributes: dict[str, Any], steps: int
) -> None:
    """One node updates two tensors."""
    tensors = [normal(3), normal(2, 4)]
    values = [np.abs(t) * (1 + k) for k in range(2 + states) for t in tensors]
    inputs = {"r": np.array(0.1, "f4"), "t": np.array(steps)}
    inputs |= {f"x{index}": value for index, value in enumerate(values)}
    outputs = [f"y{index}" for index in range(2 * (1 + states))]
    domain = "ai.onnx.preview.training"
    attributes = {"norm_coefficient": 0.01, **attributes}
    node = helper.make_node(name, [*inputs], outputs, domain=domain, **attributes)
    value = helper.make_tensor_value_info
    kind = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [node],
        "g",
        [value(n, kind(array.dtype), array.shape) for n, array in inputs.items()],
        [value(n, TensorProto.FLOAT, None) for n in outputs],
    )
    imports = [helper.make_opsetid(domain, 1), helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    check(model.SerializeToString(), inputs)


@pytest.mark.parametrize(("ratio", "training"), [(0.5, False), (0.0, True)])
def test_dropout_of_nothing(ratio: float, training: bool) -> None:
    constants = {"r": np.array(ratio, "f4"), "t": np.array(training)}
    node = helper.make_node("Dropout", ["x", "r", "t"], ["y", "mask"])
    check(model_of([node], {"x": X}, ["y", "mask"], constants), {"x": X})


def test_sizes_that_depend_on_values() -> None:
    node = helper.make_node("NonZero", ["x"], ["y"])
    with pytest.raises(LocatedError, match="NonZero is not supported with input 'x'"):
        tensorplan.from_onnx(model_of([node], {"x": X}, ["y"]))


@pytest.mark.parametrize("momentum", [0.9, 0.25])
def test_batch_statistics_in_training(momentum: float) -> None:
    operands = [IMAGE, *normal(4, 4) ** 2]
    inputs = dict(zip("xsbmv", operands, strict=True))
    attributes: dict[str, Any] = {
        "training_mode": 1,
        "momentum": momentum,
        "epsilon": 1e-2,
    }
    outputs = ["y", "mean", "var"]
    node = helper.make_node("BatchNormalization", [*inputs], outputs, **attributes)
    check(model_of([node], inputs, outputs), inputs)


@pytest.mark.parametrize("attributes", [{}, {"periodic": 0}], ids=str)
@pytest.mark.parametrize("name", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_windows_of_known_size(name: str, attributes: dict[str, Any]) -> None:
    nodes = [
        helper.make_node(name, ["n"], ["w"], **attributes),
        helper.make_node("Mul", ["x", "w"], ["y"]),
    ]
    inputs = {"x": normal(10)}
    check(model_of(nodes, inputs, ["y"], {"n": np.array(10)}), inputs)


@pytest.mark.parametrize("attributes", [{}, {"align_corners": 1}], ids=str)
@pytest.mark.parametrize(
    "size", [(2, 3, 5, 6), (2, 3, 4, 5, 6), (1, 3, 5, 6), (1, 1, 2, 5, 6)], ids=str
)
def test_affine_grids(size: tuple[int, ...], attributes: dict[str, Any]) -> None:
    theta = normal(size[0], len(size) - 2, len(size) - 1)
    check(*case_model(("AffineGrid", [theta, (ints(*size),)], attributes)))


HEADS = normal(2, 4, 3, 8)
PAST = normal(2, 4, 5, 8)
GROUPED = normal(2, 2, 3, 8)
PAST_GROUPED = normal(2, 2, 5, 8)
MASK = normal(3, 8)
ROWS = normal(2, 3, 32), normal(2, 3, 16), normal(2, 3, 16)


@pytest.mark.parametrize(
    ("operands", "attributes", "outputs"),
    [
        ([HEADS, HEADS, HEADS, None, PAST, PAST], {}, 3),
        ([HEADS, HEADS, HEADS, None, PAST, PAST], {"is_causal": 1}, 3),
        ([HEADS, GROUPED, GROUPED, None, PAST_GROUPED, PAST_GROUPED], {}, 3),
        ([HEADS, HEADS, HEADS, MASK, PAST, PAST], {"softcap": 2.0}, 3),
        ([HEADS, HEADS, HEADS, MASK > 0, PAST, PAST], {}, 3),
        ([HEADS, HEADS, HEADS, None, PAST, PAST], {"qk_matmul_output_mode": 1}, 4),
        ([HEADS, HEADS, HEADS], {}, 1),
        (
            [*ROWS, None, PAST_GROUPED, PAST_GROUPED],
            {"q_num_heads": 4, "kv_num_heads": 2},
            3,
        ),
    ],
    ids=["cache", "causal", "grouped", "mask", "bits", "scores", "plain", "rank 3"],
)
def test_attention(
    operands: list[Any], attributes: dict[str, Any], outputs: int
) -> None:
    names = ["" if v is None else f"x{i}" for i, v in enumerate(operands)]
    inputs = {n: v for n, v in zip(names, operands, strict=True) if n}
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node("Attention", names, results, **attributes)
    check(model_of([node], inputs, results, opset=23), inputs)


def test_a_cache_is_longer_after_the_step() -> None:
    """A model uses the attention in its middle, and returns one of its two caches."""
    nodes = [
        helper.make_node("Tanh", ["x"], ["q"]),
        helper.make_node(
            "Attention", ["q", "q", "q", "", "k", "v"], ["a", "", "values"]
        ),
        helper.make_node("Exp", ["a"], ["y"]),
    ]
    inputs = {"x": HEADS, "k": PAST, "v": PAST * 2}
    check(model_of(nodes, inputs, ["y", "values"], opset=23), inputs)


@pytest.mark.parametrize("opset", [18, 20, 23])
@pytest.mark.parametrize(
    ("shape", "attributes"),
    [([4, 5, 7], {}), ([7, 2], {"axes": [1, -1]}), ([1], {"axes": [0]})],
    ids=str,
)
def test_cropping_to_a_known_shape(
    shape: list[int], attributes: dict[str, Any], opset: int
) -> None:
    node = helper.make_node("CenterCropPad", ["x", "s"], ["y"], **attributes)
    data = model_of([node], {"x": X}, ["y"], {"s": ints(*shape)}, opset=opset)
    check(data, {"x": X})


def function(name: str, nodes: Sequence[Any], **options: Any) -> Any:
    """Returns a function of a model that computes `c` from `a` and `b`."""
    imports = [helper.make_opsetid("", options.pop("opset", OPSET))]
    imports.append(helper.make_opsetid("mine", 1))
    return helper.make_function(
        "mine", name, ["a", "b"], ["c"], nodes, imports, **options
    )


def calling(functions: Sequence[Any], *nodes: Any) -> bytes:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        list(nodes),
        "g",
        [value("x", TensorProto.FLOAT, X.shape)],
        [value("y", TensorProto.FLOAT, None)],
    )
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("mine", 1)]
    return helper.make_model(
        graph, functions=functions, opset_imports=imports, ir_version=10
    ).SerializeToString()


def call(name: str, inputs: Sequence[str] = ("x",), **attributes: Any) -> Any:
    return helper.make_node(name, inputs, ["y"], domain="mine", **attributes)


def ref(node: Any, name: str, kind: int, of: str) -> Any:
    """Returns `node` with an attribute that refers to the function's attribute `of`."""
    node.attribute.append(onnx.AttributeProto(name=name, type=kind, ref_attr_name=of))
    return node


def test_functions_have_defaults_and_optional_inputs() -> None:
    scaled = ref(
        helper.make_node("LeakyRelu", ["a"], ["d"]),
        "alpha",
        onnx.AttributeProto.FLOAT,
        "slope",
    )
    inner = function(
        "Inner",
        [scaled, helper.make_node("Clip", ["d", "b"], ["c"])],
        attribute_protos=[helper.make_attribute("slope", 0.5)],
    )
    outer = function("Outer", [helper.make_node("Inner", "ab", "c", domain="mine")])
    for functions, node, slope in (
        ([inner], call("Inner"), 0.5),
        ([inner], call("Inner", slope=0.1), 0.1),
        ([inner, outer], call("Outer"), 0.5),
    ):
        program = tensorplan.from_onnx(calling(functions, node)).module
        (got,) = tensorplan.compile(program)(X)
        np.testing.assert_allclose(got, np.where(X > 0, X, X * slope), rtol=1e-6)


def test_locations_of_errors_in_functions() -> None:
    node = helper.make_node("StringNormalizer", ["a"], ["c"], name="draw")
    first = function("First", [node])
    data = calling([first], helper.make_node("Neg", ["x"], ["z"]), call("First", "z"))
    with pytest.raises(
        LocatedError, match=r"^onnx#y/draw:2:1: operation StringNormalizer is not"
    ):
        tensorplan.from_onnx(data)


@pytest.mark.parametrize(
    ("functions", "inputs", "message"),
    [
        ([("F", ["Neg", "a"], OPSET)], "xxx", "3 inputs, expected at most 2"),
        ([("F", ["Neg", "z"], OPSET)], "x", "input 'z' "),
        ([("F", ["Neg", "a"], 12)], "x", "version 12"),
        ([("F", ["F", "a"], OPSET)], "x", "recursive"),
    ],
    ids=["inputs", "undefined", "opset", "recursive"],
)
def test_invalid_functions_are_rejected(
    functions: Sequence[tuple[str, list[str], int]], inputs: str, message: str
) -> None:
    protos = [
        function(
            name,
            [helper.make_node(op, [a], ["c"], domain="mine" if op == "F" else "")],
            opset=opset,
        )
        for name, (op, a), opset in functions
    ]
    with pytest.raises(LocatedError, match=message):
        tensorplan.from_onnx(calling(protos, call("F", list(inputs))))
