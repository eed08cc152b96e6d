"""Lowers programs to level 4 and runs them with each installed version of MLIR."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from modules import run
from xdsl.dialects.builtin import ModuleOp

from tensorplan.dialects.dtypes import Array
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.passes.convert.tgraph_to_linalg import ConvertTGraphToLinalg
from tensorplan.passes.plan.strip_memory_spaces import PlanStripMemorySpaces
from tensorplan.runtime.backends.mlir.executable import MlirExecutable, Tools, installed

UPSTREAM = {
    *("arith", "builtin", "cf", "func", "linalg", "llvm", "math", "memref", "scf")
}

TOOLS = list(installed())

needs_mlir = pytest.mark.skipif(not TOOLS, reason="no mlir-opt and mlir-runner")

_MISSING = pytest.param(None, marks=needs_mlir, id="no MLIR")

with_each_mlir = pytest.mark.parametrize(
    "tools", TOOLS or [_MISSING], ids=lambda tools: Path(tools.opt).name
)


def lowered(module: ModuleOp, named: bool = False) -> ModuleOp:
    """Lowers a copy of a level 2 or 3 module to level 4, without memory spaces."""
    module = run(module, ConvertTGraphToLinalg(named), PlanStripMemorySpaces())
    assert {op.name.partition(".")[0] for op in module.walk()} <= UPSTREAM
    return module


def run_natively(
    module: ModuleOp, inputs: Sequence[Array], tools: Tools | None = None
) -> list[Array]:
    """The results of a level 2 or 3 module, compiled without optimization."""
    run = MlirExecutable(lowered(module), signature(module), tools, optimized=False)
    return run(*inputs)
