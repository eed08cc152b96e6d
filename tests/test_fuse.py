"""Tests `tgraph-fuse` and the kernels of groups: fusion keeps values, does not raise
the peak, and makes groups of the expected forms."""

from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from programs import Program, programs
from sampling import examples
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass

import tensorplan
from tensorplan.analysis.cost import time
from tensorplan.dialects.tgraph.fusing import Form
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.dialects.tgraph.structure import FusionOp
from tensorplan.passes import driver
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.tgraph.bufferize import TGraphBufferize
from tensorplan.passes.tgraph.eliminate_assigns import TGraphEliminateAssigns
from tensorplan.passes.tgraph.fuse import TGraphFuse
from tensorplan.passes.tgraph.fusion.groups import Function, Grouping, grouped
from tensorplan.passes.tgraph.fusion.peak import Peak
from tensorplan.passes.tgraph.place_devices import TGraphPlaceDevices
from tensorplan.runtime.executor import Executable

KEEP_PEAK = Path(__file__).parent.parent / "lit_tests/tgraph-fuse/keep-peak.mlir"
PLACE = (TGraphPlaceDevices(default="cpu:0"), TGraphEliminateAssigns())
REST = (TGraphBufferize(), PlanMemory())
MODES = [
    TGraphFuse(),
    TGraphFuse(keep_peak=False),
    TGraphFuse(max_depth=3),
    TGraphFuse(mode="nnvm"),
    TGraphFuse(mode="none"),
]


def run(module: ModuleOp, *passes: ModulePass) -> ModuleOp:
    copy = module.clone()
    driver.run(tensorplan.context(), copy, passes)
    return copy


def parse(text: str) -> ModuleOp:
    return Parser(tensorplan.context(), text).parse_module()


def inputs(module: ModuleOp) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [
        np.asarray(rng.integers(-8, 9, i.shape) / 4).astype(i.dtype)
        for i in signature(module).inputs
    ]


def forms(module: ModuleOp) -> list[Form | None]:
    fusions = [op for op in module.walk() if isinstance(op, FusionOp)]
    groups = [op.group() for op in fusions]
    return [None if group is None else group.form for group in groups]


def lower_bound(module: ModuleOp) -> int:
    pools = tensorplan.report(module)["pools"]
    return sum(pool["lower_bound_bytes"] for pool in pools)


# Programs


@settings(max_examples=examples(200))
@given(programs(max_ops=30))
def test_fusion_never_raises_the_peak(program: Program) -> None:
    placed = run(program.module, *PLACE)
    alone = run(placed, *REST)
    assert lower_bound(run(placed, TGraphFuse(), *REST)) <= lower_bound(alone)


def test_dividing_groups_equals_grouping_from_scratch() -> None:
    divided: list[Set[int]] = []

    def recorded(
        function: Function,
        candidate: Sequence[int],
        stored: Set[int],
        before: Grouping | None = None,
    ) -> Grouping:
        new = grouped(function, candidate, stored)
        found = grouped(function, candidate, stored, before)
        if before:
            divided.append(stored - before.stored)
        assert list(found.roots) == list(new.roots)
        assert list(found.members.items()) == list(new.members.items())
        assert [group.form for group in found.groups.values()] == [
            group.form for group in new.groups.values()
        ]
        return found

    with patch("tensorplan.passes.tgraph.fuse.grouped", recorded):
        run(parse(KEEP_PEAK.read_text()), *PLACE, TGraphFuse())
    assert any(divided)


def test_fusion_may_raise_the_peak_without_keep_peak() -> None:
    """In this program, fusing the first add would keep its operands live across the
    peak."""
    placed = run(parse(KEEP_PEAK.read_text()), *PLACE)
    alone, kept, raised = (
        lower_bound(run(placed, *fuse, *REST))
        for fuse in ((), (TGraphFuse(),), (TGraphFuse(keep_peak=False),))
    )
    assert kept <= alone < raised


@pytest.mark.parametrize("fuse", MODES, ids=str)
@settings(max_examples=examples(200))
@given(program=programs(max_ops=30))
def test_every_mode_keeps_the_values(fuse: TGraphFuse, program: Program) -> None:
    want = run_reference(program.module, inputs(program.module))
    fused = run(program.module, *PLACE, fuse)
    planned = Executable(run(fused, *REST), sanitize=True, native=False)
    for got in (
        run_reference(fused, inputs(program.module)),
        planned(*inputs(program.module)),
    ):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


