"""`convert-tgraph-to-linalg`: replaces tgraph by upstream operations (to level 4).

    tgraph.fusion(%x = %a, %y = %b) outs(%r)
        : (memref<4x8xf32>, memref<8xf32>) -> memref<4x8xf32> {
      %0 = tgraph.broadcast_in_dim %y {broadcast_dimensions = array<i64: 1>} : ...
      %1 = tgraph.add %x, %0 : tensor<4x8xf32>
      tgraph.yield %1 : tensor<4x8xf32>
    }

    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
                                     affine_map<(d0, d1) -> (d1)>,
                                     affine_map<(d0, d1) -> (d0, d1)>],
                    iterator_types = ["parallel", "parallel"]}
        ins(%a, %b : memref<4x8xf32>, memref<8xf32>) outs(%r : memref<4x8xf32>) {
    ^bb0(%x: f32, %y: f32, %old: f32):
      %0 = arith.addf %x, %y : f32
      linalg.yield %0 : f32
    }

Elementwise operations and views become bodies and indexing maps. Reductions, products,
and windows get reduction iterators. Operations that write at computed positions become
scf loops (`linalg/`, by family). Results match the reference interpreter up to
rounding; floats that exceed the range of an integer type saturate, as in XLA.

Memory that a kernel needs besides its operands, such as wider accumulators, or values
that a fused group reads as a whole, is workspace: a `memref.alloc` and its
`memref.dealloc`. If this pass runs before plan-memory, the workspace is planned as
well.

Needs: level 2 or 3, with static shapes and strides.
Leaves: the dialects func, memref, linalg, scf, arith, and math, and llvm.frem. The
workspaces of tensorplan's kernels (plan-workspaces) are removed. Unsigned integers
become
signless. Arguments keep the attributes `tgraph.variable`, `tgraph.donated`, and
`tgraph.result`, which describe their purpose. Memory spaces remain (see
plan-strip-memory-spaces).
Does not: lower to LLVM; use mlir-opt for that (docs/lowering.md).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg.ops import CopyOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.functions import is_tensor
from ...dialects.diagnostics import LocatedError
from ...dialects.tgraph import bodies as b
from ...dialects.tgraph import indexing as i
from ...dialects.tgraph import reducing as r
from ...dialects.tgraph import shaping as s
from ...dialects.tgraph.base import AnyMemRef, TensorOp, is_static, tensor_type_of
from ...dialects.tgraph.callbacks import HostCallbackOp
from ...dialects.tgraph.elements import is_complex, is_integer, is_stored
from ...dialects.tgraph.fusing import CONTRACTIONS, Form
from ...dialects.tgraph.random import RngBitGeneratorOp
from ...dialects.tgraph.structure import FusionOp
from ..tgraph.bufferization.constants import Constants
from .linalg import bodies, indexing, moving, random, reducing, windows
from .linalg.code import MlirCode, dot_type, signless
from .linalg.memory import OperationMemory, Stored
from .linalg.nests import INLINE, Values, assign, assign_result, copy
from .linalg.types import retype

_OTHERS: Mapping[type[TensorOp], Callable[[Values, Any, Stored], None]] = {
    i.DynamicSliceOp: indexing.dynamic_slice,
    i.DynamicUpdateSliceOp: indexing.dynamic_update_slice,
    i.ScatterOp: indexing.scatter,
    r.ConvolutionOp: windows.convolution,
    r.DotGeneralOp: reducing.dot_general,
    r.ReduceOp: reducing.reduce,
    r.ReduceWindowOp: windows.reduce_window,
    r.SelectAndScatterOp: indexing.select_and_scatter,
    s.ConcatenateOp: moving.concatenate,
    s.PadOp: moving.pad,
    s.ReshapeOp: moving.reshape,
}

_SEVERAL: Mapping[type[TensorOp], Callable[[Values, Any, Sequence[Stored]], None]] = {
    RngBitGeneratorOp: random.rng_bit_generator,
    b.ReduceByOp: bodies.reduce_by,
    b.SortOp: bodies.sort,
}
"""Operations with any number of results; they are never part of a fusion."""


@dataclass(frozen=True)
class ConvertTGraphToLinalg(ModulePass):
    """Replaces operations of tgraph on memrefs by upstream operations.

    named: whether to write products as named operations of linalg, such as
        linalg.matmul, for passes that look for them; otherwise they are linalg.generic,
        in a loop order that suits plain loops.
    """

    name = "convert-tgraph-to-linalg"

    named: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        constants = Constants(op)
        workspaces: list[SSAValue | None] = []
        for func in [f for f in op.ops if isinstance(f, FuncOp)]:
            for inner in list(func.walk()):
                if isinstance(inner, TensorOp) and inner.parent is not None:
                    if not isinstance(inner.parent_op(), FusionOp):
                        workspaces.append(inner.workspace)
                        _convert(inner, constants, self.named)
                elif isinstance(inner, memref.CopyOp):
                    _convert_copy(inner, constants)
        for inner in list(op.walk(reverse=True)):
            if isinstance(inner, memref.ReinterpretCastOp) and not inner.result.uses:
                inner.detach()
                inner.erase()
        for workspace in filter(None, workspaces):
            _drop(workspace)
        retype(op, _signless)


def _drop(workspace: SSAValue) -> None:
    """Erases the operations that allocate and free a workspace, if nothing uses it."""
    users = [use.operation for use in workspace.uses]
    if all(isinstance(user, memref.DeallocOp) for user in users):
        for op in (*users, workspace.owner):
            if isinstance(op, memref.AllocOp | memref.DeallocOp | memref.ViewOp):
                op.detach()
                op.erase()


def _signless(type: Attribute) -> Attribute:
    if not isinstance(type, MemRefType):
        return signless(type)
    memref = cast(AnyMemRef, type)
    element = signless(memref.element_type)
    return MemRefType(element, memref.shape, memref.layout, memref.memory_space)


def _convert(op: TensorOp, constants: Constants, named: bool) -> None:
    for value in op.operands:
        element = tensor_type_of(value.type).element_type
        if is_stored(element) and not is_integer(element):
            raise LocatedError(
                f"{op.name} is not supported with elements of type {element}", op
            )
        if DYNAMIC_INDEX in tensor_type_of(value.type).get_shape():
            raise LocatedError(
                f"{op.name}: {value.type} has symbolic sizes, expected static ones; "
                "run specialize-sizes first",
                op,
            )
        if is_complex(element):
            raise LocatedError(
                f"{op.name} of complex numbers has no equivalent in upstream MLIR", op
            )
    if isinstance(op, HostCallbackOp):
        raise LocatedError(
            f"{op.name} calls a Python function, which has no equivalent in MLIR",
            op,
        )
    if not op.outs or any(is_tensor(value.type) for value in op.operands):
        raise LocatedError(
            f"{op.name} is on tensors, expected memrefs; run tgraph-bufferize first",
            op,
        )
    ops: list[Operation] = []
    values = _values(op, ops, constants, named)
    if isinstance(op, FusionOp):
        _fusion(values, op)
    elif type(op) in _SEVERAL:
        _SEVERAL[type(op)](values, op, [values.store(out) for out in op.outs])
    else:
        _compute(values, op, values.store(op.outs[0]))
    _replace(op, values, ops)


def _convert_copy(op: memref.CopyOp, constants: Constants) -> None:
    if not all(map(_is_static, op.operands)):
        copied = CopyOp([op.source], [op.destination], res=())
        Rewriter.replace_op(op, copied, [])
        return
    ops: list[Operation] = []
    values = _values(op, ops, constants)
    copy(values, values.store(op.source), values.store(op.destination))
    _replace(op, values, ops)


def _is_static(value: SSAValue) -> bool:
    type = cast(AnyMemRef, value.type)
    strides = type.get_strides()
    return is_static(type) and strides is not None and None not in strides


def _values(
    op: Operation, ops: list[Operation], constants: Constants, named: bool = False
) -> Values:
    """The values that `op`, on memrefs, reads. They append its code to `ops`."""
    space = cast(AnyMemRef, op.operands[-1].type).memory_space
    return Values(
        OperationMemory(MlirCode(ops.append), space, constants), _compute, named
    )


def _replace(op: Operation, values: Values, ops: list[Operation]) -> None:
    values.memory.free()
    for new in ops:
        new.location = op.location
    Rewriter.insert_op(ops, InsertPoint.before(op))
    op.detach()
    op.erase()


def _compute(values: Values, op: TensorOp, target: Stored) -> None:
    """Appends the code that stores an operation's result."""
    if isinstance(op, s.DeviceCopyOp):
        copy(values, values.store(op.inputs[0]), target)
    elif isinstance(op, INLINE):
        assign_result(values, op, target)
    elif type(op) in _OTHERS:
        _OTHERS[type(op)](values, op, target)
    else:
        raise LocatedError(f"{op.name} has no equivalent in upstream MLIR", op)


