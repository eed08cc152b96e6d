"""Sums up the gradients of depthwise weights, if features are contiguous.

    out[k, l, f] = sum over b, y, x of image[b, y + k, x + l, f] * gradient[b, y, x, f]

is computed as

    for each vector of features f, and each row k of the window:
        for each row y of each image b for which row y + k is in the image:
            for each x:
                for each l for which x + l is in the image:
                    sums[l] += image[b, y + k, x + l, f] * gradient[b, y, x, f]
            totals += sums

Libraries have such a kernel only for small windows. For others, they copy all windows
of the images, and multiply matrices of a single row.
"""

from collections.abc import Sequence
from contextlib import ExitStack

from ....analysis.cost import FEATURE_PER_NS
from ....dialects.tgraph.reducing import ConvolutionOp
from ....dialects.tgraph.windows import WindowDimension
from ....support.arrays import Array
from ...calls import Call
from ...pool import Scratch
from ..contraction import Contraction, by_labels
from ..jit import llvm
from ..jit.records import ArrayRecord, parallel
from ..parts import LANES, cut
from .code import LlvmFunction, Value
from .elements import load, store
from .nests import VECTOR
from .planes import met
from .stencils import is_of_wide_weights

MOST = 16
"""The maximum elements of the window along a row: each has a vector of sums."""


def is_supported(op: Contraction, inputs: Sequence[Array], out: Array) -> bool:
    """Whether `calls_of` returns calls."""
    if not isinstance(op, ConvolutionOp) or not is_of_wide_weights(op, inputs):
        return False
    arrays = *inputs, out
    features = zip(arrays, op.labels, "bof", strict=True)
    return (
        {x.dtype.str[1:] for x in arrays} in ({"f4"}, {"f8"})
        and all(x.strides[own.index(f)] == out.itemsize for x, own, f in features)
        and all(holes == 1 for holes in op.lhs_dilation.get_values())
        and 0 not in (inputs[0].size, inputs[1].size, out.size)
        and out.shape[op.labels[2].index(op.spatial[-1])] <= MOST
    )


def calls_of(
    op: Contraction, inputs: Sequence[Array], out: Array, scratch: Scratch
) -> list[Call] | None:
    """The calls of such a convolution; None for other contractions."""
    if not is_supported(op, inputs, out):
        return None
    assert isinstance(op, ConvolutionOp)
    orders = "f" + op.spatial + "b", "i" + op.spatial + "o", "b" + op.spatial + "f"
    image, gradient, target = (
        by_labels(x, *how)
        for x, how in zip(
            (*inputs, out), zip(op.labels, orders, strict=True), strict=True
        )
    )
    arrays = image, gradient, target[0]
    window = op.window(inputs[1].shape)
    time = 2 * target.size * gradient[..., 0].size / FEATURE_PER_NS
    _, spans = cut(target.shape[-1:], [LANES], time, scratch.threads)

    def part(span: slice) -> list[Call]:
        parts = [x[..., span] for x in arrays]
        text = _Lowering(window, parts).text()
        return [(ArrayRecord(llvm.compiler().function(text), parts), ())]

    return parallel(list(map(part, spans)), scratch.threads)


