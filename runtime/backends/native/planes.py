"""Computes convolutions in groups where they lie, if rows of the images are contiguous.

    out[b, f, y, x] = sum over i, k, l of image[b, i, y + k, x + l] * kernel[f, i, k, l]

is computed as

    for each plane [b, f], and each row y of it:
        for 4 vectors of x at a time:
            for each i of the group, and each k for which row y + k is in the image:
                for each l:
                    4 vectors of sums += 4 vectors of image[b, i, y + k, x + l] * kernel

Libraries compute such convolutions with the features innermost: they copy the images to
that layout, and the result back. Here, nothing is copied. Lanes that meet the padding
are not loaded.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import product
from typing import NamedTuple

from ....analysis.cost import FEATURE_PER_NS, FEW_FEATURES
from ....dialects.tgraph.reducing import ConvolutionOp
from ....dialects.tgraph.windows import WindowDimension
from ....support.arrays import Array, strided
from ...calls import Call
from ...pool import Scratch
from ..contraction import Contraction, by_labels
from ..jit import llvm
from ..jit.records import ArrayRecord, parallel
from ..numpy.convolution import without_holes
from ..parts import cut
from .code import LlvmFunction, Value
from .elements import CLOSE, load, load_lanes, store
from .nests import VECTOR, merged

MOST = 16
"""The maximum elements of the window along a row: each has its own instructions."""

VECTORS = 4
"""The vectors of sums that are computed together, to hide latencies."""


def is_supported(op: Contraction, inputs: Sequence[Array], out: Array) -> bool:
    """Whether `calls_of` returns calls."""
    if not isinstance(op, ConvolutionOp) or op.feature_group_count.value.data == 1:
        return False
    image, kernel = inputs
    size, last = out.itemsize, op.spatial[-1:]
    steps = {
        image.strides[op.labels[0].index(last)],
        out.strides[op.labels[2].index(last)],
    }
    return (
        {x.dtype.str[1:] for x in (*inputs, out)} in ({"f4"}, {"f8"})
        and op.batch_group_count.value.data == 1
        and kernel.shape[op.labels[1].index("i")] <= FEW_FEATURES
        and steps == {size}
        and 0 not in (image.size, kernel.size, out.size)
        and all(map(_is_supported, _parts(op, inputs, out)))
    )


def calls_of(
    op: Contraction, inputs: Sequence[Array], out: Array, scratch: Scratch
) -> list[Call] | None:
    """The calls of such a convolution; None for other contractions."""
    if not is_supported(op, inputs, out):
        return None
    assert isinstance(op, ConvolutionOp)
    parts = list(_parts(op, inputs, out))
    time = 2 * out.size * parts[0].kernel[0, 0].size / FEATURE_PER_NS
    d, spans = cut(parts[0].out.shape[:2], [1, 1], time, scratch.threads)

    def calls(part: _Part, span: slice) -> Call:
        block = (*[slice(None)] * d, span)
        arrays = [x if x.shape[d] == 1 else x[block] for x in part.arrays]
        text = _Lowering(part.window, arrays).text()
        return ArrayRecord(llvm.compiler().function(text), arrays), ()

    made = [[calls(part, span) for part in parts] for span in spans]
    return parallel(made, scratch.threads)


class _Part(NamedTuple):
    """A convolution without holes."""

    window: Sequence[WindowDimension]
    image: Array
    """`[b, group, i, ...]`"""
    kernel: Array
    """`[1, group, f, i, ...]`"""
    out: Array
    """`[b, group, f, ...]`"""

    @property
    def arrays(self) -> Sequence[Array]:
        return self.image, self.kernel, self.out


def _parts(op: ConvolutionOp, inputs: Sequence[Array], out: Array) -> Iterator[_Part]:
    """The convolutions that compute `op`: several for an image with holes."""
    groups = op.feature_group_count.value.data
    labels = zip(op.labels, ("bf", "oi", "bf"), strict=True)
    image, kernel, out = (
        by_labels(x, own, order + op.spatial)
        for x, (own, order) in zip((*inputs, out), labels, strict=True)
    )
    dims = map(without_holes, op.window(inputs[1].shape), out.shape[2:])
    for spatial in product(*dims):
        places = (slice(None), slice(None), *(dim.places for dim in spatial))
        seen = kernel[:, :, *(dim.window for dim in spatial)]
        window = [
            WindowDimension(size, dim.stride, -dim.base, 0, 1, dim.dilation)
            for size, dim in zip(seen.shape[2:], spatial, strict=True)
        ]
        grouped = _grouped(seen, 0, groups)[None]
        yield _Part(
            window,
            _grouped(image, 1, groups),
            grouped,
            _grouped(out[places], 1, groups),
        )


def _grouped(x: Array, dim: int, groups: int) -> Array:
    """A view of `x` with a dimension of groups before dimension `dim`."""
    shape = *x.shape[:dim], groups, x.shape[dim] // groups, *x.shape[dim + 1 :]
    step = x.strides[dim]
    steps = *x.strides[:dim], step * shape[dim + 1], *x.strides[dim:]
    return strided(x, shape, steps)


def _is_supported(part: _Part) -> bool:
    """Whether each place meets an element, and rows have instructions."""
    window, sizes, places = part.window, part.image.shape[3:], part.out.shape[3:]
    return (
        window[-1].size <= MOST
        and window[-1].stride in CLOSE
        and all(map(_is_met, window, sizes, places))
    )


def _is_met(window: WindowDimension, size: int, places: int) -> bool:
    """Whether each place of the window meets an element."""
    return all(
        any(0 <= start + k * window.window_dilation < size for k in range(window.size))
        for start in range(-window.low, places * window.stride - window.low)[
            :: window.stride
        ]
    )


class _Lowering:
    """The words are the addresses of the arrays of a `_Part`."""

    def __init__(self, window: Sequence[WindowDimension], arrays: Sequence[Array]):
        self._code = LlvmFunction()
        self._window = window
        image, kernel, out = arrays
        self._dtype = out.dtype
        self._sizes, self._places = image.shape[3:], out.shape[3:]
        columns = [
            (image.strides[0], 0, out.strides[0]),
            (image.strides[1], kernel.strides[1], out.strides[1]),
            (0, kernel.strides[2], out.strides[2]),
        ]
        self._planes = merged(out.shape[:3], range(3), columns)
        self._seen = image.shape[2], image.strides[2], kernel.strides[3]
        self._steps = image.strides[3:], kernel.strides[4:], out.strides[3:]

    def text(self) -> str:
        words = [self._code.word(n) for n in range(3)]
        with self._code.nest(self._planes, words) as (image, kernel, out):
            self._rows([], image, kernel, out)
        return self._code.function()

    def _rows(self, starts: Sequence[str], image: str, kernel: str, out: str) -> None:
        """The rows at the places of the dimensions before the last. `starts` has the
        first element of the window along each of them."""
        code, d = self._code, len(starts)
        if d == len(self._places) - 1:
            self._row(starts, image, kernel, out)
            return
        dim = self._window[d]
        with code.loop("0", str(self._places[d]), 1) as place:
            at = code.index("mul", place, dim.stride)
            start = code.index("sub", at, dim.low)
            target = code.moved(out, place, self._steps[2][d])
            self._rows([*starts, start], image, kernel, target)

    def _row(self, starts: Sequence[str], image: str, kernel: str, out: str) -> None:
        """The vectors of a row: in a loop if no lane meets the padding."""
        code, dim = self._code, self._window[-1]
        count, size = self._places[-1], self._dtype.itemsize
        lanes = min(VECTOR // size, 1 << (count - 1).bit_length())
        first = -(-dim.low // dim.stride)  # the places whose windows are in the image
        last = (self._sizes[-1] - dim.reach + dim.low) // dim.stride
        together = VECTORS * lanes

        def at(place: str, vectors: Sequence[int]) -> None:
            self._vectors(starts, image, kernel, out, place, vectors, lanes)

        start = -(-max(first, 0) // lanes) * lanes
        blocks = max(min(last + 1, count) - start, 0) // together
        if blocks < 2:
            for place in range(0, count, together):
                at("0", range(place, min(place + together, count), lanes))
            return
        stop = start + blocks * together
        if start:
            at("0", range(0, start, lanes))
        with code.loop(str(start), str(stop), together) as place:
            at(place, range(0, together, lanes))
        for rest in range(stop, count, together):
            at("0", range(rest, min(rest + together, count), lanes))

    def _vectors(
        self,
        starts: Sequence[str],
        image: str,
        kernel: str,
        out: str,
        place: str,
        vectors: Sequence[int],
        lanes: int,
    ) -> None:
        """Sums for the vectors that start at `place` plus each of `vectors`. If `place`
        is a variable, all their lanes are in the image."""
        code, dtype, last = self._code, self._dtype, self._window[-1]
        size, (step, right, along) = dtype.itemsize, [x[-1] for x in self._steps]
        element = "float" if size == 4 else "double"
        zero = code.widened(code.number(0.0, element), lanes)
        sums = [code.slot(zero) for _ in vectors]
        for total in sums:
            code.set(total, zero)
        image = code.moved(image, place, last.stride * step)
        with ExitStack() as stack:
            seen, *steps = self._seen
            if seen > 1:
                index = stack.enter_context(code.loop("0", str(seen), 1))
                image, kernel = code.all_moved([image, kernel], index, steps)
            for d, start in enumerate(starts):
                dim = self._window[d]
                bounds = met(code, dim, self._sizes[d], self._places[d], start)
                index = stack.enter_context(code.loop(*bounds, 1))
                apart = code.index("mul", index, dim.window_dilation)
                element_at = code.index("add", start, apart)
                image = code.moved(image, element_at, self._steps[0][d])
                kernel = code.moved(kernel, index, self._steps[1][d])
            for k in range(last.size):
                factor = load(code, code.moved(kernel, str(k), right), 0, dtype, 1, 1)
                wide = code.widened(factor, lanes)
                for total, vector in zip(sums, vectors, strict=True):
                    first = vector * last.stride + k * last.window_dilation - last.low
                    wanted = range(lanes)
                    if place == "0":
                        wanted = self._inside(first, vector, lanes)
                    if not wanted:
                        continue
                    pointer = code.moved(image, str(first), step)
                    row = load_lanes(
                        code, pointer, last.stride * size, dtype, lanes, wanted
                    )
                    before = code.get(total, element, lanes)
                    code.set(total, code.fma(row, wide, before))
        for total, vector in zip(sums, vectors, strict=True):
            is_known = place == "0"
            active = min(lanes, self._places[-1] - vector) if is_known else lanes
            target = code.moved(code.moved(out, place, along), str(vector), along)
            result = code.get(total, element, lanes)
            store(result, target, along, dtype, lanes, active)

    def _inside(self, first: int, vector: int, lanes: int) -> range:
        """The lanes of places in the row that meet an element of the image, of which
        lane 0 meets element `first`."""
        stride = self._window[-1].stride
        begin = max(0, -(first // stride))
        end = -((first - self._sizes[-1]) // stride)
        return range(begin, max(begin, min(end, lanes, self._places[-1] - vector)))


def met(
    code: LlvmFunction, dim: WindowDimension, size: int, places: int, start: str
) -> tuple[str, str]:
    """The elements of the window along a dimension of `size` elements that are in the
    image, if the first one meets element `start`: the first, and the end."""
    reach = (places - 1) * dim.stride - dim.low + dim.reach
    if dim.low <= 0 and reach <= size:
        return "0", str(dim.size)
    at, apart = Value(code, start, "i64", 1), dim.window_dilation
    before, after = (
        code.binary("udiv", x.call("smax", 0) + (apart - 1), apart)
        for x in (-at, -at + size)
    )
    return before.text, after.call("smin", dim.size).text
