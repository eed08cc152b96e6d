"""Tests `torch.compile(backend=...)` against PyTorch's own values and gradients."""

# pyright: reportMissingImports=false

import copy
import math
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import torch_models  # noqa: E402
from processors import multiplies_packed  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import tensorplan  # noqa: E402
from tensorplan.integrations import torch as integration  # noqa: E402
from tensorplan.integrations import torch_calls, torch_weights  # noqa: E402
from tensorplan.integrations.torch import backend  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore",
    "error:PyTorch runs",  # all other warnings are PyTorch's own
)


@pytest.fixture(autouse=True)
def reset_torch() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def weighted(result: Any) -> Tensor:
    """A weighted sum of the elements, as a loss. A plain sum would be constant after a
    norm."""
    y = result[0] if isinstance(result, tuple) else result
    kind = y.dtype if y.is_floating_point() else torch.float32
    return (y * torch.linspace(-1, 1, y.numel(), dtype=kind).reshape(y.shape)).sum()


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


def test_entry_point_is_the_backend() -> None:
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


def test_training_with_convolutions_and_pooling() -> None:
    module = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=True),
        nn.MaxPool2d(3, 2, 1),
        nn.ConvTranspose2d(4, 6, 3, groups=2),
        nn.AvgPool2d(2),
        nn.BatchNorm2d(6),
        nn.AdaptiveAvgPool2d(2),
    )
    check_training(module, torch.randn(2, 3, 16, 16))


GRID = torch.linspace(-1.2, 1.1, 2 * 12).reshape(1, 4, 3, 2).sin()
ROWS = torch.tensor([3, 1, 3, 0, 2, 4, 1]), torch.tensor([0, 2, 2, 5])

OPERATIONS: dict[str, tuple[dict[str, Callable[[Tensor], Any]], tuple[int, ...]]] = {
    "windows": (
        {
            "max_pool": lambda x: F.max_pool3d(x, 3, 2, 1),
            "dilated": lambda x: F.max_pool3d(x, 2, 1, 1, dilation=2),
            "average": lambda x: F.avg_pool3d(x, 3, 2, 1, count_include_pad=False),
            "divisor": lambda x: F.avg_pool2d(x[0], 3, 2, 1, divisor_override=5),
            "adaptive_average": lambda x: F.adaptive_avg_pool3d(x, (3, 2, 4)),
            "adaptive": lambda x: F.adaptive_max_pool3d(x, (3, 2, 4)),
            "windows": lambda x: F.adaptive_max_pool2d(x[0], (2, 3)),
            "edges": lambda x: F.pad(x, (2, 0, 1, -1, 1, 1), "replicate"),
            "one": lambda x: F.pad(x[..., :1], (2, 1, 1, 0, 0, 1), "replicate"),
            "fractional": lambda x: F.fractional_max_pool3d(
                x,
                2,
                output_size=(3, 2, 4),
                _random_samples=x[:, :, 0, 0, :3].sigmoid().detach(),
            ),
            "shrunk": lambda x: F.interpolate(
                x[0], (2, 3), mode="bilinear", antialias=True
            ),
            "cubic": lambda x: F.interpolate(
                x[0], (3, 9), mode="bicubic", antialias=True
            ),
        },
        (1, 2, 5, 4, 6),
    ),
    "places": (
        {
            "sampled": lambda x: F.grid_sample(
                x[None, None], GRID + 0.1 * x[:4, :3, None], align_corners=False
            ),
            "least": lambda x: torch.cdist(x, x.T[:, :4]),
            "sums": lambda x: torch.cdist(x, x.T[:, :4], p=1),
            "roots": lambda x: torch.cdist(x, x.T[:, :4], p=0.5),
            "largest": lambda x: torch.cdist(x, x.T[:, :4], p=float("inf")),
            "inside": F.pdist,
            **{
                mode: lambda x, mode=mode: F.embedding_bag(
                    ROWS[0], x, ROWS[1], mode=mode, padding_idx=3
                )
                for mode in ("sum", "mean", "max")
            },
            "even": lambda x: F.embedding_bag(ROWS[0][:6].reshape(2, 3), x, mode="max"),
            "weighted": lambda x: F.embedding_bag(
                ROWS[0],
                x,
                ROWS[1],
                mode="sum",
                per_sample_weights=x[:, 1].repeat(2)[:7],
            ),
            "taken": lambda x: x.take(torch.tensor([7, 1, 7])),
            "masked": lambda x: x.masked_scatter(x > 0, x * 2),
            "mean": lambda x: x.index_reduce(
                0, torch.tensor([0, 2, 0]), x[1:4], "mean", include_self=False
            ),
        },
        (5, 4),
    ),
    "order": (
        {
            "cummax": lambda x: x.cummax(1).values,
            "cummin": lambda x: x.cummin(0).values * x.cummin(0).indices,
            "kth": lambda x: x.kthvalue(2, 1).values,
            "median": lambda x: x.median(0, keepdim=True).values + x.median(),
            "numbers": lambda x: x.where(x > 0, torch.nan).nanmedian(),
            "mode": lambda x: x.round().mode(1).values * x[:, 0],
            "exponential": lambda x: torch.matrix_exp(3 * x),
            "determinant": torch.det,
            "bessel": lambda x: torch.i0(9 * x) + torch.special.i1(x),
            "scaled": lambda x: torch.special.i0e(x) + torch.special.i1e(9 * x),
            "normal": lambda x: torch.special.log_ndtr(x) + torch.linalg.inv(x),
            "hypot": lambda x: torch.hypot(x, x.T) + x.copysign(-x),
            "complex": lambda x: torch.view_as_real(torch.polar(x.exp(), x)),
        },
        (4, 4),
    ),
}


