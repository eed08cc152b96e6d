"""Tests that the harness of the conformance vectors reads vectors that are not in the
suite.

They have the schema of the suite's vectors, with other names, orders, texts and sizes.
Their expected results follow from the rules of the systems. A vector with a wrong
expectation must fail.
"""

import json
import random
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent / "conformance"

Json = dict[str, Any]


def own(mechanism: str) -> list[Json]:
    files = sorted((HERE / "vectors").glob("*.json"))
    vectors = [v for file in files for v in json.loads(file.read_text())["vectors"]]
    return [vector for vector in vectors if vector["mechanism"] == mechanism]


def relay(program: str, **storages: list[int]) -> Json:
    return {
        "mechanism": "tvm_graph_plan_memory",
        "description": "invented",
        "program": program,
        "expected": {
            "plan": {
                name: {"storage_id": ids, "device_type": [0] * len(ids)}
                for name, ids in storages.items()
            },
            "num_storages": 1 + max(i for ids in storages.values() for i in ids),
        },
    }


def on(vector: Json, **devices: int) -> Json:
    for name, device in devices.items():
        vector["expected"]["plan"][name]["device_type"] = [device]
    return vector


def refused(program: str) -> Json:
    return {**relay(program, x=[0]), "expected": {"error": "TVMError: no"}}


def bfc(program: str, **expected: Any) -> Json:
    (vector,) = [v for v in own("tf_bfc") if v["name"] == "region_deallocation"]
    config = {**vector["config"], "allow_growth": False, "total_memory": 1 << 20}
    return {**vector, "config": config, "program": program, "expected": expected}


def renamed(vector: Json, number: int) -> Json:
    """A vector with other names of nodes and buffers, reordered where order does not
    matter."""
    text = json.dumps(vector)
    for name in {node["name"] for node in vector["graph"]["nodes"]}:
        text = re.sub(rf'"{name}"', f'"{name}_{number}"', text)
    return json.loads(text)


RELAY = [
    relay("p=exp(q)", q=[0], p=[1]),
    relay("p = log(q[7]); r = sqrt(p); s = tanh(r)", q=[0], p=[1], r=[2], s=[1]),
    relay("f3..f6=tanh chain over y[3,5]; output f6", y=[0], f3=[1], f4=[2], f6=[2]),
    relay("let w=log(q); multiply(w,w)", q=[0], w=[1], let=[2]),
    relay("m=add(q, add(q, exp(q)))", q=[0], m=[1], Call=[2]),
    relay("q[12] ; result q", q=[0]),
    relay("a=split(q[8],2,axis=0); b=a.0; c=exp(b); result c", q=[0], a=[1, 2], b=[1]),
    relay("a=exp(q); b=exp(a); result (a,b)", q=[0], a=[1], b=[2]),
    relay("a=exp(q); z is unused", q=[0], z=[1], a=[2]),
    relay("q int8[9]; a=exp(q)", q=[0], a=[1]),
    relay("a=exp(q[160]); b=sum(a,keepdims) [1]; c=exp(b)", q=[0], a=[1], b=[2], c=[3]),
    relay("a=tile(q[2],50); b=exp(a); float32", q=[0], a=[1], b=[2]),
    on(relay("a=copy(exp(q),1->2)", q=[0], a=[2]), q=1, a=2),
    refused("x[?,?]"),
    refused("if p then exp(x) else x"),
]

BFC = [
    bfc("alloc(4 KiB); free all", first_offset=0),
    bfc("4 x alloc(256 KiB); free all but the last", offset_of_last=786432),
    bfc("for k in 1..4: alloc(k); record Z; free all", Z={"offset_of_last": 768}),
    bfc("alloc/free 1000; then 3 times {alloc 256, 512; free in that order}; alloc 1",
        first_offset=0, offset_after=0),
    bfc("2 x alloc(512 KiB); alloc(1)", big={"offset": None}),
    bfc("alloc(1 KiB); free last 1; alloc 5, 6", offset_of_last=256),
]  # fmt: skip


def others() -> list[Json]:
    """The vectors of the suite, with irrelevant changes, or changes that must be
    refused."""
    pools = own("inductor_memory_planning_pools")
    for vector in pools[:3]:
        vector["blocks"] = [{**block, "device": "cpu"} for block in vector["blocks"]]
    graphs = [*own("nnvm_plan_memory")[:4], *own("nnvm_color_node_group")[:2]]
    storage = own("graph_runtime_setup_storage")[:1]
    placed = [v for v in own("nnvm_place_device") if "error" in v["expected"]][:1]
    for vector in placed:
        vector["expected"]["error"] = "Check failed: something else in other words"
    code = [v for v in own("inductor_end_to_end") if not v["config"]["dynamic"]][:2]
    for vector in code:
        wrapper = "\n".join(vector["expected"]["wrapper"])
        wrapper = re.sub(r"buf(\d+)", lambda m: f"buf{int(m[1]) + 40}", wrapper)
        vector["expected"]["wrapper"] = wrapper.split("\n")
    renamed_graphs = [renamed(vector, n) for n, vector in enumerate(graphs)]
    return [*pools[:3], *renamed_graphs, *storage, *placed, *code, empty_pool()]


def empty_pool() -> Json:
    """A vector whose only storage is empty and has no address."""
    vector = own("graph_runtime_setup_storage")[0]
    attributes = vector["graph_json"]["attrs"]
    attributes["shape"][1] = [[0] for _ in attributes["shape"][1]]
    attributes["storage_id"][1] = [0 for _ in attributes["storage_id"][1]]
    expected = vector["expected"]
    first = {"floats": 0, "bytes": 0}
    expected["pool"] = [{**expected["pool"][0], **first}]
    views = {"pool": 0, "same_address_as_pool": -1, "shape": [0]}
    expected["entries"] = [{**entry, **views} for entry in expected["entries"]]
    return vector


def run(folder: Path, vectors: list[Json]) -> Mapping[str, int]:
    """The numbers of tests that passed, failed, and were skipped."""
    folder.mkdir()
    for number, vector in enumerate(vectors):
        vector["name"] = f"held_back_{number}"
    (folder / "some.json").write_text(json.dumps({"vectors": vectors}))
    names = "held_back"
    command = [sys.executable, "-m", "pytest", HERE, "--vectors", folder, "-q", "-rs"]
    ended = subprocess.run([*command, "-k", names], capture_output=True, text=True)
    counts = re.findall(r"(\d+) (passed|failed|skipped|error)", ended.stdout)
    found = {what: int(count) for count, what in counts}
    return found if found else pytest.fail(ended.stdout + ended.stderr)


def test_no_vector_is_skipped(tmp_path: Path) -> None:
    vectors = [*RELAY, *BFC, *others()]
    assert len(vectors) >= 30
    random.Random(0).shuffle(vectors)
    found = run(tmp_path / "held", vectors)
    assert found.keys() == {"passed"}
    assert found["passed"] >= len(vectors)


def test_a_wrong_expectation_fails(tmp_path: Path) -> None:
    wrong = [
        relay("p=exp(q)", q=[0], p=[0]),
        relay("p=exp(q[?])", q=[0], p=[1]),
        bfc("4 x alloc(256 KiB)", offset_of_last=1),
        bfc("2 x dance(1)", offset_of_last=0),
    ]
    assert run(tmp_path / "wrong", wrong)["failed"] >= len(wrong)
