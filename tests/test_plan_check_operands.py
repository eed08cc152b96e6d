"""Tests which operands `plan-check` lets an operation overwrite, rule by rule."""

import pytest
from plan_checks import refused, unproved
from planted import (
    SQUARE,
    M,
    add,
    arena,
    copy,
    each,
    free,
    lines,
    loop,
    program,
    view,
)

from tensorplan.checking import operands

REVERSED = "(d0) -> (15 - d0)"
OVER = (
    r"writes operand {} over operand {} before reading all of it, expected separate m"
)
PART = "writes operand {} over part of operand {}, expected separate memory"
MAY = "operations that may overwrite their own inputs: 1 ({})"
READ_INSIDE = "over what its region reads before reading all of it, expected separate"
PART_INSIDE = "over part of what its region reads, expected separate memory"
WRITE_INSIDE = "regions that write operands of their operation: 1 ({})"
TWICE = "calls that pass the same memory twice: 1 (func.call)"


def on(operation: str, *more: str, beside: str = "") -> str:
    """A program with disjoint written buffers %a and %b of 16 elements, and
    `operation`."""
    return program(
        *(arena(alignment=4), view("a"), view("b", "%c64"), copy("x", "a")),
        *(copy("x", "b"), *more, operation, copy("a", "y"), copy("b", "z"), free()),
        beside=beside,
    )


def part(name: str, first: int, size: int = 8, step: int = 1, of: str = "a") -> str:
    return (
        f"%{name} = memref.reinterpret_cast %{of} to offset: [{first}], sizes: "
        f"[{size}], strides: [{step}] : {M} to {strided(first, size, step)}"
    )


def strided(first: int, size: int = 8, step: int = 1) -> str:
    return f"memref<{size}xf32, strided<[{step}], offset: {first}>>"


def somewhere(name: str, at: str, of: str = "a") -> str:
    return f"%{name} = memref.subview %{of}[{at}] [8] [1] : {M} to {SOMEWHERE}"


SOMEWHERE = "memref<8xf32, strided<[1], offset: ?>>"


def neg(source: str, target: str, type: str = M, to: str | None = None) -> str:
    return f"tgraph.negate %{source} outs(%{target}) : ({type}) -> {to or type}"


def parts(first: int, second: int) -> list[str]:
    """An operation that reads %u and writes %v, and these views of parts of %a."""
    operation = neg("u", "v", strided(first), strided(second))
    return [operation, part("u", first), part("v", second)]


def two_outputs(first: str, second: str, source: str = "x") -> str:
    same = "affine_map<(d0) -> (d0)>"
    return (
        f"linalg.generic {{indexing_maps = [{same}, {same}, {same}], iterator_types = "
        f'["parallel"]}} ins(%{source} : {M}) outs(%{first}, %{second} : {M}, {M}) {{\n'
        "^bb0(%in0: f32, %old: f32, %old1: f32):\n%new = arith.negf %in0 : f32\n"
        "linalg.yield %in0, %new : f32, f32\n}"
    )


def with_region(inside: str, source: str = "x", target: str = "b") -> str:
    """An elementwise operation whose region also contains `inside`."""
    text = each(source, target).replace("linalg.yield", f"{inside}\nlinalg.yield")
    return text


T16 = "tensor<16xf32>"
SOUND = {
    "other memory": [neg("a", "b")],
    "in place": [neg("a", "a")],
    "in place, structured": [each("a", "a")],
    "a permutation to other memory": [each("a", "b", read=REVERSED)],
    "two operands in place": [add("a", "a", "a")],
    "the second operand in place": [add("b", "a", "a")],
    "halves": parts(0, 8),
    "a half in place": [neg("u", "v", strided(8)), part("u", 8), part("v", 8)],
    "a half in place of one with another rank": [
        *(neg("u", "u", "memref<1x8xf32>"), part("h", 0)),
        "%u = memref.reinterpret_cast %a to offset: [0], sizes: [1, 8], strides: "
        f"[8, 1] : {M} to memref<1x8xf32>",
    ],
    "even to odd elements": [
        neg("u", "v", strided(0, 8, 2), strided(1, 8, 2)),
        *(part("u", 0, 8, 2), part("v", 1, 8, 2)),
    ],
    "backwards in place": [
        *(neg("u", "v", strided(15, 16, -1)), part("u", 15, 16, -1)),
        part("v", 15, 16, -1),
    ],
    "two outputs": [two_outputs("a", "b")],
    "two outputs, the first in place": [two_outputs("a", "b", "a")],
    "a copy of its own": [copy("a", "a")],
    "ranges apart": [
        loop(
            *(somewhere("u", "%t"), "%far = arith.addi %t, %c8 : index"),
            somewhere("v", "%far"),
            neg("u", "v", SOMEWHERE),
            to="%c1",
        )
    ],
    "ranges apart, the other way": [
        loop(
            *(somewhere("u", "%t"), "%far = arith.addi %t, %c8 : index"),
            somewhere("v", "%far"),
            neg("v", "u", SOMEWHERE),
            to="%c1",
        )
    ],
    "a region that writes other memory": [
        with_region(f"memref.store %in0, %y[%c0] : {M}"),
    ],
    "one tensor as two outputs": [
        '%r:2 = "linalg.unknown"(%t, %t, %t) {operandSegmentSizes = array<i32: 1, 2>} '
        f": ({T16}, {T16}, {T16}) -> ({T16}, {T16})",
        f'%t = "test.tensor"() : () -> {T16}',
    ],
    "a region that reads other memory": [
        with_region(f"%more = memref.load %a[%c0] : {M}"),
    ],
    "what the caller gives": [neg("x", "y")],
    "a memory of its own": [
        neg("own", "b"),
        f"%own = memref.alloca() : {M}\n{copy('x', 'own')}",
    ],
}


