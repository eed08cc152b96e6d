"""tgraph-infer-shapes compared with NNVM's InferShape and InferType.

A node becomes an `exponential` of its input, or of the sum of its inputs; a node with
given shapes becomes a `reshape`, one with a given element type a `convert`. Sizes and
types that NNVM does not know are `?` and `none`. tgraph's values have known ranks: a
node of unknown shape gets the rank of nodes that it is computed with, or 1.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from xdsl.dialects.builtin import NoneType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

import tensorplan
from tensorplan.dialects.diagnostics import LocatedError, LocatedVerifyError
from tensorplan.dialects.tgraph.base import AnyTensor, tensor_type_of
from tensorplan.dialects.tgraph.partial import UNKNOWN
from tensorplan.frontends import reading
from tensorplan.passes import driver
from tensorplan.passes.tgraph.infer_shapes import TGraphInferShapes

Json = Mapping[str, Any]

ELEMENTS = ("f32", "f64", "f16", "ui8", "i32", "i8", "i64")
"""Element types, indexed by NNVM's type codes."""


class Program:
    """The text of a graph. The value `%name_ok` is output `k` of the node `name`."""

    def __init__(self, graph: Json):
        self.nodes: Sequence[Json] = graph["nodes"]
        self.ranks = self._ranks()
        self.lines: list[str] = []
        self.line_of: dict[str, range] = {}
        arguments = ", ".join(
            f"%{node['name']}_o0: {self.type(node, 0)}"
            for node in self.nodes
            if node["op"] is None
        )
        self.lines.append(f"func.func @main({arguments}) {{")
        for node in self.nodes:
            first = len(self.lines) + 1
            if node["op"] is not None:
                for output in range(node.get("num_outputs", 1)):
                    self._write(node, output)
            self.line_of[node["name"]] = range(first, len(self.lines) + 1)
        self.lines += ["func.return", "}"]

    def shape(self, node: Json, output: int) -> Sequence[int] | None:
        if "out_shapes" in node:
            return node["out_shapes"][output]
        return node.get("shape")

    def _ranks(self) -> dict[str, int]:
        ranks: dict[str, int] = {}
        for node in self.nodes:
            if shape := self.shape(node, 0):  # no sizes: unknown
                ranks[node["name"]] = len(shape)
        for _ in self.nodes:
            for node in self.nodes:
                names = [name for name, *_ in node.get("inputs", ())]
                if "out_shapes" not in node:
                    names.append(node["name"])
                known = next((ranks[name] for name in names if name in ranks), None)
                if known is not None:
                    ranks = dict.fromkeys(names, known) | ranks
        return ranks

    def unknown(self, name: str) -> str:
        return f"tensor<{'?x' * self.ranks.get(name, 1)}none>"

    def type(self, node: Json, output: int) -> str:
        sizes = self.shape(node, output) or [0] * self.ranks.get(node["name"], 1)
        dtype = node.get("attrs", {}).get("dtype", node.get("out_dtype"))
        element = "none" if dtype is None else ELEMENTS[int(dtype)]
        return f"tensor<{'x'.join([*(str(n or '?') for n in sizes), element])}>"

    def _write(self, node: Json, output: int) -> None:
        if not node.get("inputs"):
            type = self.type(node, output)
            self.lines.append(
                f"%{node['name']}_o{output} = tgraph.iota {{dimension = 0 : i64}} "
                f": () -> {type}"
            )
            return
        by_name = {node["name"]: node for node in self.nodes}
        inputs = [
            (f"%{source}_o{index}", self.type(by_name[source], index))
            for source, index, *_ in node["inputs"]
        ]
        value, type = inputs[0]
        unknown = self.unknown(node["inputs"][0][0])
        for index, (other, other_type) in enumerate(inputs[1:]):
            result = f"%{node['name']}_o{output}_sum{index}"
            self.lines.append(
                f"{result} = tgraph.add {value}, {other} : "
                f"({type}, {other_type}) -> {unknown}"
            )
            value, type = result, unknown
        if "out_shapes" in node:
            op = "reshape"
        else:
            op = "exponential" if node.get("out_dtype") is None else "convert"
        self.lines.append(
            f"%{node['name']}_o{output} = tgraph.{op} {value} : "
            f"({type}) -> {self.type(node, output)}"
        )


def sizes(type: AnyTensor) -> list[int]:
    """The sizes as NNVM writes them: empty if a size is unknown."""
    shape = list(type.get_shape())
    return [] if UNKNOWN in shape else shape


def code(type: AnyTensor) -> int:
    unknown = isinstance(type.element_type, NoneType)
    return -1 if unknown else ELEMENTS.index(str(type.element_type))


@pytest.mark.vectors("nnvm_infer")
def test_infer(vector: Json) -> None:
    program = Program(vector["graph"])
    expected = vector["expected"]
    ctx = tensorplan.context()
    module = reading.read("\n".join(program.lines).encode(), "vector", ctx)
    if "error" in expected:
        with pytest.raises((LocatedError, LocatedVerifyError)) as raised:
            driver.run(ctx, module, [TGraphInferShapes()])
        assert isinstance(raised.value, LocatedError | LocatedVerifyError)
        assert raised.value.place
        culprit = re.search(r"Error in operator (\w+)", expected["error"])
        if culprit:
            line = int(raised.value.place.split(":")[1])
            assert line in program.line_of[culprit[1]]
        return
    driver.run(ctx, module, [TGraphInferShapes()])

    (func,) = module.ops
    assert isinstance(func, FuncOp)
    found: dict[str, SSAValue] = {}
    for op in func.body.block.ops:
        for value in (*func.body.block.args, *op.results):
            found[value.name_hint or ""] = value
    # NNVM infers nothing about the input of a reshape. tensorplan does, by the number
    # of elements.
    goes_back = any("out_shapes" in node for node in program.nodes)
    unknown_shapes = unknown_elements = 0
    for name, shapes in expected["shape"].items():
        for output, shape in enumerate(shapes):
            type = tensor_type_of(found[f"{name}_o{output}"].type)
            known = shape if all(shape) else []
            assert sizes(type) == known or (goes_back and not known)
            assert code(type) == expected["dtype"][name][output]
            unknown_shapes += not sizes(type) and type.get_num_dims() > 0
            unknown_elements += code(type) == -1
    assert unknown_shapes <= expected["shape_num_unknown_nodes"]
    assert goes_back or unknown_shapes == expected["shape_num_unknown_nodes"]
    assert unknown_elements == expected["dtype_num_unknown_nodes"]
