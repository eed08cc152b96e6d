"""The reference pages on commands, strategies, the plan as JSON, and Python."""

import argparse
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from docstrings import capitalized, code, escaped, from_docstring, page, table

import tensorplan
from tensorplan.integrations import minimalloc, tflm
from tensorplan.planning import STRATEGIES
from tensorplan.tools import (
    plan_audit,
    plan_opt,
    plan_run,
    plan_serve,
    plan_solve,
    plan_view,
)
from tensorplan.tools.arguments import EXIT_CODES


def commands() -> str:
    parsers = (
        plan_audit.make_parser(),
        plan_opt.make_parser(),
        plan_run.make_parser(),
        plan_serve.make_parser(),
        plan_solve.make_parser(),
        plan_view.make_parser(),
        minimalloc.make_parser(),
        tflm.make_parser(),
    )
    return page(
        "Commands",
        "This page lists every option of the commands. `docs/generate.py` writes "
        "it from their parsers.",
        "Exit codes: 0 success, 1 invalid input, 2 usage error, 70 internal error, 130 "
        "interrupted, 141 closed output pipe. `-` is stdin or stdout. Files are "
        "written atomically. The commands use colors only on a terminal; `NO_COLOR=1` "
        "disables colors, and `CLICOLOR_FORCE=1` enables them everywhere.",
        "With the extra `completion`, `--print-completion` prints a shell script that "
        "completes options, and also passes, their options and strategies inside `-p`. "
        'Use `eval "$(plan-opt --print-completion bash)"`, the same with `zsh`, or '
        "`plan-opt --print-completion fish | source`.",
        *map(_command, parsers),
    )


def _command(parser: argparse.ArgumentParser) -> str:
    # argparse has no public way to list the arguments of a parser.
    parts = [f"## {parser.prog}", _text(parser.description or "")]
    for group in vars(parser)["_action_groups"]:
        actions = cast("list[argparse.Action]", vars(group)["_group_actions"])
        shown = (each for each in actions if each.help != argparse.SUPPRESS)
        rows = [_argument(action, parser.prog) for action in shown]
        if rows:
            parts += [f"**{capitalized(group.title)}**", table(("", ""), rows)]
    if examples := (parser.epilog or "").removesuffix(EXIT_CODES):
        parts.append(_text(capitalized(examples)))
    return "\n\n".join(parts)


def _text(text: str) -> str:
    """Help text of a parser as Markdown; its indented lines become code."""
    text = text.replace(":\n  ", ":\n\n  ")
    return from_docstring("\n" + re.sub(r"^  ", "    ", text, flags=re.M))


def _argument(action: argparse.Action, prog: str) -> tuple[str, str]:
    metavar = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else None
    )
    if action.nargs == 0:
        value = ""
    elif action.option_strings:
        value = f" {metavar or action.dest.upper()}"
    else:
        value = str(metavar or action.dest)
    names = ", ".join(action.option_strings) + value
    is_version = "--version" in action.option_strings
    text = action.help or ("print the version and exit" if is_version else "")
    text %= {**vars(action), "prog": prog}
    return code(names), escaped(capitalized(text))


def strategies() -> str:
    parts: list[str] = []
    for name, function in STRATEGIES.items():
        parts.append(f"## {name}\n\n{from_docstring(function.__doc__ or '')}")
    return page(
        "Strategies",
        "This page describes every planning strategy and names its source. "
        "`docs/generate.py` writes it from the docstrings.",
        "[Planning strategies compared](../planning.md) compares their results and "
        "running times. Choose a strategy with `plan-memory{strategy=NAME}`, `plan-run "
        "--strategy NAME` or `plan-solve --strategy NAME`. A package can "
        "[add its own](../embedding.md#a-strategy-of-your-own).",
        *parts,
    )


SCHEMA = Path(tensorplan.__file__).parent / "tools/plan.schema.json"


