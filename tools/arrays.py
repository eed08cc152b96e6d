"""Inputs and outputs of programs as NumPy arrays: npz files and comparison.

In npz files, arrays are named `arg0`, `arg1`, ... (inputs) and `out0`, `out1`, ...
(outputs) in signature order, or like the program's arguments and the model's results.
"""

import io
import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from lzma import LZMAError
from tokenize import TokenError
from typing import NamedTuple, cast

import numpy as np

from ..dialects.diagnostics import LocatedError
from ..dialects.dtypes import Array
from ..dialects.tgraph.signature import Signature
from ..support.slots import Input
from .common import write_atomically

_UNREADABLE = (
    EOFError,
    LookupError,
    LZMAError,
    MemoryError,  # the header of an array states a huge shape
    OSError,  # an offset outside of the file
    OverflowError,
    NotImplementedError,  # a newer version of the zip format
    RuntimeError,  # an encrypted member
    SyntaxError,  # an array's header, which is a Python literal
    TokenError,
    TypeError,  # the keys of that header
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)

_STARTS = (b"PK\3\4", b"PK\5\6")
"""The first bytes of a zip file, and of a zip file without members."""


class Difference(NamedTuple):
    """The largest error of an output, relative to the expected output.

    `message` states the position and both values.
    """

    error: float
    allowed: float
    message: str


def fed_back(
    signature: Signature, inputs: Sequence[Array], results: Sequence[Array]
) -> list[Array]:
    """The next step's inputs: each variable has the contents that this step left."""
    following = list(inputs)
    for result, array in zip(signature.results, results, strict=True):
        if result.input is not None:
            following[result.input] = array
    return following


def load(path: str, prefix: str, names: Sequence[str]) -> list[Array]:
    """Returns the arrays of an npz file in the order of `names`.

    Array `i` is called `prefix` + `i`, or `names[i]` if that is not empty. The file
    must hold these arrays and no others; otherwise raises `LocatedError`.
    """
    with open(path, "rb") as stream:  # np.load would leave it open on errors
        start = stream.read(4)
        if start == b"\x93NUM":
            raise LocatedError(f"{path}: a single array, expected an npz file")
        if start not in _STARTS:  # np.load would take it for a pickle
            raise LocatedError(f"{path}: cannot be read as npz: it is not a zip file")
        stream.seek(0)
        try:
            file = cast(Mapping[str, object], np.load(stream, allow_pickle=False))
            wanted = [
                number if (number := f"{prefix}{index}") in file else name or number
                for index, name in enumerate(names)
            ]
            _check_names(path, file.keys(), wanted)
            arrays: list[Array] = []
            for name in wanted:
                member = file[name]
                if not isinstance(member, np.ndarray):  # the member is not .npy
                    raise LocatedError(f"{path}: member {name!r} is not an array")
                arrays.append(cast(Array, member))
        except _UNREADABLE as error:
            raise LocatedError(f"{path}: cannot be read as npz: {error}") from None
    return arrays


def _check_names(path: str, names: Collection[str], wanted: Sequence[str]) -> None:
    missing = ", ".join(name for name in wanted if name not in names)
    extra = ", ".join(sorted(set(names) - set(wanted)))
    if missing or extra:
        has = [f"has no {missing}"] * bool(missing) + [f"has {extra}"] * bool(extra)
        expected = ", ".join(wanted) or "no arrays"
        raise LocatedError(f"{path}: {' and '.join(has)}, expected {expected}")


def load_inputs(
    path: str, inputs: Sequence[Input], names: Sequence[str]
) -> list[Array]:
    """The inputs from an npz file. Raises `LocatedError` for a wrong shape or type."""
    arrays = load(path, "arg", names)
    for index, (arg, array) in enumerate(zip(inputs, arrays, strict=True)):
        if array.dtype.kind == "V" and array.itemsize == arg.dtype.itemsize:
            array = array.view(arg.dtype)  # npz does not know bfloat16
        if (array.shape, array.dtype) != (arg.shape, arg.dtype):
            name = names[index] or f"arg{index}"
            raise LocatedError(
                f"{path}: {name} is {array.dtype}{list(array.shape)}, "
                f"expected {arg.dtype}{list(arg.shape)}"
            )
        arrays[index] = np.ascontiguousarray(array).reshape(array.shape)
    return arrays


def save(path: str, prefix: str, names: Sequence[str], arrays: Sequence[Array]) -> None:
    """Writes an npz file that `load` reads."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:  # np.savez takes no array called `file`
        for index, (name, array) in enumerate(zip(names, arrays, strict=True)):
            is_known = name and names.count(name) == 1
            member = f"{name if is_known else f'{prefix}{index}'}.npy"
            with file.open(zipfile.ZipInfo(member), "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)
    write_atomically(path, buffer.getvalue())


def difference(
    name: str, got: Array, expected: Array, rtol: float, atol: float
) -> Difference:
    """The largest error of output `name`, and the error that the tolerances allow.

    The allowed error is `atol + rtol * max|expected|`. Equal infinities, and NaN in
    both arrays, count as equal.
    """
    if expected.dtype.kind == "V" and expected.itemsize == got.itemsize:
        expected = expected.view(got.dtype)
    if got.shape != expected.shape:
        message = f"{name} has shape {list(got.shape)}, expected {list(expected.shape)}"
        return Difference(np.inf, 0.0, message)
    if not got.size:
        return Difference(0.0, 0.0, f"{name} is empty")
    kind = np.complex128 if "c" in (got.dtype.kind, expected.dtype.kind) else np.float64
    x, y = got.astype(kind), expected.astype(kind)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.where(same, 0.0, np.abs(x - y))
    errors = np.where(np.isnan(errors), np.inf, errors)
    magnitude = float(np.max(np.abs(y), where=np.isfinite(y), initial=0.0))
    allowed = atol + rtol * magnitude
    place = np.unravel_index(np.argmax(errors), errors.shape)
    error = float(errors[place])
    where = ", ".join(str(int(index)) for index in place)
    return Difference(
        error,
        allowed,
        f"{name} is off by {error:.3g} at [{where}]: {got[place]}, expected "
        f"{expected[place]}; allowed is {allowed:.3g} "
        f"({atol:g} + {rtol:g} of the largest magnitude {magnitude:.3g})",
    )
