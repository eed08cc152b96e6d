"""When canonicalization may replace an operation, and how."""

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from ...compatibility import insert, replace
from ..base import TensorOp, is_static, tensor_type_of
from ..shaping import ConstantOp, SliceOp


def is_on_tensors(op: TensorOp) -> bool:
    """Whether the operation is on tensors and writes no variable."""
    return not op.outs


def is_plain_slice(op: Operation) -> bool:
    """Whether an operation takes a slice of a tensor with strides of 1."""
    return (
        isinstance(op, SliceOp)
        and is_on_tensors(op)
        and all(stride == 1 for stride in op.strides.get_values())
    )


def can_merge(op: TensorOp, source: TensorOp) -> bool:
    """Whether one operation may replace both."""
    same = not op.attributes or op.attributes == source.attributes
    return same and is_on_tensors(op) and is_on_tensors(source)


def can_drop(op: TensorOp) -> bool:
    """Whether an operand may replace the operation's result."""
    return is_on_tensors(op) and not op.attributes


def replace_with(rewriter: PatternRewriter, op: TensorOp, new: TensorOp) -> None:
    """Replaces `op` by `new`, which gets its location and attributes."""
    new.location = op.location
    new.attributes = {**op.attributes}
    replace(rewriter, op, new)


def merge_with(
    rewriter: PatternRewriter, op: TensorOp, source: TensorOp, new: TensorOp
) -> None:
    """Replaces `op`, which reads the result of `source`, by `new`, which replaces both
    and gets the attributes of `source`."""
    new.location = op.location
    new.attributes = {**source.attributes}
    replace(rewriter, op, new)


def insert_before(rewriter: PatternRewriter, op: TensorOp, new: TensorOp) -> None:
    """Inserts `new`, which gets the location and attributes of `op`, before `op`."""
    new.location = op.location
    new.attributes = {**op.attributes}
    insert(rewriter, new, InsertPoint.before(op))


def added(rewriter: PatternRewriter, op: TensorOp, new: TensorOp) -> SSAValue:
    """The first result of `new`, which is inserted as by `insert_before`."""
    insert_before(rewriter, op, new)
    return new.results[0]


def has_static_operands(op: TensorOp) -> bool:
    """Whether all operand sizes are numbers."""
    return all(is_static(tensor_type_of(value.type)) for value in op.inputs)


def splat_number(value: SSAValue) -> float | None:
    """The real number that is every element of a constant; None for other values."""
    owner = value.owner
    number = owner.splat if isinstance(owner, ConstantOp) else None
    return number.value.data if isinstance(number, IntegerAttr | FloatAttr) else None


def splat_integer(value: SSAValue) -> int | None:
    """The integer that is every element of a constant; None for other values."""
    number = splat_number(value)
    return number if isinstance(number, int) else None
