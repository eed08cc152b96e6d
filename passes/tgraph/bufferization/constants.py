"""Writes a module's constants as `memref.global`s."""

from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute
from xdsl.rewriter import InsertPoint, Rewriter


class Constants:
    """The module's `memref.global`s, one for each distinct constant."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self.names: dict[tuple[Attribute, Attribute], str] = {}
        self.taken = {
            op.sym_name.data for op in module.ops if isinstance(op, memref.GlobalOp)
        }

    def name_of(self, value: Attribute, type: Attribute) -> str:
        if name := self.names.get((value, type)):
            return name
        number = len(self.names)
        while (name := f"constant_{number}") in self.taken:
            number += 1
        self.taken.add(name)
        self.names[value, type] = name
        op = memref.GlobalOp.get(StringAttr(name), type, value, constant=UnitAttr())
        Rewriter.insert_op(op, InsertPoint.at_start(self.module.body.block))
        return name
