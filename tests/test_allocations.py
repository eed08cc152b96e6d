"""Tests `analysis/allocations.py`: which allocations plan-memory can place, why it
cannot place others, and in which steps programs access them.

A step is the index of an operation in the body of the function. `!` marks a step that
overwrites the whole buffer without reading it.
"""

import pytest
import unchanged_ir
from xdsl.dialects.func import FuncOp

from tensorplan.analysis.allocations import caller_uses, find_allocations, lifespans
from tensorplan.analysis.control_flow import ControlFlow
from tensorplan.analysis.functions import CallerMemory
from tensorplan.analysis.liveness import Uses
from tensorplan.analysis.sizes import SizeReader
from tensorplan.support.remarks import REMARKS

M, MM = "memref<8xf32>", "memref<8xf32>, memref<8xf32>"


def function(*lines: str) -> FuncOp:
    """A function with body `lines`, and a return at the end if there is none."""
    end = [] if lines[-1].startswith("func.return") else ["func.return"]
    arguments = f"%n: index, %p: i1, %f: f32, %x: {M}, %y: {M}, %all: memref<9x{M}>, "
    arguments += "%z: memref<?xf32>, %stored: memref<index>, %wide: i64"
    text = "\n".join((f"func.func @f({arguments}) {{", *lines, *end, "}"))
    return unchanged_ir.function(text)


def alloc(name: str, type: str = M) -> str:
    return f"%{name} = memref.alloc() : {type}"


def free(name: str, type: str = M) -> str:
    return f"memref.dealloc %{name} : {type}"


def copy(source: str, target: str) -> str:
    return f'"memref.copy"(%{source}, %{target}) : ({M}, {M}) -> ()'


def reverse(source: str, target: str) -> str:
    """An operation that cannot run in place: it reads elements after it has written
    others."""
    dims = "{dimensions = array<i64: 0>}"
    return f"tgraph.reverse %{source} outs(%{target}) {dims} : {M}"


def address(of: str, name: str) -> str:
    return f"%{name} = memref.extract_aligned_pointer_as_index %{of} : {M} -> index"


def accesses(uses: Uses) -> str:
    found = sorted(uses.accesses.items())
    return " ".join(f"{step}!" if whole else str(step) for step, whole in found)


A, B = alloc("a"), alloc("b")
FOR = "scf.for %i = %n to %n step %n"
FILL = (
    '"linalg.fill"(%f, %a) <{operandSegmentSizes = array<i32: 1, 1>}> ({'
    f"^bb0(%e: f32, %g: f32): linalg.yield %e : f32}}) : (f32, {M}) -> ()"
)
PARALLEL = '"scf.parallel"(%n, %n, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}>'
REDUCE = '"scf.reduce"() : () -> ()\n}) : (index, index, index) -> ()'
METADATA = "%base, %offset, %size, %stride = memref.extract_strided_metadata"

