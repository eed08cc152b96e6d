"""TVM Relay's memory planner: tensors share storages by counting their reads.

`GraphPlanMemory` of apache/tvm 0.7 (`src/relay/backend/graph_plan_memory.cc`), on the
graph of nnvm/graph.py: tuples, their fields, `let` and views are not nodes, but names
for entries, and a tuple as a result or an argument stands for its fields. An entry is
read once for each time that it is an input or a result, so results are never released.

The planner searches for a free storage as NNVM's does, but differs otherwise: nothing
is computed in place, outputs get storages from first to last, variables (parameters and
constants) have storages of their own, and the match range is 16.

One part is omitted on purpose: the original finds the device of a tensor by a search
from copy to copy, which is wrong for parameters and for several results. Here, nodes
state their devices.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..problem import Limits, Placement, Problem
from ..registry import strategy
from .nnvm.allocator import Allocator
from .nnvm.graph import Entry, Graph, Tensor
from .storages import lay_out

MATCH_RANGE = 16


@dataclass(frozen=True, slots=True)
class TokenPlan:
    """The storage of each output of each node, and the sizes of storages."""

    storage_ids: Sequence[Sequence[int]]  # of node and output
    sizes: Sequence[int]  # bytes, of each storage


def graph_plan_memory(graph: Graph) -> TokenPlan:
    """Relay's plan for the nodes in their order; parameters come first.

    Sizes are exact: the number of elements times the bytes of one. A bool takes a byte.

    Raises `ValueError` for a tensor whose shape is not known.
    """
    allocator = Allocator(MATCH_RANGE)
    shared: dict[int, int] = {}  # numbers in the plan, by the allocator's storage
    storages: dict[Entry, int] = {}  # of the allocator
    reads = Counter(graph.results)
    for node in graph.nodes:
        reads.update(node.inputs)
    ids: list[list[int]] = []
    sizes: list[int] = []
    for n, node in enumerate(graph.nodes):
        ids.append([])
        for output, tensor in enumerate(node.outputs):
            size = _size(node.name, tensor)
            entry, storage = Entry(n, output), len(sizes)
            if not node.is_variable:
                storages[entry] = allocator.request(size, node.device, n)
                storage = shared.setdefault(storages[entry], storage)
            if storage == len(sizes):
                sizes.append(0)
            sizes[storage] = max(sizes[storage], size)
            ids[n].append(storage)
        unread = (Entry(n, output) for output in range(len(node.outputs)))
        for entry in (e for e in unread if e in storages and not reads[e]):
            allocator.release(storages[entry], n)
        for entry in node.inputs:
            reads[entry] -= 1
            if entry in storages and not reads[entry]:
                allocator.release(storages[entry], n)
    return TokenPlan(ids, sizes)


def _size(name: str, tensor: Tensor) -> int:
    if tensor.shape is None or min(tensor.shape, default=0) < 0:
        raise ValueError(f"{name} has shape {tensor.shape}, expected a known one")
    return tensor.elements * tensor.element_bytes


@strategy("relay")
def relay(problem: Problem, limits: Limits) -> Placement:
    """TVM Relay's storage sharing with match range 16 (`graph_plan_memory`).

    In each step, the strategy first serves the buffers that start there, in order, then
    releases the buffers that end there, starting with those without a reader. Storages
    follow one another. Gaps in lifetimes are not used.
    """
    buffers = problem.buffers
    allocator = Allocator(MATCH_RANGE)
    storage_of = [-1] * len(buffers)
    planned = [(i, b) for i, b in enumerate(buffers) if b.offset is None]
    requests = [(b.start, 0, 0, i) for i, b in planned]
    releases = [(b.end - 1, 1, int(b.start < b.end - 1), i) for i, b in planned]
    for step, is_release, _, i in sorted(requests + releases):
        if is_release:
            allocator.release(storage_of[i], step)
        else:
            storage_of[i] = allocator.request(buffers[i].size, 0, step)
    return lay_out(problem, storage_of)
