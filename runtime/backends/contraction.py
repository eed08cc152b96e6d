"""A contraction, then elementwise operations on its result: in place, or in blocks.

Usually the contraction is computed into the result's memory, and the loop over the
elements runs in place. If that memory also holds an operand of the loop
(`w - lr * dot(x, g)` in the memory of `w`), or has elements of another size, both run
block by block, and the contraction's blocks are in the workspace.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.dtypes import Array, numpy_dtype
from ...dialects.tgraph.base import Shape
from ...dialects.tgraph.reducing import ConvolutionOp, DotGeneralOp
from ..calls import Call
from ..pool import Scratch
from .arrays import tiles

BLOCK = 1 << 16
"""The elements of a block: 256 KiB of f32."""

Contraction: TypeAlias = DotGeneralOp | ConvolutionOp
Product: TypeAlias = Callable[
    [Contraction, Sequence[Array], Array, Scratch], list[Call]
]
"""Makes the calls that compute the contraction of two arrays into a third."""

Loop: TypeAlias = Callable[[Mapping[SSAValue, Array], Array], list[Call]]
"""Makes the calls that compute the result from the loop's operands. They may overwrite
the operand in the result's memory.
"""


def contraction(
    op: Contraction,
    inputs: Sequence[Array],
    sides: Mapping[SSAValue, Array],
    out: Array,
    scratch: Scratch,
    product: Product,
    loop: Loop,
    limit: int = BLOCK,
) -> list[Call]:
    """The calls for `op` on `inputs`, followed by a loop over its result and over
    `sides`, which have the shape of `out`. Blocks have at most `limit` elements, or one
    row."""
    dtype = numpy_dtype(op.declared[0].element_type, op)
    (result,) = op.results or op.outs
    is_alike = dtype.itemsize == out.dtype.itemsize
    if is_alike and not any(np.may_share_memory(x, out) for x in sides.values()):
        target = out.view(dtype)
        mark = scratch.mark
        calls = product(op, inputs, target, scratch)
        scratch.mark = mark
        return [*calls, *loop({**sides, result: target}, out)]
    calls: list[Call] = []
    for block in blocks(op, out.shape, limit):
        start = scratch.mark
        part_of_out = out[*block, ...]  # a view even if it has no dimensions
        target = scratch.take(part_of_out.shape, dtype)
        mark = scratch.mark
        calls += product(op, operands(op, inputs, block), target, scratch)
        scratch.mark = mark
        part = {value: array[*block, ...] for value, array in sides.items()}
        calls += loop({**part, result: target}, part_of_out)
        scratch.mark = start
    return calls


def terms(op: Contraction, inputs: Sequence[Array]) -> int:
    """The number of products that are added up for each element of the result."""
    if isinstance(op, DotGeneralOp):
        return prod(inputs[0].shape[d] for d in op.contracting[0])
    labels = op.labels[1]
    pairs = zip(labels, inputs[1].shape, strict=True)
    return prod(size for label, size in pairs if label != "o")


def blocks(op: Contraction, shape: Shape, limit: int) -> Iterator[tuple[slice, ...]]:
    """Parts of a contraction's result, each of at most `limit` elements or one row."""
    if isinstance(op, DotGeneralOp):
        yield from tiles(shape, limit)
        return
    # A convolution is divided along batches or features: the outer of the two.
    whole = [slice(0, size) for size in shape]
    labels = op.labels[2]
    cut = min(labels.index("b"), labels.index("f"))
    if op.groups > 1:
        yield tuple(whole)
        return
    step = max(1, limit // prod(size for d, size in enumerate(shape) if d != cut))
    for start in range(0, shape[cut], step):
        whole[cut] = slice(start, min(start + step, shape[cut]))
        yield tuple(whole)


def operands(
    op: Contraction, inputs: Sequence[Array], block: Sequence[slice]
) -> Sequence[Array]:
    """The parts of both operands that `block` of the result depends on. For a
    convolution, only batches and features are divided."""
    parts: list[Array] = []
    if isinstance(op, ConvolutionOp):
        if op.batch_group_count.value.data > 1:  # the image has more batches: whole
            return inputs
        *labels, out = op.labels
        for x, own, cut, of in zip(inputs, labels, "bo", "bf", strict=True):
            where = [slice(None)] * x.ndim
            where[own.index(cut)] = block[out.index(of)]
            parts.append(x[*where, ...])
        return parts
    place = len(op.batching[0])
    for x, batch, contracting in zip(inputs, op.batching, op.contracting, strict=True):
        where = [slice(None)] * x.ndim
        for number, d in enumerate(batch):
            where[d] = block[number]
        for d in range(x.ndim):
            if d not in batch and d not in contracting:
                where[d] = block[place]
                place += 1
        parts.append(x[*where, ...])
    return parts


def by_labels(x: Array, labels: str, order: str) -> Array:
    """An operand or result of a convolution, with its dimensions in this order."""
    return x.transpose([labels.index(label) for label in order])
