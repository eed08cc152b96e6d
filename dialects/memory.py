"""Traits by which operations of any dialect declare their memory effects.

xDSL's memory effects declare which memory an operation reads and writes. Memory
planning needs more, and these traits declare it, like interfaces in MLIR. An operation
of any dialect that has these traits is planned like those of `tgraph`, without
depending on `tgraph`.

    class ReluOp(IRDLOperation):
        traits = traits_def(Elementwise())  # the last operand is written

    class WindowOp(IRDLOperation):
        traits = traits_def(NoMemoryEffect(), ViewLike())

On tensors, an operation in destination style has one result for each operand that it
writes, of the same type; on memrefs it has no results.
"""

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple, cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, UnrankedMemRefType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import (
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
    OpTrait,
    get_effects,
)

from . import linalg_memory
from .diagnostics import LocatedError, name_of
from .strides import contiguous_strides, rows_of
from .tags import Fault, Waits, waits_in


class ViewLike(OpTrait):
    """The first result is a view of all or part of the first operand's memory.

    MLIR's ViewLikeOpInterface.
    """


class DestinationStyle(MemoryEffect):
    """Completely writes some operands, and only reads the others, before it returns.

    MLIR's DestinationStyleOpInterface. By default, the last operand is written; a
    subclass may override this. An operation that reads the previous contents of its
    destination, or is still running when the next operation starts, must not have this
    trait.
    """

    @classmethod
    def destinations(cls, op: Operation) -> Sequence[int]:
        """The indices of the operands that `op` writes."""
        return (len(op.operands) - 1,)

    @classmethod
    def overwritable(cls, op: Operation) -> Sequence[int]:
        """The indices of the operands that may share memory with the first destination,
        best first.

        The operation must not read an element of such an operand after it has written
        the same element of the destination: MLIR's `bufferizesToElementwiseAccess`.
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
    """Each element of the result depends only on the same element of each operand."""

    @classmethod
    def overwritable(cls, op: Operation) -> Sequence[int]:
        return range(len(op.operands) - 1)


class Transfer(NamedTuple):
    """Data moves from one memref to another."""

    source: SSAValue
    target: SSAValue
    reads_all: bool  # whether it is known to read all of the source
    fills: bool  # whether it is known to write all of the target


class DmaStart(NamedTuple):
    """The operands of a `memref.dma_start`, which copies `elements` consecutive
    elements of the source's memory to the target's, starting at an index of each."""

    source: SSAValue
    source_index: Sequence[SSAValue]
    target: SSAValue
    target_index: Sequence[SSAValue]
    elements: SSAValue  # their number
    tag: SSAValue
    tag_index: Sequence[SSAValue]
    strides: Sequence[SSAValue]
    """For a memref whose elements are not consecutive: the distance between two rows,
    and the elements in each row. Empty otherwise."""


@dataclass(frozen=True)
class Asynchronous(OpTrait):
    """Starts work on its memrefs that continues until another operation waits for it.

        class StartOp(IRDLOperation):  # %token = npu.start %from, %to
            traits = traits_def(Asynchronous(waits=("npu.wait",)))

    The operation returns a token. Each user of the token either waits (its name is in
    `waits`, and it returns no token), or returns a token that also stands for this
    operation (its name is in `joins`). The memory is free after the first wait that
    follows in the block of the start. A subclass may override `waits_of`.
    """

    waits: tuple[str, ...]
    joins: tuple[str, ...] = ()

    def starts(self, op: Operation) -> bool:
        """Whether `op` is asynchronous. Without a token, it waits itself."""
        return bool(op.results)

    def transfer_of(self, op: Operation) -> "Transfer | None":
        """The data that `op` moves between two memrefs; None if it moves none."""
        return None

    def is_local_wait(self, op: Operation) -> bool:
        """Whether `op` and its waits match within the function: no caller can wait for
        `op`, or start other work that these waits end."""
        return True

    def fault_of(self, op: Operation) -> Fault | None:
        """A definite error in how `op` is waited for; None if none is known."""
        return None

    def waits_of(self, op: Operation) -> Sequence[Operation]:
        """Waits of which one ends `op` on every path; empty if they are not known."""
        found: list[Operation] = []
        tokens: dict[SSAValue, None] = dict.fromkeys(op.results)
        pending = list(tokens)
        for token in pending:  # grows during the loop
            for user in (use.operation for use in token.uses):
                joined = [r for r in user.results if r.type == token.type]
                if joined and name_of(user) in (*self.waits, *self.joins):
                    new = [t for t in joined if t not in tokens]
                    tokens.update(dict.fromkeys(new))
                    pending += new
                elif name_of(user) not in self.waits or _holds_memref(user):
                    return ()
                elif not _may_leave_some(user):
                    found.append(user)
        return _after(op, found)[:1]


@dataclass(frozen=True)
class AsynchronousByTag(Asynchronous):
    """Signals completion in an element of its third memref, the tag, as in MLIR.

    The number of elements that move is the operand before the tag, or the last operand
    if `is_number_last`. In a wait, it is the last operand.
    """

    is_number_last: bool = False

    def starts(self, op: Operation) -> bool:
        return True

    def transfer_of(self, op: Operation) -> Transfer | None:
        if len(memrefs := list(filter(is_memref, op.operands))) != 3:
            return None  # not valid
        source, target, _ = memrefs
        reads_all = fills = False
        if (dma := dma_start(op)) and not dma.strides:
            reads_all = _covers(dma.source, dma.source_index, dma.elements)
            fills = _covers(dma.target, dma.target_index, dma.elements)
        elif dma:
            reads_all = fills = moves_rows(dma)
        return Transfer(source, target, reads_all, fills)

    def fault_of(self, op: Operation) -> Fault | None:
        """Finds errors only for a tag that is local to the function."""
        if not self.is_local_wait(op) or (tag := self._tag_of(op)) is None:
            return None
        return tag.fault_of(op, self.waits[0])

    def is_local_wait(self, op: Operation) -> bool:
        """False for a tag that is a global or an argument: a caller may use it, too."""
        *_, tag = filter(is_memref, op.operands)
        return isinstance(tag.owner, memref.AllocOp | memref.AllocaOp)

    def waits_of(self, op: Operation) -> Sequence[Operation]:
        """The waits for the tag element after which no transfer with this element is in
        flight. Empty if the tag may have aliases, as a global or a view has."""
        tag = self._tag_of(op)
        waits = tag.of.get(op, ()) if tag else ()
        number = _number_or_value(op.operands[self._count_at(op)])
        is_whole = all(_number_or_value(w.operands[-1]) == number for w in waits)
        return waits if is_whole else ()

    def _count_at(self, op: Operation) -> int:
        """The index of the operand of a start that is the number of elements."""
        *_, tag = (i for i, v in enumerate(op.operands) if is_memref(v))
        return len(op.operands) - 1 if self.is_number_last else tag - 1

    def _tag_of(self, op: Operation) -> Waits | None:
        """How the transfers with the tag element of `op` end; None if unknown."""
        if self.transfer_of(op) is None:
            return None
        *_, tag = (i for i, v in enumerate(op.operands) if is_memref(v))
        owner = op.operands[tag].owner
        if isinstance(owner, Block):
            region = owner.parent if is_entry(owner) else None
        elif isinstance(owner, memref.AllocOp | memref.AllocaOp):
            region = owner.parent_region()
        else:
            return None
        if region is None:
            return None
        uses = {use.operation: use.index for use in op.operands[tag].uses}
        users = list(uses)
        starts = {user: None for user in users if name_of(user) == name_of(op)}
        if any(any(map(is_memref, x.operands[uses[x] + 1 :])) for x in starts):
            return None  # a transfer moves tags
        waits = {user: None for user in users if name_of(user) in self.waits}
        others = [user for user in users if user not in starts and user not in waits]
        if any(map(_holds_memref, others)):
            return None
        if not all(freed(user) or is_before(user, op) for user in others):
            return None
        if any(isinstance(user, CallOp) for user in others):
            return None  # the callee may start others
        count = len(next(iter(waits)).operands) - 2 if waits else 0
        elements = {user: _element(user, count) for user in (*starts, *waits)}
        here = elements[op]
        if any(x != here and _may_be_same(x, here) for x in elements.values()):
            return None
        alike = [user for user, element in elements.items() if element == here]
        is_constant = not any(isinstance(index, SSAValue) for index in here)
        return waits_in(
            region, [x for x in alike if x in starts], waits, alike, is_constant
        )


class Barrier(OpTrait):
    """Several agents run the function's code at once, and wait here for one another.

    Between two barriers, each agent may be at any operation, also in a branch that
    another agent does not take. All agents share the buffers, so one agent may read
    what another writes there.
    """


_GPU = Asynchronous(
    waits=("gpu.wait",),
    joins=tuple(
        f"gpu.{name}"
        for name in ("alloc", "dealloc", "launch", "launch_func", "memcpy", "memset")
    ),
)

_ASYNCHRONOUS: Mapping[str, Asynchronous] = {
    "affine.dma_start": AsynchronousByTag(("affine.dma_wait",), is_number_last=True),
    "async.execute": Asynchronous(("async.await",), joins=("async.execute",)),
    **{name: _GPU for name in _GPU.joins},
    "memref.dma_start": AsynchronousByTag(("memref.dma_wait",)),
    "nvgpu.device_async_copy": Asynchronous(
        ("nvgpu.device_async_wait",), joins=("nvgpu.device_async_create_group",)
    ),
}
"""Operations to which MLIR's dialects do not attach the trait, but which qualify."""

