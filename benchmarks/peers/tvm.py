"""Measures TVM's Relax: the bytes of the storages that its memory planner allocates.

`StaticPlanBlockMemory` runs after the passes of TVM's own pipelines. Results are not
among the storages, and parameters are constants. The importer from PyTorch drops
updates of arguments, so training steps are not measured.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from peers.networks import network_of
from peers.training import exported

tvm: Any = import_module("tvm")
relax: Any = import_module("tvm.relax")
from_exported_program: Any = import_module(
    "tvm.relax.frontend.torch"
).from_exported_program

VERSION: str = tvm.__version__


def measure(file: Path) -> Iterator[tuple[str, int]]:
    """Yields the bytes that a network needs, without and with in-place operators."""
    network = network_of(file)
    if network is None or network.update:
        return
    module = from_exported_program(exported(network))
    yield "default", _planned_bytes(module, [])
    in_place = relax.transform.DataflowUseInplaceCalls()
    yield "in place", _planned_bytes(module, [in_place])


def _planned_bytes(module: Any, more: list[Any]) -> int:
    passes = relax.transform
    pipeline = tvm.transform.Sequential(
        [
            passes.DecomposeOpsForInference(),
            *more,
            relax.pipeline.zero_pipeline(),
            passes.RewriteDataflowReshape(),
            passes.ToNonDataflow(),
            passes.RemovePurityChecking(),
            passes.CallTIRRewrite(),
            passes.StaticPlanBlockMemory(),
        ]
    )
    with tvm.target.Target("llvm"):
        planned = pipeline(module)
    total = 0

    def visit(node: Any) -> None:
        nonlocal total
        if isinstance(node, relax.Call) and node.op == ALLOCATE:
            total += int(node.args[0].values[0])

    relax.analysis.post_order_visit(planned["main"], visit)
    return total


ALLOCATE: Any = tvm.ir.Op.get("relax.memory.alloc_storage")
