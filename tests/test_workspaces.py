"""Tests planned kernel workspaces: runs need no other memory, and values stay equal."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from executables import assert_same, inputs, run
from levels import READY, predicted_arenas
from model_files import MODELS, model_files
from modules import run as with_passes
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import WhileOp
from xdsl.parser import Parser

import tensorplan
from tensorplan.checking.plan_check import check_plan
from tensorplan.dialects import workspaces
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.base import TensorOp, tensor_type_of
from tensorplan.dialects.tgraph.structure import FusionOp
from tensorplan.passes import driver
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.plan.workspaces import PlanWorkspaces
from tensorplan.reporting.peaks import peaks
from tensorplan.reporting.report import buffers
from tensorplan.runtime.backends.jit import llvm
from tensorplan.runtime.backends.native import functions
from tensorplan.runtime.backends.onednn import backend as onednn
from tensorplan.runtime.executor import Executable
from tensorplan.runtime.program.workspaces import Workspaces

KERNELS = ("native", "numpy")

# A product for which all kernels copy both operands into another layout.
PRODUCT = """
func.func @main(%x: memref<8x4x6xf64>, %w: memref<6x5x8xf64> {MARK},
                %y: memref<4x5xf64> {tgraph.result = 0 : i64}) {
  %0 = memref.alloc() : memref<8x4x6xf64>
  %1 = memref.alloc() : memref<4x5xf64>
  tgraph.negate %x outs(%0) : memref<8x4x6xf64>
  tgraph.dot_general %0, %w outs(%1) {
      lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>,
      lhs_contracting_dimensions = array<i64: 0, 2>,
      rhs_contracting_dimensions = array<i64: 2, 0>}
      : (memref<8x4x6xf64>, memref<6x5x8xf64>) -> memref<4x5xf64>
  memref.dealloc %0 : memref<8x4x6xf64>
  tgraph.negate %1 outs(%y) : memref<4x5xf64>
  memref.dealloc %1 : memref<4x5xf64>
  func.return
}"""


@pytest.fixture(autouse=True)
def without_registered_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgets the kernels that the test registers."""
    monkeypatch.setattr(workspaces, "_measures", dict(workspaces._measures))


def parse(text: str) -> ModuleOp:
    return Parser(tensorplan.context(), text).parse_module()


def product(mark: str = "") -> ModuleOp:
    return parse(PRODUCT.replace("{MARK}", mark))


def with_workspaces(module: ModuleOp, kernels: str = "numpy") -> ModuleOp:
    passes = [PlanWorkspaces(kernels), PlanMemory(reuse_outputs=False)]
    driver.run(tensorplan.context(), module, passes)
    return module


def owners(module: ModuleOp) -> list[TensorOp]:
    """The operations that have a workspace."""
    return [op for op in module.walk() if isinstance(op, TensorOp) and op.workspace]


def sizes(module: ModuleOp) -> list[int]:
    found = (op.workspace for op in owners(module))
    types = [tensor_type_of(value.type) for value in found if value is not None]
    return [size for type in types for size in type.get_shape()]


def arena(module: ModuleOp) -> int:
    return sum(pool["bytes"] for pool in tensorplan.report(module)["pools"])


@pytest.mark.thorough
@pytest.mark.parametrize("path", model_files())
def test_arena_includes_all_workspaces(path: Path) -> None:
    module = tensorplan.from_stablehlo(path).module
    without = tensorplan.plan(module)
    for kernels in KERNELS:
        apart = Executable(without, native=kernels == "native")
        planned = tensorplan.plan(module, workspaces=kernels)
        together = Executable(planned, native=kernels == "native")
        assert together.scratch_bytes == 0
        # Workspaces share bytes with dead buffers, so the arena grows by at most their
        # bytes.
        assert arena(planned) <= arena(without) + apart.scratch_bytes
        assert_same(run(together), run(apart))


