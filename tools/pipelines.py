"""Parses pipelines of passes for `-p`: `pass,pass{option=value option=value}`.

The syntax is xDSL's, with three additions: spaces are allowed, mlir-opt's
`builtin.module(...)` is accepted, and errors name the wrong pass or option.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xdsl.passes import ModulePass, get_pass_option_infos
from xdsl.utils.arg_spec import ArgSpec, ParameterListType, parse_pipeline

from ..passes.options import BYTES
from ..support.choices import one_of, suggest
from .common import OPTION_ERRORS, UsageError

Passes: TypeAlias = Mapping[str, Callable[[], type[ModulePass]]]


def parse(text: str, known: Passes) -> Sequence[ModulePass]:
    """The passes that `text` names.

    Raises `UsageError` or xDSL's `ArgSpecParseError`.
    """
    # xDSL's lexer rejects sizes such as 1.5MiB unless they are quoted.
    text = re.sub(r"(=\s*)(\d+\.\d+[A-Za-z]+)(?=[}\s])", r'\1"\2"', text)
    # Quoted strings and xDSL's [pipelines] for mlir-opt are kept. Passes that are
    # anchored at an operation (`func.func(...)`) run on the module here.
    text = re.sub(
        r'("(?:\\.|[^"\\])*"|\[[^\]]*\])|\s*([,{}=])\s*|(?:\w+\.\w+|any)\s*\(|\)',
        lambda match: match[1] or match[2] or "",
        text.strip(),
    )
    return [_instantiate(spec, known) for spec in parse_pipeline(text)]


def check_name(name: str, known: Passes) -> None:
    """Raises `UsageError` if no pass has this name."""
    if name not in known:
        hint = suggest(name, list(known))
        raise UsageError(f"unknown pass {name!r}{hint} (--list-passes lists them)")


def _instantiate(spec: ArgSpec, known: Passes) -> ModulePass:
    check_name(spec.name, known)
    cls = known[spec.name]()
    spec = spec.normalize_parameter_names()
    types = {info.name: info.expected_type for info in get_pass_option_infos(cls)}
    for option in spec.parameters:
        if option not in types:
            word = option.replace("_", "-")
            if not types:
                raise UsageError(f"pass {spec.name} has no options, got {word!r}")
            options = [name.replace("_", "-") for name in types]
            raise UsageError(
                f"pass {spec.name} has no option {one_of(word, options)}"
                + "; values with spaces are in double quotes"
                * (not spec.parameters[option])
            )
    given = {k: _numbers(v, types[k]) for k, v in spec.parameters.items()}
    spec = ArgSpec(spec.name, given)
    try:
        for option in sorted(given.keys() & set(BYTES)):
            given[option] = _bytes(option, given[option])
        return cls.from_spec(spec)
    except OPTION_ERRORS as error:
        raise UsageError(_explain(error, spec, cls, types)) from None


def _bytes(option: str, values: ParameterListType) -> ParameterListType:
    """Converts text such as `64MiB` to a number of bytes. Raises `ValueError`."""
    from ..support.byte_sizes import parse_size

    name = option.replace("_", "-")
    return tuple(parse_size(v, name) if isinstance(v, str) else v for v in values)


def _numbers(values: ParameterListType, expected: str) -> ParameterListType:
    """Converts integers to floats if the option expects a float."""
    if not expected.startswith("float"):
        return values
    return tuple(float(v) if type(v) is int else v for v in values)


def _explain(
    error: Exception, spec: ArgSpec, cls: type[ModulePass], types: Mapping[str, str]
) -> str:
    """The message for `error`, with the wrong option: without it there is no error."""
    if missing := sorted(cls.required_fields() - spec.parameters.keys()):
        return f"pass {spec.name} requires the option {missing[0].replace('_', '-')!r}"
    if not str(error).startswith(("Incompatible types", "Argument must")):
        return f"pass {spec.name}: {error}"
    for option, values in spec.parameters.items():
        others = {k: v for k, v in spec.parameters.items() if k != option}
        try:
            cls.from_spec(ArgSpec(spec.name, others))
        except ValueError:
            continue
        got = ",".join(map(str, values))
        return (
            f"pass {spec.name}: option {option.replace('_', '-')!r} is {got!r}, "
            f"expected {types[option]}"
        )
    return f"pass {spec.name}: {error}"
