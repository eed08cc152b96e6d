"""Bounds of the elements of integer tensors, by interval arithmetic.

The bounds follow from the operations that compute a value, and from its type: an iota,
a clamp, a remainder, an unsigned number. Each arm of a select is known to be read only
where its predicate holds, or does not. So `select(i < 0, i + n, i)`, NumPy's negative
indices, is `i` if `i` is known not to be negative.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias, cast

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import OpResult, SSAValue

from . import elementwise as ew
from .base import TensorOp, is_static, tensor_type_of, value_element, value_shape
from .bodies import SortOp
from .elements import is_integer, limits, width_and_sign
from .indexing import DynamicSliceOp, GatherOp
from .shaping import ConcatenateOp, ConstantOp, IotaOp, ViewOp

Bounds: TypeAlias = tuple[int, int]
"""The smallest and the largest integer, both included."""

Known: TypeAlias = Mapping[SSAValue, Bounds]
"""Bounds of the elements at the positions where a predicate holds."""

MOST_OPERATIONS = 32
"""The most visits of operations for one value, also of those of predicates: the
operations that compute an index from an argument are fewer. Without this limit, the
cases of a predicate are exponentially many."""

MOST_ELEMENTS = 1 << 10
"""The most elements of a constant that are compared."""

NEGATED = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
_SWAPPED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}


def bounds(value: SSAValue) -> Bounds:
    """The bounds of an integer tensor's elements."""
    return _Search().bounds(value, {})


def always(direction: str, left: Bounds, right: Bounds) -> bool:
    """Whether a comparison holds for all integers within these bounds."""
    (least, most), (lower, upper) = left, right
    match direction:
        case "LT":
            return most < lower
        case "LE":
            return most <= lower
        case "GT":
            return least > upper
        case "GE":
            return least >= upper
        case "NE":
            return most < lower or least > upper
        case _:
            return least == most == lower == upper


class _Search:
    def __init__(self) -> None:
        self._left = MOST_OPERATIONS

    def bounds(self, value: SSAValue, known: Known) -> Bounds:
        if value in known:
            return known[value]
        op, of_type = value.owner, limits(value_element(value))
        if not isinstance(op, TensorOp) or op.outs or not self._left:
            return of_type
        self._left -= 1
        low, high = self._computed(op, value, known) or of_type
        return (low, high) if of_type[0] <= low <= high <= of_type[1] else of_type

    def _computed(self, op: TensorOp, value: SSAValue, known: Known) -> Bounds | None:
        """The bounds without overflow; None if they are unknown."""
        match op:
            case ConstantOp():
                return _of_constant(op)
            case IotaOp() if is_static(tensor_type_of(value.type)):
                return _positions(value, op.dimension.value.data)
            case SortOp() if cast(OpResult, value).index in op.numbered:
                (first, *_), (dim,) = op.inputs, op.along
                is_known = is_static(tensor_type_of(first.type))
                return _positions(first, dim) if is_known else None
            case ViewOp() | GatherOp() | DynamicSliceOp():
                # Elements of other positions, about which nothing is known.
                return self.bounds(op.inputs[0], {})
            case ConcatenateOp():
                return _union([self.bounds(x, {}) for x in op.inputs])
            case ew.SelectOp():
                return _union(
                    [
                        self.bounds(arm, {**known, **case})
                        for holds, arm in zip((True, False), op.inputs[1:], strict=True)
                        for case in self._cases(op.inputs[0], known, holds)
                    ]
                )
            case ew.ElementwiseOp() if all(
                is_integer(value_element(x)) for x in op.inputs
            ):
                return _of_numbers(op, [self.bounds(x, known) for x in op.inputs])
            case _:
                return None

    def _cases(self, predicate: SSAValue, known: Known, holds: bool) -> Sequence[Known]:
        """What is known where a predicate holds, or where it does not: one of these."""
        op = predicate.owner
        if not self._left:
            return [{}]
        self._left -= 1
        match op:
            case ew.AndOp() | ew.OrOp():
                first, second = op.inputs
                cases = self._cases(first, known, holds)
                if isinstance(op, ew.AndOp) != holds:
                    return [*cases, *self._cases(second, known, holds)]
                return [
                    {**case, **more}
                    for case in cases
                    for more in self._cases(second, {**known, **case}, holds)
                ]
            case ew.NotOp():
                return self._cases(op.inputs[0], known, not holds)
            case ew.CompareOp() if is_integer(value_element(op.inputs[0])):
                direction = op.direction.data
                if not holds:
                    direction = NEGATED[direction]
                return [self._compared(op.inputs, direction, known)]
            case _:
                return [{}]

    def _compared(
        self, values: Sequence[SSAValue], direction: str, known: Known
    ) -> Known:
        """What follows from a comparison for both values."""
        found = dict[SSAValue, Bounds]()
        left, right = (self.bounds(value, known) for value in values)
        for value, ours, other, how in (
            (values[0], left, right, direction),
            (values[1], right, left, _SWAPPED[direction]),
        ):
            low, high = ours
            match how:
                case "EQ":
                    low, high = max(low, other[0]), min(high, other[1])
                case "LT" | "LE":
                    high = min(high, other[1] - (how == "LT"))
                case "GT" | "GE":
                    low = max(low, other[0] + (how == "GT"))
                case _:
                    pass
            if low <= high:  # else no element satisfies the comparison
                found[value] = low, high
        return found


