"""Tests `analysis/dependencies.py`: an operation depends on operations that compute its
operands, and on operations that access the same memory.

Each line of a body is an operation. `0<2` says that operation 2 depends on operation 0.
An operation depends only on the last writers and readers of a memory; dependencies on
earlier operations follow from these.
"""

import pytest
from unchanged_ir import function
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation

from tensorplan.analysis.dependencies import dependencies, queue_of, runs
from tensorplan.dialects.memory import effects_on

M, BYTES = "memref<8xf32>", "memref<64xi8>"
T, V = "tensor<8xf32>", "!tgraph.variable<tensor<8xf32>>"
BACK = "{dimensions = array<i64: 0>}"
ROWS = "tensor<2x4xf32>"
GPU = '!tgraph.variable<tensor<8xf32, "gpu">>'


def operations(*lines: str) -> list[Operation]:
    memrefs = ", ".join(f"%{name}: {M}" for name in "xyzw")
    arguments = (
        f"{memrefs}, %t: {T}, %u: {V}, %v: {V}, %g: {GPU}, %n: index, %f: f32, %p: i1"
    )
    text = "\n".join(
        (f"func.func @f({arguments}, %b: {BYTES}) {{", *lines, "func.return\n}")
    )
    return list(function(text).body.block.ops)[:-1]


def negate(source: str, target: str) -> str:
    return f"tgraph.negate %{source} outs(%{target}) : {M}"


def constant(target: str) -> str:
    return f"tgraph.constant<0.0 : f32> outs(%{target}) : {M}"


def exp(source: str, result: str) -> str:
    return f"%{result} = tgraph.exponential %{source} : {T}"


def read(variable: str, result: str) -> str:
    return f"%{result} = tgraph.read %{variable} : {T}"


def assign(variable: str, value: str) -> str:
    return f"tgraph.assign %{variable}, %{value} : {T}"


UNKNOWN = '"other.op"() : () -> ()'
LOAD = f"%l = memref.load %x[%n] : {M}"

