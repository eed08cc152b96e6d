"""Counts bytes that move between memories if a program does not fit the fast one.

    python benchmarks/spilling.py tests/models/*.mlir tests/models/onnx/*.onnx *.csv
    python benchmarks/spilling.py unet_step bert_step    # names as in models.py

Compares four rules for each program and target: tensorplan's, ExecuTorch's
`banked_greedy`, Belady's, and Belady's for whole lifetimes (tt-mlir). As programs
differ in size, a capacity is a part of the program's peak: half for a microcontroller,
a fourth for an NPU, and for a cluster a fourth in L1 and half in L2. It is larger if a
single operation needs more. Operations of the microcontroller and the NPU access the
slow memory directly; the cluster copies.

A cell is `ours, banked_greedy, Belady, tt-mlir`. A bold number is proved to be minimal:
by CP-SAT up to 200 steps, and by dual prices above; there is no proof for the cluster.

Each read, write, or copy of a value in slow memory counts the bytes of the value. For
tensorplan, the values in fast memory have offsets within the capacity; `*` marks a
choice without such a placement. The choices of the other rules are not placed and may
not fit. Programs are fused and scheduled, but neither tiled nor rematerialized. Each
buffer of a CSV file has one write and one read. Arguments and results do not count.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.analysis.functions import tensor_functions
from tensorplan.analysis.memory_graph import memory_graph
from tensorplan.passes import driver
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.tgraph.tile import TGraphTile
from tensorplan.planning import Buffer, Limits, Problem, csv_format, solve
from tensorplan.planning.baselines.spilling import banked_greedy, furthest_next_use
from tensorplan.planning.scheduling.exact_residency import proved
from tensorplan.planning.scheduling.residency import (
    Choice,
    Gap,
    ResidencyProblem,
    cheapest,
)

EXACT = 200
"""The most steps of a program for which CP-SAT proves an optimum."""


class Value(NamedTuple):
    size: int  # bytes
    uses: Sequence[int]  # steps, ascending: a write in the first, then reads


@dataclass(frozen=True)
class Program:
    name: str
    steps: int
    values: Sequence[Value]

    @property
    def live(self) -> Sequence[int]:
        live = [0] * self.steps
        for value in self.values:
            for step in range(value.uses[0], value.uses[-1] + 1):
                live[step] += value.size
        return live

    def problem(self, capacity: int, direct: bool) -> ResidencyProblem:
        sizes = [value.size for value in self.values]
        gaps = [
            Gap(index, start + 1, end, value.size, index, (direct, direct))
            for index, value in enumerate(self.values)
            for start, end in pairwise(value.uses)
            if direct or end > start + 1
        ]
        problem = ResidencyProblem(self.live, capacity, sizes, sizes, gaps)
        return replace(problem, capacity=max(capacity, problem.lowest))


class Target(NamedTuple):
    name: str
    shares: Sequence[float]  # capacities / peak, fastest memory first
    direct: bool  # whether operations may access the next memory


TARGETS = (
    Target("microcontroller", (0.5,), True),
    Target("NPU", (0.25,), True),
    Target("cluster", (0.25, 0.5), False),
)


class Row(NamedTuple):
    """The bytes that each rule moves."""

    ours: int
    banked: int
    furthest: int
    demoted: int
    bound: int | None  # a lower bound; None if unknown
    fits: bool  # whether `ours` has offsets within all capacities

    def __str__(self) -> str:
        ours = f"{self.ours:,}" if self.ours != self.bound else f"**{self.ours:,}**"
        others = self.banked, self.furthest, self.demoted
        if not any(others) and not self.ours:
            return "0"
        return f"{ours}{'' if self.fits else '*'}, " + ", ".join(
            f"{other:,}" for other in others
        )


Chooser = Callable[[Program, ResidencyProblem], Choice]


def moved(program: Program, target: Target) -> Row:
    peak = max(program.live)
    limits = [int(peak * share) for share in target.shares]
    fits: list[bool] = []

    def ours(program: Program, problem: ResidencyProblem) -> Choice:
        choice, is_placed = placed(program, problem)
        fits.append(is_placed)
        return choice

    cost = through(program, limits, target.direct, ours)
    rules = [
        through(
            *(program, limits, target.direct),
            lambda _, problem, all=all: furthest_next_use(problem, all),
        )
        for all in (False, True)
    ]
    problem = program.problem(limits[0], target.direct)
    prove = proved if program.steps <= EXACT else cheapest
    bound = prove(problem).bound if len(limits) == 1 else None
    capacities = [max(limit, problem.capacity) for limit in limits]
    banked = banked_bytes(program, capacities, target.direct)
    furthest, demoted = rules
    return Row(cost, banked, furthest, demoted, bound, all(fits))


def through(
    program: Program, limits: Sequence[int], direct: bool, choose: Chooser
) -> int:
    """The bytes that move between all memories. Values that do not fit one memory are
    in the next."""
    if not limits or not program.values:
        return 0
    problem = program.problem(limits[0], direct)
    choice = choose(program, problem)
    outside = elsewhere(program, problem, choice)
    return choice.cost + through(outside, limits[1:], True, choose)


def elsewhere(program: Program, problem: ResidencyProblem, choice: Choice) -> Program:
    """The values in the next memory, each from its copy out to its last read there."""
    uses: dict[int, list[int]] = {}
    for index in choice.gaps:
        gap = problem.gaps[index]
        uses.setdefault(gap.value, [gap.start - 1]).append(gap.end)
    values = [Value(program.values[v].size, steps) for v, steps in uses.items()]
    return Program(program.name, program.steps, values)


def placed(program: Program, problem: ResidencyProblem) -> tuple[Choice, bool]:
    """The cheapest choice whose remaining values have offsets within the capacity, and
    whether one was found."""
    target = problem.capacity
    choice = Choice(problem)
    for _ in range(8):
        found = cheapest(replace(problem, capacity=target))
        choice = Choice(problem, found.gaps)
        buffers = list(resident(program, problem, choice))
        if not buffers:
            return choice, True
        plan = solve(Problem(buffers, problem.capacity), "auto", Limits(effort=0.02))
        if plan.peak <= problem.capacity:
            return choice, True
        target = max(target - (plan.peak - problem.capacity), problem.lowest)
    return choice, False


def resident(
    program: Program, problem: ResidencyProblem, choice: Choice
) -> Iterator[Buffer]:
    """The buffers in fast memory: one for each stay of a value."""
    away = {(problem.gaps[i].value, problem.gaps[i].end) for i in choice.gaps}
    is_direct = any(any(gap.direct) for gap in problem.gaps)
    for index, value in enumerate(program.values):
        runs = [[value.uses[0]]]
        for step in value.uses[1:]:
            if (index, step) in away:
                runs.append([])
            runs[-1].append(step)
        for run in runs:
            if len(run) > 1 or not is_direct:
                yield Buffer(f"{index}@{run[0]}", value.size, run[0], run[-1] + 1)


def banked_bytes(program: Program, capacities: Sequence[int], direct: bool) -> int:
    buffers = [
        Buffer(str(index), value.size, value.uses[0], value.uses[-1] + 1)
        for index, value in enumerate(program.values)
    ]
    uses = () if direct else [value.uses for value in program.values]
    banks = banked_greedy(buffers, capacities, uses)
    return sum(
        value.size * len(value.uses) * bank
        for value, bank in zip(program.values, banks, strict=True)
    )


def program_of(source: str) -> Program:
    """The program in the file `source`, or the model with that name."""
    path = Path(source)
    name = path.name.removesuffix(".generic.mlir").partition(".")[0]
    if path.suffix == ".csv":
        buffers = csv_format.read(path.read_text()).buffers
        values = [Value(b.size, [b.start, b.end - 1]) for b in buffers]
        return Program(name, max(b.end for b in buffers), values)
    module: ModuleOp
    if path.suffix == ".onnx":
        module, name = tensorplan.from_onnx(path).module, f"{name} (ONNX)"
    elif path.suffix:
        module = tensorplan.read(path)
    else:
        module = from_jax(source)
    passes = PlanPipeline().passes()
    end = next(n for n, p in enumerate(passes) if isinstance(p, TGraphTile))
    driver.run(tensorplan.context(), module, passes[:end])
    (func,) = (f for f, _ in tensor_functions(module) if f.sym_name.data == "main")
    graph = memory_graph(func.body.block, 64).graphs["cpu:0"]
    values: list[Value] = []
    for number, size in enumerate(graph.sizes):
        writer = graph.writer[number]
        if size and writer is not None:
            readers = graph.readers[number] or [writer]  # a loop reads its own value
            values.append(Value(size, [writer, *readers]))
    return Program(name, len(graph.tasks), values)


def from_jax(name: str) -> ModuleOp:
    models: Any = import_module("models").MODELS
    model = models[name]()
    donated = tuple(range(model.state))
    return tensorplan.from_jax(
        model.function, *model.arguments, donate_argnums=donated
    ).module


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    sources = parser.parse_args().programs
    print("| program |", " | ".join(target.name for target in TARGETS), "|")
    print("| ---" * (1 + len(TARGETS)), "|")
    rows: list[Row] = []
    for source in sources:
        program = program_of(source)
        found = [moved(program, target) for target in TARGETS]
        print(f"| {program.name} |", " | ".join(map(str, found)), "|", flush=True)
        rows += found
    bounds = [(row, bound) for row in rows if (bound := row.bound)]
    fewer = [4 * row.ours <= 3 * row.furthest for row in rows if row.furthest]
    possible = [4 * bound <= 3 * row.furthest for row, bound in bounds]
    excess = max(row.ours / bound - 1 for row, bound in bounds)
    print(
        f"{sum(row.ours <= row.banked for row in rows)} of {len(rows)} are at most "
        f"banked_greedy's; {sum(fewer)} of {len(fewer)} at least a fourth less than "
        f"Belady's, possible for {sum(possible)} of {len(possible)} with a bound; at "
        f"most {excess:.1%} above a bound"
    )


if __name__ == "__main__":
    main()
