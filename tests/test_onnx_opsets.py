"""Tests ONNX models of older opsets: onnxruntime's values, and inputs as constants."""

from typing import Any

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402
from onnx_models import IMAGE, X, ints, model_of, normal  # noqa: E402

SCALES = np.array([1, 1, 2, 1.5], "f4")

CASES: list[tuple[int, str, list[Any], dict[str, Any]]] = [
    (7, "Add", [X, normal(3, 1)], {}),
    (7, "BatchNormalization", [IMAGE, *normal(4, 4) ** 2], {}),
    (7, "Dropout", [X], {"ratio": 0.7}),
    (7, "PRelu", [X, normal(3, 1)], {}),
    (7, "Upsample", [IMAGE], {"scales": [1.0, 1.0, 2.0, 3.0]}),
    (7, "Upsample", [IMAGE], {"scales": [1.0, 1.0, 2.0, 1.5], "mode": "linear"}),
    (9, "Upsample", [IMAGE, (SCALES,)], {"mode": "nearest"}),
    (10, "Resize", [IMAGE, (SCALES,)], {}),
    (10, "Resize", [IMAGE, (1 / SCALES,)], {"mode": "linear"}),
    (8, "Clip", [X], {"min": -0.5}),
    (8, "Clip", [X], {"min": -0.5, "max": 0.5}),
    (8, "Slice", [X], {"starts": [0, -3], "ends": [9, -1], "axes": [0, 2]}),
    (8, "Slice", [X], {"starts": [1], "ends": [2]}),
    (8, "Split", [X], {"axis": 2, "split": [1, 3]}),
    (8, "Split", [X], {"axis": 2}),
    (8, "TopK", [X], {"k": 2, "axis": 1}),
    (10, "TopK", [X, (ints(2),)], {}),
    (8, "Pad", [X], {"pads": [0, 1, 0, 2, 0, 1], "value": 1.5}),
    (10, "Pad", [X], {"pads": [0, 1, 0, 2, 0, 1], "mode": "edge"}),
    (10, "Pad", [X], {"pads": [0, 4, -1, 1, -1, 5], "mode": "edge"}),
    (10, "Pad", [X], {"pads": [-1, -1, -2, 2, 0, -1], "mode": "edge"}),
    (19, "Pad", [X, (ints(-1, 4, 0, 3, -1, -2),)], {"mode": "wrap"}),
    (18, "Pad", [X, (ints(0, -1, 2, 0, 1, -1),)], {"mode": "reflect"}),
    (20, "AveragePool", [IMAGE], {"kernel_shape": [IMAGE.shape[2] + 1, 2]}),
    (9, "Scatter", [X, np.array([[[1, 0]]]), normal(1, 1, 2)], {"axis": 1}),
    *((n, "Softmax", [X], {}) for n in (8, 11, 12, 13)),
    *((n, "LogSoftmax", [X], {"axis": 0}) for n in (8, 12)),
    (11, "Squeeze", [normal(1, 3, 1)], {"axes": [0]}),
    (11, "Unsqueeze", [X], {"axes": [-1, 0]}),
    (11, "ReduceSum", [X], {"axes": [1], "keepdims": 0}),
    (12, "ReduceMean", [X], {}),
    (17, "ReduceMax", [X], {"axes": [-1]}),
    (8, "Flatten", [X], {"axis": 2}),
    (7, "Gemm", [normal(2, 3), normal(3, 4), normal(4)], {"alpha": 0.5}),
]


def model(
    opset: int, name: str, operands: list[Any], attributes: dict[str, Any]
) -> tuple[bytes, dict[str, np.ndarray]]:
    """Returns a model of one operation. Operands in a tuple are constants."""
    names = [f"x{index}" for index in range(len(operands))]
    operand = dict(zip(names, operands, strict=True))
    constants = {n: v[0] for n, v in operand.items() if isinstance(v, tuple)}
    inputs = {n: v for n, v in operand.items() if n not in constants}
    outputs = ["y", "z"][: 1 + (name in ("Split", "TopK"))]
    node = helper.make_node(name, names, outputs, **attributes)
    return model_of([node], inputs, outputs, constants, opset=opset), inputs


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1]}-{case[0]}")
def test_values(case: Any) -> None:
    runtime = pytest.importorskip("onnxruntime")
    data, inputs = model(*case)
    want = runtime.InferenceSession(data).run(None, inputs)
    got = tensorplan.compile(tensorplan.from_onnx(data))(*inputs.values())
    assert len(got) == len(want)
    for have, expected in zip(got, want, strict=True):
        assert have.dtype == expected.dtype
        np.testing.assert_allclose(have, expected, rtol=1e-4, atol=1e-5)


def test_broadcasting_from_an_axis() -> None:
    """Before opset 7, `axis` was the dimension that the second operand starts at."""
    other = normal(3)
    data, inputs = model(6, "Mul", [X, other], {"broadcast": 1, "axis": 1})
    (got,) = tensorplan.compile(tensorplan.from_onnx(data))(*inputs.values())
    np.testing.assert_array_equal(got, X * other[:, None])


def test_a_slope_for_each_channel() -> None:
    slope = normal(3)
    data, inputs = model(6, "PRelu", [X, slope], {})
    (got,) = tensorplan.compile(tensorplan.from_onnx(data))(*inputs.values())
    np.testing.assert_array_equal(got, np.where(X > 0, X, X * slope[:, None]))


def test_training_in_old_opsets_is_rejected() -> None:
    data, _ = model(6, "Dropout", [X], {})
    with pytest.raises(LocatedError, match="is_test = 0, expected 1"):
        tensorplan.from_onnx(data)


@pytest.mark.parametrize(
    ("pads", "message"),
    [
        ([-2, -2], r"with pads that crop more than \[3\]"),
        ([-4, 1], r"with pads that crop more than \[3\]"),
        ([-3, 1], "with mode = 'edge' and a dimension of size 0"),
    ],
)
def test_pads_that_leave_nothing_to_repeat(pads: list[int], message: str) -> None:
    attributes = {"pads": pads, "mode": "edge"}
    data, _ = model(10, "Pad", [normal(3)], attributes)
    with pytest.raises(LocatedError, match=f"Pad is not supported {message}"):
        tensorplan.from_onnx(data)


REDUCTION = (18, "ReduceSum", [X, ints(1)], {"keepdims": 0})


def test_an_input_becomes_a_constant() -> None:
    data, _ = model(*REDUCTION)
    with pytest.raises(LocatedError, match="'x1' computed at run time"):
        tensorplan.from_onnx(data)
    for axis in (1, -1):
        program = tensorplan.from_onnx(data, values={"x1": ints(axis)})
        (got,) = tensorplan.compile(program)(X)
        np.testing.assert_allclose(got, X.sum(axis), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"axes": ints(1)}, "the model has no input 'axes', expected one of x0, x1"),
        (
            {"x1": np.array([1], np.int32)},
            r"is int32 of shape \[1\], expected int64 of shape",
        ),
        ({"x1": ints(1, 2)}, r"is int64 of shape \[2\], expected int64 of shape \[1\]"),
        ({"x1": 1}, r"of shape \[\], expected int64 of shape \[1\]"),
    ],
    ids=str,
)
def test_invalid_values_of_inputs(values: Any, message: str) -> None:
    with pytest.raises(LocatedError, match=message):
        tensorplan.from_onnx(model(*REDUCTION)[0], values=values)
