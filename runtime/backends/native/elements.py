"""Loads and stores elements of NumPy's types, and defines their form in registers.

Small floats are computed in f32 and rounded after every operation, as in NumPy. Floats
of 8 bits are rounded after conversions, the only operations on them. Booleans are one
byte in memory and `i1` in registers. Integers of less than a byte are its lowest bits,
and `i8` in registers. Complex numbers are two values in registers.
"""

from collections.abc import Collection, Sequence
from functools import cache
from math import inf, nan
from typing import NamedTuple

import numpy as np

from ....support.arrays import Array, DType, name_of
from .code import BITS, LlvmFunction, Value, suffix, typed, vector
from .complexes import Complex

_PARTS_OF_BYTES = {"int2": 2, "int4": 4, "uint2": 2, "uint4": 4}
"""The bits of integers that are smaller than a byte."""


class _Float8(NamedTuple):
    """A format of 8-bit floats. Except for NaN, the shifted bits are those of an f16
    with the value divided by `scale`."""

    mantissa: int  # its bits
    lowest: int  # the exponent of the smallest normal number
    largest: float
    beyond: float  # the result of rounding larger numbers
    moved: int  # bits of the shift
    scale: float


_FLOATS_OF_BYTES = {
    "float8_e4m3fn": _Float8(3, -6, 448.0, nan, 7, 256.0),
    "float8_e5m2": _Float8(2, -14, 57344.0, inf, 8, 1.0),
}
"""As in the OCP's "8-bit Floating Point Specification" (2023). In the format without
infinity, all bits of a NaN but the sign are set.
"""


def _kind(dtype: DType) -> str:
    """NumPy's letter for the kind of a type; NumPy sees integers of less than a byte
    only as bytes."""
    name = name_of(dtype)
    return name[0] if name in _PARTS_OF_BYTES else dtype.kind


def number_of(element: Array) -> float | int:
    """A constant as the number that a register holds."""
    is_float = _kind(element.dtype) in "fV"
    exact = np.float64 if is_float else np.int8 if element.dtype.kind == "V" else None
    return element.astype(exact or element.dtype).item()


def part_type(dtype: DType) -> DType:
    """The type of a complex number's parts; other types are returned unchanged."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def has_registers(dtype: DType) -> bool:
    """Whether elements can be in registers: complex numbers in two."""
    return register_type(part_type(dtype)) is not None


@cache
def register_type(dtype: DType) -> str | None:
    """LLVM's type for an element in one register; None if it has none here."""
    match _kind(dtype):
        case "b":
            return "i1"
        case "i" | "u":
            return f"i{8 * dtype.itemsize}"
        case _:
            small = ("float16", "bfloat16", *_FLOATS_OF_BYTES)
            names = {"float64": "double", "float32": "float"}
            return {**names, **dict.fromkeys(small, "float")}.get(name_of(dtype))


def _memory_type(dtype: DType) -> str:
    if dtype.kind == "b":
        return "i8"
    if name_of(dtype) in ("float16", "bfloat16"):
        return "i16"
    if name_of(dtype) in _FLOATS_OF_BYTES:
        return "i8"
    element = register_type(dtype)
    assert element is not None
    return element


def load_element(
    code: LlvmFunction, pointer: str, stride: int, dtype: DType, lanes: int, active: int
) -> Value | Complex:
    """Like `load`, but supports complex numbers."""
    if dtype.kind != "c":
        return load(code, pointer, stride, dtype, lanes, active)
    part = part_type(dtype)
    if stride == dtype.itemsize and lanes > 1:
        both = load(code, pointer, part.itemsize, part, 2 * lanes, 2 * active)
        return Complex(*(code.shuffled(both, range(i, 2 * lanes, 2)) for i in (0, 1)))
    starts = pointer, code.moved(pointer, "1", part.itemsize)
    return Complex(*(load(code, at, stride, part, lanes, active) for at in starts))


