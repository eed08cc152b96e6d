"""Tests the bytes of a buffer that `plan-check` assumes a memref to access."""

import pytest
from plan_checks import numbers, refused, unproved, value, with_numbers
from planted import M, arena, copy, free, program, view
from xdsl.ir import SSAValue

from tensorplan.checking.extents import Extent, covered, extent_of, reach_of
from tensorplan.checking.ranges import Range


def extent(
    start: int = 0,
    shape: tuple[int, ...] = (4,),
    strides: tuple[int, ...] = (4,),
    width: int = 4,
) -> Extent:
    return Extent(start, shape, strides, width)


@pytest.mark.parametrize(
    ("given", "least", "most"),
    [
        (extent(), 0, 15),
        (extent(8), 8, 23),
        (extent(12, strides=(-4,)), 0, 15),
        (extent(shape=(2, 3), strides=(64, 8)), 0, 83),
        (extent(64, (2, 3), (-64, 8)), 0, 83),
        (extent(strides=(0,)), 0, 3),
        (extent(width=1, strides=(1,)), 0, 3),
        (extent(width=1, shape=(2,), strides=(1,)), 0, 1),
        (extent(1, width=1, shape=(2,), strides=(-1,)), 0, 1),
        (extent(shape=(), strides=()), 0, 3),
    ],
)
def test_reach(given: Extent, least: int, most: int) -> None:
    assert given.reach == Range(least, most)


def test_bytes() -> None:
    assert extent(shape=(2, 3), strides=(64, 8)).bytes == 24
    assert extent(shape=(2, 0), strides=(64, 8)).bytes == 0
    assert extent(shape=(), strides=()).bytes == 4


LIKE = [
    (extent(), extent(), True),
    (extent(), extent(4), False),
    (extent(), extent(shape=(3,)), False),
    (extent(), extent(strides=(8,)), False),
    (extent(width=2), extent(), False),
    (extent(), extent(shape=(1, 4), strides=(99, 4)), True),
    (extent(shape=(4, 1), strides=(4, 7)), extent(shape=(1, 4), strides=(99, 4)), True),
    (extent(shape=(2, 2), strides=(8, 4)), extent(), False),
    (extent(shape=(2, 2), strides=(8, 4)), extent(shape=(2, 2), strides=(4, 8)), False),
]


@pytest.mark.parametrize(("a", "b", "expected"), LIKE)
def test_extents_that_map_indices_to_the_same_bytes(
    a: Extent, b: Extent, expected: bool
) -> None:
    assert a.is_like(b) is expected
    assert b.is_like(a) is expected


SQUARE = extent(shape=(4, 4), strides=(16, 4))
OVERLAPS = {
    "equal": (extent(), extent(), True),
    "the first after the end": (extent(), extent(16), False),
    "the last byte": (extent(), extent(15, (1,), (4,), 1), True),
    "the byte after": (extent(), extent(16, (1,), (1,), 1), False),
    "even and odd": (extent(strides=(8,)), extent(4, strides=(8,)), False),
    "even and even": (extent(strides=(8,)), extent(8, strides=(8,)), True),
    "every second and every third": (
        extent(strides=(8,)),
        extent(4, shape=(2,), strides=(12,)),
        True,
    ),
    "two columns": (
        extent(0, (4, 1), (16, 4)),
        extent(4, (4, 1), (16, 4)),
        False,
    ),
    "a column and a row": (
        extent(4, (4, 1), (16, 4)),
        extent(16, (1, 4), (16, 4)),
        True,
    ),
    "columns 0 and 1, and 2 and 3": (
        extent(0, (4, 2), (16, 4)),
        extent(8, (4, 2), (16, 4)),
        False,
    ),
    "columns 0 to 2, and 2 and 3": (
        extent(0, (4, 3), (16, 4)),
        extent(8, (4, 2), (16, 4)),
        True,
    ),
    "backwards": (extent(12, strides=(-4,)), extent(), True),
    "backwards up to it": (extent(28, strides=(-4,)), extent(), False),
    "backwards, even and odd": (
        extent(24, strides=(-8,)),
        extent(4, strides=(8,)),
        False,
    ),
    "backwards, even and even": (extent(24, strides=(-8,)), extent(strides=(8,)), True),
    "bytes between elements": (extent(strides=(8,)), extent(4, (3,), (8,), 4), False),
    "a byte of an element": (extent(strides=(8,)), extent(3, (3,), (8,), 1), True),
    "nothing": (extent(shape=(0,)), SQUARE, False),
    "nothing in it": (SQUARE, extent(shape=(0,)), False),
    "an element again and again": (extent(8, (9,), (0,)), extent(), True),
}


