"""Symbol lookup that reads each symbol table once."""

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation
from xdsl.traits import SymbolOpInterface, SymbolTable


class Symbols:
    """Finds the operation that a symbol names, and the callees of functions, while
    neither symbols nor calls are added or removed."""

    def __init__(self):
        self._tables: dict[Operation, dict[str, Operation]] = {}
        self._callees: dict[FuncOp, Sequence[FuncOp]] = {}

    def callee(self, call: CallOp) -> FuncOp | None:
        """The called function; None if it is unknown or only declared."""
        found = self.lookup(call, call.callee)
        return found if isinstance(found, FuncOp) and not found.is_declaration else None

    def callees_first(self, func: FuncOp, known: Container[FuncOp]) -> Iterator[FuncOp]:
        """`func` and all functions that it reaches by calls, callees before callers.
        Without functions that reach a function that may call itself, and without those
        in `known`, which earlier calls have returned."""
        callees: dict[FuncOp, Sequence[FuncOp]] = {}
        pending = [func]
        for each in pending:  # grows during the loop
            if each not in callees and each not in known:
                callees[each] = self._callees_of(each)
                pending += callees[each]
        order = TopologicalSorter(
            {f: [c for c in read if c in callees] for f, read in callees.items()}
        )
        with suppress(CycleError):  # gives the functions before cycles
            order.prepare()
        while ready := order.get_ready():
            yield from ready
            order.done(*ready)

    def _callees_of(self, func: FuncOp) -> Sequence[FuncOp]:
        if func not in self._callees:
            calls = (op for op in func.walk() if isinstance(op, CallOp))
            found = dict.fromkeys(filter(None, map(self.callee, calls)))
            self._callees[func] = list(found)
        return self._callees[func]

    def lookup(self, op: Operation, name: SymbolRefAttr) -> Operation | None:
        """The operation that `name` refers to at `op`; None if there is none."""
        found: Operation | None = op
        while found is not None and not found.has_trait(SymbolTable):
            found = found.parent_op()
        for part in (name.root_reference, *name.nested_references.data):
            found = self._table(found).get(part.data) if found else None
        return found

    def _table(self, op: Operation) -> dict[str, Operation]:
        if op not in self._tables:
            named: dict[str, Operation] = {}
            inside = op.regions[0].block.ops if op.has_trait(SymbolTable) else ()
            for each in inside:
                trait = each.get_trait(SymbolOpInterface)
                if trait and (given := trait.get_sym_attr_name(each)):
                    named.setdefault(given.data, each)
            self._tables[op] = named
        return self._tables[op]
