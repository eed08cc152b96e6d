"""A program with the values of its parameters: what frontends give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from .dialects.dtypes import Array


@dataclass(frozen=True, eq=False)
class Model:
    """A program and the values of its parameters; `str` gives its text.

    `plan` plans its module, and `compile` binds its parameters. These are in the order
    of the arguments; a variable is among them if the frontend has its first contents.
    """

    module: ModuleOp

    parameters: Mapping[str, Array]
    """By the argument's name, `tgraph.name`."""

    def inputs(self) -> dict[int, Array]:
        """The parameters by the number of the argument, for `Executable.bind`."""
        from .analysis.functions import argument_names

        names = argument_names(self.module)
        return {n: self.parameters[x] for n, x in names.items() if x in self.parameters}

    def __str__(self) -> str:
        return str(self.module)
