"""Compiles upstream operations of a program: scalars, loops, branches, linalg.

    %v = memref.load %flag[]          each scalar is a rank-0 array
    scf.for %i = %a to %b step %c     a call that runs the calls of the body
      iter_args(%x = %y) {            iteration arguments move to arrays of the loop
      linalg.generic ...              see linalg.py
    memref.dma_start ...              a copy; memref.dma_wait has nothing to wait for

The position of each memref is fixed at compile time. Loops or branches that yield
memrefs (`scf.if ... -> memref<4xf32>`) and `arith.select` of memrefs are refused.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Protocol

import numpy as np
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from ...dialects.diagnostics import LocatedError, name_of
from ...dialects.dtypes import constant, numpy_dtype
from ...dialects.memory import (
    DmaStart,
    check_same_elements,
    dma_start,
    maker_of,
    moves_rows,
)
from ...support.arrays import Array, DType
from ..backends.arrays import copy
from ..backends.jit.records import IF, WHILE, controlled, joined
from ..backends.numpy.numbers import Function, function_of
from ..calls import (
    Call,
    assign,
    load_number,
    move,
    move_elements,
    run_for,
    run_if,
    run_switch,
    run_while,
    store_number,
)
from .memory import ProgramMemory
from .steps import MemoryBlock, MemoryRange, Step, View


class StepBuilder(Protocol):
    """The program that is being compiled (`compiled.py`)."""

    @property
    def memory(self) -> ProgramMemory: ...

    def add_step(
        self,
        op: Operation,
        make: Callable[[], list[Call]],
        reads: Sequence[View],
        writes: Sequence[View],
        regions: Sequence[Sequence[Step]] = (),
    ) -> None: ...

    def steps_of(self, op: Operation) -> list[list[Step]]: ...


class Control:
    """Adds the steps of upstream operations to a program."""

    def __init__(self, program: StepBuilder):
        self._program = program
        self._views = program.memory.views
        self._targets: dict[Operation, Sequence[View]] = {}

    def add(self, op: Operation) -> bool:
        """Adds the steps of `op`. Returns False if it is not handled here."""
        match op:
            case memref.LoadOp():
                self._load(op)
            case memref.StoreOp():
                self._store(op)
            case scf.ForOp():
                self._for(op)
            case scf.WhileOp():
                self._while(op)
            case scf.IfOp() | scf.IndexSwitchOp():
                self._choose(op)
            case scf.ConditionOp() | scf.YieldOp():
                self._pass_on(op)
            case arith.ConstantOp():
                pass  # see `_number`
            case _ if name_of(op).startswith("linalg."):
                self._linalg(op)
            case _ if dma := dma_start(op):
                self._transfer(op, dma)
            case _ if name_of(op) == "memref.dma_wait":
                pass  # steps that access the written memory wait for its copy
            case _ if function := function_of(op):
                self._compute(op, function)
            case _:
                return False
        return True

    # Numbers

    def _number(self, value: SSAValue) -> View:
        """The view of a scalar; constants are stored at their first use."""
        views = self._views
        if value not in views and isinstance(op := value.owner, arith.ConstantOp):
            elements = constant(op.value, numpy_dtype(value.type, op))
            bytes = elements.reshape(1).view(np.uint8)
            views[value] = _view(MemoryBlock(bytes, "a constant"), elements.dtype)
        if value not in views:
            raise LocatedError(
                f"a value of type {value.type} is not supported here", maker_of(value)
            )
        return views[value]

    def _new(self, value: SSAValue, like: Sequence[View]) -> View:
        """A place for the scalar `value`, on the device of the views in `like`."""
        devices = dict.fromkeys(
            view.buffer.memory.device for view in like if view.buffer.memory.device
        )
        op = maker_of(value)
        if len(devices) > 1:
            names = ", ".join(devices)
            raise LocatedError(f"{name_of(op)} has operands on {names}", op)
        if isinstance(value.type, MemRefType):
            raise LocatedError(
                f"{name_of(op)} forwards a memref, expected numbers: the executor "
                "knows where each memref lies (plan-run --backend=mlir runs this)",
                op,
            )
        dtype = numpy_dtype(value.type, op)
        bytes = np.zeros(dtype.itemsize, np.uint8)
        memory = MemoryBlock(bytes, "a number", next(iter(devices), "cpu:0"))
        self._views[value] = _view(memory, dtype)
        return self._views[value]

    def _compute(self, op: Operation, function: Function) -> None:
        sources = [self._number(value) for value in op.operands]
        self._assign(op, function, sources, self._new(op.results[0], sources))

    def _assign(
        self, op: Operation, function: Function, sources: Sequence[View], target: View
    ) -> None:
        self._program.add_step(
            op,
            lambda: [(assign, (function, _arrays(sources), target.array()))],
            sources,
            [target],
        )

    def _move(
        self, op: Operation, sources: Sequence[SSAValue], targets: Sequence[View]
    ) -> None:
        views = [self._number(value) for value in sources]
        if views:
            self._program.add_step(
                op,
                lambda: [(move, (_arrays(views), _arrays(targets)))],
                views,
                targets,
            )

    def _load(self, op: memref.LoadOp) -> None:
        source = self._views[op.memref]
        uses = list(op.res.uses)
        if not op.indices and len(uses) == 1 and uses[0].operation is op.next_op:
            self._views[op.res] = source  # its only use follows directly
            return
        sources = [source, *(self._number(index) for index in op.indices)]
        self._assign(op, load_number, sources, self._new(op.res, sources))

    def _store(self, op: memref.StoreOp) -> None:
        target = self._views[op.memref]
        sources = [self._number(value) for value in (op.value, *op.indices)]
        self._program.add_step(
            op,
            lambda: [(store_number, (target.array(), *_arrays(sources)))],
            sources,
            [target],
        )

    def _transfer(self, op: Operation, dma: DmaStart) -> None:
        source, target = self._views[dma.source], self._views[dma.target]
        if dma.strides and moves_rows(dma) and source.shape == target.shape:
            self._program.add_step(
                op, lambda: copy(target.array(), source.array()), [source], [target]
            )
            return
        layouts = source.array().flags, target.array().flags
        if dma.strides or not all(layout.c_contiguous for layout in layouts):
            raise LocatedError(
                f"{name_of(op)} moves elements at strides, expected consecutive ones",
                op,
            )
        check_same_elements(op, dma)
        at = [self._number(value) for value in dma.source_index]
        to = [self._number(value) for value in dma.target_index]
        count = self._number(dma.elements)
        self._program.add_step(
            op,
            lambda: [
                (
                    move_elements,
                    (
                        *(source.array(), _arrays(at)),
                        *(target.array(), _arrays(to), count.array()),
                    ),
                )
            ],
            [source, *at, *to, count],
            [target],
        )

    def _linalg(self, op: Operation) -> None:
        # Here, so that programs without linalg do not load its dialect.
        from ..backends.numpy import linalg

        inputs, outs = linalg.split(op)
        views = {
            value: self._views[value]
            if isinstance(value.type, MemRefType)
            else self._number(value)
            for value in (*inputs, *outs)
        }
        targets = [views[value] for value in outs]
        sources = [views[value] for value in inputs]
        if linalg.reads_destinations(op):
            sources += targets

        def make() -> list[Call]:
            arrays = {value: view.array() for value, view in views.items()}
            return linalg.calls(op, arrays)

        self._program.add_step(op, make, sources, targets)

    # Loops and branches

    def _choose(self, op: scf.IfOp | scf.IndexSwitchOp) -> None:
        choice = self._number(op.operands[0])
        results = [self._new(result, [choice]) for result in op.results]
        self._end_with(op, *([results] * len(op.regions)))
        if isinstance(op, scf.IfOp):

            def make(tapes: Sequence[list[Call]]) -> Call:
                flag = choice.array()
                return controlled(IF, flag, *tapes) or (run_if, (flag, *tapes))

            self._add(op, make, [choice])
            return
        cases = {case: n + 1 for n, case in enumerate(op.cases.get_values())}
        self._add(op, lambda t: (run_switch, (choice.array(), cases, t)), [choice])

    def _for(self, op: scf.ForOp) -> None:
        bounds = [self._number(value) for value in (op.lb, op.ub, op.step)]
        index, *arguments = op.body.block.args
        number = self._new(index, bounds)
        carried = self._carried(op, op.iter_args, arguments)
        self._views.update(zip(op.results, carried, strict=True))
        self._end_with(op, carried)
        self._add(
            op, lambda t: (run_for, (*_arrays(bounds), number.array(), t[0])), bounds
        )

    def _while(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        carried = self._carried(op, op.arguments, before.args)
        passed = [self._new(argument, carried) for argument in after.args]
        self._views.update(zip(op.results, passed, strict=True))
        self._end_with(op, passed, carried)
        condition = before.last_op
        assert isinstance(condition, scf.ConditionOp)

        def make(tapes: Sequence[list[Call]]) -> Call:
            flag = self._number(condition.condition).array()
            arenas = self._program.memory.arena_memories.values()
            own = [memory.bytes for memory in arenas]
            call = controlled(WHILE, flag, *tapes, own=own)
            return call or (run_while, (flag, *tapes))

        self._add(op, make, [])

    def _carried(
        self,
        op: Operation,
        starts: Sequence[SSAValue],
        arguments: Sequence[SSAValue],
    ) -> list[View]:
        """The places of a loop's iteration arguments, initialized by a step."""
        places = [
            self._new(argument, [self._number(start)])
            for start, argument in zip(starts, arguments, strict=True)
        ]
        self._move(op, starts, places)
        return places

    def _end_with(self, op: Operation, *targets: Sequence[View]) -> None:
        """Sets where the terminator of each region moves its operands."""
        for region, places in zip(op.regions, targets, strict=True):
            if region.first_block is not None and region.block.last_op is not None:
                self._targets[region.block.last_op] = places

    def _pass_on(self, op: scf.YieldOp | scf.ConditionOp) -> None:
        values = op.operands[1:] if isinstance(op, scf.ConditionOp) else op.operands
        self._move(op, values, self._targets[op])

    def _add(
        self,
        op: Operation,
        make: Callable[[Sequence[list[Call]]], Call],
        reads: Sequence[View],
    ) -> None:
        """Adds a step for `op`, whose call `make` makes from its regions' calls."""
        regions = self._program.steps_of(op)
        inside_reads, writes = touched(regions)

        def calls() -> list[Call]:
            for step in chain(*regions):
                step.remake()
            tapes = ([c for step in steps for c in step.calls] for steps in regions)
            return [make([joined(tape) for tape in tapes])]

        self._program.add_step(op, calls, [*reads, *inside_reads], writes, regions)


def _view(memory: MemoryBlock, dtype: DType) -> View:
    return View(MemoryRange(memory, 0, dtype.itemsize), dtype, (), 0, ())


def _arrays(views: Sequence[View]) -> list[Array]:
    return [view.array() for view in views]


def touched(
    regions: Sequence[Sequence[Step]],
) -> tuple[list[View], list[View]]:
    """The views outside that the regions read, and all views that they write.

    Buffers that a region writes before it reads them are not read from outside.
    """
    reads: list[View] = []
    writes: list[View] = []
    for steps in regions:
        written: set[MemoryRange] = set()
        for step in steps:
            reads += [view for view in step.reads if view.buffer not in written]
            written.update(view.buffer for view in step.writes)
            writes += step.writes
    return list(dict.fromkeys(reads)), list(dict.fromkeys(writes))
