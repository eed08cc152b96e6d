"""`tgraph-split-concatenations`: replaces concatenations by updates of old contents.

    %w = tgraph.read %v : tensor<8x4xf32>
    %0 = tgraph.slice %w {[0:2]} : (tensor<8x4xf32>) -> tensor<2x4xf32>
    %1 = tgraph.add %0, %g : tensor<2x4xf32>
    %2 = tgraph.slice %w {[2:8]} : (tensor<8x4xf32>) -> tensor<6x4xf32>
    %3 = tgraph.add %2, %h : tensor<6x4xf32>
    %4 = tgraph.concatenate %1, %3 outs(%v) {dimension = 0} : ... -> tensor<8x4xf32>

    %w = tgraph.read %v : tensor<8x4xf32>
    %0 = tgraph.slice %w {[0:2]} : (tensor<8x4xf32>) -> tensor<2x4xf32>
    %1 = tgraph.add %0, %g : tensor<2x4xf32>
    %5 = tgraph.dynamic_update_slice %w, %1, %c0, %c0 outs(%v) : ... -> tensor<8x4xf32>
    %2 = tgraph.slice %5 {[2:8]} : (tensor<8x4xf32>) -> tensor<6x4xf32>
    %3 = tgraph.add %2, %h : tensor<6x4xf32>
    %4 = tgraph.dynamic_update_slice %5, %3, %c2, %c0 outs(%v) : ... -> tensor<8x4xf32>

Each part is then computed over the part of the variable that it replaces
(`analysis/updates.py`). A concatenation would store all parts first, because the old
contents are read until the last part is computed. `v += stack(...)` in a loop is such a
program.

Parts may be concatenations themselves, as for a stencil in a plane. A part is written
into the variable as soon as nothing else reads the part that it replaces. A part that
is unchanged stays where it is. The pass applies if at least one part can be computed
straight into the variable.

Needs: level 1, in the order in which the program will run.
Leaves: level 1.
Does not: split concatenations of symbolic sizes, or concatenations of parts that move
within the variable.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeGuard

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.concatenations import is_computed
from ...analysis.functions import erase_unused, tensor_blocks
from ...analysis.operations import is_view
from ...analysis.versions import Version, last_versions
from ...dialects.tgraph.base import (
    Shape,
    is_static,
    value_shape,
    with_element,
    with_shape,
)
from ...dialects.tgraph.indexing import DynamicUpdateSliceOp
from ...dialects.tgraph.shaping import ConcatenateOp, ConstantOp, SliceOp
from ...dialects.tgraph.structure import AssignOp
from ..optional import OptionalPass


@dataclass(frozen=True)
class TGraphSplitConcatenations(OptionalPass):
    """Replaces concatenations by updates of the contents that they are made from."""

    name = "tgraph-split-concatenations"
    LOWERS_PEAK = True
    TOPIC = "in place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            if not any(map(_is_candidate, block.ops)):
                continue
            for version in list(last_versions(block).values()):
                while version.previous is not None:
                    _split(version, block)
                    version = version.previous
            erase_unused(block)


def _is_candidate(op: Operation) -> TypeGuard[ConcatenateOp]:
    return isinstance(op, ConcatenateOp) and is_static(op.declared[0])


class _Box(NamedTuple):
    """A box of elements of the variable."""

    starts: Shape
    sizes: Shape

    def meets(self, other: "_Box") -> bool:
        return all(
            start < at + n and at < start + size
            for start, size, at, n in zip(*self, *other, strict=True)
        )


@dataclass(frozen=True)
class _Read:
    """A read of old contents, directly or through views."""

    at: int
    reader: Operation
    operand: int
    views: Sequence[Operation]  # from the contents to the reader
    box: _Box  # of the contents


@dataclass(frozen=True)
class _Part:
    """A part of the variable, and the operand of a concatenation that replaces it."""

    value: SSAValue
    reader: Operation
    operand: int
    box: _Box


@dataclass(frozen=True)
class _Joined:
    """A concatenation that replaces the contents of a variable."""

    block: Block
    op: ConcatenateOp
    writer: Operation  # `op`, or an assign of its result
    old: Sequence[SSAValue]  # the previous contents, if they have users
    position: Mapping[Operation, int]

    @property
    def outs(self) -> Sequence[SSAValue]:
        writer = self.writer
        return [writer.variable] if isinstance(writer, AssignOp) else self.op.outs

    def position_of_definition(self, value: SSAValue) -> int:
        """The position of the operation of the block that defines `value`, or -1."""
        owner = value.owner
        return self.position.get(owner, -1) if isinstance(owner, Operation) else -1


class _Update(NamedTuple):
    """The update that writes a part into the variable."""

    at: int  # the position of the operation before it
    is_late: bool  # the part is stored elsewhere until then
    part: _Part


def _split(version: Version, block: Block) -> None:
    """Splits the concatenation whose result `version` holds, if there is one."""
    joined = _joined(version, block)
    if joined is None:
        return
    reads = [r for value in joined.old for r in _reads(value, joined.position)]
    if any(read.at > joined.position[joined.op] for read in reads):
        return
    parts = list(_parts(joined.op, (0,) * joined.op.declared[0].get_num_dims()))
    stays = [part for part in parts if any(_stays(part, read) for read in reads)]
    joins = {part.reader for part in parts}
    if sum(read.reader in joins for read in reads) > len(stays):
        return  # parts move
    reads = [read for read in reads if read.reader not in joins]
    moved = [part for part in parts if part not in stays and 0 not in part.box.sizes]
    updates = sorted(
        (_update(joined, part, reads) for part in moved), key=lambda u: u[:2]
    )
    if not all(update.is_late for update in updates):
        _write(joined, updates, reads)


def _joined(version: Version, block: Block) -> _Joined | None:
    """The concatenation whose result `version` holds, or None."""
    writer, before = version.writer, version.previous
    op = writer.value.owner if isinstance(writer, AssignOp) else writer
    if writer is None or before is None or not isinstance(op, Operation):
        return None
    old = [value for value in before.values if value.uses]
    if not _is_candidate(op) or op.parent is not block or not old:
        return None
    position = {inner: at for at, inner in enumerate(block.ops)}
    return _Joined(block, op, writer, old, position)


def _update(joined: _Joined, part: _Part, reads: Sequence[_Read]) -> _Update:
    """The update that replaces an old part as soon as the new one is computed and
    nothing else reads the old one."""
    made = joined.position_of_definition(part.value)
    last = max((r.at for r in reads if r.box.meets(part.box)), default=-1)
    at = max(made, last, *map(joined.position_of_definition, joined.old))
    is_made = is_computed(part.value, joined.block) and not _is_seen(part.value)
    return _Update(at, not is_made or made < at, part)


def _write(joined: _Joined, updates: Sequence[_Update], reads: Sequence[_Read]) -> None:
    """Replaces a concatenation by updates. A read of old contents after an update reads
    the same elements of the newer contents."""
    following, value = [*list(joined.block.ops)[1:], None], joined.old[0]
    for at, _, part in updates:
        next = following[at]
        assert next is not None  # the concatenation comes later
        value = _put(joined, value, part, next)
        reads = [_read_from(value, read) if read.at > at else read for read in reads]
    op = joined.op
    value.name_hint = op.result.name_hint
    op.result.replace_all_uses_with(value)
    for replaced in dict.fromkeys((joined.writer, op)):
        Rewriter.erase_op(replaced)


def _is_seen(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and is_view(value.owner)


def _parts(op: ConcatenateOp, starts: Shape) -> Iterator[_Part]:
    """The parts of a concatenation at `starts`. A nested concatenation that it alone
    reads is replaced by its own parts."""
    dim = op.dimension.value.data
    for index, value in enumerate(op.inputs):
        inner = value.owner
        if (
            isinstance(inner, Operation)
            and inner.parent is op.parent
            and _is_candidate(inner)
            and not inner.outs
            and value.has_one_use()
        ):
            yield from _parts(inner, starts)
        else:
            yield _Part(value, op, index, _Box(starts, value_shape(value)))
        starts = (
            *starts[:dim],
            starts[dim] + value_shape(value)[dim],
            *starts[dim + 1 :],
        )


def _reads(value: SSAValue, position: Mapping[Operation, int]) -> Iterator[_Read]:
    """The reads of `value`, with the parts that they read."""
    shape = value_shape(value)
    for use in value.uses:
        box = _Box((0,) * len(shape), shape)
        yield from _through(use.operation, use.index, [], box, position)


def _through(
    op: Operation,
    operand: int,
    views: Sequence[Operation],
    box: _Box,
    position: Mapping[Operation, int],
) -> Iterator[_Read]:
    if not is_view(op):
        yield _Read(position[op], op, operand, views, box)
        return
    if isinstance(op, SliceOp) and not views:
        starts, limits = op.start_indices.get_values(), op.limit_indices.get_values()
        sizes = (end - start for start, end in zip(starts, limits, strict=True))
        box = _Box(tuple(starts), tuple(sizes))
    for use in op.results[0].uses:
        yield from _through(use.operation, use.index, [*views, op], box, position)


def _stays(part: _Part, read: _Read) -> bool:
    """Whether `part` is the old part, which `read` slices from the same place."""
    return (
        (read.reader, read.operand, read.box) == (part.reader, part.operand, part.box)
        and len(read.views) == 1
        and isinstance(read.views[0], SliceOp)
        and all(step == 1 for step in read.views[0].strides.get_values())
    )


def _put(joined: _Joined, old: SSAValue, part: _Part, next: Operation) -> SSAValue:
    """Inserts the update of `old` by `part` before `next`. Returns the new contents."""
    op = joined.op
    type = with_element(with_shape(op.declared[0], ()), i32)
    starts = [ConstantOp(IntegerAttr(start, i32), type) for start in part.box.starts]
    new = DynamicUpdateSliceOp(
        [old, part.value, *(start.result for start in starts)],
        outs=joined.outs,
        result_types=[op.result.type],
    )
    new.location = op.location
    Rewriter.insert_op([*starts, new], InsertPoint.before(next))
    return new.result


def _read_from(value: SSAValue, read: _Read) -> _Read:
    """Makes a reader read the same part of the newer contents `value`."""
    views: list[Operation] = []
    for view in read.views:
        new = view.clone()
        new.operands[0] = value
        Rewriter.insert_op(new, InsertPoint.before(read.reader))
        views.append(new)
        (value,) = new.results
    read.reader.operands[read.operand] = value
    return replace(read, views=views)
