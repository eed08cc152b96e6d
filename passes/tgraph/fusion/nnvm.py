"""NNVM's grouping algorithm (`GraphFindFusibleGroups`, graph_fuse.cc of TVM 0.6).

A forward scan decides for each node whether it is fused with its reader or stored, and
which node is the master, whose schedule the group takes. A backward scan finds the root
of each node's group. Then a node with several readers joins their group, if all readers
with one input are in the same group.

The groups are not always sound, because readers with several inputs are ignored: they
may be outside the group. Callers must check whether a value is read outside its group.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ....dialects.tgraph.base import Pattern
from .graph import FusionGraph


@dataclass(frozen=True)
class FusedGroups:
    """For each node, the root, the master (or None) and the pattern of its group."""

    roots: Sequence[int]
    masters: Sequence[int | None]
    patterns: Sequence[int]


def fuse(graph: FusionGraph, results: Sequence[int], opt_level: int = 1) -> FusedGroups:
    """Groups the nodes of `graph`. The nodes in `results` are stored. At `opt_level` 0,
    each node is its own group."""
    scan = _Scan(graph, results, opt_level)
    for node in range(len(graph)):
        scan.choose(node)
    for node in range(len(graph) - 1, -1, -1):
        scan.group(node)
    if opt_level >= 1:
        scan.join_readers()
    return FusedGroups(scan.roots, scan.masters, scan.patterns)


class _Scan:
    def __init__(self, graph: FusionGraph, results: Sequence[int], opt_level: int):
        self.graph = graph
        self.counts = [0] * len(graph)  # a result counts twice: it is always stored
        for node in graph:
            for producer, _ in node.inputs:
                self.counts[producer] += 1
        for result in results:
            self.counts[result] += 2
        self.is_fused: list[bool | None] = [None] * len(graph)  # None: not yet known
        self.masters: list[int | None] = [None] * len(graph)
        self.patterns = [int(Pattern.OPAQUE)] * len(graph)
        self.roots = [-1] * len(graph)
        self.members: list[list[int]] = [[] for _ in graph]
        self.opt_level = opt_level

    # Forward

    def choose(self, index: int) -> None:
        node = self.graph[index]
        if node.is_variable:
            self.is_fused[index] = False
            return
        if node.pattern <= Pattern.BROADCAST:
            self._choose_elementwise(index)
        elif node.pattern in (Pattern.INJECTIVE, Pattern.REDUCTION):
            self._choose_moving(index)
        else:
            self._choose_complex(index)
        if self.counts[index] > 1 or self.opt_level < 1:
            self.is_fused[index] = False
            if self.masters[index] is None:
                self.masters[index] = index

    def _choose_elementwise(self, index: int) -> None:
        node = self.graph[index]
        is_elementwise = len(node.shapes) == 1
        is_injective = False
        for producer, output in node.inputs:
            same_shape = self.graph[producer].shapes[output] == node.shapes[0]
            pattern = self.patterns[producer]
            if self.is_fused[producer] is None:
                is_elementwise &= pattern == Pattern.ELEMENTWISE
                is_injective |= pattern == Pattern.INJECTIVE
                self.is_fused[producer] = pattern <= Pattern.INJECTIVE
                if (
                    pattern == Pattern.OUT_ELEMENTWISE_FUSABLE
                    and self.masters[index] is None
                    and same_shape
                ):
                    self.masters[index] = self.masters[producer]
                    self.is_fused[producer] = True
            is_elementwise &= same_shape
        if self.masters[index] is not None:
            pattern = Pattern.OUT_ELEMENTWISE_FUSABLE
        elif is_injective:
            pattern = Pattern.INJECTIVE
        else:
            pattern = Pattern.ELEMENTWISE if is_elementwise else Pattern.BROADCAST
        self.patterns[index] = int(pattern)

    def _choose_moving(self, index: int) -> None:
        node = self.graph[index]
        for producer, _ in node.inputs:
            if self.is_fused[producer] is None:
                self.is_fused[producer] = self.patterns[producer] <= Pattern.INJECTIVE
        if node.pattern == Pattern.REDUCTION:
            self.masters[index] = index
        self.patterns[index] = node.pattern

    def _choose_complex(self, index: int) -> None:
        node = self.graph[index]
        for producer, _ in node.inputs:
            if self.is_fused[producer] is None:
                self.is_fused[producer] = False
                if self.masters[producer] is None:
                    self.masters[producer] = producer
        self.masters[index] = index
        self.patterns[index] = node.pattern

    # Backward

    def group(self, index: int) -> None:
        if self.roots[index] < 0:
            self.roots[index] = index
            self.members[index].append(index)
        root = self.roots[index]
        fused = [p for p, _ in self.graph[index].inputs if self.is_fused[p]]
        kinds = {self.patterns[producer] for producer in fused}
        is_torn = {Pattern.INJECTIVE, Pattern.OUT_ELEMENTWISE_FUSABLE} <= kinds
        if is_torn:  # the complex operation stays outside
            for member in self.members[root]:
                self.masters[member] = index
        for producer in fused:
            if is_torn and self.patterns[producer] == Pattern.OUT_ELEMENTWISE_FUSABLE:
                continue
            if is_torn and self.patterns[producer] == Pattern.INJECTIVE:
                self.masters[producer] = index
            if self.roots[producer] < 0:
                self.roots[producer] = root
                self.members[root].append(producer)

    # The second phase

    def join_readers(self) -> None:
        read_by: list[list[int]] = [[] for _ in self.graph]
        for index, node in enumerate(self.graph):
            if len(node.inputs) == 1 and self.counts[node.inputs[0][0]] > 1:
                read_by[node.inputs[0][0]].append(index)
        for index in range(len(self.graph) - 1, -1, -1):
            groups = {self.roots[reader] for reader in read_by[index]}
            node = self.graph[index]
            if len(read_by[index]) < 2 or len(groups) > 1 or node.is_variable:
                continue
            (group,) = groups
            readers = self.members[group]
            if node.pattern == Pattern.OPAQUE or any(
                self.patterns[reader] > Pattern.BROADCAST for reader in readers
            ):
                continue
            for reader in readers:
                self.patterns[reader] = self.patterns[index]
                self.masters[reader] = self.masters[index]
            joining = self.members[self.roots[index]]
            self.members[self.roots[index]] = []
            for member in joining:
                self.roots[member] = group
            readers += joining
