"""`tgraph-split-updates`: updates each row of a variable as soon as possible.

    %m = tgraph.read %vm : tensor<12x768x768xf32>
    %g = tgraph.concatenate %g0, %g1 ...            // of 12 rows
    %n = tgraph.add %m, %g ...
    tgraph.assign %vm, %n

    %m0 = tgraph.slice %m ...                       // after %g0
    %n0 = tgraph.add %m0, %g0 ...
    %v0 = tgraph.dynamic_update_slice %m, %n0 ...
    tgraph.assign %vm, %v0
    ...                                             // the same after %g1

The backward pass of an unrolled loop computes the gradients of its layers one after the
other, and an optimizer updates all layers at once, element by element. This pass
updates each layer on its own, so that no gradient waits for the others. Operations in
between read the other rows from the variable, which still holds them. Every element is
computed from the same elements as before, so results are bitwise identical.

Needs: level 1, after `cse` and before tgraph-fuse.
Leaves: level 1, canonical.
Does not: handle variables that other operations write, variables that are read as a
whole after the first update, or functions whose operations have streams; or split
updates where this saves no bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.traits import IsTerminator
from xdsl.transforms.canonicalize import CanonicalizePass

from ...analysis.functions import erase_unused, tensor_functions
from ...analysis.operations import is_view
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import (
    TensorOp,
    shape_of,
    tensor_type_of,
    with_element,
    with_shape,
)
from ...dialects.tgraph.shaping import ConcatenateOp, ConstantOp, SliceOp, ViewOp
from ...dialects.tgraph.structure import ReadOp
from ..optional import OptionalPass
from .shared.row_updates import Finding, Rows, Unfit, Update
from .shared.rows import Part, is_of_rows, parts
from .shared.streams import has_streams


@dataclass(frozen=True)
class TGraphSplitUpdates(OptionalPass):
    """Updates variables part by part, where parts are computed one after the other."""

    name = "tgraph-split-updates"
    TOPIC = "updates"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        changed = False
        for func, block in tensor_functions(op):
            if has_streams(func, "no update is split"):
                continue
            for joined in [op for op in block.ops if isinstance(op, ConcatenateOp)]:
                changed |= _split(joined)
            erase_unused(block)
        if changed:
            CanonicalizePass().apply(ctx, op)


def _split(joined: ConcatenateOp) -> bool:
    """Splits the updates that follow from a concatenation. Returns whether it did."""
    block = joined.parent
    assert block is not None
    if not is_of_rows(joined):
        return False
    found = list(parts(joined))
    makers = [_maker(part.value) for part in found]
    first = next((op for op in block.ops if op in makers), None)
    if first is None or None in makers:
        return False
    position = {op: index for index, op in enumerate(block.ops)}
    try:
        update = Finding(joined.result, first, position, _takes_rows).update()
    except Unfit:
        return False
    if update.bytes <= update.row_bytes(max(part.rows for part in found)):
        return False
    remark(
        f"the update of {len(update.assigns)} variables is split into {len(found)} "
        "parts",
        joined,
        passed=True,
    )
    update.hoist(first)
    readers = _Readers(update, first, position)
    _write(update, found, readers)
    return True


def _maker(value: SSAValue) -> Operation | None:
    """The operation that computes `value`, perhaps in another shape; None if no
    operation does."""
    op = value.owner
    if isinstance(op, ViewOp):
        return _maker(op.inputs[0])
    return op if isinstance(op, TensorOp) and not isinstance(op, ReadOp) else None


def _takes_rows(use: Use) -> bool:
    """Whether `use` slices whole rows, and no terminator reads them."""
    op = use.operation
    if not isinstance(op, SliceOp) or op.outs:
        return False
    starts, limits = op.start_indices.get_values(), op.limit_indices.get_values()
    rest = shape_of(tensor_type_of(op.inputs[0].type))[1:]
    return (
        all(stride == 1 for stride in op.strides.get_values())
        and not any(starts[1:])
        and limits[1:] == rest
        and not any(leaf.has_trait(IsTerminator) for leaf, _, _ in _leaves(op))
    )


def _leaves(view: ViewOp) -> Iterator[tuple[Operation, int, Sequence[ViewOp]]]:
    """The readers of `view`, each with the operand and the views in between."""
    for use in list(view.result.uses):
        if is_view(use.operation):
            for op, index, views in _leaves(use.operation):
                yield op, index, (view, *views)
        else:
            yield use.operation, use.index, (view,)


class _Readers:
    """The operations that read rows of old contents after the first update.

    The constructor makes them read the rows from the variable, right before they run.
    """

    def __init__(
        self, update: Update, first: Operation, position: Mapping[Operation, int]
    ):
        self.rows: list[tuple[Operation, int, int]] = []
        for variable, old in update.olds.items():
            slices = [use.operation for use in old.uses] if old is not None else []
            for op in slices:
                if isinstance(op, SliceOp):
                    for reader, index, views in list(_leaves(op)):
                        if position[reader] > position[first]:
                            self._read_late(variable, reader, index, views)

    def _read_late(
        self,
        variable: SSAValue,
        reader: Operation,
        index: int,
        views: Sequence[ViewOp],
    ) -> None:
        block = reader.parent
        assert block is not None
        rows = views[0]
        assert isinstance(rows, SliceOp)
        start, limit = (
            places.get_values()[0]
            for places in (rows.start_indices, rows.limit_indices)
        )
        self.rows.append((reader, start, limit))
        read = ReadOp(variable)
        block.insert_op_before(read, reader)
        value = read.result
        for view in views:
            copy = view.clone({view.inputs[0]: value})
            copy.location = view.location
            block.insert_op_before(copy, reader)
            value = copy.result
        reader.operands[index] = value

    def of(self, part: Part) -> list[Operation | Block]:
        """The operations that read any of the part's rows."""
        return [
            op
            for op, start, limit in self.rows
            if start < part.end and part.start < limit
        ]


def _write(update: Update, split: Sequence[Part], readers: _Readers) -> None:
    """Updates each part on its own, instead of all of them at once."""
    block = update.ops[0].parent
    assert block is not None
    whole = tensor_type_of(update.source.type)
    type = with_shape(with_element(whole, i32), ())

    def number(value: int) -> SSAValue:
        constant = ConstantOp(IntegerAttr(value, i32), type)
        assert block.first_op is not None
        block.insert_op_before(constant, block.first_op)
        return constant.result

    rows = Rows(block, {value: value for value in update.outside})
    variables = [assign.variable for assign in update.assigns]
    zeros = [number(0)] * (len(shape_of(whole)) - 1)
    for part in split:
        starts = [number(part.start), *zeros]
        rows.add(update, part.value, starts, variables, readers.of(part))
    for assign in update.assigns:
        assign.detach()
        assign.erase()
