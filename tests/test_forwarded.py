"""Tests plans of buffers that loops and branches forward: the number of slots, and the
values that planned programs compute.

Each buffer has 64 bytes, so an arena of 128 bytes has two slots.
"""

import logging
import re

import pytest
from mlir_programs import LIBRARIES
from modules import run
from native_oracle import behaviors, complaint
from oracles import text_of
from planted import M, add, copy, each, lines, program, view
from spilled_programs import on
from unchanged_ir import parsed
from upstream import TOOLS, needs_mlir
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.passes import driver
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.plan.spill import PlanSpill
from tensorplan.passes.plan.strip_memory_spaces import PlanStripMemorySpaces
from tensorplan.support.remarks import REMARKS

MM = f"{M}, {M}"
TURN = "(d0) -> (15 - d0)"
BYTES = "memref<128xi8>"


def alloc(name: str) -> str:
    return f"%{name} = memref.alloc() : {M}"


def free(name: str) -> str:
    return f"memref.dealloc %{name} : {M}"


def step(source: str, target: str) -> str:
    """Operations that cannot run in place. They reverse `source` and add %x, so the
    contents after a loop depend on its trip count."""
    return lines(each(source, target, read=TURN), add(target, "x", target))


def loop(*body: str, starts: str, types: str = M, name: str = "last") -> str:
    count = types.count("memref")
    names = f"%{name}" if count == 1 else f"%{name}:{count}"
    carried = f"{names} = scf.for %{name}i = %c0 to %n step %c1 iter_args({starts})"
    return lines(f"{carried} -> ({types}) {{", *body, "}")


FIRST = lines(alloc("first"), copy("x", "first"))
REPLACED = loop(
    *(alloc("now"), step("was", "now"), free("was"), f"scf.yield %now : {M}"),
    starts="%was = %first",
)
LAST = lines(copy("last", "y"), free("last"))
RUN = loop(
    *(alloc("now"), step("was", "now"), free("was"), f"scf.yield %now : {M}"),
    starts="%was = %begin",
    name="run",
)


def blocks(*body: str, starts: str, args: str, next: str) -> str:
    """A loop made of blocks, in which %i counts up to %n. It carries `args`, with the
    initial values `starts` and the next values `next`."""
    types = f"index{f', {M}' * args.count('%')}"
    typed = ", ".join(f"{arg}: {M}" for arg in args.split(", "))
    return lines(
        f"cf.br ^head(%c0, {starts} : {types})",
        f"^head(%i: index, {typed}):",
        "%more = arith.cmpi slt, %i, %n : index",
        *("cf.cond_br %more, ^body, ^end", "^body:", *body),
        f"%next = arith.addi %i, %c1 : index\ncf.br ^head(%next, {next} : {types})",
        "^end:",
    )


def inner(*blocks: str, name: str = "inner") -> str:
    """A loop made of blocks, with names that differ from those of a loop around it."""
    of_loop = r"([%^])(head|body|end|i|more|next)\b"
    return re.sub(of_loop, rf"\1{name}_\2", lines(*blocks))


NEXT = [alloc("now"), step("was", "now"), free("was")]

