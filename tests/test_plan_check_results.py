"""Tests what `plan-check` proves and refuses for buffers in the memory of arguments:
results, variables, and donated arguments.

%r is a result of 64 bytes, and %q one of 32. Buffer %x has bytes [32, 64) of %r.
"""

import pytest
from unchanged_ir import parsed
from xdsl.dialects.builtin import ModuleOp

from tensorplan.checking.plan_check import check_plan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.support.remarks import REMARKS

HALF, WHOLE = "memref<8xf32>", "memref<16xf32>"
LOWER = "memref<8xf32, strided<[1]>>"
UPPER = "memref<8xf32, strided<[1], offset: 8>>"
RESULT = "{tgraph.result = 3 : i32}"


def module(*lines: str, result: str = f"{WHOLE} {RESULT}") -> ModuleOp:
    head = (
        f"func.func @f(%n: index, %p: i1, %a: {HALF}, %b: {HALF}, %r: {result}, "
        f"%q: {HALF} {{tgraph.result = 5 : i32}}) {{"
    )
    return parsed("\n".join((head, *lines, fill("q", HALF), "func.return\n}")))


def view(name: str, where: str, type: str, of: str = "%r", source: str = WHOLE) -> str:
    return f"%{name} = memref.reinterpret_cast {of} to {where} : {source} to {type}"


def buffer(name: str, where: str, type: str, source: str = WHOLE) -> str:
    return view(name, f"{where} {{tgraph.buffer}}", type, source=source)


def at(offset: int, size: int = 8) -> str:
    return f"offset: [{offset}], sizes: [{size}], strides: [1]"


def fill(name: str, type: str, stream: int | None = None) -> str:
    on = "" if stream is None else f" {{tgraph.stream = {stream} : i32}}"
    return f"tgraph.constant<0.0 : f32> outs(%{name}){on} : {type}"


def negate(source: str, target: str, type: str = UPPER, into: str = HALF) -> str:
    return f"tgraph.negate %{source} outs(%{target}) : ({type}) -> {into}"


X = buffer("x", at(8), UPPER)
USE_X = [X, fill("x", UPPER), negate("x", "b")]
R = fill("r", WHOLE)


def test_pools_of_arena_and_result_are_returned() -> None:
    arena, pool = check_plan(
        module(
            "%zero = arith.constant 0 : index",
            "%arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} "
            ": memref<64xi8>",
            f"%v = memref.view %arena[%zero][] : memref<64xi8> to {HALF}",
            *(*USE_X, negate("b", "v", HALF), R),
        )
    )
    assert (arena.size, arena.alignment, arena.argument) == (64, 64, None)
    assert (pool.size, pool.alignment, pool.device) == (64, 4, "")
    assert pool.argument == "result 3"
    assert [(b.name, b.offset, b.size, list(b.steps)) for b in pool.buffers] == [
        ("%r", 0, 64, [7, 9]),  # until the function's end
        ("%x", 32, 32, [4, 5]),
    ]


def test_donated_argument_without_readers_holds_a_buffer() -> None:
    x = buffer("x", at(0), LOWER).replace("%r", "%d")
    lines = [x, fill("x", LOWER), negate("x", "q", LOWER), "func.return"]
    head = f"func.func @f(%d: {WHOLE} {{tgraph.donated}}, %q: {HALF}) {{"
    (pool,) = check_plan(parsed("\n".join((head, *lines, "}"))))
    assert pool.argument == "argument 0"
    assert [(b.name, list(b.steps)) for b in pool.buffers] == [("%x", [1, 2])]


def test_device_and_unnamed_buffers() -> None:
    text = str(module(*USE_X, R)).replace("%r", "%9").replace("%x", "%8")
    for type in (WHOLE, HALF, UPPER):
        text = text.replace(type, f'{type[:-1]}, "cpu:1">')
    (pool,) = check_plan(parsed(text))
    assert pool.device == "cpu:1"
    assert [b.name for b in pool.buffers] == ["%result_3", "%?"]


def test_buffers_are_in_program_order() -> None:
    y = buffer("y", at(0), LOWER)
    (pool,) = check_plan(module(*USE_X, y, fill("y", LOWER), R))
    assert [b.name for b in pool.buffers] == ["%r", "%x", "%y"]


