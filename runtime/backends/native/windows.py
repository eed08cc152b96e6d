"""Reduces windows as reductions of views.

    out[i] = maximum over k of x[i * stride + k - padding]

Windows that extend into the padding are smaller. Positions whose windows are clipped in
the same way form one loop nest: those at each edge, and all others.

Large windows that overlap are reduced along one dimension after the other, some rows at
a time: 5 + 5 elements are combined instead of 5 * 5. The intermediate results include
the padding, so no window over them is clipped.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, SSAValue

from ....dialects.dtypes import Array, identity
from ....dialects.tgraph.base import Shape, ints, tensor_type_of, with_shape
from ....dialects.tgraph.reducing import ReduceOp, ReduceWindowOp
from ....dialects.tgraph.windows import WindowDimension, places_of
from ....support.arrays import strided
from ...calls import Call
from ...pool import Scratch
from ..arrays import surround
from ..numpy.reducing import accumulated
from .graphs import NoLoopNest

MOST = 9
"""The maximum number of loop nests, each of which is compiled: enough for two
dimensions with an edge on each side.
"""


WORTH = 2
"""How many times fewer elements are combined along one dimension after the other, at
least, for this to pay.
"""

ROWS = 1 << 15
"""The bytes of intermediate results at a time."""

MOST_ROWS = 8
"""The maximum number of parts that are computed one after the other for that."""


_STILL = WindowDimension(1, 1, 0, 0)


class Part(NamedTuple):
    """A reduction of a view of the operand into a part of the result."""

    reduction: ReduceOp
    operand: SSAValue
    view: Array
    out: Array


def parts(op: ReduceWindowOp, x: Array, out: Array) -> Iterator[Part]:
    """The reductions that compute `op`. Raises `NoLoopNest` for windows over holes, for
    windows that see only padding, and if there are too many parts."""
    window = op.window(x.ndim)
    dims = list(map(_spans, window, x.shape, out.shape))
    if not dims or prod(map(len, dims)) > MOST:
        raise NoLoopNest
    moves = [d.stride for d in window], [d.window_dilation for d in window]
    steps = [s * n for move in moves for s, n in zip(x.strides, move, strict=True)]
    for spans in product(*dims):
        shape = (
            *(s.places.stop - s.places.start for s in spans),
            *(s.size for s in spans),
        )
        first = x[*(slice(s.element, None) for s in spans)]
        view = strided(first, shape, steps)
        type_ = tensor_type_of(op.inputs[0].type)
        target = out[*(s.places for s in spans)]
        operand = Block(arg_types=[with_shape(type_, shape)]).args[0]
        properties = {
            "kind": StringAttr(op.kind.data),
            "dimensions": ints(range(x.ndim, 2 * x.ndim)),
        }
        reduction = ReduceOp(
            [operand],
            result_types=[with_shape(type_, target.shape)],
            properties=properties,
        )
        yield Part(reduction, operand, view, target)


class _Span(NamedTuple):
    """Adjacent positions along a dimension with windows clipped in the same way."""

    places: slice
    element: int
    """The first element in the window of the first position."""
    size: int
    """The elements of each window."""


def _spans(window: WindowDimension, size: int, count: int) -> Sequence[_Span]:
    """The spans of a dimension that has `size` elements in the operand and `count` in
    the result."""
    if window.base_dilation > 1:
        raise NoLoopNest
    apart = window.window_dilation
    spans: list[_Span] = []
    cut = None
    for place in range(count):
        start = place * window.stride - window.low
        first = max(0, -(start // apart))  # the first element that is not padding
        last = min(window.size, -((start - size) // apart))
        if first >= last:
            raise NoLoopNest
        if (first, last) == cut:
            spans[-1] = spans[-1]._replace(
                places=slice(spans[-1].places.start, place + 1)
            )
        else:
            cut = first, last
            element = start + first * apart
            spans.append(_Span(slice(place, place + 1), element, last - first))
    return spans


class Pass(NamedTuple):
    """A window of `op` that moves over `x`."""

    op: ReduceWindowOp
    x: Array
    out: Array


def passes(
    op: ReduceWindowOp, x: Array, out: Array, scratch: Scratch
) -> tuple[list[Call], Sequence[Pass]] | None:
    """The reduction along the first dimension that the window moves along, then along
    all others: the calls that prepare scratch memory, and the passes. None if that does
    not pay, or would round sums twice."""
    kind, window = op.kind.data, op.window(x.ndim)
    first = next((d for d, dim in enumerate(window) if dim.size > 1), None)
    padding = [n for dim in window for n in (dim.low, dim.high)]
    if first is None or min(padding) < 0 or accumulated(kind, x.dtype) != x.dtype:
        return None
    if any(dim.base_dilation > 1 for dim in window):
        return None
    column, rest = window[first].size, prod(dim.size for dim in window[first + 1 :])
    ahead = [*x.shape[:first], out.shape[first], *x.shape[first + 1 :]]
    combined = column * prod(ahead) + rest * out.size
    if rest == 1 or column * rest * out.size < WORTH * combined:
        return None
    along = max(
        (d for d, dim in enumerate(window) if d == first or dim == _STILL),
        key=lambda d: ahead[d],
    )
    inner = [
        slice(None) if d in (first, along) else slice(dim.low, dim.low + ahead[d])
        for d, dim in enumerate(window)
    ]
    shape = [
        n if d == first else dim.low + n + dim.high
        for d, (n, dim) in enumerate(zip(ahead, window, strict=True))
    ]
    count = min(-(-prod(shape) * x.itemsize // ROWS), MOST_ROWS, shape[along])
    shape[along] = step = -(-ahead[along] // count)
    between = scratch.take(tuple(shape), x.dtype)
    found: list[Pass] = []
    alone = [dim if d == first else _STILL for d, dim in enumerate(window)]
    others = [dim._replace(low=0, high=0) for dim in window]
    others[first] = _STILL
    for start in range(0, ahead[along], step):
        places = slice(start, min(start + step, ahead[along]))
        at = (slice(None),) * along
        alone[along], read = window[along].over(places, x.shape[along])
        if read.start == read.stop:
            return None  # these windows see only padding
        source, target = x[*at, read], out[*at, places]
        rows = between[*at, : places.stop - start]
        found += [
            Pass(_moving(op, alone, source.shape), source, rows[*inner]),
            Pass(_moving(op, others, rows.shape), rows, target),
        ]
    return surround(between, inner, identity(kind, x.dtype)), found


def _moving(
    op: ReduceWindowOp, window: Sequence[WindowDimension], shape: Shape
) -> ReduceWindowOp:
    """`op` with another window, over an operand of another shape."""
    given = with_shape(tensor_type_of(op.inputs[0].type), shape)
    columns = [ints(numbers) for numbers in zip(*window, strict=True)]
    names = (
        *("window_dimensions", "window_strides", "padding_low", "padding_high"),
        *("base_dilations", "window_dilations"),
    )
    return ReduceWindowOp(
        [Block(arg_types=[given]).args[0]],
        result_types=[with_shape(given, places_of(shape, window))],
        properties={"kind": op.kind, **dict(zip(names, columns, strict=True))},
    )
