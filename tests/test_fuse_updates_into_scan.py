"""Tests `tgraph-fuse-updates-into-scan`: the values keep their bits, the plans need
fewer bytes, and loops that do not match are not changed."""

import re
from pathlib import Path

import numpy as np
import pytest
from levels import inputs, planned_bytes
from modules import parse, run
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.structure import WhileOp
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.fuse_updates_into_scan import TGraphFuseUpdatesIntoScan
from tensorplan.runtime.executor import Executable

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "lit_tests/tgraph-fuse-updates-into-scan/update.mlir").read_text()
TEXT = TEXT.replace("@momentum", "@main")
MODEL = ROOT / "tests/models/gpt2_scan_train.mlir"

STORED = "  tgraph.assign %vm, %m1 : tensor<9x8x8xf32>\n"
RATE = "  %rate = tgraph.negate %lr"
ROWS = "%rows = tgraph.constant<9"
NUMBER = "!tgraph.variable<tensor<f32>>"
NEXT = "%g1 = tgraph.broadcast_in_dim %g {"


def total(name: str, value: str) -> str:
    return (
        f"  %{name} = tgraph.reduce {value} "
        '{kind = "add", dimensions = array<i64: 0, 1, 2>} '
        ": (tensor<9x8x8xf32>) -> tensor<f32>\n"
    )


def scaled(value: str) -> str:
    """Text that makes the learning rate depend on all elements of `value`."""
    by = "  %lr1 = tgraph.multiply %lr, %sum : tensor<f32>\n"
    return total("sum", value) + by + RATE + "1"


def after(text: str) -> ModuleOp:
    """Runs the pass, compares values, and returns the module."""
    module = parse(text)
    changed = run(module, TGraphFuseUpdatesIntoScan())
    arrays = inputs(module)
    want = run_reference(module, arrays)
    for a, b in zip(run_reference(changed, arrays), want, strict=True):
        np.testing.assert_array_equal(a, b)
    return changed


def carried(module: ModuleOp) -> int:
    (loop,) = (op for op in module.walk() if isinstance(op, WhileOp))
    return len(loop.res)


def test_variables_are_updated_in_the_loop() -> None:
    assert carried(after(TEXT)) == 3


def test_computations_on_the_variable_move_into_the_loop() -> None:
    start, (most, kept) = (
        "  %0:2 = tgraph.while",
        re.findall("  %(?:most|kept) .*\n", TEXT),
    )
    text = TEXT.replace(most + kept, "").replace(start, most + kept + start)
    assert text != TEXT
    assert carried(after(text)) == 3


@pytest.mark.parametrize(
    ("change", "to"),
    {
        "all of the gradient is looked at": (RATE, scaled("%0#1")),
        "all that is made of it is": (
            STORED,
            f"{total('norm', '%m1')}  tgraph.assign %vn, %norm : tensor<f32>\n{STORED}",
        ),
        "the weights are read after the loop": (RATE, scaled("%w")),
        "the variable is read again": (
            RATE,
            "  %again = tgraph.read %vm : tensor<9x8x8xf32>\n" + scaled("%again"),
        ),
        "a number of the loop is needed": (
            RATE,
            f"  %lr1 = tgraph.convert %0#0 : (tensor<i32>) -> tensor<f32>\n{RATE}1",
        ),
        "the loop reads other rows": ("%ws, %at, %c0, %c0 {", "%ws, %n, %c0, %c0 {"),
        "the loop reads all rows": (
            NEXT,
            '%all = tgraph.reduce %ws {kind = "add", dimensions = array<i64: 0>}'
            " : (tensor<9x8x8xf32>) -> tensor<8x8xf32>\n"
            "%more = tgraph.add %all, %g : tensor<8x8xf32>\n"
            + NEXT.replace("%g {", "%more {"),
        ),
        "it does not start at 0": ("while %zero, %empty", "while %one, %empty"),
        "not all rows are written": (ROWS, ROWS.replace("9", "8")),
        "a row is written twice": (ROWS, ROWS.replace("9", "10")),
    }.values(),
)  # fmt: skip
def test_loops_that_do_not_match(change: str, to: str) -> None:
    text = TEXT.replace(
        "%empty =", "%one = tgraph.constant<1 : i32> : tensor<i32>\n  %empty =", 1
    )
    text = text.replace("%lr: tensor<f32>)", f"%lr: tensor<f32>, %vn: {NUMBER})")
    assert change in text
    assert carried(after(text.replace(change, to, 1))) == 2


def test_updates_of_few_rows_are_not_fused() -> None:
    text = TEXT.replace("9x8x8", "4x8x8").replace("constant<9 :", "constant<4 :")
    assert carried(after(text)) == 2


def without() -> list[ModulePass]:
    passes = PlanPipeline().passes()
    return [p for p in passes if not isinstance(p, TGraphFuseUpdatesIntoScan)]


@pytest.mark.thorough
def test_training_step_does_not_stack_gradients() -> None:
    module = tensorplan.from_stablehlo(MODEL).module
    planned = tensorplan.plan(module)
    plain = run(module, *without())
    assert planned_bytes(planned) < 0.6 * planned_bytes(plain)
    arrays = inputs(planned)
    got, want = (
        Executable(m, native=False)(*[array.copy() for array in arrays])
        for m in (planned, plain)
    )
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_training_step_of_blocks_does_not_stack_gradients() -> None:
    """If a block of layers is rematerialized, the rows of all its layers are updated at
    once."""
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    w = rng.standard_normal((24, 16, 16), np.float32) / 4
    x = rng.standard_normal((4, 16), np.float32)

    def layer(x, w):
        return jax.numpy.tanh(x @ w), None

    def loss(w, x):
        block = jax.checkpoint(lambda x, w: jax.lax.scan(layer, x, w))
        return (jax.lax.scan(block, x, w.reshape(6, 4, 16, 16))[0] ** 2).sum()

    def step(w, x):
        return w - 0.1 * jax.grad(loss)(w, x)

    module = tensorplan.from_jax(step, w, x, donate_argnums=0).module
    planned, plain = tensorplan.plan(module), run(module, *without())
    assert planned_bytes(planned) < 0.6 * planned_bytes(plain)
    got, want = (Executable(m, native=False)(w.copy(), x) for m in (planned, plain))
    np.testing.assert_array_equal(got[0], want[0])
