"""Who knows how much workspace operations take: the kernels that will compute them.

    measure_of("native")(op)                plan-workspaces
    provide("npu", lambda: bytes_of)        another runtime's kernels

Passes know no runtime, so kernels are known by name. Those of this package stand in a
table, by where they are, and are imported when they are first asked: what has been
imported before makes no difference. MLIR attaches interfaces to operations of others in
this way.
"""

from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tensorplan.dialects.tgraph.base import TensorOp

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


def known() -> Sequence[str]:
    """The names of kernels, in the order in which they became known."""
    return list(_measures)


def measure_of(kernels: str) -> Measure:
    load = _measures[kernels]
    return (resolve_name(load) if isinstance(load, str) else load)()
