"""ONNX's own tests of operations: values are right, or the operation is refused."""

from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("onnx")
from onnx_nodes import cases, judge


def check(chosen: Sequence[Any]) -> None:
    verdicts = {case.name: judge(case, lenient=True) for case in chosen}
    bad = {
        name: verdict
        for name, verdict in verdicts.items()
        if verdict.status in ("wrong", "internal")
    }
    assert not bad
    assert any(verdict.status == "pass" for verdict in verdicts.values())


@pytest.mark.thorough
def test_one_in_thirty() -> None:
    check(list(cases())[::30])


@pytest.mark.slow
def test_all() -> None:
    check(list(cases()))
