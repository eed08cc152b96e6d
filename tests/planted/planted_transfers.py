"""Faults of pending transfers: their bytes are reused, read or freed before the wait.

A transfer may read and write at any time from its start to the wait. Native runs
therefore use two programs: one copies everything at the start, the other at the wait.
"""

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from planted import (
    KINDS,
    Kind,
    M,
    arena,
    branch,
    copy,
    each,
    free,
    loop,
    plant,
    program,
    view,
)

MODES = ("early", "late")
TAG = "memref<1xi32>"


class Form(NamedTuple):
    """The operations of a dialect that start a transfer from %a to %b and await it."""

    start: str
    wait: str
    tags: str = ""


_TAGS = "\n".join(
    f"%{tag} = memref.alloca() : {TAG}\nmemref.store %none, %{tag}[%c0] : {TAG}"
    for tag in ("tag", "other_tag")
)
_TAGS = "%none = arith.constant 0 : i32\n" + _TAGS
_SEGMENTS = "operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1>"
_SAME = "affine_map<(d0) -> (d0)>"
FORMS = {
    "memref": Form(
        f'"memref.dma_start"(%a, %c0, %b, %c0, %c16, %tag, %c0) <{{{_SEGMENTS}}}> : '
        f"({M}, index, {M}, index, index, {TAG}, index) -> ()",
        '"memref.dma_wait"(%tag, %c0, %c16) <{operandSegmentSizes = array<i32: 1, 1, 1>'
        f"}}> : ({TAG}, index, index) -> ()",
        _TAGS,
    ),
    "affine": Form(
        '"affine.dma_start"(%a, %c0, %b, %c0, %tag, %c0, %c16) {src_map = '
        f"{_SAME}, dst_map = {_SAME}, tag_map = {_SAME}}} : ({M}, index, {M}, index, "
        f"{TAG}, index, index) -> ()",
        f'"affine.dma_wait"(%tag, %c0, %c16) {{tag_map = {_SAME}}} : ({TAG}, index, '
        "index) -> ()",
        _TAGS,
    ),
    "gpu": Form(
        '%token = "gpu.memcpy"(%b, %a) {operandSegmentSizes = array<i32: 0, 1, 1>} : '
        f"({M}, {M}) -> !gpu.async.token",
        '"gpu.wait"(%token) : (!gpu.async.token) -> ()',
    ),
    "nvgpu": Form(
        '%token = "nvgpu.device_async_copy"(%b, %c0, %a, %c0) {dstElements = 16 : '
        "index, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>} : "
        f"({M}, index, {M}, index) -> !nvgpu.device.async.token\n"
        '%group = "nvgpu.device_async_create_group"(%token) : '
        "(!nvgpu.device.async.token) -> !nvgpu.device.async.token",
        '"nvgpu.device_async_wait"(%group) {numGroups = 0 : i32} : '
        "(!nvgpu.device.async.token) -> ()",
    ),
    "async": Form(
        '%token = "async.execute"() <{operandSegmentSizes = array<i32: 0, 0>}> ({\n'
        + copy("a", "b")
        + '\n"async.yield"() : () -> ()\n}) : () -> !async.token',
        '"async.await"(%token) : (!async.token) -> ()',
    ),
    "unknown": Form(
        f'%token = "test.start"(%a, %b) : ({M}, {M}) -> !test.token',
        '"test.wait"(%token) : (!test.token) -> ()',
    ),
}


def start(mode: str, form: str = "memref") -> str:
    return {"checked": FORMS[form].start, "early": copy("a", "b"), "late": ""}[mode]


def wait(mode: str, form: str = "memref") -> str:
    return {"checked": FORMS[form].wait, "early": "", "late": copy("a", "b")}[mode]


