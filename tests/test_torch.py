"""Tests `from_torch`: values, training steps, buffers, symbolic sizes and errors."""

# pyright: reportMissingImports=false

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import tensorplan
from tensorplan import Model
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.tgraph.reference.interpreter import run_reference
from tensorplan.dialects.tgraph.signature import signature

torch = pytest.importorskip("torch")
import torch_models  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.export import Dim  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from tensorplan.frontends.torch import program  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's own


class Functions(nn.Module):
    """A module that returns the results of several functions of the same arguments."""

    def __init__(self, functions: Sequence[Callable[..., Any]]):
        super().__init__()
        self.functions = functions

    def forward(self, *args: Tensor) -> list[Tensor]:
        return [function(*args) for function in self.functions]


def model_of(source: Any, inputs: Sequence[Tensor] = (), **options: Any) -> Model:
    """The imported model, whose variables share no memory with the PyTorch module."""
    model = tensorplan.from_torch(source, inputs, **options)
    held = {name: array.copy() for name, array in model.parameters.items()}
    return replace(model, parameters=held)


def assert_close(have: np.ndarray, want: Any, name: str = "") -> None:
    want = want.detach()
    if want.dtype is torch.bfloat16:
        have, want = have.astype(np.float32), want.float()
    expected = want.numpy()
    assert have.shape == expected.shape, name
    assert have.dtype == expected.dtype, name
    small = have.dtype == np.float16 or str(have.dtype) == "bfloat16"
    rtol = 2e-2 if small else 2e-4
    np.testing.assert_allclose(have, expected, rtol, 1e-5, err_msg=name)


def check(functions: Mapping[str, Callable[..., Any]], *inputs: Tensor) -> None:
    """Compares the reference interpreter and the compiled program with PyTorch."""
    module = Functions(list(functions.values()))
    model = model_of(module, inputs)
    want = module(*inputs)
    arrays = [*map(np.array, inputs), *model.parameters.values()]
    for got in (
        run_reference(model.module, arrays),
        tensorplan.compile(model)(*map(np.array, inputs)),
    ):
        for name, have, expected in zip(functions, got, want, strict=True):
            assert_close(have, expected, name)


@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", torch_models.MODELS)
def test_models(name: str, train: bool) -> None:
    module, inputs = torch_models.make(name, train=train)
    if train and name == "mobilenet":  # has dropout
        cast(Any, module)[-2].p = 0.0
    planned = tensorplan.plan(model_of(module, inputs))
    got, *_ = tensorplan.compile(planned)(*inputs)
    assert_close(got, module(*inputs))
    for name, tensor in module.state_dict().items():  # running statistics, too
        if name in planned.parameters:
            assert_close(planned.parameters[name], tensor, name)


SIGNED = torch.linspace(-2.5, 2.5, 24).reshape(2, 3, 4)
POSITIVE = SIGNED.abs() + 0.1
WHOLE = torch.arange(-12, 12).reshape(2, 3, 4)
TRUE = SIGNED > 0.3
IMAGE = torch.linspace(-1, 1, 2 * 4 * 9 * 8).sin().reshape(2, 4, 9, 8)
KERNEL = torch.linspace(-1, 1, 6 * 4 * 3 * 3).cos().reshape(6, 4, 3, 3)


def _grown(x: Tensor) -> Tensor:
    """A loop that reads a value defined outside of it."""
    mean = x.mean()
    return torch.while_loop(
        lambda n, y: (n < 5) & (y.sum() < 100),
        lambda n, y: (n + 1, y * 2 + mean),
        (torch.zeros((), dtype=torch.int64), x),
    )[1]


