"""NNVM's memory planner (dmlc/nnvm, apache/tvm 0.6, Apache MXNet): shared storages.

graph.py, dtypes.py   the graph that the planner reads
plan_memory.py        in-place operations, and which storage each output gets
allocator.py          which free storage a request gets
coloring.py           reuse only within long paths
assign.py             storages of variables and of assigned values
runtime_storage.py    the arrays that the graph runtime allocates for a plan
check.py              an independent check of a plan
strategy.py           the planner on plain buffers
"""

from .assign import decorate_memory_plan
from .check import find_conflict
from .coloring import color_nodes
from .graph import Assign, Entry, Graph, InPlace, Node, Tensor
from .plan_memory import (
    DYNAMIC,
    EXTERNAL,
    NEVER_READ,
    NOT_ALLOCATED,
    Options,
    StoragePlan,
    count_reads,
    plan_memory,
)
from .runtime_storage import (
    Array,
    Device,
    ExportedGraph,
    View,
    read_graph,
    setup_storage,
)
from .strategy import nnvm, nnvm_auto_search

__all__ = [
    "DYNAMIC",
    "EXTERNAL",
    "NEVER_READ",
    "NOT_ALLOCATED",
    "Array",
    "Assign",
    "Device",
    "Entry",
    "ExportedGraph",
    "Graph",
    "InPlace",
    "Node",
    "Options",
    "StoragePlan",
    "Tensor",
    "View",
    "color_nodes",
    "count_reads",
    "decorate_memory_plan",
    "find_conflict",
    "nnvm",
    "nnvm_auto_search",
    "plan_memory",
    "read_graph",
    "setup_storage",
]
