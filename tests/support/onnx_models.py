"""ONNX models of one operation each, for the tests of values and of damaged files."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference

OPSET = 20
Arrays = Mapping[str, np.ndarray]


def model_of(
    nodes: Sequence[Any],
    inputs: Arrays,
    outputs: Sequence[str],
    initializers: Arrays | None = None,
    *,
    opset: int = OPSET,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> bytes:
    """A serialized model whose inputs have the types of the arrays in `inputs`."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [
            helper.make_tensor_value_info(
                name,
                helper.np_dtype_to_tensor_dtype(array.dtype),
                (shapes or {}).get(name, array.shape),
            )
            for name, array in inputs.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(a, n) for n, a in (initializers or {}).items()],
    )
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    model = onnx.shape_inference.infer_shapes(model)
    return model.SerializeToString()


def compare(data: bytes, inputs: Arrays, want: Any, *, rtol: float = 1e-4) -> None:
    """Asserts that the interpreter and the compiled program return `want`."""
    program = tensorplan.from_onnx(data)
    arrays = [*inputs.values(), *program.parameters.values()]
    for got in (
        run_reference(program.module, arrays),
        tensorplan.compile(program)(*inputs.values()),
    ):
        assert len(got) == len(want)
        for have, expected in zip(got, want, strict=True):
            assert have.dtype == expected.dtype
            assert have.shape == expected.shape
            np.testing.assert_allclose(have, expected, rtol=rtol, atol=1e-5)


def normal(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape) + len(shape))
    return rng.standard_normal(shape).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


X = normal(2, 3, 4)
IMAGE = normal(2, 4, 9, 8)
BITS = X > 0
INFINITE = np.array([1, np.inf, -np.inf, np.nan], "f4")
ROWS = np.array([[-1, 0], [2, 1]])

BYTES = np.array([0, 1, 16, 129, 255], "u1")

Case = tuple[str, list[Any], dict[str, Any]]
"""An operation, operands, and attributes. Arrays are inputs; arrays in tuples are
constants."""