def transfer(*between: str, after: str = "", mode: str, form: str = "memref") -> str:
    """Transfers %a to %b, with the lines `between` start and wait, and `after` them."""
    return program(
        *(
            FORMS[form].tags,
            arena(),
            view("a"),
            view("b", "%c64"),
            copy("x", "a"),
            each("x", "b"),
        ),
        *(
            start(mode, form),
            *between,
            wait(mode, form),
            copy("b", "y"),
            after,
            free(),
        ),
    )


def source_taken(form: str) -> Callable[[str, str], str]:
    def build(at: str, mode: str) -> str:
        other = (view("c", at), each("x", "c"), copy("c", "z"))
        return transfer(*other, mode=mode, form=form)

    return build


def target_taken(form: str) -> Callable[[str, str], str]:
    """Builds a program that uses another buffer at `at` between start and wait."""

    def build(at: str, mode: str) -> str:
        other = (view("c", at), each("x", "c"), copy("c", "z"))
        return program(
            *(
                FORMS[form].tags,
                arena(),
                view("a"),
                view("b", "%c64"),
                copy("x", "a"),
                each("x", "b"),
            ),
            *(start(mode, form), *other, wait(mode, form), copy("b", "y"), free()),
        )

    return build


for _form in FORMS:
    KINDS.append(
        Kind(
            *("transfers", f"the source of a transfer of {_form} is taken"),
            *(source_taken(_form), "%c128", "%c0"),
            modes=MODES,
        )
    )
    KINDS.append(
        Kind(
            *("transfers", f"the target of a transfer of {_form} is taken"),
            *(target_taken(_form), "%c128", "%c64"),
            modes=MODES,
        )
    )


@plant(sound=False, faulty=True, modes=MODES)
def the_source_is_written_before_the_wait(early: bool, mode: str) -> str:
    """The program writes the source itself, not a buffer over it."""
    again = each("x", "a")
    rest = copy("a", "z")
    if early:
        return transfer(again, mode=mode, after=rest)
    return transfer(mode=mode, after=again + "\n" + rest)


def used_too_early(use: str, early: bool, mode: str) -> str:
    """The lines `use` access a buffer of the transfer before the wait, or after it."""
    return transfer(use if early else "", mode=mode, after="" if early else use)


@plant(sound=False, faulty=True, modes=MODES)
def the_target_is_read_before_the_wait(early: bool, mode: str) -> str:
    return used_too_early(copy("b", "z"), early, mode)


@plant(sound=False, faulty=True, modes=MODES)
def a_part_of_the_target_is_read_before_the_wait(early: bool, mode: str) -> str:
    half = "memref<8xf32, strided<[1], offset: 8>>"
    read = (
        f"%part = memref.subview %b[8] [8] [1] : {M} to {half}",
        f"%to = memref.subview %z[8] [8] [1] : {M} to {half}",
        copy("part", "to", half),
    )
    return used_too_early("\n".join(read), early, mode)


@plant(sound=False, faulty=True, modes=MODES)
def the_target_is_written_before_the_wait(early: bool, mode: str) -> str:
    return program(
        *(FORMS["memref"].tags, arena(), view("a"), view("b", "%c64"), copy("x", "a")),
        *(start(mode), each("x", "b") if early else "", wait(mode)),
        *("" if early else each("x", "b"), copy("b", "y"), free()),
    )


@plant(sound=False, faulty=True, modes=MODES)
def the_target_is_read_in_a_loop_before_the_wait(early: bool, mode: str) -> str:
    return used_too_early(loop(copy("b", "z")), early, mode)


@plant(sound="a", faulty="b", modes=MODES)
def a_called_function_reads_before_the_wait(name: str, mode: str) -> str:
    """The callee reads the target; the sound twin, the source."""
    text = transfer(f"func.call @g(%{name}, %z) : ({M}, {M}) -> ()", mode=mode)
    body = copy("from", "to")
    return f"func.func @g(%from: {M}, %to: {M}) {{\n{body}\nreturn\n}}\n{text}"


