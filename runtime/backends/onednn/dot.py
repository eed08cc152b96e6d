"""`dot_general` as oneDNN's matmul, whatever memory the operands lie in."""

from collections.abc import Sequence

from ....dialects.dtypes import Array
from ....dialects.tgraph.reducing import DotGeneralOp
from ...calls import Call
from ...pool import Scratch
from ..arrays import try_reshape
from ..contraction import matrices
from .epilogue import Epilogue
from .library import MAX_DIMS, Refused
from .primitives import (
    ATTRIBUTES,
    ENGINE,
    SOURCE,
    TARGET,
    WEIGHTS,
    compiled,
    describe,
    describe_any,
)

FEW_ROWS = 8
"""A product of fewer rows reads the weights once, which packing does not help."""


def dot(
    op: DotGeneralOp,
    inputs: Sequence[Array],
    out: Array,
    epilogue: Epilogue,
    scratch: Scratch,
) -> list[Call]:
    """Raises `Refused` where oneDNN has only its reference, and for products with
    vectors, for which it has no kernel of their own: it takes up to seven times as long
    as a loop over the matrix."""
    lhs, made_lhs = matrices(op, 0, inputs[0], scratch)
    rhs, made_rhs = matrices(op, 1, inputs[1], scratch)
    shape = (*lhs.shape[:-1], rhs.shape[-1])
    target = try_reshape(out, shape)
    is_of_vector = 1 in shape[-2:] and lhs.dtype == out.dtype == "f4"
    if target is None or len(shape) > MAX_DIMS or is_of_vector:
        raise Refused
    attributes = epilogue.attributes(lambda x: try_reshape(x, shape))
    is_packed = shape[-2] >= FEW_ROWS and scratch.constant(rhs)
    source, result = describe(lhs), describe(target)
    weights = describe_any(rhs) if is_packed else describe(rhs)
    description = attributes.describe(
        "matmul", ENGINE, source, weights, None, result, ATTRIBUTES
    )
    if attributes.scales_only and description.implementation.startswith("gemm"):
        raise Refused  # it scales afterwards, and takes longer than a loop
    arrays = {SOURCE: lhs, WEIGHTS: rhs, TARGET: target}
    reordered = [WEIGHTS] if is_packed else []
    calls = compiled(description, arrays, attributes, scratch, reordered)
    return [*made_lhs, *made_rhs, *calls]
