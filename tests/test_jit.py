"""Tests `tensorplan.jit`: pytrees, caching, in-place state, JAX's transformations."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError

jax: Any = pytest.importorskip("jax")
pytest.importorskip("jax.experimental.checkify")
jnp: Any = jax.numpy
RANDOM = np.random.default_rng(0)


def layer(params: Any, x: Any) -> Any:
    return {"y": jnp.tanh(x @ params["w"] + params["b"]), "n": jnp.int32(x.shape[0])}


def loss(params: Any, x: Any) -> Any:
    return (layer(params, x)["y"] ** 2).sum()


LAYER, LOSS = tensorplan.jit(layer), tensorplan.jit(loss)
PARAMS = {"w": RANDOM.standard_normal((5, 4)), "b": np.ones(4, np.float32)}
X = RANDOM.standard_normal((3, 5), np.float32)


def check(ours: Any, theirs: Any, atol: float = 0) -> None:
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)

    def compare(a: Any, b: Any) -> None:
        if b.dtype != jax.dtypes.float0:
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=atol)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)

    jax.tree.map(compare, ours, theirs)


def test_pytrees_of_numpy_and_jax_arrays() -> None:
    expected = layer(PARAMS, X)
    result = LAYER(PARAMS, X)
    assert isinstance(result["y"], np.ndarray)
    check(result, expected)
    check(LAYER(jax.tree.map(jnp.asarray, PARAMS), x=X), expected)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_of_random_numbers_are_state(impl: str) -> None:
    def step(state: Any, x: Any) -> Any:
        key, own = jax.random.split(state["key"])
        kept = jnp.where(jax.random.bernoulli(own, 0.5, x.shape), x, 0)
        return {"key": key, "sum": state["sum"] + kept.sum()}, own

    jitted = tensorplan.jit(step, donate_argnums=0)
    ours = {"key": jax.random.key(3, impl=impl), "sum": np.float32(0)}
    theirs, keys = ours, list[Any]()
    for _ in range(3):
        (ours, own), (theirs, expected) = jitted(ours, X), step(theirs, X)
        assert own == expected
        np.testing.assert_allclose(ours["sum"], theirs["sum"], rtol=1e-5)
        keys.append((ours["key"], theirs["key"]))
    assert all(got == want for got, want in keys)  # later calls do not change them


def test_keys_of_random_numbers_under_transformations() -> None:
    def noisy(key: Any, x: Any) -> Any:
        return (x * jax.random.normal(key, x.shape)).sum()

    jitted, key = tensorplan.jit(noisy), jax.random.key(0)
    keys = jax.random.split(key, 3)
    check(jax.grad(jitted, 1)(key, X), jax.grad(noisy, 1)(key, X))
    check(jax.vmap(jitted, (0, None))(keys, X), jax.vmap(noisy, (0, None))(keys, X))
    check(jax.jit(jitted)(key, X), noisy(key, X))


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_of_random_numbers_can_be_types(impl: str) -> None:
    key = jax.random.key(5, impl=impl)
    jitted = tensorplan.jit(lambda key: jax.random.normal(key, (4,)))
    run = jitted.compiled(jax.ShapeDtypeStruct((), key.dtype))
    check(run(np.asarray(jax.random.key_data(key))), [jitted(key)])


def test_keys_of_random_numbers_are_parameters() -> None:
    def noisy(params: Any, x: Any) -> Any:
        return params["scale"] * x + jax.random.normal(params["key"], x.shape)

    params = {"key": jax.random.key(0), "scale": np.float32(2)}
    model = tensorplan.from_jax(noisy, params, X, parameter_argnums=0)
    check(tensorplan.compile(model)(X), [noisy(params, X)])


@pytest.mark.parametrize(
    "options", [{"static_argnums": -1}, {"static_argnums": 1}, {"static_argnames": "n"}]
)
def test_arguments_by_number_and_by_name(options: Any) -> None:
    def power(x: Any, n: int = 2) -> Any:
        return x * x if n == 2 else x**n  # a traced n would be an error

    jitted = tensorplan.jit(power, **options)
    for call in (lambda f: f(X), lambda f: f(X, 3), lambda f: f(n=3, x=X)):
        np.testing.assert_allclose(call(jitted), call(power), rtol=1e-5)


def test_arguments_of_any_name() -> None:
    def total(*args: Any, **kwargs: Any) -> Any:
        return sum(args) + sum(kwargs.values())

    named: dict[str, Any]
    for named in ({"a b": X}, {"lambda": X}, {"argument_1": X}, {"self": X}):
        assert tensorplan.jit(total).compiled(X, **named).inputs
        check(tensorplan.jit(total)(X, 2 * X, **named), total(X, 2 * X, **named))


def test_donated_arguments_by_name() -> None:
    choices: list[Any] = [{"donate_argnums": 0}, {"donate_argnames": "state"}]
    for options in choices:
        step = tensorplan.jit(lambda state, x: state + x, **options)
        state = np.zeros_like(X)
        assert step(x=X, state=state) is state
        assert step(state, X) is state
        np.testing.assert_array_equal(state, 2 * X)


def test_methods() -> None:
    class Model:
        def __init__(self, scale: float):
            self.scale = scale

        @tensorplan.jit(static_argnums=0)
        def __call__(self, x: Any) -> Any:
            return self.scale * jnp.sin(x)

    for scale in (2, 3):
        np.testing.assert_allclose(Model(scale)(X), scale * np.sin(X), rtol=1e-5)


def test_each_kind_of_arguments_is_compiled_once() -> None:
    power = tensorplan.jit(lambda x, n: x**n, static_argnums=1)
    for arguments in (
        (X, 2),
        (X, 2),
        (jnp.asarray(X), 3),
        (X[0], 3),
        (2.5, 3),
        (3, 3),
        (X, 2.0),
    ):
        result, expected = power(*arguments), jnp.power(*arguments)
        np.testing.assert_allclose(result, expected, rtol=1e-5)
        assert result.dtype == expected.dtype
    assert repr(power) == "<tensorplan.jit <lambda>: 6 programs>"
    assert power.compiled(X, 2) is power.compiled(X + 1, 2)


def test_donated_state_stays_in_place_and_nothing_is_copied() -> None:
    def step(state: Any, x: Any) -> Any:
        return jax.tree.map(lambda s: s + x.sum(), state), None

    jitted = tensorplan.jit(step, donate_argnums=0)
    state = (np.zeros(3, np.float32), {"b": np.zeros((2, 2), np.float32)})
    for _ in range(3):
        new, nothing = jitted(state, X)
        assert nothing is None
        assert new[0] is state[0]
        assert new[1]["b"] is state[1]["b"]
    assert not jitted.compiled(state, X).copies
    np.testing.assert_allclose(state[1]["b"], np.full((2, 2), 3 * X.sum()), rtol=1e-5)
    # JAX's arrays cannot be written: the first call copies them.
    first = jnp.zeros(3)
    second, _ = jitted((first, {"b": first}), X)
    third, _ = jitted(second, X)
    assert not first.any()
    assert third[0] is second[0]


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_gradients(transform: Callable[[Any], Any]) -> None:
    """The gradients of a function with several results, and of a loss, equal JAX's."""
    for ours, theirs in ((LAYER, layer), (LOSS, loss)):

        def total(function: Any) -> Any:
            def of(params: Any, x: Any) -> Any:
                return sum(2.0 * y.sum() for y in jax.tree.leaves(function(params, x)))

            return transform(jax.value_and_grad(of, argnums=(0, 1)))

        check(total(ours)(PARAMS, X), total(theirs)(PARAMS, X))


