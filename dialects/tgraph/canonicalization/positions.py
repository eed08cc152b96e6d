"""Simplifies sorts, and reductions of indices along a dimension."""

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ...compatibility import replace
from ..base import ints, segments, value_shape
from ..bodies import ElementsOp, SortOp
from ..shaping import BroadcastInDimOp, IotaOp
from .common import (
    can_drop,
    is_on_tensors,
    replace_with,
)


class CountPositions(RewritePattern):
    """An iota along the reduced or sorted dimension -> an entry of `positions`."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ElementsOp, rewriter: PatternRewriter) -> None:
        if not is_on_tensors(op) or len(op.along) != 1:
            return
        counted = [
            number
            for number, value in enumerate(op.inputs[: len(op.res)])
            if counts(value, op.along[0])
        ]
        if not counted or len(counted) == len(op.res) or op.numbered:
            return
        inputs = [value for n, value in enumerate(op.inputs) if n not in counted]
        new = type(op).create(
            operands=inputs,
            result_types=[result.type for result in op.res],
            properties={
                **op.properties,
                "positions": ints(counted),
                "operandSegmentSizes": segments(inputs, ()),
            },
            regions=[op.detach_region(0)],
        )
        replace_with(rewriter, op, new)


class SortOfUnitDimension(RewritePattern):
    """sort along a dimension of size 1 -> its operands."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SortOp, rewriter: PatternRewriter) -> None:
        if not can_drop(op):
            return
        dimension = op.dimension.value.data
        shapes = value_shape(op.inputs[0]), value_shape(op.res[0])
        if any(shape[dimension] != 1 for shape in shapes):
            return
        iotas: list[Operation] = []

        def made(iota: IotaOp) -> SSAValue:
            iotas.append(iota)
            return iota.result

        found = op.completed(op.inputs, made)
        replace(rewriter, op, iotas, found)


def counts(value: SSAValue, dimension: int) -> bool:
    """Whether each element is its own index along a dimension."""
    op = value.owner
    if isinstance(op, IotaOp):
        return op.dimension.value.data == dimension
    if not isinstance(op, BroadcastInDimOp):
        return False
    source = op.inputs[0]
    dims = op.broadcast_dimensions.get_values()
    return dimension in dims and (
        value_shape(source)[at := dims.index(dimension)]
        == value_shape(value)[dimension]
        and counts(source, at)
    )
