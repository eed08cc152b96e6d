"""Operations that onnxruntime's optimizers fuse → tgraph, except attention.

These are activations with a bias, normalized sums, embeddings and scaled products. Each
becomes the operations that it was fused from, which tensorplan's fusion joins again.
Sums of 16-bit floats and their normalizations are computed in f32, as in onnxruntime,
because a sum of squares may not fit f16.
"""

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ..builder import axis_of, shape_of, type_of
from ..formulas import at_least_f32, compare, gelu, matmul, mean, normalized
from ..operators import Value
from .node import Conversion, OnnxNode

# Activations


def _of_sum(function: Callable[[OnnxNode, SSAValue], SSAValue]) -> Conversion:
    """Applies a function to an input, plus a bias if there is one."""

    def convert(n: OnnxNode) -> Sequence[Value]:
        x = n.value(0)
        return [function(n, n.apply(e.AddOp, x, n.value(1)) if n.has(1) else x)]

    return convert


def _gelu(n: OnnxNode, x: SSAValue) -> SSAValue:
    return gelu(n, x, approximate=False)


def _fast_gelu(n: OnnxNode, x: SSAValue) -> SSAValue:
    return gelu(n, x, approximate=True)


def _quick_gelu(n: OnnxNode, x: SSAValue) -> SSAValue:
    scaled = n.apply(e.MultiplyOp, x, n.number("alpha", 1.702))
    return n.apply(e.MultiplyOp, x, n.emit(e.LogisticOp, scaled))


# Normalizations


def _wide(n: OnnxNode, index: int) -> SSAValue:
    return at_least_f32(n, n.value(index))


def _root_normalized(
    n: OnnxNode, x: SSAValue, axes: Sequence[int], epsilon: float
) -> tuple[SSAValue, SSAValue]:
    """x / sqrt(mean of squares + epsilon), and the factor of x."""
    squares = mean(n, n.apply(e.MultiplyOp, x, x), axes)
    inverse = n.emit(e.RsqrtOp, n.apply(e.AddOp, squares, epsilon))
    return n.apply(e.MultiplyOp, x, inverse), inverse


def _simplified(n: OnnxNode) -> Sequence[Value]:
    """RMS normalization, computed in f32 if `stash_type` is 1."""
    x, rank = n.value(0), len(shape_of(n.value(0)))
    axes = range(axis_of(n.integer("axis", -1), rank), rank)
    wide = n.convert(x, f32) if n.integer("stash_type", 1) == 1 else x
    y, inverse = _root_normalized(n, wide, axes, n.number("epsilon", 1e-5))
    y = n.convert(y, type_of(n.value(1)).element_type)
    return [n.apply(e.MultiplyOp, y, n.value(1)), inverse][: n.outputs]


def _normalized_sum(n: OnnxNode) -> Sequence[Value]:
    """A layer normalization of a sum. The last result is the sum."""
    total = n.apply(e.AddOp, _wide(n, 0), _wide(n, 1))
    if n.has(4):
        total = n.apply(e.AddOp, total, _wide(n, 4))
    axes = [len(shape_of(total)) - 1]
    y, average, inverse = normalized(n, total, axes, n.number("epsilon", 1e-12))
    y = n.apply(e.MultiplyOp, y, _wide(n, 2))
    if n.has(3):
        y = n.apply(e.AddOp, y, _wide(n, 3))
    y, total = (n.convert(x, type_of(n.value(0)).element_type) for x in (y, total))
    return [y, average, inverse, total][: n.outputs]


def _simplified_sum(n: OnnxNode) -> Sequence[Value]:
    total = n.apply(e.AddOp, _wide(n, 0), _wide(n, 1))
    if n.has(3):
        total = n.apply(e.AddOp, total, _wide(n, 3))
    axes = [len(shape_of(total)) - 1]
    y, inverse = _root_normalized(n, total, axes, n.number("epsilon", 1e-12))
    # onnxruntime does not compute the second result
    y = n.apply(e.MultiplyOp, y, _wide(n, 2))
    y, total = (n.convert(x, type_of(n.value(0)).element_type) for x in (y, total))
    return [y, inverse, inverse, total][: n.outputs]


# Embeddings


def _embeddings(n: OnnxNode) -> Sequence[Value]:
    """Adds the embeddings of words, positions and segments. Returns the normalized sum,
    the number of positions that the mask has in each row, and the sum."""
    words = n.value(0)
    batch, length = shape_of(words)
    parts = [n.take(n.value(2), words, 0)]
    if n.has(8):
        parts.append(n.take(n.value(3), n.value(8), 0))
    else:
        parts.append(n.part(n.value(3), 0, 0, length))
    if n.has(1) and n.has(4):
        parts.append(n.take(n.value(4), n.value(1), 0))
    total, *others = (at_least_f32(n, part) for part in parts)
    for other in others:
        total = n.apply(e.AddOp, total, other)
    y, _, _ = normalized(n, total, [2], n.number("epsilon", 1e-12))
    y = n.apply(e.AddOp, n.apply(e.MultiplyOp, y, _wide(n, 5)), _wide(n, 6))
    y, total = (n.convert(x, type_of(parts[0]).element_type) for x in (y, total))
    counts = n.full(0, i32, [batch])
    if n.has(7):
        ones = n.convert(compare(n, n.value(7), "EQ", 1), i32)
        counts = n.reduce("add", ones, [1])
    return [y, counts, total][: n.outputs]


# Products


def _fused_matmul(n: OnnxNode) -> Sequence[Value]:
    """A product of operands that may be transposed: `transA` swaps the last two
    dimensions; `transBatchA` first moves dimension 0 directly before the last one."""
    operands: list[SSAValue] = []
    for index, side in enumerate("AB"):
        x = n.value(index)
        order = [*range(len(shape_of(x)))]
        if n.integer(f"transBatch{side}", 0):
            order = [*order[1:-1], 0, order[-1]]
        if n.integer(f"trans{side}", 0) and len(order) > 1:
            order[-2:] = order[:-3:-1]
        operands.append(n.transpose(x, order))
    product = matmul(n, operands[0], operands[1])
    alpha = n.number("alpha", 1.0)
    return [product if alpha == 1 else n.apply(e.MultiplyOp, product, alpha)]


CONVERSIONS: Mapping[str, Conversion] = {
    "com.microsoft.BiasGelu": _of_sum(_gelu),
    "com.microsoft.EmbedLayerNormalization": _embeddings,
    "com.microsoft.FastGelu": _of_sum(_fast_gelu),
    "com.microsoft.FusedMatMul": _fused_matmul,
    "com.microsoft.Gelu": _of_sum(_gelu),
    "com.microsoft.QuickGelu": _of_sum(_quick_gelu),
    "com.microsoft.SimplifiedLayerNormalization": _simplified,
    "com.microsoft.SkipLayerNormalization": _normalized_sum,
    "com.microsoft.SkipSimplifiedLayerNormalization": _simplified_sum,
    "com.microsoft.TransposeMatMul": _fused_matmul,
}