FAMILIES: dict[str, tuple[dict[str, Callable[..., Any]], tuple[Tensor, ...]]] = {
    "signed": (
        {
            **{
                name: getattr(torch, name)
                for name in (
                    *("abs", "ceil", "cos", "erf", "erfc", "exp", "expm1", "floor"),
                    *("isinf", "isnan", "neg", "relu", "round", "sigmoid", "sign"),
                    *("sin", "tan", "tanh", "trunc", "atan", "sinh", "cosh", "frac"),
                    *("square", "logical_not", "clone", "deg2rad"),
                )
            },
            **{
                name: getattr(F, name)
                for name in (
                    *("elu", "selu", "celu", "silu", "mish", "hardswish", "relu6"),
                    *("hardsigmoid", "hardtanh", "leaky_relu", "softplus", "gelu"),
                    *("softsign", "logsigmoid", "tanhshrink", "hardshrink"),
                )
            },
            "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
            "clamp": lambda x: x.clamp(-1, 1),
            "clamp_min": lambda x: x.clamp_min(0.5),
            "clamp_max": lambda x: x.clamp_max(0.5),
            "asin": lambda x: torch.asin(x / 3),
            "acos": lambda x: torch.acos(x / 3),
            "prelu": lambda x: F.prelu(x, torch.tensor([0.1, 0.2, 0.3])),
            "pow": lambda x: x**2 + x**3 + 2**x,
            "where": lambda x: torch.where(x > 0, x, 0.5),
            "cast": lambda x: x.to(torch.int32),
            "alpha": lambda x: torch.sub(torch.add(x, 1, alpha=2), x, alpha=0.5),
            "number_first": lambda x: 1 - x,
            "masked": lambda x: x.masked_fill(x > 0, -1),
        },
        (SIGNED,),
    ),
    "positive": (
        {
            **{
                name: getattr(torch, name)
                for name in (
                    *("log", "log1p", "log2", "log10", "rsqrt", "sqrt", "reciprocal"),
                )
            },
            "powers": lambda x: x**0.5 + x**-0.5 + x**1.7 + x ** (-x) + x**-1 / x**-2,
        },
        (POSITIVE,),
    ),
    "binary": (
        {
            **{
                name: getattr(torch, name)
                for name in (
                    *("add", "sub", "mul", "div", "atan2", "maximum", "minimum"),
                    *("fmod", "remainder", "eq", "ne", "lt", "le", "gt", "ge"),
                    *("floor_divide", "logical_and", "logical_or", "logical_xor"),
                )
            },
            "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
            "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
            "lerp": lambda x, y: torch.lerp(x, y, 0.3),
            "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.5),
        },
        (SIGNED, SIGNED.flip(0)[:, :, :1] + 0.05),
    ),
    "integers": (
        {
            **{
                name: getattr(torch, name)
                for name in (
                    *("add", "sub", "mul", "div", "maximum", "bitwise_and"),
                    *("bitwise_or", "bitwise_xor", "remainder", "fmod", "eq", "gt"),
                    *("floor_divide",),
                )
            },
            "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
            "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
            "shifts": lambda x, y: (x << 2) + (x >> 1),
            "bit_shifts": lambda x, y: torch.bitwise_left_shift(
                torch.bitwise_right_shift(x, y - 3), 1
            ),
            "not": lambda x, y: ~x,
            "sum": lambda x, y: x.sum(1) + (x > y).sum(),
            "mean": lambda x, y: x.float().mean(),
            "compared": lambda x, y: (x > 1.5) & (y < 2),
            "promoted": lambda x, y: x * 0.5 + torch.sin(y),
            "minimum": lambda x, y: torch.clamp(x, y - 9, y),
            "small": lambda x, y: (x.to(torch.int8) * 3).to(torch.uint8),
        },
        (WHOLE, WHOLE.flip(2).abs() + 3),
    ),
    "shaping": (
        {
            "view": lambda x: x.view(6, 4).reshape(-1),
            "permute": lambda x: x.permute(2, 0, 1),
            "transposed": lambda x: x.transpose(0, -1) + x[0].t().sum(),
            "squeeze": lambda x: x[None].squeeze(0).unsqueeze(-1).squeeze(),
            "expand": lambda x: x[:, :1].expand(-1, 5, 4),
            "repeat": lambda x: x.repeat(2, 1, 3, 1),
            "slices": lambda x: x[:, 1:, ::2] + x[:, :-1, -2:],
            "select": lambda x: x[1, -1],
            "cat": lambda x: torch.cat([x, x[:, :1]], 1),
            "mixed": lambda x: torch.cat([x, WHOLE], -1),
            "stack": lambda x: torch.stack([x, x + 1], -1),
            "split": lambda x: sum(x.split([1, 3], 2)[1].chunk(3, 2)),
            "unbind": lambda x: x.unbind(1)[2],
            "diagonals": lambda x: x.diagonal_scatter(x[0, 0, :, None] + 9, 1, 1, 0),
            "diagonal": lambda x: x.diagonal_scatter(x[:, 1:, 0], -1, 1, 2),
            "flip": lambda x: x.flip(0, 2),
            "roll": lambda x: x.roll((1, -2), (0, 2)),
            "pad": lambda x: F.pad(x, (1, 2, 0, 1), value=0.5),
            "cut": lambda x: F.pad(x, (-1, 1)),
            "reflect": lambda x: F.pad(x, (2, 1), mode="reflect"),
            "replicate": lambda x: F.pad(x, (2, 1), mode="replicate"),
            "tril": lambda x: x.tril(-1) + x.triu(1),
            "arange": lambda x: torch.arange(2, 14, 3) + torch.arange(0, 2, 0.5),
            "made": lambda x: torch.full_like(x, 2) + torch.ones(4) + x.new_zeros(4),
            "scatter": lambda x: x.slice_scatter(x[:, :1] + 9, 1, 2, 3),
            "select_scatter": lambda x: x.select_scatter(x[:, :, 0], 2, -1).diff(),
            "empty": lambda x: torch.where(x > 9, torch.empty(4), x),
            "linspace": lambda x: torch.linspace(0, 1, 4) + torch.eye(4),
            "triangle": lambda x: torch.tril_indices(3, 4) + torch.triu_indices(3, 3),
            "shuffle": lambda x: F.pixel_shuffle(x.reshape(1, 4, 2, 3), 2),
            "unshuffle": lambda x: F.pixel_unshuffle(x.reshape(1, 1, 4, 6), 2),
            "meshgrid": lambda x: torch.meshgrid(x[0, 0], x[0, 1], indexing="ij")[1],
            "inplace": lambda x: x.clone().add_(1).view(-1).mul_(2),
            "written": lambda x: _written(x),
        },
        (SIGNED,),
    ),
    "reducing": (
        {
            "sum": lambda x: x.sum() + x.sum((0, 2)),
            "mean": lambda x: x.mean(-1, keepdim=True) + x.mean(),
            "extrema": lambda x: x.amax((0, 1)) - x.amin(2).sum(),
            "max": lambda x: x.max() - x.min(),
            "max_dim": lambda x: torch.add(*x.max(1)) + x.min(1).values,
            "argmax": lambda x: x.argmax() + x.argmin(2),
            "any": lambda x: (x > 2).any() | (x > -9).all(1) & x.any(1, keepdim=True),
            "prod": lambda x: x.prod(1) + x.prod(),
            "var": lambda x: x.var(1) + x.std(1, correction=0) + x.var(),
            "var_mean": lambda x: torch.add(*torch.var_mean(x, -1)),
            "cumsum": lambda x: x.cumsum(1),
            "logsumexp": lambda x: x.logsumexp((0, 1)),
            "softmax": lambda x: x.softmax(1) + x.log_softmax(-1),
            "norm": lambda x: (
                x.norm(dim=1)
                + sum(torch.linalg.vector_norm(x, k) for k in (1, 3, torch.inf))
            ),
            "layer_norm": lambda x: F.layer_norm(x, (3, 4), x[0], x[1]),
            "plain_norm": lambda x: F.layer_norm(x, (4,)),
            "rms_norm": lambda x: F.rms_norm(x, (4,)),
            "vector_norm": lambda x: torch.linalg.vector_norm(x, dim=(0, 2)),
            "instance": lambda x: F.instance_norm(x),
            "normalize": lambda x: F.normalize(x, dim=1),
            "similar": lambda x: F.cosine_similarity(x, x.flip(0), dim=1),
        },
        (SIGNED,),
    ),
    "products": (
        {
            "matmul": lambda x, y: x @ y,
            "vector": lambda x, y: x[0] @ y[0, :, 0] + x[0, 0] @ y[1, :, 1],
            "row": lambda x, y: x[0, 0] @ y,
            "einsum": lambda x, y: torch.einsum("bij,bjk->bk", x, y),
            "outer": lambda x, y: torch.outer(x[0, 0], y[0, 0]),
            "addmm": lambda x, y: torch.addmm(x[0, 0, :2], x[0], y[0], alpha=2),
            "scaled": lambda x, y: torch.addmm(x[0, 0, :2], x[0], y[0], beta=0.5),
            "baddbmm": lambda x, y: torch.baddbmm(x[:, :, :2], x, y),
            "bmm": lambda x, y: torch.bmm(x, y),
            "linear": lambda x, y: F.linear(x, y[0].T),
            "attention": lambda x, y: F.scaled_dot_product_attention(
                x, x + 1, x - 1, torch.tensor([[True], [False], [True]])
            ),
            "biased": lambda x, y: F.scaled_dot_product_attention(
                x, x, x, torch.ones(3, 3).tril(), scale=0.3
            ),
            "grouped": lambda x, y: F.scaled_dot_product_attention(
                x.reshape(4, 2, 3),
                x[0, :, :3][None],
                x[0, :, :3][None],
                enable_gqa=True,
                is_causal=True,
            ),
        },
        (SIGNED, SIGNED.reshape(2, 4, 3)[:, :, :2] * 2),
    ),
    "indexing": (
        {
            "embedding": lambda x, i: F.embedding(i, x[0]),
            "take": lambda x, i: x.index_select(1, i),
            "index": lambda x, i: x[:, i],
            "pairs": lambda x, i: x[i - 1, :, i],
            "adjacent": lambda x, i: x[0][i[:, None], i],
            "gather": lambda x, i: x.gather(2, i.expand(2, 2, 3)),
            "scatter": lambda x, i: x.scatter(2, i.expand(2, 2, 3), 7),
            "scatter_add": lambda x, i: x.scatter_add(1, i.expand(2, 1, 3), x[..., :3]),
            "reduced": lambda x, i: x.scatter_reduce(
                1, i.expand(2, 1, 3), x[..., :3], "amax"
            ),
            "put": lambda x, i: x.index_put((i * 0, i), x[0, 0]),
            "added": lambda x, i: x.index_put((i * 0, i), x[0, 0], accumulate=True),
            "negative": lambda x, i: x[:, -i - 1],
            "index_add": lambda x, i: x.index_add(1, i, x, alpha=2),
            "index_copy": lambda x, i: x.index_copy(1, i[:1], x[:, 1:2]),
            "masked": lambda x, i: x.index_put((x > 1,), torch.tensor(5.0)),
            "sort": lambda x, i: torch.add(*x.sin().sort(1, descending=True)),
            "argsort": lambda x, i: x.sin().argsort(dim=-1, stable=True),
            "topk": lambda x, i: torch.add(*x.sin().topk(2)),
            "least": lambda x, i: x.sin().topk(2, 1, largest=False).values,
            "one_hot": lambda x, i: F.one_hot(i, 4),
            "loss": lambda x, i: F.cross_entropy(x[0], i),
            "kept": lambda x, i: F.cross_entropy(
                x[0], i, ignore_index=1, label_smoothing=0.1
            ),
            "mse": lambda x, i: F.mse_loss(x, x * 2) + F.smooth_l1_loss(x, x * 2),
            "bce": lambda x, i: F.binary_cross_entropy_with_logits(x, x.sigmoid()),
        },
        (SIGNED, torch.tensor([2, 0, 1])),
    ),
    "windows": (
        {
            "conv": lambda x: F.conv2d(x, KERNEL, padding=1, stride=(2, 1)),
            "grouped": lambda x: F.conv2d(x, KERNEL[:, :2], torch.ones(6), groups=2),
            "dilated": lambda x: F.conv2d(x, KERNEL, dilation=2, padding="same"),
            "conv1d": lambda x: F.conv1d(x[:, :, 0], KERNEL[..., 0], padding=1),
            "conv3d": lambda x: F.conv3d(x[:, None], KERNEL[:3, None, :, :, :]),
            "single": lambda x: F.conv2d(x[0], KERNEL),
            "transposed": lambda x: F.conv_transpose2d(
                x, KERNEL.transpose(0, 1), stride=2, padding=1, output_padding=1
            ),
            "turned": lambda x: F.conv_transpose2d(x, KERNEL[:4], groups=2),
            "max": lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
            "max1d": lambda x: F.max_pool1d(x[:, :, 0], 2),
            "average": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
            "uncounted": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            "average1d": lambda x: F.avg_pool1d(x[:, :, 0], 2),
            "max3d": lambda x: F.max_pool3d(x, 2),
            "average3d": lambda x: F.avg_pool3d(x, 2),
            "adaptive3d": lambda x: F.adaptive_avg_pool3d(x, (1, 2, 2)),
            "adaptive": lambda x: F.adaptive_avg_pool2d(x, (4, 3)),
            "global": lambda x: F.adaptive_avg_pool2d(x, 1),
            "nearest": lambda x: F.interpolate(x, scale_factor=2),
            "nearest_size": lambda x: F.interpolate(x, (12, 5)),
            "exact": lambda x: F.interpolate(x, (12, 5), mode="nearest-exact"),
            "bilinear": lambda x: F.interpolate(x, (12, 5), mode="bilinear"),
            "factor": lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"),
            "aligned": lambda x: F.interpolate(
                x, (12, 5), mode="bilinear", align_corners=True
            ),
            "bicubic": lambda x: F.interpolate(x, (12, 5), mode="bicubic"),
            "linear": lambda x: F.interpolate(x[:, :, 0], 20, mode="linear"),
            "group_norm": lambda x: F.group_norm(x, 2, torch.ones(4), torch.ones(4)),
            "channels": lambda x: nn.ChannelShuffle(2)(x),
            "unfold": lambda x: x.unfold(2, 3, 2)[:, 0, 1],
            "places": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[1],
            "largest": lambda x: F.adaptive_max_pool2d(x, (4, 3)),
        },
        (IMAGE,),
    ),
    "matrices": (
        {
            "cholesky": lambda a, b: torch.linalg.cholesky(a @ a.mT),
            "upper": lambda a, b: torch.linalg.cholesky(a @ a.mT, upper=True),
            "det": lambda a, b: torch.linalg.det(a),
            "slogdet": lambda a, b: torch.stack(torch.linalg.slogdet(a)),
            "packed": lambda a, b: torch.ops.aten._linalg_det(a)[1],
            "packed as it is": lambda a, b: torch.ops.aten._linalg_slogdet(a.mT)[2],
            "solve": lambda a, b: torch.linalg.solve(a, b),
            "vector": lambda a, b: torch.linalg.solve(a, b[..., 0]),
            "factored": lambda a, b: torch.cholesky_solve(b, a.exp(), upper=True),
            "inverse": lambda a, b: torch.cholesky_inverse(a.exp().tril()),
            "singular": lambda a, b: torch.linalg.inv_ex(a.triu(1))[1],
            "indefinite": lambda a, b: torch.linalg.cholesky_ex(a)[1] > 0,
            "inv": lambda a, b: torch.linalg.inv(a),
            "lu": lambda a, b: torch.linalg.lu_factor(a)[0],
            "pinv": lambda a, b: torch.linalg.pinv(b),
            "qr": lambda a, b: torch.linalg.qr(b)[0].abs(),
            "triangular": lambda a, b: torch.linalg.solve_triangular(a, b, upper=True),
            "eigvalsh": lambda a, b: torch.linalg.eigvalsh(a + a.mT),
            "svdvals": lambda a, b: torch.linalg.svdvals(b),
            "cdist": lambda a, b: torch.cdist(b.mT, b.mT[:, :1]),
            "bilinear": lambda a, b: F.bilinear(b.mT, b.mT, a[:, :4, :4]),
        },
        (
            torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(2)),
            torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(3)),
        ),
    ),
    "complex": (
        {
            "parts": lambda x, z: z.real + z.imag,
            "products": lambda x, z: z * z.conj() / (z + 2) - x,
            "abs": lambda x, z: z.abs(),
            "pairs": lambda x, z: torch.view_as_real(torch.exp(z)),
            "made": lambda x, z: torch.view_as_complex(x.reshape(3, 4, 2)),
            "fft": lambda x, z: torch.fft.fft(z, norm="ortho"),
            "ifft": lambda x, z: torch.fft.ifft2(z),
            "rfft": lambda x, z: torch.fft.rfftn(x, norm="forward"),
            "whole": lambda x, z: torch.fft.fft(x),
            "irfft": lambda x, z: torch.fft.irfft(z, 7),
        },
        (
            torch.randn(3, 8, generator=torch.Generator().manual_seed(4)),
            torch.randn(
                3,
                8,
                dtype=torch.complex64,
                generator=torch.Generator().manual_seed(5),
            ),
        ),
    ),
    "counted": (
        {
            "bucketize": lambda x, n: torch.bucketize(x, x[0].sort()[0]),
            "searchsorted": lambda x, n: torch.searchsorted(x.sort()[0], x, right=True),
            "cumprod": lambda x, n: x.cumprod(1),
            "logcumsumexp": lambda x, n: (100 * x).logcumsumexp(1),
            "histc": lambda x, n: torch.histc((4 * x).round(), 7, -2, 3),
            "special": lambda x, n: (x.abs() + 0.1).lgamma() + (x.abs() + 1).digamma(),
            "trigamma": lambda x, n: torch.polygamma(1, x),
            "inverses": lambda x, n: x.tanh().erfinv() + x.tanh().atanh() + x.asinh(),
            "zeta": lambda x, n: torch.special.zeta(x.abs() + 2, x.abs() + 1).acosh(),
            **{
                mode: lambda x, n, mode=mode: F.embedding_bag(
                    n, x, torch.tensor([0, 3, 3]), mode=mode
                )
                for mode in ("sum", "mean", "max")
            },
            "even": lambda x, n: F.embedding_bag(n[:4].reshape(2, 2), x, mode="mean"),
            "put": lambda x, n: x.put(n, x[0], accumulate=True),
            "reduced": lambda x, n: x.index_reduce(
                0, n[:2], x[:2], "amax", include_self=False
            ),
            "cummax": lambda x, n: torch.stack([*x.cummax(1), *x.cummin(0)][::2]),
            "kth": lambda x, n: x.kthvalue(2)[0] + x.median() + x.nanmedian(1)[0],
            "mode": lambda x, n: x.round().mode(1)[0],
            "bessel": lambda x, n: torch.i0(9 * x) + torch.special.i1e(x),
            "bessel_j": lambda x, n: (
                torch.special.bessel_j0(9 * x) + torch.special.bessel_j1(9 * x)
            ),
            "normal": lambda x, n: (
                torch.special.erfcx(x)
                + torch.special.ndtri(x.sigmoid())
                + torch.special.log_ndtr(9 * x)
            ),
            "frexp": lambda x, n: torch.add(*torch.frexp(x * 1e-37)),
            "gcd": lambda x, n: torch.gcd((99 * x).int(), (20 * x[0] + 6).int()),
            "lcm": lambda x, n: torch.lcm((99 * x).int(), 12 * n[:1].int()),
            "signs": lambda x, n: torch.signbit(x) + x.angle().nextafter(x),
            "bits": lambda x, n: x.view(torch.int32),
            "half_bits": lambda x, n: x.view(torch.int16),
            "pairs_of_bits": lambda x, n: x.T[:, :2].contiguous().view(torch.int64),
            "repeated": lambda x, n: torch.repeat_interleave(n, output_size=6),
            "fractional": lambda x, n: F.fractional_max_pool2d(
                x[None], 2, (2, 3), None, False, x[None, :1, :2].sigmoid()
            ),
            "renormed": lambda x, n: torch.ops.aten.embedding_renorm(x, n, 1.0, 2.0),
            "labels": lambda x, n: F.multilabel_margin_loss(
                x, torch.tensor([[1, 2, -1, 0, 0], [-1] * 5, [4, 3, 2, 1, 0]])
            ),
            "bessel_scaled": lambda x, n: torch.special.i0e(x) * torch.special.i1(x),
            "smooth_linear": lambda x, n: F.interpolate(
                x[None, None], (2, 3), mode="bilinear", antialias=True
            ),
            "smooth": lambda x, n: F.interpolate(
                x[None, None], (2, 3), mode="bicubic", antialias=True
            ),
            "pooled": lambda x, n: F.adaptive_max_pool3d(x[None, None], (1, 2, 2)),
            "matrix": lambda x, n: torch.matrix_exp(x[:, :3]),
            "length": lambda x, n: torch.hypot(x, 2 * x).copysign(-x),
            "solved": lambda x, n: torch.linalg.lu_solve(
                *torch.linalg.lu_factor(x[:, :3]), x
            ),
            "polar": lambda x, n: torch.view_as_real(torch.polar(x.abs(), x)),
        },
        (
            torch.randn(3, 5, generator=torch.Generator().manual_seed(6)),
            torch.tensor([0, 2, 1, 1, 2]),
        ),
    ),
    "core": (
        {
            "pdist": F.pdist,
            "strided": lambda x: torch.ops.aten.as_strided(x, (2, 3), (4, 2), 1),
            "strided_run": lambda x: torch.ops.aten.as_strided(x, (2, 3), (3, 1), 2),
            "strided_scatter": lambda x: torch.as_strided_scatter(
                x, x[:2, :3] * 2, (2, 3), (4, 2), 1
            ),
            "strided_transposed": lambda x: (x.T * 2).as_strided((2, 2, 3), (1, 4, 2)),
            "strided_columns": lambda x: x[:, 1:4].as_strided((2, 3), (4, 1)),
            "strided_repeated": lambda x: x[:1].expand(4, 4).as_strided((2, 3), (1, 1)),
            "strided_scatter_part": lambda x: torch.as_strided_scatter(
                (x * 2)[1:], x[:2, :2], (2, 2), (1, 4), 5
            ),
            "strided_scatter_transposed": lambda x: torch.as_strided_scatter(
                (x * 2).T, x[:2, :2], (2, 2), (1, 4), 1
            ),
            "strided_scatter_run": lambda x: torch.as_strided_scatter(
                x, x[:2, :3] * 2, (2, 3), (3, 1), 2
            ),
            "diagonal": lambda x: x.T.diagonal(1),
            "strided_empty": lambda x: torch.empty_strided((0, 3), (3, 1)),
            "masked_scatter": lambda x: x.masked_scatter(x > 0, x * 2),
            "embedding": lambda x: torch.ops.aten.embedding_dense_backward(
                x, torch.tensor([3, 1, 3, 0, 1]), 5, 1, False
            ),
            "pool": lambda x: torch.ops.aten.max_pool2d_with_indices_backward(
                torch.ones(1, 3, 2),
                x[None],
                *((3, 2), (1, 2), (0, 0), (1, 1), False),
                torch.tensor([[[1, 2], [5, 5], [13, 14]]]),
            ),
            "batch_norm": lambda x: torch.ops.aten._native_batch_norm_legit_no_training(
                x, None, None, x[0], x[1].abs(), 0.1, 1e-5
            )[1],
        },
        (torch.randn(5, 4, generator=torch.Generator().manual_seed(8)),),
    ),
    "sampled": (
        {
            f"{mode}_{padding}_{aligned}": lambda x, g, how=(mode, padding, aligned): (
                F.grid_sample(x, g, *how)
            )
            for mode in ("nearest", "bilinear", "bicubic")
            for padding in ("zeros", "border", "reflection")
            for aligned in (False, True)
        }
        | {
            "volume": lambda x, g: F.grid_sample(
                x[:, None], torch.cat([g, g[..., :1]], -1)[:, None], align_corners=False
            )
        },
        (
            IMAGE,
            3 * torch.rand(2, 3, 2, 2, generator=torch.Generator().manual_seed(7))
            - 1.5,
        ),
    ),
    "control": (
        {
            "cond": lambda x: torch.cond(
                x.max() > 0, lambda x: x + 1, lambda x: x.sin() * x, (x,)
            ),
            "nested": lambda x: torch.cond(
                x.sum() > x.abs().sum(),
                lambda x: x + 1,
                lambda x: torch.cond(x.sum() > 9, torch.sin, torch.cos, (x,)),
                (x,),
            ),
            "while": _grown,
            "never": lambda x: torch.while_loop(
                lambda y: y.sum() != y.sum(), lambda y: (y + 1,), (x,)
            )[0],
        },
        (SIGNED,),
    ),
}


