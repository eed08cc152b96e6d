"""Who knows how much workspace operations take: the kernels that will compute them.

    measure_of("native")(op)                plan-workspaces
    provide("npu", lambda: bytes_of)        another runtime's kernels

Passes know no runtime, so kernels are known by name. Those of this package stand in a
table, by where they are, and are imported when they are first asked: what has been
imported before makes no difference. MLIR attaches interfaces to operations of others in
this way.
"""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, TypeAlias

from ..choices import ChoiceError

if TYPE_CHECKING:
    from .tgraph.base import TensorOp

Measure: TypeAlias = "Callable[[TensorOp], int]"
"""The bytes that an operation on memrefs takes besides its operands while it runs."""

_measures: dict[str, str | Callable[[], Measure]] = {
    "native": "tensorplan.runtime.program.workspaces:native",
    "numpy": "tensorplan.runtime.program.workspaces:numpy",
}
"""What gives the measure, or `module:name` of that, as entry points are written."""


def provide(name: str, load: Callable[[], Measure]) -> None:
    """Makes kernels known; `load` is called whenever they are asked."""
    _measures[name] = load


def check_kernels(option: str, name: str) -> None:
    """Raises `ChoiceError` if no kernels have this name, and it is not `none`."""
    if name != "none" and name not in _measures:
        raise ChoiceError(option, name, ("none", *_measures))


def measure_of(kernels: str) -> Measure:
    load = _measures[kernels]
    return (resolve_name(load) if isinstance(load, str) else load)()
