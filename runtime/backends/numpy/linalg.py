"""`linalg` on memrefs, by NumPy, for upstream programs that run here.

    calls(op, arrays) -> the calls that compute

An operation is a nest of loops with a body. The body is computed for all indices of the
parallel loops at a time, once for each iteration of the reduction loops, in order. This
supports programs that mlir-opt bufferized, and is simple rather than fast;
`runtime/backends/mlir/` runs native code.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DenseArrayBase,
    MemRefType,
)
from xdsl.dialects.linalg import attrs, ops
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from ....dialects.diagnostics import LocatedError, name_of
from ....dialects.dtypes import Array, constant, numpy_dtype
from ....support.arrays import strided
from ...calls import Call
from .numbers import function_of

ELEMENTWISE = frozenset(
    f"linalg.{name}"
    for name in (
        *("abs", "add", "ceil", "copy", "div", "div_unsigned", "erf", "exp", "fill"),
        *("floor", "log", "max", "min", "mul", "negf", "powf", "reciprocal", "round"),
        *("rsqrt", "select", "sqrt", "square", "sub", "tanh"),
    )
)


def split(op: Operation) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
    """The values that the body reads (operands, and others), and the destinations."""
    sizes = op.properties.get("operandSegmentSizes")
    count = int(sizes.get_values()[-1]) if isinstance(sizes, DenseArrayBase) else 1
    inputs, outs = op.operands[:-count], op.operands[-count:]
    outside = [
        value
        for inner in _body(op).ops
        for value in inner.operands
        if value.owner is not _body(op)
        and not (isinstance(value.owner, Operation) and value.owner.parent is _body(op))
    ]
    return list(dict.fromkeys([*inputs, *outside])), outs


def reads_destinations(op: Operation) -> bool:
    """Whether the body combines old elements of a destination with new ones."""
    _, outs = split(op)
    return any(argument.uses for argument in _body(op).args[-len(outs) :])


def calls(op: Operation, arrays: Mapping[SSAValue, Array]) -> list[Call]:
    """The calls for an operation on the arrays of its operands.

    Raises `LocatedError` for unsupported operations.
    """
    loops, body = _loops(op), _body(op)
    shape = loops.shape([arrays[value] for value in op.operands], op)
    order = sorted(range(len(shape)), key=lambda d: d not in loops.reduced)
    values: dict[SSAValue, Array] = {}
    for operand, map, argument in zip(op.operands, loops.maps, body.args, strict=True):
        spread = _spread(arrays[operand], map, shape, op)
        values[argument] = spread.transpose(order)
    steps: list[tuple[SSAValue, Callable[..., Any], Sequence[SSAValue]]] = []
    yielded: Sequence[SSAValue] = ()
    for inner in body.ops:
        if isinstance(inner, ops.YieldOp):
            yielded = inner.operands
        elif isinstance(inner, ops.IndexOp):
            dim = inner.dim.value.data
            numbers = np.arange(shape[dim]).reshape(
                [-1 if d == dim else 1 for d in range(len(shape))]
            )
            values[inner.result] = np.broadcast_to(numbers, shape).transpose(order)
        elif isinstance(inner, arith.ConstantOp):
            dtype = numpy_dtype(inner.result.type, inner)
            values[inner.result] = constant(inner.value, dtype)
        elif isinstance(inner, memref.LoadOp):
            steps.append((inner.res, _load, inner.operands))
        elif function := function_of(inner):
            steps.append((inner.results[0], function, inner.operands))
        else:
            raise LocatedError(f"{name_of(inner)} has no kernel", inner)
    for value in split(op)[0]:
        values.setdefault(value, arrays[value])
    moving = {
        argument: values[argument]
        for argument in values
        if values[argument].ndim == len(shape) and argument not in arrays
    }
    iterations = [shape[d] for d in order if d in loops.reduced]
    outs = [values[argument] for argument in body.args[-len(yielded) :]]
    return [(_run, (iterations, values, moving, steps, yielded, outs))]


def _run(
    iterations: Sequence[int],
    values: Mapping[SSAValue, Array],
    moving: Mapping[SSAValue, Array],
    steps: Sequence[tuple[SSAValue, Callable[..., Any], Sequence[SSAValue]]],
    yielded: Sequence[SSAValue],
    outs: Sequence[Array],
) -> None:
    """`moving` are the values of which each iteration sees one part."""
    for iteration in product(*map(range, iterations)):
        known = {
            **values,
            **{value: array[iteration] for value, array in moving.items()},
        }
        for result, function, operands in steps:
            known[result] = function(*(known[value] for value in operands))
        results = [known[value] for value in yielded]
        for out, result in zip(outs, results, strict=True):
            out[iteration] = result


def _load(array: Array, *indices: Array) -> Any:
    return array[indices]


@dataclass(frozen=True)
class _Loops:
    maps: Sequence[AffineMap]
    reduced: frozenset[int]

    def shape(self, arrays: Sequence[Array], op: Operation) -> list[int]:
        sizes: dict[int, int] = {}
        for map, array in zip(self.maps, arrays, strict=True):
            for expr, size in zip(map.results, array.shape, strict=True):
                if isinstance(expr, AffineDimExpr):
                    sizes[expr.position] = size
        count = self.maps[0].num_dims
        if set(range(count)) - sizes.keys():
            raise LocatedError("no operand determines the size of a loop", op)
        return [sizes[d] for d in range(count)]


def _body(op: Operation) -> Block:
    if op.regions and op.regions[0].first_block is not None:
        return op.regions[0].block
    raise _unknown(op)


def _unknown(op: Operation) -> LocatedError:
    return LocatedError(
        f"{name_of(op)} has no kernel, expected linalg.generic "
        "(mlir-opt --linalg-generalize-named-ops)",
        op,
    )


def _loops(op: Operation) -> _Loops:
    if isinstance(op, ops.GenericOp):
        maps = [map.data for map in op.indexing_maps]
        reduction = attrs.IteratorType.REDUCTION
        kinds = [iterator.data for iterator in op.iterator_types]
        return _Loops(
            maps, frozenset(d for d, kind in enumerate(kinds) if kind is reduction)
        )
    if isinstance(op, ops.MatmulOp):
        maps = [map.data for map in op.indexing_maps]
        return _Loops(maps, frozenset([2]))
    rank = max(map(_rank, (value.type for value in op.operands)))
    all = AffineMap.identity(rank)
    match op:
        case ops.TransposeOp():
            order = op.permutation.get_values()
            source = tuple(all.results[order.index(d)] for d in range(rank))
            return _Loops([AffineMap(rank, 0, source), all], frozenset())
        case ops.BroadcastOp():
            return _Loops([_without(all, op.dimensions.get_values()), all], frozenset())
        case ops.ReduceOp():
            dims = op.dimensions.get_values()
            return _Loops([all, _without(all, dims)], frozenset(dims))
        case _ if name_of(op) in ELEMENTWISE:
            nothing = _without(all, range(rank))
            return _Loops(
                [all if _rank(v.type) == rank else nothing for v in op.operands],
                frozenset(),
            )
        case _:
            raise _unknown(op)


def _rank(type: Attribute) -> int:
    return type.get_num_dims() if isinstance(type, MemRefType) else 0


def _without(map: AffineMap, dims: Sequence[int]) -> AffineMap:
    kept = tuple(expr for d, expr in enumerate(map.results) if d not in dims)
    return AffineMap(map.num_dims, 0, kept)


def _spread(array: Array, map: AffineMap, shape: Sequence[int], op: Operation) -> Array:
    """The array as the loops see it: a view with a dimension for each loop."""
    if not all(_is_linear(expr) for expr in map.results):
        raise LocatedError(f"{name_of(op)} has the indexing map {map}", op)
    zeros = [0] * len(shape)
    first = map.eval(zeros, [])
    part = array[tuple(slice(start, None) for start in first)]
    strides: list[int] = []
    for d in range(len(shape)):
        unit = map.eval([int(d == e) for e in range(len(shape))], [])
        ends = zip(first, unit, array.strides, strict=True)
        strides.append(sum((end - start) * stride for start, end, stride in ends))
    return strided(part, shape, strides)


def _is_linear(expr: AffineExpr) -> bool:
    if not isinstance(expr, AffineBinaryOpExpr):
        return True
    kinds = (AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul)
    return expr.kind in kinds and _is_linear(expr.lhs) and _is_linear(expr.rhs)
