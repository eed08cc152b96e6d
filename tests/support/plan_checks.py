"""What plan-check says of programs: remarks, or its error.

The programs' text is made with tests/planted/planted.py.
"""

import logging

import pytest
from unchanged_ir import parsed

import tensorplan
from tensorplan.dialects.diagnostics import REMARKS, LocatedError
from tensorplan.passes.plan_check import PlanCheck, PlannedPool, check_plan


class _Listener(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record.getMessage().partition("remark: plan-check: ")[2])


def remarks(text: str) -> list[str]:
    """What is left unproved of a sound program, then what was checked."""
    listener, level = _Listener(), REMARKS.level
    REMARKS.addHandler(listener)
    REMARKS.setLevel(logging.INFO)
    try:
        PlanCheck().apply(tensorplan.context(), parsed(text))
    finally:
        REMARKS.removeHandler(listener)
        REMARKS.setLevel(level)
    return listener.heard


def unproved(text: str) -> list[str]:
    """What is left unproved of a sound program."""
    *others, _ = remarks(text)
    return others


def pools(text: str) -> list[PlannedPool]:
    return check_plan(parsed(text))


def places(text: str) -> list[list[tuple[str, int, int]]]:
    """The buffers of each pool: name, offset and size in bytes."""
    return [[(b.name, b.offset, b.size) for b in pool.buffers] for pool in pools(text)]


def refused(text: str, message: str) -> None:
    """Checks that a program is an error with a message that matches."""
    with pytest.raises(LocatedError, match=message):
        check_plan(parsed(text))
