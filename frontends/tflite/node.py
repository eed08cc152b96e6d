"""One operator of a `.tflite` file on its way to tgraph, and what conversions share.

A conversion takes a `TFLiteNode` and returns the operator's outputs; `Unsupported` says
why there is no tgraph form.
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
from ..zero_points import LEAST, raised
from .reading import Tensor


@dataclass
class TFLiteNode(OperatorBuilder):
    """An operator's options and tensors, and the operations that come out of it."""

    options: Any
    """The table of its kind in the schema; None if it has none."""

    tensors: Sequence[Tensor | None]
    """What the model says of the inputs."""

    results: Sequence[Tensor]
    """What it says of the outputs."""

    def option(self, name: str) -> Any:
        """By its name in the schema; without options, the schema's default."""
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
        """Whether integers stand for real numbers in the result."""
        return self.results[0].is_quantized

    def real(self, index: int) -> SSAValue:
        """The real numbers that an input stands for, in f32 if they are quantized."""
        tensor, x = self.tensor(index), self.value(index)
        if not tensor.is_quantized:
            return x
        x = self.convert(x, f32)
        if tensor.zeros.any():
            x = self.apply(e.SubtractOp, x, self.along(tensor, tensor.zeros))
        return self.apply(e.MultiplyOp, x, self.along(tensor, tensor.scales))

    def along(self, tensor: Tensor, values: Array) -> SSAValue:
        """Scales or zero points in f32, of a shape that is repeated to the tensor's."""
        values = values.astype(np.float32)
        if values.size == 1:
            return self.constant(values.reshape(()))
        shape = [1] * len(tensor.shape)
        shape[tensor.axis] = values.size
        return self.constant(values.reshape(shape))

    def steps(self, index: int) -> tuple[SSAValue, int]:
        """A quantized input as 8-bit numbers, and their zero point.

        If that is the least signed number, as after an activation that has no negative
        results, the numbers become unsigned and their zero point 0: zeros can stand
        around such an image.
        """
        x, tensor = self.value(index), self.tensor(index)
        if tensor.dtype.name != "int8" or tensor.zero != LEAST:
            return x, tensor.zero
        return raised(self, x), 0

    def centred(self, index: int) -> SSAValue:
        """A quantized input without its zero point, in 32 bits."""
        x, zero = self.steps(index)
        x = self.convert(x, i32)
        return self.apply(e.SubtractOp, x, zero) if zero else x

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The range of the activation that is fused with the operation."""
        number = 0
        if hasattr(self.options, "FusedActivationFunction"):
            number = self.option("FusedActivationFunction")
        if number not in ACTIVATIONS:
            raise Unsupported(f"with activation {number}")
        return ACTIVATIONS[number]

    def activated(self, x: SSAValue) -> SSAValue:
        """The operation's result on floats, with the activation."""
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
"""The range of each `ActivationFunctionType` that only limits."""

Conversion: TypeAlias = Callable[[TFLiteNode], Sequence[Value]]
