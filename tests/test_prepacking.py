"""Tests that constants are packed for kernels once, and again when they change."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from processors import multiplies_packed
from xdsl.parser import Parser

import tensorplan
from tensorplan.dialects.dtypes import Array
from tensorplan.runtime.backends.onednn import backend as onednn
from tensorplan.runtime.devices.local import Serial
from tensorplan.runtime.executor import Executable
from tensorplan.runtime.program import compiled

pytestmark = pytest.mark.skipif(not onednn.is_available(), reason="needs oneDNN")

RNG = np.random.default_rng(0)
SHAPES = (1, 8, 8, 16), (3, 3, 16, 32), (1, 8, 8, 32)
IMAGE, KERNEL, OUT = (f"{'x'.join(map(str, shape))}xf32" for shape in SHAPES)


def convolution(image: str, kernel: str, out: str) -> str:
    return f"""tgraph.convolution {image}, {kernel} outs({out})
      {{dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>,
        padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>,
        lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>}}
      : (memref<{IMAGE}>, memref<{KERNEL}>) -> memref<{OUT}>"""


def program(mark: str = "{tgraph.parameter}", **options) -> Executable:
    text = f"""
    func.func @main(%x: memref<{IMAGE}>, %w: memref<{KERNEL}> {mark},
                    %y: memref<{OUT}> {{tgraph.result = 0 : i64}}) {{
      {convolution("%x", "%w", "%y")}
      func.return
    }}"""
    return Executable(Parser(tensorplan.context(), text).parse_module(), **options)


def normal(shape: Sequence[int]) -> Array:
    return RNG.standard_normal(shape, np.float32)


def reference(x: Array, w: Array) -> Array:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    return np.einsum("byxikl,klio->byxo", windows, w)


def check(run: Executable, x: Array, w: object) -> None:
    (got,) = run(x, w)
    np.testing.assert_allclose(got, reference(x, np.asarray(w)), rtol=1e-4, atol=1e-4)


def calls(run: Executable) -> int:
    runner = run._runner
    assert isinstance(runner, Serial)
    return sum(len(step.calls) for step in runner._program.steps)


def test_initial_parameters_have_kernels_compiled_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No kernel is compiled that packs the parameters in each run and needs memory for
    them."""
    made = list[object]()
    compile_call = compiled.compile_call

    def noted(op: Any, *arguments: Any) -> Any:
        made.append(op)
        return compile_call(op, *arguments)

    monkeypatch.setattr(compiled, "compile_call", noted)
    x, w = map(normal, SHAPES[:2])
    bound_later = program()
    bound_later.bind({1: w})
    run = program(parameters={1: w})
    del made[:]
    (want,) = bound_later(x)
    assert len(made) == 1
    (got,) = run(x)
    assert len(made) == 1
    np.testing.assert_array_equal(got, want)
    assert run.scratch_bytes < bound_later.scratch_bytes
    assert run.packed_bytes == bound_later.packed_bytes > 0


def test_parameters_are_packed_once() -> None:
    x, w = normal(SHAPES[0]), normal(SHAPES[1])
    unmarked, marked = program(""), program()
    for _ in range(3):
        check(unmarked, x, w)
        check(marked, x, w)
    assert unmarked.packed_bytes == 0
    assert marked.packed_bytes == w.nbytes
    assert calls(marked) == calls(unmarked) - 1


def test_another_array_is_packed_again() -> None:
    run, x = program(), normal(SHAPES[0])
    w = normal(SHAPES[1])
    check(run, x, w)
    check(run, x, normal(SHAPES[1]))
    check(run, x, w)
    w *= 2
    check(run, x, w[:])  # another object in the same memory
    assert run.packed_bytes == w.nbytes  # only the latest copy


def test_arrays_copied_in_each_call_are_not_packed() -> None:
    run, x = program(), normal(SHAPES[0])
    check(run, x, normal(SHAPES[1]))
    strided = normal((3, 3, 16, 64))[..., ::2]
    check(run, x, strided)
    strided *= 2
    check(run, x, strided)
    check(run, x, strided.tolist())
    assert run.packed_bytes == 0


def test_parameters_bound_again_are_packed_again() -> None:
    run, x, w = program(), normal(SHAPES[0]), normal(SHAPES[1])
    for _ in range(2):
        run.bind({1: w})
        (got,) = run(x)
        np.testing.assert_allclose(got, reference(x, w), rtol=1e-4, atol=1e-4)
        w += 1


def test_repack_after_a_change_in_place() -> None:
    run, x, w = program(), normal(SHAPES[0]), normal(SHAPES[1])
    run.bind({1: w})
    run.repack()  # no copy exists yet
    for _ in range(3):
        (got,) = run(x)
        np.testing.assert_allclose(got, reference(x, w), rtol=1e-4, atol=1e-4)
        assert run.packed_bytes == w.nbytes
        w += 1
        run.repack()


def test_donated_parameters_are_not_packed() -> None:
    text = f"""
    func.func @main(%x: memref<{IMAGE}>, %w: memref<{KERNEL}> {{tgraph.parameter}},
                    %y: memref<{OUT}> {{tgraph.result = 0 : i64}},
                    %z: memref<{KERNEL}> {{tgraph.result = 1 : i64}}) {{
      {convolution("%x", "%w", "%y")}
      tgraph.negate %w outs(%z) : memref<{KERNEL}>
      func.return
    }}"""
    module = Parser(tensorplan.context(), text).parse_module()
    run = Executable(module, donate=[1])
    x, w = normal(SHAPES[0]), normal(SHAPES[1])
    for _ in range(3):
        want = reference(x, w)
        got, negated = run(x, w)
        assert np.may_share_memory(negated, w)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    assert run.packed_bytes == 0


