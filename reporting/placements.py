"""Lists the buffers of a planned module, for reports and pictures.

    %3 = memref.view %arena[%c128][] ...           step 5
    tgraph.matmul %a, %b outs(%3) ...              step 7, in model.mlir:4:3
    tgraph.add %3, %c outs(%r) ...                 step 9

is a buffer `%3` at offset 128, live in steps [7, 10), first accessed by tgraph.matmul.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ..analysis.allocations import lifespans
from ..analysis.functions import argument_attributes
from ..analysis.liveness import buffer_of
from ..checking.plan_check import PlannedBuffer, PlannedPool, check_plan
from ..dialects.diagnostics import name_of, place_of
from ..dialects.tgraph.base import (
    NAME,
    AnyMemRef,
    TensorOp,
    element_bytes,
    is_static,
)
from ..dialects.tgraph.shaping import BroadcastInDimOp, ConstantOp
from ..dialects.tgraph.structure import FusionOp, YieldOp
from ..planning import Buffer
from ..planning.problem import Steps
from .printed import Printed
from .roles import Role, Roles, accesses


class PlacedBuffer(NamedTuple):
    """A view of an arena or of a result's memory, or a result itself.

    The live range of `buffer` has gaps if the buffer is live several times.
    """

    buffer: Buffer  # its id is the value's name in the text
    offset: int  # bytes
    view: Operation | None  # the view that defines it; None for an argument
    accesses: Sequence[Operation]  # in program order, without views
    type: str  # `16x64xf32`
    role: Role

    @property
    def op(self) -> str:
        """The operation that accesses the buffer first, usually a write: `tgraph.tanh`.

        For a group, the text lists its operations (`described`). For a workspace, it
        names the operation that uses the workspace.
        """
        name = described(self.ops[0])
        return f"workspace of {name}" if self.is_workspace else name

    @property
    def is_workspace(self) -> bool:
        """Whether the buffer is the workspace of an operation's kernel."""
        views = self.view.results if self.view else ()
        return isinstance(self.ops[0], TensorOp) and self.ops[0].workspace in views

    @property
    def location(self) -> str:
        """`file:line:col` of the first operation that accesses the buffer, or empty."""
        return place_of(self.ops[0]) or ""

    @property
    def ops(self) -> Sequence[Operation]:
        """The operations that access the buffer, or its view if there are none."""
        if self.accesses:
            return self.accesses
        assert self.view is not None  # a result is always accessed
        return [self.view]


def described(op: Operation) -> str:
    """The operation's name, with the members of a group:
    `tgraph.fusion (multiply, add)`.
    """
    if not isinstance(op, FusionOp):
        return name_of(op)
    members = dict.fromkeys(
        member.name.removeprefix("tgraph.")
        for member in op.regions[0].block.ops
        if not isinstance(member, ConstantOp | BroadcastInDimOp | YieldOp)
    )
    return f"{name_of(op)} ({', '.join(members)})" if members else name_of(op)


class CallerBuffer(NamedTuple):
    """The memory of an argument, which exists during the whole run."""

    name: str  # in the model, or else in the text
    size: int  # bytes
    type: str
    role: Role


class PlacedPool(NamedTuple):
    function: str
    device: str  # "" if the arena names none
    size: int  # bytes
    alignment: int  # bytes
    buffers: Sequence[PlacedBuffer]
    argument: str | None  # "result 1", "argument 0"; None for an arena
    callers: Sequence[CallerBuffer]  # of the function, on the same device


def placements(module: ModuleOp, text: Printed) -> list[PlacedPool]:
    """The arenas of the module, and the arguments whose memory holds other buffers.

    Names are those in `text`, the printed module. Checks the plan; raises
    `LocatedError` if it is not sound.
    """
    pools = check_plan(module)
    values: dict[FuncOp, list[SSAValue]] = {}
    for pool in pools:
        values.setdefault(function_of(pool), []).extend(b.value for b in pool.buffers)
    roles = {function: Roles(function, found) for function, found in values.items()}
    return [
        _pool(pool, function := function_of(pool), roles[function], text)
        for pool in pools
    ]


def function_of(pool: PlannedPool) -> FuncOp:
    function = pool.buffers[0].value.owner  # every pool has a buffer
    while not isinstance(function, FuncOp):
        around = function.parent_op()
        assert around is not None
        function = around
    return function


def _pool(
    pool: PlannedPool, function: FuncOp, roles: Roles, text: Printed
) -> PlacedPool:
    planned = {buffer.value: buffer for buffer in pool.buffers}
    values = list(planned)
    lives = _without_hand_overs([planned[v] for v in values], lifespans(values))
    buffers: list[PlacedBuffer] = []
    for (value, b), live in zip(planned.items(), lives, strict=True):
        found = dict.fromkeys(access.op for access in accesses(value))
        placed = PlacedBuffer(
            buffer_of(text.names[value], b.size, live, b.alignment),
            b.offset,
            value.owner if isinstance(value.owner, Operation) else None,
            sorted(found, key=lambda op: text.lines.get(op, 0)),
            _type(value),
            roles.of(value),
        )
        is_scratch = placed.view is not None and placed.is_workspace
        buffers.append(placed._replace(role=Role.SCRATCH) if is_scratch else placed)
    return PlacedPool(
        function.sym_name.data,
        pool.device,
        pool.size,
        pool.alignment,
        buffers,
        pool.argument,
        [] if pool.argument else _callers(function, pool.device, roles, text),
    )


def _callers(
    func: FuncOp, device: str, roles: Roles, text: Printed
) -> list[CallerBuffer]:
    """The caller's buffers on a device, grouped by role, the largest first."""
    order = list(Role)
    found: list[CallerBuffer] = []
    for argument, attributes in zip(func.args, argument_attributes(func), strict=True):
        size = memref_bytes(argument.type)
        if size is None:
            continue
        space = cast(AnyMemRef, argument.type).memory_space
        if device != (space.data if isinstance(space, StringAttr) else ""):
            continue
        given = attributes.get(NAME)
        name = given.data if isinstance(given, StringAttr) else text.names[argument]
        found.append(CallerBuffer(name, size, _type(argument), roles.of(argument)))
    return sorted(found, key=lambda each: (order.index(each.role), -each.size))


def _type(value: SSAValue) -> str:
    """The shape and element type of a memref: `16x64xf32`."""
    type = cast(AnyMemRef, value.type)
    sizes = ("?" if size == DYNAMIC_INDEX else str(size) for size in type.get_shape())
    return "x".join((*sizes, str(type.element_type)))


def _without_hand_overs(
    buffers: Sequence[PlannedBuffer], lives: Sequence[Sequence[Steps]]
) -> Sequence[Sequence[Steps]]:
    """The live ranges without the step in which another buffer at the same offset is
    computed from the buffer, which ends there: the two overlap only in that step.

    A range of one step stays, as it may belong to a buffer without elements.
    """
    starts = {
        (b.offset, b.size, start): b
        for b, live in zip(buffers, lives, strict=True)
        for start, _ in live
    }
    return [
        [
            (
                start,
                max(
                    end - (starts.get((b.offset, b.size, end - 1), b) is not b),
                    start + 1,
                ),
            )
            for start, end in live
        ]
        for b, live in zip(buffers, lives, strict=True)
    ]


def memref_bytes(type: Attribute) -> int | None:
    """The bytes of a memref type; None for other types and dynamic sizes."""
    if not isinstance(type, MemRefType):
        return None
    memref_type = cast(AnyMemRef, type)
    if not is_static(memref_type):
        return None
    return prod(memref_type.get_shape()) * element_bytes(memref_type.element_type)
