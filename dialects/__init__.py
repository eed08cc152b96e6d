"""The dialects, by name; each factory imports on first use.

tgraph/            tensor programs: operations, types, rules, reference interpreter
sizes/             symbolic sizes
memory.py          memory effects of operations of any dialect
target_memory.py   the memories of the target: capacities, addresses, banks
tags.py            which waits end transfers that were started with a tag
linalg_memory.py   memory effects of linalg
strides.py         layouts of memrefs
dtypes.py          element types and constants as NumPy types and arrays
symbols.py         symbol lookup
workspaces.py      scratch memory of kernels
dominance.py       block orders and the dominator tree
diagnostics.py     located errors and remarks
contents.py        detects changed operations
structural_keys.py detects structurally equal operations
garbage.py         garbage collection during IR construction
compatibility.py   support of several versions of xDSL
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.ir import Dialect


def get_all_dialects() -> dict[str, "Callable[[], Dialect]"]:
    """The names and factories of tensorplan's dialects, as xDSL's tools take them."""

    def get_tgraph() -> "Dialect":
        from .tgraph import TGraph

        return TGraph

    return {"tgraph": get_tgraph}


def context() -> "Context":
    """An xDSL context with the dialects of xDSL and tensorplan, which allows
    unregistered dialects."""
    from xdsl import dialects
    from xdsl.context import Context

    ctx = Context(allow_unregistered=True)
    for name, factory in (dialects.get_all_dialects() | get_all_dialects()).items():
        ctx.register_dialect(name, factory)
    return ctx
