"""The reference interpreter: runs level 1 in plain NumPy, in xDSL's framework.

It is the oracle for all faster implementations. Each operation is written in the
simplest way, returns new arrays, and shares nothing with the kernels. All values are
kept until the end of the run.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import product
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.ir import Operation, Region, SSAValue

from ...diagnostics import LocatedError
from ...dtypes import (
    Array,
    DType,
    accumulator,
    between,
    constant,
    identity,
    is_float,
    numpy_dtype,
)
from ...memory import is_memref
from .. import (
    bodies,
    elementwise,
    indexing,
    matrices,
    random,
    reducing,
    shaping,
    spectral,
)
from ..base import Shape, TensorOp
from ..callbacks import Callbacks, HostCallbackOp, function_of
from ..signature import check_one_block, signature
from ..structure import (
    AssignOp,
    FusionOp,
    IfOp,
    OnDeviceOp,
    ReadOp,
    WhileOp,
    YieldOp,
    yielded,
)
from .matrices import evaluate_matrices
from .random import random_bits


def run_reference(
    module: ModuleOp,
    inputs: Sequence[object],
    entry: str = "main",
    *,
    listeners: Sequence[Interpreter.Listener] = (),
    callbacks: Callbacks = (),
) -> list[Array]:
    """The results of `entry` for `inputs` (an initial value for each variable).

    Neither the inputs nor the variables' initial arrays are changed. The order of
    inputs and results is that of `tensorplan.dialects.tgraph.signature`. `listeners`
    get the operands and the results of each operation. `callbacks` are the functions
    that `tgraph.host_callback` calls, by number.

    Raises `LocatedError` for IR that is not tgraph on tensors, and `ValueError` or
    `TypeError` for invalid inputs.
    """
    # This loads all of xDSL's interpreters, which `evaluate` does not need.
    from xdsl.interpreters.func import FuncFunctions

    program = signature(module, entry)
    _check_supported(module)
    check_one_block(program.function)
    if len(inputs) != len(program.inputs):
        raise ValueError(
            f"the number of inputs is {len(inputs)}, expected {len(program.inputs)}"
        )
    arguments: list[Array | Variable] = []
    for index, (given, slot) in enumerate(zip(inputs, program.inputs, strict=True)):
        array = np.array(given, dtype=None if hasattr(given, "dtype") else slot.dtype)
        if array.dtype != slot.dtype:
            raise TypeError(
                f"input {index} has elements of type {array.dtype}, "
                f"expected {slot.dtype}"
            )
        if array.shape != slot.shape:
            raise ValueError(
                f"input {index} has shape {array.shape}, expected {slot.shape}"
            )
        arguments.append(Variable(array) if slot.is_variable else array)

    interpreter = Interpreter(module, listeners=tuple(listeners))
    interpreter.register_implementations(TGraphFunctions(callbacks))
    interpreter.register_implementations(FuncFunctions())
    with np.errstate(all="ignore"):
        returned = interpreter.call_op(program.function, tuple(arguments))

    terminator = program.function.body.block.last_op
    assert terminator is not None
    values = dict(zip(terminator.operands, returned, strict=True))
    results: list[Array] = []
    for result, holder in zip(program.results, program.holders, strict=True):
        if result.input is None:
            results.append(values[holder])
        else:
            variable = arguments[result.input]
            assert isinstance(variable, Variable)
            results.append(variable.contents)
    return results


@dataclass
class Variable:
    """The value of a `!tgraph.variable`. Assignments replace `contents`, and never
    write into it."""

    contents: Array


def _check_supported(module: ModuleOp) -> None:
    known = (
        bodies.ReduceByOp,
        bodies.SortOp,
        HostCallbackOp,
        matrices.MatrixOp,
        random.RngBitGeneratorOp,
        ModuleOp,
        FuncOp,
        CallOp,
        ReturnOp,
        ReadOp,
        AssignOp,
        OnDeviceOp,
        FusionOp,
        IfOp,
        WhileOp,
        YieldOp,
    )
    for op in module.walk():
        if not isinstance(op, known) and type(op) not in _EVALUATE:
            raise LocatedError(
                f"{op.name} is not supported by the reference interpreter, which runs "
                "tgraph on tensors",
                op,
            )
        if isinstance(op, TensorOp) and any(is_memref(v) for v in op.operands):
            raise LocatedError(
                f"{op.name} is on memrefs, expected tensors: the reference interpreter "
                "runs level 1",
                op,
            )


Evaluate: TypeAlias = Callable[..., Array]
"""`(op, *input arrays) -> result array`, for an operation with one result."""

_EVALUATE: dict[type[Operation], Evaluate] = {}


def _evaluates(*ops: type[TensorOp]) -> Callable[[Evaluate], Evaluate]:
    def register(function: Evaluate) -> Evaluate:
        _EVALUATE.update(dict.fromkeys(ops, function))
        return function

    return register


def can_evaluate(op: TensorOp) -> bool:
    """Whether `evaluate` supports the operation."""
    return type(op) in _EVALUATE


def evaluate(op: TensorOp, inputs: Sequence[Array]) -> Array:
    """The result of a single operation on tensors that has one result.

    An elementwise operation accepts inputs of any common shape, whatever its types say.
    Raises `LocatedError` for an operation that is not supported.
    """
    if not can_evaluate(op):
        raise LocatedError(
            f"{op.name} is not supported by the reference interpreter", op
        )
    with np.errstate(all="ignore"):
        return _EVALUATE[type(op)](op, *inputs)


def _result_dtype(op: TensorOp) -> DType:
    return numpy_dtype(op.declared[0].element_type, op)


def _result_shape(op: TensorOp) -> Shape:
    return op.declared[0].get_shape()


# Elementwise


def _trunc_divide(a: int, b: int) -> int:
    """As in XLA: -1 for a division by zero."""
    if b == 0:
        return -1
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _trunc_remainder(a: int, b: int) -> int:
    """As in XLA: the dividend for a division by zero."""
    return a if b == 0 else a - b * _trunc_divide(a, b)


def _integer_power(a: int, b: int) -> int:
    if b >= 0:
        return pow(a, b, 1 << 64)
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


def _on_integers(
    function: Callable[[int, int], int], on_floats: Callable[[Array, Array], Array]
) -> Callable[[Array, Array], Array]:
    """Computes integers one element at a time; results wrap around."""

    def evaluate(x: Array, y: Array) -> Array:
        if x.dtype.kind not in "iu":
            return on_floats(x, y)
        pairs = zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
        mask = (1 << 8 * x.dtype.itemsize) - 1
        bits = [function(int(a), int(b)) & mask for a, b in pairs]
        unsigned = np.array(bits, f"uint{8 * x.dtype.itemsize}").reshape(x.shape)
        return unsigned.view(x.dtype)

    return evaluate


def _clamp(low: Array, x: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _quotient(x: Array, y: Array) -> Array:
    """Divides; complex numbers as in C, where NumPy's infinities and zeros give NaN."""
    result = np.divide(x, y)
    if x.dtype.kind == "c":
        for place in np.ndindex(x.shape):
            result[place] = _complex_quotient(x[place], y[place], result[place])
    return result


