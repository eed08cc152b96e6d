"""Tests programs that get memory for each stage, and return it at the stage's end."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorplan
from tensorplan.runtime.executor import Executable
from tensorplan.runtime.program.stages import MOST, Use, best_cuts
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
    arenas = [np.empty(size + 64, np.uint8) for size in run.arenas]
    first = [address(x) + -address(x) % 64 for x in arenas]
    for stage in run.stages:
        for n in stage.results:
            results[n] = np.full((SIZE, SIZE), np.nan, np.float32)
        used = [inputs[n] for n in stage.inputs]
        used += [results[n] for n in stage.results]
        yield [*map(address, used), *first]
        first = []
        for n in stage.finished:
            inputs[n][...] = np.nan


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


_USES = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 1 << 20)),
    max_size=8,
)


@given(_USES, _USES)
def test_division_into_stages(
    inputs: list[tuple[int, int, int]], results: list[tuple[int, int, int]]
) -> None:
    """The peak is minimal or nearly minimal, and a division is only made if it lowers
    the peak."""
    count = 10
    given, made = (
        [(Use(min(a, b), max(a, b)), size) for a, b, size in uses]
        for uses in (inputs, results)
    )

    def taken(cuts: list[int]) -> int:
        bounds = [0, *cuts, count]
        return max(
            sum(size for use, size in given if use.last >= start)
            + sum(size for use, size in made if use.first < end)
            for start, end in pairwise(bounds)
        )

    cuts = list(best_cuts(count, given, made))
    assert cuts == sorted(set(cuts))
    assert len(cuts) < MOST
    assert taken(cuts) <= taken([])
    if cuts:
        assert taken(cuts) < taken([])
    finest = taken(list(range(1, count)))
    if len(cuts) < MOST - 1:
        assert taken(cuts) <= finest + finest // 64
