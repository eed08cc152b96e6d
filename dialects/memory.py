"""What operations of any dialect say about the memory of their memrefs.

xDSL's memory effects say what an operation reads and writes. Planning memory needs to
know more, and these traits say it, as interfaces do in MLIR. A dialect whose operations
have them is planned as `tgraph` is, and need know nothing of it.

    class ReluOp(IRDLOperation):
        traits = traits_def(Elementwise())  # the last operand is written

    class WindowOp(IRDLOperation):
        traits = traits_def(NoMemoryEffect(), ViewLike())
"""

from collections.abc import Sequence, Set

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.traits import (
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
    OpTrait,
    get_effects,
)

from tensorplan.dialects import linalg_memory
from tensorplan.dialects.compatibility import AssumeAlignmentOp


class ViewLike(OpTrait):
    """The first result lies in the memory of the first operand, or in a part of it.

    MLIR's ViewLikeOpInterface.
    """


class DestinationStyle(MemoryEffect):
    """Writes some of its operands as a whole, and only reads the others, until it ends.

    MLIR's DestinationStyleOpInterface. As it stands, the last operand is written; a
    subclass may say otherwise. An operation that reads what its destination held
    before, or goes on when the next one starts, must not have this trait.
    """

    @classmethod
    def destinations(cls, op: Operation) -> Sequence[int]:
        """The operands that are written, by their numbers."""
        return (len(op.operands) - 1,)

    @classmethod
    def overwritable(cls, op: Operation) -> Sequence[int]:
        """The operands whose memory the first destination may be, best first.

        Those of which each element is read before the same element is written, and not
        again: MLIR's `bufferizesToElementwiseAccess`.
        """
        return ()

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance]:
        written = cls.destinations(op)
        return frozenset(
            EffectInstance(
                MemoryEffectKind.WRITE if index in written else MemoryEffectKind.READ,
                value,
            )
            for index, value in enumerate(op.operands)
            if isinstance(value.type, MemRefType)
        )


class Elementwise(DestinationStyle):
    """Each element of the last operand is made of those at its place in the others."""

    @classmethod
    def overwritable(cls, op: Operation) -> Sequence[int]:
        return range(len(op.operands) - 1)


_MEMREF_VIEWS = (
    AssumeAlignmentOp
    | memref.CastOp
    | memref.CollapseShapeOp
    | memref.ExpandShapeOp
    | memref.ExtractStridedMetaDataOp
    | memref.MemorySpaceCastOp
    | memref.ReinterpretCastOp
    | memref.SubviewOp
    | memref.ViewOp
)
"""xDSL's operations that would have the trait if xDSL had it."""


BUFFER = "tgraph.buffer"
"""On a `memref.reinterpret_cast` of a result: this is a buffer of its own, which only
lies in the result's memory, as a `memref.view` lies in an arena."""


def is_buffer(op: Operation) -> bool:
    """Whether the operation makes a buffer in the memory of a result."""
    return isinstance(op, memref.ReinterpretCastOp) and BUFFER in op.attributes


def is_view(op: Operation) -> bool:
    """Whether the first result lies in the first operand's memory."""
    return isinstance(op, _MEMREF_VIEWS) or op.has_trait(
        ViewLike, value_if_unregistered=False
    )


def destinations(op: Operation) -> Sequence[int]:
    """The operands that an operation writes as a whole and reads nothing of.

    None of an operation that does not say.
    """
    if trait := op.get_trait(DestinationStyle):
        return trait.destinations(op)
    if isinstance(op, memref.CopyOp):
        return (1,)
    return linalg_memory.overwritten(op)


def written_operands(op: Operation) -> Sequence[int]:
    """The operands that an operation says it writes, whether it reads them or not."""
    return linalg_memory.outputs(op) or destinations(op)


def overwritable(op: Operation) -> Sequence[int]:
    """The operands whose memory the first that is written may be: of each of their
    elements nothing is read after the same element is written."""
    if trait := op.get_trait(DestinationStyle):
        return trait.overwritable(op)
    if isinstance(op, memref.CopyOp):
        return (0,)
    return linalg_memory.elementwise_inputs(op)


def overwrites(op: Operation, value: SSAValue) -> bool:
    """Whether an operation writes all of a memref and reads nothing of it."""
    written, uses = destinations(op), _uses(op, value)
    return bool(uses) and all(index in written for index in uses)


def effects_on(op: Operation, value: SSAValue) -> tuple[bool, bool]:
    """Whether an operation reads, and whether it writes, what it has as operand.

    Both are true of an operation that does not say (`says_effects`).
    """
    uses = _uses(op, value)
    if outputs := linalg_memory.outputs(op):
        reads = [i not in outputs or linalg_memory.reads_output(op, i) for i in uses]
        return any(reads), any(i in outputs for i in uses)
    if written := destinations(op):
        return any(i not in written for i in uses), any(i in written for i in uses)
    effects = None if op.regions else get_effects(op)
    if effects is None:
        return True, True
    kinds = {e.kind for e in effects if e.value is None or e.value is value}
    return MemoryEffectKind.READ in kinds, MemoryEffectKind.WRITE in kinds


def says_effects(op: Operation) -> bool:
    """Whether an operation says what it does to the memory of its operands."""
    if linalg_memory.outputs(op) or destinations(op):
        return True
    return not op.regions and get_effects(op) is not None


def _uses(op: Operation, value: SSAValue) -> Sequence[int]:
    return [index for index, operand in enumerate(op.operands) if operand is value]
