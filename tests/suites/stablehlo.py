"""Imports, plans and runs StableHLO's own tests.

    python tests/suites/stablehlo.py FOLDER... [--match TEXT] [--sample N] [--write]

FOLDER holds `.mlir` files of openxla/stablehlo: `stablehlo/tests/interpret`, or
`stablehlo/testdata` (exported by JAX). A case is a function that checks values by
`check.expect_*` operations or by custom calls with these names. Its constants become
arguments of the program, unless shapes depend on them. Each case is one of:

- pass: the checked values are as expected;
- refused: `LocatedError`, the documented answer to what is not supported;
- wrong: other values, types or shapes;
- internal: any other exception;
- unread: jaxlib can't parse it (an operation of the interpreter dialect, a quantized
  type), or the expected value is not a constant. These cases do not count.

Floats that must be close or almost equal may differ by 3 units in the last place or,
like sums in another order, by 64 times the machine epsilon of the largest element. The
exit code is 1 if a case is wrong or internal. Otherwise `--write` writes
`docs/reference/stablehlo.md`, a table.
"""

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import ml_dtypes
import numpy as np
import verdicts
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func as func_dialect
from verdicts import Arrays, Verdict

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.frontends import bytecode

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "stablehlo.md"

_SEPARATOR = re.compile(r"^// -----.*$", re.MULTILINE)
_CHECK = re.compile(
    r"check\.(?P<kind>expect_\w+?)(?P<const>_const)? (?P<value>%[\w#]+),\s*"
    r"(?P<expected>%[\w#]+|dense<[^>]*>)(, \w+ = (?P<limit>\S+))?\s*: "
    r"(?P<type>tensor<\S+)( \{tolerance = (?P<tolerance>\S+) : f64\})?.*"
)
_PREFIX = "check."
_PLACE = r"\S+"


class Check(NamedTuple):
    """How a result is checked: the kind of check, its limit, and the expected value."""

    kind: str
    limit: float | None
    expected: np.ndarray


class Case(NamedTuple):
    name: str
    text: str
    """The program with its constants."""

    open_text: str
    """The program with arguments instead of constants."""

    inputs: Arrays
    checks: Sequence[Check]
    operations: Sequence[tuple[str, str]]
    """The names of operations, and the element types of their first operands."""


def read(folders: Sequence[Path], match: str = "") -> tuple[list[Case], dict[str, str]]:
    """All cases, and for cases and parts of files that cannot be read, the reason by
    name."""
    cases: list[Case] = []
    unread: dict[str, str] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.mlir")):
            for number, part in enumerate(_SEPARATOR.split(path.read_text())):
                name = f"{path.relative_to(folder).with_suffix('')}#{number}"
                if match in name:
                    cases += _cases(name, _with_custom_calls(part), unread)
    return cases, unread


def _with_custom_calls(part: str) -> str:
    """Rewrites `check` operations to custom calls, as in the tests from JAX."""

    def rewritten(found: re.Match[str]) -> str:
        type, expected, constant = found["type"].rstrip(","), found["expected"], ""
        if found["const"]:
            expected = f"%expected{found.start()}"
            constant = f"{expected} = stablehlo.constant {found['expected']} : {type}\n"
        limit = found["limit"] or found["tolerance"]
        attributes = f'backend_config = "{limit or ""}", has_side_effect = true'
        return (
            f"{constant}stablehlo.custom_call @{_PREFIX}{found['kind']}"
            f"({found['value']}, {expected}) {{{attributes}}} : ({type}, {type}) -> ()"
        )

    return _CHECK.sub(rewritten, part)


