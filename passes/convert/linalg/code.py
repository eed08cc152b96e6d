"""Builds upstream operations in order: scalars, loops, element types."""

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    f32,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects.tgraph.base import AnyMemRef
from ....dialects.tgraph.elements import limits

AnyInteger: TypeAlias = IntegerType[int, Signedness]

index = IndexType()


def is_integer(element: Attribute) -> bool:
    return isinstance(element, IntegerType)


def is_float(element: Attribute) -> bool:
    return not isinstance(element, IntegerType | IndexType)


def is_small_float(element: Attribute) -> bool:
    """Whether `element` is a float type of less than 32 bits, computed in f32."""
    return is_float(element) and not isinstance(element, Float32Type | Float64Type)


def is_unsigned(element: Attribute) -> bool:
    """Whether `element` is an unsigned integer type; `i1` is."""
    if not isinstance(element, IntegerType):
        return False
    integer = cast(AnyInteger, element)
    return integer.width.data == 1 or integer.signedness.data is Signedness.UNSIGNED


def signless(element: Attribute) -> Attribute:
    """The element type as upstream dialects compute with it."""
    if not is_integer(element):
        return element
    return IntegerType(width(element))


def sum_type(element: Attribute) -> Attribute:
    """The type in which many elements are added up: f64 for f32, f32 below."""
    if isinstance(element, Float32Type):
        return f64
    return dot_type(element)


def dot_type(element: Attribute) -> Attribute:
    """The type in which products are added up: f32 for smaller floats."""
    return f32 if is_small_float(element) else signless(element)


def width(element: Attribute) -> int:
    assert isinstance(element, IntegerType)
    return cast(AnyInteger, element).width.data