DERIVATIVES: dict[str, Callable[..., Any]] = {
    "jvp": lambda f: jax.jvp(f, (PARAMS, X), (PARAMS, 2 * X)),
    "jvp of one": lambda f: jax.jvp(lambda x: f(PARAMS, x), (X,), (X,)),
    "jacfwd": lambda f: jax.jacfwd(f, 1)(PARAMS, X),
    "jacrev": lambda f: jax.jacrev(f, 1)(PARAMS, X),
    "linearize": lambda f: jax.linearize(f, PARAMS, X)[1](PARAMS, 2 * X),
    "hessian": lambda f: jax.hessian(f, 1)(PARAMS, X),
    "twice backwards": lambda f: jax.jacrev(jax.jacrev(f, 1))(PARAMS, X),
    "backwards, over forwards": lambda f: jax.jacrev(
        lambda x: jax.jvp(lambda y: f(PARAMS, y), (x,), (X,))[1]
    )(X),
    "for each": lambda f: jax.vmap(jax.hessian(lambda x: f(PARAMS, x)))(
        np.stack([X, 2 * X])
    ),
    "recomputed": lambda f: jax.jacrev(jax.checkpoint(f))(PARAMS, X),
}


OF_SECOND_ORDER = ("hessian", "twice backwards", "backwards, over forwards", "for each")


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_of_each_order(name: str) -> None:
    """The derivatives equal JAX's if the function returns an array, a loss, or a dict
    with an integer."""
    of = DERIVATIVES[name]
    functions: list[Any] = [lambda p, x: layer(p, x)["y"]]
    if name not in OF_SECOND_ORDER:
        functions.append(loss)
    if name in ("jvp", "jvp of one", "linearize"):  # the others refuse integers
        functions.append(layer)
    for function in functions:
        jitted = tensorplan.jit(function)
        expected = jax.jit(lambda f=function: of(f))()
        check(of(jitted), expected, 1e-5)
        check(jax.jit(lambda f=jitted: of(f))(), expected, 1e-5)


