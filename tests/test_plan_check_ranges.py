"""Tests the ranges of index values that `plan-check` computes."""

import pytest
from plan_checks import value, with_numbers
from planted import program
from xdsl.ir import Block

from tensorplan.checking.ranges import (
    Range,
    add,
    exactly,
    multiply,
    range_of,
    surely_runs,
)


def test_arithmetic_on_ranges() -> None:
    assert exactly(3) == Range(3, 3)
    assert add(Range(1, 2), Range(10, 30)) == Range(11, 32)
    assert multiply(Range(1, 2), Range(10, 30)) == Range(10, 60)
    assert multiply(Range(-1, 2), Range(10, 30)) == Range(-30, 60)
    assert multiply(Range(-2, -1), Range(-5, 3)) == Range(-6, 10)


# %u is in [0, 3], and %n is unknown.
NUMBERS = {
    "a constant": ("arith.constant 7 : index", (7, 7)),
    "a float": ("arith.constant 7.0 : f32", None),
    "a counter": ("arith.addi %u, %c0 : index", (0, 3)),
    "unknown": ("arith.addi %u, %n : index", None),
    "unknown first": ("arith.addi %n, %u : index", None),
    "a sum": ("arith.addi %u, %c8 : index", (8, 11)),
    "a difference": ("arith.subi %u, %c8 : index", (-8, -5)),
    "a difference of two": ("arith.subi %u, %u : index", (-3, 3)),
    "a product": ("arith.muli %u, %c8 : index", (0, 24)),
    "the smaller": ("arith.minsi %u, %c2 : index", (0, 2)),
    "the larger": ("arith.maxsi %u, %c2 : index", (2, 3)),
    "another operation": ("arith.divsi %u, %c2 : index", None),
    "without a sign": ("arith.minui %u, %c2 : index", None),
    "as an integer": ("arith.index_cast %u : index to i64", (0, 3)),
    "as a narrow one": ("arith.index_cast %u : index to i3", (0, 3)),
    "as too narrow a one": ("arith.index_cast %u : index to i2", None),
    "without a sign again": ('"arith.index_castui"(%u) : (index) -> i64', None),
    "of another operation": ('"test.number"() : () -> index', None),
    "what the function is given": ("arith.maxsi %n, %n : index", None),
}


@pytest.mark.parametrize(("made", "expected"), NUMBERS.values(), ids=NUMBERS)
def test_numbers(made: str, expected: tuple[int, int] | None) -> None:
    assert range_of(value(with_numbers(f"%v = {made}"))) == expected


@pytest.mark.parametrize(
    ("number", "type", "expected"),
    [
        (60, "i8", (120, 120)),
        (64, "i8", None),
        (63, "i8", (126, 126)),
        (-64, "i8", (-128, -128)),
        (-65, "i8", None),
        (64, "i16", (128, 128)),
    ],
)
def test_sums_wrap_around(number: int, type: str, expected: object) -> None:
    text = program(
        f"%m = arith.constant {number} : {type}\n%v = arith.addi %m, %m : {type}"
    )
    assert range_of(value(text)) == expected
    wide = f"%w = arith.extsi %v : {type} to i64"
    assert range_of(value(text.replace("return", f"{wide}\nreturn"), "w")) == expected


def test_known_ranges() -> None:
    """Known ranges take precedence, and determine the ranges of derived values."""
    text = program("%m = arith.addi %n, %c1 : index\n%v = arith.muli %m, %n : index")
    n = value(text, "n")
    known = {n: Range(2, 3)}.get
    assert range_of(n, known) == Range(2, 3)
    assert range_of(value(text), known) == Range(6, 12)
    deep = program(
        "%w = arith.index_cast %n : index to i64",
        "scf.for %i = %c0 to %n step %c1 {\n%v = arith.addi %i, %n : index\n}",
    )
    known = {value(deep, "n"): Range(2, 3)}.get
    assert range_of(value(deep), known) == Range(2, 5)
    assert range_of(value(deep, "w"), known) == Range(2, 3)


