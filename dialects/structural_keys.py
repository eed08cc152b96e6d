"""Keys of tensor operations: of two with equal keys, all rules say the same.

    keys = StructuralKeys()
    keys.of(a) == keys.of(b)      the same operation on the same types, and the same
                                  within its regions, whatever the values

Equal layers of a network have equal keys, so what follows from an operation alone is
asked once for all of them.
"""

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation

from .contents import operands_of


class StructuralKeys:
    """Makes keys; those of one instance can be compared."""

    def __init__(self) -> None:
        self._numbers: dict[Attribute, int] = {}
        self._numbered: dict[int, tuple[Attribute, int]] = {}  # by id

    def of(self, op: Operation) -> Sequence[object]:
        """The key of an operation whose regions use nothing from outside."""
        return self._key(op, {})

    def signature(self, op: Operation) -> Sequence[object]:
        """The key of an operation but for the operations in its regions."""
        key = self._own(op, {})
        for region in op.regions:
            for block in region.blocks:
                key += (self.number(argument.type) for argument in block.args)
                key.append(None)
            key.append(None)
        return tuple(key)

    def number(self, attribute: Attribute) -> int:
        """Of equal attributes the same. (To hash one takes long.)"""
        known = self._numbered.get(id(attribute))
        if known is None:
            number = self._numbers.setdefault(attribute, len(self._numbers))
            known = self._numbered[id(attribute)] = attribute, number
        return known[1]

    def _key(self, op: Operation, inner: dict[int, int]) -> Sequence[object]:
        """`inner`: the values of the regions around, by `id`."""
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
