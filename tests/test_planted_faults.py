"""Tests that `plan-check` and sanitized runs detect faults planted into the planner.

Each fault makes `plan-memory` assume something wrong about buffers. On random programs,
`plan-check` must refuse at least one plan, and so must a sanitized run of unchecked
plans. Plans that neither refuses must compute the reference interpreter's values.
Without a fault, neither refuses anything.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from modules import parse, run
from programs import Program, programs
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue, Use

from tensorplan.analysis import allocations, liveness, overwriting
from tensorplan.checking import (
    accesses,
    caller_pools,
    happens_before,
    ownership,
    plan_check,
    pointees,
)
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.memory import destinations
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.passes.plan import memory as plan_memory
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.passes.plan.placement import arena, output_reuse
from tensorplan.planning import Buffer
from tensorplan.planning import output_reuse as planning_output_reuse
from tensorplan.runtime.executor import Executable, PlanViolation

Patch = pytest.MonkeyPatch
FOUND_BY_CHECK, FOUND_BY_RUN, UNNOTICED, WRONG = "check", "run", "unnoticed", "wrong"


def arguments_of(module: ModuleOp) -> list[np.ndarray]:
    return [
        np.arange(1, 1 + int(np.prod(i.shape)), dtype=i.dtype).reshape(i.shape)
        for i in signature(module).inputs
    ]


@cache
def expected(module: ModuleOp) -> Sequence[np.ndarray]:
    """The values of the reference interpreter."""
    return run_reference(module, arguments_of(module))


def judge(module: ModuleOp, before: ModuleOp, check: bool, reuse_outputs: bool) -> str:
    """The verdict on a program's plan: which check detects that the plan is wrong, if
    any. `before` is the program before `plan-memory`."""
    *_, memory = PlanPipeline(reuse_outputs=reuse_outputs).passes()
    assert isinstance(memory, PlanMemory)
    with Patch.context() as patch:
        if not check:  # skip the check, to see whether the run detects the fault
            patch.setattr(plan_memory, "check_plan", lambda module, **_: None)
        try:
            planned = run(before, memory)
        except LocatedError:
            return FOUND_BY_CHECK
    arguments = arguments_of(module)
    want = expected(module)
    try:
        program = Executable(planned, sanitize=True, native=False)
        got = program(*[a.copy() for a in arguments])
    except LocatedError as error:  # includes a buffer outside of its arena
        is_named = not isinstance(error, PlanViolation) or error.buffer in str(error)
        return FOUND_BY_RUN if is_named else UNNOTICED
    same = all(
        np.array_equal(a, b, equal_nan=True) for a, b in zip(got, want, strict=True)
    )
    return UNNOTICED if same else WRONG


def with_buffers(patch: Patch, change: Callable[[Buffer], Buffer]) -> None:
    """Makes `plan-memory` plan buffers changed by `change`."""

    def changed(*args: Any) -> Buffer:
        return change(liveness.buffer_of(*args))

    patch.setattr(arena, "buffer_of", changed)


def lifespan_one_step_short(patch: Patch) -> None:
    with_buffers(
        patch,
        lambda b: dataclasses.replace(b, end=max(b.start + 1, b.end - 1)),
    )


def alignment_ignored(patch: Patch) -> None:
    with_buffers(patch, lambda b: dataclasses.replace(b, alignment=1))


def size_one_byte_short(patch: Patch) -> None:
    with_buffers(
        patch, lambda b: dataclasses.replace(b, size=max(b.size - 1, 0), alignment=1)
    )


def views_not_followed(patch: Patch) -> None:
    moves = allocations.moves

    def over(use: Use) -> Sequence[SSAValue] | None:
        return [] if isinstance(use.operation, memref.ReinterpretCastOp) else moves(use)

    patch.setattr(allocations, "moves", over)


def results_freed_early(patch: Patch) -> None:
    """Ends the live ranges of buffers too early if they are copied to results."""
    moves = allocations.moves

    def over(use: Use) -> Sequence[SSAValue] | None:
        return [] if isinstance(use.operation, memref.CopyOp) else moves(use)

    patch.setattr(allocations, "moves", over)


def result_believed_unwritten(patch: Patch) -> None:
    """Reuses the memory of results until the end of the function."""

    def outputs(*args: Any) -> list[output_reuse.Output]:
        found = output_reuse.find_outputs(*args)
        return [
            dataclasses.replace(x, uses=liveness.Uses(0, {max(x.uses.accesses): False}))
            for x in found
        ]

    patch.setattr(plan_memory, "find_outputs", outputs)


def result_believed_larger(patch: Patch) -> None:
    def outputs(*args: Any) -> list[output_reuse.Output]:
        return [
            dataclasses.replace(x, size=x.size + 64)
            for x in output_reuse.find_outputs(*args)
        ]

    patch.setattr(plan_memory, "find_outputs", outputs)


def old_contents_believed_unread(patch: Patch) -> None:
    """Overwrites contents from the caller from the start."""

    def outputs(*args: Any) -> list[output_reuse.Output]:
        found = output_reuse.find_outputs(*args)
        return [
            dataclasses.replace(x, uses=liveness.Uses(0, {max(x.uses.accesses): False}))
            if x.is_given
            else x
            for x in found
        ]

    patch.setattr(plan_memory, "find_outputs", outputs)


def anything_believed_elementwise(patch: Patch) -> None:
    """Lets results overwrite operands of operations that are not elementwise."""

    def every(op: Operation) -> Sequence[int]:
        return range(len(op.operands) - len(destinations(op)))

    patch.setattr(overwriting, "overwritable", every)


def handed_over_and_read_later(patch: Patch) -> None:
    patch.setattr(planning_output_reuse, "_is_handed_over", lambda *_: True)


FAULTS = [
    old_contents_believed_unread,
    anything_believed_elementwise,
    handed_over_and_read_later,
    result_believed_unwritten,
    result_believed_larger,
    lifespan_one_step_short,
    alignment_ignored,
    size_one_byte_short,
    views_not_followed,
    results_freed_early,
]


PRODUCTS = """
func.func @main(%x: tensor<4x4xf32> {tgraph.donated}, %y: tensor<4xf32>)
    -> tensor<4xf32> {
  %a = tgraph.dot_general %x, %x {lhs_contracting_dimensions = array<i64: 1>,
                                  rhs_contracting_dimensions = array<i64: 0>}
     : tensor<4x4xf32>
  %b = tgraph.dot_general %a, %y {lhs_contracting_dimensions = array<i64: 1>,
                                  rhs_contracting_dimensions = array<i64: 0>}
     : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}
