"""Finds the iterations of one row each in the body of an unrolled loop and after it.

    %y0 = f(%x, row 2 i)           // the body, in iteration i
    %y1 = f(%y0, row 2 i + 1)
    ...
    %z = f(%0#1, row 6)            // after a loop of 3 iterations

The first iteration in the body computes the first row that is stacked, and the state
with which the second iteration begins: each value that is used together with a first
row has a counterpart that is used together with a second one. `Body` evaluates the
other iterations symbolically, each from the state that the previous one leaves, and
finds each of their operations in the body. `Remaining` finds further iterations among
the operations after the loop.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias, cast

from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue, Use

from ....analysis.loops import counter, is_read, only_writer
from ....analysis.scans import (
    Linear,
    Put,
    Stack,
    before_reshapes,
    linear,
    places,
    stacks,
)
from ....dialects.tgraph.base import (
    Shape,
    TensorOp,
    VariableType,
    shape_of,
    tensor_type_of,
    value_shape,
)
from ....dialects.tgraph.indexing import DynamicSliceOp
from ....dialects.tgraph.shaping import (
    BroadcastInDimOp,
    ConcatenateOp,
    ConstantOp,
    SliceOp,
)
from ....dialects.tgraph.structure import AssignOp, ReadOp, WhileOp
from .rows import is_of_rows, nested, parts


class Unfit(Exception):
    """Raised if the loop has to stay as it is."""


def _check(holds: bool) -> None:
    if not holds:
        raise Unfit


_Name: TypeAlias = tuple[object, Attribute]
"""The identity of a value, and its type. The identity does not depend on the shape: it
is an SSA value, a constant, or a number that is linear in the iteration."""

_State: TypeAlias = Mapping[int, _Name | None]
"""The names of the values that the loop carries, by number."""


_Key: TypeAlias = tuple[object, ...]
"""Identifies the computation of an operation, except for its properties."""


def _key(op: Operation, operands: Sequence[_Name]) -> _Key:
    if not isinstance(op, BroadcastInDimOp):
        return op.name, *operands
    shape, dims = value_shape(op.inputs[0]), op.broadcast_dimensions.get_values()
    long = [(n, dim) for n, dim in zip(shape, dims, strict=True) if n != 1]
    return op.name, operands[0][0], *long


def _does_same(op: Operation, other: Operation) -> bool:
    """Whether two operations with the same key compute the same."""
    return (
        (isinstance(op, BroadcastInDimOp) or op.properties == other.properties)
        and op.attributes == other.attributes
        and list(op.result_types) == list(other.result_types)
        and all(
            region.is_structurally_equivalent(same)
            for region, same in zip(op.regions, other.regions, strict=True)
        )
    )


class _Operations:
    """The operations of a block by their keys."""

    def __init__(self, block: Block, name: Callable[[SSAValue], _Name]):
        self.found: dict[_Key, list[Operation]] = {}
        for op in block.ops:
            if isinstance(op, TensorOp) and not op.outs:
                key = _key(op, list(map(name, op.operands)))
                self.found.setdefault(key, []).append(op)

    def like(self, op: Operation, operands: Sequence[_Name]) -> Operation | None:
        """An operation that computes the same as `op`, but from `operands`; or None."""
        others = self.found.get(_key(op, operands), ())
        return next((other for other in others if _does_same(op, other)), None)


class Body:
    """The body of a loop, as `count` iterations of one row each. The constructor raises
    `Unfit` if the body does not consist of such iterations."""

    def __init__(self, loop: WhileOp):
        counted = counter(loop)
        assert counted is not None
        self.loop, self.counted = loop, counted
        self.block = loop.body.block
        self.stacks = stacks(loop)
        stacked = {counted.number, *(stack.number for stack in self.stacks)}
        self.states = [n for n in range(len(loop.res)) if n not in stacked]
        self.ends = {number: self._end(number) for number in self.states}
        self.numbers = self._numbers()
        rows = ((op, self._row(op)) for op in self.block.ops)
        self.slices = {op: row for op, row in rows if row is not None}
        self.count = self._count()
        self.known = _Operations(self.block, self.name)
        self.puts = {stack.number: self._ordered(stack) for stack in self.stacks}
        self.next = self._next()
        self.ops = self._needed()
        self._check_repeats()

    def _end(self, number: int) -> SSAValue:
        writer = only_writer(self.loop, number)
        if not isinstance(writer, AssignOp):
            raise Unfit
        return writer.value

    def _numbers(self) -> Mapping[SSAValue, Linear]:
        """The integers in the body that are linear in the iteration."""
        found: dict[SSAValue, Linear] = {}
        for op in self.block.ops:
            if isinstance(op, TensorOp | ReadOp) and len(op.results) == 1:
                number = linear(op.results[0], self.loop, self.counted)
                if number is not None and number.slope:
                    found[op.results[0]] = number
        return found

    def _row(self, op: Operation) -> "_Row | None":
        """The row that `op` takes from a tensor outside, or None."""
        if not isinstance(op, DynamicSliceOp) or op.outs:
            return None
        argument = op.inputs[0]
        if not isinstance(argument, BlockArgument):
            return None
        starts = places(op, self.loop, self.counted)
        if isinstance(argument.type, VariableType) or not starts or not starts[0].slope:
            return None
        if any(start.slope for start in starts[1:]):
            return None
        whole, first = self.loop.inputs[argument.index], 0
        if (outer := _rows_of(whole)) is not None:
            whole, first = outer
        others = [start.start for start in starts[1:]]
        sizes = shape_of(tensor_type_of(op.result.type))
        return _Row(argument, whole, first, starts[0], others, sizes)

    def _count(self) -> int:
        """The number of iterations of one row in the body."""
        read: dict[SSAValue, set[int]] = {}
        for row in self.slices.values():
            read.setdefault(row.argument, set()).add(row.place.start)
        counts = {len(starts) for starts in read.values()}
        counts |= {len(stack.puts) for stack in self.stacks}
        _check(len(counts) == 1)
        (count,) = counts
        return count

    def name(self, value: SSAValue) -> _Name:
        """The name of a value in the body."""
        number = self.numbers.get(value)
        return (number, value.type) if number else _name(value)

    def once(self, number: Linear) -> Linear:
        """A number of the first iteration in the body, as a function of the iteration
        of one row."""
        return Linear(number.slope // self.count, number.start)

    def _ordered(self, stack: Stack) -> Sequence[Put]:
        """The puts into the rows of a stack, in the order of iterations of one row."""
        slope = stack.puts[0].place.slope // self.count
        puts = sorted(stack.puts, key=lambda put: put.place.start * slope)
        _check(all(put.shape == puts[0].shape for put in puts))
        places = [put.place.start for put in puts]
        _check(all(b - a == slope for a, b in pairwise(places)))
        return puts

    def _next(self) -> Mapping[int, SSAValue]:
        """The values that the loop carries after its first iteration of one row."""
        if self.count == 1:
            return self.ends
        found: dict[int, SSAValue] = {}
        pending = self._read_by_rows()
        pending += [(put.value, after.value) for put, after, *_ in self.puts.values()]
        seen: set[tuple[SSAValue, SSAValue]] = set()
        while pending:
            first, second = pending.pop(0)
            op, other = first.owner, second.owner
            if first in self.numbers or (first, second) in seen:
                continue
            seen.add((first, second))
            if isinstance(op, ReadOp):
                assert isinstance(op.variable, BlockArgument)
                found.setdefault(op.variable.index, second)
            elif (
                first is not second
                and isinstance(op, Operation)
                and isinstance(other, Operation)
                and op.name == other.name
            ):
                pending += zip(op.operands, other.operands, strict=False)
        for number, end in self.ends.items():
            _check(number in found and found[number].type == end.type)
        return {number: found[number] for number in self.ends}

    def _read_by_rows(self) -> list[tuple[SSAValue, SSAValue]]:
        """Pairs of values: one is used together with first rows, the other, in the same
        way, with second rows."""
        reached: dict[SSAValue, int] = {}
        met: tuple[list[SSAValue], list[SSAValue]] = [], []
        for op in self.block.ops:
            if not isinstance(op, TensorOp):
                continue
            before = [reached.get(value, -1) for value in op.operands]
            at = max(before, default=-1)
            if (row := self.slices.get(op)) is not None:
                at = self._iteration(row)
            elif 0 <= at <= 1:
                met[at].extend(
                    value
                    for value, earlier in zip(op.operands, before, strict=True)
                    if earlier < at and not isinstance(value.owner, ConstantOp)
                )
            reached |= dict.fromkeys(op.results, at)
        return list(zip(*met, strict=False))

    def _iteration(self, row: "_Row") -> int:
        """The number, in the body, of the iteration that takes `row`."""
        starts = {
            other.place.start
            for other in self.slices.values()
            if other.argument is row.argument
        }
        order = sorted(starts, key=lambda start: start * row.place.slope)
        return order.index(row.place.start)

    def _needed(self) -> Sequence[TensorOp]:
        """The operations of the first iteration of one row."""
        pending = [*self.next.values(), *(puts[0].value for puts in self.puts.values())]
        found: set[Operation] = set()
        for value in pending:  # grows
            op = value.owner
            if (number := self.numbers.get(value)) is not None:
                _check(self._is_by_rows(number, value))
                continue
            if not isinstance(op, Operation) or op in found:
                continue
            if isinstance(op, ReadOp):
                _check(is_read(value, self.loop, _variable(op)))
            else:
                _check(isinstance(op, TensorOp) and not op.outs)
                found.add(op)
                pending += op.operands
        needed = [op for op in self.block.ops if op in found]
        return [op for op in needed if isinstance(op, TensorOp)]

    def _is_by_rows(self, number: Linear, value: SSAValue) -> bool:
        """Whether a number of the first iteration is linear in the iteration of one
        row."""
        type = self.loop.inputs[self.counted.number].type
        return number.slope % self.count == 0 and value.type == type

    def iteration(
        self, state: _State, look_up: "_LookUp"
    ) -> Mapping[SSAValue, _Name | None]:
        """Evaluates another iteration, which begins with `state`. Returns the names
        there of the values that the first iteration carries on or stacks; None for a
        value that is not computed there."""
        names: dict[SSAValue, _Name | None] = {}

        def name(value: SSAValue) -> _Name | None:
            op = value.owner
            if value in names:
                return names[value]
            if (number := self.numbers.get(value)) is not None:
                return look_up.number(number, value)
            if isinstance(op, ReadOp):
                return state[_variable(op)]
            assert isinstance(value, BlockArgument)
            return look_up.given(value)

        for op in self.ops:
            operands = list(map(name, op.operands))
            if isinstance(op, ConstantOp):
                names[op.result] = _name(op.result)
                continue
            known = [operand for operand in operands if operand is not None]
            if len(known) < len(operands):
                names |= dict.fromkeys(op.results)
            elif _is_view(op) or (
                isinstance(op, BroadcastInDimOp) and isinstance(known[0][0], Attribute)
            ):
                names[op.results[0]] = known[0][0], op.results[0].type
            else:
                other = look_up.operation(op, known)
                results = other.results if other else [None] * len(op.results)
                for result, same in zip(op.results, results, strict=True):
                    names[result] = None if same is None else _name(same)
        wanted = [*self.next.values(), *(puts[0].value for puts in self.puts.values())]
        return {value: name(value) for value in wanted}

    def _check_repeats(self) -> None:
        """Checks that all iterations in the body compute the same."""
        state: _State = {n: self.name(value) for n, value in self.next.items()}
        for number in range(1, self.count):
            found = self.iteration(state, _Inside(self, number))
            for puts in self.puts.values():
                _check(_is(found[puts[0].value], puts[number].value))
            state = {n: found[value] for n, value in self.next.items()}
        _check(all(_is(state[number], end) for number, end in self.ends.items()))


def _is(name: _Name | None, value: SSAValue) -> bool:
    """Whether `name` is that of `value`, whatever their shapes."""
    return name is not None and name[0] == _name(value)[0]


def _name(value: SSAValue) -> _Name:
    op = (source := before_reshapes(value)).owner
    return op.value if isinstance(op, ConstantOp) else source, value.type


def _is_view(op: Operation) -> bool:
    """Whether an operation only changes the shape of a value."""
    return len(op.results) == 1 and before_reshapes(op.results[0]) is not op.results[0]


def _variable(op: ReadOp) -> int:
    assert isinstance(op.variable, BlockArgument)
    return op.variable.index


class _Row(NamedTuple):
    """A row that an operation in the body takes from a tensor outside."""

    argument: BlockArgument
    whole: SSAValue
    first: int  # the row of the whole at which the argument begins
    place: Linear  # the row of the argument
    others: Sequence[int]  # the starts in the other dimensions
    sizes: Shape


def _rows_of(value: SSAValue) -> tuple[SSAValue, int] | None:
    """The tensor of which `value` is some rows, and the first of these; or None."""
    op = value.owner
    if not isinstance(op, SliceOp) or op.outs or set(op.strides.get_values()) != {1}:
        return None
    first, *others = op.start_indices.get_values()
    whole = op.inputs[0]
    if any(others) or value_shape(whole)[1:] != value_shape(value)[1:]:
        return None
    return whole, first


class _Inside(NamedTuple):
    """Looks up values that iteration `at` in the body computes."""

    body: Body
    at: int

    def number(self, number: Linear, value: SSAValue) -> _Name:
        step = number.slope // self.body.count
        return number.plus(Linear(0, self.at * step)), value.type

    def given(self, value: BlockArgument) -> _Name:
        return _name(value)

    def operation(self, op: Operation, operands: Sequence[_Name]) -> Operation | None:
        return self.body.known.like(op, operands)


class _After:
    """Looks up values that iteration `at`, which comes after the loop, computes."""

    def __init__(self, body: Body, at: int, known: _Operations):
        self.body, self.at, self.known = body, at, known
        self.found: list[Operation] = []
        self.has_rows = False

    def number(self, number: Linear, value: SSAValue) -> _Name:
        at = self.body.once(number).of(Linear(0, self.at)).start
        element = cast(IntegerType, tensor_type_of(value.type).element_type)
        return IntegerAttr(at, element), value.type

    def given(self, value: BlockArgument) -> _Name:
        return _name(self.body.loop.inputs[value.index])

    def operation(self, op: Operation, operands: Sequence[_Name]) -> Operation | None:
        row = self.body.slices.get(op)
        other = self.known.like(op, operands) if row is None else self._rows(row)
        self.found += [other] if other is not None else []
        return other

    def _rows(self, row: _Row) -> Operation | None:
        at = self.body.once(row.place).of(Linear(0, self.at)).start
        start = [row.first + at, *row.others]
        limit = [a + size for a, size in zip(start, row.sizes, strict=True)]
        for use in row.whole.uses:
            op = use.operation
            if (
                isinstance(op, SliceOp)
                and not op.outs
                and list(op.start_indices.get_values()) == start
                and list(op.limit_indices.get_values()) == limit
                and set(op.strides.get_values()) == {1}
            ):
                self.has_rows = True
                return op
        return None


_LookUp: TypeAlias = _Inside | _After


class Remaining:
    """The iterations after a loop. The constructor raises `Unfit` if there are none, or
    if other operations read their values."""

    def __init__(self, body: Body):
        loop = body.loop
        self.body = body
        block = loop.parent
        assert block is not None
        known = _Operations(block, _name)
        self.wholes = {stack.number: self._whole(stack) for stack in body.stacks}
        counts = {len(list(parts(op))) - 1 for op, _ in self.wholes.values()}
        _check(len(counts) <= 1)
        self.rows: list[Mapping[int, _Name | None]] = []  # by stack, for each iteration
        self.inside: dict[Operation, None] = {}
        state: _State = {n: _name(loop.res[n]) for n in body.states}
        while True:
            at = body.counted.trips * body.count + len(self.rows)
            after = _After(body, at, known)
            found = body.iteration(state, after)
            if len(self.rows) in counts or not (counts or after.has_rows):
                break
            self.inside |= dict.fromkeys(after.found)
            rows = {n: found[puts[0].value] for n, puts in body.puts.items()}
            self.rows.append(rows)
            state = {n: found[value] for n, value in body.next.items()}
        self.ends = state
        _check(bool(self.rows))
        self.trips = body.counted.trips * body.count + len(self.rows)
        for stack in body.stacks:
            self._check_rows(stack)
        self._check_users()

    def _whole(self, stack: Stack) -> tuple[ConcatenateOp, int]:
        """The concatenation of all rows, and the position of the loop's first row."""
        result = self.body.loop.res[stack.number]
        users = [use.operation for use in result.uses]
        user = users[0] if len(users) == 1 else None
        if not isinstance(user, ConcatenateOp) or not is_of_rows(user):
            raise Unfit
        (begin,) = [part.start for part in parts(user) if part.value is result]
        begun = self.body.loop.inputs[stack.number].owner
        _check(isinstance(begun, ConstantOp) and begun.splat is not None)
        return user, begin

    def _check_rows(self, stack: Stack) -> None:
        """Checks that the other rows of a stack are those that these iterations
        compute."""
        joined, begin = self.wholes[stack.number]
        found = {part.start: part.value for part in parts(joined)}
        place = self.body.once(self.body.puts[stack.number][0].place)
        for number, row in enumerate(self.rows, self.trips - len(self.rows)):
            value = found.get(begin + place.of(Linear(0, number)).start)
            _check(value is not None and _is(row[stack.number], value))

    def _check_users(self) -> None:
        """Checks that no other operation reads values that the loop leaves, or that
        these iterations compute from them, except final states and stacked rows."""
        loop = self.body.loop
        _check(not loop.res[self.body.counted.number].uses)
        joined = {op for op, _ in self.wholes.values()}
        self.inside |= {op: None for each in joined for op in nested(each)}
        left = {name[0] for name in self.ends.values() if name is not None}
        pending: list[SSAValue] = [loop.res[number] for number in self.body.states]
        for value in pending:  # grows
            for op in (use.operation for use in value.uses):
                if op in self.inside or _is_view(op):
                    pending += op.results if op not in joined else ()
                else:
                    _check(_name(value)[0] in left)
        self.computed = set(pending)

    def uses_of_ends(self) -> Mapping[int, Sequence[Use]]:
        """The uses, outside of these iterations, of the states that the last one
        leaves."""
        found: dict[int, Sequence[Use]] = {}
        for number, name in self.ends.items():
            value = name[0] if name is not None else None
            if isinstance(value, SSAValue) and value in self.computed:
                uses = [use for use in value.uses if use.operation not in self.inside]
                found[number] = uses
        return found
