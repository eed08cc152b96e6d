"""Tests plans with symbolic sizes: proved for all sizes, reported, or refused.

Each body is placed in a function with the sizes n and m. %na is n * 64, the number of
bytes of %x; %ma is m * 64, that of %y. Typical sizes are 64.
"""

import pytest
from unchanged_ir import parsed
from xdsl.dialects.builtin import ModuleOp

from tensorplan.checking.plan_check import check_plan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.support.remarks import REMARKS

ROWS, FLAT, FIXED = "memref<?x16xf32>", "memref<?xf32>", "memref<16xf32>"
ARENA = "memref<?xi8>"
RESULT = "{tgraph.result = 7 : i32}"
NUMBERS = (0, 1, 4, 12, 32, 63, 64, 128, 8192)


def module(*lines: str, bounds: str = "") -> ModuleOp:
    attributes = f" attributes {{tgraph.bounds = {{{bounds}}}}}" if bounds else ""
    arguments = ", ".join(
        f"%{name}: {type} {{tgraph.dims = #tgraph.dims<{size}>{more}}}"
        for name, type, size, more in (
            ("x", ROWS, "n", ""),
            ("y", ROWS, "m", ""),
            ("z", FLAT, "n", ""),
            ("r", ROWS, "n", ""),
        )
    )
    arenas = [line.split() for line in lines if "memref.alloc" in line]
    text = [
        f"func.func @main({arguments}, %s: {FIXED} {RESULT}, %given: index)"
        f"{attributes} {{",
        *(f"%c{n} = arith.constant {n} : index" for n in NUMBERS),
        f"%n = memref.dim %x, %c0 : {ROWS}",
        f"%m = memref.dim %y, %c0 : {ROWS}",
        product("na", "n", "c64"),
        product("ma", "m", "c64"),
        *lines,
        fill("s", FIXED),
        *(f"memref.dealloc {words[0]} : {words[-1]}" for words in arenas),
        "func.return\n}",
    ]
    return parsed("\n".join(text))


def binary(op: str, name: str, a: str, b: str) -> str:
    return f"%{name} = arith.{op} %{a}, %{b} : index"


def product(name: str, a: str, b: str) -> str:
    return binary("muli", name, a, b)


def plus(name: str, a: str, b: str) -> str:
    return binary("addi", name, a, b)


def larger(name: str, a: str, b: str) -> str:
    return binary("maxsi", name, a, b)


def arena(size: str, alignment: int = 64, name: str = "arena") -> str:
    marks = f"{{alignment = {alignment} : i64, tgraph.arena}}"
    return f"%{name} = memref.alloc(%{size}) {marks} : {ARENA}"


UNALIGNED = f"%arena = memref.alloc(%top) {{tgraph.arena}} : {ARENA}"


def view(name: str, offset: str, size: str = "n", of: str = "arena") -> str:
    """A view of `size` rows, or of 16 elements if `size` is empty."""
    type = ROWS if size else FIXED
    given = f"%{size}" if size else ""
    return f"%{name} = memref.view %{of}[%{offset}][{given}] : {ARENA} to {type}"


def fill(name: str, type: str = ROWS, stream: int | None = None) -> str:
    on = "" if stream is None else f" {{tgraph.stream = {stream} : i32}}"
    return f"tgraph.constant<0.0 : f32> outs(%{name}){on} : {type}"


def read(*names: str, type: str = ROWS) -> list[str]:
    return [f'"memref.copy"(%{n}, %r) : ({type}, {ROWS}) -> ()' for n in names]


def both(a: str, b: str) -> list[str]:
    """Lines that write both buffers, then read both."""
    return [fill(a), fill(b), *read(a, b)]


TWO = [product("two", "na", "c4"), arena("two"), view("a", "c0")]
"""An arena for four buffers of n rows, and one buffer."""

