"""Builds the site in a folder, build/docs by default: `python docs/build.py [FOLDER]`.

Updates the generated pages first. A warning of Sphinx is an error.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parent


def main(arguments: Sequence[str]) -> int:
    target = Path(arguments[0]) if arguments else DOCS.parent / "build" / "docs"
    python = sys.executable
    for command in (
        [python, DOCS / "generate.py"],
        [python, "-m", "sphinx", "--fail-on-warning", "--quiet", DOCS, target],
    ):
        if code := subprocess.call(command):
            return code
    print(f"the site is in {target}: open {target / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
