"""Device placement and inference, compared with NNVM's PlaceDevice and TVM Relay."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from relay_programs import Value, annotated, program_of
from xdsl.dialects.builtin import (
    FloatAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    TensorType,
    f32,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

import tensorplan
from tensorplan.analysis.functions import set_argument_attributes
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.base import DEVICE, GROUP, VariableType, device_of
from tensorplan.dialects.tgraph.shaping import ConstantOp, DeviceCopyOp
from tensorplan.dialects.tgraph.structure import FusionOp, OnDeviceOp, ReadOp, YieldOp
from tensorplan.passes import driver
from tensorplan.passes.tgraph.infer_devices import TGraphInferDevices
from tensorplan.passes.tgraph.place_devices import TGraphPlaceDevices

Json = Mapping[str, Any]
Entry = tuple[str, int]  # a node's output
TENSOR = TensorType(f32, (4,))

MESSAGES = {
    r"The device assignment not found for group (\w+)": "group '{}' has no device",
    "mutable state cannot go across device": "variables do not cross devices",
}


@pytest.mark.vectors("nnvm_place_device")
def test_place_device(vector: Json) -> None:
    expected = vector["expected"]
    graph = NnvmGraph(vector)
    if any(graph.nodes[name]["op"] for name in graph.mutated):
        pytest.skip("an operation's result is mutated, which tgraph cannot say")
    if "error" in expected:
        with pytest.raises(LocatedError, match=translated(expected["error"]) or None):
            graph.place()
        return
    original = Placed.of_vector(expected["nodes"])
    ours = graph.place()
    if graph.left_over():  # the original puts these on device 0
        assert ours.devices.items() - original.devices.items() <= {
            (name, device)
            for name, device in ours.devices.items()
            if original.devices[name] == "dev:0"
        }
    else:
        assert ours == original


def translated(error: str) -> str:
    """A pattern of tensorplan's message for an error of the original; matches any
    message if the error is unknown."""
    for pattern, message in MESSAGES.items():
        if found := re.search(pattern, error):
            return re.escape(message.format(*found.groups()))
    return ""


class Placed:
    """The device of each node, and the copies: an output and its target device."""

    def __init__(self) -> None:
        self.devices: dict[str, str] = {}
        self.copies: list[tuple[Entry, str]] = []

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Placed)
            and self.devices == other.devices
            and sorted(self.copies) == sorted(other.copies)
        )

    def __repr__(self) -> str:
        return f"{self.devices}, copies {self.copies}"

    @staticmethod
    def of_vector(nodes: list[Json]) -> "Placed":
        placed = Placed()
        for node in nodes:
            device = f"dev:{node['device']}"
            if node["op"] == "device_copy":
                source, output, *_ = node["inputs"][0]
                placed.copies.append(((nodes[source]["name"], output), device))
            else:
                placed.devices[node["name"]] = device
        return placed


class NnvmGraph:
    """A vector's graph as tgraph. Each operation is a fusion with an arbitrary body.

    A mutated input is a variable, to which the mutating operation assigns its result.
    """

    def __init__(self, vector: Json):
        self.vector = vector
        self.nodes = {node["name"]: node for node in vector["graph"]["nodes"]}
        names = [output_of(name, self.nodes)[0] for name in vector["graph"]["outputs"]]
        self.order = list(dict.fromkeys(n for name in names for n in self.before(name)))
        self.bound = {
            name: f"dev:{device}"
            for line in vector.get("setup", [])
            if line.startswith("devvec")
            for name, device in (word.split("=") for word in line.split()[1:])
        }
        self.mutated = {
            node["inputs"][index][0]
            for node in self.nodes.values()
            for index in node.get("mutates", ())
        }
        config = vector["config"]
        self.group_key = config["device_group_attr_key"]
        self.groups = config["device_assign_map"]

    def before(self, name: str) -> Iterator[str]:
        """A node after all nodes that it depends on, in the order of execution."""
        node = self.nodes[name]
        inputs = (entry[0] for entry in node.get("inputs", ()))
        for needed in (*inputs, *node.get("control_deps", ())):
            yield from self.before(needed)
        yield name

    def attributes(self, name: str) -> dict[str, Attribute]:
        node = self.nodes[name]
        if name in self.bound:
            return {DEVICE: StringAttr(self.bound[name])}
        if group := node.get("attrs", {}).get(self.group_key):
            return {GROUP: StringAttr(group)}
        if node.get("is_backward"):  # as its forward operation
            return self.attributes(node["control_deps"][0])
        return {}

    def place(self) -> Placed:
        """The placement by tensorplan's pass."""
        block = Block()
        values: dict[Entry, SSAValue] = {}
        reads: dict[str, SSAValue] = {}  # current contents
        made: dict[str, FusionOp | int] = {}  # operations, numbers of arguments
        argument_attributes: list[dict[str, Attribute]] = []

        def contents(name: str, output: int) -> SSAValue:
            if name not in self.mutated:
                return values[name, output]
            if name not in reads:
                read = ReadOp(values[name, 0])
                block.add_op(read)
                reads[name] = read.result
            return reads[name]

        for name in self.order:
            node = self.nodes[name]
            if node["op"] is None:
                type = VariableType(TENSOR) if name in self.mutated else TENSOR
                made[name] = len(block.args)
                values[name, 0] = block.insert_arg(type, len(block.args))
                argument_attributes.append(self.attributes(name))
                continue
            mutated = [node["inputs"][i][0] for i in node.get("mutates", ())]
            inputs = [
                contents(source, output)
                for source, output, *_ in node["inputs"]
                if not (source in mutated and node["op"] == "_assign")
            ]
            count = node.get("num_outputs", 1)
            outs = [values[source, 0] for source in mutated]
            op = operation(inputs, count, outs)
            op.attributes = self.attributes(name)
            block.add_op(op)
            made[name] = op
            for output, result in enumerate(op.res):
                values[name, output] = result
            for source, result in zip(mutated, op.res, strict=False):
                reads[source] = result
        results = [
            contents(*output_of(name, self.nodes))
            for name in self.vector["graph"]["outputs"]
        ]
        module = program(block, results, argument_attributes)
        groups = tuple(f"{group}=dev:{n}" for group, n in self.groups.items())
        pass_ = TGraphPlaceDevices(groups=groups, default="dev:0")
        driver.run(tensorplan.context(), module, [pass_])
        return self.read_back(made, block)

    def read_back(self, made: Mapping[str, FusionOp | int], block: Block) -> Placed:
        placed = Placed()
        entries: dict[SSAValue, Entry] = {}
        for name, node in made.items():
            results = [block.args[node]] if isinstance(node, int) else node.res
            entries |= {value: (name, i) for i, value in enumerate(results)}
            placed.devices[name] = device(results[0])
        for op in block.ops:
            if isinstance(op, ReadOp):
                entries[op.result] = entries[op.variable]
            if isinstance(op, DeviceCopyOp):
                copied = entries[op.inputs[0]], device(op.result)
                placed.copies.append(copied)
        return placed

    def left_over(self) -> bool:
        """Whether the original's scans place some nodes and leave others without a
        device."""
        known = {name for name in self.order if self.attributes(name)}
        for name in self.order:
            if any(e[0] in known for e in self.nodes[name].get("inputs", ())):
                known.add(name)
        for name in reversed(self.order):
            if name in known:
                known |= {e[0] for e in self.nodes[name].get("inputs", ())}
        return 0 < len(known) < len(self.order)