def _complex_quotient(x: Any, y: Any, quotient: Any) -> Any:
    """A complex quotient by annex G.5.1 of the C standard."""
    if y == 0:
        scale, product = np.copysign(np.inf, y.real), x
    elif not (np.isnan(quotient.real) and np.isnan(quotient.imag)):
        return quotient
    elif np.isfinite(x) and np.isinf(y):
        scale, product = 0, x * np.conj(_direction(y))
    elif np.isinf(x) and np.isfinite(y):
        scale, product = np.inf, _direction(x) * np.conj(y)
    else:
        return quotient
    return complex(scale * product.real, scale * product.imag)


def _direction(x: Any) -> complex:
    """Each part that is infinite becomes 1, others 0, with their signs."""
    real, imaginary = (np.copysign(np.isinf(part), part) for part in (x.real, x.imag))
    return complex(real, imaginary)


def _logistic(x: Array) -> Array:
    return _quotient(np.ones_like(x), 1 + np.exp(-x))


def _expm1(x: Array) -> Array:
    if x.dtype.kind != "c":
        return np.expm1(x)
    return _complex(np.real(np.expm1(x)), np.imag(np.exp(x)))


def _log1p(x: Array) -> Array:
    """log(1 + x); for complex numbers near 0 from `|1 + x|^2 - 1`."""
    if x.dtype.kind != "c":
        return np.log1p(x)
    excess = np.real(x) * (2 + np.real(x)) + np.imag(x) ** 2
    far = np.log(np.abs(1 + x))
    size = np.where(np.abs(excess) < 0.5, np.log1p(excess) / 2, far)
    return _complex(size, np.angle(1 + x))


def _rsqrt(x: Array) -> Array:
    return _quotient(np.ones_like(x), np.sqrt(x))


