"""Writes concatenation and padding as copies into slices of the result."""

from ....analysis.layout import Layout
from ....dialects.tgraph.base import tensor_type_of
from ....dialects.tgraph.shaping import ConcatenateOp, PadOp, ReshapeOp
from .memory import Stored
from .nests import GenericBody, Values, assign, copy


def concatenate(values: Values, op: ConcatenateOp, target: Stored) -> None:
    along, start = op.dimension.value.data, 0
    ones = (1,) * len(target.shape)
    for value in op.inputs:
        shape = tensor_type_of(value.type).get_shape()
        starts = [start if d == along else 0 for d in range(len(shape))]
        assign(values, value, target.sliced(starts, ones, shape))
        start += shape[along]


def pad(values: Values, op: PadOp, target: Stored) -> None:
    """Fills the target with the padding, then copies the elements not cut off."""
    if 0 in target.shape:
        return
    nest = GenericBody(values, target.shape)
    number = nest.value(op.inputs[1], ())
    nest.finish(target, nest.dims, lambda _: number)
    source = values.store(op.inputs[0])
    firsts: list[int] = []
    starts: list[int] = []
    steps: list[int] = []
    shape: list[int] = []
    for size, limit, low, interior in zip(
        source.shape,
        target.shape,
        op.low.get_values(),
        op.interior.get_values(),
        strict=True,
    ):
        step = interior + 1
        first = max(0, -(low // step))  # the first element at 0 or after
        last = min(size - 1, (limit - 1 - low) // step)
        firsts.append(first)
        starts.append(low + first * step)
        steps.append(step)
        shape.append(max(0, last - first + 1))
    if 0 in shape:
        return
    kept = source.sliced(firsts, (1,) * len(shape), shape)
    copy(values, kept, target.sliced(starts, steps, shape))


def reshape(values: Values, op: ReshapeOp, target: Stored) -> None:
    """Views one side in the other's shape. If strides can express neither view, copies
    the operand to contiguous memory first."""
    source = values.store(op.inputs[0])
    if 0 in target.shape:
        return
    if (layout := target.layout.reshaped(source.shape)) is not None:
        copy(values, source, target.viewed(layout))
        return
    layout = source.layout.reshaped(target.shape)
    if layout is None:
        ordered = values.memory.allocate(source.element, source.shape)
        copy(values, source, ordered)
        source, layout = ordered, Layout.contiguous(target.shape)
    copy(values, source.viewed(layout), target)