@pytest.mark.parametrize(("a", "b", "expected"), OVERLAPS.values(), ids=OVERLAPS)
def test_overlaps(a: Extent, b: Extent, expected: bool) -> None:
    assert a.overlaps(b) is expected
    assert b.overlaps(a) is expected
    below = (a.shape, a.strides, a.width), (b.shape, b.strides, b.width)
    moved = Extent(a.start - 64, *below[0]), Extent(b.start - 64, *below[1])
    assert moved[0].overlaps(moved[1]) is expected


def test_hard_overlap_problem_counts_as_overlap() -> None:
    """Both extents are sums of multiples of 7 strides, and few of their elements are
    close."""
    first = (3301255190, 2455736430, 3303096808, 2076739130, 3248126120, 3462965050)
    second = (3371106758, 2845103140, 3725866984, 3552656620, 3847360140, 3093214018)
    shape = (2, 2, 3, 2, 4, 4, 3)
    a = Extent(0, shape, (*first, 2340124608), 1)
    b = Extent(6 * 10**9 + 1, shape, (*second, 2798993396), 2)
    assert a.overlaps(b)


COVERED = {
    "nothing": ([], 16, 0),
    "all": ([extent()], 16, 16),
    "a part": ([extent(4, (2,))], 16, 8),
    "halves": ([extent(0, (2,)), extent(8, (2,))], 16, 16),
    "one half twice": ([extent(0, (2,)), extent(0, (2,))], 16, 8),
    "even and odd": ([extent(0, (2,), (8,)), extent(4, (2,), (8,))], 16, 16),
    "even twice and more": ([extent(0, (2,), (8,)), extent(0, (3,))], 16, 12),
    "backwards": ([extent(12, strides=(-4,)), extent()], 16, 16),
    "an element too few": ([extent(0, (3,)), extent(4, (2,))], 16, 12),
    "at most, of too few": ([extent(0, (2,)), extent(0, (1,))], 16, 12),
    "single bytes": ([extent(0, (15,), (1,), 1), extent(3, (1,), (1,), 1)], 16, 15),
    "too much to mark": ([extent(), extent()], (1 << 24) + 1, 32),
    "more than that": ([extent(shape=(1 << 23,))], (1 << 24) + 1, (1 << 24) + 1),
}


@pytest.mark.parametrize(("parts", "size", "expected"), COVERED.values(), ids=COVERED)
def test_covered(parts: list[Extent], size: int, expected: int) -> None:
    assert covered(parts, size) == expected


