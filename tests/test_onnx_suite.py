"""Runs ONNX's backend tests: which cases pass, and why others are rejected."""

import json
from functools import cache

import pytest

pytest.importorskip("onnx")
import onnx_backend
from onnx_backend import Case, judge, known_refusals

pytestmark = pytest.mark.thorough

PARTS = 32
"""The number of test cases. With many, parallel runs do not wait for this file."""


@cache
def cases() -> list[Case]:
    return list(onnx_backend.cases())


@pytest.mark.parametrize(
    "is_expanded", [False, pytest.param(True, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "part",
    [pytest.param(n, marks=pytest.mark.slow if n % 2 else ()) for n in range(PARTS)],
)
def test_cases(part: int, is_expanded: bool) -> None:
    """A case that newly passes has to be removed from the list of refusals.

    Expanded definitions consist of operations that other cases test. Half of the other
    cases are slow, too: tests/test_onnx.py covers each operation.
    """
    own = [case for case in cases() if case.name.endswith("_expanded") == is_expanded]
    chosen = own[part::PARTS]
    verdicts = {case.name: judge(case) for case in chosen}
    known = {n: r for n, r in known_refusals().items() if n in verdicts}
    others = {name: v for name, v in verdicts.items() if v.status != "pass"}
    assert others == {name: ("refused", reason) for name, reason in known.items()}


def test_the_list_and_the_page() -> None:
    names = {case.name for case in cases()}
    assert known_refusals().keys() <= names
    assert onnx_backend.PAGE.read_text() == onnx_backend.page(cases(), known_refusals())
    text = json.dumps(dict(sorted(known_refusals().items())), indent=1) + "\n"
    assert onnx_backend.REFUSALS.read_text() == text
