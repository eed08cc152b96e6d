"""`tgraph-concatenate-in-place`: operations write the parts of concatenations.

    %a = tgraph.sine %x : tensor<4x8xf32>
    %b = tgraph.cosine %x : tensor<4x8xf32>
    %c = tgraph.concatenate %a, %b {dimension = 0 : i64} : ...

    %c = tgraph.concatenate %a, %b {dimension = 0 : i64, tgraph.in_place} : ...

The operands, and what they are reshapes of, are then computed straight into the result,
instead of being stored and copied (`analysis/concatenations.py`). The memory of the
result is live from the first of them on, for longer than that of an operand: where a
U-Net keeps a level for later, this costs bytes. The pass finds the concatenations for
which it lowers the arenas: it starts with none and with all, changes each once,
beginning with the largest, where that takes fewer bytes, and keeps the better, if the
estimated time is at most 2 % longer. It does not try a change that leaves as much live
at the peak.

Needs: level 1, in the order in which the program will run: last before
tgraph-bufferize.
Leaves: level 1.
Does not: look at more than 16 concatenations of a function, the largest; or change
functions whose operations have streams.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...analysis.concatenations import computed, is_computed
from ...analysis.cost import duration
from ...analysis.functions import blocks_within, tensor_functions
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import (
    IN_PLACE,
    device_of,
    tensor_type_of,
    typical_bytes,
)
from ...dialects.tgraph.shaping import ConcatenateOp
from ..optional import OptionalPass
from ..options import Placing
from .shared.fitting import PlannedBytes
from .shared.streams import has_streams

MOST = 16
"""Concatenations that are tried, which each take time to plan."""

LITTLE = 0.02
"""Of a function's time, what it may take longer: parts may be short rows."""


@dataclass(frozen=True)
class TGraphConcatenateInPlace(OptionalPass, Placing):
    """Computes operands of concatenations in place, where that lowers the peak."""

    name = "tgraph-concatenate-in-place"
    LOWERS_PEAK = True
    TOPIC = "in place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        planned_bytes = PlannedBytes(self)
        for func, _ in tensor_functions(op):
            if found := _candidates(func):
                if not has_streams(func, "no operand is computed in place"):
                    _lower(func, found, planned_bytes)


def _candidates(func: FuncOp) -> Sequence[ConcatenateOp]:
    """Concatenations of what is computed, the largest first."""
    found = [
        op
        for block in blocks_within(func.body.block)
        for op in block.ops
        if isinstance(op, ConcatenateOp)
        and not op.outs
        and IN_PLACE not in op.attributes
        and any(is_computed(value, block) for value in op.inputs)
    ]
    found.sort(key=lambda op: -typical_bytes(tensor_type_of(op.result.type)))
    return found[:MOST]


def lowest(func: FuncOp, bytes: int, planned_bytes: PlannedBytes) -> int:
    """The bytes of a function's arenas after this pass, of those before."""
    found = _candidates(func)
    if not bytes or not found:
        return bytes
    least, _ = _choose(func, found, planned_bytes, bytes)
    _mark(found, frozenset())
    return least


def _lower(
    func: FuncOp, found: Sequence[ConcatenateOp], planned_bytes: PlannedBytes
) -> None:
    """Has the operands of those computed in place that lowers the bytes planned."""
    before = planned_bytes.of_all(func)
    least, best = _choose(func, found, planned_bytes, before)
    _mark(found, best)
    if best:
        remark(
            f"concatenations whose operands are computed in place: {len(best)}; the "
            f"peak goes from {before} to {least} bytes",
            func,
            passed=True,
        )


def _choose(
    func: FuncOp,
    found: Sequence[ConcatenateOp],
    planned_bytes: PlannedBytes,
    before: int,
) -> tuple[int, frozenset[ConcatenateOp]]:
    """The fewest bytes that are planned, of those before none is computed in place, and
    the concatenations for these. Leaves others marked."""
    spans = _spans(func, found)
    peaks = _peaks(func, planned_bytes)
    if not any(
        all(any(step in span for span in spans.values()) for step in steps)
        for steps in peaks.values()
    ):
        return before, frozenset()  # as much is live at the peak, whatever is chosen
    longest = (1 + LITTLE) * duration(func)
    least, best = before, frozenset[ConcatenateOp]()
    for start in (frozenset[ConcatenateOp](), frozenset(found)):
        _mark(found, chosen := start)
        bytes = before
        if chosen:
            bytes, peaks = planned_bytes.of_all(func), _peaks(func, planned_bytes)
        for op in found if len(found) > 1 or not chosen else ():
            steps = peaks.get(device_of(op.result.type), ())
            if not all(step in spans[op] for step in steps):
                continue
            _mark(found, chosen ^ {op})
            if (lower := planned_bytes.within(func, bytes - 1)) is not None:
                bytes, chosen = lower, chosen ^ {op}
                peaks = _peaks(func, planned_bytes)
        _mark(found, chosen)
        if bytes < least and duration(func) <= longest:
            least, best = bytes, chosen
    return least, best


def _spans(
    func: FuncOp, found: Sequence[ConcatenateOp]
) -> Mapping[ConcatenateOp, range]:
    """The steps of a function at which other bytes are live if the operands of a
    concatenation are computed in place: from the first operand on."""
    block = func.body.block
    position = {op: step for step, op in enumerate(block.ops)}

    def step_of(op: Operation) -> int:
        outer = block.find_ancestor_op_in_block(op)
        assert outer is not None
        return position[outer]

    return {
        op: range(
            min(step_of(maker) for maker in _makers(op)),
            step_of(op) + 1,
        )
        for op in found
    }


def _makers(op: ConcatenateOp) -> Iterator[Operation]:
    """What computes operands of a concatenation."""
    block = op.parent
    assert block is not None
    for index in range(len(op.inputs)):
        for value in computed(op, index, block):
            assert isinstance(value.owner, Operation)
            yield value.owner


def _peaks(
    func: FuncOp, planned_bytes: PlannedBytes
) -> Mapping[str | None, Sequence[int]]:
    """For each device the steps at which most is live."""
    found: dict[str | None, Sequence[int]] = {}
    for device, live in planned_bytes.during(func).items():
        most = max(live)
        found[device] = [step for step, bytes in enumerate(live) if bytes == most]
    return found


def _mark(found: Sequence[ConcatenateOp], chosen: frozenset[ConcatenateOp]) -> None:
    for op in found:
        if op in chosen:
            op.attributes[IN_PLACE] = UnitAttr()
        else:
            op.attributes.pop(IN_PLACE, None)
