"""Tests each rule of `plan-check` on handwritten IR: sound programs and planted faults.

Each body is placed in a function that has two memrefs as arguments, an arena of 256
bytes with alignment 64, and buffers of 64 bytes: %a and %b at offset 0, %c at offset
64, and %d in bytes [32, 96).
"""

import pytest
from unchanged_ir import parsed
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.checking.plan_check import PlannedPool, check_plan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.frontends.mlir_text import parse_module
from tensorplan.passes.plan.check import PlanCheck

CONTEXT = tensorplan.context()
ARENA = 'memref<256xi8, "cpu:0">'
BUFFER = 'memref<16xf32, "cpu:0">'
BUFFERS = f"{BUFFER}, {BUFFER}"
EMPTY = 'memref<0xf32, "cpu:0">'
BACKWARDS = 'memref<16xf32, strided<[-1], offset: 15>, "cpu:0">'
HEAD = f"""
func.func @f(%n: index, %p: i1, %x: {BUFFER}, %y: {BUFFER}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
"""
TAIL = "func.return\n}"


def arena(alignment: int = 64, name: str = "arena") -> str:
    marks = f"{{alignment = {alignment} : i64, tgraph.arena}}"
    return f"%{name} = memref.alloc() {marks} : {ARENA}"


def view(
    name: str, offset: str = "%zero", type: str = BUFFER, of: str = "%arena"
) -> str:
    return f"%{name} = memref.view {of}[{offset}][] : {ARENA} to {type}"


def copy(source: str, target: str) -> str:
    return f'"memref.copy"(%{source}, %{target}) : ({BUFFER}, {BUFFER}) -> ()'


def negate(source: str, target: str, stream: int | None = None) -> str:
    on = "" if stream is None else f" {{tgraph.stream = {stream} : i32}}"
    return f"tgraph.negate %{source} outs(%{target}){on} : {BUFFER}"


def reverse(source: str, target: str) -> str:
    dims = "{dimensions = array<i64: 0>}"
    return f"tgraph.reverse %{source} outs(%{target}) {dims} : {BUFFER}"


FREE = f"memref.dealloc %arena : {ARENA}"
CHOSEN = f"%s = arith.select %p, %a, %b : {BUFFER}"
A, B, C = view("a"), view("b"), view("c", "%c64")


def module(*lines: str) -> ModuleOp:
    text = "\n".join((HEAD, *lines))
    text += "\n}" if lines[-1].startswith("func.return") else f"\n{TAIL}"
    return parsed(text)


def part(first: int, size: int, step: int, type: str) -> str:
    """Makes %v, a view of %a."""
    where = f"offset: [{first}], sizes: [{size}], strides: [{step}]"
    return f"%v = memref.reinterpret_cast %a to {where} : {BUFFER} to {type}"


def carried() -> str:
    """Opens a loop that carries buffer %k, initially %a, and returns the last one as
    %r."""
    loop = "scf.for %i = %zero to %n step %one"
    return f"%r = {loop} iter_args(%k = %a) -> ({BUFFER}) {{"


def replacing(*lines: str, at: str = "%zero") -> list[str]:
    """Lines that end with a loop whose body replaces the carried buffer %k by %b."""
    given = [A, copy("x", "a"), carried(), view("b", at), *lines]
    return [*given, f"scf.yield %b : {BUFFER}", "}", copy("r", "y")]


def for_of_two(first: str, second: str) -> str:
    loop = "scf.for %i = %zero to %n step %one"
    return f"%r:2 = {loop} iter_args(%k = %{first}, %l = %{second}) -> ({BUFFERS}) {{"


def while_of_two(first: str, second: str) -> str:
    given = f"(%k = %{first}, %l = %{second})"
    return f"%r:2 = scf.while {given} : ({BUFFERS}) -> ({BUFFERS}) {{"


def loop(*lines: str) -> str:
    return "\n".join(("scf.for %i = %zero to %n step %one {", *lines, "}"))


def branch(then: list[str], other: list[str]) -> str:
    return "\n".join(("scf.if %p {", *then, "} else {", *other, "}"))


def repeat(before: list[str], after: list[str]) -> str:
    return "\n".join(
        (
            "scf.while : () -> () {",
            *before,
            "scf.condition(%p)",
            "} do {",
            *after,
            "scf.yield",
            "}",
        )
    )