PROGRAMS = {
    "replaced in each iteration": ([FIRST, REPLACED, LAST], 128),
    "replaced in a loop in a loop": (
        [
            "scf.for %k = %c0 to %n step %c1 {",
            *(FIRST, REPLACED, LAST, "}"),
        ],
        128,
    ),
    "forwarded from one run of a loop to the next": (
        [FIRST, loop(RUN, f"scf.yield %run : {M}", starts="%begin = %first"), LAST],
        128,
    ),
    "forwarded from one run to the next, and read between": (
        [
            FIRST,
            loop(
                *(RUN, each("run", "z"), add("run", "z", "run")),
                f"scf.yield %run : {M}",
                starts="%begin = %first",
            ),
            LAST,
        ],
        128,
    ),
    "forwarded through three loops": (
        [
            FIRST,
            loop(
                loop(RUN, f"scf.yield %run : {M}", starts="%begin = %k", name="all"),
                f"scf.yield %all : {M}",
                starts="%k = %first",
            ),
            LAST,
        ],
        128,
    ),
    "forwarded from one run to the next, with the one before": (
        [
            *(FIRST, alloc("second"), each("x", "second")),
            loop(
                loop(
                    *(alloc("now"), step("was", "now"), add("now", "before", "now")),
                    f"scf.yield %now, %was : {MM}",
                    starts="%was = %begin, %before = %older",
                    types=MM,
                    name="run",
                ),
                f"scf.yield %run#0, %run#1 : {MM}",
                starts="%begin = %first, %older = %second",
                types=MM,
            ),
            copy("last#0", "y"),
        ],
        192,
    ),
    "forwarded from one run to the next of a loop in a while": (
        [
            FIRST,
            "%end:2 = scf.while (%i = %c0, %begin = %first) : "
            f"(index, {M}) -> (index, {M}) {{",
            "%more = arith.cmpi slt, %i, %n : index",
            f"scf.condition(%more) %i, %begin : index, {M}",
            f"}} do {{\n^bb0(%j: index, %kept: {M}):",
            RUN.replace("%was = %begin", "%was = %kept"),
            "%next = arith.addi %j, %c1 : index",
            f"scf.yield %next, %run : index, {M}\n}}",
            *(copy("end#1", "y"), free("end#1")),
        ],
        128,
    ),
    "dead when the next one is written": (
        [
            FIRST,
            loop(
                *(copy("was", "z"), free("was"), alloc("now"), step("z", "now")),
                f"scf.yield %now : {M}",
                starts="%was = %first",
            ),
            LAST,
        ],
        64,
    ),
    "the first is read after the loop": (
        [
            FIRST,
            loop(
                *(alloc("now"), step("was", "now"), f"scf.yield %now : {M}"),
                starts="%was = %first",
            ),
            *(copy("first", "z"), LAST),
        ],
        192,
    ),
    "two in one loop": (
        [
            *(FIRST, alloc("other"), each("x", "other")),
            loop(
                *(alloc("now"), step("was", "now"), free("was")),
                *(alloc("then"), add("that", "now", "then"), free("that")),
                f"scf.yield %now, %then : {MM}",
                starts="%was = %first, %that = %other",
                types=MM,
            ),
            f'"memref.copy"(%last#0, %y) : ({MM}) -> ()',
            f'"memref.copy"(%last#1, %z) : ({MM}) -> ()',
        ],
        192,  # %then is computed over %that
    ),
    "the two before are read": (
        [
            *(FIRST, alloc("second"), each("x", "second")),
            loop(
                *(alloc("now"), step("was", "now"), add("now", "older", "now")),
                *(free("older"), f"scf.yield %now, %was : {MM}"),
                starts="%was = %first, %older = %second",
                types=MM,
            ),
            f'"memref.copy"(%last#0, %y) : ({MM}) -> ()',
        ],
        192,
    ),
    "alternating": (
        [
            FIRST,
            loop(
                *(alloc("now"), step("was", "now"), free("was")),
                *(alloc("then"), step("now", "then"), free("now")),
                f"scf.yield %then : {M}",
                starts="%was = %first",
            ),
            LAST,
        ],
        128,
    ),
    "in a while": (
        [
            FIRST,
            f"%r:2 = scf.while (%i = %c0, %was = %first) : (index, {M}) -> "
            f"(index, {M}) {{",
            "%more = arith.cmpi slt, %i, %n : index",
            f"scf.condition(%more) %i, %was : index, {M}",
            f"}} do {{\n^bb0(%j: index, %that: {M}):",
            *(alloc("now"), step("that", "now"), free("that")),
            f"%next = arith.addi %j, %c1 : index\nscf.yield %next, %now : index, {M}",
            "}",
            f'"memref.copy"(%r#1, %y) : ({MM}) -> ()',
        ],
        128,
    ),
    "before the condition of a while": (
        [
            FIRST,
            f"%r:2 = scf.while (%i = %c0, %was = %first) : (index, {M}) -> "
            f"(index, {M}) {{",
            *(alloc("now"), step("was", "now"), free("was")),
            "%more = arith.cmpi slt, %i, %n : index",
            f"scf.condition(%more) %i, %now : index, {M}",
            f"}} do {{\n^bb0(%j: index, %that: {M}):",
            "%next = arith.addi %j, %c1 : index",
            f"scf.yield %next, %that : index, {M}\n}}",
            f'"memref.copy"(%r#1, %y) : ({MM}) -> ()',
        ],
        128,
    ),
    "replaced on each path of an iteration": (
        [
            FIRST,
            loop(
                f"%now = scf.if %p -> ({M}) {{",
                *(alloc("a"), step("was", "a"), f"scf.yield %a : {M}", "} else {"),
                *(alloc("b"), add("was", "x", "b"), step("b", "z"), step("was", "b")),
                *(f"scf.yield %b : {M}", "}", free("was"), f"scf.yield %now : {M}"),
                starts="%was = %first",
            ),
            LAST,
        ],
        128,
    ),
    "replaced on a path inside a path, with another": (
        [
            FIRST,
            loop(
                f"%now = scf.if %p -> ({M}) {{",
                *(alloc("a"), step("was", "a"), "%q = arith.cmpi eq, %n, %c1 : index"),
                *(f"%inner = scf.if %q -> ({M}) {{", alloc("b"), step("a", "b")),
                *(add("was", "b", "b"), free("a"), f"scf.yield %b : {M}", "} else {"),
                *(f"scf.yield %a : {M}", "}", f"scf.yield %inner : {M}", "} else {"),
                *(alloc("d"), step("was", "d"), f"scf.yield %d : {M}", "}"),
                *(free("was"), f"scf.yield %now : {M}"),
                starts="%was = %first",
            ),
            LAST,
        ],
        256,
    ),
    "one of two paths replaces it": (
        [
            *(FIRST, f"%last = scf.if %p -> ({M}) {{", copy("first", "z")),
            *(free("first"), alloc("now"), step("x", "now"), f"scf.yield %now : {M}"),
            *("} else {", f"scf.yield %first : {M}", "}", LAST),
        ],
        64,
    ),
    "one of two paths computes another from it": (
        [
            *(FIRST, f"%last = scf.if %p -> ({M}) {{", alloc("now")),
            *(step("first", "now"), free("first"), f"scf.yield %now : {M}"),
            *("} else {", f"scf.yield %first : {M}", "}", LAST),
        ],
        128,
    ),
    "each path allocates it": (
        [
            *(f"%last = scf.if %p -> ({M}) {{", alloc("a"), step("x", "a")),
            *(f"scf.yield %a : {M}", "} else {", alloc("b"), each("x", "b")),
            *(f"scf.yield %b : {M}", "}", LAST),
        ],
        64,
    ),
    "each block allocates it": (
        [
            *("cf.cond_br %p, ^l, ^r", "^l:", alloc("a"), step("x", "a")),
            *(f"cf.br ^e(%a : {M})", "^r:", alloc("b"), each("x", "b")),
            *(f"cf.br ^e(%b : {M})", f"^e(%last: {M}):", LAST),
        ],
        64,
    ),
    "replaced in each iteration of blocks": (
        [
            *(FIRST, blocks(*NEXT, starts="%first", args="%was", next="%now")),
            *(copy("was", "y"), free("was")),
        ],
        128,
    ),
    "replaced in one block, and forwarded by two": (
        [
            FIRST,
            blocks(
                *(alloc("now"), step("was", "now"), "cf.cond_br %p, ^more, ^done"),
                *("^more:", add("now", "was", "now"), "cf.br ^done", "^done:"),
                *("%two = arith.addi %i, %c1 : index", each("now", "z")),
                "%odd = arith.cmpi slt, %two, %n : index",
                f"cf.cond_br %odd, ^on, ^head(%two, %now : index, {M})\n^on:",
                starts="%first",
                args="%was",
                next="%now",
            ),
            copy("was", "y"),
        ],
        128,
    ),
    "replaced in each iteration of blocks, and the two before are read": (
        [
            *(FIRST, alloc("second"), each("x", "second")),
            blocks(
                *(alloc("now"), step("was", "now"), add("now", "older", "now")),
                starts="%first, %second",
                args="%was, %older",
                next="%now, %was",
            ),
            *(copy("was", "y"), each("older", "z")),
        ],
        192,
    ),
    "replaced in blocks, from one of two that lead to them": (
        [
            *(FIRST, alloc("second"), each("x", "second", read=TURN)),
            f"cf.cond_br %p, ^l, ^head(%c0, %second : index, {M})\n^l:",
            blocks(*NEXT, starts="%first", args="%was", next="%now"),
            copy("was", "y"),
        ],
        192,
    ),
    "replaced in each iteration of blocks in a loop of blocks": (
        [
            FIRST,
            blocks(
                inner(blocks(*NEXT[:2], starts="%began", args="%was", next="%now")),
                add("was", "began", "z"),
                *(alloc("again"), step("was", "again")),
                starts="%first",
                args="%began",
                next="%again",
            ),
            copy("began", "y"),
        ],
        320,  # two for each loop, and %first, the initial value of both
    ),
    "forwarded from one run of a loop of blocks to the next": (
        [
            FIRST,
            blocks(
                inner(blocks(*NEXT, starts="%began", args="%was", next="%now")),
                *(each("was", "z"), add("was", "z", "was")),
                starts="%first",
                args="%began",
                next="%was",
            ),
            *(copy("began", "y"), free("began")),
        ],
        128,
    ),
    "replaced in two loops of blocks, one after the other, in another": (
        [
            FIRST,
            blocks(
                inner(blocks(*NEXT, starts="%began", args="%was", next="%now")),
                inner(
                    blocks(
                        *(alloc("later"), step("after", "later"), free("after")),
                        starts="%was",
                        args="%after",
                        next="%later",
                    ),
                    name="second",
                ),
                starts="%first",
                args="%began",
                next="%after",
            ),
            *(copy("began", "y"), free("began")),
        ],
        256,  # two for each inner loop
    ),
    "forwarded through three loops of blocks, with the one before": (
        [
            *(FIRST, alloc("second"), each("x", "second")),
            blocks(
                inner(
                    blocks(
                        inner(
                            blocks(
                                *(NEXT[0], NEXT[1], add("now", "older", "now")),
                                starts="%b, %b_older",
                                args="%was, %older",
                                next="%now, %was",
                            )
                        ),
                        starts="%a, %a_older",
                        args="%b, %b_older",
                        next="%was, %older",
                    ),
                    name="middle",
                ),
                starts="%first, %second",
                args="%a, %a_older",
                next="%b, %b_older",
            ),
            *(copy("a", "y"), each("a_older", "z")),
        ],
        192,
    ),
    "selected": (
        [
            *(alloc("a"), step("x", "a"), alloc("b"), each("x", "b")),
            *(f"%last = arith.select %p, %a, %b : {M}", LAST),
        ],
        128,
    ),
    "a path's own begins a loop": (
        [
            *(f"%first = scf.if %p -> ({M}) {{", alloc("a"), step("x", "a")),
            *(f"scf.yield %a : {M}", "} else {", alloc("b"), each("x", "b")),
            *(f"scf.yield %b : {M}", "}", REPLACED, LAST),
        ],
        128,
    ),
    "a switch begins the loop": (
        [
            "%number = arith.index_cast %n : index to i32",
            f"cf.switch %number : i32, [default: ^loop(%c0, %x : index, {M}),",
            *("3: ^after]", f"^loop(%i: index, %was: {M}):"),
            "%more = arith.cmpi slt, %i, %n : index",
            *("cf.cond_br %more, ^body, ^end", "^body:", *NEXT[:2]),
            "%next = arith.addi %i, %c1 : index",
            *(f"cf.br ^loop(%next, %now : index, {M})", "^end:", copy("was", "y")),
            *("cf.br ^after", "^after:"),
        ],
        128,
    ),
    "byte buffers that a loop exchanges": (
        [
            *(f"%{name} = memref.alloc() : {BYTES}" for name in "cd"),
            *(view("first", of="c", arena=BYTES), copy("x", "first")),
            "%r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c, %t = %d) -> "
            f"({BYTES}, {BYTES}) {{",
            *(view("was", of="s", arena=BYTES), view("now", of="t", arena=BYTES)),
            *(view("other", "%c64", of="t", arena=BYTES), each("x", "other")),
            *(add("was", "other", "now"), add("now", "other", "y")),
            *(f"scf.yield %t, %s : {BYTES}, {BYTES}", "}"),
        ],
        256,
    ),
    "views of bytes that overlap": (
        [
            f"%c = memref.alloc() {{alignment = 128 : i64}} : {BYTES}",
            *(view("a", "%c32", of="c", arena=BYTES), copy("x", "a")),
            view("b", "%c32", "memref<16xi32>", of="c", arena=BYTES),
            "%bits = memref.load %b[%c3] : memref<16xi32>",
            "%twice = arith.addi %bits, %bits : i32",
            "memref.store %twice, %b[%c4] : memref<16xi32>",
            *(copy("a", "y"), f"memref.dealloc %c : {BYTES}"),
            *(alloc("e"), step("x", "e"), copy("e", "z"), free("e")),
        ],
        128,
    ),
}

