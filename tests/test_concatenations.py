"""Tests concatenations in place: their values, and that plans need the bytes that the
memory model predicts."""

import numpy as np
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
from xdsl.dialects.builtin import ModuleOp, UnitAttr

import tensorplan
from tensorplan.analysis.functions import tensor_functions
from tensorplan.analysis.memory_graph import memory_graph
from tensorplan.dialects.tgraph.base import IN_PLACE
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.shaping import ConcatenateOp
from tensorplan.passes.tgraph.rematerialize import TGraphRematerialize
from tensorplan.passes.tgraph.schedule import TGraphSchedule
from tensorplan.runtime.executor import Executable


def in_place(module: ModuleOp) -> ModuleOp:
    """The module with all its concatenations in place."""
    module = module.clone()
    for op in module.walk():
        if isinstance(op, ConcatenateOp):
            op.attributes[IN_PLACE] = UnitAttr()
    return module


@settings(max_examples=examples(150))
@given(programs(max_ops=40))
def test_values_and_bytes(program: Program) -> None:
    ready = in_place(run(program.module, *READY))
    planned = run(ready, *REST)
    assert_same_values(program, ready, planned)
    pools = tensorplan.report(planned)["pools"]
    stored = sum(-(-pool["lower_bound_bytes"] // 64) * 64 for pool in pools)
    assert modeled_bytes(ready) == stored


@settings(max_examples=examples(400))
@given(programs(max_ops=40))
def test_scheduling_and_rematerialization(program: Program) -> None:
    ready = in_place(run(program.module, *READY))
    budget = max(modeled_bytes(ready) * 6 // 10, 1)
    changed = run(ready, TGraphSchedule(), TGraphRematerialize(budget))
    planned = run(changed, *REST)
    assert planned_bytes(planned) <= planned_bytes(run(ready, *REST))
    assert_same_values(program, changed, planned)


def test_readers_depend_on_the_parts_that_they_read():
    """All parts lie in one buffer, which is live from the first part on."""
    module = parse("""
      func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<16xf32>) {
        %a = tgraph.exponential %x : tensor<8xf32>
        %b = tgraph.tanh %x : tensor<8xf32>
        %c = tgraph.concatenate %a, %b {dimension = 0 : i64, tgraph.in_place}
          : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
        %d = tgraph.negate %b : tensor<8xf32>
        %e = tgraph.negate %c : tensor<16xf32>
        func.return %d, %e : tensor<8xf32>, tensor<16xf32>
      }
    """)
    ((_, block),) = tensor_functions(module)
    _, _, concatenate, of_part, of_whole = memory_graph(block, 64).tasks
    assert 1 in of_part.after
    assert 2 in of_whole.after
    assert {0, 1} <= set(concatenate.after)


def test_operand_of_two_concatenations_is_computed_in_one_of_them():
    module = parse("""
      func.func @main(%x: tensor<4x6xf32>)
          -> (tensor<2x4x6xf32>, tensor<4x6x2xf32>, tensor<8x6xf32>) {
        %a = tgraph.exponential %x : tensor<4x6xf32>
        %b = tgraph.tanh %x : tensor<4x6xf32>
        %a1 = tgraph.reshape %a : (tensor<4x6xf32>) -> tensor<1x4x6xf32>
        %b1 = tgraph.reshape %b : (tensor<4x6xf32>) -> tensor<1x4x6xf32>
        %a2 = tgraph.reshape %a : (tensor<4x6xf32>) -> tensor<4x6x1xf32>
        %b2 = tgraph.broadcast_in_dim %b {broadcast_dimensions = array<i64: 0, 1>}
          : (tensor<4x6xf32>) -> tensor<4x6x1xf32>
        %c = tgraph.concatenate %b1, %b1 {dimension = 0 : i64, tgraph.in_place}
          : (tensor<1x4x6xf32>, tensor<1x4x6xf32>) -> tensor<2x4x6xf32>
        %d = tgraph.concatenate %a2, %b2 {dimension = 2 : i64, tgraph.in_place}
          : (tensor<4x6x1xf32>, tensor<4x6x1xf32>) -> tensor<4x6x2xf32>
        %a3 = tgraph.reshape %a1 : (tensor<1x4x6xf32>) -> tensor<4x6xf32>
        %e = tgraph.concatenate %b, %a3 {dimension = 0 : i64, tgraph.in_place}
          : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
        func.return %c, %d, %e
          : tensor<2x4x6xf32>, tensor<4x6x2xf32>, tensor<8x6xf32>
      }
    """)
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    expected = run_reference(module, [x])
    planned = run(module, READY[0], *REST)
    for native in (True, False):
        results = Executable(planned, native=native)(x)
        for result, value in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-6)