@pytest.mark.parametrize("body", SOUND.values(), ids=SOUND)
def test_sound(body: list[str]) -> None:
    operation, *before = body
    assert unproved(on(operation, *before)) == []


FAULTS = {
    "a permutation in place": ([each("a", "a", read=REVERSED)], OVER.format(1, 0)),
    "one of ours": (
        [f"tgraph.reverse %a outs(%a) {{dimensions = array<i64: 0>}} : {M}"],
        "tgraph.reverse " + OVER.format(1, 0),
    ),
    "the caller's": (
        [f"tgraph.reverse %y outs(%y) {{dimensions = array<i64: 0>}} : {M}"],
        OVER.format(1, 0),
    ),
    "of its own": (
        [
            f"tgraph.reverse %own outs(%own) {{dimensions = array<i64: 0>}} : {M}",
            f"%own = memref.alloca() : {M}\n{copy('x', 'own')}",
        ],
        OVER.format(1, 0),
    ),
    "overlapping parts": (parts(0, 4), "tgraph.negate " + PART.format(1, 0)),
    "one element in common": (parts(0, 7), PART.format(1, 0)),
    "overlapping parts, the other way": (parts(4, 0), PART.format(1, 0)),
    "backwards": (
        [neg("u", "a", strided(15, 16, -1), M), part("u", 15, 16, -1)],
        PART.format(1, 0),
    ),
    "parts of its own": (
        [
            neg("u", "v", strided(0), strided(7)),
            f"%own = memref.alloca() : {M}\n{copy('x', 'own')}",
            *(part("u", 0, of="own"), part("v", 7, of="own")),
        ],
        PART.format(1, 0),
    ),
    "the second operand": (
        [
            f"linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<"
            f"{REVERSED}>, affine_map<(d0) -> (d0)>], iterator_types = "
            f'["parallel"]}} ins(%x, %a : {M}, {M}) outs(%a : {M}) {{\n'
            "^bb0(%in0: f32, %in1: f32, %old: f32):\n"
            "%new = arith.addf %in0, %in1 : f32\nlinalg.yield %new : f32\n}"
        ],
        OVER.format(2, 1),
    ),
    "an output over the other": ([two_outputs("a", "a")], OVER.format(1, 2)),
    "the second output in place": ([two_outputs("a", "b", "b")], OVER.format(2, 0)),
    "a region reads what is written": (
        [with_region(f"%more = memref.load %b[%c0] : {M}")],
        f"linalg.generic writes operand 1 {READ_INSIDE}",
    ),
    "a region reads a part of what is written": (
        [
            with_region(f"%more = memref.load %u[%c0] : {strided(8)}"),
            part("u", 8, of="b"),
        ],
        f"linalg.generic writes operand 1 {PART_INSIDE}",
    ),
    "a region in a region": (
        [with_region(f"scf.if %p {{\n%more = memref.load %b[%c0] : {M}\n}}")],
        READ_INSIDE,
    ),
    "in a loop": (
        [loop(each("a", "a", read=REVERSED))],
        OVER.format(1, 0),
    ),
}


@pytest.mark.parametrize(("body", "message"), FAULTS.values(), ids=FAULTS)
def test_refused(body: list[str], message: str) -> None:
    operation, *before = body
    refused(on(operation, *before), message)


