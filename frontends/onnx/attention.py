"""The attention operations of ONNX and onnxruntime → tgraph.

    softmax(scale * q k + bias) v, for each head

Heads are dimension 1: batch x heads x length x size. Caches of keys and values are
separate results: the cached ones followed by the new ones. Masks of onnxruntime's
operations add a number to scores (-10000, or `mask_filter_value`); keys that a query
must not see have the score -infinity. For 16-bit floats, scores and weights of
onnxruntime's operations are computed in f32, because they may not fit f16.

Does not: share the memory of a cache between input and result. Does not: support packed
queries, keys and values of rank 5, quantized caches, or the forms of beam search.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod, sqrt

from onnx import TensorProto, helper
from xdsl.dialects.builtin import IntegerAttr, TensorType, i1, i32, i64
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph import shaping
from ..builder import element_type, shape_of, type_of
from ..formulas import at_least_f32, clamp, compare, softmax
from ..operators import Known, Value
from ..unsupported import Unsupported
from ..zero_points import sizes_of
from . import quantized_products
from .node import Conversion, OnnxNode


def _share(size: int, count: int, what: str, sharers: str) -> int:
    """`size / count`. Raises `Unsupported` unless it is a whole number."""
    if count < 1:
        raise Unsupported(f"with {count} {sharers}, expected 1 or more")
    if size % count:
        raise Unsupported(
            f"with {size} {what}, expected a multiple of {count} {sharers}"
        )
    return size // count


def _split(n: OnnxNode, rows: SSAValue, heads: int) -> SSAValue:
    batch, length, width = shape_of(rows)
    size = _share(width, heads, "columns", "heads")
    apart = n.reshape(rows, [batch, length, heads, size])
    return n.transpose(apart, [0, 2, 1, 3])


def _joined(n: OnnxNode, x: SSAValue) -> SSAValue:
    """Joins the heads: batch x length x (heads * size)."""
    batch, heads, length, size = shape_of(x)
    return n.reshape(n.transpose(x, [0, 2, 1, 3]), [batch, length, heads * size])


def _concatenated(n: OnnxNode, *parts: SSAValue, axis: int) -> SSAValue:
    return n.emit(shaping.ConcatenateOp, *parts, dimension=IntegerAttr(axis, i64))


def _extended(n: OnnxNode, past: SSAValue | None, new: SSAValue) -> SSAValue:
    return new if past is None else _concatenated(n, past, new, axis=2)


def _numbered(n: OnnxNode, shape: Sequence[int], axis: int) -> SSAValue:
    return n.iota(TensorType(i32, shape), axis)


def _scores(n: OnnxNode, query: SSAValue, key: SSAValue) -> SSAValue:
    """The scaled score of each query and key. Consecutive heads of queries may share
    one head of keys."""
    batch, heads, length, size = shape_of(query)
    _, shared, keys, _ = shape_of(key)
    scale = n.number("scale", 0.0) or 1 / sqrt(size)
    query = n.apply(e.MultiplyOp, query, scale)
    group = _share(heads, shared, "heads of queries", "heads of keys")
    query = n.reshape(query, [batch, shared, group * length, size])
    scores = n.dot(query, key, ([3], [3]), ([0, 1], [0, 1]))
    return n.reshape(scores, [batch, heads, length, keys])


def _weighed(n: OnnxNode, weights: SSAValue, value: SSAValue) -> SSAValue:
    batch, heads, length, keys = shape_of(weights)
    _, shared, _, size = shape_of(value)
    weights = n.reshape(weights, [batch, shared, heads // shared * length, keys])
    y = n.dot(weights, value, ([3], [2]), ([0, 1], [0, 1]))
    return n.reshape(y, [batch, heads, length, size])


def _capped(n: OnnxNode, scores: SSAValue) -> SSAValue:
    softcap = n.number("softcap", 0.0)
    if not softcap:
        return scores
    scores = n.emit(e.TanhOp, n.apply(e.DivideOp, scores, softcap))
    return n.apply(e.MultiplyOp, scores, softcap)


def _wide_scores(n: OnnxNode, query: SSAValue, key: SSAValue) -> SSAValue:
    return _scores(n, at_least_f32(n, query), at_least_f32(n, key))


def _weighed_rows(n: OnnxNode, weights: SSAValue, value: SSAValue) -> SSAValue:
    """Applies weights from `_wide_scores`, in rows of the element type of `value`."""
    y = _weighed(n, weights, at_least_f32(n, value))
    return _joined(n, n.convert(y, type_of(value).element_type))


def _added(n: OnnxNode, scores: SSAValue, index: int) -> SSAValue:
    if not n.has(index):
        return scores
    return n.apply(e.AddOp, scores, at_least_f32(n, n.value(index)))


def _masked(n: OnnxNode, scores: SSAValue, index: int) -> SSAValue:
    """Adds the number for masked keys, by the mask in input `index`.

    The mask gives, per sequence, the number of keys, or the end and the start of a
    range of keys; or it is positive for each key, or each query and key, that counts.
    """
    if not n.has(index):
        return scores
    mask = n.value(index)
    batch, _, queries, keys = shape_of(scores)
    shape = shape_of(mask)
    if shape in ((batch,), (2 * batch,)):
        places = _numbered(n, [1, keys], 1)
        ends = n.reshape(n.part(mask, 0, 0, batch), [batch, 1])
        counts = compare(n, places, "LT", n.convert(ends, i32))
        if shape != (batch,):
            starts = n.reshape(n.part(mask, 0, batch, 2 * batch), [batch, 1])
            begun = compare(n, places, "GE", n.convert(starts, i32))
            counts = n.apply(e.AndOp, counts, begun)
    elif shape in ((batch, keys), (batch, queries, keys)):
        counts = compare(n, mask, "GT", 0)
    elif len(shape) == 2 and shape[1] == 1:  # of a pruned model
        return scores
    else:
        listed = ", ".join(map(str, shape))
        raise Unsupported(f"with a mask of shape [{listed}]")
    own = shape_of(counts)
    apart = n.reshape(counts, [own[0], *[1] * (4 - len(own)), *own[1:]])
    less = n.number("mask_filter_value", -10000.0)
    zeros = n.splat(0, type_of(scores))
    counts = n.broadcast(apart, shape_of(scores))
    return n.apply(e.AddOp, scores, n.apply(e.SelectOp, counts, zeros, less))


def _causal(n: OnnxNode, scores: SSAValue, past: int) -> SSAValue:
    """With `unidirectional`, the first query sees the past keys and one more."""
    if not n.integer("unidirectional", 0):
        return scores
    queries, keys = shape_of(scores)[2:]
    if keys - past != queries:  # onnxruntime lets the last query see all keys
        raise Unsupported(
            f"with unidirectional = 1 and {keys - past} keys for {queries} queries"
        )
    key, query = (_numbered(n, [queries, keys], axis) for axis in (1, 0))
    last = n.apply(e.AddOp, query, past)
    return n.apply(e.SelectOp, compare(n, key, "LE", last), scores, float("-inf"))


Product = Callable[[int, int], SSAValue]
"""The rows times columns `[low, high)` of the weights, plus their bias."""


def _self_attention(
    n: OnnxNode, product: Product, past: int, mask: int, bias: int
) -> Sequence[Value]:
    """Computes queries, keys and values as separate products, so that their live ranges
    may differ.

    `past`, `mask` and `bias` are indices of inputs: the cache of keys and values, the
    mask of keys, and the numbers added to scores.
    """
    for name in ("do_rotary", "past_present_share_buffer"):
        n.expect(name, n.integer(name, 0), 0)
    heads, width = n.integer("num_heads", 1), sizes_of(n.given(1))[1]
    sizes = n.integers("qkv_hidden_sizes", [])
    if not sizes:
        sizes = [_share(width, 3, "columns of weights", "products")] * 3
    n.expect("sum of qkv_hidden_sizes", sum(sizes), width)
    ends = [sizes[0], sizes[0] + sizes[1], width]
    query, key, value = (
        _split(n, product(end - size, end), heads)
        for size, end in zip(sizes, ends, strict=True)
    )
    if n.has(past):
        both, *one = shape_of(n.value(past))
        n.expect(f"first size of input {n.names[past]!r}", both, 2)
        key, value = (
            _extended(n, n.reshape(n.part(n.value(past), 0, k, k + 1), one), new)
            for k, new in enumerate((key, value))
        )
    scores = _masked(n, _added(n, _wide_scores(n, query, key), bias), mask)
    count = shape_of(n.value(past))[3] if n.has(past) else 0
    weights = softmax(n, _causal(n, scores, count), 3)
    results = [_weighed_rows(n, weights, value)]
    if n.outputs > 1:
        both = [n.reshape(x, [1, *shape_of(x)]) for x in (key, value)]
        results.append(_concatenated(n, *both, axis=0))
    return results


def _attention(n: OnnxNode) -> Sequence[Value]:
    def product(low: int, high: int) -> SSAValue:
        rows = n.dot(n.value(0), n.part(n.value(1), 1, low, high), ([2], [0]))
        if not n.has(2):
            return rows
        return n.apply(e.AddOp, rows, n.part(n.value(2), 0, low, high))

    return _self_attention(n, product, past=4, mask=3, bias=5)


def _quantized_attention(n: OnnxNode) -> Sequence[Value]:
    """Only the products with the weights are computed in integers."""

    def product(low: int, high: int) -> SSAValue:
        x, scale, zero = (n.inputs[k] if n.has(k) else None for k in (0, 3, 6))
        weight, bias, *of_weight = (_columns(n, k, low, high) for k in (1, 2, 4, 7))
        inputs = [x, weight, scale, of_weight[0], zero, of_weight[1], bias]
        (rows,) = quantized_products.CONVERSIONS["com.microsoft.MatMulIntegerToFloat"](
            replace(n, inputs=inputs)
        )
        return n.materialize(rows)

    return _self_attention(n, product, past=8, mask=5, bias=9)


def _columns(n: OnnxNode, index: int, low: int, high: int) -> Value | None:
    """Columns `[low, high)` of an input. An input with one column is returned whole."""
    value = n.inputs[index] if n.has(index) else None
    if value is None or not (sizes := sizes_of(value)) or sizes[-1] == 1:
        return value
    if isinstance(value, Known) and value.argument is None:
        return Known(value.array[..., low:high])
    part = n.part(n.materialize(value), len(sizes) - 1, low, high)
    return Known(value.array[..., low:high], part) if isinstance(value, Known) else part


def _multi_head_attention(n: OnnxNode) -> Sequence[Value]:
    """Keys and values may already be split into heads, in models without a cache."""
    for index in (8, 9):
        if n.has(index):
            raise Unsupported(f"with input {n.names[index]!r}")
    if not n.has(1) or not n.has(2) or len(shape_of(n.value(0))) != 3:
        raise Unsupported("with packed keys and values")
    heads, width = n.integer("num_heads", 1), shape_of(n.value(0))[2]
    parts: list[SSAValue] = []
    for index, start in enumerate((0, width, 2 * width)):
        x = n.value(index)
        if len(shape_of(x)) == 3:
            if n.has(3):
                end = start + shape_of(x)[2]
                x = n.apply(e.AddOp, x, n.part(n.value(3), 0, start, end))
            x = _split(n, x, heads)
        n.expect(f"number of heads of input {n.names[index]!r}", shape_of(x)[1], heads)
        parts.append(x)
    query, *caches = parts
    key, value = (
        _extended(n, n.value(index) if n.has(index) else None, new)
        for index, new in enumerate(caches, 6)
    )
    scores = _masked(n, _added(n, _wide_scores(n, query, key), 5), 4)
    past = shape_of(n.value(6))[2] if n.has(6) else 0
    weights = softmax(n, _causal(n, scores, past), 3)
    return [_weighed_rows(n, weights, value), key, value][: n.outputs]


# ONNX's own attention

_PRECISIONS = (
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.DOUBLE,
    TensorProto.BFLOAT16,
)
"""Allowed values of `softmax_precision`."""


def _standard_attention(n: OnnxNode) -> Sequence[Value]:
    """A query that sees no key results in 0. The last result has scores or weights."""
    rows = [n.value(index) for index in range(3)]
    counts = ("q_num_heads", "kv_num_heads", "kv_num_heads")
    query, key, value = (
        x if len(shape_of(x)) == 4 else _split(n, x, n.integer(name, 0))
        for x, name in zip(rows, counts, strict=True)
    )
    n.expect("number of heads of values", shape_of(value)[1], shape_of(key)[1])
    key, value = (
        _extended(n, n.value(index) if n.has(index) else None, new)
        for index, new in ((4, key), (5, value))
    )
    steps = [_scores(n, query, key)]
    steps.append(_capped(n, steps[0]))
    scores = _biased(n, steps[1], 3)
    batch, _, length, keys = shape_of(scores)
    before: SSAValue | int = shape_of(n.value(4))[2] if n.has(4) else 0
    numbers = _numbered(n, [1, 1, 1, keys], 3)
    seen: list[SSAValue] = []
    if n.has(6):
        ends = n.reshape(n.convert(n.value(6), i32), [batch, 1, 1, 1])
        seen.append(compare(n, numbers, "LT", ends))
        before = n.apply(e.SubtractOp, ends, length)
    place = n.apply(e.AddOp, _numbered(n, [1, 1, length, 1], 2), before)
    left, right = (n.integer(f"{k}_window_size", -1) for k in ("left", "right"))
    if n.integer("is_causal", 0):
        seen.append(compare(n, numbers, "LE", place))
    if left >= 0:
        seen.append(compare(n, numbers, "GE", n.apply(e.SubtractOp, place, left)))
    if right >= 0:
        seen.append(compare(n, numbers, "LE", n.apply(e.AddOp, place, right)))
    for flags in seen:
        flags = n.broadcast(flags, shape_of(scores))
        scores = n.apply(e.SelectOp, flags, scores, float("-inf"))
    steps.append(scores)
    element = type_of(scores).element_type
    if number := n.integer("softmax_precision", 0):
        n.expect("softmax_precision", number, *_PRECISIONS)
        precision = element_type(helper.tensor_dtype_to_np_dtype(number))
        scores = n.convert(scores, precision)
    weights = softmax(n, scores, 3)
    if n.has(3) or n.has(6) or left >= 0:
        most = n.reduce("maximum", scores, [3], keep=True)
        some = n.broadcast(compare(n, most, "GT", float("-inf")), shape_of(scores))
        weights = n.apply(e.SelectOp, some, weights, 0)
    weights = n.convert(weights, element)
    steps.append(weights)
    y = _weighed(n, weights, value)
    y = y if len(shape_of(rows[0])) == 4 else _joined(n, y)
    mode = n.integer("qk_matmul_output_mode", 0)
    n.expect("qk_matmul_output_mode", mode, *range(len(steps)))
    return [y, key, value, steps[mode]][: n.outputs]


def _biased(n: OnnxNode, scores: SSAValue, index: int) -> SSAValue:
    """Applies a mask of flags or numbers, which may have fewer keys than the scores."""
    if not n.has(index):
        return scores
    mask = n.value(index)
    *outer, keys = shape_of(mask)
    all_keys = shape_of(scores)[3]
    if keys > all_keys:
        raise Unsupported(f"with a mask of {keys} keys, expected {all_keys} or fewer")
    if more := all_keys - keys:
        nothing = 0 if type_of(mask).element_type == i1 else float("-inf")
        rest = n.full(nothing, type_of(mask).element_type, ())
        mask = n.pad(mask, [0] * (len(outer) + 1), [*[0] * len(outer), more], rest)
    mask = n.broadcast(mask, shape_of(scores))
    if type_of(mask).element_type == i1:
        return n.apply(e.SelectOp, mask, scores, float("-inf"))
    return n.apply(e.AddOp, scores, mask)


# Rotary embeddings


def _rotated(n: OnnxNode, x: SSAValue, tables: Sequence[SSAValue]) -> SSAValue:
    """Rotates pairs of the first elements of each head.

    A pair has adjacent elements (`interleaved`), or one of each half. `tables` has the
    cosine and the sine of each pair, shared by all heads.
    """
    *outer, size = shape_of(x)
    cosine, sine = (n.broadcast(t, [*outer, shape_of(t)[3]]) for t in tables)
    half = shape_of(cosine)[3]
    whole, rest = n.part(x, 3, 0, 2 * half), n.part(x, 3, 2 * half, size)
    interleaved = n.integer("interleaved", 0) or n.integer("rotary_interleaved", 0)
    pairs = n.reshape(whole, [*outer, half, 2] if interleaved else [*outer, 2, half])
    axis = 4 if interleaved else 3
    a, b = (n.reshape(n.part(pairs, axis, k, k + 1), [*outer, half]) for k in (0, 1))
    turned = [
        n.apply(
            op, n.apply(e.MultiplyOp, one, cosine), n.apply(e.MultiplyOp, two, sine)
        )
        for op, one, two in ((e.SubtractOp, a, b), (e.AddOp, b, a))
    ]
    shape = [*outer, half, 1] if interleaved else [*outer, 1, half]
    pairs = _concatenated(n, *(n.reshape(t, shape) for t in turned), axis=axis)
    whole = n.reshape(pairs, [*outer, 2 * half])
    return _concatenated(n, whole, rest, axis=3) if shape_of(rest)[3] else whole


def _tables(n: OnnxNode, places: SSAValue, first: int) -> Sequence[SSAValue]:
    """The rows of the tables of cosines and sines (inputs `first` and `first + 1`) at
    these places, batch x length."""
    found = [n.take(n.value(first + k), places, 0) for k in (0, 1)]
    return [n.reshape(t, [shape_of(t)[0], 1, *shape_of(t)[1:]]) for t in found]


def _rotary_embedding(n: OnnxNode) -> Sequence[Value]:
    """Places are batch x length, or one number: the place of the first element."""
    n.expect("is_packed_batching", n.integer("is_packed_batching", 0), 0)
    x, places = n.value(0), n.convert(n.value(1), i32)
    is_apart = len(shape_of(x)) == 4
    if not is_apart:
        width = shape_of(x)[2]
        size = 2 * shape_of(n.value(2))[1]
        heads = n.integer("num_heads", 0)
        x = _split(n, x, heads or _share(width, size, "columns", "columns of a head"))
    batch, _, length, _ = shape_of(x)
    if shape_of(places) == (1,):
        places = n.apply(e.AddOp, _numbered(n, [1, length], 1), n.reshape(places, []))
        places = n.broadcast(places, [batch, length])
    y = _rotated(n, x, _tables(n, places, 2))
    return [y if is_apart else _joined(n, y)]


# Grouped queries


def _cached(
    n: OnnxNode, past: SSAValue | None, new: SSAValue, before: SSAValue, total: int
) -> SSAValue:
    """A cache of `total` elements per sequence: the first `before` elements of `past`,
    the new ones, and zeros."""
    batch, heads, length, size = shape_of(new)
    place = n.apply(
        e.SubtractOp, _numbered(n, [batch, total], 1), n.reshape(before, [batch, 1])
    )
    index = clamp(n, place, 0, length - 1)
    taken = n.take(new, index, 2, batch=1) if length > 1 else new
    shape = [batch, heads, total, size]
    is_new = compare(n, clamp(n, place, -1, length), "EQ", index)
    is_new, is_old = (
        n.broadcast_in_dim(flag, shape, [0, 2])
        for flag in (is_new, compare(n, place, "LT", 0))
    )
    kept = n.splat(0, type_of(taken))
    if past is not None:
        more = total - shape_of(past)[2]
        kept = n.apply(e.SelectOp, is_old, n.pad(past, [0] * 4, [0, 0, more, 0]), 0)
    return n.apply(e.SelectOp, is_new, n.broadcast(taken, shape), kept)


def _grouped_attention(n: OnnxNode) -> Sequence[Value]:
    """Several heads of queries share one head of keys and values. Each sequence has its
    own length, and its own number of keys before the new ones."""
    for name in ("qk_output", "kv_cache_bit_width"):
        n.expect(name, n.integer(name, 0), 0)
    for name in ("k_quant_type", "v_quant_type"):
        n.expect(name, n.text(name, "NONE"), "NONE")
    window = n.integer("local_window_size", -1)
    if window == 0 or window < -1:
        allowed = "expected -1, or 1 or more"
        raise Unsupported(f"with local_window_size = {window}, {allowed}")
    heads, shared = n.integer("num_heads", 1), n.integer("kv_num_heads", 1)
    query = n.value(0)
    batch, length, width = shape_of(query)
    if n.has(1):
        parts = [query, n.value(1), n.value(2)]
    else:
        size = _share(width, heads + 2 * shared, "columns", "heads")
        ends = [0, heads * size, (heads + shared) * size, width]
        parts = [n.part(query, 2, low, high) for low, high in pairwise(ends)]
    query, key, value = (
        _split(n, x, count)
        for x, count in zip(parts, (heads, shared, shared), strict=True)
    )
    pasts = [n.value(index) if n.has(index) else None for index in (3, 4)]
    (known,) = n.known_integers(6)
    if length == 0:
        raise Unsupported("with 0 queries, expected 1 or more")
    if length > known:
        name = n.names[6]
        raise Unsupported(f"with input {name!r} = {known}, expected {length} or more")
    lengths = prod(shape_of(n.value(5)))
    n.expect(f"number of elements of input {n.names[5]!r}", lengths, batch)
    total = max([known, *(shape_of(past)[2] for past in pasts if past is not None)])
    ends = n.convert(n.reshape(n.value(5), [batch]), i32)
    before = n.apply(e.AddOp, ends, 1 - length)
    if known == length:  # the cache is empty; shorter sequences are padded
        before = n.splat(0, type_of(before))
    column = n.reshape(before, [batch, 1])
    places = n.apply(e.AddOp, _numbered(n, [1, length], 1), column)
    if n.integer("do_rotary", 0):
        tables = _tables(n, _own_places(n, 9, places, is_first=known == length), 7)
        query, key = (_rotated(n, x, tables) for x in (query, key))
    key, value = (
        _cached(n, past, new, before, total)
        for past, new in zip(pasts, (key, value), strict=True)
    )
    scores = _added(n, _capped(n, _wide_scores(n, query, key)), 10)
    place = n.reshape(places, [batch, 1, length, 1])
    keys = _numbered(n, [1, 1, 1, total], 3)
    seen = compare(n, keys, "LE", place)
    if window > 0:
        near = compare(n, keys, "GT", n.apply(e.SubtractOp, place, window))
        seen = n.apply(e.AndOp, seen, near)
    seen = n.broadcast(seen, shape_of(scores))
    scores = n.apply(e.SelectOp, seen, scores, float("-inf"))
    weights = _softmax_with_rest(n, scores)
    return [_weighed_rows(n, weights, value), key, value][: n.outputs]


def _own_places(
    n: OnnxNode, index: int, places: SSAValue, *, is_first: bool
) -> SSAValue:
    """The places in input `index`, or `places` without that input.

    If the cache is empty (`is_first`), they are consecutive from its first place on.
    """
    if not n.has(index):
        return places
    own = n.convert(n.value(index), i32)
    if not is_first:
        return own
    return n.apply(e.AddOp, places, n.part(n.part(own, 0, 0, 1), 1, 0, 1))


def _softmax_with_rest(n: OnnxNode, scores: SSAValue) -> SSAValue:
    """Softmax. With `smooth_softmax`, or a number per head (input 11), its sum includes
    an additional score that has no key."""
    if n.has(11):
        sinks = at_least_f32(n, n.value(11))
        other = n.reshape(sinks, [1, shape_of(scores)[1], 1, 1])
    elif n.integer("smooth_softmax", 0):
        other = n.full(0, type_of(scores).element_type, [1, 1, 1, 1])
    else:
        return softmax(n, scores, 3)
    most = n.apply(e.MaximumOp, n.reduce("maximum", scores, [3], keep=True), other)
    powers, rest = (
        n.emit(e.ExponentialOp, n.apply(e.SubtractOp, x, most)) for x in (scores, other)
    )
    total = n.apply(e.AddOp, n.reduce("add", powers, [3], keep=True), rest)
    return n.apply(e.DivideOp, powers, total)


CONVERSIONS: Mapping[str, Conversion] = {
    "Attention": _standard_attention,
    "com.microsoft.Attention": _attention,
    "com.microsoft.GroupQueryAttention": _grouped_attention,
    "com.microsoft.MultiHeadAttention": _multi_head_attention,
    "com.microsoft.QAttention": _quantized_attention,
    "com.microsoft.RotaryEmbedding": _rotary_embedding,
}
