"""LAPACK on batches of matrices, in one native call.

    for each matrix:
        work = the matrix, in columns, as LAPACK expects it
        getrf(rows, columns, work, ..., info)
        results = work, or NaN if `info` reports a failure

A routine's workspace is part of the program's: LAPACK states its length when the
program is compiled. A matrix on which a routine fails gives NaN. So does a matrix that
is not finite, for which the routine might not terminate. Eigenvalues of general
matrices, which include conjugate pairs, are left to NumPy's kernel.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import CFUNCTYPE, byref, c_char, c_int, c_void_p
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ....dialects.dtypes import Array, DType
from ....dialects.tgraph import matrices as m
from ....dialects.tgraph.base import Shape
from ...calls import Call
from ...pool import Scratch
from ..jit import externals, llvm
from ..jit.records import ArrayRecord
from ..numpy.lapack import Factor, name_for, nan_of
from .code import LlvmFunction, Value, typed
from .elements import part_type
from .graphs import NoLoopNest
from .nests import merged

_INT = np.dtype(np.int32)


def calls_of(
    op: m.MatrixOp, inputs: Sequence[Array], outs: Sequence[Array], scratch: Scratch
) -> list[Call]:
    """Raises `NoLoopNest` if NumPy must compute the operation."""
    if type(op) not in _FORMS or any(not x.size for x in (*inputs, *outs)):
        raise NoLoopNest
    factors: list[Factor] = [None] * op.FACTORS
    for number, out in zip(op.numbers, outs, strict=True):
        factors[number] = out
    matrices = _Matrices([*inputs, *outs], scratch)
    try:
        _FORMS[type(op)](matrices, op, *inputs, *factors)
    except ImportError:
        raise NoLoopNest from None  # NumPy's kernel reports the missing package
    text = matrices.code.function()
    return [(ArrayRecord(llvm.compiler().function(text), matrices.arrays), ())]


class _Memory(NamedTuple):
    """A matrix or a vector, and its address."""

    array: Array
    pointer: str


class _Asked(NamedTuple):
    """A workspace of the length that the routine asks for. The workspace and its length
    are two arguments."""

    dtype: DType


_Passed: TypeAlias = str | int | float | _Memory | None
"""A character, an integer, an element, memory; None for memory that is not accessed."""


class _Matrices:
    """The loop over a batch of matrices, under construction.

    arrays: the operands and results, then other memory; the words are their addresses.
    """

    def __init__(self, arrays: Sequence[Array], scratch: Scratch):
        self.code = LlvmFunction()
        self.arrays = list(arrays)
        self.dtype = arrays[0].dtype
        self._scratch = scratch
        self._given = len(arrays)
        self._pointers = [self.code.word(number) for number in range(len(arrays))]
        self._moved: Mapping[int, str] = {}

    def memory(self, shape: Shape, dtype: DType | None = None) -> _Memory:
        """Memory for one matrix, in column-major order, or for one vector."""
        array = self._scratch.take(shape[::-1], dtype or self.dtype).T
        self.arrays.append(array)
        return _Memory(array, self.code.word(len(self.arrays) - 1))

    def routine(self, name: str, *arguments: _Passed | _Asked) -> Callable[[], Value]:
        """Returns a function that writes a call of a routine and returns whether the
        routine fails, which its last argument reports. Allocates the workspaces that it
        asks for."""
        lengths = iter(self._lengths(name, arguments))
        complete: list[_Passed] = []
        for argument in arguments:
            if isinstance(argument, _Asked):
                length = next(lengths)
                complete += [self.memory((length,), argument.dtype), length]
            else:
                complete.append(argument)

        def call() -> Value:
            info = self.code.slot(self.code.number(0, "i32"))
            self._call(name, [*map(self._passed, complete), info])
            return self.code.get(info, "i32", 1).compare("ne", 0)

        return call

    def subroutine(self, name: str, *arguments: _Passed) -> None:
        """Calls a BLAS routine, which does not fail."""
        self._call(name, list(map(self._passed, arguments)))

    def _passed(self, argument: _Passed) -> str:
        code = self.code
        match argument:
            case None:
                return "null"
            case _Memory():
                return argument.pointer
            case str():
                return code.slot(code.number(ord(argument), "i8"))
            case int():
                return code.slot(code.number(argument, "i32"))
            case float():
                bits = _bits(argument, self.dtype)
                return code.slot(code.number(bits, f"i{8 * self.dtype.itemsize}"))

    def _call(self, name: str, pointers: Sequence[str]) -> None:
        name = f"@{externals.PREFIX}{name_for(name, self.dtype)}"
        self.code.declare(f"void {name}({', '.join(['ptr'] * len(pointers))})")
        self.code.line(f"call void {name}({', '.join(f'ptr {p}' for p in pointers)})")

    def _lengths(
        self, name: str, arguments: Sequence[_Passed | _Asked]
    ) -> Sequence[int]:
        """The lengths of the workspaces, which a call with length -1 returns."""
        address = externals.address_of(name_for(name, self.dtype))
        answers = [np.zeros(1, x.dtype) for x in arguments if isinstance(x, _Asked)]
        if not answers:
            return ()
        passed: list[Any] = []
        answer = iter(answers)
        for argument in arguments:
            match argument:
                case str():
                    passed.append(byref(c_char(argument.encode())))
                case int():
                    passed.append(byref(c_int(argument)))
                case _Asked():
                    passed += [next(answer).ctypes, byref(c_int(-1))]
                case _:
                    passed.append(None)
        passed.append(byref(c_int()))
        CFUNCTYPE(None, *[c_void_p] * len(passed))(address)(*passed)
        return [_length(x[0].real) for x in answers]

    @contextmanager
    def each(self) -> Generator[None]:
        """The loop over the batch; inside, `at` returns the address of a matrix."""
        given = self.arrays[: self._given]
        batch = given[0].shape[:-2]
        strides = list(zip(*(x.strides[: len(batch)] for x in given), strict=True))
        loops = merged(batch, range(len(batch)), strides)
        with self.code.nest(loops, self._pointers) as moved:
            pairs = zip(given, moved, strict=True)
            self._moved = {id(x): pointer for x, pointer in pairs}
            yield

    def at(self, array: Array) -> str:
        return self._moved[id(array)]

    def matrix(self, array: Array) -> _Memory:
        """The current matrix of the loop."""
        return _Memory(array[(0,) * (array.ndim - 2)], self.at(array))

    def read(self, to: _Memory, x: Array) -> None:
        """Copies a matrix or a vector to memory."""
        with self._reading(to, x):
            pass

    def read_and_check(self, to: _Memory, x: Array) -> Value:
        """Copies a matrix or a vector to memory; returns whether it is finite."""
        finite = self.code.slot(self.code.number(1, "i1"))
        with self._reading(to, x) as value:
            is_finite = _is_finite(value, x.dtype)
            self.code.set(finite, self.code.get(finite, "i1", 1) & is_finite)
        return self.code.get(finite, "i1", 1)

    @contextmanager
    def _reading(self, to: _Memory, x: Array) -> Generator[Value]:
        rank = to.array.ndim
        loops = self._loops(x.shape[-rank:], to.array.strides, x.strides[-rank:])
        with self.code.nest(loops, (self.at(x), to.pointer)) as (source, target):
            value = self._load(source, x.dtype)
            self.code.line(f"store {typed(value)}, ptr {target}, align 1")
            yield value

    def write(self, out: Factor, found: _Memory, fails: Value | None = None) -> None:
        """Copies memory to a result, if it is wanted; writes NaN if `fails`."""
        if out is None:
            return
        code, (shape, steps) = self.code, (found.array.shape, found.array.strides)
        loops = self._loops(shape, out.strides[-len(shape) :], steps)
        with code.nest(loops, (found.pointer, self.at(out))) as (source, target):
            value = self._load(source, out.dtype)
            if fails is not None:
                nan = code.number(_bits(nan_of(out.dtype), out.dtype), value.element)
                value = code.select(fails, nan, value)
            code.line(f"store {typed(value)}, ptr {target}, align 1")

    def clear_other(self, square: _Memory, triangle: str) -> None:
        """Zeroes the triangle other than `triangle`, without the diagonal."""
        code, size = self.code, square.array.shape[0]
        if size == 1:
            return
        zero = code.number(0, f"i{8 * self.dtype.itemsize}")
        columns = ("1", str(size)) if triangle == "L" else ("0", str(size - 1))
        step = self.dtype.itemsize
        with code.loop(*columns, 1) as column:
            start = code.moved(square.pointer, column, size * step)
            rows = "0", column
            if triangle == "U":
                rows = code.index("add", column, 1), str(size)
            with code.loop(*rows, 1) as row:
                at = code.moved(start, row, step)
                code.line(f"store {typed(zero)}, ptr {at}, align 1")

    def exchange(self, numbers: _Memory, rows: _Memory) -> None:
        """Writes the permutation that results from exchanging each of the numbers 0, 1,
        ... in turn with the number in the row that `rows` has for it, counted from 1.
        """
        code = self.code
        with code.loop("0", str(numbers.array.size), 1) as number:
            at = code.moved(numbers.pointer, number, 4)
            value = code.name(f"trunc i64 {number} to i32")
            code.line(f"store i32 {value}, ptr {at}")
        with code.loop("0", str(rows.array.size), 1) as number:
            at = code.moved(rows.pointer, number, 4)
            row = code.op(f"load i32, ptr {at}", "i32", 1).cast("sext", "i64") - 1
            places = [code.moved(numbers.pointer, x, 4) for x in (number, row.text)]
            found = [code.name(f"load i32, ptr {place}") for place in places]
            for value, place in zip(found[::-1], places, strict=True):
                code.line(f"store i32 {value}, ptr {place}")

    def failing(self, is_finite: Value, routine: Callable[[], Value]) -> Value:
        """Whether a routine fails. It is not called, and counts as failed, if the
        matrix is not finite."""
        fails = self.code.slot(self.code.number(1, "i1"))
        with self.code.when(is_finite):
            self.code.set(fails, routine())
        return self.code.get(fails, "i1", 1)

    def _loops(
        self, shape: Shape, written: Shape, read: Shape
    ) -> Sequence[tuple[int, Sequence[int]]]:
        """Loops with the strides of the read and of the written memory, in the order of
        the written memory."""
        order = sorted(range(len(shape)), key=lambda d: -abs(written[d]))
        return [(shape[d], (read[d], written[d])) for d in order]

    def _load(self, pointer: str, dtype: DType) -> Value:
        """The bits of an element."""
        element = f"i{8 * dtype.itemsize}"
        return self.code.op(f"load {element}, ptr {pointer}, align 1", element, 1)


def _length(answer: Any) -> int:
    """The length of a workspace. LAPACK may have rounded it down to a float; this
    rounds up, as SciPy does."""
    if answer.dtype.kind == "f":
        answer = np.nextafter(answer, answer.dtype.type(np.inf))
    return max(int(answer), 1)


def _is_finite(bits: Value, dtype: DType) -> Value:
    """Whether an element, or both parts of a complex one, are finite."""
    part = part_type(dtype)
    exponent = _bits(np.inf, part)
    places = range(0, 8 * dtype.itemsize, 8 * part.itemsize)
    masks = [exponent << place for place in places]
    first, *rest = ((bits & mask).compare("ne", mask) for mask in masks)
    for other in rest:
        first = first & other
    return first


def _bits(number: complex, dtype: DType) -> int:
    """The bits of an element with the value `number`."""
    return int.from_bytes(np.array(number, dtype).tobytes(), "little")


# The operations


def _triangle(op: m.CholeskyOp | m.EighOp) -> str:
    return "L" if op.lower.value.data else "U"


def _cholesky(to: _Matrices, op: m.CholeskyOp, x: Array, out: Array) -> None:
    size = x.shape[-1]
    work = to.memory((size, size))
    factorize = to.routine("potrf", _triangle(op), size, work, size)
    with to.each():
        to.read(work, x)
        to.clear_other(work, _triangle(op))
        to.write(out, work, factorize())


_TRANSPOSED = {"N": "T", "T": "N", "C": "conj", "conj": "C"}


def _triangular_solve(
    to: _Matrices, op: m.TriangularSolveOp, a: Array, b: Array, out: Array
) -> None:
    """If rows are contiguous, they are the columns of a matrix's transpose, and
    `op(a) x = b` becomes `x^T op(a)^T = b^T`. Neither `a` nor `x` has to be copied
    then."""
    externals.address_of(name_for("trsm", to.dtype))
    rows, columns = b.shape[-2:]
    wanted = op.transpose_a.data[0].replace("A", "C")  # "N", "T" or "C"
    is_left, is_lower = bool(op.left_side.value.data), bool(op.lower.value.data)
    size, step_of_b = (rows, columns), rows
    work = None
    if (lead := _lead(out)) is not None:
        is_left, size, step_of_b = not is_left, (columns, rows), lead
        wanted = _TRANSPOSED[wanted]
    else:
        work = to.memory((rows, columns))
    if to.dtype.kind != "c":
        wanted = {"C": "T", "conj": "N"}.get(wanted, wanted)
    in_rows, step = wanted == "conj", _lead(a)
    if wanted != "C" and step is not None:
        in_rows = True
    elif not in_rows:
        step = _lead(a.swapaxes(-1, -2))
    triangle = None
    if step is None:
        step = a.shape[-1]
        triangle = to.memory(a.shape[-2:])
        if in_rows:
            triangle = _Memory(triangle.array.T, triangle.pointer)
    if in_rows:
        wanted = _TRANSPOSED[wanted]
    flags = (
        "L" if is_left else "R",
        "L" if is_lower != in_rows else "U",
        wanted,
        "U" if op.unit_diagonal.value.data else "N",
    )
    with to.each():
        solved = work or to.matrix(out)
        to.read(solved, b)
        if triangle:
            to.read(triangle, a)
        given = triangle or to.matrix(a)
        to.subroutine("trsm", *flags, *size, 1.0, given, step, solved, step_of_b)
        if work:
            to.write(out, work)


def _lead(x: Array) -> int | None:
    """The elements from one row to the next; None if rows are not contiguous."""
    *_, step, within = x.strides
    lead, rest = divmod(step, x.itemsize)
    if x.shape[-2] == 1:
        lead, rest = x.shape[-1], 0
    is_together = within == x.itemsize or x.shape[-1] == 1
    return lead if is_together and not rest and lead >= x.shape[-1] else None


def _lu(
    to: _Matrices, op: m.LuOp, x: Array, out: Factor, pivots: Factor, order: Factor
) -> None:
    rows, columns = x.shape[-2:]
    work = to.memory((rows, columns))
    exchanged = to.memory((min(rows, columns),), _INT)
    numbers = to.memory((rows,), _INT)
    factorize = to.routine("getrf", rows, columns, work, rows, exchanged)
    with to.each():
        to.read(work, x)
        factorize()  # succeeds for a singular matrix, too
        to.write(out, work)
        to.write(pivots, exchanged)
        if order is not None:
            to.exchange(numbers, exchanged)
            to.write(order, numbers)


def _qr(to: _Matrices, op: m.QrOp, x: Array, out: Factor, scales: Factor) -> None:
    rows, columns = x.shape[-2:]
    work = to.memory((rows, columns))
    found = to.memory((min(rows, columns),))
    asked = _Asked(to.dtype)
    factorize = to.routine("geqrf", rows, columns, work, rows, found, asked)
    with to.each():
        to.read(work, x)
        factorize()
        to.write(out, work)
        to.write(scales, found)


def _householder_product(
    to: _Matrices, op: m.HouseholderProductOp, x: Array, scales: Array, out: Array
) -> None:
    rows, columns = x.shape[-2:]
    count = scales.shape[-1]
    work, given = to.memory((rows, columns)), to.memory((max(count, 1),))
    asked = _Asked(to.dtype)
    multiply = to.routine("orgqr", rows, columns, count, work, rows, given, asked)
    with to.each():
        to.read(work, x)
        to.read(given, scales)
        multiply()
        to.write(out, work)


def _eigh(
    to: _Matrices, op: m.EighOp, x: Array, vectors: Factor, values: Factor
) -> None:
    size, dtype = x.shape[-1], to.dtype
    work = to.memory((size, size))
    found = to.memory((size,), part_type(dtype))
    kind = "N" if vectors is None else "V"
    parts = [_Asked(part_type(dtype))] if dtype.kind == "c" else []
    asked = [_Asked(dtype), *parts, _Asked(_INT)]
    decompose = to.routine(
        "syevd", kind, _triangle(op), size, work, size, found, *asked
    )
    with to.each():
        fails = to.failing(to.read_and_check(work, x), decompose)
        to.write(vectors, work, fails)
        to.write(values, found, fails)


def _svd(
    to: _Matrices, op: m.SvdOp, x: Array, u: Factor, s: Factor, vh: Factor
) -> None:
    rows, columns = x.shape[-2:]
    few, many = sorted((rows, columns))
    part, is_complex = part_type(to.dtype), to.dtype.kind == "c"
    work = to.memory((rows, columns))
    found = to.memory((few,), part)
    kind, left, right = "N", None, None
    if u is not None or vh is not None:
        is_full = op.full_matrices.value.data
        kind = "A" if is_full else "S"
        left = to.memory((rows, rows if is_full else few))
        right = to.memory((columns if is_full else few, columns))
    height = 1 if right is None else right.array.shape[0]
    by_value = (
        7 * few if kind == "N" else few * max(5 * few + 7, 2 * many + 2 * few + 1)
    )
    reals = [to.memory((max(by_value, 1),), part)] if is_complex else []
    decompose = to.routine(
        *("gesdd", kind, rows, columns, work, rows, found, left, rows, right, height),
        *(_Asked(to.dtype), *reals, to.memory((8 * few,), _INT)),
    )
    with to.each():
        fails = to.failing(to.read_and_check(work, x), decompose)
        for out, memory in ((u, left), (s, found), (vh, right)):
            if memory is not None:
                to.write(out, memory, fails)


_FORMS: Mapping[type[m.MatrixOp], Callable[..., None]] = {
    m.CholeskyOp: _cholesky,
    m.EighOp: _eigh,
    m.HouseholderProductOp: _householder_product,
    m.LuOp: _lu,
    m.QrOp: _qr,
    m.SvdOp: _svd,
    m.TriangularSolveOp: _triangular_solve,
}
