"""A cost model of operations: estimates the bytes that they move, and their time.

    %r = tgraph.dot_general %a, %b       9,437,184 bytes, 2.0 ms
         (96x128x64, 96x64x128)

Bytes are the bytes read and written in memory; each operand counts once. A slice, a
gather or an update in place counts only the part of the operand that it accesses.

Time follows the roofline model (Williams, Waterman and Patterson, 2009): the maximum of
the time to move the bytes and the time to compute the FLOPs, plus a constant launch
time. A library takes additional time to start a contraction, and each matrix of its
batch. Before a library multiplies, it packs the right matrix, and the left matrix if
that is transposed: it copies them into the order in which it reads them (Goto and van
de Geijn, "Anatomy of high-performance matrix multiplication", 2008). Packing with a
transposition takes twice as long. A library also copies the images and kernels of
convolutions whose features are not innermost. Processors compute and move whole
vectors. Time therefore rounds up the columns of a product, the output features of a
convolution, and the elements of a row that is not adjacent to the next row. A gather
reads whole cache lines. Convolutions in groups of few features take additional time to
load what they multiply. `benchmarks/cost.py` measured the constants on one core, and
compares the estimates with kernels. Symbolic sizes count as typical sizes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import starmap
from math import prod

from xdsl.dialects import affine, scf
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    MemRefType,
    ModuleOp,
    TensorType,
    i8,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..dialects.sizes.symbolic import typical
from ..dialects.structural_keys import StructuralKeys
from ..dialects.tgraph.base import (
    IN_PLACE,
    AnyTensor,
    Shape,
    TensorOp,
    VariableType,
    device_of,
    tensor_type_of,
    value_bytes,
)
from ..dialects.tgraph.elements import ui8
from ..dialects.tgraph.fusing import ending
from ..dialects.tgraph.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    ScatterOp,
)
from ..dialects.tgraph.reducing import ConvolutionOp, DotGeneralOp, SelectAndScatterOp
from ..dialects.tgraph.shaping import ConcatenateOp, ConstantOp, DeviceCopyOp, SliceOp
from ..dialects.tgraph.structure import FusionOp, IfOp, WhileOp
from ..planning.scheduling.makespan import BESIDE
from .concatenations import is_in_place, is_reshape
from .dependencies import queue_of, runs
from .flops import (
    contracted_flops,
    other_flops,
    over_regions,
    rounds,
    types_of,
    typical_shape,
    typical_shape_of,
    typical_size,
)
from .functions import is_constant
from .operations import Fused, members, operands_of

LAUNCH = 100
"""Nanoseconds to start an operation. Measured: 13 in a tape of native calls, 3,000 for
NumPy (`benchmarks/runtime.py dispatch`)."""

LAUNCH_IN_LOOP = 13
"""Nanoseconds to start an operation in a loop that is one native call: measured as for
`LAUNCH`."""

LIBRARY = 700
"""Additional nanoseconds for a library to start a contraction or convolution."""

MATRIX = 50
"""Additional nanoseconds for a library to start each matrix of a batch."""

SMALL_PRODUCT = 512
"""The most multiplications in a product of two matrices for which a loop nest is faster
than a library."""

LANES = 8
"""Elements of a vector register."""

LINE = 16
"""Elements of a cache line. A gather reads whole lines."""

COLUMNS = 16
"""Columns of a product, or features of a convolution, that a library computes at once.
Fewer take as long."""

CACHED = 8 << 20
"""The largest tensor, in bytes, that stays in a cache between reads of its parts."""

ROW, ROW_IN_MEMORY = 1, 10
"""Nanoseconds to reach the next row of a part of a tensor: in a cache, and in memory,
where the hardware prefetcher does not predict the row."""

SELECTED, SELECTED_ALONE = 0.1, 1.2
"""Nanoseconds for the gradient of pooling to compare an element of a window: in
vectors, and one by one."""

BYTES_PER_NS, FAR_BYTES_PER_NS = 50, 16
"""Memory bandwidth of one core, in bytes per nanosecond (GB/s): of data in its L2
cache, and of other data. Measured on a Xeon, in training steps: operations that move up
to 500 KB 54, 1 MB 36, 2 MB 24, and more 15 to 20."""

NEAR = 1 << 19
"""The bytes that stay in a core's L2 cache between operations."""

CACHE = 1 << 21
"""The bytes of a core's L2 cache."""

