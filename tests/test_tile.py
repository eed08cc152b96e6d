"""Tests `tgraph-tile`: equal bits, never more bytes, and the bytes that it saves."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from levels import (
    READY,
    REST,
    assert_same_values,
    inputs,
    modeled_bytes,
    planned_bytes,
)
from modules import parse, run
from programs import Program, programs
from sampling import examples
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.analysis.functions import tensor_functions
from tensorplan.dialects import workspaces
from tensorplan.dialects.tgraph.base import TensorOp, shape_of, tensor_type_of
from tensorplan.dialects.tgraph.reducing import DotGeneralOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.shaping import ConcatenateOp
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.tgraph.bufferize import TGraphBufferize
from tensorplan.passes.tgraph.schedule import TGraphSchedule
from tensorplan.passes.tgraph.shared.fitting import PlannedBytes
from tensorplan.passes.tgraph.tile import TGraphTile
from tensorplan.runtime.executor import Executable

MODELS = Path(__file__).parent / "models"

EAGER = TGraphTile(max_slowdown=100.0, reuse_outputs=False)
"""Tiles at any cost. For small operations, the cost consists of launching them."""


@settings(max_examples=examples(200))
@given(programs(max_ops=40))
def test_values_are_unchanged_and_the_peak_never_rises(program: Program) -> None:
    ready = run(program.module, *READY, TGraphSchedule())
    tiled = run(ready, EAGER)
    planned = run(tiled, *REST)
    assert modeled_bytes(tiled) <= modeled_bytes(ready)
    assert planned_bytes(planned) <= planned_bytes(run(ready, *REST))
    assert_same_values(program, tiled, planned)


@pytest.mark.thorough
@settings(max_examples=examples(500))
@given(programs(max_ops=40))
def test_peak_never_rises_with_reuse_of_outputs(program: Program) -> None:
    ready = run(program.module, *READY, TGraphSchedule())
    tiled = run(ready, TGraphTile(max_slowdown=100.0))
    rest = (TGraphBufferize(), PlanMemory())
    planned = run(tiled, *rest)
    assert planned_bytes(planned) <= planned_bytes(run(ready, *rest))
    assert_same_values(program, tiled, planned)


@settings(max_examples=examples(400))
@given(programs(max_ops=40))
def test_unfused_operations_are_tiled(program: Program) -> None:
    ready = run(program.module, *READY[:2], *READY[3:])
    tiled = run(ready, EAGER)
    assert modeled_bytes(tiled) <= modeled_bytes(ready)
    assert_same_values(program, tiled, run(tiled, *REST))


def attention(length: int) -> ModuleOp:
    """Attention with 4 heads: softmax of queries times keys, multiplied by values."""
    line, square = f"tensor<4x{length}x16xf32>", f"tensor<4x{length}x{length}xf32>"
    row = f"tensor<4x{length}xf32>"
    heads = "lhs_batching_dimensions = array<i64: 0>, "
    heads += "rhs_batching_dimensions = array<i64: 0>, "
    spread = "tgraph.broadcast_in_dim %{} {{broadcast_dimensions = array<i64: 0, 1>}}"
    total = 'tgraph.reduce %{} {{kind = "{}", dimensions = array<i64: 2>}}'
    return parse(f"""
func.func @main(%q: {line}, %k: {line}, %v: {line}) -> {line} {{
  %0 = tgraph.dot_general %q, %k {{{heads}
    lhs_contracting_dimensions = array<i64: 2>,
    rhs_contracting_dimensions = array<i64: 2>}} : ({line}, {line}) -> {square}
  %1 = {total.format(0, "maximum")} : ({square}) -> {row}
  %2 = {spread.format(1)} : ({row}) -> {square}
  %3 = tgraph.subtract %0, %2 : {square}
  %4 = tgraph.exponential %3 : {square}
  %5 = {total.format(4, "add")} : ({square}) -> {row}
  %6 = {spread.format(5)} : ({row}) -> {square}
  %7 = tgraph.divide %4, %6 : {square}
  %8 = tgraph.dot_general %7, %v {{{heads}
    lhs_contracting_dimensions = array<i64: 2>,
    rhs_contracting_dimensions = array<i64: 1>}} : ({square}, {line}) -> {line}
  func.return %8 : {line}
}}""")


@pytest.mark.parametrize("tiles", [1, 2, 4, 8])
def test_attention_needs_the_scores_of_one_tile(tiles: int) -> None:
    ready = run(attention(64), *READY)
    tiled = run(ready, TGraphTile(tiles, max_slowdown=1.0, reuse_outputs=False))
    planned = run(tiled, *REST)
    assert planned_bytes(planned) == 4 * 64 * 64 * 4 // tiles
    want = run_reference(ready, inputs(ready))
    for got in (
        run_reference(tiled, inputs(ready)),
        Executable(planned)(*inputs(ready)),
    ):
        np.testing.assert_allclose(got[0], want[0], rtol=1e-4, atol=1e-6)


def test_tiles_of_several_results() -> None:
    """Each tile computes the two greatest scores of its rows, and their indices."""
    module = parse("""
