"""The optimizers of the domain `ai.onnx.preview.training` → tgraph.

The inputs are the rate R, the number T of steps so far, all tensors, all gradients, and
all tensors of each state. The outputs are the new tensors and states.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ..builder import shape_of, type_of
from ..formulas import compare
from ..operators import Value
from .node import Conversion, OnnxNode

_Update: TypeAlias = Callable[
    [OnnxNode, SSAValue, SSAValue, Sequence[SSAValue]], Sequence[SSAValue]
]
"""R, T, (x, gradient, states...) → (x, states...) after a step."""


def _mixed(n: OnnxNode, a: float, x: SSAValue, b: float, y: SSAValue) -> SSAValue:
    """a x + b y"""
    return n.apply(e.AddOp, n.apply(e.MultiplyOp, x, a), n.apply(e.MultiplyOp, y, b))


def _regularized(n: OnnxNode, x: SSAValue, gradient: SSAValue) -> SSAValue:
    return _mixed(n, n.number("norm_coefficient", 0.0), x, 1.0, gradient)


def _moved(n: OnnxNode, x: SSAValue, rate: SSAValue, step: SSAValue) -> SSAValue:
    return n.apply(e.SubtractOp, x, n.apply(e.MultiplyOp, rate, step))


def _adagrad(
    n: OnnxNode, rate: SSAValue, steps: SSAValue, values: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    x, gradient, total = values
    decay = n.apply(e.MultiplyOp, steps, n.number("decay_factor", 0.0))
    rate = n.apply(e.DivideOp, rate, n.apply(e.AddOp, decay, 1))
    gradient = _regularized(n, x, gradient)
    total = n.apply(e.AddOp, total, n.apply(e.MultiplyOp, gradient, gradient))
    root = n.apply(e.AddOp, n.emit(e.SqrtOp, total), n.number("epsilon", 0.0))
    return _moved(n, x, rate, n.apply(e.DivideOp, gradient, root)), total


def _adam(
    n: OnnxNode, rate: SSAValue, steps: SSAValue, values: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    x, gradient, first, second = values
    alpha, beta = n.number("alpha", 0.9), n.number("beta", 0.999)
    gradient = _regularized(n, x, gradient)
    squares = n.apply(e.MultiplyOp, gradient, gradient)
    first = _mixed(n, alpha, first, 1 - alpha, gradient)
    second = _mixed(n, beta, second, 1 - beta, squares)
    root = n.apply(e.AddOp, n.emit(e.SqrtOp, second), n.number("epsilon", 0.0))
    correction = n.apply(
        e.DivideOp, n.emit(e.SqrtOp, _bias(n, beta, steps)), _bias(n, alpha, steps)
    )
    corrected = n.apply(e.MultiplyOp, rate, correction)
    rate = n.apply(e.SelectOp, compare(n, steps, "GT", 0), corrected, rate)
    x = _moved(n, x, rate, n.apply(e.DivideOp, first, root))
    kept = 1 - n.number("norm_coefficient_post", 0.0)
    return n.apply(e.MultiplyOp, x, kept), first, second


def _bias(n: OnnxNode, factor: float, steps: SSAValue) -> SSAValue:
    """1 - factor ^ steps"""
    base = n.splat(factor, type_of(steps))
    one = n.splat(1, type_of(steps))
    return n.apply(e.SubtractOp, one, n.apply(e.PowerOp, base, steps))


def _momentum(
    n: OnnxNode, rate: SSAValue, steps: SSAValue, values: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """In the first step, `beta` does not scale the gradient."""
    x, gradient, velocity = values
    mode = n.text("mode", "standard")
    n.expect("mode", mode, "standard", "nesterov")
    alpha, beta = n.number("alpha", 0.0), n.number("beta", 1.0)
    gradient = _regularized(n, x, gradient)
    is_later = n.broadcast(compare(n, steps, "GT", 0), shape_of(x))
    part = n.apply(e.MultiplyOp, gradient, beta)
    added = n.apply(e.SelectOp, is_later, part, gradient)
    velocity = n.apply(e.AddOp, n.apply(e.MultiplyOp, velocity, alpha), added)
    step = velocity
    if mode == "nesterov":
        step = _mixed(n, 1.0, gradient, alpha, velocity)
    return _moved(n, x, rate, step), velocity


def _optimizer(update: _Update, states: int) -> Conversion:
    def convert(n: OnnxNode) -> Sequence[Value]:
        rate, steps, *values = (n.value(index) for index in range(len(n.inputs)))
        steps = n.convert(steps, type_of(rate).element_type)
        count = len(values) // (2 + states)
        updated = [update(n, rate, steps, values[k::count]) for k in range(count)]
        return [value for kind in zip(*updated, strict=True) for value in kind]

    return convert


CONVERSIONS: Mapping[str, Conversion] = {
    "ai.onnx.preview.training.Adagrad": _optimizer(_adagrad, 1),
    "ai.onnx.preview.training.Adam": _optimizer(_adam, 2),
    "ai.onnx.preview.training.Momentum": _optimizer(_momentum, 1),
}
