"""Tests programs from MLIR's static-memory-planner, which need no more bytes here.

Each program is one of its published tests, rewritten: it allocates buffers of the same
sizes and frees them at the same places. Every buffer is also written after its
allocation and read before its deallocation, as upstream assumes. `upstream` is the
smaller arena of its algorithms, or None if it skips an allocation or reports an error.
"""

import logging
from dataclasses import dataclass
from typing import cast

import pytest
from modules import parse, run
from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp

from tensorplan.dialects.tgraph.base import AnyMemRef
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.support.remarks import REMARKS


@dataclass(frozen=True)
class Case:
    """A program, and the bytes of its arena upstream and here."""

    name: str
    upstream: int | None
    ours: int  # an upper bound
    body: str

    @property
    def text(self) -> str:
        types = "%c: i1, %d: i1, %e: i1, %n: index, %c0: index, %c1: index"
        return f"func.func @main({types}) {{\n{expanded(self.body)}\nfunc.return\n}}"


def type_of(bytes: int) -> str:
    return f"memref<{bytes // 4}xf32>"


def expanded(body: str) -> str:
    """Expands a program to MLIR. `+a 64 16` allocates 64 bytes with alignment 16, and
    `-a` frees them; both also use the buffer. In other lines, T is the type of buffers
    of 4096 bytes."""
    sizes: dict[str, int] = {}
    lines = ["%zero = arith.constant 0.0 : f32"]
    for line in filter(None, map(str.strip, body.splitlines())):
        sign, word = line[0], line[1:].split()
        if sign == "+":
            name, bytes, *aligned = word
            sizes[name] = int(bytes)
            attribute = f" {{alignment = {aligned[0]} : i64}}" if aligned else ""
            type = type_of(int(bytes))
            lines.append(f"%{name} = memref.alloc(){attribute} : {type}")
            lines.append(f"memref.store %zero, %{name}[%c0] : {type}")
        elif sign == "-":
            type = type_of(sizes.get(word[0], 4096))
            lines.append(f"%read{len(lines)} = memref.load %{word[0]}[%c0] : {type}")
            lines.append(f"memref.dealloc %{word[0]} : {type}")
        else:
            lines.append(line.replace("T", type_of(4096)))
    return "\n".join(lines)


def if_(condition: str, then: str, other: str = "") -> str:
    return f"scf.if %{condition} {{\n{then}\n}} else {{\n{other}\n}}"


def choice(name: str, condition: str, a: str, b: str) -> str:
    """An `scf.if` that yields a buffer."""
    return (
        f"%{name} = scf.if %{condition} -> (T) {{\nscf.yield %{a} : T\n}} else {{\n"
        f"scf.yield %{b} : T\n}}"
    )


def for_(*lines: str) -> str:
    body = "\n".join(lines)
    return f"scf.for %i = %c0 to %n step %c1 {{\n{body}\n}}"


def carrying(*lines: str) -> str:
    body = "\n".join(lines)
    head = "%r = scf.for %i = %c0 to %n step %c1 iter_args(%old = %a) -> (T) {"
    return f"+a 4096\n{head}\n{body}\nscf.yield %b : T\n}}\n-r"


