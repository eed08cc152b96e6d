"""Transformers: blocks, GPT-2, BERT, ViT."""

from functools import partial

from .base import (
    Array,
    Arrays,
    Model,
    Random,
    adam,
    cross_entropy,
    inference,
    jax,
    jnp,
    np,
    sgd,
)


def _norm(x: Array, scale: Array, shift: Array) -> Array:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def _norm_parameters(width: int) -> Arrays:
    return [np.ones(width, np.float32), np.zeros(width, np.float32)]


def _block_parameters(random: Random, width: int) -> Arrays:
    parameters: list[Array] = []
    for inputs, outputs in ((1, 3), (1, 1), (1, 4), (4, 1)):
        if outputs > inputs:  # a norm precedes this layer
            parameters += _norm_parameters(width)
        parameters.append(random.weights(inputs * width, outputs * width))
        parameters.append(np.zeros(outputs * width, np.float32))
    return parameters


BLOCK = 12
"""The number of parameters of a block."""


def _attention(q: Array, k: Array, v: Array, mask: Array | None = None) -> Array:
    """Attention on tensors of shape (batch, length, heads, width)."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = jnp.where(mask, scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def _causal(length: int) -> Array:
    return jnp.tril(jnp.ones((length, length), bool))


def _block(
    p: Arrays,
    x: Array,
    heads: int,
    mask: Array | None = None,
) -> Array:
    batch, length, _ = x.shape
    qkv = (_norm(x, p[0], p[1]) @ p[2] + p[3]).reshape(batch, length, 3, heads, -1)
    mixed = _attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], mask)
    x = x + mixed.reshape(x.shape) @ p[4] + p[5]
    return x + jax.nn.gelu(_norm(x, p[6], p[7]) @ p[8] + p[9]) @ p[10] + p[11]


def _blocks(p: Arrays, x: Array, heads: int, mask: Array | None = None) -> Array:
    for first in range(0, len(p), BLOCK):
        x = _block(p[first : first + BLOCK], x, heads, mask)
    return x


def _stacked(random: Random, layers: int, width: int) -> Arrays:
    return [p for _ in range(layers) for p in _block_parameters(random, width)]


def attention(
    batch: int = 2, length: int = 128, heads: int = 8, width: int = 64
) -> Model:
    """Attention alone, forward."""
    random = Random()
    shape = batch, length, heads, width
    return Model(_attention, [random.normal(*shape) for _ in range(3)])


def transformer_block(
    batch: int = 4, length: int = 128, width: int = 256, heads: int = 8
) -> Model:
    """The gradients of a transformer block with respect to all parameters."""
    random = Random()
    parameters = _block_parameters(random, width)

    def loss(arguments: Arrays) -> Array:
        *parameters, x = arguments
        return (_block(parameters, x, heads) ** 2).mean()

    def gradients(*arguments: Array) -> Array:
        value, gradients = jax.value_and_grad(loss)(list(arguments))
        return (value, *gradients)

    return Model(gradients, [*parameters, random.normal(batch, length, width)])


def adam_step(
    layers: int, batch: int = 4, length: int = 32, width: int = 64, heads: int = 4
) -> Model:
    """One step of Adam on transformer blocks, without loops. Each block has about 790
    StableHLO operations."""
    random = Random()

    def loss(parameters: Arrays, x: Array, y: Array) -> Array:
        return ((_blocks(parameters, x, heads) - y) ** 2).mean()

    parameters = _stacked(random, layers, width)
    x, y = random.normal(batch, length, width), random.normal(batch, length, width)
    return adam(loss, parameters, x, y)


# GPT-2


def _gpt2_parameters(
    random: Random, length: int, layers: int, width: int, vocabulary: int
) -> Arrays:
    tokens = random.normal(vocabulary, width, scale=0.02)
    places = random.normal(length, width, scale=0.02)
    norm = _norm_parameters(width)
    return [tokens, places, *norm, *_stacked(random, layers, width)]


def gpt2(
    length: int = 64, layers: int = 12, width: int = 768, vocabulary: int = 50257
) -> Model:
    """GPT-2 (small by default), forward: the logits of the last token."""
    random = Random()

    def forward(parameters: Arrays, ids: Array) -> Array:
        tokens, places, scale, shift, *blocks = parameters
        x = tokens[ids] + places
        x = _blocks(blocks, x, width // 64, _causal(length))
        return _norm(x[:, -1], scale, shift) @ tokens.T

    parameters = _gpt2_parameters(random, length, layers, width, vocabulary)
    return inference(forward, parameters, np.arange(length, dtype=np.int32)[None])


def gpt2_decode(
    length: int = 256, layers: int = 4, width: int = 512, vocabulary: int = 8192
) -> Model:
    """One decoding step of GPT-2, with the cache of keys and values as state."""
    random = Random()
    heads = width // 64

    def step(*arrays: Array) -> Array:
        caches = list(arrays[: 2 * layers])
        tokens, places, scale, shift, *blocks = arrays[2 * layers : -2]
        id, at = arrays[-2:]
        x = (tokens[id] + jax.lax.dynamic_index_in_dim(places, at))[None]
        seen = jnp.arange(length) <= at
        for layer in range(layers):
            p = blocks[BLOCK * layer : BLOCK * (layer + 1)]
            qkv = (_norm(x, p[0], p[1]) @ p[2] + p[3]).reshape(1, 1, 3, heads, -1)
            keys, values = 2 * layer, 2 * layer + 1
            for cache in (keys, values):
                new = qkv[:, :, 1 + cache % 2]
                caches[cache] = jax.lax.dynamic_update_slice_in_dim(
                    caches[cache], new, at, 1
                )
            mixed = _attention(qkv[:, :, 0], caches[keys], caches[values], seen)
            x = x + mixed.reshape(x.shape) @ p[4] + p[5]
            hidden = jax.nn.gelu(_norm(x, p[6], p[7]) @ p[8] + p[9])
            x = x + hidden @ p[10] + p[11]
        return (*caches, _norm(x[0], scale, shift) @ tokens.T)

    caches = [np.zeros((1, length, heads, 64), np.float32) for _ in range(2 * layers)]
    parameters = _gpt2_parameters(random, length, layers, width, vocabulary)
    arguments = [*caches, *parameters, np.array([7], np.int32), np.int32(length // 2)]
    first = len(caches)
    return Model(step, arguments, first, range(first, first + len(parameters)))


def gpt2_step(
    batch: int = 2,
    length: int = 64,
    layers: int = 2,
    width: int = 128,
    vocabulary: int = 1000,
) -> Model:
    """One step of Adam on a small GPT-2."""
    random = Random()

    def loss(parameters: Arrays, ids: Array, following: Array) -> Array:
        tokens, places, scale, shift, *blocks = parameters
        x = tokens[ids] + places
        x = _blocks(blocks, x, width // 64, _causal(length))
        scores = jax.nn.log_softmax(_norm(x, scale, shift) @ tokens.T)
        return -jnp.take_along_axis(scores, following[..., None], -1).mean()

    ids = [random.integers(vocabulary, batch, length) for _ in range(2)]
    parameters = _gpt2_parameters(random, length, layers, width, vocabulary)
    return adam(loss, parameters, *ids)


# BERT


def _bert(parameters: Arrays, ids: Array, is_seen: Array) -> Array:
    tokens, places, scale, shift, *blocks = parameters
    heads = tokens.shape[-1] // 64
    x = _norm(tokens[ids] + places, scale, shift)
    mask = is_seen[:, None, None] > 0
    for first in range(0, len(blocks), BLOCK):
        p = blocks[first : first + BLOCK]
        qkv = (x @ p[2] + p[3]).reshape(*x.shape[:2], 3, heads, -1)
        mixed = _attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], mask)
        x = _norm(x + mixed.reshape(x.shape) @ p[4] + p[5], p[0], p[1])
        hidden = jax.nn.gelu(x @ p[8] + p[9], approximate=False)
        x = _norm(x + hidden @ p[10] + p[11], p[6], p[7])
    return x


def _bert_inputs(random: Random, batch: int, length: int, vocabulary: int) -> Arrays:
    is_seen = np.ones((batch, length), np.int32)
    is_seen[:, 3 * length // 4 :] = 0
    return random.integers(vocabulary, batch, length), is_seen


def bert(
    length: int = 128, layers: int = 4, width: int = 256, vocabulary: int = 8192
) -> Model:
    """BERT, forward: post-norm blocks with exact GELUs."""
    random = Random()
    parameters = _gpt2_parameters(random, length, layers, width, vocabulary)
    return inference(_bert, parameters, *_bert_inputs(random, 1, length, vocabulary))


def bert_step(
    batch: int = 8,
    length: int = 128,
    layers: int = 4,
    width: int = 256,
    vocabulary: int = 8192,
) -> Model:
    """One step of Adam on a BERT that reconstructs its input tokens."""
    random = Random()

    def loss(parameters: Arrays, ids: Array, is_seen: Array) -> Array:
        x = _bert(parameters, ids, is_seen)
        scores = jax.nn.log_softmax(x @ parameters[0].T)
        return -jnp.take_along_axis(scores, ids[..., None], -1).mean()

    parameters = _gpt2_parameters(random, length, layers, width, vocabulary)
    return adam(loss, parameters, *_bert_inputs(random, batch, length, vocabulary))


# ViT


def _vit_parameters(
    random: Random, size: int, patch: int, layers: int, width: int
) -> Arrays:
    return [
        random.weights(3 * patch**2, width),
        random.normal((size // patch) ** 2, width, scale=0.02),
        *_norm_parameters(width),
        random.weights(width, 10),
        *_stacked(random, layers, width),
    ]


def _vit(parameters: Arrays, images: Array, patch: int) -> Array:
    embedding, places, scale, shift, head, *blocks = parameters
    batch, size, *_ = images.shape
    count = size // patch
    patches = images.reshape(batch, count, patch, count, patch, 3)
    patches = patches.transpose(0, 1, 3, 2, 4, 5).reshape(batch, count**2, -1)
    x = patches @ embedding + places
    x = _blocks(blocks, x, x.shape[-1] // 64)
    return _norm(x, scale, shift).mean(1) @ head


def vit(
    batch: int = 1, size: int = 128, patch: int = 16, layers: int = 6, width: int = 192
) -> Model:
    """A vision transformer, forward."""
    random = Random()
    parameters = _vit_parameters(random, size, patch, layers, width)
    images = random.normal(batch, size, size, 3)
    return inference(partial(_vit, patch=patch), parameters, images)


def vit_step(
    batch: int = 8, size: int = 32, patch: int = 4, layers: int = 2, width: int = 128
) -> Model:
    """One step of SGD on a vision transformer."""
    random = Random()

    def loss(parameters: Arrays, images: Array, labels: Array) -> Array:
        return cross_entropy(_vit(parameters, images, patch), labels)

    parameters = _vit_parameters(random, size, patch, layers, width)
    images, labels = random.normal(batch, size, size, 3), random.labels(batch, 10)
    return sgd(loss, parameters, images, labels)
