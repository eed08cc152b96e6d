"""`dot_general` as oneDNN's matmul, for any layout of the operands."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ....dialects.tgraph.reducing import DotGeneralOp
from ....support.arrays import Array, Shape
from ...calls import Call
from ...pool import Scratch
from ..arrays import try_reshape
from ..contraction import matrices
from ..parts import LANES, Slices, divisions
from .division import in_parts
from .epilogue import Epilogue
from .library import MAX_DIMS, Refused
from .primitives import (
    ATTRIBUTES,
    ENGINE,
    SOURCE,
    TARGET,
    WEIGHTS,
    Attributes,
    compiled,
    describe,
    describe_any,
)

COLUMNS = 64
"""The columns of a thread's part are a multiple of this; fewer leave registers idle."""

LONG = 10_000_000
"""From this number of multiplications on, all oneDNN kernels take about the same time,
including those for parts of a matrix.
"""

FEW_ROWS = 8
"""A product with fewer rows reads the weights only once, so packing does not help."""


def dot(
    op: DotGeneralOp,
    inputs: Sequence[Array],
    out: Array,
    epilogue: Epilogue,
    scratch: Scratch,
) -> list[Call]:
    """The calls of a product. Raises `Refused` if oneDNN has only its reference
    implementation, and for products with vectors: oneDNN has no special kernel for
    these, and takes up to seven times as long as a loop over the matrix."""
    lhs, made_lhs = matrices(op, 0, inputs[0], scratch)
    rhs, made_rhs = matrices(op, 1, inputs[1], scratch)
    shape = (*lhs.shape[:-1], rhs.shape[-1])
    target = try_reshape(out, shape)
    is_of_vector = 1 in shape[-2:] and lhs.dtype == out.dtype == "f4"
    if target is None or len(shape) > MAX_DIMS or is_of_vector:
        raise Refused

    def after(block: Slices) -> Attributes:
        return epilogue.attributes(partial(_arranged, shape, block))

    return [*made_lhs, *made_rhs, *product(lhs, rhs, target, scratch, after)]


def product(
    lhs: Array,
    rhs: Array,
    target: Array,
    scratch: Scratch,
    after: Callable[[Slices], Attributes] = lambda _: Attributes(),
) -> list[Call]:
    """The product of matrices, in parts for threads. Raises `Refused`.

    after: the attributes of a block of the target.
    """

    def of_block(block: Slices, scratch: Scratch) -> list[Call]:
        *batch, rows, columns = block
        part = _Matrices(lhs[*batch, rows, :], rhs[*batch, :, columns], target[block])
        return _product(part, after(block), scratch)

    is_long = target.size * lhs.shape[-1] >= LONG
    divided = _divisions(lhs, rhs, target.shape, scratch.threads)
    return in_parts(of_block, divided, scratch, alike=not is_long)


def _divisions(
    lhs: Array, rhs: Array, shape: Shape, threads: int
) -> Sequence[Sequence[Slices]]:
    """Divides batches, or the rows or columns of the larger operand. Each thread reads
    its part of that operand, and all of the other one."""
    *batch, rows, columns = range(len(shape))
    sides = [(rows, LANES), (columns, COLUMNS)]
    ordered = sides if lhs.size > rhs.size else sides[::-1]
    units = {**dict.fromkeys(batch, 1), **dict(ordered)}
    return divisions(shape, units, lhs.shape[-1], threads)


def _arranged(shape: Shape, block: Slices, x: Array) -> Array | None:
    reshaped = try_reshape(x, shape)
    return None if reshaped is None else reshaped[block]


class _Matrices(NamedTuple):
    lhs: Array
    rhs: Array
    target: Array


def _product(
    matrices: _Matrices, attributes: Attributes, scratch: Scratch
) -> list[Call]:
    lhs, rhs, target = matrices
    is_packed = target.shape[-2] >= FEW_ROWS and scratch.constant(rhs)
    source, result = describe(lhs), describe(target)
    weights = describe_any(rhs) if is_packed else describe(rhs)
    description = attributes.describe(
        "matmul", ENGINE, source, weights, None, result, ATTRIBUTES
    )
    if attributes.scales_only and description.implementation.startswith("gemm"):
        raise Refused  # it scales in a second pass, and takes longer than a loop
    arrays = {SOURCE: lhs, WEIGHTS: rhs, TARGET: target}
    reordered = [WEIGHTS] if is_packed else []
    return compiled(description, arrays, attributes, scratch, reordered)
