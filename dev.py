#!/usr/bin/env python3
"""One command from a fresh checkout: `python3 dev.py demo`, or `python3 dev.py test`.

Makes `.venv`, installs this project into it with its development tools, and runs the
command there. Needs Python 3.11+ with pip; writes nothing outside the checkout.
"""

import sys

if sys.version_info < (3, 11):
    sys.exit(
        "dev.py: Python 3.11 or later is needed, this is " + sys.version.split()[0]
    )

import hashlib
import importlib.util
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
STAMP = VENV / "installed-from"

COMMANDS = {
    "demo": ["-m", "tensorplan.tools.demo"],
    "docs": ["docs/build.py"],
    "test": ["-m", "pytest"],
    "fuzz": ["tests/fuzz"],
    "plan-opt": ["-m", "tensorplan.tools.plan_opt"],
    "plan-run": ["-m", "tensorplan.tools.plan_run"],
    "plan-solve": ["-m", "tensorplan.tools.plan_solve"],
    "plan-view": ["-m", "tensorplan.tools.plan_view"],
    "python": [],
}


def install() -> None:
    """Installs into `.venv`, unless that was done for this pyproject.toml."""
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted:
        return
    print(f"dev.py: installing into {VENV}", file=sys.stderr)
    # Debian and Ubuntu keep ensurepip in a package of its own (python3-venv) and let
    # no pip install outside an environment. Where ensurepip is missing, make an
    # environment without pip and have the system's pip install into it.
    packages = ["--editable", ".[dev]"]
    if importlib.util.find_spec("ensurepip"):
        venv.create(VENV, with_pip=True)
        pip = [str(PYTHON), "-m", "pip"]
    elif importlib.util.find_spec("pip"):
        venv.create(VENV, with_pip=False)
        pip = [sys.executable, "-m", "pip", "--python", str(PYTHON)]
        packages.append("pip")
    else:
        sys.exit("dev.py: this Python has no pip (Debian: apt install python3-venv)")
    options = ["--quiet", "--disable-pip-version-check"]
    code = subprocess.call([*pip, "install", *options, *packages], cwd=ROOT)
    if code:
        sys.exit(code)
    STAMP.write_text(wanted)


def main() -> None:
    name, *arguments = sys.argv[1:] or ["help"]
    if name not in COMMANDS:
        choices = "|".join(COMMANDS)
        sys.exit(f"usage: python3 dev.py {choices} [ARGUMENT ...]\n\n{__doc__}")
    install()
    # The tools take paths relative to where they are called; the others know the root.
    folder = ROOT if name in ("demo", "docs", "fuzz", "test") else None
    command = [str(PYTHON), *COMMANDS[name], *arguments]
    try:
        sys.exit(subprocess.call(command, cwd=folder))
    except KeyboardInterrupt:  # the command has said what there is to say
        sys.exit(130)


if __name__ == "__main__":
    main()
