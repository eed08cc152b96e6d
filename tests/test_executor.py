"""Tests the executor: arguments, results, pools, and errors."""

import re
import sys
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from executables import Dlpack
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array
from tensorplan.runtime.executor import Executable
from tensorplan.runtime.pool import Pool, Scratch
from tensorplan.runtime.program.steps import Step


def parse(text: str) -> ModuleOp:
    module = Parser(tensorplan.context(), text).parse_module()
    module.verify()
    return module


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


# out = tanh(v + x); v = v + x.
STEP = """
!t = memref<4xf32, "cpu:0">
!arena = memref<256xi8, "cpu:0">
func.func @main(%v: !t {tgraph.variable, tgraph.result = 1 : i32}, %x: !t,
                %out: !t {tgraph.result = 0 : i32}) {
  %arena = memref.alloc() {alignment = 64 : i64} : !arena
  %offset = arith.constant 64 : index
  %sum = memref.view %arena[%offset][] : !arena to !t
  tgraph.add %v, %x outs(%sum) : !t
  tgraph.tanh %sum outs(%out) : !t
  "memref.copy"(%sum, %v) : (!t, !t) -> ()
  memref.dealloc %arena : !arena
  func.return
}
"""


@pytest.fixture
def step() -> Executable:
    return Executable(parse(STEP))


@pytest.mark.parametrize("sanitize", [False, True])
def test_variable_is_updated_in_place(sanitize: bool) -> None:
    step = Executable(parse(STEP), sanitize=sanitize)
    v, x = floats(1, 2, 3, 4), floats(1, 1, 1, 1)
    for times in range(1, 4):
        out, new = step(v, x)
        assert new is v
        assert v.tolist() == [1 + times, 2 + times, 3 + times, 4 + times]
        np.testing.assert_allclose(out, np.tanh(v), rtol=1e-6)
    assert x.tolist() == [1, 1, 1, 1]
    assert [(pool.device, pool.bytes) for pool in step.pools] == [("cpu:0", 256)]
    assert step.scratch_bytes == 0


def test_results_do_not_change_later(step: Executable) -> None:
    first, _ = step(floats(0, 0, 0, 0), floats(0, 0, 0, 0))
    second, _ = step(floats(1, 1, 1, 1), floats(1, 1, 1, 1))
    assert first.tolist() == [0, 0, 0, 0]
    assert second.tolist() != [0, 0, 0, 0]


def test_read_only_variable_is_copied(step: Executable) -> None:
    fixed = floats(1, 2, 3, 4)
    fixed.flags.writeable = False
    strided = np.zeros(8, np.float32)[::2]
    for given in ([1, 2, 3, 4], (1.0, 2.0, 3.0, 4.0), fixed, strided):
        old = np.array(given, np.float32)
        _, new = step(given, floats(1, 1, 1, 1))
        assert new.tolist() == (old + 1).tolist()
        assert np.array_equal(np.array(given), old)
        assert new.flags.writeable
        _, newer = step(given, floats(1, 1, 1, 1))
        assert newer is not new


def test_each_call_may_have_other_arrays(step: Executable) -> None:
    x = floats(1, 1, 1, 1)
    for number in range(3):
        v = np.full(4, number, np.float32)
        _, new = step(v, x + number)
        assert new is v
        assert v.tolist() == [2 * number + 1] * 4


def test_steps_are_not_made_again_for_arguments_in_new_memory(
    monkeypatch: pytest.MonkeyPatch, step: Executable
) -> None:
    made: list[Step] = []
    remake = Step.remake
    monkeypatch.setattr(Step, "remake", lambda s: (made.append(s), remake(s)))
    v, x = floats(0, 0, 0, 0), floats(1, 1, 1, 1)
    step(v, x)
    made.clear()
    step(v, x)
    step(v, x[:])  # the same memory
    step(v, x.copy())
    step(v.copy(), x)
    assert made == []


class Interface:
    """An object with `__array_interface__` only."""

    def __init__(self, array: Array):
        self.array = array  # keeps the memory
        self.__array_interface__ = array.__array_interface__


