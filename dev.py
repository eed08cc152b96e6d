#!/usr/bin/env python3
"""One command from a fresh checkout: `python3 dev.py demo`, `python3 dev.py test`.

Makes `.venv`, installs this project into it, and runs the command there. The first
command that needs the development tools installs them. Needs Python 3.11+ with pip;
writes nothing outside the checkout.

`test` runs the tests that a change must pass before it is committed, in parallel;
`test --all` also runs the tests marked `thorough`, as CI does. pytest gets the other
arguments.

`test-oldest` and `test-newest` run short tests of passes and planners with the oldest
and the newest xDSL and NumPy that pyproject.toml allows, without optional packages, in
`.venv-oldest` and `.venv-newest`.
"""

import sys

if sys.version_info < (3, 11):
    sys.exit(
        "dev.py: Python 3.11 or later is needed, this is " + sys.version.split()[0]
    )

import hashlib
import re
import shutil
import subprocess
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent
UNFINISHED = "unfinished"

COMMANDS = {
    "demo": ["-m", "tensorplan.tools.demo", "build/demo.html"],
    "docs": ["docs/build.py"],
    # The tests of a file share their fixtures.
    "test": ["-m", "pytest", "-n", "auto", "--maxprocesses=8", "--dist=loadfile"],
    "fuzz": ["tests/fuzz"],
    "plan-audit": ["-m", "tensorplan.tools.plan_audit"],
    "plan-opt": ["-m", "tensorplan.tools.plan_opt"],
    "plan-run": ["-m", "tensorplan.tools.plan_run"],
    "plan-serve": ["-m", "tensorplan.tools.plan_serve"],
    "plan-solve": ["-m", "tensorplan.tools.plan_solve"],
    "plan-view": ["-m", "tensorplan.tools.plan_view"],
    "python": [],
}
FOR_USERS = (
    *("demo", "plan-audit", "plan-opt", "plan-run", "plan-serve", "plan-solve"),
    "plan-view",
)
"""Commands that need no development tools."""

ALL_TESTS = ["-m", "not slow"]  # pyproject.toml leaves out the thorough ones, too

PAGES = ("README.md", "CONTRIBUTING.md", "docs", "--skip=*.py,*.svg,docs/reference")

# pyright without arguments also checks the tests, which takes as long again.
TYPED = (
    *(file.name for file in sorted(ROOT.glob("*.py"))),
    *(file.parent.name for file in sorted(ROOT.glob("[!.]*/__init__.py"))),
    *("benchmarks", "docs"),
)

LINT = [
    ["-m", "ruff", "check"],
    ["-m", "ruff", "format", "--check"],
    ["-c", "from importlinter import cli; cli.lint_imports_command()"],
    ["-m", "pyright", *TYPED],
    ["-m", "codespell_lib"],
    ["-m", "codespell_lib", "--builtin=clear,rare,en-GB_to_en-US", *PAGES],
]

LIT_FOLDERS = (
    *("plan-check/", "plan-in-place/", "plan-memory/", "plan-pipeline/"),
    "tgraph-bufferize/",
)
SHORT_TESTS = [
    # Through pytest, lit's commands run in forks of one process.
    ["-m", "pytest", "--quiet", "tests/test_lit.py", "-k", " or ".join(LIT_FOLDERS)],
    [
        *("-m", "pytest", "--quiet"),
        *(f"tests/test_{name}.py" for name in ("packaging", "planning", "embedding")),
        *(f"tests/test_{name}.py" for name in ("plan_check", "reference", "executor")),
    ],
]


class Environment(NamedTuple):
    """A folder into which Python packages are installed."""

    folder: Path
    packages: list[str]

    @property
    def python(self) -> Path:
        windows = sys.platform == "win32"
        return self.folder / ("Scripts/python.exe" if windows else "bin/python")

    @property
    def stamp(self) -> Path:
        """A file that describes the installation, or says that it is unfinished."""
        return self.folder / "installed-from"

    @property
    def finished(self) -> str:
        """The contents of `stamp` after installation for this pyproject.toml."""
        project = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
        return "\n".join((project, *self.packages))


