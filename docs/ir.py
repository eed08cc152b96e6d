"""The reference pages on passes and the dialect, from docstrings and definitions."""

import ast
import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import chain, groupby, pairwise
from types import ModuleType

from docstrings import capitalized, code, escaped, from_docstring, page, table
from xdsl.irdl import IRDLOperation, OpDef
from xdsl.passes import ModulePass, get_pass_option_infos

from tensorplan.dialects.tgraph import TGraph, base, differentiation
from tensorplan.dialects.tgraph.base import TensorOp, VariableType
from tensorplan.passes import get_all_passes
from tensorplan.passes.options import documented


def passes() -> str:
    return page(
        "Passes",
        "This page describes every pass: its input, its output and its options. "
        "`docs/generate.py` writes it from the docstrings.",
        "Run passes with `plan-opt -p 'a,b{option=value}'`. In Python, a pass is a "
        "frozen dataclass, and `tensorplan.passes.get_all_passes()` returns all passes "
        "by name. The page lists passes in the order in which a pipeline runs them; "
        "`plan-pipeline` runs the default sequence. [The architecture]"
        "(../architecture.md#levels-of-ir) explains the levels of IR.",
        "Each example shows the IR before the pass, then the IR after it.",
        *(_pass(name, factory()) for name, factory in get_all_passes().items()),
    )


def _pass(name: str, cls: type[ModulePass]) -> str:
    text = inspect.getdoc(import_module(cls.__module__)) or ""
    text = text.removeprefix(f"`{name}`: ")
    told = documented(cls)
    rows: list[tuple[str, ...]] = []
    for info in get_pass_option_infos(cls):
        if info.name not in told:
            sys.exit(
                f"the docstring of {cls.__name__} does not say what {info.name} is"
            )
        default = "" if info.default_value is None else str(info.default_value)
        option = code(info.name.replace("_", "-"))
        kind = code(str(info.expected_type))
        rows.append(
            (option, kind, code(default), escaped(capitalized(told[info.name])))
        )
    options = table(("option", "type", "default", ""), rows) if rows else "No options."
    return f"## {name}\n\n{from_docstring(capitalized(text))}\n\n{options}"


def dialect() -> str:
    parts: list[str] = []
    ops = sorted(TGraph.operations, key=lambda op: (op.__module__, op.name))
    for module, group in groupby(ops, key=lambda op: op.__module__):
        text = inspect.getdoc(import_module(module)) or ""
        title, _, rest = text.partition("\n")
        parts += [f"## {escaped(title.rstrip('.:'))}", from_docstring(rest)]
        parts += [_operation(op) for op in group if issubclass(op, IRDLOperation)]
    return page(
        "The dialect tgraph",
        "This page describes every type, attribute and operation of the dialect. "
        "`docs/generate.py` writes it from the definitions.",
        from_docstring(
            (inspect.getdoc(import_module("tensorplan.dialects.tgraph.base")) or "")
            .partition("\n\n")[2]
            .rpartition("\n\n")[0]
        ),
        "Fusion patterns are those of TVM. The result may reuse the memory of an "
        "*overwritable* operand. Only the shape of a *shape-only* operand is used, "
        "not its elements.",
        "## Types\n\n### !tgraph.variable",
        from_docstring(VariableType.__doc__ or ""),
        "## Attributes",
        table(
            ("attribute", "meaning"), chain(*map(_attributes, (base, differentiation)))
        ),
        *parts,
    )


def _attributes(module: ModuleType) -> Iterator[tuple[str, str]]:
    """The attribute names that are constants of a module, with their docstrings."""
    body = ast.parse(inspect.getsource(module)).body
    for statement, below in pairwise(body):
        match statement, below:
            case (
                ast.Assign(value=ast.Constant(value=str(attribute))),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield code(attribute), escaped(text)
            case _:
                pass


def _operation(op: type[IRDLOperation]) -> str:
    definition = op.get_irdl_definition()
    parts = [f"### {op.name}"]
    if op.__doc__ and op.__doc__ != getattr(op.__base__, "__doc__", None):
        parts.append(from_docstring(op.__doc__))
    facts = list(_tensor_facts(op) if issubclass(op, TensorOp) else _facts(definition))
    if definition.regions:
        names = ", ".join(code(name) for name, _ in definition.regions)
        facts.append(f"regions: {names}")
    attributes = [n for n in definition.properties if n != "operandSegmentSizes"]
    if attributes:
        facts.append(f"attributes: {', '.join(map(code, attributes))}")
    parts.append("\n".join(f"- {fact}" for fact in facts))
    return "\n\n".join(parts)


def _tensor_facts(op: type[TensorOp]) -> Iterator[str]:
    yield f"operands: {_count(op.ARITY)}; results: {_count(op.RESULTS)}"
    yield f"fusion pattern: {op.PATTERN.name.lower().replace('_', ' ')}"
    if op.overwritable is not TensorOp.overwritable:
        yield "has overwritable operands"
    if op.SHAPE_ONLY:
        yield f"shape-only operands: {', '.join(map(str, op.SHAPE_ONLY))}"
    for name, value in op.DEFAULTS.items():
        yield f"`{name}` defaults to `{value}`"


def _count(number: int | None) -> str:
    return "any number" if number is None else str(number)


def _facts(definition: OpDef) -> Iterator[str]:
    for what, given in (
        ("operands", definition.operands),
        ("results", definition.results),
    ):
        if given:
            yield f"{what}: {', '.join(code(name) for name, _ in given)}"
