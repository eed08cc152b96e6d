"""convert-stablehlo-to-tgraph: the values are JAX's, and what it leaves is level 1."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func, FuncOp

from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph import TGraph
from tensorplan.dialects.tgraph.base import TensorOp
from tensorplan.dialects.tgraph.reducing import ReduceOp
from tensorplan.frontends import read
from tensorplan.frontends.jax import lower
from tensorplan.passes.convert_stablehlo_to_tgraph import ConvertStablehloToTGraph
from tensorplan.passes.driver import check
from tensorplan.runtime.reference import run_reference

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax


def context() -> Context:
    ctx = Context()
    for dialect in (Builtin, Func, TGraph):
        ctx.load_dialect(dialect)
    return ctx


def convert(data: bytes | str) -> ModuleOp:
    ctx = context()
    text = data.encode() if isinstance(data, str) else data
    module = read(text, "model.mlir", ctx)
    check(module)
    ConvertStablehloToTGraph().apply(ctx, module)
    check(module)
    assert all(
        isinstance(op, TensorOp) or op.name.split(".")[0] in ("builtin", "func", "tgraph")
        for op in module.walk()
    )
    return module


def floats(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def integers(*shape: int, low: int = 0, high: int = 9) -> Any:
    return np.random.default_rng(0).integers(low, high, shape).astype(np.int32)


X, Y = floats(4, 6), floats(4, 6, seed=1)
IMAGE = floats(2, 9, 8, 4)
BITS = X > 0


def pool(x: Any, reducer: Any, init: Any) -> Any:
    return lax.reduce_window(x, init, reducer, (1, 3, 2, 1), (1, 2, 2, 1), "SAME")


def conv(x: Any, kernel: Any, **options: Any) -> Any:
    options = {"window_strides": (1, 1), "padding": "SAME"} | options
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, dimension_numbers=layout, **options)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "unary": (
        lambda x: (
            jnp.tanh(x), jnp.exp(x), lax.logistic(x), jnp.sign(x), -x, jnp.abs(x),
            jnp.floor(x), jnp.ceil(x), jnp.sin(x), jnp.cos(x), jnp.expm1(x),
            jnp.isfinite(x / (x - x[0])), x**2, jnp.square(x),
        ),
        [X],
    ),
    "of positive": (
        lambda x: (jnp.sqrt(x), lax.rsqrt(x), jnp.log(x), jnp.log1p(x), x**0.3),
        [np.abs(X) + 0.5],
    ),
    "binary": (
        lambda x, y: (
            x + y, x - y, x * y, x / y, jnp.maximum(x, y), jnp.minimum(x, y),
            lax.rem(x, y), jnp.atleast_1d(x) > y, x == y, x != y, x <= y, x >= y,
        ),
        [X, Y],
    ),
    "integers": (
        lambda i, j: (i // j, i % j, i & j, i | j, i ^ j, ~i, i < j, lax.div(i, j)),
        [integers(5, low=-9), integers(5, low=1)],
    ),
    "select": (
        lambda p, q, x, y: (
            jnp.where(p, x, y), lax.select(q, x, y), jnp.clip(x, -0.5, 0.5),
            lax.clamp(jnp.float32(-0.1), x, y),
        ),
        [BITS, np.bool_(True), X, Y],
    ),
    "convert": (
        lambda x, i, p: (
            x.astype(jnp.int32), i.astype(jnp.float32), p.astype(jnp.float32),
            x.astype(jnp.bool_), i.astype(jnp.uint8), x.astype(jnp.float16),
        ),
        [X * 5, integers(3), BITS],
    ),
    "constants": (
        lambda x: (
            x + np.arange(6, dtype=np.float32), jnp.zeros((300, 300)), jnp.full(3, -jnp.inf),
            jnp.array([True, False, True]), jnp.iinfo(jnp.int32).min + jnp.zeros(2, int),
            np.float32([[7]]), jnp.array([1, 2], jnp.uint8),
        ),
        [X],
    ),
    "iota": (lambda: (lax.broadcasted_iota(jnp.int32, (3, 4), 1), jnp.arange(5.0)), []),
    "shapes": (
        lambda x: (
            x.reshape(3, 8), x.T, x[1:3, ::2], x[::-1], jnp.broadcast_to(x, (2, 4, 6)),
            x[:, None], jnp.concatenate([x, x * 2], 1), jnp.stack([x[0], x[1]]),
        ),
        [X],
    ),
    "pad": (
        lambda x: (
            lax.pad(x, 7.0, ((1, 2, 1), (-1, 3, 0))), lax.pad(x, 1.0, ((0, 0, 0),) * 2)
        ),
        [X],
    ),
    "dot": (
        lambda a, b, c: (
            a @ b, jnp.einsum("bij,bjk->bik", c, c.swapaxes(1, 2)),
            lax.dot_general(c, c, (((2,), (2,)), ((1,), (1,)))),
            lax.dot(a.astype(jnp.float16), b.astype(jnp.float16),
                    preferred_element_type=jnp.float32),
        ),
        [X, floats(6, 5), floats(3, 4, 5)],
    ),
    "convolution": (
        lambda x, k, g: (
            conv(x, k), conv(x, k, window_strides=(2, 1), padding=((1, 2), (0, 1))),
            conv(x, k, lhs_dilation=(2, 1)), conv(x, k, rhs_dilation=(1, 2)),
            conv(x, g, feature_group_count=2),
            lax.conv_transpose(x, k, (2, 2), "SAME"),
        ),
        [IMAGE, floats(3, 2, 4, 6), floats(3, 3, 2, 6)],
    ),
    "convolution gradients": (
        jax.grad(lambda k, x: (conv(x, k, window_strides=(2, 2)) ** 2).sum(), (0, 1)),
        [floats(3, 3, 4, 2), IMAGE],
    ),
    "grouped convolution gradients": (
        jax.grad(lambda k, x: (conv(x, k, feature_group_count=2) ** 2).sum(), (0, 1)),
        [floats(3, 3, 2, 4), IMAGE],
    ),
    "reduce": (
        lambda x, p, i: (
            x.sum(), x.sum(1), x.max(0), x.min(), x.prod(1), p.any(1), p.all(), i.max(),
            i.min(), i.sum(), x.mean(), p.max(1), jnp.zeros((0, 3)).sum(0),
        ),
        [X, BITS, integers(7, low=-5)],
    ),
    "reduce from a value": (
        lambda x, s: (
            lax.reduce(x, np.float32(2), lax.add, (1,)), lax.reduce(x, s, lax.max, (0,))
        ),
        [X, np.float32(0.3)],
    ),
    "pooling": (
        lambda x: (
            pool(x, lax.max, -jnp.inf), pool(x, lax.add, 0.0), jnp.cumsum(x, 1)[:, :2],
        ),
        [IMAGE],
    ),
    "pooling gradients": (
        jax.grad(lambda x: (pool(x, lax.max, -jnp.inf) ** 2).sum()), [IMAGE],
    ),
    "gather": (
        lambda x, i: (x[i], jnp.take(x, i, 1, mode="clip"), x[i, i], x[2],
                      jnp.take_along_axis(x, x.argsort() if False else i[:, None] % 6, 1)),
        [X, integers(4, high=4)],
    ),
    "scatter": (
        lambda x, i, y: (
            x.at[i].set(y[0]), x.at[i].add(y[i]), x.at[:, i].max(2.0), x.at[i, i].min(-1.0),
            x.at[i].multiply(3.0),
        ),
        [X, np.int32([2, 0, 9]), Y],
    ),
    "calls": (
        lambda x: jax.nn.relu(jax.nn.relu(x) - 0.1) + jax.nn.softmax(jax.nn.gelu(x)), [X],
    ),
    "remat": (jax.grad(lambda x: jax.checkpoint(jnp.sin)(x * x).sum()), [X]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_jax(name: str) -> None:
    fn, inputs = PROGRAMS[name]
    expected = jax.tree.leaves(jax.jit(fn)(*inputs))
    results = run_reference(convert(lower(fn, *inputs)), inputs)
    assert len(results) == len(expected)
    for got, want in zip(results, map(np.asarray, expected), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
