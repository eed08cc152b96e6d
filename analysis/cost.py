"""Estimates the cost of operations: FLOPs, bytes moved, and time.

    %r = tgraph.dot_general %a, %b       201,326,592 FLOPs, 9,437,184 bytes, 2.0 ms
         (96x128x64, 96x64x128)

FLOPs are exact. A contraction has two FLOPs for each product that it sums; a
convolution has no products with padding or with the holes of a dilation. A reduction
has one for each element but the first, and so has a cumulative sum. An elementwise
operation has one for each element, or as many as the polynomial that its kernel
evaluates. Complex numbers have eight for a product, and two or more for an element. An
operation that only moves data has none. A group has the FLOPs of its body. A loop has
those of one iteration times its trip count, or times ten if that is unknown (loops.py).
A branch has those of the larger side.

Bytes are those that are read and written in memory, each operand once. A slice, a
gather or an update in place counts only the part of the operand that it touches.

Time follows the roofline model (Williams, Waterman and Patterson, 2009): the longer of
moving the bytes and computing the FLOPs, plus a constant to start. A library starts a
contraction, and each matrix of its batch, later than a loop nest starts. Before it
multiplies, it packs the right matrix, and the left one if that is transposed: it copies
them into the order in which it reads them (Goto and van de Geijn, "Anatomy of
high-performance matrix multiplication", 2008). A copy that transposes takes twice as
long. It also copies images and windows whose features do not lie together. A processor
computes and moves whole vectors: time counts columns of a product, output features of a
convolution, and elements of a row that lies apart from the next, up to a multiple of
them. A gather reads whole lines of a cache. The constants were measured on one core by
`benchmarks/cost.py`, which compares the estimates with kernels. Symbolic sizes count as
typical ones.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import gcd, prod

from xdsl.dialects import affine, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IntegerType,
    MemRefType,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..dialects.sizes.symbolic import TYPICAL, typical
from ..dialects.structural_keys import StructuralKeys
from ..dialects.tgraph import elementwise as e
from ..dialects.tgraph.base import (
    IN_PLACE,
    AnyTensor,
    Shape,
    TensorOp,
    VariableType,
    device_of,
    shape_of,
    tensor_type_of,
    typical_bytes,
)
from ..dialects.tgraph.bodies import ReduceByOp, SortOp
from ..dialects.tgraph.elements import is_complex
from ..dialects.tgraph.elementwise import ElementwiseOp
from ..dialects.tgraph.fusing import ending
from ..dialects.tgraph.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    ScatterOp,
)
from ..dialects.tgraph.matrices import MatrixOp
from ..dialects.tgraph.random import RngBitGeneratorOp
from ..dialects.tgraph.reducing import (
    ConvolutionOp,
    DotGeneralOp,
    ReduceOp,
    ReduceWindowOp,
    SelectAndScatterOp,
)
from ..dialects.tgraph.shaping import ConcatenateOp, ConstantOp, DeviceCopyOp, SliceOp
from ..dialects.tgraph.spectral import FftOp
from ..dialects.tgraph.structure import FusionOp, IfOp, WhileOp
from ..planning.scheduling.makespan import BESIDE
from .concatenations import is_in_place, is_reshape
from .dependencies import queue_of, runs
from .loops import iterations
from .operations import Fused, members, operands_of

LAUNCH = 100
"""Nanoseconds that an operation takes to start: 13 in a tape of native calls, 3,000 for
NumPy's (`benchmarks/runtime.py dispatch`)."""

LIBRARY = 700
"""Nanoseconds that a library takes, besides, to start a contraction or convolution."""

MATRIX = 50
"""Nanoseconds that it takes to start each matrix of a batch."""

SMALL_PRODUCT = 512
"""Multiplications of two matrices, up to which a loop nest is faster than a library,
which has to start."""

LANES = 8
"""Elements of a vector."""

LINE = 16
"""Elements of a line of a cache, which a gather reads as a whole."""

COLUMNS = 16
"""Columns of a product, or features of a convolution, that a library computes at once:
fewer take as long."""

CACHED = 8 << 20
"""Bytes of a tensor of which a part is still in a cache when the next part is read."""