@plant(sound=False, faulty=True, modes=MODES)
def another_transfer_writes_the_source_before_the_wait(early: bool, mode: str) -> str:
    second, waits = (
        text.replace("%tag", "%other_tag")
        .replace("(%a, %b)", "(%x, %a)")
        .replace("(%a, %c0, %b,", "(%x, %c0, %a,")
        for text in (start(mode), wait(mode))
    )
    order = (second, waits, wait(mode)) if early else (wait(mode), second, waits)
    return program(
        *(FORMS["memref"].tags, arena(), view("a"), view("b", "%c64"), each("x", "a")),
        *(start(mode), *order, copy("b", "y"), copy("a", "z"), free()),
    )


@plant(sound=False, faulty=True, modes=MODES)
def the_arena_is_freed_before_the_wait(early: bool, mode: str) -> str:
    return program(
        *(FORMS["memref"].tags, arena(), view("a"), copy("x", "a")),
        f"%b = memref.cast %y : {M} to {M}",
        *(start(mode), free() if early else "", wait(mode), "" if early else free()),
    )


@plant(sound="wait", faulty="", modes=MODES)
def nobody_waits(given: str, mode: str) -> str:
    """Without a wait, the transfer may last until the function returns."""
    return program(
        *(FORMS["memref"].tags, arena(), view("a"), copy("x", "a")),
        f"%b = memref.cast %y : {M} to {M}",
        *(start(mode), wait(mode) if given else "", free()),
        wait(mode) if not given and mode == "late" else "",
    )


@plant(sound="%tag", faulty="%other_tag", modes=MODES)
def the_wait_is_for_another_tag(tag: str, mode: str) -> str:
    other = (view("c"), each("x", "c"), copy("c", "z"))
    waits = wait(mode).replace("%tag", tag)
    is_late = mode == "late" and tag == "%other_tag"
    return program(
        *(
            FORMS["memref"].tags,
            arena(),
            view("a"),
            view("b", "%c64"),
            copy("x", "a"),
            each("x", "b"),
        ),
        *(start(mode), "" if is_late else waits, *other, waits if is_late else ""),
        *(copy("b", "y"), free()),
    )


@plant(sound="other", faulty="shared", modes=MODES)
def another_transfer_has_the_tag_by_another_name(tag: str, mode: str) -> str:
    """The other transfer may complete first, which ends the wait."""
    other = start(mode).replace("%a", "%x").replace("%b", "%z")
    last = wait(mode).replace("%tag", "%again")
    is_late = mode == "late" and tag == "shared"
    return program(
        *(
            f"%tag = memref.get_global @shared : {TAG}",
            f"%again = memref.get_global @{tag} : {TAG}",
            arena(),
            view("a"),
            view("b", "%c64"),
            copy("x", "a"),
            each("x", "b"),
        ),
        *(start(mode), other.replace("%tag", "%again") if mode == "checked" else ""),
        *("" if is_late else wait(mode), view("c", "%c64"), each("x", "c")),
        *(last if mode == "checked" else wait(mode) if is_late else "",),
        *(copy("c", "y"), free()),
        beside="\n".join(
            f'memref.global "private" @{name} : {TAG} = uninitialized'
            for name in ("shared", "other")
        ),
    )


@plant(sound=True, faulty=False, modes=MODES)
def the_wait_is_on_one_branch(both: bool, mode: str) -> str:
    other = (view("c"), each("x", "c"), copy("c", "z"))
    late = branch([], [wait(mode)]) if mode == "late" and not both else ""
    return program(
        *(
            FORMS["memref"].tags,
            arena(),
            view("a"),
            view("b", "%c64"),
            copy("x", "a"),
            each("x", "b"),
        ),
        *(start(mode), branch([wait(mode)], [wait(mode)] if both else None), *other),
        *(late, copy("b", "y"), free()),
    )


