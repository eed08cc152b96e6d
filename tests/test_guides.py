"""Tests that docstrings of packages that list modules name all modules of the package,
and no others."""

import ast
import re
from fnmatch import fnmatch
from inspect import getfile
from pathlib import Path

import pytest

from tensorplan.passes import get_all_passes

ROOT = Path(__file__).parent.parent
FOLDERS = sorted(init.parent.name for init in ROOT.glob("*/__init__.py"))

FILE = r"[\w*]+(?:\.py|/)"
ENTRY = re.compile(rf"^{FILE}(?:, {FILE})*(?=  | *$)", re.M)
"""The file names at the start of a line of a guide: `name.py   description`."""


def guide(init: Path) -> str:
    return ast.get_docstring(ast.parse(init.read_text())) or ""


GUIDES = [
    init
    for folder in FOLDERS
    for init in sorted((ROOT / folder).rglob("__init__.py"))
    if ENTRY.search(guide(init))
]


def parts(package: Path) -> set[str]:
    """The modules and packages of `package`, except passes, which `--list-passes`
    lists."""
    passes = [
        Path(getfile(get_pass())).resolve() for get_pass in get_all_passes().values()
    ]
    modules = {path.name for path in package.glob("*.py") if path not in passes}
    folders = {f"{init.parent.name}/" for init in package.glob("*/__init__.py")}
    return (modules - {"__init__.py"}) | folders


def unmatched(names: set[str], others: set[str]) -> list[str]:
    return sorted(
        name
        for name in names
        if not any(fnmatch(name, o) or fnmatch(o, name) for o in others)
    )


@pytest.mark.parametrize("init", GUIDES, ids=lambda p: p.parent.relative_to(ROOT))
def test_guide_names_all_modules(init: Path) -> None:
    text, there = guide(init), parts(init.parent)
    named = set(re.findall(rf"(?<![\w/]){FILE}", text))
    assert not unmatched(there, named), "which the guide does not name"
    listed = {name for entry in ENTRY.findall(text) for name in entry.split(", ")}
    folders = {f"{path.name}/" for path in init.parent.iterdir() if path.is_dir()}
    assert not unmatched(listed, there | folders), "which there are not"


def test_large_packages_have_guides() -> None:
    assert len(GUIDES) > 15
