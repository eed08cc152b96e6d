"""Tests `tgraph-gradient`: variables, errors, remarks, rematerialization, and
training."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from modules import parse, run
from programs import Program, programs
from sampling import examples
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.common_subexpression_elimination import (
    CommonSubexpressionElimination,
)
from xdsl.utils.exceptions import ParseError, VerifyException

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.differentiation import RECOMPUTED
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.passes.tgraph.gradient import TGraphGradient

EXAMPLES = Path(__file__).parent.parent / "examples"


# Variables, several values, and values without a gradient


def test_gradients_of_variables_and_their_reads() -> None:
    module = parse("""
!t = tensor<2xf64>
func.func @main(%v: !tgraph.variable<!t>, %x: !t) -> (!t, !t, !t) {
  %old = tgraph.read %v : !t
  %sum = tgraph.multiply %old, %x : !t
  tgraph.assign %v, %sum : !t
  %new = tgraph.read %v : !t
  %again = tgraph.read %v : !t
  %y = tgraph.multiply %new, %again : !t
  %one = tgraph.constant<1.0 : f64> : !t
  %gv, %gs, %gx = tgraph.gradient %y heads %one wrt %v, %new, %x
    : !t wrt !tgraph.variable<!t>, !t, !t
  func.return %gv, %gs, %gx : !t, !t, !t
}""")
    v, x = np.array([2.0, 3.0]), np.array([5.0, 7.0])
    gv, gs, gx, _ = run_reference(run(module, TGraphGradient()), [v, x])
    np.testing.assert_allclose(gv, 2 * v * x * x)  # y = (v x)²
    np.testing.assert_allclose(gs, v * x)  # only through this read
    np.testing.assert_allclose(gx, 2 * x * v * v)


def test_repeated_value_counts_twice() -> None:
    module = parse("""
func.func @main(%x: tensor<f64>) -> tensor<f64> {
  %y = tgraph.sine %x : tensor<f64>
  %g = tgraph.gradient %y, %y wrt %x : tensor<f64>, tensor<f64> wrt tensor<f64>
  func.return %g : tensor<f64>
}""")
    (g,) = run_reference(run(module, TGraphGradient()), [np.array(1.0)])
    np.testing.assert_allclose(g, 2 * np.cos(1.0))


def test_gradients_of_gradients() -> None:
    module = parse("""
func.func @main(%x: tensor<f64>) -> tensor<f64> {
  %y = tgraph.sine %x : tensor<f64>
  %g = tgraph.gradient %y wrt %x : tensor<f64> wrt tensor<f64>
  %z = tgraph.multiply %g, %g : tensor<f64>
  %h = tgraph.gradient %z wrt %x : tensor<f64> wrt tensor<f64>
  func.return %h : tensor<f64>
}""")
    (h,) = run_reference(run(module, TGraphGradient()), [np.array(1.0)])
    np.testing.assert_allclose(h, -2 * np.cos(1.0) * np.sin(1.0))


def test_gradient_is_zero_without_a_differentiable_path(
    caplog: pytest.LogCaptureFixture,
) -> None:
    module = parse("""
func.func @main(%x: tensor<f64>, %z: tensor<3xf64>) -> tensor<f64> {
  %y = tgraph.floor %x : tensor<f64>
  func.return %y : tensor<f64>
}""")
    with caplog.at_level(logging.INFO, "tensorplan.support.remarks"):
        differentiated = run(module, TGraphGradient(wrt=("z", 0)))
    assert [r.message.split("remark: ")[-1] for r in caplog.records] == [
        f"gradient with respect to %{name} is zero: no differentiable path leads from "
        "it to the value"
        for name in "zx"
    ]
    _, gz, gx = run_reference(differentiated, [np.array(1.5), np.ones(3)])
    assert gz.tolist() == [0, 0, 0]
    assert gx.tolist() == 0


def test_only_operations_on_a_differentiable_path_need_rules() -> None:
    text = """
