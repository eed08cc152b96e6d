"""Tests that the work for chains of forwarded buffers grows linearly with length."""

from collections.abc import Callable
from cProfile import Profile

import pytest
from unchanged_ir import parsed

import tensorplan
from tensorplan.passes.plan.memory import PlanMemory

M = "memref<16xf32>"
PART = "memref<16xf32, strided<[1]>>"


def copy(source: str, target: str, type: str = M) -> str:
    return f'"memref.copy"({source}, {target}) : ({type}, {type}) -> ()'


def program(link: Callable[[int], str], count: int, free: str) -> str:
    """Returns a program that computes %v1 from %v0, %v2 from %v1 and so on, from one
    allocation."""
    return f"""func.func @f(%n: index, %c: i1, %x: {M}, %y: {M}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %v0 = memref.alloc() : {M}
  {copy("%x", "%v0")}
  {chr(10).join(map(link, range(1, count + 1)))}
  {copy(f"%v{count}", "%y")}
  memref.dealloc {free.format(count)} : {M}
  func.return
}}"""


def by_loop(k: int) -> str:
    return f"""
  %v{k} = scf.for %i{k} = %zero to %three step %one iter_args(%b{k} = %v{k - 1})
    -> ({M}) {{
    {copy("%x", f"%b{k}")}
    scf.yield %b{k} : {M}
  }}"""


def by_while(k: int) -> str:
    return f"""
  %v{k} = scf.while (%b{k} = %v{k - 1}) : ({M}) -> {M} {{
    scf.condition(%c) %b{k} : {M}
  }} do {{
  ^bb0(%a{k}: {M}):
    {copy("%x", f"%a{k}")}
    scf.yield %a{k} : {M}
  }}"""


def by_branch(k: int) -> str:
    return f"""
  %v{k} = scf.if %c -> ({M}) {{
    {copy("%x", f"%v{k - 1}")}
    scf.yield %v{k - 1} : {M}
  }} else {{
    scf.yield %v{k - 1} : {M}
  }}"""


def by_select(k: int) -> str:
    return f"""
  %v{k} = arith.select %c, %v{k - 1}, %v{k - 1} : {M}
  {copy("%x", f"%v{k}")}"""


def by_view(k: int) -> str:
    before = f"%s{k - 1}" if k > 1 else "%v0"
    return f"""
  %s{k} = memref.subview {before}[0] [16] [1] : {PART if k > 1 else M} to {PART}
  %v{k} = memref.cast %s{k} : {PART} to {M}
  {copy("%x", f"%v{k}")}"""


CHAINS = {
    "loops": (by_loop, "%v{}"),
    "loops of unknown length": (by_while, "%v{}"),
    "branches": (by_branch, "%v{}"),
    "selects": (by_select, "%v{}"),
    "views": (by_view, "%v0"),
}


def calls(text: str) -> int:
    """The number of function calls of plan-memory and plan-check."""
    module, profile = parsed(text), Profile()
    profile.runcall(PlanMemory().apply, tensorplan.context(), module)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize(("link", "free"), CHAINS.values(), ids=CHAINS)
def test_chains_that_forward_one_buffer(link: Callable[[int], str], free: str) -> None:
    calls(program(link, 2, free))  # fills caches
    few, many = (calls(program(link, count, free)) for count in (30, 90))
    assert many < 3.5 * few


def by_replacing(k: int) -> str:
    return f"""
  %v{k} = scf.for %i{k} = %zero to %n step %one iter_args(%b{k} = %v{k - 1})
    -> ({M}) {{
    %w{k} = memref.alloc() : {M}
    {copy(f"%b{k}", f"%w{k}")}
    memref.dealloc %b{k} : {M}
    scf.yield %w{k} : {M}
  }}"""


def test_chains_that_replace_the_buffer() -> None:
    """Each loop may run zero times, so each value can be any earlier buffer."""
    calls(program(by_replacing, 2, "%v{}"))
    few, many = (calls(program(by_replacing, count, "%v{}")) for count in (8, 24))
    assert many < 3**2 * few
