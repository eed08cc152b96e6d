"""ONNX's matrix products, convolutions and determinants → tgraph."""

from collections import Counter
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ...dialects.tgraph import elementwise as e
from ...dialects.tgraph.base import with_element
from ...dialects.tgraph.matrices import LuOp
from ..builder import shape_of, type_of
from ..formulas import at_least_f32, compare, matmul, per_channel
from ..linear_algebra import determinant, factored
from ..operators import Value
from ..windows import SpatialWindow, convolve, convolve_transposed
from .node import Conversion, OnnxNode
from .windows import window_of


def _matmul(n: OnnxNode) -> Sequence[Value]:
    return [matmul(n, n.value(0), n.value(1))]


def _gemm(n: OnnxNode) -> Sequence[Value]:
    a, b = n.value(0), n.value(1)
    sides = [1 - n.integer("transA", 0)], [n.integer("transB", 0)]
    result = n.dot(a, b, sides)
    if (alpha := n.number("alpha", 1.0)) != 1:
        result = n.apply(e.MultiplyOp, result, alpha)
    beta = n.number("beta", 1.0)
    if not n.has(2) or not beta:
        return [result]
    c = n.value(2) if beta == 1 else n.apply(e.MultiplyOp, n.value(2), beta)
    return [n.apply(e.AddOp, result, c)]


def _einsum(n: OnnxNode) -> Sequence[Value]:
    """Multiplies operand by operand, and sums over a label once no later operand or the
    result needs it."""
    labels, target = _labels(n)
    diagonals = [_diagonal(n, n.value(k), term) for k, term in enumerate(labels)]
    (result, term), *operands = _broadcast(n, diagonals)
    for index, (value, other) in enumerate(operands, 1):
        needed = {*target, *"".join(labels[index + 1 :])}
        result, term = _einsum_of(n, result, term, value, other, needed)
    result, term = _summed(n, result, term, {*target})
    return [n.transpose(result, [term.index(label) for label in target])]


def _labels(n: OnnxNode) -> tuple[Sequence[str], str]:
    """The labels of each operand and of the result. Digits label an ellipsis."""
    equation = n.text("equation", "").replace(" ", "")
    terms, arrow, target = equation.partition("->")
    labels = terms.split(",")
    ranks = [len(shape_of(n.value(index))) for index in range(len(labels))]
    rest = [
        rank - len(term.replace("...", ""))
        for rank, term in zip(ranks, labels, strict=True)
    ]
    digits = "0123456789"[: max(count for count in rest)]
    if not arrow:
        counts = Counter(terms.replace(",", "").replace(".", ""))
        once = sorted(label for label in counts if counts[label] == 1)
        target = "".join(["..." * ("..." in terms), *once])
    own = [
        term.replace("...", digits[len(digits) - count :])
        for term, count in zip(labels, rest, strict=True)
    ]
    return own, target.replace("...", digits)


def _diagonal(n: OnnxNode, x: SSAValue, labels: str) -> tuple[SSAValue, str]:
    """Takes the diagonal over repeated labels. Returns its tensor and labels."""
    for second, label in reversed(list(enumerate(labels))):
        if (first := labels.index(label)) < second:
            numbers = with_element(type_of(x), i32)
            same = compare(n, n.iota(numbers, first), "EQ", n.iota(numbers, second))
            zeros = n.splat(0, type_of(x))
            x = n.reduce("add", n.apply(e.SelectOp, same, x, zeros), [second])
            labels = labels[:second] + labels[second + 1 :]
    return x, labels


def _broadcast(
    n: OnnxNode, operands: Sequence[tuple[SSAValue, str]]
) -> Sequence[tuple[SSAValue, str]]:
    """Drops dimensions of size 1 whose label has another size elsewhere."""
    sizes = [dict(zip(labels, shape_of(x), strict=True)) for x, labels in operands]
    others = {label for own in sizes for label, size in own.items() if size != 1}
    found: list[tuple[SSAValue, str]] = []
    for (x, _), own in zip(operands, sizes, strict=True):
        kept = {k: size for k, size in own.items() if size != 1 or k not in others}
        x = x if kept == own else n.reshape(x, list(kept.values()))
        found.append((x, "".join(kept)))
    return found