def _cases(name: str, part: str, unread: dict[str, str]) -> Iterator[Case]:
    with bytecode.context() as context:
        try:
            module = ir.Module.parse(part, context)
        except ir.MLIRError as error:
            unread[name] = error.error_diagnostics[0].message
            return
        names = [_name(f) for f in module.body.operations if _checks_in(f)]
        for index, function in enumerate(names):
            if index:
                module = ir.Module.parse(part, context)
            program = {_name(f): f for f in module.body.operations}
            for other in names:
                if other != function:
                    program.pop(other).operation.erase()
            full = f"{name}/{function}" if len(names) > 1 else name
            try:
                yield _case(full, module, program, program[function])
            except ValueError as error:
                unread[full] = str(error)


def _name(function: Any) -> str:
    return cast(str, function.attributes["sym_name"].value)


def _checks_in(function: Any) -> list[Any]:
    return [op for op in function.regions[0].blocks[0].operations if _is_check(op)]


def _is_check(op: Any) -> bool:
    if op.operation.name != "stablehlo.custom_call":
        return False
    return op.attributes["call_target_name"].value.startswith(_PREFIX)


def _case(
    name: str, module: ir.Module, functions: Mapping[str, Any], function: Any
) -> Case:
    """The case of a function. Raises `ValueError` if an expected value is unknown."""
    block = function.regions[0].blocks[0]
    checks: list[Check] = []
    values: list[Any] = []
    for op in _checks_in(function):
        value, expected = op.operands
        checks.append(_check(op, _constant(expected, functions)))
        values.append(value)
        op.operation.erase()
    _returning(function, values)
    operations = [
        (op.operation.name, _element(op))
        for each in functions.values()
        for op in each.regions[0].blocks[0].operations
    ]
    text = str(module)
    inputs: list[np.ndarray] = []
    for op in list(block.operations):
        known = [_constant(result, functions) for result in op.results]
        if known and all(array is not None for array in known):
            for result, array in zip(op.results, known, strict=True):
                argument = block.add_argument(result.type, op.location)
                result.replace_all_uses_with(argument)
                inputs.append(cast(np.ndarray, array))
            op.operation.erase()
    _returning(function, list(block.operations[len(block.operations) - 1].operands))
    return Case(name, text, str(module), inputs, checks, operations)


def _element(op: Any) -> str:
    values = [*op.operands, *op.results]
    type = values[0].type if values else None
    return str(type.element_type) if isinstance(type, ir.RankedTensorType) else ""


def _returning(function: Any, values: Sequence[Any]) -> None:
    """Makes the function `@main`, and makes it return only `values`."""
    block = function.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1]
    with ir.InsertionPoint(end), end.location:
        func_dialect.ReturnOp(values)
    end.operation.erase()
    arguments = [argument.type for argument in block.arguments]
    type = ir.FunctionType.get(arguments, [value.type for value in values])
    function.attributes["function_type"] = ir.TypeAttr.get(type)
    function.attributes["sym_name"] = ir.StringAttr.get("main")
    function.attributes["sym_visibility"] = ir.StringAttr.get("public")
    for name in ("arg_attrs", "res_attrs"):
        if name in function.attributes:
            del function.attributes[name]


def _check(op: Any, expected: np.ndarray | None) -> Check:
    if expected is None:
        raise ValueError("it checks for what is not a constant")
    limit = (
        op.attributes["backend_config"].value
        if "backend_config" in op.attributes
        else ""
    )
    kind = op.attributes["call_target_name"].value.removeprefix(_PREFIX)
    return Check(kind, float(limit) if limit else None, expected)


def _constant(value: Any, functions: Mapping[str, Any]) -> np.ndarray | None:
    """The elements of a constant, or of a constant that a called function without
    arguments returns; None for other values."""
    if not isinstance(value, ir.OpResult):
        return None
    op = cast(Any, value.owner)
    if op.name == "stablehlo.constant":
        return array_of(str(op), ir.RankedTensorType(value.type))
    if op.name != "func.call" or len(op.operands):
        return None
    block = functions[op.attributes["callee"].value].regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1]
    return _constant(end.operands[value.result_number], functions)