_STARTS = {
    wait: start
    for start, trait in _ASYNCHRONOUS.items()
    if isinstance(trait, AsynchronousByTag)
    for wait in trait.waits
}


def idle_wait(op: Operation) -> Fault | None:
    """An error in the wait `op`, if nothing starts with its tag, and the function makes
    the tag and passes it to no other. Other waits are checked from their starts."""
    wait = name_of(op)
    if not (start := _STARTS.get(wait)):
        return None
    tag = next(filter(is_memref, op.operands))
    if not isinstance(tag.owner, memref.AllocOp | memref.AllocaOp):
        return None
    known = (wait, 0), ("memref.dealloc", 0), ("memref.load", 0), ("memref.store", 1)
    if any((name_of(use.operation), use.index) not in known for use in tag.uses):
        return None
    return Fault(f"{wait} waits for nothing, expected {start} with its tag", op)


LINALG = frozenset(
    f"linalg.{name}"
    for name in """
    abs add batch_matmul batch_matvec batch_mmt4d batch_reduce_matmul batch_vecmat
    broadcast ceil contract conv_1d conv_1d_ncw_fcw conv_1d_nwc_wcf conv_2d
    conv_2d_nchw_fchw conv_2d_nchw_fchw_q conv_2d_ngchw_fgchw conv_2d_ngchw_gfchw
    conv_2d_ngchw_gfchw_q conv_2d_nhwc_fhwc conv_2d_nhwc_fhwc_q conv_2d_nhwc_hwcf
    conv_2d_nhwc_hwcf_q conv_2d_nhwgc_gfhwc conv_2d_nhwgc_gfhwc_q conv_3d
    conv_3d_ncdhw_fcdhw conv_3d_ndhwc_dhwcf conv_3d_ndhwc_dhwcf_q copy
    depthwise_conv_1d_ncw_cw depthwise_conv_1d_nwc_wc depthwise_conv_1d_nwc_wcm
    depthwise_conv_2d_nchw_chw depthwise_conv_2d_nhwc_hwc depthwise_conv_2d_nhwc_hwc_q
    depthwise_conv_2d_nhwc_hwcm depthwise_conv_2d_nhwc_hwcm_q
    depthwise_conv_3d_ncdhw_cdhw depthwise_conv_3d_ndhwc_dhwc
    depthwise_conv_3d_ndhwc_dhwcm div div_unsigned dot elementwise erf exp fill
    fill_rng_2d floor generic log map matmul matvec max min mmt4d mul negf pack
    pooling_nchw_max pooling_nchw_sum pooling_ncw_max pooling_ncw_sum pooling_ndhwc_max
    pooling_ndhwc_min pooling_ndhwc_sum pooling_nhwc_max pooling_nhwc_max_unsigned
    pooling_nhwc_min pooling_nhwc_min_unsigned pooling_nhwc_sum pooling_nwc_max
    pooling_nwc_max_unsigned pooling_nwc_min pooling_nwc_min_unsigned pooling_nwc_sum
    powf quantized_batch_matmul quantized_matmul reciprocal reduce round rsqrt select
    softmax sqrt square sub tanh transpose unpack vecmat winograd_filter_transform
    winograd_input_transform winograd_output_transform
    """.split()
)
"""MLIR's structured operations, of which xDSL defines some."""

