"""Calls of the core ATen operations: those that PyTorch tags as `core`.

`torch_functions.py` runs them. An operation without an entry in `_ARGUMENTS` is called
with as many tensors X (for scalar overloads, X and 0.5) as it requires.
"""

# pyright: reportMissingImports=false

from collections.abc import Iterator
from typing import Any

import torch

_ARGUMENTS = {
    "_adaptive_avg_pool2d": "M, (3, 3)",
    "_adaptive_avg_pool2d_backward": "M[..., :3, :3], M",
    "_adaptive_avg_pool3d": "M, (2, 3, 3)",
    "_cdist_forward": "X, Y, 2.0, None",
    "_embedding_bag": "B, L % 4, O[:1]",
    "_fft_c2r": "C, (1,), 0, 11",
    "_fft_r2c": "X, (1,), 0, True",
    "_local_scalar_dense": "L[0]",
    "_log_softmax": "X, 1, False",
    "_native_batch_norm_legit": (
        "M, None, None, A[0, :3].clone(), A[1, :3].abs(), False, 0.1, 1e-5"
    ),
    "_native_batch_norm_legit.no_stats": "M, None, None, True, 0.1, 1e-5",
    "_native_batch_norm_legit_no_training": (
        "M, None, None, A[0, :3], A[1, :3].abs(), 0.1, 1e-5"
    ),
    "_softmax": "X, 1, False",
    "_to_copy": "X, dtype=float64",
    "acosh": "X.abs() + 1",
    "addmm": "A, A, A",
    "any.dim": "X > 1, 1",
    "any.dims": "X > 1, (0, 1)",
    "arange.start_step": "1, 9, 2",
    "as_strided": "X, (2, 3), (6, 2)",
    "avg_pool2d": "M, 2",
    "avg_pool2d_backward": "M[..., :4, :4], M, 2, 2, 0, False, True, None",
    "avg_pool3d": "M, 2",
    "bitwise_not": "I",
    "bmm": "S, S.mT.contiguous()",
    "cat": "(X, Y)",
    "clamp": "X, -0.5, 0.5",
    "clamp.Tensor": "X, X * 0 - 0.5",
    "col2im": "S[:, :4].reshape(2, 4, 6), (3, 4), (2, 2), (1, 1), (0, 0), (1, 1)",
    "constant_pad_nd": "X, (1, 2)",
    "convolution": "M, M[:, :, :3, :3], None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1",
    "convolution_backward": (
        "M[:, :2, :6, :6], M, M[:, :, :3, :3], None, (1, 1), (0, 0), (1, 1), False, "
        "(0, 0), 1, (True, True, False)"
    ),
    "cumsum": "X, 1",
    "diagonal": "A",
    "div.Scalar_mode": "X, 0.5, rounding_mode='floor'",
    "div.Tensor_mode": "X, X + 9, rounding_mode='floor'",
    "embedding": "B, L % 4",
    "embedding_dense_backward": "X, L, 9, -1, False",
    "empty.memory_format": "(4, 0)",
    "empty_strided": "(4, 0), (1, 1)",
    "expand": "X, (2, 4, 6)",
    "flip": "X, (0,)",
    "full": "(2, 3), 4",
    "full_like": "X, 4",
    "gather": "X, 1, I",
    "grid_sampler_2d": "M, G, 0, 0, False",
    "index.Tensor": "X, (L % 4,)",
    "index_put": "X, (L % 4,), X[0]",
    "index_select": "X, 1, L",
    "masked_scatter": "X, X > 0, X",
    "max.dim": "X, 1",
    "max_pool2d_with_indices": "M, 2",
    "max_pool2d_with_indices_backward": (
        "M[..., :4, :4], M, (2, 2), (2, 2), (0, 0), (1, 1), False, "
        "ops.aten.max_pool2d_with_indices.default(M, (2, 2))[1]"
    ),
    "max_pool3d_with_indices": "M, 2",
    "mean.dim": "X, (1,)",
    "min.dim": "X, 1",
    "mm": "A, A",
    "native_dropout": "X, 0.5, True",
    "native_group_norm": "M, None, None, 2, 3, 64, 3, 1e-5",
    "native_group_norm_backward": (
        "M.cos(), M, *ops.aten.native_group_norm(M, None, None, 2, 3, 64, 3, 1e-5)"
        "[1:], None, 2, 3, 64, 3, (True, False, False)"
    ),
    "native_layer_norm": "X, (6,), None, None, 1e-5",
    "native_layer_norm_backward": (
        "X.cos(), X, (6,), *ops.aten.native_layer_norm(X, (6,), None, None, 1e-5)[1:], "
        "None, None, (True, False, False)"
    ),
    "permute": "X, (1, 0)",
    "pow.Scalar": "2, X",
    "prod.dim_int": "X, 1",
    "rand": "(2, 3)",
    "randn": "(2, 3)",
    "randperm": "5",
    "reflection_pad1d": "X, (1, 2)",
    "reflection_pad2d": "M, (1, 2, 1, 2)",
    "reflection_pad3d": "M, (1, 2, 1, 2, 1, 1)",
    "repeat": "X, (2, 3)",
    "replication_pad2d": "M, (1, 2, 1, 2)",
    "replication_pad3d": "M, (1, 2, 1, 2, 1, 1)",
    "scalar_tensor": "4",
    "scatter.src": "X, 1, I, X",
    "scatter.value": "X, 1, I, 4",
    "scatter_add": "X, 1, I, X",
    "scatter_reduce.two": "X, 1, I, X, 'amax'",
    "select.int": "X, 1, 2",
    "select_scatter": "X, X[0], 0, 1",
    "slice.Tensor": "X, 1, 2, 5",
    "slice_scatter": "X, X[:, 2:5], 1, 2, 5",
    "split_with_sizes": "X, (1, 3)",
    "squeeze.dim": "X[:1], 0",
    "squeeze.dims": "X[:1], (0,)",
    "sum.dim_IntList": "X, (1,)",
    "topk": "X, 2",
    "unsqueeze": "X, 1",
    "upsample_bilinear2d.vec": "M, (5, 9), False, None",
    "upsample_nearest2d.vec": "M, (5, 9), None",
    "var.dim": "X, (1,)",
    "view": "X, (3, 8)",
    "where.self": "X > 0, X, X * 2",
}
"""Arguments by the name of the operation, without `.default`."""


