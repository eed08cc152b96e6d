"""Random memref programs with control flow, and a memory to run them on.

    text = memref_program(Random(17), size=10)
    run(function, seed)      the contents of the arguments afterwards, byte by byte
    frees(function, seed)    the memory that was freed, or used after it was freed

Branches, loops and blocks forward buffers, select among them, and take views of them.
The paths of a run are drawn from its seed, so a program and its plan can be compared.
Bytes that were never written are None.
"""

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from random import Random
from typing import NamedTuple, cast

from xdsl.dialects import arith, cf, memref, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import SymbolTable

from tensorplan.analysis.loops import constant_range
from tensorplan.dialects.memory import dma_start
from tensorplan.dialects.tgraph.base import AnyMemRef, element_bytes

TYPES = ["16xf32", "8xf32", "16xi8", "33xi16"]


class _Writer:
    def __init__(self, random: Random):
        self.random = random
        self.names = count()
        self.size = 0

    def name(self) -> str:
        return f"%v{next(self.names)}"

    def body(
        self, there: dict[str, list[str]], depth: int, size: int, keeps: bool = False
    ) -> Iterator[str]:
        """Yields lines that read the written buffers `there`, by type, and write new
        ones. If it `keeps` them, it adds the new buffers to `there`."""
        if not keeps:
            there = {type: list(values) for type, values in there.items()}
        freed: list[tuple[str, str]] = []
        for _ in range(size):
            type = self.random.choice(TYPES)
            kinds = ["new", "new", "copy", "out", "select", "part"]
            if depth:
                kinds += ["if", "for", "while", "execute", "either", "turns"]
            kind = self.random.choice(kinds)
            yield from getattr(self, f"_{kind}")(there, type, depth, freed)
        for name, type in freed if not keeps else ():
            yield f"memref.dealloc {name} : memref<{type}>"

    def any(self, there: dict[str, list[str]], type: str) -> str:
        return self.random.choice(there[type][-6:])

    def _new(self, there, type, depth, freed) -> Iterator[str]:
        name = self.name()
        yield f"{name} = memref.alloc() : memref<{type}>"
        yield from self._fill(there, type, name)
        there[type].append(name)
        if self.random.random() < 0.5:
            freed.append((name, type))

    def _fill(self, there, type: str, name: str) -> Iterator[str]:
        source = self.any(there, type)
        kind = f"memref<{type}>"
        yield f'"memref.copy"({source}, {name}) : ({kind}, {kind}) -> ()'

    def _copy(self, there, type, depth, freed) -> Iterator[str]:
        yield from self._fill(
            there, type, self.random.choice(there[type][1:] or [f"%o{type}"])
        )

    def _out(self, there, type, depth, freed) -> Iterator[str]:
        yield from self._fill(there, type, f"%o{type}")

    def _select(self, there, type, depth, freed) -> Iterator[str]:
        a, b, name = self.any(there, type), self.any(there, type), self.name()
        yield f"{name}p = arith.cmpi ne, %n, %zero : index"
        yield f"{name} = arith.select {name}p, {a}, {b} : memref<{type}>"
        there[type].append(name)

    def _part(self, there, type, depth, freed) -> Iterator[str]:
        """Copies a part of a buffer to a part of a buffer."""
        names = self.name(), self.name()
        size = self.random.randint(1, 4)
        first, step = self.random.randint(0, 3), self.random.randint(1, 1)
        item = type.split("x")[1]
        view = f"memref<{size}x{item}, strided<[{step}], offset: {first}>>"
        for name in names:
            yield (
                f"{name} = memref.subview {self.any(there, type)}[{first}] [{size}] "
                f"[{step}] : memref<{type}> to {view}"
            )
        yield f'"memref.copy"({names[0]}, {names[1]}) : ({view}, {view}) -> ()'

    def _if(self, there, type, depth, freed) -> Iterator[str]:
        gives = self.random.random() < 0.5
        name = self.name()
        yield f"{name} = scf.if %c -> (memref<{type}>) {{" if gives else "scf.if %c {"
        for line in ("} else {", "}"):
            inside = {type: list(values) for type, values in there.items()}
            yield from self.body(inside, depth - 1, self.random.randint(1, 3), gives)
            if gives:
                yield f"scf.yield {self.any(inside, type)} : memref<{type}>"
            yield line
        if gives:
            there[type].append(name)

    def _for(self, there, type, depth, freed) -> Iterator[str]:
        gives = self.random.random() < 0.4
        index = self.name()
        if not gives:
            yield f"scf.for {index} = %zero to %n step %one {{"
            yield from self.body(there, depth - 1, self.random.randint(1, 4))
            yield "}"
            return
        count = self.random.randint(1, 3)
        names, arguments = ([self.name() for _ in range(count)] for _ in range(2))
        starts = [f"{a} = {self.any(there, type)}" for a in arguments]
        types = ", ".join([f"memref<{type}>"] * count)
        yield (
            f"{', '.join(names)} = scf.for {index} = %zero to %n step %one iter_args("
            f"{', '.join(starts)}) -> ({types}) {{"
        )
        inside = {t: list(values) for t, values in there.items()}
        inside[type] += arguments
        yield from self.body(inside, depth - 1, self.random.randint(1, 4), keeps=True)
        yielded = [self.any(inside, type) for _ in names]
        if self.random.random() < 0.5:  # the newest and its predecessors
            yielded = [inside[type][-1], *arguments[:-1]]
        yield f"scf.yield {', '.join(yielded)} : {types}"
        yield "}"
        there[type] += names

    def _while(self, there, type, depth, freed) -> Iterator[str]:
        name, before, after = self.name(), self.name(), self.name()
        kind = f"memref<{type}>"
        start = f"{before} = {self.any(there, type)}"
        yield f"{name} = scf.while ({start}) : ({kind}) -> {kind} {{"
        inside = {t: list(values) for t, values in there.items()}
        inside[type].append(before)
        yield from self.body(inside, depth - 1, 1, keeps=True)
        yield f"scf.condition(%c) {self.any(inside, type)} : {kind}"
        yield "} do {"
        yield f"^bb0({after}: {kind}):"
        inside = {t: list(values) for t, values in there.items()}
        inside[type].append(after)
        yield from self.body(inside, depth - 1, self.random.randint(1, 3), keeps=True)
        yield f"scf.yield {self.any(inside, type)} : {kind}"
        yield "}"
        there[type].append(name)

    def _new_one(self, there, type: str) -> tuple[str, list[str]]:
        """A new buffer that is not added to `there`, and the lines that write it."""
        inside, freed = {**there, type: [*there[type]]}, []
        lines = list(self._new(inside, type, 0, freed))
        return inside[type][-1], lines

    def _either(self, there, type, depth, freed) -> Iterator[str]:
        """A branch in which each path may replace a buffer, and may read it first."""
        first, lines = self._new_one(there, type)
        yield from lines
        name = self.name()
        yield f"{name} = scf.if %c -> (memref<{type}>) {{"
        for line in ("} else {", "}"):
            given = first
            if self.random.random() < 0.6:
                read = {**there, type: [*there[type], first]}
                if self.random.random() < 0.5:
                    yield from self._out(read, type, 0, [])
                given, lines = self._new_one(read, type)
                yield from lines
            yield f"scf.yield {given} : memref<{type}>"
            yield line
        there[type].append(name)

    def _turns(self, there, type, depth, freed) -> Iterator[str]:
        """A loop that replaces buffers in each iteration. It reads an old buffer
        before, while or after it writes the new one, or never."""
        count = self.random.randint(1, 2)
        firsts: list[str] = []
        for _ in range(count):
            first, lines = self._new_one(there, type)
            yield from lines
            firsts.append(first)
        names, olds = ([self.name() for _ in range(count)] for _ in range(2))
        types = ", ".join([f"memref<{type}>"] * count)
        starts = ", ".join(f"{o} = {f}" for o, f in zip(olds, firsts, strict=True))
        yield (
            f"{', '.join(names)} = scf.for {self.name()} = %zero to %n step %one "
            f"iter_args({starts}) -> ({types}) {{"
        )
        kind = f"memref<{type}>"
        news: list[str] = []
        for old in olds:
            reads = f'"memref.copy"({old}, %o{type}) : ({kind}, {kind}) -> ()'
            when = self.random.choice(["before", "as", "after", "never"])
            if when == "before":
                yield reads
            known = {**there, type: [old]} if when == "as" else there
            new, lines = self._new_one(known, type)
            yield from lines
            if when == "after":
                yield reads
            news.append(new)
        self.random.shuffle(news)
        yield f"scf.yield {', '.join(news)} : {types}"
        yield "}"
        there[type].append(self.random.choice(names))

    def _execute(self, there, type, depth, freed) -> Iterator[str]:
        yield "scf.execute_region {"
        yield from self.body(there, depth - 1, 2)
        yield "scf.yield"
        yield "}"

    def blocks(self, there: dict[str, list[str]], size: int) -> Iterator[str]:
        """A loop of blocks with a diamond whose sides forward a buffer."""
        type = self.random.choice(TYPES)
        kind = f"memref<{type}>"
        yield f"cf.br ^head({self.any(there, type)} : {kind})"
        yield f"^head(%h: {kind}):"
        inside = {t: list(values) for t, values in there.items()}
        inside[type].append("%h")
        yield from self.body(inside, 1, size, keeps=True)
        yield f"cf.cond_br %c, ^left({self.any(inside, type)} : {kind}), ^right"
        yield f"^left(%l: {kind}):"
        of_left = {t: list(values) for t, values in inside.items()}
        of_left[type].append("%l")
        yield from self.body(of_left, 1, size, keeps=True)
        again, last = (self.any(of_left, type) for _ in range(2))
        yield f"cf.cond_br %c, ^head({again} : {kind}), ^end({last} : {kind})"
        yield "^right:"
        yield from self.body(inside, 1, size)
        yield f"cf.br ^end({self.any(inside, type)} : {kind})"
        yield f"^end(%e: {kind}):"
        there[type].append("%e")