_SYNCHRONOUS = LINALG | {
    *(f"affine.{name}" for name in ("load", "prefetch", "store")),
    *("affine.vector_load", "affine.vector_store", "affine.dma_wait"),
    *("memref.dma_wait", "memref.generic_atomic_rmw", "memref.prefetch"),
    *("bufferization.clone", "bufferization.dealloc"),
    *(f"vector.{name}" for name in ("compressstore", "expandload", "gather", "load")),
    *(f"vector.{name}" for name in ("mask", "maskedload", "maskedstore", "scatter")),
    *(f"vector.{name}" for name in ("store", "transfer_read", "transfer_write")),
    *("dart.operation", "dart.schedule"),  # of snax-mlir, done at the next barrier
}
"""Operations that access memrefs only while they run; xDSL declares no effects."""

_VIEWS = frozenset(
    f"memref.{name}"
    for name in """
    assume_alignment cast collapse_shape expand_shape extract_strided_metadata
    memory_space_cast reinterpret_cast subview transpose view
    """.split()
)
"""MLIR's views, to which xDSL attaches no trait `ViewLike`."""


_BARRIERS = ("snax.cluster_sync_op",)
"""Operations of other projects that act as a `Barrier`."""

BUFFER = "tgraph.buffer"
"""Attribute of a `memref.reinterpret_cast` of an argument, or of a `memref.view` of
bytes that control flow forwards. The result is a separate buffer that lies in this
memory, as a `memref.view` lies in an arena."""