@pytest.mark.thorough
@pytest.mark.filterwarnings("error:PyTorch runs")
@pytest.mark.parametrize(
    ("family", "dtype"),
    [
        ("windows", torch.float64),
        ("places", torch.float32),
        ("order", torch.float64),
    ],
)
def test_operations_in_training(family: str, dtype: Any) -> None:
    functions, shape = OPERATIONS[family]

    def loss(x: Tensor) -> tuple[Tensor, Tensor]:
        results = torch.stack([weighted(f(x)) for f in functions.values()])
        return results, weighted(results)

    inputs = [torch.randn(shape, dtype=dtype)] * 2
    given = [x.clone().requires_grad_() for x in inputs]
    calls = torch.compile(loss, backend=backend), loss
    pairs = [call(x) for call, x in zip(calls, given, strict=True)]
    for _, total in pairs:
        total.backward()
    near = {"rtol": 2e-5, "atol": 2e-5} if dtype is torch.float32 else {"rtol": 1e-10}
    have, want = (results for results, _ in pairs)
    for name, *both in zip(functions, have, want, strict=True):
        assert torch.allclose(*both, **near), name
    assert torch.allclose(given[0].grad, given[1].grad, **near)


@pytest.mark.filterwarnings("error:PyTorch runs")
def test_training_with_weight_norm() -> None:
    conv = nn.Conv1d(2, 3, 2)
    check_training(
        nn.utils.parametrizations.weight_norm(conv, dim=2), torch.randn(1, 2, 4)
    )


@pytest.mark.filterwarnings("error:PyTorch runs")
def test_weight_expressions_with_complex_constants() -> None:
    """Values that depend only on weights are computed once, even with complex
    constants, as in a state space model."""

    class Kernel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rate = nn.Parameter(torch.randn(3))

        def forward(self, x: Tensor) -> Tensor:
            root = -self.rate.exp() + 1j * torch.arange(3)
            return (torch.exp(root * x) * (2 + 1j)).real

    x, module = torch.randn(4, 3), Kernel()
    check_training(module, x)
    with torch.no_grad():
        have = torch.compile(module, backend=backend)(x)
        assert torch.allclose(have, module(x), atol=1e-6)


