"""Plans the arena of TensorFlow Lite Micro: adds offsets to a model's metadata.

    plan-tflm model.tflite -o planned.tflite

The runtime reads the metadata `OfflineMemoryAllocation` at startup. It places buffers
without an offset, such as the scratch memory of kernels, around the others. The live
ranges are the ones that the runtime computes. frontends/plans/tflite.py describes the
format; field numbers are those of TensorFlow Lite's `schema.fbs`.
"""

import argparse
import struct
import sys
from collections.abc import Container, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from graphlib import TopologicalSorter
from math import prod
from typing import NamedTuple

from ..frontends.plans import tflite
from ..frontends.plans.flatbuffer import Table, root
from ..planning import Buffer, Problem, solve
from ..planning.problem import peak_of
from ..planning.solver.gaps import LOWEST
from ..planning.solver.greedy import in_order
from ..support.foreign_plan import ForeignPlanError
from ..tools.arguments import Parser
from ..tools.colors import diagnostic
from ..tools.common import (
    check_inputs,
    check_outputs,
    guard,
    read_source,
    write_atomically,
)

_ALIGNMENT = 16
"""The alignment of offsets and sizes: the runtime's `MicroArenaBufferAlignment`."""
_ONLINE = -1
"""The offset of a tensor that the runtime places."""
_FIELDS = 8
"""The number of fields of a model. Fields 4 and 6 are its buffers and its metadata."""
_CALLS = {118: 2, 119: 2, 129: 1}
"""The number of subgraphs in the options of IF, WHILE and CALL_ONCE."""


class _Tensor(NamedTuple):
    size: int  # bytes; 0 for a constant
    is_variable: bool


class _Operator(NamedTuple):
    name: str  # of a custom operator
    reads: Sequence[int]  # tensors, numbered consecutively over all subgraphs
    writes: Sequence[int]
    calls: Sequence[int]  # numbers of subgraphs


class _Graph(NamedTuple):
    inputs: Sequence[int]
    outputs: Sequence[int]
    operators: Sequence[_Operator]


@contextmanager
def _reading(name: str) -> Generator[None]:
    try:
        yield
    except (struct.error, LookupError, ValueError, OverflowError):
        raise ForeignPlanError("the flatbuffer is damaged", name) from None


class _Model:
    """The parts of a `.tflite` file that determine its memory.

    Raises `ForeignPlanError`, with `name` as the place, if `data` is not such a file.
    """

    def __init__(self, data: bytes, name: str):
        with _reading(name):
            self._read(tflite.model_of(data, name))
            self.lives = _lives(self.graphs)
            self.sizes = {n: self.tensors[n].size for n in self.lives}

    def _read(self, model: Table) -> None:
        buffers = model.tables(4)
        codes = model.tables(1)
        self.tensors: list[_Tensor] = []
        self.graphs: list[_Graph] = []
        for graph in model.tables(2):
            first = len(self.tensors)
            self.tensors += [_tensor(each, buffers) for each in graph.tables(0)]
            operators = [_operator(each, codes, first) for each in graph.tables(3)]
            inputs, outputs = (_numbers(graph, field, first) for field in (1, 2))
            self.graphs.append(_Graph(inputs, outputs, operators))
        self.offsets = tflite.offsets(model)
        if self.offsets and len(self.offsets.content) != len(self.tensors):
            raise ValueError


def _tensor(tensor: Table, buffers: Sequence[Table]) -> _Tensor:
    _, width = tflite.TYPES[tensor.number(1, "b")]
    content = buffers[tensor.number(2, "I")].table(0)
    is_constant = content and any(struct.unpack_from("<I", content.data, content.at))
    size = 0 if is_constant else width * prod(tensor.vector(0))
    if not width or not 0 <= size < 1 << 31:
        raise OverflowError
    return _Tensor(size, bool(tensor.number(5, "B")))


def _operator(operator: Table, codes: Sequence[Table], first: int) -> _Operator:
    code = codes[operator.number(0, "I")]
    options = operator.table(4)
    fields = range(_CALLS.get(tflite.builtin(code), 0) if options else 0)
    return _Operator(
        code.text(1),
        _numbers(operator, 1, first),
        _numbers(operator, 2, first),
        [options.number(field) for field in fields] if options else (),
    )


def _numbers(table: Table, field: int, first: int) -> Sequence[int]:
    """The numbers of the tensors in a field, without missing operands, which are -1 in
    the file. `first` is the number of the subgraph's first tensor."""
    return [first + number for number in table.vector(field) if number >= 0]


