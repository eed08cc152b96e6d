"""Imports, plans and runs the backend tests of the installed package onnx.

    python tests/suites/onnx_backend.py [--match TEXT] [--write]

`verdicts.py` says how a case (of an operation, or a small model of ONNX) is judged. If
shapes depend on values of inputs, the case runs with these inputs as constants
(`from_onnx(values=...)`). `onnx_refusals.json` has the reasons of known refusals by the
name of the case. The exit code is 1 if a case is wrong, internal or newly refused.
Otherwise `--write` writes the refusals, and `docs/reference/onnx.md`, a table of them.
"""

import argparse
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import verdicts
from onnx import numpy_helper
from onnx.backend.test.case import node as node_cases
from onnx.backend.test.loader import load_model_tests
from verdicts import Arrays, Verdict, compare

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError

REFUSALS = Path(__file__).with_name("onnx_refusals.json")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "onnx.md"

PLACE = "onnx[^ ]*"

_RANDOM = ("Bernoulli", "RandomUniformLike")
"""Operations whose random numbers differ between runtimes. Their cases are skipped."""

_KINDS = ("simple", "pytorch-operator", "pytorch-converted")


class Case(NamedTuple):
    name: str
    model: Any
    data: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float


def cases() -> Iterator[Case]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of divisions by zero
        generated = node_cases.collect_testcases(None)
    for case in generated:
        model: Any = case.model
        if not any(node.op_type in _RANDOM for node in model.graph.node):
            yield Case(case.name, model, case.data_sets or [], case.rtol, case.atol)
    for kind in _KINDS:
        for case in sorted(load_model_tests(kind=kind), key=lambda case: case.name):
            folder = Path(case.model_dir or "")
            model = onnx.load(folder / "model.onnx")
            data = [
                _data(model, path) for path in sorted(folder.glob("test_data_set*"))
            ]
            yield Case(case.name, model, data, case.rtol, case.atol)


def _data(model: Any, folder: Path) -> tuple[Sequence[Any], Sequence[Any]]:
    inputs = _values(model.graph.input, folder, "input")
    return inputs, _values(model.graph.output, folder, "output")


def _values(infos: Sequence[Any], folder: Path, kind: str) -> Sequence[Any]:
    """The values that have files; inputs without a file are initializers."""
    values: list[Any] = []
    for index, info in enumerate(infos[: len(list(folder.glob(f"{kind}_*.pb")))]):
        data = (folder / f"{kind}_{index}.pb").read_bytes()
        is_tensor = info.type.HasField("tensor_type")
        values.append(onnx.TensorProto.FromString(data) if is_tensor else data)
    return values


def judge(case: Case) -> Verdict:
    verdict = Verdict("pass")
    for data in case.data:
        inputs = list(map(_array_of, data[0]))
        want = list(map(_array_of, _items(data[1])))
        run = partial(_run, case.model, inputs)
        compared = partial(compare, want=want, rtol=case.rtol, atol=case.atol)
        verdict = verdicts.judge(run, compared, PLACE)
        if verdict.status != "pass":
            return verdict
    return verdict


def _items(outputs: Sequence[Any]) -> Iterator[Any]:
    """Yields all tensors, including elements of sequences."""
    for value in outputs:
        if isinstance(value, list):
            yield from _items(value)
        else:
            yield value


def _array_of(value: Any) -> Any:
    is_tensor = isinstance(value, onnx.TensorProto)
    value = numpy_helper.to_array(value) if is_tensor else value
    return np.asarray(value) if isinstance(value, np.generic) else value


def _run(model: Any, inputs: Arrays) -> Arrays:
    names = [value.name for value in model.graph.input]
    given = dict(zip(names, inputs, strict=False))
    data = model.SerializeToString()
    sizes = {
        name: size
        for value in model.graph.input
        if value.name in given
        for name, size in _sizes(value.name, value.type, given[value.name])
    }
    try:
        program = tensorplan.from_onnx(data, sizes=sizes)
    except LocatedError as error:
        if "expected a constant" not in str(error):
            raise
        values = {
            name: array
            for index, (name, array) in enumerate(given.items())
            if _is_operand(array, first=not index)
        }
        program = tensorplan.from_onnx(data, sizes=sizes, values=values)
        given = {name: a for name, a in given.items() if name not in values}
    flat = [value for value in _items([*given.values()]) if value is not None]
    return tensorplan.compile(program, threads=1)(*flat)


