"""Tests the tools: help, versions, colors, suggestions, and exit codes."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from terminal import Terminal

TOOLS = ("plan-audit", "plan-opt", "plan-run", "plan-serve", "plan-solve", "plan-view")
PROGRAM = """\
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.negate %b : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
"""


def command(tool: str, *args: str) -> list[str]:
    module = f"tensorplan.tools.{tool.replace('-', '_')}"
    return [sys.executable, "-m", module, *args]


Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(served_tools: Path) -> Run:
    """Runs a tool with arguments, and with environment variables as keywords."""

    def run(tool: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [served_tools / tool, *args],
            capture_output=True,
            text=True,
            env={**os.environ, "COLUMNS": "80", **env},
        )

    return run


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    """A file with an error."""
    file = tmp_path / "wrong.mlir"
    file.write_text(PROGRAM)
    return str(file)


@pytest.mark.parametrize("tool", TOOLS)
def test_help_fits_80_columns(run: Run, tool: str):
    help = run(tool, "--help")
    assert (help.returncode, help.stderr) == (0, "")
    assert help.stdout.startswith(f"usage: {tool} [OPTION ...]")
    assert [line for line in help.stdout.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        *((tool, ["--help"]) for tool in TOOLS),
        *((f"plan-{tool}", ["buffers.csv"]) for tool in ("audit", "solve", "view")),
    ],
)
def test_a_command_without_ir_does_not_load_xdsl(
    tool: str, args: list[str], tmp_path: Path
):
    """The command loads neither xDSL's IR nor NumPy nor Numba, which would take longer
    than the rest of the run."""
    (tmp_path / "buffers.csv").write_text("id,lower,upper,size,offset\na,0,2,8,0\n")
    code = (
        f"import sys, tensorplan.tools.{tool.replace('-', '_')} as tool\n"
        f"assert tool.main({args}) == 0\n"
        "print({'numba', 'numpy', 'xdsl.ir'} & sys.modules.keys())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert (run.stdout[-6:], run.stderr) == ("set()\n", "")


SELDOM_NEEDED = (
    *("email", "jax", "multiprocessing.connection", "numba", "onnx", "tomllib"),
    *("tensorplan.frontends.stablehlo.conversion", "tensorplan.runtime.profile"),
    "xdsl.dialects.linalg",
)


@pytest.mark.parametrize(
    ("tool", "args", "loaded"),
    [("plan-opt", ["-p", "plan-pipeline"], {"email"}), ("plan-run", [], set[str]())],
)
def test_tools_load_only_needed_modules(tool: str, args: list[str], loaded: set[str]):
    """plan-opt extends xdsl-opt, which needs `email` for its version."""
    example = Path(__file__).parent.parent / "examples" / "classifier.mlir"
    code = (
        f"import sys, tensorplan.tools.{tool.replace('-', '_')} as tool\n"
        f"assert tool.main({[str(example), *args]}) == 0\n"
        f"print(*{{*{SELDOM_NEEDED}}} & sys.modules.keys(), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, set(run.stderr.split())) == (0, loaded)


@pytest.mark.parametrize("tool", TOOLS)
def test_version_names_xdsl_and_python(run: Run, tool: str):
    pattern = rf"{tool} [\d.]+ \(xdsl 0\.\d+\.\d+, Python 3\.\d+\.\w+\)\n"
    for option in ("--version", "-V", "-v"):
        assert re.fullmatch(pattern, run(tool, option).stdout)


def test_plan_opt_has_every_option_of_xdsl_opt(run: Run):
    theirs = subprocess.run(
        [sys.executable, "-m", "xdsl.tools.xdsl_opt", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    ours = run("plan-opt", "--help")
    options = set(
        re.findall(r"(?<![\w-])--[a-z-]+", theirs.stdout.partition("\n\n")[0])
    )
    assert len(options) > 10
    assert options - set(re.findall(r"(?<![\w-])--[a-z-]+", ours.stdout)) == set()


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (("plan-opt", "--exlain"), "--explain"),
        (("plan-opt", "-t", "c-heade"), "c-header"),
        (("plan-opt", "-p", "tgraph-fuze"), "tgraph-fuse"),
        (("plan-opt", "--help-pass", "tgraph-fuze"), "tgraph-fuse"),
        (("plan-opt", "--plan-memry"), "--plan-memory"),
        (("plan-opt", "--plan-memory=strat=auto"), "strategy"),
        (("plan-opt", "-p", "plan-memory{strat=auto}"), "strategy"),
        (("plan-opt", "-p", "plan-memory{strategy=auot}"), "auto"),
        (("plan-opt", "-p", "plan-pipeline{effort=hgih}"), "high"),
        (("plan-opt", "--explain=jsno"), "json"),
        (("plan-run", "--levle", "planned", "x"), "--level"),
        (("plan-run", "--level", "plannd", "x"), "planned"),
        (("plan-solve", "--strategy", "greedy-by-sise", os.devnull), "greedy-by-size"),
        (("plan-view", "--compare", "naiv", os.devnull), "naive"),
    ],
)
def test_suggestions(run: Run, args: tuple[str, ...], meant: str):
    done = run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"did you mean {meant!r}?" in done.stderr
    assert done.stderr.startswith(f"{args[0]}: error: ")


def test_suggestion_for_an_unknown_device(run: Run, tmp_path: Path):
    file = tmp_path / "program.mlir"
    text = PROGRAM.replace("%b", '%a {tgraph.device = "gpu:O"}')
    file.write_text(text)
    places = 'tgraph-place-devices{default="gpu:0" devices="gpu:0","cpu:0"}'
    done = run("plan-opt", str(file), "-p", places)
    assert done.returncode == 1
    assert "did you mean 'gpu:0'?" in done.stderr


class TestColors:
    def test_not_in_a_pipe(self, run: Run, wrong: str):
        assert "\x1b" not in run("plan-opt", wrong).stderr

    def test_forced(self, run: Run, wrong: str):
        error = run("plan-opt", wrong, CLICOLOR_FORCE="1").stderr
        place, source, caret = error.splitlines()
        assert "\x1b[1;31merror:\x1b[m" in place
        assert "\x1b" not in source
        assert caret.endswith("\x1b[1;32m^\x1b[m")

    def test_no_color_wins(self, run: Run, wrong: str):
        assert (
            "\x1b"
            not in run("plan-opt", wrong, CLICOLOR_FORCE="1", NO_COLOR="1").stderr
        )

    @pytest.mark.parametrize(
        ("env", "colored"),
        [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    )
    def test_on_a_terminal(self, wrong: str, env: dict[str, str], colored: bool):
        env = {"NO_COLOR": "", "CLICOLOR_FORCE": "", **env}
        with Terminal(command("plan-opt", wrong), env, keep_escapes=True) as terminal:
            code, text = terminal.rest()
        assert code == 1
        assert "%b is not defined" in text
        assert ("\x1b[" in text) is colored

    def test_ir_has_none(self, tmp_path: Path):
        file = tmp_path / "program.mlir"
        file.write_text(PROGRAM.replace("%b", "%a"))
        arguments = command("plan-opt", str(file))
        with Terminal(arguments, {"NO_COLOR": ""}, keep_escapes=True) as terminal:
            code, text = terminal.rest()
        assert code == 0
        assert "tgraph.negate %a" in text
        assert "\x1b" not in text


class TestEnds:
    """Tests tools that are interrupted or terminated, or cannot read or write."""

    def test_ctrl_c(self, tmp_path: Path):
        out = tmp_path / "out.mlir"
        with Terminal(command("plan-opt", "-", "-o", str(out))) as terminal:
            terminal.wait_till_it_reads()
            terminal.type("\x03")
            code, text = terminal.rest()
        assert code == 130
        note = "note: reading from the terminal; Ctrl-D ends it, --help says more"
        assert text.replace("^C", "").strip() == note
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "tool", [t for t in TOOLS if t not in ("plan-audit", "plan-serve")]
    )
    def test_tools_do_not_wait_for_a_terminal(self, tool: str):
        with Terminal(command(tool)) as terminal:
            code, text = terminal.rest()
        assert code == 2
        assert "is missing, and stdin is a terminal ('-' reads from it)" in text

    def test_ctrl_c_at_the_start(self):
        """Ctrl-C ends a tool silently while `start`, the entry point of the installed
        commands, loads modules."""
        program = (
            "import sys, importlib; from tensorplan.tools import start\n"
            "def slow(name): raise KeyboardInterrupt\n"
            "start.import_module = slow\n"
            "sys.exit(start.plan_opt())"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True)
        assert (done.returncode, done.stderr) == (130, b"")

    def test_terminated_while_it_writes(self, tmp_path: Path):
        """The old file stays, and no temporary file is left."""
        out = tmp_path / "out.mlir"
        out.write_text("old")
        program = (
            "import os, signal, sys\n"
            "from tensorplan.tools import common\n"
            "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
            "sys.exit(common.guard('plan-opt', lambda: "
            f"common.write_atomically({str(out)!r}, b'new') or 0))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True)
        assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, b"")
        assert [file.name for file in tmp_path.iterdir()] == ["out.mlir"]
        assert out.read_text() == "old"

    @pytest.mark.parametrize("args", [("--help",), ("--list-passes",)])
    def test_output_to_a_closed_pipe(self, args: tuple[str, ...]):
        nobody, pipe = os.pipe()
        os.close(nobody)
        with open(pipe, "w") as out:
            done = subprocess.run(
                command("plan-opt", *args), stdout=out, stderr=subprocess.PIPE
            )
        assert (done.returncode, done.stderr) == (141, b"")

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
    def test_a_full_disk(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                command("plan-opt", "--help"), stdout=full, stderr=subprocess.PIPE
            )
        assert done.returncode == 1
        assert done.stderr == b"plan-opt: error: no space left on device\n"

    @pytest.mark.parametrize(
        ("closed", "args", "code"),
        [
            ("<&-", ["-"], 1),
            (">&-", ["--list-strategies"], 1),
            ("2>&-", ["--list-strategies"], 0),
        ],
    )
    def test_closed_files(self, closed: str, args: list[str], code: int):
        shell = ["sh", "-c", f'"$@" {closed}', "sh", *command("plan-solve", *args)]
        done = subprocess.run(shell, capture_output=True, text=True)
        assert done.returncode == code
        assert done.stderr == "plan-solve: error: bad file descriptor\n" * code


def test_in_a_pipe_errors_follow_earlier_output(tmp_path: Path):
    """The order holds without PYTHONUNBUFFERED, as on most machines."""
    (tmp_path / "right.mlir").write_text(
        PROGRAM.replace("%b", "%a").replace("@f", "@main")
    )
    for seed, options in (("1", "--outputs"), ("2", "--expect")):
        run = subprocess.run(
            command("plan-run", "right.mlir", "--seed", seed, options, "one.npz"),
            cwd=tmp_path,
            env={n: v for n, v in os.environ.items() if n != "PYTHONUNBUFFERED"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    assert run.returncode == 1
    assert re.match(r"1 step .*\nplan-run: error: ", run.stdout), run.stdout
