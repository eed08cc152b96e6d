"""The buffers of a planned module, one by one: for reports and for pictures.

    %3 = memref.view %arena[%c128][] ...           step 5
    tgraph.matmul %a, %b outs(%3) ...              step 7, in model.mlir:4:3
    tgraph.add %3, %c outs(%r) ...                 step 9

is buffer `%3` at offset 128, live in steps [7, 10), first accessed by tgraph.matmul.
"""

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ..analysis.allocations import lifespans
from ..analysis.control_flow import moves
from ..analysis.liveness import buffer_of
from ..checking.plan_check import PlannedBuffer, PlannedPool, check_plan
from ..dialects.diagnostics import name_of, place_of
from ..dialects.tgraph.base import TensorOp
from ..dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp
from ..dialects.tgraph.structure import FusionOp, YieldOp
from ..planning import Buffer
from ..planning.problem import Steps
from .printed import Printed


class PlacedBuffer(NamedTuple):
    """A view of an arena, or of a result's memory, or a result itself. All its lives
    are one lifespan, with gaps between them."""

    buffer: Buffer  # its id is the value's name in the text
    offset: int  # bytes
    view: Operation | None  # what makes it; None if the caller does
    accesses: Sequence[Operation]  # in program order, without what only views it

    @property
    def op(self) -> str:
        """What accesses it first, as a rule by writing it: `tgraph.tanh`.

        For a group also what it computes (`described`). Of a workspace, whose it is.
        """
        name = described(self.ops[0])
        return f"workspace of {name}" if self.is_workspace else name

    @property
    def is_workspace(self) -> bool:
        """Whether an operation has it for its kernel only."""
        views = self.view.results if self.view else ()
        return isinstance(self.ops[0], TensorOp) and self.ops[0].workspace in views

    @property
    def location(self) -> str:
        """`file:line:col` of that operation, or nothing if it has none."""
        return place_of(self.ops[0]) or ""

    @property
    def ops(self) -> Sequence[Operation]:
        """What accesses it, or what makes it if nothing does."""
        if self.accesses:
            return self.accesses
        assert self.view is not None  # a pool's result is accessed
        return [self.view]


def described(op: Operation) -> str:
    """An operation's name, and for a group what it computes: `tgraph.fusion (multiply,
    add)`."""
    if not isinstance(op, FusionOp):
        return name_of(op)
    members = dict.fromkeys(
        member.name.removeprefix("tgraph.")
        for member in op.regions[0].block.ops
        if not isinstance(member, ConstantOp | BroadcastInDimOp | YieldOp)
    )
    return f"{name_of(op)} ({', '.join(members)})" if members else name_of(op)


class PlacedPool(NamedTuple):
    function: str
    device: str  # "" if the arena names none
    size: int  # bytes
    alignment: int  # bytes
    buffers: Sequence[PlacedBuffer]
    argument: str | None  # "result 1", "argument 0"; None for an arena


def placements(module: ModuleOp, text: Printed) -> list[PlacedPool]:
    """The module's arenas, and arguments with others in them, named as in `text`, its
    print.

    Checks the plan; raises `LocatedError` if it is not sound.
    """
    return [_pool(pool, text) for pool in check_plan(module)]


def _pool(pool: PlannedPool, text: Printed) -> PlacedPool:
    planned = {buffer.value: buffer for buffer in pool.buffers}
    values = list(planned)  # what has none is no pool
    function = values[0].owner
    while not isinstance(function, FuncOp):
        around = function.parent_op()
        assert around is not None
        function = around
    lives = _without_hand_overs([planned[v] for v in values], lifespans(values))
    buffers = [
        PlacedBuffer(
            buffer_of(text.names[value], b.size, live, pool.alignment),
            b.offset,
            value.owner if isinstance(value.owner, Operation) else None,
            sorted(_accesses(value), key=lambda op: text.lines.get(op, 0)),
        )
        for (value, b), live in zip(planned.items(), lives, strict=True)
    ]
    name = function.sym_name.data
    return PlacedPool(
        name, pool.device, pool.size, pool.alignment, buffers, pool.argument
    )


def _without_hand_overs(
    buffers: Sequence[PlannedBuffer], lives: Sequence[Sequence[Steps]]
) -> Sequence[Sequence[Steps]]:
    """Of two buffers at one place, the other of which is computed from the one in some
    step, the one is live before that step."""
    starts = {
        (b.offset, b.size, start): b
        for b, live in zip(buffers, lives, strict=True)
        for start, _ in live
    }
    return [
        [
            (start, end - (starts.get((b.offset, b.size, end - 1), b) is not b))
            for start, end in live
        ]
        for b, live in zip(buffers, lives, strict=True)
    ]


def _accesses(buffer: SSAValue) -> list[Operation]:
    """What has the buffer, under whatever name, and does more than to pass it on."""
    aliases = {buffer: None}
    found: dict[Operation, None] = {}
    pending = [buffer]
    while pending:
        for use in pending.pop().uses:
            if (targets := moves(use)) is None:
                found[use.operation] = None
                continue
            new = [target for target in targets if target not in aliases]
            aliases.update(dict.fromkeys(new))
            pending += new
    return list(found)
