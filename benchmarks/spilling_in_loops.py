"""Counts bytes that move if a program with loops does not fit the fast memory.

    python benchmarks/spilling_in_loops.py tests/models/*.mlir

Compares plan-spill with its own choice of buffers, with CP-SAT's, and with Belady's
rule; and ExecuTorch's `banked_greedy`, which chooses one memory for a buffer's whole
lifetime. Each executed copy, and each read or write of a buffer in the slow memory,
counts the bytes that it accesses: those of a view. The bytes in a loop count once per
iteration, or ten times if the number of iterations is unknown. A bold number equals
CP-SAT's.

Only copies access the slow memory. The capacity is half of the arena, or more if
plan-spill finds no plan for that.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast
from unittest.mock import patch

from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser

import tensorplan
from tensorplan.analysis.allocations import find_allocations
from tensorplan.analysis.control_flow import ControlFlow
from tensorplan.analysis.cost import repetitions
from tensorplan.analysis.sizes import argument_bytes
from tensorplan.dialects.diagnostics import LocatedError, held_back
from tensorplan.dialects.memory import effects_on
from tensorplan.dialects.target_memory import TARGET
from tensorplan.dialects.tgraph.base import AnyMemRef, element_bytes
from tensorplan.passes import driver
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.plan.placement.arena import Arena
from tensorplan.passes.plan.spill import PlanSpill
from tensorplan.planning.baselines.spilling import banked_greedy, furthest_next_use
from tensorplan.planning.scheduling.residency import (
    Residency,
    ResidencyProblem,
)

SLOW = '"slow"'
SHARES = 0.5, 0.6, 0.7, 0.8, 0.9


class Accesses(NamedTuple):
    """The accesses to an allocation in a run of a function."""

    space: Attribute
    steps: Sequence[int]  # the steps of the function that access it
    executed: int  # the number of executed reads and writes
    bytes: int  # that these read and write


def accesses(func: FuncOp) -> dict[Operation, Accesses]:
    """The accesses to each allocation."""
    flow = ControlFlow(func)
    found: dict[Operation, Accesses] = {}
    for allocation in find_allocations(func, flow, remarks=False):
        effects: dict[tuple[int, SSAValue], tuple[bool, bool]] = {}
        for op, view in allocation.accesses:
            step, _ = flow.step_of(op)
            before = effects.get((step, view), (False, False))
            reads, writes = (
                a or b for a, b in zip(before, effects_on(op, view), strict=True)
            )
            effects[step, view] = reads, writes
        executed = [
            (sum(e) * repetitions(flow.ops[step]), view)
            for (step, view), e in effects.items()
        ]
        moved = sum(count * bytes_of(view) for count, view in executed)
        space = allocation.alloc.memref.type.memory_space
        steps = sorted({step for step, _ in effects})
        count = sum(count for count, _ in executed)
        found[allocation.alloc] = Accesses(space, steps, count, moved)
    return found


def bytes_of(view: SSAValue) -> int:
    type = cast(AnyMemRef, view.type)
    return type.element_count() * element_bytes(type.element_type)


def banked(func: FuncOp, arena: Arena, capacity: int) -> int:
    """The bytes that ExecuTorch's rule moves: it chooses one memory for each buffer."""
    of = accesses(func)
    slots = [arena.pool.slots[index].allocations for index in arena.members]
    buffers = [arena.pool.buffers[index] for index in arena.members]
    found = [[of[a.alloc] for a in allocations] for allocations in slots]
    staged = [[step for each in slot for step in each.steps] for slot in found]
    banks = banked_greedy(buffers, [capacity], staged)
    return sum(
        bank * sum(each.bytes for each in slot)
        for slot, bank in zip(found, banks, strict=True)
    )


class Row(NamedTuple):
    share: float  # capacity / bytes of the arena
    ours: int
    exact: int | None  # None if it does not fit
    furthest: int | None
    banked: int

    def __str__(self) -> str:
        ours, *others = (
            "does not fit" if moved is None else f"{moved:,}" for moved in self[1:]
        )
        ours = f"**{ours}**" if self.ours == self.exact else ours
        return " | ".join((f"{self.share:.0%}", ours, *others))