class _Run:
    """The live ranges of a subgraph's tensors, in steps relative to its call.

    Steps are counted as in the runtime's `AllocationInfoBuilder`. The subgraphs that an
    operator calls run within the step of the operator.
    """

    def __init__(self, graph: _Graph, runs: "Mapping[int, _Run]"):
        """`runs` has a `_Run` for each subgraph that `graph` calls."""
        self.steps = 0
        self.lives: dict[int, tuple[int, int]] = {}
        """The first and the last step of each tensor."""
        self.calls: list[tuple[int, int]] = []
        """The called subgraphs, and the steps in which they start."""
        self._use(graph.inputs)
        for operator in graph.operators:
            self.steps += 1
            self._use(operator.writes)
            for called in operator.calls:
                self.calls.append((called, self.steps + 1))
                self.steps += 1 + runs[called].steps
            self._use([n for n in operator.reads if n in self.lives])
            self._use(operator.writes)
        self._use(graph.outputs)
        if self.steps >= 1 << 31:
            raise OverflowError

    def _use(self, tensors: Sequence[int]) -> None:
        for number in tensors:
            first, _ = self.lives.get(number, (self.steps, 0))
            self.lives[number] = first, self.steps


def _lives(graphs: Sequence[_Graph]) -> Mapping[int, tuple[int, int]]:
    """The first and the last step of each tensor.

    Each subgraph is visited once, even if it is called several times.
    """
    called = {
        number: [n for operator in graph.operators for n in operator.calls]
        for number, graph in enumerate(graphs)
    }
    runs: dict[int, _Run] = {}
    # TopologicalSorter raises a ValueError if a subgraph calls itself.
    for number in TopologicalSorter(called).static_order():
        if number not in called:
            raise ValueError
        runs[number] = _Run(graphs[number], runs)
    starts = {0: (0, 0)}  # the steps of each subgraph's first and last call
    lives: dict[int, tuple[int, int]] = {}
    for number, run in reversed(runs.items()):
        if number not in starts:
            continue
        first, last = starts[number]
        for callee, step in run.calls:
            once, again = starts.get(callee, (first + step, last + step))
            starts[callee] = min(once, first + step), max(again, last + step)
        lives |= {n: (first + a, last + z) for n, (a, z) in run.lives.items()}
    return lives


class Planned(NamedTuple):
    model: bytes
    arena: int  # the size of the tensors' arena in bytes
    lower_bound: int
    runtime_arena: int  # its size in bytes in the runtime's own plan


def plan(model: bytes, name: str = "model") -> Planned:
    """Plans a `.tflite` file: returns it with offsets for all tensors in the arena.

    If the runtime's own plan needs no more memory, all offsets are -1, which leaves the
    plan to the runtime. The runtime's plan also includes the scratch memory of kernels.

    Raises `ForeignPlanError`, with `name` as the place, if `model` cannot be planned.
    """
    read = _Model(model, name)
    if any(op.name == "ethos-u" for graph in read.graphs for op in graph.operators):
        reason = "Vela has compiled the offsets of tensors into an operator"
        raise ForeignPlanError(reason, name)
    numbers = [
        number
        for number, size in sorted(read.sizes.items())
        if size and not read.tensors[number].is_variable
    ]
    problem = Problem([_buffer(read, number) for number in numbers])
    own, found = _own_peak(problem), solve(problem)
    is_better = found.peak < own
    offsets = dict(zip(numbers, found.offsets, strict=True)) if is_better else {}
    content = [offsets.get(n, _ONLINE) for n in range(len(read.tensors))]
    peak = found.peak if is_better else own
    return Planned(_with(model, read, content, name), peak, problem.lower_bound, own)


def offsets(model: bytes, name: str = "model") -> Sequence[int]:
    """The offsets in the metadata of a model, for the tensors of all subgraphs. An
    offset of -1 means that the runtime places the tensor. Empty if the model has no
    plan.

    Raises `ForeignPlanError`, with `name` as the place, if `model` is not a model.
    """
    found = _Model(model, name).offsets
    return found.content if found else ()


def _own_peak(problem: Problem) -> int:
    """The peak in bytes of the runtime's `GreedyMemoryPlanner`. It places the largest
    tensors first, and tensors of equal size in reverse order of the file, each at the
    lowest free offset."""
    placed = in_order(problem, lambda index, b: (-b.size, -index), LOWEST)
    return peak_of(problem.buffers, placed.offsets)