def test_attention_in_training() -> None:
    check_training(torch_models.make("gpt2_block")[0], torch.randn(2, 12, 64))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"scale": 0.3},
        {"attn_mask": torch.arange(12).reshape(3, 4) > 3},  # a row without keys
        {"attn_mask": torch.linspace(-1, 1, 12).reshape(3, 4)},
        {"enable_gqa": True},
    ],
    ids=str,
)
def test_attention(options: Any, dynamic: bool) -> None:
    def attended(*given: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(*given, **options)

    heads = 1 if "enable_gqa" in options else 2
    width = 6 if "scale" in options else 8  # PyTorch decomposes other widths
    shapes = (2, 2, 3, 8), (2, heads, 4, 8), (2, heads, 4, width)
    given = [torch.randn(shape, requires_grad=True) for shape in shapes]
    compiled = torch.compile(attended, backend=backend, dynamic=dynamic)
    have, want = compiled(*given), attended(*given)
    assert torch.allclose(have, want, atol=1e-6)
    pairs = (torch.autograd.grad(weighted(y), given) for y in (have, want))
    for own, expected in zip(*pairs, strict=True):
        assert torch.allclose(own, expected, rtol=2e-4, atol=1e-5)


def test_attention_with_a_trained_mask() -> None:
    def attended(q: Tensor, mask: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, q, q, mask)

    q, mask = (torch.randn(1, 2, 5, n, requires_grad=True) for n in (8, 5))
    have, want = (
        f(q, mask) for f in (torch.compile(attended, backend=backend), attended)
    )
    pairs = (torch.autograd.grad(weighted(y), (q, mask)) for y in (have, want))
    for own, expected in zip(*pairs, strict=True):
        assert torch.allclose(own, expected, rtol=2e-4, atol=1e-5)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Records the programs that are compiled, in order."""
    made: list[Any] = []
    build = integration.Builder.__call__

    def building(self: Any, module: Any) -> Any:
        made.append(build(self, module))
        return made[-1]

    monkeypatch.setattr(integration.Builder, "__call__", building)
    return made


def test_backward_pass_frees_saved_tensors_after_their_last_use(
    built: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backward pass runs in stages, which free saved tensors and arenas. It does
    not copy the keys, which have another layout."""

    def copying(tensor: Tensor) -> Tensor:
        assert tensor.is_contiguous()
        return tensor

    monkeypatch.setattr(torch_calls, "_in_rows", copying)
    check_training(torch_models.make("gpt2_block")[0], torch.randn(2, 12, 64))
    backward = built[-1]
    assert len(backward.stages) > 1
    assert any(stage.finished for stage in backward.stages[:-1])
    assert any(stage.finished_arenas for stage in backward.stages[:-1])


def test_backward_pass_reuses_parts_of_one_tensor(built: list[Any]) -> None:
    """Queries, keys and values are views of one tensor in eager PyTorch. The forward
    pass computes them separately, so the backward pass may overwrite each of them."""
    layer = nn.Linear(8, 24)

    def attended(x: Tensor) -> Tensor:
        parts = layer(x).reshape(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
        return nn.functional.scaled_dot_product_attention(*parts.unbind())

    x = torch.randn(2, 5, 8)
    compiled = torch.compile(attended, backend=backend)
    pairs = (
        torch.autograd.grad(weighted(f(x)), layer.parameters())
        for f in (compiled, attended, compiled)
    )
    for own, want, again in zip(*pairs, strict=True):
        assert torch.allclose(own, want, rtol=2e-4, atol=1e-5)
        assert torch.equal(own, again)
    parts = [slot for slot in built[-1].inputs if len(slot.shape) == 4]
    assert sum(slot.is_donated for slot in parts) >= 3


def test_results_of_group_norms_are_not_saved(built: list[Any]) -> None:
    """The forward pass saves the input of the norm and the result of the activation,
    which a convolution reads."""
    layers = nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.SiLU(), nn.Conv2d(4, 2, 3)
    check_training(nn.Sequential(*layers), torch.randn(2, 3, 8, 8))
    shapes = [tuple(slot.shape) for slot in built[0].results]
    assert len([shape for shape in shapes if math.prod(shape) == 288]) == 2


def test_copies_are_not_saved(built: list[Any]) -> None:
    """A dropout with probability 0 copies the weights of the attention. The backward
    pass reads them before and after the copy, and saves them once. Copies that the
    user's function returns stay separate."""
    layer = nn.Linear(8, 6)

    def attended(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        weights = torch.softmax(layer(x), -1)
        copied = weights.clone()
        return F.dropout(weights, 0.0, training=True) @ x, copied, copied.clone()

    x = torch.randn(6, 8, requires_grad=True)
    results = torch.compile(attended, backend=backend)(x)
    given = [x, *layer.parameters()]
    pairs = [
        torch.autograd.grad(sum(map(weighted, y)), given)
        for y in (results, attended(x))
    ]
    for own, want in zip(*pairs, strict=True):
        assert torch.allclose(own, want, rtol=2e-4, atol=1e-5)
    assert len({y.data_ptr() for y in results}) == 3
    forward, backward = built
    assert [slot.shape for slot in forward.results].count((6, 6)) == 3
    assert [slot.shape for slot in backward.inputs].count((6, 6)) == 3  # 2 gradients


def test_attention_does_not_copy_cached_keys() -> None:
    keys, values = torch.randn(2, 2, 4, 512, 16)
    q = torch.randn(2, 4, 1, 16)
    sizes: list[int] = []
    build = integration.Builder.__call__

    def recording(builder: Any, module: Any) -> Any:
        run = build(builder, module)
        sizes.append(sum(pool.bytes for pool in run.pools))
        return run

    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(integration.Builder, "__call__", recording)
        torch.compile(nn.functional.scaled_dot_product_attention, backend=backend)(
            q, keys, values
        )
    assert sizes[0] < keys.nbytes / 4


@pytest.mark.parametrize("is_norm_first", [True, False])
@pytest.mark.parametrize("masks", ["", "src", "keys", "src keys"])
def test_encoder_layers_without_gradients(masks: str, is_norm_first: bool) -> None:
    """PyTorch fuses an encoder layer into one operation, which tensorplan compiles to
    one program."""
    layer = nn.TransformerEncoderLayer(
        16, 4, 32, activation="gelu", batch_first=True, norm_first=is_norm_first
    ).eval()
    x = torch.randn(3, 6, 16)
    given: dict[str, Tensor] = {}
    if "src" in masks:
        given["src_mask"] = torch.ones(6, 6, dtype=torch.bool).triu(1)
    if "keys" in masks:
        given["src_key_padding_mask"] = torch.arange(6) >= torch.tensor([[6], [4], [1]])
    compiled = torch.compile(layer, backend=backend)
    with torch.no_grad():
        assert torch.allclose(compiled(x, **given), layer(x, **given), atol=1e-5)


def test_second_derivatives() -> None:
    """The loss of a network contains derivatives of the network, and is differentiated
    again."""
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1, bias=False))

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, points: Tensor) -> Tensor:
            def value(point: Tensor) -> Tensor:
                return self.net(point)[0]

            def residual(point: Tensor) -> Tensor:
                slope = torch.func.grad(value)(point)
                return slope[1] - torch.func.hessian(value)(point)[0, 0]

            return torch.func.vmap(residual)(points)

    check_training(Residual(), torch.rand(9, 2))


def test_kinds_of_graph_results() -> None:
    """A graph may return its inputs, None, numbers and a value twice, and update
    buffers in place."""

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


class Cache(nn.Module):
    """Writes a row of a buffer, and modifies its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(64, 128))
        self.scale = nn.Parameter(torch.ones(128))

    def forward(self, row: Tensor, at: Tensor, total: Tensor, seen: Tensor) -> Tensor:
        self.rows.index_copy_(0, at, row * self.scale)
        total.add_(row.sum())
        seen.mul_(2)
        return self.rows.sum(1)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("refused", [False, True])
def test_mutated_inputs_and_buffers(
    dynamic: bool, training: bool, refused: bool
) -> None:
    """Buffers and inputs are updated in place, also strided ones, and if PyTorch runs
    one of the operations."""

    class Refusing(Cache):
        def forward(
            self, row: Tensor, at: Tensor, total: Tensor, seen: Tensor
        ) -> Tensor:
            found = super().forward(row, at, total, seen)
            return found + torch.nonzero_static(found > 0, size=64).sum(1)

    module = Refusing() if refused else Cache()
    ours = copy.deepcopy(module)
    compiled = torch.compile(ours, backend=backend, dynamic=dynamic)
    for n in range(3):
        row, at, base = torch.randn(1, 128), torch.tensor([5 + n]), torch.randn(6, 4)
        results = []
        for module_, function in ((module, module), (ours, compiled)):
            total, seen = torch.zeros(2, 3), base.clone()
            with torch.set_grad_enabled(training), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                y = function(row, at, total.t(), seen[::2])
            results.append((y.detach(), total, seen, module_.rows.detach().clone()))
            module_.rows.detach_()
        torch.testing.assert_close(*results)


def test_caches_are_updated_in_place() -> None:
    module = Cache()
    rows = module.rows
    compiled = torch.compile(module, backend=backend)
    given = torch.ones(1, 128), torch.tensor([3]), torch.zeros(2), torch.zeros(2)
    with torch.no_grad():
        compiled(*given)
        with torch.profiler.profile(profile_memory=True) as profile:
            compiled(*given)
    events = profile.profiler.kineto_results.events()
    taken = [x.nbytes() for x in events if x.name() == "[memory]" and x.nbytes() > 0]
    assert sum(taken) < rows.nbytes / 16
    assert module.rows is rows
    assert rows[3].eq(1).all()


class Classifier(nn.Module):
    """A module with weights that freezing folds, weights that it packs, and others."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(9, 12)
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 12)

    def forward(self, images: Tensor, tokens: Tensor) -> Tensor:
        seen = torch.relu(self.norm(self.conv(images)))
        return torch.tanh(self.head(seen.mean((2, 3)))) + self.tokens(tokens)


