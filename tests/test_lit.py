"""Runs lit_tests/, with one case per file, so that `pytest` runs the whole suite."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TypedDict, cast

import pytest

LIT_TESTS = Path(__file__).parent.parent / "lit_tests"
LIT = "import lit.main; lit.main.main()"  # lit has no `python -m`
FILES = sorted(
    path.relative_to(LIT_TESTS)
    for suffix in (".mlir", ".test")
    for path in LIT_TESTS.rglob(f"*{suffix}")
    if "Output" not in path.parts  # files that lit writes
)


class Result(TypedDict):
    code: str
    name: str
    output: str


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    served_tools: Path,
) -> dict[str, Result]:
    """Returns the results of one run of lit on the files that this session tests."""
    selected = [
        str(LIT_TESTS / cast(Path, item.callspec.params["file"]))
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.originalname == test_lit.__name__
        and item.path == request.path
    ]
    folder = tmp_path_factory.mktemp("lit")  # with several workers, one for each
    report = folder / "report.json"
    run = subprocess.run(
        [sys.executable, "-c", LIT, "--quiet", "--output", report, *selected],
        env={
            **os.environ,
            "TENSORPLAN_TOOLS": str(served_tools),
            "TENSORPLAN_LIT_OUTPUT": str(folder / "output"),
        },
        capture_output=True,
        text=True,
    )
    assert report.exists(), run.stdout + run.stderr
    tests = cast(list[Result], json.loads(report.read_text())["tests"])
    return {test["name"].removeprefix("tensorplan :: "): test for test in tests}


@pytest.mark.parametrize("file", FILES, ids=str)
def test_lit(file: Path, results: dict[str, Result]):
    result = results[file.as_posix()]
    if result["code"] == "UNSUPPORTED":
        pytest.skip(result["output"])
    assert result["code"] in ("PASS", "XFAIL"), f"{result['code']}\n{result['output']}"
