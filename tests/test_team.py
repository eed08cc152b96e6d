"""Tests operations that are divided among threads: values stay equal, and threads
behave.

A fixture lowers the time from which division pays off, so that small programs are also
divided.
"""

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from executables import inputs, run
from hypothesis import given
from hypothesis import strategies as st
from model_files import model_files
from programs import Program, programs

import tensorplan
from tensorplan.dialects.dtypes import Array
from tensorplan.runtime.backends import parts
from tensorplan.runtime.backends.jit.records import Parallel, Tape, parallel
from tensorplan.runtime.backends.numpy import blas
from tensorplan.runtime.backends.onednn import backend as onednn
from tensorplan.runtime.backends.onednn import dot
from tensorplan.runtime.executor import Executable
from tensorplan.support.threads import available

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="counts threads as Linux has them"
)


@pytest.fixture(autouse=True)
def divided_finely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "GRAIN", 1)
    monkeypatch.setattr(dot, "LONG", 1)


def parallel_calls(program: Executable) -> list[Parallel]:
    found: list[Parallel] = []
    for step in program._program.steps:
        for function, _ in step.calls:
            records = function.records if isinstance(function, Tape) else [function]
            found += [x for x in records if isinstance(x, Parallel)]
    return found


def text(body: str, inputs: str, result: str) -> str:
    end = f"func.return %r : {result}"
    return f"func.func @main({inputs}) -> {result} {{\n{body}\n{end}\n}}"


ROWS = text(
    """
    %most = tgraph.reduce %x {kind = "maximum", dimensions = array<i64: 1>}
      : (tensor<70x129xf32>) -> tensor<70xf32>
    %b = tgraph.broadcast_in_dim %most {broadcast_dimensions = array<i64: 0>}
      : (tensor<70xf32>) -> tensor<70x129xf32>
    %d = tgraph.subtract %x, %b : tensor<70x129xf32>
    %e = tgraph.exponential %d : tensor<70x129xf32>
    %sum = tgraph.reduce %e {kind = "add", dimensions = array<i64: 1>}
      : (tensor<70x129xf32>) -> tensor<70xf32>
    %s = tgraph.broadcast_in_dim %sum {broadcast_dimensions = array<i64: 0>}
      : (tensor<70xf32>) -> tensor<70x129xf32>
    %r = tgraph.divide %e, %s : tensor<70x129xf32>""",
    "%x: tensor<70x129xf32>",
    "tensor<70x129xf32>",
)
COLUMNS = text(
    """
    %s = tgraph.multiply %x, %x : tensor<300x70xf32>
    %r = tgraph.reduce %s {kind = "add", dimensions = array<i64: 0>}
      : (tensor<300x70xf32>) -> tensor<70xf32>""",
    "%x: tensor<300x70xf32>",
    "tensor<70xf32>",
)
TRANSPOSE = text(
    """
    %r = tgraph.transpose %x {permutation = array<i64: 2, 0, 1>}
      : (tensor<6x50x33xf32>) -> tensor<33x6x50xf32>""",
    "%x: tensor<6x50x33xf32>",
    "tensor<33x6x50xf32>",
)
TURNED = text(
    """
    %t = tgraph.transpose %x {permutation = array<i64: 1, 0>}
      : (tensor<300x310xf32>) -> tensor<310x300xf32>
    %a = tgraph.tanh %t : tensor<310x300xf32>
    %r = tgraph.sine %a : tensor<310x300xf32>""",
    "%x: tensor<300x310xf32>",
    "tensor<310x300xf32>",
)
CHAIN = text(
    """
    %a = tgraph.tanh %x : tensor<1003xf32>
    %r = tgraph.multiply %a, %x : tensor<1003xf32>""",
    "%x: tensor<1003xf32>",
    "tensor<1003xf32>",
)
PRODUCT = text(
    """
    %r = tgraph.dot_general %x, %y {lhs_contracting_dimensions = array<i64: 1>,
      rhs_contracting_dimensions = array<i64: 0>}
      : (tensor<256x128xf32>, tensor<128x256xf32>) -> tensor<256x256xf32>""",
    "%x: tensor<256x128xf32>, %y: tensor<128x256xf32>",
    "tensor<256x256xf32>",
)
LINEAR = text(
    """
    %m = tgraph.dot_general %x, %w {lhs_contracting_dimensions = array<i64: 1>,
      rhs_contracting_dimensions = array<i64: 0>}
      : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
    %b = tgraph.broadcast_in_dim %bias {broadcast_dimensions = array<i64: 1>}
      : (tensor<256xf32>) -> tensor<64x256xf32>
    %r = tgraph.add %m, %b : tensor<64x256xf32>""",
    "%x: tensor<64x256xf32>, %w: tensor<256x256xf32> {tgraph.parameter},"
    " %bias: tensor<256xf32>",
    "tensor<64x256xf32>",
)
GATHER = text(
    """
    %r = tgraph.gather %x, %i {offset_dims = array<i64: 1>,
      collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>,
      index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 33>,
      operand_batching_dims = array<i64>, start_indices_batching_dims = array<i64>}
      : (tensor<20x33xf32>, tensor<50x1xi32>) -> tensor<50x33xf32>""",
    "%x: tensor<20x33xf32>, %i: tensor<50x1xi32>",
    "tensor<50x33xf32>",
)
LOOP = """
!v = !tgraph.variable<tensor<1003xf32>>
!n = !tgraph.variable<tensor<i32>>
!t = tensor<1003xf32>
func.func @main(%x: !t) -> !t {
  %zero = tgraph.constant<0 : i32> : tensor<i32>
  %0:2 = tgraph.while %zero, %x : (tensor<i32>, !t) -> (tensor<i32>, !t) {
  ^bb0(%i: !n, %v: !v):
    %n = tgraph.read %i : tensor<i32>
    %most = tgraph.constant<9 : i32> : tensor<i32>
    %p = tgraph.compare %n, %most {direction = "LT"}
      : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tgraph.yield %p : tensor<i1>
  } do {
  ^bb0(%i: !n, %v: !v):
    %n = tgraph.read %i : tensor<i32>
    %one = tgraph.constant<1 : i32> : tensor<i32>
    %next = tgraph.add %n, %one : tensor<i32>
    %w = tgraph.read %v : !t
    %u = tgraph.tanh %w : !t
    tgraph.assign %i, %next : tensor<i32>
    tgraph.assign %v, %u : !t
    tgraph.yield
  }
  func.return %0#1 : !t
}"""
PROGRAMS = {
    "rows": ROWS,
    "columns": COLUMNS,
    "transpose": TRANSPOSE,
    "chain": CHAIN,
    "product": PRODUCT,
    "linear": LINEAR,
    "gather": GATHER,
}


