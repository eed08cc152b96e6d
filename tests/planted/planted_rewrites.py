"""Plants faults into plans of the pipeline, by rewriting level 3 IR.

Each rewrite preserves the program's meaning if no buffers share memory, and returns
whether it changed anything. If plan-check accepts the rewritten program, the program
must still compute the same values.
"""

from collections.abc import Callable, Sequence
from random import Random

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    StridedLayoutAttr,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from tensorplan.dialects.memory import destinations, is_buffer
from tensorplan.dialects.strides import contiguous_strides
from tensorplan.dialects.tgraph.base import element_bytes

Rewrite = Callable[[FuncOp, Random], bool]


def placed(func: FuncOp) -> list[tuple[memref.ViewOp, int]]:
    """The buffers at constant offsets, with their offsets in bytes."""
    found: list[tuple[memref.ViewOp, int]] = []
    for op in func.walk():
        if isinstance(op, memref.ViewOp):
            constant = op.byte_shift.owner
            if isinstance(constant, arith.ConstantOp):
                assert isinstance(constant.value, IntegerAttr)
                found.append((op, constant.value.value.data))
    return found


def move_to(view: memref.ViewOp, offset: int) -> None:
    constant = arith.ConstantOp(IntegerAttr(offset, IndexType()))
    Rewriter.insert_op(constant, InsertPoint.before(view))
    view.operands[1] = constant.result


def size_of(value: SSAValue) -> int:
    type = value.type
    assert isinstance(type, MemRefType)
    return type.element_count() * element_bytes(type.element_type)


def a_buffer_at_anothers_place(func: FuncOp, random: Random) -> bool:
    found = placed(func)
    if not found:
        return False
    view, offset = random.choice(found)
    room = size_of(view.source) - size_of(view.result)
    fits = sorted({o for _, o in found if o != offset and o <= room})
    if not fits:
        return False
    move_to(view, random.choice(fits))
    return True


def a_buffer_a_bit_lower(func: FuncOp, random: Random) -> bool:
    found = [(view, offset) for view, offset in placed(func) if offset]
    if not found:
        return False
    view, offset = random.choice(found)
    move_to(view, offset - 64)
    return True


def two_buffers_exchanged(func: FuncOp, random: Random) -> bool:
    found = placed(func)
    if len(found) < 2:
        return False
    (a, first), (b, second) = random.sample(found, 2)
    if first == second or a.source is not b.source:
        return False
    move_to(a, second)
    move_to(b, first)
    return True


def an_operation_later(func: FuncOp, random: Random) -> bool:
    """Moves one operation of a random block past the operations that access none of its
    buffers. Chooses the operation that can move the furthest."""
    blocks = [b for op in func.walk() for region in op.regions for b in region.blocks]
    steps = [op for op in random.choice(blocks).ops if _is_step(op)]
    random.shuffle(steps)
    passed = {step: _passed(step) for step in steps}
    step = max(steps, key=lambda step: sum(map(_is_step, passed[step])), default=None)
    if step is None or not any(map(_is_step, passed[step])):
        return False
    step.detach()
    Rewriter.insert_op(step, InsertPoint.after(passed[step][-1]))
    return True


def _passed(step: Operation) -> Sequence[Operation]:
    """The operations after `step` up to the first that accesses one of its buffers, a
    dealloc or the terminator."""
    mine, passed = _memories(step), list[Operation]()
    for op in _after(step):
        if isinstance(op, memref.DeallocOp) or _ends(op) or mine & _memories(op):
            break
        passed.append(op)
    return passed


def an_arena_freed_early(func: FuncOp, random: Random) -> bool:
    frees = [op for op in func.walk() if isinstance(op, memref.DeallocOp)]
    if not frees:
        return False
    free = random.choice(frees)
    alloc = free.memref.owner
    if not isinstance(alloc, memref.AllocOp) or alloc.parent is not free.parent:
        return False
    following = list(_after(alloc))
    before = following[: following.index(free)]
    if not before:
        return False
    free.detach()
    Rewriter.insert_op(free, InsertPoint.after(random.choice(before)))
    return True


def a_result_in_place_of_an_operand(func: FuncOp, random: Random) -> bool:
    """Replaces an operation's destination by an operand whose last use it is."""
    found = [
        (source, target)
        for op in func.walk()
        for target in (op.operands[index] for index in destinations(op))
        for source in op.operands
        if source is not target
        and source.type == target.type
        and _is_last_use(source, op)
        and _is_first_use(target, op)
    ]
    if not found:
        return False
    source, target = random.choice(found)
    target.replace_all_uses_with(source)
    return True


def a_lent_buffer_elsewhere(func: FuncOp, random: Random) -> bool:
    """Moves a buffer in the memory of a result to another offset."""
    found = [op for op in func.walk() if is_buffer(op)]
    if not found:
        return False
    op = random.choice(found)
    type = op.results[0].type
    assert isinstance(type, MemRefType)
    room = size_of(op.operands[0]) - size_of(op.results[0])
    offset = random.randint(0, max(room, 0) // element_bytes(type.element_type))
    if offset == type.get_offset():
        return False
    layout = StridedLayoutAttr(contiguous_strides(type.get_shape()), offset)
    new = MemRefType(type.element_type, type.get_shape(), layout, type.memory_space)
    op.properties["static_offsets"] = DenseArrayBase.from_list(i64, [offset])
    Rewriter.replace_value_with_new_type(op.results[0], new)
    return True


REWRITES: Sequence[Rewrite] = (
    a_buffer_at_anothers_place,
    a_buffer_a_bit_lower,
    two_buffers_exchanged,
    an_operation_later,
    an_arena_freed_early,
    a_result_in_place_of_an_operand,
    a_lent_buffer_elsewhere,
)


def _after(op: Operation) -> list[Operation]:
    """The operations after `op` in its block."""
    assert op.parent is not None
    ops = list(op.parent.ops)
    return ops[ops.index(op) + 1 :]


def _ends(op: Operation) -> bool:
    return op.has_trait(IsTerminator, value_if_unregistered=False)


def _is_step(op: Operation) -> bool:
    is_free = isinstance(op, memref.DeallocOp)
    return not (op.results or is_free or _ends(op)) and bool(_memories(op))


def _memories(op: Operation) -> set[SSAValue]:
    """The buffers and other memory that `op` may access."""
    return {
        _memory(value)
        for inner in op.walk()
        for value in inner.operands
        if isinstance(value.type, MemRefType)
    }


def _memory(value: SSAValue) -> SSAValue:
    while isinstance(op := value.owner, Operation) and op.operands:
        if isinstance(op, memref.ViewOp) or is_buffer(op) or op.regions:
            break
        value = op.operands[0]
    return value


def _is_last_use(value: SSAValue, op: Operation) -> bool:
    """Whether `value` is a buffer defined in the block of `op` and unused after it."""
    view = _memory(value)
    if not isinstance(view.owner, memref.ViewOp) or view.owner.parent is not op.parent:
        return False
    return not any(view in _memories(other) for other in _after(op))


def _is_first_use(value: SSAValue, op: Operation) -> bool:
    view = value.owner
    if not isinstance(view, memref.ViewOp) or view.parent is not op.parent:
        return False
    following = _after(view)
    before = following[: following.index(op)]
    return not any(value in _memories(other) for other in before)