def test_bfloat16_arguments() -> None:
    """DLPack does not pass such tensors to NumPy."""
    x = torch.randn(3, 4).to(torch.bfloat16)
    run = tensorplan.compile(model_of(Functions([lambda x: x + x]), (x,)))
    (got,) = run(x)
    assert_close(got, x + x)


def _written(x: Tensor) -> Tensor:
    y = torch.zeros(2, 3, 4)
    y[:, 1] = x[:, 0]
    y[0, :, ::2] = 1
    return y


@pytest.mark.parametrize("family", FAMILIES)
def test_values(family: str) -> None:
    functions, inputs = FAMILIES[family]
    check(functions, *inputs)


@pytest.mark.slow
def test_every_conversion_has_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each conversion is used by one of `FAMILIES`, by a model, or by
    test_torch_compile.py."""
    seen: set[str] = set()

    class Seeing(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            seen.add(name)
            return super().__getitem__(name)

    monkeypatch.setattr(program, "_CONVERSIONS", Seeing(program._CONVERSIONS))
    for functions, inputs in FAMILIES.values():
        tensorplan.from_torch(Functions(list(functions.values())), inputs)
    for name in torch_models.MODELS:
        module, inputs = torch_models.make(name, train=name == "resnet18")
        tensorplan.from_torch(module, inputs)
    bags = nn.EmbeddingBag(3, 4)  # its weight requires gradients
    tensorplan.from_torch(bags, (torch.tensor([[0, 1]]),))
    decomposed = torch.export.export(nn.Linear(4, 2, bias=False), (SIGNED[0],))
    tensorplan.from_torch(decomposed.run_decompositions())  # a product
    of_autograd = {  # conversions that test_torch_compile.py covers
        *("_efficientzerotensor", "alias", "detach", "empty_permuted"),
        "_scaled_dot_product_flash_attention_for_cpu",
        *("lift_fresh_copy", "linalg_vector_norm", "new_empty_strided"),
        *(x for x in program._CONVERSIONS if x.endswith("_backward")),
        *(x for x in program._CONVERSIONS if x.startswith("prims::")),
    }
    assert sorted(set(program._CONVERSIONS) - seen - of_autograd) == []


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_element_types(dtype: str) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16))
    module = module.to(getattr(torch, dtype))
    x = torch.randn(3, 8).to(getattr(torch, dtype))
    (got,) = tensorplan.compile(model_of(module, (x,)))(program.array_of(x))
    assert str(got.dtype) == dtype
    want = module(x).detach().double().numpy()
    limit = 1e-9 if dtype == "float64" else 5e-2
    np.testing.assert_allclose(got.astype(np.float64), want, limit, limit)


@pytest.mark.parametrize(("dtype", "unit"), [("float16", 2**-11), ("bfloat16", 2**-8)])
def test_softmax_rounds_once(dtype: str, unit: float) -> None:
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(0))
    x = x.to(getattr(torch, dtype))
    for module in (nn.Softmax(1), nn.LogSoftmax(1)):
        (got,) = tensorplan.compile(model_of(module, (x,)))(program.array_of(x))
        assert str(got.dtype) == dtype
        want = module(x.double()).numpy()
        np.testing.assert_allclose(got.astype(np.float64), want, 1.01 * unit)


def test_softmax_in_f32_stores_16_bits() -> None:
    """The group of the product ends before the conversion that the softmax reads."""
    module = nn.Sequential(nn.Linear(64, 1000), nn.LogSoftmax(1)).bfloat16()
    model = model_of(module, (torch.randn(256, 64).bfloat16(),))
    pools = tensorplan.report(tensorplan.plan(model))["pools"]
    assert sum(pool["bytes"] for pool in pools) == 0  # the result has the scores


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("resnet18", marks=pytest.mark.slow),
        *("mobilenet", "gpt2", "unet", "lstm"),
    ],
)
def test_training_steps(name: str) -> None:
    """Parameters and statistics agree with PyTorch's after three steps of SGD."""
    module, (x,) = torch_models.make(name, train=True)
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    labels = torch.zeros(module(x).shape[:-1], dtype=torch.long)
    loss = torch_models.Loss(module)
    model = model_of(loss, (x, labels), learning_rate=0.05)
    run = tensorplan.compile(model)
    optimizer = torch.optim.SGD(loss.parameters(), 0.05)
    for _ in range(3):
        got, *_ = run(x, labels)
        optimizer.zero_grad()
        want = loss(x, labels)
        want.backward()
        optimizer.step()
        np.testing.assert_allclose(got, want.detach(), 1e-3, 1e-5)
    expected = loss.state_dict()
    for key, have in model.parameters.items():
        np.testing.assert_allclose(have, expected[key], 2e-3, 1e-4, err_msg=key)


