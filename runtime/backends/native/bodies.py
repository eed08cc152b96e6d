"""Reduces by regions on single elements, in registers.

    for each element of the results:
        partial = initial values, in all lanes
        for many elements along the reduced dimension at a time:
            partial = body(partial, elements)
        result = the lanes of partial, combined in halves

If elements are contiguous along a kept dimension, lanes are along that dimension. The
same holds for short rows, which are transposed into columns.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.ir import Block, SSAValue

from ....dialects.dtypes import Array, DType, constant, numpy_dtype
from ....dialects.tgraph.base import Shape, TensorOp
from ....dialects.tgraph.bodies import ElementsOp, ReduceByOp
from ....dialects.tgraph.formulas import NoForm
from ....dialects.tgraph.shaping import ConstantOp
from ....dialects.tgraph.structure import yielded
from ...pool import Scratch
from ..arrays import broadcast_in_dim, with_positions
from ..interface import Call
from ..jit import llvm
from ..jit.records import ArrayRecord
from . import operations
from .code import LlvmFunction, Value
from .elements import (
    CLOSE,
    load,
    mask_of,
    multiples,
    number_of,
    register_type,
    store,
)
from .graphs import NoLoopNest
from .nests import VECTOR, Loops, merged
from .transposing import Matrix

_Strides: TypeAlias = tuple[int, int]
"""The bytes from one reduced element to the next, and from lane to lane."""

SHORT = 3
"""In vectors: combining the lanes of longer rows is faster than transposing rows."""


def on_elements(
    code: LlvmFunction, block: Block, elements: Sequence[Value]
) -> Mapping[SSAValue, Value]:
    """The values of a region for elements of any width. Raises `NoForm`."""
    known = dict[SSAValue, Value](zip(block.args, elements, strict=True))
    for op in block.ops:
        if not isinstance(op, TensorOp) or not op.results:
            continue
        dtype = numpy_dtype(op.declared[0].element_type, op)
        if isinstance(op, ConstantOp):
            element = register_type(dtype)
            assert element is not None
            number = number_of(constant(op.value, dtype))
            known[op.result] = code.number(number, element)
        else:
            values = [known[x] for x in op.inputs]
            value = operations.evaluate(op, dtype, values)
            if not isinstance(value, Value):
                raise NoForm(op.name)
            known[op.result] = value
    return known


def counted(op: ElementsOp, columns: Sequence[Array]) -> list[int]:
    """The numbers of the columns that hold positions, which code counts."""
    return [n for n in op.numbered if columns[n].dtype.kind in "iu"]


def with_counted(op: ElementsOp, inputs: Sequence[Array]) -> list[Array]:
    """The tensors whose elements the region of `op` takes. Those that code counts have
    one element in memory, which code does not read."""
    columns = with_positions(op, inputs)
    for number in counted(op, columns):
        one: Array = np.zeros((), columns[number].dtype)
        columns[number] = broadcast_in_dim(one, (), columns[number].shape)
    return columns


def positions(
    code: LlvmFunction, place: str, step: int, dtype: DType, lanes: int
) -> Value:
    """The positions `place`, `place + step`, ..., as integers of type `dtype`."""
    element = register_type(dtype)
    assert element is not None
    numbers = Value(code, place, "i64", 1) + multiples(code, step, lanes)
    return numbers if element == "i64" else numbers.cast("trunc", element)


def reduce_by(
    op: ReduceByOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    """Raises `NoLoopNest` if there is no native form."""
    inputs = with_counted(op, inputs)
    count, dims = len(outs), op.dimensions.get_values()
    if any(register_type(x.dtype) is None for x in inputs) or not inputs[0].size:
        raise NoLoopNest
    kept = [d for d in range(inputs[0].ndim) if d not in dims]
    columns = [x.transpose([*kept, *sorted(dims)]) for x in inputs[:count]]
    try:
        reduction = _Reduction(op, columns, outs)
        text = reduction.text()
    except NoForm:
        raise NoLoopNest from None
    buffers = [scratch.take(shape, dtype) for shape, dtype in reduction.buffers]
    arrays = [*inputs, *outs, *buffers]
    return [(ArrayRecord(llvm.compiler().function(text), arrays), ())]


class _Reduction:
    """The words are the addresses of the inputs, of the initial values, of the results,
    and of buffers for transposed rows."""

    def __init__(self, op: ReduceByOp, columns: Sequence[Array], outs: Sequence[Array]):
        self._op, self._outs = op, outs
        self._code = LlvmFunction()
        self._counted = counted(op, columns)
        shape, rank = columns[0].shape, outs[0].ndim
        none = [0] * (len(shape) - rank)
        strides = [*(x.strides for x in columns), *((*x.strides, *none) for x in outs)]
        by_dim = list(zip(*strides, strict=True))
        self._kept = merged(shape, range(rank), by_dim)
        reduced = merged(shape, range(rank, len(shape)), by_dim) or [
            (1, [0] * len(strides))
        ]
        if len(reduced) != 1:
            raise NoLoopNest
        self._size, steps = reduced[0]
        self._lanes = VECTOR // max(x.itemsize for x in columns)
        rows, along = self._kept[-1] if self._kept else (1, [0] * (2 * len(outs)))
        steps_of_outs = zip(along[len(columns) :], outs, strict=True)
        is_beside = all(step == x.itemsize for step, x in steps_of_outs)
        has_gaps = any(
            step not in (0, x.itemsize) for step, x in zip(along, columns, strict=False)
        )
        is_short = self._size <= SHORT * self._lanes and rows >= self._lanes
        self._is_across = not is_beside or (has_gaps and not is_short)
        lanes = steps if self._is_across else along
        self._strides = list(zip(steps[: len(columns)], lanes, strict=False))
        self._transposed: list[int] = []
        """The inputs whose rows are transposed."""
        if not self._is_across:
            self._transposed = [
                number
                for number, (x, (step, along)) in enumerate(
                    zip(columns, self._strides, strict=True)
                )
                if step == x.itemsize and along // step not in (0, *CLOSE)
            ]
        self._buffers: list[str] = []

    @property
    def buffers(self) -> list[tuple[Shape, DType]]:
        """The shapes and types of the buffers for transposed inputs."""
        shape = self._size, self._lanes
        return [(shape, self._outs[number].dtype) for number in self._transposed]

    def text(self) -> str:
        count = len(self._outs)
        words = [self._code.word(n) for n in range(3 * count)]
        numbers = range(3 * count, 3 * count + len(self._transposed))
        self._buffers = [self._code.word(n) for n in numbers]
        starts = [
            load(self._code, pointer, 0, out.dtype, 1, 1)
            for pointer, out in zip(words[count : 2 * count], self._outs, strict=True)
        ]
        self._around(self._kept, [*words[:count], *words[2 * count :]], starts)
        return self._code.function()

    def _around(
        self, loops: Loops, pointers: Sequence[str], starts: Sequence[Value]
    ) -> None:
        if not loops:
            self._column(pointers, starts, 1, 1, self._strides)
            return
        (size, steps), *rest = loops
        lanes = 1 if rest or self._is_across else self._lanes

        def some(index: str, lanes: int, active: int) -> None:
            inner = self._code.all_moved(pointers, index, steps)
            if rest:
                self._around(rest, inner, starts)
            elif self._transposed:
                self._columns(inner, starts, active)
            else:
                self._column(inner, starts, lanes, active, self._strides)

        stop = size // lanes * lanes
        if stop:
            with self._code.loop("0", str(stop), lanes) as index:
                some(index, lanes, lanes)
        if active := size - stop:
            some(str(stop), 1 << (active - 1).bit_length(), active)

    def _columns(
        self, pointers: Sequence[str], starts: Sequence[Value], rows: int
    ) -> None:
        """Computes results for a vector of rows, which are transposed first."""
        inside, strides = list(pointers), list(self._strides)
        for number, buffer in zip(self._transposed, self._buffers, strict=True):
            size = self._outs[number].itemsize
            row, column = strides[number][1], size * self._lanes
            shape = rows, self._size
            matrix = Matrix(self._code, size, *shape, row, column, is_large=False)
            matrix.copy(pointers[number], buffer)
            inside[number], strides[number] = buffer, (column, size)
        self._column(inside, starts, self._lanes, rows, strides)

    def _column(
        self,
        pointers: Sequence[str],
        starts: Sequence[Value],
        kept_lanes: int,
        kept: int,
        strides: Sequence[_Strides],
    ) -> None:
        """Computes results for `kept` contiguous kept elements, in the first of
        `kept_lanes` lanes."""
        code, count = self._code, len(self._outs)
        lanes, step = (self._lanes,) * 2 if self._is_across else (kept_lanes, 1)
        result = [code.widened(x, lanes) for x in starts]
        stop = self._size // step * step
        if stop > 0:
            slots = list(map(code.slot, result))
            with code.loop("0", str(stop), step) as place:
                some = place, lanes, step if self._is_across else kept
                elements = self._elements(pointers[:count], *some, strides)
                made = self._combined(self._got(slots, lanes), elements)
                for slot, value in zip(slots, made, strict=True):
                    code.set(slot, code.widened(value, lanes))
            result = self._got(slots, lanes)
        if active := self._size - stop:
            some = str(stop), lanes, active
            elements = self._elements(pointers[:count], *some, strides)
            mask = Value(code, mask_of(lanes, active), "i1", lanes)
            pairs = zip(elements, starts, strict=True)
            chosen = [code.select(mask, x, start) for x, start in pairs]
            made = self._combined(result, chosen)
            result = [code.widened(x, lanes) for x in made]
        while self._is_across and result[0].lanes > 1:
            half = result[0].lanes // 2
            low, high = ([code.part(x, at, half) for x in result] for at in (0, half))
            result = self._combined(low, high)
        for value, out, pointer in zip(
            result, self._outs, pointers[count:], strict=True
        ):
            store(value, pointer, out.itemsize, out.dtype, kept_lanes, kept)

    def _got(self, slots: Sequence[str], lanes: int) -> list[Value]:
        got: list[Value] = []
        for slot, out in zip(slots, self._outs, strict=True):
            element = register_type(out.dtype)
            assert element is not None
            got.append(self._code.get(slot, element, lanes))
        return got

    def _elements(
        self,
        pointers: Sequence[str],
        place: str,
        lanes: int,
        active: int,
        strides: Sequence[_Strides],
    ) -> list[Value]:
        code, elements = self._code, list[Value]()
        for number, (pointer, (step, along), out) in enumerate(
            zip(pointers, strides, self._outs, strict=True)
        ):
            if number in self._counted:
                one = int(self._is_across)
                elements.append(positions(code, place, one, out.dtype, lanes))
                continue
            at = code.moved(pointer, place, step)
            elements.append(load(code, at, along, out.dtype, lanes, active))
        return elements

    def _combined(self, xs: Sequence[Value], ys: Sequence[Value]) -> list[Value]:
        known = on_elements(self._code, self._op.body.block, [*xs, *ys])
        return [known[value] for value in yielded(self._op.body)]