def classifier() -> tuple[Classifier, tuple[Tensor, Tensor]]:
    inputs = torch.randn(16, 3, 8, 8), torch.arange(16) % 9
    return Classifier().eval(), inputs


def change_in_place(module: Classifier) -> None:
    for tensor in module.state_dict().values():
        tensor.add_(1)


def change_loaded(module: Classifier) -> None:
    module.load_state_dict(Classifier().state_dict())


def change_assigned(module: Classifier) -> None:
    module.load_state_dict(Classifier().state_dict(), assign=True)


def change_data(module: Classifier) -> None:
    for parameter in module.parameters():
        parameter.data = parameter.data + 1


def change_through_data(module: Classifier) -> None:
    for parameter in module.parameters():
        version = parameter._version
        parameter.data.mul_(2)
        assert parameter._version == version


def change_through_numpy(module: Classifier) -> None:
    for parameter in module.parameters():
        parameter.detach().numpy()[...] *= 2


def change_statistics(module: Classifier) -> None:
    module.norm.running_var.data.mul_(3)


def change_parameters(module: Classifier) -> None:
    for part in (module.head, module.conv, module.tokens):
        part.weight = nn.Parameter(torch.randn(part.weight.shape))


def change_layout(module: Classifier) -> None:
    weight = module.conv.weight
    weight.data = weight.data.to(memory_format=torch.channels_last)
    weight.data.mul_(2)


CHANGES = [function for name, function in globals().items() if name[:7] == "change_"]


@pytest.mark.parametrize("change", CHANGES)
def test_changed_weights_are_noticed(change: Callable[[Classifier], None]) -> None:
    module, inputs = classifier()
    compiled = torch.compile(module, backend=backend)
    with torch.no_grad():
        for _ in range(3):
            change(module)
            want = module(*inputs)
            assert torch.allclose(compiled(*inputs), want, rtol=2e-4, atol=1e-5)


def test_frozen_weights_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[object] = []
    compute = torch_weights._Weights.compute
    monkeypatch.setattr(
        torch_weights._Weights,
        "compute",
        lambda weights: (computed.append(weights), compute(weights)),
    )
    module, inputs = classifier()
    compiled = torch.compile(module, backend=backend, options={"freezing": True})
    with torch.no_grad():
        for count in range(1, 4):
            for _ in range(3):
                compiled(*inputs)
            assert len(computed) == count
            module.norm.weight.mul_(2)


