"""Tests how uses of freed memory are reported: as errors if they are certain, and as
remarks if they happen on some paths only."""

import re
from random import Random

import pytest
from memref_programs import frees, memref_program
from spilled_programs import function_of
from unchanged_ir import parsed

import tensorplan
from tensorplan.analysis.control_flow import ControlFlow
from tensorplan.analysis.frees import uses_after_free
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.support.remarks import REMARKS

M = "memref<8xf32>"
FOR = "scf.for %i = %zero to %n step %one"


def plan(*lines: str) -> None:
    head = (
        f"func.func @f(%n: index, %p: i1, %x: {M}, %y: {M}) {{",
        "%zero = arith.constant 0 : index",
        "%one = arith.constant 1 : index",
    )
    given = lines[-1].startswith("func.return")
    if given:
        head = (head[0].replace(") {", f") -> {M} {{"), *head[1:])
    module = parsed("\n".join((*head, *lines, "}" if given else "func.return\n}")))
    PlanMemory().apply(tensorplan.context(), module)


def alloc(name: str) -> str:
    return f"%{name} = memref.alloc() : {M}"


def free(name: str, type: str = M) -> str:
    return f"memref.dealloc %{name} : {type}"


def copy(source: str, target: str) -> str:
    return f'"memref.copy"(%{source}, %{target}) : ({M}, {M}) -> ()'


A = [alloc("a"), copy("x", "a")]
CAST = f"%v = memref.cast %a : {M} to memref<?xf32>"

CERTAIN = {
    "freed twice": ([*A, free("a"), free("a")], r"memref.dealloc frees %a again"),
    "read": ([*A, free("a"), copy("a", "y")], r"memref.copy reads %a"),
    "written": ([*A, free("a"), copy("x", "a")], r"memref.copy writes %a"),
    "read and written": ([*A, free("a"), copy("a", "a")], r"memref.copy uses %a"),
    "through a view": (
        [*A, CAST, free("a"), "%l = memref.load %v[%zero] : memref<?xf32>"],
        r"memref.load reads %a",
    ),
    "freed through a view": (
        [*A, CAST, free("v", "memref<?xf32>"), copy("a", "y")],
        r"memref.copy reads %a",
    ),
    "on the same path": (
        [*A, "scf.if %p {", free("a"), copy("a", "y"), "}"],
        r"memref.copy reads %a",
    ),
    "in an iteration": (
        [f"{FOR} {{", *A, free("a"), free("a"), "}"],
        r"memref.dealloc frees %a again",
    ),
    "what the caller gives": ([free("x"), copy("x", "y")], r"memref.copy reads %x"),
    "of no name": (
        [f"%7 = memref.alloc() : {M}", copy("x", "7"), free("7"), copy("7", "y")],
        r"memref.copy reads the memory of memref.alloc \(test.mlir:\d+:\d+\)",
    ),
}


@pytest.mark.parametrize(("lines", "message"), CERTAIN.values(), ids=CERTAIN)
def test_certain_uses_after_free_are_errors(lines: list[str], message: str) -> None:
    after = r" after memref.dealloc \(test.mlir:\d+:\d+\) frees it, expected no use"
    with pytest.raises(LocatedError, match=rf"^test.mlir:\d+:\d+: {message}{after}"):
        plan(*lines)


CHOSEN = [*A, alloc("b"), copy("x", "b"), f"%s = arith.select %p, %a, %b : {M}"]

POSSIBLE = {
    "freed in a branch": (
        [*A, "scf.if %p {", free("a"), "}", copy("a", "y")],
        ["memref.copy may read %a"],
    ),
    "freed in a branch, and again": (
        [*A, "scf.if %p {", free("a"), "}", free("a")],
        ["memref.dealloc may free %a again"],
    ),
    "read in a branch": (
        [*A, free("a"), "scf.if %p {", copy("a", "y"), "}"],
        ["memref.copy may read %a"],
    ),
    "in the next iteration": (
        [*A, f"{FOR} {{", copy("a", "y"), free("a"), "}"],
        ["memref.copy may read %a", "memref.dealloc may free %a again"],
    ),
    "freed as one of two": (
        [*CHOSEN, free("s"), copy("a", "y")],
        ["memref.copy may read %a"],
    ),
    "read as one of two": (
        [*CHOSEN, free("a"), copy("s", "y")],
        ["memref.copy may read %a"],
    ),
    "forwarded after that": (
        [
            *(*A, f"%r = scf.if %p -> ({M}) {{", free("a"), f"scf.yield %a : {M}"),
            *("} else {", f"scf.yield %a : {M}", "}", copy("r", "y")),
        ],
        ["memref.copy may read %a"],
    ),
    "by blocks": (
        [*A, "cf.cond_br %p, ^l, ^m", "^l:", free("a"), "cf.br ^m", "^m:", free("a")],
        ["memref.dealloc may free %a again"],
    ),
    "what a loop forwards and frees each time": (
        [
            f"%r = {FOR} iter_args(%k = %x) -> ({M}) {{",
            free("k"),
            f"scf.yield %k : {M}",
            "}",
        ],
        ["memref.dealloc may free %x again"],
    ),
}