def compiled(source: str, threads: int) -> Executable:
    program = tensorplan.compile(tensorplan.read(source), threads=threads)
    assert isinstance(program, Executable)
    return program


def is_same(x: Sequence[Array], y: Sequence[Array]) -> bool:
    pairs = zip(x, y, strict=True)
    return all(a.tobytes() == b.tobytes() for a, b in pairs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_equal_those_of_one_thread(name: str) -> None:
    if name in {"product", "linear"} and not onednn.is_available():
        pytest.skip("NumPy's product has threads of its own")
    one = compiled(PROGRAMS[name], 1)
    assert not parallel_calls(one)
    want = run(one, 2)
    for threads in (2, 3):
        program = compiled(PROGRAMS[name], threads)
        (call,) = parallel_calls(program)
        assert 1 < len(call.tapes) <= threads
        assert call.members == len(call.tapes) - 1
        assert is_same(run(program, 2), want)


@given(programs(), st.integers(2, 4))
def test_random_programs(program: Program, threads: int) -> None:
    planned = tensorplan.plan(program.module)
    want = run(Executable(planned, threads=1), 2)
    assert is_same(run(Executable(planned, threads=threads), 2), want)


@pytest.mark.thorough
@pytest.mark.parametrize("model", model_files())
def test_models(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some values differ by rounding: oneDNN's order of long sums depends on the size
    of a product, and BLAS's on the number of threads. Without both, all values are
    equal."""
    planned = tensorplan.plan(tensorplan.from_stablehlo(model).module)
    one, two = (Executable(planned, threads=n) for n in (1, 2))
    assert parallel_calls(two)
    for x, y in zip(run(two), run(one), strict=True):
        finite = y[np.isfinite(y)] if y.dtype.kind == "f" else y
        scale = float(np.abs(finite).max(initial=0))
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6 * scale)
    monkeypatch.setattr(onednn, "is_available", lambda: False)
    monkeypatch.setattr(blas, "Threads", lambda count: nullcontext())
    one, three = (Executable(planned, threads=n) for n in (1, 3))
    assert is_same(run(three), run(one))


def test_loops_and_saved_programs_with_new_arrays(tmp_path: Path) -> None:
    planned = tensorplan.plan(tensorplan.read(LOOP))
    want = run(Executable(planned, threads=1))
    program = Executable(planned, threads=2)
    tensorplan.save(program, tmp_path / "program")
    loaded = tensorplan.load(tmp_path / "program")
    for each in (program, loaded):
        for _ in range(3):  # each call gets new arrays
            assert is_same(each(*inputs(program)), want)


# Threads.


def count() -> int:
    """The number of threads of this process, including those of other libraries."""
    return len(os.listdir("/proc/self/task"))


def test_copies_at_the_end_of_a_part_keep_their_order() -> None:
    first, *_ = parallel_calls(compiled(ROWS, 2))
    native, other = (first, ()), (np.copyto, (np.zeros(1), np.ones(1)))
    assert parallel([[other, native], [native]], 2)[:1] == [other]
    parts = [[native, other], [native]]
    assert parallel(parts, 2) == [native, other, native]


def test_callers_share_threads() -> None:
    """Eight concurrent callers share the thread that the first call started, and each
    gets its own results."""
    program = compiled(ROWS, 2)
    (x,) = inputs(program)
    given = [x + n for n in range(8)]
    want = [program(array)[0].copy() for array in given]
    clones = [program.clone() for _ in given]
    with ThreadPoolExecutor(8) as callers:

        def wrong(n: int) -> int:
            return sum(
                not np.array_equal(clones[n](given[n])[0], want[n]) for _ in range(500)
            )

        list(callers.map(lambda n: time.sleep(0.05), range(8)))  # all have started
        before = count()
        assert list(callers.map(wrong, range(8))) == [0] * 8
        assert count() == before


def test_threads_sleep_between_calls() -> None:
    program = compiled(ROWS, 2)
    run(program)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.05


def output(script: str) -> str:
    """The output of a Python process that runs `script` with `TENSORPLAN_THREADS=3`."""
    env = os.environ | {"TENSORPLAN_THREADS": "3"}
    code = f"TEXT = {ROWS!r}\n{PRELUDE}{textwrap.dedent(script)}"
    how: Any = {"env": env, "text": True, "timeout": 60, "check": True}
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, **how)
    return done.stdout


PRODUCT = text(
    """  %r = tgraph.dot_general %x, %y
    {lhs_batching_dimensions = array<i64>, rhs_batching_dimensions = array<i64>,
     lhs_contracting_dimensions = array<i64: 1>,
     rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<64x128xf32>, tensor<128x2048xf32>) -> tensor<64x2048xf32>""",
    "%x: tensor<64x128xf32>, %y: tensor<128x2048xf32>",
    "tensor<64x2048xf32>",
)

PRELUDE = """
import os, signal, sys, threading, time
import numpy as np
import tensorplan
from tensorplan.runtime.backends import parts
parts.GRAIN = 1
def count():
    return len(os.listdir("/proc/self/task"))
x = np.ones((70, 129), np.float32)
run = tensorplan.compile(tensorplan.read(TEXT))
"""


def test_threads_start_with_the_first_call_and_stay() -> None:
    printed = output("""
        counts = [count()]
        for _ in range(3):
            run(x)
            run.clone()(x)
            tensorplan.compile(tensorplan.read(TEXT), threads=2)(x)
            counts.append(count())
        print([n - counts[0] for n in counts])
    """)
    assert printed == "[0, 2, 2, 2]\n"


def test_forked_process_starts_its_own_threads() -> None:
    printed = output("""
        want = run(x)[0]
        child = os.fork()
        if not child:
            before = count()
            same = all(np.array_equal(run(x)[0], want) for _ in range(100))
            os._exit(0 if same and (before, count()) == (1, 3) else 1)
        print(os.waitpid(child, 0)[1], np.array_equal(run(x)[0], want))
    """)
    assert printed == "0 True\n"


def test_interrupt_reaches_the_caller() -> None:
    printed = output("""
        run(x)
        main = threading.get_ident()
        stop = lambda: os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.2, stop).start()
        try:
            while True:
                run(x)
        except KeyboardInterrupt:
            print("interrupted")
        print(float(run(x)[0].sum()).is_integer())
    """)
    assert printed.startswith("interrupted\n")


@pytest.mark.thorough
@pytest.mark.parametrize("is_loaded", [False, True])
def test_signals_do_not_damage_the_heap(is_loaded: bool, tmp_path: Path) -> None:
    """The stack pointer may point into the heap during oneDNN's products of strided
    parts."""
    printed = output(f"""
        from pathlib import Path
        from tensorplan.runtime.backends.onednn import dot
        dot.LONG = 1
        run = tensorplan.compile(tensorplan.read({PRODUCT!r}), threads=2)
        if {is_loaded}:
            tensorplan.save(run, Path({str(tmp_path / "p")!r}))
            run = tensorplan.load(Path({str(tmp_path / "p")!r}))
        x, y = np.ones((64, 128), np.float32), np.ones((128, 2048), np.float32)
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 5e-4, 5e-4)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            (result,) = run(x, y)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print((result == 128).all())
    """)
    assert printed == "True\n"


@pytest.mark.parametrize("threads", [0, -1, True, 1025, 10**9])
def test_thread_count_out_of_range(threads: Any) -> None:
    with pytest.raises(ValueError, match=f"threads is {threads}, expected 1 to 1024"):
        compiled(CHAIN, threads)


def test_thread_count_of_wrong_type() -> None:
    bad: Any = "banana"
    with pytest.raises(TypeError, match="threads is 'banana', expected int"):
        compiled(CHAIN, bad)


def test_environment_variable_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORPLAN_THREADS", "3")
    program = tensorplan.compile(tensorplan.read(ROWS))
    assert isinstance(program, Executable)
    assert [len(call.tapes) for call in parallel_calls(program)] == [3]
    for bad in ("0", "banana", "1.5"):
        monkeypatch.setenv("TENSORPLAN_THREADS", bad)
        with pytest.raises(ValueError, match=f"TENSORPLAN_THREADS is '{bad}'"):
            tensorplan.compile(tensorplan.read(ROWS))


def test_default_is_one_thread_per_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TENSORPLAN_THREADS", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 3, 5})
    assert available() == 3


def test_transposed_reads_are_divided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The transcendental functions take longer than transposing the operand, so
    dividing pays off."""
    monkeypatch.undo()
    one, two = (compiled(TURNED, threads) for threads in (1, 2))
    (call,) = parallel_calls(two)
    assert len(call.tapes) == 2
    assert is_same(run(two, 2), run(one, 2))


