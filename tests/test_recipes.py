"""Tests CONTRIBUTING's recipes: follows them step by step in a copy of the sources.

The first line of a block says where it belongs: `# in FILE` for a new file, or `# in
FILE, after: LINE` for text after the first such line. The program `check.py` then runs
there.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from documentation import blocks

ROOT = Path(__file__).parent.parent
FOLDERS = [init.parent for init in ROOT.glob("*/__init__.py")]

WHERE = re.compile(r"# in (\S+?)(?:, after: (.*))?\n((?:.|\n)*)")


def recipes() -> Mapping[str, Sequence[re.Match[str]]]:
    """The steps of each recipe that has an example, by heading."""
    page = ROOT / "CONTRIBUTING.md"
    headings = {
        page.read_text().count("\n", 0, match.start()) + 1: match[1]
        for match in re.finditer(r"^## (.*)$", page.read_text(), re.M)
    }
    found: dict[str, list[re.Match[str]]] = {}
    for block in blocks(page):
        if step := WHERE.match(block.text):
            heading = headings[max(line for line in headings if line < block.line)]
            found.setdefault(heading, []).append(step)
    return found


RECIPES = recipes()


def follow(step: re.Match[str], folder: Path) -> None:
    path, anchor, text = folder / step[1], step[2], step[3]
    if anchor is None:
        assert not path.exists(), f"{path} is there already"
        path.write_text(text)
        return
    lines = path.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines, 1) if line.strip() == anchor)
    path.write_text("".join([*lines[:at], text, *lines[at:]]))


@pytest.mark.thorough
@pytest.mark.parametrize("heading", RECIPES)
def test_recipes_are_sufficient(heading: str, tmp_path: Path) -> None:
    copy = tmp_path / "tensorplan"
    for folder in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(folder, copy / folder.name, ignore=ignored)
    for file in ROOT.glob("*.py"):
        shutil.copy(file, copy)
    for step in RECIPES[heading]:
        follow(step, copy)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "check.py"],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def test_recipes_name_the_files_that_they_change() -> None:
    assert {
        "Adding an operation",
        "Adding a pass",
        "Adding a planning strategy",
    } <= RECIPES.keys()
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for heading, steps in RECIPES.items():
        section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
        prose = re.sub(r"^```.*?^```$", "", section, flags=re.M | re.S)
        named = re.findall(r"`([\w./]+)`", prose)
        for step in steps:
            path = step[1]
            is_new = step[2] is None
            assert (f"{Path(path).parent}/" if is_new else path) in [*named, "./"]


def test_elementwise_operation_needs_at_most_five_files() -> None:
    steps = RECIPES["Adding an operation"]
    assert len({step[1] for step in steps} - {"check.py"}) <= 5