def memref_program(random: Random, size: int) -> str:
    """A function `@f` with one input `%i...` and one output `%o...` of each type."""
    writer = _Writer(random)
    there = {type: [f"%i{type}"] for type in TYPES}
    lines = [*writer.body(there, 2, size)]
    if random.random() < 0.3:
        lines += writer.blocks(there, 2)
    lines += writer.body(there, 1, 2)
    arguments = ", ".join(f"%{io}{t}: memref<{t}>" for t in TYPES for io in "io")
    return function(arguments, lines)


def function(arguments: str, lines: Sequence[str]) -> str:
    """A function `@f` with the arguments %n, %c and `arguments`, and two constants."""
    return "\n".join(
        (
            f"func.func @f(%n: index, %c: i1, {arguments}) {{",
            "%zero = arith.constant 0 : index",
            "%one = arith.constant 1 : index",
            *lines,
            "func.return",
            "}",
        )
    )


def caller() -> str:
    """A function `@root` that calls `@f` twice and frees buffers in between."""
    arguments = ", ".join(f"%{io}{t}: memref<{t}>" for t in TYPES for io in "io")
    types = ", ".join(f"memref<{t}>, memref<{t}>" for t in TYPES)

    def call(source: str, target: str) -> str:
        memrefs = ", ".join(f"%{source}{t}, %{target}{t}" for t in TYPES)
        return f"func.call @f(%n, %c, {memrefs}) : (index, i1, {types}) -> ()"

    return "\n".join(
        (
            f"func.func @root(%n: index, %c: i1, {arguments}) {{",
            *(f"%a{t} = memref.alloc() : memref<{t}>" for t in TYPES),
            call("i", "a"),
            *(f"%b{t} = memref.alloc() : memref<{t}>" for t in TYPES),
            *(
                f'"memref.copy"(%a{t}, %b{t}) : (memref<{t}>, memref<{t}>) -> ()\n'
                f"memref.dealloc %a{t} : memref<{t}>"
                for t in TYPES
            ),
            call("b", "o"),
            *(f"memref.dealloc %b{t} : memref<{t}>" for t in TYPES),
            "func.return",
            "}",
        )
    )


