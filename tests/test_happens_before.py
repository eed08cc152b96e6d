"""Tests `checking/happens_before.py`: which operations on streams end before other
operations start.

In each body, operations with a stream are numbered in order. `01` says that operation 0
ends before operation 1 starts. Pairs that are not listed must be unordered: if they
were ordered, plan-check would accept buffers that share memory.
"""

from itertools import combinations

import pytest
from unchanged_ir import function

from tensorplan.checking.happens_before import HappensBefore
from tensorplan.dialects.tgraph.base import STREAM

M, BYTES = "memref<8xf32>", "memref<64xi8>"
BUFFERS = ("b1", "b2")
"""Views that count as separate memories."""


def on(stream: int) -> str:
    return f"{{tgraph.stream = {stream} : i32}}"


def negate(source: str, target: str, stream: int) -> str:
    return f"tgraph.negate %{source} outs(%{target}) {on(stream)} : {M}"


def constant(target: str, stream: int) -> str:
    return f"tgraph.constant<0.0 : f32> outs(%{target}) {on(stream)} : {M}"


def loop(stream: int, *lines: str) -> str:
    return "\n".join(
        ("scf.for %i = %zero to %n step %one {", *lines, f"}} {on(stream)}")
    )


def carried(stream: int, *lines: str) -> str:
    head = f"%r = scf.for %i = %zero to %n step %one iter_args(%k = %x) -> ({M}) {{"
    return "\n".join((head, *lines, f"scf.yield %k : {M}", f"}} {on(stream)}"))


CASES = {
    "nothing in common": ([constant("x", 0), constant("y", 1)], ()),
    "one stream": ([constant("x", 0), constant("y", 0), constant("z", 1)], ["01"]),
    "write and read": ([constant("x", 0), negate("x", "y", 1)], ["01"]),
    "read and write": ([negate("x", "y", 0), constant("x", 1)], ["01"]),
    "two readers and a write": (
        [negate("x", "y", 0), negate("x", "z", 1), constant("x", 2)],
        ["02", "12"],
    ),
    "reads do not wait": ([negate("x", "y", 0), negate("x", "z", 1)], ()),
    "two writes": ([constant("x", 0), constant("x", 1)], ["01"]),
    "readers of what was there before are over": (
        [negate("x", "y", 0), constant("x", 1), constant("x", 2)],
        ["01", "02", "12"],
    ),
    "through another stream": (
        [constant("x", 0), negate("x", "y", 1), negate("y", "z", 2)],
        ["01", "02", "12"],
    ),
    "only what was there when it waited": (
        [constant("x", 0), negate("x", "y", 1), constant("z", 0), negate("y", "w", 1)],
        ["01", "02", "03", "13"],
    ),
    "a scalar is no memory": (
        [
            f'"other.op"(%f, %x) {on(0)} : (f32, {M}) -> ()',
            f'"other.op"(%f, %y) {on(1)} : (f32, {M}) -> ()',
        ],
        (),
    ),
    "a buffer in a result": (
        [
            "%b1 = memref.reinterpret_cast %x to offset: [0], sizes: [8], strides: [1] "
            f"{{tgraph.buffer}} : {M} to {M}",
            *(constant("b1", 0), constant("x", 1)),
        ],
        (),
    ),
    "a view does nothing": (
        [
            negate("x", "y", 1),
            f"%v = memref.cast %x : {M} to memref<?xf32>",
            negate("x", "z", 2),
        ],
        (),
    ),
    "in place": ([negate("x", "x", 0), negate("x", "x", 1)], ["01"]),
    "unknown operations write": (
        [
            f'"other.op"(%x, %x) {on(0)} : ({M}, {M}) -> ()',
            f'"other.op"(%x) {on(1)} : ({M}) -> ()',
        ],
        ["01"],
    ),
    "what a region reads": (
        [loop(0, '"memref.copy"(%x, %y) : (' + f"{M}, {M}) -> ()"), constant("x", 1)],
        ["01"],
    ),
    "what a region writes": (
        [
            loop(0, '"memref.copy"(%x, %y) : (' + f"{M}, {M}) -> ()"),
            negate("y", "z", 1),
        ],
        ["01"],
    ),
    "what a region does not touch": (
        [loop(0, '"memref.copy"(%x, %y) : (' + f"{M}, {M}) -> ()"), constant("z", 1)],
        (),
    ),
    "what a region is given": (
        [
            *(constant("x", 0), carried(1, f"%l = memref.load %k[%zero] : {M}")),
            *(negate("r", "y", 2), constant("x", 3)),
        ],
        ["01", "02", "03", "12", "13", "23"],
    ),
    "a view": (
        [
            constant("x", 0),
            f"%v = memref.cast %x : {M} to memref<?xf32>",
            f'"other.op"(%v) {on(1)} : (memref<?xf32>) -> ()',
            constant("x", 2),
        ],
        ["01", "02", "12"],
    ),
    "buffers of an arena": (
        [
            f"%arena = memref.alloc() : {BYTES}",
            f"%b1 = memref.view %arena[%zero][] : {BYTES} to {M}",
            f"%b2 = memref.view %arena[%zero][] : {BYTES} to {M}",
            *(constant("b1", 0), constant("b2", 1), constant("b1", 2)),
        ],
        ["02"],
    ),
    "views of bytes from outside": (
        [
            f"%v = memref.view %bytes[%zero][] : {BYTES} to {M}",
            f"%u = memref.view %bytes[%zero][] : {BYTES} to {M}",
            *(constant("v", 0), constant("u", 1)),
        ],
        ["01"],
    ),
    "a global is one memory": (
        [
            f"%v = memref.get_global @g : {M}",
            f"%u = memref.get_global @g : {M}",
            *(constant("v", 0), constant("u", 1)),
        ],
        ["01"],
    ),
    "a memory that is freed": (
        [
            *(f"%q = memref.alloc() : {M}", constant("q", 1)),
            *(f"memref.dealloc %q : {M}", constant("x", 0)),
        ],
        (),
    ),
    "without a stream it is the first": (
        [
            *(constant("x", 1), f"tgraph.negate %x outs(%y) : {M}"),
            *(constant("z", 0), constant("w", 1)),
        ],
        ["01", "02"],
    ),
}


