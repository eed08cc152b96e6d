"""Tests that `plan-spill` moves buffers that branches and loops forward."""

import re
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memref_programs import function, memref_program
from modules import parse, run
from sampling import examples
from spilled_programs import assert_same_bytes, function_of, on, peak
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp, NoneAttr
from xdsl.rewriter import Rewriter

import tensorplan
from tensorplan.analysis.sizes import argument_bytes
from tensorplan.checking.plan_check import check_plan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.target_memory import TARGET
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.plan.spill import PlanSpill
from tensorplan.runtime.executor import Executable

M = "memref<16xf32>"
STRIDED = "memref<16xf32, strided<[1], offset: ?>>"
P = "memref<4xf32, strided<[1], offset: ?>>"
PART = "memref<4xf32, strided<[1], offset: 2>>"
COPY = '"memref.copy"'


def copy(source: str, target: str, type: str = M) -> str:
    return f"linalg.copy ins(%{source} : {type}) outs(%{target} : {type})"


def read(name: str) -> str:
    return f"linalg.exp ins(%{name} : {M}) outs(%y : {M})"


def seen(name: str) -> list[str]:
    return [read(name), copy(name, "u")]


def alloc(name: str) -> str:
    return f"%{name} = memref.alloc() : {M}"


def free(name: str) -> str:
    return f"memref.dealloc %{name} : {M}"


def cast(name: str) -> str:
    return f'%{name}s = "memref.cast"(%{name}) : ({M}) -> {STRIDED}'


def busy(name: str) -> list[str]:
    """Lines in which two more buffers are live at once."""
    p, q = f"{name}p", f"{name}q"
    lines = [alloc(p), alloc(q), copy("z", p), copy(p, q), read(q), read(p)]
    return [*lines, free(p), free(q)]


def renamed(line: str, **names: str) -> str:
    return re.sub(r"%(\w+)", lambda m: "%" + names.get(m[1], m[1]), line)


def loop(*body: str, begin: str = "first") -> list[str]:
    start = "%r = scf.for %i = %zero to %n step %one iter_args"
    return [f"{start}(%old = %{begin}) -> ({M}) {{", *body, "}"]


MADE = [
    f"%r = scf.if %c -> ({M}) {{",
    *(alloc("a"), copy("x", "a"), f"scf.yield %a : {M}"),
    "} else {",
    *(alloc("b"), copy("x", "b"), f"scf.yield %b : {M}", "}"),
]
FIRST = [alloc("first"), copy("x", "first")]
LAST = [*busy("e"), read("r"), copy("r", "y"), free("r")]
REPLACED = loop(
    *(read("old"), *busy("l"), *seen("old"), alloc("new"), copy("z", "new")),
    *(read("new"), read("old"), free("old"), f"scf.yield %new : {M}"),
)
"""A loop in which %old and %new are live at once, and %old with two other buffers
before."""

CHANGED = loop(
    *(copy("z", "old"), *busy("l"), *seen("old"), alloc("new"), copy("z", "new")),
    *(read("new"), read("old"), f"scf.yield %new : {M}"),
)

