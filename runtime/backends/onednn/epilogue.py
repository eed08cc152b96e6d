"""Elementwise operations on a contraction's result as oneDNN's post-ops.

Only `x + y`, `x - y`, `x * y` and `-x` of numbers and arrays: those that oneDNN
computes as NumPy does, including NaNs. `w - lr * dot` in the memory of `w` is a scale
and a sum.
"""

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import SSAValue

from ....dialects.dtypes import Array, constant, numpy_dtype
from ....dialects.tgraph.base import TensorOp
from ....dialects.tgraph.elementwise import (
    AddOp,
    ElementwiseOp,
    MultiplyOp,
    NegateOp,
    SubtractOp,
)
from ....dialects.tgraph.shaping import ConstantOp, FullLikeOp, ViewOp
from ..arrays import same_memory
from .library import Refused
from .primitives import Attributes

LINEAR, ADD, MULTIPLY, SUBTRACT = 0x26, 0x1FFF0, 0x1FFF1, 0x1FFF5


class Epilogue:
    """A chain of operations from the contraction's result to the group's."""

    def __init__(
        self,
        first: TensorOp,
        after: Sequence[TensorOp],
        result: SSAValue | None,
        arrays: Mapping[SSAValue, Array],
        out: Array,
    ):
        """Raises `Refused` if the operations are not such a chain."""
        self._arrays, self._out = arrays, out
        self._numbers: dict[SSAValue, float] = {}
        self.steps: list[tuple[int, Array | tuple[float, float]]] = []
        """Kinds, each with an array, or with the factor and the summand of LINEAR."""
        self._current = (first.results or first.outs)[0]
        for op in after:
            self._add(op)
        if result is not None and self._current is not result:
            raise Refused

    @property
    def is_empty(self) -> bool:
        return not self.steps

    def attributes(self, arranged: Callable[[Array], Array | None]) -> Attributes:
        """The post-ops. `arranged` returns a view of an array of the result's shape
        with the shape of the primitive's target.

        Raises `Refused` if it returns None.
        """
        made = Attributes()
        for kind, with_ in self.steps:
            if isinstance(with_, tuple):
                made.eltwise(kind, *with_)
            elif same_memory(with_, self._out):
                if kind == MULTIPLY or made.sums:
                    raise Refused
                made.sum(1.0 if kind == ADD else -1.0)
            else:
                array = arranged(with_)
                if array is None:
                    raise Refused
                made.binary(kind, array)
        return made

    def _add(self, op: TensorOp) -> None:
        (result,) = op.results
        if isinstance(op, ConstantOp | FullLikeOp):
            value = constant(op.value, numpy_dtype(op.declared[0].element_type, op))
            if value.ndim or value.dtype != "f4":
                raise Refused
            self._numbers[result] = float(value)
        elif isinstance(op, ViewOp) and op.inputs[0] in self._numbers:
            self._numbers[result] = self._numbers[op.inputs[0]]
        elif isinstance(op, ElementwiseOp) and self._current in op.inputs:
            self._follow(op)
            self._current = result
        else:
            raise Refused

    def _follow(self, op: ElementwiseOp) -> None:
        if isinstance(op, NegateOp):
            self._linear(-1.0, 0.0)
            return
        if not isinstance(op, AddOp | MultiplyOp | SubtractOp):
            raise Refused
        x, y = op.inputs
        if x is y:
            raise Refused
        other = y if x is self._current else x
        is_from = isinstance(op, SubtractOp) and other is x  # other - current
        if is_from:
            self._linear(-1.0, 0.0)
        is_difference = isinstance(op, SubtractOp) and not is_from
        if other in self._numbers:
            number = self._numbers[other]
            if isinstance(op, MultiplyOp):
                self._linear(number, 0.0)
            else:
                self._linear(1.0, -number if is_difference else number)
            return
        if other not in self._arrays:
            raise Refused
        kind = MULTIPLY if isinstance(op, MultiplyOp) else ADD
        kind = SUBTRACT if is_difference else kind
        self.steps.append((kind, self._arrays[other]))

    def _linear(self, factor: float, summand: float) -> None:
        if self.steps and isinstance(before := self.steps[-1][1], tuple):
            self.steps.pop()
            factor, summand = factor * before[0], factor * before[1] + summand
        self.steps.append((LINEAR, (factor, summand)))
