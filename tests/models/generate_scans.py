"""Writes the models with loops: `python tests/models/generate_scans.py` (needs JAX).

gpt2_scan_train   one step of Adam on a small GPT-2 that scans over stacked layers and
                  rematerializes each in the backward pass; all state is donated
lstm_scan_infer   an LSTM that scans over a sequence
lstm_scan_train   one step of Adam on this LSTM
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

FOLDER = Path(__file__).parent
Tree = Any

LAYERS, WIDTH, HEADS, WORDS, LENGTH, BATCH = 3, 16, 2, 23, 8, 2


def adam(loss: Callable[..., Any], p: Tree, m: Tree, v: Tree, t: Any, *data: Any):
    value, g = jax.value_and_grad(loss)(p, *data)
    t = t + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)

    def update(p: Any, m: Any, v: Any) -> Any:
        mean, square = m / (1 - 0.9**t), v / (1 - 0.999**t)
        return p - 1e-3 * mean / (jnp.sqrt(square) + 1e-8)

    return jax.tree.map(update, p, m, v), m, v, t, value


def cross_entropy(logits: Any, labels: Any) -> Any:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)
    return -chosen.mean()


# GPT-2


def norm(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def layer(x: Any, p: dict[str, Any]) -> tuple[Any, None]:
    batch, length, width = x.shape
    y = norm(x, p["scale1"], p["shift1"]) @ p["qkv"]
    q, k, v = jnp.moveaxis(y.reshape(batch, length, 3, HEADS, width // HEADS), 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // HEADS)
    mask = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e30))
    y = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape)
    x = x + y @ p["out"]
    y = jax.nn.gelu(norm(x, p["scale2"], p["shift2"]) @ p["up"] + p["bias"])
    return x + y @ p["down"], None


def gpt2(p: Tree, words: Any, labels: Any) -> Any:
    x = p["words"][words] + p["places"][: words.shape[1]]
    x, _ = jax.lax.scan(jax.checkpoint(layer), x, p["layers"])
    return cross_entropy(x @ p["words"].T, labels)


def gpt2_parameters() -> Tree:
    def of(*shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    return {
        "words": of(WORDS, WIDTH),
        "places": of(2 * LENGTH, WIDTH),
        "layers": {
            "scale1": of(LAYERS, WIDTH),
            "shift1": of(LAYERS, WIDTH),
            "qkv": of(LAYERS, WIDTH, 3 * WIDTH),
            "out": of(LAYERS, WIDTH, WIDTH),
            "scale2": of(LAYERS, WIDTH),
            "shift2": of(LAYERS, WIDTH),
            "up": of(LAYERS, WIDTH, 4 * WIDTH),
            "bias": of(LAYERS, 4 * WIDTH),
            "down": of(LAYERS, 4 * WIDTH, WIDTH),
        },
    }


# LSTM


def lstm(p: Tree, x: Any) -> Any:
    width = p["hidden"].shape[0]

    def step(state: Any, x: Any) -> Any:
        h, c = state
        gates = x @ p["input"] + h @ p["hidden"] + p["bias"]
        i, f, g, o = jnp.split(gates, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((x.shape[1], width))
    _, hs = jax.lax.scan(step, (zeros, zeros), x)
    return hs @ p["project"]


def lstm_loss(p: Tree, x: Any, labels: Any) -> Any:
    return cross_entropy(lstm(p, x), labels)


def lstm_parameters() -> Tree:
    def of(*shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    return {
        "input": of(5, 32),
        "hidden": of(8, 32),
        "bias": of(32),
        "project": of(8, 11),
    }


def write(name: str, fn: Callable[..., Any], donated: tuple[int, ...], *args: Any):
    lowered = jax.jit(fn, donate_argnums=donated, keep_unused=True).lower(*args)
    (FOLDER / f"{name}.mlir").write_text(lowered.as_text())


def main() -> None:
    count = jax.ShapeDtypeStruct((), jnp.float32)
    words = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32)
    p = gpt2_parameters()
    train = partial(adam, gpt2)
    write("gpt2_scan_train", train, (0, 1, 2, 3), p, p, p, count, words, words)
    p = lstm_parameters()
    x = jax.ShapeDtypeStruct((6, 3, 5), jnp.float32)
    labels = jax.ShapeDtypeStruct((6, 3), jnp.int32)
    write("lstm_scan_infer", lstm, (), p, x)
    train = partial(adam, lstm_loss)
    write("lstm_scan_train", train, (0, 1, 2, 3), p, p, p, count, x, labels)


if __name__ == "__main__":
    main()
