"""TVM Relay's grouping algorithm, by post-dominators (`FuseOps`, fuse_ops.cc of v0.7).

The post-dominator of a node is the first node that lies on all paths from it to the
results. A node is fused with its post-dominator, and with all nodes between them, if
the patterns on all these paths allow it. So a diamond is fused as a whole, and only the
last node of a group is read outside it. There are three rounds over the graph:

 0. complex operations into elementwise ones, chains of broadcasts into their reader;
 1. injective operations and tuples into their readers;
 2. injective operations into tuples that were fused in round 1.

A result has no post-dominator, so nothing is fused into a tuple that is returned. With
`rows`, a last round, which Relay lacks, fuses through reductions (softmax).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....dialects.tgraph.base import Pattern
from .graph import TUPLE, FusionGraph

_Allows = Callable[[int, bool], bool]
"""`(pattern of a group on the path, whether it is the path's end) -> may be fused`."""


def fuse(
    graph: FusionGraph, results: Sequence[int], max_depth: int = 256, rows: bool = False
) -> list[int]:
    """Returns the number of each node's group: the index of the group's last node.

    `max_depth` is the largest number of nodes in a group. At most that many nodes are
    visited for each node, so the time is linear in the graph.
    """
    fusion = _Fusion(graph, results, max_depth)
    for phase in range(4 if rows else 3):
        for node in range(len(graph)):
            fusion.visit(node, phase)
    last = {fusion.root(node): node for node in range(len(graph))}
    return [last[fusion.root(node)] for node in range(len(graph))]


@dataclass(slots=True)
class _Dominator:
    """A node of the post-dominator tree."""

    parent: int | None
    depth: int
    pattern: int  # the largest on the paths from the node to its parent


def _post_dominators(
    edges: Sequence[Sequence[tuple[int, int]]], results: Sequence[int]
) -> list[_Dominator]:
    """Builds the tree backwards: the parent of a node is the least common ancestor of
    its readers."""
    tree = [_Dominator(None, 1, Pattern.OPAQUE) for _ in edges]
    leaving = set(results)
    for node in range(len(edges) - 1, -1, -1):
        if node in leaving or not edges[node]:
            continue
        pattern = int(Pattern.ELEMENTWISE)
        parent: int | None = edges[node][0][0]
        for reader, edge in edges[node]:
            pattern = max(pattern, edge)
            other: int | None = reader
            while parent != other and parent is not None and other is not None:
                if tree[parent].depth < tree[other].depth:
                    pattern = max(pattern, tree[other].pattern)
                    other = tree[other].parent
                else:
                    pattern = max(pattern, tree[parent].pattern)
                    parent = tree[parent].parent
            parent = None if other is None else parent
        depth = 1 if parent is None else tree[parent].depth + 1
        tree[node] = _Dominator(parent, depth, pattern)
    return tree


class _Fusion:
    """Union-find over the nodes; a group's root has the group's pattern and size."""

    def __init__(self, graph: FusionGraph, results: Sequence[int], max_depth: int):
        self.max_depth = max_depth
        self.patterns = [int(node.pattern) for node in graph]
        self.parents = list(range(len(graph)))
        self.sizes = [1] * len(graph)
        self.readers: list[list[tuple[int, int]]] = [[] for _ in graph]
        for index, node in enumerate(graph):
            edge = int(Pattern.INJECTIVE) if node.pattern == TUPLE else node.pattern
            for producer, output in node.inputs:
                same_shape = graph[producer].shapes[output] == node.shapes[0]
                is_aligned = edge == Pattern.BROADCAST and same_shape
                pattern = int(Pattern.ELEMENTWISE) if is_aligned else edge
                self.readers[producer].append((index, pattern))
        self.tree = _post_dominators(self.readers, results)

    def root(self, node: int) -> int:
        while self.parents[node] != node:
            self.parents[node] = self.parents[self.parents[node]]
            node = self.parents[node]
        return node

    def visit(self, node: int, phase: int) -> None:
        """Fuses the node with its post-dominator if `phase` covers its pattern."""
        own, dominator = self.patterns[node], self.tree[node]
        sink = dominator.parent
        if own == Pattern.OPAQUE or sink is None:
            return
        if phase == 2:
            if (
                own <= Pattern.INJECTIVE
                and self.patterns[sink] == TUPLE
                and self.patterns[self.root(sink)] <= Pattern.INJECTIVE
            ):
                self._try(node, sink, _up_to_injective)
            return
        if self.patterns[sink] == TUPLE or self.root(node) == self.root(sink):
            return
        if phase == 3:
            own = max(own, self.patterns[self.root(node)])
            if max(own, dominator.pattern) <= Pattern.REDUCTION:
                self._try(node, sink, _up_to_reduction)
        elif own == Pattern.OUT_ELEMENTWISE_FUSABLE:
            if phase == 0 and dominator.pattern == Pattern.ELEMENTWISE:
                self._try(node, sink, _up_to_broadcast)
        elif own <= Pattern.BROADCAST:
            if dominator.pattern <= Pattern.REDUCTION:
                self._try(node, sink, _chain)
        elif own in (Pattern.INJECTIVE, TUPLE) and phase == 1:
            self._try(node, sink, _up_to_injective)

    def _try(self, node: int, sink: int, allows: _Allows) -> None:
        """Fuses `node`, and all nodes on its paths to `sink`, with `sink`, if `allows`
        accepts the patterns of their groups."""
        size = self.sizes[self.root(sink)] + self.sizes[node]
        path = [node]
        seen = {node, sink}
        if not allows(self.patterns[self.root(sink)], True):
            return
        for at in path:
            for reader, _ in self.readers[at]:
                if reader in seen:
                    continue
                size += self.sizes[reader]
                if size > self.max_depth or not allows(
                    self.patterns[self.root(reader)], False
                ):
                    return
                seen.add(reader)
                path.append(reader)
        if size > self.max_depth:
            return
        target = self.root(sink)
        for at in path:
            group = self.root(at)
            if group == target:
                continue
            self.parents[group] = target
            self.sizes[target] += self.sizes[group]
            if self.patterns[group] == Pattern.OUT_ELEMENTWISE_FUSABLE:
                self.patterns[target] = int(Pattern.OUT_ELEMENTWISE_FUSABLE)


def _up_to_broadcast(pattern: int, is_sink: bool) -> bool:
    return pattern <= Pattern.BROADCAST


def _up_to_injective(pattern: int, is_sink: bool) -> bool:
    return pattern <= Pattern.INJECTIVE


def _up_to_reduction(pattern: int, is_sink: bool) -> bool:
    return pattern <= Pattern.REDUCTION


def _chain(pattern: int, is_sink: bool) -> bool:
    """Allows reductions and contractions at the end of the path, but not on it."""
    limit = Pattern.OUT_ELEMENTWISE_FUSABLE if is_sink else Pattern.INJECTIVE
    return pattern <= limit
