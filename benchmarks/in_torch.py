"""The programs of `runtime.py` in PyTorch: eager, and compiled by Inductor.

Forward passes run in inference mode. Inductor freezes their parameters.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

torch: Any = import_module("torch")
F: Any = torch.nn.functional

Tensor = Any
Step = Callable[[], Sequence[Tensor]]
"""Runs a program once and returns its results."""


def chain2(x: Tensor, y: Tensor) -> Tensor:
    return x * y + 0.25


def chain5(x: Tensor, y: Tensor) -> Tensor:
    return (torch.maximum(chain2(x, y), x) - y) * 0.75


def gelu(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def swish(x: Tensor, y: Tensor) -> Tensor:
    return F.silu(x) + y


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def column_sums(x: Tensor) -> Tensor:
    return x.sum(0)


def layernorm(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], scale, shift)


KERNELS: Mapping[str, Callable[..., Tensor]] = {
    "chain2": chain2,
    "chain5": chain5,
    "gelu": gelu,
    "swish": swish,
    "softmax": softmax,
    "layernorm": layernorm,
    "column_sums": column_sums,
}


def mlp_loss(p: Sequence[Tensor], x: Tensor, y: Tensor) -> Tensor:
    for layer in range(0, len(p), 2):
        x = F.linear(x, p[layer].T, p[layer + 1])
        x = F.relu(x) if layer < len(p) - 2 else x
    return -(y * F.log_softmax(x, -1)).sum(-1).mean()


def block(p: Sequence[Tensor], x: Tensor, heads: int, is_causal: bool) -> Tensor:
    batch, length, _ = x.shape
    qkv = layernorm(x, p[0], p[1]) @ p[2] + p[3]
    q, k, v = qkv.reshape(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    x = x + mixed.transpose(1, 2).reshape(x.shape) @ p[4] + p[5]
    hidden = gelu(layernorm(x, p[6], p[7]) @ p[8] + p[9])
    return x + hidden @ p[10] + p[11]


def gpt2(p: Sequence[Tensor], ids: Tensor) -> Tensor:
    tokens, places, scale, shift, *rest = p
    x = tokens[ids] + places
    for first in range(0, len(rest), 12):
        x = block(rest[first : first + 12], x, x.shape[-1] // 64, is_causal=True)
    return layernorm(x[:, -1], scale, shift) @ tokens.T


def resnet18(p: Sequence[Tensor], x: Tensor) -> Tensor:
    rest = iter(p)

    def convolve(x: Tensor, stride: int) -> Tensor:
        weights, bias = next(rest), next(rest)
        return F.conv2d(x, weights, bias, stride, weights.shape[-1] // 2)

    x = F.relu(convolve(x.permute(0, 3, 1, 2), 2))
    x = F.max_pool2d(x, 3, 2, 1)
    for inputs, outputs in pairwise((64, 64, 128, 256, 512)):
        for number in range(2):
            stride = 2 if number == 0 and inputs != outputs else 1
            y = convolve(F.relu(convolve(x, stride)), 1)
            x = F.relu(y + (x if stride == 1 else convolve(x, stride)))
    return x.mean((2, 3)) @ next(rest) + next(rest)


def candidates(
    name: str, arrays: Sequence[Any], parameters: Sequence[int]
) -> dict[str, Step]:
    """The ways to run a program on `arrays`; empty if this module does not have it."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    tensors = [torch.from_numpy(np.array(a)) for a in arrays]
    if name in KERNELS:
        return _forward(KERNELS[name], tensors)
    if name in ("gpt2", "resnet18"):
        own = [_for_torch(tensors[n]) for n in parameters]
        inputs = [t for n, t in enumerate(tensors) if n not in parameters]
        return _forward(_Frozen(gpt2 if name == "gpt2" else resnet18, own), inputs)
    if name == "mlp_step":
        return {
            "torch": _mlp_step(mlp_loss, tensors),
            "compile": _mlp_step(torch.compile(mlp_loss), tensors),
        }
    if name == "transformer_block":

        def loss(p: Sequence[Tensor], x: Tensor) -> Tensor:
            return (block(p, x, 8, is_causal=False) ** 2).mean()

        return {
            "torch": _gradients(loss, tensors),
            "compile": _gradients(torch.compile(loss), tensors),
        }
    return {}


def _for_torch(x: Tensor) -> Tensor:
    """Convolution weights in PyTorch's order of dimensions, `channels_last`."""
    if x.ndim != 4:
        return x
    return x.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)


class _Frozen(torch.nn.Module):
    def __init__(self, function: Callable[..., Tensor], parameters: Sequence[Tensor]):
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self._function = function
        self._own = torch.nn.ParameterList(parameters).requires_grad_(False)
        self.eval()

    def forward(self, *inputs: Tensor) -> Tensor:
        return self._function(list(self._own), *inputs)


def _forward(
    function: Callable[..., Tensor], inputs: Sequence[Tensor]
) -> dict[str, Step]:
    config: Any = import_module("torch._inductor.config")
    config.freezing = True
    compiled = torch.compile(function)

    def eager() -> Sequence[Tensor]:
        with torch.inference_mode():
            return [function(*inputs)]

    def fast() -> Sequence[Tensor]:
        with torch.no_grad():  # freezing requires this
            return [compiled(*inputs)]

    return {"torch": eager, "compile": fast}


def _mlp_step(loss: Callable[..., Tensor], tensors: Sequence[Tensor]) -> Step:
    *state, x, y = (t.clone() for t in tensors)
    for parameter in state:
        parameter.requires_grad_()

    def step() -> Sequence[Tensor]:
        value = loss(state, x, y)
        gradients = torch.autograd.grad(value, state)
        with torch.no_grad():
            torch._foreach_add_(state, gradients, alpha=-1e-3)
        return [x.detach() for x in (*state, value)]

    return step


def _gradients(loss: Callable[..., Tensor], tensors: Sequence[Tensor]) -> Step:
    *parameters, x = (t.clone().requires_grad_() for t in tensors)

    def step() -> Sequence[Tensor]:
        value = loss(parameters, x)
        return [value.detach(), *torch.autograd.grad(value, [*parameters, x])]

    return step
