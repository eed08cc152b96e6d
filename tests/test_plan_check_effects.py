"""Tests the effects of operations and calls that `plan-check` assumes."""

from collections.abc import Callable

import pytest
from plan_checks import refused, remarks, unproved
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

HIDDEN = "escaping addresses of buffers, uses not checked: {} ({})"
NO_EFFECTS = "operations with unknown effects, assumed to end when they return: {} ({})"
POOL = f'memref.global "private" @pool : {I8} = uninitialized'
GET = f"%arena = memref.get_global @pool : {I8}"


def neg(source: str, target: str) -> str:
    return f"tgraph.negate %{source} outs(%{target}) : {M}"


def with_call(*body: str, read: str = copy("a", "y"), beside: str = "") -> str:
    """A program in which %a and %b share bytes, and a call takes %b before `read`."""
    return program(
        *(arena(), view("a"), view("b"), copy("x", "a")),
        *(f"func.call @g(%b, %z) : ({M}, {M}) -> ()", read, free()),
        beside=lines(f"func.func @g(%b: {M}, %z: {M}) {{", *body, "return\n}", beside),
    )


CALLS = {
    "writes it": [copy("z", "b")],
    "writes it in a loop": [
        *("%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index"),
        loop(copy("z", "b"), to="%c1"),
    ],
    "reads it": [copy("b", "z")],
    "writes a view of it": [
        f"%v = memref.subview %b[0] [8] [1] : {M} to memref<8xf32>",
        "tgraph.constant<0.0 : f32> outs(%v) : memref<8xf32>",
    ],
    "calls itself": [f"func.call @g(%b, %z) : ({M}, {M}) -> ()"],
    "calls another": [f"func.call @h(%b, %z) : ({M}, {M}) -> ()"],
}


@pytest.mark.parametrize("body", CALLS.values(), ids=CALLS)
def test_call_has_the_effects_of_its_function(body: list[str]) -> None:
    h = f"func.func @h(%b: {M}, %z: {M}) {{\nreturn\n}}"
    refused(
        with_call(*body, beside=h),
        r"memref.copy uses buffer %a, whose bytes \[0, 64\) now belong to buffer %b",
    )


def test_call_of_a_function_without_effects() -> None:
    assert unproved(with_call()) == []
    assert unproved(with_call(copy("z", "z"))) == []
    cast = f"%v = memref.cast %b : {M} to memref<?xf32>"
    assert unproved(with_call(cast)) == []


def test_call_of_an_external_function() -> None:
    text = program(
        *(arena(), view("a"), view("b"), copy("x", "a")),
        *(f"func.call @g(%b) : ({M}) -> ()", copy("a", "y"), free()),
        beside=f"func.func private @g({M})",
    )
    refused(text, "memref.copy uses buffer %a, whose bytes")
    text = text.replace(view("b"), view("b", "%c64"))
    assert unproved(text) == [NO_EFFECTS.format(1, "func.call")]


def test_call_that_writes_its_argument() -> None:
    def text(*body: str) -> str:
        return program(
            *(arena(), view("a"), f"func.call @g(%a, %x) : ({M}, {M}) -> ()"),
            *(neg("a", "y"), free()),
            beside=lines(f"func.func @g(%a: {M}, %x: {M}) {{", *body, "return\n}"),
        )

    assert unproved(text(copy("x", "a"))) == []
    again = f"func.call @g(%a, %x) : ({M}, {M}) -> ()"
    assert unproved(text(again)) == []
    refused(text(), "tgraph.negate reads buffer %a, expected an earlier write$")
    refused(text(copy("a", "x")), "reads buffer %a, expected an earlier write on every")


HIDES = {
    "a pointer": (
        f"%q = memref.extract_aligned_pointer_as_index %a : {M} -> index",
        "memref.extract_aligned_pointer_as_index",
    ),
    "another type": (f'%q = "test.hide"(%a) : ({M}) -> !test.token', "test.hide"),
    "one of two types": (
        f'%q, %r = "test.hide"(%a) : ({M}) -> (index, !test.token)',
        "test.hide",
    ),
    "in memory": (
        f"%m = memref.alloca() : memref<1x{M}>\n"
        f'"memref.store"(%a, %m, %c0) : ({M}, memref<1x{M}>, index) -> ()',
        "memref.store",
    ),
}


@pytest.mark.parametrize(("operation", "name"), HIDES.values(), ids=HIDES)
def test_escaping_addresses_are_reported(operation: str, name: str) -> None:
    text = program(arena(), view("a"), copy("x", "a"), operation, free())
    assert unproved(text) == [HIDDEN.format(1, name)]
    other = operation.replace("%a", "%x")
    assert unproved(program(arena(), view("a"), copy("x", "a"), other, free())) == []


