"""Tests buffers in the memory of outputs: bytes, values, and the caller's arrays."""

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
from tensorplan.planning.on_demand import worthwhile
from tensorplan.planning.output_reuse import HandOver, Reuse, reuse
from tensorplan.reporting.placements import placements
from tensorplan.reporting.printed import printed
from tensorplan.runtime.executor import Executable


def arena_bytes(module: ModuleOp) -> int:
    return sum(pool["bytes"] for pool in tensorplan.report(module)["pools"])


@pytest.mark.thorough
@settings(max_examples=examples(500))
@given(programs(are_donated=True))
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


def test_the_largest_buffer_at_the_peak_is_placed_first() -> None:
    result = buffer("r", 100, 5, 9)
    a, b, c = buffer("a", 60, 0, 2), buffer("b", 90, 1, 4), buffer("c", 50, 6, 8)
    # The peak is in step 1, where b is placed, then in step 0, where a has no room.
    assert reuse([a, b, c], [result]) == {1: Reuse(0, 0)}
    # The smallest other output in which a fits is used.
    others = [result, buffer("s", 80, 3, 9), buffer("t", 70, 3, 9)]
    assert reuse([a, b, c], others) == {1: Reuse(0, 0), 0: Reuse(2, 0)}


def test_outputs_on_demand_are_provided_earlier_only_if_that_lowers_the_sum() -> None:
    given = buffer("d", 100, 0, 4)  # a donated argument
    result, later = buffer("r", 100, 5, 9), buffer("s", 60, 6, 9)
    early, own = buffer("a", 60, 0, 2), buffer("b", 50, 3, 5)
    # Both outputs at once would be 200 bytes; without `early` in it, `result` follows
    # the argument. `own` needs it only one step earlier, while the peak is later.
    reuses = {0: Reuse(0, 0), 1: Reuse(0, 0)}
    assert worthwhile([early, own], [result, given], reuses) == {}
    assert worthwhile([own], [result, later], {0: Reuse(0, 0)}) == {0: Reuse(0, 0)}
    # One of two outputs stays as it is.
    last, long = buffer("c", 90, 7, 8), buffer("t", 90, 8, 9)
    both = {0: Reuse(1, 0), 1: Reuse(0, 0)}
    kept = worthwhile([last, own], [result, long, given], both)
    assert kept == {0: Reuse(1, 0)}


@pytest.mark.parametrize("layers", range(2, 9))
def test_every_other_value_of_a_chain_lies_in_the_result(layers: int) -> None:
    """The value next to the result cannot lie there: it is live when the result is
    written."""
    values = [buffer(str(n), 64, n, n + 2) for n in range(layers)]
    result = buffer("r", 64, layers, layers + 1)
    rest = [n for n in range(layers) if n not in reuse(values, [result])]
    assert rest == list(range(layers - 1, -1, -2))[::-1]


def test_places_are_aligned_and_in_gaps_of_the_output() -> None:
    result = buffer("r", 200, 4, 12, gaps=((6, 9),))
    early = [buffer(n, 72, 0, 3, alignment=64) for n in "ab"]
    assert reuse(early, [result]) == {0: Reuse(0, 0), 1: Reuse(0, 128)}
    between = [buffer("a", 10, 6, 9), buffer("b", 10, 5, 7), buffer("c", 10, 8, 10)]
    assert reuse(between, [result]) == {0: Reuse(0, 0)}


def test_outputs_of_another_pool_or_without_room_are_not_used() -> None:
    result = buffer("r", 64, 5, 9)
    assert not reuse([buffer("a", 64, 0, 4, pool="i32")], [result])
    assert not reuse([buffer("a", 65, 0, 4)], [result])
    assert not reuse([buffer("a", 0, 0, 4)], [result])
    assert not reuse([buffer("a", 64, 0, 6)], [result])


