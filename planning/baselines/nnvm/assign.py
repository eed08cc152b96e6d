"""Assignments to variables: their outputs, and what is assigned, in the variable."""

from itertools import count

from .check import find_conflict
from .graph import Assign, Graph
from .plan_memory import NOT_ALLOCATED, StoragePlan


def decorate_memory_plan(graph: Graph, plan: StoragePlan) -> list[list[int]]:
    """The storage of each output of each node, variables and assignments included.

    NNVM's `DecorateMemoryPlan` (apache/tvm 0.6): every variable gets a storage of its
    own, after those of the plan. The output of an assignment lies in the storage of its
    variable; where it is simplified, what it assigns does too. Storages that are no
    longer used leave holes.

    Raises `ValueError` if an output is not allocated, or if somebody reads a variable
    after it was assigned but means the contents before. The original lets that happen:
    such a reader has to be ordered before the assignment, or it has to be a copy.
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