SEGMENTS = "operandSegmentSizes = array<i32: {}>"
DYNAMIC = -(2**63)


def scf_for(first: str, end: str, step: str) -> str:
    return f"scf.for %v = {first} to {end} step {step} {{\n}}"


def affine_for(first: str, end: str, step: int, operands: str = "") -> str:
    return (
        f'"affine.for"({operands}) <{{lowerBoundMap = affine_map<{first}>, '
        f"upperBoundMap = affine_map<{end}>, step = {step} : index, "
        f"{SEGMENTS.format(f'0, {1 if operands else 0}, 0')}}}> ({{\n^bb0(%v: index):\n"
        '"affine.yield"() : () -> ()\n}) : '
        f"({'index' if operands else ''}) -> ()"
    )


def scf_parallel(*bounds: str, names: str = "%v: index") -> str:
    count = len(bounds) // 3
    return (
        f'"scf.parallel"({", ".join(bounds)}) <{{'
        f"{SEGMENTS.format(f'{count}, {count}, {count}, 0')}}}> ({{\n^bb0({names}):\n"
        f"scf.reduce\n}}) : ({', '.join(['index'] * len(bounds))}) -> ()"
    )


def scf_forall(first: int, end: int, step: int, names: str = "%v: index") -> str:
    more = ", 1" if "," in names else ""
    return (
        f'"scf.forall"({"%n" if end == DYNAMIC else ""}) <{{staticLowerBound = '
        f"array<i64: {first}{more}>, staticUpperBound = array<i64: {end}{more}>, "
        f"staticStep = array<i64: {step}{more}>, "
        f"{SEGMENTS.format(f'0, {int(end == DYNAMIC)}, 0, 0')}}}> ({{\n^bb0({names}):\n"
        '"scf.forall.in_parallel"() ({\n^bb0:\n}) : () -> ()\n}) : '
        f"({'index' if end == DYNAMIC else ''}) -> ()"
    )


def scf_forall_of_three() -> str:
    """A forall in three dimensions. Its operands are the upper bounds, one for each
    dimension."""
    ends = ", ".join([str(DYNAMIC)] * 3)
    return (
        '"scf.forall"(%c2, %c4, %c1) <{staticLowerBound = array<i64: 0, 0, 0>, '
        f"staticUpperBound = array<i64: {ends}>, staticStep = array<i64: 1, 1, 1>, "
        f"{SEGMENTS.format('0, 3, 0, 0')}}}> ({{\n^bb0(%v: index, %w: index, %k: index)"
        ':\n"scf.forall.in_parallel"() ({\n^bb0:\n}) : () -> ()\n}) : '
        "(index, index, index) -> ()"
    )


