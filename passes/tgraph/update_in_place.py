"""`tgraph-update-in-place`: fuses slice updates of variables into groups.

    %s = tgraph.dynamic_slice %m, %i, %c0 {...} : ... -> tensor<1x8xf32>
    %u = tgraph.fusion(%x = %s, %y = %g) : (...) -> tensor<1x8xf32> {
      %0 = tgraph.add %x, %y : tensor<1x8xf32>
      tgraph.yield %0 : tensor<1x8xf32>
    }
    %t = tgraph.sqrt %u : tensor<1x8xf32>
    %n = tgraph.dynamic_update_slice %m, %u, %i, %c0 outs(%v) : ...

    %n = tgraph.fusion(%y = %g, %whole = %m, %start = %i) outs(%v) : (...) {
      %c0 = tgraph.constant<0 : i32> : tensor<i32>
      %x = tgraph.dynamic_slice %whole, %start, %c0 {...} : ... -> tensor<1x8xf32>
      %0 = tgraph.add %x, %y : tensor<1x8xf32>
      %1 = tgraph.dynamic_update_slice %whole, %0, %start, %c0 : ...
      tgraph.yield %1 : tensor<4x8xf32>
    }
    %t = tgraph.fusion(%whole = %n, %start = %i) : (...) -> tensor<1x8xf32> {...}

Here, %m holds the contents of the variable %v. The group computes the slice straight
into the variable, instead of storing it elsewhere and copying it: a row that a loop
adds to a stack, or one of an optimizer's state for all layers. Groups also read the old
and the new slice there.

The pass applies to a group or another computed operation if only the update reads the
old contents from then on. All other readers of the slice must be groups or such
operations, too. XLA also has such fusions. Updates at constant starts need no group:
their slices are views (`analysis/updates.py`).

Needs: level 1, in the order in which the program will run: last before
tgraph-bufferize.
Leaves: level 1.
Does not: store slices in place that are small or have few adjacent elements, by the
limits of `fusion/slices.py`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.functions import erase_unused, tensor_blocks
from ...analysis.operations import Fused, contracts, operands_of
from ...analysis.updates import is_read_before, updated_layout
from ...analysis.versions import Version, last_versions
from ...dialects.sizes.symbolic import typical
from ...dialects.tgraph.base import (
    AnyTensor,
    TensorOp,
    ints,
    shape_of,
    tensor_type_of,
)
from ...dialects.tgraph.elementwise import ElementwiseOp
from ...dialects.tgraph.fusing import (
    ending,
    is_same,
    keeps_sizes,
    without_units,
)
from ...dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from ...dialects.tgraph.shaping import ConstantOp, ReshapeOp, ViewOp
from ...dialects.tgraph.structure import FusionOp, ReadOp, YieldOp
from ..optional import OptionalPass
from .fuse import outline
from .fusion.graph import place_of
from .fusion.groups import is_computed
from .fusion.slices import contiguous_elements, numpy_multiplies, pays_in_place


@dataclass(frozen=True)
class TGraphUpdateInPlace(OptionalPass):
    """Computes slices straight into the variables that updates put them into."""

    name = "tgraph-update-in-place"
    LOWERS_PEAK = True
    TOPIC = "in place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            updates = [
                inner
                for inner in block.ops
                if isinstance(inner, DynamicUpdateSliceOp) and inner.outs
            ]
            if not updates:
                continue
            places = _Places(block)
            for update in updates:
                if found := _found(update, places):
                    _put_in_place(found, places)
            erase_unused(block)


class _Places:
    """The positions of a block's operations, and the versions of variables that they
    write. Stays up to date while operations are moved and replaced."""

    def __init__(self, block: Block):
        self.block = block
        self.position = {op: float(at) for at, op in enumerate(block.ops)}
        self.versions: dict[tuple[Operation, SSAValue], Version] = {}
        for variable, last in last_versions(block).items():
            version: Version | None = last
            while version is not None:
                if version.writer is not None:
                    self.versions[version.writer, variable] = version
                version = version.previous

    def replaced(self, old: TensorOp, outs: Sequence[SSAValue], new: FusionOp) -> None:
        """Records that `new` replaces `old`, which wrote the variables `outs`."""
        self.position[new] = self.position[old]
        for variable in outs:
            version = self.versions[new, variable] = self.versions[old, variable]
            version.writer = new
            version.values[0] = new.result

    def move(self, op: Operation, before: Operation) -> None:
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(before))
        self.position[op] = self.position[before] - 0.5


@dataclass(frozen=True)
class _InPlace:
    """An update whose slice can be computed straight into the variable."""

    update: DynamicUpdateSliceOp
    maker: TensorOp  # computes the slice, perhaps without sizes of 1
    old: Sequence[SSAValue]  # the variable's contents until then
    readers: Sequence[TensorOp]  # other readers of the new slice
    ahead: Sequence[Operation]  # compute starts after the maker, in order
    later: Sequence[Operation]  # write starts too early for the readers


def _found(update: DynamicUpdateSliceOp, places: _Places) -> _InPlace | None:
    made = without_units(update.inputs[1])
    maker, position = made.owner, places.position
    if (
        not isinstance(maker, TensorOp)
        or maker not in position
        or maker.outs
        or _ends_with_update(maker)
        or (contracts(maker) and _has_gaps(update))  # libraries do not allow gaps
        or not _may_be_part(maker, update)
        or not pays_in_place(update, update.inputs[1])
        or updated_layout(update) is not None
    ):
        return None
    now = position[maker]
    version = places.versions[update, update.outs[0]]
    before, after = version.previous, version.next
    if (
        before is None
        or (before.writer and position[before.writer] >= now)
        or not is_read_before(update, before, now, position)
    ):
        return None
    ahead: dict[Operation, None] = {}
    if not all(_may_be_ahead(s, maker, ahead, position) for s in _starts(update)):
        return None
    end = position[after.writer] if after and after.writer else len(position)
    readers: dict[TensorOp, None] = {}
    for reader in _readers(made):
        if reader is update:
            continue
        if (
            not isinstance(reader, TensorOp)
            or position[reader] >= end
            or not _may_be_part(reader, update)
        ):
            return None
        readers[reader] = None
    last = max((position[reader] for reader in readers), default=now)
    later = _written_before(update, last, position)
    if later is None:
        return None
    return _InPlace(update, maker, before.values, list(readers), list(ahead), later)


def _may_be_ahead(
    value: SSAValue,
    maker: Operation,
    ahead: dict[Operation, None],
    position: Mapping[Operation, float],
) -> bool:
    """Whether `value` is defined before `maker`, or can be computed there by
    operations, which this function adds to `ahead`."""
    op = value.owner
    if (
        not isinstance(op, Operation)
        or position.get(op, -1) < position[maker]
        or op in ahead
    ):
        return True
    if not isinstance(op, ConstantOp | FusionOp | ViewOp | ElementwiseOp) or op.outs:
        return False
    if op is maker or not all(
        _may_be_ahead(operand, maker, ahead, position) for operand in op.inputs
    ):
        return False
    ahead[op] = None
    return True


def _written_before(
    update: DynamicUpdateSliceOp, last: float, position: Mapping[Operation, float]
) -> Sequence[Operation] | None:
    """The operations that write the variables of starts before the last reader has run,
    if all are increments of counters, which can move to the end of the block; else
    None."""
    found: list[Operation] = []
    for read in (start.owner for start in _starts(update)):
        if not isinstance(read, ReadOp) or read not in position:
            continue
        for use in read.variable.uses:
            writer = use.operation
            if isinstance(writer, ReadOp) or not (
                position[read] < position.get(writer, -1) < last
            ):
                continue
            if any(result.uses for result in writer.results) or any(
                value is not read.result for value in operands_of(writer)[0]
            ):
                return None
            found.append(writer)
    return list(dict.fromkeys(found))


def _starts(op: DynamicSliceOp | DynamicUpdateSliceOp) -> Sequence[SSAValue]:
    """The starts of a slice, each as the first scalar that has the same value."""
    return [_first(start) for start in op.starts]


def _first(value: SSAValue) -> SSAValue:
    first, type = value, value.type
    while isinstance(value.owner, ViewOp) and keeps_sizes(value.owner):
        value = value.owner.inputs[0]
        if value.type == type:
            first = value
    return first


def _may_be_part(op: TensorOp, update: DynamicUpdateSliceOp) -> bool:
    """Whether `op` may be a group that reads the slice, or ends with the update."""
    if isinstance(op, FusionOp):
        group = op.group()
        if group is None or group.form is None:
            return False
    elif not is_computed(op):
        return False
    element = tensor_type_of(update.inputs[1].type).element_type
    return place_of(op) == place_of(update) and not (
        contracts(op) and numpy_multiplies(element)
    )


def _has_gaps(update: DynamicUpdateSliceOp) -> bool:
    """Whether other elements lie between those of the slice."""
    whole, part = (tensor_type_of(value.type) for value in update.inputs[:2])
    return contiguous_elements(whole, part) < typical(prod(shape_of(part)))


def _ends_with_update(op: TensorOp) -> bool:
    return isinstance(op, FusionOp) and ending(op.yielded[0])[1] is not None


def _readers(value: SSAValue) -> Iterator[Operation]:
    """The readers of `value`, directly or with other dimensions of size 1."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, ViewOp) and keeps_sizes(op):
            yield from _readers(op.res[0])
        else:
            yield op


