"""Rematerializes a value for readers that depend on a reduction of it.

    %v = dot(%x, %w)                %v = dot(%x, %w)
    %m = reduce(%v)                 %m = reduce(%v)
    ...                             %0 = dot(%x, %w) {tgraph.recomputed}
    %q = convert(%v / %m)           %q = convert(%0 / %m)

The maximum needs all of a value, and a reader of the maximum needs the value again. No
loop over tiles can contain both readers, so the value would be stored between two
loops. Instead, each loop can compute it tile by tile from its operands. Dynamic
quantization is an example, as are norms of whole tensors. If the reduction leaves a
dimension, as in a softmax of rows, one loop over that dimension suffices.
"""

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import NamedTuple, cast

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from ....analysis.cost import time_together
from ....analysis.functions import is_tensor
from ....dialects.tgraph.base import TensorOp
from ....dialects.tgraph.bodies import ElementsOp
from ....dialects.tgraph.callbacks import may_repeat
from ....dialects.tgraph.differentiation import RECOMPUTED
from ....dialects.tgraph.shaping import ConstantOp
from .dimensions import shape_of
from .loops import Surroundings
from .regions import has_effect
from .windows import is_remade


class Rematerializations:
    """The values that are computed again in a block."""

    def __init__(self, allowed: float, least: int):
        """`allowed`: the nanoseconds that the copies may take. `least`: the fewest
        bytes of a value that is computed again."""
        self.behind: dict[Operation, Sequence[SSAValue]] = {}
        """For each copy, the values that it must follow without reading them. A loop
        with both it and their definitions would have to store the repeated value."""
        self._left, self._least = allowed, least
        self._written: list[_Copied] = []

    def write(
        self,
        around: Surroundings,
        sizes: dict[SSAValue, int],
        values: Sequence[SSAValue],
    ) -> bool:
        """Computes again each of `values` for which that is possible and cheap enough;
        returns whether there is any. Adds copies to `sizes`, the bytes of stored
        values. A value that shares operations with one that this call computes again is
        left to the next call, with new surroundings."""
        changed = set[Operation]()
        again = {copied.second[-1].results[0] for copied in self._written}
        before = len(self._written)
        for value in values if self._left else ():
            if sizes[value] < self._least:
                continue
            found = _candidate(around, sizes, value, again)
            if found is None or not changed.isdisjoint(found.operations):
                continue
            if (time := time_together(found.computing)) < self._left:
                self._left -= time
                changed.update(found.operations)
                others = found.others
                self._written.append(found.write(sizes))
                self.behind |= dict.fromkeys(self._written[-1].second, others)
        return len(self._written) > before

    def end(self) -> int:
        """Removes the copies of values that no loop computes. Returns the number of
        values that loops compute again."""
        return sum(not copied.merge() for copied in reversed(self._written))


class _Copied(NamedTuple):
    """The operations that compute a value, and those that compute it again."""

    first: Sequence[Operation]
    second: Sequence[Operation]

    def merge(self) -> bool:
        """Removes the copies, and returns True, if no loop has any of the
        operations."""
        if any(op.parent is None for op in (*self.first, *self.second)):
            return False
        value, again = self.first[-1].results[0], self.second[-1].results[0]
        again.replace_all_uses_with(value)
        for op in reversed(self.second):
            op.detach()
            op.erase()
        return True


class _Candidate(NamedTuple):
    """The operations to copy, in order, and the readers of the copy, in order."""

    computing: Sequence[Operation]
    readers: Sequence[Operation]

    @property
    def operations(self) -> Sequence[Operation]:
        return [*self.computing, *self.readers]

    @property
    def others(self) -> Sequence[SSAValue]:
        """The other values that the first of the readers reads."""
        value = self.computing[-1].results[0]
        return [x for x in self.readers[0].operands if x is not value]

    def write(self, sizes: dict[SSAValue, int]) -> _Copied:
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
        return _Copied(self.computing, second)


def _candidate(
    around: Surroundings,
    sizes: Mapping[SSAValue, int],
    value: SSAValue,
    again: Collection[SSAValue],
) -> _Candidate | None:
    """How to compute `value` again for readers that depend on a reduction of it. None
    if there are no such readers, or `value` cannot be computed again.

    sizes: the bytes of stored values.
    again: the values that are computed again already.
    """
    computing = _computing(around, sizes, value, again)
    users = [use.operation for use in value.uses]
    if not computing or not all(user in around.position for user in users):
        return None
    readers = {user: _made_of(around, sizes, user) for user in users}
    reductions = [found for found in readers.values() if found.is_reduced]
    # The reductions that depend on no other one are in the first loop. A variance is
    # not among them, as it depends on the mean.
    first = 0
    for found in reductions:
        if not any(found.after & other.ends for other in reductions if other != found):
            first |= found.ends
    # The second loop has the readers that depend on one of these reductions.
    late = [
        op
        for op, found in readers.items()
        if first & found.after and not first & found.ends
    ]
    if not late:
        return None
    return _Candidate(computing, sorted(late, key=lambda op: around.position[op]))


class _Reader(NamedTuple):
    """The operations to which one reader of a value leads, as sets.

    ends: the operations that store a value computed from it, or reduce it to a number.
    after: the ends, and all operations that they depend on.
    is_reduced: whether all ends reduce it to a number.
    """

    ends: int
    after: int
    is_reduced: bool


def _made_of(
    around: Surroundings, sizes: Mapping[SSAValue, int], reader: Operation
) -> _Reader:
    """Follows the uses from `reader` on, to stored values and to numbers."""
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
    """The operations that compute `value` from stored values, in order; empty if one of
    them cannot be repeated."""
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
    if not isinstance(op, TensorOp) or op.outs or has_effect(op) or not may_repeat(op):
        return False
    return len(op.res) == 1 and (not op.regions or isinstance(op, ElementsOp))
