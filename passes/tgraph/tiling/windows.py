"""Computes the rows of an operand that a window (convolution or pooling) reads.

Row i of the result reads `reach` rows of the operand, from `stride * i - low` on. Rows
before the operand's first and after its last one are padding.

    3x3, stride 1, low 1      rows [4, 8) of the result read rows [3, 9)
    3x3, stride 2, low 0      rows [4, 8) of the result read rows [8, 17)

Padding belongs to the window, or comes from a `tgraph.pad` that only windows read, such
as padding by the zero point of a quantized network. In the latter case, the operand's
rows are those of the pad's input: its tiles have no padding, and each tile pads its own
rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects.tgraph.base import ints
from ....dialects.tgraph.reducing import ConvolutionOp, ReduceWindowOp
from ....dialects.tgraph.shaping import PadOp, TransposeOp
from .dimensions import is_repeated, shape_of

Rows = tuple[int, int]
"""A half-open range along the dimension that is tiled."""


class Window(NamedTuple):
    """How a window moves along a dimension."""

    along: int  # the dimension of the first operand
    spatial: int  # its number among the dimensions of the window
    stride: int
    low: int  # rows of padding before the first
    reach: int  # rows from its first to its last, holes of a dilation included
    is_padded: bool  # whether a `tgraph.pad` adds the padding

    def read(self, rows: Rows) -> Rows:
        """The rows of the operand, or of padding, that `rows` of the result need."""
        start, end = rows
        last = (end - 1) * self.stride - self.low
        return start * self.stride - self.low, last + self.reach


def window(op: Operation, dim: int) -> Window | None:
    """The window that moves along dimension `dim` of the result, or None. The operand
    must have `stride` rows for each row of the result, so that tiles correspond."""
    along = _along(op, dim)
    return None if along is None else _window(op, dim, padded(op.operands[0], along))


def _along(op: Operation, dim: int) -> int | None:
    """The dimension of the operand along which the window moves for dimension `dim` of
    the result, or None."""
    match op:
        case ConvolutionOp() if op.res:
            image, _, result = op.labels
            return None if result[dim] in "bf" else image.index(result[dim])
        case ReduceWindowOp() if op.res:
            return dim
        case _:
            return None


def _window(op: Operation, dim: int, added: Rows) -> Window | None:
    """The window over an operand that includes `added` rows of padding before and after
    its own; if it has none, the window pads it itself. None if tiles do not fit."""
    match op:
        case ConvolutionOp():
            image, _, result = op.labels
            spatial, along = int(result[dim]), image.index(result[dim])
            moving = op.window(shape_of(op.inputs[1]))[spatial]
        case ReduceWindowOp():
            spatial = along = dim
            moving = op.window(len(shape_of(op.result)))[spatial]
        case _:
            return None
    low, stride, reach = moving.low, moving.stride, moving.reach
    if any(added):
        if low or moving.high:
            return None
        low = added[0]
    rows = shape_of(op.inputs[0])[along] - sum(added)
    corresponds = rows == stride * shape_of(op.result)[dim]
    if not corresponds or moving.base_dilation != 1 or not 0 <= low < reach:
        return None
    return Window(along, spatial, stride, low, reach, any(added))


def padded(value: SSAValue, along: int) -> Rows:
    """The numbers of rows of padding for windows that `value` includes before and after
    its own rows."""
    while isinstance(view := value.owner, TransposeOp):
        value, along = view.inputs[0], view.permutation.get_values()[along]
    if isinstance(pad := value.owner, PadOp) and is_padding(pad):
        return pad.low.get_values()[along], pad.high.get_values()[along]
    return 0, 0


def is_padding(op: Operation) -> bool:
    """Whether `op` is a pad that only windows read, directly or through transposes, and
    each window moves along every dimension that has padding."""
    if not isinstance(op, PadOp) or op.outs or any(op.interior.get_values()):
        return False
    amounts = list(zip(op.low.get_values(), op.high.get_values(), strict=True))
    if any(low < 0 or high < 0 for low, high in amounts) or not any(map(any, amounts)):
        return False
    readers = list(_readers(op.result, amounts))
    return bool(readers) and all(
        operand == 0 and _moves_along(reader, along, added)
        for reader, operand, amounts in readers
        for along, added in enumerate(amounts)
        if any(added)
    )


def _readers(
    value: SSAValue, amounts: Sequence[Rows]
) -> Iterator[tuple[Operation, int, Sequence[Rows]]]:
    """Yields each reader of `value` or of a transpose of it, the number of the operand,
    and the operand's padding along each dimension."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, TransposeOp) and not op.outs:
            permuted = [amounts[dim] for dim in op.permutation.get_values()]
            yield from _readers(op.result, permuted)
        else:
            yield op, use.index, amounts


def _moves_along(op: Operation, along: int, added: Rows) -> bool:
    """Whether a window of `op` moves along dimension `along` of its first operand,
    which includes `added` rows of padding."""
    return any(
        _along(op, dim) == along and _window(op, dim, added) is not None
        for dim in range(len(shape_of(op.operands[0])))
    )


def is_remade(op: Operation) -> bool:
    """Whether every tile of a loop repeats `op` for itself."""
    return is_repeated(op) or is_padding(op)


def users(value: SSAValue) -> Iterator[Operation]:
    """Yields the readers of `value`, directly or through operations that every tile
    repeats."""
    values = [value]
    for value in values:  # grows
        for use in value.uses:
            if is_remade(use.operation):
                values.append(use.operation.results[0])
            else:
                yield use.operation


def scale(rows: Rows, size: int, other: int) -> Rows:
    """Converts `rows` of a value of `size` rows to those of a view of `other` rows."""
    return rows[0] * other // size, rows[1] * other // size


def padding(op: Operation, place: int, amounts: Rows) -> Mapping[str, Attribute]:
    """The padding properties of a window or a pad, with `amounts` along dimension
    `place` of those that it pads."""
    is_pad = isinstance(op, PadOp)
    names = ("low", "high") if is_pad else ("padding_low", "padding_high")
    found: dict[str, Attribute] = {}
    for name, amount in zip(names, amounts, strict=True):
        old = cast(DenseArrayBase[IntegerType], op.properties[name]).get_values()
        found[name] = ints([*old[:place], amount, *old[place + 1 :]])
    return found
