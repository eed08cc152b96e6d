"""Fourier transforms by Stockham's algorithm, for sizes of small prime factors.

    with s = 1 at first, for each radix r of the factors of n:
        for p below n / (r s), for q below s:
            z = transform(x[q + s (p + (n / (r s)) j)] for j below r)
            y[q + s (r p + j)] = z[j] * exp(-2 pi i p j s / n)    for j below r
        x, y, s = y, x, s r

The results of the last stage are in order, so nothing is permuted. In between, real and
imaginary parts lie apart, in scratch memory. The lanes of a vector belong to one
transform, if its numbers are contiguous and n has enough factors 2, or else to as many
transforms. A real transform of even size is a complex one of half the size, whose
numbers are pairs of real ones. An inverse transform exchanges real and imaginary parts
before and afterwards. (Van Loan, "Computational Frameworks for the Fast Fourier
Transform", 1992.)
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from math import pi, prod
from typing import NamedTuple

import numpy as np

from ....dialects.tgraph.spectral import FftOp
from ....support.arrays import Array, DType
from ...calls import Call
from ...pool import Scratch
from ..jit import llvm
from ..jit.records import ArrayRecord, parallel
from ..parts import cut
from .code import LlvmFunction, Value
from .complexes import Complex
from .elements import load, load_element, part_type, store, store_element
from .nests import VECTOR, Loops, merged

ODD = (3, 5, 7, 11, 13)
"""The odd radices. Larger prime factors need another algorithm (Bluestein's)."""

LONGEST = 1 << 16
"""The largest size: intermediate results beyond do not fit into a core's L2 cache."""

FLOPS_PER_NS = 10
"""The speed by which work is divided into parts for threads."""

KEPT = 64
"""The number of cached texts and tables."""


def calls_of(op: FftOp, x: Array, out: Array, scratch: Scratch) -> list[Call] | None:
    """Transforms the last dimension first; `IRFFT` transforms it last. None if a size
    has no native form."""
    kind, length = op.fft_type.data, op.length.get_values()
    if not all(1 < n <= LONGEST and _radices(n) for n in length):
        return None
    last, others = x.ndim - 1, range(x.ndim - len(length), x.ndim - 1)
    if kind != "IRFFT":
        calls = _along(kind, x, out, last, scratch)
        kind = "IFFT" if kind == "IFFT" else "FFT"
        for axis in others:
            calls += _along(kind, out, out, axis, scratch)
        return calls
    buffer, calls = scratch.take(x.shape, x.dtype) if others else x, list[Call]()
    for axis in others:
        calls += _along("IFFT", x, buffer, axis, scratch)
        x = buffer
    return [*calls, *_along(kind, buffer, out, last, scratch)]


def _along(kind: str, x: Array, out: Array, axis: int, scratch: Scratch) -> list[Call]:
    """Transforms one dimension. `out` may be `x`."""
    size = (x if kind == "RFFT" else out).shape[axis]
    count = prod(out.shape) // out.shape[axis]
    part = part_type(out.dtype)
    rest = [n for d, n in enumerate(x.shape) if d != axis]
    time = 5 * size * size.bit_length() * count / FLOPS_PER_NS
    units = [1] * (len(rest) - 1) + [VECTOR // part.itemsize]
    divided, spans = cut(rest, units[: len(rest)], time, scratch.threads)
    divided += divided >= axis
    parts: list[list[Call]] = []
    for span in spans:
        place = (*[slice(None)] * divided, span) if rest else ()
        source, target = x[place], out[place]
        steps = list(zip(source.strides, target.strides, strict=True))
        around = merged(source.shape, [d for d in range(x.ndim) if d != axis], steps)
        is_separate = not np.may_share_memory(x, out)
        along = steps[axis][0], steps[axis][1]
        layout = _layout(kind, size, part, along, around, is_separate)
        memory = scratch.take((layout.scratch,), part)
        text, table = _lowered(layout)
        record = ArrayRecord(
            llvm.compiler().function(text), [source, target, memory, table]
        )
        parts.append([(record, ())])
    return parallel(parts, scratch.threads)


class _Layout(NamedTuple):
    """Everything that the code of transforms along a dimension depends on."""

    kind: str
    size: int
    part: DType  # of real and imaginary parts
    steps: tuple[int, int]  # the strides of source and target along the dimension
    around: tuple[tuple[int, tuple[int, int]], ...]  # loops over transforms
    lanes: int  # of transforms in a vector; 0 if a vector belongs to one transform
    is_separate: bool  # whether source and target do not overlap

    @property
    def is_half(self) -> bool:
        """Whether the numbers are pairs of real ones."""
        return self.kind in ("RFFT", "IRFFT") and self.size % 2 == 0 and self.size > 2

    @property
    def cells(self) -> int:
        """The complex numbers that are transformed."""
        return self.size // 2 if self.is_half else self.size

    @property
    def plane(self) -> int:
        """The real parts of an intermediate result."""
        return (self.cells + 1) * max(self.lanes, 1)

    @property
    def results(self) -> int:
        """The number of intermediate results."""
        return len(_radices(self.cells)) - (self.kind in ("FFT", "IFFT"))

    @property
    def is_in_target(self) -> bool:
        """Whether every other intermediate result is in the target."""
        is_as_large = self.is_half or self.kind in ("FFT", "IFFT")
        return self.is_separate and is_as_large and not self.lanes

    @property
    def scratch(self) -> int:
        """The numbers of the intermediate results that exist at a time."""
        return 2 * self.plane * min(self.results, 1 if self.is_in_target else 2)


def _layout(
    kind: str,
    size: int,
    part: DType,
    steps: tuple[int, int],
    around: Loops,
    is_separate: bool,
) -> _Layout:
    widths = {"RFFT": (1, 2), "IRFFT": (2, 1)}.get(kind, (2, 2))
    items = [n * part.itemsize for n in widths]
    most = VECTOR // part.itemsize
    contiguous = [n for n, (_, by) in enumerate(around) if list(by) == items]
    loops = [(n, (by[0], by[1])) for n, by in around]
    if contiguous:
        loops.append(loops.pop(contiguous[0]))
    layout = _Layout(kind, size, part, steps, tuple(loops), 0, is_separate)
    in_lanes = loops[-1][0] if loops else 1
    has_vectors = layout.cells // _radices(layout.cells)[0] % most == 0
    if list(steps) == items and (has_vectors or in_lanes < most // 2):
        return layout
    lanes = min(most, 1 << (in_lanes - 1).bit_length())
    return layout._replace(lanes=lanes)


@lru_cache(KEPT)
def _radices(n: int) -> Sequence[int]:
    """The factors of `n`, powers of 2 first; none if `n` has other prime factors."""
    twos = (n & -n).bit_length() - 1
    eights, rest = divmod(twos, 3)
    if rest == 1 and eights:
        found = [8] * (eights - 1) + [4, 4]
    else:
        found = [8] * eights + [1 << rest] * (rest > 0)
    n >>= twos
    for radix in ODD:
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return found if n == 1 else ()


class _Lanes(NamedTuple):
    """The lanes of a vector in memory, of which the first `active` are accessed."""

    stride: int
    lanes: int
    active: int


@dataclass(frozen=True)
class _Memory:
    """Complex numbers along the transformed dimension, in the caller's memory."""

    code: LlvmFunction
    pointer: str
    step: int
    part: DType
    lanes: int
    active: int
    along: int
    """The bytes from a lane to the next; lanes belong to transforms."""
    numbers: str
    """`complex`; `pairs` of real numbers; or `real`."""
    is_swapped: bool
    """Whether real and imaginary parts are exchanged when they are accessed."""

    @property
    def _complex(self) -> DType:
        return np.dtype(f"c{2 * self.part.itemsize}")

    def _place(self, index: str, offset: int, width: int) -> tuple[str, _Lanes]:
        """The address of a number, and the lanes of its vector."""
        step = self.step * (2 if self.numbers == "pairs" else 1)
        at = self.code.moved(self.pointer, index, step)
        at = self.code.moved(at, str(offset), step)
        if self.lanes:
            return at, _Lanes(self.along, self.lanes, self.active)
        return at, _Lanes(step, width, width)

    def load(self, index: str, offset: int, width: int, way: int = 1) -> Complex:
        """`width` numbers from `index + offset` on, or that one and those before it if
        `way` is -1; or that number of all lanes."""
        at, lanes = self._place(index, offset, width)
        if not self.lanes:
            lanes = lanes._replace(stride=way * lanes.stride)
        if self.numbers == "real":
            real = load(self.code, at, lanes.stride, self.part, *lanes[1:])
            value = Complex(real, self.code.number(0.0, real.element))
        elif self.numbers == "pairs" and self.lanes:
            starts = at, self.code.moved(at, "1", self.step)
            value = Complex(
                *(
                    load(self.code, x, lanes.stride, self.part, *lanes[1:])
                    for x in starts
                )
            )
        else:
            loaded = load_element(
                self.code, at, lanes.stride, self._complex, *lanes[1:]
            )
            assert isinstance(loaded, Complex)
            value = loaded
        return _swapped(value) if self.is_swapped else value

    def store(self, value: Complex, index: str, offset: int, width: int) -> None:
        at, lanes = self._place(index, offset, width)
        value = _swapped(value) if self.is_swapped else value
        if self.numbers == "real":
            store(value.real, at, lanes.stride, self.part, *lanes[1:])
        elif self.numbers == "pairs" and self.lanes:
            other = self.code.moved(at, "1", self.step)
            for x, to in (value.real, at), (value.imag, other):
                store(x, to, lanes.stride, self.part, *lanes[1:])
        else:
            store_element(value, at, lanes.stride, self._complex, *lanes[1:])


@dataclass(frozen=True)
class _Planes:
    """An intermediate result: the real parts, then the imaginary ones."""

    code: LlvmFunction
    pointer: str
    part: DType
    lanes: int
    bytes: int
    """The bytes of a plane."""

    def _at(self, index: str, offset: int) -> Sequence[str]:
        step = self.part.itemsize * max(self.lanes, 1)
        at = self.code.moved(self.pointer, index, step)
        at = self.code.moved(at, str(offset), step)
        return at, self.code.moved(at, "1", self.bytes)

    def load(self, index: str, offset: int, width: int, way: int = 1) -> Complex:
        """As in `_Memory`."""
        step, lanes = self.part.itemsize, self.lanes or width
        step = step if self.lanes else way * step
        return Complex(
            *(
                load(self.code, at, step, self.part, lanes, lanes)
                for at in self._at(index, offset)
            )
        )

    def store(self, value: Complex, index: str, offset: int, width: int) -> None:
        lanes, size = self.lanes or width, self.part.itemsize
        parts = value.real, value.imag
        for x, at in zip(parts, self._at(index, offset), strict=True):
            store(x, at, size, self.part, lanes, lanes)


@lru_cache(KEPT)
def _lowered(layout: _Layout) -> tuple[str, Array]:
    """The function's text, and its table of complex numbers. Its words are the
    addresses of source, target, scratch memory and table."""
    lowering = _Lowering(layout)
    text = lowering.text()
    table = np.array(lowering.table, layout.part)
    table.flags.writeable = False
    return text, table


class _Lowering:
    def __init__(self, layout: _Layout):
        self._code = LlvmFunction()
        self._layout = layout
        self._words = [self._code.word(n) for n in range(4)]
        self.table: list[float] = []

    def text(self) -> str:
        code, layout = self._code, self._layout
        around, lanes = list(layout.around), layout.lanes
        size, by = around.pop() if lanes and around else (1, (0, 0))
        with code.nest(around, self._words[:2]) as pointers:
            stop = size // lanes * lanes if lanes else 0
            if stop:
                with code.loop("0", str(stop), lanes) as lane:
                    self._transform(code.all_moved(pointers, lane, by), by, lanes)
            if stop < size:
                moved = code.all_moved(pointers, str(stop), by)
                self._transform(moved, by, size - stop)
        return code.function()

    def _transform(
        self, pointers: Sequence[str], by: Sequence[int], active: int
    ) -> None:
        layout, code = self._layout, self._code
        kind, real = layout.kind, "pairs" if layout.is_half else "real"
        is_inverse = kind in ("IFFT", "IRFFT")
        source, target = (
            _Memory(
                *(code, pointers[number], layout.steps[number], layout.part),
                *(layout.lanes, active, by[number]),
                *(real if kind == of_real else "complex", is_swapped),
            )
            for number, of_real, is_swapped in (
                (0, "RFFT", kind == "IFFT"),
                (1, "IRFFT", is_inverse),
            )
        )
        self.table.clear()  # the same numbers for all lanes
        planes = self._planes(target)
        read: _Memory | _Planes = source
        if kind == "IRFFT":
            self._extend(source, planes[0])
            read, *planes = planes
        stride, radices = 1, _radices(layout.cells)
        writes: list[_Memory | _Planes] = [*planes, target]
        for radix, write in zip(radices, writes, strict=False):
            is_scaled = is_inverse and write is target
            self._stage(radix, stride, read, write, is_scaled)
            read, stride = write, stride * radix
        if kind == "RFFT":
            assert isinstance(read, _Planes)
            self._shorten(read, target)

    def _planes(self, target: _Memory) -> list[_Planes]:
        """Memory for each intermediate result. The last is not in the target."""
        code, layout = self._code, self._layout
        size, cells = layout.part.itemsize, layout.cells
        found: list[_Planes] = []
        for number in range(layout.results):
            pointer, plane = self._words[2], layout.plane * size
            if (layout.results - number) % 2 == 0:
                if layout.is_in_target:
                    pointer, plane = target.pointer, cells * size
                else:
                    pointer = code.moved(pointer, "2", plane)
            found.append(_Planes(code, pointer, layout.part, layout.lanes, plane))
        return found

    def _stage(
        self,
        radix: int,
        stride: int,
        read: _Memory | _Planes,
        write: _Memory | _Planes,
        is_scaled: bool,
    ) -> None:
        code, layout = self._code, self._layout
        along = layout.cells // radix
        groups = along // stride
        width = 1 if layout.lanes else _width(layout.part, stride, along)
        is_mixed = stride % width != 0  # vectors belong to several groups
        angles = np.arange(groups)[:, None] * np.arange(1, radix) % (groups * radix)
        factors = np.exp(-2j * pi * angles / (groups * radix))
        if is_mixed:
            factors = np.repeat(factors, stride, axis=0)
        start = self._add(factors.T) if groups > 1 else None

        def compute(index: str, group: str | None) -> list[Complex]:
            values = [read.load(index, along * j, width) for j in range(radix)]
            made = _butterfly(values)
            if is_scaled:
                scale = 1.0 / layout.size
                made = [Complex(x.real * scale, x.imag * scale) for x in made]
            if start is None or group is None:
                return made
            lanes = width if is_mixed else 0
            count = len(factors)
            by = [
                self._factor(start + 2 * count * j, count, group, lanes)
                for j in range(radix - 1)
            ]
            turned = [_times(x, w) for x, w in zip(made[1:], by, strict=True)]
            return [made[0], *turned]

        if is_mixed:
            assert isinstance(write, _Planes)
            with self._loop(along, width) as index:
                made = compute(index, index)
                real = _interleaved([x.real for x in made], stride)
                imag = _interleaved([x.imag for x in made], stride)
                base = code.index("mul", index, radix)
                for number, pair in enumerate(zip(real, imag, strict=True)):
                    write.store(Complex(*pair), base, number * width, width)
            return
        with self._loop(groups, 1) as group, self._loop(stride, width) as within:
            first = code.index("mul", group, stride)
            made = compute(code.index("add", first, within), group)
            base = code.index("add", code.index("mul", first, radix), within)
            for j, value in enumerate(made):
                write.store(value, base, stride * j, width)

    def _shorten(self, read: _Planes, target: _Memory) -> None:
        """Stores the frequencies of real numbers: those of pairs, taken apart, or the
        first half."""
        layout, cells = self._layout, self._layout.cells
        if not layout.is_half:
            with self._loop(cells // 2 + 1, 1) as index:
                target.store(read.load(index, 0, 1), index, 0, 1)
            return
        read.store(read.load("0", 0, 1), "0", cells, 1)

        def some(first: str, width: int) -> None:
            one, other, turn = self._pair(read, first, width)
            whole = one + other
            rest = _times(one - other, turn)
            target.store(
                Complex((whole.real + rest.real) * 0.5, (whole.imag + rest.imag) * 0.5),
                *(first, 0, width),
            )

        self._turns()
        width = 1 if layout.lanes else _width(layout.part, 1, cells)
        with self._loop(cells, width) as index:
            some(index, width)
        some(str(cells), 1)

    def _extend(self, source: _Memory, write: _Planes) -> None:
        """The inverse of `_shorten`: the frequencies of pairs of real numbers, or both
        halves. Exchanges real and imaginary parts."""
        code, layout, cells = self._code, self._layout, self._layout.cells
        first = source.load("0", 0, 1)
        if not layout.is_half:
            zero = code.widened(code.number(0.0, first.real.element), first.real.lanes)
            write.store(Complex(zero, first.real), "0", 0, 1)
            with code.loop("1", str(cells // 2 + 1), 1) as index:
                value = source.load(index, 0, 1)
                write.store(_swapped(value), index, 0, 1)
                other = code.index("sub", str(cells), index)
                write.store(Complex(-value.imag, value.real), other, 0, 1)
            return
        self._turns()
        width = 1 if layout.lanes else _width(layout.part, 1, cells)
        with self._loop(cells, width) as index:
            one, other, turn = self._pair(source, index, width)
            rest = _times(one - other, Complex(turn.real, -turn.imag))
            write.store(_swapped(one + other + rest), index, 0, width)
        last = source.load("0", cells, 1)  # imaginary parts of both ends are ignored
        write.store(Complex(first.real - last.real, first.real + last.real), "0", 0, 1)

    def _pair(
        self, read: _Memory | _Planes, first: str, width: int
    ) -> tuple[Complex, Complex, Complex]:
        """Some frequencies, the conjugates of those of the opposite sign, and the
        numbers that `_turns` added for them."""
        code, cells = self._code, self._layout.cells
        opposite = read.load(code.index("sub", str(cells), first), 0, width, -1)
        start = len(self.table) - 2 * (cells + 1)
        lanes = 0 if self._layout.lanes else width
        turn = self._factor(start, cells + 1, first, lanes)
        value = read.load(first, 0, width)
        return value, Complex(opposite.real, -opposite.imag), turn

    def _turns(self) -> None:
        """Adds -i exp(-2 pi i k / n) to the table, for k from 0 to n / 2."""
        cells = self._layout.cells
        self._add(-1j * np.exp(-1j * pi * np.arange(cells + 1) / cells)[None])

    def _add(self, numbers: Array) -> int:
        """Adds rows of numbers to the table: of each row the real parts, then the
        imaginary ones. Returns where they start."""
        start = len(self.table)
        for row in numbers:
            self.table += [*row.real.tolist(), *row.imag.tolist()]
        return start

    def _factor(self, start: int, count: int, index: str, lanes: int) -> Complex:
        """A number of the table, or, for `lanes`, as many from there on."""
        code, part = self._code, self._layout.part
        stride = part.itemsize if lanes else 0
        pointer = code.moved(self._words[3], str(start), part.itemsize)
        real = code.moved(pointer, index, part.itemsize)
        imag = code.moved(real, str(count), part.itemsize)
        return Complex(
            *(load(code, at, stride, part, lanes, lanes) for at in (real, imag))
        )

    @contextmanager
    def _loop(self, size: int, step: int) -> Generator[str]:
        if size <= step:
            yield "0"
            return
        with self._code.loop("0", str(size), step) as index:
            yield index


def _width(part: DType, stride: int, along: int) -> int:
    """The lanes of a vector of one transform."""
    width = VECTOR // part.itemsize
    while along % width or (stride % width and width % stride):
        width //= 2
    return width


def _swapped(x: Complex) -> Complex:
    return Complex(x.imag, x.real)


def _times(x: Complex, y: Complex) -> Complex:
    fma = x.code.fma
    return Complex(
        fma(x.real, y.real, -(x.imag * y.imag)), fma(x.real, y.imag, x.imag * y.real)
    )


def _interleaved(vectors: Sequence[Value], block: int) -> Sequence[Value]:
    """Blocks of lanes, one of each vector in turn. Their number is a power of 2."""
    if len(vectors) == 1:
        return vectors
    halves = (_interleaved(vectors[n::2], block) for n in range(2))
    lanes = vectors[0].lanes
    found: list[Value] = []
    for x, y in zip(*halves, strict=True):
        for start in (0, lanes // 2):
            order = [
                start
                + lane // (2 * block) * block
                + lane % block
                + lanes * (lane // block % 2)
                for lane in range(lanes)
            ]
            found.append(x.code.shuffled(x, order, y))
    return found


def _butterfly(x: Sequence[Complex]) -> list[Complex]:
    """The transform of a few numbers in registers."""
    radix = len(x)
    if radix == 2:
        return [x[0] + x[1], x[0] - x[1]]
    if radix % 2:
        return _odd(x)
    half = radix // 2
    evens, odds = _butterfly(x[::2]), _butterfly(x[1::2])
    turned = [_turned(value, k, radix) for k, value in enumerate(odds)]
    return [
        *(evens[k] + turned[k] for k in range(half)),
        *(evens[k] - turned[k] for k in range(half)),
    ]


def _turned(x: Complex, k: int, n: int) -> Complex:
    """`x * exp(-2 pi i k / n)`, for `n` up to 8."""
    if k == 0:
        return x
    if 4 * k == n:
        return Complex(x.imag, -x.real)
    root = 0.5**0.5
    if 8 * k == n:
        return Complex((x.real + x.imag) * root, (x.imag - x.real) * root)
    assert 8 * k == 3 * n
    return Complex((x.imag - x.real) * root, -(x.real + x.imag) * root)


def _odd(x: Sequence[Complex]) -> list[Complex]:
    """Sums and differences of opposite numbers have real factors."""
    radix, code = len(x), x[0].code
    pairs = [(x[k] + x[-k], x[k] - x[-k]) for k in range(1, radix // 2 + 1)]
    first = x[0]
    for whole, _ in pairs:
        first = first + whole
    ahead: list[Complex] = []
    behind: list[Complex] = []
    for j in range(1, radix // 2 + 1):
        angles = [2 * pi * (j * k % radix) / radix for k in range(1, len(pairs) + 1)]
        even, odd = x[0], None
        for (whole, rest), angle in zip(pairs, angles, strict=True):
            cosine, sine = float(np.cos(angle)), float(np.sin(angle))
            even = Complex(
                code.fma(whole.real, cosine, even.real),
                code.fma(whole.imag, cosine, even.imag),
            )
            by = Complex(rest.imag * sine, rest.real * -sine)
            odd = by if odd is None else odd + by
        assert odd is not None
        ahead.append(even + odd)
        behind.append(even - odd)
    return [first, *ahead, *behind[::-1]]
