"""Tests the help texts of passes in a terminal: complete, in lines that fit."""

import sys
from inspect import cleandoc

import pytest

from tensorplan.passes import get_all_passes
from tensorplan.tools.plan_opt_main import pass_help


@pytest.mark.parametrize("name", get_all_passes())
def test_prose_fits_80_columns(name: str) -> None:
    """Reflowing keeps all words, and leaves code unchanged."""
    cls = get_all_passes()[name]()
    lines = pass_help(name, cls).splitlines()
    assert all(len(line) <= 80 for line in lines if not line.startswith("    "))
    text = cleandoc(sys.modules[cls.__module__].__doc__ or "")
    assert " ".join(lines).split()[: len(text.split())] == text.split()
    code = [line for line in text.splitlines() if line.startswith("    ")]
    assert set(code) <= set(lines)
