"""Tests `tgraph-schedule` and `tgraph-rematerialize`: values, and bytes of plans."""

import sys
from dataclasses import replace
from functools import partial
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from levels import (
    READY,
    REST,
    assert_same_values,
    modeled_bytes,
    planned_bytes,
)
from modules import parse, run
from programs import Program, programs
from sampling import examples
from tensor_programs import tensor_program

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.fuse import TGraphFuse
from tensorplan.passes.tgraph.rematerialize import TGraphRematerialize
from tensorplan.passes.tgraph.schedule import TGraphSchedule
from tensorplan.runtime.executor import Executable


@pytest.mark.thorough
@settings(max_examples=examples(500))
@given(programs(max_ops=40))
def test_scheduled_plan_is_never_larger(program: Program) -> None:
    ready = run(program.module, *READY)
    scheduled = run(ready, TGraphSchedule())
    assert planned_bytes(run(scheduled, *REST)) <= planned_bytes(run(ready, *REST))


@settings(max_examples=examples(150))
@given(programs(max_ops=40))
def test_modeled_bytes_equal_bufferized_bytes(program: Program) -> None:
    ready = run(program.module, *READY)
    pools = tensorplan.report(run(ready, *REST))["pools"]
    stored = sum(-(-pool["lower_bound_bytes"] // 64) * 64 for pool in pools)
    assert modeled_bytes(ready) == stored


@settings(max_examples=examples(400))
@given(programs(max_ops=40))
def test_schedule_keeps_values(program: Program) -> None:
    scheduled = run(program.module, *READY, TGraphSchedule())
    assert_same_values(program, scheduled, run(scheduled, *REST))


@settings(max_examples=examples(300))
@given(programs(max_ops=40))
def test_recomputation_keeps_values_and_never_raises_the_peak(program: Program) -> None:
    ready = run(program.module, *READY)
    before = modeled_bytes(ready)
    again = run(ready, TGraphRematerialize(max(before * 6 // 10, 1)))
    planned = run(again, *REST)
    assert modeled_bytes(again) <= before
    assert planned_bytes(planned) <= planned_bytes(run(ready, *REST))
    assert_same_values(program, again, planned)


@pytest.mark.thorough
@settings(max_examples=examples(300))
@given(programs(max_ops=40))
def test_budget_is_met_or_refused(program: Program) -> None:
    free = planned_bytes(tensorplan.plan(program.module))
    budget = max(free * 8 // 10, 1)
    try:
        planned = tensorplan.plan(program.module, budget=budget)
    except LocatedError as error:
        message = str(error)
    else:
        message = f"more than the budget of {budget}"
        assert planned_bytes(planned) <= budget
    assert f"more than the budget of {budget}" in message


def test_devices_are_scheduled_separately() -> None:
    """No schedule raises the peak of one device to lower that of another."""
    product = """{lhs_contracting_dimensions = array<i64: 0>,
      rhs_contracting_dimensions = array<i64: 0>} : tensor<32x32xf32, "cpu:%d">"""
    total = """{kind = "add", dimensions = array<i64: 0>}
      : (tensor<32x32xf32, "cpu:%d">) -> tensor<32xf32, "cpu:%d">"""
    body: list[str] = []
    for device in (0, 1):
        a, b = f"%a{device}", f"%b{device}"
        body += [
            f"%p{device} = tgraph.dot_general {a}, {a} " + product % device,
            f"%q{device} = tgraph.dot_general {b}, {b} " + product % device,
            f"%s{device} = tgraph.reduce %p{device} " + total % (device, device),
            f"%t{device} = tgraph.reduce %q{device} " + total % (device, device),
        ]
    arguments = ", ".join(
        f'%{n}{d}: tensor<32x32xf32, "cpu:{d}">' for d in (0, 1) for n in "ab"
    )
    results = [f"%{n}{d}" for d in (0, 1) for n in "st"]
    types = ", ".join(f'tensor<32xf32, "cpu:{d}">' for d in (0, 0, 1, 1))
    module = parse(
        f"func.func @main({arguments}) -> ({types}) {{\n"
        + "\n".join(body)
        + f"\nfunc.return {', '.join(results)} : {types}\n}}"
    )
    pools = tensorplan.report(run(module, *REST))["pools"]
    assert [pool["bytes"] for pool in pools] == [8192, 8192]
    pools = tensorplan.report(run(module, TGraphSchedule(), *REST))["pools"]
    assert [pool["bytes"] for pool in pools] == [4096, 4096]


def test_exact_search_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    module = parse("""
func.func @main(%x: tensor<64xf32>, %y: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %a = tgraph.exponential %y : tensor<8x64xf32>
  %b = tgraph.tanh %a : tensor<8x64xf32>
  %c = tgraph.add %a, %b : tensor<8x64xf32>
  func.return %c : tensor<8x64xf32>
}""")
    with pytest.raises(LocatedError, match=r"pip install '\.\[exact\]'"):
        run(module, TGraphRematerialize("1KiB", exact=True))


@pytest.mark.slow
def test_small_gpt2_trains_in_two_fifths_of_its_memory() -> None:
    pytest.importorskip("jax")
    import jax
    from gpt2 import loss, parameters, sgd_step

    weights = parameters(layers=2, width=64, vocabulary=256, length=64)
    tokens = np.random.default_rng(1).integers(0, 256, (4, 64)).astype(np.int32)
    step = tensorplan.from_jax(
        partial(sgd_step, heads=4), weights, tokens, donate_argnums=0
    ).module
    forward = tensorplan.from_jax(partial(loss, heads=4), weights, tokens).module
    passes = [
        replace(p, duplicate=False) if isinstance(p, TGraphFuse) else p
        for p in PlanPipeline().passes()
        if not isinstance(p, TGraphRematerialize)
    ]
    kept = run(step, *passes)  # without any recomputation
    budget = int(planned_bytes(kept) * 0.4)
    fitted = tensorplan.plan(step, budget=budget)
    assert planned_bytes(fitted) <= budget
    report = tensorplan.report(fitted)
    forward_flops = tensorplan.report(tensorplan.plan(forward))["flops"]
    assert 0 < report["recomputed_flops"] <= 0.35 * forward_flops

    arguments = [*jax.tree.leaves(weights), tokens]
    for _ in range(2):
        want = Executable(kept)(*[a.copy() for a in arguments])
        got = Executable(fitted)(*[a.copy() for a in arguments])
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
        arguments = [*got[:-1], tokens]


@pytest.mark.parametrize("seed", [23, 1039])
def test_arena_does_not_grow_beside_results(seed: int) -> None:
    """Fewer bytes are live in another order, but more of them in the arena, since fewer
    fit into the memory of results."""
    module = tensor_program(Random(seed), 40)
    every = PlanPipeline().passes()
    others = [p for p in every if not isinstance(p, TGraphSchedule)]
    assert planned_bytes(run(module, *every)) <= planned_bytes(run(module, *others))