CASES = {
    "nothing in common": ([constant("x"), constant("y")], ""),
    "write and read": ([constant("x"), negate("x", "y")], "0<1"),
    "two readers": ([constant("x"), negate("x", "y"), negate("x", "z")], "0<1 0<2"),
    "a write after its readers": (
        [constant("x"), negate("x", "y"), negate("x", "z"), constant("x")],
        "0<1 0<2 1<3 2<3",
    ),
    "two writes": ([constant("x"), constant("x")], "0<1"),
    "a reader of the first": (
        [negate("x", "y"), constant("x"), negate("x", "z")],
        "0<1 1<2",
    ),
    "in place": ([negate("x", "x"), negate("x", "x")], "0<1"),
    "one that writes what it reads, and readers": (
        [negate("x", "y"), negate("x", "x"), negate("x", "z")],
        "0<1 1<2",
    ),
    "values": ([exp("t", "a"), exp("a", "c"), exp("a", "d")], "0<1 0<2"),
    "a value and memory": ([LOAD, "%m = arith.addf %l, %l : f32"], "0<1"),
    "a value, and memory that another wrote": (
        [constant("x"), LOAD, constant("y"), f"memref.store %l, %y[%n] : {M}"],
        "0<1 1<3 2<3",
    ),
    "a view": (
        [
            *(constant("x"), f"%a = memref.cast %x : {M} to memref<?xf32>"),
            '"test.op"(%a) : (memref<?xf32>) -> ()',
            negate("x", "y"),
        ],
        "0<2 1<2 2<3",
    ),
    "views of an arena": (
        [
            f"%q = memref.alloc() {{tgraph.arena}} : {BYTES}",
            f"%a = memref.view %q[%n][] : {BYTES} to {M}",
            f"%c = memref.view %q[%n][] : {BYTES} to {M}",
            *(constant("a"), constant("c"), f"memref.dealloc %q : {BYTES}"),
        ],
        "0<1 0<2 1<3 2<4 0<5 3<5 4<5",
    ),
    "views of bytes from outside": (
        [
            f"%a = memref.view %b[%n][] : {BYTES} to {M}",
            f"%c = memref.view %b[%n][] : {BYTES} to {M}",
            *(constant("a"), constant("c")),
        ],
        "0<2 1<3 2<3",
    ),
    "views of bytes that are used themselves": (
        [
            f"%q = memref.alloc() : {BYTES}",
            f"%a = memref.view %q[%n][] : {BYTES} to {M}",
            f"%c = memref.view %q[%n][] : {BYTES} to {M}",
            *(constant("a"), constant("c"), f"%l = memref.load %q[%n] : {BYTES}"),
        ],
        "0<1 0<2 1<3 2<4 3<4 0<5 4<5",
    ),
    "buffers in a result": (
        [
            "%a = memref.reinterpret_cast %x to offset: [0], sizes: [4], strides: [1] "
            f"{{tgraph.buffer}} : {M} to memref<4xf32>",
            "tgraph.constant<0.0 : f32> outs(%a) : memref<4xf32>",
            constant("x"),
        ],
        "0<1",
    ),
    "a global": (
        [
            f"%a = memref.get_global @g : {M}",
            f"%c = memref.get_global @g : {M}",
            *(constant("a"), negate("c", "y")),
        ],
        "0<2 1<3 2<3",
    ),
    "allocations": (
        [
            f"%a = memref.alloc() : {M}",
            f"%c = memref.alloca() : {M}",
            *(constant("a"), negate("c", "y"), f"memref.dealloc %a : {M}"),
        ],
        "0<2 1<3 0<4 2<4",
    ),
    "what an unknown operation gives may be any memory": (
        [f'%a = "test.op"() : () -> {M}', constant("a"), negate("x", "y")],
        "0<1 1<2",
    ),
    "an unknown operation may touch anything": (
        [constant("x"), UNKNOWN, constant("x"), exp("t", "a"), UNKNOWN],
        "0<1 0<2 1<2 2<4",
    ),
    "a call may touch anything": (
        [constant("x"), "func.call @g() : () -> ()", constant("y")],
        "0<1 1<2",
    ),
    "a region with an unknown operation": (
        [
            constant("x"),
            f"scf.if %p {{ {UNKNOWN} }}",
            constant("y"),
        ],
        "0<1 1<2",
    ),
    "an unknown operation and one that only reads": ([UNKNOWN, LOAD], "0<1"),
    "a reader and the end": (
        [
            *(f"%a = memref.alloc() : {M}", constant("a"), negate("a", "y")),
            f"memref.dealloc %a : {M}",
        ],
        "0<1 0<2 1<2 0<3 2<3",
    ),
    "a copy of a view": (
        [
            constant("x"),
            f"tgraph.reverse %x outs(%y) {{dimensions = array<i64: 0>}} : {M}",
            negate("y", "z"),
        ],
        "0<1 1<2",
    ),
    "linalg touches its operands only": (
        [
            constant("x"),
            '"linalg.fill"(%f, %y) <{operandSegmentSizes = array<i32: 1, 1>}> ({'
            "^bb0(%e: f32, %g1: f32): linalg.yield %e : f32}) "
            f": (f32, {M}) -> ()",
            constant("z"),
        ],
        "",
    ),
    "values in a region": (
        [
            constant("x"),
            f"scf.if %p {{ {LOAD}\nmemref.store %l, %y[%n] : {M} }}",
            constant("y"),
        ],
        "0<1 1<2",
    ),
    "a region without": (
        [
            constant("x"),
            f"scf.if %p {{ {LOAD} }}",
            *(constant("y"), constant("x")),
        ],
        "0<1 1<3",
    ),
    "numbers touch nothing": (
        [constant("x"), "%m = arith.addf %f, %f : f32", constant("x")],
        "0<2",
    ),
    "read and assign": (
        [read("u", "a"), exp("a", "c"), assign("u", "c")],
        "0<1 0<2 1<2",
    ),
    "two variables": (
        [read("u", "a"), exp("a", "c"), assign("v", "c")],
        "0<1 1<2",
    ),
    "who reads contents comes before the next write": (
        [read("u", "a"), exp("t", "c"), exp("a", "d"), assign("u", "c")],
        "0<2 0<3 1<3 2<3",
    ),
    "a view of contents, too": (
        [
            *(read("u", "a"), f"%c = tgraph.reshape %a : ({T}) -> {ROWS}"),
            *(f"%d = tgraph.exponential %c : {ROWS}", assign("u", "t")),
        ],
        "0<1 1<2 0<3 2<3",
    ),
    "contents that are overwritten were copied": (
        [read("u", "a"), assign("u", "t"), exp("a", "c"), assign("u", "t")],
        "0<1 0<2 1<3",
    ),
    "a view computed into a variable": (
        [
            *(read("u", "a"), f"%c = tgraph.reverse %a outs(%v) {BACK} : {T}"),
            *(exp("c", "d"), assign("v", "t")),
        ],
        "0<1 1<2 2<3",
    ),
    "computed into a variable": (
        [
            f"%a = tgraph.exponential %t outs(%u) : {T}",
            *(exp("a", "c"), assign("u", "t")),
        ],
        "0<1 1<2",
    ),
}


