"""Tests which memories `plan-check` treats as arenas, and which views as buffers in
them."""

from collections.abc import Callable

import pytest
from plan_checks import placements, pools, refused, remarks, unproved
from planted import (
    I8,
    M,
    arena,
    branch,
    copy,
    each,
    free,
    lines,
    loop,
    parallel,
    program,
    view,
)

LOOSE = "memref<?xi8>"
POOL = f'memref.global "private" @pool : {I8} = uninitialized'
HEAD = "%c0 = arith.constant 0 : index\n%c64 = arith.constant 64 : index\n"


def pair(at: str, of: str = "arena", type: str = I8) -> str:
    """Lines with buffers %a and %b. Both are written, and then %a is read."""
    return lines(
        *(view("a", of=of, arena=type), view("b", at, of=of, arena=type)),
        *(copy("x", "a"), copy("x", "b"), copy("a", "y")),
    )


def called(at: str) -> str:
    body = f"func.func @g(%arena: {I8}, %x: {M}, %y: {M}) {{\n{HEAD}"
    return program(beside=body + lines(pair(at), "return\n}"))


def of_arena(at: str, *around: str) -> str:
    """A program with the arena, %a and %b inside of other operations."""
    first, *last = around
    return program(first, arena(), pair(at), free(), *last)


ARENAS: dict[str, Callable[[str], str]] = {
    "in the entry block": lambda at: of_arena(at, ""),
    "in a loop": lambda at: program(loop(arena(), pair(at), free())),
    "in a loop in a loop": lambda at: program(
        loop(loop(arena(), pair(at), free(), index="u"))
    ),
    "in a branch": lambda at: program(branch([arena(), pair(at), free()])),
    "in the other branch": lambda at: program(
        branch([], [arena(), pair(at), free()]),
    ),
    "in a block": lambda at: of_arena(at, "cf.br ^next\n^next:"),
    "in a parallel loop": lambda at: program(
        parallel(arena(), pair(at), free(), to="%c2")
    ),
    "in a region": lambda at: of_arena(at, "scf.execute_region {", "scf.yield", "}"),
    "in an affine loop": lambda at: of_arena(at, "affine.for %i = 0 to 2 {", "}"),
    "an argument": called,
    "a global": lambda at: program(
        f"%arena = memref.get_global @pool : {I8}", pair(at), beside=POOL
    ),
    "a global under two names": lambda at: program(
        f"%arena = memref.get_global @pool : {I8}",
        f"%other = memref.get_global @pool : {I8}",
        *(view("a"), view("b", at, of="other")),
        *(copy("x", "a"), copy("x", "b"), copy("a", "y")),
        beside=POOL,
    ),
    "on the stack": lambda at: program(
        f"%arena = memref.alloca() {{alignment = 64 : i64}} : {I8}", pair(at)
    ),
    "given by another operation": lambda at: program(
        f'%arena = "test.alloc"() : () -> {I8}', pair(at)
    ),
    "after a cast": lambda at: program(
        arena(),
        f"%cast = memref.cast %arena : {I8} to {LOOSE}",
        *(pair(at, "cast", LOOSE), free()),
    ),
    "after two casts": lambda at: program(
        *(arena(), f"%k = memref.cast %arena : {I8} to {LOOSE}"),
        f"%cast = memref.cast %k : {LOOSE} to {I8}",
        *(pair(at, "cast"), free()),
    ),
    "after an assumption": lambda at: program(
        *(arena(), f"%same = memref.assume_alignment %arena, 64 : {I8}"),
        *(pair(at, "same"), free()),
    ),
    "in a memory space": lambda at: program(
        arena(),
        f"%far = memref.memory_space_cast %arena : {I8} to memref<256xi8, 1>",
        "%a = memref.view %far[%c0][] : memref<256xi8, 1> to memref<16xf32, 1>",
        *(view("b", at), copy("x", "a", M, "memref<16xf32, 1>"), copy("x", "b")),
        *(copy("a", "y", "memref<16xf32, 1>", M), free()),
    ),
    "as large as an operand": lambda at: program(
        f"%arena = memref.alloc(%c256) {{alignment = 64 : i64}} : {LOOSE}",
        *(pair(at, type=LOOSE), free(type=LOOSE)),
    ),
}


