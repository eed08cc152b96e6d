"""LiteRT's branches, loops and variables: values of several runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")
from tflite_models import Network, litert_runs


def check(data: bytes, *runs: Sequence[Any]) -> None:
    """A compiled program has LiteRT's values in each of the runs, and behind them what
    variables hold."""
    run = tensorplan.compile(tensorplan.from_tflite(data))
    for want, inputs in zip(litert_runs(data, runs), runs, strict=True):
        for own, peer in zip(run(*inputs), want, strict=False):
            np.testing.assert_allclose(own, peer, 1e-6)


def floats(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def applied(n: Network, kind: str, a: int, b: int) -> int:
    return n.op(kind, [a, b], n.tensor([3], "float32"))


def test_branches_are_graphs_with_weights_of_their_own() -> None:
    n = Network()
    condition, x = n.input([], "bool"), n.input([3], "float32")

    def branch(kind: str) -> int:
        def build(inner: Network) -> Sequence[int]:
            given = inner.input([3], "float32")
            return [applied(inner, kind, given, inner.constant(floats(1, 2, 3)))]

        return n.graph(build)

    y = n.tensor([3], "float32")
    options = {"thenSubgraphIndex": branch("ADD"), "elseSubgraphIndex": branch("MUL")}
    n.op("IF", [condition, x], y, table="IfOptions", **options)
    data = n.model(y)
    runs = [[np.array(flag), floats(4, -5, 6)] for flag in (True, False)]
    check(data, *runs)


def loop(n: Network, x: int, condition: str = "LESS") -> int:
    """Doubles until ten iterations are over."""

    def more(inner: Network) -> Sequence[int]:
        count, _ = inner.input([], "int32"), inner.input([3], "float32")
        result, ten = inner.tensor([], "bool"), inner.constant(np.array(10, "i4"))
        return [inner.op(condition, [count, ten], result)]

    def body(inner: Network) -> Sequence[int]:
        count, given = inner.input([], "int32"), inner.input([3], "float32")
        one, following = inner.constant(np.array(1, "i4")), inner.tensor([], "int32")
        inner.op("ADD", [count, one], following, table="AddOptions")
        return [following, applied(inner, "ADD", given, given)]

    zero = n.constant(np.array(0, "i4"))
    count, y = n.tensor([], "int32"), n.tensor([3], "float32")
    options = {
        "condSubgraphIndex": n.graph(more),
        "bodySubgraphIndex": n.graph(body),
    }
    n.op("WHILE", [zero, x], count, y, table="WhileOptions", **options)
    return y


def test_loops() -> None:
    n = Network()
    y = loop(n, n.input([3], "float32"))
    check(n.model(y), [floats(1, 2, 3)])


def counter(n: Network) -> tuple[int, int]:
    """A variable that begins with 1, 2, 3, and to which an input is added: what it is
    before and after."""
    x = n.input([3], "float32")

    def first(inner: Network) -> Sequence[int]:
        value = inner.constant(floats(1, 2, 3))
        inner.op("ASSIGN_VARIABLE", [inner.variable("sum"), value])
        return []

    once = {"initSubgraphIndex": n.graph(first)}
    n.op("CALL_ONCE", [], table="CallOnceOptions", **once)
    handle, before = n.variable("sum"), n.tensor([3], "float32")
    n.op("READ_VARIABLE", [handle], before)
    after = applied(n, "ADD", before, x)
    n.op("ASSIGN_VARIABLE", [handle, after])
    return before, after


def test_variables_keep_their_values_from_run_to_run() -> None:
    n = Network()
    data = n.model(*counter(n))
    check(data, *[[floats(10, 20, 30)]] * 3)
    model = tensorplan.from_tflite(data)
    assert [*model.parameters] == ["sum"]
    *_, held = tensorplan.compile(model)(floats(10, 20, 30))
    assert held.tolist() == [11, 22, 33]


def refused(data: bytes) -> str:
    with pytest.raises(LocatedError) as error:
        tensorplan.from_tflite(data)
    return str(error.value)


def test_what_is_refused() -> None:
    n = Network()
    y = loop(n, n.input([3], "float32"), "BROADCAST_ARGS")
    assert "tflite#1.t2:1:1: operation BROADCAST_ARGS is not" in refused(n.model(y))

    n = Network()
    condition, x = n.input([], "bool"), n.input([3], "float32")

    def within(inner: Network) -> Sequence[int]:
        given = inner.input([3], "float32")
        inner.op("ASSIGN_VARIABLE", [inner.variable("v"), given])
        return [given]

    number, y = n.graph(within), n.tensor([3], "float32")
    options = {"thenSubgraphIndex": number, "elseSubgraphIndex": number}
    n.op("IF", [condition, x], y, table="IfOptions", **options)
    assert "VAR_HANDLE in a branch or a loop is not supported" in refused(n.model(y))

    for index, count, message in (
        (7, 1, "there is no graph 7"),
        (0, 1, "graph 0 has 1 inputs, expected 0"),
        (0, 2, "graph 0 calls itself"),
    ):
        n = Network()
        condition, y = n.input([], "bool"), n.tensor([], "bool")
        options = {"thenSubgraphIndex": index, "elseSubgraphIndex": index}
        n.op("IF", [condition] * count, y, table="IfOptions", **options)
        assert message in refused(n.model(y))