_NAMES: Sequence[tuple[str, str]] = (
    (r"i1", "bool"),
    (r"(u?)i(2|4|8|16|32|64)", r"\1int\2"),
    (r"bf16", "bfloat16"),
    (r"f(16|32|64)", r"float\1"),
    (r"f(\d)(E\w+)", r"float\1_\2"),
    (r"complex<f32>", "complex64"),
    (r"complex<f64>", "complex128"),
)


def dtype_of(element: str) -> np.dtype[Any]:
    """The type of NumPy or ml_dtypes for the name of an element type."""
    for pattern, name in _NAMES:
        if found := re.fullmatch(pattern, element):
            name = found.expand(name).lower()
            return np.dtype(getattr(ml_dtypes, name, name))
    raise ValueError(f"it has constants of type {element}")


def array_of(text: str, type: Any) -> np.ndarray:
    """The elements of the dense attribute in an operation's text, parsed without
    tensorplan."""
    dtype = dtype_of(str(type.element_type))
    dense = re.search(r"dense<(.*?)> : ", text, re.DOTALL)
    if dense is None:
        raise ValueError("it has constants that are not dense")
    if dense[1].startswith('"0x'):
        data = np.frombuffer(bytes.fromhex(dense[1][3:-1]), dtype)
    else:
        part = dtype.type(0).real.dtype if dtype.kind == "c" else dtype
        words = re.findall(r"[^][(),\s]+", dense[1])
        data = np.array([_number(word, part) for word in words], part).view(dtype)
    is_splat = len(data) == 1 and len(type.shape)
    return np.full(type.shape, data[0]) if is_splat else data.reshape(type.shape)


def _number(word: str, dtype: np.dtype[Any]) -> Any:
    if word in ("true", "false"):
        return word == "true"
    if word.startswith("0x"):
        bits = int(word, 16).to_bytes(dtype.itemsize, "little")
        return np.frombuffer(bits, dtype)[0]
    is_integer = "int" in dtype.name
    return np.array(int(word) if is_integer else float(word)).astype(dtype)[()]


def judge(case: Case) -> Verdict:
    return verdicts.judge(partial(_run, case), partial(_compared, case.checks), _PLACE)


def _run(case: Case) -> Arrays:
    """Runs a case with arguments, or if tensorplan refuses that, with constants."""
    try:
        return _compiled(case.open_text)(*case.inputs)
    except LocatedError:
        return _compiled(case.text)()


def _compiled(text: str) -> Callable[..., Arrays]:
    return tensorplan.compile(tensorplan.from_stablehlo(text), threads=1)


def _compared(checks: Sequence[Check], got: Arrays) -> Verdict:
    if len(got) != len(checks):
        return Verdict("wrong", f"{len(got)} results, expected {len(checks)}")
    for have, check in zip(got, checks, strict=True):
        if message := _difference(have, check):
            return Verdict("wrong", message)
    return Verdict("pass")


def _difference(have: np.ndarray, check: Check) -> str:
    want = check.expected
    kinds = (have.dtype, have.shape), (want.dtype, want.shape)
    if kinds[0] != kinds[1]:
        return f"{kinds[0]}, expected {kinds[1]}"
    if want.dtype.kind == "c":
        part = np.dtype(f"float{4 * want.itemsize}")
        have, want = (np.ascontiguousarray(x).view(part) for x in (have, want))
    same = (have == want) | ((have != have) & (want != want))
    if check.kind != "expect_eq" and not same.all():
        same |= _close(have, want, check)
    if same.all():
        return ""
    first = tuple(int(n) for n in np.argwhere(~same)[0])
    count = np.count_nonzero(~same)
    return f"{count} of {same.size}: {have[first]} at {first}, expected {want[first]}"