by_program = pytest.mark.parametrize(("body", "size"), PROGRAMS.values(), ids=PROGRAMS)


def planned(text: str) -> ModuleOp:
    module = parsed(text)
    driver.run(tensorplan.context(), module, [PlanMemory()])
    return module


@by_program
def test_number_of_slots(
    body: list[str], size: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, REMARKS.name):
        module = planned(program(*body))
    (pool,) = tensorplan.report(module)["pools"]
    assert pool["bytes"] == size
    assert pool["lower_bound_bytes"] <= size
    assert not [m for m in caplog.messages if "not" in m]


@pytest.mark.skipif(not LIBRARIES, reason="no libmlir_runner_utils")
@needs_mlir
def test_values_of_planned_programs() -> None:
    """With all trip counts and conditions, the plans compute the values of the original
    programs, and free all memory."""
    texts = [program(*body) for body, _ in PROGRAMS.values()]
    plans = [text_of(planned(text)) for text in texts]
    bare = [text[text.index("{") + 1 : text.rindex("}")] for text in plans]
    ran = behaviors([*texts, *bare], TOOLS[0])
    for name, want, got in zip(
        PROGRAMS, ran[: len(texts)], ran[len(texts) :], strict=True
    ):
        assert complaint(got, want) is None, name


def around(*body: str) -> list[str]:
    """A loop of blocks around `body`, which receives %began and forwards %after."""
    return [
        *(FIRST, blocks(*body, starts="%first", args="%began", next="%after")),
        *(copy("began", "y"), free("began")),
    ]