ARENA = "tgraph.arena"
"""Attribute of an argument, or of an operation that makes a memref: the memref is an
arena, without contents at the start, whose views are separate buffers. An integer is
its alignment in bytes. An allocation has its own. Other memory is one buffer, of which
views are parts."""

ALIGNMENT = "tgraph.alignment"
"""Integer attribute of a view of an arena: the alignment of its buffer in bytes, if
other buffers give the arena a larger one."""


def is_buffer(op: Operation) -> bool:
    """Whether `op` makes a buffer in the memory of an argument."""
    return isinstance(op, memref.ReinterpretCastOp) and BUFFER in op.attributes


def is_view(op: Operation) -> bool:
    """Whether the first result is a view of the first operand's memory."""
    return name_of(op) in _VIEWS or op.has_trait(ViewLike, value_if_unregistered=False)


def root_of(value: SSAValue) -> SSAValue:
    """The memref of which `value` is a view, through all views, or `value` itself."""
    while isinstance(value.owner, Operation) and is_view(value.owner):
        value = value.owner.operands[0]
    return value


def maker_of(value: SSAValue) -> Operation:
    """The operation that makes a value; for a block argument, the operation around the
    block."""
    owner = value.owner
    op = owner if isinstance(owner, Operation) else owner.parent_op()
    assert op is not None
    return op


def is_entry(block: Block) -> bool:
    """Whether `block` is the entry block of a function."""
    func = block.parent_op()
    return isinstance(func, FuncOp) and block is func.body.first_block


def is_barrier(op: Operation) -> bool:
    """Whether several agents run the code around `op`, and wait here for each other."""
    return name_of(op) in _BARRIERS or op.has_trait(
        Barrier, value_if_unregistered=False
    )


def asynchronous(op: Operation) -> Asynchronous | None:
    """The trait that says how `op` is waited for; None if `op` is not known to be
    asynchronous."""
    trait = op.get_trait(Asynchronous) or _ASYNCHRONOUS.get(name_of(op))
    return trait if trait and trait.starts(op) else None


def is_done_at_its_end(op: Operation) -> bool:
    """Whether `op` is known to access its memrefs only while it runs."""
    if asynchronous(op):
        return False
    return name_of(op) in _SYNCHRONOUS or get_effects(op) is not None


def freed(op: Operation) -> Sequence[int]:
    """The indices of the operands whose memory `op` frees or may free."""
    if isinstance(op, memref.DeallocOp):
        return (0,)
    if name_of(op) != "bufferization.dealloc":
        return ()
    first, *_ = linalg_memory.segments_of(op) or (len(op.operands),)
    return range(first)


def transfer_of(op: Operation) -> Transfer | None:
    """The data that an asynchronous operation moves; None if it does not say."""
    trait = asynchronous(op)
    return trait and trait.transfer_of(op)


def dma_start(op: Operation) -> DmaStart | None:
    """The operands of a `memref.dma_start`; None for other operations, and if the
    operands are not those that MLIR expects."""
    if name_of(op) != "memref.dma_start":
        return None
    memrefs = [index for index, value in enumerate(op.operands) if is_memref(value)]
    if len(memrefs) != 3:
        return None  # not valid
    types = [op.operands[index].type for index in memrefs]
    if not all(isinstance(type, MemRefType) for type in types):
        return None
    source, target, tag = memrefs
    ranks = [cast(MemRefType[Attribute], type).get_num_dims() for type in types]
    if [target, tag] != [ranks[0] + 1, target + ranks[1] + 2] or source:
        return None
    strides = op.operands[tag + 1 + ranks[2] :]
    if len(op.operands) < tag + 1 + ranks[2] or len(strides) not in (0, 2):
        return None
    return DmaStart(
        *(op.operands[source], op.operands[source + 1 : target]),
        *(op.operands[target], op.operands[target + 1 : tag - 1]),
        *(op.operands[tag - 1], op.operands[tag]),
        *(op.operands[tag + 1 : tag + 1 + ranks[2]], strides),
    )


