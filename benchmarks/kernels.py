"""Small JAX functions that measure fused kernels, and the sizes to run them at."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

jax: Any = import_module("jax")
jnp: Any = jax.numpy


def chain2(x: Any, y: Any) -> Any:
    return x * y + 0.25


def chain5(x: Any, y: Any) -> Any:
    return (jnp.maximum(x * y + 0.25, x) - y) * 0.75


def gelu(x: Any) -> Any:
    return jax.nn.gelu(x)


def swish(x: Any, y: Any) -> Any:
    return x / (1 + jnp.exp(-x)) + y


def softmax(x: Any) -> Any:
    return jax.nn.softmax(x)


def layernorm(x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def column_sums(x: Any) -> Any:
    return x.sum(0)


@dataclass(frozen=True)
class Program:
    function: Callable[..., Any]
    shapes: Sequence[Sequence[tuple[int, ...]]]
    """For each size, the shapes of the arguments."""


LINES = (1 << 10, 1 << 14, 1 << 18, 1 << 20)
MATRICES = ((128, 128), (1024, 128), (1024, 512), (4096, 1024))
PROGRAMS: Mapping[str, Program] = {
    "chain2": Program(chain2, [[(n,), (n,)] for n in LINES]),
    "chain5": Program(chain5, [[(n,), (n,)] for n in LINES]),
    "gelu": Program(gelu, [[(n,)] for n in LINES]),
    "swish": Program(swish, [[(n,), (n,)] for n in LINES]),
    "softmax": Program(softmax, [[m] for m in MATRICES]),
    "layernorm": Program(layernorm, [[m, m[1:], m[1:]] for m in MATRICES]),
    "column_sums": Program(column_sums, [[m] for m in MATRICES]),
}
