"""Tests properties of buffers and problems against their simplest definitions."""

import re
from dataclasses import replace
from math import gcd
from random import Random
from time import process_time

import pytest

from tensorplan.planning.problem import Buffer, Problem, peak_of, round_up
from tensorplan.planning.registry import solve


def random_buffer(random: Random, name: str, gaps: bool) -> Buffer:
    cuts = sorted(random.sample(range(14), 2 * random.randint(1, 3 if gaps else 1)))
    inner = list(zip(cuts[1:-1:2], cuts[2:-1:2], strict=True))
    alignment = random.choice((4, 4, 6, 12))
    offset = random.choice((None, None, alignment * random.randrange(3)))
    size = random.randrange(30)
    return Buffer(name, size, cuts[0], cuts[-1], alignment, inner, offset)


def steps(buffer: Buffer) -> set[int]:
    return {step for start, end in buffer.live for step in range(start, end)}


def bound(buffers: list[Buffer], unit: int) -> int:
    """The largest sum of live bytes. All sizes except the topmost are rounded up to
    multiples of `unit`."""
    found = max((b.offset + b.size for b in buffers if b.offset is not None), default=0)
    for step in range(14):
        live = [b.size for b in buffers if step in steps(b)]
        if live:
            slack = max(round_up(size, unit) - size for size in live)
            found = max(found, sum(round_up(s, unit) for s in live) - slack)
    return found


@pytest.mark.parametrize("gaps", [False, True])
def test_overlaps_and_bounds(gaps: bool) -> None:
    random = Random(gaps)
    for _ in range(300):
        buffers = [random_buffer(random, f"b{n}", gaps) for n in range(4)]
        a, b, *_ = buffers
        assert a.overlaps(b) == b.overlaps(a) == bool(steps(a) & steps(b))
        alignments = [buffer.alignment for buffer in buffers]
        assert Problem(buffers).lower_bound == max(
            bound([x for x in buffers if x.alignment % unit == 0], unit)
            for unit in {gcd(*alignments), *alignments}
        )


def test_live() -> None:
    assert list(Buffer("a", 1, 2, 9).live) == [(2, 9)]
    gaps = ((3, 4), (6, 8))
    assert list(Buffer("a", 1, 2, 9, gaps=gaps).live) == [(2, 3), (4, 6), (8, 9)]


def test_pools() -> None:
    a, b, c = (
        Buffer("a", 5, 0, 2, 4, pool="p"),
        Buffer("b", 3, 0, 2, 4),
        Buffer("c", 3, 1, 2, 4, pool="p"),
    )
    problem = Problem([a, b, c], 99)
    assert problem.by_pool == {"p": Problem([a, c], 99), "": Problem([b], 99)}
    assert problem.total == 8 + 4 + 4
    assert problem.lower_bound == (8 + 4 - 3) + (4 - 1)
    for nothing in ([], [Buffer("a", 0, 0, 1)]):
        assert (Problem(nothing).total, Problem(nothing).lower_bound) == (0, 0)


def test_peak_and_rounding() -> None:
    buffers = [Buffer("a", 5, 0, 2), Buffer("b", 3, 0, 2)]
    assert peak_of(buffers, [4, 7]) == 10
    assert peak_of([], []) == 0
    assert [round_up(n, 4) for n in (0, 1, 4, 5)] == [0, 4, 4, 8]


REFUSED = {
    "size is -1, expected 0 or more": {"size": -1},
    "live range is [3, 3), expected an end after the start": {"start": 3, "end": 3},
    "alignment is 0, expected 1 or more": {"alignment": 0},
    "offset is -4, expected a multiple of 4, 0 or more": {"alignment": 4, "offset": -4},
    "offset is 6, expected a multiple of 4, 0 or more": {"alignment": 4, "offset": 6},
    "gap is [0, 3), expected within [0, 9)": {"gaps": [(0, 3)]},
    "gap is [3, 3), expected within [0, 9)": {"gaps": [(3, 3)]},
    "gap is [3, 9), expected within [0, 9)": {"gaps": [(3, 9)]},
    "gap is [4, 5), expected within [4, 9)": {"gaps": [(3, 4), (4, 5)]},
}


@pytest.mark.parametrize(("message", "values"), REFUSED.items(), ids=REFUSED)
def test_refused(message: str, values: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"^buffer b: {re.escape(message)}"):
        replace(Buffer("b", 8, 0, 9), **values)


def test_accepted() -> None:
    Buffer("b", 0, 3, 4)
    Buffer("b", 8, 0, 9, 4, [(1, 2), (3, 8)], 0)
    Buffer("b", 8, 0, 9, 4, offset=8)


def test_lower_bound_includes_padding() -> None:
    """A search would need long to prove the bound. `c` fits between the other two
    buffers."""
    a, b, c = Buffer("a", 40, 0, 2, 64), Buffer("b", 4, 0, 2, 64), Buffer("c", 4, 0, 2)
    assert Problem([a, b, c]).lower_bound == 64 + 4
    plan = solve(Problem([a, b, c]), "auto")
    assert plan.optimal
    assert plan.peak == 64 + 4


def test_lower_bound_of_many_alignments_is_fast() -> None:
    buffers = [Buffer(f"b{n}", n, 0, 1 + n % 7, 2 * n + 3) for n in range(8_000)]
    start = process_time()
    assert Problem(buffers).lower_bound >= sum(range(8_000))
    assert process_time() - start < 1.5