def _close(have: np.ndarray, want: np.ndarray, check: Check) -> np.ndarray:
    wide = [x.astype(np.float64) for x in (have, want)]
    with np.errstate(invalid="ignore"):
        distance = np.abs(wide[0] - wide[1])
    ulps = np.abs(_rank(have) - _rank(want))
    finite = wide[1][np.isfinite(wide[1])]
    largest = float(np.abs(finite).max()) if finite.size else 0.0
    near = 64 * float(ml_dtypes.finfo(want.dtype).eps) * largest
    if check.kind == "expect_almost_eq":
        return (ulps <= 3) | (distance <= max(near, check.limit or 1e-4))
    return (ulps <= (check.limit or 3)) | (distance <= near)


def _rank(x: np.ndarray) -> np.ndarray:
    """The rank of each float among all values of its type, as a float64."""
    bits = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}").astype(np.float64)
    lowest = -(2.0 ** (8 * x.dtype.itemsize - 1))
    return np.where(bits < 0, lowest - bits, bits)


def page(cases: Sequence[Case], judged: Mapping[str, Verdict]) -> str:
    """The reference page: a table of passed and refused cases by operation."""
    types: dict[str, set[str]] = {}
    refused: dict[str, Counter[str]] = {}
    for case in cases:
        verdict = judged[case.name]
        if verdict.status == "pass":
            for name, element in case.operations:
                types.setdefault(name, set()).add(element)
            continue
        for text in verdict.message.split("; "):
            subject, _, rest = text.partition(" is not supported")
            name, _, target = subject.partition(" ")
            rest = " ".join((target, *rest.lstrip(": ").split())).strip()
            if name.startswith(("stablehlo.", "chlo.")):
                refused.setdefault(name, Counter())[rest or "all forms"] += 1
    names = sorted(name for name in {*types, *refused} if not name.startswith("func."))
    lines = [
        f"| {name} | {', '.join(sorted(types.get(name, set()) - {''}))} | "
        f"{'; '.join(f'{text} ({n})' for text, n in refused.get(name, {}).items())} |"
        for name in names
    ]
    passed = sum(verdict.status == "pass" for verdict in judged.values())
    text = _PAGE.format(passed=passed, total=len(judged))
    return text + "\n".join([*lines, ""])


_PAGE = """# StableHLO operations

`python tests/suites/stablehlo.py FOLDER... --write` writes this page. It shows what of
openxla/stablehlo's own tests (`stablehlo/tests/interpret` and `stablehlo/testdata`)
passes, {passed} of {total} cases, and what is refused, with the number of cases. The
element types are those of an operation's first value in cases that pass. The custom
calls among them are those of JAX and of the tests themselves.

Elements of storage types (f8, f6 and f4 of all kinds, i4 and i2) take a byte each. An
operation on them computes in f32 or i8, and rounds its result. Operations between
devices (`all_gather`, `send`, ...) and tokens are refused. Quantized types are read in
generic form only, which these tests are not in.

| operation | element types that pass | refused |
|---|---|---|
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--match", default="", help="only cases of such names")
    parser.add_argument("--sample", type=int, help="so many cases, chosen at random")
    parser.add_argument("--details", action="store_true", help="all that do not pass")
    parser.add_argument("--write", action="store_true", help="see above")
    options = parser.parse_args()
    chosen, unread = read(options.folder, options.match)
    if options.sample:
        chosen = random.Random(0).sample(chosen, min(options.sample, len(chosen)))
    judged = {case.name: judge(case) for case in chosen}
    failed = verdicts.failures(judged)
    reasons = Counter(v.message for v in judged.values() if v.status == "refused")
    for message, count in reasons.most_common():
        print(f"{count:5}  {message}")
    others = {name: v for name, v in judged.items() if v.status != "pass"}
    if options.details:
        others |= {name: Verdict("unread", why) for name, why in unread.items()}
    print(verdicts.summary(judged, others if options.details else failed))
    print(f"{len(unread)} unread")
    if failed:
        return 1
    if options.write:
        PAGE.write_text(page(chosen, judged))
    return 0


if __name__ == "__main__":
    sys.exit(main())
