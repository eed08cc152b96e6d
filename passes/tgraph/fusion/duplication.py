"""Values at the peak that are computed again where they are read, instead of kept.

    %d = subtract %x, %mean        %s = fusion(%x, %mean) {subtract, multiply, reduce}
    %e = multiply %d, %d           ...
    %s = reduce %e                 %y = fusion(%x, %mean, %r) {subtract, multiply}
    ...
    %y = multiply %d, %r

A group of a few simple operations is copied into the groups that read its value after
the peak, if what it reads itself is there anyhow, or smaller. Masks, computed of iotas
and numbers alone, are copied through broadcasts, too. (XLA's instruction fusion
duplicates cheap producers; here only where bytes live.)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.tgraph.base import (
    TensorOp,
    device_of,
    shape_of,
    tensor_type_of,
    with_shape,
)
from ....dialects.tgraph.elementwise import (
    AbsOp,
    AddOp,
    AndOp,
    CompareOp,
    ConvertOp,
    ElementwiseOp,
    MaximumOp,
    MinimumOp,
    MultiplyOp,
    NegateOp,
    NotOp,
    OrOp,
    SelectOp,
    SubtractOp,
    XorOp,
)
from ....dialects.tgraph.reducing import ReduceOp
from ....dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, IotaOp, ViewOp
from .groups import Function, Grouping, has_destination, is_repeatable, place_of
from .liveness import Liveness, bytes_of

MOST = 4
"""Operations of a group that is copied, and groups that it is copied into."""

SHARE = 100
"""Of the peak: values that hold less than one part are not worth a try."""

CHEAP = (
    *(AbsOp, AddOp, AndOp, CompareOp, ConvertOp, MaximumOp, MinimumOp, MultiplyOp),
    *(NegateOp, NotOp, OrOp, SelectOp, SubtractOp, XorOp),
)
"""About one instruction for each element."""


class Read(NamedTuple):
    """An operand that is a value, or a view of it, or a view of that."""

    op: Operation
    operand: int
    views: Sequence[ViewOp]

    @property
    def broadcast(self) -> BroadcastInDimOp | None:
        """The view, if it is a broadcast."""
        view = self.views[-1] if self.views else None
        return view if isinstance(view, BroadcastInDimOp) else None

    @property
    def is_copyable(self) -> bool:
        """Whether a group can compute it itself."""
        return isinstance(self.op, ElementwiseOp | ReduceOp) and (
            len(self.views) == (self.broadcast is not None)
        )


class Unused(NamedTuple):
    """An operation that was taken out, as nothing reads it any more."""

    op: TensorOp
    operands: Sequence[SSAValue]
    following: Operation


@dataclass(frozen=True)
class Duplication:
    """What has changed in a function, and can be undone."""

    copies: Sequence[TensorOp]
    originals: Mapping[Read, SSAValue]
    unused: Sequence[Unused]

    def undo(self) -> None:
        for unused in reversed(self.unused):
            unused.op.operands = unused.operands
            Rewriter.insert_op(unused.op, InsertPoint.before(unused.following))
        for read, value in self.originals.items():
            read.op.operands[read.operand] = value
        for op in reversed(self.copies):
            Rewriter.erase_op(op)


def duplicate(
    function: Function, grouping: Grouping, liveness: Liveness
) -> Duplication | None:
    """Copies values that live at the peak into the groups that read them after it.

    `grouping` and `liveness` are of the function before. Returns None if there are no
    such values, or if they are too small.
    """
    heights = {device: max(live) for device, live in liveness.profile.items()}
    peaks = {
        device: {at for at, bytes in enumerate(live) if bytes == heights[device]}
        for device, live in liveness.profile.items()
    }
    saved = 0
    found: list[tuple[Sequence[TensorOp], Sequence[Read]]] = []
    for root, members in grouping.members.items():
        ops = [op for m in members if isinstance(op := function.ops[m], CHEAP)]
        if len(ops) < len(members) or len(ops) > MOST or has_destination(ops[-1]):
            continue
        value = ops[-1].result
        buffer = liveness.buffer(value)
        if buffer is None:
            continue
        lived = range(root, buffer.last + 1)
        crossed = peaks[device_of(value.type)].intersection(lived)
        if not crossed:
            continue
        bytes = bytes_of(buffer)
        reads = _reads_after(min(crossed), ops[-1], function, grouping)
        if 0 < len(reads) <= MOST and _is_worth_it(
            ops, reads, bytes_of(buffer), liveness
        ):
            found += ((ops, group) for group in reads.values())
            saved += bytes
    if saved * SHARE < sum(heights.values()) or not found:
        return None
    copies: list[TensorOp] = []
    originals: dict[Read, SSAValue] = {}
    for ops, reads in found:
        originals |= {read: read.op.operands[read.operand] for read in reads}
        copies += _copied(ops, reads, function)
    return Duplication(copies, originals, list(_taken_out(function)))


def _taken_out(function: Function) -> Iterator[Unused]:
    for op in reversed(function.ops):
        if not isinstance(op, TensorOp) or op.outs or any(r.uses for r in op.results):
            continue
        assert op.next_op is not None
        unused = Unused(op, tuple(op.operands), op.next_op)
        op.detach()
        op.operands = ()
        yield unused


def _reads_after(
    peak: int, op: TensorOp, function: Function, grouping: Grouping
) -> Mapping[int, Sequence[Read]]:
    """What reads a result at the peak or after it, by the roots of its groups.

    None of it if the result has to be stored for one of them.
    """
    result: dict[int, list[Read]] = {}
    for read in _reads(op.result):
        position = function.position[read.op]
        root = grouping.roots[position]
        if max(position, root) < peak:
            continue
        if not read.is_copyable or place_of(read.op) != place_of(op):
            return {}
        result.setdefault(root, []).append(read)
    return result


def _reads(value: SSAValue, views: Sequence[ViewOp] = ()) -> Iterator[Read]:
    for use in value.uses:
        user = use.operation
        if isinstance(user, ViewOp) and not has_destination(user):
            yield from _reads(user.result, (*views, user))
        else:
            yield Read(user, use.index, views)


def _is_worth_it(
    ops: Sequence[TensorOp],
    reads: Mapping[int, Sequence[Read]],
    bytes: int,
    liveness: Liveness,
) -> bool:
    """Whether copies would keep less alive than the value's own bytes."""
    inside = {op.result for op in ops}
    inputs = {v: None for op in ops for v in op.operands if v not in inside}
    broadcasts = {read.broadcast for group in reads.values() for read in group}
    if broadcasts != {None}:
        leaves = [v for v in inputs if isinstance(v.owner, ConstantOp | IotaOp)]
        return leaves == list(inputs) and not any(map(_stretches, broadcasts))
    stored = dict.fromkeys(map(liveness.buffer, _read(inputs)))
    return bytes > sum(bytes_of(b) for b in stored if b and b.last < max(reads))