def store_element(
    value: Value | Complex,
    pointer: str,
    stride: int,
    dtype: DType,
    lanes: int,
    active: int,
) -> None:
    """The inverse of `load_element`. A scalar value is stored in all lanes."""
    if not isinstance(value, Complex):
        store(value, pointer, stride, dtype, lanes, active)
        return
    code, part = value.code, part_type(dtype)
    real, imag = (code.widened(x, lanes) for x in (value.real, value.imag))
    if stride == dtype.itemsize and lanes > 1:
        order = [i + half for i in range(lanes) for half in (0, lanes)]
        both = code.shuffled(real, order, imag)
        store(both, pointer, part.itemsize, part, 2 * lanes, 2 * active)
        return
    for x, at in (real, pointer), (imag, code.moved(pointer, "1", part.itemsize)):
        store(x, at, stride, part, lanes, active)


def load(
    code: LlvmFunction, pointer: str, stride: int, dtype: DType, lanes: int, active: int
) -> Value:
    """Elements at `pointer` and at every `stride` bytes after it.

    If `stride` is 0, the result is a scalar. Of `lanes` lanes only the first `active`
    are read; the others are zero.
    """
    element = _memory_type(dtype)
    if stride == 0 or lanes == 1:
        lanes = 1
        raw = code.op(f"load {element}, ptr {pointer}, align 1", element, 1)
        return _expanded(raw, dtype)
    gap, rest = divmod(stride, dtype.itemsize)
    if abs(gap) in CLOSE and not rest:
        return load_lanes(code, pointer, stride, dtype, lanes, range(active))
    at = _pointers(code, pointer, stride, lanes)
    return _expanded(_gathered(code, at, element, lanes, active), dtype)


def load_lanes(
    code: LlvmFunction,
    pointer: str,
    stride: int,
    dtype: DType,
    lanes: int,
    wanted: range,
) -> Value:
    """Like `load`, for several lanes at a distance in `CLOSE`, of which only those in
    `wanted` are read."""
    element, gap = _memory_type(dtype), stride // dtype.itemsize
    if gap == 1:
        return _expanded(_side_by_side(code, pointer, element, lanes, wanted), dtype)
    return _expanded(_load_apart(code, pointer, gap, element, lanes, wanted), dtype)


def _side_by_side(
    code: LlvmFunction, pointer: str, element: str, lanes: int, wanted: Collection[int]
) -> Value:
    """Contiguous lanes; only those in `wanted` are accessed."""
    type = vector(element, lanes)
    if len(wanted) == lanes:
        return code.op(f"load {type}, ptr {pointer}, align 1", element, lanes)
    name = f"llvm.masked.load.{suffix(element, lanes)}.p0"
    code.declare(f"{type} @{name}(ptr, <{lanes} x i1>, {type})")
    mask = _listed("i1", [int(lane in wanted) for lane in range(lanes)])
    text = (
        f"call {type} @{name}(ptr align 1 {pointer}, <{lanes} x i1> {mask}, "
        f"{type} zeroinitializer)"
    )
    return code.op(text, element, lanes)


CLOSE = (1, 2, 3, 4)
"""Strides in elements for which the elements in between share a cache line."""


def load_element_at(
    code: LlvmFunction, pointer: str, offsets: Value, dtype: DType, active: int
) -> Value | Complex:
    """Like `load_at`, but supports complex numbers."""
    if dtype.kind != "c":
        return load_at(code, pointer, offsets, dtype, active)
    part = part_type(dtype)
    starts = pointer, code.moved(pointer, "1", part.itemsize)
    return Complex(*(load_at(code, at, offsets, part, active) for at in starts))


