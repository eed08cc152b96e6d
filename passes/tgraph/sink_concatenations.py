"""`tgraph-sink-concatenations`: moves concatenations after elementwise operations.

    %0 = tgraph.slice %x {[7:8]} : (tensor<8xf32>) -> tensor<1xf32>
    %1 = tgraph.slice %x {[0:7]} : (tensor<8xf32>) -> tensor<7xf32>
    %2 = tgraph.concatenate %0, %1 {dimension = 0} : ... -> tensor<8xf32>
    %3 = tgraph.add %2, %y : tensor<8xf32>

    %0 = tgraph.slice %x {[7:8]} : (tensor<8xf32>) -> tensor<1xf32>
    %1 = tgraph.slice %y {[0:1]} : (tensor<8xf32>) -> tensor<1xf32>
    %2 = tgraph.add %0, %1 : tensor<1xf32>
    %3 = tgraph.slice %x {[0:7]} : (tensor<8xf32>) -> tensor<7xf32>
    %4 = tgraph.slice %y {[1:8]} : (tensor<8xf32>) -> tensor<7xf32>
    %5 = tgraph.add %3, %4 : tensor<7xf32>
    %6 = tgraph.concatenate %2, %5 {dimension = 0, tgraph.in_place} : ...

The pass computes elementwise operations that read a concatenation or a pad part by
part, so that each part has one source. The operations write straight into their parts
of the result. A concatenation that only they read is then not stored, and its operands
can be fused with them. Rolls, stencils, rotary embeddings, and gradients of slices are
such programs. Values that only these operations read are computed part by part, too.
Where parts overlap, elements are computed again. If a concatenation is broadcast, the
pass broadcasts its operands instead.

The pass looks at the blocks that store a concatenation or pad that could be moved at
their peak. It splits their groups into operations, moves concatenations, and groups
the operations again (`tgraph-fuse`). It keeps the result only if the peak of live bytes
is lower and the estimated time at most 2 % longer.

Needs: level 1, after tgraph-fuse, whose groups decide what is stored.
Leaves: level 1, with the groups of tgraph-fuse.
Does not: move concatenations of symbolic sizes, pads between elements, or
concatenations that other operations also read; compute a value in more than 32 parts
that have 4,096 values together; consider more than about 256 operations together; or
move concatenations into loops, branches, and reductions.
"""

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import NamedTuple, TypeAlias, TypeGuard, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.cost import duration
from ...analysis.functions import (
    blocks_within,
    erase_makers,
    erase_unused,
    tensor_functions,
)
from ...dialects.diagnostics import held_back, remark
from ...dialects.tgraph.base import (
    IN_PLACE,
    Shape,
    TensorOp,
    device_of,
    ints,
    is_static,
    tensor_type_of,
    value_shape,
    with_shape,
)
from ...dialects.tgraph.elementwise import ElementwiseOp
from ...dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    ConstantOp,
    PadOp,
    SliceOp,
    plain_slice,
)
from ...dialects.tgraph.structure import FusionOp, IfOp, WhileOp
from .. import driver
from ..optional import OptionalPass
from .eliminate_assigns import TGraphEliminateAssigns
from .fuse import TGraphFuse
from .fusion.liveness import ALIGNMENT, Liveness
from .shared.fitting import live_peaks
from .shared.simplifying import simplify
from .shared.streams import has_streams
from .shared.ungrouping import ungroup

MOST = 32
"""The largest number of parts of a value."""

MOST_OPERATIONS = 256
"""The number of operations beyond which a cluster does not grow."""

MOST_COPIES = 4096
"""The largest number of values that the parts of a cluster may have. The 400 operations
of a random number generator whose result is rolled would become 12,000."""

MAX_SLOWDOWN = 0.02
"""The share of a function's time that the parts may add."""


@dataclass(frozen=True)
class TGraphSinkConcatenations(OptionalPass):
    """Moves concatenations after elementwise operations, so they are not stored."""

    name = "tgraph-sink-concatenations"
    LOWERS_PEAK = True
    TOPIC = "fusion"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, _ in tensor_functions(op):
            if not has_streams(func, "no concatenation is moved"):
                _lower(ctx, func)