def _read(values: Iterable[SSAValue]) -> Iterator[SSAValue]:
    """What is read from memory where values are read in a group."""
    for value in values:
        while isinstance(value.owner, BroadcastInDimOp):
            value = value.owner.operands[0]
        if not (isinstance(value.owner, Operation) and is_repeatable(value.owner)):
            yield value


def _stretches(broadcast: BroadcastInDimOp | None) -> bool:
    """Whether it repeats dimensions of size 1: then an iota is none any more."""
    if broadcast is None:
        return False
    small = shape_of(tensor_type_of(broadcast.inputs[0].type))
    large = shape_of(tensor_type_of(broadcast.result.type))
    dims = broadcast.broadcast_dimensions.get_values()
    return any(size != large[dim] for size, dim in zip(small, dims, strict=True))


def _copied(
    ops: Sequence[TensorOp], reads: Sequence[Read], function: Function
) -> Iterable[TensorOp]:
    """Copies a group ahead of the first of these reads, which become reads of it."""
    before = InsertPoint.before(
        min((read.op for read in reads), key=lambda op: function.position[op])
    )
    made: dict[tuple[SSAValue, BroadcastInDimOp | None], TensorOp] = {}

    def copy(value: SSAValue, broadcast: BroadcastInDimOp | None) -> SSAValue:
        op = value.owner
        if not isinstance(op, TensorOp) or not (broadcast or op in ops):
            return value
        if (value, broadcast) not in made:
            operands = [copy(operand, broadcast) for operand in op.operands]
            made[value, broadcast] = new = _like(op, operands, broadcast)
            Rewriter.insert_op(new, before)
        return made[value, broadcast].result

    for read in reads:
        read.op.operands[read.operand] = copy(ops[-1].result, read.broadcast)
    return made.values()


def _like(
    op: TensorOp, operands: Sequence[SSAValue], broadcast: BroadcastInDimOp | None
) -> TensorOp:
    """The same operation on other operands, in the shape that a broadcast gives it."""
    type_, properties = op.result.type, dict(op.properties)
    if broadcast:
        type_ = with_shape(type_, shape_of(broadcast.result.type))
        if isinstance(op, IotaOp):
            dims = broadcast.broadcast_dimensions.get_values()
            properties["dimension"] = IntegerAttr(dims[op.dimension.value.data], i64)
    copy = type(op).create(
        operands=operands,
        result_types=[type_],
        properties=properties,
        attributes=op.attributes,
        location=op.location,
    )
    copy.result.name_hint = op.result.name_hint
    return copy
