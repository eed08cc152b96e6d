"""Random `tgraph` programs for Hypothesis: level 1, unplaced, on small f32 tensors.

Every choice is drawn as an index into a list of choices, so that Hypothesis can shrink
programs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    FloatAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    f32,
    i1,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tensorplan.analysis.functions import set_argument_attributes
from tensorplan.dialects.tgraph import elementwise as ew
from tensorplan.dialects.tgraph import reducing, shaping, structure
from tensorplan.dialects.tgraph.base import DONATED, VariableType, ints, tensor_type_of

SHAPES = [(4,), (3, 4), (4, 3), (2, 3, 4), (), (1, 4), (12,)]
UNARY = [ew.NegateOp, ew.AbsOp, ew.TanhOp, ew.FloorOp, ew.SignOp]
BINARY = [ew.AddOp, ew.SubtractOp, ew.MultiplyOp, ew.MaximumOp, ew.MinimumOp]


def shape_of(value: SSAValue) -> tuple[int, ...]:
    return tensor_type_of(value.type).get_shape()


class _Builder:
    def __init__(self, draw: st.DrawFn):
        self.draw = draw
        self.block = Block()
        self.values: list[SSAValue] = []
        self.variables: list[SSAValue] = []

    def pick(self, values: list[SSAValue]) -> SSAValue:
        return values[self.draw(st.integers(0, len(values) - 1))]

    def emit(self, op: Operation) -> None:
        self.block.add_op(op)
        self.values += op.results

    def tensor(self, shape: tuple[int, ...]) -> TensorType:
        return TensorType(f32, shape)

    def any(self) -> SSAValue:
        return self.pick(self.values)

    def same(self, value: SSAValue) -> SSAValue:
        return self.pick([v for v in self.values if v.type == value.type])

    # One method for each family of operations.

    def unary(self) -> None:
        self._unary(UNARY)

    def continuous(self) -> None:
        self._unary([ew.NegateOp, ew.AbsOp, ew.TanhOp])

    def _unary(self, ops: list[type[ew.UnaryOp]]) -> None:
        x = self.any()
        op = self.draw(st.sampled_from(ops))
        self.emit(op((x,), result_types=(x.type,)))

    def binary(self) -> None:
        x = self.any()
        op = self.draw(st.sampled_from(BINARY))
        self.emit(op((x, self.same(x)), result_types=(x.type,)))

    def select(self) -> None:
        x = self.any()
        y = self.same(x)
        compare = ew.CompareOp(
            (x, y),
            result_types=(TensorType(i1, shape_of(x)),),
            properties={"direction": StringAttr("LT")},
        )
        self.block.add_op(compare)
        choices = (compare.result, y, self.same(x))
        self.emit(ew.SelectOp(choices, result_types=(x.type,)))

    def constant(self) -> None:
        shape = self.draw(st.sampled_from([*SHAPES, (300, 4)]))
        number = self.draw(st.sampled_from([0.0, 1.0, -2.0]))
        self.emit(shaping.ConstantOp(FloatAttr(number, f32), self.tensor(shape)))

    def iota(self) -> None:
        dimension = {"dimension": IntegerAttr(1, i64)}
        types = (self.tensor((3, 4)),)
        self.emit(shaping.IotaOp((), result_types=types, properties=dimension))

    def broadcast(self) -> None:
        x = self.any()
        shape = (2, *shape_of(x))
        dims = {"broadcast_dimensions": ints(range(1, len(shape)))}
        types = (self.tensor(shape),)
        if len(shape) < 4:
            self.emit(
                shaping.BroadcastInDimOp((x,), result_types=types, properties=dims)
            )

    def transpose(self) -> None:
        x = self.any()
        order = self.draw(st.permutations(range(len(shape_of(x)))))
        types = (self.tensor(tuple(shape_of(x)[d] for d in order)),)
        permutation = {"permutation": ints(order)}
        self.emit(shaping.TransposeOp((x,), result_types=types, properties=permutation))

    def reshape(self) -> None:
        x = self.any()
        fits = [s for s in SHAPES if prod(s) == prod(shape_of(x))]
        shape = self.draw(st.sampled_from([*fits, (prod(shape_of(x)),)]))
        self.emit(shaping.ReshapeOp((x,), result_types=(self.tensor(shape),)))

    def slice(self) -> None:
        x = self.any()
        starts = [self.draw(st.integers(0, size - 1)) for size in shape_of(x)]
        steps = [self.draw(st.integers(1, 2)) for _ in starts]
        sizes = zip(shape_of(x), starts, steps, strict=True)
        shape = tuple(-(-(size - a) // step) for size, a, step in sizes)
        bounds = {
            "start_indices": ints(starts),
            "limit_indices": ints(shape_of(x)),
            "strides": ints(steps),
        }
        types = (self.tensor(shape),)
        self.emit(shaping.SliceOp((x,), result_types=types, properties=bounds))

    def reverse(self) -> None:
        x = self.any()
        dims = [d for d in range(len(shape_of(x))) if self.draw(st.booleans())]
        dimensions = {"dimensions": ints(dims)}
        self.emit(
            shaping.ReverseOp((x,), result_types=(x.type,), properties=dimensions)
        )

    def concatenate(self) -> None:
        x = self.any()
        if shape := shape_of(x):
            types = (self.tensor((2 * shape[0], *shape[1:])),)
            self.emit(
                shaping.ConcatenateOp(
                    (x, self.same(x)),
                    result_types=types,
                    properties={"dimension": IntegerAttr(0, i64)},
                )
            )

    def reduce(self) -> None:
        x = self.any()
        dims = [d for d in range(len(shape_of(x))) if self.draw(st.booleans())]
        self._reduce(x, dims, self.draw(st.sampled_from(["add", "maximum"])))

    def sums_of_unused(self) -> list[SSAValue]:
        """Sums up each value that nothing uses, so that no operation is dead."""
        first = len(self.values)
        for x in [value for value in self.values if not value.uses]:
            self._reduce(x, range(len(shape_of(x))), "add")
        return self.values[first:]

    def _reduce(self, x: SSAValue, dims: Sequence[int], kind: str) -> None:
        shape = tuple(s for d, s in enumerate(shape_of(x)) if d not in dims)
        how = {"kind": StringAttr(kind), "dimensions": ints(dims)}
        types = (self.tensor(shape),)
        self.emit(reducing.ReduceOp((x,), result_types=types, properties=how))

    def dot(self) -> None:
        matrices = [v for v in self.values if len(shape_of(v)) == 2]
        if not matrices:
            return
        a = self.pick(matrices)
        b = self.pick([m for m in matrices if shape_of(m)[0] == shape_of(a)[0]])
        none = ints(())
        dims = {
            "lhs_batching_dimensions": none,
            "rhs_batching_dimensions": none,
            "lhs_contracting_dimensions": ints((0,)),
            "rhs_contracting_dimensions": ints((0,)),
        }
        types = (self.tensor((shape_of(a)[1], shape_of(b)[1])),)
        self.emit(reducing.DotGeneralOp((a, b), result_types=types, properties=dims))

    def read(self) -> None:
        if self.variables:
            self.emit(structure.ReadOp(self.pick(self.variables)))

    def assign(self) -> None:
        if not self.variables:
            return
        variable = self.pick(self.variables)
        tensor = tensor_type_of(variable.type)
        fits = [value for value in self.values if value.type == tensor]
        if fits:
            self.block.add_op(structure.AssignOp(variable, self.pick(fits)))


STEPS: list[Callable[[_Builder], None]] = [
    _Builder.unary,
    _Builder.binary,
    _Builder.binary,
    _Builder.select,
    _Builder.constant,
    _Builder.iota,
    _Builder.broadcast,
    _Builder.transpose,
    _Builder.reshape,
    _Builder.slice,
    _Builder.reverse,
    _Builder.concatenate,
    _Builder.reduce,
    _Builder.dot,
    _Builder.read,
    _Builder.assign,
]

CONTINUOUS = [_Builder.continuous, *STEPS[1:3], *STEPS[4:]]
"""`STEPS` without operations that amplify small differences."""


@dataclass(frozen=True)
class Program:
    """A module that Hypothesis reports as IR."""

    module: ModuleOp

    def __repr__(self) -> str:
        return f"\n{self.module}\n"


@st.composite
def programs(
    draw: st.DrawFn,
    max_ops: int = 20,
    is_continuous: bool = False,
    are_donated: bool = False,
    are_used: bool = False,
) -> Program:
    """A function `@main` with up to `max_ops` drawn operations. All inputs are donated
    if `are_donated`. The results depend on all operations if `are_used`."""
    builder = _Builder(draw)
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(st.sampled_from(SHAPES))
        builder.values.append(
            builder.block.insert_arg(builder.tensor(shape), len(builder.block.args))
        )
    for _ in range(draw(st.integers(0, 2))):
        shape = draw(st.sampled_from(SHAPES))
        variable = VariableType(builder.tensor(shape))
        builder.variables.append(
            builder.block.insert_arg(variable, len(builder.block.args))
        )
    for _ in range(draw(st.integers(1, max_ops))):
        draw(st.sampled_from(CONTINUOUS if is_continuous else STEPS))(builder)
    results = [builder.any() for _ in range(draw(st.integers(0, 3)))]
    if are_used:
        results += builder.sums_of_unused()
    builder.block.add_op(ReturnOp(*results))
    types = FunctionType.from_lists(
        [argument.type for argument in builder.block.args], [r.type for r in results]
    )
    func = FuncOp("main", types, Region(builder.block))
    if are_donated:
        donated = {DONATED: UnitAttr()}
        inputs = [value not in builder.variables for value in builder.block.args]
        set_argument_attributes(func, [donated if each else {} for each in inputs])
    return Program(ModuleOp([func]))
