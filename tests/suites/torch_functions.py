"""Plans and runs 56 modules and functions of PyTorch and its core ATen operations.

    python tests/suites/torch_functions.py [--match TEXT] [--write]

A case is an expression; the tensors that it names are the arguments of the program.
`torch.export` exports it.
Values may differ from PyTorch's by 1e-4 relatively and 1e-5 absolutely. `verdicts.py`
says how a case is judged. The exit code is 1 if a case is wrong or internal; otherwise
`--write` writes `docs/reference/torch.md`. PyTorch is not among the development tools:
`pip install '.[torch]'`.
"""

# pyright: reportMissingImports=false

import ast
import re
import sys
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from aten_operations import CALLS
from expressions import names_in, run, table
from verdicts import Verdict, compare, judge

import tensorplan
from tensorplan.frontends.torch.program import array_of

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "torch.md"

RTOL, ATOL = 1e-4, 1e-5
PLACE = r"(\S+:\d+:\d+|torch\S*)"

torch.manual_seed(0)

TENSORS: dict[str, Any] = {
    "A": torch.randn(4, 4) + 4 * torch.eye(4),
    "B": torch.randn(4, 3),
    "C": torch.randn(4, 6, dtype=torch.complex64),
    "H": torch.randn(4, 6).to(torch.bfloat16),
    "I": torch.randint(0, 5, (3, 4)),
    "L": torch.randint(0, 6, (4,)),
    "M": torch.randn(2, 3, 8, 8),
    "O": torch.tensor([0, 4, 9]),
    "S": torch.randn(2, 5, 6),
    "V": torch.randn(12),
    "X": torch.randn(4, 6),
    "Y": torch.randn(5, 6),
}
TENSORS["G"] = torch.rand(2, 5, 5, 2) * 2 - 1
TENSORS["P"] = TENSORS["A"] @ TENSORS["A"].T

CASES = """
nn.BatchNorm2d(3)(M)
nn.Bilinear(6, 6, 4)(X, X)
nn.Conv2d(3, 4, 3, padding=1)(M)
nn.ConvTranspose2d(3, 4, 3, stride=2)(M)
nn.CosineSimilarity()(X, X + 1)
nn.CrossEntropyLoss()(X, L)
nn.Embedding(5, 3)(I)
nn.EmbeddingBag(5, 3, mode='mean')(I)
nn.EmbeddingBag(5, 3, mode='sum')(I.flatten(), O)
nn.Fold((4, 5), (2, 2))(torch.reshape(V, (1, 12, 1)).expand(1, 12, 12))
nn.GroupNorm(3, 3)(M)
nn.GRU(6, 4, batch_first=True)(S)[0]
nn.Hardswish()(X)
nn.KLDivLoss(reduction='batchmean')(X, X.softmax(1))
nn.LayerNorm(6)(X)
nn.LSTM(6, 4, batch_first=True)(S)[0]
nn.MaxPool2d(2, return_indices=True)(M)
nn.MaxUnpool2d(2)(M[:, :, ::2, ::2], nn.MaxPool2d(2, return_indices=True)(M)[1])
nn.MultiheadAttention(6, 2, batch_first=True)(S, S, S)[0]
nn.PixelShuffle(2)(M.reshape(2, 12, 4, 4))
nn.TransformerEncoderLayer(6, 2, 8, batch_first=True).eval()(S)
nn.functional.adaptive_max_pool2d(M, 3)
nn.functional.affine_grid(X[:2].reshape(2, 2, 3), (2, 3, 5, 5))
nn.functional.grid_sample(M, G, align_corners=False)
nn.functional.interpolate(M, scale_factor=2, mode='bicubic')
nn.functional.scaled_dot_product_attention(M, M, M)
nn.functional.unfold(M, 3)
linalg.cholesky(P)
linalg.det(A)
linalg.eigh(P)[0]
linalg.inv(A)
linalg.pinv(X)
linalg.lu_factor(A)
linalg.matrix_norm(X)
linalg.qr(X)
linalg.slogdet(A)
linalg.solve(A, B)
linalg.solve_triangular(A, B, upper=True)
linalg.svdvals(X)
linalg.vector_norm(X, 3)
fft.fft(C)
fft.fft2(M)
fft.ifft(C, dim=0)
fft.irfft(C)
fft.rfft(X)
bucketize(X, torch.linspace(-1, 1, 5))
cdist(X, Y)
cond(V[0] > 0, lambda x: x + 1, lambda x: x * 2, (X,))
cumprod(X, 1)
einsum('ij,kj->ik', X, Y)
logcumsumexp(X, 1)
lgamma(X.abs() + 0.1)
matmul(H, H.T)
searchsorted(torch.linspace(-1, 1, 5), X)
view_as_real(C * C.conj())
while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (L[0] * 0, X))[1]
""".strip().splitlines()


class Function(torch.nn.Module):
    """An expression as a module. The modules that it creates are its submodules."""

    def __init__(self, expression: str, names: list[str]):
        super().__init__()
        scope = {"torch": torch, **{n: getattr(torch, n) for n in dir(torch)}}
        self._function = eval(f"lambda {', '.join(names)}: {_kept(expression)}", scope)
        torch.manual_seed(1)
        for number, made in enumerate(_modules_in(expression)):
            self.add_module(f"made{number}", eval(made, scope))
        scope["made"] = self

    def forward(self, *tensors: Any) -> Any:
        return self._function(*tensors)


def _modules_in(expression: str) -> list[str]:
    """The calls in an expression that create modules: `nn.Name(...)`."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(expression))
        if isinstance(node, ast.Call)
        and re.fullmatch(r"nn\.[A-Z]\w*", ast.unparse(node.func))
    ]


def _kept(expression: str) -> str:
    text = ast.unparse(ast.parse(expression))
    for number, made in enumerate(_modules_in(expression)):
        text = text.replace(made, f"made.made{number}")
    return text


def page(verdicts: Mapping[str, Verdict]) -> str:
    """The reference page with tables of functions and of ATen calls."""
    functions = {case: v for case, v in verdicts.items() if case in CASES}
    calls = {case: v for case, v in verdicts.items() if case in CALLS}
    return table(_PAGE, "torch.", functions) + table(_CORE, "torch.", calls)


_PAGE = """# PyTorch functions

`python tests/suites/torch_functions.py --write` writes this page. It shows which of
{total} modules and functions of PyTorch can be exported, planned, and run, with
PyTorch's values: {passed}. The others are refused, with this reason. One-letter names
are tensors.

| function | refused |
|---|---|
"""


_CORE = """
## Core ATen operations

The operations that PyTorch tags as `core`, except for those that ask for sizes: of
{total}, {passed} run. `torch.export` replaces some of them by others.

| call | refused |
|---|---|
"""


def check(expression: str) -> Verdict:
    """Judges an expression as a function of its tensors, which are sorted by name."""
    names = names_in(expression, TENSORS)
    tensors = tuple(TENSORS[name] for name in names)
    module = Function(expression, names).eval()
    want = module(*tensors)
    leaves = [x for x in torch.utils._pytree.tree_leaves(want) if x is not None]
    arrays = [array_of(torch.as_tensor(leaf).resolve_conj()) for leaf in leaves]

    def got() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns
            model = tensorplan.from_torch(module, tensors)
        return tensorplan.compile(model, threads=1)(*tensors)

    return judge(got, partial(compare, want=arrays, rtol=RTOL, atol=ATOL), PLACE)


def main() -> int:
    return run([*CASES, *CALLS], check, PAGE, page, (__doc__ or "").splitlines()[0])


if __name__ == "__main__":
    sys.exit(main())
