"""Writes convolutions and reductions of windows, without padded copies.

Along each dimension, the positions of a window form ranges in which the same part of
the window lies inside the (dilated, padded) operand. With padding 1 and a window of 3,
the first and the last position see two elements, and all others see three. Each
combination of ranges becomes one `linalg.generic` on views (index set splitting);
without padding there is only one.

In a cumulative sum, each position would be a range of its own. It becomes an `scf.for`
that carries the sum from one element to the next.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr

from ....dialects.tgraph.elements import identity
from ....dialects.tgraph.reducing import ConvolutionOp, ReduceWindowOp
from ....dialects.tgraph.windows import WindowDimension
from . import named
from .code import MlirCode, dot_type, index
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
    if scan := op.scan(source.shape):
        _scan(values, op, source, target, *scan)
        return
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


def _scan(
    values: Values,
    op: ReduceWindowOp,
    source: Stored,
    target: Stored,
    axis: int,
    order: int,
) -> None:
    """Combines each element along `axis` with those before it, or after it if `order`
    is -1."""
    kind, element = op.kind.data, op.declared[0].element_type
    wide, last = kept_in(kind, element), target.shape[axis] - 1
    read, written = values.memref_of(source), values.memory.memref_of(target)

    def along(code: MlirCode, place: Sequence[SSAValue]) -> None:
        def step(
            inner: MlirCode, i: SSAValue, carried: Sequence[SSAValue]
        ) -> Sequence[SSAValue]:
            if order < 0:
                i = inner.add(arith.SubiOp(inner.constant(last, index), i))
            at = [*place[:axis], i, *place[axis:]]
            total = combine(inner, kind, element, carried[0], inner.load(read, at))
            inner.store(inner.convert(total, wide, element), written, at)
            return [total]

        code.loop(last + 1, step, [code.constant(identity(kind, element), wide)])

    values.code.loops([*target.shape[:axis], *target.shape[axis + 1 :]], along)


def _combining(
    nest: GenericBody, kind: str, element: Attribute, new: SSAValue
) -> Callable[[SSAValue], SSAValue]:
    return lambda old: combine(nest.code, kind, element, old, new)


@dataclass(frozen=True)
class _Labeled:
    """An operand or the result of a convolution, with a label for each dimension."""

    stored: Stored
    labels: Sequence[str]

    def size(self, label: str) -> int:
        return self.stored.shape[self.labels.index(label)]

    def grouped(self, label: str, groups: int) -> "_Labeled":
        """Splits the groups, if there are several, off the dimension `label` as a
        dimension "g"."""
        if groups == 1:
            return self
        dim = self.labels.index(label)
        labels = [*self.labels[:dim], "g", *self.labels[dim:]]
        return _Labeled(self.stored.split(dim, groups), labels)

    def ordered(self, order: Sequence[str]) -> Stored:
        dims = [self.labels.index(label) for label in order]
        return self.stored.viewed(self.stored.layout.transposed(dims))

    def part(self, of: "_Part", ranges: Mapping[str, WindowRange]) -> "_Labeled":
        """The part that `of` selects along the labels of `ranges`."""
        dims = [self.labels.index(label) for label in ranges]
        return _Labeled(of(self.stored, list(ranges.values()), dims), self.labels)


def convolution(values: Values, op: ConvolutionOp, target: Stored) -> None:
    if 0 in target.shape:
        return
    image, kernel, result = map(
        _Labeled, (*map(values.store, op.inputs), target), op.labels
    )
    windows = [
        OperandWindow(image.size(label), result.size(label), dim)
        for label, dim in zip(op.spatial, op.window(kernel.stored.shape), strict=True)
    ]
    grouped = "f" if op.feature_group_count.value.data > 1 else "b"
    image = image.grouped(grouped, op.groups)
    kernel = kernel.grouped("o", op.groups)

    def add_up(total: Stored) -> None:
        sums = _Labeled(total, result.labels).grouped("f", op.groups)
        for ranges in _combinations(windows):
            along = dict(zip(op.spatial, ranges, strict=True))
            _add_products(values, op, image, kernel, sums, along)

    element = op.declared[0].element_type
    accumulated(values, target, "add", dot_type(element), add_up)


def _add_products(
    values: Values,
    op: ConvolutionOp,
    image: _Labeled,
    kernel: _Labeled,
    sums: _Labeled,
    ranges: Mapping[str, WindowRange],
) -> None:
    """Adds the products of these ranges of the window to `sums`.

    The loops are over the result's dimensions but the last, then the summed dimensions,
    then the result's last dimension, along which elements are adjacent."""
    spatial = list(ranges)
    image_part, result_part = image.part(_seen, ranges), sums.part(_places, ranges)
    kernel_part = kernel.part(_entries, ranges)
    if values.named and op.groups == 1:
        written = named.convolution(
            values,
            image_part.ordered(["b", *spatial, "f"]),
            kernel_part.ordered([*spatial, "i", "o"]),
            result_part.ordered(["b", *spatial, "f"]),
            [r.stride for r in ranges.values()],
            [r.dilation for r in ranges.values()],
        )
        if written:
            return
    sizes = {label: sums.size(label) for label in sums.labels}
    sizes |= {label: r.count for label, r in ranges.items()}
    window = {label: "w" + label for label in spatial}
    sizes |= {window[label]: r.window_count for label, r in ranges.items()}
    sizes["i"] = kernel.size("i")
    summed = [*window.values(), "i"]
    order = [*sums.labels[:-1], *summed, sums.labels[-1]]
    nest = GenericBody(values, [sizes[label] for label in order])
    at: dict[str, AffineExpr] = dict(zip(order, nest.dims, strict=True))
    seen = {
        label: at[label] * r.stride + at[window[label]] * r.dilation
        for label, r in ranges.items()
    }
    seen |= {"b": at["b"], "f": at["i"]}
    entries = {label: at[window[label]] for label in spatial}
    entries |= {"i": at["i"], "o": at["f"]}
    if "g" in at:
        seen["g"] = entries["g"] = at["g"]
    factors = [
        nest.read(part.stored, tuple(exprs[label] for label in part.labels))
        for part, exprs in ((image_part, seen), (kernel_part, entries))
    ]
    nest.finish(
        result_part.stored,
        tuple(at[label] for label in sums.labels),
        lambda old: multiply_add(nest.code, op, old, factors),
        [d for d, label in enumerate(order) if label in summed],
    )


def _combinations(
    windows: Sequence[OperandWindow],
) -> Iterator[tuple[WindowRange, ...]]:
    return product(*(list(window.ranges()) for window in windows))


_Part: TypeAlias = Callable[[Stored, Sequence[WindowRange], Sequence[int]], Stored]
"""Selects a part of an array along some dimensions, each with a range of the window."""


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