PROVED = {
    "one above the other": [*TWO, view("b", "na"), *both("a", "b")],
    "the other one above": [*TWO, view("b", "na"), *both("b", "a")],
    "three": [
        *(*TWO, view("b", "na"), plus("high", "na", "na"), view("c", "high")),
        *(*both("a", "b"), *both("b", "c"), *both("c", "a")),
    ],
    "three, the highest first": [
        *(product("top", "na", "c4"), arena("top"), plus("high", "na", "na")),
        *(view("c", "high"), view("b", "na"), view("a", "c0")),
        *(*both("a", "b"), *both("b", "c"), *both("c", "a")),
    ],
    "as large as what is highest": [
        *(plus("top", "na", "ma"), arena("top")),
        *(view("a", "c0"), view("b", "na", "m"), *both("a", "b")),
    ],
    "above the larger of two": [
        *(larger("high", "na", "ma"), plus("top", "high", "na"), arena("top")),
        *(view("a", "c0"), view("b", "c0", "m"), view("c", "high")),
        *(*both("a", "c"), *both("b", "c")),
    ],
    "the larger of two is as large": [
        *(larger("top", "na", "ma"), arena("top")),
        *(view("a", "c0"), view("b", "c0", "m"), fill("a"), *read("a")),
        *(fill("b"), *read("b")),
    ],
    "above the largest of three": [
        *(plus("twice", "na", "na"), larger("one", "na", "ma")),
        *(larger("high", "one", "twice"), plus("top", "high", "na"), arena("top")),
        *(view("a", "c0"), view("b", "c0", "m"), view("c", "na"), view("d", "high")),
        *(*both("a", "d"), *both("b", "d"), *both("c", "d")),
    ],
    "sized by an argument": [
        *(
            larger("size", "given", "c1"),
            product("bytes", "size", "c64"),
            plus("top", "bytes", "na"),
        ),
        *(arena("top"), view("a", "c0", "given"), view("b", "bytes"), *both("a", "b")),
    ],
    "a cast of what has any size": [
        *(*TWO, fill("a"), f"%v = memref.cast %a : {ROWS} to memref<?x?xf32>"),
        *read("v", type="memref<?x?xf32>"),
    ],
    "two after a maximum": [
        *(larger("high", "na", "ma"), plus("next", "high", "na")),
        *(plus("top", "next", "na"), arena("top"), view("a", "c0")),
        *(view("b", "high"), view("c", "next"), *both("a", "b"), *both("a", "c")),
    ],
    "twice the larger of two": [
        *(larger("one", "na", "ma"), product("high", "one", "c4")),
        *(plus("top", "high", "na"), arena("top"), view("b", "high"), fill("b")),
    ],
    "room to spare": [
        *(plus("top", "na", "c12"), arena("top"), view("a", "c0"), fill("a")),
    ],
    "above one of a fixed size": [
        *(plus("top", "na", "c64"), arena("top"), view("a", "c0", "")),
        *(view("b", "c64"), fill("a", FIXED), fill("b"), *read("a", type=FIXED)),
    ],
    "above the larger of a fixed size and another": [
        *(larger("high", "na", "c8192"), plus("top", "high", "na"), arena("top")),
        *(view("b", "c0"), view("a", "c64", ""), view("c", "high")),
        *(*both("b", "c"), fill("a", FIXED), fill("c"), *read("a", type=FIXED)),
    ],
    "rounded up": [
        *(product("bytes", "n", "c4"), plus("more", "bytes", "c63")),
        *(binary("floordivsi", "blocks", "more", "c64"),),
        *(product("high", "blocks", "c64"), plus("top", "high", "na"), arena("top")),
        f"%a = memref.view %arena[%c0][%n] : {ARENA} to {FLAT}",
        *(view("b", "high"), fill("a", FLAT), fill("b"), *read("a", type=FLAT)),
    ],
    "two arenas": [
        *(arena("na"), arena("na", name="other"), view("a", "c0")),
        *(view("b", "c0", of="other"), *both("a", "b")),
    ],
    "no alignment": [
        *(product("top", "n", "c128"), UNALIGNED),
        *(view("a", "n"), fill("a")),
    ],
    "one after the other": [
        *(*TWO, view("b", "c0"), fill("a"), *read("a"), fill("b"), *read("b")),
    ],
    "beside a buffer in a result": [
        *(*TWO, view("b", "na")),
        f"%v = memref.reinterpret_cast %s to offset: [0], sizes: [16], strides: [1] "
        f"{{tgraph.buffer}} : {FIXED} to {FIXED}",
        *(fill("v", FIXED), fill("s", FIXED), *both("a", "b")),
    ],
    "two empty ones": [
        *(*TWO, view("b", "na", "c0"), view("c", "na", "c0"), view("d", "na")),
        *(*both("a", "d"), *both("b", "c")),
    ],
}


def remarks(ir: ModuleOp, caplog: pytest.LogCaptureFixture) -> str:
    with caplog.at_level("INFO", REMARKS.name):
        check_plan(ir)
    return caplog.text


@pytest.mark.parametrize("lines", PROVED.values(), ids=PROVED)
def test_proved(lines: list[str], caplog: pytest.LogCaptureFixture) -> None:
    assert remarks(module(*lines), caplog) == ""


