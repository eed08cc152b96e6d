"""Computes live ranges through loops and branches, and the peak of live bytes.

Each action is a step, and so is each end of a region. The steps correspond to the
operations of the later program on memrefs, so live ranges are those that plan-memory
will find (analysis/control_flow.py). A buffer from outside that a loop uses is live in
the whole loop, unless the loop overwrites it first; a buffer that only one region of a
branch uses is not live in the other (analysis/liveness.py).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from operator import sub
from typing import TypeAlias

from xdsl.dialects.builtin import i8
from xdsl.ir import Operation

from ...dialects.tgraph.base import (
    device_of,
    element_alignment,
    has_fixed_size,
    typical_bytes,
    with_element,
    with_shape,
)
from ...dialects.tgraph.shaping import DeviceCopyOp
from ...planning import on_demand, output_reuse, problem
from ...planning.arena import placeable
from ...planning.output_reuse import HandOver
from ..control_flow import BasicBlock, link
from ..functions import is_tensor
from ..liveness import Uses, buffer_of, is_reusable, live_steps, pool_of
from .buffers import (
    Allocate,
    At,
    Branch,
    Copy,
    Home,
    Loop,
    Run,
    Storage,
    TensorBuffer,
    whole,
)

Workspace: TypeAlias = Callable[[Run], int]
"""Returns the bytes of scratch memory that the kernel of an operation needs."""


@dataclass(frozen=True, slots=True)
class Lives:
    """The live ranges of a device's buffers, in steps of the function. Each buffer has
    the pool of its element type."""

    own: list[problem.Buffer] = field(default_factory=list[problem.Buffer])
    """Buffers of the arena, in the order of their allocation."""
    outputs: list[problem.Buffer] = field(default_factory=list[problem.Buffer])
    """Buffers of the caller. Others may use their memory outside of these steps."""
    hand_overs: dict[tuple[int, int], Sequence[HandOver]] = field(
        default_factory=dict[tuple[int, int], Sequence[HandOver]]
    )
    """The steps in which an own buffer and an output, by index, may share bytes."""
    variables: set[int] = field(default_factory=set[int])
    """The outputs, by index, that the caller keeps before and after the function."""
    is_on_demand: bool = False
    """Whether the caller provides other outputs only while they are used."""

    def counted(self, *, reuse_outputs: bool) -> Sequence[problem.Buffer]:
        """The buffers whose bytes count: own ones without those that plan-memory will
        place in outputs, and outputs that are provided only while they are used."""
        outputs = self.outputs if reuse_outputs else ()
        elsewhere = output_reuse.reuse(self.own, outputs, self.hand_overs)
        if self.is_on_demand:
            elsewhere = on_demand.worthwhile(self.own, outputs, elsewhere)
        counted = [b for number, b in enumerate(self.own) if number not in elsewhere]
        if self.is_on_demand:
            spans = on_demand.provided(self.own, self.outputs, elsewhere)
            counted += [
                problem.Buffer("", size, start, end)
                for number, (start, end, size) in spans.items()
                if number not in self.variables
            ]
        return counted


def peaks(
    storage: Storage, alignment: int, *, reuse_outputs: bool = False
) -> Mapping[str | None, int]:
    """The peak of live bytes of own buffers on each device, if every offset is a
    multiple of `alignment` bytes. It is a lower bound for every plan. Includes outputs
    that are provided on demand.

    reuse_outputs: leaves out the buffers that plan-memory will place in outputs.
    """
    found: dict[str | None, int] = {}
    for device, lives in lifetimes(storage, alignment).items():
        buffers = lives.counted(reuse_outputs=reuse_outputs)
        found[device] = placeable(buffers).lower_bound
    return found


def during(
    storage: Storage,
    alignment: int,
    *,
    reuse_outputs: bool = False,
    workspace: Workspace | None = None,
) -> Mapping[str | None, Sequence[int]]:
    """The most bytes that are live while each operation of the block runs, on each
    device, if every buffer takes a multiple of `alignment` bytes.

    For an operation without steps, the bytes that are live across it.
    reuse_outputs: leaves out the buffers that plan-memory will place in outputs.
    workspace: the bytes that kernels need while they run, if they are included.
    """
    walk = _Walk(storage, workspace)
    found: dict[str | None, Sequence[int]] = {}
    for device, live, begun in walk.bytes(alignment, reuse_outputs=reuse_outputs):
        found[device] = [
            max(live[start:end], default=live[start] - begun[start])
            for start, end in pairwise(walk.starts)
        ]
    return found


def at_peak(
    storage: Storage,
    alignment: int,
    *,
    reuse_outputs: bool = False,
    workspace: Workspace | None = None,
) -> Mapping[str | None, Sequence[Operation]]:
    """The operations during which the most bytes are live on each device: operations of
    the block, or of the innermost loops and branches in it. The arguments are those of
    `during`."""
    walk = _Walk(storage, workspace)
    found: dict[str | None, Sequence[Operation]] = {}
    for device, live, _ in walk.bytes(alignment, reuse_outputs=reuse_outputs):
        most: dict[Operation, int] = {}
        for op, bytes in zip(walk.op_of, live, strict=False):
            if op is not None:
                most[op] = max(most.get(op, 0), bytes)
        peak = max(most.values(), default=0)
        found[device] = [op for op, bytes in most.items() if bytes == peak]
    return found


def lifetimes(
    storage: Storage, alignment: int, workspace: Workspace | None = None
) -> Mapping[str | None, Lives]:
    """The live ranges on each device that has own buffers."""
    return _Walk(storage, workspace).lives(alignment)


class _Walk:
    """The accesses of buffers, by step; the steps form the nodes of a flow graph."""

    def __init__(self, storage: Storage, workspace: Workspace | None = None) -> None:
        self.nodes = [BasicBlock(0)]
        self.node_of: list[int] = []
        """The node of each step."""
        self.op_of: list[Operation | None] = []
        """The innermost operation of each step; None for the last step."""
        self._op: Operation | None = None
        self._begin: dict[TensorBuffer, int] = {}
        self._accesses: dict[TensorBuffer, dict[int, bool]] = {}
        """By step: whether it writes the whole buffer and reads nothing of it."""
        self._workspace = workspace
        self._is_on_demand = storage.is_on_demand
        self._hand_overs: dict[tuple[TensorBuffer, TensorBuffer], list[HandOver]] = {}
        self.starts = [*self._add(storage), len(self.node_of)]
        """The first step of each operation, and the step after the last operation."""
        end = self._step()
        tensors = (a for a in storage.block.args if is_tensor(a.type))
        given = map(storage.buffer_of, tensors)
        self._outputs = [b for b in (*given, *storage.results) if b in self._accesses]
        for buffer in self._outputs:
            if buffer.home is not Home.RESULT:
                self._accesses[buffer][0] = False
            if buffer.home is not Home.DONATED:
                self._accesses[buffer].setdefault(end, False)

    def lives(self, alignment: int) -> Mapping[str | None, Lives]:
        """The live ranges, with own buffers aligned to at least `alignment` bytes."""
        units: dict[str | None, int] = {}
        for buffer in self._begin:
            device, element = device_of(buffer.type), buffer.type.element_type
            unit = alignment
            if has_fixed_size(element):
                unit = max(alignment, element_alignment(element))
            units[device] = max(units.get(device, 0), unit)
        outputs = [x for x in self._outputs if is_reusable(x.type)]
        if self._is_on_demand:
            units = dict.fromkeys(map(device_of, (x.type for x in outputs)), 1) | units
        found = {device: Lives(is_on_demand=self._is_on_demand) for device in units}
        outputs = [x for x in outputs if device_of(x.type) in units]
        buffers = [*self._begin, *outputs]
        numbers: dict[TensorBuffer, int] = {}
        uses = [Uses(self._begin.get(b, 0), self._accesses[b]) for b in buffers]
        for buffer, live in zip(buffers, live_steps(self, uses), strict=True):
            device, size = device_of(buffer.type), typical_bytes(buffer.type)
            is_own = buffer.home is Home.OWN
            there = found[device].own if is_own else found[device].outputs
            unit = units[device] if is_own else 1
            pool = pool_of(buffer.type.element_type)
            numbers[buffer] = len(there)
            there.append(buffer_of("", size, live, unit, pool))
            if buffer.is_variable:
                found[device].variables.add(numbers[buffer])
        for (own, other), hand_overs in self._hand_overs.items():
            if other in numbers:
                pair = numbers[own], numbers[other]
                found[device_of(own.type)].hand_overs[pair] = hand_overs
        return found

    def bytes(
        self, alignment: int, *, reuse_outputs: bool
    ) -> Iterator[tuple[str | None, Sequence[int], Sequence[int]]]:
        """For each device: the bytes that are live at each step, and those of them that
        are not live before it."""
        for device, lives in self.lives(alignment).items():
            begun, ended = ([0] * (len(self.node_of) + 1) for _ in range(2))
            for buffer in lives.counted(reuse_outputs=reuse_outputs):
                size = problem.round_up(buffer.size, alignment)
                for start, end in buffer.live:
                    begun[start] += size
                    ended[end] += size
            yield device, list(accumulate(map(sub, begun, ended))), begun

    def _add(self, storage: Storage) -> Sequence[int]:
        """Adds the actions of a block; returns the first step of each operation."""
        starts: list[int] = []
        around = self._op
        for op, actions in storage.steps:
            starts.append(len(self.node_of))
            self._op = op
            for action in actions:
                match action:
                    case Allocate(buffer):
                        self._allocate(buffer)
                    case Copy(source, target):
                        self._access([source], [target])
                        self._hand_over([source], target, [0])
                    case Run():
                        self._run(action)
                    case Loop():
                        self._loop(action)
                    case Branch():
                        self._branch(action)
                    case _:
                        self._step()
        self._op = around
        return starts

    def _step(self) -> int:
        self.node_of.append(len(self.nodes) - 1)
        self.op_of.append(self._op)
        return len(self.node_of) - 1

    def _allocate(self, buffer: TensorBuffer) -> None:
        self._begin[buffer] = self._step()
        self._accesses[buffer] = {}

    def _access(self, reads: Sequence[At], writes: Sequence[At]) -> None:
        step = self._step()
        for ats, is_write in ((reads, False), (writes, True)):
            for place, _ in ats:
                buffer = place.buffer.root
                if buffer.home is Home.OWN or buffer.is_reusable:
                    steps = self._accesses.setdefault(buffer, {})
                    is_whole = is_write and place.is_whole
                    steps[step] = steps.get(step, True) and is_whole

    def _hand_over(
        self, inputs: Sequence[At], out: At, elementwise: Sequence[int]
    ) -> None:
        """Notes the pairs of buffers that may share bytes in the last step."""
        target = out.place.buffer.root
        for index in elementwise:
            source = inputs[index].place.buffer.root
            own, output = (target, source) if source.is_reusable else (source, target)
            if (
                own.home is Home.OWN
                and output.is_reusable
                and source.shape == target.shape
                and out.is_whole
                and all(
                    at.is_whole and number in elementwise
                    for number, at in enumerate(inputs)
                    if at.place.buffer.root is source
                )
            ):
                step = len(self.node_of) - 1
                found = self._hand_overs.setdefault((own, output), [])
                found.append(HandOver(step, output is target))

    def _run(self, run: Run) -> None:
        is_kernel = not isinstance(run.op, DeviceCopyOp)
        size = self._workspace(run) if self._workspace and is_kernel else 0
        if not size:
            self._access(run.inputs, run.outs)
            if run.outs:
                self._hand_over(run.inputs, run.outs[0], run.elementwise)
            return
        beside = run.outs[0].place.buffer.type
        workspace = TensorBuffer(
            with_element(with_shape(beside, (size,)), i8), Home.OWN
        )
        self._allocate(workspace)
        # The workspace has the size needed if operands and results do not overlap.
        self._access(run.inputs, [*run.outs, At(whole(workspace))])
        self._step()

    def _node(self, *before: int) -> int:
        """Starts a node whose predecessors are the nodes in `before`."""
        self.nodes.append(BasicBlock(len(self.node_of)))
        for node in before:
            link(self.nodes, node, len(self.nodes) - 1)
        return len(self.nodes) - 1

    def _loop(self, loop: Loop) -> None:
        self._step()
        condition = self._node(len(self.nodes) - 1)
        self._add(loop.condition)
        self._access([At(whole(loop.flag))], [])
        self._step()
        decided = len(self.nodes) - 1
        self._node(decided)
        self._add(loop.body)
        self._step()
        link(self.nodes, len(self.nodes) - 1, condition)
        self._node(decided)

    def _branch(self, branch: Branch) -> None:
        self._access([branch.predicate], [])
        self._step()
        before = len(self.nodes) - 1
        ends: list[int] = []
        for storage in branch.regions:
            self._node(before)
            self._add(storage)
            self._step()
            ends.append(len(self.nodes) - 1)
        self._node(*ends)
