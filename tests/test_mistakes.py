"""Tests a hundred common mistakes with the tools: each message says what to do."""

import subprocess
from pathlib import Path

import pytest
from mistakes import MISTAKES, files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mistakes")
    files(folder)
    return folder


def test_there_are_a_hundred():
    assert len(set(MISTAKES)) >= 100


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_message_says_what_to_do(mistake: str, folder: Path, served_tools: Path):
    command, _, expected = mistake.partition(" => ")
    tool, *arguments = command.split()
    done = subprocess.run(
        [served_tools / tool, *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert expected in done.stderr
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert done.stdout == "" or tool in ("plan-run", "plan-solve")
