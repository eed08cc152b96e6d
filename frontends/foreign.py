"""Operations of unregistered dialects."""

from functools import cache

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import OpTrait
from xdsl.traits import ConstantLike, SymbolTable


@cache
def unregistered_op(name: str) -> type[UnregisteredOp]:
    """The class of operations with this name, from a dialect that is not registered.

    xDSL assumes that an unregistered operation has every trait. As a symbol table, it
    would hide callees from calls in its regions; as a constant, it would be moved out
    of loops. The class therefore has neither trait.
    """
    named = UnregisteredOp.with_name(name)
    assert issubclass(named, UnregisteredOp)

    class ForeignOp(named):
        @classmethod
        def has_trait(
            cls, trait: type[OpTrait] | OpTrait, *, value_if_unregistered: bool = True
        ) -> bool:
            kind = trait if isinstance(trait, type) else type(trait)
            return value_if_unregistered and kind not in (SymbolTable, ConstantLike)

    return ForeignOp
