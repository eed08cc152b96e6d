"""Products and convolutions of 8-bit integers, and the loop over their result.

The kernel may have 16 bits, for integers minus their zero point.

    out[g, b, t, o] = sum over k, i of image[g, b, t * stride + k * dilation - low, i]
                                       * kernel[g, k, i, o]

All arrays are seen in this form; a matrix product has no spatial dimensions. Two or
four elements that are consecutive in the sum are packed into one lane, for both
operands (see dot_products.py):

    i, i + 1, ...   in the image in memory order; the lanes are o
    k, k + 1        if each group has few features, as in depthwise convolutions;
                    the lanes are the groups, and the image has a pair for each of its
                    elements

The kernel is packed into panels, once if no run changes it. The result is computed in
tiles. The workspace holds the part of the image that a tile reads, with zeros outside
the image, and the tile's sums, which the loop reads from the cache. Lanes of four
elements are read in place from an image without gaps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import gcd, prod
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, IntegerType, Signedness, TensorType
from xdsl.ir import Block, SSAValue

from ....dialects.dtypes import Array, DType, numpy_dtype
from ....dialects.tgraph.base import (
    AnyTensor,
    Shape,
    TensorOp,
    tensor_type_of,
    with_element,
)
from ....dialects.tgraph.elementwise import ConvertOp, OrOp, ShiftLeftOp
from ....dialects.tgraph.reducing import ConvolutionOp, DotGeneralOp
from ....dialects.tgraph.shaping import ConstantOp
from ....support.arrays import name_of, strided
from ...allocators.host import aligned_bytes
from ...calls import Call
from ...pool import ALIGNMENT, Scratch
from ..arrays import tiles, try_reshape
from ..contraction import Contraction, Loop, by_labels
from ..jit.records import parallel
from ..matrix_views import matrices
from ..parts import Slices, divisions
from .dot_products import adds_four, dot_products, lanes, panel
from .functions import Nests, nested
from .graphs import ElementGraph, ElementNode, by_result

LARGEST = 1 << 12
"""The elements of a tile's sums (16 KiB), or of the image that it reads."""

FEWEST = 64
"""The minimum positions of a tile, as each tile reads the whole kernel."""

LINE = 64
"""Features that fit in a cache line; a multiple of those in a panel."""

_NARROW = ("int8", "uint8")
_INT16, _INT32 = np.dtype(np.int16), np.dtype(np.int32)

Formula: TypeAlias = Callable[..., Sequence[TensorOp]]
"""`(element, *values) -> ops`; the last one defines a result of type `element`."""


@dataclass(frozen=True)
class Spatial:
    """How positions and window meet the image along a spatial dimension."""

    stride: int
    dilation: int
    low: int
    window: int

    @property
    def step(self) -> int:
        """The distance between elements of the image that are read."""
        return self.stride if self.window == 1 else 1

    def span(self, places: slice) -> tuple[int, int]:
        """The first element that is read for some positions, and the number."""
        reach = (places.stop - 1 - places.start) * self.stride
        reach += (self.window - 1) * self.dilation
        return places.start * self.stride - self.low, reach // self.step + 1


def calls_of(
    op: Contraction,
    inputs: Sequence[Array],
    sides: Mapping[SSAValue, Array],
    out: Array,
    scratch: Scratch,
    loop: Loop,
) -> list[Call] | None:
    """The calls for `op` on `inputs`, then for the `loop` over its result and `sides`,
    which have the shape of `out`. None if `op` is not a contraction of 8-bit integers.
    """
    dtype = numpy_dtype(op.declared[0].element_type, op)
    left, right = (name_of(x.dtype) for x in inputs)
    if dtype != np.int32 or left not in _NARROW or right not in (*_NARROW, "int16"):
        return None
    if not out.size or any(not x.size for x in inputs):
        return None
    (result,) = op.results or op.outs
    if isinstance(op, DotGeneralOp):
        return _dot(op, inputs, out, sides, result, loop, scratch)
    return _convolution(op, inputs, out, sides, result, loop, scratch)


