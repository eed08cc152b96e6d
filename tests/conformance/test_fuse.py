"""Groups of fused operations, compared with NNVM's and TVM Relay's."""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tensorplan.dialects.tgraph.base import Pattern
from tensorplan.passes.tgraph.fusion import nnvm, postdominators
from tensorplan.passes.tgraph.fusion.graph import TUPLE, FusionNode

Json = Mapping[str, Any]

# NNVM

NNVM_PATTERNS = {
    "elemwise": Pattern.ELEMENTWISE,
    "broadcast": Pattern.BROADCAST,
    "injective": Pattern.INJECTIVE,
    "comm_reduce": Pattern.REDUCTION,
    "out_ewise_fusable": Pattern.OUT_ELEMENTWISE_FUSABLE,
    "opaque": Pattern.OPAQUE,
}


class NNVMGraph:
    """The graph of a vector, in order of execution."""

    def __init__(self, spec: Json):
        self.specs = {node["name"]: node for node in spec["nodes"]}
        self.names: list[str] = []
        self.nodes: list[FusionNode] = []
        for name in spec["outputs"]:
            self._visit(self._entry(name)[0])
        self.place = {name: index for index, name in enumerate(self.names)}
        self.outputs = [self.place[self._entry(name)[0]] for name in spec["outputs"]]

    def _entry(self, name: str) -> tuple[str, int]:
        if name in self.specs:
            return name, 0
        node, _, output = name.rpartition(".")
        return node, int(output)

    def _visit(self, name: str) -> None:
        if name in self.names:
            return
        spec = self.specs[name]
        for producer, *_ in spec.get("inputs", []):
            self._visit(producer)
        for producer in spec.get("control_deps", []):
            self._visit(producer)
        inputs = [
            (self.names.index(producer), output)
            for producer, output, *_ in spec.get("inputs", [])
        ]
        if spec["op"] is None:
            shapes = [tuple(spec.get("shape", ()))]
        elif "out_shapes" in spec:
            shapes = [tuple(shape) for shape in spec["out_shapes"]]
        else:
            first, output = inputs[0]
            shapes = [self.nodes[first].shapes[output]] * spec.get("num_outputs", 1)
        pattern = NNVM_PATTERNS[spec.get("pattern", "opaque")]
        self.names.append(name)
        self.nodes.append(FusionNode(pattern, inputs, shapes, spec["op"] is None))


@pytest.mark.vectors("nnvm_fuse")
def test_nnvm_groups(vector: Json) -> None:
    graph = NNVMGraph(vector["graph"])
    groups = nnvm.fuse(graph.nodes, graph.outputs, vector["config"]["opt_level"])
    names, expected = graph.names, vector["expected"]
    calls = [n for n, node in enumerate(graph.nodes) if not node.is_variable]
    masters = [groups.masters[n] for n in calls]
    assert {names[n]: names[groups.roots[n]] for n in calls} == expected["group_root"]
    assert [m if m is None else names[m] for m in masters] == [
        expected["master"][names[n]] for n in calls
    ]
    assert {names[n]: Pattern(groups.patterns[n]) for n in calls} == {
        name: NNVM_PATTERNS[pattern] for name, pattern in expected["pattern"].items()
    }
    if "compiled" in expected:
        assert compiled(graph, groups) == [
            {
                key: node[key]
                for key in ("name", "inputs", "func_name", "flatten_data")
                if key in node
            }
            for node in expected["compiled"]["nodes"]
        ]


def compiled(graph: NNVMGraph, groups: nnvm.FusedGroups) -> list[Json]:
    """The fused graph: one function for each group, named after its operations."""
    members: dict[int, list[int]] = {}
    for index, root in enumerate(groups.roots):
        members.setdefault(root, []).append(index)
    functions: dict[object, str] = {}
    nodes: list[Json] = []
    place: dict[int, int] = {}

    def visit(root: int) -> None:
        if root in place:
            return
        spec = graph.specs[graph.names[root]]
        inputs: dict[tuple[int, int], None] = {}
        structure: list[object] = []
        for member in members[root]:
            entries = graph.nodes[member].inputs
            inputs |= {e: None for e in entries if groups.roots[e[0]] != root}
            numbered = list(inputs)
            where = [
                numbered.index(e) if e in inputs else members[root].index(e[0])
                for e in entries
            ]
            structure.append((graph.specs[graph.names[member]]["op"], where))
        for producer, _ in inputs:
            visit(groups.roots[producer])
        result: dict[str, Any] = {
            "name": graph.names[root],
            "inputs": [[place[groups.roots[p]], output] for p, output in inputs],
        }
        if spec["op"] is not None:
            flat = groups.patterns[root] == Pattern.ELEMENTWISE
            result["flatten_data"] = int(flat or spec["op"] == "_assign")
            ops = [graph.specs[graph.names[m]]["op"] for m in members[root]]
            shapes = [graph.nodes[p].shapes[output] for p, output in inputs]
            name = "fuse_" + "_".join(ops)
            key = repr((structure, shapes, flat))
            taken = [
                n for n in functions.values() if re.fullmatch(name + r"(_\d+)?", n)
            ]
            unique = f"{name}_{len(taken)}" if taken else name
            result["func_name"] = functions.setdefault(key, unique)
        place[root] = len(nodes)
        nodes.append(result)

    for output in graph.outputs:
        visit(groups.roots[output])
    return nodes


# Relay

