"""Adds tensorplan's schedule to those that Inductor tries in `torch.compile`.

    from tensorplan.integrations import inductor

    with inductor.scheduled():          # around the first call, which compiles
        torch.compile(model)(x)

Inductor tries three schedules of its kernels, and selects the one with the lowest peak
memory by its own estimate. Inside `scheduled`, it also tries `order`.

AOTAutograd has another hook, `activation_memory_budget_solver`, which selects the saved
tensors to rematerialize. This module does not use the hook: the selection is a knapsack
problem with given sizes and times, which PyTorch's own solver (`dp`) solves optimally.
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
    """A context in which Inductor also tries `order` for the graphs that it compiles.

    Graphs in Inductor's cache keep their schedule.
    """
    memory: Any = import_module("torch._inductor.memory")
    given = memory.reorder_for_peak_memory
    methods = [*signature(given).parameters["methods"].default, order]
    with patch.object(
        memory, "reorder_for_peak_memory", partial(given, methods=methods)
    ):
        yield


def order(nodes: Sequence[Node]) -> list[Node]:
    """Schedules the kernels of a graph for low peak memory.

    Reads the predecessors of the kernels and the sizes of the buffers from Inductor's
    attributes `mpi_node` and `mpi_buffer`.
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
