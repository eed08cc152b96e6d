"""The decompositions that AOTAutograd applies for the backend of `torch.compile`.

They consist of PyTorch's decompositions into core operations, those of
frontends/torch/decompositions.py, and those of this file. The latter determine how
random numbers are drawn, and which values a backward pass rematerializes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any

from ..frontends.torch.decompositions import own_decompositions

_POOL = (
    "(Tensor grad_output, Tensor self, int[] kernel_size, int[] stride, "
    "int[] padding, int[] dilation, bool ceil_mode) -> Tensor"
)
"""The schema of PyTorch's `max_pool2d_with_indices_backward`, also for the 3-D
operation, without the parameter `indices`."""
_ATTENTION = (
    "(Tensor grad_output, Tensor query, Tensor key, Tensor value, float dropout_p, "
    "bool is_causal, Tensor? attn_mask, float? scale) -> (Tensor, Tensor, Tensor)"
)
"""The schema of PyTorch's `_scaled_dot_product_flash_attention_for_cpu_backward`,
without the parameters that are results of the forward pass."""


def _encoder_layer(
    x: Any,
    width: int,
    heads: int,
    *parts: Any,
) -> Any:
    """Decomposes the fused operation that PyTorch uses for
    `torch.nn.TransformerEncoderLayer` without gradients. The mask is true for positions
    that attention ignores: pairs, keys, or both."""
    torch: Any = import_module("torch")
    functions: Any = torch.nn.functional
    entry, entry_bias, out, out_bias, is_gelu, is_norm_first, epsilon, *rest = parts
    (*norms, up, up_bias, down, down_bias), mask = rest[:8], rest[8:]

    def normalized(x: Any, number: int) -> Any:
        scale, shift = norms[2 * number : 2 * number + 2]
        return functions.layer_norm(x, [width], scale, shift, epsilon)

    def attended(x: Any) -> Any:
        parts = functions.linear(x, entry, entry_bias).chunk(3, -1)
        q, k, v = (part.unflatten(-1, [heads, -1]).transpose(1, 2) for part in parts)
        kept = None
        if mask and mask[0] is not None:
            kept = mask[0].to(torch.bool).logical_not()
            kept = kept[:, None, None] if mask[1] == _OF_KEYS else kept
        y = functions.scaled_dot_product_attention(q, k, v, kept)
        return functions.linear(y.transpose(1, 2).flatten(2), out, out_bias)

    def fed(x: Any) -> Any:
        activation = functions.gelu if is_gelu else functions.relu
        x = activation(functions.linear(x, up, up_bias))
        return functions.linear(x, down, down_bias)

    if is_norm_first:
        x = x + attended(normalized(x, 0))
        return x + fed(normalized(x, 1))
    x = normalized(x + attended(x), 0)
    return normalized(x + fed(x), 1)


_OF_KEYS = 1
"""The value of `mask_type` for a mask of batch x keys."""


def order_of(tensor: Any) -> Sequence[int]:
    """The tensor's dimensions in memory order, from the outermost to the innermost."""
    prims: Any = import_module("torch._prims_common")
    order, _ = prims.compute_elementwise_output_logical_to_physical_perm(tensor)
    return order


