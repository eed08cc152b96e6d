"""Adds up products of 8-bit integers exactly, several of them in each lane of a vector.

    out[p, o] = sum over q and n of left[p, q, o, n] * right[q, o, n]

Adds four products at a time (`vpdpbusd` of VNNI) if the processor adds up products of
8-bit integers in 32 bits. The instruction multiplies unsigned by signed numbers. If
both operands are signed or both unsigned, one is shifted by 128, and 128 times the sum
of the other is subtracted:

    signed      sum of (left + 128) * right - 128 * sum of right    once for some places
    unsigned    sum of left * (right - 128) + 128 * sum of left     for each place

Otherwise, adds two products at a time. Pairs on the left are 8-bit integers in 16 bits,
those on the right have 8 or 16 bits. Two of their products fit 32 bits, so this is
exact on any processor. x86 multiplies the pairs of a vector and adds both products in
one instruction (`vpmaddwd`), which LLVM recognizes in this code. `vpmaddubsw`, which
adds up two products of 8-bit integers, is not used, because it saturates at 16 bits.

The code is

    for each panel, of some vectors of o:
        for some places p at a time:
            for each q:
                out[p, o] += left[p, q, o] * right[q, o]      # out is in registers

If the left side does not depend on o (matrix products), it is broadcast.
"""

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np

from ....support.arrays import Array, DType, Shape
from ..jit import llvm
from ..jit.records import ArrayRecord
from .code import LlvmFunction, Value, typed
from .elements import load, store
from .nests import Loops, merged

VECTORS = 2
"""The vectors in a panel."""

_INT16, _INT32 = np.dtype(np.int16), np.dtype(np.int32)


@cache
def registers() -> tuple[int, int]:
    """The bytes of the processor's vector registers, and their number."""
    features = llvm.compiler().host.features.split(",")
    if "+avx512bw" in features:
        return 64, 32
    if "+avx2" in features:
        return 32, 16
    return 16, 32 if "+neon" in features else 16


@cache
def adds_four() -> bool:
    """Whether the processor has an instruction for four products of 8-bit integers."""
    features = llvm.compiler().host.features.split(",")
    return ("+avx512vnni" if registers()[0] == 64 else "+avxvnni") in features


def lanes() -> int:
    """The sums in a vector register."""
    return registers()[0] // _INT32.itemsize


def panel() -> int:
    """The sums in a panel."""
    return VECTORS * lanes()


def dot_products(left: Array, right: Array, out: Array, element: DType) -> ArrayRecord:
    """The call for arrays with these dimensions:

        left    [*places, *sums, o]             int32; o may have stride 0
        right   [*places, *sums, panel, o, n]   8 or 16 bits; most places have stride 0
        out     [*places, o]                    int32; o has no gaps

    An element of `left` is `n` numbers: two of 16 bits, or, if `adds_four()`, four of
    the type `element`; o has stride 0 then. `right` has all elements of its last panel,
    even if `out` has fewer.
    """
    kinds = element, right.dtype
    key = left.shape, left.strides, right.strides, kinds, right.shape[-1], out.strides
    function = llvm.compiler().function(_text(registers(), *key))
    return ArrayRecord(function, [left, right, out])


@lru_cache(maxsize=1024)
def _text(
    registers: tuple[int, int],
    shape: Shape,
    left: Shape,
    right: Shape,
    kinds: tuple[DType, DType],
    count: int,
    out: Shape,
) -> str:
    places = len(out) - 1
    sums = len(shape) - len(out)
    steps = [(left[d], right[d], out[d]) for d in range(places)]
    summed = [(left[d], right[d], 0) for d in range(places, places + sums)]
    form = _Four if count == 4 else _Two
    lowering = form(registers, kinds, shape[-1], left[-1], right[-3])
    lowering.sums = merged(shape[places:], range(sums), summed)
    loops = merged(shape, range(places), steps)
    return lowering.text(loops)


