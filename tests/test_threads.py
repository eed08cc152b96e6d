"""Tests programs that several threads call, create and clone concurrently."""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.parser import Parser

import tensorplan
from tensorplan.dialects.dtypes import Array
from tensorplan.passes.specialize.sizes import specialized
from tensorplan.runtime.backends.jit.llvm import Compiler
from tensorplan.runtime.backends.mlir import executable as mlir
from tensorplan.runtime.backends.onednn import backend as onednn
from tensorplan.runtime.dynamic import DynamicExecutable
from tensorplan.runtime.executor import Executable
from tensorplan.runtime.pool import Pool

THREADS = 8
CALLS = 300
CLASSIFIER = Path("examples/classifier.mlir")

# Two reversals separate elementwise operations. The test chooses the size `n`.
PROGRAM = """
func.func @main(%x: tensor<{n}xf32>, %y: tensor<{n}xf32>) -> tensor<{n}xf32> {{
  %a = tgraph.tanh %x : tensor<{n}xf32>
  %b = tgraph.reverse %a {{dimensions = array<i64: 0>}} : tensor<{n}xf32>
  %c = tgraph.multiply %b, %y : tensor<{n}xf32>
  %d = tgraph.reverse %c {{dimensions = array<i64: 0>}} : tensor<{n}xf32>
  %e = tgraph.add %d, %a : tensor<{n}xf32>
  func.return %e : tensor<{n}xf32>
}}"""

CONVOLUTION = """
!image = memref<1x8x8x16xf32>
!result = memref<1x8x8x32xf32>
func.func @main(%x: !image, %w: memref<3x3x16x32xf32> {tgraph.parameter},
                %out: !result {tgraph.result = 0 : i64}) {
  tgraph.convolution %x, %w outs(%out)
    {dim_labels = "b01f_01io->b01f", window_strides = array<i64: 1, 1>,
     padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>,
     lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>}
    : (!image, memref<3x3x16x32xf32>) -> !result
  func.return
}"""

Run = Callable[..., Sequence[Array]]


@pytest.fixture(autouse=True)
def switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def planned(n: int = 12, **options: Any):
    module = Parser(tensorplan.context(), PROGRAM.format(n=n)).parse_module()
    return tensorplan.plan(module, **options)


def arrays(seed: int, n: int = 12) -> list[Array]:
    random = np.random.default_rng(seed)
    return [random.standard_normal(n).astype(np.float32) for _ in range(2)]


def at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def check(
    run: Callable[[int], Run], given: Callable[[int], Sequence[Array]], want: Run
) -> None:
    """Asserts that every thread gets the results of its own calls."""
    expected = [[x.copy() for x in want(*given(n))] for n in range(THREADS)]

    def wrong(n: int) -> int:
        program, inputs = run(n), given(n)
        return sum(
            any(map(np.any, map(np.not_equal, program(*inputs), expected[n])))
            for _ in range(CALLS)
        )

    assert at_once(THREADS, wrong) == [0] * THREADS


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"native": False},
        {"threads": 2, "concurrent": True},
        {"sanitize": True},
        {"allocator": "bfc", "donate": [0]},
    ],
    ids=str,
)
def test_calls_of_one_program(options: dict[str, Any]) -> None:
    module = planned(streams=2 if "threads" in options else 1)
    run = Executable(module, **options)
    run_natively = options.get("native", True)

    def fresh(n: int) -> Sequence[Array]:
        return arrays(n)

    if "donate" in options:  # each call donates its array

        def program(*given: Array) -> Sequence[Array]:
            return run(given[0].copy(), given[1])

        check(lambda n: program, fresh, program)
        return
    check(lambda n: run, fresh, Executable(module, native=run_natively))


def test_calls_of_one_program_with_onednn() -> None:
    run = tensorplan.compile(tensorplan.read(CLASSIFIER))
    random = np.random.default_rng(0)
    w, v = (random.standard_normal(s.shape, np.float32) for s in run.inputs[1:])
    xs = [random.standard_normal((16, 64), np.float32) for _ in range(THREADS)]
    check(lambda n: run, lambda n: (xs[n], w, v), run)


