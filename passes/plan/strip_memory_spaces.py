"""`plan-strip-memory-spaces`: removes memory spaces, to run all devices in host memory.

    %0 = memref.alloc() : memref<4xf32, "cpu:0">
    memref.dma_start %0[%c0], %far[%c0], %c4, %tag[%c0]   // : "cpu:0" to "psram"
    ...
    memref.dma_wait %tag[%c0], %c4

    %0 = memref.alloc() : memref<4xf32>
    memref.copy %0, %far
    ...

MLIR has no LLVM address space for `"cpu:0"`, so remove the memory spaces before you
lower a program to run in a single process. MLIR lowers no transfer between memories
either, so a `memref.dma_start` becomes a copy. A plan is sound whenever the transfer
copies before its wait.

Needs: memrefs (levels 2 to 4).
Leaves: the same without memory spaces.
Does not: merge the arenas of different devices; copy elements at strides other than all
rows of a memref, to or from consecutive elements. If the number of elements or an index
of a transfer is not a constant, `plan-run` rejects the copy, although it runs the
transfer itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StridedLayoutAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.functions import check_memrefs
from ...dialects.diagnostics import LocatedError, name_of
from ...dialects.memory import (
    check_dma_start,
    check_same_elements,
    dma_start,
    moves_rows,
    transfer_of,
)
from ...dialects.strides import contiguous_strides
from ...dialects.tgraph.base import AnyMemRef, AnyTensor, device_of, on_device
from ..convert.linalg.types import retype


@dataclass(frozen=True)
class PlanStripMemorySpaces(ModulePass):
    """Removes the memory space of every memref, and the device of every tensor."""

    name = "plan-strip-memory-spaces"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_memrefs(op)
        for inner in list(op.walk()):
            if name_of(inner) == memref.DmaStartOp.name:
                _copy_at_once(inner)
            elif name_of(inner) == memref.DmaWaitOp.name:
                _erase_wait(inner)
        retype(op, _without_space)


def _without_space(type: Attribute) -> Attribute:
    if isinstance(type, TensorType):  # in the body of a fusion
        tensor = cast(AnyTensor, type)
        return on_device(tensor, None) if device_of(tensor) else tensor
    if not isinstance(type, MemRefType):
        return type
    memref = cast(AnyMemRef, type)
    return MemRefType(memref.element_type, memref.shape, memref.layout)


def _copy_at_once(op: Operation) -> None:
    check_dma_start(op)
    dma = dma_start(op)
    assert dma is not None
    if dma.strides and not moves_rows(dma):
        raise LocatedError(
            f"{name_of(op)} moves elements at strides, expected consecutive ones", op
        )
    check_same_elements(op, dma)
    source, target = dma.source, dma.target
    transfer, shapes = transfer_of(op), (_shape(source), _shape(target))
    is_whole = transfer and transfer.reads_all and transfer.fills
    if not is_whole or shapes[0] != shapes[1]:
        source = _elements(source, dma.source_index, dma.elements, op)
        target = _elements(target, dma.target_index, dma.elements, op)
    copy = memref.CopyOp(source, target)
    copy.location = op.location
    Rewriter.replace_op(op, copy, [])
    _erase_unused(dma.tag)


def _erase_wait(op: Operation) -> None:
    tag = op.operands[0]
    Rewriter.erase_op(op)
    _erase_unused(tag)


def _erase_unused(tag: SSAValue) -> None:
    if isinstance(tag.owner, memref.AllocaOp) and not tag.uses:
        Rewriter.erase_op(tag.owner)


def _shape(value: SSAValue) -> Sequence[int]:
    return cast(AnyMemRef, value.type).get_shape()


def _elements(
    value: SSAValue, index: Sequence[SSAValue], count: SSAValue, op: Operation
) -> SSAValue:
    """A view of `count` consecutive elements of a memref, from `index` on."""
    type = cast(AnyMemRef, value.type)
    strides, offset = contiguous_strides(type.get_shape()), type.get_offset()
    if DYNAMIC_INDEX in (*strides, offset) or type.get_strides() != strides:
        raise LocatedError(
            f"{name_of(op)} has {type}, expected elements that follow one another at a "
            "static offset",
            op,
        )
    assert offset is not None
    numbers = [_number(each) for each in index]
    first: SSAValue | int
    if None in numbers:
        first = _sum(index, strides, offset, op)
    else:
        first = offset + sum(map(mul, cast(list[int], numbers), strides))
    known = _number(count)
    size: SSAValue | int = count if known is None else known
    layout = StridedLayoutAttr([1], first if isinstance(first, int) else None)
    shape = [size if isinstance(size, int) else DYNAMIC_INDEX]
    part = memref.ReinterpretCastOp.from_dynamic(
        *(value, [first], [size], [1]),
        MemRefType(type.element_type, shape, layout, type.memory_space),
    )
    part.location = op.location
    Rewriter.insert_op(part, InsertPoint.before(op))
    return part.result


def _sum(
    index: Sequence[SSAValue], strides: Sequence[int], offset: int, op: Operation
) -> SSAValue:
    """Computes the linear index of an element before an operation."""
    total = arith.ConstantOp(IntegerAttr(offset, IndexType()))
    made: list[Operation] = [total]
    last = total.result
    for number, stride in zip(index, strides, strict=True):
        factor = arith.ConstantOp(IntegerAttr(stride, IndexType()))
        product = arith.MuliOp(number, factor)
        added = arith.AddiOp(last, product)
        made += factor, product, added
        last = added.result
    for each in made:
        each.location = op.location
    Rewriter.insert_op(made, InsertPoint.before(op))
    return last


def _number(value: SSAValue) -> int | None:
    """The value of an integer constant; None for any other value."""
    constant = value.owner
    if isinstance(constant, arith.ConstantOp):
        if isinstance(constant.value, IntegerAttr):
            return constant.value.value.data
    return None
