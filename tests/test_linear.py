"""Tests that the work of planning grows linearly with the program."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import tensorplan
from tensorplan.frontends.mlir_text import parse_module
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.planning import Buffer
from tensorplan.planning.output_reuse import reuse

M = "memref<8xf32>"
HEAD = f"(%x: {M}, %y: {M}, %c: i1, %n: index)"


def copy(source: str, target: str) -> str:
    return f'"memref.copy"(%{source}, %{target}) : ({M}, {M}) -> ()\n'


def alloc(name: str) -> str:
    return f"%{name} = memref.alloc() : {M}\n"


def free(name: str) -> str:
    return f"memref.dealloc %{name} : {M}\n"


def function(body: str, name: str = "f") -> str:
    return f"func.func @{name}{HEAD} {{\n{body}func.return\n}}\n"


def replaced_in_loops(count: int) -> str:
    """Consecutive loops, each of which replaces the buffer that it carries."""

    def loop(i: int) -> str:
        return (
            f"{alloc(f'first{i}')}{copy('x', f'first{i}')}"
            f"%last{i} = scf.for %i{i} = %n to %n step %n "
            f"iter_args(%old{i} = %first{i}) -> ({M}) {{\n"
            f"{alloc(f'new{i}')}{copy(f'old{i}', f'new{i}')}{free(f'old{i}')}"
            f"scf.yield %new{i} : {M}\n}}\n{copy(f'last{i}', 'y')}{free(f'last{i}')}"
        )

    return function("".join(map(loop, range(count))))


def replaced_in_loops_of_a_loop(count: int) -> str:
    """Consecutive loops that replace buffers, in the body of another loop."""
    body = replaced_in_loops(count).removeprefix(function("").split("func.return")[0])
    body = body.removesuffix("func.return\n}\n")
    return function(f"scf.for %i = %n to %n step %n {{\n{body}}}\n")


def replaced_in_blocks(count: int) -> str:
    """Blocks, each of which replaces the buffer that its predecessor forwards."""
    start = f"{alloc('a0')}{copy('x', 'a0')}cf.br ^b0(%a0 : {M})\n"
    blocks = "".join(
        f"^b{i}(%b{i}: {M}):\n{alloc(f'a{i + 1}')}{copy(f'b{i}', f'a{i + 1}')}"
        f"{free(f'b{i}')}cf.br ^b{i + 1}(%a{i + 1} : {M})\n"
        for i in range(count)
    )
    end = f"^b{count}(%b{count}: {M}):\n{copy(f'b{count}', 'y')}{free(f'b{count}')}"
    return function(start + blocks + end)


def chosen_in_blocks(count: int) -> str:
    """A chain of branches, whose sides allocate a buffer and forward it to its free."""

    def choice(i: int) -> str:
        sides = "".join(
            f"^{side}{i}:\n{alloc(f'{side}{i}')}{copy('x', f'{side}{i}')}"
            f"cf.br ^join{i}(%{side}{i} : {M})\n"
            for side in ("then", "else")
        )
        return (
            f"^start{i}:\ncf.cond_br %c, ^then{i}, ^else{i}\n{sides}"
            f"^join{i}(%r{i}: {M}):\n{copy(f'r{i}', 'y')}{free(f'r{i}')}"
            f"cf.br ^start{i + 1}\n"
        )

    blocks = "".join(map(choice, range(count)))
    return function(f"cf.br ^start0\n{blocks}^start{count}:\n")


def calls_in_a_row(count: int) -> str:
    """A chain of functions, each of which passes a local buffer to the next."""

    def of(i: int) -> str:
        types = f"({M}, {M}, i1, index) -> ()"
        call = f"func.call @f{i + 1}(%a, %y, %c, %n) : {types}\n"
        last = copy("a", "y")
        body = alloc("a") + copy("x", "a") + (call if i + 1 < count else last)
        return function(body + free("a"), f"f{i}")

    return "".join(map(of, range(count)))


def many_functions(count: int) -> str:
    body = alloc("a") + copy("x", "a") + copy("a", "y") + free("a")
    return "".join(function(body, f"f{i}") for i in range(count))


PROGRAMS = (
    replaced_in_loops,
    replaced_in_loops_of_a_loop,
    replaced_in_blocks,
    chosen_in_blocks,
    calls_in_a_row,
    many_functions,
)


def lines_run(work: Callable[[], object]) -> int:
    """The number of lines of tensorplan that `work` executes."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
        name = frame.f_globals.get("__name__", "")
        return trace if name.startswith("tensorplan.") else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_twice_the_program_is_twice_the_work(program: Callable[[int], str]) -> None:
    def lines(count: int) -> int:
        module = parse_module(program(count), "test.mlir", tensorplan.context())
        return lines_run(lambda: PlanMemory().apply(tensorplan.context(), module))

    lines(2)  # fills caches
    assert lines(40) < 2.1 * lines(20)


@pytest.mark.parametrize("size", [64, 4096])
def test_twice_the_chain_into_a_result_is_twice_the_work(size: int) -> None:
    """Another value lives until the result is written. The larger result has room for
    it."""

    def lines(count: int) -> int:
        values = [Buffer(str(i), 64, i, i + 2) for i in range(count)]
        values.append(Buffer("kept", 64, 0, count))
        result = Buffer("result", size, count, count + 1)
        return lines_run(lambda: reuse(values, [result]))

    assert lines(800) < 2.3 * lines(400)  # n log n