def _dot(
    op: DotGeneralOp,
    inputs: Sequence[Array],
    out: Array,
    sides: Mapping[SSAValue, Array],
    result: SSAValue,
    loop: Loop,
    scratch: Scratch,
) -> list[Call] | None:
    mark = scratch.mark
    (lhs, made_lhs), (rhs, made_rhs) = (
        matrices(op, inputs, side, scratch) for side in (0, 1)
    )
    shape = (*lhs.shape[:-1], rhs.shape[-1])
    target = try_reshape(out, shape)
    seen = {value: try_reshape(x, shape) for value, x in sides.items()}
    known = {value: x for value, x in seen.items() if x is not None}
    if target is None or len(known) < len(seen):
        scratch.mark = mark
        return None
    sum = _ByFeatures(lhs[..., None], rhs, [], scratch)
    made = sum.calls(target, known, result, loop)
    return [*made_lhs, *made_rhs, *made]


def _convolution(
    op: ConvolutionOp,
    inputs: Sequence[Array],
    out: Array,
    sides: Mapping[SSAValue, Array],
    result: SSAValue,
    loop: Loop,
    scratch: Scratch,
) -> list[Call] | None:
    has_holes = any(hole > 1 for hole in op.lhs_dilation.get_values())
    if has_holes or op.batch_group_count.value.data > 1:
        return None
    image_labels, kernel_labels, out_labels = op.labels
    spatial = op.spatial
    image = _divided(by_labels(inputs[0], image_labels, f"b{spatial}f"), op.groups)
    kernel = _divided(by_labels(inputs[1], kernel_labels, f"{spatial}io"), op.groups)
    target, *others = (
        _divided(by_labels(x, out_labels, f"b{spatial}f"), op.groups)
        for x in (out, *sides.values())
    )
    window = op.window(inputs[1].shape)
    dims = [Spatial(d.stride, d.window_dilation, d.low, d.size) for d in window]
    features, inputs_of_group = kernel.shape[-1], kernel.shape[-2]
    by_features = op.groups * _lanes(features) * -(-inputs_of_group // 2)
    by_groups = features * _lanes(op.groups) * inputs_of_group
    if op.groups == 1 or not dims or 2 * by_features <= by_groups:
        sum: _Sum = _ByFeatures(image[..., None], kernel, dims, scratch)
    else:
        # The features of a group come first, as if they were groups.
        image = strided(
            *(image, (features, *image.shape[1:], op.groups)),
            (0, *image.strides[1:], image.strides[0]),
        )
        kernel = np.moveaxis(kernel, (0, -1), (-1, 0))
        target, *others = (np.moveaxis(x, (0, -1), (-1, 0)) for x in (target, *others))
        sum = _ByGroups(image, kernel, dims, scratch)
    return sum.calls(target, dict(zip(sides, others, strict=True)), result, loop)


def _divided(x: Array, groups: int) -> Array:
    """`x` with its last dimension divided into groups, which come first, and the
    features of each group."""
    view = try_reshape(x, (*x.shape[:-1], groups, x.shape[-1] // groups))
    assert view is not None  # splits one dimension into two
    return np.moveaxis(view, -2, 0)


def _lanes(size: int) -> int:
    """The lanes of the vectors that hold `size` elements."""
    return -(-size // lanes()) * lanes()


class _Sum:
    """A contraction. `image` is `[*g, b, *s, i, o]`, where o has size 1 if all features
    see the same elements, and `kernel` is `[*g, *k, i, o]`. Groups that see the same
    elements have stride 0 in the image."""

    fewest: int
    """The minimum positions of a tile, if there are as many."""
    together: int
    """The number of features for which the image is packed at a time; 0 for all of
    them, if all see the same elements."""

    def __init__(
        self, image: Array, kernel: Array, dims: Sequence[Spatial], scratch: Scratch
    ):
        self.image, self.kernel, self.dims = image, kernel, dims
        self.scratch = scratch
        self.constant = scratch.constant(kernel)
        self.groups = kernel.ndim - len(dims) - 2
        """The number of group dimensions."""

    @property
    def count(self) -> int:
        """The number of products that a lane adds up: two or four."""
        return 2

    def left(self, tile: Slices) -> tuple[Array, list[Call]]:
        """The image for a tile of the result as `[*places, *sums, o]` of lanes with
        `count` elements each, and the calls that pack it."""
        raise NotImplementedError

    def right(self) -> tuple[Array, int]:
        """The kernel as `[*g, *sums, o]`, and the dimension along which the elements of
        a lane are consecutive."""
        raise NotImplementedError

    def calls(
        self,
        out: Array,
        sides: Mapping[SSAValue, Array],
        result: SSAValue,
        loop: Loop,
    ) -> list[Call]:
        """The calls that compute `out` and run `loop`. `out` and `sides` are
        `[*g, b, *t, o]`."""
        right, packing = self._packed()
        scratch = self.scratch
        is_own = not any(np.may_share_memory(x, out) for x in sides.values())
        is_target = is_own and out.itemsize == 4 and out.strides[-1] == 4

        def computed(tile: Slices, left: Array) -> list[Call]:
            part = out[tile]
            target = part.view(_INT32) if is_target else None
            if target is None:
                target = scratch.take(part.shape, _INT32)
            kernel = self._part(right, tile)
            call = dot_products(left, kernel, target, self.image.dtype), ()
            read = {value: x[tile] for value, x in sides.items()}
            return [call, *loop({**read, result: target}, part)]

        def tiled(block: Slices) -> list[Call]:
            calls: list[Call] = []
            start = end = scratch.mark
            for rows in self._rows(block):
                scratch.mark = start
                left, made = self.left(rows)
                calls += made
                mark = scratch.mark
                for tile, seen in _columns(rows, left):
                    scratch.mark = mark
                    calls += computed(tile, seen)
                    end = max(end, scratch.mark)
            scratch.mark = end
            return calls

        units = {**dict.fromkeys(range(out.ndim - 1), 1), out.ndim - 1: panel()}
        summed = self.kernel.size // prod(out.shape[: self.groups]) // out.shape[-1]
        found = divisions(out.shape, units, summed, scratch.threads)[0]
        with scratch.in_one_thread():
            parts = [tiled(_bounded(block, out.shape)) for block in found]
        return [*packing, *parallel(parts, scratch.threads)]

    def _rows(self, block: Slices) -> Iterator[Slices]:
        """Positions to process at a time, and the features to pack their image for."""
        *places, features = block
        sizes = tuple(x.stop - x.start for x in places)
        for some in _cut(features, self.together or features.stop):
            size = some.stop - some.start
            read = size if self.together else self.kernel.shape[-2]
            read *= prod(dim.stride // dim.step for dim in self.dims)
            for part in tiles(sizes, max(self.fewest, LARGEST // max(size, read))):
                moved = (
                    slice(x.start + at.start, x.start + at.stop)
                    for x, at in zip(places, part, strict=True)
                )
                yield (*moved, some)

    # The kernel

    def _packed(self) -> tuple[Array, list[Call]]:
        """The kernel as `[*g, *sums, panel, o, n]`, and the calls that pack it: none if
        no run changes it."""
        kernel, axis = self.right()
        *outer, features = kernel.shape
        outer[axis] = -(-outer[axis] // self.count)
        groups, sums = outer[: self.groups], outer[self.groups :]
        shape = (*groups, -(-features // panel()), *sums, panel(), self.count)

        def seen(packed: Array) -> Array:
            return np.moveaxis(packed.reshape(shape), self.groups, -3)

        def packing(packed: Array) -> list[Call]:
            return _packing(seen(packed), kernel, axis, self.scratch)

        constant = self.constant
        if constant is None:
            packed = self.scratch.take(shape, kernel.dtype)
            return seen(packed), packing(packed)
        layout = kernel.shape, axis, panel(), self.count
        with constant.lock:
            copies = constant.copies_of(self.kernel, "panels")
            for known, copy in copies:
                if known == layout:
                    return seen(copy), []
            size = prod(shape) * kernel.itemsize
            copy = aligned_bytes(size, ALIGNMENT).view(kernel.dtype)

            def fill() -> None:
                copy[:] = 0
                for function, arguments in packing(copy):
                    function(*arguments)

            constant.fill(fill)
            copies.append((layout, copy))
        return seen(copy), []

    def _part(self, right: Array, tile: Slices) -> Array:
        """The panels for a tile, as `[*places, *sums, panel, o, n]`."""
        *places, features = tile
        groups, inner = places[: self.groups], places[self.groups :]
        panels = slice(features.start // panel(), -(-features.stop // panel()))
        part = right[*groups, ..., panels, :, :]
        sizes = (x.stop - x.start for x in inner)
        g = self.groups
        return strided(
            part,
            (*part.shape[:g], *sizes, *part.shape[g:]),
            (*part.strides[:g], *(0 for _ in inner), *part.strides[g:]),
            writeable=False,
        )

    # The image

    def _seen(
        self, tile: Slices, dims: Sequence[Spatial]
    ) -> tuple[Array, Slices, Sequence[int]]:
        """The part of the image that a tile reads, if its windows are `dims`. Also the
        position of that part in the box that the tile would read if the image had no
        border, and the size of this box."""
        *groups, batch = tile[: self.groups + 1]
        places = tile[self.groups + 1 : -1]
        sizes = self.image.shape[self.groups + 1 : -2]
        there, inside = list[slice](), list[slice]()
        counts = list[int]()
        for dim, span, size in zip(dims, places, sizes, strict=True):
            first, count = dim.span(span)
            start = max(0, -(first // dim.step))
            stop = max(start, min(count, (size - 1 - first) // dim.step + 1))
            at = first + start * dim.step
            there.append(slice(at, at + (stop - start) * dim.step, dim.step))
            inside.append(slice(start, stop))
            counts.append(count)
        alike = (
            group if stride else slice(0, 1)
            for group, stride in zip(groups, self.image.strides, strict=False)
        )
        features = tile[-1] if self.image.shape[-1] > 1 else slice(None)
        seen = self.image[*alike, batch, *there, :, features]
        return seen, tuple(inside), counts

    def _left(
        self,
        packed: Array,
        tile: Slices,
        places: Sequence[int],
        sums: Sequence[tuple[int, int]],
        step: int,
    ) -> Array:
        """`[*places, *sums, o]`, with these strides in bytes along each of them."""
        sizes = [x.stop - x.start for x in tile]
        counts = [count for count, _ in sums]
        shape = (*sizes[:-1], *counts, sizes[-1])
        strides = (*places, *(by for _, by in sums), step)
        return strided(packed, shape, strides, writeable=False)


class _ByFeatures(_Sum):
    """The lanes are features, which all see the same elements."""

    fewest, together = FEWEST, 0

    @property
    def count(self) -> int:
        return 4 if self.kernel.itemsize == 1 and adds_four() else 2

    @property
    def _is_joined(self) -> bool:
        """Whether the last dimension of the window and the input features are summed as
        one dimension, so that only one lane is partly filled."""
        if self.kernel.shape[-2] % self.count == 0 or not self.dims:
            return False
        is_view = try_reshape(self.kernel, self._joined_shape) is not None
        return self.dims[-1].dilation == 1 and (is_view or self.constant is not None)

    @property
    def _joined_shape(self) -> Shape:
        *outer, window, inputs, features = self.kernel.shape
        return (*outer, window * inputs, features)

    def right(self) -> tuple[Array, int]:
        kernel = self.kernel
        if self._is_joined:
            kernel = kernel.reshape(self._joined_shape)  # copies only constants
        return kernel, kernel.ndim - 2

    def left(self, tile: Slices) -> tuple[Array, list[Call]]:
        seen, inside, counts = self._seen(tile, self.dims)
        outer = seen.shape[: self.groups + 1]
        whole = tuple(slice(0, count) for count in counts)
        calls: list[Call] = []
        if inside == whole and self._lies_in_lanes(seen):
            packed = seen[..., 0].view(_INT32)
            steps = packed.strides
        else:
            shape = (*outer, *counts, seen.shape[-2])
            # The last lane may extend into the next position, or beyond the end.
            packed = self.scratch.take((prod(shape) // self.count + 1,), _INT32)
            element = self.image.dtype if self.count == 4 else _INT16
            buffer = packed.view(element)[: prod(shape)].reshape(shape)
            where = (*(slice(None) for _ in outer), *inside)
            calls = _placed(buffer, where, seen[..., 0], self.scratch)
            steps = buffer.strides
        alike = _steps(seen.shape, steps[: len(outer)])
        by = list(zip(self.dims, steps[len(outer) :], strict=False))
        places = [*alike, *(dim.stride // dim.step * step for dim, step in by)]
        sums = [(dim.window, dim.dilation * step) for dim, step in by]
        run = seen.shape[-2]
        if self._is_joined:
            run *= sums.pop()[0]
        sums.append((-(-run // self.count), _INT32.itemsize))
        return self._left(packed, tile, places, sums, 0), calls

    def _lies_in_lanes(self, seen: Array) -> bool:
        """Whether the elements of each lane are contiguous."""
        is_full = self.count == 4 and seen.shape[-2] % 4 == 0
        return is_full and seen.strides[-2] == seen.itemsize == 1


class _ByGroups(_Sum):
    """The lanes are groups, each of which sees other elements."""

    fewest, together = 1, LINE

    @property
    def _along(self) -> int:
        """The spatial dimension along which pairs are formed."""
        wide = (d for d, dim in reversed(list(enumerate(self.dims))) if dim.window > 1)
        return next(wide, len(self.dims) - 1)

    def right(self) -> tuple[Array, int]:
        return np.moveaxis(self.kernel, -2, self.groups), self.groups + 1 + self._along

    def left(self, tile: Slices) -> tuple[Array, list[Call]]:
        along = self._along
        dims = list(self.dims)
        dims[along] = replace(dims[along], window=_even(dims[along].window))
        seen, inside, counts = self._seen(tile, dims)
        before = self.groups + 1
        calls: list[Call] = []
        if any(x.stop - x.start < n for x, n in zip(inside, counts, strict=True)):
            shape = (*seen.shape[:before], *counts, *seen.shape[-2:])
            box = self.scratch.take(shape, seen.dtype)
            where = (*(slice(None) for _ in range(before)), *inside)
            calls = _placed(box, where, seen, self.scratch)
            seen = box
        axis, by = before + along, dims[along].dilation
        every = gcd(dims[along].stride, 2 * by)
        """Pairs are read at multiples of this number."""
        stop = seen.shape[axis] - by
        low, high = (_sliced(seen, axis, slice(at, at + stop, every)) for at in (0, by))
        pairs = self.scratch.take(low.shape, _INT32)
        calls += _written(pairs, [low, high], _in_lanes(2), self.scratch)
        steps = list(zip(dims, pairs.strides[before:], strict=False))
        places = [
            *_steps(pairs.shape, pairs.strides[:before]),
            *(dim.stride // dim.step * step for dim, step in steps),
        ]
        sums = [(dim.window, dim.dilation * step) for dim, step in steps]
        step = pairs.strides[axis]
        places[axis] = dims[along].stride // every * step
        sums[along] = dims[along].window // 2, 2 * by // every * step
        inputs = seen.shape[-2], pairs.strides[-2]
        return self._left(pairs, tile, places, [inputs, *sums], 4), calls


def _bounded(block: Slices, shape: Shape) -> Slices:
    """The same slices with numbers for all bounds."""
    sizes = zip(block, shape, strict=True)
    return tuple(slice(*part.indices(size)[:2]) for part, size in sizes)


def _columns(rows: Slices, left: Array) -> Iterator[tuple[Slices, Array]]:
    """The features to compute at a time for some positions, and their left side."""
    *places, features = rows
    count = -(-prod(x.stop - x.start for x in rows) // LARGEST)
    step = -(-(features.stop - features.start) // (count * panel())) * panel()
    for some in _cut(features, step):
        start = features.start
        yield (*places, some), left[..., some.start - start : some.stop - start]


def _cut(whole: slice, step: int) -> Iterator[slice]:
    for start in range(whole.start, whole.stop, step):
        yield slice(start, min(start + step, whole.stop))


def _even(number: int) -> int:
    """`number` rounded up to an even number."""
    return number + number % 2


def _steps(shape: Shape, strides: Sequence[int]) -> Iterator[int]:
    """The strides of the first dimensions; 0 for dimensions that groups share."""
    for size, step in zip(shape, strides, strict=False):
        yield step if size > 1 else 0


def _sliced(array: Array, axis: int, part: slice) -> Array:
    return array[*(slice(None) for _ in range(axis)), part, ...]


# Loop nests that write operands


def _placed(out: Array, where: Slices, x: Array, scratch: Scratch) -> list[Call]:
    """Writes `x` to a part of `out`, converted to its type, and zeros around it."""
    calls: list[Call] = []
    if out[where].size < out.size:
        zero = ElementNode(out.dtype, number=0)
        calls = nested(
            ElementGraph(out.shape, frozenset(), zero, [out], [zero]), scratch
        )
    if x.size:
        calls += _written(out[where], [x], _converted, scratch)
    return calls


def _packing(packed: Array, kernel: Array, axis: int, scratch: Scratch) -> list[Call]:
    """Writes a kernel as `[*sums, panel, o, n]`. Missing elements of the last lane
    along `axis` become 0; missing features of the last panel are not written."""
    count = packed.shape[-1]
    lane = np.dtype(f"i{count * packed.itemsize}")
    together = packed.view(lane)[..., 0]
    calls: list[Call] = []
    whole, rest = divmod(kernel.shape[-1], panel())
    split = whole * panel()
    inner = kernel[..., :split].reshape(*kernel.shape[:-1], whole, panel())
    parts = [(together[..., :whole, :], inner)]
    if rest:
        parts.append((together[..., whole, :rest], kernel[..., split:]))
    for out, x in parts:
        full, left = divmod(x.shape[axis], count)
        for start, stop, filled in ((0, full, count), (full, full + 1, left)):
            elements = [
                _sliced(x, axis, slice(at, stop * count, count))
                for at in range(start * count, start * count + filled)
            ]
            if elements and elements[0].size:
                some = _sliced(out, axis, slice(start, stop))
                calls += _written(some, elements, _in_lanes(count), scratch)
    return calls


@cache
def _in_lanes(count: int) -> Formula:
    """A formula for integers of which `count` parts are elements of arrays; missing
    parts are 0."""

    def formula(element: IntegerType, *elements: SSAValue) -> list[TensorOp]:
        bits = element.width.data // count
        part = IntegerType(bits, Signedness.UNSIGNED)
        type = _like(elements[0], element)
        ops: list[TensorOp] = []
        for number, value in enumerate(elements):
            before = ops[-1:]
            ops += _converted(part, value)
            ops += _converted(element, ops[-1].results[0])
            if before:
                amount = ConstantOp(IntegerAttr(number * bits, element), type)
                values = [ops[-1].results[0], amount.result]
                raised = ShiftLeftOp(values, result_types=[type])
                values = [before[0].results[0], raised.result]
                ops += [amount, raised, OrOp(values, result_types=[type])]
        return ops

    return formula


def _converted(element: IntegerType, x: SSAValue) -> list[TensorOp]:
    return [ConvertOp([x], result_types=[_like(x, element)])]


def _like(x: SSAValue, element: IntegerType) -> AnyTensor:
    return with_element(tensor_type_of(x.type), element)


def _written(
    out: Array, arrays: Sequence[Array], formula: Formula, scratch: Scratch
) -> list[Call]:
    """Writes the result of `formula` on the elements of `arrays`."""
    values, nests = _operations(formula, out.dtype, tuple(x.dtype for x in arrays))
    known = dict[SSAValue, Array](zip(values, arrays, strict=True))
    return nests.calls(known, out, scratch)


@cache
def _operations(
    formula: Formula, out: DType, dtypes: Sequence[DType]
) -> tuple[Sequence[SSAValue], Nests]:
    """The arguments of a formula for any shape, and its loop nests."""
    block = Block(arg_types=[TensorType(_element(x), []) for x in dtypes])
    ops = by_result(formula(_element(out), *block.args))
    (*_, result) = ops
    return block.args, Nests(ops, result)


def _element(dtype: DType) -> IntegerType:
    sign = Signedness.UNSIGNED if dtype.kind == "u" else Signedness.SIGNLESS
    return IntegerType(8 * dtype.itemsize, sign)
