"""Tests `analysis/control_flow.py`: the nodes of the control-flow graph of a function,
and their steps.

`2 > 3 1` is a node with 2 steps and the successors 3 and 1.
"""

import pytest
import unchanged_ir
from xdsl.dialects.func import FuncOp

from tensorplan.analysis.control_flow import ControlFlow

M = "memref<8xf32>"


def function(*lines: str) -> FuncOp:
    """A function with body `lines`, and a return at the end if there is none."""
    end = [] if lines[-1].startswith("func.return") else ["func.return"]
    head = f"func.func @f(%n: index, %p: i1, %x: {M}, %y: {M}) {{"
    return unchanged_ir.function("\n".join((head, *lines, *end, "}")))


COPY = f'"memref.copy"(%x, %y) : ({M}, {M}) -> ()'
FOR = "scf.for %i = %n to %n step %n {"
SWITCH = '"scf.index_switch"(%n) <{cases = array<i64: 3>}> ('

GRAPHS = {
    "a line": ([COPY, COPY], ["3"]),
    "two branches": (
        ["scf.if %p {", COPY, "} else {", COPY, COPY, "}", COPY],
        ["1 > 1 2", "2 > 3", "3 > 3", "2"],
    ),
    "one branch": (["scf.if %p {", COPY, "}", COPY], ["1 > 1 2", "2 > 2", "2"]),
    "cases": (
        [f"{SWITCH}{{ {COPY} scf.yield }}, {{ scf.yield }}) : (index) -> ()"],
        ["1 > 1 2", "2 > 3", "1 > 3", "1"],
    ),
    "a loop": ([FOR, COPY, "}"], ["1 > 1 2", "2 > 2 1", "1"]),
    "a loop in a loop": (
        [FOR, FOR.replace("%i", "%j"), COPY, "}", COPY, "}"],
        ["1 > 1 4", "1 > 2 3", "2 > 3 2", "2 > 4 1", "1"],
    ),
    "a while": (
        ["scf.while : () -> () {", "scf.condition(%p)", "} do {", COPY, "scf.yield }"],
        ["1 > 1", "1 > 2 3", "2 > 1", "1"],
    ),
    "a scope": (
        ["scf.execute_region {", COPY, "scf.yield", "}"],
        ["1 > 1", "2 > 2", "1"],
    ),
    "a scope of blocks": (
        [
            *("scf.execute_region {", "cf.cond_br %p, ^l, ^m", "^l:", COPY),
            *("cf.br ^m", "^m:", "scf.yield", "}"),
        ],
        ["1 > 1", "1 > 2 3", "2 > 3", "1 > 4", "1"],
    ),
    "two ends of a scope": (
        [
            *("scf.execute_region {", "cf.cond_br %p, ^l, ^m", "^l:", "scf.yield"),
            *("^m:", "scf.yield", "}"),
        ],
        ["1 > 1", "1 > 2 3", "1 > 4", "1 > 4", "1"],
    ),
    "blocks": (
        ["cf.cond_br %p, ^l, ^m", "^l:", COPY, "cf.br ^m", "^m:"],
        ["1 > 1 2", "2 > 2", "1"],
    ),
    "a concurrent loop is one step": (
        [
            '"scf.parallel"(%n, %n, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}'
            "> ({",
            *("^bb0(%i: index):", COPY, '"scf.reduce"() : () -> ()'),
            "}) : (index, index, index) -> ()",
        ],
        ["2"],
    ),
}


@pytest.mark.parametrize(("lines", "expected"), GRAPHS.values(), ids=GRAPHS)
def test_nodes_and_successors(lines: list[str], expected: list[str]) -> None:
    """Nodes have the expected numbers of steps, in order, and the expected
    successors."""
    flow = ControlFlow(function(*lines))
    found: list[str] = []
    at = 0
    for number, node in enumerate(flow.nodes):
        steps = [step for step, n in enumerate(flow.node_of) if n == number]
        assert steps == list(range(at, at + len(steps)))
        assert node.start == at
        at += len(steps)
        after = f" > {' '.join(map(str, node.successors))}" if node.successors else ""
        found.append(f"{len(steps)}{after}")
    assert found == expected
    assert sorted(flow.step.values()) == list(range(at))
