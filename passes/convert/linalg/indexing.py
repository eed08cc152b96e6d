"""Writes scatter, and the gradient of max pooling, as loops over index vectors.

The loops run in the order of the reference interpreter, because several updates may
write the same element. A slice at dynamic starts becomes a `linalg.generic` that loads
by index.
"""

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue

from ....analysis.layout import Layout
from ....dialects.tgraph.base import tensor_type_of
from ....dialects.tgraph.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    ScatterOp,
)
from ....dialects.tgraph.reducing import SelectAndScatterOp
from .code import MlirCode, dot_type, index, is_float, is_unsigned
from .gathers import of_batch, total
from .memory import Stored
from .nests import GenericBody, LoopBody, Values, assign, copy, dims
from .reducing import accumulated, combine


def dynamic_slice(values: Values, op: DynamicSliceOp, target: Stored) -> None:
    if 0 in target.shape:
        return
    source, *starts = map(values.store, op.inputs)
    operand = values.memref_of(source)
    begins = _clamped(values, starts, source.shape, target.shape)
    nest = GenericBody(values, target.shape)
    at = [
        nest.code.add(arith.AddiOp(begin, nest.index(e)))
        for begin, e in zip(begins, nest.dims, strict=True)
    ]
    element = nest.code.load(operand, at)
    nest.finish(target, nest.dims, lambda _: element)


def slice_in_place(values: Values, op: DynamicSliceOp) -> Stored | None:
    """The slice as a view; None if it repeats elements or has none."""
    source, *starts = op.inputs
    return _part(values, values.store(source), starts, op.slice_sizes.get_values())


def updated_in_place(
    values: Values, op: DynamicUpdateSliceOp, target: Stored
) -> Stored | None:
    """Copies the old elements to `target`. Returns the slice of `target` that an update
    replaces, as a view; None if it repeats elements or has none."""
    old, update, *starts = op.inputs
    sizes = tensor_type_of(update.type).get_shape()
    copy(values, values.store(old), target)
    return _part(values, target, starts, sizes)


def _part(
    values: Values, source: Stored, starts: Sequence[SSAValue], sizes: Sequence[int]
) -> Stored | None:
    """A slice of `source` as a view; None if it repeats elements or has none."""
    if source.repeats or 0 in sizes:
        return None
    shape, strides = source.shape, source.layout.strides
    dims = [d for d in range(len(sizes)) if sizes[d] < shape[d]]
    begins = _clamped(
        values,
        [values.store(starts[d]) for d in dims],
        [shape[d] for d in dims],
        [sizes[d] for d in dims],
    )
    part = source.viewed(Layout(tuple(sizes), strides, source.layout.offset))
    for d, begin in zip(dims, begins, strict=True):
        step = values.code.constant(strides[d], index)
        part = values.memory.moved(part, values.code.add(arith.MuliOp(begin, step)))
    return part


def dynamic_update_slice(
    values: Values, op: DynamicUpdateSliceOp, target: Stored
) -> None:
    operand, update, *starts = map(values.store, op.inputs)
    copy(values, operand, target)
    if 0 in update.shape:
        return
    new, result = map(values.memref_of, (update, target))
    begins = _clamped(values, starts, target.shape, update.shape)

    def one_element(code: MlirCode, place: list[SSAValue]) -> None:
        at = [
            code.add(arith.AddiOp(begin, p))
            for begin, p in zip(begins, place, strict=True)
        ]
        code.store(code.load(new, place), result, at)

    values.code.loops(update.shape, one_element)


def _clamped(
    values: Values, starts: Sequence[Stored], shape: Sequence[int], taken: Sequence[int]
) -> list[SSAValue]:
    """The starts of a slice, clamped so that the slice is in bounds."""
    code = values.code
    begins: list[SSAValue] = []
    for start, size, length in zip(starts, shape, taken, strict=True):
        number = code.load(values.memref_of(start), ())
        begin = code.to_index(number, start.element)
        begin = code.add(arith.MaxSIOp(begin, code.constant(0, index)))
        begins.append(
            code.add(arith.MinSIOp(begin, code.constant(size - length, index)))
        )
    return begins


def scatter(values: Values, op: ScatterOp, target: Stored) -> None:
    """Computes indices and updates in the loops, unless they are stored."""
    operand, _, updates = op.inputs
    assign(values, operand, target)
    shape = tensor_type_of(updates.type).get_shape()
    if 0 in shape or 0 in target.shape:
        return
    element, kind = target.element, op.kind.data
    result = values.memref_of(target)
    numbers, exprs = op.dimension_numbers, dims(len(shape))
    window_dims, batch_dims = numbers.window, numbers.batch(len(shape))
    of_window = dict(zip(numbers.kept(len(target.shape)), window_dims, strict=True))

    def one_slice(code: MlirCode, batch: list[SSAValue]) -> None:
        place = dict(zip(batch_dims, batch, strict=True))
        starts = LoopBody(values, code, place).starts(op, exprs)
        is_inside = _true(code)
        for d, start in starts.items():
            taken = shape[of_window[d]] if d in of_window else 1
            highest = code.constant(target.shape[d] - taken, index)
            zero = code.constant(0, index)
            for test in (
                arith.CmpiOp(start, zero, "sge"),
                arith.CmpiOp(start, highest, "sle"),
            ):
                is_inside = code.add(arith.AndIOp(is_inside, code.add(test)))
        starts |= of_batch(
            numbers.operand_batching, numbers.indices_batching, numbers.vector, batch
        )

        def one_element(code: MlirCode, window: list[SSAValue]) -> None:
            inside = place | dict(zip(window_dims, window, strict=True))
            at = [
                total(code, starts.get(d), inside.get(of_window.get(d, -1)))
                for d in range(len(target.shape))
            ]
            update = LoopBody(values, code, inside).value(updates, exprs)
            if kind != "replace":
                old = code.load(result, at)
                update = combine(code, kind, element, old, update)
            code.store(update, result, at)

        sizes = [shape[d] for d in window_dims]
        code.when(is_inside, lambda inner: inner.loops(sizes, one_element))

    values.code.loops([shape[d] for d in batch_dims], one_slice)


