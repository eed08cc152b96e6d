"""Converts docstrings to Markdown, and builds Markdown pages and tables."""

import inspect
import re
from collections.abc import Iterable, Sequence
from itertools import groupby

_LABEL = re.compile(r"\s*\b(Numerics|Needs|Leaves|Does not):")
"""A label that starts a paragraph."""


def from_docstring(text: str) -> str:
    """A docstring as Markdown; indented paragraphs become blocks of code."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
    parts: list[str] = []
    for is_code, group in groupby(paragraphs, lambda p: p.startswith("    ")):
        if is_code:
            parts.append(fenced(inspect.cleandoc("\n" + "\n\n".join(group))))
        else:
            parts += [_LABEL.sub(r"\n\n**\1:**", escaped(p)).strip() for p in group]
    return "\n\n".join(parts)


def fenced(code: str) -> str:
    """A fenced block of code, whose language is `mlir` if it looks like IR."""
    is_ir = re.search(r"^\s*(func\.func|memref\.|tgraph\.|%\w+ =|scf\.)", code, re.M)
    return f"```{'mlir' if is_ir else 'text'}\n{code}\n```"


def escaped(text: str) -> str:
    """Text with Markdown's characters escaped, except between backticks."""
    pieces = re.split(r"(``[^`]+``|`[^`]+`)", text)
    return "".join(p if p.startswith("`") else _escaped(p) for p in pieces)


def _escaped(text: str) -> str:
    text = re.sub(r"^ *\* ", "- ", text, flags=re.M)  # lists stay lists
    return re.sub(r"([<>*_\[\]|$])", r"\\\1", text)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(c) for c in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"(?<!\\)\|", r"\\|", text)).strip()


def code(text: str) -> str:
    """Text as inline code; empty text stays empty."""
    return f"`{text}`" if text else ""


def capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def page(title: str, *parts: str) -> str:
    return "\n\n".join((f"# {title}", *filter(None, parts))) + "\n"
