"""`tgraph-fuse`: groups operations that are computed together into one `tgraph.fusion`.

    %0 = tgraph.broadcast_in_dim %b {...} : (tensor<8xf32>) -> tensor<4x8xf32>
    %1 = tgraph.add %a, %0 : tensor<4x8xf32>
    %2 = tgraph.constant<0.0 : f32> : tensor<4x8xf32>
    %3 = tgraph.maximum %1, %2 : tensor<4x8xf32>

    %3 = tgraph.fusion(%y = %b, %x = %a)
         : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = tgraph.broadcast_in_dim %y {...} : (tensor<8xf32>) -> tensor<4x8xf32>
      %1 = tgraph.add %x, %0 : tensor<4x8xf32>
      %2 = tgraph.constant<0.0 : f32> : tensor<4x8xf32>
      %3 = tgraph.maximum %1, %2 : tensor<4x8xf32>
      tgraph.yield %3 : tensor<4x8xf32>
    }

Values inside a group are never stored. A group is a chain of elementwise operations, a
contraction followed by such a chain, such a chain followed by a reduction or a scatter,
or whole rows with their reductions, as in softmax (`dialects/tgraph/fusing.py`). The
pass finds groups by post-dominators, as TVM Relay does, or by NNVM's scans. Broadcasts,
constants with a single number, and iotas cost nothing to repeat, so every group that
reads them gets its own copy. A group reads a slice at a dynamic start directly from the
sliced tensor, such as a layer's weights from the weights of all layers
(`fusion/slices.py`). It also reads gathered rows directly, such as rows of an
embedding, and computes their indices from the values that these depend on. A group that
ends in a scatter computes indices and updates where the scatter reads them, in the
scatter's order.
The pass never fuses operations with different `tgraph.device`, `tgraph.group`, or
`tgraph.stream` attributes, and a group inherits these attributes from its members.

Numerics: sums inside a group may be added in a different order. All other values are
bitwise identical.

A group runs at the position of its last operation, so everything that it reads must
stay live until then. With `keep-peak`, the pass leaves a value stored if fusion would
raise live bytes above the peak of the original program (`analysis/storage`), or if
storing the value lowers the peak. It groups the bodies of loops and branches first, so
that their live bytes are known when it groups the block around them.

If a group ends by widening its narrowest value, such as an 8-bit result that another
group sums in 32 bits, it ends at the narrow value instead where this lowers the peak.

With `duplicate`, the pass also chooses the values to keep across the peak, usually for
a backward pass: the fewest bytes from which elementwise operations compute all other
values, found as a minimum cut (`fusion/residuals.py`). Each group that reads one of the
other values after the peak computes its own copy. All copies take at most 2 % of the
function's estimated time. Once such copies no longer lower the peak, the pass also
credits the time that groups save by reading less. A batch norm and its activation then
keep only their input. If a value is made at the peak, each of its readers computes it
instead. If a broadcast repeats a value up to eight times, such as a bias for each
element of a batch, the value is computed in each place. A mask, `x > c`, is computed
from `maximum(x, c)` where nothing else reads `x` (`fusion/clipping.py`).

Needs: level 1, preferably after tgraph-eliminate-assigns, which decides what is stored.
Leaves: level 1; each group has one result.
Does not: move views through elementwise operations, fuse concatenations or pads, or
revisit groups that a small `max-depth` has cut short; a second run may fuse more.
"""

from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cache, partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.functions import erase_unused, tensor_blocks
from ...analysis.operations import Fused, operands_of
from ...dialects.tgraph.base import segments, tensor_type_of
from ...dialects.tgraph.indexing import DynamicSliceOp
from ...dialects.tgraph.shaping import ConstantOp, ReshapeOp
from ...dialects.tgraph.structure import FusionOp, YieldOp
from ...support.choices import ChoiceError
from ..optional import OptionalPass
from .fusion.clipping import compare_results
from .fusion.duplication import duplicate
from .fusion.graph import PLACE
from .fusion.groups import (
    MODES,
    Function,
    Grouping,
    candidates,
    cut_at_narrowest,
    fusions,
    grouped,
    unreduced_row_values,
)
from .fusion.peak import Peak

LOWERED = 4
"""How often the pass may split groups, or duplicate values, to lower the peak."""

MAX_SLOWDOWN = 0.02
"""The share of a block's time that all duplicates together may take."""

WORTH = 0.01
"""The share of the peak that a duplication has to save."""


