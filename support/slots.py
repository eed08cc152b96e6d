"""What a program takes and gives, as its callers see it: inputs and results."""

from dataclasses import dataclass

from .arrays import DType, Shape


@dataclass(frozen=True)
class Slot:
    """An input or a result. Numbers are of rank 0."""

    shape: Shape
    """Sizes may be symbolic (`tensorplan.dialects.sizes.symbolic`)."""
    dtype: DType


@dataclass(frozen=True)
class Input(Slot):
    is_variable: bool
    is_parameter: bool
    """Whether it is the same in every run (`tgraph.parameter`)."""
    is_donated: bool = False
    """Whether its memory is given up (`tgraph.donated`)."""
    name: str = ""
    """What the model that the program came from calls it."""

    @property
    def is_written(self) -> bool:
        """Whether a run may change it."""
        return self.is_variable or self.is_donated


@dataclass(frozen=True)
class Result(Slot):
    input: int | None
    """The number of the input, a variable, whose new contents this result is."""
