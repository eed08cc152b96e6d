"""Converts StableHLO's batch norms, for inference and for training.

A batch norm has one scale, offset, mean and variance for each feature, an index of the
dimension `feature_index`. Variances are divided by the number of elements.
"""

from collections.abc import Mapping
from math import prod

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph import shaping
from ...dialects.tgraph.base import ints, shape_of
from ..builder import TensorBuilder
from ..unsupported import Unsupported
from .conversion import Conversion, Converter, Values, type_of


class _BatchNorm:
    """The parameters of a batch norm of `x`, and the operations that it consists of."""

    def __init__(self, c: Conversion, x: SSAValue):
        self.b = TensorBuilder(c.into, c.op.location)
        self.x = x
        self._feature = c.number_in("feature_index", 0)
        epsilon = c.attribute("epsilon")
        assert isinstance(epsilon, FloatAttr)
        self._epsilon = epsilon.value.data

    @property
    def count(self) -> int:
        """The number of elements of each feature."""
        shape = shape_of(type_of(self.x))
        count = prod(size for dim, size in enumerate(shape) if dim != self._feature)
        if count <= 0:
            raise Unsupported(f"of {shape_of(type_of(self.x))}, expected known sizes")
        return count

    def wide(self, values: SSAValue) -> SSAValue:
        """One number per feature, broadcast like `x`."""
        return self.b.emit(
            shaping.BroadcastInDimOp,
            values,
            type=type_of(self.x),
            broadcast_dimensions=ints([self._feature]),
        )

    def total(self, x: SSAValue) -> SSAValue:
        """The sum of each feature."""
        rank = len(shape_of(type_of(x)))
        return self.b.reduce("add", x, [d for d in range(rank) if d != self._feature])

    def mean(self, x: SSAValue) -> SSAValue:
        return self.b.apply(e.DivideOp, self.total(x), self.count)

    def safe(self, variance: SSAValue) -> SSAValue:
        return self.b.apply(e.AddOp, variance, self._epsilon)

    def minus(self, mean: SSAValue) -> SSAValue:
        return self.b.apply(e.SubtractOp, self.x, self.wide(mean))

    def normalized(
        self, scale: SSAValue, offset: SSAValue, mean: SSAValue, variance: SSAValue
    ) -> SSAValue:
        """(x - mean) / sqrt(variance + epsilon) * scale + offset"""
        deviation = self.b.emit(e.SqrtOp, self.safe(variance))
        x = self.b.apply(e.DivideOp, self.minus(mean), self.wide(deviation))
        x = self.b.apply(e.MultiplyOp, x, self.wide(scale))
        return self.b.apply(e.AddOp, x, self.wide(offset))


def _inference(c: Conversion) -> Values:
    x, scale, offset, mean, variance = c.inputs
    return (_BatchNorm(c, x).normalized(scale, offset, mean, variance),)


def _training(c: Conversion) -> Values:
    x, scale, offset = c.inputs
    norm = _BatchNorm(c, x)
    mean = norm.mean(x)
    apart = norm.minus(mean)
    variance = norm.mean(norm.b.apply(e.MultiplyOp, apart, apart))
    return (norm.normalized(scale, offset, mean, variance), mean, variance)


def _gradient(c: Conversion) -> Values:
    """The gradients with respect to x, scale and offset."""
    x, scale, mean, variance, head = c.inputs
    norm = _BatchNorm(c, x)
    b, safe, apart = norm.b, norm.safe(variance), norm.minus(mean)
    deviation = b.emit(e.SqrtOp, safe)
    along = norm.total(b.apply(e.MultiplyOp, head, apart))
    total = norm.total(head)
    slope = norm.wide(b.apply(e.DivideOp, along, safe))
    taken = b.apply(e.AddOp, norm.wide(total), b.apply(e.MultiplyOp, slope, apart))
    taken = b.apply(e.DivideOp, taken, norm.count)
    factor = norm.wide(b.apply(e.DivideOp, scale, deviation))
    of_x = b.apply(e.MultiplyOp, factor, b.apply(e.SubtractOp, head, taken))
    return (of_x, b.apply(e.DivideOp, along, deviation), total)


CONVERSIONS: Mapping[str, Converter] = {
    "stablehlo.batch_norm_grad": _gradient,
    "stablehlo.batch_norm_inference": _inference,
    "stablehlo.batch_norm_training": _training,
}