def _buffer(model: _Model, number: int) -> Buffer:
    size = -(-model.tensors[number].size // _ALIGNMENT) * _ALIGNMENT
    first, last = model.lives[number]
    return Buffer(str(number), size, first, last + 1, _ALIGNMENT)


def _with(data: bytes, model: _Model, offsets: Sequence[int], name: str) -> bytes:
    """The file with `offsets` in its metadata, which replace existing ones."""
    content = struct.pack(f"<{len(offsets)}i", *offsets)
    if model.offsets:
        at = model.offsets.at
        return data[:at] + content + data[at + len(content) :]
    with _reading(name):
        return _grown(
            root(data), tflite.HEADER.pack(1, 0, len(offsets)) + content, name
        )


def _grown(old: Table, plan: bytes, name: str) -> bytes:
    is_newer = any(old.field(number) for number in range(_FIELDS, 2 * _FIELDS))
    if is_newer or any(buffer.field(1) for buffer in old.tables(4)):
        reason = "the model has fields of a later schema, or buffers behind its tables"
        raise ForeignPlanError(reason, name)
    return _Front(old, plan).written() + old.data


class _Front:
    """A new model table with one more buffer and metadata entry, to be written before
    the old file. References of a flatbuffer point forward, so the new table can refer
    to parts of the old file.

    It consists of 32-bit words. References are kept as positions until all are known.
    """

    def __init__(self, old: Table, plan: bytes):
        self._words: list[int] = []
        self._references: dict[int, tuple[int, bool]] = {}
        """By word: the position to which it refers, and whether this is in bytes of the
        old file, rather than in words of the new part."""
        self._new(2)
        kept = {f: t for f in (1, 2, 3, 5, 7) if (t := old.table(f))}
        self._refer(0, self._table(_FIELDS, {1, 2, 3, 5, 7} - kept.keys()))
        self._words[1] = struct.unpack("<I", tflite.IDENTIFIER)[0]
        table = self._references[0][0]
        for field, target in kept.items():
            self._old(table + 1 + field, target)
        self._words[table + 1] = old.number(0, "I")
        buffers, metadata = old.tables(4), old.tables(6)
        self._refer(table + 5, added := self._vector(buffers))
        self._refer(table + 7, entries := self._vector(metadata))
        self._refer(entries + 1 + len(metadata), entry := self._table(2))
        self._refer(entry + 1, self._bytes(tflite.METADATA.encode() + b"\0", ends=1))
        self._words[entry + 2] = len(buffers)
        self._refer(added + 1 + len(buffers), buffer := self._table(1))
        while (len(self._words) + 1) % 4:  # buffers are aligned to 16 bytes
            self._new(1)
        self._refer(buffer + 1, self._bytes(plan))
        self._new(-len(self._words) % 4)

    def _new(self, count: int) -> int:
        self._words += [0] * count
        return len(self._words) - count

    def _refer(self, at: int, target: int) -> None:
        self._references[at] = target, False

    def _old(self, at: int, target: Table) -> None:
        self._references[at] = target.at, True

    def _table(self, fields: int, absent: Container[int] = ()) -> int:
        """Adds a table. Each field takes one word, including the `absent` fields."""
        at = [0 if n in absent else 4 + 4 * n for n in range(fields)]
        sizes = [4 + 2 * fields, 4 + 4 * fields, *at]
        sizes += [0] * (len(sizes) % 2)
        start = self._new(len(sizes) // 2)
        self._words[start:] = struct.unpack(
            f"<{len(sizes) // 2}I", struct.pack(f"<{len(sizes)}H", *sizes)
        )
        table = self._new(1 + fields)
        self._words[table] = 4 * (table - start)
        return table

    def _vector(self, old: Iterable[Table]) -> int:
        """Adds a vector of the `old` tables, with room for one more."""
        tables = list(old)
        vector = self._new(2 + len(tables))
        self._words[vector] = len(tables) + 1
        for number, table in enumerate(tables, vector + 1):
            self._old(number, table)
        return vector

    def _bytes(self, content: bytes, ends: int = 0) -> int:
        vector = self._new(1)
        self._words[vector] = len(content) - ends
        words = content + bytes(-len(content) % 4)
        self._words += struct.unpack(f"<{len(words) // 4}I", words)
        return vector

    def written(self) -> bytes:
        for word, (target, is_old) in self._references.items():
            position = 4 * len(self._words) + target if is_old else 4 * target
            self._words[word] = position - 4 * word
        return struct.pack(f"<{len(self._words)}I", *self._words)


def make_parser() -> Parser:
    parser = Parser(
        "plan-tflm",
        "FILE -o FILE",
        "Plans the arena of a model for TensorFlow Lite Micro: writes the model with "
        "the offsets of its tensors as the metadata 'OfflineMemoryAllocation', which "
        "the runtime uses.",
    )
    parser.add_argument(
        "file", metavar="FILE", help="a model: .tflite; '-' reads from stdin"
    )
    parser.add_argument(
        *("-o", "--output"),
        metavar="FILE",
        required=True,
        help="the planned model; '-' is stdout",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """`plan-tflm`."""
    return guard("plan-tflm", lambda: _run(make_parser().parse(arguments)))


def _run(options: argparse.Namespace) -> int:
    check_inputs(options.file)
    check_outputs(options.output)
    source = read_source(options.file)
    try:
        planned = plan(source.data, source.name)
    except ForeignPlanError as error:
        text = f"{error.place}: error: {error.reason}"
        print(diagnostic(text, sys.stderr), file=sys.stderr)
        return 1
    write_atomically(options.output, planned.model)
    print(
        f"arena: {planned.arena:,} bytes, lower bound {planned.lower_bound:,}, "
        f"TensorFlow Lite Micro's own plan {planned.runtime_arena:,}",
        file=sys.stderr if options.output == "-" else sys.stdout,
    )
    return 0
