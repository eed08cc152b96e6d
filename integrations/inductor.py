"""The scheduler as one of those that Inductor tries, inside `torch.compile`.

    from tensorplan.integrations import inductor

    with inductor.scheduled():          # around the first call, which compiles
        torch.compile(model)(x)

Inductor tries three orders of its kernels, and takes the one with the lowest peak by
its own estimate; within `scheduled` it tries `order`, too.

AOTAutograd asks an `activation_memory_budget_solver` as well, which saved products to
compute again. That is a knapsack of given sizes and times, which PyTorch's own solver
(`dp`) fills as well as it can be; our recomputation finds nothing better there.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any, TypeAlias
from unittest.mock import patch

from ..planning.scheduling import Task, TaskGraph, schedule

Node: TypeAlias = Any
"""`torch._inductor.scheduler.BaseSchedulerNode`."""


@contextmanager
def scheduled() -> Generator[None]:
    """Within it, Inductor also tries our order for what it compiles.

    What is in its cache from before keeps its order.
    """
    memory: Any = import_module("torch._inductor.memory")
    given = memory.reorder_for_peak_memory
    methods = [*signature(given).parameters["methods"].default, order]
    with patch.object(
        memory, "reorder_for_peak_memory", partial(given, methods=methods)
    ):
        yield


def order(nodes: Sequence[Node]) -> list[Node]:
    """The kernels of a graph in an order in which few bytes are live.

    They have Inductor's `mpi_node`: sizes of buffers, and who reads them.
    """
    graphs: Any = import_module("torch._inductor.virtualized")
    outputs = set(graphs.V.graph.get_output_names())
    number = {node: at for at, node in enumerate(nodes)}
    values: dict[Any, int] = {}

    def numbers(buffers: Sequence[Any]) -> list[int]:
        return [values.setdefault(buffer, len(values)) for buffer in buffers]

    tasks = [
        Task(
            numbers(node.mpi_node.pred_buffers),
            numbers(node.get_outputs()),
            [number[other] for other in node.mpi_node.pred_nodes],
        )
        for node in nodes
    ]
    plans = [buffer.mpi_buffer for buffer in values]
    sizes = [max(plan.size_alloc, plan.size_free) for plan in plans]
    kept = [n for buffer, n in values.items() if buffer.get_name() in outputs]
    return [nodes[at] for at in schedule(TaskGraph(tasks, sizes, kept)).order]
