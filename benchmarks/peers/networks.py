"""The networks of the StableHLO models, written in PyTorch with the same sizes.

PyTorch's exporters pass them to Inductor, ExecuTorch, TVM and ONNX Runtime. They are
written as PyTorch's users would: from its modules, with channels first.
"""

# pyright: reportUnknownMemberType=false
# PyTorch may be missing, and its modules have no types then.

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

torch: Any = import_module("torch")
nn: Any = torch.nn
F: Any = nn.functional

Tensor = Any
Module = Any


class ResidualBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        stride = outputs // inputs
        self.convolve1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.convolve2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride > 1:
            narrow = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(narrow, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.convolve1(x)))
        return F.relu(self.norm2(self.convolve2(y)) + self.shortcut(x))


class Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


def resnet18() -> Module:
    widths = (64, 64, 128, 256, 512)
    blocks = [
        block
        for inputs, outputs in pairwise(widths)
        for block in (ResidualBlock(inputs, outputs), ResidualBlock(outputs, outputs))
    ]
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        *blocks,
        Mean(),
        nn.Linear(512, 1000),
    )


def mlp() -> Module:
    return nn.Sequential(
        nn.Linear(784, 512),
        nn.ReLU(),
        nn.Linear(512, 512),
        nn.ReLU(),
        nn.Linear(512, 10),
    )


def lenet() -> Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


class UNet(nn.Module):
    def __init__(self, widths: Sequence[int] = (32, 64, 128, 256, 512)):
        super().__init__()
        pairs = list(pairwise(widths))
        self.down = nn.ModuleList(
            _twice(inputs, outputs) for inputs, outputs in [(3, widths[0]), *pairs]
        )
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(inputs, outputs, 2, 2)
            for outputs, inputs in reversed(pairs)
        )
        self.merge = nn.ModuleList(
            _twice(inputs, outputs) for outputs, inputs in reversed(pairs)
        )
        self.last = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept: list[Tensor] = []
        for layers in self.down[:-1]:
            kept.append(layers(x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.down[-1](x)
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([kept.pop(), up(x)], 1))
        return self.last(x)


def _twice(inputs: int, outputs: int) -> Module:
    layers: list[Module] = []
    for width in (inputs, outputs):
        layers.append(nn.Conv2d(width, outputs, 3, padding=1, bias=False))
        layers += [nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = (
            nn.Linear(width, 4 * width),
            nn.Linear(4 * width, width),
        )
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.mix(mixed.transpose(1, 2).reshape(x.shape))
        inner = F.gelu(self.widen(self.norm2(x)), approximate="tanh")
        return x + self.narrow(inner)


class GPT2(nn.Module):
    """GPT-2 small. With `recomputing`, training saves only the inputs of layers."""

    def __init__(self, layers: int = 12, width: int = 768, recomputing: bool = False):
        super().__init__()
        self.tokens = nn.Embedding(50257, width)
        self.places = nn.Parameter(torch.randn(1024, width) * 0.02)
        self.layers = nn.ModuleList(
            Attention(width, width // 64) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.recomputing = recomputing

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places[: ids.shape[1]]
        for layer in self.layers:
            if self.recomputing:
                again = torch.utils.checkpoint.checkpoint
                x = again(layer, x, use_reentrant=False, preserve_rng_state=False)
            else:
                x = layer(x)
        return self.norm(x) @ self.tokens.weight.T


class LSTM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(128, 256)
        self.last = nn.Linear(256, 128)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.lstm(x)[0])


Maker = Callable[[], Tensor]


def numbers(*shape: int) -> Maker:
    return lambda: torch.randn(shape)


def indices(limit: int, *shape: int) -> Maker:
    return lambda: torch.randint(limit, shape)


@dataclass(frozen=True)
class Network:
    make: Callable[[], Module]
    input: Maker
    labels: Maker | None = None
    update: str = ""
    """A key of `training.UPDATES`, or empty for inference."""


VECTORS, DIGITS = numbers(128, 784), numbers(64, 1, 28, 28)
PHOTOS = numbers(8, 3, 224, 224)
TOKENS, SERIES = indices(50257, 4, 256), numbers(32, 32, 128)

NETWORKS = {
    "mlp_infer": Network(mlp, VECTORS),
    "mlp_train_sgd": Network(mlp, VECTORS, indices(10, 128), "sgd"),
    "mlp_train_adam": Network(mlp, VECTORS, indices(10, 128), "adam"),
    "lenet_infer": Network(lenet, DIGITS),
    "lenet_train": Network(lenet, DIGITS, indices(10, 64), "momentum"),
    "resnet18_infer": Network(resnet18, PHOTOS),
    "resnet18_train": Network(resnet18, PHOTOS, indices(1000, 8), "momentum"),
    "unet_infer": Network(UNet, numbers(4, 3, 128, 128)),
    "gpt2_infer": Network(GPT2, TOKENS),
    "gpt2_scan_train": Network(partial(GPT2, recomputing=True), TOKENS, TOKENS, "adam"),
    "lstm_scan_infer": Network(LSTM, SERIES),
    "lstm_scan_train": Network(LSTM, SERIES, indices(128, 32, 32), "adam"),
}
"""Networks by the name of their StableHLO file."""


def network_of(file: Path) -> Network | None:
    """The network of a StableHLO file; None if its name is unknown or no argument of
    `@main` has the sizes of the network's input."""
    network = NETWORKS.get(file.stem)
    if network is None:
        return None
    signature = next(line for line in file.open() if "@main(" in line)
    shapes = re.findall(r"tensor<([0-9x]+)x[fi]32>", signature.split("->")[0])
    sizes = [sorted(map(int, shape.split("x"))) for shape in shapes]
    return network if sorted(network.input().shape) in sizes else None