@pytest.mark.parametrize("make", ARENAS.values(), ids=ARENAS)
def test_memory_with_views_is_an_arena(make: Callable[[str], str]) -> None:
    (buffers,) = placements(make("%c64"))
    assert buffers == [("%a", 0, 64), ("%b", 64, 64)]
    refused(
        make("%c0"), r"uses buffer %a, whose bytes \[0, 64\) now belong to buffer %b"
    )


def parts(second: str, then: str = "") -> str:
    """A program in which %low and %high are halves of the arena, %a lies in one, and %b
    in the other."""
    half = "memref<128xi8>"
    return program(
        *(arena(), view("low", type=half), view("high", "%c128", half), then),
        *(
            view("a", "%c64", of="low", arena=half),
            view("b", second, of="high", arena=half),
        ),
        *(copy("x", "a"), copy("x", "b"), copy("a", "y"), free()),
    )


def test_view_that_only_views_divide_is_no_buffer() -> None:
    assert placements(parts("%c64")) == [[("%a", 64, 64), ("%b", 192, 64)]]


def test_nested_views() -> None:
    text = program(
        *(arena(), view("o", "%c64", "memref<192xi8>")),
        "%q = memref.cast %o : memref<192xi8> to memref<?xi8>",
        view("r", "%c64", "memref<128xi8>", "q", LOOSE),
        view("a", "%c32", "memref<16xf32>", "r", "memref<128xi8>"),
        *(copy("x", "a"), copy("a", "y"), free()),
    )
    assert placements(text.replace("alignment = 64", "alignment = 32")) == [
        [("%a", 160, 64)]
    ]


def test_overlapping_views() -> None:
    half = "memref<128xi8>"
    text = program(
        *(arena(), view("low", type=half), view("high", "%c64", half)),
        *(view("a", "%c64", of="low", arena=half), view("b", of="high", arena=half)),
        *(copy("x", "a"), copy("x", "b"), copy("a", "y"), free()),
    )
    refused(text, r"uses buffer %a, whose bytes \[64, 128\) now belong to buffer %b")


def test_divided_view_with_other_uses_is_a_buffer() -> None:
    """Accesses to buffers in the view count as accesses to the whole view."""
    text = parts("%c64", '"test.use"(%low) : (memref<128xi8>) -> ()')
    assert placements(text) == [[("%low", 0, 128), ("%b", 192, 64)]]
    assert unproved(text) == [
        "operations with unknown effects, assumed to end when they return: 1 "
        "(test.use)",
    ]


def test_view_of_a_cast_buffer_counts_as_the_whole_buffer() -> None:
    text = program(
        *(arena(), view("a", type="memref<64xi8>")),
        "%byte = arith.constant 1 : i8",
        "memref.store %byte, %a[%c0] : memref<64xi8>",
        f"%k = memref.cast %a : memref<64xi8> to {LOOSE}",
        *(view("b", of="k", arena=LOOSE), copy("x", "b"), copy("b", "y"), free()),
    )
    assert placements(text) == [[("%a", 0, 64)]]
    assert unproved(text) == []


def test_view_at_unknown_offset_is_refused() -> None:
    half = "memref<128xi8>"
    text = program(
        arena(), view("low", "%n", half), view("a", of="low", arena=half), free()
    )
    refused(text, "the offset of buffer %low is unknown")


def test_offsets_of_nested_views_add_up() -> None:
    half = "memref<128xi8>"
    text = program(
        *(arena(), view("low", "%c192", half), view("a", "%c64", of="low", arena=half)),
        free(),
    )
    refused(
        text, r"buffer %a lies in bytes \[256, 320\), expected within the arena's \["
    )


@pytest.mark.parametrize(
    "given",
    [
        f"%k = arith.select %p, %arena, %other : {I8}",
        f"%k = scf.if %p -> ({I8}) {{\nscf.yield %arena : {I8}\n}} else {{\n"
        f"scf.yield %other : {I8}\n}}",
        f"cf.br ^on(%arena : {I8})\n^on(%k: {I8}):",
        f'%k = "test.region"() ({{\n"test.end"() : () -> ()\n}}) : () -> {I8}',
        f"%k = memref.subview %arena[0] [256] [1] : {I8} to {I8}",
    ],
    ids=["selected", "yielded", "a block's", "of a region", "a part"],
)
def test_unknown_memory_is_reported(given: str) -> None:
    text = program(
        *(arena(), arena("other"), given, view("a", of="k"), copy("x", "a")),
        *(copy("a", "y"), free(), free("other")),
    )
    told = (
        "buffers that may be in one of several memories, not checked: 1 (memref.view)"
    )
    assert told in unproved(text)
    assert placements(text) == []


