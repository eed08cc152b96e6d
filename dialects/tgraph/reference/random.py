"""The reference for random bits: counter-based generators, one number at a time.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. The order of numbers
and the next state are those of XLA's `rng_bit_generator`.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from operator import mul

import numpy as np

from ...dtypes import Array, DType, numpy_dtype
from ...strides import contiguous_strides
from ..base import Shape
from ..random import RngBitGeneratorOp

_WORD = (1 << 32) - 1
_LONG = (1 << 64) - 1


def rng_bit_generator(op: RngBitGeneratorOp, state: Array) -> list[Array]:
    """The next state, and the bits."""
    bits = op.declared[1]
    after, numbers = random_bits(
        op.algorithm.data,
        state.view(np.uint64).tolist(),
        bits.get_shape(),
        numpy_dtype(bits.element_type, op),
    )
    return [np.array(after, np.uint64).view(state.dtype), numbers]


def threefry_block(key: int, counter: int) -> tuple[int, int]:
    """Threefry-2x32 with 20 rounds: the two words for a counter."""
    keys = [key & _WORD, key >> 32]
    keys.append(keys[0] ^ keys[1] ^ 0x1BD11BDA)
    x, y = counter & _WORD, counter >> 32
    x, y = (x + keys[0]) & _WORD, (y + keys[1]) & _WORD
    for round in range(20):
        shift = ((13, 15, 26, 6), (17, 29, 16, 24))[round // 4 % 2][round % 4]
        x = (x + y) & _WORD
        y = ((y << shift) | (y >> (32 - shift))) & _WORD ^ x
        if round % 4 == 3:
            step = round // 4 + 1
            x = (x + keys[step % 3]) & _WORD
            y = (y + keys[(step + 1) % 3] + step) & _WORD
    return x, y


def philox_block(key: int, counter: int) -> tuple[int, int, int, int]:
    """Philox-4x32 with 10 rounds: the four words for a counter."""
    low, high = key & _WORD, key >> 32
    a, b, c, d = (counter >> shift & _WORD for shift in (0, 32, 64, 96))
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b = second >> 32 ^ b ^ low, second & _WORD
        c, d = first >> 32 ^ d ^ high, first & _WORD
        low, high = (low + 0x9E3779B9) & _WORD, (high + 0xBB67AE85) & _WORD
    return a, b, c, d


def random_bits(
    algorithm: str, state: Sequence[int], shape: Shape, dtype: DType
) -> tuple[list[int], Array]:
    """The next state, and integers of random bits."""
    generate = _threefry if algorithm == "threefry" else _philox
    after, numbers = generate(state, shape, dtype.itemsize)
    mask = (1 << 8 * dtype.itemsize) - 1
    bits = np.array([n & mask for n in numbers], f"u{dtype.itemsize}")
    return after, bits.reshape(shape).view(dtype)


def _threefry(
    state: Sequence[int], shape: Shape, size: int
) -> tuple[list[int], list[int]]:
    """For up to 32 bits, the two words of a block are neighbors along one dimension:
    the first of even size, or else the largest, whose last word is dropped."""
    key, counter = state
    if size == 8:
        blocks = [
            threefry_block(key, (counter + n) & _LONG) for n in range(prod(shape))
        ]
        after = (counter + prod(shape)) & _LONG
        return [key, after], [y << 32 | x for x, y in blocks]
    if not shape:
        return [key, (counter + 1) & _LONG], [threefry_block(key, counter)[0]]
    even = [d for d, n in enumerate(shape) if n % 2 == 0]
    split = even[0] if even else shape.index(max(shape))
    half = tuple(-(-n // 2) if d == split else n for d, n in enumerate(shape))
    numbers: list[int] = []
    for place in product(*map(range, shape)):
        position, word = divmod(place[split], 2)
        place = (*place[:split], position, *place[split + 1 :])
        index = sum(map(mul, place, contiguous_strides(half)))
        numbers.append(threefry_block(key, (counter + index) & _LONG)[word])
    return [key, (counter + prod(half)) & _LONG], numbers


def _philox(
    state: Sequence[int], shape: Shape, size: int
) -> tuple[list[int], list[int]]:
    """In a state of two words, the key is also the upper half of the counter."""
    key, low = state[:2]
    counter = (state[2] if len(state) == 3 else key) << 64 | low
    count = prod(shape)
    words_each = 2 if size == 8 else 1
    blocks = -(-count * words_each // 4)

    def words() -> Iterator[int]:
        for n in range(blocks):
            yield from philox_block(key, (counter + n) % (1 << 128))

    all_words = list(words())
    if size == 8:
        all_words = [
            y << 32 | x for x, y in zip(all_words[::2], all_words[1::2], strict=True)
        ]
    counter = (counter + blocks) % (1 << 128)
    after = [key, counter & _LONG, counter >> 64]
    return after[: len(state)], all_words[:count]
