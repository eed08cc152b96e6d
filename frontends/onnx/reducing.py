"""ONNX's reductions, softmax and normalizations → tgraph."""

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ..builder import axis_of, element_type, shape_of, type_of
from ..formulas import (
    batch_normalized,
    compare,
    cumulative,
    group_normalized,
    index_of,
    log_softmax,
    log_sum_exp,
    lp_norm,
    mean,
    normalized,
    per_channel,
    softmax,
)
from ..indices import one_hot
from ..operators import Value
from ..windows import SpatialWindow, reduce_window
from .node import Conversion, OnnxNode


def _reduction(name: str) -> Conversion:
    """Converts `ReduceX`: operations before, the reduction, operations after."""

    def convert(n: OnnxNode) -> Sequence[Value]:
        x = n.value(0)
        axes = n.axes(1, len(shape_of(x))) or []
        if not axes and not n.integer("noop_with_empty_axes", 0):
            axes = list(range(len(shape_of(x))))
        keep = bool(n.integer("keepdims", 1))
        if name == "ReduceLogSumExp":
            return [log_sum_exp(n, x, axes, keep=keep)]
        if name in ("ReduceL2", "ReduceSumSquare"):
            x = n.apply(e.MultiplyOp, x, x)
        if name == "ReduceL1":
            x = n.emit(e.AbsOp, x)
        if name == "ReduceMean":
            return [mean(n, x, axes, keep=keep)]
        result = n.reduce(_KINDS[name], x, axes, keep=keep)
        if name == "ReduceL2":
            result = n.emit(e.SqrtOp, result)
        if name == "ReduceLogSum":
            result = n.emit(e.LogOp, result)
        return [result]

    return convert


def _along(formula: Callable[[OnnxNode, SSAValue, int], SSAValue]) -> Conversion:
    """Applies a formula along `axis`; before opset 13, along all axes from it on."""

    def convert(n: OnnxNode) -> Sequence[Value]:
        x = n.value(0)
        shape = shape_of(x)
        if n.opset >= 13:
            return [formula(n, x, axis_of(n.integer("axis", -1), len(shape)))]
        axis = axis_of(n.integer("axis", 1), len(shape))
        rows = n.reshape(x, [*shape[:axis], prod(shape[axis:])])
        return [n.reshape(formula(n, rows, axis), shape)]

    return convert


def _arg(kind: str) -> Conversion:
    def convert(n: OnnxNode) -> Sequence[Value]:
        x = n.value(0)
        axis = axis_of(n.integer("axis", 0), len(shape_of(x)))
        last = bool(n.integer("select_last_index", 0))
        keep = bool(n.integer("keepdims", 1))
        return [index_of(n, kind, x, axis, last=last, keep=keep)]

    return convert


def _cumulative(kind: str) -> Conversion:
    def convert(n: OnnxNode) -> Sequence[Value]:
        x = n.value(0)
        axis = axis_of(int(n.known(1).item()), len(shape_of(x)))
        reverse, exclusive = (bool(n.integer(k, 0)) for k in ("reverse", "exclusive"))
        return [cumulative(n, kind, x, axis, reverse=reverse, exclusive=exclusive)]

    return convert


def _hardmax(n: OnnxNode, x: SSAValue, axis: int) -> SSAValue:
    """1 at the first of the largest elements, 0 elsewhere."""
    largest = index_of(n, "maximum", x, axis)
    chosen = one_hot(n, largest, shape_of(x)[axis], axis)
    return n.convert(chosen, type_of(x).element_type)


def _lp_normalization(n: OnnxNode) -> Sequence[Value]:
    """x / norm, or 0 where the norm is 0."""
    x = n.value(0)
    axis = axis_of(n.integer("axis", -1), len(shape_of(x)))
    norm = lp_norm(
        n,
        x,
        n.integer("p", 2),
        lambda powers: n.reduce("add", powers, [axis], keep=True),
    )
    is_zero = n.broadcast(compare(n, norm, "EQ", 0), shape_of(x))
    return [n.apply(e.SelectOp, is_zero, 0, n.apply(e.DivideOp, x, norm))]


