"""Adds up products of 8-bit integers exactly, two at a time.

    out[p, o] = sum over q of left[p, q, o, 0] * right[q, o, 0]
                            + left[p, q, o, 1] * right[q, o, 1]

Pairs on the left are 8-bit integers in 16 bits, those on the right have 8, or 16. Two
of their products fit 32 bits, so this is exact on any processor. x86 multiplies the
pairs of a vector and adds both products in one instruction (`vpmaddwd`), which LLVM
finds in the code here. oneDNN's `vpmaddubsw`, where a processor has no VNNI, saturates
at 16 bits.

The code is

    for each panel, of some vectors of o:
        for some places p at a time:
            for each q:
                out[p, o] += left[p, q, o] * right[q, o]      # out is in registers

Where the left side does not depend on o (products of matrices), its pair is broadcast.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache

import numpy as np

from ....support.arrays import Array, DType, Shape
from ..jit import llvm
from ..jit.records import ArrayRecord
from .code import LlvmFunction, Value
from .elements import load, store
from .nests import Loops, merged

VECTORS = 2
"""Vectors in a panel."""

_INT16, _INT32 = np.dtype(np.int16), np.dtype(np.int32)


@cache
def registers() -> tuple[int, int]:
    """The bytes of a vector register of the processor, and how many there are."""
    features = llvm.compiler().host.features.split(",")
    if "+avx512bw" in features:
        return 64, 32
    if "+avx2" in features:
        return 32, 16
    return 16, 32 if "+neon" in features else 16


def lanes() -> int:
    """Sums in a vector register."""
    return registers()[0] // _INT32.itemsize


def panel() -> int:
    """Sums in a panel."""
    return VECTORS * lanes()


def sums_of_pairs(left: Array, right: Array, out: Array) -> ArrayRecord:
    """The call for arrays of these dimensions:

        left    [*places, *sums, o]             int32, a pair; o may have stride 0
        right   [*places, *sums, panel, o, 2]   8 or 16 bits; most places have stride 0
        out     [*places, o]                    int32; o has no gaps

    `right` has all elements of its last panel, even if `out` has fewer.
    """
    key = left.shape, left.strides, right.strides, right.dtype, out.strides
    function = llvm.compiler().function(_text(registers(), *key))
    return ArrayRecord(function, [left, right, out])


@lru_cache(maxsize=1024)
def _text(
    registers: tuple[int, int],
    shape: Shape,
    left: Shape,
    right: Shape,
    dtype: DType,
    out: Shape,
) -> str:
    places = len(out) - 1
    sums = len(shape) - len(out)
    steps = [(left[d], right[d], out[d]) for d in range(places)]
    summed = [(left[d], right[d], 0) for d in range(places, places + sums)]
    lowering = _Lowering(registers, dtype, shape[-1], left[-1], right[-3])
    lowering.sums = merged(shape[places:], range(sums), summed)
    loops = merged(shape, range(places), steps)
    return lowering.text(loops)


class _Lowering:
    """Words are the addresses of `left`, `right` and `out`."""

    sums: Loops

    def __init__(
        self,
        registers: tuple[int, int],
        dtype: DType,
        features: int,
        left_step: int,
        panel_step: int,
    ):
        size, count = registers
        self._code = LlvmFunction()
        self._dtype = dtype
        self._lanes = size // _INT32.itemsize
        self._accumulators = count * 3 // 4
        self._features = features
        self._left_step = left_step
        self._panel_step = panel_step

    def text(self, loops: Loops) -> str:
        """`loops` are over the places."""
        words = [self._code.word(n) for n in range(3)]
        groups = [loop for loop in loops if loop[1][1]]
        places = [loop for loop in loops if not loop[1][1]] or [(1, (0, 0, 0))]
        self._around(groups, words, lambda words: self._panels(places, words))
        return self._code.function()

    def _around(
        self,
        loops: Loops,
        words: Sequence[str],
        body: Callable[[Sequence[str]], None],
    ) -> None:
        if not loops:
            body(words)
            return
        (size, steps), *rest = loops
        with self._code.loop("0", str(size), 1) as index:
            self._around(rest, self._moved(words, index, steps), body)

    def _moved(
        self, words: Sequence[str], index: str, steps: Sequence[int]
    ) -> list[str]:
        return [
            self._code.moved(word, index, step)
            for word, step in zip(words, steps, strict=True)
        ]

    def _panels(self, places: Loops, words: Sequence[str]) -> None:
        width = VECTORS * self._lanes
        whole, rest = divmod(self._features, width)
        size = _INT32.itemsize
        steps = self._left_step * width, self._panel_step, size * width
        if whole:
            with self._code.loop("0", str(whole), 1) as index:
                self._places(places, self._moved(words, index, steps), width)
        if rest:
            self._places(places, self._moved(words, str(whole), steps), rest)

    def _places(self, loops: Loops, words: Sequence[str], active: int) -> None:
        """`active` are the features of the panel."""
        vectors = -(-active // self._lanes)
        most = self._accumulators // vectors

        def tiles(size: int) -> int:
            return -(-size // most)

        def tile(size: int) -> int:
            return -(-size // tiles(size))

        # The loop that is cut into tiles is the one with which they repeat the least.
        cut = min(loops, key=lambda x: (tiles(x[0]) * tile(x[0]) / x[0], -x[0]))
        size, steps = cut
        rows = tile(size)

        def body(words: Sequence[str]) -> None:
            if rows == size:
                self._tile(words, rows, steps, vectors, active)
                return
            with self._code.loop("0", str(size), rows) as index:
                # The last tile ends with the loop: it repeats some of the one before.
                start = self._code.smaller(index, 0, size - rows)
                at = self._moved(words, start, steps)
                self._tile(at, rows, steps, vectors, active)

        self._around([loop for loop in loops if loop is not cut], words, body)

    def _tile(
        self,
        words: Sequence[str],
        rows: int,
        steps: Sequence[int],
        vectors: int,
        active: int,
    ) -> None:
        code, lanes = self._code, self._lanes
        zero = code.widened(code.number(0, "i32"), lanes)
        totals = [[code.slot(zero) for _ in range(vectors)] for _ in range(rows)]

        def add(words: Sequence[str]) -> None:
            left, right, _ = words
            factors = [self._right(right, vector) for vector in range(vectors)]
            for row in range(rows):
                at = code.moved(left, str(row), steps[0])
                pair: Value | None = None
                for vector in range(vectors):
                    if pair is None or self._left_step:
                        pair = self._left(at, vector)
                    total = code.get(totals[row][vector], "i32", lanes)
                    added = total + _product(code, pair, factors[vector], lanes)
                    code.set(totals[row][vector], added)

        # In longer code, LLVM reorders the sums and runs out of registers.
        self._around(self.sums, words, add)
        for row in range(rows):
            target = code.moved(words[2], str(row), steps[2])
            for vector in range(vectors):
                at = code.moved(target, str(vector * lanes), _INT32.itemsize)
                total = code.get(totals[row][vector], "i32", lanes)
                rest = min(lanes, active - vector * lanes)
                store(total, at, _INT32.itemsize, _INT32, lanes, rest)

    def _left(self, pointer: str, vector: int) -> Value:
        code, lanes = self._code, self._lanes
        at = code.moved(pointer, str(vector * lanes), self._left_step)
        pairs = load(code, at, self._left_step, _INT32, lanes, lanes)
        wide = code.widened(pairs, lanes)
        text = f"bitcast <{lanes} x i32> {wide.text} to <{2 * lanes} x i16>"
        return code.op(text, "i16", 2 * lanes)

    def _right(self, pointer: str, vector: int) -> Value:
        lanes = 2 * self._lanes
        size = self._dtype.itemsize
        at = self._code.moved(pointer, str(vector * lanes), size)
        elements = load(self._code, at, size, self._dtype, lanes, lanes)
        if size == _INT16.itemsize:
            return elements
        return elements.cast("sext" if self._dtype.kind == "i" else "zext", "i16")


def _product(code: LlvmFunction, x: Value, y: Value, lanes: int) -> Value:
    """The sum of the two products of each pair, in the form in which LLVM knows it as
    one instruction."""
    products = x.cast("sext", "i32") * y.cast("sext", "i32")
    type = f"<{2 * lanes} x i32>"
    even, odd = (
        code.op(
            f"shufflevector {type} {products.text}, {type} poison, <{lanes} x i32> "
            f"<{', '.join(f'i32 {2 * lane + side}' for lane in range(lanes))}>",
            "i32",
            lanes,
        )
        for side in (0, 1)
    )
    return even + odd
