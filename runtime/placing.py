"""Binds arguments to addresses that a caller gives, in one native call.

Such a caller needs no `ndarray` for each buffer, and has results computed directly into
its own memory. The places that hold an argument's address are known
(program/relocation.py), and native code writes the new addresses there. If calls have
to be rebuilt when an argument moves, arrays are bound as in other calls.
"""

import ctypes
from array import array
from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..planning.on_demand import Span, best_cuts
from ..support.arrays import Array
from ..support.slots import Result, Slot
from .backends.jit import llvm
from .backends.jit.records import FOLLOW, triples
from .program.program import Program
from .program.relocation import Point
from .program.stages import Stage, stages, uses
from .program.steps import Arena, MemoryBlock, View

PLACE = f"""{FOLLOW}define i32 @{{name}}(ptr %words, ptr %starts) {{
entry:
  %count = load i64, ptr %words
  %arguments = getelementptr i64, ptr %words, i64 1
  br label %place
place:
  %j = phi i64 [0, %entry], [%nextj, %bound]
  %morej = icmp slt i64 %j, %count
  br i1 %morej, label %take, label %yes
take:
  %startat = getelementptr i64, ptr %starts, i64 %j
  %address = load i64, ptr %startat
  %targetsat = getelementptr [3 x i64], ptr %arguments, i64 %j
  %lastat = getelementptr i64, ptr %targetsat, i64 2
  %last = load i64, ptr %lastat
  %same = icmp eq i64 %last, %address
  br i1 %same, label %bound, label %moved
moved:
  store i64 %address, ptr %lastat
  %targets = load i64, ptr %targetsat
  %triplesat = getelementptr i64, ptr %targetsat, i64 1
  %triples = load ptr, ptr %triplesat
  %failed = call i32 @{{name}}_follow(ptr %triples, i64 %targets, i64 %address)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %bound, label %no
bound:
  %nextj = add i64 %j, 1
  br label %place
yes:
  ret i32 0
no:
  ret i32 1
}}"""
"""The words: the number of arguments, and for each the number of its targets, their
address, and the argument's last address. Returns 0 if all arguments are placed, else 1.
"""


class Placing:
    """Binds a stage's arguments to addresses, until the steps are made anew."""

    def __init__(
        self,
        program: Program,
        slots: Sequence[tuple[MemoryBlock | View, Slot]],
        arenas: Sequence[Arena] = (),
    ):
        """`slots` has, in order, the arguments that addresses are given for. A view is
        a result in a pool, which is copied to its address after the run. The addresses
        of `arenas` follow."""
        self.count = len(slots) + len(arenas)
        self._arguments = [
            (n, memory, slot)
            for n, (memory, slot) in enumerate(slots)
            if isinstance(memory, MemoryBlock)
        ]
        self._copied = [
            (n, view, slot)
            for n, (view, slot) in enumerate(slots)
            if isinstance(view, View)
        ]
        self._place: _Native | None = None
        points = [
            program.points(memory) if isinstance(memory, MemoryBlock) else ()
            for memory, _ in slots
        ]
        points += map(program.points_in, arenas)
        if None not in points and llvm.is_available():
            self._place = _Native([each or () for each in points])

    def __call__(self, starts: Sequence[int]) -> Mapping[MemoryBlock, Array]:
        """Places the arguments at `starts`. Returns arrays for the arguments that the
        caller has to bind: none if native code has placed them all."""
        if self._place is not None:
            self._place(starts)
            return {}
        return {
            memory: _array_at(starts[n], slot) for n, memory, slot in self._arguments
        }

    def copy_out(self, starts: Sequence[int]) -> None:
        """Copies results in pools to their addresses."""
        for n, view, slot in self._copied:
            _array_at(starts[n], slot)[...] = view.array()