def _put_in_place(found: _InPlace, places: _Places) -> None:
    update, starts = found.update, _starts(found.update)

    def is_replaced(value: SSAValue) -> bool:
        op = without_units(value).owner
        return (
            isinstance(op, DynamicSliceOp)
            and not op.outs
            and op.inputs[0] in found.old
            and op.declared[0] == tensor_type_of(update.inputs[1].type)
            and all(map(is_same, _starts(op), starts))
        )

    maker = _as_fusion(found.maker, places)
    group = _Group(maker, update)
    group.read(update.inputs[0], is_replaced)
    group.put()
    new = group.fusion(update.result.type, update.outs)
    if not new.overwritable():  # it reads other elements of the old slice, too
        group = _Group(maker, update)
        group.put()
        new = group.fusion(update.result.type, update.outs)
    old = update.inputs[0].owner
    ahead = list(found.ahead)
    if isinstance(old, ReadOp) and places.position[old] > places.position[maker]:
        ahead.append(old)
    for op in ahead:
        places.move(op, maker)
    for op in found.later:
        assert places.block.last_op is not None
        places.move(op, places.block.last_op)
    Rewriter.insert_op(new, InsertPoint.before(maker))
    new.result.name_hint = update.result.name_hint
    update.result.replace_all_uses_with(new.result)
    places.replaced(update, update.outs, new)
    places.position[new] = places.position[maker]
    for op in found.readers:
        reader = _as_fusion(op, places)
        group = _Group(reader, update)
        group.read(new.result, lambda value: without_units(value) is maker.result)
        other = group.fusion(reader.declared[0], reader.outs)
        places.replaced(reader, reader.outs, other)
        Rewriter.replace_op(reader, other)
    update.detach()
    update.erase()