def test_convolution_backward_keeps_operands_apart() -> None:
    """The gradient of a convolution with respect to its input does not include the path
    through the weight, which is computed from the same input."""

    def backward(x: Tensor) -> Tensor:
        head, weight = x[:, :2, 2:, 2:], x[:, :, :3, :3]
        window = None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1
        masks = True, True, False
        of = torch.ops.aten.convolution_backward(head, x, weight, *window, masks)
        return of[0]

    module = Functions([backward])
    (got,) = tensorplan.compile(model_of(module, (IMAGE,)))(IMAGE)
    assert_close(got, backward(IMAGE))


def test_gradients_as_results() -> None:
    torch.manual_seed(0)
    loss = torch_models.Loss(nn.Linear(4, 3))
    x, labels = torch.randn(5, 4), torch.tensor([0, 1, 2, 1, 0])
    model = tensorplan.from_torch(loss, (x, labels), gradients=True)
    got = tensorplan.compile(model)(x, labels)
    loss(x, labels).backward()
    for have, parameter in zip(got[1:], loss.parameters(), strict=True):
        assert_close(have, parameter.grad)


def test_values_are_named_by_module_paths() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

        def forward(self, x: Tensor) -> Tensor:
            return torch.exp(self.blocks(x) * 2)

    text = str(tensorplan.from_torch(Net(), (torch.randn(2, 4),)))
    for line in (
        "%blocks.0 = tgraph.add ",
        "%blocks.1 = tgraph.tanh %blocks.0",
        "%mul = tgraph.multiply %blocks.1",
        "%exp = tgraph.exponential %mul",
        ", %blocks.0.weight {",
    ):
        assert line in text


