"""Plans programs that mlir-opt bufferized from linalg on tensors (tests/mlir).

The arena of each plan is no larger than best fit in upstream's style would need. Every
installed version of MLIR accepts the plan, and it prints the same output natively as
the original. The same holds for programs that this version itself bufferizes.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path

import mlir_programs
import numpy as np
import pytest
from upstream import lowered, needs_mlir, with_each_mlir
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    i32,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.printer import Printer

import tensorplan
from tensorplan.analysis.allocations import find_allocations
from tensorplan.analysis.control_flow import ControlFlow
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.base import RESULT, element_bytes
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.frontends.mlir_text import parse_module
from tensorplan.passes import driver
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.runtime.backends.mlir.executable import MlirExecutable, Tools
from tensorplan.runtime.executor import Executable

HERE = Path(__file__).parent / "mlir"
EXPECTED = json.loads((HERE / "expected.json").read_text())
SOURCES = {name: (source, text) for name, source, text in mlir_programs.sources()}
PROGRAMS = sorted((HERE / "programs").glob("*.mlir"))

by_program = pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)


def read(path: Path) -> ModuleOp:
    return parse_module(path.read_text(), path.name, tensorplan.context())


def planned(module: ModuleOp) -> ModuleOp:
    driver.run(tensorplan.context(), module, [PlanMemory()])
    return module


def printed(module: ModuleOp, is_generic: bool) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=is_generic).print_op(module)
    return stream.getvalue()


def best_fit(func: FuncOp) -> int:
    """The bytes of an arena that MLIR's static-memory-planner fills by best fit.

    The arena has the allocations that plan-memory plans. In functions of several
    blocks, which upstream does not plan, they share nothing. A buffer is live from the
    operation of the function's block that allocates it to the one that frees it. In
    order of allocation, each buffer takes the smallest gap between live buffers, or
    lies above them.
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


def test_there_are_fifty() -> None:
    kinds = Counter(path.stem.partition("_")[0] for path in PROGRAMS)
    assert kinds == {"line": 20, "flow": 20, "net": 10}


def allocations(module: ModuleOp) -> list[memref.AllocOp]:
    return [op for op in module.walk() if isinstance(op, memref.AllocOp)]


@by_program
def test_plans(path: Path) -> None:
    func = next(op for op in read(path).walk() if isinstance(op, FuncOp))
    module = planned(read(path))
    (pool,) = tensorplan.report(module)["pools"]
    assert pool["lower_bound_bytes"] <= pool["bytes"] <= best_fit(func)
    (arena,) = allocations(module)  # of all buffers
    assert element_bytes(arena.memref.type.element_type) == 1


@pytest.mark.thorough
@pytest.mark.skipif(not mlir_programs.LIBRARIES, reason="no libmlir_runner_utils")
@with_each_mlir
@by_program
def test_values(path: Path, tools: Tools) -> None:
    """Plans of the recorded program, and of the program that this version of MLIR
    bufferizes in the other form, print the expected output."""
    is_generic = not path.read_text().startswith('"builtin.module"')
    source, text = SOURCES[path.stem]
    bufferized = mlir_programs.bufferized(tools.opt, source, text, is_generic)
    for module, form in (
        (read(path), True),
        (parse_module(bufferized, path.name, tensorplan.context()), is_generic),
    ):
        text = printed(planned(module), form)
        assert mlir_programs.run_natively(tools, text) == EXPECTED[path.stem]


REFUSED = {
    **{
        f"flow_{number:02}": r"forwards a memref.*--backend=mlir"
        for number in (0, 1, 2, 3, 5, 7, 8, 9, 12, 13)
    },
    **{f"flow_{number}": "blocks, expected one" for number in (15, 16, 17)},
    **{
        f"net_{number:02}": "has no kernel, expected linalg.generic"
        for number in (1, 3)
    },
    **{f"net_{number:02}": "expected static sizes" for number in (4, 5, 6, 9)},
    "net_08": r"forwards a memref.*--backend=mlir",
}
"""Programs that only the mlir backend runs, and the executor's reasons."""

RUNS = [(3, True), (0, False), (4, False)]
"""The trip counts and conditions with which @main calls @program."""


def as_entry(path: Path) -> tuple[ModuleOp, list[Array]]:
    """Returns @program with its last argument as a result, and the arguments that
    @main passes."""
    module = read(path)
    (func,) = (f for f in module.ops if isinstance(f, FuncOp) and is_program(f))
    result = DictionaryAttr({RESULT: IntegerAttr(0, i32)})
    others = [DictionaryAttr({})] * (len(func.args) - 1)
    func.properties["arg_attrs"] = ArrayAttr([*others, result])
    rows, columns = np.indices((8, 8))
    x = (np.float32(0.0625) * (1 + rows + columns)).astype(np.float32)
    return module, [x, x * x]


def is_program(func: FuncOp) -> bool:
    return func.sym_name.data == "program"


def check(path: Path, run: Callable[..., list[Array]], arrays: Sequence[Array]) -> None:
    lines = " ".join(EXPECTED[path.stem]).replace("[", " ").replace("]", " ")
    words = lines.replace(",", " ").split()
    printed = np.array([float(w) for w in words], np.float32)
    got = [run(np.int64(n), np.bool_(c), *arrays)[0] for n, c in RUNS]
    np.testing.assert_allclose(np.ravel(got), printed, rtol=2e-5, atol=2e-5)


@by_program
def test_the_executor_runs_plans(path: Path) -> None:
    module, arrays = as_entry(path)
    if path.stem in REFUSED:
        with pytest.raises(LocatedError, match=REFUSED[path.stem]):
            Executable(module, "program")
        return
    check(path, Executable(module, "program"), arrays)
    check(path, Executable(planned(module), "program", sanitize=True), arrays)


@pytest.mark.thorough
@needs_mlir
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.slow if n % 5 else ())
        for n, path in enumerate(PROGRAMS)
    ],
)
def test_the_mlir_backend_runs_plans(path: Path) -> None:
    """Passes arguments and results to @program. test_values runs @main of all plans."""
    module, arrays = as_entry(path)
    run = MlirExecutable(lowered(planned(module)), signature(module, "program"))
    check(path, run, arrays)
