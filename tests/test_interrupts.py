"""Tests interrupts at any point: later calls are right, callers' arrays are intact.

Python runs signal handlers, which raise `KeyboardInterrupt`, at the start of functions
and after calls. The tests use a profile function, which Python calls at these points.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from types import FrameType
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import tensorplan
from tensorplan.dialects.dtypes import Array
from tensorplan.runtime.backends.numpy import blas
from tensorplan.runtime.executor import Executable

pytestmark = pytest.mark.filterwarnings(  # when a generator is deleted
    "ignore::pytest.PytestUnraisableExceptionWarning"
)

N = 64
# %x and %y are only read, %p is a parameter, and %v a variable. %out is handed out to
# the caller, and %sum is copied. Another program can enlarge the pool of the arena.
PROGRAM = """
!t = memref<64xf32, "cpu:0">
!s = memref<f32, "cpu:0">
func.func @main(%x: !t, %y: !t, %p: !t {tgraph.parameter},
                %v: !t {tgraph.variable, tgraph.result = 2 : i32},
                %out: !t {tgraph.result = 0 : i32},
                %sum: !s {tgraph.result = 1 : i32}) {
  %a = memref.alloc() : !t
  tgraph.reverse %x outs(%a) {dimensions = array<i64: 0>} : !t
  tgraph.multiply %a, %y outs(%out) : !t
  tgraph.add %out, %p outs(%a) : !t
  tgraph.reduce %a outs(%sum) {dimensions = array<i64: 0>, kind = "add"}
    : (!t) -> !s
  tgraph.add %v, %x outs(%v) : !t
  memref.dealloc %a : !t
  func.return
}"""


def module() -> ModuleOp:
    return Parser(tensorplan.context(), PROGRAM).parse_module()


def given(seed: int) -> list[Array]:
    return list(np.random.default_rng(seed).standard_normal((4, N), np.float32))


def right(got: Sequence[Array], x: Array, y: Array, p: Array, v: Array) -> bool:
    product = x[::-1] * y
    want = product, (product + p).sum(), v + x
    return all(np.allclose(a, b, 1e-4, 1e-4) for a, b in zip(got, want, strict=True))


def is_at_an_end(frame: FrameType | None) -> bool:
    """Whether an object is being deleted, during which Python ignores exceptions."""
    while frame and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


def interrupted(call: Callable[[], object], number: int) -> bool:
    """Interrupts a call at its event `number`; returns False if the call ends
    before."""
    left = number

    def interrupt(frame: FrameType, event: str, argument: object) -> None:
        nonlocal left
        if event != "c_call":
            left -= 1
            if left < 0 and not is_at_an_end(frame):
                raise KeyboardInterrupt

    sys.setprofile(interrupt)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return left < 0


@pytest.fixture(autouse=True)
def handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorplan.runtime.arguments.LEAST", 4 * N)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "then"),
    [
        *(({}, then) for then in range(3)),
        ({"native": False}, 0),
        ({"threads": 2}, 1),
        ({"concurrent": True, "native": False}, 2),
    ],
    ids=str,
)
@pytest.mark.parametrize("usual", [True, False])
def test_an_interrupted_call(options: dict[str, Any], usual: bool, then: int) -> None:
    """Interrupts the second of three calls, at every fifth event.

    In the usual case, only %x and %y differ between calls, otherwise all arguments. The
    next call has the arguments of call number `then`.
    """
    run = Executable(module(), **options)
    for number in count(step=5):
        calls = [given(3 * number + n) for n in range(3)]
        if usual:
            calls[1][2:] = calls[2][2:] = calls[0][2:]
        before = [array.copy() for array in calls[0]]
        kept = run(*calls[0])
        assert right(kept, *before), number
        copies = [array.copy() for array in kept[:2]]
        is_over = not interrupted(partial(run, *calls[1]), number)
        if then != 1:
            calls[1] = []  # releases its arrays
        before = [array.copy() for array in calls[then]]
        assert right(run(*calls[then]), *before), number
        for array, copy in zip(kept, copies, strict=False):
            np.testing.assert_array_equal(array, copy, str(number))
        if is_over:
            assert number > 10
            return


def cube(n: int) -> ModuleOp:
    square = f"tensor<{n}x{n}xf32>"
    dims = """{lhs_batching_dimensions = array<i64>,
      rhs_batching_dimensions = array<i64>, lhs_contracting_dimensions = array<i64: 1>,
      rhs_contracting_dimensions = array<i64: 0>}"""
    text = f"""
func.func @main(%x: {square}) -> {square} {{
  %a = tgraph.dot_general %x, %x {dims} : ({square}, {square}) -> {square}
  %b = tgraph.dot_general %a, %x {dims} : ({square}, {square}) -> {square}
  func.return %b : {square}
}}"""
    module = Parser(tensorplan.context(), text).parse_module()
    return tensorplan.plan(module)


@pytest.mark.thorough
def test_an_arena_that_moves() -> None:
    """The first call after another program has enlarged the arena compiles the steps
    again, in some 10,000 events, of which every 31st is interrupted."""
    small, large = cube(4), cube(16)
    x = 2 * np.eye(4, dtype=np.float32)
    for number in count(step=31):
        run = Executable(small)
        run(x)
        before = run.pools[0].memory
        Executable(large, pools=run.pools, native=False)
        assert run.pools[0].memory is not before
        is_over = not interrupted(partial(run, x), number)
        before[:] = 0  # a step that still uses it gives wrong values
        np.testing.assert_array_equal(run(x)[0], 4 * x, str(number))
        if is_over:
            return


def test_threads_of_blas() -> None:
    get, _ = blas._controls()
    before = get()

    def work() -> None:
        with blas.Threads(before + 1):
            assert get() == before + 1

    for number in count():
        is_over = not interrupted(work, number)
        assert get() == before, number
        if is_over:
            return


def test_binding() -> None:
    run = Executable(module())
    for number in count():
        x, y, p, v = given(2 * number)
        other = given(2 * number + 1)[2]
        run.bind({2: p})
        before = v.copy()
        assert right(run(x, y, v), x, y, p, before), number
        is_over = not interrupted(partial(run.bind, {2: other}), number)
        before = v.copy()
        got = run(x, y, v)
        bound = run.parameters[2]
        assert bound is p or bound is other
        assert right(got, x, y, bound, before), number
        if is_over:
            return