def ends_after(*body: str) -> list[str]:
    """A loop made of blocks, in which %j counts up to %n after `body`. It replaces %was
    with %now at least once."""
    return [
        f"cf.br ^inner(%c0, %began : index, {M})",
        *(f"^inner(%j: index, %was: {M}):", *body),
        "%last = arith.addi %j, %c1 : index",
        "%again = arith.cmpi slt, %last, %n : index",
        f"cf.cond_br %again, ^inner(%last, %now : index, {M}), ^after(%now : {M})",
        f"^after(%after: {M}):",
    ]


LEFT = {
    "an iteration may run the inner loop, or not": around(
        "cf.cond_br %p, ^run, ^none\n^run:",
        inner(blocks(*NEXT, starts="%began", args="%was", next="%now")),
        *(f"cf.br ^join(%was : {M})", f"^none:\ncf.br ^join(%began : {M})"),
        f"^join(%after: {M}):",
    ),
    "an iteration runs the inner loop twice, in an irreducible loop": around(
        f"cf.cond_br %p, ^again(%c0, %began : index, {M}), "
        f"^run(%c0, %began : index, {M})",
        f"^again(%times: index, %left: {M}):\ncf.br ^run(%times, %left : index, {M})",
        f"^run(%time: index, %given: {M}):",
        inner(blocks(*NEXT, starts="%given", args="%was", next="%now")),
        "%later = arith.addi %time, %c1 : index",
        "%is_last = arith.cmpi eq, %time, %c1 : index",
        f"cf.cond_br %is_last, ^join(%was : {M}), ^again(%later, %was : index, {M})",
        f"^join(%after: {M}):",
    ),
    "the inner loop ends after an allocation": around(*ends_after(*NEXT)),
    "the inner loop ends in a block after an allocation": around(
        *ends_after(*NEXT, "cf.br ^latch", "^latch:")
    ),
}


