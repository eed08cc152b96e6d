"""`tgraph-pack-masks`: keeps masks across the peak as bits.

    %m = tgraph.compare %x, %zero ...           : ... -> tensor<8x96xi1>
    ...                                         // the peak
    %r = tgraph.select %m, %y, %zero            : tensor<8x96xf32>

    %b = tgraph.convert %m                      : ... -> tensor<8x96xui8>
    %p = tgraph.reduce (%b << row) {kind = "add", dimensions = array<i64: 0>}
                                                : ... -> tensor<96xui8>
    ...                                         // the peak
    %w = tgraph.broadcast_in_dim %p ...         : ... -> tensor<8x96xui8>
    %n = tgraph.convert (%w >> row & 1)         : ... -> tensor<8x96xi1>
    %r = tgraph.select %n, %y, %zero            : tensor<8x96xf32>

The backward pass of a relu, a dropout, or a clipped value needs only a mask, whose
elements take a byte each. The pass packs eight elements into one byte, along a
dimension whose size is a multiple of eight. Readers after the peak compute the mask
from the bits, usually in their own group. The unpacked masks equal the original ones.

The pass considers masks that are live across the peak of a block, also in loops. It
packs them in a copy of the function whose groups are split into their operations, then
fuses and schedules the copy again. It keeps the copy if the arenas take a hundredth
less, in at most 3 % more time.

Needs: level 1, in the order in which the program will run: after tgraph-schedule.
Leaves: level 1.
Does not: pack masks without a dimension whose size is a multiple of eight, masks that
are only broadcast after the peak, or masks that a loop carries.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    IntegerAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    StringAttr,
    i1,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue, Use

from ...analysis.cost import duration
from ...analysis.functions import blocks_within, is_tensor, tensor_functions
from ...analysis.memory_graph import memory_graph
from ...dialects.diagnostics import held_back, remark
from ...dialects.tgraph.base import (
    Shape,
    TensorOp,
    ints,
    shape_of,
    tensor_type_of,
    value_bytes,
    with_element,
    with_shape,
)
from ...dialects.tgraph.elementwise import (
    AndOp,
    ConvertOp,
    ShiftLeftOp,
    ShiftRightLogicalOp,
)
from ...dialects.tgraph.reducing import ReduceOp
from ...dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp, IotaOp, ReshapeOp
from ...dialects.tgraph.structure import FusionOp
from .. import driver
from ..optional import OptionalPass
from ..options import Packing, Placing
from .eliminate_assigns import TGraphEliminateAssigns
from .fuse import TGraphFuse
from .schedule import TGraphSchedule
from .shared.fitting import PlannedBytes, is_static_block
from .shared.streams import has_streams
from .shared.ungrouping import ungroup
from .tiling.bytes import Lifetimes

BITS = 8
"""The number of bits in a byte."""

WORTH = 0.01
"""The share of the bytes that has to be saved."""

MAX_SLOWDOWN = 0.03
"""The share of a function's time that packing may add, the same as for slices."""

_BYTE = IntegerType(BITS, Signedness.UNSIGNED)


@dataclass(frozen=True)
class TGraphPackMasks(OptionalPass, Placing):
    """Keeps masks across the peak as bits."""

    name = "tgraph-pack-masks"
    IDEMPOTENT = False  # the peak moves
    LOWERS_PEAK = True
    TOPIC = "recomputation"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func, _ in tensor_functions(op):
            if not has_streams(func, "no masks are packed"):
                self._pack(ctx, func)

    def _pack(self, ctx: Context, func: FuncOp) -> None:
        blocks = blocks_within(func.body.block)
        if not any(_crossing(block, self.alignment) for block in blocks):
            return
        copy = func.clone()
        count = 0
        for block in list(blocks_within(copy.body.block)):
            if masks := _crossing(block, self.alignment):
                count += _packed(block, masks)
        if not count:
            return
        module = ModuleOp([copy])
        again = [
            TGraphEliminateAssigns(),
            TGraphFuse(),
            TGraphSchedule(**self.shared(Packing)),
        ]
        with held_back():
            driver.run(ctx, module, again, verify=False)
        planned = PlannedBytes(self)
        before = planned.of_all(func)
        after = planned.within(copy, int((1 - WORTH) * before))
        if after is None or duration(copy) > (1 + MAX_SLOWDOWN) * duration(func):
            return
        func.detach_region(0)
        func.add_region(copy.detach_region(0))
        remark(
            f"masks kept as bits: {count}; the peak goes from {before} to {after} "
            "bytes",
            func,
            passed=True,
        )


@dataclass(frozen=True)
class _Masks:
    """Masks that are live across the peak of a block, and the operations from it on."""

    values: Sequence[SSAValue]
    behind: frozenset[Operation]


