"""Registers kinds of planted faults, and builds the text of their programs.

    @plant(sound="%c64", faulty="%c0")
    def overlap_in_a_loop(at: str) -> str:
        return program(loop(arena(), view("a"), view("b", at), ...))

A builder returns the program for the sound value and for the faulty value. Both are
`@f(%n: index, %p: i1, %x, %y, %z: memref<16xf32>)`, and compute the same if no buffers
share memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Builder = Callable[..., str]

M = "memref<16xf32>"
SQUARE = "memref<4x4xf32>"
I8 = "memref<256xi8>"


@dataclass(frozen=True)
class Kind:
    """A kind of fault, with a sound twin."""

    family: str
    name: str
    builder: Builder
    sound: Any
    faulty: Any
    unsound: bool = True  # whether a native run shows the fault
    modes: tuple[str, ...] = ()  # legal schedules to run instead of the program
    is_ours: bool = False  # has tgraph operations, which are lowered first
    beyond: str = ""  # why the plan is not at fault: plan-check may accept it
    may_refuse: str = ""  # why plan-check may also reject the sound twin

    def text(self, faulty: bool, mode: str | None = None) -> str:
        value = self.faulty if faulty else self.sound
        if not self.modes:
            return self.builder(value)
        return self.builder(value, mode or "checked")


KINDS: list[Kind] = []


def plant(sound: Any, faulty: Any, **options: Any) -> Callable[[Builder], Builder]:
    def register(builder: Builder) -> Builder:
        family = builder.__module__.rpartition(".")[2].removeprefix("planted_")
        name = builder.__name__.replace("_", " ")
        KINDS.append(Kind(family, name, builder, sound, faulty, **options))
        return builder

    return register


def program(*lines: str, beside: str = "", results: str = "return") -> str:
    """A module with @f, and other functions and globals before it."""
    constants = "\n".join(
        f"  %c{n} = arith.constant {n} : index"
        for n in (0, 1, 2, 3, 4, 8, 15, 16, 32, 64, 128, 192, 256)
    )
    body = "\n".join(lines)
    return (
        f"{beside}\nfunc.func @f(%n: index, %p: i1, %x: {M}, %y: {M}, %z: {M}) {{\n"
        f"{constants}\n{body}\n{results}\n}}\n"
    )


def arena(name: str = "arena", size: int = 256, alignment: int = 64) -> str:
    aligned = f"{{alignment = {alignment} : i64}}"
    return f"%{name} = memref.alloc() {aligned} : memref<{size}xi8>"


def view(
    name: str, at: str = "%c0", type: str = M, of: str = "arena", arena: str = I8
) -> str:
    return f"%{name} = memref.view %{of}[{at}][] : {arena} to {type}"


def free(name: str = "arena", type: str = I8) -> str:
    return f"memref.dealloc %{name} : {type}"


def copy(source: str, target: str, type: str = M, to: str | None = None) -> str:
    return f'"memref.copy"(%{source}, %{target}) : ({type}, {to or type}) -> ()'


def each(source: str, target: str, type: str = M, op: str = "negf", **maps: str) -> str:
    """linalg.generic: %target = op %source; `read` is the map of %source."""
    read = maps.get("read", "(d0) -> (d0)")
    to = maps.get("to", type)
    return (
        f"linalg.generic {{indexing_maps = [affine_map<{read}>, "
        'affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} '
        f"ins(%{source} : {type}) outs(%{target} : {to}) {{\n"
        f"^bb0(%in0: f32, %old: f32):\n  %new = arith.{op} %in0 : f32\n"
        "  linalg.yield %new : f32\n}"
    )


def add(a: str, b: str, target: str, type: str = M) -> str:
    """linalg.generic: %target = %a + %b."""
    same = "affine_map<(d0) -> (d0)>"
    return (
        f"linalg.generic {{indexing_maps = [{same}, {same}, {same}], "
        'iterator_types = ["parallel"]} '
        f"ins(%{a}, %{b} : {type}, {type}) outs(%{target} : {type}) {{\n"
        "^bb0(%in0: f32, %in1: f32, %old: f32):\n  %new = arith.addf %in0, %in1 : f32\n"
        "  linalg.yield %new : f32\n}"
    )


def squares(*names: str) -> str:
    """Expands each name, such as %x, to %sx with 4 by 4 elements."""
    return lines(
        *(
            f"%s{name} = memref.expand_shape %{name} [[0, 1]] output_shape [4, 4] : "
            f"{M} into {SQUARE}"
            for name in names
        )
    )


def loop(*lines: str, to: str = "%n", index: str = "t") -> str:
    body = "\n".join(lines)
    return f"scf.for %{index} = %c0 to {to} step %c1 {{\n{body}\n}}"


def parallel(*lines: str, to: str = "%n", index: str = "t") -> str:
    body = "\n".join(lines)
    return (
        f'"scf.parallel"(%c0, {to}, %c1) <{{operandSegmentSizes = '
        f"array<i32: 1, 1, 1, 0>}}> ({{\n^bb0(%{index}: index):\n{body}\n"
        "scf.reduce\n}) "
        ": (index, index, index) -> ()"
    )


def branch(then: list[str], other: list[str] | None = None, on: str = "%p") -> str:
    body = "\n".join(then)
    rest = "" if other is None else " else {\n" + "\n".join(other) + "\n}"
    return f"scf.if {on} {{\n{body}\n}}{rest}"


def lines(*parts: str) -> str:
    return "\n".join(parts)
