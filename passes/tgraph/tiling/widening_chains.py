"""Finds elementwise chains at the start or end of a loop that widen the stored values.

A value between a loop over tiles and the rest of the block is stored whole. A chain at
the start or end of the loop is therefore better computed outside, up to its narrowest
value, in one group with the operation that defines or reads the other end:

    %c = convolution(...)            : tensor<112x112x32xi32>
    %q = convert(clamp(round(%c)))   : tensor<112x112x32xui8>
    loop: ... %q ...                 stores a quarter of the bytes of %c
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from xdsl.ir import Operation, SSAValue

from ....dialects.tgraph.base import value_bytes
from ....dialects.tgraph.elementwise import ElementwiseOp
from .dimensions import is_repeated
from .windows import users

_Members = Collection[Operation]


def widening_chain(
    members: _Members, sliced: Iterable[SSAValue], outputs: Iterable[SSAValue]
) -> Sequence[Operation]:
    """The members between a value that is stored at the start or end of a loop and a
    narrower value; empty if there are none.

    sliced: the values that the loop takes tiles of.
    outputs: the members' results that the loop assembles from tiles.
    """
    for value in sliced:
        if isinstance(value.owner, Operation):  # arguments are stored anyway
            if chain := _narrowed(value, _readers(value, members)):
                return chain
    for value in outputs:
        last = value.owner
        assert isinstance(last, Operation)
        if not any(user in members for user in users(value)):
            if chain := _narrowed(value, elementwise_sources(last, members)):
                return [last, *chain[:-1]]
    return ()


def _narrowed(
    value: SSAValue, chain: Iterable[Sequence[Operation]]
) -> Sequence[Operation]:
    """The chain up to the first step whose result has fewer bytes than `value`; empty
    if there is none."""
    found: list[Operation] = []
    for step in chain:
        found += step
        if value_bytes(step[-1].results[0]) < value_bytes(value):
            return found
    return ()


def _readers(value: SSAValue, members: _Members) -> Iterator[Sequence[Operation]]:
    """Yields the chain of elementwise members from `value` on, each the only reader of
    the one before. A step also has the members that only it needs, if all of these are
    elementwise: for example, the correction of sums for a zero point."""
    made: set[Operation] = set()
    while len(readers := list(users(value))) == 1:
        (op,) = readers
        if op not in members or not isinstance(op, ElementwiseOp):
            return
        beside = list(_makers(op, members) - made)
        for other in beside:  # grows
            if not isinstance(other, ElementwiseOp) or _is_shared(other):
                return
            beside += _makers(other, members) - {*beside}
        yield [*beside, op]
        made, value = {op}, op.results[0]


def elementwise_sources(
    op: Operation, members: _Members
) -> Iterator[Sequence[Operation]]:
    """Yields the members from which `op` is computed, backwards, as long as each is
    elementwise and reads one other member."""
    while isinstance(op, ElementwiseOp) and len(makers := _makers(op, members)) == 1:
        (op,) = makers
        if len(op.results) > 1:
            return
        yield [op]
        if _is_shared(op):
            return


def _is_shared(op: Operation) -> bool:
    return len(list(users(op.results[0]))) > 1


def _makers(op: Operation, members: _Members) -> set[Operation]:
    """The members whose results `op` reads, directly or through views."""
    found: set[Operation] = set()
    for value in op.operands:
        while isinstance(value.owner, Operation) and is_repeated(value.owner):
            if not value.owner.operands:
                break
            value = value.owner.operands[0]
        if isinstance(value.owner, Operation) and value.owner in members:
            found.add(value.owner)
    return found
