"""Folds constants: their shapes, their numbers, and the devices that they are on."""

from math import prod

from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from ...compatibility import replace
from ..base import (
    device_of,
    is_static,
    tensor_type_of,
    value_shape,
)
from ..indexing import DynamicSliceOp, GatherOp
from ..shaping import (
    ConstantOp,
    DeviceCopyOp,
    FullLikeOp,
    IotaOp,
    SliceOp,
    ViewOp,
)
from .common import (
    can_drop,
    can_merge,
    is_on_tensors,
    merge_with,
    replace_with,
)


class ShapeOfSplat(RewritePattern):
    """A view, a dynamic slice or a gather of a constant with one number -> a constant
    of its shape."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: ViewOp | DynamicSliceOp | GatherOp, rewriter: PatternRewriter
    ) -> None:
        source = op.inputs[0].owner
        if not isinstance(source, ConstantOp) or source.splat is None:
            return
        if can_merge(op, source):
            merge_with(rewriter, op, source, ConstantOp(source.splat, op.result.type))


class NumberOfConstant(RewritePattern):
    """A slice that takes one number of a constant -> that number."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not isinstance(source, ConstantOp) or source.splat is not None:
            return
        if prod(value_shape(op.result)) != 1 or not can_merge(op, source):
            return
        from ...dtypes import constant, constant_attribute, numpy_dtype

        element = tensor_type_of(op.result.type).element_type
        elements = constant(source.value, numpy_dtype(element, op))
        part = elements[op.start_indices.get_values()]
        number = constant_attribute(part, element)
        if constant(number, part.dtype).tobytes() == part.tobytes():  # keeps NaN bits
            merge_with(rewriter, op, source, ConstantOp(number, op.result.type))


class FullLikeOfStaticShape(RewritePattern):
    """full_like(x) -> constant, so that x need not stay live for its shape."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: FullLikeOp, rewriter: PatternRewriter) -> None:
        if is_on_tensors(op) and is_static(tensor_type_of(op.result.type)):
            replace_with(rewriter, op, ConstantOp(op.value, op.result.type))


class DropCopyHome(RewritePattern):
    """device_copy to the operand's device -> the operand; also for a copy and back."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DeviceCopyOp, rewriter: PatternRewriter) -> None:
        if not can_drop(op) or device_of(op.result.type) is None:
            return
        source = op.inputs[0]
        if isinstance(owner := source.owner, DeviceCopyOp) and is_on_tensors(owner):
            source = owner.inputs[0]
        for value in (op.inputs[0], source):
            if value.type == op.result.type:
                replace(rewriter, op, (), (value,))
                return


class CopyOfConstant(RewritePattern):
    """device_copy(constant) -> the constant on the other device; also for an iota."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DeviceCopyOp, rewriter: PatternRewriter) -> None:
        source = op.inputs[0].owner
        if not isinstance(source, ConstantOp | IotaOp):
            return
        if can_drop(op) and can_drop(source) and device_of(op.result.type):
            new = type(source).create(
                result_types=(op.result.type,), properties=source.properties
            )
            replace_with(rewriter, op, new)
