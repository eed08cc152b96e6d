"""Reads plans of ExecuTorch from `.pte` files, flatbuffers with offsets of tensors.

Field numbers are those of ExecuTorch's `schema/program.fbs`, which never change. The
last argument of a kernel is its result: either the `out` tensors, which also occur
before it, or an argument that the kernel updates.
"""

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import NamedTuple

from ...support.foreign_plan import (
    Access,
    ForeignPlan,
    ForeignPlanError,
    Forwarded,
    Memory,
    Region,
    Step,
    Unknown,
    Value,
)
from .elements import element_width
from .flatbuffer import Table, root
from .torch_snapshot import is_library

ENDINGS = (".pte",)

ASSUMPTIONS = (
    "ExecuTorch's kernels read and write the tensors that they are given",
    "a tensor that no kernel writes is a view of the last one of its size and offset",
    "a tensor that is read before it is written keeps its contents from run to run",
)

_DTYPES = {
    **{0: "u8", 1: "i8", 2: "i16", 3: "i32", 4: "i64", 5: "f16", 6: "f32", 7: "f64"},
    **{11: "bool", 15: "bf16", 24: "f8E5M2", 25: "f8E4M3FN"},
}
_TENSOR, _TENSOR_LIST = 5, 10
_KERNEL = 1
_COPIES = frozenset(
    f"{name}_copy.out"
    for name in ("aten::alias", "aten::detach", "aten::squeeze", "aten::unsqueeze")
) | {"aten::clone.out", "aten::view_copy.out", "dim_order_ops::_clone_dim_order.out"}
_OTHERS = {2: "calls of delegates", 5: "frees"}


def read_file(path: Path) -> ForeignPlan:
    """The plan of the first method.

    Raises `ForeignPlanError` for a file of another kind, and `OSError`.
    """
    data = path.read_bytes()
    if data[4:6] != b"ET":
        raise ForeignPlanError("this is not an ExecuTorch program", str(path))
    try:
        program = root(data)
        return _Method(program.tables(1)[0]).plan(path.name)
    except (struct.error, LookupError, ValueError, OverflowError):
        raise ForeignPlanError("the flatbuffer is damaged", str(path)) from None


class _Call(NamedTuple):
    """A call of a kernel."""

    name: str
    operation: str  # `aten::add.out`
    arguments: Sequence[int]  # indices of values
    location: str


class _Method:
    def __init__(self, method: Table):
        self.method = method
        values = [(v.number(0, "B"), v.table(1)) for v in method.tables(2)]
        self.lists = {
            number: content.vector(0)
            for number, (kind, content) in enumerate(values)
            if content is not None and kind == _TENSOR_LIST
        }
        self.not_understood: Counter[str] = Counter()
        self.is_whole = True
        self.calls = self._calls()
        makers = {n: c for c in self.calls for n in self._flat(c.arguments[-1:])}
        self.tensors: dict[int, Value] = {}
        for number, (kind, content) in enumerate(values):
            if content is not None and kind == _TENSOR:
                self._add_tensor(number, content, makers.get(number))

    def _add_tensor(self, number: int, tensor: Table, maker: _Call | None) -> None:
        """Adds a tensor unless it is a constant, which has no bytes in the plan."""
        if (place := tensor.table(6)) is None:
            return
        dtype = _DTYPES.get(tensor.number(0, "b"), "?")
        sizes = tensor.vector(2)
        size = prod(sizes) * (element_width(dtype) or 1)
        offset = place.number(1, "I") + (place.number(2, "I") << 32)
        region = Region(f"memory {place.number(0, 'I')}", offset, size)
        type = "x".join((*map(str, sizes), dtype))
        origin, location = (maker.operation, maker.location) if maker else ("", "")
        self.tensors[number] = Value(f"value {number}", region, type, origin, location)

    def _flat(self, numbers: Sequence[int]) -> list[int]:
        return [n for number in numbers for n in self.lists.get(number, (number,))]

    def plan(self, name: str) -> ForeignPlan:
        memories = {
            f"memory {number}": Memory(size, "temporary")
            for number, size in enumerate(self.method.vector(8, "q"))
            if number
        }
        calls = [self._step(call) for call in self.calls]
        state = _state(calls)
        given = [*self._tensors(self.method.vector(3)), *state]
        results = [*self._tensors(self.method.vector(4)), *state]
        kept = results if self.is_whole else []
        made = {value for step in calls for value in step.writes} | {*given}
        last = {value.region: value for value in given}
        steps: list[Step | Forwarded] = []
        for step in calls:
            steps += _views(step.reads, made, last)
            steps.append(step)
            last |= {value.region: value for value in step.writes}
        steps += _views(kept, made, last)
        return ForeignPlan(
            name, memories, steps, given, kept, ASSUMPTIONS, self.not_understood
        )

    def _tensors(self, numbers: Sequence[int]) -> list[Value]:
        """The tensors among the values that have bytes in the plan."""
        return [self.tensors[n] for n in self._flat(numbers) if n in self.tensors]

    def _calls(self) -> Sequence[_Call]:
        """The calls of kernels up to the first jump. Counts instructions after it."""
        (chain,) = self.method.tables(5)
        places = [_place(frames) for frames in chain.tables(3)]
        operators = [f"{o.text(0)}.{o.text(1)}" for o in self.method.tables(6)]
        calls: list[_Call] = []
        for number, instruction in enumerate(chain.tables(2)):
            kind, call = instruction.number(0, "B"), instruction.table(1)
            if kind in _OTHERS:
                self.not_understood[_OTHERS[kind]] += 1
                continue
            if call is None or kind != _KERNEL:
                rest = len(chain.tables(2)) - number
                self.not_understood["instructions from the first jump on"] = rest
                self.is_whole = False
                break
            place = places[number] if number < len(places) else ""
            operation = operators[call.number(0)]
            name = f"instruction {number}"
            calls.append(_Call(name, operation, call.vector(1), place))
        return calls

    def _step(self, call: _Call) -> Step:
        reads, writes = (
            self._tensors(part) for part in (call.arguments[:-1], call.arguments[-1:])
        )
        if writes and reads[-len(writes) :] == writes:
            del reads[-len(writes) :]

        def access(read: int, write: int) -> Access:
            if reads[read] == writes[write]:
                return None  # updated in place
            return Unknown("nothing is known about the operation")

        is_copy = call.operation in _COPIES
        return Step(
            call.name, call.operation, reads, writes, call.location, access, is_copy
        )


def _state(calls: Sequence[Step]) -> Sequence[Value]:
    """Tensors that are read before they are written: buffers of the method."""
    written: set[Value] = set()
    read: dict[Value, None] = {}
    for step in calls:
        read |= dict.fromkeys(v for v in step.reads if v not in written)
        written.update(step.writes)
    return [value for value in read if value in written]


def _views(
    reads: Sequence[Value], made: set[Value], last: Mapping[Region, Value]
) -> Sequence[Forwarded]:
    """Aliases: a tensor that no kernel writes is the last one written to its bytes."""
    return [
        Forwarded(last[value.region], value)
        for value in dict.fromkeys(reads)
        if value not in made and value.region in last
    ]


def _place(frames: Table) -> str:
    """`file:line` of the innermost stack frame in the user's program."""
    found = [(frame.text(0), frame.number(1)) for frame in frames.tables(0)]
    own = [f"{file}:{line}" for file, line in found if not is_library(file)]
    return own[-1] if own else ""