TWICE = ("%c0", "%c0", "%c4", "%c4", "%c1", "%c1")
LOOPS = {
    "for": (scf_for("%c0", "%c4", "%c1"), (0, 3)),
    "for, from 2": (scf_for("%c2", "%c4", "%c1"), (2, 3)),
    "for, by 2": (scf_for("%c0", "%c4", "%c2"), (0, 2)),
    "for, by 3": (scf_for("%c0", "%c8", "%c3"), (0, 6)),
    "for, by 3 from 1": (scf_for("%c1", "%c8", "%c3"), (1, 7)),
    "for, once": (scf_for("%c3", "%c4", "%c2"), (3, 3)),
    "for, never": (scf_for("%c4", "%c2", "%c1"), (4, 4)),
    "for, to what is not known": (scf_for("%c0", "%n", "%c1"), None),
    "for, from what is not known": (scf_for("%n", "%c4", "%c1"), None),
    "for, by what is not known": (scf_for("%c0", "%c4", "%n"), None),
    "for, by 0": (scf_for("%c0", "%c4", "%c0"), None),
    "for, with what it carries": (
        "%r = scf.for %v = %c0 to %c4 step %c1 iter_args(%k = %c0) -> (index) {\n"
        "scf.yield %k : index\n}",
        (0, 3),
    ),
    "affine": (affine_for("() -> (2)", "() -> (9)", 3), (2, 8)),
    "affine, by 1": (affine_for("() -> (0)", "() -> (9)", 1), (0, 8)),
    "affine, from one of two": (affine_for("() -> (0, 1)", "() -> (9)", 1), None),
    "affine, to what is not known": (
        affine_for("() -> (0)", "(d0) -> (d0)", 1, "%n"),
        None,
    ),
    "affine, to a symbol": (
        affine_for("() -> (0)", "()[s0] -> (s0)", 1, "%n"),
        None,
    ),
    "parallel": (scf_parallel("%c1", "%c8", "%c3"), (1, 7)),
    "parallel, to what is not known": (scf_parallel("%c0", "%n", "%c1"), None),
    "parallel, of two": (scf_parallel(*TWICE, names="%v: index, %w: index"), None),
    "forall": (scf_forall(1, 8, 3), (1, 7)),
    "forall, to what is not known": (scf_forall(0, DYNAMIC, 1), None),
    "forall, of three that are not known": (scf_forall_of_three(), None),
    "forall, of two": (scf_forall(0, 8, 2, "%v: index, %w: index"), (0, 6)),
    "forall, the other of two": (scf_forall(0, 8, 2, "%w: index, %v: index"), None),
    "of an unknown operation": (
        '"test.op"() ({\n^bb0(%v: index):\n"test.end"() : () -> ()\n}) : () -> ()',
        None,
    ),
    "carried": (
        "%r = scf.for %i = %c0 to %c4 step %c1 iter_args(%v = %c0) -> (index) {\n"
        "scf.yield %v : index\n}",
        None,
    ),
}


@pytest.mark.parametrize(("text", "expected"), LOOPS.values(), ids=LOOPS)
def test_counters(text: str, expected: tuple[int, int] | None) -> None:
    assert range_of(value(program(text))) == expected


RUNS = {
    "for": True,
    "for, once": True,
    "for, never": False,
    "for, to what is not known": False,
    "for, by 0": False,
    "affine": True,
    "affine, to what is not known": False,
    "parallel": True,
    "of an unknown operation": False,
}


@pytest.mark.parametrize(("name", "expected"), RUNS.items())
def test_loops_that_run_at_least_once(name: str, expected: bool) -> None:
    block = value(program(LOOPS[name][0])).owner
    assert isinstance(block, Block)
    op = block.parent_op()
    assert op is not None
    assert surely_runs(op) is expected


def test_counters_with_variable_bounds() -> None:
    """The step reduces the largest value of a counter only if the start is constant."""
    inner = "scf.for %v = {} to {} step {} {{\n}}"
    more = "%w = arith.addi %u, %c1 : index\n%k = arith.addi %u, %c2 : index"
    outer = f"scf.for %u = %c0 to %c4 step %c1 {{{{\n{more}\n{{}}\n}}}}"
    for bounds, expected in (
        (("%u", "%c8", "%c3"), (0, 7)),
        (("%c0", "%u", "%c2"), (0, 2)),
        (("%c0", "%w", "%c2"), (0, 2)),
        (("%c0", "%c8", "%w"), (0, 7)),
        (("%c0", "%c8", "%k"), (0, 7)),
        (("%c0", "%c8", "%u"), None),
        (("%u", "%c2", "%c1"), (0, 1)),
    ):
        text = program(outer.format(inner.format(*bounds)))
        assert range_of(value(text)) == expected
    for bounds, expected in (
        (("%u", "%c4", "%c1"), True),
        (("%u", "%c3", "%c1"), False),
        (("%c0", "%w", "%c1"), True),
        (("%c1", "%w", "%c1"), False),
    ):
        block = value(program(outer.format(inner.format(*bounds)))).owner
        assert isinstance(block, Block)
        assert (op := block.parent_op())
        assert surely_runs(op) is expected
