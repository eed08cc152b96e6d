"""Sums up the gradients of depthwise weights where images and gradients lie.

    out[k, l, f] = sum over b, y, x of image[b, y + k, x + l, f] * gradient[b, y, x, f]

is computed, if features are contiguous, as

    for each image b:
        for each vector of features f, and each row k of the window:
            for each row y for which row y + k is in the image:
                for each x:
                    for each l for which x + l is in the image:
                        sums[l] += image[b, y + k, x + l, f] * gradient[b, y, x, f]
                totals += sums
            out[k, :, f] += totals

so that an image stays in a cache. If rows of the images are contiguous, a vector has
places x of one feature instead, images are the loop around rows y, and the lanes of the
totals are added up in the end. Gradients with other rows are copied before.

Libraries have such a kernel only for small windows, larger images, and contiguous
features. For others, they copy all windows of the images, and multiply matrices of a
single row; or they copy images to another layout.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
)
from itertools import chain
from typing import ClassVar

import numpy as np

from ....analysis.cost import FEATURE_PER_NS
from ....dialects.tgraph.reducing import ConvolutionOp
from ....dialects.tgraph.windows import WindowDimension
from ....support.arrays import Array
from ...calls import Call
from ...pool import Scratch
from ..arrays import copy
from ..contraction import Contraction, by_labels
from ..jit import llvm
from ..jit.records import ArrayRecord, parallel
from ..parts import LANES, cut
from .code import LlvmFunction, Value
from .elements import CLOSE, load, load_lanes, store
from .nests import VECTOR
from .planes import met

MOST = 16
"""The maximum elements of the window along a row: each has a vector of sums."""

SUMS = 12
"""The sums to which a loop adds places of a row in turn, so that additions need not
wait for one another."""

LONGEST = 16
"""The maximum vectors of a row, each of which has its own instructions."""


def is_supported(op: Contraction, inputs: Sequence[Array], out: Array) -> bool:
    """Whether `calls_of` returns calls."""
    return _form(op, inputs, out) is not None


def _form(
    op: Contraction, inputs: Sequence[Array], out: Array
) -> "type[_Lowering] | None":
    """The loops for such a convolution; None for other contractions."""
    if not isinstance(op, ConvolutionOp) or not _is_of_weights(op, inputs):
        return None
    arrays, last = (*inputs, out), op.spatial[-1]
    elements = {x.dtype.str[1:] for x in arrays}
    if elements not in ({"f4"}, {"f8"}) or 0 in (x.size for x in arrays):
        return None
    if any(holes > 1 for holes in op.lhs_dilation.get_values()):
        return None
    if out.shape[op.labels[2].index(last)] > MOST:
        return None

    def are_beside(*labels: str) -> bool:
        found = zip(arrays, op.labels, labels, strict=False)
        return all(x.strides[own.index(of)] == x.itemsize for x, own, of in found)

    if are_beside(*"bof"):
        return _Features
    places = inputs[1].shape[op.labels[1].index(last)]
    is_close = op.rhs_dilation.get_values()[-1] in CLOSE
    is_short = places * out.itemsize <= LONGEST * VECTOR
    return _Places if are_beside(last) and is_close and is_short else None


def _is_of_weights(op: ConvolutionOp, inputs: Sequence[Array]) -> bool:
    """Whether `op` is the gradient of the weights of a depthwise convolution."""
    image, kernel = inputs
    groups = op.batch_group_count.value.data
    return (
        groups > 1
        and op.groups == groups == kernel.shape[op.labels[1].index("o")]
        and image.shape[op.labels[0].index("b")] == groups
        and len(op.spatial) > 0
    )


def calls_of(
    op: Contraction, inputs: Sequence[Array], out: Array, scratch: Scratch
) -> list[Call] | None:
    """The calls of such a convolution; None for other contractions."""
    form = _form(op, inputs, out)
    if form is None:
        return None
    assert isinstance(op, ConvolutionOp)
    orders = "f" + op.spatial + "b", "i" + op.spatial + "o", "b" + op.spatial + "f"
    image, gradient, target = (
        by_labels(x, *how)
        for x, how in zip(
            (*inputs, out), zip(op.labels, orders, strict=True), strict=True
        )
    )
    before: list[Call] = []
    if form is _Places and gradient.strides[-2] != gradient.itemsize:
        *shape, features = gradient.shape
        buffer = scratch.take((shape[0], features, *shape[1:]), gradient.dtype)
        rows = np.moveaxis(buffer, 1, -1)
        gradient, before = rows, copy(rows, gradient)
    arrays = image, gradient, target[0]
    window = op.window(inputs[1].shape)
    time = 2 * target.size * gradient[..., 0].size / FEATURE_PER_NS
    _, spans = cut(target.shape[-1:], [form.UNIT], time, scratch.threads)

    def part(span: slice) -> list[Call]:
        parts = [x[..., span] for x in arrays]
        text = form(window, parts).text()
        return [(ArrayRecord(llvm.compiler().function(text), parts), ())]

    return [*before, *parallel(list(map(part, spans)), scratch.threads)]


class _Lowering(ABC):
    """The words are the addresses of the arrays: `image[b, ..., f]`,
    `gradient[b, ..., f]`, and `out[..., f]`. The window has the places of the
    gradient."""

    UNIT: ClassVar = 1
    """Threads compute multiples of this number of features."""

    def __init__(self, window: Sequence[WindowDimension], arrays: Sequence[Array]):
        self._code = LlvmFunction()
        self._window = window
        image, gradient, out = arrays
        self._dtype = out.dtype
        self._element = "float" if out.dtype.itemsize == 4 else "double"
        self._images = len(image), image.strides[0], gradient.strides[0]
        self._sizes, self._taps = image.shape[1:-1], out.shape[:-1]
        self._features = out.shape[-1]
        self._steps = image.strides[1:-1], gradient.strides[1:-1], out.strides[:-1]
        self._of_features = [x.strides[-1] for x in arrays]

    @abstractmethod
    def text(self) -> str: ...

    @abstractmethod
    def _along(
        self, image: str, gradient: str, sums: Sequence[str], lanes: int, active: int
    ) -> None:
        """Adds the products of a row to the sums."""

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
        """A row of the window. `starts` are those of `_rows`."""
        code = self._code
        zero = code.widened(code.number(0.0, self._element), lanes)
        totals = [code.slot(zero) for _ in range(self._taps[-1])]
        for total in totals:
            code.set(total, zero)
        with self._each_image([image, gradient]) as (image, gradient):
            self._add(totals, zero, starts, image, gradient, lanes, active)
        for tap, total in enumerate(totals):
            target = code.moved(out, str(tap), self._steps[2][-1])
            self._put(code.get(total, self._element, lanes), target, lanes, active)

    @abstractmethod
    def _each_image(
        self, words: Sequence[str]
    ) -> AbstractContextManager[Sequence[str]]:
        """Around the code for each image whose products a row's totals have. Moves
        `words`, the addresses of the image and the gradient."""

    @abstractmethod
    def _put(self, value: Value, target: str, lanes: int, active: int) -> None:
        """Writes the total for an element of the window."""

    def _add(
        self,
        totals: Sequence[str],
        zero: Value,
        starts: Sequence[str],
        image: str,
        gradient: str,
        lanes: int,
        active: int,
    ) -> None:
        """Adds the products of the rows of an image to the totals."""
        code = self._code
        sums = [code.slot(zero) for _ in totals]
        with ExitStack() as stack:
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
                both = (code.get(x, self._element, lanes) for x in (total, slot))
                code.set(total, sum(both, start=zero))


class _Features(_Lowering):
    """Vectors have features."""

    UNIT = LANES

    def text(self) -> str:
        code = self._code
        *words, target = (code.word(n) for n in range(3))
        count, *steps = self._images
        self._is_first = True
        self._vectors([*words, target])
        self._is_first = False
        if count > 1:
            with code.loop("1", str(count), 1) as index:
                self._vectors([*code.all_moved(words, index, steps), target])
        return code.function()

    def _vectors(self, words: Sequence[str]) -> None:
        """Adds the products of an image to the result."""
        code, size = self._code, self._dtype.itemsize

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

    def _each_image(
        self, words: Sequence[str]
    ) -> AbstractContextManager[Sequence[str]]:
        return nullcontext(words)  # `text` has the loop

    def _put(self, value: Value, target: str, lanes: int, active: int) -> None:
        code, size, dtype = self._code, self._dtype.itemsize, self._dtype
        if not self._is_first:
            value = load(code, target, size, dtype, lanes, active) + value
        store(value, target, size, dtype, lanes, active)

    def _along(
        self, image: str, gradient: str, sums: Sequence[str], lanes: int, active: int
    ) -> None:
        """Adds the products of a row to the sums: in a loop, at the places where all
        elements of the window are in the image."""
        code, dtype, size = self._code, self._dtype, self._dtype.itemsize
        dim, width, element = self._window[-1], self._sizes[-1], self._element

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
        stop = max(min((width - 1 - last) // dim.window_dilation + 1, dim.size), start)
        apart = min(max(SUMS // len(sums), 1), stop - start)
        end = stop - (stop - start) % max(apart, 1)
        if start < end:
            zero = code.widened(code.number(0.0, element), lanes)
            others = [[code.slot(zero) for _ in sums] for _ in range(apart - 1)]
            for slot in chain(*others):
                code.set(slot, zero)
            with code.loop(str(start), str(end), apart) as index:
                at(index, taps)
                for n, slots in enumerate(others, start=1):
                    reach = (distance for distance, _ in taps)
                    at(
                        code.index("add", index, n),
                        list(zip(reach, slots, strict=True)),
                    )
            for slot, *rest in zip(sums, *others, strict=True):
                values = (code.get(x, element, lanes) for x in (slot, *rest))
                code.set(slot, sum(values, start=zero))
        for place in (*range(start), *range(end, dim.size)):
            first = place * dim.window_dilation
            inside = [tap for tap in taps if 0 <= first + tap[0] < width]
            if inside:
                at(str(place), inside)


class _Places(_Lowering):
    """Vectors have places of a row."""

    def text(self) -> str:
        code, places = self._code, self._window[-1].size
        words = [code.word(n) for n in range(3)]
        lanes = min(VECTOR // self._dtype.itemsize, 1 << (places - 1).bit_length())
        with code.loop("0", str(self._features), 1) as feature:
            image, gradient, out = code.all_moved(words, feature, self._of_features)
            self._rows([], image, gradient, out, lanes, lanes)
        return code.function()

    def _along(
        self, image: str, gradient: str, sums: Sequence[str], lanes: int, active: int
    ) -> None:
        code, dtype, size = self._code, self._dtype, self._dtype.itemsize
        dim, width, element = self._window[-1], self._sizes[-1], self._element
        apart = dim.window_dilation
        for place in range(0, dim.size, lanes):
            count = min(lanes, dim.size - place)
            where = code.moved(gradient, str(place), size)
            factor = code.widened(load(code, where, size, dtype, lanes, count), lanes)
            for tap, slot in enumerate(sums):
                first = tap * dim.stride - dim.low + place * apart
                start = max(0, -(first // apart))
                stop = max(start, min(count, -((first - width) // apart)))
                if start == stop:
                    continue
                pointer, wanted = (
                    code.moved(image, str(first), size),
                    range(start, stop),
                )
                x = load_lanes(code, pointer, apart * size, dtype, lanes, wanted)
                code.set(slot, code.fma(x, factor, code.get(slot, element, lanes)))

    @contextmanager
    def _each_image(self, words: Sequence[str]) -> Generator[Sequence[str]]:
        count, *steps = self._images
        with self._code.loop("0", str(count), 1) as index:
            yield self._code.all_moved(words, index, steps)

    def _put(self, value: Value, target: str, lanes: int, active: int) -> None:
        """Adds up the lanes of a total, and writes the sum."""
        while lanes > 1:
            lanes //= 2
            halves = (self._code.part(value, at, lanes) for at in (0, lanes))
            value = next(halves) + next(halves)
        store(value, target, 0, self._dtype, 1, 1)