UNKNOWN = {
    "a part somewhere": (
        [neg("u", "v", SOMEWHERE), somewhere("u", "0"), somewhere("v", "%n")],
        MAY.format("tgraph.negate"),
    ),
    "ranges that meet": (
        [
            loop(
                "%c7 = arith.constant 7 : index",
                *(somewhere("u", "%t"), "%far = arith.addi %t, %c7 : index"),
                *(somewhere("v", "%far"), neg("u", "v", SOMEWHERE)),
                to="%c2",
            )
        ],
        MAY.format("tgraph.negate"),
    ),
    "a part somewhere of one that is known": (
        [neg("u", "v", SOMEWHERE, strided(8)), somewhere("u", "%n"), part("v", 8)],
        MAY.format("tgraph.negate"),
    ),
    "a part that is known of one somewhere": (
        [neg("v", "u", strided(8), SOMEWHERE), somewhere("u", "%n"), part("v", 8)],
        MAY.format("tgraph.negate"),
    ),
    "ranges with one element in common": (
        [
            neg("u", "v", SOMEWHERE),
            "%c7 = arith.constant 7 : index",
            *(somewhere("u", "%c0"), somewhere("v", "%c7")),
        ],
        MAY.format("tgraph.negate"),
    ),
    "ranges with one element in common, the other way": (
        [
            neg("v", "u", SOMEWHERE),
            "%c7 = arith.constant 7 : index",
            *(somewhere("u", "%c0"), somewhere("v", "%c7")),
        ],
        MAY.format("tgraph.negate"),
    ),
    "what a branch yields": (
        [
            each("e", "a", read=REVERSED),
            f"%e = scf.if %p -> ({M}) {{\nscf.yield %a : {M}\n}} else {{\n"
            f"scf.yield %b : {M}\n}}",
        ],
        MAY.format("linalg.generic"),
    ),
    "one of two": (
        [neg("e", "a"), f"%e = arith.select %p, %a, %b : {M}"],
        MAY.format("tgraph.negate"),
    ),
    "into one of two": (
        [neg("a", "e"), f"%e = arith.select %p, %a, %b : {M}"],
        MAY.format("tgraph.negate"),
    ),
    "a region that writes an operand": (
        [
            with_region(f"memref.store %in0, %a[%c0] : {M}", source="a"),
        ],
        WRITE_INSIDE.format("linalg.generic"),
    ),
    "a region that writes a part of an operand": (
        [
            with_region(f"memref.store %in0, %u[%c0] : {strided(8)}", source="a"),
            part("u", 8),
        ],
        WRITE_INSIDE.format("linalg.generic"),
    ),
}


