"""Computes some products as sums in a loop nest, alone or in a batch.

    out[b, i, j] = sum over k of lhs[b, i, k] * rhs[b, j, k]

A product with one or a few vectors reads each element of the matrix once, so a loop
nest reads them in memory order. No library multiplies wide integers. For small
matrices, calling a library takes longer than multiplying, especially for complex
numbers, whose library is called from Python.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, SSAValue

from ....analysis.cost import SMALL_PRODUCT
from ....dialects.dtypes import Array, is_float, numpy_dtype
from ....dialects.tgraph.base import (
    TensorOp,
    ints,
    tensor_type_of,
    with_element,
    with_shape,
)
from ....dialects.tgraph.elementwise import ConvertOp, MultiplyOp
from ....dialects.tgraph.reducing import DotGeneralOp, ReduceOp
from ..contraction import Contraction
from ..numpy.dot import multiplied_in

FEW_ROWS = 3
"""The maximum rows for which a loop nest is as fast as a library if both matrices are
contiguous along the sums, as weights of shape outputs x inputs are. (few_rows.py
multiplies some more rows.)
"""

SMALL = 1 << 18
"""The maximum complex multiplications for which a nest is faster than a library."""


def as_sum(
    op: Contraction, inputs: Sequence[Array]
) -> tuple[Mapping[SSAValue, TensorOp], Mapping[SSAValue, Array]] | None:
    """The operations of a loop nest that computes a product, by results, and the arrays
    of their operands; None if a library is faster."""
    if not isinstance(op, DotGeneralOp) or not _is_for_nest(op, inputs):
        return None
    (result,) = op.results or op.outs
    type, rank = op.declared[0], op.declared[0].get_num_dims()
    shape = (*type.get_shape(), *(inputs[0].shape[d] for d in op.contracting[0]))
    space = with_shape(type, shape)
    first = len(_free(op, inputs, 0)) + len(op.batching[0])
    block = Block()
    arrays: dict[SSAValue, Array] = {}
    ops: list[TensorOp] = []
    for side, missing in enumerate(
        (range(first, rank), range(len(op.batching[0]), first))
    ):
        x, element = inputs[side], tensor_type_of(op.inputs[side].type).element_type
        order = *op.batching[side], *_free(op, inputs, side), *op.contracting[side]
        factor = block.insert_arg(with_element(space, element), side)
        view = np.expand_dims(x.transpose(order), tuple(missing))
        arrays[factor] = np.broadcast_to(view, shape)
        ops.append(ConvertOp([factor], result_types=[space]))
    ops.append(MultiplyOp([op.result for op in ops], result_types=[space]))
    total = ReduceOp(
        [ops[-1].result],
        result_types=[type],
        properties={
            "kind": StringAttr("add"),
            "dimensions": ints(range(rank, len(shape))),
        },
    )
    return {**{op.result: op for op in ops}, result: total}, arrays


def _free(op: DotGeneralOp, inputs: Sequence[Array], side: int) -> list[int]:
    taken = *op.batching[side], *op.contracting[side]
    return [d for d in range(inputs[side].ndim) if d not in taken]


def _is_for_nest(op: DotGeneralOp, inputs: Sequence[Array]) -> bool:
    dtype = numpy_dtype(op.declared[0].element_type, op)
    summed = [inputs[0].shape[d] for d in op.contracting[0]]
    if not summed:
        return False
    if dtype.kind == "c":
        return prod(op.declared[0].get_shape()) * prod(summed) <= SMALL
    if not is_float(dtype):
        return not is_float(multiplied_in(dtype, inputs, prod(summed)))
    if dtype.itemsize < 4:
        return False
    sizes = [
        prod(x.shape[d] for d in _free(op, inputs, n)) for n, x in enumerate(inputs)
    ]
    if 1 in sizes:
        return True
    is_small = prod(sizes) * prod(summed) <= SMALL_PRODUCT
    is_along = all(
        x.strides[op.contracting[n][-1]] == x.itemsize for n, x in enumerate(inputs)
    )
    is_fast = is_small or (min(sizes) <= FEW_ROWS and is_along)
    return is_fast and all(x.dtype == dtype for x in inputs)
