"""What frontends give for models that bring the values of their parameters."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import ModuleOp

if TYPE_CHECKING:
    from ..dialects.dtypes import Array


class Model(NamedTuple):
    module: ModuleOp

    parameters: "Mapping[str, Array]"
    """By name, in the order of the arguments that they are for."""
