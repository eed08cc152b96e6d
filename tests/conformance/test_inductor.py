"""PyTorch Inductor's reuse and allocation tree, compared with the original."""

import ast
import re
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from tensorplan.planning.baselines.inductor_reuse import (
    Allocate,
    Free,
    Line,
    Reuse,
    Run,
    plan_reuse,
)
from tensorplan.planning.baselines.inductor_tree import (
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


@pytest.mark.vectors("inductor_memory_planning_pools")
def test_pools(vector: Json) -> None:
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


@pytest.mark.vectors("inductor_memory_planning_lines")
def test_lines(vector: Json) -> None:
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


@pytest.mark.vectors("inductor_memory_plan_reuse")
def test_reuse(vector: Json) -> None:
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
    # tensorplan erases removed lines, which the original replaces by "null".
    events = [event for event in vector["expected"]["events"] if event != ["null"]]
    assert [event_of(line) for line in planned if not isinstance(line, Run)] == events
    code = [code_of(line) for line in planned]
    assert [text for text in code if text] == vector["expected"]["code"]


@pytest.mark.vectors("inductor_end_to_end")
def test_end_to_end(vector: Json) -> None:
    """Reconstructs the lines that torch planned from its code, and plans them.

    torch planned symbolic sizes for values that the code does not contain. Some small
    values give the same plan.
    """
    code, config = vector["expected"]["wrapper"], vector["config"]
    symbols = sorted(set(re.findall(r"\bs\d+\b", "\n".join(code))))
    given = [
        Wrapper(code, dict(zip(symbols, sizes, strict=True)))
        for sizes in product((3, 2, 5, 64), repeat=len(symbols))
    ]
    if config["memory_planning"]:
        mode = PoolMode(config.get("memory_pool", "intermediates"))
        assert any(has_these_pools(wrapper, mode) for wrapper in given)
        return
    for wrapper in given:
        lines = wrapper.lines(may_reuse=config.get("allow_buffer_reuse", True))
        assert [memory_event(line) for line in plan_reuse(lines, wrapper.outputs)] == (
            wrapper.events()
        )


def has_these_pools(wrapper: "Wrapper", mode: PoolMode) -> bool:
    pools = plan_pools(group_buffers(wrapper.pool_lines(), wrapper.outputs), mode)
    place = places(pools)
    assert wrapper.places
    return {pool.name: pool.size for pool in pools} == wrapper.pools and all(
        place[name] == expected for name, expected in wrapper.places.items()
    )


def memory_event(line: Line) -> Sequence[object]:
    match line:
        case Allocate():
            return ["allocate", line.buffer, line.size]
        case _:
            return event_of(line)


def test_buffers_that_are_never_freed_stay_live() -> None:
    lines = [Allocate("a", 64), Run("f"), Allocate("b", 64), Run("g")]
    assert [block.live for block in group_buffers(lines)] == [[(1, 3)], [(2, 3)]]


def test_pools_are_numbered_by_first_allocation() -> None:
    """The largest buffer is placed first, but outputs are placed before all others."""
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
    """The pool and the offset of each name."""
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


class Wrapper:
    """The lines of code that torch wrote, with sizes instead of symbols."""

    def __init__(self, code: Sequence[str], symbols: Mapping[str, int]) -> None:
        self.names = {**symbols, "max": max, "align": lambda n: -(-n // 64) * 64}
        self.code = [text for text in code if not self._is_symbol(text)]
        self.outputs = re.findall(r"buf\d+", code[-1])
        self.pools: dict[str, int] = {}  # bytes
        self.places: dict[str, tuple[str, int]] = {}  # of buffers: pool and offset
        for text in self.code:
            match self._call(text):
                case [name, "empty_strided_cpu", shape, _, dtype] if "pool" in name:
                    self.pools[name] = self._bytes(shape, dtype)
                case [name, "alloc_from_pool", pool, offset, *_]:
                    self.places[name] = (ast.unparse(pool), self._number(offset))
                case _:
                    if found := re.fullmatch(r"(\w+) = (\w+) # alloc", text):
                        self.places[found[1]] = self.places[found[2]]

    def pool_lines(self) -> list[Line]:
        """The lines before pools were planned. A buffer is freed after its last use.

        A line `new = old; # reuse` belongs to an operation that uses both.
        """
        sizes: dict[str, int] = {}
        newest: dict[str, str] = {}  # last name of each memory, by its first name
        first: dict[str, str] = {}  # first name of the memory, by each name
        last_use: dict[str, int] = {}  # by memory
        lines: list[Line] = []
        for text in self.code[:-1]:
            match self._call(text):
                case [new, "alloc_from_pool", _, _, dtype, shape, _]:
                    first[new], sizes[new] = new, self._bytes(shape, dtype)
                    lines.append(Allocate(new, sizes[new]))
                case _ if found := re.match(r"(\w+) = (\w+); # reuse", text):
                    new, old = found.groups()
                    first[new] = first[old]
                    lines.append(Reuse(old, new))
                case _ if found := re.match(r"(\w+) = (\w+) # alloc", text):
                    new, old = found.groups()
                    first[new], sizes[new] = new, sizes[first[old]]
                    lines.append(Allocate(new, sizes[new]))
                case _ if not re.match(r"del |pool\d+ = ", text):
                    lines.append(Run(text))
                    for name in re.findall(r"buf\d+", text):
                        last_use[first[name]] = len(lines)
            newest |= {memory: name for name, memory in first.items()}
        for name in self.outputs:
            last_use.pop(first[name], None)
        for memory, at in sorted(last_use.items(), key=lambda use: -use[1]):
            lines.insert(at, Free(newest[memory]))
        return lines

    def lines(self, may_reuse: bool) -> list[Line]:
        """The lines before reuse was planned.

        A fused kernel that takes the new buffer first computes in place; all other
        reuse was planned.
        """
        lines: list[Line] = []
        sizes: dict[str, tuple[int, str]] = {}
        for number, text in enumerate(self.code):
            match self._event(text):
                case ["allocate", name, size]:
                    sizes[name] = size, name if not may_reuse else ""
                    lines.append(Allocate(name, size, sizes[name], number))
                case ["free", name]:
                    lines.append(Free(name, number))
                case ["reuse", old, new] if f"({new}," in self.code[number + 1]:
                    sizes[new] = sizes[old]
                    lines.append(Reuse(old, new))
                case ["reuse", old, new]:
                    sizes[new] = sizes[old]
                    lines.append(Free(old, number))
                    lines.append(Allocate(new, sizes[new][0], sizes[new], number))
                case _:
                    lines.append(Run(text))
        return lines

    def events(self) -> list[Sequence[object]]:
        """The events of the code, with a reuse after the free that permits it."""
        events: list[Sequence[object]] = []
        for number, text in enumerate(self.code):
            event = self._event(text)
            is_reuse = event[0] == "reuse"
            if is_reuse and f"({event[2]}," not in self.code[number + 1]:
                events.append(["freed_into_reuse", event[1]])
            events.append(event)
        return events

    def _event(self, text: str) -> Sequence[Any]:
        if found := re.fullmatch(r"(buf\d+) = (buf\d+); del \2 # reuse", text):
            return ["reuse", found[2], found[1]]
        if found := re.fullmatch(r"del (buf\d+)", text):
            return ["free", found[1]]
        match self._call(text):
            case [name, "empty_strided_cpu", shape, _, dtype]:
                return ["allocate", name, self._bytes(shape, dtype)]
            case _:
                return ["run", text]

    def _is_symbol(self, text: str) -> bool:
        return re.fullmatch(r"s\d+ = \w+", text) is not None

    def _call(self, text: str) -> Sequence[Any]:
        """The assigned name, the function and the arguments of `name = function()`."""
        match ast.parse(text.strip() if not text.startswith("return") else "0").body:
            case [
                ast.Assign([ast.Name(name)], ast.Call(ast.Name(function), arguments))
            ]:
                return [name, function, *arguments]
            case _:
                return []

    def _number(self, expression: ast.expr) -> int:
        return eval(ast.unparse(expression), {"__builtins__": {}}, self.names)

    def _bytes(self, shape: ast.expr, dtype: ast.expr) -> int:
        assert isinstance(shape, ast.Tuple)
        width = np.dtype(ast.unparse(dtype).removeprefix("torch.")).itemsize
        return width * prod(self._number(extent) for extent in shape.elts)
