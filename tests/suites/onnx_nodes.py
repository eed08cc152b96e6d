"""ONNX's own tests of its operations, through import, planning and running.

    python tests/suites/onnx_nodes.py [--match TEXT] [--json FILE] [--lenient]

Each of the cases that the package `onnx` generates is one of:

- pass: the values are those of the case, within its tolerance;
- refused: `LocatedError`, the documented answer to what is not supported;
- wrong: other values, types or shapes;
- internal: any other exception.

With `--lenient`, a case that is refused is tried again as exporters write models:
sizes, axes and other small operands are constants, and the opset is the nearest that is
read. Exit code 1 if a case is wrong or internal.
"""

import argparse
import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case import node as node_cases

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.frontends.onnx.reading import OPSETS

Arrays = Sequence[np.ndarray]

_SMALL = 16  # elements of an operand that exporters write as a constant


class Verdict(NamedTuple):
    status: str
    message: str = ""


def cases(match: str = "") -> Iterator[Any]:
    """Those whose names contain a text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, where a case divides by zero
        found = node_cases.collect_testcases(None)
    return (case for case in found if match in case.name)


def judge(case: Any, *, lenient: bool = False) -> Verdict:
    verdict = Verdict("pass")
    for data in case.data_sets:
        inputs, want = (list(map(_array_of, values)) for values in data)
        verdict = _judge(case, case.model, inputs, want)
        if lenient and verdict.status == "refused":
            verdict = _judge(case, *_as_exported(case.model, inputs), want)
        if verdict.status != "pass":
            return verdict
    return verdict


def _array_of(value: Any) -> Any:
    is_tensor = isinstance(value, onnx.TensorProto)
    return numpy_helper.to_array(value) if is_tensor else value


def _judge(case: Any, model: Any, inputs: Arrays, want: Arrays) -> Verdict:
    try:
        got = _run(model, inputs)
    except LocatedError as error:
        return Verdict("refused", str(error))
    except Exception as error:
        return Verdict("internal", f"{type(error).__name__}: {error}")
    return _compare(got, want, case.rtol, case.atol)


def _run(model: Any, inputs: Arrays) -> Arrays:
    return tensorplan.compile(tensorplan.from_onnx(model.SerializeToString()))(*inputs)


def _compare(got: Arrays, want: Arrays, rtol: float, atol: float) -> Verdict:
    if len(got) != len(want):
        return Verdict("wrong", f"{len(got)} results, expected {len(want)}")
    for have, expected in zip(got, want, strict=True):
        kinds = (have.dtype, have.shape), (expected.dtype, expected.shape)
        if kinds[0] != kinds[1]:
            return Verdict("wrong", f"{kinds[0]}, expected {kinds[1]}")
        if expected.dtype.name == "bfloat16":  # as ONNX's own runner compares it
            rtol = max(rtol, 2**-6)
            have, expected = have.astype(np.float32), expected.astype(np.float32)
        try:
            np.testing.assert_allclose(have, expected, rtol=rtol, atol=atol)
        except AssertionError as error:
            return Verdict("wrong", " ".join(str(error).split())[:200])
    return Verdict("pass")


def _as_exported(model: Any, inputs: Arrays) -> tuple[Any, Arrays]:
    """The model with small operands as initializers; the other inputs."""
    changed = _in_readable_opset(model)
    kept: list[np.ndarray] = []
    for value, array in zip(list(changed.graph.input), inputs, strict=True):
        if _is_operand(array, first=value.name == changed.graph.input[0].name):
            constant = numpy_helper.from_array(array, value.name)
            changed.graph.initializer.append(constant)
        else:
            kept.append(array)
    return changed, kept


def _is_operand(array: Any, *, first: bool) -> bool:
    """Whether exporters would write this input of an operation as a constant."""
    if not isinstance(array, np.ndarray) or array.ndim > 1:
        return False
    return array.size <= _SMALL and (array.dtype.kind in "iu" or not first)


def _in_readable_opset(model: Any) -> Any:
    """A copy in the nearest opset that is read, if it is valid there."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.ir_version = 8
    for opset in changed.opset_import:
        if not opset.domain:
            opset.version = min(max(opset.version, OPSETS[0]), OPSETS[-1])
    try:
        onnx.shape_inference.infer_shapes(changed, check_type=True, strict_mode=True)
    except (onnx.shape_inference.InferenceError, TypeError):
        return model
    return changed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--match", default="", help="only cases of such names")
    parser.add_argument("--json", metavar="FILE", help="all verdicts")
    parser.add_argument("--lenient", action="store_true", help="see above")
    options = parser.parse_args()
    verdicts = {
        case.name: judge(case, lenient=options.lenient) for case in cases(options.match)
    }
    for name, (status, message) in verdicts.items():
        if status in ("wrong", "internal"):
            print(f"{name}: {status}: {message}")
    counts = Counter(verdict.status for verdict in verdicts.values())
    print(", ".join(f"{count} {status}" for status, count in sorted(counts.items())))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(verdicts, file, indent=1)
    return int(counts["wrong"] + counts["internal"] > 0)


if __name__ == "__main__":
    sys.exit(main())