ROW, ROW_IN_MEMORY = 1, 10
"""Nanoseconds to reach the next row of a part of a tensor, in a cache and in memory,
where no prefetcher sees which lines come next."""

SELECTED, SELECTED_ALONE = 0.1, 1.2
"""Nanoseconds that the gradient of pooling takes to compare an element of a window, in
vectors and one by one."""

BYTES_PER_NS = 50
"""Bandwidth of one core: GB/s."""

CONTRACTED_PER_NS = 100
"""FLOPs of contractions that one core does in a nanosecond."""

PACKED_PER_NS, TRANSPOSED_PER_NS = 100, 50
"""Bytes that a library reads and writes in a nanosecond while it packs a matrix in the
order of its rows, and a matrix that it transposes."""

REORDERED_PER_NS = 40
"""Bytes that a library reads and writes in a nanosecond while it brings what a
convolution reads or writes from channels first to the layout of its kernels, or back:
29 to 63 in the caches of a Xeon."""

FEATURE_PER_NS, WIDE_FEATURE_PER_NS = 40, 10
"""FLOPs of convolutions of one feature in each group that one core does in a
nanosecond, which has a product for each element that it loads; and of gradients of
their weights if those are wider than WIDE, for which a library has no kernel."""

WIDE = 3
"""Elements of a window along a dimension."""

OTHERS_PER_NS = 80
"""FLOPs of other operations that one core does in a nanosecond."""