@pytest.mark.parametrize(
    "type",
    [
        "index",
        "i64",
        "f32",
        "vector<4xf32>",
        M,
        "memref<*xf32>",
        "complex<f32>",
        "none",
    ],
)
def test_result_types_without_addresses(type: str) -> None:
    operation = f'%q = "test.show"(%a) : ({M}) -> {type}'
    text = program(arena(), view("a"), copy("x", "a"), operation, free())
    assert unproved(text) == [NO_EFFECTS.format(1, "test.show")]


def test_store_of_a_number_is_not_an_escape() -> None:
    store = f"%v = arith.constant 0.0 : f32\nmemref.store %v, %a[%c0] : {M}"
    assert unproved(program(arena(), view("a"), store, free())) == []


def test_loops_and_structured_operations_are_synchronous() -> None:
    body = (arena(), view("a"), parallel(copy("x", "a"), to="%c1"), free())
    assert unproved(program(*body)) == []
    affine = ('"affine.parallel"() ({', copy("x", "a"), '"affine.yield"() : () -> ()')
    assert unproved(program(arena(), view("a"), *affine, "}) : () -> ()", free())) == []


def test_operations_in_a_payload_are_reported() -> None:
    use = f'"test.use"(%a) : ({M}) -> ()\nlinalg.yield'
    text = each("x", "y").replace("linalg.yield", use)
    text = program(arena(), view("a"), copy("x", "a"), text, free())
    assert NO_EFFECTS.format(1, "test.use") in unproved(text)


def test_each_operation_name_is_reported_once() -> None:
    text = program(
        *(arena(), view("a"), copy("x", "a")),
        *(f'"test.{name}"(%a) : ({M}) -> ()' for name in ("one", "two", "one")),
        *(f'%{n} = "test.hide"(%a) : ({M}) -> !test.token' for n in ("q", "r")),
        free(),
    )
    assert remarks(text) == [
        NO_EFFECTS.format(3, "test.one, test.two"),
        HIDDEN.format(2, "test.hide"),
        "1 arena, 1 buffer checked",
    ]


def test_operation_with_two_buffers_counts_once() -> None:
    text = program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), copy("x", "b")),
        f'"test.use"(%a, %b) : ({M}, {M}) -> ()',
        free(),
    )
    assert unproved(text) == [NO_EFFECTS.format(1, "test.use")]


def test_operations_in_unknown_regions_count_as_the_enclosing_one() -> None:
    text = program(
        *(arena(), view("a"), copy("x", "a"), '"test.region"() ({'),
        *(copy("a", "y"), '"test.end"() : () -> ()\n}) : () -> ()', free()),
    )
    assert unproved(text) == [NO_EFFECTS.format(1, "test.region")]


@pytest.mark.parametrize(
    "body",
    [
        f"%q = memref.extract_aligned_pointer_as_index %b : {M} -> index",
        f"func.call @h(%b) : ({M}) -> ()",
        f'%q = "gpu.memcpy"(%b, %z) {{operandSegmentSizes = array<i32: 0, 1, 1>}} : '
        f"({M}, {M}) -> !gpu.async.token",
    ],
    ids=["itself", "by another", "a transfer without a wait"],
)
def test_called_function_may_leak_an_address(body: str) -> None:
    h = f"func.func @h(%b: {M}) {{\n{HIDES['another type'][0]}\nreturn\n}}"
    text = with_call(body, read=copy("x", "y"), beside=h.replace("%a", "%b"))
    assert HIDDEN.format(1, "func.call") in unproved(text)


def test_called_function_without_access_leaks_nothing() -> None:
    other = '%q = "test.make"() : () -> !test.token'
    assert unproved(with_call(other, read=copy("x", "y"))) == []


def test_called_function_waits_for_its_transfer() -> None:
    start = (
        '%t = "gpu.memcpy"(%b, %z) {operandSegmentSizes = array<i32: 0, 1, 1>} : '
        f"({M}, {M}) -> !gpu.async.token"
    )
    wait = '"gpu.wait"(%t) : (!gpu.async.token) -> ()'
    assert unproved(with_call(start, wait, read=copy("x", "y"))) == []


# Globals used by several functions.


def shared(*used: str, of: str = "pool", read: str = copy("a", "y")) -> str:
    """A program in which @f has %a in bytes [64, 128) of the global @pool, and calls
    @g, which uses bytes of the global named `of`."""
    get = f"%arena = memref.get_global @{of} : {I8}"
    return program(
        *(GET, view("a", "%c64"), copy("x", "a")),
        *(f"func.call @g(%x) : ({M}) -> ()", read),
        beside=lines(
            *(POOL, POOL.replace("@pool", "@other")),
            f"func.func @g(%x: {M}) {{",
            *(f"%c{n} = arith.constant {n} : index" for n in (0, 64, 96, 128, 192)),
            *(get, *used, "return\n}"),
        ),
    )


