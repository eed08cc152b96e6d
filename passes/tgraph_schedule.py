"""`tgraph-schedule`: operations are reordered, so that less is live at once.

    %0 = tgraph.dot_general %a, %b ...  : -> tensor<512x512xf32>
    %1 = tgraph.dot_general %c, %d ...  : -> tensor<512x512xf32>
    %2 = tgraph.reduce %0 ...           : -> tensor<512xf32>
    %3 = tgraph.reduce %1 ...           : -> tensor<512xf32>

    %0 = tgraph.dot_general %a, %b ...  : -> tensor<512x512xf32>
    %2 = tgraph.reduce %0 ...           : -> tensor<512xf32>
    %1 = tgraph.dot_general %c, %d ...  : -> tensor<512x512xf32>
    %3 = tgraph.reduce %1 ...           : -> tensor<512xf32>

What is live is counted as tgraph-bufferize will store it: views cost nothing, results
and variables lie in the caller's memory, an operand may be overwritten where its
operation allows it. The order stays as it is unless the new one has a lower peak.

Needs: level 1; best after tgraph-fuse and tgraph-eliminate-assigns, which decide what
is stored. Leaves: level 1, the same operations; reads and writes of a variable in the
same order. Does not: change what is computed, or look at the time that it takes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tensorplan.dialects.tgraph.base import (
    TensorOp,
    element_bytes,
    tensor_type_of,
)
from tensorplan.dialects.tgraph.shaping import ConstantOp, ReshapeOp, ViewOp
from tensorplan.passes.dependencies import dependencies
from tensorplan.passes.functions import tensor_functions
from tensorplan.passes.tgraph_bufferize import SMALL_CONSTANT
from tensorplan.passes.versions import source_of
from tensorplan.planning.scheduling import Graph, Task, peak_of, schedule


@dataclass(frozen=True)
class TGraphSchedule(ModulePass):
    """Reorders operations to lower the peak of live bytes.

    effort: how much is searched; 0 for list scheduling only, 1 for about a second.
    """

    name = "tgraph-schedule"

    effort: float = 0.2

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, block in tensor_functions(op):
            tasks = [op for op in block.ops if not _is_free(op) and op.next_op]
            graph = _graph(block, tasks)
            found = schedule(graph, self.effort)
            if found.peak < peak_of(graph, range(len(tasks))):
                _reorder(block, [tasks[index] for index in found.order])


def _is_free(op: Operation) -> bool:
    """Whether it is only another way to see memory that is there anyhow."""
    if isinstance(op, ConstantOp):
        return not op.outs and (op.splat is None or _bytes(op.result) <= SMALL_CONSTANT)
    return isinstance(op, ViewOp) and not op.outs


def _bytes(value: SSAValue) -> int:
    type = tensor_type_of(value.type)
    shape = type.get_shape()
    return (
        0 if DYNAMIC_INDEX in shape else prod(shape) * element_bytes(type.element_type)
    )


def _graph(block: Block, tasks: Sequence[Operation]) -> Graph:
    number = {op: index for index, op in enumerate(tasks)}
    in_callers_memory = set(_results(block))
    sizes: list[int] = []
    values: dict[SSAValue, int] = {}
    for op in tasks:
        for result in op.results:
            is_stored = isinstance(op, TensorOp) and not op.outs
            values[result] = len(values)
            sizes.append(
                _bytes(result) if is_stored and result not in in_callers_memory else 0
            )
    ops = list(block.ops)
    waits = dict(zip(ops, dependencies(ops), strict=True))

    def task(op: Operation) -> Task:
        sources = [source_of(operand) for operand in op.operands]
        reads = dict.fromkeys(values[s] for s in sources if s in values)
        may_overwrite = op.overwritable() if isinstance(op, TensorOp) else ()
        return Task(
            list(reads),
            [values[result] for result in op.results],
            [number[other] for i in waits[op] if (other := ops[i]) in number],
            [
                values[sources[index]]
                for index in may_overwrite
                if sources[index] is op.operands[index] and sources[index] in values
            ],
        )

    last = block.last_op
    assert last is not None
    kept = [values[s] for v in last.operands if (s := source_of(v)) in values]
    return Graph([task(op) for op in tasks], sizes, kept)


def _results(block: Block) -> Iterator[SSAValue]:
    """The values that are computed straight into the memory of a result."""
    last = block.last_op
    if not isinstance(last, ReturnOp):
        return
    for value in last.operands:
        while isinstance(value.owner, ReshapeOp):
            value = value.owner.inputs[0]
        yield value


def _reorder(block: Block, tasks: Sequence[Operation]) -> None:
    """Puts the tasks into this order, and each free operation before its first user."""
    last = block.last_op
    assert last is not None
    placed: set[Operation] = set()

    def place(op: Operation) -> None:
        stack = [op]
        while stack:
            op = stack[-1]
            needed = [
                owner
                for operand in op.operands
                if isinstance(owner := operand.owner, Operation)
                and owner not in placed
                and owner.parent is block
            ]
            if needed:
                stack += needed
                continue
            stack.pop()
            if op not in placed:
                placed.add(op)
                op.detach()
                block.insert_op_before(op, last)

    for op in (*tasks, *(op for op in list(block.ops) if op is not last)):
        place(op)
