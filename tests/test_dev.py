"""Tests dev.py: it lists its commands, the programs that they run exist, and
interrupted installations are repeated.

The tests do not create environments.
"""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("dev", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DEV = load(ROOT / "dev.py")
COMMANDS = DEV.COMMANDS


def test_usage_names_all_commands():
    run = subprocess.run([sys.executable, ROOT / "dev.py"], capture_output=True)
    assert run.returncode == 1
    assert f"dev.py {'|'.join((*COMMANDS, *DEV.SEVERAL))} " in run.stderr.decode()


@pytest.mark.parametrize("name", COMMANDS)
def test_programs_of_commands_exist(name: str):
    match COMMANDS[name]:
        case ["-m", module, *_]:
            assert find_spec(module)
        case [path]:
            assert (ROOT / path).exists()
        case arguments:
            assert not arguments


@pytest.mark.parametrize(
    ("arguments", "marks"),
    [(["--all", "-k", "x"], ["-m", "not slow"]), (["-k", "x"], [])],
)
def test_all_adds_the_thorough_tests(
    arguments: list[str], marks: list[str], monkeypatch: pytest.MonkeyPatch
):
    commands: list[list[str]] = []
    monkeypatch.setattr(DEV, "install", lambda environment: None)
    monkeypatch.setattr(DEV, "link_package", lambda: None)
    monkeypatch.setattr(
        DEV.subprocess, "call", lambda command, cwd: commands.append(command)
    )
    monkeypatch.setattr(sys, "argv", ["dev.py", "test", *arguments])
    DEV.main()
    assert commands[0][1:] == [*COMMANDS["test"], "-k", "x", *marks]


def test_files_of_short_tests_exist():
    files = [a for command in DEV.SHORT_TESTS for a in command if "tests/" in a]
    assert len(files) > 5
    for file in files:
        assert (ROOT / file).exists()
    for folder in DEV.LIT_FOLDERS:
        assert (ROOT / "lit_tests" / folder).is_dir()


def test_oldest_versions_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lowest = dict(re.findall(r"(\w+)>=([\d.]+)", " ".join(project["dependencies"])))
    pinned = dict(re.findall(r"(\w+)==(\d+\.\d+)", " ".join(DEV.OLDEST.packages)))
    assert pinned == lowest


# Installing


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """dev.py in a separate checkout with an empty environment."""
    for name in ("dev.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    module = load(tmp_path / "dev.py")

    def make_folder(environment: object) -> list[str]:
        module.FULL.python.parent.mkdir(parents=True, exist_ok=True)
        module.FULL.python.touch()
        return []

    monkeypatch.setattr(module, "make_folder", make_folder)
    return module


def interrupt(command: object) -> int:
    raise KeyboardInterrupt


def test_installs_once(dev: ModuleType, monkeypatch: pytest.MonkeyPatch):
    commands: list[list[str]] = []
    monkeypatch.setattr(dev, "run_pip", commands.append)
    dev.install(dev.FULL)
    dev.install(dev.FULL)
    (command,) = commands
    assert ".[dev]" in command
    (dev.ROOT / "pyproject.toml").write_text("[project]")
    dev.install(dev.FULL)
    assert len(commands) == 2


def test_demo_installs_no_development_tools(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    commands: list[list[str]] = []
    monkeypatch.setattr(dev, "run_pip", commands.append)
    monkeypatch.setattr(dev.subprocess, "call", lambda *_, **__: 0)

    def installed(*arguments: str) -> list[str]:
        commands.clear()
        monkeypatch.setattr(sys, "argv", ["dev.py", *arguments])
        assert dev.main() == 0
        return [c for command in commands for c in command if c.startswith(".")]

    assert installed("demo") == ["."]
    assert installed("plan-opt") == []
    assert installed("test") == [".[dev]"]
    assert installed("demo") == []


def test_output_of_pip_names_packages(capfd: pytest.CaptureFixture[str]):
    lines = "Collecting xdsl\n  Downloading xdsl (4 MB)\nInstalling xdsl, numpy\n"
    code = DEV.run_pip([sys.executable, "-c", f"print({lines!r}, end='')"])
    assert (code, capfd.readouterr().err) == (
        0,
        "Collecting xdsl\nInstalling xdsl, numpy\n",
    )


def test_exit_code_of_pip(dev: ModuleType, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dev, "run_pip", lambda command: 3)
    for _ in range(2):
        with pytest.raises(SystemExit, match="3"):
            dev.install(dev.FULL)


def test_interrupted_installation_is_repeated(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(dev, "run_pip", interrupt)
    monkeypatch.setattr(sys, "argv", ["dev.py", "demo"])
    assert dev.main() == 130
    half = dev.FULL.folder / "half-installed"
    half.touch()
    monkeypatch.setattr(dev, "run_pip", lambda command: 0)
    dev.install(dev.FULL)
    assert dev.FULL.python.exists()
    assert not half.exists()


def test_environment_of_the_user_is_kept(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    dev.make_folder(dev.FULL)
    theirs = dev.FULL.folder / "theirs"
    theirs.touch()
    monkeypatch.setattr(dev, "run_pip", lambda command: 0)
    dev.install(dev.FULL)
    assert theirs.exists()


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (["venv", "ensurepip"], "dev.py: this Python has no venv"),
        (["ensurepip", "pip"], "dev.py: this Python has no pip"),
    ],
)
def test_error_for_a_python_without_venv_or_pip(
    missing: list[str], message: str, tmp_path: Path
):
    for name in ("dev.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    program = (
        f"import runpy, sys; sys.modules.update(dict.fromkeys({missing}));"
        "sys.argv = ['dev.py', 'demo']; runpy.run_path('dev.py', run_name='__main__')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 1
    *_, last = run.stderr.splitlines()
    assert last == f"{message} (Debian: apt install python3-venv)"
