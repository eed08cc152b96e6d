"""Rematerializes values in the groups that read them, to lower the peak.

    %d = subtract %x, %mean        %s = fusion(%x, %mean) {subtract, multiply, reduce}
    %e = multiply %d, %d           ...
    %s = reduce %e                 %y = fusion(%x, %mean, %r) {subtract, multiply}
    ...
    %y = multiply %d, %r

Each group that reads such values gets its own copies of the operations that compute
them; `residuals.py` chooses the values. A group cannot compute in a smaller shape than
its own. The operand of a broadcast is therefore computed in the shape that the
broadcast gives it, if the broadcast repeats it at most `MOST` times, or if it is a mask
that is computed from iotas and single numbers alone.

    %b = multiply %d, %s           %y = fusion(%x, %d, %s) {
    %c = broadcast_in_dim %b         %0 = broadcast_in_dim %d
    %y = add %x, %c                  %1 = broadcast_in_dim %s
                                     %b = multiply %0, %1
                                     add %x, %b }
"""

from collections.abc import (
    Callable,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, TypeAlias, TypeGuard

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....analysis.functions import is_unused
from ....dialects.sizes.symbolic import Size, typical
from ....dialects.tgraph.base import (
    Shape,
    TensorOp,
    ints,
    shape_of,
    tensor_type_of,
    with_shape,
)
from ....dialects.tgraph.indexing import GatherOp
from ....dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, IotaOp
from .groups import Function, Grouping
from .peak import Peak
from .residuals import MOST, Crossing, is_seen_through, repeats


class _Shape(NamedTuple):
    """The shape that a broadcast gives a value: its sizes, and for each dimension of
    the value the dimension in this shape."""

    sizes: Shape
    dims: Sequence[int]


_Shaped: TypeAlias = tuple[SSAValue, _Shape | None]
"""A value, and the shape that broadcasts give it; None for its own shape."""


class Unused(NamedTuple):
    """An operation that was detached because its results have no uses any more."""

    op: TensorOp
    operands: Sequence[SSAValue]
    following: Operation


@dataclass(frozen=True)
class Duplication:
    """The changes that were made to a function, which `undo` reverts."""

    copies: Sequence[Operation]
    originals: Mapping[tuple[Operation, int], SSAValue]
    """The former values of changed operands, by operation and operand number."""
    unused: Sequence[Unused]

    def undo(self) -> None:
        for unused in reversed(self.unused):
            unused.op.operands = unused.operands
            Rewriter.insert_op(unused.op, InsertPoint.before(unused.following))
        for (op, operand), value in self.originals.items():
            op.operands[operand] = value
        for op in reversed(self.copies):
            Rewriter.erase_op(op)


def duplicate(
    peak: Peak,
    grouping: Grouping,
    longest: Callable[[], float],
    saves: bool,
    tried: Sequence[object],
) -> Duplication | None:
    """Copies operations to the positions where groups read their results after the
    peak.

    With the copies, the function takes at most `longest()` nanoseconds. If `saves`, the
    time that groups save by reading less makes up for the time of copies. Returns None
    if there is nothing to copy, or if all choices are in `tried`.
    """
    function, liveness = peak.function, peak.liveness(grouping)
    live = max(liveness.profile.values(), key=max, default=())
    if not any(live):
        return None
    most = max(live)
    peaks = [step for step, bytes in enumerate(live) if bytes == most]
    # Values may be live from one peak step to another, or from the last one on.
    for step in dict.fromkeys((peaks[0], peaks[-1], peaks[-1] + 1, peaks[0] + 1)):
        crossing = Crossing(peak, grouping, step)
        if not crossing.may_recompute:
            continue
        again = crossing.cheapest(longest() - peak.time(grouping), saves)
        copying = _Copying(function, again)
        for readers in crossing.readers.values():
            copying.copy_for(readers)
        if copying.originals in tried:
            Duplication(copying.copies, copying.originals, ()).undo()
        elif copying.originals:
            unused = list(_taken_out(function))
            return Duplication(copying.copies, copying.originals, unused)
    return None


def _taken_out(function: Function) -> Iterator[Unused]:
    for op in reversed(function.ops):
        if not is_unused(op):
            continue
        assert op.next_op is not None
        unused = Unused(op, tuple(op.operands), op.next_op)
        op.detach()
        op.operands = ()
        yield unused


class _Copying:
    """Copies operations to positions before the readers of their results.

    again: the values to compute again.
    """

    def __init__(self, function: Function, again: Set[SSAValue]):
        self._position = function.position
        self._again = again
        self.copies: list[Operation] = []
        self.originals: dict[tuple[Operation, int], SSAValue] = {}

    def copy_for(self, readers: Iterable[Operation]) -> None:
        """Makes `readers`, the operations of one group, read the group's own copies."""
        made: dict[_Shaped, SSAValue] = {}
        for op in readers:
            for value, shape in self._missing(op.operands, made):
                self._make(value, shape, op, made)
            for number, value in enumerate(op.operands):
                if (value, None) in made:
                    self.originals[op, number] = value
                    op.operands[number] = made[value, None]

    def _missing(
        self, values: Iterable[SSAValue], made: Container[_Shaped]
    ) -> Sequence[_Shaped]:
        """The values that may have to be copied to compute `values`, in order."""
        found: dict[_Shaped, tuple[int, bool]] = {}
        queue: list[_Shaped] = [(value, None) for value in values]
        for value, shape in queue:  # grows
            op = value.owner
            if (
                (value, shape) not in found
                and (value, shape) not in made
                and (shape or value in self._again or _is_seen_through(op))
            ):
                position = self._position[op] if isinstance(op, Operation) else -1
                found[value, shape] = position, shape is not None
                queue += self._taken(value, shape)
        return sorted(found, key=lambda shaped: found[shaped])

    def _taken(self, value: SSAValue, shape: _Shape | None) -> Sequence[_Shaped]:
        """The operands of a copy of `value`, with the shapes in which it reads them."""
        op = value.owner
        if isinstance(op, BroadcastInDimOp) and self._is_composed(op, shape):
            return [(op.inputs[0], _composed(op, shape))]
        if shape and not self._is_made_in(value, shape):
            return [(value, None)]
        assert isinstance(op, Operation)
        return [(operand, shape) for operand in op.operands]

    def _make(
        self,
        value: SSAValue,
        shape: _Shape | None,
        before: Operation,
        made: dict[_Shaped, SSAValue],
    ) -> None:
        op = value.owner
        operands = [made.get(taken, taken[0]) for taken in self._taken(value, shape)]
        if isinstance(op, BroadcastInDimOp) and self._is_composed(op, shape):
            made[value, shape] = operands[0]
            return
        if shape and not self._is_made_in(value, shape):
            copy = _broadcast(operands[0], shape)
        else:
            assert isinstance(op, TensorOp)
            if not (shape or value in self._again or operands != list(op.operands)):
                return
            copy = _like(op, operands, shape)
        Rewriter.insert_op(copy, InsertPoint.before(before))
        self.copies.append(copy)
        made[value, shape] = copy.results[0]

    def _is_made_in(self, value: SSAValue, shape: _Shape) -> bool:
        """Whether a copy of `value` is computed in `shape`, not broadcast to it."""
        match value.owner:
            case ConstantOp() as op:
                return op.splat is not None
            case IotaOp() as op:
                dim = op.dimension.value.data
                return _size(value, dim) == shape.sizes[shape.dims[dim]]
            case GatherOp():
                return False
            case _:
                return value in self._again

    def _is_composed(self, op: BroadcastInDimOp, shape: _Shape | None) -> bool:
        """Whether copies omit the broadcast `op`: either its operand is computed again
        in the broadcast shape, or a later broadcast to `shape` covers both."""
        if op.inputs[0] not in self._again or isinstance(op.inputs[0].owner, GatherOp):
            return shape is not None
        elements = prod(map(typical, _composed(op, shape).sizes))
        return repeats(op.inputs[0], elements) <= MOST or self._is_mask(op)

    def _is_mask(self, op: Operation) -> TypeGuard[BroadcastInDimOp]:
        """Whether `op` broadcasts a value that is computed from iotas and single
        numbers alone, and does not stretch dimensions of size 1."""
        if not isinstance(op, BroadcastInDimOp) or op.inputs[0] not in self._again:
            return False
        values = [op.inputs[0]]
        for value in values:  # grows
            if isinstance(value.owner, ConstantOp) and value.owner.splat is None:
                return False  # not a single number
            if not isinstance(value.owner, ConstantOp | IotaOp):
                if value not in self._again or isinstance(value.owner, Block):
                    return False
                values += value.owner.operands
        return not _stretches(op)


def _size(value: SSAValue, dim: int) -> Size:
    return shape_of(tensor_type_of(value.type))[dim]


def _is_seen_through(op: Operation | Block) -> bool:
    return isinstance(op, Operation) and is_seen_through(op)


def _stretches(broadcast: BroadcastInDimOp) -> bool:
    """Whether `broadcast` repeats dimensions of size 1, along which an iota would
    count in the larger shape."""
    small = shape_of(tensor_type_of(broadcast.inputs[0].type))
    large = shape_of(tensor_type_of(broadcast.result.type))
    dims = broadcast.broadcast_dimensions.get_values()
    return any(size != large[dim] for size, dim in zip(small, dims, strict=True))


def _composed(broadcast: BroadcastInDimOp, shape: _Shape | None) -> _Shape:
    """The shape of the operand in the result of `broadcast`, or in that of a later
    broadcast, which gives this result `shape`."""
    dims = broadcast.broadcast_dimensions.get_values()
    if shape:
        return _Shape(shape.sizes, tuple(shape.dims[dim] for dim in dims))
    return _Shape(shape_of(tensor_type_of(broadcast.result.type)), tuple(dims))


def _broadcast(value: SSAValue, shape: _Shape) -> BroadcastInDimOp:
    type_ = with_shape(tensor_type_of(value.type), shape.sizes)
    dims = {"broadcast_dimensions": ints(shape.dims)}
    return BroadcastInDimOp([value], result_types=[type_], properties=dims)


def _like(op: TensorOp, operands: Sequence[SSAValue], shape: _Shape | None) -> TensorOp:
    """A copy of `op` that reads `operands`, in its own shape or in that of a
    broadcast."""
    type_, properties = op.result.type, dict(op.properties)
    if shape:
        type_ = with_shape(type_, shape.sizes)
        if isinstance(op, IotaOp):
            dim = shape.dims[op.dimension.value.data]
            properties["dimension"] = IntegerAttr(dim, i64)
    copy = type(op).create(
        operands=operands,
        result_types=[type_],
        properties=properties,
        attributes=op.attributes,
        location=op.location,
    )
    copy.result.name_hint = op.result.name_hint
    return copy
