"""The messages of all errors, collected from the source, for the pages in docs/errors/.

A comment in a page names the source files of its list; `pages` updates the list:

    <!-- messages: passes/tgraph/devices/placement.py passes/tgraph/gradients/*.py -->
    ...
    <!-- end of messages -->

A pattern matches only the files that no page names individually. In a list, `…` stands
for a value in a message.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PAGES = ROOT / "docs" / "errors"

FOLDERS = sorted(init.parent.name for init in ROOT.glob("*/__init__.py"))

ERRORS = {
    "BufferError",
    "ChoiceError",
    "CsvError",
    "FileError",
    "ForeignPlanError",
    "LocatedError",
    "LocatedVerifyError",
    "PlanViolation",
    "UsageError",
    "ValueError",
    "VerifyException",
    "_NotPlannable",  # becomes a remark
    "missing_extra_message",  # of support/extras.py
    "not_supported",  # of frontends/unsupported.py
    "raise_error",  # of xDSL's parser
}
"""The names of functions and classes that are called with a message for the user."""

_ONE_OF = "…, expected one of …"
"""The text that `choices.one_of` adds."""

_LIST = re.compile(r"(<!-- messages: (.*?) -->\n).*?(<!-- end of messages -->)", re.S)


def by_file() -> Mapping[str, list[str]]:
    """The messages of each source file that has any, by path."""
    found: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text())
            texts = [text for node in ast.walk(tree) for text in _messages(node)]
            if texts:
                found[path.relative_to(ROOT).as_posix()] = list(dict.fromkeys(texts))
    return found


def pages() -> Mapping[Path, str]:
    """The pages, with lists that match the current source."""
    texts = {page: page.read_text() for page in sorted(PAGES.glob("*.md"))}
    messages = by_file()
    named = {pattern for text in texts.values() for pattern in _patterns(text)}

    def written(match: re.Match[str]) -> str:
        lines: list[str] = []
        for file in _files(match[2].split(), named):
            lines += [f"- `{text}`" for text in messages.get(file, ())]
        listed = "\n".join(dict.fromkeys(lines))
        return f"{match[1]}\n{listed}\n\n{match[3]}"

    return {page: _LIST.sub(written, text) for page, text in texts.items()}


def listed() -> list[str]:
    """The source files of all lists."""
    patterns = [_patterns(page.read_text()) for page in sorted(PAGES.glob("*.md"))]
    named = {pattern for of_page in patterns for pattern in of_page}
    return [file for of_page in patterns for file in _files(of_page, named)]


def _patterns(page: str) -> list[str]:
    return [pattern for _, files, _ in _LIST.findall(page) for pattern in files.split()]


def _files(patterns: Sequence[str], named: Set[str]) -> Iterator[str]:
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            file = path.relative_to(ROOT).as_posix()
            if file == pattern or file not in named:
                yield file


def _part(part: ast.expr) -> str:
    match part:
        case ast.Constant(value=text):
            return str(text)
        case ast.FormattedValue(value=ast.Call(func=ast.Name(id="one_of"))):
            return _ONE_OF
        case _:
            return "…"


def _messages(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.Call) or not node.args:
        return
    called = node.func
    name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
    if name in ERRORS:
        for text in _texts(node.args[0]):
            if name == "ChoiceError":
                text = f"{text} is {_ONE_OF}"
            if name == "missing_extra_message":
                (extra,) = _texts(node.args[1])
                text += f": pip install '.[{extra}]' in tensorplan's checkout (…)"
            if name == "not_supported":
                text += " is not supported"
            if re.search(r"[a-z]{2}", text):
                yield text.replace("\n", " ").replace("`", "'").strip()


def _texts(node: ast.expr) -> list[str]:
    """The possible texts of an expression; empty if the source does not show them."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return ["".join(map(_part, parts))]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            ends = _texts(right) or ["…"]
            return [start + end for start in _texts(left) or ["…"] for end in ends]
        case ast.IfExp(body=body, orelse=other):
            return [*_texts(body), *_texts(other)]
        case _:
            return []
