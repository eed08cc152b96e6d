"""The dialects, by name; each factory imports on first use.

tgraph/       tensor programs: operations, types, rules
reference/    what they compute, in plain NumPy
dtypes.py     element types and constants as NumPy sees them
signature.py  a program's inputs and results in the caller's order
memory.py     what an operation of any dialect does to memory
linalg_memory.py, strides.py   the same of linalg; the strides of arrays
symbolic.py, intervals.py      sizes that have names, and their bounds
workspaces.py   who knows how much workspace operations take
diagnostics.py, compatibility.py   located errors; versions of xDSL
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.ir import Dialect

if TYPE_CHECKING:
    from xdsl.context import Context


def get_all_dialects() -> dict[str, Callable[[], Dialect]]:
    """Our dialects' names and factories, as xDSL's tools take them."""

    def get_tgraph() -> Dialect:
        from tensorplan.dialects.tgraph import TGraph

        return TGraph

    return {"tgraph": get_tgraph}


def context() -> "Context":
    """An xDSL context that knows xDSL's dialects and ours, and lets others pass."""
    from xdsl import dialects
    from xdsl.context import Context

    ctx = Context(allow_unregistered=True)
    for name, factory in (dialects.get_all_dialects() | get_all_dialects()).items():
        ctx.register_dialect(name, factory)
    return ctx