def test_weights_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `freezing`, the program reads weights where they lie."""
    programs: list[Any] = []
    build = integration.Builder.__call__
    monkeypatch.setattr(
        integration.Builder,
        "__call__",
        lambda *given: programs.append(build(*given)) or programs[-1],
    )
    module, inputs = classifier()
    with torch.no_grad():
        torch.compile(module, backend=backend)(*inputs)
    (program,) = programs
    assert not program.packed_bytes


@pytest.mark.parametrize("change", [x for x in CHANGES if "through" not in x.__name__])
def test_frozen_weights(change: Callable[[Classifier], None]) -> None:
    """With `freezing`, the program notices all changes that PyTorch's version counters
    record."""
    module, inputs = classifier()
    options = {"freezing": True}
    compiled = torch.compile(module, backend=backend, options=options)
    change(module)
    module.norm.running_var.mul_(2)
    with torch.no_grad():
        for _ in range(2):
            want = module(*inputs)
            assert torch.allclose(compiled(*inputs), want, rtol=2e-4, atol=1e-5)
            change_parameters(module)


@pytest.mark.skipif(not multiplies_packed(), reason="no kernel packs")
def test_frozen_weights_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    programs: list[Any] = []
    bound = torch_weights.Weighted._bound
    monkeypatch.setattr(
        torch_weights.Weighted,
        "_bound",
        lambda *given: programs.append(bound(*given)) or programs[-1],
    )
    module = nn.Linear(96, 64)
    compiled = torch.compile(module, backend=backend, options={"freezing": True})
    with torch.no_grad():
        compiled(torch.randn(32, 96))
    packed = [program.run.packed_bytes for program in programs]
    assert packed == [4 * module.weight.numel()]


def test_unaligned_weights() -> None:
    module, inputs = classifier()
    size = 4 * module.conv.weight.numel()
    memory = torch.zeros(size + 1, dtype=torch.uint8).numpy()[1:]
    askew = memory.view("f4").reshape(module.conv.weight.shape)
    askew[...] = module.conv.weight.detach()
    module.conv.weight = nn.Parameter(torch.from_numpy(askew))
    compiled = torch.compile(module, backend=backend)
    with torch.no_grad():
        for _ in range(3):
            want = module(*inputs)
            assert torch.allclose(compiled(*inputs), want, rtol=2e-4, atol=1e-5)
            askew *= 2


def test_training_steps_between_inferences() -> None:
    module, inputs = classifier()
    compiled = torch.compile(module, backend=backend)
    optimizer = torch.optim.AdamW(module.parameters())
    for _ in range(3):
        weighted(compiled(*inputs)).backward()
        optimizer.step()
        with torch.no_grad():
            want = module(*inputs)
            assert torch.allclose(compiled(*inputs), want, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize(("freezing", "kept"), [(False, 64), (True, 64), (True, 2)])
def test_layers_that_share_a_graph(
    freezing: bool, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_weights, "KEPT", kept)
    modules = [classifier()[0] for _ in range(4)]
    _, inputs = classifier()
    graphs: list[object] = []

    def counting(graph: Any, examples: Any) -> Callable[..., Any]:
        graphs.append(graph)
        return backend(graph, examples, options={"freezing": freezing})

    compiled = torch.compile(lambda module: module(*inputs), backend=counting)
    with torch.no_grad():
        for _ in range(3):
            for module in modules:
                want = module(*inputs)
                assert torch.allclose(compiled(module), want, rtol=2e-4, atol=1e-5)
                module.conv.weight.mul_(2)
    assert len(graphs) == 1


def test_16_bit_weights() -> None:
    module, (images, tokens) = classifier()
    module, images = module.bfloat16(), images.bfloat16()
    compiled = torch.compile(module, backend=backend)
    with torch.no_grad():
        for _ in range(2):
            have, want = compiled(images, tokens), module(images, tokens)
            assert torch.allclose(have, want, rtol=0.05, atol=0.05)
            module.conv.weight.data.mul_(2)


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


def programs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Records the number of arguments of each call of a program."""
    made: list[int] = []
    call = integration._Program.__call__

    def counted(program: Any, given: list[Any]) -> Any:
        made.append(len(given))
        return call(program, given)

    monkeypatch.setattr(integration._Program, "__call__", counted)
    return made


