"""Tests the outputs of `plan-opt -t` for a plan: JSON of its schema, and names in C."""

import json
import re
from io import StringIO
from pathlib import Path

import onnx
import pytest
from json_schema import check
from onnx import TensorProto, helper

import tensorplan
from tensorplan.tools.targets import SCHEMA, CHeaderTarget, JsonTarget

ROOT = Path(__file__).parent.parent
DESCRIBED = json.loads((ROOT / "tools/plan.schema.json").read_text())


def planned(name: str) -> str:
    module = tensorplan.plan(tensorplan.read(ROOT / name))
    JsonTarget().emit(tensorplan.context(), module, text := StringIO())
    return text.getvalue()


@pytest.mark.parametrize(
    "program",
    [
        "examples/classifier.mlir",
        "examples/mlp_train_two_devices.mlir",
        "examples/train_step.mlir",
        "lit_tests/plan-opt/targets-donated.mlir",
    ],
)
def test_plans_conform_to_the_schema(program: str) -> None:
    check(json.loads(planned(program)), DESCRIBED)


def test_schema_refuses_malformed_plans() -> None:
    plan = json.loads(planned("examples/classifier.mlir"))
    assert plan["schema"] == SCHEMA
    for part, field, value in [
        (plan, "schema", SCHEMA + 1),
        (plan["pools"][0], "bytes", -1),
        (plan["buffers"][0], "role", "input?"),
        (plan["buffers"][0], "gaps", [[1]]),
        (plan["functions"]["main"][0], "more", 1),
    ]:
        before = part.get(field)
        part[field] = value
        with pytest.raises(AssertionError, match=r"\$"):
            check(plan, DESCRIBED)
        part[field] = before
        if before is None:
            del part[field]
    check(plan, DESCRIBED)


def test_header_names_layers(tmp_path: Path) -> None:
    """The name of a layer may contain the end of a C comment."""
    shape = [4, 4]
    make = helper.make_tensor_value_info
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["/block/fc1/out"], name="/block/fc1"),
        helper.make_node("MatMul", ["/block/fc1/out", "x"], ["fc2"], name="fc*/2\n/*"),
        helper.make_node("MatMul", ["fc2", "fc2"], ["y"], name="fc3"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [make("x", TensorProto.FLOAT, shape)],
        [make("y", TensorProto.FLOAT, shape)],
    )
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph), path)
    module = tensorplan.plan(tensorplan.from_onnx(path)).module
    CHeaderTarget().emit(tensorplan.context(), module, text := StringIO())
    header = text.getvalue()
    assert re.search(
        r"_BUFFER_BLOCK_FC1_OUT_OFFSET .*onnx#/block/fc1:1:1 \*/\n", header
    )
    assert re.search(r"_BUFFER_FC2_OFFSET .*onnx#fc\* /2 / \*:2:1 \*/\n", header)