def _overloads() -> Iterator[Any]:
    """Yields the core overloads that return tensors, except `out` overloads."""
    aten: Any = torch.ops.aten
    for packet in (getattr(aten, name) for name in dir(aten)):
        for name in getattr(packet, "overloads", list)():
            op = getattr(packet, name)
            is_size = op._schema.name.startswith("aten::sym_")
            if torch.Tag.core in op.tags and name != "out" and not is_size:
                yield op


def _arguments(op: Any) -> str:
    name = str(op).removeprefix("aten.").removesuffix(".default")
    if name in _ARGUMENTS:
        return _ARGUMENTS[name]
    tensor = "I" if name.startswith("bitwise") else "X"
    if name in ("acos", "asin", "atanh"):
        tensor = "X.tanh()"
    if name in ("log", "log1p", "log2", "log10", "rsqrt", "sqrt"):
        tensor = "X.abs()"
    needed = [
        argument
        for argument in op._schema.arguments
        if not argument.has_default_value() and not argument.kwarg_only
    ]
    number = "3" if tensor == "I" else "0.5"
    each = [tensor if "Tensor" in str(a.type) else number for a in needed]
    if len(each) == 2 and each[1] == tensor:
        each[1] = f"{tensor} + 1" if tensor == "I" else f"{tensor}.cos()"
    return ", ".join(each)


CALLS = [f"ops.{op}({_arguments(op)})" for op in _overloads()]
