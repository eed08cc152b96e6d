"""Reads XLA's dumps, `XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text"`.

    plan = read_file(Path("DIR/module_0001.jit_f.cpu_after_optimizations.txt"))

A compiled module has two files: the optimized HLO, in the order of its schedule, and
the buffer assignment, which assigns bytes to each value. Reads and writes are derived
from the HLO, not from the live ranges that XLA dumps as well.

An asynchronous operation becomes two steps. The step at its -start makes all reads and
writes of the operation. The step at its -done reads the contents of these bytes again,
so no step in between may write to them, and none can read earlier contents of the bytes
of the results.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ...support.foreign_plan import (
    Access,
    Block,
    Branch,
    ForeignPlan,
    ForeignPlanError,
    Forwarded,
    Loop,
    Memory,
    Region,
    Step,
    Value,
)
from .hlo import Computation, HloModule, Index, Instruction, Shape, parse
from .text import text_of

ASSIGNMENT = "-buffer-assignment.txt"

ASSUMPTIONS = (
    "XLA's runtime runs steps that share bytes in the order of the schedule",
    "an asynchronous operation of XLA runs after its -start and before its -done",
    "a fused kernel reads all that it needs of an element before it writes that one",
    "an update in place writes its window only",
    "custom calls, sorts and collectives access what they declare",
)

Values: TypeAlias = Mapping[Index, Value]
"""The values of an instruction, by path: of an array, or of a tuple and its parts."""

_ALLOCATION = re.compile(r"allocation (\d+): size (\d+), (.*):$")
_VALUE = re.compile(
    r" value: <\d+ ([\w.-]+)(?:\{([\d,]*)\})? (?:\(phi\) )?@\d+> "
    r"\(size=(\d+),offset=(\d+)\)"
)
_STAGE = re.compile(rf"(\.(sm_\d+\.)?\w+_after_optimizations)?{ASSIGNMENT}$")
"""Matches the end of a file's name after the name of the module."""

_FORWARDING = ("bitcast", "optimization-barrier", "add-dependency", "domain")

_STARTS: Mapping[str, tuple[Index | None, Index]] = {
    "async-start": ((0,), (1,)),
    "copy-start": ((1,), (0,)),
    "all-gather-start": ((0,), (1,)),
    "collective-permute-start": ((0,), (1,)),
    "all-reduce-start": (None, ()),
}
"""The paths to the operands, if any, and to the results in the tuple of a -start."""

_QUEUE = re.compile(r'"operation_queue_id":"([1-9]\d*)"')
"""Matches a stream other than the main one."""

_HOST = 5
"""The number of the host's memory space."""


def read_file(path: Path) -> ForeignPlan:
    """The plan of one module, from either of its two files.

    Raises `ForeignPlanError` for other files, and `OSError`.
    """
    if path.suffix != ".txt":
        raise ForeignPlanError(
            f"this is not another compiler's plan, expected *{ASSIGNMENT} or "
            "another input that "
            "plan-audit --help lists; plan-opt -p plan-check proves plans in memref IR",
            str(path),
        )
    stem = str(path).removesuffix(ASSIGNMENT).removesuffix(".txt")
    assignment, hlo = (Path(stem + end) for end in (ASSIGNMENT, ".txt"))
    module = parse(text_of(hlo), str(hlo))
    if not module.is_scheduled:
        raise ForeignPlanError("the module has no schedule", str(hlo))
    return read(module, text_of(assignment), str(assignment))


def read(module: HloModule, assignment: str, name: str) -> ForeignPlan:
    """The plan of a module with the buffer assignment in the file `name`."""
    reader = _Reader(module)
    reader.read_assignment(assignment, name)
    try:
        return reader.plan(_STAGE.sub("", Path(name).name))
    except (LookupError, ValueError, RecursionError):
        raise ForeignPlanError(
            "its values do not match those of the HLO", name
        ) from None


