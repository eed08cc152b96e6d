"""Finds how kernels of Inductor use their operands, from their source in its code.

    kernels(module)["triton_poi_fused_add_0"]    # a `Use` for each parameter, in order

In C++ and in Triton, Inductor names parameters by their use: `in_ptr0` is read,
`out_ptr0` is written, and `in_out_ptr0` is updated. A workspace `ws_ptr` holds no value
before and after. In Triton, `mutated_arg_names` lists other updated parameters, except
operands of templates, `arg_A`. In C++, all other pointers to types that are not `const`
are updated. Does not: read kernels that users wrote, whose parameters have arbitrary
names, and kernels in other languages.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple


class Use(NamedTuple):
    """How a step uses the bytes of an operand."""

    reads: bool
    writes: bool
    must_hold: bool = False
    """Whether it surely reads them before it writes them, so they must hold a value."""


READ = Use(reads=True, writes=False, must_hold=True)
WRITTEN = Use(reads=False, writes=True)
UPDATED = Use(reads=True, writes=True)

_BY_USERS = "triton_heuristics.user_autotune("
_MUTATED = re.compile(r"'mutated_arg_names': (\[[^\]]*\])")
_NAME = re.compile(r"(\w+)\s*(?::[^:].*)?$")
_LOADED = re.compile(r"(\w*load\w*|\batomic_\w+)\([\s&]*$|=\s*$")
"""Matches the text before a pointer that is loaded; after `=`, a `[` must follow."""
_NEAR = 40  # the number of characters before an access that are searched


def kernels(module: ast.Module) -> Mapping[str, Sequence[Use]]:
    """The uses of the parameters of each kernel with its source in the code."""
    return dict(_kernels(module))


def _kernels(module: ast.Module) -> Iterator[tuple[str, Sequence[Use]]]:
    for item in module.body:
        match item:
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(func=ast.Attribute(attr=language), args=arguments),
            ):
                texts = [
                    argument.value
                    for argument in arguments
                    if isinstance(argument, ast.Constant)
                    and isinstance(argument.value, str)
                ]
                if texts and language == "triton":
                    yield from ((name, uses) for uses in _uses(texts[0], texts[-1]))
                if texts and language.startswith("cpp"):
                    yield from ((name, uses) for uses in _uses("kernel", texts[-1]))
            case _:
                pass


def _uses(entry: str, source: str) -> Iterator[Sequence[Use]]:
    """The uses of the parameters of `entry`; nothing for kernels of users."""
    found = re.search(rf"\b{re.escape(entry)}\(([^)]*)\)", source)
    if found is None or _BY_USERS in source:
        return
    mutated = _MUTATED.search(source)
    names: Collection[str] = ast.literal_eval(mutated[1]) if mutated else ()
    body = source[found.end() :]
    parts = [part for part in found[1].split(",") if part.strip()]
    yield [_use(part, names, body) for part in parts]


def _use(parameter: str, mutated: Collection[str], body: str) -> Use:
    found = _NAME.search(parameter)
    name = found[1] if found else ""
    if name in mutated or name.startswith(("in_out_ptr", "sem_ptr")):
        return UPDATED._replace(must_hold=_is_loaded_first(name, body))
    if name.startswith(("out_ptr", "ws_ptr")):
        return WRITTEN
    is_variable = "*" in parameter and "const" not in parameter
    return UPDATED if is_variable or name.startswith("arg_") else READ


def _is_loaded_first(name: str, body: str) -> bool:
    """Whether the first access to a pointer is a load."""
    found = re.search(rf"\b{name}\b", body)
    if found is None:
        return False
    loaded = _LOADED.search(body[max(0, found.start() - _NEAR) : found.start()])
    return loaded is not None and (
        loaded[1] is not None or body[found.end() : found.end() + 1] == "["
    )
