"""Tests whole models exported by JAX: values, second steps, bytes, and the IR."""

import random
import shutil
import subprocess
from functools import cache
from io import StringIO
from math import prod
from pathlib import Path

import numpy as np
import pytest
from jax_cpu import run_stablehlo
from model_files import marked
from modules import run
from optional_passes import PLACE, TENSOR_PASSES
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer
from xdsl.transforms.canonicalize import CanonicalizePass

import tensorplan
from tensorplan.dialects.tgraph.base import TensorOp, tensor_type_of
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.shaping import ViewOp
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.tgraph.bufferize import TGraphBufferize
from tensorplan.passes.tgraph.fuse import TGraphFuse
from tensorplan.runtime.executor import Executable

ROOT = Path(__file__).parent.parent
MODELS = {
    path.stem: path
    for path in (
        *sorted((ROOT / "tests/models").glob("*.mlir")),
        ROOT / "examples/mlp_train_sgd.mlir",
    )
}

pytest.importorskip("jax")


@pytest.fixture(params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@cache
def program(name: str) -> ModuleOp:
    return tensorplan.from_stablehlo(MODELS[name]).module


@cache
def planned(name: str) -> ModuleOp:
    return tensorplan.plan(program(name))


@cache
def arguments(name: str) -> list[np.ndarray]:
    """Returns random arguments. Floats are positive, because some are variances, and
    labels are below 10."""
    rng = np.random.default_rng(0)
    return [
        np.asarray(np.abs(rng.standard_normal(i.shape) * 0.1), i.dtype)
        if np.issubdtype(i.dtype, np.floating)
        else rng.integers(0, 10, i.shape).astype(i.dtype)
        for i in signature(program(name)).inputs
    ]


@cache
def expected(name: str, step: int) -> list[np.ndarray]:
    """Returns the results of step 0 or 1. The new contents of variables are arguments
    of the next step."""
    if step == 0:
        return run_stablehlo(MODELS[name].read_text(), arguments(name))
    after = list(arguments(name))
    for result, value in zip(
        signature(program(name)).results, expected(name, step - 1), strict=True
    ):
        if result.input is not None:
            after[result.input] = value
    return run_stablehlo(MODELS[name].read_text(), after)


def fresh(name: str) -> list[np.ndarray]:
    return [argument.copy() for argument in arguments(name)]


def assert_close(got: list[np.ndarray], want: list[np.ndarray]) -> None:
    """Asserts that values are within 2e-4 of the largest magnitude of their result."""
    assert [(a.shape, a.dtype) for a in got] == [(a.shape, a.dtype) for a in want]
    for index, (a, b) in enumerate(zip(got, want, strict=True)):
        error = np.max(np.abs(a - b), initial=0.0)
        assert error <= 2e-4 * np.max(np.abs(b), initial=0.0), f"result {index}"


@pytest.mark.thorough
@pytest.mark.parametrize("name", marked(MODELS))
def test_reference_has_the_values_of_jax(name: str) -> None:
    assert_close(run_reference(program(name), fresh(name)), expected(name, 0))


@pytest.mark.thorough
def test_plans_have_the_values_of_jax_in_two_steps(name: str) -> None:
    run = Executable(planned(name))
    arrays = fresh(name)
    assert_close(run(*arrays), expected(name, 0))
    assert_close(run(*arrays), expected(name, 1))  # variables were updated in place


@pytest.mark.thorough
@pytest.mark.parametrize("name", marked(MODELS))
def test_dead_buffers_are_never_read(name: str) -> None:
    run = Executable(planned(name), sanitize=True)
    assert_close(run(*fresh(name)), expected(name, 0))


def test_bytes_are_at_the_lower_bound(name: str) -> None:
    for pool in tensorplan.report(planned(name))["pools"]:
        assert pool["bytes"] <= 1.01 * pool["lower_bound_bytes"]
        assert pool["bytes"] <= pool["unshared_bytes"]


def test_no_view_or_broadcast_is_stored_and_nothing_is_copied(name: str) -> None:
    for op in planned(name).walk():
        if isinstance(op, memref.CopyOp):
            # A loop copies a carried value if the next one is computed while the
            # current one is still needed.
            assert isinstance(op.parent_op(), scf.WhileOp)
            continue
        if isinstance(op, ViewOp) and not op.res:
            size = prod(tensor_type_of(op.outs[0].type).get_shape())
            raise AssertionError(f"{op.name} of {size} elements is stored")
        if isinstance(op, TensorOp) and op.name == "tgraph.constant" and not op.res:
            if starts_loop(op):
                continue
            size = prod(tensor_type_of(op.outs[0].type).get_shape())
            assert size <= 2048, f"a constant of {size} elements is stored"


def starts_loop(op: TensorOp) -> bool:
    """Whether a loop uses the memory that `op` writes."""
    users = (use.operation for use in op.outs[0].uses)
    return any(isinstance(user.parent_op(), scf.WhileOp) for user in users)


def test_every_assign_is_eliminated(name: str) -> None:
    names = {op.name for op in planned(name).walk()}
    assert names.isdisjoint({"tgraph.assign", "tgraph.read"})


@pytest.mark.thorough
@pytest.mark.parametrize("name", marked(MODELS))
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_optional_passes_in_any_order_give_the_same_values(
    name: str, seed: int
) -> None:
    rng = random.Random(f"{name} {seed}")
    chosen = rng.choices(TENSOR_PASSES, k=rng.randrange(8))
    passes = [*chosen, PLACE, TGraphBufferize(), PlanMemory()]
    got = Executable(run(program(name), *passes), native=False)(*fresh(name))
    want = unoptimized(name)
    if any(isinstance(pass_, TGraphFuse | CanonicalizePass) for pass_ in chosen):
        for a, b in zip(got, want, strict=True):  # sums in another order
            assert np.max(np.abs(a - b)) <= 2e-6 * np.max(np.abs(b))
    else:
        assert all(map(np.array_equal, got, want))


@cache
def unoptimized(name: str) -> list[np.ndarray]:
    module = run(program(name), PLACE, TGraphBufferize(), PlanMemory())
    return Executable(module, native=False)(*fresh(name))


@pytest.mark.thorough
@pytest.mark.parametrize("name", marked(MODELS))
def test_plans_are_the_same_every_time(name: str) -> None:
    assert text(tensorplan.plan(program(name))) == text(planned(name))


def test_upstream_mlir_accepts_the_plan(name: str) -> None:
    mlir_opt = shutil.which("mlir-opt-22")
    if mlir_opt is None:
        pytest.skip("no mlir-opt-22")
    run = subprocess.run(
        [mlir_opt, "--allow-unregistered-dialect"],
        input=text(planned(name), generic=True),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[:2000]
    assert "memref.view" in run.stdout


def text(module: ModuleOp, generic: bool = False) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return stream.getvalue()
