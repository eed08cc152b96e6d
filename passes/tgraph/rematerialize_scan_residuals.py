"""`tgraph-rematerialize-scan-residuals`: what one loop stacks for another is computed
there.

    %0:3 = tgraph.while ...             // iteration i puts y into row i of %0#1,
                                        // and 1 - y into row i of %0#2
    %1 = tgraph.while ..., %0#1, %0#2 ...    // reads a row of both

    %0:2 = tgraph.while ...
    %1 = tgraph.while ..., %0#1 ...     // computes 1 - y from the row of %0#1

The loop of a forward pass stacks what the loop of the backward pass needs: in a
recurrent network a lot of that follows from the rest by an operation or two, such as
the derivatives of its gates. What follows element by element is not stacked, but
computed anew in each iteration of the other loop, so values stay bit for bit.

The first loop has to write all rows: it counts from 0, by 1, to the number of rows.

Needs: level 1, after `cse` and before tgraph-fuse. Leaves: level 1. Does not: look at
what is read by anything but slices in a later loop, or repeat more than a few
operations for a value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ...analysis.functions import tensor_blocks
from ...analysis.scans import Linear, stacks, without_stacks, without_unused
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import TensorOp, shape_of, tensor_type_of, with_shape
from ...dialects.tgraph.elementwise import ElementwiseOp
from ...dialects.tgraph.indexing import DynamicSliceOp
from ...dialects.tgraph.shaping import ConstantOp
from ...dialects.tgraph.structure import WhileOp
from ..optional import OptionalPass

MOST = 4
"""Operations that are repeated for a value, at most."""


@dataclass(frozen=True)
class TGraphRematerializeScanResiduals(OptionalPass):
    """Computes values in a loop rather than stacking them in an earlier one."""

    name = "tgraph-rematerialize-scan-residuals"
    LOWERS_PEAK = True
    TOPIC = "loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in list(tensor_blocks(op)):
            at = block.first_op
            while at is not None:  # loops after it are made anew
                at = (_rewritten(at) if isinstance(at, WhileOp) else at).next_op


class _Reader(NamedTuple):
    """A slice, in another loop, of what a loop has stacked."""

    loop: WhileOp
    slice: DynamicSliceOp


def _rewritten(loop: WhileOp) -> WhileOp:
    found = [stack for stack in stacks(loop) if stack.place == Linear(1, 0)]
    kept: dict[SSAValue, SSAValue] = {}  # the stacks of values
    dropped: list[int] = []
    for index, value, *_ in found:
        stack = loop.res[index]
        chain = _chain(value, kept)
        readers = _readers(stack) if chain is not None else None
        if chain is None or not readers:
            kept.setdefault(value, stack)
            continue
        read = {kept[v] for op in chain for v in op.operands if v in kept}
        read |= {kept[value]} if value in kept else set()
        if all(_gives(reader.loop, read, stack) for reader in readers):
            for reader in readers:
                _recompute(reader, value, chain, kept)
            dropped.append(index)
        else:
            kept.setdefault(value, stack)
    if not dropped:
        return loop
    remark(
        f"{len(dropped)} of {len(found)} values that the loop stacks are computed from "
        "the others where they are read",
        loop,
        passed=True,
    )
    users = [use.operation for index in dropped for use in loop.res[index].uses]
    for user in dict.fromkeys(users):
        assert isinstance(user, WhileOp)
        without_unused(user)
    return without_stacks(loop, dropped)


def _chain(
    value: SSAValue, kept: Mapping[SSAValue, SSAValue]
) -> Sequence[TensorOp] | None:
    """The operations that compute a value from others that are stacked, in order."""
    found: dict[TensorOp, None] = {}

    def visit(value: SSAValue) -> bool:
        op = value.owner
        if value in kept or op in found:
            return True
        if not isinstance(op, ElementwiseOp):
            if not isinstance(op, ConstantOp) or op.splat is None:
                return False
        elif len(found) >= 2 * MOST or not all(map(visit, op.inputs)):
            return False
        found[op] = None
        return True

    computed = visit(value) and sum(isinstance(op, ElementwiseOp) for op in found)
    is_derived = value in kept or any(v in kept for op in found for v in op.operands)
    return list(found) if is_derived and computed <= MOST else None


def _readers(stack: SSAValue) -> Sequence[_Reader] | None:
    """All that reads a stack; None if that is not slices in loops alone."""
    found: list[_Reader] = []
    for use in stack.uses:
        loop = use.operation
        if not isinstance(loop, WhileOp) or use.index < len(loop.res):
            return None
        arguments = [region.block.args[use.index] for region in loop.regions]
        for read in (read for argument in arguments for read in argument.uses):
            op = read.operation
            if not isinstance(op, DynamicSliceOp) or read.index or op.outs:
                return None
            found.append(_Reader(loop, op))
    return found


def _gives(loop: WhileOp, read: set[SSAValue], stack: SSAValue) -> bool:
    """Whether a loop is given, to read only, the stacks from which one follows."""
    given = set(loop.inputs[len(loop.res) :])
    shape = shape_of(tensor_type_of(stack.type))
    return all(
        other in given and shape_of(tensor_type_of(other.type)) == shape
        for other in read
    )


def _recompute(
    reader: _Reader,
    value: SSAValue,
    chain: Sequence[TensorOp],
    kept: Mapping[SSAValue, SSAValue],
) -> None:
    """Computes what is read of a stack from slices of others."""
    slice, loop = reader.slice, reader.loop
    block = slice.parent
    assert block is not None
    shape = shape_of(tensor_type_of(slice.result.type))
    new: dict[SSAValue, SSAValue] = {}

    def emit(op: TensorOp, operands: Sequence[SSAValue], of: SSAValue) -> SSAValue:
        copy = type(op).create(
            operands=operands,
            result_types=[with_shape(tensor_type_of(of.type), shape)],
            properties=op.properties,
            attributes=dict(slice.attributes),
            location=op.location,
        )
        block.insert_op_before(copy, slice)
        return copy.results[0]

    def value_of(value: SSAValue) -> SSAValue:
        if value not in new:
            number = list(loop.inputs).index(kept[value], len(loop.res))
            whole = block.args[number]
            new[value] = _taken(whole, slice) or emit(
                slice, [whole, *slice.inputs[1:]], whole
            )
        return new[value]

    for op in chain:
        new[op.results[0]] = emit(op, list(map(value_of, op.inputs)), op.results[0])
    slice.result.replace_all_uses_with(value_of(value))
    slice.detach()
    slice.erase()


def _taken(whole: SSAValue, like: DynamicSliceOp) -> SSAValue | None:
    """The slice of a tensor at the same place, if it has been taken already."""
    for use in whole.uses:
        op = use.operation
        if (
            isinstance(op, DynamicSliceOp)
            and op.operands[1:] == like.operands[1:]
            and op.slice_sizes == like.slice_sizes
            and op.is_before_in_block(like)
        ):
            return op.result
    return None
