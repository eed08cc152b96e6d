"""The buffers that a memref refers to at a given time, for plan-check.

    %r = scf.if %c -> (memref<16xf32>) {
      scf.yield %a                          reference (%r, a)
    } else {
      scf.yield %b                          reference (%r, b)
    }

A reference is a pair of a value that control flow forwards and a buffer that it may
refer to. It loses its bytes independently: where `%r` is b, it does not matter what has
happened to a. A slot is such a value that consists of bytes, in which a view with the
attribute `tgraph.buffer` makes a buffer. A memref of a transfer has references, too,
from start to wait, if the wait may be in another iteration or block. Shares no code
with the planner.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeGuard

from xdsl.dialects import memref
from xdsl.ir import Block, Operation, Region, SSAValue

from ..dialects.diagnostics import name_of
from ..dialects.memory import BUFFER, is_view
from .buffers import numbers_of
from .pointees import FORWARDING, may_be, operations_in, targets


class Moved(NamedTuple):
    """A memref that a transfer reads or writes until its wait."""

    start: Operation
    value: SSAValue


class References:
    """The references of a function, numbered consecutively after its buffers.

    `numbers` has the `count` buffers, and `known` the buffers each memref may refer to.
    """

    def __init__(
        self,
        body: Region,
        count: int,
        numbers: Mapping[SSAValue, int],
        known: Mapping[SSAValue, Sequence[int]],
        moved: Mapping[Moved, Sequence[int]],
    ):
        self.buffers = (1 << count) - 1
        """All buffers, as bits."""
        self.buffer = list(range(count))
        """The buffer of each buffer or reference, by number."""
        self.aliases = [0] * count
        """By buffer: the references that may refer to it, as bits."""
        self.of: dict[SSAValue | Moved, int] = {}
        """By forwarded value: its references, as bits."""
        self.by_value: dict[SSAValue | Moved, dict[int, int]] = {}
        """By forwarded value, then by buffer: the number of the reference."""
        for value, buffers in known.items():
            if value not in numbers and _is_forwarded(value, body):
                self._add(value, buffers)
        forwarded = [value for value in self.of if isinstance(value, SSAValue)]
        roots = (*numbers, *forwarded)
        sources = may_be({root: n for n, root in enumerate(roots)}, set(roots))
        bits = [1 << n for n in numbers.values()]
        bits += [self.of[value] for value in forwarded]
        self.reach = {v: _united(bits[n] for n in of) for v, of in sources.items()}
        """By memref: the buffers and references that it may be, as bits."""
        self.slots = self._slots(body, forwarded, [each.value for each in moved])
        """The references of slots, of memrefs that transfers move, and of values that
        are forwarded to these, as bits."""
        self._inside: dict[Operation, int] = {}
        for value in forwarded:
            around = value.owner.parent_op()
            while around is not None:
                self._inside[around] = self._inside.get(around, 0) | self.of[value]
                around = around.parent_op()
        for value, buffers in moved.items():
            self._add(value, buffers)
        self.moved = _united(self.of[value] for value in moved)
        """The references of memrefs that transfers move, as bits."""

    def _add(self, value: SSAValue | Moved, buffers: Sequence[int]) -> None:
        self.by_value[value] = {}
        self.of[value] = 0
        for buffer in buffers:
            number = len(self.buffer)
            self.buffer.append(buffer)
            self.aliases[buffer] |= 1 << number
            self.by_value[value][buffer] = number
            self.of[value] |= 1 << number

    def _slots(
        self, body: Region, forwarded: Sequence[SSAValue], moved: Sequence[SSAValue]
    ) -> int:
        """The references of values in which a view makes a buffer, or that share a
        reference with `moved`, and of values forwarded to these."""
        function = body.parent_op()
        assert function is not None
        slots = {
            op.source: None
            for op in (operations_in(function) if forwarded else ())
            if is_in_slot(op) and op.source in self.of
        }
        of_moved = _united(self.reach.get(value, 0) for value in moved)
        slots |= {value: None for value in forwarded if self.of[value] & of_moved}
        sources: dict[SSAValue, list[SSAValue]] = {}
        for value in forwarded if slots else ():
            for use in value.uses:
                for target in targets(use.operation, use.index):
                    sources.setdefault(target, []).append(value)
        pending = list(slots)
        for target in pending:  # grows during the loop
            new = [v for v in sources.get(target, ()) if v not in slots]
            slots.update(dict.fromkeys(new))
            pending += new
        return _united(self.of[value] for value in slots)

    def inside(self, op: Operation) -> int:
        """The references of values that exist only in the regions of `op`, as bits."""
        return self._inside.get(op, 0)

    def expanded(self, buffers: int) -> int:
        """The buffers, and the references that may refer to them."""
        bits = buffers
        if self.of:
            for number in numbers_of(buffers & self.buffers):
                bits |= self.aliases[number]
        return bits


def is_in_slot(op: Operation) -> TypeGuard[memref.ViewOp]:
    """Whether `op` makes a buffer in bytes that control flow forwards."""
    return isinstance(op, memref.ViewOp) and BUFFER in op.attributes


def _united(sets: Iterable[int]) -> int:
    bits = 0
    for each in sets:
        bits |= each
    return bits


def _is_forwarded(value: SSAValue, body: Region) -> bool:
    owner = value.owner
    if isinstance(owner, Operation):
        if is_in_slot(owner):
            return _is_walked(owner, body)
        if is_view(owner) or (owner.regions and name_of(owner) not in FORWARDING):
            return False
    return _is_walked(owner, body)


def _is_walked(owner: Operation | Block, body: Region) -> bool:
    """Whether the walk visits the owner itself, rather than an operation around it."""
    region = owner.parent_region() if isinstance(owner, Operation) else owner.parent
    while region is not None and region is not body:
        outer = region.parent_op()
        if outer is None or name_of(outer) not in FORWARDING:
            return False
        region = outer.parent_region()
    return region is body
