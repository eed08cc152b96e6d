"""Writes the generated files: reference pages, lists of errors, and a drawing.

python docs/generate.py           # writes the files that are out of date
python docs/generate.py --check   # lists these files; exits with 1 if there are any
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import drawings
import interfaces
import ir
import messages

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent


def pages() -> Mapping[Path, str]:
    """The text of each generated file."""
    reference = DOCS / "reference"
    return {
        reference / "passes.md": ir.passes(),
        reference / "commands.md": interfaces.commands(),
        reference / "dialect.md": ir.dialect(),
        reference / "strategies.md": interfaces.strategies(),
        reference / "python.md": interfaces.python(),
        reference / "plan-json.md": interfaces.plan_json(),
        **messages.pages(),
        **({drawings.DRAWING: drawings.drawing()} if drawings.is_possible() else {}),
    }


def main(arguments: Sequence[str]) -> int:
    texts = pages()
    stale = [
        path
        for path, text in texts.items()
        if not path.exists() or path.read_text() != text
    ]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(DOCS.parent)} is out of date")
        if stale:
            print("run: python3 dev.py docs")
        return bool(stale)
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(texts[path])
        print(f"wrote {path.relative_to(DOCS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
