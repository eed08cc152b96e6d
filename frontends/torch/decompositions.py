"""Decompositions of operations that PyTorch does not decompose into core operations.

Decompositions of gradients read few results of the forward pass, so that few are saved:
they recompute the bag of each embedding from the offsets of the bags.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any, TypeAlias

Tensor: TypeAlias = Any
"""`torch.Tensor`"""


@cache
def own_decompositions() -> Mapping[Any, Callable[..., Any]]:
    """The decompositions by operation, for `run_decompositions` and AOTAutograd."""
    aten: Any = import_module("torch").ops.aten
    table: Any = import_module("torch._decomp").decomposition_table
    of_pytorch = aten.ldexp.Tensor, aten.rrelu_with_noise_backward.default
    return {
        **{op: table[op] for op in of_pytorch},
        **_of_lists(),
        aten._cdist_backward.default: _distances_backward,
        aten._embedding_bag_backward.default: _bags_backward,
        aten._embedding_bag_per_sample_weights_backward.default: _scales_backward,
        aten._pdist_backward.default: _distances_inside_backward,
        aten.cholesky_inverse.default: _inverse_from_cholesky,
        aten.cholesky_solve.default: _solved_by_cholesky,
        aten.embedding_renorm.default: _rows_of_at_most,
        aten.fractional_max_pool2d.default: _fractional_max_pool,
        aten.fractional_max_pool2d_backward.default: _fractional_max_pool_backward,
        aten.fractional_max_pool3d.default: _fractional_max_pool,
        aten.fractional_max_pool3d_backward.default: _fractional_max_pool_backward,
        aten.index_reduce.default: _index_reduce,
        aten.kthvalue.default: _kth,
        aten.masked_scatter_backward.default: _masked_scatter_backward,
        aten.median.default: _median_of_all,
        aten.median.dim: _median,
        aten.mode.default: _mode,
        aten.multilabel_margin_loss_forward.default: _multilabel_margin_loss,
        aten.nanmedian.default: _number_median_of_all,
        aten.nanmedian.dim: _number_median,
        aten.polar.default: _polar,
        aten.put.default: _put,
        aten.repeat_interleave.Tensor: _repeated_numbers,
        aten.scatter_reduce.two: _scatter_reduce,
    }


def _torch() -> Any:
    return import_module("torch")


# Operations on lists of tensors, as optimizers use them


def _of_lists() -> Mapping[Any, Callable[..., Any]]:
    """Decompositions of the functional operations `_foreach_NAME` into the operation
    `NAME` of each tensor."""
    torch = _torch()
    prefix = "aten::_foreach_"
    found: dict[Any, Callable[..., Any]] = {}
    for qualified in torch._C._dispatch_get_all_op_names():
        name, _, overload = qualified.removeprefix("aten::").partition(".")
        element = name.removeprefix("_foreach_")
        if not qualified.startswith(prefix) or element.endswith("_"):
            continue
        op = getattr(getattr(torch.ops.aten, name), overload or "default")
        of_each = _OF_LISTS.get(element) or getattr(torch, element, None)
        has_numbers = any(x.name == "scalars" for x in op._schema.arguments)
        if overload.endswith("out") or (overload == "Tensor" and has_numbers):
            continue  # PyTorch does not trace those with the numbers in one tensor
        if op._schema.returns and of_each:
            found[op] = partial(_for_each, of_each)
    return found


def _for_each(of_each: Callable[..., Any], *given: Any, **options: Any) -> list[Any]:
    """The results of `of_each` for each element of the lists among the arguments."""
    count = max(len(x) for x in given if _is_list(x))
    return [
        of_each(*(x[n] if _is_list(x) else x for x in given), **options)
        for n in range(count)
    ]


def _is_list(given: Any) -> bool:
    return isinstance(given, list | tuple)


def _copied_to(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return source.to(x.dtype).expand(x.shape).clone()


def _zeros(x: Tensor) -> Tensor:
    return x.new_zeros(x.shape)


def _norm(x: Tensor, order: float = 2, dtype: Any = None) -> Tensor:
    return _torch().linalg.vector_norm(x, order, dtype=dtype)


def _sum_of_powers(x: Tensor, order: float = 2, dtype: Any = None) -> Tensor:
    return _torch().sum(x.abs() ** order, dtype=dtype)


def _at_least(x: Tensor, least: Any) -> Tensor:
    return _torch().ops.aten.clamp_min(x, least)


def _at_most(x: Tensor, most: Any) -> Tensor:
    return _torch().ops.aten.clamp_max(x, most)


def _plus_product(x: Tensor, y: Tensor, z: Tensor, scale: Any = 1) -> Tensor:
    return x + scale * y * z


def _plus_quotient(x: Tensor, y: Tensor, z: Tensor, scale: Any = 1) -> Tensor:
    return x + scale * y / z


_OF_LISTS: Mapping[str, Callable[..., Tensor]] = {
    "addcdiv": _plus_quotient,
    "addcmul": _plus_product,
    "clamp_max": _at_most,
    "clamp_min": _at_least,
    "copy": _copied_to,
    "maximum": _at_least,
    "minimum": _at_most,
    "norm": _norm,
    "powsum": _sum_of_powers,
    "zero": _zeros,
}
"""Functions of one tensor that `torch` has under another name, or with other
parameters."""


def _polar(size: Tensor, angle: Tensor) -> Tensor:
    return _torch().complex(size * angle.cos(), size * angle.sin())


# Distances


def _slope(apart: Tensor, p: float, norm: Tensor) -> Tensor:
    """The derivative of `norm`, the norm of order p of `apart` along the last
    dimension; 0 where the norm is not differentiable."""
    if p == 0:
        return apart * 0
    if p == 1:
        return apart.sign()
    if p == float("inf"):
        return apart.sign() * (apart.abs() == norm)
    if p == 2:
        return (apart / norm).masked_fill(norm == 0, 0)
    slope = apart.sign() * (apart.abs() / norm) ** (p - 1)
    return slope.masked_fill((norm == 0) | (apart == 0), 0)


def _distances_backward(
    head: Tensor, x: Tensor, y: Tensor, p: float, distances: Tensor
) -> Tensor:
    """The gradient of distances between rows of `x` and `y` with respect to `x`."""
    apart = x.unsqueeze(-2) - y.unsqueeze(-3)
    slope = _slope(apart, p, distances.unsqueeze(-1))
    return (head.unsqueeze(-1) * slope).sum(-2)


def _distances_inside_backward(
    head: Tensor, x: Tensor, p: float, distances: Tensor
) -> Tensor:
    one, other = _torch().triu_indices(len(x), len(x), 1)
    slope = _slope(x[one] - x[other], p, distances.unsqueeze(-1))
    change = head.unsqueeze(-1) * slope
    zeros = x.new_zeros(x.shape)
    return zeros.index_add(0, one, change).index_add(0, other, -change)


# Bags of embeddings

_MEAN, _LARGEST = 1, 2


def bag_numbers(indices: Tensor, offsets: Tensor, bags: int) -> Tensor:
    """The number of the bag of each index. `offsets` are the positions at which bags
    start."""
    starts = offsets.new_zeros(len(indices) + 1)
    starts = starts.index_add(0, offsets[:bags], starts.new_ones(bags))
    return starts[:-1].cumsum(0) - 1


def _bags_backward(
    head: Tensor,
    indices: Tensor,
    offsets: Tensor,
    numbers: Tensor,
    sizes: Tensor,
    largest: Tensor,
    count: int,
    by_frequency: bool,
    mode: int,
    sparse: bool,
    scale: Tensor | None,
    padding: int = -1,
) -> Tensor:
    """The gradient with respect to the weight, which has `count` rows."""
    if by_frequency or sparse:
        return NotImplemented
    bags, width = head.shape
    zeros = head.new_zeros(count, width)
    numbers = bag_numbers(indices, offsets, bags)
    kept = indices != padding
    sizes = offsets.new_zeros(bags).index_add(0, numbers, kept.to(offsets.dtype))
    if mode == _LARGEST:
        some = (sizes > 0).unsqueeze(-1)
        return zeros.scatter_add(0, largest.long(), head * some)
    if mode == _MEAN:
        head = head / sizes.clamp(min=1).unsqueeze(-1)
    rows = head[numbers]
    rows = rows if scale is None else rows * scale.unsqueeze(-1)
    rows = rows.masked_fill(~kept.unsqueeze(-1), 0) if padding >= 0 else rows
    return zeros.index_add(0, indices, rows)


def _scales_backward(
    head: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    numbers: Tensor,
    mode: int,
    padding: int = -1,
) -> Tensor:
    """The gradient with respect to the factor of each row (`per_sample_weights`)."""
    numbers = bag_numbers(indices, offsets, len(head))
    products = (weight[indices] * head[numbers]).sum(-1)
    return products.masked_fill(indices == padding, 0) if padding >= 0 else products


def _rows_of_at_most(
    weight: Tensor, indices: Tensor, most: float, order: float
) -> Tensor:
    """Scales the rows at `indices` whose norm of this order exceeds `most`."""
    rows = weight[indices.reshape(-1)]
    norms = _torch().linalg.vector_norm(rows, order, 1, True)
    factors = _torch().where(norms > most, most / (norms + 1e-7), 1.0)
    return weight.index_put([indices.reshape(-1)], rows * factors)


# Linear algebra


def _solved_by_cholesky(b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    """The solution of `a x = b`, given the Cholesky factor of `a`."""
    solve = _torch().linalg.solve_triangular
    lower = factor.mH if upper else factor
    half = solve(lower, b, upper=False)
    return solve(lower.mH, half, upper=True)


def _inverse_from_cholesky(factor: Tensor, upper: bool = False) -> Tensor:
    ones = _torch().eye(factor.shape[-1], dtype=factor.dtype)
    return _solved_by_cholesky(ones.expand(factor.shape), factor, upper)


# Windows at random places


def _fractional_max_pool(
    x: Tensor, size: list[int], count: list[int], samples: Tensor
) -> tuple[Tensor, Tensor]:
    """The maxima of `count` windows along each axis, and their positions in an image
    (B. Graham, "Fractional Max-Pooling", 2014). `samples` are numbers from 0 to 1 that
    determine the places of windows, for each axis of each image and channel. In 2-D,
    the number of the last axis comes first."""
    torch, rank = _torch(), len(size)
    is_single = x.dim() == rank + 1
    images = x.unsqueeze(0) if is_single else x
    *outer, _ = samples.shape
    places: Any = 0
    for axis in range(rank):
        whole, parts, width = images.shape[axis + 2], count[axis], size[axis]
        # Like the operands, places are computed in the type of x.
        sample = samples[..., 1 - axis if rank == 2 else axis, None]
        step = (whole - width) / (parts - 1) if parts > 1 else 0.0
        number = torch.arange(parts, dtype=x.dtype)
        start = ((number + sample) * step).floor() - (sample * step).floor()
        start = torch.where(number == parts - 1, whole - width, start.long())
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = parts, width
        own = start.unsqueeze(-1) + torch.arange(width)
        places = places * whole + own.reshape([*outer, *shape])
    flat = places.reshape([*outer, -1])
    read = images.flatten(2).gather(2, flat).reshape([*outer, *count, -1])
    largest, which = read.max(-1)
    found = flat.reshape(read.shape).gather(-1, which.unsqueeze(-1)).squeeze(-1)
    return (largest[0], found[0]) if is_single else (largest, found)


def _fractional_max_pool_backward(
    head: Tensor, x: Tensor, size: list[int], count: list[int], places: Tensor
) -> Tensor:
    rank = len(size)
    zeros = x.new_zeros(x.shape).flatten(-rank)
    flat = head.flatten(-rank), places.flatten(-rank)
    return zeros.scatter_add(-1, flat[1], flat[0]).reshape(x.shape)


# Losses


def _multilabel_margin_loss(
    x: Tensor, labels: Tensor, reduction: int
) -> tuple[Tensor, Tensor]:
    """The loss, and which classes are labels of each example. The labels of an example
    end before the first -1. (PyTorch 2.13's decomposition also counts the labels after
    it.)"""
    torch = _torch()
    is_single = x.dim() < 2
    scores, labels = torch.atleast_2d(x), torch.atleast_2d(labels)
    count = scores.shape[1]
    is_label = (labels >= 0).long().cumprod(1).bool()
    places = labels.masked_fill(~is_label, 0)
    is_target = (places.unsqueeze(-1) == torch.arange(count)) & is_label.unsqueeze(-1)
    is_target = is_target.any(1)
    apart = 1 - scores.gather(1, places).unsqueeze(-1) + scores.unsqueeze(1)
    counts = is_label.unsqueeze(-1) & ~is_target.unsqueeze(1)
    losses = torch.where(counts, apart.clamp(min=0) / count, 0).sum((1, 2))
    loss = {0: losses, 1: losses.mean(), 2: losses.sum()}[reduction]
    loss = losses[0] if is_single else loss
    return loss, is_target.to(x.dtype).reshape(x.shape)


# Order


def _picked(
    x: Tensor, dim: int, keepdim: bool, place: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Selects one element along `dim`, and its index. `place` returns the position of
    the element among the sorted elements, with size 1 along `dim`."""
    flat = x.dim() == 0
    x = x.reshape(1) if flat else x
    both = x.sort(dim=dim, stable=True)
    where = place(both[0])
    found = [part.gather(dim, where) for part in both]
    if flat or not keepdim:
        found = [part.squeeze(dim) for part in found]
    return found[0], found[1]