def _lower(ctx: Context, func: FuncOp) -> None:
    """Moves concatenations of `func` if that lowers its peak."""
    joined = set(_joined_at_peak(func.body.block))
    if not joined:
        return
    before, longest = _bytes(func), (1 + MAX_SLOWDOWN) * duration(func)
    for again in (True, False):
        copy = func.clone()
        blocks = zip(*(blocks_within(f.body.block) for f in (func, copy)), strict=True)
        others = {new for old, new in blocks if old not in joined}
        for block in _without(others, copy):
            ungroup(block)
        module = ModuleOp([copy])
        with held_back():
            simplify(ctx, _regions(others, copy))  # groups copy broadcasts
            for block in _without(others, copy):
                _broadcast_parts(block)
            clusters = sunk(_without(others, copy), again)
            if not clusters:
                return
            simplify(ctx, _regions(others, copy))
            driver.run(ctx, module, [TGraphEliminateAssigns()], verify=False)
            TGraphFuse().fuse(_without(others, copy))
        after = _bytes(copy)
        if after < before and duration(copy) <= longest:
            func.detach_region(0)
            func.add_region(copy.detach_region(0))
            remark(
                f"concatenations moved after elementwise operations: {len(clusters)}; "
                f"the peak goes from {before} to {after} bytes",
                func,
                passed=True,
            )
            return
        if not any(cluster.computes_again for cluster in clusters):
            return


def _without(others: Container[Block], func: FuncOp) -> Iterator[Block]:
    """The blocks of a function and of its loops and branches, without `others`."""
    return (each for each in blocks_within(func.body.block) if each not in others)


def _regions(others: Container[Block], func: FuncOp) -> Sequence[Region]:
    """The regions of the blocks that `_without` finds."""
    return [each.parent for each in _without(others, func) if each.parent]


def _bytes(func: FuncOp) -> int:
    return sum(live_peaks(func.body.block, ALIGNMENT).values())


def _joined_at_peak(block: Block) -> Iterator[Block]:
    """The block if it stores a concatenation or a pad that could be moved at its peak,
    and such blocks of the loops and branches that reach the peak."""
    joins: list[tuple[int, TensorOp]] = []
    nests: list[tuple[int, Operation]] = []
    for at, op in enumerate(block.ops):
        if isinstance(op, WhileOp | IfOp):
            nests.append((at, op))
        elif _is_plain(op, _JOINS) and _has_elementwise_readers(op):
            joins.append((at, op))
    if not joins and not nests:
        return
    liveness = Liveness(block)
    for at, op in joins:
        if buffer := liveness.buffer(op.result):
            live = liveness.profile[device_of(op.result.type)]
            if max(live) in live[at : buffer.last + 1]:
                yield block
                break
    for at, op in nests:
        if any(live[at] == max(live) for live in liveness.profile.values()):
            for region in op.regions:
                yield from _joined_at_peak(region.block)


def _has_elementwise_readers(join: TensorOp) -> bool:
    """Whether all readers of `join` are elementwise, inside groups or not. They may
    read it through slices, broadcasts, concatenations, and pads."""
    values: dict[SSAValue, None] = {join.result: None}
    for value in (queue := list(values)):  # the body appends
        for use in value.uses:
            user = use.operation
            if isinstance(user, FusionOp):
                seen: SSAValue = user.body.block.args[use.index]
            elif isinstance(user, ElementwiseOp):
                continue
            elif isinstance(user, _INNER) or _is_plain(user, BroadcastInDimOp):
                seen = user.results[0]
            else:
                return False
            if seen not in values:
                values[seen] = None
                queue.append(seen)
    return True


def _broadcast_parts(block: Block) -> None:
    """Replaces broadcasts of concatenations by concatenations of broadcasts."""
    for op in list(block.ops):
        if not _is_plain(op, BroadcastInDimOp):
            continue
        join = op.inputs[0].owner
        if not isinstance(join, Operation) or not _is_plain(join, ConcatenateOp):
            continue
        sizes = value_shape(op.result)
        along = join.dimension.value.data
        dim = op.broadcast_dimensions.get_values()[along]
        if value_shape(join.result)[along] != sizes[dim]:
            continue  # one element is repeated
        parts = [
            BroadcastInDimOp(
                [part],
                result_types=[
                    with_shape(
                        tensor_type_of(part.type),
                        [*sizes[:dim], value_shape(part)[along], *sizes[dim + 1 :]],
                    )
                ],
                properties={"broadcast_dimensions": op.broadcast_dimensions},
            )
            for part in join.inputs
        ]
        joined = ConcatenateOp(
            [part.result for part in parts],
            result_types=[op.result.type],
            properties={"dimension": IntegerAttr(dim, i64)},
        )
        for new in (*parts, joined):
            new.location, new.attributes = op.location, {**op.attributes}
        joined.result.name_hint = op.result.name_hint
        Rewriter.replace_op(op, [*parts, joined])


