"""Writes the computation of the indices that gathers and scatters access."""

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ....dialects.tgraph.indexing import GatherOp
from .code import MlirCode, index


def gathered(
    code: MlirCode,
    op: GatherOp,
    shape: Sequence[int],
    starts: Mapping[int, SSAValue],
    place: Sequence[SSAValue],
) -> list[SSAValue]:
    """The indices, in an operand of shape `shape`, of the result's element at `place`.

    starts: the index vector, by operand dimension.
    """
    offset_dims = op.offset_dims.get_values()
    batching = of_batch(
        op.operand_batching_dims.get_values(),
        op.start_indices_batching_dims.get_values(),
        op.index_vector_dim.value.data,
        [place[d] for d in op.dimension_numbers.batch(len(place))],
    )
    dropped = {*op.collapsed_slice_dims.get_values(), *batching}
    kept = [d for d in range(len(shape)) if d not in dropped]
    inside = dict(zip(kept, (place[d] for d in sorted(offset_dims)), strict=True))
    at: list[SSAValue] = []
    for d, (size, taken) in enumerate(
        zip(shape, op.slice_sizes.get_values(), strict=True)
    ):
        start = batching.get(d)
        if d in starts:
            highest = code.constant(size - taken, index)
            above = code.add(arith.MaxSIOp(starts[d], code.constant(0, index)))
            start = code.add(arith.MinSIOp(above, highest))
        at.append(total(code, start, inside.get(d)))
    return at


def of_batch(
    operand_dims: Sequence[int],
    index_dims: Sequence[int],
    vector_dim: int,
    batch: Sequence[SSAValue],
) -> dict[int, SSAValue]:
    """The starts along the batching dimensions, which operand and indices share."""
    return {
        dim: batch[other - (other > vector_dim)]
        for dim, other in zip(operand_dims, index_dims, strict=True)
    }


def total(code: MlirCode, start: SSAValue | None, offset: SSAValue | None) -> SSAValue:
    """The sum of `start` and `offset`; None counts as 0."""
    if start is None:
        return code.constant(0, index) if offset is None else offset
    return start if offset is None else code.add(arith.AddiOp(start, offset))
