"""Keeps the partial results of reductions in registers, one for each lane."""

from collections.abc import Sequence
from dataclasses import dataclass

from ....dialects.dtypes import DType, identity, is_float
from ....dialects.tgraph.reducing import ReduceOp
from . import operations
from .code import LlvmFunction, Value
from .complexes import Complex
from .elements import mask_of, part_type, register_type, rounded
from .graphs import ElementNode
from .math import any_lane

BLOCK = 32
"""The number of additions to a partial sum before it is added to the total."""


class Accumulator:
    """Accepts values with any of `widths` lanes. If the reduction is `across` the
    lanes, the result is a scalar, otherwise a vector. `long` sums of floats have totals
    in f64, to which the caller must `flush` the partial sums regularly."""

    def __init__(
        self,
        code: LlvmFunction,
        node: ElementNode,
        widths: Sequence[int],
        across: bool,
        long: bool,
    ):
        assert isinstance(node.op, ReduceOp)
        self._code = code
        self._kind = node.op.kind.data
        self._dtype = dtype = part_type(node.dtype)
        self._is_across = across
        element = register_type(dtype)
        assert element is not None
        self._element = element
        number = identity(self._kind, dtype)
        if is_float(dtype):
            number = number.astype("float64")
        self._identity = code.number(number.item(), element)
        self._partial = {lanes: self._slot(self._identity, lanes) for lanes in widths}
        is_extreme = self._kind in ("maximum", "minimum")
        self._totals: dict[int, str] = {}
        self._nans: dict[int, str] = {}  # whether a NaN was seen
        if long and self._kind == "add" and is_float(dtype):
            zero = code.number(0, "double")
            self._totals = {lanes: self._slot(zero, lanes) for lanes in widths}
        if is_extreme and is_float(dtype):
            false = code.number(0, "i1")
            self._nans = {lanes: self._slot(false, lanes) for lanes in widths}

    def _slot(self, value: Value, lanes: int) -> str:
        return self._code.slot(self._code.widened(value, lanes))

    @property
    def has_totals(self) -> bool:
        return bool(self._totals)

    def take(self, value: Value | Complex, lanes: int, active: int) -> None:
        assert isinstance(value, Value)
        code = self._code
        value = code.widened(value, lanes)
        if active < lanes and self._is_across:
            mask = Value(code, mask_of(lanes, active), "i1", lanes)
            value = code.select(mask, value, self._identity)
        if self._nans:
            seen = code.get(self._nans[lanes], "i1", lanes)
            code.set(self._nans[lanes], seen | value.is_nan)
        so_far = code.get(self._partial[lanes], self._element, lanes)
        code.set(self._partial[lanes], combined(self._kind, self._dtype, value, so_far))

    def flush(self) -> None:
        """Adds the partial sums to the totals."""
        for lanes, slot in self._totals.items():
            self._code.set(slot, self._total(lanes))
            self._code.set(
                self._partial[lanes], self._code.widened(self._identity, lanes)
            )

    def result(self) -> Value:
        parts = [
            self._total(lanes)
            if self._totals
            else self._code.get(slot, self._element, lanes)
            for lanes, slot in self._partial.items()
        ]
        if self._is_across:
            parts = [self._across(part) for part in parts]
        result = parts[0]
        for part in parts[1:]:
            result = combined(self._kind, self._dtype, result, part)
        for lanes, slot in self._nans.items():
            seen = self._code.get(slot, "i1", lanes)
            if self._is_across:
                seen = any_lane(seen)
            result = self._code.select(seen, float("nan"), result)
        if result.element != self._element:
            result = result.cast("fptrunc", self._element)
        return rounded(result, self._dtype)

    def _total(self, lanes: int) -> Value:
        part = self._code.get(self._partial[lanes], self._element, lanes)
        if self._element == "float":
            part = part.cast("fpext", "double")
        return self._code.get(self._totals[lanes], "double", lanes) + part

    def _across(self, value: Value) -> Value:
        """Combines all lanes, in halves."""
        while value.lanes > 1:
            half = value.lanes // 2
            low = self._code.part(value, 0, half)
            high = self._code.part(value, half, half)
            value = combined(self._kind, self._dtype, low, high)
        return value


@dataclass(frozen=True)
class ComplexSum:
    """An accumulator for sums of complex numbers: the sums of both parts."""

    real: Accumulator
    imag: Accumulator

    @property
    def has_totals(self) -> bool:
        return self.real.has_totals

    def take(self, value: Value | Complex, lanes: int, active: int) -> None:
        assert isinstance(value, Complex)
        self.real.take(value.real, lanes, active)
        self.imag.take(value.imag, lanes, active)

    def flush(self) -> None:
        self.real.flush()
        self.imag.flush()

    def result(self) -> Complex:
        return Complex(self.real.result(), self.imag.result())


def combined(kind: str, dtype: DType, x: Value, y: Value) -> Value:
    """The combination of two elements in a reduction. For an extreme, if either is NaN,
    the result is `y`."""
    is_bool = dtype.kind == "b"
    match kind:
        case "add":
            return x | y if is_bool else x + y
        case "multiply":
            return x & y if is_bool else x * y
        case "maximum" | "minimum":
            return operations.better(kind, dtype, x, y)
        case "and":
            return x & y
        case _:
            return x | y


def combined_element(
    kind: str, dtype: DType, x: Value | Complex, y: Value | Complex
) -> Value | Complex:
    """Like `combined`, but rounded to `dtype`, with NaN if either element of an extreme
    is NaN, and for sums and products of complex numbers."""
    if isinstance(x, Complex) or isinstance(y, Complex):
        assert isinstance(x, Complex)
        assert isinstance(y, Complex)
        return x + y if kind == "add" else x * y
    if kind in ("maximum", "minimum"):
        return rounded(operations.extreme(kind)(dtype, x, y), dtype)
    return rounded(combined(kind, dtype, x, y), dtype)
