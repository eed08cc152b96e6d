"""`tgraph-concatenate-in-place`: computes operands of concatenations in the result.

    %a = tgraph.sine %x : tensor<4x8xf32>
    %b = tgraph.cosine %x : tensor<4x8xf32>
    %c = tgraph.concatenate %a, %b {dimension = 0 : i64} : ...

    %c = tgraph.concatenate %a, %b {dimension = 0 : i64, tgraph.in_place} : ...

The operands, or the values that they are reshapes of, are then computed straight into
the result, instead of being stored and copied (`analysis/concatenations.py`). But the
whole result is live from the first operand on: where a U-Net keeps a level for later,
this costs bytes. The pass therefore searches for the concatenations that lower the
arenas. It starts once with none and once with all. From each start, it flips one
concatenation at a time, beginning with the largest, and keeps a flip that takes fewer
bytes. It does not try a flip that leaves the peak unchanged. The better outcome wins,
unless it takes over 2 % more estimated time.

Needs: level 1, in the order in which the program will run: last before
tgraph-bufferize.
Leaves: level 1.
Does not: look at more than the 16 largest concatenations of a function, or change
functions whose operations have streams.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...analysis.concatenations import computed, is_computed
from ...analysis.cost import duration
from ...analysis.functions import blocks_within, tensor_functions
from ...dialects.diagnostics import remark
from ...dialects.tgraph.base import IN_PLACE, device_of, value_bytes
from ...dialects.tgraph.shaping import ConcatenateOp
from ..optional import OptionalPass
from ..options import Placing
from .shared.fitting import PlannedBytes
from .shared.streams import has_streams

MOST = 16
"""The largest number of concatenations to try, as each trial plans the function."""

MAX_SLOWDOWN = 0.02
"""The share of a function's time that it may take longer: parts may be short rows."""


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
    """The largest concatenations that have a computed operand, the largest first."""
    found = [
        op
        for block in blocks_within(func.body.block)
        for op in block.ops
        if isinstance(op, ConcatenateOp)
        and not op.outs
        and IN_PLACE not in op.attributes
        and any(is_computed(value, block) for value in op.inputs)
    ]
    found.sort(key=lambda op: -value_bytes(op.result))
    return found[:MOST]


def lowest(func: FuncOp, bytes: int, planned_bytes: PlannedBytes) -> int:
    """Returns the bytes that the arenas of `func` would take after this pass, if they
    take `bytes` before it. Leaves `func` unchanged."""
    found = _candidates(func)
    if not bytes or not found:
        return bytes
    least, _ = _choose(func, found, planned_bytes, bytes)
    _mark(found, frozenset())
    return least


def _lower(
    func: FuncOp, found: Sequence[ConcatenateOp], planned_bytes: PlannedBytes
) -> None:
    """Marks the concatenations whose operands to compute in place, if that lowers the
    planned bytes."""
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
    """Returns the fewest planned bytes, and the concatenations to compute in place for
    them. `before` is the number of bytes with none in place. The marks that the search
    leaves are arbitrary."""
    spans = {op: _Span(op) for op in found}
    peaks = planned_bytes.at_peak(func)
    if not any(
        all(any(step in span for span in spans.values()) for step in steps)
        for steps in peaks.values()
    ):
        return before, frozenset()  # no choice affects all steps of a peak
    longest = (1 + MAX_SLOWDOWN) * duration(func)
    least, best = before, frozenset[ConcatenateOp]()
    for start in (frozenset[ConcatenateOp](), frozenset(found)):
        _mark(found, chosen := start)
        bytes = before
        if chosen:
            bytes, peaks = planned_bytes.of_all(func), planned_bytes.at_peak(func)
        for op in found if len(found) > 1 or not chosen else ():
            steps = peaks.get(device_of(op.result.type), ())
            if not all(step in spans[op] for step in steps):
                continue
            _mark(found, chosen ^ {op})
            if (lower := planned_bytes.within(func, bytes - 1)) is not None:
                bytes, chosen = lower, chosen ^ {op}
                peaks = planned_bytes.at_peak(func)
        _mark(found, chosen)
        if bytes < least and duration(func) <= longest:
            least, best = bytes, chosen
    return least, best


class _Span:
    """The operations during which the live bytes depend on whether the operands of a
    concatenation are computed in place: from the first operand's operation on, with
    the operations in loops and branches between."""

    def __init__(self, join: ConcatenateOp):
        assert join.parent is not None
        self._block = join.parent
        self._ops: set[Operation] = {join}
        makers, op = set(_makers(join)), join.prev_op
        while makers and op:
            makers.discard(op)
            self._ops.add(op)
            op = op.prev_op

    def __contains__(self, op: Operation) -> bool:
        return self._block.find_ancestor_op_in_block(op) in self._ops


def _makers(op: ConcatenateOp) -> Iterator[Operation]:
    """The operations that would write into the result of `op` if it were in place."""
    block = op.parent
    assert block is not None
    for index in range(len(op.inputs)):
        for value in computed(op, index, block):
            assert isinstance(value.owner, Operation)
            yield value.owner


def _mark(found: Sequence[ConcatenateOp], chosen: frozenset[ConcatenateOp]) -> None:
    for op in found:
        if op in chosen:
            op.attributes[IN_PLACE] = UnitAttr()
        else:
            op.attributes.pop(IN_PLACE, None)