MASKED = """
!x = tensor<8x16x16x16xf32>
func.func @main(%g: tensor<8x32x8x8xf32>, %k: tensor<32x16x3x3xf32>,
                %image: tensor<8x3x16x16xf32>, %y: !x {tgraph.donated})
    -> tensor<16x3x3x3xf32> {
  %spread = tgraph.convolution %g, %k {dim_labels = "bf01_io01->bf01",
      window_strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>,
      padding_high = array<i64: 2, 2>, lhs_dilation = array<i64: 2, 2>,
      rhs_dilation = array<i64: 1, 1>}
      : (tensor<8x32x8x8xf32>, tensor<32x16x3x3xf32>) -> !x
  %zero = tgraph.constant<0.0 : f32> : !x
  %off = tgraph.compare %y, %zero {direction = "LE"} : (!x, !x) -> tensor<8x16x16x16xi1>
  %kept = tgraph.select %off, %zero, %spread : (tensor<8x16x16x16xi1>, !x, !x) -> !x
  %slope = tgraph.convolution %image, %kept {dim_labels = "fb01_io01->fb01",
      window_strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>,
      padding_high = array<i64: 1, 1>, lhs_dilation = array<i64: 1, 1>,
      rhs_dilation = array<i64: 1, 1>}
      : (tensor<8x3x16x16xf32>, !x) -> tensor<16x3x3x3xf32>
  return %slope : tensor<16x3x3x3xf32>
}"""


def test_kernel_with_workspace_is_not_computed_in_place() -> None:
    """If the convolution overwrote `%y`, its kernel would need a workspace for its
    result."""
    planned = tensorplan.plan(parse(MASKED), workspaces="native")
    together = Executable(planned)
    assert together.scratch_bytes == 0
    apart = Executable(tensorplan.plan(parse(MASKED), reuse_outputs=False))
    assert_same(run(together), run(apart))


def test_operations_in_loops_have_workspaces() -> None:
    module = tensorplan.from_stablehlo(MODELS / "lstm_scan_train.mlir").module
    planned = tensorplan.plan(module, workspaces="numpy")
    assert any(isinstance(op.parent_op(), WhileOp) for op in owners(planned))


@pytest.mark.thorough
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("name", ["lenet_train", "mlp_train_adam"])
def test_sanitized_runs(name: str, kernels: str) -> None:
    """A sanitized run poisons a workspace before its kernel runs, and watches it
    afterwards."""
    module = tensorplan.from_stablehlo(MODELS / f"{name}.mlir").module
    planned = tensorplan.plan(module, workspaces=kernels)
    assert owners(planned)
    native = kernels == "native"
    watched = run(Executable(planned, native=native, sanitize=True), 2)
    assert_same(watched, run(Executable(planned, native=native), 2))


@pytest.mark.thorough
def test_each_stream_has_its_own_workspaces() -> None:
    module = tensorplan.from_stablehlo(MODELS / "lenet_train.mlir").module
    planned = tensorplan.plan(module, workspaces="numpy", streams=2)
    assert owners(planned)
    threaded = run(Executable(planned, native=False, threads=2, concurrent=True), 2)
    without = tensorplan.plan(module, streams=2)
    want = run(Executable(without, native=False), 2)
    for a, b in zip(threaded, want, strict=True):  # BLAS adds in different orders
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


ON_TENSORS = """
func.func @main(%x: tensor<8x16x24xf64>, %w: tensor<24x20x8xf64>) -> tensor<16x20xf64> {
  %0 = tgraph.tanh %x : tensor<8x16x24xf64>
  %1 = tgraph.dot_general %0, %w {
      lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>,
      lhs_contracting_dimensions = array<i64: 0, 2>,
      rhs_contracting_dimensions = array<i64: 2, 0>}
      : (tensor<8x16x24xf64>, tensor<24x20x8xf64>) -> tensor<16x20xf64>
  %2 = tgraph.tanh %1 : tensor<16x20xf64>
  func.return %2 : tensor<16x20xf64>
}"""


