"""Symbolic sizes as IR: `arith` on `memref.dim` of arguments, written and read here.

func.func @main(%x: memref<?x8xf32> {tgraph.dims = #tgraph.dims<2*n + 1>})
  %c0 = arith.constant 0 : index
  %0 = memref.dim %x, %c0          # 2*n + 1
  %c1 = arith.constant 1 : index
  %1 = arith.subi %0, %c1
  %c2 = arith.constant 2 : index
  %n = arith.floordivsi %1, %c2

An index that follows from arguments in another way, such as an argument itself, has no
expression. If it is a buffer's size, it gets a name, whose value is at least 1:

  %2 = arith.maxsi %given, %c1
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, reduce
from math import inf, isinf
from operator import add, mul, sub
from typing import cast

from xdsl.dialects import affine, arith, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr
from xdsl.traits import is_side_effect_free, is_speculatable

from ..dialects.diagnostics import LocatedError, name_of
from ..dialects.sizes.dims import BOUNDS, DIMS, HINTS, named_sizes, numbers_in
from ..dialects.sizes.intervals import interval
from ..dialects.sizes.symbolic import (
    TYPICAL,
    Atom,
    Size,
    SizeFunction,
    Symbolic,
    definitions,
    floordiv,
    inverse,
    maximum,
    minimum,
    names_in,
    substitute,
    symbol,
)
from ..dialects.tgraph.base import AnyMemRef, element_bytes, has_fixed_size
from .functions import argument_attributes


def argument_sizes(func: FuncOp) -> list[Sequence[Size]]:
    """The shapes of a function's arguments on memrefs. Sizes that no attribute names
    are called by their position, `arg0_1`. Other arguments have empty shapes."""
    shapes: list[Sequence[Size]] = []
    attributes = argument_attributes(func)
    for argument, attrs in zip(func.body.blocks[0].args, attributes, strict=True):
        type: Attribute = argument.type
        if not isinstance(type, MemRefType):
            shapes.append(())
            continue
        shape = cast(AnyMemRef, type).get_shape()
        shapes.append(named_sizes(shape, attrs.get(DIMS), argument.index))
    return shapes


def argument_bytes(
    func: FuncOp, space: Attribute, bounds: Mapping[str, int]
) -> tuple[int, bool]:
    """The bytes of a function's memref arguments in a memory space, for sizes at their
    upper bounds, and whether this counts all arguments. It leaves out memrefs whose
    size has no bound, or whose elements have no fixed size."""
    bytes, are_all = 0, True
    for argument, shape in zip(func.args, argument_sizes(func), strict=True):
        type: Attribute = argument.type
        if not isinstance(type, MemRefType) or type.memory_space != space:
            continue
        element = cast(AnyMemRef, type).element_type
        if not has_fixed_size(element):
            are_all = False
            continue
        size: Size = element_bytes(element)
        for dim in shape:
            size *= dim
        _, most = interval(size, bounds)
        if isinf(most):
            are_all = False
        else:
            bytes += int(most)
    return bytes, are_all


def counted_sizes(func: FuncOp) -> dict[str, int]:
    """The value of each name for which a plan states its sizes: the bound, the hint, or
    a typical value."""
    names = (n for shape in argument_sizes(func) for s in shape for n in names_in(s))
    known = {
        **numbers_in(func.attributes.get(HINTS)),
        **numbers_in(func.attributes.get(BOUNDS)),
    }
    return {name: known.get(name, TYPICAL) for name in names}


class SizeWriter:
    """Writes sizes as IR values, each once; `ops` belong at the function's start."""

    @staticmethod
    def following(reader: "SizeReader") -> "tuple[SizeWriter, Operation]":
        """A writer that knows the size computations at the start of a function, and the
        operation before which its own operations must be inserted."""
        func, writer = reader.func, SizeWriter(reader.operands)
        entry = func.body.blocks[0]
        for argument, shape in zip(entry.args, argument_sizes(func), strict=True):
            writer.give(argument, shape)
        for op in entry.ops:
            if not _is_of_sizes(op):
                return writer, op
            if (size := reader.size(op.results[0])) is not None:
                writer._values.setdefault(size, op.results[0])
        raise AssertionError("a block has a terminator")

    def __init__(self, operands: Mapping[str, SSAValue] | None = None) -> None:
        self._operands = operands or {}  # by name: its value is the operand, at least 1
        self.ops: list[Operation] = []
        self._values: dict[Size, SSAValue] = {}
        self._atoms: dict[Atom, SSAValue] = {}
        self._places: list[tuple[SSAValue, int, Size]] = []

    def give(self, argument: SSAValue, shape: Sequence[Size]) -> None:
        """Makes a memref's sizes available. Call it before the first `value`."""
        self._places += [(argument, dim, size) for dim, size in enumerate(shape)]

    @cached_property
    def _sources(self) -> dict[str, int]:
        return dict(definitions([size for _, _, size in self._places]))

    def value(self, size: Size, at: Operation) -> SSAValue:
        """The size as an index. Raises `LocatedError` if it does not follow from the
        sizes of the arguments."""
        if size not in self._values:
            self._values[size] = self._make(size, at)
        return self._values[size]

    def maximum(self, sizes: Sequence[Size], at: Operation) -> Size:
        """The largest of the sizes. Unless it is known now, a name for it, which keeps
        the expressions that contain it short."""
        numbers = [size for size in sizes if isinstance(size, int)]
        others = [size for size in dict.fromkeys(sizes) if isinstance(size, Symbolic)]
        candidates = [*others, *([max(numbers)] if numbers and max(numbers) else [])]
        if len(candidates) < 2:
            return candidates[0] if candidates else 0
        values = [self.value(size, at) for size in candidates]
        name = f"max{len(self._atoms)}"
        self._atoms[name] = reduce(lambda a, b: self._add(arith.MaxSIOp(a, b)), values)
        return symbol(name)

    def _make(self, size: Size, at: Operation) -> SSAValue:
        if isinstance(size, int):
            return self._constant(size)
        (monomial, factor), *rest = size.terms
        if rest:
            terms = [self.value(Symbolic((term,)), at) for term in size.terms]
            return reduce(lambda a, b: self._add(arith.AddiOp(a, b)), terms)
        if not monomial:
            return self.value(factor, at)
        if factor != 1:
            product = self.value(Symbolic(((monomial, 1),)), at)
            return self._add(arith.MuliOp(product, self.value(factor, at)))
        *others, last = (self._atom(atom, at) for atom in monomial)
        if not others:
            return last
        product = self.value(Symbolic(((monomial[:-1], 1),)), at)
        return self._add(arith.MuliOp(product, last))

    def _atom(self, atom: Atom, at: Operation) -> SSAValue:
        if atom not in self._atoms:
            known = self._values.get(Symbolic((((atom,), 1),)))
            made = self._call(atom, at) if isinstance(atom, SizeFunction) else None
            self._atoms[atom] = known or made or self._name(cast(str, atom), at)
        return self._atoms[atom]

    def _call(self, call: SizeFunction, at: Operation) -> SSAValue:
        values = [self.value(argument, at) for argument in call.arguments]
        match call.function:
            case "floordiv":
                return self._add(arith.FloorDivSIOp(values[0], values[1]))
            case "max":
                return reduce(lambda a, b: self._add(arith.MaxSIOp(a, b)), values)
            case "min":
                return reduce(lambda a, b: self._add(arith.MinSIOp(a, b)), values)
            case _:  # mod
                size, divisor = values
                quotient = self._add(arith.FloorDivSIOp(size, divisor))
                whole = self._add(arith.MuliOp(quotient, divisor))
                return self._add(arith.SubiOp(size, whole))

    def _name(self, name: str, at: Operation) -> SSAValue:
        if name in self._operands:
            least = self.value(1, at)
            return self._add(arith.MaxSIOp(self._operands[name], least))
        if name not in self._sources:
            raise LocatedError(
                f"size {name} cannot be derived from the sizes of the arguments", at
            )
        argument, dim, size = self._places[self._sources[name]]
        given = self._add(
            memref.DimOp.build(
                operands=(argument, self.value(dim, at)), result_types=(IndexType(),)
            )
        )
        if size == symbol(name):
            given.name_hint = name
            return given
        # The dimension gets a name while its expression is inverted.
        place = f"given {self._sources[name]}"
        self._atoms[place] = given
        found = inverse(size, name, symbol(place))
        assert found is not None
        return self.value(found, at)

    def _constant(self, number: int) -> SSAValue:
        op = arith.ConstantOp(IntegerAttr(number, IndexType()))
        op.result.name_hint = f"c{number}" if number >= 0 else None
        self.ops.append(op)
        return op.result

    def _add(self, op: Operation) -> SSAValue:
        self.ops.append(op)
        return op.results[0]


