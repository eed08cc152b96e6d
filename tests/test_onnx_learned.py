"""Tests linear models and trees of `ai.onnx.ml`: onnxruntime's values, and errors."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

ML = "ai.onnx.ml"
X = np.random.default_rng(5).standard_normal((6, 3)).astype("f4")
X[1, 0], X[2] = np.nan, 0

TREES: Mapping[str, Any] = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 2, 0, 0, 0, 1, 0, 0],
    "nodes_values": [0.1, -0.2, 0.0, 0.0, 0.0, 0.3, 0.0, 0.0],
    "nodes_modes": [*["BRANCH_LEQ"] * 2, *["LEAF"] * 3, "BRANCH_LEQ", *["LEAF"] * 2],
    "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
    "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 0, 0, 0],
}


def leaves(what: str, ids: list[int], weights: list[float]) -> dict[str, Any]:
    return {
        f"{what}_treeids": [0, 0, 0, 1, 1],
        f"{what}_nodeids": [2, 3, 4, 1, 2],
        f"{what}_ids": ids,
        f"{what}_weights": weights,
    }


SHARES = leaves("class", [0] * 5, [0.4, 0.1, 0.3, 0.5, 0.2])
MARGINS = leaves("class", [0] * 5, [0.4, -0.1, 0.3, -0.5, 0.2])
BOTH = leaves("class", [0, 1, 2, 1, 0], [0.4, 0.1, 0.3, 0.5, 0.2])
LABELS = {"classlabels_int64s": [3, 7]}

SVM: Mapping[str, Any] = {
    "coefficients": [0.5, -1.0, 2.0],
    "support_vectors": [0.1, 0.2, 0.3, -1.0, 0.5, 0.0, 2.0, 1.0, -1.0],
    "n_supports": 3,
    "rho": [0.25],
    "kernel_params": [0.5, 0.1, 3.0],
}

SVC: Mapping[str, Any] = {
    **{name: value for name, value in SVM.items() if name != "n_supports"},
    "vectors_per_class": [1, 2],
    "classlabels_ints": [3, 7],
    "kernel_type": "RBF",
}
SVC3: Mapping[str, Any] = {
    **SVC,
    "vectors_per_class": [1, 1, 1],
    "classlabels_ints": [3, 7, 9],
    "coefficients": [0.5, -1.0, 2.0, 1.5, 0.3, -0.7],
    "rho": [0.25, -0.5, 0.1],
}

CASES: list[tuple[str, Mapping[str, Any]]] = [
    ("Scaler", {"offset": [0.5, 0.0, 1.0], "scale": [2.0, 3.0, 4.0]}),
    ("Normalizer", {"norm": "L1"}),
    ("Binarizer", {"threshold": 0.5}),
    ("Imputer", {"imputed_value_floats": [9.0, 8, 7], "replaced_value_float": 0.0}),
    ("Imputer", {"imputed_value_floats": [5.0], "replaced_value_float": np.nan}),
    *(
        ("SVMRegressor", {**SVM, "kernel_type": kind})
        for kind in ("LINEAR", "POLY", "RBF", "SIGMOID")
    ),
    ("SVMRegressor", {**SVM, "kernel_type": "RBF", "one_class": 1}),
    ("SVMRegressor", {**SVM, "n_supports": 0, "coefficients": [1.0, 2, 3]}),
    ("SVMClassifier", SVC),
    ("SVMClassifier", {**SVC, "post_transform": "LOGISTIC", "kernel_type": "POLY"}),
    ("SVMClassifier", SVC3),
    ("Normalizer", {"norm": "L2"}),
    (
        "LinearRegressor",
        {"coefficients": [1.0, 2, 3, 4, 5, 6], "targets": 2, "intercepts": [0.5, 1.0]},
    ),
    (
        "LinearClassifier",
        {
            "coefficients": [1.0, 2, 3, -1, 5, 6],
            "intercepts": [0.5, 1.0],
            "classlabels_ints": [3, 7],
            "post_transform": "SOFTMAX",
        },
    ),
    (
        "TreeEnsembleRegressor",
        {
            **TREES,
            **leaves("target", [0, 1, 0, 1, 0], [1.0, 2.0, 3.0, 4.0, 5.0]),
            "n_targets": 2,
        },
    ),
    (
        "TreeEnsembleRegressor",
        {
            **TREES,
            **leaves("target", [0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]),
            "base_values": [0.5],
            "n_targets": 1,
        },
    ),
    ("TreeEnsembleClassifier", {**TREES, **SHARES, **LABELS}),
    (
        "TreeEnsembleClassifier",
        {**TREES, **MARGINS, **LABELS, "post_transform": "LOGISTIC"},
    ),
    ("TreeEnsembleClassifier", {**TREES, **BOTH, "classlabels_int64s": [3, 7, 9]}),
]


def model_of(
    name: str, attributes: Mapping[str, Any], element: int = TensorProto.FLOAT
) -> bytes:
    names = ["label", "y"] if name.endswith("Classifier") else ["y"]
    node = helper.make_node(name, ["x"], names, domain=ML, **attributes)
    whole = {"imputed_value_int64s", "values_int64s"} & attributes.keys()
    kinds = {"label": TensorProto.INT64, "y": TensorProto.FLOAT}
    if whole:
        kinds["y"] = TensorProto.INT64
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", element, X.shape)],
        [helper.make_tensor_value_info(name, kinds[name], None) for name in names],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return model.SerializeToString()


@pytest.mark.parametrize(("name", "attributes"), CASES, ids=str)
def test_values(name: str, attributes: Mapping[str, Any]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    data = model_of(name, attributes)
    x = X if "Tree" in name or name == "Imputer" else np.nan_to_num(X)
    want = runtime.InferenceSession(data).run(None, {"x": x})
    got = tensorplan.compile(tensorplan.from_onnx(data))(x)
    for have, expected in zip(got, want, strict=True):
        assert have.dtype == expected.dtype
        np.testing.assert_allclose(have, expected, 1e-5, 1e-6)


def ensemble(**changed: Any) -> bytes:
    """A `TreeEnsemble` of two trees: three comparisons, and a leaf alone."""
    numbers: dict[str, Any] = {
        "tree_roots": [0, 3],
        "nodes_featureids": [0, 2, 1, 0],
        "nodes_truenodeids": [1, 0, 3, 5],
        "nodes_trueleafs": [0, 1, 1, 1],
        "nodes_falsenodeids": [2, 1, 4, 5],
        "nodes_falseleafs": [0, 1, 1, 1],
        "nodes_missing_value_tracks_true": [1, 0, 0, 0],
        "leaf_targetids": [0, 1, 0, 0, 1, 1],
        "n_targets": 2,
    } | changed
    modes = numbers.pop("nodes_modes", [0, 3, 2, 0])
    float32, uint8 = TensorProto.FLOAT, TensorProto.UINT8
    node = helper.make_node(
        "TreeEnsemble",
        ["x"],
        ["y"],
        domain=ML,
        nodes_modes=helper.make_tensor("m", uint8, [len(modes)], modes),
        nodes_splits=helper.make_tensor("s", float32, [4], [0.1, -0.2, 0.0, 0.0]),
        membership_values=helper.make_tensor("v", float32, [3], [7, 0, np.nan]),
        leaf_weights=helper.make_tensor("w", float32, [6], [1.0, 2, 3, 4, 5, 6]),
        **numbers,
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", float32, X.shape)],
        [helper.make_tensor_value_info("y", float32, None)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 5)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return model.SerializeToString()


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"aggregate_function": 0},
        {"aggregate_function": 3, "n_targets": 1, "leaf_targetids": [0] * 6},
        {"nodes_modes": [1, 4, 5, 0]},
        {"nodes_modes": [0, 6, 2, 0]},
    ],
    ids=str,
)
def test_tree_ensembles_with_separate_leaves(changed: Mapping[str, Any]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    data = ensemble(**changed)
    (want,) = runtime.InferenceSession(data).run(None, {"x": X})
    (got,) = tensorplan.compile(tensorplan.from_onnx(data))(X)
    np.testing.assert_allclose(got, want, 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"nodes_modes": [7, 3, 2, 0]}, "nodes_modes = 7, expected 0 to 6"),
        ({"nodes_modes": [6, 3, 2, 6]}, "with 1 sets, expected 2"),
        ({"nodes_truenodeids": [1, 0, 9, 5]}, "leaf 9, expected 0 to 5"),
        ({"nodes_falsenodeids": [0, 1, 4, 5]}, "a cycle of nodes"),
        ({"nodes_truenodeids": [1, 1, 3, 5], "nodes_trueleafs": [0, 0, 1, 1]}, "cycle"),
        ({"nodes_featureids": [0, 2, 3, 0]}, "feature 3, expected 0 to 2"),
        ({"nodes_featureids": [0, 2, 1]}, "different lengths"),
        ({"tree_roots": [-1]}, "node -1, expected 0 to 3"),
        ({"leaf_targetids": [0, 1, 0, 0, 1, 2]}, "target 2, expected 0 to 1"),
        ({"post_transform": 2}, "post_transform = 2, expected 0"),
        ({"aggregate_function": 2}, "aggregate_function = 'MIN'"),
    ],
    ids=str,
)
def test_rejected_tree_ensembles(changed: Mapping[str, Any], message: str) -> None:
    with pytest.raises(LocatedError, match=message):
        tensorplan.from_onnx(ensemble(**changed))


def test_trees_with_several_comparisons() -> None:
    modes = ["BRANCH_LEQ", "BRANCH_GT", *["LEAF"] * 3, "BRANCH_NEQ", *["LEAF"] * 2]
    own = next(own for name, own in CASES if name == "TreeEnsembleRegressor")
    data = model_of("TreeEnsembleRegressor", {**own, "nodes_modes": modes})
    runtime = pytest.importorskip("onnxruntime")
    (want,) = runtime.InferenceSession(data).run(None, {"x": X})
    (got,) = tensorplan.compile(tensorplan.from_onnx(data))(X)
    np.testing.assert_allclose(got, want, 1e-5, 1e-6)


ENCODERS: list[tuple[str, Mapping[str, Any]]] = [
    ("OneHotEncoder", {"cats_int64s": [4, 1, 7]}),
    ("Imputer", {"imputed_value_int64s": [3], "replaced_value_int64": 7}),
    ("LabelEncoder", {"keys_int64s": [7, 1], "values_int64s": [3, 5]}),
    (
        "LabelEncoder",
        {"keys_int64s": [7, 1], "values_floats": [0.5, 2.0], "default_float": 9.0},
    ),
    ("FeatureVectorizer", {"inputdimensions": [3]}),
]


@pytest.mark.parametrize(("name", "attributes"), ENCODERS, ids=str)
def test_encoders(name: str, attributes: Mapping[str, Any]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    data = model_of(name, attributes, TensorProto.INT64)
    x = np.array([[1, 7, 4], [0, 4, 1]] * 3)
    (want,) = runtime.InferenceSession(data).run(None, {"x": x})
    (got,) = tensorplan.compile(tensorplan.from_onnx(data))(x)
    np.testing.assert_array_equal(got, want)
    assert got.dtype == want.dtype


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("TreeEnsembleRegressor", {"nodes_truenodeids": [1, 0, *[0] * 6]}, "root each"),
        ("TreeEnsembleRegressor", {"nodes_truenodeids": [9] * 8}, "not supported|not"),
        ("TreeEnsembleRegressor", {"nodes_values": [0.1]}, "different lengths"),
        (
            "TreeEnsembleRegressor",
            {"target_ids": [-1] * 5},
            "target -1, expected 0 to 1",
        ),
        ("Normalizer", {"norm": "MAX"}, "norm = 'MAX', expected 'L1' or 'L2'"),
        ("SVMClassifier", {"prob_a": [1.0], "prob_b": [0.5]}, "with probabilities"),
        ("SVMClassifier", {"coefficients": [1.0, 2, 3]}, "all positive"),
        ("SVMClassifier", {"post_transform": "SOFTMAX"}, "transform = 'SOFTMAX'"),
        ("SVMClassifier", {"vectors_per_class": [3]}, "2 integer labels for 1"),
        (
            "LinearClassifier",
            {"classlabels_strings": ["a", "b"]},
            "string labels",
        ),
    ],
)
def test_rejected_models(name: str, changed: Mapping[str, Any], message: str) -> None:
    attributes = next(own for case, own in CASES if case == name)
    with pytest.raises(LocatedError, match=message):
        tensorplan.from_onnx(model_of(name, {**attributes, **changed}))
