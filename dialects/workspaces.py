"""Who knows how much workspace operations take: the kernels that will compute them.

    provide("native", lambda: bytes_of)     a runtime, when it is imported
    measure_of("native")(op)                plan-workspaces

Passes know no runtime, so its kernels come here by name. MLIR attaches interfaces to
operations of others in this way.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tensorplan.dialects.tgraph.base import TensorOp

Measure: TypeAlias = "Callable[[TensorOp], int]"
"""The bytes that an operation on memrefs takes besides its operands while it runs."""

_measures: dict[str, Callable[[], Measure]] = {}


def provide(name: str, load: Callable[[], Measure]) -> None:
    """Makes kernels known; `load` is called when they are first asked."""
    _measures[name] = load


def known() -> Sequence[str]:
    """The names of kernels, in the order in which they became known."""
    return list(_measures)


def measure_of(kernels: str) -> Measure:
    return _measures[kernels]()
