"""Tests how `plan-check` tracks frees, writes and waits on all paths of a function."""

import pytest
from plan_checks import placements, pools, refused, unproved
from planted import (
    I8,
    M,
    add,
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
from planted_transfers import FORMS, TAG

USE = lines(view("a"), copy("x", "a"), copy("a", "y"))
LOOSE = "memref<?xi8>"
CAST = f"%k = memref.cast %arena : {I8} to {LOOSE}"
TWICE = "memref.dealloc frees an arena that may already be freed"
AFTER = "uses buffer %a after its arena was freed"
KEPT = "arenas not freed on every path: 1 (memref.alloc)"
AGAIN = "arenas not freed before the next allocation: 1 (memref.alloc)"
NEITHER = "arenas not freed on every path: 2 (memref.alloc)"
TWO = (arena(), arena("other"), view("b", of="other"))
POOL = f'memref.global "private" @pool : {I8} = uninitialized'


def either(first: str = "arena", second: str = "other") -> str:
    return f"%e = arith.select %p, %{first}, %{second} : {I8}"


FREED = {
    "once": [arena(), USE, free()],
    "under another name": [arena(), USE, CAST, free("k", LOOSE)],
    "on both branches": [arena(), USE, branch([free()], [free()])],
    "in each iteration": [loop(arena(), USE, free())],
    "in each of a parallel loop's": [parallel(arena(), USE, free(), to="%c2")],
    "on all paths of blocks": [
        *(arena(), USE, "cf.cond_br %p, ^l, ^r", "^l:", free(), "cf.br ^e"),
        *("^r:", free(), "cf.br ^e", "^e:"),
    ],
    "on the stack": [f"%arena = memref.alloca() : {I8}", USE],
    "of who calls": [f'%arena = "test.alloc"() : () -> {I8}', USE],
}


@pytest.mark.parametrize("body", FREED.values(), ids=FREED)
def test_arena_freed_once_on_every_path(body: list[str]) -> None:
    assert unproved(program(*body)) == []


NOT_FREED = {
    "never": ([arena(), USE], [KEPT]),
    "never in a loop": ([loop(arena(), USE)], [AGAIN, KEPT]),
    "on one branch": ([arena(), USE, branch([free()])], [KEPT]),
    "on the other branch": ([arena(), USE, branch([], [free()])], [KEPT]),
    "where a loop may not run": (
        [arena(), USE, "affine.for %i = 0 to 1 {", "}", branch([free()])],
        [KEPT],
    ),
    "on one path of blocks": (
        [
            *(arena(), USE, "cf.cond_br %p, ^l, ^e", "^l:", free(), "cf.br ^e", "^e:"),
        ],
        [KEPT],
    ),
    "where a block leaves": (
        [arena(), USE, "cf.cond_br %p, ^o, ^e", "^o:", "return", "^e:", free()],
        [KEPT],
    ),
    "one of two": ([*TWO, USE, free()], [KEPT]),
    "one of two that is chosen": ([*TWO, USE, either(), free("e")], [NEITHER]),
    "neither of two": ([*TWO, USE], [NEITHER]),
}


@pytest.mark.parametrize(("body", "told"), NOT_FREED.values(), ids=NOT_FREED)
def test_possibly_unfreed_arenas_are_reported(body: list[str], told: list[str]) -> None:
    assert unproved(program(*body)) == told


BAD_FREES = {
    "twice": ([arena(), USE, free(), free()], TWICE),
    "twice under another name": ([arena(), USE, CAST, free(), free("k", LOOSE)], TWICE),
    "in each iteration": ([arena(), USE, loop(free())], TWICE),
    "on one branch and after": ([arena(), USE, branch([free()]), free()], TWICE),
    "on the other and after": ([arena(), USE, branch([], [free()]), free()], TWICE),
    "on one path and after": (
        [
            *(arena(), USE, "cf.cond_br %p, ^l, ^e", "^l:", free(), "cf.br ^e", "^e:"),
            free(),
        ],
        TWICE,
    ),
    "in a while": (
        [
            *(arena(), USE, "scf.while : () -> () {", "scf.condition(%p)", "} do {"),
            *(free(), "scf.yield", "}"),
        ],
        TWICE,
    ),
    "in a while's condition": (
        [
            *(arena(), USE, "scf.while : () -> () {", free(), "scf.condition(%p)"),
            *("} do {", "scf.yield", "}"),
        ],
        TWICE,
    ),
    "a choice of two, one of which was": (
        [
            *(*TWO, USE, either()),
            *(free("other"), free("e")),
        ],
        TWICE,
    ),
    "a choice of two, one of which is": (
        [
            *(*TWO, USE, either()),
            *(free("e"), free("other")),
        ],
        TWICE,
    ),
    "before a use": ([arena(), USE, free(), copy("a", "z")], AFTER),
    "a choice of two before a use": (
        [
            *(*TWO, USE, either()),
            *(free("e"), copy("a", "z")),
        ],
        AFTER,
    ),
    "before a use in the next iteration": (
        [arena(), loop(USE, free())],
        "created after",
    ),
    "in a parallel loop": (
        [arena(), USE, parallel(free(), to="%c2"), copy("a", "y")],
        "frees an arena inside scf.parallel, which may run concurrently with itself",
    ),
    "a buffer": (
        [arena(), USE, f"memref.dealloc %a : {M}", free()],
        "memref.dealloc frees buffer %a, expected only its arena to be freed",
    ),
    "a buffer under another name": (
        [
            *(
                arena(),
                USE,
                f"%q = memref.subview %a[0] [8] [1] : {M} to memref<8xf32>",
            ),
            *("memref.dealloc %q : memref<8xf32>", free()),
        ],
        "memref.dealloc frees buffer %a, expected only its arena to be freed",
    ),
    "of the stack": (
        [f"%arena = memref.alloca() : {I8}", USE, free()],
        "memref.dealloc frees %a, expected memory from memref.alloc",
    ),
    "a global": (
        [f"%arena = memref.get_global @pool : {I8}", USE, free()],
        "memref.dealloc frees %a, expected memory from memref.alloc",
    ),
    "of another operation": (
        [f'%arena = "test.alloc"() : () -> {I8}', USE, free()],
        "memref.dealloc frees %a, expected memory from memref.alloc",
    ),
    "made after": (
        [arena(), view("b"), free(), USE],
        "created after its arena was freed",
    ),
    "the second of two": (
        [
            *(*TWO, USE, copy("x", "b")),
            *(free("other"), copy("b", "y"), free()),
        ],
        "uses buffer %b after its arena was freed",
    ),
}


@pytest.mark.parametrize(("body", "message"), BAD_FREES.values(), ids=BAD_FREES)
def test_wrong_frees_are_refused(body: list[str], message: str) -> None:
    refused(program(*body, beside=POOL), message)


def test_free_of_an_argument_is_refused() -> None:
    text = program(
        beside=f"func.func @g(%arena: {I8}, %x: {M}, %y: {M}) {{\n"
        "%c0 = arith.constant 0 : index\n" + lines(USE, free(), "return\n}")
    )
    refused(text, "memref.dealloc frees %a, expected memory from memref.alloc")


def test_memory_allocated_in_each_iteration_is_new() -> None:
    """The buffers of the previous iteration are freed, but those of this iteration are
    not."""
    body = (arena(), view("a"), view("b"), copy("x", "a"), copy("a", "y"))
    again = (copy("x", "b"), copy("b", "y"))
    assert unproved(program(loop(*body, *again, free()))) == []
    assert unproved(program(loop(*body, *again, free(), to="%c2"))) == []


NEVER = "reads buffer %a, expected an earlier write$"
PATHS = "reads buffer %a, expected an earlier write on every path"
NOT_YET = "reads of memory that may not be written yet: 1 (memref.copy)"


def neg(source: str, target: str, type: str = M) -> str:
    return f"tgraph.negate %{source} outs(%{target}) : {type}"


def half(name: str, first: int, of: str = "a", size: int = 8, step: int = 1) -> str:
    return (
        f"%{name} = memref.reinterpret_cast %{of} to offset: [{first}], "
        f"sizes: [{size}], strides: [{step}] : {M} to {strided(first, size, step)}"
    )


def strided(first: int, size: int = 8, step: int = 1) -> str:
    return f"memref<{size}xf32, strided<[{step}], offset: {first}>>"


def fill(name: str, type: str = M) -> str:
    return f"tgraph.constant<0.0 : f32> outs(%{name}) : {type}"


UNWRITTEN = {
    "never": ([], NEVER),
    "on one branch": ([branch([copy("x", "a")])], PATHS),
    "on the other branch": ([branch([], [copy("x", "a")])], PATHS),
    "in a loop that may not run": ([loop(copy("x", "a"))], PATHS),
    "in a loop that never runs": ([loop(copy("x", "a"), to="%c0")], PATHS),
    "in an affine loop that never runs": (
        ["affine.for %i = 1 to 1 {", copy("x", "a"), "}"],
        PATHS,
    ),
    "in a loop from where it ends": (
        ["scf.for %t = %n to %n step %c1 {", copy("x", "a"), "}"],
        PATHS,
    ),
    "in a while's body": (
        [
            *("scf.while : () -> () {", "scf.condition(%p)", "} do {"),
            *(copy("x", "a"), "scf.yield", "}"),
        ],
        PATHS,
    ),
    "on one path of blocks": (
        ["cf.cond_br %p, ^e, ^l", "^l:", copy("x", "a"), "cf.br ^e", "^e:"],
        PATHS,
    ),
    "in one case": (
        [
            *("scf.index_switch %n", "case 1 {", copy("x", "a"), "scf.yield", "}"),
            *("default {", "scf.yield", "}"),
        ],
        PATHS,
    ),
    "the first half": (
        [half("h", 0), fill("h", strided(0))],
        "reads all 64 bytes of buffer %a, of which at most 32 were written",
    ),
    "another half on each branch": (
        [
            *(half("h", 0), half("i", 8)),
            branch([fill("h", strided(0))], [fill("i", strided(8))]),
        ],
        "reads all 64 bytes of buffer %a, of which at most 0 were written",
    ),
    "one half twice": (
        [
            *(half("h", 0), half("i", 0), fill("h", strided(0))),
            fill("i", strided(0)),
        ],
        "of which at most 32 were",
    ),
    "every other element": (
        [half("h", 0, step=2), fill("h", strided(0, step=2))],
        "of which at most 32 were",
    ),
    "parts that overlap": (
        [
            *(half("h", 0, size=12), fill("h", strided(0, 12))),
            *(half("i", 2, size=12), fill("i", strided(2, 12))),
        ],
        "of which at most 56 were",
    ),
    "one element": (
        ["%v = arith.constant 0.0 : f32", f"memref.store %v, %a[%c0] : {M}"],
        "of which at most 4 were",
    ),
    "two elements": (
        [
            "%v = arith.constant 0.0 : f32",
            *(f"memref.store %v, %a[%c{n}] : {M}" for n in (0, 1)),
        ],
        "of which at most 8 were",
    ),
    "an element and a half": (
        [
            *(half("h", 0), fill("h", strided(0)), "%v = arith.constant 0.0 : f32"),
            f"memref.store %v, %a[%c15] : {M}",
        ],
        "of which at most 36 were",
    ),
    "an element on one branch": (
        [
            "%v = arith.constant 0.0 : f32",
            branch([f"memref.store %v, %a[%c0] : {M}"], [copy("x", "a")]),
        ],
        "of which at most 4 were",
    ),
    "one element by a map": (
        [
            each("x", "a").replace(
                "affine_map<(d0) -> (d0)>]", "affine_map<(d0) -> (0)>]"
            )
        ],
        "of which at most 0 were",
    ),
    "by an operation that does nothing": (
        [half("h", 0), f'"memref.prefetch_"(%x) : ({M}) -> ()'],
        NEVER,
    ),
}


@pytest.mark.parametrize(("body", "message"), UNWRITTEN.values(), ids=UNWRITTEN)
def test_reads_of_possibly_unwritten_buffers(body: list[str], message: str) -> None:
    """Reads by tgraph operations are errors. Reads by other operations are reported if
    they read the whole buffer."""

    def text(read: str, other: str = "") -> str:
        return program(arena(), other, view("a"), *body, read, free())

    refused(text(neg("a", "y")), "tgraph.negate .*" + message)
    refused(text(neg("a", "y"), view("o", "%c128")), "tgraph.negate .*" + message)
    assert NOT_YET in unproved(text(copy("a", "y")))


WRITTEN = {
    "by stores in a loop": [
        "%v = arith.constant 0.0 : f32",
        loop(f"memref.store %v, %a[%t] : {M}", to="%c16"),
    ],
    "in a loop that surely runs": [loop(copy("x", "a"), to="%c1")],
    "in an affine loop": ["affine.for %i = 0 to 1 {", copy("x", "a"), "}"],
    "as a whole": [copy("x", "a")],
    "on both branches": [branch([copy("x", "a")], [copy("x", "a")])],
    "in both halves": [
        *(half("h", 0), half("i", 8), fill("h", strided(0)), fill("i", strided(8))),
    ],
    "in overlapping parts": [
        *(half("h", 0, size=12), fill("h", strided(0, 12))),
        *(half("i", 4, size=12), fill("i", strided(4, 12))),
    ],
    "in even and odd elements": [
        *(half("h", 0, step=2), fill("h", strided(0, step=2))),
        *(half("i", 1, step=2), fill("i", strided(1, step=2))),
    ],
    "backwards": [half("h", 15, size=16, step=-1), fill("h", strided(15, 16, -1))],
    "by stores in a parallel loop": [
        "%v = arith.constant 0.0 : f32",
        f"memref.store %v, %a[%c0] : {M}",
        parallel(f"memref.store %v, %a[%t] : {M}", to="%c16"),
    ],
    "by stores in a loop of blocks": [
        *("%v = arith.constant 0.0 : f32", "cf.br ^h(%c0 : index)", "^h(%i: index):"),
        *(f"memref.store %v, %a[%i] : {M}", "%j = arith.addi %i, %c1 : index"),
        *("cf.cond_br %p, ^h(%j : index), ^e", "^e:"),
    ],
    "by stores where blocks may be a loop": [
        *("%v = arith.constant 0.0 : f32", "cf.br ^h", "^h:"),
        f"memref.store %v, %a[%n] : {M}",
    ],
    "by stores in a loop of a region's blocks": [
        *("%v = arith.constant 0.0 : f32", "scf.execute_region {"),
        *("cf.br ^h(%c0 : index)", "^h(%i: index):", f"memref.store %v, %a[%i] : {M}"),
        *("%j = arith.addi %i, %c1 : index", "cf.cond_br %p, ^h(%j : index), ^e"),
        *("^e:", "scf.yield", "}"),
    ],
    "by a part whose place is not known": [
        f"%h = memref.subview %a[%n] [8] [1] : {M} to "
        "memref<8xf32, strided<[1], offset: ?>>",
        fill("h", "memref<8xf32, strided<[1], offset: ?>>"),
    ],
    "by who may": [f'"test.use"(%a) : ({M}) -> ()'],
    "in a while's condition": [
        *("scf.while : () -> () {", copy("x", "a"), "scf.condition(%p)"),
        *("} do {", "scf.yield", "}"),
    ],
    "by each store": [
        "%v = arith.constant 0.0 : f32",
        *(
            f"%i{n} = arith.constant {n} : index\nmemref.store %v, %a[%i{n}] : {M}"
            for n in range(16)
        ),
    ],
    "through a choice of two": [
        view("b", "%c64"),
        f"%e = arith.select %p, %a, %b : {M}",
        copy("x", "e"),
    ],
}


@pytest.mark.parametrize("read", ["a", "b"])
def test_store_to_a_selected_buffer_counts_for_both(read: str) -> None:
    text = program(
        *(arena(), view("a"), view("b", "%c64")),
        *(f"%e = arith.select %p, %a, %b : {M}", "%v = arith.constant 0.0 : f32"),
        *(f"memref.store %v, %e[%c0] : {M}", neg(read, "y"), free()),
    )
    assert unproved(text) == []


@pytest.mark.parametrize("body", WRITTEN.values(), ids=WRITTEN)
def test_reads_of_written_buffers(body: list[str]) -> None:
    found = unproved(program(arena(), view("a"), *body, neg("a", "y"), free()))
    assert not any("written" in each for each in found)


def test_read_of_a_part_needs_a_write_of_any_part() -> None:
    text = program(
        *(arena(), view("a"), half("h", 0), fill("h", strided(0)), half("i", 8)),
        *(neg("i", "i", strided(8)), free()),
    )
    assert unproved(text) == []


def test_read_of_an_element_needs_a_write_of_any_element() -> None:
    load = f"%l = memref.load %a[%n] : {M}"
    store = f"memref.store %v, %a[%n] : {M}"
    head = (arena(), view("a"), "%v = arith.constant 0.0 : f32")
    assert unproved(program(*head, store, load, free())) == []
    told = "reads of memory that may not be written yet: 1 (memref.load)"
    assert unproved(program(*head, load, store, free())) == [told]


def test_read_of_a_part_of_an_unwritten_buffer_is_refused() -> None:
    text = program(arena(), view("a"), half("h", 0), neg("h", "h", strided(0)), free())
    refused(text, "tgraph.negate .*" + NEVER)


def test_buffer_created_again_is_unwritten() -> None:
    body = (copy("a", "y"), copy("x", "a"))
    text = program(arena(), loop(view("a"), *body), free())
    assert unproved(text) == [NOT_YET]


def test_arena_allocated_again_is_unwritten() -> None:
    use = f'"test.use"(%arena) : ({I8}) -> ()'
    read = f"tgraph.negate %arena outs(%arena) : {I8}"
    refused(
        program(loop(arena(), view("a"), read, use, free())),
        "tgraph.negate reads buffer %arena, expected an earlier write$",
    )


def test_memory_of_the_caller_counts_as_written() -> None:
    """A global counts as written, like all memory of the caller."""
    read = f"tgraph.negate %arena outs(%arena) : {I8}"
    text = program(
        f"%arena = memref.get_global @pool : {I8}", view("a"), read, beside=POOL
    )
    assert unproved(text) == []


def test_reads_of_buffers_in_memory_of_the_caller_are_reported() -> None:
    """The caller may have written the buffers, so the read is no error."""
    text = program(
        f"%arena = memref.get_global @pool : {I8}",
        *(view("a"), neg("a", "y")),
        beside=POOL,
    )
    assert unproved(text) == [
        "reads of memory that may not be written yet: 1 (tgraph.negate)"
    ]


def test_read_does_not_count_as_a_write() -> None:
    text = program(
        *(arena(), view("a"), f"%v = memref.load %a[%c0] : {M}", neg("a", "y"), free())
    )
    refused(text, "tgraph.negate reads buffer %a, expected an earlier write on every")


RESULT = "{tgraph.result = 0 : i32}"


def with_result(*body: str) -> str:
    return program(
        beside=f"func.func @g(%p: i1, %n: index, %x: {M}, %r: {M} {RESULT}) {{\n"
        + lines("%c0 = arith.constant 0 : index", *body, "return\n}")
    )


def test_unwritten_result_is_refused() -> None:
    refused(with_result(), "func.return returns buffer %r, expected an earlier write")
    read = f"%v = memref.load %r[%c0] : {M}"
    message = "results that may not be completely written: 1 (func.return)"
    assert message in unproved(with_result(read))
    assert unproved(with_result(copy("x", "r"))) == []


RESULTS_IN_PART = {
    "on one branch": [branch([copy("x", "r")])],
    "one half": [half("h", 0, "r"), fill("h", strided(0))],
    "one element": [
        "%v = arith.constant 0.0 : f32",
        f"memref.store %v, %r[%c0] : {M}",
    ],
    "on one path": [
        *("cf.cond_br %p, ^e, ^l", "^l:", copy("x", "r"), "cf.br ^e", "^e:"),
    ],
}


@pytest.mark.parametrize("body", RESULTS_IN_PART.values(), ids=RESULTS_IN_PART)
def test_partly_written_results_are_reported(body: list[str]) -> None:
    assert unproved(with_result(*body)) == [
        "results that may not be completely written: 1 (func.return)"
    ]


def test_return_that_skips_the_write_of_a_result() -> None:
    body = ("cf.cond_br %p, ^o, ^e", "^o:", "return", "^e:", copy("x", "r"))
    refused(with_result(*body), "func.return returns buffer %r")


# Asynchronous transfers, which go on after the operation that starts them.

WAITED = [form for form in FORMS if form != "unknown"]


def transfer(form: str, *between: str, after: str = "") -> str:
    """A transfer from %a to %b, with the lines `between` before its wait."""
    tags, start, wait = FORMS[form].tags, FORMS[form].start, FORMS[form].wait
    return program(
        *(tags, arena(), view("a"), view("b", "%c64"), view("c"), view("d", "%c64")),
        *(copy("x", "a"), start, *between, wait, after, free()),
    )


@pytest.mark.parametrize("form", WAITED)
def test_transfer_owns_its_buffers_until_the_wait(form: str) -> None:
    takes_source = (copy("x", "c"), copy("c", "y"))
    takes_target = (copy("x", "d"), copy("d", "y"))
    assert unproved(transfer(form, copy("x", "y"), after=lines(*takes_source))) == []
    assert unproved(transfer(form, copy("x", "y"), after=lines(*takes_target))) == []
    for taken in (takes_source, takes_target):
        refused(transfer(form, *taken), r"uses buffer %[ab], whose bytes \[")


@pytest.mark.parametrize("form", WAITED)
def test_transfer_without_a_wait(form: str) -> None:
    text = transfer(form).replace(FORMS[form].wait, "")
    (name,) = {line.split('"')[1] for line in [FORMS[form].start.partition("(")[0]]}
    if "dma" in name:  # no other operation knows the tag
        waits = name.replace("start", "wait")
        refused(text, f"nothing waits for {name}, expected {waits} with its tag")
        text = text.replace(
            "return\n}", f'"test.wait"(%tag) : ({TAG}) -> ()\nreturn\n}}'
        )
    assert f"transfers without a known wait: 1 ({name})" in unproved(text)


DMA = FORMS["memref"]
FETCHED = lines(DMA.start, DMA.wait, copy("b", "y"))
UNKNOWN = ["transfers without a known wait: 1 (memref.dma_start)"]


def with_tags(*body: str) -> str:
    """A program with tags, and an arena with views %a, which is written, and %b."""
    views = view("a"), view("b", "%c64")
    return program(DMA.tags, arena(), *views, copy("x", "a"), *body, free())


@pytest.mark.parametrize(
    "body", [(FETCHED, FETCHED), (loop(FETCHED),), (loop(FETCHED, FETCHED),)]
)
def test_tag_is_reused_after_the_wait(body: tuple[str, ...]) -> None:
    assert unproved(with_tags(*body)) == []


def test_tag_of_two_transfers_needs_two_waits() -> None:
    both = DMA.start, DMA.start.replace("%b,", "%y,"), DMA.wait
    assert unproved(with_tags(*both, DMA.wait, copy("b", "y"))) == []
    refused(
        with_tags(*both, copy("b", "y"), DMA.wait), "reads the target of memref.dma"
    )


def test_wait_for_fewer_elements_does_not_count() -> None:
    fewer = DMA.wait.replace("%c16", "%c8")
    assert unproved(with_tags(DMA.start, fewer, copy("b", "y"))) == UNKNOWN


@pytest.mark.parametrize(
    "names",
    [
        (
            "%t = memref.get_global @held : memref<1xi32>",
            "%u = memref.get_global @held : memref<1xi32>",
        ),
        (
            "%t = memref.alloca() : memref<1xi32>",
            "%u = memref.cast %t : memref<1xi32> to memref<1xi32>",
        ),
    ],
)
def test_wait_under_an_alias_of_the_tag_does_not_count(names: tuple[str, ...]) -> None:
    """The wait may end the transfer that was started under the same name."""
    starts = DMA.start, DMA.start.replace("%b,", "%z,")
    first, second = (
        [x.replace("%tag", tag) for x in (start, DMA.wait)]
        for start, tag in zip(starts, ("%t", "%u"), strict=True)
    )
    body = (*names, first[0], second[0], first[1], copy("b", "y"), second[1])
    held = 'memref.global "private" @held : memref<1xi32> = uninitialized\n'
    assert unproved(held + with_tags(*body)) == [
        "transfers without a known wait: 2 (memref.dma_start)"
    ]


def test_concurrent_iterations_must_not_share_a_tag() -> None:
    assert UNKNOWN[0] in unproved(with_tags(parallel(FETCHED, to="%c2")))


def test_transfers_between_arguments_need_a_wait() -> None:
    start = DMA.start.replace("(%a,", "(%x,").replace("%b,", "%y,")
    refused(with_tags(start), "nothing waits for memref.dma_start")
    assert unproved(with_tags(branch([start], []), DMA.wait)) == UNKNOWN


def test_waits_in_both_branches() -> None:
    both = branch([DMA.wait, copy("b", "y")], [DMA.wait])
    assert unproved(with_tags(DMA.start, both)) == []
    assert unproved(with_tags(branch([DMA.start], [DMA.start]), DMA.wait)) == []


def test_wait_without_a_transfer_is_refused() -> None:
    for body in (DMA.wait, FETCHED), (DMA.wait,), (branch([DMA.wait]),):
        refused(with_tags(*body), "memref.dma_wait waits for nothing")


def test_wait_on_one_path_is_reported() -> None:
    """The first iteration may skip the branch with the wait."""
    body = branch([DMA.wait]), DMA.start
    assert unproved(with_tags(loop(*body), DMA.wait)) == UNKNOWN


def test_tag_element_differs_between_iterations() -> None:
    start, wait = (x.replace("%tag, %c0", "%tag, %t") for x in (DMA.start, DMA.wait))
    assert unproved(with_tags(loop(start, copy("x", "z"), wait))) == []
    assert UNKNOWN[0] in unproved(with_tags(loop(start), loop(wait)))


def test_tag_of_the_caller_is_reported() -> None:
    text = with_tags(FETCHED).replace("%x: ", "%given: memref<1xi32>, %x: ")
    told = ["transfers with a tag that callers may use too: 1 (memref.dma_start)"]
    assert unproved(text.replace("%tag,", "%given,")) == told


def test_tag_carried_by_a_loop_is_unknown() -> None:
    tag = "memref<1xi32>"
    args = f"iter_args(%given = %tag) -> ({tag})"
    forwarding = f"%last = scf.for %t = %c0 to %n step %c1 {args} {{"
    body = FETCHED.replace("%tag,", "%given,")
    text = with_tags(forwarding, body, f"scf.yield %given : {tag}\n}}")
    assert unproved(text) == UNKNOWN


def test_read_under_an_alias_of_the_transfer_target() -> None:
    held = f'memref.global "private" @held : {M} = uninitialized\n'
    text = with_tags(
        *(f"%{name} = memref.get_global @held : {M}" for name in "gh"),
        DMA.start.replace("%b,", "%g,"),
        copy("h", "y"),
        DMA.wait,
    )
    told = ["accesses that a transfer under way may disturb: 1 (memref.copy)"]
    assert unproved(held + text) == told


@pytest.mark.parametrize("form", WAITED)
def test_free_before_the_wait_is_refused(form: str) -> None:
    text = transfer(form).replace(lines(FORMS[form].wait, "", free()), "")
    assert free() not in text
    text = text.replace("return\n}", lines(free(), FORMS[form].wait, "return\n}"))
    refused(text, "uses buffer %a after its arena was freed")


def test_transfer_outside_of_arenas_is_not_reported() -> None:
    start = FORMS["gpu"].start.replace("(%b, %a)", "(%y, %x)")
    assert unproved(program(arena(), USE, start, free())) == []


def test_transfer_of_an_unknown_operation_is_reported() -> None:
    assert unproved(transfer("unknown")) == [
        "escaping addresses of buffers, uses not checked: 1 (test.start)"
    ]


# Lifetimes of buffers and arenas, and buffers created in loops.


def test_buffer_must_not_outlive_its_arena() -> None:
    text = program(
        beside=f"func.func @g(%x: {M}) -> {M} {{\n%c0 = arith.constant 0 : index\n"
        + lines(arena(), view("a"), copy("x", "a"), f"return %a : {M}\n}}")
    )
    refused(text, "func.return forwards a buffer of an arena, expected no buffer")


def test_buffer_in_memory_of_the_caller_may_be_returned() -> None:
    text = program(
        beside=f"func.func @g(%arena: {I8}, %x: {M}) -> {M} {{\n"
        "%c0 = arith.constant 0 : index\n"
        + lines(view("a"), copy("x", "a"), f"return %a : {M}\n}}")
    )
    assert placements(text) == [[("%a", 0, 64)]]


@pytest.mark.parametrize("read_first", [True, False])
def test_block_argument_refers_to_the_previous_instance(read_first: bool) -> None:
    uses = [each("x", "a"), copy("k", "y")]
    text = program(
        *(arena(), view("b", "%c64"), copy("x", "b"), f"cf.br ^h(%b : {M})"),
        *(f"^h(%k: {M}):", view("a"), *(reversed(uses) if read_first else uses)),
        *(f"cf.cond_br %p, ^h(%a : {M}), ^e", "^e:", free()),
    )
    if read_first:
        assert unproved(text) == []
    else:
        refused(text, "uses buffer %a, whose bytes may now belong to another buffer")


def test_concurrent_iterations_share_an_outer_arena() -> None:
    outside = (view("a"), view("b"))
    inside = parallel(copy("x", "a"), copy("a", "y"), copy("x", "b"), to="%c2")
    refused(program(arena(), *outside, inside, free()), "scf.parallel uses buffer %a")


def test_concurrent_iterations_have_their_own_inner_arenas() -> None:
    body = (
        *(arena(), view("a"), view("b"), copy("x", "a"), copy("a", "y")),
        *(copy("x", "b"), copy("b", "y"), free()),
    )
    outside = (arena("outer"), view("c", of="outer"), copy("x", "c"), copy("c", "y"))
    text = program(*outside, parallel(*body, copy("c", "z"), to="%c2"), free("outer"))
    assert unproved(text) == []
    assert [len(p.buffers) for p in pools(text)] == [1, 2]
    lost = (arena(), view("a"), view("b"), copy("x", "a"), copy("x", "b"))
    refused(
        program(parallel(*lost, copy("a", "y"), free(), to="%c2")),
        r"memref.copy uses buffer %a, whose bytes \[0, 64\) now belong to buffer %b",
    )


def test_operation_with_partly_overlapping_buffers() -> None:
    text = program(
        *(arena(alignment=4), view("a"), view("b", "%c32"), copy("x", "a")),
        *(add("a", "x", "b"), free()),
    )
    refused(
        text,
        r"uses buffer %a, whose bytes \[32, 64\) now belong to buffer %b",
    )


def carried(last: str) -> str:
    """A loop whose result %r is %a, or `last` as yielded by the last iteration."""
    return lines(
        f"%r = scf.for %t = %c0 to %n step %c1 iter_args(%k = %a) -> ({M}) {{",
        f"scf.yield {last} : {M}\n}}",
    )


def test_forwarding_a_buffer_is_not_reported() -> None:
    body = (copy("x", "a"), carried("%k"), copy("r", "y"))
    assert unproved(program(arena(), view("a"), *body, free())) == []


def test_read_of_a_buffer_or_other_memory_is_accepted() -> None:
    text = program(arena(), view("a"), carried("%x"), neg("r", "y"), free())
    assert unproved(text) == []


def test_read_of_a_whole_and_of_a_part() -> None:
    """A read of a part of a buffer does not hide a read of the whole buffer."""
    backwards = strided(15, 16, -1)
    text = program(
        *(arena(), view("a"), half("h", 0), fill("h", strided(0))),
        half("v", 15, size=16, step=-1),
        f"tgraph.add %a, %v outs(%y) : ({M}, {backwards}) -> {M}",
        free(),
    )
    refused(text, "reads all 64 bytes of buffer %a, of which at most 32 were written")


def test_read_of_an_unwritten_result_is_refused() -> None:
    refused(with_result(neg("r", "r")), "reads buffer %r, expected an earlier write$")


def test_results_are_tracked_beside_arenas() -> None:
    write = branch([copy("x", "r")])
    text = with_result(arena(), view("a"), view("b"), write, free())
    assert unproved(text) == [
        "results that may not be completely written: 1 (func.return)"
    ]
    text = with_result(arena(), view("a"), copy("x", "a"), free())
    refused(text, "func.return returns buffer %r, expected an earlier write")


def test_unfreed_arena_after_a_freed_one() -> None:
    first = (arena("first"), view("b", of="first"), free("first"))
    assert unproved(program(*first, loop(arena(), USE))) == [AGAIN, KEPT]


ALL = f'"test.use"(%arena) : ({I8}) -> ()'


def test_arena_allocated_again_is_unused() -> None:
    body = (arena(), USE, ALL, free())
    (told,) = unproved(program(loop(*body)))
    assert "unknown effect" in told


def test_global_loses_the_bytes_of_its_buffers() -> None:
    get = f"%arena = memref.get_global @pool : {I8}"
    text = program(get, view("a"), copy("x", "a"), ALL, beside=POOL)
    refused(text, r"uses buffer %arena, whose bytes \[0, 64\) now belong to buffer %a")


def test_partly_written_arena() -> None:
    part = "memref<128xi8>"
    text = program(
        *(arena(), view("a")),
        f"%p0 = memref.subview %arena[0] [128] [1] : {I8} to {part}",
        f"tgraph.constant<1 : i8> outs(%p0) : {part}",
        *(f"tgraph.negate %arena outs(%arena) : {I8}", free()),
    )
    refused(text, "all 256 bytes of buffer %arena, of which at most 128 were written")