AB = "+a 4096\n+b 4096\n"
SELECT = "%s = arith.select %c, %a, %b : T\n"
CASES = [
    Case("one after the other", 4096, 4096, "+a 4096\n-a\n+b 2048\n-b"),
    Case("overlapping", 6144, 6144, "+a 4096\n+b 2048\n-a\n-b"),
    Case("nested", 6144, 6144, "+a 2048\n+b 4096\n-b\n-a"),
    Case("interleaved", 3072, 3072, "+a 2048\n+b 1024\n-a\n+x 512\n-b\n-x"),
    Case("three in a row", 8192, 8192, "+a 4096\n-a\n+b 2048\n-b\n+x 8192\n-x"),
    Case(
        *("aligned to 128 and 64", 1024, 1024),
        "+a 1024 128\n-a\n+b 512 64\n-b\n+x 256 128\n-x",
    ),
    Case("aligned to 4 and 16", 12, 12, "+a 12 4\n-a\n+b 12 16\n-b"),
    Case(
        *("the smallest gap", 10240, 10240),
        "+a 4096\n+b 1024\n+x 4096\n+y 1024\n-b\n-y\n-a\n+z 512\n-x\n-z",
    ),
    Case(
        *("a gap that is not aligned", 576, 448),
        "+a 128 128\n+b 56\n+x 128 128\n-b\n+y 64 128\n+z 64 256\n-a\n-x\n-y\n-z",
    ),
    Case("select of one", 4096, 4096, "+a 4096\n%s = arith.select %c, %a, %a : T\n-s"),
    Case("select of two", 8192, 8192, f"{AB}{SELECT}-s"),
    Case(
        *("two selects of two", 8192, 8192),
        f"{AB}{SELECT}%t = arith.select %c, %b, %a : T\n-s\n-t",
    ),
    Case("freed in branches", 8192, 8192, AB + if_("c", "-a") + "\n" + if_("d", "-b")),
    Case(
        *("results of branches", 8192, 8192),
        AB
        + choice("r", "c", "a", "b")
        + "\n"
        + choice("s", "c", "b", "a")
        + "\n-r\n-s",
    ),
    Case("allocated in a branch", None, 4096, if_("c", "+b 4096\n-b")),
    Case(
        *("one freed in a branch that yields another", None, 4096),
        "+a 4096\n%r = scf.if %c -> (T) {\n-a\n+b 4096\nscf.yield %b : T\n} else {\n"
        "scf.yield %a : T\n}\n-r",
    ),
    Case("allocated in a loop", None, 4096, for_("+b 4096", "-b")),
    Case("replaced in a loop", None, 4096, carrying("-old", "+b 4096")),
    Case("replaced in a loop, never freed", None, 4096, carrying("+b 4096")),
    Case("freed in each iteration", None, 8192, carrying("-a", "+b 4096")),
    Case("freed in both branches", 4096, 4096, "+a 4096\n" + if_("c", "-a", "-a")),
    Case(
        *("freed three deep", 4096, 4096),
        "+a 4096\n" + if_("c", if_("d", if_("e", "-a"))),
    ),
    Case(
        *("results of results", 8192, 8192),
        AB + choice("r", "c", "a", "b") + "\n" + choice("s", "d", "r", "a") + "\n-s",
    ),
    Case(
        *("a select as result", 8192, 8192),
        AB + SELECT + choice("r", "d", "s", "a") + "\n-r",
    ),
    Case(
        *("freed in a branch, and after it", 6144, 6144),
        "+a 4096\n+b 2048\n" + if_("c", "-a") + "\n-b",
    ),
    Case(
        *("freed in the other branch", 4096, 4096),
        "+a 4096\n" + if_("c", "", if_("d", "-a")),
    ),
    Case(
        *("read in a loop", 8192, 8192),
        AB + for_('"memref.copy"(%a, %b) : (T, T) -> ()') + "\n-a\n-b",
    ),
    Case("never freed", None, 4096, "+a 4096"),
    Case("one of two never freed", None, 4096, "+a 4096\n+b 2048\n-b"),
    Case("freed in another block", None, 4096, "+a 4096\ncf.br ^next\n^next:\n-a"),
    Case(
        *("freed in one of two blocks", None, 4096),
        "+a 4096\ncf.cond_br %c, ^one, ^two\n^one:\n-a\nfunc.return\n^two:",
    ),
]
by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def left(module: ModuleOp) -> int:
    """The number of allocations that are not planned."""
    return sum(
        isinstance(op, memref.AllocOp)
        and not any(isinstance(u.operation, memref.ViewOp) for u in op.memref.uses)
        for op in module.walk()
    )


def arena(module: ModuleOp) -> int:
    """The bytes of the arena, or 0 if there is none."""
    views = (op for op in module.walk() if isinstance(op, memref.ViewOp))
    types = [cast(AnyMemRef, view.source.type) for view in views]
    return max((type.get_shape()[0] for type in types), default=0)


@by_case
def test_arena_is_no_larger_than_upstream(case: Case) -> None:
    module = run(parse(case.text), PlanMemory(alignment=1))
    assert left(module) == 0
    assert 0 < arena(module) <= case.ours
    assert case.upstream is None or case.ours <= case.upstream


@by_case
def test_arena_as_argument(case: Case) -> None:
    """Upstream expects an existing first argument for the arena. Here, the pass adds
    it."""
    allocated = run(parse(case.text), PlanMemory(alignment=1))
    module = run(parse(case.text), PlanMemory(alignment=1, arena="argument"))
    assert arena(module) == arena(allocated)
    assert left(module) == sum(isinstance(op, memref.AllocOp) for op in module.walk())


def test_dynamic_sizes_are_planned() -> None:
    """Upstream skips dynamic sizes, freed or not, and plans the other buffers."""
    text = """
    func.func @main(%n: index) {
      %a = memref.alloc() : memref<1024xf32>
      %b = memref.alloc(%n) : memref<?xf32>
      memref.dealloc %a : memref<1024xf32>
      func.return
    }"""
    module = run(parse(text), PlanMemory(alignment=1))
    assert left(module) == 0
    assert arena(module) == DYNAMIC_INDEX


def test_returned_buffer_is_not_planned(caplog: pytest.LogCaptureFixture) -> None:
    """Upstream reports an error for the whole function."""
    text = """
    func.func @main(%c0: index) -> memref<1024xf32> {
      %a = memref.alloc() : memref<1024xf32>
      memref.dealloc %a : memref<1024xf32>
      %r = memref.alloc() : memref<1024xf32>
      func.return %r : memref<1024xf32>
    }"""
    with caplog.at_level(logging.INFO, REMARKS.name):
        module = run(parse(text), PlanMemory(alignment=1))
    assert arena(module) == 4096
    assert any("it escapes through func.return" in text for text in caplog.messages)
