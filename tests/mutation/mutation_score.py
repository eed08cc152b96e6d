"""Measures how many faults, planted one at a time in the checkers, the tests detect.

    python tests/mutation/mutation_score.py             every mutant of every module
    python tests/mutation/mutation_score.py ownership --every 5 --list

A mutant is a module with one change: an inverted comparison or condition, `and` for
`or`, a number off by one, another arithmetic operation, a statement or a negation left
out. Each mutant runs in a process forked after all modules are loaded. The process
replaces the code of the module's functions by the mutant's and runs the tests listed in
`TESTS` until one fails. Surviving mutants are printed, except those that no test can
kill: equivalent_mutants.py lists them with the reasons.
"""

import argparse
import ast
import copy
import gc
import os
import resource
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import NamedTuple

import pytest
from equivalent_mutants import EQUIVALENT

ROOT = Path(__file__).parents[2]
PATIENCE = 5  # limit of a mutant's CPU time, as a multiple of the tests' time

_CHECK, _RESULTS, _SYMBOLIC = (
    "tests/test_plan_check.py",
    "tests/test_plan_check_results.py",
    "tests/test_plan_check_symbolic.py",
)
_EFFECTS, _EXTENTS, _MEMORIES, _OPERANDS, _OWNERSHIP, _RANGES = (
    "tests/test_plan_check_effects.py",
    "tests/test_plan_check_extents.py",
    "tests/test_plan_check_memories.py",
    "tests/test_plan_check_operands.py",
    "tests/test_plan_check_ownership.py",
    "tests/test_plan_check_ranges.py",
)
_LINALG = "tests/test_linalg_memory.py"
TESTS = {
    "analysis/storage/arenas.py": ("tests/test_storage.py",),
    "analysis/storage/buffers.py": ("tests/test_storage.py",),
    "analysis/storage/lifetimes.py": ("tests/test_storage.py",),
    "analysis/storage/storage.py": ("tests/test_storage.py", "tests/test_assigns.py"),
    "planning/validate.py": ("tests/test_validate.py",),
    "planning/problem.py": ("tests/test_problem.py",),
    "checking/plan_check.py": (
        _CHECK,
        _EFFECTS,
        _EXTENTS,
        _MEMORIES,
        _OPERANDS,
        _RESULTS,
        _SYMBOLIC,
    ),
    "checking/buffers.py": (_MEMORIES, _RESULTS),
    "checking/memories.py": (_MEMORIES, _RESULTS, _SYMBOLIC),
    "checking/ranges.py": (_RANGES,),
    "checking/extents.py": (_EXTENTS,),
    "checking/effects.py": (_EFFECTS,),
    "checking/written.py": (_OWNERSHIP, _CHECK, _RESULTS),
    "checking/sharing.py": (_CHECK,),
    "checking/accesses.py": (_OWNERSHIP, _CHECK, _EFFECTS, _RESULTS, _SYMBOLIC),
    "checking/ownership.py": (_OWNERSHIP, _CHECK, _EFFECTS, _RESULTS, _SYMBOLIC),
    "checking/operands.py": (_OPERANDS,),
    "checking/unchecked.py": (_EFFECTS,),
    "checking/pointees.py": (_CHECK, _RESULTS, _OWNERSHIP, _MEMORIES),
    "checking/happens_before.py": ("tests/test_happens_before.py", _CHECK),
    "checking/caller_pools.py": (_RESULTS,),
    "checking/arenas.py": ("tests/test_arenas.py",),
    "checking/symbolic_plan.py": (_SYMBOLIC,),
    "dialects/linalg_memory.py": (_LINALG,),
    "dialects/memory.py": (
        "tests/test_transfers.py",
        _LINALG,
        "tests/test_dependencies.py",
        _RESULTS,
        _CHECK,
        "tests/test_embedding.py",
    ),
    "analysis/liveness.py": ("tests/test_liveness.py",),
    "analysis/control_flow.py": (
        "tests/test_control_flow.py",
        "tests/test_allocations.py",
    ),
    "analysis/forwarding.py": (
        "tests/test_control_flow.py",
        "tests/test_allocations.py",
    ),
    "analysis/allocations.py": ("tests/test_allocations.py",),
    "passes/plan/placement/output_reuse.py": ("tests/test_output_reuse.py",),
    "analysis/dependencies.py": ("tests/test_dependencies.py",),
}

MEMORY = 16 << 30  # bytes of address space

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
    module: str  # path
    line: int
    text: str  # text of the line
    change: str
    code: ast.Module