def lowered(source: Path) -> ModuleOp:
    """The program on memrefs, as plan-spill receives it."""
    module = tensorplan.read(source)
    passes = PlanPipeline().passes()
    end = next(n for n, p in enumerate(passes) if isinstance(p, PlanSpill))
    driver.run(tensorplan.context(), module, passes[:end])
    return module


def is_allocation(op: Operation) -> bool:
    return isinstance(op, memref.AllocOp)


def function(module: ModuleOp) -> FuncOp:
    """The function with the most allocations."""
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    return max(functions, key=lambda f: sum(map(is_allocation, f.walk())))


def on_target(module: ModuleOp, space: Attribute, capacity: int) -> ModuleOp:
    """The program with a target: a memory of `capacity` bytes, and a larger one."""
    text = f"""module attributes {{
      {TARGET} = #dlti.target_system_spec<
        "fast" = #dlti.target_device_spec<"capacity" = {capacity}, "space" = {space},
          "copies" = #dlti.map<"slow" = #dlti.map<"bandwidth" = 1>>>,
        "slow" = #dlti.target_device_spec<"capacity" = {1 << 40},
          "readers" = ["memref.copy"], "writers" = ["memref.copy"],
          "copies" = #dlti.map<"fast" = #dlti.map<"bandwidth" = 1>>>>}} {{}}"""
    target = Parser(tensorplan.context(), text).parse_module()
    found = module.clone()
    found.attributes[TARGET] = target.attributes[TARGET]
    return found


def arena_of(module: ModuleOp) -> Arena:
    """The largest arena."""
    arenas = PlanMemory(reuse_outputs=False).arenas(function(module))
    return max(arenas, key=lambda arena: arena.plan.peak)


def spilled(
    module: ModuleOp, capacity: int, exact: bool = False
) -> Sequence[Accesses] | None:
    """The accesses to the slow memory if the arena has at most `capacity` bytes; None
    if there is no such plan."""
    space = arena_of(module).space
    given, _ = argument_bytes(function(module), space, {})
    found = on_target(module, space, given + capacity)
    context = tensorplan.context()
    try:
        with held_back():
            driver.run(context, found, [PlanSpill(exact=exact, reuse_outputs=False)])
            driver.run(context, found.clone(), [PlanMemory(reuse_outputs=False)])
    except LocatedError:
        return None
    made = accesses(function(found)).values()
    return [each for each in made if str(each.space) == SLOW]


def moved(slow: Sequence[Accesses] | None) -> int | None:
    """The bytes that move; None if there is no plan."""
    return None if slow is None else sum(each.bytes for each in slow)


def by_furthest_next_use(problem: ResidencyProblem) -> Residency:
    choice = furthest_next_use(problem)
    return Residency(choice.gaps, choice.cost, 0, choice.fits)


def compared(module: ModuleOp) -> Row | None:
    arena = arena_of(module)
    for share in SHARES:
        capacity = int(arena.plan.peak * share)
        ours = moved(spilled(module, capacity))
        if ours is None:
            continue
        exact = moved(spilled(module, capacity, exact=True))
        with patch("tensorplan.passes.plan.spill.cheapest", by_furthest_next_use):
            furthest = moved(spilled(module, capacity))
        whole = banked(function(module), arena, capacity)
        return Row(share, ours, exact, furthest, whole)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("programs", nargs="+", type=Path, metavar="PROGRAM")
    print("| program | capacity | ours | CP-SAT | Belady | banked_greedy |")
    print("| --- | --: | --: | --: | --: | --: |")
    for source in parser.parse_args().programs:
        if row := compared(lowered(source)):
            print(f"| {source.name.partition('.')[0]} | {row} |", flush=True)


if __name__ == "__main__":
    main()
