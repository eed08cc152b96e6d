"""Tests the public functions: `plan`, `compile`, `report`, readers of programs, and
their errors."""

import gc
from collections.abc import Callable
from dataclasses import fields
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unchanged_ir import parsed
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.garbage import ALLOCATIONS, seldom_collected
from tensorplan.dialects.tgraph.signature import signature as signature_of
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.reporting.report import buffers

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_plan_raises_the_threshold_of_the_garbage_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thresholds: list[int] = []
    clone = ModuleOp.clone

    def note(module: ModuleOp) -> ModuleOp:
        thresholds.append(gc.get_threshold()[0])
        return clone(module)

    program = tensorplan.read((EXAMPLES / "train_step.mlir").read_text())
    monkeypatch.setattr(ModuleOp, "clone", note)
    tensorplan.plan(program)
    assert thresholds == [ALLOCATIONS]
    assert gc.get_threshold()[0] < ALLOCATIONS


def test_overlapping_contexts_restore_the_garbage_collector() -> None:
    """The settings are restored when the last context ends, also if the first context
    ends first."""
    before = gc.get_threshold()
    first, second = seldom_collected(), seldom_collected()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] == ALLOCATIONS
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before


def test_plan_and_compile_a_jax_training_step() -> None:
    jax = pytest.importorskip("jax")

    def step(w, x, y):
        def loss(w):
            return ((jax.nn.relu(x @ w) - y) ** 2).mean()

        value, gradient = jax.value_and_grad(loss)(w)
        return w - 0.1 * gradient, value

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype("f4") for s in ((8, 4), (16, 8), (16, 4))]
    model = tensorplan.from_jax(step, *arrays, donate_argnums=0)
    planned = tensorplan.plan(model)
    (pool,) = tensorplan.report(planned)["pools"]
    assert pool["bytes"] == pool["lower_bound_bytes"] <= pool["unshared_bytes"]

    want = arrays[0]
    run = tensorplan.compile(planned)
    weights = arrays[0].copy()
    for _ in range(3):
        want, want_loss = jax.jit(step)(want, *arrays[1:])
        new, loss = run(weights, *arrays[1:])
        assert new is weights  # a variable is updated in place
        np.testing.assert_allclose(weights, want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(loss, want_loss, rtol=1e-4)
    # JAX's arrays are never overwritten.
    kept = jax.numpy.asarray(arrays[0])
    new, _ = run(kept, *map(jax.numpy.asarray, arrays[1:]))
    np.testing.assert_array_equal(kept, arrays[0])
    assert np.abs(new - arrays[0]).max() > 0


def test_compile_checks_planned_ir() -> None:
    text = """
func.func @main(%a: memref<16xf32>, %r: memref<16xf32> {tgraph.result = 0 : i32}) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
  %c0 = arith.constant 0 : index
  %x = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  tgraph.negate %a outs(%x) : memref<16xf32>
  %y = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  tgraph.exponential %a outs(%y) : memref<16xf32>
  tgraph.add %x, %y outs(%r) : memref<16xf32>
  memref.dealloc %arena : memref<64xi8>
  func.return
}"""
    with pytest.raises(LocatedError, match=r"test.mlir:9:.*%x"):
        tensorplan.compile(parsed(text))


def test_plan_does_not_change_its_argument() -> None:
    model = tensorplan.from_stablehlo(EXAMPLES / "mlp_train_sgd.mlir")
    before = str(model)
    planned = tensorplan.plan(model, strategy="naive", alignment=16)
    assert str(model) == before
    [pool] = tensorplan.report(planned)["pools"]
    assert pool["device"] == "cpu:0"
    assert pool["alignment"] == 16
    assert pool["bytes"] == pool["unshared_bytes"] > pool["lower_bound_bytes"] > 0


def test_a_program_without_temporaries_has_no_pool() -> None:
    module = tensorplan.from_stablehlo(EXAMPLES / "train_step.mlir")
    assert tensorplan.report(tensorplan.plan(module))["pools"] == []


def test_bad_options_are_refused() -> None:
    module = tensorplan.from_stablehlo(EXAMPLES / "train_step.mlir")
    with pytest.raises(ValueError, match="strategy is 'best', expected one of"):
        tensorplan.plan(module, strategy="best")
    with pytest.raises(ValueError, match="alignment is 48, expected a power of two"):
        tensorplan.plan(module, alignment=48)
    with pytest.raises(ValueError, match=f"alignment is {2**33}, expected at most"):
        tensorplan.plan(module, alignment=2**33)


def test_errors_have_a_source_location() -> None:
    text = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64,
    replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}"""
    with pytest.raises(LocatedError, match=r"^program:2:8: stablehlo.all_g"):
        tensorplan.from_stablehlo(text)


def test_pools_and_values_of_two_devices() -> None:
    text = """
    func.func @main(%a: tensor<64xf32>, %b: tensor<64xf32> {tgraph.device = "cpu:1"})
        -> (tensor<64xf32> {tgraph.device = "cpu:0"}) {
      %x = tgraph.exponential %a {tgraph.device = "cpu:0"} : tensor<64xf32>
      %y = tgraph.multiply %b, %x : tensor<64xf32>
      %r = tgraph.reverse %y {dimensions = array<i64: 0>} : tensor<64xf32>
      %z = tgraph.subtract %y, %r : tensor<64xf32>
      func.return %z : tensor<64xf32>
    }
    """
    a, b = np.linspace(0, 1, 64, dtype="f4"), np.linspace(1, 2, 64, dtype="f4")
    y = b * np.exp(a)
    # The buffers on cpu:0 fit into the memory of the result on cpu:0.
    for reuse_outputs, devices in ((False, ["cpu:0", "cpu:1"]), (True, ["cpu:1"])):
        run = tensorplan.compile(
            tensorplan.from_stablehlo(text), reuse_outputs=reuse_outputs
        )
        assert sorted(pool.device for pool in run.pools) == devices
        (got,) = run(a, b)
        np.testing.assert_allclose(got, y - y[::-1], rtol=0, atol=1e-6)


def test_read_takes_text_bytes_and_paths() -> None:
    path = EXAMPLES / "classifier.mlir"
    texts = [
        str(tensorplan.read(s)) for s in (path, path.read_text(), path.read_bytes())
    ]
    assert texts[0] == texts[1] == texts[2]
    assert "tgraph.dot_general" in texts[0]


@pytest.mark.parametrize("function", [tensorplan.read, tensorplan.from_stablehlo])
def test_file_name_as_str_is_refused(function: Callable[[str], object]) -> None:
    file = str(EXAMPLES / "classifier.mlir")
    with pytest.raises(ValueError, match="is a file name, expected Path"):
        function(file)


def test_file_name_as_str_is_accepted_for_binary_formats() -> None:
    pytest.importorskip("onnx")
    file = Path(__file__).parent / "models" / "onnx" / "unet.onnx"
    named, at_path = map(tensorplan.from_onnx, (str(file), file))
    assert str(named.module) == str(at_path.module)
    with pytest.raises(FileNotFoundError):
        tensorplan.from_tflite("missing.tflite")


@pytest.mark.parametrize("text", ["", "  \n", "// a comment\n"])
def test_empty_programs_are_refused(text: str) -> None:
    for function in (tensorplan.read, tensorplan.from_stablehlo):
        with pytest.raises(ParseError, match="the program is empty, expected an op"):
            function(text)


@pytest.mark.parametrize(
    ("function", "others"),
    [
        (tensorplan.plan, {}),
        (tensorplan.explain, {"limit": 60.0}),
        (tensorplan.frontier, {"points": 20, "measure": False}),
        (
            tensorplan.compile,
            {"workspaces": "native", "pools": (), "flush_subnormals": False},
        ),
    ],
)
def test_keywords_are_the_options_of_plan_pipeline(
    function: Callable[..., object], others: dict[str, object]
) -> None:
    _, *keywords = signature(function).parameters.values()
    assert {k.kind for k in keywords} == {Parameter.KEYWORD_ONLY}
    defaults = {field.name: field.default for field in fields(PlanPipeline)}
    assert {k.name: k.default for k in keywords} == defaults | others


def test_unknown_options_are_refused() -> None:
    module = tensorplan.read(EXAMPLES / "classifier.mlir")
    for function in (tensorplan.plan, tensorplan.explain, tensorplan.compile):
        with pytest.raises(TypeError, match=r"'strateg'.*did you mean 'strategy'"):
            function(module, strateg="auto")  # pyright: ignore[reportCallIssue]
        with pytest.raises(ValueError, match="strategy is 'best', expected one of"):
            function(module, strategy="best")


@pytest.mark.parametrize(
    "function",
    [tensorplan.plan, tensorplan.compile, tensorplan.report, tensorplan.explain],
)
def test_arguments_that_are_no_module_are_refused(
    function: Callable[..., object],
) -> None:
    with pytest.raises(TypeError, match="has type str, expected ModuleOp or Model"):
        function("program.mlir")
    with pytest.raises(TypeError, match="has type str, expected ModuleOp or Model"):
        function(tensorplan.Model("program.mlir", {}))  # pyright: ignore[reportArgumentType]


def test_model_and_its_module_have_the_same_plan() -> None:
    model = tensorplan.from_stablehlo(EXAMPLES / "mlp_train_sgd.mlir")
    planned = tensorplan.plan(model)
    assert isinstance(planned, tensorplan.Model)
    assert planned.parameters == model.parameters == {}
    assert str(planned) == str(tensorplan.plan(model.module))
    assert tensorplan.report(planned) == tensorplan.report(planned.module)
    explained = (tensorplan.explain(p, limit=0.0) for p in (model, model.module))
    assert len({*map(str, explained)}) == 1


SCALED = """
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>, %b: tensor<4xf32>)
    -> tensor<4xf32> {
  %0 = stablehlo.multiply %x, %w : tensor<4xf32>
  %1 = stablehlo.add %0, %b : tensor<4xf32>
  return %1 : tensor<4xf32>
}"""


def test_parameters_are_bound_once() -> None:
    pytest.importorskip("jax")
    x, w, b = np.arange(12, dtype=np.float32).reshape(3, 4)
    model = tensorplan.from_stablehlo(SCALED, parameters={1: w, 2: b.astype("f8")})
    assert list(model.parameters) == ["args[1]", "args[2]"]
    for program in (model, tensorplan.plan(model)):
        run = tensorplan.compile(program)
        np.testing.assert_array_equal(run(x)[0], x * w + b)
    some = tensorplan.from_stablehlo(SCALED, parameters={1: w})
    np.testing.assert_array_equal(tensorplan.compile(some)(x, b)[0], x * w + b)


def test_values_have_the_names_of_python_variables() -> None:
    jax = pytest.importorskip("jax")

    def loss(params, x):
        hidden = jax.numpy.tanh(x @ params["w.1"])
        scores: Any = jax.nn.softmax(hidden @ params["v"])
        return (scores * scores).sum()

    def step(params, x):
        value, gradients = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - g, params, gradients), value

    params = {"w.1": np.ones((4, 4), "f4"), "v": np.ones((4, 4), "f4")}
    model = tensorplan.from_jax(step, params, np.ones((8, 4), "f4"), donate_argnums=0)
    text = str(model)
    assert text.count("%hidden = tgraph.tanh ") == 1
    assert text.count("%scores = tgraph.divide ") == 1
    io = signature_of(tensorplan.plan(model).module)
    assert io.input_names == ["params['v']", "params['w.1']", "x"]
    assert io.result_names == ["params['v']", "params['w.1']", "result[1]"]


def test_jax_pytrees_of_parameters() -> None:
    jax = pytest.importorskip("jax")

    def dense(layers, x, shift):
        for layer in layers:
            x = x @ layer["weight"] + layer["bias"]
        return x * shift

    layers = [{"weight": jax.numpy.eye(4) * n, "bias": np.ones(4)} for n in (2, 3)]
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    shape = jax.ShapeDtypeStruct((4,), np.float32)
    model = tensorplan.from_jax(dense, layers, x, shape, parameter_argnums=(0, 2))
    names = [f"args[0][{n}]['{name}']" for n in (0, 1) for name in ("bias", "weight")]
    assert list(model.parameters) == names
    (got,) = tensorplan.compile(model)(x, np.full(4, 2, np.float32))
    np.testing.assert_array_equal(got, dense(layers, x, 2))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({3: np.ones(4, "f4")}, ValueError, "there is no argument 3, expected 0 to 2"),
        ({1: np.ones(3, "f4")}, ValueError, r"shape \(3,\), expected \(4,\)"),
        ({1: np.ones(4, "c8")}, TypeError, "type complex64, expected float32"),
    ],
    ids=["number", "shape", "type"],
)
def test_invalid_parameters_are_refused(
    parameters: dict[int, object], error: type[Exception], message: str
) -> None:
    pytest.importorskip("jax")
    with pytest.raises(error, match=message):
        tensorplan.from_stablehlo(SCALED, parameters=parameters)


def test_repr_of_an_executable() -> None:
    run = tensorplan.compile(tensorplan.read("func.func @main() { func.return }"))
    assert repr(run) == "<Executable: 0 inputs, 0 results; no pool>"
    run = tensorplan.compile(
        tensorplan.read(EXAMPLES / "mlp_train_sgd.mlir"), workspaces="none"
    )
    assert repr(run) == "<Executable: 8 inputs, 7 results; cpu:0 786,432 bytes>"


def test_report_of_results_without_elements() -> None:
    """Two empty results at the same offset are live for one step each."""
    planned = tensorplan.read("""