PLANNED = {
    "none": ([copy("x", "y")], {}),
    "never used": ([A], {"%a": ""}),
    "written and read": ([A, copy("x", "a"), copy("a", "y")], {"%a": "1! 2"}),
    "by one operation": ([A, copy("a", "a")], {"%a": "1"}),
    "freed": ([A, copy("x", "a"), free("a")], {"%a": "1!"}),
    "loads and stores": (
        [
            *(A, f"%l = memref.load %a[%n] : {M}"),
            f"memref.store %l, %a[%n] : {M}",
        ],
        {"%a": "1 2"},
    ),
    "a part is not all": (
        [
            *(A, f"%v = memref.cast %a : {M} to memref<?xf32>"),
            '"memref.copy"(%v, %v) : (memref<?xf32>, memref<?xf32>) -> ()',
            "tgraph.constant<0.0 : f32> outs(%v) : memref<?xf32>",
        ],
        {"%a": "2 3"},
    ),
    "an address that is compared later": (
        [
            *(A, copy("x", "a"), address("a", "q"), copy("x", "y")),
            "%e = arith.cmpi eq, %q, %n : index",
        ],
        {"%a": "1! 2 4"},
    ),
    "a view that is only made": (
        [A, f"%v = memref.cast %a : {M} to memref<?xf32>"],
        {"%a": ""},
    ),
    "an index of a view": (
        [
            *(A, f"%l = memref.load %x[%n] : {M}"),
            f"%v = memref.subview %x[%n] [4] [1] : {M} to "
            "memref<4xf32, strided<[1], offset: ?>>",
        ],
        {"%a": ""},
    ),
    "the base of its memory": (
        [
            *(A, f"{METADATA} %a : {M} -> memref<f32>, index, index, index"),
            "memref.dealloc %base : memref<f32>",
        ],
        {"%a": ""},
    ),
    "one of two": (
        [
            *(A, B, f"%s = arith.select %p, %a, %b : {M}", copy("x", "s")),
            copy("s", "y"),
        ],
        {"%a": "3 4", "%b": "3 4"},
    ),
    "freed as one of two": (
        [
            *(A, B, f"%s = arith.select %p, %a, %b : {M}", free("s")),
        ],
        {"%a": "", "%b": ""},
    ),
    "freed as given by a branch": (
        [
            *(A, B, f"%r = scf.if %p -> ({M}) {{", f"scf.yield %a : {M}"),
            *("} else {", f"scf.yield %b : {M}", "}", free("r")),
        ],
        {"%a": "", "%b": ""},
    ),
    "given by a branch": (
        [
            *(A, B, f"%r = scf.if %p -> ({M}) {{", f"scf.yield %a : {M}"),
            *("} else {", f"scf.yield %b : {M}", "}", copy("r", "y")),
        ],
        {"%a": "5", "%b": "5"},
    ),
    "the second given by a branch": (
        [
            *(A, B, f"%r:2 = scf.if %p -> ({MM}) {{", f"scf.yield %a, %b : {MM}"),
            *("} else {", f"scf.yield %b, %b : {MM}", "}", copy("r#1", "y")),
        ],
        {"%a": "", "%b": "5"},
    ),
    "given by a case": (
        [
            *(A, B, '%r = "scf.index_switch"(%n) <{cases = array<i64: 3>}> ({'),
            *(f"scf.yield %a : {M}", "}, {", f"scf.yield %b : {M}"),
            *(f"}}) : (index) -> {M}", copy("r", "y")),
        ],
        {"%a": "5", "%b": "5"},
    ),
    "given by a scope": (
        [
            *(A, f"%r = scf.execute_region -> ({M}) {{", f"scf.yield %a : {M}", "}"),
            copy("r", "y"),
        ],
        {"%a": "3"},
    ),
    "carried by a loop": (
        [
            *(A, B, f"%r:2 = {FOR} iter_args(%k = %a, %l = %b) -> ({MM}) {{"),
            *(copy("x", "k"), copy("l", "y"), f"scf.yield %k, %l : {MM}", "}"),
            *(copy("r#0", "y"),),
        ],
        {"%a": "3 6", "%b": "4"},
    ),
    "forwarded by a loop": (
        [
            *(A, B, f"%r:2 = {FOR} iter_args(%k = %x, %l = %x) -> ({MM}) {{"),
            *(copy("k", "y"), copy("l", "y"), f"scf.yield %a, %b : {MM}", "}"),
            *(copy("r#1", "y"),),
        ],
        {"%a": "3", "%b": "4 6"},
    ),
    "carried by a while": (
        [
            *(A, B, f"%r:2 = scf.while (%k = %a, %l = %b) : ({MM}) -> ({MM}) {{"),
            *(copy("k", "y"), f"scf.condition(%p) %l, %k : {MM}", "} do {"),
            *(f"^bb0(%m: {M}, %o: {M}):", copy("m", "y"), copy("o", "y")),
            *(copy("o", "y"), f"scf.yield %o, %m : {MM}", "}", copy("r#1", "y")),
        ],
        {"%a": "3 6 7 9", "%b": "5"},
    ),
    "handed back by a while": (
        [
            *(A, B, f"%r:2 = scf.while (%k = %x, %l = %x) : ({MM}) -> ({MM}) {{"),
            *(copy("k", "y"), copy("l", "y"), f"scf.condition(%p) %x, %x : {MM}"),
            *("} do {", f"^bb0(%m: {M}, %o: {M}):", f"scf.yield %a, %b : {MM}", "}"),
        ],
        {"%a": "3", "%b": "4"},
    ),
    "handed to a block": (
        [A, f"cf.br ^h(%x, %a : {MM})", f"^h(%k: {M}, %l: {M}):", copy("l", "y")],
        {"%a": "2"},
    ),
    "handed to one of two blocks": (
        [
            *(A, B, f"cf.cond_br %p, ^l(%x, %a : {MM}), ^r(%x, %b : {MM})"),
            *(f"^l(%k: {M}, %m: {M}):", copy("m", "y"), copy("k", "y"), "cf.br ^e"),
            *(f"^r(%o: {M}, %q: {M}):", copy("o", "y"), copy("q", "y"), "cf.br ^e"),
            "^e:",
        ],
        {"%a": "3", "%b": "7"},
    ),
    "in a loop": (
        [FOR + " {", A, copy("x", "a"), copy("a", "y"), free("a"), "}"],
        {"%a": "2! 3"},
    ),
    "in a concurrent loop it is one step": (
        [A, f"{PARALLEL} ({{\n^bb0(%i: index):", copy("x", "a"), REDUCE],
        {"%a": "1"},
    ),
    "in a concurrent loop without effects": (
        [
            *(A, '"scf.forall"(%n) ({^bb0(%i: index):', copy("x", "a")),
            '"scf.forall.in_parallel"() ({}) : () -> () }) : (index) -> ()',
        ],
        {"%a": "1"},
    ),
    "by linalg in a concurrent loop": (
        [A, f"{PARALLEL} ({{\n^bb0(%i: index):", FILL, REDUCE],
        {"%a": "1"},
    ),
    "forwarded to where it is not made anew": (
        [
            *("cf.cond_br %p, ^l, ^h(%x : " + M + ")", "^l:", "cf.br ^m", "^m:"),
            *(A, f"cf.br ^h(%a : {M})", f"^h(%k: {M}):", copy("k", "y")),
        ],
        {"%a": "4"},
    ),
    "what a call does is over when it is freed": (
        [A, f"func.call @g(%a) : ({M}) -> ()", copy("x", "y"), free("a")],
        {"%a": "1 3"},
    ),
    "what a call gives may be it until it is freed": (
        [
            *(A, f"%o = func.call @g(%a) : ({M}) -> {M}", copy("o", "y")),
            *(copy("x", "a"), free("a")),
        ],
        {"%a": "1 2 3 4"},
    ),
    "freed by the last of two": (
        [
            *(
                A,
                f"func.call @g(%a) : ({M}) -> ()",
                f"%v = memref.cast %a : {M} to {M}",
            ),
            *(free("a"), copy("x", "y"), free("v")),
        ],
        {"%a": "1 3 5"},
    ),
    "what a call in a branch does is over when it is freed": (
        [A, "scf.if %p {", f"func.call @g(%a) : ({M}) -> ()", "}", free("a")],
        {"%a": "2 4"},
    ),
    "what a call does is over when each path has freed it": (
        [
            *(A, f"func.call @g(%a) : ({M}) -> ()", "cf.cond_br %p, ^l, ^m"),
            *("^l:", free("a"), "cf.br ^e", "^m:", copy("x", "y"), free("a")),
            *("cf.br ^e", "^e:"),
        ],
        {"%a": "1 3 6"},
    ),
    "what a call in a loop of blocks does is over when it is freed": (
        [
            *(A, "cf.br ^l", "^l:", f"func.call @g(%a) : ({M}) -> ()"),
            *("cf.cond_br %p, ^l, ^m", "^m:", free("a")),
        ],
        {"%a": "2 4"},
    ),
    "what an unknown region does is over when it is freed": (
        [A, '"other.op"() ({', copy("x", "a"), "}) : () -> ()", free("a")],
        {"%a": "1 2"},
    ),
}


