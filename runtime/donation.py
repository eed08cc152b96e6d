"""Decides which results may be written to the memory of which donated inputs."""

from collections.abc import Collection, Sequence

from xdsl.dialects.memref import CopyOp
from xdsl.ir import SSAValue

from ..dialects.tgraph.base import TensorOp
from ..dialects.tgraph.signature import Signature
from ..support.ranges import indices
from .program.compiled import CompiledProgram, OperationStep
from .program.steps import View


def donations(
    program: CompiledProgram, signature: Signature, donate: Collection[int]
) -> dict[int, int]:
    """Maps the index of each reusable donated input to that of the result that may take
    its memory. Both have the same size and are used in the same queue. The first write
    to the result's memory, by the result or an earlier buffer there, comes after the
    last read of the input."""
    steps = [step for step in program.steps if isinstance(step, OperationStep)]
    free: list[int] = []
    for index in sorted(donate):
        if not 0 <= index < len(signature.inputs):
            raise ValueError(
                f"donate contains {index}, expected {indices(len(signature.inputs))}"
            )
        if signature.inputs[index].is_variable:
            raise ValueError(
                f"donate contains {index}, a variable: it is updated in place"
            )
        free.append(index)
    taken: dict[int, int] = {}
    for number, result in enumerate(signature.results):
        if result.input is not None or isinstance(program.results[number], View):
            continue
        for index in free:
            value = signature.arguments[index]
            if _may_take(program, steps, value, signature.holders[number]):
                taken[index] = number
                free.remove(index)
                break
    return taken


def _may_take(
    program: CompiledProgram,
    steps: Sequence[OperationStep],
    value: SSAValue,
    result: SSAValue,
) -> bool:
    views = program.memory.views
    source, target = views[value].buffer, views[result].buffer
    if source.size != target.size or not source.size:
        return False
    reading = [step for step in steps if source.memory in step.arguments]
    writing = [step for step in steps if target.memory in step.arguments]
    if len({(step.device, step.stream) for step in (*reading, *writing)}) > 1:
        return False  # the order of steps in different queues is unknown here
    if not reading or not writing:
        return True
    position = {id(step): index for index, step in enumerate(steps)}
    last, first = reading[-1], writing[0]
    if last is not first:
        return position[id(last)] < position[id(first)]
    return _is_in_place(program, last, value, result)


def _is_in_place(
    program: CompiledProgram, step: OperationStep, value: SSAValue, result: SSAValue
) -> bool:
    """Whether `step` may write `result` over its input `value`."""
    views = program.memory.views
    source, target = views[value], views[result]
    if isinstance(step.op, TensorOp):
        allowed = [step.op.inputs[index] for index in step.op.overwritable()]
        used = [x for x in step.op.inputs if views[x].buffer is source.buffer]
        is_allowed = used == [value] and value in allowed
    else:
        is_allowed = isinstance(step.op, CopyOp)
    return (
        is_allowed
        and [view for view in step.writes if view.buffer is target.buffer] == [target]
        and (source.shape, source.strides) == (target.shape, target.strides)
    )
