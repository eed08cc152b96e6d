"""Tests streams and devices in threads: equal values for any timing, and no deadlocks.

The reference is the same planned program in one thread, which other tests compare with
the interpreter.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from executables import run
from hypothesis import given
from hypothesis import strategies as st
from programs import Program, programs
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import tensorplan
from tensorplan.dialects.dtypes import Array
from tensorplan.runtime.calls import Call
from tensorplan.runtime.devices.local import Concurrent, Serial
from tensorplan.runtime.devices.order import queue_of, waits
from tensorplan.runtime.executor import Executable
from tensorplan.runtime.program.steps import MemoryBlock, MemoryRange, Step, View

TWO_DEVICES = Path(__file__).parents[1] / "examples" / "mlp_train_two_devices.mlir"
RUNS = 200

BRANCHES = """
!t = tensor<{n}x{n}xf32>
func.func @main(%x: !t, %v: !tgraph.variable<!t>) -> !t {{
  %w = tgraph.read %v : !t
  {branches}
  tgraph.assign %v, %last : !t
  func.return %sum : !t
}}
"""
DOT = (
    "%{} = tgraph.dot_general %{}, %w {{lhs_contracting_dimensions = array<i64: 1>, "
    "rhs_contracting_dimensions = array<i64: 0>}} : (!t, !t) -> !t"
)
UNARY = ["tanh", "negate", "abs", "sign"]


def branches(size: int, count: int = 4, depth: int = 3) -> ModuleOp:
    """A program of different chains of matrix products that are added at the end."""
    lines: list[str] = []
    for branch in range(count):
        before = "x"
        for step in range(depth):
            name = f"b{branch}_{step}"
            lines.append(f"%{name}u = tgraph.{UNARY[branch]} %{before} : !t")
            lines.append(DOT.format(name, f"{name}u"))
            before = name
    ends = [f"b{branch}_{depth - 1}" for branch in range(count)]
    total = ends[0]
    for number, end in enumerate(ends[1:]):
        lines.append(f"%s{number} = tgraph.add %{total}, %{end} : !t")
        total = f"s{number}"
    lines.append(f"%last = tgraph.multiply %{total}, %{ends[0]} : !t")
    lines.append(f"%sum = tgraph.add %{total}, %x : !t")
    text = BRANCHES.format(n=size, branches="\n  ".join(lines))
    return tensorplan.from_stablehlo(text).module


def is_same(x: Sequence[Array], y: Sequence[Array]) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(x, y, strict=True))


def delay(executable: Executable, random: Random) -> None:
    """Makes each step pause at random before and after its calls."""

    def pause() -> None:
        if random.random() < 0.15:
            time.sleep(random.random() * 1e-4)

    executable.surround(lambda _, calls: [(pause, ()), *calls, (pause, ())])


@pytest.mark.thorough
@pytest.mark.parametrize("program", ["branches", "two devices"])
@pytest.mark.parametrize("streams", [1, 2, 4])
@pytest.mark.parametrize("concurrent", [False, True])
def test_values_do_not_depend_on_timing(
    program: str, streams: int, concurrent: bool
) -> None:
    if program == "branches":
        module = branches(8)
    else:
        module = tensorplan.from_stablehlo(TWO_DEVICES).module
    want = run(Executable(tensorplan.plan(module)), RUNS)
    planned = tensorplan.plan(module, streams=streams)
    executable = Executable(planned, threads=2, concurrent=concurrent)
    delay(executable, Random(streams))
    assert is_same(run(executable, RUNS), want)


IN_PROGRAM_ORDER = """
!host = memref<4xf32, "cpu:0">
!device = memref<4xf32, "cpu:1">
!arena = memref<64xi8, "cpu:0">
func.func @main(%x: !host, %r: !device {tgraph.result = 0 : i32},
                %s: !host {tgraph.result = 1 : i32}) {
  %arena = memref.alloc() {alignment = 64 : i64} : !arena
  %offset = arith.constant 0 : index
  %a = memref.view %arena[%offset][] : !arena to !host
  %b = memref.view %arena[%offset][] : !arena to !host
  tgraph.tanh %x outs(%a) : !host
  "memref.copy"(%a, %r) : (!host, !device) -> ()
  tgraph.negate %x outs(%b) : !host
  tgraph.tanh %b outs(%s) : !host
  memref.dealloc %arena : !arena
  func.return
}
"""


def test_queues_of_a_plan_in_program_order() -> None:
    """The copy to cpu:1 reads %a, whose bytes cpu:0 then uses for %b."""
    module = Parser(tensorplan.context(), IN_PROGRAM_ORDER).parse_module()
    executable = Executable(module, threads=2, concurrent=True)
    assert waits(executable._program.steps) == [[], [0], [1], []]

    def pause(step: Step, calls: list[Call]) -> list[Call]:
        return [(time.sleep, (0.02,)), *calls] if step.device == "cpu:1" else calls

    executable.surround(pause)
    assert is_same(run(executable), run(Executable(module)))


@pytest.mark.thorough
@given(programs(), st.sampled_from([2, 4]), st.integers(0, 2**32))
def test_random_programs(program: Program, streams: int, seed: int) -> None:
    planned = tensorplan.plan(program.module, streams=streams)
    want = run(Executable(planned, native=False), 2)
    executable = Executable(planned, threads=2, concurrent=True, native=False)
    delay(executable, Random(seed))
    try:
        assert is_same(run(executable, 2), want)
    finally:
        executable.close()


# The order of steps.


def step(queue: int, reads: Sequence[View] = (), writes: Sequence[View] = ()) -> Step:
    return Step(list, device=f"cpu:{queue}", reads=reads, writes=writes)


def view(memory: MemoryBlock, start: int, stop: int) -> View:
    buffer = MemoryRange(memory, start, stop - start)
    return View(buffer, np.dtype(np.uint8), (stop - start,), 0, (1,))


def test_waits_of_the_documented_example() -> None:
    memory = MemoryBlock(np.empty(64, np.uint8), "", "cpu:0")
    whole, half = view(memory, 0, 64), view(memory, 0, 32)
    steps = [step(0, [], [whole]), step(1, [whole]), step(1, [half])]
    assert waits([*steps, step(0, [], [whole])]) == [[], [0], [], [2]]


def test_disjoint_parts_and_constants_need_no_waits() -> None:
    memory = MemoryBlock(np.empty(64, np.uint8), "", "cpu:0")
    constant = view(MemoryBlock(np.empty(8, np.uint8), ""), 0, 8)
    low, high, none = (view(memory, *at) for at in ((0, 32), (32, 64), (8, 8)))
    steps = [step(0, [], [low]), step(1, [constant], [high]), step(2, [constant, none])]
    assert waits(steps) == [[], [], []]


def test_view_covers_the_reach_of_its_strides() -> None:
    memory = MemoryBlock(np.empty(64, np.uint8), "", "cpu:0")
    buffer = MemoryRange(memory, 16, 48)
    backwards = View(buffer, np.dtype(np.uint8), (2, 4), 8, (16, -2))  # bytes 18 to 41
    steps = [step(n, [], [view(memory, n, n + 1)]) for n in (17, 18, 40, 41)]
    assert waits([*steps, step(0, [backwards])])[-1] == [2, 1]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=2),
            st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=1),
        ),
        max_size=12,
    )
)
def test_waits_are_sufficient_and_necessary(
    drawn: list[tuple[int, list[tuple[int, int]], list[tuple[int, int]]]],
) -> None:
    memory = MemoryBlock(np.empty(9, np.uint8), "", "cpu:0")
    steps = [
        step(queue, *([view(memory, *sorted(s)) for s in x] for x in (reads, writes)))
        for queue, reads, writes in drawn
    ]
    found = waits(steps)
    over = reached(steps, found)
    for later, _ in enumerate(steps):
        for earlier in range(later):
            if conflict(steps[earlier], steps[later]):
                assert earlier in over[later]
        for left_out in found[later]:
            fewer = [list(w) for w in found]
            fewer[later].remove(left_out)
            assert left_out not in reached(steps, fewer)[later]


@given(programs(max_ops=30), st.sampled_from([2, 4]))
def test_sharing_bytes_between_streams_adds_no_waits(
    program: Program, streams: int
) -> None:
    planned = tensorplan.plan(program.module, streams=streams)
    steps = Executable(planned, native=False)._program.steps
    apart: dict[MemoryRange, MemoryBlock] = {}

    def moved(view: View) -> View:
        """The view, in a separate memory for each buffer."""
        buffer = view.buffer
        memory = apart.setdefault(buffer, copy(buffer.memory))
        return replace(view, buffer=replace(buffer, memory=memory))

    spread = [
        replace(s, reads=[*map(moved, s.reads)], writes=[*map(moved, s.writes)])
        for s in steps
    ]
    assert reached(steps, waits(steps)) == reached(spread, waits(spread))


def conflict(x: Step, y: Step) -> bool:
    def touch(a: Sequence[View], b: Sequence[View]) -> bool:
        return any(
            max(v.buffer.start, w.buffer.start) < min(v.buffer.stop, w.buffer.stop)
            for v in a
            for w in b
        )

    return touch(x.writes, [*y.reads, *y.writes]) or touch(x.reads, y.writes)


def reached(steps: Sequence[Step], found: Sequence[Sequence[int]]) -> list[set[int]]:
    """For each step, the steps that certainly end before it starts."""
    before: list[set[int]] = []
    for number, each in enumerate(steps):
        own = {n for n in range(number) if queue_of(steps[n]) == queue_of(each)}
        direct = own | {*found[number]}
        before.append(direct.union(*(before[n] for n in direct)))
    return before


# Threads.


def test_streams_run_concurrently_in_shared_threads() -> None:
    planned = tensorplan.plan(branches(8), streams=4)
    executable = Executable(planned, threads=2, concurrent=True)
    meeting = threading.Barrier(2, timeout=20)
    names: set[str] = set()
    seen: set[int] = set()

    def note(step: Step, calls: list[Call]) -> list[Call]:
        def begin() -> None:
            if step.stream < 2 and step.stream not in seen:  # independent streams
                seen.add(step.stream)
                meeting.wait()
            names.add(threading.current_thread().name)

        return [(begin, ()), *calls]

    executable.surround(note)
    run(executable, 3)
    assert names == {"tensorplan 0", "tensorplan 1"}


def test_error_reaches_the_caller_and_the_next_run_is_correct() -> None:
    planned = tensorplan.plan(branches(8), streams=2)
    want = run(Executable(planned))
    executable = Executable(planned, threads=2, concurrent=True)
    numbers = {step: number for number, step in enumerate(executable._program.steps)}
    bad: list[int] = []

    def check(number: int) -> None:
        if number in bad:
            raise ArithmeticError(f"in step {number}")

    executable.surround(lambda step, calls: [(check, (numbers[step],)), *calls])
    for number in range(0, len(numbers), 5):
        bad.append(number)
        with pytest.raises(ArithmeticError, match=f"in step {number}"):
            run(executable)
        bad.clear()
        assert is_same(run(executable), want)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_interrupt_ends_the_run() -> None:
    """Runs in its own process, since libraries that other tests load do not tolerate a
    signal."""
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, __file__], env=found, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def interrupted() -> None:
    planned = tensorplan.plan(branches(8), streams=2)
    want = run(Executable(planned))
    executable = Executable(planned, threads=2, concurrent=True)
    main = threading.main_thread().ident
    assert main is not None
    count = 0

    def interrupt() -> None:
        nonlocal count
        count += 1
        if count == 3:
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.05)

    executable.surround(lambda _, calls: [(interrupt, ()), *calls])
    with pytest.raises(KeyboardInterrupt):
        run(executable)
    assert is_same(run(executable), want)


def test_programs_share_threads() -> None:
    planned = tensorplan.plan(branches(8), streams=4)
    programs = [Executable(planned, threads=2, concurrent=True) for _ in range(4)]
    want = run(programs[0])
    before = threading.active_count()
    for program in programs:
        assert is_same(run(program), want)
        program.close()
        assert is_same(run(program), want)
    assert threading.active_count() == before


def test_new_arrays_in_each_call() -> None:
    executable = Executable(
        tensorplan.plan(branches(8), streams=2), threads=2, concurrent=True
    )
    want = run(executable)
    assert is_same(run(executable), want)  # new arrays with the same contents


def test_streams_are_serial_by_default() -> None:
    planned = tensorplan.plan(branches(8), streams=2)
    assert type(Executable(planned, threads=2)._runner) is Serial
    assert type(Executable(planned, concurrent=True)._runner) is Concurrent


def test_sanitized_run_is_serial() -> None:
    planned = tensorplan.plan(branches(8), streams=2)
    assert type(Executable(planned, sanitize=True)._runner) is Serial
    with pytest.raises(ValueError, match="cannot be combined with concurrent"):
        Executable(planned, sanitize=True, concurrent=True)


if __name__ == "__main__":
    interrupted()
