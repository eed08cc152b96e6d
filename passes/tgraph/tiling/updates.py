"""Finds values that a loop over tiles can update in place.

A value of which each tile reads only its own rows, and which nothing reads later, has
the size of a result of the loop. The loop then carries this value instead of memory for
the result, and each tile replaces the rows that it has read:

    %v = tgraph.read %velocities         : tensor<256x3xf32>
    loop: %a = ...                       : tensor<1x3xf32>, from all positions
          %n = tgraph.add %v, %a         : tensor<1x3xf32>, written over the row of %v
    tgraph.assign %velocities, %n

A value that tiles read whole has to stay until the loop has ended. An elementwise chain
that would update it, and otherwise reads only stored values, comes after the loop:

    %p = tgraph.add %positions, %n       : tensor<256x3xf32>, in place of %positions
"""

from collections.abc import Collection, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from ....dialects.tgraph.base import TensorOp
from ....dialects.tgraph.elementwise import ElementwiseOp
from ....dialects.tgraph.shaping import ConstantOp
from ....dialects.tgraph.structure import AssignOp, ReadOp
from .widening_chains import elementwise_sources
from .windows import users

Read = Mapping[SSAValue, Collection[int | None]]
"""The values from outside that a loop reads, and the dimensions along which it reads
tiles of them; None for a value that tiles read whole."""

_Operations = Sequence[Operation]


def is_in_result_memory(value: SSAValue) -> bool:
    """Whether a loop computes `value` directly in memory that the block is given: in
    that of a result, not of a variable, whose old contents tiles may read."""
    return any(not isinstance(user, TensorOp | AssignOp) for user in users(value))


def updates(
    outputs: Mapping[SSAValue, int], read: Read, after: _Operations
) -> Mapping[SSAValue, SSAValue]:
    """By output of a loop, the value from outside whose rows its tiles replace.

    outputs: the results that the loop assembles, each from tiles along a dimension.
    after: the operations outside of the loop that do not come before it.
    """
    found: dict[SSAValue, SSAValue] = {}
    for output, dim in outputs.items():
        if is_in_result_memory(output):
            continue
        for value, dims in read.items():
            is_own = {*dims} == {dim} and value not in found.values()
            if is_own and _may_replace(output, value, after):
                found[output] = value
                break
    return found


def late_update(
    outputs: Sequence[SSAValue],
    members: Collection[Operation],
    read: Read,
    after: _Operations,
) -> Sequence[Operation]:
    """An elementwise chain at the end of a loop that updates a value in place only
    after the loop, because tiles read the value whole; empty if there is none."""
    for output in outputs:
        if is_in_result_memory(output) or any(u in members for u in users(output)):
            continue
        last = output.owner
        if not isinstance(last, ElementwiseOp) or not any(
            None in read.get(value, ()) and _may_replace(output, value, after)
            for value in last.operands
        ):
            continue
        chain: list[Operation] = [last]
        for (op,) in elementwise_sources(last, members):
            if op.results[0] in outputs:
                return chain
            chain.append(op)
    return ()


def _may_replace(output: SSAValue, value: SSAValue, after: _Operations) -> bool:
    """Whether `output` may lie where `value` is, once the tiles have read it. The old
    contents of a variable are replaced only by those that are assigned to it."""
    owner = value.owner
    if value.type != output.type or any(user in after for user in users(value)):
        return False
    if isinstance(owner, ReadOp):
        return any(
            isinstance(user, AssignOp) and user.variable is owner.variable
            for user in users(output)
        )
    return isinstance(owner, TensorOp) and not isinstance(owner, ConstantOp)