@pytest.mark.parametrize("holomorphic", [False, True])
def test_derivatives_of_complex_numbers(holomorphic: bool) -> None:
    z = np.array([1 + 2j, -0.5 + 1j], np.complex64)

    def function(z: Any) -> Any:
        return (z**3).sum() if holomorphic else (z.real**2 * z.imag).sum()

    for of in (
        lambda f: jax.grad(f, holomorphic=holomorphic)(z),
        lambda f: jax.jvp(f, (z,), (z * 1j,)),
    ):
        check(of(tensorplan.jit(function)), of(function))


@pytest.mark.parametrize(
    "of",
    [
        lambda f: jax.grad(lambda x: jnp.abs(f(x)) ** 2)(1.5),
        lambda f: jax.jvp(f, (1.5,), (2.0,)),
        lambda f: jax.jacfwd(lambda x: f(x).imag)(1.5),
        lambda f: jax.hessian(lambda x: jnp.abs(f(x)) ** 2)(1.5),
    ],
    ids=["grad", "jvp", "jacfwd", "hessian"],
)
@pytest.mark.parametrize(
    "function",
    [lambda x: x * (1 + 2j), lambda x: jnp.conj(x**2 * (1 + 2j))],
    ids=["linear", "conjugate"],
)
def test_derivatives_of_one_complex_result(function: Any, of: Any) -> None:
    expected = of(jax.jit(function))
    check(of(tensorplan.jit(function)), expected, 1e-5)
    jitted = tensorplan.jit(function)
    check(jax.jit(lambda: of(jitted))(), expected, 1e-5)


@pytest.mark.parametrize(
    "of",
    [
        lambda f, z: jax.hessian(lambda t: f(z * (1 + t * 1j)))(0.5),
        lambda f, z: jax.jvp(jax.grad(f), (z,), (z * 1j,)),
        lambda f, z: jax.vjp(f, z)[1](jnp.float32(-3)),
    ],
    ids=["hessian", "jvp of grad", "vjp"],
)
def test_derivatives_of_a_loss_of_complex_numbers(of: Any) -> None:
    z = np.array([1 + 2j, -0.5 + 1j], np.complex64)

    def function(z: Any) -> Any:
        return (z.real**2 * z.imag).sum()

    check(of(tensorplan.jit(function), z), of(jax.jit(function), z), 1e-4)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("shape", [(4096,), (64, 64)], ids=str)
