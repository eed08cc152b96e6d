"""Computes a value again for readers that come after a reduction of it.

    %v = dot(%x, %w)                %v = dot(%x, %w)
    %m = reduce(%v)                 %m = reduce(%v)
    ...                             %0 = dot(%x, %w) {tgraph.recomputed}
    %q = convert(%v / %m)           %q = convert(%0 / %m)

All of a value has to be there for its maximum, and a reader of the maximum needs it
once more. So no loop over tiles has both readers, and the value would be stored between
two loops. Each of them can compute it tile by tile from what it is made of. Dynamic
quantization is such a case, as are norms of whole tensors. Where a dimension is left,
as in a softmax of rows, one loop over that dimension does.
"""

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import NamedTuple, cast

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from ....analysis.cost import times
from ....analysis.functions import is_tensor
from ....dialects.tgraph.base import TensorOp
from ....dialects.tgraph.bodies import ElementsOp
from ....dialects.tgraph.differentiation import RECOMPUTED
from ....dialects.tgraph.shaping import ConstantOp
from .dimensions import shape_of
from .loops import Surroundings
from .regions import has_effect
from .windows import is_remade


class Again:
    """What is computed again in a block."""

    def __init__(self, allowed: float, least: int):
        """`allowed` are the nanoseconds that this may take. Values have at least so
        many bytes."""
        self.behind: dict[Operation, Sequence[SSAValue]] = {}
        """What comes after values without reading them: a loop with what these are
        made of would have to store what is computed again."""
        self._left, self._least = allowed, least
        self._written: list[_Twice] = []

    def write(
        self,
        around: Surroundings,
        sizes: dict[SSAValue, int],
        values: Sequence[SSAValue],
    ) -> bool:
        """Computes those of some values again that may be; returns whether there is
        one. `sizes` are the bytes of what is stored. What has to do with a value that
        is computed again is left to the next call, with other surroundings."""
        changed = set[Operation]()
        again = {twice.second[-1].results[0] for twice in self._written}
        before = len(self._written)
        for value in values if self._left else ():
            if sizes[value] < self._least:
                continue
            found = _repetition(around, sizes, value, again)
            if found is None or not changed.isdisjoint(found.operations):
                continue
            if (time := sum(times(found.computing))) < self._left:
                self._left -= time
                changed.update(found.operations)
                others = found.others
                self._written.append(found.write(sizes))
                self.behind |= dict.fromkeys(self._written[-1].second, others)
        return len(self._written) > before

    def end(self) -> int:
        """Has what no loop computes computed once; returns how many values loops
        compute again."""
        return sum(not twice.merge() for twice in reversed(self._written))


class _Twice(NamedTuple):
    """The operations that compute a value, and those that compute it again."""

    first: Sequence[Operation]
    second: Sequence[Operation]

    def merge(self) -> bool:
        """Has the value computed once, if no loop does; whether it is then."""
        if any(op.parent is None for op in (*self.first, *self.second)):
            return False
        value, again = self.first[-1].results[0], self.second[-1].results[0]
        again.replace_all_uses_with(value)
        for op in reversed(self.second):
            op.detach()
            op.erase()
        return True


class _Repetition(NamedTuple):
    """What would compute a value again, and for whom. Both are in order."""

    computing: Sequence[Operation]
    readers: Sequence[Operation]

    @property
    def operations(self) -> Sequence[Operation]:
        return [*self.computing, *self.readers]

    @property
    def others(self) -> Sequence[SSAValue]:
        """What else the first of the readers reads."""
        value = self.computing[-1].results[0]
        return [x for x in self.readers[0].operands if x is not value]

    def write(self, sizes: dict[SSAValue, int]) -> _Twice:
        """Computes the value again in front of the first of the readers."""
        value, anchor = self.computing[-1].results[0], self.readers[0]
        block, copies = anchor.parent, dict[SSAValue, SSAValue]()
        assert block is not None
        second = [op.clone(copies) for op in self.computing]
        for first, op in zip(self.computing, second, strict=True):
            op.attributes[RECOMPUTED] = UnitAttr()
            block.insert_op_before(op, anchor)
            if first.results[0] in sizes:
                sizes[op.results[0]] = sizes[first.results[0]]
        for reader in self.readers:
            reader.operands = [copies[x] if x is value else x for x in reader.operands]
        return _Twice(self.computing, second)


def _repetition(
    around: Surroundings,
    sizes: Mapping[SSAValue, int],
    value: SSAValue,
    again: Collection[SSAValue],
) -> _Repetition | None:
    """How to compute a value again for those who read it after a reduction of it; None
    if there are none, or it can't be.

    sizes: bytes of what is stored.
    again: what is computed again already.
    """
    computing = _computing(around, sizes, value, again)
    users = [use.operation for use in value.uses]
    if not computing or not all(user in around.position for user in users):
        return None
    readers = {user: _made_of(around, sizes, user) for user in users}
    reductions = [found for found in readers.values() if found.is_reduced]
    # The numbers of those reductions that wait for no other one: the first loop has
    # them. A variance is not among them, as it waits for the mean.
    first = 0
    for found in reductions:
        if not any(found.after & other.ends for other in reductions if other != found):
            first |= found.ends
    # The second loop has the readers that wait for one of these numbers.
    late = [
        op
        for op, found in readers.items()
        if first & found.after and not first & found.ends
    ]
    if not late:
        return None
    return _Repetition(computing, sorted(late, key=lambda op: around.position[op]))


class _Reader(NamedTuple):
    """What comes of a value where it is read: sets of operations.

    ends: that store something of it, or reduce it.
    after: that come before these.
    is_reduced: whether all of them reduce it to a number.
    """

    ends: int
    after: int
    is_reduced: bool


def _made_of(
    around: Surroundings, sizes: Mapping[SSAValue, int], reader: Operation
) -> _Reader:
    """What comes of a value where `reader` reads it."""
    ends, after, is_reduced = 0, 0, True
    queue, seen = [reader], {reader}
    while queue:
        op = queue.pop()
        is_number = bool(op.results) and all(map(_is_number, op.results))
        if is_number or not op.results or any(x in sizes for x in op.results):
            ends |= around.bit(op)
            after |= around.with_ancestors[around.position[op]]
            is_reduced &= is_number
            continue
        following = {use.operation: None for x in op.results for use in x.uses}
        queue += [x for x in following if x not in seen and x in around.position]
        seen.update(following)
    return _Reader(ends, after, is_reduced)


def _is_number(value: SSAValue) -> bool:
    return is_tensor(value.type) and prod(shape_of(value)) == 1


def _computing(
    around: Surroundings,
    sizes: Mapping[SSAValue, int],
    value: SSAValue,
    again: Collection[SSAValue],
) -> Sequence[Operation]:
    """What computes a value from what stays stored, in order; nothing if not all of it
    can be computed again."""
    queue = [cast(Operation, value.owner)]
    found = set(queue)
    while queue:
        op = queue.pop()
        if op not in around.position or not _may_be_repeated(op):
            return ()
        for operand in op.operands:
            owner = operand.owner
            if not isinstance(owner, Operation) or isinstance(owner, ConstantOp):
                continue
            is_stored = operand in sizes and operand not in again
            if owner not in found and (not is_stored or is_remade(owner)):
                found.add(owner)
                queue.append(owner)
    return sorted(found, key=lambda op: around.position[op])


def _may_be_repeated(op: Operation) -> bool:
    if not isinstance(op, TensorOp) or op.outs or has_effect(op):
        return False
    return len(op.res) == 1 and (not op.regions or isinstance(op, ElementsOp))
