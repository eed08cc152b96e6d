"""Tests the completion of command lines by TAB, in each installed shell."""

import re
import shutil
import subprocess
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest
from terminal import Terminal

pytest.importorskip("shtab")

STARTS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
SOURCE = {
    "bash": "PS1='> '; source {file}\n",
    "zsh": "PS1='> '; autoload -U compinit; compinit -u -D; eval \"$(<{file})\"\n",
    "fish": "function fish_prompt; echo '> '; end; source {file}\n",
}


def script(tool: str, shell: str) -> str:
    main = import_module(f"tensorplan.tools.{tool.replace('-', '_')}").main
    with redirect_stdout(StringIO()) as text:
        assert main(["--print-completion", shell]) == 0
    return text.getvalue()


@pytest.fixture(scope="module", params=STARTS)
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """The name of a shell, and its startup file."""
    if not shutil.which(request.param):
        pytest.skip(f"{request.param} is not installed")
    file = tmp_path_factory.mktemp("completion") / f"completion.{request.param}"
    file.write_text(script("plan-opt", request.param))
    return request.param, file


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("plan-opt --expl", "--explain"),
        ("plan-opt -p tgraph-schedu", "tgraph-schedule"),
        ("plan-opt -p 'plan-pipeline{eff", "plan-pipeline{effort="),
        ("plan-opt -p 'cse,plan-memory{strategy=inductor-r", "=inductor-reuse"),
        ("plan-opt --print-ir-after tgraph-sch", "tgraph-schedule"),
    ],
)
def test_completion_by_tab(shell: tuple[str, Path], typed: str, completed: str):
    name, file = shell
    with Terminal(STARTS[name], {"HOME": str(file.parent)}) as terminal:
        terminal.type(SOURCE[name].format(file=file))
        terminal.type("echo rea''dy\n")
        terminal.wait_for("\nready", 10.0)
        terminal.type(f"{typed}\t")
        terminal.wait_for(re.escape(completed), 5.0)


@pytest.mark.thorough
@pytest.mark.parametrize("tool", ["plan-audit", "plan-run", "plan-solve", "plan-view"])
def test_completion_scripts_of_other_tools(tool: str):
    run = subprocess.run(
        ["bash", "-n"], input=script(tool, "bash"), text=True, capture_output=True
    )
    assert (run.returncode, run.stderr) == (0, "")
