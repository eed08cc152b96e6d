"""`tgraph-channels-last`: moves the features of convolutions to the innermost
dimension.

    %0 = tgraph.convolution %x, %w {dim_labels = "bf01_oi01->bf01", ...}
         : ... -> tensor<1x8x6x6xf32>
    %1 = tgraph.tanh %0 : tensor<1x8x6x6xf32>
    func.return %1

    %2 = tgraph.transpose %x {permutation = array<i64: 0, 2, 3, 1>}
    %0 = tgraph.convolution %2, %w {dim_labels = "b01f_oi01->b01f", ...}
         : ... -> tensor<1x6x6x8xf32>
    %1 = tgraph.tanh %0 : tensor<1x6x6x8xf32>
    %3 = tgraph.transpose %1 {permutation = array<i64: 0, 3, 1, 2>}
    func.return %3

All features of a spatial position are then contiguous, which fast convolution kernels
require. The operations that follow keep this layout: elementwise operations, windows,
concatenations, pads, slices, broadcasts, and reshapes of dimensions that stay adjacent.
All other readers read through a transpose, which is a view.

Numerics: reorders floating-point operations, so results differ by rounding.

Needs: level 1 before fusion.
Leaves: level 1.
Does not: transpose weights, or change programs with symbolic sizes.

TVM's ConvertLayout and TensorFlow's layout optimizer do the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.functions import erase_unused, tensor_blocks
from ...dialects.tgraph.base import (
    AnyTensor,
    TensorOp,
    ints,
    is_static,
    shape_of,
    tensor_type_of,
    value_shape,
    with_shape,
)
from ...dialects.tgraph.elementwise import ElementwiseOp
from ...dialects.tgraph.reducing import ConvolutionOp, ReduceWindowOp
from ...dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    PadOp,
    ReshapeOp,
    SliceOp,
)
from ..optional import OptionalPass
from .shared.channels import replace
from .shared.reshaped import matching, transposed

Order: TypeAlias = list[int]
"""The original number of each dimension of a reordered value."""


@dataclass(frozen=True)
class TGraphChannelsLast(OptionalPass):
    """Computes convolutions and their users with the features innermost."""

    name = "tgraph-channels-last"
    EXACT = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            if any(isinstance(inner, ConvolutionOp) for inner in block.ops):
                _Orders().run(block)
                erase_unused(block)


class _Orders:
    """The values of a block that are also available with their dimensions reordered."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, tuple[SSAValue, Order]] = {}

    def run(self, block: Block) -> None:
        for op in list(block.ops):
            if not isinstance(op, TensorOp) or len(op.results) != 1 or op.outs:
                continue
            types = [tensor_type_of(x.type) for x in (*op.inputs, op.result)]
            if all(map(is_static, types)):
                self._reorder(op)

    def _reorder(self, op: TensorOp) -> None:
        """Computes a convolution with features last, and another operation in the order
        of its first reordered operand."""
        order = next((self._known[x][1] for x in op.inputs if x in self._known), None)
        match op:
            case ConvolutionOp():
                self._convolve(op)
            case _ if order is None:
                pass
            case ElementwiseOp():
                self._put(op, op.inputs, order, order)
            case ConcatenateOp():
                along = order.index(op.dimension.value.data)
                changed = {"dimension": IntegerAttr(along, i64)}
                self._put(op, op.inputs, order, order, changed)
            case ReduceWindowOp() | PadOp() | SliceOp() if op.inputs[0] in self._known:
                changed = {
                    name: ints([array.get_values()[d] for d in order])
                    for name, array in op.properties.items()
                    if isinstance(array, DenseArrayBase)
                    and name != "operandSegmentSizes"
                }
                self._put(op, op.inputs[:1], order, order, changed)
            case BroadcastInDimOp():
                self._broadcast(op, order)
            case ReshapeOp():
                self._reshape(op, order)
            case _:
                pass

    def _convolve(self, op: ConvolutionOp) -> None:
        image, kernel, result = op.labels
        wanted = "".join(["b", *sorted(set(image) - {*"bf"}), "f"])
        if image == result == wanted:
            return
        labels = {"dim_labels": StringAttr(f"{wanted}_{kernel}->{wanted}")}
        source, target = ([own.index(c) for c in wanted] for own in (image, result))
        self._put(op, op.inputs[:1], source, target, labels)

    def _broadcast(self, op: BroadcastInDimOp, order: Order) -> None:
        """Keeps each new dimension right after its predecessor."""
        to = op.broadcast_dimensions.get_values()
        new = sorted({*range(len(value_shape(op.result)))} - {*to})
        made = [to[d] for d in order]
        for d in new:
            made.insert(made.index(d - 1) + 1 if d else 0, d)
        changed = {"broadcast_dimensions": ints([made.index(to[d]) for d in order])}
        self._put(op, op.inputs, order, made, changed)

    def _reshape(self, op: ReshapeOp, order: Order) -> None:
        """Reorders a reshape if the dimensions that it merges are adjacent."""
        groups: list[tuple[int, Sequence[int]]] = []
        for old, new in matching(value_shape(op.inputs[0]), value_shape(op.result)):
            if not old:
                return
            at = [order.index(d) for d in old]
            if at != list(range(at[0], at[0] + len(at))):
                return
            groups.append((at[0], new))
        made = [d for _, new in sorted(groups) for d in new]
        self._put(op, op.inputs, order, made)

    def _put(
        self,
        op: TensorOp,
        inputs: Sequence[SSAValue],
        source: Order,
        target: Order,
        changed: Mapping[str, Attribute] | None = None,
    ) -> None:
        """Replaces `op` by a copy with the properties `changed`. The copy reads
        `inputs`, the first operands of `op`, in the order `source`. Its result is in
        the order `target`."""
        seen = [self._seen(value, source, op) for value in inputs]
        new = type(op).create(
            operands=[*seen, *op.inputs[len(inputs) :]],
            result_types=[_ordered(tensor_type_of(op.result.type), target)],
            properties={**op.properties, **(changed or {})},
            attributes=op.attributes,
            location=op.location,
        )
        Rewriter.insert_op(new, InsertPoint.before(op))
        value = new.results[0]
        value.name_hint = op.result.name_hint
        if target != sorted(target):
            back = transposed(value, [target.index(d) for d in sorted(target)])
            Rewriter.insert_op(back, InsertPoint.before(op))
            self._known[back.results[0]] = value, target
            value = back.results[0]
        replace(op, value)

    def _seen(self, value: SSAValue, order: Order, reader: TensorOp) -> SSAValue:
        """Returns `value` in the given order, if necessary through a new transpose."""
        known, own = self._known.get(value, (None, None))
        if known is not None and own == order:
            return known
        view = transposed(value, order)
        Rewriter.insert_op(view, InsertPoint.before(reader))
        return view.results[0]


def _ordered(type: AnyTensor, order: Order) -> AnyTensor:
    return with_shape(type, [shape_of(type)[d] for d in order])
