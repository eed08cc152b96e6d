"""The context in which a frontend converts one operator of a model to tgraph.

An input is `Known` (an array: a constant, or computed from shapes and constants) or
computed at run time (an SSA value).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import SSAValue

from ..dialects.dtypes import Array
from .builder import TensorBuilder
from .unsupported import Unsupported


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """A value that is known when the model is read."""

    array: Array

    argument: SSAValue | None = None
    """The function argument that holds the value, if it is a parameter."""


Value: TypeAlias = Known | SSAValue


@dataclass
class OperatorBuilder(TensorBuilder):
    """Builds the operations for an operator with these inputs."""

    names: Sequence[str]
    """The names of the inputs."""

    inputs: Sequence[Value | None]

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def given(self, index: int) -> Value:
        value = self.inputs[index] if index < len(self.inputs) else None
        if value is None:
            raise Unsupported(f"without input {index}")
        return value

    def value(self, index: int) -> SSAValue:
        """Input `index` as an SSA value."""
        return self.materialize(self.given(index))

    def known(self, index: int) -> Array:
        """The array of an input that must be known, such as a shape."""
        value = self.given(index)
        if not isinstance(value, Known):
            raise Unsupported(
                f"with input {self.names[index]!r} computed at run time, expected a "
                "constant"
            )
        return value.array

    def known_integers(self, index: int) -> list[int]:
        return [int(number) for number in self.known(index).ravel()]

    def materialize(self, value: Value) -> SSAValue:
        if isinstance(value, SSAValue):
            return value
        return self.constant(value.array) if value.argument is None else value.argument
