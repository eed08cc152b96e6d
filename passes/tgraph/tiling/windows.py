"""Which rows of its operand a window reads: convolutions and pooling along a dimension.

Row i of the result reads `reach` rows of the operand, from `stride * i - low` on; those
before the first and after the last one are padding.

    3x3, stride 1, low 1      rows [4, 8) of the result read rows [3, 9)
    3x3, stride 2, low 0      rows [4, 8) of the result read rows [8, 17)
"""

from collections.abc import Mapping
from typing import NamedTuple, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Attribute, Operation

from ....dialects.tgraph.base import ints
from ....dialects.tgraph.reducing import ConvolutionOp, ReduceWindowOp
from .dimensions import shape_of

Rows = tuple[int, int]
"""A half-open range along the dimension that is tiled."""


class Window(NamedTuple):
    """How a window moves along a dimension."""

    along: int  # which dimension of the first operand
    spatial: int  # the number of the dimension among those that the window has
    stride: int
    low: int  # rows of padding before the first
    reach: int  # rows from its first to its last, holes of a dilation included

    def read(self, rows: Rows) -> Rows:
        """The operand's rows, or padding, that rows of the result need."""
        start, end = rows
        last = (end - 1) * self.stride - self.low
        return start * self.stride - self.low, last + self.reach


def window(op: Operation, dim: int) -> Window | None:
    """The window that moves along a dimension of the result, if the operand has as many
    rows as the result has strides: then tiles of both go together."""
    match op:
        case ConvolutionOp():
            image, kernel, result = op.labels
            if result[dim] in "bf":
                return None
            spatial = int(result[dim])
            along = image.index(result[dim])
            size = shape_of(op.inputs[1])[kernel.index(result[dim])]
            low, strides = op.padding_low, op.window_strides
            holes, dilation = op.lhs_dilation, op.rhs_dilation
        case ReduceWindowOp():
            along = spatial = dim
            size = op.window_dimensions.get_values()[dim]
            low, strides = op.padding_low, op.window_strides
            holes, dilation = op.base_dilations, op.window_dilations
        case _:
            return None
    before, stride, hole, apart = (
        numbers.get_values()[spatial] for numbers in (low, strides, holes, dilation)
    )
    reach = (size - 1) * apart + 1
    fits = shape_of(op.inputs[0])[along] == stride * shape_of(op.result)[dim]
    if not fits or hole != 1 or not 0 <= before < reach:
        return None
    return Window(along, spatial, stride, before, reach)


def rows_read(op: Operation, dim: int, rows: Rows) -> Rows:
    """The rows of tiled operands that rows of the result need."""
    moving = window(op, dim)
    return moving.read(rows) if moving else rows


def scale(rows: Rows, size: int, other: int) -> Rows:
    """Rows of a value of some size, in a view of it with another."""
    return rows[0] * other // size, rows[1] * other // size


def padding(
    op: Operation, window: Window, low: int, high: int
) -> Mapping[str, Attribute]:
    """The properties of an operation with other padding along a window's dimension."""
    found: dict[str, Attribute] = {}
    for name, amount in (("padding_low", low), ("padding_high", high)):
        old = cast(DenseArrayBase[IntegerType], op.properties[name]).get_values()
        found[name] = ints([*old[: window.spatial], amount, *old[window.spatial + 1 :]])
    return found
