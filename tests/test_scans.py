"""Tests that `analysis/scans` agrees with the interpreter about scalars in a loop."""

from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from modules import parse

from tensorplan.analysis.loops import counter
from tensorplan.analysis.scans import linear
from tensorplan.dialects.tgraph.indexing import DynamicUpdateSliceOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.structure import WhileOp

TEXT = """
!s = tensor<{element}>
!v = !tgraph.variable<!s>
!r = tensor<{trips}x{element}>
func.func @main() -> !r {{
  %zero = tgraph.constant<0 : {element}> : !s
  %start = tgraph.constant<{start} : {element}> : !s
  %empty = tgraph.constant<0 : {element}> : !r
  %0:3 = tgraph.while %zero, %start, %empty, %start
    : (!s, !s, !r, !s) -> (!s, !s, !r) {{
  ^bb0(%i: !v, %j: !v, %s: !tgraph.variable<!r>, %g: !s):
    %n = tgraph.read %i : !s
    %trips = tgraph.constant<{trips} : {element}> : !s
    %p = tgraph.compare %n, %trips {{direction = "LT"}} : (!s, !s) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  }} do {{
  ^bb0(%i: !v, %j: !v, %s: !tgraph.variable<!r>, %g: !s):
    %v0 = tgraph.read %i : !s
    %v1 = tgraph.read %j : !s
    %old = tgraph.read %s : !r
    {body}
    %row = tgraph.reshape %v{last} : (!s) -> tensor<1x{element}>
    %new = tgraph.dynamic_update_slice %old, %row, %v0
      : (!r, tensor<1x{element}>, !s) -> !r
    %one = tgraph.constant<1 : {element}> : !s
    %step = tgraph.constant<{step} : {element}> : !s
    %next = tgraph.add %v0, %one : !s
    %other = tgraph.add %v1, %step : !s
    tgraph.assign %i, %next : !s
    tgraph.assign %j, %other : !s
    tgraph.assign %s, %new : !r
    tgraph.yield
  }}
  func.return %0#2 : !r
}}"""


@st.composite
def loops(draw: Any) -> dict[str, object]:
    count = draw(st.integers(1, 8))
    lines: list[str] = []
    last = 1
    for _ in range(count):
        a, b, c, d = (draw(st.integers(0, last)) for _ in range(4))
        last += 1
        match draw(st.integers(0, 4)):
            case 0:
                number = draw(st.sampled_from([-90, -5, 0, 3, 90]))
                line = f"tgraph.constant<{number} : {{element}}> : !s"
            case 1:
                line = f"tgraph.add %v{a}, %v{b} : !s"
            case 2:
                line = f"tgraph.subtract %v{a}, %v{b} : !s"
            case 3:
                line = f"tgraph.add %v{a}, %g : !s"
            case _:
                lines.append(
                    f'%p{last} = tgraph.compare %v{a}, %v{b} {{{{direction = "LT"}}}} '
                    ": (!s, !s) -> tensor<i1>"
                )
                line = (
                    f"tgraph.select %p{last}, %v{c}, %v{d} : (tensor<i1>, !s, !s) -> !s"
                )
        lines.append(f"%v{last} = {line}")
    element = draw(st.sampled_from(["i8", "i32"]))
    return {
        "element": element,
        "trips": draw(st.integers(1, 9)),
        "start": draw(st.integers(-20, 20)),
        "step": draw(st.integers(-3, 3)),
        "body": "\n    ".join(lines).format(element=element),
        "last": last,
    }


WRAPS = """%v2 = tgraph.constant<90 : i8> : !s
    %v3 = tgraph.add %v2, %v2 : !s"""
WRAPPED = {"element": "i8", "trips": 3, "start": 0, "step": 1, "body": WRAPS, "last": 3}


@given(loops())
@example(WRAPPED)
def test_linear_scalars_of_random_loops(parts: dict[str, object]) -> None:
    module = parse(TEXT.format(**parts))
    (loop,) = (op for op in module.walk() if isinstance(op, WhileOp))
    counted = counter(loop)
    assert counted is not None
    (update,) = (op for op in module.walk() if isinstance(op, DynamicUpdateSliceOp))
    found = linear(update.inputs[1], loop, counted)
    (got,) = run_reference(module, [])
    if found is not None:
        want = found.slope * np.arange(counted.trips) + found.start
        np.testing.assert_array_equal(got, want)


def test_index_that_may_be_negative() -> None:
    """JAX writes `w[i]` in this form."""
    body = """%n = tgraph.constant<9 : i32> : !s
    %v2 = tgraph.constant<0 : i32> : !s
    %p = tgraph.compare %v1, %v2 {direction = "LT"} : (!s, !s) -> tensor<i1>
    %v3 = tgraph.add %v1, %n : !s
    %v4 = tgraph.select %p, %v3, %v1 : (tensor<i1>, !s, !s) -> !s"""
    how = {"element": "i32", "trips": 5, "step": 1, "body": body, "last": 4}
    places: list[object] = []
    for start in (2, -2, -7):
        module = parse(TEXT.format(**how, start=start))
        (loop,) = (op for op in module.walk() if isinstance(op, WhileOp))
        (update,) = (op for op in module.walk() if isinstance(op, DynamicUpdateSliceOp))
        counted = counter(loop)
        assert counted is not None
        places.append(linear(update.inputs[1], loop, counted))
    assert places == [(1, 2), None, (1, 2)]