def _fusion(values: Values, op: FusionOp) -> None:
    """Stores the values that the body yields. The sums of a contraction are kept in the
    result, unless later operations of the body read an operand that lies there."""
    for argument, value in zip(op.body.block.args, op.inputs, strict=True):
        values.stored[argument] = values.store(value)
    for inner in op.body.block.ops:
        if isinstance(inner, i.DynamicSliceOp):
            if part := indexing.slice_in_place(values, inner):
                values.stored[inner.result] = part
    targets = [values.store(out) for out in op.outs]
    results, group = op.yielded, op.group()
    is_read = {_root(op.inputs[index]) for index in op.overwritable()}
    if group is not None and (update := group.update) is not None:
        if part := indexing.updated_in_place(values, update, targets[0]):
            results = [group.root.results[0]]
            layout = part.layout.reshaped(tensor_type_of(results[0].type).get_shape())
            assert layout is not None  # they differ by dimensions of size 1
            targets = [part.viewed(layout)]
            if update.inputs[0].has_one_use():
                is_read.clear()
    if (
        group is not None
        and group.form is Form.CONTRACTION
        and _root(op.outs[0]) not in is_read
    ):
        for inner in op.body.block.ops:
            if isinstance(inner, CONTRACTIONS):
                _contract(values, inner, targets[0])
    for value, target in zip(results, targets, strict=True):
        if values.is_inline(value):
            assign(values, value, target)
        elif value in values.stored or not isinstance(value.owner, TensorOp):
            copy(values, values.store(value), target)
        else:
            _compute(values, value.owner, target)


def _root(value: SSAValue) -> tuple[SSAValue, int | None]:
    """A key that is equal for memrefs of the same memory: the viewed value, and for a
    part of an arena its offset in bytes."""
    while not isinstance(owner := value.owner, Block):
        if isinstance(owner, memref.ViewOp):
            offset = owner.byte_shift.owner
            if isinstance(offset, arith.ConstantOp):
                assert isinstance(offset.value, IntegerAttr)
                return owner.source, offset.value.value.data
        elif not isinstance(owner, memref.ReinterpretCastOp | memref.CastOp):
            break
        value = owner.operands[0]
    return value, None


def _contract(values: Values, op: TensorOp, target: Stored) -> None:
    element = op.declared[0].element_type
    if element == target.element and dot_type(element) == signless(element):
        _compute(values, op, target)
        values.stored[op.results[0]] = target