def sunk(blocks: Iterable[Block], again: bool) -> Sequence["_Cluster"]:
    """Computes elementwise operations of blocks part by part. Returns the changed
    clusters.

    again: whether elements that several parts need may be computed for each of them.
    """
    found: list[_Cluster] = []
    stuck: set[Operation] = set()  # whose clusters have too many parts
    for block in blocks:
        joins = [op for op in block.ops if _is_plain(op, _JOINS)]
        if not joins:
            continue
        erase_unused(block)  # an unused reader would count as a use
        for join in reversed(joins):
            if join.parent and (reader := _reader(join)):
                cluster = _Cluster(reader)
                if not stuck.isdisjoint(cluster.members):
                    stuck.add(reader)
                elif cluster.sink(again):
                    found.append(cluster)
                elif cluster.is_cut_up:
                    stuck.add(reader)
    return found


def _reader(op: TensorOp) -> TensorOp | None:
    """An elementwise operation that reads the result of `op`, directly or through
    slices, concatenations, and pads; None if there is none."""
    for user in _users(op):
        if _is_plain(user, ElementwiseOp):
            return user
        if _is_plain(user, _INNER) and (found := _reader(user)):
            return found
    return None


_JOINS = (ConcatenateOp, PadOp)

_INNER = (ElementwiseOp, SliceOp, *_JOINS)
"""Operations that may be computed part by part."""


_Kind = TypeVar("_Kind", bound=TensorOp)


def _is_plain(
    op: Operation, kinds: type[_Kind] | tuple[type[_Kind], ...]
) -> TypeGuard[_Kind]:
    return (
        isinstance(op, kinds)
        and not op.outs
        and IN_PLACE not in op.attributes
        and is_static(tensor_type_of(op.result.type))
    )


def _users(op: TensorOp) -> Iterator[Operation]:
    return (use.operation for use in op.result.uses)


Box: TypeAlias = tuple[tuple[int, int], ...]
"""The start and the end in each dimension."""


def _moved(box: Box, by: Sequence[int]) -> Box:
    return tuple((s + at, e + at) for (s, e), at in zip(box, by, strict=True))


def _whole(shape: Shape) -> Box:
    return tuple((0, size) for size in shape)


def _sizes(box: Box) -> Sequence[int]:
    return [end - start for start, end in box]


def _starts(op: TensorOp) -> Sequence[int] | None:
    """The starts of a slice with strides of 1; None for any other operation."""
    if not isinstance(op, SliceOp) or any(s != 1 for s in op.strides.get_values()):
        return None
    return op.start_indices.get_values()


class _Piece(NamedTuple):
    """A part of a concatenation or a pad."""

    value: SSAValue  # a scalar if it is padding
    box: Box
    is_padding: bool = False


def _pieces(op: TensorOp) -> Sequence[_Piece]:
    """The pieces of a concatenation or a pad; none for interior or negative padding."""
    whole = _whole(value_shape(op.result))
    if isinstance(op, ConcatenateOp):
        dim, at, found = op.dimension.value.data, 0, list[_Piece]()
        for value in op.inputs:
            end = at + value_shape(value)[dim]
            box = (*whole[:dim], (at, end), *whole[dim + 1 :])
            if end > at:
                found.append(_Piece(value, box))
            at = end
        return found
    assert isinstance(op, PadOp)
    low, high = op.low.get_values(), op.high.get_values()
    if any(op.interior.get_values()) or min((*low, *high), default=0) < 0:
        return []
    source, number = op.inputs
    inside = _moved(_whole(value_shape(source)), low)
    found = [_Piece(source, inside)]
    for dim, (start, end) in enumerate(inside):
        for side in ((0, start), (end, whole[dim][1])):
            if side[1] > side[0]:
                box = (*inside[:dim], side, *whole[dim + 1 :])
                found.append(_Piece(number, box, True))
    return found