func.func @main(%x: memref<3x0xf32, "cpu:0">) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<0xi8, "cpu:0">
  %c0 = arith.constant 0 : index
  %a = memref.view %arena[%c0][] : memref<0xi8, "cpu:0"> to memref<3x0xf32, "cpu:0">
  %b = memref.view %arena[%c0][] : memref<0xi8, "cpu:0"> to memref<3x0xf32, "cpu:0">
  tgraph.sort %x, %x outs(%a, %b) {dimension = 0 : i64}
    : (memref<3x0xf32, "cpu:0">, memref<3x0xf32, "cpu:0">)
    -> (memref<3x0xf32, "cpu:0">, memref<3x0xf32, "cpu:0">) {
  ^bb0(%0: tensor<f32, "cpu:0">, %1: tensor<f32, "cpu:0">,
       %2: tensor<f32, "cpu:0">, %3: tensor<f32, "cpu:0">):
    %4 = tgraph.compare %0, %1 {direction = "LT"}
      : (tensor<f32, "cpu:0">, tensor<f32, "cpu:0">) -> tensor<i1, "cpu:0">
    tgraph.yield %4 : tensor<i1, "cpu:0">
  }
  memref.dealloc %arena : memref<0xi8, "cpu:0">
  func.return
}""")
    found = buffers(planned)
    assert [buffer["upper"] - buffer["lower"] for buffer in found] == [1, 1]