def test_small_operations_are_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    small = PROGRAMS.keys() - {"product", "linear"}
    assert not any(parallel_calls(compiled(PROGRAMS[name], 8)) for name in small)


def test_numpy_products_use_the_given_threads() -> None:
    get, _ = blas._controls()
    before = get()
    seen: list[int] = []
    planned = tensorplan.plan(tensorplan.read(PRODUCT))
    for threads in (1, 2):
        program = Executable(planned, threads=threads, native=False)
        program.surround(lambda _, calls: [(lambda: seen.append(get()), ()), *calls])
        run(program)
    assert seen in ([1, 2], [before, before])  # with OpenBLAS, with another BLAS
    assert get() == before


def alone_and_together(model: tensorplan.Model) -> tuple[Executable, Executable]:
    """The program for one thread, and for several, which share calls."""
    alone = tensorplan.compile(model, threads=1)
    together = tensorplan.compile(model, threads=3)
    assert isinstance(alone, Executable)
    assert isinstance(together, Executable)
    assert not parallel_calls(alone)
    assert parallel_calls(together)
    return alone, together


@pytest.mark.skipif(not onednn.is_available(), reason="oneDNN is not installed")
@pytest.mark.parametrize(
    ("size", "window", "stride", "step", "low", "high"),
    [
        (33, 3, 1, 1, 1, 1),
        (56, 7, 2, 1, 3, 2),
        (41, 3, 1, 2, 2, 2),
        (30, 2, 2, 1, 0, 0),
        (24, 5, 1, 1, 4, 0),
    ],
)
def test_convolutions_are_divided_by_rows(
    size: int, window: int, stride: int, step: int, low: int, high: int
) -> None:
    """Features are contiguous, so the convolution is divided along rows."""
    jax = pytest.importorskip("jax")

    def convolve(x: Array, w: Array) -> Array:
        return jax.nn.relu(
            jax.lax.conv_general_dilated(
                x,
                w,
                (stride, stride),
                [(low, high)] * 2,
                rhs_dilation=(step, step),
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
            )
        )

    random = np.random.default_rng(size)
    x = random.standard_normal((1, size, size, 16), np.float32)
    w = random.standard_normal((window, window, 16, 32), np.float32)
    model = tensorplan.from_jax(convolve, x, w, parameter_argnums=1)
    alone, together = alone_and_together(model)
    np.testing.assert_allclose(together(x)[0], alone(x)[0], rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(together(x)[0], convolve(x, w), rtol=1e-4, atol=1e-3)


def test_convolutions_in_groups_are_divided_by_planes() -> None:
    jax = pytest.importorskip("jax")

    def convolve(x: Array, w: Array) -> Array:
        return jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", feature_group_count=16
        )

    random = np.random.default_rng(0)
    x = random.standard_normal((1, 16, 60, 60), np.float32)
    w = random.standard_normal((16, 1, 3, 3), np.float32)
    model = tensorplan.from_jax(convolve, x, w)
    alone, together = alone_and_together(model)
    assert np.array_equal(together(x, w)[0], alone(x, w)[0])
    np.testing.assert_allclose(together(x, w)[0], convolve(x, w), rtol=1e-4, atol=1e-5)
