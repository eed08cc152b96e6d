"""Tests that `plan-check` accepts no planted fault that execution shows to be unsound.

Each kind of fault (tests/planted) is a program with an error in its arena (an offset, a
size, a free, a path, an alias, an operation in place, a transfer, a stream), and a
sound twin. For the faulty program, plan-check must print an error or a remark that it
did not check something; it must accept the twin. MLIR shows that one is unsound and the
other is not: it runs both natively for all trip counts and conditions, in a memory that
detects wrong reads, writes and frees.
"""

import logging
from collections import Counter
from functools import cache
from random import Random

import numpy as np
import pytest
from faults import ALL, FAMILIES
from judging import applied
from mlir_programs import LIBRARIES
from native_oracle import Behavior, behaviors, complaint, without_tgraph
from oracles import Failure, arguments, compare, reference, run
from planted import Kind
from planted_rewrites import REWRITES, Rewrite
from random_passes import GROUPS
from tensor_programs import tensor_program
from unchanged_ir import parsed
from upstream import TOOLS
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tensorplan.checking.plan_check import check_plan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array
from tensorplan.passes.plan.pipeline import PlanPipeline
from tensorplan.runtime.executor import Executable
from tensorplan.support.remarks import REMARKS

each_kind = pytest.mark.parametrize(
    "kind", ALL, ids=lambda kind: f"{kind.family}: {kind.name}"
)


def remarks(text: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The remarks in which `plan-check` says that it could not check or prove
    something."""
    caplog.clear()
    with caplog.at_level(logging.INFO, REMARKS.name):
        check_plan(parsed(text), unmarked=True)
    said = (record.getMessage() for record in caplog.records)
    return [message for message in said if not message.endswith(" checked")]


@each_kind
def test_no_fault_is_accepted_without_a_remark(
    kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    try:
        said = remarks(kind.text(faulty=True), caplog)
    except LocatedError:
        return
    assert said or kind.beyond or not kind.unsound


@each_kind
def test_sound_twin_is_accepted(kind: Kind, caplog: pytest.LogCaptureFixture) -> None:
    if not kind.may_refuse:
        remarks(kind.text(faulty=False), caplog)


def test_most_faults_are_errors() -> None:
    """A checker that only emits remarks would be of little use."""
    faults = [kind for kind in ALL if kind.unsound and not kind.beyond]
    assert sum(map(is_refused, faults)) > 0.7 * len(faults)


def is_refused(kind: Kind) -> bool:
    try:
        check_plan(parsed(kind.text(faulty=True)), unmarked=True)
    except LocatedError:
        return True
    return False


def test_number_of_kinds() -> None:
    counts = Counter(kind.family for kind in ALL)
    assert len(counts) == len(FAMILIES)
    assert sum(counts.values()) >= 200
    assert len({(kind.family, kind.name) for kind in ALL}) == len(ALL)


@pytest.mark.slow
@pytest.mark.skipif(not (TOOLS and LIBRARIES), reason="no MLIR, or no runner's library")
def test_execution_agrees_with_declarations() -> None:
    """One process runs all programs, and their behavior must agree with the declared
    one."""
    programs = {
        (kind.family, kind.name, faulty, mode): native(kind, faulty, mode)
        for kind in ALL
        for mode in kind.modes or (None,)
        for faulty in (False, True)
    }
    ran = dict(zip(programs, behaviors(list(programs.values()), TOOLS[0]), strict=True))
    wrong = [f"{kind}: {fault}" for kind in ALL if (fault := disagreement(kind, ran))]
    assert not wrong, "\n".join(wrong)


def native(kind: Kind, faulty: bool, mode: str | None) -> str:
    text = kind.text(faulty, mode)
    return without_tgraph(text) if kind.is_ours else text


Key = tuple[str, str, bool, str | None]


def disagreement(kind: Kind, ran: dict[Key, Behavior]) -> str | None:
    """The difference between a kind's declaration and its runs. None if they agree."""
    modes = kind.modes or (None,)
    sound = ran[kind.family, kind.name, False, modes[0]]
    for mode in modes:
        if fault := complaint(ran[kind.family, kind.name, False, mode], sound):
            return f"the sound twin {fault}"
    faults = [complaint(ran[kind.family, kind.name, True, m], sound) for m in modes]
    if any(faults) != kind.unsound:
        return f"unsound is {kind.unsound}, but it {faults}"
    return None


PLANS, TRIES = 100, 4
"""The number of random programs, and of rewrites of each. Some rewrites change nothing.
"""


@pytest.mark.thorough
@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda r: r.__name__)
def test_accepted_rewritten_plans_compute_the_same(
    rewrite: Rewrite, caplog: pytest.LogCaptureFixture
) -> None:
    """The executor runs without sanitizing. A second run with other inputs reveals
    stale bytes."""
    outcomes: Counter[str] = Counter()
    for number in range(PLANS * TRIES):
        module, inputs, plan = plan_of(number % PLANS)
        planned = plan.clone()
        function = next(op for op in planned.ops if isinstance(op, FuncOp))
        if rewrite(function, Random(number)):
            outcomes[outcome(module, inputs, planned, caplog)] += 1
    assert not outcomes["wrong"]
    assert outcomes["refused"]


@cache
def plan_of(number: int) -> tuple[ModuleOp, list[Array], ModuleOp]:
    module = tensor_program(Random(1000 + number), 8 + number % 16)
    pipeline = PlanPipeline(groups=GROUPS, reuse_outputs=number % 2 == 0)
    return module, arguments(module, number), applied(module, pipeline)


def outcome(
    module: ModuleOp,
    inputs: list[Array],
    planned: ModuleOp,
    caplog: pytest.LogCaptureFixture,
) -> str:
    caplog.clear()
    try:
        with caplog.at_level(logging.INFO, REMARKS.name):
            check_plan(planned)
    except LocatedError:
        return "refused"
    want = reference(module, inputs)
    executable = Executable(planned, native=False)
    run("a run", executable, [np.ones_like(array) for array in inputs])
    try:
        compare("again", run("again", executable, inputs), want, slack=1)
    except Failure:
        return "remarked" if caplog.records else "wrong"
    return "right"
