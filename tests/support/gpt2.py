"""A GPT-2 training step in JAX, of any width, its layers unrolled (not scanned)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Parameters = dict[str, Any]


def parameters(layers: int, width: int, vocabulary: int, length: int) -> Parameters:
    """Random parameters from a fixed seed."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return (0.02 * rng.standard_normal(shape)).astype(np.float32)

    def norm() -> Parameters:
        return {"g": np.ones(width, np.float32), "b": np.zeros(width, np.float32)}

    def dense(inputs: int, outputs: int) -> Parameters:
        return {"w": normal(inputs, outputs), "b": np.zeros(outputs, np.float32)}

    return {
        "tokens": normal(vocabulary, width),
        "places": normal(length, width),
        "norm": norm(),
        "layers": [
            {
                "norm_1": norm(),
                "qkv": dense(width, 3 * width),
                "out": dense(width, width),
                "norm_2": norm(),
                "up": dense(width, 4 * width),
                "down": dense(4 * width, width),
            }
            for _ in range(layers)
        ],
    }


def _norm(p: Parameters, x: jax.Array) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["g"] + p["b"]


def _dense(p: Parameters, x: jax.Array) -> jax.Array:
    return x @ p["w"] + p["b"]


def _attention(p: Parameters, x: jax.Array, heads: int) -> jax.Array:
    batch, length, width = x.shape
    qkv = _dense(p["qkv"], x).reshape(batch, length, 3, heads, width // heads)
    q, k, v = jnp.moveaxis(qkv, 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // heads)
    seen = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(seen, scores, -1e9), axis=-1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
    return _dense(p["out"], mixed.reshape(batch, length, width))


def loss(p: Parameters, tokens: jax.Array, heads: int) -> jax.Array:
    """The mean cross-entropy of the prediction of each next token."""
    x = p["tokens"][tokens] + p["places"]
    for layer in p["layers"]:
        x = x + _attention(layer, _norm(layer["norm_1"], x), heads)
        hidden = jax.nn.gelu(_dense(layer["up"], _norm(layer["norm_2"], x)))
        x = x + _dense(layer["down"], hidden)
    logits = _norm(p["norm"], x) @ p["tokens"].T
    chances = jax.nn.log_softmax(logits[:, :-1])
    return -jnp.take_along_axis(chances, tokens[:, 1:, None], -1).mean()


def sgd_step(
    p: Parameters, tokens: jax.Array, heads: int
) -> tuple[Parameters, jax.Array]:
    """The parameters after one step of SGD, and the loss before it."""
    value, gradient = jax.value_and_grad(loss)(p, tokens, heads)
    return jax.tree.map(lambda w, g: w - 0.1 * g, p, gradient), value
