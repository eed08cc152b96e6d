"""Runs programs natively with MLIR: the oracle for planted faults.

Each program is `@f(%n: index, %p: i1, %x, %y, %z: memref<16xf32>)`, which reads %x and
writes %y and %z. A batch of programs is one module. One process runs each program for
every trip count %n, condition %p and poison, in guarded memory.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from guarded_memory import MEMORY
from mlir_programs import LIBRARIES, run
from oracles import text_of
from unchanged_ir import parsed
from upstream import lowered

from tensorplan.runtime.backends.mlir.executable import Tools

TRIPS = (0, 1, 2, 3)
POISONS = (0x41, 0x43)  # as bytes of floats: 12.07, 195.26

LOWER = (
    "--expand-realloc",
    "--convert-linalg-to-loops",
    "--convert-vector-to-scf",
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-scf-to-cf",
    "--convert-math-to-llvm",
    "--finalize-memref-to-llvm=use-generic-functions=1 use-aligned-alloc=1",
    "--convert-to-llvm",
    "--reconcile-unrealized-casts",
)


class Outcome(NamedTuple):
    """The result of one run: the values of %y and %z, and the state of the heap."""

    values: tuple[str, ...]
    heap: tuple[int, int, int]  # invalid frees, blocks not freed, damaged bytes


Behavior = Mapping[tuple[int, int, int], Outcome]
"""The outcome for each poison, trip count and condition."""


def without_tgraph(program: str) -> str:
    """The functions of a program, lowered to upstream dialects."""
    text = text_of(lowered(parsed(program)))
    return text[text.index("{") + 1 : text.rindex("}")]


def behaviors(programs: Sequence[str], tools: Tools) -> list[Behavior]:
    """Runs all programs. Raises `RuntimeError` if the process fails."""
    bodies = [_renamed(text, f"k{n}_") for n, text in enumerate(programs)]
    text = "\n".join([MEMORY, *bodies, _main(len(programs))])
    native = run(tools.opt, LOWER, text)
    options = ("-e=main", "--entry-point-result=void", f"--shared-libs={LIBRARIES}")
    printed = run(tools.runner, options, native)
    found: list[dict[tuple[int, int, int], Outcome]] = [{} for _ in programs]
    for line in printed.splitlines():
        words = line.replace(" ", "").split(",")
        number, poison, trips, condition = map(int, words[:4])
        bad, left, damaged = map(int, words[-3:])
        outcome = Outcome(tuple(words[4:-3]), (bad, left, damaged))
        found[number][poison, trips, condition] = outcome
    return list(found)


def complaint(faulty: Behavior, sound: Behavior) -> str | None:
    """Describes the first error of a program that its sound twin does not have, or
    returns None."""
    for key, got in faulty.items():
        want = sound[key]
        if got.heap[0]:
            return "frees what is no block"
        if got.heap[1] > want.heap[1]:
            return "never frees a block"
        if got.heap[2]:
            return "writes outside of blocks"
        if got.values != want.values:
            return "gives other values"
        if got.values != faulty[(POISONS[0], *key[1:])].values:
            return "reads what nobody wrote"
    return None


def _renamed(text: str, prefix: str) -> str:
    """Prefixes the symbols of a program, and moves its allocas to guarded memory."""
    text = text.replace("memref.alloca(", "memref.alloc(")
    return re.sub(r"@(?!_mlir)(\w+)", rf"@{prefix}\1", text)


def _main(count: int) -> str:
    m = "memref<16xf32>"
    runs = "\n".join(
        f"func.call @run(%f{n}, %id{n}, %poison, %n, %p) : "
        f"((index, i1, {m}, {m}, {m}) -> (), i64, i64, index, i64) -> ()"
        for n in range(count)
    )
    functions = "\n".join(
        f"%f{n} = constant @k{n}_f : (index, i1, {m}, {m}, {m}) -> ()\n"
        f"%id{n} = arith.constant {n} : i64"
        for n in range(count)
    )
    mains = "\n".join(
        f"func.call @under(%p{poison}) : (i64) -> ()\n" for poison in POISONS
    )
    constants = "\n".join(
        f"%p{poison} = arith.constant {poison} : i64" for poison in POISONS
    )
    return f"""
func.func private @run(%f: (index, i1, {m}, {m}, {m}) -> (), %id: i64, %poison: i64,
                       %n: index, %p: i64) {{
  %byte = arith.trunci %poison : i64 to i8
  func.call @heap_reset(%byte) : (i8) -> ()
  %x = memref.alloc() : {m}
  %y = memref.alloc() : {m}
  %z = memref.alloc() : {m}
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 16 : index
  %unwritten = arith.constant -1.0 : f32
  scf.for %i = %zero to %end step %one {{
    %next = arith.addi %i, %one : index
    %i64 = arith.index_cast %next : index to i64
    %v = arith.sitofp %i64 : i64 to f32
    memref.store %v, %x[%i] : {m}
    memref.store %unwritten, %y[%i] : {m}
    memref.store %unwritten, %z[%i] : {m}
  }}
  %c = arith.trunci %p : i64 to i1
  call_indirect %f(%n, %c, %x, %y, %z) : (index, i1, {m}, {m}, {m}) -> ()
  func.call @printI64(%id) : (i64) -> ()
  func.call @printComma() : () -> ()
  func.call @printI64(%poison) : (i64) -> ()
  func.call @printComma() : () -> ()
  %n64 = arith.index_cast %n : index to i64
  func.call @printI64(%n64) : (i64) -> ()
  func.call @printComma() : () -> ()
  func.call @printI64(%p) : (i64) -> ()
  func.call @printComma() : () -> ()
  func.call @print_values(%y) : ({m}) -> ()
  func.call @print_values(%z) : ({m}) -> ()
  memref.dealloc %x : {m}
  memref.dealloc %y : {m}
  memref.dealloc %z : {m}
  func.call @heap_report() : () -> ()
  return
}}
func.func private @under(%poison: i64) {{
  {functions}
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %trips = arith.constant {len(TRIPS)} : index
  %two = arith.constant 2 : index
  scf.for %n = %zero to %trips step %one {{
    scf.for %q = %zero to %two step %one {{
      %p = arith.index_cast %q : index to i64
      {runs}
    }}
  }}
  return
}}
func.func @main() {{
  {constants}
  {mains}
  return
}}
"""