@pytest.mark.parametrize("kind", [Interface, Dlpack, list, tuple])
def test_other_kinds_of_arrays(kind: type, step: Executable) -> None:
    x = floats(1, 2, 3, 4)
    for _ in range(2):
        _, new = step(kind(floats(1, 1, 1, 1)), kind(x))
        assert new.tolist() == [2, 3, 4, 5]
        x[0] = 1  # the next call sees a change in an array that is used in place


def test_lists_are_read_in_each_call(step: Executable) -> None:
    x = [1.0, 2.0, 3.0, 4.0]
    step(floats(0, 0, 0, 0), x)
    x[0] = 9
    _, new = step(floats(0, 0, 0, 0), x)
    assert new.tolist() == [9, 2, 3, 4]


def test_jax_arrays(step: Executable) -> None:
    jnp = pytest.importorskip("jax.numpy")
    x = jnp.arange(4, dtype=jnp.float32)
    _, new = step(x, x)
    assert new.tolist() == [0, 2, 4, 6]
    assert x.tolist() == [0, 1, 2, 3]


def test_out(step: Executable) -> None:
    v, x, out = floats(0, 0, 0, 0), floats(1, 1, 1, 1), floats(0, 0, 0, 0)
    result, _ = step(v, x, out=[out, None])
    assert result is out
    np.testing.assert_allclose(out, np.tanh(v), rtol=1e-6)
    kept = out.copy()
    step(v, x)
    assert np.array_equal(out, kept)


def test_input_in_the_memory_of_a_variable_is_copied(step: Executable) -> None:
    v = floats(1, 2, 3, 4)
    for times in (2, 4, 8):
        out, _ = step(v, v)
        assert v.tolist() == [1 * times, 2 * times, 3 * times, 4 * times]
        np.testing.assert_allclose(out, np.tanh(v), rtol=1e-6)
    buffer = np.arange(5, dtype=np.float32)
    step(buffer[:4], buffer[1:])
    assert buffer.tolist() == [1, 3, 5, 7, 4]


@pytest.mark.parametrize(
    ("arrays", "out", "error", "message"),
    [
        ([[0] * 4], None, TypeError, "number of arrays is 1, expected 2"),
        (
            [[0] * 4, np.zeros(4)],
            None,
            TypeError,
            "argument 1 has elements of type float64, expected float32",
        ),
        (
            [floats(1, 2), [0] * 4],
            None,
            ValueError,
            r"argument 0 has shape \(2,\), expected \(4,\)",
        ),
        ([["a"] * 4, [0] * 4], None, TypeError, "argument 0 has elements of type <U1"),
        ([[0] * 4, [[0], [0, 1]]], None, TypeError, "argument 1 is not an array"),
        ([None, [0] * 4], None, TypeError, "argument 0 has elements of type object"),
        ([[0] * 4] * 2, [None], ValueError, "arrays in out is 1, expected 2"),
        (
            [[0] * 4] * 2,
            [None, floats(0, 0, 0, 0)],
            ValueError,
            "out 1 is given, expected None",
        ),
        ([[0] * 4] * 2, [[0] * 4, None], TypeError, "out 0 has type list"),
        (
            [[0] * 4] * 2,
            [np.zeros(8, np.float32)[::2], None],
            ValueError,
            "out 0 is not a writable C-contiguous array",
        ),
    ],
)
def test_wrong_arrays(
    arrays: Sequence[object],
    out: list[Array | None] | None,
    error: type[Exception],
    message: str,
    step: Executable,
) -> None:
    with pytest.raises(error, match=message):
        step(*arrays, out=out)
    v = floats(0, 0, 0, 0)
    step(v, floats(1, 2, 3, 4))
    assert v.tolist() == [1, 2, 3, 4]


def test_written_arrays_must_not_share_memory(step: Executable) -> None:
    v, x = floats(1, 2, 3, 4), floats(0, 0, 0, 0)
    for out in (v, x):
        with pytest.raises(ValueError, match="share memory"):
            step(v, x, out=[out, None])


# Level 2, memrefs as results, constants, several devices.

