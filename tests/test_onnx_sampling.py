"""Tests ONNX operations at computed positions: sampling, regions, and offsets."""

from typing import Any

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx_models import IMAGE, Arrays, compare, ints, model_of, normal  # noqa: E402


def model(
    name: str,
    operands: list[Any],
    *,
    opset: int = 20,
    outputs: int = 1,
    **attributes: Any,
) -> tuple[bytes, Arrays]:
    """Returns a model of one operation. Operands in a tuple are constants."""
    names = ["" if v is None else f"x{i}" for i, v in enumerate(operands)]
    operand = {n: v for n, v in zip(names, operands, strict=True) if n}
    constants = {n: v[0] for n, v in operand.items() if isinstance(v, tuple)}
    inputs = {n: v for n, v in operand.items() if n not in constants}
    results = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(name, names, results, **attributes)
    return model_of([node], inputs, results, constants, opset=opset), inputs


def check(name: str, operands: list[Any], **options: Any) -> None:
    """Compares values with onnxruntime's."""
    runtime = pytest.importorskip("onnxruntime")
    data, inputs = model(name, operands, **options)
    compare(data, inputs, runtime.InferenceSession(data).run(None, inputs))


def check_reference(name: str, operands: list[Any], **options: Any) -> None:
    """Compares values with ONNX's own evaluator, if onnxruntime has no kernel."""
    data, inputs = model(name, operands, **options)
    evaluator: Any = ReferenceEvaluator(onnx.load_model_from_string(data))
    compare(data, inputs, evaluator.run(None, dict(inputs)))


GRID = normal(2, 5, 3, 2)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_sampling_at_a_grid(mode: str, padding: str, aligned: int) -> None:
    options = {"padding_mode": padding, "align_corners": aligned}
    check("GridSample", [IMAGE, GRID * 2], mode=mode, **options)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_older_names_of_modes(mode: str) -> None:
    check("GridSample", [IMAGE[:, :1], GRID], opset=16, mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_sampling_volumes(mode: str) -> None:
    operands = [normal(1, 2, 4, 3, 5), normal(1, 2, 3, 2, 3)]
    check_reference("GridSample", operands, mode=mode)


def test_sampling_in_half_precision() -> None:
    """Places are computed in f32, because f16 has no odd numbers beyond 2,048."""
    image = np.arange(4001, dtype=np.float32).reshape(1, 1, 1, -1)
    grid = np.array([[[[-1, 0], [0, 0], [0.75, 0], [1, 0]]]])
    data, inputs = model(
        "GridSample", [(image % 7).astype("f2"), grid.astype("f2")], align_corners=1
    )
    want = np.array([0, 2000 % 7, 3500 % 7, 4000 % 7], "f2").reshape(1, 1, 1, 4)
    compare(data, inputs, [want])


def test_sampling_nothing() -> None:
    data, inputs = model("GridSample", [IMAGE, np.zeros((2, 0, 3, 2), "f4")])
    compare(data, inputs, [np.zeros((2, 4, 0, 3), "f4")])


ROIS = np.array([[0, 0, 7, 8], [1.5, 2.5, 4, 3], [-3, -2, 20, 30], [2, 2, 2, 2]], "f4")


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("place", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("ratio", [1, 3])
def test_regions(mode: str, place: str, ratio: int) -> None:
    check(
        "RoiAlign",
        [IMAGE, ROIS, ints(0, 1, 1, 0)],
        mode=mode,
        coordinate_transformation_mode=place,
        sampling_ratio=ratio,
        spatial_scale=0.8,
        output_height=2,
        output_width=3,
    )


def test_regions_without_a_sampling_ratio_are_rejected() -> None:
    with pytest.raises(LocatedError, match="sampling_ratio = 0, expected at least 1"):
        tensorplan.from_onnx(model("RoiAlign", [IMAGE, ROIS, ints(0, 1, 1, 0)])[0])


@pytest.mark.thorough
@pytest.mark.parametrize(("groups", "parts"), [(1, 2), (2, 1)])
@pytest.mark.parametrize("extra", ["", "bias", "mask"])
def test_deformable_convolution(groups: int, parts: int, extra: str) -> None:
    x, kernel = normal(2, 4, 6, 5), normal(6, 4 // groups, 2, 3)
    offset = normal(2, parts * 2 * 6, 3, 4)
    bias, mask = normal(6), normal(2, parts * 6, 3, 4)
    operands = {"": [], "bias": [bias], "mask": [bias, mask]}[extra]
    check_reference(
        "DeformConv",
        [x, kernel, offset, *operands],
        opset=19,
        group=groups,
        offset_group=parts,
        strides=[2, 1],
        pads=[1, 0, 0, 1],
    )


EQUAL = np.round(IMAGE)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 3]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        {
            "kernel_shape": [2, 2],
            "dilations": [2, 3],
            "ceil_mode": 1,
            "strides": [2, 3],
        },
    ],
    ids=str,
)
def test_positions_of_max_pool(attributes: dict[str, Any], order: int) -> None:
    check("MaxPool", [EQUAL], outputs=2, storage_order=order, **attributes)
    check("MaxPool", [-np.abs(EQUAL)], outputs=2, storage_order=order, **attributes)


@pytest.mark.parametrize("shape", [None, (ints(2, 4, 10, 10),)], ids=["own", "given"])
def test_unpooling(shape: Any) -> None:
    runtime = pytest.importorskip("onnxruntime")
    attributes: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    data, inputs = model("MaxPool", [IMAGE], outputs=2, **attributes)
    values, places = runtime.InferenceSession(data).run(None, inputs)
    operands = [values, places % (8 * 8) + 64 * (places // 72)]
    check_reference(
        "MaxUnpool", [*operands, *([] if shape is None else [shape])], **attributes
    )


@pytest.mark.parametrize(
    ("space", "block", "attributes"),
    [
        ([5, 4], [2, 3], {}),
        ([5, 5], [2, 2], {"strides": [2, 2], "pads": [1, 0, 0, 1]}),
        ([6], [2], {"dilations": [3]}),
        ([3, 4, 3], [2, 1, 2], {}),
    ],
    ids=str,
)
def test_columns_to_images(
    space: list[int], block: list[int], attributes: dict[str, Any]
) -> None:
    rank = len(space)
    strides = attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    pads = attributes.get("pads", [0] * 2 * rank)
    places = [
        (space[d] + pads[d] + pads[rank + d] - (block[d] - 1) * dilations[d] - 1)
        // strides[d]
        + 1
        for d in range(rank)
    ]
    x = normal(2, 3 * int(np.prod(block)), int(np.prod(places)))
    check_reference("Col2Im", [x, (ints(*space),), (ints(*block),)], **attributes)
