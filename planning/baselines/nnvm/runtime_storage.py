"""The arrays that TVM's graph runtime allocates for a plan, one for each storage.

`GraphRuntime::SetupStorage` of apache/tvm 0.7 (`src/runtime/graph/graph_runtime.cc`).
It distinguishes devices only by type. For holes in the numbers of storages, it
allocates arrays of no bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from ...problem import round_up
from .dtypes import parse_dtype

ALIGNMENT = 128  # bytes, of every array


class Device(NamedTuple):
    """DLPack's numbers: type 1 is the CPU, 2 CUDA, ..."""

    type: int
    id: int


class Array(NamedTuple):
    """The memory of a storage, allocated as float32."""

    bytes: int  # a multiple of 4
    device: Device


class View(NamedTuple):
    """An entry of the graph, at the start of its storage."""

    storage: int
    shape: tuple[int, ...]
    bits: int  # of an element, one lane
    alignment: int  # bytes


@dataclass(frozen=True, slots=True)
class ExportedGraph:
    """A compiled graph with its plan, as far as memory is concerned.

    All sequences have an element for each entry.
    """

    storage_ids: Sequence[int]
    shapes: Sequence[tuple[int, ...]]
    dtypes: Sequence[str]  # TVM's names
    device_types: Sequence[int] | None = None
    num_operations: int = 0


def read_graph(exported: Mapping[str, Any]) -> ExportedGraph:
    """The graph in the JSON that `nnvm.compiler.build` and `relay.build` export.

    Raises `ValueError` for nodes other than variables ("null") and compiled functions
    ("tvm_op"), for keys that TVM does not know, for missing keys, and for attributes
    of different lengths.
    """
    keys = ("nodes", "arg_nodes", "node_row_ptr", "heads", "attrs")
    _check_keys("graph", exported, keys, ("metadata",))
    for node in exported["nodes"]:
        _check_keys("node", node, ("op", "name", "inputs"), ("attrs", "control_deps"))
        if node["op"] not in ("null", "tvm_op"):
            raise ValueError(
                f"node {node['name']} is {node['op']!r}, expected 'null' or 'tvm_op'"
            )
    lists = {name: values for name, (_, values) in exported["attrs"].items()}
    _check_keys("attrs", lists, ("storage_id", "shape", "dltype"), lists)
    num_entries = exported["node_row_ptr"][-1]
    for name in ("storage_id", "shape", "dltype", "device_index"):
        if name in lists and len(lists[name]) != num_entries:
            raise ValueError(
                f"{name} has {len(lists[name])} elements, expected one for each of the "
                f"{num_entries} entries"
            )
    return ExportedGraph(
        lists["storage_id"],
        [tuple(shape) for shape in lists["shape"]],
        lists["dltype"],
        lists.get("device_index"),
        sum(node["op"] == "tvm_op" for node in exported["nodes"]),
    )


def _check_keys(
    what: str, found: Iterable[str], needed: Sequence[str], others: Iterable[str]
) -> None:
    found = list(found)
    for key in needed:
        if key not in found:
            raise ValueError(f"{what} has the keys {found}, expected {key!r} too")
    for key in found:
        if key not in (*needed, *others):
            raise ValueError(
                f"{what} has the key {key!r}, expected {', '.join((*needed, *others))}"
            )


def setup_storage(
    graph: ExportedGraph, devices: Sequence[Device]
) -> tuple[list[Array], list[View]]:
    """The arrays of all storages, and the views of all entries.

    An array lies on the first of `devices` that has its type, or else on the first of
    all. Raises `ValueError` for entries without storage, for elements that do not have
    whole bytes (a bool takes one), and for storages on two types of device.
    """
    sizes: dict[int, int] = {}
    types: dict[int, int] = {}
    views: list[View] = []
    entries = zip(graph.storage_ids, graph.shapes, graph.dtypes, strict=True)
    for entry, (storage, shape, dtype) in enumerate(entries):
        if storage < 0:
            raise ValueError(f"entry {entry} has storage {storage}, expected 0 or more")
        bits, lanes = parse_dtype(dtype)
        if bits * lanes % 8 and bits * lanes != 1:
            raise ValueError(
                f"entry {entry} has elements of {bits * lanes} bits, expected 1 or a "
                "multiple of 8"
            )
        type_ = graph.device_types[entry] if graph.device_types else devices[0].type
        if types.setdefault(storage, type_) != type_:
            raise ValueError(
                f"storage {storage} is on devices of type {types[storage]} and "
                f"{type_}, expected one"
            )
        width = parse_dtype(dtype).bytes
        sizes[storage] = max(sizes.get(storage, 0), prod(shape) * width)
        views.append(View(storage, shape, bits, max(width, ALIGNMENT)))
    arrays = [
        Array(
            round_up(sizes.get(storage, 0), 4),
            next((d for d in devices if d.type == types.get(storage)), devices[0]),
        )
        for storage in range(max(sizes, default=-1) + 1)
    ]
    return arrays, views
