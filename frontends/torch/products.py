"""Converts ATen's matrix products, attention and convolutions to tgraph."""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from xdsl.dialects.builtin import bf16, f16, f32, i1
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ..builder import broadcast_shapes, shape_of, type_of
from ..formulas import compare, matmul, per_channel, softmax, triangle
from ..windows import SpatialWindow, convolve, convolve_transposed
from .call import AtenCall, Conversion, Results


def _product(a: str, b: str) -> Conversion:
    return lambda c: matmul(c, c[a], c[b])


def _added(c: AtenCall, product: SSAValue) -> SSAValue:
    """`beta * self + alpha * product`."""
    if c["alpha"] != 1:
        product = c.apply(e.MultiplyOp, product, c["alpha"])
    if c["beta"] == 0:
        return product
    other = c["self"]
    if c["beta"] != 1:
        other = c.apply(e.MultiplyOp, other, c["beta"])
    return c.apply(e.AddOp, product, other)


def _added_product(a: str, b: str) -> Conversion:
    return lambda c: _added(c, matmul(c, c[a], c[b]))


def _linear(c: AtenCall) -> SSAValue:
    x, weight = c["input"], c["weight"]
    y = c.dot(x, weight, ([len(shape_of(x)) - 1], [len(shape_of(weight)) - 1]))
    return y if c["bias"] is None else c.apply(e.AddOp, y, c["bias"])


def _attention(c: AtenCall) -> SSAValue:
    """`softmax(q k' / sqrt(d) + mask) v`. Fully masked rows of the result are zero."""
    return _attended(c, c["query"], c["key"], c["value"])[0]


def _fused_attention(c: AtenCall) -> Results:
    """PyTorch's fused attention, computed in f32 or wider. Its second result, if it has
    uses, is the logarithm of the sum of exponentials of each row of scores."""
    wide = [_at_least_f32(c, c[name]) for name in ("query", "key", "value")]
    y, scores = _attended(c, *wide)
    y = c.convert(y, c.element)
    if 1 not in c.used:
        return [y, None]
    axis = len(shape_of(scores)) - 1
    largest = c.reduce("maximum", scores, [axis], keep=True)
    powers = c.emit(e.ExponentialOp, c.apply(e.SubtractOp, scores, largest))
    total = c.emit(e.LogOp, c.reduce("add", powers, [axis]))
    largest = c.reshape(largest, shape_of(total))
    return [y, c.apply(e.AddOp, largest, total)]


def _at_least_f32(c: AtenCall, x: SSAValue) -> SSAValue:
    element = type_of(x).element_type
    return c.convert(x, f32) if element in (f16, bf16) else x


def _attention_backward(c: AtenCall) -> Results:
    """The gradient of attention. It recomputes the scores, so the forward pass saves
    none."""
    return c.gradient(_fused_attention, "query", "key", "value")


