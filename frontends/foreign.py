"""Operations of dialects that nobody registered."""

from functools import cache

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import OpTrait
from xdsl.traits import ConstantLike, SymbolTable


@cache
def unregistered_op(name: str) -> type[UnregisteredOp]:
    """The class for operations of this name from a dialect that nobody registered.

    xDSL asks for some traits as if unregistered operations had all. As symbol tables,
    they would keep a call in their regions from finding its callee; as constants, they
    would be moved out of loops.
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