def steps_of(*lines: str) -> tuple[HappensBefore, list[int], int]:
    """The order, the steps of operations with streams, and the last step."""
    args = ", ".join((*(f"%{name}: {M}" for name in "xyzw"), f"%bytes: {BYTES}"))
    text = f"""
      "memref.global"() {{sym_name = "g", type = {M}, initial_value,
                          sym_visibility = "private"}} : () -> ()
      func.func @f({args}, %n: index) -> {M} {{
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %f = arith.constant 0.0 : f32
        {"".join(f"{line}{chr(10)}" for line in lines)}
        func.return %x : {M}
      }}"""
    block = function(text).body.block
    buffers = [v for op in block.ops for v in op.results if v.name_hint in BUFFERS]
    ops = list(block.ops)
    steps = [n for n, op in enumerate(ops) if STREAM in op.attributes]
    return HappensBefore(block, buffers), steps, len(ops) - 1


def is_before(order: HappensBefore, first: list[int], then: list[int]) -> bool:
    begin = order.begin(then)
    return all(n <= begin.get(s, 0) for s, n in order.end(first).items())


@pytest.mark.parametrize(("lines", "pairs"), CASES.values(), ids=CASES)
def test_order_of_pairs_of_operations(lines: list[str], pairs: list[str]) -> None:
    order, steps, _ = steps_of(*lines)
    found = [
        f"{a}{b}"
        for a, b in combinations(range(len(steps)), 2)
        if is_before(order, [steps[a]], [steps[b]])
    ]
    assert found == list(pairs)


def test_order_of_several_steps() -> None:
    lines = [constant("x", 0), negate("x", "y", 1), constant("z", 2), constant("y", 0)]
    order, (x, y, z, w), last = steps_of(*lines)
    assert is_before(order, [x], [y])
    assert not is_before(order, [x], [y, z])
    assert not is_before(order, [x], [z, y])
    assert is_before(order, [x, y], [w])
    assert order.end([last]) == {}  # a return does not access the memref
    assert is_before(order, [last], [x])
