"""Elimination of assigns, compared with the marking of NNVM's GraphCompile.

NNVM considers the number of readers and the pattern of the assigned value, tensorplan
whether an operation can still read the old contents. tensorplan thus eliminates more
assigns, and keeps a copy where NNVM's program is wrong. In all other cases both must
agree.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

import tensorplan
from tensorplan.dialects.tgraph import elementwise, reducing, shaping, structure
from tensorplan.dialects.tgraph.base import VariableType, ints, tensor_type_of
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.signature import signature
from tensorplan.passes import driver
from tensorplan.passes.tgraph.eliminate_assigns import TGraphEliminateAssigns

Json = Mapping[str, Any]


@pytest.mark.vectors("nnvm_graph_compile_assign")
def test_marking(vector: Json) -> None:
    compiled = {node["name"]: node for node in vector["expected"]["nodes"]}
    program = _Program(vector)
    module = program.module
    arguments = [
        np.linspace(1, 2, prod(i.shape), dtype=i.dtype).reshape(i.shape)
        for i in signature(module).inputs
    ]
    want = run_reference(module, [a.copy() for a in arguments])
    driver.run(tensorplan.context(), module, [TGraphEliminateAssigns()])
    got = run_reference(module, [a.copy() for a in arguments])
    assert all(map(np.array_equal, got, want))
    for name, assign in program.assigns.items():
        eliminated = assign.parent is None
        if compiled[name].get("func_name") == "__nop":
            assert eliminated or goes_wrong(compiled, name)
        elif not eliminated:
            assert not program.nobody_reads_old(name)


def goes_wrong(compiled: Mapping[str, Json], assign: str) -> bool:
    """Whether NNVM's program reads the variable after overwriting it."""
    nodes = list(compiled.values())
    variable, value = (source for source, _, *_ in compiled[assign]["inputs"])
    return any(
        node["name"] != assign and variable in [source for source, *_ in node["inputs"]]
        for node in nodes[value + 1 :]
    )


class _Program:
    """A vector's graph at level 1. The output of an assign is the assigned value."""

    def __init__(self, vector: Json):
        self.block = Block()
        self.nodes: dict[str, Json] = {n["name"]: n for n in vector["graph"]["nodes"]}
        self.values: dict[tuple[str, int], SSAValue] = {}  # by name and version
        self.assigns: dict[str, structure.AssignOp] = {}
        self.variables: dict[str, SSAValue] = {}
        for name, node in self.nodes.items():
            if node["op"] is None:
                variable = VariableType(TensorType(f32, node["shape"]))
                argument = self.block.insert_arg(variable, len(self.block.args))
                self.variables[name] = argument
        for name in self.variables:
            self.values[name, 0] = self._read(name)
        outputs = vector["graph"]["outputs"]
        for name in outputs:
            self._visit(name)
        results = [self.values[name, 0] for name in outputs]
        self.block.add_op(ReturnOp(*results))
        types = FunctionType.from_lists(self.block.arg_types, [v.type for v in results])
        self.module = ModuleOp([FuncOp("main", types, Region(self.block))])

    def nobody_reads_old(self, assign: str) -> bool:
        """Whether no operation except the assign reads the variable."""
        variable = self.nodes[assign]["inputs"][0][0]
        return (
            not any(
                [variable, 0] == list(source[:2])
                for name, node in self.nodes.items()
                for number, source in enumerate(node.get("inputs", ()))
                if (name, number) != (assign, 0)
            )
            and self.nodes[self.nodes[assign]["inputs"][1][0]]["op"] is not None
        )

    def _read(self, variable: str) -> SSAValue:
        read = structure.ReadOp(self.variables[variable])
        self.block.add_op(read)
        return read.result

    def _visit(self, name: str) -> None:
        """Adds a node after its inputs, in NNVM's order of execution."""
        if (name, 0) in self.values:
            return
        node = self.nodes[name]
        for source, *_ in node["inputs"]:
            self._visit(source)
        for before in node.get("control_deps", ()):
            self._visit(before)
        inputs = [self._input(*source) for source in node["inputs"]]
        if node["op"] == "_assign":
            self.assigns[name] = structure.AssignOp(
                self.variables[node["inputs"][0][0]], inputs[1]
            )
            self.block.add_op(self.assigns[name])
            self.values[name, 0] = inputs[1]
            return
        like = shape_of(inputs[0])
        shape = tuple(node.get("out_shapes", [like])[0])
        self.values[name, 0] = self._emit(node["pattern"], inputs, shape)

    def _input(self, name: str, _: int, version: int = 0) -> SSAValue:
        if (name, version) not in self.values:
            self.values[name, version] = self._read(name)
        return self.values[name, version]

    def _emit(
        self, pattern: str, inputs: Sequence[SSAValue], shape: Sequence[int]
    ) -> SSAValue:
        """An operation with the given fusion pattern."""
        match pattern:
            case "elemwise" | "broadcast":
                values = [self._fit(value, shape) for value in inputs]
                result = values[0]
                for value in values[1:]:
                    result = self._add(elementwise.AddOp, (result, value), shape)
                if len(values) == 1:
                    result = self._add(elementwise.NegateOp, (result,), shape)
                return result
            case "injective":
                turned = self._add(
                    shaping.ReverseOp,
                    (inputs[0],),
                    shape_of(inputs[0]),
                    dimensions=ints([0]),
                )
                return self._add(shaping.ReshapeOp, (turned,), shape)
            case _:
                return self._contract(inputs, shape)

    def _contract(self, inputs: Sequence[SSAValue], shape: Sequence[int]) -> SSAValue:
        """A product, each element of which depends on a whole row and column."""
        first, last = inputs[0], inputs[-1]
        none = ints(())
        dims = {
            "lhs_batching_dimensions": none,
            "rhs_batching_dimensions": none,
            "lhs_contracting_dimensions": none,
            "rhs_contracting_dimensions": none,
        }
        if shape_of(first) == shape_of(last) == tuple(shape) and len(shape) == 2:
            if shape[0] == shape[1]:
                dims |= {
                    "lhs_contracting_dimensions": ints([1]),
                    "rhs_contracting_dimensions": ints([0]),
                }
                return self._add(reducing.DotGeneralOp, (first, last), shape, **dims)
        total = [
            self._add(
                reducing.ReduceOp,
                (value,),
                (),
                kind=StringAttr("add"),
                dimensions=ints(range(len(shape_of(value)))),
            )
            for value in (first, last)
        ]
        spread = self._fit(total[0], shape)
        return self._add(reducing.DotGeneralOp, (spread, total[1]), shape, **dims)

    def _fit(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        if shape_of(value) == tuple(shape):
            return value
        rank = len(shape_of(value))
        dims = ints(range(len(shape) - rank, len(shape)))
        return self._add(
            shaping.BroadcastInDimOp, (value,), shape, broadcast_dimensions=dims
        )

    def _add(
        self, op: Any, inputs: Sequence[SSAValue], shape: Sequence[int], /, **how: Any
    ) -> SSAValue:
        types = (TensorType(f32, shape),)
        added = op(inputs, result_types=types, properties=how)
        self.block.add_op(added)
        return added.result


def shape_of(value: SSAValue) -> tuple[int, ...]:
    return tensor_type_of(value.type).get_shape()
