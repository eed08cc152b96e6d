"""Kernels of groups of rows (softmax, layer norm): some rows at a time.

All intermediate values are in tiles of the workspace, and only the last operation
writes the result.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from ....dialects.dtypes import Array, DType, is_float, numpy_dtype
from ....dialects.tgraph import shaping
from ....dialects.tgraph.base import Shape, TensorOp, tensor_type_of
from ....dialects.tgraph.elementwise import ElementwiseOp
from ....dialects.tgraph.fusing import Group
from ....dialects.tgraph.reducing import ReduceOp
from ...calls import Call
from ...pool import Scratch
from ..arrays import broadcast_in_dim, copy, tiles
from .elementwise import Instruction, Registers, UfuncProgram
from .forms import TILE
from .functions import call_unbuffered
from .reducing import reduce

UNBUFFERED = 384
"""From this number of elements in a row on, NumPy's buffers only cost time."""


def shape_of(value: SSAValue) -> Shape:
    return tensor_type_of(value.type).get_shape()


def dtype_of(op: TensorOp) -> DType:
    return numpy_dtype(op.declared[0].element_type, op)


def rows(
    group: Group,
    ops: Sequence[TensorOp],
    arrays: Mapping[SSAValue, Array],
    splats: Mapping[SSAValue, Array],
    out: Array,
    scratch: Scratch,
) -> list[Call]:
    """The calls for a group's operations, from arrays and constants to `out`."""
    count = group.rows
    assert count is not None
    full, _ = group.reductions[0]
    length = prod(full[count:])
    limit = max(1, TILE // length)
    most = min(limit, prod(full[:count]))
    program = _RowKernel(ops, arrays, splats, count, most, scratch)
    all_tiles = list(tiles(full[:count], limit))
    calls = program.repeat_rows() if len(all_tiles) > 1 else []
    for tile in all_tiles:
        calls += program.compile_tile(tile, out[*tile, ...])
    are_small = any(is_float(d) and d.itemsize < 4 for d in map(dtype_of, ops))
    if length < UNBUFFERED or are_small:  # sums of small floats need buffers
        return calls
    return [(call_unbuffered, (calls,))]


class _RowKernel:
    """The operations on up to `rows` rows at a time."""

    def __init__(
        self,
        ops: Sequence[TensorOp],
        arrays: Mapping[SSAValue, Array],
        splats: Mapping[SSAValue, Array],
        count: int,
        rows: int,
        scratch: Scratch,
    ):
        self.ops = ops
        self.count = count  # of the dimensions that number rows
        self.rows = rows
        self.scratch = scratch
        self.registers: dict[int, Registers] = {}  # by the elements of a row
        read = {value for op in ops for value in op.inputs}
        self.arrays = {v: x for v, x in arrays.items() if v in read}
        self.repeated: dict[SSAValue, Array] = {}
        self.splats = splats
        self.programs: dict[TensorOp, UfuncProgram] = {
            op: self._program(op) for op in ops if isinstance(op, ElementwiseOp)
        }
        self.dying: dict[TensorOp, list[SSAValue]] = {}
        last_use: dict[SSAValue, TensorOp] = {}
        sources: dict[SSAValue, SSAValue] = {}  # of broadcasts, which are views
        for op in ops:
            if isinstance(op, shaping.BroadcastInDimOp):
                (source,) = op.inputs
                sources[op.result] = sources.get(source, source)
            else:
                last_use |= {sources.get(value, value): op for value in op.inputs}
        for value, op in last_use.items():
            self.dying.setdefault(op, []).append(value)

    def _program(self, op: TensorOp) -> UfuncProgram:
        splats = {v: self.splats[v] for v in op.inputs if v in self.splats}
        leaves = [v for v in op.inputs if v not in splats]
        return UfuncProgram(leaves, splats, [Instruction(op, op.inputs, op.result)])

    def repeat_rows(self) -> list[Call]:
        """Copies rows that are the same in all tiles to a buffer of a tile's size,
        once. Without this, NumPy would repeat them for each tile."""
        calls: list[Call] = []
        for value, x in self.arrays.items():
            if not any(x.strides[: self.count]) and any(x.strides):
                row = x[*[0] * self.count, ...]
                copies = self.scratch.take((self.rows, *row.shape), x.dtype)
                calls += copy(copies, np.broadcast_to(row, copies.shape))
                self.repeated[value] = copies
        return calls

    def _leaf(self, value: SSAValue, tile: tuple[slice, ...]) -> Array:
        part = self.arrays[value][*tile, ...]
        if value not in self.repeated:
            return part
        return np.ndarray(part.shape, part.dtype, self.repeated[value])

    def compile_tile(self, tile: tuple[slice, ...], out: Array) -> list[Call]:
        """The calls for the rows of `tile`; only the last operation writes `out`."""
        values = {v: self._leaf(v, tile) for v in self.arrays} | {**self.splats}
        held: dict[SSAValue, Array] = {}
        sizes = tuple(s.stop - s.start for s in tile)
        calls: list[Call] = []
        for op in self.ops:
            result = op.result
            shape = (*sizes, *shape_of(result)[self.count :])
            operands = [values[value] for value in op.inputs]
            if isinstance(op, shaping.BroadcastInDimOp):
                dims = op.broadcast_dimensions.get_values()
                values[result] = broadcast_in_dim(operands[0], dims, shape)
                continue
            target = out
            if op is not self.ops[-1]:
                target = held[result] = self._of(shape).take(shape, dtype_of(op))
            values[result] = target
            calls += self._compute(op, operands, target)
            for value in self.dying.get(op, ()):
                if value in held:
                    array = held.pop(value)
                    self._of(array.shape).release(array)
        return calls

    def _compute(
        self, op: TensorOp, operands: Sequence[Array], target: Array
    ) -> list[Call]:
        mark = self.scratch.mark
        if isinstance(op, ReduceOp):
            sizes = target.shape[: self.count]
            shape = (*sizes, *shape_of(op.inputs[0])[self.count :])
            array = np.broadcast_to(operands[0], shape)
            calls = reduce(op, [array], [target], self.scratch)
        else:
            inputs = zip(op.inputs, operands, strict=True)
            leaves = [x for value, x in inputs if value not in self.splats]
            registers = Registers(self.scratch, target.size)
            calls = self.programs[op].compile_tile(leaves, target, registers)
        self.scratch.mark = mark
        return calls

    def _of(self, shape: Shape) -> Registers:
        """The registers for values with rows of this shape."""
        elements = prod(shape[self.count :])
        if elements not in self.registers:
            self.registers[elements] = Registers(self.scratch, self.rows * elements)
        return self.registers[elements]