def moves_rows(dma: DmaStart) -> bool:
    """Whether a strided transfer moves all rows of a strided memref to or from
    consecutive elements. MLIR does not define other strided transfers."""
    ends = (dma.source, dma.source_index), (dma.target, dma.target_index)
    if not all(_is_all(value, index, dma.elements) for value, index in ends):
        return False
    rows = strides_between(dma.source, dma.target)
    return bool(rows) and all(map(_is_number, dma.strides, rows))


def strides_between(source: SSAValue, target: SSAValue) -> Sequence[int] | None:
    """The strides of a transfer of all elements between two memrefs: empty if both are
    contiguous; the distance and size of the rows if one consists of rows. None if no
    strides describe the transfer."""
    are_consecutive = [_is_consecutive(value) for value in (source, target)]
    if all(are_consecutive):
        return ()
    value = target if are_consecutive[0] else source
    type = cast(MemRefType[Attribute], value.type)
    strides = type.get_strides()
    if not any(are_consecutive) or not type.has_static_shape() or strides is None:
        return None
    known = [stride for stride in strides if stride is not None]
    return rows_of(type.get_shape(), known) if len(known) == len(strides) else None


def _is_consecutive(value: SSAValue) -> bool:
    """Whether the memref `value` is contiguous, with a static shape."""
    type = value.type
    return (
        isinstance(type, MemRefType)
        and type.has_static_shape()
        and type.get_strides() == contiguous_strides(type.get_shape())
    )


def check_dma_start(op: Operation) -> None:
    """Raises `LocatedError` if `op` is a `memref.dma_start` without the operands that
    MLIR expects."""
    if name_of(op) == memref.DmaStartOp.name and dma_start(op) is None:
        raise LocatedError(
            f"{name_of(op)} has operands other than two memrefs with an index for each "
            "dimension, a number, and a tag with its indices",
            op,
        )


def check_same_elements(op: Operation, dma: DmaStart) -> None:
    """Raises `LocatedError` if the memrefs of a transfer have different element types,
    which no copy can have."""
    source, target = (
        cast(MemRefType[Attribute], value.type).element_type
        for value in (dma.source, dma.target)
    )
    if source != target:
        raise LocatedError(
            f"{name_of(op)} moves elements of {source} to a memref of {target}, "
            "expected the same type",
            op,
        )


def destinations(op: Operation) -> Sequence[int]:
    """The indices of the operands that `op` writes completely and does not read. Empty
    if `op` does not declare them.
    """
    if trait := op.get_trait(DestinationStyle):
        return trait.destinations(op)
    if isinstance(op, memref.CopyOp):
        return (1,)
    if (transfer := transfer_of(op)) and transfer.fills:
        return _uses(op, transfer.target)
    return tuple(linalg_memory.overwritten(op))


def written_operands(op: Operation) -> Sequence[int]:
    """The indices of the operands that `op` declares to write, read or not."""
    return linalg_memory.outputs(op) or destinations(op)


def overwritable(op: Operation) -> Sequence[int]:
    """The indices of the operands that may share memory with the first written one:
    `op` reads none of their elements after it has written the same element."""
    if trait := op.get_trait(DestinationStyle):
        return trait.overwritable(op)
    if isinstance(op, memref.CopyOp):
        return (0,)
    return linalg_memory.elementwise_inputs(op)


def overwrites(op: Operation, value: SSAValue) -> bool:
    """Whether `op` writes all of the memref `value` and reads nothing of it."""
    written, uses = destinations(op), _uses(op, value)
    return bool(uses) and all(index in written for index in uses)


def effects_on(op: Operation, value: SSAValue) -> tuple[bool, bool]:
    """Whether `op` reads, and whether it writes, the memory of its operand `value`.

    Both are true if `op` does not declare its effects (`says_effects`).
    """
    uses = _uses(op, value)
    if outputs := linalg_memory.outputs(op):
        reads = [i not in outputs or linalg_memory.reads_output(op, i) for i in uses]
        return any(reads), any(i in outputs for i in uses)
    if transfer := transfer_of(op):  # reads and writes its tag
        return value is not transfer.target, value is not transfer.source
    if written := destinations(op):
        return any(i not in written for i in uses), any(i in written for i in uses)
    effects = None if op.regions else get_effects(op)
    if effects is None:
        return True, True
    kinds = {e.kind for e in effects if e.value is None or e.value is value}
    return MemoryEffectKind.READ in kinds, MemoryEffectKind.WRITE in kinds