def test_parameters_share_the_memory_of_the_module() -> None:
    module = nn.Linear(4, 3)
    imported = tensorplan.from_torch(module, (torch.randn(2, 4),))
    assert list(imported.parameters) == ["weight", "bias"]
    weight = imported.parameters["weight"]
    assert np.shares_memory(weight, module.weight.detach().numpy())
    marks = [slot.is_parameter for slot in signature(imported.module).inputs]
    assert marks == [False, True, True]


def test_batch_norms_are_folded_only_for_inference() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten()).eval()
    cast(Any, module)[1].running_mean += 0.5
    x, labels = torch.randn(2, 3, 6, 6), torch.tensor([3, 1])
    simple = tensorplan.from_torch(module, (x,))
    unused, *left = simple.parameters
    assert unused == "1.num_batches_tracked"
    assert left == ["precomputed.0", "precomputed.1"]
    assert_close(tensorplan.compile(simple)(x)[0], module(x))
    as_it_is = tensorplan.from_torch(module, (x,), simplify=False)
    assert "0.weight" in as_it_is.parameters
    loss = torch_models.Loss(module)
    ways: list[dict[str, Any]] = [{"gradients": True}, {"learning_rate": 0.1}]
    for how in ways:
        model = tensorplan.from_torch(loss, (x, labels), **how)
        assert len(model.parameters) == len(as_it_is.parameters)


