"""Operations whose regions say what to do with single elements.

A region is on scalars, of elementwise operations and constants with one number.
"""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    i1,
    i64,
)
from xdsl.ir import Region
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, region_def
from xdsl.utils.exceptions import VerifyException

from ..sizes.symbolic import exceeds
from .base import AnyTensor, bare, shape_of, with_element, with_shape
from .elementwise import ElementwiseOp
from .partial import PartialTypes
from .shaping import ConstantOp, check_dimensions
from .structure import RegionOp, YieldOp


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


@irdl_op_definition
class ReduceByOp(RegionOp):
    """Combines elements along `dimensions` as a region says, tensors together.

        %v, %i = tgraph.reduce_by %x, %n, %low, %zero {dimensions = array<i64: 1>}
            : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>)
            -> (tensor<4xf32>, tensor<4xi32>) {
        ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
          ...
          tgraph.yield %c, %k : tensor<f32>, tensor<i32>
        }

    Inputs are the tensors, then the scalars that they start from. The region has an
    element of each of them, twice. It has to be associative, with the initial values as
    its identity: in what order and how often they are combined is open.
    """

    name = "tgraph.reduce_by"
    RESULTS: ClassVar = None

    dimensions = prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
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
        count = types.inputs // 2
        dims = self.dimensions.get_values()
        for value, result in enumerate(types.values[types.inputs :]):
            types.same_element(value, count + value, result)
            types.check_rank(count + value, 0)
            types.same_shape(0, value)
            kept = [d for d in range(types.rank(value)) if d not in dims]
            types.check_rank(result, len(kept))
            for target, source in enumerate(kept):
                types.same_size((value, source), (result, target))


@irdl_op_definition
class SortOp(RegionOp):
    """Sorts along `dimension`: several tensors in the same way, and always stably.

        %v, %i = tgraph.sort %x, %n {dimension = 1 : i64} : ... {
        ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
          %0 = tgraph.compare %a, %b {direction = "GT"} : ...
          tgraph.yield %0 : tensor<i1>
        }

    The region has two elements of each tensor, and says whether the first ones come
    before the second ones. With `count`, results are the first so many of each column.
    """

    name = "tgraph.sort"
    RESULTS: ClassVar = None

    dimension = prop_def(IntegerAttr)
    count = opt_prop_def(IntegerAttr)
    comparator = region_def("single_block")

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
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
        for value, result in enumerate(types.values[types.inputs :]):
            types.same_element(value, result)
            types.same_shape(0, value)
            types.check_rank(result, types.rank(value))
            for d in range(types.rank(value)):
                if self.count is None or d != dim:
                    types.same_size((value, d), (result, d))
                else:
                    types.set_size((result, d), self.count.value.data)


BODY_OPS = (ReduceByOp, SortOp)
