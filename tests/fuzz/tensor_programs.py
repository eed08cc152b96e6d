"""Random `tgraph` programs from a seed: level 1, with all operations and many types.

    module = tensor_program(Random(17), size=10)

Long runs use these programs; Hypothesis uses tests/support/programs.py. They have
variables, loops and branches, devices, groups, all element types, and sizes 0 and 1.
Floats stay near small integers, so most sums are exact in any order.
"""

from collections.abc import Callable, Sequence
from math import prod
from random import Random
from typing import Any, TypeVar, cast

from idioms import IDIOMS
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    StringAttr,
    TensorType,
    UnitAttr,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from tensorplan.dialects.tgraph import bodies, indexing, reducing, shaping, structure
from tensorplan.dialects.tgraph import elementwise as ew
from tensorplan.dialects.tgraph import random as rng
from tensorplan.dialects.tgraph.base import (
    DEVICE,
    DONATED,
    GROUP,
    RESULT,
    AnyTensor,
    Shape,
    TensorOp,
    VariableType,
    ints,
    segments,
    tensor_type_of,
)

T = TypeVar("T")

ui8, ui32, ui64 = (IntegerType(w, Signedness.UNSIGNED) for w in (8, 32, 64))
FLOATS: Sequence[Attribute] = [f32, f32, f32, f64, f16, BFloat16Type()]
INTEGERS: Sequence[Attribute] = [i32, i32, i64, i8, ui8, ui32, ui64]
ELEMENTS: Sequence[Attribute] = [*FLOATS, *FLOATS, *INTEGERS, i1]
SIZES = [0, 1, 1, 2, 2, 3, 3, 4, 5, 7]
DEVICES = ["cpu:0", "cpu:1"]
GROUPS = ["a", "b"]

OF_FLOATS = [
    *(ew.CbrtOp, ew.CeilOp, ew.CosineOp, ew.ErfOp, ew.ErfcOp, ew.ExponentialOp),
    *(ew.ExponentialMinusOneOp, ew.FloorOp, ew.LogOp, ew.LogPlusOneOp, ew.LogisticOp),
    *(ew.RoundNearestAfzOp, ew.RoundNearestEvenOp, ew.RsqrtOp, ew.SineOp, ew.SqrtOp),
    *(ew.TanOp, ew.TanhOp, ew.IsFiniteOp),
]
OF_INTEGERS = [ew.CountLeadingZerosOp, ew.PopcntOp, ew.NotOp]
OF_NUMBERS = [ew.AbsOp, ew.NegateOp, ew.SignOp]
TWO_FLOATS = [ew.Atan2Op, ew.DivideOp, ew.PowerOp]
TWO_INTEGERS = [
    *(ew.AndOp, ew.OrOp, ew.XorOp, ew.ShiftLeftOp, ew.ShiftRightArithmeticOp),
    *(ew.ShiftRightLogicalOp, ew.DivideOp, ew.RemainderOp),
]
TWO_NUMBERS = [ew.AddOp, ew.SubtractOp, ew.MultiplyOp, ew.MaximumOp, ew.MinimumOp]
TWO_BITS = [ew.AndOp, ew.OrOp, ew.XorOp]


def is_float(type: Attribute) -> bool:
    return isinstance(type, AnyFloat)


def element(value: SSAValue) -> Attribute:
    return tensor_type_of(value.type).element_type


def shape_of(value: SSAValue) -> Shape:
    return tensor_type_of(value.type).get_shape()