# Forms


def softmax(rows: Sequence[int], columns: int, element: str = "f32") -> str:
    row = "x".join(map(str, [*rows, element]))
    full = "x".join(map(str, [*rows, columns, element]))
    dims = ", ".join(map(str, range(len(rows))))
    dims = f"array<i64: {dims}>" if dims else "array<i64>"
    reduced = f"dimensions = array<i64: {len(rows)}>"
    spread = f"{{broadcast_dimensions = {dims}}} : (tensor<{row}>) -> tensor<{full}>"
    reduce = f"{reduced}}} : (tensor<{full}>) -> tensor<{row}>"
    return f"""
func.func @main(%x: tensor<{full}>) -> tensor<{full}> {{
  %m = tgraph.reduce %x {{kind = "maximum", {reduce}
  %mb = tgraph.broadcast_in_dim %m {spread}
  %d = tgraph.subtract %x, %mb : tensor<{full}>
  %e = tgraph.exponential %d : tensor<{full}>
  %s = tgraph.reduce %e {{kind = "add", {reduce}
  %r = tgraph.log %s : tensor<{row}>
  %f = tgraph.exponential %r : tensor<{row}>
  %sb = tgraph.broadcast_in_dim %f {spread}
  %y = tgraph.divide %e, %sb : tensor<{full}>
  func.return %y : tensor<{full}>
}}"""


def reduction(
    shape: Sequence[int], dims: Sequence[int], kind: str, element: str = "f32"
) -> str:
    full = "x".join(map(str, [*shape, element]))
    kept = "x".join([str(s) for d, s in enumerate(shape) if d not in dims] + [element])
    axes = ", ".join(map(str, dims))
    return f"""
func.func @main(%x: tensor<{full}>, %z: tensor<{full}>) -> tensor<{kept}> {{
  %a = tgraph.add %x, %z : tensor<{full}>
  %b = tgraph.multiply %a, %x : tensor<{full}>
  %r = tgraph.reduce %b {{kind = "{kind}", dimensions = array<i64: {axes}>}}
       : (tensor<{full}>) -> tensor<{kept}>
  func.return %r : tensor<{kept}>
}}"""


def dense(m: int, k: int, n: int, last: str = "tanh") -> str:
    return f"""
func.func @main(%x: tensor<{m}x{k}xf32>, %w: tensor<{k}x{n}xf32>, %b: tensor<{n}xf32>,
                %z: tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
  %bb = tgraph.broadcast_in_dim %b {{broadcast_dimensions = array<i64: 1>}}
        : (tensor<{n}xf32>) -> tensor<{m}x{n}xf32>
  %d = tgraph.dot_general %x, %w {{lhs_contracting_dimensions = array<i64: 1>,
       rhs_contracting_dimensions = array<i64: 0>}}
       : (tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %s = tgraph.add %d, %bb : tensor<{m}x{n}xf32>
  %t = tgraph.{last} %s : tensor<{m}x{n}xf32>
  %y = tgraph.multiply %t, %z : tensor<{m}x{n}xf32>
  %u = tgraph.add %y, %d : tensor<{m}x{n}xf32>
  func.return %u : tensor<{m}x{n}xf32>
}}"""


@pytest.mark.parametrize(
    ("text", "form"),
    [
        *((softmax(rows, n), Form.ROWS) for rows, n in [
            ((), 7), ((3,), 5), ((300,), 513), ((2, 3, 70), 900), ((3,), 40000),
            ((1,), 1), ((5, 1), 8),
        ]),
        (softmax((40,), 70, "f16"), Form.ROWS),
        *((reduction(shape, dims, "add"), Form.REDUCTION) for shape, dims in [
            ((6, 5), (0,)), ((5000, 40), (0,)), ((5000, 40), (1,)),
            ((70, 60, 50), (1,)), ((70, 60, 50), (0, 2)), ((300, 400), (0, 1)),
            ((3, 100000), (1,)),
        ]),
        (reduction((700, 80), (0,), "maximum"), Form.REDUCTION),
        (reduction((700, 80), (0,), "minimum", "i32"), Form.REDUCTION),
        (reduction((700, 80), (0,), "add", "i32"), Form.REDUCTION),
        (reduction((700, 80), (0, 1), "add", "f16"), Form.REDUCTION),
        (dense(3, 4, 5), Form.CONTRACTION),
        (dense(300, 64, 200, "logistic"), Form.CONTRACTION),
    ],
)  # fmt: skip
def test_forms_and_values_of_groups(text: str, form: Form) -> None:
    module = parse(text)
    fused = run(module, *PLACE, TGraphFuse())
    assert forms(fused) == [form]
    want = run_reference(module, inputs(module))
    planned = run(fused, *REST)
    for native in (False, True):
        got = Executable(planned, sanitize=True, native=native)(*inputs(module))
        for a, b in zip(got, want, strict=True):
            tolerance = 2e-3 if a.dtype == np.float16 else 2e-5
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=1e-6)


