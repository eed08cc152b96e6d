"""Colours for nodes, so that parallel branches do not wait for each other's memory.

NNVM's `ColorNodeGroup`: long paths through the graph get a colour each.
"""

from collections.abc import Sequence

from .graph import Graph


def color_nodes(graph: Graph, max_colors: int) -> list[int]:
    """A colour for each node, from 0; at most `max_colors`.

    The longest path, counted in operations without a colour, gets the next colour,
    until no operation is left or only one colour is; what remains gets the last one.
    """
    importance = [0 if node.is_variable else 1 for node in graph.nodes]
    colors: list[int | None] = [None] * len(graph.nodes)
    color = 0
    while color < max_colors - 1:
        path = _best_path(graph, importance)
        if not path:
            break
        for node in path:
            if colors[node] is None:
                colors[node] = color
                importance[node] = 0
        color += 1
    return [color if c is None else c for c in colors]


def _best_path(graph: Graph, importance: Sequence[int]) -> list[int]:
    """The nodes of a path of the greatest sum of importance; none if that is 0.

    Of equal paths the one whose start, and then whose next node, comes last.
    """
    best = [0] * len(graph.nodes)  # sum from the node to the end of its best path
    following: list[int | None] = [None] * len(graph.nodes)
    greatest, start = 0, None
    for node in reversed(range(len(graph.nodes))):
        best[node] += importance[node]
        if best[node] > greatest:
            greatest, start = best[node], node
        for entry in graph.nodes[node].inputs:
            if best[node] > best[entry.node]:
                best[entry.node] = best[node]
                following[entry.node] = node
    path: list[int] = []
    while start is not None:
        path.append(start)
        start = following[start]
    return path
