"""The fields of `PlanOptions` as command-line options, with help from its docstring."""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields
from typing import Any, get_args, get_type_hints

from ..passes.options import BYTES, PlanOptions, documented
from .arguments import byte_count

_MEANING = documented(PlanOptions)
_HINTS = get_type_hints(PlanOptions)


def add_plan_options(
    group: argparse._ArgumentGroup,  # pyright: ignore[reportPrivateUsage]
    further: Mapping[str, str] | None = None,
) -> None:
    """Adds an option for each field of `PlanOptions`.

    `further` maps a field to text that its help shows instead of the default.
    """
    for field in fields(PlanOptions):
        more = (further or {}).get(field.name, "")
        group.add_argument(
            option_of(field.name),
            **_kind(field.name, _HINTS[field.name]),
            default=argparse.SUPPRESS,
            help=_help(field, more),
        )


def given_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The planning options given on the command line, as keywords of `PlanOptions`."""
    given = vars(arguments)
    return {name: given[name] for name in _HINTS if name in given}


def option_of(name: str) -> str:
    """The command-line option of a field."""
    return f"--{name.replace('_', '-')}"


def _kind(name: str, hint: Any) -> dict[str, Any]:
    if name in BYTES:
        return {"type": byte_count}
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    if hint == tuple[str, ...]:
        return {"type": _words}
    kinds = get_args(hint) or (hint,)
    return {"type": next(kind for kind in (str, float, int) if kind in kinds)}


def _words(text: str) -> Sequence[str]:
    return tuple(word.strip('"') for word in text.split(","))


def _help(field: Field[Any], more: str) -> str:
    text = re.sub(r"\s+", " ", _MEANING[field.name]).rstrip(".")
    if not more and field.default not in (None, "", ()):
        more = f" (default: {str(field.default).lower()})"
    return f"{text}{more}".replace("%", "%%")