SOUND = {
    "one after the other": [
        A,
        copy("x", "a"),
        copy("a", "y"),
        B,
        copy("x", "b"),
        copy("b", "y"),
    ],
    "side by side": [
        A,
        C,
        copy("x", "a"),
        copy("x", "c"),
        copy("a", "y"),
        copy("c", "y"),
    ],
    "overwritten as a whole": [
        A,
        B,
        copy("x", "a"),
        copy("x", "b"),
        copy("x", "a"),
        copy("a", "y"),
    ],
    "a fill overwrites": [
        A,
        B,
        copy("x", "a"),
        copy("x", "b"),
        "%f = arith.constant 0.0 : f32",
        f'"linalg.fill"(%f, %a) <{{operandSegmentSizes = array<i32: 1, 1>}}> ({{'
        "^bb0(%e: f32, %g: f32): linalg.yield %e : f32}) "
        f": (f32, {BUFFER}) -> ()",
        copy("a", "y"),
    ],
    "computed over another": [A, B, copy("x", "a"), negate("a", "b"), copy("b", "y")],
    "computed over what is forwarded": replacing(negate("k", "b")),
    "computed over what is forwarded, in one branch": [
        *(A, copy("x", "a"), f"%r = scf.if %p -> ({BUFFER}) {{", B, negate("a", "b")),
        *(f"scf.yield %b : {BUFFER}", "} else {", f"scf.yield %a : {BUFFER}", "}"),
        copy("r", "y"),
    ],
    "one of two at one place": [A, B, CHOSEN, copy("x", "s"), copy("s", "y")],
    "in place": [A, copy("x", "a"), negate("a", "a"), copy("a", "y")],
    "never used": [A, B],
    "empty buffers share": [
        view("e", "%zero", EMPTY),
        A,
        copy("x", "a"),
        f"tgraph.constant<0.0 : f32> outs(%e) : {EMPTY}",
        copy("a", "y"),
    ],
    "an empty buffer takes nothing": [
        *(A, view("e", "%zero", EMPTY), copy("x", "a")),
        f"tgraph.constant<0.0 : f32> outs(%e) : {EMPTY}",
        copy("a", "y"),
    ],
    "either a buffer or other memory is read": [
        *(A, f"%s = arith.select %p, %a, %x : {BUFFER}", copy("s", "y")),
    ],
    "a loop forwards other memory": [
        *(A, carried(), f"scf.yield %x : {BUFFER}", "}", copy("r", "y")),
    ],
    "the other arena is used on": [
        *(arena(name="other"), A, view("o", of="%other")),
        *(copy("x", "a"), copy("x", "o"), copy("a", "y"), FREE, copy("o", "y")),
    ],
    "a region that never ends": [
        *(A, copy("x", "a"), "scf.execute_region {", "cf.br ^l", "^l:", "cf.br ^l"),
        *("}", copy("a", "y")),
    ],
    "what an unknown operation does first is unknown": [
        *(A, f'"test.op"(%a) : ({BUFFER}) -> ()', copy("a", "y")),
    ],
    "what is forwarded is not used yet": [
        *(A, B, copy("x", "a"), copy("x", "b"), carried()),
        *(f"scf.yield %k : {BUFFER}", "}", copy("b", "y")),
    ],
    "nor is it in an unknown region": [
        *(A, B, copy("x", "a"), copy("x", "b"), '"test.op"() ({', carried()),
        *(f"scf.yield %k : {BUFFER}", "}", '"test.termop"() : () -> ()'),
        *("}) : () -> ()", copy("b", "y")),
    ],
    "given back to who gives nothing": [
        *(A, '"test.op"() ({', copy("x", "a")),
        f'"test.termop"(%a) : ({BUFFER}) -> ()\n}}) : () -> ()',
    ],
    "made in front of where it is forwarded": [
        *(C, copy("x", "c"), f"cf.cond_br %p, ^l, ^h(%c : {BUFFER})", "^l:"),
        *("cf.br ^m", "^m:", A, copy("x", "a"), f"cf.br ^h(%a : {BUFFER})"),
        *(f"^h(%k: {BUFFER}):", copy("k", "y")),
    ],
    "carried by a while at other places": [
        *(A, B, C, copy("x", "a"), copy("x", "c"), while_of_two("c", "a")),
        *(copy("x", "b"), copy("k", "y"), f"scf.condition(%p) %k, %l : {BUFFERS}"),
        *("} do {", f"^bb0(%m: {BUFFER}, %o: {BUFFER}):", copy("m", "y")),
        *(f"scf.yield %m, %o : {BUFFERS}", "}", copy("r#0", "y")),
    ],
    "branches share": [
        A,
        B,
        branch([copy("x", "a"), copy("a", "y")], [copy("x", "b"), copy("b", "y")]),
    ],
    "both branches write": [
        A,
        B,
        copy("x", "b"),
        branch([copy("x", "a")], [copy("x", "a")]),
        copy("a", "y"),
    ],
    "a loop writes before it reads": [
        A,
        B,
        loop(copy("x", "a"), copy("a", "y"), copy("x", "b"), copy("b", "y")),
    ],
    "made in the loop": [
        loop(A, copy("x", "a"), copy("a", "y"), B, copy("x", "b"), copy("b", "y"))
    ],
    "in a while": [
        A,
        B,
        repeat([copy("x", "a"), copy("a", "y")], [copy("x", "b"), copy("b", "y")]),
    ],
    "an execute_region": [
        A,
        "scf.execute_region {",
        copy("x", "a"),
        "scf.yield",
        "}",
        copy("a", "y"),
    ],
    "blocks": [
        A,
        B,
        "cf.cond_br %p, ^l, ^r",
        "^l:",
        copy("x", "a"),
        copy("a", "y"),
        "cf.br ^e",
        "^r:",
        copy("x", "b"),
        copy("b", "y"),
        "cf.br ^e",
        "^e:",
    ],
    "a loop of blocks": [
        A,
        "cf.br ^h",
        "^h:",
        copy("x", "a"),
        copy("a", "y"),
        "cf.cond_br %p, ^h, ^e",
        "^e:",
    ],
    "a view of a view": [
        A,
        copy("x", "a"),
        part(15, 16, -1, BACKWARDS),
        f"tgraph.negate %v outs(%y) : ({BACKWARDS}) -> {BUFFER}",
    ],
    "freed after the last use": [A, copy("x", "a"), copy("a", "y"), FREE],
    "held on to by what frees another": [
        *(A, copy("x", "a")),
        '%o = "bufferization.dealloc"(%y, %p, %a) <{operandSegmentSizes = '
        f"array<i32: 1, 1, 1>}}> : ({BUFFER}, i1, {BUFFER}) -> i1",
        FREE,
    ],
    "freed on one side": [
        A,
        copy("x", "a"),
        copy("a", "y"),
        "cf.cond_br %p, ^l, ^e",
        "^l:",
        FREE,
        "cf.br ^e",
        "^e:",
    ],
    "either of two": [
        A,
        C,
        copy("x", "a"),
        copy("x", "c"),
        f"%s = arith.select %p, %a, %c : {BUFFER}",
        copy("s", "y"),
    ],
    "written on one path": [A, branch([copy("x", "a")], []), copy("a", "y")],
    "a while runs once at least": [
        *(A, B, copy("x", "a"), copy("x", "b")),
        *(repeat([copy("x", "a")], []), copy("a", "y")),
    ],
    "a layout that is not known": [
        *(A, copy("x", "a")),
        f"%v = memref.cast %a : {BUFFER} to "
        'memref<16xf32, strided<[?], offset: ?>, "cpu:0">',
        f"%w = memref.cast %a : {BUFFER} to "
        'memref<16xf32, strided<[99], offset: ?>, "cpu:0">',
    ],
    "strides that are not known": [
        *(A, copy("x", "a")),
        f"%v = memref.cast %a : {BUFFER} to "
        'memref<16x1xf32, strided<[99, ?], offset: 0>, "cpu:0">',
    ],
    "a layout that is no strides": [
        *(A, copy("x", "a")),
        f"%v = memref.cast %a : {BUFFER} to "
        'memref<16xf32, affine_map<(d0) -> (d0 * 99)>, "cpu:0">',
    ],
    "what a region is given may be larger": [
        *(A, copy("x", "a"), '"test.op"(%a) ({', '^bb0(%k: memref<32xf32, "cpu:0">):'),
        f'"test.termop"() : () -> ()\n}}) : ({BUFFER}) -> ()',
    ],
    "a rank that is not known": [
        A,
        copy("x", "a"),
        f'%v = memref.cast %a : {BUFFER} to memref<*xf32, "cpu:0">',
    ],
    "every second element": [A, part(0, 8, 2, 'memref<8xf32, strided<[2]>, "cpu:0">')],
    "no element": [
        A,
        part(99, 0, 9, 'memref<0xf32, strided<[9], offset: 99>, "cpu:0">'),
    ],
    "another arena is freed": [
        *(
            arena(name="other"),
            A,
            view("o", of="%other"),
            copy("x", "a"),
            copy("x", "o"),
        ),
        *(copy("o", "y"), f"memref.dealloc %other : {ARENA}", copy("a", "y")),
    ],
    "blocks in a region": [
        *(A, "scf.execute_region {", "cf.cond_br %p, ^l, ^m", "^l:"),
        *(copy("x", "a"), copy("a", "y"), "cf.br ^m", "^m:", "scf.yield", "}"),
    ],
    "the last byte": [view("z", "%c128", 'memref<32xf32, "cpu:0">')],
    "forwarded": [
        A,
        copy("x", "a"),
        carried(),
        copy("k", "y"),
        f"scf.yield %k : {BUFFER}",
        "}",
        copy("r", "y"),
    ],
}

