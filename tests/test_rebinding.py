"""Tests calls with new arrays, which native code binds, or Python if native code
refuses."""

import weakref
from array import array
from collections.abc import Callable, Sequence
from random import Random
from unittest.mock import patch

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.dtypes import Array
from tensorplan.runtime import rebinding
from tensorplan.runtime.arguments import Arguments
from tensorplan.runtime.backends.onednn import backend as onednn
from tensorplan.runtime.executor import Executable
from tensorplan.support.arrays import address

pytestmark = pytest.mark.skipif(
    not rebinding.is_available(), reason="needs native code"
)

RNG = np.random.default_rng(0)
# A product, an elementwise operation, a slice that a kernel reads in place, and a
# variable.
TEXT = """
!t = tensor<12x12xf32>
func.func @main(%v: !tgraph.variable<!t> {tgraph.result = 1 : i32},
                %x: !t, %y: !t) -> !t {
  %old = tgraph.read %v : !t
  %sum = tgraph.add %old, %x : !t
  tgraph.assign %v, %sum : !t
  %product = tgraph.dot_general %x, %y {lhs_contracting_dimensions = array<i64: 1>,
      rhs_contracting_dimensions = array<i64: 0>} : (!t, !t) -> !t
  %part = tgraph.slice %y {start_indices = array<i64: 3, 0>,
      limit_indices = array<i64: 4, 12>, strides = array<i64: 1, 1>}
      : (!t) -> tensor<1x12xf32>
  %wide = tgraph.broadcast_in_dim %part {broadcast_dimensions = array<i64: 0, 1>}
      : (tensor<1x12xf32>) -> !t
  %z = tgraph.add %product, %wide : !t
  func.return %z : !t
}
"""


def normal() -> Array:
    return RNG.standard_normal((12, 12), np.float32)


def check(run: Executable, total: Array, x: Array, y: Array) -> None:
    before = total.copy()
    z, after = run(total, x, y)
    np.testing.assert_allclose(z, x @ y + y[3], rtol=1e-5, atol=1e-5)
    assert after is total
    np.testing.assert_array_equal(total, before + x)


@pytest.fixture
def run() -> Executable:
    return Executable(tensorplan.plan(tensorplan.read(TEXT)))


@pytest.fixture
def total(run: Executable) -> Array:
    """The variable of the program `run`, after calls with several arrays."""
    total = normal()
    for _ in range(3):
        check(run, total, normal(), normal())
    return total


@pytest.mark.skipif(not onednn.is_available(), reason="needs oneDNN")
def test_native_code_binds_new_arrays(run: Executable, total: Array) -> None:
    x = normal()
    with patch.object(Arguments, "accept", side_effect=AssertionError):
        for given in (x, x, normal(), x):
            check(run, total, given, normal())


def test_program_keeps_arrays_until_the_next_call(
    run: Executable, total: Array
) -> None:
    x = normal()
    check(run, total, x, normal())
    is_there = weakref.ref(x)
    del x
    assert is_there() is not None
    check(run, total, normal(), normal())
    assert is_there() is None


def unaligned() -> Array:
    array = np.zeros(12 * 12 * 4 + 1, np.uint8)[1:].view(np.float32)
    return array.reshape(12, 12)


@pytest.mark.parametrize(
    "given",
    [
        normal().T,
        np.zeros((12, 24), np.float32)[:, ::2],
        unaligned(),
        normal().tolist(),
        normal().view(np.recarray),
    ],
)
def test_unusual_inputs(run: Executable, total: Array, given: Array) -> None:
    plain = np.array(given, np.float32)
    before, y = total.copy(), normal()
    z, _ = run(total, given, y)
    np.testing.assert_allclose(z, plain @ y + y[3], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(total, before + plain)
    for _ in range(3):
        check(run, total, normal(), normal())


def test_inputs_in_written_memory_are_copied(run: Executable, total: Array) -> None:
    before, y = total.copy(), normal()
    z, _ = run(total, total, y)
    np.testing.assert_allclose(z, before @ y + y[3], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(total, 2 * before)
    assert run.copies["argument 1: in memory that is written"] == 1


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (np.zeros((12, 12)), TypeError),
        (np.zeros((12, 13), np.float32), ValueError),
        (np.zeros((12, 12, 1), np.float32), ValueError),
        (np.zeros(144, np.float32), ValueError),
        (None, TypeError),
    ],
)
def test_wrong_inputs_are_refused(
    run: Executable, total: Array, given: Array, error: type[Exception]
) -> None:
    with pytest.raises(error):
        run(total, normal(), given)
    with pytest.raises(TypeError):
        run(total, normal())
    check(run, total, normal(), normal())


