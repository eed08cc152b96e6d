"""A program with its parameters and functions, as frontends return it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from .dialects.dtypes import Array
    from .dialects.tgraph.callbacks import Callbacks


@dataclass(frozen=True, eq=False)
class Model:
    """A program with the values of its parameters, and the Python functions that it
    calls; `str` returns its text.

    `plan` plans the module, and `compile` binds the parameters. Parameters are in the
    order of the arguments. They include a variable if the frontend has its initial
    contents.
    """

    module: ModuleOp

    parameters: Mapping[str, Array]
    """The arrays by the argument's name, `tgraph.name`."""

    callbacks: Callbacks = ()
    """The Python functions that `tgraph.host_callback` calls, by number. They take
    arrays and return a sequence of arrays."""

    def inputs(self) -> dict[int, Array]:
        """The parameters by argument index, for `Executable.bind`."""
        from .analysis.functions import argument_names

        names = argument_names(self.module)
        return {n: self.parameters[x] for n, x in names.items() if x in self.parameters}

    def __str__(self) -> str:
        return str(self.module)