MANY_ROWS = 64
"""From this number of rows on, native code copies each panel of a product's right
matrix (native/panels.py): that takes less time than reading it where it lies. For 256
rows of 1024 columns and 256 sums, reading it takes a tenth longer; for 16 rows, copying
it takes a third longer."""

PANEL_BYTES_PER_NS = 70
"""The bytes of this matrix, if it is in a core's L2 cache, for which each further
product of fewer rows takes a nanosecond longer. Measured on a Xeon for 8 to 32 rows and
matrices of 256 KB to 2 MB: 70 to 500."""

CONTRACTED_PER_NS = 100
"""FLOPs of contractions that one core computes per nanosecond."""

SIGNED_PER_NS, MIXED_PER_NS = 200, 400
"""FLOPs per nanosecond, on one core, of contractions of 8-bit integers: of two signed
or two unsigned ones, and of an unsigned and a signed one, which processors multiply
directly (VNNI). Measured on a Xeon: 2.2 and 3.9 times the rate of f32."""

PACKED_PER_NS, TRANSPOSED_PER_NS = 100, 50
"""Bytes that a library reads and writes per nanosecond while it packs a matrix: in the
order of its rows, and transposed."""

REORDERED_PER_NS = 20
"""Bytes that a library reads and writes per nanosecond while it converts tensors of a
convolution between channels first and the layout of its kernels. Measured on a Xeon: 26
to 38 for tensors in its caches, 10 to 28 for others."""

FEW_FEATURES = 4
"""The most features of the image from which a convolution in groups computes a feature
of the result such that loads take most of the time."""

FEATURE_PER_NS, FEATURE_BYTES_PER_NS = 70, 24
"""FLOPs per nanosecond, on one core, of convolutions with so few features per group,
and the bytes of images and results that they read and write per nanosecond besides. For
3x3 windows, these are 30 GFLOP/s, for 5x5 48, for 7x7 57. Measured on a Xeon, in a
program that is called with new arrays: 23 to 40, 30 to 59 and 35 to 65; 3x3 windows of
8-bit integers 19 to 31."""

OTHERS_PER_NS = 80
"""FLOPs of other operations that one core computes per nanosecond."""


_CONTROL = (
    *(ModuleOp, FuncOp, WhileOp, IfOp, scf.WhileOp, scf.IfOp),
    *(scf.ForOp, scf.ParallelOp, affine.ForOp),
)
"""Operations whose regions run one after the other."""


def moved(op: Operation) -> int:
    """The bytes that an operation or group reads and writes. For a loop or branch, the
    bytes of its operands and results."""
    return _moved(op, _bytes)


def moved_by(group: Fused) -> int:
    """The bytes that a group of operations reads and writes once it is a fusion."""
    total = _written(group.root, _bytes)
    in_part = DynamicSliceOp, GatherOp, ScatterOp
    if not any(isinstance(op, in_part) for op in group.ops):
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
    if not isinstance(op, TensorOp):
        return sum(map(of, dict.fromkeys((*op.operands, *op.results))))
    return _written(op, of) + sum(_read(op, of))


def _written(op: TensorOp, of: "_Bytes") -> int:
    """The bytes that are written to the results, and read again by scatters."""
    if isinstance(op, FusionOp):
        computed, update = ending(op.yielded[0])
        if update is not None:
            return of(computed)
        if isinstance(root := computed.owner, ScatterOp):
            return _written(root, of)
    if isinstance(op, ScatterOp):  # in place
        is_filled = isinstance(op.inputs[0].owner, ConstantOp)
        return 2 * of(op.inputs[2]) + (of(op.inputs[0]) if is_filled else 0)
    return sum(map(of, op.res or op.outs))


def reads_part(op: Operation, value: SSAValue) -> bool:
    """Whether an operation or group accesses only a part of operand `value`: it takes
    the part out (slice, gather), or writes it in place (update, scatter)."""
    return all(starmap(_reads_part, _readers(op, value)))


def _reads_part(op: Operation, value: SSAValue) -> bool:
    taken = DynamicSliceOp, GatherOp, SliceOp
    put_into = DynamicUpdateSliceOp, ScatterOp
    return isinstance(op, (*taken, *put_into)) and value is op.inputs[0]


def time(op: Operation) -> int:
    """The estimated nanoseconds that an operation takes, with its regions."""
    if isinstance(op, _CONTROL):
        return over_regions(op, time)
    return time_without_library(op) + time_to_start_library(op)


def timing() -> Callable[[Operation], int]:
    """A function like `time`, which asks for the time of each operation only once. For
    loops within loops, while their operations do not change."""

    @cache
    def kept(op: Operation) -> int:
        return over_regions(op, kept) if isinstance(op, _CONTROL) else time(op)

    return kept


