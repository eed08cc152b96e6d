"""Element types and constants of the IR as NumPy types and arrays."""

import re
from collections.abc import Mapping
from functools import cache
from typing import TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    BytesAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute, Operation

from ..support.arrays import Array, DType
from .diagnostics import LocatedError

AnyInteger: TypeAlias = IntegerType[int, Signedness]

_FLOATS: Mapping[type[Attribute], str] = {
    Float64Type: "float64",
    Float32Type: "float32",
    Float16Type: "float16",
    IndexType: "int64",
}


def numpy_dtype(element_type: Attribute, op: Operation | None = None) -> DType:
    """The NumPy type of an element; `i1` is `bool`, one byte.

    Raises `LocatedError` at `op` for a type that NumPy lacks, and for a type of
    ml_dtypes (`bf16`, `f8E4M3FN`, `i4`, ...) if that package is not installed.
    """
    if name := _FLOATS.get(type(element_type)):
        return np.dtype(name)
    if name := _added_name(element_type):
        return _added(name, element_type, op)
    if isinstance(element_type, ComplexType):
        part = numpy_dtype(cast(ComplexType, element_type).element_type, op)
        if part.kind == "f" and part.itemsize > 2:
            return np.dtype(f"complex{16 * part.itemsize}")
    if isinstance(element_type, IntegerType):
        integer = cast(AnyInteger, element_type)
        width = integer.width.data
        if width == 1:
            return np.dtype(bool)
        if width in (8, 16, 32, 64):
            unsigned = integer.signedness.data is Signedness.UNSIGNED
            return np.dtype(f"{'u' if unsigned else ''}int{width}")
    raise LocatedError(f"cannot compute on elements of type {element_type}", op)


@cache
def _added_name(element_type: Attribute) -> str | None:
    """The name of `element_type` in ml_dtypes; None for a type of NumPy's own."""
    if isinstance(element_type, BFloat16Type):
        return "bfloat16"
    text = str(element_type)
    if re.fullmatch(r"u?i[24]", text):
        return text.replace("i", "int")
    found = re.fullmatch(r"f([468])(E\w+)", text)
    return f"float{found[1]}_{found[2].lower()}" if found else None


def _added(name: str, element_type: Attribute, op: Operation | None) -> DType:
    try:
        import ml_dtypes
    except ImportError:
        raise LocatedError(
            f"elements of type {element_type} require the package ml_dtypes "
            "(pip install ml_dtypes)",
            op,
        ) from None
    return np.dtype(getattr(ml_dtypes, name))


def is_float(dtype: DType) -> bool:
    """Whether `dtype` is a float type; most types of ml_dtypes have kind "V"."""
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def is_stored_integer(dtype: DType) -> bool:
    """Whether `dtype` is an integer type below 8 bits, stored in a byte each."""
    return dtype.kind == "V" and "int" in dtype.name


def magnitude(dtype: DType) -> int:
    """The smallest power of two that bounds the magnitude of the type's integers."""
    if not is_stored_integer(dtype):
        return int(np.iinfo(dtype).max) + 1
    bits = int(dtype.name[-1])
    return 1 << (bits if dtype.name.startswith("u") else bits - 1)


def between(source: DType, target: DType) -> DType | None:
    """The type to convert elements to first, or None if they convert directly:
    ml_dtypes lacks some conversions between types of one byte. To integers of less than
    a byte, it converts floats out of range differently from version to version."""
    if is_float(source) and is_stored_integer(target):
        return np.dtype(np.int32)
    if source == target or not (_is_added(source) and _is_added(target)):
        return None
    both = is_stored_integer(source) and is_stored_integer(target)
    return np.dtype(np.int8 if both else np.float32)


def _is_added(dtype: DType) -> bool:
    return dtype.kind in "fV" and dtype.itemsize == 1


def accumulator(dtype: DType) -> DType:
    """The type in which sums of elements are kept: f32 for smaller floats."""
    small = is_float(dtype) and dtype.itemsize < 4
    return np.dtype(np.float32) if small else dtype


def constant(value: Attribute, dtype: DType) -> Array:
    """A constant's elements: rank 0 for a number, else the attribute's own shape."""
    if isinstance(value, IntegerAttr | FloatAttr):
        number: int | float = value.value.data
        return np.array(number).astype(dtype)
    assert isinstance(value, DenseIntOrFPElementsAttr)
    data = value.data.data
    if dtype.kind == "b":  # stored as 0x00 and 0xFF
        elements = np.frombuffer(data, np.uint8) != 0
    elif is_stored_integer(dtype):  # sign-extended to a byte
        elements = np.frombuffer(data, np.int8).astype(dtype)
    else:
        elements = np.frombuffer(data, dtype)
    return elements.reshape(value.get_shape())


def constant_attribute(array: Array, element_type: Attribute) -> Attribute:
    """The attribute for a constant; a single number if all elements have equal bits."""
    data = np.ascontiguousarray(array).reshape(array.shape)
    first = data.ravel()[:1]
    if data.size and data.tobytes() == first.tobytes() * data.size:
        if isinstance(element_type, IntegerType | IndexType):
            return IntegerAttr(int(first[0]), cast(IntegerType, element_type))
        return FloatAttr(float(first[0]), cast(AnyFloat, element_type))
    if data.dtype.kind == "b":  # stored as 0x00 and 0xFF
        data = data.view(np.uint8) * np.uint8(0xFF)
    elif is_stored_integer(data.dtype):  # sign-extended to a byte
        data = data.astype(np.int8)
    type = TensorType(cast(AnyFloat, element_type), array.shape)
    return DenseIntOrFPElementsAttr(type, BytesAttr(data.tobytes()))


def identity(kind: str, dtype: DType) -> Array:
    """The rank-0 array `e` with `e kind x == x` for a reduction's kind."""
    if kind in ("add", "or"):
        return np.zeros((), dtype)
    if kind == "multiply":
        return np.ones((), dtype)
    if kind == "and":  # all bits set
        return np.invert(np.zeros((), dtype), dtype=dtype)
    sign = -1 if kind == "maximum" else 1
    if is_float(dtype):
        return np.array(sign * np.inf).astype(dtype)
    if dtype.kind == "b":
        return np.array(kind == "minimum")
    limits = np.iinfo(dtype)
    return np.array(limits.min if kind == "maximum" else limits.max, dtype)