@pytest.mark.parametrize(("body", "told"), UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_overlaps_are_reported(body: list[str], told: str) -> None:
    operation, *before = body
    assert told in unproved(on(operation, *before))


def test_selected_operand_in_other_memory_is_sound() -> None:
    choice = f"%e = arith.select %p, %a, %x : {M}"
    assert unproved(on(neg("e", "b"), choice)) == []


def test_region_that_only_reads_operands() -> None:
    text = on(with_region(f"%more = memref.load %a[%c0] : {M}", source="a"))
    assert unproved(text) == []


G = f"func.func private @g({M}, {M}) -> ()"
CALLS = {
    "two buffers": (["a", "b"], False),
    "one buffer": (["a", "a"], True),
    "the caller's two": (["x", "y"], False),
    "the caller's one": (["x", "x"], True),
    "a buffer and the caller's": (["a", "x"], False),
}


@pytest.mark.parametrize(("given", "is_told"), CALLS.values(), ids=CALLS)
def test_calls(given: list[str], is_told: bool) -> None:
    call = f"func.call @g(%{given[0]}, %{given[1]}) : ({M}, {M}) -> ()"
    assert (TWICE in unproved(on(call, beside=G))) is is_told


def test_calls_with_parts() -> None:
    def call(second: int, of: str = "a") -> str:
        low, high = strided(0), strided(second)
        return on(
            f"func.call @g(%u, %v) : ({low}, {high}) -> ()",
            *(part("u", 0), part("v", second, of=of)),
            beside=f"func.func private @g({low}, {high}) -> ()",
        )

    assert TWICE not in unproved(call(8))
    assert TWICE in unproved(call(7))
    assert TWICE not in unproved(call(7, "b"))


def test_calls_with_three() -> None:
    g = f"func.func private @g({M}, index, {M}, {M}) -> ()"
    call = f"func.call @g(%a, %n, %b, %a) : ({M}, index, {M}, {M}) -> ()"
    assert TWICE in unproved(on(call, beside=g))


# Fusions: the operands that a fusion declares as overwritable are checked.

T, ROW, COLUMN = "tensor<4x4xf32>", "tensor<4xf32>", "tensor<4x1xf32>"


def reduced(dims: str, to: str = ROW, name: str = "s", of: str = "v") -> str:
    return (
        f'%{name} = tgraph.reduce %{of} {{kind = "add", dimensions = array<i64: {dims}>'
        f"}} : ({T}) -> {to}"
    )


def spread(dims: str, source: str = ROW, name: str = "r", of: str = "s") -> str:
    return (
        f"%{name} = tgraph.broadcast_in_dim %{of} {{broadcast_dimensions = "
        f"array<i64{dims and f': {dims}'}>}} : ({source}) -> {T}"
    )


def combined(a: str, b: str, name: str = "u", type: str = T) -> str:
    return f"%{name} = tgraph.add %{a}, %{b} : {type}"


IN_PLACE = {
    "elementwise": [combined("v", "w")],
    "of nothing of it": [combined("w", "w")],
    "with the sum of its row": [reduced("1"), spread("0"), combined("v", "r")],
    "only the sum of its row": [reduced("1"), spread("0", name="u")],
    "with a row that is reshaped by size 1": [
        reduced("1"),
        f"%o = tgraph.broadcast_in_dim %s {{broadcast_dimensions = array<i64: 0>}} : "
        f"({ROW}) -> {COLUMN}",
        spread("0, 1", COLUMN, of="o"),
        combined("v", "r"),
    ],
    "with what is made of the other": [
        reduced("0", of="w"),
        spread("1"),
        combined("v", "r"),
    ],
    "with two sums of its row": [
        *(reduced("1"), spread("0"), combined("v", "r", "k")),
        *(reduced("1", name="s2", of="k"), spread("0", name="r2", of="s2")),
        combined("k", "r2"),
    ],
}
NOT_IN_PLACE = {
    "reversed": [
        f"%r = tgraph.reverse %v {{dimensions = array<i64: 0>}} : {T}",
        combined("r", "w"),
    ],
    "reversed after others": [
        combined("v", "w", "k"),
        f"%r = tgraph.reverse %k {{dimensions = array<i64: 0>}} : {T}",
        combined("r", "w"),
    ],
    "reversed before others": [
        f"%r = tgraph.reverse %v {{dimensions = array<i64: 0>}} : {T}",
        combined("r", "w", "k"),
        combined("k", "v"),
    ],
    "with the sum of its column": [reduced("0"), spread("1"), combined("v", "r")],
    "with the sum of the column of its row's number": [
        *(reduced("0"), spread("0"), combined("v", "r")),
    ],
    "with the sum of another row": [reduced("1"), spread("1"), combined("v", "r")],
    "with its first row, spread over all": [
        "%s = tgraph.slice %v {start_indices = array<i64: 0, 0>, "
        "limit_indices = array<i64: 1, 4>, strides = array<i64: 1, 1>} : "
        f"({T}) -> tensor<1x4xf32>",
        spread("0, 1", "tensor<1x4xf32>"),
        combined("v", "r"),
    ],
    "with rows of two kinds": [
        *(reduced("1"), spread("0")),
        *(reduced("0, 1", "tensor<f32>", "s2"), spread("", "tensor<f32>", "r2", "s2")),
        *(combined("v", "r", "k"), combined("k", "r2")),
    ],
    "transposed": [
        f"%r = tgraph.transpose %v {{permutation = array<i64: 1, 0>}} : {T}",
        combined("r", "w"),
    ],
}


def fusion(body: list[str], target: str = "a") -> str:
    square = f"memref.view %arena[{{}}][] : memref<256xi8> to {SQUARE}"
    return program(
        arena(),
        *(f"%{n} = {square.format(at)}" for n, at in (("a", "%c0"), ("b", "%c64"))),
        *(f"tgraph.constant<0.0 : f32> outs(%{n}) : {SQUARE}" for n in ("a", "b")),
        f"tgraph.fusion(%v = %a, %w = %b) outs(%{target}) : ({SQUARE}, {SQUARE}) -> "
        f"{SQUARE} {{\n{lines(*body)}\ntgraph.yield %u : {T}\n}}",
        free(),
    )


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every fusion declare that its result may overwrite any operand."""
    monkeypatch.setattr(operands, "overwritable", lambda op: (0, 1))


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("body", IN_PLACE.values(), ids=IN_PLACE)
def test_fusions_in_place(body: list[str]) -> None:
    assert unproved(fusion(body)) == []


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("body", NOT_IN_PLACE.values(), ids=NOT_IN_PLACE)
def test_fusions_that_cannot_be_in_place(body: list[str]) -> None:
    refused(fusion(body), "tgraph.fusion " + OVER.format(2, 0))


def test_fusions_with_their_own_declarations() -> None:
    body = NOT_IN_PLACE["reversed"]
    refused(fusion(body), "tgraph.fusion " + OVER.format(2, 0))
    assert unproved(fusion(IN_PLACE["elementwise"])) == []
    assert unproved(fusion(IN_PLACE["elementwise"], "b")) == []


@pytest.mark.usefixtures("declared")
def test_fusions_of_two_rows() -> None:
    text = fusion(NOT_IN_PLACE["with the sum of another row"])
    text = text.replace("4x4", "2x2").replace(ROW, "tensor<2xf32>")
    refused(text, "tgraph.fusion " + OVER.format(2, 0))