@dataclass(frozen=True)
class TGraphFuse(OptionalPass):
    """Fuses operations so that the values between them are never stored.

    mode: "relay" (post-dominators), "nnvm" (NNVM's scans) or "none".
    max_depth: the largest number of operations in one of relay's groups.
    keep_peak: whether to reject fusions that would raise the peak of live bytes.
    duplicate: whether to recompute values at the peak in each group that reads them;
        requires keep_peak.
    """

    name = "tgraph-fuse"
    TOPIC = "fusion"

    mode: str = "relay"
    max_depth: int = 256
    keep_peak: bool = True
    duplicate: bool = True

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ChoiceError("mode", self.mode, MODES)
        if self.max_depth < 1:
            raise ValueError(f"max-depth is {self.max_depth}, expected 1 or more")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.fuse(tensor_blocks(op))

    def fuse(self, blocks: Iterable[Block]) -> None:
        """Fuses the operations of blocks, which come after the blocks around them."""
        found: list[Block] = []
        for block in blocks:  # an iterator does not visit erased loops
            compare_results(block)
            if self.mode != "none":
                erase_unused(block)  # unused readers keep their operands out of groups
                found.append(block)
        for block in reversed(found):  # a loop's bytes depend on the groups in it
            for fused in fusions(*self.choose(block)):
                outline(fused)
            erase_unused(block)

    def choose(self, block: Block) -> tuple[Function, Grouping]:
        """Chooses the groups of `block`. May duplicate values in `block`."""
        function = Function(block)
        candidate = candidates(function, self.mode, self.max_depth)
        if not self.keep_peak:
            return function, _settled(function, candidate, set(), None)
        peak = Peak(function)
        grouping = _settled(function, candidate, set(), peak)
        shortest = cache(partial(peak.time, grouping))
        saves = False  # whether saved time counts: once nothing else lowers the peak
        tried: list[object] = []
        for _ in range(LOWERED if self.duplicate else 0):
            duplication = duplicate(
                peak, grouping, lambda: (1 + MAX_SLOWDOWN) * shortest(), saves, tried
            )
            if duplication:
                trial = Function(block)
                trial_peak = Peak(trial, peak)
                trial_candidate = candidates(trial, self.mode, self.max_depth)
                trial_grouping = _settled(trial, trial_candidate, set(), trial_peak)
                most = (1 - WORTH) * peak.height(grouping)
                is_short = (
                    trial_peak.time(trial_grouping) <= (1 + MAX_SLOWDOWN) * shortest()
                )
                if is_short and trial_peak.height(trial_grouping) <= most:
                    function, peak, grouping = trial, trial_peak, trial_grouping
                    candidate, tried = trial_candidate, []
                else:
                    tried.append(duplication.originals)
                    duplication.undo()
            elif saves:
                break
            else:
                saves = True
        grouping = _lowered(function, candidate, grouping, peak)
        if (others := cut_at_narrowest(function, candidate)) != candidate:
            trial_grouping = _settled(function, others, set(), peak)
            trial_grouping = _lowered(function, others, trial_grouping, peak)
            if peak.height(trial_grouping) < peak.height(grouping):
                grouping = trial_grouping
        return function, grouping


def _settled(
    function: Function,
    candidate: Sequence[int],
    stored: Set[int],
    peak: Peak | None,
    grouping: Grouping | None = None,
) -> Grouping:
    """The groups within the candidates, with the values `stored` stored, and more where
    needed. `grouping`, if given, stores fewer."""
    while True:
        grouping = grouped(function, candidate, stored, grouping)
        more = unreduced_row_values(function, grouping)
        if not more and peak:
            more = peak.members_to_store(grouping)
        if more <= stored:
            return grouping
        stored = stored | more


def _lowered(
    function: Function, candidate: Sequence[int], grouping: Grouping, peak: Peak
) -> Grouping:
    """`grouping`, or one that stores more values if that lowers the peak."""
    height = peak.height(grouping)
    for _ in range(LOWERED):
        costly = peak.costly(grouping)
        if not costly:
            break
        stored = costly | grouping.stored
        trial = _settled(function, candidate, stored, peak, grouping)
        if (lower := peak.height(trial)) >= height:
            break
        grouping, height = trial, lower
    return grouping


def outline(fused: Fused) -> FusionOp:
    """Inserts a fusion with copies of a group's operations, and erases the root."""
    last = fused.root
    body = Block()
    inside: dict[SSAValue, SSAValue] = {}  # values outside the body -> in the body
    inputs: dict[Hashable, SSAValue] = {}  # equal slices are read once
    for value in fused.inputs:
        first = inputs.setdefault(_slice_key(value), value)
        if first is value:
            inside[value] = body.insert_arg(tensor_type_of(value.type), len(body.args))
            inside[value].name_hint = value.name_hint
        inside[value] = inside[first]
    for op in fused.ops:
        operands, _ = operands_of(op)
        copy = type(op).create(
            operands=[inside[value] for value in operands],
            result_types=[op.results[0].type],
            properties=op.properties | {"operandSegmentSizes": segments(operands, ())},
            attributes={n: a for n, a in op.attributes.items() if n not in PLACE},
            location=op.location,
        )
        body.add_op(copy)
        inside[op.results[0]] = copy.results[0]
        copy.results[0].name_hint = op.results[0].name_hint
    body.add_op(YieldOp(inside[last.result]))
    fusion = FusionOp(
        list(inputs.values()),
        Region(body),
        outs=last.outs,
        result_types=[last.result.type],
    )
    fusion.attributes |= {n: a for n, a in last.attributes.items() if n in PLACE}
    fusion.location = last.location
    Rewriter.insert_op(fusion, InsertPoint.before(last))
    last.result.replace_all_uses_with(fusion.result)
    Rewriter.erase_op(last)  # erase_unused keeps one with a destination
    return fusion


def _slice_key(value: SSAValue) -> Hashable:
    """A key that equal slices at dynamic starts, and equal reshapes of them, share."""
    op = value.owner
    if isinstance(op, ConstantOp) and op.results:
        return value.type, op.value
    if isinstance(op, DynamicSliceOp | ReshapeOp) and op.results:
        return value.type, tuple(map(_slice_key, op.operands))
    return value
