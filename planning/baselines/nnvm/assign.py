"""Places the outputs of assignments, and the assigned values, in the variables."""

from itertools import count

from .check import find_conflict
from .graph import Assign, Graph
from .plan_memory import NOT_ALLOCATED, StoragePlan


def decorate_memory_plan(graph: Graph, plan: StoragePlan) -> list[list[int]]:
    """The storage of each output of each node, variables and assignments included.

    NNVM's `DecorateMemoryPlan` (apache/tvm 0.6): every variable gets a storage of its
    own, after those of the plan. The output of an assignment lies in the storage of its
    variable. If the assignment is simplified, the assigned value lies there, too.
    Unused storages leave holes in the numbers.

    Raises `ValueError` if an output is not allocated, or if a node reads a variable
    after an assignment but expects the contents before it. The original allows this:
    such a reader must be ordered before the assignment, or read a copy.
    """
    for node, ids in zip(graph.nodes, plan.storage_ids, strict=True):
        if not node.is_variable and NOT_ALLOCATED in ids:
            raise ValueError(f"{node.name} is not allocated: its shape is not known")
    ids = [list(outputs) for outputs in plan.storage_ids]
    fresh = count(
        max((i for outputs in ids for i in outputs if i >= 0), default=-1) + 1
    )
    for n, node in enumerate(graph.nodes):
        if node.is_variable:
            ids[n] = [next(fresh)]
    for n, node in enumerate(graph.nodes):
        if not node.assign:
            continue
        variable, assigned = node.inputs
        ids[n][0] = ids[variable.node][variable.output]
        if node.assign is Assign.SIMPLIFIED:
            ids[assigned.node][assigned.output] = ids[n][0]
    if conflict := find_conflict(graph, ids):
        raise ValueError(conflict)
    return ids