@pytest.mark.parametrize(("lines", "remarks"), POSSIBLE.values(), ids=POSSIBLE)
def test_possible_uses_after_free_get_remarks(
    lines: list[str], remarks: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", REMARKS.name):
        plan(*lines)
    found = [m for m in caplog.messages if "frees it, on some path" in m]
    assert len(found) == len(remarks)
    for message, remark in zip(found, remarks, strict=True):
        assert f"remark: {remark} after memref.dealloc (test.mlir:" in message


SOUND = {
    "freed if a loop has replaced it": [
        *(*A, "%no = arith.constant false", "%yes = arith.constant true"),
        f"%r, %o = {FOR} iter_args(%k = %a, %own = %no) -> ({M}, i1) {{",
        *(alloc("b"), copy("k", "b"), "scf.if %own {", free("k"), "}"),
        *(f"scf.yield %b, %yes : {M}, i1", "}", copy("r", "y")),
        *("scf.if %o {", free("r"), "}", free("a")),
    ],
    "freed once": [*A, copy("a", "y"), free("a")],
    "in a concurrent loop": [
        '"scf.parallel"(%zero, %n, %one) <{operandSegmentSizes = array<i32: 1, 1, 1, '
        "0>}> ({\n^bb0(%i: index):",
        *(*A, free("a"), '"scf.reduce"() : () -> ()'),
        "}) : (index, index, index) -> ()",
    ],
    "returned": [*A, free("a"), f"func.return %a : {M}"],
    "its size": [*A, free("a"), f"%d = memref.dim %a, %zero : {M}"],
    "in each branch": [*A, "scf.if %p {", free("a"), "} else {", free("a"), "}"],
    "allocated anew in each iteration": [f"{FOR} {{", *A, free("a"), "}"],
    "replaced in each iteration": [
        *(*A, f"%r = {FOR} iter_args(%k = %a) -> ({M}) {{", alloc("b")),
        *(copy("k", "b"), free("k"), copy("b", "y"), f"scf.yield %b : {M}", "}"),
        *(copy("r", "y"), free("r")),
    ],
    "replaced in a branch": [
        *(*A, f"%r = scf.if %p -> ({M}) {{", alloc("b"), copy("a", "b"), free("a")),
        *(f"scf.yield %b : {M}", "} else {", f"scf.yield %a : {M}", "}"),
        *(copy("r", "y"), free("r")),
    ],
    "replaced by blocks": [
        *(*A, f"cf.br ^h(%a : {M})", f"^h(%k: {M}):", alloc("b"), copy("k", "b")),
        *(free("k"), f"cf.cond_br %p, ^h(%b : {M}), ^e", "^e:", free("b")),
    ],
}


@pytest.mark.parametrize("lines", SOUND.values(), ids=SOUND)
def test_sound_programs_get_no_remark(
    lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", REMARKS.name):
        plan(*lines)
    assert not [m for m in caplog.messages if "frees it" in m]


def freed_at_random(random: Random) -> str:
    """A program with control flow that frees some buffer right after a copy of it."""
    lines = memref_program(random, random.randint(3, 9)).split("\n")
    copies = {
        number: found.groups()
        for number, line in enumerate(lines, 1)
        if (found := re.search(r"copy.\((%v\w+), %\w+\) : \((memref<\w+>)", line))
    }
    if copies:
        after = random.choice(list(copies))
        lines.insert(after, "memref.dealloc {} : {}".format(*copies[after]))
    return "\n".join(lines)


def test_findings_agree_with_simulated_runs() -> None:
    sure = perhaps = 0
    for seed in range(30):
        function = function_of(parsed(freed_at_random(Random(seed))))
        found = list(uses_after_free(function, ControlFlow(function)))
        for path in range(6):
            freed, used = frees(function, path)
            assert used <= {use.memory for use in found}, seed
            perhaps += bool(used)
            for use in found:
                if use.is_sure and (use.memory, use.free) in freed:
                    assert use.memory in used, (seed, use.text)
                    sure += 1
    assert perhaps > 20
    assert sure > 5
