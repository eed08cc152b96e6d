"""Writes loop nests as `linalg.generic`: each value is computed where it is needed.

The elementwise operations, gathers, constants and views of a nest become its body and
its indexing maps. All other values that it reads are stored first.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import AffineMapAttr, FloatAttr, IntegerAttr, i8, i64
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.dialects.linalg.ops import CopyOp, GenericOp, IndexOp, YieldOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from ....analysis.layout import Layout
from ....dialects.tgraph import shaping
from ....dialects.tgraph.base import TensorOp, tensor_type_of
from ....dialects.tgraph.elementwise import ElementwiseOp
from ....dialects.tgraph.fusing import is_index_vector
from ....dialects.tgraph.indexing import GatherOp, ScatterOp
from .code import MlirCode, index, is_float, signless
from .gathers import gathered
from .memory import OperationMemory, Stored
from .scalars import scalar

Exprs = tuple[AffineExpr, ...]
Computed = Callable[["Values", TensorOp, Stored], None]
"""Appends the code that stores an operation's result."""

PARALLEL = IteratorTypeAttr(IteratorType.PARALLEL)
REDUCTION = IteratorTypeAttr(IteratorType.REDUCTION)

SPREAD = (
    shaping.BroadcastInDimOp,
    shaping.TransposeOp,
    shaping.SliceOp,
    shaping.ReverseOp,
)
"""Views that an indexing map can express."""

INLINE = (
    ElementwiseOp,
    shaping.ConstantOp,
    shaping.FullLikeOp,
    shaping.IotaOp,
    GatherOp,
    *SPREAD,
)
"""Operations that are computed where their results are read."""


def dims(count: int) -> Exprs:
    return tuple(map(AffineExpr.dimension, range(count)))


@dataclass
class Values:
    """The values that the code for one operation (a fusion, with its body) reads."""

    memory: OperationMemory
    compute: Computed
    named: bool = False
    """Whether products become named operations of linalg where possible."""
    stored: dict[SSAValue, Stored] = field(default_factory=dict[SSAValue, Stored])

    @property
    def code(self) -> MlirCode:
        return self.memory.code

    def inside(self, code: MlirCode) -> "Values":
        """The values for the body of a loop, which stores its own in each iteration."""
        return replace(self, memory=self.memory.inside(code), stored=dict(self.stored))

    def store(self, value: SSAValue) -> Stored:
        """The memory of a value, which is computed first if it is not stored."""
        if value not in self.stored:
            self.stored[value] = self._store(value)
        return self.stored[value]

    def _store(self, value: SSAValue) -> Stored:
        op = value.owner
        if not isinstance(op, TensorOp):  # a memref
            return Stored.of(value)
        if isinstance(op, shaping.ViewOp):
            return self._view(op)
        if isinstance(op, shaping.ConstantOp) and op.splat is None:
            return self.memory.constant(op.dense)
        type = tensor_type_of(value.type)
        result = self.memory.allocate(type.element_type, type.get_shape())
        self.compute(self, op, result)
        return result

    def _view(self, op: shaping.ViewOp) -> Stored:
        source = self.store(op.inputs[0])
        layout = source.layout.viewed(op)
        if layout is not None:
            return source.viewed(layout)
        # A reshape that strides cannot express: copied to contiguous memory first.
        ordered = self.memory.allocate(source.element, source.shape)
        copy(self, source, ordered)
        return ordered.viewed(Layout.contiguous(op.declared[0].get_shape()))

    def memref_of(self, stored: Stored) -> SSAValue:
        """The memref of an array, for code that loads from it by index. If elements are
        repeated, they are copied first."""
        if stored.repeats:
            spread = self.memory.allocate(stored.element, stored.shape)
            copy(self, stored, spread)
            stored = spread
        return self.memory.memref_of(stored)

    def is_inline(self, value: SSAValue) -> bool:
        """Whether nests compute the value where they read it."""
        op = value.owner
        return (
            value not in self.stored
            and isinstance(op, INLINE)
            and not (isinstance(op, shaping.ConstantOp) and op.splat is None)
        )

    def is_worth_storing(self, value: SSAValue) -> bool:
        """Whether a value is computed once rather than in each repetition."""
        return self.is_inline(value) and isinstance(value.owner, ElementwiseOp)


