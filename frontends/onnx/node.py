"""One ONNX node on its way to tgraph, and what conversions share.

A conversion takes an `OnnxNode` and returns the node's outputs; `Unsupported` says why
there is no tgraph form.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from ..builder import axis_of
from ..operators import Known, OperatorBuilder, Value
from ..unsupported import Unsupported


@dataclass
class OnnxNode(OperatorBuilder):
    """A node's attributes and inputs, and the operations that come out of it."""

    op_type: str
    opset: int
    outputs: int
    """How many outputs it has; trailing ones that nobody names are left out."""

    attributes: Mapping[str, Any]

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


Conversion: TypeAlias = Callable[[OnnxNode], Sequence[Value]]