def _on_numbers(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Computes one element at a time."""

    def evaluate(x: Array) -> Array:
        results = [function(float(number)) for number in x.ravel()]
        return np.array(results).reshape(x.shape)

    return evaluate


def _round_nearest_afz(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x.astype(np.float64)) + 0.5), x)


def _bits(x: Array) -> Array:
    return x.view(f"u{x.dtype.itemsize}")


def _complex(real: Array, imaginary: Array) -> Array:
    result = real.astype(np.result_type(real.dtype, 1j))
    result.imag = imaginary
    return result


def _popcnt(x: Array) -> Array:
    return np.bitwise_count(_bits(x))


def _count_leading_zeros(x: Array) -> Array:
    lengths = [int(n).bit_length() for n in _bits(x).ravel().tolist()]
    return 8 * x.dtype.itemsize - np.array(lengths).reshape(x.shape)


def _shifted(
    function: Callable[[Array, Array], Array], kind: str
) -> Callable[[Array, Array], Array]:
    """Shifts bits as signed ("i") or unsigned ("u") integers.

    A shift by more bits than there are shifts out all bits but the sign.
    """

    def shift(x: Array, amount: Array) -> Array:
        width = 8 * x.dtype.itemsize
        wide = _bits(x).astype("u8") if kind == "u" else x.view(f"i{width // 8}")
        rest = np.minimum(_bits(amount), width - 1).astype(wide.dtype)
        shifted = function(wide, rest)
        if kind == "u":
            shifted = np.where(_bits(amount) >= width, 0, shifted)
        return shifted.astype(f"u{width // 8}").view(x.dtype)

    return shift


_ELEMENTWISE: Mapping[type[TensorOp], Callable[..., Array]] = {
    elementwise.AbsOp: np.abs,
    elementwise.AddOp: np.add,
    elementwise.AndOp: np.bitwise_and,
    elementwise.Atan2Op: np.arctan2,
    elementwise.CbrtOp: np.cbrt,
    elementwise.CeilOp: np.ceil,
    elementwise.ClampOp: _clamp,
    elementwise.ComplexOp: _complex,
    elementwise.CosineOp: np.cos,
    elementwise.CountLeadingZerosOp: _count_leading_zeros,
    elementwise.DivideOp: _on_integers(_trunc_divide, _quotient),
    elementwise.ErfOp: _on_numbers(math.erf),
    elementwise.ErfcOp: _on_numbers(math.erfc),
    elementwise.ExponentialMinusOneOp: _expm1,
    elementwise.ExponentialOp: np.exp,
    elementwise.FloorOp: np.floor,
    elementwise.ImagOp: np.imag,
    elementwise.IsFiniteOp: np.isfinite,
    elementwise.LogOp: np.log,
    elementwise.LogPlusOneOp: _log1p,
    elementwise.LogisticOp: _logistic,
    elementwise.MaximumOp: np.maximum,
    elementwise.MinimumOp: np.minimum,
    elementwise.MultiplyOp: np.multiply,
    elementwise.NegateOp: np.negative,
    elementwise.NotOp: np.invert,
    elementwise.OrOp: np.bitwise_or,
    elementwise.PopcntOp: _popcnt,
    elementwise.PowerOp: _on_integers(_integer_power, np.power),
    elementwise.RealOp: np.real,
    elementwise.RemainderOp: _on_integers(_trunc_remainder, np.fmod),
    elementwise.RoundNearestAfzOp: _round_nearest_afz,
    elementwise.RoundNearestEvenOp: np.rint,
    elementwise.RsqrtOp: _rsqrt,
    elementwise.SelectOp: np.where,
    elementwise.ShiftLeftOp: _shifted(np.left_shift, "u"),
    elementwise.ShiftRightArithmeticOp: _shifted(np.right_shift, "i"),
    elementwise.ShiftRightLogicalOp: _shifted(np.right_shift, "u"),
    elementwise.SignOp: np.sign,
    elementwise.SineOp: np.sin,
    elementwise.SqrtOp: np.sqrt,
    elementwise.SubtractOp: np.subtract,
    elementwise.TanOp: np.tan,
    elementwise.TanhOp: np.tanh,
    elementwise.XorOp: np.bitwise_xor,
}


@_evaluates(*_ELEMENTWISE)
def _elementwise(op: TensorOp, *inputs: Array) -> Array:
    return np.asarray(_ELEMENTWISE[type(op)](*inputs), _result_dtype(op))


_COMPARE: Mapping[str, Callable[..., Array]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


@_evaluates(elementwise.CompareOp)
def _compare(op: elementwise.CompareOp, x: Array, y: Array) -> Array:
    return _COMPARE[op.direction.data](x, y)


@_evaluates(elementwise.ConvertOp)
def _convert(op: elementwise.ConvertOp, x: Array) -> Array:
    dtype = _result_dtype(op)
    if (first := between(x.dtype, dtype)) is not None:
        x = x.astype(first)
    return x != 0 if dtype.kind == "b" else x.astype(dtype)


@_evaluates(elementwise.BitcastConvertOp)
def _bitcast_convert(op: elementwise.BitcastConvertOp, x: Array) -> Array:
    return x.view(_result_dtype(op))


# Shaping


@_evaluates(shaping.ConstantOp)
def _constant(op: shaping.ConstantOp) -> Array:
    value = constant(op.value, _result_dtype(op))
    return np.full(_result_shape(op), value) if value.ndim == 0 else value


@_evaluates(shaping.FullLikeOp)
def _full_like(op: shaping.FullLikeOp, x: Array) -> Array:
    return np.full(x.shape, constant(op.value, x.dtype))


@_evaluates(shaping.IotaOp)
def _iota(op: shaping.IotaOp) -> Array:
    indices = np.indices(_result_shape(op))[op.dimension.value.data]
    return indices.astype(_result_dtype(op))


@_evaluates(shaping.ReshapeOp)
def _reshape(op: shaping.ReshapeOp, x: Array) -> Array:
    return x.reshape(_result_shape(op))


@_evaluates(shaping.BroadcastInDimOp)
def _broadcast_in_dim(op: shaping.BroadcastInDimOp, x: Array) -> Array:
    dims = op.broadcast_dimensions.get_values()
    order = sorted(range(len(dims)), key=lambda d: dims[d])
    shape = [1] * len(_result_shape(op))
    for dim, size in zip(dims, x.shape, strict=True):
        shape[dim] = size
    return np.broadcast_to(x.transpose(order).reshape(shape), _result_shape(op)).copy()


@_evaluates(shaping.TransposeOp)
def _transpose(op: shaping.TransposeOp, x: Array) -> Array:
    return x.transpose(op.permutation.get_values()).copy()


@_evaluates(shaping.SliceOp)
def _slice(op: shaping.SliceOp, x: Array) -> Array:
    starts = op.start_indices.get_values()
    limits = op.limit_indices.get_values()
    strides = op.strides.get_values()
    return x[tuple(map(slice, starts, limits, strides))].copy()


@_evaluates(shaping.ReverseOp)
def _reverse(op: shaping.ReverseOp, x: Array) -> Array:
    return np.flip(x, op.dimensions.get_values()).copy()


@_evaluates(shaping.ConcatenateOp)
def _concatenate(op: shaping.ConcatenateOp, *inputs: Array) -> Array:
    return np.concatenate(inputs, op.dimension.value.data)


@_evaluates(shaping.PadOp)
def _pad(op: shaping.PadOp, x: Array, value: Array) -> Array:
    low, high = op.low.get_values(), op.high.get_values()
    return _padded(
        _dilated(x, [i + 1 for i in op.interior.get_values()], value), low, high, value
    )


@_evaluates(shaping.DeviceCopyOp)
def _device_copy(op: shaping.DeviceCopyOp, x: Array) -> Array:
    return x.copy()


def _dilated(x: Array, factors: Sequence[int], value: Array) -> Array:
    """`x` with `factor - 1` values between neighbors along each dimension."""
    shape = [(n - 1) * f + 1 if n else 0 for n, f in zip(x.shape, factors, strict=True)]
    result = np.full(shape, value, x.dtype)
    result[tuple(slice(None, None, f) for f in factors)] = x
    return result


def _padded(x: Array, low: Sequence[int], high: Sequence[int], value: Array) -> Array:
    """`x` with padding around it; negative padding removes elements."""
    grown = [(max(lo, 0), max(hi, 0)) for lo, hi in zip(low, high, strict=True)]
    x = np.pad(x, grown, constant_values=value) if x.ndim else x
    cut = (
        slice(max(-lo, 0), size - max(-hi, 0))
        for lo, hi, size in zip(low, high, x.shape, strict=True)
    )
    return x[tuple(cut)]


# Reducing


_REDUCE: Mapping[str, Callable[..., Array]] = {
    "add": np.sum,
    "multiply": np.prod,
    "maximum": np.max,
    "minimum": np.min,
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
}


def _reduced(kind: str, x: Array, axes: Sequence[int]) -> Array:
    """Reduces; sums and products of floats are accumulated in f64."""
    if x.dtype.kind == "b":
        kind = {"add": "or", "multiply": "and"}.get(kind, kind)
    if kind not in ("add", "multiply"):
        return _REDUCE[kind](x, axis=tuple(axes), initial=identity(kind, x.dtype))
    dtype = np.float64 if is_float(x.dtype) else x.dtype
    return np.asarray(_REDUCE[kind](x, axis=tuple(axes), dtype=dtype)).astype(x.dtype)


@_evaluates(reducing.ReduceOp)
def _reduce(op: reducing.ReduceOp, x: Array) -> Array:
    return _reduced(op.kind.data, x, op.dimensions.get_values())


@_evaluates(reducing.DotGeneralOp)
def _dot_general(op: reducing.DotGeneralOp, x: Array, y: Array) -> Array:
    (x_batch, y_batch), (x_sum, y_sum) = op.batching, op.contracting
    x_axes = list(range(x.ndim))
    y_axes = list(range(x.ndim, x.ndim + y.ndim))
    for d, e in zip((*x_batch, *x_sum), (*y_batch, *y_sum), strict=True):
        y_axes[e] = x_axes[d]
    batch = [x_axes[d] for d in x_batch]
    x_free = [a for a in x_axes if a not in y_axes]
    y_free = [a for a in y_axes if a not in x_axes]
    dtype = accumulator(_result_dtype(op))
    operands = (x.astype(dtype), x_axes, y.astype(dtype), y_axes)
    result = np.einsum(*operands, [*batch, *x_free, *y_free], optimize=True)
    return np.asarray(result, dtype).astype(_result_dtype(op))


@_evaluates(reducing.ConvolutionOp)
def _convolution(op: reducing.ConvolutionOp, image: Array, kernel: Array) -> Array:
    dtype = accumulator(_result_dtype(op))
    image_labels, kernel_labels, result_labels = op.labels
    spatial = [str(d) for d in range(len(image_labels) - 2)]
    x = _by_labels(image, image_labels, ["b", "f", *spatial]).astype(dtype)
    w = _by_labels(kernel, kernel_labels, ["o", "i", *spatial]).astype(dtype)
    zero = np.zeros((), dtype)
    x = _dilated(x, [1, 1, *op.lhs_dilation.get_values()], zero)
    low, high = op.padding_low.get_values(), op.padding_high.get_values()
    x = _padded(x, [0, 0, *low], [0, 0, *high], zero)
    strides, dilations = op.window_strides.get_values(), op.rhs_dilation.get_values()
    places = _windows(x, [1, 1, *w.shape[2:]], [1, 1, *strides], [1, 1, *dilations])
    rank = len(spatial)
    places = places.reshape(*x.shape[:2], *places.shape[2 : 2 + rank], *w.shape[2:])
    # Now places has the axes: batch, feature, spatial places, spatial offsets.
    features = op.feature_group_count.value.data
    batches = op.batch_group_count.value.data
    groups = max(features, batches)
    axis = 1 if features > 1 else 0
    over = [1, *range(2 + rank, 2 + 2 * rank)]
    parts = [
        np.tensordot(p, k, (over, [1, *range(2, 2 + rank)]))
        for p, k in zip(
            np.split(places, groups, axis), np.split(w, groups, 0), strict=True
        )
    ]
    result = np.concatenate(parts, -1)  # axes: batch, spatial, feature
    order = ["b", *spatial, "f"]
    result = result.transpose([order.index(n) for n in result_labels])
    return result.astype(_result_dtype(op))


def _by_labels(x: Array, labels: str, order: Sequence[str]) -> Array:
    return x.transpose([labels.index(label) for label in order])


def _windows(
    x: Array, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Array:
    """The elements of each window: axes are the positions, then the offsets in it."""
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilations, strict=True)]
    if any(r > size for r, size in zip(reach, x.shape, strict=True)):
        places = [
            max(0, (size - r) // s + 1)
            for r, size, s in zip(reach, x.shape, strides, strict=True)
        ]
        return np.zeros((*places, *window), x.dtype)
    seen = np.lib.stride_tricks.sliding_window_view(x, reach)
    steps = (slice(None, None, step) for step in (*strides, *dilations))
    return seen[tuple(steps)]


@_evaluates(reducing.ReduceWindowOp)
def _reduce_window(op: reducing.ReduceWindowOp, x: Array) -> Array:
    kind = op.kind.data
    nothing = identity(kind, x.dtype)
    dilated = _dilated(x, op.base_dilations.get_values(), nothing)
    padded = _padded(
        dilated, op.padding_low.get_values(), op.padding_high.get_values(), nothing
    )
    places = _windows(
        padded,
        op.window_dimensions.get_values(),
        op.window_strides.get_values(),
        op.window_dilations.get_values(),
    )
    return _reduced(kind, places, range(x.ndim, 2 * x.ndim))


@_evaluates(reducing.SelectAndScatterOp)
def _select_and_scatter(
    op: reducing.SelectAndScatterOp, x: Array, source: Array
) -> Array:
    if source.size == 0:
        return np.zeros_like(x)
    low, high = op.padding_low.get_values(), op.padding_high.get_values()
    window = op.window_dimensions.get_values()
    strides, ones = op.window_strides.get_values(), (1,) * x.ndim

    def places(array: Array, padding: int) -> Array:
        padded = _padded(array, low, high, np.array(padding).astype(array.dtype))
        return _windows(padded, window, strides, ones).reshape(source.size, -1)

    values = places(x, 0)
    positions = places(np.reshape(np.arange(x.size), x.shape), -1)
    kind = op.kind.data
    stays = np.greater_equal if kind == "maximum" else np.less_equal
    selected, best = positions[:, 0], values[:, 0]
    for at, value in zip(positions.T, values.T, strict=True):
        taken = (at >= 0) & ((selected < 0) | ~stays(best, value))
        selected, best = np.where(taken, at, selected), np.where(taken, value, best)
    result: Array = np.zeros(x.size, accumulator(x.dtype))
    np.add.at(result, selected[selected >= 0], source.ravel()[selected >= 0])
    return result.reshape(x.shape).astype(x.dtype)


# Indexing


@_evaluates(indexing.GatherOp)
def _gather(op: indexing.GatherOp, x: Array, indices: Array) -> Array:
    result = np.empty(_result_shape(op), x.dtype)
    sizes = op.slice_sizes.get_values()
    numbers = op.dimension_numbers
    in_order = _batch_first(result, numbers)
    for place, start in _starts(indices, numbers, x.ndim):
        clamped = [
            min(max(at, 0), size - length)
            for at, size, length in zip(start, x.shape, sizes, strict=True)
        ]
        taken = x[tuple(slice(a, a + n) for a, n in zip(clamped, sizes, strict=True))]
        in_order[place] = taken.squeeze(numbers.omitted)
    return result


_COMBINE: Mapping[str, Callable[[Array, Array], Array]] = {
    "replace": lambda old, new: new,
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


@_evaluates(indexing.ScatterOp)
def _scatter(op: indexing.ScatterOp, x: Array, indices: Array, updates: Array) -> Array:
    result = x.copy()
    numbers = op.dimension_numbers
    in_order = _batch_first(updates, numbers)
    for place, start in _starts(indices, numbers, x.ndim):
        update = np.expand_dims(in_order[place], numbers.omitted)
        ends = [a + n for a, n in zip(start, update.shape, strict=True)]
        if min(start, default=0) < 0 or any(map(int.__gt__, ends, x.shape)):
            continue
        window = tuple(map(slice, start, ends))
        result[window] = _COMBINE[op.kind.data](result[window], update)
    return result


def _starts(
    indices: Array, numbers: indexing.DimensionNumbers, rank: int
) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """The position of each index vector, and the operand's index that it gives."""
    if numbers.vector == indices.ndim:
        indices = indices[..., None]
    vectors = np.moveaxis(indices, numbers.vector, -1)
    for place in product(*map(range, vectors.shape[:-1])):
        start = [0] * rank
        for dim, index in zip(numbers.indexed, vectors[place].tolist(), strict=True):
            start[dim] = index
        for dim, batching in numbers.batching.items():
            start[dim] = place[batching]
        yield place, start


def _batch_first(x: Array, numbers: indexing.DimensionNumbers) -> Array:
    """A view with the dimensions of the index vectors before those of the window."""
    return x.transpose([*numbers.batch(x.ndim), *numbers.window])


def _clamped(starts: Sequence[Array], x: Shape, part: Shape) -> tuple[slice, ...]:
    """The slices of a part of `x` with these starts, after clamping."""
    numbers = (
        min(max(int(start), 0), size - width)
        for start, size, width in zip(starts, x, part, strict=True)
    )
    return tuple(slice(n, n + width) for n, width in zip(numbers, part, strict=True))


@_evaluates(indexing.DynamicSliceOp)
def _dynamic_slice(op: indexing.DynamicSliceOp, x: Array, *starts: Array) -> Array:
    return x[_clamped(starts, x.shape, op.slice_sizes.get_values())].copy()


@_evaluates(indexing.DynamicUpdateSliceOp)
def _dynamic_update_slice(
    op: indexing.DynamicUpdateSliceOp, x: Array, update: Array, *starts: Array
) -> Array:
    result = x.copy()
    result[_clamped(starts, x.shape, update.shape)] = update
    return result


@_evaluates(spectral.FftOp)
def _fft(op: spectral.FftOp, x: Array) -> Array:
    """Computes the definition, `sum of x[k] exp(-2 pi i j k / n)`, in f64."""
    kind, length = op.fft_type.data, op.length.get_values()
    if kind == "IRFFT":  # the missing frequencies are conjugates of given ones
        rest = x.copy()
        for axis in range(-len(length), 0):
            rest = np.roll(np.flip(rest, axis), 1, axis) if axis < -1 else rest
        mirrored = np.flip(rest, -1)[..., (length[-1] + 1) % 2 : -1].conj()
        x = np.concatenate([x, mirrored], -1)
        x[..., 0] = (x[..., 0] + rest[..., 0].conj()) / 2
    for axis, size in zip(range(-len(length), 0), length, strict=True):
        angles = np.outer(np.arange(size), np.arange(size)) * (2j * np.pi / size)
        matrix = np.exp(angles) / size if kind.startswith("I") else np.exp(-angles)
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ matrix, -1, axis)
    result = x[..., : _result_shape(op)[-1]]
    return (np.real(result) if kind == "IRFFT" else result).astype(_result_dtype(op))


