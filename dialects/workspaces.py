"""The workspace that operations need, as declared by the kernels that compute them.

    measure_of("native", 2)(op)             plan-workspaces, for two threads
    provide("npu", lambda: bytes_of)        another runtime's kernels

Passes do not depend on a runtime, so kernels are known by name. A table holds the
modules of this package's own kernels, which are imported on first use; the order of
imports makes no difference. MLIR attaches external interfaces to operations in this
way.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pkgutil import resolve_name
from typing import TypeAlias, cast

from ..support.choices import ChoiceError
from ..support.remembering import remembering
from .tgraph.base import AnyMemRef, TensorOp, is_static

Measure: TypeAlias = Callable[[TensorOp], int]
"""The bytes that an operation on memrefs takes besides its operands while it runs."""

_measures: dict[str, str | Callable[[], Measure]] = {
    "native": "tensorplan.runtime.program.workspaces:native",
    "numpy": "tensorplan.runtime.program.workspaces:numpy",
}
"""What gives the measure, or `module:name` of that, as entry points are written."""

_known: ContextVar[dict[tuple[str, int], Measure] | None] = ContextVar(
    "_known", default=None
)
"""Measures that are in use, by kernels and threads."""


def provide(name: str, load: Callable[[], Measure]) -> None:
    """Makes kernels known; `load` is called whenever they are asked."""
    _measures[name] = load


def check_kernels(option: str, name: str) -> None:
    """Raises `ChoiceError` if no kernels have this name, and it is not `none`."""
    if name != "none" and name not in _measures:
        raise ChoiceError(option, name, ("none", *_measures))


def measured_once() -> AbstractContextManager[None]:
    """Within it all who measure some kernels have one measure, which may remember."""
    return remembering(_known)


def measure_of(kernels: str, threads: int) -> Measure:
    """That of some kernels; ours for so many threads."""
    known = _known.get()
    if known is None:
        known = {}
    if (kernels, threads) not in known:
        load = _measures[kernels]
        measure = resolve_name(load)(threads) if isinstance(load, str) else load()
        known[kernels, threads] = measure
    return known[kernels, threads]


def workspace_of(op: TensorOp, measure: Measure) -> int:
    """The bytes to give to an operation on memrefs; 0 if it has a workspace, or sizes
    that are not static."""
    types = (cast(AnyMemRef, value.type) for value in op.operands)
    return measure(op) if op.workspace is None and all(map(is_static, types)) else 0
