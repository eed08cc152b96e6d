"""NNVM's `PlanMemory`: in-place operations, and reuse of storages.

As in dmlc/nnvm and apache/tvm 0.6 (`nnvm/src/pass/plan_memory.cc`), described in
"Training Deep Nets with Sublinear Memory Cost" (Chen et al., 2016). It differs where
the original is wrong:

* An operation never overwrites a tensor of another device.
* An operation never overwrites a tensor that it does not read: others may still read
  it.
* Auto search with match range 0 plans without reuse; the original gives no plan.
* Sizes are those of the element types; the original's 4 bytes are an option.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ... import deadline
from .allocator import Allocator
from .coloring import color_nodes
from .graph import Entry, Graph, InPlace, Tensor

NOT_ALLOCATED = -1
EXTERNAL = -2  # memory that the planner does not provide
DYNAMIC = -3  # allocated at run time

NEVER_READ = -2  # in `StoragePlan.in_place`


@dataclass(frozen=True, slots=True)
class Options:
    """How storages are matched. Raises `ValueError` for values out of range."""

    match_range: int = 16  # the factor up to which sizes match; 0: no reuse
    auto_search: bool = False  # try ranges 1, 2, 4, ... up to `match_range`
    num_colors: int = 1  # above 1: reuse only within long paths (see coloring.py)
    element_bytes: int | None = None  # of all types; NNVM assumes 4

    def __post_init__(self) -> None:
        if self.match_range < 0:
            raise ValueError(f"match range is {self.match_range}, expected 0 or more")
        if self.num_colors < 1:
            raise ValueError(f"num colors is {self.num_colors}, expected 1 or more")

    @staticmethod
    def from_environment(environment: Mapping[str, str] = os.environ) -> "Options":
        """The options from NNVM's environment variables.

        NNVM_EXEC_MATCH_RANGE, NNVM_AUTO_SEARCH_MATCH_RANGE, NNVM_EXEC_NUM_TEMP. Raises
        `ValueError` for a value that is no number, or neither true nor false.
        """

        def number(name: str, default: int) -> int:
            value = environment.get(name, str(default))
            if not value.lstrip("-").isdecimal():
                raise ValueError(f"{name} is {value!r}, expected a number")
            return int(value)

        searches = environment.get("NNVM_AUTO_SEARCH_MATCH_RANGE", "0").lower()
        if searches not in ("0", "1", "false", "true"):
            raise ValueError(
                f"NNVM_AUTO_SEARCH_MATCH_RANGE is {searches!r}, expected 0 or 1"
            )
        return Options(
            match_range=number("NNVM_EXEC_MATCH_RANGE", 16),
            auto_search=searches in ("1", "true"),
            num_colors=number("NNVM_EXEC_NUM_TEMP", 1),
        )

    @property
    def match_ranges(self) -> list[int]:
        """The match ranges to try, in order."""
        if not self.auto_search or not self.match_range:
            return [self.match_range]
        return [1 << i for i in range(self.match_range.bit_length())]


@dataclass(frozen=True, slots=True)
class StoragePlan:
    """The storage of each output of each node."""

    storage_ids: Sequence[Sequence[int]]  # of node and output; negative: see above
    in_place: Sequence[Sequence[int]]  # the overwritten input; -1: none; NEVER_READ
    allocated_bytes: int  # of all storages
    num_not_allocated: int  # outputs whose shape is not known
    match_range: int


def plan_memory(
    graph: Graph,
    options: Options = Options(),
    *,
    node_range: tuple[int, int] | None = None,
    given: Mapping[Entry, int] | None = None,
    reads: Sequence[Sequence[int]] | None = None,
) -> StoragePlan:
    """Returns the plan with the fewest bytes of those for the options' match ranges.

    `node_range`, half-open, restricts planning to some nodes. `given` says which
    entries are EXTERNAL or DYNAMIC: they are neither allocated nor released. `reads`
    replaces the number of reads of each output (see `count_reads`). Variables get no
    storage.

    Raises `ValueError` if another storage is given.
    """
    given = given or {}
    for entry, storage in given.items():
        if storage not in (EXTERNAL, DYNAMIC):
            raise ValueError(
                f"{graph.nodes[entry.node].name} is given storage {storage}, expected "
                f"{EXTERNAL} (external) or {DYNAMIC} (dynamic)"
            )
    colors = color_nodes(graph, options.num_colors) if options.num_colors > 1 else None
    reads = reads or count_reads(graph)
    nodes = range(*node_range) if node_range else range(len(graph.nodes))
    plans: list[StoragePlan] = []
    for match_range in options.match_ranges:
        if plans and deadline.passed():
            break
        allocator = Allocator(match_range, colors)
        planner = _Planner(graph, options, allocator, reads, given)
        plans.append(planner.plan(nodes, match_range))
    return min(plans, key=lambda plan: plan.allocated_bytes)


def count_reads(graph: Graph) -> list[list[int]]:
    """The number of reads of each output of each node, not counting its shape."""
    reads = [[0] * len(node.outputs) for node in graph.nodes]
    for node in graph.nodes:
        for i, entry in enumerate(node.inputs):
            if i not in node.ignored:
                reads[entry.node][entry.output] += 1
    for entry in graph.results:
        reads[entry.node][entry.output] += 1
    return reads


class _Planner:
    def __init__(
        self,
        graph: Graph,
        options: Options,
        allocator: Allocator,
        reads: Sequence[Sequence[int]],
        given: Mapping[Entry, int],
    ) -> None:
        self.graph = graph
        self.element_bytes = options.element_bytes
        self.allocator = allocator
        self.reads = reads
        self.ids = [[NOT_ALLOCATED] * len(node.outputs) for node in graph.nodes]
        self.in_place = [[-1] * len(node.outputs) for node in graph.nodes]
        self.left: dict[int, int] = {}  # remaining reads of a storage
        for entry, storage in given.items():
            self.ids[entry.node][entry.output] = storage

    def plan(self, nodes: range, match_range: int) -> StoragePlan:
        num_not_allocated = 0
        for n in nodes:
            if self.graph.nodes[n].is_variable:
                continue
            self.overwrite_inputs(n)
            self.allocate_outputs(n)
            self.release_inputs(n)
            self.release_unread_outputs(n)
            num_not_allocated += self.ids[n].count(NOT_ALLOCATED)
        return StoragePlan(
            self.ids,
            self.in_place,
            self.allocator.allocated_bytes,
            num_not_allocated,
            match_range,
        )

    def overwrite_inputs(self, n: int) -> None:
        taken: set[int] = set()
        for pair in self.graph.nodes[n].in_place:
            if pair.input in taken or not self.may_overwrite(n, pair):
                continue
            taken.add(pair.input)
            entry = self.graph.nodes[n].inputs[pair.input]
            storage = self.ids[entry.node][entry.output]
            self.ids[n][pair.output] = storage
            self.left[storage] += self.reads[n][pair.output]
            self.in_place[n][pair.output] = pair.input

    def may_overwrite(self, n: int, pair: InPlace) -> bool:
        node = self.graph.nodes[n]
        entry = node.inputs[pair.input]
        producer = self.graph.nodes[entry.node]
        source, target = producer.outputs[entry.output], node.outputs[pair.output]
        storage = self.ids[entry.node][entry.output]
        return (
            self.ids[n][pair.output] == NOT_ALLOCATED
            and storage >= 0
            and self.reads[n][pair.output] > 0
            and target.shape is not None
            and source.elements == target.elements
            and source.element_bytes == target.element_bytes
            and pair.input not in node.ignored
            and producer.device == node.device
            and (self.left[storage] == 1 or is_identity(pair, source, target))
        )

    def allocate_outputs(self, n: int) -> None:
        """Allocates the outputs of a node, the largest first, and of equal ones the
        last."""
        node = self.graph.nodes[n]
        wanted = [
            (tensor.elements, output)
            for output, tensor in enumerate(node.outputs)
            if self.ids[n][output] == NOT_ALLOCATED and tensor.shape is not None
        ]
        for elements, output in sorted(wanted, reverse=True):
            width = self.element_bytes or node.outputs[output].element_bytes
            storage = self.allocator.request(elements * width, node.device, n)
            self.ids[n][output] = storage
            self.left[storage] = self.reads[n][output]

    def release_inputs(self, n: int) -> None:
        node = self.graph.nodes[n]
        for i, entry in enumerate(node.inputs):
            storage = self.ids[entry.node][entry.output]
            if i in node.ignored or storage < 0:
                continue
            self.left[storage] -= 1
            if not self.left[storage]:
                self.allocator.release(storage, n)

    def release_unread_outputs(self, n: int) -> None:
        for output, storage in enumerate(self.ids[n]):
            if storage >= 0 and not self.left[storage]:
                self.allocator.release(storage, n)
                self.in_place[n][output] = NEVER_READ


def is_identity(pair: InPlace, source: Tensor, target: Tensor) -> bool:
    """Whether the contents stay the same, though the shape may differ."""
    return (
        pair.identity
        and source.elements == target.elements
        and source.dtype == target.dtype
    )
