"""From operations to calls of native functions."""

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from tensorplan.dialects.tgraph.base import TensorOp
from tensorplan.dialects.tgraph.fusing import CONTRACTIONS
from tensorplan.runtime.dtypes import Array, numpy_dtype
from tensorplan.runtime.kernels.base import KERNELS, Call
from tensorplan.runtime.native.groups import Unsupported, group_of, views
from tensorplan.runtime.native.llvm import compiler
from tensorplan.runtime.native.loops import lower
from tensorplan.runtime.native.nests import Nest, nest_of
from tensorplan.runtime.native.records import Record
from tensorplan.runtime.pool import Scratch

_functions: dict[object, Any] = {}
"""By `Nest.key()`; None for what is not supported."""


def calls_of(
    ops: Sequence[TensorOp],
    result: SSAValue,
    arrays: Mapping[SSAValue, Array],
    out: Array,
    scratch: Scratch,
) -> list[Call] | None:
    """The calls that compute `result` into `out`, or None if it has no native form.

    `arrays` are the values that `ops` start from. A contraction among `ops` is done by
    its own kernel, into `out` where its type allows that, before all the others.
    """
    try:
        contractions = [op for op in ops if isinstance(op, CONTRACTIONS)]
        if not contractions:
            return [(_record(ops, result, arrays, out, scratch), ())]
        (first,) = contractions
        dtype = numpy_dtype(first.declared[0].element_type, first)
        if first.declared[0].get_shape() != out.shape:
            return None
        is_alike = dtype.itemsize == out.dtype.itemsize
        target = out.view(dtype) if is_alike else scratch.take(out.shape, dtype)
        known = views(ops, arrays)
        inputs = [known[value] for value in first.inputs]
        arrays = {**arrays, first.result: target}
        rest = [op for op in ops if op is not first]
        record = _record(rest, result, arrays, out, scratch)
        return [*KERNELS[type(first)](first, inputs, [target], scratch), (record, ())]
    except (Unsupported, KeyError):
        return None


def _record(
    ops: Sequence[TensorOp],
    result: SSAValue,
    arrays: Mapping[SSAValue, Array],
    out: Array,
    scratch: Scratch,
) -> Record:
    group = group_of(ops, result, arrays, out)
    if 0 in group.shape:
        raise Unsupported
    nest = nest_of(group)
    function = _function(nest)
    sizes = tuple(nest.sizes[nest.kept :])
    buffers = [scratch.take(sizes, node.dtype) for node in nest.saved]
    return Record(function, [*group.arrays, *buffers])


def _function(nest: Nest) -> Any:
    key = nest.key()
    if key not in _functions:
        try:
            _functions[key] = compiler().function(lower(nest))
        except Unsupported:
            _functions[key] = None
    function = _functions[key]
    if function is None:
        raise Unsupported
    return function