class _Reference(NamedTuple):
    """A memref: its memory, and the offsets and the width of its elements in bytes."""

    memory: list[object]
    places: range
    width: int

    def parts(self) -> list[slice]:
        """The slices of its bytes, in order; one slice if elements are contiguous."""
        first, step, width = self.places.start, self.places.step, self.width
        if self.places and self.places[-1] + width > len(self.memory):
            raise IndexError(f"{self.places[-1] + width} of {len(self.memory)} bytes")
        if step == width:
            return [slice(first, first + len(self.places) * width)]
        return [slice(place, place + width) for place in self.places]


_ARITHMETIC: Mapping[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: operator.add,
    arith.SubiOp: operator.sub,
    arith.MuliOp: operator.mul,
    arith.DivUIOp: operator.floordiv,
}


class _Stop(Exception):
    """The limit of executed operations is reached."""


def run(
    function: FuncOp,
    seed: int,
    most: int = 3000,
    is_late: bool = False,
    given: Mapping[str, int] | None = None,
) -> dict[int, list[object]]:
    """The final contents of the arguments that are memrefs, by argument number.

    most: the number of operations after which the run stops.
    is_late: whether transfers copy at the wait, not at the start.
    given: the values of integer arguments by name, which then determine loop bounds.
    """
    machine = _Machine(seed, most, is_late, given is not None)
    for argument in function.body.blocks[0].args:
        if isinstance(argument.type, MemRefType):
            of_input = argument.index % 2 == 0
            machine.allocate(argument, argument.index if of_input else None)
        else:
            machine.values[argument] = (given or {}).get(argument.name_hint or "", 0)
    try:
        machine.region(function.body)
    except _Stop:
        pass
    return {
        argument.index: cast(_Reference, machine.values[argument]).memory
        for argument in function.body.blocks[0].args
        if isinstance(argument.type, MemRefType)
    }


