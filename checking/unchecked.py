"""Counts the facts that plan-check does not prove, with one remark per kind.

x.mlir:7:5: remark: plan-check: operations with unknown effects, ...: 2 (test.use)
"""

from xdsl.ir import Operation

from ..dialects.diagnostics import name_of, remark


class Unchecked:
    """Operations that are not fully understood, grouped by what is not known."""

    def __init__(self) -> None:
        self._found: dict[str, dict[Operation, None]] = {}

    def add(self, what: str, op: Operation) -> None:
        """Adds an operation; `what` names the kind of fact, in the plural."""
        self._found.setdefault(what, {})[op] = None

    def remark(self) -> None:
        """Logs a remark for each kind, at its first operation."""
        for what, ops in self._found.items():
            names = ", ".join(dict.fromkeys(map(name_of, ops)))
            remark(f"plan-check: {what}: {len(ops)} ({names})", next(iter(ops)))