@pytest.mark.parametrize(("lines", "expected"), CASES.values(), ids=CASES)
def test_dependencies_of_operations(lines: list[str], expected: str) -> None:
    waits = dependencies(operations(*lines))
    found = [f"{a}<{b}" for b, before in enumerate(waits) for a in before]
    assert found == expected.split()


@pytest.mark.parametrize(
    ("line", "effects"),
    [
        (negate("x", "y"), [(True, False), (False, True)]),
        (negate("x", "x"), [(True, True), (True, True)]),
        (f'"memref.copy"(%x, %y) : ({M}, {M}) -> ()', [(True, False), (False, True)]),
        (f"%m = memref.load %x[%n] : {M}", [(True, False)]),
        (f'"other.op"(%x) : ({M}) -> ()', [(True, True)]),
    ],
)
def test_effects_on_operands(line: str, effects: list[tuple[bool, bool]]) -> None:
    (op,) = operations(line)
    memrefs = [v for v in op.operands if isinstance(v.type, MemRefType)]
    assert [effects_on(op, value) for value in memrefs] == effects


RUNS = {
    "computes": (constant("x"), True),
    "computes a tensor": (exp("t", "a"), True),
    "a view of a tensor": (f"%c = tgraph.reshape %t : ({T}) -> {ROWS}", False),
    "assigns": (assign("u", "t"), True),
    "reads a variable": (read("u", "a"), False),
    "a view": (f"%a = memref.cast %x : {M} to memref<?xf32>", False),
    "allocates": (f"%a = memref.alloc() : {M}", False),
    "frees": (f"memref.dealloc %x : {M}", False),
    "a number": ("%a = arith.constant 0 : index", False),
    "a global": (f"%a = memref.get_global @g : {M}", False),
    "an unknown operation": (UNKNOWN, True),
}


@pytest.mark.parametrize(("line", "expected"), RUNS.values(), ids=RUNS)
def test_operations_that_run(line: str, expected: bool) -> None:
    (op,) = operations(line)
    assert runs(op) == expected


def test_terminator_does_not_run() -> None:
    (op,) = operations(constant("x"))
    assert op.next_op is not None
    assert not runs(op.next_op)


def test_terminator_has_no_dependencies() -> None:
    (op,) = operations(constant("x"))
    assert op.next_op is not None
    assert dependencies([op, op.next_op]) == [[], []]


def on(type: str, device: str) -> str:
    return f'{type[:-1]}, "{device}">'


QUEUES = {
    "nothing said": (constant("x"), (None, 0)),
    "a stream": (
        f"tgraph.constant<0.0 : f32> outs(%x) {{tgraph.stream = 2 : i32}} : {M}",
        (None, 2),
    ),
    "no memory": (UNKNOWN, (None, 0)),
    "the device of the result": (
        f"%a = tgraph.device_copy %t : ({T}) -> {on(T, 'gpu')}",
        ("gpu", 0),
    ),
    "the device of what is written": (
        f"%a = memref.alloc() : {on(M, 'gpu')}\n"
        f"tgraph.device_copy %x outs(%a) : ({M}) -> {on(M, 'gpu')}",
        ("gpu", 0),
    ),
    "the device of the variable": (
        f"%a = tgraph.device_copy %t : ({T}) -> {on(T, 'gpu')}\n"
        f"tgraph.assign %g, %a : {on(T, 'gpu')}",
        ("gpu", 0),
    ),
}


@pytest.mark.parametrize(("line", "expected"), QUEUES.values(), ids=QUEUES)
def test_device_and_stream_of_an_operation(
    line: str, expected: tuple[str | None, int]
) -> None:
    *_, op = operations(line)
    assert queue_of(op) == expected
