"""`torch.compile(backend=...)`: values and gradients as PyTorch has them."""

# pyright: reportMissingImports=false

import copy
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import torch_models  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from tensorplan.integrations.torch import backend  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore",
    "error:PyTorch runs a graph",  # the rest is PyTorch's own
)


@pytest.fixture(autouse=True)
def anew() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def weighted(result: Any) -> Tensor:
    """A loss that no norm makes constant."""
    y = result[0] if isinstance(result, tuple) else result
    return (y * torch.linspace(-1, 1, y.numel()).reshape(y.shape)).sum()


def check_training(module: nn.Module, *inputs: Tensor) -> None:
    ours = copy.deepcopy(module)
    weighted(module(*inputs)).backward()
    weighted(torch.compile(ours, backend=backend)(*inputs)).backward()
    parameters = dict(module.named_parameters())
    scale = max(float(p.grad.abs().max()) for p in parameters.values())
    for name, own in ours.named_parameters():
        expected = parameters[name].grad
        assert torch.allclose(own.grad, expected, rtol=2e-4, atol=2e-5 * scale), name
    for own, expected in zip(ours.buffers(), module.buffers(), strict=True):
        assert torch.allclose(own, expected, atol=1e-5)


def test_the_entry_point_names_the_backend() -> None:
    from importlib.metadata import EntryPoint

    group = "torch_dynamo_backends"
    point = EntryPoint("tensorplan", "tensorplan.integrations.torch:backend", group)
    assert point.load() is backend


@pytest.mark.thorough
@pytest.mark.parametrize("name", torch_models.MODELS)
def test_models(name: str) -> None:
    module, inputs = torch_models.make(name)
    with torch.no_grad():
        compiled = torch.compile(copy.deepcopy(module), backend=backend)
        have, want = compiled(*inputs), module(*inputs)
    first = [y[0] if isinstance(y, tuple) else y for y in (have, want)]
    assert torch.allclose(*first, rtol=2e-4, atol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("name", torch_models.MODELS)
def test_training_models(name: str) -> None:
    module, inputs = torch_models.make(name, train=True)
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    check_training(module, *inputs)


def test_training_with_all_kinds_of_windows() -> None:
    module = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=True),
        nn.MaxPool2d(3, 2, 1),
        nn.ConvTranspose2d(4, 6, 3, groups=2),
        nn.AvgPool2d(2),
        nn.BatchNorm2d(6),
        nn.AdaptiveAvgPool2d(2),
    )
    check_training(module, torch.randn(2, 3, 16, 16))


def test_attention_in_training() -> None:
    check_training(torch_models.make("gpt2_block")[0], torch.randn(2, 12, 64))


def test_what_a_graph_returns() -> None:
    """Its inputs as they are, None, numbers, a value twice; buffers in place."""

    class Module(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(4))

        def forward(self, x: Tensor) -> Any:
            self.count += x.sum(0)
            y = x * 2
            torch._dynamo.graph_break()
            return y, x, None, 3, y, self.count + 1

    module = Module()
    compiled = torch.compile(module, backend=backend, options={"threads": 1})
    x, total = torch.randn(3, 4), torch.zeros(4)
    for _ in range(2):
        y, same, none, three, again, count = compiled(x)
        total += x.sum(0)
        assert same is x
        assert (none, three) == (None, 3)
        assert torch.equal(y, x * 2)
        assert torch.equal(again, y)
        assert torch.allclose(count, total + 1)
        assert torch.allclose(module.count, total)


def test_symbolic_sizes() -> None:
    w = torch.randn(4, 4, requires_grad=True)

    def function(x: Tensor, w: Tensor) -> Tensor:
        return torch.tanh(x @ w).sum(0) * x.shape[0]

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for size in (3, 5, 3):
        x = torch.randn(size, 4)
        (have,) = torch.autograd.grad(compiled(x, w).sum(), w)
        (want,) = torch.autograd.grad(function(x, w).sum(), w)
        assert torch.allclose(have, want, rtol=2e-4)


def test_what_is_not_supported_runs_in_pytorch() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.special.airy_ai(x.sin()) + torch.special.bessel_j0(x)

    compiled = torch.compile(function, backend=backend)
    x = torch.randn(8)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        assert torch.allclose(compiled(x), function(x))
    (message,) = [str(w.message) for w in given if "PyTorch runs" in str(w.message)]
    assert "test_torch_compile.py:" in message
    assert "aten::special_airy_ai is not supported" in message
    assert "aten::special_bessel_j0 is not supported" in message


def test_options_are_those_of_compile() -> None:
    compiled = torch.compile(torch.sin, backend=backend, options={"budgte": 1})
    with pytest.raises(Exception, match=r"option is 'budgte', .*did you mean 'budget'"):
        compiled(torch.randn(3))