LOST = "memref.copy uses buffer %a, whose bytes may now belong to another buffer"
TAKES = {
    "the same bytes": [view("b", "%c64")],
    "the bytes and more": [view("b", "%c0", "memref<32xf32>")],
    "the last bytes": [view("b", "%c96")],
    "one of two": [view("b", "%c0"), view("c", "%c64")],
    "the first of two": [view("b", "%c64"), view("c", "%c192")],
    "around it": [view("b", "%c0"), view("c", "%c192")],
    "all of it": [f'"test.use"(%arena) : ({I8}) -> ()'],
    "all and a part": [view("b", "%c192"), f'"test.use"(%arena) : ({I8}) -> ()'],
    "at what is not known": [
        f"%n = memref.dim %x, %c0 : {M}\n{view('b', '%n')}",
    ],
    "as many as are not known": [
        f"%n = memref.dim %x, %c0 : {M}\n"
        f"%b = memref.view %arena[%c192][%n] : {I8} to memref<?xf32>"
    ],
    "by who is called by it": [
        f"func.call @h(%x) : ({M}) -> ()",
    ],
}


@pytest.mark.parametrize("used", TAKES.values(), ids=TAKES)
def test_call_that_takes_bytes_of_a_global(used: list[str]) -> None:
    h = lines(
        f"func.func @h(%x: {M}) {{\n%c0 = arith.constant 0 : index",
        *(GET, view("b", type="memref<32xf32>"), "return\n}"),
    )
    text = shared(*used)
    text = text + h
    with_uses = text.replace(
        view("c", "%c64"), lines(view("c", "%c64"), each("x", "c"))
    )
    refused(with_uses, LOST)


LEAVES = {
    "those in front": [view("b", "%c0")],
    "those after": [view("b", "%c128")],
    "none": [],
}


@pytest.mark.parametrize("used", LEAVES.values(), ids=LEAVES)
def test_call_that_takes_other_bytes_of_a_global(used: list[str]) -> None:
    assert unproved(shared(*used)) == []


def test_first_byte_of_a_global() -> None:
    def text(*used: str) -> str:
        byte = view("a", "%c0", "memref<1xi8>")
        store = "%v = arith.constant 1 : i8\nmemref.store %v, %a[%c0] : memref<1xi8>"
        text = shared(*used, read="%w = memref.load %a[%c0] : memref<1xi8>")
        return text.replace(
            view("a", "%c64") + "\n" + copy("x", "a"), byte + "\n" + store
        )

    refused(text(TAKES["all of it"][0]), "memref.load uses buffer %a, whose bytes")
    assert unproved(text()) == []


def test_globals_are_disjoint() -> None:
    assert unproved(shared(view("b", "%c64"), of="other")) == []


def test_call_in_a_branch_takes_bytes_of_a_global() -> None:
    call = f"func.call @g(%x) : ({M}) -> ()"
    text = shared(view("b", "%c64")).replace(call, branch([call]))
    refused(text, LOST)


def test_arena_and_global_are_disjoint() -> None:
    text = shared(view("b", "%c64"))
    first = text.rindex(GET)
    text = text[:first] + arena() + text[first + len(GET) :]
    assert unproved(text) == ["arenas not freed on every path: 1 (memref.alloc)"]


# Reads and writes of operations.


def test_unknown_operation_needs_no_earlier_write() -> None:
    """An operation with unknown effects may write before it reads."""
    text = program(arena(), view("a"), f'"test.use"(%a) : ({M}) -> ()', free())
    assert unproved(text) == [NO_EFFECTS.format(1, "test.use")]


def test_output_that_is_read_needs_an_earlier_write() -> None:
    text = each("x", "a").replace("arith.negf %in0", "arith.negf %old")
    message = "linalg.generic reads buffer %a, expected an earlier write"
    refused(program(arena(), view("a"), text, free()), message)
    assert unproved(program(arena(), view("a"), each("x", "a"), free())) == []


UNDEFINED = "reads of memory that may not be written yet: 1"
POOLING = (
    "%image = memref.expand_shape %x [[0, 1, 2, 3]] output_shape [1, 1, 4, 4] : "
    f"{M} into memref<1x1x4x4xf32>\n"
    "%window = memref.view %arena[%c0][] : memref<256xi8> to memref<2x2xf32>\n"
    "%pooled = memref.view %arena[%c64][] : memref<256xi8> to memref<1x1x3x3xf32>\n"
    "linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<1> "
    ": vector<2xi64>} ins(%image, %window : memref<1x1x4x4xf32>, memref<2x2xf32>) "
    "outs(%pooled : memref<1x1x3x3xf32>)"
)
MAY_BE_UNDEFINED = {
    "a copy": ([copy("a", "y")], "memref.copy"),
    "a copy of linalg": ([f"linalg.copy ins(%a : {M}) outs(%y : {M})"], "linalg.copy"),
    "what only the shape of is used": ([POOLING], "linalg.pooling_nchw_max"),
    "what is written on one path": (
        [branch([copy("x", "a")]), each("a", "y")],
        "linalg.generic",
    ),
    "what an iteration has written": (
        [loop(branch([each("a", "y")]), copy("x", "a"))],
        "linalg.generic",
    ),
}
"""Operations, and the name of the one that reads undefined contents."""