def test_calls_of_programs_that_share_pools() -> None:
    small, large = planned(12), planned(120)
    first = Executable(small)
    programs = {
        12: first,
        120: Executable(large, pools=first.pools),
    }
    sizes = [(12, 120)[n % 2] for n in range(THREADS)]
    want = {12: Executable(small), 120: Executable(large)}

    def right(x: Array, y: Array) -> Sequence[Array]:
        return want[x.size](x, y)

    check(lambda n: programs[sizes[n]], lambda n: arrays(n, sizes[n]), right)


def test_programs_of_several_devices_share_pools() -> None:
    """The programs acquire the pools in different orders without a deadlock."""
    text = """
    !a = memref<4xf32, "cpu:{0}">
    !b = memref<4xf32, "cpu:{1}">
    func.func @main(%x: !a, %out: !a {{tgraph.result = 0 : i32}}) {{
      %here = memref.alloc() : !a
      %there = memref.alloc() : !b
      "memref.copy"(%x, %there) : (!a, !b) -> ()
      "memref.copy"(%there, %here) : (!b, !a) -> ()
      tgraph.tanh %here outs(%out) : !a
      func.return
    }}"""
    modules = [
        Parser(tensorplan.context(), text.format(*order)).parse_module()
        for order in ((0, 1), (1, 0))
    ]
    first = Executable(modules[0])
    programs = [first, Executable(modules[1], pools=first.pools[::-1])]
    assert [p.device for p in programs[1].pools] == ["cpu:1", "cpu:0"]
    check(
        lambda n: programs[n % 2],
        lambda n: arrays(n, 4)[:1],
        Executable(modules[0]),
    )


def test_clones_run_in_parallel_in_their_own_memory() -> None:
    run = Executable(planned(), results="view")
    want = Executable(planned())
    clones = [run.clone() for _ in range(THREADS)]
    check(lambda n: clones[n], arrays, want)  # views, which other calls keep
    memories = [p.memory for r in (run, *clones) for p in r.pools]
    assert len({memory.ctypes.data for memory in memories}) == THREADS + 1


def test_clone_with_given_pools() -> None:
    run = Executable(planned())
    clone = run.clone(run.pools)
    assert list(clone.pools) == list(run.pools)
    np.testing.assert_array_equal(clone(*arrays(0)), run(*arrays(0)))


def test_clone_has_pools_of_the_same_kind() -> None:
    pool = Pool("cpu:0", 0, allocator="buddy", limit=1 << 20)
    (other,) = Executable(planned(), pools=[pool]).clone().pools
    assert type(other.allocator) is type(pool.allocator)
    assert (other is pool, other.limit) == (False, 1 << 20)


@pytest.mark.skipif(not onednn.is_available(), reason="needs oneDNN")
@pytest.mark.parametrize("bound_before", [True, False])
def test_clones_share_packed_weights(bound_before: bool) -> None:
    run = Executable(Parser(tensorplan.context(), CONVOLUTION).parse_module())
    random = np.random.default_rng(0)
    x, w, other = (
        random.standard_normal(shape, np.float32)
        for shape in ((1, 8, 8, 16), (3, 3, 16, 32), (3, 3, 16, 32))
    )
    (by_w,), (by_other,) = Executable(run._module)(x, w), run.clone()(x, other)
    run.bind({1: w})
    if not bound_before:
        run(x)
    clones = [run.clone() for _ in range(THREADS)]
    check(lambda n: clones[n], lambda n: [x + n], run.clone())
    run(x)
    packed = {p.ctypes.data for r in (run, *clones) for p in _packed(r)}
    assert len(packed) == 1
    assert run.packed_bytes == clones[0].packed_bytes >= w.nbytes

    clones[0].bind({1: other})
    np.testing.assert_array_equal(clones[0](x)[0], by_other)
    np.testing.assert_array_equal(clones[1](x)[0], by_w)
    w[:] = other  # binding again reads the new contents
    run.bind({1: w})
    np.testing.assert_array_equal(run(x)[0], by_other)