PROGRAMS = {
    "made in a branch": [*MADE, *LAST],
    "replaced in a branch": [
        *FIRST,
        f"%r = scf.if %c -> ({M}) {{",
        *(free("first"), alloc("a"), copy("x", "a"), f"scf.yield %a : {M}"),
        *("} else {", f"scf.yield %first : {M}", "}"),
        *LAST,
    ],
    "made in a branch of a loop": [
        "scf.for %i = %zero to %n step %one {",
        *(*MADE, *LAST, "}"),
    ],
    "changed in each iteration": [
        *FIRST,
        *loop(copy("z", "old"), *busy("l"), *seen("old"), f"scf.yield %old : {M}"),
        *LAST,
    ],
    "made anew when the one before is over": [
        *FIRST,
        *loop(
            *(read("old"), *busy("l"), *seen("old"), free("old")),
            *(alloc("new"), copy("z", "new"), f"scf.yield %new : {M}"),
        ),
        *LAST,
    ],
    "made from the one before": [*FIRST, *REPLACED, *LAST],
    "made from the one before, and first from an argument": [
        *(
            line.replace("%first", "%x")
            for line in REPLACED
            if "dealloc %old" not in line
        ),
        *(line for line in LAST if "dealloc %r" not in line),
    ],
    "made anew in a branch, or not": [
        *FIRST,
        *loop(
            *(read("old"), *busy("l"), *seen("old")),
            f"%next = scf.if %c -> ({M}) {{",
            *(alloc("new"), copy("z", "new"), f"scf.yield %new : {M}"),
            *("} else {", f"scf.yield %old : {M}", "}", f"scf.yield %next : {M}"),
        ),
        *(line for line in LAST if "dealloc %r" not in line),
    ],
    "forwarded by a loop in a loop": [
        *FIRST,
        *loop(
            *(renamed(line, r="s", i="j", old="o", first="old") for line in REPLACED),
            f"scf.yield %s : {M}",
        ),
        *LAST,
    ],
    "forwarded by a while": [
        *FIRST,
        f"%r = scf.while (%old = %first) : ({M}) -> {M} {{",
        f"scf.condition(%c) %old : {M}",
        f"}} do {{\n^bb0(%now: {M}):",
        *(*busy("l"), *seen("now"), alloc("new"), copy("z", "new")),
        *(read("now"), f"scf.yield %new : {M}", "}"),
        *(line for line in LAST if "dealloc %r" not in line),
    ],
    "forwarded by a scope": [
        f"%r = scf.execute_region -> ({M}) {{",
        *(alloc("a"), copy("x", "a"), f"scf.yield %a : {M}", "}"),
        *LAST,
    ],
    "selected": [
        *(alloc("a"), alloc("b"), f"%r = arith.select %c, %a, %b : {M}"),
        *(copy("x", "r"), *busy("e"), read("r"), copy("r", "y")),
    ],
    "selected from two that are live": [
        *(alloc("a"), alloc("b"), copy("x", "a"), copy("z", "b")),
        "%p = arith.cmpi ne, %n, %zero : index",
        *(renamed(line, z="y") for line in busy("l")),
        *(f"%r = arith.select %p, %a, %b : {M}", *busy("e"), read("r")),
        copy("r", "y"),
    ],
    "first read after the loop that begins with it": [
        *(*FIRST, *REPLACED, *busy("e"), read("r"), copy("r", "y"), copy("first", "z"))
    ],
    "made in a block": [
        *("cf.cond_br %c, ^left, ^right", "^left:", alloc("a"), copy("x", "a")),
        *(f"cf.br ^end(%a : {M})", "^right:", alloc("b"), copy("z", "b")),
        *(f"cf.br ^end(%b : {M})", f"^end(%r: {M}):", *LAST),
    ],
    "chosen by a branch": [
        *(alloc("a"), alloc("b"), copy("x", "a"), copy("z", "b"), *busy("l")),
        *(read("a"), read("b")),
        f"cf.cond_br %c, ^end(%a : {M}), ^end(%b : {M})",
        *(f"^end(%r: {M}):", *busy("e"), read("r"), copy("r", "y")),
    ],
    "forwarded to one of two blocks": [
        *(*FIRST, f"cf.cond_br %c, ^left, ^right(%first : {M})"),
        *("^left:", alloc("a"), read("first"), copy("z", "a"), *seen("first")),
        *(f"cf.br ^right(%a : {M})", f"^right(%r: {M}):"),
        *(*busy("e"), read("r"), copy("r", "y")),
    ],
    "changed in each iteration of blocks": [
        *(*FIRST, f"cf.br ^head(%first : {M})", f"^head(%old: {M}):"),
        *(copy("z", "old"), *busy("l"), *seen("old")),
        *(f"cf.cond_br %c, ^head(%old : {M}), ^end", "^end:"),
        *(*busy("e"), read("old"), copy("old", "y"), free("old")),
    ],
    "made anew in blocks when the one before is over": [
        *(*FIRST, f"cf.br ^head(%first : {M})", f"^head(%old: {M}):"),
        *(read("old"), *busy("l"), *seen("old"), "cf.cond_br %c, ^body, ^end"),
        *("^body:", free("old"), alloc("new"), copy("z", "new")),
        *(f"cf.br ^head(%new : {M})", "^end:"),
        *(*busy("e"), read("old"), copy("old", "y"), free("old")),
    ],
    "made from the one before in blocks": [
        *(*FIRST, f"cf.br ^head(%first : {M})", f"^head(%old: {M}):", read("old")),
        *(*(renamed(line, z="y") for line in busy("l")), *seen("old")),
        *(alloc("new"), copy("z", "new"), read("new"), read("old"), free("old")),
        f"cf.cond_br %c, ^head(%new : {M}), ^end(%new : {M})",
        *(f"^end(%r: {M}):", *LAST),
    ],
    "cast": [
        f"%r = scf.if %c -> ({STRIDED}) {{",
        *(alloc("a"), copy("x", "a"), cast("a")),
        *(f"scf.yield %as : {STRIDED}", "} else {"),
        *(alloc("b"), copy("x", "b"), cast("b")),
        *(f"scf.yield %bs : {STRIDED}", "}", *busy("e")),
        f"linalg.exp ins(%r : {STRIDED}) outs(%y : {M})",
        f"linalg.copy ins(%r : {STRIDED}) outs(%y : {M})",
    ],
}


