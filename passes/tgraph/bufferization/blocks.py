"""Rewrites blocks on tensors as blocks on memrefs, as `analysis/storage` decides.

    %r = tgraph.while %a, %w ...        scf.while : () -> () {
                                          tgraph.compare %a, %c outs(%flag)
                                          %0 = memref.load %flag[] : memref<i1>
                                          scf.condition(%0)
                                        } do {
                                          tgraph.add %a, %w outs(%a)
                                          scf.yield
                                        }

Loops and branches on memrefs have no operands and results: their values lie in buffers.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import cast

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator

from ....analysis.destinations import captured, destinations_of, is_empty, operands_read
from ....analysis.functions import is_tensor
from ....analysis.layout import Layout, memref_type
from ....analysis.loops import TRIP_COUNT, counter
from ....analysis.operations import operands_within
from ....analysis.sizes import SizeWriter
from ....analysis.storage import (
    Allocate,
    At,
    Branch,
    Copy,
    Free,
    Global,
    Home,
    Loop,
    MakeView,
    Place,
    Run,
    Storage,
    TensorBuffer,
)
from ....dialects.diagnostics import LocatedError, name_of, remark
from ....dialects.sizes.dims import static
from ....dialects.sizes.symbolic import Symbolic
from ....dialects.structural_keys import StructuralKeys
from ....dialects.tgraph.base import (
    STREAM,
    AnyMemRef,
    AnyTensor,
    TensorOp,
    is_static,
    segments,
    shape_of,
    space_of,
    tensor_type_of,
)
from ....dialects.tgraph.shaping import DeviceCopyOp
from ....dialects.tgraph.structure import AssignOp, FusionOp, ReadOp
from .constants import Constants

LINE = 64
"""A number of elements that takes whole cache lines of 64 bytes, as an element takes at
least a byte."""


class BlockWriter:
    """Writes the memref form of one block, except for its terminator.

    `bases` has the memref of each buffer so far, `views` that of each place in one.
    """

    def __init__(
        self,
        storage: Storage,
        constants: Constants,
        sizes: SizeWriter,
        bases: MutableMapping[TensorBuffer, SSAValue],
        views: MutableMapping[Place, SSAValue],
    ):
        self.storage = storage
        self.constants = constants
        self.sizes = sizes
        self.bases = bases
        self.views = views
        self.new = Block()
        self._at: Operation  # the operation that is being rewritten

    def run(self) -> Block:
        for op, actions in self.storage.steps:
            self._at = op
            _check_known(op)
            if _is_beside_tensors(op):
                op.detach()
                self.new.add_op(op)
            for action in actions:
                match action:
                    case Allocate(buffer):
                        self._allocate(buffer)
                    case Free(buffer):
                        dealloc = memref.DeallocOp.get(self._base(buffer))
                        _set_stream(dealloc, op)
                        self._emit(dealloc)
                    case MakeView(at):
                        self._view(at)
                    case Copy():
                        self._copy(action)
                    case Run():
                        self._run(action)
                    case Global():
                        self._global(action)
                    case Loop():
                        self._loop(action)
                    case Branch():
                        self._branch(action)
        return self.new

    # Memrefs

    def _base(self, buffer: TensorBuffer) -> SSAValue:
        return self.bases[buffer.root]

    def _allocate(self, buffer: TensorBuffer) -> None:
        alloc = memref.AllocOp(self._given(buffer.shape), (), contiguous(buffer.type))
        self._emit(alloc)
        alloc.memref.name_hint = buffer.name
        self.bases[buffer] = alloc.memref

    def _memref(self, at: At) -> SSAValue:
        """The memref at a place."""
        return self._base(at.place.buffer) if at.is_whole else self.views[at.memref]

    def _view(self, at: At) -> None:
        base = self._base(at.place.buffer)
        view = _view_of(base, at, at.memref.layout, self._given)
        self._emit(view)
        self.views[at.memref] = view.result

    def _given(self, sizes: Sequence[int]) -> list[SSAValue]:
        """The values of those `sizes` that are symbolic."""
        return [
            self.sizes.value(size, self._at)
            for size in sizes
            if isinstance(size, Symbolic)
        ]

    def _emit(self, op: Operation) -> None:
        op.location = self._at.location
        self.new.add_op(op)

    # Operations

    def _copy(self, action: Copy) -> None:
        if action.saves:
            message = (
                "the old contents of the variable are saved because they are read later"
            )
            remark(message, self._at)
        copy = memref.CopyOp(self._memref(action.source), self._memref(action.target))
        _set_stream(copy, action.serves)
        self._emit(copy)

    def _run(self, action: Run) -> None:
        op = action.op
        inputs = [self._memref(at) for at in action.inputs]
        outs = [self._memref(at) for at in action.outs]
        if not isinstance(op, TensorOp):
            self._emit(_in_destination_style(action, inputs, outs))
            return
        if isinstance(op, DeviceCopyOp):
            copy = memref.CopyOp(inputs[0], outs[0])
            _set_stream(copy, op)
            self._emit(copy)
            return
        if isinstance(op, FusionOp):  # its body is on tensors with the memrefs' types
            for argument, value in zip(op.body.block.args, inputs, strict=True):
                if not is_static(cast(AnyMemRef, value.type)):
                    type_ = tensor_type_of(value.type)
                    Rewriter.replace_value_with_new_type(argument, type_)
        regions = [op.detach_region(region) for region in list(op.regions)]
        self._emit(_on_memrefs(op, inputs, outs, regions))

    def _global(self, action: Global) -> None:
        op, buffer = action
        type = contiguous(buffer.type)
        get = memref.GetGlobalOp(self.constants.name_of(op.dense, type), type)
        self._emit(get)
        get.memref.name_hint = buffer.name
        self.bases[buffer] = get.memref

    def _loop(self, action: Loop) -> None:
        counted = counter(action.op)
        flag = self._base(action.flag)
        condition = self._inside(action.condition)
        load = memref.LoadOp.get(flag, ())
        condition.add_ops([load, scf.ConditionOp(load.res)])
        body = self._inside(action.body)
        body.add_op(scf.YieldOp())
        loop = scf.WhileOp((), (), Region(condition), Region(body))
        loop.attributes |= action.op.attributes
        if counted:
            loop.attributes[TRIP_COUNT] = IntegerAttr(counted.trips, i64)
        self._emit(loop)

    def _branch(self, action: Branch) -> None:
        load = memref.LoadOp.get(self._memref(action.predicate), ())
        self._emit(load)
        blocks = [self._inside(storage) for storage in action.regions]
        for block in blocks:
            block.add_op(scf.YieldOp())
        on_true, on_false = map(Region, blocks)
        branch = scf.IfOp(load.res, (), on_true, on_false)
        branch.attributes |= action.op.attributes
        self._emit(branch)

    def _inside(self, storage: Storage) -> Block:
        given = self.constants, self.sizes, self.bases, self.views
        return BlockWriter(storage, *given).run()


def alone(run: Run) -> TensorOp:
    """A copy of the operation on its own memrefs, outside of any program, to measure
    its workspace."""
    given = Block()
    unused = _unused(run)
    bases: dict[TensorBuffer, SSAValue] = {}
    views: dict[Place, SSAValue] = {}

    def memref_of(at: At) -> SSAValue:
        buffer = at.place.buffer.root
        if buffer not in bases:
            type = contiguous(buffer.type)
            bases[buffer] = (
                memref.GetGlobalOp("constant", type).memref
                if _is_constant(buffer)
                else given.insert_arg(type, len(given.args))
            )
        if not at.is_whole and at.memref not in views:
            layout = at.memref.layout
            moved = replace(layout, offset=layout.offset - unused[buffer])
            view = _view_of(bases[buffer], at, moved, lambda sizes: ())
            views[at.memref] = view.result
        return bases[buffer] if at.is_whole else views[at.memref]

    assert isinstance(run.op, TensorOp)
    inputs = [memref_of(at) for at in run.inputs]
    outs = [memref_of(at) for at in run.outs]
    regions = [region.clone() for region in run.op.regions]
    return _on_memrefs(run.op, inputs, outs, regions)


def key_of(run: Run, keys: StructuralKeys) -> object:
    """A key of `run`. `alone` makes equal operations for runs with equal keys."""
    numbers: dict[TensorBuffer, int] = {}
    places: list[object] = []
    unused = _unused(run)
    for at in (*run.inputs, *run.outs):
        buffer = at.place.buffer.root
        places.append(numbers.setdefault(buffer, len(numbers)))
        places.append(keys.number(buffer.type))
        places.append(_is_constant(buffer))
        if at.is_whole:
            places.append(None)
        else:
            layout = at.memref.layout
            places += layout.shape, layout.strides, layout.offset - unused[buffer]
        places.append(at.value and keys.number(at.value.type))
    return keys.of(run.op), *places


def _unused(run: Run) -> Mapping[TensorBuffer, int]:
    """The elements at the start of each buffer that no operand needs, in whole lines.

    Kernels depend on the alignment of operands and on the distances between them, but
    not on where in a buffer they are. All tiles of a value therefore count as equal.
    """
    least: dict[TensorBuffer, int] = {}
    for at in (*run.inputs, *run.outs):
        buffer = at.place.buffer.root
        first = 0 if at.is_whole else max(at.memref.layout.first, 0)
        least[buffer] = min(first, least.get(buffer, first))
    return {buffer: first // LINE * LINE for buffer, first in least.items()}


def _is_constant(buffer: TensorBuffer) -> bool:
    return buffer.home in (Home.CONSTANT, Home.PARAMETER)


def _on_memrefs(
    op: TensorOp,
    inputs: Sequence[SSAValue],
    outs: Sequence[SSAValue],
    regions: Sequence[Region],
) -> TensorOp:
    sizes = {"operandSegmentSizes": segments(inputs, outs)}
    return type(op).create(
        operands=[*inputs, *outs],
        properties=op.properties | sizes,
        attributes=op.attributes,
        regions=regions,
    )


def _in_destination_style(
    run: Run, inputs: Sequence[SSAValue], outs: Sequence[SSAValue]
) -> Operation:
    """An operation of another dialect, on memrefs."""
    op = run.op
    operands = list(op.operands)
    written = [destination.operand for destination in destinations_of(op)]
    numbers = (*operands_read(op), *written)
    for number, value in zip(numbers, (*inputs, *outs), strict=True):
        operands[number] = value
    return type(op).create(
        operands=operands,
        properties=op.properties,
        attributes=op.attributes,
        regions=[op.detach_region(region) for region in list(op.regions)],
    )


def _is_beside_tensors(op: Operation) -> bool:
    """Whether an operation of another dialect neither reads nor defines tensors."""
    if isinstance(op, TensorOp) or _ends_block(op):
        return False
    return not any(is_tensor(v.type) for v in (*op.results, *operands_within(op)))


def _ends_block(op: Operation) -> bool:
    return op.has_trait(IsTerminator, value_if_unregistered=False)


def _view_of(
    base: SSAValue,
    at: At,
    layout: Layout,
    given: Callable[[Sequence[int]], Sequence[SSAValue]],
) -> memref.ReinterpretCastOp:
    """A view of the value of `at`, with a layout in the buffer whose memref is
    `base`."""
    assert at.value is not None
    tensor = tensor_type_of(at.value.type)
    offset, shape, strides = (layout.offset,), layout.shape, layout.strides
    view = memref.ReinterpretCastOp(
        base,
        given(offset),
        given(shape),
        given(strides),
        static(offset),
        static(shape),
        static(strides),
        memref_type(tensor.element_type, layout, space_of(tensor)),
    )
    view.result.name_hint = at.value.name_hint
    return view


def contiguous(type: AnyTensor) -> AnyMemRef:
    """The memref type of a buffer for a whole tensor."""
    layout = Layout.contiguous(shape_of(type))
    return memref_type(type.element_type, layout, space_of(type))


def _check_known(op: Operation) -> None:
    """Raises `LocatedError` for an operation that is neither one of tgraph nor in
    destination style."""
    if isinstance(op, TensorOp | ReadOp | AssignOp) or is_empty(op) or _ends_block(op):
        return
    if any(captured(op)):
        raise LocatedError(
            f"{name_of(op)} cannot be bufferized: its region uses tensors from outside",
            op,
        )
    if not _is_beside_tensors(op) and not destinations_of(op):
        raise LocatedError(
            f"{name_of(op)} cannot be bufferized, expected operations of "
            "tgraph or in destination style; convert-tensor-to-tgraph converts views "
            "and constants, and mlir-opt (--one-shot-bufferize) bufferizes others",
            op,
        )


def _set_stream(op: Operation, serves: Operation) -> None:
    if stream := serves.attributes.get(STREAM):
        op.attributes[STREAM] = stream
