"""The strategies `nnvm` and `nnvm-auto-search`: NNVM's planner on plain buffers."""

from collections import defaultdict

from ...problem import Limits, Placement, Problem, round_up
from ...registry import strategy
from ..storages import lay_out
from .graph import Entry, Graph, Node, Tensor
from .plan_memory import EXTERNAL, Options, plan_memory


@strategy("nnvm")
def nnvm(problem: Problem, limits: Limits) -> Placement:
    """NNVM's storage sharing with match range 16 (`plan_memory`).

    Storages follow one another. Gaps in lifetimes are not used, and buffers with a
    given offset count as external.
    """
    return _share(problem, Options())


@strategy("nnvm-auto-search")
def nnvm_auto_search(problem: Problem, limits: Limits) -> Placement:
    """`nnvm` with the best of the match ranges 1, 2, 4, 8, and 16."""
    return _share(problem, Options(auto_search=True))


def _share(problem: Problem, options: Options) -> Placement:
    graph, entries = _as_graph(problem)
    fixed = zip(entries, problem.buffers, strict=True)
    given = {entry: EXTERNAL for entry, b in fixed if b.offset is not None}
    ids = plan_memory(graph, options, given=given).storage_ids
    return lay_out(problem, [ids[node][output] for node, output, _ in entries])


def _as_graph(problem: Problem) -> tuple[Graph, list[Entry]]:
    """An operation for each step, and the entry of each buffer.

    An operation writes the buffers that start in its step, and reads the buffers whose
    last step this is. A buffer that lives for one step is an output without readers.
    """
    buffers = problem.buffers
    steps = sorted({step for b in buffers for step in (b.start, b.end - 1)})
    place = {step: n for n, step in enumerate(steps)}
    outputs: defaultdict[int, list[Tensor]] = defaultdict(list)
    inputs: defaultdict[int, list[Entry]] = defaultdict(list)
    entries: list[Entry] = []
    for b in buffers:
        entry = Entry(place[b.start], len(outputs[b.start]))
        entries.append(entry)
        outputs[b.start].append(Tensor((round_up(b.size, b.alignment),), "uint8"))
        if b.end - 1 > b.start:
            inputs[b.end - 1].append(entry)
    return Graph([Node(str(t), outputs[t], inputs[t]) for t in steps]), entries