def test_mutated_buffers_are_variables() -> None:
    module: Any = torch_models.Cache()
    key, place = torch.ones(1, 4), torch.tensor([3])
    run = tensorplan.compile(tensorplan.from_torch(module, (key, place)))
    run(key, place)
    assert module.keys[3].tolist() == [1, 1, 1, 1]
    run(key * 2, place + 1)
    assert module.keys.sum() == 12


def test_exported_programs() -> None:
    module, inputs = torch_models.make("gpt2_block")
    exported = torch.export.export(module, inputs)
    for given in (exported, exported.run_decompositions()):
        (got,) = tensorplan.compile(tensorplan.from_torch(given))(*inputs)
        assert_close(got, module(*inputs))


BATCH, TIME = Dim("batch", max=64), Dim("time", min=2, max=32)


@pytest.mark.parametrize(
    ("name", "dynamic", "other"),
    [
        ("gpt2", {0: BATCH, 1: TIME}, torch.arange(15).reshape(3, 5)),
        ("resnet18", {0: BATCH}, torch.ones(3, 3, 64, 64)),
    ],
)
def test_symbolic_sizes(name: str, dynamic: Any, other: Tensor) -> None:
    module, inputs = torch_models.make(name)
    run = tensorplan.compile(model_of(module, inputs, dynamic=(dynamic,)))
    for given in (*inputs, other):
        (got,) = run(given)
        assert_close(got, module(given))
    too_many = torch.zeros(65, *other.shape[1:], dtype=other.dtype)
    with pytest.raises((LocatedError, ValueError), match="batch"):
        run(too_many)