@pytest.mark.parametrize(
    ("ops", "reader"), MAY_BE_UNDEFINED.values(), ids=MAY_BE_UNDEFINED
)
def test_reads_of_undefined_contents_are_reported(ops: list[str], reader: str) -> None:
    text = program(arena(), view("a"), *ops, free())
    assert unproved(text) == [f"{UNDEFINED} ({reader})"]


@pytest.mark.parametrize("around", [loop, lambda *ops: branch(list(ops))])
def test_computation_from_unwritten_contents_is_refused(
    around: Callable[..., str],
) -> None:
    text = program(around(arena(), view("a"), each("a", "y"), free()))
    refused(text, "reads buffer %a, expected an earlier write$")
    assert not unproved(text.replace(view("a"), view("a") + "\n" + copy("x", "a")))


# Assumed alignments.


def assumed(what: str, name: str, type: str = M) -> str:
    return f"%v = memref.assume_alignment %{name}, {what} : {type}"


ALIGNED = {
    "the arena's": ("%c0", "64", "a"),
    "less": ("%c0", "4", "a"),
    "the offset's": ("%c32", "32", "a"),
    "a part's": ("%c0", "32", "u"),
    "a part of a part's": ("%c32", "32", "u"),
}


@pytest.mark.parametrize(("at", "wanted", "name"), ALIGNED.values(), ids=ALIGNED)
def test_assumed_alignments(at: str, wanted: str, name: str) -> None:
    part = "memref<8xf32, strided<[1], offset: 8>>"

    def text(wanted: int) -> str:
        type = M if name == "a" else part
        return program(
            *(arena(alignment=64 if at == "%c0" else 32), view("a", at)),
            f"%u = memref.subview %a[8] [8] [1] : {M} to {part}",
            *(copy("x", "a"), assumed(str(wanted), name, type), free()),
        )

    assert unproved(text(int(wanted))) == []
    if wanted == "4":
        return
    if name == "u" and at == "%c32":
        wanted = "32"
    refused(
        text(2 * int(wanted)),
        f"memref.assume_alignment assumes {2 * int(wanted)} of a part of buffer %a, "
        f"expected at most {wanted}$",
    )


def test_arena_of_unknown_alignment() -> None:
    text = program(GET, view("a"), copy("x", "a"), assumed("4", "a"), beside=POOL)
    refused(text, "assumes 4 of a part of buffer %a, expected at most 1$")


def test_assumed_alignment_of_a_view_at_unknown_offset_is_reported() -> None:
    loose = "memref<8xf32, strided<[1], offset: ?>>"
    text = program(
        *(arena(), view("a"), copy("x", "a")),
        f"%u = memref.subview %a[%c8] [8] [1] : {M} to {loose}",
        *(assumed("32", "u", loose), free()),
    )
    told = "views of unknown alignment: 1 (memref.assume_alignment)"
    assert unproved(text) == [told]


def test_assumed_alignment_of_other_memory_is_accepted() -> None:
    assert unproved(program(arena(), view("a"), assumed("4096", "x"), free())) == []


# Streams.


def on_stream(source: str, target: str, stream: int = 0) -> str:
    on = f"{{tgraph.stream = {stream} : i32}}"
    return f"tgraph.negate %{source} outs(%{target}) {on} : {M}"


INSIDE = "tgraph.negate has a stream inside a region, expected one on the enclosing op"


def test_streams_in_regions() -> None:
    inside = on_stream("x", "a")
    refused(program(arena(), view("a"), loop(inside), free()), INSIDE)
    refused(program(arena(), view("a"), branch([inside]), free()), INSIDE)
    assert unproved(program(arena(), view("a"), inside, free())) == []
    refused(program(loop(on_stream("x", "y"))), INSIDE)


def test_streams_in_blocks() -> None:
    text = program(arena(), view("a"), on_stream("x", "a"), "cf.br ^e", "^e:", free())
    refused(text, "function @f has operations with streams and 2 blocks, expected 1")
    assert unproved(text.replace(" {tgraph.stream = 0 : i32}", "")) == []


def test_report_is_optional() -> None:
    text = program(arena(), view("a"), copy("x", "a"), copy("a", "y"))
    told = "arenas not freed on every path: 1 (memref.alloc)"
    assert remarks(text) == [told, "1 arena, 1 buffer checked"]
    assert remarks(text, report=False) == [told]