# Regions on single elements


def _on_elements(region: Region, inputs: Sequence[Array]) -> list[Array]:
    """The values that a region yields for each element of arrays of equal shape."""
    shape = inputs[0].shape
    values = dict[SSAValue, Array](zip(region.block.args, inputs, strict=True))
    for op in region.block.ops:
        if isinstance(op, TensorOp):
            result = evaluate(op, [values[value] for value in op.inputs])
            values[op.result] = np.broadcast_to(result, shape)
    return [values[value] for value in yielded(region)]


def _with_positions(op: bodies.ElementsOp, inputs: Sequence[Array]) -> Sequence[Array]:
    """All tensors: the inputs, and the indices for those in `positions`."""
    result = list(inputs)
    for number in op.numbered:
        type = op.declared[number].element_type
        shape, along = inputs[0].shape, op.along[0]
        lined = [-1 if d == along else 1 for d in range(len(shape))]
        places = np.arange(shape[along], dtype=numpy_dtype(type, op)).reshape(lined)
        result.insert(number, np.broadcast_to(places, shape))
    return result


def _reduce_by(op: bodies.ReduceByOp, inputs: Sequence[Array]) -> list[Array]:
    """Combines one element at a time, in row-major order."""
    inputs = _with_positions(op, inputs)
    count = len(inputs) // 2
    dims = op.dimensions.get_values()
    kept = [d for d in range(inputs[0].ndim) if d not in dims]
    number = math.prod(inputs[0].shape[d] for d in dims)
    rows = [
        x.transpose([*sorted(dims), *kept]).reshape(number, *(x.shape[d] for d in kept))
        for x in inputs[:count]
    ]
    state = [
        np.full(x.shape[1:], start)
        for x, start in zip(rows, inputs[count:], strict=True)
    ]
    for elements in zip(*rows, strict=True):
        state = _on_elements(op.body, [*state, *elements])
    return state