def test_indices_along_a_symbolic_size_with_nan() -> None:
    functions: Sequence[Callable[[Tensor], Tensor]] = [
        lambda x: torch.argmax(x, 0),
        lambda x: torch.argmin(x, 0),
        lambda x: torch.sort(x, 0)[1],
        lambda x: torch.topk(x, 3, 1)[0],
    ]
    module, dynamic = Functions(functions), (({0: BATCH},),)
    run = tensorplan.compile(model_of(module, [torch.ones(5, 4)], dynamic=dynamic))
    x = torch.tensor([[1.0, 5, 2, 2], [3, 5, torch.nan, torch.nan], [2, 0, 7, 1]])
    for got, want in zip(run(x), module(x), strict=True):
        assert_close(got, want)


def test_error_lists_all_unsupported_operations() -> None:
    class Both(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.dropout(x) + x[x > 0].sum()

    with pytest.raises(LocatedError) as caught:
        tensorplan.from_torch(Both(), (torch.eye(3),))
    first, second = str(caught.value).splitlines()
    assert "native_dropout is not supported: it draws random numbers" in first
    assert "test_torch.py:" in first
    assert ": note: " in second
    assert "aten::index is not supported with a mask: the shape of" in second


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.argmax(x, 0),
        lambda x: torch.topk(x, 1, 0)[0],
        lambda x: torch.softmax(x, 0),
        lambda x: torch.index_select(x, 0, torch.tensor([0])),
    ],
)
def test_rank_0_has_no_dimension(function: Callable[[Tensor], Tensor]) -> None:
    """PyTorch treats such a tensor as one of size 1."""
    with pytest.raises(LocatedError, match="is not supported on a tensor of rank 0"):
        tensorplan.from_torch(Functions([function]), [torch.tensor(3.0)])


