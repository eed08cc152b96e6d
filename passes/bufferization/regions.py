"""Loops and branches on memrefs: they pass nothing on but what lies in buffers.

    %r = tgraph.while %a, %w ...        scf.while : () -> () {
                                          tgraph.compare %a, %c outs(%flag)
                                          %0 = memref.load %flag[] : memref<i1>
                                          scf.condition(%0)
                                        } do {
                                          tgraph.add %a, %w outs(%a)
                                          scf.yield
                                        }

What a loop carries lies in one buffer each, made outside: that of what it starts from,
if nobody reads this any more; that of the result that it becomes; or a new one. The
next turn's values are written there as a variable's are.
"""

from collections.abc import Sequence
from typing import Protocol

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, Region, SSAValue

from tensorplan.dialects.tgraph.base import (
    AnyTensor,
    tensor_type_of,
    with_element,
    with_shape,
)
from tensorplan.dialects.tgraph.structure import IfOp, WhileOp
from tensorplan.passes.bufferization.buffers import Buffer


class Outside(Protocol):
    """The block that a loop or branch is in, as `blocks.py` rewrites it."""

    position: dict[Operation, int]
    variables: dict[SSAValue, Buffer]

    def overwrite(self, variable: Buffer) -> None: ...
    def carried(self, op: WhileOp, index: int) -> Buffer: ...
    def destination(self, result: SSAValue) -> Buffer: ...
    def allocate(self, type: AnyTensor, name_hint: str | None) -> Buffer: ...
    def memref_of(self, value: SSAValue) -> SSAValue: ...
    def emit(self, op: Operation) -> None: ...
    def put(self, value: SSAValue, buffer: Buffer) -> None: ...
    def enter(self, region: Region, inputs: Sequence[SSAValue]) -> "Inside": ...


class Inside(Protocol):
    """A block of a region."""

    variables: dict[SSAValue, Buffer]

    def run(self, results: Sequence[Buffer] = ()) -> Block: ...


def bufferize_while(outside: Outside, op: WhileOp) -> None:
    carried = [outside.carried(op, index) for index in range(len(op.res))]
    rest = op.inputs[len(carried) :]
    type = with_shape(tensor_type_of(op.inputs[0].type), ())
    flag = outside.allocate(with_element(type, i1), "continues")
    flag.last = outside.position[op]
    regions: list[Region] = []
    for region, results in ((op.condition, [flag]), (op.body, [])):
        inside = outside.enter(region, rest)
        for argument, buffer in zip(region.block.args, carried, strict=False):
            variable = buffer.seen_inside()
            variable.is_variable = True
            inside.variables[argument] = variable
        block = inside.run([buffer.seen_inside() for buffer in results])
        if results:
            load = memref.LoadOp.get(flag.base, ())
            block.add_ops([load, scf.ConditionOp(load.res)])
        else:
            block.add_op(scf.YieldOp())
        regions.append(Region(block))
    loop = scf.WhileOp((), (), *regions)
    loop.attributes |= op.attributes
    outside.emit(loop)
    for result, buffer in zip(op.res, carried, strict=True):
        outside.put(result, buffer)


def bufferize_if(outside: Outside, op: IfOp) -> None:
    if op.outs:
        buffers = [outside.variables[variable] for variable in op.outs]
        for buffer in buffers:
            outside.overwrite(buffer)
    else:
        buffers = [outside.destination(result) for result in op.res]
    predicate, *rest = op.inputs
    load = memref.LoadOp.get(outside.memref_of(predicate), ())
    outside.emit(load)
    on_true, on_false = (
        _branch(outside, region, rest, buffers) for region in op.regions
    )
    branch = scf.IfOp(load.res, (), on_true, on_false)
    branch.attributes |= op.attributes
    outside.emit(branch)
    for result, buffer in zip(op.res, buffers, strict=True):
        outside.put(result, buffer)


def _branch(
    outside: Outside,
    region: Region,
    inputs: Sequence[SSAValue],
    buffers: Sequence[Buffer],
) -> Region:
    """A region that computes into the buffers what it yielded."""
    results = [buffer.seen_inside() for buffer in buffers]
    block = outside.enter(region, inputs).run(results)
    block.add_op(scf.YieldOp())
    return Region(block)
