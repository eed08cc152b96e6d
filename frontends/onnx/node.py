"""One ONNX node with its inputs and attributes, as all conversions receive it.

A conversion takes an `OnnxNode`, emits operations of tgraph, and returns the node's
outputs. It raises `Unsupported` with the reason if there is no tgraph form.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from ..builder import axis_of
from ..operators import Known, OperatorBuilder, Value
from ..unsupported import Unsupported


@dataclass
class OnnxNode(OperatorBuilder):
    """A node's attributes and inputs, with a builder for the operations of tgraph."""

    op_type: str
    opset: int
    outputs: int
    """The number of outputs, without trailing ones that have no name."""

    attributes: Mapping[str, Any]

    # Attributes and constant inputs.

    def integer(self, name: str, default: int) -> int:
        return self.attributes.get(name, default)

    def number(self, name: str, default: float) -> float:
        return self.attributes.get(name, default)

    def text(self, name: str, default: str) -> str:
        return cast(bytes, self.attributes.get(name, default.encode())).decode()

    def integers(self, name: str, default: Sequence[int]) -> Sequence[int]:
        return self.attributes.get(name, default)

    def expect(self, name: str, got: object, *allowed: object) -> None:
        """Raises `Unsupported` unless `got`, the value of `name`, is in `allowed`."""
        if got not in allowed:
            expected = " or ".join(repr(value) for value in allowed)
            raise Unsupported(f"with {name} = {got!r}, expected {expected}")

    def scalar(self, index: int) -> float | None:
        """The number of a constant input with one element; None for other inputs."""
        value = self.inputs[index]
        if not isinstance(value, Known) or value.argument or value.array.size != 1:
            return None
        return value.array.item()

    def axes(self, index: int, rank: int) -> list[int] | None:
        """The attribute `axes`, which is an input in newer opsets; None if absent."""
        if self.has(index):
            axes: Sequence[int] = self.known_integers(index)
        elif "axes" in self.attributes:
            axes = self.attributes["axes"]
        else:
            return None
        return [axis_of(axis, rank) for axis in axes]


Conversion: TypeAlias = Callable[[OnnxNode], Sequence[Value]]