@pytest.mark.parametrize("size", [1e-9, 1e6], ids=str)
def test_a_scaled_loss_keeps_the_range_of_narrow_weights(
    shape: Any, dtype: Any, size: float
) -> None:
    """The scale is applied before the gradient is converted to f16, where 2e-9 would be
    0, and 2e6 infinity."""
    scale, weights = 1 / size, jnp.ones(shape, dtype)

    def loss(w: Any) -> Any:
        return (w.astype(jnp.float32) ** 2).sum() * size

    def gradient(f: Any) -> Any:
        return jax.grad(lambda w: scale * f(w))(weights)

    result = gradient(tensorplan.jit(loss))
    check(result, gradient(jax.jit(loss)))
    assert (result == 2).all()


@pytest.mark.parametrize(
    ("weights", "result", "count"),
    [("f2", "f4", 2), ("f4", "f4", 1), ("f4", "f2", 1), ("bfloat16", "f2", 2)],
)
def test_programs_of_the_gradient_of_a_wide_loss(
    weights: str, result: str, count: int
) -> None:
    """If the type of the arguments cannot hold the loss, the gradient repeats the
    forward pass in a second program."""
    function = tensorplan.jit(lambda w: w.sum().astype(result))
    gradient = jax.grad(lambda w: function(w).astype(jnp.float32))
    text = str(jax.make_jaxpr(gradient)(jnp.ones(3, weights)))
    assert text.count("tensorplan[") == count


def test_tangents_may_be_python_numbers() -> None:
    def several(n: Any, x: Any) -> Any:
        return n * x**2, x, n

    nothing = np.zeros((), jax.dtypes.float0)
    for function, x, dx in (
        (lambda x: x**2, (2.0,), (3.0,)),
        (lambda x: (x**2, x), (2.0,), (3.0,)),
        (lambda x, y: x * y, (2.0, 3.0), (1.0, 0.0)),
        (several, (3, 2.0), (nothing, 3.0)),
    ):
        jitted = tensorplan.jit(function)
        expected = jax.jvp(jax.jit(function), x, dx)
        check(jax.jvp(jitted, x, dx), expected)
        given = [(a, b) for a, b in zip(x, dx, strict=True) if b is not nothing]
        if len(given) == len(x):  # with tracers, too
            run = jax.jit(lambda x, dx, f=jitted: jax.jvp(f, x, dx))
            check(run(x, dx), expected)


def test_results_have_weak_types_in_other_functions() -> None:
    double = tensorplan.jit(lambda x: 2 * x)
    half = np.ones(2, jnp.bfloat16)
    assert jax.jit(lambda x, y: x * double(y))(half, 3.0).dtype == jnp.bfloat16


def test_settings_of_jax_are_those_of_the_call() -> None:
    jitted = tensorplan.jit(lambda x: (x + 1, jnp.arange(2)))
    x = np.arange(3.0)
    assert [y.dtype for y in jitted(x)] == [np.float32, np.int32]
    with jax.enable_x64(True):
        assert [y.dtype for y in jitted(x)] == [np.float64, np.int64]
    assert [y.dtype for y in jitted(x)] == [np.float32, np.int32]
    with jax.disable_jit():
        assert tensorplan.jit(lambda x: "1" if x[1] > 0 else "0")(x) == "1"


def test_calls_that_depend_on_an_outer_trace_are_inlined() -> None:
    def product(w: Any) -> Any:
        return tensorplan.jit(lambda x: (x @ w).sum())(X)  # w is not an argument

    check(
        jax.grad(product)(PARAMS["w"]), jax.grad(lambda w: (X @ w).sum())(PARAMS["w"])
    )
    share = tensorplan.jit(lambda x: x / jax.lax.psum(x, "i"))
    check(jax.vmap(share, axis_name="i")(X), X / X.sum(0))
    checkify = jax.experimental.checkify

    def checked(x: Any) -> Any:
        checkify.check(x.sum() > 100, "small")
        return x

    error, _ = checkify.checkify(tensorplan.jit(checked))(X)
    assert "small" in error.get()


