"""How long a program runs, estimated from types, where copies run beside operations."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from tensorplan.dialects.tgraph.base import device_of
from tensorplan.dialects.tgraph.costs import cost
from tensorplan.dialects.tgraph.shaping import DeviceCopyOp
from tensorplan.passes.functions import tensor_functions
from tensorplan.passes.memory.dependencies import queue_of, runs
from tensorplan.passes.memory_graph import is_free
from tensorplan.planning.offload import BESIDE


def duration(module: ModuleOp) -> int:
    """In bytes that are moved in that time (see costs.py); a loop counts as one turn.

    Each device runs its operations in order, and the copies to it beside them. Where a
    copy stands, its operand's bytes are needed no longer: what comes behind it there
    waits for it. Its result's are needed from there on: it does not start earlier.
    """
    return sum(_of_block(block) for _, block in tensor_functions(module))


def _of_block(block: Block) -> int:
    free: dict[str | None, int] = {}  # when each device is done with what came so far
    waits: dict[str | None, int] = {}  # for what each device waits besides
    copies: dict[str | None, int] = {}  # when those to each device are done
    ends: dict[Operation, int] = {}
    copied = 0
    for op in block.ops:
        owners = [v.owner for v in op.operands if isinstance(v.owner, Operation)]
        ready = max([ends.get(owner, 0) for owner in owners], default=0)
        if is_free(op) or not runs(op):
            ends[op] = ready
            continue
        device, _ = queue_of(op)
        time = cost(op)
        start = max(ready, free.get(device, 0))
        if isinstance(op, DeviceCopyOp):
            ends[op] = copies[device] = max(start, copies.get(device, 0)) + time
            source = device_of(op.operands[0].type)
            waits[source] = max(waits.get(source, 0), ends[op])
            copied += time
        else:
            ends[op] = free[device] = max(start, waits.get(device, 0)) + time
    return max(ends.values(), default=0) + copied // BESIDE
