"""Colors nodes, so that parallel branches do not wait for each other's memory.

NNVM's `ColorNodeGroup`: each long path through the graph gets a color of its own.
"""

from collections.abc import Sequence

from .graph import Graph


def color_nodes(graph: Graph, max_colors: int) -> list[int]:
    """Returns a color for each node, from 0; at most `max_colors` of them.

    The longest path, counted in operations without a color, gets the next color, until
    no operation or only one color is left. The remaining nodes get the last color.
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
    """The nodes of the path with the greatest sum of importance; none if it is 0.

    Of equal paths, the one whose start, and then whose next node, comes last.
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