LEVEL2 = """
!t = memref<2x3xf32>
!turned = memref<3x2xf32, strided<[1, 3]>>
"memref.global"() {sym_name = "c", sym_visibility = "private", type = !t, constant,
  initial_value = dense<[[1., 2., 3.], [4., 5., 6.]]> : tensor<2x3xf32>} : () -> ()
func.func @main(%x: !t, %y: memref<3x2xf32>) -> (memref<3x2xf32>, !t) {
  %c = memref.get_global @c : !t
  %sum = memref.alloc() : !t
  tgraph.add %x, %c outs(%sum) : !t
  %turned = memref.reinterpret_cast %sum to offset: [0], sizes: [3, 2], strides: [1, 3]
    : !t to !turned
  %r = memref.alloc() : memref<3x2xf32>
  tgraph.multiply %turned, %y outs(%r) : (!turned, memref<3x2xf32>) -> memref<3x2xf32>
  func.return %r, %sum : memref<3x2xf32>, !t
}
"""


@pytest.mark.parametrize("sanitize", [False, True])
def test_level_2(sanitize: bool) -> None:
    program = Executable(parse(LEVEL2), sanitize=sanitize)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y = np.full((3, 2), 2, np.float32)
    for _ in range(2):
        product, total = program(x, y)
        want = x + np.arange(1, 7).reshape(2, 3)
        assert total.tolist() == want.tolist()
        assert product.tolist() == (2 * want.T).tolist()
    assert [pool.device for pool in program.pools] == ["cpu:0"]


def test_devices_have_their_own_pools() -> None:
    program = Executable(
        parse("""
!a = memref<4xf32, "cpu:0">
!b = memref<4xf32, "cpu:1">
func.func @main(%x: !a, %r: !b {tgraph.result = 0 : i32}) {
  %p = memref.alloc() {alignment = 256 : i64} : memref<128xi8, "cpu:1">
  %q = memref.alloc() {alignment = 64 : i64} : memref<16xi8, "cpu:0">
  %0 = arith.constant 0 : index
  %twice = memref.view %q[%0][] : memref<16xi8, "cpu:0"> to !a
  %there = memref.view %p[%0][] : memref<128xi8, "cpu:1"> to !b
  tgraph.add %x, %x outs(%twice) : !a
  tgraph.device_copy %twice outs(%there) : (!a) -> !b
  tgraph.negate %there outs(%r) : !b
  func.return
}
""")
    )
    (result,) = program(floats(1, 2, 3, 4))
    assert result.tolist() == [-2, -4, -6, -8]
    pools = {pool.device: pool for pool in program.pools}
    assert {device: pool.bytes for device, pool in pools.items()} == {
        "cpu:1": 128,
        "cpu:0": 16,
    }
    assert pools["cpu:1"].memory.ctypes.data % 256 == 0


def test_arrays_without_elements() -> None:
    program = Executable(
        parse("""
!t = memref<0x3xf32>
func.func @main(%x: !t, %r: !t {tgraph.result = 0 : i32},
                %s: memref<3xf32> {tgraph.result = 1 : i32}) {
  tgraph.negate %x outs(%r) : !t
  tgraph.reduce %x outs(%s) {kind = "add", dimensions = array<i64: 0>}
    : (!t) -> memref<3xf32>
  func.return
}
""")
    )
    empty, sums = program(np.empty((0, 3), np.float32))
    assert empty.shape == (0, 3)
    assert sums.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('"test.op"() : () -> ()', "test.op has no kernel"),
        ("tgraph.negate %x outs(%x) : !t", "tgraph.negate writes an argument"),
        (
            "%a = memref.alloc() : memref<20xi8>\n%o = arith.constant 8 : index\n"
            "%v = memref.view %a[%o][] : memref<20xi8> to !t",
            r"accesses bytes \[8, 24\) of a buffer of 20 bytes",
        ),
        (
            "%v = memref.reinterpret_cast %x to offset: [1], sizes: [2], strides: [3] "
            ": !t to memref<2xf32, strided<[3], offset: 1>>",
            r"accesses bytes \[4, 20\) of a buffer of 16 bytes",
        ),
        ("%v = memref.get_global @g : !t", "no memref.global @g with a dense value"),
        (
            "%d = arith.constant 3 : index\n%a = memref.alloc(%d) : memref<?xf32>",
            "expected static sizes",
        ),
    ],
)
def test_ir_that_cannot_run(body: str, message: str) -> None:
    text = f"!t = memref<4xf32>\nfunc.func @main(%x: !t) {{\n{body}\nfunc.return\n}}"
    with pytest.raises(LocatedError, match=message):
        Executable(parse(text))