def program(lines: list[str], buffers: int) -> ModuleOp:
    """A program on a target whose fast memory holds the arguments and `buffers`
    buffers."""
    text = "\n".join(lines)
    return on(
        f"""func.func @f(%n: index, %c: i1, %x: {M}, %y: {M}, %z: {M}, %u: {M}) {{
          %zero = arith.constant 0 : index
          %one = arith.constant 1 : index
          {text}
          func.return
        }}""",
        (4 + buffers) * 64,
        COPY,
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_forwarded_buffers_move(name: str) -> None:
    """Two of three buffers fit."""
    lines = PROGRAMS[name]
    assert peak(program(lines, 9)) > 2 * 64
    module = program(lines, 2)
    spilled = run(module, PlanSpill())
    spilled.verify()
    assert peak(spilled) == 2 * 64
    assert '"slow"' in str(function_of(spilled))
    assert_same_bytes(module, spilled, paths=8)
    assert_same_bytes(module, run(spilled, PlanMemory()), paths=8)
    assert str(run(spilled, PlanSpill())) == str(spilled)


def copies(module: ModuleOp) -> list[memref.CopyOp]:
    return [op for op in module.walk() if isinstance(op, memref.CopyOp)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_plan_without_one_copy_is_detected(name: str) -> None:
    """Either `plan-check` refuses the plan, or the program reads old contents and
    computes other values."""
    planned = run(program(PROGRAMS[name], 2), PlanSpill(), PlanMemory())
    refused = 0
    for number in range(len(copies(planned))):
        other = planned.clone()
        Rewriter.erase_op(copies(other)[number])
        try:
            check_plan(other)
        except LocatedError:
            refused += 1
        else:
            with pytest.raises(AssertionError):
                assert_same_bytes(planned, other, paths=8)
    assert refused


TWO = "%r, %s = scf.for %i = %zero to %n step %one iter_args"

STAY = {
    "the first is changed in the loop, and read after it": [
        *(*FIRST, *CHANGED, *busy("e"), read("r"), copy("r", "y")),
        copy("first", "u"),
    ],
    "an argument that is written": [
        *loop(*busy("l"), copy("z", "old"), f"scf.yield %old : {M}", begin="x"),
        *(alloc("a"), copy("x", "a"), *busy("e"), copy("a", "y")),
    ],
    "two take turns": [
        *(*FIRST, alloc("second"), copy("z", "second")),
        f"{TWO}(%a = %first, %b = %second) -> ({M}, {M}) {{",
        *(*busy("l"), *seen("a"), f"scf.yield %b, %a : {M}, {M}", "}"),
        *(copy("r", "y"), copy("s", "u")),
    ],
    "a part": [
        *FIRST,
        f"%p = scf.if %c -> ({PART}) {{",
        f"%q = memref.subview %first[2] [4] [1] : {M} to {PART}",
        *(f"scf.yield %q : {PART}", "} else {"),
        f"%q = memref.subview %first[2] [4] [1] : {M} to {PART}",
        *(f"scf.yield %q : {PART}", "}", *busy("e"), read("first")),
        f"linalg.exp ins(%p : {PART}) outs(%p : {PART})",
        copy("first", "y"),
    ],
}


@pytest.mark.parametrize("name", STAY)
def test_buffers_whose_copies_would_change_results_stay(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    module = program(STAY[name], 2)
    with caplog.at_level("INFO"):
        spilled = run(module, PlanSpill())
    assert "are copied" not in caplog.text
    assert_same_bytes(module, spilled, paths=8)


def test_remark_names_copied_buffers(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        run(program(PROGRAMS["made from the one before"], 2), PlanSpill())
    assert "64 bytes of %new are copied where scf.yield forwards them" in caplog.text


def test_buffer_spilled_in_one_branch_is_fetched_after_it() -> None:
    """The other branch writes the buffer in the fast memory, where later operations
    read it."""
    lines = [
        *(f"%r = scf.if %c -> ({M}) {{", alloc("a")),
        *(f'"memref.copy"(%x, %a) : ({M}, {M}) -> ()', *busy("t")),
        *(f"scf.yield %a : {M}", "} else {"),
        *(alloc("b"), copy("x", "b"), f"scf.yield %b : {M}", "}"),
        *(read("r"), copy("r", "y")),
    ]
    module = program(lines, 2)
    spilled = run(module, PlanSpill())
    assert '"memref.copy"(%x, %a_1)' in str(spilled)
    assert_same_bytes(module, spilled, paths=8)


def test_program_that_fits_has_no_copies() -> None:
    """The loop rotates two slots."""
    spilled = run(program(PROGRAMS["made from the one before"], 4), PlanSpill())
    assert "iter_args" in str(spilled)
    assert not copies(spilled)


def test_executor_runs_loops_that_forward_buffers() -> None:
    """Each iteration of the loop multiplies matrices, and needs large temporary
    buffers."""
    t = 'memref<16x16xf32, "cpu:0">'
    program = f"""
    func.func @main(%x: {t}, %y: {t} {{tgraph.result = 0 : i32}}) {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %four = arith.constant 4 : index
      %first = memref.alloc() : {t}
      tgraph.tanh %x outs(%first) : {t}
      %r = scf.for %i = %zero to %four step %one iter_args(%old = %first) -> ({t}) {{
        %a = memref.alloc() : {t}
        tgraph.exponential %x outs(%a) : {t}
        %b = memref.alloc() : {t}
        tgraph.reverse %a outs(%b) {{dimensions = array<i64: 0>}} : {t}
        %c = memref.alloc() : {t}
        tgraph.dot_general %a, %b outs(%c) {{lhs_contracting_dimensions = array<i64: 1>,
          rhs_contracting_dimensions = array<i64: 0>}} : {t}
        tgraph.tanh %c outs(%a) : {t}
        %new = memref.alloc() : {t}
        tgraph.dot_general %old, %a outs(%new) {{
          lhs_contracting_dimensions = array<i64: 1>,
          rhs_contracting_dimensions = array<i64: 0>}} : {t}
        scf.yield %new : {t}
      }}
      tgraph.negate %r outs(%y) : {t}
      func.return
    }}"""
    target = parse(f"""module attributes {{
      {TARGET} = #dlti.target_system_spec<
        "cpu:0" = #dlti.target_device_spec<"capacity" = 5120,
          "copies" = #dlti.map<"cpu:1" = #dlti.map<"bandwidth" = 1>>>,
        "cpu:1" = #dlti.target_device_spec<"capacity" = 1048576,
          "readers" = ["memref.copy"], "writers" = ["memref.copy"]>>}} {{}}""")
    module = parse(program)
    module.attributes[TARGET] = target.attributes[TARGET]
    planned = tensorplan.plan(module, reuse_outputs=False)
    assert copies(planned)
    x = np.linspace(-1, 1, 256, dtype=np.float32).reshape(16, 16)
    a = np.exp(x)
    expected = -np.tanh(x) @ np.linalg.matrix_power(np.tanh(a @ a[::-1]), 4)
    for native in (False, True):
        (found,) = Executable(planned, native=native)(x)
        assert np.allclose(found, expected, rtol=1e-5)


@pytest.mark.thorough
@settings(max_examples=examples(150))
@given(st.randoms(use_true_random=False))
def test_random_programs(random: Random) -> None:
    """Random programs forward buffers through branches, loops, scopes and blocks."""
    text = memref_program(random, random.randint(3, 12))
    module = on(text, 1 << 20, COPY)
    if not (bytes := peak(module)):
        return
    taken, _ = argument_bytes(function_of(module), NoneAttr(), {})
    module = on(text, taken + bytes * random.randint(2, 9) // 10 + 1, COPY)
    spilled = run(module, PlanSpill())
    spilled.verify()
    assert_same_bytes(module, spilled, paths=8)
    try:
        planned = run(spilled, PlanMemory())
    except LocatedError:  # does not fit, whatever is spilled
        return
    assert_same_bytes(module, planned, paths=8)
    assert str(run(spilled, PlanSpill())) == str(spilled)


def exchanging(names: Sequence[str], trips: int) -> str:
    """A loop that rotates buffers: each iteration computes the last from the first. An
    iteration needs two more buffers at once."""
    args = [f"%{name}o" for name in names]
    starts = ", ".join(f"{arg} = %{n}" for arg, n in zip(args, names, strict=True))
    results = [f"%{name}r" for name in names]
    types = ", ".join([M] * len(names))
    first, last = names[0] + "o", names[-1] + "o"
    return function(
        f"%x: {M}, %y: {M}, %z: {M}, %u: {M}",
        [
            *(f"%end = arith.constant {trips} : index", *map(alloc, names)),
            *(line for name in names for line in (copy("x", name), read(name))),
            f"{', '.join(results)} = scf.for %i = %zero to %end step %one "
            f"iter_args({starts}) -> ({types}) {{",
            *(
                copy(first, last),
                f"%p = memref.subview %{last}[%i] [4] [1] : {M} to {P}",
            ),
            *(f"%q = memref.subview %z[%i] [4] [1] : {M} to {P}", copy("q", "p", P)),
            *(*busy("l"), *seen(last)),
            f"scf.yield {', '.join([args[-1], *args[:-1]])} : {types}",
            *("}", *busy("e")),
            *(line for name in names for line in (copy(f"{name}r", "y"), read("y"))),
            copy(f"{names[0]}r", "u"),
        ],
    )


@pytest.mark.parametrize("names", ["ab", "abd"])
@pytest.mark.parametrize("trips", [7, 8])
def test_buffers_that_a_loop_exchanges_move(names: str, trips: int) -> None:
    text = exchanging(names, trips)
    module = on(text, 4 * 64 + 64 * (1 + len(names)), COPY)
    with pytest.raises(LocatedError, match="expected at most"):
        run(module, PlanMemory())
    spilled = run(module, PlanSpill())
    assert '"slow">' in str(spilled)
    assert_same_bytes(module, spilled)
    assert_same_bytes(module, run(spilled, PlanMemory()))


def test_a_loop_that_exchanges_buffers_too_seldom_stays() -> None:
    module = on(exchanging("ab", 1), 4 * 64 + 3 * 64, COPY)
    assert str(run(module, PlanSpill())).count("scf.for") == 1