def test_programs_of_a_graph_share_an_arena(built: list[Any]) -> None:
    """Forward and backward passes of several sizes may interleave."""
    module = nn.Sequential(nn.Linear(8, 32), nn.Softmax(1), nn.Linear(32, 4), nn.ELU())
    ours = copy.deepcopy(module)
    compiled = torch.compile(ours, backend=backend, dynamic=True)
    inputs = [torch.randn(size, 8) for size in (3, 7, 5, 3)]
    for call in (module, compiled):
        losses = [weighted(call(x)) for x in inputs]
        for loss in reversed(losses):
            loss.backward()
    for own, want in zip(ours.parameters(), module.parameters(), strict=True):
        assert torch.allclose(own.grad, want.grad, rtol=2e-4, atol=1e-5)
    assert len(built) == 6
    (pool,) = {pool for run in built for pool in run.pools}
    assert pool.bytes > 0


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("refused", [False, True])
def test_backward_pass_reuses_memory_of_saved_tensors(
    refused: bool, dynamic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    needed: list[int] = []  # bytes that each program needs, without workspaces
    build = integration.Builder.__call__

    def building(self: Any, module: Any) -> Any:
        pools = tensorplan.report(tensorplan.plan(module.clone()))["pools"]
        needed.append(sum(pool["bytes"] for pool in pools))
        made.append(build(self, module))
        return made[-1]

    monkeypatch.setattr(integration.Builder, "__call__", building)

    def function(x: Tensor, w: Tensor) -> Tensor:
        for _ in range(4):
            x = torch.tanh(x @ w)
        if refused:
            x = x * torch.special.spherical_bessel_j0(x.detach()[:1, :1])
        return x

    x, w = torch.randn(256, 64, requires_grad=True), torch.randn(64, 64) / 8
    (want,) = torch.autograd.grad(function(x, w).square().sum(), x)
    kept = copy.deepcopy([x, w])
    taken: list[int] = []
    for donated in (True, False):
        torch._dynamo.reset()
        made.clear()
        needed.clear()
        compiled = torch.compile(function, backend=backend, dynamic=dynamic)
        with (
            torch._functorch.config.patch(donated_buffer=donated),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            for _ in range(2):
                y = compiled(x, w).square().sum()
                (have,) = torch.autograd.grad(y, x, retain_graph=not donated)
                assert torch.allclose(have, want, rtol=2e-4, atol=1e-5)
        taken.append(max(needed))
        assert any(x.is_donated for run in made for x in run.inputs) == donated
    assert all(map(torch.equal, [x, w], kept))
    assert taken[0] <= taken[1] - x.nbytes


def test_backward_pass_runs_twice_only_if_requested() -> None:
    """PyTorch compiles a repeatable backward pass only if the first call needs it."""
    x, w = torch.randn(8, 4, requires_grad=True), torch.randn(4, 4)

    def function(x: Tensor) -> Tensor:
        for _ in range(3):
            x = torch.tanh(x @ w)
        return x

    compiled = torch.compile(function, backend=backend)
    (want,) = torch.autograd.grad(function(x).sum(), x)
    y = compiled(x).sum()
    for _ in range(2):
        (have,) = torch.autograd.grad(y, x, retain_graph=True)
        assert torch.allclose(have, want, rtol=2e-4, atol=1e-5)
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    torch.autograd.grad(compiled(x).sum(), x)
    with pytest.raises(RuntimeError, match="donated_buffer=False"):
        torch.autograd.grad(compiled(x).sum(), x, retain_graph=True)


def test_unsupported_operations_run_in_pytorch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PyTorch runs only the unsupported operations, between two compiled programs."""

    def function(x: Tensor) -> Tensor:
        y = torch.special.airy_ai(x.sin() * 2) + torch.special.spherical_bessel_j0(x)
        return torch.exp(y) + 1

    called = programs(monkeypatch)
    compiled = torch.compile(function, backend=backend)
    x = torch.randn(8)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        assert torch.allclose(compiled(x), function(x))
    (message,) = [str(w.message) for w in given if "PyTorch runs" in str(w.message)]
    assert "test_torch_compile.py:" in message
    assert "aten::special_airy_ai is not supported" in message
    assert "aten::special_spherical_bessel_j0 is not supported" in message
    assert called == [1, 2]


def test_graph_without_supported_operations() -> None:
    compiled = torch.compile(torch.special.airy_ai, backend=backend)
    x = torch.randn(8)
    with pytest.warns(UserWarning, match="special_airy_ai is not supported"):
        assert torch.equal(compiled(x), torch.special.airy_ai(x))


def test_weights_of_a_partly_supported_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    class Module(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)

        def forward(self, x: Tensor) -> Tensor:
            x = torch.special.spherical_bessel_j0(x * 2 + 1)
            return torch.relu(self.norm(self.conv(x)))

    bound: list[object] = []
    bind = torch_weights.Weighted._bound
    monkeypatch.setattr(
        torch_weights.Weighted,
        "_bound",
        lambda *given: bound.append(bind(*given)) or bound[-1],
    )
    module = Module().eval()
    options = {"freezing": True}
    compiled = torch.compile(module, backend=backend, options=options)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            x = torch.randn(2, 3, 6, 6)
            assert torch.allclose(compiled(x), module(x), rtol=2e-4, atol=1e-5)
            module.conv.weight.mul_(2)
    assert len(bound) == 1


@pytest.mark.parametrize("dynamic", [False, True])
def test_dropout(dynamic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch draws random numbers in eager order, and each pass is still a single
    program."""
    module = nn.Sequential(
        nn.Linear(8, 16),
        nn.Dropout(0.4),
        nn.Dropout(0.0),
        nn.Linear(16, 8),
        nn.Dropout(0.3),
        nn.Linear(8, 8),
        nn.Dropout(1.0),
    )
    ours = copy.deepcopy(module)
    compiled = torch.compile(ours, backend=backend, dynamic=dynamic)
    called = programs(monkeypatch)
    for size in (4, 6, 4):
        x = torch.randn(size, 8)
        for net, call in ((module, module), (ours, compiled)):
            torch.manual_seed(size)
            net.zero_grad()
            weighted(call(x)[:, None] + net[:4](x)).backward()
        for own, want in zip(ours.parameters(), module.parameters(), strict=True):
            assert torch.allclose(own.grad, want.grad, rtol=2e-4, atol=1e-5)
    assert len(called) == 6


def test_dropout_of_permuted_tensors() -> None:
    """Each element gets the same random number as without `torch.compile`."""

    def dropped(x: Tensor) -> Tensor:
        return nn.functional.dropout(x.sin().transpose(0, 1) * 2)

    x = torch.randn(6, 8, 4)
    for given in (x, x.permute(2, 0, 1), x[:, ::2]):
        results = []
        for function in (dropped, torch.compile(dropped, backend="tensorplan")):
            torch.manual_seed(0)
            results.append(function(given))
        torch.testing.assert_close(*results)


def test_unusual_memory_layouts() -> None:
    """Covers lazily negated and conjugated tensors, unaligned addresses, and tensors
    without memory."""

    def function(x: Tensor, y: Tensor) -> Tensor:
        return x * 2 + y * y

    x = torch.randn(6, 8)
    z = torch.randn(6, 8, dtype=torch.complex64)
    bytes = torch.frombuffer(bytearray(6 * 8 * 4 + 1), dtype=torch.uint8)
    odd = torch.frombuffer(bytes.numpy(), dtype=torch.float32, offset=1, count=48)
    odd = odd.view(6, 8).copy_(x)
    compiled = torch.compile(function, backend="tensorplan")
    nothing = torch._efficientzerotensor(6, 8)
    for given in (x, x[::2], z.conj().imag, odd, nothing, x[:0], z.conj(), x.t()):
        for pair in ((given, given), (given, torch.ones(given.shape))):
            torch.testing.assert_close(compiled(*pair), function(*pair))
    x.requires_grad_()
    for head in (z.conj().imag, nothing, torch.ones(1).expand(6, 8), x.detach() * 2):
        grads = [torch.autograd.grad(f(x, x), x, head) for f in (compiled, function)]
        torch.testing.assert_close(*grads)


def test_graphs_on_other_devices_run_in_pytorch() -> None:
    compiled = torch.compile(lambda x: x.sin() * 2, backend="tensorplan")
    with pytest.warns(UserWarning, match="a graph on meta, expected cpu"):
        assert compiled(torch.ones(3, device="meta")).is_meta


def test_memory_of_large_results_is_reused_after_their_death(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The memory of a large result lasts as long as any tensor that views it. Results
    have PyTorch's strides."""
    monkeypatch.setattr(torch_calls, "RETURNED", 64)

    def function(x: Tensor) -> tuple[Tensor, ...]:
        return x.sin(), x.t().bfloat16() * 2, x.sum(1, keepdim=True).expand(6, 8)

    compiled = torch.compile(function, backend="tensorplan")
    kept: list[tuple[Tensor, ...]] = []
    inputs = [torch.randn(6, 8) for _ in range(6)]
    for x in inputs:
        kept.append((compiled(x)[0][2:], *compiled(x)[1:]))
    found: tuple[Tensor, ...] = ()
    while kept:
        found, (first, *rest) = kept.pop(), function(inputs.pop())
        torch.testing.assert_close(found, (first[2:], *rest))
        assert [y.stride() for y in found[1:]] == [y.stride() for y in rest]
    del found
    x = torch.randn(6, 8)
    places = {compiled(x)[0].data_ptr() for _ in range(9)}
    assert len(places) < 3


def test_operation_with_a_wrong_fake_implementation() -> None:
    @torch.library.custom_op("tensorplan_test::odd", mutates_args=())
    def odd(x: Tensor) -> Tensor:
        return x[:2].double()

    odd.register_fake(torch.empty_like)
    compiled = torch.compile(lambda x: odd(x).sin() * 2, backend="tensorplan")
    expected = r"float64 of \(2, 8\), expected torch.float32 of \(6, 8\)"
    with (
        pytest.warns(UserWarning, match="odd"),
        pytest.raises(TypeError, match=expected),
    ):
        compiled(torch.randn(6, 8))


def test_as_strided_reads_pytorch_strides() -> None:
    def strided(x: Tensor) -> Tensor:
        return ((x.t() * 2).sin() * 3).as_strided((3, 4), (1, 8), 0) * 2

    x = torch.randn(6, 8)
    result = torch.compile(strided, backend="tensorplan")(x)
    torch.testing.assert_close(result, strided(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_results_have_the_strides_of_eager_results(training: bool) -> None:
    """The strides agree for permuted and broadcast results. Only results with gaps in
    memory may have other strides."""

    def ordered(x: Tensor) -> tuple[Tensor, ...]:
        y = x.sin()
        last = y.to(memory_format=torch.channels_last)
        return (
            *(y.permute(2, 0, 3, 1), last * 2, y.transpose(1, 3).exp()),
            *(y.sum(1, keepdim=True).expand(2, 5, 3, 4).transpose(0, 1), y[:, 1:]),
        )

    x = torch.randn(2, 5, 3, 4, requires_grad=training)
    results = torch.compile(ordered, backend="tensorplan")(x)
    for result, want in zip(results, ordered(x), strict=True):
        torch.testing.assert_close(result, want)
        has_gaps = 0 not in want.stride() and want.untyped_storage().nbytes() > (
            want.nbytes
        )
        assert has_gaps or result.stride() == want.stride()
    results[1].permute(0, 2, 3, 1).view(24, 5)


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_data_dependent_shapes() -> None:
    def positive(x: Tensor) -> Tensor:
        return x[x > 0].sin() * 2

    compiled = torch.compile(positive, backend="tensorplan")
    for _ in range(3):
        x = torch.randn(9, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = compiled(x)
        torch.testing.assert_close(result, positive(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", [torch.linalg.inv, torch.linalg.cholesky])
def test_run_time_checks_with_symbolic_sizes(
    function: Callable[[Tensor], Tensor],
) -> None:
    compiled = torch.compile(function, backend="tensorplan", dynamic=True)
    for size in (3, 4, 5):
        x = torch.randn(2, size, size)
        x = x @ x.mT + torch.eye(size)
        torch.testing.assert_close(compiled(x), function(x), rtol=1e-3, atol=1e-3)
        with pytest.raises(torch.linalg.LinAlgError):
            compiled(x * 0)


@pytest.mark.filterwarnings("error:PyTorch runs")
@pytest.mark.parametrize("dynamic", [False, True])
def test_results_that_are_views(dynamic: bool) -> None:
    """Views of arguments and of other results have the place in their memory that they
    have in eager PyTorch."""

    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        h = x.relu()
        y.mul_(2)
        rest = x.split([1, 2])[1]
        return rest.T, h, h[1:, 2:], h.T.flatten(), y[1:], x.expand(2, 3, 4)

    compiled = torch.compile(function, backend="tensorplan", dynamic=dynamic)
    for columns in (4, 4, 5) if dynamic else (4, 4):
        x, y = torch.randn(3, columns), torch.randn(columns)
        if columns == 5:
            x = x[:, :4]
        have, want = compiled(x, y.clone()), function(x, y)
        for mine, other in zip(have, want, strict=True):
            assert torch.equal(mine, other)
            assert mine.stride() == other.stride()
            assert mine.storage_offset() == other.storage_offset()
        assert have[0]._base is not None
        assert have[0].data_ptr() == want[0].data_ptr()


@pytest.mark.parametrize("dynamic", [False, True])
def test_results_that_are_views_of_one_value(dynamic: bool) -> None:
    """They share its memory if they have all of its elements, as in eager PyTorch."""

    def function(x: Tensor) -> tuple[Tensor, ...]:
        h, k = x.exp(), x.sin()
        return *h.chunk(2, 1), h.T[1:], k[:1], k[1:2]

    compiled = torch.compile(function, backend="tensorplan", dynamic=dynamic)
    for rows in (3, 5) if dynamic else (3, 3):
        x = torch.randn(rows, 4)
        with torch.no_grad():
            have, want = compiled(x), function(x)
        for mine, other in zip(have, want, strict=True):
            torch.testing.assert_close(mine, other)
        for mine, other in zip(have[:3], want[:3], strict=True):
            assert mine.stride() == other.stride()
            assert mine.storage_offset() == other.storage_offset()
        assert len({t.untyped_storage().data_ptr() for t in have}) == 3


def test_embeddings_of_limited_norm() -> None:
    """The weight changes in place."""
    tables = [nn.Embedding(9, 4, max_norm=1) for _ in range(2)]
    tables[1].load_state_dict(tables[0].state_dict())
    rows = torch.tensor([[1, 2], [2, 5]])
    with torch.no_grad():
        have, want = torch.compile(tables[0], backend=backend)(rows), tables[1](rows)
    assert torch.allclose(have, want)
    assert torch.allclose(tables[0].weight, tables[1].weight)


def test_new_sizes_in_several_threads() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    compiled = torch.compile(net, backend="tensorplan", dynamic=True)
    compiled(torch.randn(3, 4))

    def run(count: int) -> None:
        x = torch.randn(count, 4)
        torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-5)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4, 16)))


def test_random_numbers_equal_pytorch_ones() -> None:
    def function(x: Tensor) -> Sequence[Tensor]:
        drawn = torch.rand_like(x) * torch.randn(4, 4) + torch.randn_like(x)
        chances = torch.sigmoid(nn.functional.dropout(x, 0.5))
        whole = torch.randint(0, 9, (4,)) * torch.randperm(4)
        return drawn, torch.bernoulli(chances) * 2, whole, torch.rand_like(x.t()) + 1

    compiled = torch.compile(function, backend=backend)
    x = torch.randn(4, 4)
    for seed in range(2):
        torch.manual_seed(seed)
        want = function(x)
        torch.manual_seed(seed)
        assert all(map(torch.allclose, compiled(x), want))


def test_autocast() -> None:
    """Norms of bf16 values have scales of f32."""

    class Module(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, bias=False)
            self.norms = nn.Sequential(nn.BatchNorm2d(8), nn.GroupNorm(2, 8))
            self.head = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 4))

        def forward(self, x: Tensor) -> Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                return self.head(self.norms(self.conv(x)).relu().mean((2, 3)))

    module = Module()
    ours = copy.deepcopy(module)
    compiled = torch.compile(ours, backend=backend)
    for _ in range(2):
        x = torch.randn(16, 3, 8, 8)
        have, want = compiled(x), module(x)
        assert have.dtype == want.dtype == torch.bfloat16
        assert torch.allclose(have, want, rtol=0.05, atol=0.05)
        have.float().pow(2).sum().backward()
        want.float().pow(2).sum().backward()
    for own, other in zip(ours.parameters(), module.parameters(), strict=True):
        scale = float(other.grad.abs().max())
        assert torch.allclose(own.grad, other.grad, rtol=0.1, atol=0.05 * scale)
    for own, other in zip(ours.buffers(), module.buffers(), strict=True):
        assert torch.allclose(own, other, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("dynamic", [False, True])
def test_constants_assigned_to_slices(dynamic: bool) -> None:
    def function(x: Tensor) -> Tensor:
        x = x.clone()
        x[:, 0] = 7
        row, column = torch.tril_indices(3, 3, -1)
        upper = torch.triu_indices(3, 4, 1, dtype=torch.int32)
        return (x[:, row] * x[:, column]).sum(1) + upper.sum()

    compiled = torch.compile(function, backend=backend, dynamic=dynamic)
    x = torch.randn(2, 3)
    assert torch.allclose(compiled(x), function(x))


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", ["AdamW", "RMSprop", "Adagrad"])
@pytest.mark.filterwarnings("error:PyTorch runs")
def test_compiled_optimizers(name: str, foreach: bool) -> None:
    weights = [torch.randn(4, 4, requires_grad=True) for _ in range(2)]
    ours = [w.detach().clone().requires_grad_() for w in weights]
    made = getattr(torch.optim, name)
    optimizers = [made(w, lr=0.01, foreach=foreach) for w in (weights, ours)]
    step = torch.compile(optimizers[1].step, backend=backend)
    for _ in range(3):
        for own, other in zip(ours, weights, strict=True):
            other.grad = torch.randn(4, 4)
            own.grad = other.grad.clone()
        optimizers[0].step()
        step()
        for own, other in zip(ours, weights, strict=True):
            assert torch.allclose(own, other, rtol=2e-4, atol=1e-6)


@pytest.mark.filterwarnings("error:PyTorch runs")
def test_operations_on_lists() -> None:
    def function(x: list[Tensor], y: list[Tensor]) -> list[Tensor]:
        z = torch._foreach_add(torch._foreach_sqrt(x), y, alpha=0.5)
        torch._foreach_addcdiv_(z, x, torch._foreach_add(y, 2), [0.1, 0.2])
        torch._foreach_lerp_(z, torch._foreach_maximum(x, [0.5, 0.6]), 0.3)
        z = torch._foreach_addcmul(z, torch._foreach_pow(2, x), y, value=0.7)
        return [*torch._foreach_clamp_max(z, y), *torch._foreach_norm(z, 1)]

    given = [[torch.rand(3, 4), torch.rand(5)] for _ in range(2)]
    results = torch.compile(function, backend=backend)(*given)
    for have, want in zip(results, function(*given), strict=True):
        assert torch.allclose(have, want, rtol=1e-5)


def test_misspelled_and_mistyped_options() -> None:
    compiled = torch.compile(torch.sin, backend=backend, options={"budgte": 1})
    with pytest.raises(Exception, match=r"option is 'budgte', .*did you mean 'budget'"):
        compiled(torch.randn(3))
    torch._dynamo.reset()
    compiled = torch.compile(torch.sin, backend=backend, options={"freezing": 1})
    with pytest.raises(Exception, match="freezing is 1, expected bool"):
        compiled(torch.randn(3))
