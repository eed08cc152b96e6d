"""Computes bounds of indices, for plan-check, from constants, loops with constant
bounds, and arithmetic on these. Shares no code with the planner.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from ..dialects.diagnostics import name_of


class Range(NamedTuple):
    """The least and the greatest value, both included."""

    least: int
    most: int


def exactly(number: int) -> Range:
    return Range(number, number)


def add(a: Range, b: Range) -> Range:
    return Range(a.least + b.least, a.most + b.most)


def multiply(a: Range, b: Range) -> Range:
    corners = [x * y for x in a for y in b]
    return Range(min(corners), max(corners))


Known = Callable[[SSAValue], Range | None]


def nothing_known(_: SSAValue) -> None:
    return None


def range_of(value: SSAValue, known: Known = nothing_known) -> Range | None:
    """The range of an index or integer; None if it is not known.

    `known` returns the ranges of values that follow from the sizes of arguments.
    """
    found = known(value) or _computed(value, known)
    type: Attribute = value.type
    if found is None or not isinstance(type, IntegerType):
        return found
    limit = 1 << (cast(IntegerType, type).width.data - 1)  # beyond it, values wrap
    return found if -limit <= found.least and found.most < limit else None


def _computed(value: SSAValue, known: Known) -> Range | None:
    op = value.owner
    if isinstance(op, Block):
        return _of_loop(value, op, known)
    if isinstance(op, arith.ConstantOp):
        constant = op.value
        return (
            exactly(constant.value.data) if isinstance(constant, IntegerAttr) else None
        )
    name = name_of(op)
    if name in _CASTS:
        return range_of(op.operands[0], known)
    compute = _ARITHMETIC.get(name)
    if compute is None:
        return None
    operands = [range_of(operand, known) for operand in op.operands]
    return None if None in operands else compute(*operands)


def varying(value: SSAValue) -> Iterator[SSAValue]:
    """The values that an index is computed from, except constants. Ranges take them to
    be independent, so a value that occurs twice may make a range too wide."""
    found, op = range_of(value), value.owner
    if found and found.least == found.most:
        return
    if isinstance(op, Block):
        yield value
        loop = op.parent_op()
        computed = loop.operands[:3] if loop and name_of(loop) in _COUNTING else ()
    elif name_of(op) in (*_CASTS, *_ARITHMETIC):
        computed = op.operands
    else:
        yield value
        return
    for operand in computed:
        yield from varying(operand)


def _subtract(a: Range, b: Range) -> Range:
    return Range(a.least - b.most, a.most - b.least)


def _smaller(a: Range, b: Range) -> Range:
    return Range(min(a.least, b.least), min(a.most, b.most))


def _larger(a: Range, b: Range) -> Range:
    return Range(max(a.least, b.least), max(a.most, b.most))


_CASTS = ("arith.index_cast", "arith.extsi")

_COUNTING = ("scf.for", "scf.parallel")
"""Loops whose first operands are the bounds and the step of their counter."""

_ARITHMETIC: Mapping[str, Callable[..., Range]] = {
    "arith.addi": add,
    "arith.subi": _subtract,
    "arith.muli": multiply,
    "arith.minsi": _smaller,
    "arith.maxsi": _larger,
}


def _of_loop(value: SSAValue, block: Block, known: Known) -> Range | None:
    """The range of the counter of a loop with known bounds; None for other values."""
    op = block.parent_op()
    if op is None or block.args[0] is not value:
        return None
    bounds = _bounds(op, known)
    if bounds is None:
        return None
    first, end, step = bounds
    last = end.most - 1
    if first.least == first.most and step.least == step.most:
        last -= (last - first.least) % step.least
    return Range(first.least, max(first.least, last))


def surely_runs(op: Operation) -> bool:
    """Whether a loop is known to run at least one iteration."""
    bounds = _bounds(op, nothing_known)
    return bounds is not None and bounds[0].most < bounds[1].least


def most_iterations(op: Operation) -> int | None:
    """An upper bound of a loop's iterations; None unless its bounds are constant."""
    bounds = _bounds(op, nothing_known)
    if bounds is None or bounds[2].least < 1:
        return None
    first, end, step = bounds
    return max(0, -((first.least - end.most) // step.least))


def _bounds(op: Operation, known: Known) -> tuple[Range, Range, Range] | None:
    """The ranges of a loop's first value, end and step; None if one is unknown."""
    match name_of(op):
        case "scf.for":
            bounds = [range_of(operand, known) for operand in op.operands[:3]]
        case "affine.for":
            bounds = [
                _constant_bound(op, "lowerBoundMap"),
                _constant_bound(op, "upperBoundMap"),
                _step(op),
            ]
        case "scf.parallel" | "scf.forall":
            bounds = _parallel_bounds(op, known)
        case _:
            return None
    if len(bounds) != 3 or None in bounds:
        return None
    first, end, step = (b for b in bounds if b is not None)
    return (first, end, step) if step.least >= 1 else None


def _constant_bound(op: Operation, name: str) -> Range | None:
    map = getattr(op.properties.get(name), "data", None)
    if not isinstance(map, AffineMap) or map.num_dims or map.num_symbols:
        return None
    numbers = map.eval([], [])
    return exactly(numbers[0]) if len(numbers) == 1 else None


def _step(op: Operation) -> Range | None:
    step = op.properties.get("step")
    return exactly(step.value.data) if isinstance(step, IntegerAttr) else None


def _parallel_bounds(op: Operation, known: Known) -> Sequence[Range | None]:
    """The bounds and the step of the first counter; for `scf.parallel`, three only if
    it has a single counter."""
    if name_of(op) == "scf.parallel":
        return [range_of(operand, known) for operand in op.operands]
    names = ("staticLowerBound", "staticUpperBound", "staticStep")
    found: list[Range | None] = []
    for name in names:
        array: Attribute | None = op.properties.get(name)
        if not isinstance(array, DenseArrayBase):
            return ()
        first, *_ = cast(DenseArrayBase[IntegerType], array).get_values()
        found.append(None if first == DYNAMIC_INDEX else exactly(first))
    return found
