"""Tests LiteRT's branches, loops and variables: values of several runs."""

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
    """Asserts that the compiled program has LiteRT's results in each run. The contents
    of variables, which follow the results, are not compared."""
    run = tensorplan.compile(tensorplan.from_tflite(data))
    for want, inputs in zip(litert_runs(data, runs), runs, strict=True):
        for own, peer in zip(run(*inputs), want, strict=False):
            if own.dtype.kind == "f":
                np.testing.assert_allclose(own, peer, 1e-5, 1e-6)
            else:
                np.testing.assert_array_equal(own, peer)


def floats(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def applied(n: Network, kind: str, a: int, b: int) -> int:
    return n.op(kind, [a, b], n.tensor([3], "float32"))


def test_branches_with_their_own_weights() -> None:
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
    """A loop that doubles a value in each of ten iterations."""

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
    """Adds an input to a variable with initial contents [1, 2, 3]. Returns the contents
    before and after the addition."""
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


def test_variables_keep_their_values_between_runs() -> None:
    n = Network()
    data = n.model(*counter(n))
    check(data, *[[floats(10, 20, 30)]] * 3)
    model = tensorplan.from_tflite(data)
    assert [*model.parameters] == ["sum"]
    *_, held = tensorplan.compile(model)(floats(10, 20, 30))
    assert held.tolist() == [11, 22, 33]


@pytest.mark.parametrize("kind", ["CALL", "STABLEHLO_COMPOSITE"])
def test_calls_of_subgraphs(kind: str) -> None:
    """A subgraph that is called twice has its weights only once."""
    n = Network()

    def shifted(inner: Network) -> Sequence[int]:
        given = inner.input([3], "float32")
        return [applied(inner, "ADD", given, inner.constant(floats(1, 2, 3)))]

    x, number = n.input([3], "float32"), n.graph(shifted)
    options: dict[str, Any] = {"table": "CallOptions", "subgraph": number}
    if kind != "CALL":
        options = {"table": "StableHLOCompositeOptions", "name": "shifted"}
        options["decompositionSubgraphIndex"] = number
        options["compositeAttributes"] = [0, 0, 1, 0, 0, 36, 1]  # an empty map
    y, z = n.tensor([3], "float32"), n.tensor([3], "float32")
    n.op(kind, [x], y, **options)
    n.op(kind, [y], z, **options)
    data = n.model(z)
    model = tensorplan.from_tflite(data)
    assert len(model.parameters) == 1
    np.testing.assert_array_equal(
        tensorplan.compile(model)(floats(4, -5, 6))[0], floats(6, -1, 12)
    )
    if kind != "CALL":  # LiteRT has no kernel for it
        check(data, [floats(4, -5, 6)])


@pytest.mark.parametrize("is_time_first", [True, False])
def test_recurrent_layers(is_time_first: bool) -> None:
    """The state of the layer is kept for the next run."""
    n = Network()
    shape = [5, 2, 3] if is_time_first else [2, 5, 3]
    x = n.input(shape, "float32")
    weights = [n.random(4, 3), n.random(4, 4), n.random(4)]
    y = n.tensor([*shape[:2], 4], "float32")
    n.op(
        "UNIDIRECTIONAL_SEQUENCE_RNN",
        [x, *weights, n.state([2, 4], "float32")],
        y,
        table="SequenceRNNOptions",
        timeMajor=is_time_first,
        fusedActivationFunction=4,
    )
    runs = [n.rng.standard_normal(shape).astype("f4") for _ in range(3)]
    check(n.model(y), *[[run] for run in runs])


@pytest.mark.parametrize("is_merged", [True, False])
@pytest.mark.parametrize("is_time_first", [True, False])
def test_recurrent_layers_in_both_directions(
    is_time_first: bool, is_merged: bool
) -> None:
    n = Network()
    shape = [5, 2, 3] if is_time_first else [2, 5, 3]
    x, sizes = n.input(shape, "float32"), (4, 6)
    inputs = [x]
    for size in sizes:
        recurrent = n.rng.standard_normal((size, size)).astype("f4") / 4
        inputs += [n.random(size, 3), n.constant(recurrent), n.random(size)]
        inputs.append(n.state([2, size], "float32"))
    widths = [sum(sizes)] if is_merged else sizes
    outputs = [n.tensor([*shape[:2], width], "float32") for width in widths]
    n.op(
        *("BIDIRECTIONAL_SEQUENCE_RNN", [*inputs, -1, -1, -1], *outputs),
        table="BidirectionalSequenceRNNOptions",
        timeMajor=is_time_first,
        mergeOutputs=is_merged,
        fusedActivationFunction=4,
    )
    runs = [n.rng.standard_normal(shape).astype("f4") for _ in range(2)]
    check(n.model(*outputs), *[[run] for run in runs])


@pytest.mark.parametrize("is_merged", [True, False])
def test_lstm_layers_in_both_directions(is_merged: bool) -> None:
    n = Network()
    x, cells = n.input([6, 2, 3], "float32"), (5, 5)
    inputs, states = [x], []
    for size in cells:
        inputs += [n.random(size, 3) for _ in range(4)]
        inputs += [n.random(size, size) for _ in range(4)]
        inputs += [-1] * 3
        inputs += [n.random(size) for _ in range(4)]
        inputs += [-1] * 2
        states += [n.state([2, size], "float32") for _ in range(2)]
    widths = [sum(cells)] if is_merged else cells
    outputs = [n.tensor([6, 2, width], "float32") for width in widths]
    n.op(
        *("BIDIRECTIONAL_SEQUENCE_LSTM", [*inputs, *states, *[-1] * 9], *outputs),
        table="BidirectionalSequenceLSTMOptions",
        timeMajor=True,
        mergeOutputs=is_merged,
        fusedActivationFunction=4,
    )
    runs = [n.rng.standard_normal([6, 2, 3]).astype("f4") for _ in range(2)]
    check(n.model(*outputs), *[[run] for run in runs])


def test_auxiliary_inputs_are_refused() -> None:
    n = Network()
    x, y = n.input([5, 2, 3], "float32"), n.tensor([5, 2, 4], "float32")
    layers = [n.random(4, 3), n.random(4, 4), n.random(4), n.state([2, 4], "float32")]
    n.op(
        *("BIDIRECTIONAL_SEQUENCE_RNN", [x, *layers, *layers, x], y),
        table="BidirectionalSequenceRNNOptions",
    )
    assert "not supported with an auxiliary input" in refused(n.model(y))


PARTS = ["coupled", "peepholes", "projection", "clipped", "normalized"]


@pytest.mark.parametrize("parts", [[], *([part] for part in PARTS), PARTS[1:]], ids=str)
@pytest.mark.parametrize("is_time_first", [True, False])
def test_lstm_layers(is_time_first: bool, parts: Sequence[str]) -> None:
    n = Network()
    has = {part: part in parts for part in PARTS}
    size, cells = 3, 5
    outputs = 4 if has["projection"] else cells
    shape = [6, 2, size] if is_time_first else [2, 6, size]

    def weights(condition: bool, *sizes: int) -> int:
        return n.random(*sizes) if condition else -1

    gates = [not has["coupled"], True, True, True]
    inputs = [
        n.input(shape, "float32"),
        *(weights(gate, cells, size) for gate in gates),
        *(weights(gate, cells, outputs) for gate in gates),
        *(weights(has["peepholes"], cells) for _ in range(3)),
        *(weights(gate, cells) for gate in gates),
        weights(has["projection"], outputs, cells),
        weights(has["projection"], outputs),
        n.state([2, outputs], "float32"),
        n.state([2, cells], "float32"),
    ]
    if has["normalized"]:
        inputs += [weights(gate, cells) for gate in gates]
    y = n.tensor([*shape[:2], outputs], "float32")
    n.op(
        *("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, y),
        table="UnidirectionalSequenceLSTMOptions",
        timeMajor=is_time_first,
        fusedActivationFunction=4,
        cellClip=0.5 if has["clipped"] else 0.0,
        projClip=0.3 if has["clipped"] else 0.0,
    )
    runs = [n.rng.standard_normal(shape).astype("f4") for _ in range(2)]
    check(n.model(y), *[[run] for run in runs])


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("rank", [1, 2])
def test_svdf(rank: int, dtype: str) -> None:
    n = Network()
    quantized = dtype == "int8"
    x = n.input([2, 7], dtype, *((0.02, 5) if quantized else ()))
    if quantized:
        times = n.rng.integers(-30000, 30000, (8, 4), "i2")
        bias = n.constant(n.rng.integers(-900, 900, 8 // rank, "i4"), 3e-7)
        filters, times = n.random(8, 7, scale=0.004), n.constant(times, 1e-4)
        state = n.state([2, 32], "int16", 2e-4)
        y = n.tensor([2, 8 // rank], "int8", 0.04, -128)
    else:
        filters, times, bias = n.random(8, 7), n.random(8, 4), n.random(8 // rank)
        state, y = n.state([2, 32], "float32"), n.tensor([2, 8 // rank], "float32")
    options = {"table": "SVDFOptions", "rank": rank, "fusedActivationFunction": 1}
    n.op("SVDF", [x, filters, times, bias, state], y, **options)
    given = (n.rng.standard_normal((6, 2, 7)) * (40 if quantized else 1)).astype(dtype)
    check(n.model(y), *[[step] for step in given])


def refused(data: bytes) -> str:
    with pytest.raises(LocatedError) as error:
        tensorplan.from_tflite(data)
    return str(error.value)


def test_unsupported_control_flow_is_refused() -> None:
    n = Network()
    y = loop(n, n.input([3], "float32"), "WHERE")
    assert "tflite#1.t2:1:1: operation WHERE is not" in refused(n.model(y))

    n = Network()
    condition, x = n.input([], "bool"), n.input([3], "float32")

    def within(inner: Network) -> Sequence[int]:
        given = inner.input([3], "float32")
        inner.op("ASSIGN_VARIABLE", [inner.variable("v"), given])
        return [given]

    number, y = n.graph(within), n.tensor([3], "float32")
    options = {"thenSubgraphIndex": number, "elseSubgraphIndex": number}
    n.op("IF", [condition, x], y, table="IfOptions", **options)
    assert "VAR_HANDLE is not supported in a branch or a loop" in refused(n.model(y))

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
