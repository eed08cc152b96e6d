"""Programs that mlir-opt made of linalg on tensors (tests/mlir), planned.

Each is planned and checked; its arena takes no more than upstream's best fit would give
the same allocations; mlir-opt takes it back, and it prints natively what it printed
before.
"""

import json
import shutil
from io import StringIO
from pathlib import Path

import mlir_programs
import pytest
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.printer import Printer

import tensorplan
from tensorplan.dialects.tgraph.base import element_bytes
from tensorplan.frontends.mlir_text import parse_module
from tensorplan.passes import driver
from tensorplan.passes.allocations import find_allocations
from tensorplan.passes.control_flow import ControlFlow
from tensorplan.passes.plan_memory import PlanMemory

HERE = Path(__file__).parent / "mlir"
PROGRAMS = sorted((HERE / "programs").glob("*.mlir"))
LEFT = {"flow_05": 2}
"""Allocations that are not planned: a loop hands them on from iteration to iteration,
and asks at run time who has to free them."""

by_program = pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)


def read(path: Path) -> ModuleOp:
    return parse_module(path.read_text(), path.name, tensorplan.context())


def planned(path: Path) -> ModuleOp:
    module = read(path)
    driver.run(tensorplan.context(), module, [PlanMemory()])
    return module


def best_fit(func: FuncOp) -> int:
    """Bytes of an arena as MLIR's static-memory-planner lays it out with best fit.

    Of the allocations that plan-memory plans, without any sharing in functions of
    several blocks, which upstream does not plan. They are live from the operation of
    the function's block that allocates them to that which frees them. In this order,
    each takes the smallest gap between those that are live, or lies above them.
    """
    step = {op: n for n, op in enumerate(op for b in func.body.blocks for op in b.ops)}

    def at(op: Operation) -> int:
        while op not in step:
            outer = op.parent_op()
            assert outer is not None
            op = outer
        return step[op]

    spans = sorted(
        (
            at(a.alloc),
            max(map(at, a.deallocs), default=len(step)) + 1,
            -(-a.size // 64) * 64,
        )
        for a in find_allocations(func, ControlFlow(func))
    )
    if len(func.body.blocks) > 1:
        return sum(size for _, _, size in spans)
    placed: list[tuple[int, int, int]] = []  # offset, size, end of life
    for start, end, size in spans:
        live = sorted((o, s) for o, s, e in placed if e > start)
        gaps: list[tuple[int, int]] = []
        top = 0
        for offset, taken in live:
            if offset - top >= size:
                gaps.append((offset - top, top))
            top = max(top, offset + taken)
        placed.append((min(gaps)[1] if gaps else top, size, end))
    return max((offset + size for offset, size, _ in placed), default=0)


def test_there_are_forty() -> None:
    assert len(PROGRAMS) == 40
    assert sum("flow" in path.stem for path in PROGRAMS) == 20


@by_program
def test_plans(path: Path) -> None:
    func = next(op for op in read(path).walk() if isinstance(op, FuncOp))
    module = planned(path)
    (pool,) = tensorplan.report(module)["pools"]
    assert pool["lower_bound_bytes"] <= pool["bytes"] <= best_fit(func)
    allocs = [op for op in module.walk() if isinstance(op, memref.AllocOp)]
    assert len(allocs) == 1 + LEFT.get(path.stem, 0)
    assert element_bytes(allocs[0].memref.type.element_type) == 1


@pytest.mark.skipif(not shutil.which("mlir-runner-22"), reason="needs mlir-runner-22")
@by_program
def test_values(path: Path) -> None:
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(planned(path))
    expected = json.loads((HERE / "expected.json").read_text())[path.stem]
    assert mlir_programs.run_natively(stream.getvalue()) == expected
