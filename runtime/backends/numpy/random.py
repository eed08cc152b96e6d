"""The kernel of random bits: all counters at a time. Allocates arrays of their size.

See `tensorplan.dialects.tgraph.reference.random` for the generators.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from ....dialects.dtypes import Array
from ....dialects.tgraph.base import Shape
from ....dialects.tgraph.random import (
    PHILOX_KEY_STEPS,
    PHILOX_MULTIPLIERS,
    PHILOX_ROUNDS,
    THREEFRY_PARITY,
    THREEFRY_ROTATIONS,
    RngBitGeneratorOp,
)
from ...calls import Call
from ...pool import Scratch
from .base import kernel

WORD = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


@kernel(RngBitGeneratorOp)
def rng_bit_generator(
    op: RngBitGeneratorOp,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
) -> list[Call]:
    (state,), (after, bits) = inputs, outs
    generate = _threefry if op.algorithm.data == "threefry" else _philox
    return [(generate, (state.view(np.uint64), after.view(np.uint64), bits))]


def _threefry(state: Array, after: Array, out: Array) -> None:
    key, counter = state.copy()
    after[0] = key
    unsigned = f"u{out.itemsize}"
    if out.itemsize == 8:
        after[1] = counter + np.uint64(out.size)
        x, y = _threefry_words(key, _counters(counter, out.size))
        words = x.astype(np.uint64) | y.astype(np.uint64) << HALF
        out[...] = words.reshape(out.shape).view(out.dtype)
        return
    shape = out.shape or (1,)
    even = [d for d, n in enumerate(shape) if not n % 2]
    split = even[0] if even else shape.index(max(shape))
    half: Shape = tuple(-(-n // 2) if d == split else n for d, n in enumerate(shape))
    after[1] = counter + np.uint64(prod(half))
    words = _threefry_words(key, _counters(counter, prod(half)))
    pairs = np.stack([word.reshape(half) for word in words], split + 1)
    whole = pairs.reshape(*half[:split], 2 * half[split], *half[split + 1 :])
    kept = (*[slice(None)] * split, slice(0, shape[split]))
    out[...] = whole[kept].astype(unsigned).view(out.dtype).reshape(out.shape)


def _threefry_words(key: np.uint64, counters: Array) -> tuple[Array, Array]:
    words = np.array([key & WORD, key >> HALF], np.uint32)
    keys = [*words, words[0] ^ words[1] ^ np.uint32(THREEFRY_PARITY)]
    x = (counters & WORD).astype(np.uint32) + keys[0]
    y = (counters >> HALF).astype(np.uint32) + keys[1]
    for step in range(1, 6):
        for shift in THREEFRY_ROTATIONS[(step - 1) % 2]:
            x += y
            y = y << np.uint32(shift) | y >> np.uint32(32 - shift)
            y ^= x
        x += keys[step % 3]
        y += keys[(step + 1) % 3]
        y += np.uint32(step)
    return x, y


def _philox(state: Array, after: Array, out: Array) -> None:
    state = state.copy()
    key, low = state[0], state[1]
    high = state[2] if state.size == 3 else key
    each = 2 if out.itemsize == 8 else 1
    blocks = -(-out.size * each // 4)
    counters = _counters(low, blocks)
    words = _philox_words(key, counters, high + (counters < low).astype(np.uint64))
    if out.itemsize == 8:
        words = words[:, ::2] | words[:, 1::2] << HALF
    bits = words.reshape(-1)[: out.size].astype(f"u{out.itemsize}")
    out[...] = bits.view(out.dtype).reshape(out.shape)
    after[0], after[1] = key, low + np.uint64(blocks)
    if state.size == 3:
        after[2] = high + np.uint64(after[1] < low)


def _philox_words(key: np.uint64, low: Array, high: Array) -> Array:
    """A row of four words for each counter."""
    keys = [int(key & WORD), int(key >> HALF)]
    multipliers = [np.uint64(number) for number in PHILOX_MULTIPLIERS]
    a, b, c, d = low & WORD, low >> HALF, high & WORD, high >> HALF
    for number in range(PHILOX_ROUNDS):
        first, second = multipliers[0] * a, multipliers[1] * c
        k = [
            np.uint64((word + number * step) & 0xFFFFFFFF)
            for word, step in zip(keys, PHILOX_KEY_STEPS, strict=True)
        ]
        a, b = second >> HALF ^ b ^ k[0], second & WORD
        c, d = first >> HALF ^ d ^ k[1], first & WORD
    return np.stack([a, b, c, d], 1)


def _counters(first: np.uint64, count: int) -> Array:
    return first + np.arange(count, dtype=np.uint64)