CHECKED = {
    "at a place that does not grow": (
        [
            *(plus("top", "na", "c8192"), arena("top"), view("a", "c0")),
            *(view("b", "c8192"), *both("a", "b")),
        ],
        "memref.copy uses buffer %a, whose bytes may now belong to buffer %b",
    ),
    "above the smaller of two": (
        [
            *(binary("minsi", "high", "na", "ma"), plus("top", "high", "na")),
            UNALIGNED,
            *(view("a", "c0"), view("b", "high"), *both("a", "b")),
        ],
        "memref.copy uses buffer %a, whose bytes may now belong to buffer %b",
    ),
    "above another": (
        [*TWO, product("high", "m", "c128"), view("b", "high"), *both("a", "b")],
        "buffer %b: it may not lie within its arena",
    ),
    "above the larger of two others": (
        [
            *(plus("twice", "ma", "ma"), larger("high", "ma", "twice")),
            *(plus("more", "high", "na"), plus("top", "more", "na"), arena("top")),
            *(view("a", "c0"), view("b", "high"), *both("a", "b")),
        ],
        "memref.copy uses buffer %a, whose bytes may now belong to buffer %b",
    ),
    "only beside what is between": (
        [
            *(plus("top", "na", "na"), plus("more", "top", "ma"), arena("more")),
            *(view("a", "c0"), view("b", "c0", "m"), view("c", "na")),
            *(*both("a", "c"), *both("b", "c")),
        ],
        "memref.copy uses buffer %b, whose bytes may now belong to buffer %c",
    ),
    "as large as some": (
        [arena("c8192"), view("a", "c0"), fill("a")],
        "buffer %a: it may not lie within its arena",
    ),
    "of no name": (
        [arena("c8192"), view("9", "c0"), fill("9")],
        "buffer %?: it may not lie within its arena",
    ),
    "as large as another": (
        [arena("na"), view("a", "c0", "m"), fill("a")],
        "buffer %a: it may not lie within its arena",
    ),
    "one byte too few": (
        [
            *(binary("subi", "less", "na", "c4"), larger("top", "less", "c8192")),
            *(arena("top"), view("a", "c0"), fill("a")),
        ],
        "buffer %a: it may not lie within its arena",
    ),
    "a multiple for some": (
        [*TWO, product("high", "n", "c4"), view("b", "high"), fill("b")],
        "buffer %b: its offset may not be a multiple of 64",
    ),
    "a multiple, if it is the larger one": (
        [
            *(product("less", "n", "c4"), larger("high", "less", "na"), *TWO),
            *(view("b", "high"), *both("a", "b")),
        ],
        "buffer %b: its offset may not be a multiple of 64",
    ),
    "a multiple, if the larger one is the largest": (
        [
            *(product("less", "n", "c4"), larger("one", "less", "ma")),
            *(larger("high", "one", "na"), *TWO, view("b", "high"), *both("a", "b")),
        ],
        "buffer %b: its offset may not be a multiple of 64",
    ),
    "a multiple and more": (
        [
            *(product("less", "n", "c4"), larger("one", "na", "ma")),
            *(plus("high", "one", "less"), plus("top", "high", "na")),
            *(arena("top"), view("b", "high"), fill("b")),
        ],
        "buffer %b: its offset may not be a multiple of 64",
    ),
    "below 0 for some": (
        [*TWO, binary("subi", "low", "na", "c128"), view("b", "low"), fill("b")],
        "buffer %b: its offset may be below 0",
    ),
    "streams": (
        [*TWO, view("b", "na"), fill("a"), fill("b", stream=1), *read("a")],
        "buffer %a: its operations have streams",
    ),
}