def test_memory_carried_by_a_loop_is_reported() -> None:
    text = program(
        arena(),
        f"%r = scf.for %t = %c0 to %n step %c1 iter_args(%k = %arena) -> ({I8}) {{",
        *(view("a", of="k"), copy("x", "a"), copy("a", "y")),
        *(f"scf.yield %k : {I8}", "}", free()),
    )
    told = (
        "buffers that may be in one of several memories, not checked: 1 (memref.view)"
    )
    assert unproved(text) == [told]


PLACES = {
    "after the end": (
        "%c256",
        64,
        r"\[256, 320\), expected within the arena's \[0, 2",
    ),
    "partly after the end": ("%at", 200, r"\[200, 264\), expected within the arena's"),
    "one byte after the end": ("%at", 193, r"\[193, 257\), expected within"),
    "in front": ("%at", -64, r"\[-64, 0\), expected within the arena's \[0, 256\)"),
    "not aligned": ("%at", 96, "offset 96, expected a multiple of the arena's .*, 64"),
}


@pytest.mark.parametrize(("at", "number", "message"), PLACES.values(), ids=PLACES)
def test_misplaced_buffers_are_refused(at: str, number: int, message: str) -> None:
    offset = f"%at = arith.constant {number} : index"
    text = program(offset, loop(arena(), view("a", at), free()))
    refused(text, "buffer %a (lies in bytes|has) " + message)


def test_unnamed_buffer() -> None:
    """The error shows `%?`, which is not a name in the text."""
    text = program(arena(), view("7", "%c256"), free())
    refused(text, r"buffer %\? lies in bytes")


def test_buffer_at_the_end_of_the_arena() -> None:
    assert placements(program(arena(), view("a", "%c192"), free())) == [
        [("%a", 192, 64)]
    ]


NATURAL = {  # the alignment that eight elements of a type need
    "f32": 4,
    "f64": 8,
    "i8": 1,
    "i16": 2,
    "i1": 1,
    "i24": 4,
    "i48": 8,
    "complex<f32>": 4,
}


@pytest.mark.parametrize(("element", "natural"), NATURAL.items())
def test_elements_have_their_natural_alignment(element: str, natural: int) -> None:
    def text(at: int, alignment: int | None) -> str:
        aligned = "" if alignment is None else f" {{alignment = {alignment} : i64}}"
        return program(
            f"%at = arith.constant {at} : index",
            f"%arena = memref.alloc(){aligned} : {I8}",
            *(view("a", "%at", f"memref<8x{element}>"), free()),
        )

    for at, alignment in ((natural, natural), (3 * natural, None)):
        assert placements(text(at, alignment))[0][0][1] == at
    if natural == 1:
        return
    half = natural // 2
    for at, alignment, name in (
        (natural + half, None, "unknown"),
        (natural + half, half, half),
        (natural, half, half),
    ):
        refused(
            text(at, alignment),
            f"buffer %a has offset {at} in an arena with alignment {name}, expected "
            f"multiples of {natural} for ",
        )


def test_arena_of_the_caller_has_alignment_1() -> None:
    text = called("%c64")
    (pool,) = pools(text)
    assert (pool.alignment, pool.size) == (1, 256)
    offset = "%at = arith.constant 100 : index"
    text = text.replace(view("b", "%c64"), f"{offset}\n{view('b', '%at')}")
    assert placements(text)[0][1] == ("%b", 100, 64)


def test_alignment_of_an_arena_on_the_stack() -> None:
    text = ARENAS["on the stack"]("%c64")
    assert pools(text)[0].alignment == 64
    assert pools(text.replace(" {alignment = 64 : i64}", ""))[0].alignment == 1


