"""Buffers in results' memory: never more bytes, the same values, and who may notice."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from levels import inputs
from modules import parse
from programs import Program, programs
from sampling import examples
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.planning import Buffer
from tensorplan.planning.output_reuse import Reuse, reuse
from tensorplan.runtime.executor import Executable


def arena_bytes(module: ModuleOp) -> int:
    return sum(pool["bytes"] for pool in tensorplan.report(module)["pools"])


@settings(max_examples=examples(500))
@given(programs())
def test_never_more_bytes_and_the_same_values(program: Program) -> None:
    planned = tensorplan.plan(program.module)
    alone = tensorplan.plan(program.module, reuse_outputs=False)
    assert arena_bytes(planned) <= arena_bytes(alone)
    want = run_reference(program.module, inputs(program.module))
    got = Executable(planned, sanitize=True, native=False)(*inputs(program.module))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, equal_nan=True)


def buffer(id: str, size: int, start: int, end: int, **further: Any) -> Buffer:
    return Buffer(id, size, start, end, **{"pool": "f32", **further})


def test_the_largest_at_the_peak_goes_first_and_no_more_than_helps() -> None:
    result = buffer("r", 100, 5, 9)
    a, b, c = buffer("a", 60, 0, 2), buffer("b", 90, 1, 4), buffer("c", 50, 6, 8)
    # The peak is in step 1, then in 0, where a finds no room any more.
    assert reuse([a, b, c], [result]) == {1: Reuse(0, 0)}
    # With another one in which it fits. The smallest that does is taken.
    others = [result, buffer("s", 80, 3, 9), buffer("t", 70, 3, 9)]
    assert reuse([a, b, c], others) == {1: Reuse(0, 0), 0: Reuse(2, 0)}


def test_side_by_side_aligned_and_around_what_is_live() -> None:
    result = buffer("r", 200, 4, 12, gaps=((6, 9),))
    early = [buffer(n, 72, 0, 3, alignment=64) for n in "ab"]
    assert reuse(early, [result]) == {0: Reuse(0, 0), 1: Reuse(0, 128)}
    between = [buffer("a", 10, 6, 9), buffer("b", 10, 5, 7), buffer("c", 10, 8, 10)]
    assert reuse(between, [result]) == {0: Reuse(0, 0)}


def test_not_into_another_pool_or_one_that_is_too_small() -> None:
    result = buffer("r", 64, 5, 9)
    assert not reuse([buffer("a", 64, 0, 4, pool="i32")], [result])
    assert not reuse([buffer("a", 65, 0, 4)], [result])
    assert not reuse([buffer("a", 0, 0, 4)], [result])
    assert not reuse([buffer("a", 64, 0, 6)], [result])


CHAIN = """
func.func @main(%a: tensor<64xf32>) -> tensor<64xf32> {
  %x = tgraph.exponential %a : tensor<64xf32>
  %y = tgraph.reverse %x {dimensions = array<i64: 0>} : tensor<64xf32>
  %p = tgraph.add %x, %y : tensor<64xf32>
  %q = tgraph.reverse %p {dimensions = array<i64: 0>} : tensor<64xf32>
  %r = tgraph.subtract %q, %a : tensor<64xf32>
  func.return %r : tensor<64xf32>
}
"""


@pytest.mark.parametrize("donate", [(), (0,)])
def test_what_the_caller_lends_stays_its_own(donate: tuple[int, ...]) -> None:
    """`out` may not be an input's memory; a donated input that is read after the
    first access of the result's memory is not taken."""
    module = parse(CHAIN)
    planned = tensorplan.plan(module)
    assert tensorplan.report(planned)["results"]
    a = np.linspace(0, 1, 64, dtype="f4")
    (want,) = run_reference(module, [a.copy()])
    run = Executable(planned, donate=donate)
    assert not run.donations
    given, out = a.copy(), np.empty_like(a)
    (got,) = run(given, out=[out])
    assert got is out
    np.testing.assert_array_equal(given, a)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    with pytest.raises(ValueError, match="share memory"):
        run(given, out=[given])


def test_a_report_says_what_lies_where() -> None:
    planned = tensorplan.plan(parse(CHAIN))
    (result,) = tensorplan.report(planned)["results"]
    assert result["result"] == 0
    assert 0 < result["reused_bytes"] <= result["bytes"] == 256
    alone = tensorplan.report(tensorplan.plan(parse(CHAIN), reuse_outputs=False))
    assert not alone["results"]
    assert arena_bytes(planned) < sum(pool["bytes"] for pool in alone["pools"])
