"""The inputs and results of a program, as its callers see them."""

from dataclasses import dataclass

from .arrays import DType, Shape


@dataclass(frozen=True)
class Slot:
    """An input or a result. A scalar has rank 0."""

    shape: Shape
    """Sizes may be symbolic (`tensorplan.dialects.sizes.symbolic`)."""
    dtype: DType


@dataclass(frozen=True)
class Input(Slot):
    is_variable: bool
    is_parameter: bool
    """Whether the contents are the same in every run (`tgraph.parameter`)."""
    is_donated: bool = False
    """Whether the caller gives up the memory (`tgraph.donated`)."""
    name: str = ""
    """The name in the model that the program was imported from."""

    @property
    def is_written(self) -> bool:
        """Whether a run may change the contents."""
        return self.is_variable or self.is_donated


@dataclass(frozen=True)
class Result(Slot):
    input: int | None
    """The index of the input, a variable, whose new contents this result holds; None
    for other results."""
