"""Updates in place: the new part is computed directly over the part that it replaces.

    %w = tgraph.read %v : tensor<4x8xf32>
    %0 = tgraph.slice %w ... : (tensor<4x8xf32>) -> tensor<2x8xf32>
    %1 = tgraph.add %0, %g : tensor<2x8xf32>
    %2 = tgraph.dynamic_update_slice %w, %1, %c2, %c0 outs(%v) : ...

    %0 = memref.reinterpret_cast %v to offset: [16], ...
    tgraph.add %0, %g outs(%0) : memref<2x8xf32, ...>

This requires constant starts, and that only the update reads the old contents, in a
variable or elsewhere, after the new part is computed. Contents that the caller keeps
are first copied to the destination of the result.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from ..dialects.tgraph.base import STREAM, TensorOp, is_static, shape_of, tensor_type_of
from ..dialects.tgraph.fusing import without_units
from ..dialects.tgraph.indexing import DynamicUpdateSliceOp
from ..dialects.tgraph.shaping import ConstantOp, ViewOp
from .concatenations import is_computed
from .layout import Layout
from .operations import Operations, uses
from .versions import Version, last_versions, source_of, uses_of_contents


class Update(NamedTuple):
    """An update, and the layout of its part in the contents."""

    op: DynamicUpdateSliceOp
    layout: Layout


def updates(operations: Operations) -> Mapping[SSAValue, Update]:
    """The values of a block that can be computed directly over the part that an update
    replaces with them."""
    ops = [op for op in operations.ops if isinstance(op, DynamicUpdateSliceOp)]
    if not ops:
        return {}
    replaced: dict[Operation | None, Version] = {}
    for version in last_versions(operations.block).values():
        while (before := version.previous) is not None:
            replaced[version.writer] = before
            version = before
    found: dict[SSAValue, Update] = {}
    for op in reversed(ops):
        value = without_units(op.inputs[1])
        layout = None if value in found else updated_layout(op)
        before = replaced.get(op) or _contents(op)
        if layout is not None and _is_early(op, before, operations):
            found[value] = Update(op, layout)
    return found


def _contents(op: DynamicUpdateSliceOp) -> Version:
    """The initial contents of an update that writes no variable, as a version."""
    old = source_of(op.inputs[0])
    writer = old.owner if isinstance(old.owner, Operation) else None
    return Version(writer, [old])


def updated_layout(op: DynamicUpdateSliceOp) -> Layout | None:
    """The layout of the part in the updated contents, without dimensions of size 1 that
    a reshape has added to it; None if it is not known."""
    whole, part = (tensor_type_of(value.type) for value in op.inputs[:2])
    starts = [_number(start) for start in op.starts]
    known = [start for start in starts if start is not None]
    if len(known) < len(starts) or not (is_static(whole) and is_static(part)):
        return None
    sizes = zip(known, shape_of(whole), shape_of(part), strict=True)
    clamped = [max(0, min(start, size - taken)) for start, size, taken in sizes]
    layout = Layout.contiguous(shape_of(whole))
    made = shape_of(tensor_type_of(without_units(op.inputs[1]).type))
    return layout.sliced(clamped, [1] * len(clamped), shape_of(part)).reshaped(made)


def _is_early(
    op: DynamicUpdateSliceOp, before: Version, operations: Operations
) -> bool:
    """Whether the part can be computed over the old contents."""
    position = operations.position
    old, value = op.inputs[0], without_units(op.inputs[1])
    maker = value.owner
    if (
        not isinstance(maker, TensorOp)
        or isinstance(maker, ViewOp)
        or STREAM in maker.attributes
        or (block := op.parent) is None
        or not is_computed(value, block)
        or old not in before.values
        or (before.writer and position[before.writer] >= position[maker])
    ):
        return False
    now = position[maker]
    return is_read_before(op, before, now + 1, position, operations.uses)


def is_read_before(
    op: Operation,
    before: Version,
    end: float | Fraction,
    position: Mapping[Operation, float] | Mapping[Operation, int | Fraction],
    uses_of: Callable[[SSAValue], Iterable[tuple[Operation, int]]] = uses,
) -> bool:
    """Whether only the update `op` reads the contents `before` at `end` or later."""
    return all(
        at < end or (user is op and index == 0)
        for contents in before.values
        for at, user, index in uses_of_contents(contents, position, uses_of)
    )


def _number(start: SSAValue) -> int | None:
    op = start.owner
    if not isinstance(op, ConstantOp):
        return None
    value = op.value
    if isinstance(value, DenseIntOrFPElementsAttr):
        (value,) = value.iter_attrs()
    return value.value.data if isinstance(value, IntegerAttr) else None