def assert_same_contents(
    before: dict[int, list[object]], after: dict[int, list[object]]
) -> None:
    """Asserts that all bytes that one run wrote are equal in another run."""
    for number, bytes in before.items():
        for x, y in zip(bytes, after[number], strict=True):
            assert x is None or x == y


class _Machine:
    def __init__(self, seed: int, most: int, is_late: bool, is_given: bool):
        self.seed = seed
        self.random = Random(seed)
        self.drawn = Counter[str]()
        """The number of draws of each condition, by its name."""
        self.left = most
        self.is_late = is_late
        self.is_given = is_given
        """Whether all bounds of loops can be computed."""
        self.under_way: dict[SSAValue, tuple[_Reference, _Reference]] = {}
        """The source and the target of each pending transfer, by tag."""
        self.values: dict[SSAValue, object] = {}

    def allocate(self, value: SSAValue, mark: object = None) -> None:
        type = cast(AnyMemRef, value.type)
        width = element_bytes(type.element_type)
        size = width * type.element_count()
        memory: list[object] = [
            None if mark is None else (mark, n) for n in range(size)
        ]
        self.values[value] = _Reference(memory, range(0, size, width), width)

    def region(self, region: Region) -> Sequence[object]:
        """Runs a region; returns the operands of its terminator."""
        block: Block | None = region.blocks[0]
        while block is not None:
            for op in block.ops:
                self.left -= 1
                if self.left < 0:
                    raise _Stop
                if op is block.last_op:
                    break
                self.operation(op)
            last = block.last_op
            block = None
            if isinstance(last, cf.BranchOp):
                block = self.enter(last.successor, last.arguments)
            elif isinstance(last, cf.ConditionalBranchOp):
                if self.random.random() < 0.5:
                    block = self.enter(last.then_block, last.then_arguments)
                else:
                    block = self.enter(last.else_block, last.else_arguments)
            elif last is not None:
                return [self.values.get(operand) for operand in last.operands]
        return ()

    def enter(self, block: Block, values: Sequence[SSAValue]) -> Block:
        found = [self.values[value] for value in values]
        self.values.update(zip(block.args, found, strict=True))
        return block

    def give(self, targets: Sequence[SSAValue], values: Sequence[object]) -> None:
        self.values.update(zip(targets, values, strict=True))

    def operation(self, op: Operation) -> None:
        match op:
            case scf.IfOp():
                holds = self.values.get(op.cond)
                if not isinstance(holds, bool):
                    holds = self.random.random() >= 0.5
                chosen = op.regions[not holds]
                if chosen.blocks:
                    self.give(op.results, self.region(chosen))
            case scf.ForOp():
                carried = [self.values[v] for v in op.iter_args]
                counted = constant_range(op)
                if self.is_given:
                    counted = range(*map(self.number, (op.lb, op.ub, op.step)))
                if counted is None:
                    counted = range(self.random.randrange(4))
                for number in counted:
                    self.give(op.body.block.args, [number, *carried])
                    carried = list(self.region(op.body))
                self.give(op.results, carried)
            case scf.WhileOp():
                carried = [self.values[v] for v in op.operands]
                while True:
                    self.give(op.before_region.block.args, carried)
                    _, *carried = self.region(op.before_region)
                    if self.random.random() < 0.4:
                        break
                    self.give(op.after_region.block.args, carried)
                    carried = list(self.region(op.after_region))
                self.give(op.results, carried)
            case scf.ExecuteRegionOp():
                self.give(op.results, self.region(op.regions[0]))
            case arith.SelectOp():
                holds = self.values.get(op.cond)
                if not isinstance(holds, bool):
                    holds = self.draw(op.result)
                self.values[op.result] = self.values[op.lhs if holds else op.rhs]
            case CallOp():
                callee = SymbolTable.lookup_symbol(op, op.callee)
                assert isinstance(callee, FuncOp)
                self.give(callee.args, [self.values[v] for v in op.operands])
                self.give(op.results, self.region(callee.body))
            case memref.AllocOp() | memref.GetGlobalOp():
                self.allocate(op.memref)
            case memref.ViewOp():
                self.view(op)
            case memref.SubviewOp():
                base = self.held(op.source)
                first = op.static_offsets.get_values()[0]
                if op.offsets:
                    first = self.number(op.offsets[0])
                size = op.static_sizes.get_values()[0]
                step = op.static_strides.get_values()[0]
                places = base.places[first : first + (size - 1) * step + 1 : step]
                self.values[op.result] = base._replace(places=places)
            case memref.CastOp():
                self.values[op.results[0]] = self.held(op.source)
            case memref.CopyOp():
                self.copy(self.held(op.source), self.held(op.destination))
            case _ if dma := dma_start(op):
                assert dma.tag not in self.under_way
                moved = self.held(dma.source), self.held(dma.target)
                self.under_way[dma.tag] = moved
                if not self.is_late:
                    self.copy(*moved)
            case memref.DmaWaitOp():
                moved = self.under_way.pop(op.tag)
                if self.is_late:
                    self.copy(*moved)
            case arith.ConstantOp() if isinstance(op.value, IntegerAttr):
                self.values[op.result] = op.value.value.data
            case arith.AddiOp() | arith.SubiOp() | arith.MuliOp() | arith.DivUIOp():
                compute = _ARITHMETIC[type(op)]
                self.values[op.result] = compute(*map(self.number, op.operands))
            case arith.CmpiOp() if self.is_given:
                assert op.predicate.value.data == 2  # signed less-than
                self.values[op.result] = self.number(op.lhs) < self.number(op.rhs)
            case arith.CmpiOp():
                self.values[op.result] = self.draw(op.result)
            case _ if op.name == "linalg.copy":
                self.copy(*map(self.held, op.operands))
            case _:
                pass

    def draw(self, value: SSAValue) -> bool:
        """Draws a condition. The draw depends on its name, so erasing other conditions
        changes nothing else in a run."""
        name = value.name_hint or ""
        self.drawn[name] += 1
        return Random(f"{self.seed} {name} {self.drawn[name]}").random() >= 0.5

    def held(self, value: SSAValue) -> _Reference:
        found = self.values[value]
        assert isinstance(found, _Reference)
        return found

    def number(self, value: SSAValue) -> int:
        found = self.values[value]
        assert isinstance(found, int)
        return found

    def view(self, op: memref.ViewOp) -> None:
        arena = self.held(op.source)
        constant = op.byte_shift.owner
        assert isinstance(constant, arith.ConstantOp)
        assert isinstance(constant.value, IntegerAttr)
        first = arena.places[0] + constant.value.value.data
        type = op.result.type
        width = element_bytes(type.element_type)
        size = width * type.element_count()
        places = range(first, first + size, width)
        self.values[op.result] = _Reference(arena.memory, places, width)

    @staticmethod
    def copy(source: _Reference, target: _Reference) -> None:
        data = [datum for part in source.parts() for datum in source.memory[part]]
        assert len(data) == len(target.places) * target.width
        for part in target.parts():
            size = part.stop - part.start
            target.memory[part], data = data[:size], data[size:]