def load_at(
    code: LlvmFunction, pointer: str, offsets: Value, dtype: DType, active: int
) -> Value:
    """Elements at `offsets` in bytes from `pointer`, as in `load`."""
    lanes = offsets.lanes
    if lanes == 1:
        at = code.moved(pointer, offsets.text, 1)
        return load(code, at, 0, dtype, lanes, active)
    name = code.name(f"getelementptr i8, ptr {pointer}, {typed(offsets)}")
    at, element = f"<{lanes} x ptr> {name}", _memory_type(dtype)
    return _expanded(_gathered(code, at, element, lanes, active), dtype)


def _gathered(
    code: LlvmFunction, pointers: str, element: str, lanes: int, active: int
) -> Value:
    type = vector(element, lanes)
    name = f"llvm.masked.gather.{suffix(element, lanes)}.v{lanes}p0"
    code.declare(f"{type} @{name}(<{lanes} x ptr>, <{lanes} x i1>, {type})")
    mask = _typed_mask(lanes, active)
    text = f"call {type} @{name}({pointers}, {mask}, {type} zeroinitializer)"
    return code.op(text, element, lanes)


def _load_apart(
    code: LlvmFunction, pointer: str, gap: int, element: str, lanes: int, wanted: range
) -> Value:
    """Elements at a distance of `gap` elements, which is negative for reversed order.
    Loads a vector that also has lanes for the elements in between, which are not
    accessed."""
    step, size = abs(gap), BITS[element] // 8
    places = [step * (lane if gap > 0 else lanes - 1 - lane) for lane in range(lanes)]
    if gap < 0:
        pointer = code.moved(pointer, str(lanes - 1), gap * size)
    read = {places[lane] for lane in wanted}
    loaded = _side_by_side(code, pointer, element, step * lanes, read)
    return code.shuffled(loaded, places)


def store(
    value: Value, pointer: str, stride: int, dtype: DType, lanes: int, active: int
) -> None:
    """The inverse of `load`. A scalar value is stored in all lanes."""
    code = value.code
    raw = code.widened(_shortened(value, dtype), lanes)
    if lanes == 1:
        code.line(f"store {typed(raw)}, ptr {pointer}, align 1")
        return
    type = vector(raw.element, lanes)
    if stride == -dtype.itemsize and active == lanes:
        raw = code.shuffled(raw, range(lanes - 1, -1, -1))
        pointer = code.moved(pointer, str(lanes - 1), stride)
        stride = dtype.itemsize
    if stride != dtype.itemsize:
        name = f"llvm.masked.scatter.{suffix(raw.element, lanes)}.v{lanes}p0"
        code.declare(f"void @{name}({type}, <{lanes} x ptr>, <{lanes} x i1>)")
        at = _pointers(code, pointer, stride, lanes)
        code.line(
            f"call void @{name}({typed(raw)}, {at}, {_typed_mask(lanes, active)})"
        )
        return
    # Not masked: to processors, the next row would overlap a masked store.
    start = 0
    while start < active:
        part = 1 << ((active - start).bit_length() - 1)
        piece = raw if part == lanes else code.part(raw, start, part)
        at = code.moved(pointer, str(start), stride)
        code.line(f"store {typed(piece)}, ptr {at}, align 1")
        start += part


def _pointers(code: LlvmFunction, pointer: str, stride: int, lanes: int) -> str:
    offsets = _listed("i64", [i * stride for i in range(lanes)])
    name = code.name(f"getelementptr i8, ptr {pointer}, <{lanes} x i64> {offsets}")
    return f"<{lanes} x ptr> {name}"


def multiples(code: LlvmFunction, step: int, lanes: int) -> Value:
    """0, `step`, 2 `step`, ..., as `i64`."""
    if lanes == 1:
        return code.number(0, "i64")
    text = _listed("i64", [i * step for i in range(lanes)])
    return Value(code, text, "i64", lanes)


def mask_of(lanes: int, active: int) -> str:
    """A vector of `i1` with the first `active` lanes set."""
    return _listed("i1", [int(i < active) for i in range(lanes)])


