"""Native code as a backend: functions for operations and groups, and their calls."""

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.memref import CopyOp
from xdsl.ir import Operation, SSAValue

from ....dialects.dtypes import Array, constant, numpy_dtype
from ....dialects.tgraph import shaping
from ....dialects.tgraph.base import TensorOp, shape_of, tensor_type_of
from ....dialects.tgraph.bodies import ReduceByOp, SortOp
from ....dialects.tgraph.elementwise import ElementwiseOp
from ....dialects.tgraph.fusing import CONTRACTIONS, ending
from ....dialects.tgraph.indexing import DynamicSliceOp, ScatterOp
from ....dialects.tgraph.matrices import MatrixOp
from ....dialects.tgraph.reducing import (
    ConvolutionOp,
    DotGeneralOp,
    ReduceOp,
    ReduceWindowOp,
    SelectAndScatterOp,
)
from ....dialects.tgraph.spectral import FftOp
from ....dialects.tgraph.structure import FusionOp
from ...calls import Call
from ...pool import Scratch
from ..arrays import copy, same_memory
from ..contraction import BLOCK, Contraction, contraction
from ..jit import llvm
from ..numpy.base import kernel_of
from ..numpy.fusion import needed
from ..onednn import backend as onednn
from . import (
    few_rows,
    fourier,
    indexing,
    integers,
    lapack,
    panels,
    planes,
    pooling,
    products,
    scans,
    sorting,
    stencils,
    strips,
    taps,
    widening,
    windows,
)
from .bodies import reduce_by
from .functions import Nests, copy_of, nested
from .graphs import NoLoopNest, by_result, graph_of, views
from .slices import on_slices


def calls_of(
    op: Operation, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call] | None:
    """Native calls that compute `outs` from `inputs` as `op` specifies; None if native
    code does not support `op`."""
    if not isinstance(op, _SUPPORTED) or not llvm.is_available():
        return None
    try:
        match op:
            case ReduceByOp():
                return reduce_by(op, inputs, outs, scratch)
            case ReduceWindowOp():
                return _windows(op, inputs[0], outs[0], scratch)
            case SelectAndScatterOp():
                x, source = inputs
                return pooling.select_and_scatter(op, x, source, outs[0], scratch)
            case SortOp():
                return sorting.calls_of(op, inputs, outs, scratch)
            case FftOp():
                return fourier.calls_of(op, inputs[0], outs[0], scratch)
            case MatrixOp():
                return lapack.calls_of(op, inputs, outs, scratch)
            case CopyOp():
                return [copy_of(outs[0], inputs[0], scratch)]
            case FusionOp():
                if len(outs) != 1:
                    return None
                return _fusion(op, inputs, outs[0], scratch)
            case _ if isinstance(op, indexing.OPS):
                return indexing.calls_of(op, inputs, outs[0], scratch.threads)
            case _:
                arrays = dict[SSAValue, Array](zip(op.inputs, inputs, strict=True))
                (result,) = op.results or op.outs
                return _group([op], result, arrays, outs[0], scratch)
    except (NoLoopNest, KeyError):
        return None


def _fusion(
    op: FusionOp, inputs: Sequence[Array], out: Array, scratch: Scratch
) -> list[Call]:
    body = [x for x in op.body.block.ops if isinstance(x, TensorOp)]
    slices = [x for x in body if isinstance(x, DynamicSliceOp)]
    arrays = dict[SSAValue, Array](zip(op.body.block.args, inputs, strict=True))
    result, update = ending(op.yielded[0])
    if not slices and update is None:
        return _group(body, result, arrays, out, scratch)
    others = needed([x for x in body if x not in slices], [result])
    at = [x for part in slices for x in part.starts]
    around: list[Call] = []
    if update is not None:
        at += update.starts
        around = copy(out, _stored(update.inputs[0], arrays))
    starts = {x: _stored(x, arrays) for x in at}

    def compute(parts: Mapping[SSAValue, Array], target: Array) -> list[Call]:
        target = target.reshape(shape_of(tensor_type_of(result.type)))
        calls = _group(others, result, {**arrays, **parts}, target, scratch)
        return with_native_copies(calls, scratch)

    computed = on_slices(slices, update, {**arrays, **starts}, out, compute)
    return [*with_native_copies(around, scratch), *computed]


def with_native_copies(calls: list[Call], scratch: Scratch) -> list[Call]:
    """`calls`, with native code for the calls that only copy elements."""
    if not llvm.is_available():
        return calls

    def translated(call: Call) -> Call:
        function, arguments = call
        if function is not np.copyto or len(arguments) != 2:
            return call
        try:
            return copy_of(*arguments, scratch)
        except NoLoopNest:
            return call

    return [translated(call) for call in calls]


def _group(
    ops: Sequence[TensorOp],
    result: SSAValue,
    arrays: Mapping[SSAValue, Array],
    out: Array,
    scratch: Scratch,
) -> list[Call]:
    """The calls that compute `result` into `out`; `arrays` has the operands of `ops`.
    Raises `NoLoopNest`, or `KeyError`, if the group has no native form."""
    if any(isinstance(op, CONTRACTIONS) for op in ops):
        return _contraction(ops, result, arrays, out, scratch)
    made = by_result(ops)
    nest = _nest(made, result, arrays, out, scratch)
    if isinstance(root := made.get(result), ScatterOp):
        before = views(ops, arrays).get(root.inputs[0])
        if before is None or not same_memory(before, out):
            nest = [*_nest(made, root.inputs[0], arrays, out, scratch), *nest]
    return nest