class _Lowering:
    """The words are the addresses of `left`, `right` and `out`."""

    sums: Loops

    def __init__(
        self,
        registers: tuple[int, int],
        kinds: tuple[DType, DType],
        features: int,
        left_step: int,
        panel_step: int,
    ):
        size, count = registers
        self._code = LlvmFunction()
        self._left_type, self._right_type = kinds
        self._lanes = size // _INT32.itemsize
        self._accumulators = count * 3 // 4
        self._features = features
        self._left_step = left_step
        self._panel_step = panel_step

    @property
    def _moves_left(self) -> bool:
        """Whether 128 is added to the left side."""
        return False

    @property
    def _moves_right(self) -> bool:
        """Whether 128 is subtracted from the right side."""
        return False

    def left(self, pointer: str, vector: int) -> Value:
        """The left side for a vector of sums; `pointer` is that of the first vector."""
        raise NotImplementedError

    def right(self, pointer: str, vector: int) -> Value:
        raise NotImplementedError

    def added(self, total: Value, left: Value, right: Value) -> Value:
        """`total` plus the products in each lane."""
        raise NotImplementedError

    def text(self, loops: Loops) -> str:
        """The text of the function; `loops` are over the places."""
        words = [self._code.word(n) for n in range(3)]
        groups = [loop for loop in loops if loop[1][1]]
        places = [loop for loop in loops if not loop[1][1]] or [(1, (0, 0, 0))]
        with self._code.nest(groups, words) as moved:
            self._panels(places, moved)
        return self._code.function()

    def _panels(self, places: Loops, words: Sequence[str]) -> None:
        width = VECTORS * self._lanes
        whole, rest = divmod(self._features, width)
        size = _INT32.itemsize
        steps = self._left_step * width, self._panel_step, size * width
        if whole:
            with self._code.loop("0", str(whole), 1) as index:
                self._places(places, self._code.all_moved(words, index, steps), width)
        if rest:
            self._places(places, self._code.all_moved(words, str(whole), steps), rest)

    def _places(self, loops: Loops, words: Sequence[str], active: int) -> None:
        """`active` is the number of features in the panel."""
        vectors = -(-active // self._lanes)
        most = self._accumulators - self._moves_left * vectors
        most //= vectors + self._moves_right

        def tiles(size: int) -> int:
            return -(-size // most)

        def tile(size: int) -> int:
            return -(-size // tiles(size))

        # Divide the loop for which tiles overlap the least.
        cut = min(loops, key=lambda x: (tiles(x[0]) * tile(x[0]) / x[0], -x[0]))
        size, steps = cut
        rows = tile(size)

        others = [loop for loop in loops if loop is not cut]
        with self._code.nest(others, words) as moved:
            if rows == size:
                self._tile(moved, rows, steps, vectors, active)
                return
            with self._code.loop("0", str(size), rows) as index:
                # The last tile ends with the loop, so it overlaps the previous one.
                start = self._code.smaller(index, 0, size - rows)
                at = self._code.all_moved(moved, start, steps)
                self._tile(at, rows, steps, vectors, active)

    def _tile(
        self,
        words: Sequence[str],
        rows: int,
        steps: Sequence[int],
        vectors: int,
        active: int,
    ) -> None:
        code, lanes = self._code, self._lanes
        totals = [[self._zero() for _ in range(vectors)] for _ in range(rows)]
        of_rights = [self._zero() for _ in range(vectors * self._moves_left)]
        of_lefts = [self._zero() for _ in range(rows * self._moves_right)]

        # In longer code, LLVM reorders the sums and runs out of registers.
        with self._code.nest(self.sums, words) as (left, right, _):
            factors = [self.right(right, vector) for vector in range(vectors)]
            for slot, factor in zip(of_rights, factors, strict=False):
                self._add(slot, self._bytes(0x80), factor)
            for row in range(rows):
                at = code.moved(left, str(row), steps[0])
                value: Value | None = None
                for vector, factor in enumerate(factors):
                    if value is None or self._left_step:
                        value = self.left(at, vector)
                    self._add(totals[row][vector], value, factor)
                if of_lefts and value is not None:
                    self._add(of_lefts[row], value, self._bytes(1))

        for row in range(rows):
            target = code.moved(words[2], str(row), steps[2])
            for vector in range(vectors):
                at = code.moved(target, str(vector * lanes), _INT32.itemsize)
                total = self._sum(totals[row][vector])
                if of_rights:
                    total -= self._sum(of_rights[vector])
                if of_lefts:
                    total += self._sum(of_lefts[row]) << 7
                rest = min(lanes, active - vector * lanes)
                store(total, at, _INT32.itemsize, _INT32, lanes, rest)

    def _zero(self) -> str:
        """A variable for a vector of sums."""
        return self._code.slot(self._code.widened(self._number(0), self._lanes))

    def _sum(self, slot: str) -> Value:
        return self._code.get(slot, "i32", self._lanes)

    def _add(self, slot: str, left: Value, right: Value) -> None:
        self._code.set(slot, self.added(self._sum(slot), left, right))

    def _bytes(self, byte: int) -> Value:
        """A vector with `byte` in all its bytes."""
        number = int.from_bytes(bytes([byte] * 4), "little", signed=True)
        return self._code.widened(self._number(number), self._lanes)

    def _number(self, number: int) -> Value:
        return self._code.number(number, "i32")

    def _loaded(self, pointer: str, vector: int) -> Value:
        """Elements of the left side: one for all lanes, or one for each lane."""
        code, lanes = self._code, self._lanes
        at = code.moved(pointer, str(vector * lanes), self._left_step)
        elements = load(code, at, self._left_step, _INT32, lanes, lanes)
        return code.widened(elements, lanes)


class _Two(_Lowering):
    """Two products at a time."""

    def left(self, pointer: str, vector: int) -> Value:
        return self._pairs(self._loaded(pointer, vector))

    def right(self, pointer: str, vector: int) -> Value:
        lanes, dtype = 2 * self._lanes, self._right_type
        at = self._code.moved(pointer, str(vector * lanes), dtype.itemsize)
        elements = load(self._code, at, dtype.itemsize, dtype, lanes, lanes)
        if dtype.itemsize == _INT16.itemsize:
            return elements
        return elements.cast("sext" if dtype.kind == "i" else "zext", "i16")

    def added(self, total: Value, left: Value, right: Value) -> Value:
        """Written in a form that LLVM compiles to one instruction."""
        lanes, code = self._lanes, self._code
        products = left.cast("sext", "i32") * right.cast("sext", "i32")
        type = f"<{2 * lanes} x i32>"
        even, odd = (
            code.op(
                f"shufflevector {type} {products.text}, {type} poison, "
                f"<{lanes} x i32> "
                f"<{', '.join(f'i32 {2 * lane + side}' for lane in range(lanes))}>",
                "i32",
                lanes,
            )
            for side in (0, 1)
        )
        return total + (even + odd)

    def _pairs(self, elements: Value) -> Value:
        text = f"bitcast {typed(elements)} to <{2 * self._lanes} x i16>"
        return self._code.op(text, "i16", 2 * self._lanes)


class _Four(_Lowering):
    """Four products at a time, of unsigned and signed numbers."""

    @property
    def _moves_left(self) -> bool:
        return self._left_type.kind == self._right_type.kind == "i"

    @property
    def _moves_right(self) -> bool:
        return self._left_type.kind == self._right_type.kind == "u"

    def left(self, pointer: str, vector: int) -> Value:
        elements = self._loaded(pointer, vector)
        return elements ^ self._bytes(0x80) if self._moves_left else elements

    def right(self, pointer: str, vector: int) -> Value:
        lanes, size = self._lanes, _INT32.itemsize
        at = self._code.moved(pointer, str(vector * lanes), size)
        elements = load(self._code, at, size, _INT32, lanes, lanes)
        return elements ^ self._bytes(0x80) if self._moves_right else elements

    def added(self, total: Value, left: Value, right: Value) -> Value:
        is_mixed = self._left_type.kind == "i" and self._right_type.kind == "u"
        unsigned, signed = (right, left) if is_mixed else (left, right)
        lanes = self._lanes
        type = f"<{lanes} x i32>"
        function = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"
        self._code.declare(f"{type} @{function}({type}, {type}, {type})")
        arguments = ", ".join(typed(x) for x in (total, unsigned, signed))
        return self._code.op(f"call {type} @{function}({arguments})", "i32", lanes)
