"""Tests that the contract on imports between folders (pyproject.toml) finds faults."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter")

ROOT = Path(__file__).parent.parent
CHECK = "from importlinter import cli; cli.lint_imports_command()"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a copy of the package."""
    copy = tmp_path / "tensorplan"
    for init in (ROOT / "__init__.py", *ROOT.glob("[!.]*/**/__init__.py")):
        folder = copy / init.parent.relative_to(ROOT)
        folder.mkdir(parents=True, exist_ok=True)
        for file in init.parent.glob("*.py"):
            shutil.copy(file, folder)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return copy


def lint(checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CHECK, "--no-cache"],
        cwd=checkout.parent,
        env={**os.environ, "PYTHONPATH": str(checkout.parent)},
        capture_output=True,
        text=True,
    )


def test_the_contract_is_kept(checkout: Path):
    run = lint(checkout)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize(
    ("file", "planted"),
    [
        ("planning/problem.py", "from ..passes import driver"),
        ("dialects/memory.py", "def f():\n    from ..runtime import pool"),
        ("checking/buffers.py", "from ..planning import problem"),
        ("passes/driver.py", "from .tgraph.fuse import TGraphFuse"),
        ("attic/__init__.py", "from ..tools import common"),
    ],
)
def test_a_planted_import_is_found(file: str, planted: str, checkout: Path):
    path = checkout / file
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as text:
        text.write(f"\n{planted}\n")
    run = lint(checkout)
    assert run.returncode == 1
    assert path.parent.name in run.stdout.partition("Broken contracts")[2]