POLYNOMIALS: Mapping[type[Operation], int] = {
    e.Atan2Op: 56,
    e.CbrtOp: 40,
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
"""FLOPs for an element where a processor has no instruction: the steps of the native
kernels' polynomials (runtime/backends/native/math.py), about. A step in f64 counts as
two. What the C library computes one by one takes as long as so many."""

COMPLEX: Mapping[type[Operation], int] = {
    e.AbsOp: 4,
    e.CosineOp: 100,
    e.DivideOp: 40,
    e.ExponentialMinusOneOp: 4_400,
    e.ExponentialOp: 100,
    e.LogOp: 5_000,
    e.LogPlusOneOp: 2_400,
    e.LogisticOp: 140,
    e.MultiplyOp: 6,
    e.PowerOp: 8_000,
    e.RsqrtOp: 3_200,
    e.SineOp: 100,
    e.SqrtOp: 2_800,
    e.TanhOp: 5_000,
}
"""FLOPs for an element of complex numbers, if more than two. An exponential is one of
the real part, and a sine and a cosine. What has no native kernel takes as long as so
many: NumPy computes one element after the other."""

RANDOM = 40
"""FLOPs for a random number: the steps of Threefry's and Philox's rounds, about."""


def flops(op: Operation) -> int:
    """Floating-point operations, those in regions included; integers count, too."""
    if op.regions:
        return _over_regions(op, flops)
    return _contracted(op) + _others(op)


def moved(op: Operation) -> int:
    """Bytes that an operation or group reads and writes; of a loop or branch, those of
    its operands and results."""
    return _moved(op, _bytes)


def moved_by(group: Fused) -> int:
    """Bytes that a group will read and write, as a fusion."""
    total = _bytes(group.root.result)
    if not any(isinstance(op, DynamicSliceOp | GatherOp) for op in group.ops):
        return total + sum(map(_bytes, group.inputs))
    for value in group.inputs:
        readers = [op for op in group.ops if value in operands_of(op)[0]]
        total += min(_bytes(value), _bytes_of_parts(readers, value, _bytes))
    return total


def _moved(op: Operation, of: "_Bytes") -> int:
    if _is_free(op):
        return 0
    if isinstance(op, DynamicUpdateSliceOp):  # in place
        return 2 * of(op.inputs[1])
    if isinstance(op, ScatterOp):
        return 3 * of(op.inputs[2]) + of(op.inputs[1])
    if not isinstance(op, TensorOp):
        return sum(map(of, dict.fromkeys((*op.operands, *op.results))))
    return _written(op, of) + sum(_read(op, of))


def _written(op: TensorOp, of: "_Bytes") -> int:
    """The bytes of each result that are written."""
    if isinstance(op, FusionOp):
        computed, update = ending(op.yielded[0])
        if update is not None:
            return of(computed)
    return sum(map(of, op.res or op.outs))


def reads_part(op: Operation, value: SSAValue) -> bool:
    """Whether an operation or group reads no more of an operand than what it takes from
    it, or puts into it."""
    if not isinstance(op, FusionOp):
        return _reads_part(op, value)
    arguments = zip(op.inputs, op.body.block.args, strict=True)
    inside = [argument for operand, argument in arguments if operand is value]
    return all(_reads_part(use.operation, x) for x in inside for use in x.uses)


def _reads_part(op: Operation, value: SSAValue) -> bool:
    taken = DynamicSliceOp, GatherOp, SliceOp
    put_into = DynamicUpdateSliceOp, ScatterOp
    return isinstance(op, (*taken, *put_into)) and value is op.inputs[0]


def time(op: Operation) -> int:
    """Nanoseconds that an operation is estimated to take, those in regions included."""
    if isinstance(op, _CONTROL):
        return _over_regions(op, time)
    return time_without_library(op) + time_to_start_library(op)


def time_without_library(op: Operation) -> int:
    """The same, if all operations started as soon as loop nests."""
    if _is_free(op):
        return 0
    if isinstance(op, _CONTROL):
        return _over_regions(op, time_without_library)
    bytes = _moved(op, _bytes_in_vectors) + sum(map(_beside_slices, members(op)))
    moving = time_to_move(bytes)
    packing = sum(map(_packing, members(op)))
    return LAUNCH + max(moving, arithmetic(op)) + packing


def time_to_start_library(op: Operation) -> int:
    """Nanoseconds that libraries take to start the contractions of a group."""
    return sum(map(_of_library, members(op)))


def _of_library(op: Operation) -> int:
    match op:
        case DotGeneralOp():
            return 0 if _is_nest(op) else LIBRARY + _batch(op) * MATRIX
        case ConvolutionOp():
            return LIBRARY + MATRIX
        case _:
            return 0


def time_to_pack(op: Operation, value: SSAValue) -> int:
    """Nanoseconds that libraries take to pack an operand of an operation or group
    before they multiply."""
    if isinstance(op, FusionOp):
        arguments = zip(op.inputs, op.body.block.args, strict=True)
        inside = [a for operand, a in arguments if operand is value]
        users = ((use.operation, a) for a in inside for use in a.uses)
        return sum(time_to_pack(user, argument) for user, argument in users)
    if isinstance(op, ConvolutionOp):
        labels = zip(op.inputs, op.labels, strict=False)
        return sum(_reordering(op, x, own) for x, own in labels if x is value)
    if not isinstance(op, DotGeneralOp) or _is_nest(op):
        return 0
    left, right = op.inputs
    side = 1 if value is right else 0
    is_along_sums = len(_shape_of(value)) - 1 in op.contracting[side]
    if value is right:
        bytes_per_ns = TRANSPOSED_PER_NS if is_along_sums else PACKED_PER_NS
    elif value is left and not is_along_sums:
        bytes_per_ns = TRANSPOSED_PER_NS
    else:
        return 0
    return round(2 * _bytes(value) / bytes_per_ns)


def _packing(op: Operation) -> int:
    values = dict.fromkeys(op.inputs if isinstance(op, TensorOp) else op.operands)
    packing = sum(time_to_pack(op, value) for value in values)
    if isinstance(op, ConvolutionOp):
        packing += _reordering(op, (op.res or op.outs)[0], op.labels[2])
    return packing


def _reordering(op: ConvolutionOp, value: SSAValue, labels: str) -> int:
    """Nanoseconds to bring what a convolution reads or writes to another layout, if its
    features are not innermost. One of windows of one element multiplies matrices."""
    _, kernel, result = map(_places, _typed(op), op.labels)
    is_product = 1 in (prod(kernel), prod(result))
    if is_product or not labels[-1].isdigit():
        return 0
    return round(2 * _bytes(value) / REORDERED_PER_NS)


def _typed(op: ConvolutionOp) -> Sequence[AnyTensor]:
    """The types of what a convolution reads and writes."""
    return [*(tensor_type_of(value.type) for value in op.inputs), op.declared[0]]


def _places(type: AnyTensor, labels: str) -> Sequence[int]:
    """The sizes of the dimensions of space."""
    sized = zip(labels, _shape(type), strict=True)
    return [size for label, size in sized if label.isdigit()]


def _is_nest(op: DotGeneralOp) -> bool:
    """Whether it is a loop nest (native/products.py): one with a vector, or small."""
    batch, summed = (
        prod(_shape_of(op.inputs[0])[dim] for dim in dims)
        for dims in (op.batching[0], op.contracting[0])
    )
    multiplications = prod(_shape(op.declared[0])) * summed
    is_small = multiplications <= SMALL_PRODUCT * batch
    return is_small or any(_size(value) == batch * summed for value in op.inputs)


def _batch(op: DotGeneralOp) -> int:
    """How many matrices it multiplies."""
    return prod(_shape_of(op.inputs[0])[dim] for dim in op.batching[0])


def times(
    ops: Iterable[Operation], of: Callable[[Operation], int] = time
) -> Sequence[int]:
    """The times of operations. Of those that are alike, such as those of equal layers,
    one is asked."""
    keys, known = StructuralKeys(), dict[object, int]()

    def found(op: Operation) -> int:
        if isinstance(op, _CONTROL):
            return of(op)
        values = (*op.operands, *op.results)
        around = (tensor for value in values for tensor in _part_and_whole(value))
        key = keys.of(op), *(keys.number(tensor.type) for tensor in around)
        if key not in known:
            known[key] = of(op)
        return known[key]

    return list(map(found, ops))


def arithmetic(op: Operation) -> int:
    """Nanoseconds that its FLOPs take, as part of a group that moves the bytes."""
    return round(_picoseconds(op) / 1000)


def _picoseconds(op: Operation) -> int:
    if op.regions:
        return _over_regions(op, _picoseconds)
    if isinstance(op, SelectAndScatterOp):
        return _selecting(op)
    contracted = _in_columns(op) * _contracted(op) / _contracted_per_ns(op)
    return round(1000 * (contracted + _others(op) / OTHERS_PER_NS))


def _contracted_per_ns(op: Operation) -> int:
    """FLOPs of a contraction that a library computes in a nanosecond."""
    if not isinstance(op, ConvolutionOp) or op.groups == 1:
        return CONTRACTED_PER_NS
    image, kernel, result = _typed(op)
    is_of_weights = op.batch_group_count.value.data > 1
    if is_of_weights:
        seen = _shape(image)[op.labels[0].index("b")] // op.groups
    else:
        seen = _shape(kernel)[op.labels[1].index("i")]
    if seen > 1:
        return CONTRACTED_PER_NS
    is_wide = max(_places(result, op.labels[2]), default=1) > WIDE
    return WIDE_FEATURE_PER_NS if is_of_weights and is_wide else FEATURE_PER_NS


def _selecting(op: SelectAndScatterOp) -> int:
    """Picoseconds of a kernel that computes places along the last dimension in vectors,
    unless the window moves along it (native/pooling.py)."""
    places = _shape_of(op.inputs[1])
    elements = prod(op.window_dimensions.get_values()) * prod(places)
    moves = op.window_dimensions, op.window_strides
    is_along = any(move.get_values()[-1:] > (1,) for move in moves)
    each = SELECTED_ALONE if is_along else SELECTED * _in_vectors(prod(places[-1:]))
    return round(1000 * elements * each)


def time_to_move(bytes: int) -> int:
    """Nanoseconds to read or write so many bytes."""
    return round(bytes / BYTES_PER_NS)


def time_between_rows(value: SSAValue, part: Shape) -> int:
    """Nanoseconds that a value takes longer to read or write in parts of such a shape,
    as their rows lie apart."""
    rows = _size(value) // max(_run(part, _shape_of(value)), 1)
    return rows * (ROW if _bytes(value) <= CACHED else ROW_IN_MEMORY)


def time_to_copy(bytes: int) -> int:
    """Nanoseconds that a copy of so many bytes takes."""
    return LAUNCH + time_to_move(2 * bytes)


def repetitions(op: Operation) -> int:
    """How often an operation runs in a run of its function, about."""
    around = op.parent_op()
    return _rounds(around) * repetitions(around) if around else 1


def duration(program: ModuleOp | FuncOp, of: Callable[[Operation], int] = time) -> int:
    """Nanoseconds that a program on tensors takes, where copies run beside operations.

    Each device runs its operations in order, and the copies to it beside them. Where a
    copy stands, its operand's bytes are needed no longer: what comes after it there
    waits for it. Its result's are needed from there on: it does not start earlier.

    of: the time of an operation.
    """
    return sum(
        _of_block(block, of)
        for func in (program.ops if isinstance(program, ModuleOp) else (program,))
        if isinstance(func, FuncOp)
        for block in func.body.blocks
    )


def _of_block(block: Block, of: Callable[[Operation], int]) -> int:
    free: dict[str | None, int] = {}  # when each device is done with what came so far
    waits: dict[str | None, int] = {}  # for what each device waits besides
    copies: dict[str | None, int] = {}  # when those to each device are done
    ends: dict[Operation, int] = {}
    copied = 0
    for op in block.ops:
        owners = [v.owner for v in op.operands if isinstance(v.owner, Operation)]
        ready = max([ends.get(owner, 0) for owner in owners], default=0)
        if not (needed := of(op)):
            ends[op] = ready
            continue
        device, _ = queue_of(op)
        start = max(ready, free.get(device, 0))
        if isinstance(op, DeviceCopyOp):
            ends[op] = copies[device] = max(start, copies.get(device, 0)) + needed
            source = device_of(op.operands[0].type)
            waits[source] = max(waits.get(source, 0), ends[op])
            copied += needed
        else:
            ends[op] = free[device] = max(start, waits.get(device, 0)) + needed
    return max(ends.values(), default=0) + copied // BESIDE


# Regions

_CONTROL = (
    *(ModuleOp, FuncOp, WhileOp, IfOp, scf.WhileOp, scf.IfOp),
    *(scf.ForOp, scf.ParallelOp, affine.ForOp),
)


def _over_regions(op: Operation, figure: Callable[[Operation], int]) -> int:
    """A figure of all that runs in the regions of an operation."""
    sums = [
        sum(map(figure, (inner for block in region.blocks for inner in block.ops)))
        for region in op.regions
    ]
    if isinstance(op, IfOp | scf.IfOp):
        return max(sums)
    return _rounds(op) * sum(sums)


def _rounds(op: Operation) -> int:
    """How often its regions run when an operation runs."""
    match op:
        case ReduceByOp():
            return _combined(op)
        case SortOp():
            length = _shape_of(op.inputs[0])[op.dimension.value.data]
            return _size(op.inputs[0]) * max(length - 1, 0).bit_length()
        case _:
            return iterations(op)


# FLOPs


def _contracted(op: Operation) -> int:
    """FLOPs of contractions."""
    if op.regions:
        return _over_regions(op, _contracted)
    match op:
        case DotGeneralOp():
            shape = _shape_of(op.inputs[0])
            depth = prod(shape[dim] for dim in op.contracting[0])
            return (8 if _is_complex(op) else 2) * prod(_shape(op.declared[0])) * depth
        case ConvolutionOp():
            return _of_convolution(op)
        case _:
            return 0


def _in_columns(op: Operation) -> float:
    """How many columns or features a library computes, relative to those that the
    result has."""
    match op:
        case DotGeneralOp() if not _is_nest(op):
            summed = prod(_shape_of(op.inputs[1])[dim] for dim in op.contracting[1])
            columns = _size(op.inputs[1]) // max(summed * _batch(op), 1)
        case ConvolutionOp():
            columns = _shape(op.declared[0])[op.labels[2].index("f")]
        case _:
            return 1
    return _in_whole(columns, COLUMNS)


def _of_convolution(op: ConvolutionOp) -> int:
    image, kernel, result = (
        dict(zip(labels, _shape(type), strict=True))
        for labels, type in zip(op.labels, _typed(op), strict=True)
    )
    spatial = [str(dim) for dim in range(len(image) - 2)]
    products = _meetings(
        [result[dim] for dim in spatial],
        [image[dim] for dim in spatial],
        [kernel[dim] for dim in spatial],
        op.window_strides.get_values(),
        op.padding_low.get_values(),
        op.lhs_dilation.get_values(),
        op.rhs_dilation.get_values(),
    )
    return 2 * result["b"] * kernel["o"] * kernel["i"] * products


def _others(op: Operation) -> int:
    """FLOPs of all but contractions."""
    if op.regions:
        return _over_regions(op, _others)
    match op:
        case e.BitcastConvertOp():
            return 0
        case ElementwiseOp():
            return prod(_shape(op.declared[0])) * flops_of_element(op)
        case ReduceOp():
            return _combined(op)
        case ReduceWindowOp():
            shape = _shape_of(op.inputs[0])
            if scan := op.scan(shape):
                return prod(shape) - prod(shape) // max(shape[scan[0]], 1)
            return _of_window(op, op.base_dilations, op.window_dilations)
        case SelectAndScatterOp():
            return _of_window(op) + _size(op.inputs[1])
        case ScatterOp():
            return 0 if op.kind.data == "replace" else _size(op.inputs[2])
        case MatrixOp():
            return _size(op.inputs[0]) * min(_shape_of(op.inputs[0])[-2:])
        case FftOp():
            length = prod(op.length.get_values())
            return 5 * _size(op.inputs[0]) * max(length - 1, 0).bit_length()
        case RngBitGeneratorOp():
            return RANDOM * _size((op.res or op.outs)[1])
        case _:
            return 0


def flops_of_element(op: TensorOp) -> int:
    """FLOPs of an elementwise operation for each element of its result."""
    if _is_complex(op):
        return COMPLEX.get(type(op), 2)
    return POLYNOMIALS.get(type(op), 1)


def _is_complex(op: TensorOp) -> bool:
    """Whether it computes with complex numbers."""
    return any(
        is_complex(tensor_type_of(value.type).element_type) for value in op.inputs
    )


def _combined(op: ReduceOp | ReduceByOp) -> int:
    """How often a reduction combines two elements."""
    return max(_size(op.inputs[0]) - prod(_shape(op.declared[0])), 0)


def _of_window(
    op: ReduceWindowOp | SelectAndScatterOp, *dilations: DenseArrayBase[IntegerType]
) -> int:
    """Of a window's elements in each of its places, all but the first."""
    pooled = op.declared[0] if isinstance(op, ReduceWindowOp) else op.inputs[1].type
    places = _shape(tensor_type_of(pooled))
    ones = (1,) * len(places)
    base, window = (d.get_values() for d in dilations) if dilations else (ones, ones)
    elements = _meetings(
        places,
        _shape_of(op.inputs[0]),
        op.window_dimensions.get_values(),
        op.window_strides.get_values(),
        op.padding_low.get_values(),
        base,
        window,
    )
    return max(elements - prod(places), 0)


def _meetings(*of_dimensions: Sequence[int]) -> int:
    """How often an element of a window meets one of a tensor, rather than padding or a
    hole, in all places together. Arguments as of `window_meets`, by dimension."""
    return prod(window_meets(*each) for each in zip(*of_dimensions, strict=True))


@lru_cache(maxsize=4096)
def window_meets(
    places: int,
    size: int,
    window: int,
    stride: int,
    low: int,
    base_dilation: int,
    window_dilation: int,
) -> int:
    """Along one dimension. In place p, element w of the window meets the tensor's, if
    there is one, at (stride p + window_dilation w - low) / base_dilation."""
    count = 0
    period = base_dilation // gcd(stride, base_dilation)
    for element in range(window):
        offset = window_dilation * element - low
        first = max(-(offset // stride), 0)
        last = min(((size - 1) * base_dilation - offset) // stride, places - 1)
        met = (
            p
            for p in range(first, min(first + period, last + 1))
            if (stride * p + offset) % base_dilation == 0
        )
        count += sum((last - p) // period + 1 for p in met)
    return count


# Bytes


def _is_free(op: Operation) -> bool:
    """Whether there is nothing to do when the program runs."""
    if isinstance(op, ConstantOp):
        return not op.outs
    return IN_PLACE in op.attributes or not runs(op)


_Bytes = Callable[[SSAValue], int]


def _read(op: TensorOp, of: _Bytes) -> Iterator[int]:
    """The bytes of each operand that are read."""
    if isinstance(op, FusionOp):
        arguments = dict(zip(op.inputs, op.body.block.args, strict=True))
        for value, argument in arguments.items():
            readers = [use.operation for use in argument.uses]
            yield min(of(value), _bytes_of_parts(readers, argument, of))
        return
    for value in dict.fromkeys(
        value for at, value in enumerate(op.inputs) if at not in op.SHAPE_ONLY
    ):
        yield _bytes_of_part(op, value, of)


def _bytes_of_parts(ops: Sequence[Operation], value: SSAValue, of: _Bytes) -> int:
    """How much of a value operations read, if each reads it anew."""
    return sum(_bytes_of_part(op, value, of) for op in ops)


def _bytes_of_part(op: Operation, value: SSAValue, of: _Bytes) -> int:
    """How much of an operand an operation reads."""
    if isinstance(op, DynamicUpdateSliceOp) and value is op.inputs[0]:
        return 0  # in place
    if isinstance(op, TensorOp) and _reads_part(op, value):
        return of((op.res or op.outs)[0])
    return of(value)


def _bytes_in_vectors(value: SSAValue) -> int:
    """The bytes of a value, where those of a vector that reaches across the end of a
    row count, too, if the next row lies apart."""
    return round(_bytes(value) * _in_vectors(_row(value)))


def _in_vectors(elements: int) -> float:
    """How many elements whole vectors have, relative to those in them."""
    return _in_whole(elements, LANES)


def _in_whole(elements: int, together: int) -> float:
    """How many elements there are where some are computed together, relative to those
    that are wanted."""
    return -(-elements // together) * together / max(elements, 1)


def _row(value: SSAValue) -> int:
    """The elements of a value that lie one after the other: those of the trailing
    dimensions, up to the first that is a part of a larger one."""
    if not _has_elements(value.type):
        return 0
    type = value.type
    shape = _shape_of(value)
    if isinstance(type, MemRefType):
        strides = type.get_strides()
        if not strides or None in strides or strides[-1] != 1:
            return prod(shape)
        rows, length = zip(shape, strides, strict=True), 1
        for size, stride in reversed(list(rows)):
            if stride != length and size != 1:
                break
            length *= size
        return length
    part, whole = _part_and_whole(value)
    return prod(shape) if part is whole else _run(_shape_of(part), _shape_of(whole))


def _run(part: Shape, whole: Shape) -> int:
    """The elements of a part of a tensor that lie one after the other."""
    length = 1
    for size, all in reversed(list(zip(part, whole, strict=True))):
        length *= size
        if size != all:
            break
    return length


def _beside_slices(op: Operation) -> int:
    """The bytes in the lines that a gather reads, but beside its slices, and in the
    vectors that reach across the ends of rows which a concatenation writes."""
    if isinstance(op, ConcatenateOp):
        whole = _shape_of((op.res or op.outs)[0])
        vectors = (_in_vectors(_run(_shape_of(part), whole)) for part in op.inputs)
        each = zip(op.inputs, vectors, strict=True)
        return sum(round(_bytes(part) * (vector - 1)) for part, vector in each)
    if not isinstance(op, GatherOp):
        return 0
    sizes = tuple(map(typical, op.sizes_in("slice_sizes")))
    run = _run(sizes, _shape_of(op.inputs[0]))
    return round(_bytes((op.res or op.outs)[0]) * (_in_whole(run, LINE) - 1))


def _part_and_whole(value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The tensor that a value is a part of in memory, and the value as it is there:
    perhaps a reshape of it. Twice the value, if it is no part."""
    if isinstance(value.owner, SliceOp) and not value.owner.outs:
        return value, value.owner.inputs[0]
    for use in value.uses:
        op = use.operation
        if is_in_place(op):
            return value, op.results[0]
        if is_reshape(op):
            part, whole = _part_and_whole(op.result)
            if part is not whole:
                return part, whole
    return value, value


def _bytes(value: SSAValue) -> int:
    if not _has_elements(value.type):
        return 0
    return typical_bytes(tensor_type_of(value.type))


def _has_elements(type: Attribute) -> bool:
    return isinstance(type, TensorType | VariableType | MemRefType)


def _shape(type: AnyTensor) -> Shape:
    return tuple(
        TYPICAL if size == DYNAMIC_INDEX else typical(size) for size in shape_of(type)
    )


def _shape_of(value: SSAValue) -> Shape:
    return _shape(tensor_type_of(value.type))


def _size(value: SSAValue) -> int:
    return prod(_shape_of(value))