def _nest(
    ops: Mapping[SSAValue, TensorOp],
    result: SSAValue,
    arrays: Mapping[SSAValue, Array],
    out: Array,
    scratch: Scratch,
) -> list[Call]:
    return nested(graph_of(ops, result, arrays, out), scratch)


def _windows(op: ReduceWindowOp, x: Array, out: Array, scratch: Scratch) -> list[Call]:
    if (calls := scans.calls_of(op, x, out)) is not None:
        return calls
    if (made := windows.passes(op, x, out, scratch)) is not None:
        before, passes = made
        for each in passes:
            before += _windows(*each, scratch)
        return before
    try:
        return [
            call
            for part in windows.parts(op, x, out)
            for call in _nest(
                by_result([part.reduction]),
                part.reduction.result,
                {part.operand: part.view},
                part.out,
                scratch,
            )
        ]
    except NoLoopNest:
        if op.scan(x.shape):
            raise  # NumPy's kernel takes one pass
        return pooling.reduced(op, x, out, scratch.threads)


def _contraction(
    ops: Sequence[TensorOp],
    result: SSAValue,
    arrays: Mapping[SSAValue, Array],
    out: Array,
    scratch: Scratch,
) -> list[Call]:
    """Computes the contraction by a library, and the operations after it by the library
    or a loop nest; or computes everything by one loop nest."""
    (first,) = (op for op in ops if isinstance(op, CONTRACTIONS))
    if first.declared[0].get_shape() != out.shape:
        raise NoLoopNest
    known = views(ops, arrays)
    inputs = [_stored(value, known) for value in first.inputs]
    after = [op for op in ops if op is not first and op.results[0] not in known]
    if (summed := _as_sum(first, inputs, out, scratch)) is not None:
        before, sums, factors = summed
        made = {**by_result(after), **sums}
        nest = _nest(made, result, {**known, **factors}, out, scratch)
        return [*with_native_copies(before, scratch), *nest]
    is_own = (
        few_rows.is_supported(first, inputs, out, scratch)
        or planes.is_supported(first, inputs, out)
        or taps.is_supported(first, inputs, out)
    )
    mark = scratch.mark
    if not is_own:
        for compiled in panels.calls_of, onednn.compiled:
            whole = compiled(first, inputs, out, scratch, after, result, known)
            if whole is not None:
                return whole
            scratch.mark = mark
    read = {value for op in after for value in op.inputs}
    sides = {value: array for value, array in known.items() if value in read}
    if any(array.shape != out.shape for array in sides.values()):
        raise NoLoopNest  # a leaf is not a view

    nests = Nests(by_result(after), result)

    def loop(arrays: Mapping[SSAValue, Array], out: Array) -> list[Call]:
        if after:
            return nests.calls(arrays, out, scratch)
        made = arrays[result]
        return [] if same_memory(made, out) else [copy_of(out, made, scratch)]

    made = integers.calls_of(first, inputs, sides, out, scratch, loop)
    if made is not None:
        return made

    # oneDNN's convolutions need arrays without gaps, not parts of them.
    is_whole = isinstance(first, ConvolutionOp) and onednn.is_available()
    limit = out.size if is_whole else BLOCK
    return contraction(first, inputs, sides, out, scratch, _product, loop, limit)


def _as_sum(
    op: Contraction, inputs: Sequence[Array], out: Array, scratch: Scratch
) -> tuple[list[Call], Mapping[SSAValue, TensorOp], Mapping[SSAValue, Array]] | None:
    """A contraction as operations of a loop nest: the calls that prepare its operands,
    the operations by results, and the arrays of their operands. None if a library
    computes it."""
    summed = products.as_sum(op, inputs)
    if summed is not None and strips.calls_of(op, inputs, out, scratch) is None:
        return [], *summed
    return stencils.as_sum(op, inputs, scratch)


def _stored(value: SSAValue, known: Mapping[SSAValue, Array]) -> Array:
    """An operand of a contraction or a slice: its array, or a new array that is filled
    with a constant number."""
    owner = value.owner
    if value in known or not isinstance(owner, shaping.ConstantOp):
        return known[value]
    dtype = numpy_dtype(owner.declared[0].element_type, owner)
    return np.full(shape_of(owner.declared[0]), constant(owner.value, dtype))


def _product(
    op: Contraction, inputs: Sequence[Array], out: Array, scratch: Scratch
) -> list[Call]:
    asked = (
        few_rows.calls_of,
        planes.calls_of,
        taps.calls_of,
        panels.calls_of,
        onednn.compiled,
        strips.calls_of,
        widening.calls_of,
    )
    mark = scratch.mark
    for calls_of in asked:
        if (calls := calls_of(op, inputs, out, scratch)) is not None:
            return calls
        scratch.mark = mark
    return kernel_of(op)(op, inputs, [out], scratch)


_SUPPORTED = (
    *indexing.OPS,
    ConvolutionOp,
    CopyOp,
    DotGeneralOp,
    ElementwiseOp,
    FftOp,
    FusionOp,
    MatrixOp,
    ReduceByOp,
    ReduceOp,
    ReduceWindowOp,
    ScatterOp,
    SelectAndScatterOp,
    SortOp,
    shaping.ConstantOp,
    shaping.DeviceCopyOp,
    shaping.FullLikeOp,
    shaping.IotaOp,
    shaping.ViewOp,
)