func.func @main(%x: tensor<f64>, %y: tensor<f64>) -> tensor<f64> {
  %f = tgraph.fusion(%a = %x) : (tensor<f64>) -> tensor<f64> {
    %n = tgraph.sine %a : tensor<f64>
    tgraph.yield %n : tensor<f64>
  }
  %z = tgraph.multiply %f, %y : tensor<f64>
  func.return %z : tensor<f64>
}"""
    (_, g) = run_reference(
        run(parse(text), TGraphGradient(wrt=(1,))), [np.array(1.0), np.array(2.0)]
    )
    np.testing.assert_allclose(g, np.sin(1.0))
    with pytest.raises(LocatedError, match="run tgraph-gradient before tgraph-fuse"):
        run(parse(text), TGraphGradient(wrt=(0,)))


# Rematerialization


def layers(count: int, marked: str = "") -> ModuleOp:
    """The gradient of `count` layers on 64x64 matrices. A layer is a chain of
    elementwise operations, with attributes `marked`, and a product."""
    t, s = "tensor<64x64xf32>", "tensor<f32>"
    product = "lhs_contracting_dimensions = array<i64: 1>, " + (
        "rhs_contracting_dimensions = array<i64: 0>"
    )
    lines = [f"%x0 = tgraph.dot_general %x, %w {{{product}}} : {t}"]
    for n in range(count):
        lines += [
            f"%a{n} = tgraph.tanh %x{n} {marked} : {t}",
            f"%b{n} = tgraph.sine %a{n} {marked} : {t}",
            f"%c{n} = tgraph.logistic %b{n} {marked} : {t}",
            f"%d{n} = tgraph.multiply %c{n}, %a{n} {marked} : {t}",
            f"%x{n + 1} = tgraph.dot_general %d{n}, %w {{{product}}} : {t}",
        ]
    return parse(
        f"func.func @main(%x: {t}, %w: {t}) -> {t} {{\n"
        + "\n".join(lines)
        + f'\n%l = tgraph.reduce %x{count} {{kind = "add", '
        f"dimensions = array<i64: 0, 1>}} : ({t}) -> {s}\n"
        f"%g = tgraph.gradient %l wrt %w : {s} wrt {t}\nfunc.return %g : {t}\n}}"
    )


def peak(module: ModuleOp) -> int:
    return sum(pool["bytes"] for pool in tensorplan.report(module)["pools"])


def test_rematerialization_lowers_the_peak() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((64, 64)).astype(np.float32) / 8 for _ in "xw"]
    (want,) = run_reference(run(layers(8), TGraphGradient()), arrays)
    peaks: dict[str, int] = {}
    for mirror in ("none", "attribute", "cheap"):
        module = run(layers(8, "{tgraph.mirror}"), TGraphGradient(mirror=mirror))
        recomputed = sum(RECOMPUTED in op.attributes for op in module.walk())
        assert (recomputed > 0) == (mirror != "none")
        planned = tensorplan.plan(module)
        peaks[mirror] = peak(planned)
        (got,) = tensorplan.compile(planned)(*(a.copy() for a in arrays))
        scale = float(np.abs(want).max())
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * scale)
    assert peaks["attribute"] == peaks["cheap"]
    assert peaks["cheap"] <= 0.6 * peaks["none"]
    unmarked = run(layers(8), TGraphGradient(mirror="cheap"))
    assert peak(tensorplan.plan(unmarked)) == peaks["cheap"]


def test_cse_keeps_rematerialized_operations() -> None:
    module = run(layers(2), TGraphGradient(mirror="cheap"))
    count = sum(RECOMPUTED in op.attributes for op in module.walk())
    after = run(module, CommonSubexpressionElimination())
    assert sum(RECOMPUTED in op.attributes for op in after.walk()) == count


@pytest.mark.thorough
@settings(max_examples=examples(200))
@given(program=programs(max_ops=12))
def test_planned_gradients_of_random_programs(program: Program) -> None:
    (terminator,) = [o for o in program.module.walk() if o.name == "func.return"]
    assume(len(terminator.operands) > 0)
    of = tuple(range(len(terminator.operands)))
    rng = np.random.default_rng(0)
    kept, recomputed = (
        run(program.module, TGraphGradient(of=of, mirror=mirror))
        for mirror in ("none", "cheap")
    )
    slots = signature(kept).inputs
    arrays = [rng.standard_normal(s.shape).astype(s.dtype) for s in slots]
    want = run_reference(kept, arrays)
    for module in (kept, recomputed):
        got = tensorplan.compile(module)(*(array.copy() for array in arrays))
        for g, w in zip(got, want, strict=True):
            scale = float(np.abs(w).max(initial=1))
            np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4 * scale)


# Training


def test_training_on_two_devices_agrees_with_jax() -> None:
    jax = pytest.importorskip("jax")
    from jax import numpy as jnp

    rng = np.random.default_rng(0)
    shapes = [(8, 16), (16,), (16, 16), (16,), (16, 4), (4,)]
    weights = [
        np.asarray(rng.standard_normal(s) / np.sqrt(s[0]), np.float32) for s in shapes
    ]
    x = rng.standard_normal((32, 8)).astype(np.float32)
    y = np.eye(4, dtype=np.float32)[(x[:, :4] + x[:, 4:]).argmax(1)]

    def loss_of(weights: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = weights
        h = jnp.tanh(jnp.tanh(x @ w1 + b1) @ w2 + b2)
        return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(h @ w3 + b3), 1))

    @jax.jit
    def step(weights: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(weights)
        return loss, [w - 0.3 * g for w, g in zip(weights, gradients, strict=True)]

    text = (EXAMPLES / "mlp_train_two_devices.mlir").read_text()
    executable = tensorplan.compile(parse(text))
    assert {pool.device for pool in executable.pools} == {"cpu:0", "cpu:1"}
    ours, theirs = [w.copy() for w in weights], weights
    losses: list[float] = []
    for _ in range(200):
        loss, *_ = executable(x, y, *ours)
        want, theirs = step(theirs)
        assert abs(float(loss) - float(want)) <= 1e-4
        losses.append(float(loss))
    assert losses[-1] < 0.1 * losses[0]
    for w, v in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(w, v, atol=1e-3)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('%y wrt %x {mirror = "all"} : !t wrt !t', "mirror is 'all', expected one of"),
        ("%y wrt %x : !t wrt i32", "gradient with respect to i32, expected a tensor"),
        ("%y wrt %x : !t wrt !t", "test.op is not differentiable"),
        ("%d wrt %u : !t wrt !u", "run tgraph-infer-shapes before tgraph-gradient"),
    ],
)
def test_invalid_gradients_are_refused(line: str, message: str) -> None:
    text = f"""
!t = tensor<f32>
!u = tensor<?xf32>
func.func @main(%x: !t, %u: !u) {{
  %d = tgraph.reduce %u {{kind = "add", dimensions = array<i64: 0>}} : (!u) -> !t
  %y = "test.op"(%x) : (!t) -> !t
  %g = tgraph.gradient {line}
  "test.op"(%g) : ({line.split()[-1]}) -> ()
  func.return
}}"""
    with pytest.raises((VerifyException, LocatedError, ParseError), match=message):
        run(parse(text), TGraphGradient())