def test_convolutions_share_a_packed_constant() -> None:
    value = normal(SHAPES[1])
    text = f"""
    "memref.global"() {{sym_name = "w", sym_visibility = "private", constant,
      type = memref<{KERNEL}>,
      initial_value = dense<"0x{value.tobytes().hex()}"> : tensor<{KERNEL}>}} : () -> ()
    func.func @main(%x: memref<{IMAGE}>,
                    %y: memref<{OUT}> {{tgraph.result = 0 : i64}},
                    %z: memref<{OUT}> {{tgraph.result = 1 : i64}}) {{
      %w = memref.get_global @w : memref<{KERNEL}>
      {convolution("%x", "%w", "%y")}
      {convolution("%x", "%w", "%z")}
      func.return
    }}"""
    run = Executable(Parser(tensorplan.context(), text).parse_module())
    x = normal(SHAPES[0])
    for got in run(x):
        np.testing.assert_allclose(got, reference(x, value), rtol=1e-4, atol=1e-4)
    assert run.packed_bytes == value.nbytes


def test_kernels_of_transposed_convolutions_are_reversed_once() -> None:
    def make(mark: str) -> Executable:
        text = f"""
        func.func @main(%x: memref<1x5x16xf32>, %w: memref<3x16x32xf32> {mark},
                        %y: memref<1x11x32xf32> {{tgraph.result = 0 : i64}}) {{
          tgraph.convolution %x, %w outs(%y)
            {{dim_labels = "b0f_0io->b0f", window_strides = array<i64: 1>,
              padding_low = array<i64: 2>, padding_high = array<i64: 2>,
              lhs_dilation = array<i64: 2>, rhs_dilation = array<i64: 1>}}
            : (memref<1x5x16xf32>, memref<3x16x32xf32>) -> memref<1x11x32xf32>
          func.return
        }}"""
        return Executable(Parser(tensorplan.context(), text).parse_module())

    x, w = normal((1, 5, 16)), normal((3, 16, 32))
    spread = np.zeros((13, 16), np.float32)
    spread[2:11:2] = x[0]
    want = sum(spread[k : k + 11] @ w[k] for k in range(3))
    unmarked, marked = make(""), make("{tgraph.parameter}")
    for run in (unmarked, marked):
        (got,) = run(x, w)
        np.testing.assert_allclose(got[0], want, rtol=1e-4, atol=1e-4)
    assert calls(marked) == 1 < calls(unmarked)
    assert marked.packed_bytes == w.nbytes
    w *= 2
    marked.repack()
    np.testing.assert_allclose(marked(x, w)[0][0], 2 * want, rtol=1e-4, atol=1e-4)


def dots(rows: int, sanitize: bool = False) -> tuple[Executable, list[Array]]:
    jax = pytest.importorskip("jax")
    arrays = [normal(s) for s in ((rows, 96), (96, 80), (80, 48))]

    def two(x, parameters):
        return jax.nn.relu(x @ parameters[0]) @ parameters[1]

    module = tensorplan.from_jax(two, arrays[0], arrays[1:], parameter_argnums=1).module
    return Executable(tensorplan.plan(module), sanitize=sanitize), arrays


@pytest.mark.parametrize("rows", [1, 32])
@pytest.mark.parametrize("sanitize", [False, True])
def test_matrices_are_packed_for_many_rows(rows: int, sanitize: bool) -> None:
    run, (x, v, w) = dots(rows, sanitize)
    for _ in range(2):
        (got,) = run(x, v, w)
        want = np.maximum(x @ v, 0) @ w
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    assert (run.packed_bytes > 0) == (rows > 1 and multiplies_packed())


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_a_packed_copy(threads: int) -> None:
    """Divisions into parts that are considered but not used leave no copies."""
    jax = pytest.importorskip("jax")
    x, w = normal((64, 384)), normal((384, 384))
    module = tensorplan.from_jax(jax.numpy.matmul, x, w, parameter_argnums=1).module
    run = Executable(tensorplan.plan(module), threads=threads)
    (got,) = run(x, w)
    np.testing.assert_allclose(got, x @ w, rtol=1e-4, atol=1e-3)
    assert run.packed_bytes == (w.nbytes if multiplies_packed() else 0)


def test_parameter_argnums_are_checked() -> None:
    jax = pytest.importorskip("jax")
    x = normal((4,))

    def add(x, y):
        return x + y

    with pytest.raises(ValueError, match="array 1 is in donate_argnums and in"):
        tensorplan.from_jax(add, x, x, donate_argnums=1, parameter_argnums=(0, 1))
    with pytest.raises(ValueError, match="no argument 2, expected 0 to 1"):
        tensorplan.from_jax(add, x, x, parameter_argnums=2)
    unused = jax.jit(lambda x, y: y + 1)
    with pytest.raises(ValueError, match="no argument 1, expected 0: JAX leaves"):
        tensorplan.from_jax(unused, x, x, parameter_argnums=1)
