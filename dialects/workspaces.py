"""The workspaces that operations need, as declared by the kernels that compute them.

    measure_of("native", 2)(op)             plan-workspaces, for two threads
    provide("npu", lambda: bytes_of)        another runtime's kernels

Passes do not depend on a runtime, so they know kernels by name. A table names the
modules of this package's own kernels, which are imported on first use, so the order of
imports does not matter. MLIR attaches external interfaces to operations in the same
way.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pkgutil import resolve_name
from typing import TypeAlias, cast

from ..support.choices import ChoiceError
from ..support.memoization import memoized_within
from .tgraph.base import AnyMemRef, TensorOp, is_static

Measure: TypeAlias = Callable[[TensorOp], int]
"""Returns the bytes of scratch memory that an operation on memrefs needs."""

_measures: dict[str, str | Callable[[], Measure]] = {
    "native": "tensorplan.runtime.program.workspaces:native",
    "numpy": "tensorplan.runtime.program.workspaces:numpy",
}
"""By kernels: a function that returns the measure, or `module:name` of ours, which
takes the number of threads."""

_known: ContextVar[dict[tuple[str, int], Measure] | None] = ContextVar(
    "_known", default=None
)
"""The measures that `measured_once` keeps, by kernels and threads."""


def provide(name: str, load: Callable[[], Measure]) -> None:
    """Registers kernels; `measure_of` calls `load` to get their measure."""
    _measures[name] = load


def check_kernels(option: str, name: str) -> None:
    """Raises `ChoiceError` if `name` is neither registered nor `none`."""
    if name != "none" and name not in _measures:
        raise ChoiceError(option, name, ("none", *_measures))


def measured_once() -> AbstractContextManager[None]:
    """Within the block, `measure_of` returns one measure per kernels and threads, so a
    measure can cache its results."""
    return memoized_within(_known)


def measure_of(kernels: str, threads: int) -> Measure:
    """The measure of some kernels; our own kernels use `threads` threads."""
    known = _known.get()
    if known is None:
        known = {}
    if (kernels, threads) not in known:
        load = _measures[kernels]
        measure = resolve_name(load)(threads) if isinstance(load, str) else load()
        known[kernels, threads] = measure
    return known[kernels, threads]


def workspace_of(op: TensorOp, measure: Measure) -> int:
    """The bytes of workspace to add to an operation on memrefs; 0 if it has a workspace
    already, or sizes that are not static."""
    types = (cast(AnyMemRef, value.type) for value in op.operands)
    return measure(op) if op.workspace is None and all(map(is_static, types)) else 0
