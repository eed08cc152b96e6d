"""Gradients of operations that move elements: each moves the gradient back."""

from ....dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    DeviceCopyOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)
from .site import GradientSite, Term, gradient_of, shape_of
from .writing import pad, reduce, reshape, slice_of, transpose


@gradient_of(BroadcastInDimOp)
def _broadcast_in_dim(site: GradientSite[BroadcastInDimOp], index: int) -> Term:
    shape = site.input_type().get_shape()
    dims = site.op.broadcast_dimensions.get_values()
    full = shape_of(site.g)
    kept = [d for d, size in zip(dims, shape, strict=True) if size == full[d]]
    repeated = [d for d in range(len(full)) if d not in kept]
    total = reduce(site.g, "add", repeated)
    order = sorted(kept)
    return reshape(transpose(total, [order.index(d) for d in kept]), shape)


@gradient_of(ReshapeOp)
def _reshape(site: GradientSite[ReshapeOp], index: int) -> Term:
    return reshape(site.g, site.input_type().get_shape())


@gradient_of(TransposeOp)
def _transpose(site: GradientSite[TransposeOp], index: int) -> Term:
    permutation = site.op.permutation.get_values()
    return transpose(site.g, [permutation.index(d) for d in range(len(permutation))])


@gradient_of(ReverseOp)
def _reverse(site: GradientSite[ReverseOp], index: int) -> Term:
    return site.emit(ReverseOp, site.g, dimensions=site.op.dimensions)


@gradient_of(SliceOp)
def _slice(site: GradientSite[SliceOp], index: int) -> Term:
    starts = site.op.start_indices.get_values()
    interior = [stride - 1 for stride in site.op.strides.get_values()]
    high = [
        size - start - _dilated(taken, gap)
        for size, start, taken, gap in zip(
            site.input_type().get_shape(),
            starts,
            shape_of(site.g),
            interior,
            strict=True,
        )
    ]
    return pad(site.g, starts, high, interior)


@gradient_of(ConcatenateOp)
def _concatenate(site: GradientSite[ConcatenateOp], index: int) -> Term:
    dim = site.op.dimension.value.data
    starts, limits = [0] * len(shape_of(site.g)), [*shape_of(site.g)]
    starts[dim] = sum(site.input_type(i).get_shape()[dim] for i in range(index))
    limits[dim] = starts[dim] + site.input_type(index).get_shape()[dim]
    return slice_of(site.g, starts, limits)


@gradient_of(PadOp)
def _pad(site: GradientSite[PadOp], index: int) -> Term:
    low, high = site.op.low.get_values(), site.op.high.get_values()
    interior = site.op.interior.get_values()
    shape = site.input_type().get_shape()
    # Elements that negative padding cuts off have gradient 0.
    uncut = pad(
        site.g,
        [max(-size, 0) for size in low],
        [max(-size, 0) for size in high],
        [0] * len(low),
    )
    starts = [max(size, 0) for size in low]
    limits = [
        start + _dilated(size, gap)
        for start, size, gap in zip(starts, shape, interior, strict=True)
    ]
    of_operand = slice_of(uncut, starts, limits, [gap + 1 for gap in interior])
    if index == 0:
        return of_operand
    everywhere = list(range(len(shape)))
    return reduce(site.g, "add", everywhere) - reduce(of_operand, "add", everywhere)


@gradient_of(DeviceCopyOp)
def _device_copy(site: GradientSite[DeviceCopyOp], index: int) -> Term:
    return site.emit(DeviceCopyOp, site.g, type=site.input_type())


def _dilated(size: int, gap: int) -> int:
    """The size of a dimension with `gap` zeros between neighboring elements."""
    return (size - 1) * (gap + 1) + 1 if size else 0
