"""Builders of loops and branches whose bodies may use values from outside."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeAlias, TypeVar

from xdsl.ir import Block, Operation, Region, SSAValue

from ..dialects.tgraph.base import Shape, VariableType, ints, with_shape
from ..dialects.tgraph.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from ..dialects.tgraph.structure import AssignOp, IfOp, ReadOp, WhileOp, YieldOp
from .builder import TensorBuilder, shape_of, type_of
from .unsupported import Unsupported

Values: TypeAlias = Sequence[SSAValue]

B = TypeVar("B", bound=TensorBuilder)


class Loop(Generic[B]):
    """A `tgraph.while` whose body is being built.

        loop = Loop(b)
        count = loop.carry(zero)
        (end,) = loop.close([loop.body.apply(AddOp, count, 1)], condition)

    Values from outside that the body uses become inputs of the loop.
    """

    def __init__(self, b: B):
        self._outer = b
        self._block = Block()
        self._reads: list[Operation] = []
        self._initial: list[SSAValue] = []
        self.body = replace(b, into=[])

    def carry(self, initial: SSAValue) -> SSAValue:
        """Adds a variable; returns its value at the start of an iteration."""
        self._initial.append(initial)
        variable = self._block.insert_arg(
            VariableType(type_of(initial)), len(self._block.args)
        )
        self._reads.append(read := ReadOp(variable))
        return read.result

    def close(
        self, following: Values, condition: Callable[[B, Values], SSAValue]
    ) -> Values:
        """Appends the loop; returns the final values of its variables.

        `following` are the values of the variables after an iteration.
        """
        types = [type_of(value) for value in self._initial]
        for value, type in zip(following, types, strict=True):
            if value.type != type:
                raise Unsupported(
                    f"with a body that changes a carried {type} to {value.type}"
                )
        assigns = [
            AssignOp(variable, value)
            for variable, value in zip(self._block.args, following, strict=True)
        ]
        body = [*self._reads, *self.body.into, *assigns, YieldOp()]
        test = Block(arg_types=[VariableType(type) for type in types])
        asked = [ReadOp(variable) for variable in test.args]
        inner = replace(self._outer, into=[])
        more = YieldOp(condition(inner, [read.result for read in asked]))
        used = [read for read in asked if read.result.uses]
        blocks = {test: [*used, *inner.into, more], self._block: body}
        captured = _enclose(blocks)
        return self._outer.emit_all(
            WhileOp,
            [*self._initial, *captured],
            types,
            [Region(block) for block in blocks],
        )


def branch(
    b: TensorBuilder,
    condition: SSAValue,
    then: tuple[Sequence[Operation], Values],
    otherwise: tuple[Sequence[Operation], Values],
) -> Values:
    """Appends a `tgraph.if`. `then` and `otherwise` are (operations, results)."""
    types = [[type_of(value) for value in made] for _, made in (then, otherwise)]
    if types[0] != types[1]:
        listed = [", ".join(map(str, made)) for made in types]
        raise Unsupported(f"with branches that return ({listed[0]}) and ({listed[1]})")
    blocks = {Block(): [*ops, YieldOp(*made)] for ops, made in (then, otherwise)}
    captured = _enclose(blocks)
    regions = [Region(block) for block in blocks]
    inputs = [b.reshape(condition, []), *captured]
    return b.emit_all(IfOp, inputs, types[0], regions)


def _enclose(blocks: Mapping[Block, Sequence[Operation]]) -> Values:
    """Moves operations into their blocks. Returns the values from outside that they
    use, which become additional arguments of every block.
    """
    captured: dict[SSAValue, None] = {}
    for block, ops in blocks.items():
        own = {*block.args, *(result for op in ops for result in op.results)}
        captured |= {v: None for op in ops for v in op.operands if v not in own}
    for block, ops in blocks.items():
        inner: dict[SSAValue, SSAValue] = {
            value: block.insert_arg(value.type, len(block.args)) for value in captured
        }
        for op in ops:
            op.operands = [inner.get(value, value) for value in op.operands]
        block.add_ops(ops)
    return list(captured)


def read_row(b: TensorBuilder, x: SSAValue, axis: int, place: SSAValue) -> SSAValue:
    """The row of `x` at `place` along `axis`; zeros if there are no rows, as in a loop
    that does not run."""
    shape = shape_of(x)
    rest = [*shape[:axis], *shape[axis + 1 :]]
    if not shape[axis]:
        return b.splat(0, with_shape(type_of(x), rest))
    one, starts = _at_row(b, x, axis, place)
    type = with_shape(type_of(x), one)
    row = b.emit(DynamicSliceOp, x, *starts, type=type, slice_sizes=ints(one))
    return b.reshape(row, rest)


def write_row(
    b: TensorBuilder, x: SSAValue, axis: int, place: SSAValue, row: SSAValue
) -> SSAValue:
    """`x` with `row` at `place` along `axis`; `x` if there are no rows."""
    if not shape_of(x)[axis]:
        return x
    one, starts = _at_row(b, x, axis, place)
    return b.emit(DynamicUpdateSliceOp, x, b.reshape(row, one), *starts)


def _at_row(
    b: TensorBuilder, x: SSAValue, axis: int, place: SSAValue
) -> tuple[Shape, Sequence[SSAValue]]:
    """The shape of a row of `x` with `axis`, and where the row starts."""
    shape = shape_of(x)
    zero = b.splat(0, type_of(place))
    starts = [place if d == axis else zero for d in range(len(shape))]
    return (*shape[:axis], 1, *shape[axis + 1 :]), starts


def rows_like(b: TensorBuilder, row: SSAValue, axis: int, count: int) -> SSAValue:
    """Zeros with the shape of `count` rows stacked along `axis`."""
    shape = [*shape_of(row)]
    shape.insert(axis, max(count, 0))
    return b.splat(0, with_shape(type_of(row), shape))