@cache
def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """The decompositions into core operations, by operation.

    The backward pass of a max pool searches for the largest elements again, so the
    forward pass does not save their indices. Attention is not decomposed, and its
    backward pass recomputes the scores, so none are saved. A group norm is decomposed,
    so its result can be recomputed from its input. Random numbers that depend
    only on a tensor's shape do not read the tensor, so PyTorch can draw them before the
    program runs. They are drawn in the tensor's memory order, as in eager PyTorch.
    """
    torch: Any = import_module("torch")
    aten: Any = torch.ops.aten
    decomp: Any = import_module("torch._decomp")

    def dropout(x: Any, p: float, train: bool | None) -> tuple[Any, Any]:
        kind = {"dtype": torch.bool, "device": x.device}
        if train is False or p == 0:
            return x.clone(), torch.ones(x.shape, **kind)
        if p == 1:
            return x * 0, torch.zeros(x.shape, **kind)
        order = order_of(x)
        drawn = aten.bernoulli.p(
            torch.empty([x.shape[dim] for dim in order], **kind), 1 - p
        )
        kept = drawn.permute([order.index(dim) for dim in range(x.dim())])
        return x * kept * (1 / (1 - p)), kept

    def drawn_like(draw: Any, x: Any, **given: Any) -> Any:
        """Returns `NotImplemented` if the memory is not in the dimensions' order."""
        given = {name: value for name, value in given.items() if value is not None}
        layout = given.pop("memory_format", torch.preserve_format)
        if not x.is_contiguous() or layout != torch.preserve_format:
            return NotImplemented
        return draw(x.shape, **{"dtype": x.dtype, "device": x.device, **given})

    def group_norm(x: Any, *given: Any) -> Any:
        """Returns `NotImplemented` for narrow types: the parts have a wider type."""
        if x.dtype.itemsize < torch.float32.itemsize:
            return NotImplemented
        return decomp.decomposition_table[aten.native_group_norm.default](x, *given)

    def pool_backward(head: Any, x: Any, size: Any, *rest: Any) -> Any:
        rank = len(size)
        _, indices = pools[rank](x, size, *rest)
        return pools_backward[rank](head, x, size, *rest, indices)

    def like_input(head: Any, x: Any, *window: Any) -> Any:
        return torch.empty_like(x)

    def without_indices(*given: Any) -> Any:
        dilation = given[-3]
        return of_pool(*given[:-1]) if set(dilation) == {1} else NotImplemented

    def parts_without_indices(rank: int, head: Any, x: Any, indices: Any) -> Any:
        """If all parts have the same size, they are the positions of a window."""
        pairs = list(zip(x.shape[-rank:], head.shape[-rank:], strict=True))
        if any(size % count for size, count in pairs):
            return NotImplemented
        size = [size // count for size, count in pairs]
        return of_pool(head, x, size, size, [0] * rank, [1] * rank, False)

    def attention_backward(head: Any, q: Any, k: Any, v: Any, *given: Any) -> Any:
        *options, mask, scale = given
        rest = {"attn_mask": mask, "scale": scale}
        y, logarithms = attention(q, k, v, *options, **rest)
        whole = aten._scaled_dot_product_flash_attention_for_cpu_backward
        return whole(head, q, k, v, y, logarithms, *options, **rest)

    def like_inputs(head: Any, *given: Any) -> Any:
        return tuple(torch.empty_like(x) for x in given[:3])

    def without_scores(
        *given: Any, attn_mask: Any = None, scale: float | None = None
    ) -> Any:
        head, q, k, v, _, _, *options = given
        return of_attention(head, q, k, v, *options, attn_mask, scale)

    def defined(name: str, schema: str, call: Any, fake: Any) -> Any:
        define: Any = torch.library.custom_op
        made = define(f"tensorplan::{name}", mutates_args=(), schema=schema)(call)
        made.register_fake(fake)
        return made

    pools = {2: aten.max_pool2d_with_indices, 3: aten.max_pool3d_with_indices}
    pools_backward = {
        2: aten.max_pool2d_with_indices_backward,
        3: aten.max_pool3d_with_indices_backward,
    }
    of_pool = defined("max_pool_backward", _POOL, pool_backward, like_input)
    of_attention = defined(
        "attention_backward", _ATTENTION, attention_backward, like_inputs
    )
    core: Any = decomp.core_aten_decompositions()
    attention = aten._scaled_dot_product_flash_attention_for_cpu.default
    return {
        **{op: core[op] for op in core if op is not attention},
        **own_decompositions(),
        aten._transformer_encoder_layer_fwd.default: _encoder_layer,
        aten._weight_norm_interface_backward.default: (
            aten._weight_norm_differentiable_backward.default
        ),
        **{op.default: without_indices for op in pools_backward.values()},
        aten.adaptive_max_pool2d_backward.default: partial(parts_without_indices, 2),
        aten.adaptive_max_pool3d_backward.default: partial(parts_without_indices, 3),
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default: (
            without_scores
        ),
        aten.native_group_norm.default: group_norm,
        aten.native_dropout.default: dropout,
        aten.rand_like.default: partial(drawn_like, torch.rand),
        aten.randn_like.default: partial(drawn_like, torch.randn),
    }