class ElementCode(ABC):
    """The code for the elements of values at one place of a nest of loops."""

    def __init__(self, values: Values, code: MlirCode):
        self.values = values
        self.code = code
        self._known: dict[tuple[SSAValue | Stored, Exprs], SSAValue] = {}

    @abstractmethod
    def read(self, source: Stored, exprs: Exprs) -> SSAValue:
        """Reads an element of an array."""

    @abstractmethod
    def index_of(self, loop: int) -> SSAValue:
        """The index of a loop."""

    def value(self, value: SSAValue, exprs: Exprs) -> SSAValue:
        """The element of a value at `exprs`, expressions of the nest's indices.

        The method does not recurse, because bodies may be long chains.
        """
        open = [(value, exprs)]
        while open:
            key = open[-1]
            if key in self._known:
                open.pop()
                continue
            if not self.values.is_inline(key[0]):
                self._known[key] = self.read(self.values.store(key[0]), key[1])
                continue
            op = key[0].owner
            assert isinstance(op, TensorOp)
            needed = self._needed(op, key[1])
            if missing := [other for other in needed if other not in self._known]:
                open += missing
                continue
            args = [self._known[other] for other in needed]
            self._known[key] = self._inline(op, key[1], args)
        return self._known[value, exprs]

    def result(self, op: TensorOp, exprs: Exprs) -> SSAValue:
        """The element at `exprs` of the result of `op`, which the nest computes."""
        args = [self.value(*needed) for needed in self._needed(op, exprs)]
        return self._inline(op, exprs, args)

    def _needed(self, op: TensorOp, exprs: Exprs) -> list[tuple[SSAValue, Exprs]]:
        if isinstance(op, ElementwiseOp):
            return [(operand, exprs) for operand in op.inputs]
        if isinstance(op, GatherOp):
            return self._entries(op, exprs)
        if not isinstance(op, SPREAD):
            return []
        source = op.inputs[0]
        is_repeated = prod(op.declared[0].get_shape()) > prod(
            tensor_type_of(source.type).get_shape()
        )
        if is_repeated and self.values.is_worth_storing(source):
            self.values.store(source)
        return [(source, _source_indices(op, exprs))]

    def _inline(self, op: TensorOp, exprs: Exprs, args: list[SSAValue]) -> SSAValue:
        element = op.declared[0].element_type
        match op:
            case ElementwiseOp():
                return scalar(op, self.code, args)
            case shaping.ConstantOp() if op.splat is not None:
                return self.code.constant(op.splat.value.data, element)
            case shaping.FullLikeOp():
                return self.code.constant(op.value.value.data, element)
            case shaping.IotaOp():
                place = self.index(exprs[op.dimension.value.data])
                type = signless(element)
                if is_float(element):
                    number = self.code.add(arith.IndexCastOp(place, i64))
                    return self.code.convert(number, i64, element)
                return self.code.add(arith.IndexCastOp(place, type))
            case GatherOp():
                return self._gathered(op, [self.index(expr) for expr in exprs], args)
            case _:
                return args[0]

    def _gathered(
        self, op: GatherOp, place: list[SSAValue], entries: Sequence[SSAValue]
    ) -> SSAValue:
        """The element at `place`. `entries` is the index vector."""
        stored = self.values.store(op.inputs[0])
        operand = self.values.memref_of(stored)
        starts = self._starts(op, entries)
        return self.code.load(
            operand, gathered(self.code, op, stored.shape, starts, place)
        )

    def starts(self, op: GatherOp | ScatterOp, exprs: Exprs) -> dict[int, SSAValue]:
        """The index vector, by operand dimension, of the slice with an element at
        `exprs`."""
        return self._starts(op, [self.value(*x) for x in self._entries(op, exprs)])

    def _starts(
        self, op: GatherOp | ScatterOp, entries: Sequence[SSAValue]
    ) -> dict[int, SSAValue]:
        element = tensor_type_of(op.inputs[1].type).element_type
        at = [self.code.to_index(entry, element) for entry in entries]
        return dict(zip(op.dimension_numbers.indexed, at, strict=True))

    def _entries(
        self, op: GatherOp | ScatterOp, exprs: Exprs
    ) -> list[tuple[SSAValue, Exprs]]:
        """The entries of an index vector."""
        vectors, numbers = op.inputs[1], op.dimension_numbers
        at, owner = [exprs[d] for d in numbers.batch(len(exprs))], vectors.owner
        before, after = at[: numbers.vector], at[numbers.vector :]
        if (
            isinstance(owner, Operation)
            and is_index_vector(owner)
            and vectors not in self.values.stored
        ):
            zero = AffineExpr.constant(0)
            return [(part, (*before, zero, *after)) for part in owner.inputs]
        if numbers.vector == len(tensor_type_of(vectors.type).get_shape()):
            return [(vectors, tuple(at))]
        return [
            (vectors, (*before, AffineExpr.constant(number), *after))
            for number in range(len(numbers.indexed))
        ]

    def index(self, expr: AffineExpr) -> SSAValue:
        """An affine expression of the nest's indices as a value."""
        match expr:
            case AffineDimExpr():
                return self.index_of(expr.position)
            case AffineConstantExpr():
                return self.code.constant(expr.value, index)
            case AffineBinaryOpExpr():
                left, right = self.index(expr.lhs), self.index(expr.rhs)
                adds = expr.kind is AffineBinaryOpKind.Add
                make = arith.AddiOp if adds else arith.MuliOp
                return self.code.add(make(left, right))
            case _:
                raise AssertionError(expr)


