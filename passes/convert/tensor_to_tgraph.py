"""Converts views and constants of MLIR's tensor and arith dialects to tgraph (level 1).

    %c = arith.constant dense<1.0> : tensor<8xf32>
    %0 = tensor.extract_slice %x[4, 0] [4, 8] [1, 1] : ... to tensor<4x8xf32>
    %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>

    %c = tgraph.constant<1.0 : f32> : tensor<8xf32>
    %0 = tgraph.slice %x {limit_indices = array<i64: 8, 8>, ...} : ...
    %1 = tgraph.reshape %0 : (tensor<4x8xf32>) -> tensor<32xf32>

Views then take no memory, and constants become globals of the module.

Needs: functions on tensors, such as linalg's.
Leaves: level 1. Destination-style operations stay unchanged.
Does not: convert slices whose offsets or sizes are values, or `tensor.insert_slice`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...analysis.functions import is_tensor
from ...dialects.tgraph.base import (
    TensorOp,
    ints,
    is_static,
    tensor_type_of,
    with_shape,
)
from ...dialects.tgraph.shaping import ConstantOp, ReshapeOp, SliceOp


@dataclass(frozen=True)
class ConvertTensorToTGraph(ModulePass):
    """Converts views and constants of the tensor and arith dialects to tgraph."""

    name = "convert-tensor-to-tgraph"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if new := _converted(inner):
                *_, last = new
                last.results[0].name_hint = inner.results[0].name_hint
                for made in new:
                    made.location = inner.location
                Rewriter.replace_op(inner, new)


def _converted(op: Operation) -> Sequence[TensorOp]:
    """The operations that replace `op`; none if it stays."""
    types = [value.type for value in (*op.operands, *op.results)]
    if not all(is_tensor(type) and is_static(tensor_type_of(type)) for type in types):
        return ()
    match op:
        case arith.ConstantOp(value=DenseIntOrFPElementsAttr() as value):
            number = value.get_attrs()[0] if value.is_splat() else value
            return [ConstantOp(number, tensor_type_of(op.result.type))]
        case tensor.CollapseShapeOp() | tensor.ExpandShapeOp():
            return [ReshapeOp([op.src], result_types=[op.result.type])]
        case tensor.ExtractSliceOp():
            return _slice(op)
        case _:
            return ()


def _slice(op: tensor.ExtractSliceOp) -> Sequence[TensorOp]:
    """A slice, and a reshape if the result drops dimensions of size 1."""
    sizes = op.static_sizes.get_values()
    starts = op.static_offsets.get_values()
    strides = op.static_strides.get_values()
    result = op.result.type
    slice = SliceOp(
        [op.source],
        result_types=[with_shape(tensor_type_of(result), sizes)],
        properties={
            "start_indices": ints(starts),
            "limit_indices": ints(_limits(starts, sizes, strides)),
            "strides": ints(strides),
        },
    )
    if slice.result.type == result:
        return [slice]
    return [slice, ReshapeOp([slice.result], result_types=[result])]


def _limits(
    starts: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> Sequence[int]:
    """The end of the slice in each dimension: after its last element."""
    return [
        start + (size - 1) * stride + 1 if size else start
        for start, size, stride in zip(starts, sizes, strides, strict=True)
    ]
