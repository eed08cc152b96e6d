"""Reads the objects that callers pass as arrays, without copies where possible.

An object shares its memory as an array, through the buffer protocol, or through DLPack.
Other objects, such as lists and numbers, are copied.
"""

from array import array as numbers
from importlib import import_module
from mmap import mmap
from typing import Any, cast

import numpy as np

from ..support.arrays import Array, DType
from ..support.slots import Input, Result, Slot
from .rebinding import PLAIN


def title(index: int, slot: Input) -> str:
    """The name of an input in messages."""
    return f"argument {index} ({slot.name})" if slot.name else f"argument {index}"


def as_array(given: object, slot: Slot, name: str) -> tuple[Array, bool]:
    """`given` as an array of the slot's type and shape, and whether it surely is the
    caller's memory rather than a copy.

    Raises `TypeError` for no array or other elements, and `ValueError` for another
    shape or numbers that the type lacks; messages call the array `name`.
    """
    is_shared, is_pythons = True, not hasattr(given, "__array__")
    try:
        if isinstance(given, np.ndarray):
            array = cast(Array, given)
        elif hasattr(given, "__array_interface__") and not np.isscalar(given):
            array = np.asarray(given)
        elif (shared := from_buffer(given)) is not None and shared.dtype == slot.dtype:
            array = shared
        elif (shared := _from_dlpack(given)) is not None:
            array = shared
        else:
            array, is_shared = np.asarray(given), False
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise TypeError(f"{name} is not an array: {error}") from None
    if not is_shared and is_pythons:
        array = _cast(array, slot.dtype, name)
    if array.dtype != slot.dtype:
        raise TypeError(
            f"{name} has elements of type {array.dtype}, expected {slot.dtype}"
        )
    if array.shape != slot.shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {slot.shape}")
    return array, is_shared


def _cast(array: Array, dtype: DType, name: str) -> Array:
    """Converts Python's numbers to `dtype` if NumPy's rule `same_kind` allows that;
    returns `array` otherwise."""
    is_narrower = array.dtype.kind == "c" and dtype.kind != "c"  # bfloat16 is "V"
    if array.size and (is_narrower or not np.can_cast(array.dtype, dtype, "same_kind")):
        return array
    cast = array.astype(dtype)
    if dtype.kind in "iu" and not np.array_equal(cast, array):
        limits = np.iinfo(dtype)
        raise ValueError(
            f"{name} has elements from {array.min()} to {array.max()}, expected "
            f"{limits.min} to {limits.max}"
        )
    return cast


def is_number(given: object) -> bool:
    """Whether `given` is a scalar object that never changes."""
    return isinstance(given, bool | int | float | complex | np.generic)


def from_buffer(given: object) -> Array | None:
    """The memory that Python's buffer protocol exports. None if there is none, or if
    the export would prevent the owner from resizing or closing it."""
    if is_number(given) or isinstance(given, bytearray | numbers | mmap):
        return None
    try:
        return np.asarray(memoryview(given))  # pyright: ignore
    except (TypeError, ValueError, RuntimeError, BufferError):
        return None  # jaxlib's error is a RuntimeError


def _from_dlpack(given: object) -> Array | None:
    """The memory that DLPack exports; None if NumPy does not support it."""
    if not hasattr(given, "__dlpack__"):
        return None
    if str(getattr(given, "dtype", "")) == "torch.bfloat16":
        return _bits_of_bfloat16(given)
    try:
        return np.from_dlpack(given)  # pyright: ignore
    except (TypeError, ValueError, RuntimeError, BufferError):
        if not hasattr(given, "__array__"):
            raise
        return None  # for example bfloat16, which `__array__` may support


def _bits_of_bfloat16(tensor: Any) -> Array:
    """The memory of a bfloat16 tensor. NumPy's DLPack does not support bfloat16, so it
    is imported as integers and reinterpreted."""
    from ml_dtypes import bfloat16

    bits = np.from_dlpack(tensor.detach().view(import_module("torch").int16))
    return bits.view(np.dtype(bfloat16))


def is_plain(array: Array) -> bool:
    """Whether the array is C-contiguous and aligned."""
    return array.flags.num & PLAIN == PLAIN


def check_out(given: Array, result: Result, number: int) -> None:
    """Raises `TypeError` or `ValueError` unless the result `number` can be written into
    `given`."""
    name = f"out {number}"
    if result.input is not None:
        raise ValueError(
            f"{name} is given, expected None: result {number} is the new contents of "
            f"argument {result.input}"
        )
    if as_array(given, result, name)[0] is not given:
        raise TypeError(
            f"{name} has type {type(given).__name__}, expected a NumPy array"
        )
    if not is_plain(given) or not given.flags.writeable:
        raise ValueError(f"{name} is not a writable C-contiguous array")