def time_without_library(op: Operation, launch: int = LAUNCH) -> int:
    """The estimated nanoseconds of an operation, without starting libraries.

    launch: the nanoseconds to start an operation.
    """
    if _is_free(op):
        return 0
    if isinstance(op, _CONTROL):
        return over_regions(op, partial(time_without_library, launch=launch))
    bytes = _moved(op, _bytes_in_vectors) + sum(map(_beside_slices, members(op)))
    moving = time_to_move(bytes)
    packing = sum(map(_packing, members(op)))
    return launch + max(moving, arithmetic(op)) + packing


def time_together(ops: Sequence[Operation]) -> int:
    """The estimated nanoseconds of operations that are fused into one group, whose
    result is that of the last: values between them are not stored."""
    made = {value for op in ops for value in op.results}
    read: dict[SSAValue, int] = {}
    for op in ops:
        for value in dict.fromkeys(op.operands):
            if value not in made and not _is_free(op):
                bytes = _bytes_of_part(op, value, _bytes_in_vectors)
                read[value] = min(read.get(value, 0) + bytes, _bytes_in_vectors(value))
    written = sum(map(_bytes_in_vectors, ops[-1].results))
    moving = time_to_move(sum(read.values()) + written)
    computing = round(sum(map(_picoseconds, ops)) / 1000)
    starting = sum(_packing(op) + time_to_start_library(op) for op in ops)
    return LAUNCH + max(moving, computing) + starting


def time_with_native_loops(op: Operation) -> int:
    """Like `time_without_library`, for loops that run as one native call each."""
    is_loop = isinstance(op, _CONTROL)
    return time_without_library(op, LAUNCH_IN_LOOP if is_loop else LAUNCH)


def time_to_start_library(op: Operation) -> int:
    """The nanoseconds that libraries take to start the contractions of a group."""
    return sum(map(_of_library, members(op)))


def _of_library(op: Operation) -> int:
    match op:
        case DotGeneralOp():
            return 0 if _is_nest(op) else LIBRARY + _batch(op) * MATRIX
        case ConvolutionOp():
            return LIBRARY + MATRIX
        case _:
            return 0


def is_packed(op: Operation, value: SSAValue) -> bool:
    """Whether the kernel of an operation or group packs its operand `value` only once,
    before the program runs: a parameter or constant in a convolution, or in a product
    of 8-bit integers (native/integers.py). For products of f32, libraries do so, too,
    but products with fewer rows then take longer in other ways, so the packing stays in
    the estimate."""

    def packs(member: Operation) -> bool:
        is_of_bytes = _is_byte(value) and _is_of_bytes(member)
        return is_of_bytes or isinstance(member, ConvolutionOp)

    return is_constant(value) and any(map(packs, members(op)))


def time_to_pack(op: Operation, value: SSAValue) -> int:
    """The nanoseconds that libraries take to pack `value`, an operand of an operation
    or group, before they multiply."""
    if is_packed(op, value):
        return 0
    if isinstance(op, FusionOp):
        return sum(starmap(time_to_pack, _readers(op, value)))
    if isinstance(op, ConvolutionOp):
        labels = zip(op.inputs, op.labels, strict=False)
        return sum(_reordering(op, x, own) for x, own in labels if x is value)
    if not isinstance(op, DotGeneralOp) or _is_nest(op):
        return 0
    left, right = op.inputs
    side = 1 if value is right else 0
    is_along_sums = len(typical_shape_of(value)) - 1 in op.contracting[side]
    if value is right:
        bytes_per_ns = TRANSPOSED_PER_NS if is_along_sums else PACKED_PER_NS
    elif value is left and not is_along_sums:
        bytes_per_ns = TRANSPOSED_PER_NS
    else:
        return 0
    return round(2 * _bytes(value) / bytes_per_ns)


def time_to_read_again(op: Operation, value: SSAValue) -> int:
    """The nanoseconds that an operation or group takes to read all of `value`, an
    operand, or to pack it, for each further part of its result."""
    bytes = 0 if isinstance(value.type, VariableType) else _bytes(value)
    readers = _readers(op, value)
    if bytes <= CACHE and readers and all(starmap(_multiplies_few_rows, readers)):
        return round(bytes / PANEL_BYTES_PER_NS)
    return max(time_to_move(bytes), time_to_pack(op, value))


