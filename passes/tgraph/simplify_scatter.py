"""`tgraph-simplify-scatter`: replaces a scatter of one slice by an update of a slice.

    %p = tgraph.broadcast_in_dim %i ...  : ... -> tensor<1xi32>
    %1 = tgraph.scatter %s, %p, %y {kind = "replace", ...} : ...

    %r = tgraph.reshape %y               : ... -> tensor<1x4x8xf32>
    %1 = tgraph.dynamic_update_slice %s, %r, %i, %c0, %c0 : ...

JAX writes `s.at[i].set(y)` as a scatter. A scatter ignores a slice that is not within
the tensor, and an update moves it there, so the pass applies in loops whose counter
shows that the slice is within the tensor in each iteration. The other passes for loops
look for updates of slices only. (XLA's ScatterSimplifier also removes scatters.)

Needs: level 1, after `canonicalize`.
Leaves: level 1.
Does not: look at scatters that combine, or at batches of slices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from ...analysis.functions import erase_unused, tensor_blocks
from ...analysis.loops import Counter, counter
from ...analysis.scans import linear
from ...dialects.tgraph.base import (
    Shape,
    is_static,
    shape_of,
    tensor_type_of,
    with_shape,
)
from ...dialects.tgraph.elements import number_of
from ...dialects.tgraph.indexing import DynamicUpdateSliceOp, ScatterOp
from ...dialects.tgraph.shaping import ConcatenateOp, ConstantOp, ReshapeOp
from ...dialects.tgraph.structure import WhileOp
from ..optional import OptionalPass


@dataclass(frozen=True)
class TGraphSimplifyScatter(OptionalPass):
    """Replaces a scatter of one slice, in a loop, by an update of a slice."""

    name = "tgraph-simplify-scatter"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            loop = block.parent_op()
            if not isinstance(loop, WhileOp) or block is not loop.body.block:
                continue
            for scatter in [op for op in block.ops if isinstance(op, ScatterOp)]:
                _simplify(scatter, loop)
            erase_unused(block)


def _simplify(scatter: ScatterOp, loop: WhileOp) -> None:
    counted, numbers = counter(loop), _numbers(scatter)
    if counted is None or not numbers or scatter.outs or scatter.kind.data != "replace":
        return
    if not _is_within(scatter, numbers, loop, counted):
        return
    whole, indices, updates = scatter.inputs
    scalar = with_shape(tensor_type_of(indices.type), ())
    zero = ConstantOp(number_of(0, scalar.element_type), scalar)
    part = _reshaped(updates, _slice(scatter))
    scalars = {dim: _reshaped(number, ()) for dim, number in numbers.items()}
    starts = [scalars.get(dim, zero).result for dim in range(len(_slice(scatter)))]
    update = DynamicUpdateSliceOp(
        [whole, part.result, *starts], result_types=[whole.type]
    )
    new = [zero, part, *scalars.values(), update]
    for op in new:
        op.location = scatter.location
        op.attributes |= scatter.attributes
    Rewriter.replace_op(scatter, new)


def _numbers(scatter: ScatterOp) -> Mapping[int, SSAValue]:
    """Where the only slice begins, by dimensions; none if there may be other slices."""
    indices = scatter.inputs[1]
    dims = scatter.scatter_dims_to_operand_dims.get_values()
    numbers: Sequence[SSAValue] = [indices]
    if isinstance(vector := indices.owner, ConcatenateOp) and len(dims) > 1:
        numbers = vector.inputs
    types = [tensor_type_of(number.type) for number in numbers]
    if scatter.input_batching_dims.get_values() or len(types) != len(dims):
        return {}
    if not all(is_static(type) and prod(shape_of(type)) == 1 for type in types):
        return {}
    return dict(zip(dims, numbers, strict=True))


def _is_within(
    scatter: ScatterOp,
    numbers: Mapping[int, SSAValue],
    loop: WhileOp,
    counted: Counter,
) -> bool:
    """Whether the only slice is within the tensor in each iteration. An update as large
    as the tensor is within it for any number, and a scatter is for 0 alone."""
    whole = tensor_type_of(scatter.inputs[0].type)
    if not is_static(whole):
        return False
    for dim, number in numbers.items():
        if (place := linear(number, loop, counted)) is None:
            return False
        low, high = place.ends(counted.trips)
        if low < 0 or high + _slice(scatter)[dim] > shape_of(whole)[dim]:
            return False
    return True


def _slice(scatter: ScatterOp) -> Shape:
    """The sizes of the slice, by the dimensions of what it is put into."""
    updates = shape_of(tensor_type_of(scatter.inputs[2].type))
    sizes = [updates[dim] for dim in sorted(scatter.update_window_dims.get_values())]
    for dim in sorted(scatter.inserted_window_dims.get_values()):
        sizes.insert(dim, 1)
    return tuple(sizes)


def _reshaped(value: SSAValue, shape: Shape) -> ReshapeOp:
    return ReshapeOp(
        [value], result_types=[with_shape(tensor_type_of(value.type), shape)]
    )
