"""Tests that long programs need no deep recursion, and time proportional to length."""

import sys
from collections.abc import Callable
from time import process_time

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes import driver
from tensorplan.passes.convert.tgraph_to_linalg import ConvertTGraphToLinalg
from tensorplan.passes.plan.check import PlanCheck
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.tgraph.gradient import TGraphGradient
from tensorplan.runtime.executor import Executable

T = "tensor<16xf32>"
LONG = 1050
"""More operations than Python's stack has frames."""


def stored(count: int) -> str:
    """A chain in which every other value is stored."""
    ops = ["tanh %{} : {}", "reverse %{} {{dimensions = array<i64: 0>}} : {}"]
    lines = [f"  %{n + 1} = tgraph.{ops[n % 2].format(n, T)}\n" for n in range(count)]
    body = f"{''.join(lines)}  func.return %{count} : {T}\n"
    return f"func.func @main(%0: {T}) -> {T} {{\n{body}}}".replace("%", "%v")


def elementwise(count: int) -> str:
    """A chain that can be fused into groups."""
    lines = [f"  %v{n + 1} = tgraph.tanh %v{n} : {T}\n" for n in range(count)]
    body = f"{''.join(lines)}  func.return %v{count} : {T}\n"
    return f"func.func @main(%v0: {T}) -> {T} {{\n{body}}}"


def group(count: int) -> str:
    """One group in which each operation reads the two previous results."""
    lines = [
        f"    %v{n + 1} = tgraph.maximum %v{n}, %v{max(0, n - 1)} : {T}\n"
        for n in range(count)
    ]
    body = f"{''.join(lines)}    tgraph.yield %v{count} : {T}\n  }}\n"
    fusion = f"  %r = tgraph.fusion(%v0 = %x) : ({T}) -> {T} {{\n{body}"
    return f"func.func @main(%x: {T}) -> {T} {{\n{fusion}  func.return %r : {T}\n}}"


def loss(count: int) -> str:
    lines = [f"  %v{n + 1} = tgraph.sine %v{n} : {T}\n" for n in range(count)]
    last = (
        f'  %s = tgraph.reduce %v{count} {{kind = "add", dimensions = array<i64: 0>}}'
        f" : ({T}) -> tensor<f32>\n"
        f"  %g = tgraph.gradient %s wrt %v0 : tensor<f32> wrt {T}\n"
        f"  func.return %g : {T}\n"
    )
    return f"func.func @main(%v0: {T}) -> {T} {{\n{''.join(lines)}{last}}}"


def check(module: ModuleOp, *, native: bool) -> ModuleOp:
    """Plans a module, compares values with the reference, and returns the plan."""
    x = np.linspace(-1, 1, 16, dtype=np.float32)
    (want,) = run_reference(module, [x])
    workspaces = "native" if native else "numpy"
    planned = tensorplan.plan(module, workspaces=workspaces)
    run = Executable(planned, native=native)
    np.testing.assert_allclose(run(x)[0], want, 1e-3, 1e-6)
    return planned


@pytest.mark.thorough
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("program", [stored, elementwise, group])
def test_long_programs(program: Callable[[int], str], native: bool) -> None:
    planned = check(tensorplan.read(program(LONG)), native=native)
    if not native:  # one run is enough
        driver.run(tensorplan.context(), planned, [ConvertTGraphToLinalg()])


def test_long_groups_of_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles with little of the stack left. More nodes would take LLVM too long."""
    module = tensorplan.plan(tensorplan.read(group(400)), workspaces="native")
    depth = len(_frames())
    monkeypatch.setattr("tensorplan.runtime.backends.native.functions._functions", {})
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 200)
    try:
        Executable(module)
    finally:
        sys.setrecursionlimit(before)


def _frames() -> list[object]:
    frame, found = sys._getframe(), list[object]()
    while frame := frame.f_back:
        found.append(frame)
    return found


def nested(depth: int) -> str:
    """Nested loops; each writes a buffer before the next loop, and reads it after
    it."""
    m = "memref<16xf32>"
    body = f"memref.copy %x, %y : {m} to {m}\n"
    for n in range(depth):
        before = f"memref.copy %x, %v{n} : {m} to {m}\n"
        after = f"memref.copy %v{n}, %y : {m} to {m}\n"
        body = (
            f"%v{n} = memref.alloc() : {m}\n"
            f"scf.for %i{n} = %n to %n step %n {{\n{before}{body}{after}}}\n"
            f"memref.dealloc %v{n} : {m}\n"
        )
    return f"func.func @main(%n: index, %x: {m}, %y: {m}) {{\n{body}func.return\n}}\n"


def test_nested_loops_are_planned_and_checked() -> None:
    """If each loop visited its body twice, the innermost would be visited 2**30
    times."""
    module = tensorplan.read(nested(30))
    driver.run(tensorplan.context(), module, [PlanMemory(), PlanCheck()])
    (pool,) = tensorplan.report(module)["pools"]
    assert pool["buffers"] == 30


def test_long_gradients() -> None:
    module = tensorplan.read(loss(LONG))
    driver.run(tensorplan.context(), module, [TGraphGradient()])


@pytest.mark.thorough
def test_long_programs_are_explained() -> None:
    assert str(tensorplan.explain(tensorplan.read(stored(LONG)), limit=1.0))


@pytest.mark.slow
@pytest.mark.parametrize(("program", "count"), [(stored, 20_000), (group, 5_000)])
def test_time_grows_with_length(program: Callable[[int], str], count: int) -> None:
    def seconds(count: int) -> float:
        start = process_time()
        check(tensorplan.read(program(count)), native=True)
        return process_time() - start

    seconds(100)
    assert seconds(count) < 8 * seconds(count // 4)
