"""Writes convolutions and reductions of windows, without padded copies.

Along each dimension, the positions of a window form ranges in which the same part of
the window lies inside the (dilated, padded) operand. With padding 1 and a window of 3,
the first and the last position see two elements, and all others see three. Each
combination of ranges becomes one `linalg.generic` on views (index set splitting);
without padding there is only one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd

from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr

from ....dialects.tgraph.reducing import ConvolutionOp, ReduceWindowOp
from ....dialects.tgraph.windows import WindowDimension
from . import named
from .code import dot_type
from .memory import Stored
from .nests import GenericBody, Values
from .reducing import accumulated, combine, kept_in, multiply_add


@dataclass(frozen=True)
class WindowRange:
    """The places `first + j * step` of a window. At place j, the window's entry
    `window_first + k * window_step` reads the operand's element `source + j * stride +
    k * dilation`."""

    first: int
    step: int
    count: int
    window_first: int
    window_step: int
    window_count: int
    source: int
    stride: int
    dilation: int

    @property
    def reach(self) -> int:
        """The number of the operand's elements from the first one read to the last."""
        return (
            (self.count - 1) * self.stride + (self.window_count - 1) * self.dilation + 1
        )


@dataclass(frozen=True)
class OperandWindow:
    """A window along one dimension of an operand."""

    size: int  # of the operand
    places: int
    window: WindowDimension

    def ranges(self) -> Iterator[WindowRange]:
        base, dilation = self.window.base_dilation, self.window.window_dilation
        # Places this far apart read the operand with the same entries.
        step = base // gcd(self.window.stride, base)
        window_step = base // gcd(dilation, base)
        for phase in range(min(step, self.places)):
            group: list[tuple[int, int, int]] = []  # place, first entry, count
            for place in range(phase, self.places, step):
                entries = self._entries(place, window_step)
                if entries is None:
                    continue
                if group and group[-1][1:] != entries:
                    yield self._range(group, step, window_step)
                    group = []
                group.append((place, *entries))
            if group:
                yield self._range(group, step, window_step)

    def _entries(self, place: int, window_step: int) -> tuple[int, int] | None:
        """The first entry of the window inside the operand, and how many there are."""
        size, stride, low, _, base, dilation = self.window
        start = place * stride - low
        phases = range(min(window_step, size))
        first = next((w for w in phases if (start + w * dilation) % base == 0), None)
        if first is None:
            return None
        extent = (self.size - 1) * base  # the last element's position
        jump = window_step * dilation
        at = start + first * dilation
        skipped = max(0, -(at // jump)) if at < 0 else 0
        first += skipped * window_step
        at += skipped * jump
        if first >= size or at > extent:
            return None
        count = min((extent - at) // jump, (size - 1 - first) // window_step)
        return first, count + 1

    def _range(
        self, group: Sequence[tuple[int, int, int]], step: int, window_step: int
    ) -> WindowRange:
        place, first, count = group[0]
        _, stride, low, _, base, dilation = self.window
        return WindowRange(
            *(place, step, len(group)),
            *(first, window_step, count),
            (place * stride - low + first * dilation) // base,
            step * stride // base,
            window_step * dilation // base,
        )


def reduce_window(values: Values, op: ReduceWindowOp, target: Stored) -> None:
    if 0 in target.shape:
        return
    source, kind = values.store(op.inputs[0]), op.kind.data
    element = op.declared[0].element_type
    rank = len(target.shape)
    windows = list(map(OperandWindow, source.shape, target.shape, op.window(rank)))

    def add_up(total: Stored) -> None:
        for ranges in _combinations(windows):
            nest = GenericBody(
                values, [r.count for r in ranges] + [r.window_count for r in ranges]
            )
            seen = _seen(source, ranges, range(rank))
            exprs = tuple(
                nest.dims[d] * r.stride + nest.dims[rank + d] * r.dilation
                for d, r in enumerate(ranges)
            )
            new = nest.read(seen, exprs)
            nest.finish(
                _places(total, ranges, range(rank)),
                nest.dims[:rank],
                _combining(nest, kind, element, new),
                range(rank, 2 * rank),
            )

    accumulated(values, target, kind, kept_in(kind, element), add_up)


def _combining(
    nest: GenericBody, kind: str, element: Attribute, new: SSAValue
) -> Callable[[SSAValue], SSAValue]:
    return lambda old: combine(nest.code, kind, element, old, new)


def convolution(values: Values, op: ConvolutionOp, target: Stored) -> None:
    """The loops are over the result's dimensions but the last, then the summed
    dimensions, then the result's last dimension, along which elements are adjacent."""
    if 0 in target.shape:
        return
    element = op.declared[0].element_type
    image_labels, kernel_labels, result_labels = map(list, op.labels)
    image, kernel = map(values.store, op.inputs)
    spatial = op.spatial
    windows = [
        OperandWindow(
            image.shape[image_labels.index(label)],
            target.shape[result_labels.index(label)],
            dim,
        )
        for label, dim in zip(spatial, op.window(kernel.shape), strict=True)
    ]
    features = op.feature_group_count.value.data
    groups = max(features, op.batch_group_count.value.data)
    grouped = "f" if features > 1 else "b"
    image = _grouped(image, image_labels, grouped, groups)
    kernel = _grouped(kernel, kernel_labels, "o", groups)

    def add_up(total: Stored) -> None:
        total = _grouped(total, result_labels, "f", groups)
        for ranges in _combinations(windows):
            _convolve(ranges, total)

    def _convolve(ranges: Sequence[WindowRange], total: Stored) -> None:
        image_part, kernel_part, result_part = (
            part(stored, ranges, [labels.index(label) for label in spatial])
            for part, stored, labels in (
                (_seen, image, image_labels),
                (_entries, kernel, kernel_labels),
                (_places, total, result_labels),
            )
        )
        if (
            values.named
            and groups == 1
            and named.convolution(
                values,
                _ordered(image_part, image_labels, ["b", *spatial, "f"]),
                _ordered(kernel_part, kernel_labels, [*spatial, "i", "o"]),
                _ordered(result_part, result_labels, ["b", *spatial, "f"]),
                [r.stride for r in ranges],
                [r.dilation for r in ranges],
            )
        ):
            return
        by_label = dict(zip(spatial, ranges, strict=True))
        sizes = dict(zip(result_labels, total.shape, strict=True))
        sizes["i"] = kernel.shape[kernel_labels.index("i")]
        for label, r in by_label.items():
            sizes[label] = r.count
            sizes["w" + label] = r.window_count
        summed = [*("w" + label for label in spatial), "i"]
        order = [*result_labels[:-1], *summed, result_labels[-1]]
        nest = GenericBody(values, [sizes[label] for label in order])
        at: dict[str, AffineExpr] = dict(zip(order, nest.dims, strict=True))
        seen = {
            label: at[label] * r.stride + at["w" + label] * r.dilation
            for label, r in by_label.items()
        }
        seen |= {"b": at["b"], "f": at["i"]}
        entries = {label: at["w" + label] for label in spatial}
        entries |= {"i": at["i"], "o": at["f"]}
        if "g" in at:
            seen["g"] = entries["g"] = at["g"]
        factors = [
            nest.read(image_part, tuple(seen[label] for label in image_labels)),
            nest.read(kernel_part, tuple(entries[label] for label in kernel_labels)),
        ]
        nest.finish(
            result_part,
            tuple(at[label] for label in result_labels),
            lambda old: multiply_add(nest.code, op, old, factors),
            [d for d, label in enumerate(order) if label in summed],
        )

    accumulated(values, target, "add", dot_type(element), add_up)


def _grouped(stored: Stored, labels: list[str], label: str, groups: int) -> Stored:
    """Splits the groups, if there are several, off the dimension `label` as a dimension
    "g". Updates `labels`."""
    if groups == 1:
        return stored
    dim = labels.index(label)
    labels.insert(dim, "g")
    return stored.split(dim, groups)


def _ordered(stored: Stored, labels: Sequence[str], order: Sequence[str]) -> Stored:
    dims = [labels.index(label) for label in order]
    return stored.viewed(stored.layout.transposed(dims))


def _combinations(
    windows: Sequence[OperandWindow],
) -> Iterator[tuple[WindowRange, ...]]:
    return product(*(list(window.ranges()) for window in windows))


def _seen(source: Stored, ranges: Sequence[WindowRange], dims: Sequence[int]) -> Stored:
    """The part of the operand that the ranges read."""
    parts = [(r.source, 1, r.reach) for r in ranges]
    return source.part(dict(zip(dims, parts, strict=True)))


def _places(
    target: Stored, ranges: Sequence[WindowRange], dims: Sequence[int]
) -> Stored:
    parts = [(r.first, r.step, r.count) for r in ranges]
    return target.part(dict(zip(dims, parts, strict=True)))


def _entries(
    kernel: Stored, ranges: Sequence[WindowRange], dims: Sequence[int]
) -> Stored:
    parts = [(r.window_first, r.window_step, r.window_count) for r in ranges]
    return kernel.part(dict(zip(dims, parts, strict=True)))
