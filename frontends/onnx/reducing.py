"""ONNX's reductions, softmax and normalizations → tgraph."""

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ..builder import axis_of, element_type, shape_of, type_of
from ..formulas import (
    batch_normalized,
    cumulative_sum,
    group_normalized,
    index_of,
    log_softmax,
    log_sum_exp,
    mean,
    normalized,
    per_channel,
    softmax,
)
from .node import Conversion, OnnxNode, Value


def _reduction(name: str) -> Conversion:
    """`ReduceX`: what is done before, the reduction, what is done after."""

    def convert(n: OnnxNode) -> Sequence[Value]:
        x = n.value(0)
        axes = n.axes(1, len(shape_of(x)))
        if not axes:
            if n.integer("noop_with_empty_axes", 0):
                return [x]
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
    """Along `axis`; before opset 13 along all dimensions from it on."""

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


def _cumulative_sum(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    shape = shape_of(x)
    axis = axis_of(int(n.known(1).item()), len(shape))
    turned = bool(n.integer("reverse", 0))
    total = cumulative_sum(n, x, axis, reverse=turned)
    if n.integer("exclusive", 0):
        along = np.arange(len(shape)) == axis
        shift = along.astype(int) * (-1 if turned else 1)
        total = n.pad(total, shift.tolist(), (-shift).tolist())
    return [total]


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
    n.expect("training_mode", n.integer("training_mode", 0), 0)
    x = n.value(0)
    scale, bias, mean, variance = (n.value(index) for index in range(1, 5))
    padded = n.apply(e.AddOp, variance, n.number("epsilon", 1e-5))
    inverse = n.emit(e.RsqrtOp, padded)
    return [batch_normalized(n, x, scale, bias, mean, inverse)]


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
    "CumSum": _cumulative_sum,
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": _group_normalization,
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _along(log_softmax),
    "Softmax": _along(softmax),
}
