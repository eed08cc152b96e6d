"""Element types and constants of the IR, as NumPy sees them."""

from collections.abc import Mapping
from typing import TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    BytesAttr,
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

from ..arrays import Array, DType
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

    Raises `LocatedError` at `op` for a type that NumPy lacks, and for `bf16` where the
    package ml_dtypes is not installed.
    """
    if name := _FLOATS.get(type(element_type)):
        return np.dtype(name)
    if isinstance(element_type, BFloat16Type):
        return _bfloat16(op)
    if isinstance(element_type, IntegerType):
        integer = cast(AnyInteger, element_type)
        width = integer.width.data
        if width == 1:
            return np.dtype(bool)
        if width in (8, 16, 32, 64):
            unsigned = integer.signedness.data is Signedness.UNSIGNED
            return np.dtype(f"{'u' if unsigned else ''}int{width}")
    raise LocatedError(f"cannot compute with elements of type {element_type}", op)


def _bfloat16(op: Operation | None) -> DType:
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        raise LocatedError(
            "elements of type bf16 need the package ml_dtypes (pip install ml_dtypes)",
            op,
        ) from None
    return np.dtype(bfloat16)


def is_float(dtype: DType) -> bool:
    """Whether this is a floating-point type; ml_dtypes' have kind "V"."""
    return dtype.kind in "fV"


def accumulator(dtype: DType) -> DType:
    """The type that sums of elements are kept in: f32 for smaller floats."""
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
    else:
        elements = np.frombuffer(data, dtype)
    return elements.reshape(value.get_shape())


def constant_attribute(array: Array, element_type: Attribute) -> Attribute:
    """The attribute for a constant: one number where all elements are the same bits."""
    data = np.ascontiguousarray(array).reshape(array.shape)
    first = data.ravel()[:1]
    if data.size and data.tobytes() == first.tobytes() * data.size:
        if isinstance(element_type, IntegerType | IndexType):
            return IntegerAttr(int(first[0]), cast(IntegerType, element_type))
        return FloatAttr(float(first[0]), cast(AnyFloat, element_type))
    if data.dtype.kind == "b":  # stored as 0x00 and 0xFF
        data = data.view(np.uint8) * np.uint8(0xFF)
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