class SizeReader:
    """Finds the expressions of IR values; None for unknown ones.

    With `values`, names are replaced by these numbers. With `name_maxima`, results of
    `arith.maxsi` get names, which keep sizes short; `maxima` has their operands. With
    `name_operands`, sizes without an expression get names, too; `operands` has the
    values.
    """

    def __init__(
        self,
        func: FuncOp,
        values: Mapping[str, int] | None = None,
        *,
        name_maxima: bool = False,
        name_operands: bool = False,
    ):
        given = values or {}
        self.func = func
        self._name_maxima = name_maxima
        self._name_operands = name_operands
        self._named: dict[SSAValue, str] = {}
        self._shapes: dict[SSAValue, Sequence[Size]] = {
            argument: [substitute(size, given) for size in shape]
            for argument, shape in zip(
                func.body.blocks[0].args, argument_sizes(func), strict=True
            )
        }
        self._known: dict[SSAValue, Size | None] = {}
        self._names_of_maxima: dict[tuple[Size, Size], str] = {}
        self.maxima: dict[str, tuple[Size, Size]] = {}
        """By name: the two sizes whose maximum is the name minus 1, since names are at
        least 1, and a maximum may be 0."""

    def size(self, value: SSAValue) -> Size | None:
        """The expression of an index; None if it is unknown."""
        pending = [value]
        while pending:
            current = pending.pop()
            unknown = [v for v in _operands(current) if v not in self._known]
            if unknown:
                pending += [current, *unknown]
            elif current not in self._known:
                self._known[current] = self._find(current)
        return self._known[value]

    def shape(self, value: SSAValue) -> Sequence[Size | None]:
        """The sizes of a memref, None for unknown ones."""
        if value in self._shapes:
            return self._shapes[value]
        shape = cast(AnyMemRef, value.type).get_shape()
        if DYNAMIC_INDEX not in shape:
            return shape
        op = value.owner
        given: Iterable[SSAValue] = ()
        if isinstance(op, memref.AllocOp):
            given = op.dynamic_sizes
        elif isinstance(
            op, memref.ViewOp | memref.ReinterpretCastOp | memref.SubviewOp
        ):
            given = op.sizes
        elif isinstance(op, memref.CastOp):
            return self.shape(op.source)
        sizes = iter(given)
        return [self._next(sizes) if size == DYNAMIC_INDEX else size for size in shape]

    def largest(self, buffer: SSAValue) -> Sequence[int] | None:
        """The largest shape of an allocation or view; None if a size has no bound."""
        bounds = numbers_in(self.func.attributes.get(BOUNDS))
        found: list[int] = []
        for size in self.at_most(buffer, names=False):
            most = inf if size is None else interval(size, bounds)[1]
            if isinf(most):
                return None
            found.append(int(most))
        return found

    def follow(self, other: FuncOp) -> None:
        """Also reads another function, taking its arguments to be those of this one."""
        for argument, given in zip(other.args, self.func.args, strict=False):
            self._shapes[argument] = self._shapes[given]

    def at_most(self, buffer: SSAValue, *, names: bool = True) -> Sequence[Size | None]:
        """Upper bounds of the sizes of an allocation or view. If an operand has no
        expression, the bound is a constant, such as the step of a loop over tiles, or,
        if `names`, a name: the operand is that or 0, since no size is negative."""
        op, shape = buffer.owner, self.shape(buffer)
        if None not in shape or not isinstance(
            op, memref.AllocOp | memref.ViewOp | memref.SubviewOp
        ):
            return shape
        given = iter(op.dynamic_sizes if isinstance(op, memref.AllocOp) else op.sizes)
        type = cast(AnyMemRef, buffer.type)
        found: list[Size | None] = []
        for size, known in zip(type.get_shape(), shape, strict=True):
            operand = next(given) if size == DYNAMIC_INDEX else None
            if known is None and operand is not None:
                known = self._greatest(operand)
                if known is None and names:
                    known = self._operand(operand)
            found.append(known)
        return found

    @property
    def operands(self) -> Mapping[str, SSAValue]:
        """The values behind names that are no argument sizes; a name is at least 1."""
        return {name: value for value, name in self._named.items()}

    def _operand(self, value: SSAValue) -> Size | None:
        """A name for an index with one value per call of the function, else None."""
        if value not in self._named:
            if not self._name_operands or _sources(value, self.func) is None:
                return None
            self._named[value] = f"operand {len(self._named)}"
        return symbol(self._named[value])

    def _greatest(self, value: SSAValue) -> int | None:
        """The smallest constant among the operands of a minimum; None if none."""
        op = value.owner
        if isinstance(op, affine.MinOp):
            results = op.map.data.results
            numbers = [r.value for r in results if isinstance(r, AffineConstantExpr)]
        elif isinstance(op, arith.MinSIOp | arith.MinUIOp):
            sizes = map(self.size, op.operands)
            numbers = [size for size in sizes if isinstance(size, int)]
        else:
            return None
        return max(min(numbers), 0) if numbers else None

    def _next(self, values: Iterable[SSAValue]) -> Size | None:
        value = next(iter(values), None)
        return None if value is None else self.size(value)

    def _find(self, value: SSAValue) -> Size | None:
        op = value.owner
        if isinstance(op, Block):
            return None
        if isinstance(op, arith.ConstantOp):
            return op.value.value.data if isinstance(op.value, IntegerAttr) else None
        if isinstance(op, memref.DimOp):
            dim = self.size(op.index)
            shape = self.shape(op.source)
            return (
                shape[dim] if isinstance(dim, int) and 0 <= dim < len(shape) else None
            )
        compute = _ARITHMETIC.get(op.name)
        operands = [self.size(operand) for operand in op.operands]
        if isinstance(op, arith.MaxSIOp) and operands == [None, 1]:
            return self._operand(op.lhs)
        if compute is None or None in operands:
            return None
        sizes = cast(list[Size], operands)
        if not self._name_maxima or not isinstance(op, arith.MaxSIOp):
            return compute(*sizes)
        of = sizes[0], sizes[1]
        name = self._names_of_maxima.setdefault(of, f"maximum {len(self.maxima)}")
        self.maxima[name] = of
        return symbol(name) - 1


