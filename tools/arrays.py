"""A program's inputs and outputs as NumPy arrays: npz files, random values, comparison.

Inputs are `arg0`, `arg1`, … and outputs `out0`, `out1`, … in signature order; a variable
is an input, and its contents afterwards are the output that it was donated to.
"""

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp

from tensorplan.dialects.tgraph.base import VariableType, is_static, tensor_type_of
from tensorplan.passes.functions import RESULT, VARIABLE, argument_attributes
from tensorplan.runtime.dtypes import numpy_dtype
from tensorplan.tools.common import UsageError, suggest, write_atomically

Array: TypeAlias = NDArray[Any]


class Input(NamedTuple):
    """One argument of the program, as the caller sees it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_variable: bool
    result: int | None
    """The output that holds the variable's contents afterwards, if it is named."""


class Difference(NamedTuple):
    """How far an output is from what was expected, where it is farthest."""

    error: float
    allowed: float
    message: str


def entry_of(module: ModuleOp, name: str | None) -> FuncOp:
    """The function to run: the one named, else `main`, else the only one.

    Raises `UsageError` if there is none.
    """
    functions = {
        op.sym_name.data: op
        for op in module.ops
        if isinstance(op, FuncOp) and not op.is_declaration
    }
    if name is None:
        name = next(iter(functions)) if len(functions) == 1 else "main"
    if name not in functions:
        known = ", ".join(f"@{other}" for other in functions) or "none"
        raise UsageError(
            f"no function @{name}{suggest(name, list(functions))}; there is {known}"
        )
    return functions[name]


def inputs_of(func: FuncOp) -> Sequence[Input]:
    """The arguments at any level; the destinations that bufferization adds are none."""
    inputs: list[Input] = []
    for argument, attributes in zip(
        func.body.block.args, argument_attributes(func), strict=True
    ):
        result = attributes.get(RESULT)
        index = result.value.data if isinstance(result, IntegerAttr) else None
        is_variable = isinstance(argument.type, VariableType) or VARIABLE in attributes
        if isinstance(argument.type, MemRefType) and result and not is_variable:
            continue
        type = tensor_type_of(argument.type)
        if not is_static(type):
            raise UsageError(
                f"arg{len(inputs)} has type {type}, expected a static shape"
            )
        dtype = numpy_dtype(type.element_type)
        inputs.append(Input(type.get_shape(), dtype, is_variable, index))
    return inputs


def random_inputs(inputs: Sequence[Input], seed: int) -> list[Array]:
    """Floats: normal, deviation 0.1; integers: 0 to 9; booleans: either."""
    random = np.random.default_rng(seed)
    arrays: list[Array] = []
    for shape, dtype, *_ in inputs:
        if dtype.kind == "b":
            values: Array = random.integers(0, 2, shape)
        elif dtype.kind in "iu":
            values = random.integers(0, 10, shape)
        else:
            values = random.standard_normal(shape) * 0.1
        arrays.append(np.asarray(values).astype(dtype))
    return arrays


def fed_back(
    inputs: Sequence[Input], arrays: Sequence[Array], results: Sequence[Array]
) -> list[Array]:
    """The next step's inputs: each variable has the contents that this step left."""
    arrays = list(arrays)
    # Variables that name no result come after all other results, in order.
    unnamed = [
        i for i, arg in enumerate(inputs) if arg.is_variable and arg.result is None
    ]
    for index, arg in enumerate(inputs):
        if arg.result is not None:
            arrays[index] = results[arg.result]
    for index, result in zip(
        unnamed, results[len(results) - len(unnamed) :], strict=True
    ):
        arrays[index] = result
    return arrays


def load(path: str, prefix: str, count: int) -> list[Array]:
    """The arrays `prefix0` … of an npz file. Raises `UsageError` if these are not all."""
    try:
        with np.load(path, allow_pickle=False) as file:
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise UsageError(f"{path}: a single array, expected an npz file")
            arrays: Mapping[str, Array] = {name: file[name] for name in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(f"{path}: cannot be read as npz: {error}") from None
    wanted = [f"{prefix}{index}" for index in range(count)]
    if missing := [name for name in wanted if name not in arrays]:
        raise UsageError(f"{path}: has no {', '.join(missing)}")
    if extra := sorted(arrays.keys() - set(wanted)):
        expected = f"{wanted[0]} to {wanted[-1]}" if wanted else "no arrays"
        raise UsageError(f"{path}: has {', '.join(extra)}, expected {expected}")
    return [arrays[name] for name in wanted]


def load_inputs(path: str, inputs: Sequence[Input]) -> list[Array]:
    """The inputs from an npz file. Raises `UsageError` for a wrong shape or type."""
    arrays = load(path, "arg", len(inputs))
    for index, (arg, array) in enumerate(zip(inputs, arrays, strict=True)):
        if array.dtype.kind == "V" and array.itemsize == arg.dtype.itemsize:
            array = array.view(arg.dtype)  # npz does not know bfloat16
        if (array.shape, array.dtype) != (arg.shape, arg.dtype):
            raise UsageError(
                f"{path}: arg{index} is {array.dtype}{list(array.shape)}, "
                f"expected {arg.dtype}{list(arg.shape)}"
            )
        arrays[index] = np.ascontiguousarray(array).reshape(array.shape)
    return arrays


def save(path: str, prefix: str, arrays: Sequence[Array]) -> None:
    """Writes `prefix0` … as an npz file."""
    buffer = io.BytesIO()
    named = {f"{prefix}{index}": array for index, array in enumerate(arrays)}
    np.savez(buffer, allow_pickle=False, **named)
    write_atomically(path, buffer.getvalue())


def difference(
    name: str, got: Array, expected: Array, rtol: float, atol: float
) -> Difference:
    """The largest error of an output; allowed is `atol + rtol * max|expected|`.

    Equal infinities, and NaN in both places, are no error.
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