def test_bf16_without_ml_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    module = parse("func.func @main(%x: memref<bf16>) { func.return }")
    with pytest.raises(LocatedError, match="require the package ml_dtypes"):
        Executable(module)


def test_tensors_are_refused() -> None:
    module = parse("func.func @main(%x: tensor<f32>) { func.return }")
    with pytest.raises(LocatedError, match="expected a memref"):
        Executable(module)


# Memory of runs

FUSED = """
!t = memref<512x512xf32>
!u = tensor<512x512xf32>
func.func @main(%x: !t, %y: !t, %r: !t {tgraph.result = 0 : i32},
                %s: memref<512xf32> {tgraph.result = 1 : i32}) {
  tgraph.fusion(%a = %x, %b = %y) outs(%r) : (!t, !t) -> !t {
    %0 = tgraph.logistic %a : !u
    %1 = tgraph.compare %0, %b {direction = "GT"} : (!u, !u) -> tensor<512x512xi1>
    %2 = tgraph.select %1, %a, %b : (tensor<512x512xi1>, !u, !u) -> !u
    %3 = tgraph.power %2, %0 : !u
    tgraph.yield %3 : !u
  }
  tgraph.reduce %r outs(%s) {kind = "add", dimensions = array<i64: 0>}
    : (!t) -> memref<512xf32>
  func.return
}
"""


def test_nothing_is_allocated_while_running() -> None:
    program = Executable(parse(FUSED), native=False)
    x = np.ones((512, 512), np.float32)
    y = np.full_like(x, 0.5)
    out: list[Array | None] = [np.empty_like(x), np.empty(512, np.float32)]
    program(x, y, out=out)
    assert 0 < program.scratch_bytes < x.nbytes
    tracemalloc.start()
    program(x, y, out=out)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000  # a tenth of one array; NumPy reports to tracemalloc


def test_a_pool_is_aligned_and_bounded() -> None:
    pool = Pool("cpu:0", 100, 4096)
    assert pool.memory.ctypes.data % 4096 == 0
    assert pool.bytes == 100
    assert pool.view(96, np.dtype(np.float32), (1,)).shape == (1,)
    with pytest.raises(ValueError, match="do not lie in the pool"):
        pool.view(97, np.dtype(np.float32), (1,))


def test_scratch_is_shared_by_kernels() -> None:
    scratch = Scratch("cpu:0")
    f4 = np.dtype(np.float32)
    kernels: list[list[Array]] = []
    for _ in range(2):
        scratch.reset()
        assert not scratch.is_used
        kernels.append([scratch.take((10,), f4), scratch.take((30,), f4)])
        first, second = kernels[-1]
        assert not np.shares_memory(first, second)
        assert scratch.is_used
    assert scratch.bytes == 64 + 128
    assert all(np.shares_memory(x, scratch.pool.memory) for x in kernels[1])


@pytest.mark.parametrize("what", ["argument 0", "the arena on cpu:0"])
def test_error_for_more_memory_than_the_machine_has(what: str) -> None:
    large, small = "memref<70368744177664xf32>", "memref<4xf32>"  # 2^48 bytes
    x, a = (large, small) if what == "argument 0" else (small, large)
    size = 16 if a == small else 1 << 48
    text = f"""func.func @main(%x: {x}) {{
      %arena = memref.alloc() {{alignment = 64 : i64}} : memref<{size}xi8>
      %0 = arith.constant 0 : index
      %a = memref.view %arena[%0][] : memref<{size}xi8> to {a}
      func.return
    }}"""
    with pytest.raises(LocatedError, match=f"^program:\\d+:\\d+: {what}") as caught:
        Executable(tensorplan.read(text))
    assert isinstance(caught.value, MemoryError)
    assert re.search(
        r"too large: 281474976710656 bytes .*this machine has \d+ bytes",
        str(caught.value),
    )
