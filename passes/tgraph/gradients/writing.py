"""Writes shape operations for gradient rules: except `broadcast`, only where needed."""

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr

from ....dialects.diagnostics import LocatedError
from ....dialects.tgraph.base import TensorOp, ints, with_shape
from ....dialects.tgraph.reducing import ReduceOp
from ....dialects.tgraph.shaping import (
    BroadcastInDimOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from .site import Term, shape_of, site_of, type_of


def reshape(x: Term, shape: Sequence[int]) -> Term:
    if shape_of(x) == tuple(shape):
        return x
    return site_of(x).emit(ReshapeOp, x, type=with_shape(type_of(x), shape))


def transpose(x: Term, permutation: Sequence[int]) -> Term:
    """Result dimension d is dimension `permutation[d]` of `x`."""
    if list(permutation) == list(range(len(permutation))):
        return x
    return site_of(x).emit(TransposeOp, x, permutation=ints(permutation))


def broadcast(x: Term, shape: Sequence[int], dims: Sequence[int]) -> Term:
    """Dimension d of `x` becomes dimension `dims[d]`."""
    return site_of(x).emit(
        BroadcastInDimOp,
        x,
        type=with_shape(type_of(x), shape),
        broadcast_dimensions=ints(dims),
    )


def reduce(x: Term, kind: str, dims: Sequence[int]) -> Term:
    if not dims:
        return x
    return site_of(x).emit(ReduceOp, x, kind=StringAttr(kind), dimensions=ints(dims))


def pad(
    x: Term, low: Sequence[int], high: Sequence[int], interior: Sequence[int]
) -> Term:
    """`x` with zeros around and between its elements."""
    if not any((*low, *high, *interior)):
        return x
    zero = site_of(x).splat(0.0, with_shape(type_of(x), ()))
    edges = {"low": ints(low), "high": ints(high), "interior": ints(interior)}
    return site_of(x).emit(PadOp, x, zero, type=None, **edges)


def slice_of(
    x: Term,
    starts: Sequence[int],
    limits: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Term:
    strides = strides or [1] * len(starts)
    if (tuple(limits), max(strides, default=1)) == (shape_of(x), 1) and not any(starts):
        return x
    return site_of(x).emit(
        SliceOp,
        x,
        start_indices=ints(starts),
        limit_indices=ints(limits),
        strides=ints(strides),
    )


def refuse(op: TensorOp, what: str) -> LocatedError:
    """The error for an operation on the path of a gradient that it cannot pass."""
    return LocatedError(f"{op.name}: {what} is not differentiable", op)
