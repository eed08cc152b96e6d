"""Tests `convert-stablehlo-to-tgraph`: the output has level 1, and computes the values
that JAX computes."""

# Programs are lambdas, and `importorskip` returns `jax` as an untyped module.
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func, FuncOp

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph import TGraph
from tensorplan.dialects.tgraph.base import TensorOp
from tensorplan.dialects.tgraph.reducing import ReduceOp
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.frontends.jax import lower
from tensorplan.frontends.reading import read
from tensorplan.passes.convert.stablehlo_to_tgraph import ConvertStablehloToTGraph
from tensorplan.passes.driver import check

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
        isinstance(op, TensorOp)
        or op.name.split(".")[0] in ("builtin", "func", "tgraph")
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
            jnp.tanh(x),
            jnp.exp(x),
            lax.logistic(x),
            jnp.sign(x),
            -x,
            jnp.abs(x),
            jnp.floor(x),
            jnp.ceil(x),
            jnp.sin(x),
            jnp.cos(x),
            jnp.expm1(x),
            jnp.isfinite(x / (x - x[0])),
            x**2,
            jnp.square(x),
        ),
        [X],
    ),
    "of positive": (
        lambda x: (jnp.sqrt(x), lax.rsqrt(x), jnp.log(x), jnp.log1p(x), x**0.3),
        [np.abs(X) + 0.5],
    ),
    "binary": (
        lambda x, y: (
            x + y,
            x - y,
            x * y,
            x / y,
            jnp.maximum(x, y),
            jnp.minimum(x, y),
            lax.rem(x, y),
            jnp.atleast_1d(x) > y,
            x == y,
            x != y,
            x <= y,
            x >= y,
        ),
        [X, Y],
    ),
    "integers": (
        lambda i, j: (i // j, i % j, i & j, i | j, i ^ j, ~i, i < j, lax.div(i, j)),
        [integers(5, low=-9), integers(5, low=1)],
    ),
    "select": (
        lambda p, q, x, y: (
            jnp.where(p, x, y),
            lax.select(q, x, y),
            jnp.clip(x, -0.5, 0.5),
            lax.clamp(jnp.float32(-0.1), x, y),
        ),
        [BITS, np.bool_(True), X, Y],
    ),
    "convert": (
        lambda x, i, p: (
            x.astype(jnp.int32),
            i.astype(jnp.float32),
            p.astype(jnp.float32),
            x.astype(jnp.bool_),
            i.astype(jnp.uint8),
            x.astype(jnp.float16),
        ),
        [X * 5, integers(3), BITS],
    ),
    "constants": (
        lambda x: (
            x + np.arange(6, dtype=np.float32),
            jnp.zeros((300, 300)),
            jnp.full(3, -jnp.inf),
            jnp.array([True, False, True]),
            jnp.iinfo(jnp.int32).min + jnp.zeros(2, int),
            jnp.float32([[7]]),
            jnp.array([1, 2], jnp.uint8),
        ),
        [X],
    ),
    "iota": (lambda: (lax.broadcasted_iota(jnp.int32, (3, 4), 1), jnp.arange(5.0)), []),
    "shapes": (
        lambda x: (
            x.reshape(3, 8),
            x.T,
            x[1:3, ::2],
            x[::-1],
            jnp.broadcast_to(x, (2, 4, 6)),
            x[:, None],
            jnp.concatenate([x, x * 2], 1),
            jnp.stack([x[0], x[1]]),
        ),
        [X],
    ),
    "pad": (
        lambda x: (
            lax.pad(x, 7.0, ((1, 2, 1), (-1, 3, 0))),
            lax.pad(x, 1.0, ((0, 0, 0),) * 2),
        ),
        [X],
    ),
    "dot": (
        lambda a, b, c: (
            a @ b,
            jnp.einsum("bij,bjk->bik", c, c.swapaxes(1, 2)),
            lax.dot_general(c, c, (((2,), (2,)), ((1,), (1,)))),
            lax.dot(
                a.astype(jnp.float16),
                b.astype(jnp.float16),
                preferred_element_type=jnp.float32,
            ),
        ),
        [X, floats(6, 5), floats(3, 4, 5)],
    ),
    "convolution": (
        lambda x, k, g: (
            conv(x, k),
            conv(x, k, window_strides=(2, 1), padding=((1, 2), (0, 1))),
            conv(x, k, padding=((2, 1), (0, 3)), lhs_dilation=(2, 1)),
            conv(x, k, rhs_dilation=(1, 2)),
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
            x.sum(),
            x.sum(1),
            x.max(0),
            x.min(),
            x.prod(1),
            p.any(1),
            p.all(),
            i.max(),
            i.min(),
            i.sum(),
            x.mean(),
            p.max(1),
            jnp.zeros((0, 3)).sum(0),
        ),
        [X, BITS, integers(7, low=-5)],
    ),
    "reduce from a value": (
        lambda x, s: (
            lax.reduce(x, np.float32(2), lax.add, (1,)),
            lax.reduce(x, s, lax.max, (0,)),
        ),
        [X, np.float32(0.3)],
    ),
    "pooling": (
        lambda x: (
            pool(x, lax.max, -jnp.inf),
            pool(x, lax.add, 0.0),
            jnp.cumsum(x, 1)[:, :2],
        ),
        [IMAGE],
    ),
    "pooling gradients": (
        jax.grad(lambda x: (pool(x, lax.max, -jnp.inf) ** 2).sum()),
        [IMAGE],
    ),
    "gather": (
        lambda x, i: (
            x[i],
            jnp.take(x, i, 1, mode="clip"),
            x[i, i],
            x[2],
            jnp.take_along_axis(x, i[:, None], 1),
        ),
        [X, integers(4, high=4)],
    ),
    "scatter": (
        lambda x, i, y: (
            x.at[i].set(y[0]),
            x.at[i].add(y[i]),
            x.at[:, i].max(2.0),
            x.at[i, i].min(-1.0),
            x.at[i].multiply(3.0),
        ),
        [X, np.array([2, 0, 9], np.int32), Y],
    ),
    "calls": (
        lambda x: jax.nn.relu(jax.nn.relu(x) - 0.1) + jax.nn.softmax(jax.nn.gelu(x)),
        [X],
    ),
    "remat": (jax.grad(lambda x: jax.checkpoint(jnp.sin)(x * x).sum()), [X]),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_agree_with_jax(name: str) -> None:
    fn, inputs = PROGRAMS[name]
    expected = jax.tree.leaves(jax.jit(fn)(*inputs))
    results = run_reference(convert(lower(fn, *inputs).bytecode), inputs)
    assert len(results) == len(expected)
    for got, want in zip(results, map(np.asarray, expected), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_window_reversal_flips_the_kernel() -> None:
    x, k = IMAGE, floats(3, 2, 4, 6)
    text = jax.jit(conv).lower(x, k).as_text()
    assert "reverse = [false, false]" in text
    module = convert(
        text.replace("reverse = [false, false]", "reverse = [true, false]")
    )
    (got,) = run_reference(module, [x, k])
    np.testing.assert_allclose(got, conv(x, k[::-1]), rtol=1e-4, atol=1e-4)


def main_of(module: ModuleOp) -> FuncOp:
    (func,) = (op for op in module.ops if isinstance(op, FuncOp))
    return func


def test_donated_arguments_become_variables() -> None:
    def step(w: Any, x: Any, m: Any) -> Any:
        return (x @ w).sum(), m * 0.9 + w, w - 0.1 * m

    inputs = [floats(6, 3), floats(4, 6), floats(6, 3, seed=1)]
    module = convert(lower(step, *inputs, donate_argnums=(0, 2)).bytecode)
    assert (
        "func.func public @main(%w: !tgraph.variable<tensor<6x3xf32>> "
        '{tgraph.name = "w", tgraph.result = 1 : i32}, '
        '%x: tensor<4x6xf32> {tgraph.name = "x"}, '
        "%m: !tgraph.variable<tensor<6x3xf32>> "
        '{tgraph.name = "m", tgraph.result = 2 : i32}) '
        '-> (tensor<f32> {tgraph.name = "result[0]"}) {'
    ) in str(module)
    results = run_reference(module, inputs)
    for got, want in zip(results, step(*inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def function(arguments: str, results: str, body: str) -> str:
    return f"func.func public @main({arguments}) -> ({results}) {{\n{body}\n}}"


DONORS = function(
    "%a: tensor<2xf32> {jax.buffer_donor = true}, "
    "%b: tensor<2xf32> {tf.aliasing_output = 0 : i32}, "
    "%c: tensor<2xf32> {jax.buffer_donor = true}, "
    "%d: tensor<3xf32> {tf.aliasing_output = 0 : i32}",
    "tensor<2xf32>, tensor<2xf32>",
    """
    %0 = stablehlo.add %a, %b : tensor<2xf32>
    %1 = stablehlo.subtract %a, %c : tensor<2xf32>
    return %0, %1 : tensor<2xf32>, tensor<2xf32>""",
)


def test_donors_get_the_first_free_result_of_their_type(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO", "tensorplan.support.remarks"):
        module = convert(DONORS)
    assert (
        "@main(%arg0: !tgraph.variable<tensor<2xf32>> {tgraph.result = 1 : i32}, "
        "%arg1: !tgraph.variable<tensor<2xf32>> {tgraph.result = 0 : i32}, "
        "%arg2: tensor<2xf32> {tgraph.donated}, %arg3: tensor<3xf32> {tgraph.donated})"
    ) in str(module)
    assert caplog.messages == [
        f"model.mlir:1:1: remark: argument {index} of @main is donated, but no "
        f"result of type {type} is left for it; other buffers may use its memory"
        for index, type in ((3, "tensor<3xf32>"), (2, "tensor<2xf32>"))
    ]


def test_lower_keeps_unused_arguments_and_the_options_of_jitted_functions() -> None:
    def second(x: Any, y: Any) -> Any:
        return y

    module = convert(lower(second, X, Y).bytecode)
    assert len(main_of(module).function_type.inputs) == 2
    module = convert(lower(jax.jit(second, donate_argnums=1), X, Y).bytecode)
    assert "tgraph.assign" in str(module)


def test_program_with_only_donated_results_is_converted() -> None:
    module = convert(lower(lambda x: x, X, donate_argnums=0).bytecode)
    assert "tgraph.assign" in str(module)


def test_calls_are_inlined_and_private_functions_removed() -> None:
    fn, inputs = PROGRAMS["calls"]
    data = lower(fn, *inputs).bytecode
    before = read(data, "model.mlir", context())
    assert sum(isinstance(op, FuncOp) for op in before.ops) == 2
    assert main_of(convert(data)).sym_name.data == "main"


def test_attributes_of_jax_and_mhlo_are_dropped() -> None:
    module = convert(lower(lambda x: x + 1, X).bytecode)
    assert not module.attributes
    assert "jax." not in str(module)


def test_source_locations_are_kept() -> None:
    def fn(x: Any) -> Any:
        return jnp.tanh(x)

    line = fn.__code__.co_firstlineno + 1
    module = convert(lower(fn, X).bytecode)
    (op,) = (op for op in module.walk() if op.name == "tgraph.tanh")
    assert f'{__file__}":{line}:' in str(op.location)


def test_a_large_splat_stays_one_number() -> None:
    text = function(
        "",
        "tensor<9999x9999xf32>",
        """
        %0 = stablehlo.constant dense<0xFF800000> : tensor<9999x9999xf32>
        return %0 : tensor<9999x9999xf32>""",
    )
    assert "tgraph.constant<0xff800000 : f32> : tensor<9999x9999xf32>" in str(
        convert(text)
    )


def test_reduce_combines_an_initial_value_only_if_it_is_not_the_identity() -> None:
    def reduced(init: float) -> list[str]:
        lowered = lower(lambda x: lax.reduce(x, np.float32(init), lax.max, (0,)), X)
        names = [op.name for op in convert(lowered.bytecode).walk()]
        return names[names.index(ReduceOp.name) :]

    assert reduced(-np.inf) == ["tgraph.reduce", "func.return"]
    assert "tgraph.maximum" in reduced(0.0)


def test_unsupported_custom_calls_are_refused() -> None:
    with pytest.raises(LocatedError) as error:
        convert(lower(lambda x: lax.linalg.tridiagonal(x[:2, :2]), X).bytecode)
    assert error.value.message.splitlines()[0] == (
        "stablehlo.custom_call @lapack_ssytrd_ffi is not supported: it is JAX's "
        "tridiagonal"
    )


def test_location_of_errors_inside_of_jax() -> None:
    """An error inside of a JAX function is located at its call in the program, or at
    the call of `from_jax` if the program itself is a JAX function."""

    def program(x: Any) -> Any:
        return lax.linalg.tridiagonal(x)[0]

    first = program.__code__.co_firstlineno
    for fn, line in ((program, first + 1), (lax.linalg.tridiagonal, first + 6)):
        with pytest.raises(LocatedError, match="JAX's tridiagonal") as error:
            tensorplan.from_jax(fn, X[:2, :2])
        assert str(error.value.place).startswith(f"{__file__}:{line}:")


def test_one_error_names_every_unsupported_operation() -> None:
    def fn(x: Any) -> Any:
        y = lax.linalg.tridiagonal(x)[0]
        y = lax.fori_loop(0, 9, lambda i, y: lax.linalg.tridiagonal(y * 1j)[0].real, y)
        return lax.cond(
            y[0, 0] > 0,
            lambda y: y,
            lambda y: lax.rng_uniform(0.0, y[0, 0], y.shape),
            y,
        )

    with pytest.raises(LocatedError) as error:
        convert(jax.jit(fn).lower(X[:2, :2]).as_text())
    first, *others = str(error.value).splitlines()
    place = r"model\.mlir:\d+:\d+: "
    call = r"stablehlo\.custom_call @lapack_ssytrd_ffi is not supported"
    assert re.fullmatch(place + call, first)
    assert all(re.fullmatch(place + "note: .* is not supported.*", o) for o in others)
    assert sorted({" ".join(other.split()[2:4]) for other in others}) == [
        "stablehlo.custom_call @lapack_chetrd_ffi",
        "stablehlo.rng is",
    ]


def test_call_of_an_identity_function_is_inlined() -> None:
    """JAX lowers the cumulative sum of an empty array to a call of such a function."""
    x = np.zeros((0, 5), np.float32)
    (got,) = tensorplan.compile(
        tensorplan.plan(tensorplan.from_jax(lambda x: jnp.cumsum(x, 0), x))
    )(x)
    assert got.shape == x.shape