def operation(
    inputs: Sequence[SSAValue], results: int = 1, outs: Sequence[SSAValue] = ()
) -> FusionOp:
    """An arbitrary operation with these inputs and numbers of results."""
    block = Block(arg_types=[TENSOR] * len(inputs))
    constant = ConstantOp(FloatAttr(0.0, f32), TENSOR)
    block.add_ops([constant, YieldOp(*[constant.result] * results)])
    return FusionOp(inputs, Region(block), outs=outs, result_types=[TENSOR] * results)


def program(
    block: Block,
    results: Sequence[SSAValue],
    argument_attributes: Sequence[Mapping[str, Attribute]],
) -> ModuleOp:
    block.add_op(ReturnOp(*results))
    types = FunctionType.from_lists(
        [a.type for a in block.args], [r.type for r in results]
    )
    func = FuncOp("main", types, Region(block))
    set_argument_attributes(func, argument_attributes)
    return ModuleOp([func])


def output_of(name: str, nodes: Iterable[str]) -> Entry:
    """Parses an output: `name` or `name.index`."""
    if name in nodes:
        return name, 0
    node, _, output = name.rpartition(".")
    return node, int(output)


def device(value: SSAValue) -> str:
    found = device_of(value.type)
    assert found
    return found


# TVM Relay


@pytest.mark.vectors("tvm_rewrite_annotated_ops")
def test_rewrite_annotated_ops(vector: Json) -> None:
    """The original makes a copy for each reader. If it makes no copy, it ignores the
    annotations and uses device 0."""
    expected = vector["expected"]
    fallback = vector["config"]["fallback_device"]
    operations = annotated(vector)
    builder = Builder()
    for name, (_, inputs, device_type) in operations.items():
        builder.add(name, inputs, annotation=device_type)
    values, results = builder.inferred(fallback=f"dev:{fallback}")
    copies = [v for v in values.values() if isinstance(v.owner, DeviceCopyOp)]
    devices = {name: device(values[name]) for name in operations}
    for_each_reader = sum(
        devices.get(source, devices[name]) != devices[name]
        for name, operation in operations.items()
        for source in operation.inputs
    )
    ours = {
        "num_device_copies": for_each_reader,
        # The original counts a tuple of results as additional entries.
        "num_entries": len(values)
        - len(copies)
        + for_each_reader
        + (len(results) if len(results) > 1 else 0),
        "device_types": sorted({int(device(v)[4:]) for v in values.values()}),
    }
    assert len(copies) <= for_each_reader
    if not for_each_reader:
        assert len(ours["device_types"]) == 1
        ours["device_types"] = [0]
    original = {key: expected[key] for key in ours if key in expected}
    assert {key: ours[key] for key in original} == original


