"""Tests buffers that are passed to functions: the live range ends at the call if the
callee does not keep the buffer. A result that the callee allocates is other memory."""

import re
from cProfile import Profile

import pytest
from memref_programs import run as run_memrefs
from modules import run
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp

import tensorplan
from tensorplan.analysis.calls import Calls
from tensorplan.checking.effects import Callees
from tensorplan.checking.plan_check import check_plan
from tensorplan.passes.plan.memory import PlanMemory

M = "memref<8xf32>"
PROGRAM = """
func.func @f(%n: index, %c: i1, %x: memref<8xf32>, %y: memref<8xf32>) {{
  %a = memref.alloc() : memref<8xf32>
  linalg.exp ins(%x : memref<8xf32>) outs(%a : memref<8xf32>)
  func.call @g(%a, %y) : (memref<8xf32>, memref<8xf32>) -> ()
  %b = memref.alloc() : memref<8xf32>
  linalg.exp ins(%x : memref<8xf32>) outs(%b : memref<8xf32>)
  linalg.add ins(%b, %y : memref<8xf32>, memref<8xf32>) outs(%y : memref<8xf32>)
  memref.dealloc %b : memref<8xf32>
  memref.dealloc %a : memref<8xf32>
  func.return
}}
{function}"""


def function(*lines: str, beside: str = "") -> str:
    body = "\n  ".join(lines)
    return (
        f"func.func private @g(%p: {M}, %q: {M}) {{\n  {body}\n  func.return\n}}\n"
        + beside
    )


COPY = f'"memref.copy"(%p, %q) : ({M}, {M}) -> ()'
NOT_KEPT = {
    "a copy": function(COPY),
    "a view": function(
        f"%v = memref.subview %p[0] [4] [1] : {M} to memref<4xf32, strided<[1]>>",
        f"%w = memref.subview %q[4] [4] [1] : {M} to "
        "memref<4xf32, strided<[1], offset: 4>>",
        '"memref.copy"(%v, %w) : (memref<4xf32, strided<[1]>>, '
        "memref<4xf32, strided<[1], offset: 4>>) -> ()",
    ),
    "loops and branches": function(
        "%c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index",
        "%c8 = arith.constant 8 : index\n  %true = arith.constant true",
        "scf.for %i = %c0 to %c8 step %c1 {",
        f"%e = memref.load %p[%i] : {M}",
        f"scf.if %true {{ memref.store %e, %q[%i] : {M} }}",
        "}",
    ),
    "a buffer of its own": function(
        f"%t = memref.alloc() : {M}",
        f"linalg.exp ins(%p : {M}) outs(%t : {M})",
        f'"memref.copy"(%t, %q) : ({M}, {M}) -> ()',
        f"memref.dealloc %t : {M}",
    ),
    "another function": function(
        f"func.call @h(%q, %p) : ({M}, {M}) -> ()",
        beside=f"func.func private @h(%q: {M}, %p: {M}) {{\n{COPY}\nfunc.return\n}}",
    ),
    "what another function returns": function(
        f"%r = func.call @h(%p) : ({M}) -> {M}",
        f'"memref.copy"(%r, %q) : ({M}, {M}) -> ()',
        f"memref.dealloc %r : {M}",
        beside=f"func.func private @h(%p: {M}) -> {M} {{\n%q = memref.alloc() : {M}\n"
        f"{COPY}\nfunc.return %q : {M}\n}}",
    ),
    "itself": function(
        "%no = arith.constant false",
        f"scf.if %no {{ func.call @g(%p, %q) : ({M}, {M}) -> () }}",
        COPY,
    ),
}

