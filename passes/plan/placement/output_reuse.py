"""Finds memory of the caller that other buffers may use, for plan-memory.

The memory of a result is free until the result is written, that of a variable between
the last read of its old contents and the write of the new ones, and that of a donated
argument after its last read.

    func.func @f(%r: memref<64xf32> {tgraph.result = 0 : i32}, ...)
      %0 = memref.reinterpret_cast %r to offset: [16], sizes: [4, 8], strides: [8, 1]
           {tgraph.buffer} : ... to memref<4x8xf32, strided<[8, 1], offset: 16>>

`tgraph.buffer` marks a buffer of its own, like a `memref.view` of an arena. In the end,
the caller expects only the result, or the new contents, in the memory.

If an operation reads and writes element by element, it may also compute a buffer of the
same size from the argument in its place, or the result from such a buffer: the bytes
are handed over in one step.

A view has the element type of the viewed memref, so only buffers with the argument's
element type can lie there. Their types get an offset, so all operations that use them
must accept any strides.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    NoneAttr,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ....analysis.allocations import Allocation, caller_uses, erase_deallocs
from ....analysis.control_flow import ControlFlow
from ....analysis.functions import caller_memories
from ....analysis.layout import Layout, memref_type
from ....analysis.liveness import Uses, is_reusable
from ....analysis.overwriting import may_replace, replacements
from ....dialects.diagnostics import name_of
from ....dialects.memory import BUFFER, LINALG, is_buffer
from ....dialects.tgraph.base import AnyMemRef, TensorOp, element_bytes
from ....planning.output_reuse import HandOver, HandOvers


@dataclass(frozen=True, slots=True)
class Output:
    """An argument in whose memory other buffers may lie."""

    argument: SSAValue
    type: AnyMemRef
    size: int  # bytes
    uses: Uses
    is_given: bool  # whether it has contents when the function starts

    @property
    def space(self) -> Attribute:
        return self.type.memory_space

    @property
    def name(self) -> str:
        return f"%{self.argument.name_hint or 'argument'}"


def find_outputs(func: FuncOp, flow: ControlFlow) -> list[Output]:
    """The arguments whose memory has a static size and is not reused yet, in order."""
    outputs: list[Output] = []
    for memory in caller_memories(func):
        argument = memory.argument
        if any(is_buffer(use.operation) for use in argument.uses):
            continue
        type = cast(AnyMemRef, argument.type)
        if not isinstance(type.layout, NoneAttr) or not is_reusable(type):
            continue
        if uses := caller_uses(memory, func, flow):
            size = prod(type.get_shape()) * element_bytes(type.element_type)
            outputs.append(Output(argument, type, size, uses, memory.is_given))
    return outputs


def hand_overs(
    allocations: Sequence[Allocation], outputs: Sequence[Output], flow: ControlFlow
) -> HandOvers:
    """The steps in which an operation may compute an allocation from an output, or an
    output from an allocation, in the same bytes."""
    buffers: dict[SSAValue, int] = {
        a.alloc.memref: n for n, a in enumerate(allocations)
    }
    places = {output.argument: n for n, output in enumerate(outputs)}
    found: dict[tuple[int, int], list[HandOver]] = {}
    for op, step in flow.step.items():
        for source, target in replacements(op):
            buffer, other = (target, source) if source in places else (source, target)
            if buffer not in buffers or other not in places:
                continue
            if may_replace(op, source, target):
                pair = buffers[buffer], places[other]
                found.setdefault(pair, []).append(HandOver(step, other is target))
    return found


def is_movable(alloc: memref.AllocOp) -> bool:
    """Whether all operations that use an allocation accept another offset."""
    values = [alloc.memref]
    for value in values:  # the body appends
        for use in value.uses:
            op = use.operation
            if isinstance(op, memref.ReinterpretCastOp):
                if _layout(op.result.type) is None:
                    return False
                values.append(op.result)
            elif not isinstance(op, _ANY_STRIDES) and name_of(op) not in LINALG:
                return False
    return True


def move(allocation: Allocation, output: SSAValue, offset: int) -> None:
    """Moves an allocation into an argument's memory, at an offset in bytes."""
    erase_deallocs([allocation])
    alloc = allocation.alloc
    type = alloc.memref.type
    first = offset // element_bytes(type.element_type)
    view = _view(output, Layout.contiguous(type.get_shape()), type, first)
    view.attributes[BUFFER] = UnitAttr()
    view.location = alloc.location
    pending = [(cast(Operation, alloc), view)]
    for old, new in pending:  # the body appends
        for use in list(old.results[0].uses):
            op = use.operation
            if isinstance(op, memref.ReinterpretCastOp):
                layout = _layout(op.result.type)
                assert layout is not None
                moved = _view(new.result, layout, op.result.type, first)
                moved.attributes |= op.attributes
                moved.location = op.location
                pending.append((op, moved))
    for old, new in reversed(pending):
        Rewriter.replace_op(old, new)


_ANY_STRIDES = (
    TensorOp | memref.CopyOp | memref.LoadOp | memref.StoreOp | memref.DeallocOp
)
"""Operations that accept any layout of a memref. linalg's operations do, too."""


def _layout(type: AnyMemRef) -> Layout | None:
    """The layout of a type; None if it is not static."""
    strides, offset, shape = type.get_strides(), type.get_offset(), type.get_shape()
    if strides is None or offset is None or DYNAMIC_INDEX in shape:
        return None
    known = [stride for stride in strides if stride is not None]
    return Layout(shape, tuple(known), offset) if len(known) == len(strides) else None


def _view(
    source: SSAValue, layout: Layout, type: AnyMemRef, first: int
) -> memref.ReinterpretCastOp:
    """A view of `source` with a layout relative to the element `first`."""
    layout = replace(layout, offset=layout.offset + first)
    return memref.ReinterpretCastOp(
        source,
        (),
        (),
        (),
        (layout.offset,),
        layout.shape,
        layout.strides,
        memref_type(type.element_type, layout, type.memory_space),
    )