def test_new_arrays_for_a_variable(run: Executable, total: Array) -> None:
    del total
    for _ in range(2):
        check(run, normal(), normal(), normal())


def test_calls_after_profiling(run: Executable, total: Array) -> None:
    """A profile creates new native calls while the arrays stay the same."""
    x, y = normal(), normal()
    check(run, total, x, y)
    run.profile()
    check(run, total, x, y)
    for _ in range(3):
        check(run, total, normal(), normal())


def test_results_in_given_arrays(run: Executable, total: Array) -> None:
    x, y, out = normal(), normal(), normal()
    run(total, x, y, out=[out, None])
    np.testing.assert_allclose(out, x @ y + y[3], rtol=1e-5, atol=1e-5)
    for _ in range(3):
        check(run, total, normal(), normal())


def test_parameters_bound_between_calls(run: Executable, total: Array) -> None:
    y = normal()
    run.bind({2: y})
    for _ in range(4):
        x, before = normal(), total.copy()
        z, _ = run(total, x)
        np.testing.assert_allclose(z, x @ y + y[3], rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(total, before + x)


SCALED = """
func.func @main(%x: tensor<6x6xf32>, %a: tensor<f32>, %y: tensor<6x6xf32>)
    -> tensor<6x6xf32> {
  %wide = tgraph.broadcast_in_dim %a {broadcast_dimensions = array<i64>}
      : (tensor<f32>) -> tensor<6x6xf32>
  %z = tgraph.multiply %x, %wide : tensor<6x6xf32>
  %r = tgraph.add %z, %y : tensor<6x6xf32>
  func.return %r : tensor<6x6xf32>
}
"""


def as_buffer(values: Array) -> object:
    whole = memoryview(array("f", values.ravel().tolist()))
    return whole.cast("B").cast("f", values.shape)


KINDS: Sequence[Callable[[Array], object]] = (
    np.array,
    as_buffer,
    np.asfortranarray,
    lambda x: np.repeat(x, 2, 1)[:, ::2],
    lambda x: x.tolist(),
)


@pytest.mark.parametrize("seed", range(6))
def test_random_sequences_of_calls(seed: int) -> None:
    """Every call computes from its arguments, for random sequences of kinds of arrays,
    numbers, repeated arrays with other contents, and arrays that do not fit."""
    random = Random(seed)
    run = Executable(tensorplan.plan(tensorplan.read(SCALED)))
    known: list[object] = []

    def matrix() -> object:
        if known and random.random() < 0.4:
            given = random.choice(known)
            if isinstance(given, np.ndarray) and random.random() < 0.7:
                given += 1
            return given
        kind = random.choice(KINDS)
        known.append(kind(RNG.standard_normal((6, 6), np.float32)))
        return known[-1]

    for _ in range(120):
        number = random.choice((1.5, 2, True, np.float32(0.5), np.array(3, "f4")))
        x, y = matrix(), matrix()
        if random.random() < 0.1:
            with pytest.raises((TypeError, ValueError)):
                run(x, number, None)
        if random.random() < 0.1:
            with pytest.raises((TypeError, ValueError)):
                run(x, 1j, y)
        expected = np.asarray(x, "f4") * np.float32(number) + np.asarray(y, "f4")
        (result,) = run(x, number, y)
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_buffers_and_numbers_are_not_copied() -> None:
    run = Executable(tensorplan.plan(tensorplan.read(SCALED)))
    for number in range(5):
        run(as_buffer(normal()[:6, :6]), number, normal()[:6, :6].copy())
    assert not any("argument" in copied for copied in run.copies)


def test_resizable_buffers_are_copied() -> None:
    run = Executable(tensorplan.plan(tensorplan.read(SCALED.replace("6x6", "4"))))
    for x in (array("f", [1, 2, 3, 4]), array("d", [1, 2, 3, 4])):
        for _ in range(4):
            (result,) = run(x, 2.0, [0.0] * 4)
            np.testing.assert_array_equal(result, [2, 4, 6, 8])
        x.append(5)
        with pytest.raises(ValueError, match="shape"):
            run(x, 2.0, [0.0] * 4)


def test_complex_number_for_bfloat16_is_refused() -> None:
    text = """func.func @main(%x: tensor<bf16>) -> tensor<bf16> {
      func.return %x : tensor<bf16>
    }"""
    run = Executable(tensorplan.plan(tensorplan.read(text)))
    with pytest.raises(TypeError, match="complex128, expected bfloat16"):
        run(2 + 1j)


def test_python_rebinds_inputs_of_python_kernels() -> None:
    """No call is rebuilt for another array object in the same memory."""
    text = """
    func.func @main(%x: tensor<999xf32>, %y: tensor<999xf32>)
        -> (tensor<999xf32>, tensor<999xf32>) {
      %z = tgraph.negate %x : tensor<999xf32>
      %s = tgraph.sort %y {dimension = 0 : i64} : tensor<999xf32> {
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %less = tgraph.compare %a, %b {direction = "LT"}
          : (tensor<f32>, tensor<f32>) -> tensor<i1>
        tgraph.yield %less : tensor<i1>
      }
      func.return %z, %s : tensor<999xf32>, tensor<999xf32>
    }"""
    run = Executable(tensorplan.plan(tensorplan.read(text)))
    y = RNG.standard_normal(999, np.float32)
    with patch.object(Arguments, "_made_rebinding", side_effect=AssertionError):
        for x in (RNG.standard_normal(999, np.float32) for _ in range(4)):
            negated, ordered = run(x, y[:])
            np.testing.assert_array_equal(negated, -x)
            np.testing.assert_array_equal(ordered, np.sort(y))


def test_inputs_in_memory_of_many_results() -> None:
    count = 9
    types = ", ".join(["tensor<12xf32>"] * count)
    lines = [
        f"%r{n} = tgraph.multiply %x, %y : tensor<12xf32>"
        if n % 2
        else f"%r{n} = tgraph.add %x, %y : tensor<12xf32>"
        for n in range(count)
    ]
    text = f"""
    func.func @main(%x: tensor<12xf32>, %y: tensor<12xf32>) -> ({types}) {{
      {" ".join(lines)}
      func.return {", ".join(f"%r{n}" for n in range(count))} : {types}
    }}"""
    run = Executable(tensorplan.plan(tensorplan.read(text)), results="view")
    y = normal()[0]
    for _ in range(3):
        run(normal()[0], y)
    for n in range(count):
        run(normal()[0], y)
        x = run(normal()[0], y)[n]
        before = x.copy()
        np.testing.assert_array_equal(run(x, y)[0], before + y)


def in_memory(run: Executable, *inputs: Array) -> list[Array]:
    """The results of a call that takes only addresses."""
    results = [np.full(x.shape, 7, x.dtype) for x in run.results]
    run.run_at([[address(x) for x in (*inputs, *results)]])
    return results


WITH_SORT = """
func.func @main(%x: tensor<99xf32>, %y: tensor<99xf32>, %none: tensor<0xf32>)
    -> (tensor<99xf32>, tensor<99xf32>, tensor<0xf32>) {
  %z = tgraph.negate %x : tensor<99xf32>
  %s = tgraph.sort %y {dimension = 0 : i64} : tensor<99xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %less = tgraph.compare %a, %b {direction = "LT"}
      : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tgraph.yield %less : tensor<i1>
  }
  %n = tgraph.negate %none : tensor<0xf32>
  func.return %z, %s, %n : tensor<99xf32>, tensor<99xf32>, tensor<0xf32>
}
"""


@pytest.mark.parametrize("is_native", [True, False])
def test_calls_by_address(is_native: bool) -> None:
    """Calls by address alternate with calls with arrays and follow a profile. The
    program keeps none of the caller's arrays."""
    run = Executable(
        tensorplan.plan(tensorplan.read(WITH_SORT)), native=is_native, results="view"
    )
    none, kept = np.zeros((2, 0), np.float32)
    for count in range(12):
        x, y = (RNG.standard_normal(99, np.float32) for _ in range(2))
        if count % 4 == 2:
            (kept, _, _) = run(x, y, none)
        before = kept.copy()
        negated, ordered, _ = in_memory(run, x, y, none)
        np.testing.assert_array_equal(negated, -x)
        np.testing.assert_array_equal(ordered, np.sort(y))
        np.testing.assert_array_equal(kept, before)
        if count == 7:
            run.profile()
        alive = [weakref.ref(each) for each in (x, y)]
        del x, y
        assert count % 4 == 2 or all(each() is None for each in alive)


def test_calls_by_address_update_variables() -> None:
    """Each call updates the variable in the memory that it gets."""
    text = """
    func.func @main(%v: !tgraph.variable<tensor<6xf32>>, %x: tensor<6xf32>)
        -> tensor<6xf32> {
      %old = tgraph.read %v : tensor<6xf32>
      %new = tgraph.add %old, %x : tensor<6xf32>
      tgraph.assign %v, %new : tensor<6xf32>
      %r = tgraph.multiply %old, %x : tensor<6xf32>
      func.return %r : tensor<6xf32>
    }"""
    run = Executable(tensorplan.plan(tensorplan.read(text)))
    x = np.arange(6, dtype=np.float32)
    for count in range(4):
        state, result = x + count, np.zeros(6, np.float32)
        if count == 2:
            run(state.copy(), x)
        run.run_at([[address(state), address(x), address(result)]])
        np.testing.assert_array_equal(state, 2 * x + count)
        np.testing.assert_array_equal(result, (x + count) * x)


def test_calls_by_address_after_an_arena_moved() -> None:
    text = """
    !t = tensor<12x12xf32>
    func.func @main(%x: !t, %y: !t) -> !t {
      %p = tgraph.dot_general %x, %y {lhs_contracting_dimensions = array<i64: 1>,
          rhs_contracting_dimensions = array<i64: 0>} : (!t, !t) -> !t
      %q = tgraph.dot_general %p, %y {lhs_contracting_dimensions = array<i64: 1>,
          rhs_contracting_dimensions = array<i64: 0>} : (!t, !t) -> !t
      func.return %q : !t
    }"""
    run = Executable(tensorplan.plan(tensorplan.read(text)))
    x, y = normal(), normal()
    for size in (12, 99, 99, 200):
        grown = tensorplan.read(text.replace("12", str(size)))
        Executable(tensorplan.plan(grown), pools=run.pools)
        (result,) = in_memory(run, x, y)
        np.testing.assert_allclose(result, x @ y @ y, rtol=1e-4, atol=1e-4)


def test_calls_by_address_after_parameters_are_bound() -> None:
    run = Executable(tensorplan.plan(tensorplan.read(SCALED)))
    x, a, y = normal()[:6, :6].copy(), np.array(2, "f4"), normal()[:6, :6].copy()
    for bound in (y, x):
        run.bind({2: bound})
        for _ in range(2):
            np.testing.assert_allclose(in_memory(run, x, a)[0], x * a + bound, 1e-6)
    with pytest.raises(ValueError, match="number of addresses is 4, expected 3"):
        in_memory(run, x, a, y)
    np.testing.assert_allclose(in_memory(run, x, a)[0], x * a + x, 1e-6)


def test_interrupted_call_by_address() -> None:
    run = Executable(tensorplan.plan(tensorplan.read(SCALED)))
    x, a, y = normal()[:6, :6].copy(), np.array(2, "f4"), normal()[:6, :6].copy()
    in_memory(run, x, a, y)
    with (
        patch.object(type(run._runner), "run", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        in_memory(run, y, a, x)
    np.testing.assert_allclose(in_memory(run, x, a, y)[0], x * a + y, 1e-6)
    np.testing.assert_allclose(run(y, a, x)[0], y * a + x, 1e-6)


DONATED = """
!t = tensor<6x6xf32>
func.func @main(%x: !t {tgraph.donated}, %y: !t) -> !t {
  %0 = tgraph.dot_general %x, %y {lhs_contracting_dimensions = array<i64: 1>,
      rhs_contracting_dimensions = array<i64: 0>} : (!t, !t) -> !t
  %1 = tgraph.dot_general %0, %y {lhs_contracting_dimensions = array<i64: 1>,
      rhs_contracting_dimensions = array<i64: 0>} : (!t, !t) -> !t
  %2 = tgraph.dot_general %1, %y {lhs_contracting_dimensions = array<i64: 1>,
      rhs_contracting_dimensions = array<i64: 0>} : (!t, !t) -> !t
  return %2 : !t
}
"""


def test_call_by_address_with_donated_inputs() -> None:
    planned = tensorplan.plan(tensorplan.read(DONATED))
    assert tensorplan.report(planned)["pools"] == []
    run = Executable(planned)
    for _ in range(2):
        x, y = normal()[:6, :6].copy(), normal()[:6, :6].copy()
        expected = x @ y @ y @ y
        np.testing.assert_allclose(in_memory(run, x, y)[0], expected, 1e-4, 1e-4)
        np.testing.assert_allclose(run(x.copy(), y)[0], x @ y @ y @ y, 1e-4, 1e-4)