def _kth(
    x: Tensor, k: int, dim: int = -1, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    return _picked(x, dim, keepdim, lambda x: _like_one(x, dim) + (k - 1))


def _like_one(x: Tensor, dim: int) -> Tensor:
    """Zeros of type int64 with the shape of `x`, but size 1 along `dim`."""
    shape = list(x.shape)
    shape[dim] = 1
    return x.new_zeros(shape, dtype=_torch().int64)


def _median(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The median, which is the lower of two middle elements, or NaN if there is one."""

    def place(x: Tensor) -> Tensor:
        last = x.shape[dim] - 1
        middle = _like_one(x, dim) + last // 2
        if not x.is_floating_point():
            return middle
        return _torch().where(x.isnan().any(dim, True), last, middle)

    return _picked(x, dim, keepdim, place)


def _number_median(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The median of the elements that are not NaN."""

    def place(x: Tensor) -> Tensor:
        numbers = (x == x).sum(dim, True)
        return ((numbers - 1) // 2).clamp(min=0)

    return _picked(x, dim, keepdim, place)


def _median_of_all(x: Tensor) -> Tensor:
    return _median(x.reshape(-1), 0)[0]


def _number_median_of_all(x: Tensor) -> Tensor:
    return _number_median(x.reshape(-1), 0)[0]


def _mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The least of the most frequent elements, and its last index."""

    def place(x: Tensor) -> Tensor:
        """The end of the first longest run of equal elements."""
        at = (_like_one(x, dim) + 1).expand(x.shape).cumsum(dim) - 1
        starts = _torch().where(x == x.roll(1, dim), 0, at).cummax(dim)[0]
        return (at - starts).argmax(dim, keepdim=True)

    return _picked(x, dim, keepdim, place)


# Indices


def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    flat = x.reshape(-1)
    places = [index.reshape(-1)]
    return flat.index_put(places, source.reshape(-1), accumulate).reshape(x.shape)


def _repeated_numbers(repeats: Tensor, output_size: int | None = None) -> Tensor:
    """The number of each repetition, repeated as often as it says."""
    if output_size is None:
        return NotImplemented
    ends = repeats.cumsum(0)
    places = _torch().arange(output_size)
    return _torch().searchsorted(ends, places, right=True).to(repeats.dtype)


def _masked_scatter_backward(head: Tensor, mask: Tensor, sizes: Any) -> Tensor:
    kept = mask.expand(head.shape)
    places = kept.reshape(-1).cumsum(0) - 1
    taken = head.masked_fill(~kept, 0).reshape(-1)
    zeros = head.new_zeros(sizes)
    added = zeros.reshape(-1).index_add(0, places.clamp(min=0), taken)
    return added.reshape(zeros.shape)


def _index_reduce(
    x: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    shape = [1] * source.dim()
    shape[dim] = -1
    wide = index.long().reshape(shape).expand(source.shape)
    return x.scatter_reduce(dim, wide, source, reduce, include_self=include_self)


def _scatter_reduce(
    x: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Computes a mean by a sum. Without `include_self`, elements that are replaced
    become the neutral element of the reduction first."""
    if include_self and reduce != "mean":
        return NotImplemented
    torch = _torch()
    ones = torch.ones(index.shape, dtype=torch.int64)
    counts = x.new_zeros(x.shape, dtype=torch.int64).scatter_add(dim, index, ones)
    if not include_self:
        x = x.masked_fill(counts > 0, _neutral(reduce, x.dtype))
    kind = "sum" if reduce == "mean" else reduce
    total = x.scatter_reduce(dim, index, source, kind)
    if reduce != "mean":
        return total
    rounding = None if x.is_floating_point() or x.is_complex() else "floor"
    counts = (counts + include_self).clamp(min=1)
    return torch.div(total, counts.to(x.dtype), rounding_mode=rounding)


def _neutral(reduce: str, dtype: Any) -> float:
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    if dtype.is_floating_point:
        return float("-inf" if reduce == "amax" else "inf")
    limits = _torch().iinfo(dtype)
    return limits.min if reduce == "amax" else limits.max