def computes_with(op: Operation, value: SSAValue) -> bool:
    """Whether the results of `op` are known to depend on the contents of `value`. A
    copy does not count, since it may copy memory that nobody has written.
    """
    uses = _uses(op, value)
    if trait := op.get_trait(DestinationStyle):
        return any(index not in trait.destinations(op) for index in uses)
    return any(linalg_memory.computes_with(op, index) for index in uses)


def says_effects(op: Operation) -> bool:
    """Whether `op` declares its effects on the memory of its operands."""
    if linalg_memory.outputs(op) or destinations(op):
        return True
    return not op.regions and get_effects(op) is not None


def _uses(op: Operation, value: SSAValue) -> Sequence[int]:
    return [index for index, operand in enumerate(op.operands) if operand is value]


def is_memref(value: SSAValue) -> bool:
    return isinstance(value.type, MemRefType | UnrankedMemRefType)


def _holds_memref(op: Operation) -> bool:
    return any(map(is_memref, op.results))


def _may_leave_some(wait: Operation) -> bool:
    """Whether a wait may end before all transfers it waits for (nvgpu's
    `numGroups`)."""
    groups = wait.properties.get("numGroups") or wait.attributes.get("numGroups")
    return isinstance(groups, IntegerAttr) and groups.value.data != 0


def _after(op: Operation, others: Sequence[Operation]) -> Sequence[Operation]:
    """The operations of `others` that follow `op` in its block, in order."""
    if op.parent is None or not others:
        return ()
    left = sum(other.parent is op.parent for other in others)
    following = op.next_op
    found: list[Operation] = []
    while following is not None and len(found) < left:
        if following in others:
            found.append(following)
        following = following.next_op
    return found


def _covers(value: SSAValue, index: Sequence[SSAValue], elements: SSAValue) -> bool:
    """Whether `elements` elements from `index` on fill a contiguous memref."""
    return _is_consecutive(value) and _is_all(value, index, elements)


def _is_all(value: SSAValue, index: Sequence[SSAValue], elements: SSAValue) -> bool:
    """Whether `elements` elements from `index` on are all those of a memref."""
    type = value.type
    return (
        isinstance(type, MemRefType)
        and type.has_static_shape()
        and all(_is_number(number, 0) for number in index)
        and _is_number(elements, type.element_count())
    )


def _is_number(value: SSAValue, number: int) -> bool:
    op = value.owner
    return (
        isinstance(op, arith.ConstantOp)
        and isinstance(op.value, IntegerAttr)
        and op.value.value.data == number
    )


def ends_here(start: Operation, waits: Sequence[Operation]) -> bool:
    """Whether the only wait for a transfer follows the start in the same block, and
    thus in the same iteration."""
    return [wait.parent for wait in waits] == [start.parent] and (
        start.is_before_in_block(waits[0])
    )


def is_before(op: Operation, other: Operation) -> bool:
    """Whether `op` comes before `other`, or before the operation that contains it."""
    block = op.parent
    around = block and block.find_ancestor_op_in_block(other)
    return around is not None and op is not around and op.is_before_in_block(around)


def _element(op: Operation, count: int) -> Sequence[Hashable]:
    """A key for the tag element that `op` names: the tag's map, and the `count`
    operands after the tag, which is the last memref."""
    *_, tag = (i for i, v in enumerate(op.operands) if is_memref(v))
    indices = op.operands[tag + 1 : tag + 1 + count]
    return (op.attributes.get("tag_map"), *map(_number_or_value, indices))


def _may_be_same(x: Sequence[Hashable], y: Sequence[Hashable]) -> bool:
    """Whether two keys may name the same element: false if constant indices differ."""
    return (
        x[0] != y[0]
        or len(x) != len(y)
        or not any(
            isinstance(i, Attribute) and isinstance(j, Attribute) and i != j
            for i, j in zip(x[1:], y[1:], strict=True)
        )
    )


def _number_or_value(value: SSAValue) -> Hashable:
    op = value.owner
    return op.value if isinstance(op, arith.ConstantOp) else value
