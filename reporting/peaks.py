"""Explains the size of an arena: the buffers live at its peak, and their live ranges.

    tgraph.dot_general %a, %b outs(%3)        step 7, model.mlir:4:8
    ...
    tgraph.add %x, %y outs(%5)                step 12: the most bytes are live
    ...
    tgraph.multiply %3, %c outs(%r)           step 20

At step 12, %3 is live: tgraph.dot_general has written it, and tgraph.multiply has yet
to read it. It cannot overwrite %a, because tgraph.dot_general reads %a while it writes.

The module reads level 3, like `plan-view`, and changes nothing. With streams, it uses
program order, although concurrent operations may keep further buffers live.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ..analysis.control_flow import ControlFlow
from ..analysis.functions import argument_attributes
from ..dialects.diagnostics import place_of
from ..dialects.memory import DestinationStyle, destinations, is_view
from ..dialects.tgraph.base import DONATED, PARAMETER, RESULT, VARIABLE, AnyMemRef
from ..passes.tgraph.tiling.claims import claim
from ..planning import Problem
from .placements import PlacedBuffer, PlacedPool, described, memref_bytes, placements
from .printed import Printed, printed
from .wording import readable


class OperationSite(NamedTuple):
    """An operation of the planned program."""

    step: int  # in its function, in the numbering of live ranges
    op: str
    location: str  # `file:line:col`, or empty

    def __str__(self) -> str:
        return f"{self.op} ({self.location})" if self.location else self.op


class LiveBuffer(NamedTuple):
    """A buffer that is live at the peak."""

    name: str  # in the program's text
    size: int  # bytes
    lower: int  # the live range [lower, upper) that contains the peak, in steps
    upper: int
    maker: OperationSite  # the first access in that range
    next: OperationSite | None  # the next access, at the peak or later
    in_place_of: str  # the operand that it overwrites, or empty
    not_in_place_reason: str
    """Why it overwrites no operand; empty if none has as many bytes."""


class ArenaPeak(NamedTuple):
    """The step of an arena in which the most bytes are live."""

    function: str
    device: str  # "" if the arena names none
    size: int  # bytes of the arena
    live: int  # bytes of `buffers`
    lower_bound: int  # bytes that every plan for these live ranges needs
    site: OperationSite
    steps: int  # of the function
    largest: OperationSite  # the operation that accesses the most bytes
    needed: int  # bytes that `largest` accesses
    claim: str  # in words, whether `largest` can be computed with fewer bytes
    buffers: Sequence[LiveBuffer]  # largest first


def peaks(module: ModuleOp) -> list[ArenaPeak]:
    """The peak of each arena of the module.

    Checks the plan; raises `LocatedError` if it is not sound.
    """
    text = printed(module)
    return peaks_of(module, text, placements(module, text))


def peaks_of(
    module: ModuleOp, text: Printed, arenas: Sequence[PlacedPool]
) -> list[ArenaPeak]:
    """The peak of each arena of a module whose text and placements are known."""
    pools: dict[str, list[PlacedPool]] = {}
    for pool in arenas:
        pools.setdefault(pool.function, []).append(pool)
    found: list[ArenaPeak] = []
    for func in module.walk():
        if isinstance(func, FuncOp) and func.sym_name.data in pools:
            within = pools[func.sym_name.data]
            function = _Function(func, text.names, within)
            found += [function.peak(pool) for pool in within if pool.argument is None]
    return found


class _Function:
    def __init__(
        self, func: FuncOp, names: Mapping[SSAValue, str], pools: Sequence[PlacedPool]
    ):
        self.names = names
        self.flow = ControlFlow(func)
        self.arguments = argument_attributes(func)
        self.placed: dict[SSAValue, PlacedBuffer] = {
            placed.view.results[0]: placed
            for pool in pools
            for placed in pool.buffers
            if placed.view
        }
        """Buffers by the result of their view."""

    def peak(self, pool: PlacedPool) -> ArenaPeak:
        buffers = [placed.buffer for placed in pool.buffers]
        problem = Problem(buffers)
        step = problem.peak_step
        live = [self._live(placed, step) for placed in pool.buffers]
        found = sorted(filter(None, live), key=lambda buffer: -buffer.size)
        op = self.flow.ops[step]
        return ArenaPeak(
            pool.function,
            pool.device,
            pool.size,
            sum(buffer.size for buffer in found),
            problem.lower_bound,
            self._site(op),
            len(self.flow.step),
            *self._largest(pool.buffers),
            found,
        )

    def _largest(
        self, buffers: Sequence[PlacedBuffer]
    ) -> tuple[OperationSite, int, str]:
        needed: dict[Operation, int] = {}
        for placed in buffers:
            for op in placed.ops:
                needed[op] = needed.get(op, 0) + placed.buffer.size
        op = max(needed, key=lambda op: needed[op])
        return self._site(op), needed[op], claim(op, readable(needed[op]))

    def _live(self, placed: PlacedBuffer, step: int) -> LiveBuffer | None:
        """Describes the buffer at a step; None if it is not live there."""
        lives = placed.buffer.live
        life = next((life for life in lives if life[0] <= step < life[1]), None)
        if life is None:
            return None
        accesses = [op for op in placed.ops if life[0] <= self._step(op) < life[1]]
        maker = next(iter(accesses), None) or placed.ops[0]
        later = (op for op in accesses if self._step(op) >= step)
        site = self._site(maker)
        is_written = maker is not placed.view
        over, not_in_place_reason = (
            self._place_of_operand(placed, maker) if is_written else ("", "")
        )
        if placed.is_workspace:
            site, over, not_in_place_reason = site._replace(op=placed.op), "", ""
        return LiveBuffer(
            placed.buffer.id,
            placed.buffer.size,
            *life,
            site,
            self._site(op) if (op := next(later, None)) else None,
            over,
            not_in_place_reason,
        )

    def _site(self, op: Operation) -> OperationSite:
        return OperationSite(self._step(op), described(op), place_of(op) or "")

    def _step(self, op: Operation) -> int:
        return self.flow.step_of(op)[0]

    # Whether a buffer overwrites an operand

    def _place_of_operand(self, placed: PlacedBuffer, op: Operation) -> tuple[str, str]:
        """The operand of `op` that the buffer overwrites, or else why there is none.

        The reason prefers operands of the buffer's size that `op` may overwrite.
        """
        trait = op.get_trait(DestinationStyle)
        allowed = trait.overwritable(op) if trait else ()
        written = destinations(op)
        reasons: dict[bool, str] = {}
        for index, value in enumerate(op.operands):
            if index in written or memref_bytes(value.type) != placed.buffer.size:
                continue
            root = self._root(value)
            if placed.view and root is placed.view.results[0]:
                return self.names[value], ""
            reason = self._reason(value, root, op, index in allowed)
            reasons.setdefault(index in allowed, f"{self.names[value]} {reason}")
        return "", reasons.get(True) or reasons.get(False) or ""

    def _reason(
        self, value: SSAValue, root: SSAValue, op: Operation, is_allowed: bool
    ) -> str:
        """Why `op` does not overwrite `value`, as a predicate: "is a constant"."""
        if isinstance(root, BlockArgument):
            in_function = isinstance(root.block.parent_op(), FuncOp)
            return self._held(root) if in_function else "is forwarded by control flow"
        if isinstance(root.owner, memref.GetGlobalOp):
            return "is a constant"
        target = cast(AnyMemRef, op.operands[destinations(op)[0]].type)
        type = cast(AnyMemRef, value.type)
        if type.memory_space != target.memory_space:
            return "is on another device"
        if not is_allowed:
            return f"is read by {described(op)} while it writes"
        if (type.get_shape(), type.layout) != (target.get_shape(), target.layout):
            return "is read in another layout"
        if (source := self.placed.get(root)) is None:
            return "is in no arena"
        if source.buffer.size != memref_bytes(value.type):
            return f"is part of {source.buffer.id}"
        later = (o for o in source.accesses if self._step(o) > self._step(op))
        if (reader := next(later, None)) is None:
            return "is not considered: see plan-in-place"
        return f"is read later, by {self._site(reader)}"

    def _root(self, value: SSAValue) -> SSAValue:
        """The buffer, argument or constant that `value` is, or is a view of."""
        while value not in self.placed:
            op = value.owner
            if isinstance(op, Block) or not is_view(op):
                break
            value = op.operands[0]
        return value

    def _held(self, argument: BlockArgument) -> str:
        """Why the memory of an argument can't be overwritten."""
        attributes = self.arguments[argument.index]
        if VARIABLE in attributes:
            return "is a variable"
        if RESULT in attributes:
            return "is a result"
        if PARAMETER in attributes:
            return "is a parameter"
        if DONATED in attributes:
            return "is a donated argument"
        return "is an argument that is not donated"