STARTS = (
    "%c0 = arith.constant 0 : index\n  %c8 = arith.constant 8 : index",
    "%tag = memref.get_global @tag : memref<1xi32>",
    '"memref.dma_start"(%p, %c0, %q, %c0, %c8, %tag, %c0) : '
    f"({M}, index, {M}, index, index, memref<1xi32>, index) -> ()",
)
TAG = 'memref.global "private" @tag : memref<1xi32> = uninitialized'
WAITS = '"memref.dma_wait"(%tag, %c0, %c8) : (memref<1xi32>, index, index) -> ()'
KEPT = {
    "it is not here": f"func.func private @g({M}, {M})",
    "it stores it": function(
        "%c0 = arith.constant 0 : index",
        f"%all = memref.get_global @all : memref<1x{M}>",
        f"memref.store %p, %all[%c0] : memref<1x{M}>",
        beside=f'memref.global "private" @all : memref<1x{M}> = uninitialized',
    ),
    "it gives away the address": function(
        f"%v = memref.extract_aligned_pointer_as_index %p : {M} -> index",
        "func.call @h(%v) : (index) -> ()",
        beside="func.func private @h(index)",
    ),
    "it converts it to an address": function(
        f"%v = builtin.unrealized_conversion_cast %p : {M} to i64",
        "func.call @h(%v) : (i64) -> ()",
        beside="func.func private @h(i64)",
    ),
    "a transfer goes on": function(*STARTS, beside=TAG),
    "a transfer of the caller may end its wait": function(*STARTS, WAITS, beside=TAG),
    "what it calls is not here": function(
        f"func.call @h(%p) : ({M}) -> ()", beside=f"func.func private @h({M})"
    ),
    "what it calls returns it": function(
        f"%r = func.call @h(%p) : ({M}) -> {M}",
        beside=f"func.func private @h(%p: {M}) -> {M} {{\nfunc.return %p : {M}\n}}",
    ),
    "an unknown operation has it": function(f'"npu.keep"(%p) : ({M}) -> ()'),
    "an unknown region has it": function(
        '"npu.spawn"() ({', COPY, '"npu.end"() : () -> ()', "}) : () -> ()"
    ),
    "agents run it": function('"snax.cluster_sync_op"() : () -> ()', COPY),
}


def planned(text: str) -> ModuleOp:
    module = tensorplan.read(PROGRAM.format(function=text))
    result = run(module, PlanMemory(reuse_outputs=False))
    check_plan(result)
    return result


def arena_bytes(module: ModuleOp) -> int:
    """The size in bytes of the arena of the first function."""
    found = re.search(r"%arena = memref.alloc.*memref<(\d+)xi8>", str(module))
    assert found
    return int(found[1])


@pytest.mark.parametrize("name", NOT_KEPT)
def test_buffers_that_the_callee_does_not_keep_are_reused(name: str) -> None:
    module = planned(NOT_KEPT[name])
    first = next(iter(module.ops))
    assert isinstance(first, FuncOp)
    assert arena_bytes(module) == 32
    before = tensorplan.read(PROGRAM.format(function=NOT_KEPT[name]))
    (func, *_) = before.ops
    assert isinstance(func, FuncOp)
    assert run_memrefs(first, 0, 10**4) == run_memrefs(func, 0, 10**4)


@pytest.mark.parametrize("name", KEPT)
def test_buffers_that_the_callee_may_keep_are_live_until_their_dealloc(
    name: str,
) -> None:
    assert arena_bytes(planned(KEPT[name])) == 96  # two aligned buffers


def test_transfer_with_a_local_tag_ends_in_the_callee() -> None:
    tag = "%tag = memref.alloca() : memref<1xi32>"
    assert arena_bytes(planned(function(STARTS[0], tag, STARTS[2], WAITS))) == 32


def test_buffer_that_the_callee_frees_is_not_planned() -> None:
    """The buffer is not planned, because its live range ends in the callee."""
    text = PROGRAM.replace("  memref.dealloc %a : memref<8xf32>\n", "")
    freeing = function(COPY, f"memref.dealloc %p : {M}")
    module = tensorplan.read(text.format(function=freeing))
    result = str(run(module, PlanMemory(reuse_outputs=False)))
    assert "%a = memref.alloc() : memref<8xf32>" in result
    assert "%b = memref.view" in result


def calling(name: str, other: str, keeps: bool) -> str:
    """A function that calls another function, and stores its argument if it `keeps`
    it."""
    last = f"memref.store %p, %all[%c0] : memref<1x{M}>" if keeps else ""
    return f"""
func.func private @{name}(%p: {M}) {{
  %c0 = arith.constant 0 : index
  %all = memref.get_global @all : memref<1x{M}>
  func.call @{other}(%p) : ({M}) -> ()
  {last}
  func.return
}}"""


