"""Measures ExecuTorch: the bytes of the buffers that its memory planner plans.

Arguments and results are excluded by options of the planner, which tries its algorithms
and keeps the best plan. Programs use portable operators and no backend, as backends
plan their own memory. A training step is one program that overwrites its arguments.
"""

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from peers.networks import network_of
from peers.training import exported

exir: Any = import_module("executorch.exir")
fold_constants: Any = import_module(
    "executorch.exir.passes.constant_prop_pass"
).constant_prop_pass
passes: Any = import_module("executorch.exir.passes")

VERSION = version("executorch")


def measure(file: Path) -> Iterator[tuple[str, int]]:
    """Yields the bytes of a network, by default and with constants folded."""
    network = network_of(file)
    if network is None:
        return
    program = exported(network)
    yield "default", _planned_bytes(program)
    if not network.update:
        decomposed = program.run_decompositions()
        yield "folded", _planned_bytes(fold_constants(decomposed))


def _planned_bytes(program: Any) -> int:
    planning = passes.MemoryPlanningPass(
        alloc_graph_input=False, alloc_graph_output=False, alloc_mutable_buffers=False
    )
    # Gradients of PyTorch's operators are not in its core set, which checks require.
    checks = exir.EdgeCompileConfig(_check_ir_validity=False)
    executable = exir.to_edge(program, compile_config=checks).to_executorch(
        exir.ExecutorchBackendConfig(memory_planning_pass=planning)
    )
    (plan,) = executable.executorch_program.execution_plan
    return sum(plan.non_const_buffer_sizes)