def _positions(value: SSAValue, dim: int) -> Bounds:
    """The bounds of indices along a dimension."""
    return 0, max(value_shape(value)[dim] - 1, 0)


def _union(parts: Sequence[Bounds]) -> Bounds:
    return min(low for low, _ in parts), max(high for _, high in parts)


def _of_constant(op: ConstantOp) -> Bounds | None:
    if isinstance(number := op.splat, IntegerAttr):
        width, is_signed = width_and_sign(number.type)
        exact = number.value.data & ((1 << width) - 1)
        if is_signed and exact >> (width - 1):
            exact -= 1 << width
        return exact, exact
    numbers = integers_of(op)
    return (min(numbers), max(numbers)) if numbers else None


def integers_of(op: ConstantOp) -> Sequence[int] | None:
    """The elements of an integer constant; None if they are equal, or many."""
    if op.splat is not None or prod(value_shape(op.result)) > MOST_ELEMENTS:
        return None
    from ..dtypes import constant, numpy_dtype

    return (
        constant(op.value, numpy_dtype(value_element(op.result), op)).ravel().tolist()
    )


def _of_numbers(op: ew.ElementwiseOp, given: Sequence[Bounds]) -> Bounds | None:
    """The bounds of an operation on integers of these bounds."""
    match op, given:
        case ew.AddOp(), ((a, b), (c, d)):
            return a + c, b + d
        case ew.SubtractOp(), ((a, b), (c, d)):
            return a - d, b - c
        case ew.MultiplyOp(), ((a, b), (c, d)):
            corners = a * c, a * d, b * c, b * d
            return min(corners), max(corners)
        case ew.MaximumOp(), ((a, b), (c, d)):
            return max(a, c), max(b, d)
        case ew.MinimumOp(), ((a, b), (c, d)):
            return min(a, c), min(b, d)
        case ew.ClampOp(), ((a, b), (c, d), (e, f)):
            return min(max(a, c), e), min(max(b, d), f)
        case ew.AndOp(), ((a, b), (c, d)) if max(a, c) >= 0:
            return 0, min(high for low, high in given if low >= 0)
        case ew.RemainderOp(), ((a, b), (c, d)) if c > 0:
            return max(min(a, 0), 1 - d), min(max(b, 0), d - 1)
        case ew.DivideOp(), ((a, b), (c, d)) if c > 0:
            return a // d if a >= 0 else -(-a // c), max(b, 0) // c
        case ew.AbsOp(), ((a, b),):
            return max(a, -b, 0), max(-a, b)
        case ew.ConvertOp(), ((a, b),):
            return a, b
        case _:
            return None