BASE = Environment(ROOT / ".venv", ["--editable", "."])
FULL = Environment(BASE.folder, ["--editable", ".[dev]"])
"""All packages of BASE and more, in the same folder."""
NEWEST = Environment(
    ROOT / ".venv-newest",
    ["--editable", ".", "filecheck", "hypothesis", "lit", "pytest"],
)
OLDEST = Environment(
    ROOT / ".venv-oldest",
    # NumPy 1.26 is the oldest of pyproject.toml, but has no wheels for newer Pythons.
    [*NEWEST.packages, "xdsl==0.69.*", "numpy==1.26.0; python_version < '3.13'"],
)
SEVERAL = {
    "lint": (FULL, LINT),
    "test-oldest": (OLDEST, SHORT_TESTS),
    "test-newest": (NEWEST, SHORT_TESTS),
}
"""Names for several commands, and the environment that they run in."""


def install(environment: Environment) -> None:
    """Installs the packages, unless they are installed for this pyproject.toml."""
    folder, packages = environment
    stamp = environment.stamp
    found = stamp.read_text() if stamp.exists() else ""
    is_there = environment.python.exists()
    if is_there and found in (environment.finished, FULL.finished):
        return
    print(f"dev.py: installing into {folder}", file=sys.stderr)
    if folder.exists() and (found == UNFINISHED or not is_there):
        shutil.rmtree(folder)  # from an interrupted installation
    folder.mkdir(exist_ok=True)
    stamp.write_text(UNFINISHED)
    pip = make_folder(environment)
    options = ["--disable-pip-version-check", "--progress-bar", "off"]
    # Python compiles the modules that are imported; pip would compile all, in seconds.
    options += ["--no-compile"]
    # Installs pip, too, which is missing if the system's pip installs the packages.
    if code := run_pip([*pip, "install", *options, *packages, "pip"]):
        sys.exit(code)
    stamp.write_text(environment.finished)


def link_package() -> None:
    """Links the checkout under the package's name, where pyright finds it: pyright does
    not use the import hooks of editable installations.
    """
    link = FULL.folder / "typing" / "tensorplan"
    if not link.is_symlink():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(Path("..", ".."), target_is_directory=True)


def make_folder(environment: Environment) -> list[str]:
    """Creates the environment; returns the command that runs pip for it."""
    if not find_spec("venv"):
        sys.exit("dev.py: this Python has no venv (Debian: apt install python3-venv)")
    import venv

    # Debian and Ubuntu have ensurepip in a separate package (python3-venv), and their
    # pip installs only into environments. If ensurepip is missing, the environment is
    # made without pip, and the system's pip installs into it.
    python = str(environment.python)
    if find_spec("ensurepip"):
        venv.create(environment.folder, with_pip=True)
        return [python, "-m", "pip"]
    if find_spec("pip"):
        venv.create(environment.folder, with_pip=False)
        return [sys.executable, "-m", "pip", "--python", python]
    sys.exit("dev.py: this Python has no pip (Debian: apt install python3-venv)")


STEPS = re.compile(r"(Collecting|Installing) .*")
"""Matches the lines that pip prints once for each package, and once for all."""


def run_pip(command: list[str]) -> int:
    """Runs pip and prints its progress, on a terminal in one line; returns the code."""
    clear, end = ("\033[K", "\r") if sys.stderr.isatty() else ("", "\n")
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as pip:
        for line in filter(STEPS.match, pip.stdout or ()):
            print(clear + line.rstrip()[:79], end=end, file=sys.stderr, flush=True)
    print(clear, end="", file=sys.stderr, flush=True)
    return pip.returncode


def main() -> int:
    name, *arguments = sys.argv[1:] or [""]
    if name in SEVERAL:
        environment, commands = SEVERAL[name]
    elif name in COMMANDS:
        environment = BASE if name in FOR_USERS else FULL
        commands = [COMMANDS[name]]
    else:
        choices = "|".join((*COMMANDS, *SEVERAL))
        usage = f"usage: python3 dev.py {choices} [ARGUMENT ...]\n\n{__doc__}"
        if name in ("help", "-h", "--help"):
            with suppress(BrokenPipeError):  # of `dev.py --help | head -1`
                print(usage, flush=True)
            return 0
        sys.exit(f"dev.py: unknown command {name!r}\n{usage}" if name else usage)
    if name == "test" and "--all" in arguments:
        arguments.remove("--all")
        arguments += ALL_TESTS
    # The tools take paths relative to the current folder, the others to the root.
    at_root = name in ("demo", "docs", "fuzz", "test", *SEVERAL)
    try:
        install(environment)
        if environment is FULL:
            link_package()
        for command in commands:
            command = [str(environment.python), *command, *arguments]
            if code := subprocess.call(command, cwd=ROOT if at_root else None):
                return code
    except KeyboardInterrupt:  # the command has reported it
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