def _sort(op: bodies.SortOp, inputs: Sequence[Array]) -> list[Array]:
    axis = op.dimension.value.data
    inputs = _with_positions(op, inputs)
    columns = [np.moveaxis(x, axis, -1) for x in inputs]
    results = [
        np.empty(t.get_shape(), x.dtype)
        for t, x in zip(op.declared, inputs, strict=True)
    ]
    for place in np.ndindex(*columns[0].shape[:-1]):
        column = [x[place] for x in columns]

        def compare(i: int, j: int, column: Sequence[Array] = column) -> int:
            pairs = [x[k] for x in column for k in (i, j)]
            if _on_elements(op.comparator, pairs)[0]:
                return -1
            pairs = [x[k] for x in column for k in (j, i)]
            return int(_on_elements(op.comparator, pairs)[0])

        order = sorted(range(len(column[0])), key=cmp_to_key(compare))
        for x, result in zip(column, results, strict=True):
            np.moveaxis(result, axis, -1)[place] = x[order[: result.shape[axis]]]
    return results


def _rng_bit_generator(
    op: random.RngBitGeneratorOp, inputs: Sequence[Array]
) -> list[Array]:
    (state,) = inputs
    bits = op.declared[1]
    after, numbers = random_bits(
        op.algorithm.data,
        state.view(np.uint64).tolist(),
        bits.get_shape(),
        numpy_dtype(bits.element_type, op),
    )
    return [np.array(after, np.uint64).view(state.dtype), numbers]