def _einsum_of(
    n: OnnxNode, x: SSAValue, xs: str, y: SSAValue, ys: str, needed: set[str]
) -> tuple[SSAValue, str]:
    """The product of two operands and its labels, summed over labels not `needed`."""
    x, xs = _summed(n, x, xs, needed | {*ys})
    y, ys = _summed(n, y, ys, needed | {*xs})
    batch = [label for label in xs if label in ys and label in needed]
    summed = [label for label in xs if label in ys and label not in needed]
    both = [*batch, *summed]
    product = n.dot(
        x,
        y,
        ([xs.index(label) for label in summed], [ys.index(label) for label in summed]),
        ([xs.index(label) for label in batch], [ys.index(label) for label in batch]),
    )
    rest = [label for label in xs + ys if label not in both]
    return product, "".join([*batch, *rest])


def _summed(
    n: OnnxNode, x: SSAValue, labels: str, kept: set[str]
) -> tuple[SSAValue, str]:
    """Sums over the labels that are not in `kept`. Returns the sum and its labels."""
    axes = [axis for axis, label in enumerate(labels) if label not in kept]
    x = n.reduce("add", x, axes) if axes else x
    return x, "".join(label for label in labels if label in kept)


def _convolution(n: OnnxNode) -> Sequence[Value]:
    x, kernel = n.value(0), n.value(1)
    window = window_of(n, shape_of(kernel)[2:])
    return _biased(n, convolve(n, x, kernel, window, n.integer("group", 1)))


def _biased(n: OnnxNode, y: SSAValue) -> Sequence[Value]:
    if not n.has(2):
        return [y]
    return [n.apply(e.AddOp, y, per_channel(n, n.value(2), shape_of(y)))]


def _transposed_convolution(n: OnnxNode) -> Sequence[Value]:
    x, kernel = n.value(0), n.value(1)
    _, _, *size = shape_of(kernel)
    rank = len(size)
    groups = n.integer("group", 1)
    strides = n.integers("strides", [1] * rank)
    dilations = n.integers("dilations", [1] * rank)
    extra = n.integers("output_padding", [0] * rank)
    reach = [(k - 1) * d for k, d in zip(size, dilations, strict=True)]
    full = [
        (image - 1) * stride + far + 1 + more
        for image, stride, far, more in zip(
            shape_of(x)[2:], strides, reach, extra, strict=True
        )
    ]
    automatic = n.text("auto_pad", "NOTSET")
    n.expect("auto_pad", automatic, *_AUTOMATIC)
    target = n.integers("output_shape", [])[-rank:]
    if not target and automatic.startswith("SAME"):
        target = [i * s for i, s in zip(shape_of(x)[2:], strides, strict=True)]
    if target:
        more = [max(t - f, 0) for f, t in zip(full, target, strict=True)]
        extra = [own + m for own, m in zip(extra, more, strict=True)]
        cut = [max(f - t, 0) for f, t in zip(full, target, strict=True)]
        half = [c // 2 for c in cut]
        rest = [c - h for c, h in zip(cut, half, strict=True)]
        low, high = (half, rest) if automatic == "SAME_UPPER" else (rest, half)
    else:
        pads = n.integers("pads", [0] * (2 * rank))
        low, high = list(pads[:rank]), list(pads[rank:])
    window = SpatialWindow(size, strides, dilations, low, high)
    return _biased(n, convolve_transposed(n, x, kernel, window, extra, groups))


_AUTOMATIC = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def _determinant(n: OnnxNode) -> Sequence[Value]:
    x = n.value(0)
    packed, pivots, _ = factored(n, LuOp, at_least_f32(n, x))
    return [n.convert(determinant(n, packed, pivots), type_of(x).element_type)]


CONVERSIONS: Mapping[str, Conversion] = {
    "Conv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "Det": _determinant,
    "Einsum": _einsum,
    "Gemm": _gemm,
    "MatMul": _matmul,
}
