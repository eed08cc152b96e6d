"""How many faults, planted in the checkers one at a time, the tests notice.

    python tests/mutation_score.py                     every mutant of every module
    python tests/mutation_score.py ownership --every 5 --list

A mutant is a module with one change: a comparison or a condition turned round, `and`
for `or`, a number one off, an arithmetic operation for another, a statement or a
negation left out. Each runs in a process of its own, forked off where all is loaded,
which gives the module's functions the mutant's code; then the tests named in `TESTS`
run until one fails. Mutants that survive are printed; `EQUIVALENT` has those that no
test can kill, with the reason.
"""

import argparse
import ast
import copy
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import FunctionType
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SECONDS = 30  # of CPU time for one mutant's tests; a mutant that hangs is killed

_CHECK = ("tests/test_plan_check.py",)
_LIVENESS = ("tests/test_plan_memory_flow.py",)
TESTS = {
    "planning/validate.py": ("tests/test_validate.py",),
    "passes/plan_check.py": _CHECK,
    "passes/checking/ownership.py": _CHECK,
    "passes/checking/pointees.py": _CHECK,
    "passes/checking/happens_before.py": _CHECK,
    "passes/memory/liveness.py": _LIVENESS,
    "passes/memory/control_flow.py": _LIVENESS,
    "passes/memory/allocations.py": _LIVENESS,
}

EQUIVALENT = {
    ("planning/validate.py", 45): "any other number than 0 sorts behind it as well",
    ("planning/validate.py", 55): "more neighbours than the next ones share nothing",
}
"""(module, line) of mutants that behave as the original does: why."""

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


class Mutant(NamedTuple):
    module: str  # its path
    line: int
    change: str
    code: ast.Module


def mutants(module: str) -> Iterator[Mutant]:
    """Every module that is one change away, in the order of its text."""
    tree = ast.parse((ROOT / module).read_text())
    nodes = list(ast.walk(tree))
    code = set(_code(tree))
    found: list[tuple[int, int, str, str]] = []
    for index, node in enumerate(nodes):
        if node in code and isinstance(node, ast.expr | ast.stmt):
            before = ast.unparse(node).partition("\n")[0]
            found += ((node.lineno, index, way, before) for way in _ways(node))
    for line, index, way, before in sorted(found):
        changed = copy.deepcopy(tree)
        node = list(ast.walk(changed))[index]
        _change(node, way)
        ast.fix_missing_locations(changed)
        yield Mutant(module, line, f"{way}: {before[:70]}", changed)


def _code(node: ast.AST, in_function: bool = False) -> Iterator[ast.AST]:
    """What functions do: no types, no decorators, no `strict=` of `zip`."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or (
                isinstance(child, ast.keyword) and child.arg == "strict"
            ):
                continue
            inside = in_function or isinstance(node, ast.FunctionDef)
            if inside and isinstance(child, ast.expr | ast.stmt):
                yield child
            yield from _code(child, inside)


def _ways(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield "compare"
        case ast.BoolOp():
            yield "and/or"
            yield from (f"without part {n}" for n in range(len(node.values)))
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and not _is_type(node):
            yield "operator"
        case ast.UnaryOp(op=ast.Not()):
            yield "without not"
        case ast.Constant(value=int()) if not isinstance(node.value, bool):
            yield "one more"
        case ast.Constant(value=bool()):
            yield "the other"
        case ast.If() | ast.While() | ast.IfExp():
            yield "condition turned"
        case ast.Expr(value=ast.Call()) | ast.Continue() | ast.AugAssign():
            yield "left out"
        case _:
            pass


def _is_type(node: ast.BinOp) -> bool:
    """Whether this is a union of types, `A | B`."""
    return isinstance(node.op, ast.BitOr) and all(
        isinstance(side, ast.Name | ast.Attribute | ast.BinOp | ast.Constant)
        and ast.unparse(side).rpartition(".")[2][:1].isupper()
        for side in (node.left, node.right)
    )


def _change(node: ast.AST, way: str) -> None:
    match node:
        case ast.Compare(ops=[op]):
            node.ops = [COMPARISONS[type(op)]()]
        case ast.BoolOp(op=op) if way == "and/or":
            node.op = ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.BoolOp():
            del node.values[int(way.split()[-1])]
            if len(node.values) == 1:  # an operation on one value is that value
                node.values.append(node.values[0])
        case ast.BinOp(op=op):
            node.op = ARITHMETIC[type(op)]()
        case ast.UnaryOp():
            node.op = ast.Not()
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
        case ast.Constant(value=bool() as value):
            node.value = not value
        case ast.Constant(value=int() as value):
            node.value = value + 1
        case ast.If() | ast.While() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case _:
            node.__class__ = ast.Pass
            node.__dict__ = {
                k: v for k, v in node.__dict__.items() if k not in node._fields
            }


def plant(mutant: Mutant) -> None:
    """Gives the functions of the loaded module the code of the mutant's."""
    name = "tensorplan." + mutant.module.removesuffix(".py").replace("/", ".")
    module = sys.modules[name]
    changed = dict(vars(module))
    exec(compile(mutant.code, str(ROOT / mutant.module), "exec"), changed)
    _exchange(vars(module), changed, name)