class _Lowering:
    """The words are the addresses of the arrays: `image[b, ..., f]`,
    `gradient[b, ..., f]`, and `out[..., f]`. The window has the places of the
    gradient."""

    def __init__(self, window: Sequence[WindowDimension], arrays: Sequence[Array]):
        self._code = LlvmFunction()
        self._window = window
        image, gradient, out = arrays
        self._dtype = out.dtype
        self._images = len(image), image.strides[0], gradient.strides[0]
        self._sizes, self._taps = image.shape[1:-1], out.shape[:-1]
        self._features = out.shape[-1]
        self._steps = image.strides[1:-1], gradient.strides[1:-1], out.strides[:-1]

    def text(self) -> str:
        code, size = self._code, self._dtype.itemsize
        words = [code.word(n) for n in range(3)]

        def vector(first: str, active: int) -> None:
            image, gradient, out = code.all_moved(words, first, [size] * 3)
            self._rows([], image, gradient, out, lanes, active)

        lanes = min(VECTOR // size, 1 << (self._features - 1).bit_length())
        whole = self._features // lanes * lanes
        if whole:
            with code.loop("0", str(whole), lanes) as first:
                vector(first, lanes)
        if whole < self._features:
            vector(str(whole), self._features - whole)
        return code.function()

    def _rows(
        self,
        starts: Sequence[str],
        image: str,
        gradient: str,
        out: str,
        lanes: int,
        active: int,
    ) -> None:
        """The rows of the window at the elements of the dimensions before the last.
        `starts` has the first element of the image that each of them meets."""
        code, d = self._code, len(starts)
        if d == len(self._taps) - 1:
            self._row(starts, image, gradient, out, lanes, active)
            return
        dim = self._window[d]
        with code.loop("0", str(self._taps[d]), 1) as tap:
            at = code.index("mul", tap, dim.stride)
            start = code.index("sub", at, dim.low)
            target = code.moved(out, tap, self._steps[2][d])
            self._rows([*starts, start], image, gradient, target, lanes, active)

    def _row(
        self,
        starts: Sequence[str],
        image: str,
        gradient: str,
        out: str,
        lanes: int,
        active: int,
    ) -> None:
        code, dtype, size = self._code, self._dtype, self._dtype.itemsize
        element = "float" if size == 4 else "double"
        zero = code.widened(code.number(0.0, element), lanes)
        taps = range(self._taps[-1])
        totals, sums = ([code.slot(zero) for _ in taps] for _ in range(2))
        for total in totals:
            code.set(total, zero)
        count, *steps = self._images
        with ExitStack() as stack:
            index = stack.enter_context(code.loop("0", str(count), 1))
            image, gradient = code.all_moved([image, gradient], index, steps)
            for d, start in enumerate(starts):
                dim = self._window[d]
                bounds = met(code, dim, self._sizes[d], self._taps[d], start)
                first, stop = (Value(code, x, "i64", 1) for x in bounds)
                stack.enter_context(code.when(first.compare("slt", stop)))
                place = stack.enter_context(code.loop(*bounds, 1))
                apart = code.index("mul", place, dim.window_dilation)
                row = code.index("add", start, apart)
                image = code.moved(image, row, self._steps[0][d])
                gradient = code.moved(gradient, place, self._steps[1][d])
            for slot in sums:
                code.set(slot, zero)
            self._along(image, gradient, sums, lanes, active)
            for total, slot in zip(totals, sums, strict=True):
                both = (code.get(x, element, lanes) for x in (total, slot))
                code.set(total, sum(both, start=zero))
        for tap, total in zip(taps, totals, strict=True):
            target = code.moved(out, str(tap), self._steps[2][-1])
            store(code.get(total, element, lanes), target, size, dtype, lanes, active)

    def _along(
        self, image: str, gradient: str, sums: Sequence[str], lanes: int, active: int
    ) -> None:
        """Adds the products of a row to the sums: in a loop, at the places where all
        elements of the window are in the image."""
        code, dtype, size = self._code, self._dtype, self._dtype.itemsize
        dim, width = self._window[-1], self._sizes[-1]
        element = "float" if size == 4 else "double"

        def at(place: str, taps: Sequence[tuple[int, str]]) -> None:
            """`taps` are sums, each with the distance of its element from `image`."""
            where = code.moved(gradient, place, self._steps[1][-1])
            factor = load(code, where, size, dtype, lanes, active)
            here = code.moved(image, place, dim.window_dilation * self._steps[0][-1])
            for distance, slot in taps:
                pointer = code.moved(here, str(distance), self._steps[0][-1])
                x = load(code, pointer, size, dtype, lanes, active)
                code.set(slot, code.fma(x, factor, code.get(slot, element, lanes)))

        taps = [(n * dim.stride - dim.low, slot) for n, slot in enumerate(sums)]
        last = taps[-1][0]
        start = min(max(-(-dim.low // dim.window_dilation), 0), dim.size)
        stop = min((width - 1 - last) // dim.window_dilation + 1, dim.size)
        for place in range(dim.size):
            if start <= place < stop:
                if place == start:
                    with code.loop(str(start), str(stop), 1) as index:
                        at(index, taps)
                continue
            first = place * dim.window_dilation
            inside = [tap for tap in taps if 0 <= first + tap[0] < width]
            if inside:
                at(str(place), inside)
