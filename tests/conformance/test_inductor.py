"""PyTorch Inductor's reuse and allocation tree against the original."""

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import pytest

from tensorplan.planning.inductor_reuse import (
    Allocate,
    Free,
    Line,
    Reuse,
    Run,
    plan_reuse,
)
from tensorplan.planning.inductor_tree import (
    Block,
    Empty,
    Pool,
    PoolMode,
    Spatial,
    Temporal,
    Tree,
    group_buffers,
    plan_pools,
)

Json = Mapping[str, Any]


@pytest.mark.vectors("inductor_memory_planning_pools", {})
def test_pools(vector: Json, differs: str | None) -> None:
    blocks = [
        Block(
            names=[b["name"]],
            size=b["size"],
            live=[tuple(b["live"])],
            is_output=b.get("is_output", False),
            device=b.get("device", "cpu"),
        )
        for b in vector["blocks"]
    ]
    config = vector["config"]
    pools = plan_pools(blocks, PoolMode(config["memory_pool"]), config["align_bytes"])
    assert places(pools) == {
        name: (place["pool"], place["offset"])
        for name, place in vector["expected"]["placement"].items()
    }
    for pool in pools:
        expected = vector["expected"]["pools"][pool.name]
        assert pool.size == expected["nbytes"]
        assert [list(steps) for steps in pool.root.live] == expected["live"]
        assert tree_of(pool.root) == expected["tree"]
        assert {b.device for b in blocks_of(pool.root)} == {expected["device"]}
    assert len(pools) == len(vector["expected"]["pools"])


@pytest.mark.vectors("inductor_memory_planning_lines", {})
def test_lines(vector: Json, differs: str | None) -> None:
    config = vector["config"]
    lines = [line_of(*row) for row in vector["program"]]
    blocks = group_buffers(lines, config["outputs"], config["removed"])
    place = places(plan_pools(blocks, PoolMode(config["memory_pool"])))
    assert [
        {
            "names": block.names,
            "is_output": block.is_output,
            "live": list(block.live[0]),
            "pool": place[block.names[0]][0],
            "offset": place[block.names[0]][1],
        }
        for block in blocks
    ] == vector["expected"]["buffer_groups"]


@pytest.mark.vectors("inductor_memory_plan_reuse", {})
def test_reuse(vector: Json, differs: str | None) -> None:
    config = vector["config"]
    streams, unaligned = config.get("streams", {}), config.get("unaligned", [])
    sizes: dict[str, int] = {}
    lines: list[Line] = []
    for step, what, name, *rest in vector["program"]:
        line = line_of(what, name, *rest, step=step)
        if isinstance(line, Allocate):
            kind = (*rest[1:], streams.get(name, 0), name in unaligned)
            line = Allocate(name, line.size, kind, step)
            sizes[name] = line.size
        lines.append(line)
    memory = config.get("peak_by_step")
    assert config.get("overall_peak") == (max(memory) if memory else None)
    planned = plan_reuse(lines, config["outputs"], config["removed"], memory)
    # Removed lines are gone, not "null"; what is left is the same.
    events = [event for event in vector["expected"]["events"] if event != ["null"]]
    assert [event_of(line) for line in planned if not isinstance(line, Run)] == events
    code = [code_of(line) for line in planned]
    assert [text for text in code if text] == vector["expected"]["code"]


END_TO_END_DIFFER = dict.fromkeys(
    ("e2e_upstream_foo_reuse", "e2e_upstream_foo_no_reuse"),
    "the text does not tell reuse that was planned from reuse within an operation",
) | {"e2e_upstream_foo_planning_dynamic": "sizes are symbolic; ours are bytes"}


@pytest.mark.vectors("inductor_end_to_end", END_TO_END_DIFFER)
def test_end_to_end(vector: Json, differs: str | None) -> None:
    """The lines that torch planned are found again from its code, and planned by us."""
    config = vector["config"]
    if differs or config["dynamic"] or not config["memory_planning"]:
        pytest.skip(differs or "holds no static plan of pools")
    lines, outputs = lines_of_code(vector["expected"]["wrapper"])
    mode = PoolMode(config.get("memory_pool", "intermediates"))
    pools = plan_pools(group_buffers(lines, outputs), mode)
    place = places(pools)
    code = "\n".join(vector["expected"]["wrapper"])
    expected = re.findall(r"(\w+) = alloc_from_pool\((\w+), (\d+)", code)
    assert expected
    for name, pool, offset in expected:
        assert place[name] == (pool, int(offset))
    for new, old in re.findall(r"(\w+) = (\w+) # alloc", code):
        assert place[new] == place[old]
    for pool in pools:
        assert pool.size == size_of_pool(pool.name, code)


def test_what_is_never_freed_is_kept() -> None:
    lines = [Allocate("a", 64), Run("f"), Allocate("b", 64), Run("g")]
    assert [block.live for block in group_buffers(lines)] == [[(1, 3)], [(2, 3)]]