@pytest.mark.parametrize("native", [False, True])
def test_group_of_rows_is_computed_in_place(native: bool) -> None:
    """A group of rows overwrites an operand that has no later reader."""
    text = """
  %c = tgraph.concatenate %a, %a {dimension = 0 : i64}
       : (tensor<150x600xf32>, tensor<150x600xf32>) -> tensor<300x600xf32>"""
    body = softmax((300,), 600).replace("%x: tensor<300x", "%a: tensor<150x")
    body = body.replace("%x", "%c").replace("\n  %m", text + "\n  %m", 1)
    body = body.replace("return %y", "return %z")
    body = body.replace("\n  func.return", """
  %z = tgraph.concatenate %y {dimension = 0 : i64} : tensor<300x600xf32>
  func.return""")  # fmt: skip
    module = parse(body)
    planned = run(module, *PLACE, TGraphFuse(), *REST)
    (fusion,) = (op for op in planned.walk() if isinstance(op, FusionOp))
    assert list(fusion.inputs) == list(fusion.outs)
    got = Executable(planned, native=native)(*inputs(module))
    for a, b in zip(got, run_reference(module, inputs(module)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5)


def test_workspace_does_not_grow_with_the_tensors() -> None:
    def scratch(text: str) -> int:
        planned = run(parse(text), *PLACE, TGraphFuse(), *REST)
        return Executable(planned, native=False).scratch_bytes

    for small, large in (
        (softmax((1000,), 100), softmax((8000,), 100)),
        (reduction((1000, 100), (0,), "add"), reduction((8000, 100), (0,), "add")),
        (dense(300, 64, 200), dense(3000, 64, 200)),
    ):
        assert scratch(large) < 1.1 * scratch(small) < 1 << 20


# Bodies of fusions that no pass creates


BODIES = {
    "a view between": """
  %r = tgraph.fusion(%a = %x) : (tensor<4x8xf32>) -> tensor<8x4xf32> {
    %e = tgraph.exponential %a : tensor<4x8xf32>
    %t = tgraph.transpose %e {permutation = array<i64: 1, 0>}
         : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %n = tgraph.negate %t : tensor<8x4xf32>
    tgraph.yield %n : tensor<8x4xf32>
  }
  func.return %r : tensor<8x4xf32>""",
    "views of arguments": """
  %r = tgraph.fusion(%a = %x) : (tensor<4x8xf32>) -> tensor<8x4xf32> {
    %t = tgraph.transpose %a {permutation = array<i64: 1, 0>}
         : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %v = tgraph.reshape %a : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %w = tgraph.reverse %v {dimensions = array<i64: 0>} : tensor<8x4xf32>
    %n = tgraph.add %t, %w : tensor<8x4xf32>
    tgraph.yield %n : tensor<8x4xf32>
  }
  func.return %r : tensor<8x4xf32>""",
    "a reshape that no view says": """
  %r = tgraph.fusion(%a = %x) : (tensor<4x8xf32>) -> tensor<32xf32> {
    %t = tgraph.transpose %a {permutation = array<i64: 1, 0>}
         : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %v = tgraph.reshape %t : (tensor<8x4xf32>) -> tensor<32xf32>
    %n = tgraph.negate %v : tensor<32xf32>
    tgraph.yield %n : tensor<32xf32>
  }
  func.return %r : tensor<32xf32>""",
    "a concatenation": """
  %r = tgraph.fusion(%a = %x) : (tensor<4x8xf32>) -> tensor<8x8xf32> {
    %e = tgraph.exponential %a : tensor<4x8xf32>
    %c = tgraph.concatenate %e, %a {dimension = 0 : i64}
         : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    tgraph.yield %c : tensor<8x8xf32>
  }
  func.return %r : tensor<8x8xf32>""",
    "an argument": """
  %r = tgraph.fusion(%a = %x) : tensor<4x8xf32> {
    %dead = tgraph.negate %a : tensor<4x8xf32>
    tgraph.yield %a : tensor<4x8xf32>
  }
  func.return %r : tensor<4x8xf32>""",
    "two results": """
  %r, %s = tgraph.fusion(%a = %x)
           : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %e = tgraph.exponential %a : tensor<4x8xf32>
    %n = tgraph.negate %e : tensor<4x8xf32>
    tgraph.yield %e, %n : tensor<4x8xf32>, tensor<4x8xf32>
  }
  func.return %r, %s : tensor<4x8xf32>, tensor<4x8xf32>""",
    "a wider type after a product": """
  %r = tgraph.fusion(%a = %x) : (tensor<4x8xf32>) -> tensor<4x4xf64> {
    %d = tgraph.dot_general %a, %a {lhs_contracting_dimensions = array<i64: 1>,
         rhs_contracting_dimensions = array<i64: 1>}
         : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
    %c = tgraph.convert %d : (tensor<4x4xf32>) -> tensor<4x4xf64>
    tgraph.yield %c : tensor<4x4xf64>
  }
  func.return %r : tensor<4x4xf64>""",
}


@pytest.mark.parametrize("name", BODIES)
def test_unusual_bodies_of_fusions_run(name: str) -> None:
    body = BODIES[name]
    types = body.rpartition(" : ")[2]
    module = parse(f"func.func @main(%x: tensor<4x8xf32>) -> ({types}) {{{body}\n}}")
    want = run_reference(module, inputs(module))
    planned = run(module, *PLACE, *REST)
    for native in (False, True):
        got = Executable(planned, sanitize=True, native=native)(*inputs(module))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_values_are_recomputed_if_that_is_faster_than_reading() -> None:
    """The pairwise differences follow from few numbers, so computing them again takes
    less time than reading them. The plan of this Hessian stores one array of them."""
    jax = pytest.importorskip("jax")

    def energy(x: Any) -> Any:
        apart = x[:, None] - x[None]
        squares = jax.numpy.sum(apart * apart, -1) + 0.01
        return jax.numpy.sum(jax.numpy.exp(-squares) / squares)

    x = np.zeros((16, 3), np.float32)
    planned = tensorplan.plan(tensorplan.from_jax(jax.hessian(energy), x))
    (pool,) = tensorplan.report(planned)["pools"]
    assert pool["bytes"] < 1.5 * (48 * 16 * 16 * 3 * 4)


BIASED = """
func.func @main(%q: tensor<2x64x256xf32>, %k: tensor<2x256x128xf32>,
    %d: tensor<64x128xf32>, %s: tensor<128xf32>, %r: tensor<1x128xf32>,
    %w: tensor<2x128x8xf32>) -> tensor<2x64x8xf32> {
  BIAS
  %scores = tgraph.dot_general %q, %k
    {lhs_batching_dimensions = array<i64: 0>, rhs_batching_dimensions = array<i64: 0>,
     lhs_contracting_dimensions = array<i64: 2>,
     rhs_contracting_dimensions = array<i64: 1>}
    : (tensor<2x64x256xf32>, tensor<2x256x128xf32>) -> tensor<2x64x128xf32>
  %1 = tgraph.broadcast_in_dim %bias {broadcast_dimensions = array<i64: 1, 2>}
    : (tensor<64x128xf32>) -> tensor<2x64x128xf32>
  %2 = tgraph.add %scores, %1 : tensor<2x64x128xf32>
  %3 = tgraph.dot_general %2, %w
    {lhs_batching_dimensions = array<i64: 0>, rhs_batching_dimensions = array<i64: 0>,
     lhs_contracting_dimensions = array<i64: 2>,
     rhs_contracting_dimensions = array<i64: 1>}
    : (tensor<2x64x128xf32>, tensor<2x128x8xf32>) -> tensor<2x64x8xf32>
  func.return %3 : tensor<2x64x8xf32>
}"""

BIASES = {
    "rows": """
      %0 = tgraph.broadcast_in_dim %s {broadcast_dimensions = array<i64: 1>}
        : (tensor<128xf32>) -> tensor<64x128xf32>
      %bias = tgraph.multiply %d, %0 : tensor<64x128xf32>""",
    "a row": """
      %0 = tgraph.broadcast_in_dim %r {broadcast_dimensions = array<i64: 0, 1>}
        : (tensor<1x128xf32>) -> tensor<64x128xf32>
      %bias = tgraph.multiply %d, %0 : tensor<64x128xf32>""",
    "distances": """
      %i = tgraph.iota {dimension = 0 : i64} : tensor<64x128xf32>
      %j = tgraph.iota {dimension = 0 : i64} : tensor<128xf32>
      %0 = tgraph.broadcast_in_dim %j {broadcast_dimensions = array<i64: 1>}
        : (tensor<128xf32>) -> tensor<64x128xf32>
      %apart = tgraph.subtract %i, %0 : tensor<64x128xf32>
      %bias = tgraph.multiply %d, %apart : tensor<64x128xf32>""",
    "a transposition": """
      %t = tgraph.reshape %d : (tensor<64x128xf32>) -> tensor<128x64xf32>
      %0 = tgraph.negate %t : tensor<128x64xf32>
      %bias = tgraph.transpose %0 {permutation = array<i64: 1, 0>}
        : (tensor<128x64xf32>) -> tensor<64x128xf32>""",
    "what is repeated too often": """
      %e = tgraph.negate %s : tensor<128xf32>
      %0 = tgraph.broadcast_in_dim %e {broadcast_dimensions = array<i64: 1>}
        : (tensor<128xf32>) -> tensor<64x128xf32>
      %bias = tgraph.multiply %d, %0 : tensor<64x128xf32>""",
}


@pytest.mark.parametrize("name", BIASES)
def test_broadcast_values_are_computed_where_they_are_read(name: str) -> None:
    module = parse(BIASED.replace("BIAS", BIASES[name]))
    want = run_reference(module, inputs(module))
    planned = run(module, *PLACE, TGraphFuse(), *REST)
    is_stored = "to memref<64x128xf32" in str(planned)
    assert is_stored == (name == "a transposition")
    for native in (False, True):
        (got,) = Executable(planned, sanitize=True, native=native)(*inputs(module))
        np.testing.assert_allclose(got, want[0], rtol=1e-4, atol=1e-4)


TWO_PRODUCTS = """
func.func @main(%x: tensor<5x2xf32>, %w: tensor<2x2xf32>)
    -> (tensor<f32>, tensor<2x2xf32>, tensor<5x2xf32>) {
  %0 = tgraph.dot_general %x, %w
    {lhs_contracting_dimensions = array<i64: 1>,
     rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<5x2xf32>, tensor<2x2xf32>) -> tensor<5x2xf32>
  %1 = tgraph.tanh %0 : tensor<5x2xf32>
  %2 = tgraph.exponential %1 : tensor<5x2xf32>
  %3 = tgraph.dot_general %2, %w
    {lhs_contracting_dimensions = array<i64: 1>,
     rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<5x2xf32>, tensor<2x2xf32>) -> tensor<5x2xf32>
  %4 = tgraph.add %x, %3 : tensor<5x2xf32>
  %5 = tgraph.dot_general %x, %3
    {lhs_contracting_dimensions = array<i64: 0>,
     rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<2x2xf32>
  %6 = tgraph.subtract %w, %5 : tensor<2x2xf32>
  %7 = tgraph.multiply %1, %3 : tensor<5x2xf32>
  %8 = tgraph.reduce %7 {kind = "add", dimensions = array<i64: 0, 1>}
    : (tensor<5x2xf32>) -> tensor<f32>
  func.return %8, %6, %4 : tensor<f32>, tensor<2x2xf32>, tensor<5x2xf32>
}
"""


def test_estimated_time_of_groups_equals_that_of_fusions() -> None:
    """The estimated time of groups equals that of the fusions that the pass makes of
    them. Both include the time that the library takes to start a product. The limit for
    recomputation is a share of this time."""
    module = Parser(tensorplan.context(), TWO_PRODUCTS).parse_module()
    (block,) = (op.body.block for op in module.ops if isinstance(op, FuncOp))
    function, grouping = TGraphFuse(duplicate=False).choose(block)
    before = Peak(function).time(grouping)
    TGraphFuse(duplicate=False).apply(tensorplan.context(), module)
    assert any(isinstance(op, FusionOp) for op in block.ops)
    assert before == pytest.approx(sum(map(time, block.ops)), rel=0.01)
