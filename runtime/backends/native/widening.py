"""Contractions that multiply as f32, by oneDNN: of f16, or of two element types.

Native loops convert the operands to f32 and the result back: a product part by part, a
convolution by batches or features. The converted parts are in the workspace. oneDNN has
fast primitives for f16 only if the processor can multiply f16.
"""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Attribute, Block

from ....dialects.dtypes import Array, DType
from ....dialects.tgraph.base import tensor_type_of
from ....dialects.tgraph.elementwise import ConvertOp
from ....dialects.tgraph.reducing import ConvolutionOp
from ...calls import Call
from ...pool import Scratch
from ..arrays import alike
from ..contraction import BLOCK, Contraction, blocks, operands, terms
from ..numpy.dot import Convert, multiplied, multiplied_in, product
from ..onednn import backend as onednn
from .functions import nested
from .graphs import graph_of

_F32 = np.dtype(np.float32)


def calls_of(
    op: Contraction, inputs: Sequence[Array], out: Array, scratch: Scratch
) -> list[Call] | None:
    """The calls for a contraction of elements that are multiplied as f32. None if all
    types are f32, if it is computed in another type, or if oneDNN has no primitive."""
    count = terms(op, inputs)
    arrays = (*inputs, out)
    if multiplied_in(out.dtype, inputs, count) != _F32 or all(
        x.dtype == _F32 for x in arrays
    ):
        return None
    types = [*map(tensor_type_of, (x.type for x in op.inputs)), op.declared[0]]
    elements: dict[DType, Attribute] = {_F32: f32}
    for x, type in zip(arrays, types, strict=True):
        elements[x.dtype] = type.element_type

    def convert(out: Array, x: Array) -> list[Call]:
        block = Block(arg_types=[TensorType(elements[x.dtype], x.shape)])
        (given,) = block.args
        made = TensorType(elements[out.dtype], out.shape)
        change = ConvertOp([given], result_types=[made])
        graph = graph_of({change.result: change}, change.result, {given: x}, out)
        return nested(graph, scratch)

    if isinstance(op, ConvolutionOp):
        return _convolved(op, inputs, out, scratch, convert)

    def multiply(
        lhs: Array, rhs: Array, out: Array, scratch: Scratch
    ) -> Sequence[Call]:
        if out.dtype == _F32:
            made = onednn.matmul(lhs, rhs, out, scratch)
            return product(lhs, rhs, out, scratch) if made is None else made
        target = scratch.take(out.shape, _F32)
        return [*multiply(lhs, rhs, target, scratch), *convert(out, target)]

    return multiplied(op, inputs, out, scratch, convert, multiply)


def _convolved(
    op: ConvolutionOp,
    inputs: Sequence[Array],
    out: Array,
    scratch: Scratch,
    convert: Convert,
) -> list[Call] | None:
    """A convolution by blocks; operands that all blocks read are converted once."""
    calls: list[Call] = []

    def wide(x: Array) -> Array:
        if x.dtype == _F32:
            return x
        # A kernel stays reversed: oneDNN computes gradients with it in this order.
        forward = tuple(slice(None, None, -1 if s < 0 else 1) for s in x.strides)
        buffer = alike(x, _F32, scratch)
        calls.extend(convert(buffer, x[forward]))
        return buffer[forward]

    parts = list(blocks(op, out.shape, BLOCK))
    cut = operands(op, inputs, parts[0])
    pairs = zip(inputs, cut, strict=True)
    whole = [wide(x) if x.shape == part.shape else None for x, part in pairs]
    for block in parts:
        mark = scratch.mark
        read = zip(operands(op, inputs, block), whole, strict=True)
        given = [wide(x) if known is None else known for x, known in read]
        to = out[*block, ...]
        target = to if to.dtype == _F32 else alike(to, _F32, scratch)
        made = onednn.compiled(op, given, target, scratch)
        if made is None:
            return None
        calls += made
        if target is not to:
            calls += convert(to, target)
        scratch.mark = mark
    return calls
