"""dev.py says what there is, and what it runs is there. It makes an environment only in
the CI."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).parent.parent
COMMANDS = run_path(str(ROOT / "dev.py"))["COMMANDS"]


def test_usage_names_all_commands():
    run = subprocess.run([sys.executable, ROOT / "dev.py"], capture_output=True)
    assert run.returncode == 1
    assert f"dev.py {'|'.join(COMMANDS)} " in run.stderr.decode()


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_runs_is_there(name: str):
    match COMMANDS[name]:
        case ["-m", module]:
            assert find_spec(module)
        case [path]:
            assert (ROOT / path).exists()
        case arguments:
            assert not arguments


def test_the_demo_runs():
    run = subprocess.run(
        [sys.executable, *COMMANDS["demo"]],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "all outputs are as expected" in run.stdout
    assert "%arena = memref.alloc()" in run.stdout