def mutants(module: str) -> Iterator[Mutant]:
    """Yields all mutants of a module, in the order of its lines."""
    source = (ROOT / module).read_text()
    lines, tree = source.splitlines(), ast.parse(source)
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
        text = lines[line - 1].strip()
        yield Mutant(module, line, text, f"{way}: {before[:70]}", changed)


def _code(node: ast.AST, in_function: bool = False) -> Iterator[ast.AST]:
    """Yields the code in functions, except types, decorators and `strict=` of `zip`."""
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
    """Whether `node` is a union of types, `A | B`."""
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
            if len(node.values) == 1:  # one operand is left
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
    """Replaces the code of the loaded module's functions by the mutant's."""
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
        if isinstance(before, type) and isinstance(value, type):
            if before.__module__ == module:
                _exchange(vars(before), vars(value), module)
        for was, now in zip(_functions(before), _functions(value), strict=False):
            if was.__module__ == module:
                was.__code__ = now.__code__
                was.__defaults__ = now.__defaults__
                was.__kwdefaults__ = now.__kwdefaults__


def _functions(value: object) -> Iterator[FunctionType]:
    match value:
        case FunctionType():
            yield value
        case staticmethod() | classmethod():
            yield from _functions(value.__func__)
        case property():
            yield from _functions(value.fget)
        case cached_property():
            yield from _functions(value.func)  # pyright: ignore[reportUnknownMemberType]
        case _:
            yield from (
                _functions(getattr(value, "__wrapped__", None))
                if hasattr(value, "__wrapped__")
                else ()
            )


def killed_by(tests: Sequence[str], mutant: Mutant | None, seconds: float) -> bool:
    """Whether a test fails on `mutant`, which is planted only in a child process. If
    `mutant` is None, the module is unchanged."""
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # kills the process
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            if mutant:
                plant(mutant)
        except Exception:  # the mutant can't be loaded
            os._exit(1)
        os._exit(run(tests))
    _, status = os.waitpid(child, 0)
    return status != 0


def run(tests: Sequence[str]) -> int:
    """Runs the tests quietly until one fails; returns pytest's exit code."""
    files = (str(ROOT / test) for test in tests)
    with open(os.devnull, "w") as quiet, redirect_stdout(quiet), redirect_stderr(quiet):
        return pytest.main(["-xq", "--assert=plain", "-pno:cacheprovider", *files])


class Score(NamedTuple):
    mutants: int = 0
    killed: int = 0
    equivalent: int = 0

    def __str__(self) -> str:
        rest = self.mutants - self.equivalent
        return (
            f"{self.mutants} mutants, {self.equivalent} equivalent, {self.killed} "
            f"killed: {100 * self.killed / max(rest, 1):.0f} %"
        )


def score(module: str, tests: Sequence[str], every: int, print_all: bool) -> Score:
    """Plants each `every`-th mutant of a module and prints survivors."""
    if run(tests):  # also loads all modules
        sys.exit(f"the tests of {module} fail without a mutant")
    gc.freeze()  # children need not collect existing objects
    start = _seconds()
    killed_by(tests, None, 3600)
    patience = 1 + PATIENCE * (_seconds() - start)
    equivalent = dict.fromkeys(EQUIVALENT.get(module, ()), False)
    counts = [0, 0, 0]
    for number, mutant in enumerate(mutants(module)):
        key = (mutant.text, mutant.change.partition(":")[0])
        if key in equivalent:
            equivalent[key] = True
        if number % every:
            continue
        counts[0] += 1
        is_killed = killed_by(tests, mutant, patience)
        counts[1] += is_killed
        counts[2] += not is_killed and key in equivalent
        if print_all or (not is_killed and key not in equivalent):
            word = "killed  " if is_killed else "survives"
            print(f"{word}  {module}:{mutant.line}: {mutant.change}", flush=True)
    for key, is_there in equivalent.items():
        if not is_there:
            print(f"{module} has no such mutant any longer: {key}")
    return Score(*counts)


def _seconds() -> float:
    """The CPU seconds of all child processes so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="parts of their paths")
    parser.add_argument("--every", type=int, default=1, help="each n-th mutant only")
    parser.add_argument("--list", action="store_true", help="print all mutants")
    options = parser.parse_args()
    os.chdir(ROOT)
    total = Score()
    for module, tests in TESTS.items():
        if options.modules and not any(part in module for part in options.modules):
            continue
        start = _seconds()
        found = score(module, tests, options.every, options.list)
        print(f"{module}: {found}, {_seconds() - start:.0f} s", flush=True)
        total = Score(*map(sum, zip(total, found, strict=True)))
    print(total)
    return 0


if __name__ == "__main__":
    sys.exit(main())