class LoopBody(ElementCode):
    """Code in loops of `scf`. `place` has the index of each loop."""

    def __init__(self, values: Values, code: MlirCode, place: Mapping[int, SSAValue]):
        super().__init__(values, code)
        self._place = place

    def read(self, source: Stored, exprs: Exprs) -> SSAValue:
        source, exprs = _once(source, exprs)
        array = self.values.memory.memref_of(source)
        return self.code.load(array, [self.index(expr) for expr in exprs])

    def index_of(self, loop: int) -> SSAValue:
        return self._place[loop]


class GenericBody(ElementCode):
    """The body of a `linalg.generic` under construction."""

    def __init__(self, values: Values, shape: Sequence[int]):
        self.shape = tuple(shape)
        self.block = Block()
        super().__init__(values, MlirCode.of(self.block))
        self._inputs: list[SSAValue] = []
        self._maps: list[Exprs] = []

    @property
    def dims(self) -> Exprs:
        return dims(len(self.shape))

    def index_of(self, loop: int) -> SSAValue:
        return self.code.add(IndexOp(loop))

    def read(self, source: Stored, exprs: Exprs) -> SSAValue:
        """Reads an element of an array, which becomes an input of the nest."""
        # A dimension that a single index runs along must have the size of this index.
        seen = tuple(
            self.shape[e.position] if isinstance(e, AffineDimExpr) else size
            for e, size in zip(exprs, source.shape, strict=True)
        )
        if seen != source.shape:
            source = source.sliced((0,) * len(seen), (1,) * len(seen), seen)
        source, exprs = key = _once(source, exprs)
        if key not in self._known:
            self._inputs.append(self.values.memory.memref_of(source))
            self._maps.append(exprs)
            position = len(self._inputs) - 1
            type = signless(source.element)
            self._known[key] = self.block.insert_arg(type, position)
        return self._known[key]

    def finish(
        self,
        target: Stored,
        exprs: Exprs,
        result: Callable[[SSAValue], SSAValue],
        reduced: Sequence[int] = (),
    ) -> None:
        """Appends the nest. `result` makes the new element of the target from the old
        one. `reduced` are the nest's indices that do not appear in `exprs`."""
        self.finish_all([target], exprs, lambda olds: [result(olds[0])], reduced)

    def finish_all(
        self,
        targets: Sequence[Stored],
        exprs: Exprs,
        results: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
        reduced: Sequence[int] = (),
    ) -> None:
        """Appends the nest, like `finish`, for several targets of one shape."""
        olds = [
            self.block.insert_arg(signless(target.element), len(self.block.args))
            for target in targets
        ]
        self.code.do(YieldOp(*results(olds)))
        if 0 in self.shape:
            return
        memory = self.values.memory
        maps, inputs = [*self._maps], [*self._inputs]
        # Every index needs an operand that determines its size.
        told = {
            e.position
            for indices in (*maps, exprs)
            for e in indices
            if isinstance(e, AffineDimExpr)
        }
        if silent := [d for d in range(len(self.shape)) if d not in told]:
            for value in memory.extents([self.shape[d] for d in silent]):
                self.block.insert_arg(i8, len(inputs))
                inputs.append(value)
            maps += [(AffineExpr.dimension(d),) for d in silent]
        maps += [exprs] * len(targets)
        rank = len(self.shape)
        self.values.code.do(
            GenericOp(
                inputs,
                [memory.memref_of(target) for target in targets],
                Region(self.block),
                [AffineMapAttr(AffineMap(rank, 0, m)) for m in maps],
                [REDUCTION if d in reduced else PARALLEL for d in range(rank)],
            )
        )


