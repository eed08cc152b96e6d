"""Tests the audit of IREE's plans: what it reads from dumps, proves, and refutes."""

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from random import Random

import pytest

from tensorplan.checking.foreign import audit
from tensorplan.frontends.plans.reading import plan_files, read
from tensorplan.reporting.foreign import account, lives
from tensorplan.support.foreign_plan import ForeignPlan, ForeignPlanError, steps_in

FOLDER = Path(__file__).parent / "foreign" / "iree"
VERDICTS = {
    **{"loop": "not refuted", "net": "proved", "shift": "unsound", "step": "proved"}
}
CONSTANT = re.compile(r'(%\d+) = "arith.constant"\(\) <\{value = (\d+) : index')
DISPATCH = re.compile(
    r'"stream.cmd.dispatch"\((.*?)\) <.*operandSegmentSizes = array<i32: 0, 0, (\d+)'
)
AFTER = "IR Dump After"
PLACE = re.compile(r" loc\(.*\)$", re.MULTILINE)
"""The location of an operation. Locations are most of the text and of its parse
time."""


def text_of(program: str) -> str:
    return (FOLDER / f"{program}.iree.mlir").read_text()


def plan_of(text: str, folder: Path) -> ForeignPlan:
    path = folder / "m.iree.mlir"
    path.write_text(text)
    return read(path)


def test_recorded_dumps() -> None:
    found = {f.name.partition(".")[0]: audit(read(f)) for f in plan_files(str(FOLDER))}
    assert {name: each.verdict for name, each in found.items()} == VERDICTS
    assert set(found["loop"].plan.not_understood) == {
        *("resources in scf.for", "resources in scf.if", "resources in scf.yield")
    }


def test_a_copy_onto_itself_is_in_the_dump() -> None:
    """If IREE's own checks are on, they reject the copy when the program runs."""
    [finding] = audit(read(FOLDER / "shift.iree.mlir")).findings
    assert finding.location == "record.py:34:11"
    assert finding.message == (
        "command 2 (copy) overwrites value 1 before it has read it, in bytes [0, 448) "
        "of allocation 1: a copy's source and target must share no bytes"
    )


def test_memory_of_a_training_step() -> None:
    plan = read(FOLDER / "step.iree.mlir")
    kinds = account(plan).by_kind
    assert kinds == {"argument": 4096, "result": 3136, "temporary": 2624}
    first, *_, last = steps_in(plan.steps)
    assert first.operation == "main_dispatch_0_matmul_8x16x16_f32"
    assert last.name == "command 11"
    assert {value.type for value in plan.given} == {
        *("tensor<16x16xf32>", "tensor<8x16xf32>")
    }


def moved(text: str) -> Sequence[str]:
    """Returns the dumps in which one offset of the planned commands is replaced by
    another one."""
    at = text.index(AFTER)
    used = {
        operand
        for match in DISPATCH.finditer(text, at)
        for operands, count in [(match[1].split(", "), int(match[2]))]
        for operand in operands[2 * count : 3 * count]
    }
    found = [match for match in CONSTANT.finditer(text, at) if match[1] in used]
    offsets = sorted({match[2] for match in found})
    return [
        text[: match.start(2)] + offset + text[match.end(2) :]
        for match in found
        for offset in offsets
        if offset != match[2]
    ]


def overlaps(plan: ForeignPlan, ranges: dict[str, tuple[int, int]]) -> bool:
    """Whether a value is written over another one that is read later."""
    placed = [v for v in lives(plan) if v.value.name in ranges]
    for one, other in combinations(placed, 2):
        begin, end = ranges[one.value.name]
        written, _ = ranges[other.value.name]
        if begin < written < end - 1 and one.value.region.overlaps(other.value.region):
            return True
    return False


@pytest.mark.thorough
@pytest.mark.parametrize(("program", "least"), [("net", 2), ("step", 10)])
def test_each_planted_overlap_is_found(
    program: str, least: int, tmp_path: Path
) -> None:
    text = PLACE.sub("", text_of(program))
    ranges = {v.value.name: (v.lower, v.upper) for v in lives(plan_of(text, tmp_path))}
    count = 0
    for changed in moved(text)[::2]:
        plan = plan_of(changed, tmp_path)
        verdict = audit(plan).verdict
        if overlaps(plan, ranges):
            assert verdict == "unsound"
            count += 1
    assert count >= least


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # the command reads from the second row on
        ("(%arg1, %arg2, %3, %3, %2, %9, ", "(%arg1, %arg2, %3, %3, %0, %9, ", "[64, "),
        # the copy's target one row further, beyond the value
        (
            "(%arg2, %3, %2, %arg2, %3, %0, %1)",
            "(%arg2, %3, %2, %arg2, %3, %5, %1)",
            "",
        ),
        # an allocation that is too small
        ('alloca"(%3)', 'alloca"(%1)', "but allocation 1 has 448 bytes"),
    ],
)
def test_faults_in_a_dump(old: str, new: str, message: str, tmp_path: Path) -> None:
    before, after = text_of("shift").split(AFTER)
    assert after.count(old) == 1
    found = audit(plan_of(f"{before}{AFTER}{after.replace(old, new)}", tmp_path))
    assert found.verdict == "unsound"
    assert any(message in finding.message for finding in found.findings)


def test_memory_that_was_freed(tmp_path: Path) -> None:
    """Transient memory is freed before the commands that use it."""
    before, after = text_of("step").split(AFTER)
    [dealloca] = re.findall(r'^.*"stream.resource.dealloca".*$', after, re.MULTILINE)
    execute = after.index('"stream.cmd.execute"')
    at = after.rindex("\n", 0, execute) + 1
    early = re.sub(r"%\d+\)", "%0)", dealloca.partition(" = ")[2], count=1)
    early = early.replace("!stream.timepoint)", "index)", 1)
    moved = f"{after[:at]}  %999 = {early}\n{after[at:]}"
    found = audit(plan_of(f"{before}{AFTER}{moved}", tmp_path))
    assert any("which was freed" in f.message for f in found.findings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not an IREE dump"),
        ("module {}", "not an IREE dump"),
        (text_of("shift").partition("// -----// IR Dump After")[0], "not an IREE dump"),
        (text_of("shift").replace('"util.func"', "util.func"), "no functions in gen"),
        (text_of("shift").replace("%12, ", "%1200, "), "used but not defined"),
        (text_of("shift").replace("stream.cmd.copy", "stream.cmd.fill"), "not match"),
        (text_of("shift").replace("value = 512", "other = 512"), "does not match"),
        (text_of("shift").replace('= "arith.constant"', '= "x.y"'), "not constant"),
    ],
)
def test_files_that_are_not_dumps(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ForeignPlanError, match=message):
        plan_of(text, tmp_path)


@pytest.mark.parametrize("program", VERDICTS)
def test_damaged_dumps(program: str, tmp_path: Path) -> None:
    text = PLACE.sub("", text_of(program))
    for seed in range(8):
        random = Random(seed)
        at, length = random.randrange(len(text)), random.choice([1, 5, 80, 4000])
        with suppress(ForeignPlanError):
            audit(plan_of(text[:at] + text[at + length :], tmp_path))
