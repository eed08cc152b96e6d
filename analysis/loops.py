"""Trip counts of loops: read from their code, or else estimated.

%c = tgraph.compare %i, %iterations {direction = "LT"}    // the condition
...
%n = tgraph.add %i, %one                        // the body, %i from 0
tgraph.assign %vi, %n
"""

from math import prod
from typing import NamedTuple

from xdsl.dialects import affine, arith, scf
from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from ..dialects.diagnostics import name_of
from ..dialects.tgraph.base import TensorOp
from ..dialects.tgraph.elementwise import AddOp, CompareOp
from ..dialects.tgraph.shaping import ConstantOp
from ..dialects.tgraph.structure import AssignOp, FusionOp, ReadOp, WhileOp, yielded
from .forwarding import CONCURRENT, LOOPS, WHILE

TRIP_COUNT = "tgraph.trip_count"
"""Integer attribute of a loop on memrefs: the number of iterations."""

ITERATIONS = 10
"""The estimate for a loop of unknown trip count, as in Chaitin (1982)."""


def iterations(op: Operation) -> int:
    """How often the regions of `op` run each time `op` runs: once if it is no loop, and
    `ITERATIONS` times if it is a loop of unknown trip count."""
    if isinstance(op, WhileOp):
        counted = counter(op)
        return counted.trips if counted else ITERATIONS
    if name_of(op) not in (*LOOPS, *CONCURRENT, WHILE):
        return 1
    given = op.attributes.get(TRIP_COUNT)
    if isinstance(given, IntegerAttr):
        return given.value.data
    trips = _constant_trips(op)
    return ITERATIONS if trips is None else trips


def constant_range(loop: scf.ForOp) -> range | None:
    """The range of the induction variable; None if it is not constant."""
    first, end, step = map(_constant, (loop.lb, loop.ub, loop.step))
    if first is None or end is None or step is None or step < 1:
        return None
    return range(first, end, step)


def _constant_trips(op: Operation) -> int | None:
    """The trip count of a loop with constant bounds and steps; None for others."""
    match op:
        case scf.ForOp():
            bounds = [(op.lb, op.ub, op.step)]
        case scf.ParallelOp():
            bounds = list(zip(op.lowerBound, op.upperBound, op.step, strict=True))
        case affine.ForOp():
            first, end = map(_constant_of, (op.lowerBoundMap, op.upperBoundMap))
            return _trips(first, end, op.step.value.data)
        case _:
            return None
    trips = [_trips(*map(_constant, each)) for each in bounds]
    return None if None in trips else prod(n for n in trips if n is not None)


def _trips(first: int | None, end: int | None, step: int | None) -> int | None:
    if first is None or end is None or step is None or step < 1:
        return None
    return max(0, -((first - end) // step))


def _constant(value: SSAValue) -> int | None:
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None


def _constant_of(bound: AffineMapAttr) -> int | None:
    map = bound.data
    if map.num_dims or map.num_symbols or len(map.results) != 1:
        return None
    return map.eval([], [])[0]


class Counter(NamedTuple):
    """A carried value that counts the iterations from 0 by 1."""

    number: int  # the index of the loop's result
    trips: int  # the number of iterations


def counter(loop: WhileOp) -> Counter | None:
    """The counter that ends the loop; None if the loop ends in another way.

    The operations on it may be in groups, and may write the variable as a destination.
    """
    (condition,) = yielded(loop.condition)
    compare = _computed(condition).owner
    if not isinstance(compare, CompareOp) or compare.direction.data != "LT":
        return None
    read = _computed(compare.inputs[0]).owner
    trips = integer(_computed(compare.inputs[1]))
    if not isinstance(read, ReadOp) or trips is None:
        return None
    number = loop.condition.block.args.index(read.variable)
    if number >= len(loop.res) or integer(loop.inputs[number]) != 0:
        return None
    return Counter(number, trips) if _adds_one(loop, number) else None


def _adds_one(loop: WhileOp, number: int) -> bool:
    """Whether each iteration adds one to the carried value `number`."""
    writer = only_writer(loop, number)
    if writer is None:
        return False
    variable = loop.body.block.args[number]
    if isinstance(writer, AssignOp):
        written = writer.value
    else:
        written = writer.res[list(writer.outs).index(variable)]
    add = _computed(written).owner
    if not isinstance(add, AddOp):
        return False
    left, right = map(_computed, add.inputs)
    return (is_read(left, loop, number) and integer(right) == 1) or (
        is_read(right, loop, number) and integer(left) == 1
    )


def _computed(value: SSAValue) -> SSAValue:
    """The definition of `value`, followed into and out of fusion groups."""
    owner = value.owner
    if isinstance(owner, FusionOp):
        return _computed(owner.yielded[owner.results.index(value)])
    if isinstance(value, BlockArgument):
        around = value.block.parent_op()
        if isinstance(around, FusionOp):
            return _computed(around.inputs[value.index])
    return value


def only_writer(loop: WhileOp, number: int) -> AssignOp | TensorOp | None:
    """The only operation of the body that writes a variable, if all reads come before
    it; None otherwise."""
    users = [use.operation for use in loop.body.block.args[number].uses]
    writers = [op for op in users if not isinstance(op, ReadOp)]
    if len(writers) != 1:
        return None
    (writer,) = writers
    is_last = all(op is writer or op.is_before_in_block(writer) for op in users)
    return writer if is_last and isinstance(writer, AssignOp | TensorOp) else None


def is_read(value: SSAValue, loop: WhileOp, number: int) -> bool:
    """Whether `value` is the carried value at the start of the iteration."""
    op = value.owner
    return isinstance(op, ReadOp) and op.variable is loop.body.block.args[number]


def integer(value: SSAValue) -> int | None:
    """The integer that all elements of a constant are; None for other values."""
    op = value.owner
    if not isinstance(op, ConstantOp) or not isinstance(op.splat, IntegerAttr):
        return None
    return op.splat.value.data
