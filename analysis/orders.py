"""Contractions that compute their results in the order of a later copy.

    %a = tgraph.dot_general %x, %y ... : tensor<4x12x256x64>
    %b = tgraph.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : ... 4x256x12x64
    %c = tgraph.reshape %b : ... -> tensor<4x256x768>

No strides describe `%c` if `%a` is row-major. `%b` would be copied, as it would be if
the function returned it. Instead, `%a` gets the strides with which `%b` is row-major.
An elementwise operation that reads `%b` can then take over its memory, too.

    %0 = memref.alloc() : memref<4x256x768>
    %a = memref.reinterpret_cast %0 to ... strides: [196608, 64, 768, 1]
    tgraph.dot_general %x, %y outs(%a) ...
"""

from typing import TypeGuard

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.tgraph.base import TensorOp, tensor_type_of, value_shape
from ..dialects.tgraph.fusing import CONTRACTIONS
from ..dialects.tgraph.reducing import DotGeneralOp
from ..dialects.tgraph.shaping import ReshapeOp, TransposeOp
from .concatenations import has_rows, is_computed
from .layout import Layout
from .operations import Operations, members


def source_order(
    value: SSAValue, operations: Operations
) -> tuple[SSAValue, Layout] | None:
    """The computed value of which `value` is a transposed or reshaped view, and its
    layout if `value` is row-major. None if it is no such view, if something else reads
    the computed value, or if its operation cannot write this layout."""
    end, layout = value, Layout.contiguous(value_shape(value))
    while _is_bijective(op := value.owner):
        if not operations.is_view(operations.position[op]) or operations.group_of(op):
            return None
        (value,) = op.inputs
        if len(list(operations.uses(value))) > 1:
            return None
        if isinstance(op, TransposeOp):
            permutation = op.permutation.get_values()
            inverse = sorted(range(len(permutation)), key=permutation.__getitem__)
            layout = layout.transposed(inverse)
        elif (reshaped := layout.reshaped(value_shape(value))) is not None:
            layout = reshaped
        else:
            return None
    if value is end or not is_computed(value, operations.block):
        return None
    is_written = layout.is_contiguous or _can_write(value, layout, operations)
    return (value, layout) if is_written else None


def _is_bijective(op: Operation | Block) -> TypeGuard[TransposeOp | ReshapeOp]:
    return isinstance(op, TransposeOp | ReshapeOp)


def _can_write(value: SSAValue, layout: Layout, operations: Operations) -> bool:
    """Whether a contraction computes `value`, and can write it with this layout: rows
    of adjacent elements, or columns if it is a product and nothing else. Only those of
    f32 and f64 multiply stacks of matrices as fast as one large matrix."""
    op = value.owner
    assert isinstance(op, TensorOp)
    group = operations.group_of(op)
    ops = [inner for op in (group.ops if group else [op]) for inner in members(op)]
    contractions = [inner for inner in ops if isinstance(inner, CONTRACTIONS)]
    values = [v for inner in contractions for v in (*inner.inputs, *inner.results)]
    if any(tensor_type_of(v.type).element_type not in (f32, f64) for v in values):
        return False
    if isinstance(op, DotGeneralOp) and group is None:
        free = range(len(op.batching[0]), len(layout.shape))
        return any(layout.strides[d] == 1 != layout.shape[d] for d in free)
    return bool(contractions) and has_rows(layout)
