"""Small PyTorch networks, on which other compilers' planners are compared with ours.

Some are models of the tests. An inception network, a block of DenseNet, and a program
with two conditions have many values that are live at the same time. An MLP and a
keyword-spotting network of separable convolutions have few.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

torch: Any = import_module("torch")
sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
shared: Any = import_module("torch_models")


class Inception(torch.nn.Module):
    """Two blocks of four branches."""

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)
        Conv: Any = torch.nn.Conv2d
        self.stem = Conv(3, 32, 3, padding=1)
        self.branches = torch.nn.ModuleList(
            torch.nn.Sequential(Conv(32, 8 * n, 1), Conv(8 * n, 8, k, padding=k // 2))
            for n, k in ((1, 1), (2, 3), (3, 5), (4, 7))
        )

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.stem(x))
        for _ in range(2):
            x = torch.relu(torch.cat([branch(x) for branch in self.branches], 1))
        return x.mean((2, 3))


class Dense(torch.nn.Module):
    """A block of DenseNet."""

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)
        sizes = range(16, 16 + 6 * 12, 12)
        Conv: Any = torch.nn.Conv2d
        self.layers = torch.nn.ModuleList(Conv(n, 12, 3, padding=1) for n in sizes)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = torch.cat([x, torch.relu(layer(x))], 1)
        return x


class Branches(torch.nn.Module):
    """Two conditions whose results are live at the same time."""

    def forward(self, x: Any, p: Any, q: Any) -> Any:
        def one(x: Any) -> Any:
            return (x * 2).sin() + x.cos()

        def other(x: Any) -> Any:
            return (x - 1).tanh() * x

        return torch.cond(p, one, other, (x,)) + torch.cond(q, one, other, (x,))


def keywords(width: int = 32) -> Any:
    """Keyword spotting on spectrograms, with depthwise and pointwise convolutions."""
    Conv, relu = torch.nn.Conv2d, torch.nn.ReLU
    layers = [Conv(1, width, (10, 4), stride=2, padding=(4, 1)), relu()]
    for _ in range(4):
        layers += [Conv(width, width, 3, padding=1, groups=width), relu()]
        layers += [Conv(width, width, 1), relu()]
    pool, flat = torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
    return torch.nn.Sequential(*layers, pool, flat, torch.nn.Linear(width, 12))


def models() -> Mapping[str, Callable[[], Any]]:
    """Functions by name that return a module and its example inputs."""
    found = {name: lambda name=name: shared.make(name) for name in shared.MODELS}
    sound, row = torch.randn(1, 1, 49, 10), torch.randn(16, 64)
    image, yes, no = torch.randn(1, 16, 16, 16), torch.tensor(True), torch.tensor(False)
    return found | {
        "inception": lambda: (Inception(), (torch.randn(1, 3, 32, 32),)),
        "densenet_block": lambda: (Dense(), (image,)),
        "mlp": lambda: (shared.MLP(), (row,)),
        "keywords": lambda: (keywords(), (sound,)),
        "two_conditions": lambda: (Branches(), (torch.randn(64), yes, no)),
    }