def _as_fusion(op: TensorOp, places: _Places) -> FusionOp:
    """Returns `op`, as a group of one operation if it is no group."""
    if isinstance(op, FusionOp):
        return op
    outs = list(op.outs)
    fusion = outline(Fused([op], list(dict.fromkeys(op.inputs)), ()))
    places.replaced(op, outs, fusion)
    return fusion


class _Group:
    """A new version of a group that reads a slice in place, or ends with its update."""

    def __init__(self, op: FusionOp, update: DynamicUpdateSliceOp):
        self._op, self._update = op, update
        self._inputs = list(op.inputs)
        self._body = op.body.clone()
        self._constants: dict[SSAValue, SSAValue] = {}

    def read(self, whole: SSAValue, is_slice: Callable[[SSAValue], bool]) -> None:
        """Makes the body slice `whole` instead of reading the slice as an operand."""
        block = self._body.block
        first = block.first_op
        assert first is not None
        read = [n for n, value in enumerate(self._inputs) if is_slice(value)]
        if not read:
            return
        operands = [self._inside(whole), *map(self._inside, _starts(self._update))]
        type = tensor_type_of(self._update.inputs[1].type)
        slice = DynamicSliceOp(
            operands,
            result_types=[type],
            properties={"slice_sizes": ints(shape_of(type))},
        )
        block.insert_op_before(slice, first)
        for n in reversed(read):
            argument = block.args[n]
            value = _reshaped(slice.result, tensor_type_of(argument.type), first)
            value.name_hint = argument.name_hint
            argument.replace_all_uses_with(value)
            block.erase_arg(argument)
            del self._inputs[n]

    def put(self) -> None:
        """Makes the body end with the update."""
        end = self._body.block.last_op
        assert isinstance(end, YieldOp)
        whole, slice, *_ = self._update.inputs
        made = _reshaped(end.values[0], tensor_type_of(slice.type), end)
        starts = map(self._inside, _starts(self._update))
        operands = [self._inside(whole), made, *starts]
        update = DynamicUpdateSliceOp(operands, result_types=[whole.type])
        Rewriter.replace_op(end, [update, YieldOp(update.result)])

    def fusion(self, type: AnyTensor, outs: Sequence[SSAValue]) -> FusionOp:
        """The new group, with a result of the given type."""
        new = FusionOp(self._inputs, self._body, outs=outs, result_types=[type])
        new.attributes |= self._op.attributes
        new.location = self._op.location
        return new

    def _inside(self, value: SSAValue) -> SSAValue:
        """`value` as the body reads it: a block argument, or a copied constant."""
        block = self._body.block
        if isinstance(value.owner, ConstantOp):
            if value not in self._constants:
                constant = value.owner.clone()
                assert block.first_op is not None
                block.insert_op_before(constant, block.first_op)
                self._constants[value] = constant.result
            return self._constants[value]
        if value not in self._inputs:
            self._inputs.append(value)
            argument = block.insert_arg(tensor_type_of(value.type), len(block.args))
            argument.name_hint = value.name_hint
        return block.args[self._inputs.index(value)]


def _reshaped(value: SSAValue, type: AnyTensor, before: Operation) -> SSAValue:
    """Returns `value` with other dimensions of size 1, reshaped before `before`."""
    if value.type == type:
        return value
    reshape = ReshapeOp([value], result_types=[type])
    Rewriter.insert_op(reshape, InsertPoint.before(before))
    return reshape.result
