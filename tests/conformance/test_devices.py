"""Device placement and inference against NNVM's PlaceDevice and TVM Relay's passes."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
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
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.base import DEVICE, GROUP, VariableType, device_of
from tensorplan.dialects.tgraph.shaping import ConstantOp, DeviceCopyOp
from tensorplan.dialects.tgraph.structure import FusionOp, OnDeviceOp, ReadOp, YieldOp
from tensorplan.passes import driver
from tensorplan.passes.functions import set_argument_attributes
from tensorplan.passes.tgraph_infer_devices import TGraphInferDevices
from tensorplan.passes.tgraph_place_devices import TGraphPlaceDevices

Json = Mapping[str, Any]
Entry = tuple[str, int]  # a node's output
TENSOR = TensorType(f32, (4,))

MESSAGES = {
    r"The device assignment not found for group (\w+)": "group '{}' has no device",
    "mutable state cannot go across device": "variables do not cross devices",
}
FOLLOWS_A_NEIGHBOUR = "the original puts on device 0 what neither of its scans reaches"


@pytest.mark.vectors("nnvm_place_device", {})
def test_place_device(vector: Json, differs: str | None) -> None:
    expected = vector["expected"]
    graph = NnvmGraph(vector)
    if any(graph.nodes[name]["op"] for name in graph.mutated):
        pytest.skip("an operation's result is mutated, which tgraph cannot say")
    if "error" in expected:
        with pytest.raises(LocatedError, match=translated(expected["error"])):
            graph.place()
        return
    original = Placed.of_vector(expected["nodes"])
    ours = graph.place()
    if differs := differs or (FOLLOWS_A_NEIGHBOUR if graph.left_over() else None):
        assert ours.devices.items() - original.devices.items() <= {
            (name, device)
            for name, device in ours.devices.items()
            if original.devices[name] == "dev:0"
        }
    else:
        assert ours == original


def translated(error: str) -> str:
    """Our message for one of the original's."""
    for pattern, message in MESSAGES.items():
        if found := re.search(pattern, error):
            return re.escape(message.format(*found.groups()))
    raise AssertionError(f"no such refusal here: {error}")


class Placed:
    """The devices of nodes, and the copies: of which output, to which device."""

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
    """A vector's graph as tgraph: each operation is a fusion of nothing in particular.

    A mutated input is a variable, and what mutates it computes into it.
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
        """A node after all that it needs, in the order of execution."""
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
        """What our pass makes of it."""
        block = Block()
        values: dict[Entry, SSAValue] = {}
        reads: dict[str, SSAValue] = {}  # present contents
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
        """Whether the original's scans leave some nodes without a device, not all."""
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
    """Some operation of so many inputs and results."""
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
    """`name` or `name.index`."""
    if name in nodes:
        return name, 0
    node, _, output = name.rpartition(".")
    return node, int(output)


def device(value: SSAValue) -> str:
    found = device_of(value.type)
    assert found
    return found


# TVM Relay. The vectors have their programs in words; `PROGRAMS` has them as graphs.
#
# name                 an argument
# name=inputs@device   an operation, annotated with a device or not
# name=input:from>to   a copy

PROGRAMS = {
    "redundant_annotation": "x y z add=x,y@2 sub1=add,z sub2=add,z",
    "annotate_one_edge": "x y z add=x,y@1 sub=add,z@2",
    "annotate_all_same": "x y z add=x,y@2 sub=add,z@2",
    "annotate_none": "x y z add=x,y sub=add,z",
    "fuse_log_add": "x y add=x,y sqrt=add@2 log=add subtract=sqrt,log exp=subtract@2",
    "conv_network": """
        data1 data2 w conv1=data1,w@2 conv2=data2,w@2 add=conv1,conv2@1
        conv3=add,w@2""",
    "seed_example_devices": """
        x y add=x,y copy1=add:1>2 sqrt=copy1 copy3=sqrt:2>8 copy2=add:1>4 log=copy2
        copy4=log:4>8 subtract=copy3,copy4 exp=subtract""",
    "devices_do_not_share": "x a=x k=a:1>2 b=k k2=b:2>1 d=k2 e=d",
    "parameter_read_only_after_copy": "x y a=x k=a:1>2 s=k,y",
}

ANNOTATIONS_THAT_DIFFER = {
    "redundant_annotation": "the original makes a copy for each reader",
    "annotate_all_same": "the original forgets annotations where it makes no copies",
    "annotate_none": "the original takes device 0 where it makes no copies",
}


