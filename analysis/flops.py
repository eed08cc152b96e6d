"""Counts the floating-point operations (FLOPs) of operations.

    %r = tgraph.dot_general %a, %b       201,326,592 FLOPs
         (96x128x64, 96x64x128)

FLOPs are exact. A contraction has two FLOPs for each product that it sums; products
with the padding or the dilation holes of a convolution do not count. A reduction or a
cumulative sum has one FLOP for each element but the first. An elementwise operation has
one per element, or as many as the polynomial that its kernel evaluates. With complex
numbers, a product has eight FLOPs, and an elementwise operation has two or more per
element. An operation that only moves data has none. A group has the FLOPs of its body.
A loop has the FLOPs of one iteration times its trip count, or times ten if the trip
count is unknown (loops.py). A branch has the FLOPs of its larger side. Symbolic sizes
count as typical sizes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import gcd, prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue

from ..dialects.sizes.symbolic import TYPICAL, typical
from ..dialects.tgraph import elementwise as e
from ..dialects.tgraph.base import AnyTensor, Shape, TensorOp, shape_of, tensor_type_of
from ..dialects.tgraph.bodies import ReduceByOp, SortOp
from ..dialects.tgraph.elements import is_complex
from ..dialects.tgraph.elementwise import ElementwiseOp
from ..dialects.tgraph.indexing import ScatterOp
from ..dialects.tgraph.matrices import MatrixOp
from ..dialects.tgraph.random import RngBitGeneratorOp
from ..dialects.tgraph.reducing import (
    ConvolutionOp,
    DotGeneralOp,
    ReduceOp,
    ReduceWindowOp,
    SelectAndScatterOp,
)
from ..dialects.tgraph.spectral import FftOp
from ..dialects.tgraph.structure import IfOp
from ..dialects.tgraph.windows import WindowDimension
from .loops import iterations

POLYNOMIALS: Mapping[type[Operation], int] = {
    e.Atan2Op: 56,
    e.CbrtOp: 100,
    e.CosineOp: 64,
    e.ErfOp: 24,
    e.ErfcOp: 40,
    e.ExponentialMinusOneOp: 24,
    e.ExponentialOp: 20,
    e.LogOp: 28,
    e.LogPlusOneOp: 34,
    e.LogisticOp: 22,
    e.PowerOp: 370,
    e.RemainderOp: 380,
    e.SineOp: 64,
    e.TanOp: 40,
    e.TanhOp: 22,
}
"""FLOPs per element of operations without a processor instruction: approximately the
steps of the native kernels' polynomials (runtime/backends/native/math.py). A step in
f64 counts as two. For an operation that calls the C library for each element, the
number of FLOPs that take as long."""

COMPLEX: Mapping[type[Operation], int] = {
    e.AbsOp: 4,
    e.CosineOp: 100,
    e.DivideOp: 40,
    e.ExponentialMinusOneOp: 180,
    e.ExponentialOp: 100,
    e.LogOp: 90,
    e.LogPlusOneOp: 140,
    e.LogisticOp: 140,
    e.MultiplyOp: 6,
    e.PowerOp: 210,
    e.RsqrtOp: 120,
    e.SineOp: 100,
    e.SqrtOp: 50,
    e.TanOp: 180,
    e.TanhOp: 180,
}
"""FLOPs per element of operations on complex numbers, if more than two. An exponential
consists of a real exponential, a sine and a cosine. The others are measured by their
time in relation to it."""

RANDOM = 40
"""FLOPs per random number: approximately the steps of Threefry's or Philox's rounds."""


def flops(op: Operation) -> int:
    """The FLOPs of an operation and its regions. Integer operations count, too."""
    if op.regions:
        return over_regions(op, flops)
    return contracted_flops(op) + other_flops(op)


def over_regions(op: Operation, figure: Callable[[Operation], int]) -> int:
    """The sum of `figure` over all operations in the regions of `op`, times the number
    of iterations. For a branch, the larger side.
    """
    sums = [
        sum(map(figure, (inner for block in region.blocks for inner in block.ops)))
        for region in op.regions
    ]
    if isinstance(op, IfOp | scf.IfOp):
        return max(sums)
    return rounds(op) * sum(sums)


def rounds(op: Operation) -> int:
    """How often the regions of an operation run in one run of the operation."""
    match op:
        case ReduceByOp():
            return _combined(op)
        case SortOp():
            length = typical_shape_of(op.inputs[0])[op.dimension.value.data]
            return typical_size(op.inputs[0]) * max(length - 1, 0).bit_length()
        case _:
            return iterations(op)


def contracted_flops(op: Operation) -> int:
    """The FLOPs of the contractions in an operation."""
    if op.regions:
        return over_regions(op, contracted_flops)
    match op:
        case DotGeneralOp():
            shape = typical_shape_of(op.inputs[0])
            depth = prod(shape[dim] for dim in op.contracting[0])
            return (
                (8 if _is_complex(op) else 2)
                * prod(typical_shape(op.declared[0]))
                * depth
            )
        case ConvolutionOp():
            return _of_convolution(op)
        case _:
            return 0


def _of_convolution(op: ConvolutionOp) -> int:
    image, kernel, result = (
        dict(zip(labels, typical_shape(type), strict=True))
        for labels, type in zip(op.labels, types_of(op), strict=True)
    )
    products = prod(
        window_meets(result[label], image[label], dim)
        for label, dim in zip(
            op.spatial, op.window(typical_shape_of(op.inputs[1])), strict=True
        )
    )
    return 2 * result["b"] * kernel["o"] * kernel["i"] * products


def other_flops(op: Operation) -> int:
    """The FLOPs of an operation, without contractions."""
    if op.regions:
        return over_regions(op, other_flops)
    match op:
        case e.BitcastConvertOp():
            return 0
        case ElementwiseOp():
            return prod(typical_shape(op.declared[0])) * flops_of_element(op)
        case ReduceOp():
            return _combined(op)
        case ReduceWindowOp():
            shape = typical_shape_of(op.inputs[0])
            if scan := op.scan(shape):
                return prod(shape) - prod(shape) // max(shape[scan[0]], 1)
            return _of_window(op, typical_shape(op.declared[0]))
        case SelectAndScatterOp():
            return _of_window(op, typical_shape_of(op.inputs[1])) + typical_size(
                op.inputs[1]
            )
        case ScatterOp():
            return 0 if op.kind.data == "replace" else typical_size(op.inputs[2])
        case MatrixOp():
            return typical_size(op.inputs[0]) * min(typical_shape_of(op.inputs[0])[-2:])
        case FftOp():
            length = prod(op.length.get_values())
            return 5 * typical_size(op.inputs[0]) * max(length - 1, 0).bit_length()
        case RngBitGeneratorOp():
            return RANDOM * typical_size((op.res or op.outs)[1])
        case _:
            return 0


def flops_of_element(op: TensorOp) -> int:
    """The FLOPs of an elementwise operation per element of its result."""
    if _is_complex(op):
        return COMPLEX.get(type(op), 2)
    return POLYNOMIALS.get(type(op), 1)


def _is_complex(op: TensorOp) -> bool:
    """Whether an operand has complex elements."""
    return any(
        is_complex(tensor_type_of(value.type).element_type) for value in op.inputs
    )


def _combined(op: ReduceOp | ReduceByOp) -> int:
    """The number of times that a reduction combines two elements."""
    return max(typical_size(op.inputs[0]) - prod(typical_shape(op.declared[0])), 0)


def _of_window(op: ReduceWindowOp | SelectAndScatterOp, places: Shape) -> int:
    """The FLOPs of reducing the elements of all windows: one less than the elements of
    each window, without padding and holes."""
    shape, window = typical_shape_of(op.inputs[0]), op.window(len(places))
    elements = prod(map(window_meets, places, shape, window))
    return max(elements - prod(places), 0)


@lru_cache(maxsize=4096)
def window_meets(places: int, size: int, window: WindowDimension) -> int:
    """The number of pairs of a place and a window element, along one dimension, that
    read one of the `size` elements of the tensor, not padding or a hole."""
    count = 0
    stride, base_dilation = window.stride, window.base_dilation
    period = base_dilation // gcd(stride, base_dilation)
    for element in range(window.size):
        offset = window.window_dilation * element - window.low
        first = max(-(offset // stride), 0)
        last = min(((size - 1) * base_dilation - offset) // stride, places - 1)
        met = (
            p
            for p in range(first, min(first + period, last + 1))
            if (stride * p + offset) % base_dilation == 0
        )
        count += sum((last - p) // period + 1 for p in met)
    return count


def types_of(op: ConvolutionOp) -> Sequence[AnyTensor]:
    """The types of a convolution's operands and result."""
    return [*(tensor_type_of(value.type) for value in op.inputs), op.declared[0]]


def typical_shape(type: AnyTensor) -> Shape:
    """The sizes of a tensor, with typical values for symbolic and unknown sizes."""
    return tuple(
        TYPICAL if size == DYNAMIC_INDEX else typical(size) for size in shape_of(type)
    )


def typical_shape_of(value: SSAValue) -> Shape:
    return typical_shape(tensor_type_of(value.type))


def typical_size(value: SSAValue) -> int:
    return prod(typical_shape_of(value))
