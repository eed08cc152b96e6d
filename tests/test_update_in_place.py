"""Tests groups that end with an in-place update of a slice: values, copies, and
refusals."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from upstream import lowered, with_each_mlir
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.fusing import ending
from tensorplan.dialects.tgraph.indexing import DynamicUpdateSliceOp
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.dialects.tgraph.structure import FusionOp
from tensorplan.passes.plan.check import PlanCheck
from tensorplan.runtime.backends.mlir.executable import MlirExecutable, Tools
from tensorplan.runtime.executor import Executable

jax: Any = pytest.importorskip("jax")
pytest.importorskip("llvmlite")
jnp, lax = jax.numpy, jax.lax

RNG = np.random.default_rng(0)


def planned(function: Callable[..., Any], *arrays: Any) -> ModuleOp:
    return tensorplan.plan(tensorplan.from_jax(function, *arrays).module)


def floats(*shape: int, dtype: Any = "f4") -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def in_place(module: ModuleOp) -> int:
    return sum(
        ending(op.yielded[0])[1] is not None
        for op in module.walk()
        if isinstance(op, FusionOp)
    )


def copied(module: ModuleOp) -> int:
    return sum(
        isinstance(op, DynamicUpdateSliceOp) and len(op.outs) > 0
        for op in module.walk()
    )


def rows(x: Any) -> Any:
    """A scan that stacks values besides its carried value."""

    def body(c: Any, r: Any) -> Any:
        c = jnp.tanh(c * 0.9 + r)
        return c, c * c + 1

    return lax.scan(body, jnp.zeros(x.shape[1]), x)


def backwards(x: Any) -> Any:
    return lax.scan(lambda c, r: (c + r, jnp.exp(r)), x[0], x, reverse=True)


def normalized(x: Any) -> Any:
    def body(c: Any, r: Any) -> Any:
        return c + 1, jax.nn.softmax(r)

    return lax.scan(body, 0, x)


def products(x: Any, w: Any) -> Any:
    def body(c: Any, r: Any) -> Any:
        y = jnp.tanh(r @ w)
        return c + jnp.sum(y), (y, y * 2)  # both read the first row

    return lax.scan(body, 0.0, x)


def adam(p: Any, m: Any, v: Any, g: Any) -> Any:
    """A step of Adam that reads old rows where it writes new ones. Other updates read
    the new rows."""

    def body(state: Any, i: Any) -> Any:
        p, m, v = state
        mi, vi = m[i] * 0.9 + g[i] * 0.1, v[i] * 0.99 + g[i] * g[i] * 0.01
        pi = p[i] - 1e-3 * mi / (jnp.sqrt(vi) + 1e-8)
        return (p.at[i].set(pi), m.at[i].set(mi), v.at[i].set(vi)), None

    return lax.scan(body, (p, m, v), jnp.arange(len(p)))[0]


def middle(x: Any) -> Any:
    """Updates of strided rows, along a dimension other than the first."""

    def body(i: Any, y: Any) -> Any:
        r = lax.dynamic_index_in_dim(x, i, 0, False)
        return lax.dynamic_update_index_in_dim(y, jnp.sin(r), i, 1)

    return lax.fori_loop(0, len(x), body, jnp.zeros((x.shape[1], len(x), x.shape[2])))


def shifted(x: Any) -> Any:
    """Reads and writes different rows of the stack, with starts that are clamped."""

    def body(i: Any, y: Any) -> Any:
        before = lax.dynamic_index_in_dim(y, i - 1, 0, False)
        return lax.dynamic_update_index_in_dim(y, jnp.cos(before) + i, i, 0)

    return lax.fori_loop(0, len(x) + 2, body, x)


def twice(x: Any) -> Any:
    """Two consecutive updates."""

    def body(i: Any, y: Any) -> Any:
        r = lax.dynamic_index_in_dim(y, i, 0, False) * 2
        y = lax.dynamic_update_index_in_dim(y, r, i, 0)
        return lax.dynamic_update_index_in_dim(y, r + 1, i + 1, 0)

    return lax.fori_loop(0, len(x) - 1, body, x)


def summed(x: Any) -> Any:
    """The old contents have readers after the slice is computed."""

    def body(i: Any, state: Any) -> Any:
        y, total = state
        r = jnp.tanh(lax.dynamic_index_in_dim(y, i, 0, False))
        total = total + jnp.sum(y) * r[0]
        return lax.dynamic_update_index_in_dim(y, r, i, 0), total

    return lax.fori_loop(0, len(x), body, (x, 0.0))


Case = tuple[Callable[..., Any], tuple[tuple[int, ...], ...], int]
CASES: dict[str, Case] = {  # and the least number of in-place updates
    "rows": (rows, ((6, 2048),), 1),
    "backwards": (backwards, ((6, 2048),), 1),
    "normalized": (normalized, ((6, 8, 256),), 1),
    "products": (products, ((6, 8, 64), (64, 256)), 2),
    "adam": (adam, ((3, 64, 64),) * 4, 3),
    "middle": (middle, ((5, 16, 256),), 1),
    "shifted": (shifted, ((6, 2048),), 1),
    "twice": (twice, ((6, 2048),), 0),
    "summed": (summed, ((6, 2048),), 0),
}


@cache
def planned_case(name: str) -> ModuleOp:
    function, shapes, _ = CASES[name]
    return planned(function, *(floats(*shape) for shape in shapes))


@pytest.mark.parametrize(
    "options", [{}, {"native": False}, {"threads": 2}, {"sanitize": True}], ids=str
)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, options: dict[str, Any]) -> None:
    function, shapes, count = CASES[name]
    module = planned_case(name)
    assert in_place(module) >= count
    run = Executable(module, **options)
    for _ in range(2):
        arrays = [abs(floats(*shape)) for shape in shapes]
        want = jax.tree.leaves(jax.jit(function)(*arrays))
        for a, b in zip(run(*arrays), want, strict=True):
            np.testing.assert_allclose(a, b, 1e-4, 1e-5)


def test_rows_are_not_stored_outside_of_the_stack() -> None:
    module = planned(adam, *(floats(3, 64, 64) for _ in range(4)))
    (pool,) = tensorplan.report(module)["pools"]
    assert pool["bytes"] < 1024
    assert not copied(module)
    assert in_place(module) == 3


def test_chains_of_updates_store_nothing() -> None:
    """Rows of one array are updated in sequence, at constants and the loop counter."""

    def function(x: Any, u: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            x = x.at[2].add(u * i)
            x = x.at[:, 1:-1].multiply(0.5)
            x = x.at[i].add(u)
            return x.at[1:3].set(jnp.tanh(x[1:3]))

        return lax.fori_loop(0, 5, body, x)

    x, u = floats(8, 1024), floats(1024)
    module = planned(function, x, u)
    (pool,) = tensorplan.report(module)["pools"]
    assert pool["bytes"] < 1024 * 4
    for native in (True, False):
        (got,) = Executable(module, native=native)(x, u)
        np.testing.assert_allclose(got, jax.jit(function)(x, u), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["f2", "i4", "f8", ml_dtypes.bfloat16], ids=str)
def test_types(dtype: Any) -> None:
    with jax.enable_x64(True):
        x = (5 * floats(5, 4096)).astype(dtype)

        def function(x: Any) -> Any:
            return lax.scan(lambda c, r: (c, r * 2 + c), x[0], x)[1]

        module = planned(function, x)
        assert in_place(module) == 1
        np.testing.assert_array_equal(Executable(module)(x)[0], jax.jit(function)(x))


@pytest.mark.parametrize("dtype", ["f8", "c8"])
def test_products_computed_by_numpy_are_copied(dtype: str) -> None:
    with jax.enable_x64(True):
        x, w = floats(3, 4, 64, dtype=dtype), floats(64, 256, dtype=dtype)

        def function(x: Any, w: Any) -> Any:
            return lax.scan(lambda c, r: (c + 1, r @ w), 0, x)

        module = planned(function, x, w)
        assert copied(module)
        assert not in_place(module)
        want = jax.jit(function)(x, w)[1]
        np.testing.assert_allclose(Executable(module)(x, w)[1], want, 1e-5, 1e-5)


def test_carried_value_is_updated_after_its_readers() -> None:
    """The old carried value is not saved for readers after its update."""

    def function(x: Any) -> Any:
        def body(c: Any, r: Any) -> Any:
            y = jnp.tanh(r)
            return jnp.roll(c, 1) + y, (y, jnp.sin(y) + c)

        return lax.scan(body, x[0], x)

    x = floats(5, 2048)
    module = planned(function, x)
    assert in_place(module) == 2
    for a, b in zip(
        Executable(module)(x), jax.tree.leaves(jax.jit(function)(x)), strict=True
    ):
        np.testing.assert_allclose(a, b, 1e-5, 1e-5)


@with_each_mlir
@pytest.mark.parametrize("name", ["rows", "products", "adam", "middle"])
def test_values_in_mlir(name: str, tools: Tools) -> None:
    function, shapes, _ = CASES[name]
    arrays = [abs(floats(*shape)) for shape in shapes]
    module = planned(function, *arrays)
    run = MlirExecutable(lowered(module), signature(module), tools, optimized=False)
    want = jax.tree.leaves(jax.jit(function)(*arrays))
    for a, b in zip(run(*arrays), want, strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)


def test_saved_programs(tmp_path: Path) -> None:
    x = floats(6, 2048)
    run = tensorplan.compile(planned(rows, x))
    tensorplan.save(run, tmp_path / "a.plan")
    loaded = tensorplan.load(tmp_path / "a.plan")
    for _ in range(2):
        x = floats(6, 2048)
        for a, b in zip(loaded(x), run(x), strict=True):
            np.testing.assert_array_equal(a, b)


PLAN = """
func.func @f(%x: memref<8x1024xf32>, %i: memref<i32>, %j: memref<i32>) {
  tgraph.fusion(%w = %x, %a = %i, %b = %j) outs(%x)
      : (memref<8x1024xf32>, memref<i32>, memref<i32>) -> memref<8x1024xf32> {
    %c = tgraph.constant<0 : i32> : tensor<i32>
    %s = tgraph.dynamic_slice %w, READ {slice_sizes = array<i64: 1, 1024>}
        : (tensor<8x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1024xf32>
    %t = MEMBER
    %u = tgraph.dynamic_update_slice %w, %t, %a, %c
        : (tensor<8x1024xf32>, tensor<1x1024xf32>, tensor<i32>, tensor<i32>)
        -> tensor<8x1024xf32>
    tgraph.yield %u : tensor<8x1024xf32>
  }
  func.return
}
"""
SINE = "tgraph.sine %s : tensor<1x1024xf32>"
REVERSED = "tgraph.reverse %s {dimensions = array<i64: 1>} : tensor<1x1024xf32>"


def checked(read: str, member: str) -> None:
    text = PLAN.replace("READ", read).replace("MEMBER", member)
    PlanCheck().apply(tensorplan.context(), tensorplan.read(text))


def test_plan_check_accepts_equal_slices() -> None:
    checked("%a, %c", SINE)


@pytest.mark.parametrize(
    ("read", "member"), [("%b, %c", SINE), ("%c, %a", SINE), ("%a, %c", REVERSED)]
)
def test_plan_check_refuses_different_slices(read: str, member: str) -> None:
    """The group may read overwritten elements, of another slice or in another order."""
    with pytest.raises(LocatedError, match="before reading all of it"):
        checked(read, member)
