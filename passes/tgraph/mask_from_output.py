"""`tgraph-mask-from-output`: computes masks from the clipped result, not from the
input.

    %y = tgraph.maximum %x, %zero : tensor<4x8xf32>
    ...
    %mask = tgraph.compare %x, %zero {direction = "GT"} : ...

    %mask = tgraph.compare %y, %zero {direction = "GT"} : ...

The gradient of a ReLU then needs only the result, as in PyTorch, and the input can be
overwritten. The pass uses that `x > c` is `maximum(x, c) > c`, and that `x <= c` is its
negation; for `minimum`, it uses `<` and `>=`. This also holds for NaN and signed zeros,
so results are bitwise identical.

The pass applies only if all other readers of `%x` are such comparisons after the
`maximum`. Live bytes therefore never grow.

Needs: level 1, before fusion.
Leaves: level 1.
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
    """Compares the results of maximum and minimum instead of their inputs."""

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
