"""The operations that symbols name: each symbol table is read once."""

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation
from xdsl.traits import SymbolOpInterface, SymbolTable


class Symbols:
    """What names lead to, as long as nobody adds or removes what has one."""

    def __init__(self):
        self._tables: dict[Operation, dict[str, Operation]] = {}

    def callee(self, call: CallOp) -> FuncOp | None:
        """The function that is called, if its body is there."""
        found = self.lookup(call, call.callee)
        return found if isinstance(found, FuncOp) and not found.is_declaration else None

    def lookup(self, op: Operation, name: SymbolRefAttr) -> Operation | None:
        """What a name in an operation means: the nearest symbol table has it."""
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
