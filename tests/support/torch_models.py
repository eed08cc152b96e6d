"""Small PyTorch models of the families that users export, with random weights.

Each is a published architecture at reduced width. `MODELS` has functions that make the
modules and their example inputs.
"""

# pyright: reportMissingImports=false

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Made = tuple[nn.Module, tuple[Tensor, ...]]


def _conv(i: int, o: int, size: int = 3, stride: int = 1, groups: int = 1) -> list:
    pad = size // 2
    conv = nn.Conv2d(i, o, size, stride, pad, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(o)]


class Residual(nn.Module):
    """ResNet's basic block."""

    def __init__(self, i: int, o: int, stride: int):
        super().__init__()
        self.main = nn.Sequential(*_conv(i, o, 3, stride), nn.ReLU(), *_conv(o, o))
        same = i == o and stride == 1
        self.skip = nn.Identity() if same else nn.Sequential(*_conv(i, o, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.main(x) + self.skip(x))


def resnet18(width: int = 64, classes: int = 1000) -> nn.Module:
    layers = [*_conv(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = width
    for stage in range(4):
        after = width << stage
        stride = 1 if stage == 0 else 2
        layers += [Residual(before, after, stride), Residual(after, after, 1)]
        before = after
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes)]
    return nn.Sequential(*layers, *head)


class Inverted(nn.Module):
    """MobileNetV2's inverted residual."""

    def __init__(self, i: int, o: int, stride: int, expand: int):
        super().__init__()
        hidden = i * expand
        self.same = i == o and stride == 1
        self.layers = nn.Sequential(
            *_conv(i, hidden, 1),
            nn.ReLU6(),
            *_conv(hidden, hidden, 3, stride, groups=hidden),
            nn.ReLU6(),
            *_conv(hidden, o, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.same else self.layers(x)


def mobilenet(classes: int = 10) -> nn.Module:
    return nn.Sequential(
        *_conv(3, 8, 3, 2),
        nn.ReLU6(),
        Inverted(8, 8, 1, 1),
        Inverted(8, 16, 2, 6),
        Inverted(16, 16, 1, 6),
        nn.Hardswish(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(16, classes),
    )


class UNet(nn.Module):
    """Two levels, upsampled by a transposed convolution and by interpolation."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.first = nn.Sequential(*_conv(3, width), nn.SiLU())
        self.second = nn.Sequential(nn.MaxPool2d(2), *_conv(width, 2 * width))
        self.third = nn.Sequential(nn.AvgPool2d(2), *_conv(2 * width, 4 * width))
        self.up = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.norm = nn.GroupNorm(4, 4 * width)
        self.join = nn.Conv2d(4 * width, width, 3, padding=1)
        self.last = nn.Conv2d(2 * width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.first(x)
        second = F.leaky_relu(self.second(first), 0.1)
        third = F.gelu(self.third(second), approximate="tanh")
        second = self.join(self.norm(torch.cat([self.up(third), second], 1)))
        up = F.interpolate(second, scale_factor=2, mode="bilinear")
        near = F.interpolate(first[:, :, ::2, ::2], scale_factor=2)
        return self.last(torch.cat([up, near], 1))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(x).split(width, 2)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, mask, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class GPT2Block(nn.Module):
    def __init__(self, width: int = 64, heads: int = 4):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal=True)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_1(x))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class MLP(nn.Module):
    """Residual MLP blocks: a transformer without attention."""

    def __init__(self, layers: int = 4, width: int = 64):
        super().__init__()
        self.blocks = nn.Sequential(*(MLPBlock(width) for _ in range(layers)))

    def forward(self, x: Tensor) -> Tensor:
        return self.blocks(x)


class MLPBlock(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class GPT2(nn.Module):
    def __init__(self, layers: int = 2, width: int = 64, vocabulary: int = 100):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(32, width)
        self.blocks = nn.Sequential(*(GPT2Block(width) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.blocks(self.tokens(tokens) + self.places(places))
        return self.norm(x) @ self.tokens.weight.T


class Loss(nn.Module):
    """The cross-entropy of a classifier, or of predicting each next token."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        scores = self.model(x)
        return F.cross_entropy(scores.flatten(0, -2), labels.flatten())


class BERTBlock(nn.Module):
    """A post-norm block whose attention masks padding."""

    def __init__(self, width: int = 32, heads: int = 4):
        super().__init__()
        self.attention = Attention(width, heads, causal=False)
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.norm_1(x + self.attention(x, mask[:, None, None, :]))
        return self.norm_2(x + self.down(F.gelu(self.up(x))))


class LSTM(nn.Module):
    def __init__(self, width: int = 16):
        super().__init__()
        self.cells = nn.LSTM(8, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, 4)

    def forward(self, x: Tensor) -> Tensor:
        every, (last, _) = self.cells(x)
        return torch.tanh(self.head(every[:, -1] + last[-1]))


class Cache(nn.Module):
    """A cache of keys. Each call writes one row."""

    def __init__(self, length: int = 8, width: int = 4):
        super().__init__()
        self.keys: Tensor
        self.register_buffer("keys", torch.zeros(length, width))

    def forward(self, key: Tensor, place: Tensor) -> Tensor:
        self.keys.index_copy_(0, place, key)
        return torch.softmax(self.keys @ key[0], 0)


def image(batch: int = 2, size: int = 32) -> Tensor:
    return torch.randn(batch, 3, size, size)


def _tokens() -> Tensor:
    return torch.randint(0, 100, (2, 12))


MODELS: dict[str, Callable[[], Made]] = {
    "resnet18": lambda: (resnet18(8, 10), (image(4, 64),)),
    "mobilenet": lambda: (mobilenet(), (image(),)),
    "unet": lambda: (UNet(), (image(1, 16),)),
    "gpt2_block": lambda: (GPT2Block(), (torch.randn(2, 12, 64),)),
    "gpt2": lambda: (GPT2(), (_tokens(),)),
    "bert_block": lambda: (
        BERTBlock(),
        (torch.randn(2, 10, 32), torch.arange(10)[None] < torch.tensor([[10], [7]])),
    ),
    "lstm": lambda: (LSTM(), (torch.randn(2, 6, 8),)),
}


def make(name: str, *, train: bool = False) -> Made:
    """A model with reproducible weights, inputs and batch norm statistics."""
    torch.manual_seed(0)
    module, inputs = MODELS[name]()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            state = part.state_dict()
            nn.init.uniform_(state["running_mean"], -0.2, 0.2)
            nn.init.uniform_(state["running_var"], 0.5, 1.5)
    return module.train(train), inputs