class MlirCode:
    """Appends operations to a block or to another sink."""

    def __init__(self, sink: Callable[[Operation], object]):
        self.sink = sink

    @staticmethod
    def of(block: Block) -> "MlirCode":
        return MlirCode(block.add_op)

    def add(self, op: Operation) -> SSAValue:
        """Appends an operation; returns its first result."""
        self.sink(op)
        return op.results[0]

    def do(self, op: Operation) -> None:
        """Appends an operation without results."""
        self.sink(op)

    def constant(self, number: float | int, element: Attribute) -> SSAValue:
        """Appends a constant of an element type. Integers wrap around."""
        type = signless(element)
        if isinstance(type, IndexType):
            return self.add(arith.ConstantOp(IntegerAttr(int(number), type)))
        if not is_float(type):
            bits = width(type)
            wrapped = int(number) & ((1 << bits) - 1)
            if wrapped >> (bits - 1):
                wrapped -= 1 << bits
            integer = IntegerAttr(wrapped, cast(IntegerType, type))
            return self.add(arith.ConstantOp(integer))
        value = FloatAttr(float(number), cast(AnyFloat, type))
        return self.add(arith.ConstantOp(value))

    def to_index(self, value: SSAValue, element: Attribute) -> SSAValue:
        """Converts an integer to an index."""
        wide = value if width(element) == 64 else self.convert(value, element, i64)
        return self.add(arith.IndexCastOp(wide, index))

    def load(self, source: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        """Loads an element as signless: unsigned memrefs become signless in the end."""
        type = signless(cast(AnyMemRef, source.type).element_type)
        return self.add(
            memref.LoadOp.create(operands=[source, *indices], result_types=[type])
        )

    def store(
        self, value: SSAValue, target: SSAValue, indices: Sequence[SSAValue]
    ) -> None:
        self.do(memref.StoreOp.create(operands=[value, target, *indices]))

    def loop(
        self,
        size: int,
        body: Callable[["MlirCode", SSAValue, Sequence[SSAValue]], Sequence[SSAValue]],
        carried: Sequence[SSAValue] = (),
    ) -> Sequence[SSAValue]:
        """Appends an `scf.for` over 0 to `size` - 1. `body(code, i, carried)` returns
        the values that the next iteration carries. Returns the last of these."""
        block = Block(arg_types=[index, *(value.type for value in carried)])
        inner = MlirCode.of(block)
        results = body(inner, block.args[0], block.args[1:])
        inner.do(scf.YieldOp(*results))
        start, stop, step = (self.constant(n, index) for n in (0, size, 1))
        loop = scf.ForOp(start, stop, step, list(carried), Region(block))
        self.do(loop)
        return loop.results

    def loops(
        self, shape: Sequence[int], body: Callable[["MlirCode", list[SSAValue]], None]
    ) -> None:
        """Appends loops over all indices of a shape, in row-major order."""

        def nest(code: MlirCode, indices: list[SSAValue]) -> None:
            if len(indices) == len(shape):
                body(code, indices)
                return

            def each(inner: MlirCode, i: SSAValue, _: Sequence[SSAValue]):
                nest(inner, [*indices, i])
                return ()

            code.loop(shape[len(indices)], each)

        nest(self, [])

    def when(self, condition: SSAValue, body: Callable[["MlirCode"], None]) -> None:
        """Appends an `scf.if` without results."""
        block = Block()
        inner = MlirCode.of(block)
        body(inner)
        inner.do(scf.YieldOp())
        self.do(scf.IfOp(condition, (), Region(block)))

    def convert(
        self, value: SSAValue, source: Attribute, target: Attribute
    ) -> SSAValue:
        """Converts a number to another element type.

        Floats are rounded toward zero to integers, as in StableHLO. Numbers out of
        range become the nearest integer of the type, and NaN becomes 0, as in XLA.
        """
        if signless(source) == signless(target):
            return value
        type = signless(target)
        if is_float(source) and is_float(target):
            return self._convert_float(value, source, target)
        if type == i1:
            zero = self.constant(0, source)
            if is_float(source):
                return self.add(arith.CmpfOp(value, zero, "une"))
            return self.add(arith.CmpiOp(value, zero, "ne"))
        if is_float(source):
            return self._to_integer(value, source, target)
        if is_float(target):
            wide = f32 if is_small_float(target) else type
            cast_ = arith.UIToFPOp if is_unsigned(source) else arith.SIToFPOp
            number = self.add(cast_(value, cast(AnyFloat, wide)))
            return self._convert_float(number, wide, target)
        if width(source) > width(target):
            return self.add(arith.TruncIOp(value, cast(IntegerType, type)))
        extend = arith.ExtUIOp if is_unsigned(source) else arith.ExtSIOp
        return self.add(extend(value, cast(IntegerType, type)))

    def _convert_float(
        self, value: SSAValue, source: Attribute, target: Attribute
    ) -> SSAValue:
        if source == target:
            return value
        if _bits(source) < _bits(target):
            return self.add(arith.ExtFOp(value, target))
        if isinstance(source, Float64Type) and is_small_float(target):
            value, source = self.add(arith.TruncFOp(value, f32)), f32
        elif is_small_float(source):  # f16 and bf16
            value = self.add(arith.ExtFOp(value, f32))
        return self.add(arith.TruncFOp(value, cast(AnyFloat, target)))

    def _to_integer(
        self, value: SSAValue, source: Attribute, target: Attribute
    ) -> SSAValue:
        if is_small_float(source):
            value, source = self.add(arith.ExtFOp(value, f32)), f32
        low, high = limits(target)
        type = cast(IntegerType, signless(target))
        cast_ = arith.FPToUIOp if is_unsigned(target) else arith.FPToSIOp
        # Compares with the first number above the range, which is a power of two.
        above = self.constant(high + 1, source)
        below = self.constant(low, source)
        is_high = self.add(arith.CmpfOp(value, above, "oge"))
        is_inside = self.add(arith.CmpfOp(value, below, "oge"))
        is_low = self.add(arith.CmpfOp(value, below, "olt"))
        is_good = self.add(arith.AndIOp(is_inside, self.invert(is_high)))
        zero = self.constant(0, source)
        safe = self.add(arith.SelectOp(is_good, value, zero))
        number = self.add(cast_(safe, type))
        lowest, highest = self.constant(low, target), self.constant(high, target)
        number = self.add(arith.SelectOp(is_high, highest, number))
        return self.add(arith.SelectOp(is_low, lowest, number))

    def invert(self, value: SSAValue) -> SSAValue:
        """Inverts all bits of an integer."""
        return self.add(arith.XOrIOp(value, self.constant(-1, value.type)))


def _bits(element: Attribute) -> int:
    if isinstance(element, Float64Type):
        return 64
    return 32 if isinstance(element, Float32Type) else 16