class Frees(NamedTuple):
    """The memory that a run freed, identified by the value that allocates it."""

    freed: set[tuple[SSAValue, Operation]]  # with the dealloc
    used: set[SSAValue]  # accessed after its free


def frees(function: FuncOp, seed: int) -> Frees:
    """Runs `function` and records frees, and copies and frees of freed memory."""
    machine = _Watching(seed, 10**6, is_late=False, is_given=False)
    for argument in function.body.blocks[0].args:
        if isinstance(argument.type, MemRefType):
            machine.allocate(argument)
    machine.region(function.body)
    return machine.frees


class _Watching(_Machine):
    def __init__(self, seed: int, most: int, is_late: bool, is_given: bool):
        super().__init__(seed, most, is_late, is_given)
        self.frees = Frees(set(), set())
        self.made: list[tuple[list[object], SSAValue]] = []
        self.gone: list[list[object]] = []

    def allocate(self, value: SSAValue, mark: object = None) -> None:
        super().allocate(value, mark)
        self.made.append((self.held(value).memory, value))

    def operation(self, op: Operation) -> None:
        if isinstance(op, memref.CopyOp | memref.DeallocOp):
            for operand in op.operands:
                memory = self.held(operand).memory
                source = next(value for made, value in self.made if made is memory)
                if any(gone is memory for gone in self.gone):
                    self.frees.used.add(source)
                if isinstance(op, memref.DeallocOp):
                    self.gone.append(memory)
                    self.frees.freed.add((source, op))
        super().operation(op)
