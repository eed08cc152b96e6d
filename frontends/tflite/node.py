"""The context in which an operator of a `.tflite` file is converted to tgraph.

A conversion takes a `TFLiteNode` and returns the operator's outputs, or raises
`Unsupported` with the reason why there is no tgraph form.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ...dialects.tgraph import elementwise as e
from ..formulas import clamp
from ..operators import OperatorBuilder, Value
from ..unsupported import Unsupported
from ..zero_points import LEAST, to_unsigned
from .reading import Tensor


@dataclass
class TFLiteNode(OperatorBuilder):
    """An operator's options and tensors, and a builder for its operations."""

    options: Any
    """The options table of its kind in the schema; None without one."""

    tensors: Sequence[Tensor | None]
    """The inputs as described in the model; None for a missing input."""

    results: Sequence[Tensor]
    """The outputs as described in the model."""

    def option(self, name: str) -> Any:
        """An option by its name in the schema; 0 without options."""
        if self.options is None:
            return 0
        try:
            return getattr(self.options, name)()
        except (TypeError, struct.error):
            raise ValueError(f"option {name} is damaged") from None

    def tensor(self, index: int) -> Tensor:
        tensor = self.tensors[index] if self.has(index) else None
        if tensor is None:
            raise Unsupported(f"without input {index}")
        return tensor

    @property
    def is_quantized(self) -> bool:
        """Whether the result has quantized integers."""
        return self.results[0].is_quantized

    def real(self, index: int) -> SSAValue:
        """The real numbers that an input represents, in f32 if it is quantized."""
        tensor, x = self.tensor(index), self.value(index)
        if not tensor.is_quantized:
            return x
        x = self.convert(x, f32)
        if tensor.zeros.any():
            x = self.apply(e.SubtractOp, x, self.along(tensor, tensor.zeros))
        return self.apply(e.MultiplyOp, x, self.along(tensor, tensor.scales))

    def along(self, tensor: Tensor, values: Array) -> SSAValue:
        """Scales or zero points in f32, in a shape that broadcasts to the tensor's."""
        values = values.astype(np.float32)
        if values.size == 1:
            return self.constant(values.reshape(()))
        shape = [1] * len(tensor.shape)
        shape[tensor.axis] = values.size
        return self.constant(values.reshape(shape))

    def steps(self, index: int) -> tuple[SSAValue, int]:
        """A quantized input as 8-bit integers, and its zero point.

        If the zero point is -128, as after an activation without negative results, the
        integers become unsigned with the zero point 0: an image can then be padded with
        zeros.
        """
        x, tensor = self.value(index), self.tensor(index)
        if tensor.dtype.name != "int8" or tensor.zero != LEAST:
            return x, tensor.zero
        return to_unsigned(self, x), 0

    def centered(self, index: int) -> SSAValue:
        """A quantized input minus its zero point, in 32 bits."""
        x, zero = self.steps(index)
        x = self.convert(x, i32)
        return self.apply(e.SubtractOp, x, zero) if zero else x

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The range of the activation that is fused into the operation."""
        number = 0
        if hasattr(self.options, "FusedActivationFunction"):
            number = self.option("FusedActivationFunction")
        if number not in ACTIVATIONS:
            raise Unsupported(f"with activation {number}")
        return ACTIVATIONS[number]

    def activated(self, x: SSAValue) -> SSAValue:
        """The result of an operation on floats after its fused activation."""
        low, high = self.limits
        if low is None:
            return x
        if high is None:
            return self.apply(e.MaximumOp, x, low)
        return clamp(self, x, low, high)


ACTIVATIONS: dict[int, tuple[float | None, float | None]] = {
    0: (None, None),
    1: (0, None),
    2: (-1, 1),
    3: (0, 6),
}
"""The range of each `ActivationFunctionType` that only clamps."""

Conversion: TypeAlias = Callable[[TFLiteNode], Sequence[Value]]