# The interpreter


def _method(evaluate: Evaluate) -> Callable[..., PythonValues]:
    def run(
        self: InterpreterFunctions,
        interpreter: Interpreter,
        op: TensorOp,
        args: PythonValues,
    ) -> PythonValues:
        count = len(op.inputs)
        return _store([np.asarray(evaluate(op, *args[:count]))], args[count:])

    return run


def _matrices(
    self: InterpreterFunctions,
    interpreter: Interpreter,
    op: matrices.MatrixOp,
    args: PythonValues,
) -> PythonValues:
    count = len(op.inputs)
    return _store(evaluate_matrices(op, args[:count]), args[count:])


def _store(results: Sequence[Array], destinations: PythonValues) -> PythonValues:
    """Stores results in the variables that are their destinations; returns them."""
    for result, variable in zip(results, destinations, strict=False):
        cast(Variable, variable).contents = result
    return tuple(results)


class _StructureFunctions(InterpreterFunctions):
    def __init__(self, callbacks: Callbacks = ()):
        self._callbacks = callbacks

    @impl(HostCallbackOp)
    def run_callback(
        self, interpreter: Interpreter, op: HostCallbackOp, args: PythonValues
    ) -> PythonValues:
        count, function = len(op.inputs), function_of(op, self._callbacks)
        results = function(*(x.copy() for x in args[:count]))
        return _store([np.asarray(result) for result in results], args[count:])

    @impl(ReadOp)
    def run_read(
        self, interpreter: Interpreter, op: ReadOp, args: PythonValues
    ) -> PythonValues:
        return (args[0].contents,)

    @impl(AssignOp)
    def run_assign(
        self, interpreter: Interpreter, op: AssignOp, args: PythonValues
    ) -> PythonValues:
        variable, value = args
        variable.contents = value
        return ()

    @impl(OnDeviceOp)
    def run_on_device(
        self, interpreter: Interpreter, op: OnDeviceOp, args: PythonValues
    ) -> PythonValues:
        return args

    @impl(FusionOp)
    def run_fusion(
        self, interpreter: Interpreter, op: FusionOp, args: PythonValues
    ) -> PythonValues:
        count = len(op.inputs)
        results = interpreter.run_ssacfg_region(op.body, args[:count], op.name)
        return _store(results, args[count:])

    @impl(bodies.ReduceByOp)
    def run_reduce_by(
        self, interpreter: Interpreter, op: bodies.ReduceByOp, args: PythonValues
    ) -> PythonValues:
        count = len(op.inputs)
        return _store(_reduce_by(op, args[:count]), args[count:])

    @impl(bodies.SortOp)
    def run_sort(
        self, interpreter: Interpreter, op: bodies.SortOp, args: PythonValues
    ) -> PythonValues:
        count = len(op.inputs)
        return _store(_sort(op, args[:count]), args[count:])

    @impl(random.RngBitGeneratorOp)
    def run_rng(
        self, interpreter: Interpreter, op: random.RngBitGeneratorOp, args: PythonValues
    ) -> PythonValues:
        return _store(_rng_bit_generator(op, args[:1]), args[1:])

    @impl(WhileOp)
    def run_while(
        self, interpreter: Interpreter, op: WhileOp, args: PythonValues
    ) -> PythonValues:
        count = len(op.res)
        carried = [Variable(value) for value in args[:count]]
        inside = (*carried, *args[count:])
        while interpreter.run_ssacfg_region(op.condition, inside, op.name)[0]:
            interpreter.run_ssacfg_region(op.body, inside, op.name)
        return tuple(variable.contents for variable in carried)

    @impl(IfOp)
    def run_if(
        self, interpreter: Interpreter, op: IfOp, args: PythonValues
    ) -> PythonValues:
        predicate, *inside = args
        region = op.on_true if predicate else op.on_false
        return interpreter.run_ssacfg_region(region, tuple(inside), op.name)

    @impl_terminator(YieldOp)
    def run_yield(
        self, interpreter: Interpreter, op: YieldOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        return ReturnedValues(args), ()


TGraphFunctions: type[Any] = register_impls(
    type(
        "TGraphFunctions",
        (_StructureFunctions,),
        {op.name: impl(op)(_method(evaluate)) for op, evaluate in _EVALUATE.items()}
        | {op.name: impl(op)(_matrices) for op in matrices.MATRIX_OPS},
    )
)
