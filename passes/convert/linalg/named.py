"""Writes products as linalg's named operations, on strided views of their operands.

    dot_general                  linalg.matmul, linalg.batch_matmul
    convolution, two dimensions  linalg.conv_2d_nhwc_hwcf

Upstream passes recognize these operations: tiling, vectorization, lowering to
libraries. The conversion does not use them if strides cannot express the view, or if
sums have another type than the result.
"""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, DenseIntElementsAttr, TensorType, i1, i64
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import Conv2DNhwc_HwcfOp, MatmulOp
from xdsl.ir import Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import irdl_op_definition

from .code import signless
from .memory import Stored
from .nests import PARALLEL, REDUCTION, Values


@irdl_op_definition
class BatchMatmulOp(NamedOperation):
    """`linalg.batch_matmul`, which xDSL lacks."""

    name = "linalg.batch_matmul"

    PRINT_ATTRS_IN_FRONT: ClassVar = True

    def __init__(self, inputs: Sequence[SSAValue], outs: Sequence[SSAValue]):
        region = self.get_hidden_region(inputs, outs)
        super().__init__(inputs, outs, (), hidden_region=region)

    @classmethod
    def get_hidden_region(
        cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]
    ) -> Region:
        return MatmulOp.get_hidden_region(inputs, outputs)

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        batch, m, n, k = map(AffineExpr.dimension, range(4))
        places = ((batch, m, k), (batch, k, n), (batch, m, n))
        return [AffineMap(4, 0, place) for place in places]

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        return ArrayAttr([PARALLEL, PARALLEL, PARALLEL, REDUCTION])


def matmul(
    values: Values,
    operands: Sequence[Stored],
    labels: Sequence[Sequence[str]],
    total: Stored,
) -> bool:
    """Adds a product of tensors to `total`, if it can be one of matrices. Returns
    whether it did. `labels` name the dimensions of the operands: `b00`, `m00`, `n00`,
    `k00` and so on (`reducing.py`). The dimensions of `total` are in the order of the
    labels."""
    left, right = (
        _matrices(stored, names, parts)
        for stored, names, parts in zip(operands, labels, ("bmk", "bkn"), strict=True)
    )
    if left is None or right is None or not _fits(total, left, right):
        return False
    *batch, rows, _ = left.shape
    layout = total.layout.reshaped((*batch, rows, right.shape[-1]))
    if layout is None:
        return False
    views = [values.memory.memref_of(stored) for stored in (left, right)]
    result = values.memory.memref_of(total.viewed(layout))
    if batch:
        values.code.do(BatchMatmulOp(views, [result]))
    else:
        values.code.do(MatmulOp(views, [result], res=()))
    return True


def _matrices(stored: Stored, labels: Sequence[str], parts: str) -> Stored | None:
    """The operand with one dimension for each of `parts`, but no batch dimension if
    there are no batches; None if strides cannot express it."""
    order = sorted(
        range(len(labels)), key=lambda d: (parts.index(labels[d][0]), labels[d])
    )
    sizes = {part: 1 for part in parts}
    for label, size in zip(labels, stored.shape, strict=True):
        sizes[label[0]] *= size
    shape = [
        size
        for part, size in sizes.items()
        if part != "b" or any(label[0] == "b" for label in labels)
    ]
    layout = stored.layout.transposed(order).reshaped(tuple(shape))
    return None if layout is None else stored.viewed(layout)


def convolution(
    values: Values,
    image: Stored,
    kernel: Stored,
    result: Stored,
    strides: Sequence[int],
    dilations: Sequence[int],
) -> bool:
    """Adds a convolution to `result`, if it has two dimensions. Returns whether it did.
    The layout of image and result is batch, dimensions, features; that of the kernel is
    dimensions, inputs, features."""
    if len(strides) != 2 or not _fits(result, image, kernel):
        return False
    views = [values.memory.memref_of(x) for x in (image, kernel, result)]
    pair = TensorType(i64, [2])
    values.code.do(
        Conv2DNhwc_HwcfOp(
            views[:2],
            views[2:],
            (),
            strides=DenseIntElementsAttr.from_list(pair, strides),
            dilations=DenseIntElementsAttr.from_list(pair, dilations),
        )
    )
    return True


def _fits(total: Stored, *operands: Stored) -> bool:
    """Whether all have one element type, and no operand repeats elements."""
    element = signless(total.element)
    return element != i1 and all(
        signless(x.element) == element and not x.repeats for x in operands
    )