class _Cluster:
    """Elementwise operations that are computed in the same parts: `first`, its readers
    if all of them are elementwise, and so on."""

    def __init__(self, first: TensorOp):
        assert first.parent is not None
        self._block = first.parent
        found: dict[Operation, None] = {first: None}
        queue = [first]
        for op in queue:  # the body appends
            users = dict.fromkeys(_users(op))
            if all(_is_plain(u, ElementwiseOp) for u in users):
                new = [u for u in users if u not in found]
                found |= dict.fromkeys(new)
                queue += (u for u in new if isinstance(u, TensorOp))
        self.members: dict[Operation, None] = {}
        """In program order."""
        member: Operation | None = first
        while member and len(self.members) < len(found):
            if member in found:
                self.members[member] = None
            member = member.next_op
        self.is_cut_up = False
        """Whether there are too many parts, or values in them."""
        self.computes_again = False
        self._shape = value_shape(first.result)
        self._stored: set[Operation] = set()
        self._made: dict[tuple[SSAValue, Box], SSAValue] = {}

    def sink(self, again: bool) -> bool:
        """Computes the members part by part, if they read a concatenation or a pad.
        Returns whether it did."""
        if 0 in self._shape or not self._find_parts(again):
            return False
        results: dict[SSAValue, SSAValue] = {}
        for op in self.members:
            (result,) = op.results
            if any(use.operation not in self.members for use in result.uses):
                self._before = op
                results[result] = self._joined(result, ())
        for old, new in results.items():
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        erase_makers(op.results[0] for op in self.members)
        return True

    # What the parts are

    def _find_parts(self, again: bool) -> bool:
        """Finds the parts. Returns whether there are any, and not too many."""
        while True:
            self._find_inner()
            self._reach()
            self.is_cut_up = self._has_many_parts() or self._has_many_copies()
            computed = self._computed_again()
            self.computes_again = computed is not None
            if computed is None or (again and not self.is_cut_up):
                return self._is_joined and not self.is_cut_up
            self._stored.add(computed)

    def _find_inner(self) -> None:
        """Finds the operations that only members, or other such operations, read."""
        self._inner = set(self.members)
        waiting = list(self.members)
        for op in waiting:  # the body appends
            if len(waiting) > MOST_OPERATIONS:
                break
            for value in op.operands:
                maker = value.owner
                if (
                    maker not in self._inner
                    and maker not in self._stored
                    and isinstance(maker, Operation)
                    and maker.parent is self._block
                    and _is_plain(maker, _INNER)
                    and all(user in self._inner for user in _users(maker))
                ):
                    self._inner.add(maker)
                    waiting.append(maker)

    def _reach(self) -> None:
        """Finds the boxes of the parts, from the members to the operations that they
        read, breadth first. Stops early if there are too many parts."""
        origin, whole = (0,) * len(self._shape), _whole(self._shape)
        self._reached: set[tuple[SSAValue, Sequence[int], Box]] = set()
        self._boxes: set[Box] = {whole}
        self._is_joined = False
        waiting: deque[tuple[SSAValue, tuple[int, ...], Box]] = deque(
            (op.results[0], origin, whole) for op in self.members
        )
        looked_at = MOST
        while waiting:
            if len(self._boxes) > looked_at:
                if self._has_many_parts():
                    break
                looked_at = 2 * len(self._boxes)
            item = waiting.popleft()
            value, offsets, box = item  # offsets: from the result's coordinates
            op = value.owner
            if item in self._reached or op not in self._inner:
                continue
            assert isinstance(op, TensorOp)
            self._reached.add(item)
            if isinstance(op, ElementwiseOp):
                waiting += ((operand, offsets, box) for operand in op.inputs)
            elif (starts := _starts(op)) is not None:
                there = tuple(map(sum, zip(offsets, starts, strict=True)))
                waiting.append((op.operands[0], there, _moved(box, starts)))
            elif not isinstance(op, SliceOp):
                for piece in _pieces(op):
                    part = _common(piece.box, box)
                    if part is None:
                        continue
                    self._is_joined = True
                    self._boxes.add(_moved(part, [-by for by in offsets]))
                    if not piece.is_padding:
                        back = [-start for start, _ in piece.box]
                        there = tuple(map(sum, zip(offsets, back, strict=True)))
                        waiting.append((piece.value, there, _moved(part, back)))

    def _computed_again(self) -> Operation | None:
        """The last operation with elements that several parts need, or None."""
        sizes: dict[Operation, int] = {}
        for value, _, box in self._reached:
            op = value.owner
            if isinstance(op, ElementwiseOp) and op not in self.members:
                sizes[op] = sizes.get(op, 0) + prod(_sizes(box))
        again = {
            op for op, size in sizes.items() if size > prod(value_shape(op.results[0]))
        }
        last: Operation | None = next(reversed(self.members))
        while again and last and last not in again:
            last = last.prev_op
        return last if again else None

    def _segments(self, box: Box) -> Sequence[tuple[int, int]]:
        """The starts and ends of the parts in the next dimension, within `box`, which
        has the first dimensions."""
        dim = len(box)
        within = (
            other[dim] for other in self._boxes if _common(other[:dim], box) is not None
        )
        return list(pairwise(sorted({end for ends in within for end in ends})))

    def _parts(self, box: Box = ()) -> Iterator[Box]:
        """Yields the parts within `box`, which has the first dimensions."""
        if len(box) == len(self._shape):
            yield box
        else:
            for ends in self._segments(box):
                yield from self._parts((*box, ends))

    def _has_many_parts(self) -> bool:
        return any(number >= MOST for number, _ in enumerate(self._parts()))

    def _has_many_copies(self) -> bool:
        """Whether the parts have too many values."""
        waiting: list[tuple[SSAValue, Box]] = [
            (op.results[0], part) for part in self._parts() for op in self.members
        ]
        seen = set(waiting)
        for key in waiting:  # the body appends
            if len(seen) > MOST_COPIES:
                return True
            new = [needed for needed in self._needed(*key) if needed not in seen]
            seen.update(new)
            waiting += new
        return False

    # What is computed

    def _joined(self, value: SSAValue, box: Box) -> SSAValue:
        """Concatenates the parts of `value` within `box` (the first dimensions)."""
        dim = len(box)
        if dim == len(self._shape):
            return self._part(value, box)
        parts = [self._joined(value, (*box, ends)) for ends in self._segments(box)]
        if len(parts) == 1:
            return parts[0]
        sizes = [*_sizes(box), *self._shape[dim:]]
        joined = ConcatenateOp(
            parts,
            result_types=[with_shape(tensor_type_of(value.type), sizes)],
            properties={"dimension": IntegerAttr(dim, i64)},
        )
        joined.attributes[IN_PLACE] = UnitAttr()
        return self._insert(joined)

    def _part(self, value: SSAValue, box: Box) -> SSAValue:
        """The elements of a value in a box."""
        waiting = [(value, box)]  # no recursion: chains may be long
        while waiting:
            missing = [k for k in self._needed(*waiting[-1]) if k not in self._made]
            if missing:
                waiting += missing
                continue
            key = waiting.pop()
            if key not in self._made:
                self._made[key] = self._make(*key)
        return self._made[value, box]

    def _needed(self, value: SSAValue, box: Box) -> Sequence[tuple[SSAValue, Box]]:
        """The parts of other values from which the part `box` of `value` is computed;
        none if it is sliced from `value` or constant."""
        op = value.owner
        if isinstance(op, BroadcastInDimOp) and not op.outs:
            (source,) = op.inputs
            dims = op.broadcast_dimensions.get_values()
            sizes = zip(dims, value_shape(source), strict=True)
            return [(source, tuple(box[d] if n > 1 else (0, 1) for d, n in sizes))]
        if op not in self._inner or not isinstance(op, TensorOp):
            return ()
        if isinstance(op, ElementwiseOp):
            return [(operand, box) for operand in op.inputs]
        if (starts := _starts(op)) is not None:
            return [(op.operands[0], _moved(box, starts))]
        if not isinstance(op, SliceOp) and (piece := _around(op, box)):
            if piece.is_padding:
                return [(piece.value, ())]
            return [(piece.value, _moved(box, [-start for start, _ in piece.box]))]
        return ()

    def _make(self, value: SSAValue, box: Box) -> SSAValue:
        op, type = value.owner, tensor_type_of(value.type)
        type = with_shape(type, _sizes(box))
        if isinstance(op, ConstantOp) and op.splat is not None and not op.outs:
            return self._insert(ConstantOp(op.splat, type), op)
        parts = [self._made[key] for key in self._needed(value, box)]
        if parts and isinstance(op, ElementwiseOp | BroadcastInDimOp):
            new = op.create(
                operands=parts,
                result_types=[type],
                properties=op.properties,
                attributes=op.attributes,
            )
            return self._insert(new, op)
        if parts and tensor_type_of(parts[0].type) == type:
            return parts[0]
        if parts:  # padding
            nowhere = {"broadcast_dimensions": ints(())}
            new = BroadcastInDimOp(parts, result_types=[type], properties=nowhere)
            return self._insert(new, op)
        if box == _whole(value_shape(value)):
            return value
        return self._insert(plain_slice(value, *zip(*box, strict=True)))

    def _insert(self, op: TensorOp, like: Operation | Block | None = None) -> SSAValue:
        op.location = (like if isinstance(like, Operation) else self._before).location
        Rewriter.insert_op(op, InsertPoint.before(self._before))
        return op.results[0]


def _common(box: Box, other: Box) -> Box | None:
    """The intersection of two boxes; None if it is empty."""
    found = tuple(
        (max(start, at), min(end, to))
        for (start, end), (at, to) in zip(box, other, strict=True)
    )
    return found if all(start < end for start, end in found) else None


def _around(op: TensorOp, box: Box) -> _Piece | None:
    """The piece that contains `box`; None if there is none."""
    return next((p for p in _pieces(op) if _common(p.box, box) == box), None)
