"""`tgraph-mask-from-output`: masks of what was clipped are computed from the result.

    %y = tgraph.maximum %x, %zero : tensor<4x8xf32>
    ...
    %mask = tgraph.compare %x, %zero {direction = "GT"} : ...

    %mask = tgraph.compare %y, %zero {direction = "GT"} : ...

So of a relu only the result is kept for the gradient, as PyTorch does it, and what it
was computed from can be overwritten. `x > c` is `maximum(x, c) > c`, and `x <= c` its
opposite; `minimum` likewise with `<` and `>=`. That holds for NaN and zeros of both
signs as well, so no value changes.

Done where everything else that reads `%x` is such a comparison after the `maximum`:
then what is live never grows.

Needs: level 1, before fusion. Leaves: the same.
Does not: look through views, or into fusions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ...analysis.functions import tensor_blocks
from ...dialects.tgraph.base import TensorOp
from ...dialects.tgraph.elementwise import CompareOp, MaximumOp, MinimumOp
from ...dialects.tgraph.shaping import ConstantOp
from ..optional import OptionalPass

_ANSWERED = {MaximumOp: ("GT", "LE"), MinimumOp: ("LT", "GE")}
"""The comparisons of the clipped value with the bound that the result answers."""

_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}


@dataclass(frozen=True)
class TGraphMaskFromOutput(OptionalPass):
    """Compares the results of maximum and minimum instead of what they clipped."""

    name = "tgraph-mask-from-output"
    LOWERS_PEAK = True
    TOPIC = "in place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            position = {op: index for index, op in enumerate(block.ops)}
            for clip in block.ops:
                if isinstance(clip, MaximumOp | MinimumOp) and not clip.outs:
                    _rewrite(clip, position)


def _rewrite(clip: MaximumOp | MinimumOp, position: Mapping[Operation, int]) -> None:
    for value, bound in (clip.inputs, reversed(clip.inputs)):
        comparisons = list(_comparisons(clip, value, bound, position))
        if value is bound or not comparisons or None in comparisons:
            continue
        for comparison in comparisons:
            if comparison is not None:
                index = comparison.inputs.index(value)
                comparison.operands[index] = clip.result
        return


def _comparisons(
    clip: MaximumOp | MinimumOp,
    value: SSAValue,
    bound: SSAValue,
    position: Mapping[Operation, int],
) -> Iterator[CompareOp | None]:
    """What reads the value besides; None for what its result does not answer."""
    computed = isinstance(value.owner, TensorOp) and not isinstance(
        value.owner, ConstantOp
    )
    for use in value.uses:
        op = use.operation
        if op is clip:
            continue
        is_later = computed and position.get(op, -1) > position[clip]
        if not is_later or not isinstance(op, CompareOp):
            yield None
            return
        other = op.inputs[1 - use.index]
        direction = op.direction.data
        if use.index:
            direction = _MIRRORED.get(direction, "")
        is_same = other is bound or _is_same_constant(other, bound)
        yield op if is_same and direction in _ANSWERED[type(clip)] else None


def _is_same_constant(a: SSAValue, b: SSAValue) -> bool:
    return (
        isinstance(a.owner, ConstantOp)
        and isinstance(b.owner, ConstantOp)
        and a.type == b.type
        and a.owner.value == b.owner.value
    )