def select_and_scatter(values: Values, op: SelectAndScatterOp, target: Stored) -> None:
    if 0 in target.shape:
        return
    pooled, gradient = map(values.store, op.inputs)
    element = target.element
    old, new = map(values.memref_of, (pooled, gradient))
    selection = _Selection(op, old, element)

    def add_up(total: Stored) -> None:
        if 0 in gradient.shape:
            return
        sums = values.memref_of(total)

        def one_place(code: MlirCode, place: list[SSAValue]) -> None:
            found, at = selection.write(code, place)

            def one_sum(code: MlirCode) -> None:
                update = code.load(new, place)
                sum = combine(code, "add", element, code.load(sums, at), update)
                code.store(sum, sums, at)

            code.when(found, one_sum)

        values.code.loops(gradient.shape, one_place)

    accumulated(values, target, "add", dot_type(element), add_up)


class _Selection:
    """Finds the element of `pooled`, a memref, that a window selects."""

    def __init__(self, op: SelectAndScatterOp, pooled: SSAValue, element: Attribute):
        self.pooled, self.element = pooled, element
        self.shape = tensor_type_of(op.inputs[0].type).get_shape()
        self.window = op.window(len(self.shape))
        self.more = "gt" if op.kind.data == "maximum" else "lt"

    def write(
        self, code: MlirCode, place: Sequence[SSAValue]
    ) -> tuple[SSAValue, Sequence[SSAValue]]:
        """Whether the window at `place` contains any element, and the indices of the
        selected one."""
        corner = [
            code.add(
                arith.SubiOp(
                    code.add(arith.MuliOp(p, code.constant(dim.stride, index))),
                    code.constant(dim.low, index),
                )
            )
            for p, dim in zip(place, self.window, strict=True)
        ]
        sizes = [dim.size for dim in self.window]

        def one_entry(
            code: MlirCode, number: SSAValue, best: Sequence[SSAValue]
        ) -> Sequence[SSAValue]:
            offsets = unravel(code, number, sizes)
            at = [
                code.add(arith.AddiOp(c, o))
                for c, o in zip(corner, offsets, strict=True)
            ]
            return self._better(code, at, best)

        nothing = code.invert(_true(code))
        start = [nothing, code.constant(0, self.element)]
        start += [code.constant(0, index)] * len(sizes)
        found, _, *at = code.loop(prod(sizes), one_entry, start)
        return found, at

    def _better(
        self, code: MlirCode, at: Sequence[SSAValue], best: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """The better one of `best` and the element at the indices `at`, if these are in
        bounds. `best`: whether one has been found, its element, and its indices."""
        is_inside = _true(code)
        safe: list[SSAValue] = []
        for a, size in zip(at, self.shape, strict=True):
            # As unsigned numbers, negative indices are large.
            fits = code.add(arith.CmpiOp(a, code.constant(size, index), "ult"))
            is_inside = code.add(arith.AndIOp(is_inside, fits))
            zero = code.constant(0, index)
            safe.append(code.add(arith.SelectOp(fits, a, zero)))
        value = code.load(self.pooled, safe)
        better = _compare(code, self.element, value, best[1], self.more)
        is_first = code.invert(best[0])
        wins = code.add(arith.OrIOp(better, is_first))
        wins = code.add(arith.AndIOp(wins, is_inside))
        found = code.add(arith.OrIOp(best[0], is_inside))
        return [
            found,
            *(
                code.add(arith.SelectOp(wins, ours, theirs))
                for ours, theirs in zip([value, *at], best[1:], strict=True)
            ),
        ]


def unravel(code: MlirCode, number: SSAValue, shape: Sequence[int]) -> list[SSAValue]:
    """The indices of the element `number` in row-major order."""
    indices: list[SSAValue] = []
    for size in reversed(shape):
        divisor = code.constant(size, index)
        indices.append(code.add(arith.RemUIOp(number, divisor)))
        number = code.add(arith.DivUIOp(number, divisor))
    return indices[::-1]


def _compare(
    code: MlirCode, element: Attribute, x: SSAValue, y: SSAValue, predicate: str
) -> SSAValue:
    """Whether the predicate holds, or, for floats, one operand is NaN."""
    if is_float(element):
        return code.add(arith.CmpfOp(x, y, f"u{predicate}"))
    sign = "u" if is_unsigned(element) else "s"
    return code.add(arith.CmpiOp(x, y, sign + predicate))


def _true(code: MlirCode) -> SSAValue:
    return code.constant(1, i1)
