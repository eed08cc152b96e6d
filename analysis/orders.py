"""Contractions that compute their results in the order of a later copy.

    %a = tgraph.dot_general %x, %y ... : tensor<4x12x256x64>
    %b = tgraph.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : ... 4x256x12x64
    %c = tgraph.reshape %b : ... -> tensor<4x256x768>

No strides describe `%c` if `%a` is row-major. `%b` would be copied, as it would be if
the function returned it. Instead, `%a` gets the strides with which `%b` is row-major:

    %0 = memref.alloc() : memref<4x256x768>
    %a = memref.reinterpret_cast %0 to ... strides: [196608, 64, 768, 1]
    tgraph.dot_general %x, %y outs(%a) ...
"""

from typing import TypeGuard

from xdsl.ir import Block, Operation, SSAValue

from ..dialects.tgraph.base import value_shape
from ..dialects.tgraph.shaping import ReshapeOp, TransposeOp
from .concatenations import has_rows, is_computed
from .layout import Layout
from .operations import Operations, contracts


def source_order(
    value: SSAValue, operations: Operations
) -> tuple[SSAValue, Layout] | None:
    """The contraction's result of which `value` is a transposed view, and its layout if
    `value` is row-major. None if it is no such view, if something else reads that
    result, or if the contraction cannot write it so: only rows of adjacent elements."""
    layout = Layout.contiguous(value_shape(value))
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
    if layout.is_contiguous or not has_rows(layout):
        return None
    if not is_computed(value, operations.block) or not _contracts(value, operations):
        return None
    return value, layout


def _is_bijective(op: Operation | Block) -> TypeGuard[TransposeOp | ReshapeOp]:
    return isinstance(op, TransposeOp | ReshapeOp)


def _contracts(value: SSAValue, operations: Operations) -> bool:
    op = value.owner
    assert isinstance(op, Operation)
    group = operations.group_of(op)
    return any(map(contracts, group.ops if group else [op]))