def number(value: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(value, i64)


class Builder:
    """Appends random operations to a block, whose operands are values in the block."""

    def __init__(self, random: Random, values: Sequence[SSAValue], depth: int = 0):
        self.random = random
        self.block = Block()
        self.values = list(values)
        self.variables: list[SSAValue] = []
        self.depth = depth

    def argument(self, type: Attribute) -> SSAValue:
        value = self.block.insert_arg(type, len(self.block.args))
        (self.variables if isinstance(type, VariableType) else self.values).append(
            value
        )
        return value

    def pick(self, choices: Sequence[T]) -> T:
        return self.random.choice(choices)

    def value(self, fits: Callable[[SSAValue], bool] = lambda _: True) -> SSAValue:
        """A random value that fits, preferring later ones. Raises `NothingFits`."""
        found = [v for v in self.values if fits(v)]
        if not found:
            raise NothingFits
        return found[max(self.random.randrange(len(found)) for _ in range(2))]

    def like(self, value: SSAValue) -> SSAValue:
        return self.value(lambda v: v.type == value.type)

    def some(self, count: int) -> list[int]:
        """A random subset of the numbers below `count`, in ascending order."""
        return [n for n in range(count) if self.random.random() < 0.5]

    def emit(
        self,
        cls: type[TensorOp],
        inputs: Sequence[SSAValue],
        properties: dict[str, Attribute] | None = None,
        *,
        to: Sequence[Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> SSAValue:
        """Appends an operation; returns its first result. Raises `NothingFits` if its
        shape rule rejects the operands or its results are too large."""

        def make(results: Sequence[Attribute]) -> TensorOp:
            op = cls.create(
                operands=inputs,
                result_types=results,
                properties={
                    **cls.DEFAULTS,
                    **(properties or {}),
                    "operandSegmentSizes": segments(inputs, ()),
                },
                regions=list(regions),
            )
            assert isinstance(op, TensorOp)
            return op

        types = [tensor_type_of(v.type) for v in inputs]
        results: Sequence[Attribute] = to or ()
        try:
            if to is None:
                trial = make(())
                results = trial.result_types_of(types)
                for region in list(trial.regions):
                    trial.detach_region(region)
                trial.erase()
            if sum(prod(tensor_type_of(t).get_shape()) for t in results) > 5000:
                raise NothingFits
            op = make(results)
            op.verify()
        except VerifyException:
            raise NothingFits from None
        self.block.add_op(op)
        self.values += op.results
        return op.results[0]

    def shape(self, most: int = 4) -> Shape:
        rank = self.random.randint(0, most)
        return tuple(self.pick(SIZES) for _ in range(rank))

    def step(self) -> None:
        """Appends one random operation, or an idiom of several."""
        make = self.pick(STEPS)
        self.attempt(lambda: make(self))

    def attempt(self, make: Callable[[], None]) -> None:
        """Runs `make`. If it raises `NothingFits`, its operations so far remain."""
        try:
            make()
        except NothingFits:
            pass

    def number_attribute(self, type: Attribute) -> Attribute:
        if isinstance(type, AnyFloat):
            return FloatAttr(self.pick([0.0, 1.0, -2.0, 0.5, 3.0]), type)
        assert isinstance(type, IntegerType)
        return IntegerAttr(self.random.randint(0, 1 if type == i1 else 3), type)

    # One method for each family of operations.

    def unary(self) -> None:
        x = self.value()
        type = element(x)
        if is_float(type):
            choices = [*OF_FLOATS, *OF_NUMBERS, *OF_NUMBERS]
        elif type == i1:
            choices = [ew.NotOp]
        else:
            choices = [*OF_INTEGERS, *OF_NUMBERS]
        self.emit(self.pick(choices), [x])

    def binary(self) -> None:
        x = self.value()
        type = element(x)
        if is_float(type):
            choices = [*TWO_FLOATS, *TWO_NUMBERS, *TWO_NUMBERS, *TWO_NUMBERS]
        elif type == i1:
            choices = TWO_BITS
        else:
            choices = [*TWO_INTEGERS, *TWO_NUMBERS]
        self.emit(self.pick(choices), [x, self.like(x)])

    def clamp(self) -> None:
        x = self.value(lambda v: element(v) != i1)
        self.emit(ew.ClampOp, [self.like(x), x, self.like(x)])

    def compare(self) -> None:
        x = self.value()
        direction = self.pick(["EQ", "NE", "LT", "LE", "GT", "GE"])
        how: dict[str, Attribute] = {"direction": StringAttr(direction)}
        self.emit(ew.CompareOp, [x, self.like(x)], how)

    def select(self) -> None:
        c = self.value(lambda v: element(v) == i1)
        x = self.value(lambda v: shape_of(v) == shape_of(c))
        self.emit(ew.SelectOp, [c, x, self.like(x)])

    def convert(self) -> None:
        x = self.value()
        target = TensorType(self.pick(ELEMENTS), shape_of(x))
        if is_float(element(x)) and target.element_type in INTEGERS:
            x = self.in_range(x)
        self.emit(ew.ConvertOp, [x], to=[target])

    def in_range(self, x: SSAValue) -> SSAValue:
        """Clamps `x` to 0 to 3, and NaN to 0, so that its conversion is defined."""
        low, high = (
            self.emit(
                shaping.FullLikeOp, [x], {"value": FloatAttr(n, cast(Any, element(x)))}
            )
            for n in (0.0, 3.0)
        )
        number = self.emit(ew.CompareOp, [x, x], {"direction": StringAttr("EQ")})
        x = self.emit(ew.SelectOp, [number, x, low])
        return self.emit(ew.ClampOp, [low, x, high])

    def bitcast(self) -> None:
        # Excludes floats, whose zeros may have either sign.
        pairs: dict[Attribute, Attribute] = {i32: ui32, i64: ui64, i8: ui8}
        x = self.value(lambda v: element(v) in pairs)
        target = TensorType(pairs[element(x)], shape_of(x))
        self.emit(ew.BitcastConvertOp, [x], to=[target])

    def constant(self) -> None:
        type = self.pick(ELEMENTS)
        self.block.add_op(
            op := shaping.ConstantOp(
                cast(Any, self.number_attribute(type)),
                TensorType(type, self.shape()),
            )
        )
        self.values.append(op.results[0])

    def dense(self) -> None:
        shape = self.shape(2)
        type = TensorType(self.pick([f32, i32]), shape)
        data = [self.random.randint(-3, 3) for _ in range(prod(shape))]
        attr = DenseIntOrFPElementsAttr.from_list(cast(Any, type), data)
        self.emit(shaping.ConstantOp, [], {"value": attr}, to=[type])

    def full_like(self) -> None:
        x = self.value()
        value = self.number_attribute(element(x))
        self.emit(shaping.FullLikeOp, [x], {"value": value})

    def iota(self) -> None:
        shape = self.shape()
        if not shape:
            raise NothingFits
        type = TensorType(self.pick([f32, i32, i64, f64]), shape)
        dimension = {"dimension": number(self.random.randrange(len(shape)))}
        self.emit(shaping.IotaOp, [], {**dimension}, to=[type])

    def broadcast(self) -> None:
        x = self.value(lambda v: len(shape_of(v)) < 4)
        rank = self.random.randint(len(shape_of(x)), 4)
        dims = sorted(self.random.sample(range(rank), len(shape_of(x))))
        shape = [self.pick(SIZES) for _ in range(rank)]
        for dim, size in zip(dims, shape_of(x), strict=True):
            shape[dim] = size if size != 1 else self.pick([1, shape[dim]])
        how: dict[str, Attribute] = {"broadcast_dimensions": ints(dims)}
        target = TensorType(element(x), shape)
        self.emit(shaping.BroadcastInDimOp, [x], how, to=[target])

    def transpose(self) -> None:
        x = self.value()
        order = self.random.sample(range(len(shape_of(x))), len(shape_of(x)))
        self.emit(shaping.TransposeOp, [x], {"permutation": ints(order)})

    def reshape(self) -> None:
        x = self.value()
        left, shape = prod(shape_of(x)), list[int]()
        while left > 1 and len(shape) < 3:
            sizes = [d for d in range(1, left + 1) if left % d == 0]
            shape.append(self.pick(sizes))
            left //= shape[-1]
        shape.append(left)
        self.random.shuffle(shape)
        if left == 1 and self.random.random() < 0.5:
            shape.remove(1)
        self.emit(shaping.ReshapeOp, [x], to=[TensorType(element(x), shape)])

    def slice(self) -> None:
        x = self.value()
        cuts = [
            (a := self.random.randint(0, size), self.random.randint(a, size))
            for size in shape_of(x)
        ]
        how: dict[str, Attribute] = {
            "start_indices": ints([a for a, _ in cuts]),
            "limit_indices": ints([b for _, b in cuts]),
            "strides": ints([self.pick([1, 1, 2, 3]) for _ in cuts]),
        }
        self.emit(shaping.SliceOp, [x], how)

    def reverse(self) -> None:
        x = self.value()
        dims = self.some(len(shape_of(x)))
        self.emit(shaping.ReverseOp, [x], {"dimensions": ints(dims)})

    def concatenate(self) -> None:
        x = self.value(lambda v: len(shape_of(v)) > 0)
        dim = self.random.randrange(len(shape_of(x)))

        def fits(v: SSAValue) -> bool:
            a, b = list(shape_of(v)), list(shape_of(x))
            return (
                element(v) == element(x)
                and len(a) == len(b)
                and (a[:dim] + a[dim + 1 :] == b[:dim] + b[dim + 1 :])
            )

        parts = [x, *(self.value(fits) for _ in range(self.random.randint(0, 2)))]
        self.emit(shaping.ConcatenateOp, parts, {"dimension": number(dim)})

    def pad(self) -> None:
        x = self.value()
        scalar = self.value(lambda v: v.type == TensorType(element(x), ()))
        rank = len(shape_of(x))
        how: dict[str, Attribute] = {
            "low": ints([self.random.randint(-1, 2) for _ in range(rank)]),
            "high": ints([self.random.randint(-1, 2) for _ in range(rank)]),
            "interior": ints([self.pick([0, 0, 1]) for _ in range(rank)]),
        }
        self.emit(shaping.PadOp, [x, scalar], how)

    def reduce(self) -> None:
        x = self.value()
        is_bit = element(x) == i1
        kinds = ["and", "or"] if is_bit else ["add", "maximum", "minimum", "multiply"]
        how: dict[str, Attribute] = {
            "kind": StringAttr(self.pick(kinds)),
            "dimensions": ints(self.some(len(shape_of(x)))),
        }
        self.emit(reducing.ReduceOp, [x], how)

    def dot(self) -> None:
        a = self.value(lambda v: element(v) != i1)
        b = self.value(lambda v: element(v) == element(a))
        pairs = [
            (m, n)
            for m, x in enumerate(shape_of(a))
            for n, y in enumerate(shape_of(b))
            if x == y
        ]
        self.random.shuffle(pairs)
        contracting, batching = list[tuple[int, int]](), list[tuple[int, int]]()
        for m, n in pairs:
            taken = (*contracting, *batching)
            if any(m == p or n == q for p, q in taken) or self.random.random() < 0.2:
                continue
            self.pick([contracting, contracting, batching]).append((m, n))
        how: dict[str, Attribute] = {
            f"{side}_{what}_dimensions": ints([pair[number] for pair in found])
            for number, side in enumerate(("lhs", "rhs"))
            for what, found in (("contracting", contracting), ("batching", batching))
        }
        self.one_zero(self.emit(reducing.DotGeneralOp, [a, b], how))

    def one_zero(self, x: SSAValue) -> None:
        """Replaces a float sum, whose zero may have either sign, by its magnitude."""
        if is_float(element(x)):
            self.values.remove(x)
            self.emit(ew.AbsOp, [x])

    def convolution(self) -> None:
        image = self.value(
            lambda v: (
                len(shape_of(v)) == 4 and is_float(element(v)) and 0 not in shape_of(v)
            )
        )
        labels = self.pick(["b01f", "bf01"])
        sizes = dict(zip(labels, shape_of(image), strict=True))
        groups = self.pick([n for n in (1, 2, 3) if sizes["f"] % n == 0])
        kernel_shape = [
            self.random.randint(1, 3),
            self.random.randint(1, 3),
            sizes["f"] // groups,
            groups * self.random.randint(1, 2),
        ]
        type = TensorType(element(image), kernel_shape)
        kernel = self.emit(
            shaping.ConstantOp,
            [],
            {"value": FloatAttr(1.0, cast(Any, element(image)))},
            to=[type],
        )
        padding = [[self.random.randint(0, 2) for _ in range(2)] for _ in range(2)]
        how: dict[str, Attribute] = {
            "dim_labels": StringAttr(f"{labels}_01io->{labels}"),
            "window_strides": ints([self.random.randint(1, 2) for _ in range(2)]),
            "padding_low": ints(padding[0]),
            "padding_high": ints(padding[1]),
            "lhs_dilation": ints([self.pick([1, 1, 2]) for _ in range(2)]),
            "rhs_dilation": ints([self.pick([1, 1, 2]) for _ in range(2)]),
            "feature_group_count": number(groups),
        }
        self.one_zero(self.emit(reducing.ConvolutionOp, [image, kernel], how))

    def window(self) -> None:
        x = self.value(lambda v: element(v) != i1)
        rank = len(shape_of(x))
        kind = self.pick(["add", "maximum", "minimum"])

        def draw(*choices: int) -> Attribute:
            return ints([self.pick(choices) for _ in range(rank)])

        how = {
            "kind": StringAttr(kind),
            "window_dimensions": draw(1, 2, 3),
            "window_strides": draw(1, 2),
            "padding_low": draw(0, 0, 1),
            "padding_high": draw(0, 0, 1),
            "base_dilations": draw(1, 1, 2),
            "window_dilations": draw(1, 1, 2),
        }
        self.emit(reducing.ReduceWindowOp, [x], how)

    def select_and_scatter(self) -> None:
        x = self.value(lambda v: is_float(element(v)) and 0 not in shape_of(v))
        window = [self.random.randint(1, min(2, size)) for size in shape_of(x)]
        zeros = ints([0] * len(window))
        places = [size // w for size, w in zip(shape_of(x), window, strict=True)]
        gradient = self.emit(
            shaping.ConstantOp,
            [],
            {"value": FloatAttr(1.0, cast(Any, element(x)))},
            to=[TensorType(element(x), places)],
        )
        how: dict[str, Attribute] = {
            "kind": StringAttr(self.pick(["maximum", "minimum"])),
            "window_dimensions": ints(window),
            "window_strides": ints(window),
            "padding_low": zeros,
            "padding_high": zeros,
        }
        self.emit(reducing.SelectAndScatterOp, [x, gradient], how)

    def indices(self, count: int, length: int) -> SSAValue:
        data = [self.random.randint(-1, 5) for _ in range(count * length)]
        type = TensorType(i32, (count, length))
        attr = DenseIntOrFPElementsAttr.from_list(type, data)
        return self.emit(shaping.ConstantOp, [], {"value": attr}, to=[type])

    def gather(self) -> None:
        x = self.value(lambda v: 0 < len(shape_of(v)) < 4)
        shape = shape_of(x)
        indexed = self.some(len(shape)) or [0]
        collapsed = [d for d in indexed if self.random.random() < 0.7]
        sizes = [
            min(size, 1) if d in collapsed else self.random.randint(min(size, 1), size)
            for d, size in enumerate(shape)
        ]
        count = self.random.randint(1, 3)
        offsets = range(1, 1 + len(shape) - len(collapsed))
        how: dict[str, Attribute] = {
            "offset_dims": ints([*offsets]),
            "collapsed_slice_dims": ints(collapsed),
            "start_index_map": ints(indexed),
            "index_vector_dim": number(1),
            "slice_sizes": ints(sizes),
        }
        self.emit(indexing.GatherOp, [x, self.indices(count, len(indexed))], how)

    def scatter(self) -> None:
        x = self.value(lambda v: len(shape_of(v)) > 0 and element(v) != i1)
        count = self.random.randint(1, 3)
        updates = self.emit(
            shaping.ConstantOp,
            [],
            {"value": self.number_attribute(element(x))},
            to=[TensorType(element(x), (count, *shape_of(x)[1:]))],
        )
        indices = self.indices(count, 1)
        if self.random.random() < 0.5:  # a group computes them
            indices = self.emit(ew.AddOp, [indices, self.indices(count, 1)])
            updates = self.emit(ew.AddOp, [updates, updates])
        how: dict[str, Attribute] = {
            "kind": StringAttr(self.pick(["replace", "add", "maximum"])),
            "update_window_dims": ints([*range(1, len(shape_of(x)))]),
            "inserted_window_dims": ints([0]),
            "scatter_dims_to_operand_dims": ints([0]),
            "index_vector_dim": number(1),
        }
        self.emit(indexing.ScatterOp, [x, indices, updates], how)

    def starts(self, count: int) -> list[SSAValue]:
        return [
            self.value(lambda v: v.type in (TensorType(i32, ()), TensorType(i64, ())))
            for _ in range(count)
        ]

    def dynamic_slice(self) -> None:
        x = self.value()
        sizes = [self.random.randint(min(1, size), size) for size in shape_of(x)]
        how: dict[str, Attribute] = {"slice_sizes": ints(sizes)}
        self.emit(indexing.DynamicSliceOp, [x, *self.starts(len(sizes))], how)

    def dynamic_update_slice(self) -> None:
        x = self.value()

        def fits(v: SSAValue) -> bool:
            shapes = shape_of(v), shape_of(x)
            return (
                element(v) == element(x)
                and len(shapes[0]) == len(shapes[1])
                and all(a <= b for a, b in zip(*shapes, strict=True))
            )

        update = self.value(fits)
        inputs = [x, update, *self.starts(len(shape_of(x)))]
        self.emit(indexing.DynamicUpdateSliceOp, inputs)

    def reduce_by(self) -> None:
        x = self.value(lambda v: element(v) != i1 and len(shape_of(v)) > 0)
        scalar = TensorType(element(x), ())
        zero = (
            FloatAttr(0.0, cast(AnyFloat, element(x)))
            if is_float(element(x))
            else IntegerAttr(0, cast(IntegerType, element(x)))
        )
        start = self.emit(shaping.ConstantOp, [], {"value": zero}, to=[scalar])
        block = Block(arg_types=[scalar, scalar])
        total = ew.AddOp(block.args, result_types=[scalar])
        block.add_ops([total, structure.YieldOp(total.result)])
        how: dict[str, Attribute] = {"dimensions": ints(self.some(len(shape_of(x))))}
        self.emit(bodies.ReduceByOp, [x, start], how, regions=[Region(block)])

    def sort(self) -> None:
        # Excludes floats: a comparison of NaNs is not an order.
        x = self.value(lambda v: element(v) in INTEGERS and len(shape_of(v)) > 0)
        y = self.value(lambda v: shape_of(v) == shape_of(x))
        scalars = [TensorType(element(v), ()) for v in (x, x, y, y)]
        block = Block(arg_types=scalars)
        before = ew.CompareOp(
            block.args[:2],
            result_types=[TensorType(i1, ())],
            properties={"direction": StringAttr(self.pick(["LT", "GT"]))},
        )
        block.add_ops([before, structure.YieldOp(before.result)])
        dimension = self.random.randrange(len(shape_of(x)))
        how: dict[str, Attribute] = {"dimension": number(dimension)}
        if self.random.random() < 0.5:
            how["count"] = number(self.random.randint(0, shape_of(x)[dimension]))
        if element(y) != i1 and self.random.random() < 0.3:
            how["positions"] = ints([1])
            self.emit(bodies.SortOp, [x], how, regions=[Region(block)])
            return
        self.emit(bodies.SortOp, [x, y], how, regions=[Region(block)])

    def random_bits(self) -> None:
        state = self.value(lambda v: v.type == TensorType(ui64, (2,)))
        algorithm = self.pick(["threefry", "philox"])
        bits = TensorType(self.pick([ui32, ui64]), self.shape(2))
        how: dict[str, Attribute] = {"algorithm": StringAttr(algorithm)}
        self.emit(rng.RngBitGeneratorOp, [state], how, to=[state.type, bits])

    # State and structure.

    def read(self) -> None:
        if not self.variables:
            raise NothingFits
        self.block.add_op(op := structure.ReadOp(self.pick(self.variables)))
        self.values.append(op.result)

    def assign(self) -> None:
        if not self.variables:
            raise NothingFits
        variable = self.pick(self.variables)
        type = tensor_type_of(variable.type)
        value = self.value(lambda v: v.type == type)
        self.block.add_op(structure.AssignOp(variable, value))

    def branch(self) -> None:
        if self.depth > 1:
            raise NothingFits
        condition = self.value(lambda v: v.type == TensorType(i1, ()))
        inputs = [self.value() for _ in range(self.random.randint(1, 3))]
        builders = [Builder(self.random, [], self.depth + 1) for _ in range(2)]
        for builder in builders:
            for value in inputs:
                builder.argument(value.type)
            for _ in range(self.random.randint(0, 4)):
                builder.step()
        common = [
            v.type
            for v in builders[0].values
            if any(w.type == v.type for w in builders[1].values)
        ]
        types = [self.pick(common) for _ in range(self.random.randint(1, 2))]
        for builder in builders:
            builder.end(types)
        regions = [Region(builder.block) for builder in builders]
        self.emit(structure.IfOp, [condition, *inputs], to=types, regions=regions)

    def loop(self) -> None:
        """A loop of up to three iterations, with a counter, carried values, and
        invariants."""
        if self.depth > 1:
            raise NothingFits
        count = TensorType(i32, ())
        zero = self.emit(
            shaping.ConstantOp, [], {"value": IntegerAttr(0, i32)}, to=[count]
        )
        carried = [zero, *(self.value() for _ in range(self.random.randint(1, 2)))]
        fixed = [self.value() for _ in range(self.random.randint(0, 2))]
        types = [v.type for v in carried]
        regions: list[Region] = []
        for is_body in (False, True):
            builder = Builder(self.random, [], self.depth + 1)
            for type in types:
                builder.argument(VariableType(tensor_type_of(type)))
            for value in fixed:
                builder.argument(value.type)
            block, counter = builder.block, builder.variables[0]
            block.add_op(read := structure.ReadOp(counter))
            value = 1 if is_body else self.random.randint(0, 3)
            builder.values.append(read.result)
            limit = builder.emit(
                shaping.ConstantOp, [], {"value": IntegerAttr(value, i32)}, to=[count]
            )
            if is_body:
                following = builder.emit(ew.AddOp, [read.result, limit])
                builder.variables.remove(counter)
                for _ in range(self.random.randint(1, 5)):
                    builder.step()
                for _ in range(self.random.randint(1, 2)):
                    builder.attempt(builder.assign)
                block.add_op(structure.AssignOp(counter, following))
                block.add_op(structure.YieldOp())
            else:
                how: dict[str, Attribute] = {"direction": StringAttr("LT")}
                test = builder.emit(ew.CompareOp, [read.result, limit], how)
                block.add_op(structure.YieldOp(test))
            regions.append(Region(block))
        self.emit(structure.WhileOp, [*carried, *fixed], to=types, regions=regions)

    def end(self, types: Sequence[Attribute]) -> None:
        values = [self.value(lambda v, t=type: v.type == t) for type in types]
        self.block.add_op(structure.YieldOp(*values))

    def annotate(self) -> None:
        """Assigns a device or a group to an operation, or a device to a value."""
        if self.depth:
            raise NothingFits
        if self.random.random() < 0.3:
            op = structure.OnDeviceOp(self.value(), self.pick(DEVICES))
            self.block.add_op(op)
            self.values.append(op.result)
        elif op := self.block.last_op:
            name, names = self.pick([(DEVICE, DEVICES), (GROUP, GROUPS)])
            if isinstance(op, TensorOp):
                op.attributes[name] = StringAttr(self.pick(names))


class NothingFits(Exception):
    """No values fit the operands of an operation."""


STEPS: Sequence[Callable[[Builder], None]] = [
    *[Builder.unary] * 3,
    *[Builder.binary] * 5,
    *[Builder.read, Builder.assign] * 2,
    *[Builder.constant, Builder.reduce, Builder.dot, Builder.convert] * 2,
    *(Builder.clamp, Builder.compare, Builder.select, Builder.bitcast, Builder.dense),
    *(Builder.full_like, Builder.iota, Builder.broadcast, Builder.transpose),
    *(Builder.reshape, Builder.slice, Builder.reverse, Builder.concatenate),
    *(Builder.pad, Builder.convolution, Builder.window, Builder.select_and_scatter),
    *(Builder.gather, Builder.scatter, Builder.dynamic_slice),
    *(Builder.dynamic_update_slice, Builder.reduce_by, Builder.sort),
    *(Builder.random_bits, Builder.branch, Builder.loop, Builder.annotate),
    *IDIOMS,
]


def tensor_program(random: Random, size: int) -> ModuleOp:
    """A function `@main` of about `size` operations, on tensors without devices."""
    builder = Builder(random, [])
    attributes: list[dict[str, Attribute]] = []
    common = [builder.shape() for _ in range(random.randint(1, 3))]
    elements = [random.choice(ELEMENTS) for _ in range(random.randint(1, 2))]
    for is_variable in [False] * random.randint(1, 4) + [True] * random.randint(0, 2):
        type: AnyTensor = TensorType(random.choice(elements), random.choice(common))
        builder.argument(VariableType(type) if is_variable else type)
        attributes.append({})
    if random.random() < 0.3:
        builder.argument(TensorType(i32, ()))
        attributes.append({})
    if random.random() < 0.1:
        attributes[-1][DEVICE] = StringAttr(random.choice(DEVICES))
    while len(builder.block.ops) < size:
        builder.step()
    results = [builder.value() for _ in range(random.randint(0, 3))]
    attributes += [{} for _ in builder.block.args[len(attributes) :]]
    if random.random() < 0.3 and builder.variables:
        index = cast(Any, builder.variables[0]).index
        attributes[index][RESULT] = number(random.randint(0, len(results)))
    for argument, given in zip(builder.block.args, attributes, strict=True):
        if isinstance(argument.type, TensorType) and random.random() < 0.3:
            given[DONATED] = UnitAttr()
    builder.block.add_op(ReturnOp(*results))
    arguments = [argument.type for argument in builder.block.args]
    types = FunctionType.from_lists(arguments, [r.type for r in results])
    function = FuncOp("main", types, Region(builder.block))
    if any(attributes):
        function.arg_attrs = ArrayAttr([DictionaryAttr(a) for a in attributes])
    module = ModuleOp([function])
    module.verify()
    return module


def operations(module: ModuleOp) -> list[Operation]:
    """The operations in the blocks of functions, except terminators."""
    return [
        op
        for function in module.ops
        for region in function.regions
        for block in region.blocks
        for op in list(block.ops)[:-1]
    ]