@plant(sound="%c128", faulty="%c0", modes=MODES)
def the_source_is_taken_in_a_loop(at: str, mode: str) -> str:
    other = (view("c", at), each("x", "c"), copy("c", "z"))
    return program(
        *(FORMS["memref"].tags, arena(), view("a"), view("b", "%c64"), each("x", "b")),
        loop(copy("x", "a"), start(mode), *other, wait(mode), copy("b", "y")),
        free(),
    )


@plant(sound="%c128", faulty="%c0", modes=MODES)
def the_source_is_taken_in_a_branch(at: str, mode: str) -> str:
    other = (view("c", at), each("x", "c"), copy("c", "z"))
    return transfer(branch(list(other)), mode=mode)


@plant(sound="%c128", faulty="%c0", modes=MODES)
def the_source_is_taken_under_another_name(at: str, mode: str) -> str:
    """The transfer reads %a through a cast."""
    name = next(_names)
    text = transfer(view("c", at), each("x", "c"), copy("c", "z"), mode=mode)
    begin, rest = text.split(view("b", "%c64"), 1)
    cast = f"%{name} = memref.cast %a : {M} to memref<?xf32>"
    again = f"%{name}_same = memref.cast %{name} : memref<?xf32> to {M}"
    rest = rest.replace('dma_start"(%a,', f'dma_start"(%{name}_same,')
    return f"{begin}{view('b', '%c64')}\n{cast}\n{again}{rest}"


_names = (f"name{n}" for n in count())


def region(mode: str, begin: str, end: str) -> str:
    return {
        "checked": f"{begin}\n{copy('a', 'b')}\n{end}",
        "early": copy("a", "b"),
    }.get(mode, "")


@plant(sound="%c128", faulty="%c0", modes=MODES)
def the_source_of_a_task_is_taken(at: str, mode: str) -> str:
    """A task has no token: omp.taskwait waits for all tasks."""
    end = {"checked": '"omp.taskwait"() : () -> ()', "late": copy("a", "b")}
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), each("x", "b")),
        region(mode, '"omp.task"() ({', '"omp.terminator"() : () -> ()\n}) : () -> ()'),
        *(view("c", at), each("x", "c"), copy("c", "z"), end.get(mode, "")),
        *(copy("b", "y"), free()),
    )


@plant(sound="%c128", faulty="%c0", modes=MODES)
def the_source_of_an_unknown_region_is_taken(at: str, mode: str) -> str:
    end = {"checked": '"test.join"(%t) : (!test.token) -> ()', "late": copy("a", "b")}
    return program(
        *(arena(), view("a"), view("b", "%c64"), copy("x", "a"), each("x", "b")),
        region(mode, '%t = "test.spawn"() ({', "}) : () -> !test.token"),
        *(view("c", at), each("x", "c"), copy("c", "z"), end.get(mode, "")),
        *(copy("b", "y"), free()),
    )


@plant(sound="%c128", faulty="%c0", modes=MODES)
def the_source_of_a_called_transfer_is_taken(at: str, mode: str) -> str:
    """One function starts the transfer and returns; another function waits for it."""
    types = f"{M}, {M}, {TAG}"
    starts = start(mode).replace("%a", "%from").replace("%b,", "%to,")
    if mode == "early":
        starts = copy("from", "to")
    waits = {"checked": wait("checked"), "late": copy("from", "to")}.get(mode, "")
    zero = "%c0 = arith.constant 0 : index\n%c16 = arith.constant 16 : index"
    return program(
        *(FORMS["memref"].tags, arena(), view("a"), view("b", "%c64")),
        *(copy("x", "a"), each("x", "b")),
        f"func.call @begin(%a, %b, %tag) : ({types}) -> ()",
        *(view("c", at), each("x", "c"), copy("c", "z")),
        f"func.call @end(%a, %b, %tag) : ({types}) -> ()",
        *(copy("b", "y"), free()),
        beside="\n".join(
            f"func.func @{name}(%from: {M}, %to: {M}, %tag: {TAG}) {{\n{zero}\n{body}\n"
            "return\n}"
            for name, body in (("begin", starts), ("end", waits))
        ),
    )
