"""Converts classical machine learning models (`ai.onnx.ml`) to tgraph: encoders,
linear models, support vector machines and tree ensembles, as exported from
scikit-learn, also in the form of opset 5.

Classes are integers, and results are tensors. All trees are evaluated together, from
their roots: each iteration of a loop takes one step in every tree.

Does not: support probabilities of SVMs, strings, or dictionaries (`ZipMap`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import combinations
from typing import NamedTuple

import numpy as np
from onnx import numpy_helper
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    IntegerAttr,
    IntegerType,
    TensorType,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ...dialects.sizes.dims import is_dynamic
from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.shaping import ConcatenateOp
from ...support.ranges import indices
from ..builder import shape_of, type_of
from ..formulas import compare, index_of, softmax
from ..indices import from_front, take_along
from ..loops import Loop
from ..operators import Value
from ..unsupported import Unsupported
from .node import Conversion, OnnxNode


def _rows(n: OnnxNode, element: Float32Type | Float64Type = f32) -> SSAValue:
    """The input as floats, with one row of features per example."""
    x = n.convert(n.value(0), element)
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
        raise Unsupported("with categories that are texts, expected integers")
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
    raise Unsupported(f"with {name} that are texts, expected numbers")


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


def _svm_classifier(n: OnnxNode) -> Sequence[Value]:
    """Each pair of classes has a score, which gives one of them a vote. The result is
    the class with the most votes, and the scores; for two classes, the score of each.
    """
    labels, counts = _classes(n, "classlabels_ints"), _numbers(n, "vectors_per_class")
    if _floats(n, "prob_a").size:
        raise Unsupported("with probabilities (prob_a), expected scores")
    if len(counts) != len(labels) or len(labels) < 2:
        what = f"with {len(labels)} integer labels"
        raise Unsupported(f"{what} for {len(counts)} classes of support vectors")
    total, coefficients = int(counts.sum()), _floats(n, "coefficients")
    if (coefficients >= 0).all():  # onnxruntime then finds another class
        raise Unsupported("with coefficients that are all positive")
    coefficients = coefficients.reshape(len(labels) - 1, total)
    ends = np.cumsum(counts)
    own = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    pairs = list(combinations(range(len(labels)), 2))
    weights = np.zeros((len(pairs), total), np.float32)
    gains = np.zeros((len(pairs), len(labels)), np.float32)
    votes = np.zeros(len(labels), np.float32)
    for pair, (one, other) in enumerate(pairs):
        weights[pair, own[one]] = coefficients[other - 1, own[one]]
        weights[pair, own[other]] = coefficients[one, own[other]]
        gains[pair, one], gains[pair, other] = 1, -1
        votes[other] += 1
    x = _rows(n)
    vectors = _floats(n, "support_vectors").reshape(total, shape_of(x)[1])
    scores = n.dot(_kernel(n, x, vectors), n.constant(weights), ([1], [1]))
    scores = n.apply(e.AddOp, scores, n.constant(_floats(n, "rho")))
    is_first = n.convert(compare(n, scores, "GT", 0), f32)
    gained = n.dot(is_first, n.constant(gains), ([1], [0]))
    best = index_of(n, "maximum", n.apply(e.AddOp, gained, n.constant(votes)), 1)
    if len(pairs) == 1:
        # Of SOFTMAX, onnxruntime makes something else than the standard.
        after = n.text("post_transform", "NONE")
        n.expect("post_transform", after, "NONE", "LOGISTIC")
        both = n.emit(e.NegateOp, scores), scores
        scores = n.emit(ConcatenateOp, *both, dimension=IntegerAttr(1, i64))
    return [n.take(n.constant(labels), best, 0), _finished(n, scores)]


def _linear_classifier(n: OnnxNode) -> Sequence[Value]:
    labels = _classes(n, "classlabels_ints")
    rows = max(_floats(n, "intercepts").size, 1)
    return _labeled(n, _linear(n, rows), labels)


# Trees

_MODES = {
    b"BRANCH_EQ": "EQ",
    b"BRANCH_GT": "GT",
    b"BRANCH_GTE": "GE",
    b"BRANCH_LEQ": "LE",
    b"BRANCH_LT": "LT",
    b"BRANCH_NEQ": "NE",
}
_LEAF = b"LEAF"
_MEMBER = "is one of"
_NUMBERED_MODES = ("LE", "LT", "GE", "GT", "EQ", "NE", _MEMBER)


class _Trees(NamedTuple):
    """The nodes of all trees. A leaf follows itself."""

    yes: Array  # the node that follows if the comparison is true
    no: Array
    modes: Sequence[str]  # comparisons of a feature with a threshold; "" for a leaf
    features: Array
    thresholds: Array
    members: Array  # nodes x numbers: the set for the mode `_MEMBER`, filled with NaN
    is_yes_for_nan: Array
    roots: Array  # one for each tree
    values: Array  # nodes x results


def _reached(n: OnnxNode, trees: _Trees) -> SSAValue:
    """The values of the leaves that each example reaches: examples x trees x results.

    Raises `Unsupported` for cycles, and for nodes without one of the attributes or with
    a feature that examples lack.
    """
    x = _rows(n, f64 if trees.values.dtype == np.float64 else f32)
    of_nodes = (table for table in trees if table is not trees.roots)
    if len({len(table) for table in of_nodes}) > 1:
        raise Unsupported("with attributes of nodes that have different lengths")
    if not is_dynamic(width := shape_of(x)[1]):
        _check_range("feature", trees.features, width)
    depth = _depth(trees)
    yes, no, features = map(n.constant, (trees.yes, trees.no, trees.features))
    start = n.broadcast(n.constant(trees.roots), [shape_of(x)[0], len(trees.roots)])
    loop = Loop(n)
    step, at = map(loop.carry, (n.splat(0, TensorType(i64, [])), start))
    body = loop.body
    read = take_along(body, x, body.take(features, at, 0), 1)
    is_yes = _compared(body, trees, at, read)
    if trees.is_yes_for_nan.any():
        follows = body.take(n.constant(trees.is_yes_for_nan), at, 0)
        is_nan = compare(body, read, "NE", read)
        is_yes = body.apply(e.OrOp, is_yes, body.apply(e.AndOp, is_nan, follows))
    sides = (body.take(table, at, 0) for table in (yes, no))
    _, at = loop.close(
        [body.apply(e.AddOp, step, 1), body.apply(e.SelectOp, is_yes, *sides)],
        lambda n, carried: compare(n, carried[0], "LT", depth),
    )
    return n.take(n.constant(trees.values), at, 0)


def _compared(body: OnnxNode, trees: _Trees, at: SSAValue, read: SSAValue) -> SSAValue:
    """Whether the comparisons of the nodes `at` are true for the features `read`."""

    def of_nodes(table: Array) -> SSAValue:
        return body.take(body.constant(table), at, 0)

    found: list[SSAValue] = []
    for mode in (modes := sorted({*trees.modes} - {""}) or ["LE"]):
        if mode == _MEMBER:
            wide = body.reshape(read, [*shape_of(read), 1])
            is_member = compare(body, wide, "EQ", of_nodes(trees.members))
            found.append(body.reduce("or", is_member, [2]))
        else:
            found.append(compare(body, read, mode, of_nodes(trees.thresholds)))
        if len(modes) > 1:
            own = of_nodes(np.array([other == mode for other in trees.modes]))
            found.append(body.apply(e.AndOp, found.pop(), own))
    return reduce(partial(body.apply, e.OrOp), found)


def _depth(trees: _Trees) -> int:
    """The depth of the deepest tree, in steps."""
    inner = np.array([mode != "" for mode in trees.modes])
    reached, depth = trees.roots, 0
    while inner[reached].any():
        if depth > len(trees.yes):
            raise Unsupported("with a cycle of nodes")
        reached = np.unique([*trees.yes[reached], *trees.no[reached]])
        depth += 1
    return depth


def _trees(n: OnnxNode, outputs: str, count: int) -> _Trees:
    """The trees of an ensemble whose leaves are nodes. Each has `count` numbers.

    Raises `Unsupported` for trees without exactly one root.
    """
    trees, numbers = _numbers(n, "nodes_treeids"), _numbers(n, "nodes_nodeids")
    place = {key: k for k, key in enumerate(zip(trees, numbers, strict=True))}
    modes: list[bytes] = list(n.attributes["nodes_modes"])
    for mode in {*modes} - {_LEAF}:
        n.expect("nodes_modes", mode, *_MODES)
    own = np.arange(len(modes))
    is_leaf = np.array([mode == _LEAF for mode in modes])

    def places(name: str) -> Array:
        to = zip(trees, _numbers(n, name), is_leaf, own, strict=True)
        return np.array([k if leaf else place[t, i] for t, i, leaf, k in to])

    yes, no = places("nodes_truenodeids"), places("nodes_falsenodeids")
    led = {*yes[yes != own].tolist(), *no[yes != own].tolist()}
    roots = np.array([k for k in range(len(yes)) if k not in led], np.int64)
    if len(roots) != len(set(trees.tolist())):
        raise Unsupported("with trees that do not have exactly one root each")
    _check_range("target", _numbers(n, f"{outputs}_ids"), count)
    values = np.zeros((len(modes), count), np.float32)
    leaves = zip(
        *(_numbers(n, f"{outputs}_{x}") for x in ("treeids", "nodeids", "ids")),
        _floats(n, f"{outputs}_weights"),
        strict=True,
    )
    for tree, number, output, weight in leaves:
        values[place[tree, number], output] += weight
    missing = n.integers("nodes_missing_value_tracks_true", ()) or [0] * len(modes)
    return _Trees(
        yes,
        no,
        [_MODES.get(mode, "") for mode in modes],
        np.where(is_leaf, 0, _numbers(n, "nodes_featureids")),
        _floats(n, "nodes_values"),
        np.empty((len(modes), 0), np.float32),
        np.array(missing, bool),
        roots,
        values,
    )


def _separate_leaves(n: OnnxNode, count: int) -> _Trees:
    """The trees of a `TreeEnsemble`, which numbers nodes and leaves separately. Here,
    the leaves follow the nodes."""
    modes = _tensor(n, "nodes_modes").tolist()
    if wrong := {*modes}.difference(range(len(_NUMBERED_MODES))):
        what = f"nodes_modes = {min(wrong)}"
        raise Unsupported(f"with {what}, expected {indices(len(_NUMBERED_MODES))}")
    targets, weights = _numbers(n, "leaf_targetids"), _tensor(n, "leaf_weights")
    inner, own = len(modes), np.arange(len(modes) + len(targets))
    leaves = own[inner:]

    def places(side: str) -> Array:
        is_leaf = _numbers(n, f"nodes_{side}leafs").astype(bool)
        to = _numbers(n, f"nodes_{side}nodeids")
        _check_range("leaf", to[is_leaf], len(leaves))
        _check_range("node", to[~is_leaf], inner)
        return np.where(is_leaf, to + inner, to)

    yes, no, zeros = places("true"), places("false"), np.zeros(len(leaves), np.int64)
    roots = _numbers(n, "tree_roots")
    _check_range("node", roots, inner)
    _check_range("target", targets, count)
    is_alone = (yes == no) & (yes >= inner)  # a tree of one leaf
    values = np.zeros((len(own), count), weights.dtype)
    values[leaves, targets] = weights
    sets = _sets(n, modes, len(own)).astype(weights.dtype)
    missing = n.integers("nodes_missing_value_tracks_true", ()) or [0] * inner
    return _Trees(
        np.concatenate([yes, leaves]),
        np.concatenate([no, leaves]),
        [*(_NUMBERED_MODES[mode] for mode in modes), *[""] * len(leaves)],
        np.concatenate([_numbers(n, "nodes_featureids"), zeros]),
        np.concatenate([_tensor(n, "nodes_splits"), zeros]).astype(weights.dtype),
        sets,
        np.concatenate([missing, zeros]).astype(bool),
        np.where(is_alone[roots], yes[roots], roots),
        values,
    )


def _check_range(what: str, numbers: Array, end: int) -> None:
    for number in numbers.tolist():
        if not 0 <= number < end:
            raise Unsupported(f"with {what} {number}, expected {indices(max(end, 0))}")


def _sets(n: OnnxNode, modes: Sequence[int], count: int) -> Array:
    """The set of each node, of `count`, that tests whether a feature is in a set."""
    nodes = [k for k, mode in enumerate(modes) if _NUMBERED_MODES[mode] == _MEMBER]
    sets: list[list[float]] = [[]]
    for number in _tensor(n, "membership_values") if nodes else ():
        if np.isnan(number):  # ends a set
            sets.append([])
        else:
            sets[-1].append(number)
    if len(sets) - 1 != len(nodes):
        raise Unsupported(f"with {len(sets) - 1} sets, expected {len(nodes)}")
    table = np.full((count, max(map(len, sets))), np.nan)
    for node, members in zip(nodes, sets, strict=False):
        table[node, : len(members)] = members
    return table


def _tensor(n: OnnxNode, name: str) -> Array:
    return numpy_helper.to_array(n.attributes[name]).reshape(-1)


def _aggregated(n: OnnxNode, trees: _Trees, how: str) -> SSAValue:
    """The sum, average, minimum or maximum over the trees."""
    found = _reached(n, trees)
    if trees.values.shape[1] > 1:  # a tree has no number for some of the results
        n.expect("aggregate_function", how, "SUM", "AVERAGE")
    kinds = {"MIN": "minimum", "MAX": "maximum"}
    n.expect("aggregate_function", how, "SUM", "AVERAGE", *kinds)
    total = n.reduce(kinds.get(how, "add"), found, [1])
    if how == "AVERAGE":
        total = n.apply(e.DivideOp, total, len(trees.roots))
    base = _floats(n, "base_values")
    return n.apply(e.AddOp, total, n.constant(base)) if base.size else total


def _tree_regressor(n: OnnxNode) -> Sequence[Value]:
    trees = _trees(n, "target", n.integer("n_targets", 1))
    how = n.text("aggregate_function", "SUM")
    return [_finished(n, _aggregated(n, trees, how))]


def _tree_ensemble(n: OnnxNode) -> Sequence[Value]:
    trees = _separate_leaves(n, n.integer("n_targets", 1))
    how = n.integer("aggregate_function", 1)
    n.expect("aggregate_function", how, *range(4))
    # 1 is SOFTMAX in the standard, and LOGISTIC in onnxruntime.
    n.expect("post_transform", n.integer("post_transform", 0), 0)
    return [_aggregated(n, trees, ("AVERAGE", "SUM", "MIN", "MAX")[how])]


def _tree_classifier(n: OnnxNode) -> Sequence[Value]:
    labels = _classes(n, "classlabels_int64s")
    trees = _trees(n, "class", len(labels))
    scores, scored = _aggregated(n, trees, "SUM"), {*n.integers("class_ids", ())}
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
        "SVMClassifier": _svm_classifier,
        "SVMRegressor": _svm_regressor,
        "Scaler": _scaler,
        "TreeEnsemble": _tree_ensemble,
        "TreeEnsembleClassifier": _tree_classifier,
        "TreeEnsembleRegressor": _tree_regressor,
    }.items()
}
