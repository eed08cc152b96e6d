"""Chooses the values to keep across the peak and those to rematerialize after it.

A value that is read after the peak is kept, or each group that reads it computes it
again from other values that are kept. `planning/scheduling/residuals.py` finds the
fewest bytes that suffice. For a batch norm and an activation, only the input is kept,
though keeping it in place of any single value would save nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain

from xdsl.ir import Operation, OpResult, SSAValue, Use

from ....analysis.cost import time_to_move
from ....dialects.contents import operands_of
from ....dialects.tgraph.base import (
    element_bytes,
    tensor_type_of,
    typical_bytes,
    value_bytes,
)
from ....dialects.tgraph.elementwise import ElementwiseOp
from ....dialects.tgraph.fusing import needs_leaf
from ....dialects.tgraph.indexing import GatherOp
from ....dialects.tgraph.reducing import ReduceOp
from ....dialects.tgraph.shaping import ViewOp
from ....planning.scheduling.residuals import Choice, Residual
from .graph import place_of
from .groups import Grouping, has_destination, is_computed, is_repeatable
from .peak import Peak

MOST = 8
"""The most groups that compute a value again, and the most times that one of them
computes each element."""

PRICES = [0.01 * 2 ** (number / 4) for number in range(128)]
"""Prices of time in bytes per nanosecond."""


def is_seen_through(op: Operation) -> bool:
    """Whether repeating `op` on a copy of its operand costs nothing."""
    return (isinstance(op, ViewOp) and not has_destination(op)) or is_repeatable(op)


def repeats(value: SSAValue, elements: int) -> int:
    """How often each element of `value` occurs in a broadcast of it to `elements`."""
    return elements // max(_elements(value), 1)


def _sources(values: Iterable[SSAValue]) -> Iterable[SSAValue]:
    """The values from which `values` are made by views, broadcasts, iotas and single
    numbers alone. None of them is such a value itself."""
    reached = dict.fromkeys(values)
    sources: list[SSAValue] = []
    for value in (queue := list(reached)):  # grows
        if isinstance(value, OpResult) and is_seen_through(op := value.op):
            new = [v for v in dict.fromkeys(operands_of(op)) if v not in reached]
            reached |= dict.fromkeys(new)
            queue += new
        else:
            sources.append(value)
    return sources


class Crossing:
    """The values that are computed before the peak and read at it or later.

    readers: the operations that read them, in program order, by their groups.
    """

    def __init__(self, peak: Peak, grouping: Grouping, step: int):
        self._function = function = peak.function
        self._grouping = grouping
        self._liveness = peak.liveness(grouping)
        self._time_of, self._arithmetic_of = peak.time_of, peak.arithmetic_of
        self._peak = step
        self.readers: dict[int, list[Operation]] = {}
        self._groups: dict[SSAValue, set[int]] = {}  # that need it, directly or not
        self._repeats: dict[SSAValue, int] = {}  # times a copy computes each element
        self._stored: set[SSAValue] = set()  # whose readers need it stored
        self._works: dict[int, tuple[dict[SSAValue, None], int]] = {}
        for op in function.ops:
            if not is_seen_through(op) and self._group(op) >= step:
                self._read(op, self._group(op))
        self._needed = list(self._groups)
        self._values = self._reached()

    def _group(self, op: Operation) -> int:
        """The position at which `op` is computed: that of its group's root, if any."""
        index = self._function.position[op]
        return max(index, self._grouping.roots[index])

    def _is_before(self, value: SSAValue) -> bool:
        owner = value.owner
        return isinstance(owner, Operation) and self._group(owner) < self._peak

    def _read(self, op: Operation, group: int) -> None:
        operands = operands_of(op)
        uses = [Use(op, number) for number in range(len(operands))]
        for is_stored in (True, False):
            read = [operands[x.index] for x in uses if _needs_stored(x) == is_stored]
            if is_stored and group == self._peak:
                continue  # these are always live at the peak
            values = [v for v in _sources(read) if self._is_before(v)]
            for value in values:
                self._groups.setdefault(value, set()).add(group)
                is_aligned = isinstance(op, ElementwiseOp | ReduceOp)
                self._repeat(value, op.results[0] if is_aligned else value, 1)
            if is_stored:
                self._stored.update(values)
            if values and op not in self.readers.setdefault(group, []):
                self.readers[group].append(op)

    def _reached(self) -> Mapping[SSAValue, Sequence[SSAValue] | None]:
        """The values that are needed after the peak, directly or to compute others. For
        each, the values it is computed from; None if it cannot be computed again."""
        found: dict[SSAValue, Sequence[SSAValue] | None]
        found = dict.fromkeys(self._needed)
        for op in reversed(self._function.ops[: self._peak]):
            if self._may_be_copied(op):
                (value,) = op.results
                found[value] = read = list(_sources(operands_of(op)))
                for source in read:
                    found.setdefault(source, None)
                    groups = self._groups.setdefault(source, set())
                    groups |= self._groups[value]
                    self._repeat(source, value, self._repeats[value])
        return found

    def _repeat(self, value: SSAValue, reader: SSAValue, times: int) -> None:
        """Notes how often a copy computes each element of `value` for `reader`, whose
        elements are computed `times` times: once for each place that a broadcast gives
        the element."""
        times *= repeats(value, _elements(reader))
        known = self._repeats.get(value, 1)
        self._repeats[value] = max(known, times if times <= MOST else 1)

    def _again(self, value: SSAValue) -> int:
        """The nanoseconds that one copy of `value` takes to compute."""
        return self._arithmetic_of(_maker(value)) * self._repeats[value]

    def _may_be_copied(self, op: Operation) -> bool:
        if not isinstance(op, ElementwiseOp | GatherOp):
            return False
        if not op.results or has_destination(op):
            return False
        groups = self._groups.get(op.results[0], ())
        ops = self._function.ops
        return (
            0 < len(groups) <= MOST
            and self._is_before(op.results[0])
            and all(place_of(ops[group]) == place_of(op) for group in groups)
        )

    @property
    def may_recompute(self) -> bool:
        """Whether any value may be computed again."""
        return any(read is not None for read in self._values.values())

    def cheapest(self, allowed: float, saves: bool) -> set[SSAValue]:
        """The values to compute again so that the fewest bytes are kept. The copies
        take at most `allowed` nanoseconds. If `saves`, the time that groups save by
        reading less is deducted."""
        values = list(self._values)
        lower: Choice | None = None
        found: set[SSAValue] = set()
        low, high = -1, len(PRICES)  # known to be too low; known to be high enough
        while high - low > 1:
            middle = (low + high + 1) // 2 if lower else 0
            price = PRICES[middle] * len(self._function.ops)
            choice = lower.at_higher(price) if lower else self._choice(price)
            again = {values[number] for number in choice.recomputed}
            if self._time(again, saves) <= allowed:
                high, found = middle, again
            else:
                low, lower = middle, choice
        return found

    def _choice(self, price: float) -> Choice:
        """The choice of values to compute again at a price of time."""
        number = {value: i for i, value in enumerate(self._values)}
        residuals: list[Residual] = []
        for value, read in self._values.items():
            held = self._held(value)
            if read is None:
                residuals.append(Residual(held))
                continue
            again = self._again(value) * len(self._groups[value])
            again += self._time_to_store(value)
            residuals.append(Residual(held, again, [number[v] for v in read]))
        return Choice(residuals, [number[v] for v in self._needed], price)

    def _held(self, value: SSAValue) -> int:
        """The weight of keeping `value`: its bytes, scaled up with its age, so that
        equal layers differ and need not all be treated alike."""
        if not self._is_before(value):
            return 0
        age = len(self._function.ops) - self._function.position[_maker(value)]
        return self._liveness.bytes(value) * (len(self._function.ops) + age)

    def _time_to_store(self, value: SSAValue) -> int:
        return self._time_of(_maker(value)) if value in self._stored else 0

    @cached_property
    def _read_by(self) -> Mapping[Operation, Collection[SSAValue]]:
        """The values that each reader reads, behind views and broadcasts."""
        readers = chain.from_iterable(self.readers.values())
        return {op: list(_sources(operands_of(op))) for op in readers}

    def _time(self, again: Set[SSAValue], saves: bool) -> int:
        """The nanoseconds that all copies take. If `saves`, those that groups save by
        reading less are deducted."""
        return sum(
            self._time_in(group, self._copied(readers, again), saves)
            for group, readers in self.readers.items()
        )

    def _copied(
        self, readers: Iterable[Operation], again: Set[SSAValue]
    ) -> Collection[SSAValue]:
        """The values that the group of `readers` computes again."""
        found: dict[SSAValue, None] = {}
        queue = [v for op in readers for v in self._read_by[op]]
        for value in queue:  # grows
            if value in again and value not in found:
                found[value] = None
                queue += self._values[value] or ()
        return found.keys()

    def _time_in(self, group: int, copied: Collection[SSAValue], saves: bool) -> int:
        """The nanoseconds by which copies make a group longer. Copies are free while
        the group waits for memory. Unless `saves`, the time without copies is that of a
        group that moves the same bytes as with copies."""
        if not copied:
            return 0
        before, computing = self._work(group)
        read = dict(before)
        for value in copied:
            read |= dict.fromkeys(self._read_for(value))
        moving = _time_to_move(
            value
            for value in read
            if value not in copied or isinstance(value.owner, GatherOp)
        )
        again = sum(map(self._again, copied))
        took = max(_time_to_move(before) if saves else moving, computing)
        longer = max(moving, computing + again) - took
        return longer + sum(map(self._time_to_store, copied))

    def _read_for(self, value: SSAValue) -> Iterable[SSAValue]:
        """The values that a copy of `value` reads. A gather reads as many bytes as its
        result has, and its indices."""
        if isinstance(op := value.owner, GatherOp):
            return [value, *_sources(op.inputs[1:])]
        return self._values[value] or ()

    def _work(self, group: int) -> tuple[dict[SSAValue, None], int]:
        """The values that a group reads and writes without copies, and the nanoseconds
        of its arithmetic."""
        if group not in self._works:
            numbers = self._grouping.members.get(group) or [group]
            members = dict.fromkeys(self._function.ops[number] for number in numbers)
            values: list[SSAValue] = [*self._function.ops[numbers[-1]].results]
            for op in members:
                read = _sources(operands_of(op))
                values += (value for value in read if value.owner not in members)
            moved = dict.fromkeys(values)
            self._works[group] = moved, sum(map(self._arithmetic_of, members))
        return self._works[group]


def _time_to_move(values: Iterable[SSAValue]) -> int:
    return time_to_move(sum(value_bytes(v) for v in values))


def _needs_stored(use: Use) -> bool:
    """Whether no group can compute this operand where it reads it."""
    return not is_computed(use.operation) or needs_leaf(use)


def _elements(value: SSAValue) -> int:
    type = tensor_type_of(value.type)
    return typical_bytes(type) // element_bytes(type.element_type)


def _maker(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation)
    return value.owner