@pytest.mark.parametrize(("lines", "reason"), CHECKED.values(), ids=CHECKED)
def test_unproved_plans_are_checked_at_run_time(
    lines: list[str], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    remarks(module(*lines), caplog)
    (message,) = caplog.messages
    head = (
        "remark: not proved for all sizes, so the runtime checks the sizes of each call"
    )
    place, found, why = message.partition(f": {head}: ")
    assert place.startswith("test.mlir:")
    assert (found, why) == (f": {head}: ", reason)


@pytest.mark.parametrize(
    "lines",
    [
        [
            *TWO,
            fill("a"),
            f"%v = memref.subview %a[100, 0] [1, 16] [1, 1] : {ROWS} to "
            f"memref<1x16xf32, strided<[16, 1], offset: 1600>>",
        ],
        [
            *(arena("c64"), view("a", "c0", ""), fill("a", FIXED)),
            f"%v = memref.subview %a[0] [%n] [1] : {FIXED} to "
            f"memref<?xf32, strided<[1]>>",
        ],
    ],
    ids=["beyond the typical size", "of a typical size"],
)
@pytest.mark.parametrize("bounds", ["", "m = 64, n = 64"])
def test_view_within_its_buffer_only_for_some_sizes(
    lines: list[str], bounds: str, caplog: pytest.LogCaptureFixture
) -> None:
    ir = module(*lines, *read("x"), bounds=bounds)
    assert "views that may extend beyond their buffer: 1" in remarks(ir, caplog)


def test_plan_is_returned_for_typical_sizes() -> None:
    (pool,) = check_plan(module(*TWO, view("b", "na"), *both("a", "b")))
    assert pool.size == 4 * 64 * 64
    assert [(b.offset, b.size) for b in pool.buffers] == [(0, 4096), (4096, 4096)]


BOUNDED = "memref<1024xi8>"


def bounded(size: str, offset: str = "c0", type: str = ROWS) -> list[str]:
    return [
        f"%arena = memref.alloc() {{alignment = 64 : i64, tgraph.arena}} : {BOUNDED}",
        f"%a = memref.view %arena[%{offset}][%{size}] : {BOUNDED} to {type}",
    ]


def test_bounded_plan_is_returned_for_the_largest_sizes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines = [larger("k", "n", "m"), *bounded("k", "c128"), fill("a", stream=0)]
    with caplog.at_level("INFO", REMARKS.name):
        (pool,) = check_plan(module(*lines, bounds="n = 9 : i64, m = 14 : i64"))
    assert [(b.offset, b.size) for b in pool.buffers] == [(128, 14 * 64)]
    assert not caplog.text


LESSER = [binary("divui", "u", "n", "c4"), binary("minui", "k", "u", "c12")]
"""Lines that define %k as the minimum of 12 and an unknown number."""


@pytest.mark.parametrize("bounds", ["", "n = 15 : i64, m = 15 : i64"])
def test_minimum_with_a_constant_is_bounded_by_it(bounds: str) -> None:
    lines = [*LESSER, *bounded("k", "c128"), fill("a")]
    (pool,) = check_plan(module(*lines, bounds=bounds))
    assert [(b.offset, b.size) for b in pool.buffers] == [(128, 12 * 64)]


def test_static_sizes_need_no_proof(
    caplog: pytest.LogCaptureFixture,
) -> None:
    arena = (
        f"%arena = memref.alloc() {{alignment = 64 : i64, tgraph.arena}} : {BOUNDED}"
    )
    view = f"%a = memref.view %arena[%c128][] : {BOUNDED} to {FIXED}"
    ir = module(arena, view, fill("a", FIXED, stream=0))
    assert not remarks(ir, caplog)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (bounded("n", "c128"), r"buffer %a lies in bytes \[128, 1088\), expected wi"),
        (
            [binary("divui", "u", "n", "c4"), *bounded("u")],
            r"memref.view: the size of memref<\?x16xf32> is unknown",
        ),
        (bounded("m"), r"memref.view: the size of memref<\?x16xf32> is unknown"),
        (
            [LESSER[0], binary("minsi", "k", "u", "c32"), *bounded("k")],
            r"buffer %a lies in bytes \[0, 2048\), expected wi",
        ),
        (bounded("n", "n"), "the offset of buffer %a is unknown"),
    ],
)
def test_refused_for_bounded_sizes(lines: list[str], message: str) -> None:
    with pytest.raises(LocatedError, match=rf"test.mlir:\d+:\d+: {message}"):
        check_plan(module(*lines, bounds="n = 15 : i64"))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [*TWO, binary("divui", "u", "na", "c4"), view("b", "u")],
            "the offset of buffer %b is unknown",
        ),
        (
            [*TWO, binary("divui", "u", "n", "n"), view("b", "na", "u")],
            r"memref.view: the size of memref<\?x16xf32> is unknown",
        ),
        (
            [binary("divui", "u", "n", "c4"), arena("u"), view("b", "c0")],
            r"memref.alloc: the size of memref<\?xi8> is unknown",
        ),
        (
            [arena("na"), view("a", "c0", "given"), fill("a")],
            "not proved for all sizes: buffer %a: it may not lie within its arena",
        ),
        (
            [product("bytes", "given", "c64"), arena("bytes"), view("b", "c0")],
            r"memref.alloc: the size of memref<\?xi8> is unknown",
        ),
        (
            [
                *(larger("size", "given", "c1"), binary("subi", "less", "size", "c1")),
                *(product("bytes", "less", "c64"), arena("bytes")),
                view("b", "c0", "given"),
            ],
            r"buffer %b lies in bytes \[0, 4096\), expected within the arena's",
        ),
        (
            [*TWO, view("b", "c64"), *both("a", "b")],
            r"uses buffer %a, whose bytes \[64, 4096\) now belong to buffer %b",
        ),
    ],
)
def test_refused_for_typical_sizes(lines: list[str], message: str) -> None:
    with pytest.raises(LocatedError, match=message):
        check_plan(module(*lines))
