"""Operations with regions on single elements.

Such a region computes on scalars. It contains elementwise operations, and constants
that are a single number.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    i1,
    i64,
)
from xdsl.ir import Region, SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, region_def
from xdsl.utils.exceptions import VerifyException

from ..sizes.symbolic import exceeds
from .base import (
    AnyTensor,
    bare,
    shape_of,
    tensor_type_of,
    with_element,
    with_shape,
)
from .elementwise import ElementwiseOp
from .partial import PartialTypes
from .shaping import ConstantOp, IotaOp, check_dimensions
from .structure import RegionOp, YieldOp

T = TypeVar("T")


def _check_body(region: Region) -> None:
    for op in region.block.ops:
        is_number = isinstance(op, ConstantOp) and op.splat is not None
        if not is_number and not isinstance(op, ElementwiseOp | YieldOp):
            raise VerifyException(
                f"{op.name} in a region on single elements, expected elementwise "
                "operations and numbers"
            )


def _check_shapes(inputs: Sequence[AnyTensor]) -> None:
    for index, type in enumerate(inputs):
        if type.shape != inputs[0].shape:
            raise VerifyException(
                f"operand {index} has type {bare(type)}, expected the shape of "
                f"{bare(inputs[0])}"
            )


class ElementsOp(RegionOp):
    """An operation with a region on single elements of tensors of equal shape.

    Tensors whose numbers are in `positions` are not inputs: each of their elements is
    its index along the operation's dimension, as in a `tgraph.iota`.
    """

    positions = opt_prop_def(DenseArrayBase.constr(i64))

    @property
    def numbered(self) -> Sequence[int]:
        """The numbers of the tensors that are not inputs, ascending."""
        return () if self.positions is None else self.positions.get_values()

    @property
    def along(self) -> Sequence[int]:
        """The dimensions along which the operation combines elements."""
        raise NotImplementedError

    @property
    def elements(self) -> Sequence[SSAValue]:
        """The region's arguments for one element of each tensor."""
        raise NotImplementedError

    def completed(self, inputs: Sequence[T], of_iota: Callable[[IotaOp], T]) -> list[T]:
        """All tensors: the inputs, and `of_iota` of those in `positions`."""
        shape = tensor_type_of(self.inputs[0].type)
        return self._completed(inputs, shape, of_iota)

    def _completed(
        self, inputs: Sequence[T], shape: AnyTensor, of_iota: Callable[[IotaOp], T]
    ) -> list[T]:
        result = list(inputs)
        for number in self.numbered:
            element = tensor_type_of(self.elements[number].type).element_type
            result.insert(number, of_iota(IotaOp.along(self.along[0], shape, element)))
        return result

    def _completed_types(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        """Checks `positions`; returns the types of all tensors."""
        numbered, count = list(self.numbered), len(self.elements)
        if not numbered or not inputs:
            return inputs
        if numbered != sorted({*numbered} & {*range(count)}) or len(numbered) == count:
            raise VerifyException(
                f"positions are {numbered}, expected some of {list(range(count))}, but "
                "not all, in this order"
            )
        if len(self.along) != 1:
            raise VerifyException(
                f"has positions along {len(self.along)} dimensions, expected 1"
            )
        return self._completed(inputs, inputs[0], lambda iota: iota.declared[0])

    def _inputs_of(self, count: int) -> Sequence[int | None]:
        """The number of the input that each tensor is; None if it is no input."""
        inputs = iter(range(count))
        return [None if n in self.numbered else next(inputs) for n in range(count)]


@irdl_op_definition
class ReduceByOp(ElementsOp):
    """Reduces one or more tensors together along `dimensions`, with a region as
    combiner.

        %v, %i = tgraph.reduce_by %x, %n, %low, %zero {dimensions = array<i64: 1>}
            : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>)
            -> (tensor<4xf32>, tensor<4xi32>) {
        ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
          ...
          tgraph.yield %c, %k : tensor<f32>, tensor<i32>
        }

    The inputs are the tensors, followed by their initial values, which are scalars. The
    region takes two elements of each tensor. It must be associative, with the initial
    values as its identity, because the order and number of combinations are
    unspecified.

    With `positions = array<i64: 1>`, %n is not an input, but the position along the
    single dimension (argmax).
    """

    name = "tgraph.reduce_by"
    RESULTS: ClassVar = None

    dimensions = prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")

    @property
    def along(self) -> Sequence[int]:
        return self.dimensions.get_values()

    @property
    def elements(self) -> Sequence[SSAValue]:
        args = self.body.block.args
        return args[: len(args) // 2]

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        inputs = self._completed_types(inputs)
        count = len(inputs) // 2
        if not inputs or len(inputs) % 2:
            raise VerifyException(
                f"has {len(inputs)} inputs, expected an initial value for each tensor"
            )
        tensors = inputs[:count]
        _check_shapes(tensors)
        dims = self.dimensions.get_values()
        shape = shape_of(tensors[0])
        check_dimensions("dimensions", dims, len(shape))
        scalars = [with_shape(type, []) for type in tensors]
        for index, (got, want) in enumerate(zip(inputs[count:], scalars, strict=True)):
            if got != want:
                raise VerifyException(
                    f"initial value {index} has type {got}, expected {want}"
                )
        self._check_arguments(self.body, [*scalars, *scalars])
        self._check_yields(self.body, scalars)
        _check_body(self.body)
        kept = [size for dim, size in enumerate(shape) if dim not in dims]
        return [with_shape(type, kept) for type in tensors]

    def refine(self, types: PartialTypes) -> None:
        results = types.values[types.inputs :]
        starts = types.values[types.inputs - len(results) : types.inputs]
        kept = [d for d in range(types.rank(0)) if d not in self.along]
        for value, start, result in zip(
            self._inputs_of(len(results)), starts, results, strict=False
        ):
            types.same_element(start, result)
            types.check_rank(start, 0)
            if value is not None:
                types.same_element(value, start)
                types.same_shape(0, value)
            types.check_rank(result, len(kept))
            for target, source in enumerate(kept):
                types.same_size((0, source), (result, target))


@irdl_op_definition
class SortOp(ElementsOp):
    """Sorts one or more tensors together along `dimension`. The sort is always stable.

        %v, %i = tgraph.sort %x, %n {dimension = 1 : i64} : ... {
        ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
          %0 = tgraph.compare %a, %b {direction = "GT"} : ...
          tgraph.yield %0 : tensor<i1>
        }

    The region takes two elements of each tensor, and returns whether the first ones
    come before the second ones. It must define a strict order: `LT`, not `LE`. With
    `count`, each result has only the first `count` elements along `dimension`.
    """

    name = "tgraph.sort"
    RESULTS: ClassVar = None

    dimension = prop_def(IntegerAttr)
    count = opt_prop_def(IntegerAttr)
    comparator = region_def("single_block")

    @property
    def along(self) -> Sequence[int]:
        return [self.dimension.value.data]

    @property
    def elements(self) -> Sequence[SSAValue]:
        return self.comparator.block.args[::2]

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        inputs = self._completed_types(inputs)
        if not inputs:
            raise VerifyException("has 0 inputs, expected 1 or more")
        _check_shapes(inputs)
        dim = self.dimension.value.data
        check_dimensions("dimension", [dim], inputs[0].get_num_dims())
        scalars = [with_shape(type, []) for type in inputs for _ in range(2)]
        self._check_arguments(self.comparator, scalars)
        condition = with_element(scalars[0], i1)
        self._check_yields(self.comparator, [condition])
        _check_body(self.comparator)
        if self.count is None:
            return inputs
        shape, count = list(shape_of(inputs[0])), self.count.value.data
        if count < 0 or exceeds(count, shape[dim]):
            raise VerifyException(
                f"count is {count}, expected 0 to {shape[dim]}: the size along "
                f"dimension {dim}"
            )
        shape[dim] = count
        return [with_shape(type, shape) for type in inputs]

    def refine(self, types: PartialTypes) -> None:
        dim = self.dimension.value.data
        results = types.values[types.inputs :]
        for value, result in zip(self._inputs_of(len(results)), results, strict=True):
            if value is not None:
                types.same_element(value, result)
                types.same_shape(0, value)
            types.check_rank(result, types.rank(0))
            for d in range(types.rank(0)):
                if self.count is None or d != dim:
                    types.same_size((0, d), (result, d))
                else:
                    types.set_size((result, d), self.count.value.data)


BODY_OPS = (ReduceByOp, SortOp)