SOUND = {
    "a result may be read when it is written": [
        *(*USE_X, R, negate("r", "r", WHOLE, WHOLE))
    ],
    "handed to a block": [
        *(*USE_X, f"cf.br ^h(%r : {WHOLE})", f"^h(%k: {WHOLE}):"),
        fill("k", WHOLE),
    ],
    "all of its bytes": [buffer("y", at(0, 16), "memref<16xf32>"), R],
    "the stride of a single element": [
        buffer(
            "y",
            "offset: [0], sizes: [1, 8], strides: [99, 1]",
            "memref<1x8xf32, strided<[99, 1]>>",
        ),
        R,
    ],
    "a view of a buffer": [
        *(*USE_X, view("v", at(8), UPPER, "%x", UPPER), negate("v", "b"), R)
    ],
}


@pytest.mark.parametrize("lines", SOUND.values(), ids=SOUND)
def test_sound(lines: list[str]) -> None:
    assert check_plan(module(*lines))


def of_type(type: str) -> str:
    return f"a buffer in result 3 has type {type}, expected a contiguous one at a st"


FAULTS = {
    "lost to the result": (
        [*USE_X, R, negate("x", "b")],
        r"negate uses buffer %x, whose bytes \[32, 64\) now belong to buffer %r",
    ),
    "lost at the function's end": (
        [X, R, fill("x", UPPER)],
        r"func.return uses buffer %r, whose bytes \[32, 64\) now belong to buffer %x",
    ),
    "on one path": (
        [X, R, "scf.if %p {", fill("x", UPPER), "}"],
        "func.return uses buffer %r",
    ),
    "too high": (
        [buffer("y", at(9), "memref<8xf32, strided<[1], offset: 9>>")],
        r"buffer %y lies in bytes \[36, 68\), expected within result 3's \[0, 64\)",
    ),
    "too low": (
        [buffer("y", at(-1), "memref<8xf32, strided<[1], offset: -1>>")],
        r"buffer %y lies in bytes \[-4, 28\)",
    ),
    "a view reaches after its buffer": (
        [X, view("v", at(9), "memref<8xf32, strided<[1], offset: 9>>", "%x", UPPER)],
        "accesses elements 1 to 8, expected 0 to 7",
    ),
    "a view reaches before its buffer": (
        [X, view("v", at(7), "memref<8xf32, strided<[1], offset: 7>>", "%x", UPPER)],
        "accesses elements -1 to 6, expected 0 to 7",
    ),
    "in an argument": (
        [view("y", f"{at(0)} {{tgraph.buffer}}", HALF, "%a", HALF)],
        "tgraph.buffer is on a view of other memory, expected a view of a result",
    ),
    "a size that is not known": (
        [
            buffer("y", "offset: [0], sizes: [%n], strides: [1]", "memref<?xf32>"),
        ],
        of_type("memref<[?]xf32>").replace("[?]", r"\?"),
    ),
    "an offset that is not known": (
        [
            buffer(
                "y",
                "offset: [%n], sizes: [8], strides: [1]",
                "memref<8xf32, strided<[1], offset: ?>>",
            ),
        ],
        "expected a contiguous one at a static offset",
    ),
    "nobody writes it": (
        [X],
        "func.return returns buffer %r, expected an earlier write",
    ),
    "strides": (
        [
            buffer(
                "y",
                "offset: [0], sizes: [2, 2], strides: [4, 1]",
                "memref<2x2xf32, strided<[4, 1]>>",
            ),
        ],
        "expected a contiguous one at a static offset",
    ),
    "no strides": (
        [buffer("y", at(0), "memref<8xf32, affine_map<(d0) -> (d0)>>")],
        "expected a contiguous one at a static offset",
    ),
}


@pytest.mark.parametrize(("lines", "message"), FAULTS.values(), ids=FAULTS)
def test_refused(lines: list[str], message: str) -> None:
    with pytest.raises(LocatedError, match=message):
        check_plan(module(*lines))


