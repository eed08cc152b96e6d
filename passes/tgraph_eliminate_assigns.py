"""`tgraph-eliminate-assigns`: assigned values are computed straight into the variable.

    %w = tgraph.read %v : tensor<4xf32>
    %n = tgraph.subtract %w, %g : tensor<4xf32>
    tgraph.assign %v, %n : tensor<4xf32>

    %w = tgraph.read %v : tensor<4xf32>
    %n = tgraph.subtract %w, %g outs(%v) : tensor<4xf32>

That is done exactly when nobody can tell: from the producer's first write on, nothing
may see the old contents, through whatever view. The producer itself may, where it reads
them element by element (`TensorOp.overwritable`). An assign of a variable's own
contents is dropped. Otherwise the assign stays, a copy, and a remark says why.

Needs: level 1. Leaves: level 1; destinations (`outs`) are variables.
Does not: reorder operations to make an assign avoidable.

NNVM's `_assign` marking (GraphCompile) looks at reference counts and patterns instead,
so it can overwrite a value that is still to be read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tensorplan.dialects.diagnostics import remark
from tensorplan.dialects.tgraph.base import TensorOp, segments
from tensorplan.dialects.tgraph.shaping import ConstantOp, ViewOp
from tensorplan.dialects.tgraph.structure import AssignOp, ReadOp
from tensorplan.passes.functions import tensor_functions


@dataclass(frozen=True)
class TGraphEliminateAssigns(ModulePass):
    """Computes assigned values straight into their variables where that is safe."""

    name = "tgraph-eliminate-assigns"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, block in tensor_functions(op):
            _eliminate(block)


def _eliminate(block: Block) -> None:
    position = {op: index for index, op in enumerate(block.ops)}
    for op in list(block.ops):
        if not isinstance(op, AssignOp):
            continue
        if _is_own_contents(op, position):
            op.detach()
            op.erase()
        elif reason := _obstacle(op, position):
            remark(f"assign stays a copy: {reason}", op)
        else:
            producer = op.value.owner
            assert isinstance(producer, TensorOp)
            inputs = producer.inputs
            producer.operands = [*inputs, op.variable]
            producer.properties["operandSegmentSizes"] = segments(
                inputs, (op.variable,)
            )
            op.detach()
            op.erase()


def accesses(
    variable: SSAValue, position: Mapping[Operation, int]
) -> Iterator[tuple[int, Operation, bool]]:
    """Where a variable is read or written: (position, operation, whether it writes)."""
    for use in variable.uses:
        if use.operation in position:
            yield (
                position[use.operation],
                use.operation,
                not isinstance(use.operation, ReadOp),
            )


def uses_of_contents(
    value: SSAValue, position: Mapping[Operation, int]
) -> Iterator[tuple[int, Operation, int | None]]:
    """Where the memory of `value` is read, through views too.

    Yields (position, operation, operand index); the index is None through a view.
    """
    stack = [(value, True)]
    while stack:
        viewed, direct = stack.pop()
        for use in viewed.uses:
            if isinstance(use.operation, ViewOp) and not use.operation.outs:
                stack.append((use.operation.result, False))
            else:
                index = use.index if direct else None
                yield position[use.operation], use.operation, index


def _is_own_contents(op: AssignOp, position: Mapping[Operation, int]) -> bool:
    """Whether the variable holds the assigned value already."""
    read = op.value.owner
    if not isinstance(read, ReadOp) or read.variable is not op.variable:
        return False
    return not any(
        writes and position[read] < at < position[op]
        for at, _, writes in accesses(op.variable, position)
    )


def _obstacle(op: AssignOp, position: Mapping[Operation, int]) -> str | None:
    """Why the value cannot be computed straight into the variable; None if it can."""
    producer = op.value.owner
    if not isinstance(producer, TensorOp) or producer not in position:
        return "the value is not computed here"
    if isinstance(producer, ViewOp | ConstantOp):
        return f"the value comes from {producer.name}, which computes nothing"
    if len(producer.res) > 1:
        return f"{producer.name} has {len(producer.res)} results"
    if producer.outs:
        return "the value is computed into another variable"
    computed, assigned = position[producer], position[op]
    for at, access, _ in accesses(op.variable, position):
        if computed < at < assigned:
            return (
                f"{access.name} of the variable comes between computing and assigning"
            )
    for contents in _contents_before(op.variable, computed, position):
        for at, user, operand in uses_of_contents(contents, position):
            if at > computed:
                return f"{user.name} reads the old contents later"
            if at == computed and operand not in producer.overwritable():
                return f"{user.name} needs the old contents while it writes the new"
    return None


def _contents_before(
    variable: SSAValue, computed: int, position: Mapping[Operation, int]
) -> Iterator[SSAValue]:
    """The tensors that may lie in the variable's memory before position `computed`."""
    for at, access, _ in accesses(variable, position):
        if at < computed:
            yield from access.results
