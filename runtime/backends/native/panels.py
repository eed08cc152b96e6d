"""Multiplies matrices of any layout, without packed copies of them.

    out[b, i, j] = sum over k of x[b, i, k] * y[b, k, j]

is computed as

    for 256 sums k at a time:
        for a panel of 2 vectors of columns j at a time:
            copy the panel of y into a buffer, if that pays
            for some rows i at a time:
                for each k:
                    out[i, j] += x[i, k] * y[k, j]      # out is in registers
                apply the operations that follow the product

Libraries pack the whole right matrix, and the left one if it is transposed, as in the
gradient of a weight. Here, numbers of the left matrix are broadcast where they lie,
whatever its strides are, and the buffer has a constant size. A panel is transposed into
the buffer if the columns of y are contiguous, as in `x @ weight.T`, and copied if many
rows read it.

A convolution with one element per window, and images whose features are planes, is such
a product for each image. The gradient of its weights adds up one product for each.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from ....analysis.cost import MANY_ROWS
from ....dialects.tgraph.base import TensorOp
from ....dialects.tgraph.reducing import DotGeneralOp
from ....support.arrays import Array, DType, Shape
from ...calls import Call
from ...pool import Scratch
from ..contraction import Contraction
from ..jit import llvm
from ..jit.records import ArrayRecord, parallel
from ..matrix_views import (
    Matrices,
    has_floats,
    is_wide,
    matrix_views,
    summed_views,
    with_copies,
)
from ..onednn import epilogue
from ..onednn.epilogue import Epilogue
from ..onednn.library import Refused
from ..parts import LANES, Slices, divisions
from .code import LINE, LlvmFunction, Value
from .dot_products import registers
from .elements import load, register_type, store
from .nests import merged
from .transposing import Matrix

Formula: TypeAlias = tuple[int, int | tuple[float, float]]
"""A kind, with the number of an operand, or with the factor and summand of `LINEAR`."""

VECTORS = 2
"""The vectors in a row of a panel."""

SUMS = 256
"""The most rows of a panel that is copied: 32 KB with AVX-512."""

AHEAD = 6
"""The number of sums by which a left matrix with contiguous columns is prefetched:
processors do not prefetch rows that are far apart. It saves up to a tenth."""

LEAST = 1 << 12
"""Products with fewer multiplications take about a microsecond in any way, which does
not pay for a compilation of 10 to 70 ms."""

LARGE = 1 << 25
"""Products with more multiplications are for a library, which then also divides the
left matrix into blocks that stay in a cache. On a Xeon with AVX-512, products of
matrices between 8x8 and 512x512 take 0.5 to 1.05 of oneDNN's time.
"""

KEPT = 64
"""The number of cached texts."""


def calls_of(
    op: Contraction,
    inputs: Sequence[Array],
    out: Array,
    scratch: Scratch,
    after: Sequence[TensorOp] = (),
    result: SSAValue | None = None,
    arrays: Mapping[SSAValue, Array] | None = None,
) -> list[Call] | None:
    """The calls of such a product and of the operations `after` it, as for
    `onednn.compiled`; None for other contractions, for products with vectors, and if
    these operations are not a chain of sums and products."""
    found = _matrices(op, inputs, out, scratch)
    if found is None:
        return None
    (lhs, rhs, target, arranged), made = found
    try:
        steps = Epilogue(op, after, result, arrays or {}, out).steps
    except Refused:
        return None
    if is_flipped := target.strides[-1] != target.itemsize:
        lhs, rhs, target = (x.swapaxes(-1, -2) for x in (rhs, lhs, target))
    sides: list[Array] = []
    formulas: list[Formula] = []
    for kind, by in steps:
        if isinstance(by, tuple):
            formulas.append((kind, by))
            continue
        side = arranged(by)
        if side is None:
            return None
        formulas.append((kind, len(sides)))
        sides.append(side.swapaxes(-1, -2) if is_flipped else side)
    is_copied = rhs.strides[-1] != rhs.itemsize or lhs.shape[-2] >= MANY_ROWS
    step = SUMS if is_copied else lhs.shape[-1]
    is_read = any(np.may_share_memory(x, target) for x in sides)
    is_sum = lhs.ndim > target.ndim
    if is_read and (is_sum or lhs.shape[-1] > step):
        return None  # the first sums would replace an operand of the last formula
    whole = [lhs, rhs, *sides, target]
    batch = target.ndim - 2
    units = {**dict.fromkeys(range(batch), 1), batch + 1: 2 * LANES, batch: LANES}
    summed = lhs.shape[-1] * (len(lhs) if is_sum else 1)
    divided = divisions(target.shape, units, summed, scratch.threads)[0]
    parts = [_part(whole, formulas, block, is_copied, step) for block in divided]
    return [*made, *parallel(parts, scratch.threads)]


def _matrices(
    op: Contraction, inputs: Sequence[Array], out: Array, scratch: Scratch
) -> tuple[Matrices, list[Call]] | None:
    """Both matrices and the result, and calls that copy what is no matrix; None for
    other contractions. With another dimension before those of the result, the matrices
    are several whose products are summed."""
    views, made = summed_views(op, inputs, out), list[Call]()
    if views is None:
        if isinstance(op, DotGeneralOp) and has_floats(inputs, out):
            views, made = with_copies(op, inputs, out, scratch, is_wide) or (None, [])
        else:
            views = matrix_views(op, inputs, out)
        if views is None:
            return None
        is_stack = isinstance(op, DotGeneralOp) and views.is_broadcast
        if scratch.constant(inputs[1]) and not is_stack:
            return None  # a library packs it only once
        views = views.broadcast()
    lhs, rhs, target, _ = views
    size = target.itemsize
    right = rhs if target.strides[-1] == size else lhs
    if size not in target.strides[-2:] or size not in right.strides[-2:]:
        return None
    (rows, columns), terms = target.shape[-2:], lhs.shape[-1]
    if target.size * terms < LEAST or rows * columns * terms > LARGE:
        return None
    return None if 1 in (rows, columns) else (views, made)


def _part(
    whole: Sequence[Array],
    formulas: Sequence[Formula],
    block: Slices,
    is_copied: bool,
    step: int,
) -> list[Call]:
    """The calls for a block of the result, which compute `step` sums at a time."""
    *batch, rows, columns = block
    others = [x[block] for x in whole[2:]]
    count = whole[0].shape[-1]
    is_sum = whole[0].ndim > others[-1].ndim
    terms = [
        (lhs[*batch, rows, :], rhs[*batch, :, columns])
        for lhs, rhs in (zip(*whole[:2], strict=True) if is_sum else [whole[:2]])
    ]
    starts = [(term, start) for term in terms for start in range(0, count, step)]
    calls: list[Call] = []
    for number, ((lhs, rhs), start) in enumerate(starts):
        sums = slice(start, start + step)
        is_last = number == len(starts) - 1
        parts = [lhs[..., sums], rhs[..., sums, :], *others[0 if is_last else -1 :]]
        layouts = tuple((x.shape, x.strides) for x in parts)
        after = tuple(formulas) if is_last else ()
        text = _text(_Form(lhs.dtype, is_copied, number > 0, after, layouts))
        calls.append((ArrayRecord(llvm.compiler().function(text), parts), ()))
    return calls


class _Form(NamedTuple):
    """Everything that the code of a product depends on."""

    dtype: DType
    is_copied: bool
    """Whether panels are copied into a buffer."""
    adds: bool
    """Whether the products are added to the contents of the result."""
    formulas: tuple[Formula, ...]
    layouts: tuple[tuple[Shape, Shape], ...]
    """The shapes and strides of the arrays."""


@lru_cache(KEPT)
def _text(form: _Form) -> str:
    return _Lowering(form).text()


def _height(rows: int, most: int) -> int:
    """The rows of a tile: preferably a divisor of all rows, so that all tiles have the
    same code."""
    fewest = -(-rows // -(-rows // most))
    divisors = (n for n in range(fewest, fewest // 2, -1) if rows % n == 0)
    return next(divisors, fewest)


class _Lowering:
    """The words are the addresses of both matrices, of the operands of the formulas,
    and of the result."""

    def __init__(self, form: _Form):
        self._code = code = LlvmFunction()
        self._form, self._dtype, self._size = form, form.dtype, form.dtype.itemsize
        bytes, count = registers()
        self._lanes = bytes // self._size
        self._width = VECTORS * self._lanes
        self._accumulators = count * 3 // 4
        (*batch, self._rows, self._sums), _ = form.layouts[0]
        self._columns = form.layouts[-1][0][-1]
        self._steps = [strides[-2:] for _, strides in form.layouts]
        strides = zip(*(strides for _, strides in form.layouts), strict=True)
        self._batch = merged((*batch,), range(len(batch)), list(strides))
        elements = self._sums * self._width if form.is_copied else 0
        self._buffer = code.buffer(f"[{self._size} x i8]", elements)

    def text(self) -> str:
        code, width = self._code, self._width
        steps = [0, *(across for _, across in self._steps[1:])]
        whole = self._columns // width * width
        words = [code.word(n) for n in range(len(self._steps))]
        with code.nest(self._batch, words) as words:
            if whole:
                with code.loop("0", str(whole), width) as column:
                    self._panel(code.all_moved(words, column, steps), width)
            if whole < self._columns:
                at = code.all_moved(words, str(whole), steps)
                self._panel(at, self._columns - whole)
        return code.function()

    def _panel(self, words: Sequence[str], columns: int) -> None:
        code = self._code
        left, right, *others = words
        step = self._steps[1][0]
        if self._form.is_copied:
            self._copy(right, columns)
            right, step = self._buffer, self._width * self._size
        words = left, right, *others
        most = self._accumulators // -(-columns // self._lanes)
        height = _height(self._rows, most)
        down = [x for x, _ in self._steps]
        down[1] = 0
        whole = self._rows // height * height
        with code.loop("0", str(whole), height) as row:
            self._tile(code.all_moved(words, row, down), step, height, columns)
        if whole < self._rows:
            at = code.all_moved(words, str(whole), down)
            self._tile(at, step, self._rows - whole, columns)

    def _copy(self, right: str, columns: int) -> None:
        """Copies a panel into the buffer."""
        code, size, dtype = self._code, self._size, self._dtype
        down, along = self._steps[1]
        row = self._width * size
        if along != size:
            sizes = columns, self._sums, along, row
            Matrix(code, size, *sizes, is_large=False).copy(right, self._buffer)
            return
        with code.loop("0", str(self._sums), 1) as k:
            source, target = code.all_moved([right, self._buffer], k, [down, row])
            for start, active in self._vectors(columns):
                at = code.all_moved([source, target], start, [size, size])
                value = load(code, at[0], size, dtype, self._lanes, active)
                store(value, at[1], size, dtype, self._lanes, active)

    def _vectors(self, columns: int) -> Sequence[tuple[str, int]]:
        """The first column, and the number of columns, of each vector of a panel."""
        starts = range(0, columns, self._lanes)
        return [(str(at), min(self._lanes, columns - at)) for at in starts]

    def _tile(self, words: Sequence[str], step: int, rows: int, columns: int) -> None:
        """`step` is the number of bytes between the rows of the panel."""
        code, size, lanes = self._code, self._size, self._lanes
        down, along = self._steps[0]
        vectors = self._vectors(columns)
        element = register_type(self._dtype)
        assert element is not None
        zero = code.widened(code.number(0, element), lanes)
        slots = [[code.slot(zero) for _ in vectors] for _ in range(rows)]
        with code.loop("0", str(self._sums), 1) as k:
            left, right = code.all_moved(words[:2], k, [along, step])
            if along >= LINE:
                code.prefetch(left, AHEAD * along)
            if not self._form.is_copied:
                for at, _ in vectors:
                    code.prefetch(code.moved(right, at, size), AHEAD * step)
            factors: list[Value] = []
            for start, active in vectors:
                at = code.moved(right, start, size)
                factors.append(load(code, at, size, self._dtype, lanes, active))
            for row, line in enumerate(slots):
                at = code.moved(left, str(row), down)
                number = load(code, at, 0, self._dtype, 1, 1)
                wide = code.widened(number, lanes)
                for slot, factor in zip(line, factors, strict=True):
                    total = code.get(slot, element, lanes)
                    code.set(slot, code.fma(wide, factor, total))
        for row, line in enumerate(slots):
            steps = [down for down, _ in self._steps[2:]]
            at = code.all_moved(words[2:], str(row), steps)
            for slot, (start, active) in zip(line, vectors, strict=True):
                self._store(code.get(slot, element, lanes), at, start, active)

    def _store(
        self, total: Value, words: Sequence[str], column: str, active: int
    ) -> None:
        """Applies the formulas to a vector of sums, and stores it."""
        across = [step for _, step in self._steps[2:]]
        at = self._code.all_moved(words, column, across)

        def loaded(number: int) -> Value:
            step, dtype = across[number], self._dtype
            x = load(self._code, at[number], step, dtype, self._lanes, active)
            return self._code.widened(x, self._lanes)

        if self._form.adds:
            total = loaded(-1) + total
        for kind, by in self._form.formulas:
            if isinstance(by, tuple):
                factor, summand = by
                total = total * factor if factor != 1 else total
                total = total + summand if summand else total
            elif kind == epilogue.ADD:
                total += loaded(by)
            elif kind == epilogue.SUBTRACT:
                total -= loaded(by)
            else:
                total *= loaded(by)
        store(total, at[-1], self._size, self._dtype, self._lanes, active)
