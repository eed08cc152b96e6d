"""Runs `plan-check` on programs, and returns its remarks or expects an error.

tests/planted/planted.py writes the programs.
"""

import logging

import pytest
from planted import loop, program
from unchanged_ir import parsed
from xdsl.ir import Operation, SSAValue

import tensorplan
from tensorplan.checking.plan_check import PlannedPool, check_plan
from tensorplan.dialects.diagnostics import LocatedError, name_of
from tensorplan.passes.plan.check import PlanCheck
from tensorplan.support.remarks import REMARKS


class _Listener(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record.getMessage().partition("remark: plan-check: ")[2])


def remarks(text: str, report: bool = True) -> list[str]:
    """The remarks on a sound program: what is unproved, then what was checked."""
    listener, level = _Listener(), REMARKS.level
    REMARKS.addHandler(listener)
    REMARKS.setLevel(logging.INFO)
    try:
        PlanCheck(report, unmarked=True).apply(tensorplan.context(), parsed(text))
    finally:
        REMARKS.removeHandler(listener)
        REMARKS.setLevel(level)
    return listener.heard


def unproved(text: str) -> list[str]:
    """The remarks that say what is unproved about a sound program."""
    *others, _ = remarks(text)
    return others


def pools(text: str) -> list[PlannedPool]:
    return check_plan(parsed(text), unmarked=True)


def placements(text: str) -> list[list[tuple[str, int, int]]]:
    """The name, the offset and the size in bytes of the buffers of each pool."""
    return [[(b.name, b.offset, b.size) for b in pool.buffers] for pool in pools(text)]


def refused(text: str, message: str) -> None:
    """Asserts that plan-check rejects the program with an error matching `message`."""
    with pytest.raises(LocatedError, match=message):
        check_plan(parsed(text), unmarked=True)


def value(text: str, name: str = "v") -> SSAValue:
    """The result or block argument that is called `name`."""
    for op in parsed(text).walk():
        arguments = (a for region in op.regions for b in region.blocks for a in b.args)
        for each in (*op.results, *arguments):
            if each.name_hint == name:
                return each
    raise AssertionError(f"no %{name}")


def with_numbers(*body: str) -> str:
    """A program with %u in 0 to 3, %w in 1 to 4, and %k in -2 to 1."""
    return program(*numbers(*body))


def numbers(*body: str) -> tuple[str, str]:
    more = ("%w = arith.addi %u, %c1 : index", "%k = arith.addi %u, %neg : index")
    return "%neg = arith.constant -2 : index", loop(*more, *body, to="%c4", index="u")


def operations(text: str, name: str) -> list[Operation]:
    """The operations whose names start with `name`, in the order of the text."""
    return [op for op in parsed(text).walk() if name_of(op).startswith(name)]