def _readers(op: Operation, value: SSAValue) -> list[tuple[Operation, SSAValue]]:
    """The operations of a group that read `value`, with its name there; otherwise the
    operation itself."""
    if not isinstance(op, FusionOp):
        return [(op, value)]
    arguments = zip(op.inputs, op.body.block.args, strict=True)
    return [
        (use.operation, argument)
        for operand, argument in arguments
        if operand is value
        for use in argument.uses
    ]


def _multiplies_few_rows(op: Operation, value: SSAValue) -> bool:
    """Whether native code multiplies a few rows by `value`, a matrix that it then reads
    where it lies (native/panels.py)."""
    if not isinstance(op, DotGeneralOp) or value is not op.inputs[1]:
        return False
    if op.contracting[1] != (len(op.batching[1]),) or len(op.contracting[1]) != 1:
        return False
    left = op.inputs[0]
    summed = prod(typical_shape_of(left)[dim] for dim in op.contracting[0])
    rows = typical_size(left) // max(summed * _batch(op), 1)
    return rows < MANY_ROWS and all(
        isinstance(tensor_type_of(v.type).element_type, Float32Type | Float64Type)
        for v in op.inputs
    )


def _packing(op: Operation) -> int:
    values = dict.fromkeys(op.inputs if isinstance(op, TensorOp) else op.operands)
    packing = sum(time_to_pack(op, value) for value in values)
    if isinstance(op, ConvolutionOp):
        packing += _reordering(op, (op.res or op.outs)[0], op.labels[2])
    return packing


def _reordering(op: ConvolutionOp, value: SSAValue, labels: str) -> int:
    """The nanoseconds to convert a tensor of a convolution to another layout, if its
    features are not innermost. Convolutions with one element per window, or with one
    place, are matrix products and need no conversion; nor do those that native code
    computes plane by plane."""
    _, kernel, result = map(_places, types_of(op), op.labels)
    is_product = 1 in (prod(kernel), prod(result))
    if is_product or not labels[-1].isdigit() or _is_by_planes(op):
        return 0
    return round(2 * _bytes(value) / REORDERED_PER_NS)


def _places(type: AnyTensor, labels: str) -> Sequence[int]:
    """The sizes of the spatial dimensions."""
    sized = zip(labels, typical_shape(type), strict=True)
    return [size for label, size in sized if label.isdigit()]


def _is_nest(op: DotGeneralOp) -> bool:
    """Whether a loop nest computes it (native/products.py): with a vector, or small."""
    batch, summed = (
        prod(typical_shape_of(op.inputs[0])[dim] for dim in dims)
        for dims in (op.batching[0], op.contracting[0])
    )
    multiplications = prod(typical_shape(op.declared[0])) * summed
    is_small = multiplications <= SMALL_PRODUCT * batch
    return is_small or any(typical_size(value) == batch * summed for value in op.inputs)


def _batch(op: DotGeneralOp) -> int:
    """The number of matrix products in the batch."""
    return prod(typical_shape_of(op.inputs[0])[dim] for dim in op.batching[0])


def times(
    ops: Iterable[Operation], of: Callable[[Operation], int] = time
) -> Sequence[int]:
    """The times of operations. Calls `of` once for structurally equal operations, such
    as those of equal layers."""
    keys, known = StructuralKeys(), dict[object, int]()
    part_and_whole = cache(_part_and_whole)  # a value may have thousands of readers

    def found(op: Operation) -> int:
        if isinstance(op, _CONTROL):
            return of(op)
        values = (*op.operands, *op.results)
        around = (tensor for value in values for tensor in part_and_whole(value))
        types = (keys.number(tensor.type) for tensor in around)
        packed = (is_packed(op, value) for value in op.operands)
        key = keys.of(op), *types, *packed
        if key not in known:
            known[key] = of(op)
        return known[key]

    return list(map(found, ops))


def arithmetic(op: Operation) -> int:
    """The nanoseconds that the FLOPs of an operation take, without moving bytes."""
    return round(_picoseconds(op) / 1000)


def _picoseconds(op: Operation) -> int:
    if op.regions:
        return over_regions(op, _picoseconds)
    if isinstance(op, SelectAndScatterOp):
        return _selecting(op)
    contracted = _in_columns(op) * contracted_flops(op) / _contracted_per_ns(op)
    others = other_flops(op) / OTHERS_PER_NS
    return round(1000 * (contracted + _loading(op) + others))