def _attended(
    c: AtenCall, query: SSAValue, key: SSAValue, value: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """The result of attention, and the masked scores."""
    c.expect("dropout_p", 0.0, 0)
    if shape_of(query)[-3:-2] != shape_of(key)[-3:-2] and c.get("enable_gqa", True):
        key, value = (_repeated(c, x, shape_of(query)[-3]) for x in (key, value))
    *_, length, width = shape_of(query)
    scale = c["scale"] or 1 / sqrt(width)
    query = c.apply(e.MultiplyOp, query, scale)
    batch: Sequence[int] = broadcast_shapes(shape_of(query)[:-2], shape_of(key)[:-2])
    query, key, value = (
        c.broadcast(x, [*batch, *shape_of(x)[-2:]]) for x in (query, key, value)
    )
    rank = len(batch)
    sides = range(rank), range(rank)
    scores = c.dot(query, key, ([rank + 1], [rank + 1]), sides)
    mask = c["attn_mask"]
    if c["is_causal"]:
        ones = c.full(1, i1, [length, shape_of(key)[-2]])
        mask = triangle(c, ones, 0, upper=False)
    if mask is None:
        weights = softmax(c, scores, rank + 1)
    elif type_of(mask).element_type == i1:
        scores = c.apply(e.SelectOp, mask, scores, float("-inf"))
        weights = softmax(c, scores, rank + 1)
        if not c["is_causal"]:
            some = c.reduce("or", mask, [len(shape_of(mask)) - 1], keep=True)
            weights = c.apply(e.SelectOp, some, weights, 0)
    else:
        largest = c.reduce("maximum", mask, [len(shape_of(mask)) - 1], keep=True)
        some = compare(c, largest, "NE", float("-inf"))
        mask = c.apply(e.SelectOp, some, mask, 0)
        scores = c.apply(e.AddOp, scores, mask)
        weights = c.apply(e.SelectOp, some, softmax(c, scores, rank + 1), 0)
    return c.dot(weights, value, ([rank + 1], [rank]), sides), scores


def _repeated(c: AtenCall, x: SSAValue, heads: int) -> SSAValue:
    """Repeats each head of keys or values for its group of queries (grouped-query
    attention), so that there are `heads` heads."""
    *batch, own, length, width = shape_of(x)
    apart = [*batch, own, heads // own, length, width]
    rank = len(batch)
    x = c.broadcast_in_dim(x, apart, [*range(rank + 1), rank + 2, rank + 3])
    return c.reshape(x, [*batch, heads, length, width])


def _convolution(c: AtenCall) -> SSAValue:
    x, kernel = c["input"], c["weight"]
    size = shape_of(kernel)[2:]
    window = SpatialWindow(size, *(_each(c, name, len(size)) for name in _GEOMETRY))
    if c["transposed"]:
        extra = _each(c, "output_padding", len(size))
        y = convolve_transposed(c, x, kernel, window, extra, c["groups"])
    else:
        y = convolve(c, x, kernel, window, c["groups"])
    if c.get("bias") is None:
        return y
    return c.apply(e.AddOp, y, per_channel(c, c["bias"], shape_of(y)))


def _convolution_backward(c: AtenCall) -> Results:
    """The gradients of input, weight and bias; None for those that `output_mask`
    excludes."""
    head = c["grad_output"]
    of_input, of_weight = c.gradient(_convolution, "input", "weight")
    others = [axis for axis in range(len(shape_of(head))) if axis != 1]
    wants_input, wants_weight, wants_bias = c["output_mask"]
    return [
        of_input if wants_input else None,
        of_weight if wants_weight else None,
        c.reduce("add", head, others) if wants_bias else None,
    ]


_GEOMETRY = ("stride", "dilation", "padding", "padding")


def _each(c: AtenCall, name: str, rank: int) -> Sequence[int]:
    """The argument's entries for each spatial dimension. A single entry is repeated."""
    values: Any = c[name]
    return list(values) * rank if len(values) == 1 else values


def _trilinear(c: AtenCall) -> SSAValue:
    """The sum of the product of three tensors, after inserting dimensions of size 1."""
    product: SSAValue | None = None
    for number in (1, 2, 3):
        x, shape = c[f"i{number}"], list(shape_of(c[f"i{number}"]))
        for dim in sorted(c[f"expand{number}"]):
            shape.insert(dim, 1)
        x = c.reshape(x, shape)
        product = x if product is None else c.apply(e.MultiplyOp, product, x)
    assert product is not None
    return c.reduce("add", product, list(c["sumdim"]))


CONVERSIONS: Mapping[str, Conversion] = {
    "_scaled_dot_product_flash_attention_for_cpu": _fused_attention,
    "_trilinear": _trilinear,
    "attention_backward": _attention_backward,
    "addmm": _added_product("mat1", "mat2"),
    "bmm": _product("self", "mat2"),
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "linear": _linear,
    "matmul": _product("self", "other"),
    "mm": _product("self", "mat2"),
    "scaled_dot_product_attention": _attention,
}