def test_covered_bytes_of_the_largest_marked_size() -> None:
    size = 1 << 24
    parts = [extent(0, (size // 8,)), extent(0, (size // 8,))]
    assert covered(parts, size) == size // 2


EXTENTS = {
    "all": ("memref.cast %x : {M} to {M}", extent(shape=(16,))),
    "a part": (
        "memref.subview %x[4] [8] [1] : {M} to memref<8xf32, strided<[1], offset: 4>>",
        extent(16, (8,)),
    ),
    "backwards": (
        "memref.reinterpret_cast %x to offset: [15], sizes: [16], strides: [-1] : {M} "
        "to memref<16xf32, strided<[-1], offset: 15>>",
        extent(60, (16,), (-4,)),
    ),
    "every second element": (
        "memref.reinterpret_cast %x to offset: [1], sizes: [8], strides: [2] : {M} to "
        "memref<8xf32, strided<[2], offset: 1>>",
        extent(4, (8,), (8,)),
    ),
    "a size not known": ("memref.cast %x : {M} to memref<?xf32>", None),
    "an offset not known": (
        "memref.cast %x : {M} to memref<16xf32, strided<[1], offset: ?>>",
        None,
    ),
    "a stride not known": (
        "memref.cast %x : {M} to memref<16xf32, strided<[?]>>",
        None,
    ),
    "no strides": (
        "memref.cast %x : {M} to memref<16xf32, affine_map<(d0) -> (d0)>>",
        None,
    ),
    "no rank": ("memref.cast %x : {M} to memref<*xf32>", None),
    "no memref": ("arith.constant 1 : index", None),
}


@pytest.mark.parametrize(("made", "expected"), EXTENTS.values(), ids=EXTENTS)
def test_extents(made: str, expected: Extent | None) -> None:
    text = program(f"%v = {made.format(M=M)}")
    assert extent_of(value(text), value(text, "x")) == expected


def test_extent_is_relative_to_its_buffer() -> None:
    later = "memref<8xf32, strided<[1], offset: 4>>"
    last = "memref<4xf32, strided<[1], offset: 8>>"
    text = program(
        f"%w = memref.subview %x[4] [8] [1] : {M} to {later}",
        f"%v = memref.subview %w[4] [4] [1] : {later} to {last}",
    )
    assert extent_of(value(text), value(text, "w")) == extent(16)
    assert extent_of(value(text), value(text, "x")) == extent(32)


def test_extents_in_a_memref_at_unknown_offset() -> None:
    """The extents are relative to the start of the memory."""
    given = "memref<16xf32, strided<[1], offset: ?>>"
    text = program(
        f"%w = memref.cast %x : {M} to {given}",
        "%v = memref.reinterpret_cast %w to offset: [4], sizes: [8], strides: [1] : "
        f"{given} to memref<8xf32, strided<[1], offset: 4>>",
        "%u = memref.reinterpret_cast %w to offset: [4], sizes: [%c8], strides: [1] : "
        f"{given} to {LOOSE}",
    )
    assert extent_of(value(text), value(text, "w")) == extent(16, (8,))
    assert reach_of(value(text, "u"), value(text, "w"), _unknown) == Range(4, 11)


def test_reach_of_a_subview_of_every_second_element() -> None:
    """%q has every second element of %x. The offset and step of the subview vary."""
    second = "memref<7xf32, strided<[2], offset: 2>>"
    first = (
        f"%q = memref.reinterpret_cast %x to offset: [2], sizes: [7], strides: [2] : "
        f"{M} to {second}"
    )
    made = f"memref.subview %q[%u] [2] [%w] : {second} to {LOOSE}"
    assert reach(first, f"%v = {made}") == (2, 16)


LOOSE = "memref<?xf32, strided<[?], offset: ?>>"


def part(at: str = "0", size: str = "8", step: str = "1", of: str = "x") -> str:
    source = M if of == "x" else LOOSE
    return f"memref.subview %{of}[{at}] [{size}] [{step}] : {source} to {LOOSE}"


def again(at: str = "0", size: str = "8", step: str = "1") -> str:
    return (
        f"memref.reinterpret_cast %x to offset: [{at}], sizes: [{size}], strides: "
        f"[{step}] : {M} to {LOOSE}"
    )


# %u is in [0, 3], %w in [1, 4], %k in [-2, 1], and %n is unknown.
REACHES = {
    "static": (part("4"), (4, 11)),
    "an offset": (part("%u"), (0, 10)),
    "another offset": (part("%w"), (1, 11)),
    "in front": (part("%k"), (-2, 8)),
    "an offset not known": (part("%n"), None),
    "a size": (part("4", "%w"), (4, 7)),
    "one element": (part("4", "1"), (4, 4)),
    "a size that may be 0": (part("4", "%u"), (4, 6)),
    "a size not known": (part("4", "%n"), None),
    "no elements": (part("4", "0"), (0, -1)),
    "fewer than none": (part("4", "%neg"), (0, -1)),
    "steps": (part("2", "4", "%w"), (2, 14)),
    "steps of 0": (part("2", "4", "%u"), (2, 11)),
    "steps back": (part("8", "4", "%k"), (2, 11)),
    "steps not known": (part("4", "8", "%n"), None),
    "again": (again("4"), (4, 11)),
    "again at an offset": (again("%u"), (0, 10)),
    "again at an offset not known": (again("%n"), None),
    "again with a size": (again("4", "%w"), (4, 7)),
    "again with a size not known": (again("4", "%n"), None),
    "again with steps": (again("2", "4", "%w"), (2, 14)),
    "again with steps not known": (again("2", "4", "%n"), None),
    "again backwards": (again("9", "%w", "-2"), (3, 9)),
}


@pytest.mark.parametrize(("made", "expected"), REACHES.values(), ids=REACHES)
def test_reaches(made: str, expected: tuple[int, int] | None) -> None:
    assert reach(f"%v = {made}") == expected
    cast = f"%v = memref.cast %s : {LOOSE} to memref<?xf32, strided<[1], offset: ?>>"
    assert reach(f"%s = {made}\n{cast}") == expected


def test_reaches_of_nested_subviews() -> None:
    first = f"%q = {part('2', '6', '2')}"
    assert reach(f"{first}\n%v = {part('1', '4', '1', 'q')}") == (4, 10)
    assert reach(f"{first}\n%v = {part('1', '2', '2', 'q')}") == (4, 8)
    assert reach(f"{first}\n%v = {part('%w', '2', '%w', 'q')}") == (4, 18)
    unknown = f"%q = {part('%n', '6', '2')}"
    assert reach(f"{unknown}\n%v = {part('1', '4', '1', 'q')}") is None


def test_reach_in_two_dimensions() -> None:
    type = "memref<4x4xf32, strided<[?, ?], offset: ?>>"
    made = (
        "%v = memref.reinterpret_cast %x to offset: [%u], sizes: [4, 4], strides: "
        f"[%w, 1] : {M} to {type}"
    )
    assert reach(made) == (0, 18)


def test_reach_is_relative_to_its_buffer() -> None:
    later = "memref<8xf32, strided<[1], offset: 4>>"
    text = with_numbers(
        f"%b = memref.subview %x[4] [8] [1] : {M} to {later}",
        "%v = memref.reinterpret_cast %b to offset: [%w], sizes: [2], strides: [1] : "
        f"{later} to {LOOSE}",
    )
    assert reach_of(value(text), value(text, "b"), _unknown) == Range(-3, 1)


def test_reach_of_an_unknown_memref_is_unknown() -> None:
    assert reach(f'%v = "test.view"(%x) : ({M}) -> {LOOSE}') is None


def reach(*made: str) -> Range | None:
    text = with_numbers(*made)
    return reach_of(value(text), value(text, "x"), _unknown)


def _unknown(_: SSAValue) -> None:
    return None


def seen(made: str, *before: str) -> str:
    body = numbers(*before, f"%v = {made.replace('%x', '%a')}")
    return program(arena(), view("a"), copy("x", "a"), *body, copy("a", "y"), free())


def test_views_must_lie_within_their_buffer() -> None:
    assert unproved(seen(part("%u", "13"))) == []
    refused(seen(part("%u", "14")), "accesses elements 0 to 16, expected 0 to 15")
    refused(seen(part("%k")), "accesses elements -2 to 8, expected 0 to 15")
    assert unproved(seen(part("99", "0"))) == []
    for made, name in (part("%n"), "subview"), (again("%n"), "reinterpret_cast"):
        told = f"views that may extend beyond their buffer: 1 (memref.{name})"
        assert unproved(seen(made)) == [told]


UNSURE = ["views that may extend beyond their buffer: 1 (memref.subview)"]


def test_offset_and_size_computed_from_one_counter() -> None:
    """The last tile is smaller. Taken as independent, offset and size would reach too
    far."""
    size = "%all = arith.constant 16 : index", "%r = arith.subi %all, %u : index"
    assert unproved(seen(part("%u", "%r"), *size)) == UNSURE
    smaller = "%s = arith.minsi %r, %w : index"
    assert unproved(seen(part("%u", "%s"), *size, smaller)) == []
    refused(seen(part("1", "%r"), *size), "accesses elements 1 to 16, expected 0 to")


def test_offset_computed_from_two_counters() -> None:
    inner = "scf.for %j = %u to %c4 step %c1 {", "%d = arith.subi %j, %u : index"
    assert unproved(seen(part("%d") + "\n}", *inner)) == UNSURE
    inner = "scf.for %j = %c0 to %c4 step %c1 {", "%d = arith.subi %j, %u : index"
    refused(
        seen(part("%d") + "\n}", *inner), "accesses elements -3 to 10, expected 0 to 15"
    )


@pytest.mark.parametrize(
    "made",
    [
        f"memref.cast %a : {M} to memref<*xf32>",
        f'"test.other"(%a) : ({M}) -> memref<99xf32>',
    ],
    ids=["no rank", "no view"],
)
def test_unranked_and_unknown_memrefs_have_no_reach(made: str) -> None:
    text = program(arena(), view("a"), copy("x", "a"), f"%v = {made}", free())
    assert not any("reach" in told for told in unproved(text))