def _crossing(block: Block, alignment: int) -> _Masks | None:
    """The masks that are live across the peak; None if they are too small."""
    if not is_static_block(block):
        return None
    made = [op for op in block.ops if any(map(_is_mask, op.results))]
    if not made:
        return None
    memory = memory_graph(block, alignment)
    position = {op: number for number, op in enumerate(block.ops)}
    found: dict[SSAValue, None] = {}
    behind: set[Operation] = set()
    for graph in memory.graphs.values():
        lives = Lifetimes(memory, graph, alignment).during
        if not any(lives):
            continue
        peak = position[memory.ops[max(range(len(lives)), key=lives.__getitem__)]]
        after = [op for op, number in position.items() if number >= peak]
        behind |= {inner for op in after for inner in op.walk()}
        masks = [
            value
            for op in made
            if position[op] < peak
            for value in op.results
            if _is_mask(value)
            and any(
                use.operation in behind and _is_read_whole(use) for use in value.uses
            )
        ]
        gained = sum(value_bytes(value) for value in masks)
        if gained * (BITS - 1) / BITS >= WORTH * max(lives):
            found |= dict.fromkeys(masks)
    return _Masks(list(found), frozenset(behind)) if found else None


def _is_read_whole(use: Use) -> bool:
    """Whether a mask is read element by element rather than broadcast. To broadcast it,
    the unpacked mask would be stored again."""
    if isinstance(use.operation, FusionOp):
        argument = use.operation.body.block.args[use.index]
        return any(map(_is_read_whole, argument.uses))
    return not isinstance(use.operation, BroadcastInDimOp)


def _is_mask(value: SSAValue) -> bool:
    if not is_tensor(value.type) or not isinstance(value.owner, TensorOp):
        return False
    type = tensor_type_of(value.type)
    return type.element_type == i1 and _dimension(shape_of(type)) is not None


def _dimension(shape: Shape) -> int | None:
    """The dimension along which to pack a mask: one of size eight if there is one,
    because it need not be split. None if no size is a multiple of eight."""
    fits = [n for n, size in enumerate(shape) if size and size % BITS == 0]
    return min(fits, key=lambda n: (shape[n] != BITS, n), default=None)


def _packed(block: Block, masks: _Masks) -> int:
    """Packs masks. Returns their number."""
    renamed = ungroup(block)
    count = 0
    for result in masks.values:
        mask = renamed.get(result, result)
        uses = [use for use in mask.uses if use.operation in masks.behind]
        maker = mask.owner
        if not isinstance(maker, Operation) or maker.parent is not block or not uses:
            continue
        follower = maker.next_op
        assert follower is not None
        bits = _written(mask, follower)
        for use in uses:
            use.operation.operands[use.index] = _written(mask, use.operation, bits)
        count += 1
    return count


def _written(
    mask: SSAValue, before: Operation, bits: SSAValue | None = None
) -> SSAValue:
    """Packs `mask` before the operation `before`, or, given its `bits`, unpacks them
    there. Returns the new value."""
    type = tensor_type_of(mask.type)
    shape = shape_of(type)
    along = _dimension(shape)
    assert along is not None
    is_divided = shape[along] != BITS
    parts = [BITS, shape[along] // BITS] if is_divided else [BITS]
    split = [*shape[:along], *parts, *shape[along + 1 :]]
    rest = [n for n in range(len(split)) if n != along]

    def split_type(element: Attribute) -> Attribute:
        return with_element(with_shape(type, split), element)

    def emit(op: TensorOp) -> SSAValue:
        op.location = before.location
        assert before.parent is not None
        before.parent.insert_op_before(op, before)
        return op.results[0]

    bytes = split_type(_BYTE)
    place = emit(IotaOp.along(along, with_shape(type, split), _BYTE))
    if bits is None:
        if is_divided:
            mask = emit(ReshapeOp([mask], result_types=[split_type(i1)]))
        wide = emit(ConvertOp([mask], result_types=[bytes]))
        shifted = emit(ShiftLeftOp([wide, place], result_types=[bytes]))
        packed = with_shape(tensor_type_of(bytes), [split[n] for n in rest])
        properties = {"kind": StringAttr("add"), "dimensions": ints([along])}
        return emit(ReduceOp([shifted], result_types=[packed], properties=properties))
    dims = {"broadcast_dimensions": ints(rest)}
    wide = emit(BroadcastInDimOp([bits], result_types=[bytes], properties=dims))
    shifted = emit(ShiftRightLogicalOp([wide, place], result_types=[bytes]))
    one = emit(ConstantOp(IntegerAttr(1, _BYTE), tensor_type_of(bytes)))
    last = emit(AndOp([shifted, one], result_types=[bytes]))
    mask = emit(ConvertOp([last], result_types=[split_type(i1)]))
    return emit(ReshapeOp([mask], result_types=[type])) if is_divided else mask
