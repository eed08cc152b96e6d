"""Writes `memref.dma_start` and `memref.dma_wait`, with a tag for each copy."""

from collections.abc import Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.memory import strides_between
from ....frontends.foreign import unregistered_op
from .copies import type_of


class Writer:
    """Makes the transfers of a function. Constants and tags are at its beginning."""

    def __init__(self, func: FuncOp):
        first = func.body.blocks[0].first_op
        assert first is not None
        self._begin = InsertPoint.before(first)
        self._numbers: dict[int, SSAValue] = {}

    def constant(self, number: int) -> SSAValue:
        if number not in self._numbers:
            made = arith.ConstantOp(IntegerAttr(number, IndexType()))
            made.result.name_hint = f"c{number}"
            Rewriter.insert_op(made, self._begin)
            self._numbers[number] = made.result
        return self._numbers[number]

    def tag(self) -> SSAValue:
        """A tag of one element."""
        tag = memref.AllocaOp.get(i32, shape=[1])
        tag.memref.name_hint = "tag"
        Rewriter.insert_op(tag, self._begin)
        return tag.memref

    def start(
        self, copy: memref.CopyOp, source: SSAValue, target: SSAValue, tag: SSAValue
    ) -> Operation:
        """Makes the start of a copy from `source` to `target`, which have the types of
        the copy's operands."""
        ends = source, self._origin(source), target, self._origin(target)
        operands = *ends, self._count(copy), tag, [self.constant(0)]
        if strides := strides_between(source, target):
            start = _at_strides(operands, [self.constant(n) for n in strides])
        else:
            start = memref.DmaStartOp.get(*operands)
        start.location = copy.location
        return start

    def wait(self, copy: memref.CopyOp, tag: SSAValue) -> Operation:
        wait = memref.DmaWaitOp.get(tag, [self.constant(0)], self._count(copy))
        wait.location = copy.location
        return wait

    def _origin(self, value: SSAValue) -> Sequence[SSAValue]:
        return [self.constant(0)] * type_of(value).get_num_dims()

    def _count(self, copy: memref.CopyOp) -> SSAValue:
        return self.constant(type_of(copy.source).element_count())


def _at_strides(
    operands: Sequence[SSAValue | Sequence[SSAValue]], strides: Sequence[SSAValue]
) -> Operation:
    """A `memref.dma_start` with strides, which xDSL's operation does not support."""
    values: list[SSAValue] = []
    for each in operands:
        values += [each] if isinstance(each, SSAValue) else each
    return unregistered_op(memref.DmaStartOp.name).create(operands=[*values, *strides])