@pytest.mark.vectors("tvm_graph_plan_memory")
def test_collect_device_info(vector: Json, vectors: Mapping[str, Json]) -> None:
    """The test ignores devices of parameters: the original does not put them where
    they are read."""
    if "error" in vector["expected"]:
        return  # no plan
    told = program_of(vector, vectors)
    order = told.order()
    names = {value: f"v{n}" for n, value in enumerate(order)}
    builder = Builder()
    for value, name in names.items():
        inputs = [names[source] for source, _ in value.inputs]
        if value.op == "copy":
            ((source, _),) = value.inputs
            builder.copy(name, inputs[0], source.device, value.device)
        elif value.op:
            builder.add(name, inputs)
        else:
            builder.parameter(name)
    if not any(value.op == "copy" for value in order):
        plan = vector["expected"].get("plan", {})
        assert not any(t for tensor in plan.values() for t in tensor["device_type"])
        return
    values, _ = builder.inferred()
    plan = vector["expected"]["plan"]
    original = {name: f"dev:{plan[name]['device_type'][0]}" for name in plan}
    for name in told.names.keys() & original.keys():
        ((value, _),) = told.names[name]
        assert device(values[names[value]]) == original[name] or not value.op
    if visited := vector["expected"].get("visit_order"):
        ours = [device(values[names[value]]) for value in order if value.op]
        computed = [name for name in visited if name not in parameters_of(order, plan)]
        assert ours == [original[name] for name in computed]


def parameters_of(order: Sequence[Value], plan: Json) -> set[str]:
    """The names of parameters, whose storages come first."""
    count = sum(not value.op for value in order)
    return {name for name, tensor in plan.items() if tensor["storage_id"][0] < count}


class Builder:
    """A program of operations on tensors, some of which have devices."""

    def __init__(self) -> None:
        self.block = Block()
        self.values: dict[str, SSAValue] = {}

    def parameter(self, name: str) -> SSAValue:
        if name not in self.values:
            self.values[name] = self.block.insert_arg(TENSOR, len(self.block.args))
            self.values[name].name_hint = hint(name)
        return self.values[name]

    def add(
        self, name: str, inputs: Sequence[str], annotation: int | None = None
    ) -> None:
        """Adds an operation. Operands that are not yet defined become parameters."""
        op = operation([self.parameter(i) for i in inputs])
        self._put(name, op)
        if annotation is not None:
            on_device = OnDeviceOp(op.result, f"dev:{annotation}")
            self.block.add_op(on_device)
            self.values[name] = on_device.result

    def copy(self, name: str, source: str, from_device: int, to_device: int) -> None:
        copied = self.values[source]
        if isinstance(copied.owner, Operation):
            copied.owner.attributes[DEVICE] = StringAttr(f"dev:{from_device}")
        op = DeviceCopyOp(copied, TENSOR)
        op.attributes[DEVICE] = StringAttr(f"dev:{to_device}")
        self._put(name, op)

    def _put(self, name: str, op: FusionOp | DeviceCopyOp) -> None:
        self.block.add_op(op)
        self.values[name] = op.result
        op.result.name_hint = hint(name)

    def inferred(
        self, fallback: str | None = None
    ) -> tuple[dict[str, SSAValue], Sequence[SSAValue]]:
        """Runs the pass; returns all values by name, including new copies, and the
        results."""
        block = self.block
        used = {operand for op in block.ops for operand in op.operands}
        results = [value for value in self.values.values() if value not in used]
        module = program(block, results, ())
        driver.run(tensorplan.context(), module, [TGraphInferDevices(fallback)])
        after = [*block.args, *(r for op in block.ops for r in op.results)]
        named: dict[str, SSAValue] = {}
        names = {hint(name): name for name in self.values}
        for value in after:  # a new copy has the name of its operand
            name = names[value.name_hint or ""]
            named[f"{name} for {device(value)}" if name in named else name] = value
        assert block.last_op
        return named, block.last_op.operands


def hint(name: str) -> str:
    """The name as a valid name in IR."""
    return f"v{name.lstrip('%')}x"