def _local_response_normalization(n: OnnxNode) -> Sequence[Value]:
    """x / (bias + alpha / size * sum of the squares of adjacent channels) ^ beta"""
    x, size = n.value(0), n.integer("size", 1)
    batch, channels, *space = shape_of(x)
    before = (size - 1) // 2
    ones, after = [1, 1], size - 1 - before
    window = SpatialWindow([size, 1], ones, ones, [before, 0], [after, 0])
    squares = n.apply(e.MultiplyOp, x, x)
    rows = n.reshape(squares, [batch, 1, channels, prod(space)])
    near = n.reshape(reduce_window(n, "add", rows, window), shape_of(x))
    scaled = n.apply(e.MultiplyOp, near, n.number("alpha", 1e-4) / size)
    divisor = n.apply(e.AddOp, scaled, n.number("bias", 1.0))
    divisor = n.apply(e.PowerOp, divisor, n.number("beta", 0.75))
    return [n.apply(e.DivideOp, x, divisor)]


def _layer_normalization(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    rank = len(shape_of(x))
    axes = list(range(axis_of(n.integer("axis", -1), rank), rank))
    element = type_of(x).element_type
    stash = n.convert(x, element_type(np.dtype(np.float32)))
    if type_of(stash).element_type == element or not n.integer("stash_type", 1):
        stash = x
    y, mean, inverse = normalized(n, stash, axes, n.number("epsilon", 1e-5))
    y = n.apply(e.MultiplyOp, n.convert(y, element), n.value(1))
    if n.has(2):
        y = n.apply(e.AddOp, y, n.value(2))
    return [y, mean, inverse][: n.outputs]


def _batch_normalization(n: OnnxNode) -> Sequence[Value]:
    """In training, uses the batch's statistics, and updates the running ones."""
    n.expect("spatial", n.integer("spatial", 1), 1)
    x = n.value(0)
    scale, bias, average, variance = (n.value(index) for index in range(1, 5))
    running: list[SSAValue] = []
    if n.integer("training_mode", 0):
        before, momentum = (average, variance), n.number("momentum", 0.9)
        axes = [d for d in range(len(shape_of(x))) if d != 1]
        average = mean(n, x, axes, keep=False)
        centered = n.apply(e.SubtractOp, x, per_channel(n, average, shape_of(x)))
        squares = n.apply(e.MultiplyOp, centered, centered)
        variance = mean(n, squares, axes, keep=False)
        for old, new in zip(before, (average, variance), strict=True):
            kept = n.apply(e.MultiplyOp, old, momentum)
            added = n.apply(e.MultiplyOp, new, 1 - momentum)
            running.append(n.apply(e.AddOp, kept, added))
    padded = n.apply(e.AddOp, variance, n.number("epsilon", 1e-5))
    inverse = n.emit(e.RsqrtOp, padded)
    return [batch_normalized(n, x, scale, bias, average, inverse), *running]


def _group_normalization(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    shape = shape_of(x)
    is_instance = n.op_type == "InstanceNormalization"
    groups = shape[1] if is_instance else n.integer("num_groups", 1)
    y, _, _ = group_normalized(n, x, groups, n.number("epsilon", 1e-5))
    scale, bias = (per_channel(n, n.value(index), shape) for index in (1, 2))
    scaled = n.apply(e.MultiplyOp, y, scale)
    return [n.apply(e.AddOp, scaled, bias)]


_KINDS = {
    "ReduceL1": "add",
    "ReduceL2": "add",
    "ReduceLogSum": "add",
    "ReduceMax": "maximum",
    "ReduceMin": "minimum",
    "ReduceProd": "multiply",
    "ReduceSum": "add",
    "ReduceSumSquare": "add",
}

_OTHERS = ("ReduceLogSumExp", "ReduceMean")

CONVERSIONS: Mapping[str, Conversion] = {
    **{name: _reduction(name) for name in (*_KINDS, *_OTHERS)},
    "ArgMax": _arg("maximum"),
    "ArgMin": _arg("minimum"),
    "BatchNormalization": _batch_normalization,
    "CumProd": _cumulative("multiply"),
    "CumSum": _cumulative("add"),
    "GroupNormalization": _group_normalization,
    "Hardmax": _along(_hardmax),
    "InstanceNormalization": _group_normalization,
    "LRN": _local_response_normalization,
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _along(log_softmax),
    "LpNormalization": _lp_normalization,
    "Softmax": _along(softmax),
    "com.microsoft.LayerNormalization": _layer_normalization,
}
