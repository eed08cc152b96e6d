"""Computes the mask of a clipped value from the result, so the value need not be kept.

    %y = maximum %x, %c                      %y = maximum %x, %c
    ...                                      ...
    %m = compare %x, %c {direction = "GT"}   %m = compare %y, %c {direction = "GT"}

`x > c` is `maximum(x, c) > c`, and `x <= c` is its negation; for `minimum`, these are
`<` and `>=`. This also holds for NaN and signed zeros. The comparisons change only if
they are the only other users of `x` and come after the clipping. Live bytes then never
grow.
"""

from collections.abc import Iterator, Mapping

from xdsl.ir import Block, Operation, SSAValue

from ....dialects.tgraph.base import TensorOp
from ....dialects.tgraph.elementwise import CompareOp, MaximumOp, MinimumOp
from ....dialects.tgraph.shaping import ConstantOp

_ANSWERED = {MaximumOp: ("GT", "LE"), MinimumOp: ("LT", "GE")}
"""The comparisons with the bound that are the same for the result as for the value."""

_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}


def compare_results(block: Block) -> None:
    """Makes comparisons read the results of maximum and minimum, not the operands."""
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
    """Yields the users of `value` besides `clip`; None instead of a user that cannot
    read the result of `clip`."""
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