RELAY_PATTERNS = {
    "add": Pattern.BROADCAST,
    "multiply": Pattern.BROADCAST,
    "divide": Pattern.BROADCAST,
    "subtract": Pattern.BROADCAST,
    "exp": Pattern.ELEMENTWISE,
    "log": Pattern.ELEMENTWISE,
    "sqrt": Pattern.ELEMENTWISE,
    "tanh": Pattern.ELEMENTWISE,
    "negative": Pattern.ELEMENTWISE,
    "nn.relu": Pattern.ELEMENTWISE,
    "squeeze": Pattern.INJECTIVE,
    "transpose": Pattern.INJECTIVE,
    "reshape": Pattern.INJECTIVE,
    "nn.upsampling": Pattern.INJECTIVE,
    "concatenate": Pattern.INJECTIVE,
    "sum": Pattern.REDUCTION,
    "max": Pattern.REDUCTION,
    "nn.conv2d": Pattern.OUT_ELEMENTWISE_FUSABLE,
    "nn.dense": Pattern.OUT_ELEMENTWISE_FUSABLE,
    "nn.max_pool2d": Pattern.OUT_ELEMENTWISE_FUSABLE,
    "annotation.stop_fusion": Pattern.OPAQUE,
    "Tuple": TUPLE,
}

OPERATORS = {ast.Add: "add", ast.Mult: "multiply", ast.Div: "divide"}

SHORT_NAMES = {
    "conv": "nn.conv2d",
    "dense": "nn.dense",
    "max_pool": "nn.max_pool2d",
    "pool": "nn.max_pool2d",
    "relu": "nn.relu",
    "stop_fusion": "annotation.stop_fusion",
    "upsampling": "nn.upsampling",
}

UPSTREAM = {
    "test_conv2d_fuse": """
        y = conv(x + 1, w1); y = y + (1 + y); z = conv(y, w2) + conv(y, w3); z""",
    "test_concatenate": """
        p = max_pool(x); concatenate((upsampling(p), x)) + 1""",
    "test_tuple_root": "(upsampling(pool(x)), x)",
}
"""Programs of the original's tests that vectors describe informally."""


class RelayProgram:
    """A program from statements in Python's syntax, whose tensors have the same shape.
    Unassigned names are parameters.

    Raises `NotImplementedError` for other forms.
    """

    def __init__(self, text: str):
        self.ops: list[str | None] = []
        self.nodes: list[FusionNode] = []
        self.names: dict[str, int] = {}
        try:
            *before, last = ast.parse(re.sub(r"\s*;\s*", "\n", text.strip())).body
        except (SyntaxError, ValueError) as e:
            raise NotImplementedError(f"{text!r} is in words") from e
        for statement in before:
            match statement:
                case ast.Assign([ast.Name(name)], value):
                    self.names[name] = self._value(value)
                case _:
                    raise NotImplementedError(f"{text!r} is in words")
        if not isinstance(last, ast.Expr):
            raise NotImplementedError(f"{text!r} has no result")
        self.result = self._value(last.value)

    def _node(self, op: str | None, pattern: int, *inputs: int, rank: int = 4) -> int:
        self.ops.append(op)
        entries = [(index, 0) for index in inputs]
        self.nodes.append(FusionNode(pattern, entries, [(2,) * rank], op is None))
        return len(self.nodes) - 1

    def _call(self, op: str, arguments: Sequence[ast.expr]) -> int:
        op = SHORT_NAMES.get(op, op)
        if op not in RELAY_PATTERNS:
            raise NotImplementedError(f"operator {op} is not known here")
        return self._node(op, RELAY_PATTERNS[op], *map(self._value, arguments))

    def _value(self, expression: ast.expr) -> int:
        match expression:
            case ast.Name(name):
                if name not in self.names:
                    self.names[name] = self._node(None, Pattern.OPAQUE)
                return self.names[name]
            case ast.Constant():
                return self._node(None, Pattern.ELEMENTWISE, rank=0)
            case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
                return self._call(OPERATORS[type(operator)], (left, right))
            case ast.Call(ast.Name(op), arguments):
                return self._call(op, arguments)
            case ast.Tuple(fields):
                return self._call("Tuple", fields)
            case _:
                raise NotImplementedError(
                    f"{ast.unparse(expression)} is not known here"
                )

    def functions(self, groups: Sequence[int]) -> list[Json]:
        """The operations of each group, and the number of values that it reads from
        outside."""
        result: list[Json] = []
        for group in sorted(set(groups)):
            members = [n for n, root in enumerate(groups) if root == group]
            ops = [self.ops[m] for m in members if self.ops[m]]
            if not ops or ops in (["Tuple"], ["annotation.stop_fusion"]):
                continue  # unchanged or erased
            read = {p for m in members for p, _ in self.nodes[m].inputs}
            result.append({"ops": ops, "num_params": len(read.difference(members))})
        return result


@pytest.mark.vectors("tvm_fuse_ops")
def test_relay_groups(vector: Json) -> None:
    about = vector["description"]
    known = [text for name, text in UPSTREAM.items() if f"{name}:" in about]
    program = RelayProgram(known[0] if known else vector["program"])
    config = vector["config"]
    level = config.get("fuse_opt_level", 2)
    depth = config.get("max_depth", 256) if level else 1
    groups = postdominators.fuse(program.nodes, [program.result], depth)
    assert program.functions(groups) == vector["expected"]["groups"]