def test_budget_includes_workspaces() -> None:
    """The copies that the product needs take more bytes than its operand."""
    module = parse(ON_TENSORS)
    budget = arena(tensorplan.plan(module))
    assert arena(tensorplan.plan(module, budget=budget)) <= budget
    assert arena(tensorplan.plan(module, workspaces="numpy")) > 2 * budget
    found = tensorplan.plan(module, budget=2 * budget, workspaces="numpy")
    assert budget < arena(found) <= 2 * budget
    with pytest.raises(LocatedError, match="more than the budget"):
        tensorplan.plan(module, budget=budget // 8, workspaces="numpy")


def test_reports_name_the_owners_of_workspaces() -> None:
    module = with_workspaces(product())
    names = {b["id"]: b["op"] for b in buffers(module)}
    assert names == {
        "%0": "tgraph.negate",
        "%1": "tgraph.dot_general",
        "%workspace": "workspace of tgraph.dot_general",
    }
    (peak,) = peaks(module)
    makers = {
        b.name: (b.maker.op, b.in_place_of, b.not_in_place_reason) for b in peak.buffers
    }
    assert makers["%workspace"] == ("workspace of tgraph.dot_general", "", "")


@pytest.mark.thorough
def test_compile_plans_workspaces() -> None:
    module = tensorplan.from_stablehlo(MODELS / "lenet_train.mlir").module
    compiled = tensorplan.compile(module)
    assert compiled.scratch_bytes == 0
    apart = tensorplan.compile(module, workspaces="none")
    assert apart.scratch_bytes > 0
    # A module that is planned already is not planned again.
    assert tensorplan.compile(tensorplan.plan(module)).scratch_bytes > 0


def test_missing_workspace_is_allocated_at_run_time() -> None:
    x, w = inputs(Executable(product()))
    (want,) = Executable(product(), native=False)(x, w)
    np.testing.assert_allclose(want, np.einsum("bij,jkb->ik", x, w))
    (size,) = sizes(with_workspaces(product()))
    expected = dict.fromkeys((size, 2 * size), 0) | dict.fromkeys((64, size - 1), size)
    for given, beside in expected.items():
        workspaces.provide("others", lambda given=given: lambda op: given)
        executable = Executable(with_workspaces(product(), "others"), native=False)
        assert executable.scratch_bytes == beside
        (got,) = executable(x, w)
        np.testing.assert_array_equal(got, want)


def test_plans_made_for_native_kernels_run_without_them() -> None:
    module = tensorplan.from_stablehlo(MODELS / "lenet_train.mlir").module
    planned = tensorplan.plan(module, workspaces="native")
    got = run(Executable(planned, native=False))
    assert_same(got, run(Executable(tensorplan.plan(module), native=False)))


def test_workspace_sizes_need_no_compilation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(llvm, "_compiler", None)
    monkeypatch.setattr(llvm.Compiler, "_compile", None)  # must not be called
    monkeypatch.setattr(functions, "_functions", {})
    module = parse("""
    func.func @main(%x: memref<2048x2048xf32>, %w: memref<2048x2048xf32>,
                    %y: memref<2048x2048xf32> {tgraph.result = 0 : i64},
                    %z: memref<2048x2048xf32> {tgraph.result = 1 : i64}) {
      tgraph.dot_general %x, %w outs(%y) {
          lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>,
          lhs_contracting_dimensions = array<i64: 1>,
          rhs_contracting_dimensions = array<i64: 0>}
          : (memref<2048x2048xf32>, memref<2048x2048xf32>) -> memref<2048x2048xf32>
      tgraph.tanh %y outs(%z) : memref<2048x2048xf32>
      func.return
    }""")
    driver.run(tensorplan.context(), module, [PlanWorkspaces("native", threads=2)])


def test_existing_workspaces_are_kept() -> None:
    module = product()
    passes = [PlanWorkspaces("numpy"), PlanWorkspaces("numpy")]
    driver.run(tensorplan.context(), module, passes[:1])
    once = str(module)
    driver.run(tensorplan.context(), module, passes[1:])
    assert str(module) == once
    planned = with_workspaces(product())
    once = str(planned)
    assert str(with_workspaces(planned)) == once


@pytest.mark.parametrize("victim", ["an input", "the result"])
def test_workspace_over_a_live_buffer_is_refused(victim: str) -> None:
    planned = with_workspaces(product())
    check_plan(planned)
    (op,) = owners(planned)
    other = op.inputs[0] if victim == "an input" else op.outs[0]
    source, moved = other.owner, op.workspace and op.workspace.owner
    assert isinstance(source, memref.ViewOp)
    assert isinstance(moved, memref.ViewOp)
    moved.operands[1] = source.byte_shift
    with pytest.raises(LocatedError, match=r"workspace"):
        check_plan(planned)


def test_workspaces_of_symbolic_size_are_allocated_at_run_time() -> None:
    text = """
    func.func @main(%x: tensor<?x8xf32, #tgraph.dims<n>>, %w: tensor<8x8xf32>)
        -> tensor<?x8xf32, #tgraph.dims<n>> {
      %0 = tgraph.dot_general %x, %w {
          lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>,
          lhs_contracting_dimensions = array<i64: 1>,
          rhs_contracting_dimensions = array<i64: 0>}
          : (tensor<?x8xf32, #tgraph.dims<n>>, tensor<8x8xf32>)
            -> tensor<?x8xf32, #tgraph.dims<n>>
      func.return %0 : tensor<?x8xf32, #tgraph.dims<n>>
    }"""
    module = parse(text)
    assert not owners(tensorplan.plan(module, workspaces="native"))
    x, w = np.ones((3, 8), np.float32), np.ones((8, 8), np.float32)
    np.testing.assert_array_equal(tensorplan.compile(module)(x, w)[0], x @ w)


def test_packed_parameters_are_not_copied_in_workspaces() -> None:
    if not onednn.is_available():
        pytest.skip("needs oneDNN")
    size = "4x64x64x8xf32", "3x3x8x8xf32"

    def program(mark: str) -> ModuleOp:
        return parse(f"""
        func.func @main(%x: memref<{size[0]}>, %w: memref<{size[1]}> {mark},
                        %y: memref<{size[0]}> {{tgraph.result = 0 : i64}}) {{
          tgraph.convolution %x, %w outs(%y)
            {{dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>,
              padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>,
              lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>}}
            : (memref<{size[0]}>, memref<{size[1]}>) -> memref<{size[0]}>
          func.return
        }}""")

    packed = with_workspaces(program("{tgraph.parameter}"), "native")
    assert sizes(packed) < sizes(with_workspaces(program(""), "native"))
    executable = Executable(packed)
    x, w = inputs(executable)
    (got,) = executable(x, w)
    assert (executable.scratch_bytes, executable.packed_bytes > 0) == (0, True)
    # An array that is not contiguous cannot be packed, so each call copies it.
    (again,) = executable(x, np.asfortranarray(w))
    assert executable.scratch_bytes > 0
    np.testing.assert_array_equal(again, got)
    (again,) = executable(x, w.copy())
    assert executable.scratch_bytes == 0
    np.testing.assert_array_equal(again, got)


IN_ANY_ORDER = """
import sys

{first}
import tensorplan
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.plan.workspaces import PlanWorkspaces

PlanPipeline(workspaces="native"), PlanPipeline(workspaces="numpy")
print(any(name.startswith("tensorplan.runtime") for name in sys.modules))
module = tensorplan.read(sys.stdin.read())
PlanWorkspaces("numpy").apply(tensorplan.context(), module)
print("workspace(" in str(module))
"""


@pytest.mark.parametrize("first", ["tensorplan.passes", "tensorplan.runtime.executor"])
def test_kernels_are_known_for_any_import_order(first: str) -> None:
    code = IN_ANY_ORDER.format(first=f"import {first}")
    run = subprocess.run(
        [sys.executable, "-c", code],
        input=PRODUCT.replace("MARK", ""),
        capture_output=True,
        text=True,
    )
    is_loaded = str(first.startswith("tensorplan.runtime"))
    assert (run.stdout.split(), run.stderr) == ([is_loaded, "True"], "")


def test_registered_kernels_measure_workspaces() -> None:
    asked: list[str] = []

    def measure(op: TensorOp) -> int:
        asked.append(op.name)
        return 256 if op.name == "tgraph.dot_general" else 0

    workspaces.provide("accelerator", lambda: measure)
    assert sizes(with_workspaces(product(), "accelerator")) == [256]
    assert asked == ["tgraph.negate", "tgraph.dot_general", "tgraph.negate"]


def test_prediction_measures_equal_layers_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def measure(op: TensorOp) -> int:
        asked.append(op.name)
        return 256

    def layer(index: int) -> str:
        return f"""
        %h{index} = tgraph.dot_general %y{index}, %w
          {{lhs_contracting_dimensions = array<i64: 1>,
            rhs_contracting_dimensions = array<i64: 0>}}
          : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
        %y{index + 1} = tgraph.tanh %h{index} : tensor<8x8xf32>"""

    def asked_of(layers: int) -> int:
        asked.clear()
        module = tensorplan.read(f"""
        func.func @main(%y0: tensor<8x8xf32>, %w: tensor<8x8xf32> {{tgraph.parameter}})
            -> tensor<8x8xf32> {{
          {"".join(map(layer, range(layers)))}
          func.return %y{layers} : tensor<8x8xf32>
        }}""")
        predicted = predicted_arenas(with_passes(module, *READY), 64, "counted")
        assert predicted == {"cpu:0": 512}
        return len(asked)

    monkeypatch.setattr(workspaces, "_measures", dict(workspaces._measures))
    workspaces.provide("counted", lambda: measure)
    assert asked_of(12) == asked_of(3) == 1


def test_passes_of_a_run_share_measurements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[str] = []

    def load() -> Callable[[TensorOp], int]:
        loaded.append("kernels")
        return lambda op: 0

    monkeypatch.setattr(workspaces, "_measures", dict(workspaces._measures))
    workspaces.provide("counted", load)
    passes = [PlanWorkspaces("counted"), PlanWorkspaces("counted")]
    driver.run(tensorplan.context(), product(), passes)
    assert len(loaded) == 1
    driver.run(tensorplan.context(), product(), passes[:1])
    assert len(loaded) == 2


def test_equal_operations_are_measured_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Operations are equal if their types and bodies are. Each different group is
    measured."""

    def group(kind: str, wide: str) -> str:
        return f"""
        tgraph.fusion(%a = %x) outs(%y) : (memref<8xf32>) -> memref<f32> {{
          %w = tgraph.convert %a : (tensor<8xf32>) -> tensor<8x{wide}>
          %s = tgraph.reduce %w {{kind = "{kind}", dimensions = array<i64: 0>}}
              : (tensor<8x{wide}>) -> tensor<{wide}>
          %n = tgraph.convert %s : (tensor<{wide}>) -> tensor<f32>
          tgraph.yield %n : tensor<f32>
        }}"""

    kinds = [("add", "f64"), ("maximum", "f64"), ("add", "f16"), ("add", "f64")]
    groups = "".join(group(*kind) for kind in kinds)
    module = parse(f"""
    func.func @main(%x: memref<8xf32>, %y: memref<f32>) {{{groups}
      func.return
    }}""")
    measured: list[object] = []
    monkeypatch.setattr(
        Workspaces, "_measured", lambda self, op: measured.append(op) or 0
    )
    with_workspaces(module)
    ops = [op for op in module.walk() if isinstance(op, FusionOp)]
    assert measured == ops[:3]


def test_unknown_kernels_are_refused() -> None:
    with pytest.raises(ValueError, match=r"kernels is 'gpu', expected one of none, "):
        PlanWorkspaces("gpu")