def test_caller_determines_the_size_of_an_argument() -> None:
    text = called("%c64").replace(I8, LOOSE)
    assert [(p.size, len(p.buffers)) for p in pools(text)] == [(128, 2)]
    assert unproved(text) == [
        "arenas whose size the caller determines: 1 (memref.view)"
    ]
    refused(called("%c0").replace(I8, LOOSE), "uses buffer %a, whose bytes")
    text = text.replace(view("b", "%c64", arena=LOOSE), "%b = memref.alloca() : " + M)
    assert [(p.size, len(p.buffers)) for p in pools(text)] == [(64, 1)]


def test_other_use_of_an_arena_owns_all_of_it() -> None:
    use = f'"test.use"(%arena) : ({I8}) -> ()'
    text = program(arena(), use, view("a"), copy("x", "a"), copy("a", "y"), free())
    assert placements(text) == [[("%arena", 0, 256), ("%a", 0, 64)]]
    late = program(arena(), view("a"), copy("x", "a"), use, copy("a", "y"), free())
    refused(late, r"uses buffer %a, whose bytes \[0, 64\) now belong to buffer %arena")


def test_use_under_an_alias_owns_all_of_the_arena() -> None:
    text = program(
        *(arena(), view("a"), copy("x", "a")),
        f"%k = memref.cast %arena : {I8} to {LOOSE}",
        f'"test.use"(%k) : ({LOOSE}) -> ()',
        *(copy("a", "y"), free()),
    )
    refused(text, r"uses buffer %a, whose bytes \[0, 64\) now belong to buffer %arena")


def test_arenas_are_in_program_order() -> None:
    """The order is that of the allocations, with arguments first, not that of the
    views."""
    text = f"func.func @g(%given: {I8}, %x: {M}) {{\n" + lines(
        *(arena("first"), arena("second"), HEAD, view("b", of="second")),
        *(view("a", of="first"), view("c", of="given"), free("first"), free("second")),
        "return\n}",
    )
    assert [[b[0] for b in pool] for pool in placements(text)] == [
        ["%c"],
        ["%a"],
        ["%b"],
    ]


def test_arenas_and_buffers_are_counted() -> None:
    two = program(arena(), arena("other"), view("a"), view("b", of="other"), view("c"))
    two = two.replace("return\n", lines(free(), free("other"), "return\n"))
    assert remarks(two)[-1] == "2 arenas, 3 buffers checked"
    assert remarks(program(copy("x", "y"))) == ["0 arenas, 0 buffers checked"]


def test_buffer_with_two_live_ranges_counts_once() -> None:
    text = program(
        *(arena(), view("a"), copy("x", "a"), copy("a", "y"), copy("x", "a")),
        *(copy("a", "y"), free()),
    )
    assert len(pools(text)[0].buffers) == 2
    assert remarks(text) == ["1 arena, 1 buffer checked"]


def test_views_outside_of_functions_are_reported() -> None:
    text = (
        '"test.func"() ({\n'
        + lines("%c0 = arith.constant 0 : index", arena(), view("a"), view("b"))
        + '\n"test.end"() : () -> ()\n}) : () -> ()'
    )
    assert remarks(text) == [
        "buffers outside of any func.func, not checked: 2 (memref.view)",
        "0 arenas, 0 buffers checked",
    ]


def test_offset_computed_from_a_loop_counter_is_unknown() -> None:
    text = program(arena(), loop(view("a", "%t"), copy("x", "a")), free())
    refused(text, "the offset of buffer %a is unknown")


def test_buffer_created_in_a_concurrent_loop_is_refused() -> None:
    text = program(arena(), parallel(view("a"), each("x", "a"), to="%c2"), free())
    refused(
        text, "buffer %a is created inside scf.parallel, which may run concurrently"
    )


OWN = "memref.view %arena[{at}][] {{tgraph.alignment = {own} : i64}} : "


@pytest.mark.parametrize(("at", "own"), [("%c8", 16), ("%c16", 32), ("%c0", 128)])
def test_buffer_with_its_own_alignment(at: str, own: int) -> None:
    def text(at: str, own: int) -> str:
        views = f"%a = {OWN.format(at=at, own=own)}{I8} to {M}"
        return program(arena(), views, copy("x", "a"), copy("a", "y"), free())

    assert unproved(text("%c16", 16)) == []
    refused(text(at, own), f"expected a multiple of its alignment, {own}")
