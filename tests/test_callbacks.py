"""Python functions that programs call: `jax.debug.print`, `jax.pure_callback`, ..."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.runtime.executor import Executable

jax: Any = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax
io_callback: Any = pytest.importorskip("jax.experimental").io_callback

X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
W3 = np.stack([W, W.T, W + 0.5])


class Log(list[tuple[Any, ...]]):
    """Notes of what a program called, with the values, rounded."""

    def note(self, name: str) -> Callable[..., None]:
        def call(*arrays: Any) -> None:
            self.append(
                (name, *(np.round(np.asarray(x, float), 2).tolist() for x in arrays))
            )

        return call

    def called(self, name: str, *arrays: Any) -> None:
        """In a traced function: notes the values in program order."""
        jax.debug.callback(self.note(name), *arrays, ordered=True)


def _train(log: Log, ws: Any, x: Any) -> Any:
    """A step of training with a scan whose body prints."""

    def loss(ws: Any) -> Any:
        def layer(h: Any, w: Any) -> Any:
            log.called("layer", h.sum())
            return jnp.tanh(h @ w), None

        h, _ = lax.scan(layer, x, ws)
        log.called("last", h)
        return (h * h).sum()

    found, gradient = jax.value_and_grad(loss)(ws)
    log.called("loss", found)
    return found, ws - 0.1 * gradient


def _control(log: Log, ws: Any, x: Any) -> Any:
    """Calls in conditions, bodies and branches, the latter without results."""

    def condition(state: Any) -> Any:
        log.called("condition", state[0])
        small = jax.ShapeDtypeStruct((), np.bool_)
        return jax.pure_callback(lambda v: np.asarray(v < 60), small, state[1].sum())

    def body(state: Any) -> Any:
        number, x = state
        lax.cond(
            number % 2 == 0,
            lambda: log.called("even", number),
            lambda: log.called("odd", x),
        )
        lax.switch(number, [lambda: None, lambda: log.called("one")])
        return number + 1, x * 2

    return lax.while_loop(condition, body, (0, x))


def _values(log: Log, ws: Any, x: Any) -> Any:
    """Functions with values: several, none, of many types, on views, and in a batch."""
    like = jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct((), x.dtype)
    sine, number = jax.pure_callback(lambda v: (np.sin(v), v.sum()), like, x)
    none = jax.ShapeDtypeStruct((0, 2), np.int8)
    nothing = io_callback(lambda: np.zeros((0, 2), np.int8), none)
    log.called("views", x.T, x[:, ::-1], jnp.broadcast_to(x[0], (2, 3)), nothing)
    for kind in (jnp.bfloat16, np.bool_, np.int8, np.complex64, jnp.float8_e4m3fn):
        y = x.astype(kind)
        jax.debug.callback(
            lambda y: log.append((str(y.dtype), str(y))), y, ordered=True
        )

    def row(x: Any) -> Any:
        jax.debug.callback(log.note("row"), x.sum())
        return x * 2

    return sine * number, jax.vmap(row)(x)


@pytest.mark.parametrize("function", [_train, _control, _values])
def test_calls_happen_as_in_jax(function: Callable[..., Any]) -> None:
    """As often, in the same order, with the same values."""
    logs = [Log() for _ in range(3)]
    expected = jax.tree.leaves(jax.jit(lambda *a: function(logs[0], *a))(W3, X))
    jax.effects_barrier()
    jitted = tensorplan.jit(lambda *a: function(logs[1], *a), donate_argnums=0)
    results = jax.tree.leaves(jitted(W3.copy(), X))
    model = tensorplan.from_jax(lambda *a: function(logs[2], *a), W3, X)
    reference = run_reference(model.module, [W3, X], callbacks=model.callbacks)
    for want, *found in zip(expected, results, reference, strict=True):
        for got in found:
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5)
    assert len(logs[0]) >= 5
    assert logs[1] == logs[2]  # JAX may move calls that are not ordered
    assert sorted(logs[1], key=_is_row) == sorted(logs[0], key=_is_row)


def _is_row(noted: tuple[Any, ...]) -> bool:
    return noted[0] == "row"


def test_pure_calls_are_erased_shared_and_never_repeated() -> None:
    count: list[str] = []

    def step(x: Any) -> Any:
        def call(name: str, x: Any) -> Any:
            return jax.pure_callback(
                lambda v: (count.append(name), np.asarray(v))[1], x, x
            )

        def body(_: Any, y: Any) -> Any:
            return y + call("loop", x)  # as often as the loop runs, which may be never

        call("unused", x)
        y = lax.fori_loop(0, 3, body, x)
        return y @ call("once", x @ x).T, jnp.tanh(y)

    x = np.ones((64, 64), np.float32)
    model = tensorplan.from_jax(step, x, parameter_argnums=0)
    tensorplan.compile(model, budget=3 * x.nbytes)()
    assert sorted(count) == ["loop"] * 3 + ["once"]


def _program() -> Any:
    """Returns a model that calls a function twice, with what it has called."""
    log = Log()

    def step(w: Any, x: Any) -> Any:
        h = jnp.tanh(x @ w)
        log.called("h", h.sum())
        gradient = x.T @ h
        jax.debug.callback(log.note("gradient"), gradient.sum())
        return w - gradient

    return tensorplan.plan(tensorplan.from_jax(step, W, X)), log


@pytest.mark.parametrize(
    "options",
    [
        {"sanitize": True},
        {"concurrent": True, "threads": 2},
        {"native": False},
        {"results": "view", "donate": [0]},
    ],
)
def test_every_way_to_run_calls_in_order(options: dict[str, Any]) -> None:
    model, log = _program()
    run = Executable(model.module, callbacks=model.callbacks, **options)
    run(W.copy(), X)
    run.clone()(W.copy(), X.copy())  # other arrays
    assert [name for name, _ in log] == ["h", "gradient"] * 2
    assert log[:2] == log[2:]
    assert run.has_side_effect


def test_only_a_model_has_functions(tmp_path: Path) -> None:
    model, _ = _program()
    with pytest.raises(LocatedError, match="calls Python function 0, and the program"):
        tensorplan.compile(tensorplan.read(str(model)))
    with pytest.raises(LocatedError, match="its calls have a Python function"):
        tensorplan.save(tensorplan.compile(model), tmp_path / "program")
    size = jax.export.symbolic_shape("n")
    given = jax.ShapeDtypeStruct(size, np.float32)
    with pytest.raises(LocatedError, match=r"jax\.export does not"):
        tensorplan.from_jax(lambda x: jax.debug.print("{}", x), given)


def test_an_exception_is_the_cause_of_an_error() -> None:
    wrong: list[Exception] = [ValueError("no"), RuntimeError("still no")]

    def fail(x: Any) -> Any:
        if wrong:
            raise wrong.pop()
        return np.asarray(x)

    jitted = tensorplan.jit(lambda x: jax.pure_callback(fail, x, x) * 2)
    for error in reversed(wrong.copy()):
        with pytest.raises(LocatedError, match=f"test_callbacks.*{error}") as raised:
            jitted(X)
        assert raised.value.__cause__ is error
    np.testing.assert_array_equal(jitted(X), 2 * X)


def test_functions_get_arrays_of_their_own() -> None:
    kept: list[Any] = []
    jitted = tensorplan.jit(
        lambda x: (jax.debug.callback(kept.append, x * 2), jnp.tanh(x * 2) * 3)[1]
    )
    jitted(X)
    jitted(X + 1)
    np.testing.assert_array_equal(kept[0], 2 * X)


def test_programs_with_effects_become_a_part_of_jaxs_programs() -> None:
    log = Log()

    def loss(x: Any) -> Any:
        jax.debug.callback(log.note("loss"), x.sum())
        return (x * x).sum()

    jitted = tensorplan.jit(loss)
    jax.jit(lambda x: (jitted(x), x)[1])(X)  # nothing reads the result
    np.testing.assert_array_equal(jax.grad(jitted)(X), 2 * X)
    jax.effects_barrier()
    assert log == [("loss", 15.0)] * 2
