"""The functions of upstream operations, on scalars or whole arrays.

`function_of(op)` returns the NumPy function for an operation of `arith` or `math`. It
is called on rank-0 arrays for scalars between operations on memrefs, and on larger
arrays for the body of a `linalg.generic`. Integers are signless; operations that treat
them as unsigned convert them.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from ....dialects.diagnostics import name_of
from ....dialects.dtypes import Array, DType, numpy_dtype

Function = Callable[..., Any]


def function_of(op: Operation) -> Function | None:
    """The function from the operands to the result; None if there is none."""
    name = name_of(op)
    if name in ("arith.cmpf", "arith.cmpi"):
        predicate = op.properties["predicate"]
        table = _FLOAT_PREDICATES if name == "arith.cmpf" else _INTEGER_PREDICATES
        return table[cast(IntegerAttr, predicate).value.data]
    if name in _CASTS:
        target = numpy_dtype(op.results[0].type, op)
        return partial(_cast, target=target, is_unsigned=_CASTS[name])
    if isinstance(op, arith.BitcastOp):
        target = numpy_dtype(op.results[0].type, op)
        return partial(_view, target=target)
    return _FUNCTIONS.get(name)


def _unsigned(function: Function) -> Function:
    """`function` on integers that are reinterpreted as unsigned."""

    def on_unsigned(*arrays: Array) -> Any:
        arrays = tuple(map(np.asarray, arrays))
        dtype = arrays[0].dtype
        if dtype.kind == "b":
            return function(*arrays)
        result = function(*(x.view(f"u{dtype.itemsize}") for x in arrays))
        return result if result.dtype.kind == "b" else result.view(dtype)

    return on_unsigned


def _quotient(x: Array, y: Array) -> Any:
    """The quotient, rounded towards zero."""
    quotient = np.floor_divide(x, y)
    return quotient + ((quotient < 0) & (quotient * y != x))


def _view(x: Array, target: DType) -> Array:
    return np.asarray(x).view(target)


def _cast(x: Array, target: DType, is_unsigned: bool) -> Any:
    x = np.asarray(x)
    if x.dtype.kind == "b" and not is_unsigned and target.kind in "if":
        return -x.astype(target)  # the bit is the sign
    if x.dtype.kind == "i" and is_unsigned:
        x = x.view(f"u{x.dtype.itemsize}")
    if target.kind == "b":  # the lowest bit
        return (x & 1).astype(bool)
    return x.astype(target)


_CASTS = {
    "arith.extf": False,
    "arith.truncf": False,
    "arith.extsi": False,
    "arith.extui": True,
    "arith.trunci": False,
    "arith.sitofp": False,
    "arith.uitofp": True,
    "arith.fptosi": False,
    "arith.fptoui": True,
    "arith.index_cast": False,
    "arith.index_castui": True,
}
"""Casts, and whether the integer is treated as unsigned."""

_COMPARISONS = (np.equal, np.greater, np.greater_equal, np.less, np.less_equal)


def _is_unordered(x: Array, y: Array) -> Any:
    return np.isnan(x) | np.isnan(y)


def _is_ordered(x: Array, y: Array) -> Any:
    return ~_is_unordered(x, y)


def _never(x: Array, y: Array) -> Any:
    return np.zeros(np.broadcast(x, y).shape, bool)


def _always(x: Array, y: Array) -> Any:
    return ~_never(x, y)


def _ordered(function: Function) -> Function:
    def both(x: Array, y: Array) -> Any:
        return function(x, y) & _is_ordered(x, y)

    return both


def _or_unordered(function: Function) -> Function:
    def either(x: Array, y: Array) -> Any:
        return function(x, y) | _is_unordered(x, y)

    return either


_FLOAT_PREDICATES: tuple[Function, ...] = (
    _never,
    *map(_ordered, (*_COMPARISONS, np.not_equal)),
    _is_ordered,
    *map(_or_unordered, (*_COMPARISONS, np.not_equal)),
    _is_unordered,
    _always,
)
"""Indexed by MLIR's number of the predicate."""

_ORDERINGS = (np.less, np.less_equal, np.greater, np.greater_equal)
_INTEGER_PREDICATES: tuple[Function, ...] = (
    np.equal,
    np.not_equal,
    *_ORDERINGS,
    *map(_unsigned, _ORDERINGS),
)


def _fma(x: Array, y: Array, z: Array) -> Any:
    return x * y + z


def _rsqrt(x: Array) -> Any:
    return 1 / np.sqrt(x)


_FUNCTIONS: Mapping[str, Function] = {
    "arith.addf": np.add,
    "arith.addi": np.add,
    "arith.andi": np.bitwise_and,
    "arith.divf": np.divide,
    "arith.divsi": _quotient,
    "arith.divui": _unsigned(np.floor_divide),
    "arith.maximumf": np.maximum,
    "arith.maxnumf": np.fmax,
    "arith.maxsi": np.maximum,
    "arith.maxui": _unsigned(np.maximum),
    "arith.minimumf": np.minimum,
    "arith.minnumf": np.fmin,
    "arith.minsi": np.minimum,
    "arith.minui": _unsigned(np.minimum),
    "arith.mulf": np.multiply,
    "arith.muli": np.multiply,
    "arith.negf": np.negative,
    "arith.ori": np.bitwise_or,
    "arith.remf": np.fmod,
    "arith.remsi": np.fmod,
    "arith.remui": _unsigned(np.remainder),
    "arith.select": np.where,
    "arith.subf": np.subtract,
    "arith.subi": np.subtract,
    "arith.xori": np.bitwise_xor,
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.atan2": np.arctan2,
    "math.cbrt": np.cbrt,
    "math.ceil": np.ceil,
    "math.copysign": np.copysign,
    "math.cos": np.cos,
    "math.exp": np.exp,
    "math.expm1": np.expm1,
    "math.floor": np.floor,
    "math.fma": _fma,
    "math.log": np.log,
    "math.log1p": np.log1p,
    "math.powf": np.power,
    "math.roundeven": np.rint,
    "math.rsqrt": _rsqrt,
    "math.sin": np.sin,
    "math.sqrt": np.sqrt,
    "math.tan": np.tan,
    "math.tanh": np.tanh,
    "math.trunc": np.trunc,
}