@pytest.mark.parametrize("order", ["gh", "hg"])
@pytest.mark.parametrize("keeps", ["", "g", "h"])
def test_mutually_recursive_functions(order: str, keeps: str) -> None:
    """The result does not depend on which of two recursive functions is analyzed
    first."""
    others = {"g": "h", "h": "g"}
    functions = "".join(
        calling(name, other, name in keeps) for name, other in others.items()
    )
    calls = "".join(f"func.call @{name}(%p) : ({M}) -> ()\n" for name in order)
    text = f"func.func @f(%p: {M}) {{\n{calls}func.return\n}}{functions}"
    module = tensorplan.read(
        f'memref.global "private" @all : memref<1x{M}> = uninitialized\n{text}'
    )
    found = Calls()
    for op in module.walk():
        if isinstance(op, CallOp):
            assert found.is_over(op) is not bool(keeps)


def test_each_function_is_analyzed_once() -> None:
    """The analysis of 200 calls takes fewer than 20 times as many steps as that of one
    call."""
    call = f"func.call @g(%p, %q) : ({M}, {M}) -> ()\n"
    counts: list[int] = []
    for number in (1, 200):
        text = f"func.func @f(%p: {M}, %q: {M}) {{\n{call * number}func.return\n}}\n"
        module = tensorplan.read(text + function(*[COPY] * 100))
        calls = [op for op in module.walk() if isinstance(op, CallOp)]
        profile, found = Profile(), Calls()
        profile.runcall(lambda c=calls, f=found: [*map(f.is_over, c)])
        counts.append(sum(s.callcount for s in profile.getstats()))
    assert counts[1] < 20 * counts[0]


def returning(*lines: str, results: int = 1, name: str = "g", beside: str = "") -> str:
    """A function that returns memrefs, given two of them."""
    body, types = "\n  ".join(lines), ", ".join([M] * results)
    return (
        f"func.func private @{name}(%p: {M}, %q: {M}, %c: i1) -> ({types}) {{\n"
        f"  %t = memref.alloc() : {M}\n  %u = memref.alloc() : {M}\n  {body}\n}}\n"
        + beside
    )


def call(name: str, results: int = 1) -> str:
    types = ", ".join([M] * results)
    return f"func.call @{name}(%p, %q, %c) : ({M}, {M}, i1) -> ({types})"


def replaced_in_a_loop(first: str) -> list[str]:
    """A loop that replaces the allocation that it carries; it returns %v."""
    return [
        "%c0 = arith.constant 0 : index",
        "%c1 = arith.constant 1 : index",
        f"%v = scf.for %i = %c0 to %c1 step %c1 iter_args(%was = {first}) -> ({M}) {{",
        *(f"%now = memref.alloc() : {M}", f"scf.yield %now : {M}", "}"),
    ]