CASES: list[Case] = [
    *(
        (name, [X], {})
        for name in (
            *("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Identity", "Neg", "Round"),
            *("Sigmoid", "Sign", "Sin", "Tan", "Tanh", "Relu", "LeakyRelu", "Elu"),
            *("Selu", "Softplus", "Softsign", "Mish", "HardSigmoid", "HardSwish"),
            *("Gelu", "Reciprocal", "Dropout", "IsNaN", "Flatten", "Size", "Shape"),
            *("Softmax", "LogSoftmax", "Transpose", "ArgMax", "ArgMin"),
        )
    ),
    *(
        ("IsInf", [np.array([1, np.inf, -np.inf, np.nan], "f4")], {k: v})
        for k, v in (
            ("detect_negative", 1),
            ("detect_negative", 0),
            ("detect_positive", 0),
        )
    ),
    *((name, [np.tanh(X)], {}) for name in ("Acos", "Asin", "Atanh")),
    *((name, [X * 3], {}) for name in ("Asinh", "Atan", "Cosh", "Sinh")),
    *((name, [INFINITE], {}) for name in ("Acosh", "Asinh", "Atan", "Cosh", "Sinh")),
    ("Acosh", [np.abs(X) + 1], {}),
    *((f"Bitwise{name}", [ROWS, ints(6)], {}) for name in ("And", "Or", "Xor")),
    ("BitwiseNot", [BYTES], {}),
    ("BitwiseNot", [ROWS], {}),
    *(
        ("BitShift", [BYTES, np.array([k], "u1")], {"direction": d})
        for k in (0, 3, 7)
        for d in ("LEFT", "RIGHT")
    ),
    *(
        ("CumSum", [X, (np.array(k),)], {"exclusive": exclusive, "reverse": reverse})
        for k in (1, -1)
        for exclusive in (0, 1)
        for reverse in (0, 1)
    ),
    *(("Hardmax", [np.round(X)], {"axis": k}) for k in (0, -1)),
    ("Hardmax", [normal(2, 0)], {"axis": 0}),
    *(
        ("LpNormalization", [X * BITS], {"p": p, "axis": a})
        for p in (1, 2)
        for a in (0, 2)
    ),
    ("LpNormalization", [np.zeros((2, 3), "f4")], {}),
    *(("LRN", [IMAGE], {"size": k, "alpha": 0.5, "bias": 2.0}) for k in (1, 3, 7)),
    ("LpPool", [IMAGE], {"kernel_shape": [3, 2], "p": 1, "pads": [1, 0, 1, 1]}),
    ("LpPool", [IMAGE], {"kernel_shape": [3, 2], "strides": [2, 2]}),
    ("LpPool", [IMAGE], {"kernel_shape": [2, 2], "p": 3, "auto_pad": "SAME_UPPER"}),
    *(("GlobalLpPool", [IMAGE], {"p": p}) for p in (1, 2, 3)),
    ("EyeLike", [normal(3, 5)], {"k": 1}),
    ("EyeLike", [normal(3, 5)], {"k": -2, "dtype": TensorProto.INT64}),
    ("Compress", [X, (np.array([True, False, True]),)], {}),
    ("Compress", [X, (np.array([False, True]),)], {"axis": -2}),
    ("Compress", [X, (np.array([False]),)], {"axis": 0}),
    ("ReverseSequence", [X, ints(2, 1, 2)], {}),
    ("ReverseSequence", [X, ints(3, 1)], {"time_axis": 1, "batch_axis": 0}),
    *(
        ("Resize", [IMAGE, None, (np.array([1, 1, *s], "f4"),)], {"mode": m, **kind})
        for m in ("linear", "cubic")
        for s in ((0.5, 0.4), (0.6, 1.7))
        for kind in ({"antialias": 1}, {"exclude_outside": 1})
        if (m, kind) != ("linear", {"exclude_outside": 1})
    ),
    *(
        (
            "Resize",
            [IMAGE, None, None, (ints(*sizes),)],
            {"axes": [2, 3], "keep_aspect_ratio_policy": policy},
        )
        for sizes in ((6, 11), (14, 13))
        for policy in ("not_larger", "not_smaller")
    ),
    *(
        (
            "Resize",
            [IMAGE, (np.array([0, 0, a, 0.13, 1, 1, 0.7, 1.25], "f4"),), None, (size,)],
            {
                "mode": m,
                "coordinate_transformation_mode": "tf_crop_and_resize",
                "extrapolation_value": 3.0,
            },
        )
        for m in ("nearest", "linear")
        for a in (0.2, -0.3)
        for size in (ints(2, 4, 5, 7), ints(2, 4, 1, 12))
    ),
    ("Einsum", [X, normal(4, 5)], {"equation": "abc,cd->adb"}),
    ("Einsum", [X, normal(4, 5)], {"equation": "...c,cd->...d"}),
    ("Einsum", [X, normal(2, 4, 5)], {"equation": "...bc,...cd->b...d"}),
    ("Einsum", [X, normal(4, 5)], {"equation": "...c, cd"}),
    ("Einsum", [X, normal(1, 4, 5)], {"equation": "...bc,...cd->b...d"}),
    ("Einsum", [X, normal(2, 1)], {"equation": "abc,ac->ab"}),
    ("Einsum", [normal(3, 4, 4)], {"equation": "...ii->...i"}),
    ("Einsum", [normal(4, 4)], {"equation": "ii"}),
    ("Einsum", [normal(3, 4, 3), normal(4, 2)], {"equation": "iji,jk->ik"}),
    (
        "QLinearMatMul",
        [
            *(BYTES.reshape(1, 5), (np.array(0.1, "f4"),), (np.array(7, "u1"),)),
            *(BYTES.reshape(5, 1), (np.array(0.2, "f4"),), (np.array(3, "u1"),)),
            *((np.array(9, "f4"),), (np.array(100, "u1"),)),
        ],
        {},
    ),
    ("MatMulInteger", [ROWS.astype("u1"), ROWS.astype("u1")], {}),
    (
        "MatMulInteger",
        [
            *(ROWS.astype("i1"), BYTES[:4].reshape(2, 2)),
            *((np.array(3, "i1"),), (np.array([1, 9], "u1"),)),
        ],
        {},
    ),
    (
        "ConvInteger",
        [
            np.arange(32, dtype="u1").reshape(1, 2, 4, 4) * 7,
            *(np.arange(24, dtype="u1").reshape(3, 2, 2, 2), (np.array(9, "u1"),)),
            (np.array(4, "u1"),),
        ],
        {"pads": [1, 0, 0, 1], "strides": [1, 2]},
    ),
    (
        "QLinearConv",
        [
            np.arange(32, dtype="u1").reshape(1, 2, 4, 4) * 7,
            *((np.array(0.1, "f4"),), (np.array(9, "u1"),)),
            (np.arange(24, dtype="i1") - 9).reshape(3, 2, 2, 2),
            *((np.array([0.5, 1, 2], "f4"),), (np.zeros(3, "i1"),)),
            *((np.array(3, "f4"),), (np.array(128, "u1"),)),
            (np.array([5, -50, 500], "i4"),),
        ],
        {"pads": [0, 1, 1, 1]},
    ),
    ("Einsum", [X, normal(2, 3, 5), normal(5)], {"equation": "abc, abd, d -> cb"}),
    ("Einsum", [X], {"equation": "abc->cb"}),
    ("Einsum", [normal(3, 4), normal(4, 5)], {"equation": "ij,jk"}),
    ("Celu", [X], {"alpha": 0.7}),
    ("Shrink", [X], {"lambd": 0.3, "bias": 0.1}),
    ("ThresholdedRelu", [X], {"alpha": 0.4}),
    ("MeanVarianceNormalization", [IMAGE], {"axes": [0, 2, 3]}),
    ("QuantizeLinear", [X, (np.array(0.02, "f4"),), (np.array(7, "u1"),)], {}),
    ("QuantizeLinear", [X, (normal(3) ** 2,), (np.zeros(3, "i1"),)], {"axis": 1}),
    ("DequantizeLinear", [ROWS.astype("i1"), (np.array([0.5, 2], "f4"),)], {"axis": 0}),
    (
        "DequantizeLinear",
        [ROWS.astype("u1"), (np.array(0.1, "f4"),), (np.array(3, "u1"),)],
        {},
    ),
    ("OneHot", [ROWS, (ints(3),), (np.array([0.5, 2], "f4"),)], {"axis": 1}),
    ("ScatterElements", [normal(3, 2), ROWS, normal(2, 2)], {}),
    (
        "ScatterElements",
        [normal(2, 3), ROWS, normal(2, 2)],
        {"axis": 1, "reduction": "add"},
    ),
    ("Resize", [IMAGE, None, None, (ints(2, 4, 12, 5),)], {"mode": "cubic"}),
    ("Sqrt", [np.abs(X)], {}),
    ("Log", [np.abs(X)], {}),
    ("Gelu", [X], {"approximate": "tanh"}),
    ("Elu", [X], {"alpha": 0.5}),
    ("PRelu", [X, normal(3, 1)], {}),
    ("Not", [BITS], {}),
    *((name, [X, normal(3, 1)], {}) for name in ("Add", "Sub", "Mul", "Div")),
    *((name, [X, normal(4), normal(2, 1, 1)], {}) for name in ("Max", "Min", "Sum")),
    ("Mean", [X, normal(4)], {}),
    *((n, [X, normal(3, 1)], {}) for n in ("Less", "Greater", "LessOrEqual")),
    ("GreaterOrEqual", [np.round(X), np.round(normal(4))], {}),
    ("Equal", [np.round(X), np.round(normal(4))], {}),
    *((name, [BITS, BITS[0]], {}) for name in ("And", "Or", "Xor")),
    *(("Pow", [np.abs(X), (np.array(e, "f4"),)], {}) for e in (2, 3, 0.5, 1.7)),
    ("Pow", [np.abs(X), normal(4)], {}),
    ("Div", [ints(7, -7, 7, -7), ints(2, 2, -2, -2)], {}),
    ("Mod", [ints(7, -7, 7, -7), ints(3, 3, -3, -3)], {}),
    ("Mod", [ints(7, -7, 7, -7), ints(3, 3, -3, -3)], {"fmod": 1}),
    ("Clip", [X, (np.array(-0.5, "f4"),), (np.array(0.5, "f4"),)], {}),
    ("Clip", [X, None, np.array(0.5, "f4")], {}),
    ("Where", [BITS, X, normal(3, 1)], {}),
    ("Cast", [X * 3], {"to": TensorProto.INT32}),
    ("Cast", [BITS], {"to": TensorProto.FLOAT}),
    ("Cast", [np.round(X)], {"to": TensorProto.BOOL}),
    ("CastLike", [ints(1, 2), X], {}),
    ("Softmax", [X], {"axis": 1}),
    ("LogSoftmax", [X], {"axis": 0}),
    ("ArgMax", [np.round(X)], {"axis": -1, "keepdims": 0}),
    ("ArgMax", [np.round(X)], {"axis": 1, "select_last_index": 1}),
    *(
        (f"Reduce{kind}", [np.abs(X), (ints(0, -1),)], {"keepdims": keep})
        for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min")
        for keep in (0, 1)
        if kind in ("L1", "Mean", "LogSumExp") or keep
    ),
    ("ReduceProd", [X, (ints(1),)], {}),
    ("ReduceSum", [X], {}),
    *(
        (f"Reduce{kind}", [np.abs(X)], {"noop_with_empty_axes": 1})
        for kind in ("L1", "L2", "LogSum", "LogSumExp", "Mean", "Sum", "SumSquare")
    ),
    ("ReduceSumSquare", [X, (ints(2),)], {"keepdims": 0}),
    ("LayerNormalization", [X, normal(4), normal(4)], {}),
    ("LayerNormalization", [X, normal(3, 4)], {"axis": 1, "epsilon": 0.1}),
    ("InstanceNormalization", [IMAGE, normal(4), normal(4)], {}),
    (
        "BatchNormalization",
        [IMAGE, normal(4), normal(4), normal(4), np.abs(normal(4))],
        {"epsilon": 1e-3},
    ),
    # Products and windows.
    ("MatMul", [X, normal(4, 5)], {}),
    ("MatMul", [normal(4), normal(2, 4, 3)], {}),
    ("MatMul", [X, normal(4)], {}),
    ("MatMul", [normal(5, 1, 2, 3), normal(2, 3, 4)], {}),
    ("Gemm", [normal(3, 4), normal(4, 5)], {}),
    (
        "Gemm",
        [normal(4, 3), normal(5, 4), normal(5)],
        {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0},
    ),
    ("Conv", [IMAGE, normal(6, 4, 3, 3)], {}),
    (
        "Conv",
        [IMAGE, normal(6, 2, 3, 2), normal(6)],
        {"group": 2, "strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [2, 1]},
    ),
    ("Conv", [IMAGE, normal(4, 1, 3, 3)], {"group": 4, "auto_pad": "SAME_UPPER"}),
    ("Conv", [IMAGE, normal(4, 4, 2, 2)], {"auto_pad": "SAME_LOWER"}),
    ("Conv", [X, normal(5, 3, 2)], {"auto_pad": "VALID"}),
    ("ConvTranspose", [IMAGE, normal(4, 3, 2, 2)], {"strides": [2, 2]}),
    (
        "ConvTranspose",
        [IMAGE, normal(4, 3, 3, 2), normal(6)],
        {
            "group": 2,
            "strides": [2, 1],
            "pads": [1, 0, 1, 1],
            "output_padding": [1, 0],
            "dilations": [1, 2],
        },
    ),
    (
        "ConvTranspose",
        [IMAGE, normal(4, 3, 3, 3)],
        {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ),
    ("ConvTranspose", [X, normal(3, 2, 3)], {"strides": [2], "output_shape": [8]}),
    ("MaxPool", [IMAGE], {"kernel_shape": [3, 3], "strides": [2, 2]}),
    (
        "MaxPool",
        [IMAGE],
        {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "dilations": [2, 1]},
    ),
    ("MaxPool", [IMAGE], {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}),
    ("AveragePool", [IMAGE], {"kernel_shape": [2, 2]}),
    *(
        (
            "AveragePool",
            [IMAGE],
            {
                "kernel_shape": [3, 3],
                "strides": [2, 3],
                "pads": [1, 1, 1, 1],
                "ceil_mode": ceil,
                "count_include_pad": include,
            },
        )
        for ceil in (0, 1)
        for include in (0, 1)
    ),
    ("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"}),
    ("GlobalAveragePool", [IMAGE], {}),
    ("GlobalMaxPool", [IMAGE], {}),
    # Shapes and indices.
    ("Shape", [X], {"start": 1, "end": -1}),
    ("Reshape", [X, (ints(0, -1),)], {}),
    ("Flatten", [X], {"axis": 2}),
    ("Squeeze", [X[:1], (ints(0),)], {}),
    ("Squeeze", [X[:, :1]], {}),
    ("Unsqueeze", [X, (ints(0, -1),)], {}),
    ("Transpose", [X], {"perm": [1, 0, 2]}),
    ("Concat", [X, normal(2, 1, 4), X], {"axis": -2}),
    ("Slice", [X, (ints(1, 0),), (ints(2**62, -1),), (ints(1, 2),)], {}),
    (
        "Slice",
        [X, (ints(-1, 3),), (ints(-(2**62), 0),), (ints(1, -1),), (ints(-1, -2),)],
        {},
    ),
    ("Slice", [X, (ints(-9),), (ints(-9),), (ints(1),), (ints(-1),)], {}),
    ("Gather", [X, ROWS % 2], {}),
    ("Gather", [X, ROWS], {"axis": 1}),
    ("Gather", [X, (ints(-1, 0),)], {"axis": -1}),
    ("Gather", [X, (np.array(-1),)], {"axis": 1}),
    ("GatherElements", [X, np.array([[[0, 1], [-1, 2]]])], {"axis": 1}),
    ("GatherND", [X, ROWS % 2], {}),
    ("GatherND", [X, ROWS[:, :1]], {"batch_dims": 1}),
    ("ScatterND", [X, np.array([[1], [-2]]), normal(2, 3, 4)], {}),
    ("ScatterND", [X, ROWS % 2, normal(2, 4)], {"reduction": "add"}),
    ("Pad", [X, (ints(0, 1, -1, 2, 0, 1),), (np.array(3, "f4"),)], {}),
    ("Pad", [X, (ints(1, 2),), None, (ints(-1),)], {}),
    *(
        ("Pad", [X, (ints(0, 1, 2, 0, 2, 1),)], {"mode": mode})
        for mode in ("edge", "reflect", "wrap")
    ),
    ("Expand", [normal(3, 1), (ints(2, 1, 4),)], {}),
    ("Tile", [X, (ints(2, 1, 3),)], {}),
    ("Trilu", [normal(2, 4, 5)], {"upper": 0}),
    ("Trilu", [normal(2, 4, 5), (np.array(1),)], {}),
    ("DepthToSpace", [IMAGE], {"blocksize": 2}),
    ("DepthToSpace", [IMAGE], {"blocksize": 2, "mode": "CRD"}),
    ("SpaceToDepth", [IMAGE[:, :, :8]], {"blocksize": 2}),
    *(
        (
            "Resize",
            [IMAGE, None, (np.array([1, 1, *scales], "f4"),)],
            {"mode": mode, "coordinate_transformation_mode": places},
        )
        for mode in ("nearest", "linear")
        for places in ("half_pixel", "asymmetric", "align_corners")
        for scales in ([2, 2], [1.5, 0.5])
        if places != "align_corners" or scales == [2, 2]  # see test_onnx_reference.py
    ),
    (
        "Resize",
        [IMAGE, None, (np.array([1, 1, 2, 3], "f4"),)],
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    (
        "Resize",
        [IMAGE, None, None, (ints(2, 4, 5, 11),)],
        {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
    ),
]


def label(case: Case) -> str:
    name, _, attributes = case
    return "-".join((name, *(f"{k}={v}" for k, v in attributes.items())))


def case_model(case: Case) -> tuple[bytes, Arrays]:
    """The serialized model of a case, and its inputs."""
    name, operands, attributes = case
    names = ["" if v is None else f"x{i}" for i, v in enumerate(operands)]
    named = dict(zip(names, operands, strict=True))
    inputs = {n: v for n, v in named.items() if isinstance(v, np.ndarray)}
    constants = {n: v[0] for n, v in named.items() if isinstance(v, tuple)}
    node = helper.make_node(name, names, ["y"], **attributes)
    return model_of([node], inputs, ["y"], constants), inputs