@pytest.mark.skipif(not LIBRARIES, reason="no libmlir_runner_utils")
@needs_mlir
def test_values_of_programs_that_are_left(caplog: pytest.LogCaptureFixture) -> None:
    """A loop of blocks cannot continue the rotation of the loop in it if the slot of
    the last allocation depends on the path."""
    texts = [program(*body) for body in LEFT.values()]
    plans: list[str] = []
    for name, text in zip(LEFT, texts, strict=True):
        caplog.clear()
        with caplog.at_level(logging.INFO, REMARKS.name):
            plan = text_of(planned(text))
        assert "is not planned" in caplog.text, name
        plans.append(plan[plan.index("{") + 1 : plan.rindex("}")])
    ran, count = behaviors([*texts, *plans], TOOLS[0]), len(LEFT)
    for name, want, got in zip(LEFT, ran[:count], ran[count:], strict=True):
        assert complaint(got, want) is None, name


SPILLED = (
    "the first is read after the loop",
    "replaced on each path of an iteration",
    "replaced in one block, and forwarded by two",
    "replaced in blocks, from one of two that lead to them",
    "forwarded from one run of a loop of blocks to the next",
    "selected",
)


def before(alloc: re.Match[str]) -> str:
    """Text to replace an allocation, before which two more buffers are live at once."""
    p, q = f"p{alloc[1]}", f"q{alloc[1]}"
    first = lines(*(f"%{name} = memref.alloc() : {M}" for name in (p, q)))
    return lines(first, step("x", p), step(p, q), add(q, "z", "z"), alloc[0])


@pytest.mark.thorough
@pytest.mark.skipif(not LIBRARIES, reason="no libmlir_runner_utils")
@needs_mlir
def test_values_of_spilled_programs() -> None:
    """Values are right if the memory has room for two buffers of the program, and
    plan-spill moves the other buffers."""
    texts: list[str] = []
    plans: list[str] = []
    for name in SPILLED:
        body, _ = PROGRAMS[name]
        texts.append(re.sub(r"%(\w+) = memref.alloc\(\)", before, program(*body)))
        module = on(texts[-1], (3 + 2) * 64, '"memref.copy"')
        passes = PlanSpill(), PlanMemory(), PlanStripMemorySpaces()
        text = text_of(run(module, *passes))
        plans.append(text[text.index("{\n") + 1 : text.rindex("}")])
    ran = behaviors([*texts, *plans], TOOLS[0])
    for name, want, got in zip(
        SPILLED, ran[: len(texts)], ran[len(texts) :], strict=True
    ):
        for key, outcome in got.items():
            assert outcome.values == want[key].values, name
