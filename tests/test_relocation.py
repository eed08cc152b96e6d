"""Tests that compiled calls follow new arguments: right values, and no rebuilding."""

import gc
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from model_files import MODELS, marked

import tensorplan
from tensorplan.dialects.dtypes import Array
from tensorplan.runtime.executor import Executable
from tensorplan.runtime.program.relocation import Hidden, relocated
from tensorplan.runtime.program.steps import MemoryBlock, Step
from tensorplan.support.slots import Input

SMALL = ("mlp_infer", "mlp_train_adam", "lstm_scan_train", "gpt2_scan_train")


def random_arrays(inputs: Sequence[Input], seed: int) -> list[Array]:
    random = np.random.default_rng(seed)
    return [
        (
            random.random(x.shape)
            if x.dtype.kind == "f"
            else random.integers(0, 4, x.shape)
        ).astype(x.dtype)
        for x in inputs
    ]


def offset(array: Array) -> Array:
    """A copy that starts one element after an allocator's alignment."""
    memory = np.empty(array.size + 1, array.dtype)[1:]
    memory[:] = array.reshape(-1)
    return memory.reshape(array.shape)


@pytest.mark.thorough
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", marked(SMALL))
def test_new_arrays_give_the_results_of_a_new_executable(
    monkeypatch: pytest.MonkeyPatch, name: str, native: bool
) -> None:
    model = tensorplan.read(MODELS / f"{name}.mlir")
    planned = tensorplan.plan(model, workspaces="native" if native else "numpy")
    run = Executable(planned, native=native)
    wanted = [
        Executable(planned, native=native)(*random_arrays(run.inputs, seed))
        for seed in range(3)
    ]
    monkeypatch.setattr(Step, "remake", _unwanted)
    for seed, want in enumerate(wanted):
        for place in (np.copy, offset):
            arrays = [place(x) for x in random_arrays(run.inputs, seed)]
            for got, expected in zip(run(*arrays), want, strict=True):
                np.testing.assert_array_equal(got, expected)


def _unwanted(step: Step) -> None:
    raise AssertionError(f"{step} is made anew")


PRODUCTS = """
!t = tensor<8x8xf32>
func.func @main(%x: !t, %y: !t) -> !t {
  %0 = tgraph.dot_general %x, %y {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>} : (!t, !t) -> !t
  %1 = tgraph.exponential %0 : !t
  %2 = tgraph.add %1, %x : !t
  func.return %2 : !t
}
"""


def squares(seed: int) -> Array:
    return np.random.default_rng(seed).random((8, 8), np.float32)


def expected(x: Array, y: Array) -> Array:
    return np.exp(x @ y) + x


@pytest.mark.parametrize("native", [True, False])
def test_one_array_for_two_arguments(native: bool) -> None:
    run = Executable(tensorplan.plan(tensorplan.read(PRODUCTS)), native=native)
    x, y = squares(0), squares(1)
    for a, b in ((x, x), (x, y), (y, x), (y, y)):
        np.testing.assert_allclose(run(a, b)[0], expected(a, b), rtol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("native", [True, False])
def test_arrays_of_earlier_calls_are_released(native: bool) -> None:
    run = Executable(tensorplan.plan(tensorplan.read(PRODUCTS)), native=native)
    arrays = [squares(0), squares(1)]
    seen = [weakref.ref(x) for x in arrays]
    run(*arrays)
    arrays = [squares(2), squares(3)]
    run(*arrays)
    gc.collect()
    assert [x() for x in seen] == [None, None]


def test_results_in_given_arrays() -> None:
    run = Executable(tensorplan.plan(tensorplan.read(PRODUCTS)))
    for seed in range(3):
        x, y, out = squares(seed), squares(seed + 9), np.empty((8, 8), np.float32)
        assert run(x, y, out=[out])[0] is out
        np.testing.assert_allclose(out, expected(x, y), rtol=1e-5)


def test_profiled_steps_are_rebuilt() -> None:
    run = Executable(tensorplan.plan(tensorplan.read(PRODUCTS)))
    profile = run.profile()
    for seed in range(3):
        x, y = squares(seed), squares(seed + 9)
        np.testing.assert_allclose(run(x, y)[0], expected(x, y), rtol=1e-5)
    assert len(profile.to_json()) > 100


BRANCHES = """
!t = tensor<12xf32>
func.func @main(%p: tensor<i1>, %x: !t) -> !t {
  %y = tgraph.if %p, %x : (tensor<i1>, !t) -> !t {
  ^bb0(%a: !t):
    %s = tgraph.sort %a {dimension = 0 : i64} : !t {
    ^bb1(%b: tensor<f32>, %c: tensor<f32>):
      %less = tgraph.compare %b, %c {direction = "LT"}
        : (tensor<f32>, tensor<f32>) -> tensor<i1>
      tgraph.yield %less : tensor<i1>
    }
    tgraph.yield %s : !t
  } else {
  ^bb2(%d: !t):
    %n = tgraph.negate %d : !t
    tgraph.yield %n : !t
  }
  func.return %y : !t
}
"""


@pytest.mark.parametrize("native", [True, False])
def test_branches_follow_new_arguments(
    monkeypatch: pytest.MonkeyPatch, native: bool
) -> None:
    run = Executable(tensorplan.plan(tensorplan.read(BRANCHES)), native=native)
    monkeypatch.setattr(Step, "remake", _unwanted)
    for seed in range(4):
        x = squares(seed).reshape(-1)[:12].copy()
        want = np.sort(x) if seed % 2 else -x
        np.testing.assert_array_equal(run(np.array(seed % 2 == 1), x)[0], want)


def copied(memory: MemoryBlock, offset: int = 0) -> Array:
    return np.ndarray(4, np.float32, memory.bytes, offset)


CALLS: dict[str, Callable[[Array, Array], tuple[Any, tuple[Any, ...]]]] = {
    "ufunc": lambda x, y: (np.add, (x, x, y)),
    "nested": lambda x, y: (np.concatenate, ([x[:2], x[2:]], 0, y)),
    "method": lambda x, y: (y.__setitem__, (..., x)),
    "keywords": lambda x, y: (partial(np.multiply, 2, out=y), (x,)),
    "a partial method": lambda x, y: (partial(y.__setitem__, slice(0, 2)), (x[2:],)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_numpy_calls_follow_new_arguments(
    call: Callable[[Array, Array], tuple[Any, tuple[Any, ...]]],
) -> None:
    memory = MemoryBlock(np.zeros(32, np.uint8), "argument 0", "cpu:0")
    calls = [call(copied(memory), copied(memory, 16))]
    (following,), relocations = relocated(calls, [memory])
    want = np.arange(8, dtype=np.float32)
    function, arguments = call(want[:4], want[4:])
    function(*arguments)
    memory.array = np.arange(8, dtype=np.float32)
    relocations.move([memory])
    function, arguments = following
    function(*arguments)
    np.testing.assert_array_equal(memory.bytes.view(np.float32), want)


def test_calls_that_hide_their_arrays_are_refused() -> None:
    memory = MemoryBlock(np.zeros(32, np.uint8), "argument 0", "cpu:0")
    array = copied(memory)

    def default(x: Array = array) -> None:
        x.fill(1)

    for function in (lambda: array.fill(1), default, iter([array])):
        with pytest.raises(Hidden):
            relocated([(function, ())], [memory])  # pyright: ignore[reportArgumentType]