def test_a_buffer_computed_in_place_shares_the_bytes() -> None:
    variable = buffer("v", 64, 0, 9, gaps=((3, 6),))
    hand_overs = {(0, 0): [HandOver(2, False), HandOver(6, True)]}

    def reused(start: int, end: int, size: int = 64, **further: Any) -> bool:
        one = buffer("a", size, start, end, **further)
        return reuse([one], [variable], hand_overs) == {0: Reuse(0, 0)}

    assert reused(2, 7)
    assert reused(2, 6)
    assert reused(3, 7)
    assert reused(3, 6, size=32)
    assert not reused(2, 7, size=32)  # not the same bytes
    assert not reused(1, 7)  # starts before it is computed from the variable
    assert not reused(2, 8)  # is read after the variable is written
    assert reuse([buffer("a", 64, 2, 7)], [variable]) == {}
    still_live = buffer("v", 64, 0, 9, gaps=((4, 6),))
    assert reuse([buffer("a", 64, 2, 7)], [still_live], hand_overs) == {}
    begun_before = buffer("v", 64, 0, 9, gaps=((3, 5),))
    assert reuse([buffer("a", 64, 2, 7)], [begun_before], hand_overs) == {}


IN_PLACE = """
func.func @main(%v: ARGUMENT) -> RESULT {
  %x = tgraph.read %v : tensor<131072xf32>
  %a = tgraph.exponential %x : tensor<131072xf32>
  %b = tgraph.reverse %a {dimensions = array<i64: 0>} : tensor<131072xf32>
  %c = tgraph.multiply %a, %b : tensor<131072xf32>
  %d = tgraph.reduce %c {kind = "add", dimensions = array<i64: 0>}
     : (tensor<131072xf32>) -> tensor<f32>
  %e = tgraph.broadcast_in_dim %d {broadcast_dimensions = array<i64>}
     : (tensor<f32>) -> tensor<131072xf32>
  %f = tgraph.multiply %a, %e : tensor<131072xf32>
  RETURN
}
"""
TENSOR = "tensor<131072xf32>"
HOMES = {
    "a variable": {
        "ARGUMENT": f"!tgraph.variable<{TENSOR}>",
        "RESULT": "()",
        "RETURN": f"tgraph.assign %v, %f : {TENSOR}\n  func.return",
    },
    "a result": {
        "ARGUMENT": TENSOR,
        "RESULT": TENSOR,
        f"%x = tgraph.read %v : {TENSOR}": "",
        "exponential %x": "exponential %v",
        "RETURN": f"func.return %f : {TENSOR}",
    },
    "a donated argument": {
        "ARGUMENT": f"{TENSOR} {{tgraph.donated}}",
        "RESULT": "tensor<f32>",
        f"%x = tgraph.read %v : {TENSOR}": "",
        "exponential %x": "exponential %v",
        "RETURN": "func.return %d : tensor<f32>",
    },
}


@pytest.mark.parametrize(
    "options", [{}, {"native": False}, {"sanitize": True}], ids=str
)
@pytest.mark.parametrize("home", HOMES.values(), ids=HOMES)
def test_tensors_stay_in_the_memory_of_an_argument_or_result(
    home: dict[str, str], options: dict[str, Any]
) -> None:
    text = IN_PLACE
    for old, new in home.items():
        text = text.replace(old, new)
    module = parse(text)
    planned = tensorplan.plan(module)
    assert arena_bytes(planned) <= 64
    *_, reused = placements(planned, printed(planned))
    own, other = (placed.buffer for placed in reused.buffers)
    assert not own.overlaps(other)  # as plan-view and scripts assume
    x = np.linspace(0, 1, 131072, dtype="f4")
    (want,) = run_reference(module, [x.copy()])
    run = Executable(planned, **options)
    fixed = x.copy()
    fixed.flags.writeable = False
    for array in (x.copy(), fixed, x.tolist(), np.repeat(x, 2)[::2]):
        np.testing.assert_allclose(run(array)[0], want, rtol=1e-5)
    assert fixed.tolist() == x.tolist()


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
def test_inputs_of_the_caller_are_not_overwritten(donate: tuple[int, ...]) -> None:
    """`out` must not be an input's memory. A donated input that is read after the
    first access of the result's memory is not reused."""
    module = parse(CHAIN)
    planned = tensorplan.plan(module)
    assert tensorplan.report(planned)["reused"]
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


def test_a_report_lists_reused_memory() -> None:
    planned = tensorplan.plan(parse(CHAIN))
    (reused,) = tensorplan.report(planned)["reused"]
    assert reused["memory"] == "result 0"
    assert 0 < reused["reused_bytes"] <= reused["bytes"] == 256
    alone = tensorplan.report(tensorplan.plan(parse(CHAIN), reuse_outputs=False))
    assert not alone["reused"]
    assert arena_bytes(planned) < sum(pool["bytes"] for pool in alone["pools"])