@pytest.mark.vectors("tvm_rewrite_annotated_ops", ANNOTATIONS_THAT_DIFFER)
def test_rewrite_annotated_ops(vector: Json, differs: str | None) -> None:
    expected = vector["expected"]
    fallback = vector["config"]["fallback_device"]
    values, results = inferred(vector, fallback=f"dev:{fallback}")
    copies = [v for v in values.values() if isinstance(v.owner, DeviceCopyOp)]
    ours = {
        "num_device_copies": len(copies),
        "num_entries": len(values) + (len(results) if len(results) > 1 else 0),
        "device_types": sorted({int(device(v)[4:]) for v in values.values()}),
    }
    original = {key: expected[key] for key in ours if key in expected}
    if differs and original["device_types"] == [0]:
        assert len(ours["device_types"]) == 1
        assert ours["device_types"] != [0]
        original["device_types"] = ours["device_types"]
    elif differs:
        fewer = original["num_device_copies"] - len(copies)
        assert fewer > 0
        original["num_device_copies"] -= fewer
        original["num_entries"] -= fewer
    # (The original counts a tuple of results as entries of its own.)
    assert {key: ours[key] for key in original} == original


ON_THE_READERS_DEVICE = "the original puts parameters where nobody reads them"
PLANS_THAT_DIFFER = {
    "seed_example_devices": ON_THE_READERS_DEVICE,
    "parameter_read_only_after_copy": ON_THE_READERS_DEVICE,
}


@pytest.mark.vectors("tvm_graph_plan_memory", PLANS_THAT_DIFFER)
def test_collect_device_info(vector: Json, differs: str | None) -> None:
    plan = vector["expected"].get("plan", {})
    if not any(device for tensor in plan.values() for device in tensor["device_type"]):
        pytest.skip("the program is on one device, which is not named")
    values, _ = inferred(vector)
    ours = {name: device(value) for name, value in values.items()}
    original = {name: f"dev:{plan[name]['device_type'][0]}" for name in plan}
    others = {name for name in original if ours[name] != original[name]}
    assert ours.keys() == original.keys()
    assert bool(others) == bool(differs)
    assert all(isinstance(values[name].owner, Block) for name in others)


def inferred(
    vector: Json, fallback: str | None = None
) -> tuple[dict[str, SSAValue], Sequence[SSAValue]]:
    """After our pass, all values by name, those of new copies too, and the results."""
    if vector["name"] not in PROGRAMS:
        pytest.skip(f"nobody has written the graph of {vector['program']!r}")
    block = Block()
    values: dict[str, SSAValue] = {}
    for word in PROGRAMS[vector["name"]].split():
        found = re.fullmatch(r"(\w+)(?:=([\w,]+))?(?::(\d)>(\d))?(?:@(\d))?", word)
        assert found
        name, inputs, source, target, annotation = found.groups()
        if not inputs:
            values[name] = block.insert_arg(TENSOR, len(block.args))
            continue
        operands = [values[i] for i in inputs.split(",")]
        if target:
            (copied,) = operands
            assert isinstance(copied.owner, Operation)
            copied.owner.attributes[DEVICE] = StringAttr(f"dev:{source}")
            op = DeviceCopyOp(copied, TENSOR)
            op.attributes[DEVICE] = StringAttr(f"dev:{target}")
        else:
            op = operation(operands)
        block.add_op(op)
        values[name] = op.result
        if annotation:
            block.add_op(on_device := OnDeviceOp(op.result, f"dev:{annotation}"))
            values[name] = on_device.result
    used = {operand for op in block.ops for operand in op.operands}
    results = [value for value in values.values() if value not in used]
    for name, value in values.items():
        made = value.owner.value if isinstance(value.owner, OnDeviceOp) else value
        made.name_hint = name
    module = program(block, results, ())
    driver.run(tensorplan.context(), module, [TGraphInferDevices(fallback)])
    after = [*block.args, *(r for op in block.ops for r in op.results)]
    named: dict[str, SSAValue] = {}
    for value in after:  # a copy that was made has the name of what it copies
        assert value.name_hint
        made_for = f" for {device(value)}" if value.name_hint in named else ""
        named[value.name_hint + made_for] = value
    assert block.last_op
    return named, block.last_op.operands