def _contracted_per_ns(op: Operation) -> int:
    """The FLOPs of a contraction that a library computes per nanosecond."""
    if not isinstance(op, ConvolutionOp) or not _has_few_features(op):
        return _dense_per_ns(op)
    return FEATURE_PER_NS


def _loading(op: Operation) -> float:
    """The nanoseconds that a convolution of few features takes besides its FLOPs."""
    if not isinstance(op, ConvolutionOp) or not _has_few_features(op):
        return 0
    image, result = op.inputs[0], (op.res or op.outs)[0]
    return (_bytes(image) + _bytes(result)) / FEATURE_BYTES_PER_NS


def _has_few_features(op: ConvolutionOp) -> bool:
    """Whether a convolution is in groups of few features."""
    if op.groups == 1:
        return False
    image, kernel, _ = types_of(op)
    if op.batch_group_count.value.data > 1:
        seen = typical_shape(image)[op.labels[0].index("b")] // op.groups
    else:
        seen = typical_shape(kernel)[op.labels[1].index("i")]
    return seen <= FEW_FEATURES


def _is_by_planes(op: ConvolutionOp) -> bool:
    """Whether native code computes it where the images lie, whose rows are contiguous
    (native/planes.py, native/taps.py)."""
    if not _has_few_features(op) or _is_of_bytes(op):
        return False
    image, kernel, result = op.labels
    if op.batch_group_count.value.data == 1:
        return image[-1].isdigit() and result[-1].isdigit()
    made = typical_shape_of(op.inputs[1])[kernel.index("o")]
    return image[-1].isdigit() and kernel[-1].isdigit() and made == op.groups


def _dense_per_ns(op: Operation) -> int:
    """The FLOPs of a contraction without groups that one core computes per nanosecond,
    by the types of its operands."""
    if not _is_of_bytes(op):
        return CONTRACTED_PER_NS
    left, right = (tensor_type_of(v.type).element_type for v in op.operands[:2])
    return SIGNED_PER_NS if left == right else MIXED_PER_NS


def _is_of_bytes(op: Operation) -> bool:
    """Whether an operation is a contraction of 8-bit integers."""
    is_contraction = isinstance(op, DotGeneralOp | ConvolutionOp)
    return is_contraction and all(map(_is_byte, op.inputs))


def _is_byte(value: SSAValue) -> bool:
    if not _has_elements(value.type):
        return False
    return tensor_type_of(value.type).element_type in (i8, ui8)


def _in_columns(op: Operation) -> float:
    """The number of columns or features that a library computes, divided by the number
    that the result has."""
    match op:
        case DotGeneralOp() if not _is_nest(op):
            summed = prod(
                typical_shape_of(op.inputs[1])[dim] for dim in op.contracting[1]
            )
            columns = typical_size(op.inputs[1]) // max(summed * _batch(op), 1)
        case ConvolutionOp() if _is_by_planes(op):
            is_of_weights = op.batch_group_count.value.data > 1
            rows = typical_shape(types_of(op)[1 if is_of_weights else 2])
            return _in_vectors(rows[-1])
        case ConvolutionOp():
            columns = typical_shape(op.declared[0])[op.labels[2].index("f")]
        case _:
            return 1
    return _in_whole(columns, COLUMNS)


def _selecting(op: SelectAndScatterOp) -> int:
    """The picoseconds of the gradient of pooling (native/pooling.py). The kernel
    computes places in vectors along the last dimension, unless the window extends or
    moves along it."""
    places = typical_shape_of(op.inputs[1])
    window = op.window(len(places))
    elements = prod(dim.size for dim in window) * prod(places)
    is_along = any(max(dim.size, dim.stride) > 1 for dim in window[-1:])
    each = SELECTED_ALONE if is_along else SELECTED * _in_vectors(prod(places[-1:]))
    return round(1000 * elements * each)


def time_to_move(bytes: int) -> int:
    """The nanoseconds to read or write this number of bytes. What exceeds a core's L2
    cache comes from memory."""
    far = max(bytes - NEAR, 0)
    return round((bytes - far) / BYTES_PER_NS + far / FAR_BYTES_PER_NS)


def time_between_rows(value: SSAValue, part: Shape) -> int:
    """The additional nanoseconds to read or write a value in parts of shape `part`,
    whose rows are not adjacent in memory."""
    rows = typical_size(value) // max(_run(part, typical_shape_of(value)), 1)
    return rows * (ROW if _bytes(value) <= CACHED else ROW_IN_MEMORY)


def time_to_copy(bytes: int) -> int:
    """The nanoseconds that a copy of this number of bytes takes."""
    return LAUNCH + time_to_move(2 * bytes)


