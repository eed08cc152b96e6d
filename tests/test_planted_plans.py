"""No planted fault that execution shows to be unsound is accepted in silence.

Each kind of fault (tests/planted) is a program in which something is wrong with the
arena: an offset, a size, a free, a path, an alias, an operation in place, a transfer,
a stream; and its sound twin. plan-check must say something about the one, an error or a
remark that it did not check, and must accept the other. That the one is unsound and the
other is not, real MLIR shows: it runs both for all trip counts and conditions, in a
memory that notices what is read, written and freed.
"""

import logging
from collections import Counter

import pytest
from faults import ALL, FAMILIES
from mlir_programs import LIBRARIES
from native_oracle import Behavior, behaviors, complaint, without_tgraph
from planted import Kind
from unchanged_ir import parsed
from upstream import TOOLS

from tensorplan.dialects.diagnostics import REMARKS, LocatedError
from tensorplan.passes.plan_check import check_plan

each_kind = pytest.mark.parametrize(
    "kind", ALL, ids=lambda kind: f"{kind.family}: {kind.name}"
)


def remarks(text: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Of plan-check, that it could not check or prove something."""
    caplog.clear()
    with caplog.at_level(logging.INFO, REMARKS.name):
        check_plan(parsed(text))
    said = (record.getMessage() for record in caplog.records)
    return [message for message in said if not message.endswith("buffers checked")]


@each_kind
def test_no_fault_is_accepted_in_silence(
    kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    try:
        said = remarks(kind.text(faulty=True), caplog)
    except LocatedError:
        return
    assert said or kind.beyond or not kind.unsound


@each_kind
def test_the_sound_twin_is_accepted(
    kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    if not kind.may_refuse:
        remarks(kind.text(faulty=False), caplog)


def test_most_faults_are_errors() -> None:
    """A checker that only remarks would be worth little."""
    errors = 0
    for kind in ALL:
        try:
            check_plan(parsed(kind.text(faulty=True)))
        except LocatedError:
            errors += 1
    assert errors > 0.7 * len(ALL)


def test_there_are_many_kinds() -> None:
    counts = Counter(kind.family for kind in ALL)
    assert len(counts) == len(FAMILIES)
    assert sum(counts.values()) >= 200
    assert len({(kind.family, kind.name) for kind in ALL}) == len(ALL)


@pytest.mark.slow
@pytest.mark.skipif(not (TOOLS and LIBRARIES), reason="no MLIR, or no runner's library")
def test_execution_agrees() -> None:
    """With what is declared: one process runs all programs."""
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
    """What is wrong with what is declared of a kind."""
    modes = kind.modes or (None,)
    sound = ran[kind.family, kind.name, False, modes[0]]
    for mode in modes:
        if fault := complaint(ran[kind.family, kind.name, False, mode], sound):
            return f"the sound twin {fault}"
    faults = [complaint(ran[kind.family, kind.name, True, m], sound) for m in modes]
    if any(faults) != kind.unsound:
        return f"unsound is {kind.unsound}, but it {faults}"
    return None
