"""Predicted and planned bytes of programs, and value checks, for tests of passes."""

import numpy as np
from programs import Program
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

import tensorplan
from tensorplan.analysis.functions import tensor_functions
from tensorplan.analysis.memory_graph import memory_graph
from tensorplan.analysis.storage import Storage, peaks, storage_of
from tensorplan.checking.plan_check import check_plan
from tensorplan.dialects.tgraph.base import STREAM
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.passes import driver
from tensorplan.passes.options import Placing
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.plan.workspaces import PlanWorkspaces
from tensorplan.passes.tgraph.bufferize import TGraphBufferize
from tensorplan.passes.tgraph.eliminate_assigns import TGraphEliminateAssigns
from tensorplan.passes.tgraph.fuse import TGraphFuse
from tensorplan.passes.tgraph.place_devices import TGraphPlaceDevices
from tensorplan.passes.tgraph.shared.fitting import PlannedBytes
from tensorplan.runtime.executor import Executable

READY = (
    TGraphPlaceDevices(default="cpu:0"),
    DeadCodeElimination(),
    TGraphEliminateAssigns(),
    TGraphFuse(),
)
REST = (TGraphBufferize(), PlanMemory(reuse_outputs=False))  # as memory_graph assumes


KERNELS = ("none", "numpy", "native")
"""The options of `plan-workspaces`: the kernels whose workspaces are planned."""


def inputs(module: ModuleOp) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [
        np.asarray(rng.integers(-8, 9, i.shape) / 4).astype(i.dtype)
        for i in signature(module).inputs
    ]


def planned_bytes(module: ModuleOp) -> int:
    return sum(pool["bytes"] for pool in tensorplan.report(module)["pools"])


def modeled_bytes(module: ModuleOp) -> int:
    """The peak of live bytes, summed over devices, that `memory_graph` predicts."""
    ((_, block),) = tensor_functions(module)
    memory = memory_graph(block, 64)
    return sum(memory.peaks(range(len(memory.ops))).values())


def storage_of_program(module: ModuleOp) -> Storage:
    ((_, block),) = tensor_functions(module)
    return storage_of(block)


def stored_bytes(module: ModuleOp, alignment: int) -> dict[str | None, int]:
    """The peak of each device that analysis/storage predicts for a placed program."""
    predicted = peaks(storage_of_program(module), alignment)
    return {device: bytes for device, bytes in predicted.items() if bytes}


def lower_bounds(module: ModuleOp, alignment: int) -> dict[str | None, int]:
    """The lower bound of each device in a plan that does not reuse outputs."""
    planned = module.clone()
    passes = [
        TGraphBufferize(),
        PlanMemory(strategy="best-fit", alignment=alignment, reuse_outputs=False),
    ]
    driver.run(tensorplan.context(), planned, passes, verify=False)
    pools = tensorplan.report(planned)["pools"]
    bounds = {pool["device"]: pool["lower_bound_bytes"] for pool in pools}
    return {device: bytes for device, bytes in bounds.items() if bytes}


def has_streams(module: ModuleOp) -> bool:
    return any(STREAM in op.attributes for op in module.walk())


def predicted_arenas(
    module: ModuleOp, alignment: int, kernels: str = "none"
) -> dict[str | None, int]:
    """The arena of each device that `PlannedBytes` predicts for a placed program
    without streams."""
    ((func, _),) = tensor_functions(module)
    placing = Placing(alignment=alignment, workspaces=kernels)
    predicted = PlannedBytes(placing).peaks(func)
    return {device: bytes for device, bytes in predicted.items() if bytes}


def assert_within(module: ModuleOp, alignment: int, kernels: str, bytes: int) -> None:
    """Asserts that `PlannedBytes.within` accepts a limit of `bytes` and rejects one of
    `bytes - 1`, also in a second call, which knows the kernels."""
    ((func, _),) = tensor_functions(module)
    planned = PlannedBytes(Placing(alignment=alignment, workspaces=kernels))
    for _ in range(2):
        assert planned.within(func, bytes - 1) is None
        assert planned.within(func, bytes) == bytes


def planned_arenas(
    module: ModuleOp, alignment: int, kernels: str = "none"
) -> dict[str | None, int]:
    """The arena of each device after planning as in the default sequence."""
    planned = module.clone()
    passes = [
        TGraphBufferize(),
        PlanWorkspaces(kernels),
        PlanMemory(alignment=alignment),
    ]
    driver.run(tensorplan.context(), planned, passes, verify=False)
    pools = [pool for pool in check_plan(planned) if pool.argument is None]
    return {pool.device: pool.size for pool in pools if pool.size}


def assert_same_values(program: Program, level_1: ModuleOp, planned: ModuleOp) -> None:
    want = run_reference(program.module, inputs(program.module))
    executable = Executable(planned, sanitize=True, native=False)
    for got in (
        run_reference(level_1, inputs(program.module)),
        executable(*inputs(program.module)),
    ):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)