def _typed_mask(lanes: int, active: int) -> str:
    return f"<{lanes} x i1> {mask_of(lanes, active)}"


def _listed(element: str, values: Sequence[int]) -> str:
    return f"<{', '.join(f'{element} {v}' for v in values)}>"


def _expanded(raw: Value, dtype: DType) -> Value:
    """Converts a value from its form in memory to that in registers."""
    if dtype.kind == "b":
        return raw.compare("ne", 0)
    if name_of(dtype) == "float16":
        return raw.cast("bitcast", "half").cast("fpext", "float")
    if name_of(dtype) == "bfloat16":
        return (raw.cast("zext", "i32") << 16).cast("bitcast", "float")
    if form := _FLOATS_OF_BYTES.get(name_of(dtype)):
        return _float_of_byte(raw, form)
    return _lowest_bits(raw, dtype)


def _lowest_bits(value: Value, dtype: DType) -> Value:
    """The integer in the lowest bits of a byte; other types are returned unchanged."""
    if (bits := _PARTS_OF_BYTES.get(name_of(dtype))) is None:
        return value
    if _kind(dtype) == "u":
        return value & ((1 << bits) - 1)
    return (value << (8 - bits)).arithmetic_shift(8 - bits)


def _shortened(value: Value, dtype: DType) -> Value:
    """Converts from registers to memory; small floats must be rounded already."""
    if dtype.kind == "b":
        return value.cast("zext", "i8")
    if name_of(dtype) == "float16":
        return value.cast("fptrunc", "half").cast("bitcast", "i16")
    if name_of(dtype) == "bfloat16":
        return value.cast("bitcast", "i32").logical_shift(16).cast("trunc", "i16")
    if form := _FLOATS_OF_BYTES.get(name_of(dtype)):
        return _byte_of_float(value, form)
    if name_of(dtype) in _PARTS_OF_BYTES:
        return value & ((1 << _PARTS_OF_BYTES[name_of(dtype)]) - 1)
    return value


def rounded(value: Value, dtype: DType) -> Value:
    """Rounds an f32 to a value of a small float type, ties to even."""
    if name_of(dtype) == "float16":
        return value.cast("fptrunc", "half").cast("fpext", "float")
    if name_of(dtype) == "bfloat16":
        bits = value.cast("bitcast", "i32")
        odd = bits.logical_shift(16) & 1
        short = ((bits + odd + 0x7FFF) & -0x10000).cast("bitcast", "float")
        return value.code.select(value.is_nan, nan, short)
    if form := _FLOATS_OF_BYTES.get(name_of(dtype)):
        return _rounded_to_byte(value, form)
    return value


def _float_of_byte(raw: Value, form: _Float8) -> Value:
    bits = raw.cast("zext", "i16")
    moved = ((bits & 0x7F) << form.moved) | ((bits & 0x80) << 8)
    value = moved.cast("bitcast", "half").cast("fpext", "float") * form.scale
    if form.beyond == inf:
        return value
    is_nan = (raw & 0x7F).compare("eq", 0x7F)
    return value.code.select(is_nan, _with_sign(nan, value), value)


def _byte_of_float(value: Value, form: _Float8) -> Value:
    """The byte of a number that is rounded already."""
    half = (value / form.scale).cast("fptrunc", "half").cast("bitcast", "i16")
    sign = half.logical_shift(8) & 0x80
    bits = half.logical_shift(form.moved) & 0x7F
    if form.beyond != inf:
        bits = value.code.select(value.is_nan, 0x7F, bits)
    return (sign | bits).cast("trunc", "i8")