def repetitions(op: Operation) -> int:
    """An estimate of how often an operation runs in one run of its function."""
    around = op.parent_op()
    return rounds(around) * repetitions(around) if around else 1


def duration(program: ModuleOp | FuncOp, of: Callable[[Operation], int] = time) -> int:
    """The nanoseconds that a program on tensors takes, with copies between devices.

    Each device runs its operations in order, and copies to the device run concurrently.
    Later operations on the source device wait for a copy, because they may reuse the
    bytes of its operand. A copy starts only after the operations before it on the
    target device, because its result is not live earlier. A copy also slows down other
    operations (`BESIDE`).

    of: the time of an operation.
    """
    return sum(
        _of_block(block, of)
        for func in (program.ops if isinstance(program, ModuleOp) else (program,))
        if isinstance(func, FuncOp)
        for block in func.body.blocks
    )


def _of_block(block: Block, of: Callable[[Operation], int]) -> int:
    free: dict[str | None, int] = {}  # end of the last operation on each device
    waits: dict[str | None, int] = {}  # end of the last copy from each device
    copies: dict[str | None, int] = {}  # end of the last copy to each device
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


# Bytes


def _is_free(op: Operation) -> bool:
    """Whether an operation does nothing when the program runs."""
    if isinstance(op, ConstantOp):
        return not op.outs
    return IN_PLACE in op.attributes or not runs(op)


_Bytes = Callable[[SSAValue], int]


def _read(op: TensorOp, of: _Bytes) -> Iterator[int]:
    """The bytes that are read from each operand."""
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
    """The bytes of a value that operations read, if each reads it separately."""
    return sum(_bytes_of_part(op, value, of) for op in ops)


def _bytes_of_part(op: Operation, value: SSAValue, of: _Bytes) -> int:
    """The bytes of operand `value` that an operation reads."""
    if isinstance(op, DynamicUpdateSliceOp | ScatterOp) and value is op.inputs[0]:
        return 0  # in place
    if isinstance(op, TensorOp) and _reads_part(op, value):
        return of((op.res or op.outs)[0])
    return of(value)


def _bytes_in_vectors(value: SSAValue) -> int:
    """The bytes of a value, with each row that is not adjacent to the next rounded up
    to whole vectors."""
    return round(_bytes(value) * _in_vectors(_row(value)))


def _in_vectors(elements: int) -> float:
    """The elements of the vectors that hold `elements`, divided by `elements`."""
    return _in_whole(elements, LANES)


def _in_whole(elements: int, together: int) -> float:
    """`elements` rounded up to a multiple of `together`, divided by `elements`."""
    return -(-elements // together) * together / max(elements, 1)


def _row(value: SSAValue) -> int:
    """The number of contiguous elements of a value: the product of the trailing
    dimensions up to the first one that is a part of a larger dimension."""
    if not _has_elements(value.type):
        return 0
    type = value.type
    shape = typical_shape_of(value)
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
    if part is whole:
        return prod(shape)
    return _run(typical_shape_of(part), typical_shape_of(whole))


def _run(part: Shape, whole: Shape) -> int:
    """The number of contiguous elements of a part of a tensor."""
    length = 1
    for size, all in reversed(list(zip(part, whole, strict=True))):
        length *= size
        if size != all:
            break
    return length


def _beside_slices(op: Operation) -> int:
    """The additional bytes of whole cache lines that a gather reads, and of whole
    vectors at the ends of the rows that a concatenation writes; else 0."""
    if isinstance(op, ConcatenateOp):
        whole = typical_shape_of((op.res or op.outs)[0])
        vectors = (
            _in_vectors(_run(typical_shape_of(part), whole)) for part in op.inputs
        )
        each = zip(op.inputs, vectors, strict=True)
        return sum(round(_bytes(part) * (vector - 1)) for part, vector in each)
    if not isinstance(op, GatherOp):
        return 0
    sizes = tuple(map(typical, op.sizes_in("slice_sizes")))
    run = _run(sizes, typical_shape_of(op.inputs[0]))
    return round(_bytes((op.res or op.outs)[0]) * (_in_whole(run, LINE) - 1))


def _part_and_whole(value: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The value, or a reshape of it, as a part of a tensor in memory, and that tensor.
    Returns the value twice if it is not a part."""
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
    return value_bytes(value)


def _has_elements(type: Attribute) -> bool:
    return isinstance(type, TensorType | VariableType | MemRefType)
