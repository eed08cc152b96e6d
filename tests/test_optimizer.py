"""Tests that Adam updates 20 variables in place, without temporaries."""

import numpy as np
from modules import parse, run
from xdsl.dialects import memref

import tensorplan
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.runtime.executor import Executable

COUNT = 20


def adam() -> str:
    """Returns a step of Adam for variables of several sizes, each with two moments."""
    lines: list[str] = []
    arguments: list[str] = []
    for i in range(COUNT):
        t = f"tensor<{4 + i}x8xf32>"
        arguments += [f"%{n}{i}: !tgraph.variable<{t}>" for n in "pmv"]
        arguments.append(f"%g{i}: {t}")
        for name, number in (
            ("b1", 0.9), ("c1", 0.1), ("b2", 0.999), ("c2", 0.001), ("lr", 0.01),
            ("eps", 1e-8),
        ):  # fmt: skip
            lines.append(f"%{name}_{i} = tgraph.constant<{number:e} : f32> : {t}")
        lines += [
            f"%p_{i} = tgraph.read %p{i} : {t}",
            f"%m_{i} = tgraph.read %m{i} : {t}",
            f"%v_{i} = tgraph.read %v{i} : {t}",
            f"%x0_{i} = tgraph.multiply %m_{i}, %b1_{i} : {t}",
            f"%x1_{i} = tgraph.multiply %g{i}, %c1_{i} : {t}",
            f"%m1_{i} = tgraph.add %x0_{i}, %x1_{i} : {t}",
            f"%x2_{i} = tgraph.multiply %g{i}, %g{i} : {t}",
            f"%x3_{i} = tgraph.multiply %x2_{i}, %c2_{i} : {t}",
            f"%x4_{i} = tgraph.multiply %v_{i}, %b2_{i} : {t}",
            f"%v1_{i} = tgraph.add %x4_{i}, %x3_{i} : {t}",
            f"%x5_{i} = tgraph.sqrt %v1_{i} : {t}",
            f"%x6_{i} = tgraph.add %x5_{i}, %eps_{i} : {t}",
            f"%x7_{i} = tgraph.divide %m1_{i}, %x6_{i} : {t}",
            f"%x8_{i} = tgraph.multiply %x7_{i}, %lr_{i} : {t}",
            f"%p1_{i} = tgraph.subtract %p_{i}, %x8_{i} : {t}",
        ]
    for i in range(COUNT):  # all at the end, as in a training step
        t = f"tensor<{4 + i}x8xf32>"
        lines += [f"tgraph.assign %{n}{i}, %{n}1_{i} : {t}" for n in "pmv"]
    body = "\n  ".join(lines)
    return f"func.func @main({', '.join(arguments)}) {{\n  {body}\n  func.return\n}}"


def test_every_assign_is_eliminated_without_a_temporary() -> None:
    planned = run(parse(adam()), PlanPipeline())
    names = {op.name for op in planned.walk()}
    assert names.isdisjoint({"tgraph.assign", "tgraph.read", "memref.copy"})
    assert not any(isinstance(op, memref.AllocOp) for op in planned.walk())
    assert tensorplan.report(planned)["pools"] == []  # the lower bound is 0 bytes


def test_a_step_computes_the_values_of_adam() -> None:
    rng = np.random.default_rng(0)
    shapes = [(4 + i, 8) for i in range(COUNT) for _ in range(4)]
    arrays = [np.abs(rng.standard_normal(shape, dtype="f4")) for shape in shapes]
    want: list[np.ndarray] = []
    for p, m, v, g in zip(*(iter(arrays),) * 4, strict=True):
        m1, v1 = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        want += [p - 0.01 * m1 / (np.sqrt(v1) + 1e-8), m1, v1]
    got = Executable(run(parse(adam()), PlanPipeline()))(*arrays)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