def _rounded_to_byte(value: Value, form: _Float8) -> Value:
    """Rounds to the nearest 8-bit float: normal numbers as integers; smaller numbers,
    which are equally spaced, by adding a number at which f32 has the same spacing."""
    code = value.code
    rest = 23 - form.mantissa
    bits = value.cast("bitcast", "i32")
    odd = bits.logical_shift(rest) & 1
    mask = -1 << rest
    near = ((bits + odd + ((1 << (rest - 1)) - 1)) & mask).cast("bitcast", "float")
    size = value.call("fabs")
    far = 2.0 ** (form.lowest + rest)
    small = _with_sign((size + far) - far, value)
    near = code.select(size.compare("olt", 2.0**form.lowest), small, near)
    is_beyond = near.call("fabs").compare("ogt", form.largest)
    near = code.select(is_beyond, _with_sign(form.beyond, value), near)
    return code.select(value.is_nan, _with_sign(nan, value), near)


def _with_sign(size: Value | float, like: Value) -> Value:
    if not isinstance(size, Value):
        size = like.code.number(size, like.element)
    return size.call("copysign", like)


def converted(value: Value, source: DType, target: DType) -> Value | None:
    """The same numbers in another type, not yet rounded; None if not supported.

    Floats are truncated to integers, and saturate out of range; NaN becomes 0.
    """
    element = register_type(target)
    assert element is not None
    if target.kind == "b":
        return value.compare("une" if value.is_float else "ne", 0)
    if not value.is_float:
        sign = "s" if _kind(source) == "i" else "u"
        if element in ("float", "double"):
            return value.cast(f"{sign}itofp", element)
        extend = "sext" if sign == "s" else "zext"
        return _lowest_bits(_resized(value, element, extend), target)
    if element not in ("float", "double"):
        whole = _saturated(value, element, _kind(target) == "u")
        return _lowest_bits(whole, target)
    if element == value.element:
        return value
    if element == "double":
        return value.cast("fpext", element)
    if target.itemsize < 4:
        return None  # would be rounded twice
    return value.cast("fptrunc", element)


def clamped(value: Value, source: DType, last: int) -> Value:
    """An integer as `i64`, clamped to 0 to `last`: in its own type, of which a vector
    has more elements."""
    bits = BITS[value.element]
    if source.kind != "u":
        value, bits = value.call("smax", 0), bits - 1
    if last < (1 << bits) - 1:
        value = value.call("umin", last)
    start = converted(value, source, np.dtype(np.int64))
    assert start is not None
    return start


def _resized(value: Value, element: str, extend: str) -> Value:
    narrow, wide = int(value.element[1:]), int(element[1:])
    if narrow == wide:
        return value
    return value.cast(extend if narrow < wide else "trunc", element)


def _saturated(value: Value, element: str, is_unsigned: bool) -> Value:
    """The integer part, clamped to the range of `element`; 0 for NaN. LLVM converts
    vectors to narrow integers lane by lane, unless they are clamped and converted
    through `i32`."""
    code = value.code
    bits = BITS[element]
    if bits < 32:
        low = 0 if is_unsigned else -(1 << (bits - 1))
        high = low + (1 << bits) - 1
        known = code.select(value.is_nan, 0.0, value) if low else value  # see `raised`
        raised = code.select(known.compare("ogt", low), known, low)
        clamped = code.select(raised.compare("olt", high), raised, high)
        return clamped.cast("fptosi", "i32").cast("trunc", element)
    if not is_unsigned:  # takes half the instructions of LLVM's `fptosi.sat`
        low = -(1 << (bits - 1))
        whole = value.cast("fptosi", element)
        whole = code.select(value.compare("olt", -float(low)), whole, -1 - low)
        whole = code.select(value.compare("oge", float(low)), whole, low)
        return code.select(value.is_nan, 0, whole)
    name = "fptoui.sat" if is_unsigned else "fptosi.sat"
    to = vector(element, value.lanes)
    function = (
        f"llvm.{name}.{suffix(element, value.lanes)}."
        f"{suffix(value.element, value.lanes)}"
    )
    code.declare(f"{to} @{function}({vector(value.element, value.lanes)})")
    return code.op(f"call {to} @{function}({typed(value)})", element, value.lanes)