"""
"""The first product must not overwrite its operands."""


ODD = """func.func @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %a = tgraph.transpose %x {permutation = array<i64: 1, 0>}
    : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %p = tgraph.dot_general %x, %a {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %q = tgraph.dot_general %a, %x {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %r = tgraph.dot_general %p, %q {lhs_contracting_dimensions = array<i64: 1>,
    rhs_contracting_dimensions = array<i64: 0>}
    : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  func.return %r : tensor<3x3xf32>
}"""
"""Two buffers of 36 bytes, one of which starts at a multiple of 64."""


class Subject(NamedTuple):
    """A program to plan."""

    module: ModuleOp
    before: ModuleOp  # after all passes before `plan-memory`
    reuse_outputs: bool


@cache
def subjects() -> Sequence[Subject]:
    """Random programs from a fixed seed, and two handwritten programs. Every second one
    reuses outputs.

    Tests plant faults after this call, so that no fault affects the passes before
    `plan-memory`.
    """
    found = [parse(PRODUCTS)]

    @seed(0)
    @settings(
        max_examples=150,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(programs(max_ops=30, are_donated=True))
    def collect(program: Program) -> None:
        found.append(program.module)

    collect()
    results: list[Subject] = []
    for index, module in enumerate([*found, parse(ODD)]):
        *before, _ = PlanPipeline(reuse_outputs=index % 2 == 0).passes()
        results.append(Subject(module, run(module, *before), index % 2 == 0))
    return results


def verdicts(made: Sequence[Subject], check: bool = True) -> Iterator[str]:
    """The verdict on each program."""
    for module, before, reuse_outputs in made:
        yield judge(module, before, check, reuse_outputs)


@pytest.mark.thorough
def test_no_false_positives() -> None:
    assert set(verdicts(subjects())) == {UNNOTICED}


@pytest.mark.thorough
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_plan_check_detects_each_fault(fault: Callable[[Patch], None]) -> None:
    made = subjects()
    with Patch.context() as patch:
        fault(patch)
        assert FOUND_BY_CHECK in verdicts(made)


@pytest.mark.thorough
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_sanitized_run_detects_each_fault(fault: Callable[[Patch], None]) -> None:
    """The error names the buffer and the operation, and wrong values are never
    unnoticed."""
    made = subjects()
    with Patch.context() as patch:
        fault(patch)
        found = set(verdicts(made, check=False))
        assert FOUND_BY_RUN in found
        assert WRONG not in found


def test_plan_check_shares_no_code_with_plan_memory() -> None:
    """Otherwise, the planted faults could affect the checker as well."""
    borrowed = {
        name
        for module in (
            plan_check,
            happens_before,
            accesses,
            ownership,
            pointees,
            caller_pools,
        )
        for name, value in vars(module).items()
        if getattr(value, "__module__", "").startswith(
            (
                "tensorplan.passes.plan.memory",
                "tensorplan.analysis.allocations",
                "tensorplan.passes.plan.placement.output_reuse",
                "tensorplan.analysis.control_flow",
                "tensorplan.analysis.liveness",
                "tensorplan.analysis.overwriting",
                "tensorplan.passes.plan.placement.stream_order",
                "tensorplan.analysis.dependencies",
                "tensorplan.planning",
            )
        )
    }
    assert not borrowed