def compute_first(func: FuncOp, values: Iterable[SSAValue]) -> None:
    """Moves the computation of `values` to the start of a function."""
    moved = {op: None for v in values for op in _sources(v, func) or ()}
    entry = func.body.blocks[0]
    first = entry.first_op
    for op in [op for op in entry.ops if op in moved]:
        if op is first:
            first = op.next_op
            continue
        op.detach()
        assert first is not None
        entry.insert_op_before(op, first)


def _sources(value: SSAValue, func: FuncOp) -> Mapping[Operation, None] | None:
    """The operations in a function's first block that compute `value` from arguments
    and constants; None if other operations take part."""
    entry = func.body.blocks[0]
    found: dict[Operation, None] = {}
    pending = [value]
    for each in pending:  # grows during the loop
        op = each.owner
        if op is entry or op in found:
            continue
        if isinstance(op, Block) or op.parent is not entry or not _is_of_sizes(op):
            return None
        found[op] = None
        pending += op.operands
    return found


def _operands(value: SSAValue) -> Sequence[SSAValue]:
    """The operands of the size arithmetic that computes `value`."""
    op = value.owner
    return () if isinstance(op, Block) or op.name not in _ARITHMETIC else op.operands


def _is_of_sizes(op: Operation) -> bool:
    """Whether `op` computes integers and may move to the start of the function: it has
    no effects, and can be speculated."""
    if name_of(op) in (*_ARITHMETIC, "memref.dim"):
        return True
    is_integer = all(isinstance(r.type, IndexType | IntegerType) for r in op.results)
    is_plain = bool(op.results) and not op.regions and is_integer
    return is_plain and is_side_effect_free(op) and is_speculatable(op)


def _ceildiv(a: Size, b: Size) -> Size:
    return -floordiv(-a, b)


_ARITHMETIC: Mapping[str, Callable[..., Size]] = {
    "arith.addi": add,
    "arith.subi": sub,
    "arith.muli": mul,
    "arith.floordivsi": floordiv,
    "arith.ceildivsi": _ceildiv,
    "arith.maxsi": maximum,
    "arith.minsi": minimum,
}
"""Operations on sizes, which are not negative, and on their differences, which may be.
Operations on unsigned numbers, and those that round to zero, are therefore left out."""
