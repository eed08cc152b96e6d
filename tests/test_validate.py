"""Tests the plans that `validate` accepts and refuses, for each reason."""

from random import Random

import pytest

from tensorplan.planning import Buffer, Problem, validate


def reason(buffers: list[Buffer], *offsets: int) -> str | None:
    return validate(Problem(buffers), offsets)


A = Buffer("a", 8, 0, 2)
B = Buffer("b", 8, 1, 3)


def test_sound() -> None:
    assert reason([A, B], 0, 8) is None
    assert reason([A, B], 8, 0) is None
    assert reason([A, Buffer("b", 8, 2, 3)], 0, 0) is None
    assert reason([Buffer("a", 8, 3, 4), Buffer("b", 8, 2, 3)], 0, 0) is None
    assert reason([]) is None


def test_number_of_offsets() -> None:
    assert reason([A, B], 0) == "there are 1 offsets, expected 2"
    assert reason([A], 0, 8) == "there are 2 offsets, expected 1"


def test_offsets() -> None:
    assert reason([A, B], 0, -8) == "buffer b has offset -8, expected 0 or more"
    assert reason([Buffer("a", 8, 0, 2, 4)], 4) is None
    assert reason([Buffer("a", 8, 0, 2, 4)], 6) == (
        "buffer a has offset 6, expected a multiple of 4"
    )
    given = Buffer("a", 8, 0, 2, offset=16)
    assert reason([given], 16) is None
    assert reason([given], 0) == "buffer a has offset 0, expected 16"
    at_0 = Buffer("a", 8, 0, 2, offset=0)
    assert reason([at_0], 8) == "buffer a has offset 8, expected 0"


def test_shared_byte() -> None:
    shared = "buffers a and b are both live in step 1 and share byte 7"
    assert reason([A, B], 0, 7) == shared
    assert reason([A, B], 0, 0) == (
        "buffers a and b are both live in step 1 and share byte 0"
    )
    # The buffer at the lower offset starts to live later.
    assert reason([Buffer("a", 8, 0, 9), Buffer("b", 8, 1, 3)], 7, 0) == (
        "buffers b and a are both live in step 1 and share byte 7"
    )


def test_neighbors_among_many_buffers() -> None:
    """Only the neighbors on both sides matter."""
    row = [Buffer(f"r{n}", 8, 0, 9) for n in range(4)]
    assert reason([*row, Buffer("b", 8, 1, 2)], 0, 8, 24, 32, 16) is None
    assert reason([*row, Buffer("b", 9, 1, 2)], 0, 8, 24, 32, 16) == (
        "buffers b and r2 are both live in step 1 and share byte 24"
    )
    assert reason([*row, Buffer("b", 8, 1, 2)], 0, 9, 24, 32, 16) == (
        "buffers r1 and b are both live in step 1 and share byte 16"
    )


@pytest.mark.parametrize("waits", [0, 999, 1000, 1001, 1999, 2000, 2499])
def test_neighbors_among_thousands_of_buffers(waits: int) -> None:
    """Neighbors are found at any position among all live buffers."""
    buffers = [Buffer(str(n), 8, int(n == waits), 3) for n in range(2500)]
    offsets = [8 * n for n in range(2500)]
    assert reason(buffers, *offsets) is None
    if waits:
        assert reason(buffers, *offsets[:waits], 8 * waits - 1, *offsets[waits + 1 :])
    if waits < 2499:
        assert reason(buffers, *offsets[:waits], 8 * waits + 1, *offsets[waits + 1 :])


def test_first_and_last_of_thousands_of_buffers() -> None:
    """Of three thousand buffers, only the first and the last are live together."""
    buffers = [
        Buffer(str(n), 8, n % 2999 and 1, 1 + (n % 2999 and 1)) for n in range(3000)
    ]
    offsets = [8 * n for n in range(3000)]
    assert reason(buffers, *offsets) is None
    large = Buffer("0", 8 * 2999 + 1, 0, 1)
    assert reason([large, *buffers[1:]], *offsets) == (
        "buffers 0 and 2999 are both live in step 0 and share byte 23992"
    )


def test_pools_and_empty_buffers_share() -> None:
    assert reason([A, Buffer("b", 8, 1, 3, pool="other")], 0, 0) is None
    assert reason([A, Buffer("b", 0, 1, 3)], 0, 4) is None
    assert reason([Buffer("b", 0, 1, 3), A], 4, 0) is None


def test_gaps() -> None:
    gapped = Buffer("a", 8, 0, 9, gaps=((3, 6),))
    assert reason([gapped, Buffer("b", 8, 3, 6)], 0, 0) is None
    for start, end, step in ((2, 4, 2), (5, 7, 6), (2, 7, 2)):
        assert reason([gapped, Buffer("b", 8, start, end)], 0, 4) == (
            f"buffers a and b are both live in step {step} and share byte 4"
        )


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_comparing_every_pair(seed: int) -> None:
    random = Random(seed)
    for _ in range(20):
        buffers = [
            Buffer(f"b{n}", random.randint(0, 4), s := random.randint(0, 6), s + 2)
            for n in range(random.randint(1, 6))
        ]
        offsets = [random.randint(0, 9) for _ in buffers]
        clash = any(
            a.start < b.end
            and b.start < a.end
            and max(x, y) < min(x + a.size, y + b.size)
            for i, (a, x) in enumerate(zip(buffers, offsets, strict=True))
            for b, y in list(zip(buffers, offsets, strict=True))[i + 1 :]
        )
        assert (validate(Problem(buffers), offsets) is not None) == clash
