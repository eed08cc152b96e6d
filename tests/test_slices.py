"""Tests groups that read slices at dynamic starts in place: values, and no copies."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import ml_dtypes
import numpy as np
import pytest
from upstream import lowered, with_each_mlir
from xdsl.dialects.memref import AllocOp

import tensorplan
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.runtime.backends.jit.slices import Sliced
from tensorplan.runtime.backends.mlir.executable import MlirExecutable, Tools
from tensorplan.runtime.backends.native import slices
from tensorplan.runtime.executor import Executable

jax: Any = pytest.importorskip("jax")
pytest.importorskip("llvmlite")
jnp, lax = jax.numpy, jax.lax

RNG = np.random.default_rng(0)
STARTS = [-3, 0, 2, 5, 100]


def planned(function: Callable[..., Any], *arrays: Any) -> Any:
    return tensorplan.plan(tensorplan.from_jax(function, *arrays).module)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """A mock that is called for each group on slices that native code computes."""
    spy = Mock(side_effect=Sliced)
    monkeypatch.setattr(slices, "Sliced", spy)
    return spy


def floats(*shape: int, dtype: Any = "f4") -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def elementwise(x: Any, i: Any) -> Any:
    return jnp.tanh(lax.dynamic_slice(x, (i, 3), (40, 40))) * 2


def rows(x: Any, i: Any) -> Any:
    return jax.nn.softmax(lax.dynamic_index_in_dim(x, i, 0, False))


def reduced(x: Any, i: Any) -> Any:
    return jnp.sum(lax.dynamic_index_in_dim(x, i, 0, False) ** 2)


def two(x: Any, i: Any) -> Any:
    return lax.dynamic_slice_in_dim(x, i, 1024) - lax.dynamic_slice_in_dim(
        x, 3 * i, 1024
    )


def product(x: Any, w: Any, i: Any) -> Any:
    return jnp.tanh(x @ lax.dynamic_index_in_dim(w, i, 0, False))


def both(x: Any, w: Any, i: Any) -> Any:
    return lax.dynamic_slice_in_dim(x, i, 32, 1) @ w[0, lax.iota(int, 32)]


def expert(x: Any, w: Any, i: Any) -> Any:
    """A slice of a slice, of which the outer one is copied."""
    layer = lax.dynamic_index_in_dim(w, i, 0, False)
    return x @ lax.dynamic_index_in_dim(layer, i + 1, 0, False)


def convolution(x: Any, w: Any, i: Any) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    part = lax.dynamic_index_in_dim(x, i, 0, False)
    return lax.conv_general_dilated(part, w, (1, 1), "SAME", dimension_numbers=numbers)


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "elementwise": (elementwise, ((50, 60),)),
    "rows": (rows, ((6, 8, 256),)),
    "reduced": (reduced, ((6, 30, 40),)),
    "two": (two, ((3000,),)),
    "product": (product, ((8, 64), (6, 64, 48))),
    "a vector": (product, ((1, 64), (6, 64, 48))),
    "batches": (product, ((5, 8, 32), (6, 5, 32, 16))),
    "both": (both, ((64, 64), (2, 64, 48))),
    "expert": (expert, ((8, 64), (6, 4, 64, 48))),
    "convolution": (convolution, ((6, 2, 9, 9, 8), (3, 3, 8, 4))),
}


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_values(made: Mock, name: str, native: bool) -> None:
    """Starts are clamped, and each call uses new arrays."""
    function, shapes = CASES[name]
    arrays = [floats(*shape) for shape in shapes]
    module = planned(function, *arrays, np.int32(0))
    run = Executable(module, native=native)
    for start in STARTS:
        arrays = [floats(*shape) for shape in shapes]
        want = jax.jit(function)(*arrays, start)
        got = run(*arrays, np.int32(start))[0]
        np.testing.assert_allclose(got, want, 1e-4, 1e-5)
    assert made.called == native


@pytest.mark.parametrize("start", ["i1", "u1", "i2", "u2", "i4", "u4"])
@pytest.mark.parametrize("dtype", ["f4", "i1", ml_dtypes.bfloat16, "i4"], ids=str)
def test_types(made: Mock, dtype: Any, start: str) -> None:
    def function(x: Any, i: Any) -> Any:
        return lax.dynamic_slice_in_dim(x, i, 100) + x[:100]

    x = (9 * floats(300, 40)).astype(dtype)
    run = Executable(planned(function, x, np.zeros((), start)))
    for number in (0, 7, np.iinfo(start).max, np.iinfo(start).min):
        i = np.array(number, start)
        np.testing.assert_array_equal(run(x, i)[0], jax.jit(function)(x, i))
    assert made.called


def layers(x: Any, w: Any) -> Any:
    return lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, w)[0]


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"sanitize": True}], ids=str)
def test_loop_over_layers_copies_no_weights(options: dict[str, Any]) -> None:
    x, w = floats(4, 64), floats(6, 64, 64) / 8
    module = planned(layers, x, w)
    (pool,) = tensorplan.report(module)["pools"]
    assert pool["bytes"] < w[0].nbytes / 4
    run = Executable(module, **options)
    for _ in range(3):
        x, w = floats(4, 64), floats(6, 64, 64) / 8
        want = jax.jit(layers)(x, w)
        np.testing.assert_allclose(run(x, w)[0], want, 1e-4, 1e-5)


def test_slice_of_a_scalar_broadcast() -> None:
    """The gradient of a sum is a broadcast scalar, which a loop reads row by row."""

    def loss(x: Any) -> Any:
        return jnp.sum(lax.scan(lambda c, r: (jnp.tanh(c + r), c * r), x[0], x)[1])

    x = floats(6, 2048)
    got = Executable(planned(jax.grad(loss), x))(x)[0]
    np.testing.assert_allclose(got, jax.grad(loss)(x), 1e-4, 1e-5)


@pytest.mark.parametrize("native", [True, False])
def test_group_with_a_slice_of_a_constant(native: bool) -> None:
    module = tensorplan.read("""
        func.func @main(%x: memref<1x1024xf32>, %i: memref<i32>,
                        %r: memref<1x1024xf32> {tgraph.result = 0 : i32}) {
          tgraph.fusion(%a = %x, %s = %i) outs(%r)
              : (memref<1x1024xf32>, memref<i32>) -> memref<1x1024xf32> {
            %n = tgraph.constant<2.0 : f32> : tensor<8x1024xf32>
            %0 = tgraph.constant<0 : i32> : tensor<i32>
            %t = tgraph.dynamic_slice %n, %s, %0 {slice_sizes = array<i64: 1, 1024>}
                : (tensor<8x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1024xf32>
            %y = tgraph.multiply %a, %t : tensor<1x1024xf32>
            tgraph.yield %y : tensor<1x1024xf32>
          }
          func.return
        }
    """)
    x = floats(1, 1024)
    (r,) = Executable(module, native=native)(x, np.int32(3))
    np.testing.assert_array_equal(r, 2 * x)


@pytest.mark.parametrize("dtype", ["f8", "c8"])
def test_operands_of_numpy_products_are_copied(dtype: str) -> None:
    with jax.enable_x64(True):
        x, w = floats(4, 64, dtype=dtype), floats(6, 64, 64, dtype=dtype)
        module = planned(layers, x, w)
    (pool,) = tensorplan.report(module)["pools"]
    assert pool["bytes"] > w[0].nbytes
    assert Executable(module).scratch_bytes < w[0].nbytes


@with_each_mlir
@pytest.mark.parametrize("name", ["two", "product", "both", "convolution"])
def test_mlir_reads_slices_in_place(name: str, tools: Tools) -> None:
    function, shapes = CASES[name]
    arrays = [floats(*shape) for shape in shapes]
    module = planned(function, *arrays, np.int32(0))
    made = lowered(module)
    arenas = {op for op in made.walk() if isinstance(op, AllocOp)}
    assert len(arenas) <= len(tensorplan.report(module)["pools"])
    run = MlirExecutable(made, signature(module), tools, optimized=False)
    for start in (-1, 3):
        want = jax.jit(function)(*arrays, start)
        got = run(*arrays, np.array(start, np.int32))[0]
        np.testing.assert_allclose(got, want, 1e-4, 1e-5)


def test_cache_is_updated_in_place() -> None:
    """The update copies slices of the cache, but not the cache."""

    def function(x: Any, cache: Any) -> Any:
        def body(i: Any, state: Any) -> Any:
            x, cache = state
            row = lax.dynamic_index_in_dim(cache, i, 0, False)
            cache = lax.dynamic_update_index_in_dim(cache, row + x, i, 0)
            return jnp.tanh(x + row), cache

        return lax.fori_loop(0, 5, body, (x, cache))

    x, cache = floats(2048), floats(8, 2048)
    module = tensorplan.from_jax(function, x, cache, donate_argnums=1).module
    module = tensorplan.plan(module)
    (pool,) = tensorplan.report(module)["pools"]
    assert pool["bytes"] < cache.nbytes / 2
    want = jax.jit(function)(x, cache)
    for a, b in zip(Executable(module)(x, cache.copy()), want, strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


@pytest.mark.parametrize("reverse", [(0,), (1,), (0, 1)], ids=str)
def test_loops_over_reversed_arrays_are_native(made: Mock, reverse: Any) -> None:
    def function(x: Any) -> Any:
        def body(state: Any, row: Any) -> Any:
            low = jnp.minimum(row, 0.5)
            return jnp.tanh(state * jnp.sum(low * row)) + low, None

        return lax.scan(body, jnp.ones(1000), lax.rev(x, reverse))[0]

    run = Executable(planned(function, floats(50, 1000)))
    for _ in range(2):
        x = floats(50, 1000)
        np.testing.assert_allclose(run(x)[0], jax.jit(function)(x), 1e-4, 1e-5)
    assert made.called
    assert not run.fallbacks


def test_saved_programs(tmp_path: Path) -> None:
    x, w = floats(4, 64), floats(6, 64, 64) / 8
    run = tensorplan.compile(planned(layers, x, w))
    tensorplan.save(run, tmp_path / "a.plan")
    assert (tmp_path / "a.plan").stat().st_size < w.nbytes / 2
    loaded = tensorplan.load(tmp_path / "a.plan")
    for _ in range(2):
        x, w = floats(4, 64), floats(6, 64, 64) / 8
        np.testing.assert_array_equal(loaded(x, w)[0], run(x, w)[0])


def test_product_accumulates_into_its_operand() -> None:
    """The library adds the product, and needs no more scratch memory than without a
    slice."""

    def added(w: Any, x: Any, g: Any) -> Any:
        return w + x.T @ g

    def of_a_slice(w: Any, x: Any, g: Any, i: Any) -> Any:
        return added(w, lax.dynamic_index_in_dim(x, i, 0, False), g)

    w, x, g = floats(256, 1024), floats(4, 32, 256), floats(32, 1024)
    run = Executable(planned(of_a_slice, w, x, g, np.int32(0)))
    assert run.scratch_bytes <= Executable(planned(added, w, x[0], g)).scratch_bytes
    got = run(w, x, g, np.int32(2))[0]
    np.testing.assert_allclose(got, added(w, x[2], g), 1e-4, 1e-4)
