"""Counts what plan-check does not prove, with one remark per kind.

x.mlir:7:5: remark: plan-check: operations with unknown effects, ...: 2 (test.use)
"""

from xdsl.ir import Operation

from ..dialects.diagnostics import name_of, remark


class Unchecked:
    """Operations that are not fully understood, by what is not known of them."""

    def __init__(self) -> None:
        self._found: dict[str, dict[Operation, None]] = {}

    def add(self, what: str, op: Operation) -> None:
        """`what` names the kind, in the plural."""
        self._found.setdefault(what, {})[op] = None

    def remark(self) -> None:
        """Tells the user, at the first operation of each kind."""
        for what, ops in self._found.items():
            names = ", ".join(dict.fromkeys(map(name_of, ops)))
            remark(f"plan-check: {what}: {len(ops)} ({names})", next(iter(ops)))
