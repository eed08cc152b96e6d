"""`tgraph-simplify-scatter`: replaces a scatter of one slice by an update of a slice.

    %p = tgraph.broadcast_in_dim %i ...  : ... -> tensor<1xi32>
    %1 = tgraph.scatter %s, %p, %y {kind = "replace", ...} : ...

    %r = tgraph.reshape %y               : ... -> tensor<1x4x8xf32>
    %1 = tgraph.dynamic_update_slice %s, %r, %i, %c0, %c0 : ...

JAX writes `s.at[i].set(y)` as a scatter. A scatter ignores a slice that is out of
bounds, while an update moves the slice into bounds. The pass therefore applies only if
the slice is known to be in bounds: its start is constant, or a linear function of a
loop's counter that stays in bounds. For a scatter that combines, such as
`s.at[1:-1].add(y)`, the pass reads the old slice and combines it with the new one:

    %1 = tgraph.scatter %s, %c1, %y {kind = "add", ...} : ...

    %0 = tgraph.slice %s {[1:7]}         : (tensor<8xf32>) -> tensor<6xf32>
    %r = tgraph.add %0, %y               : tensor<6xf32>
    %1 = tgraph.dynamic_update_slice %s, %r, %c1 : ...

The other passes look only for slice updates, which can be computed in place. (XLA's
ScatterSimplifier also removes scatters.)

Needs: level 1, after `canonicalize`.
Leaves: level 1.
Does not: handle batches of slices, or slices that are combined with a constant such as
zeros (see `tgraph-scatter-into`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from ...analysis.functions import erase_unused, tensor_blocks
from ...analysis.loops import counter, integer
from ...analysis.scans import linear
from ...dialects.tgraph.base import (
    AnyTensor,
    Shape,
    TensorOp,
    ints,
    is_static,
    shape_of,
    tensor_type_of,
    value_shape,
    with_shape,
)
from ...dialects.tgraph.elements import number_of
from ...dialects.tgraph.elementwise import COMBINERS
from ...dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp, ScatterOp
from ...dialects.tgraph.shaping import (
    ConcatenateOp,
    ConstantOp,
    ReshapeOp,
    ViewOp,
    plain_slice,
)
from ...dialects.tgraph.structure import WhileOp
from ..optional import OptionalPass


@dataclass(frozen=True)
class TGraphSimplifyScatter(OptionalPass):
    """Replaces a scatter of one slice by an update of a slice."""

    name = "tgraph-simplify-scatter"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            scatters = [op for op in block.ops if isinstance(op, ScatterOp)]
            if not scatters:
                continue
            loop = block.parent_op()
            if not isinstance(loop, WhileOp) or block is not loop.body.block:
                loop = None
            for scatter in scatters:
                _simplify(scatter, loop)
            erase_unused(block)


def _simplify(scatter: ScatterOp, loop: WhileOp | None) -> None:
    numbers, kind = _numbers(scatter), scatter.kind.data
    whole, indices, updates = scatter.inputs
    is_new = kind == "replace"
    if not numbers or scatter.outs or not (is_new or _is_not_constant(whole)):
        return
    if not _is_within(scatter, numbers, loop):
        return
    scalar = with_shape(tensor_type_of(indices.type), ())
    sizes, new = _slice(scatter), list[TensorOp]()

    def add(op: TensorOp) -> SSAValue:
        op.location = scatter.location
        op.attributes |= scatter.attributes
        new.append(op)
        return op.results[0]

    def reshaped(value: SSAValue, shape: Shape) -> SSAValue:
        if value_shape(value) == shape:
            return value
        type = with_shape(tensor_type_of(value.type), shape)
        return add(ReshapeOp([value], result_types=[type]))

    def start(number: SSAValue | int) -> SSAValue:
        if isinstance(number, int):
            return add(ConstantOp(number_of(number, scalar.element_type), scalar))
        return reshaped(number, ())

    part = reshaped(updates, sizes)
    places = [numbers.get(dim, 0) for dim in range(len(sizes))]
    starts = [start(number) for number in places]
    if not is_new:
        type = tensor_type_of(part.type)
        old = add(_taken(whole, places, starts, type))
        part = add(COMBINERS[kind]([old, part], result_types=[type]))
    add(DynamicUpdateSliceOp([whole, part, *starts], result_types=[whole.type]))
    Rewriter.replace_op(scatter, new)


def _taken(
    whole: SSAValue,
    places: Sequence[SSAValue | int],
    starts: Sequence[SSAValue],
    type: AnyTensor,
) -> TensorOp:
    """A slice of `whole` with type `type`: a view if its starts are known numbers."""
    sizes = shape_of(type)
    numbers = [p if isinstance(p, int) else integer(p) for p in places]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return DynamicSliceOp(
            [whole, *starts],
            result_types=[type],
            properties={"slice_sizes": ints(sizes)},
        )
    ends = [number + size for number, size in zip(known, sizes, strict=True)]
    return plain_slice(whole, known, ends)


def _is_not_constant(value: SSAValue) -> bool:
    """Whether `value` is neither a constant nor a view of one."""
    op = value.owner
    while isinstance(op, ViewOp):
        op = op.inputs[0].owner
    return not isinstance(op, ConstantOp)


def _numbers(scatter: ScatterOp) -> Mapping[int, SSAValue | int]:
    """The start of the only slice in each indexed dimension of the tensor; empty if
    there may be several slices."""
    indices = scatter.inputs[1]
    dims = scatter.scatter_dims_to_operand_dims.get_values()
    if scatter.input_batching_dims.get_values() or not is_static(
        tensor_type_of(indices.type)
    ):
        return {}
    numbers: Sequence[SSAValue | int] = [indices]
    if isinstance(vector := indices.owner, ConstantOp):
        numbers = [int(number) for number in vector.dense.get_values()]  # type: ignore
    elif isinstance(vector, ConcatenateOp) and len(dims) > 1:
        numbers = vector.inputs
    if len(numbers) != len(dims) or not all(map(_is_one, numbers)):
        return {}
    return dict(zip(dims, numbers, strict=True))


def _is_one(number: SSAValue | int) -> bool:
    return isinstance(number, int) or prod(value_shape(number)) == 1


def _is_within(
    scatter: ScatterOp, numbers: Mapping[int, SSAValue | int], loop: WhileOp | None
) -> bool:
    """Whether the only slice is in bounds, in each iteration of `loop` if there is one.
    An update as large as the tensor is in bounds at any start, but a scatter only at
    0."""
    whole = tensor_type_of(scatter.inputs[0].type)
    if not is_static(whole):
        return False
    counted = counter(loop) if loop else None
    for dim, number in numbers.items():
        if isinstance(number, int):
            low = high = number
        elif (known := integer(number)) is not None:
            low = high = known
        elif loop and counted and (place := linear(number, loop, counted)):
            low, high = place.ends(counted.trips)
        else:
            return False
        if low < 0 or high + _slice(scatter)[dim] > shape_of(whole)[dim]:
            return False
    return True


def _slice(scatter: ScatterOp) -> Shape:
    """The sizes of the slice, in the order of the dimensions of the updated tensor."""
    updates = shape_of(tensor_type_of(scatter.inputs[2].type))
    sizes = [updates[dim] for dim in sorted(scatter.update_window_dims.get_values())]
    for dim in sorted(scatter.inserted_window_dims.get_values()):
        sizes.insert(dim, 1)
    return tuple(sizes)