CAST = "%v = memref.reinterpret_cast %t to offset: [0], sizes: [8], strides: [1] : "
RETURNS = {
    "an allocation": ([0], returning(f"return %t : {M}")),
    "a view of one": ([0], returning(f"{CAST}{M} to {M}", f"return %v : {M}")),
    "one on each path": (
        [0],
        returning(
            *("cf.cond_br %c, ^a, ^b", "^a:", f"return %t : {M}"),
            *("^b:", f"return %u : {M}"),
        ),
    ),
    "two": ([0, 1], returning(f"return %t, %u : {M}, {M}", results=2)),
    "one beside an argument": (
        [1],
        returning(f"return %p, %u : {M}, {M}", results=2),
    ),
    "one beside a global": (
        [0],
        returning(
            f"%w = memref.get_global @w : {M}",
            f"return %t, %w : {M}, {M}",
            results=2,
            beside=f'memref.global "private" @w : {M} = uninitialized',
        ),
    ),
    "one made from the other": (
        [0, 1],
        returning(
            *(f"%r = {call('h').replace('(%p', '(%t')}", f"return %t, %r : {M}, {M}"),
            results=2,
            beside=returning(f"return %u : {M}", name="h"),
        ),
    ),
    "that of another function": (
        [0],
        returning(
            *(f"%r:2 = {call('h', 2)}", f"return %r#1 : {M}"),
            beside=returning(f"return %q, %u : {M}, {M}", results=2, name="h"),
        ),
    ),
    "an argument of another function": (
        [],
        returning(
            *(f"%r:2 = {call('h', 2)}", f"return %r#0 : {M}"),
            beside=returning(f"return %q, %u : {M}, {M}", results=2, name="h"),
        ),
    ),
    "one twice": ([], returning(f"return %t, %t : {M}, {M}", results=2)),
    "one and its view": (
        [],
        returning(f"{CAST}{M} to {M}", f"return %t, %v : {M}, {M}", results=2),
    ),
    "one that may be the other": (
        [],
        returning(
            f"%v = arith.select %c, %t, %p : {M}",
            f"return %t, %v : {M}, {M}",
            results=2,
        ),
    ),
    "one that a branch passes on": (
        [],
        returning(
            *(f"cf.br ^a(%t : {M})", f"^a(%v: {M}):", f"return %t, %v : {M}, {M}"),
            results=2,
        ),
    ),
    "an argument on one path": (
        [],
        returning(
            *("cf.cond_br %c, ^a, ^b", "^a:", f"return %t : {M}"),
            *("^b:", f"return %p : {M}"),
        ),
    ),
    "memory of another owner": (
        [],
        returning(f'%w = "npu.buffer"() : () -> {M}', f"return %w : {M}"),
    ),
    "in a way of its own": ([], returning(f'"npu.return"(%t) : ({M}) -> ()')),
    "what it calls itself for": (
        [],
        returning(
            *("cf.cond_br %c, ^a, ^b", "^a:", f"return %t : {M}"),
            *("^b:", f"%r = {call('g')}", f"return %r : {M}"),
        ),
    ),
    "one of two by a select": (
        [0],
        returning(f"%v = arith.select %c, %t, %u : {M}", f"return %v : {M}"),
    ),
    "one of each branch": (
        [0],
        returning(
            *(f"%v = scf.if %c -> ({M}) {{", f"%w = memref.alloc() : {M}"),
            *(f"scf.yield %w : {M}", "} else {", f"scf.yield %t : {M}", "}"),
            f"return %v : {M}",
        ),
    ),
    "an argument in one branch": (
        [],
        returning(
            *(f"%v = scf.if %c -> ({M}) {{", f"scf.yield %t : {M}", "} else {"),
            *(f"scf.yield %p : {M}", "}", f"return %v : {M}"),
        ),
    ),
    "the last one of a loop": (
        [0],
        returning(*replaced_in_a_loop("%t"), f"return %v : {M}"),
    ),
    "an argument if a loop does not run": (
        [],
        returning(*replaced_in_a_loop("%p"), f"return %v : {M}"),
    ),
    "the first one of a loop that may be its last": (
        [],
        returning(*(*replaced_in_a_loop("%t"), f"return %t, %v : {M}, {M}"), results=2),
    ),
    "one of a loop that decides at its start": (
        [0],
        returning(
            f"%v = scf.while (%was = %t) : ({M}) -> {M} {{",
            *(f"scf.condition(%c) %was : {M}", "} do {", f"^bb0(%old: {M}):"),
            *(f"%now = memref.alloc() : {M}", f"memref.dealloc %old : {M}"),
            *(f"scf.yield %now : {M}", "}", f"return %v : {M}"),
        ),
    ),
    "the clone of an allocation": (
        [0],
        returning(f'%v = "bufferization.clone"(%t) : ({M}) -> {M}', f"return %v : {M}"),
    ),
    "the clone of an argument": (
        [],
        returning(f'%v = "bufferization.clone"(%p) : ({M}) -> {M}', f"return %v : {M}"),
    ),
    "one of each case": (
        [0],
        returning(
            *("%k = arith.extui %c : i1 to i32", "cf.switch %k : i32, ["),
            *(f"default: ^a(%t : {M}),", f"1: ^a(%u : {M})]"),
            *(f"^a(%v: {M}):", f"return %v : {M}"),
        ),
    ),
    "what is not known": ([], f"func.func private @g({M}, {M}, i1) -> {M}"),
}


@pytest.mark.parametrize("name", RETURNS)
def test_results_that_are_new_memory(name: str) -> None:
    """The planner and plan-check find them each on its own."""
    expected, function = RETURNS[name]
    header = function.partition("{")[0]
    number = header.partition("->")[2].count("memref")
    text = f"func.func @f(%p: {M}, %q: {M}, %c: i1) {{\n%r:{number} = "
    module = tensorplan.read(f"{text}{call('g', number)}\nreturn\n}}\n{function}")
    func = next(iter(module.ops))
    assert isinstance(func, FuncOp)
    (made, *_) = (op for op in func.walk() if isinstance(op, CallOp))
    wanted = [made.results[index] for index in expected]
    calls = Calls()
    assert [result for result in made.results if calls.is_new(result)] == wanted
    assert [*Callees().new_in(func)] == wanted