def test_functions_of_outer_tracers_are_traced_once() -> None:
    count, factor = 0, jnp.float32(0)

    def body(x: Any) -> Any:
        nonlocal count
        count += 1
        return x * factor

    jitted = tensorplan.jit(body)

    def outer(s: Any) -> Any:
        nonlocal factor
        factor = s
        return sum(jitted(X[0] * n).sum() for n in range(20))

    check(jax.grad(outer)(2.0), 190 * jnp.asarray(X[0]).sum(), 1e-4)
    assert count == 2  # once by JAX
    factor = jnp.float32(3)
    check(jitted(X), X * 3)
    assert isinstance(jitted(X), np.ndarray)
    with pytest.raises(LocatedError, match="pass it as an argument"):
        jax.grad(lambda w: tensorplan.jit(lambda x: x @ w).compiled(X))(PARAMS["w"])


def test_from_jax_rejects_outer_tracers() -> None:
    with pytest.raises(LocatedError, match="pass it as an argument"):
        jax.grad(lambda w: tensorplan.from_jax(lambda x: x @ w, X).parameters)(
            PARAMS["w"]
        )


def test_names_and_copies_of_jitted_functions() -> None:
    assert LAYER.__name__ == LAYER.__qualname__ == "layer"
    assert LAYER.__module__ == __name__
    original = tensorplan.jit(lambda a, b: (a + b, b), donate_argnums=0)
    for _ in range(2):  # before a call and after one
        copied = copy.deepcopy(original)
        state = np.ones(3, np.float32)
        result = copied(state, 2)
        assert result[0] is state
        assert state.tolist() == [3, 3, 3]
        original(state, 1)


def test_a_copy_of_an_object_has_functions_of_its_own() -> None:
    class Model:
        def __init__(self, scale: float):
            self.scale = scale
            self.apply = tensorplan.jit(self.scaled)

        def scaled(self, x: Any) -> Any:
            return self.scale * x

    model = Model(2)
    check(model.apply(X), 2 * X)
    copied = copy.deepcopy(model)
    copied.scale = 3
    check(copied.apply(X), 3 * X)


def test_a_gradient_runs_one_program() -> None:
    """One program computes the loss and the requested gradients."""
    built: list[str] = []

    def function(x: Any, y: Any) -> Any:
        built.append("")
        return (x * y).sum()

    jitted = tensorplan.jit(function)
    gradient = jax.jit(jax.grad(jitted))
    check(gradient(X, X + 1), X + 1)
    # JAX calls one program in the forward pass, none in the backward.
    assert str(jax.make_jaxpr(gradient)(X, X)).count("tensorplan[") == 1
    count = len(built)
    gradient(X + 2, X)
    assert len(built) == count


def test_inside_of_jit_and_vmap() -> None:
    jitted = jax.jit(lambda x: LAYER(PARAMS, LAYER(PARAMS, x)["y"] @ X[:, :4].T @ X))
    check(jitted(X), layer(PARAMS, layer(PARAMS, X)["y"] @ X[:, :4].T @ X))
    batch = np.stack([X, X + 1])
    vmapped = [jax.vmap(f, (None, 0))(PARAMS, batch) for f in (LOSS, loss)]
    check(*vmapped)


def test_results_without_a_batch_dimension() -> None:
    def function(x: Any, y: Any) -> Any:
        return x * 2, jax.lax.cond(y.sum() > 0, jnp.cos, jnp.exp, y)

    jitted = tensorplan.jit(function)
    batch = np.stack([X, X + 1])
    axes = (0, None), (0, None)
    check(jax.vmap(jitted, *axes)(batch, X), jax.vmap(function, *axes)(batch, X))
    with pytest.raises(ValueError, match="out_axes"):
        jax.vmap(jitted, (0, None), None)(batch, X)


def test_nested_calls_are_inlined() -> None:
    inner = tensorplan.jit(lambda x, n: jnp.sin(x) * n, static_argnums=1)

    def outer(x: Any) -> Any:
        halves = jax.lax.map(lambda row: inner(row, 2), x)
        return jax.jit(lambda y: inner(y, 3))(x) + halves + inner(np.ones(5), 1)

    own = tensorplan.jit(outer)
    want = jnp.sin(X) * 5 + jnp.sin(1.0)
    check(own(X), want)
    check(jax.grad(lambda x: own(x).sum())(X), jnp.cos(X) * 5)
    check(jax.jit(own)(X), want)
    assert "0 programs" in repr(inner)
    check(inner(X, 2), jnp.sin(X) * 2)
    assert "1 programs" in repr(inner)