@pytest.mark.parametrize(
    "lines",
    [["scf.if %p {", R, "}"], [view("v", at(8), UPPER), fill("v", UPPER)]],
    ids=["on one path", "in part"],
)
def test_partly_written_results_are_reported(
    lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", REMARKS.name):
        check_plan(module(*lines))
    message = "results that may not be completely written: 1 (func.return)"
    assert message in caplog.text


def test_marked_cast_is_no_buffer() -> None:
    view = f"%v = memref.cast %r {{tgraph.buffer}} : {WHOLE} to memref<?xf32>"
    assert not check_plan(module(view, R))


VARIABLE = f"{WHOLE} {{tgraph.result = 3 : i32, tgraph.variable}}"
DONATED = f"{WHOLE} {{tgraph.donated}}"

W = buffer("w", at(0, 16), WHOLE)
R_TO_W, W_TO_R = negate("r", "w", WHOLE, WHOLE), negate("w", "r", WHOLE, WHOLE)
OLD = [view("h", at(8), UPPER), negate("h", "b")]
"""Lines that read the caller's contents of %r."""
BACKWARDS = "memref<16xf32, strided<[-1], offset: 15>>"
REVERSED = view("v", "offset: [15], sizes: [16], strides: [-1]", BACKWARDS)


REUSED = {
    "between the contents of a variable": (VARIABLE, [*OLD, *USE_X, R]),
    "where nobody reads the old ones": (VARIABLE, [*USE_X, R]),
    "after the contents of what is donated": (DONATED, [*OLD, *USE_X]),
    "computed from the old ones, and the new ones from that": (
        VARIABLE,
        [W, R_TO_W, W_TO_R],
    ),
    "computed from what is donated": (DONATED, [W, R_TO_W, *OLD[:1]]),
    "computed twice from it": (
        DONATED,
        [W, f"tgraph.add %r, %r outs(%w) : {WHOLE}", negate("w", "w", WHOLE, WHOLE)],
    ),
    "a result computed from it": (
        f"{WHOLE} {RESULT}",
        [W, fill("w", WHOLE), W_TO_R],
    ),
}


@pytest.mark.parametrize(("result", "lines"), REUSED.values(), ids=REUSED)
def test_buffers_that_may_lie_in_arguments(result: str, lines: list[str]) -> None:
    (pool,) = check_plan(module(*lines, result=result))
    assert pool.argument == ("result 3" if RESULT in result else "argument 4")


NOT_REUSED = {
    "old contents are read later": (
        VARIABLE,
        [*USE_X, *OLD, R],
        r"negate uses buffer %r, whose bytes \[32, 64\) now belong to buffer %x",
    ),
    "old contents are read again": (
        VARIABLE,
        [W, R_TO_W, *OLD, W_TO_R],
        "negate uses buffer %r, whose bytes .* now belong to buffer %w",
    ),
    "what is donated is read later": (
        DONATED,
        [*USE_X, *OLD],
        "negate uses buffer %r, whose bytes",
    ),
    "nobody writes the new contents": (
        VARIABLE,
        [*OLD, *USE_X],
        "func.return uses buffer %r, whose bytes",
    ),
    "used after the new contents": (
        VARIABLE,
        [W, R_TO_W, W_TO_R, negate("w", "w", WHOLE, WHOLE)],
        "negate uses buffer %w, whose bytes .* now belong to buffer %r",
    ),
    "part of the new contents": (
        VARIABLE,
        [W, R_TO_W, negate("w", "r", WHOLE, WHOLE), fill("x", UPPER)],
        "func.return uses buffer %r, whose bytes",
    ),
    "computed elsewhere than where it is read": (
        DONATED,
        [X, view("h", at(8), UPPER), negate("h", "x", UPPER, UPPER)],
        "negate uses buffer %r, whose bytes .* now belong to buffer %x",
    ),
    "overwritten before all is read": (
        DONATED,
        [W, f"tgraph.reverse %r outs(%w) {{dimensions = array<i64: 0>}} : {WHOLE}"],
        "reverse writes operand 1 over operand 0 before reading all of it",
    ),
    "read in another order as well": (
        DONATED,
        [
            *(W, REVERSED),
            f"tgraph.add %r, %v outs(%w) : ({WHOLE}, {BACKWARDS}) -> {WHOLE}",
        ],
        "add writes operand 2 over part of operand 1",
    ),
}


@pytest.mark.parametrize(
    ("result", "lines", "message"), NOT_REUSED.values(), ids=NOT_REUSED
)
def test_buffers_that_must_not_lie_in_arguments(
    result: str, lines: list[str], message: str
) -> None:
    lines = [X, *lines] if X not in lines else lines
    with pytest.raises(LocatedError, match=message):
        check_plan(module(*lines, result=result))


def test_results_with_a_layout_hold_no_buffers() -> None:
    type = "memref<16xf32, strided<[2]>>"
    with pytest.raises(LocatedError, match=r"test.mlir.*result 3 has type .*no layout"):
        check_plan(module(buffer("x", at(8), UPPER, type), result=f"{type} {RESULT}"))


@pytest.mark.parametrize("last", ["r", "x"])
def test_streams_must_be_ordered_in_a_result(last: str) -> None:
    """Without a dependency, either operation may run during the other."""
    lines = [fill("x", UPPER, 1), fill("r", WHOLE, 2)]
    with pytest.raises(LocatedError, match=r"test.mlir:.*%[rx] share bytes \[32, 64\)"):
        check_plan(module(X, *lines))
