"""Tests `checkpoint_policy`: with the policy, JAX saves the values that the plan
keeps."""

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError, path_of, place_of
from tensorplan.dialects.tgraph.elementwise import MaximumOp
from tensorplan.passes import driver
from tensorplan.passes.common_subexpressions import (
    UnplannedCommonSubexpressionElimination,
)
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.rematerialize import TGraphRematerialize
from tensorplan.reporting.checkpoints import CheckpointPolicy

jax = pytest.importorskip("jax")
jnp = jax.numpy
ad_checkpoint = pytest.importorskip("jax.ad_checkpoint")
checkpoint_name = ad_checkpoint.checkpoint_name

ROW = 128 * 64 * 4
"""The size in bytes of one value of a layer."""


def loss(weights: list[Any], x: Any) -> Any:
    for number, weight in enumerate(weights):
        before = checkpoint_name(x @ weight, f"before{number}")
        x = checkpoint_name(jnp.sin(before), f"after{number}")
    return jnp.sum(x * x)


def arrays() -> tuple[list[Any], Any]:
    random = np.random.default_rng(0)
    weights = [random.normal(size=(64, 64)).astype(np.float32) / 8 for _ in range(6)]
    return weights, random.normal(size=(128, 64)).astype(np.float32)


def gradient(fn: Any) -> ModuleOp:
    return tensorplan.from_jax(jax.value_and_grad(fn), *arrays()).module


def policy_of(planned: ModuleOp) -> CheckpointPolicy:
    found = tensorplan.checkpoint_policy(planned)
    assert isinstance(found, CheckpointPolicy)
    return found


def arena(planned: ModuleOp) -> int:
    (pool,) = tensorplan.report(planned)["pools"]
    return pool["bytes"]


def arena_with_jaxs_recomputation(fn: Any) -> int:
    """The bytes of a plan whose only rematerialization is that of `fn`. `cse` is left
    out, because it would merge recomputed values."""
    module = gradient(fn)
    left_out = (UnplannedCommonSubexpressionElimination, TGraphRematerialize)
    passes = [p for p in PlanPipeline().passes() if not isinstance(p, left_out)]
    driver.run(tensorplan.context(), module, passes)
    return arena(module)


@pytest.mark.parametrize(
    ("rows", "dropped"),
    [
        (12, []),
        (9, ["after2", "after3", "after4"]),
        (7, ["after0", "after1", "after2", "after3", "after4"]),
        (6, ["before0", "after0", "after1", "after2", "after3", "after4"]),
    ],
)
def test_jax_saves_the_values_that_the_plan_keeps(
    rows: int, dropped: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    planned = tensorplan.plan(gradient(loss), budget=rows * ROW)
    found = policy_of(planned)
    every = [f"{kind}{number}" for number in range(6) for kind in ("before", "after")]
    assert list(found.names) == [name for name in every if name not in dropped]
    assert sum(value.size for value in found.kept) == rows * ROW

    policy = jax.checkpoint_policies.save_only_these_names(*found.names)
    checkpointed = jax.checkpoint(loss, policy=policy)
    ad_checkpoint.print_saved_residuals(checkpointed, *arrays())
    saved = [line for line in capsys.readouterr().out.splitlines() if "arg" not in line]
    assert saved == [
        line for name in found.names for line in saved if f"named '{name}' " in line
    ]
    assert len(saved) == rows
    assert arena_with_jaxs_recomputation(checkpointed) <= arena(planned)

    expected = jax.tree.leaves(jax.value_and_grad(loss)(*arrays()))
    results = jax.tree.leaves(jax.value_and_grad(checkpointed)(*arrays()))
    ours = tensorplan.compile(planned)(*jax.tree.leaves(arrays()))
    for want, got, own in zip(expected, results, ours, strict=True):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_allclose(own, want, rtol=1e-4, atol=1e-4)


def test_generated_code_runs() -> None:
    planned = tensorplan.plan(gradient(loss), budget=7 * ROW)
    found = policy_of(planned)
    scope: dict[str, Any] = {"jax": jax, "loss": loss}
    exec(str(found), scope)
    value = scope["loss"](*arrays())
    np.testing.assert_allclose(value, loss(*arrays()), rtol=1e-6)


def test_unnamed_value_gets_a_name_with_its_line() -> None:
    def unnamed(weights: list[Any], x: Any) -> Any:
        hidden = jnp.sin(x @ weights[0])
        return jnp.sum(hidden @ weights[1])

    line = unnamed.__code__.co_firstlineno + 1
    found = policy_of(tensorplan.plan(gradient(unnamed)))
    assert list(found.names) == [f"test_checkpoint_policy_{line}"]
    value = found.kept[0]
    assert f"test_checkpoint_policy.py:{line}:" in value.location
    assert (value.is_named, value.type, value.size) == (False, "f32[128,64]", ROW)
    assert f'checkpoint_name(..., "{value.name}")' in str(found)


def test_stacks_of_a_loop_have_no_names() -> None:
    def row(x: Any, weight: Any) -> tuple[Any, None]:
        return jnp.sin(checkpoint_name(x @ weight, "row")), None

    def scanned(weights: list[Any], x: Any) -> Any:
        last, _ = jax.lax.scan(row, x, jnp.stack(weights))
        return jnp.sum(checkpoint_name(last, "last") ** 2)

    found = policy_of(tensorplan.plan(gradient(scanned)))
    stacks = [value for value in found.kept if value.type == "f32[6,128,64]"]
    assert {(value.name, value.primitive) for value in stacks} == {("", "while")}
    assert "f32[1,64,64]" not in str(found)  # computed in the gradient's loop
    assert "" not in found.names
    assert "comes from while: name its rows in the loop's body" in str(found)


def test_called_functions_have_the_location_of_the_call() -> None:
    def called(weights: list[Any], x: Any) -> Any:
        return jnp.sum(jax.nn.relu(x @ weights[0]))

    line = called.__code__.co_firstlineno + 1
    (relu,) = (op for op in gradient(called).walk() if isinstance(op, MaximumOp))
    assert path_of(relu).endswith("/jit(relu)/max")
    assert f"test_checkpoint_policy.py:{line}:" in (place_of(relu) or "")


def test_programs_without_a_plan_or_a_gradient_are_refused() -> None:
    with pytest.raises(LocatedError, match="there is no plan"):
        tensorplan.checkpoint_policy(gradient(loss))
    forward = tensorplan.from_jax(loss, *arrays())
    with pytest.raises(LocatedError, match="there is no gradient"):
        tensorplan.checkpoint_policy(tensorplan.plan(forward))


def test_other_version_of_jax_loses_only_the_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> Any:
        raise AttributeError("LoweringParameters")

    want = tensorplan.compile(gradient(loss))(*flat())
    monkeypatch.setattr("tensorplan.frontends.jax._keeping_names", missing)
    module = gradient(loss)
    assert not any("name[" in path_of(op) for op in module.walk())
    for got, value in zip(tensorplan.compile(module)(*flat()), want, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-5)


def flat() -> list[Any]:
    return jax.tree.leaves(arrays())