def test_inlined_calls_accept_numpy_arrays() -> None:
    """An inlined call gets NumPy arrays and numbers as JAX arrays, and does not change
    the originals."""
    table = np.zeros(5, np.float32)

    def change(a: Any, b: Any) -> Any:
        a += b
        return a.at[0].set(5.0) + jnp.zeros(5, b.dtype)

    inner = tensorplan.jit(change)
    for outer in (tensorplan.jit, lambda f: lambda x: run_once(f, x)):
        result = outer(lambda x: inner(table, 2.0) + x)(X[0])
        np.testing.assert_array_equal(
            result, change(jnp.zeros(5), jnp.array(2.0)) + X[0]
        )
        assert not table.any()


def run_once(function: Callable[..., Any], x: Any) -> Any:
    return tensorplan.compile(tensorplan.from_jax(function, x))(x)[0]


def test_donation_has_no_effect_under_transformations() -> None:
    jitted = tensorplan.jit(lambda x: x + 1, donate_argnums=0)
    assert jax.jit(lambda x: jitted(x) + x)(jnp.ones(2)).tolist() == [3, 3]
    state = np.ones(2, np.float32)
    assert jitted(state) is state
    jax.jit(lambda x: jitted(state) + x)(jnp.ones(2))  # called while JAX traces
    assert state.tolist() == [3, 3]


def test_options_are_those_of_compile() -> None:
    jitted = tensorplan.jit(loss, alignment=4, strategy="naive", threads=1)
    check(jitted(PARAMS, X), loss(PARAMS, X))
    assert jitted.compiled(PARAMS, X).pools[0].bytes % 64


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tensorplan.jit(loss, budgte=1), TypeError, "option is 'budgte'"),
        (lambda: tensorplan.jit(loss, budget=[]), TypeError, "budget is"),
        (
            lambda: tensorplan.jit(loss, donate_argnums=0, static_argnums=[0]),
            ValueError,
            "argument 0 is both donated and static",
        ),
        (
            lambda: tensorplan.jit(loss, donate_argnums=2)(PARAMS, X),
            ValueError,
            "there is no argument 2, expected 0 to 1",
        ),
        (
            lambda: tensorplan.jit(loss, donate_argnums=-3)(PARAMS, X),
            ValueError,
            "there is no argument -1, expected 0 to 1",
        ),
        (
            lambda: tensorplan.jit(loss, static_argnames="n"),
            ValueError,
            "there is no argument 'n', expected params, x",
        ),
        (
            lambda: tensorplan.jit(loss, static_argnums=1)(PARAMS, X),
            ValueError,
            "a static argument is not hashable",
        ),
        (lambda: LOSS(PARAMS, "x"), TypeError, "argument to <function loss .* path x"),
        (
            lambda: tensorplan.jit(lambda p, *, q: p if q["r"] else q)(X, q={"r": 1}),
            jax.errors.TracerBoolConversionError,
            r"test_jit.py:\d+ for jit.* of the argument q\['r'\]",
        ),
        (
            lambda: LOSS.compiled(PARAMS, X)(1, 2, 3),
            ValueError,
            r"argument 0 \(params\['b'\]\)",
        ),
        (
            lambda: jax.linear_transpose(tensorplan.jit(jnp.sin), X)(X),
            TypeError,
            "<sin> is not known to be linear",
        ),
    ],
)
def test_mistakes(call: Callable[[], Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_sharding_changes_nothing_on_one_device() -> None:
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))

    def double(x: Any) -> Any:
        return 2 * jax.lax.with_sharding_constraint(jnp.sin(x), rows)

    x = np.arange(6, dtype=np.float32)
    np.testing.assert_allclose(tensorplan.jit(double)(x), 2 * np.sin(x), rtol=1e-6)
