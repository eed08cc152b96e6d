"""Which results may be written to the memory of which donated inputs."""

from collections.abc import Collection, Sequence

from xdsl.dialects.memref import CopyOp
from xdsl.ir import SSAValue

from ..dialects.tgraph.base import TensorOp
from ..dialects.tgraph.signature import Signature
from .program.program import Program
from .program.steps import Step


def donations(
    program: Program, signature: Signature, donate: Collection[int]
) -> dict[SSAValue, int]:
    """For each result the input whose memory it may take: of the same size, and read
    for the last time before the result's memory is first used, for itself or for a
    buffer that lies there until then, in the same queue."""
    steps = [step for step in program.steps if step.op is not None]
    free: list[int] = []
    for index in sorted(donate):
        if not 0 <= index < len(signature.inputs):
            raise ValueError(
                f"donate has {index}, expected 0 to {len(signature.inputs) - 1}"
            )
        if signature.inputs[index].is_variable:
            raise ValueError(f"donate has {index}, a variable: it is updated in place")
        free.append(index)
    taken: dict[SSAValue, int] = {}
    for result in signature.results:
        if result.input is not None or result.value not in program.memory.arguments:
            continue
        for index in free:
            value = signature.inputs[index].value
            if _may_take(program, steps, value, result.value):
                taken[result.value] = index
                free.remove(index)
                break
    return taken


def _may_take(
    program: Program, steps: Sequence[Step], value: SSAValue, result: SSAValue
) -> bool:
    views = program.memory.views
    source, target = views[value].buffer, views[result].buffer
    if source.size != target.size or not source.size:
        return False
    reading = [step for step in steps if value in step.arguments]
    writing = [step for step in steps if result in step.arguments]
    if len({(step.device, step.stream) for step in (*reading, *writing)}) > 1:
        return False  # nothing says here which is first
    if not reading or not writing:
        return True
    position = {id(step): index for index, step in enumerate(steps)}
    last, first = reading[-1], writing[0]
    if last is not first:
        return position[id(last)] < position[id(first)]
    return _is_in_place(program, last, value, result)


def _is_in_place(
    program: Program, step: Step, value: SSAValue, result: SSAValue
) -> bool:
    """Whether a step may write its result over its input."""
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
