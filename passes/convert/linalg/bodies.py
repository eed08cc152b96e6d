"""Writes sorts, and reductions whose region combines single elements, as loops.

A reduction becomes one `linalg.generic` that has the operation's body and computes all
results. A sort becomes loops: a bottom-up merge sort of each column.

    for column: for width = 1, 2, 4, ...:
      for k: spare[k] = the next element of two sorted runs of `width` elements
      column = spare
"""

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

from ....dialects.tgraph.base import TensorOp, tensor_type_of
from ....dialects.tgraph.bodies import ReduceByOp, SortOp
from ....dialects.tgraph.shaping import ConstantOp
from ....dialects.tgraph.structure import YieldOp
from .code import MlirCode, index
from .memory import Stored
from .nests import GenericBody, Values, assign, copy
from .scalars import scalar


def reduce_by(values: Values, op: ReduceByOp, targets: Sequence[Stored]) -> None:
    if 0 in targets[0].shape:
        return
    count = len(targets)
    inputs = op.completed(op.inputs, lambda iota: iota.result)
    for start, target in zip(inputs[count:], targets, strict=True):
        nest = GenericBody(values, target.shape)
        number = nest.value(start, ())
        nest.finish(target, nest.dims, lambda _, number=number: number)
    reduced = op.dimensions.get_values()
    nest = GenericBody(values, tensor_type_of(inputs[0].type).get_shape())
    elements = [nest.value(value, nest.dims) for value in inputs[:count]]
    kept = tuple(e for d, e in enumerate(nest.dims) if d not in reduced)
    nest.finish_all(
        targets,
        kept,
        lambda olds: _on_elements(nest.code, op.body.block, [*olds, *elements]),
        reduced,
    )


def sort(values: Values, op: SortOp, targets: Sequence[Stored]) -> None:
    if op.count is None:
        _sort(values, op, targets)
        return
    shape = values.store(op.inputs[0]).shape
    wholes = [values.memory.allocate(target.element, shape) for target in targets]
    _sort(values, op, wholes)
    for whole, target in zip(wholes, targets, strict=True):
        first = replace(whole.layout, shape=target.shape)
        copy(values, Stored(whole.base, first), target)


def _sort(values: Values, op: SortOp, targets: Sequence[Stored]) -> None:
    inputs = op.completed(op.inputs, lambda iota: iota.result)
    for value, target in zip(inputs, targets, strict=True):
        assign(values, value, target)
    shape, dim = targets[0].shape, op.dimension.value.data
    if 0 in shape or shape[dim] == 1:
        return
    sorting = _MergeSort(values, op, targets)
    values.code.loops([*shape[:dim], *shape[dim + 1 :]], sorting.sort_column)


class _MergeSort:
    """Sorts the columns of arrays in place; `spares` hold one column of each."""

    def __init__(self, values: Values, op: SortOp, targets: Sequence[Stored]):
        self.comparator = op.comparator.block
        self.dim = op.dimension.value.data
        self.size = targets[0].shape[self.dim]
        self.columns = [values.memref_of(target) for target in targets]
        self.spares = [
            values.memref_of(values.memory.allocate(target.element, (self.size,)))
            for target in targets
        ]

    def sort_column(self, code: MlirCode, around: list[SSAValue]) -> None:
        """`around`: the indices of the column along the other dimensions."""

        def one_pass(
            code: MlirCode, _: SSAValue, carried: Sequence[SSAValue]
        ) -> Sequence[SSAValue]:
            (width,) = carried
            pair = code.add(arith.AddiOp(width, width))
            self._merge(code, around, width, pair)
            self._put_back(code, around)
            return [pair]

        passes = (self.size - 1).bit_length()
        code.loop(passes, one_pass, [code.constant(1, index)])

    def _at(self, around: list[SSAValue], place: SSAValue) -> list[SSAValue]:
        return [*around[: self.dim], place, *around[self.dim :]]

    def _merge(
        self, code: MlirCode, around: list[SSAValue], width: SSAValue, pair: SSAValue
    ) -> None:
        """Merges each pair of sorted runs of `width` elements into the spares."""
        end, last = (code.constant(n, index) for n in (self.size, self.size - 1))
        zero, one = (code.constant(n, index) for n in (0, 1))

        def one_place(
            code: MlirCode, place: SSAValue, fronts: Sequence[SSAValue]
        ) -> Sequence[SSAValue]:
            """`fronts`: the positions of the next elements of the two runs."""
            into = code.add(arith.RemUIOp(place, pair))
            start = code.add(arith.SubiOp(place, into))
            middle, stop = (
                code.add(arith.MinUIOp(code.add(arith.AddiOp(start, n)), end))
                for n in (width, pair)
            )
            is_start = code.add(arith.CmpiOp(into, zero, "eq"))
            left, right = (
                code.add(arith.SelectOp(is_start, begin, front))
                for begin, front in zip((place, middle), fronts, strict=True)
            )
            ours, theirs = (
                [code.load(column, self._at(around, safe)) for column in self.columns]
                for safe in (
                    code.add(arith.MinUIOp(front, last)) for front in (left, right)
                )
            )
            pairs = [x for p in zip(theirs, ours, strict=True) for x in p]
            (comes_first,) = _on_elements(code, self.comparator, pairs)
            has_left = code.add(arith.CmpiOp(left, middle, "ult"))
            has_right = code.add(arith.CmpiOp(right, stop, "ult"))
            takes_right = code.add(arith.AndIOp(has_right, comes_first))
            takes_right = code.add(arith.OrIOp(takes_right, code.invert(has_left)))
            for our, their, spare in zip(ours, theirs, self.spares, strict=True):
                chosen = code.add(arith.SelectOp(takes_right, their, our))
                code.store(chosen, spare, [place])
            after = [code.add(arith.AddiOp(front, one)) for front in (left, right)]
            return [
                code.add(arith.SelectOp(takes_right, left, after[0])),
                code.add(arith.SelectOp(takes_right, after[1], right)),
            ]

        code.loop(self.size, one_place, [zero, zero])

    def _put_back(self, code: MlirCode, around: list[SSAValue]) -> None:
        """Copies the spares to the column."""

        def one_place(code: MlirCode, place: SSAValue, _: Sequence[SSAValue]):
            for spare, column in zip(self.spares, self.columns, strict=True):
                moved = code.load(spare, [place])
                code.store(moved, column, self._at(around, place))
            return ()

        code.loop(self.size, one_place)


def _on_elements(
    code: MlirCode, block: Block, args: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """The values that a region on scalars yields for `args`."""
    known = dict[SSAValue, SSAValue](zip(block.args, args, strict=True))
    for op in block.ops:
        if isinstance(op, YieldOp):
            return [known[value] for value in op.values]
        assert isinstance(op, TensorOp)
        if isinstance(op, ConstantOp):
            assert op.splat is not None
            element = op.declared[0].element_type
            known[op.result] = code.constant(op.splat.value.data, element)
        else:
            known[op.result] = scalar(op, code, [known[x] for x in op.inputs])
    raise AssertionError("a region without tgraph.yield")