class StagedPlacing:
    """Binds the arguments of a program to addresses, stage by stage."""

    def __init__(
        self, program: Program, inputs: Sequence[Slot], results: Sequence[Result]
    ):
        self._program, self._inputs, self._results = program, inputs, results
        self._own_results = [n for n, r in enumerate(results) if r.input is None]
        """The indices of results that are not variables."""
        self.cuts: Sequence[int] = ()
        """The first step of each stage but the first."""
        self._placings: Sequence[Placing] = ()

    @property
    def stage_count(self) -> int:
        return len(self.cuts) + 1

    def best_cuts(self, released: Collection[int]) -> Sequence[int]:
        """The `cuts` that use the least memory. Inputs in `released` need no memory
        after their last use."""
        program, used = self._program, uses(self._program)
        spans = [
            Span(*x.steps, x.size) for x in self._arenas if x.steps[0] < x.steps[1]
        ]
        for memory in (program.inputs[n] for n in released):
            if memory in used:
                spans.append(Span(0, used[memory].last + 1, memory.bytes.size))
        for memory in (program.results[n] for n in self._own_results):
            if isinstance(memory, MemoryBlock) and memory in used:
                end = len(program.steps)
                spans.append(Span(used[memory].first, end, memory.bytes.size))
        return best_cuts(spans)

    def stages(self, given: Sequence[int]) -> Sequence[Stage]:
        """The stages, if calls give addresses of the inputs `given`."""
        own = self._own_results
        return stages(self._program, given, own, self._arenas, self.cuts)

    @property
    def _arenas(self) -> Sequence[Arena]:
        """The arenas that the caller provides."""
        return self._program.moving_arenas

    def of_stage(self, number: int, given: Sequence[int]) -> Placing:
        """The placing of stage `number`, for calls as in `stages`, until `reset`."""
        if not self._placings:
            self._placings = [self._made(stage) for stage in self.stages(given)]
        return self._placings[number]

    def _made(self, stage: Stage) -> Placing:
        program, arenas = self._program, self._arenas
        slots: list[tuple[MemoryBlock | View, Slot]] = [
            *((program.inputs[n], self._inputs[n]) for n in stage.inputs),
            *((program.results[n], self._results[n]) for n in stage.results),
        ]
        return Placing(program, slots, [arenas[n] for n in stage.arenas])

    def copy_out(self, starts: Sequence[int]) -> None:
        """Copies results in pools to their addresses in the last stage."""
        if self._placings:
            self._placings[-1].copy_out(starts)

    def reset(self) -> None:
        """Forgets the placings, because the calls are about to be made anew."""
        self._placings = ()


class _Native:
    """Writes addresses to all places that hold the address of an argument."""

    def __init__(self, arguments: Sequence[Sequence[Point]]):
        self._kept: list[Any] = []
        words = [len(arguments)]
        for points in arguments:
            numbers = triples(points)
            listed = (ctypes.c_int64 * len(numbers))(*numbers)
            self._kept.append(listed)
            words += [len(points), ctypes.addressof(listed), 0]
        self._words = (ctypes.c_int64 * len(words))(*words)
        self._at = ctypes.addressof(self._words)
        code = llvm.compiler().function(PLACE).address
        of_pointers = ctypes.c_void_p, ctypes.c_void_p
        self._function = ctypes.PYFUNCTYPE(ctypes.c_int, *of_pointers)(code)

    def __call__(self, starts: Sequence[int]) -> None:
        """Raises `RuntimeError` if oneDNN fails."""
        words = array("q", starts)
        if self._function(self._at, words.buffer_info()[0]):
            raise RuntimeError("native code (oneDNN) rejected an address")


def _array_at(start: int, slot: Slot) -> Array:
    """An array at the address `start`, in memory that the caller keeps alive."""
    size = slot.dtype.itemsize * prod(slot.shape)
    if size == 0:
        return np.ndarray(slot.shape, slot.dtype)
    memory = memoryview((ctypes.c_char * size).from_address(start))
    return np.ndarray(slot.shape, slot.dtype, memory)
