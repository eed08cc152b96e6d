"""Keys of tensor operations: rules give the same result for operations with equal keys.

    keys = StructuralKeys()
    keys.of(a) == keys.of(b)      the same operation on the same types, and the same
                                  within its regions, whatever the values

Equal layers of a network have equal keys, so facts that follow from an operation alone
are computed once for all layers.
"""

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation

from .contents import operands_of


class StructuralKeys:
    """Makes keys. Only keys of the same instance are comparable."""

    def __init__(self) -> None:
        self._numbers: dict[Attribute, int] = {}
        self._numbered: dict[int, tuple[Attribute, int]] = {}  # by id

    def of(self, op: Operation) -> Sequence[object]:
        """The key of an operation whose regions use no values from outside."""
        return self._key(op, {})

    def signature(self, op: Operation) -> Sequence[object]:
        """The key of an operation without the operations in its regions."""
        key = self._own(op, {})
        for region in op.regions:
            for block in region.blocks:
                key += (self.number(argument.type) for argument in block.args)
                key.append(None)
            key.append(None)
        return tuple(key)

    def number(self, attribute: Attribute) -> int:
        """The number of an attribute, equal for equal ones. (Hashing one is slow.)"""
        known = self._numbered.get(id(attribute))
        if known is None:
            number = self._numbers.setdefault(attribute, len(self._numbers))
            known = self._numbered[id(attribute)] = attribute, number
        return known[1]

    def _key(self, op: Operation, inner: dict[int, int]) -> Sequence[object]:
        """`inner` numbers the values of the enclosing regions, by `id`."""
        key = self._own(op, inner)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    inner[id(argument)] = ~len(inner)
                    key.append(self.number(argument.type))
                for each in block.ops:
                    key.append(self._key(each, inner))
                    for result in each.results:
                        inner[id(result)] = ~len(inner)
            key.append(None)
        return tuple(key)

    def _own(self, op: Operation, inner: dict[int, int]) -> list[object]:
        key: list[object] = [type(op), len(op.results)]
        for value in (*operands_of(op), *op.results):
            key.append((inner and inner.get(id(value))) or self.number(value.type))
        for named in (op.attributes, op.properties):
            key += named
            key += map(self.number, named.values())
        return key
