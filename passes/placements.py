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

from tensorplan.dialects.diagnostics import name_of, place_of
from tensorplan.dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp
from tensorplan.dialects.tgraph.structure import FusionOp, YieldOp
from tensorplan.passes.allocations import lifespans
from tensorplan.passes.control_flow import moves
from tensorplan.passes.liveness import buffer_of
from tensorplan.passes.plan_check import PlannedPool, check_plan
from tensorplan.passes.printed import Printed
from tensorplan.planning import Buffer


class PlacedBuffer(NamedTuple):
    """A view of an arena. All its lives are one lifespan, with gaps between them."""

    buffer: Buffer  # its id is the value's name in the text
    offset: int  # bytes
    view: Operation
    accesses: Sequence[Operation]  # in program order, without what only views it

    @property
    def op(self) -> str:
        """What accesses it first, as a rule by writing it: `tgraph.tanh`.

        For a group also what it computes: `tgraph.fusion (multiply, add)`.
        """
        name = name_of(self._first)
        if not isinstance(self._first, FusionOp):
            return name
        members = dict.fromkeys(op.name.removeprefix("tgraph.") for op in self._members)
        return f"{name} ({', '.join(members)})" if members else name

    @property
    def location(self) -> str:
        """`file:line:col` of that operation, or nothing if it has none."""
        return place_of(self._first) or ""

    @property
    def _members(self) -> Sequence[Operation]:
        return [
            op
            for op in self._first.regions[0].block.ops
            if not isinstance(op, ConstantOp | BroadcastInDimOp | YieldOp)
        ]

    @property
    def _first(self) -> Operation:
        return self.accesses[0] if self.accesses else self.view


class PlacedPool(NamedTuple):
    function: str
    device: str  # "" if the arena names none
    size: int  # bytes
    alignment: int  # bytes
    buffers: Sequence[PlacedBuffer]


def placements(module: ModuleOp, text: Printed) -> list[PlacedPool]:
    """The module's arenas, named as in `text`, its print.

    Checks the plan; raises `LocatedError` if it is not sound.
    """
    return [_pool(pool, text) for pool in check_plan(module)]


def _pool(pool: PlannedPool, text: Printed) -> PlacedPool:
    planned = {buffer.op: buffer for buffer in pool.buffers}
    views = list(planned)  # what has none is no arena
    function: Operation | None = views[0]
    while not isinstance(function, FuncOp):
        assert function is not None
        function = function.parent_op()
    buffers = [
        PlacedBuffer(
            buffer_of(text.names[view.result], b.size, live, pool.alignment),
            b.offset,
            view,
            sorted(_accesses(view.result), key=lambda op: text.lines.get(op, 0)),
        )
        for (view, b), live in zip(planned.items(), lifespans(views), strict=True)
    ]
    return PlacedPool(
        function.sym_name.data, pool.device, pool.size, pool.alignment, buffers
    )


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
