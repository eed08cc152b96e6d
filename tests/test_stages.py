"""Tests programs that get memory for each stage, and return it at the stage's end."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorplan
from tensorplan.dialects.tgraph.base import ON_DEMAND
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.planning import Buffer
from tensorplan.planning.on_demand import (
    MOST,
    Span,
    best_cuts,
    by_stages,
    peak_of_spans,
)
from tensorplan.runtime.allocators.host import aligned_bytes
from tensorplan.runtime.executor import Executable
from tensorplan.support.arrays import Array, address

SIZE, COUNT = 64, 6
MATRIX = f"tensor<{SIZE}x{SIZE}xf32>"


def chain() -> Executable:
    """The backward pass of a chain. Each step reads an input and computes a result."""
    arguments = ", ".join(f"%x{n}: {MATRIX}" for n in range(COUNT))
    types = f"({MATRIX}, {MATRIX}) -> {MATRIX}"
    product = (
        "{lhs_contracting_dimensions = array<i64: 1>, "
        f"rhs_contracting_dimensions = array<i64: 0>}} : {types}"
    )
    lines = [
        f"%r{n} = tgraph.dot_general %r{n - 1}, %x{n} {product}"
        for n in range(1, COUNT)
    ]
    lines.insert(0, f"%r0 = tgraph.tanh %x0 : {MATRIX}")
    results = ", ".join(f"%r{n}" for n in range(COUNT))
    text = f"""
    func.func @main({arguments}) -> ({", ".join([MATRIX] * COUNT)}) {{
      {" ".join(lines)}
      func.return {results} : {", ".join([MATRIX] * COUNT)}
    }}"""
    return Executable(tensorplan.plan(tensorplan.read(text)), threads=1)


def provided(
    run: Executable, inputs: list[Array], results: list[Array]
) -> Iterator[list[int]]:
    """Provides the memory for each stage. Fills returned memory with NaN."""
    arenas: dict[int, Array] = {}
    for stage in run.stages:
        for n in stage.results:
            results[n] = np.full(run.results[n].shape, np.nan, run.results[n].dtype)
        for n in stage.arenas:
            arenas[n] = aligned_bytes(run.arenas[n], 64)
        used = [inputs[n] for n in stage.inputs]
        used += [results[n] for n in stage.results]
        used += [arenas[n] for n in stage.arenas]
        yield [*map(address, used)]
        for n in stage.finished:
            inputs[n][...] = np.nan
        for n in stage.finished_arenas:
            arenas[n][...] = 0xFF  # NaN


@pytest.mark.parametrize("is_released", [True, False])
def test_memory_is_provided_only_while_used(is_released: bool) -> None:
    run = chain()
    run.divide(range(COUNT) if is_released else [])
    stages = run.stages
    assert (len(stages) > 2) == is_released
    assert [n for stage in stages for n in stage.inputs] == [*range(COUNT)]
    assert [n for stage in stages for n in stage.results] == [*range(COUNT)]
    rng = np.random.default_rng(0)
    for _ in range(2):
        inputs = [rng.standard_normal((SIZE, SIZE), np.float32) for _ in range(COUNT)]
        wanted = [np.tanh(inputs[0])]
        for x in inputs[1:]:
            wanted.append(wanted[-1] @ x)
        results: list[Array] = [np.empty(0)] * COUNT
        run.run_at(provided(run, inputs, results))
        for have, want in zip(results, wanted, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-3, atol=1e-2)
        assert np.isnan(inputs).all()


def test_too_few_stages() -> None:
    run = chain()
    run.divide(range(COUNT))
    with pytest.raises(ValueError, match="shorter"):
        run.run_at([])


def test_each_range_of_stages_has_an_arena() -> None:
    """The arena of the products in f64 is freed before the result in f32 is provided.
    The values are the same if memory is lost between stages, and in the program's own
    pool, where arenas of different stages share bytes."""

    def product(dim: int, *types: str) -> str:
        return (
            "{lhs_contracting_dimensions = array<i64: 1>, "
            f"rhs_contracting_dimensions = array<i64: {dim}>}} : "
            f"({types[0]}, {types[1]}) -> {types[2]}"
        )

    x, a, c = (f"tensor<{SIZE}x{n}>" for n in ("64xf64", "256xf64", "512xf32"))
    module = tensorplan.read(f"""
    func.func @main(%x: {x}, %a: {a}, %c: {c}) -> ({c}, {MATRIX})
        attributes {{{ON_DEMAND}}} {{
      %0 = tgraph.dot_general %x, %a {product(0, x, a, a)}
      %1 = tgraph.dot_general %0, %a {product(1, a, a, x)}
      %2 = tgraph.convert %1 : ({x}) -> {MATRIX}
      %3 = tgraph.dot_general %2, %c {product(0, MATRIX, c, c)}
      %4 = tgraph.dot_general %3, %c {product(1, c, c, MATRIX)}
      %5 = tgraph.dot_general %4, %4 {product(0, MATRIX, MATRIX, MATRIX)}
      func.return %3, %5 : {c}, {MATRIX}
    }}""")
    planned = tensorplan.plan(module)
    run = Executable(planned, threads=1)
    Executable(planned, sanitize=True)
    rng = np.random.default_rng(0)
    given = [rng.random(slot.shape).astype(slot.dtype) for slot in run.inputs]
    wanted = run_reference(module, given)

    def check(results: list[Array]) -> None:
        for have, want in zip(results, wanted, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-4)

    check(run(*given))
    (pool,) = run.pools
    run.divide([])
    assert len(run.stages) > 1
    assert len(run.arenas) > 1
    assert pool.bytes < sum(run.arenas)
    for _ in range(2):
        results = [np.empty(0)] * 2
        run.run_at(provided(run, [x.copy() for x in given], results))
        check(results)


_SPANS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 1 << 20)),
    max_size=8,
)


@given(_SPANS, _SPANS, _SPANS)
def test_division_into_stages(
    inputs: list[tuple[int, int, int]],
    results: list[tuple[int, int, int]],
    arenas: list[tuple[int, int, int]],
) -> None:
    """The peak is minimal or nearly minimal, and a division is only made if it lowers
    the peak."""
    count = 10
    spans = [
        *(Span(0, max(a, b) + 1, size) for a, b, size in inputs),
        *(Span(min(a, b), count, size) for a, b, size in results),
        *(Span(min(a, b), max(a, b) + 1, size) for a, b, size in arenas),
    ]

    def taken(cuts: list[int]) -> int:
        return max(
            sum(span.size for span in spans if span.end > start and span.start < end)
            for start, end in pairwise([0, *cuts, count])
        )

    cuts = best_cuts(spans)
    assert cuts == sorted(set(cuts))
    assert len(cuts) < MOST
    assert taken(cuts) <= taken([])
    if cuts:
        assert taken(cuts) < taken([])
    finest = taken(list(range(1, count)))
    assert finest == peak_of_spans(spans)
    if len(cuts) < MOST - 1:
        assert taken(cuts) <= finest + finest // 64


def test_buffers_of_one_stage_share_bytes() -> None:
    """A stage ends where few buffers are live, so most of them share bytes."""

    def arenas(*outputs: Buffer) -> list[int]:
        buffers = [Buffer(str(n), 64, n, n + 2) for n in range(20)]
        groups, _ = by_stages(buffers, outputs, {}, range(21))
        return [len(group) for group in groups]

    assert arenas() == [20]
    argument, result = Buffer("d", 1024, 0, 10), Buffer("r", 1024, 10, 21)
    assert arenas(argument, result) == [9, 1, 10]
    # Memory that is in use throughout leaves nothing to gain.
    assert arenas(Buffer("v", 1 << 20, 0, 21), result) == [20]