def _sizes(name: str, kind: Any, value: Any) -> Iterator[tuple[str, int]]:
    """Yields the unknown sizes of an input's type, with the names of `from_onnx`."""
    match kind.WhichOneof("value"):
        case "sequence_type":
            yield name, len(value)
            for index, item in enumerate(value):
                inner = kind.sequence_type.elem_type
                yield from _sizes(f"{name}[{index}]", inner, item)
        case "optional_type":
            yield name, int(value is not None)
            if value is not None:
                yield from _sizes(name, kind.optional_type.elem_type, value)
        case _:
            for index, dim in enumerate(kind.tensor_type.shape.dim):
                if not dim.HasField("dim_value"):
                    yield f"{name}.{index}", value.shape[index]


def _is_operand(array: Any, *, first: bool) -> bool:
    """Whether shapes may depend on this input of an operation."""
    if not isinstance(array, np.ndarray) or array.ndim > 1:
        return False
    return array.dtype.kind in "iu" or not (first and array.ndim)


def known_refusals() -> Mapping[str, str]:
    return json.loads(REFUSALS.read_text())


def page(chosen: Sequence[Case], refusals: Mapping[str, str]) -> str:
    """The reference page: for each operation, passing element types and refusals."""
    types: dict[str, set[str]] = {}
    refused: dict[str, Counter[str]] = {}
    for case in chosen:
        name, element = _operation(case.model)
        types.setdefault(name, set())
        if case.name in refusals:
            text = _short(refusals[case.name], name)
            refused.setdefault(name, Counter())[text] += 1
        else:
            types[name].add(element)
    lines = [
        f"| {name} | {', '.join(sorted(types[name] - {''}))} | "
        f"{'; '.join(f'{text} ({n})' for text, n in refused.get(name, {}).items())} |"
        for name in sorted(types)
    ]
    passed = len(chosen) - len(refusals)
    return _PAGE.format(version=onnx.__version__, passed=passed, total=len(chosen)) + (
        "\n".join([*lines, ""])
    )


_PAGE = """# ONNX operations

`python tests/suites/onnx_backend.py --write` writes this page. It shows what of the
backend tests of onnx {version} passes, {passed} of {total} cases, and what is refused,
with the number of cases. The element types are those of an operation's first input.
Models of several operations, such as expanded definitions, are in the last row.
Inputs that shapes depend on (axes, sizes) are given to `from_onnx` as `values`.

| operation | element types that pass | refused |
|---|---|---|
"""


def _operation(model: Any) -> tuple[str, str]:
    """The operation that a case tests, and the element type of its first input."""
    if len(model.graph.node) > 1:
        return "models", ""
    (node,) = model.graph.node
    domain = f"{node.domain}." if node.domain else ""
    element = ""
    if model.graph.input and model.graph.input[0].type.HasField("tensor_type"):
        number = model.graph.input[0].type.tensor_type.elem_type
        element = onnx.TensorProto.DataType.Name(number).lower()
    return f"{domain}{node.op_type}", element


def _short(text: str, name: str) -> str:
    """A refusal without the name of the operation `name`, and without value names."""
    text = text.split("; ")[0].replace(f"operation {name} ", "")
    text = " ".join(text.replace("is not supported", "", 1).split())
    text = text.lstrip(": ") or "not supported"
    return re.sub(r"(input|output) '[^']*'", r"an \1", text).replace("|", "\\|")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--match", default="", help="only cases of such names")
    parser.add_argument("--write", action="store_true", help="see above")
    options = parser.parse_args()
    chosen = [case for case in cases() if options.match in case.name]
    judged = {case.name: judge(case) for case in chosen}
    failed = verdicts.failures(judged)
    print(verdicts.summary(judged, failed))
    refused = {name: v.message for name, v in judged.items() if v.status == "refused"}
    if new := sorted(refused.keys() - known_refusals().keys()):
        print("refused newly:", *new, sep="\n  ")
    if new or failed:
        return 1
    if options.write and not options.match:
        REFUSALS.write_text(json.dumps(dict(sorted(refused.items())), indent=1) + "\n")
        PAGE.write_text(page(chosen, refused))
    return 0


if __name__ == "__main__":
    sys.exit(main())