FAULTS = {
    "a buffer that lost its bytes": (
        [A, B, copy("x", "a"), copy("x", "b"), copy("a", "y")],
        r"memref.copy uses buffer %a, whose bytes \[0, 64\) now belong to buffer %b",
    ),
    "a part of its bytes": (
        [A, view("d", "%c32"), copy("x", "a"), copy("x", "d"), copy("a", "y")],
        r"uses buffer %a, whose bytes \[32, 64\) now belong to buffer %d",
    ),
    "two at a time": (
        [*(A, view("d", "%c32"), copy("x", "a")), negate("a", "d")],
        r"tgraph.negate uses buffer %a, whose bytes \[32, 64\) now belong to buffer %d",
    ),
    "computed over another in another order": (
        [A, B, copy("x", "a"), reverse("a", "b")],
        "tgraph.reverse writes operand 1 over operand 0 before reading all of it",
    ),
    "computed over another that is read later": (
        [A, B, copy("x", "a"), negate("a", "b"), copy("a", "y")],
        r"memref.copy uses buffer %a, whose bytes \[0, 64\) now belong to buffer %b",
    ),
    "computed over another that is read later by another name": (
        [A, B, CHOSEN, copy("x", "a"), negate("a", "b"), copy("s", "y")],
        r"memref.copy uses buffer %a, whose bytes \[0, 64\) now belong to buffer %b",
    ),
    "computed over what is forwarded, in another order": (
        replacing(reverse("k", "b")),
        "tgraph.reverse writes operand 1 over operand 0 before reading all of it",
    ),
    "computed over what is forwarded and read later": (
        replacing(negate("k", "b"), copy("k", "y")),
        "memref.copy uses buffer %a, whose bytes",
    ),
    "computed over what is forwarded and is read through a view": (
        replacing(
            f"%v = memref.reinterpret_cast %k to offset: [15], sizes: [16], "
            f"strides: [-1] : {BUFFER} to {BACKWARDS}",
            f"tgraph.add %k, %v outs(%b) : ({BUFFER}, {BACKWARDS}) -> {BUFFER}",
        ),
        "tgraph.add writes operand 2 over part of operand 1, expected separate memory",
    ),
    "computed over a part of what is forwarded": (
        replacing(negate("k", "b"), at="%c32"),
        "tgraph.negate uses buffer %a, whose bytes",
    ),
    "computed over what is forwarded and is still another's": (
        [*replacing(negate("k", "b"))[:-1], copy("a", "y")],
        "memref.copy uses buffer %a, whose bytes",
    ),
    "lost to one that has lost its own": (
        [
            *(A, view("d", "%c32"), C, copy("x", "a"), copy("x", "d"), copy("x", "c")),
            copy("a", "y"),
        ],
        "memref.copy uses buffer %a, whose bytes may now belong to another buffer",
    ),
    "partly overwritten is not overwritten": (
        [
            A,
            B,
            copy("x", "a"),
            copy("x", "b"),
            part(0, 8, 1, 'memref<8xf32, "cpu:0">'),
            'tgraph.constant<0.0 : f32> outs(%v) : memref<8xf32, "cpu:0">',
        ],
        "uses buffer %a, whose bytes",
    ),
    "read where it is overwritten": (
        [A, B, copy("x", "a"), copy("x", "b"), negate("a", "a")],
        "tgraph.negate uses buffer %a, whose bytes",
    ),
    "copied onto itself": (
        [A, B, copy("x", "a"), copy("x", "b"), copy("a", "a")],
        "memref.copy uses buffer %a, whose bytes",
    ),
    "overwritten with a part of itself": (
        [
            *(A, B, copy("x", "a"), copy("x", "b"), part(15, 16, -1, BACKWARDS)),
            f'"memref.copy"(%v, %a) : ({BACKWARDS}, {BUFFER}) -> ()',
        ],
        "memref.copy uses buffer %a, whose bytes",
    ),
    "read in the region of what overwrites": (
        [
            *(A, B, copy("x", "a"), copy("x", "b"), "%f = arith.constant 0.0 : f32"),
            '"linalg.fill"(%f, %y) <{operandSegmentSizes = array<i32: 1, 1>}> ({',
            f"^bb0(%e: f32, %g: f32): %l = memref.load %a[%zero] : {BUFFER}",
            f"linalg.yield %l : f32 }}) : (f32, {BUFFER}) -> ()",
        ],
        "linalg.fill uses buffer %a, whose bytes",
    ),
    "the one of two that lost its bytes": (
        [
            *(A, C, view("e", "%c64"), copy("x", "a"), copy("x", "c"), copy("x", "e")),
            f"tgraph.add %a, %c outs(%y) : ({BUFFER}, {BUFFER}) -> {BUFFER}",
        ],
        r"uses buffer %c, whose bytes \[64, 128\) now belong to buffer %e",
    ),
    "the two of three that share bytes": (
        [
            *(view("a", "%c128"), C, view("d", "%c32"), copy("x", "a"), copy("x", "c")),
            f"tgraph.add %a, %c outs(%d) : ({BUFFER}, {BUFFER}) -> {BUFFER}",
        ],
        r"uses buffer %c, whose bytes \[64, 96\) now belong to buffer %d",
    ),
    "the one of two whose arena was freed": (
        [
            *(arena(name="other"), A, view("o", of="%other")),
            *(copy("x", "a"), copy("x", "o"), f"memref.dealloc %other : {ARENA}"),
            f"tgraph.add %a, %o outs(%y) : ({BUFFER}, {BUFFER}) -> {BUFFER}",
        ],
        "uses buffer %o after its arena was freed",
    ),
    "lost in the last block of a region": (
        [
            *(A, B, copy("x", "a"), "scf.execute_region {", "cf.br ^l", "^l:"),
            *(copy("x", "b"), "scf.yield", "}", copy("a", "y")),
        ],
        "uses buffer %a, whose bytes",
    ),
    "lost on one path": (
        [A, B, copy("x", "a"), branch([copy("x", "b")], []), copy("a", "y")],
        "uses buffer %a, whose bytes",
    ),
    "lost on the other path": (
        [A, B, copy("x", "a"), branch([], [copy("x", "b")]), copy("a", "y")],
        "uses buffer %a, whose bytes",
    ),
    "lost in the iteration before": (
        [A, B, copy("x", "a"), loop(copy("a", "y"), copy("x", "b"))],
        "uses buffer %a, whose bytes",
    ),
    "lost in the loop": (
        [A, B, copy("x", "a"), loop(copy("x", "b")), copy("a", "y")],
        "uses buffer %a, whose bytes",
    ),
    "lost in the loop's second part": (
        [A, B, copy("x", "a"), repeat([copy("a", "y")], [copy("x", "b")])],
        "uses buffer %a, whose bytes",
    ),
    "lost in the loop's first part": (
        [A, B, copy("x", "a"), repeat([copy("x", "b")], [copy("a", "y")])],
        "uses buffer %a, whose bytes",
    ),
    "lost after a while": (
        [A, B, copy("x", "a"), repeat([copy("x", "b")], []), copy("a", "y")],
        "uses buffer %a, whose bytes",
    ),
    "lost in an execute_region": (
        [
            A,
            B,
            copy("x", "a"),
            "scf.execute_region {",
            copy("x", "b"),
            "scf.yield",
            "}",
            copy("a", "y"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "lost in a block": (
        [
            A,
            B,
            copy("x", "a"),
            "cf.cond_br %p, ^l, ^e",
            "^l:",
            copy("x", "b"),
            "cf.br ^e",
            "^e:",
            copy("a", "y"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "lost in a loop of blocks": (
        [
            A,
            B,
            copy("x", "a"),
            "cf.br ^h",
            "^h:",
            copy("a", "y"),
            copy("x", "b"),
            "cf.cond_br %p, ^h, ^e",
            "^e:",
        ],
        "uses buffer %a, whose bytes",
    ),
    "a tensor operation reads before": (
        [A, negate("a", "y")],
        "reads buffer %a, expected an earlier write",
    ),
    "a tensor operation reads what one path writes": (
        [A, branch([copy("x", "a")], []), negate("a", "y")],
        "reads buffer %a, expected an earlier write on every path",
    ),
    "a tensor operation reads more than is written": (
        [
            *(A, part(0, 8, 1, 'memref<8xf32, "cpu:0">')),
            'tgraph.constant<0.0 : f32> outs(%v) : memref<8xf32, "cpu:0">',
            negate("a", "y"),
        ],
        "tgraph.negate reads all 64 bytes of buffer %a, of which at most 32 were",
    ),
    "used after its arena's end": (
        [A, copy("x", "a"), FREE, copy("a", "y")],
        "uses buffer %a after its arena was freed",
    ),
    "made after its arena's end": (
        [A, FREE, C],
        "is created after its arena was freed",
    ),
    "freed in the iteration before": (
        [A, loop(copy("x", "a"), FREE)],
        "uses buffer %a after its arena was freed",
    ),
    "freed on one path": (
        [
            A,
            "cf.cond_br %p, ^l, ^e",
            "^l:",
            FREE,
            "cf.br ^e",
            "^e:",
            copy("x", "a"),
        ],
        "uses buffer %a after its arena was freed",
    ),
    "freed itself": (
        [A, copy("x", "a"), f"memref.dealloc %a : {BUFFER}"],
        "memref.dealloc frees buffer %a, expected only its arena to be freed",
    ),
    "above the arena": (
        [view("z", "%c224")],
        r"buffer %z lies in bytes \[224, 288\), expected within the arena's \[0, 256\)",
    ),
    "below the arena": ([view("z", "%less")], r"buffer %z lies in bytes \[-64, 0\)"),
    "misaligned": (
        [view("z", "%c32")],
        "buffer %z has offset 32, expected a multiple of the arena's alignment, 64",
    ),
    "an offset not known": (
        [view("z", "%n")],
        "the offset of buffer %z is unknown",
    ),
    "the arena itself": (
        [A, copy("x", "a"), f'"test.op"(%arena) : ({ARENA}) -> ()', copy("a", "y")],
        r"uses buffer %a, whose bytes \[0, 64\) now belong to buffer %arena",
    ),
    "the arena is returned": (
        [A, copy("x", "a"), f"func.return %arena : {ARENA}"],
        "func.return forwards a buffer of an arena, expected no buffer to outlive "
        "its arena",
    ),
    "a view of a view too high": (
        [
            A,
            part(1, 16, 1, 'memref<16xf32, strided<[1], offset: 1>, "cpu:0">'),
        ],
        "accesses elements 1 to 16, expected 0 to 15",
    ),
    "a view of a view too low": (
        [
            A,
            part(14, 16, -1, 'memref<16xf32, strided<[-1], offset: 14>, "cpu:0">'),
        ],
        "memref.reinterpret_cast accesses elements -1 to 14, expected 0 to",
    ),
    "a size not known": (
        [
            '%size = "test.op"() : () -> index',
            '%z = memref.view %arena[%zero][%size] : memref<256xi8, "cpu:0"> to '
            'memref<?xf32, "cpu:0">',
        ],
        "memref.view: .*(has no static size|is unknown)",
    ),
    "passed on": (
        [A, copy("x", "a"), f"func.return %a : {BUFFER}"],
        "func.return forwards a buffer of an arena, expected no buffer to outlive "
        "its arena",
    ),
    "either of two has lost": (
        [
            A,
            B,
            C,
            copy("x", "a"),
            copy("x", "c"),
            f"%s = arith.select %p, %a, %c : {BUFFER}",
            copy("x", "b"),
            copy("s", "y"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "either of two is overwritten": (
        [
            A,
            B,
            C,
            copy("x", "a"),
            copy("x", "c"),
            f"%s = arith.select %p, %a, %c : {BUFFER}",
            copy("x", "b"),
            copy("x", "s"),
            copy("a", "y"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "forwarded and made anew": (
        [
            *(C, copy("x", "c"), f"cf.br ^h(%c : {BUFFER})", f"^h(%k: {BUFFER}):"),
            *(A, copy("x", "a"), copy("k", "y")),
            *(f"cf.cond_br %p, ^h(%a : {BUFFER}), ^e", "^e:"),
        ],
        "memref.copy uses buffer %a, whose bytes may now belong to another",
    ),
    "lost in a block of a region": (
        [
            *(A, B, copy("x", "a"), "scf.execute_region {", "cf.cond_br %p, ^l, ^m"),
            *("^l:", copy("x", "b"), "cf.br ^m", "^m:", "scf.yield", "}"),
            copy("a", "y"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "a loop may run no iteration": (
        [A, B, copy("x", "a"), copy("x", "b"), loop(copy("x", "a")), copy("a", "y")],
        "uses buffer %a, whose bytes",
    ),
    "an unknown region may not run": (
        [
            *(A, B, copy("x", "a"), copy("x", "b"), '"test.op"() ({', copy("x", "a")),
            *('"test.termop"() : () -> ()', "}) : () -> ()"),
        ],
        "test.op uses buffer %a, whose bytes",
    ),
    "every second element, one too many": (
        [A, part(0, 9, 2, 'memref<9xf32, strided<[2]>, "cpu:0">')],
        "accesses elements 0 to 16, expected 0 to",
    ),
    "the last element and one more": (
        [A, part(15, 2, 1, 'memref<2xf32, strided<[1], offset: 15>, "cpu:0">')],
        "accesses elements 15 to 16, expected 0 to",
    ),
    "the other arena is freed": (
        [
            *(arena(name="other"), A, view("o", of="%other"), copy("x", "o")),
            *(f"memref.dealloc %other : {ARENA}", copy("o", "y")),
        ],
        "uses buffer %o after its arena was freed",
    ),
    "carried and lost": (
        [
            A,
            B,
            copy("x", "a"),
            carried(),
            copy("x", "b"),
            f"scf.yield %k : {BUFFER}",
            "}",
            copy("r", "y"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "given by a branch and lost": (
        [
            A,
            B,
            C,
            copy("x", "a"),
            copy("x", "c"),
            f"%r = scf.if %p -> ({BUFFER}) {{",
            f"scf.yield %a : {BUFFER}",
            "} else {",
            f"scf.yield %c : {BUFFER}",
            "}",
            copy("x", "b"),
            copy("r", "y"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "carried by a while and lost": (
        [
            A,
            B,
            copy("x", "a"),
            f"%r = scf.while (%k = %a) : ({BUFFER}) -> {BUFFER} {{",
            f"scf.condition(%p) %k : {BUFFER}",
            "} do {",
            f"^bb0(%m: {BUFFER}):",
            copy("x", "b"),
            copy("m", "y"),
            f"scf.yield %m : {BUFFER}",
            "}",
        ],
        "uses buffer %a, whose bytes",
    ),
    "carried by a while to its first part": (
        [
            *(A, B, C, copy("x", "a"), copy("x", "c"), while_of_two("c", "a")),
            *(copy("x", "b"), copy("l", "y"), f"scf.condition(%p) %k, %l : {BUFFERS}"),
            *("} do {", f"^bb0(%m: {BUFFER}, %o: {BUFFER}):"),
            *(f"scf.yield %c, %c : {BUFFERS}", "}"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "carried by a while to its second part": (
        [
            *(A, B, C, copy("x", "a"), copy("x", "c"), while_of_two("c", "a")),
            f"scf.condition(%p) %k, %l : {BUFFERS}",
            *("} do {", f"^bb0(%m: {BUFFER}, %o: {BUFFER}):"),
            *(copy("x", "b"), copy("o", "y"), f"scf.yield %m, %o : {BUFFERS}", "}"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "carried back by a while": (
        [
            *(A, B, C, copy("x", "a"), copy("x", "c"), while_of_two("c", "c")),
            *(copy("l", "y"), f"scf.condition(%p) %k, %l : {BUFFERS}"),
            *("} do {", f"^bb0(%m: {BUFFER}, %o: {BUFFER}):"),
            *(copy("x", "b"), f"scf.yield %m, %a : {BUFFERS}", "}"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "carried second": (
        [
            *(A, B, C, copy("x", "a"), copy("x", "c"), for_of_two("c", "a")),
            *(copy("l", "y"), copy("x", "b"), f"scf.yield %k, %l : {BUFFERS}", "}"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "carried on second": (
        [
            *(A, B, C, copy("x", "c"), for_of_two("c", "c")),
            *(copy("l", "y"), copy("x", "a"), copy("x", "b")),
            *(f"scf.yield %k, %a : {BUFFERS}", "}"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "given by an unknown operation": (
        [
            *(A, B, copy("x", "a"), f'%v = "other.op"(%a) : ({BUFFER}) -> {BUFFER}'),
            *(copy("x", "b"), copy("v", "y")),
        ],
        "uses buffer %a, whose bytes",
    ),
    "used by an unknown operation": (
        [
            *(A, B, copy("x", "a"), copy("x", "b")),
            f'"other.op"(%a) : ({BUFFER}) -> ()',
        ],
        "other.op uses buffer %a, whose bytes",
    ),
    "an unknown region may use what its operation is given": (
        [
            *(A, B, copy("x", "a"), copy("x", "b"), '%v = "test.op"(%a) ({'),
            f'"test.termop"() : () -> ()\n}}) : ({BUFFER}) -> {BUFFER}',
        ],
        "test.op uses buffer %a, whose bytes",
    ),
    "made anew after where it is forwarded": (
        [
            *(C, copy("x", "c"), f"cf.br ^h(%c : {BUFFER})", f"^h(%k: {BUFFER}):"),
            *("cf.cond_br %p, ^m, ^e", "^m:", A, copy("x", "a"), copy("k", "y")),
            *(f"cf.br ^h(%a : {BUFFER})", "^e:"),
        ],
        "memref.copy uses buffer %a, whose bytes may now belong to another",
    ),
    "after a while": (
        [
            A,
            B,
            copy("x", "a"),
            f"%r = scf.while (%k = %a) : ({BUFFER}) -> {BUFFER} {{",
            f"scf.condition(%p) %k : {BUFFER}",
            "} do {",
            f"^bb0(%m: {BUFFER}):",
            f"scf.yield %m : {BUFFER}",
            "}",
            copy("x", "b"),
            copy("r", "y"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "handed to a block and lost": (
        [
            A,
            B,
            copy("x", "a"),
            f"cf.br ^g(%a : {BUFFER})",
            f"^g(%k: {BUFFER}):",
            copy("x", "b"),
            copy("k", "y"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "handed to the first of two blocks": (
        [
            *(A, B, C, copy("x", "a"), copy("x", "c")),
            f"cf.cond_br %p, ^l(%a : {BUFFER}), ^r(%c : {BUFFER})",
            *(f"^l(%k: {BUFFER}):", copy("x", "b"), copy("k", "y"), "cf.br ^e"),
            *(f"^r(%m: {BUFFER}):", copy("m", "y"), "cf.br ^e", "^e:"),
        ],
        "uses buffer %a, whose bytes",
    ),
    "handed to the second of two blocks": (
        [
            A,
            B,
            C,
            copy("x", "a"),
            copy("x", "c"),
            f"cf.cond_br %p, ^l(%c : {BUFFER}), ^r(%a : {BUFFER})",
            f"^l(%k: {BUFFER}):",
            copy("k", "y"),
            "cf.br ^e",
            f"^r(%m: {BUFFER}):",
            copy("x", "b"),
            copy("m", "y"),
            "cf.br ^e",
            "^e:",
        ],
        "uses buffer %a, whose bytes",
    ),
    "in an unknown region": (
        [
            A,
            B,
            copy("x", "a"),
            '"test.op"() ({',
            copy("a", "y"),
            copy("x", "b"),
            '"test.termop"() : () -> ()',
            "}) : () -> ()",
        ],
        "test.op uses buffer %a, whose bytes",
    ),
    "made in an unknown region": (
        ['"test.op"() ({', A, '"test.termop"() : () -> ()', "}) : () -> ()"],
        "buffer %a is created inside test.op, which may run concurrently with itself",
    ),
}

CONSTANTS = """
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c48 = arith.constant 48 : index
  %c224 = arith.constant 224 : index
  %less = arith.constant -64 : index
"""


@pytest.mark.parametrize("lines", SOUND.values(), ids=SOUND)
def test_sound(lines: list[str]) -> None:
    check_plan(module(CONSTANTS, arena(), *lines))


@pytest.mark.parametrize(
    ("lines", "message"),
    [(lines, m) for lines, m in FAULTS.values() if m],
    ids=[name for name, (_, m) in FAULTS.items() if m],
)
def test_refused(lines: list[str], message: str) -> None:
    alignment = 64 if "alignment" in message or "within the arena" in message else 4
    with pytest.raises(LocatedError, match=message):
        check_plan(module(CONSTANTS, arena(alignment), *lines))


def pools(*lines: str) -> list[PlannedPool]:
    return check_plan(module(CONSTANTS, *lines))


def test_pools_and_live_steps_are_returned() -> None:
    lines = [arena(), A, C, copy("x", "a"), copy("a", "c"), copy("c", "y")]
    (pool,) = pools(*lines, "memref.dealloc %arena : " + ARENA)
    assert (pool.device, pool.size, pool.alignment) == ("cpu:0", 256, 64)
    a, c = pool.buffers
    # The 9 constants, the arena and the two views are steps 0 to 11.
    assert (a.name, a.offset, a.size, a.first, a.last) == ("%a", 0, 64, 12, 13)
    assert (c.name, c.offset, c.size, c.first, c.last) == ("%c", 64, 64, 13, 14)
    assert list(c.steps) == [13, 14]


def test_view_has_several_live_ranges() -> None:
    uses = [
        copy("x", "a"),
        copy("a", "y"),
        copy("x", "b"),
        copy("x", "a"),
        copy("a", "y"),
    ]
    (pool,) = pools(arena(), A, B, *uses)
    assert [(b.name, list(b.steps)) for b in pool.buffers] == [
        ("%a", [12, 13]),
        ("%a", [15, 16]),
        ("%b", [14]),
    ]


def test_a_loop_is_one_step() -> None:
    (pool,) = pools(arena(), A, C, loop(copy("x", "a"), copy("a", "y")), copy("x", "c"))
    assert [(b.name, list(b.steps)) for b in pool.buffers] == [
        ("%a", [12]),
        ("%c", [13]),
    ]


def test_accesses_are_in_the_order_of_steps() -> None:
    (pool,) = pools(arena(), A, copy("x", "a"), loop(copy("a", "y")), copy("a", "y"))
    assert [list(b.steps) for b in pool.buffers] == [[11, 12, 13]]


def test_write_in_loop_starts_no_live_range() -> None:
    (pool,) = pools(arena(), A, copy("x", "a"), loop(copy("x", "a")), copy("a", "y"))
    assert [list(b.steps) for b in pool.buffers] == [[11, 12, 13]]


def test_the_pass_checks_all_functions() -> None:
    text = f"func.func private @g({BUFFER})\n"
    sound, wrong = (
        "\n".join((HEAD, CONSTANTS, arena(), *lines, TAIL))
        for lines in (SOUND["in place"], FAULTS["lost on one path"][0])
    )
    for other in (sound, wrong.replace("@f", "@h")):
        ir = parse_module(text + sound + other.replace("@f", "@h"), "t", CONTEXT)
        if other is sound:
            PlanCheck().apply(CONTEXT, ir)
            continue
        with pytest.raises(LocatedError, match=r"memref.copy uses buffer %a"):
            PlanCheck().apply(CONTEXT, ir)


def test_unused_buffers_are_live_where_created() -> None:
    (pool,) = pools(arena(), A, C)
    assert [(b.name, b.first, b.last) for b in pool.buffers] == [
        ("%a", 10, 10),
        ("%c", 11, 11),
    ]


def test_two_arenas_are_separate_pools() -> None:
    lines = [arena(), arena(16, "other"), A, view("b", of="%other")]
    first, second = pools(*lines, copy("x", "a"), copy("a", "b"), copy("b", "y"))
    assert (first.alignment, second.alignment) == (64, 16)
    assert [b.name for b in (*first.buffers, *second.buffers)] == ["%a", "%b"]


def test_alignment_defaults_to_1() -> None:
    arena = f"%arena = memref.alloc() {{tgraph.arena}} : {ARENA}"
    (pool,) = pools(arena, view("d", "%c32"))
    assert pool.alignment == 1


@pytest.mark.parametrize(
    "alloc",
    [
        arena(),  # without any view
        f"%a = memref.alloc() : {BUFFER}",
    ],
)
def test_no_arena(alloc: str) -> None:
    assert pools(alloc) == []


NEGATE = [negate("x", "a", 0), negate("a", "y", 0)]
STREAMS = {
    "the same stream": [*NEGATE, negate("x", "b", 0), negate("b", "y", 0)],
    "a value orders them": [*NEGATE, negate("y", "b", 1), negate("b", "x", 1)],
    "what is written waits for its readers": [
        *(negate("x", "a", 0), negate("a", "y", 0)),
        *(negate("c", "y", 1), negate("x", "b", 1), negate("b", "x", 1)),
    ],
    "other bytes": [*NEGATE, negate("x", "c", 1), negate("c", "x", 1)],
    "empty": [
        *(*NEGATE, view("e", "%c32", 'memref<0xf32, "cpu:0">')),
        "tgraph.constant<0.0 : f32> outs(%e) {tgraph.stream = 1 : i32} : "
        'memref<0xf32, "cpu:0">',
    ],
    "never accessed": [*NEGATE, view("e")],
}


@pytest.mark.parametrize("lines", STREAMS.values(), ids=STREAMS)
def test_buffers_of_ordered_streams_may_share_bytes(lines: list[str]) -> None:
    check_plan(module(CONSTANTS, arena(32), A, B, C, negate("x", "c", 0), *lines))


UNORDERED = {
    "another stream": [*NEGATE, negate("x", "b", 1)],
    "another stream reads only": [
        *(negate("x", "a", 0), negate("a", "c", 0)),
        *(negate("x", "b", 1), negate("b", "y", 1)),
    ],
    "what both only read orders nothing": [
        negate("x", "a", 0),
        "tgraph.add %a, %x outs(%y) {tgraph.stream = 0 : i32} : "
        f"({BUFFER}, {BUFFER}) -> {BUFFER}",
        negate("x", "b", 1),
    ],
    "the last reader is not over": [
        *(negate("x", "a", 0), negate("a", "y", 0), negate("a", "c", 2)),
        *(negate("y", "b", 1), negate("b", "y", 1)),
    ],
    "only some accesses wait": [
        *NEGATE,
        *(negate("x", "b", 1), negate("y", "b", 1), negate("b", "x", 1)),
    ],
    "two back": [
        *NEGATE,
        *(
            "tgraph.constant<0.0 : f32> outs(%e) {tgraph.stream = 0 : i32} : "
            'memref<8xf32, "cpu:0">',
        ),
        negate("x", "b", 1),
    ],
}


@pytest.mark.parametrize("lines", UNORDERED.values(), ids=UNORDERED)
def test_buffers_of_unordered_streams_must_not_share_bytes(lines: list[str]) -> None:
    small = view("e", type='memref<8xf32, "cpu:0">')
    ir = module(CONSTANTS, arena(), A, B, C, small, *lines)
    message = (
        r"buffers %[ae] and %b share bytes \[0, (32|64)\), but no dependency orders"
    )
    with pytest.raises(LocatedError, match=message):
        check_plan(ir)


SMALL = 'memref<4xf32, "cpu:0">'


@pytest.mark.parametrize(("taken", "left"), [("%zero", "%c16"), ("%c48", "%c32")])
def test_partial_overwrite_leaves_the_other_bytes_owned(taken: str, left: str) -> None:
    """%e takes over 16 bytes at one end of %a, so %z at the other end still conflicts
    with %a."""
    lines = [
        *(A, view("e", taken, SMALL), view("z", left, SMALL)),
        *(negate("x", "a", 0), negate("a", "y", 0)),
        f"tgraph.constant<0.0 : f32> outs(%e) {{tgraph.stream = 0 : i32}} : {SMALL}",
        f"tgraph.constant<0.0 : f32> outs(%z) {{tgraph.stream = 1 : i32}} : {SMALL}",
    ]
    message = "buffers %a and %z share bytes .* no dependency orders"
    with pytest.raises(LocatedError, match=message):
        check_plan(module(CONSTANTS, arena(16), *lines))


@pytest.mark.parametrize("offset", ["%zero", "%c32", "%c48"])
@pytest.mark.parametrize("later", ["%zero", "%c16", "%c32", "%c48"])
def test_byte_belongs_to_its_last_owner(offset: str, later: str) -> None:
    """%a has 64 bytes in stream 0, and %e then takes over 16 of them in stream 2. %z,
    in stream 1, waits only for %e, which must therefore be ordered after %a."""
    lines = [
        *(A, view("e", offset, SMALL), view("z", later, SMALL)),
        *(negate("x", "a", 0), negate("a", "y", 0)),
        f"tgraph.constant<0.0 : f32> outs(%e) {{tgraph.stream = 2 : i32}} : {SMALL}",
        f"tgraph.negate %e outs(%q) {{tgraph.stream = 2 : i32}} : {SMALL}",
        f"tgraph.negate %q outs(%z) {{tgraph.stream = 1 : i32}} : {SMALL}",
    ]
    free = f"%q = memref.alloc() : {SMALL}"
    ir = module(CONSTANTS, arena(16), free, *lines)
    # Nothing orders %e after %a.
    with pytest.raises(LocatedError, match="no dependency orders"):
        check_plan(ir)
    lines[5] = f"tgraph.negate %w outs(%e) {{tgraph.stream = 2 : i32}} : {SMALL}"
    waits = f"%w = memref.subview %y[0] [4] [1] : {BUFFER} to {SMALL}"
    ir = module(CONSTANTS, arena(16), free, waits, *lines)
    check_plan(ir)  # now %e waits for %a, and %z waits for %e


def test_streams_in_several_blocks_are_refused() -> None:
    ir = module(CONSTANTS, arena(), A, negate("x", "a", 0), "cf.br ^e", "^e:")
    message = "function @f has operations with streams and 2 blocks, expected 1"
    with pytest.raises(LocatedError, match=message):
        check_plan(ir)


def test_equal_stream_numbers_on_two_devices_are_separate() -> None:
    other = BUFFER.replace("cpu:0", "cpu:1")
    lines = [
        *NEGATE,
        f"%q = memref.alloc() : {other}",
        "tgraph.device_copy %x outs(%q) {tgraph.stream = 0 : i32} : "
        f"({BUFFER}) -> {other}",
        negate("x", "b", 0),
    ]
    check_plan(module(CONSTANTS, arena(), A, B, *lines))


RANGES = [(0, 64), (16, 16), (32, 64), (64, 16), (96, 32), (0, 128), (112, 16)]
"""Offsets and sizes of buffers in bytes."""


@pytest.mark.parametrize("first", range(len(RANGES)))
@pytest.mark.parametrize("second", range(len(RANGES)))
def test_conflicts_of_all_pairs_of_byte_ranges(first: int, second: int) -> None:
    """For each pair of buffers in one arena, writing the second overwrites the first
    exactly if their byte ranges intersect."""
    lines = [arena(16)]
    for n, (offset, size) in enumerate(RANGES):
        lines.append(f"%o{n} = arith.constant {offset} : index")
        lines.append(view(f"v{n}", f"%o{n}", f'memref<{size // 4}xf32, "cpu:0">'))

    def fill(n: int) -> str:
        type = f'memref<{RANGES[n][1] // 4}xf32, "cpu:0">'
        return f"tgraph.constant<0.0 : f32> outs(%v{n}) : {type}"

    type = f'memref<{RANGES[first][1] // 4}xf32, "cpu:0">'
    read = f"tgraph.negate %v{first} outs(%z) : {type}"
    lines += [f"%z = memref.alloc() : {type}", fill(first), fill(second), read]
    (a, size), (b, other) = RANGES[first], RANGES[second]
    low, high = max(a, b), min(a + size, b + other)
    if first == second or low >= high:
        check_plan(module(*lines))
        return
    message = (
        rf"uses buffer %v{first}, whose bytes \[{low}, {high}\) now belong to buffer "
        rf"%v{second}"
    )
    with pytest.raises(LocatedError, match=message):
        check_plan(module(*lines))
