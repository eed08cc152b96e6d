"""TVM Relay's planner against the original.

The vectors have their programs in words; `PROGRAMS` has them as graphs, one by one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tensorplan.planning.nnvm import Entry, Graph, Node, Tensor
from tensorplan.planning.relay import TokenPlan, graph_plan_memory

Json = Mapping[str, Any]

TEST_PLAN_MEMORY = """
    x[10] y[1] y2[1]=y z0[10]=x,y2 z1[10]=z0 z2[10]=z1 z3[10]=z2 z4[10]=z3 z5[10]=z4
    -> z5"""

# name[shape]*outputs:type@device=inputs   a node, a variable if it has no inputs
# name=entries                             another name: a view, a tuple, a field of one
# -> entries                               the results
PROGRAMS = {
    "upstream_test_plan_memory": TEST_PLAN_MEMORY,
    "upstream_sizes_v0_10": TEST_PLAN_MEMORY,
    "chain": "x[10] e0[10]=x e1[10]=e0 e2[10]=e1 e3[10]=e2 e4[10]=e3 -> e4",
    "diamond": "x[10] a[10]=x b[10]=a c[10]=a,b -> c",
    "same_argument_twice": "x[10] a[10]=x c[10]=a,a d[10]=c -> d",
    "tuple_output_orphans": "x[4,6] split[4,2]*3=x get1=split.1 e[4,2]=get1 -> e",
    "tuple_two_fields_used": """
        x[4,6] split[4,2]*3=x TupleGetItem@5=split.0 TupleGetItem@6=split.2
        e[4,2]=TupleGetItem@5,TupleGetItem@6 f[4,2]=e -> f""",
    "tuple_result": "x[10] a[10]=x b[10]=a tup=a,b -> tup",
    "unused_parameter": "x[10] y[10] a[10]=x b[10]=a -> b",
    "parameter_is_result": "x[10] -> x",
    "bool_one_byte": "x[10]:bool a[10]:bool=x b[10]:bool=a c[10]:bool=b -> c",
    "range_exactly_16": "x[160] a[160]=x r[1]=a s[10]=r u[10]=s -> u",
    "grow_smaller_block": "x[10] a[10]=x b[200]=a c[400]=b d[400]=c -> d",
    "symbolic_shape_refused": "x[?,10] a[?,10]=x -> a",
    "let": "x[10] Call@2[10]=x v1=Call@2 Call@5[10]=v1,v1 let=Call@5 -> let",
    "seed_example_devices": """
        x[10]@1 y[10]@1 add[10]@1=x,y copy1[10]@2=add sqrt[10]@2=copy1 copy3[10]@8=sqrt
        copy2[10]@4=add log[10]@4=copy2 copy4[10]@8=log subtract[10]@8=copy3,copy4
        exp[10]@8=subtract -> exp""",
    "devices_do_not_share": """
        x[10]@1 a[10]@1=x k[10]@2=a b[10]@2=k k2[10]@1=b d[10]@1=k2 e[10]@1=d -> e""",
    "parameter_read_only_after_copy": """
        x[10]@1 y[10]@2 a[10]@1=x k[10]@2=a s[10]@2=k,y -> s""",
    "reshape_alias_v0_10": """
        x[10,4] y[10,1,4]=x z0=y t1[10,1,4]=y z1[10,1,4]=t1 z2=t1 -> z0,z1,z2""",
}

ON_THE_READERS_DEVICE = (
    "the original finds another device for parameters than that of who reads them"
)
PLANS_THAT_DIFFER = {
    "seed_example_devices": ON_THE_READERS_DEVICE,
    "parameter_read_only_after_copy": ON_THE_READERS_DEVICE,
    "upstream_sizes_v0_10": (
        "the size given for storage 2 is that of y2, but the larger z1 has it too"
    ),
    "if_refused": "our graph has no branches that could be refused",
}


@pytest.mark.vectors("tvm_graph_plan_memory", PLANS_THAT_DIFFER)
def test_plan_memory(vector: Json, differs: str | None) -> None:
    name, expected = vector["name"], vector["expected"]
    if name not in PROGRAMS:
        pytest.skip(differs or f"nobody has written the graph of {vector['program']!r}")
    program = Program.read(PROGRAMS[name])
    if "error" in expected:
        with pytest.raises(ValueError, match=r"^x has shape None, expected a known"):
            graph_plan_memory(program.graph)
        return
    plan = graph_plan_memory(program.graph)
    if "storage_sizes" in expected:
        first: dict[int, int] = {}  # what the original gives
        largest: dict[int, int] = {}
        for node, ids in zip(program.graph.nodes, plan.storage_ids, strict=True):
            size = 4 * node.outputs[0].elements
            first.setdefault(ids[0], size)
            largest[ids[0]] = max(size, largest.get(ids[0], 0))
        assert {str(i): size for i, size in first.items()} == expected["storage_sizes"]
        assert dict(enumerate(plan.sizes)) == largest
    if "storage_ids_in_node_order" in expected:
        ids = [i for name in program.names for i in program.storages(name, plan)]
        assert ids == expected["storage_ids_in_node_order"]
        places = enumerate(program.names)
        assert [n for n, name in places if name in program.aliases] == (
            expected["nop_nodes"]
        )
    if "plan" in expected:
        assert set(program.names) == set(expected["plan"])
        assert len(plan.sizes) == expected["num_storages"]
        for name, tensor in expected["plan"].items():
            assert program.storages(name, plan) == tensor["storage_id"]
            nodes = [program.graph.nodes[e.node] for e in program.names[name]]
            same = [node.device for node in nodes] == tensor["device_type"]
            assert same or (differs and all(node.is_variable for node in nodes))


def test_sizes_are_exact() -> None:
    plan = graph_plan_memory(Program.read(PROGRAMS["bool_one_byte"]).graph)
    assert plan.sizes == [10, 10, 10]


@dataclass
class Program:
    """A graph, and names for its entries."""

    graph: Graph
    names: dict[str, list[Entry]] = field(default_factory=dict)
    aliases: list[str] = field(default_factory=list)

    @staticmethod
    def read(text: str) -> "Program":
        text, results = text.split("->")
        nodes: list[Node] = []
        program = Program(Graph(nodes))
        for word in text.split():
            found = re.fullmatch(
                r"(.+?)(?:\[(.+)\](?:\*(\d))?(?::(\w+))?(?:@(\d))?)?(?:=(.+))?", word
            )
            assert found
            name, shape, outputs, dtype, device, inputs = found.groups()
            entries = program.entries(inputs) if inputs else []
            if not shape:
                program.aliases.append(name)
                program.names[name] = entries
                continue
            known = None if "?" in shape else tuple(map(int, shape.split(",")))
            tensors = [Tensor(known, dtype or "float32")] * int(outputs or 1)
            program.names[name] = [Entry(len(nodes), i) for i in range(len(tensors))]
            nodes.append(
                Node(name, tensors, entries, not inputs, device=int(device or 0))
            )
        program.graph = Graph(nodes, program.entries(results.strip()))
        return program

    def entries(self, names: str) -> list[Entry]:
        """Those that are meant by names, or by name.index, separated by commas."""
        found: list[Entry] = []
        for word in names.split(","):
            name, _, index = word.partition(".")
            entries = self.names[name]
            found += [entries[int(index)]] if index else entries
        return found

    def storages(self, name: str, plan: TokenPlan) -> list[int]:
        return [plan.storage_ids[node][output] for node, output, _ in self.names[name]]
