"""Merges and removes pads, and the slices of their results."""

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ..base import ints, is_static, tensor_type_of, value_shape, with_shape
from ..shaping import BroadcastInDimOp, PadOp, SliceOp, plain_slice
from .common import (
    can_merge,
    has_static_operands,
    insert_before,
    is_on_tensors,
    is_plain_slice,
    replace_with,
)


class PadOfEmpty(RewritePattern):
    """pad of an operand without elements -> broadcast of the padding."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PadOp, rewriter: PatternRewriter) -> None:
        source, number = op.inputs
        if is_on_tensors(op) and 0 in value_shape(source):
            replace_with(rewriter, op, _repeated(number, op.result))


class SliceInsteadOfNegativePad(RewritePattern):
    """pad with negative amounts -> slice -> pad with the other amounts."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: PadOp, rewriter: PatternRewriter) -> None:
        if not is_on_tensors(op) or not _has_static_sizes(op):
            return
        source, number = op.inputs
        low, high = op.low.get_values(), op.high.get_values()
        starts = [max(-amount, 0) for amount in low]
        limits = [
            size - max(-amount, 0)
            for size, amount in zip(value_shape(source), high, strict=True)
        ]
        if limits == list(value_shape(source)) and not any(starts):
            return
        dims = zip(starts, limits, op.interior.get_values(), strict=True)
        if any(start > limit or inner for start, limit, inner in dims):
            return
        kept = plain_slice(source, starts, limits)
        amounts = ([max(amount, 0) for amount in side] for side in (low, high))
        insert_before(rewriter, op, kept)
        replace_with(rewriter, op, _padded(kept.result, number, *amounts))


class SlicesOfPad(RewritePattern):
    """pad -> slices of it -> slices of the operand -> pads, if it has no other uses."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        pad = op.inputs[0].owner
        if not isinstance(pad, PadOp) or not can_merge(op, pad):
            return
        if any(pad.interior.get_values()) or not _has_static_sizes(pad):
            return
        if not all(is_plain_slice(use.operation) for use in pad.result.uses):
            return
        source, number = pad.inputs
        starts, limits, lows, highs = (list[int]() for _ in range(4))
        for start, limit, low, size in zip(
            op.start_indices.get_values(),
            op.limit_indices.get_values(),
            pad.low.get_values(),
            value_shape(source),
            strict=True,
        ):
            if low < 0:
                return
            first, end = (min(max(at - low, 0), size) for at in (start, limit))
            before = min(max(low - start, 0), limit - start)
            starts.append(first)
            limits.append(end)
            lows.append(before)
            highs.append(limit - start - before - (end - first))
        part = plain_slice(source, starts, limits)
        insert_before(rewriter, op, part)
        replace_with(rewriter, op, _padded(part.result, number, lows, highs))


def _has_static_sizes(pad: PadOp) -> bool:
    return has_static_operands(pad) and is_static(tensor_type_of(pad.result.type))


def _padded(
    source: SSAValue, number: SSAValue, low: Sequence[int], high: Sequence[int]
) -> PadOp:
    shape = [sum(sizes) for sizes in zip(low, value_shape(source), high, strict=True)]
    return PadOp(
        [source, number],
        result_types=[with_shape(tensor_type_of(source.type), shape)],
        properties={
            "low": ints(low),
            "high": ints(high),
            "interior": ints([0] * len(shape)),
        },
    )


def _repeated(number: SSAValue, like: SSAValue) -> BroadcastInDimOp:
    return BroadcastInDimOp(
        [number],
        result_types=[like.type],
        properties={"broadcast_dimensions": ints(())},
    )
