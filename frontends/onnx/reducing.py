"""ONNX's reductions, softmax and normalisations → tgraph."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import StringAttr, i64
from xdsl.ir import SSAValue

from tensorplan.dialects.tgraph import elementwise as e
from tensorplan.dialects.tgraph.base import ints, with_element
from tensorplan.dialects.tgraph.reducing import ReduceWindowOp
from tensorplan.frontends.onnx.elementwise import compare
from tensorplan.frontends.onnx.node import (
    Conversion,
    Node,
    Value,
    axis_of,
    element_type,
    shape_of,
    type_of,
)


def _reduction(name: str) -> Conversion:
    """`ReduceX`: what is done before, the reduction, what is done after."""

    def convert(n: Node) -> Sequence[Value]:
        x = n.value(0)
        axes = n.axes(1, len(shape_of(x)))
        if not axes:
            if n.integer("noop_with_empty_axes", 0):
                return [x]
            axes = list(range(len(shape_of(x))))
        keep = bool(n.integer("keepdims", 1))
        if name == "ReduceLogSumExp":
            return [_log_sum_exp(n, x, axes, keep)]
        if name in ("ReduceL2", "ReduceSumSquare"):
            x = n.apply(e.MultiplyOp, x, x)
        if name == "ReduceL1":
            x = n.emit(e.AbsOp, x)
        result = n.reduce(_KINDS[name], x, axes, keep=keep)
        if name == "ReduceMean":
            count = prod(shape_of(x)[axis] for axis in axes)
            result = n.apply(e.DivideOp, result, count)
        if name == "ReduceL2":
            result = n.emit(e.SqrtOp, result)
        if name == "ReduceLogSum":
            result = n.emit(e.LogOp, result)
        return [result]

    return convert


def _log_sum_exp(
    n: Node, x: SSAValue, axes: Sequence[int], keep: bool = True
) -> SSAValue:
    largest = n.reduce("maximum", x, axes, keep=True)
    powers = n.emit(e.ExponentialOp, n.apply(e.SubtractOp, x, largest))
    total = n.emit(e.LogOp, n.reduce("add", powers, axes, keep=True))
    result = n.apply(e.AddOp, total, largest)
    if keep:
        return result
    shape = [size for d, size in enumerate(shape_of(x)) if d not in axes]
    return n.reshape(result, shape)


def _softmax(n: Node) -> Sequence[Value]:
    x = n.value(0)
    axes = [axis_of(n.integer("axis", -1), len(shape_of(x)))]
    largest = n.reduce("maximum", x, axes, keep=True)
    powers = n.emit(e.ExponentialOp, n.apply(e.SubtractOp, x, largest))
    return [n.apply(e.DivideOp, powers, n.reduce("add", powers, axes, keep=True))]


def _log_softmax(n: Node) -> Sequence[Value]:
    x = n.value(0)
    axes = [axis_of(n.integer("axis", -1), len(shape_of(x)))]
    shifted = n.apply(e.SubtractOp, x, n.reduce("maximum", x, axes, keep=True))
    total = n.reduce("add", n.emit(e.ExponentialOp, shifted), axes, keep=True)
    return [n.apply(e.SubtractOp, shifted, n.emit(e.LogOp, total))]


def _arg(kind: str) -> Conversion:
    """The first (or last) index of the largest (or smallest) element."""

    def convert(n: Node) -> Sequence[Value]:
        x = n.value(0)
        axis = axis_of(n.integer("axis", 0), len(shape_of(x)))
        best = compare(n, x, "EQ", n.reduce(kind, x, [axis], keep=True))
        index = n.iota(with_element(type_of(x), i64), axis)
        last = bool(n.integer("select_last_index", 0))
        other = -1 if last else shape_of(x)[axis]
        found = n.apply(e.SelectOp, best, index, n.splat(other, type_of(index)))
        keep = bool(n.integer("keepdims", 1))
        return [n.reduce("maximum" if last else "minimum", found, [axis], keep=keep)]

    return convert


def _cumulative_sum(n: Node) -> Sequence[Value]:
    x = n.value(0)
    shape = shape_of(x)
    axis = axis_of(int(n.known(1).item()), len(shape))
    along = np.arange(len(shape)) == axis
    ones = ints([1] * len(shape))
    before = (along * (shape[axis] - 1)).tolist()
    nothing = [0] * len(shape)
    turned = bool(n.integer("reverse", 0))
    total = n.emit(
        ReduceWindowOp,
        x,
        kind=StringAttr("add"),
        window_dimensions=ints(np.where(along, shape[axis], 1).tolist()),
        window_strides=ones,
        padding_low=ints(nothing if turned else before),
        padding_high=ints(before if turned else nothing),
        base_dilations=ones,
        window_dilations=ones,
    )
    if n.integer("exclusive", 0):
        shift = along.astype(int) * (-1 if turned else 1)
        total = n.pad(total, shift.tolist(), (-shift).tolist())
    return [total]


def _normalized(
    n: Node, x: SSAValue, axes: Sequence[int], epsilon: float
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """(x - mean) / deviation along `axes`; the mean; 1 / deviation."""
    count = prod(shape_of(x)[axis] for axis in axes)
    mean = n.apply(e.DivideOp, n.reduce("add", x, axes, keep=True), count)
    centred = n.apply(e.SubtractOp, x, mean)
    squares = n.apply(e.MultiplyOp, centred, centred)
    variance = n.apply(e.DivideOp, n.reduce("add", squares, axes, keep=True), count)
    inverse = n.emit(e.RsqrtOp, n.apply(e.AddOp, variance, epsilon))
    return n.apply(e.MultiplyOp, centred, inverse), mean, inverse


def _layer_normalization(n: Node) -> Sequence[Value]:
    x = n.value(0)
    rank = len(shape_of(x))
    axes = list(range(axis_of(n.integer("axis", -1), rank), rank))
    element = type_of(x).element_type
    stash = n.convert(x, element_type(np.dtype(np.float32)))
    if type_of(stash).element_type == element or not n.integer("stash_type", 1):
        stash = x
    y, mean, inverse = _normalized(n, stash, axes, n.number("epsilon", 1e-5))
    y = n.apply(e.MultiplyOp, n.convert(y, element), n.value(1))
    if n.has(2):
        y = n.apply(e.AddOp, y, n.value(2))
    return [y, mean, inverse][: n.outputs]


def per_channel(n: Node, values: SSAValue, shape: Sequence[int]) -> SSAValue:
    """One value for each channel (dimension 1), broadcast to `shape`."""
    return n.broadcast_in_dim(values, shape, [1])


def _batch_normalization(n: Node) -> Sequence[Value]:
    n.expect("training_mode", n.integer("training_mode", 0), 0)
    x = n.value(0)
    shape = shape_of(x)
    scale, bias, mean, variance = (n.value(index) for index in range(1, 5))
    padded = n.apply(e.AddOp, variance, n.number("epsilon", 1e-5))
    factor = n.apply(e.MultiplyOp, n.emit(e.RsqrtOp, padded), scale)
    centred = n.apply(e.SubtractOp, x, per_channel(n, mean, shape))
    scaled = n.apply(e.MultiplyOp, centred, per_channel(n, factor, shape))
    return [n.apply(e.AddOp, scaled, per_channel(n, bias, shape))]


def _group_normalization(n: Node) -> Sequence[Value]:
    x = n.value(0)
    shape = shape_of(x)
    is_instance = n.op_type == "InstanceNormalization"
    groups = shape[1] if is_instance else n.integer("num_groups", 1)
    grouped = n.reshape(x, [shape[0], groups, prod(shape[1:]) // groups])
    y, _, _ = _normalized(n, grouped, [2], n.number("epsilon", 1e-5))
    scale, bias = (per_channel(n, n.value(index), shape) for index in (1, 2))
    scaled = n.apply(e.MultiplyOp, n.reshape(y, shape), scale)
    return [n.apply(e.AddOp, scaled, bias)]


_KINDS = {
    "ReduceL1": "add",
    "ReduceL2": "add",
    "ReduceLogSum": "add",
    "ReduceLogSumExp": "add",
    "ReduceMax": "maximum",
    "ReduceMean": "add",
    "ReduceMin": "minimum",
    "ReduceProd": "multiply",
    "ReduceSum": "add",
    "ReduceSumSquare": "add",
}

CONVERSIONS: Mapping[str, Conversion] = {
    **{name: _reduction(name) for name in _KINDS},
    "ArgMax": _arg("maximum"),
    "ArgMin": _arg("minimum"),
    "BatchNormalization": _batch_normalization,
    "CumSum": _cumulative_sum,
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": _group_normalization,
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _log_softmax,
    "Softmax": _softmax,
}