def _once(source: Stored, exprs: Exprs) -> tuple[Stored, Exprs]:
    """The array without the dimensions along which it repeats elements."""
    strides = source.layout.strides
    kept = (e for e, stride in zip(exprs, strides, strict=True) if stride)
    return source.once(), tuple(kept)


def assign(values: Values, value: SSAValue, target: Stored) -> None:
    """Stores a value in `target`: computes it there, or copies it."""
    if values.is_inline(value):
        assert isinstance(value.owner, TensorOp)
        assign_result(values, value.owner, target)
    else:
        copy(values, values.store(value), target)


def assign_result(values: Values, op: TensorOp, target: Stored) -> None:
    """Stores the result of `op`, one of `INLINE`, element by element."""
    if 0 in target.shape:
        return
    if isinstance(op, shaping.ConstantOp) and op.splat is None:
        copy(values, values.memory.constant(op.dense), target)
        return
    if isinstance(op, shaping.ConstantOp | shaping.FullLikeOp):
        number = op.value
        assert isinstance(number, IntegerAttr | FloatAttr)
        values.memory.fill(target, number.value.data)
        return
    nest = GenericBody(values, target.shape)
    result = nest.result(op, nest.dims)
    nest.finish(target, nest.dims, lambda _: result)


def copy(values: Values, source: Stored, target: Stored) -> None:
    if source == target or 0 in target.shape:
        return
    if signless(source.element) == signless(target.element) and not source.repeats:
        code, memory = values.code, values.memory
        code.do(CopyOp([memory.memref_of(source)], [memory.memref_of(target)], res=()))
        return
    nest = GenericBody(values, target.shape)
    element = nest.read(source, nest.dims)
    number = nest.code.convert(element, source.element, target.element)
    nest.finish(target, nest.dims, lambda _: number)


def _source_indices(op: TensorOp, exprs: Exprs) -> Exprs:
    """The indices in the operand of the view's element at `exprs`."""
    match op:
        case shaping.BroadcastInDimOp():
            shape = tensor_type_of(op.inputs[0].type).get_shape()
            targets = op.broadcast_dimensions.get_values()
            return tuple(
                exprs[d] if size > 1 else AffineExpr.constant(0)
                for size, d in zip(shape, targets, strict=True)
            )
        case shaping.TransposeOp():
            order = op.permutation.get_values()
            return tuple(exprs[order.index(d)] for d in range(len(order)))
        case shaping.SliceOp():
            starts, steps = op.start_indices.get_values(), op.strides.get_values()
            return tuple(
                e * step + start
                for e, start, step in zip(exprs, starts, steps, strict=True)
            )
        case shaping.ReverseOp():
            shape, reversed = op.declared[0].get_shape(), op.dimensions.get_values()
            return tuple(
                e * -1 + (shape[d] - 1) if d in reversed else e
                for d, e in enumerate(exprs)
            )
        case _:
            raise AssertionError(op.name)
