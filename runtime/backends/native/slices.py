"""Groups that read slices which begin where numbers say: in place, without a copy."""

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import SSAValue

from ....dialects.dtypes import Array
from ....dialects.tgraph.indexing import DynamicSliceOp
from ...calls import Call
from ..jit.records import Record
from ..jit.slices import Sliced, slice_of
from .graphs import NoLoopNest

Compute = Callable[[Mapping[SSAValue, Array]], list[Call]]
"""The calls that compute a group from the arrays of its slices."""


def on_slices(
    ops: Sequence[DynamicSliceOp], arrays: Mapping[SSAValue, Array], compute: Compute
) -> list[Call]:
    """The calls of a group some of whose leaves are slices of `arrays`, at starts that
    are there, too.

    Raises `NoLoopNest` if some are not native, or a slice has no elements.
    """
    slices = {
        op.result: slice_of(
            arrays[op.inputs[0]],
            [arrays[start] for start in op.inputs[1:]],
            op.slice_sizes.get_values(),
        )
        for op in ops
        if _has_place(op, arrays)
    }
    if len(slices) < len(ops):
        raise NoLoopNest
    stand_ins = dict[SSAValue, Array](
        (value, part.stand_in) for value, part in slices.items()
    )
    functions = [function for function, _ in compute(stand_ins)]
    records = [x for x in functions if isinstance(x, Record)]
    if len(records) < len(functions):
        raise NoLoopNest
    return [(Sliced(list(slices.values()), records), ())]


def _has_place(op: DynamicSliceOp, arrays: Mapping[SSAValue, Array]) -> bool:
    return 0 not in op.slice_sizes.get_values() and all(
        stride >= 0 for stride in arrays[op.inputs[0]].strides
    )
