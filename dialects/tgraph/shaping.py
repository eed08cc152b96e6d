"""Operations that create or move elements without computing on them."""

from collections.abc import Sequence
from math import prod
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import base, irdl_op_definition, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...support.ranges import indices
from ..sizes.dims import DimsAttr
from ..sizes.symbolic import Size, exceeds
from .base import (
    DEVICE,
    GROUP,
    AnyTensor,
    Pattern,
    TensorOp,
    bare,
    device_of,
    ints,
    is_static,
    shape_of,
    tensor_type_of,
    with_element,
    with_shape,
)
from .elements import is_complex
from .partial import UNKNOWN, PartialTypes


def check_dimensions(name: str, dims: Sequence[int], rank: int) -> None:
    """Raises `VerifyException` for dimensions that are out of range or repeated."""
    for dim in dims:
        if not 0 <= dim < rank:
            raise VerifyException(
                f"{name} has dimension {dim}, expected {indices(rank)}"
            )
    if len(set(dims)) != len(dims):
        raise VerifyException(f"{name} has a dimension twice: {list(dims)}")


def check_length(name: str, values: Sequence[object], rank: int) -> None:
    if len(values) != rank:
        raise VerifyException(f"{name} has {len(values)} entries, expected {rank}")


@irdl_op_definition
class ConstantOp(TensorOp):
    """A constant: a single number for all elements, or a list of all elements.

    `tgraph.constant<0.0 : f32> : tensor<1024x1024xf32>` stores a single number for any
    shape. (xDSL expands MLIR's splat `dense<0.0>` to full size.)
    """

    name = "tgraph.constant"
    ARITY: ClassVar = 0
    PATTERN: ClassVar = Pattern.ELEMENTWISE

    value = prop_def(
        base(IntegerAttr) | base(FloatAttr) | base(DenseIntOrFPElementsAttr)
    )

    def __init__(self, value: Attribute, type: AnyTensor):
        super().__init__((), result_types=(type,), properties={"value": value})

    @property
    def splat(self) -> IntegerAttr | FloatAttr | None:
        """The number that all elements are, if the constant stores only one number."""
        value = self.value
        return value if isinstance(value, IntegerAttr | FloatAttr) else None

    @property
    def dense(self) -> DenseIntOrFPElementsAttr:
        """All elements as a dense attribute of MLIR."""
        value = self.value
        if isinstance(value, DenseIntOrFPElementsAttr):
            return value
        type = self.declared[0]
        return DenseIntOrFPElementsAttr.from_list(
            cast(TensorType[AnyFloat], bare(type)),
            [value.value.data] * prod(shape_of(type)),
        )

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        declared = self.declared[0]
        value = self.value
        if isinstance(value, DenseIntOrFPElementsAttr):
            if value.get_shape() != shape_of(declared):
                raise VerifyException(
                    f"result has type {bare(declared)}, expected the shape of its "
                    f"value, {value.type}"
                )
            element_type = value.get_element_type()
        else:
            element_type = value.type
        if element_type != declared.element_type or is_complex(element_type):
            raise VerifyException(
                f"result has type {bare(declared)}, expected elements of type "
                f"{element_type} like its value"
            )
        return [declared]

    def refine(self, types: PartialTypes) -> None:
        if (splat := self.splat) is not None:
            types.set_element(0, splat.type)
            return
        types.set_element(0, self.dense.get_element_type())
        types.check_rank(0, len(self.dense.get_shape()))
        for dim, size in enumerate(self.dense.get_shape()):
            types.set_size((0, dim), size)

    def print(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_attribute(self.value)
        printer.print_string(">")
        self._print_tail(printer, hidden=("value",))

    @classmethod
    def parse(cls, parser: Parser) -> TensorOp:
        parser.parse_punctuation("<")
        value = parser.parse_attribute()
        parser.parse_punctuation(">")
        return cls._parse_tail(parser, (), {"value": value})


@irdl_op_definition
class FullLikeOp(TensorOp):
    """A constant of its operand's shape (NNVM's `zeros_like`, for any number)."""

    name = "tgraph.full_like"
    ARITY: ClassVar = 1
    SHAPE_ONLY: ClassVar = (0,)
    PATTERN: ClassVar = Pattern.ELEMENTWISE

    value = prop_def(base(IntegerAttr) | base(FloatAttr))

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        if self.value.type != inputs[0].element_type:
            raise VerifyException(
                f"value has type {self.value.type}, expected {inputs[0].element_type}"
            )
        return [inputs[0]]

    def refine(self, types: PartialTypes) -> None:
        types.same_shape(0, 1)
        types.set_element(1, self.value.type)
        types.same_element(0, 1)


@irdl_op_definition
class IotaOp(TensorOp):
    """Each element is its own index along `dimension`."""

    name = "tgraph.iota"
    ARITY: ClassVar = 0
    PATTERN: ClassVar = Pattern.ELEMENTWISE

    dimension = prop_def(IntegerAttr)

    @classmethod
    def along(cls, dimension: int, shape: AnyTensor, element: Attribute) -> "IotaOp":
        """An iota with the shape of a tensor, and this element type."""
        return cls(
            (),
            result_types=(with_element(shape, element),),
            properties={"dimension": IntegerAttr(dimension, i64)},
        )

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        declared = self.declared[0]
        check_dimensions(
            "dimension", [self.dimension.value.data], declared.get_num_dims()
        )
        return [declared]

    def refine(self, types: PartialTypes) -> None:
        pass  # any type


@irdl_op_definition
class SizeOp(TensorOp):
    """A size as an element: `tgraph.size {value = #tgraph.dims<2*n>} : tensor<i32>`.

    It becomes a constant when sizes are specialized (`specialize-sizes`).
    """

    name = "tgraph.size"
    ARITY: ClassVar = 0
    PATTERN: ClassVar = Pattern.ELEMENTWISE

    value = prop_def(DimsAttr)

    @property
    def size(self) -> Size:
        (size,) = self.value.data.sizes
        return size

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        check_length("value", self.value.data.sizes, 1)
        type = self.declared[0]
        if shape_of(type) or not isinstance(type.element_type, IntegerType):
            raise VerifyException(
                f"result has type {bare(type)}, expected an integer without dimensions"
            )
        return [type]

    def refine(self, types: PartialTypes) -> None:
        types.check_rank(0, 0)


class ViewOp(TensorOp):
    """Rearranges elements; on memrefs it is a view, if strides describe the result."""

    PATTERN: ClassVar = Pattern.INJECTIVE
    ARITY: ClassVar = 1


@irdl_op_definition
class ReshapeOp(ViewOp):
    """The same elements in row-major order, with another shape."""

    name = "tgraph.reshape"

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        declared = self.declared[0]
        if prod(shape_of(declared)) != prod(shape_of(inputs[0])):
            raise VerifyException(
                f"result has type {bare(declared)}, expected as many elements as "
                f"{bare(inputs[0])} has"
            )
        return [with_shape(inputs[0], shape_of(declared))]

    def refine(self, types: PartialTypes) -> None:
        types.same_element(0, 1)
        for known, other in ((0, 1), (1, 0)):
            shape = types.shapes[other]
            if not types.is_known(known) or shape.count(UNKNOWN) != 1:
                continue
            count = prod(types.shapes[known])
            rest = prod(size for size in shape if size != UNKNOWN)
            if not rest:
                continue
            if count % rest:
                raise VerifyException(
                    f"has {count} elements on one side, expected a multiple of {rest} "
                    "like the other side"
                )
            types.set_size((other, shape.index(UNKNOWN)), count // rest)


@irdl_op_definition
class BroadcastInDimOp(ViewOp):
    """Maps operand dimension d to result dimension `broadcast_dimensions[d]`.

    Operand dimensions of size 1 are repeated, and so are the remaining dimensions of
    the result.
    """

    name = "tgraph.broadcast_in_dim"
    PATTERN: ClassVar = Pattern.BROADCAST

    broadcast_dimensions = prop_def(DenseArrayBase.constr(i64))

    @property
    def only_reshapes(self) -> bool:
        """Whether it only adds dimensions of size 1, and repeats nothing."""
        types = [tensor_type_of(value.type) for value in (self.inputs[0], self.result)]
        dims = self.broadcast_dimensions.get_values()
        source, result = (shape_of(type) for type in types)
        return (
            all(map(is_static, types))
            and prod(source) == prod(result)
            and list(dims) == sorted(dims)
        )

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        shape = shape_of(inputs[0])
        declared = self.declared[0]
        target = shape_of(declared)
        dims = self.broadcast_dimensions.get_values()
        check_length("broadcast_dimensions", dims, len(shape))
        check_dimensions("broadcast_dimensions", dims, len(target))
        for size, dim in zip(shape, dims, strict=True):
            if size not in (1, target[dim]):
                raise VerifyException(
                    f"operand dimension of size {size} becomes result dimension {dim} "
                    f"of size {target[dim]}, expected 1 or {target[dim]}"
                )
        return [with_shape(inputs[0], target)]

    def refine(self, types: PartialTypes) -> None:
        types.same_element(0, 1)
        dims = self.broadcast_dimensions.get_values()
        check_length("broadcast_dimensions", dims, types.rank(0))
        check_dimensions("broadcast_dimensions", dims, types.rank(1))
        for pair in enumerate(dims):
            source, target = (0, pair[0]), (1, pair[1])
            if types.size(source) not in (1, UNKNOWN):
                types.same_size(source, target)
            elif types.size(target) == 1:
                types.set_size(source, 1)


@irdl_op_definition
class TransposeOp(ViewOp):
    """Maps operand dimension `permutation[d]` to result dimension d."""

    name = "tgraph.transpose"

    permutation = prop_def(DenseArrayBase.constr(i64))

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        shape = shape_of(inputs[0])
        permutation = self.permutation.get_values()
        check_length("permutation", permutation, len(shape))
        check_dimensions("permutation", permutation, len(shape))
        return [with_shape(inputs[0], [shape[d] for d in permutation])]

    def refine(self, types: PartialTypes) -> None:
        types.same_element(0, 1)
        permutation = self.permutation.get_values()
        check_length("permutation", permutation, types.rank(0))
        check_dimensions("permutation", permutation, types.rank(0))
        types.check_rank(1, types.rank(0))
        for target, source in enumerate(permutation):
            types.same_size((0, source), (1, target))


@irdl_op_definition
class SliceOp(ViewOp):
    """The elements at `start_indices[d] + k * strides[d]`, below `limit_indices[d]`."""

    name = "tgraph.slice"
    SIZED: ClassVar = ("start_indices", "limit_indices")

    start_indices = prop_def(DenseArrayBase.constr(i64))
    limit_indices = prop_def(DenseArrayBase.constr(i64))
    strides = prop_def(DenseArrayBase.constr(i64))

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        shape = shape_of(inputs[0])
        starts = self.sizes_in("start_indices")
        limits = self.sizes_in("limit_indices")
        strides = self.strides.get_values()
        for name, values in (
            ("start_indices", starts),
            ("limit_indices", limits),
            ("strides", strides),
        ):
            check_length(name, values, len(shape))
        result: list[int] = []
        for dim, (size, start, limit, stride) in enumerate(
            zip(shape, starts, limits, strides, strict=True)
        ):
            ascending = (0, start), (start, limit), (limit, size)
            if stride < 1 or any(exceeds(low, high) for low, high in ascending):
                raise VerifyException(
                    f"takes [{start}:{limit}:{stride}] of dimension {dim}, expected "
                    f"bounds within 0 and {size} and a stride of 1 or more"
                )
            result.append(-(-(limit - start) // stride))
        return [with_shape(inputs[0], result)]

    def refine(self, types: PartialTypes) -> None:
        """The result's sizes follow from the attributes alone."""
        limits = self.sizes_in("limit_indices")
        check_length("limit_indices", limits, types.rank(0))
        bound = with_shape(tensor_type_of(self.inputs[0].type), limits)
        (result,) = self.result_types_of([bound])
        types.check_rank(1, types.rank(0))
        types.same_element(0, 1)
        for dim, size in enumerate(shape_of(result)):
            types.set_size((1, dim), size)


def plain_slice(
    source: SSAValue, starts: Sequence[int], limits: Sequence[int]
) -> SliceOp:
    """The slice of `source` from `starts` up to `limits`, with strides of 1."""
    sizes = [limit - start for start, limit in zip(starts, limits, strict=True)]
    return SliceOp(
        [source],
        result_types=[with_shape(tensor_type_of(source.type), sizes)],
        properties={
            "start_indices": ints(starts),
            "limit_indices": ints(limits),
            "strides": ints([1] * len(sizes)),
        },
    )


@irdl_op_definition
class ReverseOp(ViewOp):
    """The elements in reverse order along `dimensions`."""

    name = "tgraph.reverse"

    dimensions = prop_def(DenseArrayBase.constr(i64))

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        dims = self.dimensions.get_values()
        check_dimensions("dimensions", dims, inputs[0].get_num_dims())
        return [inputs[0]]

    def refine(self, types: PartialTypes) -> None:
        types.same_shape(0, 1)
        types.same_element(0, 1)


@irdl_op_definition
class ConcatenateOp(TensorOp):
    """The operands, concatenated along `dimension`."""

    name = "tgraph.concatenate"
    PATTERN: ClassVar = Pattern.INJECTIVE

    dimension = prop_def(IntegerAttr)

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        if not inputs:
            raise VerifyException("has 0 inputs, expected 1 or more")
        dim = self.dimension.value.data
        first = shape_of(inputs[0])
        check_dimensions("dimension", [dim], len(first))
        total = 0
        for index, type in enumerate(inputs):
            shape = shape_of(type)
            if (*shape[:dim], *shape[dim + 1 :]) != (*first[:dim], *first[dim + 1 :]):
                raise VerifyException(
                    f"operand {index} has type {bare(type)}, expected the shape of "
                    f"{bare(inputs[0])} except along dimension {dim}"
                )
            total += shape[dim]
        return [with_shape(inputs[0], [*first[:dim], total, *first[dim + 1 :]])]

    def refine(self, types: PartialTypes) -> None:
        along = self.dimension.value.data
        *inputs, result = types.values
        if not inputs:
            raise VerifyException("has 0 inputs, expected 1 or more")
        check_dimensions("dimension", [along], types.rank(result))
        types.same_element(*types.values)
        for value in inputs:
            types.check_rank(value, types.rank(result))
        for dim in range(types.rank(result)):
            if dim != along:
                types.same_size(*((value, dim) for value in types.values))
        sizes = [types.size((value, along)) for value in inputs]
        total = types.size((result, along))
        if UNKNOWN not in sizes:
            types.set_size((result, along), sum(sizes))
        elif sizes.count(UNKNOWN) == 1 and total != UNKNOWN:
            rest = sum(size for size in sizes if size != UNKNOWN)
            types.set_size((inputs[sizes.index(UNKNOWN)], along), total - rest)


@irdl_op_definition
class PadOp(TensorOp):
    """The first operand, with the second, a scalar, as padding around and between
    elements.

    Negative values of `low` and `high` remove elements.
    """

    name = "tgraph.pad"
    SIZED: ClassVar = ("low", "high")
    ARITY: ClassVar = 2
    PATTERN: ClassVar = Pattern.INJECTIVE

    low = prop_def(DenseArrayBase.constr(i64))
    high = prop_def(DenseArrayBase.constr(i64))
    interior = prop_def(DenseArrayBase.constr(i64))

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        x, value = inputs
        if shape_of(value) or value.element_type != x.element_type:
            raise VerifyException(
                f"operand 1 has type {bare(value)}, expected tensor<{x.element_type}>"
            )
        low, high = self.sizes_in("low"), self.sizes_in("high")
        interior = self.interior.get_values()
        for name, values in (("low", low), ("high", high), ("interior", interior)):
            check_length(name, values, x.get_num_dims())
        if min(interior, default=0) < 0:
            raise VerifyException(f"interior is {list(interior)}, expected 0 or more")
        shape = [
            lo + size + (max(size - 1, 0) * inner if inner else 0) + hi
            for size, lo, hi, inner in zip(
                shape_of(x), low, high, interior, strict=True
            )
        ]
        if any(exceeds(0, size) for size in shape):
            raise VerifyException(f"negative padding exceeds the size: {shape}")
        return [with_shape(x, shape)]

    def refine(self, types: PartialTypes) -> None:
        types.same_element(*types.values)
        types.check_rank(1, 0)
        types.check_rank(2, types.rank(0))
        lists = [
            self.sizes_in("low"),
            self.sizes_in("high"),
            self.interior.get_values(),
        ]
        for name, values in zip(("low", "high", "interior"), lists, strict=True):
            check_length(name, values, types.rank(0))
        if min(lists[2], default=0) < 0:
            raise VerifyException(f"interior is {list(lists[2])}, expected 0 or more")
        for dim, (low, high, inner) in enumerate(zip(*lists, strict=True)):
            source, target = (0, dim), (2, dim)
            if (size := types.size(source)) != UNKNOWN:
                spread = max(size - 1, 0) * inner if inner else 0
                padded = low + size + spread + high
                types.set_size(target, padded)
            elif (size := types.size(target)) != UNKNOWN:
                spread = size - low - high
                types.set_size(source, spread and -(-spread // (inner + 1)))


@irdl_op_definition
class DeviceCopyOp(TensorOp):
    """A copy of its operand on the device in the result type.

    Before tgraph-place-devices, an attribute may name the device instead, and the
    operand may have no device.
    """

    name = "tgraph.device_copy"
    ARITY: ClassVar = 1

    def __init__(self, source: SSAValue, result_type: AnyTensor):
        super().__init__((source,), result_types=(result_type,))

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        return inputs

    def refine(self, types: PartialTypes) -> None:
        types.same_shape(0, 1)
        types.same_element(0, 1)

    def _verify_one_device(self, types: Sequence[AnyTensor]) -> None:
        (target,) = self.declared
        if device_of(target) is None and not {DEVICE, GROUP} & {*self.attributes}:
            raise VerifyException(
                f"copies to {target}, expected a type with a device, or the attribute "
                f"{DEVICE}"
            )


SHAPING_OPS = (
    BroadcastInDimOp,
    ConcatenateOp,
    ConstantOp,
    DeviceCopyOp,
    FullLikeOp,
    IotaOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SizeOp,
    SliceOp,
    TransposeOp,
)
