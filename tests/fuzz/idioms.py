"""Idioms of tensor programs that independent random operations rarely form.

Each idiom writes operations that match the pattern of a pass, or almost match: ReLU and
its mask, a sum with a scatter into zeros, loops that stack rows and loops that read
them, an update of a variable by stacked rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.ir import Attribute, Region, SSAValue

from tensorplan.dialects.tgraph import elementwise as ew
from tensorplan.dialects.tgraph import indexing, shaping, structure
from tensorplan.dialects.tgraph.base import (
    Shape,
    VariableType,
    ints,
    shape_of,
    tensor_type_of,
)

if TYPE_CHECKING:
    from tensor_programs import Builder

COUNT = TensorType(i32, ())


def filled(b: Builder, element: Attribute, shape: Shape, value: int) -> SSAValue:
    number: Attribute = (
        IntegerAttr(value, i32)
        if element == i32
        else FloatAttr(float(value), cast(Any, element))
    )
    type = TensorType(element, shape)
    return b.emit(shaping.ConstantOp, [], {"value": number}, to=[type])


def mask(b: Builder) -> None:
    """Clips a value, and compares the same value with the bound before or after."""
    x = b.value(lambda v: tensor_type_of(v.type).element_type in (f32, f64, i32))
    x = b.emit(ew.NegateOp, [x])
    type = tensor_type_of(x.type)
    bound = filled(b, type.element_type, shape_of(type), b.pick([0, 1]))
    clip = b.pick([ew.MaximumOp, ew.MinimumOp])
    pair = b.pick([[x, bound], [x, bound], [bound, x]])
    is_first = b.random.random() < 0.8
    if is_first:
        b.emit(clip, pair)
    how = {"direction": StringAttr(b.pick(["GT", "GT", "LE", "LT", "GE", "EQ"]))}
    b.emit(ew.CompareOp, b.pick([[x, bound], [bound, x]]), {**how})
    if not is_first:
        b.emit(clip, pair)
    if b.random.random() < 0.7:  # no other users
        b.values.remove(x)


def scattered_sum(b: Builder) -> None:
    """A sum with a scatter of one or two updates into zeros (rarely into ones)."""
    x = b.value(
        lambda v: (
            tensor_type_of(v.type).element_type in (f32, f64, i32)
            and len(shape_of(tensor_type_of(v.type))) > 0
        )
    )
    x = b.emit(ew.NegateOp, [x])
    type = tensor_type_of(x.type)
    element, shape = type.element_type, shape_of(type)
    count = b.pick([1, 1, 1, 2])
    zeros = filled(b, element, shape, b.pick([0, 0, 0, 1]))
    updates = filled(b, element, (count, *shape[1:]), 2)
    places = TensorType(i32, (count, 1))
    numbers = [b.random.randint(-1, 5) for _ in range(count)]
    data = DenseIntOrFPElementsAttr.from_list(places, numbers)
    indices = b.emit(shaping.ConstantOp, [], {"value": data}, to=[places])
    how: dict[str, Attribute] = {
        "kind": StringAttr(b.pick(["add", "add", "maximum"])),
        "update_window_dims": ints([*range(1, len(shape))]),
        "inserted_window_dims": ints([0]),
        "scatter_dims_to_operand_dims": ints([0]),
        "index_vector_dim": IntegerAttr(1, i64),
    }
    scattered = b.emit(indexing.ScatterOp, [zeros, indices, updates], how)
    b.emit(ew.AddOp, b.pick([[x, scattered], [scattered, x]]))
    for value in (x, zeros, scattered):
        if b.random.random() < 0.7:
            b.values.remove(value)


def stacked_rows(b: Builder) -> None:
    """A loop that stacks rows in tensors, a loop that reads them, and an update."""
    if b.depth:
        return
    x = b.value(
        lambda v: (
            tensor_type_of(v.type).element_type in (f32, f64, i32)
            and len(shape_of(tensor_type_of(v.type))) < 3
        )
    )
    type = tensor_type_of(x.type)
    element, shape = type.element_type, shape_of(type)
    rows = b.pick([2, 3, 9, 12])
    count = b.pick([1, 2, 2, 3])
    empty = filled(b, element, (rows, *shape), 0)
    variable = b.argument(VariableType(tensor_type_of(empty.type)))
    b.block.add_op(old := structure.ReadOp(variable))
    written = _loop(b, rows, [x] + [empty] * count, [], _write)
    stacks = written[1:]
    if b.random.random() < 0.7:
        _loop(b, rows, [b.like(x)], stacks, _read)
    if b.random.random() < 0.7:
        _update(b, variable, old.result, b.pick(stacks))
    if b.random.random() < 0.7:  # no other users
        b.values = [value for value in b.values if value not in stacks]
        b.variables.remove(variable)


class Iteration(NamedTuple):
    """The values at the start of a loop body."""

    rows: int
    number: SSAValue
    state: SSAValue  # the variable
    old: SSAValue  # its contents
    stacks: Sequence[SSAValue]  # variables to write, or tensors to read

    def row(self, b: Builder, *, is_backwards: bool) -> SSAValue:
        """The index of the row of this iteration."""
        if not is_backwards:
            return self.number
        last = filled(b, i32, (), self.rows - 1)
        return b.emit(ew.SubtractOp, [last, self.number])


def _loop(
    b: Builder,
    rows: int,
    carried: Sequence[SSAValue],
    given: Sequence[SSAValue],
    write: Callable[[Builder, Iteration], None],
) -> Sequence[SSAValue]:
    """Writes a loop with one iteration for each row, rarely one less; returns the final
    values of `carried`."""
    first = b.pick([0] * 8 + [1])
    iterations = b.pick([rows] * 8 + [rows - 1])
    start = filled(b, i32, (), first)
    inputs = [start, *carried, *given]
    regions: list[Region] = []
    for is_body in (False, True):
        inner = type(b)(b.random, [], b.depth + 1)
        for value in (start, *carried):
            inner.argument(VariableType(tensor_type_of(value.type)))
        for value in given:
            inner.argument(value.type)
        counter, state, *others = inner.variables
        inner.block.add_op(read := structure.ReadOp(counter))
        if is_body:
            stacks = [*others, *inner.values]
            inner.block.add_op(old := structure.ReadOp(state))
            inner.values[:], inner.variables[:] = [old.result], []
            write(inner, Iteration(rows, read.result, state, old.result, stacks))
            following = inner.emit(ew.AddOp, [read.result, filled(inner, i32, (), 1)])
            inner.block.add_op(structure.AssignOp(counter, following))
            inner.block.add_op(structure.YieldOp())
        else:
            how: dict[str, Attribute] = {"direction": StringAttr("LT")}
            limit = filled(inner, i32, (), iterations)
            test = inner.emit(ew.CompareOp, [read.result, limit], how)
            inner.block.add_op(structure.YieldOp(test))
        regions.append(Region(inner.block))
    types = [value.type for value in inputs[: 1 + len(carried)]]
    b.emit(structure.WhileOp, inputs, to=types, regions=regions)
    return b.values[-len(carried) :]


def _compute(b: Builder) -> None:
    """Writes a few elementwise operations that do not amplify errors."""
    for _ in range(b.random.randint(1, 3)):
        x = b.value(lambda v: tensor_type_of(v.type).element_type in (f32, f64, i32))
        if b.random.random() < 0.5:
            cls = b.pick([ew.SubtractOp, ew.MaximumOp, ew.MinimumOp])
            b.emit(cls, [x, b.like(x)])
        elif tensor_type_of(x.type).element_type == i32:
            b.emit(b.pick([ew.NotOp, ew.NegateOp, ew.AbsOp]), [x])
        else:
            b.emit(b.pick([ew.TanhOp, ew.SineOp, ew.NegateOp, ew.AbsOp]), [x])


def _carry(b: Builder, state: SSAValue, value: SSAValue) -> None:
    """Assigns the carried state; floats are mapped to values between 0 and 1."""
    if tensor_type_of(value.type).element_type != i32:
        value = b.emit(ew.LogisticOp, [value])
    b.block.add_op(structure.AssignOp(state, value))


def _write(b: Builder, iteration: Iteration) -> None:
    _compute(b)
    found = [value for value in b.values if value.type == iteration.old.type]
    at = iteration.row(b, is_backwards=b.random.random() < 0.4)
    for variable in iteration.stacks:
        row = b.pick(found[-3:])
        shape = shape_of(tensor_type_of(row.type))
        wide = TensorType(tensor_type_of(row.type).element_type, (1, *shape))
        dims = {"broadcast_dimensions": ints(range(1, len(shape) + 1))}
        placed = b.emit(shaping.BroadcastInDimOp, [row], {**dims}, to=[wide])
        b.block.add_op(whole := structure.ReadOp(variable))
        starts = [at, *[filled(b, i32, (), 0) for _ in shape]]
        new = b.emit(indexing.DynamicUpdateSliceOp, [whole.result, placed, *starts])
        b.block.add_op(structure.AssignOp(variable, new))
    _carry(b, iteration.state, found[-1])


def _read(b: Builder, iteration: Iteration) -> None:
    type = tensor_type_of(iteration.old.type)
    at = iteration.row(b, is_backwards=b.random.random() < 0.5)
    for stack in iteration.stacks:
        sizes = [1, *shape_of(type)]
        starts = [at, *[filled(b, i32, (), 0) for _ in sizes[1:]]]
        how: dict[str, Attribute] = {"slice_sizes": ints(sizes)}
        row = b.emit(indexing.DynamicSliceOp, [stack, *starts], how)
        b.emit(shaping.ReshapeOp, [row], to=[type])
    _compute(b)
    found = [value for value in b.values if value.type == type]
    _carry(b, iteration.state, b.emit(ew.AddOp, [found[-1], b.pick(found)]))


def _update(b: Builder, variable: SSAValue, old: SSAValue, stack: SSAValue) -> None:
    """Updates a variable elementwise by a stack of rows."""
    change = stack
    for _ in range(b.random.randint(0, 2)):
        cls = b.pick([ew.MultiplyOp, ew.SubtractOp, ew.MaximumOp])
        change = b.emit(cls, [change, b.pick([old, change])])
    new = b.emit(ew.AddOp, b.pick([[old, change], [change, old]]))
    if b.random.random() < 0.7:
        b.values.remove(new)
    b.block.add_op(structure.AssignOp(variable, new))


IDIOMS = (mask, scattered_sum, stacked_rows)