class _Running(NamedTuple):
    """An asynchronous operation between its -start and -done."""

    steps: Block
    reads: Sequence[Value]
    """The contents of its bytes that must be intact at the -done."""
    state: Values
    """The results of the -start."""
    results: Values
    """The results of the -done."""


class _Reader:
    def __init__(self, module: HloModule):
        self.module = module
        self.memories: dict[str, Memory] = {}
        self.regions: dict[tuple[str, Index], Region] = {}
        self.constants: dict[str, Value] = {}
        self.not_understood: Counter[str] = Counter()
        self.asynchronous = {
            by.called("calls")
            for computation in module.computations.values()
            for by in computation.instructions
            if by.opcode == "async-start" and "calls" in by.attributes
        }
        """The computations that an async-start calls."""

    def read_assignment(self, text: str, name: str) -> None:
        """Reads the regions of values. Raises `ForeignPlanError` for other text."""
        memory = ""
        for line in text.splitlines():
            if found := _ALLOCATION.match(line):
                memory = f"allocation {found[1]}"
                self.memories[memory] = Memory(int(found[2]), _kind(found[3]))
            elif found := _VALUE.match(line):
                if not memory:
                    raise ForeignPlanError("a value precedes all allocations", name)
                region = Region(memory, int(found[4]), int(found[3]))
                self.regions[found[1], _index(found[2])] = region
            elif line.strip() and line != "BufferAssignment:" and self.memories:
                break  # only totals follow
        if not self.memories:
            raise ForeignPlanError("this is not an XLA buffer assignment", name)

    def plan(self, name: str) -> ForeignPlan:
        entry = self.module.entry
        arguments = [self._own(parameter) for parameter in entry.parameters]
        steps, results = self._block(entry, arguments)
        donated = set(self.module.aliases.values())
        lent = [
            value
            for number, values in enumerate(arguments)
            if number not in donated
            for value in values.values()
        ]
        given = [value for values in arguments for value in values.values()]
        constants = list(self.constants.values())
        return ForeignPlan(
            name,
            {n: m for n, m in self.memories.items() if m.kind != "thread-local"},
            steps,
            [*given, *constants],
            [*results.values(), *lent, *constants],
            ASSUMPTIONS,
            self.not_understood,
        )

    def _block(
        self, computation: Computation, arguments: Sequence[Values]
    ) -> tuple[Block, Values]:
        """The steps of a computation, and the values of its result."""
        values: dict[str, Values] = {}
        steps: list[Step | Forwarded | Loop | Branch] = []
        running: dict[str, _Running] = {}
        for by in computation.instructions:
            operands = [values[name] for name in by.operands]
            match by.opcode:
                case "parameter":
                    values[by.name] = arguments[int(by.literal)]
                case "constant":
                    values[by.name] = own = self._own(by)
                    self.constants |= {value.name: value for value in own.values()}
                case "get-tuple-element":
                    number = int(by.attributes["index"])
                    values[by.name] = _under(operands[0], (number,))
                case "tuple":
                    own = self._own(by, [((), by.shape)])
                    steps.append(self._step(by, computation, operands[:0], own))
                    values[by.name] = {**own, **_joined(operands)}
                case opcode if opcode in _FORWARDING:
                    values[by.name] = operands[0]
                case "while":
                    loop, values[by.name] = self._loop(by, operands[0])
                    steps.append(loop)
                case "conditional":
                    branch, values[by.name] = self._branch(by, operands)
                    steps.append(branch)
                case "call":
                    called = self.module.computations[by.called("to_apply")]
                    inner, values[by.name] = self._block(called, operands)
                    steps += inner
                case opcode if opcode in _STARTS:
                    begun = self._start(by, computation, operands)
                    running[by.name] = begun
                    values[by.name] = begun.state
                    steps += begun.steps
                case "async-update" if by.operands[0] in running:
                    running[by.name] = running[by.operands[0]]
                    values[by.name] = operands[0]
                case opcode if opcode.endswith("-done") and by.operands[0] in running:
                    begun = running[by.operands[0]]
                    steps.append(Step(by.name, opcode, begun.reads, (), by.location))
                    values[by.name] = begun.results
                case _:
                    if by.opcode.endswith(("-start", "-update", "-done")):
                        self.not_understood[f"asynchronous {by.opcode}"] += 1
                    elif self._is_elsewhere(by, computation):
                        self.not_understood["steps on other streams"] += 1
                    values[by.name] = own = self._own(by)
                    steps.append(self._step(by, computation, operands, own))
        return steps, values[computation.root.name]

    def _start(
        self, by: Instruction, computation: Computation, operands: Sequence[Values]
    ) -> "_Running":
        """The start of an asynchronous operation, which is a computation or a step."""
        taken, made = _STARTS[by.opcode]
        parts = dict(by.shape.leaves())
        given: Values = {}
        if taken is not None:
            lent = _joined(operands) if parts[taken].parts is not None else operands[0]
            given = {(*taken, *index): value for index, value in lent.items()}
        body: Block = []
        results: Values = {}
        if by.opcode == "async-start":
            called = self.module.computations[by.called("calls")]
            body, values = self._block(called, operands)
            results = {(*made, *index): value for index, value in values.items()}
            given = {**given, **results}
            operands = []
        own = self._own(by, [(i, s) for i, s in parts.items() if i not in given])
        body = [self._step(by, computation, operands, own), *body]
        if any(isinstance(item, Loop | Branch) for item in body):
            self.not_understood["asynchronous loops and branches"] += 1
        state = {**given, **own}
        reads = dict.fromkeys([*own.values(), *_left(body)])
        return _Running(body, [*reads], state, _under(state, made))

    def _own(
        self, by: Instruction, parts: Iterable[tuple[Index, Shape]] | None = None
    ) -> Values:
        """The values that an instruction defines, as far as they have bytes."""
        found: dict[Index, Value] = {}
        for index, shape in parts or by.shape.leaves():
            region = self.regions.get((by.name, index))
            if region is None:
                if shape.bytes:
                    self.not_understood["values without bytes"] += 1
                continue
            size = region.size if shape.bytes is None else shape.bytes
            name = _name(by.name, index)
            region = region._replace(size=size)
            origin = by.origin or by.opcode
            found[index] = Value(name, region, str(shape), origin, by.location)
        return found

    def _step(
        self,
        by: Instruction,
        computation: Computation,
        operands: Sequence[Values],
        results: Values,
    ) -> Step:
        reads: list[Value] = []
        numbers: list[int] = []
        for number, values in enumerate(operands):
            leaves = [v for i, v in values.items() if not _is_table(i, values)]
            reads += leaves
            numbers += [number] * len(leaves)
        indices = [i for i in results if _is_read(by, i, computation)]
        writes = [results[index] for index in indices]
        scratch = [value for index, value in results.items() if index not in indices]

        def relation(read: int, write: int) -> Access:
            from .hlo_elements import Sharing, access  # loads NumPy

            same = (
                n
                for r, n in zip(reads, numbers, strict=True)
                if r.region == writes[write].region
            )
            sharing = Sharing(numbers[read], indices[write], frozenset(same))
            return access(self.module, by, computation, sharing)

        kinds = [self.memories[v.region.memory].kind for v in (*reads, *writes)]
        is_copy = (
            by.opcode == "copy"
            and by.shape.bytes == sum(v.region.size for v in reads)
            and kinds.count("host") in (0, len(kinds))
        )
        details = (by.location, relation, is_copy, scratch)
        return Step(by.name, by.opcode, reads, writes, *details)

    def _is_elsewhere(self, by: Instruction, computation: Computation) -> bool:
        """Whether an operation runs on another stream without -start and -done."""
        config = by.attributes.get("backend_config", "")
        return bool(_QUEUE.search(config)) and computation.name not in self.asynchronous

    def _loop(self, by: Instruction, initial: Values) -> tuple[Loop, Values]:
        condition, body = (
            self.module.computations[by.called(name)] for name in ("condition", "body")
        )
        tested, carried, left = (
            self._renamed(instruction, initial)
            for instruction in (condition.parameters[0], body.parameters[0], by)
        )
        test, _ = self._block(condition, [tested])
        steps, results = self._block(body, [carried])
        loop = Loop(
            by.name,
            test,
            [*_forwarded(tested, carried), *steps],
            _forwarded(initial, tested),
            _forwarded(results, tested),
            _forwarded(tested, left),
            by.location,
        )
        return loop, left

    def _branch(
        self, by: Instruction, operands: Sequence[Values]
    ) -> tuple[Branch, Values]:
        names = re.findall(r"%?([\w.-]+)", by.attributes.get("branch_computations", ""))
        names = names or [
            by.called(f"{choice}_computation") for choice in ("true", "false")
        ]
        choices: list[Block] = []
        joined: Values = {}
        for name, argument in zip(names, operands[1:], strict=True):
            steps, results = self._block(self.module.computations[name], [argument])
            joined = joined or self._renamed(by, results)
            choices.append([*steps, *_forwarded(results, joined)])
        return Branch(by.name, choices, by.location), joined

    def _renamed(self, by: Instruction, values: Values) -> Values:
        """The values, named after `by`, in its bytes or else in their own."""
        found: dict[Index, Value] = {}
        for index, value in values.items():
            region = self.regions.get((by.name, index), value.region)
            region = region._replace(size=value.region.size)
            name = _name(by.name, index)
            found[index] = value._replace(name=name, region=region)
        return found


