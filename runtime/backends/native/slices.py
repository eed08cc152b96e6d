"""Groups on slices that start at run-time indices, without copying the slices."""

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import SSAValue

from ....dialects.dtypes import Array
from ....dialects.tgraph.base import shape_of, tensor_type_of
from ....dialects.tgraph.fusing import is_replaced
from ....dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from ...calls import Call
from ..jit.records import Record
from ..jit.slices import Slice, Sliced, slice_of
from .graphs import NoLoopNest

Compute = Callable[[Mapping[SSAValue, Array], Array], list[Call]]
"""Makes the calls that compute a group from the arrays of its slices into an array."""


def on_slices(
    reads: Sequence[DynamicSliceOp],
    update: DynamicUpdateSliceOp | None,
    arrays: Mapping[SSAValue, Array],
    out: Array,
    compute: Compute,
) -> list[Call]:
    """The calls of a group of which some leaves are slices of `arrays`, which also has
    the start indices. With `update`, the group puts its result into a slice of `out`,
    which already has the elements around the slice.

    Raises `NoLoopNest` if a call is not native, or a slice has no elements.
    """
    slices: list[Slice] = []

    def stand_in(
        op: DynamicSliceOp | DynamicUpdateSliceOp, source: Array, sizes: Sequence[int]
    ) -> Array:
        if 0 in sizes:
            raise NoLoopNest
        slices.append(slice_of(source, [arrays[x] for x in op.starts], sizes))
        return slices[-1].stand_in

    target = out
    if update is not None:
        target = stand_in(update, out, shape_of(tensor_type_of(update.inputs[1].type)))
    stand_ins = dict[SSAValue, Array](
        (
            op.result,
            target
            if update is not None and is_replaced(op, update)
            else stand_in(op, arrays[op.inputs[0]], op.slice_sizes.get_values()),
        )
        for op in reads
    )
    functions = [function for function, _ in compute(stand_ins, target)]
    records = [x for x in functions if isinstance(x, Record)]
    if len(records) < len(functions):
        raise NoLoopNest
    return [(Sliced(slices, records), ())]
