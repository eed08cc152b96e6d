"""Writes random bits as a loop over blocks of counters.

`tensorplan.dialects.tgraph.reference.random` describes how XLA lays out the numbers.
Words are held in i64, so that the product of two words fits.
"""

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ....dialects.tgraph.random import (
    PHILOX_KEY_STEPS,
    PHILOX_MULTIPLIERS,
    PHILOX_ROUNDS,
    THREEFRY_PARITY,
    THREEFRY_ROTATIONS,
    RngBitGeneratorOp,
)
from .code import MlirCode, index, width
from .indexing import unravel
from .memory import Stored
from .nests import Values

_WORD = (1 << 32) - 1


def rng_bit_generator(
    values: Values, op: RngBitGeneratorOp, targets: Sequence[Stored]
) -> None:
    source = values.store(op.inputs[0])
    code, memref_of = values.code, values.memref_of
    size = source.shape[0]
    state = [
        code.load(memref_of(source), [code.constant(n, index)]) for n in range(size)
    ]
    after, bits = targets
    fill = _threefry if op.algorithm.data == "threefry" else _philox
    for n, word in enumerate(fill(values, state, bits)):
        code.store(word, memref_of(after), [code.constant(n, index)])


def _threefry(
    values: Values, state: Sequence[SSAValue], bits: Stored
) -> Sequence[SSAValue]:
    """Stores the bits; returns the next state."""
    key, counter = state
    shape, target = bits.shape, values.memref_of(bits)
    is_long = width(bits.element) == 64
    even = [d for d, n in enumerate(shape) if n % 2 == 0]
    split = even[0] if even else shape.index(max(shape)) if shape else 0
    blocks = tuple(
        -(-n // 2) if d == split and not is_long else n for d, n in enumerate(shape)
    )

    def one_block(code: MlirCode, place: list[SSAValue]) -> None:
        math = _Words(code)
        number = code.constant(0, index)
        for at, length in zip(place, blocks, strict=True):
            number = code.add(arith.MuliOp(number, code.constant(length, index)))
            number = code.add(arith.AddiOp(number, at))
        number = math.add(counter, code.add(arith.IndexCastOp(number, i64)))
        x, y = math.threefry(key, number)
        if is_long:
            code.store(math.joined(x, y), target, place)
            return
        if not shape:
            code.store(math.narrow(x, bits), target, place)
            return
        pair = place[split]
        first = code.add(arith.AddiOp(pair, pair))
        second = code.add(arith.AddiOp(first, code.constant(1, index)))

        def store(code: MlirCode, word: SSAValue, at: SSAValue) -> None:
            narrow = _Words(code).narrow(word, bits)
            code.store(narrow, target, [*place[:split], at, *place[split + 1 :]])

        store(code, x, first)
        if shape[split] % 2 == 0:
            store(code, y, second)
            return
        end = code.constant(shape[split], index)
        is_inside = code.add(arith.CmpiOp(second, end, "ult"))
        code.when(is_inside, lambda inner: store(inner, y, second))

    values.code.loops(blocks, one_block)
    math = _Words(values.code)
    return [key, math.add(counter, math.number(prod(blocks)))]


def _philox(
    values: Values, state: Sequence[SSAValue], bits: Stored
) -> Sequence[SSAValue]:
    """Stores the bits; returns the next state."""
    key, low = state[:2]
    high = state[2] if len(state) == 3 else key
    count, target = prod(bits.shape), values.memref_of(bits)
    is_long = width(bits.element) == 64
    each = 2 if is_long else 4
    blocks = -(-count // each)

    def one_block(code: MlirCode, n: SSAValue, _: Sequence[SSAValue]):
        math = _Words(code)
        number = code.add(arith.IndexCastOp(n, i64))
        words = math.philox(key, *math.counter(low, high, number))
        if is_long:
            words = [math.joined(words[0], words[1]), math.joined(words[2], words[3])]
        else:
            words = [math.narrow(word, bits) for word in words]
        first = code.add(arith.MuliOp(n, code.constant(each, index)))
        for position, word in enumerate(words):
            at = code.add(arith.AddiOp(first, code.constant(position, index)))

            def store(
                inner: MlirCode, at: SSAValue = at, word: SSAValue = word
            ) -> None:
                inner.store(word, target, unravel(inner, at, bits.shape))

            if count % each == 0:
                store(code)
                continue
            end = code.constant(count, index)
            code.when(code.add(arith.CmpiOp(at, end, "ult")), store)
        return ()

    values.code.loop(blocks, one_block)
    math = _Words(values.code)
    after = math.counter(low, high, math.number(blocks))
    return [key, *after][: len(state)]


class _Words:
    """Arithmetic on words of 32 bits, each in an i64 whose upper half is 0."""

    def __init__(self, code: MlirCode):
        self.code = code

    def number(self, value: int) -> SSAValue:
        return self.code.constant(value, i64)

    def add(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.code.add(arith.AddiOp(x, y))

    def xor(self, first: SSAValue, *others: SSAValue) -> SSAValue:
        for other in others:
            first = self.code.add(arith.XOrIOp(first, other))
        return first

    def low(self, x: SSAValue) -> SSAValue:
        return self.code.add(arith.AndIOp(x, self.number(_WORD)))

    def high(self, x: SSAValue) -> SSAValue:
        return self.code.add(arith.ShRUIOp(x, self.number(32)))

    def joined(self, low: SSAValue, high: SSAValue) -> SSAValue:
        upper = self.code.add(arith.ShLIOp(high, self.number(32)))
        return self.code.add(arith.OrIOp(upper, low))

    def narrow(self, word: SSAValue, bits: Stored) -> SSAValue:
        """The lower bits of a word, in the element type of `bits`."""
        return self.code.convert(word, i64, bits.element)

    def counter(
        self, low: SSAValue, high: SSAValue, number: SSAValue
    ) -> tuple[SSAValue, SSAValue]:
        """Adds `number` to a counter of 128 bits."""
        total = self.add(low, number)
        carry = self.code.add(arith.CmpiOp(total, low, "ult"))
        return total, self.add(high, self.code.add(arith.ExtUIOp(carry, i64)))

    def threefry(self, key: SSAValue, counter: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Threefry-2x32: the two words for a counter."""
        keys = [self.low(key), self.high(key)]
        keys.append(self.xor(*keys, self.number(THREEFRY_PARITY)))
        x = self.low(self.add(self.low(counter), keys[0]))
        y = self.low(self.add(self.high(counter), keys[1]))
        for step in range(1, 6):
            for shift in THREEFRY_ROTATIONS[(step - 1) % 2]:
                x = self.low(self.add(x, y))
                left = self.code.add(arith.ShLIOp(y, self.number(shift)))
                right = self.code.add(arith.ShRUIOp(y, self.number(32 - shift)))
                y = self.xor(self.low(self.code.add(arith.OrIOp(left, right))), x)
            x = self.low(self.add(x, keys[step % 3]))
            y = self.add(self.add(y, keys[(step + 1) % 3]), self.number(step))
            y = self.low(y)
        return x, y

    def philox(
        self, key: SSAValue, low: SSAValue, high: SSAValue
    ) -> Sequence[SSAValue]:
        """Philox-4x32: the four words for a counter of 128 bits."""
        keys = [self.low(key), self.high(key)]
        a, b, c, d = self.low(low), self.high(low), self.low(high), self.high(high)
        for _ in range(PHILOX_ROUNDS):
            first, second = (
                self.code.add(arith.MuliOp(x, self.number(factor)))
                for x, factor in zip((a, c), PHILOX_MULTIPLIERS, strict=True)
            )
            a, b = self.xor(self.high(second), b, keys[0]), self.low(second)
            c, d = self.xor(self.high(first), d, keys[1]), self.low(first)
            keys = [
                self.low(self.add(word, self.number(step)))
                for word, step in zip(keys, PHILOX_KEY_STEPS, strict=True)
            ]
        return [a, b, c, d]
