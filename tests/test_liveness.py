"""Compares live ranges (analysis/liveness.py) with their definition on flow graphs."""

from random import Random

import pytest
from xdsl.dialects.func import FuncOp

from tensorplan.analysis.control_flow import BasicBlock, ControlFlow, link
from tensorplan.analysis.liveness import Uses, buffer_of, live_steps, merged
from tensorplan.planning import Buffer
from tensorplan.planning.problem import Steps


def flow_of(lengths: list[int], edges: list[tuple[int, int]]) -> ControlFlow:
    """Returns a control flow of nodes with `lengths` steps, and `edges` between
    them."""
    flow = ControlFlow(FuncOp("f", ((), ())))
    flow.nodes, flow.node_of = [], []
    for number, length in enumerate(lengths):
        start = len(flow.node_of)
        flow.nodes.append(BasicBlock(start))
        flow.node_of += [number] * length
    for source, target in edges:
        link(flow.nodes, source, target)
    return flow


def by_definition(flow: ControlFlow, uses: Uses) -> list[Steps]:
    """Returns the ranges of steps that follow an access on some path and precede
    another one on some path, found by iteration to a fixed point."""
    steps = range(len(flow.node_of))
    after = {
        step: [step + 1]
        if flow.node_of[step + 1 : step + 2] == [number]
        else [flow.nodes[n].start for n in flow.nodes[number].successors]
        for step, number in enumerate(flow.node_of)
    }
    accessed = dict.fromkeys(steps, False)  # whether an access precedes the step
    needed = dict.fromkeys(steps, False)  # whether the contents before it are read
    for _ in steps:
        for step in steps:
            if step in uses.accesses:
                needed[step] = not uses.accesses[step]
            elif step != uses.allocated:
                needed[step] = any(needed[s] for s in after[step])
            if step in uses.accesses or (accessed[step] and step != uses.allocated):
                accessed.update(dict.fromkeys(after[step], True))
    live = [s for s in steps if s in uses.accesses or (accessed[s] and needed[s])]
    return runs(live or [uses.allocated])


def runs(steps: list[int]) -> list[Steps]:
    found: list[Steps] = []
    for step in steps:
        if found and found[-1][1] == step:
            found[-1] = found[-1][0], step + 1
        else:
            found.append((step, step + 1))
    return found


def random_uses(random: Random, flow: ControlFlow) -> Uses:
    """Returns random uses of a buffer, never before its allocation in the same node."""
    steps = range(len(flow.node_of))
    allocated = random.choice(steps)
    node = flow.node_of[allocated]
    possible = [s for s in steps if flow.node_of[s] != node or s > allocated]
    chosen = random.sample(possible, min(random.randrange(5), len(possible)))
    return Uses(allocated, {s: random.random() < 0.4 for s in chosen})


@pytest.mark.parametrize("count", range(1, 7))
def test_live_steps_match_the_definition(count: int) -> None:
    random = Random(count)
    for _ in range(60):
        lengths = [random.randint(1, 4) for _ in range(count)]
        edges = [
            (random.randrange(count), random.randrange(count))
            for _ in range(random.randrange(2 * count) if count > 1 else 0)
        ]
        flow = flow_of(lengths, list(dict.fromkeys(edges)))
        buffers = [random_uses(random, flow) for _ in range(4)]
        expected = [by_definition(flow, uses) for uses in buffers]
        assert live_steps(flow, buffers) == expected


def test_a_buffer_that_both_branches_overwrite_is_not_live_before() -> None:
    """Node 0 branches to nodes 1 and 2, which join in node 3. Both branches overwrite
    the buffer's first contents."""
    flow = flow_of([3, 2, 2, 2], [(0, 1), (0, 2), (1, 3), (2, 3)])
    uses = Uses(0, {1: True, 4: True, 6: True, 7: False})
    assert live_steps(flow, [uses]) == [[(1, 2), (4, 5), (6, 8)]]


def test_a_chain_of_nodes_is_followed_to_its_end() -> None:
    """The chain runs against the order of the nodes, so it takes several rounds."""
    count = 6
    edges = [(0, count - 1), *((n, n - 1) for n in range(2, count))]
    flow = flow_of([1] * count, edges)
    (live,) = live_steps(flow, [Uses(0, {5: True, 1: False})])
    assert live == [(1, 6)]


def test_a_chain_whose_nodes_can_exit_is_followed_to_its_end() -> None:
    """The backward analysis converges at once, the forward analysis does not."""
    count = 6
    chain = [(0, count - 1), *((n, n - 1) for n in range(2, count))]
    edges = [*chain, *((n, count) for n in range(1, count))]
    flow = flow_of([1] * (count + 1), edges)
    assert live_steps(flow, [Uses(0, {5: True, 6: False})]) == [[(1, 7)]]


def test_gaps_of_a_buffer_are_between_its_ranges() -> None:
    assert buffer_of("a", 8, [(1, 3), (5, 6), (7, 9)], 4) == Buffer(
        "a", 8, 1, 9, 4, [(3, 5), (6, 7)]
    )


def test_adjacent_ranges_are_merged() -> None:
    assert merged([(0, 2), (2, 3), (4, 5)]) == [(0, 3), (4, 5)]