def _exchange(
    old: Mapping[str, object], new: Mapping[str, object], module: str
) -> None:
    for name, value in list(new.items()):
        before = old.get(name)
        if getattr(before, "__module__", None) != module:
            continue
        if isinstance(before, type) and isinstance(value, type):
            _exchange(vars(before), vars(value), module)
        for was, now in zip(_functions(before), _functions(value), strict=False):
            was.__code__ = now.__code__
            was.__defaults__, was.__kwdefaults__ = now.__defaults__, now.__kwdefaults__


def _functions(value: object) -> Iterator[FunctionType]:
    match value:
        case FunctionType():
            yield value
        case staticmethod() | classmethod():
            yield from _functions(value.__func__)
        case property():
            yield from _functions(value.fget)
        case _:
            yield from (
                _functions(getattr(value, "__wrapped__", None))
                if hasattr(value, "__wrapped__")
                else ()
            )


def is_killed(mutant: Mutant, tests: Sequence[str]) -> bool:
    """Whether a test fails. The child process has the mutant, we stay as we are."""
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # ends the process
        try:
            plant(mutant)
        except Exception:  # the module cannot even be loaded
            os._exit(1)
        os._exit(run(tests))
    _, status = os.waitpid(child, 0)
    return status != 0


def run(tests: Sequence[str]) -> int:
    """Runs the tests quietly until one fails; returns pytest's exit code."""
    files = (str(ROOT / test) for test in tests)
    with open(os.devnull, "w") as quiet, redirect_stdout(quiet), redirect_stderr(quiet):
        return pytest.main(["-xq", "--assert=plain", "-pno:cacheprovider", *files])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="parts of their paths")
    parser.add_argument("--every", type=int, default=1, help="each n-th mutant only")
    parser.add_argument("--list", action="store_true", help="print all mutants")
    options = parser.parse_args()
    os.chdir(ROOT)
    wanted = options.modules or [""]
    total = killed = equivalent = 0
    for module, tests in TESTS.items():
        if not any(part in module for part in wanted):
            continue
        if run(tests):
            sys.exit(f"the tests of {module} fail without a mutant")
        start, before, dead = time.monotonic(), total, killed
        for number, mutant in enumerate(mutants(module)):
            if number % options.every:
                continue
            total += 1
            reason = EQUIVALENT.get((module, mutant.line))
            if is_killed(mutant, tests):
                killed += 1
                if options.list:
                    print(
                        f"killed    {module}:{mutant.line}: {mutant.change}", flush=True
                    )
            elif reason:
                equivalent += 1
            else:
                print(f"survives  {module}:{mutant.line}: {mutant.change}", flush=True)
        seconds = time.monotonic() - start
        print(
            f"{module}: {killed - dead} of {total - before} killed, {seconds:.0f} s",
            flush=True,
        )
    print(f"{killed} of {total} killed, {equivalent} equivalent")
    return 0


if __name__ == "__main__":
    sys.exit(main())
