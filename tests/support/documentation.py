"""Runs the code blocks of a Markdown page from top to bottom and checks their output.

A page runs in a new folder with links to `examples`, `tests` and `benchmarks`.

    ```console     commands after `$ `, each followed by its output. `...` matches any
                   text. The output may omit remarks. If FILE does not exist,
                   `$ cat FILE` writes it with this output, so pages define inputs.
    ```python      runs in one process per page; the next block may be its ```output
    ```sh          commands whose output is not compared
    ```mlir, text, c, ...   not run

An HTML comment on the line above a block, invisible to readers, says why the block is
not run, or when:

    <!-- not run: REASON -->    <!-- needs: mlir-opt, jax -->    <!-- takes minutes -->

A block that takes minutes runs with `-m slow`. `needs` lists commands and Python
packages.
"""

import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent.parent

LINKED = ("benchmarks", "examples", "tests")


class Block(NamedTuple):
    language: str
    text: str
    line: int  # number of its first line
    directive: str = ""  # text of the comment above it

    def says(self, word: str) -> str | None:
        """The text after `word:`, empty if there is none; None for other directives."""
        name, _, value = self.directive.partition(":")
        return value.strip() if name == word else None


DIRECTIVES = ("", "not run", "needs", "takes minutes")


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    fence = re.compile(r"^(?:<!-- (.*) -->\n)?```([^\n`]*)\n((?s:.*?))^```$", re.M)
    text = page.read_text()
    for match in fence.finditer(text):
        line = text.count("\n", 0, match.start(2)) + 2
        block = Block(match[2].strip(), match[3], line, match[1] or "")
        assert block.directive.partition(":")[0] in DIRECTIVES, f"{page}:{line - 2}"
        found.append(block)
    return found


class Page:
    """Runs the blocks of `page` in `folder`, with the folder `tools` on the PATH."""

    def __init__(self, page: Path, folder: Path, tools: Path):
        self.page, self.folder = page, folder
        for linked in LINKED:
            (folder / linked).symlink_to(ROOT / linked)
        paths = (tools, Path(sys.executable).parent, os.environ.get("PATH", ""))
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join(map(str, paths)),
            "COLUMNS": "80",
            "LC_ALL": "C.UTF-8",
            # Suppresses pip's notice of new versions, which depends on the date.
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",  # jaxlib's log
        }
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def run(self, slow: bool) -> None:
        printed: str | None = None  # by the last Python block
        for block in blocks(self.page):
            if block.language == "output":
                if printed is not None:
                    self.compare(block.line, "this program", printed, block.text)
                continue
            printed = None
            if self.is_left_out(block, slow):
                continue
            if block.language == "python":
                printed = self.python(block)
            elif block.language == "console":
                self.console(block)
            elif block.language == "sh":
                script = f"set -eo pipefail\n{block.text}"
                self.shell(script, block.line, may_fail=False)

    def is_left_out(self, block: Block, slow: bool) -> bool:
        if block.says("not run") is not None:
            assert block.says("not run"), f"{self.at(block.line)}: no reason"
            return True
        if block.says("takes minutes") is not None and not slow:
            return True
        needed = re.findall(r"[\w.-]+", block.says("needs") or "")
        return any(not shutil.which(n) and not find_spec(n) for n in needed)

    def python(self, block: Block) -> str:
        code = compile("\n" * (block.line - 1) + block.text, str(self.page), "exec")
        out = io.StringIO()
        with chdir(self.folder), redirect_stdout(out):
            exec(code, self.names)
        return out.getvalue()

    def console(self, block: Block) -> None:
        for line, command, expected in commands(block):
            shown = re.fullmatch(r"cat (\S+)", command)
            if shown and not (self.folder / shown[1]).exists():
                (self.folder / shown[1]).write_text(expected)
                continue
            got = self.shell(command, line, may_fail="error:" in expected)
            self.compare(line, command, got, expected)

    def shell(self, command: str, line: int, *, may_fail: bool) -> str:
        run = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert may_fail or run.returncode == 0, f"{self.at(line)}: {run.stdout}"
        return run.stdout

    def compare(self, line: int, what: str, got: str, expected: str) -> None:
        if "remark: " not in expected:
            got = re.sub(r".*remark: .*\n", "", got)
        pattern = re.escape(stripped(expected)).replace(r"\.\.\.", ".*?")
        matches = re.fullmatch(pattern, stripped(got), re.S)
        assert matches, f"{self.at(line)}: {what} prints\n{got}\nexpected\n{expected}"

    def at(self, line: int) -> str:
        return f"{self.page}:{line}"


def commands(block: Block) -> Iterator[tuple[int, str, str]]:
    """Yields the line number, the text and the expected output of each command."""
    lines = block.text.splitlines(keepends=True)
    starts = [n for n, line in enumerate(lines) if line.startswith("$ ")]
    assert starts, f"line {block.line}: no command"
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        following = start + 1
        while lines[following - 1].endswith("\\\n"):
            following += 1
        command = "".join(lines[start:following])[2:].strip()
        yield block.line + start, command, "".join(lines[following:end])


def stripped(text: str) -> str:
    """Removes trailing spaces from lines, and empty lines at both ends."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