func.func @main(%x: tensor<16x8xf32>, %y: tensor<8x128xf32>)
    -> (tensor<16x2xf32>, tensor<16x2xi32>) {
  %0 = tgraph.dot_general %x, %y {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<16x8xf32>, tensor<8x128xf32>) -> tensor<16x128xf32>
  %1, %2 = tgraph.sort %0 {
      dimension = 1 : i64, count = 2 : i64, positions = array<i64: 1>}
      : (tensor<16x128xf32>) -> (tensor<16x2xf32>, tensor<16x2xi32>) {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
      %greater = tgraph.compare %a, %b {direction = "GT"}
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
      tgraph.yield %greater : tensor<i1>
  }
  func.return %1, %2 : tensor<16x2xf32>, tensor<16x2xi32>
}""")
    ready = run(module, *READY)
    tiled = run(ready, EAGER)
    planned = run(tiled, *REST)
    assert planned_bytes(planned) == 16 * 128 * 4 // 8
    want = run_reference(ready, inputs(ready))
    for got in (
        run_reference(tiled, inputs(ready)),
        Executable(planned)(*inputs(ready)),
    ):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_more_slowdown_saves_more_memory() -> None:
    ready = run(attention(64), *READY)
    peaks = [
        modeled_bytes(
            run(ready, TGraphTile(max_slowdown=slowdown, reuse_outputs=False))
        )
        for slowdown in (0.0, 0.05, 0.1, 0.5)
    ]
    assert peaks[0] == modeled_bytes(ready)
    assert all(less <= more for more, less in pairwise(peaks))
    assert peaks[-1] < peaks[0]


def test_budget_is_met_with_the_fewest_tiles() -> None:
    ready, scores = run(attention(64), *READY), 4 * 64 * 64 * 4
    for budget, bytes in {
        scores: scores,
        scores - 1: scores // 2,
        scores // 4: scores // 4,
        1: scores // 8,  # as few bytes as the tiles allow
    }.items():
        tile = TGraphTile(max_slowdown=1.0, reuse_outputs=False, budget=budget)
        assert planned_bytes(run(run(ready, tile), *REST)) == bytes
    with pytest.raises(ValueError, match="-1"):
        TGraphTile(budget="-1")


def test_budgets_above_one_that_is_met_are_met() -> None:
    """Few operations exceed 10 MB; the region around them is found from wider ranges
    that exceed a part of it."""
    module = tensorplan.from_stablehlo(MODELS / "resnet18_infer.mlir").module
    ready = run(module, *READY)
    for budget in (6 << 20, 10 << 20):
        tile = TGraphTile(tile_bytes=0, reuse_outputs=False, budget=budget)
        assert modeled_bytes(run(ready, tile)) <= budget


def gathers(sizes: Sequence[int], *along: int) -> ModuleOp:
    """Gathers along several dimensions with the same indices."""
    size, image = sizes[0], f"tensor<{'x'.join(map(str, sizes))}xf32>"

    def gather(value: str, dim: int) -> str:
        slice = ", ".join("1" if d == dim else str(n) for d, n in enumerate(sizes))
        others = ", ".join(str(d) for d in range(len(sizes)) if d != dim)
        return f"""tgraph.gather {value}, %i1 {{
            offset_dims = array<i64: {others}>, index_vector_dim = 1 : i64,
            collapsed_slice_dims = array<i64: {dim}>,
            start_index_map = array<i64: {dim}>, slice_sizes = array<i64: {slice}>
          }} : ({image}, tensor<{size}x1xi32>) -> {image}"""

    return parse(f"""
    func.func @main(%x: {image}, %i: tensor<{size}xi32>) -> {image} {{
      %i0 = tgraph.multiply %i, %i : tensor<{size}xi32>
      %i1 = tgraph.reshape %i0 : (tensor<{size}xi32>) -> tensor<{size}x1xi32>
      %0 = {gather("%x", along[0])}
      %1 = {gather("%0", along[1])}
      func.return %1 : {image}
    }}""")


def test_indices_are_sliced_for_only_one_of_two_readers() -> None:
    ready = run(gathers((256, 256, 8), 0, 1), *READY)
    tiled = run(ready, TGraphTile(reuse_outputs=False))
    assert planned_bytes(run(tiled, *REST)) < planned_bytes(run(ready, *REST)) // 7
    x = np.random.default_rng(0).standard_normal((256, 256, 8), np.float32)
    i = np.arange(256, dtype=np.int32)[::-1] % 16
    (got,) = run_reference(tiled, [x, i])
    np.testing.assert_array_equal(got, x[i * i][:, i * i])


def test_tiles_gather_only_their_rows() -> None:
    """The gather is part of a group. A tile does not count as a reader of the whole
    table."""
    ready = run(
        parse("""
    func.func @main(%table: tensor<20000x64xf32>, %i: tensor<512x1xi32>,
                    %w: tensor<64x8xf32>) -> tensor<512x8xf32> {
      %rows = tgraph.gather %table, %i {
          offset_dims = array<i64: 1>, index_vector_dim = 1 : i64,
          collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>,
          slice_sizes = array<i64: 1, 64>
        } : (tensor<20000x64xf32>, tensor<512x1xi32>) -> tensor<512x64xf32>
      %0 = tgraph.exponential %rows : tensor<512x64xf32>
      %1 = tgraph.dot_general %0, %w {
          lhs_contracting_dimensions = array<i64: 1>,
          rhs_contracting_dimensions = array<i64: 0>
        } : (tensor<512x64xf32>, tensor<64x8xf32>) -> tensor<512x8xf32>
      func.return %1 : tensor<512x8xf32>
    }"""),
        *READY,
    )
    tiled = run(ready, TGraphTile(reuse_outputs=False))
    whole, bytes = (planned_bytes(run(m, *REST)) for m in (ready, tiled))
    assert bytes <= whole * 9 // 10


def test_tiles_with_short_rows_are_too_slow() -> None:
    """Only the last dimension can be tiled, so tiles would have one element per row."""
    ready = run(gathers((4096, 8), 0, 0), *READY)
    sizes = [
        planned_bytes(run(run(ready, tile), *REST))
        for tile in (TGraphTile(reuse_outputs=False), EAGER)
    ]
    assert sizes[0] == planned_bytes(run(ready, *REST)) > 4 * sizes[1]


@pytest.mark.parametrize("model", ["resnet18_infer", "lenet_infer"])
def test_tiles_of_a_batch_of_images(model: str) -> None:
    module = tensorplan.from_stablehlo(MODELS / f"{model}.mlir").module
    ready = run(module, *READY)
    tiled = run(ready, TGraphTile())
    assert modeled_bytes(tiled) * 2 < modeled_bytes(ready)
    joined = [op for op in tiled.walk() if isinstance(op, ConcatenateOp)]
    assert joined
    copies = str(run(tiled, *REST)).count("memref.copy")
    assert copies == str(run(ready, *REST)).count("memref.copy")


def test_kernels_are_measured_only_if_relevant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workspaces, "_measures", dict(workspaces._measures))
    asked: list[TensorOp] = []
    workspaces.provide("asked", lambda: lambda op: asked.append(op) or 64)
    ready = run(attention(64), *READY)
    ((func, _),) = tensor_functions(ready)
    planned = PlannedBytes(TGraphTile(workspaces="asked"))
    beside_the_result = 4 * 64 * 64 * 4 - 4 * 64 * 16 * 4  # of scores
    assert planned.within(func, beside_the_result - 1) is None
    assert not asked
    assert planned.within(func, 1 << 20) == planned.of_all(func)
    assert asked


def test_kernels_of_equal_tiles_are_measured_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workspaces, "_measures", dict(workspaces._measures))
    asked: list[TensorOp] = []
    workspaces.provide("asked", lambda: lambda op: asked.append(op) or 64)
    tiled = run(attention(64), *READY, EAGER)
    ((func, _),) = tensor_functions(tiled)
    products = sum(op.name == DotGeneralOp.name for op in func.walk())
    PlannedBytes(TGraphTile(workspaces="asked")).of_all(func)
    assert sum(op.name == DotGeneralOp.name for op in asked) == 2 < products


def test_workspaces_of_tiles_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiling saves nothing if the tiles of the scores need a workspace of 1 MiB."""
    monkeypatch.setattr(workspaces, "_measures", dict(workspaces._measures))
    workspaces.provide("small", lambda: bytes_of)

    def bytes_of(op: TensorOp) -> int:
        return (
            2**20
            if prod(shape_of(tensor_type_of(op.outs[0].type))) < 4 * 64 * 16
            else 0
        )

    ready = run(attention(64), *READY)
    tiled = run(ready, TGraphTile(max_slowdown=1.0))
    assert len(list(tiled.walk())) > len(list(ready.walk()))
    kept = run(ready, TGraphTile(max_slowdown=1.0, workspaces="small"))
    assert str(kept) == str(ready)