def test_pools_are_numbered_by_first_allocation() -> None:
    """The largest is placed first; then outputs, which are placed before all others."""
    small = Block(names=["small"], size=64, live=[(1, 2)], device="a")
    large = Block(names=["large"], size=128, live=[(1, 2)], device="b")
    assert places(plan_pools([small, large])) == {
        "large": ("pool0", 0),
        "small": ("pool1", 0),
    }
    small.is_output = True
    assert places(plan_pools([large, small])) == {
        "small": ("pool0", 0),
        "large": ("pool1", 0),
    }


def line_of(what: str, name: str, *rest: Any, step: int = 0) -> Line:
    match what:
        case "alloc":
            return Allocate(name, rest[0], step=step)
        case "free":
            return Free(name, step)
        case "reuse":
            return Reuse(name, rest[0])
        case _:
            return Run(name)


def event_of(line: Line) -> Sequence[str]:
    match line:
        case Allocate():
            return ["allocate", line.buffer]
        case Free():
            return ["freed_into_reuse" if line.is_reused else "free", line.buffer]
        case Reuse():
            return ["reuse", line.buffer, line.new]
        case Run():
            return ["run", line.text]


def code_of(line: Line) -> str:
    match line:
        case Allocate():
            return f"{line.buffer} = empty({line.size})"
        case Free():
            return "" if line.is_reused else f"del {line.buffer}"
        case Reuse():
            return f"{line.new} = {line.buffer}; del {line.buffer}  # reuse"
        case Run():
            return line.text


def places(pools: Sequence[Pool]) -> dict[str, tuple[str, int]]:
    """Pool and offset of every name."""
    return {
        name: (pool.name, block.offset)
        for pool in pools
        for block in blocks_of(pool.root)
        for name in block.names
    }


def blocks_of(node: Tree) -> list[Block]:
    match node:
        case Block():
            return [node]
        case Temporal():
            return [block for child in node.children for block in blocks_of(child)]
        case Spatial():
            return blocks_of(node.left) + blocks_of(node.right)
        case Empty():
            return []


def tree_of(node: Tree) -> Json:
    match node:
        case Block():
            (live,), (name,) = node.live, node.names
            node_is = {"kind": "Allocation", "name": name, "size": node.size}
            return node_is | {"live": list(live), "offset": None}
        case Empty():
            return {"kind": "Empty", "size": node.size}
        case Temporal():
            children = [tree_of(child) for child in node.children]
            return {"kind": "TemporalSplit", "size": node.size, "children": children}
        case Spatial():
            parts = {"left": tree_of(node.left), "right": tree_of(node.right)}
            return {"kind": "SpatialSplit", "size": node.size, **parts}


BYTES = {"float32": 4, "uint8": 1}


def size_of(dtype: str, shape: str) -> int:
    """Bytes of a tensor; its shape in digits and anything."""
    return BYTES[dtype] * prod(int(extent) for extent in re.findall(r"\d+", shape))


def size_of_pool(name: str, code: str) -> int:
    (found,) = re.findall(
        rf"^{name} = empty_strided_cpu\((\(.*?\)), .*torch\.(\w+)\)$", code, re.M
    )
    shape, dtype = found
    return size_of(dtype, shape)


def lines_of_code(code: Sequence[str]) -> tuple[list[Line], list[str]]:
    """The lines before planning, and the outputs; a buffer is freed after its last use.

    A line `new = old; # reuse` is within an operation, which old and new are part of.
    """
    outputs = re.findall(r"buf\d+", code[-1])
    sizes: dict[str, int] = {}
    newest: dict[str, str] = {}  # name of the memory of a buffer, by its first name
    first: dict[str, str] = {}  # name of the memory that a name is for
    last_use: dict[str, int] = {}  # of memory
    lines: list[Line] = []
    for text in code[:-1]:
        if found := re.match(r"(\w+) = (\w+); # reuse", text):
            new, old = found.groups()
            first[new] = first[old]
            lines.append(Reuse(old, new))
        elif found := re.match(r"(\w+) = (\w+) # alloc", text):
            new, old = found.groups()
            first[new], sizes[new] = new, sizes[first[old]]
            lines.append(Allocate(new, sizes[new]))
        elif found := re.match(r"(\w+) = alloc_from_pool.*torch\.(\w+), (.*?\))", text):
            new, dtype, shape = found.groups()
            first[new], sizes[new] = new, size_of(dtype, shape)
            lines.append(Allocate(new, sizes[new]))
        elif not re.match(r"del |pool\d+ = ", text):
            lines.append(Run(text))
            for name in re.findall(r"buf\d+", text):
                last_use[first[name]] = len(lines)
        newest |= {memory: name for name, memory in first.items()}
    for name in outputs:
        del last_use[first[name]]
    for memory, at in sorted(last_use.items(), key=lambda use: -use[1]):
        lines.insert(at, Free(newest[memory]))
    return lines, outputs
