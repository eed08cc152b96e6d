"""What all kernels share: calls, the registry, and views without copies.

A kernel does not compute. It is given an operation and its arrays, and returns the
calls that compute: `(function, arguments)`, with all views, slices and constants made
ahead. What runs later allocates nothing that grows with the arrays (but for index
arrays, see indexing.py).

An output array may be the very memory of an input that the operation's `overwritable()`
lists, as seen through the same strides; no other overlap occurs.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.ir import Operation

from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.dtypes import Array, DType
from tensorplan.dialects.strides import reshaped_strides
from tensorplan.dialects.tgraph.base import Shape
from tensorplan.runtime.pool import Scratch

Call: TypeAlias = tuple[Callable[..., object], tuple[Any, ...]]
Kernel: TypeAlias = Callable[
    [Any, Sequence[Array], Sequence[Array], Scratch], list[Call]
]
"""`(op, inputs, outs, scratch) -> calls`."""

KERNELS: dict[type[Operation], Kernel] = {}
"""The kernel for each operation, or kind of operation, in destination form."""


def kernel(*ops: type[Operation]) -> Callable[[Kernel], Kernel]:
    def register(function: Kernel) -> Kernel:
        KERNELS.update(dict.fromkeys(ops, function))
        return function

    return register


def kernel_of(op: Operation) -> Kernel:
    """The kernel of the operation's class, or of one that it is derived from.

    Raises `LocatedError` for an operation without one.
    """
    for kind in type(op).__mro__:
        if kind in KERNELS:
            return KERNELS[kind]
    raise LocatedError(f"{op.name} has no kernel", op)


def compile_call(
    op: Operation,
    inputs: Sequence[Array],
    outs: Sequence[Array],
    scratch: Scratch,
    native: bool = True,
) -> list[Call]:
    """The calls that compute `outs` from `inputs`, as `op` says: native code where
    there is some (see `tensorplan.runtime.backends.native`), unless told otherwise.

    Raises `LocatedError` for an operation, or types of elements, without a kernel.
    """
    compute = kernel_of(op)
    scratch.reset()
    if not any(out.size for out in outs):
        return []
    if native:
        from tensorplan.runtime.backends.native import (
            compile_native,
            with_native_copies,
        )

        calls = compile_native(op, inputs, outs, scratch)
        if calls is not None:
            return calls
        return with_native_copies(compute(op, inputs, outs, scratch), scratch)
    return compute(op, inputs, outs, scratch)


def ufunc_call(function: np.ufunc, *arrays: Array) -> Call:
    """Inputs, then the output."""
    if function is np.maximum or function is np.minimum:
        # Of these two NumPy takes no output by position. (A deprecation of 2.4.)
        *inputs, out = arrays
        return partial(function, out=out), tuple(inputs)
    return function, arrays


def check_types(op: Operation, function: np.ufunc, *dtypes: DType) -> None:
    """Refuses element types on which NumPy does not compute in that very type."""
    if not _computes_in(function, dtypes):
        names = ", ".join(map(str, dtypes))
        raise LocatedError(f"{op.name} is not defined on elements of type {names}", op)


@cache
def _computes_in(function: np.ufunc, dtypes: tuple[DType, ...]) -> bool:
    try:
        return function.resolve_dtypes(dtypes) == dtypes
    except TypeError:
        return False


def same_memory(x: Array, y: Array) -> bool:
    """Whether two arrays are the same elements in the same order."""
    return (
        x.__array_interface__["data"][0] == y.__array_interface__["data"][0]
        and x.shape == y.shape
        and x.strides == y.strides
    )


def copy(out: Array, x: Array) -> list[Call]:
    """`out[...] = x`, converting elements if their types differ."""
    if out.dtype == x.dtype and same_memory(out, x):
        return []
    if out.dtype == x.dtype and out.size:
        return [(np.copyto, (out, x))]  # see `native.with_native_copies`
    return [(out.__setitem__, (..., x))]


def fill(out: Array, value: Array) -> list[Call]:
    """All elements of `out` become the rank-0 array `value` as it is now."""
    return [(out.fill, (value.item() if value.dtype.kind in "biuf" else value[()],))]


def try_reshape(x: Array, shape: Shape) -> Array | None:
    """A view of `x` with another shape, if there is one."""
    if x.size == 0:
        return x.reshape(shape)
    strides = reshaped_strides(x.shape, x.strides, shape)
    if strides is None:
        return None
    return np.lib.stride_tricks.as_strided(x, shape, strides)


def reshaped(x: Array, shape: Shape, scratch: Scratch) -> tuple[Array, list[Call]]:
    """`x` under another shape: a view, or a copy that the calls make."""
    view = try_reshape(x, shape)
    if view is not None:
        return view, []
    buffer = scratch.take(x.shape, x.dtype)
    return buffer.reshape(shape), copy(buffer, x)


def tiles(shape: Shape, limit: int) -> Iterator[tuple[slice, ...]]:
    """Cuts an iteration space along its leading dimensions into like parts.

    Each part has at most `limit` elements, or one if `limit` is smaller, and is given
    as one slice for each dimension. Only one dimension is cut within: those before it
    are taken one by one, those after it whole.
    """
    if 0 in shape:
        return
    if not shape:
        yield ()
        return
    axis = 0
    while prod(shape[axis + 1 :]) > limit and axis < len(shape) - 1:
        axis += 1
    inner = prod(shape[axis + 1 :])
    parts = -(-shape[axis] // max(1, limit // inner))
    step = -(-shape[axis] // parts)
    rest = tuple(slice(0, size) for size in shape[axis + 1 :])
    for outer in np.ndindex(*shape[:axis]):
        before = tuple(slice(i, i + 1) for i in cast(tuple[int, ...], outer))
        for start in range(0, shape[axis], step):
            yield (*before, slice(start, min(start + step, shape[axis])), *rest)
