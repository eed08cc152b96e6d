"""Kernels of `tgraph.fusion`, which do not store intermediate values of a group.

By the group's form (`dialects/tgraph/fusing.py`):

 * a loop, tile by tile;
 * rows, some at a time (rows.py);
 * a reduction, tile by tile: the results of tiles are combined in turn (sums in f64);
 * a contraction, then a loop over its result (contraction.py).

Any other body is computed operation by operation, with intermediate values in the
workspace. The operand of a final update of a tensor is in the workspace, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from ....dialects.dtypes import Array, constant, identity, is_float
from ....dialects.tgraph import shaping
from ....dialects.tgraph.base import TensorOp
from ....dialects.tgraph.fusing import CONTRACTIONS, Form, Group
from ....dialects.tgraph.indexing import DynamicSliceOp, GatherOp
from ....dialects.tgraph.reducing import ReduceOp
from ....dialects.tgraph.structure import FusionOp
from ...calls import Call
from ...pool import Scratch
from ..arrays import copy, fill, iota, tiles, viewed
from ..contraction import Contraction, contraction
from .base import kernel, kernel_of, ufunc_call
from .elementwise import Body, Instruction, Registers, UfuncProgram, loop
from .forms import TILE
from .reducing import reduce, reduction_ufunc
from .rows import dtype_of, rows, shape_of


@kernel(FusionOp)
def fusion(
    op: FusionOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    """The calls of a fusion with any body."""
    arrays = dict[SSAValue, Array](zip(op.body.block.args, inputs, strict=True))
    numbers: dict[SSAValue, Array] = {}
    calls: list[Call] = []
    for inner in op.body.block.ops:
        if isinstance(inner, shaping.ConstantOp):
            number = constant(inner.value, dtype_of(inner))
            numbers[inner.result] = np.broadcast_to(number, shape_of(inner.result))
        elif isinstance(inner, shaping.ViewOp) and inner.inputs[0] in arrays:
            source = arrays[inner.inputs[0]]
            if (view := viewed(inner, source, shape_of(inner.res[0]))) is not None:
                arrays[inner.res[0]] = view
        elif isinstance(inner, DynamicSliceOp | GatherOp):
            known = {**arrays, **numbers}
            if not known.keys() >= set(inner.inputs):
                continue
            sources = [known[value] for value in inner.inputs]
            copied = scratch.take(shape_of(inner.result), dtype_of(inner))
            calls += kernel_of(inner)(inner, sources, [copied], scratch)
            arrays[inner.result] = copied
    group = op.group()
    if group is None or (update := group.update) is None:
        return [*calls, *_computed(op, group, op.yielded, arrays, outs, scratch)]
    part, result = update.inputs[1], group.root.results[0]
    made = scratch.take(shape_of(part), dtype_of(group.root))
    target = made.reshape(shape_of(result))
    calls += _computed(op, group, [result], arrays, [target], scratch)
    known = {**arrays, **numbers, part: made}
    sources = [known[value] for value in update.inputs]
    return [*calls, *kernel_of(update)(update, sources, outs, scratch)]


def _computed(
    op: FusionOp,
    group: Group | None,
    results: Sequence[SSAValue],
    arrays: Mapping[SSAValue, Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    """The calls that compute `results` of a fusion. `arrays` has its arguments, and the
    slices of them that have been taken."""
    parts = _parts(op, results, arrays)
    if group is None or parts is None or _is_empty(group) or parts.gathers:
        return _stored(op, results, arrays, outs, scratch)
    (out,) = outs
    match group.form:
        case Form.LOOP:
            return loop(parts.body(), out, scratch)
        case Form.CONTRACTION:
            return _contraction(parts, out, scratch)
        case Form.REDUCTION:
            return _reduction(parts, out, scratch)
        case Form.ROWS:
            return rows(group, parts.ops, parts.arrays, parts.splats, out, scratch)
        case _:
            return _stored(op, results, arrays, outs, scratch)


def _is_empty(group: Group) -> bool:
    return any(prod(shape) == 0 for shape, _ in group.reductions)


@dataclass
class _Parts:
    """The leaves of a body, and the operations that its results need beyond them."""

    arrays: dict[SSAValue, Array]
    splats: dict[SSAValue, Array]
    ops: Sequence[TensorOp]

    @property
    def gathers(self) -> bool:
        """Whether the body gathers from an array that is not a view of an argument."""
        return any(isinstance(op, GatherOp) for op in self.ops)

    def body(self) -> Body:
        """The operations as a loop; all must be elementwise."""
        read = {value for op in self.ops for value in op.inputs}
        leaves = {value: array for value, array in self.arrays.items() if value in read}
        return Body(
            leaves,
            self.splats,
            [Instruction(op, op.inputs, op.result) for op in self.ops],
        )

    def array(self, value: SSAValue) -> Array:
        """A leaf at its full size."""
        if value in self.splats:
            return np.broadcast_to(self.splats[value], shape_of(value))
        return self.arrays[value]


def _parts(
    op: FusionOp, results: Sequence[SSAValue], arrays: Mapping[SSAValue, Array]
) -> _Parts | None:
    """None if a leaf is not a view of an argument, or of a slice of one."""
    arrays = dict(arrays)
    splats: dict[SSAValue, Array] = {}
    rest: list[TensorOp] = []
    for inner in op.body.block.ops:
        if not isinstance(inner, TensorOp) or inner.results[0] in arrays:
            continue
        result, dtype = inner.results[0], dtype_of(inner)
        if isinstance(inner, shaping.ConstantOp | shaping.FullLikeOp):
            value = constant(inner.value, dtype)
            (arrays if value.ndim else splats)[result] = value
        elif isinstance(inner, shaping.IotaOp):
            arrays[result] = iota(inner, shape_of(result), dtype)
        elif isinstance(inner, shaping.ViewOp) and inner.inputs[0] in splats:
            splats[result] = splats[inner.inputs[0]]
        elif isinstance(inner, shaping.ViewOp) and inner.inputs[0] in arrays:
            view = viewed(inner, arrays[inner.inputs[0]], shape_of(result))
            if view is None:
                return None
            arrays[result] = view
        else:
            rest.append(inner)
    return _Parts(arrays, splats, needed(rest, results))


def needed(ops: Sequence[TensorOp], results: Sequence[SSAValue]) -> list[TensorOp]:
    """The operations that `results` depend on, in order."""
    needed = set(results)
    kept: list[TensorOp] = []
    for op in reversed(ops):
        if not needed.isdisjoint(op.results):
            needed.update(op.inputs)
            kept.append(op)
    return kept[::-1]


# Operation by operation


def _stored(
    op: FusionOp,
    results: Sequence[SSAValue],
    arrays: Mapping[SSAValue, Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    arrays = dict(arrays)
    targets = dict(zip(results, outs, strict=True))
    calls: list[Call] = []
    ops = [inner for inner in op.body.block.ops if isinstance(inner, TensorOp)]
    for inner in needed(ops, results):
        (result,) = inner.results
        if result in arrays:
            continue
        sources = [arrays[value] for value in inner.inputs]
        view = viewed(inner, sources[0], shape_of(result)) if sources else None
        if view is not None and result not in targets:
            arrays[result] = view
            continue
        out = targets.get(result)
        arrays[result] = (
            scratch.take(shape_of(result), dtype_of(inner)) if out is None else out
        )
        mark = scratch.mark
        calls += kernel_of(inner)(inner, sources, [arrays[result]], scratch)
        scratch.mark = mark
    for value, out in zip(results, outs, strict=True):
        calls += copy(out, arrays[value])
    return calls


# A contraction and the operations after it


def _contraction(parts: _Parts, out: Array, scratch: Scratch) -> list[Call]:
    (first,) = (inner for inner in parts.ops if isinstance(inner, CONTRACTIONS))
    rest = [inner for inner in parts.ops if inner is not first]
    read = {value for inner in rest for value in inner.inputs}
    sides = {value: x for value, x in parts.arrays.items() if value in read}

    def product(
        op: Contraction, inputs: Sequence[Array], target: Array, scratch: Scratch
    ) -> list[Call]:
        return kernel_of(op)(op, inputs, [target], scratch)

    def after(arrays: Mapping[SSAValue, Array], out: Array) -> list[Call]:
        if not rest:
            return []
        return loop(_Parts(dict(arrays), parts.splats, rest).body(), out, scratch)

    inputs = [parts.array(value) for value in first.inputs]
    return contraction(first, inputs, sides, out, scratch, product, after)


# A reduction of the result of a loop


def _reduction(parts: _Parts, out: Array, scratch: Scratch) -> list[Call]:
    *before, last = parts.ops
    assert isinstance(last, ReduceOp)
    if not before:
        return reduce(last, [parts.array(last.inputs[0])], [out], scratch)
    shape, axes = shape_of(last.inputs[0]), set(last.dimensions.get_values())
    kind, dtype = last.kind.data, dtype_of(before[-1])
    body = _Parts(parts.arrays, parts.splats, before).body()
    program = UfuncProgram(list(body.leaves), body.splats, body.instructions)
    leaves = list(body.leaves.values())
    limit = min(TILE, prod(shape))
    registers, computed = Registers(scratch, limit), scratch.take((limit,), dtype)
    all_tiles = list(tiles(shape, limit))
    is_complete = all(tile[d] == slice(0, shape[d]) for tile in all_tiles for d in axes)
    total = np.dtype(np.float64) if is_float(dtype) else dtype
    sums = out if is_complete else scratch.take(out.shape, total)
    partial = scratch.take((min(limit, out.size),), sums.dtype)
    calls = [] if is_complete else fill(sums, identity(kind, sums.dtype))
    for tile in all_tiles:
        sizes = tuple(s.stop - s.start for s in tile)
        x = computed[: prod(sizes)].reshape(sizes)
        calls += program.compile_tile([a[*tile, ...] for a in leaves], x, registers)
        to = sums[*(s for d, s in enumerate(tile) if d not in axes), ...]
        mark = scratch.mark
        if is_complete:
            calls += reduce(last, [x], [to], scratch)
        else:
            part = np.ndarray(to.shape, sums.dtype, partial)
            calls += reduce(last, [x], [part], scratch)
            combine = reduction_ufunc(last, kind, sums.dtype)
            calls.append(ufunc_call(combine, to, part, to))
        scratch.mark = mark
    return [*calls, *copy(out, sums)]
