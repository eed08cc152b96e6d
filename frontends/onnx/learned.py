"""Converts classical machine learning models (`ai.onnx.ml`) to tgraph: encoders,
linear models, support vector regressions and tree ensembles, as exported from
scikit-learn.

Classes are integers, and results are tensors. All trees are evaluated together, from
their roots: each iteration of a loop takes one step in every tree.

Does not: support classification by SVMs, strings, or dictionaries (`ZipMap`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from onnx import numpy_helper
from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType, f32, i32, i64
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.shaping import ConcatenateOp
from ..builder import shape_of, type_of
from ..formulas import compare, index_of, softmax
from ..indices import from_front, take_along
from ..loops import Loop
from ..operators import Value
from ..unsupported import Unsupported
from .node import Conversion, OnnxNode


def _rows(n: OnnxNode) -> SSAValue:
    """The input as f32, with one row of features per example."""
    x = n.convert(n.value(0), f32)
    return x if len(shape_of(x)) == 2 else n.reshape(x, [1, *shape_of(x)])


def _floats(n: OnnxNode, name: str) -> Array:
    return np.array(n.attributes.get(name, ()), np.float32)


def _numbers(n: OnnxNode, name: str) -> Array:
    return np.array(n.integers(name, ()), np.int64)


def _scaler(n: OnnxNode) -> Sequence[Value]:
    shifted = n.apply(
        e.SubtractOp, n.convert(n.value(0), f32), n.constant(_floats(n, "offset"))
    )
    return [n.apply(e.MultiplyOp, shifted, n.constant(_floats(n, "scale")))]


def _normalizer(n: OnnxNode) -> Sequence[Value]:
    """Divides each row by its norm. Rows of zeros remain zero."""
    x, norm = _rows(n), n.text("norm", "MAX")
    n.expect("norm", norm, "L1", "L2")
    if norm == "L1":
        total = n.reduce("add", n.emit(e.AbsOp, x), [1], keep=True)
    else:
        squares = n.reduce("add", n.apply(e.MultiplyOp, x, x), [1], keep=True)
        total = n.emit(e.SqrtOp, squares)
    total = n.apply(e.SelectOp, compare(n, total, "EQ", 0), 1, total)
    return [n.apply(e.DivideOp, x, total)]


def _imputer(n: OnnxNode) -> Sequence[Value]:
    """Replaces one number, or NaN, by another number for each feature."""
    x = n.value(0)
    if isinstance(type_of(x).element_type, IntegerType):
        old, new = n.integer("replaced_value_int64", 0), "imputed_value_int64s"
        values = _numbers(n, new)
    else:
        old, new = n.number("replaced_value_float", 0.0), "imputed_value_floats"
        values = _floats(n, new)
    if values.size not in (1, shape_of(x)[-1]):
        raise Unsupported(f"with {values.size} numbers in {new!r}")
    replaced = compare(n, x, "NE", x) if old != old else compare(n, x, "EQ", old)
    by = n.convert(n.constant(values), type_of(x).element_type)
    return [n.apply(e.SelectOp, replaced, by, x)]


def _is_one_of(n: OnnxNode, x: SSAValue, keys: Array) -> SSAValue:
    """Whether each number equals each key, along a further dimension."""
    wide = n.reshape(x, [*shape_of(x), 1])
    return compare(n, wide, "EQ", n.convert(n.constant(keys), type_of(x).element_type))


def _one_hot(n: OnnxNode) -> Sequence[Value]:
    if n.attributes.get("cats_strings"):
        raise Unsupported("with categories that are texts, expected integers,")
    n.expect("zeros", n.integer("zeros", 1), 1)
    return [n.convert(_is_one_of(n, n.value(0), _numbers(n, "cats_int64s")), f32)]


def _binarizer(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    above = compare(n, x, "GT", n.number("threshold", 0.0))
    return [n.convert(above, type_of(x).element_type)]


def _vectorizer(n: OnnxNode) -> Sequence[Value]:
    """Joins the features of all inputs, as f32."""
    rows = [_rows(replace(n, inputs=[x])) for x in n.inputs]
    return [n.emit(ConcatenateOp, *rows, dimension=IntegerAttr(1, i64))]


def _table(n: OnnxNode, name: str) -> Array:
    """The numbers of the attributes `name`, in the type that the node specifies."""
    if (tensor := n.attributes.get(f"{name}_tensor")) is not None:
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind in "if":
            return array.reshape(-1)
    elif f"{name}_floats" in n.attributes:
        return _floats(n, f"{name}_floats")
    elif f"{name}_int64s" in n.attributes:
        return _numbers(n, f"{name}_int64s")
    raise Unsupported(f"with {name} that are texts, expected numbers,")


def _label_encoder(n: OnnxNode) -> Sequence[Value]:
    """Looks up numbers in a table. Others become the default."""
    x, keys, values = n.value(0), _table(n, "keys"), _table(n, "values")
    if (tensor := n.attributes.get("default_tensor")) is not None:
        default = numpy_helper.to_array(tensor).item()
    elif values.dtype.kind == "i":
        default = n.integer("default_int64", -1)
    else:
        default = n.number("default_float", -0.0)
    is_key = _is_one_of(n, x, keys)
    last = len(shape_of(x))
    place = index_of(n, "maximum", n.convert(is_key, i32), last)
    found = n.take(n.constant(values), place, 0)
    return [n.apply(e.SelectOp, n.reduce("or", is_key, [last]), found, default)]


def _features(n: OnnxNode) -> Sequence[Value]:
    """Selects features along the last dimension. A vector is treated as one row."""
    x = n.value(0)
    x = x if len(shape_of(x)) > 1 else n.reshape(x, [1, *shape_of(x)])
    axis = len(shape_of(x)) - 1
    places = n.value(1)
    count = int(np.prod(shape_of(places)))
    places = from_front(n, n.reshape(places, [count]), [shape_of(x)[axis]])
    return [n.take(x, places, axis)]


def _linear(n: OnnxNode, rows: int) -> SSAValue:
    """A linear model with `rows` rows of coefficients, and optional intercepts."""
    x = _rows(n)
    weights = _floats(n, "coefficients").reshape(rows, shape_of(x)[1])
    y = n.dot(x, n.constant(weights), ([1], [1]))
    intercepts = _floats(n, "intercepts")
    return n.apply(e.AddOp, y, n.constant(intercepts)) if intercepts.size else y


def _finished(n: OnnxNode, scores: SSAValue) -> SSAValue:
    after = n.text("post_transform", "NONE")
    n.expect("post_transform", after, "NONE", "LOGISTIC", "SOFTMAX")
    if after == "SOFTMAX":
        return softmax(n, scores, 1)
    return n.emit(e.LogisticOp, scores) if after == "LOGISTIC" else scores


def _linear_regressor(n: OnnxNode) -> Sequence[Value]:
    return [_finished(n, _linear(n, n.integer("targets", 1)))]


def _kernel(n: OnnxNode, x: SSAValue, vectors: Array) -> SSAValue:
    """The kernel of an SVM for each row of `x` and each of its vectors."""
    kind = n.text("kernel_type", "LINEAR")
    gamma, start, degree = _floats(n, "kernel_params").tolist() or (0.0, 0.0, 0.0)
    if kind == "RBF":  # of distances, not their parts, which would cancel
        rows = n.reshape(x, [shape_of(x)[0], 1, shape_of(x)[1]])
        apart = n.apply(e.SubtractOp, rows, n.constant(vectors))
        squares = n.reduce("add", n.apply(e.MultiplyOp, apart, apart), [2])
        return n.emit(e.ExponentialOp, n.apply(e.MultiplyOp, squares, -gamma))
    y = n.dot(x, n.constant(vectors), ([1], [1]))
    if kind == "LINEAR":
        return y
    y = n.apply(e.AddOp, n.apply(e.MultiplyOp, y, gamma), start)
    n.expect("kernel_type", kind, "POLY", "RBF", "SIGMOID", "LINEAR")
    return n.emit(e.TanhOp, y) if kind == "SIGMOID" else n.apply(e.PowerOp, y, degree)


def _svm_regressor(n: OnnxNode) -> Sequence[Value]:
    """With `one_class`, the result is 1 for positive sums, and otherwise -1."""
    x, count = _rows(n), n.integer("n_supports", 0)
    coefficients = _floats(n, "coefficients")
    if count:
        vectors = _floats(n, "support_vectors").reshape(count, shape_of(x)[1])
        kernel = _kernel(n, x, vectors)
    else:
        kernel = x
    total = n.dot(kernel, n.constant(coefficients.reshape(1, -1)), ([1], [1]))
    y = n.apply(e.AddOp, total, float(_floats(n, "rho")[0]))
    if n.integer("one_class", 0):
        one = n.splat(1, type_of(y))
        y = n.apply(e.SelectOp, compare(n, y, "GT", 0), one, -1)
    return [_finished(n, y)]


def _classes(n: OnnxNode, name: str) -> Array:
    if n.attributes.get("classlabels_strings"):
        raise Unsupported("with string labels, expected integers")
    return _numbers(n, name)


def _labeled(n: OnnxNode, scores: SSAValue, labels: Array) -> Sequence[Value]:
    """The class with the highest score, and the scores."""
    if shape_of(scores)[1] != len(labels) or len(labels) < 2:
        raise Unsupported("with one score for two classes, expected one for each")
    best = index_of(n, "maximum", scores, 1)
    return [n.take(n.constant(labels), best, 0), _finished(n, scores)]


def _linear_classifier(n: OnnxNode) -> Sequence[Value]:
    labels = _classes(n, "classlabels_ints")
    rows = max(_floats(n, "intercepts").size, 1)
    return _labeled(n, _linear(n, rows), labels)


# Trees

_MODES = {
    b"BRANCH_GT": "GT",
    b"BRANCH_GTE": "GE",
    b"BRANCH_LEQ": "LE",
    b"BRANCH_LT": "LT",
}
_LEAF = b"LEAF"


def _trees(n: OnnxNode, outputs: str, count: int) -> SSAValue:
    """The sums of the leaves that each example reaches in all trees, as a matrix of
    examples x `count`. Each leaf has `count` numbers."""
    trees, numbers = _numbers(n, "nodes_treeids"), _numbers(n, "nodes_nodeids")
    place = {key: k for k, key in enumerate(zip(trees, numbers, strict=True))}
    modes: list[bytes] = list(n.attributes["nodes_modes"])
    inner = {mode for mode in modes if mode != _LEAF}
    n.expect("nodes_modes", b"".join(sorted(inner)[1:]), b"")
    own = np.arange(len(modes))
    is_leaf = np.array([mode == _LEAF for mode in modes])

    def places(name: str) -> Array:
        """The successor of each node, which for a leaf is the leaf itself."""
        to = zip(trees, _numbers(n, name), is_leaf, own, strict=True)
        return np.array([k if leaf else place[t, i] for t, i, leaf, k in to])

    yes, no = places("nodes_truenodeids"), places("nodes_falsenodeids")
    roots, depth = _roots_and_depth(trees, yes, no)
    values = np.zeros((len(modes), count), np.float32)
    leaves = zip(
        *(_numbers(n, f"{outputs}_{x}") for x in ("treeids", "nodeids", "ids")),
        _floats(n, f"{outputs}_weights"),
        strict=True,
    )
    for tree, number, output, weight in leaves:
        values[place[tree, number], output] += weight

    x = _rows(n)
    tables = [yes, no, _numbers(n, "nodes_featureids")]
    yes, no, features = map(n.constant, np.where(is_leaf, [own, own, 0 * own], tables))
    thresholds = n.constant(_floats(n, "nodes_values"))
    missing = n.integers("nodes_missing_value_tracks_true", ())
    start = n.broadcast(n.constant(roots), [shape_of(x)[0], len(roots)])
    loop = Loop(n)
    step, at = map(loop.carry, (n.splat(0, TensorType(i64, [])), start))
    body = loop.body
    read = take_along(body, x, body.take(features, at, 0), 1)
    mode = _MODES[min(inner, default=b"BRANCH_LEQ")]
    is_yes = compare(body, read, mode, body.take(thresholds, at, 0))
    if any(missing):
        follows = body.take(n.constant(np.array(missing, bool)), at, 0)
        is_nan = compare(body, read, "NE", read)
        is_yes = body.apply(e.OrOp, is_yes, body.apply(e.AndOp, is_nan, follows))
    sides = (body.take(table, at, 0) for table in (yes, no))
    _, at = loop.close(
        [body.apply(e.AddOp, step, 1), body.apply(e.SelectOp, is_yes, *sides)],
        lambda n, carried: compare(n, carried[0], "LT", depth),
    )
    total = n.reduce("add", n.take(n.constant(values), at, 0), [1])
    base = _floats(n, "base_values")
    return n.apply(e.AddOp, total, n.constant(base)) if base.size else total


def _roots_and_depth(trees: Array, yes: Array, no: Array) -> tuple[Array, int]:
    """The nodes without predecessors, one for each tree; and the depth of the deepest
    tree, in steps.

    Raises `Unsupported` for trees without exactly one root, and for cycles.
    """
    inner = yes != np.arange(len(yes))
    led = {*yes[inner].tolist(), *no[inner].tolist()}
    roots = np.array([k for k in range(len(yes)) if k not in led], np.int64)
    if len(roots) != len(set(trees.tolist())):
        raise Unsupported("with trees that do not have exactly one root each")
    reached, depth = roots, 0
    while inner[reached].any():
        if depth > len(yes):
            raise Unsupported("with a cycle of nodes")
        reached = np.unique([*yes[reached], *no[reached]])
        depth += 1
    return roots, depth


def _tree_regressor(n: OnnxNode) -> Sequence[Value]:
    how = n.text("aggregate_function", "SUM")
    n.expect("aggregate_function", how, "SUM", "AVERAGE")
    total = _trees(n, "target", n.integer("n_targets", 1))
    if how == "AVERAGE":
        total = n.apply(e.DivideOp, total, len({*n.integers("nodes_treeids", ())}))
    return [_finished(n, total)]


def _tree_classifier(n: OnnxNode) -> Sequence[Value]:
    labels = _classes(n, "classlabels_int64s")
    scores, scored = _trees(n, "class", len(labels)), {*n.integers("class_ids", ())}
    if len(scored) > 1:
        return _labeled(n, scores, labels)
    # One score for two classes: the second class's probability, or its signed score.
    if scored != {0} or len(labels) != 2:
        raise Unsupported(f"with scores of class {max(scored, default=0)} only")
    score = n.part(scores, 1, 0, 1)
    is_probability = (_floats(n, "class_weights") >= 0).all()
    if is_probability:
        n.expect("post_transform", n.text("post_transform", "NONE"), "NONE")
    is_second = compare(n, score, "GT", 0.5 if is_probability else 0.0)
    own = [n.constant(label.reshape(1, 1)) for label in labels]
    label = n.apply(e.SelectOp, is_second, own[1], own[0])
    whole = n.full(int(is_probability), f32, ())
    first = n.apply(e.SubtractOp, whole, score)
    both = n.emit(ConcatenateOp, first, score, dimension=IntegerAttr(1, i64))
    return [n.reshape(label, [shape_of(score)[0]]), _finished(n, both)]


CONVERSIONS: Mapping[str, Conversion] = {
    f"ai.onnx.ml.{name}": conversion
    for name, conversion in {
        "ArrayFeatureExtractor": _features,
        "Binarizer": _binarizer,
        "FeatureVectorizer": _vectorizer,
        "Imputer": _imputer,
        "LabelEncoder": _label_encoder,
        "LinearClassifier": _linear_classifier,
        "LinearRegressor": _linear_regressor,
        "Normalizer": _normalizer,
        "OneHotEncoder": _one_hot,
        "SVMRegressor": _svm_regressor,
        "Scaler": _scaler,
        "TreeEnsembleClassifier": _tree_classifier,
        "TreeEnsembleRegressor": _tree_regressor,
    }.items()
}