def _kind(text: str) -> str:
    """The kind of an allocation, from its description: `page 0, parameter 1, ...`."""
    if "thread-local" in text:
        return "thread-local"
    if f"color {_HOST}" in text.split(", "):
        return "host"
    if re.search(r"(^|, )parameter ", text):
        return "argument"
    if re.search(r"(^|, )constant", text):
        return "constant"
    return "result" if "maybe-live-out" in text else "temporary"


def _index(text: str | None) -> Index:
    return tuple(map(int, text.split(","))) if text else ()


def _name(instruction: str, index: Index) -> str:
    return f"{instruction}{{{','.join(map(str, index))}}}" if index else instruction


def _is_read(by: Instruction, index: Index, computation: Computation) -> bool:
    """Whether this part of a result is used; if not, it is scratch memory."""
    if not index or by.name in computation.read_whole:
        return True
    return (by.name, str(index[0])) in computation.read_parts


def _left(block: Block) -> Sequence[Value]:
    """The contents of all bytes that the steps read or write, after the steps.

    A part of a value has the name of the whole value.
    """
    found: list[Value] = []
    for step in block:
        if isinstance(step, Step):
            writes = [*step.writes, *step.scratch]
            found += step.reads
            for taken in writes:
                found = [part for v in found for part in _without(v, taken.region)]
            found += writes
    return found


def _without(value: Value, taken: Region) -> Sequence[Value]:
    """The parts of a value outside of the region `taken`."""
    whole = value.region
    if not whole.overlaps(taken):
        return [value]
    sides = (
        whole._replace(size=taken.offset - whole.offset),
        whole._replace(offset=taken.end, size=whole.end - taken.end),
    )
    return [value._replace(region=side) for side in sides if side.size > 0]


def _is_table(index: Index, values: Values) -> bool:
    """Whether the value is the pointer table of a tuple, which no kernel reads."""
    return any(len(i) > len(index) and i[: len(index)] == index for i in values)


def _under(values: Values, part: Index) -> Values:
    """The values in a part of a tuple, by their paths in it."""
    size = len(part)
    return {i[size:]: value for i, value in values.items() if i[:size] == part}


def _joined(operands: Sequence[Values]) -> Values:
    return {
        (number, *index): value
        for number, values in enumerate(operands)
        for index, value in values.items()
    }


def _forwarded(old: Values, new: Values) -> Sequence[Forwarded]:
    return [Forwarded(old[i], value) for i, value in new.items() if i in old]
