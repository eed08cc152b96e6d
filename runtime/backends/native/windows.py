"""Reduces windows as reductions of views.

    out[i] = maximum over k of x[i * stride + k - padding]

Windows that extend into the padding are smaller. Positions whose windows are clipped in
the same way form one loop nest: those at each edge, and all others.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, SSAValue

from ....dialects.dtypes import Array
from ....dialects.tgraph.base import ints, tensor_type_of, with_shape
from ....dialects.tgraph.reducing import ReduceOp, ReduceWindowOp
from ....dialects.tgraph.windows import WindowDimension
from ....support.arrays import strided
from .graphs import NoLoopNest

MOST = 9
"""The maximum number of loop nests, each of which is compiled: enough for two
dimensions with an edge on each side.
"""


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