def plan_json() -> str:
    schema = json.loads(SCHEMA.read_text())
    parts = [f"## The file\n\n{_properties(schema)}"]
    for name, each in schema["properties"].items():
        content = each
        while content and "properties" not in content:
            content = content.get("items") or content.get("additionalProperties")
        if content:
            description = each["description"]
            parts.append(f"## {name}\n\n{description}\n\n{_properties(content)}")
    return page(
        "The plan as JSON",
        "This page describes what `plan-opt -t json` writes. `docs/generate.py` writes "
        "it from the JSON Schema, `tools/plan.schema.json` in the installed package.",
        schema["description"],
        *parts,
    )


def _properties(schema: Mapping[str, Any]) -> str:
    """A table of the properties of a schema."""
    optional = schema["properties"].keys() - schema["required"]
    rows = [
        (
            code(name),
            _type_name(each) + (", optional" if name in optional else ""),
            each["description"],
        )
        for name, each in schema["properties"].items()
    ]
    return table(("field", "type", "what it is"), rows)


def _type_name(schema: Mapping[str, Any]) -> str:
    if "const" in schema:
        return code(str(schema["const"]))
    if "enum" in schema:
        return ", ".join(map(code, schema["enum"]))
    if "items" in schema:
        return f"array of {_type_name(schema['items'])}"
    return schema["type"]


PUBLIC = {
    "tensorplan": tensorplan.__all__,
    "tensorplan.runtime.callable": ("CallableProgram",),
    "tensorplan.runtime.executor": ("Executable",),
    "tensorplan.reporting.explanation": ("Explanation",),
    "tensorplan.reporting.checkpoints": ("CheckpointPolicy",),
    "tensorplan.reporting.torch_checkpoints": ("TorchCheckpointPolicy",),
    "tensorplan.reporting.kept_values": ("KeptValue",),
    "tensorplan.planning": (
        *("Buffer", "Problem", "Limits", "Placement", "Plan"),
        *("solve", "validate", "strategy"),
    ),
    "tensorplan.dialects.memory": ("ViewLike", "DestinationStyle", "Elementwise"),
    "tensorplan.dialects.diagnostics": ("LocatedError",),
}
"""The names on which other programs may rely, by module."""


def python() -> str:
    parts: list[str] = []
    for module, names in PUBLIC.items():
        parts.append(f"## {module}")
        for name in names:
            member = getattr(import_module(module), name)
            parts += _class(member) if inspect.isclass(member) else [_function(member)]
    return page(
        "Python",
        "This page documents the stable Python API. `docs/generate.py` writes it from "
        "the docstrings.",
        "[Embedding](../embedding.md) shows the API in use.",
        *parts,
    )


def _class(cls: type) -> Iterator[str]:
    """A class: its docstring, its fields if it has any, and its public methods."""
    yield f"### {cls.__name__}"
    yield from_docstring(cls.__doc__ or "")
    if fields := _fields(cls):
        yield f"```python\n{fields}\n```"
    for attribute in inspect.classify_class_attrs(cls):
        if attribute.defining_class is not cls or attribute.name.startswith("_"):
            continue
        member = getattr(cls, attribute.name)
        if not (text := member.__doc__):
            continue
        if isinstance(member, property | cached_property):
            yield f"`{attribute.name}`: {from_docstring(text)}"
        elif attribute.kind.endswith("method"):
            yield _function(member, "####")


def _fields(cls: type) -> str:
    """The fields of a dataclass or a named tuple, as written in the source."""
    source = inspect.getsource(cls) if "__annotations__" in vars(cls) else ""
    fields = re.findall(r"^    [a-z]\w*: .*(?:\n(?!    [\w@]).+)*", source, re.M)
    return inspect.cleandoc("\n" + "\n".join(fields))


def _function(function: Callable[..., object], level: str = "###") -> str:
    name = function.__name__
    signature = str(inspect.signature(function))
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)  # annotations
    signature = re.sub(r"([A-Za-z_]\w*\.)+(?=\w)", "", signature)
    text = from_docstring(function.__doc__ or "")
    return f"{level} {name}\n\n```text\n{name}{signature}\n```\n\n{text}"