def found(func: FuncOp) -> dict[str, str]:
    allocations = find_allocations(func, ControlFlow(func))
    return {a.name: accesses(a.uses) for a in allocations}


@pytest.mark.parametrize(("lines", "expected"), PLANNED.values(), ids=PLANNED)
def test_accesses_of_planned_allocations(
    lines: list[str], expected: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", REMARKS.name):
        assert found(function(*lines)) == expected
    assert not caplog.messages


def carrying_loop(*lines: str, starts: str = "%k = %x", types: str = M) -> list[str]:
    """A loop with body `lines` that carries `types`, with initial values `starts`."""
    count = types.count("memref")
    names = ", ".join(f"%r{number}" for number in range(count))
    return [f"{names} = {FOR} iter_args({starts}) -> ({types}) {{", *lines, "}"]


CARRIED = {
    "two that are needed at once": (
        carrying_loop(A, reverse("k", "a"), f"scf.yield %a : {M}"),
        2,
    ),
    "one that is computed over the one before": (
        carrying_loop(A, copy("k", "a"), f"scf.yield %a : {M}"),
        1,
    ),
    "one that is computed over the one before, which a view reads later": (
        carrying_loop(
            *(A, f"%v = memref.cast %k : {M} to memref<?xf32>", copy("k", "a")),
            "%e = memref.load %v[%n] : memref<?xf32>",
            f"scf.yield %a : {M}",
        ),
        2,
    ),
    "one that is computed over the one before, which a view reads in another order": (
        carrying_loop(
            A,
            f"%v = memref.reinterpret_cast %k to offset: [7], sizes: [8], "
            f"strides: [-1] : {M} to memref<8xf32, strided<[-1], offset: 7>>",
            f"tgraph.add %k, %v outs(%a) : ({M}, memref<8xf32, strided<[-1], "
            f"offset: 7>>) -> {M}",
            f"scf.yield %a : {M}",
        ),
        2,
    ),
    "one that is dead when the next is written": (
        carrying_loop(A, copy("k", "y"), copy("x", "a"), f"scf.yield %a : {M}"),
        1,
    ),
    "one that is not read again": (
        carrying_loop(A, copy("x", "a"), f"scf.yield %a : {M}"),
        1,
    ),
    "three, the oldest of which is read last": (
        carrying_loop(
            *(A, copy("k", "a"), copy("l", "y"), f"scf.yield %a, %k : {MM}"),
            starts="%k = %x, %l = %y",
            types=MM,
        ),
        3,
    ),
    "three, the oldest of which is dead when the next is written": (
        carrying_loop(
            *(A, copy("l", "y"), copy("k", "a"), f"scf.yield %a, %k : {MM}"),
            starts="%k = %x, %l = %y",
            types=MM,
        ),
        2,
    ),
    "the same one twice": (
        carrying_loop(
            *(A, copy("k", "y"), copy("l", "y"), copy("x", "a")),
            f"scf.yield %a, %a : {MM}",
            starts="%k = %x, %l = %y",
            types=MM,
        ),
        1,
    ),
    "in the first region of a while": (
        [
            *(f"%r = scf.while (%k = %x) : ({M}) -> {M} {{", A, reverse("k", "a")),
            *(f"scf.condition(%p) %a : {M}", "} do {", f"^bb0(%l: {M}):"),
            *(f"scf.yield %l : {M}", "}"),
        ],
        2,
    ),
    "on each path of an iteration": (
        [
            *(
                f"%r = {FOR} iter_args(%k = %x) -> ({M}) {{",
                f"%s = scf.if %p -> ({M}) {{",
            ),
            *(A, reverse("k", "a"), f"scf.yield %a : {M}", "} else {"),
            *(f"scf.yield %y : {M}", "}", f"scf.yield %s : {M}", "}"),
        ],
        2,
    ),
    "in the second region of a while": (
        [
            f"%r = scf.while (%k = %x) : ({M}) -> {M} {{",
            *(f"scf.condition(%p) %k : {M}", "} do {", f"^bb0(%l: {M}):"),
            *(A, reverse("l", "a"), f"scf.yield %a : {M}", "}"),
        ],
        2,
    ),
    "computed over the one before, from one run of the loop to the next": (
        [
            f"%r = {FOR} iter_args(%o = %x) -> ({M}) {{",
            f"%s = {FOR.replace('%i', '%j')} iter_args(%k = %o) -> ({M}) {{",
            *(A, copy("k", "a"), f"scf.yield %a : {M}", "}"),
            *(f"scf.yield %s : {M}", "}"),
        ],
        1,
    ),
    "computed over the one before, on one path of an iteration": (
        [
            f"%r = {FOR} iter_args(%k = %x) -> ({M}) {{",
            *(f"%s = scf.if %p -> ({M}) {{", A, copy("k", "a"), f"scf.yield %a : {M}"),
            *("} else {", f"scf.yield %k : {M}", "}", f"scf.yield %s : {M}", "}"),
        ],
        1,
    ),
    "compared with the one before, which keeps its bytes": (
        [
            *(f"%r = {FOR} iter_args(%k = %x) -> ({M}) {{", A, copy("k", "a")),
            *(
                address("k", "o"),
                address("a", "q"),
                "%e = arith.cmpi eq, %o, %q : index",
            ),
            *(f"scf.yield %a : {M}", "}", address("r", "l"), address("x", "m")),
            "%g = arith.cmpi eq, %l, %m : index",
        ],
        2,
    ),
    "computed over the one before, by blocks": (
        [
            *(f"cf.br ^h(%x : {M})", f"^h(%k: {M}):", A, copy("k", "a")),
            *(f"cf.cond_br %p, ^h(%a : {M}), ^e", "^e:"),
        ],
        1,
    ),
    "by blocks, read before the next is written": (
        [
            *(f"cf.br ^h(%x : {M})", f"^h(%k: {M}):", A, copy("k", "y")),
            *(copy("x", "a"), f"cf.cond_br %p, ^h(%a : {M}), ^e", "^e:"),
        ],
        1,
    ),
}


@pytest.mark.parametrize(("lines", "slots"), CARRIED.values(), ids=CARRIED)
def test_number_of_slots_of_carried_allocations(lines: list[str], slots: int) -> None:
    func = function(*lines)
    (allocation,) = find_allocations(func, ControlFlow(func))
    assert allocation.slots == slots


def unknown(name: str) -> str:
    return f"the effects of {name} on it are unknown"


TOGETHER = "its dealloc may also free memory that is not planned"
NEXT = "it is still live when the next iteration allocates it again"
CALL = f"func.call @g(%a) : ({M}) -> ()"

UNPLANNED = {
    "passed on": ([A, f"func.return %a : {M}"], ["it escapes through func.return"]),
    "a dynamic size": (
        ["%a = memref.alloc(%n) : memref<?xf32>"],
        ["memref<?xf32> has a dynamic size"],
    ),
    "a layout": (
        [alloc("a", "memref<8xf32, strided<[2]>>")],
        ["memref<8xf32, strided<[2]>> has a layout other than the identity"],
    ),
    "an element of no size": (
        [alloc("a", "memref<9xvector<[4]xf32>>")],
        ["element type vector<[4]xf32> has no fixed size"],
    ),
    "a view that extends beyond it": (
        [
            A,
            f"%v = memref.reinterpret_cast %a to offset: [4], sizes: [8], strides: [1] "
            f": {M} to memref<8xf32, strided<[1], offset: 4>>",
        ],
        ["memref<8xf32, strided<[1], offset: 4>> extends beyond it"],
    ),
    "in a concurrent loop": (
        [f"{PARALLEL} ({{\n^bb0(%i: index):", A, REDUCE],
        ["it is inside scf.parallel, which may run concurrently with itself"],
    ),
    "in an unknown region": (
        ['"other.op"() ({', A, "}) : () -> ()"],
        ["it is inside other.op, which may run concurrently with itself"],
    ),
    "a call": ([A, CALL], [unknown("func.call")]),
    "freed before the call": ([A, free("a"), CALL], [unknown("func.call")]),
    "freed in another block": (
        [A, free("a"), "cf.br ^l", "^l:", CALL],
        [unknown("func.call")],
    ),
    "freed on one of two paths": (
        [
            *(A, CALL, "cf.cond_br %p, ^l, ^m"),
            *("^l:", free("a"), "cf.br ^m", "^m:"),
        ],
        [unknown("func.call")],
    ),
    "freed in the next iteration, before it is allocated": (
        [
            *("cf.br ^l", "^l:", A, CALL, "cf.cond_br %p, ^l, ^m"),
            *("^m:", free("a")),
        ],
        [unknown("func.call")],
    ),
    "freed elsewhere": (
        [A, CALL, "scf.if %p {", free("a"), "}"],
        [unknown("func.call")],
    ),
    "freed where it may be another": (
        [
            *(A, f"%s = arith.select %p, %a, %x : {M}", CALL, free("s")),
        ],
        [unknown("func.call")],
    ),
    "an unknown region": (
        [A, '"other.op"() ({', copy("x", "a"), "}) : () -> ()"],
        [unknown("other.op")],
    ),
    "a call in a concurrent loop": (
        [A, f"{PARALLEL} ({{\n^bb0(%i: index):", CALL, REDUCE],
        [unknown("func.call")],
    ),
    "its address": (
        [
            *(A, address("a", "q"), '"other.op"(%q) : (index) -> ()'),
        ],
        ["its address escapes"],
    ),
    "its address, compared after other iterations": (
        [
            *("%t = memref.alloca() : memref<1xindex>", f"{FOR} {{", A, copy("x", "a")),
            *(address("a", "q"), "memref.store %q, %t[%n] : memref<1xindex>", "}"),
            "%o = memref.load %t[%n] : memref<1xindex>",
            *(address("y", "r"), "%e = arith.cmpi eq, %o, %r : index"),
        ],
        ["its address escapes"],
    ),
    "asynchronous": (
        [
            *(A, "%tag = memref.alloca() : memref<1xi32>"),
            '"memref.dma_start"(%x, %n, %a, %n, %n, %tag, %n) <{operandSegmentSizes = '
            "array<i32: 1, 1, 1, 1, 1, 1, 1>}> : (memref<8xf32>, index, memref<8xf32>, "
            "index, index, memref<1xi32>, index) -> ()",
        ],
        ["no wait is known for what memref.dma_start starts"],
    ),
    "it is stored": (
        [A, f"memref.store %a, %all[%n] : memref<9x{M}>"],
        ["memref.store stores it"],
    ),
    "returned by an unknown operation": (
        [A, f'%q = "other.op"(%a) : ({M}) -> {M}'],
        ["other.op may return it"],
    ),
    "an unknown operation": (
        [A, f'"other.op"(%a) : ({M}) -> ()'],
        [unknown("other.op")],
    ),
    "carried for any number of iterations": (
        [
            *(f"%r = {FOR} iter_args(%k = %x) -> ({M}) {{", A, copy("k", "a")),
            *(f"%s = arith.select %p, %a, %k : {M}", f"scf.yield %s : {M}", "}"),
        ],
        [NEXT],
    ),
    "carried for too many iterations": (
        [
            f"%r:5 = {FOR} iter_args(%k = %x, %l = %x, %m = %x, %o = %x, %q = %x) "
            f"-> ({M}, {M}, {M}, {M}, {M}) {{",
            *(A, copy("k", "a"), copy("q", "y")),
            f"scf.yield %a, %k, %l, %m, %o : {M}, {M}, {M}, {M}, {M}",
            "}",
        ],
        [NEXT],
    ),
    "carried from one run of the loop to the next by a branch": (
        [
            f"%r = {FOR} iter_args(%o = %x) -> ({M}) {{",
            f"%b = scf.if %p -> ({M}) {{",
            f"%s = {FOR.replace('%i', '%j')} iter_args(%k = %o) -> ({M}) {{",
            *(A, reverse("k", "a"), f"scf.yield %a : {M}", "}"),
            *(f"scf.yield %s : {M}", "} else {", f"scf.yield %o : {M}", "}"),
            *(f"scf.yield %b : {M}", "}"),
        ],
        [NEXT],
    ),
    "carried from one run to the next, and read in all iterations": (
        [
            f"%r = {FOR} iter_args(%o = %x) -> ({M}) {{",
            f"%s = {FOR.replace('%i', '%j')} iter_args(%k = %o) -> ({M}) {{",
            *(A, reverse("o", "a"), f"scf.yield %a : {M}", "}"),
            *(f"scf.yield %s : {M}", "}"),
        ],
        [NEXT],
    ),
    "carried from one run to the next, allocated before the condition": (
        [
            f"%r = {FOR} iter_args(%o = %x) -> ({M}) {{",
            f"%s = scf.while (%k = %o) : ({M}) -> {M} {{",
            *(A, reverse("o", "a"), f"scf.condition(%p) %a : {M}"),
            *("} do {", f"^body(%l: {M}):", f"scf.yield %l : {M}", "}"),
            *(f"scf.yield %s : {M}", "}"),
        ],
        [NEXT],
    ),
    "allocated on one path of an iteration": (
        [
            f"%r = {FOR} iter_args(%k = %x) -> ({M}) {{",
            f"%s = scf.if %p -> ({M}) {{",
            *(A, reverse("k", "a"), f"scf.yield %a : {M}"),
            *("} else {", f"scf.yield %k : {M}", "}", f"scf.yield %s : {M}", "}"),
        ],
        [NEXT],
    ),
    "carried by blocks, and older with each iteration": (
        [
            *(f"cf.br ^h(%x : {M})", f"^h(%k: {M}):", "cf.cond_br %p, ^m, ^e", "^m:"),
            *(A, reverse("k", "a"), f"cf.cond_br %p, ^h(%a : {M}), ^h(%k : {M})"),
            "^e:",
        ],
        [NEXT],
    ),
    "freed together": (
        [
            *(A, B, copy("x", "a"), f"%s = arith.select %p, %a, %b : {M}"),
            *(f'"other.op"(%b) : ({M}) -> ()', free("s")),
        ],
        [unknown("other.op"), TOGETHER],
    ),
    "freed together, in a chain": (
        [
            *(A, B, alloc("c"), f'"other.op"(%c) : ({M}) -> ()'),
            *(f"%s = arith.select %p, %a, %b : {M}", free("s")),
            *(f"%t = arith.select %p, %b, %c : {M}", free("t")),
        ],
        [unknown("other.op"), TOGETHER, TOGETHER],
    ),
    "freed together with what an operation gives": (
        [
            *(A, f'%o = "other.op"() : () -> {M}'),
            *(f"%s = arith.select %p, %a, %o : {M}", free("s")),
        ],
        [TOGETHER],
    ),
    "freed together with what an operation of no rank gives": (
        [
            *(A, '%o = "other.op"() : () -> memref<*xf32>'),
            f"%q = memref.cast %a : {M} to memref<*xf32>",
            "%s = arith.select %p, %q, %o : memref<*xf32>",
            free("s", "memref<*xf32>"),
        ],
        [TOGETHER],
    ),
}


@pytest.mark.parametrize(("lines", "reasons"), UNPLANNED.values(), ids=UNPLANNED)
def test_reasons_for_unplanned_allocations(
    lines: list[str], reasons: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", REMARKS.name):
        assert found(function(*lines)) == {}
    assert len(caplog.messages) == len(reasons)
    for message, reason in zip(caplog.messages, reasons, strict=True):
        assert message.startswith("test.mlir:")
        assert f"remark: memref.alloc is not planned: {reason}" in message


def test_remarks_are_optional(caplog: pytest.LogCaptureFixture) -> None:
    func = function(*UNPLANNED["freed together"][0])
    with caplog.at_level("INFO", REMARKS.name):
        assert not find_allocations(func, ControlFlow(func), remarks=False)
    assert not caplog.messages


def test_name_size_and_alignment_of_allocations() -> None:
    func = function(
        *(copy("x", "y"), "%a = memref.alloc() {alignment = 32 : i64} : memref<3xi16>"),
        *("%0 = memref.alloc() : memref<2x3xi1>", free("0", "memref<2x3xi1>")),
    )
    a, b = find_allocations(func, ControlFlow(func))
    assert (a.name, a.size, a.alignment, a.uses.allocated) == ("%a", 6, 32, 1)
    assert (b.name, b.size, b.alignment, len(b.deallocs)) == ("%2", 6, 1, 1)


SIZED = {
    "the shape of an argument": (
        ["%s = memref.dim %z, %c : memref<?xf32>"],
        "16*arg6_0",
    ),
    "an argument": (["%s = arith.addi %n, %c : index"], "16*operand 0"),
    "what is computed of arguments": (
        [
            *("%d = memref.dim %z, %c : memref<?xf32>", "%e = arith.index_cast %wide"),
            "  : i64 to index",
            "%s = arith.subi %d, %e : index",
        ],
        "16*operand 0",
    ),
    "at most a constant": (
        [
            '%s = "affine.min"(%n) {map = affine_map<(d0) -> (40, 32, 99 - d0)>}',
            "  : (index) -> index",
        ],
        "512",
    ),
    "the lesser of a constant and another": (
        [
            *("%t = arith.constant 8 : index", "%l = memref.load %stored[]"),
            "  : memref<index>",
            "%s = arith.minui %l, %t : index",
        ],
        "128",
    ),
    "the lesser of others": (
        [
            "%l = memref.load %stored[] : memref<index>",
            "%s = arith.minsi %l, %n : index",
        ],
        None,
    ),
    "what is in memory": (["%s = memref.load %stored[] : memref<index>"], None),
    "what an operation gives": (['%s = "other.op"(%n) : (index) -> index'], None),
}


@pytest.mark.parametrize(("lines", "expected"), SIZED.values(), ids=SIZED)
def test_symbolic_sizes(
    lines: list[str], expected: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    type = "memref<?x4xf32>"
    func = function(
        *("%c = arith.constant 0 : index", *lines),
        f"%a = memref.alloc(%s) : {type}",
    )
    sizes = SizeReader(func, name_operands=True)
    with caplog.at_level("INFO", REMARKS.name):
        found = find_allocations(func, ControlFlow(func), sizes=sizes)
    assert [str(a.size) for a in found] == ([expected] if expected else [])
    if not expected:
        reason = (
            f"the size of {type} cannot be derived from the shapes of the arguments"
        )
        assert reason in caplog.text


def test_arena_of_views_is_not_planned_again() -> None:
    bytes = "%arena = memref.alloc() : memref<64xi8>"
    arena = "%arena = memref.alloc() {tgraph.arena} : memref<64xi8>"
    view = f"%v = memref.view %arena[%n][] : memref<64xi8> to {M}"
    freed = "memref.dealloc %arena : memref<64xi8>"
    assert found(function(arena, view, copy("x", "v"), freed)) == {}
    assert found(function(bytes, view, copy("x", "v"), freed)) == {"%arena": "2"}
    assert found(function(bytes, freed)) == {"%arena": ""}
    other = '"other.op"(%arena) : (memref<64xi8>) -> ()'
    store = "memref.store %b, %arena[%n] : memref<64xi8>"
    load = "%b = memref.load %arena[%n] : memref<64xi8>"
    assert found(function(bytes, load, store)) == {"%arena": "1 2"}
    assert found(function(bytes, view, load, freed)) == {"%arena": "2"}
    assert found(function(arena, view, other)) == {}


ARGUMENT = {
    "not used": ([copy("y", "y")], None),
    "written": ([copy("y", "x")], "0! 1"),
    "read": ([copy("x", "y")], "0 1"),
    "read at each end": (
        [copy("y", "x"), "cf.cond_br %p, ^l, ^m", "^l:", "func.return", "^m:"],
        "0! 2 3",
    ),
    "through a branch": (["scf.if %p {", copy("y", "x"), "}"], "1! 3"),
    "freed": ([copy("y", "x"), free("x")], None),
    "returned": ([copy("y", "x"), f"func.return %x : {M}"], None),
    "given to an unknown operation": ([f'"other.op"(%x) : ({M}) -> ()'], None),
    "used in an unknown region": (
        ['"other.op"() ({', copy("y", "x"), "}) : () -> ()"],
        None,
    ),
}


@pytest.mark.parametrize(("lines", "expected"), ARGUMENT.values(), ids=ARGUMENT)
def test_kept_argument_is_accessed_until_the_end(
    lines: list[str], expected: str | None
) -> None:
    func = function(*lines)
    kept = CallerMemory(func.body.blocks[0].args[3], "", is_given=False, is_kept=True)
    uses = caller_uses(kept, func, ControlFlow(func))
    assert (uses and accesses(uses)) == expected
    assert uses is None or uses.allocated == 0


@pytest.mark.parametrize(
    ("is_kept", "expected"), [(True, "0 1 2! 3"), (False, "0 1 2!")]
)
def test_given_argument_is_accessed_from_the_start(
    is_kept: bool, expected: str
) -> None:
    func = function(copy("y", "y"), copy("x", "y"), copy("y", "x"))
    given = CallerMemory(func.body.blocks[0].args[3], "", True, is_kept)
    uses = caller_uses(given, func, ControlFlow(func))
    assert uses
    assert accesses(uses) == expected


def test_lifespans_of_views_and_results() -> None:
    """`lifespans` covers views of an arena, one of them in a loop, and a result."""
    func = function(
        *("%arena = memref.alloc() : memref<64xi8>", copy("x", "y")),
        *(f"%v = memref.view %arena[%n][] : memref<64xi8> to {M}", copy("x", "v")),
        *(copy("v", "y"), FOR + " {"),
        *(f"%u = memref.view %arena[%n][] : memref<64xi8> to {M}", copy("x", "u")),
        *(copy("u", "y"), "}", copy("x", "y"), copy("y", "y")),
    )
    views = [op.results[0] for op in func.walk() if op.name == "memref.view"]
    assert lifespans(views) == [[(3, 5)], [(7, 9)]]
    assert lifespans(views[1:]) == [[(7, 9)]]
    result = func.body.blocks[0].args[3]
    assert lifespans([result, views[0]]) == [[(1, 13)], [(3, 5)]]


def test_lifespan_of_result_that_is_read_before_it_is_written() -> None:
    lines = [FOR + " {", copy("y", "y"), copy("x", "y"), copy("y", "y")]
    func = function(*lines, copy("y", "x"), "}")
    result = func.body.blocks[0].args[3]
    assert lifespans([result]) == [[(1, 3), (4, 7)]]