def test_unsupported_operations_in_branches_and_loops() -> None:
    class Both(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = torch.cond(x[0, 0] > 0, F.dropout, torch.sin, (x,))
            (z,) = torch.while_loop(
                lambda y: F.dropout(y).sum() > 0, lambda y: (y + 1,), (x,)
            )
            return y + z

    with pytest.raises(LocatedError) as caught:
        tensorplan.from_torch(Both(), (torch.eye(3),))
    for line in str(caught.value).splitlines():
        assert "native_dropout is not supported: it draws random numbers" in line
    assert len(str(caught.value).splitlines()) == 2


def test_dependence_on_values_or_memory_is_refused() -> None:
    class Both(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[1:].as_strided((2, 2), (1, 2), 0).sum() + torch.nonzero(x).sum()

    with pytest.raises(LocatedError) as caught:
        tensorplan.from_torch(Both(), (torch.eye(3),))
    first, second = str(caught.value).splitlines()
    assert "as_strided is not supported beyond the elements of its tensor" in first
    assert (
        "aten::nonzero is not supported: the shape of the result depends "
        "on values" in second
    )


def test_bad_requests() -> None:
    module, x = nn.Linear(4, 3), torch.randn(2, 4)
    with pytest.raises(ValueError, match="both given, expected one"):
        tensorplan.from_torch(module, (x,), gradients=True, learning_rate=0.1)
    with pytest.raises(LocatedError, match=r"expected a scalar, not tensor<2x3xf32>"):
        tensorplan.from_torch(module, (x,), gradients=True)
    with pytest.raises(
        LocatedError, match=("is not supported with elements of type complex32")
    ):
        tensorplan.from_torch(nn.Identity(), (x.to(torch.complex32),))
    with pytest.raises(ValueError, match="expected no args or kwargs"):
        tensorplan.from_torch(torch.export.export(module, (x,)), (x,))