def _packed(run: Executable) -> list[Array]:
    memories = run._program.memory.arguments
    copies = [m.prepacked._copies.values() for m in memories if m.prepacked]
    return [array for kinds in copies for kind in kinds for _, array in kind]


def test_parameters_are_bound_while_others_call() -> None:
    run = Executable(planned())
    x, _ = arrays(0)
    ys = [np.full(12, n, np.float32) for n in range(THREADS)]
    want = Executable(planned())
    allowed = {want(x, y)[0].tobytes() for y in ys}
    run.bind({1: ys[0]})

    def work(n: int) -> bool:
        results: set[bytes] = set()
        for _ in range(CALLS):
            run.bind({1: ys[n]})
            results.add(run(x)[0].tobytes())
            assert run.copies  # which other threads update
        return results <= allowed

    assert all(at_once(THREADS, work))


def test_calls_while_others_profile_and_close() -> None:
    run = Executable(planned())
    want = Executable(planned())(*arrays(0))[0]

    def work(n: int) -> bool:
        if n == 0:
            for _ in range(20):
                run.profile().to_json()
                run.close()
            return True
        return all(np.array_equal(run(*arrays(0))[0], want) for _ in range(CALLS))

    assert all(at_once(THREADS, work))


@pytest.mark.thorough
@pytest.mark.parametrize("kept", [1, 16])
@pytest.mark.parametrize("are_clones", [False, True])
def test_calls_with_many_sizes(kept: int, are_clones: bool) -> None:
    text = PROGRAM.format(n="?").replace("?xf32", "?xf32, #tgraph.dims<n>")
    module = Parser(tensorplan.context(), text).parse_module()
    run = DynamicExecutable(tensorplan.plan(module), specialized, kept=kept)
    run(*arrays(0, 11))
    calls = CALLS if kept > 1 else 5
    programs = [run.clone() if are_clones else run for _ in range(THREADS)]

    def work(n: int) -> bool:
        given = arrays(n, 10 + n)
        (want,) = Executable(planned(10 + n))(*given)
        return all(np.array_equal(programs[n](*given)[0], want) for _ in range(calls))

    assert all(at_once(THREADS, work))


def test_mlir_runner_serves_threads() -> None:
    if not next(mlir.installed(), None):
        pytest.skip("needs mlir-opt")
    from tensorplan.dialects.tgraph.signature import signature
    from tensorplan.tools.plan_run_main import native

    module = planned()
    run = native(module, "main")
    assert signature(module)
    check(lambda n: run, arrays, lambda *given: [x.copy() for x in run(*given)])


def test_programs_are_compiled_concurrently(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Reading, planning and native compilation are thread-safe."""
    monkeypatch.setenv("TENSORPLAN_CACHE", str(tmp_path))
    monkeypatch.setattr("tensorplan.runtime.backends.jit.llvm._compiler", Compiler())
    texts = [str(planned(20 + n)) for n in range(THREADS)]

    def work(n: int) -> bool:
        text = str(planned(20 + n))
        given = arrays(n, 20 + n)
        module = tensorplan.read(PROGRAM.format(n=20 + n))
        (got,) = tensorplan.compile(module)(*given)
        (want,) = Executable(planned(20 + n), native=False)(*given)
        return text == texts[n] and np.allclose(got, want, 1e-5, 1e-6)

    assert all(at_once(THREADS, work))


def test_reentrant_call_is_refused() -> None:
    run = Executable(planned())
    x, y = arrays(0)

    class Lazy:
        def __array__(self, *_: object, **__: object) -> Array:
            return run(x, y)[0]

    with pytest.raises(TypeError, match="from within one of its own calls"):
        run(Lazy(), y)
    np.testing.assert_array_equal(run(x, y), Executable(planned())(x, y))
