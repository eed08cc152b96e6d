"""One ONNX node on its way to tgraph, and what conversions share.

A value is `Known` (an array: an initializer, or what follows from shapes and constants)
or computed at run time (an SSA value). A conversion takes an `OnnxNode` and returns the
node's outputs; `Unsupported` says why there is no tgraph form.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from xdsl.ir import SSAValue

from ...dialects.dtypes import Array
from ..builder import TensorBuilder, axis_of
from ..unsupported import Unsupported


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """A value that is known when the model is read."""

    array: Array

    argument: SSAValue | None = None
    """The function's argument for it, if it is a parameter."""


Value: TypeAlias = Known | SSAValue


@dataclass
class OnnxNode(TensorBuilder):
    """A node's attributes and inputs, and the operations that come out of it."""

    op_type: str
    opset: int
    outputs: int
    """How many outputs it has; trailing ones that nobody names are left out."""

    attributes: Mapping[str, Any]
    names: Sequence[str]
    """Of its inputs."""

    inputs: Sequence[Value | None]

    # What the model says.

    def integer(self, name: str, default: int) -> int:
        return self.attributes.get(name, default)

    def number(self, name: str, default: float) -> float:
        return self.attributes.get(name, default)

    def text(self, name: str, default: str) -> str:
        return cast(bytes, self.attributes.get(name, default.encode())).decode()

    def integers(self, name: str, default: Sequence[int]) -> Sequence[int]:
        return self.attributes.get(name, default)

    def expect(self, name: str, got: object, *allowed: object) -> None:
        """Refuses another value of an attribute."""
        if got not in allowed:
            expected = " or ".join(repr(value) for value in allowed)
            raise Unsupported(f"with {name} = {got!r}, expected {expected}")

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def value(self, index: int) -> SSAValue:
        """An input as a value of the program."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if value is None:
            raise Unsupported(f"without input {index}")
        return self.materialize(value)

    def known(self, index: int) -> Array:
        """An input that shapes depend on."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if value is None:
            raise Unsupported(f"without input {index}")
        if not isinstance(value, Known):
            raise Unsupported(
                f"with input {self.names[index]!r} computed at run time, expected a "
                "constant"
            )
        return value.array

    def known_integers(self, index: int) -> list[int]:
        return [int(number) for number in self.known(index).ravel()]

    def scalar(self, index: int) -> float | None:
        """The number that an input is, if it is a constant."""
        value = self.inputs[index]
        if not isinstance(value, Known) or value.argument or value.array.size != 1:
            return None
        return value.array.item()

    def axes(self, index: int, rank: int) -> list[int] | None:
        """The attribute `axes`, which an input in newer opsets; None if neither."""
        if self.has(index):
            axes: Sequence[int] = self.known_integers(index)
        elif "axes" in self.attributes:
            axes = self.attributes["axes"]
        else:
            return None
        return [axis_of(axis, rank) for axis in axes]

    def materialize(self, value: Value) -> SSAValue:
        if isinstance(value, SSAValue):
            return value
        return self.constant(value.array) if value.argument is None else value.argument


Conversion: TypeAlias = Callable[[OnnxNode], Sequence[Value]]
