"""Runs suites whose cases are Python expressions, and writes their page.

`jax_functions.py` and `torch_functions.py` are such suites.
"""

import argparse
import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from verdicts import Verdict, failures, summary


def names_in(expression: str, known: Collection[str]) -> list[str]:
    """The names of `known` that the expression uses, in alphabetical order."""
    nodes = ast.walk(ast.parse(expression, mode="eval"))
    return sorted({n.id for n in nodes if isinstance(n, ast.Name) and n.id in known})


def table(heading: str, prefix: str, verdicts: Mapping[str, Verdict]) -> str:
    """A table of cases and refusals, after `heading` with `passed` and `total`."""
    refused = {case: v.message for case, v in verdicts.items() if v.status != "pass"}
    rows = [f"| `{prefix}{case}` | {refused.get(case, '')} |" for case in verdicts]
    passed = len(verdicts) - len(refused)
    return heading.format(passed=passed, total=len(verdicts)) + "\n".join([*rows, ""])


def run(
    cases: Sequence[str],
    check: Callable[[str], Verdict],
    page: Path,
    text: Callable[[Mapping[str, Verdict]], str],
    description: str,
) -> int:
    """Judges the cases that the command line selects; returns the exit code."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--match", default="", help="only cases with this text")
    parser.add_argument("--write", action="store_true", help=f"write {page.name}")
    options = parser.parse_args()
    verdicts = {case: check(case) for case in cases if options.match in case}
    print(summary(verdicts, {n: v for n, v in verdicts.items() if v.status != "pass"}))
    if failures(verdicts):
        return 1
    if options.write and not options.match:
        page.write_text(text(verdicts))
    return 0
