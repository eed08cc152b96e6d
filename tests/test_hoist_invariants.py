"""Tests that `tgraph-hoist-invariants` preserves values, and moves invariants out of
loops if the arena has room for them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from levels import inputs
from modules import parse, run
from sampling import examples

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.passes.tgraph.hoist_invariants import TGraphHoistInvariants

SIZE = 16
M = f"tensor<{SIZE}x{SIZE}xf32>"
DOT = """{lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}"""

LOOP = """
func.func @main(%a: M, %b: M, %x: M) -> M {{
  %zero = tgraph.constant<0 : i32> : tensor<i32>
  %0:2 = tgraph.while %zero, %x, %a, %b
    : (tensor<i32>, M, M, M) -> (tensor<i32>, M) {{
  ^bb0(%vi: !tgraph.variable<tensor<i32>>, %vx: !tgraph.variable<M>, %c: M, %d: M):
    %i = tgraph.read %vi : tensor<i32>
    %last = tgraph.constant<{trips} : i32> : tensor<i32>
    %p = tgraph.compare %i, %last {{direction = "LT"}}
      : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  }} do {{
  ^bb0(%vi: !tgraph.variable<tensor<i32>>, %vx: !tgraph.variable<M>, %c: M, %d: M):
    %i = tgraph.read %vi : tensor<i32>
    %one = tgraph.constant<1 : i32> : tensor<i32>
    %half = tgraph.constant<5.0e-01 : f32> : M
    %v0 = tgraph.read %vx : M
    {body}
    %j = tgraph.add %i, %one : tensor<i32>
    tgraph.assign %vi, %j : tensor<i32>
    tgraph.assign %vx, {last} : M
    tgraph.yield
  }}
  func.return %0#1 : M
}}
""".replace("M", M)


@st.composite
def loops(draw: st.DrawFn) -> str:
    """A loop that computes with values that change in each iteration and with invariant
    values."""
    values = ["%c", "%d", "%half", "%v0"]
    lines: list[str] = []
    for number in range(1, draw(st.integers(1, 8)) + 1):
        left, right = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        name = f"%v{number}"
        lines.append(
            draw(
                st.sampled_from(
                    [
                        f"{name} = tgraph.add {left}, {right} : {M}",
                        f"{name} = tgraph.tanh {left} : {M}",
                        f"{name} = tgraph.dot_general {left}, {right} {DOT} : "
                        f"({M}, {M}) -> {M}",
                        f"{name} = tgraph.transpose {left} "
                        f"{{permutation = array<i64: 1, 0>}} : ({M}) -> {M}",
                    ]
                )
            )
        )
        values.append(name)
    body = "\n    ".join(lines)
    return LOOP.format(trips=draw(st.integers(0, 4)), body=body, last=values[-1])


@settings(max_examples=examples(40))
@given(loops(), st.sampled_from([0.0, 0.01, 0.3, 10.0]))
def test_values_are_preserved(text: str, growth: float) -> None:
    before = parse(text)
    values = inputs(before)
    for got, want in zip(
        run_reference(run(before, TGraphHoistInvariants(max_growth=growth)), values),
        run_reference(before, values),
        strict=True,
    ):
        np.testing.assert_array_equal(got, want)


BODY = f"""%s = tgraph.multiply %c, %half : {M}
    %t = tgraph.tanh %s : {M}
    %v1 = tgraph.dot_general %t, %v0 {DOT} : ({M}, {M}) -> {M}"""


@pytest.mark.parametrize("budget", [None, "smallest"])
def test_plan_computes_invariants_once(budget: str | None) -> None:
    """The invariant is computed before the loop, also with a budget that has room for
    it."""
    text = LOOP.format(trips=9, body=BODY, last="%v1")
    plan = tensorplan.plan(parse(text))
    if budget:
        (pool,) = tensorplan.report(plan)["pools"]
        plan = tensorplan.plan(parse(text), budget=pool["bytes"])
    before, after = str(plan).split("scf.while")
    assert "tgraph.tanh" in before
    assert "tgraph.tanh" not in after
    values = inputs(parse(text))
    (got,) = tensorplan.compile(plan)(*values)
    (want,) = run_reference(parse(text), values)
    np.testing.assert_allclose(got, want, rtol=1e-3)


def test_as_many_as_the_arena_has_room_for_are_moved() -> None:
    lines: list[str] = []
    for n in range(6):
        lines.append(f"%t{n} = tgraph.tanh {'%c' if n == 0 else f'%t{n - 1}'} : {M}")
        lines.append(f"%v{n + 1} = tgraph.multiply %v{n}, %t{n} : {M}")
    loop = LOOP.format(trips=9, body="\n    ".join(lines), last="%v6")
    moved: list[int] = []
    for growth in (0, 0.6, 2, 9):
        text = str(run(parse(loop), TGraphHoistInvariants(max_growth=growth)))
        moved.append(text.split("tgraph.while")[0].count("tgraph.tanh"))
    assert moved == [0, 1, 4, 6]


def test_negative_growth_is_refused() -> None:
    with pytest.raises(ValueError, match="max-growth is -1, expected 0 or more"):
        TGraphHoistInvariants(max_growth=-1)
