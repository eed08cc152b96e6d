"""Finds the elementwise chains by which a loop over tiles begins or ends too wide.

What lies between a loop and the rest of its block is stored as a whole. So a chain at
an end of the loop is better computed outside, up to its narrowest value, in one group
with what it comes from or goes to:

    %c = convolution(...)            : tensor<112x112x32xi32>
    %q = convert(clamp(round(%c)))   : tensor<112x112x32xui8>
    loop: ... %q ...                 stores a fourth of what it would with %c
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from xdsl.ir import Operation, SSAValue

from ....dialects.tgraph.elementwise import ElementwiseOp
from .dimensions import bytes_of, is_repeated
from .windows import users

_Members = Collection[Operation]


def wide_end(
    members: _Members, sliced: Iterable[SSAValue], outputs: Iterable[SSAValue]
) -> Sequence[Operation]:
    """Members between what is stored for or by a loop and a narrower value.

    sliced: what the loop takes tiles of.
    outputs: the members' results whose tiles it puts together.
    """
    for value in sliced:
        if isinstance(value.owner, Operation):  # given values are stored anyway
            if chain := _narrowed(value, _readers(value, members)):
                return chain
    for value in outputs:
        last = value.owner
        assert isinstance(last, Operation)
        if not any(user in members for user in users(value)):
            if chain := _narrowed(value, _sources(last, members)):
                return [last, *chain[:-1]]
    return ()


def _narrowed(
    value: SSAValue, chain: Iterable[Sequence[Operation]]
) -> Sequence[Operation]:
    """A chain up to the first step with fewer bytes than a value; empty if it has
    none."""
    found: list[Operation] = []
    for step in chain:
        found += step
        if bytes_of(step[-1].results[0]) < bytes_of(value):
            return found
    return ()


def _readers(value: SSAValue, members: _Members) -> Iterator[Sequence[Operation]]:
    """The elementwise members that a value goes through, each the only reader of the
    one before, behind the members that only it needs, all of them elementwise: such as
    what is taken off sums for a zero point."""
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


def _sources(op: Operation, members: _Members) -> Iterator[Sequence[Operation]]:
    """The members that a result comes from, each through elementwise members that read
    no other member."""
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
    """The members whose results an operation reads, or views of them."""
    found: set[Operation] = set()
    for value in op.operands:
        while isinstance(value.owner, Operation) and is_repeated(value.owner):
            if not value.owner.operands:
                break
            value = value.owner.operands[0]
        if isinstance(value.owner, Operation) and value.owner in members:
            found.add(value.owner)
    return found
